"""Reports as HTML without any outside reference: styles inline, intervals as SVG, readable without
a script.

How a report is laid out is in `templates`. This file gathers its contents, as text that the
templates escape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from ....views.templating import Markup, macro, render
from ...scoring.outcomes import OUTCOMES, SUB_CODES
from ..figures.cells import UNRECORDED, groups
from .failures_html import BEHIND, FailingCell, failing_cells
from .html_parts import (
    PARTS,
    TEMPLATES,
    Cell,
    Table,
    fragment,
    gate_view,
    unfolding_trials,
)
from .html_parts import page as html_page
from .matrix_html import render_matrix
from .numbers import percent, points, span
from .svg import interval_svg, ladder_key, ladder_svg
from .tables import Section, key_head, ladder_section, sections_of
from .text import headline, leader_of
from .tradeoffs import TITLE as TRADEOFFS
from .tradeoffs import Tradeoff, tradeoffs_of

if TYPE_CHECKING:
    from ..figures.gates import GateResult
    from ..figures.report import Report

EXAMPLES = 3
"""The examples of each failure that a page opens."""
MAX_EXAMPLE = 240  # characters

_HATCH = "repeating-linear-gradient(135deg,transparent 0 4px,rgba(255,255,255,.45) 4px 7px)"
# Okabe and Ito's colours; a second outcome of one colour is hatched, and every part is named in
# text as well.
_FILLS: dict[str, tuple[str, str, bool]] = {
    "correct": ("#009E73", "#000", False),
    "abstained_correctly": ("#009E73", "#000", True),
    "wrong_call": ("#D55E00", "#000", False),
    "abstained_wrongly": ("#E69F00", "#000", False),
    "self_answered": ("#F0E442", "#000", False),
    "attempted_unparseable": ("#CC79A7", "#000", False),
    "fabricated": ("#000000", "#fff", False),
    "truncated": ("#56B4E9", "#000", False),
    "reasoning_only": ("#56B4E9", "#000", True),
    "empty": ("#0072B2", "#fff", False),
    "refused": ("#0072B2", "#fff", True),
    "context_overflow": ("#999999", "#000", False),
    "provider_error": ("#999999", "#000", True),
    "ungraded": ("#dddddd", "#000", False),
    UNRECORDED: ("#dddddd", "#000", True),
}
_ORDER = tuple(_FILLS)
"""Order of the parts of a bar: successes first, then the model's, the parser's and the provider's
share."""


def render_report(report: Report, *, page: bool = False, gate: GateResult | None = None) -> str:
    """Return a report as HTML: a fragment for a notebook's output, or a whole document.

    gate: its checks appear at the top. Of every failure a fragment opens one example, and a
    document three.
    """
    examples = EXAMPLES if page else 1
    contents = None
    if not report.frame.empty:
        contents = _Cells.of(report, examples)

    body = render(
        f"{TEMPLATES}/report.html",
        title=report.title,
        headline=headline(report),
        warnings=report.warnings,
        gate=gate_view(gate) if gate is not None else None,
        cells=contents,
        leader=leader_of(report),
        behind=BEHIND,
        tradeoffs_title=TRADEOFFS,
        anchors=_anchors(contents) if page and contents is not None else {},
    )
    if page:
        return html_page(report.title, fragment(body))
    return fragment(body)


def _anchors(cells: _Cells) -> dict[str, str]:
    titles = [
        *([cells.matrix_title] if cells.matrix else []),
        cells.success.title,
        cells.ladder.title,
        *([TRADEOFFS] if cells.tradeoffs else []),
        "What happened",
        "What went wrong",
        *([BEHIND] if cells.failing else []),
        *(section.title for section in cells.sections),
        "How to read this",
    ]
    return {title: f"s{n}" for n, title in enumerate(dict.fromkeys(titles), 1)}


def render_gate(gate: GateResult) -> str:
    """Return the checks of a gate for a notebook's output."""
    return fragment(macro(PARTS, "gate_section", gate_view(gate)))


@dataclass(frozen=True, slots=True)
class _Block:
    title: str
    lead: str
    table: Table


