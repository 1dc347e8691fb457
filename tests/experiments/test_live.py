"""Live runs: they grow with the application, raise alarms, and are shown as they come; litellm's
callback records into the same store."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import toolparse_lab as tp
from toolparse_lab.experiments.live import ALARMS, alarms_in
from toolparse_lab.runner.exchange.passed import Passed
from toolparse_lab.runner.store.store import Store

TOOL = {"type": "function", "function": {"name": "find_berth", "parameters": {
    "type": "object", "properties": {"port": {"type": "string"}}}}}  # fmt: skip
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


def record(store: Path, *exchanges: Passed) -> None:
    with Store(store) as opened:
        opened.record_exchanges(exchanges)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "live.db"


def test_a_run_grows_with_its_application(store: Path) -> None:
    record(store, passed({"content": "No."}))
    with tp.Lab(store) as lab:
        run = lab.live()
        assert len(run.trials()) == 1
        record(store, passed({"content": None, "tool_calls": [LIFTED]}, finish="tool_calls"))
        assert [len(t.result.calls) for t in run.trials() if t.result] == [0, 1]
        assert len(run.frame()) == 2
        record(store, passed({"content": CALL}))
        assert [t.sub_code for t in run.failures()] == ["not_lifted"]
        assert run.trials()[2].blame.layer == "server"
        assert "3" in str(run.report())


def test_applications_are_apart(store: Path) -> None:
    record(store, passed({"content": "a"}, app="one"), passed({"content": "b"}, app="two"))
    with tp.Lab(store) as lab:
        texts = [lab.live(app).trials()[0].completion for app in ("one", "two")]
        assert [answer.raw for answer in texts if answer] == [
            '{"content":"a","tool_calls":[]}',
            '{"content":"b","tool_calls":[]}',
        ]
        with pytest.raises(tp.errors.BadOptions, match="one, two"):
            lab.live()


ALARMED: list[tuple[list[str], Passed]] = [
    ([], passed({"content": None, "tool_calls": [LIFTED]}, finish="tool_calls")),
    ([], passed({"content": "There is no berth."})),
    ([], passed({"content": "Yes.", "reasoning_content": "They want a berth."})),
    (["markup_in_content"], passed({"content": CALL})),
    (["markup_in_content"], passed({"content": "<tool_call>"})),
    (["markup_in_reasoning"], passed({"content": "", "reasoning_content": CALL})),
    (["calls_dropped"], passed({"content": ""}, finish="tool_calls", tokens=1)),
    (["everything_lost"], passed({"content": ""})),
]


@pytest.mark.parametrize(("wanted", "exchange"), ALARMED, ids=lambda x: str(x)[:60])
def test_alarms(wanted: list[str], exchange: Passed, store: Path) -> None:
    record(store, exchange)
    with tp.Lab(store) as lab:
        (trial,) = lab.live().trials()
    assert alarms_in(trial) == wanted
    assert set(wanted) <= set(ALARMS)


def test_follow_shows_answers_as_they_come(store: Path) -> None:
    record(store, passed({"content": "No."}))
    words = [sys.executable, "-m", "toolparse_lab.cli", "view", "--follow", "--json"]
    with subprocess.Popen(
        [*words, "--store", str(store)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            first = json.loads(process.stdout.readline())
            assert (first["alarms"], first["counts"]) == ([], {"answers": 1})
            record(store, passed({"content": CALL}))
            second = json.loads(process.stdout.readline())
            assert second["counts"] == {"answers": 2, "markup_in_content": 1}
            assert second["blame"]["layer"] == "server"
        finally:
            process.terminate()


def test_an_empty_list_of_messages_keeps_its_tools(store: Path) -> None:
    record(store, passed({"content": "Hi."}, messages=[]))
    record(store, passed({"content": "Hi."}, messages=[], system="Be brief."))
    with tp.Lab(store) as lab:
        first, second = lab.live().trials()
    assert [tool.name for tool in first.case.tools] == ["find_berth"]
    assert "Be brief." in second.case.input_text
