"""The constants of a format of parameter tags, the pattern of its tags, and the tags that count."""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

# Models write the words of other formats; each of these stands for the format's own.
FUNCTION_WORDS = ("function", "call", "tool", "invoke")
PARAMETER_WORDS = ("parameter", "param", "argument", "arg")
# In a tag nearly anything is a name; as text between two tags only what names a tool anywhere.
_NAME = r"[^\s<>\"'=][^<>\"'\r\n]{0,255}?"
_TEXT_NAME = r"[\w.:/-]{1,128}"


@dataclass(frozen=True, slots=True)
class TagForm:
    """The constants of one format.

    opener, closer: around a block of functions, both begin with `<`; empty where there is none.
    attribute: names are written `name="…"`, else `=…`. trim: a value loses one line break at each
    end. lines: tags are written on lines of their own.
    """

    opener: str = "<tool_call>"
    closer: str = "</tool_call>"
    function: str = "function"
    parameter: str = "parameter"
    attribute: bool = False
    trim: bool = True
    lines: bool = True

    def __post_init__(self) -> None:
        """Raise ValueError for a block whose opener or closer is no tag."""
        if not all(tag.startswith("<") for tag in (self.opener, self.closer) if tag):
            raise ValueError("a block's opener and closer begin with '<'")

    @property
    def functions(self) -> tuple[str, ...]:
        """Every word that may stand for the format's own function tag, its own first.

        >>> TagForm(function="invoke").functions
        ('invoke', 'function', 'call', 'tool')
        """
        return tuple(dict.fromkeys((self.function, *FUNCTION_WORDS)))

    @property
    def parameters(self) -> tuple[str, ...]:
        """Every word that may stand for the format's own parameter tag, its own first.

        >>> TagForm(parameter="arg").parameters
        ('arg', 'parameter', 'param', 'argument')
        """
        return tuple(dict.fromkeys((self.parameter, *PARAMETER_WORDS)))

    def tag(self, word: str, name: str) -> str:
        """Return an opening tag as the format writes it.

        >>> TagForm().tag("function", "f"), TagForm(attribute=True).tag("invoke", "f")
        ('<function=f>', '<invoke name="f">')
        """
        return f'<{word} name="{name}">' if self.attribute else f"<{word}={name}>"


MarkKind: TypeAlias = Literal["function", "/function", "parameter", "/parameter", "json"]


@dataclass(frozen=True, slots=True)
class Mark:
    """A tag that counts; or, as 'json', the object that stands in place of parameters.

    doubtful: a closer that counts only because the text ends there. rule: what brings a tag of
    another spelling to the format's own.
    """

    kind: MarkKind
    start: int
    end: int
    name: str = ""
    name_start: int = 0
    doubtful: bool = False
    rule: str = "tags.spelling"


def _named(group: str) -> str:
    """Return the source of a tag's name in any of its spellings, and the tag's end.

    group: begins the names of its groups; that of the tag's name is `{group}n`.
    """
    return (
        rf"(?:[ \t]{{0,8}}=|\s{{1,8}}name[ \t]{{0,8}}=)[ \t]{{0,8}}"
        rf"(?P<{group}q>[\"']?)(?P<{group}n>{_NAME})(?P={group}q)[ \t]{{0,8}}>"
    )


@lru_cache(maxsize=64)
def tag_pattern(form: TagForm) -> re.Pattern[str]:
    """Return a pattern for every tag of a format; `kind_of` tells which one it matched.

    Groups: f and p hold the word of an opening tag, fn and pn the name in it, ft and pt a name that
    stands between two tags instead; cf and cp hold the word of a closer; opener and closer are the
    block's. 'cut' is what may become a tag when more text comes.
    """
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
        rf"|(?P<p>{parameters})(?:{_named('p')}"
        rf"|>\s{{0,8}}(?P<pt>{_TEXT_NAME})\s{{0,8}}</(?:{parameters})>(?=\s{{0,64}}[^\s<]))"
        rf"|/[ \t]{{0,8}}(?:(?P<cf>{functions})|(?P<cp>{parameters}))[ \t]{{0,8}}>"
        rf"|(?P<cut>[^<>]{{0,400}}\Z"
        rf"|(?:{functions}|{parameters})>\s{{0,64}}"
        rf"(?:{_TEXT_NAME}\s{{0,64}}(?:</?[a-z_]{{0,16}})?)?\Z"
        rf"|(?:{parameters})>\s{{0,8}}{_TEXT_NAME}\s{{0,8}}</(?:{parameters})>\s{{0,64}}\Z))",
        re.IGNORECASE | re.ASCII,
    )


@lru_cache(maxsize=64)
def bare_head(form: TagForm) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return a pattern for what stands for a function's tag, and one for what may become that.

    It is a tag that lost its `<`, or a line that may name a tool, before parameters.
    """
    # Without its bracket a tag is a word like any other: only parameters behind it make it one.
    functions, parameters = "|".join(form.functions), "|".join(form.parameters)
    begins_parameter = rf"<(?:{parameters})[\s=>]"
    whole = re.compile(
        rf"(?P<f>{functions}){_named('f')}"
        rf"(?=\s{{0,64}}(?:\{{|{begins_parameter}|</(?:{functions})[ \t>]))"
        rf"|(?P<line>{_TEXT_NAME})[ \t]{{0,8}}(?=\r?\n\s{{0,64}}{begins_parameter})",
        re.IGNORECASE | re.ASCII,
    )
    return whole, re.compile(r"[^<>\r\n]{1,400}>?\s{0,64}(?:<[^<>]{0,20})?\Z", re.ASCII)


def names_function(match: re.Match[str], tools: Container[str]) -> bool:
    """Return if a match of `bare_head` stands for a function's tag.

    A bare line does only where it names a tool.

    >>> match = bare_head(TagForm())[0].match("search\\n<parameter=q>")
    >>> names_function(match, ["search"]), names_function(match, ["other"])
    (True, False)
    """
    return match["f"] is not None or match["line"] in tools


def function_group(match: re.Match[str]) -> str:
    """Return the group of a match of `tag_pattern` that holds the function's name.

    >>> pattern = tag_pattern(TagForm())
    >>> function_group(pattern.match("<function=f>"))
    'fn'
    """
    return "fn" if match["fn"] else "ft"


def parameter_group(match: re.Match[str]) -> str:
    """Return the group of a match of `tag_pattern` that holds the parameter's name.

    >>> pattern = tag_pattern(TagForm())
    >>> parameter_group(pattern.match("<parameter=q>"))
    'pn'
    """
    return "pn" if match["pn"] else "pt"


# The last group of a match that has no name in it.
_KINDS = {
    "opener": "opener",
    "closer": "closer",
    "cf": "/function",
    "cp": "/parameter",
    "cut": "cut",
}


def kind_of(match: re.Match[str]) -> str:
    """Return the kind of a match of `tag_pattern`.

    It is "function", "/function", "parameter", "/parameter", "opener", "closer" or "cut".

    >>> pattern = tag_pattern(TagForm())
    >>> [kind_of(pattern.match(text)) for text in ("<function=f>", "</parameter>", "<func")]
    ['function', '/parameter', 'cut']
    """
    if match["f"]:
        return "function"
    if match["p"]:
        return "parameter"
    return _KINDS[str(match.lastgroup)]
