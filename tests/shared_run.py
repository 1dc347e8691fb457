"""Two processes on one store, one of which is ended at some moment: what the other then does.

`python -m tests.shared_run [MOMENTS]` tries that many moments with SIGKILL and SIGTERM in turn, on
SQLite and, where there is a server, on PostgreSQL; without a number, 30. For the nightly run. It
says how many ended how, and of those that were ended, how many had asked something and not all.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import toolparse_lab as tp
from tests import crash_run
from tests.mock_openai import MockOpenAI
from tests.postgres_server import empty, postgres_url
from tests.waiting import running
from toolparse_lab.runner.store.store import Store

CONNECTIONS = 2 * 3
LONG = 120.0  # seconds that no run takes
ENDS = {"SIGKILL": "killed", "SIGTERM": "interrupted"}


@dataclass(frozen=True)
class Moment:
    """A signal, so many seconds after so many calls of both runs; without calls after the start."""

    calls: int
    seconds: float
    signal: str


def worker(url: str) -> AbstractContextManager[subprocess.Popen[str]]:
    """A process that forks runs, see `crash_run`."""
    command = [sys.executable, str(Path(__file__).with_name("crash_run.py")), url]
    root = Path(__file__).parents[1]
    return running(command, stdin=subprocess.PIPE, stderr=None, cwd=root)


def start(process: subprocess.Popen[str], seconds: float, name: str, store: str) -> int:
    """Begin a run that gets a signal after so many seconds; its process id."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{seconds} {name} {store}\n")
    process.stdin.flush()
    return int(process.stdout.readline())


def end_of(process: subprocess.Popen[str]) -> str:
    """The word for how a run has ended."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def asked(body: dict[str, Any]) -> str:
    return json.dumps([body["model"], body["messages"], body["seed"]], sort_keys=True)


def check_moment(
    mock: MockOpenAI, workers: list[subprocess.Popen[str]], store: str, moment: Moment
) -> str:
    """One of two runs of one plan gets a signal; the other one must have all answers, each of them
    once, and no answer on the disk is asked for again."""
    mock.bodies.clear()
    first, second = workers
    name = moment.signal
    pid = start(first, LONG if moment.calls else moment.seconds, name, store)
    start(second, LONG, "SIGKILL", store)
    if moment.calls:
        until = time.monotonic() + LONG / 2
        while len(mock.bodies) < moment.calls and time.monotonic() < until:
            time.sleep(0.001)
        time.sleep(moment.seconds)
        with suppress(ProcessLookupError):  # it may be done
            os.kill(pid, signal.Signals[name])
    how = end_of(first)
    # A SIGTERM before the run has begun ends a process as it always does.
    assert how in ("done", "killed", ENDS[name]), how

    with Store(store) as opened:
        known = {
            asked({"model": r["model"]["name"].removeprefix("openai/"), **r, **r["params"]})
            for r in _answered(opened)
        }
        records = opened.runs()
        states = [r.status for r in records if not r.alive and r.items]
        # At most the one that was ended lacks something; the other one may be done by now.
        assert how == "done" or sorted(states)[:-1] in ([], ["complete"]), states
        assert set(states) <= {"interrupted", "complete"}, states
        # Behind the look at the disk: what was sent before it may have been answered meanwhile.
        sent = len(mock.bodies)
        midway = how != "done" and 0 < len(known) < crash_run.CALLS
    assert end_of(second) == "done"

    requests = [asked(body) for body in mock.bodies]
    counts = Counter(requests)
    assert not known & set(requests[sent:]), "an answer on the disk was asked for again"
    again = sum(counts.values()) - len(counts)
    # What was under way in the process that died is all that may be asked again.
    assert again <= (0 if how == "done" else CONNECTIONS), (how, again)
    with tp.Lab(store) as lab:
        plan = crash_run.plan_of(lab, mock.url)
        assert len(counts) == plan.calls
        histories = lab.store.histories(plan.requests)
        assert len(histories) == plan.calls
        assert {sum(c.ok for c in history) for history in histories.values()} == {1}
        states = sorted(record.status for record in lab.runs())
        assert "running" not in states, states
        # The one that was ended lacks nothing by now.
        assert set(states) == {"complete"}, states
        assert all(len(lab.store.items(run)) == plan.calls for run in lab.store.run_ids())
    return f"{how} midway" if midway else how


def _answered(store: Store) -> list[dict[str, Any]]:
    """The questions that have an answer."""
    found = {}
    for run in store.run_ids():
        for _, completion in store.completions(run):
            if completion.ok and completion.request:
                found[completion.key] = dict(completion.request)
    return list(found.values())


def check_moments(stores: Iterator[str] | list[str], moments: list[Moment]) -> Counter[str]:
    """`check_moment` for each moment on a store of its own; how many ended how."""
    ends: Counter[str] = Counter()
    with MockOpenAI() as mock, worker(mock.url) as one, worker(mock.url) as two:
        for store, moment in zip(stores, moments, strict=False):
            ends[check_moment(mock, [one, two], store, moment)] += 1
    return ends


def some_moments(count: int, seed: int = 3) -> list[Moment]:
    """Moments of a run, both signals in turn; in each fifth pair nothing may have been asked yet."""
    source = random.Random(seed)
    moments = []
    for n in range(count):
        calls = 0 if n % 10 in (8, 9) else source.randrange(1, crash_run.CALLS)
        seconds = source.uniform(0.0, 0.03 if calls else 1.2)
        moments.append(Moment(calls, seconds, list(ENDS)[n % 2]))
    return moments


def emptied(url: str) -> Iterator[str]:
    """The address of a server, again and again, each time without tables."""
    while True:
        empty(url)
        yield url


def main() -> None:
    moments = some_moments(int(sys.argv[1]) if len(sys.argv) > 1 else 30)
    with tempfile.TemporaryDirectory() as folder:
        files = [f"{folder}/{n}.db" for n in range(len(moments))]
        ends = {"SQLite": check_moments(files, moments)}
    with postgres_url() as url:
        if url is not None:
            ends["PostgreSQL"] = check_moments(emptied(url), moments)
    for store, counts in ends.items():
        seen = ", ".join(f"{n} {how}" for how, n in counts.items())
        print(
            f"two runs of one plan in one store, one ended at some moment, {store} | "
            f"{counts.total()} | {seen}; no answer lost or asked again | | "
        )


if __name__ == "__main__":
    main()
