"""The tokens of the relaxed dialect: JSON's own, comments, other quotes, bare words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ...core.errors import RJSONParseError
from ...core.values import Value, number, plain_number, write_canonical

_SPACE = "\t\n\v\f\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
# Each alternative is a kind of lexeme, named; the first one that matches wins, so that a comment is
# none where a string or word has already begun.
RELAXED = re.compile(
    rf"""(?P<space>[{_SPACE}]+)"""
    r"""|(?P<string>"(?:[^"\\\x00-\x1f]|\\.)*+")"""
    r"""|(?P<punct>[{}\[\],:])"""
    r"""|(?P<comment>//[^\n]*|/\*.*?\*/)"""
    r"""|(?P<single>'(?:[^'\\\x00-\x1f]|\\.)*+')"""
    r"""|(?P<word>[$a-zA-Z0-9_\-+.*?!|&%^/#\\]+)""",
    re.DOTALL,
)
STRICT = re.compile(
    r"""(?P<space>[\t\n\r ]+)|(?P<string>"(?:[^"\\\x00-\x1f]|\\.)*+")|(?P<punct>[{}\[\],:])"""
    r"""|(?P<word>[a-z]+|-?[0-9][0-9.eE+\-]*)""",
    re.DOTALL,
)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_ATOMS: Final = {"true": True, "false": False, "null": None}
_SINGLE_ESCAPE = re.compile(r"\\(.)|\"", re.DOTALL)
SCALARS = ("atom", "string", "number")
"""The kinds of tokens that are values."""


@dataclass(frozen=True, slots=True)
class Token:
    """kind: string, number, atom, one of {}[],: or eof.

    `text` is the strict JSON for it.
    """

    kind: str
    value: Value
    text: str
    start: int
    line: int

    def __str__(self) -> str:
        """Return the token in an error message: a scalar with its value, else its sign."""
        if self.kind in SCALARS:
            return f"{self.kind} {write_canonical(self.value)}"
        return "end of text" if self.kind == "eof" else f"'{self.kind}'"


def lexemes(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[int, str, str]]:
    """(start, kind, raw) of every lexeme, white space and comments too.

    pattern: RELAXED or STRICT. Raises RJSONParseError for a character that begins none.
    """
    pos = 0
    while pos < len(text):
        match = pattern.match(text, pos)
        if not match:
            raise error_at(text, pos, _unexpected_character(text[pos : pos + 100]))

        yield pos, str(match.lastgroup), match[0]
        pos = match.end()


def _unexpected_character(rest: str) -> str:
    """Return the wording for a character that begins no token. rest: the text from it on."""
    return f"Unexpected character: {rest[0]}; input: {rest}"


def token_of(text: str, start: int, kind: str, raw: str, line: int = 1) -> Token:
    """Return the token that a lexeme, neither white space nor comment, stands for.

    Raises RJSONParseError for a string or number whose inside is no JSON.
    """
    if kind == "punct":
        return Token(raw, None, raw, start, line)
    if kind == "string":
        return _string(text, start, raw, line)
    if kind == "single":
        inner = _SINGLE_ESCAPE.sub(_as_in_double_quotes, raw[1:-1])
        return _string(text, start, f'"{inner}"', line)

    return _word(text, start, raw, line)


def _string(text: str, start: int, quoted: str, line: int) -> Token:
    """Return a string. quoted: its lexeme in double quotes.

    text, start, line: for the error, and for the token's place. Raises the reader's error.
    """
    try:
        value = json.loads(quoted)
    except ValueError as error:
        raise error_at(text, start, f"Bad string: {error}") from None

    return Token("string", value, quoted, start, line)


def _word(text: str, start: int, raw: str, line: int) -> Token:
    """Return an atom, a number, or a bare word, which is a string.

    raw: as it stands in the text.

    >>> _word("null", 0, "null", 1).value, _word("abc", 0, "abc", 1).kind
    (None, 'string')
    """
    if raw in _ATOMS:
        return Token("atom", _ATOMS[raw], raw, start, line)
    if not _NUMBER.fullmatch(raw):
        return Token("string", raw, write_canonical(raw), start, line)

    try:
        value = number(raw)
    except ValueError as error:
        raise error_at(text, start, f"Bad number: {error}") from None

    plain = value if isinstance(value, int) else plain_number(value)
    return Token("number", plain, raw, start, line)


def _as_in_double_quotes(match: re.Match[str]) -> str:
    """Return a part of a string in single quotes, as it stands in double ones."""
    if match[0] == '"':
        return '\\"'
    return "'" if match[1] == "'" else match[0]


def tokens_of(text: str, *, relaxed: bool) -> list[Token]:
    """Return the tokens of a whole text, the last one of kind eof.

    Trailing commas drop out.

    relaxed=False takes strict JSON's tokens only. Raises RJSONParseError.
    """
    tokens: list[Token] = []
    line = 1
    for start, kind, raw in lexemes(text, RELAXED if relaxed else STRICT):
        if kind not in ("space", "comment"):
            token = token_of(text, start, kind, raw, line)
            if not relaxed and kind == "word" and token.kind == "string":
                raise error_at(text, start, _unexpected_character(raw[:100]))
            if relaxed and raw in ("]", "}") and _ends_in_trailing_comma(tokens):
                tokens.pop()
            tokens.append(token)
        line += raw.count("\n")

    tokens.append(Token("eof", None, "", len(text), line))
    return tokens


def _ends_in_trailing_comma(tokens: list[Token]) -> bool:
    """Tell if the last token is a comma behind a value.

    `[,` and `,,` hold no value to trail.
    """
    if len(tokens) < 2 or tokens[-1].kind != ",":
        return False
    return tokens[-2].kind not in ("[", "{", ",")


def error_at(text: str, position: int, message: str) -> RJSONParseError:
    """Return an error with the line and column of an offset, both from 1 on."""
    line = text.count("\n", 0, position) + 1
    column = position - (text.rfind("\n", 0, position) + 1) + 1
    return RJSONParseError(message, position=position, line=line, column=column)
