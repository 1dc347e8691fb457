"""The relaxed dialect: JSON with comments, trailing commas, single quotes and bare words, read by
fixed rules.

Unlike `repair` it guesses nothing and repairs nothing: a construct that the dialect does not have
is a typed error with its position. A bare word is a string, so ``True`` is the text "True" here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from ...core.errors import BadOptions, RJSONParseError
from ...core.values import Value, number, plain_number, read_plain, write_canonical
from .strict import read_unique

_DEFAULT_DEPTH = 1000
_BUT_WHITE_SPACE = re.compile(r"[^\t\n\r ]")
_BUT_LINE_FEEDS = re.compile(r"[^\n]")

Reviver = Callable[[str, Any], Any]


def parse(
    text: str,
    *,
    relaxed: bool = True,
    tolerant: bool = False,
    warnings: bool = False,
    duplicate: bool = False,
    reviver: Reviver | None = None,
    max_depth: int = _DEFAULT_DEPTH,
) -> Any:
    """Return the value of relaxed JSON text.

    relaxed=False reads strict JSON only.

    Args:
        duplicate: a key may stand twice, and the last one wins. tolerant (and warnings, which means
            the same): reads on behind errors, then raises one RJSONParseError with `.warnings`,
            `.line` of the first and `.obj`, what could be read. reviver(key, value) replaces each
            value, innermost first.

    Raises RJSONParseError with `.line`, `.column` and `.position`.

    >>> parse("{a: 1, b: 'it\\\\'s', /* c */ d: [x, 007,],}")
    {'a': 1, 'b': "it's", 'd': ['x', '007']}
    """
    if not isinstance(text, str):
        raise BadOptions("relaxed JSON is text", got=type(text).__name__, expected="str")

    # Text with more brackets may nest too deep; the slow reader counts.
    is_strict = text.count("[") + text.count("{") <= max_depth
    try:
        if is_strict and not duplicate:
            read_unique(text)
        value = read_plain(text) if is_strict else None
    except ValueError:
        is_strict = False
    if not is_strict:
        is_tolerant = tolerant or warnings
        value = _Reader(
            text, relaxed=relaxed, tolerant=is_tolerant, duplicate=duplicate, max_depth=max_depth
        ).read()
    return value if reviver is None else _revive(value, reviver)


def transform(text: str) -> str:
    """Return relaxed JSON as strict JSON, of the same length if possible.

    Comments and trailing commas become white space, other quotes double ones. Raises
    RJSONParseError for a character that begins no token.

    >>> transform("{a: 1, /* x */}")
    '{"a": 1         }'
    """
    out: list[str] = []
    comma = -1  # where in `out` the last comma is, while only white space followed it
    is_opened = True  # nothing stood between the last opener and that comma

    for start, kind, raw in _lexemes(text, _RELAXED):
        if kind == "space":
            out.append(_BUT_WHITE_SPACE.sub(" ", raw))
            continue
        if kind == "comment":
            out.append(_BUT_LINE_FEEDS.sub(" ", raw))
            continue

        if raw in ("]", "}") and comma >= 0 and not is_opened:
            out[comma] = " "
        if raw == ",":
            comma = len(out)
        else:
            comma = -1
            is_opened = raw in ("[", "{")

        out.append(_token_of(text, start, kind, raw).text)

    return "".join(out)


def stringify(value: object) -> str:
    """Return a value as strict JSON text with sorted keys, compact.

    Raises BadOptions for values that JSON cannot carry.

    >>> stringify({"b": [1, 2.5], "a": None})
    '{"a":null,"b":[1,2.5]}'
    """
    root: dict[str, Any] = {"": value}
    for box, key in _places(root):
        node = box[key]
        if isinstance(node, dict):
            box[key] = {str(k): node[k] for k in sorted(node, key=str)}
        elif isinstance(node, (list, tuple)):
            box[key] = list(node)
    try:
        return write_canonical(root[""])
    except (TypeError, ValueError) as error:
        raise BadOptions("this is no JSON value", got=str(error)) from None


def _revive(value: Any, reviver: Reviver) -> Any:
    root: dict[str, Any] = {"": value}
    # Backwards, so that what a container holds comes before it.
    for box, key in reversed(list(_places(root))):
        box[key] = reviver(str(key), box[key])
    return root[""]


def _places(root: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    # Yields the container and the key of each value in `root`, those of containers before those of
    # what they hold. A value that is replaced there is gone on from.
    stack: list[tuple[Any, Any]] = [(root, "")]
    while stack:
        box, key = stack.pop()
        yield box, key
        node = box[key]
        if isinstance(node, dict):
            stack.extend((node, k) for k in reversed(node))
        elif isinstance(node, list):
            stack.extend((node, i) for i in range(len(node) - 1, -1, -1))


# tokens

_SPACE = "\t\n\v\f\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
# Each alternative is a kind of lexeme, named; the first one that matches wins, so that a comment is
# none where a string or word has already begun.
_RELAXED = re.compile(
    rf"""(?P<space>[{_SPACE}]+)"""
    r"""|(?P<string>"(?:[^"\\\x00-\x1f]|\\.)*+")"""
    r"""|(?P<punct>[{}\[\],:])"""
    r"""|(?P<comment>//[^\n]*|/\*.*?\*/)"""
    r"""|(?P<single>'(?:[^'\\\x00-\x1f]|\\.)*+')"""
    r"""|(?P<word>[$a-zA-Z0-9_\-+.*?!|&%^/#\\]+)""",
    re.DOTALL,
)
_STRICT = re.compile(
    r"""(?P<space>[\t\n\r ]+)|(?P<string>"(?:[^"\\\x00-\x1f]|\\.)*+")|(?P<punct>[{}\[\],:])"""
    r"""|(?P<word>[a-z]+|-?[0-9][0-9.eE+\-]*)""",
    re.DOTALL,
)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_ATOMS: Final = {"true": True, "false": False, "null": None}
_SINGLE_ESCAPE = re.compile(r"\\(.)|\"", re.DOTALL)
_SCALARS = ("atom", "string", "number")
_OPENERS = ("{", "[")
_VALUES = (*_SCALARS, *_OPENERS)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str  # string, number, atom, one of {}[],: or eof
    value: Value
    text: str  # the strict JSON for it
    start: int

    def __str__(self) -> str:
        if self.kind in _SCALARS:
            return f"{self.kind} {write_canonical(self.value)}"
        return "end of text" if self.kind == "eof" else f"'{self.kind}'"


