"""Formats of JSON between delimiters, a row of constants each.

See `json/openers.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..base import Protocol
from ..results import JsonResult, ResultForm, TextResult
from ..tags import JsonTags
from .bare import BareJson
from .call import JsonCall
from .forms import CommandHeaders, JsonList, JsonOrCommand, JsonSection, NamedOrObject
from .grammar import Frame, FramedGrammar, JsonGrammar
from .openers import JsonHeaders

_DELIMITED = frozenset(("delimited",))
_SECTION = frozenset(("delimited", "section"))


def _listed(
    id: str,
    title: str,
    envelope: JsonHeaders,
    *,
    opener: str,
    closer: str = "]",
    keys: tuple[str, str] = ("name", "arguments"),
    between: str = ", ",
    results: ResultForm | None = None,
    aliases: tuple[str, ...] = (),
) -> Protocol:
    # opener, closer: of a list that is written, brackets included. keys: of name and arguments.
    return Protocol(
        id=id,
        aliases=aliases,
        title=title,
        envelope=envelope,
        codec=JsonList(opener, closer, *keys, between=between),
        tags=_DELIMITED,
        results=results or JsonResult(),
        grammar=JsonGrammar(opener, closer, *keys),
    )


def _named(
    id: str,
    title: str,
    envelope: JsonHeaders,
    template: str,
    *,
    closer: str = "",
    section: tuple[str, str] = ("", ""),
    between: str = "",
    results: ResultForm | None = None,
    aliases: tuple[str, ...] = (),
) -> Protocol:
    # template, closer: of a call that is written. section: around all calls.
    whole = Frame(section[0] + template, closer + section[1])
    return Protocol(
        id=id,
        aliases=aliases,
        title=title,
        envelope=envelope,
        codec=JsonSection(Frame(template, closer), *section, between),
        tags=_SECTION if section[0] else _DELIMITED,
        results=results or JsonResult(),
        grammar=FramedGrammar(whole),
    )


def _around(opener: str, closer: str) -> Callable[[str, str, str], str]:
    return lambda name, call_id, content: f"{opener}{content}{closer}"


# Mistral: four generations of one token, any of which a model of the next one may fall back to

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
_MISTRAL_RESULT = TextResult(
    _around("[TOOL_RESULTS]", "[/TOOL_RESULTS]"), ("[TOOL_RESULTS]", "[/TOOL_RESULTS]")
)
_MISTRAL_LIST = JsonList("[TOOL_CALLS] [", "]")


def _mistral(id: str, title: str, template: str, aliases: tuple[str, ...] = ()) -> Protocol:
    # All generations are read, one is written. template: "" for the list.
    frame = Frame(template or "[TOOL_CALLS]{name}[ARGS]")
    grammar = FramedGrammar(frame) if template else JsonGrammar("[TOOL_CALLS] [", "]")
    return Protocol(
        id=id,
        aliases=aliases,
        title=title,
        envelope=_MISTRAL,
        codec=NamedOrObject(JsonSection(frame), _MISTRAL_LIST, writes_list=not template),
        tags=_DELIMITED,
        results=_MISTRAL_RESULT,
        grammar=grammar,
    )


# DeepSeek: a section of calls, in one generation with a code fence around the arguments


def _deepseek(bars: str, space: str) -> tuple[JsonHeaders, JsonHeaders, dict[str, str]]:
    # (fenced envelope, plain envelope, tokens) in one of several spellings. bars: the characters
    # for the bar in a token. space: for the space between its words.
    words = ("calls begin", "calls end", "call begin", "call end", "sep")
    tokens = {w: f"<{bars}tool {w}{bars}>".replace(" ", space) for w in words}
    begin, end, sep = tokens["call begin"], tokens["call end"], tokens["sep"]
    markup = (tokens["calls begin"], tokens["calls end"])
    fenced = JsonHeaders(
        (
            f"{begin}{{any}}{sep}{{ }}{{name}}{{ }}```json{{ }}",
            f"{begin}{{any}}{sep}{{ }}{{name}}\n",
        ),
        (f"\n```{end}", f"```{end}", end),
        markup=markup,
        lone=(f"function{sep}{{name}}\n```json\n", "function{name}\n```json\n"),
        first="{",
        sure=False,
    )
    lone = (f"{{name}}{sep}", "{name}")
    plain = JsonHeaders((f"{begin}{{name}}{sep}",), (end,), markup=markup, lone=lone, first="{")
    return fenced, plain, tokens


_DEEPSEEK_V3, _DEEPSEEK_V31, _WIDE = _deepseek("｜", "▁")
_DEEPSEEK_R1, _, _ASCII = _deepseek("|", "_")
_DEEPSEEK_RESULT = TextResult(
    _around("<｜tool▁output▁begin｜>", "<｜tool▁output▁end｜>"),
    ("<｜tool▁output▁begin｜>", "<｜tool▁output▁end｜>"),
)


def _deepseek_row(id: str, title: str, envelope: JsonHeaders, tokens: dict[str, str]) -> Protocol:
    fenced = envelope is not _DEEPSEEK_V31
    begin, end, sep = tokens["call begin"], tokens["call end"], tokens["sep"]
    template = f"{begin}function{sep}{{name}}\n```json\n" if fenced else f"{begin}{{name}}{sep}"
    return _named(
        id,
        title,
        envelope,
        template,
        closer=f"\n```{end}" if fenced else end,
        section=(tokens["calls begin"], tokens["calls end"]),
        between="\n" if fenced else "",
        results=_DEEPSEEK_RESULT,
    )


# CWM: what follows the name is JSON or a command
_CWM_FRAME = Frame("<tool: function>\n{name} ", "\n</tool>")
_CWM = replace(
    _named(
        "cwm",
        "name and JSON in <tool: …>",
        # Models write the tool for the word `function`, and no `>`.
        CommandHeaders(("<tool: {any}>{ }{name}{ }", "<tool: {name} "), ("</tool>",)),
        "<tool: function>\n{name} ",
        closer="\n</tool>",
    ),
    codec=JsonOrCommand(_CWM_FRAME),
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

PROTOCOLS: tuple[Protocol, ...] = (
    # Mistral 7B v0.3, Nemo, Mixtral 8x22B, Small 3.0
    _mistral("mistral_v3", "a list behind [TOOL_CALLS]", ""),
    _mistral("mistral_v11", "name and JSON behind [TOOL_CALLS]", "[TOOL_CALLS]{name}"),
    _mistral(
        "mistral_v13_args",
        "name, [ARGS] and JSON behind [TOOL_CALLS]",
        "[TOOL_CALLS]{name}[ARGS]",
        aliases=("mistral",),
    ),
    _mistral(
        "mistral_v11_call_id",
        "name, id and JSON behind [TOOL_CALLS]",
        "[TOOL_CALLS]{name}[CALL_ID]{id}[ARGS]",
    ),
    _deepseek_row("deepseek_v3", "a section of fenced JSON", _DEEPSEEK_V3, _WIDE),
    _deepseek_row("deepseek_v31", "a section of names and JSON", _DEEPSEEK_V31, _WIDE),
    _deepseek_row("deepseek_r1_ascii", "a section of fenced JSON", _DEEPSEEK_R1, _ASCII),
    # PLaMo 3; the token for JSON is at times left out
    _named(
        "plamo3",
        "a section with a token for each part of a call",
        JsonHeaders(
            (f"{_PLAMO_HEAD}{_PLAMO_JSON}", _PLAMO_HEAD),
            (_PLAMO_END, *(_PLAMO["tool_arguments"][1],)),
            markup=(*_PLAMO["tool_requests"], _PLAMO["tool_request"][1]),
        ),
        _PLAMO_HEAD.replace("{ }", "") + _PLAMO_JSON,
        closer=_PLAMO_END,
        section=_PLAMO["tool_requests"],
    ),
    # Solar Open 100B: the id is first, and a section may be around the calls
    _named(
        "solar_open",
        "calls with ids and a token for each part",
        JsonHeaders(
            (_SOLAR_HEAD, "<|tool_call:begin|>{name}<|tool_call:args|>"),
            ("<|tool_call:end|>",),
            markup=("<|tool_calls|>", "<|calls|>"),
        ),
        _SOLAR_HEAD,
        closer="<|tool_call:end|>",
    ),
    # Llama 3.1 with custom tools, Functionary 3.1; the opener is that of parameter tags too
    _named(
        "llama31_function_tag",
        "JSON in <function=name>",
        JsonHeaders(("<function={name}>",), ("</function>",), first="{", sure=False),
        "<function={name}>",
        closer="</function>",
    ),
    # Step-Audio 2, and TeleChat 4 without parameter tags
    _named(
        "step_audio_2",
        "name and JSON in <tool_call>",
        JsonHeaders(
            ("<tool_call>{ }function\n{name}{ }", "<tool_call>{ }{name}{ }"),
            ("</tool_call>",),
            first="{",
            sure=False,
        ),
        "<tool_call>function\n{name}\n",
        closer="</tool_call>",
    ),
    # seen once, in a report about GLM-5.3 Flash
    _named(
        "glm53_flash",
        "name, > and JSON behind <tool_call>",
        JsonHeaders(
            ("<tool_call>{ }{name}>{ }",), ("</tool_call>",), first="{", sure=False, runs=True
        ),
        "<tool_call>{name}>",
    ),
    # CWM
    _CWM,
    # Functionary 3.2: `>>>all` is text, and the first sign may be in the prompt
    _named(
        "functionary_v32",
        "name, line break and JSON behind >>>",
        JsonHeaders(
            (">>>{name}\n",),
            lone=("{name}\n",),
            markup=(">>>all\n",),
            first="{",
            sure=False,
            runs=True,
        ),
        ">>>{name}\n",
    ),
    # Qwen 1.5 and 2 behind Qwen-Agent, which puts the first token into the prompt
    _named(
        "qwen_agent_old",
        "name and JSON behind ✿ tokens",
        JsonHeaders(
            ("✿FUNCTION✿: {name}{ }✿ARGS✿:{ }", "✿FUNCTION✿:{ }{name}{ }✿ARGS✿:{ }"),
            lone=(": {name}{ }✿ARGS✿:{ }",),
            markup=("✿RESULT✿", "✿RETURN✿"),
            first="{",
            runs=True,
        ),
        "✿FUNCTION✿: {name}\n✿ARGS✿: ",
        between="\n",
        results=TextResult(lambda name, call_id, content: f"✿RESULT✿: {content}", ("✿",)),
    ),
    # LangChain's ReAct prompts; a bare text as input is refused, since no parameter is named
    _named(
        "react",
        "Action and Action Input on lines of their own",
        JsonHeaders(
            (
                "Action: {name}{ }Action Input:{ }",
                "Action:{ }{name}{ }Action Input:{ }",
                "Action:{ }`{name}`{ }Action Input:{ }",
                "Action:{ }{name}{ }Action Input:{ }```json{ }",
                "Action:{ }{name}{ }Action Input:{ }```{ }",
                "**Action:**{ }{name}{ }**Action Input:**{ }",
            ),
            ("```",),
            first="{",
            sure=False,
            runs=True,
        ),
        "Action: {name}\nAction Input: ",
        between="\n",
        results=TextResult(
            lambda name, call_id, content: f"Observation: {content}", ("Observation:",)
        ),
    ),
    # Jamba 1.5 and 1.6, Apriel 1.5 and 1.6, Hunyuan-A13B
    _listed(
        "jamba",
        "a list in <tool_calls>",
        JsonHeaders(("<tool_calls>",), ("</tool_calls>",), first="["),
        opener="<tool_calls>[",
        closer="]</tool_calls>",
        aliases=("hunyuan_a13b",),
    ),
    # MiniMax-M1
    _listed(
        "minimax_m1",
        "JSON lines in <tool_calls>",
        JsonHeaders(("<tool_calls>",), ("</tool_calls>",), first="{"),
        opener="<tool_calls>\n",
        closer="\n</tool_calls>",
        between="\n",
    ),
    # Nemotron Nano v2, Llama-Nemotron
    _listed(
        "nemotron_nano_v2",
        "a list in <TOOLCALL>",
        JsonHeaders(("<TOOLCALL>",), ("</TOOLCALL>",)),
        opener="<TOOLCALL>[",
        closer="]</TOOLCALL>",
        results=JsonResult("<TOOL_RESPONSE>", "</TOOL_RESPONSE>"),
    ),
    # Command R7B, Command A, North Mini
    _listed(
        "command_r7b_a",
        "a list in an action",
        JsonHeaders(
            ("<|START_ACTION|>",),
            ("<|END_ACTION|>",),
            markup=("<|END_RESPONSE|>", "<|END_TEXT|>"),
            texts=(("<|START_RESPONSE|>", _COHERE_ENDS), ("<|START_TEXT|>", _COHERE_ENDS)),
        ),
        opener="<|START_ACTION|>[",
        closer="]<|END_ACTION|>",
        keys=("tool_name", "parameters"),
        results=JsonResult("<|START_TOOL_RESULT|>", "<|END_TOOL_RESULT|>"),
    ),
    # openPangu 2; its first tokenizer has unused tokens in their place
    _listed(
        "openpangu",
        "a list between <|tool_call_start|> and its end",
        JsonHeaders(
            ("<|tool_call_start|>", "[unused11]"),
            ("<|tool_call_end|>", "[unused12]"),
            first="[{",
            sure=False,
        ),
        opener="<|tool_call_start|>[",
        closer="]<|tool_call_end|>",
    ),
    # HyperCLOVA X Think 14B: a message whose role names the recipient
    _listed(
        "hyperclovax_think_14b",
        "a list in a message to tool/function_call",
        JsonHeaders(
            ("<|im_start|>assistant -> tool/function_call{ }",),
            ("<|im_end|>", "<|stop|>", "<|endofturn|>"),
            lone=(" -> tool/function_call{ }", "-> tool/function_call{ }"),
            first="[{",
            sure=False,
        ),
        opener="<|im_start|>assistant -> tool/function_call\n[",
        closer="]<|im_end|>",
    ),
    # Granite 3.0, 3.2 and 3.3: no closer
    _listed(
        "granite3",
        "a list behind <|tool_call|>",
        JsonHeaders(
            ("<|tool_call|>",), _TOOL_CALL_ENDS, alone=("<tool_call>{ }",), first="[{", runs=True
        ),
        opener="<|tool_call|>[",
    ),
    # Phi-4-mini's own tags
    _listed(
        "phi4_tool_tag",
        "a list in <|tool_call|>",
        JsonHeaders(("<|tool_call|>",), _TOOL_CALL_ENDS, first="[{", runs=True),
        opener="<|tool_call|>[",
        closer="]<|/tool_call|>",
    ),
    # Granite 3.1: the opener of Hermes before a list, and no closer
    _listed(
        "granite31_text",
        "a list behind <tool_call>",
        JsonHeaders(("<tool_call>",), ("</tool_call>",), first="[", sure=False, runs=True),
        opener="<tool_call>[",
    ),
    # Phi-4-mini as it was taught, FireFunction v2
    _listed(
        "phi4_mini",
        "a list behind functools",
        JsonHeaders(("functools{ }",), first="[{", sure=False, runs=True),
        opener="functools[",
    ),
    # Sarashina: the list may be Python's
    _listed(
        "sarashina",
        "a list, also of Python's literals, behind <|tool_calls|>",
        JsonHeaders(("<|tool_calls|>",), first="[", sure=False, runs=True, quotes="\"'"),
        opener="<|tool_calls|>[",
    ),
)
PROTOCOLS += (
    # Apertus 2509
    Protocol(
        id="apertus",
        title="a list of {name: arguments}",
        envelope=JsonHeaders(("<|tools_prefix|>",), ("<|tools_suffix|>",)),
        codec=JsonList("<|tools_prefix|>[", "]<|tools_suffix|>", name_is_key=True),
        tags=_DELIMITED,
        grammar=FramedGrammar(Frame('<|tools_prefix|>[{"{name}":', "}]<|tools_suffix|>")),
    ),
)


def _objects(
    id: str,
    title: str,
    envelope: JsonHeaders,
    opener: str,
    closer: str = "",
    *,
    keys: tuple[str, str] = ("name", "arguments"),
    aliases: tuple[str, ...] = (),
) -> Protocol:
    return Protocol(
        id=id,
        aliases=aliases,
        title=title,
        envelope=envelope,
        codec=JsonCall(opener, closer, *keys),
        tags=_DELIMITED,
        grammar=JsonGrammar(opener, closer, *keys),
    )


PROTOCOLS += (
    # LongCat-Flash: Hermes in other tags
    Protocol(
        id="longcat",
        title="JSON in <longcat_tool_call>",
        envelope=JsonTags(("<longcat_tool_call>",), ("</longcat_tool_call>",)),
        codec=JsonCall("<longcat_tool_call>\n", "\n</longcat_tool_call>"),
        tags=_DELIMITED,
        results=JsonResult("<longcat_tool_response>", "</longcat_tool_response>"),
        grammar=JsonGrammar("<longcat_tool_call>\n", "\n</longcat_tool_call>"),
    ),
    # K2 Horizon in its JSON mode
    _objects(
        "k2_horizon_json",
        "JSON in <ifm|tool_call>",
        JsonHeaders(
            ("<ifm|tool_call>",),
            ("</ifm|tool_call>",),
            markup=("<ifm|tool_calls>", "</ifm|tool_calls>"),
            first="{[",
            sure=False,
        ),
        "<ifm|tool_calls><ifm|tool_call>",
        "</ifm|tool_call></ifm|tool_calls>",
    ),
    # InternLM 2 and 2.5; Intern-S1 with a space and a line break
    _objects(
        "internlm2",
        "JSON between action tokens",
        JsonHeaders(("<|action_start|>{ }<|plugin|>",), ("<|action_end|>",)),
        "<|action_start|><|plugin|>\n",
        "<|action_end|>",
        keys=("name", "parameters"),
        aliases=("interns1",),
    ),
    # Inkling: the header repeats the name, which counts in the body
    _objects(
        "inkling",
        "JSON in a message that invokes a tool",
        JsonHeaders(
            ("<|message_model|>{any}<|content_invoke_tool_json|>", "<|content_invoke_tool_json|>"),
            ("<|end_message|>",),
            markup=("<|end_message|>",),
            texts=(
                ("<|message_model|><|content_text|>", _INKLING_ENDS),
                ("<|content_text|>", _INKLING_ENDS),
            ),
            thoughts=(
                ("<|message_model|><|content_thinking|>", "<|end_message|>"),
                ("<|content_thinking|>", "<|end_message|>"),
            ),
        ),
        "<|message_model|><|content_invoke_tool_json|>",
        "<|end_message|>",
        keys=("name", "args"),
    ),
    # Granite 20B for function calling
    _objects(
        "granite20b_fc",
        "JSON behind <function_call>",
        JsonHeaders(("<function_call>",), ("</function_call>",), first="{[", sure=False, runs=True),
        "<function_call> ",
    ),
    # GigaChat 3
    _objects(
        "gigachat3",
        "JSON behind a role",
        JsonHeaders(
            ("function call<|role_sep|>", "<|function_call|>"),
            ("<|message_sep|>", "</s>"),
            first="{",
            runs=True,
        ),
        "function call<|role_sep|>\n",
    ),
    # GigaChat 3.1
    _objects(
        "gigachat31",
        "JSON behind <|function_call|>",
        JsonHeaders(("<|function_call|>",), ("<|message_sep|>", "</s>"), first="{", runs=True),
        "<|function_call|>",
    ),
    # Llama 3.1 and later with a Python environment; its built-in tools are no JSON
    _objects(
        "llama3_python_tag",
        "JSON behind <|python_tag|>",
        JsonHeaders(
            ("<|python_tag|>",),
            ("<|eom_id|>", "<|eot_id|>"),
            first="{[",
            sure=False,
            runs=True,
            separators=";,",
        ),
        "<|python_tag|>",
        keys=("name", "parameters"),
    ),
)


# No delimiters at all, or a code fence that any JSON may be in

PROTOCOLS += (
    # Command R and R+ of 08-2024
    _listed(
        "command_r_plus",
        "a list in a json fence behind Action:",
        JsonHeaders(
            ("Action:{ }```json{ }", "Action:{ }```{ }"), ("\n```", "```"), first="[{", sure=False
        ),
        opener="Action:\n```json\n[",
        closer="]\n```",
        keys=("tool_name", "parameters"),
    ),
    # Llama 3.1, 3.2, 3.3 and 4 in JSON
    Protocol(
        id="llama3_json",
        aliases=("llama4_json",),
        title="JSON with parameters, no delimiters",
        envelope=BareJson(("<|eom_id|>", "<|eot_id|>"), ";,"),
        codec=JsonList("", "", "name", "parameters", between="; "),
        tags=frozenset(("undelimited",)),
        grammar=JsonGrammar("", "", "name", "parameters"),
    ),
    # xLAM 1 and 2
    Protocol(
        id="xlam_array",
        aliases=("xlam",),
        title="a list of objects, no delimiters",
        envelope=BareJson(separators=",", wrapper="tool_calls"),
        codec=JsonList("[", "]"),
        tags=frozenset(("undelimited",)),
        grammar=JsonGrammar("[", "]"),
    ),
    # Qwen2.5-Coder, RWKV, and small models off their template
    Protocol(
        id="markdown_json",
        aliases=("rwkv",),
        title="JSON in a json fence",
        envelope=JsonHeaders(
            ("```json{ }", "```tool_call{ }", "```{ }"),
            ("\n```", "```"),
            first="[{",
            sure=False,
            speculative=True,
        ),
        codec=JsonCall("```json\n", "\n```"),
        tags=frozenset(("delimited", "fence")),
        grammar=JsonGrammar("```json\n", "\n```"),
    ),
    # GLM-4-9B and ChatGLM3: nothing but a known tool's name tells a call
    _named(
        "glm4_9b",
        "name, line break and JSON, no delimiters",
        JsonHeaders((), lone=("{name}{ }",), first="{", runs=True),
        "{name}\n",
        between="\n",
    ),
    # The JSON of the Berkeley leaderboard's prompts, plain and in a tag
    _listed(
        "bfcl_json",
        "a list of objects with function and parameters, in a json fence",
        JsonHeaders(
            ("```json{ }", "```{ }"), ("\n```", "```"), first="[{", sure=False, speculative=True
        ),
        opener="```json\n[",
        closer="]\n```",
        keys=("function", "parameters"),
    ),
    _listed(
        "bfcl_json_tag",
        "a list of objects with function and parameters, in <TOOLCALL>",
        JsonHeaders(("<TOOLCALL>",), ("</TOOLCALL>",)),
        opener="<TOOLCALL>[",
        closer="]</TOOLCALL>",
        keys=("function", "parameters"),
    ),
)
