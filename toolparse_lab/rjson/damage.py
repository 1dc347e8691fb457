"""Finds the edits that turn damaged JSON text into strict JSON, or refuses.

One forward pass with an explicit stack. Clean stretches are skipped by one regular expression, so the cost is the
damage, not the text. Each kind of damage is one small method named after its rule. Nothing is guessed: text that is
cut off, or that can be read in two ways, ends in a `Refusal`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..types import Edit, Span
from ..values import space_end
from .quotes import ESCAPE, QUOTES, escape_control, read_quoted, refuse_two_readings
from .refusal import Refusal as Refusal
from .strict import CleanParts

_WS = r"[ \t\n\r]*+"
_STRING = r'"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+"'
_NUMBER = r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?(?![\w.+\-])"
_SCALAR = rf"(?:{_STRING}|{_NUMBER}|(?:true|false|null)(?![\w.\-]))"
# A run of whole members or items, each with its comma; stops before anything that is not plainly clean.
_PLAIN_RUN = re.compile(rf'(?:{_WS}{_STRING}{_WS}:{_WS}{_SCALAR}{_WS},(?={_WS}"))*+')
_FLAT_ARRAY = rf"\[{_WS}(?:{_SCALAR}{_WS}(?:,{_WS}{_SCALAR}{_WS})*+)?\]"
_OBJECT_RUN = re.compile(rf'(?:{_WS}{_STRING}{_WS}:{_WS}(?:{_SCALAR}|{_FLAT_ARRAY}){_WS},(?={_WS}"))*+')
_ARRAY_RUN = re.compile(rf"(?:{_WS}{_SCALAR}{_WS},(?={_WS}[^\],\s]))*+")
_PAIR_HEAD = re.compile(rf"{_STRING}{_WS}:")
_STRICT_SCALAR = re.compile(_SCALAR)
_ODD_SPACE = re.compile("[\x0b\x0c\x85\xa0\u1680\u2000-\u200b\u2028\u2029\u202f\u205f\u3000\ufeff]+")
_BARE = re.compile(r"[^\s\"'“”„‘’,:{}\[\]()`]+")
_BARE_LINE = re.compile(r"[^\"“”„,:{}\[\]()`\n\r]+")
_BARE_KEY = re.compile(r"[^\W\d][\w.\-$]*|\$[\w.\-$]+|\d+(?=\s*:)")
_NEXT_KEY = re.compile(r"""\s*(?:"(?:[^"\\\n]|\\.)*+"|'(?:[^'\\\n]|\\.)*+'|“[^”\n]*+”|[^\W\d][\w.\-]*+)\s*:""")
_NEXT_VALUE = re.compile(r"""\s*(?:["'“{\[\-\d]|(?:true|false|null|True|False|None)\b)""")
_LOOSE_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\Z")
_LITERALS = {"true": "true", "false": "false", "null": "null", "none": "null"}
_NO_JSON = {"nan", "infinity", "-infinity", "+infinity", "inf", "-inf", "+inf", "undefined"}
_IN_STRING = re.compile(r'["\\\x00-\x1f]')
_VALUE, _MEMBER, _AFTER = range(3)  # what may come next: a value, a member or its bracket, a comma or bracket
_SIGNS = frozenset('{}[],:"')
_PLUS_STRING = re.compile(r'"\s*\+\s*"')


@dataclass(slots=True)
class Found:
    """One JSON value in the text: its span before the edits."""

    start: int
    end: int


