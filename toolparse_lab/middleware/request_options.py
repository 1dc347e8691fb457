"""Options that a request says for itself alone, before those of the middleware.

They are in the member `toolparse` of the request, or where an AI SDK has them, in
`providerOptions.toolCallMiddleware`. None of them is sent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from ..core.errors import BadOptions, near
from ..core.types import ParseOptions
from ..parser.content_parts import OnError

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
        values.update(_read(member))
    return rest, _options_of(values) if values else None


def _read(member: Any) -> dict[str, Any]:
    """Return the options of one place by their names in Python. None says nothing."""
    if member is None:
        return {}
    if not isinstance(member, Mapping):
        raise BadOptions(
            "options of a request are a mapping",
            got=type(member).__name__,
            expected='such as {"on_error": …, "coerce": "safe"}',
        )
    values = {_UPPER.sub("_", str(key)).lower(): value for key, value in member.items()}
    for name in values:
        if name not in _NAMES and name not in _STATE:
            raise BadOptions(
                "unknown option of a request",
                got=name,
                expected=", ".join(_NAMES),
                hint=near(name, _NAMES),
            )
    return {k: v for k, v in values.items() if v is not None and k not in _STATE}


def _options_of(values: Mapping[str, Any]) -> RequestOptions:
    """Return options from their values. Raises BadOptions for a value that one cannot have."""
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
    return RequestOptions(on_error, parsing, values.get("original_tool_schemas"))
