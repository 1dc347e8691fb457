"""The commands `power`, `endpoints` and `blame`."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ...cli.console import put, put_json, put_told, records
from ...cli.options import (
    CONFIG,
    JSON,
    POLICY,
    RUN,
    STORE,
    TRUST,
    Option,
    need_lab,
    open_lab,
    settings_of,
    verb,
    with_credentials,
)
from ...core.errors import BadOptions
from ...core.values.printable import counted
from ...views.show import visible


@verb(
    "power",
    CONFIG,
    RUN,
    Option(
        "a [A]", "an arm, model or protocol (default: every two cells that differ in one thing)"
    ),
    Option("b [B]", "the one to compare it with"),
    Option("--drop DROP", "the drop to be found, a share (default: 0.05)", default=0.05),
    Option("--again", "of each cell against a later run of the same cases", default=None),
    Option("--power POWER", "how often it must be found (default: 0.8)", default=0.8),
    Option("--alpha ALPHA", "level of the two-sided test (default: 0.05)", default=0.05),
    STORE,
    POLICY,
    JSON,
    examples=(
        "toolparse power latest",
        "toolparse power latest hermes morph_xml --drop 0.03",
        "toolparse power latest --again",
    ),
)
def _power(options: Any) -> int:
    """Show what the cases of a run can tell."""
    if options.a is not None and options.b is None:
        raise BadOptions(
            "power compares two names", got=options.a, hint=f"toolparse power {options.run} A B"
        )
    settings = settings_of(options)
    need_lab()
    from .power_analysis import power  # pandas and SciPy: 2 s, and an extra

    with open_lab(settings) as lab:
        run = lab.open(options.run)
        figures = power(
            run,
            options.drop,
            a=options.a,
            b=options.b,
            again=options.again,
            power=options.power,
            alpha=options.alpha,
            policy=settings["policy"],
        )
    account = {"run_id": run.run_id, "rows": records(figures.frame())}
    if figures.note:
        account["note"] = figures.note
    put_told(options.json, account, figures)
    return 0


@verb(
    "endpoints",
    CONFIG,
    RUN,
    Option("--reference MODEL", "what the others are held to (default: the first)"),
    Option(
        "--margin SHARE",
        "the difference below which two are the same (default: 0.05)",
        default=0.05,
    ),
    STORE,
    POLICY,
    JSON,
    examples=("toolparse endpoints latest --reference vendor-a --margin 0.03",),
)
def _endpoints(options: Any) -> int:
    """Hold the models of a run to one of them. The exit code is 1 if one is worse."""
    settings = settings_of(options)
    need_lab()
    from .endpoint_comparison import endpoints  # SQLAlchemy: 0.8 s, and an extra

    with open_lab(settings) as lab:
        run = lab.open(options.run)
        ends = endpoints(run, options.reference, margin=options.margin, policy=settings["policy"])
        verdicts = {model: ends.verdict(model) for model in run.plan.models}
        account = {
            "reference": ends.reference,
            "verdicts": verdicts,
            "measures": records(ends.frame),
            "broken": {model: dict(ends.broken(model)) for model in verdicts},
        }
        put_told(options.json, account, ends)
    return 1 if "worse" in verdicts.values() else 0


@verb(
    "blame",
    CONFIG,
    TRUST,
    RUN,
    Option("trial [TRIAL]", "a trial's id (default: all that failed)"),
    Option("--ask", "ask again under interventions, at most --budget"),
    Option("--smallest", "find the smallest request that fails alike"),
    Option("--budget N", "requests a trial (default: 12, or 60)"),
    Option("--protocol ID", "the text format that the model writes"),
    Option("--template FILE", "the model's own chat template, for raw completions"),
    Option("--other MODEL", "another endpoint of the same model"),
    STORE,
    JSON,
    examples=(
        "toolparse blame latest",
        "toolparse blame latest --ask --budget 8",
        "toolparse blame latest 3f9a1c --smallest",
    ),
)
def _blame(options: Any) -> int:
    """Say of each failed trial which layer broke it."""
    settings = settings_of(options)
    need_lab()
    # SQLAlchemy: 0.8 s, and an extra
    from .diagnosis import blame
    from .request_shrinking import shrink_request

    with open_lab(settings) as lab:
        run = lab.open(options.run)
        if options.ask or options.smallest:
            run = with_credentials(lab, run, settings)
        trials = [run.trial(options.trial)] if options.trial else list(run.failures())
        found: list[dict[str, Any]] = []
        for trial in trials:
            said, verdict = trial.blame.explained(), trial.blame
            if options.ask:
                diagnosis = blame(
                    trial, budget=options.budget or 12, protocol=options.protocol,
                    template=options.template, other=options.other,
                )  # fmt: skip
                said, verdict = str(diagnosis), diagnosis.blame
            found.append({"trial_id": trial.trial_id, **verdict.to_dict()})
            if options.smallest:
                small = shrink_request(trial, budget=options.budget or 60)
                said = f"{said}\n{small!r}"
                found[-1]["smallest"] = small.case.to_dict()
            if not options.json:
                put(visible(f"{trial.trial_id} {trial.case_id} · {trial.model} · {said}"))
    if options.json:
        put_json(found)
        return 0
    counts = Counter(row["layer"] for row in found)
    summary = ", ".join(f"{layer} {n:,}" for layer, n in counts.most_common())
    put(f"{counted(len(found), 'failed trial')}{f': {summary}' if summary else ''}")
    return 0
