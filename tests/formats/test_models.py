"""Which format a model writes, by its name."""

from __future__ import annotations

import re
from typing import Any

import pytest

import toolparse_lab as tp
from toolparse_lab.formats.models import MODEL_FORMATS, model_format, reason_for
from toolparse_lab.formats.registry import PARSER_NAMES, parser_key


@pytest.mark.parametrize(
    ("model", "format_id"),
    [
        ("Qwen/Qwen3-Coder-30B-A3B-Instruct", "qwen3_coder_xml"),
        ("Qwen/Qwen3.5-9B", "qwen3_coder_xml"),
        ("PrimeIntellect/INTELLECT-3-FP8", "qwen3_coder_xml"),
        ("mistral/devstral-2", "mistral_v13_args"),
        ("mistralai/Devstral-2-123B-Instruct-2512", "mistral_v13_args"),
        ("mistral/devstral-small-2507", "mistral_v11"),
        ("mistralai/Mistral-Large-3-675B-Instruct-2512", "mistral_v13_args"),
        ("mistral/mistral-large-2411", "mistral_v3"),
        ("Qwen/Qwen3-8B", "hermes"),
        ("qwen2.5:7b-instruct", "hermes"),
        ("Qwen2.5_Coder 7B", "markdown_json"),
        ("Salesforce/Llama-xLAM-2-8b-fc-r", "xlam_array"),
        ("Salesforce/xLAM-2-32b-fc-r", "xlam_array"),
        ("MadeAgents/Hammer2.1-7b", "xlam_array"),
        ("NousResearch/Hermes-3-Llama-3.1-8B", "hermes"),
        ("meta-llama/Llama-3.1-70B-Instruct", "llama3_json"),
        ("meta-llama/Llama-3.2-3B-Instruct", "pythonic"),
        ("meta-llama/Llama-4-Scout-17B-16E", "pythonic"),
        ("nvidia/Llama-3.1-Nemotron-Nano-8B-v1", "nemotron_nano_v2"),
        ("nvidia/NVIDIA-Nemotron-3-Nano-30B", "qwen3_coder_xml"),
        ("mistralai/Mistral-7B-Instruct-v0.3", "mistral_v3"),
        ("mistralai/Mistral-Small-3.2-24B-Instruct-2506", "mistral_v11"),
        ("mistralai/Ministral-3-8B", "mistral_v13_args"),
        ("deepseek-ai/DeepSeek-V3-0324", "deepseek_v3"),
        ("deepseek-ai/DeepSeek-V3.2", "deepseek_v32_dsml"),
        ("deepseek-ai/DeepSeek-V3.2-Exp", "deepseek_v31"),
        ("mistral-small3.2:24b", "mistral_v11"),
        ("hf.co/bartowski/Qwen2.5-7B-Instruct-GGUF:Q4_K_M", "hermes"),
        ("/home/claude/models/GLM-4.6-FP8", "glm45_newline"),
        ("C:\\Users\\gemma\\Mistral-7B-Instruct-v0.3.gguf", "mistral_v3"),
        ("/srv/llama-3/qwen3-8b.Q4_K_M.gguf", "hermes"),
        ("/cache/models--Qwen--Qwen3-8B/snapshots/0123abcd", "hermes"),
        ("zai-org/GLM-4.6", "glm45_newline"),
        ("THUDM/glm-4-9b-chat", "glm4_9b"),
        ("moonshotai/Kimi-K2-Instruct", "kimi_k2"),
        ("MiniMaxAI/MiniMax-M2", "minimax_m2"),
        ("openai/gpt-oss-20b", "harmony_channel"),
        ("ibm-granite/granite-3.1-8b-instruct", "granite31_text"),
        ("ibm-granite/granite-4.0-h-small", "hermes"),
        ("tencent/Hunyuan-A13B-Instruct", "jamba"),
        ("microsoft/Phi-4-mini-instruct", "phi4_mini"),
        ("google/functiongemma-270m-it", "functiongemma"),
        ("CohereLabs/c4ai-command-r7b-12-2024", "command_r7b_a"),
        ("swiss-ai/Apertus-8B-Instruct-2509", "apertus"),
        ("LiquidAI/LFM2-1.2B", "lfm2"),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-32B", "deepseek_v3"),
        ("fireworks-ai/llama-3-firefunction-v2", "phi4_mini"),
        ("XiaomiMiMo/MiMo-VL-7B", "hermes"),
        ("StepFun3.5-Flash.jinja", "qwen3_coder_xml"),
        ("Cohere2MoE.jinja", "command_r7b_a"),
        ("naver-hyperclovax/HyperCLOVAX-SEED-Think-32B", "hyperclovax_seed_think"),
        ("iflytek/Spark2.5", "glm45_newline"),
        ("IQuestLab/IQuest-Coder-V2-7B", "iquest_coder_v2"),
        ("IQuestLab/IQuest-Coder-V1-40B-Instruct", "qwen3_coder_xml"),
    ],
)
def test_the_format_of_a_model(model: str, format_id: str) -> None:
    assert tp.protocol_for(model).id == format_id
    row = model_format(model)
    assert row is not None
    assert row.families in row.reason
    assert format_id in row.reason
    assert format_id in reason_for(model)


