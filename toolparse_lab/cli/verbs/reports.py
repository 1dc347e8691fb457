"""Reports of recorded answers: figures, comparisons and gates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ...core.errors import BadOptions
from ..console import put, put_json, put_table, put_told, records, report_width, say, terminal_width
from ..options import (
    CONFIG,
    JSON,
    POLICY,
    READER,
    RUN,
    RUN_HELP,
    STORE,
    Option,
    check_folder,
    check_kinds,
    given,
    need_lab,
    open_lab,
    options_of,
    refuse,
    settings_of,
    verb,
)

if TYPE_CHECKING:
    from ...evals.reports.figures.comparison import ArmComparison
    from ...evals.reports.figures.gates import GateResult
    from ...evals.reports.figures.report import Report
    from ...experiments.run import Run
    from ...runner.settings import Settings

REPORT = (
    *options_of("experiments.run.Run.report", "--by", "--baseline NAME"),
    *options_of("evals.reports.figures.report.ReportOptions", "--cluster COLUMN"),
    Option(
        "--out FILE ...",
        "write the report: .html, .md, .csv, .parquet, .tex or .xml (JUnit); may be repeated",
    ),
)

GATE = (
    Option("--fail-under RATE", "exit code 1 where a cell's success is below, or not known"),
    Option("--confident", "--fail-under holds the lower end of the interval to it, not the rate"),
    Option(
        "--gate COLUMN=BOUND ...",
        "exit code 1 where a cell does not keep another bound, such as coercion_rate=0.2; "
        "may be repeated",
    ),
)

_FRAMES = (".parquet", ".csv", ".jsonl")  # as `write_frame` has them
# What a report by cells takes, and a ladder or scores do not.
_OF_CELLS = "by baseline cluster fail_under confident gate"
_SCORE_COLUMNS = (
    "trial_id", "case_id", "model", "arm", "parse_protocol", "trial", "outcome", "sub_code",
    "score_success",
)  # fmt: skip


@verb(
    "report",
    CONFIG,
    Option(
        "run [RUN]",
        f"{RUN_HELP}, or a .parquet file of trials, each of its policies (default: latest)",
        default="latest",
    ),
    STORE,
    *READER,
    *REPORT,
    (
        Option("--ladder", "the gain per layer instead: prompt, reading, feedback"),
        Option("--score", "each trial with its score instead"),
    ),
    Option("--failed", "of --score: only trials that failed, as run.failures() has them"),
    Option("--outcome NAME", "of --score: only trials of this outcome"),
    *GATE,
    JSON,
    examples=(
        "toolparse report latest --by model,prompt_protocol --baseline native --out report.html",
        "toolparse report latest --fail-under 0.9 --gate coercion_rate=0.2",
        "toolparse report latest --ladder --out ladder.csv",
        "toolparse report latest --score --outcome wrong_call --out trials.parquet",
    ),
)
def _report(options: Any) -> int:
    """Sum a run up, or a file of trials: 1 if the gate failed, 3 where answers are missing."""
    settings = settings_of(options)
    need_lab()
    if not options.score:
        refuse(options, "failed outcome", "a report without --score")
    if options.ladder or options.score:
        refuse(options, _OF_CELLS, "--ladder and --score")
    if options.score:
        return _show_scores(options, settings)
    if options.ladder:
        refuse(options, "protocol", "--ladder")
        return _show_ladder(options, settings)
    # Reading a run may take long, so an impossible file is told first.
    check_files(options)
    if options.run.endswith(".parquet"):
        return _show_reports(_reports_of_file(options, settings), options, None)
    with open_lab(settings) as lab:
        run = lab.open(options.run)
        return _show_reports([_report_of_run(run, options, settings)], options, run)


def _show_scores(options: Any, settings: Settings) -> int:
    for file in options.out:
        check_folder(file)
    with open_lab(settings) as lab:
        frame = lab.open(options.run).frame(
            protocol=options.protocol, policies=(settings["policy"],)
        )
    # pandas is loaded by now: the frame is one.
    from ...evals.frames.account import failed_rows  # pandas: an extra
    from ...evals.frames.files import write_frame  # pandas: an extra

    if options.failed:
        frame = frame[failed_rows(frame)]
    # A trial without an answer has no outcome, and so not this one.
    if options.outcome:
        frame = frame[frame["outcome"].astype("string").eq(options.outcome).fillna(False)]
    # The file has every column of the frame, the terminal a few of them.
    for file in options.out:
        write_frame(frame.reset_index(drop=True), file)
    head = [column for column in _SCORE_COLUMNS if column in frame]
    rows = [list(row.values()) for row in records(frame[head])]
    put_table(head, rows, options.json, width=terminal_width())
    return 0


def _report_of_run(run: Run, options: Any, settings: Settings) -> Report:
    from ...evals.reports.figures.report import Report  # pandas and SciPy: 2 s, and an extra
    from ...experiments.run import COLUMN_POLICIES

    policy = settings["policy"]
    if not options.protocol:
        baseline = options.baseline or recorded_baseline(run, options)
        return run.report(options.by, baseline=baseline, policy=policy, cluster=options.cluster)
    # A report reads every answer by the headline and by the policies of its other columns.
    policies = tuple(dict.fromkeys((policy, *COLUMN_POLICIES)))
    trials = run.frame(protocol=options.protocol, policies=policies)
    return Report(
        trials, options.by, baseline=options.baseline, policy=policy, cluster=options.cluster
    )


def _reports_of_file(options: Any, settings: Settings) -> list[Report]:
    """Return a report a policy of a file of trials, the headline's first, or that of the policy
    that was set alone.
    """
    from ...evals.reports.figures.report import load_view, report  # SciPy: 2 s, and an extra
    from ...experiments.run import HEADLINE

    if options.protocol:
        raise BadOptions(
            "a file is read already",
            got="--protocol",
            hint="toolparse reparse --protocols reads it anew",
        )
    view = load_view(options.run, options.by, options.cluster)
    policies = [str(policy) for policy in view.trials["policy"].dropna().unique()]
    if settings.origins["policy"] != "default" or not policies:
        policies = [settings["policy"]]
    # The sort is stable: after the headline the order of the file stays.
    policies.sort(key=lambda policy: policy != HEADLINE)
    return [
        report(view, options.by, baseline=options.baseline, policy=policy, cluster=options.cluster)
        for policy in policies
    ]


def _show_reports(reports: Sequence[Report], options: Any, run: Run | None) -> int:
    """Write the reports of a run, or of a file, and return the exit code. The first report, the
    headline's, is the one that is gated and saved.
    """
    gate = gate_and_save(reports[0], gates_of(options), options)
    if not options.json:
        put("\n\n".join(report.text(report_width()) for report in reports))
        if gate is not None:
            put(f"\n{gate}")
    elif run is not None:
        cells = records(reports[0].frame)
        put_json({"run_id": run.run_id, "cells": cells, "gate": gate_json(gate)})
    else:
        cells = [{"policy": r.policy, **cell} for r in reports for cell in records(r.frame)]
        put_json({"file": options.run, "cells": cells, "gate": gate_json(gate)})
    # Without a gate a report of half a run is fine: it states its n.
    if gate is None:
        return 0
    complete = not reports[0].frame["missing"].any() if run is None else all_complete(run)
    return exit_code_of(gate.ok, complete)


def gate_and_save(report: Report, bounds: Mapping[str, float], options: Any) -> GateResult | None:
    """Write the report's files, and return its gate, None without bounds."""
    gate = report.gate(**bounds) if bounds else None
    for file in options.out:
        report.save(file, gate=gate)
    return gate


