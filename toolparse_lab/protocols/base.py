"""What a protocol is: an envelope (where calls open and close) and a codec (what their bodies say). Pure, no state.

The engine asks the envelope at each possible opener, gets a scanner for the body, and hands the finished body to the
codec once. Neither sees the stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, final
from typing import Protocol as Interface

from .. import hooks
from ..errors import UnwritableCall
from ..rjson.damage import Refusal
from ..scan import Close, Scanner
from ..schema.coerce import coerce
from ..toolspec import ToolSpec
from ..types import Edit, Problem, Span, Step
from ..values import Value, read_strict, same
from .results import TOOL_RESPONSE, ResultForm

Tools: TypeAlias = Mapping[str, ToolSpec]
"""name -> tool"""


@final
class NeedMore:
    """The text so far does not say yet whether this is an opener."""


NEED_MORE: Final = NeedMore()


@dataclass(frozen=True, slots=True)
class Opening:
    """What stands at an opener. Offsets are relative to the beginning of the opener.

    end: behind the opener. name: the tool, where the opener names it. whole: the opener is the whole call.
    speculative: without delimiters; if the body is no good call, the text is text. owner: the protocol that opened
    it, where several are read at once.
    """

    end: int
    kind: Literal["call", "reasoning", "markup"] = "call"
    name: str = ""
    name_span: Span | None = None
    wire_id: str | None = None
    whole: bool = False
    speculative: bool = False
    owner: Protocol | None = None


@dataclass(slots=True)  # made for every body, and a frozen one takes twice the time
class Reading:
    """What a codec may know of a body: whether its closer was seen, what is allowed, and the tools.

    known: a body and the one strict JSON value that it says, where finding its end took reading it.
    """

    opening: Opening
    closed: bool
    repair: bool
    max_depth: int
    tools: Tools
    known: tuple[str, Value] | None = None


Places: TypeAlias = Mapping[str, tuple[int, int]]
"""JSON Pointer into the arguments -> (start, end) in the body, strings without their quotes."""


def _nowhere() -> Places:
    return {}


@dataclass(slots=True)  # as above
class Decoded:
    """One call read out of a body. Spans and edits count from the beginning of the body.

    arguments: the arguments as found. places: computed when asked. unescape: offsets in a text's raw characters for
    each character of what they mean, or None where that cannot be told. untyped: every leaf is text, as XML writes it.
    truncated: not readable because the text ends inside it, which matters where a body holds several calls.
    """

    name: str
    arguments: Value
    name_span: Span | None = None
    wire_id: str | None = None
    edits: tuple[Edit, ...] = ()
    steps: tuple[Step, ...] = ()
    problems: tuple[Problem, ...] = ()
    readable: bool = True
    untyped: bool = False
    truncated: bool = False
    places: Callable[[], Places] = field(default=_nowhere, compare=False)
    unescape: Callable[[str], list[int] | None] = field(default=lambda _: None, compare=False)


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a body that is a whole message, from the beginning of the body: a call, or a text inside a JSON string,
    without its quotes."""

    kind: Literal["call", "text", "reasoning"]
    span: Span


class Message(tuple[Decoded, ...]):
    """The calls of a body that is a whole message with text beside them, each with a place of its own.

    pieces: in the order of the body, one of kind 'call' for each call; what lies between them is markup.
    """

    pieces: tuple[Piece, ...]

    def __new__(cls, calls: Iterable[Decoded], pieces: Iterable[Piece]) -> Message:
        made = super().__new__(cls, calls)
        made.pieces = tuple(sorted(pieces, key=lambda p: p.span.start))
        return made


