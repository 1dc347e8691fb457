"""`toolparse report`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..gates import add_gate, all_complete, exit_code_of, gate_json, gates_of
from ..options import (
    RUN_HELP,
    add_config,
    add_json,
    add_reader,
    add_store,
    need_lab,
    open_lab,
    settings_of,
)
from ..output import put, put_json, records, report_width
from ..report_options import add_report, check_files

if TYPE_CHECKING:
    from ...evals.reports.figures.gates import GateResult
    from ...evals.reports.figures.report import Report
    from ...runner.settings import Settings

EXAMPLES = (
    "toolparse report latest --by model,prompt_protocol --baseline native --out report.html",
    "toolparse report latest --fail-under 0.9 --gate coercion_rate=0.2",
)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the run or file, its reader, the report and its gate."""
    add_config(command)
    command.add_argument(
        "run",
        nargs="?",
        default="latest",
        metavar="RUN",
        help=f"{RUN_HELP}, or a .parquet file of trials, each of its policies (default: latest)",
    )
    add_store(command)
    add_reader(command)
    add_report(command)
    add_gate(command)
    add_json(command)


def run(options: Any) -> int:
    """Sum a run up, or a file of trials: 1 if the gate failed, 3 where answers are missing."""
    settings = settings_of(options)
    need_lab()
    # Reading a run may take long, so an impossible file is told first.
    check_files(options)
    if options.run.endswith(".parquet"):
        return _report_file(options, settings)
    return _report_run(options, settings)


def _report_run(options: Any, settings: Settings) -> int:
    """Show the report of a recorded run."""
    from ..reports import report_of_run  # pandas and SciPy: 2 s, and an extra

    with open_lab(settings) as lab:
        run = lab.open(options.run)
        report = report_of_run(run, options, settings)
        gate = _gate_and_save(report, options)
        if options.json:
            cells = records(report.frame)
            put_json({"run_id": run.run_id, "cells": cells, "gate": gate_json(gate)})
        else:
            _put_texts([report], gate)
        # Without a gate a report of half a run is fine: it states its n.
        if gate is None:
            return 0
        return exit_code_of(gate.ok, all_complete(run))


def _report_file(options: Any, settings: Settings) -> int:
    """Show a report a policy.

    The first, the headline's, is the one that is gated and written.
    """
    from ..reports import reports_of_file  # pandas and SciPy: 2 s, and an extra

    reports = reports_of_file(options, settings)
    gate = _gate_and_save(reports[0], options)
    if options.json:
        cells = [{"policy": r.policy, **cell} for r in reports for cell in records(r.frame)]
        put_json({"file": options.run, "cells": cells, "gate": gate_json(gate)})
    else:
        _put_texts(reports, gate)
    if gate is None:
        return 0
    return exit_code_of(gate.ok, not reports[0].frame["missing"].any())


def _gate_and_save(report: Report, options: Any) -> GateResult | None:
    """Write the report's files, and return the gate of the flags, None if they set none."""
    bounds = gates_of(options)
    gate = report.gate(**bounds) if bounds else None
    for file in options.out:
        report.save(file, gate=gate)
    return gate


def _put_texts(reports: Sequence[Report], gate: GateResult | None) -> None:
    """Write reports as text, then the gate."""
    put("\n\n".join(report.text(report_width()) for report in reports))
    if gate is not None:
        put(f"\n{gate}")
