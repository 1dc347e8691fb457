"""Logs with a known truth, read and reported from end to end: python benchmarks/simulated_logs.py

    --logs N    how many logs (default 2,000: about twenty minutes)

A log holds two models, 12 or 24 cases, one to five trials each. Every case has a chance of its own,
and each answer is right by it. Planted in each log: trials that are not there, rate limits and
error pages in the place of an answer, answers of a fallback, rows that were written twice, and a
line that was cut. Printed: in how many logs a count of the report differs from the planted one, and
how often the 95 % interval of a model's success holds its true rate, by what a log is like.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import toolparse_lab as tp

CASES = (12, 24)
TRIALS = (1, 3, 5)
# True rates lie anywhere between, so that no value is the odd one of its number of cases.
RATES = (0.4, 0.6, 0.8, 0.95)
# How many times as many trials are missing as by the weights below: about 7, 12 and 30 of 100.
MISSING = (0.5, 1, 3)
MODELS = ("gpt-4.1-mini", "gpt-4o-mini")
FALLBACK = "gpt-4.1-nano"
TOOL = {
    "type": "function",
    "function": {
        "name": "set_timer",
        "parameters": {
            "type": "object",
            "properties": {"minutes": {"type": "integer"}},
            "required": ["minutes"],
        },
    },
}
PAGE = "<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"
LIMIT = {"error": {"message": "Rate limit reached for requests", "type": "rate_limit_error"}}
# What becomes of a trial, with its weight; and the bodies of those that failed.
KINDS = {"answer": 80, "absent": 4, "limit": 5, "page": 3, "fallback": 4, "doubled": 4}
FAILED = {"limit": LIMIT, "page": PAGE}
LOST = ("absent", *FAILED)


class Shape(NamedTuple):
    """What a model's part of a log is like."""

    cases: int
    trials: int
    rate: float
    missing: float


def cases(n: int) -> list[tp.Case]:
    """The cases, whose target is their own number of minutes."""
    return [
        tp.Case(f"timer-{n}", f"Set a timer of {n} minutes.", [TOOL], [called(n)])  # type: ignore[arg-type]
        for n in range(1, n + 1)
    ]


def called(minutes: int) -> dict[str, Any]:
    """A call of the tool."""
    return {"name": "set_timer", "arguments": {"minutes": minutes}}


def answer(model: str, minutes: int, id: str) -> dict[str, Any]:
    """A chat completion with one call in its text."""
    call = json.dumps(called(minutes))
    return {
        "id": id,
        "object": "chat.completion",
        "model": model,
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {
                    "role": "assistant",
                    "content": f"<tool_call>\n{call}\n</tool_call>",
                },
            }
        ],
        "usage": {"prompt_tokens": 50, "completion_tokens": 20, "total_tokens": 70},
    }


