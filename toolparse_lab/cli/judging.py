"""Commands that judge what is recorded: `score`, `report`, `compare`, `diff`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from ..errors import BadOptions
from .asking import check_files, gate_json
from .options import (
    RUN_HELP,
    Commands,
    add_gate,
    add_json,
    add_policy,
    add_store,
    check_folder,
    gates_of,
    names,
    open_lab,
    settings_of,
)
from .output import put, put_json, records, report_width, say, table, terminal_width

if TYPE_CHECKING:
    from ..evals.reports.comparison import ArmComparison
    from ..run import Run
    from ..settings import Settings

_SCORES = ("trial_id", "case_id", "model", "arm", "parse_protocol", "trial", "outcome", "sub_code", "score_success")


def add_commands(commands: Commands) -> None:
    score = commands.add(
        "score", _score, "judge every trial of a run",
        "toolparse score latest --outcome wrong_call",
        "toolparse score latest --out trials.parquet",
    )  # fmt: skip
    _add_run(score)
    _add_reader(score)
    score.add_argument("--failed", action="store_true", help="only trials that failed, as run.failures() has them")
    score.add_argument("--outcome", metavar="NAME", help="only trials of this outcome")
    score.add_argument("--out", metavar="FILE", help="write the whole trials frame: .parquet or .csv")
    add_json(score)

    report = commands.add(
        "report", _report, "sum a run up: success with intervals, and its reasons",
        "toolparse report latest --by model,prompt_protocol --baseline native --out report.html",
        "toolparse report latest --fail-under 0.9 --gate coercion_rate=0.2",
    )  # fmt: skip
    report.add_argument(
        "run", nargs="?", default="latest", metavar="RUN",
        help=f"{RUN_HELP}, or a .parquet file of trials, each of its policies (default: latest)",
    )  # fmt: skip
    add_store(report)
    _add_reader(report)
    report.add_argument("--by", type=names, metavar="A,B", help="columns of the report (default: model and protocol)")
    report.add_argument("--baseline", metavar="NAME", help="the protocol, arm or model to compare with")
    report.add_argument(
        "--out", action="append", default=[], metavar="FILE",
        help="write the report: .html, .md, .csv, .parquet, .tex or .xml (JUnit); may be repeated",
    )  # fmt: skip
    add_gate(report)
    add_json(report)

    compare = commands.add(
        "compare", _compare, "compare two arms, protocols or models of a run, paired on cases",
        "toolparse compare latest hermes morph_xml --within model --fail-on-regression",
    )  # fmt: skip
    compare.add_argument("run", metavar="RUN", help=RUN_HELP)
    compare.add_argument("a", help="the old one")
    compare.add_argument("b", help="the new one")
    add_store(compare)
    _add_comparison(compare)

    diff = commands.add(
        "diff", _diff, "compare two runs, paired on cases",
        "toolparse diff latest~1 latest --fail-on-regression --out diff.html",
    )  # fmt: skip
    diff.add_argument("a", metavar="OLD", nargs="?", default="latest~1", help=f"{RUN_HELP} (default: latest~1)")
    diff.add_argument("b", metavar="NEW", nargs="?", default="latest", help="the same (default: latest)")
    add_store(diff)
    _add_comparison(diff)


def _add_run(command: argparse.ArgumentParser) -> None:
    command.add_argument("run", nargs="?", default="latest", metavar="RUN", help=f"{RUN_HELP} (default: latest)")
    add_store(command)


def _add_reader(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--protocol", metavar="ID", help="what reads the answers (default: what each prompt asked for)"
    )
    add_policy(command)


def _add_comparison(command: argparse.ArgumentParser) -> None:
    command.add_argument("--within", type=names, metavar="A,B", help="columns to hold fixed")
    add_policy(command)
    command.add_argument("--fail-on-regression", action="store_true", help="exit code 1 where something became worse")
    command.add_argument("--alpha", type=float, default=0.05, help="how sure a drop must be (default: 0.05)")
    command.add_argument("--tolerance", type=float, default=0.0, help="a drop that is allowed (default: 0)")
    command.add_argument("--out", metavar="FILE", help="write the comparison: .html, .md, .csv or .parquet")
    add_json(command)


def _score(options: Any) -> int:
    settings = settings_of(options)
    check_folder(options.out)
    with open_lab(settings) as lab:
        frame = lab.open(options.run).frame(protocol=options.protocol, policies=(settings["policy"],))
    if options.failed:
        from ..evals.frames.recorded import failed_rows

        frame = frame[failed_rows(frame)]
    if options.outcome:
        frame = frame[frame["outcome"].astype("string").eq(options.outcome).fillna(False)]
    if options.out:
        from ..evals.frames.files import write_frame

        write_frame(frame.reset_index(drop=True), options.out)
    shown = frame[[c for c in _SCORES if c in frame]]
    if options.json:
        put_json(records(shown))
    else:
        put(table([str(c) for c in shown], [list(row.values()) for row in records(shown)], width=terminal_width()))
    return 0


def _report(options: Any) -> int:
    from ..evals.reports.report import Report

    settings = settings_of(options)
    check_files(options)
    if options.run.endswith(".parquet"):
        return _report_file(options, settings)
    with open_lab(settings) as lab:
        run = lab.open(options.run)
        if options.protocol:
            from ..run import COLUMN_POLICIES

            policies = tuple(dict.fromkeys((settings["policy"], *COLUMN_POLICIES)))
            trials = run.frame(protocol=options.protocol, policies=policies)
            report = Report(trials, options.by, baseline=options.baseline, policy=settings["policy"])
        else:
            report = run.report(options.by, baseline=options.baseline, policy=settings["policy"])
        thresholds = gates_of(options)
        gate = report.gate(**thresholds) if thresholds else None
        for file in options.out:
            report.save(file, gate=gate)
        if options.json:
            put_json({"run_id": run.run_id, "cells": records(report.frame), "gate": gate_json(gate)})
        else:
            put(report.text(report_width()))
            if gate is not None:
                put(f"\n{gate}")
        if gate is not None and not _whole(run):
            return 3
    return 1 if gate is not None and not gate.ok else 0


def _report_file(options: Any, settings: Settings) -> int:
    """A report a policy of a trials frame in a file; the headline's is the one that is gated and written."""
    from ..evals.frames.files import read_frame
    from ..evals.reports.report import Report
    from ..run import HEADLINE

    if options.protocol:
        raise BadOptions("a file is read already", got="--protocol", hint="toolparse reparse --protocols reads it anew")
    trials = read_frame(options.run, "trials")
    held = [str(p) for p in trials["policy"].dropna().unique()]
    told = settings.origins["policy"] != "default"
    chosen = [settings["policy"]] if told or not held else sorted(held, key=lambda p: p != HEADLINE)
    reports = [Report(trials, options.by, baseline=options.baseline, policy=p) for p in chosen]
    thresholds = gates_of(options)
    gate = reports[0].gate(**thresholds) if thresholds else None
    for file in options.out:
        reports[0].save(file, gate=gate)
    if options.json:
        cells = [{"policy": r.policy, **cell} for r in reports for cell in records(r.frame)]
        put_json({"file": options.run, "cells": cells, "gate": gate_json(gate)})
    else:
        put("\n\n".join(r.text(report_width()) for r in reports))
        if gate is not None:
            put(f"\n{gate}")
    if gate is None:
        return 0
    return 3 if reports[0].frame["missing"].any() else 0 if gate.ok else 1


