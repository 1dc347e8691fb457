"""`repair`: the lenient reader. What it changes it says as edits; what it cannot know it refuses."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

from ..types import Edit, Problem, Span
from ..values import Value, same
from .damage import Damage, Found, Refusal
from .positions import Doubled, EditMap, apply_edits, find_places
from .strict import Duplicate, Kept, read_around, read_if_strict, read_sequence, read_unique

_MAX_TRIES = 16  # starts tried in prose before the text is said to hold no JSON
_FENCE_OPEN = re.compile(r"```[ \t]*[\w+-]*[ \t]*\r?\n?")
_FENCE_CLOSE = re.compile(r"\s*```")
_START = re.compile(r"[{\[]")
_HEADLESS = re.compile(r"""\s*(?:"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')\s*:""")


@dataclass(frozen=True, slots=True)
class Repaired:
    """What `repair` found. `values` holds every top-level value, `value` the only one (None unless there is one).

    `ok` is False for text that is truncated, ambiguous or no JSON; then `values` is empty and `problems` says why.
    """

    values: tuple[Value, ...]
    edits: tuple[Edit, ...]
    problems: tuple[Problem, ...]

    @property
    def ok(self) -> bool:
        return not self.problems

    @property
    def value(self) -> Any:
        return self.values[0] if len(self.values) == 1 else None


def repair(text: str, *, max_depth: int = 1000) -> Repaired:
    """Reads damaged JSON. Never raises on account of `text`, never invents a value.

    >>> repair("{'port': 'Bergen', 'dry': True,}").value
    {'port': 'Bergen', 'dry': True}
    >>> repair('{"days": 1').ok
    False
    """
    try:
        values, edits = read_damaged(text, closed=True, numbers_end=False, prose=True, max_depth=max_depth)
    except Refusal as no:
        span = Span(min(no.position, len(text)), min(no.position + 1, len(text)))
        return Repaired((), (), (Problem("repair", no.code, "error", no.message, "", span),))
    return Repaired(tuple(values), tuple(edits), ())


def read_damaged(
    text: str, *, closed: bool, numbers_end: bool, prose: bool, max_depth: int
) -> tuple[list[Value], list[Edit]]:
    """The top-level values of `text` and the edits that make it strict JSON; raises Refusal.

    closed: the text is known to be whole, so brackets missing at its end may be added. numbers_end: and a number at
    the very end is whole. prose: words around the value may be dropped.
    """
    strict = read_if_strict(text, max_depth)
    if strict is not None:
        return strict, []
    damage = Damage(text, closed=closed, numbers_end=numbers_end, max_depth=max_depth)
    found = _find_all(damage, prose=prose)
    if not found:
        raise Refusal("decode.json", "there is no JSON in this text", 0)
    edits = sorted(damage.edits, key=lambda e: (e.span.start, e.span.end))
    return _load(text, edits, damage.clean.kept)


def _load(text: str, edits: list[Edit], whole: list[Kept]) -> tuple[list[Value], list[Edit]]:
    """The values of the edited text. Doubled keys with equal values become edits, others a Refusal."""
    if whole:
        try:
            return read_around(text, edits, whole), edits
        except ValueError:
            pass  # read whole, so that what is said of the text does not depend on what was kept
    edited = apply_edits(text, edits)
    try:
        return read_sequence(edited), edits
    except Duplicate:
        pass
    except ValueError as e:  # the walk accepted what the strict reader does not: refuse, never guess
        raise Refusal("decode.json", f"not JSON after repair: {e}", 0) from None
    back = EditMap(edits)
    extra = [_drop_double(back, d) for d in _doubles(edited)]
    starts = [x.span.start for x in extra]
    kept = list(extra)
    for edit in edits:  # edits inside a dropped member go with it
        i = bisect_right(starts, edit.span.start) - 1
        if i < 0 or not extra[i].span.covers(edit.span):
            kept.append(edit)
    kept.sort(key=lambda x: (x.span.start, x.span.end))
    try:
        return read_sequence(apply_edits(text, kept)), kept
    except ValueError as e:
        raise Refusal("decode.duplicate-key", f"a key stands twice: {e}", 0) from None


