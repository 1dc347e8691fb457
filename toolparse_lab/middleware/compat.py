"""What `compat="seed"` means: a preset of options. The engine and the protocols never see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from ..errors import BadOptions
from ..protocols.base import Protocol
from ..protocols.json_call import JsonCall
from ..protocols.morph_xml import ElementCall
from ..types import DEFAULT_OPTIONS, ParseOptions

_OURS: Mapping[str, Any] = {"coerce": "middleware"}


@dataclass(frozen=True)
class Ways:
    """How a middleware reads and writes. batch, stream, choice: options for whole answers, streams and forced ones.

    seed_choice: a forced answer is strict JSON, or a call of `unknown`. seed_results: results are `{toolName, result}`.
    supports_none: `tool_choice="none"` is no error.
    """

    batch: ParseOptions
    stream: ParseOptions
    choice: ParseOptions
    seed_choice: bool = False
    seed_results: bool = False
    supports_none: bool = True


def ways_of(compat: Any, options: ParseOptions | Mapping[str, Any] | None, protocol: Any) -> Ways:
    """The ways of a preset; what `options` says goes before it. Raises BadOptions."""
    if compat not in (None, "seed"):
        raise BadOptions("compat is a set of old ways", got=compat, expected="None or 'seed'")
    given = _given(options)
    if compat is None:
        read = ParseOptions.of({**_OURS, **given})
        return Ways(read, read, read)
    codec = protocol.codec if isinstance(protocol, Protocol) else None
    old = {**_OURS, "recover": False, **({"repair": False} if isinstance(codec, ElementCall) else {})}
    plain = {**old, "coerce": "none"}
    return Ways(
        batch=ParseOptions.of({**old, **given}),
        stream=ParseOptions.of({**(plain if isinstance(codec, JsonCall) else old), **given}),
        choice=ParseOptions.of({**plain, **given}),
        seed_choice=True,
        seed_results=True,
        supports_none=False,
    )


def _given(options: ParseOptions | Mapping[str, Any] | None) -> dict[str, Any]:
    """What options say beyond their defaults, where they are a whole set."""
    if isinstance(options, ParseOptions):
        values = {f.name: getattr(options, f.name) for f in fields(options)}
        return {k: v for k, v in values.items() if k == "coerce" or v != getattr(DEFAULT_OPTIONS, k)}
    if options is not None and not isinstance(options, Mapping):
        raise BadOptions("options are ParseOptions or a mapping", got=type(options).__name__)
    return dict(options or {})
