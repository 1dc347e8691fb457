"""Each dialect of providers and servers in each situation, over real litellm: the table of
docs/measurements.md.

python benchmarks/providers.py            prints it, and what is not as expected
python benchmarks/providers.py --write    writes it into the page
"""

from __future__ import annotations

import importlib.metadata
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from scripts.tables import write_table  # noqa: E402 - found through the line above
from tests.provider_dialects import DIALECTS  # noqa: E402
from tests.provider_matrix import Cell, ask  # noqa: E402

NOTE = "<!-- printed by python benchmarks/providers.py -->"
TOLD = ("endpoint", "sampling_json", "served_model", "served_by")
"""Columns of the frame that the page shows of an answer: where it was asked, what went out, and who
answered."""
PAGE = ROOT / "docs/measurements.md"


def line_of(name: str, cells: Sequence[Cell]) -> str:
    """Return the line of a dialect: how many cells are as expected, those that are not, and what
    the frame has of the first answer, prompted and, where it differs, native.
    """
    wrong = {cell.situation for cell in cells if cell.faults}
    right = sum(not cell.faults for cell in cells)
    row = [f"[{name}]({DIALECTS[name].source})", f"{right} of {len(cells)}"]
    answers = {c.native: c.row for c in cells if c.situation == "one call" and not c.stream}
    for column in TOLD:
        prompted, native = (_words(answers.get(way, {}).get(column)) for way in (False, True))
        row.append(f"{prompted}; native {native}" if native not in ("", prompted) else prompted)
    (line,) = write_table((), [[*row, ", ".join(sorted(wrong))]])[2:]
    return line


def _words(value: Any) -> str:
    if not isinstance(value, str):
        return ""
    if value.startswith("{"):
        return ", ".join(f"{name} {json.dumps(x)}" for name, x in json.loads(value).items())
    # The test server has another port each time.
    return re.sub(r"127\.0\.0\.1:\d+", "…", value)


def block(lines: Sequence[str], cells: int, version: str) -> str:
    """The table with the version of litellm."""
    head = write_table(("dialect", "as expected", *TOLD, "not in"), [])
    told = f"{len(lines)} dialects, {cells} cells, litellm {version}:"
    return "\n".join([NOTE, told, "", *head, *lines, "<!-- end -->"])


def main(arguments: list[str]) -> int:
    lines, n, wrong = [], 0, 0
    for name in DIALECTS:
        cells = list(ask(name))
        for cell in cells:
            if cell.faults:
                wrong += 1
                way = "native" if cell.native else "prompted"
                kind = "stream" if cell.stream else "whole"
                print(f"{name}, {cell.situation}, {way}, {kind}: {'; '.join(cell.faults)}")
        lines.append(line_of(name, cells))
        n += len(cells)
    text = block(lines, n, importlib.metadata.version("litellm"))
    if arguments != ["--write"]:
        print(text)
        return int(bool(wrong))
    page = PAGE.read_text("utf-8")
    before, _, rest = page.partition(NOTE)
    PAGE.write_text(before + text + rest.partition("<!-- end -->")[2], "utf-8")
    return int(bool(wrong))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
