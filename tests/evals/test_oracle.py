"""A perfect model scores full marks in every arm: what the project writes, it reads and judges as
right, and what a format cannot carry its writer refuses."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import toolparse_lab as tp
from tests.laws import examples
from tests.oracle import right_calls, write_right_answer
from tests.tools import object_schema
from toolparse_lab.core.errors import UnwritableCall
from toolparse_lab.core.toolspec import tool_specs
from toolparse_lab.evals.cases.case import Case
from toolparse_lab.evals.cases.loading import example_cases, example_conversations
from toolparse_lab.evals.scoring.score import Score, score_completion
from toolparse_lab.formats.registry import family_heads
from toolparse_lab.runner.exchange.types import Completion

ARMS = (*family_heads(), "native")
SHIPPED = [*example_cases(), *example_conversations()]
# A right text for the one target that only describes it.
PATTERN = {"$match": "regex", "$value": "(?i).*\\b(10|ten) min(ute)?s?\\b.*"}
# Formats without quotes cannot write the word null where null itself is legal.
NO_WORD_NULL = ("qwen3_coder_xml", "morph_xml", "glm45_newline")


def score_right_answer(case: Case, arm: str, choice: int = 0) -> Score:
    """The score of a perfect model under an arm, whose answer is checked to hold the calls."""
    protocol = tp.protocols()["openai_json" if arm == "native" else arm]
    text = write_right_answer(case, protocol, choice)
    calls = len(right_calls(case, choice))
    if not text:
        text = '{"content":"No.","tool_calls":[]}' if arm == "native" else "No tool is needed."
    result = tp.parse(text, protocol, case.tools)
    assert len(result.calls) == calls, (arm, text)
    completion = Completion(
        key="",
        raw=text,
        finish_reason="stop",
        endpoint_kind="native_tools" if arm == "native" else "chat_text",
        fidelity="synthetic",
    )
    score = score_completion(case, completion, result)
    assert score is not None
    return score


def with_example(case: Case) -> Case:
    target = json.loads(json.dumps(case.target).replace(json.dumps(PATTERN), '"In 10 minutes."'))
    return replace(case, target=target)


@pytest.mark.parametrize("arm", ARMS)
@pytest.mark.parametrize("choice", range(3))
def test_every_shipped_case_can_be_solved_in_every_arm(arm: str, choice: int) -> None:
    refused = []
    for case in SHIPPED:
        try:
            score = score_right_answer(with_example(case), arm, choice)
        except UnwritableCall:
            refused.append(case.id)
            continue
        assert score.success is score.repaired is score.safe is True or arm in NO_WORD_NULL, case.id
        assert score.success, (case.id, str(score))
    assert refused == (["types/word-null"] if arm in NO_WORD_NULL else [])


# texts of every kind, in every arm

TOOLS = tool_specs(
    [
        {
            "name": "save",
            "parameters": {
                "type": "object",
                "properties": {
                    "text": {"type": "string"},
                    "lines": {"type": "array", "items": {"type": "string"}},
                    "more": object_schema(note="string", n="integer"),
                    "rate": {"type": "number"},
                    "on": {"type": "boolean"},
                },
                "required": ["text"],
                "additionalProperties": False,
            },
        }
    ]
)
PIECES = st.sampled_from([
    "\n", "\t", "\r\n", "\\", "\\n", "\\\\", '"', "'", "''", '\\"', "\\'", "\\u00e9", "\\/", "/",
    "\\x41", "\\N{BULLET}", "é", "日本語", "😀", "مرحبا", "\u200b", "\u2028", "\x85", "\x00", "\x1b",
    "&amp;", "&", "<", ">", "</save>", "<text>", "</text>", "<![CDATA[", "]]>", "<tool_call>",
    "</tool_call>", "</parameter>", "```", "`x`", "{", "}", "[", "]", ":", ": ", " #", "- ", ", ",
    "|", ">\n  a", "%", "@", "null", "true", "007", "1e3", "1_000", "~", "def f(x):\n    return x",
    "import os\n\n\nprint('a\\tb')", '{"name": "save", "arguments": {}}', "SELECT * FROM t;--",
    "^\\d{3}\\s+$", "C:\\temp\\new", " ", "  ", "word", "a b", "\ud83d", "$HOME", "${x}", "<|end|>",
])  # fmt: skip
TEXTS = st.lists(PIECES | st.text(max_size=6), max_size=6).map("".join)
ARGUMENTS = st.fixed_dictionaries(
    {"text": TEXTS},
    optional={
        "lines": st.lists(TEXTS, max_size=3),
        "more": st.fixed_dictionaries(
            {}, optional={"note": TEXTS, "n": st.integers(-(10**20), 10**20)}
        ),
        "rate": st.floats(allow_nan=False, allow_infinity=False),
        "on": st.booleans(),
    },
)


@pytest.mark.parametrize("arm", ARMS)
@settings(max_examples=examples(25), deadline=None)
@given(calls=st.lists(ARGUMENTS, min_size=1, max_size=2))
def test_every_text_that_a_format_carries_is_judged_right(
    arm: str, calls: list[dict[str, Any]]
) -> None:
    target = [
        {"name": "save", "arguments": {k: {"$value": v} for k, v in c.items()}} for c in calls
    ]
    case = Case("made", "?", TOOLS, target)
    try:
        score = score_right_answer(case, arm)
    except UnwritableCall:
        assert arm not in ("hermes", "native", "openai_json", "kimi_k2", "harmony_channel")
        return
    assert score.success, (str(score), calls)
