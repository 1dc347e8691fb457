"""A protocol: an envelope finds calls in a text, a codec reads and writes them. Pure, no state.

`Protocol` puts the two together with everything else that is particular to one format.
"""

# How it works. The engine holds the text and asks the envelope at each place where one of its
# `heads` begins. The envelope answers with an `Opening`, with None (ordinary text), or with
# NEED_MORE while the text so far leaves it open. A scanner then finds the end of the body, and the
# codec reads the finished body once. Neither sees the stream.
#
# Invariant: every answer is a function of the text up to the place that it is about, never of how
# the text was cut into chunks. NEED_MORE is the only way to wait, and not an answer at the end.

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias, TypedDict, Unpack, final

from ..arguments.rjson.strict import Refusal
from ..arguments.schema.coerce import coerce
from ..core import hooks
from ..core.errors import BadOptions, BadSpec, UnwritableCall
from ..core.toolspec import ToolSpec, tool_specs
from ..core.types import Edit, Problem, Span, Step
from ..core.types.call import Reading
from ..core.types.spans import maker_of
from ..core.values import Value, read_strict, same
from ..core.values.printable import printable
from .prompt.type_rules import JSON_TYPE_RULES, RulesLevel, TypeRules
from .prompt.wording import GENERIC, Wordings
from .results import TOOL_RESPONSE, ResultForm
from .scan import Close, Scanner

Tools: TypeAlias = Mapping[str, ToolSpec]
"""Name -> tool."""


@final
class NeedMore:
    """The answer of an envelope where the text so far leaves it open whether this is an opener."""


# The only instance that is made; envelopes compare by type, which type checkers follow.
NEED_MORE: Final = NeedMore()


@dataclass(frozen=True, slots=True)
class Opening:
    """An opener, with offsets relative to its own beginning.

    end: the offset after the opener. kind: the part that it opens. name: the tool, where the
    opener names it. name_span: the place of that name. wire_id: the id that the text itself gives
    the call.
    whole: the opener is the whole call. speculative: a format without delimiters. If the body is no
    good call, it is text after all. owner: the protocol that opened it, where several are read at
    once. attributes: the opener's text after the name, where arguments may be there. text: of
    the header of a message that is text, the literals of which one ends it. No call opens before.
    lone: the call lost its delimiter, and begins with a word that prose has too. It counts at the
    beginning of a line, after a sentence or a token.
    """

    end: int
    kind: Literal["call", "reasoning", "markup"] = "call"
    name: str = ""
    name_span: Span | None = None
    wire_id: str | None = None
    whole: bool = False
    speculative: bool = False
    owner: Protocol | None = None
    attributes: str = ""
    text: tuple[str, ...] = ()
    lone: bool = False

    @property
    def name_in_body(self) -> Span | None:
        """The place of the name, counted from the beginning of the body: offsets are negative."""
        return self.name_span.shift(-self.end) if self.name_span else None


make_opening = maker_of(Opening)

Answer: TypeAlias = Opening | NeedMore | None
"""What an envelope says of a place: an opener, that more text decides, or ordinary text."""
Fit: TypeAlias = bool | NeedMore | None
"""If a body is of a format: None where it takes any."""


@dataclass(slots=True)  # made for every body, and a frozen one takes twice the time
class DecodeContext:
    """Context for decoding one body.

    opening: the opener before it. closed: whether its closer is in the text. repair: whether
    repairs are allowed. max_depth: the levels of nesting that may be read. tools: those on offer.
    strict_value: a body and its one strict JSON value, where finding the end of the body took
    reading it. envelope: of the format, whose delimiters no value should contain unseen.
    """

    opening: Opening
    closed: bool
    repair: bool
    max_depth: int
    tools: Tools
    strict_value: tuple[str, Value] | None = None
    envelope: Envelope | None = None


Places: TypeAlias = Mapping[str, tuple[int, int]]
"""JSON Pointer into the arguments -> (start, end) in the body, strings without their quotes."""


def moved_places(
    places: Callable[[], Places], move: Callable[[int, int], tuple[int, int]]
) -> Callable[[], Places]:
    return lambda: {path: move(*place) for path, place in places().items()}