def _whole(*runs: Run) -> bool:
    """Whether every trial has an answer; tells of each run that has not: no gate holds over what was not judged."""
    lacking = [run for run in runs if run.missing]
    for run in lacking:
        say(
            f"toolparse: run {run.run_id} is not whole: {run.missing} of {len(run.plan.items)} trials have no answer "
            "and were not judged; `toolparse retry` asks for them"
        )
    return not lacking


def _compare(options: Any) -> int:
    settings = settings_of(options)
    check_folder(options.out)
    with open_lab(settings) as lab:
        run = lab.open(options.run)
        found = run.compare(options.a, options.b, within=options.within, policy=settings["policy"])
        return _show(found, options, run)


def _diff(options: Any) -> int:
    settings = settings_of(options)
    check_folder(options.out)
    with open_lab(settings) as lab:
        a, b = lab.open(options.a), lab.open(options.b)
        return _show(lab.diff(a, b, within=options.within, policy=settings["policy"]), options, a, b)


def _show(comparison: ArmComparison, options: Any, *runs: Run) -> int:
    verdict = comparison.regression(options.alpha, options.tolerance)
    if options.out:
        comparison.save(options.out)
    if options.json:
        put_json(
            {
                "a": comparison.a,
                "b": comparison.b,
                "on": comparison.on,
                "rows": records(comparison.frame),
                "flips": records(comparison.flips),
                "notes": comparison.notes,
                "regression": {"ok": verdict.ok, "rows": records(verdict.frame), "sentences": verdict.sentences},
            }
        )
    else:
        put(f"{comparison}\n\n{verdict}")
    if not options.fail_on_regression:
        return 0
    return 3 if not _whole(*runs) else 0 if verdict.ok else 1
