from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from tests.tables import asked_of
from tests.tools import tool_named
from toolparse_lab import parse
from toolparse_lab.core.errors import BadOptions, StoreError, UnreadableInput
from toolparse_lab.core.toolspec import tool_specs
from toolparse_lab.core.types import Policy
from toolparse_lab.evals.cases.case import Case
from toolparse_lab.evals.frames import recorded as frames
from toolparse_lab.evals.frames.columns import COLUMNS, columns_of
from toolparse_lab.evals.frames.files import FrameWriter
from toolparse_lab.evals.frames.recorded import ShownFrame, read_frame, trials_frame
from toolparse_lab.evals.scoring.trial import Trial, trial_id_of
from toolparse_lab.runner.exchange.types import Chunk, Completion

TOOLS = tool_specs(tool_named("f", required=["a"], a="integer"))
RAW = "<tool_call>{'name': 'f', 'arguments': {'a': '1'}}</tool_call><tool_call>{\"name\": \"f\"}</tool_call>"


def make(
    case_id: str = "c1",
    raw: str = RAW,
    policy: Policy = "safe",
    error: str | None = None,
    **more: Any,
) -> Trial:
    case = Case(
        case_id,
        "hi \ud800",
        TOOLS,
        [{"name": "f", "arguments": {"a": 1}}],
        {"category": "x", "level": 2, "who": "w"},
    )
    fields: dict[str, Any] = {
        "prompt_tokens": 5,
        "completion_tokens": 7,
        "attempt": 3,
        "finish_reason": "stop",
        **more,
    }
    completion = Completion(
        key=f"key-{case_id}", raw=raw, status="error" if error else "ok", error_kind=error,
        request={"model": {"name": "vendor/m"}}, **fields,
    )  # fmt: skip
    result = None if error else parse(raw, "hermes", TOOLS, {"coerce": policy})
    return Trial.of(case, completion, result, run_id="r1", model="m", policy=policy)


TRIALS = [make(), make(policy="none"), make("c2", "", error="timeout"), make("c3", "\ud83d lone")]
UNRECORDED = Trial.of(Case("c4", "x", TOOLS), None, run_id="r1", model="m", parse_protocol="hermes")


def every_frame(trials: list[Trial]) -> dict[str, pd.DataFrame]:
    return {
        "runs": frames.runs_frame([{"run_id": "r1", "planned": 4}] if trials else []),
        "trials": frames.trials_frame(trials),
        "calls": frames.calls_frame(trials),
        "events": frames.events_frame(trials),
        "chunks": frames.chunks_frame(trials),
    }


ALL = {"empty": list[Trial](), "full": [*TRIALS, UNRECORDED]}


@asked_of("trials", ALL.values(), ids=ALL)
def test_columns_and_dtypes_are_the_declared_ones(trials: list[Trial]) -> None:
    for kind, frame in every_frame(trials).items():
        declared = columns_of(kind)
        assert list(frame)[: len(declared)] == [c.name for c in declared]
        for c in declared:
            assert str(frame[c.name].dtype) == c.dtype, c.name
        assert isinstance(frame.index, pd.RangeIndex)
        assert all(name.startswith("metadata_") for name in map(str, list(frame)[len(declared) :]))


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
@asked_of("trials", ALL.values(), ids=ALL)
def test_round_trip(suffix: str, trials: list[Trial], tmp_path: Path) -> None:
    for kind, frame in every_frame(trials).items():
        path = frames.write_frame(frame, tmp_path / f"{kind}{suffix}")
        back = frames.read_frame(path, kind)
        if suffix == ".csv":  # CSV cannot tell an empty text from a missing one
            for f in (frame, back):
                for c in f.columns[f.dtypes == "string"]:
                    f[c] = f[c].fillna("")
        assert_frame_equal(back, frame)


def test_plain_parquet_keeps_values_without_our_reader(tmp_path: Path) -> None:
    frame = frames.trials_frame(TRIALS)
    frame.to_parquet(tmp_path / "f.parquet")
    assert_frame_equal(pd.read_parquet(tmp_path / "f.parquet"), frame, check_categorical=False)


