"""What `toolparse open` shows, and what it says where it cannot."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("anywidget", reason="the page needs the extra open")
pytest.importorskip("tornado", reason="the page needs the extra open")

import toolparse_lab as tp
from tests.tables import each_case
from toolparse_lab.cli import main
from toolparse_lab.notebook import live_page
from toolparse_lab.notebook.bench import Workbench
from toolparse_lab.notebook.browser import Browser

TOOLS = [{"name": "f", "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}}}]
TEXT = '<tool_call>{"name": "f", "arguments": {"x": "1"}}</tool_call>'


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Run `toolparse open` with a server that shows the view instead of serving it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tools.json").write_text(json.dumps(TOOLS))
    views: list[Any] = []

    def show(subject: Any, **_: Any) -> None:
        opened = live_page.OpenViews(subject)
        views.append(opened._views[opened.first("", "")["view"]])
        raise KeyboardInterrupt

    monkeypatch.setattr(live_page, "serve_page", show)

    def command(*words: str) -> tuple[int, Any]:
        views.clear()
        return main(["open", *words]), views[0] if views else None

    return command


def ingested(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tp.Lab(path) as lab:
        rows = [{"input": "q", "raw": TEXT, "id": name, "protocol": "hermes"} for name in "ab"]
        return lab.ingest(rows, tools=TOOLS).run_id


def test_a_text(shown: Any, tmp_path: Path) -> None:
    (tmp_path / "answer.txt").write_text(TEXT)
    for name in ("answer.txt", TEXT):
        code, view = shown(name, "--protocol", "hermes", "--tools", "tools.json")
        assert code == 130
        assert isinstance(view, Workbench)
        assert view.result.calls[0].arguments == {"x": 1}
    _, view = shown("answer.txt", "--tools", "tools.json", "--policy", "none")
    assert view.result.calls[0].arguments == {"x": "1"}


@pytest.mark.parametrize("store", ["toolparse.db", ".demo/runs.db"])
def test_the_latest_run_of_the_nearest_store(shown: Any, store: str) -> None:
    ingested(Path(store))
    code, view = shown()
    assert code == 130
    assert isinstance(view, Browser)
    assert repr(view) == "Browser(2 trials, 0 failures)"


def test_one_trial_is_no_plural(tmp_path: Path) -> None:
    with tp.Lab(tmp_path / "one.db") as lab:
        run = lab.ingest([{"input": "x", "raw": "<tool_call>{"}], tools=[{"name": "f"}])
        view = Browser(run.frame())
        assert repr(run.failures()).startswith("1 trial\n")
    assert repr(view) == "Browser(1 trial, 1 failure)"
    assert "<b>1 trial, 1 failure</b>" in view.static_html()
    assert view._page({}, 0)["summary"] == "1 trial, 1 failure"


def test_a_store_a_run_and_a_trial(shown: Any, tmp_path: Path) -> None:
    run_id = ingested(tmp_path / "other" / "logs.db")
    assert isinstance(shown("other/logs.db")[1], Browser)
    code, view = shown(run_id[:14], "--store", "other/logs.db")
    assert code == 130
    assert isinstance(view, Browser)
    with tp.Lab("other/logs.db") as lab:
        trial_id = lab.open(run_id).trials()[0].trial_id
    code, view = shown("latest", trial_id, "--store", "other/logs.db")
    assert code == 130
    assert isinstance(view, Workbench)
    assert view.result.raw == TEXT


@each_case
def test_what_cannot_be_opened_is_one_line(
    shown: Any, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    ingested(Path("toolparse.db"))
    try:
        code, view = shown(*words)
    except SystemExit as e:  # argparse's own complaint
        code, view = int(e.code or 0), None
    assert (code, view) == (2, None)
    assert message in capsys.readouterr().err


def test_a_file_of_many_outputs_is_pointed_at_ingest(
    shown: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("out.jsonl").write_text(json.dumps({"raw": TEXT}))
    shown("out.jsonl")
    assert "first `toolparse ingest out.jsonl`" in capsys.readouterr().err


def test_a_port_in_use(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["open", TEXT, "--port", str(port), "--no-browser"]) == 2
    assert "--port 0 takes any free one" in capsys.readouterr().err


def test_a_tab_finds_its_view_again_and_the_oldest_goes() -> None:
    subject = {"text": TEXT, "tools": TOOLS, "protocol": "hermes", "policy": "safe"}
    opened = live_page.OpenViews(subject)
    view = opened.first("", "")["view"]
    edit = {"kind": "parse", "serial": 1, "values": {"raw": TEXT.replace('"1"', '"7"')}}
    assert opened.answer(view, edit)["kind"] == "parse"
    again = opened.first(view, "")
    assert again["view"] == view
    assert '"7"' in again["values"]["_state"]["view"]["raw"]
    for _ in range(live_page._MOST_VIEWS):
        opened.first("", "")
    with pytest.raises(KeyError):
        opened.answer(view, edit)


def test_trials_are_filtered_by_the_tool_that_they_call(tmp_path: Path) -> None:
    call = '<tool_call>{{"name": "{}", "arguments": {{}}}}</tool_call>'.format
    texts = [call("f"), call("f") + call('g "x"'.replace('"', "'")), "none"]
    tools = [{"name": name} for name in ("f", "g 'x'")]
    with tp.Lab(tmp_path / "tools.db") as lab:
        rows = [{"input": text, "raw": text, "protocol": "hermes"} for text in texts]
        view = lab.ingest(rows, tools=tools).browse()
    assert view._first["facets"]["tool"] == ["f", "g 'x'"]

    def found(tool: str) -> int:
        return int(view.answer({"kind": "page", "query": {"tool": tool}})["total"])

    assert [found("f"), found("g 'x'"), found("")] == [2, 1, 3]
