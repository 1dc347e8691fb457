"""The formats of the family that are constants alone, one row each.

`qwen3_coder_xml`, with its own prompt texts, stands in `tags.py`.
"""

from __future__ import annotations

from dataclasses import replace

from ..base import Protocol, Signs
from .form import SlotForm, TagForm
from .namespaced import MINIMAX_M3
from .tags import tag_protocol
from .variants import (
    AlikeBlocks,
    EscapedNames,
    HeadedCall,
    HeadedTags,
    JsonTexts,
    MaybeSuffixed,
    MaybeUnmarked,
    MaybeUnmarkedCall,
    MessageTags,
    SuffixedBlocks,
    SuffixedCall,
)

# Tags that are words, the function's name in its own tag. No engine reads references in these
# values but in those of `qwen3_coder_xml` and `minicpm5`.


def _invoked(
    opener: str,
    closer: str,
    prefix: str = "",
    *,
    trim: bool = False,
    lines: bool = True,
    inline: bool = False,
    markup: tuple[str, ...] = (),
) -> TagForm:
    return TagForm(
        opener,
        closer,
        f"{prefix}invoke",
        f"{prefix}parameter",
        attribute=True,
        trim=trim,
        lines=lines,
        entities=False,
        markup=markup,
        inline=inline,
    )


MIMO_COMPACT = tag_protocol(
    TagForm(trim=False, lines=False, entities=False),
    "mimo_compact",
    title="<function=…> and <parameter=…> in <tool_call>, values verbatim",
)
SEED_OSS = tag_protocol(
    TagForm("<seed:tool_call>", "</seed:tool_call>", entities=False),
    "seed_oss",
    title="<function=…> and <parameter=…> in <seed:tool_call>",
)
ANTHROPIC_LEGACY = tag_protocol(
    _invoked("<function_calls>", "</function_calls>"),
    "anthropic_legacy",
    title="<invoke> and <parameter> in <function_calls>",
)
_MINIMAX_M2_TAGS = tag_protocol(
    _invoked("<minimax:tool_call>", "</minimax:tool_call>"),
    "minimax_m2",
    title="<invoke> and <parameter> in <minimax:tool_call>",
)
# Tags that lost their brackets are no tags any more, but an attempt.
MINIMAX_M2 = replace(
    _MINIMAX_M2_TAGS,
    signs=replace(
        _MINIMAX_M2_TAGS.signs or Signs(),
        marks=(r"(?:^|[\s>])invoke name=\"[\w.:-]{1,128}\">\s{0,8}<?parameter name=",),
    ),
)
DOTS = tag_protocol(
    _invoked("<dots_function_call>", "</dots_function_call>", trim=True, inline=True),
    "dots",
    title="<invoke> and <parameter> in <dots_function_call>",
)
MINICPM5 = tag_protocol(
    TagForm("", "", "function", "param", True, False, False, wrapper="arguments"),
    "minicpm5",
    title="<function name> and <param name>",
)
STEP3 = tag_protocol(
    _invoked(
        "<｜tool_call_begin｜>function<｜tool_sep｜>",
        "<｜tool_call_end｜>",
        "steptml:",
        trim=True,
        lines=False,
        markup=("<｜tool_calls_begin｜>", "<｜tool_calls_end｜>"),
    ),
    "step3",
    title="<steptml:invoke> in a section of calls",
)


_MUSE_FORM = _invoked("<atem:function_calls>", "</atem:function_calls>", "atem:")
_BEAM_FORM = _invoked("", "", "rfl:", trim=True, lines=False)


# Tags that are literals around a name.


