"""Protocols of other people: objects with the methods of a tool-call protocol, taken as they are.

Here their methods are found and called, however they are spelt and whatever way they take their
arguments. The parts of their parser are brought onto the raw text in `parser`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias, cast

from ...core.errors import BadOptions, UnknownProtocol, UnwritableCall
from ...core.toolspec import ToolSpec, tool_specs
from ...core.types import ParseOptions
from ...core.types.call_pieces import member
from ...core.values import read_plain
from ...formats.auto import AUTO
from ...formats.base import FAILURE, Protocol, Signs
from ...formats.prompt.type_rules import JSON_TYPE_RULES, TypeRules
from ...formats.prompt.wording import GENERIC, Wordings
from ...formats.registry import protocol_of

METHODS: Final = (
    "format_tools", "format_tool_call", "format_tool_response", "parse_generated_text",
    "create_stream_parser", "extract_tool_call_segments",
)  # fmt: skip
REQUIRED: Final = METHODS[:5]
_CAPITAL = re.compile(r"(?<!^)([A-Z])")


def camel(name: str) -> str:
    """Return a name in snake case, in camel case.

    >>> camel("format_tool_call")
    'formatToolCall'
    """
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


@dataclass(frozen=True, slots=True, eq=False)
class ForeignProtocol:
    """Another's protocol object behind our names: the six methods, `write_call`, and an id.

    options: what a request says to it, in either case. Its parsers get them.
    """

    id: str
    subject: Any
    aliases: tuple[str, ...] = ()
    title: str = "a protocol object of one's own"
    tags: frozenset[str] = frozenset(("foreign",))
    type_rules: TypeRules = JSON_TYPE_RULES
    wordings: Wordings = GENERIC
    version: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    def __eq__(self, other: object) -> bool:
        """Two wrappers of one object are one protocol."""
        return isinstance(other, ForeignProtocol) and self.subject is other.subject

    def __hash__(self) -> int:
        """By identity, as equality is: their object need not be hashable."""
        return id(self.subject)

    def method(self, name: str) -> Callable[..., Any] | None:
        """Return their method of that name, in snake or camel case, or None.

        Mappings of functions are taken like objects with methods.
        """
        return _first(self.subject, (name, camel(name)))

    @property
    def name(self) -> str:
        """The id."""
        return self.id

    def parse(self, raw: str, tools: Any = None, options: Any = None) -> Any:
        """Return the ParseResult of a whole text, as `tp.parse` does."""
        from .parser import ForeignParser  # it imports this module

        parser = ForeignParser(self, tool_specs(tools), ParseOptions.of(options), silent=True)
        parser.feed(raw)
        return parser.close()

    def stream(self, chunks: Iterable[str], tools: Any = None, options: Any = None) -> Any:
        """Return the ParseResult of what their stream parser makes of chunks.

        An error of theirs is a problem of it. Raises UnknownProtocol if they have none.
        """
        texts = [chunk for chunk in chunks if chunk]
        if self.method("create_stream_parser") is None:
            self.ask("create_stream_parser")

        def parts_of_stream(text: str) -> list[Any]:
            stream = self.create_stream_parser(tools, options)
            return [part for chunk in texts for part in stream.feed(chunk)] + stream.close()

        streamed = replace(self, subject={"parse_generated_text": parts_of_stream})
        return streamed.parse("".join(texts), tools, options)

    def missing(self) -> tuple[str, ...]:
        """Return the required methods that it lacks."""
        return tuple(m for m in REQUIRED if self.method(m) is None)

    def ask(self, name: str, **arguments: Any) -> Any:
        """Call their method with those of the arguments that it takes.

        Raises UnknownProtocol if it is missing, and whatever it raises itself.
        """
        method = self.method(name)
        if method is None:
            raise UnknownProtocol(
                f"the protocol object has no {name}",
                got=self.id,
                expected=f"a method {name} or {camel(name)}",
            )
        return _call(method, arguments)

    def format_tools(self, tools: Any, tool_system_prompt_template: Any = None) -> str:
        """Return their system prompt for some tools, or without a template the tools alone."""
        template = tool_system_prompt_template or (lambda tools_json: tools_json)
        specs = tools_for_them(tools)
        return str(self.ask("format_tools", tools=specs, tool_system_prompt_template=template))

    def format_tool_call(self, call: Any, tool: ToolSpec | None = None) -> str:
        """Return a call as they write it. `tool` is superfluous."""
        return str(self.ask("format_tool_call", tool_call=call))

    def format_tool_response(self, result: Any, *, compat: str | None = None) -> str:
        """Return a tool's result as they write it. `compat` means nothing to them."""
        return str(self.ask("format_tool_response", tool_result=result))

    def parse_generated_text(self, text: str, tools: Any = None, options: Any = None) -> list[Any]:
        """Return the parts of a whole answer, as they give them.

        options: as they know them. `on_error` is always there.
        """
        parts = self.ask(
            "parse_generated_text",
            text=text,
            tools=tools_for_them(tools),
            options=self.options_for(options),
        )
        return list(parts)

    def create_stream_parser(self, tools: Any = None, options: Any = None) -> TheirStream:
        """Return their stream parser, with `feed` and `close` that return their parts.

        Raises UnknownProtocol if theirs is nothing that takes chunks.
        """
        said = self.options_for(options)
        parser = self.ask("create_stream_parser", tools=tools_for_them(tools), options=said)
        return TheirStream(parser)

    def options_for(self, options: Any = None) -> TheirOptions:
        """Return the options that a parser of theirs gets: those of the request, then `options`."""
        said = options if isinstance(options, Mapping) else {}
        return TheirOptions({**self.options, **said})

    def extract_tool_call_segments(self, text: str, tools: Any = None) -> list[str]:
        """Return the pieces of a text that they read as calls. What is no string drops out."""
        texts = self.ask("extract_tool_call_segments", text=text, tools=tools_for_them(tools))
        return [t for t in texts if isinstance(t, str)]

    def write_call(self, name: str, arguments_json: str, tool: ToolSpec | None = None) -> str:
        """Return the call as their `format_tool_call` writes it.

        Raises UnwritableCall if that raises or writes no text. It is not read back.
        """
        call = {"type": "tool-call", "toolCallId": "call_0", "toolName": name}
        try:
            text = self.ask("format_tool_call", tool_call={**call, "input": arguments_json})
        except Exception as e:
            raise UnwritableCall(
                f"{self.id} could not write this call: {type(e).__name__}: {e}", got=name
            ) from e

        if not isinstance(text, str):
            raise UnwritableCall(
                f"{self.id} wrote no text", got=type(text).__name__, expected="str"
            )
        return text

    def join_calls(self, calls: Sequence[str]) -> str:
        """Written calls as one answer, a line break between them."""
        return "\n".join(calls)

    def write_grammar(self, tools: Any) -> str:
        """Raise BadOptions: no one knows which texts their parser takes."""
        raise BadOptions(
            "there is no grammar for a protocol object of one's own",
            got=self.id,
            expected="a protocol with a grammar, such as hermes or morph_xml",
            hint='leave decoding="grammar" away',
        )

    def failure_of(self, text: str) -> str:
        """Return the message about a call that could not be read."""
        return FAILURE

    def signs_of_attempts(self) -> Signs:
        """No signs: the form of their calls is known to their parser alone."""
        return Signs()

    def __str__(self) -> str:
        """Return the id."""
        return self.id


