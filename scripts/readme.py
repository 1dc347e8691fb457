"""Writes the figures of the recorded tool callers into the README: python scripts/readme.py"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import toolparse_lab as tp
from toolparse_lab.cli.demo import recorded_report
from toolparse_lab.core.values.wording import share, span
from toolparse_lab.evals.reports.figures.conclusion import conclusion_of

README = Path(__file__).parent.parent / "README.md"
BEGIN, END = "<!-- made from the recorded models -->\n", "\n<!-- end -->\n"
WIDTH = 120


def demo_block() -> str:
    """Return the success of each model in each protocol, and what follows from it."""
    with tp.Lab(":memory:") as lab:
        report = recorded_report(lab)
        rows = report.frame.to_dict("records")
        words = textwrap.wrap(conclusion_of(report).text, WIDTH)
    cells: dict[str, dict[str, str]] = {}
    for row in rows:
        interval = span(row["ci_low"], row["ci_high"], row["n"])
        rate = f"{share(row['success'], row['n'])} ({interval})"
        cells.setdefault(str(row["prompt_protocol"]), {})[str(row["model"])] = rate
    models = list(dict.fromkeys(model for rates in cells.values() for model in rates))
    lines = [f"| asked in | {' | '.join(models)} |", "|---" * (len(models) + 1) + "|"]
    lines += [
        f"| {protocol} | {' | '.join(rates.get(model, '') for model in models)} |"
        for protocol, rates in cells.items()
    ]
    return "\n".join([*lines, "", "```text", *words, "```"])


def with_block(text: str, block: str) -> str:
    """README text with the demo's block in its place."""
    head, found, rest = text.partition(BEGIN)
    if not found:
        raise ValueError("the README has no place for the demo's output")
    return head + BEGIN + block + END + rest.partition(END)[2]


if __name__ == "__main__":
    README.write_text(with_block(README.read_text("utf-8"), demo_block()), "utf-8")
    sys.exit(0)
