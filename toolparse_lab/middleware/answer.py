"""What a model said, as a message in OpenAI shape: whole, or in deltas that add up to the same message.

Calls that are `ok` become tool calls. A body none of whose calls is ok stays in the content as its original text, so
that nothing is lost. White space alone between a call, reasoning or markup and the next is no content; an answer of
nothing but white space stays what it is.
"""

from __future__ import annotations

import math
import os
import random
import string
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ..errors import UnreadableInput
from ..protocols.base import Protocol
from ..scan import partial_start
from ..toolspec import ToolSpec
from ..types import (
    CallEnd,
    Event,
    Markup,
    ParseResult,
    Problem,
    ReasoningDelta,
    Recovered,
    Retract,
    Span,
    TextDelta,
    ToolCall,
)
from ..values import unescape
from .native import was_run

Delta: TypeAlias = dict[str, Any]
UnknownTools: TypeAlias = Literal["text", "call"]
_ALPHABET = string.ascii_letters + string.digits
_LETTERS = bytes(ord(_ALPHABET[i % len(_ALPHABET)]) for i in range(256))  # one of them for every byte
_DONE = (None, "stop", "other", "unknown")  # finish reasons that a call turns into "tool_calls"


@dataclass(frozen=True)
class Answer:
    """A finished answer.

    message: {role, content, tool_calls, reasoning_content} in OpenAI shape, the last two only where there are any;
    content is None where there is none beside calls. finish_reason: 'tool_calls' where calls are there and the
    provider said 'stop' or nothing; what else it said is kept. result: the parse, None for an answer that was passed
    through. problems: those of the result and of its calls.
    """

    message: dict[str, Any]
    finish_reason: str
    result: ParseResult | None
    problems: tuple[Problem, ...]

    @property
    def tool_calls(self) -> tuple[dict[str, Any], ...]:
        """The message's tool calls, in order."""
        return tuple(self.message.get("tool_calls", ()))

    @property
    def original_text(self) -> str:
        """The pieces of the text that were read as calls, a blank line between each two."""
        if self.result is None:
            return ""
        segments = (s.span.of(self.result.raw) for s in self.result.segments if s.kind in ("call", "recovered"))
        return "\n\n".join(segments)


@dataclass(frozen=True)
class Said:
    """What a provider gave as content: its text, the reasoning among its parts, and images and the like."""

    text: str
    reasoning: str = ""
    media: tuple[Any, ...] = ()

    def beside(self, content: str | None) -> Any:
        """The content of the message: the text that is left, with what is no text."""
        if not self.media:
            return content or None
        return [*([{"type": "text", "text": content}] if content else []), *self.media]


NOTHING_BESIDE = Said("")
"""What a content that is one text holds beside it."""


def read_content(content: Any) -> Said:
    """The content of an assistant's message; raises UnreadableInput for what is no text, None or list of parts."""
    if content is None or isinstance(content, str):
        return Said(content or "")
    if not isinstance(content, (list, tuple)):
        raise UnreadableInput("this is no content", got=type(content).__name__, expected="text, None or parts")
    texts: list[str] = []
    thoughts: list[str] = []
    media: list[Any] = []
    for part in content:
        kind = part.get("type") if isinstance(part, Mapping) else None
        if isinstance(part, str):
            texts.append(part)
        elif kind == "text" and isinstance(part.get("text"), str):
            texts.append(part["text"])
        elif kind in ("reasoning", "thinking"):
            thoughts.append(_thought(part))
        else:
            media.append(part)
    return Said("".join(texts), "\n".join(t for t in thoughts if t), tuple(media))


def _thought(part: Mapping[str, Any]) -> str:
    inner = part.get("text", part.get("thinking"))
    return inner if isinstance(inner, str) else read_content(inner if isinstance(inner, list) else None).text


# A generator of our own, because a program may set the seed of Python's; ids must differ, nobody need not guess them.
_DICE = random.Random()  # noqa: S311
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_DICE.seed)


def new_call_id() -> str:
    """`call_` and 24 letters and digits."""
    return "call_" + _DICE.getrandbits(192).to_bytes(24, "little").translate(_LETTERS).decode()


