"""What is promised under load and faults, tried: `python -m tests.faults [--short] [parts]`.

It prints a table, and puts its rows into docs/security.md. A script of a part says its own row last;
of tests it is how many have passed. With --short there is less of each, for a first look, and
nothing is written.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "security.md"
HEAD = "| tried | n | seen | worst answer | memory |\n|---|--:|---|--:|--:|\n"
# Part -> the command, the words that are added for a short look, and what is tried where it is
# tests.
_SERVED = "tests/extensions/serve/test_"
PARTS: dict[str, tuple[list[str], list[str], str]] = {
    "upstream": (["benchmarks/bad_upstream.py", "2"], ["a reset", "10 GB of a body"], ""),
    "callers": (
        ["pytest", *(f"{_SERVED}{name}.py" for name in ("server", "faults", "gateway"))],
        ["--quick"],
        "callers of `serve`: slow, huge and ambiguous heads, half-closed, foreign hosts and origins",
    ),
    "kills": (["tests.shared_run"], ["4"], ""),
    "stores": (
        ["pytest", *(f"tests/runner/test_{name}.py" for name in ("store_faults", "store_floors"))],
        ["--quick"],
        "a full disk, a lost log, a read-only store, a damaged page, a clock that jumps, fork, "
        "pickle, a server that is away",
    ),
    "interrupts": (["tests.interrupts"], ["10"], ""),
    "names": (
        ["pytest", *(f"tests/browser/test_hostile_{name}.py" for name in ("views", "pages"))],
        ["--quick"],
        "more than 200 hostile texts in every field of every page, chart and output, in Chromium",
    ),
    "messages": (
        ["pytest", *(f"tests/notebook/test_widgets_{n}.py" for n in ("live_page", "bench"))],
        ["--quick"],
        "messages of no known form to `toolparse open` and the widgets",
    ),
    "checkout": (
        ["pytest", "tests/runner/test_settings.py", "tests/runner/test_secrets.py"],
        ["--quick"],
        "settings, plans, cases, templates and stores of a hostile checkout",
    ),
    "growth": (["benchmarks/growth.py"], ["20000", "hermes", "pythonic"], ""),
}


def row(part: str, short: bool) -> tuple[str, bool]:
    """Run a part: its row, and whether all held."""
    command, less, tried = PARTS[part]
    words = [*command, *(less if short else [])]
    if short and part in ("kills", "interrupts", "growth"):
        words = [command[0], *less]
    name, *arguments = words
    if name == "pytest":
        arguments += ["-q", "-p", "no:cacheprovider", "-n", "0"]
    start = [name] if name.endswith(".py") else ["-m", name]
    out = []
    with subprocess.Popen(
        [sys.executable, *start, *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as done:
        for line in done.stdout or ():
            print(line, end="", file=sys.stderr, flush=True)
            out.append(line)
    if name == "pytest":
        counts = {w: int(n) for n, w in re.findall(r"(\d+) (passed|failed|error)", "".join(out))}
        seen = "all held" if done.returncode == 0 else f"{counts.get('failed', 0)} failed"
        return f"| {tried} | {counts.get('passed', 0)} | {seen} | | |", done.returncode == 0
    lines = [line for line in out if line.count("|") == 4]
    rows = [f"| {line.strip()} |" for line in lines if not line.startswith("|")]
    return "\n".join(rows or [f"| {part} | | did not end | | |"]), done.returncode == 0


def main(short: bool, chosen: list[str]) -> int:
    """Print the rows of the parts, and return how many did not hold."""
    wrong = 0
    rows = []
    print(HEAD, end="", flush=True)
    for part in chosen or PARTS:
        text, held = row(part, short)
        wrong += not held
        rows.append(text)
        print(text, flush=True)
    if not short and not chosen:
        begin, end = "<!-- made by make faults -->\n", "<!-- end -->"
        before, rest = PAGE.read_text("utf-8").split(begin)
        table = HEAD + "\n".join(rows) + "\n"
        PAGE.write_text(before + begin + table + end + rest.split(end, 1)[1], "utf-8")
    return wrong


if __name__ == "__main__":
    given = sys.argv[1:]
    sys.exit(bool(main("--short" in given, [word for word in given if word != "--short"])))
