"""`detect`: which formats a text may be in, best first.

Every format reads it, and its reading is the evidence.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from ..core.toolspec import ToolsLike, ToolSpec, tool_specs
from ..core.types import (
    ParseOptions,
    ParseResult,
    RawLike,
    Span,
    ToolCall,
    calls_by_segment,
    is_held_back,
)
from ..formats.registry import protocol_of, protocols
from .parse import parse

# A call outside every format's delimiters is no evidence for one of them.
_OWN = ParseOptions(recover=False)
# The model's thoughts as text like any other: calls in them are drafts, yet of some format.
_THOUGHTS = ParseOptions(recover=False, reasoning="none")
# How much an attempt says for its format, by the worst call in it.
_READ, _BROKEN_SCHEMA, _UNKNOWN_TOOL, _CUT_OFF, _UNREADABLE = 1.0, 0.8, 0.6, 0.5, 0.1
_PER_REPAIR = 0.05
_OTHER_FORM = 0.1
_OUTSIDE = 0.4
_IN_THOUGHTS = 0.4
# Status -> the words for one such call and for several.
_WORDS = {
    "ok": ("call was read", "calls were read"),
    "unknown_tool": ("call names an unknown tool", "calls name unknown tools"),
    "truncated": ("attempt was cut off", "attempts were cut off"),
    "undecodable": ("attempt could not be read", "attempts could not be read"),
}


@dataclass(frozen=True, slots=True)
class Candidate:
    """A possible format of an answer.

    Attributes:
        protocol: its id. 'auto' for calls outside the delimiters of any format.
        score: from 0 to 1, the mean over its attempts. 1: every attempt is a whole call without a
            repair. Use it to rank the formats of one answer; it is not a probability.
        spans: the attempts, in code points of the text.
        why: the evidence in one sentence.

    >>> import toolparse_lab as tp
    >>> text = '<tool_call>{"name": "f", "arguments": {"a": "1",}}</tool_call>'
    >>> tp.detect(text)[0].protocol
    'hermes'
    """

    protocol: str
    score: float
    spans: tuple[Span, ...]
    why: str

    def __str__(self) -> str:
        """Return the guess in one line: protocol, score and reason."""
        return f"{self.protocol} {self.score:.2f}: {self.why}"


def detect(raw: RawLike, tools: ToolsLike = None) -> tuple[Candidate, ...]:
    """Return the possible formats of an answer, the most likely first.

    Empty if no format finds an attempt at a call.

    Args:
        raw, tools: as for `parse`. Formats without delimiters of their own are recognised by the
            tools' names, so pass the tools where they are known.

    Raises the errors of `parse`.

    >>> text = '<tool_call>{"name": "f", "arguments": {"a": 1,}}</tool_call>'
    >>> print(detect(text)[0])
    hermes 0.95: 1 call was read, with 1 repair.
    """
    specs = tool_specs(tools)
    loose = parse(raw, "auto", specs)  # also finds the text in a response object
    candidates = _candidates(loose.raw, specs, _OWN)
    if loose.reasoning and all(c.score <= _UNREADABLE for c, _ in candidates):
        thoughts = _candidates(loose.raw, specs, _THOUGHTS)
        if any(c.score > _UNREADABLE for c, _ in thoughts):
            where = "; inside the reasoning, which only reasoning='none' reads as an answer."
            return tuple(
                replace(one, score=round(one.score * _IN_THOUGHTS, 4), why=one.why[:-1] + where)
                for one in _outermost(thoughts)
            )
    if not candidates:
        candidates = _candidate(loose, "auto", _OUTSIDE, "; outside every format's delimiters")
    return _outermost(candidates)


def _outermost(candidates: list[tuple[Candidate, int]]) -> tuple[Candidate, ...]:
    # Ties go to the format that accounts for more of the text, then to the order of `protocols()`.
    candidates = sorted(candidates, key=lambda c: (-c[0].score, -c[1]))
    return tuple(
        one for one, _ in candidates if not any(_surrounds(other, one) for other, _ in candidates)
    )


def _candidates(
    raw: str, specs: tuple[ToolSpec, ...], options: ParseOptions
) -> list[tuple[Candidate, int]]:
    candidates: list[tuple[Candidate, int]] = []
    for protocol in protocols().values():
        result = parse(raw, protocol.among_others, specs, options)
        candidates += _candidate(result, protocol.id, 1.0, "")
    return candidates


def _surrounds(other: Candidate, one: Candidate) -> bool:
    # Each attempt of one format is the inside of a call that the other has read no worse: the
    # delimiters around it are the better evidence.
    if one is other:
        return False
    # Bare calls are inside of others even where the delimiters around them had to be repaired.
    is_bare = "undelimited" in protocol_of(one.protocol).tags
    least = _CUT_OFF if is_bare else max(one.score, _CUT_OFF)
    return other.score >= least and all(
        any(outer != span and outer.start <= span.start and span.end <= outer.end
            for outer in other.spans)
        for span in one.spans
    )  # fmt: skip


def _candidate(
    result: ParseResult, protocol: str, best: float, place: str
) -> list[tuple[Candidate, int]]:
    # The candidate that one format's reading makes, with the characters its attempts cover. best:
    # the score of attempts without fault. place: words after the evidence.
    # An attempt is a segment: calls of one body stand or fall together.
    attempts = calls_by_segment(c for c in result.calls if not is_held_back(c))
    if not attempts:
        return []
    scores = [min(map(_worth, calls)) for calls in attempts.values()]
    score = round(best * sum(scores) / len(scores), 4)
    spans = tuple(result.segments[i].span for i in attempts)
    calls = [call for group in attempts.values() for call in group]
    return [(Candidate(protocol, score, spans, _why(calls, place)), sum(map(len, spans)))]


def _worth(call: ToolCall) -> float:
    # 1 for a whole call that needed no repair.
    if call.status not in ("ok", "unknown_tool"):
        return _CUT_OFF if call.status == "truncated" else _UNREADABLE
    known = _READ if call.valid else _BROKEN_SCHEMA
    worth = known if call.status == "ok" else _UNKNOWN_TOOL
    penalty = _PER_REPAIR * len(call.edits)
    return max(worth - _OTHER_FORM * _in_other_form(call) - penalty, _UNREADABLE)


def _in_other_form(call: ToolCall) -> bool:
    # A step of reading at the root says that the body was read in another way than its format's
    # own: a format that reads another's bodies does not outrank it.
    return any(s.stage == "read" and not s.path for s in call.steps)


def _why(calls: list[ToolCall], place: str) -> str:
    # `2 calls were read, 1 attempt was cut off, with 3 repairs; 1 not as the schema says.`
    # A draft is a call under way; at the end of a text it could not be read.
    by_status: Counter[str] = Counter(
        "undecodable" if c.status == "draft" else c.status for c in calls
    )
    facts = [
        f"1 {one}" if n == 1 else f"{n} {many}"
        for status, (one, many) in _WORDS.items()
        if (n := by_status[status])
    ]
    edits = sum(len(c.edits) for c in calls)
    if edits:
        facts.append(f"with {edits} repair" + ("" if edits == 1 else "s"))
    sentence = ", ".join(facts)
    broken = sum(c.status == "ok" and not c.valid for c in calls)
    if broken:
        sentence += f"; {broken} not as the schema says"
    other = sum(map(_in_other_form, calls))
    if other:
        sentence += f"; {other} not in the format's own form"
    return f"{sentence}{place}."
