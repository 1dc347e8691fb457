"""The three ways the lab is used, from the first line to the last: compare, debug, report. Over
real HTTP to a mock model that always answers alike: it calls the right tool, but some of its texts
are damaged in a way of their own."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import toolparse_lab as tp
from tests.mock_openai import MockOpenAI
from tests.replay_server import Answer, Asked, json_answer
from tests.tools import tool_named
from toolparse_lab.experiments.run import Run

CITIES = ["Oslo", "Rome", "Lima", "Kyiv", "Bern", "Riga"]
BROKEN, CUT_OFF = "Kyiv", "Riga"
TOOL = tool_named(
    "get_weather",
    "The weather of a city.",
    required=["city", "days"],
    city="string",
    days="integer",
)


class MockModel(MockOpenAI):
    """Answers what a model of that skill would: native calls always well, Hermes mostly, Morph with
    days as words."""

    def chat(self, request: Asked, body: dict[str, Any]) -> Answer:
        asked, prompt = str(body["messages"][-1]["content"]), str(body["messages"])
        calls: list[dict[str, Any]] | None = None
        text: str | None = None
        if copied := re.search(r"-----\n(.*)\n-----", asked, re.DOTALL):
            text = copied[1]
        elif body.get("tools"):
            name = body["tools"][0]["function"]["name"]
            arguments = (
                {"word": "heron"}
                if name == "record_word"
                else {"city": self.city(asked), "days": 2}
            )
            calls = [
                {
                    "id": "c",
                    "type": "function",
                    "function": {"name": name, "arguments": json.dumps(arguments)},
                }
            ]
        elif "<tool_call>" in prompt:
            city = self.city(asked)
            end = ",,,:" if city == BROKEN else "" if city == CUT_OFF else "}}</tool_call>"
            text = f'<tool_call>{{"name": "get_weather", "arguments": {{"city": "{city}", "days": "2"{end}'
            text += "</tool_call>" if city == BROKEN else ""
        else:
            text = f"<get_weather><city>{self.city(asked)}</city><days>two</days></get_weather>"
        message = {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}
        choice = {
            "index": 0,
            "message": message,
            "finish_reason": "tool_calls" if calls else "stop",
        }
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        about = {"id": "x", "object": "chat.completion", "created": 1, "model": body["model"]}
        return json_answer({**about, "choices": [choice], "usage": usage})

    @staticmethod
    def city(asked: str) -> str:
        return next(c for c in CITIES if c in asked)


@pytest.fixture(scope="module")
def endpoint() -> Iterator[MockModel]:
    model = MockModel()
    with model:
        yield model


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("workflows")


@pytest.fixture(scope="module")
def lab(folder: Path) -> Iterator[tp.Lab]:
    rows = [
        {
            "id": city,
            "input": f"What is the weather in {city} for two days?",
            "tools": [TOOL],
            "target": [{"name": "get_weather", "arguments": {"city": city, "days": 2}}],
            "metadata": {"category": "even" if n % 2 else "odd"},
        }
        for n, city in enumerate(CITIES)
    ]
    (folder / "cases.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    with tp.Lab(folder / "runs.db") as lab:
        yield lab


@pytest.fixture(scope="module")
def models(endpoint: MockModel) -> dict[str, tp.Model]:
    return {
        name: tp.Model(
            f"openai/{name}", api_base=endpoint.url, api_key="k", max_connections=4, price=(0, 0)
        )
        for name in ("qwen-a", "qwen-b")
    }


@pytest.fixture(scope="module")
def run(lab: tp.Lab, models: dict[str, tp.Model], folder: Path, endpoint: MockModel) -> Run:
    cases = tp.load_cases(folder / "cases.jsonl").sample(6, by="category", seed=1)
    checked = lab.check(models, ["native", "hermes"])
    assert {c.verdict for c in checked} == {"ok"}, str(checked)
    plan = lab.plan(cases, models, ["native", "hermes", "morph_xml"], trials=3, max_tokens=1024)
    n = 6 * 2 * 3 * 3
    assert f"{n}" in str(plan)
    before = endpoint.calls
    run = lab.run(plan, max_cost=5, progress=False)
    assert endpoint.calls - before == n
    lab.run(plan, max_cost=5, progress=False)
    assert endpoint.calls - before == n
    return run


def test_compare(run: Run) -> None:
    frame = run.frame()
    rates = frame.groupby(["model", "arm"], observed=True)["score_success"].mean()
    assert {
        arm: rates["qwen-a", arm] for arm in ("native", "hermes", "morph_xml")
    } == pytest.approx({"native": 1, "hermes": 4 / 6, "morph_xml": 0})
    assert "hermes" in str(run.matrix())
    compared = run.compare("hermes", "morph_xml", within="model")
    assert len(compared.frame) >= 2
    assert "-67" in str(compared) or "−67" in str(compared)
    for trials in (run.trials_df(), run.calls_df(), run.events_df()):
        assert isinstance(trials.index, pd.RangeIndex)
    assert run.chunks_df(case_id="Oslo").empty  # nothing was streamed


def test_debug(run: Run, lab: tp.Lab, models: dict[str, tp.Model], folder: Path) -> None:
    trial = run.failures(model="qwen-a", code="attempted_unparseable")[0]
    assert trial.case.id == BROKEN
    assert "get_weather" in str(trial.request["messages"])
    assert trial.wire is not None
    assert trial.result is not None
    assert trial.result.debug() is not None
    again = trial.retry(protocol="native")
    assert again.outcome == "correct"
    written = trial.as_pytest(folder / "test_found.py")
    assert "get_weather" in Path(written).read_text("utf-8")
    asked = lab.ask("weather in Rome?", tools=[TOOL], model=models["qwen-a"], protocol="hermes")
    assert asked.calls[0].arguments == {"city": "Rome", "days": 2}
    assert asked.debug() is not None


def test_report(run: Run, lab: tp.Lab, folder: Path) -> None:
    report = run.report(by=["model", "arm"], baseline="native", policy="safe")
    assert len(report.frame) == 6
    flipped = report.flips("native", "hermes")
    assert {*flipped["case_id"]} == {BROKEN, CUT_OFF}
    gate = report.gate(success=0.95, coercion_rate=0.20)
    assert not gate
    assert "success" in str(gate)
    report.save(folder / "report.html")
    page = (folder / "report.html").read_text("utf-8")
    assert BROKEN in page
    assert "http://" not in page.replace("http://www.w3.org", "")

    logged = pd.DataFrame(
        {"raw": ['<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}</tool_call>']}
    )
    ingested = lab.ingest(logged, tools=[TOOL])
    assert len(ingested.frame()) == 1
    read = lab.reparse(
        run, protocols=["hermes", "auto"], policies=["none", "safe"], engine="processes"
    )
    assert len(read) == 4 * len(run.frame())
    strict = read[(read["policy"] == "none") & (read["arm"] == "hermes")]
    assert not strict["score_success"].any()  # the days were text
    assert "0" in str(lab.diff(run, run))
    none, safe = (
        read[(read["policy"] == p) & (read["parse_protocol"] == "hermes")] for p in ("none", "safe")
    )
    paired = lab.diff(none, safe)
    assert len(paired.flips) > 0
    assert {*paired.flips["direction"]} == {"gained"}
