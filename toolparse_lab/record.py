"""`toolparse record`: the embedded model over the shipped cases, few-shot and grammar-constrained, as a recording."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from .demo import ALIAS, MAX_TOKENS, MODEL, PROTOCOLS
from .evals.cases.shipped import example_cases, example_conversations
from .lab import Lab
from .plan import Plan
from .runner.recording import export_recording
from .runner.types import Model


def recording_plan(lab: Lab) -> Plan:
    """What the shipped recording answers: every shipped case × two protocols × free and constrained decoding."""
    return lab.plan(
        example_cases(),
        {ALIAS: Model(MODEL)},
        PROTOCOLS,
        decoding=["free", "grammar"],
        wording="brief",
        max_tokens=MAX_TOKENS,
    )


def conversation_plan(lab: Lab) -> Plan:
    """What the shipped recording of conversations answers: a model so small calls only where a grammar makes it."""
    return lab.plan(
        example_conversations(demo=True),
        {ALIAS: Model(MODEL)},
        PROTOCOLS,
        decoding="grammar",
        wording="brief",
        max_turns=3,
        max_tokens=MAX_TOKENS,
    )


def record_embedded(
    out: str | Path,
    store: str | Path | None = None,
    say: Callable[[str], None] = print,
    *,
    planned: Callable[[Lab], Plan] = recording_plan,
) -> int:
    """Asks what the store does not hold yet, then writes the recording; 3 where answers are missing."""
    path = Path(out)
    path.parent.mkdir(parents=True, exist_ok=True)
    with Lab(store or path.with_suffix(".db")) as lab:
        plan = planned(lab)
        say(str(plan))
        run = lab.run(plan)
        say(str(run))
        export_recording(lab.store, path, run_id=run.run_id)
        say(f"recording: {path}")
        return 0 if run.summary is not None and run.summary.complete else 3
