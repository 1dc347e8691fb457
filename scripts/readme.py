"""Writes the demo figures of the shipped recording into the README: python scripts/readme.py"""

from __future__ import annotations

import sys
import tempfile
import textwrap
from pathlib import Path

import toolparse_lab as tp
from toolparse_lab.cli.demo import all_cases_text, demo_plan

README = Path(__file__).parent.parent / "README.md"
BEGIN, END = "<!-- demo output -->\n```text\n", "\n```\n"
WIDTH = 104


def demo_block() -> str:
    """Return the table of success on the demo's cases, and one sentence on all shipped cases."""
    with tempfile.TemporaryDirectory() as folder, tp.Lab(Path(folder) / "runs.db") as lab:
        run = lab.replaying(tp.example_recording()).run(demo_plan(lab), progress=False)
        table = run.report().text(WIDTH).split("\n\n")[1]
    all_cases = textwrap.wrap(all_cases_text().partition(". ")[2], WIDTH)
    block = "\n".join([table, "", *all_cases])
    return "\n".join(line.rstrip() for line in block.splitlines())


def with_block(text: str, block: str) -> str:
    """README text with the demo's block in its place."""
    head, found, rest = text.partition(BEGIN)
    if not found:
        raise ValueError("the README has no place for the demo's output")
    return head + BEGIN + block + END + rest.partition(END)[2]


if __name__ == "__main__":
    README.write_text(with_block(README.read_text("utf-8"), demo_block()), "utf-8")
    sys.exit(0)