@dataclass(slots=True)  # as above
class Decoded:
    """One call read out of a body.

    Spans and edits count from the beginning of the body.

    arguments: the value as the text has it, before coercion. places: called only for the origin of
    a value, since computing them costs another scan. unescape: called with the raw text of a string
    value. Returns the offset in it of each character of the value, or None if there is no such
    mapping. untyped: every leaf is text, as XML writes it. truncated: not readable because the text
    ends inside it, which matters where a body has several calls. readings: what a call that is not
    readable may mean.
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
    readings: tuple[Reading, ...] = ()
    places: Callable[[], Places] = field(default=dict, compare=False)
    unescape: Callable[[str], list[int] | None] = field(default=lambda _: None, compare=False)


def named_call(
    opening: Opening,
    arguments: Value,
    places: Callable[[], Places],
    edits: tuple[Edit, ...] = (),
    steps: tuple[Step, ...] = (),
    *,
    untyped: bool = False,
    unescape: Callable[[str], list[int] | None] = lambda _: None,
) -> Decoded:
    """Return the call of a body whose opener names the tool. For the arguments see `Decoded`."""
    return Decoded(
        opening.name,
        arguments,
        name_span=opening.name_in_body,
        wire_id=opening.wire_id,
        edits=edits,
        steps=steps,
        untyped=untyped,
        places=places,
        unescape=unescape,
    )


def with_step(call: Decoded, rule: str, before: Value = None, span: Span | None = None) -> Decoded:
    """Return a call with one more step before its own: what made its arguments of the body."""
    step = Step("read", rule, "", span, before, call.arguments)
    return replace(call, steps=(step, *call.steps))


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a body that is a whole message: a call, or a text in a JSON string, without quotes.

    span: counts from the beginning of the body.
    """

    kind: Literal["call", "text", "reasoning"]
    span: Span


def unread(
    name: str,
    refusal: Refusal,
    span: Span | None,
    *,
    name_span: Span | None = None,
    cut: Span | None = None,
) -> Decoded:
    """Return a call that was refused, although others of its body can be read.

    span: where it went wrong. cut: the place of the call, where the text ends inside it.
    """
    problems = [Problem("decode", refusal.code, "error", refusal.message, "", span)]
    if cut is not None:
        # The engine takes a call for truncated that says so first.
        message = "the text ends inside this call"
        problems.insert(0, Problem("scan", "call.truncated", "error", message, "", cut))
    return Decoded(
        name,
        None,
        name_span=name_span,
        problems=tuple(problems),
        readable=False,
        truncated=cut is not None,
    )


class Message(tuple[Decoded, ...]):
    """The calls of a body that is a whole message with text next to them.

    pieces: in the order of the body, one of kind 'call' for each call. All between them is markup.
    """

    pieces: tuple[Piece, ...]

    def __new__(cls, calls: Iterable[Decoded], pieces: Iterable[Piece]) -> Message:
        # A tuple of calls for all who need no more, as codecs without text return.
        message = super().__new__(cls, calls)
        message.pieces = tuple(sorted(pieces, key=lambda piece: piece.span.start))
        return message


