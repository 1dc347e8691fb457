"""The parts of docs/reference/logs.md that are made from code: columns and shapes of logs, doubts
about cases."""

from __future__ import annotations

from scripts.tables import write_table
from toolparse_lab.evals.cases.checks import DOUBTS
from toolparse_lab.experiments.ingest.columns import GUESSES, NAMES
from toolparse_lab.experiments.ingest.shapes import shapes


def dataset_parts() -> dict[str, str]:
    """Part of the page -> its Markdown."""
    columns = [
        (f"`{n}`", ", ".join(f"`{g}`" for g in GUESSES.get(n, ())), said)
        for n, said in NAMES.items()
    ]
    parts = {
        "columns of a log": write_table(("name", "also accepted", "contents"), columns),
        "shapes of logs": write_table(
            ("shape", "what writes it", "the answer stands in", "tools", "lost"),
            [
                (
                    f"`{shape.name}`",
                    shape.title,
                    f"`{shape.keys.get('response') or shape.keys['output']}`",
                    f"`{shape.keys['tools']}`" if "tools" in shape.keys else "",
                    shape.lost,
                )
                for shape in shapes().values()
            ],
        ),
        "doubts": write_table(
            ("kind", "meaning"), [(f"`{code}`", said) for code, said in DOUBTS.items()]
        ),
    }
    return {name: "\n".join(lines) for name, lines in parts.items()}