def _lexemes(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[int, str, str]]:
    # (start, kind, raw) of every lexeme, white space and comments too.
    pos = 0
    while pos < len(text):
        match = pattern.match(text, pos)
        if not match:
            raise _unexpected_character(text, pos, text[pos : pos + 100])

        yield pos, str(match.lastgroup), match[0]
        pos = match.end()


def _token_of(text: str, start: int, kind: str, raw: str) -> _Token:
    if kind == "punct":
        return _Token(raw, None, raw, start)
    if kind == "word":
        if raw in _ATOMS:
            return _Token("atom", _ATOMS[raw], raw, start)
        if not _NUMBER.fullmatch(raw):
            return _Token("string", raw, write_canonical(raw), start)
        try:
            value = number(raw)
        except ValueError as error:
            raise _error_at(text, start, f"Bad number: {error}") from None
        plain = value if isinstance(value, int) else plain_number(value)
        return _Token("number", plain, raw, start)

    quoted = f'"{_SINGLE_ESCAPE.sub(_as_in_double_quotes, raw[1:-1])}"' if kind == "single" else raw
    try:
        return _Token("string", json.loads(quoted), quoted, start)
    except ValueError as error:
        raise _error_at(text, start, f"Bad string: {error}") from None


def _as_in_double_quotes(match: re.Match[str]) -> str:
    if match[0] == '"':
        return '\\"'
    return "'" if match[1] == "'" else match[0]


def _tokens_of(text: str, *, relaxed: bool) -> list[_Token]:
    tokens: list[_Token] = []
    for start, kind, raw in _lexemes(text, _RELAXED if relaxed else _STRICT):
        if kind in ("space", "comment"):
            continue
        token = _token_of(text, start, kind, raw)
        if not relaxed and kind == "word" and token.kind == "string":
            raise _unexpected_character(text, start, raw[:100])
        # A trailing comma; after `[,` and `,,` there is no value that it could trail.
        if relaxed and raw in ("]", "}") and len(tokens) > 1:
            before, last = tokens[-2:]
            if last.kind == "," and before.kind not in ("[", "{", ","):
                tokens.pop()
        tokens.append(token)

    tokens.append(_Token("eof", None, "", len(text)))
    return tokens


def _unexpected_character(text: str, pos: int, rest: str) -> RJSONParseError:
    return _error_at(text, pos, f"Unexpected character: {rest[0]}; input: {rest}")