def adapt(x: Any) -> Protocol | ForeignProtocol | None:
    """Return the protocol that an object is, or that a factory makes, or None.

    Raises UnknownProtocol for a factory that fails.

    x: a protocol of ours, an object or mapping with their methods, or a function or class that
    makes one when it is called without arguments.
    """
    if isinstance(x, (Protocol, ForeignProtocol)):
        return x
    if _is_one(x) and not isinstance(x, type):
        return ForeignProtocol(f"custom:{_name_of(x)}", x)
    if not callable(x):
        return None
    try:
        product = x()
    except Exception as e:
        raise UnknownProtocol(
            f"the protocol factory raised {type(e).__name__}: {e}", got=_name_of(x)
        ) from e

    if isinstance(product, (Protocol, ForeignProtocol)):
        return product
    return ForeignProtocol(f"custom:{_name_of(product)}", product) if _is_one(product) else None


def _is_one(x: Any) -> bool:
    # The one method that nothing else has.
    return _first(x, ("parse_generated_text", "parseGeneratedText")) is not None


def _name_of(x: Any) -> str:
    # Its own id or name, else its type's.
    names = (member(x, key) for key in ("id", "name", "__name__"))
    own = next((name for name in names if isinstance(name, str) and name), None)
    return own or ("object" if isinstance(x, Mapping) else type(x).__name__)


# How their methods are called
# ----------------------------
# No rule says how: SDKs in Python take keyword arguments, wrappers around JavaScript one object of
# them, in camel case, and quick scripts whatever they need, in order. The signature decides, in
# that order of preference; a builtin without one gets all arguments in order.