@dataclass(frozen=True, slots=True)
class _Cells:
    tiles: Sequence[tuple[str, str]]
    success: _Block
    ladder: _Block
    ladder_key: Markup
    ladders: Sequence[tuple[str, Markup]]
    matrix_title: str
    matrix: Markup | None
    tradeoffs: Sequence[Tradeoff]
    outcomes: Sequence[_Bar]
    failures: Table | None
    failing: Sequence[FailingCell]
    sections: Sequence[_Block]
    notes: Sequence[str]

    @classmethod
    def of(cls, report: Report, examples: int) -> _Cells:
        # `examples` of each failure are opened, and with more than one, an example of each problem
        # code and coercion too.
        # Looked up once: finding one trial in a frame of many takes longer than showing it.
        trials = _example_trials(report)
        ladder = ladder_section(report)
        by_arm = "arm" in report.by
        is_page = examples > 1
        failing = failing_cells(report) if is_page else []

        # With one example of each failure, the other sections open none.
        section_trials = trials if examples > 1 else trials.head(0)
        sections = [_section(section, section_trials) for section in sections_of(report)]

        return cls(
            tiles=_tiles(report),
            success=_success(report),
            ladder=_Block(ladder.title, ladder.lead, Table(ladder.head, ladder.rows)),
            ladder_key=ladder_key(report.coerced_policy, report.policy),
            ladders=_ladders(report),
            matrix_title="Arm × model" if by_arm else "Protocol × model",
            matrix=_matrix_of(report, "arm" if by_arm else "prompt_protocol", failing, is_page),
            tradeoffs=tradeoffs_of(report),
            outcomes=_outcome_bars(report),
            failures=_failures(report, trials, examples),
            failing=failing,
            sections=sections,
            notes=[note for note in report.notes if note not in report.warnings],
        )


def _section(section: Section, trials: pd.DataFrame) -> _Block:
    # An example that is not among the trials has nothing under its row.
    under: list[Cell] = []
    for name in section.examples:
        if name in trials.index:
            under.append(unfolding_trials([trials.loc[name].to_dict()]))
        else:
            under.append("")
    return _Block(section.title, section.lead, Table(section.head, section.rows, under))


def _example_trials(report: Report) -> pd.DataFrame:
    # By id, those of the headline before those of the looser policy.
    ids: set[str] = set()
    for frame in (report.failures, report.codes, report.rescues):
        for names in frame["trial_ids"]:
            ids.update(names.split(", "))

    # A trial has a row for each policy, and not every policy is in the report.
    named = report.trials[report.trials["trial_id"].isin(ids)]
    # The coercions are counted under the looser policy, all else under the headline's.
    policies = dict.fromkeys((report.policy, report.coerced_policy))
    trials = pd.concat([named[named["policy"] == policy] for policy in policies])
    return trials.drop_duplicates("trial_id").set_index("trial_id", drop=False)


def _tiles(report: Report) -> list[tuple[str, str]]:
    # Rates are a range where there are several cells, because a mean of arms means little.
    frame = report.frame
    # A cell without a judged trial has no rate to be the lowest.
    within = " in the lowest and the highest cell" if frame["n"].gt(0).sum() > 1 else ""
    policy = "each policy" if "policy" in report.by else report.policy
    cells = f"{len(frame)} cell" if len(frame) == 1 else f"{len(frame)} cells"
    return [
        (_range(frame["success"]), f"success under {policy}{within}"),
        (_range(frame["strict"]), "as written, without any help"),
        (_range(frame["naive"]), "with a naive parser"),
        (_range(frame["fabricated"]), "fabricated by reading"),
        (f"{frame['n'].sum():,}", f"trials judged in {cells}"),
    ]


def _range(rates: pd.Series[Any]) -> str:
    rates = rates.dropna()
    if rates.empty:
        return "–"

    low, high = percent(rates.min()), percent(rates.max())
    if low == high:
        return low
    return f"{low.removesuffix(' %')} – {high}"


def _success(report: Report) -> _Block:
    level = f"{report.level:.0%}".replace("%", " %")
    extra = [c for c in ("missing", "ungraded") if report.frame[c].any()]
    head = [
        *key_head(report),
        ("success", "rate"),
        (f"0 – 100 %, {level} interval", "iv"),
        ("interval, %", ""),
        *((name, "") for name in ("n", "cases", *extra)),
    ]
    if report.baseline is not None:
        head += [(f"against {report.baseline}", "full"), ("p (Holm)", "")]

    rows = [_success_row(report, cell, extra) for cell in report.frame.to_dict("records")]
    lead = "Bars are intervals clustered by case, dots the measured share."
    # Without missing trials there is no such line to explain.
    if "missing" in extra:
        lead += " Dashed lines reach from the worst to the best that the missing trials leave open."
    return _Block("Success", lead, Table(head, rows))


def _success_row(report: Report, cell: Mapping[Any, Any], extra: Sequence[str]) -> list[Cell]:
    row: list[Cell] = [str(cell[name] or "–") for name in report.by]
    row += [
        percent(cell["success"]),
        interval_svg(cell, report.level),
        span(cell["ci_low"], cell["ci_high"]) or "–",
    ]
    row += [str(cell[name]) for name in ("n", "n_cases", *extra)]
    if report.baseline is not None:
        row += _difference(report, cell)
    return row


