"""Calls that the model did not make: how many answers of each kind would run one.

    python benchmarks/unwanted_calls.py                    # 100 answers a format and kind
    python benchmarks/unwanted_calls.py --n 20 --seed 7    # twenty, drawn by another seed
    python benchmarks/unwanted_calls.py --n 0              # all: an hour
    python benchmarks/unwanted_calls.py --misses 30        # and texts that were read wrong

`tests/unwanted.py` makes the answers. Wrong is any call that could be executed and that the answer
does not allow; right, what the answer means; the rest is refused or not seen.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.unwanted import KINDS, READERS, Answer, Call, answers, verdict

FAST = ("name", "auto")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 if anything wrong would be executed."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--n", type=int, default=100, help="answers of each format and kind")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--kind", type=int, action="append", choices=range(1, len(KINDS) + 1))
    options.add_argument("--reader", action="append", choices=(*READERS, "all"))
    options.add_argument("--misses", type=int, default=0, help="texts to print of each way")
    chosen = options.parse_args(arguments)
    readers = chosen.reader or FAST
    readers = tuple(READERS) if "all" in readers else readers
    kinds = [kind for i, kind in enumerate(KINDS, 1) if chosen.kind is None or i in chosen.kind]
    print("| kind | reader | n | executed wrongly | refused or none | right |")
    print("|---|---|--:|--:|--:|--:|")
    wrong: dict[tuple[str, str], list[tuple[str, Answer, list[Call]]]] = defaultdict(list)
    for kind in kinds:
        drawn = answers(kind, chosen.n or None, chosen.seed)
        for reader in readers:
            counts = Counter[str]()
            for answer in drawn:
                if not answer.tools and reader in ("generate", "wrap_stream"):
                    continue
                calls = READERS[reader](answer)
                outcome = verdict(answer, calls)
                counts[outcome] += 1
                if outcome == "wrong":
                    wrong[kind, answer.way].append((reader, answer, calls))
            figures = (counts.total(), counts["wrong"], counts["none"], counts["right"])
            print(f"| {kind} | {reader} | " + " | ".join(map(str, figures)) + " |", flush=True)
    if chosen.misses:
        for (kind, way), found in wrong.items():
            print(f"\n{kind}: {way}: {len(found)}")
            for reader, answer, calls in _spread(found, chosen.misses):
                print(f"  {answer.format} by {reader}: {answer.text!r}\n    ran {calls}")
    return 1 if wrong else 0


def _spread(
    found: list[tuple[str, Answer, list[Call]]], n: int
) -> list[tuple[str, Answer, list[Call]]]:
    """Texts of as many formats as possible, the shortest first."""
    seen = Counter[str]()
    ranked: list[tuple[int, int, tuple[str, Answer, list[Call]]]] = []
    for one in sorted(found, key=lambda one: len(one[1].text)):
        seen[one[1].format] += 1
        ranked.append((seen[one[1].format], len(ranked), one))
    return [one for _, _, one in sorted(ranked, key=lambda r: r[:2])][:n]


if __name__ == "__main__":
    sys.exit(main())
