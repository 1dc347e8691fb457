"""Plants bugs in engine, scanners and codecs, and sees whether the tests notice: python
tests/mutants.py

Each mutant is one line changed in a copy of the package; it is killed when the laws or the case
tables fail on it. Prints one line a mutant and leaves with 1 if any survived. The tests are those
of the gate, or all with --exhaustive.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
TESTS = [
    f"tests/test_{name}.py"
    for name in (
        "protocols_parse", "protocols_openai_json", "capture",
        "salvage", "scan", "rjson_repair", "provenance", "recovery", "schema_coerce", "rxml_flat",
        "rjson_strict", "protocols_parameter_tags", "engine", "conformance", "laws",
    )
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mutant:
    """`old` stands once in `file` and is replaced by `new`; `about` says which promise that
    breaks."""

    file: str
    old: str
    new: str
    about: str


MUTANTS = (
    Mutant(
        "parser/body.py",
        "if close.hidden and close.kind in",
        "if False and close.kind in",
        "no rescue behind an open quote",
    ),
    Mutant(
        "parser/body.py",
        "self._log.retract(end)",
        "pass",
        "deltas that went too far are not taken back",
    ),
    Mutant(
        "parser/body.py",
        "if opening.speculative or before <= 0:",
        "if True:",
        "a broken call swallows the next one",
    ),
    Mutant(
        "parser/recognition/fences.py",
        "if self._lone == _INSIDE:\n                return",
        "if True:\n                return",
        "calls in code fences",
    ),
    Mutant("parser/state.py", "self.base += n", "self.base += n + (n > 40)", "offsets drift"),
    Mutant(
        "formats/json/scan.py",
        "return any(lit.startswith(rest) for lit in by.literals)",
        "return False",
        "closers cut by a chunk",
    ),
    Mutant(
        "formats/json/scan.py",
        "if follows and not self._strict:",
        "if follows:",
        "closers in sound strings",
    ),
    Mutant(
        "formats/json/scan.py",
        "                pos += 1\n            elif symbol == _ENDS[kind]:",
        "                pass\n            elif symbol == _ENDS[kind]:",
        "an escaped quote ends the string",
    ),
    Mutant(
        "formats/xml/scan.py",
        'ends = tail[after : after + 1] in ("<", "")',
        "ends = True",
        "a closing tag inside a text parameter",
    ),
    Mutant(
        "formats/scan.py",
        "self._settle(len(tail) if final else partial_start(tail, self._literals))",
        "self._settle(len(tail))",
        "think tags cut",
    ),
    Mutant(
        "arguments/rjson/quotes.py",
        "if self._letter_escapes and any(",
        "if False and any(",
        "ambiguous backslashes are guessed",
    ),
    Mutant(
        "arguments/rjson/damage.py",
        "if self.text[end - 1].isdigit() and not self.numbers_end:",
        "if False:",
        "cut numbers are read",
    ),
    Mutant(
        "arguments/rjson/positions.py",
        "else start + self._shift[i]",
        "else start",
        "origins ignore the edits before them",
    ),
    Mutant(
        "arguments/rjson/strict.py",
        "if len(out) != len(pairs):",
        "if False:",
        "doubled keys go unnoticed",
    ),
    Mutant(
        "formats/json/call.py",
        "if any(member not in properties for member in rest):",
        "if any(member not in properties for member in rest):\n        return {}",
        "arguments are lost",
    ),
    Mutant(
        "formats/python/reader.py", "if key in arguments:", "if False:", "an argument given twice"
    ),
    Mutant(
        "formats/rxml/element.py",
        "return _NAMED[match[3]]",
        'return _NAMED[match[3]] if match[3] != "amp" else "&amp;"',
        "entities",
    ),
    Mutant(
        "arguments/schema/walk.py",
        "if self.safe and not conforms(view, new, self.budget):",
        "if False:",
        "safe wraps what stays illegal",
    ),
    Mutant(
        "arguments/schema/scalars.py",
        "match = _NUMBER.fullmatch(text)",
        "match = _NUMBER.match(text)",
        "5 km becomes 5",
    ),
    Mutant("parser/provenance.py", '"coerce.trim": _trim,', "", "origins of trimmed values"),
    Mutant(
        "formats/json/scan.py",
        "if tail.rfind(literal, 0, end + len(literal) - 1) >= 0:",
        "if False:",
        "the short way of a JSON body sees no delimiter in its strings",
    ),
    Mutant(
        "parser/state.py",
        "if start >= end:",
        "if start > begin:",
        "text taken back",
    ),
    Mutant(
        "formats/rxml/fast.py",
        "if out and size == len(body) else None",
        "if out else None",
        "text beside flat elements",
    ),
    Mutant(
        "formats/parameters/strict.py",
        "if len(values) < count:",
        "if False:",
        "the short way of parameter tags drops the first of two values",
    ),
    Mutant(
        "arguments/rjson/strict.py",
        "if level + brackets > self._max_depth:",
        "if False:",
        "the short way of damaged JSON counts no depth",
    ),
    Mutant(
        "parser/recognition/bare_calls.py",
        "if not calls or not all((c.valid and c.arguments) or (c.ok and has_key) for c in calls):",
        "if not calls:",
        "JSON in prose becomes a call",
    ),
    Mutant(
        "formats/json/openai_json.py",
        "text, closed=False, numbers_end=False",
        "text, closed=True, numbers_end=False",
        "brackets are added to native arguments that may be cut off",
    ),
    Mutant(
        "formats/json/openai_json.py",
        'if end != "]}":',
        "if False:",
        "a native call that a text ends in is whole",
    ),
    Mutant(
        "parser/state.py",
        'Segment("text", span, escaped=True)',
        'Segment("text", span)',
        "texts of messages keep their escapes",
    ),
    Mutant(
        "entry/capture/captured.py",
        "whole.removesuffix(_END_OF_CALL) if self.cut else whole",
        "whole",
        "the last call of a cut stream is whole",
    ),
)


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
            *TESTS,
        ]
        environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, check=False)
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
