"""`toolparse view`."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...core.errors import BadOptions, UnknownName, near
from ...core.values import write_canonical
from ...core.values.printable import counted
from ...notebook.page import export_html
from ...views import render_ansi
from ...views.show import visible
from ..options import (
    add_color,
    add_config,
    add_json,
    add_policy,
    add_run,
    add_store,
    color,
    open_lab,
    settings_of,
)
from ..output import put, put_json, say

if TYPE_CHECKING:
    from ...core.types import ParseResult
    from ...evals.scoring.trial import Trial
    from ...experiments.run import Run
    from ...lab import Lab
    from ...runner.settings import Settings

_TRIAL_ID = re.compile(r"[0-9a-f]{4,}")
EXAMPLES = (
    "toolparse view latest",
    "toolparse view latest --case timer-3 --html trial.html",
)


_LISTED = "`toolparse score` lists the trials with their cases, models and arms"


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the run, the trial or what it must be like, and everything written of it."""
    add_config(command)
    add_run(command)
    command.add_argument(
        "trial",
        nargs="?",
        metavar="TRIAL",
        help="a trial's id (default: the first failure that fits)",
    )
    command.add_argument("--case", metavar="ID", help="of this case")
    command.add_argument("--model", metavar="NAME", help="of this model")
    command.add_argument("--arm", metavar="NAME", help="of this arm, or this prompt protocol")
    command.add_argument(
        "--code", metavar="CODE", help="with this outcome, sub-code or problem code"
    )
    command.add_argument(
        "--protocol",
        metavar="ID",
        help="what reads the answer (default: what its prompt asked for)",
    )
    command.add_argument("--html", metavar="FILE", help="write the parse view as one HTML file")
    command.add_argument(
        "--pytest", metavar="FILE", help="write a test that pins how this answer is read"
    )
    add_store(command)
    add_policy(command)
    add_color(command)
    add_json(command)


def run(options: Any) -> int:
    """Show one trial of a run, the first failure where none is named."""
    settings = settings_of(options)
    with open_lab(settings) as lab:
        trial = _chosen_trial(_opened(lab, options), options, settings)
        if options.html:
            export_html(_result(trial), options.html)
            say(f"wrote {options.html}")
        if options.pytest:
            say(f"wrote {trial.as_pytest(options.pytest)}")
        if options.json:
            put_json(_json(trial))
        else:
            _put_trial(trial, color(settings, sys.stdout))
    return 0


def _opened(lab: Lab, options: Any) -> Run:
    """Return the run that is named. Raises UnknownName, also for a trial in the place of a run."""
    try:
        return lab.open(options.run)
    except UnknownName:
        # Reports show ids of trials, so that one is easily typed where a run belongs.
        if options.trial is None and _is_trial(lab, options.run):
            raise UnknownName(
                "this is the id of a trial, and the run comes first",
                got=options.run,
                hint=f"toolparse view latest {options.run}",
                code="unknown-run",
            ) from None
        raise


def _is_trial(lab: Lab, name: str) -> bool:
    """Return True if a trial of the latest run has an id that begins like this."""
    if not _TRIAL_ID.fullmatch(name) or not lab.store.run_ids():
        return False
    return any(trial.trial_id.startswith(name) for trial in lab.open().trials())


def _chosen_trial(run: Run, options: Any, settings: Settings) -> Trial:
    """Return the trial that is named, else the first that fits, failures first.

    Raises BadOptions.
    """
    trials = run.trials(protocol=options.protocol, policies=(settings["policy"],))
    fitting = [trial for trial in trials if _fits(trial, options)]
    if not fitting:
        # The most helpful error first: a name that no trial has.
        arms = [name for trial in trials for name in (trial.arm, trial.prompt_protocol)]
        _check_name("case", options.case, [trial.case_id for trial in trials])
        _check_name("model", options.model, [trial.model for trial in trials])
        _check_name("arm", options.arm, arms)
        raise BadOptions(
            "no trial fits",
            got=options.trial or "these filters",
            expected=f"one of {counted(len(trials), 'trial')}",
            hint=_LISTED if options.trial else f"leave a filter out; {_LISTED}",
        )
    # The sort is stable, so the first failure of the run comes first.
    if options.trial is None:
        fitting.sort(key=lambda trial: not trial.failed)
    chosen: Trial = fitting[0]
    return chosen


def _check_name(kind: str, name: str | None, used: Sequence[str]) -> None:
    """Raise BadOptions for a name that no trial has, with the nearest ones."""
    names = list(dict.fromkeys(used))
    if name is None or name in names:
        return
    raise UnknownName(
        f"no trial of this run has this {kind}",
        got=name,
        expected=", ".join(names),
        hint=near(name, names, cutoff=0.5) or _LISTED,
        code="unknown-arm" if kind != "case" else None,
    )


def _fits(trial: Trial, options: Any) -> bool:
    """The trial has the id, the case, the model, the arm and the code that the flags name."""
    if options.trial is not None and not trial.trial_id.startswith(options.trial):
        return False
    return (
        options.case in (None, trial.case_id)
        and options.model in (None, trial.model)
        and options.arm in (None, trial.arm, trial.prompt_protocol)
        and (options.code is None or options.code in _codes(trial))
    )


def _codes(trial: Trial) -> set[str | None]:
    """Outcome, sub-code and problem codes of a trial."""
    codes: set[str | None] = set()
    if trial.result:
        codes.update(problem.code for problem in trial.result.all_problems())
    if trial.score:
        codes.update((trial.score.outcome, trial.score.sub_code))
    return codes


def _result(trial: Trial) -> ParseResult:
    """Return the parse of a trial. Raises BadOptions for one without an answer."""
    if trial.result is None:
        raise BadOptions("there is no answer to show", got=trial.missing_reason or trial.outcome)
    return trial.result


def _put_trial(trial: Trial, colored: bool) -> None:
    """Write the request, what was wanted, the marked answer, and the whole conversation."""
    # Texts of cases, models and providers must not act on the terminal.
    put(visible(str(trial)))
    put(visible(f"asked:  {trial.case.input_text}"))
    if trial.case.target is not None:
        put(visible(f"wanted: {write_canonical(trial.case.target)}"))
    completion = trial.completion
    if completion is not None and not completion.ok:
        put(visible(f"failed: {completion.error_kind}: {completion.error_message}"))
    if trial.result is not None:
        put("\n" + render_ansi(trial.result, color=colored))
    if trial.conversation is not None:
        put(visible(f"\nall turns:\n{trial.conversation}"))


def _json(trial: Trial) -> dict[str, Any]:
    """Return a trial as an object for JSON."""
    completion = trial.completion
    return {
        "run_id": trial.run_id,
        "trial_id": trial.trial_id,
        "case": trial.case.to_dict(),
        "model": trial.model,
        "arm": trial.arm,
        "prompt_protocol": trial.prompt_protocol,
        "parse_protocol": trial.parse_protocol,
        "policy": trial.policy,
        "trial": trial.trial,
        "outcome": trial.outcome,
        "detail": trial.score.detail if trial.score else trial.missing_reason,
        "request": trial.request,
        "raw": completion.raw if completion else None,
        "error": completion.error_message if completion else None,
        "result": trial.result.to_dict() if trial.result else None,
        "conversation": str(trial.conversation) if trial.conversation else None,
    }
