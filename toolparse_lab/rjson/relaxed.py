"""The relaxed dialect: JSON with comments, trailing commas, single quotes and bare words, read by fixed rules.

Unlike `repair` it guesses nothing and repairs nothing: what the dialect does not have is a typed error with its
position. A bare word is a string, so ``True`` is the text "True" here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ..errors import BadOptions, RJSONParseError
from ..values import Value, number, plain_number, read_plain, write_canonical
from .strict import read_unique

_SPACE = "\t\n\v\f\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_TOKEN = re.compile(
    rf"""(?P<space>[{_SPACE}]+)"""
    r"""|(?P<string>"(?:[^"\\\x00-\x1f]|\\.)*+")"""
    r"""|(?P<punct>[{}\[\],:])"""
    r"""|(?P<comment>//[^\n]*|/\*.*?\*/)"""
    r"""|(?P<single>'(?:[^'\\\x00-\x1f]|\\.)*+')"""
    r"""|(?P<word>[$a-zA-Z0-9_\-+.*?!|&%^/#\\]+)""",
    re.DOTALL,
)
_STRICT_TOKEN = re.compile(
    r"""(?P<space>[\t\n\r ]+)|(?P<string>"(?:[^"\\\x00-\x1f]|\\.)*+")|(?P<punct>[{}\[\],:])"""
    r"""|(?P<word>[a-z]+|-?[0-9][0-9.eE+\-]*)""",
    re.DOTALL,
)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_ATOMS: Final = {"true": True, "false": False, "null": None}
_SINGLE_ESCAPE = re.compile(r"\\(.)|\"", re.DOTALL)
_DEFAULT_DEPTH = 1000
_VALUE = "'[', '{', number, string or atom"

Reviver = Callable[[str, Any], Any]


@dataclass(frozen=True, slots=True)
class Token:
    """kind: string, number, atom, one of {}[],: or eof. `text` is what strict JSON writes for it."""

    kind: str
    value: Value
    text: str
    start: int
    line: int

    def __str__(self) -> str:
        if self.kind in ("atom", "string", "number"):
            return f"{self.kind} {write_canonical(self.value)}"
        return "end of text" if self.kind == "eof" else f"'{self.kind}'"


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
    """The value of relaxed JSON text.

    relaxed=False reads strict JSON only. duplicate: a key may stand twice, and the last one wins. tolerant (and
    warnings, which means the same): reads on behind errors, then raises one RJSONParseError with `.warnings`, `.line`
    of the first and `.obj`, what could be read. reviver(key, value) replaces each value, innermost first.

    Raises RJSONParseError with `.line`, `.column` and `.position`.

    >>> parse("{a: 1, b: 'it\\\\'s', /* c */ d: [x, 007,],}")
    {'a': 1, 'b': "it's", 'd': ['x', '007']}
    """
    if not isinstance(text, str):
        raise BadOptions("relaxed JSON is text", got=type(text).__name__, expected="str")
    value = _strict(text, duplicate=duplicate, max_depth=max_depth)
    if value is _NOT_STRICT:
        reader = _Reader(text, relaxed=relaxed, tolerant=tolerant or warnings, duplicate=duplicate, max_depth=max_depth)
        value = reader.read()
    return value if reviver is None else _revive(value, reviver)


_NOT_STRICT = object()


def _strict(text: str, *, duplicate: bool, max_depth: int) -> Any:
    """The value of strict JSON by the C-backed reader, or a mark that it is none."""
    if text.count("[") + text.count("{") > max_depth:
        return _NOT_STRICT  # it may nest too deep; the slow reader counts
    try:
        if not duplicate:
            read_unique(text)
        return read_plain(text)
    except ValueError:
        return _NOT_STRICT


def transform(text: str) -> str:
    """Relaxed JSON text as strict JSON text of the same length where that is possible: comments and trailing commas
    become white space, other quotes double ones. Raises RJSONParseError for a character that begins no token.

    >>> transform("{a: 1, /* x */}")
    '{"a": 1           }'
    """
    out: list[str] = []
    comma = -1  # where in `out` the last comma is, while only white space followed it
    opened = True  # nothing stood between the last opener and that comma
    for start, kind, raw in _lex(text, _TOKEN):
        if kind == "space":
            out.append(re.sub(r"[^\t\n\r ]", " ", raw))
            continue
        if kind == "comment":
            out.append(re.sub(r"[^\n]", " ", raw))
            continue
        if raw in ("]", "}") and comma >= 0 and not opened:
            out[comma] = " "
        token = _token(text, start, kind, raw)
        if raw == ",":
            comma = len(out)
        else:
            comma = -1
            opened = raw in ("[", "{")
        out.append(token.text)
    return "".join(out)


