"""The constants of a format of parameter tags, and the patterns that follow from them."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Container
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, TypeAlias

from ...arguments.rjson.positions import find_places
from ...arguments.rjson.strict import read_if_strict
from ...arguments.schema.kinds import is_type
from ...core.values import Value
from ..rxml.element import unescape, unescape_offsets
from ..scan import SPACE, begun, cut_literals

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


def value_offsets(raw: str) -> list[int] | None:
    return unescape_offsets(raw) if holds_references(raw) else None


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

    @cached_property
    def own_tags(self) -> re.Pattern[str]:
        """The pattern of the format's tags in its own words, whatever is in them."""
        tags = {tag.rstrip(' "=') for pair in self.pairs for tag in pair} - {""}
        sources = (re.escape(tag) + (r"(?![\w-])" if tag[-1:].isalnum() else "") for tag in tags)
        return re.compile("|".join(sorted(sources)) or "(?!)")

    @cached_property
    def waits(self) -> frozenset[str]:
        """The beginnings of what ends a value, as far as what follows it is not known."""
        (_, function_closer), (parameter, _) = self.pairs[1:3]
        between = self.pairs[-1][1] + ("\n" if self.lines else "")
        ends = (between + tag for tag in (parameter, function_closer))
        return cut_literals(tuple(end for end in ends if end[:1] == "<"))[0] - {""}

    @property
    def value_has_tag(self) -> bool:
        """True if a tag of its own is between a parameter's name and its value."""
        return False

    @property
    def repeats_are_lists(self) -> bool:
        """True if a parameter that is there several times may be a list that no schema asks for."""
        return True

    @cached_property
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
        """The word of a function's tag, as `tags` has it in its group f."""

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

    @property
    @abstractmethod
    def tags(self) -> re.Pattern[str]:
        """The pattern of every tag, of which `kind_of` tells which one it matched.

        Groups: f and p contain the word of an opening tag, fn and pn the name in it, ft and pt a
        name that is between two tags instead. cf and cp contain the word of a closer. Opener and
        closer are the block's. 'cut' is text that may become a tag when more text comes.
        """

    @property
    def bare(self) -> tuple[re.Pattern[str], re.Pattern[str]]:
        """The patterns of a function's tag that lost its `<`, or of a line that may name a tool,
        before parameters; and of a beginning of it. By default nothing stands for a tag.
        """
        return _NEVER, _NEVER

    @property
    @abstractmethod
    def heads(self) -> Heads:
        """The patterns of the beginning of a call."""

    @abstractmethod
    def strict_tags(self) -> StrictTags:
        """Return the sources of the tags in the format's own spelling."""

    @abstractmethod
    def closers_like(self, *, function: bool) -> str:
        """Return the source of every closer that may stand for a function's or a parameter's."""


# Models write the words of other formats; each of these means the format's own.
FUNCTION_WORDS = ("function", "call", "tool", "invoke")
PARAMETER_WORDS = ("parameter", "param", "argument", "arg")
# In a tag nearly anything is a name; as text between two tags only what names a tool anywhere.
_NAME = rf"[^\s<>{QUOTES}=,;:|)}}\]][^<>{QUOTES}\r\n]{{0,255}}?"
_TEXT_NAME = r"[\w.:/-]{1,128}"
# Some servers lose the space before an attribute, or leave their tokenizer's mark of it.
_APART = r"[\s\u0120]{0,8}"
_MORE_WORD = r"[_-][A-Za-z_]{1,24}"  # that some models write behind a closer's word
_BEHIND_WORD = r"(?:[\s=>\u0120]|name[ \t]{0,8}=)"


