"""The constants of a format of parameter tags, the pattern of all its tags, and the tags that count."""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

FUNCTION_WORDS = ("function", "call", "tool", "invoke")
PARAMETER_WORDS = ("parameter", "param", "argument", "arg")
_NAME = r"[^\s<>\"'=][^<>\"'\r\n]{0,255}?"
_TEXT_NAME = r"[\w.:/-]{1,128}"


@dataclass(frozen=True, slots=True)
class TagForm:
    """The constants of one format.

    opener, closer: around a block of functions, both begin with `<`; empty where there is none. attribute: names are
    written `name="…"`, else `=…`. trim: a value loses one line break at each end. lines: tags are written on lines of
    their own.
    """

    opener: str = "<tool_call>"
    closer: str = "</tool_call>"
    function: str = "function"
    parameter: str = "parameter"
    attribute: bool = False
    trim: bool = True
    lines: bool = True

    def __post_init__(self) -> None:
        if not all(tag.startswith("<") for tag in (self.opener, self.closer) if tag):
            raise ValueError("a block's opener and closer begin with '<'")

    @property
    def functions(self) -> tuple[str, ...]:
        """Every word that may stand for the format's own function tag."""
        return tuple(dict.fromkeys((self.function, *FUNCTION_WORDS)))

    @property
    def parameters(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.parameter, *PARAMETER_WORDS)))

    def tag(self, word: str, name: str) -> str:
        return f'<{word} name="{name}">' if self.attribute else f"<{word}={name}>"


MarkKind: TypeAlias = Literal["function", "/function", "parameter", "/parameter", "json"]


@dataclass(frozen=True, slots=True)
class Mark:
    """A tag that counts; or, as 'json', the object that stands in place of parameters.

    doubtful: a closer that counts only because the text ends there. rule: what brings a tag of another spelling to
    the format's own.
    """

    kind: MarkKind
    start: int
    end: int
    name: str = ""
    name_start: int = 0
    doubtful: bool = False
    rule: str = "tags.spelling"


def _named(group: str) -> str:
    """A tag's name in any of its spellings, and the tag's end."""
    return (
        rf"(?:[ \t]{{0,8}}=|\s{{1,8}}name[ \t]{{0,8}}=)[ \t]{{0,8}}"
        rf"(?P<{group}q>[\"']?)(?P<{group}n>{_NAME})(?P={group}q)[ \t]{{0,8}}>"
    )


@lru_cache(maxsize=64)
def tag_pattern(form: TagForm) -> re.Pattern[str]:
    """Every tag of a format; 'cut' is what may become one when more text comes."""
    functions, parameters = "|".join(form.functions), "|".join(form.parameters)
    opener, closer = (re.escape(tag.removeprefix("<")) or "(?!)" for tag in (form.opener, form.closer))
    # The common first character stands alone in front, so that a search skips ordinary text at once.
    return re.compile(
        rf"<(?:(?P<opener>{opener})|(?P<closer>{closer})"
        rf"|(?P<f>{functions})(?:{_named('f')}"
        rf"|>\s{{0,64}}(?P<ft>{_TEXT_NAME})(?=\s{{0,64}}</?(?:{functions}|{parameters})[\s=>]))"
        rf"|(?P<p>{parameters})(?:{_named('p')}"
        rf"|>\s{{0,8}}(?P<pt>{_TEXT_NAME})\s{{0,8}}</(?:{parameters})>(?=\s{{0,64}}[^\s<]))"
        rf"|/[ \t]{{0,8}}(?:(?P<cf>{functions})|(?P<cp>{parameters}))[ \t]{{0,8}}>"
        rf"|(?P<cut>[^<>]{{0,400}}\Z"
        rf"|(?:{functions}|{parameters})>\s{{0,64}}(?:{_TEXT_NAME}\s{{0,64}}(?:</?[a-z_]{{0,16}})?)?\Z"
        rf"|(?:{parameters})>\s{{0,8}}{_TEXT_NAME}\s{{0,8}}</(?:{parameters})>\s{{0,64}}\Z))",
        re.IGNORECASE | re.ASCII,
    )


@lru_cache(maxsize=64)
def bare_head(form: TagForm) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """A function's tag that lost its `<`, or a line that may name a tool, before parameters; and what may become it."""
    functions, parameters = "|".join(form.functions), "|".join(form.parameters)
    return (
        re.compile(
            rf"(?P<f>{functions}){_named('f')}(?=\s{{0,64}}(?:\{{|<(?:{parameters})[\s=>]|</(?:{functions})[ \t>]))"
            rf"|(?P<line>{_TEXT_NAME})[ \t]{{0,8}}(?=\r?\n\s{{0,64}}<(?:{parameters})[\s=>])",
            re.IGNORECASE | re.ASCII,
        ),
        re.compile(r"[^<>\r\n]{1,400}>?\s{0,64}(?:<[^<>]{0,20})?\Z", re.ASCII),
    )


def names_function(m: re.Match[str], tools: Container[str]) -> bool:
    """Whether a match of `bare_head` stands for a function's tag: a bare line only where it names a tool."""
    return m["f"] is not None or m["line"] in tools


def function_group(m: re.Match[str]) -> str:
    """The group of a match of `tag_pattern` that holds the function's name."""
    return "fn" if m["fn"] else "ft"


def parameter_group(m: re.Match[str]) -> str:
    return "pn" if m["pn"] else "pt"


_KINDS = {"opener": "opener", "closer": "closer", "cf": "/function", "cp": "/parameter", "cut": "cut"}


def kind_of(m: re.Match[str]) -> str:
    if m["f"]:
        return "function"
    return "parameter" if m["p"] else _KINDS[str(m.lastgroup)]
