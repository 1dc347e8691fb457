"""Protocols by id, or by the name under which an inference server registers its parser: the shipped
ones, and those of installed packages (entry points).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib import import_module
from types import MappingProxyType
from typing import Any

from ..core.errors import UnknownProtocol, near
from .base import Protocol

# Protocol id -> names of parsers (`--tool-call-parser deepseek_v32`), which a configuration or log
# holds, in lower case with underscores; versions are written without dots. Only names that no
# protocol has as its id or alias are here.
_NAMES: Mapping[str, str] = {
    "hermes": (
        "hermes2_pro hermes_2_pro qwen qwen2 qwen25 qwen2_5 qwen3 qwen3_think qwen3_vl qwq granite4"
        " trinity smollm3 exaone exaone4 k_exaone k_exaone_236b ernie ernie45_moe ernie_45 reka"
        " falcon3 kolibri kolibri1"
    ),
    "qwen3_coder_xml": (
        "qwen3_coder qwen35 qwen36 qwen38 qwen3_5 nemotron_3 nemotron3 nemotron3_nano nemotron_v3"
        " nemotron_3_nano nemotron_35_nano step3p5 step3p7 step35 step_35 step5 nanbeige berrylm"
        " iquest_coder ornith interns2 interns2_preview qwen_xml qwen_coder nemotron_nano"
        " nemotron3nano granite_thinking intellect3 k_exaone2 kexaone2 k_exaone_2 k_exaone_20"
    ),
    "mimo_compact": "mimo mimo_v2 mimov2 mimov2_flash mimo_v2_flash mimo_v25",
    "markdown_json": "qwen25_coder qwen2_5_coder",
    "llama3_json": "llama3 llama31 llama32 llama33 llama_3 llama json",
    "pythonic": "llama4 toolace granite_pythonic",
    "mistral_v3": "mistral_nemo mixtral",
    "mistral_v11": "magistral",
    "mistral_v13_args": "ministral ministral3 devstral2",
    "deepseek_v3": "deepseekv3 deepseek deepseek_r1 deepseekr1 cogito",
    "deepseek_v31": "deepseekv31 deepseek31 deepseek_v3_1 deepseek3",
    "deepseek_v32_dsml": "deepseekv32 deepseek32 deepseek_v3_2 deepseek_dsml",
    "deepseek_v4_dsml": "deepseekv4",
    "deepseek_v41_dsml": "deepseekv41 deepseek_v4_1",
    "glm45_newline": (
        "glm4_moe glm45_moe glm glm46 glm_45 glm_46 glm4_5 glm4_6 poolside laguna ring_26 ring26"
        " bailing"
    ),
    "glm47_compact": "glm47_moe glm5 glm_47 glm4_7 glm_5 spark3",
    "glm4_9b": "glm4",
    "kimi_k2": "kimik2 kimi k2 kimi_k25",
    "kimi_k3_xtml": "kimik3",
    "minimax_m1": "minimax minimax_m1_lines",
    "minimax_m2": "minimaxm2 minimax_m25 minimax_m2_sanitized",
    "minimax_m3": "minimaxm3 minimax_m3_nom",
    "harmony_channel": "harmony gptoss gpt_oss_120b gpt_oss_20b",
    "granite3": "granite",
    "granite20b_fc": "granite_20b_fc granite_20b",
    "jamba": "apriel",
    "hunyuan_v3": "hunyuan hunyuanv3 hunyuan_v3_tags",
    "internlm2": "internlm intern_s1 intern",
    "phi4_mini": "phi4 phi4_mini_json",
    "command_r7b_a": (
        "cohere cohere_command cohere_command3 cohere_command4 cohere2moe command_a command_r7b"
    ),
    "nemotron_nano_v2": "nemotron nemotron_json nemotron_deci",
    "gigachat35_gcml": "gigachat3_5",
    "gigachat3": "gigachat",
    "olmo3": "olmo olmo3_think",
    "minicpm5": "minicpm5xml minicpm4_xml minicpm",
    "openpangu": "pangu openpangu_v2 openpanguv2",
    "solar_open": "solar",
    "step_audio_2": "step_audio",
    "gemma_fence_tool_code": "gemma2 gemma3",
    "anthropic_legacy": "claude",
    "hyperclovax_think_14b": "hyperclovax_seed_think_14b",
    "apertus": "apertus2509",
    "gorilla_openfunctions": "gorilla",
    "functionary_v32": "functionary functionary_v3_2",
    "llama31_function_tag": "functionary_v31 functionary_v3_1",
    "dots": "dots_llm",
    "seed_oss": "seed",
    "k2_horizon_xml": "k2_v3 k2v3",
    "xlam_array": "json_array",
    "muse_atem": "muse_spark glimmer",
}
PARSER_NAMES: Mapping[str, str] = MappingProxyType(
    {name: id for id, names in _NAMES.items() for name in names.split()}
)
"""Name of a parser, in lower case with underscores -> id of its protocol."""


def parser_key(name: str) -> str:
    """Return a name as the table has it: `GLM-4.7` is `glm_47`."""
    name = name.strip().lower().removesuffix(".jinja")
    return re.sub(r"[\s-]+", "_", name).replace(".", "")


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
    "gemma4": ("bare", "GEMMA4"),
}
# Modules below `formats` with a tuple `PROTOCOLS`, a row of constants for each further format. Of
# formats with the tag `<function name="…">`, those of `xml.typed` come first: they read more of it.
TABLES = (
    "json.rows",
    "json.openai_json",
    "xml.typed",
    "parameters.rows",
    "python.rows",
    "bare",
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

    Entry points of other packages add theirs. One that fails to load is left out, and so is one
    with the id of a shipped protocol.
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


@lru_cache(maxsize=1024)
def _named(name: str) -> Protocol | None:
    # Without a look at entry points for what is shipped: that costs more than most parses.
    protocol = _shipped(name)
    if protocol is not None:
        return protocol
    by_id, key = protocols(), parser_key(name)
    aliased = (protocol for protocol in by_id.values() if name in protocol.aliases)
    return by_id.get(name) or next(aliased, None) or by_id.get(PARSER_NAMES.get(key, key))


def protocol_of(x: Any) -> Protocol:
    """Return the protocol of an id or alias, or `x` itself if it is one.

    The name of a server's parser is an alias as well (`PARSER_NAMES`). Raises UnknownProtocol with
    the ids that are close.
    """
    if isinstance(x, Protocol):
        return x
    if isinstance(x, str) and (protocol := _named(x)) is not None:
        return protocol
    if isinstance(x, (Mapping, list, tuple)):
        raise UnknownProtocol(
            "the protocol is missing: tools stand in its place",
            got=x,
            expected='the name of a format, or "auto", before the tools',
            hint='tp.parse(text, "auto", tools)',
        )
    raise UnknownProtocol(
        "no protocol of this name",
        got=x,
        expected=", ".join([*protocols(), "auto"]),
        hint=near(x, protocols(), cutoff=0.4) or "see tp.protocols()",
    )
