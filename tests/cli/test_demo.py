"""The demo and the shipped recording: replayed in full, and a short stretch of it live."""

from __future__ import annotations

from pathlib import Path

import pytest

import toolparse_lab as tp
from tests.laws import check_all
from tests.recorded import recorded_run
from toolparse_lab.cli.demo import demo_plan, fitting_cases, left_out, run_demo, telling_failure
from toolparse_lab.experiments.run import Run
from toolparse_lab.runner.local.setup import local_model_ready
from toolparse_lab.runner.store.recording import import_recording

live = pytest.mark.skipif(
    not local_model_ready(),
    reason="the embedded model is not installed: toolparse demo --install-only",
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return recorded_run(tmp_path_factory.mktemp("recorded"))


@pytest.mark.slow
def test_the_shipped_recording_answers_the_whole_plan(run: Run) -> None:
    assert run.summary is not None
    assert run.summary.missing == 0
    frame = run.frame()
    assert len(frame) == 4 * len(tp.example_cases())
    assert frame["score_success"].notna().all()
    grammar = frame[frame["arm"] == "hermes grammar"]
    assert (grammar["n_edits"] == 0).all(), "what a grammar wrote needs no repair"


@pytest.mark.slow
def test_every_recorded_answer_keeps_the_laws(run: Run) -> None:
    for trial in run.trials():
        assert trial.completion is not None
        check_all(trial.completion.raw, trial.parse_protocol, trial.case.tools, every_split=False)


def test_the_demo_from_the_recording(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The recording holds the demo's answers, so that a second demo asks nothing."""
    with tp.Lab(tmp_path / "runs.db") as lab:
        import_recording(tp.example_recording(), lab.store)
    run = run_demo(tmp_path, color=False)
    out = capsys.readouterr().out
    assert run.summary is not None
    assert run.summary.calls == 0
    assert "Nothing was asked" in out
    assert "40 answers judged" in out
    assert "yaml_xml succeeds more often than native" in " ".join(out.split())
    assert (tmp_path / "report.html").is_file()
    assert (tmp_path / "live.html").is_file()
    assert (tmp_path / "01_quickstart.ipynb").is_file()
    assert "The most telling answer" in out
    trial = telling_failure(run)
    assert trial is not None
    assert trial.result is not None
    assert trial.result.calls


@pytest.mark.slow
@live
@pytest.mark.local_model
@pytest.mark.exhaustive
def test_the_demo_live_stops_at_its_budget_and_states_its_n(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_demo(tmp_path, budget=45, color=False)
    out = capsys.readouterr().out
    assert run.summary is not None
    assert run.summary.done > 0
    if run.summary.stopped:
        said = " ".join(out.split())  # lines end where the terminal does
        assert "stopped early" in said
        assert f"{run.summary.done} of 40 answers are recorded" in said


def test_a_demo_out_of_time_says_what_it_left_out(tmp_path: Path) -> None:
    with tp.Lab(tmp_path / "runs.db").replaying(tp.example_recording()) as lab:
        run = lab.run(demo_plan(lab), deadline=0.0, progress=False)
        sentences = left_out(run, 0.0)
    assert run.summary is not None
    assert bool(sentences) == bool(run.summary.missing)
    assert all("of 40 answers" in sentence for sentence in sentences)


def test_a_slow_machine_is_asked_fewer_cases(tmp_path: Path) -> None:
    """The first case is there, at some seconds an answer; the others are open."""
    with tp.Lab(tmp_path / "runs.db") as lab:
        import_recording(tp.example_recording(), lab.store)
        assert fitting_cases(lab, 60.0) == 10, "every answer is recorded"
        seconds = [
            answer.latency
            for item in demo_plan(lab, 1).items
            if (answer := lab.store.get(item.key)) is not None and answer.latency
        ]
    with tp.Lab(tmp_path / "first.db") as lab:
        lab.replaying(tp.example_recording()).run(demo_plan(lab, 1), progress=False)
        assert sum(seconds) > 0
        assert fitting_cases(lab, 0.0) == 1
        assert fitting_cases(lab, 100_000.0) == 10
        assert 1 < fitting_cases(lab, sum(seconds) * 5) < 10
