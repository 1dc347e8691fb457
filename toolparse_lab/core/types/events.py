"""Events of a stream: the final part of a chunk.

>>> import toolparse_lab as tp
>>> for event in tp.stream("hermes").feed("<think>Hm</think>Hi <tool_call>{"):
...     print(event)
Markup(span=Span(start=0, end=7))
ReasoningDelta(span=Span(start=7, end=9), escaped=False)
Markup(span=Span(start=9, end=17))
TextDelta(span=Span(start=17, end=20), escaped=False)
CallStart(span=Span(start=20, end=31))
CallDelta(span=Span(start=31, end=32))
"""

# With each Retract honoured, the spans of all events cover `raw` exactly once, in order. They hold
# no text: `parser.text_of(span)` gives it, and most consumers want only some of it.

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from .call import ToolCall
from .spans import Span


@dataclass(frozen=True, slots=True)
class TextDelta:
    """Text of the answer, never taken back. escaped: as in a `Segment`."""

    span: Span
    escaped: bool = False


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """Characters of the model's reasoning. escaped: as in a `Segment`."""

    span: Span
    escaped: bool = False


@dataclass(frozen=True, slots=True)
class Markup:
    """Section tokens, channel headers, think tags: neither text nor call."""

    span: Span


@dataclass(frozen=True, slots=True)
class CallStart:
    """A call's opener."""

    span: Span


@dataclass(frozen=True, slots=True)
class CallDelta:
    """Characters of a call's body."""

    span: Span


@dataclass(frozen=True, slots=True)
class CallEnd:
    """A call's closer, and the calls of its body, in order.

    The closer is empty if it is missing.

    >>> import toolparse_lab as tp
    >>> text = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'
    >>> end = tp.stream("hermes").feed(text)[-1]
    >>> [call.name for call in end.calls]
    ['f']
    """

    span: Span
    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class Retract:
    """The events from `start` on are void, and others come for those characters.

    It never takes back text.
    """

    start: int


@dataclass(frozen=True, slots=True)
class Recovered:
    """Text that the parser held back, and that is a call outside its format."""

    span: Span
    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """Calls of earlier events that you must not execute.

    A reasoning tag that closed after them showed that they are reasoning. Index and place stay the
    same. The event comes at the end.

    Attributes:
        span: empty, in front of the tag that closed the reasoning.
    """

    span: Span
    calls: tuple[ToolCall, ...]


Event: TypeAlias = (
    TextDelta
    | ReasoningDelta
    | Markup
    | CallStart
    | CallDelta
    | CallEnd
    | Retract
    | Recovered
    | Withdrawn
)
