"""Holds the figures of pages and the commands beside them together.

A block of a page begins with `<!-- printed by COMMAND -->`, or several with semicolons between
them, and ends with `<!-- end -->`. The commands are run. The figures of each row of a table, or
line of a fence, have to stand beside one another in a line that was printed, those of a sentence
anywhere. So a page may show some of the rows, under its own words.

Two marks behind a command say why it is not run: `(timed)`, its figures are those of one machine on
one day; `(given FILE)`, it takes a file that is not here.

    python scripts/figures.py [WORD]    # the commands that hold the word, by default all: hours
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
_BLOCK = re.compile(
    r"<!-- printed by (?P<command>python [^()>]*?)(?: \((?P<mark>[^)]*)\))? -->\n"
    r"(?P<body>.*?)<!-- end -->",
    re.DOTALL,
)
# A number as it is written: grouped in thousands, with a decimal point. Its sign is no part of it,
# because a page has another minus than a terminal.
_NUMBER = re.compile(r"(?<![\w.])\d+(?:,\d{3})*(?:\.\d+)?(?![\w])")
_QUOTED = re.compile(r"`[^`]*`|\]\([^)]*\)")


class Block(NamedTuple):
    """A block of a page: its command, the mark behind it ('' for none), its lines."""

    page: Path
    command: str
    mark: str
    lines: list[str]


def blocks_of(page: Path) -> list[Block]:
    """Return the blocks of a page whose figures a command prints."""
    return [
        Block(page, m["command"], m["mark"] or "", m["body"].splitlines())
        for m in _BLOCK.finditer(page.read_text("utf-8"))
    ]


def figures_of(line: str) -> list[str]:
    """Return the figures of a line, in order; those in code or in an address are none.

    >>> figures_of("| hermes | 1,187 | 96.40 % | `--every 4` |")
    ['1187', '96.4']
    """
    found = (number.replace(",", "") for number in _NUMBER.findall(_QUOTED.sub("", line)))
    return [n.rstrip("0").rstrip(".") if "." in n else n for n in found]


def unprinted(lines: list[str], output: str) -> Iterator[str]:
    """Yield each line of a block whose figures the output has not. The head of a table is words."""
    printed = [f" {' '.join(figures_of(line))} " for line in output.splitlines()]
    known = set(" ".join(printed).split())
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        figures = figures_of(line)
        if not figures or after.startswith("|--"):
            continue
        if line.rstrip().endswith((".", ":")):  # a sentence
            is_printed = known.issuperset(figures)
        else:
            is_printed = any(f" {' '.join(figures)} " in row for row in printed)
        if not is_printed:
            yield line


def check(block: Block) -> list[str]:
    """Run the command of a block, and return what is wrong with it, line by line."""
    if block.mark:
        return []
    environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    output = ""
    for command in block.command.split("; "):
        program = [sys.executable, *shlex.split(command)[1:]]
        done = subprocess.run(  # noqa: S603 - a command of our own pages
            program, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            return [f"exit code {done.returncode}: {done.stderr[-500:]}"]
        output += done.stdout
    return list(unprinted(block.lines, output))


def main(arguments: list[str]) -> int:
    """Check the blocks of all pages; 1 where a figure is another one."""
    wrong = 0
    for page in PAGES:
        for block in blocks_of(page):
            if all(word in block.command for word in arguments):
                lines = check(block)
                wrong += len(lines)
                print(f"{'✗' if lines else '✓'} {page.name}: {block.command}", flush=True)
                for line in lines:
                    print(f"    {line}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
