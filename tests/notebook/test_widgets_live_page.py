"""What `toolparse open` shows, and what it says where it cannot."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("anywidget", reason="the page needs the extra open")
pytest.importorskip("tornado", reason="the page needs the extra open")

pytest.importorskip("httpx", reason="of the lab")

import httpx

import toolparse_lab as tp
from tests.laws import EXHAUSTIVE
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
    assert repr(view).startswith("Browser(All 2 answers can be executed. 2 after repair.")


def test_one_trial_is_no_plural(tmp_path: Path) -> None:
    with tp.Lab(tmp_path / "one.db") as lab:
        run = lab.ingest([{"input": "x", "raw": "<tool_call>{"}], tools=[{"name": "f"}])
        view = Browser(run.frame())
        assert repr(run.failures()).startswith("1 trial\n")
    assert repr(view).startswith("Browser(The answer cannot be executed.")
    assert "<b>The answer cannot be executed</b>" in view.static_html()


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
    edit = {"kind": "edit", "seq": 1, "raw": TEXT.replace('"1"', '"7"')}
    assert opened.answer(view, edit)["bench"]["marks"]
    again = opened.first(view, "")
    assert again["view"] == view
    assert "&#34;7&#34;" in again["html"] or "&quot;7&quot;" in again["html"]
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
    assert view._facets["tool"] == ["f", "g 'x'"]

    def found(tool: str) -> str:
        return str(view.answer({"kind": "filter", "values": {"tool": tool}})["said"])

    assert [found("f"), found("g 'x'")] == ["2 of 3 answers", "1 of 3 answers"]
    assert found("") == "3 answers"


def test_the_first_sentence_and_the_causes_are_those_of_the_answers(tmp_path: Path) -> None:
    call = '<tool_call>{"name": "%s", "arguments": %s}</tool_call>'
    texts = [call % ("f", '{"x": 1}')] * 3 + [call % ("f", '{"x": "1"}')] * 2
    texts += [call % ("g", "{}")] * 2 + [call % ("f", '{"x": 1, "x": 2}')] + ["<tool_call>{"]
    with tp.Lab(tmp_path / "causes.db") as lab:
        rows = [{"input": "q", "raw": text, "protocol": "hermes"} for text in texts]
        view = lab.ingest(rows, tools=TOOLS).browse()
    words = " ".join(re.sub(r"<[^>]*>", " ", view._html).split())
    assert "4 of 9 answers cannot be executed 5 can: 3 as written, 2 after repair." in words
    chips = re.findall(r"</i>([^<]*) <b>(\d+)</b>", view._html)
    assert chips == [
        ("Cut off", "1"), ("Same key twice", "1"), ("Unknown tool", "2"),
        ("After repair", "2"), ("As written", "3"),
    ]  # fmt: skip
    # The list has them in the same order, and a chip leaves one of them.
    heads = re.findall(r'class="t">([^<]*)<', view._html)
    assert heads == [word for word, _ in chips]
    reply = view.answer({"kind": "group", "value": 2})
    assert reply["said"] == "2 of 9 answers"
    assert re.findall(r'class="t">([^<]*)<', reply["html"]) == ["Unknown tool"]
    assert view.answer({"kind": "exact", "group": 2})["html"].count("all: g")
    # No match says so, with a way out.
    nothing = view.answer({"kind": "filter", "values": {"text": "Oslo"}})["html"]
    assert "No answer holds “Oslo” among the 2 unknown tool." in nothing
    assert "Clear filters" in nothing
    assert view.answer({"kind": "clear"})["said"] == "9 answers"


def test_a_line_marks_what_matters_and_a_reading_stands_once(tmp_path: Path) -> None:
    call = '<tool_call>{"name": "f", "arguments": {"x": %s}}</tool_call>'
    cut = (call % f'"{"long " * 12}"')[:90]
    texts = [call % "1", call % '"1"', call % '1, "x": 2', cut]
    with tp.Lab(tmp_path / "lines.db") as lab:
        rows = [{"input": "q", "raw": text} for text in texts]
        rows[-1]["finish_reason"] = "length"
        view = lab.ingest(rows, tools=TOOLS).browse()
    marks = {}
    for number, group in enumerate(view._rows.groups):
        html = view.answer({"kind": "group", "value": number})["html"]
        marks[group.word] = re.findall(r"<mark[^>]*>([^<]*)</mark>", html)
    assert marks == {
        "cut off": ["ends here"],
        "same key twice": ["&quot;x&quot;: 1, &quot;x&quot;: 2"],
        "after repair": ["1"],
        "as written": [],
    }
    view.answer({"kind": "clear"})
    ends = re.search(r'class="x">([^<]*)<mark class="end">', view.static_html())
    assert ends is not None
    assert len(ends[1]) < 40, "a phone shows all of it"
    # Nobody knows the format, which is no row of a table then.
    assert '<th scope="row">executable</th>' in view.static_html()
    first, second = (view.answer({"kind": "step", "by": 1})["html"] for _ in range(2))
    assert "the token limit was reached" in first
    assert "cannot be told" not in first
    assert second.count("It may be one of these.") == 1
    assert second.count("f(x=1)") == second.count("f(x=2)") == 1
    assert "cost 1" not in second


def test_a_page_tells_how_much_of_a_large_log_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = ingested(tmp_path / "runs.db")
    subject = {"store": str(tmp_path / "runs.db"), "run": run_id, "trial": None}
    views = live_page.OpenViews({**subject, "protocol": None, "policy": "lossy"})
    told: list[str] = []
    heard = live_page.OpenViews._heard

    def hear(self: live_page.OpenViews, done: int, total: int | None) -> None:
        heard(self, done, total)
        told.append(self.reading)

    monkeypatch.setattr(live_page.OpenViews, "_heard", hear)
    views.first("", "")
    assert told == ["Reading 0 of 2 answers …", "Reading 2 of 2 answers …"]
    assert views.reading == "Reading …"


def test_a_wrong_value_stands_beside_the_expected_one(tmp_path: Path) -> None:
    text = '<tool_call>{"name": "f", "arguments": {"x": 2}}</tool_call>'
    target = [{"name": "f", "arguments": {"x": 1}}]
    with tp.Lab(tmp_path / "wrong.db") as lab:
        rows = [{"input": "q", "raw": text, "protocol": "hermes", "target": target}] * 2
        rows += [{"input": "q", "raw": text.replace("2", "1"), "protocol": "hermes",
                  "target": target}]  # fmt: skip
        rows += [{"input": "q", "error": "rate limit", "protocol": "hermes", "target": target}]
        view = lab.ingest(rows, tools=TOOLS).browse()
    said = "2 of 3 answers are wrong. 1 is right. 1 request got no answer."
    assert repr(view) == f"Browser({said})"
    assert '<td class="r">2 of 3</td>' in view._html
    assert '<mark>2</mark>}}&lt;/tool_call&gt; <span class="soft">expected 1</span>' in view._html
    html = view.answer({"kind": "step", "by": 1})["html"]
    assert "“x” is 2; 1 was expected." in html
    assert re.search(r'<span class="k-wrong"[^>]*>2</span>', html)
    assert "✗ Wrong value" in html
    assert "could be executed" in html
    assert "1 of 2" in html
    # What got no answer is neither right nor wrong.
    others = dict(re.findall(r'<span class="badge (\w+)">(. [^<]*)</span>', html))
    assert others["flat"].startswith("· ")
    assert others["bad"] == "✗ wrong value"


ODD: list[Any] = [
    None, True, 7, -1, 1e309, "x", "\ud800", [], [[]], {}, {"a": {}}, {"$": [None]}, "9" * 5000,
    {"kind": "x"}, {"raw": 5}, {"tools": 3}, {"coerce": []}, {"protocol": {}}, "<script>",
]  # fmt: skip
FIELDS = (
    *("raw", "value", "group", "column", "cell", "trial_id", "place", "values", "by"),
    *("call", "reading", "changed", "as", "seq"),
)
BROWSER: tuple[Any, ...] = (
    *("open", "step", "cause", "close", "bench", "unbench", "filter", "group", "count", "cell"),
    *("clear", "axes", "more", "exact", "next", "remark", "place", "edit", 5, None, []),
)
BENCH: tuple[Any, ...] = (
    *("edit", "values", "undo", "reset", "take", "go", "next", "compare", "beside", "stream"),
    *("keep", "page", 5, None, {}),
)


def odd_messages(kinds: tuple[Any, ...], trial_id: str = "") -> Iterator[Any]:
    yield from ODD
    for kind in kinds:
        yield {"kind": kind}
        for field in FIELDS:
            for value in ODD:
                yield {"kind": kind, "trial_id": trial_id, field: value}
                if field in ("values", "place"):
                    yield {
                        "kind": kind,
                        "trial_id": trial_id,
                        field: {"raw": value, "text": value, "model": value, "size": value},
                    }


def test_every_message_gets_an_answer_in_words(tmp_path: Path) -> None:
    run_id = ingested(tmp_path / "runs.db")
    with tp.Lab(tmp_path / "runs.db") as lab:
        browser = lab.open(run_id).browse()
        trial_id = lab.open(run_id).trials()[0].trial_id
        bench = tp.workbench(TEXT, "hermes", TOOLS)
        before = bench.setup
        for view, kinds in ((browser, BROWSER), (bench, BENCH)):
            for message in islice(odd_messages(kinds, trial_id), 0, None, 1 if EXHAUSTIVE else 29):
                reply = view.reply(message)
                assert isinstance(reply, dict)
                json.dumps(reply)
                words = str(reply.get("error") or "")
                assert "Traceback" not in words
                assert reply.get("status", 200) in (200, 400, 404)
                assert reply.get("status", 200) == 200 or words
        assert browser.reply({"kind": "open", "trial_id": "none"})["status"] == 404
        assert browser.reply({"kind": "open", "trial_id": trial_id})["opened"] == trial_id
        values = {"raw": TEXT, "protocol": "hermes", "coerce": "safe", "repair": True}
        bench.reply({"kind": "values", "values": {**values, "recover": True, "reasoning": "auto"}})
        assert bench.result.calls[0].arguments == {"x": 1}
        assert bench.setup.raw == before.raw


def test_no_message_of_a_front_end_is_an_exception_in_the_kernel(tmp_path: Path) -> None:
    bench = tp.workbench(TEXT, "hermes", TOOLS)
    sent: list[Any] = []
    bench.send = sent.append
    bodies = [*ODD, *({"method": m} for m in ODD if not isinstance(m, float))]
    bodies += [{"method": "update", "state": value} for value in ODD]
    bodies += [{"method": "update", "state": {"_html": 5, "x": 1}, "buffer_paths": [[1]]}]
    bodies += [{"method": "update", "state": {"_html": 5, "tabbable": "x", "none": None}}]
    bodies += [{"method": "custom"}, {"method": "custom", "content": None}]
    for data in bodies:
        bench._handle_msg({"content": {"data": data}, "buffers": []})
    assert sent


def test_a_log_is_called_by_its_name_and_has_the_intervals_of_its_report(tmp_path: Path) -> None:
    log = tmp_path / "answers.jsonl"
    rows = [
        {"id": f"c{n}", "input": f"q{n % 3}", "raw": TEXT if n % 4 else "<tool_call>{"}
        for n in range(30)
    ]
    log.write_text("\n".join(json.dumps({**row, "protocol": "hermes"}) for row in rows))
    (tmp_path / "tools.json").write_text(json.dumps(TOOLS))
    with tp.Lab(tmp_path / "runs.db") as lab:
        run = lab.ingest(log, tools=str(tmp_path / "tools.json"))
        view, report = run.browse(), run.report()
    assert view.title == "answers.jsonl"
    (cell,) = view._rows.cells({})["cells"]
    (figures,) = report.ungraded.to_dict("records")
    assert tuple(cell[-2:]) == pytest.approx((figures["ci_low"], figures["ci_high"]))
    # What hides the search gives way to it.
    view.answer({"kind": "step", "by": 1})
    search = '[data-key="/"]'
    assert view.answer({"kind": "close", "focus": search})["focus"] == search


def test_the_page_answers_by_its_status(tmp_path: Path) -> None:
    run_id = ingested(tmp_path / "runs.db")
    subject = {
        "store": str(tmp_path / "runs.db"),
        "run": run_id,
        "trial": None,
        "protocol": None,
        "policy": "safe",
    }
    answers: dict[str, tuple[int, Any]] = {}

    async def work() -> None:
        listener = live_page._listener(0)
        place: list[str] = []
        serving = asyncio.create_task(
            live_page._serve(live_page.OpenViews(subject), listener, "auto", False, place.append)
        )
        while not place:
            await asyncio.sleep(0.01)
        root, _, token = place[0].partition("?token=")
        headers = {"Cookie": f"toolparse-{listener.getsockname()[1]}={token}"}
        async with httpx.AsyncClient(base_url=root, headers=headers) as client:
            view = (await client.get("first")).json()["view"]

            async def ask(name: str, body: Any) -> None:
                content = body if isinstance(body, (str, bytes)) else json.dumps(body)
                got = await client.post("answer", content=content)
                answers[name] = got.status_code, got.json()

            for name, body in {
                "no json": "x", "bytes": b"\xff", "deep": "[" * 100_000, "list": [1], "no view": {"message": {}},
                "no kind": {"view": view, "message": {}}, "odd": {"view": view, "message": {"kind": "step", "by": {"a": 1}}},
                "no trial": {"view": view, "message": {"kind": "open", "trial_id": "x"}},
                "gone": {"view": "other", "message": {"kind": "close"}},
                "good": {"view": view, "message": {"kind": "close"}},
            }.items():  # fmt: skip
                await ask(name, body)
            got = await client.get("first", params={"run": "none"})
            answers["no run"] = got.status_code, got.json()
            first = (await client.get("first")).json()["html"]
            assert f'href="/report/{run_id}"' in first
            page = (await client.get(f"report/{run_id}")).text
            assert f'href="/run/{run_id}"' in page
            # The report has no script, and is as dark as the page was made.
            named = dict(headers, Cookie=f"{headers['Cookie']}; toolparse-theme=dark")
            dark = (await client.get(f"report/{run_id}", headers=named)).text
            assert '<html data-theme="dark"' in dark
            assert '<html data-theme="auto"' in page
            assert "All 2 answers can be executed" in first
            assert "All 2 answers can be executed" in page
            assert (await client.get("report/none")).status_code == 404
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)

    asyncio.run(work())
    statuses = {name: status for name, (status, _) in answers.items()}
    assert statuses == {
        "no json": 400, "bytes": 400, "deep": 400, "list": 400, "no view": 400, "no kind": 400,
        "odd": 400, "no trial": 404, "gone": 410, "good": 200, "no run": 404,
    }  # fmt: skip
    assert all(
        body.get("error") or body.get("text") for n, (_, body) in answers.items() if n != "good"
    )
