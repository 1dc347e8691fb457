"""Finds the places in the raw text where the parts of another's parser belong."""

# How it works
# ------------
# A foreign parser gives texts and calls, in order, and no positions. Its texts are looked for in
# raw, and what lies between two of them belongs to the calls between them; the pieces that its own
# `extract_tool_call_segments` names, where it has one, divide that more exactly.
#
# State: a cursor in raw behind the last text that was placed, and the calls that came since
# (`pending`). A text is looked for behind the cursor, and behind the names of the pending calls.
#
# Invariant: the pieces partition raw. Characters that no part accounts for are markup, with a
# problem that says so; a part without characters goes with its neighbour.
#
# Cost: a text that is not there costs a search of the rest, once (`missing`).

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ...core.types import Problem, SegmentKind, Span

# calls' own texts looked through for a name, where there are more or fewer of them than calls
_AHEAD = 8
_NEAR = 64  # characters behind a text in which a second place of it makes the first doubtful


@dataclass(frozen=True, slots=True)
class TheirPart:
    """One part of theirs: a text, reasoning, or a call with its name and its input as it came."""

    kind: Literal["text", "reasoning", "call"]
    text: str = ""
    name: str = ""
    input: Any = None
    id: str = ""


@dataclass(slots=True)
class Piece:
    """A piece of raw and the calls read from it."""

    kind: SegmentKind
    start: int
    end: int
    calls: list[TheirPart] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Placement:
    """The pieces of raw, and the fault with the parts."""

    pieces: list[Piece]
    problems: list[Problem]
    homeless: list[TheirPart]
    """Calls for which raw has no character at all."""


def place(raw: str, parts: Sequence[TheirPart], call_texts: Sequence[str]) -> Placement:
    """Cut `raw` into pieces with the calls they hold.

    parts: in order. call_texts: the texts that the parser names as its calls' texts, in order. May
        be empty.
    """
    problems: list[Problem] = []
    spans = _find_call_texts(raw, call_texts, problems)
    gaps = _Gaps(raw, spans, problems)
    missing: set[str] = set()

    for i, part in enumerate(parts):
        if part.kind == "call":
            gaps.pending.append(part)
            continue
        if not part.text:
            continue
        last = i == len(parts) - 1
        at = None
        if part.text not in missing:
            at = _find_text(raw, part.text, gaps.cursor, gaps.pending, spans, last=last)
        if at is None:
            gaps.unplaced = True
            missing.add(part.text)
            message = f"{_short(part.text)} does not stand in the text"
            problems.append(_problem("foreign.text-not-in-raw", message, None))
            continue
        if gaps.pending and not spans:
            problems.extend(_other_place(raw, part.text, at))
        gaps.fill(at)
        gaps.pieces.append(
            Piece("reasoning" if part.kind == "reasoning" else "text", at, at + len(part.text))
        )
        gaps.cursor = at + len(part.text)

    gaps.fill(len(raw))
    homeless = _house(gaps.pieces, problems)
    return Placement(_joined(gaps.pieces), problems, homeless)


def _other_place(raw: str, text: str, at: int) -> list[Problem]:
    """Return a note where a text placed at `at` stands once more shortly behind it: a call's own
    text may hold it, too.
    """
    end = at + len(text)
    if text not in raw[at + 1 : end + len(text) + _NEAR]:
        return []
    message = f"{_short(text)} stands behind the call more than once; the first place was taken"
    return [_problem("foreign.ambiguous-place", message, Span(at, end), "info")]


def _find_call_texts(
    raw: str, call_texts: Sequence[str], problems: list[Problem]
) -> list[tuple[int, int]]:
    """Return the places of the texts that the parser names, in order.

    Adds a problem for each that is not there.
    """
    spans: list[tuple[int, int]] = []
    cursor = 0

    for text in call_texts:
        at = raw.find(text, cursor) if text else -1
        if at < 0:
            message = f"the call's text {_short(text)} does not stand in the text"
            problems.append(_problem("foreign.text-not-in-raw", message, None))
            continue
        cursor = at + len(text)
        spans.append((at, cursor))

    return spans


