"""The conversation so far, written for a model that knows no tool calls: calls and results become text.

Nothing of the caller's objects is changed; every message is a new dict. Messages may be dicts or objects with
`model_dump`, as clients return them, with tool calls in OpenAI shape or as parts of an AI SDK.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ..errors import BadMessage, UnknownToolCallId, UnwritableCall
from ..parts import OnError, call_safely
from ..protocols.results import ToolResult, media_of
from ..toolspec import ToolSpec
from ..values import write_canonical

Message: TypeAlias = dict[str, Any]
WriteResult: TypeAlias = Callable[[ToolResult], str]

_REASONING = ("reasoning", "thinking", "redacted_thinking", "redacted-reasoning")
_MEDIA = ("image_url", "input_audio", "file", "image", "video_url", "refusal")
_CALLS = ("tool-call", "tool_call", "tool_use")
_RESULTS = ("tool-result", "tool_result")
_EXPECTED = "a list of {role, content}"
_UNKNOWN_PART = "tool-call-middleware: unknown assistant content; stringifying for provider compatibility"
_UNWRITABLE = "tool-call-middleware: a call of the history cannot be written in this format; it is shown as JSON"


class _Call(str):
    """A call as it is written: a part of its own until its neighbours are known."""


@dataclass(frozen=True)
class Writer:
    """How calls and results are written. protocol: ours or somebody else's."""

    protocol: Any
    tools: Mapping[str, ToolSpec]
    write_result: WriteResult
    on_error: OnError | None = None

    def tell(self, what: str, **metadata: Any) -> None:
        if self.on_error is not None:
            call_safely(self.on_error, what, metadata)

    def call(self, call: Mapping[str, Any]) -> Any:
        """A call of the history as the model would have written it: a _Call, or a part that shows it as JSON."""
        name = _name_of(call) or ""
        said = {"type": "tool-call", "toolCallId": _call_id(call), "toolName": name, "input": _arguments_of(call)}
        try:
            try:
                return _Call(self.protocol.format_tool_call(said, self.tools.get(name)))
            except UnwritableCall:
                # What was said once may not fit the schema; without it, it is written as it was.
                return _Call(self.protocol.format_tool_call(said))
        except UnwritableCall as e:
            self.tell(_UNWRITABLE, toolCall=call, toolName=name, message=e.message)
            return _text(_json({"name": name, "arguments": said["input"]}))

    def joined(self, calls: list[str]) -> str:
        """Calls of one answer, as the model would have written them together."""
        join = getattr(self.protocol, "join_calls", "\n".join)
        return str(join(calls)) if len(calls) > 1 else calls[0]


@dataclass
class _Calls:
    """The calls said so far: id -> name, and the order of those of the last assistant message."""

    names: dict[str, str] = field(default_factory=dict)
    order: dict[str, int] = field(default_factory=dict)

    def begin(self) -> None:
        self.order = {}

    def note(self, id: Any, name: str | None) -> None:
        if isinstance(id, str) and name:
            self.names[id] = name
            self.order[id] = len(self.order)


def rewrite_history(messages: Any, writer: Writer) -> list[Message]:
    """The messages without tool calls and tool results: those are text now.

    Results become user messages, those of parallel calls in the calls' order; neighbouring user messages become one.
    Raises BadMessage for what is no list of messages, and UnknownToolCallId for a result that names neither its tool
    nor a call before it.
    """
    plain = _plain_talk(messages)
    if plain is not None:
        return plain
    calls = _Calls()
    out: list[Message] = []
    answers: list[tuple[int, ToolResult]] = []

    def settle() -> None:
        for _, result in sorted(answers, key=lambda a: a[0]):
            out.append(_result_message(result, writer))
        answers.clear()

    for message in _read_messages(messages):
        role = message["role"]
        if role in ("tool", "function"):
            for result in _results_of(message, calls, writer):
                rank = calls.order.get(result.call_id, len(calls.order))
                answers.append((rank, result))
            continue
        if answers:
            settle()
        if role == "assistant":
            calls.begin()
            out.append(_assistant(message, calls, writer))
        else:
            out.append(_condensed(message))
    if answers:
        settle()
    return _merged(out)


