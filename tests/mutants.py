"""Plants bugs in engine, scanners and codecs, and sees whether the tests notice: python
tests/mutants.py

Each mutant of `mutants.jsonl` is one line changed in a copy of the package; it is killed when the
laws or the case tables fail on it. Prints one line a mutant and leaves with 1 if any survived. The
tests are those of the gate, or all with --exhaustive.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
TESTS = {
    "arguments": "rjson_repair rjson_strict schema_coerce",
    "entry": "capture",
    "formats": "openai_json parameter_tags parse rxml_reader scan",
    "parser": "conformance engine laws provenance texts",
}
"""The modules that are asked, by folder."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """`old` stands once in `file` and is replaced by `new`; `about` says which promise that
    breaks."""

    file: str
    old: str
    new: str
    about: str


MUTANTS = [
    Mutant(**json.loads(line))
    for line in Path(__file__).with_suffix(".jsonl").read_text("utf-8").splitlines()
]


def plant(mutant: Mutant, package: Path) -> None:
    """Changes the copy; raises LookupError where the line is not there exactly once, so that no
    mutant rots."""
    file = package / mutant.file
    text = file.read_text("utf-8")
    if text.count(mutant.old) != 1:
        raise LookupError(
            f"{mutant.file}: {mutant.old!r} stands there {text.count(mutant.old)} times"
        )
    file.write_text(text.replace(mutant.old, mutant.new), "utf-8")


def killed(mutant: Mutant, *options: str) -> tuple[bool, float]:
    """Whether the tests fail on the mutant, and after how many seconds."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in ("toolparse_lab", "tests"):
            shutil.copytree(
                ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", "browser")
            )
        shutil.copy(ROOT / "pyproject.toml", copy)
        plant(mutant, copy / "toolparse_lab")
        started = time.monotonic()
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-x",
            "-p",
            "no:cacheprovider",
            *options,
            *(f"tests/{room}/test_{n}.py" for room, names in TESTS.items() for n in names.split()),
        ]
        environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, check=False)
        if done.returncode in (4, 5):  # no test was run
            sys.exit(done.stdout.decode() + done.stderr.decode())
        return done.returncode == 1, time.monotonic() - started


def main(argv: list[str]) -> int:
    survivors = 0
    options = [a for a in argv if a.startswith("--")]
    argv = [a for a in argv if a not in options]
    chosen = [m for m in MUTANTS if not argv or any(a in m.file or a in m.about for a in argv)]
    for mutant in chosen:
        dead, seconds = killed(mutant, *options)
        survivors += not dead
        print(
            f"{'killed  ' if dead else 'SURVIVED'} {seconds:5.1f} s  {mutant.file}: {mutant.about}",
            flush=True,
        )
    print(f"{len(chosen) - survivors} of {len(chosen)} killed")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
