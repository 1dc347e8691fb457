"""Formats of JSON between delimiters, a row of constants each.

A row says what is written, as a text with places, and what is read, as an envelope. See
`json/openers.py`.
"""

from __future__ import annotations

from dataclasses import replace

from ..base import Codec, Envelope, Grammar, Protocol
from ..results import JsonResult, ResultForm, TextResult
from .call import JsonCall
from .forms import CommandHeaders, JsonList, JsonOrCommand, JsonSection, NamedOrObject
from .header import Frame
from .mix import FramedGrammar, JsonGrammar
from .openers import BareJson, JsonHeaders
from .scan import JsonTags


def _row(
    id: str,
    title: str,
    written: str,
    envelope: Envelope,
    *,
    keys: tuple[str, str] = ("name", "arguments"),
    section: tuple[str, str] = ("", ""),
    between: str = "",
    tags: tuple[str, ...] = ("delimited",),
    results: ResultForm | None = None,
    aliases: tuple[str, ...] = (),
) -> Protocol:
    # written: `{call}` is an object with the name and the arguments under `keys`; where it is there
    # twice, several calls are one list. `{json}` is the arguments alone, after a header (see
    # `json/header.py`). section: around all such calls, with `between` between two of them.
    codec: Codec
    grammar: Grammar
    header, has_header, closer = written.partition("{json}")
    if has_header:
        codec = JsonSection(Frame(header, closer), *section, between)
        grammar = FramedGrammar(Frame(section[0] + header, closer + section[1]))
        tags = ("delimited", "section") if section[0] else tags
    else:
        opener, *several, closer = written.split("{call}")
        codec = JsonCall(opener, closer, *keys)
        if several:
            codec = JsonList(opener, closer, *keys, between=several[0])
        grammar = JsonGrammar(opener, closer, *keys)
    return Protocol(
        id=id,
        aliases=aliases,
        title=title,
        envelope=envelope,
        codec=codec,
        tags=frozenset(tags),
        results=results or JsonResult(),
        grammar=grammar,
    )


def _around(opener: str, closer: str) -> TextResult:
    return TextResult(lambda name, call_id, content: f"{opener}{content}{closer}", (opener, closer))


# Mistral: four generations of one token, any of which a model of the next one may fall back to. All
# are read, one is written.
_MISTRAL = JsonHeaders(
    (
        "[TOOL_CALLS]{ }{name}[CALL_ID]{id}[ARGS]",
        "[TOOL_CALLS]{ }{name}{ }[ARGS]",
        "[TOOL_CALLS]{ }{name}{ }",
        "[TOOL_CALLS]",
    ),
    lone=("{name}[ARGS]", "{name}"),
    first="[{",
    runs=True,
)


def _mistral(id: str, title: str, written: str, *aliases: str) -> Protocol:
    row = _row(id, title, written, _MISTRAL, aliases=aliases)
    is_list = "{call}" in written
    header = "[TOOL_CALLS]{name}[ARGS]" if is_list else written.partition("{json}")[0]
    objects = JsonList("[TOOL_CALLS] [", "]")
    codec = NamedOrObject(JsonSection(Frame(header)), objects, writes_list=is_list)
    return replace(row, codec=codec, results=_around("[TOOL_RESULTS]", "[/TOOL_RESULTS]"))


def _deepseek(id: str, title: str, bars: str, space: str, *, fenced: bool) -> Protocol:
    # A section of calls, in one generation with a code fence around the arguments. bars: the
    # characters for the bar in a token. space: for the space between its words.
    words = ("calls begin", "calls end", "call begin", "call end", "sep")
    start, stop, begin, end, sep = (f"<{bars}tool {w}{bars}>".replace(" ", space) for w in words)
    if fenced:
        header, closer = f"{begin}function{sep}{{name}}\n```json\n", f"\n```{end}"
        envelope = JsonHeaders(
            (
                f"{begin}{{any}}{sep}{{ }}{{name}}{{ }}```json{{ }}",
                f"{begin}{{any}}{sep}{{ }}{{name}}\n",
            ),
            (closer, f"```{end}", end),
            markup=(start, stop),
            lone=(f"function{sep}{{name}}\n```json\n", "function{name}\n```json\n"),
            first="{",
            sure=False,
        )
    else:
        header, closer = f"{begin}{{name}}{sep}", end
        lone = (f"{{name}}{sep}", "{name}")
        envelope = JsonHeaders((header,), (end,), markup=(start, stop), lone=lone, first="{")
    return _row(
        id,
        title,
        f"{header}{{json}}{closer}",
        envelope,
        section=(start, stop),
        between="\n" if fenced else "",
        results=_around("<｜tool▁output▁begin｜>", "<｜tool▁output▁end｜>"),
    )


