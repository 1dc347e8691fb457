"""Whether the next prompt shows a turn as it was drawn: planted drifts, each found by its name."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

import toolparse_lab as tp
from tests.extensions.train.test_tokens import vocabulary
from toolparse_lab.core.errors import BadOptions, UnreadableTemplate
from toolparse_lab.parser.doctor.replay import REPLAY_CODES

WRITE = (
    '<tool_call>\n{"name": "{{ c.function.name }}", "arguments": '
    "{{ c.function.arguments | tojson }}}\n</tool_call>"
)
TEMPLATE = (
    "{% for m in messages %}<|{{ m.role }}|>\n"
    "{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}"
    "{{ m.content or '' }}"
    "{% for c in m.tool_calls or [] %}" + WRITE + "{% endfor %}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)
CALL = '<tool_call>\n{"name": "note", "arguments": {"text": "a\\nb", "n": 1}}\n</tool_call>'


def conversation(
    raw: str | None = CALL, arguments: str = '{"text": "a\\nb", "n": 1}', **members: Any
) -> list[dict[str, Any]]:
    function = {"name": "note", "arguments": arguments}
    answer = {"role": "assistant", "content": "", "tool_calls": [{"function": function}], **members}
    if raw is not None:
        answer["raw"] = raw
    return [
        {"role": "user", "content": "Note it"},
        answer,
        {"role": "tool", "content": "noted"},
        {"role": "assistant", "content": "Done.", "raw": "Done."},
        {"role": "user", "content": "Thanks"},
    ]


def changed(old: str, new: str) -> str:
    assert old in TEMPLATE
    return TEMPLATE.replace(old, new)


DRIFTS: dict[str, tuple[str, list[dict[str, Any]], str]] = {
    "spaces between tokens": (
        TEMPLATE,
        conversation(CALL.replace('"n": 1', '"n":1')),
        "replay.white-space",
    ),
    "line breaks around the call": (
        changed(b"<tool_call>\\n".decode("unicode_escape"), "<tool_call>"),
        conversation(),
        "replay.white-space",
    ),
    "calls of several lines are dropped": (
        changed(WRITE, "{% if '\\\\n' not in (c.function.arguments | tojson) %}" + WRITE + "{% endif %}"),
        conversation(),
        "replay.call-dropped",
    ),
    "arguments are encoded twice": (
        changed("| tojson", "| tojson | tojson"),
        conversation(),
        "replay.encoded-twice",
    ),
    "null is left out": (
        changed(
            "c.function.arguments | tojson",
            "dict(c.function.arguments.items() | rejectattr('1', 'none')) | tojson",
        ),
        conversation(
            CALL.replace('"n": 1', '"n": null'), '{"text": "a\\nb", "n": null}'
        ),
        "replay.value",
    ),
    "the arguments are sorted": (
        changed(
            "c.function.arguments | tojson",
            "dict(c.function.arguments | dictsort) | tojson",
        ),
        conversation(),
        "replay.order",
    ),
    "letters are escaped": (
        TEMPLATE,
        conversation(
            '<tool_call>\n{"name": "note", "arguments": {"text": "S\\u00e3o"}}\n</tool_call>',
            '{"text": "São"}',
        ),
        "replay.writing",
    ),
    "a repaired call is written as it should be": (
        TEMPLATE,
        conversation(CALL.replace('"n": 1}', '"n": 1,}')),
        "replay.repaired",
    ),
    "the reasoning is left out": (
        TEMPLATE,
        conversation("<think>Well, a note.</think>" + CALL),
        "replay.reasoning-dropped",
    ),
    "the text beside the call is left out": (
        TEMPLATE,
        conversation("I note it. " + CALL),
        "replay.text-dropped",
    ),
    "the prompt ends otherwise than an answer begins": (
        changed("<|assistant|>\n{% endif %}", "<|assistant|>\n<think>\n{% endif %}"),
        conversation(),
        "replay.answer-start",
    ),
    "the system prompt changes with the turn": (
        "{{ messages | length }}\n" + TEMPLATE,
        conversation(),
        "replay.prompt",
    ),
    "a tool's result stops the template": (
        changed(
            "{% for m in messages %}",
            "{% for m in messages %}{% if m.role == 'tool' %}{{ raise_exception('no') }}{% endif %}",
        ),
        conversation(),
        "replay.crash",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DRIFTS)
def test_each_drift_is_found_and_named(name: str) -> None:
    template, messages, code = DRIFTS[name]
    report = tp.replay_check(messages, template)
    assert not report.ok
    first = report.drifts[0]
    assert (first.turn, first.code) == (0, code), str(report)
    assert first.code in REPLAY_CODES
    assert json.loads(json.dumps(report.to_dict()))["drifts"][0]["meaning"] == REPLAY_CODES[code]


@pytest.mark.parametrize(
    "messages",
    [
        conversation(),
        conversation(None),
        conversation("<think>hm</think>" + CALL, reasoning_content="hm"),
        conversation()[:1],
    ],
    ids=["drawn", "as the template writes it", "with reasoning", "one turn"],
)
def test_a_conversation_that_is_shown_as_it_was_drawn_has_no_drift(messages: Any) -> None:
    report = tp.replay_check(messages, TEMPLATE)
    assert report.ok, str(report)
    assert report.turns == (0 if len(messages) == 1 else 2)


def test_requests_of_a_conversation_say_the_same_as_its_messages() -> None:
    messages = conversation()
    requests = [{"messages": messages[:1], "raw": CALL}, {"messages": messages[:3], "raw": "Done."}]
    assert tp.replay_check(requests, TEMPLATE).ok
    requests[0]["raw"] = CALL.replace(": ", ":")
    assert tp.replay_check(requests, TEMPLATE).drifts[0].code == "replay.white-space"


def test_recorded_ids_need_no_template() -> None:
    requests: list[dict[str, Any]] = [
        {"messages": [], "prompt_token_ids": [1, 2], "token_ids": [3, 4]},
        {"messages": [], "prompt_token_ids": [1, 2, 3, 4, 5], "token_ids": [6]},
        {"messages": [], "prompt_token_ids": [1, 2, 3, 4, 5, 7]},
    ]
    report = tp.replay_check(requests)
    assert report.levels == ("ids",)
    (drift,) = report.drifts
    assert (drift.turn, drift.code, drift.at) == (1, "replay.tokens", 5)
    assert (drift.drawn, drift.shown) == ("6", "7")


def test_the_same_text_of_other_tokens_is_a_drift() -> None:
    words = vocabulary("cl100k_base")
    drawn = [i for piece in ('<tool_call>\n{"name": "no', CALL[len('<tool_call>\n{"name": "no') :])
             for i, _ in words.cut(piece)]  # fmt: skip
    messages = conversation(token_ids=drawn)

    class Model:
        decode = staticmethod(words.decode)

        @staticmethod
        def encode(text: str) -> list[int]:
            # A mark is never part of another token.
            parts = re.split(r"(<\|\w+\|>)", text)
            return [i for part in parts for i, _ in words.cut(part)]

    report = tp.replay_check(messages, TEMPLATE, tokenizer=Model())
    (drift,) = report.drifts
    assert (drift.turn, drift.level, drift.code) == (0, "ids", "replay.tokens")
    whole = [i for i, _ in words.cut(CALL)]
    assert tp.replay_check(conversation(token_ids=whole), TEMPLATE, tokenizer=Model()).ok


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (([], TEMPLATE), BadOptions),
        (("Hello", TEMPLATE), BadOptions),
        ((conversation(), None), BadOptions),
        ((conversation(), "{% for m in x"), UnreadableTemplate),
        ((conversation(), "{{ raise_exception('no') }}"), UnreadableTemplate),
    ],
)
def test_what_cannot_be_compared_is_said(given: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        tp.replay_check(*given)
