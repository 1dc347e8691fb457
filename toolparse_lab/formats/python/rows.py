"""Formats with delimiters around calls written as Python, as rows of constants."""

from __future__ import annotations

import re

from ..base import Protocol, Signs
from .call import PythonCalls
from .tags import PythonTags, WholeList
from .type_rules import PYTHON_TYPE_RULES


def _row(id: str, title: str, envelope: PythonTags, codec: PythonCalls, *aliases: str) -> Protocol:
    return Protocol(
        id=id,
        aliases=aliases,
        title=title,
        envelope=envelope,
        codec=codec,
        tags=frozenset(("delimited",)),
        type_rules=PYTHON_TYPE_RULES,
        signs=Signs(openers=(re.escape(codec.opener.strip()),)),
    )


def _between(opener: str, closer: str, **fields: bool) -> PythonTags:
    # with or without white space before the closer
    closers = tuple(dict.fromkeys((closer, closer.strip())))
    return PythonTags((opener.strip(),), tuple(c for c in closers if c), **fields)


PYTHONIC = Protocol(
    id="pythonic",
    aliases=("bfcl_prompt", "bfcl_python"),
    title="a list of Python calls, no delimiters",
    envelope=WholeList(("<|python_start|>", "<|python_end|>")),
    codec=PythonCalls(),
    tags=frozenset(("undelimited",)),
    type_rules=PYTHON_TYPE_RULES,
)

PROTOCOLS: tuple[Protocol, ...] = (
    _row(
        "llama4_python_start",
        "a list of Python calls between <|python_start|> and <|python_end|>",
        _between("<|python_start|>", "<|python_end|>"),
        PythonCalls("<|python_start|>", "<|python_end|>"),
        "llama4_pythonic",
    ),
    _row(
        "gemma_fence_tool_code",
        "Python calls in a fence of tool_code",
        _between("```tool_code", "\n```", line=True),
        PythonCalls("```tool_code\n", "\n```"),
    ),
    _row(
        "olmo3",
        "Python calls on lines in <function_calls>",
        _between("<function_calls>", "</function_calls>"),
        PythonCalls("<function_calls>", "</function_calls>", in_list=False, json_words=True),
    ),
    _row(
        "lfm2",
        "a list of Python calls between <|tool_call_start|> and <|tool_call_end|>",
        _between("<|tool_call_start|>", "<|tool_call_end|>"),
        PythonCalls("<|tool_call_start|>", "<|tool_call_end|>"),
    ),
    _row(
        "minicpm3",
        "Python calls in a fence between <|tool_call_start|> and <|tool_call_end|>",
        _between("<|tool_call_start|>", "<|tool_call_end|>", fenced=True),
        PythonCalls("<|tool_call_start|>\n```python\n", "\n```\n<|tool_call_end|>", in_list=False),
    ),
    _row(
        "gorilla_openfunctions",
        "Python calls behind <<function>>",
        PythonTags(("<<function>>",), (), strict_head=True),
        PythonCalls("<<function>>", "", in_list=False, between="<<function>>"),
    ),
    _row(
        "bfcl_python_tag",
        "a list of Python calls in <TOOLCALL>",
        PythonTags(
            ("<TOOLCALL>", "<tool_call>", "<tool_calls>"),
            ("</TOOLCALL>", "</tool_call>", "</tool_calls>"),
            strict_head=True,
        ),
        PythonCalls("<TOOLCALL>", "</TOOLCALL>"),
        "toolcall_python",
    ),
    _row(
        "llama3_python_calls",
        "Python calls behind <|python_tag|>",
        PythonTags(("<|python_tag|>",), (), strict_head=True),
        PythonCalls("<|python_tag|>", "", in_list=False, between="<|python_tag|>"),
    ),
)