@pytest.mark.parametrize(
    "model",
    ["", "my-model", "phi4:14b", "/home/qwen/mine", "a" * 100_000],
)
def test_a_model_without_a_row_is_refused(model: str) -> None:
    with pytest.raises(tp.errors.UnknownProtocol, match="format of this model") as refusal:
        tp.protocol_for(model)
    assert "from_chat_template" in str(refusal.value)
    assert len(str(refusal.value)) < 600


@pytest.mark.parametrize(
    "model",
    ["gpt-4o", "openai/gpt-5.1-codex", "o3-mini", "gemini/gemini-3-pro", "xai/grok-4",
     "bedrock/us.amazon.nova-2-lite-v1:0", "perplexity/sonar"],
)  # fmt: skip
def test_a_model_whose_own_text_nobody_sees_is_told_so(model: str) -> None:
    with pytest.raises(tp.errors.UnknownProtocol, match="is not public") as refusal:
        tp.protocol_for(model)
    assert "'native'" in str(refusal.value)


def test_a_name_that_comes_near_is_suggested() -> None:
    for name, meant in (("qwn3", "qwen3"), ("hermez", "hermes"), ("Deepsek-V3", "deepseek_v3")):
        with pytest.raises(tp.errors.UnknownProtocol, match=f"did you mean .*{meant}"):
            tp.protocol_for(name)


def test_what_is_no_name_is_refused() -> None:
    wrong: Any
    for wrong in (None, 3, b"qwen3", ["qwen3"]):
        with pytest.raises(tp.errors.UnknownProtocol, match="found by its name"):
            tp.protocol_for(wrong)
    wrong = tp.Model("hosted_vllm/Qwen3-8B")
    with pytest.raises(tp.errors.UnknownProtocol, match="pass its name"):
        tp.protocol_for(wrong)


def test_each_row_names_a_shipped_format_and_compiles() -> None:
    for row in MODEL_FORMATS:
        assert row.format in tp.protocols(), row
        re.compile(row.pattern)


@pytest.mark.parametrize(
    ("parser", "format_id"),
    [
        ("deepseek_v32", "deepseek_v32_dsml"),
        ("deepseekv31", "deepseek_v31"),
        ("deepseek3", "deepseek_v31"),
        ("deepseekv4", "deepseek_v4_dsml"),
        ("glm45", "glm45_newline"),
        ("glm47", "glm47_compact"),
        ("GLM-4.7", "glm47_compact"),
        ("qwen3_xml", "qwen3_coder_xml"),
        ("qwen3", "hermes"),
        ("llama4_json", "llama3_json"),
        ("gpt-oss", "harmony_channel"),
        ("phi4_mini_json", "phi4_mini"),
        ("granite-20b-fc", "granite20b_fc"),
        ("step3p5", "qwen3_coder_xml"),
        ("cohere2moe", "command_r7b_a"),
        ("deepseek31", "deepseek_v31"),
        ("deepseek32", "deepseek_v32_dsml"),
        ("deepseek_dsml", "deepseek_v32_dsml"),
        ("glm45_moe", "glm45_newline"),
        ("bailing", "glm45_newline"),
        ("qwen_xml", "qwen3_coder_xml"),
        ("nemotron_nano", "qwen3_coder_xml"),
        ("granite-thinking", "qwen3_coder_xml"),
        ("intellect3", "qwen3_coder_xml"),
        ("glimmer", "muse_atem"),
        ("granite-pythonic", "pythonic"),
        ("json", "llama3_json"),
        ("ernie45", "hermes"),
        ("hermes", "hermes"),
        ("pythonic", "pythonic"),
    ],
)
def test_the_format_of_a_parser_of_a_server(parser: str, format_id: str) -> None:
    assert tp.protocol_for(parser).id == format_id
    assert format_id in reason_for(parser)


def test_each_name_of_a_parser_is_no_other_name() -> None:
    known = tp.protocols()
    names = {name for protocol in known.values() for name in (protocol.id, *protocol.aliases)}
    for name, format_id in PARSER_NAMES.items():
        assert format_id in known, name
        assert name not in names, name
        assert name == parser_key(name)
