"""Which format a model writes, by its name: a table of name patterns.

A model that ships its chat template needs no row here. See `extensions.templates` if it is
at hand. The first row whose pattern is found in the name counts, so special names are before the
families they belong to.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from ..core.errors import UnknownProtocol, near
from .base import Protocol
from .registry import PARSER_NAMES, parser_key, protocol_of, protocols

Reasoning = Literal["", "tags", "prefilled"]


@dataclass(frozen=True, slots=True)
class ModelFormat:
    """The format of the models whose names match a pattern.

    pattern: a regular expression for the name in lower case, with `-` for blanks and underscores.
    format: the id of the protocol. reasoning: "tags" if the model thinks between tags of its own,
    "prefilled" if its prompt holds the opening tag, so that an answer has only the closing one.
    families: the models in words. newest: for a model that is newer than all that are known of its
    family, the version that its format is taken from; empty for a known one.
    """

    pattern: str
    format: str
    families: str
    reasoning: Reasoning = ""
    newest: str = ""

    @property
    def reason(self) -> str:
        """Why a model has this format, in a sentence, with the doubt that there is."""
        if self.newest:
            return (
                f"in doubt: its name is newer than {self.families} {self.newest}, the newest that "
                f"is known, which writes {self.format}; compare with protocol='auto'"
            )
        return f"its name matches {self.pattern}: {self.families} write {self.format}"


_ROWS: tuple[tuple[str, str, str, Reasoning], ...] = (
    # Built on models of others, whose names they bear
    (r"deepseek-r1.*(?:qwen|llama)", "deepseek_v3", "distilled DeepSeek R1", "prefilled"),
    (r"fire-?function", "phi4_mini", "FireFunction", ""),
    # Qwen and those built on its formats
    (r"qwen-?3.*coder", "qwen3_coder_xml", "Qwen3-Coder", ""),
    (r"qwen-?3\.[5-9]", "qwen3_coder_xml", "Qwen3.5 and later", "prefilled"),
    (r"qwen-?3.*thinking", "hermes", "Qwen3 thinking models", "prefilled"),
    (r"qwen-?3|qwq", "hermes", "Qwen3 and QwQ", "tags"),
    (r"intellect-?3", "qwen3_coder_xml", "INTELLECT-3", "prefilled"),
    (r"qwen-?2\.5-coder", "markdown_json", "Qwen2.5-Coder", ""),
    (r"xlam", "xlam_array", "xLAM", ""),
    (r"hammer", "xlam_array", "Hammer", ""),
    (r"toolace", "pythonic", "ToolACE", ""),
    (r"qwen-?2\.5|qwen-?2-", "hermes", "Qwen2.5 and Qwen2", ""),
    (r"qwen-?1\.5", "qwen_agent_old", "Qwen1.5 with Qwen-Agent", ""),
    (r"mimo-vl", "hermes", "MiMo-VL", "tags"),
    (r"mimo", "mimo_compact", "MiMo", "tags"),
    (r"seed-oss", "seed_oss", "Seed-OSS", "tags"),
    # Llama; what was made of it is before it
    (r"functionary.*3\.2", "functionary_v32", "Functionary 3.2", ""),
    (r"functionary", "llama31_function_tag", "Functionary 3.1", ""),
    (r"hermes-[234]|hermes.*pro", "hermes", "Hermes", ""),
    (r"nemotron-3|nemotron.*3-nano", "qwen3_coder_xml", "Nemotron 3", "prefilled"),
    (r"nemotron", "nemotron_nano_v2", "Nemotron", "tags"),
    (r"llama-?3\.2-[13]b|llama-?4", "pythonic", "Llama 3.2 (1B, 3B) and Llama 4", ""),
    (r"llama-?3", "llama3_json", "Llama 3", ""),
    # Mistral
    (r"ministral-?3|devstral-?(?:small-|medium-)?2(?:512)?(?!\d)|mistral-small-4"
     r"|mistral-medium-3\.5|mistral-large-(?:3(?!\d)|(?:.*-)?2512)",
     "mistral_v13_args", "Mistral models of tokenizer v13", ""),
    (r"magistral", "mistral_v11", "Magistral", "tags"),
    (r"mistral-small-?3\.2|devstral", "mistral_v11", "Mistral Small 3.2 and Devstral", ""),
    (r"mistral|mixtral|ministral|codestral|pixtral", "mistral_v3", "Mistral models", ""),
    # DeepSeek
    (r"deepseek-v?4\.1", "deepseek_v41_dsml", "DeepSeek V4.1", "tags"),
    (r"deepseek-v?4", "deepseek_v4_dsml", "DeepSeek V4", "tags"),
    (r"deepseek-v?3\.2-exp", "deepseek_v31", "DeepSeek V3.2-Exp", ""),
    (r"deepseek-v?3\.2", "deepseek_v32_dsml", "DeepSeek V3.2", "tags"),
    (r"deepseek-v?3\.1", "deepseek_v31", "DeepSeek V3.1", ""),
    (r"deepseek-r1", "deepseek_v3", "DeepSeek R1", "prefilled"),
    (r"deepseek|cogito", "deepseek_v3", "DeepSeek V3 and Cogito", ""),
    # GLM and its kin
    (r"glm-?(?:4\.7|5)|ling-?3", "glm47_compact", "GLM-4.7, GLM-5 and Ling 3", "tags"),
    (r"glm-?4\.[56]|laguna|ring-2\.6", "glm45_newline", "GLM-4.5 and 4.6", "tags"),
    (r"glm-?4|chatglm", "glm4_9b", "GLM-4-9B and ChatGLM", ""),
    # all others, by their makers
    (r"kimi-k3", "kimi_k3_xtml", "Kimi K3", ""),
    (r"kimi.*thinking", "kimi_k2", "Kimi K2 Thinking", "prefilled"),
    (r"kimi|moonshot", "kimi_k2", "Kimi K2", ""),
    (r"minimax-?m3", "minimax_m3", "MiniMax M3", "tags"),
    (r"minimax-?m2", "minimax_m2", "MiniMax M2", "prefilled"),
    (r"minimax", "minimax_m1", "MiniMax M1", "tags"),
    (r"llm-jp-?4", "harmony_channel", "LLM-jp 4", ""),
    (r"gpt-oss", "harmony_channel", "gpt-oss", ""),
    (r"granite-?4\.2|granite-4\.2", "qwen3_coder_xml", "Granite 4.2", "tags"),
    (r"granite-?4", "hermes", "Granite 4", ""),
    (r"granite-20b", "granite20b_fc", "Granite 20B", ""),
    (r"granite-?3\.1", "granite31_text", "Granite 3.1", ""),
    (r"granite", "granite3", "Granite 3", ""),
    (r"jamba|apriel", "jamba", "Jamba and Apriel", ""),
    (r"hunyuan-?a13b", "jamba", "Hunyuan A13B", "tags"),
    (r"(?:hunyuan|hy)-?v?4", "hunyuan_v4", "Hunyuan 4", "tags"),
    (r"hunyuan|hy-?3", "hunyuan_v3", "Hunyuan 3", "tags"),
    (r"iquest-q1", "iquest_q1", "IQuest-Q1", "prefilled"),
    (r"iquest-coder-v2", "iquest_coder_v2", "IQuest-Coder-V2", "tags"),
    (r"interns2|intern-s2|iquest-coder", "qwen3_coder_xml", "Intern-S2 and IQuest-Coder", ""),
    (r"intern-?lm|intern-?s1", "internlm2", "InternLM and Intern-S1", ""),
    (r"phi-?4-m(?:ini|ultimodal)", "phi4_mini", "Phi-4-mini", ""),
    (r"function-?gemma", "functiongemma", "FunctionGemma", ""),
    (r"gemma-?4", "gemma4", "Gemma 4", ""),
    (r"gemma", "gemma_fence_tool_code", "Gemma 2 and 3", ""),
    (r"command-r7b|command-a|cohere-?2-?moe|north-mini",
     "command_r7b_a", "Command R7B and Command A", ""),
    (r"command-r", "command_r_plus", "Command R and R+", ""),
    (r"step(?:fun-?)?-?3\.[57]|nanbeige", "qwen3_coder_xml", "Step-3.5 and Nanbeige", "tags"),
    (r"step-audio", "step_audio_2", "Step-Audio 2", ""),
    (r"step-?3", "step3", "Step3", "tags"),
    (r"ernie", "hermes", "ERNIE 4.5", "prefilled"),
    (r"olmo-?3", "olmo3", "Olmo 3", "tags"),
    (r"longcat", "longcat", "LongCat", ""),
    (r"apertus", "apertus", "Apertus", ""),
    (r"lfm-?2", "lfm2", "LFM2", ""),
    (r"minicpm-?5", "minicpm5", "MiniCPM5", "tags"),
    (r"minicpm-?3", "minicpm3", "MiniCPM3", ""),
    (r"gigachat-?3\.5", "gigachat35_gcml", "GigaChat 3.5", ""),
    (r"gigachat-?3\.1", "gigachat31", "GigaChat 3.1", ""),
    (r"gigachat", "gigachat3", "GigaChat 3", ""),
    (r"claude", "anthropic_legacy", "Claude's text form", ""),
    (r"dots", "dots", "dots.llm", ""),
    (r"muse", "muse_atem", "Muse", ""),
    (r"inkling", "inkling", "Inkling", ""),
    (r"spark-?2", "glm45_newline", "iFlytek Spark 2.5", "prefilled"),
    (r"spark-?3", "glm47_compact", "iFlytek Spark 3", "tags"),
    (r"plamo", "plamo3", "PLaMo 3", ""),
    (r"k2-horizon", "k2_horizon_xml", "K2 Horizon", ""),
    (r"solar-open-?2", "solar_open2", "Solar Open 2", ""),
    (r"solar-open", "solar_open", "Solar Open", ""),
    (r"openpangu|pangu", "openpangu", "openPangu", ""),
    (r"hyperclova.*(?:32b|8b)", "hyperclovax_seed_think", "HyperCLOVA X SEED Think", "prefilled"),
    (r"hyperclova", "hyperclovax_think_14b", "HyperCLOVA X Think", ""),
    (r"sarashina", "sarashina", "Sarashina", ""),
    (r"telechat|xing-?4", "telechat4", "TeleChat 4", ""),
    (r"gorilla", "gorilla_openfunctions", "Gorilla OpenFunctions", ""),
    (r"rwkv", "markdown_json", "RWKV", ""),
    (r"k-exaone-?2(?!\d)", "qwen3_coder_xml", "K-EXAONE 2", "tags"),
    (r"smollm-?3|exaone|falcon-?3|bielik|reka|trinity", "hermes", "models with Hermes' tags", ""),
    (r"qwen", "hermes", "Qwen", ""),
)  # fmt: skip

MODEL_FORMATS: tuple[ModelFormat, ...] = tuple(ModelFormat(*row) for row in _ROWS)

# The newest version of each family that the rows know, and its format: what a newer model is taken
# to write. The version is what follows the pattern, if it is no size (7b) and no date.
_NEWEST: tuple[tuple[str, str, str, str, Reasoning], ...] = (
    (r"nemotron", "4", "qwen3_coder_xml", "Nemotron", "prefilled"),
    (r"qwen", "3.9", "qwen3_coder_xml", "Qwen", "prefilled"),
    (r"mimo-v", "2.5", "mimo_compact", "MiMo", "tags"),
    (r"llama", "4", "pythonic", "Llama", ""),
    (r"mistral-small", "4", "mistral_v13_args", "Mistral Small", ""),
    (r"mistral-medium", "3.5", "mistral_v13_args", "Mistral Medium", ""),
    (r"(?:mistral-large|ministral)", "3", "mistral_v13_args", "Mistral Large and Ministral", ""),
    (r"devstral(?:-small|-medium)?", "2", "mistral_v13_args", "Devstral", ""),
    (r"deepseek-v?", "4.1", "deepseek_v41_dsml", "DeepSeek", "tags"),
    (r"deepseek-r", "1", "deepseek_v41_dsml", "DeepSeek R", "tags"),
    (r"glm", "5.9", "glm47_compact", "GLM", "tags"),
    (r"(?:ling|ring)", "3", "glm47_compact", "Ling", "tags"),
    (r"kimi-k", "3", "kimi_k3_xtml", "Kimi K", ""),
    (r"minimax-?m", "3", "minimax_m3", "MiniMax M", "tags"),
    (r"granite", "4.2", "qwen3_coder_xml", "Granite", "tags"),
    (r"(?:hunyuan-?v?|hy-?v?)", "4", "hunyuan_v4", "Hunyuan", "tags"),
    (r"intern-?s", "2", "qwen3_coder_xml", "Intern-S", ""),
    (r"phi", "4", "phi4_mini", "Phi", ""),
    (r"gemma", "4", "gemma4", "Gemma", ""),
    (r"step(?:fun)?", "3.7", "qwen3_coder_xml", "Step", "tags"),
    (r"ernie", "4.5", "hermes", "ERNIE", "prefilled"),
    (r"olmo", "3", "olmo3", "Olmo", "tags"),
    (r"lfm", "2", "lfm2", "LFM", ""),
    (r"minicpm", "5", "minicpm5", "MiniCPM", "tags"),
    (r"gigachat", "3.5", "gigachat35_gcml", "GigaChat", ""),
    (r"spark", "3", "glm47_compact", "iFlytek Spark", "tags"),
    (r"plamo", "3", "plamo3", "PLaMo", ""),
    (r"solar-open", "2", "solar_open2", "Solar Open", ""),
    (r"telechat", "4", "telechat4", "TeleChat", ""),
    (r"k-exaone", "2", "qwen3_coder_xml", "K-EXAONE", "tags"),
    (r"hermes", "4", "hermes", "Hermes", ""),
    (r"smollm", "3", "hermes", "SmolLM", ""),
)  # fmt: skip


# The name of a person in a path says nothing about a model.
_HOME = re.compile(r"^(?:[a-z]:)?/(?:home|users)/[^/]+/")


# Models whose own writing nobody sees: their providers read the calls and answer with objects.
_UNSEEN = re.compile(
    r"(?<![a-z])(?:gpt-(?!oss)\d|chatgpt|o[1-9](?![a-z0-9])|codex|gemini|grok|nova-|sonar|doubao"
    r"|palmyra|mercury)"
)


@lru_cache(maxsize=1024)
def model_format(model: str) -> ModelFormat | None:
    """Return the row of a model's name, None if no pattern is in it.

    Of a path or a name with its maker, the last part with a pattern counts.

    >>> model_format("Qwen/Qwen3-Coder-30B").format
    'qwen3_coder_xml'
    """
    name = _HOME.sub("", re.sub(r"[\s_]+", "-", model.lower()).replace("\\", "/"))
    for part in reversed(name.split("/")):
        newer = _newer_than_known(part)
        if newer is not None:
            return newer
        for row in MODEL_FORMATS:
            # A pattern begins where a word of the name does.
            if re.search(rf"(?<![a-z])(?:{row.pattern})", part):
                return row
    return None


def _newer_than_known(name: str) -> ModelFormat | None:
    # A fine-tune bears the name of what it was made from first, as Nemotron of Llama does: the last
    # family in the name counts.
    found = None
    for pattern, newest, protocol_id, family, reasoning in _NEWEST:
        match = re.search(rf"(?<![a-z]){pattern}-?(\d{{1,2}}(?:\.\d+)?)(?![\d.]*b)(?!\d)", name)
        if match is None or (found and match.start() < found[0]):
            continue
        newer = [*map(int, match[1].split("."))] > [*map(int, newest.split("."))]
        row = ModelFormat(pattern, protocol_id, family, reasoning, newest)
        found = match.start(), row if newer else None
    return found[1] if found else None


def reason_for(model: str) -> str:
    """Return why a model has its format, in a sentence.

    Raises UnknownProtocol where `protocol_for` does.

    >>> reason_for("glm47")
    "'glm47' is a name of glm47_compact, or of a server's parser for it"
    """
    protocol, row = _format_of(model)
    if row is None:
        return f"{model!r} is a name of {protocol.id}, or of a server's parser for it"
    return row.reason


def protocol_for(model: str) -> Protocol:
    """Return the protocol that a model was trained to write.

    Args:
        model: its name on a hub or a server, or the name of a server's parser, which is looked up
            first.

    Raises UnknownProtocol if neither table has such a name. `formats.models.reason_for` says why a
    name has its format.

    >>> protocol_for("deepseek-ai/DeepSeek-V3.1").id
    'deepseek_v31'
    >>> protocol_for("glm47").id
    'glm47_compact'
    """
    return _format_of(model)[0]


def _format_of(model: Any) -> tuple[Protocol, ModelFormat | None]:
    # the row is None where the name is that of a protocol
    if not isinstance(model, str):
        has_name = isinstance(getattr(model, "name", None), str)
        raise UnknownProtocol(
            "a model is found by its name",
            got=type(model).__name__,
            expected="a text such as 'Qwen/Qwen3-8B'",
            hint="pass its name" if has_name else None,
        )
    with suppress(UnknownProtocol):
        return protocol_of(model), None
    row = model_format(model)
    if row is not None:
        return protocol_of(row.format), row
    if _UNSEEN.search(re.sub(r"[\s_]+", "-", model[:200].lower())):
        raise UnknownProtocol(
            "the format of this model is not public: its provider reads the calls itself",
            got=model[:200],
            expected="a model whose own text can be seen",
            hint="plan with 'native', or let a prompt explain a format, such as 'hermes'",
        )
    names = sorted({*protocols(), *PARSER_NAMES})
    similar = near(parser_key(model[:200]), names, cutoff=0.8)
    raise UnknownProtocol(
        "the format of this model is not known",
        got=model if len(model) <= 200 else f"{model[:200]}…",
        expected="a model of docs/reference/formats.md, or a server's name for its parser",
        hint=f"{similar} else "
        * bool(similar)
        + "derive it: extensions.templates.protocol_from_chat_template(path); or read with "
        "protocol='auto'",
    )
