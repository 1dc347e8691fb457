"""Finds the edits that turn damaged JSON text into strict JSON, or refuses.

Nothing is guessed: text that ends early, or that can be read in two ways, ends in a `Refusal`.
"""

from __future__ import annotations

import re

from .lookahead import PLUS_STRING, item_begins
from .quotes import FOREIGN, read_double, read_foreign, read_triple
from .refusal import Refusal as Refusal
from .source import Source
from .strict import CleanParts
from .words import read_bare

# How it works. One forward pass with an explicit stack of the brackets that are open, so that depth
# costs no recursion. The walk is in one of three states, by what may come next:
#
#   _VALUE   a value must begin here
#   _MEMBER  a member, an item, or the bracket that closes the container
#   _AFTER   behind a value: a comma, or the bracket that closes
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
_PLAIN_RUN = re.compile(rf'(?:{_WS}{_STRING}{_WS}:{_WS}{_SCALAR}{_WS},(?={_WS}"))*+')
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

_VALUE, _MEMBER, _AFTER = range(3)


class Damage(Source):
    """One text under repair.

    `find_value(pos)` walks one value and returns the offset behind it.

    clean: the containers that held no damage, with their values.
    """

    def __init__(self, text: str, *, closed: bool, numbers_end: bool, max_depth: int) -> None:
        super().__init__(text, closed=closed, numbers_end=numbers_end)
        self.max_depth = max_depth
        self.clean = CleanParts(text, max_depth)
        self._stack: list[str] = []  # the brackets that are open
        self._comma = -1  # the comma just passed, while nothing followed it

    def find_value(self, pos: int) -> int:
        """Return the offset behind the value that begins at or after `pos`.

        Raises Refusal.
        """
        self._stack = []
        return self._walk(pos, _VALUE)

    def find_members(self, pos: int) -> int:
        """Return the offset behind the members of an object whose opening brace is missing."""
        self._stack = ["{"]
        return self._walk(pos, _MEMBER)

    # the walk

    def _walk(self, pos: int, state: int) -> int:
        """Walk until no bracket is open any more. Returns the offset behind the last one."""
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
            else:
                pos, state = self._without_comma(pos, ch)

        return pos

    def _value(self, pos: int) -> tuple[int, int]:
        """Pass a scalar, a container that is clean as a whole, or the opener of one that is not."""
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
        """Pass a key, or the comma of a member that is not there."""
        if ch == "":
            raise Refusal("decode.truncated-value", "the text ends inside a value", self.size)
        if ch == ",":
            return self._extra_comma(pos), _MEMBER

        self._comma = -1
        if self._stack[-1] == "{":
            pos = self._key(pos)

        return pos, _VALUE

    def _without_comma(self, pos: int, ch: str) -> tuple[int, int]:
        """Add the comma that a value lacks behind it, or the brackets that the end lacks."""
        if ch == "":
            self._missing_end()
            return self.size, _AFTER

        self._missing_comma(pos)
        return pos, _MEMBER

    def _pass_clean_run(self, pos: int, comma: int) -> int:
        """Return the offset behind the whole clean members at `pos`, all passed at once.

        comma: the one before `pos`, -1 for none. It, or the last one of the run, is remembered.
        """
        stack = self._stack
        if stack[-1] == "[":
            pattern = _ARRAY_RUN
        elif len(stack) < self.max_depth:
            pattern = _OBJECT_RUN
        else:
            pattern = _PLAIN_RUN  # one level more, even of a flat array, is too deep

        run = pattern.match(self.text, pos)
        if run and run.end() > pos:
            self._comma = run.end() - 1
            return run.end()

        self._comma = comma
        return pos

    # brackets and commas

    def _close(self, pos: int, ch: str) -> int:
        """Close the container that the bracket at `pos` belongs to, and those left open inside."""
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
        """Add the brackets that the end of a whole text lacks.

        Raises Refusal if it is cut.
        """
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

    def _missing_comma(self, pos: int) -> None:
        """Add a comma before the item that begins at `pos`. Raises Refusal if none does."""
        if not item_begins(self.text, pos, self._stack[-1]):
            message = f"expected a comma or a closing bracket, got {self.text[pos]!r}"
            raise Refusal("decode.json", message, pos)
        self.edit(pos, pos, ",", "rjson.missing-comma")

    def _extra_comma(self, pos: int) -> int:
        """Drop a comma without a member before it. In a list, a missing item is a Refusal."""
        if self._stack[-1] == "[":
            raise Refusal("decode.ambiguous", "an array item is missing", pos)

        self.edit(pos, pos + 1, "", "rjson.extra-comma")
        return pos + 1

    # keys and scalars

    def _key(self, pos: int) -> int:
        """Return the offset of the value behind the key at `pos` and its colon.

        Raises Refusal.
        """
        text = self.text
        head = _PAIR_HEAD.match(text, pos)
        if head:
            return self.skip(head.end())

        end = self.skip(self._key_name(pos))
        if end >= self.size:
            raise Refusal("decode.truncated-value", "the text ends behind a key", end)
        if text[end] != ":":
            if _NEXT_STRICT.match(text, end):
                self.edit(end, end, ":", "rjson.missing-colon")
                return end
            raise Refusal("decode.json", f"expected a colon behind the key, got {text[end]!r}", end)

        return self.skip(end + 1)

    def _key_name(self, pos: int) -> int:
        """Return the offset behind the name at `pos`: in quotes of some kind, or bare."""
        text = self.text
        ch = text[pos]
        if ch == '"':
            end, edits = read_double(text, pos, key=True)
            self.edits += edits
            return end
        if ch in FOREIGN:
            end, edits = read_foreign(text, pos, key=True)
            self.edits += edits
            return end

        name = _BARE_KEY.match(text, pos)
        if not name:
            raise Refusal("decode.json", f"expected a key, got {ch!r}", pos)

        self.edit(pos, pos, '"', "rjson.unquoted-key")
        self.edit(name.end(), name.end(), '"', "rjson.unquoted-key")
        return name.end()

    def _scalar(self, pos: int, top: str) -> int:
        """Return the offset behind the scalar at `pos`. top: the bracket around it.

        Raises Refusal.
        """
        text = self.text
        if pos >= self.size:
            raise Refusal("decode.truncated-value", "the text ends where a value should be", pos)

        ch = text[pos]
        if ch == '"':
            return self._string(pos, top)

        strict = _STRICT_SCALAR.match(text, pos)
        if strict:
            return strict.end()
        if ch in FOREIGN:
            end, edits = read_foreign(text, pos, key=False)
            self.edits += edits
            return end

        return read_bare(self, pos, top)

    def _string(self, pos: int, top: str) -> int:
        """Return the offset behind a string in double or triple quotes.

        `"a" + "b"` is one string.
        """
        text = self.text
        if text.startswith('"""', pos):
            end, edits = read_triple(text, pos)
            self.edits += edits
            return end

        end, edits = read_double(text, pos, key=False, top=top)
        self.edits += edits
        while plus := PLUS_STRING.match(text, end - 1):
            self.edit(end - 1, plus.end(), "", "rjson.joined-strings")
            end, edits = read_double(text, plus.end() - 1, key=False, top=top)
            self.edits += edits

        return end
