"""Commands for answers that are there already: `ingest`, `reparse`."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

from ..errors import UnreadableInput
from .options import RUN_HELP, Commands, add_json, add_store, names, need, open_lab, renaming, settings_of
from .output import put, put_json, say, table
from .reading import read_tools


def add_commands(commands: Commands) -> None:
    ingest = commands.add(
        "ingest", _ingest, "make a run of outputs that something else recorded",
        "toolparse ingest answers.jsonl --tools tools.json --protocol hermes",
        "toolparse ingest log.csv --columns completion_text=raw,user= --cases cases.jsonl",
    )  # fmt: skip
    ingest.add_argument("source", help="JSONL, a JSON array, CSV, Parquet, .sse dumps or a folder of them")
    ingest.add_argument("--tools", metavar="FILE", help="JSON file with the tools of rows that name none")
    ingest.add_argument("--cases", metavar="FILE", help="the cases that rows answer, by case_id or input")
    ingest.add_argument(
        "--columns",
        type=renaming,
        metavar="A=B,...",
        help="what the source calls things: text=raw; user= leaves one out",
    )
    ingest.add_argument("--model", metavar="NAME", help="the model of rows that name none")
    ingest.add_argument("--protocol", default="auto", metavar="ID", help="the protocol of rows that name none (auto)")
    ingest.add_argument("--skip-bad", action="store_true", help="leave out rows that cannot be read, and count them")
    add_store(ingest)
    add_json(ingest)

    reparse = commands.add(
        "reparse", _reparse, "read recorded answers again by other protocols or policies; no model is called",
        "toolparse reparse latest --protocols hermes,auto --policies none,safe --out again.parquet",
        "toolparse reparse trials.parquet --protocols auto --out parts/ --workers 8",
    )  # fmt: skip
    reparse.add_argument(
        "source",
        nargs="?",
        default="latest",
        help=f"{RUN_HELP}, or Parquet of trials, a file or a folder (default: latest)",
    )
    reparse.add_argument(
        "--protocols", type=names, metavar="A,B", help="what reads (default: what each prompt asked for)"
    )
    reparse.add_argument(
        "--policies", type=names, metavar="A,B", help="coercion policies (default: the setting `policy`)"
    )
    reparse.add_argument("--engine", default="processes", help="processes, serial or dask (default: processes)")
    reparse.add_argument("--workers", type=int, metavar="N", help="processes (default: one a core)")
    reparse.add_argument("--client", metavar="ADDRESS", help="the scheduler of a Dask cluster")
    reparse.add_argument("--out", metavar="PATH", help="write the trials frame: a .parquet file, or a folder of parts")
    reparse.add_argument("--overwrite", action="store_true", help="write where something is already")
    add_store(reparse)
    add_json(reparse)


def _ingest(options: Any) -> int:
    settings = settings_of(options)
    tools = read_tools(options.tools)
    with open_lab(settings, must_be=False) as lab:
        run = lab.ingest(
            options.source, tools=tools, cases=options.cases, columns=options.columns, model=options.model,
            protocol=options.protocol, errors="skip" if options.skip_bad else "raise",
        )  # fmt: skip
        skipped = [{"what": s.name, "count": s.count, "reason": s.reason} for s in run.plan.cases.skipped]
        outcomes = Counter(t.outcome or t.missing_reason for t in run.trials(policies=(settings["policy"],)))
    say(str(run))
    for one in skipped:
        say(f"left out: {one['what']} {one['count']}: {one['reason']}")
    if options.json:
        put_json({"run_id": run.run_id, "answers": outcomes.total(), "outcomes": outcomes, "skipped": skipped})
    else:
        put(f"run {run.run_id}\n")
        put(table(("outcome", "n"), outcomes.most_common()))
    return 0


def _reparse(options: Any) -> int:
    settings = settings_of(options)
    need("lab", "pandas", "litellm", "sqlalchemy")
    policies = options.policies or [settings["policy"]]
    how = {k: v for k in ("engine", "workers", "client") if (v := getattr(options, k)) is not None}
    how |= {"to": options.out, "overwrite": options.overwrite}
    if os.path.exists(options.source):
        from ..reparse import reparse

        made = reparse(options.source, options.protocols, policies, **how)
    elif options.source.endswith(".parquet") or os.sep in options.source:
        raise UnreadableInput(f"{options.source}: there is no such file or folder")
    else:
        with open_lab(settings) as lab:
            made = lab.reparse(lab.open(options.source), options.protocols, policies, **how)
    if isinstance(made, Path):
        say(f"wrote {made}")
        if options.json:
            put_json({"path": str(made)})
        return 0
    keys = ["parse_protocol", "policy", "outcome"]
    counts = made.groupby(keys, observed=True, dropna=False).size().reset_index(name="n")
    rows = [tuple(r) for r in counts.astype(object).to_numpy()]
    if options.json:
        put_json([dict(zip([*keys, "n"], row, strict=True)) for row in rows])
    else:
        put(table([*keys, "n"], rows))
    return 0
