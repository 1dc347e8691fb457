"""Words for people, one for each code of an outcome, a cause, a verdict and a column: what every
screen, report and terminal says.
"""

# How it works. A cause is a code (see `scoring.outcomes.cause_of`), and several codes may be one
# word to a person: an answer was cut off, whether the token limit or nobody says why. Such codes
# share a `group`, which is the unit of chips, of lists and of counts; `detail` tells them apart.
# The fill is the class of the colour in the style sheet: one hue for what stops a call, in the
# order of the pipeline.

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..core.rules import CODES


@dataclass(frozen=True, slots=True)
class Cause:
    """What a person is told of a cause: its word, a clause that explains it, and its fill."""

    word: str
    hint: str
    fill: str = "f-4"
    detail: str = ""  # of a code that shares its word with others


_CUT = "the answer ends inside the call"
_UNREAD = "what stands where the arguments should be cannot be read"
_TWICE = "two values for one argument: nothing tells which is meant"
_UNKNOWN = "the tool was not offered"
_TYPE = "a value the schema does not allow and no lossless rule can turn"
_MADE_UP = "the reading has what the model did not write"
_SHAPED = "the text looks like a call, and none could be read"


def _cut(detail: str) -> Cause:
    return Cause("cut off", _CUT, "f-1", detail)


CAUSES: Mapping[str, Cause] = {
    "length": _cut("token limit"),
    "call.truncated": _cut(""),
    "truncated": _cut(""),
    "open_call": _cut("no reason recorded"),
    "incomplete": _cut("native call cut off"),
    "decode.truncated-value": _cut("inside a value"),
    "cut_stream": _cut("the stream broke off"),
    "open_reasoning": Cause("reasoning cut off", "the answer ends inside the reasoning", "f-1"),
    "reasoning_only": Cause("reasoning only", "nothing follows the reasoning", "f-1"),
    "decode.duplicate-key": Cause("same key twice", _TWICE, "f-2"),
    "decode.duplicate-string-tag": Cause("same key twice", _TWICE, "f-2"),
    "undecodable": Cause("arguments unreadable", _UNREAD, "f-2"),
    "call.no-name": Cause("no tool named", "the call was read, and names no tool", "f-2"),
    "call.unknown-tool": Cause("unknown tool", _UNKNOWN, "f-3"),
    "unknown_tool": Cause("unknown tool", _UNKNOWN, "f-3"),
    "markup": Cause("unknown tool, in the text", "an element with a tool's name, not read", "f-3"),
    "name": Cause("another tool", "a tool on offer, not the one that was expected", "f-3"),
    "validate.type": Cause("wrong type", _TYPE),
    "validate.required": Cause("missing argument", "a required argument is not there"),
    "missing_argument": Cause("missing argument", "an expected argument is not there"),
    "validate.enum": Cause("value not allowed", "not one of the values listed in the schema"),
    "validate.additional": Cause("argument not in the schema", "the schema allows no others"),
    "validate.constraint": Cause("rule of the schema broken", "a range, a length or a pattern"),
    "extra_argument": Cause("argument too many", "read well, but it was not asked for"),
    "wrong_argument": Cause("wrong value", "read well, but not what was expected"),
    "wrong_call": Cause("wrong call", "read well, but not what was expected"),
    "count": Cause("too many or too few calls", "read well, but not as many as expected"),
    "unexpected_call": Cause("call not wanted", "a call where none was expected"),
    "forbidden_call": Cause("call not wanted", "a call that the target forbids"),
    "order": Cause("wrong order", "the right calls, in another order"),
    "abstained_wrongly": Cause("no call", "a call was expected and none was tried", "f-no"),
    "empty": Cause("empty answer", "white space or nothing", "f-no"),
    "refused": Cause("refused by a filter", "a content filter stopped the answer", "f-no"),
    "provider_error": Cause("no answer: provider", "the provider failed", "f-no"),
    "context_overflow": Cause("request too long", "it did not fit the model's context", "f-no"),
    "reader_error": Cause("parser failed", "the parser of another project failed", "f-no"),
    "call.looks-like": Cause("call not read", _SHAPED, "f-2"),
    "json": Cause("call not read", _SHAPED, "f-2", "JSON in the text"),
    "code": Cause("call not read", _SHAPED, "f-2", "code in the text"),
    "attempted_unparseable": Cause("call not read", _SHAPED, "f-2"),
    "call.echoed": Cause("repeated from the prompt", "the model did not write it", "f-2"),
    "call.held-back": Cause("shown, not made", "the text only shows the call", "f-2"),
    "held_back": Cause("shown, not made", "the text only shows the call", "f-2"),
    "fabricated": Cause("value not in the text", _MADE_UP, "f-2"),
    "self_answered": Cause("answered by itself", "the model wrote the tool's result", "f-no"),
    "one_of_several_broken": Cause("one of several calls broken", "the others were read", "f-2"),
    "read.internal-error": Cause("error of this toolkit", "please report it", "f-no"),
}  # fmt: skip
"""The codes that have words of their own; `cause_words` has some for every code."""

