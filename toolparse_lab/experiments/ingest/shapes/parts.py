"""Parts that the shapes of logs share: messages, tools, requests, times."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ....core.values import write_canonical
from ..sources import is_response
from .attributes import at, items_of, mapping_of, value_of
from .shape import CONVERSATION, Cells, Damaged

_ROLES = {
    "human": "user", "humanmessage": "user", "input": "user", "ai": "assistant", "bot": "assistant",
    "aimessage": "assistant", "aimessagechunk": "assistant", "gpt": "assistant",
    "model": "assistant", "chatgpt": "assistant", "systemmessage": "system", "toolmessage": "tool",
    "function_response": "tool", "observation": "tool", "tool_response": "tool", "tool_result":
    "tool", "function": "tool", "functionmessage": "tool", "humanmessagechunk": "user",
}  # fmt: skip
_NANOSECONDS, _MILLISECONDS = 10**16, 10**11  # from here on a number since 1970 is one of these
PARAMS = ("temperature", "top_p", "max_tokens", "stop", "seed", "tool_choice", "response_format")


def role_of(word: Any) -> str:
    role = str(word or "user").lower()
    return _ROLES.get(role, role)


def text_of(content: Any) -> str | None:
    # The text of a message's content: a string, or parts.
    if content is None or isinstance(content, str):
        return content
    if not isinstance(content, list):
        return write_canonical(content)
    texts = []
    for part in content:
        text = part if isinstance(part, str) else at(part, "text") or at(part, "content")
        if isinstance(text, str) and at(part, "type") not in ("thinking", "reasoning"):
            texts.append(text)
    return "".join(texts)


@dataclass(slots=True)
class Message:
    # An assistant's message. lost: the text of an argument was thrown away by who kept it.
    text: str | None = None
    reasoning: str = ""
    calls: list[Cells] = field(default_factory=list)
    lost: bool = False

    def call(self, name: Any, arguments: Any, id: Any = None) -> None:
        # The text of arguments says what the model wrote; a value only what was made of it.
        if not isinstance(arguments, str):
            self.lost = True
            arguments = write_canonical({} if arguments is None else arguments)
        call = {"type": "function", "function": {"name": name, "arguments": arguments}}
        self.calls.append(call if id is None else {"id": str(id), **call})

    def take_calls(self, calls: Any) -> None:
        for call in items_of(calls):
            function = at(call, "function")
            inner = mapping_of(function if isinstance(function, Mapping) else call)
            name = function if isinstance(function, str) else inner.get("name")
            key = next((k for k in ("arguments", "args", "input") if k in inner), None)
            self.call(name, None if key is None else inner[key], at(call, "id"))

    def to_dict(self) -> Cells:
        message: Cells = {"role": "assistant", "content": self.text}
        if self.reasoning:
            message["reasoning_content"] = self.reasoning
        if self.calls:
            message["tool_calls"] = self.calls
        return message

    def cells(self, finish: Any = None) -> Cells:
        return answer_of([self], [finish])


def answer_of(messages: list[Message], finishes: Iterable[Any] = ()) -> Cells:
    reasons = list(finishes)
    reasons += [None] * (len(messages) - len(reasons))
    choices = [
        {"index": i, "message": message.to_dict(), "finish_reason": reason}
        for i, (message, reason) in enumerate(zip(messages, reasons, strict=False))
    ]
    lost = "lost" if any(message.lost for message in messages) else None
    return {"response": {"choices": choices}, "arguments_text": lost}


def message_of(x: Any) -> Message:
    # Of a message in the words of OpenAI, or nearly so.
    made = Message(text_of(at(x, "content")))
    made.reasoning = text_of(at(x, "reasoning_content") or at(x, "reasoning")) or ""
    made.take_calls(at(x, "tool_calls"))
    for part in items_of(at(x, "content")) if isinstance(at(x, "content"), list) else ():
        if at(part, "type") == "tool_use" and not at(x, "tool_calls"):
            made.call(at(part, "name"), at(part, "input"), at(part, "id"))
        elif at(part, "type") in ("thinking", "reasoning"):
            made.reasoning += str(at(part, "thinking") or at(part, "text") or "")
    legacy = at(x, "function_call")
    if isinstance(legacy, Mapping):
        made.call(at(legacy, "name"), at(legacy, "arguments"))
    return made


def asked_of(messages: Any) -> list[Cells] | None:
    # The conversation before an answer, as OpenAI has it.
    asked = []
    for x in items_of(messages):
        if not isinstance(x, Mapping):
            return None
        made = Message()
        made.take_calls(x.get("tool_calls"))
        content = x.get("content", x.get("value"))
        asked.append(asked_message(x.get("role") or x.get("from"), content, made, x))
    return asked or None


def asked_message(role: Any, content: Any, made: Message, names: Any = None) -> Cells:
    # A message before the answer. made: its calls. names: what has the ids of calls and tools.
    message: Cells = {"role": role_of(role), "content": content}
    if made.calls:
        message["tool_calls"] = made.calls
    for name in ("tool_call_id", "name"):
        if isinstance(at(names, name), str):
            message[name] = at(names, name)
    return message


def question_of(asked: Any) -> Cells:
    # Of what was sent: messages, their JSON, or a text.
    asked = value_of(asked)
    if isinstance(asked, list) and (messages := asked_of(asked)):
        return {"messages": messages}
    if isinstance(asked, str) and asked:
        return {"input": asked}
    return {} if not asked else {"input": write_canonical(asked)}


def tools_of(x: Any) -> list[Any] | None:
    # Definitions of functions, in any provider's form; what a provider runs itself has none.
    if x is None or x in ("", "null"):
        return None
    value = value_of(x)
    if isinstance(value, str):
        raise Damaged("tools", "the tools are no JSON", x[:120])
    tools: list[Any] = []
    for tool in [value] if isinstance(value, Mapping) and "name" in value else items_of(value):
        tool = value_of(tool)
        declared = at(tool, "functionDeclarations") or at(tool, "function_declarations")
        spec = at(tool, "toolSpec")
        if declared:
            tools += items_of(declared)
        elif isinstance(spec, Mapping):
            schema = at(spec, "inputSchema", "json") or at(spec, "inputSchema")
            tools.append({**spec, "inputSchema": schema})
        elif isinstance(tool, Mapping) and (at(tool, "function", "name") or tool.get("name")):
            # Attributes of spans are texts, a schema's as well.
            schema = tool.get("parameters")
            tools.append(
                {**tool, "parameters": value_of(schema)} if isinstance(schema, str) else tool
            )
    return tools or None


def request_of(tools: Any, params: Any = None, **more: Any) -> Cells | None:
    # A request that offered tools, to which the server was to answer by calls.
    body = dict(params) if isinstance(params, Mapping) else {}
    body.update({name: value for name, value in more.items() if value is not None})
    if offered := tools_of(tools):
        body["tools"] = offered
    return body or None


def _seconds(x: Any) -> float | None:
    # Seconds since 1970 of a time in any of the usual forms.
    if isinstance(x, str):
        if not x.strip().isdecimal():
            try:
                return datetime.fromisoformat(x.replace("Z", "+00:00")).timestamp()
            except ValueError:
                return None
        x = int(x)
    if isinstance(x, bool) or not isinstance(x, (int, float)) or x <= 0:
        return None
    scale = 10**9 if x >= _NANOSECONDS else 10**3 if x >= _MILLISECONDS else 1
    return float(x) / scale


def time_cells(start: Any, end: Any, first: Any = None) -> Cells:
    begun, ended, came = _seconds(start), _seconds(end), _seconds(first)
    is_date = isinstance(start, str) and not start.strip().isdecimal()
    cells: Cells = {"created": start if is_date else begun}
    if begun is not None and ended is not None and ended >= begun:
        cells["latency"] = round(ended - begun, 6)
    if begun is not None and came is not None and came >= begun:
        cells["ttft"] = round(came - begun, 6)
    return cells


def count_of(x: Any) -> int | None:
    if isinstance(x, str) and x.isdecimal():
        return int(x)
    return int(x) if isinstance(x, (int, float)) and not isinstance(x, bool) and x >= 0 else None


# The words of those who count tokens, in order of trust.
_SENT = ("input", "promptTokens", "input_tokens", "prompt_tokens", "prompt")
_RECEIVED = ("output", "completionTokens", "output_tokens", "completion_tokens", "completion")


def token_cells(*usages: Any) -> Cells:
    # Of the first of these objects and words that has a count.
    return {
        "prompt_tokens": _counted(usages, _SENT),
        "completion_tokens": _counted(usages, _RECEIVED),
    }


def _counted(usages: Iterable[Any], words: Iterable[str]) -> int | None:
    for usage in usages:
        for word in words:
            if (count := count_of(at(usage, word))) is not None:
                return count
    return None


def number_of(x: Any) -> float | None:
    is_number = isinstance(x, (int, float)) and not isinstance(x, bool)
    return float(x) if is_number else None


def conversation_of(id: Any) -> Cells:
    return {} if id in (None, "") else {f"metadata_{CONVERSATION}": str(id)}


def first(*values: Any) -> Any:
    return next((value for value in values if value is not None and value != ""), None)


def turns(messages: list[Any], id: Any, line_name: str) -> Iterator[tuple[Cells, Any]]:
    # Every assistant's message of a conversation: its cells, and the message.
    places = [
        i for i, m in enumerate(messages) if role_of(at(m, "role") or at(m, "from")) == "assistant"
    ]
    for number, place in enumerate(places):
        cells: Cells = {"messages": asked_of(messages[:place])}
        if len(places) > 1:
            name = id if id is not None else line_name
            cells["case_id"] = f"{name}#{number}"
            cells |= conversation_of(name)
        elif id is not None:
            cells["case_id"] = id
        yield cells, messages[place]


def failed(message: Any, kind: Any = "other") -> Cells:
    return {"error": str(kind), "error_message": str(message or "")}


def whole_of(response: Any, error: Any = None) -> Cells:
    # An answer that was kept whole, or what came in its place.
    response = value_of(response)
    if is_response(response):
        return {"response": response}
    if error:
        return {"error": error if isinstance(error, (str, Mapping)) else str(error)}
    if isinstance(response, str) and response:
        return Message(response).cells()
    raise Damaged("response", "the response is no answer of a model", response)


def of_request(request: Any, **more: Any) -> Cells:
    # Messages, tools and parameters of a request's body.
    body = mapping_of(request)
    params = {k: v for k, v in body.items() if k not in ("messages", "input", "prompt", "tools")}
    tools = first(body.get("tools"), body.get("functions"))
    return {
        **question_of(first(body.get("messages"), body.get("input"), body.get("prompt"))),
        "request": request_of(tools, params, **more),
        "model": body.get("model"),
    }
