"""Ask models: run and check; limits, endings and exit codes."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import BadPlan, MissingRecording
from ...core.values.printable import counted
from ...experiments.arms import check_names
from ...experiments.plan_file import PlanFile, chosen_cases, models_of, read_plan_file
from ...runner.exchange.summary import LIMITS
from ...runner.exchange.types import PROVIDER_HINTS
from ...runner.routes import missing_package, unset_keys
from ...runner.settings import strangers
from ...runner.trust import check_trust, is_trusted
from ...views.show import visible
from ..console import as_flags, put, put_json, put_told, records, report_width, say
from ..options import (
    COLUMNS,
    CONFIG,
    JSON,
    LIMIT_OPTIONS,
    POLICY,
    STORE,
    TRUST,
    Option,
    given,
    open_lab,
    options_of,
    refuse,
    settings_of,
    verb,
    with_credentials,
)
from .reports import (
    GATE,
    REPORT,
    check_files,
    gate_and_save,
    gate_json,
    gates_of,
    recorded_baseline,
)

if TYPE_CHECKING:
    from ...core.types import Policy
    from ...evals.reports.figures.report import Report
    from ...experiments.plan import Plan
    from ...experiments.run import Run
    from ...lab import Lab
    from ...runner.exchange.types import Model
    from ...runner.settings import Settings

_MOST_NAMES = 5
_MOST_LETTERS = 240  # of a provider's own message: `toolparse view` shows the rest
_PLAN_FILE = "plan.toml"
_OF_PLANS = (
    "plan cases columns skip_bad where sample models protocols trials seed stream levels replay "
    "dry_run"
)
# What has a flag and a key of its own, and so cannot be a level of `--set`.
_OWN_FLAGS = ("cases", "models", "protocols", "trials", "seed", "stream", "sample", *LIMITS)

CASES = (
    Option("--cases FILE", "a file of cases"),
    COLUMNS,
    Option("--skip-bad", "leave out cases that cannot be read, and count them"),
    Option(
        "--where NAME=VALUE ...",
        "only cases of this id, category or member of their metadata; several values with "
        "commas; may be repeated",
    ),
    Option("--sample N", "this many of them, shared out over their categories"),
)


ASKING = (
    STORE,
    *LIMIT_OPTIONS,
    *options_of("runner.ledger.RunLimits", "--fresh"),
    *options_of("lab.Lab.run", "--despite-check"),
    Option("--quiet", "no plan and no progress"),
    POLICY,
    *REPORT,
    Option("--recording FILE", "write what was answered as a recording (JSONL)"),
    *GATE,
    JSON,
)


@verb(
    "run",
    CONFIG,
    TRUST,
    Option("plan [PLAN.toml]", "the plan; flags go before what it says"),
    *CASES,
    Option("--models A,B", "configured models, or litellm model strings"),
    Option("--protocols A,B", "prompt protocols, such as hermes,morph_xml"),
    *options_of("lab.Lab.plan", "--trials", "--seed", "--stream"),
    Option(
        "--set NAME=VALUE ...",
        "a factor (several values, with commas, are its levels) or a sampling parameter; may "
        "be repeated",
        dest="levels",
    ),
    Option(
        "--retry [RUN]",
        "no plan: ask the open questions of a recorded run, failures included (default: latest)",
        const="latest",
    ),
    Option("--replay FILE", "answer from a recording alone: no model is called"),
    Option("--dry-run", "show the plan with its calls and cost, and ask nothing"),
    *ASKING,
    examples=(
        "toolparse run plan.toml --fail-under 0.9",
        "toolparse run --cases cases.jsonl --models qwen,openai/gpt-4o-mini --protocols "
        "hermes,morph_xml --max-cost 5",
        "toolparse run --cases cases.jsonl --models qwen --protocols hermes --set few_shot=0,2 "
        "--set max_tokens=512",
        "toolparse run --retry latest --max-calls 100",
    ),
)
def _run(options: Any) -> int:
    """Plan, run every check that costs nothing, ask, and report."""
    settings = settings_of(options)
    if options.retry is not None:
        refuse(options, _OF_PLANS, "--retry, which takes the plan of the run")
        return _retry(options, settings)
    plan_file = read_plan_file(options.plan, settings) if options.plan else PlanFile()
    with open_lab(settings, must_be=False) as lab:
        if options.replay:
            lab.replaying(options.replay)
        plan = _plan(lab, options, plan_file, settings)
        wanted = _ReportRequest(
            options.baseline or plan_file.baseline,
            gates_of(options, plan_file.gate),
            settings["policy"],
        )
        _check_request(plan, options, wanted)
        for skipped in plan.cases.skipped:
            say(f"left out: {as_flags(str(skipped))}")
        if not options.replay:
            _say_set_up(plan)
        if options.dry_run:
            _put_plan(plan, options)
            return 0
        _say_sent(PlanFile(plan_file.source, models=plan.models), settings)
        if not options.quiet:
            say(f"{as_flags(str(plan))}\n")
        limits = limits_of(options, plan_file, settings)
        return _ask_and_report(lab, lambda: _run_plan(lab, plan, limits), options, wanted)


def _say_sent(plan_file: PlanFile, settings: Settings) -> None:
    # Before anything is sent. A file of settings may come from anybody.
    sent = plan_file.sent(settings)
    if sent:
        say(visible(f"toolparse: {'; '.join(sent)}"))


def _run_plan(lab: Lab, plan: Plan, limits: Mapping[str, Any]) -> Run:
    """Run a plan. Raises MissingRecording that names cases in the place of keys."""
    try:
        return lab.run(plan, **limits)
    except MissingRecording as e:
        keys = set(e.keys)
        names = [f"{item.case_id} ({item.arm['arm']})" for item in plan.items if item.key in keys]
        if not names:
            raise
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        raise MissingRecording(
            f"{counted(len(names), 'answer')} of {len(plan.items):,} that this plan needs were "
            f"never recorded: {', '.join(names[:_MOST_NAMES])}{more}",
            keys=e.keys,
            hint=f"{e.hint}; a changed case, tool or setting is another question",
        ) from None


def _plan(lab: Lab, options: Any, plan_file: PlanFile, settings: Settings) -> Plan:
    """Return the plan of flags, file and settings, in this order. Raises BadPlan."""
    cases = options.cases or plan_file.cases or settings["cases"]
    models: dict[str, Model]
    models = models_of(options.models, settings) if options.models else dict(plan_file.models)
    protocols = options.protocols or list(plan_file.protocols) or settings["protocols"]
    for name, value in (("cases", cases), ("models", models), ("protocols", protocols)):
        if not value:
            configured = ",".join(settings.tables) if name == "models" else ""
            hint = f"name them: --{name} {configured or '…'}, or `{name}` in the plan"
            # Most likely the plan of `toolparse init` was intended.
            if options.plan is None and Path(_PLAN_FILE).is_file():
                hint = f"toolparse run {_PLAN_FILE}"
            raise BadPlan(f"there are no {name}", hint=hint)
    if not options.cases:
        hosts = strangers(model.to_dict() for model in models.values())
        by_settings = settings.elsewhere("cases", hosts) if not plan_file.cases else ""
        if word := plan_file.elsewhere(hosts) or by_settings:
            say(f"toolparse: {word}")
    levels = _levels(options, plan_file, models)
    # A flag goes before the file, also one of 0. The seed draws the sample as well.
    trials, seed, stream, sample = (
        getattr(plan_file, name) if getattr(options, name) is None else getattr(options, name)
        for name in ("trials", "seed", "stream", "sample")
    )
    subjects = chosen_cases(
        cases,
        {**plan_file.where, **dict(options.where)},
        sample,
        seed,
        columns=options.columns or plan_file.columns,
        errors="skip" if options.skip_bad else "raise",
    )
    return lab.plan(subjects, models, protocols, trials=trials, seed=seed, stream=stream, **levels)


def _levels(options: Any, plan_file: PlanFile, models: Mapping[str, Model]) -> dict[str, Any]:
    levels = {**plan_file.settings, **dict(options.levels)}
    for name in levels:
        if name in _OWN_FLAGS:
            raise BadPlan(
                f"{name} is no factor and no sampling parameter",
                hint=f"give it apart: --{name}, or `{name}`",
            )
    # A model may have parameters of its own.
    own = [name for model in models.values() for name in model.params or {}]
    for name in plan_file.settings:
        place = f"{plan_file.source.place('settings', name)}: " if plan_file.source else ""
        check_names([name], own, place)
    check_names(dict(options.levels), own, "--set: ")
    return levels


def _say_set_up(plan: Plan) -> None:
    """Say which models' providers want a key or a package that is missing."""
    for alias, model in plan.models.items():
        if package := missing_package(model):
            say(
                f"toolparse: the provider of {visible(alias)} needs a package that is not installed"
                f"\n  what to do: pip install {package}"
            )
        variables = unset_keys(model)
        if variables:
            say(
                f"toolparse: {' or '.join(variables)} is not set, and the provider of "
                f"{visible(alias)} wants a key\n  what to do: export {variables[0]}=…, or name the "
                "variable that holds it by `api_key_env` in [models.NAME]"
            )


