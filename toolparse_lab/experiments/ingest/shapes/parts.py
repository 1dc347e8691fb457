"""Parts that the shapes of logs share: messages, tools, requests, times."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ....core.types.call_pieces import joined, name_and_arguments
from ....core.values import write_canonical
from ....entry.capture.assembly import Assembly
from ....entry.capture.parts import IDS, NAMES, first_of
from ....entry.capture.shapes import invoked_text, parts_in, take_own_message
from ..sources import is_response
from .attributes import at, items_of, mapping_of, value_of
from .shape import CONVERSATION, OFFERS, Cells, Damaged

_ROLES = {
    "human": "user", "humanmessage": "user", "input": "user", "ai": "assistant", "bot": "assistant",
    "aimessage": "assistant", "aimessagechunk": "assistant", "gpt": "assistant",
    "model": "assistant", "response": "assistant", "chatgpt": "assistant",
    "systemmessage": "system", "toolmessage": "tool",
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
    # An assistant's message. lost: the text of an argument was thrown away by who kept it. unread:
    # its parts that nobody knows, which go on as they are.
    text: str | None = None
    reasoning: str = ""
    calls: list[Cells] = field(default_factory=list)
    lost: bool = False
    unread: list[Any] = field(default_factory=list)

    def call(self, name: Any, arguments: Any, id: Any = None) -> None:
        # The text of arguments says what the model wrote; a value only what was made of it.
        if not isinstance(arguments, str):
            self.lost = True
            arguments = write_canonical({} if arguments is None else arguments)
        call = {"type": "function", "function": {"name": name, "arguments": arguments}}
        self.calls.append(call if id is None else {"id": str(id), **call})

    def take_calls(self, calls: Any) -> None:
        for call in items_of(calls) or parts_in(value_of(calls)):
            call = at(call, "tool_call") or call  # as OpenInference wraps it
            name, arguments = name_and_arguments(mapping_of(call))
            if name is None and arguments is None:
                self.unread.append(call)
            else:
                self.call(name, arguments, first_of(call, IDS))

    def or_unread(self, x: Any) -> Message:
        # Of a message in which nothing was found: what nobody knows of it.
        if not (self.text or self.calls or self.reasoning or self.unread):
            self.unread = message_of(x).unread
        return self

    def to_dict(self) -> Cells:
        message: Cells = {"role": "assistant", "content": self.text}
        if self.unread:
            said = [{"type": "text", "text": self.text}] if self.text else []
            message["content"] = [*said, *self.unread]
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
    # Of a message of any provider, SDK or convention.
    x = value_of(x)
    if isinstance(x, list):
        x = {"content": x}
    elif not isinstance(x, Mapping):
        return Message(text_of(x))
    content = x.get("content")
    if isinstance(content, Mapping) and "type" not in content:
        x = {**x, "content": write_canonical(content)}
    # Attributes of spans have lists as numbered members, or as JSON.
    lists = {n: items_of(x[n]) or value_of(x[n]) for n in ("parts", "tool_calls") if x.get(n)}
    assembly = Assembly()
    take_own_message({**x, **lists}, assembly)
    said = assembly.content or assembly.refusal
    made = Message(joined(said) if said or content == "" else None, joined(assembly.reasoning))
    for call in assembly.calls.to_list():
        function = call["function"]
        made.call(function["name"], function["arguments"], call["id"])
    made.lost |= assembly.has_objects
    made.unread = list(assembly.unread().values())
    return made


def answer_in(output: Any) -> Cells | None:
    """Return the answer in what a tool kept as the output: a text, a message or the last of
    several, parts, calls, items of a response, or a response. None for anything else.
    """
    output = value_of(output)
    if isinstance(output, str):
        return Message(output).cells()
    if isinstance(output, list) and output and all(isinstance(x, Mapping) for x in output):
        kinds = {str(x.get("type")) for x in output}
        said = [x for x in output if "role" in x or "parts" in x or x.get("kind") == "response"]
        if kinds & _ITEMS:
            output = {"object": "response", "status": "completed", "output": output}
        elif said:
            own = [x for x in said if role_of(x.get("role") or x.get("kind")) == "assistant"]
            output = (own or said)[-1]
        elif kinds == {"None"} or "function" in kinds:
            output = {"role": "assistant", "tool_calls": output}
        else:
            output = {"role": "assistant", "content": output}
    if not isinstance(output, Mapping):
        return None
    if (text := invoked_text(output)) is not None:
        return Message(text).cells()
    if output.keys() & {"parts", "tool_calls", "role"} or (
        "content" in output and "finishReason" not in output and output.get("type") != "message"
    ):
        finish = first(output.get("finish_reason"), output.get("stop_reason"))
        return message_of(output).cells(finish)
    return {"response": output} if is_response(output) else None


_ITEMS = frozenset((
    "message", "function_call", "custom_tool_call", "function_call_output", "web_search_call",
    "custom_tool_call_output",
))  # fmt: skip
_RESULTS = frozenset((
    "tool_result", "tool_call_response", "tool_response", "tool_return", "function_response",
    "function_call_output", "custom_tool_call_output",
))  # fmt: skip
_RESULT = ("response", "result", "output", "content")
_RESULT_MEMBERS = ("functionResponse", "function_response", "toolResult")
# Parts of messages that are written into OpenAI's words; others stay as they are.
_FOREIGN = frozenset(("tool_call", "tool_call_response", "tool-call", "tool-result", "None"))
_OF_PYDANTIC = {"system-prompt": "system", "user-prompt": "user", "retry-prompt": "user"}


def asked_of(messages: Any) -> list[Cells] | None:
    # The conversation before an answer, as OpenAI has it. None for what is no list of messages.
    asked: list[Cells] = []
    for x in items_of(messages):
        x = value_of(x)
        if not isinstance(x, Mapping):
            return None
        asked += _asked(x)
    return asked or None


def messages_of(value: list[Any]) -> list[Any] | None:
    """Return messages as OpenAI has them, the list itself where they are its own already."""
    if not all(isinstance(x, Mapping) for x in value):
        return None
    if all("role" in x and not _is_foreign(x) for x in value):
        return value
    has_any = any(x.keys() & {"role", "parts", "type", "kind", "content"} for x in value)
    return asked_of(value) if has_any else None


def _is_foreign(x: Mapping[str, Any]) -> bool:
    parts = x.get("content")
    return x.get("parts") is not None or any(
        str(at(part, "type") or at(part, "part_kind")) in _FOREIGN or at(part, "part_kind")
        for part in (parts if isinstance(parts, list) else ())
        if not isinstance(part, str)
    )


def _asked(x: Mapping[str, Any]) -> Iterator[Cells]:
    if isinstance(result := _result_of(x), dict):  # an item of its own
        yield result
        return
    kind, content = str(x.get("type")), x.get("content", x.get("value"))
    role = x.get("role") or x.get("from") or ("assistant" if x.get("kind") == "response" else None)
    if role is None and kind in ("function_call", "custom_tool_call"):
        made = Message()
        made.take_calls([x])
        yield asked_message("assistant", None, made)
        return
    if role is None and kind not in ("None", "message", "human", "ai", "system", "tool"):
        return  # an item that is no message: reasoning, or a tool of the server's
    parts = first(x.get("parts"), content if isinstance(content, list) else None)
    if not _is_foreign(x):
        made = Message()
        made.take_calls(x.get("tool_calls"))
        yield asked_message(role, _plain_content(content), made, x)
        return
    others = []
    for part in items_of(parts):
        if isinstance(result := _result_of(part), dict):
            yield result
        elif (role_said := _OF_PYDANTIC.get(str(at(part, "part_kind")))) is not None:
            yield asked_message(role_said, text_of(part.get("content")))
        else:
            others.append(part)
    if others:
        made = message_of({**x, "content": None, "parts": others})
        yield asked_message(role, made.text, made, x)


def _plain_content(content: Any) -> Any:
    # Texts of the Responses API's messages are parts of their own kinds.
    parts = content if isinstance(content, list) else []
    own = parts and all(at(part, "type") in ("input_text", "output_text") for part in parts)
    return text_of(content) if own else content


def _result_of(part: Any) -> Cells | None:
    # The result of a tool, as a message of its own.
    inner = next((at(part, name) for name in _RESULT_MEMBERS if at(part, name) is not None), None)
    kind = str(at(part, "type") or at(part, "part_kind")).replace("-", "_")
    if inner is None and kind not in _RESULTS:
        return None
    result = part if inner is None else inner
    value = first_of(result, _RESULT)
    if isinstance(value, Mapping) and set(value) == {"type", "value"}:  # the AI SDK's output
        value = value["value"]
    message: Cells = {"role": "tool", "content": text_of(value) or ""}
    if (id := first_of(result, IDS)) is not None:
        message["tool_call_id"] = str(id)
    if isinstance(name := first_of(result, NAMES), str):
        message["name"] = name
    return message


def asked_message(role: Any, content: Any, made: Message | None = None, names: Any = None) -> Cells:
    # A message before the answer. made: its calls. names: what has the ids of calls and tools.
    message: Cells = {"role": role_of(role), "content": content}
    if made is not None and made.calls:
        message["tool_calls"] = made.calls
    for name in ("tool_call_id", "name"):
        if isinstance(at(names, name), str):
            message[name] = at(names, name)
    return message


def question_of(asked: Any) -> Cells:
    # Of what was sent: messages, their JSON, or a text.
    asked = value_of(asked)
    if isinstance(asked, Mapping) and ("parts" in asked or "role" in asked):
        asked = [asked]
    if isinstance(asked, list) and asked and all(isinstance(x, str) for x in asked):
        asked = "\n".join(asked)
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
        if declared:
            tools += [x for x in items_of(declared) if isinstance(x, Mapping)]
        elif isinstance(tool, Mapping) and (
            at(tool, "function", "name") or at(tool, "toolSpec", "name") or _is_function(tool)
        ):
            # Attributes of spans are texts, a schema's as well.
            schema = tool.get("parameters")
            tools.append(
                {**tool, "parameters": value_of(schema)} if isinstance(schema, str) else tool
            )
    return tools or None


def _is_function(tool: Mapping[str, Any]) -> bool:
    # Not one that only a provider runs, such as a web search.
    kind = tool.get("type")
    own = kind in (None, "function", "custom", "tool", "object") or "input_schema" in tool
    return bool(tool.get("name")) and own


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
_SENT = ("input", "inputTokens", "promptTokens", "input_tokens", "prompt_tokens", "prompt")
_RECEIVED = (
    "output", "outputTokens", "completionTokens", "output_tokens", "completion_tokens",
    "completion",
)  # fmt: skip


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
    # All turns of a conversation were asked for in one way, also those that make no call.
    offers = any(message_of(messages[place]).calls for place in places) or None
    for number, place in enumerate(places):
        cells: Cells = {"messages": asked_of(messages[:place]), OFFERS: offers}
        if len(places) > 1:
            name = id if id is not None else line_name
            cells["case_id"] = f"{name}#{number}"
            cells |= conversation_of(name)
        elif id is not None:
            cells["case_id"] = id
        yield cells, messages[place]


def failed(message: Any, kind: Any = None) -> Cells:
    # The kind of an error that only its words tell is found in them.
    return {"error": str(kind or message or "other"), "error_message": str(message or "")}


def models_of(asked: Any, answered: Any) -> Cells:
    model: Cells = {"model": first(asked, answered)}
    return model if answered is None else {**model, "served_model": answered}


def whole_of(response: Any, error: Any = None) -> Cells:
    # An answer that was kept whole, or what came in its place.
    response = value_of(response)
    if is_response(response):
        return {"response": response}
    if error:
        return {"error": error if isinstance(error, (str, Mapping)) else str(error)}
    if response and (answer := answer_in(response)) is not None:
        return answer
    raise Damaged("response", "the response is no answer of a model", response)


ASKED = ("messages", "contents", "input", "prompt")
_SYSTEM = ("system", "systemInstruction", "system_instruction", "instructions")
_TOOLS = ("tools", "functions")
OF_REQUEST = ("model", *ASKED, *_SYSTEM, *_TOOLS, "toolConfig", "config")
"""the members of a request's body that say what was asked of whom"""


