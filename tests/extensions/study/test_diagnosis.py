"""Which layer broke an answer, found by asking again: over real HTTP, one fault at a time."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import toolparse_lab as tp
from tests.evals.test_trial_blame import SITUATIONS
from tests.extensions.study.faulty_server import FaultyServer, failing_trial, planted
from tests.replay_server import Answer, Asked, ReplayServer, event_answer, json_answer
from tests.tables import each_case
from tests.tools import tool_named
from toolparse_lab.cli.app import main
from toolparse_lab.core.errors import BadOptions
from toolparse_lab.evals.scoring.trial import Trial
from toolparse_lab.extensions.study import blame
from toolparse_lab.extensions.study.diagnosis import characters_of, longer_case

TOOL = tool_named(
    "find_berth",
    "A free berth.",
    required=["port"],
    port={"type": "string", "description": "Where."},
)
CALL = {"name": "find_berth", "arguments": {"port": "Ystad"}}
CASE = {"id": "c", "input": "A berth in Ystad?", "tools": [TOOL], "target": [CALL]}


class Stack(ReplayServer):
    """A model that always writes the right call if it sees the tool, and a server around it that
    breaks one layer. `takes_logprobs`: gives, ignores or refuses."""

    def __init__(self, fault: str, takes_logprobs: str = "ignores") -> None:
        super().__init__()
        self.url += "/v1"
        self.fault, self.takes_logprobs = fault, takes_logprobs

    def reply(self, asked: Asked) -> Answer:
        status, said = self.made(asked.json)
        if asked.json.get("stream") and status == 200:
            return event_answer(self.streamed(said))
        return json_answer(said, status)

    def made(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if body.get("logprobs") and self.takes_logprobs == "refuses":
            return 400, {"error": {"message": "logprobs are not supported", "code": 400}}
        tools = [] if self.fault == "template" else body.get("tools") or []
        prompt = json.dumps(tools) + json.dumps(body["messages"])
        text = "I have no tool for that."
        if "find_berth" in prompt:
            text = f"<tool_call>\n{json.dumps(CALL)}\n</tool_call>"
        if self.fault == "model":
            text = text.replace("Ystad", "Kiel")
        if self.fault == "sampler" and body.get("temperature", 1) > 0:
            text = text.replace("Ystad", "Y" + "sz" * (len(self.asked) % 5 + 1))
        limit = body.get("max_tokens")
        reason = "stop"
        if limit is not None and len(text) > 4 * limit:
            text, reason = text[: 4 * limit], "length"
        message: dict[str, Any] = {"role": "assistant", "content": text}
        choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": reason}
        if body.get("logprobs") and self.takes_logprobs == "gives":
            choice["logprobs"] = {"content": [{"token": text, "bytes": list(text.encode())}]}
        found = re.search(r"<tool_call>\n(.*)\n</tool_call>", text)
        if found and body.get("tools"):
            call = json.loads(found[1])
            arguments = json.dumps(call["arguments"])
            if self.fault == "server":
                arguments = arguments.replace("Ystad", "Yst")
            function = {"name": call["name"], "arguments": arguments}
            message |= {
                "content": None,
                "tool_calls": [{"id": "c", "type": "function", "function": function}],
            }
            choice["finish_reason"] = "tool_calls"
        usage = {"prompt_tokens": len(prompt) // 4, "completion_tokens": len(text) // 4 or 1}
        return 200, {"id": "x", "object": "chat.completion", "created": 1, "model": "m",
                     "choices": [choice], "usage": usage}  # fmt: skip

    def streamed(self, said: dict[str, Any]) -> list[Any]:
        choice = said["choices"][0]
        delta = dict(choice["message"])
        if "tool_calls" in delta:
            delta["tool_calls"] = [{"index": 0, **delta["tool_calls"][0]}]
        start = {"index": 0, "delta": delta, "finish_reason": None}
        end = {"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}
        base = {**said, "object": "chat.completion.chunk"}
        return [{**base, "choices": [start]}, {**base, "choices": [end]}, "[DONE]"]


def asked(lab: tp.Lab, url: str, **settings: Any) -> Trial:
    model = tp.Model("openai/m", api_base=url, api_key="k", max_retries=0, price=(0, 0))
    plan = lab.plan([CASE], {"m": model}, ["native"], **settings)
    return lab.run(plan, progress=False).trials()[0]


@pytest.mark.parametrize("logprobs", ["gives", "ignores", "refuses"])
@pytest.mark.parametrize("fault", ["model", "sampler", "template", "server"])
def test_the_fault_of_a_layer_is_found(lab: tp.Lab, fault: str, logprobs: str) -> None:
    with Stack(fault, logprobs) as stack:
        trial = asked(lab, stack.url, temperature=0.7)
        before = len(stack.asked)
        found = blame(trial, budget=12)
        assert found.layer == fault, str(found)
        assert len(stack.asked) - before <= 12
        assert max(found.likely, key=lambda layer: found.likely[layer]) == fault
    # Every request is recorded, and a probe's answer can be opened like any other.
    assert all(a.trial.completion is not None for a in found.asked)
    frame = found.frame
    assert frame["asked"].sum() == sum(a.probe != "longer request" for a in found.asked)
    assert (frame["low"] <= frame["failed"] / frame["asked"]).all()
    assert fault in str(found)


def test_what_the_record_says_is_not_asked(lab: tp.Lab) -> None:
    with Stack("none") as stack:
        trial = asked(lab, stack.url, max_tokens=8)
        before = len(stack.asked)
        found = blame(trial)
        assert (found.layer, found.blame.code, len(stack.asked)) == (
            "client",
            "token_limit",
            before,
        )


def test_a_dead_endpoint_and_a_healthy_one_beside_it(lab: tp.Lab) -> None:
    with Stack("none") as stack:
        url = stack.url
    trial = asked(lab, url)
    assert blame(trial).layer == "transport"
    with Stack("none") as healthy:
        other = tp.Model("openai/m", api_base=healthy.url, api_key="k", price=(0, 0))
        found = blame([trial], other=other, budget=2)
    assert [d.layer for d in found] == ["transport"]


def test_too_few_requests_leave_it_open(lab: tp.Lab) -> None:
    with Stack("server") as stack:
        found = blame(asked(lab, stack.url), budget=1)
    assert found.layer == "cannot_tell"
    assert found.blame.would_tell


def test_what_did_not_fail_has_nobody_to_blame(lab: tp.Lab) -> None:
    with Stack("none") as stack:
        trial = asked(lab, stack.url)
    assert trial.blame.layer == "none"
    with pytest.raises(BadOptions, match="did not fail"):
        blame(trial)


def test_a_longer_case_asks_the_same() -> None:
    case = tp.Case("c", "A berth?", tp.core.toolspec.tool_specs([TOOL]))
    longer = longer_case(case)
    assert isinstance(case.input, str)
    assert isinstance(longer.input, str)
    (tool,) = longer.tools
    assert tool.name == "find_berth"
    assert tool.description.startswith("A free berth. Nothing else")
    assert tool.schema["required"] == ["port"]
    assert longer.input.startswith("A berth? Nothing else")
    # Half of it is in the question, so that either half is missed.
    added = characters_of(longer) - characters_of(case)
    assert len(longer.input) - len(case.input) == added / 2
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "A"},
        {"role": "assistant", "content": None},
    ]
    asked = longer_case(tp.Case("c", messages, case.tools)).messages
    assert asked[0]["content"].startswith("A Nothing else")
    assert asked[1] == messages[1]


@each_case
def test_planted_faults_that_take_a_probe_of_their_own(lab: tp.Lab, name: str) -> None:
    fault = next(fault for fault in planted() if fault.id == name)
    with FaultyServer(fault) as server:
        found = blame(failing_trial(lab, fault, server))
    assert found.layer == fault.layer, str(found)
    assert len(found.asked) <= 12


def test_the_command_asks(tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    store = str(tmp_path / "runs.db")
    with Stack("template") as stack:
        with tp.Lab(store) as lab:
            asked(lab, stack.url)
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        assert main(["blame", "latest", "--ask", "--store", store]) == 0
    assert "1 failed trial: template 1" in capsys.readouterr().out


def test_recorded_tokens_say_what_the_server_made_of_the_text(lab: tp.Lab) -> None:
    fault = next(f for f in planted() if f.kind == "swaps_arguments")
    with FaultyServer(replace(fault, logprobs=True)) as server:
        trial = failing_trial(lab, fault, server)
        again = trial.retry(logprobs=True, fresh=True)
    assert again.result is not None
    assert again.result.tokens is not None
    assert again.blame.layer == "server", again.blame.explained()
    assert again.blame.evidence[0].where == "tokens"
    assert "tool_call" in again.blame.evidence[0].says


# The verb `blame`, of a record alone.


def test_the_command(tmp_path: Path, capsys: Any) -> None:
    store = str(tmp_path / "runs.db")
    case = next(c for c in SITUATIONS if c["layer"] == c.get("open", c["layer"]) == "server")
    with tp.Lab(store) as lab:
        trial = lab.ingest([case["row"]], progress=False).trials()[0]
    assert main(["blame", "latest", trial.trial_id, "--store", store]) == 0
    assert "1 failed trial: server 1" in capsys.readouterr().out
    assert main(["blame", "latest", trial.trial_id, "--store", store, "--json"]) == 0
    (said,) = json.loads(capsys.readouterr().out)
    assert (said["layer"], said["trial_id"]) == ("server", trial.trial_id)
