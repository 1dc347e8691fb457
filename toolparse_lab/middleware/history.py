"""The conversation so far, written for a model that knows no tool calls: calls and results become
text.

How it works: one walk over the messages. Calls of an assistant message are written as the model
would have written them. Their ids are remembered with the tools' names, because a result names only
the id of its call. Results wait until the next message that is none, and go out in the order of
their calls. At the end neighbouring user messages become one, for many models take no two in a row.

Nothing of the caller's objects is changed. Every message is a new dict. Messages may be dicts or
objects with `model_dump`, as clients return them, with tool calls in OpenAI shape or as parts of an
AI SDK.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ..core.errors import BadMessage, UnwritableCall
from ..core.toolspec import ToolSpec
from ..core.values import write_canonical
from ..formats.results import ToolResult, media_of
from ..formats.surface import neutral
from ..parser.recognition.request import MOST_NESTED, NO_TEXT
from .attempts import attempt_of
from .choice import name_in
from .content_parts import OnError, call_safely

Message: TypeAlias = dict[str, Any]
WriteResult: TypeAlias = Callable[[ToolResult], str]

_REASONING = ("reasoning", "thinking", "redacted_thinking", "redacted-reasoning")
_MEDIA = ("image_url", "input_audio", "file", "image", "video_url", "refusal")
_CALLS = ("tool-call", "tool_call", "tool_use")
_RESULTS = ("tool-result", "tool_result")
_APPROVAL_REQUESTS = ("tool-approval-request", "tool_approval_request")
_APPROVALS = ("tool-approval-response", "tool_approval_response")
_APPROVED = "[Execution Approved]"
_EXPECTED = "a list of {role, content}"
_UNKNOWN_PART = (
    "tool-call-middleware: unknown assistant content; stringifying for provider compatibility"
)
_UNWRITABLE = (
    "tool-call-middleware: a call of the history cannot be written in this format; it is shown as "
    "JSON"
)


class _CallText(str):
    """The text of a call: a part of its own until its neighbours are known."""


@dataclass(frozen=True)
class Writer:
    """Writes calls and results. protocol: ours or another's. tools: by name. media: images and
    files of results go on as parts, beside the placeholder in the text.
    """

    protocol: Any
    tools: Mapping[str, ToolSpec]
    write_result: WriteResult
    on_error: OnError | None = None
    media: bool = True

    def tell(self, message: str, /, **metadata: Any) -> None:
        if self.on_error is not None:
            call_safely(self.on_error, message, metadata)

    def call(self, call: Mapping[str, Any]) -> Any:
        """Return a call of the history as the model would have written it: a _CallText, or a part
        that shows it as JSON.
        """
        name = _name_of(call) or ""
        # A string stays a string.
        inner = call.get("function", call.get("custom"))
        members = inner if isinstance(inner, Mapping) else call
        arguments = next((members[k] for k in ("input", "arguments", "args") if k in members), None)
        # Some clients send no arguments as an empty string, which is not JSON.
        if arguments is None or arguments == "":
            arguments = "{}"
        # A broken call that was handed on: the model sees what it wrote.
        attempt = attempt_of(arguments)
        if attempt is not None:
            return _CallText(attempt)
        body = {"type": "tool-call", "toolCallId": _call_id(call)}
        body |= {"toolName": name, "input": arguments}
        try:
            try:
                return _CallText(self.protocol.format_tool_call(body, self.tools.get(name)))
            except UnwritableCall:
                # An old call may not fit the schema; without one it is written as it was.
                return _CallText(self.protocol.format_tool_call(body))
        except UnwritableCall as e:
            self.tell(_UNWRITABLE, toolCall=call, toolName=name, message=e.message)
            return _text(_json({"name": name, "arguments": body["input"]}))

    def joined(self, calls: list[str]) -> str:
        """Return the calls of one answer as the model would have written them together."""
        # Somebody else's protocol need not have a form for several calls.
        join = getattr(self.protocol, "join_calls", "\n".join)
        return str(join(calls)) if len(calls) > 1 else calls[0]


@dataclass
class _Calls:
    # id -> name, of all calls so far: a result may answer a call of any message before.
    names: dict[str, str] = field(default_factory=dict)
    # id -> place, of the calls of the last assistant message.
    order: dict[str, int] = field(default_factory=dict)
    # id of a question to the user -> id of the call that it is about.
    approvals: dict[Any, Any] = field(default_factory=dict)

    def note(self, id: Any, name: str | None) -> None:
        if isinstance(id, str) and name:
            self.names[id] = name
            self.order[id] = len(self.order)


def rewrite_history(messages: Any, writer: Writer) -> list[Message]:
    """Return the messages without tool calls and tool results: those are text now.

    Results become user messages, those of parallel calls in the calls' order. Neighbouring user
    messages become one. Raises BadMessage for anything but a list of messages, and for a result
    that names neither its tool nor a call before it.

    messages: dicts, or objects with `model_dump`, in order.
    """
    plain = _plain_talk(messages)
    if plain is not None:
        return plain

    calls = _Calls()
    out: list[Message] = []
    waiting: list[ToolResult] = []

    if isinstance(messages, (str, bytes, Mapping)) or not isinstance(messages, Iterable):
        raise BadMessage(
            "messages are a list",
            got=messages,
            expected=_EXPECTED,
            hint='messages=[{"role": "user", "content": "…"}]',
        )
    for message in [_read_message(m, i) for i, m in enumerate(messages)]:
        role = message["role"]
        if role in ("tool", "function"):
            waiting += _results_of(message, calls, writer)
            continue

        if waiting:
            out += _result_messages(waiting, calls, writer)
            waiting = []

        if role == "assistant":
            calls.order = {}
            out.append(_assistant(message, calls, writer))
        else:
            content = message.get("content")
            if isinstance(content, list) and content:
                message = {**message, "content": _joined(content)}
            out.append(message)

    out += _result_messages(waiting, calls, writer)
    return _merged(out)


def _plain_talk(messages: Any) -> list[Message] | None:
    # None unless all messages are strings that stay as they are. Most requests are such, and
    # looking once is much cheaper than rewriting nothing. Nothing is raised: the slower way does
    # that.
    if type(messages) is not list:
        return None
    before = ""
    out: list[Message] = []
    for message in messages:
        if type(message) is not dict or len(message) != 2:
            return None
        role = message.get("role")
        if type(message.get("content")) is not str or (role != "system" and role != "user"):
            return None
        if role == before == "user":
            return None  # two that become one
        before = role
        out.append(message.copy())
    return out


def _read_message(message: Any, index: int) -> Message:
    # Most are plain dicts with texts, and that is soon seen.
    if type(message) is dict and type(message.get("role")) is str:
        return {k: v if type(v) is str else _copied(v) for k, v in message.items()}
    body = message
    dump = getattr(message, "model_dump", None)
    if callable(dump) and not isinstance(message, Mapping):
        body = dump(exclude_none=True)
    if not isinstance(body, Mapping) or not isinstance(body.get("role"), str):
        raise BadMessage(f"message {index} has no role", got=message, expected=_EXPECTED)
    return {k: _copied(v) for k, v in body.items()}


def _copied(value: Any) -> Any:
    # Whoever changes the request must not change the caller's objects.
    if isinstance(value, Mapping):
        return {k: _copied(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_copied(v) for v in value]
    return value


# assistant messages


def _assistant(message: Message, calls: _Calls, writer: Writer) -> Message:
    # A content of one text is read like a list of one part.
    content = message.get("content")
    parts: list[Any] = []
    for part in content if isinstance(content, list) else [content]:
        parts += _assistant_part(part, calls, writer)
    for call in _calls_beside(message):
        calls.note(call.get("id"), _name_of(call))
        parts.append(writer.call(call))
    # Reasoning and a name stay; the calls are text now.
    rest = {k: v for k, v in message.items() if k not in ("tool_calls", "function_call", "content")}
    out: list[Any] = []
    # Each run of calls becomes one text.
    for are_calls, group in itertools.groupby(parts, lambda p: isinstance(p, _CallText)):
        run = list(group)
        out.extend([_text(writer.joined(run))] if are_calls else run)
    return {**rest, "content": _joined(out)}


def _assistant_part(part: Any, calls: _Calls, writer: Writer) -> list[Any]:
    # None or one.
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
    if kind in _APPROVAL_REQUESTS:  # a question of the program to its user, not of the model
        calls.approvals[_approval_id(part)] = _call_id(part)
        return []
    if kind in _RESULTS and _name_of(part) is not None:  # of a tool that the provider ran
        return [_text(writer.write_result(ToolResult.of(part)))]
    writer.tell(_UNKNOWN_PART, content=part)
    return [_text(_json(part))]


def _calls_beside(message: Message) -> list[Mapping[str, Any]]:
    # In OpenAI shape: `tool_calls`, and `function_call` as older clients write it.
    tool_calls = message.get("tool_calls") or []
    if not isinstance(tool_calls, list):
        raise BadMessage(
            "tool_calls are a list",
            got=tool_calls,
            expected="[{id, type, function: {name, arguments}}]",
        )
    legacy = message.get("function_call")
    calls = [*tool_calls, legacy] if isinstance(legacy, Mapping) else tool_calls
    for call in calls:
        if not isinstance(call, Mapping) or _name_of(call) is None:
            raise BadMessage(
                "a tool call names its tool", got=call, expected="{id, function: {name, arguments}}"
            )
    return calls


def _name_of(call: Mapping[str, Any]) -> str | None:
    return name_in(call, ("toolName", "tool_name", "name"))


def _call_id(part: Mapping[str, Any]) -> Any:
    return next(
        (part[k] for k in ("toolCallId", "tool_call_id", "tool_use_id", "id") if part.get(k)), None
    )


# results


def _results_of(message: Message, calls: _Calls, writer: Writer) -> list[ToolResult]:
    # The content is one result, or each of its parts is.
    content = message.get("content")
    kinds = (*_RESULTS, *_APPROVALS)
    if not isinstance(content, list) or not any(_is_of(p, kinds) for p in content):
        return [_result(message, content, calls)]
    results: list[ToolResult] = []
    for part in content:
        approval = _approval(part, calls) if _is_of(part, _APPROVALS) else None
        if approval is not None:
            results.append(approval)
        elif _is_of(part, _RESULTS):
            output = next((part[k] for k in ("output", "result", "content") if k in part), None)
            results.append(_result(part, output, calls))
        else:
            writer.tell("tool-call-middleware: unknown tool content; stringifying", content=part)
            results.append(ToolResult("unknown", _json(part), _json(part)))
    return results


def _is_of(part: Any, kinds: tuple[str, ...]) -> bool:
    return isinstance(part, Mapping) and part.get("type") in kinds


def _approval_id(part: Mapping[str, Any]) -> str | None:
    id = part.get("approvalId", part.get("approval_id"))
    return id if isinstance(id, str) else None


def _approval(part: Mapping[str, Any], calls: _Calls) -> ToolResult | None:
    # The user's answer to the question whether a call may run is a result of the call, unless it
    # says neither which call it is about nor which question.
    id = _call_id({k: v for k, v in part.items() if k != "id"})
    id = calls.approvals.get(_approval_id(part)) if id is None else id
    name = calls.names.get(id if isinstance(id, str) else "")
    if name is None:
        return None
    reason = part.get("reason")
    output: Any = {"type": "execution-denied", "reason": reason}
    if part.get("approved") is True:
        output = f"{_APPROVED[:-1]}: {reason}]" if reason else _APPROVED
    return ToolResult.of({"toolName": name, "output": output, "toolCallId": id})


def _result(message: Mapping[str, Any], output: Any, calls: _Calls) -> ToolResult:
    # A result names its tool, or a call before it does.
    id = _call_id(message)
    name = _name_of(message) or calls.names.get(id if isinstance(id, str) else "")
    if name is None:
        raise BadMessage(
            "a tool's result answers no call of the conversation, and does not name its tool",
            got=id,
            expected=", ".join(calls.names) or "an assistant message with tool calls before it",
            hint="keep the assistant message that made the call, or give the result the tool's "
            "name",
            code="unknown-tool-call-id",
        )
    # In the ways of Anthropic, MCP and others.
    if (
        message.get("is_error") is True
        or message.get("isError") is True
        or message.get("status") == "error"
    ):
        text = output if isinstance(output, str) else _json(output)
        output = {"type": "error-text", "value": text}
    return ToolResult.of({"toolName": name, "output": output, "toolCallId": id})


def _result_messages(results: list[ToolResult], calls: _Calls, writer: Writer) -> list[Message]:
    # In the order of their calls. Strangers come last.
    last = len(calls.order)
    if calls.approvals:
        # Without approvals of calls that ran, and refusals that are there twice. A reason that the
        # user gave for an approval stays.
        ids = [result.call_id for result in results]
        unique = {(r.call_id, write_canonical(r.content)): r for r in reversed(results)}
        results = [
            result
            for result in reversed(unique.values())
            if result.content != _APPROVED or ids.count(result.call_id) == 1
        ]
    messages: list[Message] = []
    for result in sorted(results, key=lambda result: calls.order.get(result.call_id, last)):
        text, media = writer.write_result(result), media_of(result) if writer.media else []
        # Without images the content is the text itself, which every model takes.
        messages.append({"role": "user", "content": [_text(text), *media] if media else text})
    return messages


# texts and parts


def _text(text: str) -> Message:
    return {"type": "text", "text": text}


def _is_plain(part: Any) -> bool:
    # A mark for a provider's cache would be more than text.
    return isinstance(part, dict) and part.keys() == {"type", "text"} and part["type"] == "text"


def _joined(parts: list[Any]) -> Any:
    # Neighbouring texts are joined by a line break. A single one is not a list.
    out: list[Any] = []
    for part in parts:
        if _is_plain(part) and out and _is_plain(out[-1]):
            out[-1] = _text(f"{out[-1]['text']}\n{part['text']}")
        else:
            out.append(part)
    if not out:
        return ""
    return out[0]["text"] if len(out) == 1 and _is_plain(out[0]) else out


def _merged(messages: list[Message]) -> list[Message]:
    # Neighbouring messages of the user become one, unless they differ in more than the content.
    out: list[Message] = []
    for message in messages:
        last = out[-1] if out else None
        is_next = last is not None and last["role"] == "user" == message["role"]
        if last is not None and is_next and {**last, "content": 0} == {**message, "content": 0}:
            out[-1] = {**last, "content": _joined([*_parts(last), *_parts(message)])}
        else:
            out.append(message)
    return out


def _parts(message: Message) -> list[Any]:
    content = message.get("content")
    if isinstance(content, list):
        return content
    return [_text(content)] if isinstance(content, str) else []


def _json(value: Any) -> str:
    # A message may hold anything.
    try:
        return write_canonical(value)
    except (TypeError, ValueError, RecursionError):
        return str(value)


# texts of users and documents without the delimiters of the format


def without_delimiters(messages: Any, delimiters: tuple[str, ...]) -> Any:
    """Return the messages with the texts of users neutralised; the protocol writes results.

    messages: not checked yet. Anything but a list of messages comes back as it is, and the caller's
    objects are not changed.
    """
    if not delimiters or not isinstance(messages, (list, tuple)):
        return messages
    out = [_neutral_message(message, delimiters) for message in messages]
    if all(a is b for a, b in zip(out, messages, strict=True)):
        return messages
    return out


def _neutral_message(message: Any, delimiters: tuple[str, ...]) -> Any:
    if not isinstance(message, Mapping):
        dump = getattr(message, "model_dump", None)
        if not callable(dump) or getattr(message, "role", None) != "user":
            return message
        message = dump()
    if message.get("role") != "user":
        return message
    content = message.get("content")
    clean: Any = content
    if isinstance(content, str):
        clean = neutral(content, delimiters)
    elif isinstance(content, (list, tuple)):
        # Images and similar stay as they are.
        kinds = [str(p.get("type")) if isinstance(p, Mapping) else "" for p in content]
        clean = type(content)(
            part if kind.startswith(NO_TEXT) else _clean(part, delimiters, 0)
            for kind, part in zip(kinds, content, strict=True)
        )
    return message if clean == content else {**message, "content": clean}


def documents_without(documents: Any, delimiters: tuple[str, ...]) -> Any:
    """Return the documents of a request, of any shape, with their texts neutralised in a copy."""
    return _clean(documents, delimiters, 0) if delimiters else documents


def _clean(value: Any, delimiters: tuple[str, ...], depth: int) -> Any:
    # A value nested too deep is not text of a prompt.
    if isinstance(value, str):
        return neutral(value, delimiters)
    if depth > MOST_NESTED:
        return value
    if isinstance(value, Mapping):
        return {key: _clean(member, delimiters, depth + 1) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_clean(item, delimiters, depth + 1) for item in value)
    return value
