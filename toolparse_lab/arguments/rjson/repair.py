"""`repair`: the lenient reader.

It lists its changes as edits. It refuses to guess.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

from ...core.types import Edit, Problem, Span
from ...core.values import Value, same
from .damage import Damage
from .positions import Doubled, EditMap, apply_edits, find_places, key_start
from .strict import Duplicate, Refusal, read_around, read_if_strict, read_sequence, read_unique

# How it works. A text that is strict JSON is read by one call and done. Any other goes through
# four stages: the values are looked for, in code fences and among words (`_Search`); each is walked
# for damage (`Damage`), which gives edits; the edited text is read strictly; and a key that stands
# twice with equal values is dropped by another edit. The strict reader has the last word: what the
# walk took for repaired and the reader does not take is refused.

_MAX_TRIES = 16  # starts tried in prose before the text is said to hold no JSON
_FENCE = "```"
_FENCE_OPEN = re.compile(r"```[ \t]*[\w+-]*[ \t]*\r?\n?")
_FENCE_CLOSE = re.compile(r"\s*```")
_START = re.compile(r"[{\[]")
_HEADLESS = re.compile(r"""\s*(?:"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')\s*:""")
# A scalar that is the whole of what is left, or a member without its opening brace.
_VALUE_START = re.compile(r"""["'“‘]|-?\d|(?:true|false|null|True|False|None)\s*\Z""")
# What looks like JSON and is broken must be refused; other brackets in prose are no JSON at all.
_JSON_HEAD = re.compile(r"[{\[]\s*[\"'“{\[\]}\d\-]")
_HEAD_SIZE = 40  # characters looked at for that


@dataclass(frozen=True, slots=True)
class Repaired:
    """The outcome of `repair`.

    `values` holds every top-level value, `value` the only one (None unless there is one). `ok` is
    False for text that is truncated, ambiguous or no JSON. Then `values` is empty and `problems`
    says why.

    >>> from toolparse_lab.arguments.rjson import repair
    >>> repaired = repair('{a: 1,}')
    >>> repaired.value, [edit.rule for edit in repaired.edits]
    ({'a': 1}, ['rjson.unquoted-key', 'rjson.unquoted-key', 'rjson.trailing-comma'])
    """

    values: tuple[Value, ...]
    edits: tuple[Edit, ...]
    problems: tuple[Problem, ...]

    @property
    def ok(self) -> bool:
        """True if there are no problems."""
        return not self.problems

    @property
    def value(self) -> Any:
        """The only value, or None if there are none or several."""
        return self.values[0] if len(self.values) == 1 else None


def repair(text: str, *, max_depth: int = 1000) -> Repaired:
    """Read damaged JSON.

    Never raises on account of `text`, never invents a value.

    >>> repair("{'port': 'Bergen', 'dry': True,}").value
    {'port': 'Bergen', 'dry': True}
    >>> repair('{"days": 1').ok
    False
    """
    try:
        values, edits = read_damaged(
            text, closed=True, numbers_end=False, prose=True, max_depth=max_depth
        )
    except Refusal as refusal:
        start = min(refusal.position, len(text))
        span = Span(start, min(refusal.position + 1, len(text)))
        problem = Problem("repair", refusal.code, "error", refusal.message, "", span)
        return Repaired((), (), (problem,))

    return Repaired(tuple(values), tuple(edits), ())


def read_damaged(
    text: str, *, closed: bool, numbers_end: bool, prose: bool, max_depth: int
) -> tuple[list[Value], list[Edit]]:
    """Return the top-level values of `text` and the edits that make it strict JSON."""
    # closed: the text is known to be whole, so brackets missing at its end may be added.
    # numbers_end: and a number at the very end is whole. prose: words around the value may be
    # dropped.
    strict_values = read_if_strict(text, max_depth)
    if strict_values is not None:
        return strict_values, []

    damage = Damage(text, closed=closed, numbers_end=numbers_end, max_depth=max_depth)
    if not _Search(damage, prose=prose).run():
        raise Refusal("decode.json", "there is no JSON in this text", 0)

    edits = sorted(damage.edits, key=_by_span)
    if damage.clean.parts:
        try:
            return read_around(text, edits, damage.clean.parts), edits
        except ValueError:
            pass  # read whole, so that the message does not depend on what was read already

    edited = apply_edits(text, edits)
    try:
        return read_sequence(edited), edits
    except Duplicate:
        try:
            return _load_without_doubles(text, edits, edited)
        except Refusal as refusal:
            refusal.edits = tuple(edits)
            refusal.alternatives = _either_value(edits, edited)
            raise
    except ValueError as error:
        # The walk accepted what the strict reader does not: refuse, never guess.
        raise Refusal("decode.json", f"not JSON after repair: {error}", 0) from None


def _by_span(edit: Edit) -> tuple[int, int]:
    # Edits at one place stay in the order in which they were made.
    return edit.span.start, edit.span.end


def _load_without_doubles(
    text: str, edits: list[Edit], edited: str
) -> tuple[list[Value], list[Edit]]:
    edit_map = EditMap(edits)
    spans = (Span(*edit_map.raw_span(d.start, d.end)) for d in _outer_doubles(edited))
    drops = [Edit(span, "", "rjson.equal-duplicate-key") for span in spans]
    merged = _with_drops(edits, drops)
    try:
        return read_sequence(apply_edits(text, merged)), merged
    except ValueError as error:
        raise Refusal("decode.duplicate-key", f"a key appears twice: {error}", 0) from None