def test_trial_rows() -> None:
    frame = frames.trials_frame([*TRIALS, UNRECORDED])

    def found(case_id: str, policy: str = "safe") -> Any:
        return frame[(frame["case_id"] == case_id) & (frame["policy"] == policy)].iloc[0]

    row = found("c1", "safe")
    assert (row["n_calls"], row["n_ok"], row["n_valid"]) == (2, 2, 1)
    assert (row["outcome"], row["sub_code"]) == ("wrong_call", "count")
    assert json.loads(row["rules_json"])["coerce.integer-from-string"] == 1
    assert row["error_code"] == "validate.required"
    assert (row["total_tokens"], row["retries"], row["model_name"]) == (12, 2, "vendor/m")
    assert (row["metadata_level"], row["metadata_who"], row["category"]) == ("2", "w", "x")
    assert row["input"] == "hi \\ud800"
    assert found("c1", "none")["n_coercions"] == 0
    error = found("c2", "safe")
    assert (error["outcome"], error["error"], error["missing_reason"]) == (
        "provider_error", "timeout", "provider error: timeout",
    )  # fmt: skip
    assert pd.isna(error["score_success"])
    assert found("c3", "safe")["raw"] == "\\ud83d lone"
    nothing = found("c4", "safe")
    assert nothing["missing_reason"] == "not recorded"
    assert pd.isna(nothing["outcome"])
    assert pd.isna(nothing["target"])


def test_calls_and_events_join_on_their_keys() -> None:
    trials, calls, events = (
        f(TRIALS) for f in (frames.trials_frame, frames.calls_frame, frames.events_frame)
    )
    assert set(calls["trial_id"]) <= set(trials["trial_id"])
    assert set(events["call_id"].dropna()) <= set(calls["call_id"])
    assert calls["call_id"].is_unique
    first = calls[(calls["policy"] == "safe")].iloc[0]
    assert (first["arguments_json"], first["source_json"]) == ('{"a":1}', '{"a":"1"}')
    assert RAW[first["start"] : first["end"]].startswith("<tool_call>{'name'")
    step = events[events["code"] == "coerce.integer-from-string"].iloc[0]
    assert (step["before_json"], step["after_json"], step["path"], step["kind"]) == (
        '"1"',
        "1",
        "/a",
        "step",
    )
    assert step["lossless"] is True or bool(step["lossless"])
    repair = events[events["stage"] == "repair"].iloc[0]
    assert json.loads(repair["before_json"]) == RAW[repair["start"] : repair["end"]]
    retries = events[events["kind"] == "retry"]
    assert len(retries) == 2 * 3, (
        "two retries a completion, told once although two trials read the first"
    )


def test_frame_of_one_result_has_no_run() -> None:
    result = TRIALS[0].result
    assert result is not None
    frame = frames.calls_frame(result)
    assert len(frame) == 2
    assert frame["call_id"].tolist() == ["0", "1"]
    assert frame["run_id"].isna().all()
    assert (frame["parse_protocol"] == "hermes").all()
    assert len(frames.events_frame(result)) > 0
    assert len(frames.calls_frame(TRIALS[0])) == 2


def test_generators_are_read_once_and_whole() -> None:
    assert_frame_equal(frames.events_frame(t for t in TRIALS), frames.events_frame(TRIALS))


def test_chunks() -> None:
    chunks = (Chunk(0.1, "th", "reasoning"), Chunk(0.2, "a😀"), Chunk(0.3, "b"))
    completion = Completion(key="k", raw="a😀b", chunks=chunks)
    frame = frames.chunks_frame(completion)
    assert frame[["index", "kind", "start", "end"]].to_numpy().tolist() == [
        [0, "reasoning", 0, 2], [1, "content", 0, 2], [2, "content", 2, 3],
    ]  # fmt: skip
    case = Case("c", "x")
    trials = [Trial.of(case, completion, None, parse_protocol=p) for p in ("a", "b")]
    assert len(frames.chunks_frame(trials)) == 3, "trials of one completion share its chunks"


def test_conform_adds_what_lacks_and_keeps_what_is_your_own() -> None:
    frame = frames.trials_frame(TRIALS).drop(columns=["cost", "outcome"])
    frame["mine"] = 1
    back = frames.conform(frame.iloc[::-1], "trials")
    assert list(back)[: len(columns_of("trials"))] == [c.name for c in columns_of("trials")]
    assert back["mine"].tolist() == [1] * len(TRIALS)
    assert back["outcome"].isna().all()
    assert isinstance(back.index, pd.RangeIndex)


