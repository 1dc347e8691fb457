"""Values without quotes: literals of other languages, loose numbers, bare words."""

from __future__ import annotations

import re

from .quotes import escape_control
from .refusal import Refusal
from .source import Source

_BARE = re.compile(r"[^\s\"'“”„‘’,:{}\[\]()`]+")
_BARE_LINE = re.compile(r"[^\"“”„,:{}\[\]()`\n\r]+")
_LOOSE_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\Z")
_NUMBER_SIGNS = "+-.0123456789"
_LITERALS = {"true": "true", "false": "false", "null": "null", "none": "null"}
# Words of other languages for what JSON has no value for.
NO_JSON = frozenset(
    ("nan", "infinity", "-infinity", "+infinity", "inf", "-inf", "+inf", "undefined")
)
_RUNS_INTO = ("(", ":", '"', "`")  # behind a word, they make a call, a key, a string or code of it


def read_bare(source: Source, pos: int, top: str) -> int:
    """Repair the value without quotes at `pos`.

    Returns the offset behind it.

    top: the bracket around it, "" at the top level. Raises Refusal for text without a value in
    JSON, and for what may go on behind the end of the text.
    """
    match = _BARE.match(source.text, pos)
    if not match:
        raise Refusal("decode.json", f"expected a value, got {source.text[pos]!r}", pos)

    word, end = match[0], match.end()
    if not any(map(str.isalnum, word)):
        raise Refusal("decode.ambiguous", f"{word} stands where a value should be", pos)

    lower = word.lower()
    if lower in NO_JSON:
        raise Refusal("decode.ambiguous", f"JSON has no {word}", pos)
    if lower in _LITERALS:
        source.edit(pos, end, _LITERALS[lower], "rjson.python-literal")
        return end
    if word[0] in _NUMBER_SIGNS and _LOOSE_NUMBER.match(word):
        _edit_loose_number(source, pos, end, word)
        return end

    if top == "{":
        end = _end_of_line_value(source.text, pos, end)

    _refuse_doubtful_word(source, pos, end, top)
    _quote_word(source, pos, end)
    return end


def _end_of_line_value(text: str, pos: int, end: int) -> int:
    """Return the end of words in an object: there, a value goes on to the comma, bracket or line
    end.
    """
    line = _BARE_LINE.match(text, pos)
    return pos + len(line[0].rstrip()) if line else end


def _refuse_doubtful_word(source: Source, pos: int, end: int, top: str) -> None:
    """Refuse words of which no one knows their meaning, or where they end.

    pos, end: of the words. top: the bracket they stand in, "" for none.
    """
    text = source.text
    follower = text[end : end + 1]
    if follower in _RUNS_INTO:
        raise Refusal("decode.ambiguous", f"a bare word runs into {follower!r}", end)
    if end >= source.size and (top or not source.numbers_end):
        message = "the text ends in a bare word that may go on"
        raise Refusal("decode.truncated-value", message, end)
    if "\\" in text[pos:end]:
        raise Refusal("decode.ambiguous", "a bare word with a backslash", pos)
    if "<" in text[pos:end] and ">" in text[pos:end]:
        raise Refusal("decode.ambiguous", "a bare word with a tag, which may be a quote", pos)


def _quote_word(source: Source, pos: int, end: int) -> None:
    """Put words between double quotes, with control characters escaped.

    pos, end: of the words, without white space around them.
    """
    source.edit(pos, pos, '"', "rjson.unquoted-value")
    for offset, ch in enumerate(source.text[pos:end], pos):
        if ch < " ":
            source.edit(offset, offset + 1, escape_control(ch), "rjson.raw-control")

    source.edit(end, end, '"', "rjson.unquoted-value")


def _edit_loose_number(source: Source, pos: int, end: int, word: str) -> None:
    """Bring a number such as +5, .5 or 5. to JSON's form.

    Raises Refusal for 007, which may be a number or an identifier, and for a number at the end of
    the text that may go on.
    """
    digits = word.lstrip("+-")
    if len(digits) > 1 and digits[0] == "0" and digits[1].isdigit():
        message = f"{word} may be a number or text with a leading zero"
        raise Refusal("decode.ambiguous", message, pos)
    if end >= source.size and not source.numbers_end:
        message = "the text ends in a number that may go on"
        raise Refusal("decode.truncated-value", message, end)

    if word[0] == "+":
        source.edit(pos, pos + 1, "", "rjson.loose-number")

    dot = word.find(".")
    if dot >= 0:
        _edit_point(source, pos + dot, word[:dot], word[dot + 1 :])


def _edit_point(source: Source, at: int, before: str, behind: str) -> None:
    """Put a zero on the side of a decimal point at `at` that has no digit.

    before, behind: the text on its two sides.
    """
    if not before.lstrip("+-"):
        source.edit(at, at, "0", "rjson.loose-number")
    if not behind[:1].isdigit():
        source.edit(at + 1, at + 1, "0", "rjson.loose-number")
