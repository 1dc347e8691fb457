"""`pythonic`: a list of Python calls at the beginning of an answer, alone on its last line.

It has no delimiters.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..base import NEED_MORE, Envelope, NeedMore, Opening, Protocol, Tools
from ..scan import Scanner
from .call import HEAD, PythonCalls
from .scan import LoneList
from .type_rules import PYTHON_TYPE_RULES

# What may become the beginning of a call when more text comes.
_SO_FAR = re.compile(r"\[\s{0,40}(?:[^\W\d][\w.]{0,200}\s{0,40})?\Z")


@dataclass(frozen=True, slots=True)
class WholeList(Envelope):
    """Envelope: nothing opens a call but the beginning of the answer, `[name(`.

    tokens: special tokens around a list, which are read where this format is named.
    """

    tokens: tuple[str, ...] = ()

    @property
    def among_others(self) -> Envelope:
        # another format is known by the tokens
        return WholeList()

    calls_are_python = True

    heads_are_fixed = True

    def heads(self, tools: Tools) -> tuple[str, ...]:
        return self.tokens

    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Opening | NeedMore | None:
        token = next((token for token in self.tokens if text.startswith(token, pos)), None)
        return Opening(len(token), "markup") if token else None

    def speculates(self, text: str) -> Opening | NeedMore | None:
        # if the body is no list of calls, the text is text
        if HEAD.match(text):
            return Opening(0, speculative=True)
        return NEED_MORE if _SO_FAR.match(text) else None

    def scanner(self, opening: Opening, tools: Tools) -> Scanner:
        return LoneList()


PYTHONIC = Protocol(
    id="pythonic",
    aliases=("bfcl_prompt", "bfcl_python"),
    title="a list of Python calls, no delimiters",
    envelope=WholeList(("<|python_start|>", "<|python_end|>")),
    codec=PythonCalls(),
    tags=frozenset(("undelimited",)),
    type_rules=PYTHON_TYPE_RULES,
)
