"""The options by which a middleware reads and writes, of its own and of one request.

The preset `compat="ai-sdk-2"` is here; the parser and the formats never see it. A request says
options for itself alone, before those of the middleware, in its member `toolparse`, or where an AI
SDK has them, in `providerOptions.toolCallMiddleware`. None of them is sent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from ..core.errors import BadOptions
from ..core.types import DEFAULT_OPTIONS, ParseOptions
from ..formats.base import Protocol
from ..formats.json.call import JsonCall
from ..formats.xml.morph_xml import ElementCall
from .content_parts import OnError

_DEFAULTS: Mapping[str, Any] = {"coerce": "middleware"}


@dataclass(frozen=True)
class Ways:
    """How a middleware reads and writes.

    batch, stream, choice: options for whole answers, streams and forced ones.
    ai_sdk_2: a forced answer is strict JSON, or a call of `unknown`; results are
    `{toolName, result}`; `tool_choice="none"` is an error.
    """

    batch: ParseOptions
    stream: ParseOptions
    choice: ParseOptions
    ai_sdk_2: bool = False

    def with_options(self, options: Mapping[str, Any]) -> Ways:
        """Return the same ways with other options of the parser.

        Raises BadOptions for one that is unknown or cannot have its value.
        """
        batch, stream, choice = (
            ParseOptions.of({**own.to_dict(), **options})
            for own in (self.batch, self.stream, self.choice)
        )
        return replace(self, batch=batch, stream=stream, choice=choice)


def ways_of(compat: Any, options: ParseOptions | Mapping[str, Any] | None, protocol: Any) -> Ways:
    """Return the ways of a preset, None or "ai-sdk-2". A value in `options` goes before it.

    protocol: the one the middleware is for. The old ways depend on it. Raises BadOptions.
    """
    if compat not in (None, "ai-sdk-2"):
        raise BadOptions("compat is a set of old ways", got=compat, expected="None or 'ai-sdk-2'")
    chosen: dict[str, Any]
    if isinstance(options, ParseOptions):
        # Those that differ from their defaults. A policy is always a choice: the middleware's own
        # default is another one.
        chosen = {
            name: value
            for name, value in options.to_dict().items()
            if name == "coerce" or value != getattr(DEFAULT_OPTIONS, name)
        }
    elif options is not None and not isinstance(options, Mapping):
        raise BadOptions(
            "options are ParseOptions or a mapping",
            got=type(options).__name__,
            expected='such as {"coerce": "safe"}',
        )
    else:
        chosen = dict(options or {})
    if compat is None:
        usual = ParseOptions.of({**_DEFAULTS, **chosen})
        return Ways(usual, usual, usual)
    # The oldest version differed by protocol and between batch and stream.
    codec = protocol.codec if isinstance(protocol, Protocol) else None
    batch: dict[str, Any] = {**_DEFAULTS, "recover": False}
    if isinstance(codec, ElementCall):
        batch["repair"] = False
    # Coercion came in for JSON formats with the whole answer alone; docs/port.md has the sources.
    uncoerced = {**batch, "coerce": "none"}
    stream = uncoerced if isinstance(codec, JsonCall) else batch
    return Ways(
        batch=ParseOptions.of({**batch, **chosen}),
        stream=ParseOptions.of({**stream, **chosen}),
        choice=ParseOptions.of({**uncoerced, **chosen}),
        ai_sdk_2=True,
    )


# options of a request

_PROVIDERS = ("providerOptions", "provider_options")
_OURS = ("toolCallMiddleware", "tool_call_middleware")
_UPPER = re.compile(r"(?<!^)(?=[A-Z])")
_PARSING = tuple(f.name for f in fields(ParseOptions) if f.name != "version")
_NAMES = ("on_error", "options", "original_tool_schemas", *_PARSING)
# What the TypeScript package carries from one of its steps to the next. A Turn does that here.
_STATE = ("original_tools", "tool_names", "tool_choice", "debug_summary", "dropped_provider_tools")


@dataclass(frozen=True)
class RequestOptions:
    """The options of one request. options: of the parser, those that it names."""

    on_error: OnError | None = None
    options: Mapping[str, Any] | None = None
    original_tool_schemas: Mapping[str, Any] | None = None


def take_request_options(
    params: Mapping[str, Any],
) -> tuple[Mapping[str, Any], RequestOptions | None]:
    """Return the arguments of a request without our options, and these, None if it has none.

    Raises BadOptions for options that nobody knows or that cannot have this value.
    """
    if "toolparse" not in params and not any(key in params for key in _PROVIDERS):
        return params, None

    rest = dict(params)
    members = [rest.pop("toolparse", None)]
    for key in _PROVIDERS:
        if isinstance(rest.get(key), Mapping):
            others = dict(rest[key])
            members += [others.pop(name, None) for name in _OURS]
            # Options of the provider itself stay.
            rest[key] = others
            if not others:
                del rest[key]

    values: dict[str, Any] = {}
    for member in members:
        if member is None:  # says nothing
            continue
        if not isinstance(member, Mapping):
            raise BadOptions(
                "options of a request are a mapping",
                got=type(member).__name__,
                expected='such as {"on_error": …, "coerce": "safe"}',
            )
        named = {_UPPER.sub("_", str(key)).lower(): value for key, value in member.items()}
        for name in named:
            if name not in _NAMES and name not in _STATE:
                raise BadOptions.unknown("unknown option of a request", name, _NAMES)
        values |= {k: v for k, v in named.items() if v is not None and k not in _STATE}
    if not values:
        return rest, None
    on_error = values.get("on_error")
    if on_error is not None and not callable(on_error):
        raise BadOptions(
            "on_error is called as on_error(message, metadata)", got=type(on_error).__name__
        )
    options = values.get("options") or {}
    if isinstance(options, ParseOptions):
        options = options.to_dict()
    ParseOptions.of(options)  # its errors, before anything is sent
    parsing = {**options, **{name: values[name] for name in _PARSING if name in values}}
    return rest, RequestOptions(on_error, parsing, values.get("original_tool_schemas"))