def _put_plan(plan: Plan, options: Any) -> None:
    if not options.json:
        put(as_flags(str(plan)))
        return
    # The cases themselves are in their file.
    members = {name: value for name, value in plan.to_dict().items() if name != "cases"}
    counts = {"cases": len(plan.cases), "calls": plan.calls, "most_calls": plan.most_calls}
    tokens = dict(zip(("input_tokens", "output_tokens"), plan.tokens, strict=True))
    put_json({**counts, **tokens, "cost": plan.cost, **members})


def _retry(options: Any, settings: Settings) -> int:
    with open_lab(settings) as lab:
        before = lab.open(options.retry)
        opened = with_credentials(lab, before, settings)
        _check_models(opened, settings)
        wanted = _ReportRequest(
            options.baseline or recorded_baseline(before, options),
            gates_of(options),
            settings["policy"],
        )
        _check_request(opened.plan, options, wanted)
        _say_sent(PlanFile(models=opened.plan.models), settings)
        if not options.quiet:
            total, missing = len(before.plan.items), before.missing
            told = f": {missing:,} of {total:,} answers are missing and asked for"
            if options.fresh:
                told = f": all {total:,} questions are asked again"
            elif not missing:
                told = " lacks no answer, so nothing is asked"
            say(f"run {before.run_id}{told}")
        limits = limits_of(options, PlanFile(), settings)
        return _ask_and_report(lab, lambda: lab.retry(opened, **limits), options, wanted)


