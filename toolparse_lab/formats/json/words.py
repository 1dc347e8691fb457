"""Words around the JSON of a body: a tool's name before its arguments, or no call at all."""

# Dropping words to reach the next brace is how an argument becomes the tool: the object in
# `skill_view({"name": "delete"})` is what `skill_view` was given, and no call of `delete`. So words
# before an object are a name, or the body is refused. Words between two values refuse it too. Words
# after the last value change nothing of what was read: they are dropped, as an edit.

from __future__ import annotations

import re
from collections.abc import Sequence

from ...arguments.rjson.strict import Refusal
from ...core.types import Edit, Span
from ...core.values import Value
from ..base import Reading

_PROSE = "rjson.prose"
_NAMED = "rjson.name-before"
_NAME = re.compile(
    r"\s*+[\"'`*]{0,3}+(?P<name>[\w./@+-]{1,256}+)[\"'`*]{0,3}+\s*+(?P<sign>[(:=,]|->)?+\s*+"
)
_CLOSER = re.compile(r"\s*+\)\s*+;?+\s*+")
# What a body may say in front of a whole call without naming a tool.
_LABELS = frozenset(("json", "tool_call", "tool_calls", "function", "function_call", "call"))


def read_words(
    body: str,
    values: list[Value],
    edits: list[Edit],
    reading: Reading,
    keys: tuple[str, str] = ("", ""),
    whole_name: str = "",
) -> tuple[list[Value], list[Edit]]:
    """Return the values and edits of a body whose words around them are read for what they say.

    keys: of name and arguments, in a format whose objects have both. whole_name: the tool that its
    only value calls by itself, "" if it is none. Raises Refusal where words other than a tool's
    name are in front of a value.
    """
    prose = [edit for edit in edits if edit.rule == _PROSE]
    behind = next((edit for edit in prose if not body[edit.span.end :].strip()), None)
    words = [edit for edit in prose if edit is not behind and _says_something(edit.span.of(body))]
    if not words:
        _refuse_comment(body, edits, reading, whole_name)
        return values, edits
    match = None
    if len(words) == 1 and keys[0] and _is_first(words[0], body):
        match = _NAME.fullmatch(words[0].span.of(body))
    if match is not None and _is_label(match, reading, whole_name):
        return values, edits
    if match is not None and _may_be_arguments(match["name"], values, reading):
        named = _named(body, edits, words[0], behind, match, keys)
        if named is not None:
            return [{keys[0]: match["name"], keys[1]: values[0]}], named
    # A sign first, as in `("name": …`, is the damaged beginning of the object itself.
    if not words[0].span.of(body).lstrip()[:1].isalnum():
        raise Refusal("decode.json", "the beginning of this JSON is damaged", words[0].span.start)
    message = "the words in front of this JSON are no tool's name, so it may not be a call"
    raise Refusal("decode.words", message, words[0].span.start)


def _refuse_comment(body: str, edits: Sequence[Edit], reading: Reading, whole_name: str) -> None:
    for edit in edits:
        if edit.rule != "rjson.comment" or not _is_first(edit, body):
            continue
        words = re.findall(r"[\w./@+-]+", edit.span.of(body))
        if any(word in reading.tools and word != whole_name for word in words):
            message = "a comment in front of this JSON names another tool"
            raise Refusal("decode.words", message, edit.span.start)


def _is_label(match: re.Match[str], reading: Reading, whole_name: str) -> bool:
    # It only labels the whole call after it, or says its name beforehand.
    name = match["name"]
    if not whole_name or match["sign"]:
        return False
    return name == whole_name or (name in _LABELS and name not in reading.tools)


def _may_be_arguments(name: str, values: list[Value], reading: Reading) -> bool:
    is_tool = name in reading.tools or not reading.tools
    return is_tool and len(values) == 1 and isinstance(values[0], dict)


def _says_something(words: str) -> bool:
    # A sign by itself is damage of the brackets around it.
    return any(character.isalnum() for character in words)


def _is_first(words: Edit, body: str) -> bool:
    return not body[: words.span.start].strip()


def _named(
    body: str,
    edits: Sequence[Edit],
    words: Edit,
    behind: Edit | None,
    match: re.Match[str],
    keys: tuple[str, str],
) -> list[Edit] | None:
    # The edits that put an object and the name in front of it into one call. None if its
    # parenthesis does not close, or more follows than that.
    start, end = words.span.start + match.start("name"), words.span.start + match.end("name")
    closes = behind is not None and _CLOSER.fullmatch(behind.span.of(body))
    if (match["sign"] == "(") != bool(closes):
        return None
    others = [edit for edit in edits if edit is not words and not (closes and edit is behind)]
    tail = behind.span if closes and behind is not None else Span(len(body), len(body))
    return sorted(
        (
            Edit(Span(words.span.start, start), f'{{"{keys[0]}":"', _NAMED),
            Edit(Span(end, words.span.end), f'","{keys[1]}":', _NAMED),
            *others,
            Edit(tail, "}", _NAMED),
        ),
        key=lambda edit: (edit.span.start, edit.span.end),
    )
