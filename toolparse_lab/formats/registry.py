"""Protocols by id: the shipped ones, and those of installed packages (entry points)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from importlib import import_module
from types import MappingProxyType
from typing import Any

from ..core.errors import UnknownProtocol, near
from .base import Protocol
from .parser_names import PARSER_NAMES, parser_key

GROUP = "toolparse_lab.protocols"
"""The group of entry points under which a package offers protocols."""

# Id -> module below `formats`, and name in it: one or two formats of each family, so that what is
# right for them is right for the rows of tables. A module is imported when a format of it is first
# needed.
_HEADS = {
    "hermes": ("json.mix", "HERMES"),
    "gemma": ("json.mix", "GEMMA"),
    "qwen3_coder_xml": ("parameters.tags", "QWEN3_CODER_XML"),
    "morph_xml": ("xml.morph_xml", "MORPH_XML"),
    "kimi_k2": ("json.kimi_k2", "KIMI_K2"),
    "harmony_channel": ("json.harmony", "HARMONY"),
    "pythonic": ("python.rows", "PYTHONIC"),
    "yaml_xml": ("yaml.yaml_xml", "YAML_XML"),
    "openai_json": ("json.openai_json", "OPENAI_JSON"),
    "glm45_newline": ("parameters.rows", "GLM45"),
    "gemma4": ("bare.gemma", "GEMMA4"),
}
# Modules below `formats` with a tuple `PROTOCOLS`, a row of constants for each further format. Of
# formats with the tag `<function name="…">`, those of `xml.typed` come first: they read more of it.
TABLES = (
    "json.rows",
    "json.openai_strict",
    "xml.typed",
    "parameters.rows",
    "python.rows",
    "bare.gemma",
)


def family_heads() -> tuple[str, ...]:
    """Return the ids of the shipped protocols that are one or two of each family."""
    return tuple(_HEADS)


def is_shipped(protocol_id: str) -> bool:
    """Return True if a protocol of that id ships with the package or with an installed one."""
    return _shipped(protocol_id) is not None or protocol_id in protocols()


@cache
def table(module: str) -> Mapping[str, Protocol]:
    """Return the protocols of one of `TABLES` by id."""
    rows: tuple[Protocol, ...] = import_module(f"toolparse_lab.formats.{module}").PROTOCOLS
    return MappingProxyType({row.id: row for row in rows})


@lru_cache(maxsize=1024)
def _shipped(protocol_id: str) -> Protocol | None:
    if protocol_id in _HEADS:
        module, name = _HEADS[protocol_id]
        protocol: Protocol = getattr(import_module(f"toolparse_lab.formats.{module}"), name)
        return protocol
    # The tables are asked in turn, so one is not imported for a format of another before it.
    return next((table(m)[protocol_id] for m in TABLES if protocol_id in table(m)), None)


@lru_cache(maxsize=1)
def protocols() -> Mapping[str, Protocol]:
    """Return every known protocol by id, read-only.

    An installed protocol with the id of a shipped one, and an entry point that fails to load, drop
    out.
    """
    # Loads email and zipfile: a seventh of the time to import us.
    from importlib.metadata import entry_points

    by_id = {id: protocol for id in _HEADS if (protocol := _shipped(id)) is not None}
    for module in TABLES:
        by_id.update(table(module))
    for point in entry_points(group=GROUP):
        try:
            protocol = point.load()
        except Exception:  # noqa: S112 - somebody else's broken package must not break ours
            continue
        if isinstance(protocol, Protocol):
            by_id.setdefault(protocol.id, protocol)
    return MappingProxyType(by_id)


def protocol_of(x: Any) -> Protocol:
    """Return the protocol of an id or alias, or `x` itself if it is one.

    The name of a server's parser is an alias as well (`parser_names`). Raises UnknownProtocol with
    the ids that are close.
    """
    if isinstance(x, Protocol):
        return x
    # Without a look at entry points, which cost more than most parses.
    if isinstance(x, str) and (protocol := _shipped(x)) is not None:
        return protocol

    by_id = protocols()
    if isinstance(x, str):
        key = parser_key(x)
        aliased = (protocol for protocol in by_id.values() if x in protocol.aliases)
        named = by_id.get(x) or next(aliased, None) or by_id.get(PARSER_NAMES.get(key, key))
        if named is not None:
            return named
    raise UnknownProtocol(
        "no protocol of this name",
        got=x,
        expected=", ".join([*by_id, "auto"]),
        hint=near(x, by_id, cutoff=0.4) or "see tp.protocols()",
    )
