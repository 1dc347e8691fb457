"""Making a middleware: its options, and their possible values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from ..core.errors import BadOptions
from ..core.types import ParseOptions
from ..parser.any_protocol import AnyProtocol, any_protocol
from ..parser.content_parts import OnError
from .attempts import BrokenCalls, UnknownTools
from .choice_schema import CHOICE_SCHEMAS, ChoiceSchema
from .core import ResultFormat, Template, ToolCallMiddleware
from .correction.feedback import Feedback
from .options import ways_of


def create_tool_middleware(
    protocol: Any,
    *,
    tool_system_prompt_template: Template | None = None,
    placement: Literal["first", "last"] = "first",
    on_error: OnError | None = None,
    compat: Literal["seed"] | None = None,
    options: ParseOptions | Mapping[str, Any] | None = None,
    tool_choice_by: Literal["response_format", "prompt"] = "response_format",
    result_format: ResultFormat | None = None,
    unknown_tools: UnknownTools = "text",
    neutral_text: bool | None = None,
    choice_schema: ChoiceSchema | None = None,
    broken_calls: BrokenCalls = "text",
    feedback: Feedback | str | bool | None = None,
) -> ToolCallMiddleware:
    """Return a middleware that gives tool calling to a model by one protocol.

    Args:
        protocol: an id of `protocols()`, a Protocol, a factory, or a protocol object of your own. A
            tool_system_prompt_template is a function of the tools' JSON text, or text with
            placeholders as `{{tools_json}}`.
        placement: of the prompt before or behind the system message that is there, or the whole
            conversation.
        on_error: called as on_error(message, metadata) for each piece of text that could not be
            read. The error that it raises is ignored.
        compat: "seed" brings back the ways of the oldest version (see docs/middleware.md).
        options: ParseOptions or a mapping of them. Coercion has the policy 'middleware' unless they
            say otherwise.
        tool_choice_by: a forced choice asks for its JSON by `response_format`, or in the system
            prompt.
        result_format: "seed", or a function that writes a ToolResult, instead of the protocol's own
            form.
        unknown_tools: whether a call of a tool that was not offered stays "text", or is a "call"
            like others, so that a loop can tell the model that there is no such tool.
        neutral_text: delimiters of the format in the words of users, and in documents, are
            neutralised in the prompt (see `protocols.neutral`). On unless `compat` is "seed".
        choice_schema: how the schema of a forced choice says which arguments belong to which tool:
            "if_then_else" (the old form, taken where nothing is said), "any_of", which engines that
            decode by a schema follow, or "any_of_many", with which 'required' may be answered by
            several calls.
        broken_calls: whether an attempt that failed (unreadable, cut off, of a tool that was not
            offered, or no call where one was forced) stays "text", or is a "call" whose arguments
            are the attempt's text, which is not JSON, for programs that react to calls they cannot
            read.
        feedback: a Feedback or the name of one of `correction.PRESETS`, by which calls that the
            schema refuses are asked about again (see `corrections`). None, the default, asks no
            one.

    Raises UnknownProtocol and BadOptions.

    >>> import toolparse_lab as tp
    >>> middleware = tp.create_tool_middleware("hermes")
    >>> middleware.protocol.id
    'hermes'
    """
    chosen = _protocol_to_write(protocol)
    _check_options(
        result_format,
        on_error,
        placement=placement,
        tool_choice_by=tool_choice_by,
        unknown_tools=unknown_tools,
        choice_schema=choice_schema,
        broken_calls=broken_calls,
    )
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
        choice_schema=choice_schema,
        broken_calls=broken_calls,
        feedback=Feedback.of(feedback),
    )


def _protocol_to_write(protocol: Any) -> AnyProtocol:
    """Return the protocol that a model is to be told of.

    protocol: an id, a Protocol, a factory, or an object of another's.

    Raises UnknownProtocol, and BadOptions for 'auto', which can read any format and write none.
    """
    chosen = any_protocol(protocol)
    if chosen.id == "auto":
        raise BadOptions(
            "'auto' only reads",
            got="auto",
            hint="name the protocol that the model is to be told of",
        )

    return chosen


_ALLOWED: Mapping[str, tuple[str | None, ...]] = {
    "placement": ("first", "last"),
    "tool_choice_by": ("response_format", "prompt"),
    "unknown_tools": ("text", "call"),
    "broken_calls": ("text", "call"),
    "choice_schema": (None, *CHOICE_SCHEMAS),
}
"""the values of the options that are words"""


def _check_options(result_format: Any, on_error: Any, **words: Any) -> None:
    """Raise BadOptions for a value that an option of `create_tool_middleware` cannot have.

    Each argument is the option of the same name, unchecked.
    """
    for name, value in words.items():
        allowed = _ALLOWED[name]
        if value not in allowed:
            expected = " or ".join(word for word in allowed if word is not None)
            raise BadOptions(f"unknown {name}", got=value, expected=expected)

    if result_format not in (None, "seed") and not callable(result_format):
        raise BadOptions(
            "result_format writes a result",
            got=result_format,
            expected="None, 'seed' or a function",
        )
    if on_error is not None and not callable(on_error):
        raise BadOptions(
            "on_error is called as on_error(message, metadata)", got=type(on_error).__name__
        )
