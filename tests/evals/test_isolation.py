"""A trial at which the toolkit itself fails: it has a problem of its own, and no other is touched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.recorded import recorded_run
from toolparse_lab.entry import parse as parsing
from toolparse_lab.evals.frames import parsing as frame_parsing
from toolparse_lab.evals.frames.parsing import parse_frame
from toolparse_lab.evals.scoring import score as isolation
from toolparse_lab.evals.scoring.score import score_completion
from toolparse_lab.experiments.run import Run
from toolparse_lab.middleware.flow import read_answer
from toolparse_lab.middleware.flow.reading import internal_problem_of
from toolparse_lab.parser import resolve
from toolparse_lab.parser.whole import read_whole

CODE = "read.internal-error"


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    # Readings of other tests would hide a fault; readers that a test has broken would spread it.
    frame_parsing._memory.readings.clear()
    frame_parsing._reader.cache_clear()
    yield recorded_run(tmp_path, every=8)
    frame_parsing._memory.readings.clear()
    frame_parsing._reader.cache_clear()


def failing_at(text: str, original: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which raises where one of its arguments holds the text."""

    def call(*args: Any, **options: Any) -> Any:
        if text in "".join(str(getattr(arg, "raw", arg)) for arg in args):
            raise RuntimeError("a fault of ours")
        return original(*args, **options)

    return call


def unlike_others(run: Run) -> str:
    """The raw text of one trial that no other trial has."""
    texts = [trial.completion.raw for trial in run.trials() if trial.completion]
    return next(text for text in texts if texts.count(text) == 1 and len(text) > 20)


@pytest.mark.parametrize("place", ["reading", "scoring"])
def test_one_trial_stops_no_other(run: Run, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = unlike_others(run)
    before = run.frame()
    run._reader._trials.clear()
    run.store.forget_parses()
    if place == "reading":
        monkeypatch.setattr(parsing, "read_whole", failing_at(text, read_whole))
    else:
        monkeypatch.setattr(isolation, "score_completion", failing_at(text, score_completion))

    frame = run.frame()
    broken = frame["missing_reason"].fillna("").str.contains("a fault of ours")
    assert broken.sum() == 1
    assert frame[broken]["outcome"].isna().all()
    assert list(frame[~broken]["outcome"]) == list(before[~broken]["outcome"])
    assert CODE in frame[broken]["codes_json"].iloc[0]

    assert run.report().text()
    assert len(run.matrix().table)
    failed = [t for t in run.failures() if internal_problem_of(t.result)]
    assert len(failed) == 1
    assert CODE in failed[0].why() or "a fault of ours" in failed[0].why()
    assert len(run.failures(code=CODE)) == 1

    monkeypatch.setattr(frame_parsing, "_memory", frame_parsing._Memory(frame_parsing.MEMORY))
    again = parse_frame(frame)
    assert again["missing_reason"].fillna("").str.contains("a fault of ours").sum() == 1


@pytest.mark.parametrize("stage", ["coerce", "find_problems"])
def test_one_call_stops_no_other_stage(stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any, **options: Any) -> Any:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr(resolve, stage, fail)
    tool = {"name": "f", "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}}}
    body = '<tool_call>{"name": "f", "arguments": {"n": "x"}}</tool_call>'
    good = '<tool_call>{"name": "f", "arguments": {"n": 1}}</tool_call>'
    result = read_answer(body + good, "hermes", [tool])
    assert [call.ok for call in result.calls] == [False, True]
    assert [p.code for p in result.calls[0].problems] == ["parser.failed"]
