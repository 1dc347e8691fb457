"""The constants of a format of parameter tags, and the patterns that follow from them."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

from ...arguments.rjson.positions import find_places
from ...arguments.rjson.strict import read_if_strict
from ...arguments.schema.kinds import is_type
from ...core.values import Value
from ..rxml.element import unescape, unescape_offsets
from ..scan import SPACE

_NEVER = re.compile("(?!)")
LOOK = 256  # white space after an opener that is looked past
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
    with such a tag after them, and what may become that.
    """

    inside: re.Pattern[str]
    partial: re.Pattern[str]
    block: re.Pattern[str]
    words: tuple[re.Pattern[str], re.Pattern[str]] = (_NEVER, _NEVER)


class StrictTags(NamedTuple):
    """Sources of patterns for tags in the format's own spelling, without a name's own group.

    function, parameter: the text before and after the name in an opening tag. Flags stand in a
    group of their own. signs: what begins, after a `<`, any tag of the format in any spelling.
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
        """The pattern of a parameter's closer with the beginning of the next one's tag after it.

        By default nothing is known of it.
        """
        return _NEVER

    @property
    def own_tags(self) -> re.Pattern[str]:
        """The pattern of the format's tags in its own words, whatever is in them."""
        return _own_tags(self.pairs)

    @property
    def value_has_tag(self) -> bool:
        """True if a tag of its own is between a parameter's name and its value."""
        return False

    @property
    def repeats_are_lists(self) -> bool:
        """True if a parameter that is there several times may be a list that no schema asks for."""
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
        """White space and the like, which may be between two tags and mean nothing."""
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
        """True if a word after the head of a tag is a function's name by its place alone."""
        return False

    @property
    @abstractmethod
    def function_word(self) -> str:
        """The word of a function's tag, as `tag_pattern` has it in its group f."""

    @abstractmethod
    def begins_json(self, word: str) -> tuple[str, ...]:
        """Return the beginning of the next call after a function with a JSON object in it."""

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


# Models write the words of other formats; each of these means the format's own.
FUNCTION_WORDS = ("function", "call", "tool", "invoke")
PARAMETER_WORDS = ("parameter", "param", "argument", "arg")
# In a tag nearly anything is a name; as text between two tags only what names a tool anywhere.
_NAME = rf"[^\s<>{QUOTES}=,;:|)}}\]][^<>{QUOTES}\r\n]{{0,255}}?"
_TEXT_NAME = r"[\w.:/-]{1,128}"
# Some servers lose the space before an attribute, or leave their tokenizer's mark of it.
_APART = r"[\s\u0120]{0,8}"
_BEHIND_WORD = r"(?:[\s=>\u0120]|name[ \t]{0,8}=)"


