"""The smallest request that fails alike, over real HTTP: a model that one sentence leads astray."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import toolparse_lab as tp
from tests.replay_server import Answer, Asked, ReplayServer, json_answer
from toolparse_lab.cli.app import main
from toolparse_lab.core.errors import BadOptions
from toolparse_lab.extensions.study import shrink_request


def tool(name: str) -> dict[str, Any]:
    properties = {"port": {"type": "string", "description": "Where."}, "day": {"type": "string"}}
    return {
        "name": name,
        "description": "Says when the tide is high.",
        "parameters": {"type": "object", "properties": properties, "required": ["port"]},
    }


CASE = {
    "id": "one",
    "messages": [
        {"role": "system", "content": "You help sailors. You know every port."},
        {"role": "user", "content": "Good morning!"},
        {"role": "assistant", "content": "Good morning. What can I do?"},
        {
            "role": "user",
            "content": "I sail at noon. When is high water in Bergen? Answer briefly. Thank you.",
        },
    ],
    "tools": [tool(f"tool_{n}") for n in range(4)] + [tool("get_tide")],
    "target": [{"name": "get_tide", "arguments": {"port": "Bergen"}}],
}
GOOD = '<tool_call>{"name": "get_tide", "arguments": {"port": "Bergen"}}</tool_call>'


def astray(asked: Asked) -> Answer:
    """A model that forgets the call where it is to answer briefly."""
    text = "14:10." if "briefly" in json.dumps(asked.json["messages"]) else GOOD
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    about = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
    return json_answer({**about, "choices": [choice]})


def failing(lab: tp.Lab, url: str, case: dict[str, Any] = CASE) -> Any:
    model = tp.Model("openai/m", api_base=url, api_key="none")
    (trial,) = lab.run(lab.plan([case], {"m": model}, ["hermes"]), progress=False).trials()
    return trial


def test_what_is_left_is_what_led_it_astray_and_what_the_target_speaks_of(lab: tp.Lab) -> None:
    with ReplayServer(astray) as server:
        trial = failing(lab, server.url)
        small = shrink_request(trial)
    assert small.whole
    assert [t.name for t in small.case.tools] == ["get_tide"]
    assert [t.description for t in small.case.tools] == [""]
    assert list(small.case.tools[0].schema["properties"]) == ["port"]
    (message,) = small.case.messages
    assert message["content"] == "When is high water in Bergen? Answer briefly."
    assert small.trial.outcome == trial.outcome == "abstained_wrongly"
    assert small.asked <= 60
    text = repr(small)
    assert "5 to 1 tool" in text
    assert "sentences" in text


def test_a_small_budget_keeps_what_was_found(lab: tp.Lab) -> None:
    with ReplayServer(astray) as server:
        small = shrink_request(failing(lab, server.url), budget=3)
    assert not small.whole
    assert small.asked == 3
    assert len(small.case.tools) < 5
    assert "the budget was spent" in repr(small)


def test_what_did_not_fail_has_nothing_to_keep(lab: tp.Lab) -> None:
    good = {**CASE, "messages": [{"role": "user", "content": "When is high water in Bergen?"}]}
    with ReplayServer(astray) as server:
        trial = failing(lab, server.url, good)
        with pytest.raises(BadOptions, match="did not fail"):
            shrink_request(trial)


def test_the_command_shows_the_smallest_request(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = str(tmp_path / "runs.db")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with ReplayServer(astray) as server:
        with tp.Lab(store) as lab:
            failing(lab, server.url)
        assert main(["blame", "latest", "--smallest", "--budget", "60", "--store", store]) == 0
    assert "Answer briefly." in capsys.readouterr().out
