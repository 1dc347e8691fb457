"""`repair`: the lenient reader.

It lists its changes as edits. It refuses to guess.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ...core.types import Edit, Problem, Span
from ...core.values import Value, same, space_end
from .positions import Doubled, EditMap, apply_edits, find_places, key_start
from .quotes import (
    FOREIGN,
    PLUS_STRING,
    escape_control,
    item_begins,
    read_double,
    read_foreign,
    read_triple,
)
from .strict import (
    CleanParts,
    Duplicate,
    Refusal,
    by_span,
    read_around,
    read_if_strict,
    read_sequence,
    read_unique,
)

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

    damage = _Search(text, closed=closed, numbers_end=numbers_end, max_depth=max_depth)
    if not damage.run(prose):
        raise Refusal("decode.json", "there is no JSON in this text", 0)

    edits = sorted(damage.edits, key=by_span)
    with suppress(ValueError):  # read whole then: the message is of all, and not of a part
        return read_around(text, edits, damage.clean.parts), edits
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
    return sorted(merged, key=by_span)


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


# the damage of one value

# How it works. One forward pass with an explicit stack of the brackets that are open, so that depth
# costs no recursion. The walk is in one of three states, by what may come next:
#
#   _VALUE   a value must begin here
#   _MEMBER  a member, an item, or the bracket that closes the container
#   _AFTER   after a value: a comma, or the bracket that closes
#
# Each state is a method that takes a position and returns the next position and state. Whatever
# JSON does not allow there is either a known kind of damage, which becomes an edit named after its
# rule, or a Refusal. The walk never goes back, and an edit never changes what was passed.
#
# Clean stretches are not walked: a container without damage is read whole by the C-backed reader
# (`CleanParts`), and runs of plain members by one regular expression. So the cost is the damage,
# not the text. The regular expressions use possessive quantifiers throughout: none of them can
# backtrack, and a hostile text costs no more than another.

_WS = r"[ \t\n\r]*+"
_STRING = r'"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+"'
_NUMBER = r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?(?![\w.+\-])"
_SCALAR = rf"(?:{_STRING}|{_NUMBER}|(?:true|false|null)(?![\w.\-]))"
# A run of whole members or items, each with its comma; stops before anything that is not plainly
# clean.
_FLAT_ARRAY = rf"\[{_WS}(?:{_SCALAR}{_WS}(?:,{_WS}{_SCALAR}{_WS})*+)?\]"
_OBJECT_RUN = re.compile(
    rf'(?:{_WS}{_STRING}{_WS}:{_WS}(?:{_SCALAR}|{_FLAT_ARRAY}){_WS},(?={_WS}"))*+'
)
_ARRAY_RUN = re.compile(rf"(?:{_WS}{_SCALAR}{_WS},(?={_WS}[^\],\s]))*+")
_PAIR_HEAD = re.compile(rf"{_STRING}{_WS}:")
_STRICT_SCALAR = re.compile(_SCALAR)
_BARE_KEY = re.compile(r"[^\W\d][\w.\-$]*|\$[\w.\-$]+|\d+(?=\s*:)")
_NEXT_STRICT = re.compile(rf"[{{\[]|{_SCALAR}(?={_WS}[,}}])")
_SIGNS = frozenset('{}[],:"')
_CLOSER_OF = {"{": "}", "[": "]"}
_OPENER_OF = {"}": "{", "]": "["}
_VALUE_IS_DUE = ("{", "[", ":")  # a text that ends in one of these ends before a value

# White space that people and other languages know, and JSON does not.
_ODD_SPACE = re.compile(
    "[\x0b\x0c\x85\xa0\u1680\u2000-\u200b\u2028\u2029\u202f\u205f\u3000\ufeff]+"
)
# Signs, quotes, letters: what is neither white space nor the beginning of a comment.
_NO_SPACE = frozenset(map(chr, range(ord("!"), ord("~") + 1))) - {"/", "#"}
# In a comment: what closes a bracket, or a key.
HOLDS_JSON = re.compile(r"[}\]]|[\"']\s*:")

_BARE = re.compile(r"[^\s\"'“”„‘’,:{}\[\]()`]+")
_BARE_LINE = re.compile(r"[^\"“”„,:{}\[\]()`\n\r]+")
_LOOSE_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\Z")
_NUMBER_SIGNS = "+-.0123456789"
_LITERALS = {"true": "true", "false": "false", "null": "null", "none": "null"}
# Words of other languages for what JSON has no value for.
NO_JSON = frozenset(
    ("nan", "infinity", "-infinity", "+infinity", "inf", "-inf", "+inf", "undefined")
)
_RUNS_INTO = ("(", ":", '"', "`")  # after a word, they make a call, a key, a string or code of it

_VALUE, _MEMBER, _AFTER = range(3)


class Damage:
    """One text under repair, with the edits so far, in offsets of the text as it came.

    closed: the text is known to be whole, so that missing brackets may be added at its end.
    numbers_end: a number at the very end is known to be whole too. clean: the containers that
    held no damage, with their values. `find_value` raises Refusal.
    """

    def __init__(self, text: str, *, closed: bool, numbers_end: bool, max_depth: int) -> None:
        self.text = text
        self.size = len(text)
        self.closed = closed
        self.numbers_end = numbers_end
        self.values = 0  # passed so far
        self.edits: list[Edit] = []
        self.max_depth = max_depth
        self.clean = CleanParts(text, max_depth)
        self._stack: list[str] = []  # the brackets that are open
        self._comma = -1  # the comma just passed, while nothing followed it

    def edit(self, start: int, end: int, text: str, rule: str) -> None:
        self.edits.append(Edit(Span(start, end), text, rule))

    # space and comments

    def skip(self, pos: int) -> int:
        """Return the next offset that is neither white space nor comment.

        Space and comments that JSON does not know become edits. Raises Refusal for a comment that
        stays open.
        """
        text = self.text
        # Nothing to skip, or one space: as nearly always.
        ch = text[pos : pos + 1]
        if ch in _NO_SPACE:
            return pos
        if ch == " " and text[pos + 1 : pos + 2] in _NO_SPACE:
            return pos + 1

        while True:
            pos = space_end(text, pos)
            if pos >= self.size or (ch := text[pos]) in _NO_SPACE:
                return pos
            if (ch == "/" and text[pos + 1 : pos + 2] in ("/", "*")) or (
                ch == "#" and (pos == 0 or text[pos - 1] in " \t\n")
            ):
                pos = self._comment(pos)
            elif odd_space := _ODD_SPACE.match(text, pos):
                self.edit(pos, odd_space.end(), " ", "rjson.odd-space")
                pos = odd_space.end()
            else:
                return pos

    def _comment(self, pos: int) -> int:
        if self.text.startswith("/*", pos):
            end = self.text.find("*/", pos + 2)
            if end < 0:
                raise Refusal("decode.truncated-value", "a comment is not closed", pos)
            end += 2
        else:
            # The line feed stays: it is white space, and may be what separates two items.
            end = self.text.find("\n", pos)
            if end < 0:
                end = self.size
                # A sign that begins no comment would take the rest of the value with it.
                if HOLDS_JSON.search(self.text, pos):
                    message = "a comment to the end of the text would hold a part of the value"
                    raise Refusal("decode.ambiguous", message, pos)

        self.edit(pos, end, "", "rjson.comment")
        return end

    # the walk

    def find_value(self, pos: int) -> int:
        """Return the offset after the value that begins at `pos`.

        Its opening brace may be missing before a member.
        """
        text = self.text
        headless = text[pos] in "\"'" and _HEADLESS.match(text, pos) is not None
        if headless:
            self.edit(pos, pos, "{", "rjson.missing-opener")
        self._stack = stack = ["{"] if headless else []
        state = _MEMBER if headless else _VALUE
        self._comma = -1
        pos = self.skip(pos)

        while state == _VALUE or stack:
            if state == _VALUE:
                pos, state = self._value(pos)
                continue

            ch = text[pos : pos + 1]
            if ch not in _SIGNS:
                pos = self.skip(pos)
                ch = text[pos : pos + 1]
            if ch == "}" or ch == "]":
                pos = self._close(pos, ch)
                state = _AFTER
            elif state == _MEMBER:
                pos, state = self._member(pos, ch)
            elif ch == ",":
                pos = self._pass_clean_run(pos + 1, pos)
                state = _MEMBER
            elif ch == "":
                self._missing_end()
                pos = self.size
            else:
                if not item_begins(text, pos, stack[-1]):
                    message = f"expected a comma or a closing bracket, got {text[pos]!r}"
                    raise Refusal("decode.json", message, pos)
                self.edit(pos, pos, ",", "rjson.missing-comma")
                state = _MEMBER

        self.values += 1
        return pos

    def _value(self, pos: int) -> tuple[int, int]:
        # A scalar, a container that is clean as a whole, or the opener of one that is not.
        stack = self._stack
        top = stack[-1] if stack else ""
        ch = self.text[pos : pos + 1]
        if ch != "{" and ch != "[":
            return self._scalar(pos, top), _AFTER

        if len(stack) >= self.max_depth:
            raise Refusal("decode.too-deep", f"nested deeper than {self.max_depth}", pos)

        end = self.clean.end(pos, len(stack), items=top == "[")
        if end >= 0:
            return end, _AFTER

        stack.append(ch)
        return self._pass_clean_run(pos + 1, -1), _MEMBER

    def _member(self, pos: int, ch: str) -> tuple[int, int]:
        if ch == "":
            raise Refusal("decode.truncated-value", "the text ends inside a value", self.size)
        if ch == ",":
            if self._stack[-1] == "[":
                raise Refusal("decode.ambiguous", "an array item is missing", pos)
            self.edit(pos, pos + 1, "", "rjson.extra-comma")
            return pos + 1, _MEMBER

        self._comma = -1
        if self._stack[-1] == "{":
            pos = self._key(pos)

        return pos, _VALUE

    def _pass_clean_run(self, pos: int, comma: int) -> int:
        # comma: the one before `pos`, -1 for none. It, or the last one of the run, is remembered.
        pattern = _ARRAY_RUN if self._stack[-1] == "[" else _OBJECT_RUN
        # Where one level more is too deep, even a flat array is: members are looked at one by one.
        run = pattern.match(self.text, pos) if len(self._stack) < self.max_depth else None
        end = run.end() if run else pos
        self._comma = end - 1 if end > pos else comma
        return end

    def _close(self, pos: int, ch: str) -> int:
        # Closes the container that the bracket belongs to, and those left open inside.
        stack = self._stack
        if self._comma >= 0:
            self.edit(self._comma, self._comma + 1, "", "rjson.trailing-comma")
            self._comma = -1

        opener = _OPENER_OF[ch]
        if stack[-1] != opener and opener not in stack:
            raise Refusal("decode.ambiguous", f"{ch!r} closes what {stack[-1]!r} opened", pos)

        while stack[-1] != opener:
            self.edit(pos, pos, _CLOSER_OF[stack.pop()], "rjson.missing-bracket")

        stack.pop()
        return pos + 1

    def _missing_end(self) -> None:
        if not self.closed:
            raise Refusal("decode.truncated-value", "the text ends inside a value", self.size)

        end = len(self.text.rstrip())
        if self.text[end - 1 : end] in _VALUE_IS_DUE:
            message = "the text ends where a value was about to begin"
            raise Refusal("decode.truncated-value", message, end)
        if self.text[end - 1].isdigit() and not self.numbers_end:
            raise Refusal("decode.truncated-value", "the text ends in a number that may go on", end)

        closers = "".join(_CLOSER_OF[opener] for opener in reversed(self._stack))
        self.edit(end, end, closers, "rjson.missing-bracket")
        self._stack.clear()

    # keys and scalars

    def _key(self, pos: int) -> int:
        # The key, its colon and the space after it.
        text = self.text
        head = _PAIR_HEAD.match(text, pos)
        if head:
            return self.skip(head.end())

        ch = text[pos]
        if ch == '"':
            end = read_double(text, pos, self.edits, key=True)
        elif ch in FOREIGN:
            end = read_foreign(text, pos, self.edits, key=True)
        else:
            name = _BARE_KEY.match(text, pos)
            if not name:
                raise Refusal("decode.json", f"expected a key, got {ch!r}", pos)
            end = name.end()
            self.edit(pos, pos, '"', "rjson.unquoted-key")
            self.edit(end, end, '"', "rjson.unquoted-key")

        end = self.skip(end)
        if end >= self.size:
            raise Refusal("decode.truncated-value", "the text ends after a key", end)
        if text[end] != ":":
            if _NEXT_STRICT.match(text, end):
                self.edit(end, end, ":", "rjson.missing-colon")
                return end
            raise Refusal("decode.json", f"expected a colon after the key, got {text[end]!r}", end)

        return self.skip(end + 1)

    def _scalar(self, pos: int, top: str) -> int:
        # top: the bracket around it, "" at the top level.
        text = self.text
        if pos >= self.size:
            raise Refusal("decode.truncated-value", "the text ends where a value should be", pos)

        ch = text[pos]
        if ch == '"':
            if text.startswith('"""', pos):
                return read_triple(text, pos, self.edits)
            end = read_double(text, pos, self.edits, key=False, top=top)
            while plus := PLUS_STRING.match(text, end - 1):  # `"a" + "b"` is one string
                self.edit(end - 1, plus.end(), "", "rjson.joined-strings")
                end = read_double(text, plus.end() - 1, self.edits, key=False, top=top)
            return end

        strict = _STRICT_SCALAR.match(text, pos)
        if strict:
            return strict.end()
        if ch in FOREIGN:
            return read_foreign(text, pos, self.edits, key=False)
        return self._bare(pos, top)

    # values without quotes

    def _bare(self, pos: int, top: str) -> int:
        # A literal of another language, a loose number, or words.
        text = self.text
        match = _BARE.match(text, pos)
        if not match:
            raise Refusal("decode.json", f"expected a value, got {text[pos]!r}", pos)

        word, end = match[0], match.end()
        if not any(map(str.isalnum, word)):
            raise Refusal("decode.ambiguous", f"{word} stands where a value should be", pos)

        lower = word.lower()
        if lower in NO_JSON:
            raise Refusal("decode.ambiguous", f"JSON has no {word}", pos)
        if lower in _LITERALS:
            self.edit(pos, end, _LITERALS[lower], "rjson.python-literal")
            return end
        if word[0] in _NUMBER_SIGNS and _LOOSE_NUMBER.match(word):
            self._loose_number(pos, end, word)
            return end

        # In an object a value goes on to the comma, the bracket or the end of the line.
        if top == "{" and (line := _BARE_LINE.match(text, pos)):
            end = pos + len(line[0].rstrip())
        if text[end : end + 1] in _RUNS_INTO:
            message = f"a bare word runs into {text[end : end + 1]!r}"
            raise Refusal("decode.ambiguous", message, end)
        if end >= self.size and (top or not self.numbers_end):
            message = "the text ends in a bare word that may go on"
            raise Refusal("decode.truncated-value", message, end)
        words = text[pos:end]
        if "\\" in words:
            raise Refusal("decode.ambiguous", "a bare word with a backslash", pos)
        if "<" in words and ">" in words:
            raise Refusal("decode.ambiguous", "a bare word with a tag, which may be a quote", pos)

        self.edit(pos, pos, '"', "rjson.unquoted-value")
        for offset, ch in enumerate(words, pos):
            if ch < " ":
                self.edit(offset, offset + 1, escape_control(ch), "rjson.raw-control")
        self.edit(end, end, '"', "rjson.unquoted-value")
        return end

    def _loose_number(self, pos: int, end: int, word: str) -> None:
        # +5, .5 and 5.
        digits = word.lstrip("+-")
        if len(digits) > 1 and digits[0] == "0" and digits[1].isdigit():
            message = f"{word} may be a number or text with a leading zero"
            raise Refusal("decode.ambiguous", message, pos)
        if end >= self.size and not self.numbers_end:
            message = "the text ends in a number that may go on"
            raise Refusal("decode.truncated-value", message, end)

        if word[0] == "+":
            self.edit(pos, pos + 1, "", "rjson.loose-number")

        before, point, after = word.partition(".")
        if point:
            at = pos + len(before)
            if not before.lstrip("+-"):
                self.edit(at, at, "0", "rjson.loose-number")
            if not after[:1].isdigit():
                self.edit(at + 1, at + 1, "0", "rjson.loose-number")


