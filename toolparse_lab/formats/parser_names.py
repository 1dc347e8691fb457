"""The names under which inference servers register their parsers, as protocols of ours.

A server is started with the name of a parser (`--tool-call-parser deepseek_v32`), so such a name is
what a configuration or a log holds. Only names that no protocol has as its id or alias are here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

# Protocol id -> names, in lower case with underscores; versions are written without dots.
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