_WORDS: Mapping[str, str] = {
    "not_lifted": "call left in the text",
    "call.in-content": "call left in the text",
    "clean": "as written",
    "repaired (lossless)": "after repair",
    "repaired (lossy)": "after lossy repair",
    "unchecked": "not checked",
    "invalid": "does not fit the schema",
    "refused": "refused",
    "truncated": "cut off",
    "echoed": "repeated from the prompt",
    "none": "no call",
    "correct": "right",
    "abstained_correctly": "right: no call",
    "ungraded": "not judged",
    "prompt_protocol": "asked in",
    "parse_protocol": "read as",
    "arm": "variant",
    "sub_code": "cause",
    "trials": "answers",
    "cells": "model · format",
}


def cause_words(code: str) -> Cause:
    """Return the words for the cause of a failure, whatever code it is.

    >>> cause_words("open_call").word, cause_words("open_call").detail
    ('cut off', 'no reason recorded')
    >>> cause_words("rate_limit").word
    'rate limit'
    """
    if code in CAUSES:
        return CAUSES[code]
    part = code.rpartition(".")[2].replace("_", " ").replace("-", " ")
    sentence = CODES[code].sentence if code in CODES else ""
    if code.startswith("decode."):
        return Cause("arguments unreadable", _UNREAD, "f-2", part)
    return Cause(part, sentence[:1].lower() + sentence[1:].rstrip("."), "f-no")


def word_of(code: str) -> str:
    """Return the word for a code of an outcome, a verdict, a cause or a column.

    >>> word_of("clean"), word_of("validate.enum"), word_of("metadata_level"), word_of("city")
    ('as written', 'value not allowed', 'level', 'city')
    """
    if code in _WORDS:
        return _WORDS[code]
    if code.startswith("metadata_"):
        return code.removeprefix("metadata_")
    if code in CAUSES or code in CODES:
        cause = cause_words(code)
        return f"{cause.word}: {cause.detail}" if cause.detail else cause.word
    return code.replace("_", " ")


@dataclass(frozen=True, slots=True)
class Group:
    """The failures that share a word: their codes with the number of each, in the order found."""

    word: str
    hint: str
    fill: str
    codes: Mapping[str, int]

    @property
    def n(self) -> int:
        return sum(self.codes.values())

    @property
    def title(self) -> str:
        """The word with a capital, as a heading has it."""
        return self.word[:1].upper() + self.word[1:]


def groups_of(causes: Iterable[str]) -> list[Group]:
    """Return the groups of the causes of failures, '' left out: in the order of the pipeline, where
    a call is lost, then the largest first.

    >>> [(group.word, group.n) for group in groups_of(["length", "", "open_call", "name"])]
    [('cut off', 2), ('another tool', 1)]
    """
    found: dict[str, dict[str, int]] = {}
    for code, n in Counter(filter(None, causes)).items():
        found.setdefault(cause_words(code).word, {})[code] = n
    groups = []
    for word, codes in found.items():
        about = cause_words(next(iter(codes)))
        groups.append(Group(word, about.hint, about.fill, codes))
    return sorted(groups, key=lambda group: (group.fill, -group.n, group.word))
