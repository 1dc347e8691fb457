"""Finds the edits that turn damaged JSON text into strict JSON, or refuses.

Nothing is guessed: text that ends early, or that can be read in two ways, ends in a `Refusal`.
"""

from __future__ import annotations

import re

from ...core.types import Edit, Span
from ...core.values import space_end
from .quotes import (
    FOREIGN,
    PLUS_STRING,
    escape_control,
    item_begins,
    read_double,
    read_foreign,
    read_triple,
)
from .strict import CleanParts
from .strict import Refusal as Refusal

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
        self.edits: list[Edit] = []
        self.max_depth = max_depth
        self.clean = CleanParts(text, max_depth)
        self._stack: list[str] = []  # the brackets that are open
        self._comma = -1  # the comma just passed, while nothing followed it

    def find_value(self, pos: int, *, members: bool = False) -> int:
        """Return the offset after the value that begins at or after `pos`.

        members: after the members of an object whose opening brace is missing.
        """
        self._stack = ["{"] if members else []
        return self._walk(pos, _MEMBER if members else _VALUE)

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

    def _walk(self, pos: int, state: int) -> int:
        text, stack = self.text, self._stack
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
            end = self._add(*read_double(text, pos, key=True))
        elif ch in FOREIGN:
            end = self._add(*read_foreign(text, pos, key=True))
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

    def _add(self, end: int, edits: list[Edit]) -> int:
        self.edits += edits
        return end

    def _scalar(self, pos: int, top: str) -> int:
        # top: the bracket around it, "" at the top level.
        text = self.text
        if pos >= self.size:
            raise Refusal("decode.truncated-value", "the text ends where a value should be", pos)

        ch = text[pos]
        if ch == '"':
            if text.startswith('"""', pos):
                return self._add(*read_triple(text, pos))
            end = self._add(*read_double(text, pos, key=False, top=top))
            while plus := PLUS_STRING.match(text, end - 1):  # `"a" + "b"` is one string
                self.edit(end - 1, plus.end(), "", "rjson.joined-strings")
                end = self._add(*read_double(text, plus.end() - 1, key=False, top=top))
            return end

        strict = _STRICT_SCALAR.match(text, pos)
        if strict:
            return strict.end()
        if ch in FOREIGN:
            return self._add(*read_foreign(text, pos, key=False))
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
