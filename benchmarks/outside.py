"""Parsers of servers over many answers: python benchmarks/outside.py [--json FILE]

Which known faults of vLLM does `stream_diff` find again, what does a release change on recorded
answers, and how long does a reader take? Readers that were not added are left out and said so; add
them with `toolparse reader add vllm==0.33.0` and so on.

The generated answers are written by our protocols from random calls of a seed, 150 a format, each
with its target. The recorded ones are those of the embedded model in datasets/recordings that hold
`<tool_call>`, and what --recorded FILE adds: lines of JSON with `raw` and `tools`. Neither has
recorded chunks, so streams are cut into 4 characters, or come in one piece.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import toolparse_lab as tp
from toolparse_lab.core.errors import UnwritableCall
from toolparse_lab.extensions.readers import StreamDiff, readers_added, stream_diff
from toolparse_lab.formats.registry import protocol_of

ROOT = Path(__file__).parent.parent
ROWS = 150
VLLM = ("0.10.1", "0.11.0", "0.11.2", "0.22.1", "0.32.0", "0.33.0")
SGLANG = ("0.5.3", "0.5.10", "0.5.23")
FORMATS = (
    "hermes", "qwen3_coder", "deepseek_v3", "xlam", "hunyuan_a13b", "kimi_k2", "pythonic",
)  # fmt: skip
TOOLS: list[dict[str, Any]] = [
    {
        "name": "book",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "guests": {"type": "integer"},
                "late": {"type": "boolean"},
                "tags": {"type": "array", "items": {"type": "string"}},
                "where": {"type": "object"},
            },
        },
    },
    {"name": "now", "parameters": {"type": "object", "properties": {}}},
]
_CALLS = ("calls", "calls and content")
TEXTS = (
    "Bergen", "São Paulo", "", "a } brace", 'a "quote"', "two\nlines", "<b>bold</b>", "x, y",
    "日本", "{}", "50 %",
)  # fmt: skip


def random_call(rng: random.Random) -> dict[str, Any]:
    if rng.random() < 0.2:
        return {"name": "now", "arguments": {}}
    every: dict[str, Callable[[], Any]] = {
        "city": lambda: rng.choice(TEXTS),
        "guests": lambda: rng.randint(-3, 40),
        "late": lambda: rng.random() < 0.5,
        "tags": lambda: rng.sample(TEXTS, rng.randint(0, 3)),
        "where": lambda: {"lat": rng.randint(-90, 90), "near": {"name": rng.choice(TEXTS)}},
    }
    chosen = [name for name in every if rng.random() < 0.5]
    return {"name": "book", "arguments": {name: every[name]() for name in chosen}}


def generated(parser: str, rows: int = ROWS) -> Iterator[dict[str, Any]]:
    """Answers in the format of a server's parser, from the same calls for every format."""
    rng, protocol = random.Random(20260), protocol_of(parser)
    while rows:
        calls = [random_call(rng) for _ in range(rng.choice((1, 1, 1, 2, 2, 3)))]
        prose = rng.choice(("", "", "Let me look.\n"))
        try:
            written = [
                protocol.write_call(c["name"], json.dumps(c["arguments"], ensure_ascii=False))
                for c in calls
            ]
        except UnwritableCall:
            continue
        rows -= 1
        yield {
            "id": f"{parser}-{rows:03}",
            "output": prose + protocol.join_calls(written),
            "target": [{"name": c["name"], "arguments": {"$value": c["arguments"]}} for c in calls],
        }


def recorded(more: Path | None) -> Iterator[dict[str, Any]]:
    """Answers of models in the format hermes."""
    for file in sorted((ROOT / "datasets" / "recordings").glob("*.jsonl")):
        for line in file.read_text("utf-8").splitlines()[1:]:
            raw = json.loads(line).get("raw") or ""
            if "<tool_call>" in raw:
                yield {"output": raw, "tools": _tools_named(raw)}
    if more is not None:
        for line in more.read_text("utf-8").splitlines():
            row = json.loads(line)
            raw = row.get("raw") or row.get("raw_text") or ""
            if "<tool_call>" in raw:
                yield {"output": raw, "tools": row.get("tools") or _tools_named(raw)}


def _tools_named(raw: str) -> list[dict[str, Any]]:
    # A recording holds no tools, and SGLang reads no call of a tool that was not offered.
    names = {call.name for call in tp.parse(raw, "hermes").calls if call.name}
    return [{"name": name, "parameters": {"type": "object"}} for name in sorted(names)]


