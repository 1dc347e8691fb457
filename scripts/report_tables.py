"""The parts of docs/reports.md that are made from code: outcomes, sub-codes, and the columns of
frames."""

from __future__ import annotations

from scripts.tables import write_table
from toolparse_lab.evals.reports.figures.cells import MEANINGS
from toolparse_lab.evals.reports.figures.comparison import COMPARISON_MEANINGS
from toolparse_lab.evals.scoring.outcomes import OUTCOMES, SUB_CODES


def report_parts() -> dict[str, str]:
    """Part of the page -> its Markdown."""
    outcomes = [(f"`{o.id}`", o.group, o.sentence) for o in OUTCOMES.values()]
    parts = {
        "outcomes": write_table(("outcome", "about", "meaning"), outcomes),
        "sub-codes": write_table(
            ("sub-code", "meaning"), [(f"`{c}`", said) for c, said in SUB_CODES.items()]
        ),
        "columns of a report": write_table(
            ("column", "meaning"), [(f"`{c}`", m) for c, m in MEANINGS.items()]
        ),
        "columns of a comparison": write_table(
            ("column", "meaning"), [(f"`{c}`", m) for c, m in COMPARISON_MEANINGS.items()]
        ),
    }
    return {name: "\n".join(lines) for name, lines in parts.items()}