def stringify(value: Any) -> str:
    """A value as strict JSON text with sorted keys, compact. Raises BadOptions for what JSON cannot carry.

    >>> stringify({"b": [1, 2.5], "a": None})
    '{"a":null,"b":[1,2.5]}'
    """
    try:
        return write_canonical(_sorted(value))
    except (TypeError, ValueError) as e:
        raise BadOptions("this is no JSON value", got=str(e)) from None


def _sorted(value: Any) -> Any:
    """A copy with the keys of every object in order; without recursion."""
    root: list[Any] = [value]
    stack: list[tuple[Any, Any]] = [(root, 0)]
    while stack:
        box, key = stack.pop()
        node = box[key]
        if isinstance(node, dict):
            node = box[key] = {str(k): node[k] for k in sorted(node, key=str)}
            stack.extend((node, k) for k in node)
        elif isinstance(node, (list, tuple)):
            node = box[key] = list(node)
            stack.extend((node, i) for i in range(len(node)))
    return root[0]


def _lex(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[int, str, str]]:
    """(start, kind, raw) of every lexeme, white space and comments too."""
    pos = 0
    while pos < len(text):
        m = pattern.match(text, pos)
        if not m:
            raise _error(text, pos, f"Unexpected character: {text[pos]}; input: {text[pos : pos + 100]}")
        yield pos, str(m.lastgroup), m[0]
        pos = m.end()


def _token(text: str, start: int, kind: str, raw: str, line: int = 1) -> Token:
    if kind == "punct":
        return Token(raw, None, raw, start, line)
    if kind == "string":
        try:
            return Token("string", json.loads(raw), raw, start, line)
        except ValueError as e:
            raise _error(text, start, f"Bad string: {e}") from None
    if kind == "single":
        inner = _SINGLE_ESCAPE.sub(_double, raw[1:-1])
        try:
            return Token("string", json.loads(f'"{inner}"'), f'"{inner}"', start, line)
        except ValueError as e:
            raise _error(text, start, f"Bad string: {e}") from None
    if raw in _ATOMS:
        return Token("atom", _ATOMS[raw], raw, start, line)
    if _NUMBER.fullmatch(raw):
        try:
            n = number(raw)
        except ValueError as e:
            raise _error(text, start, f"Bad number: {e}") from None
        return Token("number", n if isinstance(n, int) else plain_number(n), raw, start, line)
    return Token("string", raw, write_canonical(raw), start, line)


def _double(m: re.Match[str]) -> str:
    """The inside of a string in single quotes, as it stands in double ones."""
    if m[0] == '"':
        return '\\"'
    return "'" if m[1] == "'" else m[0]


def _error(text: str, position: int, message: str) -> RJSONParseError:
    line = text.count("\n", 0, position) + 1
    column = position - (text.rfind("\n", 0, position) + 1) + 1
    return RJSONParseError(message, position=position, line=line, column=column)


