"""Which layer broke an answer, found by asking again: over real HTTP, one fault at a time."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import toolparse_lab as tp
from tests.evals.test_trial_blame import SITUATIONS
from tests.extensions.study.faulty_server import Fault, FaultyServer, failing_trial, planted
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


FAULTS = {fault.id: fault for fault in planted()}


def asked(lab: tp.Lab, url: str, fault: Fault) -> Trial:
    """The question of a fault, asked once at an address."""
    model = tp.Model("openai/m", api_base=url, api_key="k", max_retries=0, price=(0, 0))
    case = {"id": "c", "messages": fault.messages, "tools": fault.tools, "target": fault.target}
    plan = lab.plan([case], {"m": model}, ["native"], **fault.settings)
    return lab.run(plan, progress=False).trials()[0]


@pytest.mark.parametrize("logprobs", [True, False, "refused"])
@pytest.mark.parametrize(
    "id",
    [
        "model-wrong_value",
        "sampler-replaces_characters",
        "template-tools_lost",
        "server-loses_argument",
    ],
)
def test_the_fault_of_a_layer_is_found(lab: tp.Lab, id: str, logprobs: Any) -> None:
    fault = replace(FAULTS[id], logprobs=logprobs, temperature=0.7)
    with FaultyServer(fault) as server:
        trial = failing_trial(lab, fault, server)
        before = len(server.asked)
        found = blame(trial, budget=12)
        assert found.layer == fault.layer, str(found)
        assert len(server.asked) - before <= 12
        assert max(found.likely, key=lambda layer: found.likely[layer]) == fault.layer
    # Every request is recorded, and a probe's answer can be opened like any other.
    assert all(a.trial.completion is not None for a in found.asked)
    frame = found.frame
    assert frame["asked"].sum() == sum(a.probe != "longer request" for a in found.asked)
    assert (frame["low"] <= frame["failed"] / frame["asked"]).all()
    assert fault.layer in str(found)


def test_what_the_record_says_is_not_asked(lab: tp.Lab) -> None:
    fault = FAULTS["client-max_tokens"]
    with FaultyServer(fault) as server:
        trial = failing_trial(lab, fault, server)
        before = len(server.asked)
        found = blame(trial)
        assert (found.layer, found.blame.code) == ("client", "token_limit")
        assert len(server.asked) == before


def test_a_dead_endpoint_and_a_healthy_one_beside_it(lab: tp.Lab) -> None:
    sound = FAULTS["template-tools_lost"].mended()
    with FaultyServer(sound) as server:
        url = server.url
    trial = asked(lab, url, sound)
    assert blame(trial).layer == "transport"
    with FaultyServer(sound) as healthy:
        other = tp.Model("openai/m", api_base=healthy.url, api_key="k", price=(0, 0))
        found = blame([trial], other=other, budget=2)
    assert [d.layer for d in found] == ["transport"]


def test_too_few_requests_leave_it_open(lab: tp.Lab) -> None:
    fault = replace(FAULTS["server-loses_argument"], logprobs=False)
    with FaultyServer(fault) as server:
        found = blame(failing_trial(lab, fault, server), budget=1)
    assert found.layer == "cannot_tell"
    assert found.blame.would_tell


def test_what_did_not_fail_has_nobody_to_blame(lab: tp.Lab) -> None:
    sound = FAULTS["template-tools_lost"].mended()
    with FaultyServer(sound) as server:
        trial = asked(lab, server.url, sound)
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
    fault = FAULTS[name]
    with FaultyServer(fault) as server:
        found = blame(failing_trial(lab, fault, server))
    assert found.layer == fault.layer, str(found)
    assert len(found.asked) <= 12


def test_the_command_asks(tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    store = str(tmp_path / "runs.db")
    fault = FAULTS["template-tools_lost"]
    with FaultyServer(fault) as server:
        with tp.Lab(store) as lab:
            failing_trial(lab, fault, server)
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        assert main(["blame", "latest", "--ask", "--store", store]) == 0
    assert "1 failed trial: template 1" in capsys.readouterr().out


def test_recorded_tokens_say_what_the_server_made_of_the_text(lab: tp.Lab) -> None:
    fault = FAULTS["server-swaps_arguments"]
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