class Envelope(Interface):
    """Where calls, reasoning and markup open.

    Four more names may be there. closers: the literals that close a body. closer_of(opening): the literal that every
    closer of the body behind `opening` contains, by which the engine knows how far to read ahead. restarts: the
    literals at which a body that cannot be read may have been begun anew (otherwise the heads). suits(opening, text,
    at, final, tools): whether the body that begins at `text[at]` is of this format, where another format has the same
    opener; True, False or NEED_MORE, and a function of the text alone.
    """

    def heads(self, tools: Tools) -> tuple[str, ...]:
        """The literals an opener may begin with."""
        ...

    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Opening | NeedMore | None:
        """What opens at `pos`, where one of the heads stands; None when it is ordinary text."""
        ...

    def scanner(self, opening: Opening, tools: Tools) -> Scanner:
        """A new scanner for the body behind `opening`."""
        ...

    def speculates(self, text: str) -> Opening | NeedMore | None:
        """Whether the very beginning of the answer, white space aside, is a call without an opener."""
        ...


class Codec(Interface):
    def read(self, body: str, reading: Reading) -> tuple[Decoded, ...]:
        """The calls of one body, as a `Message` where it holds text too. Raises rjson.damage.Refusal when it cannot be
        read without inventing."""
        ...

    def strict(self, body: str, reading: Reading) -> bool:
        """Whether the body reads without any repair."""
        ...

    def write(self, name: str, arguments_json: str, tool: ToolSpec | None) -> str:
        """The call as this format writes it, delimiters included. Raises UnwritableCall."""
        ...