class Bench:
    """A lab with the answers, and the figures that were printed."""

    def __init__(self) -> None:
        self.lab = tp.Lab(tempfile.mkdtemp() + "/outside.db")
        self.added = {str(one) for one in readers_added()}
        self.figures: list[dict[str, Any]] = []

    def has(self, *names: str) -> bool:
        missing = {name.partition(":")[0] for name in names if "==" in name} - self.added
        for one in sorted(missing):
            print(f"left out, not added: {one}")
        return not missing

    def diff(self, a: str, b: str, run: Any, chunks: Any = 4) -> StreamDiff | None:
        if not self.has(a, b):
            return None
        before = time.perf_counter()
        diff = stream_diff(a, b, run, chunks=chunks)
        figure = {
            "a": a, "b": b, "chunks": chunks, "answers": len(diff.frame),
            "seconds": round(time.perf_counter() - before, 1),
            **{f"{part} {v}": diff.count(part, v) for part in ("batch", "stream")
               for v in ("changed", "mended", "broken", "reader_error")},
            **{f"{part} calls": int(diff.frame[f"{part}_what"].isin(_CALLS).sum())
               for part in ("batch", "stream")},
            "differs_a": int(diff.frame["stream_differs_a"].sum()),
            "differs_b": int(diff.frame["stream_differs_b"].sum()),
        }  # fmt: skip
        self.figures.append(figure)
        print(diff)
        print(f"  calls differ: batch {figure['batch calls']}, stream {figure['stream calls']}; "
              f"{figure['seconds']} s")  # fmt: skip
        return diff


def faults(bench: Bench) -> None:
    """The known faults, each on the rows of its format."""
    runs = {
        parser: bench.lab.ingest(
            [{**row, "case_id": row["id"]} for row in generated(parser)],
            tools=TOOLS,
            model="generated",
            protocol=protocol_of(parser).id,
        )
        for parser in FORMATS
    }
    print("\n#22885: hermes loses a closing brace of a stream")
    bench.diff("vllm==0.10.1:hermes", "vllm==0.11.0:hermes", runs["hermes"])
    print("\n#28806: empty arguments are dropped")
    for version in ("0.11.2", "0.22.1"):
        bench.diff(f"vllm=={version}:hermes", "hermes", runs["hermes"])
    print("\n#31501: a call in one delta gives none")
    for version in VLLM:
        for parser in ("hermes", "qwen3_coder", "deepseek_v3"):
            bench.diff(f"vllm=={version}:{parser}", "auto", runs[parser], "all")
    print("\n#47901: arguments after an empty call become {}")
    for parser in ("xlam", "hunyuan_a13b"):
        diff = bench.diff(f"vllm==0.33.0:{parser}", "auto", runs[parser])
        if diff is not None:
            emptied = sum(map(_is_emptied, diff.frame["stream_a"], diff.frame["stream_b"]))
            bench.figures[-1]["emptied"] = emptied
            print(f"  in {emptied} streams a call has other arguments than none, and got {{}}")


def _is_emptied(a: Any, b: Any) -> bool:
    if not isinstance(a, str) or not isinstance(b, str):
        return False
    pairs = zip(json.loads(a)["calls"], json.loads(b)["calls"], strict=False)
    return any(x["arguments"] == "{}" and y["arguments"] != "{}" for x, y in pairs)


def releases(bench: Bench, more: Path | None) -> None:
    """What a release changes on recorded answers in the format hermes, and ours beside them."""
    rows = [{**row, "case_id": f"{i:05}"} for i, row in enumerate(recorded(more))]
    run = bench.lab.ingest(rows, model="recorded", protocol="hermes")
    print(f"\n{len(rows)} recorded answers with <tool_call>")
    for a, b in pairwise(VLLM):
        bench.diff(f"vllm=={a}:hermes", f"vllm=={b}:hermes", run)
    for a, b in pairwise(SGLANG):
        bench.diff(f"sglang=={a}:qwen25", f"sglang=={b}:qwen25", run)
    bench.diff("vllm==0.33.0:hermes", "hermes", run)
    bench.diff("sglang==0.5.23:qwen25", "hermes", run)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the figures")
    parser.add_argument("--recorded", type=Path, help="more recorded answers")
    options = parser.parse_args(arguments)
    bench = Bench()
    faults(bench)
    releases(bench, options.recorded)
    if options.json:
        options.json.write_text(json.dumps(bench.figures, indent=1), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
