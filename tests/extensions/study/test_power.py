"""Power: exact sums against brute force and statsmodels, and the claimed power against
simulation."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats as scipy_stats

import toolparse_lab as tp
from benchmarks.power import BOUND, DROPS, SCENARIOS, Scenario, printed, simulated
from tests.recorded import recorded_run
from tests.tables import each_case
from tests.trial_frames import trials_of, twice
from toolparse_lab.cli import main
from toolparse_lab.core.errors import BadOptions
from toolparse_lab.evals.reports.figures.differences import mcnemar_exact, sign_flip
from toolparse_lab.extensions.study.power_analysis import (
    MOST_CASES,
    Power,
    Spread,
    cautious,
    mcnemar_power,
    planned_power,
    power,
)


def brute_power(n: int, spread: float, drop: float, alpha: float) -> float:
    """The chance of every table of (lost, gained, others) times whether McNemar's test rejects."""
    lost, gained = (spread + drop) / 2, (spread - drop) / 2
    total = 0.0
    for a, b in itertools.product(range(n + 1), repeat=2):
        if a + b <= n and mcnemar_exact(a, b) <= alpha:
            total += scipy_stats.multinomial.pmf([a, b, n - a - b], n, [lost, gained, 1 - spread])
    return total


@pytest.mark.parametrize(("n", "spread", "drop"), [(12, 0.5, 0.4), (15, 0.6, 0.1), (6, 1, 1)])
@pytest.mark.parametrize("alpha", [0.05, 0.03125])
def test_power_is_that_of_every_table(n: int, spread: float, drop: float, alpha: float) -> None:
    want = brute_power(n, spread, drop, alpha)
    assert mcnemar_power(n, spread, drop, alpha) == pytest.approx(want, abs=1e-9)


def test_many_cases_need_what_statsmodels_says() -> None:
    from statsmodels.stats.power import TTestPower

    for spread, drop in ((0.5, 0.05), (0.2, 0.05), (0.3, 0.1)):
        effect = drop / np.sqrt(spread - drop**2)
        want = TTestPower().solve_power(effect_size=effect, alpha=0.05, power=0.8)
        needed = Power.of("x", Spread(spread, 1, ""), drop).needed
        # The exact test gives away a little, as McNemar's does.
        assert needed is not None
        assert want <= needed <= want * 1.12 + 5


@pytest.mark.parametrize("trials", [1, 3])
@pytest.mark.parametrize("cases", [40, 150])
def test_the_claimed_power_is_reached(trials: int, cases: int) -> None:
    """What a pilot says is detectable is detected, whether or not answers are noisy."""
    random = np.random.default_rng(7 * cases + trials)
    base = random.beta(2, 1, cases)
    pilot = random.random((2, cases, trials)) < base[:, None]
    answer = power(trials_of({("m", "a"): pilot[0], ("m", "b"): pilot[1]}))[0]
    drop = answer.detectable
    assert drop is not None
    found = 0
    for _ in range(200):
        rates = random.beta(2, 1, cases)
        # Some cases lose for good, so that the mean falls by the drop.
        lost = random.random(cases) < drop / (2 / 3)
        a = random.random((cases, trials)) < rates[:, None]
        b = random.random((cases, trials)) < np.where(lost, 0, rates)[:, None]
        keys = np.repeat(np.arange(cases), trials)
        found += sign_flip(a.ravel(), keys, b.ravel(), keys) <= 0.05
    assert found / 200 >= 0.72  # 0.8, less three standard errors


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
@pytest.mark.parametrize(("cases", "trials"), [(40, 3), (40, 5)])
@pytest.mark.exhaustive(3)
def test_the_power_of_several_trials_is_that_of_simulated_data(
    cases: int, trials: int, scenario: Scenario
) -> None:
    """A slice of `benchmarks/power.py`, within its bound and two standard errors."""
    drop = DROPS[cases]
    said = printed(scenario, cases, trials, drop)
    assert simulated(scenario, cases, trials, drop, 300) == pytest.approx(said, abs=BOUND + 0.055)


