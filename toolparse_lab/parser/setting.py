"""Everything that is the same for every text of one reader: protocol, tools, options, and
everything that follows from them.
"""

from __future__ import annotations

import re
from functools import lru_cache

from ..core.toolspec import ToolSpec
from ..core.types import ParseOptions
from ..formats.base import Protocol
from ..formats.scan import longest_of, partial_finder
from ..formats.tags import THINK_ENDS, THINK_TAGS
from ..formats.turns import TURN_ENDS
from .call_lines import first_signs
from .name_lines import name_heads
from .quoting import LONG_RUN
from .resolve import Resolver


class Setting:
    """A protocol, tools and options, and everything that follows from them.

    Computed once for any number of texts, and never changed: parsers share it.

    heads: the literals that an opener may begin with. literals: heads, think tags and the tokens
    that end a turn, for which the end of a tail waits, as `partial_start` finds it. name_heads: of
    calls that are a tool's name on a line of its own, none where no call is recovered.
    python_starts: the characters that calls of Python's outside their format may begin with, none
    where they are not read. closers: the pattern of the literals that close a body and mean nothing
    else, None without such. tokens: the pattern of everything that means something in text.
    """

    __slots__ = (
        "closers",
        "heads",
        "literals",
        "longest_head",
        "name_heads",
        "options",
        "partial_start",
        "protocol",
        "python_starts",
        "reads_reasoning",
        "recovers",
        "resolver",
        "specs",
        "tokens",
        "tools",
    )

    def __init__(
        self, protocol: Protocol, tools: tuple[ToolSpec, ...], options: ParseOptions
    ) -> None:
        """Work out once the tables that every text under this protocol, tools and options
        asks for.
        """
        self.protocol = protocol
        self.specs = tools
        self.options = options
        self.tools = {t.name: t for t in tools}
        self.resolver = Resolver(protocol, self.tools, options)
        self.heads = protocol.envelope.heads(self.tools)
        self.longest_head = max(map(len, self.heads), default=0)
        self.reads_reasoning = options.reasoning != "none"
        # A call outside its format is recognised by its tool's name: without tools there is none.
        self.recovers = options.recover and bool(tools)
        names = tuple(self.tools) if self.recovers else ()
        self.name_heads = name_heads(names)
        is_python = self.recovers and protocol.envelope.calls_are_python
        self.python_starts = first_signs(names) if is_python else frozenset()
        # A format's own opener may be, or begin with, what ends the turns of another family.
        ends = tuple(e for e in TURN_ENDS if not any(h.startswith(e) for h in self.heads))
        self.literals = (*self.heads, *ends) + (
            (*THINK_TAGS, *THINK_ENDS) if self.reads_reasoning else ()
        )
        self.partial_start = partial_finder(self.literals)
        self.tokens = _text_tokens(self.literals, ends, self.reads_python)
        self.closers = _closer_tokens(protocol.envelope.closers_in_text(self.tools), self.heads)

    @property
    def reads_python(self) -> bool:
        """True if calls written as Python count outside the format."""
        return bool(self.python_starts)


_settings: dict[tuple[int, int, ParseOptions], Setting] = {}
_MOST_SETTINGS = 128


def setting_of(protocol: Protocol, tools: tuple[ToolSpec, ...], options: ParseOptions) -> Setting:
    """Return the setting of a protocol, tools and options, made once while it is among the last.

    Most programs parse answer after answer with the same ones.
    """
    # By identity, since to hash a protocol takes as long as to read a call. The setting keeps both
    # objects alive, so that no other ones get their numbers.
    key = id(protocol), id(tools), options
    setting = _settings.get(key)
    if setting is None:
        setting = Setting(protocol, tools, options)
        # Emptied as a whole: nothing here is worth the order of a better rule. `clear` is a
        # single step, so that threads need no lock.
        if len(_settings) >= _MOST_SETTINGS:
            _settings.clear()
        _settings[key] = setting
    return setting


# Compiling takes longer than parsing a short answer, and most readers share a few sets of heads.
@lru_cache(maxsize=512)
def _text_tokens(
    literals: tuple[str, ...], ends: tuple[str, ...] = (), lists: bool = False
) -> re.Pattern[str]:
    """Return the pattern of the characters that mean anything in text: heads of openers, line
    breaks, backticks.

    Its groups are `head`, `line`, `ticks`, `list` and `end`, of which exactly one matches. ends:
    those of the literals that end a turn and begin nothing. lists: a bracket may begin a list of
    calls.
    """
    bracket = r"\[" if lists else "(?!)"
    first = {literal[0] for literal in literals} | {"\n", "`"} | ({"["} if lists else set())
    # Nearly every character begins nothing, and one look at a set says so; an alternation of all
    # heads would be tried at each.
    look = f"(?=[{re.escape(''.join(sorted(first)))}])"
    heads = longest_of(literal for literal in literals if literal not in ends)
    return re.compile(
        f"{look}(?:(?P<end>{longest_of(ends)})|(?P<head>{heads})|(?P<line>\n)"
        f"|(?P<ticks>`{{1,{LONG_RUN}}})|(?P<list>{bracket}))"
    )


@lru_cache(maxsize=512)
def _closer_tokens(closers: tuple[str, ...], heads: tuple[str, ...]) -> re.Pattern[str] | None:
    """Return the pattern of the closers that are not openers, and no backticks or white space
    either.
    """
    no_closers = (*heads, *TURN_ENDS)
    only = [c for c in closers if c[0] not in "`\r\n ]" and c not in no_closers]
    return re.compile(longest_of(only)) if only else None
