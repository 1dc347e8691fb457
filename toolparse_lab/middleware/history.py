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
from ..parser.content_parts import OnError, call_safely
from .attempts import attempt_of

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
    """Writes calls and results. protocol: ours or another's. tools: by name."""

    protocol: Any
    tools: Mapping[str, ToolSpec]
    write_result: WriteResult
    on_error: OnError | None = None

    def tell(self, message: str, /, **metadata: Any) -> None:
        """Call `on_error`, if there is one.

        message: one sentence. metadata: its subject, as `on_error` gets it.
        """
        if self.on_error is not None:
            call_safely(self.on_error, message, metadata)

    def call(self, call: Mapping[str, Any]) -> Any:
        """Return a call of the history as the model would have written it: a _CallText, or a part
        that shows it as JSON.

        call: in any shape that a history may have. Its id, name and arguments are found by
        `_call_id`, `_name_of` and `_arguments_of`.
        """
        name = _name_of(call) or ""
        arguments = _arguments_of(call)
        # A broken call that was handed on: the model sees what it wrote.
        attempt = attempt_of(arguments)
        if attempt is not None:
            return _CallText(attempt)

        body = {
            "type": "tool-call",
            "toolCallId": _call_id(call),
            "toolName": name,
            "input": arguments,
        }

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
        """Calls of one answer, as the model would have written them together.

        calls: the texts of `call`, at least one.
        """
        # Somebody else's protocol need not have a form for several calls.
        join = getattr(self.protocol, "join_calls", "\n".join)
        return str(join(calls)) if len(calls) > 1 else calls[0]


@dataclass
class _Calls:
    """The calls of the conversation so far.

    names: id -> name. order: id -> place, of those of the last assistant message. approvals: id of
    a question to the user -> id of the call that it is about.
    """

    names: dict[str, str] = field(default_factory=dict)
    order: dict[str, int] = field(default_factory=dict)
    approvals: dict[Any, Any] = field(default_factory=dict)

    def begin(self) -> None:
        """Start with the calls of another assistant message.

        Names stay: a result may answer a call of any message before.
        """
        self.order = {}

    def note(self, id: Any, name: str | None) -> None:
        """Remember a call, unless it has no id or no name.

        id: as the message has it, perhaps not even text.
        """
        if isinstance(id, str) and name:
            self.names[id] = name
            self.order[id] = len(self.order)


def rewrite_history(messages: Any, writer: Writer) -> list[Message]:
    """Return the messages without tool calls and tool results: those are text now.

    Results become user messages, those of parallel calls in the calls' order. Neighbouring user
    messages become one. Raises BadMessage for anything but a list of messages, and
    BadMessage for a result that names neither its tool nor a call before it.

    messages: dicts, or objects with `model_dump`, in order.
    writer: writes calls and results in the form of the protocol.
    """
    plain = _plain_talk(messages)
    if plain is not None:
        return plain

    calls = _Calls()
    out: list[Message] = []
    waiting: list[ToolResult] = []

    for message in _read_messages(messages):
        role = message["role"]
        if role in ("tool", "function"):
            waiting += _results_of(message, calls, writer)
            continue

        if waiting:
            out += _result_messages(waiting, calls, writer)
            waiting = []

        if role == "assistant":
            calls.begin()
            out.append(_assistant(message, calls, writer))
        else:
            out.append(_condensed(message))

    out += _result_messages(waiting, calls, writer)
    return _merged(out)


def _plain_talk(messages: Any) -> list[Message] | None:
    """Return the messages as new dicts, where all of them are texts that stay as they are, or None
    for others. Most requests are such, and looking once is much cheaper than rewriting nothing.

    messages: as the caller gave them, not checked yet. Nothing is raised: the slower way does that.
    """
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


def _read_messages(messages: Any) -> list[Message]:
    """Return the messages as new dicts.

    Raises BadMessage.

    messages: any iterable that is not text and no mapping.
    """
    if isinstance(messages, (str, bytes, Mapping)) or not isinstance(messages, Iterable):
        raise BadMessage(
            "messages are a list",
            got=messages,
            expected=_EXPECTED,
            hint='messages=[{"role": "user", "content": "…"}]',
        )
    return [_read_message(m, i) for i, m in enumerate(messages)]


