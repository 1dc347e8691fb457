"""How fast recorded answers are read again: rows a second, Parquet in and out, per second of CPU
time.

Run with `python benchmarks/reparse.py [--rows 100000] [--workers 2] [--profile]`. The
answers are those of the shipped recording, each varied so that no two are alike: numbers and words
of the text are exchanged, a third is cut, stripped of its closer or wrapped in prose, so that what
is damaged stays damaged in many ways. They are read by one process and by a pool, from Parquet to
Parquet, and scored. Beside them, in the same run: the same rows with every text repeated ten times,
which is what the memory for equal answers is for; parsing alone, which neither scores nor writes a
row; and a regex for a JSON object with `json.loads` on the bare texts, which is what a script of
ten lines does. Goals in rows a second of one core's CPU time, for rows that are all different:
5,000, and 8,000 for parsing alone.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import pandas as pd

import toolparse_lab as tp
from toolparse_lab.cli.demo import recording_plan
from toolparse_lab.core.toolspec import tool_specs
from toolparse_lab.evals.frames.recorded import read_frame
from toolparse_lab.evals.reparse import reparse

NUMBER = re.compile(r"\d+")
WORD = re.compile(r"(?<=[\"> ])[A-Z][a-z]{3,}")
OBJECT = re.compile(r"\{.*\}", re.DOTALL)
PROSE = ("Sure, I will do that. ", "Let me look this up for you:\n\n", "Okay.\n")


def recorded() -> pd.DataFrame:
    """The shipped recording as an unread trials frame."""
    with tempfile.TemporaryDirectory() as folder, tp.Lab(Path(folder) / "runs.db") as lab:
        run = lab.replaying(tp.example_recording()).run(recording_plan(lab), progress=False)
        return pd.concat(list(run.answers()), ignore_index=True)


def vary(raw: str, n: int, dice: random.Random) -> str:
    """The text with other numbers and words in it; every third one is damaged or wrapped as
    well."""
    text = NUMBER.sub(lambda m: str(dice.randrange(10 ** len(m[0]))), raw)
    text = WORD.sub(lambda m: m[0] + f"{n:x}" if dice.random() < 0.5 else m[0], text)
    if n % 12 == 0:
        text = text[: dice.randrange(len(text) + 1)]
    elif n % 12 == 4:
        text = text.replace("</", "<", 1)
    elif n % 12 == 8:
        text = dice.choice(PROSE) + text
    return f"{text}\n{n}"


def made(rows: int, *, copies: int = 1) -> pd.DataFrame:
    """So many rows, each text `copies` times."""
    dice = random.Random(1)
    base = recorded()
    raws = base["raw"].tolist()
    places = [n % len(base) for n in range(rows)]
    # A text comes back for the case it answered, so that an equal row is there to be found.
    different = rows if copies == 1 else max(1, rows // copies // len(base)) * len(base)
    texts = [vary(raws[n % len(base)], n, dice) for n in range(different)]
    frame = base.iloc[places].reset_index(drop=True)
    return frame.assign(
        raw=pd.array([texts[n % len(texts)] for n in range(rows)], dtype="string"),
        trial=range(rows),
    )


def timed(what: Callable[[], Any]) -> tuple[float, float]:
    """(wall, CPU) seconds, the CPU time of child processes with it."""

    def cpu() -> float:
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(u.ru_utime + u.ru_stime for u in used)

    wall, before = time.perf_counter(), cpu()
    what()
    return time.perf_counter() - wall, cpu() - before


def naive(texts: list[str]) -> int:
    """What a script of ten lines reads."""
    found = 0
    for text in texts:
        m = OBJECT.search(text)
        try:
            found += bool(m and json.loads(m[0]))
        except ValueError:
            continue
    return found


def main() -> int:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--rows", type=int, default=100_000)
    options.add_argument("--workers", type=int, default=2)
    options.add_argument(
        "--profile", action="store_true", help="where the time of one process goes"
    )
    chosen = options.parse_args()
    rows: int = chosen.rows
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        frame = made(rows)
        frame.to_parquet(place / "different.parquet", row_group_size=10_000)
        made(rows, copies=10).to_parquet(place / "equal.parquet", row_group_size=10_000)
        print(f"{rows:,} answers, {frame['raw'].nunique():,} different texts of "
            f"{frame['raw'].str.len().mean():.0f} "
              f"characters on average")  # fmt: skip
        if chosen.profile:
            profile(lambda: read(place, "different", engine="serial"))
            return 0
        table: list[tuple[str, float, float]] = []

        def measure(name: str, what: Callable[[], Any]) -> None:
            wall, cpu = timed(what)
            table.append((name, wall, cpu))
            print(
                f"{name:<44} {wall:7.1f} s wall {cpu:7.1f} s CPU {rows / wall:9,.0f} rows/s "
                f"{rows / cpu:9,.0f} a core"
            )

        texts = frame["raw"].tolist()
        measure("regex and json.loads on the bare texts", lambda: naive(texts))
        measure("parsing alone, tools read once a set", lambda: parse_alone(frame))
        measure(
            "one process, all texts different", lambda: read(place, "different", engine="serial")
        )
        measure("one process, ten of each text", lambda: read(place, "equal", engine="serial"))
        measure(
            f"{chosen.workers} processes, all texts different",
            lambda: read(place, "different", workers=chosen.workers),
        )
        again = read_frame(place / "different-out.parquet", "trials")
        print(f"outcomes: {again['outcome'].value_counts().to_dict()}")
        print(
            f"reading is {table[2][2] / table[0][2]:.0f} times the work of a regex and json.loads"
        )
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"peak memory of this process, the frames it made included: {peak:,.0f} MB")
    return 0


def parse_alone(frame: pd.DataFrame) -> None:
    """Parse every answer by its own protocol, and look at nothing of the result."""
    tools = {text: json.loads(text) for text in frame["tools_json"].unique()}
    specs = {text: tool_specs(tools[text]) for text in tools}
    rows = zip(frame["raw"], frame["prompt_protocol"], frame["tools_json"], strict=True)
    for raw, protocol, tools_json in rows:
        tp.parse(raw, protocol, specs[tools_json])


def read(place: Path, name: str, **how: Any) -> None:
    to = place / f"{name}-out.parquet"
    reparse(place / f"{name}.parquet", to=to, overwrite=True, progress=False, **how)


def profile(what: Callable[[], Any]) -> None:
    import cProfile
    import pstats

    profiler = cProfile.Profile()
    profiler.runcall(what)
    pstats.Stats(profiler).sort_stats("tottime").print_stats(60)


if __name__ == "__main__":
    raise SystemExit(main())