@dataclass(frozen=True, slots=True)
class TagForm(Form):
    """The constants of one format whose tags are words: `<function=f>` or `<invoke name="f">`.

    opener, closer: around a block of functions, both begin with `<`, or empty if there is none.
    attribute: names are written `name="…"`, else `=…`. trim: a value loses one line break at each
    end. lines: tags are written on lines of their own. entities, markup, flags, sections: see
    `Form`. wrapper: the word of an element that may stand around all parameters and means nothing.
    inline: values are written next to their tags, even if those are on lines.
    """

    opener: str = "<tool_call>"
    closer: str = "</tool_call>"
    function: str = "function"
    parameter: str = "parameter"
    attribute: bool = False
    trim: bool = True
    lines: bool = True
    entities: bool = True
    markup: tuple[str, ...] = ()
    flags: bool = False
    wrapper: str = ""
    sections: bool = True
    inline: bool = False

    def __post_init__(self) -> None:
        if not all(tag.startswith("<") for tag in (self.opener, self.closer) if tag):
            raise ValueError("a block's opener and closer begin with '<'")

    @property
    def functions(self) -> tuple[str, ...]:
        # Every word that may stand for its own function tag, its own first.
        return tuple(dict.fromkeys((self.function, *FUNCTION_WORDS)))

    @property
    def parameters(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.parameter, *PARAMETER_WORDS)))

    @property
    def edge(self) -> str:
        return "" if self.inline else super(TagForm, self).edge

    @property
    def next_parameter(self) -> re.Pattern[str]:
        return _next_word("|".join(self.parameters))

    @property
    def space(self) -> re.Pattern[str]:
        return _space_around(self.wrapper)

    def tag(self, word: str, name: str) -> str:
        return f'<{word} name="{name}">' if self.attribute else f"<{word}={name}>"

    @property
    def function_word(self) -> str:
        return self.function

    @property
    def function_closer(self) -> str:
        return f"</{self.function}>"

    @property
    def parameter_closer(self) -> str:
        return f"</{self.parameter}>"

    def function_tag(self, name: str) -> str:
        return self.tag(self.function, name)

    def parameter_tag(self, name: str, kind: str = "string") -> str:
        return self.tag(self.parameter, name)

    @property
    def sign(self) -> str:
        return rf"<{self.function}(?:=| name=)[^<>\n]{{1,200}}>?"

    def closer_of(self, word: str) -> str:
        return f"</{word}>"

    def begins_json(self, word: str) -> tuple[str, ...]:
        return tuple(opener for opener in (self.opener, f"<{word}=") if opener)

    def tag_heads(self) -> tuple[str, ...]:
        heads: list[str] = []
        for word in self.functions:
            heads += ["<" + word, "<" + word.capitalize(), "<" + word.upper()]
        return tuple(dict.fromkeys(heads))

    def may_begin(self, rest: str) -> bool:
        rest = rest.lower()
        return any(f"<{word}".lower().startswith(rest) for word in self.functions)

    def may_go_on(self, head: str) -> bool:
        # False if something else than a tag's name follows the word.
        words = "|".join(self.functions)
        pattern = rf"<(?:{words})(?:[\s=>\u0120n]|\Z)"
        return re.match(pattern, head, re.IGNORECASE | re.ASCII) is not None

    def tags(self) -> re.Pattern[str]:
        return _word_tags(self)

    def bare(self) -> tuple[re.Pattern[str], re.Pattern[str]]:
        return _bare_words(self)

    def heads(self) -> Heads:
        functions, parameters = "|".join(self.functions), "|".join(self.parameters)
        flags = re.IGNORECASE | re.ASCII
        inside = rf"\{{|<(?:{parameters}){_BEHIND_WORD}|</[ \t]{{0,8}}(?:{functions})[ \t>]"
        space = rf"(?:\s|<{self.wrapper}>)" if self.wrapper else r"\s"
        return Heads(
            re.compile(rf"{space}{{0,{LOOK}}}(?:{inside})", flags),
            re.compile(rf"{space}{{0,{LOOK}}}(?:</?[ \t]{{0,8}}[a-z_:]{{0,24}})?\Z", flags),
            re.compile(rf"<(?:{functions}){_BEHIND_WORD}", flags),
            (
                re.compile(rf"[^<>{{}}\[\]]{{1,80}}+<(?:{functions}){_BEHIND_WORD}", flags),
                re.compile(r"[^<>{}\[\]]{1,80}+(?:<[a-z]{0,12})?\Z", flags),
            ),
        )

    def strict_tags(self) -> StrictTags:
        words = "|".join((*self.functions, *self.parameters))
        function = re.escape(self.function_tag("\0")).split("\0")
        parameter = re.escape(self.parameter_tag("\0")).split("\0")
        return StrictTags(
            (function[0], function[1]),
            (parameter[0], parameter[1]),
            rf"(?i:/?[ \t]{{0,8}}(?:{words}))",
        )

    def closers_like(self, *, function: bool) -> str:
        words = self.functions if function else self.parameters
        return rf"</[ \t]{{0,8}}(?i:{'|'.join(words)})[ \t]{{0,8}}>"


MarkKind: TypeAlias = Literal["function", "/function", "parameter", "/parameter", "json"]