class Envelope(ABC):
    """Finds the openers of calls, reasoning and markup, and the ends of bodies.

    A subclass defines `heads`, `open` and `scanner`. A part that formats rarely need has a default
    here.
    """

    __slots__ = ()

    @property
    def closers(self) -> tuple[str, ...]:
        """The literals that close a body, or empty for a format without."""
        return ()

    @property
    def heads_are_fixed(self) -> bool:
        """True if `heads` and `closers_in_text` are the same for any tools."""
        return False

    @property
    def calls_are_python(self) -> bool:
        """True if calls written as Python count outside the format too, on own lines."""
        return False

    def closers_in_text(self, tools: Tools) -> tuple[str, ...]:
        """Return the literals that in plain text say that an opener was lost."""
        return self.closers

    @property
    def restarts(self) -> tuple[str, ...] | None:
        """The literals at which a model may begin a body again after an unreadable one.

        None for the heads.
        """
        return None

    @abstractmethod
    def heads(self, tools: Tools) -> tuple[str, ...]:
        """Return the literals an opener may begin with."""

    @abstractmethod
    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Answer:
        """Return the opener at `text[pos]`, where one of the heads is, or None for ordinary text.

        final: the text is complete. NEED_MORE where more text may change the answer, never once
        `final` is set.
        """

    @abstractmethod
    def scanner(self, opening: Opening, tools: Tools) -> Scanner:
        """Return a new scanner for the body after `opening`."""

    def speculates(self, text: str) -> Answer:
        """Return the opening of an answer that is a call without an opener, if this may be one.

        text: the answer so far, without white space before it. By default nothing opens so.
        """
        return None

    @property
    def speculation_starts(self) -> str | None:
        """The characters that an answer may begin with which `speculates`, None for any."""
        return None

    def resumes(self, text: str, tools: Tools) -> Answer:
        """Return the opening of an answer whose opener was in the prompt, if this may be one.

        text: the answer so far, without white space before it. A forced prefix does that: the
        answer begins with a body, and the closer after it says whose. By default none does.
        """
        return None

    @property
    def repeats(self) -> bool:
        """True if what `resumes` an answer may begin another call after a call as well."""
        return False

    def resumes_again(self, text: str, tools: Tools) -> Answer:
        """Return the opening of a call that begins as an answer does, after another call.

        text: after that call, without white space or a separator before it.
        """
        return self.resumes(text, tools) if self.repeats else None

    def sure_bodies(self, head: str) -> tuple[re.Pattern[str], ...]:
        """Return what may follow a head where a call is this format's, of all that have it.

        `auto` then asks no other. None of them matches where only `open` and `suits` can tell.
        What a pattern matches is the rest of the opener, of which its groups `name` and `id` are
        words; the body is looked at ahead.
        """
        return ()

    def token(self, head: str) -> Opening | None:
        """Return what a head opens whatever follows it, None where the text after it decides."""
        return None

    @property
    def opener_is_body(self) -> bool:
        """True if the literal before a sure body is a part of it: the opening is empty."""
        return False

    def may_open(self, literal: str) -> bool:
        """Return False if no text that begins with a literal opens anything of this format."""
        return True

    def resume_starts(self, tools: Tools) -> str | None:
        """Return the characters that an answer may begin with which `resumes`, None for any."""
        return None

    def first_signs(self, tools: Tools) -> str | None:
        """Return the characters that an answer without an opener may begin with, None for any."""
        resuming = self.resume_starts(tools) if self.may_resume else ""
        if resuming is None or type(self).speculates is Envelope.speculates:
            return resuming
        starts = self.speculation_starts
        return None if starts is None else starts + resuming

    @property
    def may_resume(self) -> bool:
        """True if `resumes` is worth a question: a class has one of its own."""
        return type(self).resumes is not Envelope.resumes

    @property
    def in_auto(self) -> bool:
        """True if `auto` asks this format. Not where calls outside any look like its own."""
        return True

    @property
    def among_others(self) -> Envelope:
        """The envelope as `auto` asks it, without openers that belong to another format."""
        return self

    def closer_of(self, opening: Opening) -> str | None:
        """Return the literal that every closer of the body contains, if any.

        The engine reads ahead to it, so that a whole body is scanned in one go.
        """
        return None

    def in_value(self, opening: Opening, text: str, tools: Tools) -> bool:
        """Return True if a body that was given up after `text` ends inside one of its values.

        The text after it is then part of that value, and no call of the model's own. By default
        every character but white space counts as the beginning of a value.
        """
        return bool(text.strip())

    def opens_parameter(self, opening: Opening, inner: Opening, tools: Tools) -> bool:
        """Return True if `inner`, an opener inside a body, is a parameter of its call."""
        return False

    def suits(self, opening: Opening, text: str, at: int, final: bool, tools: Tools) -> Fit:
        """Return True if the body that begins at `text[at]` is of this format; None: it takes any.

        Called where formats share an opener. A function of the text alone, so that chunking cannot
        change it.
        """
        return None