def of_request(request: Any, **more: Any) -> Cells:
    # Messages, tools and parameters of a request's body, of any interface.
    body = mapping_of(request)
    config = mapping_of(body.get("config"))  # of Google's client
    asked = first(*(body.get(name) for name in ASKED))
    tools = first(
        *(body.get(name) for name in _TOOLS),
        at(body, "toolConfig", "tools"),
        config.get("tools"),
        at(body, "model_request_parameters", "function_tools"),
    )
    params = {k: v for k, v in body.items() if k not in (*ASKED, *_SYSTEM, *_TOOLS, "config")}
    return {
        **with_system(
            question_of(asked), first(*(at(x, n) for x in (body, config) for n in _SYSTEM))
        ),
        "request": request_of(tools, params, **more),
        "model": first(body.get("model"), body.get("modelId")),
    }


def with_system(question: Cells, system: Any) -> Cells:
    # A system prompt that stands beside the messages comes before them.
    text = text_of(first(at(system, "parts"), system)) if system else None
    if not text:
        return question
    asked = question.get("messages") or []
    if asked and asked[0]["role"] in ("system", "developer"):
        return question
    if not asked and question.get("input"):
        asked = [{"role": "user", "content": question["input"]}]
    return {"messages": [{"role": "system", "content": text}, *asked]}
