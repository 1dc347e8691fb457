"""Each dialect of providers and servers in each situation, over real litellm: the table of
docs/measurements.md.

python benchmarks/providers.py            prints it, and what is not as expected
python benchmarks/providers.py --write    writes it into the page
"""

from __future__ import annotations

import importlib.metadata
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from scripts.tables import write_table  # noqa: E402 - found through the line above
from tests.provider_dialects import DIALECTS  # noqa: E402
from tests.provider_matrix import SITUATIONS, ask  # noqa: E402

NOTE = "<!-- made by `python benchmarks/providers.py --write` -->"
PAGE = ROOT / "docs/measurements.md"
Tally = Mapping[str, tuple[int, int]]
"""Situation -> cells that are as expected, and all."""


def tally(name: str, right: Mapping[str, int] | None = None) -> Tally:
    """right: how many cells of each situation are as expected, by default all."""
    ways = 4 if DIALECTS[name].takes_tools else 2
    return {key: (ways if right is None else right.get(key, 0), ways) for key in SITUATIONS}


def block(tallies: Mapping[str, Tally], version: str) -> str:
    """The table with the version of litellm."""
    rows = [
        [
            f"[{name}]({DIALECTS[name].source})",
            f"{sum(right for right, _ in row.values())} of {sum(all_ for _, all_ in row.values())}",
            ", ".join(key for key, (right, all_) in row.items() if right < all_),
        ]
        for name, row in tallies.items()
    ]
    cells = sum(all_ for row in tallies.values() for _, all_ in row.values())
    lines = [NOTE, f"{len(rows)} dialects, {cells} cells, litellm {version}:", ""]
    lines += [*write_table(("dialect", "as expected", "not in"), rows), "<!-- end -->"]
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    tallies: dict[str, Tally] = {}
    wrong = 0
    for name in DIALECTS:
        right: Counter[str] = Counter()
        for cell in ask(name):
            right[cell.situation] += not cell.faults
            if cell.faults:
                wrong += 1
                way = "native" if cell.native else "prompted"
                kind = "stream" if cell.stream else "whole"
                print(f"{name}, {cell.situation}, {way}, {kind}: {'; '.join(cell.faults)}")
        tallies[name] = tally(name, right)
    text = block(tallies, importlib.metadata.version("litellm"))
    if arguments != ["--write"]:
        print(text)
        return int(bool(wrong))
    page = PAGE.read_text("utf-8")
    before, _, rest = page.partition(NOTE)
    PAGE.write_text(before + text + rest.partition("<!-- end -->")[2], "utf-8")
    return int(bool(wrong))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
