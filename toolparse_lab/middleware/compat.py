"""The preset of options behind `compat="seed"`.

The engine and the protocols never see it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from ..core.errors import BadOptions
from ..core.types import DEFAULT_OPTIONS, ParseOptions
from ..formats.base import Protocol
from ..formats.json.call import JsonCall
from ..formats.xml.morph_xml import ElementCall

_OURS: Mapping[str, Any] = {"coerce": "middleware"}


@dataclass(frozen=True)
class Ways:
    """The ways in which a middleware reads and writes. batch, stream, choice: options for whole
    answers, streams and forced ones.

    seed_choice: a forced answer is strict JSON, or a call of `unknown`. seed_results: results are
    `{toolName, result}`. supports_none: `tool_choice="none"` is no error.
    """

    batch: ParseOptions
    stream: ParseOptions
    choice: ParseOptions
    seed_choice: bool = False
    seed_results: bool = False
    supports_none: bool = True

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
    """Return the ways of a preset.

    A value in `options` goes before it. Raises BadOptions.

    compat: None or "seed".
    options: ParseOptions or a mapping of some of them.
    protocol: the one the middleware is for. The old ways depend on it.
    """
    if compat not in (None, "seed"):
        raise BadOptions("compat is a set of old ways", got=compat, expected="None or 'seed'")

    chosen = _chosen_options(options)
    if compat is None:
        usual = ParseOptions.of({**_OURS, **chosen})
        return Ways(usual, usual, usual)

    return _seed_ways(chosen, protocol)


def _seed_ways(chosen: Mapping[str, Any], protocol: Any) -> Ways:
    """Return the ways of the oldest version, which differed by protocol and between batch and
    stream.

    chosen: options of the caller, which go before those of the preset.
    protocol: ours or another's. The latter gets the options common to all.
    """
    codec = protocol.codec if isinstance(protocol, Protocol) else None
    batch: dict[str, Any] = {**_OURS, "recover": False}
    if isinstance(codec, ElementCall):
        batch["repair"] = False

    # Coercion came in for JSON formats with the whole answer alone; docs/port.md has the sources.
    uncoerced = {**batch, "coerce": "none"}
    stream = uncoerced if isinstance(codec, JsonCall) else batch
    return Ways(
        batch=ParseOptions.of({**batch, **chosen}),
        stream=ParseOptions.of({**stream, **chosen}),
        choice=ParseOptions.of({**uncoerced, **chosen}),
        seed_choice=True,
        seed_results=True,
        supports_none=False,
    )


def _chosen_options(options: ParseOptions | Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the options that were chosen: of a whole set, those that differ from their defaults.

    options: ParseOptions, a mapping, or None.

    Raises BadOptions for another type.
    """
    if isinstance(options, ParseOptions):
        values = {f.name: getattr(options, f.name) for f in fields(options)}
        # A policy is always a choice: the middleware's own default is another one.
        return {
            name: value
            for name, value in values.items()
            if name == "coerce" or value != getattr(DEFAULT_OPTIONS, name)
        }
    if options is not None and not isinstance(options, Mapping):
        raise BadOptions(
            "options are ParseOptions or a mapping",
            got=type(options).__name__,
            expected='such as {"coerce": "safe"}',
        )
    return dict(options or {})