def test_frames_made_apart_join_to_the_frame_made_at_once() -> None:
    trials = [*TRIALS, UNRECORDED]  # in some of these every value of a categorical is missing
    for make_frame, kind in ((frames.trials_frame, "trials"), (frames.calls_frame, "calls")):
        assert_frame_equal(
            frames.join_frames([make_frame([t]) for t in trials], kind), make_frame(trials)
        )


def test_wrong_use(tmp_path: Path) -> None:
    with pytest.raises(BadOptions, match="no column has"):
        frames.runs_frame([{"run": 1}])
    with pytest.raises(BadOptions, match="Parquet or CSV"):
        frames.write_frame(frames.trials_frame([]), tmp_path / "x.xls")
    with pytest.raises(StoreError):
        frames.write_frame(frames.trials_frame([]), tmp_path / "none" / "x.csv")
    with pytest.raises(UnreadableInput):
        frames.read_frame(tmp_path / "none.parquet", "trials")


def test_declarations() -> None:
    assert len({(c.frame, c.name) for c in COLUMNS}) == len(COLUMNS)
    for c in COLUMNS:
        assert c.meaning.endswith("."), c
        assert not c.name.endswith("_json") or c.dtype in ("string", "category")
    names = {"input", "target", "total_tokens", "error", "retries", "score_success"}
    assert names <= {c.name for c in columns_of("trials")}


# trials


def test_trial_ids_are_the_same_wherever_they_are_made() -> None:
    one = make()
    assert one.trial_id == trial_id_of("r1", "c1", "m", "hermes", "hermes", "hermes", "safe", 0)
    assert len({t.trial_id for t in (*TRIALS, UNRECORDED)}) == 5


def test_trial_shows_request_and_wire() -> None:
    trial = make()
    assert trial.request == {"model": {"name": "vendor/m"}}
    assert trial.wire["raw"] == RAW
    assert UNRECORDED.wire == {}
    assert UNRECORDED.request == {}
    assert "not recorded" in str(UNRECORDED)


def test_retry_asks_whom_it_was_given() -> None:
    with pytest.raises(BadOptions, match="cannot ask"):
        make().retry()
    asked: list[Any] = []

    def ask(trial: Trial, **changes: Any) -> Trial:
        asked.append((trial.trial_id, changes))
        return trial

    trial = Trial.of(Case("c", "x"), None, parse_protocol="hermes", asker=ask)
    assert trial.retry(protocol="gemma") is trial
    assert asked == [(trial.trial_id, {"protocol": "gemma"})]


def test_reparse_reads_the_same_answer_anew() -> None:
    again = make().reparse(policy="none")
    assert again.result is not None
    assert again.result.calls[0].arguments == {"a": "1"}
    assert again.completion == make().completion
    assert again.policy == "none"
    with pytest.raises(BadOptions, match="nothing is recorded"):
        UNRECORDED.reparse()


def test_a_display_leaves_out_empty_columns_and_the_frame_keeps_them() -> None:
    plain = pd.DataFrame({"a": [1, 2], "empty <b>": [None, None]})
    shown = ShownFrame(plain)
    assert "not shown, since no row has a value: empty <b>" in repr(shown)
    assert "empty &lt;b&gt;</p>" in str(shown._repr_html_())
    assert "not shown" not in repr(shown[["a"]])
    assert type(shown.head(1)) is pd.DataFrame
    pd.testing.assert_frame_equal(shown, plain)
    pd.testing.assert_frame_equal(plain, shown)


# What is written in parts is there whole or not at all, whoever else is still writing.


def write_and_fail(out: FrameWriter) -> None:
    """An error ends the writing."""
    with out:
        out.write(trials_frame([]))
        raise ZeroDivisionError


def test_an_error_leaves_nothing_and_is_what_is_raised(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        write_and_fail(FrameWriter(tmp_path / "a.parquet", "trials"))
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_run_left_goes_with_the_next(tmp_path: Path) -> None:
    FrameWriter(tmp_path / "a.parquet", "trials").__enter__().write(trials_frame([]))
    other = tmp_path / ".b.0123abcd.partial"
    other.touch()
    with FrameWriter(tmp_path / "a.parquet", "trials") as out:
        out.write(trials_frame([]))
    assert len(read_frame(out.path, "trials")) == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == [other.name, "a.parquet"]


def test_what_cannot_be_removed_is_told_beside_the_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    out = FrameWriter(tmp_path / "a.parquet", "trials")
    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(ZeroDivisionError) as told:
        write_and_fail(out)
    assert "could not be removed" in told.value.__notes__[0]