# looking for the values


class _Search(Damage):
    # Looks for the values in a text, and for the damage of each.

    _prose = False  # whether words around the values may be dropped
    _tries = 0  # brackets in prose that began no JSON

    def run(self, prose: bool) -> int:
        # The number of values. Each turn passes one, or one thing that is none, and at least one
        # character.
        self._prose, text = prose, self.text
        pos = self.skip(0)
        while pos < self.size:
            ch = text[pos]
            if text.startswith(_FENCE, pos):
                pos = self._fenced(pos)
            elif ch in "{[" or (not self.values and _VALUE_START.match(text, pos)):
                pos = self._value_or_prose(pos)
            else:
                pos = self._between(pos, ch)

        return self.values

    def _fenced(self, pos: int) -> int:
        text = self.text
        opener = _FENCE_OPEN.match(text, pos)
        inside = opener.end() if opener else pos + len(_FENCE)  # it always matches backticks
        self.edit(pos, inside, "", "rjson.fence")
        pos = self.skip(inside)
        if pos < self.size and not text.startswith(_FENCE, pos):
            pos = self.find_value(pos)

        closer = _FENCE_CLOSE.match(text, pos)
        if closer:
            self.edit(pos, closer.end(), "", "rjson.fence")
            pos = closer.end()

        return self.skip(pos)

    def _between(self, pos: int, ch: str) -> int:
        if self.values and ch in "}]":
            self.edit(pos, pos + 1, "", "rjson.extra-bracket")
            return self.skip(pos + 1)
        if self.values and ch in ",;":
            self.edit(pos, pos + 1, " ", "rjson.extra-comma")
            return self.skip(pos + 1)

        if not self._prose:
            expected = "the end of the JSON" if self.values else "JSON"
            raise Refusal("decode.json", f"expected {expected}, got {ch!r}", pos)

        end = self._next_start(pos)
        if end < 0:
            if not self.values:
                raise Refusal("decode.json", "there is no JSON in this text", pos)
            end = self.size
        self.edit(pos, end, "", "rjson.prose")
        return end

    def _value_or_prose(self, pos: int) -> int:
        text = self.text
        mark = len(self.edits)
        try:
            end = self.find_value(pos)
        except Refusal:
            self._tries += 1
            may_be_prose = self._prose and self._tries <= _MAX_TRIES and text[pos] in "{["
            may_be_prose = may_be_prose and not _JSON_HEAD.match(text[pos : pos + _HEAD_SIZE])
            start = self._next_start(pos + 1) if may_be_prose else -1
            if start < 0:
                raise
        else:
            return self.skip(end)

        # The walk's edits were made for a value that is none.
        del self.edits[mark:]
        self.clean.forget(pos)
        self.edit(pos, start, "", "rjson.prose")
        return start

    def _next_start(self, pos: int) -> int:
        bracket = _START.search(self.text, pos)
        fence = self.text.find(_FENCE, pos)
        if bracket and (fence < 0 or bracket.start() < fence):
            return bracket.start()

        return fence
