"""Tool calls for models that know none: the request to send, and what the answer says. Pure:
nothing is sent from here.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Unpack

from ..core import hooks
from ..core.errors import BadOptions
from ..core.types import ParseOptions
from ..entry.foreign.protocol import AnyProtocol, ForeignProtocol, any_protocol
from ..entry.parse import with_lost_calls
from ..formats.base import Protocol
from ..formats.prompt.messages import LeftOut, input_examples, merge_prompt
from ..formats.prompt.type_rules import RulesLevel
from ..formats.results import ToolResult
from ..formats.surface import delimiters_of
from .answer import (
    ONLY_TEXT,
    Answer,
    answer_of,
    both_thoughts,
    coerce_call,
    passed_through,
    read_content,
)
from .attempts import Attempts, BrokenCalls, CallIds, UnknownTools
from .choice import (
    CHOICE_SCHEMAS,
    ChoiceForm,
    ChoiceSchema,
    add_format,
    forced_prompt,
    read_choice,
    read_tools,
    response_format,
    with_schemas,
)
from .content_parts import OnError
from .correction.feedback import Feedback
from .debug import debug_level, log_answer, log_out, log_raw
from .history import Message, Writer, documents_without, rewrite_history, without_delimiters
from .stream import AnswerStream
from .turn import AnswerReading, Prepared, Turn, Ways, take_request_options, ways_of

if TYPE_CHECKING:
    from .flow.factors import LitellmArguments

Template: TypeAlias = str | Callable[[str], str]
ResultFormat: TypeAlias = Literal["ai-sdk-2"] | Callable[[ToolResult], str]

_MOST_PREPARED = 64  # sets of tools that are remembered
# Arguments of a request that are not sent.
_REPLACED = ("messages", "tools", "tool_choice", "parallel_tool_calls")
_ONE_CALL = "Call at most one tool in an answer."
_PROVIDER_TOOL = (
    "tool-call-middleware: a provider-defined tool is left out; only the provider could run it"
)
_EXAMPLE = "tool-call-middleware: an example of a tool's input is left out of the prompt"
_CUSTOM_TOOL = (
    "tool-call-middleware: a custom tool is left out; it takes free text, and a call has JSON "
    "arguments"
)


@dataclass(frozen=True)
class ToolCallMiddleware:
    """Tool calling for any model.

    `create_tool_middleware` makes one and gives the meaning of the fields.

    >>> from toolparse_lab import hermes_tool_middleware as middleware
    >>> tools = [{"name": "f"}]
    >>> question = [{"role": "user", "content": "Hi"}]
    >>> turn = middleware.transform_params({"messages": question, "tools": tools})
    >>> [message["role"] for message in turn.params["messages"]], turn.active
    (['system', 'user'], True)
    >>> text = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'
    >>> answer = middleware.wrap_generate(turn, text)
    >>> answer.finish_reason, answer.tool_calls[0]["function"]["name"]
    ('tool_calls', 'f')
    """

    protocol: AnyProtocol
    ways: Ways
    tool_system_prompt_template: Template | None = None
    placement: Literal["first", "last"] = "first"
    on_error: OnError | None = None
    compat: Literal["ai-sdk-2"] | None = None
    tool_choice_by: Literal["response_format", "prompt"] = "response_format"
    result_format: ResultFormat | None = None
    unknown_tools: UnknownTools = "text"
    neutral_text: bool = True
    stream_arguments: bool = True
    choice_schema: ChoiceSchema | None = None
    broken_calls: BrokenCalls = "text"
    feedback: Feedback | None = None
    wording: str = "plain"
    type_rules: RulesLevel = False
    media: Literal["parts", "placeholder"] = "parts"
    _prepared: dict[bytes, Prepared] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _reading: AnswerReading = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        attempts = Attempts(self.unknown_tools, self.broken_calls)
        reading = AnswerReading(self.protocol, self.ways, self.on_error, attempts)
        object.__setattr__(self, "_reading", reading)

    def transform_params(
        self,
        params: Mapping[str, Any],
        *,
        original_tool_schemas: Mapping[str, Any] | None = None,
        choice_schema: ChoiceSchema = "if_then_else",
    ) -> Turn:
        """Return the request to send instead of `params`.

        `params` are the keyword arguments of an OpenAI-compatible completion.

        The tools go into the system prompt, and calls and results of the history become text. All
        other arguments stay.

        Args:
            original_tool_schemas: name -> schema to read arguments by, where `tools` shows the
                model another.
            choice_schema: for a middleware made without one.

        The member `toolparse` of `params` has options for this request alone: `on_error`,
        `original_tool_schemas` and those of the parser.

        Raises BadMessage, BadToolSpec and BadToolChoice, and BadOptions for a
        response_format that cannot be used with tools, or for options that nobody knows.
        """
        if params.get("functions") is not None or params.get("function_call") is not None:
            raise BadOptions(
                "functions were replaced by tools",
                got="functions",
                expected="tools and tool_choice",
            )
        params, own = take_request_options(params, self.protocol)
        if own is not None:
            ways = self.ways.with_options(own.options) if own.options else self.ways
            protocol = self.protocol
            if own.theirs and isinstance(protocol, ForeignProtocol):
                protocol = replace(protocol, options=own.theirs)
            by = replace(self, protocol=protocol, ways=ways, on_error=own.on_error or self.on_error)
            turn = by.transform_params(
                params,
                original_tool_schemas=own.original_tool_schemas or original_tool_schemas,
                choice_schema=choice_schema,
            )
            return replace(turn, _middleware=by)
        parallel = params.get("parallel_tool_calls")
        schema = self.choice_schema or ("if_then_else" if self.compat else choice_schema)
        form = ChoiceForm.of(schema, parallel)
        prepared = self._prepare(
            params.get("tools"), params.get("tool_choice"), original_tool_schemas, form
        )
        conversation = params.get("messages", ())
        documents = params.get("documents")
        if prepared.active and self.neutral_text:
            if prepared.delimiters is None:
                ours = self.protocol if isinstance(self.protocol, Protocol) else None
                by_name = prepared.writer.tools
                prepared.delimiters = delimiters_of(ours, by_name) if ours is not None else ()
            delimiters = prepared.delimiters
            conversation = without_delimiters(conversation, delimiters)
            if documents:
                params = {**params, "documents": documents_without(documents, delimiters)}
        messages = rewrite_history(conversation, prepared.writer)
        # With every request, although its tools may have been read long ago.
        for tool in prepared.provider:
            note = _CUSTOM_TOOL if tool.get("type") == "custom" else _PROVIDER_TOOL
            prepared.writer.tell(note, tool=dict(tool))
        for example in prepared.left_out:
            prepared.writer.tell(
                _EXAMPLE, toolName=example.tool, input=example.text, message=example.why
            )
        request = {k: v for k, v in params.items() if k not in _REPLACED}
        one_call = formatted = False
        if prepared.active:
            one_call = not prepared.forced and parallel is False
            words, formatted = self._ask_for_form(request, prepared)
            prompt = "\n\n".join(
                filter(None, (self._prompt_of(prepared), _ONE_CALL if one_call else "", words))
            )
            messages = _place(prompt, messages, self.placement)

        request["messages"] = messages
        choice = prepared.choice
        many = prepared.forced and choice.kind == "required" and schema == "any_of_many"
        return Turn(
            request, prepared.tools, choice.kind, choice.name, prepared.active, prepared.forced,
            one_call, tuple(params.get("messages") or ()), prepared,
            many=many and parallel is not False, formatted=formatted, _documents=documents,
        )  # fmt: skip

    def _ask_for_form(self, request: dict[str, Any], prepared: Prepared) -> tuple[str, bool]:
        # Gives the prompt's words for the form of the answer, and whether the answer is a call or
        # the form that the caller's own format asks for. Changes the request's response_format.
        by_prompt = self.tool_choice_by == "prompt"
        if prepared.forced:
            # An answer that must be a call has no other form.
            if by_prompt:
                request.pop("response_format", None)
            else:
                request["response_format"] = response_format(
                    prepared.choice, prepared.for_model, prepared.form
                )
            return "", False
        if self.compat or request.get("response_format") is None:
            return "", False
        return add_format(request, prepared.for_model, by_prompt=by_prompt)

    def wrap_generate(
        self,
        turn: Turn,
        content: Any,
        *,
        reasoning: str | None = None,
        finish_reason: str | None = "stop",
        tool_calls: Iterable[Mapping[str, Any]] = (),
        debug_summary: MutableMapping[str, str] | None = None,
        call_ids: CallIds | None = None,
    ) -> Answer:
        """Read a whole answer.

        Args:
            turn: the result of `transform_params` for the request.
            finish_reason: the words that the provider said of the answer's end, None if it said
                nothing.
            content: its text, None, or a list of content parts, whose texts are read as one and
                whose images stay.
            reasoning: the words that the provider said as reasoning.
            tool_calls: calls that the provider read itself, in OpenAI shape. They stay, after those
                of the text, with their arguments coerced.
            debug_summary: is filled with `original_text` and `tool_calls` (JSON text), and nothing
                is logged at level 'parse'.
            call_ids: of the calls, where another reading of the same answer has them, too.

        Raises UnreadableInput for a content that is none of these.
        """
        if not turn.active:
            return passed_through(content, finish_reason, tool_calls)
        by = self.for_turn(turn)
        native: tuple[dict[str, Any], ...] = ()
        if tool_calls:
            by_name, policy = {t.name: t for t in turn.tools}, by.ways.batch.coerce
            native = tuple(coerce_call(call, by_name, policy) for call in tool_calls)
        # Most contents are one text, which is not copied into a Content of its own.
        parts = ONLY_TEXT if type(content) is str else read_content(content)
        text = content if parts is ONLY_TEXT else parts.text
        level = debug_level()
        if level == "stream" or (level == "parse" and turn.forced and debug_summary is None):
            log_raw(text)

        reading = by._reading
        if turn.read_whole and (text.strip() or not native):
            result = reading.parse_whole(turn, text, finish_reason)
        else:
            result = reading.readers(turn)[0].parse(text, turn.asked)
        if by.on_error is not None:
            reading.tell_failures(result, turn)
        result = with_lost_calls(result, finish_reason, reasoning or "", called=bool(native))
        answer = answer_of(
            result,
            finish_reason,
            CallIds() if call_ids is None else call_ids,
            attempts=self._reading.attempts,
            one_call=turn.one_call,
            tool_name=turn.tool_name,
            reasoning=both_thoughts(reasoning, parts.reasoning) if parts.reasoning else reasoning,
            native=native,
        )
        # The message says None for no text, and keeps images in their place.
        if content is None or parts.media:
            answer.message["content"] = parts.beside(answer.message["content"])

        if level == "stream":
            log_out(answer.message)

        if level != "off" or debug_summary is not None:
            log_answer(answer, level, debug_summary)

        return answer

    def wrap_stream(
        self,
        turn: Turn,
        *,
        debug_summary: MutableMapping[str, str] | None = None,
        call_ids: CallIds | None = None,
        tool_input: bool = True,
    ) -> AnswerStream:
        """Return a reader of an answer that comes in pieces.

        Args:
            debug_summary, call_ids: as for `wrap_generate`.
            turn: the result of `transform_params` for the request.
            tool_input: show the input of a call while it is written, in deltas of their own.
                `compat="ai-sdk-2"` shows none.
        """
        shows = tool_input and self.compat is None
        reading = self.for_turn(turn)._reading
        return AnswerStream(reading, turn, debug_summary, call_ids, tool_input=shows)

    def for_turn(self, turn: Turn) -> ToolCallMiddleware:
        """Return the middleware that reads the answer to a request.

        It is this one, with the options that the request says for itself.
        """
        return self if turn._middleware is None else turn._middleware

    def completion(
        self,
        *,
        model: str,
        messages: Sequence[Any] | None = None,
        **params: Unpack[LitellmArguments],
    ) -> Any:
        """Ask as litellm's `completion` does, with tool calls by this middleware.

        Same arguments, same results, streams included.

        Args:
            params: the arguments of litellm's own function. Without litellm, its ImportError is
                raised.
        """
        return hooks.call("completion_with", self, model=model, messages=messages, **params)

    async def acompletion(
        self,
        *,
        model: str,
        messages: Sequence[Any] | None = None,
        **params: Unpack[LitellmArguments],
    ) -> Any:
        """Ask as litellm's `acompletion` does, with tool calls by this middleware."""
        return await hooks.call("acompletion_with", self, model=model, messages=messages, **params)

    # requests

    # How requests are remembered: an application sends the same tools again and again, and reading
    # them costs more than all the rest of `transform_params`. The key is the bytes of `marshal`:
    # equal bytes are equal values, and they are made sooner than a hash of nested dicts. What it
    # cannot write (objects, functions) is read each time. A full table is emptied: sets of tools
    # that never stop changing are not worth an order of use.

    def _prepare(
        self, tools: Any, tool_choice: Any, schemas: Mapping[str, Any] | None, form: ChoiceForm
    ) -> Prepared:
        try:
            subject: Any = (tools, tool_choice, schemas, *form)
            key = marshal.dumps(subject, 2)
        except ValueError:
            return self._read_tools(tools, tool_choice, schemas, *form)
        prepared = self._prepared.get(key)
        if prepared is None:
            # Read from the bytes, so that whoever changes the objects later does not change what is
            # remembered.
            prepared = self._read_tools(*marshal.loads(key))  # noqa: S302 - bytes of our own
            if len(self._prepared) >= _MOST_PREPARED:
                self._prepared.clear()
            self._prepared[key] = prepared
        return prepared

    def _read_tools(
        self, tools: Any, tool_choice: Any, schemas: Mapping[str, Any] | None, *form: Any
    ) -> Prepared:
        offered = read_tools(tools)
        read_by = with_schemas(offered.tools, schemas)
        choice = read_choice(tool_choice, offered, supports_none=not self.ways.ai_sdk_2)
        # With 'none' the model is told of no tool, and its text is not parsed.
        active = bool(offered.tools) and choice.kind != "none"
        by_name = {t.name: t for t in offered.tools}
        writer = Writer(
            self.protocol, by_name, self._write_result, self.on_error, self.media == "parts"
        )
        left_out: tuple[LeftOut, ...] = ()  # examples of an input that do not fit its schema
        if active and isinstance(self.protocol, Protocol):
            _, left_out = input_examples(self.protocol, offered.tools)
        return Prepared(
            offered.tools, read_by, offered.provider, choice, active, active and choice.forced,
            writer, self.protocol, self.ways, ChoiceForm(*form), left_out,
        )  # fmt: skip

    def _prompt_of(self, prepared: Prepared) -> str:
        if prepared.prompt is not None:
            return prepared.prompt
        tools = prepared.for_model
        template = self.tool_system_prompt_template
        if isinstance(self.protocol, Protocol):
            prompt = self.protocol.format_tools(
                tools, template, wording=self.wording, type_rules=self.type_rules
            )
        else:
            prompt = self.protocol.format_tools(tools, template)
        if prepared.forced and self.tool_choice_by == "prompt":
            prompt += f"\n\n{forced_prompt(prepared.choice, tools, prepared.form)}"
        # A template of the user's own may say something else each time.
        if template is None:
            prepared.prompt = prompt
        return prompt

    def _write_result(self, result: ToolResult) -> str:
        # By the user's function, as the oldest version did, or by the protocol.
        if callable(self.result_format):
            return self.result_format(result)
        like_ai_sdk_2 = self.result_format == "ai-sdk-2" or self.ways.ai_sdk_2
        compat: Literal["ai-sdk-2"] | None = "ai-sdk-2" if like_ai_sdk_2 else None
        if isinstance(self.protocol, Protocol):
            return self.protocol.format_tool_response(result, compat=compat)
        # As AI SDKs hand it to a protocol. Their versions differ in the name of the output.
        subject = {
            "type": "tool-result",
            "toolCallId": result.call_id,
            "toolName": result.name,
            "output": result.output,
            "result": result.output,
        }
        return self.protocol.format_tool_response(subject, compat=compat)