def _check_models(run: Run, settings: Settings) -> None:
    # A store may come with a checkout as well. Raises BadSettings.
    path = Path(str(settings["store"]))
    if settings.trust or is_trusted(path):
        return
    for alias, model in run.plan.models.items():
        if alias not in settings.tables:
            where = f"model {alias!r} of run {run.run_id}"
            check_trust(model.to_dict(), settings.environ, where, path)


@verb(
    "check",
    CONFIG,
    TRUST,
    Option("--models A,B", "configured models (default: all), or model strings"),
    Option("--protocols A,B", "prompt protocols (default: native,hermes)"),
    *options_of("lab.Lab.check", "--stream"),
    STORE,
    JSON,
    examples=("toolparse check --models qwen,small --protocols native,hermes",),
)
def _check(options: Any) -> int:
    """Ask the canaries: 1 if a cell failed, 3 where one has no answer."""
    settings = settings_of(options)
    models = models_of(options.models or list(settings.tables), settings)
    if not models:
        raise BadPlan(
            "there are no models to check", hint="name them: --models …, or configure some"
        )
    _say_sent(PlanFile(models=models), settings)
    # The answers are recorded: `toolparse run` refuses native arms whose check has failed.
    with open_lab(settings, must_be=False) as lab:
        check = lab.check(**{**given(options, "lab.Lab.check"), "models": models})
    put_told(options.json, records(check.frame()), check)
    if check.failed:
        return 1
    unanswered = any(cell.completion is None or not cell.completion.ok for cell in check)
    return 3 if unanswered else 0


def limits_of(options: Any, plan_file: PlanFile, settings: Settings) -> dict[str, Any]:
    """Return the keyword arguments of a run: limits of flags, plan and settings, in this order."""
    # A flag is in the settings already, where it goes before the environment and the file.
    limits = {name: settings[name] for name in LIMITS}
    of_plan = {k: v for k, v in plan_file.limits.items() if getattr(options, k) is None}
    return {
        **limits,
        **of_plan,
        "fresh": bool(options.fresh),
        "despite_check": bool(options.despite_check),
        "progress": False if options.quiet else None,
    }


@dataclass(frozen=True, slots=True)
class _ReportRequest:
    """What flags and plan file together ask of the report of a run."""

    baseline: str | None  # a protocol, an arm or a model
    gates: Mapping[str, float]  # column -> bound
    policy: Policy  # of the headline


def _check_request(plan: Plan, options: Any, wanted: _ReportRequest) -> None:
    """Raise BadOptions for files that cannot be written and for figures that the report will not
    have, before anything is spent on answers.

    It makes the report of the plan's trials without an answer, which has the same columns.
    """
    check_files(options)
    by, baseline = options.by, wanted.baseline
    # A report by the default columns asks for nothing that could be missing.
    if not (by or baseline is not None or wanted.gates or options.cluster):
        return
    # pandas and SciPy: 2 s, and an extra
    from ...evals.frames.recorded import trials_frame
    from ...evals.reports.figures.report import Report
    from ...evals.reports.figures.view import RunView
    from ...evals.scoring.trial import Trial
    from ...experiments.run import columns_by, peer_arms

    names = dict.fromkeys(
        name for case in plan.cases for name in case.metadata if name != "category"
    )
    # Only a baseline that is a value of the cases' own columns needs more than the first case.
    every_case = by is not None and baseline is not None
    trials = (
        Trial.of(
            case,
            None,
            None,
            model=alias,
            arm=arm.name,
            prompt_protocol=arm.prompt_protocol,
            parse_protocol=arm.reader.id,
            policy=wanted.policy,
            levels=arm.levels,
        )
        for case in (list(plan.cases) if every_case else list(plan.cases)[:1])
        for alias in plan.models
        for arm in plan.arms
    )
    view = RunView(trials_frame(trials, metadata=names), peers=peer_arms(plan, baseline))
    report = Report(
        view,
        columns_by(plan) if by is None else by,
        baseline=baseline,
        policy=wanted.policy,
        cluster=options.cluster,
    )
    if wanted.gates:
        report.gate(**wanted.gates)