def recorded_baseline(run: Run, options: Any) -> str | None:
    """Return the baseline that a run was asked with, None for other columns than it was for."""
    if options.by:
        return None
    baseline = run.store.run(run.run_id).plan.get("baseline")
    return None if baseline is None else str(baseline)


def check_files(options: Any) -> None:
    """Raise BadOptions for files that could not be written in the end, before anything is spent."""
    from ...evals.reports.pages.files import WRITERS  # pandas and SciPy: 2 s, and an extra

    check_kinds(options.out, WRITERS, "a report is")
    check_folder(getattr(options, "recording", None))


def gates_of(options: Any, more: Mapping[str, float] | None = None) -> dict[str, float]:
    """Return column -> threshold: those of the flags go before `more`. Raises BadOptions."""
    bounds = dict(more or {})
    if options.fail_under is not None:
        bounds["ci_low" if options.confident else "success"] = options.fail_under
    for text in options.gate:
        column, _, bound = text.partition("=")
        try:
            bounds[column.strip()] = float(bound)
        except ValueError:
            raise BadOptions(
                "--gate is a column and its bound", got=text, expected="coercion_rate=0.2"
            ) from None
    return bounds


def gate_json(gate: Any) -> Any:
    """Return a gate for JSON: whether it passed, each check, and the first answers against it. None
    without a gate.
    """
    if gate is None:
        return None
    answers = {"answers": list(map(asdict, gate.answers)), "n_against": gate.n_against}
    return {"ok": gate.ok, "checks": records(gate.frame), **answers}