def create_tool_middleware(
    protocol: Any,
    *,
    tool_system_prompt_template: Template | None = None,
    placement: Literal["first", "last"] = "first",
    on_error: OnError | None = None,
    compat: Literal["ai-sdk-2"] | None = None,
    options: ParseOptions | Mapping[str, Any] | None = None,
    tool_choice_by: Literal["response_format", "prompt"] = "response_format",
    result_format: ResultFormat | None = None,
    unknown_tools: UnknownTools = "text",
    neutral_text: bool | None = None,
    stream_arguments: bool = True,
    choice_schema: ChoiceSchema | None = None,
    broken_calls: BrokenCalls = "text",
    feedback: Feedback | str | bool | None = None,
    wording: str = "plain",
    type_rules: RulesLevel = False,
    media: Literal["parts", "placeholder"] = "parts",
) -> ToolCallMiddleware:
    """Return a middleware that gives tool calling to a model by one protocol.

    Args:
        protocol: an id of `protocols()`, a Protocol, a factory, or a protocol object of your own.
        tool_system_prompt_template: a function of the tools' JSON text, or text with placeholders
            such as `{{tools_json}}`.
        placement: "first" puts the prompt before your system message, "last" after it. Without a
            system message: before or after all messages.
        on_error: called as on_error(message, metadata) for each piece of text that could not be
            read. The error that it raises is ignored.
        compat: "ai-sdk-2" behaves as version 2 of the AI SDK's middleware does (see docs/port.md).
        options: ParseOptions or a mapping of them. Coercion has the policy 'middleware' unless they
            say otherwise.
        tool_choice_by: a forced choice asks for its JSON by `response_format`, or in the system
            prompt.
        result_format: "ai-sdk-2", or a function that writes a ToolResult, instead of the
            protocol's own form.
        unknown_tools: whether a call of a tool that was not offered stays "text", or is a "call"
            like others, so that a loop can tell the model that there is no such tool.
        stream_arguments: let the bridge stream the arguments of a call while they are written. A
            call that turns out broken then ends the stream with CallRetracted. False: calls come
            whole.
        neutral_text: escape the format's delimiters in user messages and documents (see
            `formats.surface.neutral`). On unless `compat` is "ai-sdk-2".
        choice_schema: form of the schema of a forced choice: "if_then_else" (by default), "any_of"
            for engines that decode by a schema, or "any_of_many", which allows several calls under
            'required'.
        broken_calls: a failed attempt (unreadable, cut off, of an unknown tool, or no call under a
            forced choice) stays "text", or becomes a "call" whose arguments are the attempt's text,
            which is not JSON. Use "call" for programs that handle invalid calls.
        feedback: a Feedback, or a name of `correction.PRESETS`, to ask again about calls that the
            schema refuses (see `corrections`). None (default): never ask again.
        wording, type_rules: of the prompt, see `Protocol.format_tools`.
        media: images and files of a tool's result go on as "parts" of the message, or leave a
            "placeholder" in its text alone, for models that take nothing but text.

    Raises UnknownProtocol and BadOptions.

    >>> import toolparse_lab as tp
    >>> middleware = tp.create_tool_middleware("hermes")
    >>> middleware.protocol.id
    'hermes'
    """
    chosen = any_protocol(protocol)
    if chosen.id == "auto":
        raise BadOptions(
            "'auto' only reads",
            got="auto",
            hint="name the protocol that the model is to be told of",
        )
    for name, value, allowed in (
        ("placement", placement, ("first", "last")),
        ("tool_choice_by", tool_choice_by, ("response_format", "prompt")),
        ("unknown_tools", unknown_tools, ("text", "call")),
        ("choice_schema", choice_schema, (None, *CHOICE_SCHEMAS)),
        ("broken_calls", broken_calls, ("text", "call")),
        ("type_rules", type_rules, (False, True, "pairs")),
        ("media", media, ("parts", "placeholder")),
    ):
        if value not in allowed:
            expected = " or ".join(str(word) for word in allowed if word is not None)
            raise BadOptions(f"unknown {name}", got=value, expected=expected)
    if result_format not in (None, "ai-sdk-2") and not callable(result_format):
        raise BadOptions(
            "result_format writes a result",
            got=result_format,
            expected="None, 'ai-sdk-2' or a function",
        )
    if on_error is not None and not callable(on_error):
        raise BadOptions(
            "on_error is called as on_error(message, metadata)", got=type(on_error).__name__
        )
    if wording != "plain" or type_rules:
        if tool_system_prompt_template is not None:
            raise BadOptions(
                "a template of your own has its own wording and type rules",
                got=wording if wording != "plain" else type_rules,
                expected="wording and type_rules, or tool_system_prompt_template",
            )
        if not isinstance(chosen, Protocol):
            raise BadOptions("this protocol has no wordings", got=chosen.id)
        chosen.wordings.template(wording)  # raises BadOptions for none of them
    return ToolCallMiddleware(
        protocol=chosen,
        ways=ways_of(compat, options, chosen),
        tool_system_prompt_template=tool_system_prompt_template,
        placement=placement,
        on_error=on_error,
        compat=compat,
        tool_choice_by=tool_choice_by,
        result_format=result_format,
        unknown_tools=unknown_tools,
        neutral_text=compat is None if neutral_text is None else neutral_text,
        stream_arguments=stream_arguments,
        choice_schema=choice_schema,
        broken_calls=broken_calls,
        feedback=Feedback.of(feedback),
        wording=wording,
        type_rules=type_rules,
        media=media,
    )


def _place(
    prompt: str, messages: list[Message], placement: Literal["first", "last"]
) -> list[Message]:
    # '' changes nothing. The prompt goes into the system message at the beginning, or becomes one
    # of its own.
    if not prompt:
        return messages
    if messages and messages[0]["role"] in ("system", "developer"):
        head = messages[0]
        content = merge_prompt(prompt, head.get("content"), placement)
        return [{**head, "content": content}, *messages[1:]]
    ours = {"role": "system", "content": prompt}
    return [ours, *messages] if placement == "first" else [*messages, ours]
