"""The tables of reports, comparisons and gates, each declared once for page, Markdown, terminal and
LaTeX.

A new section is a function of the report in `_MAKERS`, which returns None if it has nothing to say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pandas as pd

from ....core.types import VERDICTS
from ....core.values.printable import counted
from ....core.values.wording import (
    NOTHING,
    known,
    level_words,
    money,
    p_value,
    part_of,
    plain_points,
    points,
    points_span,
    seconds,
    share,
    span,
)
from ....views.templating import macro
from ....views.words import word_of
from ...frames.account import account_of
from ...scoring.match import beginning_of
from ..figures.breakdowns import EVERYTHING, leader_sentence
from ..figures.cells import ANSWER_KINDS, CALL_KINDS
from ..figures.comparison import COMPARISON_COLUMNS
from ..figures.differences import decides
from ..figures.ladder import left_out_layers, whole_ladders
from ..figures.report import Report, levels_legend
from .columns import (
    BAR,
    Cell,
    Column,
    Listing,
    Row,
    interval_bar,
    number,
)

if TYPE_CHECKING:
    from ..figures.comparison import ArmComparison
    from ..figures.conclusion import Conclusion
    from ..figures.gates import GateCheck, GateResult

TEMPLATES = "evals/reports/pages/templates"
PARTS = f"{TEMPLATES}/parts.html"
RUNGS = "Layer by layer"
WRONG = "What goes wrong"
# The parts that several tables are folded into.
WHAT = "Outcomes and verdicts"
CODES = "Layers and problem codes"
READING = "What reading adds"
HANGS = "Does the order hang on one of them?"
_FEW = 4  # counts in the line of a folded part
MAX_EXAMPLE = 240  # characters
MAX_ROWS = 60  # of four columns each, of a table that grows with the models
_MOST_CELLS = 12  # columns of the table of flips


def listings_of(report: Report) -> list[Listing]:
    listings = [make(report) for make in _MAKERS]
    return [listing for listing in listings if listing is not None and listing.rows]


def _by_cell(
    report: Report, frame: pd.DataFrame, name: str, value: str, absent: Row | None = None
) -> list[dict[Any, Any]]:
    # A row for each cell of the report that has rows in the frame: its keys, its n, and each `name`
    # with its `value`.
    cells: dict[tuple[str, ...], dict[Any, Any]] = {}
    for row in frame.to_dict("records"):
        keys = tuple(str(row[c]) for c in report.by)
        cells.setdefault(keys, {"n": row["n"], **(absent or {})})[row[name]] = row[value]
    every = report.frame[list(report.by)].to_dict("records")
    found = ((cell, cells.get(tuple(map(str, cell.values())))) for cell in every)
    return [cell | values for cell, values in found if values is not None]


def _named(names: Iterable[str]) -> list[Column]:
    # The columns that name a cell.
    return [Column(word_of(n), "l k", n, lambda name: str(name) or NOTHING) for n in names]


def _keys(report: Report) -> list[Column]:
    return _named(report.by)


def _interval(report: Report, n: str = "n") -> Column:
    def shown(cell: Row) -> str:
        return span(cell["ci_low"], cell["ci_high"], cell[n]) or NOTHING

    return Column(f"{level_words(report.level)} interval", text=shown)


def _against(text: Callable[[Row], Cell]) -> Callable[[Row], Cell]:
    # Of a figure that a cell has only with a difference from the baseline.
    return lambda cell: NOTHING if pd.isna(cell["difference"]) else text(cell)


_P_HOLM = _against(lambda cell: p_value(cell["p_holm"]))


def _bounds(cell: Row, name: str) -> str:
    # Two figures where the missing trials decide which it is.
    low, high = share(cell[name], cell["n_cases"]), share(cell[f"{name}_best"], cell["n_cases"])
    return low if low == high else f"{low} to {high}"


def _share(name: str, n: str = "n") -> Callable[[Row], Cell]:
    # A column of shares of another column's count.
    return lambda row: share(row[name], row[n])


def success(report: Report) -> Listing:
    """Return the rate of each cell with its interval, and its difference from the baseline. Where
    nothing has a target, what is known without one.
    """
    if not report.has_targets:
        return ungraded(report)
    baseline = report.baseline
    extra = [c for c in ("missing", "ungraded") if report.frame[c].any()]

    def rates(only: str, drop: int, *names: str) -> list[Column]:
        return [Column(word_of(n), text=_share(n), only=only, drop=drop) for n in names]

    columns = [
        *_keys(report),
        Column("success", "rate", text=_share("success")),
        _interval(report),
        Column(
            f"0{'100 %':>{BAR - 1}}",
            "t",
            text=lambda c: interval_bar(c["ci_low"], c["success"], c["ci_high"]),
            only="text",
            drop=1,
        ),
        Column("n"),
        Column("cases", key="n_cases"),
        *(Column(name, only="html text md") for name in extra),
        *rates("text tex", 5, "strict"),
        *rates("text", 3, "repaired", "coerced"),
        *rates("text tex", 5, "naive"),
        *rates("text", 2, "fabricated", "coercion_rate"),
    ]
    if baseline is None:
        return Listing("Success", "", columns, report.frame.to_dict("records"))

    def signed(*names: str) -> Callable[[Row], Cell]:
        return _against(lambda c: " to ".join(points(c[name], c["n"]) for name in names))

    def gap_tex(cell: Row) -> str:
        # In one column, and without signs that a plain LaTeX lacks.
        gap, low, high = (
            points(cell[c], cell["n"]) for c in ("difference", "diff_low", "diff_high")
        )
        return f"{gap} [{low}, {high}]"

    plain: dict[str, Any] = {"only": "text md", "drop": 4}
    columns += [
        Column(f"against {baseline}", text=_against(gap_tex), only="tex"),
        Column(f"Δ {baseline}", text=signed("difference"), **plain),
        Column("Δ interval", text=signed("diff_low", "diff_high"), **plain),
        Column("p Holm", text=_P_HOLM, drop=4),
    ]
    return Listing("Success", "", columns, report.frame.to_dict("records"))


def ungraded(report: Report) -> Listing:
    """Return what is known of the answers without a target, cell by cell."""
    frame = report.ungraded
    columns = (
        *_keys(report),
        Column("answers", key="n"),
        Column("with a call", key="attempts"),
        *_executable(report, [kind for kind in ANSWER_KINDS if frame[kind].any()]),
    )
    lead = (
        "Of answers with a call, or with something that looks like one, the share whose calls may "
        "all be executed. Then, of all answers, what they are: the worst verdict of their calls, "
        "or text."
    )
    rows = frame.to_dict("records")
    answer = account_of(report.headline[report.headline["target"].isna()]).first
    return Listing("Without a target", lead, columns, rows, answer=answer)


def _executable(report: Report, kinds: Sequence[str], n: str = "attempts") -> list[Column]:
    return [
        Column("executable", "rate", text=_share("executable", n)),
        _interval(report, n),
        *(Column(word_of(kind), text=_share(kind), drop=1) for kind in kinds),
    ]


def _tools(report: Report) -> Listing | None:
    # Where answers have targets, success says more than whether a call may be executed.
    if report.has_targets:
        return None
    frame = report.tools
    kinds = [kind for kind in CALL_KINDS if frame[kind].any()]
    columns = (Column("tool", "l k"), Column("calls", key="n"), *_executable(report, kinds, "n"))
    lead = "Of the calls of each tool the share that may be executed, and the shares of verdicts."
    rows = frame.head(MAX_ROWS).to_dict("records")
    answer = f"{counted(len(frame), 'tool')}, {counted(int(frame['n'].sum()), 'call')}"
    return Listing("Tool by tool", lead, columns, rows, answer=answer)


def _beside_graded(report: Report) -> Listing | None:
    # Where nothing is graded, this is the first table.
    return ungraded(report) if report.has_targets else None


def _ladder(report: Report) -> Listing | None:
    # Without a target there is nothing that help could gain.
    if not report.has_targets:
        return None

    def step(lower: str, higher: str, head: str = "") -> Column:
        return Column(
            head or higher,
            text=lambda c: share(c[higher], c["n"]) + _gain(c[higher] - c[lower], c["n"]),
        )

    rates = ("naive", "fabricated", "repair_rate", "coercion_rate")
    columns = (
        *_keys(report),
        Column("strict", text=_share("strict")),
        step("strict", "repaired"),
        step("repaired", "safe"),
        step("safe", "coerced", f"coerced ({report.coerced_policy})".replace("_", " ")),
        *(Column(name.replace("_", " "), text=_share(name)) for name in rates),
        Column("unread"),
    )
    lead = (
        "What the same answers give as written, after repairs, with lossless coercion, and with "
        "the looser one; in brackets what a step gained, in points. Next to it is what a naive "
        "parser makes of them, the share of answers with something fabricated, and of answers with "
        "calls the share that was repaired or coerced. Unread are the answers that look like a "
        f"call and hold none that could be read. {levels_legend(report)}"
    )
    left_out = left_out_layers(report.ladder)
    if len(left_out) == 2:  # else `_rungs` says it
        lead = f"{lead} {' '.join(left_out)}"
    cells = report.frame
    gained = (cells["safe"] - cells["strict"]).abs()
    answer = f"nothing: as written and with all help it is the same in {_every(len(cells))}"
    if gained.max() > 0:
        best = cells.to_dict("records")[int(gained.argmax())]
        name = f"{report.cell_name(best)}: " if len(cells) > 1 else ""
        steps = (share(best[level], best["n"]) for level in ("strict", "safe"))
        answer = f"{name}{' as written, '.join(steps)} with repairs and lossless coercion"
    rows = cells.to_dict("records")
    return Listing("Less and more help", lead, columns, rows, answer=answer, part=READING)


def _every(cells: int) -> str:
    return "the one cell" if cells == 1 else f"all {cells} cells"


def _rungs(report: Report) -> Listing | None:
    # Three layers, one rung after another, where there are arms for more than reading.
    left_out = left_out_layers(report.ladder)
    if len(left_out) == 2 or not report.has_targets:
        return None
    columns = (
        *_keys(report),
        Column("layer", "l"),
        Column("rung", "l", "level"),
        Column("success", form=share),
        Column("gain, points", text=lambda row: points(row["gain"]) if row["layer"] else NOTHING),
        Column(f"{level_words(report.level)} interval", text=_gain_interval),
        Column("p (Holm)", key="p_holm", form=p_value),
        Column(
            "cases", text=lambda row: NOTHING if pd.isna(row["n_cases"]) else f"{row['n_cases']:,}"
        ),
    )
    lead = (
        "What each layer of type safety gains over the rung before, on the same cases. The prompt: "
        "plain is the arm without type rules, strict this arm, both as written. Reading: the same "
        "answers repaired and coerced. Feedback: the calls that are still refused, as the model "
        "corrected them. " + " ".join(left_out)
    )
    whole = whole_ladders(report.ladder, report.by, report.view.arms)
    rungs = whole[whole["level"] != "naive"]
    lead += " " + decides(rungs["gain_low"], rungs["gain_high"], rungs["p_holm"])
    return Listing(RUNGS, lead.strip(), columns, rungs.to_dict("records"), part=READING)


def _gain_interval(row: Row) -> str:
    # A layer that changed nothing has an upper end and no spread.
    if known(row["changed"]) == 0:
        return f"no case differs, at most {share(row['gain_high'], row['n_cases'])}"
    return points_span(row["gain_low"], row["gain_high"])


def _gain(gain: float, n: int) -> str:
    # With its sign even where it rounds to no point.
    if pd.isna(gain) or not gain:
        return ""
    text = points(gain, n)
    # In many trials even less than half a point is a case that was gained or lost.
    if text == "0":
        text = "+ < 1" if gain > 0 else "− < 1"
    return f" ({text})"


def _outcomes(report: Report) -> Listing:
    order = list(dict.fromkeys(report.waterfall["outcome"]))
    # An outcome that a cell does not have has no row in the waterfall.
    rows = _by_cell(report, report.waterfall, "outcome", "n", dict.fromkeys(order, 0))
    columns = [*_keys(report), *(Column(word_of(outcome), key=outcome) for outcome in order)]
    answer = _most_often(report.waterfall, "outcome") if report.has_targets else ""
    lead = "Every trial has one outcome. A parser that failed is never a model that stayed silent."
    return Listing("What happened", lead, columns, rows, answer=answer, part=WHAT)


def _most_often(frame: pd.DataFrame, name: str) -> str:
    counts = frame.groupby(name, sort=False)["n"].sum().sort_values(ascending=False)
    return " · ".join(f"{word_of(str(word))} {n:,}" for word, n in counts.head(_FEW).items())


def failures(report: Report) -> Listing:
    """Return the failures by cause: the word for it, its code, and what one says."""

    def code(row: Row) -> str:
        return str(row["sub_code"] or row["outcome"])

    columns = (
        Column("cause", "l k", text=lambda row: word_of(code(row))),
        Column("code", "l k c", text=code),
        Column("n"),
        Column("share", text=lambda row: share(row["share"], row["n"] / row["share"])),
        Column("for example", text=lambda r: beginning_of(r["example"], MAX_EXAMPLE), only="md"),
        Column("trials", "t", "trial_ids", only="text md"),
    )
    rows: dict[tuple[str, str], dict[Any, Any]] = {}
    for row in report.failures.to_dict("records"):
        # Outcomes may share a cause, which is one to a reader.
        same = rows.setdefault((word_of(code(row)), code(row)), {**row, "n": 0, "share": 0.0})
        same["n"] += row["n"]
        same["share"] += row["share"]
    ranked = sorted(rows.values(), key=lambda row: -row["n"])
    return Listing(WRONG, "", columns, ranked)


def _layers(report: Report) -> Listing:
    columns = (
        Column("layer", "l k full"),
        Column("found", "l c"),
        Column("n"),
        Column("share", text=lambda row: share(row["share"], row["n"] / row["share"])),
        Column("meaning", "l w"),
        Column("trials", "t", "trial_ids", only="text"),
    )
    lead = "Weighed over all that was recorded of each answer; `trial.blame` has the evidence."
    rows = report.layers.to_dict("records")
    counts = report.layers.groupby("layer", sort=False)["n"].sum().sort_values(ascending=False)
    answer = " · ".join(f"{word_of(str(layer))} {n:,}" for layer, n in counts.head(_FEW).items())
    examples = _first_ids(report.layers)
    return Listing("Which layer broke it", lead, columns, rows, examples, answer, CODES)


def codes(report: Report) -> Listing:
    """Return the problem codes."""
    columns = (
        Column("code", "l k full c"),
        Column("n"),
        Column("share", text=lambda row: share(row["share"], row["n"] / row["share"])),
        Column("success", form=share, only="html md"),
        Column("meaning", "l w"),
        Column("trials", "t", "trial_ids", only="text"),
    )
    lead = "What the parser complained of, and how often the trial was a success all the same."
    rows = report.codes.to_dict("records")
    answer = " · ".join(f"{word_of(row['code'])} {row['n']:,}" for row in rows[:_FEW])
    return Listing("Problem codes", lead, columns, rows, _first_ids(report.codes), answer, CODES)


def _first_ids(frame: pd.DataFrame) -> list[str]:
    return [str(ids).split(", ")[0] for ids in frame["trial_ids"]]


def _flips(report: Report) -> Listing:
    def shown(rate: float) -> str:
        return {0.0: "✗", 1.0: "✓"}.get(float(rate), share(rate))

    grid = report.flip_grid
    names = [name for name in grid.columns if name != "case_id"]
    columns = [Column("case", "l k full", "case_id")]
    columns += [Column(str(name), key=name, form=shown) for name in names[:_MOST_CELLS]]
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
    rows = grid.head(MAX_ROWS).to_dict("records")
    answer = part_of(len(grid), report.headline["case_id"].nunique())
    return Listing("Cases that flip", lead, columns, rows, answer=f"{answer} between cells")


def _verdicts(report: Report) -> Listing:
    # A frame of an older version has none.
    frame = report.verdicts
    words = [word for word in VERDICTS if (frame["verdict"] == word).any()]
    rows = _by_cell(report, frame, "verdict", "n", dict.fromkeys(words, 0))
    lead = (
        f"The worst verdict on the calls of each answer, under the policy {report.policy}. Only "
        "calls as written and after repair may be executed; not checked: a part of the tool's "
        "schema cannot be used, so that not every value was checked; no call: there is none."
    )
    columns = (*_keys(report), *(Column(word_of(word), key=word) for word in words))
    answer = ""
    if not report.has_targets:  # else the outcomes say it
        answer = _most_often(frame, "verdict")
    return Listing("Verdicts", lead, columns, rows, answer=answer, part=WHAT)


def _rescues(report: Report) -> Listing:
    columns = (
        Column("rule", "l k full c"),
        Column("stage", "l"),
        Column("applied"),
        Column("trials"),
        Column("rescued"),
        Column("false rescues"),
        Column("false-rescue rate", key="false_rescue_rate", form=share),
        Column("harmed"),
        Column("values right"),
        Column("values wrong"),
        Column("lossless", form=lambda lossless: "yes" if lossless else "no"),
        Column("meaning", "l w"),
    )
    lead = (
        f"Under the policy {report.coerced_policy}. Rescued: wrong without the stage, right with "
        "it. False rescue: made valid, and a value that this rule changed is wrong; what else is "
        "wrong in the call is no fault of the rule. Harmed: right without it."
    )
    rows = report.rescues.to_dict("records")
    times = int(report.rescues["applied"].sum())
    answer = f"{counted(len(rows), 'rule')}, {counted(times, 'time')}"
    examples = _first_ids(report.rescues)
    return Listing(
        "Rescues", lead, columns, rows, examples, answer, "Repairs and coercions by rule"
    )


def _repeats(report: Report) -> Listing:
    # k is 1 where a cell pools arms: then its answers repeat nothing.
    repeated = report.frame[report.frame["k"] > 1]
    columns = (
        *_keys(report),
        Column("k"),
        Column("success", "rate", text=_share("success")),
        Column("pass@k", text=lambda cell: _bounds(cell, "pass_at_k")),
        Column("pass^k", text=lambda cell: _bounds(cell, "pass_all_k")),
        Column("distinct answers", key="distinct", form=share),
    )
    lead = (
        "Every case was asked k times. pass@k: at least one of k trials succeeds, pass^k: all of "
        "them do; both are left out where all trials of each case are copies of one answer. "
        "Distinct: the mean share of different answers among a case's trials."
    )
    distinct = repeated["distinct"].dropna()
    answer = f"{_between(distinct)} of a case's answers are different" if len(distinct) else ""
    rows = repeated.to_dict("records")
    return Listing("The same question again", lead, columns, rows, answer=answer)


def _between(rates: pd.Series[Any]) -> str:
    return " to ".join(dict.fromkeys((share(rates.min()), share(rates.max()))))


def _conversations(report: Report) -> Listing:
    columns = (
        *_keys(report),
        Column("conversations", key="n"),
        Column("turns", key="turns_mean", form="{:.1f}".format),
        Column("right at the end", key="answer", form=share),
        Column("of", key="n_answer"),
        Column("calls run", key="ran"),
        Column("failed"),
        Column("rejected"),
        Column("tokens", key="tokens_mean", form=number(".0f")),
        Column("cost", key="cost", form=money),
        Column("cost a right answer", key="cost_per_answer", form=money),
        Column("why they ended", "l w", "stops"),
    )
    lead = (
        "Outcomes and success speak of the first turn; this is what came of the whole. Rejected "
        "calls were not run."
    )
    rows = report.conversations.to_dict("records")
    answer = counted(sum(row["n"] for row in rows), "conversation")
    return Listing("Conversations", lead, columns, rows, answer=answer)


def _sensitivity(report: Report) -> Listing:
    frame = report.sensitivity
    rows = _by_cell(report, frame, "matching", "success")
    levels = dict.fromkeys(frame["matching"])
    columns = [*_keys(report), Column("n")]
    columns += [Column(word_of(level), text=_share(level)) for level in levels]
    lead = (
        "Success if values were compared less strictly: case of letters, then punctuation and "
        "spaces, then numbers to a millionth, and last any value at all under the right names. A "
        "wide step speaks of targets that are too narrow or of careless spelling, not of calls "
        "that could not be read."
    )
    gain = float(frame["gain"].max()) if len(frame) else 0.0
    answer = f"at most {plain_points(round(gain, 3))} points more when compared less strictly"
    return Listing("How strict the comparison is", lead, columns, rows, answer=answer, part=HANGS)


def _left_out(report: Report) -> Listing | None:
    if report.left_out_columns is None:
        return None
    of, over = report.left_out_columns
    frame = report.left_out
    rows: dict[Any, dict[Any, Any]] = {}
    for row in frame.to_dict("records"):
        # A rate that is not known has no rank.
        rank = "" if pd.isna(row["rank"]) else f" ({row['rank']})"
        shown = f"{share(row['success'], row['n'])}{rank}"
        rows.setdefault(row[of], {of: row[of]})[None, row["left_out"]] = shown
    parts = list(dict.fromkeys(frame["left_out"]))
    # "all" and one other would say the same twice; hundreds of figures nobody reads.
    if len(parts) < 3 or len(parts) * len(rows) > MAX_ROWS * 4:
        return None
    columns = _named([of])
    columns += [
        Column(
            f"without {part}" if part != EVERYTHING else "all",
            text=lambda row, part=part: row[None, part],  # type: ignore[misc]
        )
        for part in parts
    ]
    leader = leader_sentence(frame, of, over)
    lead = f"Success and rank with each {over.replace('_', ' ')} left out. {leader}"
    answer = leader.rstrip(".")
    return Listing(HANGS, lead, columns, list(rows.values()), answer=answer)


def _missing(report: Report) -> Listing:
    columns = (
        *_keys(report),
        Column("success", "rate", text=_share("success")),
        Column("n"),
        Column("missing"),
        Column("worst – best", text=lambda c: span(c["worst"], c["best"], c["n"])),
        Column("why", "l w", "reason"),
    )
    lead = "Worst: every missing trial failed. Best: every one succeeded."
    rows = report.frame[report.frame["missing"] > 0].to_dict("records")
    answer = counted(int(report.frame["missing"].sum()), "trial")
    return Listing("What is missing", lead, columns, rows, answer=answer)


def _spent(report: Report) -> Listing | None:
    frame = report.frame
    if frame[["latency_p50", "cost", "tokens_mean"]].isna().all(axis=None):
        return None
    columns = (
        *_keys(report),
        Column("latency p50", key="latency_p50", form=seconds),
        Column("p95", key="latency_p95", form=seconds),
        Column("tokens a reply", key="tokens_mean", form=number(".0f")),
        Column("cost", key="cost", form=money),
        Column("cost a success", key="cost_per_success", form=money),
    )
    lead = "Latency is from request to end, without waiting in the queue."
    middle, late = (frame[c].dropna() for c in ("latency_p50", "latency_p95"))
    parts = []
    if len(middle):
        parts.append(f"median {seconds(middle.median())}, p95 up to {seconds(late.max())}")
    if frame["cost"].notna().any():
        parts.append(f"{money(frame['cost'].sum())} in all")
    rows = frame.to_dict("records")
    return Listing("Time and money", lead, columns, rows, answer="; ".join(parts))


# In the order of a report.
_MAKERS: Sequence[Callable[[Report], Listing | None]] = (
    _layers, codes, _outcomes, _verdicts, _flips, _ladder, _rungs, _rescues, _left_out,
    _sensitivity, _repeats, _conversations, _beside_graded, _tools, _missing, _spent,
)  # fmt: skip


def gate_checks(gate: GateResult) -> Listing:
    """Return the checks of a gate, those that fail first."""

    def verdict(check: GateCheck) -> Cell:
        # The first cell of the row names the cell already.
        sentence = check.sentence.removeprefix(f"{check.cell}: ")
        return f"✓ {sentence}" if check.ok else macro(PARTS, "broken", sentence)

    columns = (Column("cell", "l k full"), Column("", "l w", "check", verdict))
    title = "Gate passed"
    if not gate.ok:
        title = f"Gate failed: {len(gate.failures)} of {len(gate.checks)} checks"
    # Sorting is stable, so that each half keeps the order of cells and thresholds.
    checks = sorted(gate.checks, key=lambda check: check.ok)
    rows = [asdict(check) | {"check": check} for check in checks]
    return Listing(title, "", columns, rows)


def _points(row: Row) -> str:
    told = points(row["difference"], row["n_cases"])
    return told if told == NOTHING else f"{told} points"


def strata_of(c: ArmComparison) -> list[str]:
    """Return the columns of a comparison's frame that hold its rows apart."""
    return [str(name) for name in c.frame if name not in COMPARISON_COLUMNS]