@dataclass(frozen=True, slots=True)
class Mark:
    """A tag that counts.

    Or, as 'json', the object that is in place of parameters.

    doubtful: a closer that counts only because the text ends there. rule: the repair that brings a
    tag of another spelling to the format's own. flag: the tag's word on its value's type.
    """

    kind: MarkKind
    start: int
    end: int
    name: str = ""
    name_start: int = 0
    doubtful: bool = False
    rule: str = "tags.spelling"
    flag: str = ""


@lru_cache(maxsize=8)
def _next_word(words: str) -> re.Pattern[str]:
    junk = r"\s{0,64}+\S[^\r\n]{0,31}?\s{0,64}+"
    name = rf"(?:=|\s{{1,8}}+name=)\s{{0,8}}+[\"']?(?P<next>{_TEXT_NAME})"
    return re.compile(rf"</(?:{words})>{junk}<(?:{words}){name}", re.ASCII)


@lru_cache(maxsize=8)
def _space_around(word: str) -> re.Pattern[str]:
    return re.compile(rf"(?:\s|</?{re.escape(word)}>)*+") if word else SPACE


# DeepSeek's word on the type of a value; the schema tells it as well.
_STRING = rf"(?:[ \t]{{1,8}}string=[{QUOTES}]?(?:true|false)[{QUOTES}]?)?+"


def _named(group: str, attributes: str = "") -> str:
    # The group of the name is `{group}n`. attributes: of those that may follow and mean nothing.
    return (
        rf"(?:[ \t]{{0,8}}=|{_APART}name[ \t]{{0,8}}=)[ \t]{{0,8}}"
        rf"[{QUOTES}]?(?P<{group}n>{_NAME})[{QUOTES}]?{attributes}[ \t]{{0,8}}"
        rf"{'(?P<self>/)?' if group == 'f' else ''}>"
    )


@lru_cache(maxsize=256)
def tag_pattern(form: Form) -> re.Pattern[str]:
    """Return a pattern for every tag of a format.

    `kind_of` tells which one it matched.

    Groups: f and p hold the word of an opening tag, fn and pn the name in it, ft and pt a name that
    is between two tags instead. Cf and cp hold the word of a closer. Opener and closer are the
    block's. 'cut' is text that may become a tag when more text comes.
    """
    return form.tags()


def _word_tags(form: TagForm) -> re.Pattern[str]:
    functions, parameters = "|".join(form.functions), "|".join(form.parameters)
    opener, closer = (
        re.escape(tag.removeprefix("<")) or "(?!)" for tag in (form.opener, form.closer)
    )
    # The common first character is alone in front, so that a search skips ordinary text at
    # once. Every repetition is bounded, so that what is cut off cannot grow without end.
    return re.compile(
        rf"<(?:(?P<opener>{opener})|(?P<closer>{closer})"
        rf"|(?P<f>{functions})(?:{_named('f')}"
        rf"|>\s{{0,64}}(?P<ft>{_TEXT_NAME})"
        rf"(?=\s{{0,64}}</?(?:{functions}|{parameters})[\s=>]))"
        rf"|(?P<p>{parameters})(?:{_named('p', _STRING)}"
        rf"|>\s{{0,8}}(?P<pt>{_TEXT_NAME})\s{{0,8}}</(?:{parameters})>(?=\s{{0,64}}[^\s<]))"
        rf"|/[ \t]{{0,8}}(?:(?P<cf>{functions})|(?P<cp>{parameters}))[ \t]{{0,8}}>"
        rf"|(?P<cut>[^<>]{{0,400}}\Z"
        rf"|(?:{functions}|{parameters})>\s{{0,64}}"
        rf"(?:{_TEXT_NAME}\s{{0,64}}(?:</?[a-z_]{{0,16}})?)?\Z"
        rf"|(?:{parameters})>\s{{0,8}}{_TEXT_NAME}\s{{0,8}}</(?:{parameters})>\s{{0,64}}\Z))",
        re.IGNORECASE | re.ASCII,
    )


