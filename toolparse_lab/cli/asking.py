"""Commands that ask models: `run`, `retry`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import BadOptions, BadPlan
from ..runner.summary import LIMITS
from .foreseen import check_report
from .options import (
    RUN_HELP,
    Commands,
    add_gate,
    add_json,
    add_policy,
    add_store,
    check_folder,
    gates_of,
    level_of,
    names,
    open_lab,
    renaming,
    settings_of,
)
from .output import put, put_json, records, report_width, say

if TYPE_CHECKING:
    from ..lab import Lab
    from ..plan import Plan
    from ..plan_file import PlanFile
    from ..run import Run
    from ..settings import Settings

_APART = ("cases", "models", "protocols", "trials", "seed", "stream", "sample", *LIMITS)


def add_commands(commands: Commands) -> None:
    run = commands.add(
        "run", _run, "ask models and report what could be read",
        "toolparse run plan.toml --fail-under 0.9",
        "toolparse run --cases cases.jsonl --models qwen,openai/gpt-4o-mini --protocols hermes,morph_xml --max-cost 5",
        "toolparse run --cases cases.jsonl --models qwen --protocols hermes --set few_shot=0,2 --set max_tokens=512",
    )  # fmt: skip
    run.add_argument("plan", nargs="?", metavar="PLAN.toml", help="the plan; flags go before what it says")
    run.add_argument("--cases", metavar="FILE", help="a file of cases, or bfcl")
    run.add_argument("--columns", type=renaming, metavar="A=B,...", help="what the file calls things: question=input")
    run.add_argument("--skip-bad", action="store_true", help="leave out cases that cannot be read, and count them")
    run.add_argument(
        "--where", type=level_of, action="append", default=[], metavar="NAME=VALUE",
        help="only cases of this id, category or member of their metadata; several values with commas; may be repeated",
    )  # fmt: skip
    run.add_argument("--sample", type=int, metavar="N", help="this many of them, shared out over their categories")
    run.add_argument("--models", type=names, metavar="A,B", help="configured models, or litellm model strings")
    run.add_argument("--protocols", type=names, metavar="A,B", help="prompt protocols, such as hermes,morph_xml")
    run.add_argument("--trials", type=int, metavar="N", help="how often each case is asked (default: 1)")
    run.add_argument("--seed", type=int, metavar="N", help="base of the seeds and of the order (default: 0)")
    run.add_argument("--stream", action="store_true", default=None, help="stream the answers")
    run.add_argument(
        "--set", type=level_of, action="append", default=[], dest="levels", metavar="NAME=VALUE",
        help="a factor (several values, with commas, are its levels) or a sampling parameter; may be repeated",
    )  # fmt: skip
    run.add_argument("--replay", metavar="FILE", help="answer from a recording alone: no model is called")
    run.add_argument("--dry-run", action="store_true", help="show the plan with its calls and cost, and ask nothing")
    _add_common(run)

    check = commands.add(
        "check", _check, "ask one canary a model and protocol: is raw text raw, are tools really offered",
        "toolparse check --models qwen,small --protocols native,hermes",
    )  # fmt: skip
    check.add_argument("--models", type=names, metavar="A,B", help="configured models (default: all), or model strings")
    check.add_argument("--protocols", type=names, metavar="A,B", help="prompt protocols (default: native,hermes)")
    check.add_argument("--stream", action="store_true", help="ask for a stream, as a plan may")
    add_store(check)
    add_json(check)

    retry = commands.add(
        "retry", _retry, "ask what a run has no answer to, failures included", "toolparse retry latest --max-calls 100"
    )
    retry.add_argument("run", nargs="?", default="latest", metavar="RUN", help=f"{RUN_HELP} (default: latest)")
    _add_common(retry)


def _add_common(command: argparse.ArgumentParser) -> None:
    add_store(command)
    command.add_argument("--max-cost", type=float, metavar="USD", help="stop before more is spent")
    command.add_argument("--max-calls", type=int, metavar="N", help="stop before more calls are made")
    command.add_argument("--deadline", type=float, metavar="SECONDS", help="stop after this time")
    command.add_argument("--fresh", action="store_true", help="ask again what is recorded already")
    command.add_argument("--despite-check", action="store_true", help="run native arms whose check has failed")
    command.add_argument("--quiet", action="store_true", help="no plan and no progress")
    add_policy(command)
    command.add_argument("--by", type=names, metavar="A,B", help="columns of the report (default: model and protocol)")
    command.add_argument("--baseline", metavar="NAME", help="the protocol, arm or model to compare with")
    command.add_argument(
        "--out", action="append", default=[], metavar="FILE",
        help="write the report: .html, .md, .csv, .parquet, .tex or .xml (JUnit); may be repeated",
    )  # fmt: skip
    command.add_argument("--recording", metavar="FILE", help="write what was answered as a recording (JSONL)")
    add_gate(command)
    add_json(command)


def _run(options: Any) -> int:
    from ..plan_file import PlanFile, read_plan_file

    settings = settings_of(options)
    said = read_plan_file(options.plan, settings) if options.plan else PlanFile()
    with open_lab(settings, must_be=False) as lab:
        if options.replay:
            lab.replaying(options.replay)
        plan = _plan(lab, options, said, settings)
        baseline, gates = options.baseline or said.baseline, gates_of(options, dict(said.gate))
        check_files(options)
        check_report(plan, options.by, baseline, gates, settings["policy"])
        for left_out in plan.cases.skipped:
            say(f"left out: {left_out}")
        if options.dry_run:
            _show_plan(plan, options)
            return 0
        if not options.quiet:
            say(f"{plan}\n")
        limits = _limits(options, said, settings)
        return _report(lab, lambda: lab.run(plan, **limits), options, settings, gates, baseline)


def _check(options: Any) -> int:
    from ..plan_file import models_of

    settings = settings_of(options)
    models = models_of(options.models or list(settings.tables), settings)
    if not models:
        raise BadPlan("there are no models to check", hint="name them: --models …, or configure some")
    with open_lab(settings, must_be=False) as lab:
        check = lab.check(models, options.protocols or ["native", "hermes"], stream=options.stream)
    if options.json:
        put_json(records(check.frame()))
    else:
        put(str(check))
    if check.failed:
        return 1
    return 3 if any(c.completion is None or not c.completion.ok for c in check) else 0


def _retry(options: Any) -> int:
    from ..plan_file import PlanFile

    settings = settings_of(options)
    with open_lab(settings) as lab:
        before = lab.open(options.run)
        held = {alias: settings.model(alias) for alias in before.plan.models if alias in settings.tables}
        lab.models.update(held)
        opened = lab.open(before.run_id)
        for alias in held:
            if opened.plan.models[alias] is not held[alias]:
                say(f"toolparse: {alias} is configured otherwise than the run had it, and is asked as it was then")
        gates = gates_of(options)
        check_files(options)
        check_report(opened.plan, options.by, options.baseline, gates, settings["policy"])
        if not options.quiet:
            say(f"{before}")
        limits = _limits(options, PlanFile(), settings)
        return _report(lab, lambda: lab.retry(opened, **limits), options, settings, gates, options.baseline)


def _plan(lab: Lab, options: Any, said: PlanFile, settings: Settings) -> Plan:
    from ..arms import check_names
    from ..plan_file import chosen_cases, models_of

    cases = options.cases or said.cases or settings["cases"]
    models = models_of(options.models, settings) if options.models else dict(said.models)
    protocols = options.protocols or list(said.protocols) or settings["protocols"]
    for what, found in (("cases", cases), ("models", models), ("protocols", protocols)):
        if not found:
            configured = ",".join(settings.tables) if what == "models" else ""
            raise BadPlan(
                f"there are no {what}", hint=f"name them: --{what} {configured or '…'}, or `{what}` in the plan"
            )
    settled = {**said.settings, **dict(options.levels)}
    for name in settled:
        if name in _APART:
            raise BadPlan(
                f"{name} is no factor and no sampling parameter", hint=f"give it apart: --{name}, or `{name}`"
            )
    own = [name for model in models.values() for name in model.params or {}]
    for name in said.settings:
        check_names([name], own, f"{said.source.place('settings', name)}: " if said.source else "")
    check_names(dict(options.levels), own, "--set: ")
    seed = said.seed if options.seed is None else options.seed
    sample = said.sample if options.sample is None else options.sample
    return lab.plan(
        chosen_cases(
            cases, {**said.where, **dict(options.where)}, sample, seed, columns=options.columns or said.columns,
            errors="skip" if options.skip_bad else "raise",
        ), models, protocols,
        trials=options.trials if options.trials is not None else said.trials,
        seed=seed,
        stream=said.stream if options.stream is None else options.stream,
        **settled,
    )  # fmt: skip


def _limits(options: Any, said: PlanFile, settings: Settings) -> dict[str, Any]:
    """Limits of the flags, the plan, and the settings, in this order."""
    limits = {name: settings[name] for name in LIMITS}
    limits.update({k: v for k, v in said.limits.items() if getattr(options, k) is None})
    how = {"fresh": options.fresh, "despite_check": options.despite_check}
    return {**limits, **how, "progress": False if options.quiet else None}


def _show_plan(plan: Plan, options: Any) -> None:
    if options.json:
        given, made = plan.tokens
        counts = {"cases": len(plan.cases), "calls": plan.calls, "most_calls": plan.most_calls}
        tokens = {"input_tokens": given, "output_tokens": made, "cost": plan.cost}
        put_json({**counts, **tokens, **{k: v for k, v in plan.to_dict().items() if k != "cases"}})
    else:
        put(str(plan))


def _report(
    lab: Lab,
    asked: Callable[[], Run],
    options: Any,
    settings: Settings,
    gates: dict[str, float],
    baseline: str | None,
) -> int:
    """Runs, writes what was asked for, and says by the exit code how it went: not whole goes before a gate."""
    before = set(lab.store.run_ids())
    try:
        run = asked()
    except KeyboardInterrupt:
        for cut in (lab.store.run(i) for i in lab.store.run_ids() if i not in before):
            say(f"\nrun {cut.run_id}: {cut.done} of {cut.items} answers are recorded; `toolparse retry` goes on")
        raise
    say(str(run))
    if options.recording:
        from ..runner.recording import export_recording

        export_recording(lab.store, options.recording, run_id=run.run_id)
    report = run.report(options.by, baseline=baseline, policy=settings["policy"])
    gate = report.gate(**gates) if gates else None
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
    if summary is not None and not summary.complete:
        return 3
    return 1 if gate is not None and not gate.ok else 0


def check_files(options: Any) -> None:
    """Raises BadOptions for files that could not be written in the end, before anything is spent."""
    from ..evals.reports.files import WRITERS

    for file in map(Path, options.out):
        if file.suffix.lower() not in WRITERS:
            raise BadOptions("a report is not written as this kind of file", got=file.name, expected=", ".join(WRITERS))
    for file in (*options.out, getattr(options, "recording", None)):
        check_folder(file)


def gate_json(gate: Any) -> Any:
    """A gate's result: whether it passed, and each check."""
    return None if gate is None else {"ok": gate.ok, "checks": records(gate.frame)}
