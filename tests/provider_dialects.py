"""The dialects of providers and servers: how each writes an answer whole and as a stream, and how
it writes an error. `Server` speaks one of them, and answers by the situation that the question
names.

A dialect is not its provider. The shapes were tried against litellm's code in `reader`. With their
pages (stored excerpts, 2026) only Anthropic's streams, Cohere's streams and errors, and OpenRouter's
streams and errors were compared, and Cohere's stream with a recorded one. For all others `source` is
the page to compare with, which nobody has done line by line.
"""

from __future__ import annotations

import binascii
import json
import re
import struct
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from tests import providers as shapes
from tests.providers import Providers, Wire, wire_of

End = Literal["stop", "filter"]
ErrorName = Literal["rate", "overloaded", "server", "context", "policy"]
IN, OUT, THOUGHT, CACHED = 9, 3, 2, 4  # tokens of every answer; of the thoughts, of the cache


@dataclass(frozen=True)
class Said:
    """What the model says: text in parts, reasoning, native calls as (name, arguments)."""

    parts: tuple[str, ...] = ()
    reasoning: str = ""
    calls: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    end: End = "stop"

    @property
    def text(self) -> str:
        return "".join(self.parts)

    def arguments(self) -> Iterable[tuple[str, str, str]]:
        """Id, name and arguments as JSON of each call."""
        for index, (name, arguments) in enumerate(self.calls):
            yield f"call_{index}", name, json.dumps(arguments)


@dataclass(frozen=True)
class Fault:
    """An error in place of an answer."""

    name: ErrorName
    status: int
    headers: Mapping[str, str] = field(default_factory=dict)


class Shape(Protocol):
    """How a family of dialects writes."""

    def whole(self, said: Said) -> Any: ...

    def stream(self, said: Said) -> list[Any]: ...

    def framed(self, events: list[Any]) -> Wire: ...

    def error(self, fault: Fault, code: str, message: str) -> Any: ...


