"""Runs that stop by their results: the plan's order, resuming, limits, and what is said of it."""

from __future__ import annotations

import functools
import math
import operator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import toolparse_lab as tp
from benchmarks.stopping import SCENARIOS, looks, simulate
from toolparse_lab.core.errors import BadOptions
from toolparse_lab.evals.reports.figures.stats import (
    anytime_difference,
    anytime_interval,
    log_capital,
)
from toolparse_lab.experiments.until import Until, batches_of
from toolparse_lab.runner.exchange.types import Completion, Request

CASES = [
    {"id": f"c{n:03}", "input": f"Case {n}", "tools": [{"name": "f"}],
     "target": [{"name": "f", "arguments": {}}]}
    for n in range(120)
]  # fmt: skip
MODELS = {"m": tp.Model("openai/known")}


class Answers:
    """A model that is right under hermes, and under morph_xml in so many of ten cases."""

    free = True

    def __init__(self, tenths: int) -> None:
        self.tenths, self.asked = tenths, 0

    async def __call__(self, request: Request) -> Completion:
        self.asked += 1
        text = str(request.messages)
        number = int(text.rpartition("Case ")[2].split("'")[0].split('"')[0].split("\\")[0])
        hermes = "<tool_call>" in text
        right = hermes or number % 10 < self.tenths
        body = '<tool_call>{"name": "f", "arguments": {}}</tool_call>' if hermes else "<f></f>"
        return Completion(request.key, body if right else "No.", "ok")


def plan_of(lab: tp.Lab, **settings: Any) -> Any:
    return lab.plan(CASES, MODELS, ["hermes", "morph_xml"], max_tokens=64, **settings)


@pytest.fixture
def lab(tmp_path: Path) -> tp.Lab:
    return tp.Lab(tmp_path / "runs.db")


def test_it_stops_says_what_it_saved_and_is_taken_up_again(lab: tp.Lab) -> None:
    model, plan = Answers(5), plan_of(lab)
    rule = tp.Until(compare=("hermes", "morph_xml"))
    run = lab.run(plan, until=rule, complete=model, progress=False)
    stopping = run.stopping
    assert stopping is not None
    assert stopping.decided
    answer = stopping.answers[0]
    assert answer.verdict == "worse"
    assert answer.interval.high < 0
    assert model.asked == stopping.questions < 120
    assert stopping.planned_questions == 240
    assert stopping.saved == pytest.approx(1 - model.asked / 240)
    assert stopping.saved > 0.5
    assert run.summary is not None
    assert run.summary.stopped == "until"
    assert run.missing == 240 - model.asked
    assert "stopped by its own results" in run.report().notes[0]
    assert "hold at every look" in str(stopping)
    assert "were not asked" in str(stopping)
    assert stopping.to_frame()["verdict"].tolist() == ["worse"]
    assert "<li>" in stopping._repr_mimebundle_()["text/html"]
    assert lab.runs()[0].status == "incomplete"
    assert lab.open(run.run_id).stopping == stopping

    # The same rule looks at the same cases, which are known.
    asked = model.asked
    again = lab.run(plan, until=rule, complete=model, progress=False)
    assert model.asked == asked
    assert again.stopping == stopping
    # A narrower question goes on from there; the rest can be asked at any time.
    wider = lab.run(plan, until=tp.Until(width=0.3), complete=model, progress=False)
    assert wider.stopping is not None
    assert model.asked >= asked
    whole = lab.retry(run, complete=model, progress=False)
    assert whole.missing == 0
    assert model.asked == 240
    assert whole.stopping is None
    assert lab.open(whole.run_id).stopping is None


def test_what_cannot_be_decided_is_asked_to_the_end(lab: tp.Lab) -> None:
    model = Answers(10)
    rule = Until(compare=("hermes", "morph_xml"), first=50, step=50)
    run = lab.run(plan_of(lab), until=rule, complete=model, progress=False)
    assert run.stopping is not None
    assert not run.stopping.decided
    assert run.stopping.saved == 0
    assert run.summary is not None
    assert run.summary.stopped is None
    assert lab.runs()[0].status == "complete"
    assert model.asked == 240
    assert "not decided after 120 of 120 cases" in str(run.stopping)
    # Arms that are alike can be shown not to be worse.
    alike = Until(compare=("hermes", "morph_xml"), margin=0.2)
    stopping = lab.run(plan_of(lab), until=alike, complete=model, progress=False).stopping
    assert stopping is not None
    assert stopping.answers[0].verdict == "not worse"
    assert stopping.saved > 0


