"""The tables of a report that HTML and Markdown show alike: of everything but rates and outcomes.

A new section is a function of the report in `_MAKERS`, which returns None if it has nothing to say.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from ....core.types import VERDICTS
from ....core.values.printable import counted
from ..figures.breakdowns import EVERYTHING, leader_sentence
from ..figures.notes import levels_legend
from .numbers import money, percent, points, span

if TYPE_CHECKING:
    from ..figures.report import Report

CODES_TITLE = "Problem codes"
_MOST_CELLS = 12  # columns of the table of flips
MAX_ROWS = 60  # of four columns each, of a table that grows with the models


@dataclass(frozen=True)
class Section:
    """A table with its title and lead.

    `head` has (name, class) of each column. Cells are plain text.

    Classes: l is left-aligned, k names the row, w holds a sentence, c is code, full takes a line of
    its own on a phone. `examples` has a trial id for each row.
    """

    title: str
    lead: str  # what a reader has to know to read the table
    head: tuple[tuple[str, str], ...]
    rows: tuple[tuple[str, ...], ...]
    examples: tuple[str, ...] = ()


def sections_of(report: Report) -> list[Section]:
    """Return the tables that have rows, in the order of a report."""
    sections = []
    for make in _MAKERS:
        section = make(report)
        if section is not None and section.rows:
            sections.append(section)
    return sections


def key_head(report: Report) -> list[tuple[str, str]]:
    """Return the heads of the columns that name a cell."""
    return [(c.replace("_", " "), "l k") for c in report.by]


def _keys(report: Report, row: Any) -> list[str]:
    return [str(row[c]) or "–" for c in report.by]


def _codes(report: Report) -> Section:
    head = (
        ("code", "l k full c"),
        ("trials", ""),
        ("share", ""),
        ("success", ""),
        ("meaning", "l w"),
    )
    rows = [
        (c["code"], str(c["n"]), percent(c["share"]), percent(c["success"]), c["meaning"])
        for c in report.codes.to_dict("records")
    ]
    lead = "What the parser complained of, and how often the trial was a success all the same."
    return Section(CODES_TITLE, lead, head, tuple(rows), _first_ids(report.codes))


def _first_ids(frame: pd.DataFrame) -> tuple[str, ...]:
    return tuple(str(ids).split(", ")[0] for ids in frame["trial_ids"])


def _verdicts(report: Report) -> Section | None:
    # A frame of an older version has none.
    frame = report.verdicts
    if frame.empty:
        return None
    words = [word for word in VERDICTS if (frame["verdict"] == word).any()]
    cells: dict[tuple[str, ...], dict[str, int]] = {}
    for row in frame.to_dict("records"):
        cells.setdefault(tuple(_keys(report, row)), {})[row["verdict"]] = row["n"]
    rows = [
        (*keys, *(str(counts.get(word, 0)) for word in words)) for keys, counts in cells.items()
    ]
    lead = (
        f"The worst verdict on the calls of each answer, under the policy {report.policy}. Only "
        "clean and repaired calls may be executed; none: the answer holds no call."
    )
    head = (*key_head(report), *((word, "") for word in words))
    return Section("Verdicts", lead, head, tuple(rows))


def _rescues(report: Report) -> Section:
    head = (
        ("rule", "l k full c"),
        ("stage", "l"),
        ("applied", ""),
        ("trials", ""),
        ("rescued", ""),
        ("false rescues", ""),
        ("false-rescue rate", ""),
        ("harmed", ""),
        ("values right", ""),
        ("values wrong", ""),
        ("lossless", ""),
        ("meaning", "l w"),
    )
    counts = ("applied", "trials", "rescued", "false_rescues")
    rows = [
        (
            c["rule"],
            c["stage"],
            *(str(c[k]) for k in counts),
            percent(c["false_rescue_rate"]),
            *(str(c[k]) for k in ("harmed", "values_right", "values_wrong")),
            "yes" if c["lossless"] else "no",
            c["meaning"],
        )
        for c in report.rescues.to_dict("records")
    ]
    lead = (
        f"Under the policy {report.coerced_policy}. Rescued: wrong without the stage, right with "
        "it. False rescue: made valid, and a value that this rule changed is wrong; what else is "
        "wrong in the call is no fault of the rule. Harmed: right without it."
    )
    return Section("Rescues", lead, head, tuple(rows), _first_ids(report.rescues))


def _repeats(report: Report) -> Section | None:
    # k is 1 where a cell pools arms: then its answers repeat nothing.
    repeated = report.frame[report.frame["k"] > 1]
    head = (
        *key_head(report),
        ("k", ""),
        ("success", "rate"),
        ("pass@k", ""),
        ("pass^k", ""),
        ("noise", ""),
        ("distinct answers", ""),
    )
    rates = ("success", "pass_at_k", "pass_all_k", "noise", "distinct")
    rows = [
        (*_keys(report, c), str(c["k"]), *(percent(c[n]) for n in rates))
        for c in repeated.to_dict("records")
    ]
    lead = (
        "Every case was asked k times. pass@k: at least one of k trials succeeds, pass^k: all of "
        "them do; both are left out where all trials of each case are copies of one answer. Noise: "
        "how often two trials of one case disagree. Distinct: the mean share of different answers "
        "among a case's trials."
    )
    return Section("The same question again", lead, head, tuple(rows))


def _flips(report: Report) -> Section | None:
    grid = report.flip_grid
    names = [name for name in grid.columns if name != "case_id"]
    head = (("case", "l k full"), *((str(name), "") for name in names[:_MOST_CELLS]))
    rows = [
        (str(row["case_id"]), *(_share(row[name]) for name in names[:_MOST_CELLS]))
        for row in grid.head(MAX_ROWS).to_dict("records")
    ]
    lead = (
        "Cases that most trials of one cell get right and most of another get wrong: ✓ all trials "
        "of the case succeed, ✗ none, else their share. Those on which the cells differ most come "
        "first."
    )
    if len(grid) > MAX_ROWS or len(names) > _MOST_CELLS:
        flips = "flips" if len(grid) == 1 else "flip"
        lead += (
            f" {counted(len(grid), 'case')} {flips} between {len(names)} cells; report.flip_grid "
            "has all."
        )
    return Section("Cases that flip", lead, head, tuple(rows))


def _share(share: float) -> str:
    if math.isnan(share):
        return "–"
    return {0.0: "✗", 1.0: "✓"}.get(float(share), percent(share))


def _conversations(report: Report) -> Section:
    head = (
        *key_head(report),
        ("conversations", ""),
        ("turns", ""),
        ("right at the end", ""),
        ("of", ""),
        ("calls run", ""),
        ("failed", ""),
        ("rejected", ""),
        ("tokens", ""),
        ("cost, USD", ""),
        ("cost a right answer", ""),
        ("why they ended", "l w"),
    )
    rows = [
        (
            *_keys(report, c),
            str(c["n"]),
            f"{c['turns_mean']:.1f}",
            percent(c["answer"]),
            str(c["n_answer"]),
            *(str(c[k]) for k in ("ran", "failed", "rejected")),
            _number(c["tokens_mean"], ".0f"),
            money(c["cost"]),
            money(c["cost_per_answer"]),
            c["stops"],
        )
        for c in report.conversations.to_dict("records")
    ]
    lead = (
        "Outcomes and success speak of the first turn; this is what came of the whole. Rejected "
        "calls were not run."
    )
    return Section("Conversations", lead, head, tuple(rows))


def _sensitivity(report: Report) -> Section | None:
    frame = report.sensitivity
    if frame.empty:
        return None
    levels = list(dict.fromkeys(frame["matching"]))
    # Every cell that was compared anew has a row for each level, in their order.
    cells: dict[tuple[str, ...], list[dict[Any, Any]]] = {}
    for row in frame.to_dict("records"):
        cells.setdefault(tuple(str(row[c]) for c in report.by), []).append(row)
    rows = []
    for cell in report.frame.to_dict("records"):
        compared = cells.get(tuple(str(cell[c]) for c in report.by))
        if compared:
            rates = [percent(row["success"]) for row in compared]
            rows.append((*_keys(report, cell), str(compared[0]["n"]), *rates))
    head = (*key_head(report), ("n", ""), *((level, "") for level in levels))
    lead = (
        "Success if values were compared less strictly: case of letters, then punctuation and "
        "spaces, then numbers to a millionth, and last any value at all beside the right names. A "
        "wide step speaks of targets that are too narrow or of careless spelling, not of calls "
        "that could not be read."
    )
    return Section("How strict the comparison is", lead, head, tuple(rows))


def _left_out(report: Report) -> Section | None:
    if report.left_out_columns is None:
        return None
    of, over = report.left_out_columns
    frame = report.left_out
    wide = frame.pivot(index=of, columns="left_out", values="success")
    ranks = frame.pivot(index=of, columns="left_out", values="rank")
    columns = list(dict.fromkeys(frame["left_out"]))
    names = list(dict.fromkeys(frame[of]))
    # "all" and one other would say the same twice; hundreds of figures nobody reads.
    if len(columns) < 3 or len(columns) * len(names) > MAX_ROWS * 4:
        return None
    rows = [
        (str(name), *(f"{percent(wide.loc[name, c])} ({ranks.loc[name, c]})" for c in columns))
        for name in names
    ]
    head = (
        (of.replace("_", " "), "l k"),
        *((f"without {c}" if c != EVERYTHING else "all", "") for c in columns),
    )
    leader = leader_sentence(frame, of, over)
    lead = f"Success and rank with each {over.replace('_', ' ')} left out. {leader}"
    return Section("Does the order hang on one of them?", lead, head, tuple(rows))


def _spent(report: Report) -> Section | None:
    frame = report.frame
    if frame[["latency_p50", "cost", "tokens_mean"]].isna().all(axis=None):
        return None
    head = (
        *key_head(report),
        ("latency p50, s", ""),
        ("p95, s", ""),
        ("tokens a reply", ""),
        ("cost, USD", ""),
        ("cost a success, USD", ""),
    )
    rows = [
        (
            *_keys(report, c),
            _number(c["latency_p50"], ".2f"),
            _number(c["latency_p95"], ".2f"),
            _number(c["tokens_mean"], ".0f"),
            money(c["cost"]),
            money(c["cost_per_success"]),
        )
        for c in frame.to_dict("records")
    ]
    return Section(
        "Time and money",
        "Latency is from request to end, without waiting in the queue.",
        head,
        tuple(rows),
    )


def _number(x: Any, form: str) -> str:
    if pd.isna(x):
        return "–"
    return format(x, form)


def ladder_section(report: Report) -> Section:
    """Shares of the same trials with less and more help, and the gain of each help."""
    shares = ("fabricated", "repair_rate", "coercion_rate")
    names = ("strict", "repaired", "safe", f"coerced ({report.coerced_policy})", "naive")
    head = (*key_head(report), *((n.replace("_", " "), "") for n in (*names, *shares, "unread")))
    rows = []
    for cell in report.frame.to_dict("records"):
        steps = [percent(cell["strict"])]
        for lower, higher in (("strict", "repaired"), ("repaired", "safe"), ("safe", "coerced")):
            steps.append(percent(cell[higher]) + _gain(cell[higher] - cell[lower]))
        rates = [percent(cell[name]) for name in ("naive", *shares)]
        rows.append((*_keys(report, cell), *steps, *rates, f"{cell['unread']:,}"))
    lead = (
        "What the same answers give as written, after repairs, with lossless coercion, and with "
        "the looser one; in brackets what a step gained, in points. Beside it what a naive parser "
        "makes of them, the share of answers with something fabricated, and of answers with calls "
        "the share that was repaired or coerced. Unread are the answers that look like a call and "
        f"hold none that could be read. {levels_legend(report)}"
    )
    return Section("Less and more help", lead, head, tuple(rows))


def _gain(gain: float) -> str:
    # With its sign even where it rounds to no point.
    if pd.isna(gain) or not gain:
        return ""
    text = points(gain)
    # In many trials even less than half a point is a case that was gained or lost.
    if text == "0":
        text = "+<1" if gain > 0 else "−<1"
    return f" ({text})"


def bounds_section(report: Report) -> Section | None:
    """Return the range of the rates that the missing trials leave open.

    None if nothing is missing.
    """
    frame = report.frame[report.frame["missing"] > 0]
    head = (
        *key_head(report),
        ("success", "rate"),
        ("n", ""),
        ("missing", ""),
        ("worst – best, %", ""),
        ("why", "l w"),
    )
    rows = [
        (
            *_keys(report, c),
            percent(c["success"]),
            str(c["n"]),
            str(c["missing"]),
            span(c["worst"], c["best"]),
            c["reason"],
        )
        for c in frame.to_dict("records")
    ]
    lead = "Worst: every missing trial failed. Best: every one succeeded."
    return Section("What is missing", lead, head, tuple(rows)) if rows else None


# In the order of a report.
_MAKERS: Sequence[Callable[[Report], Section | None]] = (
    _flips, _verdicts, _codes, _rescues, _repeats, _conversations, _sensitivity, _left_out,
    bounds_section, _spent,
)  # fmt: skip
