"""`toolparse run`."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import BadPlan, MissingRecording
from ...core.values.printable import counted
from ...experiments.arms import check_names
from ...experiments.plan_file import PlanFile, chosen_cases, models_of, read_plan_file
from ...runner.exchange.summary import LIMITS
from ...runner.routes import missing_package, unset_keys
from ...views.show import visible
from ..asking import Wish, add_asking, ask_and_report, check_wish, limits_of
from ..gates import gates_of
from ..hints import as_flags
from ..options import add_columns, add_config, level_of, names, open_lab, settings_of
from ..output import put, put_json, say

if TYPE_CHECKING:
    from ...experiments.plan import Plan
    from ...experiments.run import Run
    from ...lab import Lab
    from ...runner.exchange.types import Model
    from ...runner.settings import Settings

EXAMPLES = (
    "toolparse run plan.toml --fail-under 0.9",
    "toolparse run --cases cases.jsonl --models qwen,openai/gpt-4o-mini --protocols "
    "hermes,morph_xml --max-cost 5",
    "toolparse run --cases cases.jsonl --models qwen --protocols hermes --set few_shot=0,2 "
    "--set max_tokens=512",
)
_MOST_NAMES = 5
_PLAN_FILE = "plan.toml"
# What has a flag and a key of its own, and so is no level of `--set`.
_OWN_FLAGS = ("cases", "models", "protocols", "trials", "seed", "stream", "sample", *LIMITS)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the plan: a file, flags that go before it, and the way to deal with it."""
    add_config(command)
    command.add_argument(
        "plan", nargs="?", metavar="PLAN.toml", help="the plan; flags go before what it says"
    )
    _add_cases(command)
    command.add_argument(
        "--models", type=names, metavar="A,B", help="configured models, or litellm model strings"
    )
    command.add_argument(
        "--protocols", type=names, metavar="A,B", help="prompt protocols, such as hermes,morph_xml"
    )
    command.add_argument(
        "--trials", type=int, metavar="N", help="how often each case is asked (default: 1)"
    )
    command.add_argument(
        "--seed", type=int, metavar="N", help="base of the seeds and of the order (default: 0)"
    )
    command.add_argument("--stream", action="store_true", default=None, help="stream the answers")
    command.add_argument(
        "--set",
        type=level_of,
        action="append",
        default=[],
        dest="levels",
        metavar="NAME=VALUE",
        help="a factor (several values, with commas, are its levels) or a sampling parameter; may "
        "be repeated",
    )
    command.add_argument(
        "--replay", metavar="FILE", help="answer from a recording alone: no model is called"
    )
    command.add_argument(
        "--dry-run",
        action="store_true",
        help="show the plan with its calls and cost, and ask nothing",
    )
    add_asking(command)


def _add_cases(command: argparse.ArgumentParser) -> None:
    """Declare which cases are asked."""
    command.add_argument("--cases", metavar="FILE", help="a file of cases, or bfcl")
    add_columns(command)
    command.add_argument(
        "--skip-bad",
        action="store_true",
        help="leave out cases that cannot be read, and count them",
    )
    command.add_argument(
        "--where",
        type=level_of,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="only cases of this id, category or member of their metadata; several values with "
        "commas; may be repeated",
    )
    command.add_argument(
        "--sample",
        type=int,
        metavar="N",
        help="this many of them, shared out over their categories",
    )


def run(options: Any) -> int:
    """Plan, run every check that costs nothing, ask, and report."""
    settings = settings_of(options)
    plan_file = read_plan_file(options.plan, settings) if options.plan else PlanFile()
    with open_lab(settings, must_be=False) as lab:
        if options.replay:
            lab.replaying(options.replay)
        plan = _plan(lab, options, plan_file, settings)
        wish = Wish(
            options.baseline or plan_file.baseline,
            gates_of(options, plan_file.gate),
            settings["policy"],
        )
        check_wish(plan, options, wish)
        for skipped in plan.cases.skipped:
            say(f"left out: {as_flags(str(skipped))}")
        if not options.replay:
            _say_set_up(plan)
        if options.dry_run:
            _put_plan(plan, options)
            return 0
        if not options.quiet:
            say(f"{as_flags(str(plan))}\n")
        limits = limits_of(options, plan_file, settings)
        return ask_and_report(lab, lambda: _run(lab, plan, limits), options, wish)


