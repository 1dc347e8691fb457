"""Calls without delimiters: which recogniser looks at which text."""

from __future__ import annotations

from dataclasses import replace

from ...core.types import Problem, Segment, ToolCall
from ...formats.base import NEED_MORE, NeedMore
from ...formats.turns import TURN_ENDS
from ..resolve import Body, Resolver
from .bare_calls import BareCalls, FencedCalls, NameHeads, NameLine
from .held import Held, count_ticks
from .python_calls import PythonCalls

_MARKS_AROUND = "`\"'"  # of a span of code or a string that may be the whole answer
CONFIDENCE = 0.8  # of a recovered call; one in its own format has 1.0


def _ends_answer(text: str, run: int) -> bool | None:
    # Nothing is after a run of backticks but a token that ends the turn. False where such a token
    # is not whole yet, None for any other text.
    if len(text) < run and not text.strip("`"):
        return False
    rest = text.removeprefix("`" * run).lstrip()
    if rest in ("", *TURN_ENDS):
        return not text.startswith("`" * (run + 1))
    return False if any(token.startswith(rest) for token in TURN_ENDS) else None


class Recovery:
    """The recognisers of one parser. Each keeps the candidate that it holds back at the moment."""

    def __init__(
        self,
        resolver: Resolver,
        heads: tuple[str, ...],
        names: NameHeads,
        python_starts: frozenset[str],
    ) -> None:
        self._resolver = resolver
        self._heads = heads
        self._bare = BareCalls(resolver, heads)
        self._fenced = FencedCalls(resolver, heads)
        self._named = NameLine(resolver, heads, names)
        self._name_starts = names.starts
        self.python = PythonCalls(resolver, heads)
        self._python_starts = python_starts

    def judge(
        self, text: str, final: bool, at: int, first: bool, again: bool = False
    ) -> Held | NeedMore | None:
        """Judge a line that may be a JSON value, a tool's name alone, or Python's calls.

        again: a call is right before it, so that the format's closer may follow a list.
        """
        char = text[0]
        if first and char in _MARKS_AROUND:
            return self._in_marks(text, final, at)
        if char in ("{", "["):
            outcome = self._bare.judge(text, final, at, first, again and char == "[")
            # Where the format is bare JSON, words after a value leave it to the format itself.
            if char in self._heads and isinstance(outcome, Held) and not outcome.alone:
                return None
            if outcome is not None:
                return outcome
        # No name of a tool begins like most texts, and one look says so.
        if char in self._name_starts:
            outcome = self._named.judge(text, final, at, first)
            if outcome is not None:
                return outcome
        if char not in self._python_starts:
            return None
        return self.python.judge(text, final, at, first, again=again and char == "[")

    def judge_fence(self, text: str, final: bool, at: int, first: bool) -> Held | NeedMore | None:
        """Judge a code fence that may contain nothing but a known tool's calls."""
        outcome = self._fenced.judge(text, final, at, first)
        if outcome is None and self._python_starts:
            outcome = self.python.judge_fence(text, final, at, first)
        return outcome

    def _in_marks(self, text: str, final: bool, at: int) -> Held | NeedMore | None:
        # An answer that is one span of code, or one string, as a whole.
        if text[0] != "`":
            return self.python.judge_quoted(text, final, at)
        run = count_ticks(text)
        if run > 2 or run == len(text):
            return NEED_MORE if run <= 2 and not final else None
        end = text.find("`", run)
        inner = text[run:] if end < 0 else text[run:end]
        if not inner or inner[0] in _MARKS_AROUND:
            return None
        if end < 0:
            return None if final or self.judge(inner, False, at + run, True) is None else NEED_MORE
        ends = _ends_answer(text[end:].rstrip(), run)
        if ends is None or not final:
            return None if ends is None else NEED_MORE
        outcome = self.judge(inner, True, at + run, True) if ends else None
        if not isinstance(outcome, Held) or outcome.body is None or outcome.end < len(inner):
            return None
        return replace(outcome, end=end + run)

    def calls(
        self, outcome: Held, start: int, segment: Segment, segment_index: int, index: int
    ) -> tuple[ToolCall, ...]:
        """Return the calls of a Held whose body begins at `start` in raw, with a warning each."""
        body = Body(outcome.text, start, segment.span.start, outcome.closed, "end")
        calls = self._resolver.calls(outcome.decoded, body, segment, segment_index, index)
        message = "the call stood outside its format"
        note = Problem("scan", "call.recovered", "warning", message, "", segment.span)
        return tuple(replace(c, confidence=CONFIDENCE, problems=(note, *c.problems)) for c in calls)