def test_limits_count_over_all_batches(lab: tp.Lab) -> None:
    model = Answers(10)
    rule = Until(rate=0.5)
    run = lab.run(plan_of(lab), until=rule, complete=model, max_calls=30, progress=False)
    assert model.asked == 30
    assert run.summary is not None
    assert run.summary.stopped == "max_calls"
    assert lab.runs()[0].status == "incomplete"
    rated = lab.run(plan_of(lab), until=rule, complete=model, progress=False)
    assert rated.stopping is not None
    assert [answer.verdict for answer in rated.stopping.answers] == ["above", "above"]


def test_batches_hold_each_case_once_in_a_drawn_order(lab: tp.Lab) -> None:
    plan = plan_of(lab, trials=2)
    parts = list(batches_of(plan, Until(width=0.1)))
    assert [len({i.case_id for i in part.items}) for part in parts][:3] == [20, 10, 10]
    assert sorted(
        map(repr, functools.reduce(operator.iadd, (list(p.items) for p in parts), []))
    ) == sorted(map(repr, plan.items))
    first = {item.case_id for item in parts[0].items}
    assert len(parts[0].items) == 4 * len(first)
    assert first != {c["id"] for c in CASES[:20]}
    assert [p.items for p in batches_of(plan, Until(width=0.2))] == [p.items for p in parts]


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({}, "one rule"),
        ({"rate": 0.9, "width": 0.1}, "one rule"),
        ({"rate": 1.5}, "rate is a share"),
        ({"rate": True}, "rate is a share"),
        ({"width": float("nan")}, "width is a share"),
        ({"compare": "hermes"}, "two arms"),
        ({"rate": 0.9, "margin": 0.1}, "belongs to compare"),
        ({"rate": 0.9, "first": 0}, "number of cases"),
    ],
)
def test_rules_are_checked(rule: Any, message: str) -> None:
    with pytest.raises(BadOptions, match=message):
        Until(**rule)


def test_rules_are_checked_before_anything_is_asked(lab: tp.Lab) -> None:
    plan = plan_of(lab)
    for until in (Until(compare=("hermes", "nobody")), Until(compare=("hermes",) * 2), 0.9):
        with pytest.raises(BadOptions):
            lab.run(plan, until=until, complete=Answers(1), progress=False)  # type: ignore[arg-type]
    assert lab.runs() == []


def test_capital_is_that_of_the_gamblers() -> None:
    points, mean = np.array([0.0, 0.5, 1.0]), 0.4
    counts = np.array([3, 2, 5])
    bets = [s * 0.8 * 2.0**-k / (mean if s > 0 else 1 - mean) for s in (1, -1) for k in range(8)]
    want = np.mean(
        [
            np.prod([(1 + b * (x - mean)) ** n for x, n in zip(points, counts, strict=True)])
            for b in bets
        ]
    )
    assert log_capital(counts, points, mean) == pytest.approx(math.log(want))


def test_intervals_hold_their_mean_and_shrink() -> None:
    random = np.random.default_rng(2)
    for mean in (0.0, 0.02, 0.5, 0.97, 1.0):
        widths = []
        for n in (0, 1, 30, 1000):
            values = random.random(n) < mean
            interval = anytime_interval(values)
            assert 0 <= interval.low <= interval.high <= 1
            if n:
                assert interval.low <= values.mean() <= interval.high
                # The ends are where the capital reaches 1 / alpha.
                for end, side in ((interval.low, -1), (interval.high, 1)):
                    beyond = end + side * 0.002
                    if 0 < beyond < 1:
                        pair = np.array([n - values.sum(), values.sum()])
                        capital = log_capital(pair, np.array([0.0, 1.0]), beyond)
                        assert capital >= math.log(20) - 0.5
            widths.append(interval.high - interval.low)
        assert widths == sorted(widths, reverse=True)
        assert widths[-1] < 0.13
    gap = anytime_difference([-1, 0, 0, 1] * 50 + [-1] * 40)
    assert gap.low < -1 / 6 < gap.high < 0.05


def test_stopping_is_wrong_in_one_of_twenty_at_most_and_pays() -> None:
    """A small version of `benchmarks/stopping.py`, by the names of its scenarios."""
    rows = {(s.name, s.cases): simulate(s, 300) for s in SCENARIOS if s.cases == 400}
    assert all(row["wrong"] <= 0.05 for row in rows.values())
    peeking = rows["same arms, 40 % flip", 400]
    assert peeking["peeking"] > 0.1 > peeking["decided"]
    large = rows["20 points worse, 30 % flip", 400]
    assert large["decided"] > 0.95
    assert large["saved"] > 0.6


def test_the_simulation_looks_as_a_run_does(lab: tp.Lab) -> None:
    sizes = [len({i.case_id for i in p.items}) for p in batches_of(plan_of(lab), Until(rate=0.5))]
    assert list(np.cumsum(sizes)) == looks(len(CASES))
