"""Where the parts of somebody else's parser stand in the raw text.

A foreign parser says texts and calls, in order, and no positions. Its texts are looked for in raw, and what lies
between them belongs to the calls said between them; the pieces its own `extract_tool_call_segments` names, where it has
one, say it more exactly. Nothing is lost: characters that no part accounts for are markup, with a problem that says so.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from .types import Problem, SegmentKind, Span

_AHEAD = 8  # named texts looked through for a call's name, where there are more or fewer of them than calls


@dataclass(frozen=True, slots=True)
class Said:
    """One part: a text, reasoning, or a call with its name and its input as it was handed over."""

    kind: Literal["text", "reasoning", "call"]
    text: str = ""
    name: str = ""
    input: Any = None
    id: str = ""


@dataclass(slots=True)
class Piece:
    """A piece of raw and the calls that were read from it."""

    kind: SegmentKind
    start: int
    end: int
    calls: list[Said] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Placed:
    pieces: list[Piece]
    problems: list[Problem]
    homeless: list[Said]
    """Calls for which raw has no character at all."""


def place(raw: str, said: Sequence[Said], named: Sequence[str]) -> Placed:
    """The pieces that partition `raw`, with the calls they hold. named: what the parser says its calls' texts are."""
    problems: list[Problem] = []
    spans = _find_named(raw, named, problems)
    pieces: list[Piece] = []
    cursor = 0
    pending: list[Said] = []
    unplaced = False
    missing: set[str] = set()
    for i, part in enumerate(said):
        if part.kind == "call":
            pending.append(part)
            continue
        if not part.text:
            continue
        last = i == len(said) - 1
        at = None if part.text in missing else _find_text(raw, part.text, cursor, pending, spans, last=last)
        if at is None:
            unplaced = True
            missing.add(part.text)
            problems.append(
                _problem("foreign.text-not-in-raw", f"{_short(part.text)} does not stand in the text", None)
            )
            continue
        end = at + len(part.text)
        if pending and not spans and part.text in raw[at + 1 : end + len(part.text) + 64]:
            message = f"{_short(part.text)} stands behind the call more than once; the first place was taken"
            problems.append(_problem("foreign.ambiguous-place", message, Span(at, end), "info"))
        _fill(raw, cursor, at, pending, unplaced, spans, pieces, problems)
        pieces.append(Piece("reasoning" if part.kind == "reasoning" else "text", at, end))
        cursor, pending, unplaced = end, [], False
    _fill(raw, cursor, len(raw), pending, unplaced, spans, pieces, problems)
    homeless = _house(pieces, problems)
    return Placed(_joined(pieces), problems, homeless)


def _find_named(raw: str, named: Sequence[str], problems: list[Problem]) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    cursor = 0
    for text in named:
        at = raw.find(text, cursor) if text else -1
        if at < 0:
            message = f"the call's text {_short(text)} does not stand in the text"
            problems.append(_problem("foreign.text-not-in-raw", message, None))
            continue
        cursor = at + len(text)
        spans.append((at, cursor))
    return spans


def _find_text(
    raw: str, text: str, cursor: int, pending: Sequence[Said], spans: Sequence[tuple[int, int]], *, last: bool
) -> int | None:
    if not pending and raw.startswith(text, cursor):
        return cursor
    if last and raw.endswith(text) and len(raw) - len(text) >= cursor:
        return len(raw) - len(text)
    start = cursor
    for call in pending:  # a text behind a call stands behind the call's name
        named = raw.find(call.name, start)
        if named < 0:
            break
        start = named + len(call.name)
    for begin in (start, cursor):
        at = _outside(raw, text, begin, spans)
        if at is not None:
            return at
    return None


def _outside(raw: str, text: str, start: int, spans: Sequence[tuple[int, int]]) -> int | None:
    """The first place of `text` that does not cut into a call's own text."""
    at = raw.find(text, start)
    while at >= 0:
        end = at + len(text)
        cut = _cut(spans, at, end)
        if cut is None:
            return at
        at = raw.find(text, max(at + 1, cut[1] if at > cut[0] else at + 1))
    return None