@lru_cache(maxsize=256)
def bare_head(form: Form) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the patterns of a function's tag that lost its `<`, or of a line that may name a tool,
    before parameters; and of a beginning of it.
    """
    return form.bare()


def _bare_words(form: TagForm) -> tuple[re.Pattern[str], re.Pattern[str]]:
    # Without its bracket a tag is a word like any other: only parameters after it make it one.
    functions, parameters = "|".join(form.functions), "|".join(form.parameters)
    begins_parameter = rf"<(?:{parameters}){_BEHIND_WORD}"
    whole = re.compile(
        rf"(?P<f>{functions}){_named('f')}"
        rf"(?=\s{{0,64}}(?:\{{|{begins_parameter}|</(?:{functions})[ \t>]))"
        rf"|(?P<line>{_TEXT_NAME})[ \t]{{0,8}}(?=\r?\n\s{{0,64}}{begins_parameter})",
        re.IGNORECASE | re.ASCII,
    )
    return whole, re.compile(r"[^<>\r\n]{1,400}>?\s{0,64}(?:<[^<>]{0,20})?\Z", re.ASCII)


def names_function(match: re.Match[str], tools: Container[str]) -> bool:
    # A bare line does only where it names a tool.
    return match["f"] is not None or match["line"] in tools


def function_group(match: re.Match[str]) -> str:
    return "fn" if match["fn"] else "ft"


def parameter_group(match: re.Match[str]) -> str:
    return "pn" if match["pn"] else "pt"


def closes_itself(match: re.Match[str]) -> bool:
    # A function's tag that ends in a slash is a call without parameters.
    return "self" in match.re.groupindex and match["self"] is not None


# The last group of a match that has no name in it.
_KIND_OF_GROUP = {
    "opener": "opener",
    "closer": "closer",
    "cf": "/function",
    "cp": "/parameter",
    "cut": "cut",
}


def kind_of(match: re.Match[str]) -> str:
    """Return the kind of a match of `tag_pattern`: "function", "/function", "parameter",
    "/parameter", "opener", "closer" or "cut".
    """
    if match["f"]:
        return "function"
    if match["p"]:
        return "parameter"
    return _KIND_OF_GROUP[str(match.lastgroup)]


# How it works. White space between the parts is free, and belongs to the tag. A name is what may
# be between them: of a function what names a tool anywhere, of a parameter nearly anything.
# Every repetition is possessive and bounded, so that a tag costs what it is long.

# Models that were taught from escaped text write a line break between tags as two characters.
_BREAK = r"(?:\s|\\n)"
_FIRST_TOKEN = re.compile(r"<\|[^<>|]+\|>(?=.)")  # of a closer of several tokens
_GAP = rf"{_BREAK}{{0,64}}+"
_SPACE_OR_BREAKS = re.compile(rf"{_BREAK}*+")
_TOOL = r"[\w.:/-]{1,128}+"
_WORD = rf"[^\s<>={QUOTES}]{{1,64}}+"
_KEY = rf"[^\s<>{QUOTES},;:|)}}\]][^\s<>{QUOTES}]{{0,127}}+(?:[ \t]{{1,8}}+{_WORD}){{0,8}}+"
_SPACE = r"[ \t\r\n]*+"
_WORD_TAG = re.compile(r"</?[A-Za-z][\w:|-]*\w>")
# Behind a name in quotes: attributes that mean nothing here, such as the number of the call. Any
# other may be an argument.
_ATTRIBUTES = r"(?:\s{1,8}+(?:index|type|counter|(?:call_|tool_call_)?id)=\"[^\"<>]{0,64}+\"){0,4}+"
_ATTRIBUTES_CUT = _ATTRIBUTES + r"(?:\s{1,8}+(?:[\w-]{1,24}+(?:=(?:\"[^\"<>]{0,64}+)?)?)?)?"


class Part(NamedTuple):
    """One part of a tag: the source of its pattern, and of every beginning of it but the whole."""

    whole: str
    cut: str


def _literal(text: str) -> Part:
    cut = ""
    for char in reversed(text[:-1]):
        cut = f"(?:{re.escape(char)}{cut})?"
    return Part(re.escape(text), cut)


def _spaced(tag: str) -> Part:
    # Before the bracket of a tag that is a word may be a slip: `<tool_call >`, `</tool_call\>`.
    part = _literal(tag)
    if not _WORD_TAG.fullmatch(tag):
        return part
    word = _literal(tag[:-1])
    slip = r"[ \t\\]{0,4}+"
    return Part(f"{word.whole}{slip}>", f"(?:{word.whole}{slip}|{word.cut})")


def _bare(head: str) -> str:
    return head.removesuffix('="')


def _head(group: str, head: str) -> Part:
    # With quotes of any kind around the name, or none.
    word = _spaced(_bare(head))
    if _bare(head) == head:
        return Part(f"(?P<{group}>{word.whole})", word.cut)
    sign = rf"\s?+=\s?+[{QUOTES}]?+"
    return Part(f"(?P<{group}>{word.whole}){sign}", rf"(?:{word.whole}\s?+(?:=\s?+)?+|{word.cut})")


def _name(group: str, source: str) -> Part:
    return Part(f"(?P<{group}>{source})", f"(?:{source}[ \\t]{{0,8}}+)?")


_SPACES = Part(_GAP, "")


def _sequence(parts: Sequence[Part]) -> tuple[str, str]:
    # The source of a whole tag, and of what may become one, to the end of the text.
    whole = "".join(part.whole for part in parts)
    cut = ""
    for part in reversed(parts):
        anonymous = re.sub(r"\?P<\w+>", "?:", part.whole)
        cut = f"(?:{anonymous}{cut}|{part.cut})" if cut else f"(?:{part.cut})"
    return whole, rf"{cut}\Z"


@dataclass(frozen=True, slots=True)
class SlotForm(Form):
    """The constants of one format whose tags are literals around a name.

    function: the literals before and after a function's name. The second may be empty.
    function_end: its closer. parameter: the literals before, after and, for formats that write key
    and value apart, in front of the value. parameter_end: its closer. flag: the name of the
    attribute after a parameter's name that says the type of its value. boolean_flag: it says
    "true" for text and "false" for JSON. types: the literals around the type of a value, which
    may be between key and value in formats that write them apart. counter: the name of an
    attribute after a function's name, with the number of the call. The other fields are those of
    `Form`.
    """

    opener: str
    closer: str
    function: tuple[str, str]
    function_end: str
    parameter: tuple[str, ...]
    parameter_end: str
    trim: bool = False
    lines: bool = False
    entities: bool = False
    sections: bool = False
    markup: tuple[str, ...] = ()
    flag: str = ""
    boolean_flag: bool = False
    types: tuple[str, str] = ("", "")
    counter: str = ""

    @property
    def flags(self) -> bool:  # type: ignore[override]  # an attribute of the other forms
        return bool(self.flag or self.types[0])

    @property
    def repeats_are_lists(self) -> bool:
        # A key in a tag of its own that is there twice is one too many.
        return not self.value_has_tag

    @property
    def value_has_tag(self) -> bool:
        return len(self.parameter) > 2

    @property
    def without_flags(self) -> Form | None:
        # They may be absent where they are an addition.
        return None if self.flag else replace(self, types=("", ""))

    @property
    def flags_may_miss(self) -> bool:
        return not self.flag

    @property
    def space(self) -> re.Pattern[str]:
        return _SPACE_OR_BREAKS

    @property
    def next_parameter(self) -> re.Pattern[str]:
        head, tail, *value = self.parameter
        behind = (f'" {self.flag}="',) if self.flag else (tail, *value)
        return _next_slot(self.parameter_end, head, behind)

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        head, *value = self.parameter
        inner = ((head, value[0]), (value[-1], self.parameter_end)) if value[0][:1] == "<" else ()
        return (
            (self.opener, self.closer),
            (self.function[0], self.function_end),
            (self.function[1], ""),
            self.types,
            *(inner or ((head, self.parameter_end),)),
        )

    @property
    def bare_names(self) -> bool:
        # A name without quotes is one by its place alone.
        return not self.function[0].endswith('"')

    @property
    def function_word(self) -> str:
        return _bare(self.function[0])

    @property
    def function_closer(self) -> str:
        return self.function_end

    @property
    def parameter_closer(self) -> str:
        return self.parameter_end

    @property
    def sign(self) -> str:
        head = re.escape(self.function_word.rstrip())
        if not self.bare_names:
            return head + r"[^<>\n]{1,200}"
        # Words after such a tag are a mention of it; a name is followed by more of a call.
        inside = (self.function[1].strip(), self.parameter[0].rstrip(), self.function_end)
        follows = "|".join(re.escape(text) for text in inside if text)
        return rf"{head}{_GAP}{_TOOL}{_GAP}(?:{follows}|\{{)"

    def function_tag(self, name: str) -> str:
        head, tail = self.function
        if self.counter:
            tail = f'" {self.counter}="1' + tail
        return f"{head}{name}{tail}"

    def parameter_tag(self, name: str, kind: str = "string") -> str:
        head, tail, *value = self.parameter
        if self.flag:
            tail = f'" {self.flag}="{self._flag_of(kind)}"' + tail.removeprefix('"')
        gap = "\n" if self.lines and value else ""
        return f"{head}{name}{tail}{gap}{''.join(value)}"

    def _flag_of(self, kind: str) -> str:
        if self.boolean_flag:
            return "true" if kind in ("string", "any") else "false"
        return {"integer": "number", "any": "string"}.get(kind, kind)

    def owns(self, tag: str, name: str, *, function: bool) -> bool:
        function_tag, parameter_tag = _own_slots(self)
        return (function_tag if function else parameter_tag).fullmatch(tag) is not None

    def closer_of(self, word: str) -> str:
        return self.function_end

    def is_pair(self, opening: str, closing: str) -> bool:
        return True

    def begins_json(self, word: str) -> tuple[str, ...]:
        return tuple(opener for opener in (self.opener, self.function[0]) if opener)

    def tag_heads(self) -> tuple[str, ...]:
        word = self.function_word
        return (word, f"{word[:-1]} ") if _WORD_TAG.fullmatch(word) else (word,)

    def may_begin(self, rest: str) -> bool:
        word = self.function_word.removesuffix(">")
        return word.startswith(rest) or rest.startswith(word)

    def tags(self) -> re.Pattern[str]:
        wholes: list[str] = []
        cuts: list[str] = []
        for parts in (self._function_parts(), self._parameter_parts()):
            whole, cut = _sequence(parts)
            wholes.append(whole)
            cuts.append(cut)

        literals = {
            "cf": self.function_end, "cp": self.parameter_end,
            "opener": self.opener, "closer": self.closer,
        }  # fmt: skip
        for group, text in literals.items():
            if text:
                part = _spaced(text)
                wholes.append(f"(?P<{group}>{part.whole})")
                cuts.append(_sequence((part,))[1])
            else:
                wholes.append(f"(?P<{group}>(?!))")

        # The common first character is in front, so that a search skips ordinary text at once.
        start = "(?=<)" if all(tag.startswith("<") for tag in self._literals()) else ""
        never = "(?P<ft>(?!))|(?P<pt>(?!))"
        sources = "|".join(wholes)
        cut = "|".join(cut for cut in cuts)
        return re.compile(rf"{start}(?:{sources}|{never}|(?P<cut>(?=\S)(?:{cut})))")

    def _literals(self) -> tuple[str, ...]:
        tags = (
            self.opener, self.closer, self.function[0], self.function_end,
            self.parameter[0], self.parameter_end,
        )  # fmt: skip
        return tuple(tag for tag in tags if tag)

    def _function_parts(self) -> tuple[Part, ...]:
        head, tail = self.function
        if tail.startswith('"'):
            rest, quote = _literal(tail[1:]), f"[{QUOTES}]?+"
            # Where the tag ends in a bracket, it may close itself.
            slash = r"\s{0,8}+(?P<self>/)?+" if tail == '">' else ""
            cut = r"\s{0,8}+/?" if slash else ""
            end = Part(
                f"{quote}{_ATTRIBUTES}{slash}{rest.whole}",
                f"{quote}{_ATTRIBUTES_CUT}{cut}{rest.cut}",
            )
        elif tail:
            end = _literal(tail)
            # Models leave a mere separator out; a quote or bracket they do not.
            if tail.startswith("<"):
                end = self._inside_follows(end)
        else:
            end = self._inside_follows(None)
        return (
            _head("f", head),
            Part(r"[ \t\r\n]{0,8}+", ""),
            _name("fn", _TOOL),
            end,
        )

    def _inside_follows(self, separator: Part | None) -> Part:
        # Nothing ends the name but the inside of a call. separator: what should be there.
        inside = self._inside()
        whole, cut = f"(?={_GAP}{inside.whole})", inside.cut
        if separator is not None:
            whole = rf"(?:{_GAP}{separator.whole}|{whole})"
            cut = f"{cut}|{separator.cut}"
        return Part(whole, rf"{_GAP}(?:{cut}|\\)")

    def _inside(self) -> Part:
        # A key that lost one of its tags begins it too, where key and value have tags of their own.
        inside = (_bare(self.parameter[0]).rstrip(), self.function_end, "{")
        literals = [_literal(text) for text in inside]
        whole = "|".join(part.whole for part in literals)
        cut = "|".join(part.cut for part in literals if part.cut)
        if self.value_has_tag:
            ends = [_literal(tag) for tag in (*self.parameter[1:], self.parameter_end)]
            end = "|".join(part.whole for part in ends)
            end_cut = "|".join(part.cut for part in ends)
            whole += f"|(?:{_TOOL}{_GAP})?+(?:{end})"
            cut += f"|(?:{_TOOL}{_GAP})?+(?:{end_cut})"
            # The function's own tag in place of the first key's.
            again, key_end = _literal(self.function[0]), ends[0]
            whole += f"|{again.whole}{_TOOL}{_GAP}{key_end.whole}"
            cut += f"|{again.cut}|{again.whole}(?:{_TOOL}{_GAP}(?:{key_end.cut}))?+"
        return Part(f"(?:{whole})", cut)

    def _parameter_parts(self) -> tuple[Part, ...]:
        head, tail, *value = self.parameter
        parts = [
            _head("p", head),
            _SPACES if value else Part("", ""),
            _name("pn", _KEY),
            _SPACES if value else Part("", ""),
        ]
        if self.flag:
            end = _literal(tail.removeprefix('"'))
            quote = f"[{QUOTES}]?+"
            word = rf"{self.flag}\s?+=\s?+{quote}(?P<flag>[a-z]{{1,12}}+){quote}"
            flag = rf"{quote}(?:\s{{1,8}}+{word})?+\s{{0,8}}+{end.whole}"
            word = rf"[a-z]{{0,12}}+\s?+=?+\s?+{quote}[a-z]{{0,12}}+{quote}"
            cut = rf"{quote}(?:\s{{1,8}}+{word}\s{{0,8}}+{end.cut})?"
            parts.append(Part(flag, cut))
        else:
            parts.append(_literal(tail))
        if value:
            parts[-1:] = [self._before_value(_literal(tail), _literal(value[0]))]
        return tuple(parts)

    def _before_value(self, tail: Part, value: Part) -> Part:
        # One of two tags may be missing.
        kind, kind_cut = self._type_part()
        behind = f"{tail.whole}{kind}"
        whole = rf"(?:{behind}(?:{_GAP}{value.whole}|{_GAP}(?=[^\s<]))|{value.whole})"
        anonymous = re.sub(r"\?P<\w+>", "?:", behind)
        start = rf"{anonymous}{_GAP}(?:{value.cut}|\\)"
        cut = rf"(?:{start}|{tail.whole}{kind_cut}|{tail.cut}|{value.cut})"
        return Part(whole, cut)

    def _type_part(self) -> Part:
        begin, end = self.types
        if not begin:
            return Part("", "")
        head, tail = _literal(begin), _literal(end)
        whole = rf"(?:{_GAP}{head.whole}\s{{0,8}}+(?P<flag>[a-z]{{1,12}}+)\s{{0,8}}+{tail.whole})?+"
        cut = rf"{_GAP}(?:{head.whole}\s{{0,8}}+[a-z]{{0,12}}+\s{{0,8}}+{tail.cut}|{head.cut})"
        return Part(whole, cut)

    def bare(self) -> tuple[re.Pattern[str], re.Pattern[str]]:
        if not self.bare_names:
            return super(SlotForm, self).bare()
        head = _literal(self.parameter[0])
        separator = f"(?:{_literal(self.function[1]).whole}{_GAP})?+" if self.function[1] else ""
        whole = rf"(?P<f>(?!))?(?P<line>{_TOOL}){_GAP}{separator}(?={head.whole})"
        cuts = f"(?:{head.cut}|{_literal(self.function[1]).cut})"
        partial = rf"(?P<line>{_TOOL}){_GAP}{separator}{cuts}"
        return re.compile(whole), re.compile(partial + r"\Z")

    def heads(self) -> Heads:
        inside = self._inside()
        return Heads(
            re.compile(rf"{_BREAK}{{0,{LOOK}}}+{inside.whole}"),
            re.compile(rf"{_BREAK}{{0,{LOOK}}}+(?:{inside.cut}|\\)\Z"),
            re.compile(_spaced(self.function_word).whole),
        )

    def strict_tags(self) -> StrictTags:
        signs = "|".join(re.escape(tag.rstrip(' ">')[1:]) for tag in self._literals())
        head, tail, *value = self.parameter
        gap = _SPACE if value else ""
        behind = re.escape(tail)
        if self.flag:
            end = re.escape(tail.removeprefix('"'))
            behind = rf"\" {self.flag}=\"(?P<flag>[a-z]{{1,12}})\"{end}"
        behind += self._type_part().whole
        for literal in value:
            behind += _SPACE + re.escape(literal)
        end = re.escape(self.function[1])
        if end.startswith("<"):
            end = _SPACE + end
        elif end.startswith('"'):
            end = f'"{_ATTRIBUTES}{end[1:]}'
        return StrictTags(
            (re.escape(self.function[0]), end),
            (re.escape(head) + gap, gap + behind),
            f"(?:{signs})",
        )

    def closers_like(self, *, function: bool) -> str:
        # One of several tokens may have lost its first: `argument<|sep|>`.
        closer = self.function_end if function else self.parameter_end
        first = _FIRST_TOKEN.match(closer)
        if first is None:
            return _spaced(closer).whole
        return rf"(?:{re.escape(first[0])})?+{re.escape(closer[first.end() :])}"


@lru_cache(maxsize=256)
def _next_slot(closer: str, head: str, behind: tuple[str, ...]) -> re.Pattern[str]:
    # A closer and a tag, or what is left of a tag that lost its beginning.
    word = re.escape(re.sub(r"\s+\w+=\"\Z", "", head))
    rest = "|".join(re.escape(literal) for literal in behind if literal)
    return re.compile(rf"{re.escape(closer)}{_GAP}(?:{word}|(?s:.{{1,96}}?)(?:{rest}))")


@lru_cache(maxsize=256)
def _own_slots(form: SlotForm) -> tuple[re.Pattern[str], re.Pattern[str]]:
    strict = form.strict_tags()
    function = rf"{strict.function[0]}{_SPACE}{_TOOL}{strict.function[1]}"
    parameter = rf"{strict.parameter[0]}{_KEY}{strict.parameter[1]}"
    return re.compile(function), re.compile(parameter)