class CallIds:
    """The transport ids of one answer's calls: the id that the text carries, where it is the first with it; otherwise
    a new one, the same each time it is asked for."""

    def __init__(self) -> None:
        self._by_index: dict[int, str] = {}

    def of(self, call: ToolCall) -> str:
        if call.index not in self._by_index:
            wire = call.wire_id
            self._by_index[call.index] = wire if wire and wire not in self._by_index.values() else new_call_id()
        return self._by_index[call.index]


def answer_of(
    result: ParseResult,
    finish_reason: str | None,
    ids: CallIds,
    *,
    unknown_tools: UnknownTools = "text",
    one_call: bool = False,
    reasoning: str | None = None,
    native: Iterable[Mapping[str, Any]] = (),
) -> Answer:
    """The answer that a parse says.

    unknown_tools: whether calls of tools that were not offered are text or tool calls like others. one_call: of the
    calls in the text only the first is made, and the others are neither text nor tool calls. reasoning: what the
    provider gave as reasoning by itself, said before that of the text. native: tool calls that the provider read
    itself, which come after those of the text.
    """
    made = made_calls(result.calls, unknown_tools)
    calls = [_tool_call(c, ids) for c in (made[:1] if one_call else made)]
    if native:
        calls += [dict(c) for c in native]
    content, thought = _spoken(result, {c.segment_index for c in made})
    message: dict[str, Any] = {"role": "assistant", "content": content or (None if calls else "")}
    if reasoning or thought:
        message["reasoning_content"] = both_thoughts(reasoning, thought)
    if calls:
        message["tool_calls"] = calls
    to_run = bool(made) or (bool(calls) and any(not was_run(c) for c in calls))
    return Answer(message, finish_reason_of(finish_reason, to_run), result, tuple(result.all_problems()))


def both_thoughts(first: str | None, second: str) -> str:
    """Reasoning of two places, one line break between them."""
    return f"{first}\n{second}" if first and second else first or second


def passed_through(content: Any, finish_reason: str | None, native: Iterable[Mapping[str, Any]] = ()) -> Answer:
    """An answer that is none of ours: unchanged."""
    calls = [dict(c) for c in native]
    message = {"role": "assistant", "content": content, **({"tool_calls": calls} if calls else {})}
    return Answer(message, finish_reason_of(finish_reason, any(not was_run(c) for c in calls)), None, ())


def deltas_of(answer: Answer) -> tuple[Delta, ...]:
    """A whole answer said at once."""
    said = ({k: v} for k in ("reasoning_content", "content") if (v := answer.message.get(k)))
    calls = ({"tool_calls": [{"index": i, **c}]} for i, c in enumerate(answer.tool_calls))
    return (*said, *calls)


def finish_reason_of(given: str | None, called: bool) -> str:
    """What the answer's end is called: a call's end is 'tool_calls' unless the text was cut off or filtered.

    >>> finish_reason_of("stop", True), finish_reason_of("length", True), finish_reason_of(None, False)
    ('tool_calls', 'length', 'stop')
    """
    return "tool_calls" if called and given in _DONE else given or "stop"


def made_calls(calls: Iterable[ToolCall], unknown_tools: UnknownTools) -> list[ToolCall]:
    """The calls that become tool calls of the message."""
    unknown = "unknown_tool" if unknown_tools == "call" else "ok"
    return [c for c in calls if c.status == "ok" or c.status == unknown]


def _spoken(result: ParseResult, called: set[int]) -> tuple[str, str]:
    """(content, reasoning): the text, with the segments that hold calls as they were written unless they are `called`.
    White space alone between two calls is no content."""
    raw = result.raw
    texts: list[str] = []
    thoughts: list[str] = []
    run = ""
    n_runs = 1
    for i, segment in enumerate(result.segments):
        kind = segment.kind
        if kind == "text" or (kind in ("call", "recovered") and i not in called):
            run += segment.said(raw)
            continue
        if kind == "reasoning":
            thoughts.append(segment.said(raw))
        n_runs += 1
        texts.append(run)
        run = ""
    texts.append(run)
    content = "".join(texts)
    if n_runs > 1 and content:
        content = "".join([t for t in texts if t.strip()])
    return content, "".join(thoughts)


def _tool_call(call: ToolCall, ids: CallIds) -> dict[str, Any]:
    return {
        "id": ids.of(call),
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments_json},
    }