def _call(method: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    # arguments: by our names, in the order in which methods take them.
    try:
        parameters = list(inspect.signature(method).parameters.values())
    except (TypeError, ValueError):
        return method(*arguments.values())

    by_name = _by_name(parameters, arguments)
    if by_name is not None:
        return method(**by_name)
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(places) == 1 and len(arguments) > 1:
        return method({**arguments, **{camel(k): v for k, v in arguments.items()}})
    return method(*list(arguments.values())[: len(places) or len(arguments)])


def _by_name(
    parameters: list[inspect.Parameter], arguments: Mapping[str, Any]
) -> dict[str, Any] | None:
    # None if the method is not to be called by names: it is where it takes at least one of ours,
    # in either case, and needs nothing we do not have. One that takes any keyword gets all of
    # them, in our spelling where it names none. ours: their parameter -> our name for it.
    ours = {p.name: _CAPITAL.sub(r"_\1", p.name).lower() for p in parameters}
    for p in parameters:
        is_needed = p.default is p.empty and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
        if is_needed and ours[p.name] not in arguments:
            return None
    taking_all = any(p.kind is p.VAR_KEYWORD for p in parameters)
    named = [p for p in parameters if ours[p.name] in arguments and p.kind is not p.POSITIONAL_ONLY]
    if not named and not taking_all:
        return None
    keywords = {p.name: arguments[ours[p.name]] for p in named}
    if taking_all:
        names = set(ours.values())
        keywords |= {key: value for key, value in arguments.items() if key not in names}
    return keywords


class TheirOptions(dict[str, Any]):
    """Options as other people's code asks for them: by key or attribute, in snake or camel case."""

    def __init__(self, options: Any = None) -> None:
        super().__init__(options if isinstance(options, Mapping) else {})
        on_error = self.get("on_error") or self.get("onError") or (lambda *_: None)
        self["on_error"] = self["onError"] = on_error

    def __getattr__(self, name: str) -> Any:
        """Return an option as an attribute. Raises AttributeError for one that is not there."""
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


def tools_for_them(tools: Any) -> list[dict[str, Any]]:
    """Tools as AI SDKs hand them to a protocol, the schema under either name that they use."""
    return [
        {
            "type": "function",
            "name": t.name,
            "description": t.description,
            "inputSchema": read_plain(t.schema_json),
            "parameters": read_plain(t.schema_json),
        }
        for t in tool_specs(tools)
    ]


class TheirStream:
    """A stream parser of theirs as `feed` and `close`, each returning the parts that came.

    It may be an object with `feed` (or `write`, `push`) and `close` (or `finish`, `end`, `flush`),
    a transformer with `transform(part, controller)` and `flush(controller)`, or a function of all
    chunks.
    """

    def __init__(self, parser: Any) -> None:
        self._chunks: list[str] = []
        self._out: list[Any] = []
        self._transform = _first(parser, ("transform",))
        self._feed = _first(parser, ("feed", "write", "push"))
        ends = (_first(parser, (name,)) for name in ("close", "finish", "end", "flush"))
        self._ends = [end for end in ends if end is not None]
        self._whole = parser if callable(parser) else None
        if not (self._transform or self._feed or self._whole):
            raise UnknownProtocol(
                "this is no stream parser",
                got=type(parser).__name__,
                expected="feed(chunk) and close()",
            )

    def enqueue(self, part: Any) -> None:
        """Take a part from a transformer, to which this object is the controller."""
        self._out.append(part)

    def feed(self, chunk: str) -> list[Any]:
        """Return the parts that came for a chunk: none yet from a function of all chunks."""
        if self._transform is not None:
            # Older SDKs read textDelta, newer ones delta.
            part = {"type": "text-delta", "id": "0", "delta": chunk, "textDelta": chunk}
            return self._came(_call(self._transform, {"chunk": part, "controller": self}))
        if self._feed is not None:
            return self._came(self._feed(chunk))
        self._chunks.append(chunk)
        return []

    def close(self) -> list[Any]:
        """Return the parts that came at the end."""
        if self._transform is not None:
            part = {"type": "finish", "finishReason": "stop"}
            parts = self._came(_call(self._transform, {"chunk": part, "controller": self}))
            # A transformer's own end is `flush`, the last of the names.
            for end in self._ends[-1:]:
                parts += self._came(_call(end, {"controller": self}))
            return parts
        if self._feed is not None:
            return [part for end in self._ends[:1] for part in self._came(end())]
        return [] if self._whole is None else self._came(self._whole(self._chunks))

    def _came(self, parts: Any) -> list[Any]:
        # One part, several, or nothing, after those that were enqueued. A mapping or a string is
        # one part.
        if isinstance(parts, (Mapping, str)):
            self._out.append(parts)
        elif isinstance(parts, Iterable):
            self._out.extend(parts)
        out, self._out = self._out, []
        return out


def _first(x: Any, names: tuple[str, ...]) -> Callable[..., Any] | None:
    methods = (member(x, name) for name in names)
    return cast("Callable[..., Any] | None", next(filter(callable, methods), None))


# Whatever a caller names a protocol by, as the object that reads and writes: the door for ids.

AnyProtocol: TypeAlias = Protocol | ForeignProtocol
"""A protocol of ours, or somebody else's object behind our names."""


def any_protocol(x: Any) -> AnyProtocol:
    """Return the protocol of an id, an alias, 'auto', an object of one's own or a factory of one.

    Raises UnknownProtocol.
    """
    if isinstance(x, str):
        return AUTO if x == "auto" else protocol_of(x)
    return adapt(x) or protocol_of(x)


def is_native(x: Any) -> bool:
    """Return True if a caller means the provider's own tool calling."""
    return isinstance(x, str) and x == "native"


def listed_names(x: Any) -> list[Any]:
    """Return the names or protocols that a caller gave, one alone as a list of itself."""
    if isinstance(x, str) or not isinstance(x, Iterable):
        return [x]
    # A mapping of methods is a protocol, though one can iterate over it.
    return [x] if adapt(x) is not None else list(x)
