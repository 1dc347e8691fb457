"""The contract of a format's constants, and everything that follows from them: patterns, tags,
closers.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from functools import lru_cache
from typing import NamedTuple

from ...arguments.rjson.positions import find_places
from ...arguments.rjson.strict import read_if_strict
from ...arguments.schema.kinds import is_type
from ...core.values import Value
from ..rxml.text import unescape, unescape_offsets
from ..scan import SPACE

_NEVER = re.compile("(?!)")
LOOK = 256  # white space behind an opener that is looked past
QUOTES = (
    "\"'\u201c\u201d\u201e\u201f\u2018\u2019\uff02\uff07"  # around a name, however they are typed
)
TEXT_FLAG = "string"  # of a parameter's tag: the value is text; any other flag means JSON
_TEXT_FLAGS = ("", TEXT_FLAG, "true")  # "true" is the flag of `string="true"`


_KINDS = ("string", "boolean", "integer", "number", "array", "object", "null")


def kind_of_value(value: Value) -> str:
    return next((kind for kind in _KINDS if is_type(value, kind)), "string")


def kind_of_flag(flag: str) -> str:
    return TEXT_FLAG if flag in _TEXT_FLAGS else {"false": "number"}.get(flag, flag)


def typed_value(text: str, flag: str, max_depth: int) -> Value:
    """Return the value of a text whose tag says its type; the text where it is no such JSON."""
    if flag in _TEXT_FLAGS:
        return text
    values = read_if_strict(text, max_depth)
    return values[0] if values is not None and len(values) == 1 else text


def inner_places(
    raw: str, start: int, value: Value, *, entities: bool
) -> dict[str, tuple[int, int]]:
    """Return JSON Pointer, from the value on -> place, of what is inside a list or object."""
    if not isinstance(value, list | dict):
        return {}
    text, offsets = raw, None
    if entities and holds_references(raw):
        text, offsets = unescape(raw), unescape_offsets(raw)
    places: dict[str, tuple[int, int]] = {}
    for path, (a, b) in find_places(text).values.items():
        if path:
            begin, end = (offsets[a], offsets[b]) if offsets else (a, b)
            places[path] = (start + begin, start + end)
    return places


_SECTION = ("<![CDATA[", "]]>")


def section_in(text: str) -> tuple[int, int]:
    """Return where the text of a value is: inside its section, if it is one as a whole."""
    opener, closer = _SECTION
    if text.startswith(opener) and text.find(closer) == len(text) - len(closer):
        return len(opener), len(text) - len(closer)
    return 0, len(text)


def holds_references(text: str) -> bool:
    # A text with a bare `<` was not escaped: its writer would have escaped that first. So it is
    # raw, and `&amp;` in it means itself.
    return "&" in text and "<" not in text


def decoded_text(form: Form, text: str) -> str:
    if form.sections and text.startswith("<!"):
        start, end = section_in(text)
        if start:
            return text[start:end]
    return unescape(text) if form.entities and holds_references(text) else text


def plain_offsets(raw: str) -> list[int]:
    return list(range(len(raw) + 1))


def value_offsets(raw: str) -> list[int] | None:
    return unescape_offsets(raw) if holds_references(raw) else plain_offsets(raw)


class Heads(NamedTuple):
    """Patterns for the beginning of a call. inside: the text behind a function's tag in a call.
    partial: a beginning of it. block: how a block begins that holds functions. words: a few words
    with such a tag behind them, and what may become that.
    """

    inside: re.Pattern[str]
    partial: re.Pattern[str]
    block: re.Pattern[str]
    words: tuple[re.Pattern[str], re.Pattern[str]] = (_NEVER, _NEVER)


class StrictTags(NamedTuple):
    """Sources of patterns for tags in the format's own spelling, without a name's own group.

    function, parameter: the text before and behind the name in an opening tag. Flags stand in a
    group of their own. signs: what begins, behind a `<`, any tag of the format in any spelling.
    """

    function: tuple[str, str]
    parameter: tuple[str, str]
    signs: str


class Form(ABC):
    """The constants of one format, and everything that follows from them.

    opener, closer: around a block of functions, both begin with `<`, or empty if there is none.
    trim: a value loses one line break at each end. lines: tags are written on lines of their own.
    entities: references (`&lt;`) in values without a bare `<` are decoded. sections: a value that
    is one CDATA section is the text inside. flags: a parameter's tag says its type.
    markup: literals around calls that are neither text nor calls.
    """

    # Declared by each kind of form as fields.
    opener: str
    closer: str
    trim: bool
    lines: bool
    entities: bool
    sections: bool
    flags: bool
    markup: tuple[str, ...]

    __slots__ = ()

    @property
    def without_flags(self) -> Form | None:
        """The form of texts whose tags say no types, None if this format's own always do."""
        return None if self.flags else self

    @property
    def flags_may_miss(self) -> bool:
        """True if values without a type are as much the format's own as those with one."""
        return False

    @property
    def edge(self) -> str:
        # A line break there is the format's only where the reader takes it off again.
        return "\n" if self.trim and self.lines else ""

    @property
    def next_parameter(self) -> re.Pattern[str]:
        """The pattern of a parameter's closer with the beginning of the next one's tag behind it.

        By default nothing is known of it.
        """
        return _NEVER

    @property
    def own_tags(self) -> re.Pattern[str]:
        """The pattern of the format's tags in its own words, whatever stands in them."""
        return _own_tags(self.pairs)

    @property
    def value_has_tag(self) -> bool:
        """True if a tag of its own stands between a parameter's name and its value."""
        return False

    @property
    def repeats_are_lists(self) -> bool:
        """True if a parameter that stands several times may be a list that no schema asks for."""
        return True

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """The beginning of each kind of tag, with its closer; the one around a value last."""
        function, parameter = (tag.split("\0")[0] for tag in (
            self.function_tag("\0"), self.parameter_tag("\0")
        ))  # fmt: skip
        return (
            (self.opener, self.closer),
            (function, self.function_closer),
            (parameter, self.parameter_closer),
        )

    @property
    def space(self) -> re.Pattern[str]:
        """White space and the like, which may stand between two tags and mean nothing."""
        return SPACE

    @property
    @abstractmethod
    def function_closer(self) -> str:
        """The closer of a function as the format writes it."""

    @property
    @abstractmethod
    def parameter_closer(self) -> str:
        """The closer of a parameter as the format writes it."""

    @abstractmethod
    def function_tag(self, name: str) -> str:
        """Return a function's opening tag as the format writes it."""

    @abstractmethod
    def parameter_tag(self, name: str, kind: str = "string") -> str:
        """Return a parameter's opening tag. kind: JSON type of its value, for forms with flags."""

    def owns(self, tag: str, name: str, *, function: bool) -> bool:
        """Return True if an opening tag is in the format's own spelling."""
        return tag == (self.function_tag(name) if function else self.parameter_tag(name))

    @property
    @abstractmethod
    def sign(self) -> str:
        """The pattern of an attempt at a function's tag, for answers that no one could read."""

    @abstractmethod
    def closer_of(self, word: str) -> str:
        """Return the closer of a function whose tag has that word."""

    def is_pair(self, opening: str, closing: str) -> bool:
        # Two words, each from a match of the tags' pattern, open and close the same.
        return opening.lower() == closing.lower()

    @property
    def bare_names(self) -> bool:
        """True if a word behind the head of a tag is a function's name by its place alone."""
        return False

    @property
    @abstractmethod
    def function_word(self) -> str:
        """The word of a function's tag, as `tag_pattern` has it in its group f."""

    @abstractmethod
    def begins_json(self, word: str) -> tuple[str, ...]:
        """Return the beginning of the next call behind a function with a JSON object in it."""

    @abstractmethod
    def tag_heads(self) -> tuple[str, ...]:
        """Return the literals that a function's tag may begin with."""

    @abstractmethod
    def may_begin(self, rest: str) -> bool:
        """Return True if a short text is, or may become, the beginning of a function's tag."""

    def may_go_on(self, head: str) -> bool:
        """Return False if a text that begins like a function's tag is none, whatever follows."""
        return True

    @abstractmethod
    def tags(self) -> re.Pattern[str]:
        """Return the pattern of all tags. See `tag_pattern`."""

    def bare(self) -> tuple[re.Pattern[str], re.Pattern[str]]:
        """Return the patterns of `bare_head`. By default nothing stands for a tag."""
        return _NEVER, _NEVER

    @abstractmethod
    def heads(self) -> Heads:
        """Return the patterns of the beginning of a call."""

    @abstractmethod
    def strict_tags(self) -> StrictTags:
        """Return the sources of the tags in the format's own spelling."""

    @abstractmethod
    def closers_like(self, *, function: bool) -> str:
        """Return the source of every closer that may stand for a function's or a parameter's."""


@lru_cache(maxsize=256)
def _own_tags(pairs: tuple[tuple[str, str], ...]) -> re.Pattern[str]:
    tags = {tag.rstrip(' "=') for pair in pairs for tag in pair} - {""}
    sources = (re.escape(tag) + (r"(?![\w-])" if tag[-1:].isalnum() else "") for tag in tags)
    return re.compile("|".join(sorted(sources)) or "(?!)")
