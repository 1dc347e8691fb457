"""The eight return formats of a leaderboard's study of prompt formats, read in four ways.

    python benchmarks/leaderboard_forms.py                 # the table
    python benchmarks/leaderboard_forms.py --misses        # and the texts that were not read right

Each answer is read by the protocol of its form's name, by `auto`, by `auto` from a stream in pieces
of 1 and of 4 characters, and by `auto` once a structural character of it was deleted, doubled or
swapped. A call is wrong where it could be executed (ok and valid) and was not meant.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import toolparse_lab as tp
from tests.extensions.bench.leaderboard_forms import (
    FORMS,
    TOOLS,
    Calls,
    abstentions,
    answers,
    damaged,
)

WAYS = ("by name", "auto", "stream 1", "stream 4", "damaged")


def outcome(result: tp.ParseResult, meant: Calls) -> str:
    """Return how a result agrees with the calls that were meant."""
    runs = [(c.name, c.arguments) for c in result.calls if c.valid]
    if any(call not in meant for call in runs) or len(runs) > len(meant):
        return "wrong"
    if runs == meant and len(result.calls) == len(meant):
        return "right"
    return "refused" if result.calls or result.problems else "silent"


def read(text: str, way: str, form: str, rng: random.Random) -> tp.ParseResult:
    """Return the result of reading an answer in one of the ways."""
    if way.startswith("stream"):
        size = int(way[-1])
        parser = tp.stream("auto", TOOLS)
        for at in range(0, len(text), size):
            parser.feed(text[at : at + size])
        return parser.close()
    if way == "damaged":
        text = damaged(text, rng)
    return tp.parse(text, FORMS[form] if way == "by name" else "auto", TOOLS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=100, help="answers of each form")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--misses", action="store_true")
    options = parser.parse_args()

    counts: Counter[tuple[str, str, str]] = Counter()
    rng = random.Random(options.seed)
    sound = [*answers(options.seed, options.count), *abstentions()]
    # A sign that was a part of a value is nothing that anybody could put right.
    plain = answers(options.seed, options.count, plain=True)
    texts = [(answer, WAYS[:-1]) for answer in sound] + [(answer, WAYS[-1:]) for answer in plain]
    for (form, text, meant), ways in texts:
        for way in ways:
            result = read(text, way, form, rng)
            found = outcome(result, meant)
            counts[form, way, found] += 1
            if options.misses and (found == "wrong" or (found != "right" and way != "damaged")):
                print(f"{form} | {way} | {found} | {result.raw!r} | {result.calls}")

    print(f"{'form':<18}" + "".join(f"{way:>22}" for way in WAYS))
    print(f"{'':<18}" + f"{'right/wrong/ref/silent':>22}" * len(WAYS))
    for form in FORMS:
        kinds = ("right", "wrong", "refused", "silent")
        cells = ("/".join(str(counts[form, way, kind]) for kind in kinds) for way in WAYS)
        print(f"{form:<18}" + "".join(f"{cell:>22}" for cell in cells))


if __name__ == "__main__":
    main()