def _read_message(message: Any, index: int) -> Message:
    """Return one message as a new dict, from a dict or an object with `model_dump`.

    Raises BadMessage.

    index: the place in the conversation, for the error.
    """
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
    """Return a copy with new containers, so that whoever changes the request does not change the
    caller's objects.

    value: of a message, nested to any depth. Objects that are not containers are shared.
    """
    if isinstance(value, Mapping):
        return {k: _copied(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_copied(v) for v in value]
    return value


# assistant messages


def _assistant(message: Message, calls: _Calls, writer: Writer) -> Message:
    """Return an assistant message with its calls as text.

    They are noted in `calls`.

    message: a dict of our own, with calls among its parts, beside them, or none.
    calls: the names and the order of the calls, which are added to.
    writer: writes each call.
    """
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
    return {**rest, "content": _joined(_together(parts, writer))}


def _together(parts: list[Any], writer: Writer) -> list[Any]:
    """Return the parts with each run of calls as one text.

    parts: in order. Calls are `_CallText`, everything else stays as it is.
    """
    out: list[Any] = []
    for are_calls, group in itertools.groupby(parts, lambda p: isinstance(p, _CallText)):
        run = list(group)
        out.extend([_text(writer.joined(run))] if are_calls else run)

    return out


def _assistant_part(part: Any, calls: _Calls, writer: Writer) -> list[Any]:
    """Return the parts that one part of an assistant's content becomes: none or one.

    part: a text, a part in the shape of OpenAI, Anthropic or an AI SDK, or something unknown.
    calls: noted here where the part is a call.
    writer: writes calls and results, and is told of unknown parts.
    """
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
    """Return the calls of a message in OpenAI shape, today's and the one before it.

    Raises BadMessage.

    message: with `tool_calls`, or with `function_call` as older clients write it.
    """
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
    """Return the name of a call's tool in any shape, or None if it has none.

    >>> _name_of({"function": {"name": "f"}}), _name_of({"toolName": "g"}), _name_of({})
    ('f', 'g', None)
    """
    inner = call.get("function", call.get("custom"))
    body = inner if isinstance(inner, Mapping) else call

    for key in ("toolName", "tool_name", "name"):
        name = body.get(key)
        if isinstance(name, str) and name:
            return name

    return None


def _arguments_of(call: Mapping[str, Any]) -> Any:
    """Return the arguments of a call in any shape.

    `{}` as text where it has none.

    They are not read here: text stays text.

    >>> _arguments_of({"args": {"a": 1}}), _arguments_of({"function": {"name": "f"}})
    ({'a': 1}, '{}')
    """
    inner = call.get("function", call.get("custom"))
    body = inner if isinstance(inner, Mapping) else call
    arguments = next((body[k] for k in ("input", "arguments", "args") if k in body), None)
    # Some clients send no arguments as an empty text, which is no JSON.
    if arguments is None or arguments == "":
        return "{}"

    return arguments


def _call_id(part: Mapping[str, Any]) -> Any:
    """Return the id of a call or result in any shape, or None if it has none.

    >>> _call_id({"tool_use_id": "a"}), _call_id({"id": ""})
    ('a', None)
    """
    return next(
        (part[k] for k in ("toolCallId", "tool_call_id", "tool_use_id", "id") if part.get(k)), None
    )


# results


def _results_of(message: Message, calls: _Calls, writer: Writer) -> list[ToolResult]:
    """Return the results of a message: its content, or one for each of its parts.

    message: of the role 'tool' or 'function'.
    calls: those so far, by which a result finds the name of its tool.
    writer: is told of parts that are not results. They are shown as JSON.
    """
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
    """Return True for a part of one of some kinds.

    part: a member of a message's content, of any type.
    """
    return isinstance(part, Mapping) and part.get("type") in kinds


def _approval_id(part: Mapping[str, Any]) -> Any:
    id = part.get("approvalId", part.get("approval_id"))
    return id if isinstance(id, str) else None


def _approval(part: Mapping[str, Any], calls: _Calls) -> ToolResult | None:
    """Return the user's answer to the question whether a call may run, as a result of the call.

    None if it says neither which call it is about nor which question.
    """
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


def _without_old_news(results: list[ToolResult]) -> list[ToolResult]:
    """Return the results without approvals of calls that ran, and refusals that are there twice.

    A reason that the user gave for an approval stays.
    """
    ids = [result.call_id for result in results]
    unique = {(r.call_id, write_canonical(r.content)): r for r in reversed(results)}
    return [
        result
        for result in reversed(unique.values())
        if result.content != _APPROVED or ids.count(result.call_id) == 1
    ]


def _result(message: Mapping[str, Any], output: Any, calls: _Calls) -> ToolResult:
    """Return a result with the name of its tool.

    Raises BadMessage if nothing says it.

    message: the message or the part that names the call.
    output: the result proper, of any type.
    calls: those so far, by id.
    """
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

    if _is_error(message):
        text = output if isinstance(output, str) else _json(output)
        output = {"type": "error-text", "value": text}

    return ToolResult.of({"toolName": name, "output": output, "toolCallId": id})


def _is_error(message: Mapping[str, Any]) -> bool:
    """Return True for a result marked as a failure, in the ways of Anthropic, MCP and others.

    message: a whole message, or a part of one.
    """
    if message.get("is_error") is True or message.get("isError") is True:
        return True
    return message.get("status") == "error"


def _result_messages(results: list[ToolResult], calls: _Calls, writer: Writer) -> list[Message]:
    """Return a user message for each result, in the order of their calls.

    Strangers come last.

    results: those that waited for the next message.
    calls: those of the last assistant message give the order.
    """
    last = len(calls.order)
    results = _without_old_news(results) if calls.approvals else results
    ordered = sorted(results, key=lambda result: calls.order.get(result.call_id, last))
    return [_result_message(result, writer) for result in ordered]


def _result_message(result: ToolResult, writer: Writer) -> Message:
    """Return a result as a message of the user, its images beside the text.

    Without images the content is the text itself, which every model takes.
    """
    text = writer.write_result(result)
    media = media_of(result)
    if not media:
        return {"role": "user", "content": text}

    return {"role": "user", "content": [_text(text), *media]}


# texts and parts


def _text(text: str) -> Message:
    """Return a part of text."""
    return {"type": "text", "text": text}


def _is_plain(part: Any) -> bool:
    """Return True for a text and nothing more.

    A mark for a provider's cache would be more.
    """
    return isinstance(part, dict) and part.keys() == {"type", "text"} and part["type"] == "text"


def _joined(parts: list[Any]) -> Any:
    """Neighbouring texts joined by a line break.

    A single text is not a list.

    parts: in order. Those that are not plain text separate their neighbours.

    >>> _joined([_text("a"), _text("b")]).splitlines()
    ['a', 'b']
    """
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
    """Return the message with neighbouring texts of its content joined.

    message: a dict of our own, which comes back itself if nothing is to be joined.
    """
    content = message.get("content")
    if isinstance(content, list) and content:
        return {**message, "content": _joined(content)}
    return message


def _merged(messages: list[Message]) -> list[Message]:
    """Return the messages with neighbouring ones of the user joined, unless they differ beside the
    content.

    messages: in order, all of them dicts of our own.
    """
    out: list[Message] = []
    for message in messages:
        if out and _are_one(out[-1], message):
            last = out[-1]
            out[-1] = {**last, "content": _joined([*_parts(last), *_parts(message)])}
        else:
            out.append(message)

    return out


def _are_one(first: Message, second: Message) -> bool:
    """Return True for two messages of the user that differ in nothing but their content.

    first, second: neighbours in the conversation.
    """
    return first["role"] == "user" == second["role"] and _rest(first) == _rest(second)


def _rest(message: Message) -> Message:
    """Return the message without its content: a name, a mark of a provider.

    >>> _rest({"role": "user", "content": "words"})
    {'role': 'user'}
    """
    return {k: v for k, v in message.items() if k != "content"}


def _parts(message: Message) -> list[Any]:
    """Return the content of a message as a list of parts.

    message: of the user. Content that is neither text nor a list counts as none.
    """
    content = message.get("content")
    if isinstance(content, list):
        return content
    return [_text(content)] if isinstance(content, str) else []


def _json(value: Any) -> str:
    """Canonical JSON of a value.

    Whatever cannot be written so is shown as Python does.

    value: of a message, which came from anywhere.
    """
    try:
        return write_canonical(value)
    except (TypeError, ValueError, RecursionError):
        return str(value)
