"""A report's figures are those that a script without the package counts in the raw log."""

from __future__ import annotations

import csv
import importlib
import json
import random
import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import toolparse_lab as tp
from benchmarks.intervals import BEGIN, END, SCENARIOS, is_honest, measure, ten_points_on_ten_cases
from benchmarks.recount import FIGURES, differences, recount, rows_of
from benchmarks.report import main
from tests.mock_openai import MockOpenAI, failure
from tests.replay_server import Answer, Asked, json_answer
from tests.tools import tool_named
from toolparse_lab.core.toolspec import tool_specs

TOOL = tool_named("f", a="integer")
PAGE_502 = "<html><head><title>502 Bad Gateway</title></head></html>"


def log(seed: int, missing: float, trials: int) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    rows = []
    for case in range(12):
        for model in ("a", "b"):
            for trial in range(trials):
                value = case + (rng.random() < 0.2)
                call = f'<tool_call>{{"name": "f", "arguments": {{"a": {value}}}}}</tool_call>'
                row = {
                    "case_id": f"c{case}", "model": model, "trial": trial, "tools": [TOOL],
                    "prompt_protocol": "hermes", "raw": call if rng.random() < 0.8 else "No.",
                    "target": [{"name": "f", "arguments": {"a": case}}] if case % 4 else [],
                }  # fmt: skip
                rows.append(
                    row | ({"raw": "", "error": "timeout"} if rng.random() < missing else {})
                )
    return rows


@pytest.mark.parametrize(("seed", "missing", "trials"), [(1, 0.0, 1), (2, 0.1, 3), (3, 0.5, 2)])
def test_every_figure_is_equal(seed: int, missing: float, trials: int, tmp_path: Path) -> None:
    rows = log(seed, missing, trials)
    with tp.Lab(tmp_path / "runs.db") as lab:
        cells: Any = lab.ingest(rows).report().frame.to_dict("records")
    counted = recount(json.loads(json.dumps(rows)))
    assert differences(counted, cells) == []
    # A figure that is another one is told.
    counted["a", "hermes"]["success"] += 0.01
    (found,) = differences(counted, cells)
    assert "success" in found
    assert set(FIGURES) == set(counted["a", "hermes"])


def logged(seed: int) -> list[dict[str, Any]]:
    """Requests and responses: fallbacks, error pages, rate limits, and trials that are not there."""
    rng = random.Random(seed)
    rows = []
    for case, model, trial in product(range(10), ("gpt-4.1-mini", "gpt-4o-mini"), range(3)):
        kind = rng.choices(("ok", "other", "limit", "page", "absent"), (80, 5, 5, 5, 5))[0]
        arguments = json.dumps({"a": case + (rng.random() < 0.3)})
        call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        if rng.random() < 0.2:
            message = {"role": "assistant", "content": "No."}
        body: Any = {
            "id": f"{case}-{trial}",
            "object": "chat.completion",
            "model": "gpt-4.1-nano" if kind == "other" else model,
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        }
        body = {"limit": {"error": {"type": "rate_limit_error"}}, "page": PAGE_502}.get(kind, body)
        asked = {"model": model, "messages": [{"role": "user", "content": f"{case}"}]}
        row = {
            "case_id": f"c{case}", "model": model, "request": {**asked, "tools": [TOOL]},
            "prompt_protocol": "native", "response": body, "latency": round(rng.random(), 3),
            "cost": 0.001 * case, "completion_tokens": 5 + case,
            "target": [{"name": "f", "arguments": {"a": case}}] if case % 4 else [],
        }  # fmt: skip
        rows += [row] if kind != "absent" else []
    return rows


@pytest.mark.parametrize("ending", ["jsonl", "csv"])
def test_every_figure_of_a_log_of_responses_is_equal(ending: str, tmp_path: Path) -> None:
    rows, path = logged(4), tmp_path / f"log.{ending}"
    if ending == "csv":
        with path.open("w", newline="") as file:
            table = csv.DictWriter(file, list(rows[0]))
            table.writeheader()
            for row in rows:
                table.writerow(
                    {k: x if isinstance(x, str) else json.dumps(x) for k, x in row.items()}
                )
    else:
        path.write_text("\n".join(map(json.dumps, rows)))
    with tp.Lab(tmp_path / "runs.db") as lab:
        cells: Any = lab.ingest(path, progress=False).report().frame.to_dict("records")
    assert differences(recount(rows_of(path)), cells) == []


