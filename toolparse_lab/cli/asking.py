"""What `run` and `retry` share: limits, the run itself, its report and its exit code."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..exchange.summary import LIMITS
from ..store.recording import export_recording
from .gates import add_gate, gate_json
from .options import add_json, add_policy, add_store
from .output import put, put_json, records, report_width, say
from .report_options import add_report, check_files

if TYPE_CHECKING:
    from ..experiment.plan import Plan
    from ..experiment.plan_file import PlanFile
    from ..experiment.run import Run
    from ..lab import Lab
    from ..settings import Settings
    from ..types import Policy


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
    """The keyword arguments of a run: limits of flags, plan and settings, in this order."""
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
    """Raise BadOptions for files that cannot be written and for what the report will not have."""
    check_files(options)
    # A report by the default columns asks for nothing that could be missing.
    if options.by is None and wish.baseline is None and not wish.gates:
        return
    from .foreseen import check_report  # pandas and SciPy: 2 s, and an extra

    check_report(plan, options.by, wish.baseline, wish.gates, wish.policy)


def ask_and_report(lab: Lab, ask: Callable[[], Run], options: Any, wish: Wish) -> int:
    """Run, write what was asked for, and return the exit code; not whole goes before a gate.

    ask: makes the run; where Ctrl-C ends it, the runs it recorded are named and the interrupt goes
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
    if options.recording:
        export_recording(lab.store, options.recording, run_id=run.run_id)
    # Everything from here on can be made again from the store.
    report = run.report(options.by, baseline=wish.baseline, policy=wish.policy)
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
        put(report.text(report_width()))
        if gate is not None:
            put(f"\n{gate}")
    # Unlike `report`, an incomplete run leaves with 3 even where no gate was asked for.
    if summary is not None and not summary.complete:
        return 3
    return 1 if gate is not None and not gate.ok else 0


def with_credentials(lab: Lab, before: Run, settings: Settings) -> Run:
    """The run opened again with the configured models, whose credentials no store holds."""
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
