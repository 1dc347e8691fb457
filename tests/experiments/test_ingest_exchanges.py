"""What a proxy or a recorder has written becomes a run."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import toolparse_lab as tp
from tests.tools import tool_named
from toolparse_lab.cli import main
from toolparse_lab.runner.exchange.types import Passed
from toolparse_lab.runner.store.store import Store

TOOL = {"type": "function", "function": tool_named("find_berth", port="string")}
CALL = '<tool_call>{"name": "find_berth", "arguments": {"port": "Ystad"}}</tool_call>'
LIFTED = {"id": "c", "type": "function",
          "function": {"name": "find_berth", "arguments": '{"port": "Ystad"}'}}  # fmt: skip


def passed(
    message: dict[str, Any],
    *,
    finish: str = "stop",
    tokens: int = 20,
    app: str = "app",
    **asked: Any,
) -> Passed:
    """An exchange as the proxy records it."""
    body = {"model": "m", "messages": [{"role": "user", "content": "Ystad?"}], "tools": [TOOL]}
    choice = {"message": {"role": "assistant", **message}, "finish_reason": finish}
    said = {"choices": [choice], "usage": {"prompt_tokens": 40, "completion_tokens": tokens}}
    return Passed(
        app=app, created="2026-10-01T10:00:00.000+00:00", path="/v1/chat/completions",
        request=json.dumps({**body, **asked}).encode(), response=json.dumps(said).encode(),
        status=200, seconds=0.5, fidelity="wire", facts={},
    )  # fmt: skip


def record(path: Path, *exchanges: Passed) -> None:
    with Store(path) as store:
        store.record_exchanges(exchanges)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "live.db"


def test_what_was_recorded_becomes_a_run(store: Path) -> None:
    record(store, passed({"content": "No."}), passed({"content": CALL}, app="other"))
    with tp.Lab(store.with_name("runs.db")) as lab:
        run = lab.ingest(store)
        assert [t.case.metadata for t in run.trials()] == [{"app": "app"}, {"app": "other"}]
        assert [t.case_id for t in run.trials()] == ["000001", "000002"]
        assert [t.sub_code for t in run.trials()][-1:] == ["not_lifted"]
        assert not run.failures()
        assert run.trials()[1].blame.layer == "server"
        assert run.trials()[0].case.tools[0].name == "find_berth"
        request = lab.store.request(run.plan.items[0].key)
        assert request is not None
        assert request.tools == (TOOL,)
        assert "2" in str(run.report())
        assert lab.open(run.run_id).frame().equals(run.frame())
        # A recording that has grown is another run, in which the answers before are known.
        assert lab.ingest(store).run_id == run.run_id
        record(store, passed({"content": None, "tool_calls": [LIFTED]}, finish="tool_calls"))
        grown = lab.ingest(store)
        assert grown.summary is not None
        assert (grown.summary.cached, grown.summary.done) == (2, 1)
        assert [len(t.result.calls) for t in grown.trials() if t.result] == [0, 1, 1]


def test_a_store_takes_in_its_own_exchanges(store: Path) -> None:
    record(store, passed({"content": CALL}))
    with tp.Lab(store) as lab:
        assert lab.ingest(lab.store).run_id == lab.ingest(f"sqlite:///{store}").run_id
        assert len(lab.runs()) == 1


def test_an_exchange_that_is_nested_without_an_end_costs_one(store: Path) -> None:
    nested = '{"a": ' * 900 + "1" + "}" * 900
    deep = passed({"content": "No."}).request.replace(b'"m"', f'"m", "extra": {nested}'.encode())
    record(store, passed({"content": "No."}), replace(passed({"content": "No."}), request=deep))
    with tp.Lab(store.with_name("runs.db")) as lab:
        run = lab.ingest(store)
        left_out = sum(skipped.count for skipped in run.plan.cases.skipped)
        assert len(run.trials()) + left_out == 2


def test_requests_without_a_model_or_tools_take_those_given(store: Path) -> None:
    record(store, passed({"content": CALL}, model=None, tools=None))
    with tp.Lab(store) as lab:
        (trial,) = lab.ingest(lab.store, model="mine", tools=[TOOL], protocol="hermes").trials()
        assert (trial.model, trial.arm) == ("mine", "hermes")
        assert trial.result is not None
        assert [call.name for call in trial.result.calls] == ["find_berth"]


def test_what_is_no_recording_of_exchanges_is_refused(store: Path) -> None:
    with tp.Lab(store) as lab:
        with pytest.raises(tp.errors.UnreadableInput, match="nothing in this store"):
            lab.ingest(store)
        record(store, passed({"content": "No."}))
        with pytest.raises(tp.errors.BadOptions, match="has no columns"):
            lab.ingest(store, columns={"x": "raw"})
        assert lab.runs() == []


def test_the_command_takes_a_store(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record(store, passed({"content": "No."}))
    assert main(["ingest", str(store), "--store", str(store), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["answers"] == 1


def test_an_empty_list_of_messages_keeps_its_tools(store: Path) -> None:
    record(store, passed({"content": "Hi."}, messages=[]))
    record(store, passed({"content": "Hi."}, messages=[], system="Be brief."))
    with tp.Lab(store) as lab:
        first, second = lab.ingest(store).trials()
    assert [tool.name for tool in first.case.tools] == ["find_berth"]
    assert "Be brief." in second.case.input_text