class _Obliging(MockOpenAI):
    # Calls f as it is offered, wrongly for every third question, and fails every seventh request.
    def chat(self, request: Asked, body: dict[str, Any]) -> Answer:
        number = int(body["messages"][-1]["content"])
        if number % 7 == 6:
            return failure(400, "broken")
        call = {"name": "f", "arguments": {"a": number + (number % 3 == 2)}}
        message: dict[str, Any] = {
            "role": "assistant",
            "content": f"<tool_call>\n{json.dumps(call)}\n</tool_call>",
        }
        if "tools" in body:
            function = {**call, "arguments": json.dumps(call["arguments"])}
            calls = [{"id": "c", "type": "function", "function": function}]
            message = {"role": "assistant", "content": None, "tool_calls": calls}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return json_answer(
            {"id": "x", "object": "chat.completion", "model": "m", "choices": [choice]}
        )


def test_every_figure_of_a_run_with_both_ways_of_asking_is_equal(tmp_path: Path) -> None:
    tools = tool_specs([TOOL])
    cases = [
        tp.Case(f"c{n}", str(n), tools, [{"name": "f", "arguments": {"a": n}}]) for n in range(14)
    ]
    with _Obliging() as server, tp.Lab(tmp_path / "runs.db") as lab:
        model = tp.Model("openai/m", api_base=server.url, api_key="k")
        plan = lab.plan(cases, {"m": model}, ["native", "hermes"])
        run = lab.run(plan, progress=False)
        frame = run.frame()
        cells: Any = run.report().frame.to_dict("records")
    names = ["case_id", "model", "prompt_protocol", "raw", "target", "error", "latency"]
    rows = json.loads(frame[[*names, "completion_tokens", "cost"]].to_json(orient="records"))
    rows = [{**row, "target": json.loads(row["target"])} for row in rows]
    assert differences(recount(rows), cells) == []


# The simulation behind the table of docs/measurements.md: a small run of it, and its bounds.


PAGE = Path(__file__).parents[2] / "docs" / "measurements.md"
SETS = 40


def test_the_table_of_the_page_keeps_its_bounds() -> None:
    table = PAGE.read_text("utf-8").split(BEGIN, 1)[1].split(END, 1)[0].strip()
    assert table.count("\n| ") == 3 * len(SCENARIOS), "three rates a scenario, under two lines"
    assert is_honest(table)
    assert not is_honest(table.replace("| 0.9", "| 0.8", 1).replace("0.953", "0.853"))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.name.replace(" ", "-"))
def test_a_small_run_is_not_far_off(scenario: object) -> None:
    tally = measure(scenario, 0.9, 20, SETS, seed=3)  # type: ignore[arg-type]  # of the table
    assert tally.sets == SETS
    assert min(tally.rate_held, tally.difference_held) >= 0.8 * SETS
    assert max(tally.p_wrong, tally.worse_wrong, tally.not_worse_wrong) <= 0.2 * SETS


def test_ten_cases_cannot_tell_ten_points() -> None:
    verdicts = ten_points_on_ten_cases(100, seed=5)
    assert verdicts["cannot tell"] > 0.95


# docs/reports.md points every definition at its function: they must be there, and the benchmark
# must run.


DEFINITIONS = (Path(__file__).parents[2] / "docs" / "reports.md").read_text("utf-8")
NAMED = sorted(set(re.findall(r"`(toolparse_lab\.[\w.]+)`", DEFINITIONS)))


def test_every_definition_is_there() -> None:
    assert len(NAMED) >= 5
    for name in NAMED:
        module, _, attribute = name.rpartition(".")
        assert hasattr(importlib.import_module(module), attribute), name


@pytest.mark.slow
def test_the_benchmark_runs(capsys: pytest.CaptureFixture[str]) -> None:
    main(500)
    said = capsys.readouterr().out
    assert re.match(r"\S+ rows, \S+ trials\n", said)
    assert "the page, from nothing" in said
