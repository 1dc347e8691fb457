"""Protocols of other people: objects with the methods of a tool-call protocol, taken as they are.

Here their methods are found and called, however they are spelt and whatever way they take their arguments. What their
parser says is brought onto the raw text in `foreign_parse`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from .errors import UnknownProtocol, UnwritableCall
from .protocols.base import Protocol
from .toolspec import ToolSpec, tool_specs
from .values import read_plain

METHODS: Final = (
    "format_tools", "format_tool_call", "format_tool_response", "parse_generated_text", "create_stream_parser",
    "extract_tool_call_segments",
)  # fmt: skip
REQUIRED: Final = METHODS[:5]
_CAPITAL = re.compile(r"(?<!^)([A-Z])")


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


@dataclass(frozen=True, slots=True, eq=False)
class ForeignProtocol:
    """Somebody else's protocol object behind our names: the six methods, `write_call`, and an id."""

    id: str
    subject: Any
    aliases: tuple[str, ...] = ()
    title: str = "a protocol object of one's own"
    tags: frozenset[str] = frozenset(("foreign",))

    def method(self, name: str) -> Callable[..., Any] | None:
        """Their method of that name, in snake or camel case; None where there is none."""
        for spelling in (name, camel(name)):
            found = (
                self.subject.get(spelling)
                if isinstance(self.subject, Mapping)
                else getattr(self.subject, spelling, None)
            )
            if callable(found):
                return cast(Callable[..., Any], found)
        return None

    def missing(self) -> tuple[str, ...]:
        """The required methods that it lacks."""
        return tuple(m for m in REQUIRED if self.method(m) is None)

    def ask(self, name: str, **given: Any) -> Any:
        """Calls their method with what it takes; raises UnknownProtocol where it is missing, and what it raises."""
        method = self.method(name)
        if method is None:
            raise UnknownProtocol(
                f"the protocol object has no {name}", got=self.id, expected=f"a method {name} or {camel(name)}"
            )
        return _call(method, given)

    def format_tools(self, tools: Any, tool_system_prompt_template: Any = None) -> str:
        template = tool_system_prompt_template or (lambda tools_json: tools_json)
        return str(self.ask("format_tools", tools=tools_for_them(tools), tool_system_prompt_template=template))

    def format_tool_call(self, call: Any, tool: ToolSpec | None = None) -> str:
        return str(self.ask("format_tool_call", tool_call=call))

    def format_tool_response(self, result: Any, *, compat: str | None = None) -> str:
        return str(self.ask("format_tool_response", tool_result=result))

    def parse_generated_text(self, text: str, tools: Any = None, options: Any = None) -> list[Any]:
        return list(
            self.ask("parse_generated_text", text=text, tools=tools_for_them(tools), options=TheirOptions(options))
        )

    def create_stream_parser(self, tools: Any = None, options: Any = None) -> TheirStream:
        made = self.ask("create_stream_parser", tools=tools_for_them(tools), options=TheirOptions(options))
        return TheirStream(made)

    def extract_tool_call_segments(self, text: str, tools: Any = None) -> list[str]:
        found = self.ask("extract_tool_call_segments", text=text, tools=tools_for_them(tools))
        return [s for s in found if isinstance(s, str)]

    def write_call(self, name: str, arguments_json: str, tool: ToolSpec | None = None) -> str:
        """What their `format_tool_call` writes; raises UnwritableCall where it raises or writes no text."""
        call = {"type": "tool-call", "toolCallId": "call_0", "toolName": name, "input": arguments_json}
        try:
            text = self.ask("format_tool_call", tool_call=call)
        except Exception as e:
            raise UnwritableCall(f"{self.id} could not write this call: {type(e).__name__}: {e}", got=name) from e
        if not isinstance(text, str):
            raise UnwritableCall(f"{self.id} wrote no text", got=type(text).__name__, expected="str")
        return text

    def __str__(self) -> str:
        return self.id


def adapt(x: Any) -> Protocol | ForeignProtocol | None:
    """The protocol that an object is, or that a factory makes; None where it is neither.

    Raises UnknownProtocol for a factory that fails.
    """
    if isinstance(x, (Protocol, ForeignProtocol)):
        return x
    if _is_one(x) and not isinstance(x, type):
        return ForeignProtocol(f"custom:{_name_of(x)}", x)
    if not callable(x):
        return None
    try:
        made = x()
    except Exception as e:
        raise UnknownProtocol(f"the protocol factory raised {type(e).__name__}: {e}", got=_name_of(x)) from e
    if isinstance(made, (Protocol, ForeignProtocol)):
        return made
    return ForeignProtocol(f"custom:{_name_of(made)}", made) if _is_one(made) else None


