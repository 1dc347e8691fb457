"""A loopback server that answers in the shape of each provider, for tests only: it records what
arrives. Shapes are those of the providers' documentation, as litellm reads them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.replay_server import Answer, Asked, ReplayServer

Reply = Callable[[str, dict[str, Any]], tuple[int, Any]]
"""Path and body of a request -> status and body of the answer; a list is a stream of events."""


@dataclass(frozen=True)
class Wire:
    """An answer as bytes. `missing`: how many bytes the connection breaks off before its end."""

    body: bytes
    kind: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    missing: int = 0


def openai(message: dict[str, Any], usage: dict[str, Any] | None = None) -> dict[str, Any]:
    """OpenAI's chat completion, and that of Azure, Mistral, DeepSeek, Groq, OpenRouter and xAI."""
    return {
        "id": "x",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": None, **message},
                "finish_reason": "stop",
            }
        ],
        "usage": usage or {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12},
    }


def _chunk(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
    return {
        "id": "x",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
    }


def anthropic(*content: dict[str, Any]) -> dict[str, Any]:
    """Anthropic's message."""
    return {
        "id": "x",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": list(content),
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 9, "output_tokens": 3},
    }


def converse(*content: dict[str, Any]) -> dict[str, Any]:
    """Bedrock's answer to `converse`."""
    return {
        "output": {"message": {"role": "assistant", "content": list(content)}},
        "stopReason": "end_turn",
        "usage": {"inputTokens": 9, "outputTokens": 3, "totalTokens": 12},
        "metrics": {"latencyMs": 1},
    }


def gemini(*parts: dict[str, Any], usage: dict[str, Any] | None = None) -> dict[str, Any]:
    """Gemini's answer to `generateContent`."""
    return {
        "candidates": [
            {"content": {"role": "model", "parts": list(parts)}, "finishReason": "STOP", "index": 0}
        ],
        "usageMetadata": {
            "promptTokenCount": 9,
            "candidatesTokenCount": 3,
            "totalTokenCount": 12,
            **(usage or {}),
        },
    }


def cohere(*content: dict[str, Any]) -> dict[str, Any]:
    """Cohere's answer, version 2 of its chat."""
    return {
        "id": "x",
        "finish_reason": "COMPLETE",
        "message": {"role": "assistant", "content": list(content)},
        "usage": {"tokens": {"input_tokens": 9, "output_tokens": 3}},
    }


def ollama(**message: Any) -> dict[str, Any]:
    """Ollama's answer to /api/chat."""
    return {
        "model": "m",
        "created_at": "2026-01-01T00:00:00Z",
        "message": {"role": "assistant", **message},
        "done": True,
        "done_reason": "stop",
        "prompt_eval_count": 9,
        "eval_count": 3,
    }


def responses(*output: dict[str, Any]) -> dict[str, Any]:
    """OpenAI's response object."""
    return {
        "id": "resp_x",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "status": "completed",
        "output": list(output),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 9,
            "output_tokens": 3,
            "total_tokens": 12,
            "input_tokens_details": {"cached_tokens": 4},
            "output_tokens_details": {"reasoning_tokens": 2},
        },
    }


def any_answer(path: str, body: dict[str, Any]) -> tuple[int, Any]:
    """Return "fine", in the shape that the path asks for."""
    if path.endswith("/messages"):
        return 200, anthropic({"type": "text", "text": "fine"})
    if "/converse" in path:
        return 200, converse({"text": "fine"})
    if "generateContent" in path:
        return 200, gemini({"text": "fine"})
    if path.endswith("/v2/chat"):
        return 200, cohere({"type": "text", "text": "fine"})
    if path.endswith("/api/chat"):
        return 200, ollama(content="fine")
    if path.endswith("/responses"):
        text = {"type": "output_text", "text": "fine", "annotations": []}
        message = {"type": "message", "id": "m", "role": "assistant", "status": "completed"}
        return 200, responses({**message, "content": [text]})
    return 200, openai({"content": "fine"})


class Providers(ReplayServer):
    """`with Providers() as server`: `server.url` is the address, `server.bodies` are the bodies that
    arrived and `server.paths` their paths.

    made: makes the answer of path and body, by default `any_answer`.
    """

    def __init__(self, made: Reply = any_answer) -> None:
        super().__init__()
        self.made = made

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [asked.json for asked in self.asked]

    @property
    def paths(self) -> list[str]:
        return [asked.path for asked in self.asked]

    def reply(self, asked: Asked) -> Answer:
        status, answer = self.made(asked.path.partition("?")[0], asked.json)
        wire = answer if isinstance(answer, Wire) else wire_of(answer)
        length = {"Content-Length": str(len(wire.body))}
        return Answer(
            [wire.body[: len(wire.body) - wire.missing]],
            status,
            {"Content-Type": wire.kind, **length, **wire.headers},
            cut=1 if wire.missing else None,
        )


def wire_of(answer: Any) -> Wire:
    """A list is a stream of server-sent events, a text is lines of JSON, all else is JSON."""
    if isinstance(answer, list):
        return Wire(b"".join(map(_event, answer)), "text/event-stream")
    if isinstance(answer, str):
        return Wire(answer.encode(), "application/x-ndjson")
    return Wire(json.dumps(answer).encode())


def _event(event: Any) -> bytes:
    if isinstance(event, str):
        return f"data: {event}\n\n".encode()
    name = f"event: {event['type']}\n" if "type" in event else ""
    return f"{name}data: {json.dumps(event)}\n\n".encode()