def _ask_and_report(lab: Lab, ask: Callable[[], Run], options: Any, wanted: _ReportRequest) -> int:
    """Make the run, write the requested output, and return the exit code: that of missing answers
    goes before that of a gate.

    Where Ctrl-C ends `ask`, the runs it recorded are named and the interrupt goes on.
    """
    # An interrupted run is known only by what is new in the store.
    before = set(lab.store.run_ids())
    try:
        run = ask()
    except KeyboardInterrupt:
        for run_id in lab.store.run_ids():
            if run_id not in before:
                stopped = lab.store.run(run_id)
                say(
                    f"\nrun {run_id}: {stopped.done} of {stopped.items} answers are recorded; "
                    "`toolparse run --retry` goes on"
                )
        raise
    say(str(run))
    if wanted.baseline is not None:
        # So that `toolparse report` compares with it too.
        plan = run.store.run(run.run_id).plan
        run.store.replace_plan(run.run_id, {**plan, "baseline": wanted.baseline})
    if options.recording:
        from ...runner.store.recording import export_recording  # SQLAlchemy: an extra

        export_recording(lab.store, options.recording, run_id=run.run_id)
    # Everything from here on can be made again from the store.
    report = run.report(
        options.by, baseline=wanted.baseline, policy=wanted.policy, cluster=options.cluster
    )
    gate = gate_and_save(report, wanted.gates, options)
    summary = run.summary
    if options.json:
        account = {"run_id": run.run_id, "summary": summary.to_dict() if summary else None}
        put_json({**account, "cells": records(report.frame), "gate": gate_json(gate)})
    else:
        # Without an answer there are only empty tables.
        if report.frame["n"].any() or report.frame["ungraded"].any():
            put(report.text(report_width()))
        else:
            say("toolparse: no answer was recorded, so there is nothing to report")
        if gate is not None:
            put(f"\n{gate}")
    _say_ending(run, report, options)
    # Unlike `report`, an incomplete run leaves with 3 even where no gate was asked for.
    if summary is not None and not summary.complete:
        return 3
    return 1 if gate is not None and not gate.ok else 0


def _say_ending(run: Run, report: Report, options: Any) -> None:
    """Say why answers are missing and what to type next, to standard error: standard output has
    the report alone.
    """
    if run.summary is not None and run.summary.failed:
        for cause in _causes(run):
            say(cause)
    any_failed = bool((report.frame["success"] < 1).any())
    if not (run.missing or any_failed) or options.quiet or options.json:
        return
    words = ["toolparse", *(("run", "--retry") if run.missing else ("view",)), "latest"]
    # A flag applies to one command; what a file or a variable says applies to the next one, too.
    for flag in ("store", "config"):
        if getattr(options, flag):
            words += [f"--{flag}", str(getattr(options, flag))]
    if run.missing and options.trust:
        words.append("--trust")
    say(f"next: {shlex.join(words)}")


def _causes(run: Run) -> Iterator[str]:
    """Yield for each model and kind of failure how many, the provider's words, and the fix."""
    messages: dict[tuple[str, str], list[str]] = {}
    for item, answer in run.store.completions(run.run_id):
        if not answer.ok:
            cause = (item.model, str(answer.error_kind))
            messages.setdefault(cause, []).append(answer.error_message or "")
    for (model, kind), said in messages.items():
        count, message = len(said), " ".join(said[0].split())
        if len(message) > _MOST_LETTERS:
            message = f"{message[: _MOST_LETTERS - 1]}…"
        questions = "1 question has" if count == 1 else f"{count:,} questions have"
        yield visible(
            f"toolparse: {model}: {questions} no answer ({kind}): {message}"
            f"\n  what to do: {fix_of(model, kind)}"
        )


def fix_of(model: str, kind: str) -> str:
    """Return what to do about a failure of a provider, as commands say it."""
    hint = PROVIDER_HINTS.get(kind)
    if hint is None:
        return "`toolparse run --retry` asks again; `toolparse view` shows the whole message"
    if kind in ("connection", "not_found"):
        return (
            f"{as_flags(hint)}; `toolparse check --models {shlex.quote(model)}` asks one question"
        )
    return as_flags(hint)
