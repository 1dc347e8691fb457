"""What is the same for every text of one reader: protocol, tools, options, and what follows from
them."""

from __future__ import annotations

import re
from functools import lru_cache

from ..protocols.base import Protocol
from ..protocols.tags import THINK_TAGS
from ..toolspec import ToolSpec
from ..types import ParseOptions
from .quoting import LONG_RUN
from .resolve import Resolver


class Setting:
    """A protocol, tools and options, and what follows from them.

    Computed once for any number of texts, and never changed: parsers share it.

    heads: the literals that an opener may begin with. literals: heads and think tags, for which the
    end of a tail is held back. closers: the pattern of the literals that close a body and mean
    nothing else, None without such. tokens: the pattern of everything that means something in text.
    """

    __slots__ = (
        "closers",
        "heads",
        "literals",
        "longest_head",
        "options",
        "protocol",
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
        """Work out once what every text under this protocol, tools and options asks for."""
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
        self.literals = self.heads + (tuple(THINK_TAGS) if self.reads_reasoning else ())
        self.tokens = _text_tokens(self.literals)
        self.closers = _closer_tokens(protocol.envelope.closers_in_text(self.tools), self.heads)


# Compiling takes longer than parsing a short answer, and most readers share a few sets of heads.
@lru_cache(maxsize=512)
def _text_tokens(literals: tuple[str, ...]) -> re.Pattern[str]:
    """The pattern of what means anything in text: heads of openers, line breaks, backticks.

    Its groups are `head`, `line` and `ticks`, of which exactly one matches.
    """
    by_length = sorted(literals, key=len, reverse=True)  # the longest of several heads wins
    heads = "|".join(map(re.escape, by_length)) or "(?!)"
    return re.compile(f"(?P<head>{heads})|(?P<line>\n)|(?P<ticks>`{{1,{LONG_RUN}}})")


@lru_cache(maxsize=512)
def _closer_tokens(closers: tuple[str, ...], heads: tuple[str, ...]) -> re.Pattern[str] | None:
    """The pattern of the closers that are no openers, and no backticks or white space either."""
    only = [c for c in closers if c[0] not in "`\r\n " and c not in heads and not c.startswith("]")]
    return re.compile("|".join(map(re.escape, only))) if only else None
