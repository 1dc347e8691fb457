"""The page docs/reference/formats.md: a row for each wire format, measured on a call that the
format itself wrote, and the models that write it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import toolparse_lab as tp
from scripts.tables import write_table
from toolparse_lab.formats.models import MODEL_FORMATS
from toolparse_lab.formats.reasoning import MARKS
from toolparse_lab.formats.registry import protocols

TOOL = {
    "name": "set_timer",
    "parameters": {
        "type": "object",
        "properties": {"minutes": {"type": "integer"}, "label": {"type": "string"}},
        "required": ["minutes", "label"],
    },
}
CALLS = ({"minutes": 5, "label": "tea"}, {"minutes": 9, "label": "egg"})
# Format -> the parsers of servers that read it, by the names under which they are switched on. Read
# from vLLM 0.33.0, SGLang 0.5.23, llama.cpp as of llama-cpp-python 0.3.36, Ollama of August 2026.
SERVERS = {
    "hermes": "vLLM hermes, qwen3_json, granite4, longcat, ernie45; SGLang hermes, qwen25; "
    "llama.cpp; Ollama",
    "qwen3_coder_xml": "vLLM qwen3_coder, step3p5, nemotron_v3; SGLang qwen3_coder, step3p5; "
    "llama.cpp; Ollama",
    "mimo_compact": "vLLM mimo; SGLang mimo",
    "seed_oss": "vLLM seed_oss; llama.cpp",
    "llama3_json": "vLLM llama3_json, llama4_json; SGLang llama3; llama.cpp; Ollama",
    "llama3_python_tag": "vLLM llama3_json; SGLang llama3; llama.cpp",
    "llama31_function_tag": "llama.cpp",
    "pythonic": "vLLM pythonic, llama4_pythonic; SGLang pythonic",
    "llama4_python_start": "vLLM llama4_pythonic; SGLang pythonic",
    "mistral_v3": "vLLM mistral; SGLang mistral; llama.cpp; mlx-lm",
    "mistral_v11": "vLLM mistral; llama.cpp; Ollama",
    "mistral_v13_args": "vLLM mistral; SGLang mistral; llama.cpp; Ollama",
    "mistral_v11_call_id": "llama.cpp",
    "deepseek_v3": "vLLM deepseek_v3; SGLang deepseekv3; Ollama",
    "deepseek_v31": "vLLM deepseek_v31; SGLang deepseekv31; llama.cpp; Ollama",
    "deepseek_v32_dsml": "vLLM deepseek_v32; SGLang deepseekv32; llama.cpp",
    "deepseek_v4_dsml": "vLLM deepseek_v4; SGLang deepseekv4; llama.cpp",
    "deepseek_v41_dsml": "vLLM deepseek_v41; SGLang deepseekv41",
    "kimi_k2": "vLLM kimi_k2; SGLang kimi_k2; llama.cpp",
    "kimi_k3_xtml": "vLLM kimi_k3; SGLang kimi_k3; llama.cpp",
    "glm45_newline": "vLLM glm45; SGLang glm45, spark25; llama.cpp; Ollama",
    "glm47_compact": "vLLM glm47, ling3; SGLang glm47, ling3; llama.cpp; Ollama",
    "iquest_q1": "SGLang iquest_q1",
    "iquest_coder_v2": "vLLM iquest_coder_v2",
    "minimax_m2": "vLLM minimax_m2; SGLang minimax-m2; llama.cpp",
    "minimax_m3": "vLLM minimax_m3; SGLang minimax-m3; llama.cpp",
    "harmony_channel": "vLLM openai; SGLang gpt-oss; llama.cpp; Ollama",
    "granite3": "vLLM granite",
    "granite31_text": "vLLM granite",
    "granite20b_fc": "vLLM granite-20b-fc",
    "jamba": "vLLM jamba, hunyuan_a13b",
    "hunyuan_v3": "vLLM hy_v3; SGLang hunyuan; llama.cpp",
    "hunyuan_v4": "vLLM hy_v4",
    "xlam_array": "vLLM xlam",
    "internlm2": "vLLM internlm; SGLang interns1",
    "phi4_mini": "vLLM phi4_mini_json",
    "gemma_fence_tool_code": "SGLang pythonic",
    "functiongemma": "vLLM functiongemma; Ollama",
    "gemma4": "vLLM gemma4; SGLang gemma4; llama.cpp; Ollama",
    "command_r7b_a": "vLLM cohere_command3, cohere_command4; SGLang cohere_command4; "
    "llama.cpp; Ollama",
    "nemotron_nano_v2": "llama.cpp",
    "step3": "vLLM step3; SGLang step3",
    "olmo3": "vLLM olmo3; Ollama",
    "longcat": "vLLM longcat",
    "apertus": "vLLM apertus; SGLang apertus2509; llama.cpp",
    "lfm2": "vLLM lfm2; SGLang lfm2; llama.cpp; Ollama",
    "minicpm5": "vLLM minicpm5; SGLang minicpm5; llama.cpp",
    "gigachat3": "vLLM gigachat3; SGLang gigachat3; llama.cpp",
    "gigachat31": "vLLM gigachat3; llama.cpp",
    "gigachat35_gcml": "SGLang gigachat35",
    "dots": "vLLM dots; SGLang dots",
    "muse_atem": "vLLM muse, muse_glimmer; SGLang muse; llama.cpp; Ollama",
    "inkling": "vLLM inkling; SGLang inkling",
    "plamo3": "vLLM plamo3",
    "k2_horizon_xml": "vLLM k2_horizon; SGLang k2_horizon",
    "k2_horizon_json": "SGLang k2_horizon",
    "solar_open": "llama.cpp",
    "solar_open2": "vLLM solar_open2",
    "functionary_v32": "llama.cpp",
    "beam": "vLLM beam; SGLang beam",
    "telechat4": "TensorRT-LLM telechat4, xing4_0",
    "sarashina": "smg sarashina",
    "openpangu": "vLLM openpangu",
    "hyperclovax_seed_think": "vLLM hyperclovax_seed_think",
    "hyperclovax_think_14b": "vLLM hyperclovax_seed_think_14b",
    "step_audio_2": "vLLM step_audio_2",
    "cwm": "vLLM cwm",
}
_TOKEN = re.compile(r"<[|｜][^<>]*?[|｜]>|\[TOOL_CALLS\]|\[ARGS\]|\[CALL_ID\]")


def format_parts() -> dict[str, str]:
    """The parts `formats`, a table of all of them, and `forms`, a call in each."""
    head = ("format", "models", "types", "opener lost", "closer lost", "tokens lost", "servers")
    rows = [_row(name) for name in protocols()]
    return {
        "formats": "\n".join(write_table(head, rows)),
        "forms": "\n".join(_forms()),
        "reasoning": "\n".join(write_table(("opener", "closers", "written by"), _marks())),
        "count": f"{len(rows)} formats.",
    }


def _marks() -> Iterator[list[str]]:
    for mark in MARKS:
        opener, *closers = (f"`{text.strip()}`" for text in (mark.opener, *mark.closers))
        yield [
            opener,
            ", ".join(closers or (f"before `{stop}`" for stop in mark.stops)),
            mark.source,
        ]


def _row(name: str) -> list[str]:
    """The row of one format."""
    protocol = protocols()[name]
    also = "".join(f", `{alias}`" for alias in protocol.aliases)
    text = _written(protocol)[0]
    opener, closer = _ends(text, "schema-typed" in protocol.tags)
    return [
        f"[`{name}`](#{name}){also}",
        ", ".join(dict.fromkeys(row.families for row in MODEL_FORMATS if row.format == name)),
        _types(protocol),
        _verdict(protocol, text[len(opener) :]) if opener else "",
        _verdict(protocol, text[: len(text) - len(closer)]) if closer else "",
        _verdict(protocol, _TOKEN.sub("", text)) if _TOKEN.search(text) else "",
        SERVERS.get(name, ""),
    ]


def _written(protocol: tp.Protocol) -> list[str]:
    """Two calls as the format writes them."""
    return [
        protocol.format_tool_call({"name": "set_timer", "arguments": arguments})
        for arguments in CALLS
    ]


def _types(protocol: tp.Protocol) -> str:
    """How a reader knows the type of a value: measured without the schema."""
    text = _written(protocol)[0]
    bare = {"name": "set_timer", "parameters": {"type": "object"}}
    calls = tp.parse(text, protocol, [bare], {"coerce": "none"}).calls
    if calls and calls[0].arguments.get("minutes") == 5:
        return "written"
    return "from the schema"


def _ends(text: str, is_tagged: bool) -> tuple[str, str]:
    """What stands before the call and behind it; "" where nothing does."""
    begin = min(i for i in (text.find("set_timer"), text.find("{"), text.find("[{")) if i >= 0)
    if is_tagged:
        closer = re.search(r"\s*(?:\]<\]minimax\[>\[)?<[^<]*>\Z", text)
        return text[:begin], closer[0] if closer else ""
    end = max(text.rfind("}"), text.rfind("]"), text.rfind(")")) + 1
    return text[:begin], text[end:]


def _verdict(protocol: tp.Protocol, text: str) -> str:
    """What the format makes of a damaged text."""
    result = tp.parse(text, protocol, [TOOL])
    if not result.calls:
        return "text"
    call = result.calls[0]
    if not call.ok or not call.valid:
        return "refused"
    return "read" if call.arguments == CALLS[0] else "**wrong**"


def _forms() -> Iterator[str]:
    """Yield a section for each format: its shape in words, and two calls in one answer."""
    for name, protocol in protocols().items():
        yield f"### {name}"
        yield ""
        title = f"{protocol.title[0].upper()}{protocol.title[1:]}."
        yield title.replace("<", "&lt;")
        yield ""
        # A code block by indentation: some formats are fences themselves.
        yield from (f"    {line}" for line in two_calls(protocol).splitlines())
        yield ""


def two_calls(protocol: tp.Protocol) -> str:
    """Two calls in one answer, in a list or a section if the format has one; or one call, if a
    reader finds no second."""
    texts = _written(protocol)
    text = protocol.join_calls(texts)
    calls = [call for call in tp.parse(text, protocol, [TOOL]).calls if call.ok]
    return text if len(calls) == len(texts) else texts[0]