def _plain_talk(messages: Any) -> list[Message] | None:
    """The messages as new dicts, where all of them are texts that stay as they are; None for others. Most requests
    are such, and looking once is much cheaper than rewriting nothing."""
    if type(messages) is not list:
        return None
    before = ""
    out: list[Message] = []
    for message in messages:
        if type(message) is not dict or len(message) != 2:
            return None
        role = message.get("role")
        if type(message.get("content")) is not str or (role != "system" and role != "user") or role == before == "user":
            return None
        before = role
        out.append(message.copy())
    return out


def _read_messages(messages: Any) -> list[Message]:
    if isinstance(messages, (str, bytes, Mapping)) or not isinstance(messages, Iterable):
        raise BadMessage("messages are a list", got=type(messages).__name__, expected=_EXPECTED)
    return [_read_message(m, i) for i, m in enumerate(messages)]


def _read_message(message: Any, index: int) -> Message:
    if type(message) is dict and type(message.get("role")) is str:  # most are, and it is soon seen
        return {k: v if type(v) is str else _copied(v) for k, v in message.items()}
    dump = getattr(message, "model_dump", None)
    read = dump(exclude_none=True) if callable(dump) and not isinstance(message, Mapping) else message
    if not isinstance(read, Mapping) or not isinstance(read.get("role"), str):
        raise BadMessage(f"message {index} has no role", got=message, expected=_EXPECTED)
    return {k: _copied(v) for k, v in read.items()}


def _copied(value: Any) -> Any:
    """Containers are new, so that whoever changes what is sent does not change what the caller holds."""
    if isinstance(value, Mapping):
        return {k: _copied(v) for k, v in value.items()}
    return [_copied(v) for v in value] if isinstance(value, (list, tuple)) else value


# assistant messages


def _assistant(message: Message, calls: _Calls, writer: Writer) -> Message:
    content = message.get("content")
    parts: list[Any] = []
    for part in content if isinstance(content, list) else [content]:
        parts += _assistant_part(part, calls, writer)
    for call in _calls_beside(message):
        calls.note(call.get("id"), _name_of(call))
        parts.append(writer.call(call))
    rest = {k: v for k, v in message.items() if k not in ("tool_calls", "function_call", "content")}
    return {**rest, "content": _joined(_together(parts, writer))}


def _together(parts: list[Any], writer: Writer) -> list[Any]:
    """The parts with each run of calls as one text."""
    out: list[Any] = []
    for called, group in itertools.groupby(parts, lambda p: isinstance(p, _Call)):
        run = list(group)
        out.extend([_text(writer.joined(run))] if called else run)
    return out


def _assistant_part(part: Any, calls: _Calls, writer: Writer) -> list[Any]:
    if part is None or part == "":
        return []
    if isinstance(part, str):
        return [_text(part)]
    kind = part.get("type") if isinstance(part, Mapping) else None
    if kind == "text" or kind in _REASONING or kind in _MEDIA:
        return [part]
    if kind in _CALLS and _name_of(part) is not None:
        calls.note(_call_id(part), _name_of(part))
        return [writer.call(part)]
    if kind in _RESULTS and _name_of(part) is not None:  # of a tool that the provider ran
        return [_text(writer.write_result(ToolResult.of(part)))]
    writer.tell(_UNKNOWN_PART, content=part)
    return [_text(_json(part))]


def _calls_beside(message: Message) -> list[Mapping[str, Any]]:
    """The calls of a message in OpenAI shape, today's and the one before it."""
    given = message.get("tool_calls") or []
    if not isinstance(given, list):
        raise BadMessage("tool_calls are a list", got=given, expected="[{id, type, function: {name, arguments}}]")
    legacy = message.get("function_call")
    found = [*given, *([legacy] if isinstance(legacy, Mapping) else [])]
    for call in found:
        if not isinstance(call, Mapping) or _name_of(call) is None:
            raise BadMessage("a tool call names its tool", got=call, expected="{id, function: {name, arguments}}")
    return found


