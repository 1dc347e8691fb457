"""What passes through the gateway as a run in a store: whole, in order, and without any secret."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import openai
import pytest

import toolparse_lab as tp
from tests.bridge import OSLO, TOOLS
from tests.mock_openai import MockOpenAI, unseen
from tests.runner.test_secrets import forms, stored
from tests.waiting import wait_until
from toolparse_lab.entry.foreign.protocol import any_protocol
from toolparse_lab.extensions.serve import RunRecorder, serve
from toolparse_lab.extensions.serve import run_recorder as recorder_module
from toolparse_lab.runner.litellm_door import litellm_module
from toolparse_lab.runner.store.store import Store

pytestmark = pytest.mark.slow

KEY = "planted-caller-0123456789"


class Passing:
    """A gateway that records into a file, and a client of it."""

    def __init__(self, mock: MockOpenAI, path: Path, **more: Any) -> None:
        self.told: list[str] = []
        self.store = Store(path)
        self.recorder = RunRecorder(self.store, any_protocol("hermes"), self.told.append)
        self.gateway = serve(mock.url, recorder=self.recorder, **more)
        self.client = openai.OpenAI(base_url=self.gateway.url, api_key=KEY, max_retries=0)

    def __enter__(self) -> Passing:
        return self

    def __exit__(self, *exc: object) -> None:
        self.client.close()
        self.gateway.close()
        self.store.close()

    def ask(self, text: str, before: Sequence[Any] = (), **more: Any) -> Any:
        """One question, whose stream is read to its end; a failure is None."""
        messages = [*before, {"role": "user", "content": unseen(text)}]
        asked = {"model": "m", "messages": messages, **more}
        with contextlib.suppress(openai.APIError):
            answer = self.client.chat.completions.create(**asked)
            return list(answer) if more.get("stream") else answer


@pytest.mark.parametrize("callbacks", [False, True], ids=["", "beside a callback"])
def test_what_passed_is_a_run_like_any_other(
    mock: MockOpenAI, tmp_path: Path, callbacks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if callbacks:
        monkeypatch.setattr(litellm_module(), "success_callback", [lambda *_: None])
    with Passing(mock, tmp_path / "passing.db") as passing:
        passing.ask(f"say=Well. {OSLO}", tools=TOOLS, temperature=0.5)
        passing.ask(f"say=Well. {OSLO}", tools=TOOLS, stream=True)
        passing.ask(f"say=Well. {OSLO}", tools=TOOLS, stream=True)
        passing.ask("say=no tools")
        passing.ask('say={"name": "now", "arguments": {}}', tools=TOOLS, tool_choice="required")
        passing.ask("status=500 say=x", tools=TOOLS)
        passing.ask("cut=2 say=one two three four", tools=TOOLS, stream=True)
        passing.ask("say=x", tools=[{"type": "function", "function": {"name": 1}}])
    assert passing.told == []
    (run_id,) = passing.gateway.run_ids

    with tp.Lab(tmp_path / "passing.db") as lab:
        run = lab.open(run_id)
        trials: dict[str, Any] = {trial.case.id: trial for trial in run.trials()}
        assert sorted(trials) == [f"{n:04}" for n in range(1, 8)]
        first, second, third, plain, forced, failed, cut = (trials[id] for id in sorted(trials))
        assert [c.name for c in first.result.calls] == ["get_weather"]
        assert first.completion.raw == f"Well. {OSLO}"
        assert [t.name for t in first.case.tools] == ["get_weather", "now"]
        # The request is the one that was sent: its tools in words.
        assert first.request["messages"][0]["role"] == "system"
        assert first.request["params"]["temperature"] == 0.5
        assert first.completion.prompt_tokens == 10
        for trial in (second, third):
            texts = [chunk.text for chunk in trial.completion.chunks]
            assert "".join(texts) == trial.completion.raw == f"Well. {OSLO}"
            assert len(texts) > 5
            assert trial.completion.chunks[0].at <= trial.completion.chunks[-1].at
            assert trial.completion.latency > 0
        assert plain.result.calls == ()
        assert forced.result.calls[0].name == "now"
        assert forced.request["params"]["response_format"]["type"] == "json_schema"
        assert (failed.completion.error_kind, cut.completion.error_kind) == (
            "server_error",
            "cut_stream",
        )
        assert cut.completion.raw == "one two thre"
        assert run.summary is not None
        assert run.summary.done == 5
        outcomes = run.trials_df().set_index("case_id")["outcome"]
        assert outcomes["0006"] == outcomes["0007"] == "provider_error"
        assert not run.report().frame.empty


def test_a_run_is_readable_while_it_goes_on_and_ends_at_its_length(
    mock: MockOpenAI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder_module, "_MOST", 3)
    with Passing(mock, tmp_path / "passing.db") as passing:
        for n in range(7):
            passing.ask(f"say={n} {OSLO}", tools=TOOLS)
        # The gate first: a caller has its answer a moment before the recorder does.
        passing.gateway.close()
        with tp.Lab(tmp_path / "passing.db") as lab:
            sizes = [len(lab.open(run_id).trials()) for run_id in passing.gateway.run_ids]
    assert sizes == [3, 3, 1]


def test_a_store_that_cannot_be_written_is_told_and_nothing_stops(
    mock: MockOpenAI, tmp_path: Path
) -> None:
    with Passing(mock, tmp_path / "passing.db") as passing:
        passing.store.close()

        def refuse(*args: object, **more: object) -> None:
            raise OSError("the disk is full")

        passing.recorder._store = type("Full", (), {"begin_run": refuse})()
        assert passing.ask(f"say={OSLO}", tools=TOOLS).choices[0].message.tool_calls
        passing.gateway.close()
    assert passing.told == ["not recorded: the disk is full"]


SECRETS = {
    "caller": KEY,
    "upstream": 'planted/up+"stream-0123456789',
    "environment": "planted-environment-0123456789",
    "api_key of the body": "planted-body-0123456789",
    "header of the body": "planted-header-0123456789",
    "nested": "planted-nested-0123456789",
    "own header": "planted-own-0123456789",
    "cookie": "planted-cookie-0123456789",
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("own_upstream_key", [False, True])
@pytest.mark.exhaustive(3)
def test_a_secret_of_a_request_is_nowhere_in_the_recording(
    mock: MockOpenAI,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    stream: bool,
    own_upstream_key: bool,
) -> None:
    monkeypatch.setenv("PLANTED_API_KEY", SECRETS["environment"])
    key = {"upstream_key": SECRETS["upstream"]} if own_upstream_key else {}
    everything = " and ".join(SECRETS.values())
    orders = (
        "say=" + everything,  # the model repeats them, across chunks
        "status=401 confess say=x",
        "status=400 confess=base64 say=x",
        "status=500 confess=quoted say=x",
        "cut=30 say=" + everything,
    )
    with Passing(mock, tmp_path / "passing.db", **key) as passing:
        for order in orders:
            passing.ask(
                order,
                [{"role": "system", "content": everything}],
                stream=stream,
                tools=[
                    *TOOLS,
                    {"type": "function", "function": {"name": "f", "description": everything}},
                ],
                extra_headers={
                    "X-Corp-Gate": SECRETS["own header"],
                    "Cookie": f"session={SECRETS['cookie']}",
                },
                extra_body={
                    "api_key": SECRETS["api_key of the body"],
                    "extra_headers": {"X-Team": SECRETS["header of the body"]},
                    "lane": [{"client_secret": SECRETS["nested"], "note": everything}],
                },
            )
    assert passing.told == []
    with tp.Lab(tmp_path / "passing.db") as lab:
        assert len(lab.open().trials()) == len(orders)
    texts = list(stored(tmp_path))
    assert any("get_weather" in text for _, text in texts)
    # What a request did not hold cannot be known of it.
    unknown = set() if own_upstream_key else {"upstream"}
    found = [
        (name, where, text[max(0, text.index(form) - 80) :][:200])
        for name, secret in SECRETS.items()
        if name not in unknown
        for form in dict.fromkeys(forms(secret))
        for where, text in texts
        if form in text
    ]
    assert found == []


def test_a_store_is_made_of_one_table_of_answers(mock: MockOpenAI, tmp_path: Path) -> None:
    with Passing(mock, tmp_path / "passing.db") as passing:
        passing.ask("say=Hi")
    with contextlib.closing(sqlite3.connect(tmp_path / "passing.db")) as connection:
        (plan,) = connection.execute("select plan from runs").fetchone()
    assert json.loads(plan)["ingested"]["source"] == "gateway"


def test_what_nobody_foresaw_does_not_end_the_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with MockOpenAI() as mock, Passing(mock, tmp_path / "runs.db") as passing:
        failed: list[Any] = []
        add = recorder_module._RunSoFar.add

        def broken(run: Any, exchange: Any) -> Any:
            if not failed:
                failed.append(exchange)
                raise ValueError("a secret")
            return add(run, exchange)

        monkeypatch.setattr(recorder_module._RunSoFar, "add", broken)
        passing.ask("say=lost")
        wait_until(lambda: failed)
        passing.ask("say=kept")
        passing.gateway.close()
        (run_id,) = passing.recorder.run_ids
        assert [c.raw for _, c in passing.store.completions(run_id)] == ["kept"]
    assert passing.told == ["not recorded: ValueError"]


def test_a_store_that_is_too_slow_stops_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder_module, "_MOST_WAITING", 1)
    told: list[str] = []
    with Store(tmp_path / "runs.db") as store:
        slow = RunRecorder(store, any_protocol("hermes"), told.append)
        go = threading.Event()
        monkeypatch.setattr(slow, "_write", lambda _: go.wait())
        exchange: Any = object()
        for _ in range(4):
            slow.add(exchange)
        go.set()
        slow.close()
    assert told
    assert all(line.startswith("not recorded: the store is too slow") for line in told)