class Damage:
    """The edits of one text. `find_value(pos)` walks one value and returns the offset behind it."""

    def __init__(self, text: str, *, closed: bool, numbers_end: bool, max_depth: int) -> None:
        self.text = text
        self.size = len(text)
        self.closed = closed  # the text is known to be whole, so missing brackets may be added at its end
        self.numbers_end = numbers_end  # a number at the very end is known to be whole too
        self.max_depth = max_depth
        self.edits: list[Edit] = []
        self.clean = CleanParts(text, max_depth)

    def edit(self, start: int, end: int, text: str, rule: str) -> None:
        self.edits.append(Edit(Span(start, end), text, rule))

    # white space and comments

    def skip(self, pos: int) -> int:
        """The next offset that is neither white space nor comment; those JSON does not know become edits."""
        text = self.text
        ch = text[pos : pos + 1]
        if " " < ch <= "~" and ch != "/" and ch != "#":
            return pos  # what nearly always stands there
        while True:
            pos = space_end(text, pos)
            if pos >= self.size:
                return pos
            ch = text[pos]
            if (ch == "/" and text[pos + 1 : pos + 2] in ("/", "*")) or (
                ch == "#" and (pos == 0 or text[pos - 1] in " \t\n")
            ):
                pos = self.comment(pos)
            elif ch > "~" or ch in "\x0b\x0c":
                odd = _ODD_SPACE.match(text, pos)
                if not odd:
                    return pos
                self.edit(pos, odd.end(), " ", "rjson.odd-space")
                pos = odd.end()
            else:
                return pos

    def comment(self, pos: int) -> int:
        if self.text.startswith("/*", pos):
            end = self.text.find("*/", pos + 2)
            if end < 0:
                raise Refusal("decode.truncated-value", "a comment is not closed", pos)
            end += 2
        else:
            end = self.text.find("\n", pos)
            end = self.size if end < 0 else end
        self.edit(pos, end, "", "rjson.comment")
        return end

    # the walk

    def find_value(self, pos: int) -> int:
        """Walks the value that begins at or after `pos`; returns the offset behind it. Raises Refusal."""
        return self.walk(pos, [], _VALUE)

    def find_members(self, pos: int) -> int:
        """Walks the members of an object whose opening brace is missing."""
        return self.walk(pos, ["{"], _MEMBER)

    def walk(self, pos: int, stack: list[str], state: int) -> int:
        text = self.text
        comma = -1  # the comma just read, while nothing followed it
        pos = self.skip(pos)
        while True:
            if state == _VALUE:
                ch = text[pos : pos + 1]
                if ch != "{" and ch != "[":
                    pos = self.scalar(pos, stack[-1] if stack else "")
                    state = _AFTER
                    continue
                if len(stack) >= self.max_depth:
                    raise Refusal("decode.too-deep", f"nested deeper than {self.max_depth}", pos)
                end = self.clean.end(pos, len(stack), items=bool(stack) and stack[-1] == "[")
                if end >= 0:
                    pos = end
                    state = _AFTER
                    continue
                stack.append(ch)
                comma, pos = self.clean_run(-1, pos + 1, stack)
                state = _MEMBER
                continue
            if not stack:
                return pos
            ch = text[pos : pos + 1]
            if ch not in _SIGNS:
                pos = self.skip(pos)
                ch = text[pos : pos + 1]
            if ch == "}" or ch == "]":
                pos = self.close(pos, ch, stack, comma)
                comma = -1
                state = _AFTER
            elif state == _MEMBER:
                if ch == "":
                    raise Refusal("decode.truncated-value", "the text ends inside a value", self.size)
                if ch == ",":
                    pos = self.extra_comma(pos, stack[-1])
                    continue
                comma = -1
                if stack[-1] == "{":
                    pos = self.key(pos)
                state = _VALUE
            elif ch == ",":
                comma, pos = self.clean_run(pos, pos + 1, stack)
                state = _MEMBER
            elif ch == "":
                self.missing_end(stack)
                return self.size
            else:
                self.missing_comma(pos, stack[-1])
                state = _MEMBER

    def clean_run(self, comma: int, pos: int, stack: list[str]) -> tuple[int, int]:
        """Skips whole clean members at once; returns the last comma and the offset behind it."""
        pattern = _ARRAY_RUN if stack[-1] == "[" else _OBJECT_RUN if len(stack) < self.max_depth else _PLAIN_RUN
        run = pattern.match(self.text, pos)
        if run and run.end() > pos:
            return run.end() - 1, run.end()
        return comma, pos

    def close(self, pos: int, ch: str, stack: list[str], comma: int) -> int:
        want = "}" if stack[-1] == "{" else "]"
        if comma >= 0:
            self.trailing_comma(comma)
        if ch != want:
            other = "{" if ch == "}" else "["
            if other in stack:
                while stack[-1] != other:
                    self.edit(pos, pos, "}" if stack.pop() == "{" else "]", "rjson.missing-bracket")
            else:
                raise Refusal("decode.ambiguous", f"{ch!r} closes what {stack[-1]!r} opened", pos)
        stack.pop()
        return pos + 1

    def missing_end(self, stack: list[str]) -> None:
        if not self.closed:
            raise Refusal("decode.truncated-value", "the text ends inside a value", self.size)
        end = len(self.text.rstrip())
        if self.text[end - 1 : end] in ("{", "[", ":"):
            raise Refusal("decode.truncated-value", "the text ends where a value was about to begin", end)
        if self.text[end - 1].isdigit() and not self.numbers_end:
            raise Refusal("decode.truncated-value", "the text ends in a number that may go on", end)
        tail = "".join("}" if b == "{" else "]" for b in reversed(stack))
        self.edit(end, end, tail, "rjson.missing-bracket")
        stack.clear()

    def trailing_comma(self, comma: int) -> None:
        self.edit(comma, comma + 1, "", "rjson.trailing-comma")

    def missing_comma(self, pos: int, top: str) -> None:
        pattern = _NEXT_KEY if top == "{" else _NEXT_VALUE
        if not pattern.match(self.text, pos):
            raise Refusal("decode.json", f"expected a comma or a closing bracket, got {self.text[pos]!r}", pos)
        self.edit(pos, pos, ",", "rjson.missing-comma")

    def extra_comma(self, pos: int, top: str) -> int:
        if top == "[":
            raise Refusal("decode.ambiguous", "an array item is missing", pos)
        self.edit(pos, pos + 1, "", "rjson.extra-comma")
        return pos + 1

    # keys and scalars

    def key(self, pos: int) -> int:
        text = self.text
        head = _PAIR_HEAD.match(text, pos)
        if head:
            return self.skip(head.end())
        ch = text[pos]
        if ch == '"':
            end = self.string(pos, key=True)
        elif ch in QUOTES:
            end = self.quoted(pos, key=True)
        else:
            m = _BARE_KEY.match(text, pos)
            if not m:
                raise Refusal("decode.json", f"expected a key, got {ch!r}", pos)
            end = m.end()
            self.edit(pos, pos, '"', "rjson.unquoted-key")
            self.edit(end, end, '"', "rjson.unquoted-key")
        end = self.skip(end)
        if end >= self.size:
            raise Refusal("decode.truncated-value", "the text ends behind a key", end)
        if text[end] != ":":
            raise Refusal("decode.json", f"expected a colon behind the key, got {text[end]!r}", end)
        return self.skip(end + 1)

    def scalar(self, pos: int, top: str) -> int:
        text = self.text
        if pos >= self.size:
            raise Refusal("decode.truncated-value", "the text ends where a value should be", pos)
        ch = text[pos]
        if ch == '"':
            if text.startswith('"""', pos):
                return self.triple_quotes(pos)
            end = self.string(pos, key=False, top=top)
            return self.joined(end, top)
        m = _STRICT_SCALAR.match(text, pos)
        if m:
            return m.end()
        if ch in QUOTES:
            return self.quoted(pos, key=False)
        return self.bare(pos, top)

    def bare(self, pos: int, top: str) -> int:
        """A value without quotes: a literal of another language, a loose number, or a word."""
        text = self.text
        m = _BARE.match(text, pos)
        if not m:
            raise Refusal("decode.json", f"expected a value, got {text[pos]!r}", pos)
        word, end = m[0], m.end()
        lower = word.lower()
        if lower in _NO_JSON:
            raise Refusal("decode.ambiguous", f"JSON has no {word}", pos)
        if lower in _LITERALS:
            self.edit(pos, end, _LITERALS[lower], "rjson.python-literal")
            return end
        if word[0] in "+-.0123456789" and _LOOSE_NUMBER.match(word):
            return self.loose_number(pos, end, word)
        if top == "{":
            # Inside an object the value can only go on to the next comma, bracket or line end.
            line = _BARE_LINE.match(text, pos)
            end = pos + len(line[0].rstrip()) if line else end
            word = text[pos:end]
        follow = self.text[end : end + 1]
        if follow in ("(", ":", '"', "`"):
            raise Refusal("decode.ambiguous", f"a bare word runs into {follow!r}", end)
        if end >= self.size and (top or not self.numbers_end):
            raise Refusal("decode.truncated-value", "the text ends in a bare word that may go on", end)
        if "\\" in word:
            raise Refusal("decode.ambiguous", "a bare word with a backslash", pos)
        self.edit(pos, pos, '"', "rjson.unquoted-value")
        for i in range(pos, end):
            if text[i] < " ":
                self.edit(i, i + 1, escape_control(text[i]), "rjson.raw-control")
        self.edit(end, end, '"', "rjson.unquoted-value")
        return end

    def loose_number(self, pos: int, end: int, word: str) -> int:
        digits = word.lstrip("+-")
        if len(digits) > 1 and digits[0] == "0" and digits[1].isdigit():
            raise Refusal("decode.ambiguous", f"{word} may be a number or text with a leading zero", pos)
        if end >= self.size and not self.numbers_end:
            raise Refusal("decode.truncated-value", "the text ends in a number that may go on", end)
        if word[0] == "+":
            self.edit(pos, pos + 1, "", "rjson.loose-number")
        dot = word.find(".")
        if dot >= 0 and not word[:dot].lstrip("+-"):
            self.edit(pos + dot, pos + dot, "0", "rjson.loose-number")
        if dot >= 0 and not word[dot + 1 : dot + 2].isdigit():
            self.edit(pos + dot + 1, pos + dot + 1, "0", "rjson.loose-number")
        return end

    # strings

    def joined(self, end: int, top: str) -> int:
        """`"a" + "b"` is one string."""
        while True:
            m = _PLUS_STRING.match(self.text, end - 1)
            if not m:
                return end
            self.edit(end - 1, m.end(), "", "rjson.joined-strings")
            end = self.string(m.end() - 1, key=False, top=top)

    def string(self, pos: int, *, key: bool, top: str = "") -> int:
        """A string in double quotes; returns the offset behind its closing quote."""
        text = self.text
        bad: list[int] = []  # backslashes that begin no escape
        good_letters = False
        edits: list[Edit] = []
        i = pos + 1
        while True:
            m = _IN_STRING.search(text, i)
            if not m:
                raise Refusal("decode.truncated-value", "a string is not closed", pos)
            at = m.start()
            ch = m[0]
            if ch == '"':
                if self.string_ends(at, key=key, top=top):
                    break
                edits.append(Edit(Span(at, at + 1), '\\"', "rjson.unescaped-quote"))
                i = at + 1
            elif ch == "\\":
                esc = ESCAPE.match(text, at)
                if esc:
                    good_letters = good_letters or text[at + 1] in "bfnrtu"
                    i = esc.end()
                elif text[at + 1 : at + 2] == "'":
                    edits.append(Edit(Span(at, at + 1), "", "rjson.escaped-apostrophe"))
                    i = at + 2
                else:
                    bad.append(at)
                    edits.append(Edit(Span(at, at), "\\", "rjson.bad-escape"))
                    i = at + 1
            else:
                edits.append(Edit(Span(at, at + 1), escape_control(ch), "rjson.raw-control"))
                i = at + 1
        refuse_two_readings(text, bad, good_letters)
        self.edits.extend(edits)
        return at + 1

    def triple_quotes(self, pos: int) -> int:
        """A string between three quotes on each side, as Python writes texts of several lines."""
        text = self.text
        end = text.find('"""', pos + 3)
        if end < 0:
            raise Refusal("decode.truncated-value", "a string in triple quotes is not closed", pos)
        self.edit(pos, pos + 3, '"', "rjson.triple-quotes")
        i = pos + 3
        while m := _IN_STRING.search(text, i, end):
            at = m.start()
            i = at + 1
            if m[0] == '"':
                self.edit(at, at + 1, '\\"', "rjson.triple-quotes")
            elif m[0] != "\\":
                self.edit(at, at + 1, escape_control(m[0]), "rjson.raw-control")
            elif esc := ESCAPE.match(text, at):
                i = esc.end()
            else:
                self.edit(at, at, "\\", "rjson.bad-escape")
        self.edit(end, end + 3, '"', "rjson.triple-quotes")
        return end + 3

    def string_ends(self, at: int, *, key: bool, top: str) -> bool:
        """Whether the quote at `at` closes its string, by what follows it."""
        text = self.text
        after = space_end(text, at + 1)
        ch = text[after : after + 1]
        if key:
            return True
        if ch == "" or not top:
            return True
        if ch == "}" or ch == "]":
            return True
        if ch == ",":
            if top == "{":
                rest = self.after_comma(after + 1)
                return rest == "" or rest in "}]" or bool(_NEXT_KEY.match(text, after + 1))
            rest = self.after_comma(after + 1)
            return rest == "" or rest in "]}" or bool(_NEXT_VALUE.match(text, after + 1))
        if ch == "/" and text[after + 1 : after + 2] in ("/", "*"):
            return True
        if ch == "+":
            return bool(_PLUS_STRING.match(text, at))
        # A missing comma: the next member begins right here.
        return bool((_NEXT_KEY if top == "{" else _NEXT_VALUE).match(text, after))

    def after_comma(self, pos: int) -> str:
        end = space_end(self.text, pos)
        if self.text[end : end + 2] in ("//", "/*"):
            return ""
        return self.text[end : end + 1]

    def quoted(self, pos: int, *, key: bool) -> int:
        end, edits = read_quoted(self.text, pos, key=key)
        self.edits.extend(edits)
        return end