@dataclass(frozen=True)
class TagForm(Form):
    """The constants of one format whose tags are words: `<function=f>` or `<invoke name="f">`.

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
        return "" if self.inline else super().edge

    @cached_property
    def next_parameter(self) -> re.Pattern[str]:
        words = "|".join(self.parameters)
        junk = r"\s{0,64}+\S[^\r\n]{0,31}?\s{0,64}+"
        name = rf"(?:=|\s{{1,8}}+name=)\s{{0,8}}+[\"']?(?P<next>{_TEXT_NAME})"
        return re.compile(rf"</(?:{words})>{junk}<(?:{words}){name}", re.ASCII)

    @cached_property
    def space(self) -> re.Pattern[str]:
        return re.compile(rf"(?:\s|</?{re.escape(self.wrapper)}>)*+") if self.wrapper else SPACE

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

    @cached_property
    def tags(self) -> re.Pattern[str]:
        functions, parameters = "|".join(self.functions), "|".join(self.parameters)
        opener, closer = (
            re.escape(tag.removeprefix("<")) or "(?!)" for tag in (self.opener, self.closer)
        )
        # Of literals with brackets inside, all beginnings.
        inner = "|".join(
            begun(tag[1:]) for tag in (self.opener, self.closer) if re.search("[<>].", tag[1:])
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
            rf"|/[ \t]{{0,8}}(?:(?P<cf>{functions})|(?P<cp>{parameters}))"
            rf"(?P<more>{_MORE_WORD})?\s{{0,8}}>"
            rf"|(?P<cut>[^<>]{{0,400}}\Z|(?:{inner or '(?!)'})\Z"
            rf"|(?:{functions}|{parameters})>\s{{0,64}}"
            rf"(?:{_TEXT_NAME}\s{{0,64}}(?:</?[a-z_]{{0,16}})?)?\Z"
            rf"|(?:{parameters})>\s{{0,8}}{_TEXT_NAME}\s{{0,8}}</(?:{parameters})>\s{{0,64}}\Z))",
            re.IGNORECASE | re.ASCII,
        )

    @cached_property
    def bare(self) -> tuple[re.Pattern[str], re.Pattern[str]]:
        # Without its bracket a tag is a word like any other: only parameters after it make it one.
        functions, parameters = "|".join(self.functions), "|".join(self.parameters)
        begins_parameter = rf"<(?:{parameters}){_BEHIND_WORD}"
        whole = re.compile(
            rf"(?P<f>{functions}){_named('f')}"
            rf"(?=\s{{0,64}}(?:\{{|{begins_parameter}|</(?:{functions})[ \t>]))"
            rf"|(?P<line>{_TEXT_NAME})[ \t]{{0,8}}(?=\r?\n\s{{0,64}}{begins_parameter})",
            re.IGNORECASE | re.ASCII,
        )
        return whole, re.compile(r"[^<>\r\n]{1,400}>?\s{0,64}(?:<[^<>]{0,20})?\Z", re.ASCII)

    @cached_property
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
        words = (*self.functions, *self.parameters)
        # A look at one character, since most of what is written in brackets is of other markup.
        firsts = "".join(sorted({letter for word in words for letter in word[0] + word[0].upper()}))
        function = re.escape(self.function_tag("\0")).split("\0")
        parameter = re.escape(self.parameter_tag("\0")).split("\0")
        return StrictTags(
            (function[0], function[1]),
            (parameter[0], parameter[1]),
            rf"(?=[/ \t{re.escape(firsts)}])(?i:/?[ \t]{{0,8}}(?:{'|'.join(words)}))",
        )

    def closers_like(self, *, function: bool) -> str:
        words = self.functions if function else self.parameters
        return rf"</[ \t]{{0,8}}(?i:{'|'.join(words)})(?:{_MORE_WORD})?\s{{0,8}}>"


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


# DeepSeek's word on the type of a value; the schema tells it as well.
_STRING = rf"(?:[ \t]{{1,8}}string=[{QUOTES}]?(?:true|false)[{QUOTES}]?)?+"


def _named(group: str, attributes: str = "") -> str:
    # The group of the name is `{group}n`. attributes: of those that may follow and mean nothing.
    return (
        rf"(?:[ \t]{{0,8}}=|{_APART}name[ \t]{{0,8}}=)[ \t]{{0,8}}"
        rf"[{QUOTES}]?(?P<{group}n>{_NAME})[{QUOTES}]?{attributes}\s{{0,8}}"
        rf"{'(?P<self>/)?' if group == 'f' else ''}>"
    )


def names_function(match: re.Match[str], tools: Container[str]) -> bool:
    # A bare line does only where it names a tool.
    return match["f"] is not None or match["line"] in tools


def function_group(match: re.Match[str]) -> str:
    return "fn" if match["fn"] else "ft"


def closes_itself(match: re.Match[str]) -> bool:
    # A function's tag that ends in a slash is a call without parameters.
    return "self" in match.re.groupindex and match["self"] is not None


_CLOSERS = {"cf": "/function", "cp": "/parameter"}


def has_more_words(match: re.Match[str]) -> bool:
    # Such a closer counts only between the tags, where no value has it for its own.
    return "more" in match.re.groupindex and match["more"] is not None


def kind_of(match: re.Match[str]) -> str:
    """Return the kind of a match of `Form.tags`: "function", "/function", "parameter",
    "/parameter", "opener", "closer" or "cut".
    """
    if match["f"]:
        return "function"
    if match["p"]:
        return "parameter"
    group = str(match.lastgroup)  # it has no name in it
    if group == "more":
        group = "cf" if match["cf"] else "cp"
    return _CLOSERS.get(group, group)
