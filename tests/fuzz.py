"""Looks for a text that breaks a law: python tests/fuzz.py [--minutes 10] [--seed 1]

Guided by coverage where `atheris` is installed (pip install atheris), at random otherwise. Each
input is read as a protocol, options and pieces: the formats' own delimiters, values, damage,
nesting of up to 100,000 levels, integers of up to 5,000 digits and texts at the scanners' limits,
with raw characters between them; a tool has a recursive schema, and some texts answer a request
that holds a part of them. What is checked: nothing is raised by `parse`, `feed`, `rjson` or `rxml`; the laws of one
text, and one random chunking. The first text that breaks one in a new way is printed as a case;
then the exit code is 1.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent))

GUIDED = importlib.util.find_spec("atheris") is not None
if GUIDED and __name__ == "__main__":
    import atheris  # type: ignore[import-not-found, import-untyped, unused-ignore]  # not among the requirements

    with atheris.instrument_imports(include=["toolparse_lab"]):
        import toolparse_lab as tp
        from toolparse_lab.core.errors import ToolparseError
        from toolparse_lab.entry import laws
    from toolparse_lab.formats.registry import family_heads
else:
    import toolparse_lab as tp
    from toolparse_lab.core.errors import ToolparseError
    from toolparse_lab.entry import laws
    from toolparse_lab.formats.registry import family_heads

HERE = Path(__file__).parent
TOOLS = tp.core.toolspec.tool_specs(
    json.loads((HERE / "cases_core" / "parse_tools.json").read_text("utf-8"))
)
PROTOCOLS = ("auto", *family_heads())
NODE = {
    "type": "object",
    "properties": {
        "next": {"$ref": "#/$defs/node"},
        "list": {"type": "array", "items": {"$ref": "#/$defs/node"}},
        "text": {"type": "string"},
    },
}
NESTED = {"anyOf": [{"type": "array", "items": {"$ref": "#/$defs/nested"}}, {"type": "integer"}]}
RECURSIVE = {
    "type": "object",
    "properties": {"a": {"$ref": "#/$defs/node"}, "s": {"$ref": "#/$defs/nested"}},
    "$defs": {"node": NODE, "nested": NESTED},
}
TOOLS = (*TOOLS, *tp.core.toolspec.tool_specs([{"name": "tree", "parameters": RECURSIVE}]))
LONG = 20_000  # characters above which only what is said of any text is checked, not every law
# CPU seconds a character, above which a text is said to be too slow, under instrumentation
SLOW = 400e-6
PIECES = json.loads((HERE / "cases_core" / "pieces.json").read_text("utf-8"))
REPEATED = (
    "[", "{", '{"a":', "<a>", "<f>", "(", "- ", "9", " ", "`", "<tool_call>", "\\", '"', "'", "\n",
    "<|channel|>", "x", "<f a=", "> ", '{"next":', "<next>",
)  # fmt: skip
TIMES = (8,) * 20 + (64,) * 10 + (300, 512, 513, 600, 1_030) + (5_200, 100_001)
CASES = [
    json.loads(line)["raw"]
    for line in (HERE / "cases_core" / "parse.jsonl").read_text("utf-8").splitlines()
]


class Choices:
    """Bytes read as choices, so that a fuzzer that changes bytes changes choices."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def number(self, below: int) -> int:
        size = 1 if below <= 256 else 3
        found = int.from_bytes(self.data[self.at : self.at + size], "big")
        self.at += size
        return found % below

    def left(self) -> bool:
        return self.at < len(self.data)

    def text(self) -> str:
        """A text made of pieces; half of the inputs begin with a case."""
        out: list[str] = [CASES[self.number(len(CASES))]] if self.number(2) else []
        while self.left():
            kind = self.number(16)
            if kind == 0:
                most = TIMES[self.number(len(TIMES))]
                out.append(REPEATED[self.number(len(REPEATED))] * self.number(most))
            elif kind == 1:
                out.append(chr(self.number(0x3000)))
            elif kind == 2 and out:
                joined = "".join(out)
                cut = self.number(len(joined) + 1)
                out = [joined[:cut], joined[min(len(joined), cut + self.number(8)) :]]
            else:
                out.append(PIECES[self.number(len(PIECES))])
        return "".join(out)


class Found(AssertionError):
    """What a text broke, the protocol, and the text as a case."""