def exit_code_of(passed: bool, complete: bool) -> int:
    """Return the exit code of a verdict. No verdict is sure while answers are missing."""
    if not complete:
        return 3
    return 0 if passed else 1


def all_complete(*runs: Run) -> bool:
    """Return True if every trial of the runs has an answer. Names each run that lacks some."""
    lacking = [run for run in runs if run.missing]
    for run in lacking:
        say(
            f"toolparse: run {run.run_id} is not whole: {run.missing} of {len(run.plan.items)} "
            "trials have no answer and were not judged; `toolparse run --retry` asks for them"
        )
    return not lacking


_COMPARE = "experiments.run.Run.compare"
_REGRESSION = "evals.reports.figures.comparison.ArmComparison.regression"


@verb(
    "compare",
    CONFIG,
    Option(
        "names [NAME ...]",
        "OLD and NEW, two runs (default: latest~1 and latest); or RUN, A and B: two arms, models "
        "or protocols of one run",
    ),
    Option("--readers", "A and B are protocols that read the same answers of RUN"),
    STORE,
    *options_of(_COMPARE, "--within", "--cluster COLUMN", "--pairs"),
    POLICY,
    Option(
        "--fail-on-regression",
        "exit code 1 where something became worse, or where it cannot be told",
    ),
    *options_of(_REGRESSION, "--alpha", "--margin SHARE", "--confident"),
    Option("--out FILE", "write the comparison: .html, .md, .csv or .parquet"),
    JSON,
    examples=(
        "toolparse compare latest~1 latest --fail-on-regression --out changes.html",
        "toolparse compare latest hermes morph_xml --within model --fail-on-regression",
        "toolparse compare latest hermes auto --readers",
    ),
)
def _compare(options: Any) -> int:
    settings = settings_of(options)
    names = list(options.names)
    if len(names) > 3 or (options.readers and len(names) != 3):
        raise BadOptions(
            "two runs are compared, or a run and two names",
            got=" ".join(names) or "none",
            expected="compare OLD NEW, or compare RUN A B",
        )
    # Reading runs may take long, so an impossible file is told first.
    check_folder(options.out)
    passed = {**given(options, _COMPARE), "policy": settings["policy"]}
    with open_lab(settings) as lab:
        if len(names) == 3 and not options.readers:
            run, a, b = lab.open(names[0]), *names[1:]
            return _show_comparison(run.compare(a, b, **passed), options, run)
        refuse(options, "pairs", "runs and readers")
        if options.readers:
            run, a, b = lab.open(names[0]), *names[1:]
            return _show_comparison(lab.diff(a, b, answers=run, **passed), options, run)
        if len(names) < 2 and len(lab.store.run_ids()) == 1:
            return _compare_within(lab.open(*names), passed, options)
        old, new = map(lab.open, [*names, *("latest~1", "latest")[len(names) :]])
        return _show_comparison(lab.diff(old, new, **passed), options, old, new)