def _find_text(
    raw: str,
    text: str,
    cursor: int,
    pending: Sequence[TheirPart],
    spans: Sequence[tuple[int, int]],
    *,
    last: bool,
) -> int | None:
    """Return the offset of a text behind `cursor`, or None if it is not there.

    pending: the calls before it. spans: the calls' own texts. last: it is the last part.

    The last part is looked for at the end first: the end of the text is most likely there.
    """
    if not pending and raw.startswith(text, cursor):
        return cursor
    if last and raw.endswith(text) and len(raw) - len(text) >= cursor:
        return len(raw) - len(text)
    # A text behind a call stands behind the call's name, if the name is written out.
    start = cursor

    for call in pending:
        name_at = raw.find(call.name, start)
        if name_at < 0:
            break
        start = name_at + len(call.name)

    at = _outside(raw, text, start, spans)
    return at if at is not None else _outside(raw, text, cursor, spans)


def _outside(raw: str, text: str, start: int, spans: Sequence[tuple[int, int]]) -> int | None:
    """Return the first place of `text` that does not cut into a call's own text.

    Goes on behind a call's text that it cuts.
    """
    at = raw.find(text, start)
    while at >= 0:
        end = at + len(text)
        cut = _cut(spans, at, end)
        if cut is None:
            return at
        # Inside a call's text no place can be right, so the search goes on behind it.
        behind = cut[1] if at > cut[0] else at + 1
        at = raw.find(text, max(at + 1, behind))

    return None


def _cut(spans: Sequence[tuple[int, int]], start: int, end: int) -> tuple[int, int] | None:
    """Return the call's own text that a range cuts into, or None if there is none.

    A range that holds the whole of one does not cut it. Spans are in order, so only the first and
    the last that the range touches can be cut.

    start, end: the range, in raw. spans: the calls' own texts.
    """
    first = bisect_right(spans, start, key=lambda s: s[1])
    last = bisect_left(spans, end, key=lambda s: s[0]) - 1
    for i in (first, last):
        if 0 <= i < len(spans):
            a, b = spans[i]
            if a < end and start < b and not (start <= a and b <= end):
                return spans[i]
    return None


class _Gaps:
    """Fills the gap between two texts. spans: the calls' own texts, in order."""

    __slots__ = ("_problems", "_raw", "_spans", "cursor", "pending", "pieces", "unplaced")

    def __init__(self, raw: str, spans: Sequence[tuple[int, int]], problems: list[Problem]) -> None:
        """Begin at the start of `raw`. `problems` takes those that come up."""
        self._raw = raw
        self._spans = spans
        self._problems = problems
        self.pieces: list[Piece] = []
        self.cursor = 0  # behind the last piece
        self.pending: list[TheirPart] = []  # calls that came since
        self.unplaced = False  # a text came since that is not in raw

    def fill(self, end: int) -> None:
        """Make pieces of the gap up to `end`, for the calls that are pending."""
        if self.pending:
            self._fill_with_calls(end)
        else:
            self._between(self.cursor, end)
        self.pending = []
        self.unplaced = False

    def _fill_with_calls(self, end: int) -> None:
        """Divide a gap among the pending calls.

        A gap without text makes an empty piece of them.
        """
        inside = self._call_spans(end)
        shares = _share(self._raw, self.pending, inside)
        at = self.cursor

        for (first, behind), calls in zip(inside, shares, strict=True):
            self._between(at, first)
            if calls:
                self.pieces.append(Piece("call", first, behind, calls))
            else:
                self._between(first, behind)
            at = behind

        self._between(at, end)
        if not inside:
            self.pieces.append(Piece("call", at, at, self.pending))

    def _call_spans(self, end: int) -> list[tuple[int, int]]:
        """Return the calls' own texts in a gap.

        Where none is known, all of it but white space around.
        """
        low = bisect_left(self._spans, self.cursor, key=lambda s: s[0])
        high = bisect_right(self._spans, end, lo=low, key=lambda s: s[1])
        if high > low:
            return list(self._spans[low:high])
        gap = self._raw[self.cursor : end]
        if not gap.strip():
            return []
        start = self.cursor
        return [(start + len(gap) - len(gap.lstrip()), start + len(gap.rstrip()))]

    def _between(self, start: int, end: int) -> None:
        """Add characters that no part accounts for.

        White space is text, and so is the source of a text that is not in raw as it is.

        Anything dropped like this is a problem of severity warning: their parser may have had
        reasons.
        """
        if start >= end:
            return
        text = self._raw[start:end]
        if self.unplaced or not text.strip():
            self.pieces.append(Piece("text", start, end))
            return
        self.pieces.append(Piece("markup", start, end))
        message = f"no part accounts for {_short(text)}"
        self._problems.append(_problem("foreign.dropped-text", message, Span(start, end)))


