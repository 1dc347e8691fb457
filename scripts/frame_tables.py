"""The parts of docs/reference/frames.md that are made from code: the columns of every frame, and
the engines."""

from __future__ import annotations

from scripts.tables import write_table
from toolparse_lab.evals.engines import ENGINES
from toolparse_lab.evals.frames.columns import COLUMNS, columns_of
from toolparse_lab.evals.frames.parsing import NEEDED, READ_AGAIN
from toolparse_lab.experiments.trial_reader import FILTERS


def frame_parts() -> dict[str, str]:
    """Part of the page -> its Markdown."""
    kinds = dict.fromkeys(c.frame for c in COLUMNS)
    parts = {f"columns of {kind}": _columns(kind) for kind in kinds}
    parts["filters"] = [", ".join(f"`{name}`" for name in FILTERS)]
    parts["needed"] = [", ".join(f"`{name}`" for name in NEEDED)]
    parts["read again"] = [", ".join(f"`{name}`" for name in READ_AGAIN)]
    parts["engines"] = write_table(
        ("engine", "where the work is done"), [(f"`{e}`", said) for e, said in ENGINES.items()]
    )
    return {name: "\n".join(lines) for name, lines in parts.items()}


def _columns(kind: str) -> list[str]:
    """The columns of a frame; those that calls and events share with trials are only named."""
    trials = {(c.name, c.meaning) for c in columns_of("trials")}
    own = [
        c
        for c in columns_of(kind)
        if kind not in ("calls", "events") or (c.name, c.meaning) not in trials
    ]
    shared = [f"`{c.name}`" for c in columns_of(kind) if c not in own]
    table = write_table(
        ("column", "dtype", "meaning"), [(f"`{c.name}`", f"`{c.dtype}`", c.meaning) for c in own]
    )
    return [f"As in trials: {', '.join(shared)}.", "", *table] if shared else table
