"""The parts of docs/frames.md that are made from code: the columns of every frame, and the
engines."""

from __future__ import annotations

from docs.tables import write_table
from toolparse_lab.evals.frames.columns import COLUMNS, columns_of
from toolparse_lab.evals.frames.reread import NEEDED, READ_AGAIN
from toolparse_lab.evals.reparse import ENGINES
from toolparse_lab.experiments.run_reader import FILTERS


def frame_parts() -> dict[str, str]:
    """Part of the page -> its Markdown."""
    parts = {
        f"columns of {kind}": write_table(
            ("column", "dtype", "meaning"),
            [(f"`{c.name}`", f"`{c.dtype}`", c.meaning) for c in columns_of(kind)],
        )
        for kind in dict.fromkeys(c.frame for c in COLUMNS)
    }
    parts["filters"] = [", ".join(f"`{name}`" for name in FILTERS)]
    parts["needed"] = [", ".join(f"`{name}`" for name in NEEDED)]
    parts["read again"] = [", ".join(f"`{name}`" for name in READ_AGAIN)]
    parts["engines"] = write_table(
        ("engine", "what reads"), [(f"`{e}`", said) for e, said in ENGINES.items()]
    )
    return {name: "\n".join(lines) for name, lines in parts.items()}