def _error_at(text: str, position: int, message: str) -> RJSONParseError:
    line = text.count("\n", 0, position) + 1
    column = position - (text.rfind("\n", 0, position) + 1) + 1
    return RJSONParseError(message, position=position, line=line, column=column)


# the reader

# How it works. A stack of the containers that are open, the innermost last, with a list at its
# bottom that takes the value itself; so depth costs no recursion. After each value the reader goes
# on over commas and closers until the next value is due. With `tolerant`, a complaint is noted
# instead of raised, and the reader makes the step that leaves the fewest tokens unread: it goes on
# as if what it expected had been there.

_VALUE = "'[', '{', number, string or atom"


class _Reader:
    def __init__(
        self, text: str, *, relaxed: bool, tolerant: bool, duplicate: bool, max_depth: int
    ) -> None:
        self._text = text
        self._tolerant = tolerant
        self._duplicate = duplicate
        self._max_depth = max_depth
        self._warnings: list[RJSONParseError] = []
        self._tokens = _tokens_of(text, relaxed=relaxed)
        self._pos = 0
        self._stack: list[Any] = []
        self._key: str | None = None  # of the member whose value is due

    def read(self) -> Any:
        value = self._value()
        end = self._next()
        if end.kind != "eof":
            self._unexpected(end, "end of text")
        if not self._warnings:
            return value

        first, count = self._warnings[0], len(self._warnings)
        raise RJSONParseError(
            first.message if count == 1 else f"{count} parse warnings",
            position=first.position,
            line=first.line,
            column=first.column,
            obj=value,
            warnings=tuple(
                {"message": warning.message, "line": warning.line, "column": warning.column}
                for warning in self._warnings
            ),
        )

    # tokens

    def _next(self) -> _Token:
        token = self._tokens[self._pos]
        if token.kind != "eof":
            self._pos += 1

        return token

    def _unexpected(self, token: _Token, expected: str) -> None:
        self._complain(token, f"Unexpected token: {token}, expected {expected}")

    def _complain(self, token: _Token, message: str) -> None:
        error = _error_at(self._text, token.start, message)
        if not self._tolerant:
            raise error

        self._warnings.append(error)

    # values

    def _value(self) -> Any:
        root: list[Any] = []
        stack: list[Any] = [root]
        self._stack = stack
        while True:
            token = self._next()
            if token.kind not in _VALUES:
                self._unexpected(token, _VALUE)
                # Before the end, or a comma, the value is simply missing: it is null, and the comma
                # stays.
                if token.kind == ",":
                    self._pos -= 1
                elif token.kind != "eof":
                    continue

            is_opener = token.kind in _OPENERS
            node: Any = token.value
            if is_opener:
                node = {} if token.kind == "{" else []
            box = stack[-1]
            if isinstance(box, dict):
                name = self._key or ""
                if name in box and not self._duplicate:
                    self._complain(token, f"Duplicate key: {name}")
                box[name] = node
            else:
                box.append(node)

            if is_opener:
                if len(stack) > self._max_depth:
                    message = f"Nested deeper than {self._max_depth}"
                    raise _error_at(self._text, token.start, message)
                if self._tokens[self._pos].kind != ("}" if token.kind == "{" else "]"):
                    stack.append(node)
                    if token.kind == "{":
                        self._key = self._read_key()
                    continue
                self._pos += 1  # an empty one, which is closed again

            # After a value: commas and closers until the next value begins.
            while len(stack) > 1 and not self._goes_on():
                stack.pop()
            if len(stack) == 1:
                return root[0]
            if isinstance(stack[-1], dict):
                self._key = self._read_key()

    def _goes_on(self) -> bool:
        # The comma before another member (True), or the closer (False).
        closer = "}" if isinstance(self._stack[-1], dict) else "]"
        token = self._next()
        if token.kind == ",":
            return True
        if token.kind == closer:
            return False

        self._unexpected(token, f"',' or '{closer}'")
        if token.kind in _VALUES:
            self._pos -= 1  # as if there had been a comma
            return True

        return False

    def _read_key(self) -> str:
        token = self._next()
        name = str(token.value) if token.kind == "string" else "null"
        if token.kind != "string":
            self._unexpected(token, "string")
            if token.kind in _SCALARS:
                name = token.text
            elif token.kind == ":":
                self._pos -= 1

        colon = self._tokens[self._pos]
        if colon.kind == ":":
            self._pos += 1
        else:
            self._unexpected(colon, "':'")

        return name