def _run(lab: Lab, plan: Plan, limits: Mapping[str, Any]) -> Run:
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
    """Return the plan of flags, file and settings, in this order.

    Raises BadPlan and the errors of `plan`.
    """
    cases = options.cases or plan_file.cases or settings["cases"]
    models: dict[str, Model]
    models = models_of(options.models, settings) if options.models else dict(plan_file.models)
    protocols = options.protocols or list(plan_file.protocols) or settings["protocols"]
    for name, value in (("cases", cases), ("models", models), ("protocols", protocols)):
        if not value:
            raise _nothing_named(name, settings, options.plan)
    levels = _levels(options, plan_file, models)
    # The seed draws the sample as well, so it is settled first.
    seed = _first(options.seed, plan_file.seed)
    subjects = chosen_cases(
        cases,
        {**plan_file.where, **dict(options.where)},
        _first(options.sample, plan_file.sample),
        seed,
        columns=options.columns or plan_file.columns,
        errors="skip" if options.skip_bad else "raise",
    )
    return lab.plan(
        subjects,
        models,
        protocols,
        trials=_first(options.trials, plan_file.trials),
        seed=seed,
        stream=_first(options.stream, plan_file.stream),
        **levels,
    )


def _first(flag: Any, otherwise: Any) -> Any:
    """Return the value of a flag that was used, else that of the file. 0 and False are values."""
    return otherwise if flag is None else flag


def _nothing_named(name: str, settings: Settings, plan: str | None) -> BadPlan:
    """Return the error of a plan without cases, models or protocols.

    Names the configured models.
    """
    configured = ",".join(settings.tables) if name == "models" else ""
    hint = f"name them: --{name} {configured or '…'}, or `{name}` in the plan"
    # Most likely the plan of `toolparse init` was meant.
    if plan is None and Path(_PLAN_FILE).is_file():
        hint = f"toolparse run {_PLAN_FILE}"
    return BadPlan(f"there are no {name}", hint=hint)


def _levels(options: Any, plan_file: PlanFile, models: Mapping[str, Model]) -> dict[str, Any]:
    """Factors and sampling parameters of the file and of `--set`.

    Raises BadPlan for others.
    """
    levels = {**plan_file.settings, **dict(options.levels)}
    for name in levels:
        if name in _OWN_FLAGS:
            raise BadPlan(
                f"{name} is no factor and no sampling parameter",
                hint=f"give it apart: --{name}, or `{name}`",
            )
    # A model may have parameters of its own, which are no slip for that model.
    own = [name for model in models.values() for name in model.params or {}]
    for name in plan_file.settings:
        place = f"{plan_file.source.place('settings', name)}: " if plan_file.source else ""
        check_names([name], own, place)
    check_names(dict(options.levels), own, "--set: ")
    return levels


def _say_set_up(plan: Plan) -> None:
    """Say of each model whose provider wants a key, or a package, that there is none."""
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
    """Write the plan with its estimated cost."""
    if not options.json:
        put(as_flags(str(plan)))
        return
    input_tokens, output_tokens = plan.tokens
    # The cases themselves are in their file.
    members = {name: value for name, value in plan.to_dict().items() if name != "cases"}
    put_json(
        {
            "cases": len(plan.cases),
            "calls": plan.calls,
            "most_calls": plan.most_calls,
            "input_tokens": input_tokens,
            "output_tokens": output_tokens,
            "cost": plan.cost,
            **members,
        }
    )