def _with_drops(edits: list[Edit], drops: list[Edit]) -> list[Edit]:
    # Edits inside a dropped member go with it. drops: in order, apart from each other.
    starts = [drop.span.start for drop in drops]
    merged = list(drops)
    for edit in edits:
        i = bisect_right(starts, edit.span.start) - 1
        if i < 0 or not drops[i].span.covers(edit.span):
            merged.append(edit)
    return sorted(merged, key=_by_span)


def _either_value(edits: list[Edit], edited: str) -> tuple[tuple[Edit, ...], ...]:
    # () where more than one key is there twice: the values of each would make a reading with those
    # of the others.
    doubles = find_places(edited).doubled
    if len(doubles) != 1:
        return ()
    (double,) = doubles
    edit_map = EditMap(edits)
    # The first member runs to its comma, which is there because another member follows.
    first = key_start(edited, double.first[0]), edited.index(",", double.first[1]) + 1
    return tuple(
        tuple(_with_drops(edits, [Edit(Span(*edit_map.raw_span(*member)), "", "rjson.double-key")]))
        for member in ((double.start, double.end), first)
    )


def _outer_doubles(edited: str) -> list[Doubled]:
    # The members that are there twice, in order, those inside another one left out.
    doubles = find_places(edited).doubled
    for double in doubles:
        first, again = edited[slice(*double.first)], edited[slice(*double.again)]
        if first != again and not _equal_texts(first, again):
            key = double.path.rpartition("/")[2]
            message = f"the key {key!r} appears twice with different values"
            raise Refusal("decode.duplicate-key", message, double.again[0])

    outer: list[Doubled] = []
    # Of two members one is inside the other, or they are apart; so the one that ends last has the
    # others inside.
    for double in sorted(doubles, key=lambda double: (double.start, -double.end)):
        if not outer or double.end > outer[-1].end:
            outer.append(double)

    return outer


def _equal_texts(first: str, again: str) -> bool:
    # Strings come without their quotes, and are not JSON.
    try:
        return same(read_unique(first), read_unique(again))
    except ValueError:
        return False


# looking for the values


class _Search:
    def __init__(self, damage: Damage, *, prose: bool) -> None:
        self._damage = damage
        self._text = damage.text
        self._prose = prose
        self._count = 0  # values so far
        self._tries = 0  # brackets in prose that began no JSON

    def run(self) -> int:
        damage = self._damage
        pos = damage.skip(0)
        while pos < damage.size:
            pos = self._step(pos)

        return self._count

    def _step(self, pos: int) -> int:
        # Passes one value, or one thing that is none, and at least one character.
        if self._text.startswith(_FENCE, pos):
            return self._fenced(pos)

        ch = self._text[pos]
        if ch in "{[":
            return self._value_or_prose(pos)
        if self._count:
            return self._between(pos, ch)
        if _VALUE_START.match(self._text, pos):
            return self._value_or_prose(pos)
        if not self._prose:
            raise Refusal("decode.json", f"expected JSON, got {ch!r}", pos)
        start = self._next_start(pos)
        if start < 0:
            raise Refusal("decode.json", "there is no JSON in this text", pos)
        self._damage.edit(pos, start, "", "rjson.prose")
        return start

    def _fenced(self, pos: int) -> int:
        damage, text = self._damage, self._text
        opener = _FENCE_OPEN.match(text, pos)
        inside = opener.end() if opener else pos + len(_FENCE)  # it always matches backticks
        damage.edit(pos, inside, "", "rjson.fence")
        pos = damage.skip(inside)
        if pos < damage.size and not text.startswith(_FENCE, pos):
            pos = self._value(pos)

        closer = _FENCE_CLOSE.match(text, pos)
        if closer:
            damage.edit(pos, closer.end(), "", "rjson.fence")
            pos = closer.end()

        return damage.skip(pos)

    def _between(self, pos: int, ch: str) -> int:
        damage = self._damage
        if ch in "}]":
            damage.edit(pos, pos + 1, "", "rjson.extra-bracket")
            return damage.skip(pos + 1)
        if ch in ",;":
            damage.edit(pos, pos + 1, " ", "rjson.extra-comma")
            return damage.skip(pos + 1)

        if not self._prose:
            raise Refusal("decode.json", f"expected the end of the JSON, got {ch!r}", pos)

        start = self._next_start(pos)
        end = start if start >= 0 else damage.size
        damage.edit(pos, end, "", "rjson.prose")
        return end

    def _value_or_prose(self, pos: int) -> int:
        damage, text = self._damage, self._text
        mark = len(damage.edits)
        try:
            end = self._value(pos)
        except Refusal:
            self._tries += 1
            may_be_prose = self._prose and self._tries <= _MAX_TRIES and text[pos] in "{["
            may_be_prose = may_be_prose and not _JSON_HEAD.match(text[pos : pos + _HEAD_SIZE])
            start = self._next_start(pos + 1) if may_be_prose else -1
            if start < 0:
                raise
        else:
            return damage.skip(end)

        # The walk's edits were made for a value that is none.
        del damage.edits[mark:]
        damage.clean.forget(pos)
        damage.edit(pos, start, "", "rjson.prose")
        return start

    def _value(self, pos: int) -> int:
        damage, text = self._damage, self._text
        headless = text[pos] in "\"'" and _HEADLESS.match(text, pos) is not None
        if headless:
            damage.edit(pos, pos, "{", "rjson.missing-opener")
        end = damage.find_value(pos, members=headless)
        self._count += 1
        return end

    def _next_start(self, pos: int) -> int:
        bracket = _START.search(self._text, pos)
        fence = self._text.find(_FENCE, pos)
        if bracket and (fence < 0 or bracket.start() < fence):
            return bracket.start()

        return fence