def _cut(spans: Sequence[tuple[int, int]], start: int, end: int) -> tuple[int, int] | None:
    """The call's own text that the range cuts into: spans are in order, so only the outermost can be cut."""
    first = bisect_right(spans, start, key=lambda s: s[1])
    last = bisect_left(spans, end, key=lambda s: s[0]) - 1
    for i in (first, last):
        if 0 <= i < len(spans):
            a, b = spans[i]
            if a < end and start < b and not (start <= a and b <= end):
                return spans[i]
    return None


def _fill(
    raw: str, start: int, end: int, calls: list[Said], unplaced: bool, spans: Sequence[tuple[int, int]],
    pieces: list[Piece], problems: list[Problem],
) -> None:  # fmt: skip
    """The pieces of a gap between two texts."""
    if not calls:
        _between(raw, start, end, unplaced, pieces, problems)
        return
    low = bisect_left(spans, start, key=lambda s: s[0])
    inside = list(spans[low : bisect_right(spans, end, lo=low, key=lambda s: s[1])])
    if not inside:
        gap = raw[start:end]
        inside = [(start + len(gap) - len(gap.lstrip()), start + len(gap.rstrip()))] if gap.strip() else []
    shares = _share(raw, calls, inside)
    at = start
    for (a, b), share in zip(inside, shares, strict=True):
        _between(raw, at, a, unplaced, pieces, problems)
        if share:
            pieces.append(Piece("call", a, b, share))
        else:
            _between(raw, a, b, unplaced, pieces, problems)
        at = b
    _between(raw, at, end, unplaced, pieces, problems)
    if not inside:
        pieces.append(Piece("call", at, at, calls))


def _share(raw: str, calls: list[Said], spans: list[tuple[int, int]]) -> list[list[Said]]:
    """The calls of each span: one each where there are as many, else by the names that stand in them."""
    if len(calls) == len(spans):
        return [[c] for c in calls]
    shares: list[list[Said]] = [[] for _ in spans]
    k = 0
    for call in calls if spans else ():
        named = next((i for i in range(k, min(len(spans), k + _AHEAD)) if call.name in raw[slice(*spans[i])]), k)
        shares[named].append(call)
        k = named
    return shares


def _between(raw: str, start: int, end: int, unplaced: bool, pieces: list[Piece], problems: list[Problem]) -> None:
    """Characters that no part accounts for: white space is text, and so is what a text was made from."""
    if start >= end:
        return
    if unplaced or not raw[start:end].strip():
        pieces.append(Piece("text", start, end))
        return
    pieces.append(Piece("markup", start, end))
    message = f"no part accounts for {_short(raw[start:end])}"
    problems.append(_problem("foreign.dropped-text", message, Span(start, end)))


def _house(pieces: list[Piece], problems: list[Problem]) -> list[Said]:
    """Calls without a character of their own go with the piece before them, or else behind."""
    homeless: list[Said] = []
    first = next((p for p in pieces if p.end > p.start), None)
    before: Piece | None = None
    for piece in pieces:
        if piece.end > piece.start:
            before = piece
        if not piece.calls or piece.end > piece.start:
            continue
        near = before or first
        if near is None:
            homeless.extend(piece.calls)
        else:
            message = (
                f"{_short(piece.calls[0].name)} has no characters of its own; it is shown on what stands next to it"
            )
            problems.append(_problem("foreign.no-place", message, Span(near.start, near.end)))
            near.kind = "call"
            near.calls.extend(piece.calls)
        piece.calls = []
    return homeless


def _joined(pieces: list[Piece]) -> list[Piece]:
    """Without empty pieces, neighbouring texts as one."""
    out: list[Piece] = []
    for piece in pieces:
        if piece.start == piece.end:
            continue
        if out and out[-1].kind == piece.kind == "text":
            out[-1] = Piece("text", out[-1].start, piece.end)
        else:
            out.append(piece)
    return out


def _problem(code: str, message: str, span: Span | None, severity: Literal["warning", "info"] = "warning") -> Problem:
    return Problem("scan", code, severity, message, "", span)


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")
