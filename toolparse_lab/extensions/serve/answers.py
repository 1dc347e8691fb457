"""An answer as a server's tool parser has to give it: content and calls, whole or in pieces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ...formats.registry import PARSER_NAMES, protocols
from ...middleware import ToolCallMiddleware, create_tool_middleware
from ...middleware.stream import AnswerStream, Delta
from ...middleware.turn import Turn

PREFIX = "toolparse_"


@dataclass(frozen=True, slots=True)
class Call:
    """A call with its place among those of the answer, from 0. arguments: JSON text."""

    index: int
    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Said:
    """What is settled: content, '' for none, and whole calls."""

    content: str
    calls: tuple[Call, ...]


def names_of_formats() -> dict[str, str]:
    """Return protocol ids by the names that servers are given, such as `toolparse_hermes`.

    The names of the servers' own parsers come with the same prefix.
    """
    aliases = {name: id for name, id in PARSER_NAMES.items() if id in protocols()}
    return {PREFIX + name: id for name, id in {**aliases, **{id: id for id in protocols()}}.items()}


class ServerAnswer:
    """The answer to one request: `whole` of a text, or `feed` of its pieces and `close`.

    An exception of ours gives the text: a server must not lose an answer to its parser.

    >>> answer = ServerAnswer("hermes", [{"name": "f", "parameters": {"type": "object"}}])
    >>> answer.whole('<tool_call>{"name": "f", "arguments": {}}</tool_call>').calls[0].name
    'f'
    """

    def __init__(self, protocol: str, tools: Iterable[Any]) -> None:
        self._middleware = _middleware_of(protocol)
        plain = [_plain_tool(tool) for tool in tools]
        request = {"messages": [{"role": "user", "content": ""}], "tools": plain}
        # None: the answer stays text, as for a schema that cannot be read.
        self._turn: Turn | None = None
        with suppress(Exception):
            self._turn = self._middleware.transform_params(request)
        self._stream: AnswerStream | None = None

    def whole(self, text: str) -> Said:
        """Return the content and the calls of a whole answer."""
        if self._turn is None:
            return Said(text, ())
        stream = self._middleware.wrap_stream(self._turn, tool_input=False)
        try:
            # In one piece, so that a stream says the same.
            return _said((*stream.feed(text), *stream.close()[0]))
        except Exception:
            return Said(text, ())

    def feed(self, text: str) -> Said:
        """Return what a piece settles."""
        if self._turn is None:
            return Said(text, ())
        try:
            if self._stream is None:
                self._stream = self._middleware.wrap_stream(self._turn, tool_input=False)
            return _said(self._stream.feed(text))
        except Exception:
            self._turn = self._stream = None
            return Said(text, ())

    def close(self) -> Said:
        """Return what the end settles, which is nothing a second time."""
        stream, self._stream = self._stream, None
        if stream is not None:
            with suppress(Exception):
                return _said(stream.close()[0])
        return Said("", ())


_middlewares: dict[str, ToolCallMiddleware] = {}


def _middleware_of(protocol: str) -> ToolCallMiddleware:
    # One a format: it remembers the tools that it has seen. A call of a tool that was not offered
    # goes out, as by the servers' own parsers, since the application can say so to the model.
    if protocol not in _middlewares:
        _middlewares[protocol] = create_tool_middleware(protocol, unknown_tools="call")
    return _middlewares[protocol]


def _plain_tool(tool: Any) -> Any:
    # A pydantic model of chat completions, or the flat one of responses.
    if hasattr(tool, "model_dump"):
        tool = tool.model_dump(exclude_none=True)
    if isinstance(tool, Mapping) and "function" not in tool and "name" in tool:
        members = ("name", "description", "parameters")
        tool = {"type": "function", "function": {k: tool[k] for k in members if k in tool}}
    return tool


def _said(deltas: Iterable[Delta]) -> Said:
    content: list[str] = []
    calls: list[Call] = []
    for delta in deltas:
        # A server without a reasoning parser shows thoughts in its content.
        content.append(delta.get("reasoning_content") or delta.get("content") or "")
        for call in delta.get("tool_calls", ()):
            function = call["function"]
            calls.append(Call(call["index"], call["id"], function["name"], function["arguments"]))
    return Said("".join(content), tuple(calls))
