"""The cost of repeated signs, for every format: microseconds a character, and what a double costs.

`python benchmarks/growth.py [characters] [formats]` prints the rows that go beyond 2 µs a character
or beyond 2.3 times for twice the text, and the slowest of all.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import toolparse_lab as tp
from toolparse_lab.core.toolspec import tool_specs

TOOL: dict[str, object] = {
    "name": "book",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}
MOST, DOUBLE = 2.0, 2.3
PIECE = 64  # characters of a piece


def signs_of(protocol: tp.Protocol) -> Iterator[tuple[str, str]]:
    """What is repeated: (name, text)."""
    tools = tool_specs([TOOL])
    envelope = protocol.envelope
    heads = [h for h in envelope.heads({tool.name: tool for tool in tools}) if h.strip()] or ["{"]
    for n, head in enumerate(heads[:2]):
        yield f"opener {n}", head
        yield f"opener {n} and quote", head + '"'
    for closer in list(envelope.closers)[:1]:
        yield "closer", closer
    yield from (
        ("quote", '"'),
        ("backslash", "\\"),
        ("fence", "```"),
        ("name", "book"),
        ("fence line", "```\n"),
    )
    yield from (
        ("reasoning", "<think>"),
        ("end of reasoning", "</think>"),
        ("brace", "{"),
        ("bracket", "["),
    )


def seconds(text: str, protocol: str, tools: list[dict[str, object]], in_pieces: bool) -> float:
    began = time.process_time()
    if in_pieces:
        parser = tp.stream(protocol, tools)
        for at in range(0, len(text), PIECE):
            parser.feed(text[at : at + PIECE])
        parser.close()
    else:
        tp.parse(text, protocol, tools)
    return time.process_time() - began


def measured(text: str, name: str, in_pieces: bool) -> tuple[float, float, bool]:
    """Microseconds a character, what twice the text costs, and whether one of them is too much.

    What is too much is measured again, because a busy machine takes longer at any moment.
    """
    size = len(text)
    first = seconds(text[: size // 8], name, [TOOL], in_pieces)
    if first > size / 8 * 1e-6 * 100:  # it will not end today
        return first / (size / 8) * 1e6, float("nan"), True
    half = whole = float("inf")
    for _ in range(6):
        half = min(half, seconds(text[: size // 2], name, [TOOL], in_pieces))
        whole = min(whole, seconds(text, name, [TOOL], in_pieces))
        cost, double = whole / size * 1e6, whole / max(half, 1e-4)
        is_bad = cost > MOST or (double > DOUBLE and cost > 0.2)
        if not is_bad:
            break
    return cost, double, is_bad


def main(size: int, chosen: list[str]) -> int:
    bad = 0
    slowest = (0.0, "")
    print("| format | repeated | | µs a character | twice the text |")
    print("|---|---|---|--:|--:|")
    rows = 0
    for name in chosen or [*sorted(tp.protocols()), "auto"]:
        protocol = tp.protocols().get(name) or tp.protocols()["hermes"]
        seconds("warm <tool_call> {}", name, [TOOL], False)
        for kind, sign in signs_of(protocol):
            for in_pieces in (False, True):
                whole = (sign * (size // len(sign) + 1))[:size]
                cost, double, is_bad = measured(whole, name, in_pieces)
                rows += 1
                slowest = max(slowest, (cost, f"{name}, {kind}"))
                if is_bad:
                    bad += 1
                    how = "in pieces" if in_pieces else "whole"
                    print(
                        f"| {name} | {kind} {sign!r:.40} | {how} | {cost:.1f} | {double:.2f} |",
                        flush=True,
                    )
    print(
        f"signs repeated in every format, whole and in pieces, {size:,} characters | {rows} "
        f"| {bad} beyond {MOST:g} µs a character or {DOUBLE} times for twice the text; "
        f"slowest {slowest[1]} | {slowest[0]:.1f} µs a character | "
    )
    return bad


if __name__ == "__main__":
    given = sys.argv[1:]
    sys.exit(bool(main(int(given[0]) if given else 100_000, given[1:])))