# Sections with a token for each part

_PLAMO = {
    word: (f"<|plamo:begin_{word}:plamo|>", f"<|plamo:end_{word}:plamo|>")
    for word in ("tool_requests", "tool_request", "tool_name", "tool_arguments")
}
_PLAMO_HEAD = (
    f"{_PLAMO['tool_request'][0]}{{ }}{_PLAMO['tool_name'][0]}{{name}}{_PLAMO['tool_name'][1]}"
    f"{{ }}{_PLAMO['tool_arguments'][0]}"
)
_PLAMO_JSON = "<|plamo:constrain|>json<|plamo:msg|>"
_PLAMO_END = f"{_PLAMO['tool_arguments'][1]}{_PLAMO['tool_request'][1]}"

# What ends a message that is text: its own token, or the next message where that was left out.
_INKLING_ENDS = ("<|end_message|>", "<|message_model|>", "<|content_invoke_tool_json|>")
_COHERE_ENDS = ("<|END_RESPONSE|>", "<|END_TEXT|>", "<|START_ACTION|>", "<|START_THINKING|>")

_TOOL_CALL_ENDS = ("<|/tool_call|>", "</|tool_call|>", "</tool_call>")
_SOLAR_HEAD = "<|tool_call:begin|>{id}<|tool_call:name|>{name}<|tool_call:args|>"
_FENCE_ENDS = ("\n```", "```")