def _difference(report: Report, cell: Mapping[Any, Any]) -> tuple[Cell, Cell]:
    # A cell other than the baseline has no difference where no case is in both.
    if not pd.isna(cell["difference"]):
        gap, low, high = (points(cell[c]) for c in ("difference", "diff_low", "diff_high"))
        return macro(PARTS, "difference", gap, low, high), f"{cell['p_holm']:.3f}"

    if report.is_baseline(cell):
        return macro(PARTS, "absent", "baseline"), "–"
    return "–", "–"


def _ladders(report: Report) -> list[tuple[str, Markup]]:
    levels = dict(groups(report.ladder, report.by))
    ladders = []
    for cell in report.frame.to_dict("records"):
        keys = tuple(str(cell[c]) for c in report.by)
        steps = levels[keys].to_dict("records")
        ladders.append((report.cell_name(cell), ladder_svg(steps)))
    return ladders


def _matrix_of(
    report: Report, rows: str, failing: Sequence[FailingCell], anchored: bool
) -> Markup | None:
    if not {"model", rows} <= set(report.by):
        return None
    anchors: dict[tuple[str, str], str] = {}
    # With a third column in the report, a cell of the matrix is several of the report's.
    if anchored and len(report.by) == 2:
        anchors = {(cell.keys[rows], cell.keys["model"]): cell.anchor for cell in failing}
    return Markup(render_matrix(report.matrix(rows), anchors))


@dataclass(frozen=True, slots=True)
class _Part:
    # `width` is in percent. A narrow part shows no label, a very narrow one no count either.
    label: str
    n: int
    width: str
    fill: str
    title: str
    shows_label: bool
    shows_count: bool

    @classmethod
    def of(cls, row: Mapping[Any, Any]) -> _Part:
        outcome, n, share = row["outcome"], row["n"], float(row["share"])
        label = _label(outcome)
        colour, text_colour, is_hatched = _FILLS[outcome]
        hatch = f"{_HATCH}," if is_hatched else ""

        # The browser does not say what fits: a page has no script.
        # A label needs about one hundredth of the width for each of its letters.
        label_fits = share * 100 > len(label) + 4
        return cls(
            label=label,
            n=n,
            width=f"{100 * share:.3f}",
            fill=f"background:{hatch}{colour};color:{text_colour}",
            title=f"{label}: {n} ({percent(share)})",
            shows_label=label_fits,
            shows_count=label_fits or share > 0.045,
        )


@dataclass(frozen=True, slots=True)
class _Bar:
    name: str
    total: int
    parts: Sequence[_Part]


def _label(outcome: str) -> str:
    # An outcome that is not in `OUTCOMES`, such as that of a missing record, is its own label.
    if outcome in OUTCOMES:
        return OUTCOMES[outcome].label
    return outcome


def _outcome_bars(report: Report) -> list[_Bar]:
    # The values that name a cell -> outcome -> its row of the waterfall.
    rows_of_cells: dict[tuple[Any, ...], dict[str, Mapping[Any, Any]]] = {}
    for row in report.waterfall.to_dict("records"):
        keys = tuple(row[c] for c in report.by)
        rows_of_cells.setdefault(keys, {})[row["outcome"]] = row

    bars = []
    for cell in report.frame.to_dict("records"):
        rows = rows_of_cells[tuple(cell[c] for c in report.by)]
        parts = [_Part.of(rows[outcome]) for outcome in _ORDER if outcome in rows]
        total = sum(part.n for part in parts)
        bars.append(_Bar(report.cell_name(cell), total, parts))
    return bars


def _failures(report: Report, trials: pd.DataFrame, examples: int) -> Table | None:
    if report.failures.empty:
        return None

    head = (
        ("outcome", "l k full"),
        ("trials", ""),
        ("share", ""),
        ("meaning and an example", "l w"),
    )
    rows, under = [], []
    for failure in report.failures.to_dict("records"):
        rows.append(_failure_row(failure))
        ids = failure["trial_ids"].split(", ")[:examples]
        under.append(unfolding_trials(trials.loc[ids].to_dict("records")))
    return Table(head, rows, under)


def _failure_row(failure: Mapping[Any, Any]) -> list[Cell]:
    # The sentence is that of the sub-code, which says more, where it has one.
    outcome, sub_code = failure["outcome"], failure["sub_code"]
    name = _label(outcome)
    if sub_code:
        name += f": {sub_code.replace('_', ' ')}"

    sentence = SUB_CODES.get(sub_code) or OUTCOMES[outcome].sentence
    example = failure["example"]
    if len(example) > MAX_EXAMPLE:
        example = example[: MAX_EXAMPLE - 3] + "…"

    return [
        name,
        str(failure["n"]),
        percent(failure["share"]),
        macro(PARTS, "meaning", sentence, example),
    ]