def _is_one(x: Any) -> bool:
    names = ("parse_generated_text", "parseGeneratedText")
    if isinstance(x, Mapping):
        return any(callable(x.get(n)) for n in names)
    return any(callable(getattr(x, n, None)) for n in names)


def _name_of(x: Any) -> str:
    for key in ("id", "name", "__name__"):
        found = x.get(key) if isinstance(x, Mapping) else getattr(x, key, None)
        if isinstance(found, str) and found:
            return found
    return "object" if isinstance(x, Mapping) else type(x).__name__


def _call(method: Callable[..., Any], given: Mapping[str, Any]) -> Any:
    """A method of theirs, called as its signature asks: by names, with one mapping of them, or in order."""
    try:
        parameters = list(inspect.signature(method).parameters.values())
    except (TypeError, ValueError):
        return method(*given.values())
    by_name = {p.name: _CAPITAL.sub(r"_\1", p.name).lower() for p in parameters}
    taking_all = any(p.kind is p.VAR_KEYWORD for p in parameters)
    needed = [p for p in parameters if p.default is p.empty and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    named = [p for p in parameters if by_name[p.name] in given and p.kind is not p.POSITIONAL_ONLY]
    if all(by_name[p.name] in given for p in needed) and (named or taking_all):
        chosen = {p.name: given[by_name[p.name]] for p in named}
        rest = {k: v for k, v in given.items() if k not in by_name.values()} if taking_all else {}
        return method(**chosen, **rest)
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(places) == 1 and len(given) > 1:
        return method({**given, **{camel(k): v for k, v in given.items()}})
    return method(*list(given.values())[: len(places) or len(given)])


class TheirOptions(dict[str, Any]):
    """Options as other people's code asks for them: by key or attribute, in snake or camel case."""

    def __init__(self, options: Any = None) -> None:
        super().__init__(options if isinstance(options, Mapping) else {})
        on_error = self.get("on_error") or self.get("onError") or (lambda *_: None)
        self["on_error"] = self["onError"] = on_error

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


def tools_for_them(tools: Any) -> list[dict[str, Any]]:
    """Tools as AI SDKs hand them to a protocol."""
    return [
        {
            "type": "function", "name": t.name, "description": t.description,
            "inputSchema": read_plain(t.schema_json), "parameters": read_plain(t.schema_json),
        }
        for t in tool_specs(tools)
    ]  # fmt: skip


class TheirStream:
    """A stream parser of theirs as `feed` and `close`, each returning the parts that came.

    It may be an object with `feed` (or `write`, `push`) and `close` (or `finish`, `end`, `flush`), a transformer with
    `transform(part, controller)` and `flush(controller)`, or a function of all chunks.
    """

    def __init__(self, made: Any) -> None:
        self._chunks: list[str] = []
        self._out: list[Any] = []
        self._transform = _first(made, ("transform",))
        self._feed = _first(made, ("feed", "write", "push"))
        self._ends = [f for f in (_first(made, (n,)) for n in ("close", "finish", "end", "flush")) if f is not None]
        self._whole = made if callable(made) else None
        if not (self._transform or self._feed or self._whole):
            raise UnknownProtocol(
                "this is no stream parser", got=type(made).__name__, expected="feed(chunk) and close()"
            )

    def enqueue(self, part: Any) -> None:
        """The controller's method, by which a transformer hands out a part."""
        self._out.append(part)

    def feed(self, chunk: str) -> list[Any]:
        if self._transform is not None:
            part = {"type": "text-delta", "id": "0", "delta": chunk, "textDelta": chunk}
            self._take(_call(self._transform, {"chunk": part, "controller": self}))
        elif self._feed is not None:
            self._take(self._feed(chunk))
        else:
            self._chunks.append(chunk)
        return self._drain()

    def close(self) -> list[Any]:
        if self._transform is not None:
            self._take(
                _call(self._transform, {"chunk": {"type": "finish", "finishReason": "stop"}, "controller": self})
            )
            for end in self._ends[-1:]:
                self._take(_call(end, {"controller": self}))
        elif self._feed is not None:
            for end in self._ends[:1]:
                self._take(end())
        elif self._whole is not None:
            self._take(self._whole(self._chunks))
        return self._drain()

    def _take(self, parts: Any) -> None:
        if isinstance(parts, (Mapping, str)):
            self._out.append(parts)
        elif isinstance(parts, Iterable):
            self._out.extend(parts)

    def _drain(self) -> list[Any]:
        out, self._out = self._out, []
        return out


def _first(x: Any, names: tuple[str, ...]) -> Callable[..., Any] | None:
    for name in names:
        found = x.get(name) if isinstance(x, Mapping) else getattr(x, name, None)
        if callable(found):
            return cast(Callable[..., Any], found)
    return None
