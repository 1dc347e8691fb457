"""Whether the next prompt shows a turn as it was drawn: planted drifts, each found by its name."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import toolparse_lab as tp
from tests.chat_templates import WITH_TURNS
from tests.replay_server import ReplayServer, json_answer
from tests.tables import each_case
from tests.vocabularies import answer_of, vocabulary
from toolparse_lab.cli.app import main
from toolparse_lab.core.errors import BadOptions, UnreadableTemplate
from toolparse_lab.extensions.templates import replay_check
from toolparse_lab.extensions.templates.doctor.replay import REPLAY_CODES

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


@each_case
def test_each_drift_is_found_and_named(template: str, raw: str, arguments: str, code: str) -> None:
    report = replay_check(conversation(raw, arguments), template)
    assert not report.ok
    first = report.drifts[0]
    assert (first.turn, first.code) == (0, code), str(report)
    assert first.code in REPLAY_CODES
    assert json.loads(json.dumps(report.to_dict()))["drifts"][0]["meaning"] == REPLAY_CODES[code]


@each_case
def test_a_conversation_that_is_shown_as_it_was_drawn_has_no_drift(messages: Any) -> None:
    report = replay_check(messages, WITH_TURNS)
    assert report.ok, str(report)
    assert report.turns == (0 if len(messages) == 1 else 2)


def test_requests_of_a_conversation_say_the_same_as_its_messages() -> None:
    messages = conversation()
    requests = [{"messages": messages[:1], "raw": CALL}, {"messages": messages[:3], "raw": "Done."}]
    assert replay_check(requests, WITH_TURNS).ok
    requests[0]["raw"] = CALL.replace(": ", ":")
    assert replay_check(requests, WITH_TURNS).drifts[0].code == "replay.white-space"


def test_recorded_ids_need_no_template() -> None:
    requests: list[dict[str, Any]] = [
        {"messages": [], "prompt_token_ids": [1, 2], "token_ids": [3, 4]},
        {"messages": [], "prompt_token_ids": [1, 2, 3, 4, 5], "token_ids": [6]},
        {"messages": [], "prompt_token_ids": [1, 2, 3, 4, 5, 7]},
    ]
    report = replay_check(requests)
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

    report = replay_check(messages, WITH_TURNS, tokenizer=Model())
    (drift,) = report.drifts
    assert (drift.turn, drift.level, drift.code) == (0, "ids", "replay.tokens")
    whole = [i for i, _ in words.cut(CALL)]
    assert replay_check(conversation(token_ids=whole), WITH_TURNS, tokenizer=Model()).ok


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (([], WITH_TURNS), BadOptions),
        (("Hello", WITH_TURNS), BadOptions),
        ((conversation(), None), BadOptions),
        ((conversation(), "{% for m in x"), UnreadableTemplate),
        ((conversation(), "{{ raise_exception('no') }}"), UnreadableTemplate),
    ],
)
def test_what_cannot_be_compared_is_said(given: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        replay_check(*given)


def test_a_replay_on_the_command_line(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "t.jinja").write_text(WITH_TURNS)
    file = tmp_path / "c.json"
    file.write_text(json.dumps(conversation()))
    assert main(["template", "replay", str(tmp_path / "t.jinja"), str(file)]) == 0
    file.write_text(json.dumps({"messages": conversation(CALL.replace(": ", ":")), "tools": []}))
    assert main(["template", "replay", str(tmp_path / "t.jinja"), str(file)]) == 1
    assert "replay.white-space" in capsys.readouterr().out
    file.write_text("{")
    assert main(["template", "replay", str(tmp_path / "t.jinja"), str(file)]) == 2
    assert main(["template", "replay", str(tmp_path / "t.jinja")]) == 2


# As the messages of a later question write the call.
COMPACT = '<tool_call>{"name":"weather","arguments":{"city":"Oslo","days":3}}</tool_call>'


def token_server(spaces: str) -> ReplayServer:
    """A server that gives ids of prompt and answer, as vLLM does for `return_token_ids`: the first
    answer calls a tool, the next one says what it gave.

    spaces: what the prompt has between the messages of a later turn.
    """
    words = vocabulary("cl100k_base")

    def answer(body: dict[str, Any]) -> dict[str, Any]:
        later = len([m for m in body["messages"] if m["role"] == "assistant"])
        prompt = [
            i
            for message in body["messages"]
            for part in (message["content"], spaces if later else "", "<|im_start|>")
            for i, _ in words.cut(part)
        ]
        text = "It is cold in Oslo." if later else COMPACT
        response = answer_of(words.cut(text), text)
        choice = response["choices"][0]
        ids = [i for i, _ in words.cut(text)]
        choice |= {"index": 0, "finish_reason": "stop", "token_ids": ids}
        choice["message"]["role"] = "assistant"
        for token in choice["logprobs"]["content"]:
            token["top_logprobs"] = []
            del token["id"]
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        return response | {
            "id": "c", "object": "chat.completion", "created": 1, "model": "m", "usage": usage,
            "prompt_token_ids": prompt,
        }  # fmt: skip

    return ReplayServer(lambda asked: json_answer(answer(asked.json)))


@pytest.mark.parametrize("spaces", ["", " "])
def test_a_recorded_conversation_is_compared_by_its_own_tokens(tmp_path: Path, spaces: str) -> None:
    properties = {"city": {"type": "string"}, "days": {"type": "integer"}}
    call = {"name": "weather", "arguments": {"city": "Oslo", "days": 3}}
    case = {
        "id": "one",
        "input": "Weather in Oslo?",
        "tools": [{"name": "weather", "parameters": {"type": "object", "properties": properties}}],
        "target": [call],
    }
    with token_server(spaces) as server, tp.Lab(tmp_path / "runs.db") as lab:
        plan = lab.plan(
            [case],
            {"m": tp.Model("openai/m", api_base=server.url, api_key="none")},
            ["hermes"],
            max_turns=2,
            logprobs=True,
            extra_body={"return_token_ids": True},
            runnable={"weather": lambda city, days: "cold"},
        )
        (trial,) = lab.run(plan, progress=False).trials()
        assert trial.outcome == "correct", trial.why()
        assert trial.conversation is not None
        assert len(trial.conversation.turns) == 2
        report = replay_check(trial)
        assert report.levels == ("ids",)
        assert report.ok is (not spaces)
        (single,) = lab.ingest([{"raw": COMPACT, "tools": case["tools"]}]).trials()
        with pytest.raises(BadOptions, match="one turn"):
            replay_check(single)
