"""Protocols by id: the shipped ones, and those of installed packages (entry points)."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Any

from ..core.errors import UnknownProtocol, near
from .base import Protocol
from .parser_names import PARSER_NAMES, parser_key

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
    "glm45_newline": ("parameters.rows", "GLM45"),
    "gemma4": ("bare.gemma", "GEMMA4"),
}
# Module below `protocols` -> the ids of the protocols in its tuple `PROTOCOLS`, in the same order.
# A row of such a table is one format: constants of its family. The ids stand here as well, so that
# a protocol is found without importing every table; a test holds both equal.
_TABLES: Mapping[str, tuple[str, ...]] = {
    "json.rows": (
        "mistral_v3",
        "mistral_v11",
        "mistral_v13_args",
        "mistral_v11_call_id",
        "deepseek_v3",
        "deepseek_v31",
        "deepseek_r1_ascii",
        "plamo3",
        "solar_open",
        "llama31_function_tag",
        "step_audio_2",
        "glm53_flash",
        "cwm",
        "functionary_v32",
        "qwen_agent_old",
        "react",
        "jamba",
        "minimax_m1",
        "nemotron_nano_v2",
        "command_r7b_a",
        "openpangu",
        "hyperclovax_think_14b",
        "granite3",
        "phi4_tool_tag",
        "granite31_text",
        "phi4_mini",
        "sarashina",
        "apertus",
        "longcat",
        "k2_horizon_json",
        "internlm2",
        "inkling",
        "granite20b_fc",
        "gigachat3",
        "gigachat31",
        "llama3_python_tag",
        "command_r_plus",
        "llama3_json",
        "xlam_array",
        "markdown_json",
        "glm4_9b",
        "bfcl_json",
        "bfcl_json_tag",
    ),
    "json.openai_strict": ("openai_strict",),
    # Before other formats with the tag `<function name="…">`, which read less of it.
    "xml.typed": (
        "bfcl_verbose_xml",
        "bfcl_verbose_xml_tag",
        "bfcl_concise_xml",
        "bfcl_concise_xml_tag",
        "function_call_xml",
        "function_call_xml_tag",
    ),
    "parameters.rows": (
        "minicpm5",
        "mimo_compact",
        "seed_oss",
        "anthropic_legacy",
        "minimax_m2",
        "dots",
        "muse_atem",
        "step3",
        "beam",
        "deepseek_v32_dsml",
        "deepseek_v4_dsml",
        "deepseek_v41_dsml",
        "gigachat35_gcml",
        "kimi_k3_xtml",
        "hyperclovax_seed_think",
        "glm47_compact",
        "iquest_coder_v2",
        "iquest_q1",
        "telechat4",
        "hunyuan_v3",
        "hunyuan_v4",
        "hunyuan_v3_suffix",
        "k2_horizon_xml",
        "solar_open2",
        "minimax_m3",
    ),
    "python.rows": (
        "llama4_python_start",
        "gemma_fence_tool_code",
        "olmo3",
        "lfm2",
        "minicpm3",
        "gorilla_openfunctions",
        "bfcl_python_tag",
        "llama3_python_calls",
    ),
    "bare.rows": ("functiongemma",),
}
_TABLE_OF: Mapping[str, str] = {id: module for module, ids in _TABLES.items() for id in ids}


def is_shipped(protocol_id: str) -> bool:
    """Return True if a protocol of that id ships with the package or with an installed one."""
    return protocol_id in _SHIPPED or protocol_id in _TABLE_OF or protocol_id in protocols()


def family_heads() -> tuple[str, ...]:
    """Return the ids of the shipped protocols that have a module to themselves.

    They are one or two of each family, so that what holds for them holds for the rows of tables.
    """
    return tuple(_SHIPPED)


def tables() -> Mapping[str, tuple[str, ...]]:
    """Return module below `protocols` -> the ids of the protocols in its table."""
    return MappingProxyType(dict(_TABLES))


@cache
def _shipped(protocol_id: str) -> Protocol:
    # A module loads when the first of its formats is asked for.
    if protocol_id in _TABLE_OF:
        table = importlib.import_module(f"toolparse_lab.formats.{_TABLE_OF[protocol_id]}")
        rows: tuple[Protocol, ...] = table.PROTOCOLS
        return next(row for row in rows if row.id == protocol_id)
    module, name = _SHIPPED[protocol_id]
    protocol: Protocol = getattr(importlib.import_module(f"toolparse_lab.formats.{module}"), name)
    return protocol


@lru_cache(maxsize=1)
def protocols() -> Mapping[str, Protocol]:
    """Return every known protocol by id, read-only.

    An installed protocol with the id of a shipped one, and an entry point that fails to load, drop
    out.
    """
    # Loads email and zipfile: a seventh of the time to import us.
    from importlib.metadata import entry_points

    by_id = {protocol_id: _shipped(protocol_id) for protocol_id in (*_SHIPPED, *_TABLE_OF)}
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
    if isinstance(x, str) and (x in _SHIPPED or x in _TABLE_OF):
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
    # an id, else the first protocol with such an alias, else a server's parser
    if name in by_id:
        return by_id[name]
    for protocol in by_id.values():
        if name in protocol.aliases:
            return protocol
    key = parser_key(name)
    return by_id.get(PARSER_NAMES.get(key, key))
