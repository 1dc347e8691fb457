"""Logs with a known truth, read and reported from end to end: python benchmarks/simulated_logs.py

    --logs N    how many logs (default 2,000: about twenty minutes)

A log holds two models, 12 cases, three trials each. Every case has a chance of its own, and each
answer is right by it. Planted in each log: trials that are not there, rate limits and error pages
in the place of an answer, answers of a fallback, rows that were written twice, and a line that was
cut. Printed: in how many logs a count of the report differs from the planted one, and how often the
95 % interval of a model's success holds its true rate.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import toolparse_lab as tp

MINUTES = range(1, 13)
TRIALS = 3
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


def cases() -> list[tp.Case]:
    """The cases, whose target is their own number of minutes."""
    return [
        tp.Case(f"timer-{n}", f"Set a timer of {n} minutes.", [TOOL], [called(n)])  # type: ignore[arg-type]
        for n in MINUTES
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


def simulated(rng: random.Random) -> tuple[list[str], Counter[tuple[str, str]], dict[str, float]]:
    """The lines of a log, the planted counts by model and kind, and the true rate of each model."""
    lines: list[str] = []
    planted: Counter[tuple[str, str]] = Counter()
    rates = {}
    for model in MODELS:
        rates[model] = mean = rng.choice((0.5, 0.7, 0.9))
        for minutes in MINUTES:
            chance = rng.betavariate(mean * 4, (1 - mean) * 4)
            for trial in range(TRIALS):
                (kind,) = rng.choices(list(KINDS), list(KINDS.values()))
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
    rng.shuffle(lines)
    return [*lines, lines[0][: len(lines[0]) // 2]], planted, rates


def differences(seed: int) -> tuple[list[str], int]:
    """What a report of one log says otherwise than it was planted, and how many of its two
    intervals hold the true rate.
    """
    lines, planted, rates = simulated(random.Random(seed))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "log.jsonl")
        path.write_text("\n".join(lines))
        with tp.Lab(Path(folder, "runs.db")) as lab:
            run = lab.ingest(path, cases=cases(), protocol="hermes", progress=False)
            report = run.report(by=["model"])
            table, frame = report.frame, run.frame()
    skipped = {s.name: s.count for s in run.plan.cases.skipped}
    found, held = [], 0
    for model, rate in rates.items():
        cell = table[table["model"] == model].iloc[0]
        rows = frame[frame["model"] == model]
        held += int(cell["ci_low"] <= rate <= cell["ci_high"])
        kinds = {kind: planted[model, kind] for kind in (*KINDS, "right", "wrong")}
        for name, got, wanted in (
            ("judged", cell["n"], kinds["right"] + kinds["wrong"]),
            ("right", int(rows["score_success"].sum()), kinds["right"]),
            ("missing", cell["missing"], sum(kinds[kind] for kind in ("absent", *FAILED))),
            ("of a fallback", (rows["served_model"] == FALLBACK).sum(), kinds["fallback"]),
        ):
            if got != wanted:
                found.append(f"log {seed}, {model}: {name} {got}, planted {wanted}")
    copies = sum(planted[model, "doubled"] for model in MODELS)
    if skipped.get("copies", 0) != copies:
        found.append(f"log {seed}: copies {skipped.get('copies', 0)}, planted {copies}")
    return found, held


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--logs", type=int, default=2000)
    logs = parser.parse_args().logs
    wrong, held = [], 0
    for seed in range(logs):
        found, of_two = differences(seed)
        wrong += found
        held += of_two
        for line in found:
            print(line, flush=True)
    share = held / (2 * logs)
    print(f"{logs:,} logs: {len(wrong)} counts differ, {share:.1%} of {2 * logs:,} intervals hold")


if __name__ == "__main__":
    main()
