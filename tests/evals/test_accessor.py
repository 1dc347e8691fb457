"""`df.toolparse` on the frames of the shipped recording, and on frames that came back from a
file."""

from __future__ import annotations

import html
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.recorded import recorded_run
from toolparse_lab.core.errors import BadOptions, UnreadableInput
from toolparse_lab.evals.frames.parsing import parse_frame
from toolparse_lab.evals.frames.recorded import read_frame, write_frame
from toolparse_lab.experiments.run import Run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return recorded_run(tmp_path_factory.mktemp("run"), every=2)


@pytest.fixture(scope="module")
def frame(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """From a file, so that nothing of the run is left but the rows; typed as what pandas adds
    accessors to."""
    return read_frame(
        write_frame(run.frame(), tmp_path_factory.mktemp("file") / "trials.parquet"), "trials"
    )


def test_report(run: Run, frame: Any) -> None:
    own = run.report(["arm"]).frame
    pd.testing.assert_frame_equal(
        frame.toolparse.report(["arm"]).frame[own.columns[:8]], own[own.columns[:8]]
    )
    assert frame.toolparse.report(baseline=frame["arm"].iloc[0]).baseline is not None
    strict: Any = parse_frame(frame, policies="none")
    assert strict.toolparse.report().policy == "none"


def test_compare(frame: Any) -> None:
    other: Any = parse_frame(frame, policies="none").assign(run_id="again")
    same: Any = frame.assign(run_id="again")
    assert frame.toolparse.compare(same).flips.empty
    comparison = parse_frame(frame, policies="none").toolparse.compare(other)
    assert comparison.flips.empty
    elsewise: Any = parse_frame(frame, "morph_xml").assign(run_id="again")
    # Calls that stand alone are read under any protocol; those that do not, are not.
    assert 0 < len(frame.toolparse.compare(elsewise).flips) < 20
    with pytest.raises(BadOptions, match="compared with another"):
        frame.toolparse.compare([1])


def test_a_report_by_policy_shows_each(frame: Any) -> None:
    three: Any = parse_frame(frame, policies=("none", "safe", "lossy"))
    report = three.toolparse.report(by=["prompt_protocol", "policy"])
    assert sorted(set(report.frame["policy"])) == ["lossy", "none", "safe"]
    for policy in ("none", "safe", "lossy"):
        alone = three.toolparse.report(by=["prompt_protocol"], policy=policy).frame
        among = report.frame[report.frame["policy"] == policy]
        assert among["success"].tolist() == alone["success"].tolist()
        assert among["n"].tolist() == alone["n"].tolist()
        assert among["coerced"].tolist() == alone["coerced"].tolist()
    assert len(report.waterfall["policy"].unique()) == 3
    assert "policies lossy, none, safe, each in rows of its own" in report.text()
    assert not [w for w in report.warnings if "in no figure" in w]
    assert list(three.toolparse.report(by="policy").frame["policy"]) == ["none", "safe", "lossy"]
    unsafe: Any = three[three["policy"] != "safe"]
    assert set(unsafe.toolparse.report(by="policy").frame["policy"]) == {"none", "lossy"}


def test_policies_that_a_report_leaves_out_are_told(run: Run, frame: Any) -> None:
    three: Any = parse_frame(frame, policies=("none", "safe", "lossy"))
    (told,) = [w for w in three.toolparse.report().warnings if "in no figure" in w]
    assert told.startswith("Readings under none are")
    for policy in ("safe", "none"):
        assert not [w for w in run.report(policy=policy).warnings if "in no figure" in w]


def test_two_policies_are_compared(frame: Any) -> None:
    none: Any = parse_frame(frame, policies="none")
    safe: Any = parse_frame(frame, policies="safe")
    compared = none.toolparse.compare(safe)
    assert compared.frame["n_cases"].tolist() == [42] * 4
    assert (compared.frame["difference"] > 0).any()
    assert compared.notes[0] == "The runs differ in policy: none in the first, safe in the second."
    both: Any = parse_frame(frame, policies=("none", "safe"))
    assert both.toolparse.compare(safe.assign(run_id="again")).flips.empty
    with pytest.raises(
        BadOptions, match="first and the second frame holds no reading under the policy lossy"
    ):
        both.toolparse.compare(both, policy="lossy")
    with pytest.raises(
        BadOptions,
        match=r"first frame holds no reading under the policy safe(.|\n)*got: none against",
    ):
        none.toolparse.compare(both, policy="safe")
    loose: Any = parse_frame(frame, policies=("lossy", "middleware"))
    with pytest.raises(BadOptions, match="a policy that both have"):
        both.toolparse.compare(loose)


def test_a_trial_counts_once(frame: Any) -> None:
    twice: Any = pd.concat([frame, frame.iloc[:5]])
    with pytest.raises(
        BadOptions, match=f"5 of {len(frame) + 5} rows are trials that the frame holds already"
    ):
        twice.toolparse.report()
    with pytest.raises(BadOptions, match="counted twice"):
        frame.toolparse.compare(twice.assign(run_id="again"))
    told: Any = pd.concat([frame.assign(way="a"), frame.assign(way="b")])
    assert told.toolparse.report(by=["way"]).frame["n"].tolist() == [len(frame)] * 2


def test_result_is_what_the_run_reads(run: Run, frame: Any) -> None:
    for trial, (label, row) in zip(run.trials(), frame.iterrows(), strict=True):
        assert frame.toolparse.result(row) == trial.result
        if label % 50 == 0:
            assert frame.toolparse.result(label) == trial.result
            assert frame.toolparse.result(trial.trial_id) == trial.result


def test_debug_shows_the_answer(frame: Any) -> None:
    pytest.importorskip("anywidget")
    bundle, *_ = frame.toolparse.debug(0)._repr_mimebundle_()
    shown = bundle["text/html"]
    assert frame.iloc[0]["raw"] in html.unescape(re.sub("<[^>]*>", "", shown))


def test_wrong_use(run: Run, frame: Any) -> None:
    for row in (len(frame), "no-such-trial", None):
        with pytest.raises(BadOptions, match="no such row"):
            frame.toolparse.result(row)
    twice: Any = pd.concat([frame, frame])
    with pytest.raises(BadOptions, match="2 rows are meant"):
        twice.toolparse.result(0)
    calls: Any = run.calls_df()
    with pytest.raises(UnreadableInput, match="columns are missing"):
        calls.toolparse.result(0)
    failed: Any = frame.assign(status="error", error_message="too late")
    with pytest.raises(BadOptions, match="holds no answer"):
        failed.toolparse.debug(0)
    with pytest.raises(BadOptions):
        calls.toolparse.report()


def test_it_is_there_with_the_first_frame_and_not_before() -> None:
    program = (
        "import pandas, toolparse_lab as tp\nassert not hasattr(pandas.DataFrame, 'toolparse')\n"
        "tp.parse('x', 'hermes').frame()\nassert hasattr(pandas.DataFrame, 'toolparse')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=120,
                          cwd=Path(__file__).parents[2])  # fmt: skip
    assert done.returncode == 0, done.stderr