def test_a_run_of_several_trials_shows_more_than_its_whole_flips() -> None:
    random = np.random.default_rng(2)
    rates = random.beta(2, 1, 40)
    pilot = random.random((2, 40, 5)) < rates[:, None]
    answer = power(trials_of({("m", "a"): pilot[0], ("m", "b"): pilot[1]}), 0.15)[0]
    spread = answer.spread
    assert answer.chance > mcnemar_power(40, spread.mean_square(0.15), 0.15) + 0.2
    found = [
        sign_flip(a.ravel(), keys, b.ravel(), keys) <= 0.05
        for keys in [np.repeat(np.arange(40), 5)]
        for _ in range(300)
        for chances in [random.beta(2, 1, 40)]
        for a in [random.random((40, 5)) < chances[:, None]]
        for b in [random.random((40, 5)) < (chances * (1 - 0.15 * 1.5))[:, None]]
    ]
    # The spread of a pilot is taken cautiously, so that the true power is a little more.
    assert -0.05 <= np.mean(found) - answer.chance <= 0.2


def test_unequal_and_many_trials_have_a_power_too() -> None:
    random = np.random.default_rng(3)
    frame = trials_of({("m", arm): random.random((30, 7)) < 0.7 for arm in ("a", "b")})
    thinned = frame[random.random(len(frame)) < 0.7]
    for row in (*power(thinned), *power(thinned, again=True)):
        assert 0 < row.chance < 1
        assert row.detectable is not None
        assert row.needed is not None


def test_the_drop_that_is_detectable_is_the_one_that_needs_these_cases() -> None:
    spread = Spread(0.1, 300, "", growth=1)
    drop = Power.of("x", spread, 0.1).detectable
    assert drop is not None
    needed = Power.of("x", spread, drop).needed
    assert needed is not None
    assert abs(needed - 300) <= 6
    answer = Power.of("x", spread, drop)
    assert answer.chance >= 0.8
    assert answer.needed == needed


def test_few_cases_show_nothing_and_say_so() -> None:
    answer = Power.of("x", Spread(0.0, 5, "assumed"), 0.1)
    assert answer.detectable is None
    assert answer.chance == 0
    assert "5 cases show no drop, however large" in str(answer)
    assert Power.of("x", Spread(0.5, 0, ""), 0.1).chance == 0
    assert f"more than {MOST_CASES:,}" in str(Power.of("x", Spread(0.5, 9, ""), 0.0001))


def test_estimates_are_taken_cautiously() -> None:
    assert cautious(0.1, 40) > 0.1
    assert cautious(0.0, 40) > 0
    assert cautious(0.3, 0) == 1
    assert cautious(0.1, 4000) == pytest.approx(0.1, abs=0.005)


@pytest.mark.parametrize("bad", [0, -1, 1.5, float("nan"), True, "0.05", None])
def test_shares_are_checked(bad: Any) -> None:
    with pytest.raises(BadOptions, match="drop is a share"):
        planned_power(10, 1, bad)
    with pytest.raises(BadOptions, match="flips is a share"):
        planned_power(10, 1, 0.05, flips=bad if bad is not True else 2)
    if bad != 0:
        with pytest.raises(BadOptions, match="noise is a share"):
            planned_power(10, 1, 0.05, noise=bad)


def test_assumptions_are_told_and_defaults_are_the_cautious_ones() -> None:
    default = planned_power(100, 1, 0.05)
    assert "50 % of the cases flip" in str(default)
    assert (planned_power(100, 1, 0.05, flips=0.2).needed or 0) < (default.needed or 0)
    # Trials help only against noise that is known.
    assert planned_power(100, 5, 0.05).needed == default.needed
    assert (planned_power(100, 5, 0.05, noise=0.3).needed or 0) < (default.needed or 0)