class Codec(ABC):
    """Reads the calls in bodies, and writes calls."""

    __slots__ = ()

    @abstractmethod
    def read(self, body: str, context: DecodeContext) -> tuple[Decoded, ...]:
        """Return the calls of one body, as a `Message` if it has text too.

        Raises rjson.strict.Refusal when it cannot be read without inventing content.
        """

    def strict(self, body: str, context: DecodeContext) -> bool:
        """Return True if the body, taken as closed, reads without any repair.

        The engine asks this where a body could end at two places.
        """
        try:
            calls = self.read(body, replace(context, closed=True, repair=False))
        except Refusal:
            return False
        return all(call.readable for call in calls)

    def leading(self, body: str, context: DecodeContext) -> tuple[Decoded, ...]:
        """Return the calls that are whole in front of the damage of a body that was refused."""
        return ()

    @abstractmethod
    def write(self, name: str, arguments_json: str, tool: ToolSpec | None) -> str:
        """Return the call as this format writes it, delimiters included. Raises UnwritableCall."""

    def says(
        self, body: str, arguments: Value, tool: ToolSpec | None = None, name: str = ""
    ) -> bool:
        """Return True if a body reads strictly as one call with these arguments.

        name: the call's, "" for any.
        """
        call = self.only_call(body, Opening(1), {tool.name: tool} if tool is not None else {})
        return call is not None and name in ("", call.name) and same(call.arguments, arguments)

    def only_call(self, body: str, opening: Opening, tools: Tools) -> Decoded | None:
        """Return the one call that a body strictly is, None if it is anything else."""
        try:
            calls = self.read(body, DecodeContext(opening, True, False, 1000, tools))
        except Refusal:
            return None
        return calls[0] if len(calls) == 1 and calls[0].readable else None

    @property
    def edges(self) -> tuple[str, str]:
        """What is written before the first call of an answer, and after its last."""
        return "", ""

    @property
    def between(self) -> str:
        """What is written between two calls."""
        return "\n"

    @property
    def list_head(self) -> str:
        """What begins a list or a section of calls, without white space, "" if nothing does."""
        start = "".join(self.edges[0].split())
        # One that comes again before each call begins no list.
        return start if start not in self.between else ""

    def join(self, calls: Sequence[str]) -> str:
        """Return written calls as one answer of the model: they share its edges."""
        start, end = self.edges
        inner = (call[len(start) : len(call) - len(end)] for call in calls)
        return f"{start}{self.between.join(inner)}{end}"


@dataclass(frozen=True, slots=True)
class Signs:
    """Signs of an attempt at a call in this format, for answers that no parser could read.

    Regular expressions, matched without regard to case. openers: count where the head of a body
    follows. marks: count wherever they are.
    """

    openers: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()


# The text of the oldest version, which programs may look for.
FAILURE = "Could not process tool call, keeping original text."

Grammar: TypeAlias = Callable[[Sequence[ToolSpec]], str]
"""Tools -> the GBNF of exactly one call of one of them."""


class SpecKeywords(TypedDict, total=False):
    """The fields that `Protocol.from_spec` takes. Each family has its own, see `spec._FIELDS`."""

    id: str
    body: Literal["json", "tags", "xml", "yaml"]
    title: str
    aliases: Sequence[str]
    wordings: Mapping[str, str]
    opener: str
    closer: str
    name_key: str
    arguments_key: str
    own_line: bool
    function: str
    parameter: str
    attribute: bool
    trim: bool
    lines: bool
    response_name_key: str
    response_content_key: str
    response_opener: str
    response_closer: str


@lru_cache(maxsize=128)
def _signs_of(heads: tuple[str, ...]) -> Signs:
    return Signs(openers=tuple(map(re.escape, heads)))