class _Reader:
    """One text under way; an explicit stack, so that depth costs no recursion."""

    def __init__(self, text: str, *, relaxed: bool, tolerant: bool, duplicate: bool, max_depth: int) -> None:
        self.text = text
        self.relaxed = relaxed
        self.tolerant = tolerant
        self.duplicate = duplicate
        self.max_depth = max_depth
        self.warnings: list[RJSONParseError] = []
        self.tokens: Sequence[Token] = self._tokens()
        self.pos = 0

    def _tokens(self) -> list[Token]:
        tokens: list[Token] = []
        line = 1
        for start, kind, raw in _lex(self.text, _TOKEN if self.relaxed else _STRICT_TOKEN):
            if kind not in ("space", "comment"):
                token = _token(self.text, start, kind, raw, line)
                if not self.relaxed and kind == "word" and token.kind == "string":
                    raise _error(self.text, start, f"Unexpected character: {raw[0]}; input: {raw[:100]}")
                behind_comma = len(tokens) > 1 and tokens[-1].kind == "," and tokens[-2].kind not in ("[", "{", ",")
                if self.relaxed and raw in ("]", "}") and behind_comma:
                    tokens.pop()  # a trailing comma
                tokens.append(token)
            line += raw.count("\n")
        tokens.append(Token("eof", None, "", len(self.text), line))
        return tokens

    def next(self) -> Token:
        token = self.tokens[self.pos]
        if token.kind != "eof":
            self.pos += 1
        return token

    def peek(self) -> Token:
        return self.tokens[self.pos]

    def unexpected(self, token: Token, expected: str) -> None:
        self.complain(token, f"Unexpected token: {token}, expected {expected}")

    def complain(self, token: Token, message: str) -> None:
        error = _error(self.text, token.start, message)
        if not self.tolerant:
            raise error
        self.warnings.append(error)

    def read(self) -> Any:
        value = self.value()
        end = self.next()
        if end.kind != "eof":
            self.unexpected(end, "end of text")
        if self.warnings:
            first = self.warnings[0]
            message = first.message if len(self.warnings) == 1 else f"{len(self.warnings)} parse warnings"
            raise RJSONParseError(
                message, position=first.position, line=first.line, column=first.column, obj=value,
                warnings=tuple({"message": w.message, "line": w.line, "column": w.column} for w in self.warnings),
            )  # fmt: skip
        return value

    def value(self) -> Any:
        """One value with everything in it."""
        root: list[Any] = []
        stack: list[Any] = [root]
        key: str | None = None
        while True:
            token = self.next()
            box = stack[-1]
            node: Any = token.value
            if token.kind in ("{", "["):
                node = {} if token.kind == "{" else []
            elif token.kind not in ("string", "number", "atom"):
                self.unexpected(token, _VALUE)
                node = None
                if token.kind != "eof" and token.kind != ",":
                    continue
                if token.kind == ",":
                    self.pos -= 1
            if isinstance(box, dict):
                self.put(box, key, node, token)
            else:
                box.append(node)
            if token.kind in ("{", "["):
                if len(stack) > self.max_depth:
                    raise _error(self.text, token.start, f"Nested deeper than {self.max_depth}")
                stack.append(node)
                if self.closes(node):
                    stack.pop()
                elif isinstance(node, dict):
                    key = self.key()
                    continue
                else:
                    continue
            # behind a value: commas and closers until the next value begins
            while len(stack) > 1 and not self.goes_on(stack[-1]):
                stack.pop()
            if len(stack) == 1:
                return root[0]
            if isinstance(stack[-1], dict):
                key = self.key()

    def closes(self, box: Any) -> bool:
        """Whether the container just opened is empty; takes its closer."""
        if self.peek().kind != ("}" if isinstance(box, dict) else "]"):
            return False
        self.pos += 1
        return True

    def goes_on(self, box: Any) -> bool:
        """Takes the comma before another member (True) or the closer (False)."""
        closer = "}" if isinstance(box, dict) else "]"
        token = self.next()
        if token.kind == ",":
            return True
        if token.kind != closer:
            self.unexpected(token, f"',' or '{closer}'")
            if token.kind == "eof":
                return False
            if token.kind in ("string", "number", "atom", "{", "["):
                self.pos -= 1  # as if there had been a comma
                return True
        return False

    def key(self) -> str:
        token = self.next()
        if token.kind != "string":
            self.unexpected(token, "string")
            if token.kind in ("number", "atom"):
                token = Token("string", token.text, token.text, token.start, token.line)
            elif token.kind == ":":
                self.pos -= 1
        colon = self.peek()
        if colon.kind == ":":
            self.pos += 1
        else:
            self.unexpected(colon, "':'")
        return str(token.value if token.kind == "string" else "null")

    def put(self, box: dict[str, Any], key: str | None, node: Any, token: Token) -> None:
        name = "" if key is None else key
        if name in box and not self.duplicate:
            self.complain(token, f"Duplicate key: {name}")
        box[name] = node


def _revive(value: Any, reviver: Reviver) -> Any:
    """Every value through the reviver, innermost first, the whole last, under the key ''; without recursion."""
    root: dict[str, Any] = {"": value}
    order: list[tuple[Any, Any]] = []
    stack: list[tuple[Any, Any]] = [(root, "")]
    while stack:
        box, key = stack.pop()
        order.append((box, key))
        node = box[key]
        if isinstance(node, dict):
            stack.extend((node, k) for k in reversed(node))
        elif isinstance(node, list):
            stack.extend((node, i) for i in range(len(node) - 1, -1, -1))
    for box, key in reversed(order):
        box[key] = reviver(str(key), box[key])
    return root[""]
