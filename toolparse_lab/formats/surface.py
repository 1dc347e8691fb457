"""The texts that a protocol writes for a model: tools, calls and results of a conversation.

Arguments come in the shapes of chat front ends. Each function accepts several. They are the methods
of the same names of `Protocol`, which imports this module when one is called. And the text of a
user in which delimiters of a format are neutralised for the prompt, and back: a model that reads
them takes them for calls. The first character of one becomes its JSON escape, as in results, so
that a model still reads the meaning.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

from ..core.errors import BadOptions
from ..core.toolspec import ToolSpec, tool_specs
from ..core.types import ToolCall
from ..core.values import Value, read_strict, write_canonical
from .base import Protocol, Tools
from .prompt.messages import fill_template, render_system
from .prompt.signatures import write_tools_json
from .prompt.type_rules import RulesLevel
from .results import ToolResult, write_escape

# How it works
# ------------
# `<tool_call>` becomes `\u003ctool_call>`. So that the way back is exact, backslashes right before
# a delimiter, or before what looks like a neutral one, are doubled: 2n + 1 of them before the code
# of an escape stand for n and the character, 2n for n and the code as it was.
#
# Cost: one regular expression over the text.


_LETTER = re.compile(r"[^\W\d_]")


def delimiters_of(protocol: Protocol, tools: Tools) -> tuple[str, ...]:
    """Return the delimiters of a format that a text can be rid of: those with a letter in them.

    What consists of brackets, quotes or backticks alone is in any text, and opens no call by
    itself.
    """
    envelope = protocol.envelope
    literals = (literal.strip() for literal in (*envelope.heads(tools), *envelope.closers))
    return tuple(dict.fromkeys(literal for literal in literals if _LETTER.search(literal)))


def neutral(text: str, delimiters: Iterable[str]) -> str:
    """Return the text with none of the delimiters in it.

    `with_delimiters` gives it back.

    >>> neutral("a <tool_call> b", ["<tool_call>"])
    'a \\\\u003ctool_call> b'
    """
    pattern = _pattern(tuple(delimiters))
    return text if pattern is None else pattern.sub(_neutralised, text)


def with_delimiters(text: str, delimiters: Iterable[str]) -> str:
    """Return the text that `neutral` was given, under the same delimiters.

    >>> with_delimiters("a \\\\u003ctool_call> b", ["<tool_call>"])
    'a <tool_call> b'
    """
    pattern = _pattern(tuple(delimiters))
    return text if pattern is None else pattern.sub(_restored, text)


@lru_cache(maxsize=256)
def _pattern(delimiters: tuple[str, ...]) -> re.Pattern[str] | None:
    # a delimiter or its neutral form, with the backslashes before it
    if not delimiters:
        return None
    bare = "|".join(rf"{re.escape(d[0])}(?={re.escape(d[1:])})" for d in delimiters)
    coded = "|".join(
        rf"{re.escape(write_escape(d[0])[1:])}(?={re.escape(d[1:])})" for d in delimiters
    )
    # Possessive, and never begun inside a run, so that a long run is looked at once.
    return re.compile(rf"(?<!\\)(?P<slashes>\\*+)(?:(?P<bare>{bare})|(?P<coded>{coded}))")


def _neutralised(match: re.Match[str]) -> str:
    # An escape that was there already is kept apart by doubled backslashes.
    bare = match["bare"]
    return match["slashes"] * 2 + (match["coded"] if bare is None else write_escape(bare))


def _restored(match: re.Match[str]) -> str:
    slashes, coded = match["slashes"], match["coded"]
    if coded is None:
        return match[0]
    half = slashes[: len(slashes) // 2]
    if len(slashes) % 2 == 0:
        return half + str(coded)
    return half + chr(int(coded[1:5], 16))


Template: TypeAlias = str | Callable[[str], str]
"""A system prompt: a function of the tools' JSON text, or text with placeholders."""

# Keys of the name and of the arguments in the shapes of a call, the first one present counts.
_NAME_KEYS = ("toolName", "tool_name", "name")
_INPUT_KEYS = ("input", "arguments", "args")
_EXPECTED_CALL = "{toolName, input}, {name, arguments}, an OpenAI tool call or a ToolCall"


# A conversation explains the same tools at every turn.
_built_in = lru_cache(maxsize=256)(render_system)


def format_tools(
    protocol: Protocol, tools: Any, template: Template | None, wording: str, type_rules: RulesLevel
) -> str:
    """Return the system prompt that explains the tools. See `Protocol.format_tools`."""
    specs = tool_specs(tools)
    if template is None:
        return _built_in(protocol, specs, wording=wording, type_rules=type_rules)
    if isinstance(template, str):
        return fill_template(protocol, template, specs)
    if not callable(template):
        raise BadOptions(
            "tool_system_prompt_template makes the prompt",
            got=type(template).__name__,
            expected="a function or text",
        )

    text: object = template(write_tools_json(specs, examples=True))
    if not isinstance(text, str):
        raise BadOptions(
            "tool_system_prompt_template returned no text", got=type(text).__name__, expected="str"
        )
    return text


def format_tool_call(protocol: Protocol, call: Any, tool: ToolSpec | None) -> str:
    """Return a call as the model would have written it. See `Protocol.format_tool_call`."""
    name, arguments = _name_and_input(call)
    value = _read_json(arguments) if isinstance(arguments, str) else arguments
    if isinstance(value, Mapping):
        return protocol.write_call(name, write_canonical(dict(value)), tool)
    # A value that was never an object cannot read back as one: it is shown as it is, for the model
    # to see its mistake.
    return protocol.codec.write(name, write_canonical(value), tool)


def _read_json(text: str) -> Value:
    try:
        return read_strict(text)
    except (ValueError, RecursionError):
        return text


def _name_and_input(call: Any) -> tuple[str, Any]:
    # {} where it has no arguments
    if isinstance(call, ToolCall):
        return call.name, call.arguments_json or "{}"
    if not isinstance(call, Mapping):
        raise BadOptions("this is no tool call", got=type(call).__name__, expected=_EXPECTED_CALL)

    # OpenAI's shape has name and arguments one level down.
    function = call.get("function")
    body: Mapping[Any, Any] = function if isinstance(function, Mapping) else call
    name = next((body[key] for key in _NAME_KEYS if key in body), None)
    if not isinstance(name, str) or not name:
        raise BadOptions(
            "a tool call names its tool", got=sorted(map(str, body)), expected=_EXPECTED_CALL
        )

    arguments = next((body[key] for key in _INPUT_KEYS if key in body), None)
    has_none = arguments is None or arguments == ""  # but 0 and [] are shown to the model
    return name, {} if has_none else arguments


def format_tool_response(protocol: Protocol, result: Any, compat: str | None) -> str:
    """Return a tool's result as the model knows it. See `Protocol.format_tool_response`."""
    if compat not in (None, "ai-sdk-2"):
        raise BadOptions("compat is a set of old shapes", got=compat, expected="None or 'ai-sdk-2'")
    # Inside a result, the format's own delimiters would be read as a call of the model.
    literals = (*protocol.envelope.heads({}), *protocol.envelope.closers)
    return protocol.results.write(ToolResult.of(result), literals, compat == "ai-sdk-2")