def halves(text: str) -> tuple[str, str]:
    return text[: len(text) // 2], text[len(text) // 2 :]


class Events:
    """Server-sent events."""

    def framed(self, events: list[Any]) -> Wire:
        return wire_of(events)


class Lines:
    """A JSON object a line."""

    def framed(self, events: list[Any]) -> Wire:
        return wire_of("".join(json.dumps(event) + "\n" for event in events))


@dataclass(frozen=True)
class Chat(Events):
    """OpenAI's chat completions. `reasoning`: the member of a message that holds it; "parts" are
    those of Mistral, None is a provider that keeps it to itself."""

    reasoning: str | None = "reasoning_content"
    members: tuple[tuple[str, Any], ...] = ()  # more of a whole answer
    cache: str | None = None  # the member of usage that counts cached tokens, "" for none
    comments: str = ""  # the line that keeps a connection alive
    last_counts: bool = False  # usage stands in the chunk with the finish reason

    def framed(self, events: list[Any]) -> Wire:
        wire = wire_of(events)
        comment = f": {self.comments}\n\n".encode()
        body = wire.body.replace(b"data: ", comment + b"data: ") if self.comments else wire.body
        return replace(wire, body=body)

    def _usage(self, said: Said) -> dict[str, Any]:
        thought = {"completion_tokens_details": {"reasoning_tokens": THOUGHT}}
        cached: dict[str, Any] = {"prompt_tokens_details": {"cached_tokens": CACHED}}
        if self.cache is not None:
            cached = {self.cache: CACHED} if self.cache else {}
        counts = {"prompt_tokens": IN, "completion_tokens": OUT, "total_tokens": IN + OUT}
        return {**counts, **cached, **(thought if said.reasoning else {})}

    def _thought(self, text: str) -> dict[str, Any]:
        if self.reasoning is None or not text:
            return {}
        if self.reasoning == "parts":
            part = {"type": "thinking", "thinking": [{"type": "text", "text": text}]}
            return {"content": [part]}
        return {self.reasoning: text}

    def _end(self, said: Said) -> str:
        if said.end == "filter":
            return "content_filter"
        return "tool_calls" if said.calls else "stop"

    def whole(self, said: Said) -> Any:
        message: dict[str, Any] = {"content": said.text or (None if said.calls else "")}
        thought = self._thought(said.reasoning)
        if "content" in thought or (self.reasoning == "parts" and len(said.parts) > 1):
            texts = [{"type": "text", "text": part} for part in said.parts]
            message = {"content": [*thought.get("content", ()), *texts]}
        else:
            message |= thought
        if said.calls:
            message["tool_calls"] = [
                {"id": i, "type": "function", "function": {"name": name, "arguments": text}}
                for i, name, text in said.arguments()
            ]
        answer = shapes.openai(message, self._usage(said))
        answer["choices"][0]["finish_reason"] = self._end(said)
        return {**answer, **dict(self.members)}

    def stream(self, said: Said) -> list[Any]:
        deltas = [self._thought(half) for half in halves(said.reasoning) if half]
        deltas += [{"content": part} for part in said.parts or ("",)]
        for index, (i, name, text) in enumerate(said.arguments()):
            first, last = halves(text)
            function = {"name": name, "arguments": first}
            call = {"index": index, "id": i, "type": "function", "function": function}
            rest = {"index": index, "function": {"arguments": last}}
            deltas += [{"tool_calls": [call]}, {"tool_calls": [rest]}]
        *events, end, done = shapes.openai_stream({"role": "assistant"}, *filter(None, deltas))
        end["choices"][0]["finish_reason"] = self._end(said)
        if self.last_counts:
            return [*events, {**end, "usage": self._usage(said)}, done]
        usage = {**end, "choices": [], "usage": self._usage(said)}
        return [*events, end, usage, done]

    def error(self, fault: Fault, code: str, message: str) -> Any:
        return {"error": {"message": message, "type": code, "param": None, "code": code}}


class Completions(Chat):
    """OpenAI's text completions."""

    def _of(self, text: str, end: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "text": text, "finish_reason": end, "logprobs": None}
        head = {"id": "x", "object": "text_completion", "created": 1, "model": "m"}
        return {**head, "choices": [choice]}

    def whole(self, said: Said) -> Any:
        return {**self._of(said.text, self._end(said)), "usage": self._usage(said)}

    def stream(self, said: Said) -> list[Any]:
        events = [*map(self._of, said.parts), self._of("", self._end(said))]
        return [*events, {**self._of(""), "choices": [], "usage": self._usage(said)}, "[DONE]"]


class Responses(Chat):
    """OpenAI's responses."""

    def _items(self, said: Said) -> list[dict[str, Any]]:
        out: list[dict[str, Any]] = []
        if said.reasoning:
            summary = [{"type": "summary_text", "text": said.reasoning}]
            out.append({"type": "reasoning", "id": "r", "summary": summary})
        if said.parts or not said.calls:
            content = [
                {"type": "output_text", "text": part, "annotations": []}
                for part in said.parts or ("",)
            ]
            head = {"type": "message", "id": "m", "role": "assistant", "status": "completed"}
            out.append({**head, "content": content})
        out += [
            {
                "type": "function_call", "id": f"f{i}", "call_id": i, "name": name,
                "arguments": text, "status": "completed",
            }
            for i, name, text in said.arguments()
        ]  # fmt: skip
        return out

    def whole(self, said: Said) -> Any:
        answer = shapes.responses(*self._items(said))
        if said.end == "filter":
            details = {"reason": "content_filter"}
            answer |= {"status": "incomplete", "incomplete_details": details}
        return answer

    def stream(self, said: Said) -> list[Any]:
        whole = self.whole(said)
        started = {**whole, "status": "in_progress", "output": [], "usage": None}
        events: list[Any] = [{"type": "response.created", "response": started}]
        for index, item in enumerate(whole["output"]):
            at = {"item_id": item["id"], "output_index": index}
            empty: dict[str, Any] = (
                {"summary": []} if item["type"] == "reasoning" else {"content": []}
            )
            if item["type"] == "function_call":
                empty = {"arguments": ""}
            added = {**item, **empty}
            events.append(
                {"type": "response.output_item.added", "output_index": index, "item": added}
            )
            events += [{**at, **event} for event in self._deltas(item)]
            events.append(
                {"type": "response.output_item.done", "output_index": index, "item": item}
            )
        last = "incomplete" if said.end == "filter" else "completed"
        return [*events, {"type": f"response.{last}", "response": whole}]

    def _deltas(self, item: dict[str, Any]) -> list[dict[str, Any]]:
        if item["type"] == "reasoning":
            kind, texts = "reasoning_summary_text", halves(item["summary"][0]["text"])
            return [
                {"type": f"response.{kind}.delta", "summary_index": 0, "delta": t} for t in texts
            ]
        if item["type"] == "function_call":
            kind = "response.function_call_arguments"
            deltas = [{"type": f"{kind}.delta", "delta": t} for t in halves(item["arguments"])]
            return [*deltas, {"type": f"{kind}.done", "arguments": item["arguments"]}]
        return [
            {"type": "response.output_text.delta", "content_index": i, "delta": part["text"]}
            for i, part in enumerate(item["content"])
        ]


class Messages(Events):
    """Anthropic's messages."""

    def _blocks(self, said: Said) -> list[dict[str, Any]]:
        thought = {"type": "thinking", "thinking": said.reasoning, "signature": "s"}
        return [
            *([thought] if said.reasoning else ()),
            *({"type": "text", "text": part} for part in said.parts),
            *(
                {"type": "tool_use", "id": i, "name": name, "input": json.loads(text)}
                for i, name, text in said.arguments()
            ),
        ]

    def _end(self, said: Said) -> str:
        if said.end == "filter":
            return "refusal"
        return "tool_use" if said.calls else "end_turn"

    def whole(self, said: Said) -> Any:
        whole = {**shapes.anthropic(*self._blocks(said)), "stop_reason": self._end(said)}
        return {**whole, "usage": self._usage(OUT)}

    def _usage(self, output: int) -> dict[str, int]:
        # What was read from the cache is not among the input tokens.
        cache = {"cache_creation_input_tokens": 0, "cache_read_input_tokens": CACHED}
        return {"input_tokens": IN - CACHED, **cache, "output_tokens": output}

    def stream(self, said: Said) -> list[Any]:
        start = {**shapes.anthropic(), "stop_reason": None}
        start["usage"] = self._usage(1)
        events: list[Any] = [{"type": "message_start", "message": start}, {"type": "ping"}]
        for index, block in enumerate(self._blocks(said)):
            deltas, empty = self._deltas(block)
            events.append(
                {
                    "type": "content_block_start",
                    "index": index,
                    "content_block": {**block, **empty},
                }
            )
            events += [
                {"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas
            ]
            events.append({"type": "content_block_stop", "index": index})
        delta = {"stop_reason": self._end(said), "stop_sequence": None}
        end = {"type": "message_delta", "delta": delta, "usage": {"output_tokens": OUT}}
        return [*events, end, {"type": "message_stop"}]

    def _deltas(self, block: dict[str, Any]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        if block["type"] == "thinking":
            texts = halves(block["thinking"])
            deltas = [{"type": "thinking_delta", "thinking": text} for text in texts]
            signature = {"type": "signature_delta", "signature": "s"}
            return [*deltas, signature], {"thinking": "", "signature": ""}
        if block["type"] == "tool_use":
            texts = halves(json.dumps(block["input"]))
            return [{"type": "input_json_delta", "partial_json": t} for t in texts], {"input": {}}
        return [{"type": "text_delta", "text": block["text"]}], {"text": ""}

    def error(self, fault: Fault, code: str, message: str) -> Any:
        error = {"type": code, "message": message}
        return {"type": "error", "error": error, "request_id": "req_1"}


class Converse:
    """Bedrock's converse; its streams are AWS event streams."""

    def _blocks(self, said: Said) -> list[dict[str, Any]]:
        thought = {"reasoningText": {"text": said.reasoning, "signature": "c2ln"}}
        return [
            *([{"reasoningContent": thought}] if said.reasoning else ()),
            *({"text": part} for part in said.parts),
            *(
                {"toolUse": {"toolUseId": i, "name": name, "input": json.loads(text)}}
                for i, name, text in said.arguments()
            ),
        ]

    def _end(self, said: Said) -> str:
        if said.end == "filter":
            return "guardrail_intervened"
        return "tool_use" if said.calls else "end_turn"

    def whole(self, said: Said) -> Any:
        cache = {"cacheReadInputTokens": CACHED, "cacheWriteInputTokens": 0}
        usage = {"inputTokens": IN - CACHED, "outputTokens": OUT, "totalTokens": IN + OUT, **cache}
        whole = shapes.converse(*self._blocks(said))
        return {**whole, "stopReason": self._end(said), "usage": usage}

    def stream(self, said: Said) -> list[Any]:
        events: list[Any] = [("messageStart", {"role": "assistant"})]
        for index, block in enumerate(self._blocks(said)):
            at = {"contentBlockIndex": index}
            if "toolUse" in block:
                use = dict(block["toolUse"])
                texts = halves(json.dumps(use.pop("input")))
                events.append(("contentBlockStart", {**at, "start": {"toolUse": use}}))
                deltas: list[dict[str, Any]] = [{"toolUse": {"input": t}} for t in texts]
            elif "reasoningContent" in block:
                deltas = [{"reasoningContent": {"text": t}} for t in halves(said.reasoning)]
                deltas.append({"reasoningContent": {"signature": "c2ln"}})
            else:
                deltas = [block]
            events += [("contentBlockDelta", {**at, "delta": delta}) for delta in deltas]
            events.append(("contentBlockStop", at))
        whole = self.whole(said)
        tokens = {"usage": whole["usage"], "metrics": whole["metrics"]}
        return [*events, ("messageStop", {"stopReason": self._end(said)}), ("metadata", tokens)]

    def framed(self, events: list[Any]) -> Wire:
        return Wire(b"".join(map(aws_event, events)), "application/vnd.amazon.eventstream")

    def error(self, fault: Fault, code: str, message: str) -> Any:
        body = json.dumps({"message": message}).encode()
        return Wire(body, headers={"x-amzn-errortype": code})


def aws_event(event: tuple[str, dict[str, Any]]) -> bytes:
    """A message of an AWS event stream: lengths, their checksum, headers, payload, checksum."""
    name, payload = event[0], json.dumps(event[1]).encode()
    headers = b""
    for key, value in (
        (":event-type", name),
        (":content-type", "application/json"),
        (":message-type", "event"),
    ):
        text = value.encode()  # 7 is the type of a text
        headers += bytes([len(key)]) + key.encode() + b"\x07" + struct.pack(">H", len(text)) + text
    prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    message = prelude + struct.pack(">I", binascii.crc32(prelude)) + headers + payload
    return message + struct.pack(">I", binascii.crc32(message))


class Generate(Events):
    """Gemini's generateContent."""

    def _parts(self, said: Said) -> list[dict[str, Any]]:
        return [
            *([{"text": said.reasoning, "thought": True}] if said.reasoning else ()),
            *({"text": part} for part in said.parts),
            *(
                {"functionCall": {"name": name, "args": json.loads(text)}}
                for _, name, text in said.arguments()
            ),
        ]

    def _of(self, said: Said, *parts: dict[str, Any]) -> dict[str, Any]:
        # Thoughts are counted apart from the candidates' tokens.
        thoughts = THOUGHT if said.reasoning else 0
        usage = {"candidatesTokenCount": OUT - thoughts, "cachedContentTokenCount": CACHED}
        answer = shapes.gemini(
            *parts, usage={**usage, **({"thoughtsTokenCount": thoughts} if thoughts else {})}
        )
        if said.end == "filter":
            answer["candidates"][0]["finishReason"] = "SAFETY"
        return answer

    def whole(self, said: Said) -> Any:
        return self._of(said, *self._parts(said))

    def stream(self, said: Said) -> list[Any]:
        events = [self._of(said, part) for part in self._parts(said)]
        for event in events:
            del event["candidates"][0]["finishReason"]
        return [*events, self._of(said, {"text": ""})]

    def error(self, fault: Fault, code: str, message: str) -> Any:
        return {"error": {"code": fault.status, "message": message, "status": code}}


class Cohere(Lines):
    """Cohere's chat, version 2. Its streams are lines of JSON for who accepts `application/json`,
    as litellm does, and server-sent events for others. The plan before calls is reasoning too."""

    def _calls(self, said: Said) -> list[dict[str, Any]]:
        return [
            {"id": i, "type": "function", "function": {"name": name, "arguments": text}}
            for i, name, text in said.arguments()
        ]

    def _end(self, said: Said) -> str:
        if said.end == "filter":
            return "ERROR_TOXIC"
        return "TOOL_CALL" if said.calls else "COMPLETE"

    def whole(self, said: Said) -> Any:
        thought = [{"type": "thinking", "thinking": said.reasoning}] if said.reasoning else []
        answer = shapes.cohere(*thought, *({"type": "text", "text": p} for p in said.parts))
        if said.calls:
            answer["message"]["tool_calls"] = self._calls(said)
        return {**answer, "finish_reason": self._end(said), "usage": self._usage()}

    def _usage(self) -> dict[str, Any]:
        billed = {"input_tokens": 7, "output_tokens": 2}
        tokens = {"input_tokens": IN, "output_tokens": OUT}
        return {"billed_units": billed, "tokens": tokens, "cached_tokens": CACHED}

    def stream(self, said: Said) -> list[Any]:
        empty_message = {"content": [], "tool_plan": "", "tool_calls": [], "citations": []}
        start = {"message": {"role": "assistant", **empty_message}}
        events: list[Any] = [{"type": "message-start", "id": "x", "delta": start}]
        blocks: list[tuple[str, tuple[str, ...]]] = []
        blocks += [("thinking", halves(said.reasoning))] if said.reasoning else []
        blocks += [("text", said.parts)] if said.parts else []
        for index, (kind, texts) in enumerate(blocks):
            empty = {"message": {"content": {"type": kind, kind: ""}}}
            deltas = [{"message": {"content": {kind: text}}} for text in texts]
            events += [
                {"type": "content-start", "index": index, "delta": empty},
                *({"type": "content-delta", "index": index, "delta": delta} for delta in deltas),
                {"type": "content-end", "index": index},
            ]
        for index, call in enumerate(self._calls(said)):
            function = call["function"]
            start_call = {**call, "function": {**function, "arguments": ""}}
            rests = [{"function": {"arguments": half}} for half in halves(function["arguments"])]
            events += [
                {"type": "tool-call-start", "index": index,
                 "delta": {"message": {"tool_calls": start_call}}},
                *({"type": "tool-call-delta", "index": index,
                   "delta": {"message": {"tool_calls": rest}}} for rest in rests),
                {"type": "tool-call-end", "index": index},
            ]  # fmt: skip
        end = {"finish_reason": self._end(said), "usage": self._usage()}
        return [*events, {"type": "message-end", "delta": end}]

    def error(self, fault: Fault, code: str, message: str) -> Any:
        return {"id": "x", "message": message}


class OllamaChat(Lines):
    """Ollama's /api/chat."""

    def _message(self, said: Said) -> dict[str, Any]:
        calls = [
            {"id": i, "function": {"index": n, "name": name, "arguments": json.loads(text)}}
            for n, (i, name, text) in enumerate(said.arguments())
        ]
        return {
            "content": said.text,
            **({"thinking": said.reasoning} if said.reasoning else {}),
            **({"tool_calls": calls} if calls else {}),
        }

    def whole(self, said: Said) -> Any:
        return shapes.ollama(**self._message(said))

    def stream(self, said: Said) -> list[Any]:
        pieces = [Said(reasoning=half) for half in halves(said.reasoning) if half]
        pieces += [Said((part,)) for part in said.parts]
        pieces += [Said(calls=said.calls)] if said.calls else []
        head = {"model": "m", "created_at": "2026-01-01T00:00:00Z", "done": False}
        events = [
            {**head, "message": {"role": "assistant", **self._message(piece)}} for piece in pieces
        ]
        return [*events, shapes.ollama(content="")]

    def error(self, fault: Fault, code: str, message: str) -> Any:
        return {"error": message}


class OllamaGenerate(OllamaChat):
    """Ollama's /api/generate."""

    def _of(self, said: Said, answer: dict[str, Any]) -> dict[str, Any]:
        answer = {key: value for key, value in answer.items() if key != "message"}
        thought = {"thinking": said.reasoning} if said.reasoning else {}
        return {**answer, "response": said.text, **thought}

    def whole(self, said: Said) -> Any:
        return self._of(said, shapes.ollama())

    def stream(self, said: Said) -> list[Any]:
        pieces = [Said(reasoning=half) for half in halves(said.reasoning) if half]
        pieces += [Said((part,)) for part in said.parts]
        head = {"model": "m", "created_at": "2026-01-01T00:00:00Z", "done": False}
        return [*(self._of(piece, head) for piece in pieces), self.whole(Said())]


# -- the dialects

Words = Mapping[ErrorName, tuple[str, str]]
"""Name of an error -> the provider's code of it, and its message."""

_OPENAI: Words = {
    "rate": ("rate_limit_exceeded", "Rate limit reached for requests"),
    "overloaded": ("overloaded", "The engine is currently overloaded, please try again later"),
    "server": ("server_error", "The server had an error while processing your request."),
    "context": (
        "context_length_exceeded",
        "This model's maximum context length is 8192 tokens. However, your messages resulted in "
        "9000 tokens. Please reduce the length of the messages.",
    ),
}


@dataclass(frozen=True)
class Dialect:
    """A dialect: `model` is litellm's model string, `path` follows the server's address in
    api_base, `route` is how the paths of its requests end (with "stream" for those that ask for a
    stream elsewhere). `reader` is the file of litellm that reads the answers, under litellm/.
    counts: which counts its usage has beside the two that all have."""

    model: str
    shape: Shape
    route: str
    source: str
    reader: str
    path: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    words: Words = field(default_factory=lambda: _OPENAI)
    overflow: int = 400  # status of a prompt that is too long
    takes_tools: bool = True
    shows_reasoning: bool = True  # or litellm hands none on
    template: str | None = None
    counts: tuple[str, ...] = ("cached_tokens", "reasoning_tokens")
    whole_calls: bool = False  # a stream has each call in one piece

    def written(self, said: Said | Fault, *, stream: bool) -> tuple[int, Wire]:
        if isinstance(said, Fault):
            code, message = self.words[said.name]
            wire = self.shape.error(said, code, message)
            wire = wire if isinstance(wire, Wire) else wire_of(wire)
            return said.status, replace(wire, headers={**wire.headers, **said.headers})
        if stream:
            return 200, self.shape.framed(self.shape.stream(said))
        return 200, wire_of(self.shape.whole(said))


def _words(**own: tuple[str, str]) -> Words:
    return {**_OPENAI, **own}  # type: ignore[dict-item]


_ANTHROPIC = _words(
    rate=("rate_limit_error", "This request would exceed your organization's rate limit"),
    overloaded=("overloaded_error", "Overloaded"),
    server=("api_error", "Internal server error"),
    context=("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
)
_GOOGLE = _words(
    rate=("RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."),
    overloaded=("UNAVAILABLE", "The model is overloaded. Please try again later."),
    server=("INTERNAL", "An internal error has occurred."),
    context=(
        "INVALID_ARGUMENT",
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    ),
)
_OLLAMA = _words(
    rate=("", "too many concurrent requests"),
    overloaded=("", "server busy, please try again.  maximum pending requests exceeded"),
    server=("", "llama runner process has terminated: exit status 2"),
    context=("", "the input length exceeds the context length"),
)

DIALECTS: dict[str, Dialect] = {
    "OpenAI chat": Dialect(
        "openai/gpt-4.1-mini", Chat(None), "/chat/completions",
        "https://platform.openai.com/docs/api-reference/chat",
        "llms/openai/chat/gpt_transformation.py",
        path="/v1", shows_reasoning=False,
    ),
    "OpenAI Responses": Dialect(
        "openai/responses/gpt-5-mini", Responses(), "/responses",
        "https://platform.openai.com/docs/api-reference/responses",
        "completion_extras/litellm_responses_transformation/transformation.py",
        path="/v1",
    ),
    "OpenAI completions": Dialect(
        "text-completion-openai/m", Completions(), "/completions",
        "https://platform.openai.com/docs/api-reference/completions",
        "llms/openai/completion/transformation.py",
        path="/v1", takes_tools=False, shows_reasoning=False, template="chatml",
    ),
    "Azure OpenAI": Dialect(
        "azure/gpt-4.1-mini", Chat(None), "/chat/completions",
        "https://learn.microsoft.com/azure/ai-foundry/openai/reference",
        "llms/azure/azure.py",
        params={"api_version": "2025-01-01-preview"}, shows_reasoning=False,
        words=_words(
            policy=(
                "content_filter",
                "The response was filtered due to the prompt triggering Azure OpenAI's content "
                "management policy.",
            )
        ),
    ),
    "Anthropic messages": Dialect(
        "anthropic/claude-sonnet-4-5", Messages(), "/v1/messages",
        "https://docs.claude.com/en/api/messages",
        "llms/anthropic/chat/handler.py",
        words=_ANTHROPIC, counts=("cached_tokens",),
    ),
    "Bedrock converse": Dialect(
        "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0", Converse(), "/converse",
        "https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html",
        "llms/bedrock/chat/converse_transformation.py",
        params={"aws_bedrock_runtime_endpoint": "{url}"}, counts=("cached_tokens",),
        words=_words(
            rate=("ThrottlingException", "Too many requests, please wait before trying again."),
            overloaded=("ServiceUnavailableException", "The service is unavailable."),
            server=("InternalServerException", "The system encountered an unexpected error."),
            context=("ValidationException", "Input is too long for requested model."),
        ),
    ),
    "Gemini": Dialect(
        "gemini/gemini-2.5-pro", Generate(), "enerateContent",
        "https://ai.google.dev/api/generate-content",
        "llms/vertex_ai/gemini/vertex_and_google_ai_studio_gemini.py", whole_calls=True,
        words=_GOOGLE,
    ),
    "Vertex AI": Dialect(
        "vertex_ai/gemini-2.5-pro", Generate(), "enerateContent",
        "https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/inference",
        "llms/vertex_ai/gemini/vertex_and_google_ai_studio_gemini.py", whole_calls=True,
        params={"vertex_project": "p", "vertex_location": "us-east5"}, words=_GOOGLE,
    ),
    "Claude on Vertex AI": Dialect(
        "vertex_ai/claude-sonnet-4-5@20250929", Messages(), "awPredict",
        "https://cloud.google.com/vertex-ai/generative-ai/docs/partner-models/claude",
        "llms/vertex_ai/vertex_ai_partner_models/anthropic/transformation.py",
        params={"vertex_project": "p", "vertex_location": "us-east5"}, words=_ANTHROPIC,
        counts=("cached_tokens",),
    ),
    "Mistral": Dialect(
        "mistral/magistral-medium-latest", Chat("parts", last_counts=True), "/chat/completions",
        "https://docs.mistral.ai/api/endpoint/chat",
        "llms/mistral/chat/transformation.py",
        path="/v1",
        words=_words(
            context=(
                "invalid_request_error",
                "Prompt contains 140000 tokens and 0 draft tokens, too large for model with 131072 "
                "maximum context length",
            )
        ),
    ),
    "Cohere v2": Dialect(
        "cohere_chat/command-a-03-2025", Cohere(), "/v2/chat",
        "https://docs.cohere.com/v2/reference/chat",
        "llms/cohere/chat/v2_transformation.py",
        path="/v2/chat", counts=("cached_tokens",),
        words=_words(
            context=(
                "",
                "too many tokens: total number of tokens in the prompt cannot exceed 288000 - "
                "received 300000",
            )
        ),
    ),
    "Ollama chat": Dialect(
        "ollama_chat/qwen3", OllamaChat(), "/api/chat",
        "https://docs.ollama.com/api/chat",
        "llms/ollama/chat/transformation.py", whole_calls=True,
        words=_OLLAMA, counts=(),
    ),
    "Ollama generate": Dialect(
        "ollama/qwen3", OllamaGenerate(), "/api/generate",
        "https://docs.ollama.com/api/generate",
        "llms/ollama/completion/transformation.py",
        words=_OLLAMA, takes_tools=False, counts=(),
    ),
    "DeepSeek": Dialect(
        "deepseek/deepseek-reasoner", Chat(cache="prompt_cache_hit_tokens", comments="keep-alive"), "/chat/completions",
        "https://api-docs.deepseek.com/api/create-chat-completion",
        "llms/deepseek/chat/transformation.py",
        path="/v1",
    ),
    "Groq": Dialect(
        "groq/qwen/qwen3-32b",
        Chat("reasoning", (("service_tier", "on_demand"),)),  # litellm fails without it
        "/chat/completions",
        "https://console.groq.com/docs/api-reference",
        "llms/groq/chat/transformation.py",
        path="/v1",
        words=_words(
            context=(
                "context_length_exceeded",
                "Please reduce the length of the messages or completion.",
            )
        ),
    ),
    "OpenRouter": Dialect(
        "openrouter/openai/gpt-4.1-mini",
        Chat("reasoning", comments="OPENROUTER PROCESSING"), "/chat/completions",
        "https://openrouter.ai/docs/api-reference/overview",
        "llms/openrouter/chat/transformation.py",
        path="/v1",
        words=_words(
            context=(
                "400",
                "This endpoint's maximum context length is 8192 tokens. However, you requested "
                "about 9000 tokens (9000 of text input).",
            )
        ),
    ),
    "xAI": Dialect(
        "xai/grok-3-mini", Chat(), "/chat/completions",
        "https://docs.x.ai/docs/api-reference",
        "llms/xai/chat/transformation.py",
        path="/v1",
        words=_words(
            context=(
                "Client specified an invalid argument",
                "This model's maximum prompt length is 131072 but the request contains 140000 "
                "tokens.",
            )
        ),
    ),
    "Hugging Face": Dialect(
        "huggingface/Qwen/Qwen3-8B", Chat(), "/chat/completions",
        "https://huggingface.co/docs/inference-providers/tasks/chat-completion",
        "llms/huggingface/chat/transformation.py",
        path="/v1", overflow=422,
        words=_words(
            context=(
                "validation",
                "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. "
                "Given: 5000 `inputs` tokens and 100 `max_new_tokens`",
            )
        ),
    ),
    "vLLM": Dialect(
        "hosted_vllm/Qwen3-8B", Chat("reasoning"), "/chat/completions",
        "https://docs.vllm.ai/en/latest/serving/openai_compatible_server",
        "llms/hosted_vllm/chat/transformation.py",
        path="/v1",
    ),
    "SGLang": Dialect(
        "openai/Qwen3-8B", Chat(), "/chat/completions",
        "https://docs.sglang.ai/basic_usage/openai_api_completions.html",
        "llms/openai/chat/gpt_transformation.py",
        path="/v1",
        words=_words(
            context=(
                "BadRequestError",
                "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
            )
        ),
    ),
    "llama.cpp": Dialect(
        "openai/qwen3-8b", Chat(), "/chat/completions",
        "https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md",
        "llms/openai/chat/gpt_transformation.py",
        path="/v1",
        words=_words(
            context=(
                "exceed_context_size_error",
                "the request exceeds the available context size. try increasing the context size "
                "or enable context shift",
            )
        ),
    ),
}  # fmt: skip


# -- the server

Turn = Said | Fault
SITUATION = re.compile(r"situation=([\w-]+)")


@dataclass(frozen=True)
class Script:
    """What one question gets, answer by answer; the last one again and again. `breaks`: the
    connection breaks off in the middle. `short`: the events that end a stream never come, and the
    connection ends well."""

    turns: tuple[Turn, ...]
    breaks: bool = False
    short: bool = False


class Server(Providers):
    """Speaks one dialect. scripts: name of a situation and if tools were sent -> its script."""

    def __init__(self, dialect: Dialect, scripts: Mapping[tuple[str, bool], Script]) -> None:
        self.dialect = dialect
        self.scripts = scripts
        self.asked: Counter[tuple[str, bool, bool]] = Counter()
        self._counting = threading.Lock()
        super().__init__(self._written)

    def model_settings(self) -> dict[str, Any]:
        """The arguments of `tp.Model` but for its name."""
        own = {k: str(v).replace("{url}", self.url) for k, v in self.dialect.params.items()}
        return {
            "api_base": self.url + self.dialect.path,
            "api_key": "planted",
            "params": own or None,
            "chat_template": self.dialect.template,
        }

    def _written(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        route = self.dialect.route
        stream = "stream" in path.lower() or bool(body.get("stream"))
        if not path.removesuffix("-stream").endswith(route):
            return 404, {"error": {"message": f"{path} is none of this dialect's"}}
        found = SITUATION.search(json.dumps(body))
        if found is None:
            return 400, {"error": {"message": "no situation is named"}}
        native = bool(body.get("tools") or body.get("toolConfig"))
        with self._counting:
            key = (found[1], native, stream)
            turn = self.asked[key]
            self.asked[key] += 1
        script = self.scripts[found[1], native]
        said = script.turns[min(turn, len(script.turns) - 1)]
        status, wire = self.dialect.written(said, stream=stream)
        if not isinstance(said, Said) or not (script.breaks or script.short):
            return status, wire
        begun = self._begun(said) if stream else Wire(wire.body[: len(wire.body) // 2])
        if script.breaks:
            return status, replace(wire, missing=len(wire.body) - len(begun.body) - 3)
        return status, replace(begun, headers=wire.headers) if stream else wire

    def _begun(self, said: Said) -> Wire:
        """The events of a stream up to its first text or call, without those that end it."""
        shape = self.dialect.shape
        events = shape.stream(said)
        first = json.dumps(said.parts[0])[1:-1] if said.parts else said.calls[0][0]
        return shape.framed(
            events[: next(i for i, e in enumerate(events) if first in json.dumps(e)) + 1]
        )
