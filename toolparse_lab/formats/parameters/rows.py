"""The formats of the family that are constants alone, one row each.

`qwen3_coder_xml`, with its own prompt texts, is in `tags.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..base import Protocol, Signs
from .form import TagForm
from .namespaced import MINIMAX_M3
from .slots import SlotForm
from .tags import tag_protocol
from .variants import (
    Alikes,
    EscapedNames,
    HeadedCall,
    HeadedTags,
    JsonTexts,
    MaybeSuffixed,
    MessageTags,
    SuffixedBlocks,
    SuffixedCall,
    TokenCall,
    TokenTags,
)

# A block of functions and a call's tags, the function's name in its own tag. No engine reads
# references in these values but in those of `qwen3_coder_xml` and `minicpm5`.


def _invoked(opener: str, closer: str, prefix: str = "", **fields: Any) -> TagForm:
    words = f"{prefix}invoke", f"{prefix}parameter"
    fields = {"attribute": True, "trim": False, "entities": False, **fields}
    return TagForm(opener, closer, *words, **fields)


def _marked(word: str, opener: str) -> SlotForm:
    # word: the token, with the white space after it.
    return SlotForm(
        f"<{word}{opener}>",
        f"</{word}{opener}>",
        (f'<{word}invoke name="', '">'),
        f"</{word}invoke>",
        (f'<{word}parameter name="', '">'),
        f"</{word}parameter>",
        flag="string",
        boolean_flag=True,
    )


def _pairs(
    call: str = "tool_call",
    opener: str = "",
    *,
    prefix: str = "arg_",
    separator: str = "",
    suffix: str = "",
    lines: bool = False,
) -> SlotForm:
    # Keys and values in tags of their own, after a name. suffix: the text that every tag of a
    # checkpoint ends in.
    key, value = f"{prefix}key{suffix}", f"{prefix}value{suffix}"
    return SlotForm(
        f"<{opener}{suffix}>" if opener else "",
        f"</{opener}{suffix}>" if opener else "",
        (f"<{call}{suffix}>", f"<{separator}{suffix}>" if separator else ""),
        f"</{call}{suffix}>",
        (f"<{key}>", f"</{key}>", f"<{value}>"),
        f"</{value}>",
        lines=lines,
    )


def _with_marks(row: Protocol, *marks: str) -> Protocol:
    # What lost its brackets or tokens is no tag any more, but an attempt.
    return replace(row, signs=replace(row.signs or Signs(), marks=marks))


# Token and word of the tags that a row has as its own.
_OWN_SPELLINGS = frozenset(
    (token, word)
    for token, block in (
        ("｜DSML｜", "function_calls"),
        ("｜DSML｜", "tool_calls"),
        ("｜DSML｜ ", "calls"),
        ("｜GCML｜", "tool_calls"),
    )
    for word in (block, "invoke")
)


def _token_row(
    id: str, alias: str, word: str, opener: str, space: str = "", *, shared: bool = False
) -> Protocol:
    # space: after the token. shared: another row reads its other spellings, in `auto`.
    token = f"｜{word}｜"
    form, plain = _marked(token + space, opener), _marked(space, opener)
    alikes = Alikes(word, token + space, opener, _marked)
    elsewhere = None if shared else replace(alikes, of_others=_OWN_SPELLINGS)
    title = f"<{token}{space}invoke> in {form.opener}, values with a flag"
    return replace(
        tag_protocol(form, id, aliases=(alias,), title=title),
        envelope=TokenTags(form, alikes=alikes, plain=plain, elsewhere=elsewhere),
        codec=TokenCall(form, plain, alikes),
    )


def _suffixed(suffix: str) -> SlotForm:
    return _pairs(opener="tool_calls", separator="tool_sep", suffix=suffix, lines=True)


def _suffixed_v4(suffix: str) -> SlotForm:
    return _pairs(opener="tool_calls", suffix=suffix)


def _maybe_suffixed(id: str, alias: str, title: str, maker: Callable[[str], SlotForm]) -> Protocol:
    return replace(
        tag_protocol(maker(""), id, aliases=(alias,), title=title),
        envelope=MaybeSuffixed(maker(""), suffixed=SuffixedBlocks("tool_calls", maker)),
        codec=SuffixedCall(maker, ""),
    )


_MUSE = _invoked("<atem:function_calls>", "</atem:function_calls>", "atem:")
_BEAM = _invoked("", "", "rfl:", trim=True, lines=False)
_KIMI_K3 = tag_protocol(
    SlotForm(
        "<|open|>tools<|sep|>", "<|close|>tools<|sep|>",
        ('<|open|>call tool="', '"<|sep|>'), "<|close|>call<|sep|>",
        ('<|open|>argument key="', '"<|sep|>'), "<|close|>argument<|sep|>",
        flag="type", counter="index",
        markup=("<|open|>response<|sep|>", "<|close|>response<|sep|>", "<|close|>message<|sep|>",
                "<|end_of_msg|>"),
    ),
    "kimi_k3_xtml", aliases=("kimi_k3",),
    title="calls and arguments between <|open|> and <|close|>, values with their types",
)  # fmt: skip
GLM45 = tag_protocol(
    _pairs(lines=True), "glm45_newline", aliases=("glm45", "poolside_v1", "spark25"),
    title="<arg_key> and <arg_value> in <tool_call>, on lines",
)  # fmt: skip

PROTOCOLS: tuple[Protocol, ...] = (
    tag_protocol(TagForm("", "", "function", "param", True, False, False, wrapper="arguments"),
                 "minicpm5", title="<function name> and <param name>"),
    tag_protocol(TagForm(trim=False, lines=False, entities=False), "mimo_compact",
                 title="<function=…> and <parameter=…> in <tool_call>, values verbatim"),
    tag_protocol(TagForm("<seed:tool_call>", "</seed:tool_call>", entities=False), "seed_oss",
                 title="<function=…> and <parameter=…> in <seed:tool_call>"),
    tag_protocol(_invoked("<function_calls>", "</function_calls>"), "anthropic_legacy",
                 title="<invoke> and <parameter> in <function_calls>"),
    _with_marks(
        tag_protocol(_invoked("<minimax:tool_call>", "</minimax:tool_call>"), "minimax_m2",
                     title="<invoke> and <parameter> in <minimax:tool_call>"),
        r"(?:^|[\s>])invoke name=\"[\w.:-]{1,128}\">\s{0,8}<?parameter name="),
    tag_protocol(_invoked("<dots_function_call>", "</dots_function_call>", trim=True, inline=True),
                 "dots", title="<invoke> and <parameter> in <dots_function_call>"),
    replace(tag_protocol(_MUSE, "muse_atem", title="<atem:invoke> in messages",
                         aliases=("muse", "muse_glimmer", "musespark1x")),
            envelope=MessageTags(_MUSE)),
    tag_protocol(_invoked("<｜tool_call_begin｜>function<｜tool_sep｜>", "<｜tool_call_end｜>",
                          "steptml:", trim=True, lines=False,
                          markup=("<｜tool_calls_begin｜>", "<｜tool_calls_end｜>")),
                 "step3", title="<steptml:invoke> in a section of calls"),
    replace(tag_protocol(_BEAM, "beam",
                         title="<rfl:parameter> after a header that names the tool"),
            envelope=HeadedTags(_BEAM), codec=HeadedCall(_BEAM), grammar=None),
    _token_row("deepseek_v32_dsml", "deepseek_v32", "DSML", "function_calls", shared=True),
    _token_row("deepseek_v4_dsml", "deepseek_v4", "DSML", "tool_calls"),
    _token_row("deepseek_v41_dsml", "deepseek_v41", "DSML", "calls", " ", shared=True),
    _token_row("gigachat35_gcml", "gigachat35", "GCML", "tool_calls"),
    # Without the tokens, which some proxies drop, nothing says where a value ends.
    _with_marks(replace(_KIMI_K3, codec=EscapedNames(_KIMI_K3.codec)),
                r'call tool="[\w.:-]{1,128}"(?: index="\d{1,4}")?(?:argument key="|call)'),
    # HyperCLOVA X SEED Think: the tags of GLM-4.5, around values in JSON.
    replace(GLM45, id="hyperclovax_seed_think", aliases=(), codec=JsonTexts(GLM45.codec),
            title="<arg_key> and <arg_value> in <tool_call>, on lines, texts in quotes"),
    tag_protocol(_pairs(), "glm47_compact", aliases=("glm47", "ling3"),
                 title="<arg_key> and <arg_value> in <tool_call>"),
    tag_protocol(_pairs("iquestcoder_tool_call"), "iquest_coder_v2",
                 title="<arg_key> and <arg_value> in <iquestcoder_tool_call>"),
    tag_protocol(_pairs("iquest_tool_call"), "iquest_q1",
                 title="<arg_key> and <arg_value> in <iquest_tool_call>"),
    tag_protocol(_pairs(prefix="param_"), "telechat4", aliases=("xing4_0",),
                 title="<param_key> and <param_value> in <tool_call>"),
    _maybe_suffixed("hunyuan_v3", "hy_v3",
                    "<arg_key> and <arg_value> after <tool_sep>, in <tool_calls>", _suffixed),
    _maybe_suffixed("hunyuan_v4", "hy_v4", "<arg_key> and <arg_value> in <tool_calls>",
                    _suffixed_v4),
    replace(tag_protocol(
                _suffixed(":opensource"), "hunyuan_v3_suffix",
                title="<arg_key> and <arg_value> whose tags end in the name of a checkpoint"),
            envelope=SuffixedBlocks("tool_calls", _suffixed),
            codec=SuffixedCall(_suffixed, ":opensource")),
    tag_protocol(replace(_pairs("ifm|tool_call", "ifm|tool_calls", prefix="ifm|arg_"),
                         types=("<ifm|arg_type>", "</ifm|arg_type>")),
                 "k2_horizon_xml", aliases=("k2_horizon",),
                 title="<ifm|arg_key> and <ifm|arg_value> in <ifm|tool_calls>"),
    tag_protocol(SlotForm("", "", ("<|tool_call:start|>", ""), "<|tool_call:end|>",
                          ("<|tool_arg:start|>", "<|tool_arg:value|>"), "<|tool_arg:end|>",
                          lines=True),
                 "solar_open2",
                 title="<|tool_arg:start|> and <|tool_arg:value|> in <|tool_call:start|>"),
    MINIMAX_M3,
)  # fmt: skip
