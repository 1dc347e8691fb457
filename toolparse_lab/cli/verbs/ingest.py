"""`toolparse ingest`."""

from __future__ import annotations

import argparse
from collections import Counter
from typing import Any

from ..inputs import read_tools
from ..options import add_config, add_json, add_store, open_lab, renaming, settings_of
from ..output import put, put_json, say, table

EXAMPLES = (
    "toolparse ingest answers.jsonl --tools tools.json --protocol hermes",
    "toolparse ingest log.csv --columns completion_text=raw,user= --cases cases.jsonl",
)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the source and what rows that do not say it are taken for."""
    add_config(command)
    command.add_argument(
        "source", help="JSONL, a JSON array, CSV, Parquet, .sse dumps or a folder of them"
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
    add_store(command)
    add_json(command)


def run(options: Any) -> int:
    """Record the answers of a source as a run, and count their outcomes."""
    settings = settings_of(options)
    # Before the lab, so that a file that cannot be read makes no store.
    tools = read_tools(options.tools)
    with open_lab(settings, must_be=False) as lab:
        run = lab.ingest(
            options.source,
            tools=tools,
            cases=options.cases,
            columns=options.columns,
            model=options.model,
            protocol=options.protocol,
            errors="skip" if options.skip_bad else "raise",
        )
        skipped = [
            {"what": s.name, "count": s.count, "reason": s.reason} for s in run.plan.cases.skipped
        ]
        outcomes = Counter(
            t.outcome or t.missing_reason for t in run.trials(policies=(settings["policy"],))
        )
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
