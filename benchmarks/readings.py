"""Whether two checkouts read the same: python benchmarks/readings.py OTHER_CHECKOUT

Reads a corpus with this checkout and with another (a worktree of an earlier commit), each in a
process of its own: the texts of tests/cases and tests/cases_core by `auto`, by two more formats and
as a stream, two calls written in every format that writes, whole and with one sign lost, added or
cut off, and the JSON repair of each text. Prints which readings differ, and exits with 1 if any
does. A reading is everything: calls, arguments, edits, problems, events, origins, verdict.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
MEMBERS = ("raw", "text", "raw_text", "value")
LATER = ("unchecked", "unknown_arguments", "quotes")  # options that earlier checkouts lack
LONGEST = 6_000
KINDS = {
    "city": {"type": "string"},
    "days": {"type": "integer"},
    "tags": {"type": "array", "items": {"type": "string"}},
    "near": {"type": "object", "properties": {"x": {"type": "number"}}},
}
TOOLS: list[dict[str, Any]] = [
    {
        "name": "weather",
        "parameters": {"type": "object", "properties": KINDS, "required": ["city"]},
    },
    {"name": "find", "parameters": {"type": "object", "properties": {"q": {"type": "string"}}}},
]
CALLS = (
    ("weather", {"city": 'A "b" <c> & d', "days": 3, "tags": ["x", "y,z"], "near": {"x": 1.5}}),
    ("find", {"q": "hello\nworld"}),
)
Read = tuple[str, str, str, Any, int]  # id, text, protocol, tools, size of the pieces or 0


def recorded(ids: list[str]) -> Iterator[Read]:
    """The texts of the cases, each by three formats and some as streams."""
    for folder in ("tests/cases", "tests/cases_core", "tests/cases_core/texts"):
        for file in sorted((ROOT / folder).glob("*.jsonl")):
            rows = [json.loads(line) for line in file.read_text("utf-8").splitlines() if line]
            for n, row in enumerate(rows):
                tools = row.get("tools") if isinstance(row.get("tools"), list) else None
                for member in MEMBERS:
                    text = row.get(member)
                    if not isinstance(text, str) or len(text) > LONGEST:
                        continue
                    name = f"{file.name}:{n}:{member}"
                    own = row.get("format") or row.get("protocol")
                    formats = ["auto", ids[n % len(ids)], own if own in ids else "hermes"]
                    yield from ((f"{name} {f}", text, f, tools, 0) for f in formats)
                    yield f"{name} stream", text, "auto", tools, 1 + n % 7


def made(protocols: Any) -> Iterator[Read]:
    """Two calls in every format that writes, whole and damaged in one place."""
    for id, protocol in protocols.items():
        parts = ({"type": "tool-call", "toolCallId": name, "toolName": name, "input": arguments}
                 for name, arguments in CALLS)  # fmt: skip
        try:
            whole = "Let me see.\n" + "\n".join(map(protocol.format_tool_call, parts))
        except Exception:
            continue
        texts = {"whole": whole}
        for at in range(12, len(whole), max(1, len(whole) // 14)):
            texts[f"{at} lost"] = whole[:at] + whole[at + 1 :]
            texts[f"{at} cut"] = whole[:at]
            texts[f'{at} "'] = whole[:at] + '"' + whole[at:]
            texts[f"{at} <"] = whole[:at] + "<" + whole[at:]
        for n, (damage, text) in enumerate(texts.items()):
            yield f"{id} {damage}", text, id, TOOLS, 0
            yield f"{id} {damage} in another way", text, (id, "auto")[n % 2], TOOLS, (n % 3) * 3


def everything_of(result: Any) -> Any:
    places = [
        [(o.start, o.end, o.exact) for o in map(call.origin, pointers(call.arguments))]
        for call in result.calls
        if call.arguments
    ]
    whole = result.to_dict()
    for name in LATER:
        whole["options"].pop(name, None)
    return whole, places, str(result.verdict), result.why()


def pointers(arguments: dict[str, Any]) -> list[str]:
    return ["/" + name.replace("~", "~0").replace("/", "~1") for name in arguments]


def read_all() -> dict[str, str]:
    """Id of a reading -> the digest of everything in it."""
    import toolparse_lab as tp

    protocols = tp.protocols()
    out: dict[str, str] = {}
    for name, text, protocol, tools, size in (*recorded(list(protocols)), *made(protocols)):
        try:
            if size:
                parser = tp.stream(protocol, tools)
                pieces = [text[i : i + size] for i in range(0, len(text), size)]
                events = [repr(event) for piece in pieces for event in parser.feed(piece)]
                found: Any = (events, everything_of(parser.close()))
            else:
                found = everything_of(tp.parse(text, protocol, tools))
            repaired = tp.rjson.repair(text)
            found = (found, repr(repaired.values), [repr(edit) for edit in repaired.edits])
        except tp.errors.ToolparseError as error:  # tools of a case that are no tools
            found = type(error).__name__
        shown = json.dumps(found, sort_keys=True, default=repr)
        out[name] = hashlib.md5(shown.encode(), usedforsecurity=False).hexdigest()
    return out


def readings_of(checkout: Path) -> dict[str, str]:
    run = subprocess.run(
        [sys.executable, str(Path(__file__).resolve()), "--print"],
        env={**os.environ, "PYTHONPATH": str(checkout), "PYTHONWARNINGS": "ignore"},
        cwd=checkout, check=True, capture_output=True, text=True,
    )  # fmt: skip
    found: dict[str, str] = json.loads(run.stdout)
    return found


def main(arguments: list[str]) -> int:
    if arguments == ["--print"]:
        print(json.dumps(read_all()))
        return 0
    if len(arguments) != 1 or not (Path(arguments[0]) / "toolparse_lab").is_dir():
        print(__doc__)
        return 2
    here, there = readings_of(ROOT), readings_of(Path(arguments[0]).resolve())
    differing = [name for name in here if name in there and here[name] != there[name]]
    for name in differing[:40]:
        print(f"differs: {name}")
    alone = len(here.keys() ^ there.keys())
    print(f"{len(here)} readings, {len(differing)} differ, {alone} are of one checkout alone")
    return bool(differing)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
