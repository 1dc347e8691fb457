"""How much of a leaderboard is the parser: published answers read again, each gain with its cause.

An answer that is wrong as written is read by the lab's reader, and where that does not help, with
one cause at a time taken away by hand (the fence, the tokens, the words around). ``read`` counts
the first, ``explained`` both.

    python benchmarks/public_record.py outputs.jsonl
    python benchmarks/public_record.py RESULTS --cases bfcl_eval.whl --category simple_python
    python benchmarks/public_record.py outputs.jsonl --chart docs/images/leaderboard.svg

The first form takes one JSON object a line: ``model``, ``raw_text``, ``tools``, and ``truth`` in
the leaderboard's notation. The second takes the Berkeley leaderboard's own results, a folder a
model with files ``…_<category>_result.json``, and its cases from the wheel.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any, TypeAlias

import toolparse_lab as tp
from toolparse_lab.core.toolspec import tool_specs
from toolparse_lab.core.types import ParseResult
from toolparse_lab.evals.cases.case import Case
from toolparse_lab.evals.scoring.score import score_completion
from toolparse_lab.extensions.bench import load_bfcl, wanted_call
from toolparse_lab.runner.exchange.types import Completion, EndpointKind

Answer: TypeAlias = tuple[str, Case, str, bool]
"""Model, case, text, and True for a provider's own calls."""

CAUSES = {
    "fence": "a code fence stood around the calls",
    "special token": "a token of the model's chat template stood in the text",
    "another format": "the calls were in another format than was asked for",
    "prose": "words stood beside the calls",
    "repair": "the text was damaged",
    "coercion": "a value had another type",
    "reading": "the leaderboard's reader and this one take the text differently",
}
_TOKEN = re.compile(r"<[|｜][^<>\n]{1,40}[|｜]>")
_ROLE = re.compile(r"\A\s*<[|｜][^<>\n]{1,40}[|｜]>\s*(?:assistant\b)?")
_FENCE = re.compile(r"^[ \t]*```\w*[ \t]*\n(.*?)^[ \t]*```[ \t]*$", re.MULTILINE | re.DOTALL)
# The name of a tool on a line, its arguments as JSON below.
_NAMED = re.compile(r"([\w.-]{1,64})\s*\n(\{.*\})", re.DOTALL)


def rows_of(path: Path) -> Iterator[Answer]:
    """Yield the answers of a file of rows; those without a right answer are left out."""
    for line in path.read_text("utf-8").splitlines():
        row = json.loads(line)
        if row.get("truth_kind") != "bfcl_alternatives":
            continue
        target = [wanted_call(t["name"], t["arguments"], "bfcl") for t in row["truth"]]
        case = Case(row["id"], "?", tool_specs(row["tools"]), target)
        yield row["model"], case, row["raw_text"], False


def results_of(folder: Path, cases: Path, category: str) -> Iterator[Answer]:
    """Yield the answers of the leaderboard's result files for one category."""
    known = {case.id: case for case in load_bfcl(category, source=cases, strings="bfcl")}
    for path in sorted(folder.rglob(f"*{category}_result.json")):
        for line in path.read_text("utf-8").splitlines():
            row = json.loads(line) if line.strip() else {}
            if row.get("id") not in known:
                continue
            text, native = _text_of(row["result"])
            yield path.parent.name, known[row["id"]], text, native


def _text_of(result: Any) -> tuple[str, bool]:
    """Return a recorded result as text; a list of calls as a provider's message."""
    if not isinstance(result, list):
        return str(result), False
    calls = [
        {"id": f"c{i}", "function": {"name": name, "arguments": arguments}}
        for i, call in enumerate(result)
        if isinstance(call, dict)
        for name, arguments in call.items()
    ]
    return json.dumps({"content": None, "tool_calls": calls}), True


def is_right(case: Case, text: str, result: ParseResult, native: bool) -> bool:
    """Return True where what was read is what the case wants."""
    kind: EndpointKind = "native_tools" if native else "chat_text"
    completion = Completion(key="", raw=text, endpoint_kind=kind, fidelity="synthetic")
    score = score_completion(case, completion, result)
    return score is not None and bool(score.success)


def cause_of(text: str, result: ParseResult, strict: ParseResult) -> str:
    """Return why an answer is right only with the lab's reader: one of `CAUSES`."""
    if "```" in text:
        return "fence"
    if _TOKEN.search(text):
        return "special token"
    if any(call.protocol != "pythonic" for call in result.calls):
        return "another format"
    if any(call.edits for call in result.calls):
        return "repair"
    if any(step.stage == "coerce" for call in result.calls for step in call.steps):
        return "coercion"
    return "prose" if result.text.strip() or strict.text.strip() else "reading"


