"""Protocols by id: the shipped ones, those of installed packages (entry points), and those a caller passes."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from .errors import UnknownProtocol
from .protocols.base import Protocol

GROUP = "toolparse_lab.protocols"
# id -> its module in `protocols` and its name there: a format is imported when it is first asked for.
_SHIPPED = {
    "hermes": ("json_mix", "HERMES"),
    "gemma": ("json_mix", "GEMMA"),
    "qwen3_coder_xml": ("parameter_tags", "QWEN3_CODER_XML"),
    "morph_xml": ("morph_xml", "MORPH_XML"),
    "kimi_k2": ("kimi_k2", "KIMI_K2"),
    "harmony_channel": ("harmony", "HARMONY"),
    "pythonic": ("pythonic", "PYTHONIC"),
    "yaml_xml": ("yaml_xml", "YAML_XML"),
    "openai_json": ("openai_json", "OPENAI_JSON"),
}


def _shipped(protocol_id: str) -> Protocol:
    module, name = _SHIPPED[protocol_id]
    found: Protocol = getattr(importlib.import_module(f"toolparse_lab.protocols.{module}"), name)
    return found


@lru_cache(maxsize=1)
def protocols() -> Mapping[str, Protocol]:
    """Every known protocol by id, read-only. An entry point that fails to load is left out."""
    from importlib.metadata import entry_points  # loads email and zipfile: a seventh of the time to import us

    found = {protocol_id: _shipped(protocol_id) for protocol_id in _SHIPPED}
    for point in entry_points(group=GROUP):
        try:
            protocol = point.load()
        except Exception:  # noqa: S112 - somebody else's broken package must not break ours
            continue
        if isinstance(protocol, Protocol):
            found.setdefault(protocol.id, protocol)
    return MappingProxyType(found)


def protocol_of(x: Any) -> Protocol:
    """The protocol of an id or alias, or `x` itself; raises UnknownProtocol with the ids that come near."""
    if isinstance(x, Protocol):
        return x
    if isinstance(x, str) and x in _SHIPPED:
        return _shipped(x)
    known = protocols()
    if isinstance(x, str):
        if x in known:
            return known[x]
        for protocol in known.values():
            if x in protocol.aliases:
                return protocol
    import difflib

    near = difflib.get_close_matches(str(x), known, 3, 0.4)
    raise UnknownProtocol(
        "no protocol of this name",
        got=x,
        expected=", ".join([*known, "auto"]),
        hint=f"did you mean {' or '.join(near)}?" if near else "see tp.protocols()",
    )