def comparison(c: ArmComparison) -> Listing:
    """Return the figures of a comparison, differences in points."""
    columns = (
        *_named(strata_of(c)),
        Column("cases", key="n_cases"),
        Column(c.a, text=_share("success_a", "n_cases")),
        Column(c.b, text=_share("success_b", "n_cases")),
        Column("difference", "rate", text=_points),
        Column(
            f"{level_words(c.level)} interval",
            text=lambda r: points_span(r["ci_low"], r["ci_high"], r["n_cases"]),
        ),
        Column("p", text=_P_HOLM),
        Column("verdict", text=lambda row: row[None]),
        Column(f"only {c.a}", key="only_a", drop=1),
        Column(f"only {c.b}", key="only_b", drop=1),
    )
    verdicts = c.regression().frame["verdict"]
    figures = zip(c.frame.to_dict("records"), verdicts, strict=True)
    rows = [{**row, None: verdict} for row, verdict in figures]  # no stratum has this name
    return Listing("", "", columns, rows)


def contrast(c: Conclusion, level: float) -> Listing:
    """Return the rows that a conclusion is made from, the one arm against each other."""
    frame = c.frame if c.frame is not None else pd.DataFrame()
    rows = frame.to_dict("records")
    pairs = {(row["first"], row["second"]) for row in rows}
    names: list[Column] = [
        Column(word_of(c.on), "l k", "first"),
        Column("against", "l k", "second"),
    ]
    heads = ("success", "of the other")
    if len(pairs) == 1:
        names, heads = [], next(iter(pairs))
    columns = (
        *names,
        *_named(c.strata),
        Column("cases", key="n_cases"),
        *(
            Column(head, text=_share(f"success_{side}", "n_cases"))
            for head, side in zip(heads, ("first", "second"), strict=True)
        ),
        Column("difference", "rate", text=_points),
        Column(
            f"{level_words(level)} interval",
            text=lambda r: points_span(r["low"], r["high"], r["n_cases"]),
        ),
        Column("p (Holm)", text=lambda r: p_value(r["p_holm"])),
    )
    return Listing("", c.note, columns, rows)


def flipped_cases(c: ArmComparison, most: int | None = None) -> Listing:
    """Return the cases that flipped, with a trial of each side."""
    # Every flip is from one majority to the other, so that the rates say little more.
    flips = c.flips if most is None else c.flips.head(most)
    texts = flips.drop(columns=["success_a", "success_b"]).astype(object)
    sides = {f"{what}_{side}": f"{words}{name}" for side, name in (("a", c.a), ("b", c.b))
             for what, words in (("outcome", ""), ("trial_id", "trial of "))}  # fmt: skip
    columns = [
        Column(sides[n], "l k", n, word_of if n.startswith("outcome") else str)
        if n in sides
        else _named([n])[0]
        for n in map(str, texts)
    ]
    rows = texts.where(texts.notna(), "").to_dict("records")
    return Listing(f"Flipped cases: {len(c.flips):,}", "", columns, rows)


def unpaired_cases(c: ArmComparison, most: int) -> Listing:
    """Return the cases that only one side has."""
    columns = [Column(str(name).replace("_", " "), "l", str(name)) for name in c.unpaired]
    return Listing("", "", columns, c.unpaired.head(most).to_dict("records"))
