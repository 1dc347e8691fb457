"""The options of a call: keywords of the request, and words in the model string.

`toolparse/hermes;choice=prompt;unknown=call/openai/x` says the same as `tool_choice_by="prompt",
unknown_tools="call"`. None of them reaches the provider.
"""

# How it works. A spec is the protocol's id with options after it, as it is in a model string
# between two slashes. Its words and the keywords become the arguments of `create_tool_middleware`;
# a keyword goes before a word of the spec, since it is said nearer to the call. What is made of
# plain words is remembered: a program asks with the same few again and again.

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import fields
from typing import Any, Literal

from ...core.errors import BadOptions, near
from ...core.types import ParseOptions, Policy
from ...formats.prompt.type_rules import RulesLevel
from ...middleware import ToolCallMiddleware, create_tool_middleware
from ...middleware.attempts import BrokenCalls, UnknownTools
from ...middleware.content_parts import OnError
from ...middleware.core import ResultFormat, Template
from ...middleware.correction import Feedback
from ...middleware.flow.factors import LitellmArguments


class BridgeArguments(LitellmArguments, total=False):
    """The arguments of litellm, and the options of the bridge.

    The runtime hands every other keyword to litellm as it is; a type checker refuses it, as it
    would a misspelt one: send what only your endpoint knows in `extra_body`.
    """

    tool_choice_by: Literal["response_format", "prompt"] | None
    unknown_tools: UnknownTools | None
    broken_calls: BrokenCalls | None
    placement: Literal["first", "last"] | None
    wording: str | None
    type_rules: RulesLevel | None
    media: Literal["parts", "placeholder"] | None
    policy: Policy | None
    options: ParseOptions | Mapping[str, Any] | None
    neutral_text: bool | None
    stream_arguments: bool | None
    result_format: ResultFormat | None
    on_error: OnError | None
    tool_system_prompt_template: Template | Callable[[str], str] | None
    feedback: Feedback | str | bool | None


KEYWORDS = tuple(
    name for name in BridgeArguments.__annotations__ if name not in LitellmArguments.__annotations__
)
"""what a request may say, apart from litellm's own arguments"""
_ON, _OFF = ("true", "yes", "on", "1"), ("false", "no", "off", "0")
# Short names in a spec.
_SHORT: Mapping[str, str] = {
    "choice": "tool_choice_by",
    "unknown": "unknown_tools",
    "broken": "broken_calls",
    "neutral": "neutral_text",
    "coerce": "policy",
}
_WORDS = (
    *("tool_choice_by", "unknown_tools", "broken_calls", "placement", "wording", "policy"),
    *("feedback", "media", "type_rules"),
)
_PARSING = tuple(f.name for f in fields(ParseOptions) if f.name not in ("coerce", "version"))
_SWITCHES = ("neutral_text", "stream_arguments", "repair", "recover", "validate")
_NAMES = (*_WORDS, "neutral_text", "stream_arguments", *_PARSING, *_SHORT)


def take_options(arguments: MutableMapping[str, Any]) -> dict[str, Any]:
    """Take the options out of the arguments of a call, and return those that say something."""
    options = {name: arguments.pop(name) for name in KEYWORDS if name in arguments}
    return {name: value for name, value in options.items() if value is not None}


def middleware_for(spec: Any, keywords: Mapping[str, Any]) -> ToolCallMiddleware:
    """Return the middleware of a spec or a protocol object, with options by keyword. Raises
    UnknownProtocol, and BadOptions for an unknown option or a value that it cannot have.
    """
    if isinstance(spec, str) and all(isinstance(value, str) for value in keywords.values()):
        return _remembered(spec, tuple(sorted(keywords.items())))
    return _made(spec, keywords)


@functools.lru_cache(maxsize=64)
def _remembered(spec: str, keywords: tuple[tuple[str, str], ...]) -> ToolCallMiddleware:
    return _made(spec, dict(keywords))


def _made(spec: Any, keywords: Mapping[str, Any]) -> ToolCallMiddleware:
    protocol, words = _read_spec(spec) if isinstance(spec, str) else (spec, {})
    options = _parse_options(words, keywords)
    apart = ("policy", "options", *_PARSING)
    values = {k: v for k, v in {**words, **keywords}.items() if k not in apart}
    return create_tool_middleware(protocol, **values, options=options or None)


def _parse_options(words: Mapping[str, Any], keywords: Mapping[str, Any]) -> dict[str, Any]:
    mapping: Any = keywords.get("options") or {}
    if isinstance(mapping, ParseOptions):
        mapping = mapping.to_dict()
    if not isinstance(mapping, Mapping):
        raise BadOptions(
            "options are ParseOptions or a mapping",
            got=type(mapping).__name__,
            expected='such as {"coerce": "safe"}',
        )
    options = {name: words[name] for name in _PARSING if name in words}
    policy = keywords.get("policy", mapping.get("coerce", words.get("policy")))
    return {**options, **mapping, **({} if policy is None else {"coerce": policy})}


def _read_spec(spec: str) -> tuple[str, dict[str, Any]]:
    """Return the protocol of a spec, and its options by their long names. Raises BadOptions.

    >>> _read_spec("hermes;choice=prompt;repair=off")
    ('hermes', {'tool_choice_by': 'prompt', 'repair': False})
    """
    protocol, *parts = spec.split(";")
    words: dict[str, Any] = {}
    for part in parts:
        name, equals, value = (text.strip() for text in part.partition("="))
        if not equals or name not in _NAMES:
            raise BadOptions(
                "unknown option in a model string",
                got=part,
                expected=f"name=value, with one of the names {', '.join(sorted(_NAMES))}",
                hint=near(name, _NAMES),
            )
        long = _SHORT.get(name, name)
        if long in words:
            raise BadOptions("an option is said twice in a model string", got=spec)
        words[long] = _value_of(long, value)
    return protocol, words


def _value_of(name: str, text: str) -> Any:
    if name in _SWITCHES or (name == "type_rules" and text != "pairs"):
        if text.lower() not in (*_ON, *_OFF):
            raise BadOptions(f"option {name!r} is a switch", got=text, expected="on or off")
        return text.lower() in _ON
    if name == "max_depth":
        if not (text.isascii() and text.isdigit()):
            raise BadOptions("max_depth is a number", got=text, expected="1 to 100000")
        return int(text[:9])
    return text
