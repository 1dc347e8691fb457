"""The readings of damaged JSON that are nearest to it: what one to three characters, put right,
make of a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import islice

from ...core.types import Edit, Span
from ...core.types.spans import make_edit
from ...core.values import Value, nodes, space_end, write_canonical
from .positions import apply_edits
from .quotes import escape_control
from .repair import HOLDS_JSON, NO_JSON
from .strict import read_sequence, too_deep

# How it works. A hypothesis is a place in the text, what the grammar expects there, the brackets
# that are open, and the edits that led there with their cost. It goes on for nothing wherever the
# text is JSON, and for a price by an edit: a sign put in, dropped, replaced, or swapped with its
# neighbour. Hypotheses are taken in the order of their places, cheapest first, so that all those
# that come to one place with the same expectation meet there; only the few cheapest of them live
# on. A hypothesis whose price is too high, or for which the text makes no sense, dies.
#
# Invariant: every edit is at or after the place of the hypothesis that makes it, so edits never
# overlap and come out in order.
#
# Cost: the hypotheses at a place differ in their brackets by a few edits, and each lives there at
# most `_MEETING` times, so the work grows with the text. `_MAX_STEPS` ends it in any case: then
# there is no reading.

QUOTES = "\"'`´“”„‟‘’‚＂＇«»"
# Sign -> characters that are easily written for it.
_ALIKE = {
    "{": "({[｛（<【",
    "[": "[({［（<【",
    "}": ")}]｝）>】",
    "]": ")]}］）>】",
    ":": ":=：;；",
    ",": ",;；，、.",
    '"': QUOTES,
}
_DROPPABLE = frozenset("".join(_ALIKE.values()))  # no letter, digit or sign of words is

_MEETING = 12
_MAX_STEPS = 40_000
_MAX_READINGS = 24

# What an edit costs. A sign that is there twice is the plainest damage; what other languages write
# in JSON's place costs as little.
_PUT_IN = 2
_DROPPED = 2
_DROPPED_DOUBLE = 1
_REPLACED = 2
_REPLACED_BY_OTHER = 3
_SWAPPED = 2
_BARE = 3
_DIALECT = 1

_VALUE, _ITEM, _NEXT_ITEM, _MEMBER, _NEXT_MEMBER, _COLON, _AFTER = range(7)
_SPACE = " \t\n\r"
_VALUES = (_VALUE, _ITEM, _NEXT_ITEM)
_KEYS = (_MEMBER, _NEXT_MEMBER)
# The signs that may be there, by what is expected; behind a value a comma and the closer as well.
_SIGNS = ('{["', '{["]', '{["', '"}', '"', ":", "")
# What is expected behind a sign; behind a comma, by the bracket that is open.
_BEHIND = {"{": _MEMBER, "[": _ITEM, ":": _VALUE, "{,": _NEXT_MEMBER, "[,": _NEXT_ITEM}
_CLOSER = {"{": "}", "[": "]"}
_SCALAR = re.compile(
    r"(?:-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?|true|false|null)(?![\w+\-]|\.\d)"
)
_LITERAL = re.compile(r"(?:True|TRUE|False|FALSE|None|NULL|Null)(?!\w)")
_JSON_LITERAL = {"t": "true", "f": "false", "n": "null"}
_BARE_KEY = re.compile(r"[^\W\d][\w.\-$]*+(?=[ \t]*[:=：])")
_BARE_WORD = re.compile(r"[^\W\d][\w\-]*+(?=\s*+[,}\]])")
_COMMENT = re.compile(r"//[^\n]*+|/\*.*?\*/|#[^\n]*+", re.DOTALL)
_SECOND_QUOTE = re.compile(r'"\s{1,8}+"(?=\w[^"\n]{0,256}+"\s*+[,}\]])')
_ARROW = re.compile(r"=>|->|:=|::")

Chain = tuple["Chain", Edit] | None
_Hypothesis = tuple[int, int, int, str, Chain]  # place, cost, expectation, brackets, edits


@dataclass(frozen=True, slots=True)
class Nearest:
    """One reading: its values, the edits that make the text strict JSON, and their cost."""

    values: list[Value]
    edits: tuple[Edit, ...]
    cost: int


def nearest_readings(text: str, max_cost: int, max_depth: int) -> list[Nearest]:
    """Return the readings of a text within a cost, cheapest first, each value once."""
    search = _Search(text, max_cost, max_depth)
    ways = list(search.run())
    if search.exhausted:
        return []
    by_value: dict[str, Nearest] = {}
    for cost, edits in ways:
        try:
            values = read_sequence(apply_edits(text, edits))
        except ValueError:  # a key appears twice, or an escape is wrong
            continue
        if too_deep(text, values, max_depth):
            continue
        key = write_canonical(values)
        if key not in by_value or cost < by_value[key].cost:
            by_value[key] = Nearest(values, tuple(edits), cost)

    readings = sorted(by_value.values(), key=lambda reading: reading.cost)
    # Where `"time": 15:30` is best read with the name `time": 15`, nothing is known of it.
    return [] if readings and _has_odd_name(readings[0]) else readings


def _has_odd_name(reading: Nearest) -> bool:
    if not any(edit.rule == "rjson.unescaped-quote" for edit in reading.edits):
        return False
    names = (name for node in nodes(reading.values) if isinstance(node, dict) for name in node)
    return any('"' in name for name in names)


class _Search:
    def __init__(self, text: str, max_cost: int, max_depth: int) -> None:
        self._text = text
        self._size = len(text)
        self._max_cost = max_cost
        self._max_depth = max_depth
        self._heap: list[tuple[int, int, int, int, str, Chain]] = []
        self._count = 0  # hypotheses so far, which also orders equal ones
        self._met: dict[tuple[int, int, str], int] = {}
        self._ends = _TextEnds(text, max_cost)
        self.exhausted = False

    def run(self) -> Iterator[tuple[int, list[Edit]]]:
        self._add(0, 0, _VALUE, "", None)
        number = 0
        while self._heap and self._count < _MAX_STEPS and number < _MAX_READINGS:
            pos, cost, _, mode, stack, chain = heappop(self._heap)
            key = (pos, mode, stack)
            self._met[key] = self._met.get(key, 0) + 1
            if self._met[key] > _MEETING:
                continue
            if pos >= self._size and mode == _AFTER and not stack:
                number += 1
                edits: list[Edit] = []
                while chain is not None:
                    chain, edit = chain
                    edits.append(edit)
                yield cost, edits[::-1]
            else:
                self._go_on(pos, cost, mode, stack, chain)

        self.exhausted = self._count >= _MAX_STEPS

    def _add(self, pos: int, cost: int, mode: int, stack: str, chain: Chain) -> None:
        if cost > self._max_cost or len(stack) > self._max_depth:
            return
        if self._text[pos : pos + 1] in _SPACE:  # so is the end of the text
            pos = space_end(self._text, pos)
        self._count += 1
        heappush(self._heap, (pos, cost, self._count, mode, stack, chain))

    def _go_on(self, pos: int, cost: int, mode: int, stack: str, chain: Chain) -> None:
        ch = self._text[pos : pos + 1]
        if not ch:
            if mode == _AFTER and stack:
                closers = "".join(_CLOSER[opener] for opener in reversed(stack))
                edit = make_edit(Span(pos, pos), closers, "rjson.missing-bracket")
                self._add(pos, cost + _PUT_IN * len(stack), _AFTER, "", (chain, edit))
            return

        self._strictly(pos, ch, cost, mode, stack, chain)
        # What costs too much is not even made: most hypotheses have spent nearly all.
        budget = self._max_cost - cost
        if budget < min(_DIALECT, _DROPPED_DOUBLE):
            return
        self._in_dialect(pos, ch, cost, mode, stack, chain)
        for end, text, rule, price, sign in self._moves(pos, ch, mode, stack, budget):
            if price > budget:
                continue
            longer = (chain, make_edit(Span(pos, end), text, rule))
            if not sign:
                self._add(end, cost + price, mode, stack, longer)
            elif sign == '"':
                self._string(end, cost + price, mode, stack, longer)
            else:
                self._sign(sign, end, cost + price, mode, stack, longer)
        if budget >= _SWAPPED:
            self._swap(pos, ch, cost, mode, stack, chain)

    def _sign(self, sign: str, pos: int, cost: int, mode: int, stack: str, chain: Chain) -> bool:
        following = _following(sign, mode, stack)
        if following is None:
            return False
        self._add(pos, cost, following[0], following[1], chain)
        return True

    def _string(self, pos: int, cost: int, mode: int, stack: str, chain: Chain) -> None:
        is_key = mode in _KEYS
        then = _COLON if is_key else _AFTER
        for end, price, edits, sign in self._ends.of(pos, is_key, stack[-1:]):
            if cost + price > self._max_cost:
                continue
            if chain and chain[1].rule == "rjson.missing-quote" and chain[1].span.end == pos:
                # Words without any quote are not a string that lost one, and a string that got its
                # first quote here has none of its own inside.
                if edits and edits[-1].rule == "rjson.missing-quote":
                    continue
                if any(edit.rule == "rjson.unescaped-quote" for edit in edits):
                    continue
            longer = chain
            for edit in edits:
                longer = (longer, edit)
            if sign:
                self._sign(sign, end, cost + price, then, stack, longer)
            else:
                self._add(end, cost + price, then, stack, longer)

    # what is there for nothing

    def _strictly(self, pos: int, ch: str, cost: int, mode: int, stack: str, chain: Chain) -> None:
        if ch == '"':
            if mode in _VALUES or mode in _KEYS:
                self._string(pos + 1, cost, mode, stack, chain)
        elif ch in "{}[],:":
            self._sign(ch, pos + 1, cost, mode, stack, chain)
        elif mode in _VALUES:
            scalar = _SCALAR.match(self._text, pos)
            if scalar:
                self._add(scalar.end(), cost, _AFTER, stack, chain)

    # what other languages write

    def _in_dialect(
        self, pos: int, ch: str, cost: int, mode: int, stack: str, chain: Chain
    ) -> None:
        text = self._text
        comment = _COMMENT.match(text, pos) if ch in "/#" else None
        # To the end of the text it would take the rest of the value with it.
        if comment and (comment.end() < self._size or not HOLDS_JSON.search(comment[0])):
            edit = make_edit(Span(pos, comment.end()), "", "rjson.comment")
            self._add(comment.end(), cost + _DIALECT, mode, stack, (chain, edit))
        if text.startswith("\\n", pos) and mode not in (_VALUE, _COLON):
            edit = make_edit(Span(pos, pos + 2), " ", "rjson.literal-newline")
            self._add(pos + 2, cost + _DIALECT, mode, stack, (chain, edit))
        if mode in _VALUES:
            self._dialect_value(pos, cost, stack, chain)
        elif mode in _KEYS and (word := _BARE_KEY.match(text, pos)):
            self._quoted(word, cost + _DROPPED, _COLON, stack, chain, "rjson.unquoted-key")

        closes_trailing = (ch == "}" and mode == _NEXT_MEMBER) or (ch == "]" and mode == _NEXT_ITEM)
        comma = len(text[:pos].rstrip()) - 1 if closes_trailing else -1
        touched = chain is not None and chain[1].span.end > comma
        if comma >= 0 and text[comma] == "," and not touched:
            edit = make_edit(Span(comma, comma + 1), "", "rjson.trailing-comma")
            self._sign(ch, pos + 1, cost + _DIALECT, _AFTER, stack, (chain, edit))

    def _dialect_value(self, pos: int, cost: int, stack: str, chain: Chain) -> None:
        literal = _LITERAL.match(self._text, pos)
        if literal:
            text = _JSON_LITERAL[literal[0][0].lower()]
            edit = make_edit(Span(*literal.span()), text, "rjson.python-literal")
            self._add(literal.end(), cost + _DIALECT, _AFTER, stack, (chain, edit))
            return
        word = _BARE_WORD.match(self._text, pos)
        if word and not _SCALAR.match(word[0]) and word[0].strip().lower() not in NO_JSON:
            self._quoted(word, cost + _BARE, _AFTER, stack, chain, "rjson.unquoted-value")

    def _quoted(
        self, word: re.Match[str], cost: int, then: int, stack: str, chain: Chain, rule: str
    ) -> None:
        opener = make_edit(Span(word.start(), word.start()), '"', rule)
        closer = make_edit(Span(word.end(), word.end()), '"', rule)
        self._add(word.end(), cost, then, stack, ((chain, opener), closer))

    # one sign put right

    def _moves(
        self, pos: int, ch: str, mode: int, stack: str, budget: int
    ) -> Iterator[tuple[int, str, str, int, str]]:
        # Yields the end, text, rule and price of edits that put a sign in, drop or replace one, and
        # the sign that is there then, "" for none.
        if budget >= _PUT_IN:
            for sign, rule in _missing(ch, mode, stack):
                # A quote of another kind that stands there was meant as this one.
                yield pos, sign, rule, _PUT_IN + (sign == '"' and ch in QUOTES), sign
        if ch in _DROPPABLE:
            double = ch in (self._text[pos - 1 : pos], self._text[pos + 1 : pos + 2])
            # It opens a string; nobody puts it before a word by mistake.
            opens = ch == '"' and mode in _VALUES and not double
            if not opens or _SECOND_QUOTE.match(self._text, pos):
                price = _DROPPED_DOUBLE if double else _DROPPED
                yield pos + 1, "", "rjson.extra-sign", price, ""
        # Behind a number the last of these are its unit, and no sign that went wrong.
        if budget < _REPLACED or ch.isalnum() or ch in "\\-_%°$€£":
            return
        is_arrow = mode == _COLON and _ARROW.match(self._text, pos) is not None
        for sign in _expected(mode, stack):
            if sign != ch and (sign != '"' or ch in QUOTES):
                price = _REPLACED if is_arrow or ch in _ALIKE[sign] else _REPLACED_BY_OTHER
                yield pos + 1 + is_arrow, sign, "rjson.wrong-sign", price, sign

    def _swap(self, pos: int, ch: str, cost: int, mode: int, stack: str, chain: Chain) -> None:
        sign = self._text[pos + 1 : pos + 2]
        if sign == ch or not sign or sign not in '{}[],:"':
            return
        edit = make_edit(Span(pos, pos + 2), sign + ch, "rjson.swapped-signs")
        longer = (chain, edit)
        cost += _SWAPPED
        if sign == '"':
            if (mode in _VALUES or mode in _KEYS) and ch not in '"\\':
                self._string(pos + 2, cost, mode, stack, longer)
                if ch not in "{}[],:":
                    # A character before the quote left the string, or it is one too many.
                    drop = make_edit(Span(pos, pos + 1), "", "rjson.extra-sign")
                    self._string(pos + 2, cost, mode, stack, (chain, drop))
            return

        following = _following(sign, mode, stack)
        if following is None:
            return
        mode, stack = following
        if ch == '"':
            if mode in _VALUES or mode in _KEYS:
                self._string(pos + 2, cost, mode, stack, longer)
        elif ch in "{}[],:":
            self._sign(ch, pos + 2, cost, mode, stack, longer)
        elif mode in _VALUES:
            scalar = _SCALAR.match(ch + self._text[pos + 2 : pos + 64])
            if scalar:
                self._add(pos + 1 + scalar.end(), cost, _AFTER, stack, longer)


def _following(sign: str, mode: int, stack: str) -> tuple[int, str] | None:
    if sign not in _expected(mode, stack):
        return None
    if sign in "}]":
        return _AFTER, stack[:-1]
    if sign == ",":
        return _BEHIND[stack[-1] + sign], stack
    return _BEHIND[sign], stack if sign == ":" else stack + sign


def _expected(mode: int, stack: str) -> str:
    return "," + _CLOSER[stack[-1]] if mode == _AFTER and stack else _SIGNS[mode]


def _missing(ch: str, mode: int, stack: str) -> Iterator[tuple[str, str]]:
    begins_value = ch in '"{[-' or ch.isalnum()
    if mode == _COLON:
        if begins_value:
            yield ":", "rjson.missing-colon"
    elif mode == _AFTER:
        if stack:
            if begins_value or ch in QUOTES:
                yield ",", "rjson.missing-comma"
            closer = _CLOSER[stack[-1]]
            if ch in ",]}" and ch != closer:
                yield closer, "rjson.missing-bracket"
    else:
        if mode in _VALUES and ch in '"}':
            yield "{", "rjson.missing-opener"
        # Before another bracket of its kind it would be the same as behind it.
        if mode in _VALUES and ch != "[" and (begins_value or ch == "]"):
            yield "[", "rjson.missing-opener"
        if ch not in '{}[],:"\\':
            yield '"', "rjson.missing-quote"


# where a string ends

# How it works. The end that strict JSON knows, the next quote, costs nothing. Others are a quote
# that is missing (before what only comes after a string), one of another kind, one that changed
# places with its neighbour, and a later quote where those before it are part of the text. Only
# places that something plainly follows are taken, since every comma of a prose text might be one.

_ESCAPED, _RAW_CONTROL = 3, 1
_STOP = re.compile(r'["\\\x00-\x1f,:}\]' + QUOTES + "]")
_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})')
_OTHER_QUOTES = frozenset(QUOTES) - {'"'}
_MAX_ENDS = 64
# What stands behind a string, by where it is. A colon behind a key; behind a value a comma and
# another member or item, or brackets and whatever follows them.
_BRACKETS = r"\s*+[}\]][\s}\]]*+"
_NEXT = {"{": r'\s*+,\s*+"', "[": r'\s*+,\s*+(?:["{\[\d\-]|true|false|null)'}
_BEHIND_OTHER = {top: re.compile(rf"{item}|{_BRACKETS}(?:,|\Z)") for top, item in _NEXT.items()}
# Where no quote stands at all, brackets up to the end prove nothing: the text may have been cut off
# inside the string, and they be a part of it.
_BEHIND_NONE = {top: re.compile(f"{item}|{_BRACKETS},") for top, item in _NEXT.items()}
_BEHIND_KEY = re.compile(r"\s*+:")
_NEVER = re.compile(r"(?!)")

End = tuple[int, int, tuple[Edit, ...], str]
# offset after it, cost, edits, the sign that follows where it was swapped with the quote


class _TextEnds:
    # The ends of the strings of one text, each looked for once.

    def __init__(self, text: str, max_cost: int) -> None:
        self._text = text
        self._max_cost = max_cost
        self._known: dict[tuple[int, bool, str], list[End]] = {}

    def of(self, pos: int, is_key: bool, top: str) -> list[End]:
        key = (pos, is_key, top)
        if key not in self._known:
            other = _BEHIND_KEY if is_key else _BEHIND_OTHER.get(top, _NEVER)
            none = _BEHIND_KEY if is_key else _BEHIND_NONE.get(top, _NEVER)
            self._known[key] = list(islice(self._find(pos, other, none), _MAX_ENDS))
        return self._known[key]

    def _find(
        self, pos: int, behind_other: re.Pattern[str], behind: re.Pattern[str]
    ) -> Iterator[End]:
        text = self._text
        start, cost = pos, 0
        inside: tuple[Edit, ...] = ()
        has_control = False
        escaped = unescaped = 0  # quotes inside, with a backslash and without
        while stop := _STOP.search(text, pos):
            at, ch = stop.start(), stop[0]
            pos = at + 1
            if ch == '"':
                yield at + 1, cost, inside, ""
                yield from self._swapped(start, at, cost, inside)
                inside += (Edit(Span(at, at + 1), '\\"', "rjson.unescaped-quote"),)
                cost += _ESCAPED
                unescaped += 1
            elif ch == "\\":
                escape = _ESCAPE.match(text, at)
                if escape is None:
                    return  # which escape was meant is not for a search to say
                pos = escape.end()
                is_quote = escape[0] == '\\"'
                escaped += is_quote
                # Of quotes in pairs none has a backslash too many.
                if is_quote and escaped % 2 and behind_other.match(text, pos):
                    edit = Edit(Span(at, at + 1), "", "rjson.extra-sign")
                    yield pos, cost + _DROPPED, (*inside, edit), ""
            elif ch < " ":
                # A quote that is missing is missing in front of the line break, not behind it.
                if behind.match(text, at):
                    edit = Edit(Span(at, at), '"', "rjson.missing-quote")
                    yield at, cost + _PUT_IN, (*inside, edit), ""
                inside += (Edit(Span(at, at + 1), escape_control(ch), "rjson.raw-control"),)
                cost += 0 if has_control else _RAW_CONTROL
                has_control = True
            elif ch in _OTHER_QUOTES:
                if behind_other.match(text, at + 1):
                    edit = Edit(Span(at, at + 1), '"', "rjson.wrong-sign")
                    yield at + 1, cost + _REPLACED, (*inside, edit), ""
            # The odd one of the quotes inside may be the end, so that none is missing.
            elif unescaped % 2 == 0 and behind.match(text, at):
                edit = Edit(Span(at, at), '"', "rjson.missing-quote")
                price = _PUT_IN + (at > start and text[at - 1] in _OTHER_QUOTES)
                price += has_control and text[at - 1].isspace()
                yield at, cost + price, (*inside, edit), ""
            if cost > self._max_cost:
                return

    def _swapped(self, start: int, at: int, cost: int, inside: tuple[Edit, ...]) -> Iterator[End]:
        text = self._text
        before, after = text[at - 1], text[at + 1 : at + 2]
        if at > start and before in ",:}]" and not (inside and inside[-1].span.end >= at):
            edit = Edit(Span(at - 1, at + 1), f'"{before}', "rjson.swapped-signs")
            yield at + 1, cost + _SWAPPED, (*inside, edit), before
        if after.isalnum() and not cost:
            # A letter after the quote left the string, or it is one too many.
            for span, signs, rule in (
                (Span(at, at + 2), f'{after}"', "rjson.swapped-signs"),
                (Span(at + 1, at + 2), "", "rjson.extra-sign"),
            ):
                yield at + 2, cost + _SWAPPED, (*inside, Edit(span, signs, rule)), ""


# Readings of a damaged escaped quote in a string, beside the literal one

# How it works. A backslash before a character that JSON does not escape is most often one of a
# pattern or a path, and meant as it is. It may also be what is left of an escaped quote. The quotes
# inside the string tell: in code, markup and prose they come in pairs. So each reading in which one
# character was lost, doubled, wrong or swapped is compared with the literal one. If the literal one
# leaves a quote without its partner, and one other does not, that is the reading; if several do
# not, nobody can tell.
#
# Cost: a few strict readings of the text, each linear, and only behind such an edit of the repair.

ESCAPES = frozenset(("rjson.bad-escape", "rjson.unescaped-quote", "rjson.escaped-apostrophe"))
"""Rules of edits that a damaged escape may be behind."""
_MOST_EDITS = 3
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_JSON_SIGNS = "{}[],:"
_LETTERS = "nrtbf"
_LONE = _LETTERS + "/"


@dataclass(frozen=True, slots=True)
class EscapeReading:
    """One way to put an escape right, with the values of the whole text."""

    edit: Edit
    values: list[Value]


def escape_readings(text: str, edits: Sequence[Edit]) -> list[EscapeReading]:
    """Return the readings of a damaged escape that speak against the literal one."""
    if not 0 < len(edits) <= _MOST_EDITS or any(edit.rule not in ESCAPES for edit in edits):
        return []
    first = edits[0]
    candidates = list(_candidates(text, first.span.start, first.rule))
    if not candidates or edits[-1].span.start - first.span.start > 2:
        return []

    literal_at = first.span.start
    lexeme = _string_at(apply_edits(text, edits), literal_at)
    is_whole = _is_paired(lexeme)
    if is_whole and len(edits) == 1:
        # One edit is less than two. Of two that are as good, the literal one counts, save beside a
        # line break that lost its backslash to a neighbour in a text of several lines.
        has_breaks = "\\n" in lexeme.replace("\\\\", "")
        candidates = [
            edit for edit in candidates
            if (has_breaks and _frees_break(text, edit)) or _takes_escape(edit)
        ]  # fmt: skip

    readings: list[EscapeReading] = []
    for edit in candidates:
        repaired = apply_edits(text, [edit])
        try:
            values = read_sequence(repaired)
        except ValueError:
            continue
        if _is_paired(_string_at(repaired, edit.span.start)):
            readings.append(EscapeReading(edit, values))
    return readings


def is_certain(text: str, readings: Sequence[EscapeReading], rule: str) -> bool:
    """Tell if there is one reading, and nothing speaks for the literal one."""
    # rule: of the repair's edit. An apostrophe between letters may be one, and a line break that
    # would be made of a backslash and a letter may be a pattern.
    if len(readings) != 1:
        return False
    edit = readings[0].edit
    if _frees_break(text, edit) or _takes_escape(edit):
        return False
    start, end = edit.span.start, edit.span.end
    before, behind = text[start - 1 : start], text[end : end + 1]
    return rule != "rjson.escaped-apostrophe" or not (before.isalnum() and behind.isalnum())


def _candidates(text: str, at: int, rule: str) -> Iterator[Edit]:
    if rule == "rjson.unescaped-quote":
        if text[at - 2 : at] == '\\"':
            yield Edit(Span(at, at + 1), "", "rjson.extra-sign")
        elif text[at - 2 : at - 1] == "\\" and text[at - 1] in _LONE:
            yield Edit(Span(at - 1, at + 1), f'"{text[at - 1]}', "rjson.swapped-signs")
        return

    sign, behind = text[at + 1 : at + 2], text[at + 2 : at + 3]
    if sign in QUOTES:
        yield Edit(Span(at, at + 2), '\\"', "rjson.wrong-sign")
        return
    if behind == '"':
        yield Edit(Span(at + 1, at + 3), f'"{sign}', "rjson.swapped-signs")
    else:
        yield Edit(Span(at + 1, at + 1), '"', "rjson.missing-quote")
    if behind == '"' or (sign in _JSON_SIGNS and behind in _LETTERS):
        yield Edit(Span(at, at + 2), f"{sign}\\", "rjson.swapped-signs")


def _frees_break(text: str, edit: Edit) -> bool:
    return edit.text[-1:] == "\\" and text[edit.span.end : edit.span.end + 1] in _LETTERS


def _takes_escape(edit: Edit) -> bool:
    # Makes a letter of an escape, so that the escape may be right as well.
    return len(edit.text) == 2 and edit.text[0] == '"' and edit.text[1] in _LONE


def _string_at(text: str, at: int) -> str:
    for match in _STRING.finditer(text):
        if match.end() > at:
            return match[0] if match.start() <= at else ""
    return ""


def _is_paired(lexeme: str) -> bool:
    return lexeme.replace("\\\\", "").count('\\"') % 2 == 0
