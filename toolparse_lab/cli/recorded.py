"""Commands about what is recorded: `list`, `view`."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..errors import BadOptions
from .options import RUN_HELP, Commands, add_color, add_json, add_policy, add_store, color, open_lab, settings_of
from .output import put, put_json, say, table, terminal_width

if TYPE_CHECKING:
    from ..evals.scoring.trial import Trial
    from ..run import Run
    from ..settings import Settings

_WHAT = ("runs", "protocols", "models")


def add_commands(commands: Commands) -> None:
    lists = commands.add(
        "list", _list, "list the runs of a store, the protocols, or the configured models",
        "toolparse list", "toolparse list protocols --json",
    )  # fmt: skip
    lists.add_argument("what", nargs="?", default="runs", choices=_WHAT, help="what to list (default: runs)")
    add_store(lists)
    add_json(lists)

    view = commands.add(
        "view", _view, "show one trial: what was asked, what the model wrote, and what was read in it",
        "toolparse view latest",
        "toolparse view latest --case timer-3 --html trial.html",
    )  # fmt: skip
    view.add_argument("run", nargs="?", default="latest", metavar="RUN", help=f"{RUN_HELP} (default: latest)")
    view.add_argument("trial", nargs="?", metavar="TRIAL", help="a trial's id (default: the first failure that fits)")
    view.add_argument("--case", metavar="ID", help="of this case")
    view.add_argument("--model", metavar="NAME", help="of this model")
    view.add_argument("--arm", metavar="NAME", help="of this arm, or this prompt protocol")
    view.add_argument("--code", metavar="CODE", help="with this outcome, sub-code or problem code")
    view.add_argument("--protocol", metavar="ID", help="what reads the answer (default: what its prompt asked for)")
    view.add_argument("--html", metavar="FILE", help="write the parse view as one HTML file")
    view.add_argument("--pytest", metavar="FILE", help="write a test that pins how this answer is read")
    add_store(view)
    add_policy(view)
    add_color(view)
    add_json(view)


def _list(options: Any) -> int:
    settings = settings_of(options)
    head, rows = {"runs": _runs, "protocols": _protocols, "models": _models}[options.what](settings)
    if options.json:
        put_json([dict(zip(head, row, strict=True)) for row in rows])
    else:
        put(table(head, rows, width=terminal_width()))
    return 0


def _runs(settings: Settings) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    from ..opening import status_now

    with open_lab(settings) as lab:
        runs = lab.runs()
    rows = []
    for run in runs:
        plan, summary = run.plan, run.summary or {}
        rows.append(
            (
                run.run_id,
                run.created[:19].replace("T", " "),
                status_now(run),
                run.items,
                run.done,
                run.failed,
                len(plan.get("cases") or ()),
                summary.get("cost"),
                ", ".join(plan.get("models") or ()),
                ", ".join(str(a.get("name")) for a in plan.get("arms") or ()),
            )
        )
    return ("run_id", "created", "status", "items", "done", "failed", "cases", "cost", "models", "arms"), rows


def _protocols(settings: Settings) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    from ..registry import protocols

    rows: list[tuple[Any, ...]] = [(id, ", ".join(p.aliases) or None, p.title) for id, p in protocols().items()]
    return ("protocol", "aliases", "what"), rows


def _models(settings: Settings) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    rows = [(alias, t["name"], t.get("api_base"), t.get("api_key_env")) for alias, t in settings.tables.items()]
    return ("model", "name", "api_base", "api_key_env"), list(rows)


def _view(options: Any) -> int:
    settings = settings_of(options)
    with open_lab(settings) as lab:
        trial = _chosen(lab.open(options.run), options, settings)
        if options.html:
            from ..widgets import export_html

            export_html(_result(trial), options.html)
            say(f"wrote {options.html}")
        if options.pytest:
            say(f"wrote {trial.as_pytest(options.pytest)}")
        if options.json:
            put_json(_json(trial))
        else:
            _put(trial, color(settings, sys.stdout))
    return 0


def _chosen(run: Run, options: Any, settings: Settings) -> Trial:
    trials = run.trials(protocol=options.protocol, policies=(settings["policy"],))
    found = [t for t in trials if _fits(t, options)]
    if not found:
        _check_name("case", options.case, [t.case_id for t in trials])
        _check_name("model", options.model, [t.model for t in trials])
        _check_name("arm", options.arm, [name for t in trials for name in (t.arm, t.prompt_protocol)])
        raise BadOptions("no trial fits", got=options.trial or "these filters", expected=f"one of {len(trials)} trials")
    if options.trial is None:
        found.sort(key=lambda t: not t.failed)
    chosen: Trial = found[0]
    return chosen


def _check_name(what: str, name: str | None, known: Sequence[str]) -> None:
    """Raises BadOptions for a name that no trial has, with the nearest ones."""
    names = list(dict.fromkeys(known))
    if name is None or name in names:
        return
    near = difflib.get_close_matches(name, names, 3, 0.5)
    raise BadOptions(
        f"no trial of this run has this {what}", got=name, expected=", ".join(names),
        hint=f"did you mean {' or '.join(near)}?" if near else None,
    )  # fmt: skip


def _fits(trial: Trial, options: Any) -> bool:
    if options.trial is not None and not trial.trial_id.startswith(options.trial):
        return False
    problems = {p.code for p in trial.result.all_problems()} if trial.result and options.code else set()
    scored = (trial.score.outcome, trial.score.sub_code) if trial.score else ()
    return (
        options.case in (None, trial.case_id)
        and options.model in (None, trial.model)
        and options.arm in (None, trial.arm, trial.prompt_protocol)
        and (options.code is None or options.code in problems or options.code in scored)
    )


def _result(trial: Trial) -> Any:
    if trial.result is None:
        raise BadOptions("there is no answer to show", got=trial.missing_reason or trial.outcome)
    return trial.result


def _put(trial: Trial, colored: bool) -> None:
    from ..render import render_ansi
    from ..render.show import visible
    from ..values import write_canonical

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