def _marked(word: str, opener: str, markup: tuple[str, ...] = ()) -> SlotForm:
    # word: the token, with the white space after it.
    return SlotForm(
        f"<{word}{opener}>",
        f"</{word}{opener}>",
        (f'<{word}invoke name="', '">'),
        f"</{word}invoke>",
        (f'<{word}parameter name="', '">'),
        f"</{word}parameter>",
        markup=markup,
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
    """Return the form of keys and values in tags of their own, after a name. suffix: the text that
    every tag of a checkpoint ends in.
    """
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
    alikes = AlikeBlocks(word, token + space, opener, _marked)
    return replace(
        tag_protocol(
            form,
            id,
            aliases=(alias,),
            title=f"<{token}{space}invoke> in {form.opener}, values with a flag",
        ),
        envelope=MaybeUnmarked(
            form, plain=plain, alikes=alikes, shared=shared, of_others=_OWN_SPELLINGS
        ),
        codec=MaybeUnmarkedCall(token, form, plain, alikes),
    )


DEEPSEEK_V32 = _token_row(
    "deepseek_v32_dsml", "deepseek_v32", "DSML", "function_calls", shared=True
)
DEEPSEEK_V4 = _token_row("deepseek_v4_dsml", "deepseek_v4", "DSML", "tool_calls")
DEEPSEEK_V41 = _token_row("deepseek_v41_dsml", "deepseek_v41", "DSML", "calls", " ", shared=True)
GIGACHAT35 = _token_row("gigachat35_gcml", "gigachat35", "GCML", "tool_calls")
_KIMI_K3_TAGS = tag_protocol(
    SlotForm(
        "<|open|>tools<|sep|>",
        "<|close|>tools<|sep|>",
        ('<|open|>call tool="', '"<|sep|>'),
        "<|close|>call<|sep|>",
        ('<|open|>argument key="', '"<|sep|>'),
        "<|close|>argument<|sep|>",
        flag="type",
        counter="index",
        markup=(
            "<|open|>response<|sep|>",
            "<|close|>response<|sep|>",
            "<|close|>message<|sep|>",
            "<|end_of_msg|>",
        ),
    ),
    "kimi_k3_xtml",
    aliases=("kimi_k3",),
    title="calls and arguments between <|open|> and <|close|>, values with their types",
)
# Without the tokens, which some proxies drop, nothing says where a value ends.
_K3_WORDS = r'call tool="[\w.:-]{1,128}"(?: index="\d{1,4}")?(?:argument key="|call)'
KIMI_K3 = replace(
    _KIMI_K3_TAGS,
    codec=EscapedNames(_KIMI_K3_TAGS.codec),
    signs=replace(_KIMI_K3_TAGS.signs or Signs(), marks=(_K3_WORDS,)),
)
GLM45 = tag_protocol(
    _pairs(lines=True),
    "glm45_newline",
    aliases=("glm45", "poolside_v1", "spark25"),
    title="<arg_key> and <arg_value> in <tool_call>, on lines",
)
# HyperCLOVA X SEED Think: the tags of GLM-4.5, around values in JSON.
HYPERCLOVAX = replace(
    GLM45,
    id="hyperclovax_seed_think",
    aliases=(),
    title="<arg_key> and <arg_value> in <tool_call>, on lines, texts in quotes",
    codec=JsonTexts(GLM45.codec),
)
GLM47 = tag_protocol(
    _pairs(),
    "glm47_compact",
    aliases=("glm47", "ling3"),
    title="<arg_key> and <arg_value> in <tool_call>",
)
IQUEST_CODER_V2 = tag_protocol(
    _pairs("iquestcoder_tool_call"),
    "iquest_coder_v2",
    title="<arg_key> and <arg_value> in <iquestcoder_tool_call>",
)
IQUEST_Q1 = tag_protocol(
    _pairs("iquest_tool_call"),
    "iquest_q1",
    title="<arg_key> and <arg_value> in <iquest_tool_call>",
)
K2_HORIZON = tag_protocol(
    replace(
        _pairs("ifm|tool_call", "ifm|tool_calls", prefix="ifm|arg_"),
        types=("<ifm|arg_type>", "</ifm|arg_type>"),
    ),
    "k2_horizon_xml",
    aliases=("k2_horizon",),
    title="<ifm|arg_key> and <ifm|arg_value> in <ifm|tool_calls>",
)
SOLAR_OPEN2 = tag_protocol(
    SlotForm(
        "",
        "",
        ("<|tool_call:start|>", ""),
        "<|tool_call:end|>",
        ("<|tool_arg:start|>", "<|tool_arg:value|>"),
        "<|tool_arg:end|>",
        lines=True,
    ),
    "solar_open2",
    title="<|tool_arg:start|> and <|tool_arg:value|> in <|tool_call:start|>",
)
TELECHAT4 = tag_protocol(
    _pairs(prefix="param_"),
    "telechat4",
    aliases=("xing4_0",),
    title="<param_key> and <param_value> in <tool_call>",
)
MUSE = replace(
    tag_protocol(
        _MUSE_FORM,
        "muse_atem",
        aliases=("muse", "muse_glimmer", "musespark1x"),
        title="<atem:invoke> in messages",
    ),
    envelope=MessageTags(_MUSE_FORM),
)
BEAM = replace(
    tag_protocol(_BEAM_FORM, "beam", title="<rfl:parameter> behind a header that names the tool"),
    envelope=HeadedTags(_BEAM_FORM),
    codec=HeadedCall(_BEAM_FORM),
    grammar=None,
)


def _suffixed(suffix: str) -> SlotForm:
    return _pairs(opener="tool_calls", separator="tool_sep", suffix=suffix, lines=True)


def _suffixed_v4(suffix: str) -> SlotForm:
    return _pairs(opener="tool_calls", suffix=suffix)


_SUFFIXED_BLOCKS = SuffixedBlocks("tool_calls", _suffixed)
HUNYUAN_V3 = replace(
    tag_protocol(
        _suffixed(""),
        "hunyuan_v3",
        aliases=("hy_v3",),
        title="<arg_key> and <arg_value> behind <tool_sep>, in <tool_calls>",
    ),
    envelope=MaybeSuffixed(_suffixed(""), suffixed=_SUFFIXED_BLOCKS),
    codec=SuffixedCall(_suffixed, ""),
)
HUNYUAN_V4 = replace(
    tag_protocol(
        _suffixed_v4(""),
        "hunyuan_v4",
        aliases=("hy_v4",),
        title="<arg_key> and <arg_value> in <tool_calls>",
    ),
    envelope=MaybeSuffixed(_suffixed_v4(""), suffixed=SuffixedBlocks("tool_calls", _suffixed_v4)),
    codec=SuffixedCall(_suffixed_v4, ""),
)
HUNYUAN_SUFFIX = replace(
    tag_protocol(
        _suffixed(":opensource"),
        "hunyuan_v3_suffix",
        title="<arg_key> and <arg_value> whose tags end in the name of a checkpoint",
    ),
    envelope=_SUFFIXED_BLOCKS,
    codec=SuffixedCall(_suffixed, ":opensource"),
)

PROTOCOLS: tuple[Protocol, ...] = (
    MINICPM5,
    MIMO_COMPACT,
    SEED_OSS,
    ANTHROPIC_LEGACY,
    MINIMAX_M2,
    DOTS,
    MUSE,
    STEP3,
    BEAM,
    DEEPSEEK_V32,
    DEEPSEEK_V4,
    DEEPSEEK_V41,
    GIGACHAT35,
    KIMI_K3,
    HYPERCLOVAX,
    GLM47,
    IQUEST_CODER_V2,
    IQUEST_Q1,
    TELECHAT4,
    HUNYUAN_V3,
    HUNYUAN_V4,
    HUNYUAN_SUFFIX,
    K2_HORIZON,
    SOLAR_OPEN2,
    MINIMAX_M3,
)
