"""Calls that are meant and refused, and calls that are only shown and executed.

    python benchmarks/quotation.py                  # the test half: 1,500 answers of each
    python benchmarks/quotation.py --half tune --misses 20

`tests/quoted_answers.py` makes the answers. Intervals are Wilson's, at 95 %.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.quoted_answers import HALVES, Answer, answers, executed
from toolparse_lab.evals.reports.figures.stats import wilson


def main(arguments: Sequence[str] | None = None) -> int:
    """Print both rates, of each family of formats and of each frame."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--half", choices=HALVES, default="test")
    options.add_argument("--n", type=int, default=1500, help="answers of each kind")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--misses", type=int, default=0, help="texts to print")
    chosen = options.parse_args(arguments)
    table: dict[tuple[bool, str, str], list[bool]] = defaultdict(list)
    misses: list[tuple[str, Answer]] = []
    for answer in answers(chosen.half, chosen.n, chosen.seed):
        for reader in ("name", "auto"):
            wrong = executed(answer, reader) is not answer.meant
            if wrong:
                misses.append((reader, answer))
            for group in ("all", answer.family, reader):
                table[answer.meant, group, ""].append(wrong)
            table[answer.meant, "frame", answer.frame].append(wrong)
    print("| call | of | n | wrong | rate | 95 % |\n|---|---|--:|--:|--:|---|")
    for (meant, group, frame), marks in sorted(table.items(), key=lambda r: (not r[0][0], r[0])):
        interval = wilson(sum(marks), len(marks))
        what = "meant, refused" if meant else "shown, executed"
        rate = f"{sum(marks) / len(marks):.1%} | {interval.low:.1%} to {interval.high:.1%}"
        print(f"| {what} | {frame or group} | {len(marks)} | {sum(marks)} | {rate} |")
    for reader, answer in misses[: chosen.misses]:
        print(f"\n{answer.format} by {reader}, {answer.frame}, meant {answer.meant}\n{answer.text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
