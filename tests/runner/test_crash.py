"""kill -9 at random moments, then the same run again: nothing that was answered is asked again, and
nothing is lost."""

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import toolparse_lab as tp
from tests import crash_run
from tests.laws import EXHAUSTIVE
from tests.mock_openai import MockOpenAI
from tests.shared_run import CONNECTIONS, asked, end_of, start, worker
from toolparse_lab.runner.store.store import Store

KILLS = 10 if EXHAUSTIVE else 2
OF_THE_MOMENT = {
    "run_id", "trial_id", "created", "latency", "ttft", "queue_wait", "attempt", "retries",
}  # fmt: skip

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL and no fork"),
]


def told(process: "subprocess.Popen[str]", store: Path, seconds: float) -> str:
    """How a run ends that is killed after so many seconds."""
    start(process, seconds, "SIGKILL", str(store))
    return end_of(process)


def frame_of(store: Path, url: str) -> Any:
    with tp.Lab(str(store)) as lab:
        plan = crash_run.plan_of(lab, url)
        run = lab.run(plan, progress=False)  # everything is known: nothing is sent
        assert run.summary is not None
        assert (run.summary.calls, run.summary.cached) == (0, plan.calls)
        frame = run.frame()
    order = ["model", "prompt_protocol", "case_id", "trial"]
    kept = [
        name for name in frame.columns if name not in OF_THE_MOMENT and not name.endswith("_id")
    ]
    return frame.sort_values(order).reset_index(drop=True)[[*kept, "case_id"]]


def test_a_run_that_is_killed_again_and_again_ends_as_if_nothing_had_happened(
    tmp_path: Path,
) -> None:
    moments = random.Random(9)
    store = tmp_path / "killed.db"
    with MockOpenAI() as mock:
        with tp.Lab(":memory:") as lab:
            plan = crash_run.plan_of(lab, mock.url)
            names = {
                key: asked(
                    {
                        "model": r.model.name.removeprefix("openai/"),
                        "messages": list(r.messages),
                        **r.params,
                    }
                )
                for key, r in plan.requests.items()
            }
        assert len(set(names.values())) == plan.calls == 4 * crash_run.CASES * 2
        answered: list[
            tuple[int, set[str]]
        ] = []  # how many had been sent, and which of them were on disk by then
        killed = 0
        with worker(mock.url) as process:
            while killed < KILLS:
                said = told(process, store, moments.uniform(0.02, 0.5))
                if said == "done":  # it was quicker: once more from the beginning
                    for file in tmp_path.glob("killed.db*"):
                        file.unlink()
                    mock.bodies.clear()
                    answered.clear()
                    continue
                assert said == "killed"
                killed += 1
                if store.exists():
                    with Store(store) as opened:
                        answered.append(
                            (len(mock.bodies), {names[key] for key in opened.done_keys(names)})
                        )
            assert told(process, store, 60) == "done"
            sent = [asked(body) for body in mock.bodies]
            assert told(process, tmp_path / "whole.db", 60) == "done"
        assert set(sent) == set(names.values())
        for count, done in answered:
            assert done <= set(sent[:count])
            assert not done & set(sent[count:])  # what was answered is not asked again
            assert (
                len(set(sent[:count]) - done) <= CONNECTIONS
            )  # what was under way is all that is lost
        one, whole = frame_of(store, mock.url), frame_of(tmp_path / "whole.db", mock.url)
        assert one.equals(whole)
        assert set(one["outcome"]) >= {"correct"}
