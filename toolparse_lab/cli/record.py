"""The shipped recordings: the embedded model over the shipped cases, conversations and the
ablation.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ..evals.cases.loading import example_cases, example_conversations
from ..experiments.ablation.example import example_ablation
from ..experiments.plan import Plan
from ..lab import Lab
from ..runner.exchange.types import Model
from ..runner.store.recording import export_recording
from .demo import ALIAS, MAX_TOKENS, MODEL, PROTOCOLS


def recording_plan(lab: Lab) -> Plan:
    """Return the plan of the shipped recording: every shipped case × two protocols × free and
    constrained decoding.
    """
    return lab.plan(
        example_cases(),
        {ALIAS: Model(MODEL)},
        PROTOCOLS,
        decoding=["free", "grammar"],
        wording="brief",
        max_tokens=MAX_TOKENS,
    )


def conversation_plan(lab: Lab) -> Plan:
    """Return the plan of the shipped conversations, decoded by a grammar alone."""
    # So small a model calls nothing unless a grammar makes it.
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
    """Ask the questions that the store does not hold yet, then write the recording.

    out: the recording, JSONL. store: where answers stay. None is a database beside the recording.
    planned: makes the plan. Returns the exit code, 3 where answers are missing.
    """
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


def record_ablation(
    out: str | Path, store: str | Path | None = None, say: Callable[[str], None] = print
) -> int:
    """Ask the questions that the shipped ablation lacks, corrections included.

    See `record_embedded`.
    """
    path = Path(out)
    path.parent.mkdir(parents=True, exist_ok=True)
    with Lab(store or path.with_suffix(".db")) as lab:
        ablation = example_ablation(lab)
        say(str(ablation))
        export_recording(lab.store, path, run_id=ablation.run.run_id)
        say(f"recording: {path}")
        return 3 if ablation.missing else 0
