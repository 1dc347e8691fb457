"""Figures of a report, counted again from the raw log, with nothing of the package.

`python benchmarks/recount.py log.jsonl report.json` compares them with a report that
`toolparse report --json` printed, and exits with 1 where one differs. Without a report it prints
what it counts. A log is one JSON object a line, or a CSV file whose cells may be JSON. A row has
case_id, model and target, and one of these: raw, with the prompt_protocol `hermes` or `native`;
response, a chat completion or what came in its place; error, where the request failed. It may have
latency, completion_tokens and cost.

It reads as a script of a page does: the text between the tags, `json.loads`, and a comparison of
values. So it holds for logs whose calls are written as their format has them; a log with repairs is
counted as if nothing were repaired, which is the column `strict`. Not counted are what needs a
schema or a parser: repaired, safe, coerced, naive, fabricated, unread and the rates of repairs and
coercions, and the answers of conversations.
"""

from __future__ import annotations

import csv
import json
import math
import re
import sys
from collections import Counter, defaultdict
from pathlib import Path
from statistics import quantiles
from typing import Any

from scipy.stats import norm, t

_CALL = re.compile(r"<tool_call>\s*(.*?)\s*</tool_call>", re.DOTALL)


FIGURES = (
    "n_cases", "n", "missing", "ungraded", "success", "ci_low", "ci_high", "strict", "answered",
    "called", "worst", "best", "distinct", "k", "pass_at_k", "pass_at_k_best", "pass_all_k",
    "pass_all_k_best", "latency_p50", "latency_p95", "tokens_mean", "cost", "cost_per_success",
)  # fmt: skip
"""Columns of a report that are counted."""
_WHOLE = 1e-6
Cell = tuple[str, str]


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a log, those of a CSV file with their JSON read."""
    text = path.read_text("utf-8")
    if path.suffix != ".csv":
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    table = csv.DictReader(text.splitlines())
    return [{name: _json(cell) for name, cell in row.items() if cell} for row in table]


def _json(cell: str) -> Any:
    try:
        return json.loads(cell)
    except ValueError:
        return cell


def calls_in(text: str) -> list[tuple[str, Any]]:
    """Return (name, arguments) of each call in a text of the format `hermes`."""
    found = []
    for body in _CALL.findall(text):
        call = json.loads(body)
        found.append((call["name"], call["arguments"]))
    return found


def native_calls(message: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return (name, arguments) of the calls of an assistant's message, or of those in its text."""
    functions = [call["function"] for call in message.get("tool_calls") or ()]
    if not functions:
        return calls_in(message.get("content") or "")
    return [(f["name"], json.loads(f["arguments"] or "{}")) for f in functions]


def answer_of(row: dict[str, Any]) -> tuple[str, Any] | None:
    """Return (the text of an answer, its calls, None for unreadable ones), None without one."""
    if row.get("error"):
        return None
    body = row.get("response")
    if "response" in row:
        choices = body.get("choices") if isinstance(body, dict) else None
        if not choices or not choices[0].get("message"):
            return None
        message = choices[0]["message"]
    elif row["prompt_protocol"] == "native":
        message = json.loads(row["raw"])
    else:
        message = {"content": row["raw"]}
    text = json.dumps([message.get("content"), message.get("tool_calls")])
    try:
        return text, native_calls(message)
    except (ValueError, KeyError, TypeError):
        return text, None


def is_right(calls: Any, target: list[Any]) -> bool:
    """Return True if calls are those of a target, in any order."""
    if calls is None:
        return False
    rest = [(want["name"], want.get("arguments", {})) for want in target]
    for call in calls:
        if call not in rest:
            return False
        rest.remove(call)
    return not rest


def _mean(numbers: list[Any]) -> float:
    return sum(numbers) / len(numbers) if numbers else math.nan


def interval(rates: list[float], sizes: list[int]) -> tuple[float, float]:
    """Return the ends of Agresti and Coull's interval of a mean of rates of cases, at the effective
    sample size.
    """
    m, rate = len(rates), _mean(rates)
    if not m:
        return math.nan, math.nan
    middle = (sum(rates) + 0.5) / (m + 1)
    spread = sum((r - middle) ** 2 for r in rates) + (middle**2 + (1 - middle) ** 2) / 2
    n = middle * (1 - middle) * (m + 1) ** 2 / spread - 1
    n = min(n, m**2 / sum(1 / size for size in sizes))
    z = norm.ppf(0.975)
    centre = (rate * n + z**2 / 2) / (n + z**2)
    half = t.ppf(0.975, max(1, round(2 * (n - 1)))) * math.sqrt(centre * (1 - centre) / (n + z**2))
    return max(0.0, centre - half), min(1.0, centre + half)