def _share(raw: str, calls: list[TheirPart], spans: list[tuple[int, int]]) -> list[list[TheirPart]]:
    """Return the calls of each span: one each where there are as many, else by the names that stand
    in them.

    Calls are in order, and so are spans: a call never belongs to a span before that of the call
    before it.
    """
    if len(calls) == len(spans):
        return [[call] for call in calls]
    shares: list[list[TheirPart]] = [[] for _ in spans]
    if not spans:
        return shares
    current = 0
    for call in calls:
        current = _span_with_name(raw, call.name, spans, current)
        shares[current].append(call)
    return shares


def _span_with_name(raw: str, name: str, spans: list[tuple[int, int]], first: int) -> int:
    """Return the index of the next span, from `first` on, that holds a name, or `first` if none
    does.

    Looks only a few spans ahead, so that many calls stay linear.
    """
    for i in range(first, min(len(spans), first + _AHEAD)):
        start, end = spans[i]
        if name in raw[start:end]:
            return i
    return first


def _house(pieces: list[Piece], problems: list[Problem]) -> list[TheirPart]:
    """Give calls without a character of their own to the piece before them, or else behind.

    Returns those for which there is no piece at all.

    pieces: changed in place. A text with such a call becomes a call's piece.
    """
    homeless: list[TheirPart] = []
    first = next((p for p in pieces if p.end > p.start), None)
    before: Piece | None = None

    for piece in pieces:
        if piece.end > piece.start:
            before = piece
            continue
        if not piece.calls:
            continue
        near = before or first
        if near is None:
            homeless.extend(piece.calls)
        else:
            problems.append(_no_place(piece.calls[0], near))
            near.kind = "call"
            near.calls.extend(piece.calls)
        piece.calls = []

    return homeless


def _no_place(call: TheirPart, near: Piece) -> Problem:
    """Return the problem of a call without characters, which appears on a piece near it."""
    message = (
        f"{_short(call.name)} has no characters of its own; it is shown on what stands next to it"
    )
    return _problem("foreign.no-place", message, Span(near.start, near.end))


def _joined(pieces: list[Piece]) -> list[Piece]:
    """Without empty pieces, neighbouring texts as one.

    A text may come in several parts, and white space between two of them.
    """
    out: list[Piece] = []
    for piece in pieces:
        if piece.start == piece.end:
            continue
        if out and out[-1].kind == piece.kind == "text":
            out[-1] = Piece("text", out[-1].start, piece.end)
        else:
            out.append(piece)

    return out


def _problem(
    code: str, message: str, span: Span | None, severity: Literal["warning", "info"] = "warning"
) -> Problem:
    """Return a complaint about where parts stand."""
    return Problem("scan", code, severity, message, "", span)


def _short(text: str) -> str:
    """Return a text for a message, in quotes, its end left out where it is long.

    At most 40 characters.
    """
    return repr(text if len(text) <= 40 else text[:37] + "...")
