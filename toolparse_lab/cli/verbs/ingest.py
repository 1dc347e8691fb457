"""`toolparse ingest`."""

from __future__ import annotations

import argparse
from collections import Counter
from typing import TYPE_CHECKING, Any

from ...core.errors import BadOptions
from ...core.values.printable import counted
from ..inputs import read_tools
from ..options import (
    add_config,
    add_json,
    add_store,
    lab_to_write,
    need_lab,
    renaming,
    settings_of,
)
from ..output import put, put_json, say, table

if TYPE_CHECKING:
    from ...evals.scoring.trial import Trial
    from ...experiments.run import Run

EXAMPLES = (
    "toolparse ingest answers.jsonl --tools tools.json --protocol hermes",
    "toolparse ingest log.csv --columns completion_text=raw,user= --cases cases.jsonl",
    "toolparse ingest recording.jsonl",
)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the source and what rows that do not say it are taken for."""
    add_config(command)
    command.add_argument(
        "source",
        help="JSONL, a JSON array, CSV, Parquet, .sse dumps or a folder of them, or a recording, "
        "whose answers are added to the store",
    )
    command.add_argument(
        "--tools", metavar="FILE", help="JSON file with the tools of rows that name none"
    )
    command.add_argument(
        "--cases", metavar="FILE", help="the cases that rows answer, by case_id or input"
    )
    command.add_argument(
        "--columns",
        type=renaming,
        metavar="A=B,...",
        help="what the source calls things: text=raw; user= leaves one out",
    )
    command.add_argument("--model", metavar="NAME", help="the model of rows that name none")
    command.add_argument(
        "--protocol",
        default="auto",
        metavar="ID",
        help="the protocol of rows that name none (auto)",
    )
    command.add_argument(
        "--skip-bad", action="store_true", help="leave out rows that cannot be read, and count them"
    )
    command.add_argument(
        "--max-rows",
        type=int,
        metavar="N",
        help="refuse a source with more rows (default: no limit, 100000 for a packed file)",
    )
    add_store(command)
    add_json(command)


def run(options: Any) -> int:
    """Record the answers of a source as a run, and count their outcomes.

    A recording has its own reader: its answers are added to the store as they are.
    """
    settings = settings_of(options)
    need_lab()
    # SQLAlchemy: 0.8 s, and an extra.
    from ...runner.store.recording import import_recording, is_recording

    if is_recording(options.source):
        _check_recording(options)
        with lab_to_write(settings) as lab:
            new = import_recording(options.source, lab.store)
        if options.json:
            put_json({"recording": options.source, "new": new})
        else:
            put(f"{counted(new, 'answer')} added; a run of the same plan finds them there\n")
        return 0
    # Before the lab, so that a file that cannot be read makes no store.
    tools = read_tools(options.tools)
    with lab_to_write(settings) as lab:
        run = lab.ingest(
            options.source,
            tools=tools,
            cases=options.cases,
            columns=options.columns,
            model=options.model,
            protocol=options.protocol,
            errors="skip" if options.skip_bad else "raise",
            max_rows=options.max_rows,
            progress="lines",
        )
        skipped = [
            {"what": s.name, "count": s.count, "reason": s.reason} for s in run.plan.cases.skipped
        ]
        outcomes = _outcomes(run, settings["policy"])
    say(str(run))
    for row in skipped:
        say(f"left out: {row['what']} {row['count']}: {row['reason']}")
    if options.json:
        put_json(
            {
                "run_id": run.run_id,
                "answers": outcomes.total(),
                "outcomes": outcomes,
                "skipped": skipped,
            }
        )
    else:
        put(f"run {run.run_id}\n")
        put(table(("outcome", "n"), outcomes.most_common()))
    return 0


def _outcomes(run: Run, policy: Any) -> Counter[str]:
    """Return how many answers have each outcome. Each is read for it, which may take long."""
    from ...runner.progress import Progress  # asyncio with the runner

    outcomes: Counter[str] = Counter()
    with Progress(len(run.plan.items), show="lines", unit="answer") as bar:

        def count(trial: Trial) -> bool:
            outcomes[trial.outcome or trial.missing_reason] += 1
            bar.advance(1)
            return False  # none is kept, of which there may be any number

        run.trials(policies=(policy,), where=count)
    return outcomes


def _check_recording(options: Any) -> None:
    """Raise BadOptions for options that say what rows mean, which a recording says itself."""
    given = [
        f"--{name}"
        for name in ("tools", "cases", "columns", "model")
        if getattr(options, name) is not None
    ]
    if given:
        raise BadOptions(
            "a recording says itself what its answers are",
            got=", ".join(given),
            expected="toolparse ingest FILE, with --store for another store",
        )