def recount(rows: list[dict[str, Any]]) -> dict[Cell, dict[str, float]]:
    """Return (model, protocol) -> `FIGURES`, counted by hand. Rows that say no protocol are of the
    one that the log has for the others.
    """
    cells: dict[Cell, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        cells[row["model"], row.get("prompt_protocol", "")].append(row)
    return {cell: _figures(of_cell) for cell, of_cell in cells.items()}


def _figures(rows: list[dict[str, Any]]) -> dict[str, float]:
    known: dict[str, list[bool]] = defaultdict(list)
    lost: Counter[str] = Counter()
    texts: dict[str, list[str]] = defaultdict(list)
    called = ungraded = 0
    for row in rows:
        case, answer = row["case_id"], answer_of(row)
        if answer is not None:
            texts[case].append(answer[0])
            called += bool(answer[1])
        if row.get("target") is None:
            ungraded += 1
        elif answer is None:
            lost[case] += 1
        else:
            known[case].append(is_right(answer[1], row["target"]))
    seen = Counter(row["case_id"] for row in rows if row.get("target") is not None)
    most = max(seen.values(), default=0)
    if most * len(seen) < 2 * sum(seen.values()):
        lost.update({case: most - n for case, n in seen.items()})
    missing = sum(lost.values())
    planned = {case: len(known[case]) + lost[case] for case in seen}
    rates = {case: _mean(right) for case, right in known.items() if right}
    sizes = [len(known[case]) for case in rates]
    low, high = interval(list(rates.values()), sizes)
    bounds = {
        name: {case: sum(known[case]) + extra * lost[case] for case in seen}
        for name, extra in (("worst", 0), ("best", 1))
    }
    figures = {
        "n_cases": len(rates),
        "n": sum(sizes),
        "missing": missing,
        "ungraded": ungraded,
        "success": _mean(list(rates.values())),
        "ci_low": low,
        "ci_high": high,
        "strict": _mean(list(rates.values())),
        "answered": sum(map(len, texts.values())),
        "called": called,
        **{name: _mean([of[case] / planned[case] for case in seen]) for name, of in bounds.items()},
        **_repeats(planned, bounds, texts),
    }
    for name, column in (("tokens_mean", "completion_tokens"), ("cost", "cost")):
        numbers = [float(row[column]) for row in rows if row.get(column) is not None]
        figures[name] = _mean(numbers) if name == "tokens_mean" else (sum(numbers) or math.nan)
    right = sum(map(sum, known.values()))
    figures["cost_per_success"] = figures["cost"] / right if right else math.nan
    times = sorted(float(row["latency"]) for row in rows if row.get("latency") is not None)
    cuts = quantiles(times, n=20, method="inclusive") if len(times) > 1 else times * 20
    figures |= {"latency_p50": cuts[9], "latency_p95": cuts[18]} if times else {
        "latency_p50": math.nan, "latency_p95": math.nan,
    }  # fmt: skip
    return figures


def _repeats(
    planned: dict[str, int], bounds: dict[str, dict[str, int]], texts: dict[str, list[str]]
) -> dict[str, float]:
    # Each choice of k trials of a case that has so many, missing ones wrong and right.
    sizes = Counter(sorted(planned.values()))
    k = max(sizes, key=lambda n: (sizes[n], -n)) if sizes else 1
    several = [of_case for of_case in texts.values() if len(of_case) > 1]
    names = ("pass_at_k", "pass_at_k_best", "pass_all_k", "pass_all_k_best")
    figures: dict[str, float] = dict.fromkeys(names, math.nan)
    figures |= {"k": k, "distinct": _mean([len(set(x)) / len(x) for x in several])}
    if k > 1 and any(len(set(x)) > 1 for x in texts.values()):
        for end, of in (("", bounds["worst"]), ("_best", bounds["best"])):
            chosen = [case for case, n in planned.items() if n >= k]
            some, every = (
                [math.comb(planned[c] - of[c], k) / math.comb(planned[c], k) for c in chosen],
                [math.comb(of[c], k) / math.comb(planned[c], k) for c in chosen],
            )
            figures |= {f"pass_at_k{end}": 1 - _mean(some), f"pass_all_k{end}": _mean(every)}
    return figures


def differences(counted: dict[Cell, dict[str, float]], cells: list[dict[str, Any]]) -> list[str]:
    """Return a sentence for each figure in which a report's cells are not what was counted."""
    said = {(cell["model"], cell["prompt_protocol"]): cell for cell in cells}
    for model, protocol in [key for key in counted if not key[1]]:
        (own,) = {arm for name, arm in said if name == model}
        counted = {**counted, (model, own): counted[model, protocol]}
        del counted[model, protocol]
    found = [f"{key} is in the log alone" for key in counted.keys() - said.keys()]
    found += [f"{key} is in the report alone" for key in said.keys() - counted.keys()]
    for key in counted.keys() & said.keys():
        for name in FIGURES:
            own, other = counted[key][name], said[key][name]
            other = math.nan if other is None else other
            is_equal = math.isclose(own, other, rel_tol=_WHOLE, abs_tol=_WHOLE)
            if not (is_equal or (own != own and other != other)):
                found.append(f"{' '.join(key)}: {name} is {other} in the report, counted {own}")
    return sorted(found)


def main(arguments: list[str]) -> int:
    """Count a log, and compare with a report where one is given."""
    counted = recount(rows_of(Path(arguments[0])))
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