def test_pairs_and_cells_of_a_frame() -> None:
    random = np.random.default_rng(0)
    tables = {(m, arm): random.random((30, 2)) < 0.7 for m in "mn" for arm in ("a", "b")}
    frame = trials_of(tables)
    assert [row.name for row in power(frame)] == [
        "m · a v m · b", "m · a v n · a", "m · b v n · b", "n · a v n · b"
    ]  # fmt: skip
    chosen = power(frame, a="b", b="a")
    assert [row.name for row in chosen] == ["m · b v m · a", "n · b v n · a"]
    assert next(row.name for row in power(frame, again=True)) == "m · a v a later run"
    one = power(trials_of({("m", "a"): random.random((30, 1)) < 0.7}))
    assert "assumed" in str(one)
    assert len(one.frame()) == 1
    assert "<li>" in one._repr_html_()
    with pytest.raises(BadOptions, match="no such two"):
        power(frame, a="a", b="z")
    with pytest.raises(BadOptions, match="two names"):
        power(frame, a="a")
    with pytest.raises(BadOptions, match="can be judged"):
        power(frame.assign(score_success=None))


def test_runs_and_plans_have_it(tmp_path: Any) -> None:
    run = recorded_run(tmp_path, every=3)
    table = power(run, 0.1)
    assert len(table) >= 1
    assert all(row.cases > 0 for row in table)
    planned = planned_power(len(run.plan.cases), 1, 0.1, like=run)
    assert planned.cases == len(run.plan.cases)
    assert run.run_id in str(planned)


@pytest.mark.parametrize("same_answers", [True, False])
def test_cases_with_one_question_are_no_more_cases(same_answers: bool) -> None:
    random = np.random.default_rng(8)
    rates = random.beta(2, 1, 40)[:, None]
    once = trials_of({("m", arm): random.random((40, 4)) < rates for arm in ("a", "b")})
    doubled = power(twice(once, same_answers=same_answers), 0.1)
    assert doubled[0] == power(once, 0.1)[0]
    assert doubled[0].cases == 40
    assert "40 questions are asked by several cases" in doubled.note
    assert "80 cases in all. They count as one case." in str(doubled)
    assert doubled.note in doubled._repr_html_()
    assert power(once).note == ""


@pytest.fixture
def store(tmp_path: Path) -> str:
    """A store with six cases of the shipped recording in two arms."""
    path = str(tmp_path / "runs.db")
    cases = tp.load_cases(Path(__file__).parents[3] / "datasets" / "cases.jsonl")
    models = {"small": tp.Model("toolparse-local/smollm2-135m")}
    with tp.Lab(path) as lab:
        lab.replaying(tp.example_recording())
        settings: dict[str, Any] = {"decoding": "grammar", "wording": "brief", "max_tokens": 128}
        plan = lab.plan(list(cases)[:6], models, ["hermes", "morph_xml"], **settings)
        lab.run(plan, progress=False)
    return path


def test_the_command_tells_of_every_pair_or_of_two_names(
    store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def rows(words: str) -> list[dict[str, Any]]:
        assert main(["power", *words.split(), "--store", store, "--json"]) == 0
        found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["rows"]
        return found

    assert main(["power", "--store", store]) == 0
    assert capsys.readouterr().out.startswith("hermes v morph_xml: 6 cases show ")
    (row,) = rows("latest morph_xml hermes --drop 0.2")
    assert (row["name"], row["cases"], row["drop"]) == ("morph_xml v hermes", 6, 0.2)
    (surer,) = rows("latest morph_xml hermes --drop=0.2 --power=0.95 --alpha=0.01")
    assert surer["needed"] > row["needed"]
    later = [row["name"] for row in rows("latest --again")]
    assert later == ["hermes v a later run", "morph_xml v a later run"]


@each_case
def test_what_the_command_cannot_tell(
    words: str, complaint: str, store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words.split(), "--store", store]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert complaint in err
