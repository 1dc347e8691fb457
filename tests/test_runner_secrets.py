"""Keys planted everywhere a user may put one, looked for everywhere this package leaves
something."""

import base64
import json
import logging
import sqlite3
import traceback
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import toolparse_lab as tp
from tests.mock_openai import MockOpenAI
from toolparse_lab.errors import ProviderError
from toolparse_lab.store.recording import export_recording

MARK = "planted"
KEYS = {
    "environment": "planted-environment-0123456789",
    "argument": "planted-argument-0123456789",
    "header": "planted-header-0123456789",
    "bearer": "planted-bearer-0123456789",
    "user": "planted-user-0123456789",
    "password": "planted-password-0123456789",
    "query": "planted-query-0123456789",
    "body": "planted-body-0123456789",
    "nested": "planted-nested-0123456789",
}
TOOL = {"name": "f", "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}}}
ANSWER = 'say=<tool_call>{"name": "f", "arguments": {"n": "3"}}</tool_call>'
ORDERS = [
    "",
    "status=401 confess ",
    "status=500 confess ",
    "status=400 confess ",
    "cut=2 ",
    "abort=1 ",
]


def models(url: str) -> dict[str, tp.Model]:
    host = url.removeprefix("http://")
    common: dict[str, Any] = {"price": (1, 1), "max_retries": 0, "timeout": 5}
    return {
        "environment": tp.Model("openai/a", api_base=url, **common),
        "argument": tp.Model("openai/b", api_base=url, api_key=KEYS["argument"], **common),
        "headers": tp.Model(
            "openai/c",
            api_base=url,
            api_key="none",
            headers={"X-Api-Key": KEYS["header"], "Authorization": f"Bearer {KEYS['bearer']}"},
            **common,
        ),
        "address": tp.Model(
            "openai/d",
            api_base=f"http://{KEYS['user']}:{KEYS['password']}@{host}",
            api_key="none",
            **common,
        ),
        "query": tp.Model(
            "openai/e", api_base=f"{url}?version=1&key={KEYS['query']}", api_key="none", **common
        ),
        "body": tp.Model(
            "openai/f",
            api_base=url,
            api_key="none",
            extra_body={"api_key": KEYS["body"], "auth": {"token": KEYS["nested"]}},
            **common,
        ),
    }


@pytest.fixture
def said(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> pytest.LogCaptureFixture:
    monkeypatch.setenv("OPENAI_API_KEY", KEYS["environment"])
    caplog.set_level(logging.DEBUG)
    return caplog


def stored(folder: Path) -> Iterator[tuple[str, str]]:
    """Everything on disk, also what is packed in there."""
    for file in folder.rglob("*"):
        if file.is_file():
            yield file.name, file.read_bytes().decode("latin-1")
    for file in folder.rglob("*.db"):
        connection = sqlite3.connect(file)
        tables = [
            row[0]
            for row in connection.execute("select name from sqlite_master where type = 'table'")
        ]
        for table in tables:
            for row in connection.execute(f"select * from {table}"):
                for value in row:
                    if isinstance(value, bytes):
                        yield table, zlib.decompress(value).decode("utf-8", "surrogatepass")
        connection.close()


def found(where: str, text: str) -> list[str]:
    login = base64.b64encode(f"{KEYS['user']}:{KEYS['password']}".encode()).decode()
    assert login not in text, where
    return [
        f"{name} in {where}: …{text[max(0, text.index(key) - 60) :][:120]}"
        for name, key in KEYS.items()
        if key in text
    ]


@pytest.mark.slow
@pytest.mark.parametrize("stream", [False, True])
def test_a_planted_key_is_found_nowhere(
    tmp_path: Path, said: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str], stream: bool
) -> None:
    left: list[tuple[str, str]] = []
    cases = [
        {"id": f"c{n}", "input": o + ANSWER, "tools": [TOOL], "target": []}
        for n, o in enumerate(ORDERS)
    ]
    with MockOpenAI() as mock, tp.Lab(str(tmp_path / "runs.db")) as lab:
        named = models(mock.url)
        plan = lab.plan(cases, named, ["hermes"], few_shot=0, stream=stream)
        events: list[Any] = []
        run = lab.run(plan, progress=True, on_event=events.append)
        sent = json.dumps([mock.headers, mock.bodies, mock.paths])
        login = base64.b64encode(f"{KEYS['user']}:{KEYS['password']}".encode()).decode()
        reached = {
            name: {"user": login, "password": login}.get(name, key) in sent
            for name, key in KEYS.items()
        }
        assert reached == dict.fromkeys(KEYS, True)
        assert len(mock.bodies) == len(cases) * len(named)
        left += [
            ("events", repr(events)),
            ("run", repr(run)),
            ("plan", str(plan) + repr(plan) + repr(plan.models)),
        ]
        left += [("summary", str(run.summary)), ("lab", repr(lab))]
        left += [("runs", repr(lab.runs())), ("opened", repr(lab.open(run.run_id).plan.models))]
        frames = {"trials": run.frame(), "calls": run.calls_df(), "events": run.events_df()}
        left += [(name, frame.to_json(default_handler=str)) for name, frame in frames.items()]
        report = run.report(baseline=None)
        for name in ("report.html", "report.md"):
            report.save(str(tmp_path / name))
        left.append(
            (
                "trials",
                "".join(
                    repr(t) + json.dumps(t.request, default=str) + repr(t.completion)
                    for t in run.trials()
                ),
            )
        )
        export_recording(lab.store, tmp_path / "recording.jsonl", run_id=run.run_id)
        for alias in named:
            for order in ("status=401 confess ", "status=429 confess after=900 "):
                with pytest.raises(ProviderError) as e:
                    lab.ask(order + "say=hi", [TOOL], model=named[alias])
                left.append(("exception", "".join(traceback.format_exception(e.value))))
        # While it is open, what was written last is in the WAL.
        left += list(stored(tmp_path))
    left += list(stored(tmp_path))
    printed = capsys.readouterr()
    left += [("stdout", printed.out), ("stderr", printed.err), ("log", said.text)]
    assert [line for where, text in left for line in found(where, text)] == []
    assert "[redacted]" in "".join(text for _, text in left)
