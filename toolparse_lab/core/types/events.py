"""Events of a stream: the final part of a chunk."""

# With each Retract honoured, the spans of all events cover `raw` exactly once, in order. They hold
# no text: `parser.text_of(span)` gives it, and most consumers want only some of it.

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from .call import ToolCall
from .spans import Span


@dataclass(frozen=True, slots=True)
class TextDelta:
    """Text of the answer.

    It is final: text is never taken back.

    Attributes:
        escaped: as in a `Segment`.

    >>> import toolparse_lab as tp
    >>> tp.stream("hermes").feed("Hello")
    (TextDelta(span=Span(start=0, end=5), escaped=False),)
    """

    span: Span
    escaped: bool = False


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """Characters of the model's reasoning.

    Attributes:
        escaped: as in a `Segment`.

    >>> import toolparse_lab as tp
    >>> tp.stream("hermes").feed("<think>Hm")[-1]
    ReasoningDelta(span=Span(start=7, end=9), escaped=False)
    """

    span: Span
    escaped: bool = False


@dataclass(frozen=True, slots=True)
class Markup:
    """Section tokens, channel headers, think tags: neither text nor call.

    >>> import toolparse_lab as tp
    >>> tp.stream("hermes").feed("<think>Hm")[0]
    Markup(span=Span(start=0, end=7))
    """

    span: Span


@dataclass(frozen=True, slots=True)
class CallStart:
    """A call's opener.

    >>> import toolparse_lab as tp
    >>> tp.stream("hermes").feed("<tool_call>{")[0]
    CallStart(span=Span(start=0, end=11))
    """

    span: Span


@dataclass(frozen=True, slots=True)
class CallDelta:
    """Characters of a call's body.

    >>> import toolparse_lab as tp
    >>> tp.stream("hermes").feed("<tool_call>{")[1]
    CallDelta(span=Span(start=11, end=12))
    """

    span: Span


@dataclass(frozen=True, slots=True)
class CallEnd:
    """A call's closer, and the calls that its body held, in order.

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

    Never reaches back over text.
    """

    start: int


@dataclass(frozen=True, slots=True)
class Recovered:
    """Text that was held back and turned out to be a call outside its format."""

    span: Span
    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """Calls of earlier events that you must not execute.

    They were in reasoning that was closed only after them. Each has the index and the place it had.
    The event comes at the end.

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
