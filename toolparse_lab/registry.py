"""Protocols by id: the shipped ones, those of installed packages (entry points), and those a caller passes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from .errors import UnknownProtocol
from .protocols.base import Protocol
from .protocols.harmony import HARMONY
from .protocols.json_mix import GEMMA, HERMES
from .protocols.kimi_k2 import KIMI_K2
from .protocols.morph_xml import MORPH_XML
from .protocols.parameter_tags import QWEN3_CODER_XML
from .protocols.pythonic import PYTHONIC
from .protocols.yaml_xml import YAML_XML

GROUP = "toolparse_lab.protocols"
_SHIPPED = (HERMES, GEMMA, QWEN3_CODER_XML, MORPH_XML, KIMI_K2, HARMONY, PYTHONIC, YAML_XML)


@lru_cache(maxsize=1)
def protocols() -> Mapping[str, Protocol]:
    """Every known protocol by id, read-only. An entry point that fails to load is left out."""
    from importlib.metadata import entry_points  # loads email and zipfile: a seventh of the time to import us

    found = {p.id: p for p in _SHIPPED}
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