def _compare_within(run: Run, passed: dict[str, Any], options: Any) -> int:
    # The only run of a store: what differs most within it, and how to name other two.
    from ...evals.reports.figures.conclusion import contrasts, kinds_of_column  # pandas: an extra

    report = run.report(policy=passed["policy"], cluster=passed.get("cluster"))
    found = contrasts(report)
    # A regression is one against an older run.
    if found is None or not found[0]["n_cases"].any() or options.fail_on_regression:
        raise BadOptions(
            "this store has one run, and a comparison takes two, or two models or formats that "
            "were judged on the same cases",
            got=run.run_id,
            hint="`toolparse report` has its figures; record or ingest a second run",
        )
    row = found[0].iloc[-1]
    a, b = str(row["second"]), str(row["first"])
    say(
        f"toolparse: this store has one run, so two of its {kinds_of_column(found[2])} are "
        f"compared; `toolparse compare {run.run_id} A B` names others"
    )
    return _show_comparison(run.compare(a, b, **passed), options, run)


def _show_comparison(comparison: ArmComparison, options: Any, *runs: Run) -> int:
    verdict = comparison.regression(**given(options, _REGRESSION))
    if options.out:
        comparison.save(options.out)
    if options.json:
        put_json(
            {
                "a": comparison.a,
                "b": comparison.b,
                "on": comparison.on,
                "pairs": comparison.pairs,
                "rows": records(comparison.frame),
                "flips": records(comparison.flips),
                "notes": comparison.notes,
                "regression": {
                    "ok": verdict.ok,
                    "verdict": verdict.verdict,
                    "margin": verdict.margin,
                    "rows": records(verdict.frame),
                    "sentences": verdict.sentences,
                },
            }
        )
    else:
        put(f"{comparison}\n\n{verdict}")
    if not options.fail_on_regression:
        return 0
    return exit_code_of(verdict.ok, all_complete(*runs))


def _show_ladder(options: Any, settings: Settings) -> int:
    check_kinds(options.out, _FRAMES, "a ladder is")
    with open_lab(settings) as lab:
        report = lab.open(options.run).report(policy=settings["policy"])
        ladder = report.ladder
    from ...evals.frames.files import write_frame  # pandas: an extra

    for file in options.out:
        write_frame(ladder, file)
    head = [
        *report.by,
        "layer",
        "level",
        "success",
        "n_cases",
        "gain",
        "gain_low",
        "gain_high",
        "p_holm",
    ]
    rows = [list(row.values()) for row in records(ladder[head])]
    put_table(head, rows, options.json, width=terminal_width())
    return 0


_MAKERS = {"trials": "frame", "calls": "calls_df", "events": "events_df"}


@verb(
    "export",
    CONFIG,
    RUN,
    Option(
        "--frame",
        "a row per trial, per call, or per event of the parser (default: trials)",
        choices=("trials", "calls", "events"),
        default="trials",
    ),
    Option("--out FILE", "the file: .parquet, .csv or .jsonl", required=True),
    STORE,
    *READER,
    JSON,
    examples=(
        "toolparse export latest --out trials.parquet",
        "toolparse export latest --frame calls --out calls.csv",
    ),
)
def _export(options: Any) -> int:
    """Write a frame of a run, one without rows too: a run without repairs has no events."""
    settings = settings_of(options)
    need_lab()
    check_kinds([options.out], _FRAMES, "a frame is")
    from ...evals.frames.files import write_frame  # pandas: 1 s, and an extra

    with open_lab(settings) as lab:
        run = lab.open(options.run)
        reading: Any = {"protocol": options.protocol, "policies": (settings["policy"],)}
        frame = getattr(run, _MAKERS[options.frame])(**reading)
        path = write_frame(frame, options.out)
    account = {"path": str(path), "frame": options.frame, "rows": len(frame)}
    put_told(options.json, account, f"{len(frame):,} rows in {path}")
    return 0