def _name_of(call: Mapping[str, Any]) -> str | None:
    inner = call.get("function")
    body = inner if isinstance(inner, Mapping) else call
    return next((n for k in ("toolName", "tool_name", "name") if isinstance(n := body.get(k), str) and n), None)


def _arguments_of(call: Mapping[str, Any]) -> Any:
    inner = call.get("function")
    body = inner if isinstance(inner, Mapping) else call
    given = next((body[k] for k in ("input", "arguments", "args") if k in body), None)
    return "{}" if given is None or given == "" else given


def _call_id(part: Mapping[str, Any]) -> Any:
    return next((part[k] for k in ("toolCallId", "tool_call_id", "tool_use_id", "id") if part.get(k)), None)


# results


def _results_of(message: Message, calls: _Calls, writer: Writer) -> list[ToolResult]:
    content = message.get("content")
    if not isinstance(content, list) or not any(_is_result(p) for p in content):
        return [_result(message, content, calls)]
    found: list[ToolResult] = []
    for part in content:
        if _is_result(part):
            output = next((part[k] for k in ("output", "result", "content") if k in part), None)
            found.append(_result(part, output, calls))
        else:
            writer.tell("tool-call-middleware: unknown tool content; stringifying", content=part)
            found.append(ToolResult("unknown", _json(part), _json(part)))
    return found


def _is_result(part: Any) -> bool:
    return isinstance(part, Mapping) and part.get("type") in _RESULTS


def _result(message: Mapping[str, Any], output: Any, calls: _Calls) -> ToolResult:
    id = _call_id(message)
    name = _name_of(message) or calls.names.get(id if isinstance(id, str) else "")
    if name is None:
        raise UnknownToolCallId(
            "a tool's result answers no call of the conversation, and does not name its tool", got=id,
            expected=", ".join(calls.names) or "an assistant message with tool calls before it",
            hint="keep the assistant message that made the call, or give the result the tool's name",
        )  # fmt: skip
    if message.get("is_error") is True or message.get("isError") is True or message.get("status") == "error":
        output = {"type": "error-text", "value": output if isinstance(output, str) else _json(output)}
    return ToolResult.of({"toolName": name, "output": output, "toolCallId": id})


def _result_message(result: ToolResult, writer: Writer) -> Message:
    text, media = _text(writer.write_result(result)), media_of(result)
    return {"role": "user", "content": [text, *media] if media else text["text"]}


# texts and parts


def _text(text: str) -> Message:
    return {"type": "text", "text": text}


def _is_plain(part: Any) -> bool:
    """A text and nothing more, such as a mark for a provider's cache."""
    return isinstance(part, dict) and part.keys() == {"type", "text"} and part["type"] == "text"


def _joined(parts: list[Any]) -> Any:
    """Neighbouring texts joined by a line break; a single text is no list."""
    out: list[Any] = []
    for part in parts:
        if _is_plain(part) and out and _is_plain(out[-1]):
            out[-1] = _text(f"{out[-1]['text']}\n{part['text']}")
        else:
            out.append(part)
    if not out:
        return ""
    return out[0]["text"] if len(out) == 1 and _is_plain(out[0]) else out


def _condensed(message: Message) -> Message:
    content = message.get("content")
    return {**message, "content": _joined(content)} if isinstance(content, list) and content else message


def _merged(messages: list[Message]) -> list[Message]:
    out: list[Message] = []
    for message in messages:
        last = out[-1] if out else None
        if last is not None and message["role"] == "user" == last["role"] and _beside(message) == _beside(last):
            out[-1] = {**last, "content": _joined([*_parts(last), *_parts(message)])}
        else:
            out.append(message)
    return out


def _beside(message: Message) -> Message:
    """What a message holds beside its content: two that differ in it are two."""
    return {k: v for k, v in message.items() if k != "content"}


def _parts(message: Message) -> list[Any]:
    content = message.get("content")
    if isinstance(content, list):
        return content
    return [_text(content)] if isinstance(content, str) else []


def _json(value: Any) -> str:
    try:
        return write_canonical(value)
    except (TypeError, ValueError, RecursionError):
        return str(value)