PROTOCOLS: tuple[Protocol, ...] = (
    # Mistral 7B v0.3, Nemo, Mixtral 8x22B, Small 3.0
    _mistral("mistral_v3", "a list after [TOOL_CALLS]", "[TOOL_CALLS] [{call}, {call}]"),
    _mistral("mistral_v11", "name and JSON after [TOOL_CALLS]", "[TOOL_CALLS]{name}{json}"),
    _mistral("mistral_v13_args", "name, [ARGS] and JSON after [TOOL_CALLS]",
             "[TOOL_CALLS]{name}[ARGS]{json}", "mistral"),
    _mistral("mistral_v11_call_id", "name, id and JSON after [TOOL_CALLS]",
             "[TOOL_CALLS]{name}[CALL_ID]{id}[ARGS]{json}"),
    _deepseek("deepseek_v3", "a section of fenced JSON", "｜", "▁", fenced=True),
    _deepseek("deepseek_v31", "a section of names and JSON", "｜", "▁", fenced=False),
    _deepseek("deepseek_r1_ascii", "a section of fenced JSON", "|", "_", fenced=True),
    # PLaMo 3; the token for JSON is at times left out
    _row("plamo3", "a section with a token for each part of a call",
         _PLAMO_HEAD.replace("{ }", "") + _PLAMO_JSON + "{json}" + _PLAMO_END,
         JsonHeaders((f"{_PLAMO_HEAD}{_PLAMO_JSON}", _PLAMO_HEAD),
                     (_PLAMO_END, _PLAMO["tool_arguments"][1]),
                     markup=(*_PLAMO["tool_requests"], _PLAMO["tool_request"][1])),
         section=_PLAMO["tool_requests"]),
    # Solar Open 100B: the id is first, and a section may be around the calls
    _row("solar_open", "calls with ids and a token for each part",
         _SOLAR_HEAD + "{json}<|tool_call:end|>",
         JsonHeaders((_SOLAR_HEAD, "<|tool_call:begin|>{name}<|tool_call:args|>"),
                     ("<|tool_call:end|>",), markup=("<|tool_calls|>", "<|calls|>"))),
    # Llama 3.1 with custom tools, Functionary 3.1; the opener is that of parameter tags too
    _row("llama31_function_tag", "JSON in <function=name>", "<function={name}>{json}</function>",
         JsonHeaders(("<function={name}>",), ("</function>",), first="{", sure=False)),
    # Step-Audio 2, and TeleChat 4 without parameter tags
    _row("step_audio_2", "name and JSON in <tool_call>",
         "<tool_call>function\n{name}\n{json}</tool_call>",
         JsonHeaders(("<tool_call>{ }function\n{name}{ }", "<tool_call>{ }{name}{ }"),
                     ("</tool_call>",), first="{", sure=False)),
    # seen once, in a report about GLM-5.3 Flash
    _row("glm53_flash", "name, > and JSON after <tool_call>", "<tool_call>{name}>{json}",
         JsonHeaders(("<tool_call>{ }{name}>{ }",), ("</tool_call>",),
                     first="{", sure=False, runs=True)),
    # CWM: what follows the name is JSON or a command. Models write the tool for the word
    # `function`, and no `>`.
    replace(
        _row("cwm", "name and JSON in <tool: …>", "<tool: function>\n{name} {json}\n</tool>",
             CommandHeaders(("<tool: {any}>{ }{name}{ }", "<tool: {name} "), ("</tool>",))),
        codec=JsonOrCommand(Frame("<tool: function>\n{name} ", "\n</tool>"))),
    # Functionary 3.2: `>>>all` is text, and the first sign may be in the prompt
    _row("functionary_v32", "name, line break and JSON after >>>", ">>>{name}\n{json}",
         JsonHeaders((">>>{name}\n",), lone=("{name}\n",), markup=(">>>all\n",),
                     first="{", sure=False, runs=True)),
    # Qwen 1.5 and 2 behind Qwen-Agent, which puts the first token into the prompt
    _row("qwen_agent_old", "name and JSON after ✿ tokens", "✿FUNCTION✿: {name}\n✿ARGS✿: {json}",
         JsonHeaders(("✿FUNCTION✿: {name}{ }✿ARGS✿:{ }", "✿FUNCTION✿:{ }{name}{ }✿ARGS✿:{ }"),
                     lone=(": {name}{ }✿ARGS✿:{ }",), markup=("✿RESULT✿", "✿RETURN✿"),
                     first="{", runs=True),
         between="\n",
         results=TextResult(lambda name, call_id, content: f"✿RESULT✿: {content}", ("✿",))),
    # LangChain's ReAct prompts; a bare text as input is refused, since no parameter is named
    _row("react", "Action and Action Input on lines of their own",
         "Action: {name}\nAction Input: {json}",
         JsonHeaders(("Action: {name}{ }Action Input:{ }",
                      "Action:{ }{name}{ }Action Input:{ }",
                      "Action:{ }`{name}`{ }Action Input:{ }",
                      "Action:{ }{name}{ }Action Input:{ }```json{ }",
                      "Action:{ }{name}{ }Action Input:{ }```{ }",
                      "**Action:**{ }{name}{ }**Action Input:**{ }"),
                     ("```",), first="{", sure=False, runs=True),
         between="\n",
         results=TextResult(lambda name, call_id, content: f"Observation: {content}",
                            ("Observation:",))),
    # Jamba 1.5 and 1.6, Apriel 1.5 and 1.6, Hunyuan-A13B
    _row("jamba", "a list in <tool_calls>", "<tool_calls>[{call}, {call}]</tool_calls>",
         JsonHeaders(("<tool_calls>",), ("</tool_calls>",), first="["), aliases=("hunyuan_a13b",)),
    # MiniMax-M1
    _row("minimax_m1", "JSON lines in <tool_calls>",
         "<tool_calls>\n{call}\n{call}\n</tool_calls>",
         JsonHeaders(("<tool_calls>",), ("</tool_calls>",), first="{")),
    # Nemotron Nano v2, Llama-Nemotron
    _row("nemotron_nano_v2", "a list in <TOOLCALL>", "<TOOLCALL>[{call}, {call}]</TOOLCALL>",
         JsonHeaders(("<TOOLCALL>",), ("</TOOLCALL>",)),
         results=JsonResult("<TOOL_RESPONSE>", "</TOOL_RESPONSE>")),
    # Command R7B, Command A, North Mini
    _row("command_r7b_a", "a list in an action",
         "<|START_ACTION|>[{call}, {call}]<|END_ACTION|>",
         JsonHeaders(("<|START_ACTION|>",), ("<|END_ACTION|>",),
                     markup=("<|END_RESPONSE|>", "<|END_TEXT|>"),
                     texts=(("<|START_RESPONSE|>", _COHERE_ENDS),
                            ("<|START_TEXT|>", _COHERE_ENDS))),
         keys=("tool_name", "parameters"),
         results=JsonResult("<|START_TOOL_RESULT|>", "<|END_TOOL_RESULT|>")),
    # openPangu 2; its first tokenizer has unused tokens in their place
    _row("openpangu", "a list between <|tool_call_start|> and its end",
         "<|tool_call_start|>[{call}, {call}]<|tool_call_end|>",
         JsonHeaders(("<|tool_call_start|>", "[unused11]"), ("<|tool_call_end|>", "[unused12]"),
                     first="[{", sure=False)),
    # HyperCLOVA X Think 14B: a message whose role names the recipient
    _row("hyperclovax_think_14b", "a list in a message to tool/function_call",
         "<|im_start|>assistant -> tool/function_call\n[{call}, {call}]<|im_end|>",
         JsonHeaders(("<|im_start|>assistant -> tool/function_call{ }",),
                     ("<|im_end|>", "<|stop|>", "<|endofturn|>"),
                     lone=(" -> tool/function_call{ }", "-> tool/function_call{ }"),
                     first="[{", sure=False)),
    # Granite 3.0, 3.2 and 3.3: no closer
    _row("granite3", "a list after <|tool_call|>", "<|tool_call|>[{call}, {call}]",
         JsonHeaders(("<|tool_call|>",), _TOOL_CALL_ENDS, alone=("<tool_call>{ }",),
                     first="[{", runs=True)),
    # Phi-4-mini's own tags
    _row("phi4_tool_tag", "a list in <|tool_call|>",
         "<|tool_call|>[{call}, {call}]<|/tool_call|>",
         JsonHeaders(("<|tool_call|>",), _TOOL_CALL_ENDS, first="[{", runs=True)),
    # Granite 3.1: the opener of Hermes before a list, and no closer
    _row("granite31_text", "a list after <tool_call>", "<tool_call>[{call}, {call}]",
         JsonHeaders(("<tool_call>",), ("</tool_call>",), first="[", sure=False, runs=True)),
    # Phi-4-mini as it was taught, FireFunction v2
    _row("phi4_mini", "a list after functools", "functools[{call}, {call}]",
         JsonHeaders(("functools{ }",), first="[{", sure=False, runs=True)),
    # Sarashina: the list may be Python's
    _row("sarashina", "a list, also of Python's literals, after <|tool_calls|>",
         "<|tool_calls|>[{call}, {call}]",
         JsonHeaders(("<|tool_calls|>",), first="[", sure=False, runs=True, quotes="\"'")),
    # Apertus 2509
    replace(
        _row("apertus", "a list of {name: arguments}",
             "<|tools_prefix|>[{call}, {call}]<|tools_suffix|>",
             JsonHeaders(("<|tools_prefix|>",), ("<|tools_suffix|>",))),
        codec=JsonList("<|tools_prefix|>[", "]<|tools_suffix|>", name_is_key=True),
        grammar=FramedGrammar(Frame('<|tools_prefix|>[{"{name}":', "}]<|tools_suffix|>"))),
    # LongCat-Flash: Hermes in other tags
    _row("longcat", "JSON in <longcat_tool_call>",
         "<longcat_tool_call>\n{call}\n</longcat_tool_call>",
         JsonTags(("<longcat_tool_call>",), ("</longcat_tool_call>",)),
         results=JsonResult("<longcat_tool_response>", "</longcat_tool_response>")),
    # K2 Horizon in its JSON mode
    _row("k2_horizon_json", "JSON in <ifm|tool_call>",
         "<ifm|tool_calls><ifm|tool_call>{call}</ifm|tool_call></ifm|tool_calls>",
         JsonHeaders(("<ifm|tool_call>",), ("</ifm|tool_call>",),
                     markup=("<ifm|tool_calls>", "</ifm|tool_calls>"), first="{[", sure=False)),
    # InternLM 2 and 2.5; Intern-S1 with a space and a line break
    _row("internlm2", "JSON between action tokens",
         "<|action_start|><|plugin|>\n{call}<|action_end|>",
         JsonHeaders(("<|action_start|>{ }<|plugin|>",), ("<|action_end|>",)),
         keys=("name", "parameters"), aliases=("interns1",)),
    # Inkling: the header repeats the name, which counts in the body
    _row("inkling", "JSON in a message that invokes a tool",
         "<|message_model|><|content_invoke_tool_json|>{call}<|end_message|>",
         JsonHeaders(("<|message_model|>{any}<|content_invoke_tool_json|>",
                      "<|content_invoke_tool_json|>"),
                     ("<|end_message|>",), markup=("<|end_message|>",),
                     texts=(("<|message_model|><|content_text|>", _INKLING_ENDS),
                            ("<|content_text|>", _INKLING_ENDS)),
                     thoughts=(("<|message_model|><|content_thinking|>", "<|end_message|>"),
                               ("<|content_thinking|>", "<|end_message|>"))),
         keys=("name", "args")),
    # Granite 20B for function calling
    _row("granite20b_fc", "JSON after <function_call>", "<function_call> {call}",
         JsonHeaders(("<function_call>",), ("</function_call>",),
                     first="{[", sure=False, runs=True)),
    # GigaChat 3
    _row("gigachat3", "JSON after a role", "function call<|role_sep|>\n{call}",
         JsonHeaders(("function call<|role_sep|>", "<|function_call|>"),
                     ("<|message_sep|>", "</s>"), first="{", runs=True)),
    # GigaChat 3.1
    _row("gigachat31", "JSON after <|function_call|>", "<|function_call|>{call}",
         JsonHeaders(("<|function_call|>",), ("<|message_sep|>", "</s>"), first="{", runs=True)),
    # Llama 3.1 and later with a Python environment; its built-in tools are no JSON
    _row("llama3_python_tag", "JSON after <|python_tag|>", "<|python_tag|>{call}",
         JsonHeaders(("<|python_tag|>",), ("<|eom_id|>", "<|eot_id|>"),
                     first="{[", sure=False, runs=True, separators=";,"),
         keys=("name", "parameters")),
    # No delimiters at all, or a code fence that any JSON may be in. Command R and R+ of 08-2024
    _row("command_r_plus", "a list in a json fence after Action:",
         "Action:\n```json\n[{call}, {call}]\n```",
         JsonHeaders(("Action:{ }```json{ }", "Action:{ }```{ }"), _FENCE_ENDS,
                     first="[{", sure=False),
         keys=("tool_name", "parameters")),
    # Llama 3.1, 3.2, 3.3 and 4 in JSON
    _row("llama3_json", "JSON with parameters, no delimiters", "{call}; {call}",
         BareJson(("<|eom_id|>", "<|eot_id|>"), ";,"),
         keys=("name", "parameters"), tags=("undelimited",), aliases=("llama4_json",)),
    # xLAM 1 and 2
    _row("xlam_array", "a list of objects, no delimiters", "[{call}, {call}]",
         BareJson(separators=",", wrapper="tool_calls"), tags=("undelimited",), aliases=("xlam",)),
    # Qwen2.5-Coder, RWKV, and small models off their template
    _row("markdown_json", "JSON in a json fence", "```json\n{call}\n```",
         JsonHeaders(("```json{ }", "```tool_call{ }", "```{ }"), _FENCE_ENDS,
                     first="[{", sure=False, speculative=True),
         tags=("delimited", "fence"), aliases=("rwkv",)),
    # GLM-4-9B and ChatGLM3: nothing but a known tool's name tells a call
    _row("glm4_9b", "name, line break and JSON, no delimiters", "{name}\n{json}",
         JsonHeaders((), lone=("{name}{ }",), first="{", runs=True), between="\n"),
    # The JSON of the Berkeley leaderboard's prompts, plain and in a tag
    _row("bfcl_json", "a list of objects with function and parameters, in a json fence",
         "```json\n[{call}, {call}]\n```",
         JsonHeaders(("```json{ }", "```{ }"), _FENCE_ENDS,
                     first="[{", sure=False, speculative=True),
         keys=("function", "parameters")),
    _row("bfcl_json_tag", "a list of objects with function and parameters, in <TOOLCALL>",
         "<TOOLCALL>[{call}, {call}]</TOOLCALL>",
         JsonHeaders(("<TOOLCALL>",), ("</TOOLCALL>",)), keys=("function", "parameters")),
)  # fmt: skip
