"""The constants of a format of parameter tags, the pattern of its tags, and the tags that count."""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

from ..scan import SPACE
from .shape import LOOK, QUOTES, Form, Heads, StrictTags

# Models write the words of other formats; each of these stands for the format's own.
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
    inline: values are written beside their tags, even if those are on lines.
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
        return _next_parameter("|".join(self.parameters))

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

    Or, as 'json', the object that stands in place of parameters.

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
def _next_parameter(words: str) -> re.Pattern[str]:
    junk = r"\s{0,64}+\S[^\r\n]{0,31}?\s{0,64}+"
    name = rf"(?:=|\s{{1,8}}+name=)\s{{0,8}}+[\"']?(?P<next>{_TEXT_NAME})"
    return re.compile(rf"</(?:{words})>{junk}<(?:{words}){name}", re.ASCII)


@lru_cache(maxsize=8)
def _space_around(word: str) -> re.Pattern[str]:
    return re.compile(rf"(?:\s|</?{re.escape(word)}>)*+") if word else SPACE


# DeepSeek's word on the type of a value; the schema tells it as well.
_STRING = rf"(?:[ \t]{{1,8}}string=[{QUOTES}]?(?:true|false)[{QUOTES}]?)?+"


def _named(group: str, attributes: str = "") -> str:
    # The group of the name is `{group}n`. attributes: of those that may follow and mean
    # nothing.
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
    stands between two tags instead. Cf and cp hold the word of a closer. Opener and closer are the
    block's. 'cut' is text that may become a tag when more text comes.
    """
    return form.tags()


def _word_tags(form: TagForm) -> re.Pattern[str]:
    functions, parameters = "|".join(form.functions), "|".join(form.parameters)
    opener, closer = (
        re.escape(tag.removeprefix("<")) or "(?!)" for tag in (form.opener, form.closer)
    )
    # The common first character stands alone in front, so that a search skips ordinary text at
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
    # Without its bracket a tag is a word like any other: only parameters behind it make it one.
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
_KINDS = {
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
    return _KINDS[str(match.lastgroup)]