class Deltas:
    """Events of the parser as OpenAI deltas. What was said is never taken back: text is said when it is settled,
    reasoning unless a call may have begun in it, and a call when it is whole."""

    def __init__(
        self,
        protocol: Any,
        tools: Iterable[ToolSpec],
        text_of: Callable[[Span], str],
        ids: CallIds,
        unknown_tools: UnknownTools,
        *,
        one_call: bool = False,
    ) -> None:
        self._text_of = text_of
        self._ids = ids
        self._unknown_tools = unknown_tools
        self._runs = _Runs()
        heads = protocol.envelope.heads({t.name: t for t in tools}) if isinstance(protocol, Protocol) else ()
        self._thought = _Thought(heads)
        self._calls = 0
        self._most = 1 if one_call else math.inf

    def of(self, events: Iterable[Event]) -> tuple[Delta, ...]:
        """The deltas of some events, neighbours of one kind joined."""
        deltas: list[Delta] = []
        for event in events:
            if isinstance(event, ReasoningDelta):
                self._runs.cut()
                text = self._text_of(event.span)
                # What stands in a JSON string is whole when it is said, so no call can begin in it.
                said = (
                    self._thought.end() + unescape(text) if event.escaped else self._thought.add(event.span.start, text)
                )
                _add(deltas, "reasoning_content", said)
            elif isinstance(event, Retract):
                self._thought.cut_at(event.start)
            else:
                _add(deltas, "reasoning_content", self._thought.end())
                self._say(deltas, event)
        return tuple(deltas)

    def end(self) -> tuple[Delta, ...]:
        """What was held back until the end."""
        deltas: list[Delta] = []
        _add(deltas, "reasoning_content", self._thought.end())
        _add(deltas, "content", self._runs.end())
        return tuple(deltas)

    def _say(self, deltas: list[Delta], event: Event) -> None:
        if isinstance(event, TextDelta):
            text = self._text_of(event.span)
            _add(deltas, "content", self._runs.say(unescape(text) if event.escaped else text))
        elif isinstance(event, Markup):
            self._runs.cut()
        elif isinstance(event, (CallEnd, Recovered)) and event.calls:
            called = made_calls(event.calls, self._unknown_tools)
            if not called:
                _add(deltas, "content", self._runs.say(self._text_of(event.calls[0].segment.span)))
                return
            self._runs.cut()
            for call in called:
                if self._calls < self._most:
                    deltas.append({"tool_calls": [{"index": self._calls, **_tool_call(call, self._ids)}]})
                    self._calls += 1


def _add(deltas: list[Delta], key: str, text: str) -> None:
    if not text:
        return
    if deltas and key in deltas[-1]:
        deltas[-1][key] += text
    else:
        deltas.append({key: text})


class _Runs:
    """Runs of content. White space is held back until a word says that it is content."""

    def __init__(self) -> None:
        self._blank: list[str] = []
        self._open = False
        self._alone = True  # nothing but white space so far

    def say(self, text: str) -> str:
        if self._open:
            return text
        self._blank.append(text)
        if not text or text.isspace():
            return ""
        self._open, self._alone = True, False
        return self._drain()

    def cut(self) -> None:
        self._open = self._alone = False
        self._blank.clear()

    def end(self) -> str:
        return self._drain() if self._alone else ""

    def _drain(self) -> str:
        text = "".join(self._blank)
        self._blank.clear()
        return text


class _Thought:
    """Reasoning on its way out. Where it was never closed, calls at its end are calls after all; so it is held back
    from the first opener on."""

    def __init__(self, heads: tuple[str, ...]) -> None:
        self._heads = heads
        self._held: list[str] = []
        self._start = 0  # offset of what is held
        self._opened = False

    def add(self, start: int, text: str) -> str:
        if not self._held:
            self._start = start
        self._held.append(text)
        if self._opened:
            return ""
        text = "".join(self._held)
        at = min((i for h in self._heads if (i := text.find(h)) >= 0), default=-1)
        self._opened = at >= 0
        if at < 0:
            at = partial_start(text, self._heads) if self._heads else len(text)
        self._held = [text[at:]] if at < len(text) else []
        self._start += at
        return text[:at]

    def cut_at(self, offset: int) -> None:
        if self._held:
            self._held = ["".join(self._held)[: max(0, offset - self._start)]]

    def end(self) -> str:
        text = "".join(self._held)
        self._held.clear()
        self._opened = False
        return text
