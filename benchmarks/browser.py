"""Measure the first view of the browser of trials: `python benchmarks/browser.py [ROWS]`."""

from __future__ import annotations

import sys
import time

import pandas as pd

import toolparse_lab as tp
from toolparse_lab.evals.frames.recorded import trials_frame
from toolparse_lab.evals.scoring.trial import Trial
from toolparse_lab.notebook.browser import Browser
from toolparse_lab.runner.exchange.types import Completion

TEXTS = (
    '<tool_call>{"name": "set_timer", "arguments": {"minutes": 5}}</tool_call>',
    '<tool_call>{"name": "set_timer", "arguments": {"minutes": "5",}}</tool_call>',
    '<tool_call>{"name": "set_timer", "arguments": {"minutes": "five"}}</tool_call>',
    "I cannot set timers.",
)


def frame_of(n: int) -> pd.DataFrame:
    """Return a trials frame of about `n` rows: 4 models, 5 arms."""
    case = tp.example_cases(demo=True)[0]
    trials = []
    for i in range(20):
        raw = TEXTS[i % 4]
        result = tp.parse(raw, "hermes", case.tools)
        arm, model = f"arm {i % 5}", f"model {i // 5}"
        answer = Completion(key="key", raw=raw, status="ok")
        trials.append(Trial.of(case, answer, result, run_id="run", model=model, arm=arm))
    frame = pd.concat([trials_frame(trials)] * (n // 20), ignore_index=True)
    frame["case_id"] = [f"case {i // 20}" for i in range(len(frame))]
    frame["trial_id"] = [f"trial {i}" for i in range(len(frame))]
    return frame


def main() -> None:
    """Print seconds for the first view, and for what follows it."""
    frame = frame_of(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
    Browser(frame.head(20), rows="arm")  # what is loaded once is not the browser's time
    started = time.perf_counter()
    browser = Browser(frame, rows="arm")
    print(f"{len(frame)} rows, first view: {time.perf_counter() - started:.2f} s")
    for query in ({"text": "cannot"}, {"failures": True}, {"flips": ["arm", "arm 0", "arm 1"]}):
        started = time.perf_counter()
        answer = browser.answer({"kind": "page", "query": query})
        print(f"{query}: {answer['total']} trials, {time.perf_counter() - started:.2f} s")


if __name__ == "__main__":
    main()
