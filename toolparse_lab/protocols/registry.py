"""Protocols by id: the shipped ones, and those of installed packages (entry points)."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Any

from ..errors import UnknownProtocol, near
from .base import Protocol

GROUP = "toolparse_lab.protocols"
"""The group of entry points under which a package offers protocols."""

# Id -> module below `protocols`, and name in it. A format is imported when it is first needed, so
# that reading one costs the start-up time of one.
_SHIPPED = {
    "hermes": ("json.mix", "HERMES"),
    "gemma": ("json.mix", "GEMMA"),
    "qwen3_coder_xml": ("parameters.tags", "QWEN3_CODER_XML"),
    "morph_xml": ("xml.morph_xml", "MORPH_XML"),
    "kimi_k2": ("json.kimi_k2", "KIMI_K2"),
    "harmony_channel": ("json.harmony", "HARMONY"),
    "pythonic": ("python.pythonic", "PYTHONIC"),
    "yaml_xml": ("yaml.yaml_xml", "YAML_XML"),
    "openai_json": ("json.openai_json", "OPENAI_JSON"),
}


def is_shipped(protocol_id: str) -> bool:
    """Return whether a protocol of that id ships with the package or with an installed one."""
    return protocol_id in _SHIPPED or protocol_id in protocols()


@cache
def _shipped(protocol_id: str) -> Protocol:
    """Return a shipped protocol, whose module is imported when it is first asked for."""
    module, name = _SHIPPED[protocol_id]
    protocol: Protocol = getattr(importlib.import_module(f"toolparse_lab.protocols.{module}"), name)
    return protocol


@lru_cache(maxsize=1)
def protocols() -> Mapping[str, Protocol]:
    """Return every known protocol by id, read-only.

    An installed protocol with the id of a shipped one, and an entry point that fails to load, are
    left out.
    """
    # Loads email and zipfile: a seventh of the time to import us.
    from importlib.metadata import entry_points

    by_id = {protocol_id: _shipped(protocol_id) for protocol_id in _SHIPPED}
    for point in entry_points(group=GROUP):
        try:
            protocol = point.load()
        except Exception:  # noqa: S112 - somebody else's broken package must not break ours
            continue
        if isinstance(protocol, Protocol):
            by_id.setdefault(protocol.id, protocol)
    return MappingProxyType(by_id)


def protocol_of(x: Any) -> Protocol:
    """Return the protocol of an id or alias, or `x` itself where it is one.

    Raises UnknownProtocol with the ids that are close.
    """
    if isinstance(x, Protocol):
        return x
    # Without a look at entry points, which cost more than most parses.
    if isinstance(x, str) and x in _SHIPPED:
        return _shipped(x)

    by_id = protocols()
    protocol = _by_name(x, by_id) if isinstance(x, str) else None
    if protocol is not None:
        return protocol
    raise UnknownProtocol(
        "no protocol of this name",
        got=x,
        expected=", ".join([*by_id, "auto"]),
        hint=near(x, by_id, cutoff=0.4) or "see tp.protocols()",
    )


def _by_name(name: str, by_id: Mapping[str, Protocol]) -> Protocol | None:
    """Return the protocol of an id, else the first one with such an alias."""
    if name in by_id:
        return by_id[name]
    for protocol in by_id.values():
        if name in protocol.aliases:
            return protocol
    return None
