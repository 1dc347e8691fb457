"""Figures of a report, counted again from the raw log, with nothing of the package.

`python benchmarks/recount.py log.jsonl report.json` compares them with a report that
`toolparse report --json` printed, and exits with 1 where one differs. Without a report it prints
what it counts. A log is one JSON object a line with case_id, model, prompt_protocol (`hermes` alone
is read), raw, tools, target and, where a request failed, error.

It reads as a script of a page does: the text between the tags, `json.loads`, and a comparison of
values. So it holds for logs whose calls are written as their format has them; a log with repairs is
counted as if nothing were repaired, which is the column `strict`.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

_CALL = re.compile(r"<tool_call>\s*(.*?)\s*</tool_call>", re.DOTALL)


FIGURES = ("n", "missing", "success", "worst", "best", "pass_all_k", "pass_all_k_best")
"""Columns of a report that are counted."""


def calls_in(text: str) -> list[tuple[str, Any]]:
    """Return (name, arguments) of each call in a text of the format `hermes`."""
    found = []
    for body in _CALL.findall(text):
        call = json.loads(body)
        found.append((call["name"], call["arguments"]))
    return found


def is_right(row: dict[str, Any]) -> bool:
    """Return True if the calls of a row are those of its target, in any order."""
    try:
        calls = calls_in(row["raw"])
    except (ValueError, KeyError, TypeError):
        return False
    rest = [(want["name"], want.get("arguments", {})) for want in row["target"]]
    for call in calls:
        if call not in rest:
            return False
        rest.remove(call)
    return not rest


def _mean(numbers: list[Any]) -> float:
    return sum(numbers) / len(numbers) if numbers else math.nan


def recount(rows: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, float]]:
    """Return (model, protocol) -> `FIGURES`, counted by hand.

    success is the mean over cases of the share of right trials; worst and best take missing trials
    for wrong and for right. pass_all_k is the share of cases all of whose trials are right, where a
    case that missing trials can still decide counts as wrong, and as right in pass_all_k_best; it
    is not known where no case has several trials.
    """
    cells: dict[tuple[str, str], dict[str, list[bool | None]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for row in rows:
        cell = (row["model"], row["prompt_protocol"])
        judged = None if row.get("error") else is_right(row)
        cells[cell][row["case_id"]].append(judged)
    figures = {}
    for cell, cases in cells.items():
        trials = [right for case in cases.values() for right in case]
        known = [[right for right in case if right is not None] for case in cases.values()]
        seen_failure = [False in case for case in cases.values()]
        unknown = [None in case for case in cases.values()]
        repeated = max(map(len, cases.values())) > 1
        figures[cell] = {
            "n": sum(map(len, known)),
            "missing": trials.count(None),
            "success": _mean([sum(map(bool, case)) / len(case) for case in known if case]),
            "worst": _mean([sum(map(bool, case)) / len(case) for case in cases.values()]),
            "best": _mean([1 - case.count(False) / len(case) for case in cases.values()]),
            "pass_all_k": math.nan
            if not repeated
            else _mean(
                [not (bad or open_) for bad, open_ in zip(seen_failure, unknown, strict=True)]
            ),
            "pass_all_k_best": _mean([not bad for bad in seen_failure]) if repeated else math.nan,
        }
    return figures


def differences(
    counted: dict[tuple[str, str], dict[str, float]], cells: list[dict[str, Any]]
) -> list[str]:
    """Return a sentence for each figure in which a report's cells are not what was counted."""
    said = {(cell["model"], cell["prompt_protocol"]): cell for cell in cells}
    found = [f"{key} is in the log alone" for key in counted.keys() - said.keys()]
    found += [f"{key} is in the report alone" for key in said.keys() - counted.keys()]
    for key in counted.keys() & said.keys():
        for name in FIGURES:
            own, other = counted[key][name], said[key][name]
            other = math.nan if other is None else other
            if not (math.isclose(own, other, abs_tol=1e-9) or (own != own and other != other)):
                found.append(f"{' '.join(key)}: {name} is {other} in the report, counted {own}")
    return sorted(found)


def main(arguments: list[str]) -> int:
    """Count a log, and compare with a report where one is given."""
    lines = Path(arguments[0]).read_text("utf-8").splitlines()
    counted = recount([json.loads(line) for line in lines if line.strip()])
    if len(arguments) == 1:
        for key, figures in counted.items():
            sys.stdout.write(f"{' '.join(key)}: {figures}\n")
        return 0
    report = json.loads(Path(arguments[1]).read_text("utf-8"))
    cells = report["cells"] if isinstance(report, dict) else report
    found = differences(counted, cells)
    sys.stdout.write("\n".join(found or ["every figure is equal"]) + "\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