def check(data: bytes, seen: Counter[str]) -> None:
    """Raises AssertionError with the text for whatever should not be."""
    choices = Choices(data)
    protocol = PROTOCOLS[choices.number(len(PROTOCOLS))]
    options = {
        "coerce": ("safe", "middleware", "none", "safe")[choices.number(4)],
        "repair": choices.number(8) > 0,
        "reasoning": ("auto", "auto", "prefilled", "none")[choices.number(4)],
    }
    tools = TOOLS if choices.number(8) else ()
    seed = choices.number(1 << 16)
    text = choices.text()
    start = time.process_time()
    try:
        if len(text) > LONG:
            result = tp.parse(text, protocol, tools, options)
            laws.check_partition(result)
        else:
            trial = laws.try_text(text, protocol, tools, options)
            for law, hold in laws.TEXT_LAWS.items():
                if law != "split invariance":
                    hold(trial)
            result = trial.result
        spent = time.process_time() - start
        if spent > 1 + len(text) * SLOW:
            raise AssertionError(f"slow: {spent:.1f} s for {len(text)} characters")
        rng = random.Random(seed)
        cuts = sorted(rng.randrange(len(text) + 1) for _ in range(rng.choice((1, 3, 40))))
        chunks = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        other, log = laws.run_chunks(chunks, protocol, tools, options)
        if other != result:
            raise AssertionError(f"split invariance: the result depends on the splits {cuts}")
        if len(text) <= LONG and log != trial.log:
            raise AssertionError(f"split invariance: the event log depends on the splits {cuts}")
        if len(text) <= LONG and seed % 4 == 0:
            _check_request(text, protocol, tools, options, rng)
        _check_values(text)
    except Exception as e:
        case = json.dumps(
            {"raw": text, "protocol": protocol, "options": options, "tools": bool(tools)}
        )
        raise Found(f"{type(e).__name__}: {e}", protocol, case) from e
    seen["texts"] += 1
    seen["with calls"] += bool(result.calls)
    seen["with ok calls"] += any(c.ok for c in result.calls)
    seen["with repairs"] += any(c.edits for c in result.calls)
    seen["longest"] = max(seen["longest"], len(text))


def _check_request(
    text: str, protocol: str, tools: Any, options: dict[str, Any], rng: random.Random
) -> None:
    """An echo is never executable, in one piece as in many, and nothing else changes."""
    start = rng.randrange(len(text) + 1)
    end = rng.randrange(start, len(text) + 1) if rng.randrange(2) else len(text)
    part = text[start:end]
    quoted = (part, "> " + part, json.dumps(part), f"```\n{part}\n```")[rng.randrange(4)]
    request = [{"role": rng.choice(("user", "tool", "system")), "content": quoted}]
    result = tp.parse(text, protocol, tools, options, request=request)
    parser = tp.stream(protocol, tools, options, request=request)
    for piece in (text[:start], text[start:end], text[end:]):
        parser.feed(piece)
    if parser.close() != result:
        raise AssertionError("split invariance: with a request the result depends on the splits")
    if any(c.valid and any(p.code == "call.echoed" for p in c.problems) for c in result.calls):
        raise AssertionError("an echo is executable")
    bare = tp.parse(text, protocol, tools, options)
    if [(c.name, c.arguments_json) for c in bare.calls] != [
        (c.name, c.arguments_json) for c in result.calls
    ]:
        raise AssertionError("a request changes how a text is read")


def _check_values(text: str) -> None:
    """The value readers raise nothing but their own errors."""
    tp.rjson.repair(text)
    for read in (tp.rjson.parse, lambda t: tp.rxml.parse(t, {"type": "object"})):
        try:
            read(text)
        except ToolparseError:
            continue


def at_random(minutes: float, seed: int, one: Callable[[bytes], Any]) -> None:
    rng = random.Random(seed)
    end = time.monotonic() + minutes * 60
    while time.monotonic() < end:
        one(rng.randbytes(rng.choice((8, 20, 60, 200))))


def main(argv: list[str]) -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--minutes", type=float, default=10)
    options.add_argument("--seed", type=int, default=1)
    chosen = options.parse_args(argv)
    seen: Counter[str] = Counter()
    broken: set[tuple[str, str]] = set()
    last = time.monotonic()
    tp.parse(CASES[0] + "<tool_call>{}</tool_call>", "auto", TOOLS).to_json()
    tp.parse(
        '<tool_call>{"name":"f","arguments":{"a":"x"}}</tool_call>', "hermes", TOOLS
    )  # loads the validator

    def one(data: bytes) -> None:
        nonlocal last
        try:
            check(data, seen)
        except Found as e:
            what, protocol, case = e.args
            if (what[:60], protocol) not in broken:
                broken.add((what[:60], protocol))
                print(f"{what[:2000]}\n{case[:20_000]}", flush=True)
        if time.monotonic() - last > 30:
            last = time.monotonic()
            print(", ".join(f"{n:,} {what}" for what, n in seen.items()), flush=True)

    try:
        if GUIDED:
            limits = [
                f"-max_total_time={int(chosen.minutes * 60)}",
                "-max_len=400",
                f"-seed={chosen.seed}",
                "-rss_limit_mb=0",
            ]
            atheris.Setup([sys.argv[0], *limits], one)
            atheris.Fuzz()  # leaves by SystemExit
        else:
            at_random(chosen.minutes, chosen.seed, one)
    finally:
        how = "guided by coverage" if GUIDED else "at random"
        print(
            f"{how}, seed {chosen.seed}: " + ", ".join(f"{n:,} {what}" for what, n in seen.items()),
            flush=True,
        )
        if broken:
            sys.exit(1)  # here, because atheris leaves by SystemExit itself
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