def _doubles(edited: str) -> list[Doubled]:
    places = find_places(edited)
    for d in places.doubled:
        a, b = edited[slice(*d.first)], edited[slice(*d.again)]
        if a != b and not _equal_texts(a, b):
            key = d.path.rpartition("/")[2]
            raise Refusal("decode.duplicate-key", f"the key {key!r} stands twice with different values", d.again[0])
    outer: list[Doubled] = []
    for d in sorted(places.doubled, key=lambda d: (d.start, -d.end)):  # they lie inside or apart from each other
        if not outer or d.end > outer[-1].end:
            outer.append(d)
    return outer


def _equal_texts(a: str, b: str) -> bool:
    try:
        return same(read_unique(a), read_unique(b))
    except ValueError:
        return False


def _drop_double(back: EditMap, d: Doubled) -> Edit:
    start, end = back.raw_span(d.start, d.end)
    return Edit(Span(start, end), "", "rjson.equal-duplicate-key")


def _find_all(damage: Damage, *, prose: bool) -> list[Found]:
    """Every top-level value; what stands between them becomes edits. Raises Refusal."""
    text = damage.text
    found: list[Found] = []
    pos = damage.skip(0)
    tries = 0
    while pos < damage.size:
        start = pos
        fence = _FENCE_OPEN.match(text, pos) if text.startswith("```", pos) else None
        if fence:
            damage.edit(pos, fence.end(), "", "rjson.fence")
            pos = damage.skip(fence.end())
            if pos < damage.size and not text.startswith("```", pos):
                start, pos = _one(damage, pos)
                found.append(Found(start, pos))
            close = _FENCE_CLOSE.match(text, pos)
            if close:
                damage.edit(pos, close.end(), "", "rjson.fence")
                pos = close.end()
            pos = damage.skip(pos)
            continue
        ch = text[pos]
        if not found and not (ch in "{[" or _starts_value(text, pos)):
            if not prose:
                raise Refusal("decode.json", f"expected JSON, got {ch!r}", pos)
            nxt = _next_start(text, pos)
            if nxt < 0:
                raise Refusal("decode.json", "there is no JSON in this text", pos)
            damage.edit(pos, nxt, "", "rjson.prose")
            pos = nxt
            continue
        if found and ch in "}]":
            damage.edit(pos, pos + 1, "", "rjson.extra-bracket")
            pos = damage.skip(pos + 1)
            continue
        if found and ch in ",;":
            damage.edit(pos, pos + 1, " ", "rjson.extra-comma")
            pos = damage.skip(pos + 1)
            continue
        if found and ch not in "{[":
            if not prose:
                raise Refusal("decode.json", f"expected the end of the JSON, got {ch!r}", pos)
            nxt = _next_start(text, pos)
            end = nxt if nxt >= 0 else damage.size
            damage.edit(pos, end, "", "rjson.prose")
            pos = end
            continue
        mark = len(damage.edits)
        try:
            start, pos = _one(damage, pos)
        except Refusal:
            # A brace in prose is no JSON; but what looks like JSON and is broken must be refused, not skipped.
            tries += 1
            looks_like_json = re.match(r"[{\[]\s*[\"'“{\[\]}\d\-]", text[pos : pos + 40])
            if not prose or tries > _MAX_TRIES or looks_like_json or ch not in "{[":
                raise
            nxt = _next_start(text, pos + 1)
            if nxt < 0:
                raise
            del damage.edits[mark:]
            damage.clean.forget(pos)
            damage.edit(pos, nxt, "", "rjson.prose")
            pos = nxt
            continue
        found.append(Found(start, pos))
        pos = damage.skip(pos)
    return found


def _next_start(text: str, pos: int) -> int:
    """The next place where JSON may begin: a bracket or a code fence."""
    m = _START.search(text, pos)
    fence = text.find("```", pos)
    if m and (fence < 0 or m.start() < fence):
        return m.start()
    return fence


_VALUE_START = re.compile(r"""["'“‘]|-?\d|(?:true|false|null|True|False|None)\s*\Z""")


def _starts_value(text: str, pos: int) -> bool:
    """Whether a scalar is the whole of what is left, or a member without its opening brace begins here."""
    return bool(_VALUE_START.match(text, pos))


def _one(damage: Damage, pos: int) -> tuple[int, int]:
    text = damage.text
    if text[pos] in "\"'" and _HEADLESS.match(text, pos):
        damage.edit(pos, pos, "{", "rjson.missing-opener")
        return pos, damage.find_members(pos)
    return pos, damage.find_value(pos)
