"""`detect`: which formats a text may be in, best first. Every format reads it, and what it read is the evidence."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from .api import parse
from .registry import protocols
from .toolspec import tool_specs
from .types import ParseOptions, ParseResult, Span, ToolCall

_OWN = ParseOptions(recover=False)
# How much an attempt says for its format, by the worst call in it.
_READ, _BROKEN_SCHEMA, _UNKNOWN_TOOL, _CUT_OFF, _UNREADABLE = 1.0, 0.8, 0.6, 0.5, 0.1
_PER_REPAIR = 0.05
_OTHER_FORM = 0.1
_OUTSIDE = 0.4
# Status -> what is said of one such call and of several.
_SAID = {
    "ok": ("call was read", "calls were read"),
    "unknown_tool": ("call names an unknown tool", "calls name unknown tools"),
    "truncated": ("attempt was cut off", "attempts were cut off"),
    "undecodable": ("attempt could not be read", "attempts could not be read"),
}


@dataclass(frozen=True, slots=True)
class Candidate:
    """One format a text may be in.

    protocol: its id; 'auto' for calls that stand in no format's delimiters. score: from 0 to 1, the mean of its
    attempts, 1 where each is a whole call that needed no repair. It ranks formats for one text and is no probability.
    spans: the attempts, in code points of the text. why: the evidence in one sentence.
    """

    protocol: str
    score: float
    spans: tuple[Span, ...]
    why: str

    def __str__(self) -> str:
        return f"{self.protocol} {self.score:.2f}: {self.why}"


def detect(raw: Any, tools: Any = None) -> tuple[Candidate, ...]:
    """The formats that find an attempt at a call in a text, the likeliest first; empty where none does.

    raw, tools: as for `parse`. Formats without delimiters of their own are recognised by the tools' names, so pass
    the tools where they are known. Raises what `parse` raises.

    >>> text = '<tool_call>{"name": "f", "arguments": {"a": 1,}}</tool_call>'
    >>> for candidate in detect(text):
    ...     print(candidate)
    hermes 0.95: 1 call was read, with 1 repair.
    qwen3_coder_xml 0.85: 1 call was read, with 1 repair; 1 not in the format's own form.
    """
    specs = tool_specs(tools)
    loose = parse(raw, "auto", specs)  # it says also what the text of a response object is
    found = [c for p in protocols().values() for c in _judged(parse(loose.raw, p, specs, _OWN), p.id, 1.0, "")]
    found = found or _judged(loose, "auto", _OUTSIDE, " outside every format's delimiters")
    # Ties go to the format that accounts for more of the text, then to the order of `protocols()`.
    return tuple(c for c, _ in sorted(found, key=lambda f: (-f[0].score, -f[1])))


def _judged(result: ParseResult, protocol: str, most: float, where: str) -> list[tuple[Candidate, int]]:
    attempts: dict[int, list[ToolCall]] = {}
    for call in result.calls:
        attempts.setdefault(call.segment_index, []).append(call)
    if not attempts:
        return []
    scores = [min(map(_worth, calls)) for calls in attempts.values()]
    spans = tuple(result.segments[i].span for i in attempts)
    covered = sum(s.end - s.start for s in spans)
    why = _why([c for calls in attempts.values() for c in calls], where)
    score = round(most * sum(scores) / len(scores), 4)
    return [(Candidate(protocol, score, spans, why), covered)]


def _worth(call: ToolCall) -> float:
    if call.status == "ok":
        worth = _READ if call.valid else _BROKEN_SCHEMA
    elif call.status == "unknown_tool":
        worth = _UNKNOWN_TOOL
    else:
        return _CUT_OFF if call.status == "truncated" else _UNREADABLE
    return max(worth - _OTHER_FORM * _in_other_form(call) - _PER_REPAIR * len(call.edits), _UNREADABLE)


def _in_other_form(call: ToolCall) -> bool:
    """Whether the body was read in another way than its format's own: a step of reading at the root says so."""
    return any(s.stage == "read" and not s.path for s in call.steps)


def _why(calls: list[ToolCall], where: str) -> str:
    """`2 calls were read, 1 attempt was cut off, with 3 repairs; 1 not as the schema says.`"""
    by_status: Counter[str] = Counter("undecodable" if c.status == "draft" else c.status for c in calls)
    said = []
    for status, (one, many) in _SAID.items():
        if n := by_status[status]:
            said.append((f"1 {one}" if n == 1 else f"{n} {many}") + (where if status == "ok" else ""))
    edits = sum(len(c.edits) for c in calls)
    if edits:
        said.append(f"with {edits} repair" + ("" if edits == 1 else "s"))
    broken = sum(c.status == "ok" and not c.valid for c in calls)
    other = sum(map(_in_other_form, calls))
    parts = [", ".join(said)]
    if broken:
        parts.append(f"{broken} not as the schema says")
    if other:
        parts.append(f"{other} not in the format's own form")
    return "; ".join(parts) + "."