def simulated(rng: random.Random) -> tuple[list[str], Counter[tuple[str, str]], dict[str, Shape]]:
    """The lines of a log, the planted counts by model and kind, and what each model is like."""
    lines: list[str] = []
    planted: Counter[tuple[str, str]] = Counter()
    shapes = {}
    n, trials, missing = rng.choice(CASES), rng.choice(TRIALS), rng.choice(MISSING)
    weights = [w * (missing if kind in LOST else 1) for kind, w in KINDS.items()]
    for model in MODELS:
        shapes[model] = shape = Shape(n, trials, rng.uniform(RATES[0], RATES[-1]), missing)
        for minutes in range(1, n + 1):
            chance = rng.betavariate(shape.rate * 4, (1 - shape.rate) * 4)
            before = len(lines), planted[model, "absent"]
            for trial in range(trials):
                (kind,) = rng.choices(list(KINDS), weights)
                planted[model, kind] += 1
                if kind == "absent":
                    continue
                right = rng.random() < chance
                body: Any = answer(
                    FALLBACK if kind == "fallback" else model,
                    minutes if right else 99,
                    f"{model}-{minutes}-{trial}",
                )
                if kind in FAILED:
                    body = FAILED[kind]
                else:
                    planted[model, "right" if right else "wrong"] += 1
                asked = f"Set a timer of {minutes} minutes."
                request = {
                    "model": model,
                    "messages": [{"role": "user", "content": asked}],
                    "tools": [TOOL],
                }
                row = {"case_id": f"timer-{minutes}", "request": request, "response": body}
                lines += [json.dumps(row)] * (2 if kind == "doubled" else 1)
            if len(lines) == before[0]:
                # Of a case without any row, a log does not say that it was asked.
                planted[model, "absent"] = before[1]
                planted[model, "unseen"] += 1
    rng.shuffle(lines)
    return [*lines, lines[0][: len(lines[0]) // 2]], planted, shapes


def differences(seed: int) -> tuple[list[str], list[tuple[Shape, bool]]]:
    """What a report of one log says otherwise than it was planted, and for each of its two models
    if the interval holds the true rate.
    """
    lines, planted, shapes = simulated(random.Random(seed))
    (n, *_) = shapes[MODELS[0]]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "log.jsonl")
        path.write_text("\n".join(lines))
        with tp.Lab(Path(folder, "runs.db")) as lab:
            run = lab.ingest(path, cases=cases(n), protocol="hermes", progress=False)
            report = run.report(by=["model"])
            table, frame = report.frame, run.frame()
    skipped = {s.name: s.count for s in run.plan.cases.skipped}
    found, held = [], []
    for model, shape in shapes.items():
        cell = table[table["model"] == model].iloc[0]
        rows = frame[frame["model"] == model]
        held.append((shape, bool(cell["ci_low"] <= shape.rate <= cell["ci_high"])))
        kinds = {kind: planted[model, kind] for kind in (*KINDS, "right", "wrong")}
        for name, got, wanted in (
            ("judged", cell["n"], kinds["right"] + kinds["wrong"]),
            ("right", int(rows["score_success"].sum()), kinds["right"]),
            ("missing", cell["missing"], sum(kinds[kind] for kind in LOST)),
            ("cases", rows["case_id"].nunique(), n - planted[model, "unseen"]),
            ("of a fallback", (rows["served_model"] == FALLBACK).sum(), kinds["fallback"]),
        ):
            if got != wanted:
                found.append(f"log {seed}, {model}: {name} {got}, planted {wanted}")
    copies = sum(planted[model, "doubled"] for model in MODELS)
    if skipped.get("copies", 0) != copies:
        found.append(f"log {seed}: copies {skipped.get('copies', 0)}, planted {copies}")
    return found, held


def traits(shape: Shape) -> tuple[str, ...]:
    """What a model's part of a log is like, in words."""
    low, high = next(ends for ends in pairwise(RATES) if shape.rate <= ends[1])
    return (
        f"{shape.cases} cases",
        f"{shape.trials} trials a case",
        f"true rate {low} to {high}",
        f"{dict(zip(MISSING, ('few', 'some', 'many'), strict=True))[shape.missing]} missing",
    )


def shares(held: list[tuple[Shape, bool]]) -> Iterator[str]:
    """The lines of a table: the share of intervals that hold, by each thing that a log has."""
    good, n = Counter[str](), Counter[str]()
    for shape, holds in held:
        n.update(traits(shape))
        good.update(traits(shape) if holds else ())
    for name in sorted(n):
        yield f"| {name} | {n[name]:,} | {good[name] / n[name]:.1%} |"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--logs", type=int, default=2000)
    logs = parser.parse_args().logs
    n_wrong, held = 0, []
    for seed in range(logs):
        found, of_two = differences(seed)
        n_wrong += len(found)
        held += of_two
        for line in found:
            print(line, flush=True)
    print("\n".join(shares(held)))
    n_held = sum(good for _, good in held)
    share = n_held / len(held)
    error = 1.96 * (share * (1 - share) / len(held)) ** 0.5
    print(
        f"In {logs:,} logs, {n_wrong} counts differ from the planted ones, and {share:.1%} of "
        f"{len(held):,} intervals hold the true rate ({share - error:.1%} to {share + error:.1%})."
    )


if __name__ == "__main__":
    main()
