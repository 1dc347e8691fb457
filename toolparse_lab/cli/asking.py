"""The common part of `run` and `retry`: limits, the run itself, its report and its exit code."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..runner.exchange.summary import LIMITS
from ..runner.store.recording import export_recording
from .endings import causes, next_step
from .gates import add_gate, gate_json
from .options import add_json, add_policy, add_store
from .output import put, put_json, records, report_width, say
from .report_options import add_report, check_files

if TYPE_CHECKING:
    from ..core.types import Policy
    from ..evals.reports.figures.gates import GateResult
    from ..evals.reports.figures.report import Report
    from ..experiments.plan import Plan
    from ..experiments.plan_file import PlanFile
    from ..experiments.run import Run
    from ..lab import Lab
    from ..runner.settings import Settings


def add_asking(command: argparse.ArgumentParser) -> None:
    """The flags of a verb that asks models: store, limits, report, gate."""
    add_store(command)
    add_limits(command)
    command.add_argument("--fresh", action="store_true", help="ask again what is recorded already")
    command.add_argument(
        "--despite-check", action="store_true", help="run native arms whose check has failed"
    )
    command.add_argument("--quiet", action="store_true", help="no plan and no progress")
    add_policy(command)
    add_report(command)
    command.add_argument(
        "--recording", metavar="FILE", help="write what was answered as a recording (JSONL)"
    )
    add_gate(command)
    add_json(command)


def add_limits(command: argparse.ArgumentParser) -> None:
    """The flags that stop a run."""
    command.add_argument("--max-cost", type=float, metavar="USD", help="stop before more is spent")
    command.add_argument(
        "--max-calls", type=int, metavar="N", help="stop before more calls are made"
    )
    command.add_argument("--deadline", type=float, metavar="SECONDS", help="stop after this time")


def limits_of(options: Any, plan_file: PlanFile, settings: Settings) -> dict[str, Any]:
    """Return the keyword arguments of a run: limits of flags, plan and settings, in this order."""
    # A flag is in the settings already, where it goes before the environment and the file.
    limits = {name: settings[name] for name in LIMITS}
    of_plan = {k: v for k, v in plan_file.limits.items() if getattr(options, k) is None}
    return {
        **limits,
        **of_plan,
        "fresh": options.fresh,
        "despite_check": options.despite_check,
        "progress": False if options.quiet else None,
    }


@dataclass(frozen=True, slots=True)
class Wish:
    """The wishes for the report of a run, flags and plan file together.
    baseline: a protocol, an arm or a model. gates: column -> bound. policy: that of its headline.
    """

    baseline: str | None
    gates: Mapping[str, float]
    policy: Policy


def check_wish(plan: Plan, options: Any, wish: Wish) -> None:
    """Raise BadOptions for files that cannot be written and for figures that the report will not
    have.
    """
    check_files(options)
    # A report by the default columns asks for nothing that could be missing.
    if not (options.by or wish.baseline is not None or wish.gates or options.cluster):
        return
    from .foreseen import check_report  # pandas and SciPy: 2 s, and an extra

    check_report(plan, options.by, wish.baseline, wish.gates, wish.policy, options.cluster)


def ask_and_report(lab: Lab, ask: Callable[[], Run], options: Any, wish: Wish) -> int:
    """Run, write the requested output, and return the exit code.

    Not whole goes before a gate.

    ask: makes the run. Where Ctrl-C ends it, the runs it recorded are named and the interrupt goes
    on.
    """
    # An interrupted run is known only by what is new in the store.
    before = set(lab.store.run_ids())
    try:
        run = ask()
    except KeyboardInterrupt:
        _name_interrupted(lab, before)
        raise
    say(str(run))
    if wish.baseline is not None:
        keep_baseline(run, wish.baseline)
    if options.recording:
        export_recording(lab.store, options.recording, run_id=run.run_id)
    # Everything from here on can be made again from the store.
    report = run.report(
        options.by, baseline=wish.baseline, policy=wish.policy, cluster=options.cluster
    )
    gate = report.gate(**wish.gates) if wish.gates else None
    for file in options.out:
        report.save(file, gate=gate)
    summary = run.summary
    if options.json:
        put_json(
            {
                "run_id": run.run_id,
                "summary": summary.to_dict() if summary else None,
                "cells": records(report.frame),
                "gate": gate_json(gate),
            }
        )
    else:
        _put_report(report, gate)
    _say_ending(run, report, options)
    # Unlike `report`, an incomplete run leaves with 3 even where no gate was asked for.
    if summary is not None and not summary.complete:
        return 3
    return 1 if gate is not None and not gate.ok else 0


def keep_baseline(run: Run, baseline: str) -> None:
    """Record what a run's reports compare with, so that `toolparse report` compares with it too."""
    plan = run.store.run(run.run_id).plan
    run.store.replace_plan(run.run_id, {**plan, "baseline": baseline})


def recorded_baseline(run: Run, options: Any) -> str | None:
    """Return the baseline that a run was asked with, None for other columns than it was for."""
    if options.by:
        return None
    baseline = run.store.run(run.run_id).plan.get("baseline")
    return None if baseline is None else str(baseline)


def _put_report(report: Report, gate: GateResult | None) -> None:
    """Write a report as text, then its gate. Without an answer there are only empty tables."""
    if report.frame["n"].any() or report.frame["ungraded"].any():
        put(report.text(report_width()))
    else:
        say("toolparse: no answer was recorded, so there is nothing to report")
    if gate is not None:
        put(f"\n{gate}")


def _say_ending(run: Run, report: Report, options: Any) -> None:
    """Say why answers are missing, and what to type next."""
    if run.summary is not None and run.summary.failed:
        for cause in causes(run):
            say(cause)
    step = next_step(run, bool((report.frame["success"] < 1).any()), options)
    if step is not None and not (options.quiet or options.json):
        say(step)


def with_credentials(lab: Lab, before: Run, settings: Settings) -> Run:
    """Return the run opened again with the configured models, whose credentials no store holds."""
    configured = {
        alias: settings.model(alias) for alias in before.plan.models if alias in settings.tables
    }
    lab.models.update(configured)
    opened = lab.open(before.run_id)
    for alias, model in configured.items():
        # The lab takes a model only where it is the one that the run was planned with.
        if opened.plan.models[alias] is not model:
            say(
                f"toolparse: {alias} is configured otherwise than the run had it, and is "
                "asked as it was then"
            )
    return opened


def _name_interrupted(lab: Lab, before: set[str]) -> None:
    """Say of each run that was not there `before` how much of it is recorded."""
    for run_id in lab.store.run_ids():
        if run_id in before:
            continue
        run = lab.store.run(run_id)
        say(
            f"\nrun {run.run_id}: {run.done} of {run.items} answers are recorded; `toolparse "
            "retry` goes on"
        )