@dataclass(frozen=True, slots=True)
class Protocol:
    """A wire format. `tags` say what it is: 'delimited', 'schema-typed' (right only with the schema), …

    `results` is the form in which tool results are written. The six methods from `format_tools` to
    `extract_tool_call_segments` are what a tool-call protocol of an AI SDK has. Three of them write, and need only what
    is below this module; the three that read are the engine's work, of which a protocol knows nothing: they reach it
    through `hooks`, so that a protocol stays data and a codec, and there is still one object to hand around.
    """

    id: str
    envelope: Envelope
    codec: Codec
    aliases: tuple[str, ...] = ()
    title: str = ""
    tags: frozenset[str] = frozenset()
    results: ResultForm = TOOL_RESPONSE

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any] | None = None, **fields: Any) -> Protocol:
        """A protocol from data, for a format of a family that is here. Fields may be given as a mapping or by name.

        id; title and aliases may be there. body is the family. "json" (unless said otherwise): opener, closer,
        name_key, arguments_key, own_line (the opener is a line of its own, as a code fence is), response_name_key and
        response_content_key. "tags" (a tag for the function and one for each parameter): opener and closer around a
        block of functions, or neither; function and parameter, the tags' words; attribute (`name="…"` instead of
        `=…`); trim (a value loses one line break at each end); lines (tags stand on lines of their own). "xml" and
        "yaml": one element a call. response_opener and response_closer stand around results of json and tags.

        Raises BadSpec, which names the field, what was got and what was expected.

        >>> Protocol.from_spec(id="bracketed", opener="[CALL]", closer="[/CALL]", name_key="tool").write_call("f", "{}")
        '[CALL]{"tool":"f","arguments":{}}[/CALL]'
        """
        from .spec import from_spec

        return from_spec(spec, fields)

    def write_call(self, name: str, arguments_json: str, tool: ToolSpec | None = None) -> str:
        """The call as this format writes it; raises UnwritableCall if it would not read back the same.

        The check needs `tool` for formats whose values only the schema types.
        """
        text = self.codec.write(name, arguments_json, tool)
        if (tool is not None or "schema-typed" not in self.tags) and not self._reads_back(
            text, name, arguments_json, tool
        ):
            raise UnwritableCall(
                f"{self.id} cannot write this call so that it reads back the same",
                got=f"{name}({arguments_json})",
                hint="write it in a format that carries JSON, such as hermes",
            )
        return text

    def join_calls(self, calls: Sequence[str]) -> str:
        """Calls that `write_call` wrote, as one answer of the model: one behind the other, unless the format has a
        list for them."""
        join: Callable[[Sequence[str]], str] = getattr(self.codec, "join", "\n".join)
        return join(calls)

    def format_tools(self, tools: Any, tool_system_prompt_template: str | Callable[[str], str] | None = None) -> str:
        """The system prompt that explains the tools: `tools` in any shape `ToolSpec.of` takes, "" for none.

        A template of your own is a function, called with the tools as the text of a JSON array of {name, description,
        parameters}, or text with the placeholders of the built-in ones, such as `{{tools_json}}`.
        Raises BadOptions for a template that is neither or has an unknown placeholder.
        """
        from .surface import format_tools

        return format_tools(self, tools, tool_system_prompt_template)

    def format_tool_call(self, call: Any, tool: ToolSpec | None = None) -> str:
        """A call of the conversation so far as the model would have written it.

        call: {toolName, input}, {name, arguments}, an OpenAI tool call or a ToolCall; the arguments as a mapping or
        JSON text. Text that is no JSON is shown as it is. Raises BadOptions for a call without a name, and
        UnwritableCall as `write_call` does.
        """
        from .surface import format_tool_call

        return format_tool_call(self, call, tool)

    def format_tool_response(self, result: Any, *, compat: Literal["seed"] | None = None) -> str:
        """The result of a tool in the shape the format's models know; `compat="seed"`: as the oldest version wrote it.

        result: {toolName, output} with an output of type text, json, error-text, error-json, execution-denied or
        content; {toolName, result}; or {name, content}. Errors are written `[Error: …]`; images and files leave a
        placeholder, and `protocols.results.media_of` gives them for the message. Delimiters of the format inside the
        result are escaped where it has escapes (see `protocols.results`); only delimiters that consist of JSON's own
        punctuation cannot be. Raises BadOptions for what is no result.
        """
        from .surface import format_tool_response

        return format_tool_response(self, result, compat)

    def parse_generated_text(self, text: str, tools: Any = None, options: Any = None) -> list[dict[str, Any]]:
        """The parts of a whole answer: `{type: "text", text}` and `{type: "tool-call", toolCallId, toolName, input}`.

        `input` is JSON text. options: None, ParseOptions, or a mapping of its fields, with `on_error` (or `onError`),
        called as on_error(message, metadata) for each call that could not be read, whose part is its text. Unless
        said otherwise coercion has the policy 'middleware'.
        """
        return list(hooks.call("parse_generated_text", self, text=text, tools=tools, options=options))

    def create_stream_parser(self, tools: Any = None, options: Any = None) -> Any:
        """A `PartStream`: `.feed(chunk)` and `.close()` return the parts of a stream.

        options: as above; with `input_events=False` the parts tool-input-start, -delta and -end are left out.
        """
        return hooks.call("create_stream_parser", self, tools=tools, options=options)

    def extract_tool_call_segments(self, text: str, tools: Any = None) -> list[str]:
        """The pieces of `text` that are read as calls, delimiters included, those that cannot be read as well."""
        return list(hooks.call("extract_tool_call_segments", self, text=text, tools=tools))

    def _reads_back(self, text: str, name: str, arguments_json: str, tool: ToolSpec | None) -> bool:
        tools = {tool.name: tool} if tool is not None else {}
        pos = 0
        found = self.envelope.speculates(text) or self.envelope.open(text, 0, True, tools)
        while isinstance(found, Opening) and found.kind == "markup" and 0 < found.end <= len(text) - pos:
            pos += found.end
            found = self.envelope.open(text, pos, True, tools)
        if not isinstance(found, Opening) or found.kind != "call":
            return False
        rest = text[pos + found.end :]
        if found.whole:
            body = ""
        else:
            close = self.envelope.scanner(found, tools).scan(rest, True)
            if not isinstance(close, Close):
                return False
            body = rest[: close.start]
        try:
            decoded = self.codec.read(body, Reading(found, True, False, 1000, tools))
        except Refusal:
            return False
        if len(decoded) != 1 or not decoded[0].readable or decoded[0].name != name:
            return False
        value = decoded[0].arguments
        if tool is not None:
            value = coerce(value, tool.schema_json, "safe", one_item=decoded[0].untyped).value
        return same(value, read_strict(arguments_json))