@dataclass(frozen=True, slots=True)
class Protocol:
    """A wire format: it reads and writes calls, and explains them to a model.

    Attributes:
        id, aliases, title: its names.
        envelope, codec: read and write it.
        tags: its properties, such as 'delimited' or 'schema-typed' (right only with the schema).
        results: write tool results.
        grammar: see `write_grammar`, or None if there is none.
        type_rules: a prompt's rules about types, in the format's own notation.
        wordings: its prompt texts.
        failure: the message about an unreadable call. `{text}` is its text.
        signs: signs of an attempt, or None for its opening literals.
        spec: the data it was made from, as JSON, or "" for code.

    The six methods from `format_tools` to `extract_tool_call_segments` are those of a tool-call
    protocol of an AI SDK.

    >>> import toolparse_lab as tp
    >>> protocol = tp.Protocol.from_spec(id="c", title="C", opener="[C]", closer="[/C]")
    >>> protocol.write_call("f", '{"a":1}')
    '[C]{"name":"f","arguments":{"a":1}}[/C]'
    """

    id: str
    envelope: Envelope
    codec: Codec
    aliases: tuple[str, ...] = ()
    title: str = ""
    tags: frozenset[str] = frozenset()
    results: ResultForm = TOOL_RESPONSE
    grammar: Grammar | None = None
    type_rules: TypeRules = JSON_TYPE_RULES
    wordings: Wordings = GENERIC
    failure: str = FAILURE
    signs: Signs | None = None
    spec: str = ""

    def __repr__(self) -> str:
        """Return the id and a few words; the parts of a format are many pages."""
        return printable(f"Protocol({self.id!r}{', ' if self.title else ''}{self.title})")

    def __post_init__(self) -> None:
        # Early, since an object without the defaults of its base class fails late and obscurely.
        for name, part, base in (
            ("envelope", self.envelope, Envelope),
            ("codec", self.codec, Codec),
        ):
            if not isinstance(part, base):
                raise BadSpec(
                    name,
                    f"a protocol's {name} derives from {base.__name__}, "
                    "which declares its defaults",
                    got=type(part).__name__,
                    expected=f"a subclass of toolparse_lab.formats.base.{base.__name__}",
                )

    @property
    def among_others(self) -> Protocol:
        """The protocol as part of `auto`: without the openers of other formats."""
        envelope = self.envelope.among_others
        return self if envelope is self.envelope else replace(self, envelope=envelope)

    @classmethod
    def from_spec(
        cls, spec: Mapping[str, Any] | None = None, **fields: Unpack[SpecKeywords]
    ) -> Protocol:
        """Return a protocol made from constants, for a format of a known family.

        Pass the fields as a mapping or by name. `id` is required; `title`, `aliases` and `wordings`
        are optional. `body` is the family, with fields of its own:

        - `json` (default): `opener` and `closer`, the same in every call; `name_key`,
          `arguments_key`, `response_name_key`, `response_content_key`, and `own_line`: the opener
          is a line of its own, as a code fence.
        - `tags`, with a tag for the function and one for each parameter: `opener` and `closer`
          around a block of functions, or neither; `function` and `parameter`, the words of the
          tags; `attribute`, for `name="…"` instead of `=…`; `trim`, if a value loses one line break
          at each end; `lines`, if tags are on lines of their own.
        - `xml` and `yaml`: none. They have one element per call.

        `response_opener` and `response_closer` enclose the results of `json` and `tags`.

        Raises BadSpec, which names the field, its value and the expected one.

        >>> spec = {"id": "bracketed", "opener": "[CALL]", "closer": "[/CALL]"}
        >>> Protocol.from_spec(spec, name_key="tool").write_call("f", "{}")
        '[CALL]{"tool":"f","arguments":{}}[/CALL]'
        """
        # Families of formats import this module, so the way to them is a hook.
        protocol: Protocol = hooks.call("from_spec", spec, fields=fields)
        return protocol

    def write_call(self, name: str, arguments_json: str, tool: ToolSpec | None = None) -> str:
        """Return the call as this format writes it.

        Raises UnwritableCall if the text would not be read as the same call. For formats whose
        values have no types, this is checked only with `tool`.
        """
        text = self.codec.write(name, arguments_json, tool)
        checkable = tool is not None or "schema-typed" not in self.tags
        if checkable and not self._reads_back(text, name, arguments_json, tool):
            raise UnwritableCall(
                f"{self.id} cannot write this call so that it reads back the same",
                got=f"{name}({arguments_json})",
                hint="write it in a format that carries JSON, such as hermes",
            )
        return text

    def join_calls(self, calls: Sequence[str]) -> str:
        """Return calls that `write_call` wrote as one answer of the model.

        They follow one another, unless the format has a list for them.
        """
        return self.codec.join(calls)

    def write_grammar(self, tools: Any) -> str:
        """Return the GBNF, as llama.cpp reads it, of exactly one call of one of `tools`.

        Args:
            tools: anything `ToolSpec.of` takes, at least one. Strings have at most 80 visible
                characters (or the schema's shorter `maxLength`), lists 5 items, and schemas are
                followed 6 levels deep. Optional properties that lead deeper drop out.

        Raises BadOptions for no tools and for a format without a grammar, BadToolSpec for a schema
        that nothing within the depth bound satisfies, UnwritableCall for a name that the format
        cannot hold.
        """
        specs = tool_specs(tools)
        if not specs:
            raise BadOptions(
                "a grammar needs at least one tool", got=tools, expected="a tool definition"
            )
        if self.grammar is None:
            raise BadOptions(
                "there is no grammar for this protocol",
                got=self.id,
                expected="a protocol with a grammar, such as hermes or morph_xml",
                hint='leave decoding="grammar" away',
            )
        return self.grammar(specs)

    def failure_of(self, text: str) -> str:
        """Return the message about a call with this text that could not be read."""
        # Not str.format: the text of a call is full of braces.
        return self.failure.replace("{text}", text)

    def signs_of_attempts(self) -> Signs:
        """Return the signs of an attempt at a call.

        These are `signs`, or the literals that open a call of any tool.
        """
        if self.signs is not None:
            return self.signs
        # Heads that depend on the tools are no sign by themselves: any text may hold such a word.
        return _signs_of(self.envelope.heads({}))

    def format_tools(
        self,
        tools: Any,
        tool_system_prompt_template: str | Callable[[str], str] | None = None,
        *,
        wording: str = "plain",
        type_rules: RulesLevel = False,
    ) -> str:
        """Return the system prompt that explains the tools.

        Args:
            tools: in any shape `ToolSpec.of` takes, or "" for none. A template of your own is a
                function, called with the tools as the text of a JSON array of {name, description,
                parameters}, or text with the placeholders of the built-in ones, such as
                `{{tools_json}}`.
            wording: which of the format's own wordings, where there is no template. type_rules:
                say in it how each type is written, with "pairs" by right and wrong examples too.

        Raises BadOptions for a template that is neither or has an unknown placeholder, and for an
        unknown wording.
        """
        prompt = hooks.call(
            "format_tools", self, tools, tool_system_prompt_template, wording, type_rules
        )
        return str(prompt)

    def format_tool_call(self, call: Any, tool: ToolSpec | None = None) -> str:
        """Return a call of the conversation so far as the model would have written it.

        Args:
            call: {toolName, input}, {name, arguments}, an OpenAI tool call or a ToolCall. The
                arguments as a mapping or JSON text. Text that is not JSON is shown as it is.

        Raises BadOptions for a call without a name, and UnwritableCall as `write_call` does.
        """
        return str(hooks.call("format_tool_call", self, call, tool))

    def format_tool_response(
        self, result: Any, *, compat: Literal["ai-sdk-2"] | None = None
    ) -> str:
        """Return the result of a tool in the shape the format's models know.

        Args:
            compat: "ai-sdk-2" for the form of version 2 of the AI SDK's middleware.
            result: {toolName, output} with an output of type text, json, error-text, error-json,
                execution-denied or content. {toolName, result}. Or {name, content}. Errors are
                written `[Error: …]`. Images and files leave a placeholder, and
                `formats.results.media_of` returns them for the message. Delimiters of the format
                inside the result are escaped if it has escapes (see `formats.results`). Only
                delimiters that consist of JSON's own punctuation cannot be.

        Raises BadOptions for anything that is not a result.
        """
        return str(hooks.call("format_tool_response", self, result, compat))

    def _reads_back(self, text: str, name: str, arguments_json: str, tool: ToolSpec | None) -> bool:
        tools = {tool.name: tool} if tool is not None else {}
        start = 0
        # A format without delimiters has no heads to look for.
        opening = self.envelope.speculates(text) or self.envelope.open(text, 0, True, tools)
        if opening is None and self.envelope.may_resume:
            opening = self.envelope.resumes(text, tools or {name: ToolSpec.of({"name": name})})
        while isinstance(opening, Opening) and opening.kind == "markup":
            if not 0 < opening.end <= len(text) - start:
                break  # an envelope of somebody else's must not keep this loop going
            start += opening.end
            opening = self.envelope.open(text, start, True, tools)
        if not isinstance(opening, Opening) or opening.kind != "call":
            return False

        body = text[start + opening.end :]
        close = None if opening.whole else self.envelope.scanner(opening, tools).scan(body, True)
        if close is not None and not isinstance(close, Close):
            return False
        call = self.codec.only_call(body[: close.start] if close else "", opening, tools)
        # Two calls, or another name, where one was written: the text says something else.
        if call is None or call.name != name:
            return False
        value, is_text = call.arguments, call.untyped
        # As in a parse, where text becomes the values that the schema declares.
        if tool is not None:
            value = coerce(
                value, tool.schema_json, "safe", one_item=is_text, raw_text=is_text
            ).value
        return same(value, read_strict(arguments_json))