def views_of(text: str) -> Iterator[tuple[str, str]]:
    """Yield (cause, the text without it) for what may have kept a reader from the calls."""
    fences = _FENCE.findall(text)
    if len(fences) == 1:
        yield "fence", fences[0].strip()
    if _TOKEN.search(text):
        # A model that goes on behind its turn writes further turns.
        yield "special token", _TOKEN.split(_ROLE.sub("", text).strip())[0].strip()
        yield "special token", _TOKEN.sub("", _ROLE.sub("", text)).strip()
    named = _NAMED.fullmatch(text.strip())
    if named:
        yield "another format", f'{{"name": {json.dumps(named[1])}, "arguments": {named[2]}}}'
    start, end = text.find("["), text.rfind("]")
    if 0 <= start < end:
        yield "prose", text[start : end + 1]


def count(answers: Iterator[Answer]) -> dict[str, Counter[str]]:
    """Return for each model: n, as written, with the lab's reader, and each cause of the gain."""
    table: dict[str, Counter[str]] = defaultdict(Counter)
    for model, case, text, native in answers:
        row = table[model]
        row["n"] += 1
        # As written: the whole text is the list of calls that was asked for, and nothing else.
        plain = native or text.lstrip().startswith("[")
        reader = "openai_json" if native else "pythonic"
        strict = tp.parse(
            text, reader, case.tools, {"repair": False, "recover": False, "coerce": "none"}
        )
        result = tp.parse(text, reader if native else "auto", case.tools)
        right = is_right(case, text, result, native)
        written = plain and not strict.text.strip() and is_right(case, text, strict, native)
        row["as written"] += written
        row["read"] += right or written
        row["explained"] += right or written
        if right and not written:
            row[cause_of(text, result, strict)] += 1
        elif not right and not written:
            for cause, view in views_of(text):
                if is_right(case, view, tp.parse(view, "auto", case.tools), native=False):
                    row["explained"] += 1
                    row[cause] += 1
                    break
    return table


# Okabe and Ito's colours; what was right as written, what the reader adds, what stays wrong.
BARS = {
    "as written": "#0072B2",
    "with this reader": "#56B4E9",
    "explained by a cause": "#E69F00",
    "wrong": "#999999",
}
INK = dict.fromkeys(BARS, "#000000") | {"as written": "#ffffff"}
_ROW, _LEFT, _WIDTH = 30, 350, 420


def chart_of(table: Mapping[str, Counter[str]]) -> str:
    """Return the table as an SVG picture: for each model one bar of four pieces, in percent of its
    answers."""
    lines = [
        _chart_row(number, model, row) for number, (model, row) in enumerate(sorted(table.items()))
    ]
    key = []
    for number, (label, colour) in enumerate(BARS.items()):
        x = 12 + 170 * number
        key.append(
            f'<rect x="{x}" y="12" width="12" height="12" fill="{colour}"/>'
            f'<text x="{x + 18}" y="22">{label}</text>'
        )
    height = 44 + _ROW * len(lines)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LEFT + _WIDTH + 20} {height}" '
        'font-family="sans-serif" font-size="13" role="img">\n'
        "<title>Right answers as published and with this reader</title>\n"
        '<rect width="100%" height="100%" fill="#ffffff"/>\n'
        + "\n".join(key + lines)
        + "\n</svg>\n"
    )


def _chart_row(number: int, model: str, row: Counter[str]) -> str:
    """Return the bar of one model, its pieces side by side."""
    n = row["n"]
    pieces = (
        row["as written"],
        row["read"] - row["as written"],
        row["explained"] - row["read"],
        n - row["explained"],
    )
    y, x = 40 + _ROW * number, float(_LEFT)
    name = escape(model.rpartition("/")[2])
    drawn = [f'<text x="{_LEFT - 8}" y="{y + 15}" text-anchor="end">{name} ({n})</text>']
    for (label, colour), share in zip(BARS.items(), pieces, strict=True):
        width = _WIDTH * share / n
        if share:
            drawn.append(
                f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="20" fill="{colour}">'
                f"<title>{label}: {share} of {n}</title></rect>"
            )
            # A number needs some room.
            if width > 22:
                drawn.append(
                    f'<text x="{x + width / 2:.1f}" y="{y + 15}" text-anchor="middle" '
                    f'fill="{INK[label]}">{share}</text>'
                )
        x += width
    return "".join(drawn)


def main() -> None:
    """Print the table as Markdown, and draw it where asked."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("source", type=Path)
    options.add_argument("--cases", type=Path, help="the wheel with the leaderboard's cases")
    options.add_argument("--category", default="simple_python")
    options.add_argument("--chart", type=Path, help="draw the table into this SVG file")
    given = options.parse_args()
    if given.cases is None:
        answers = rows_of(given.source)
    else:
        answers = results_of(given.source, given.cases, given.category)

    table = count(answers)
    columns = ["n", "as written", "read", "explained", *CAUSES]
    print(f"| model | {' | '.join(columns)} |\n|---|{'--:|' * len(columns)}")
    for model, row in sorted(table.items()):
        print(f"| {model} | {' | '.join(str(row[column]) for column in columns)} |")
    if given.chart:
        given.chart.write_text(chart_of(table), encoding="utf-8")


if __name__ == "__main__":
    main()
