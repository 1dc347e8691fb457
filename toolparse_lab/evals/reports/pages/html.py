"""Reports, comparisons, matrices and gates as HTML without any outside reference: styles inline,
readable without a script.

How each is laid out is in `templates`. This file gathers their contents, as text that the templates
escape.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import resources
from itertools import islice
from typing import TYPE_CHECKING, Any

import pandas as pd

from ....core.types import ParseResult
from ....core.values.printable import counted
from ....core.values.wording import share, span
from ....views import render_result, render_side_by_side
from ....views.templating import Markup, macro, render
from ...frames.causes import failed_rows
from ...frames.parsing import try_read_row
from ..figures.cells import ANSWER_KINDS, UNRECORDED, groups
from ..figures.comparison import COMPARISON_COLUMNS
from .charts import difference_svg, drawings_of
from .columns import Cell, Listing, Section
from .tables import (
    PARTS,
    TEMPLATES,
    comparison,
    failures,
    gate_checks,
    ladder,
    listings_of,
    outcomes,
    success,
    unpaired_cases,
)
from .text import comparison_legend, headline, leader_of

if TYPE_CHECKING:
    from ...scoring.trial import Trial
    from ..figures.cells import Matrix
    from ..figures.comparison import ArmComparison, Flip
    from ..figures.gates import GateResult
    from ..figures.report import Report

EXAMPLES = 3
"""The examples of each failure that a page opens."""
FAILURES = "The failures of each cell"
TRADEOFFS = "Success against cost and time"
MOST_VIEWS = 100
"""The failures of a page that show how they were read; a view takes a hundred times its text."""
MOST_LINES = 5_000
"""The failures of a page that have a line; beyond it a page is too long to open."""
MAX_FLIPS = 100
"""How many flips a page unfolds; a notebook's output unfolds a tenth of them."""
MAX_RAW = 4000  # characters of an answer that no protocol here can read
MAX_TEXT = 400  # characters of a question, a target or an error


def _drawn(listing: Listing, under: Sequence[Cell] = (), lead: str = "") -> Section:
    section = listing.drawn("html")
    return replace(section, under=under, lead=lead or section.lead)


# A notebook may hold many fragments, and each brings the style sheet along: an output must be
# readable by itself.
@lru_cache(maxsize=1)
def _css() -> Markup:
    sheet = resources.files(__package__).joinpath("templates", "report.css")
    return Markup(sheet.read_text(encoding="utf-8"))


def fragment(body: str) -> str:
    """Return HTML for a notebook's output, with the styles it needs. `body` is HTML."""
    return render(f"{TEMPLATES}/fragment.html", css=_css(), body=Markup(body))


def document(title: str, fragment: str) -> str:
    """Return a whole document around a fragment, light or dark as the reader's system asks."""
    return render(f"{TEMPLATES}/page.html", title=title, fragment=Markup(fragment))


# Trials


def trial_view(row: Mapping[Any, Any]) -> dict[str, Any]:
    """Return what a page shows of a row of a trials frame: the request, the outcome of it, and how
    the answer was read. '' for anything not known.
    """

    # A frame from elsewhere may lack the column, and a gap is None, NaN or NA.
    def text(name: str, most: int | None = None) -> str:
        value = row.get(name)
        found = "" if value is None or pd.isna(value) else str(value)
        return found if most is None or len(found) <= most else found[: most - 1] + "…"

    # Read anew: a frame has the figures of a reading, not the reading itself.
    result = read_row(row)
    codes = (text("outcome") or text("missing_reason"), text("sub_code"))
    return {
        "outcome": " / ".join(filter(None, codes)),
        "detail": text("detail"),
        "question": text("input", MAX_TEXT),
        "target": text("target", MAX_TEXT),
        "error": text("error_message", MAX_TEXT),
        "raw": text("raw")[:MAX_RAW],
        "view": Markup(render_result(result)) if result else Markup(),
    }


def read_row(row: Mapping[Any, Any]) -> ParseResult | None:
    """Return the answer of a row of a trials frame, read again as it was read.

    None if there is no answer or no tools.
    """
    return try_read_row(row) if isinstance(row.get("tools_json"), str) else None


def _unfolding_trials(trials: pd.DataFrame) -> Markup:
    lines = []
    for row in trials.to_dict("records"):
        trial = macro(PARTS, "trial", trial_view(row))
        lines.append(macro(PARTS, "details", f"{row['case_id']} · {row['trial_id']}", trial))
    return Markup().join(lines)


@dataclass(frozen=True, slots=True)
class FailingCell:
    """The failures of one cell: its values by column, their lines, and how many have none."""

    name: str
    keys: Mapping[str, str]
    anchor: str
    n: int
    lines: Sequence[Markup]

    @property
    def left_out(self) -> int:
        """The failures without a line, because the page has no room for more."""
        return self.n - len(self.lines)


def failing_cells(report: Report) -> list[FailingCell]:
    """Return the cells that have failures, in the report's order.

    Lines and views are shared out evenly, so that no cell takes the room of another.
    """
    parts = dict(groups(report.headline[failed_rows(report.headline)], report.by))
    if not parts:
        return []

    most_lines, views = (max(1, most // len(parts)) for most in (MOST_LINES, MOST_VIEWS))
    # All at once, since the whole rows may have to be loaded.
    listed = {values: part.head(most_lines) for values, part in parts.items()}
    whole = iter(report.view.whole(pd.concat(listed.values())).to_dict("records"))
    rows = {values: list(islice(whole, len(part))) for values, part in listed.items()}
    cells = []
    for n, cell in enumerate(report.frame.to_dict("records"), 1):
        keys = {column: str(cell[column]) for column in report.by}
        values = tuple(keys.values())
        if values not in parts:
            continue
        lines = list(_failure_lines(rows[values], views, f"cell-{n}"))
        count = len(parts[values])
        cells.append(FailingCell(report.cell_name(cell), keys, f"cell-{n}", count, lines))
    return cells


def _failure_lines(rows: Iterable[Mapping[Any, Any]], views: int, prefix: str) -> Iterator[Markup]:
    # The first `views` unfold into how they were read, the others into the request, wanted and
    # written: reading takes longer than all else here.
    for n, row in enumerate(rows):
        trial = trial_view(row if n < views else {**row, "tools_json": None})
        detail = "" if pd.isna(row["detail"]) else str(row["detail"])
        code = " / ".join(str(row[c]) for c in ("outcome", "sub_code") if row[c])
        summary = f"{row['case_id']} · {code}" + (f": {detail[:160]}" if detail else "")
        yield macro(PARTS, "failure", f"{prefix}-{n + 1}", summary, str(row["trial_id"]), trial)


# Reports


def render_report(report: Report, *, page: bool = False, gate: GateResult | None = None) -> str:
    """Return a report as HTML: a fragment for a notebook's output, or a whole document.

    gate: its checks appear at the top. Of every failure a fragment opens one example, and a
    document three.
    """
    cells = None if report.frame.empty else _contents(report, EXAMPLES if page else 1)
    anchors = {}
    if page and cells is not None:
        titles = [
            *([cells["matrix_title"]] if cells["matrix"] else []),
            cells["success"].title,
            *([cells["ladder"].title] if cells["ladder"] else []),
            *([TRADEOFFS] if cells["charts"]["cost"] or cells["charts"]["time"] else []),
            "What happened",
            "What went wrong",
            *([FAILURES] if cells["failing"] else []),
            *(section.title for section in cells["sections"]),
            "How to read this",
        ]
        anchors = {title: f"s{n}" for n, title in enumerate(dict.fromkeys(titles), 1)}
    body = render(
        f"{TEMPLATES}/report.html",
        title=report.title,
        headline=headline(report),
        warnings=report.warnings,
        gate=_drawn(gate_checks(gate)) if gate is not None else None,
        cells=cells,
        leader=leader_of(report),
        behind=FAILURES,
        tradeoffs_title=TRADEOFFS,
        anchors=anchors,
    )
    return document(report.title, fragment(body)) if page else fragment(body)


def render_gate(gate: GateResult) -> str:
    """Return the checks of a gate for a notebook's output."""
    return fragment(macro(PARTS, "gate_section", _drawn(gate_checks(gate))))


def _contents(report: Report, examples: int) -> dict[str, Any]:
    # `examples` of each failure are opened, and with more than one, as on a page, an example of
    # each problem code and coercion too.
    is_page = examples > 1
    trials = _example_trials(report)

    def example(name: str) -> Cell:
        # One that is not among the trials has nothing under its row.
        return _unfolding_trials(trials.loc[[name]]) if is_page and name in trials.index else ""

    failing = failing_cells(report) if is_page else []
    wrong = failures(report)
    under = [
        _unfolding_trials(trials.loc[row["trial_ids"].split(", ")[:examples]]) for row in wrong.rows
    ]
    lead = "Dots are the measured share, with intervals clustered by case."
    # Without missing trials there is no such line to explain.
    if report.frame["missing"].any():
        lead += " Dashed lines reach from the worst to the best that the missing trials leave open."

    rows = "arm" if "arm" in report.by else "prompt_protocol"
    grid = None
    if {"model", rows} <= set(report.by):
        anchors: dict[tuple[str, str], str] = {}
        # With a third column in the report, a cell of the matrix is several of the report's.
        if len(report.by) == 2:
            anchors = {(cell.keys[rows], cell.keys["model"]): cell.anchor for cell in failing}
        grid = Markup(render_matrix(report.matrix(rows), anchors))
    return {
        "tiles": _tiles(report),
        "success": _drawn(success(report), lead=lead if report.has_targets else ""),
        # Without a target there is nothing that help could gain.
        "ladder": _drawn(ladder(report)) if report.has_targets else None,
        "matrix_title": "Arm × model" if rows == "arm" else "Protocol × model",
        "matrix_lead": "Success with its interval, best first."
        if report.has_targets
        else "The share of answers with a call whose calls may all be executed, best first.",
        "matrix": grid,
        "charts": drawings_of(report),
        "outcomes": _drawn(outcomes(report)),
        "failures": _drawn(wrong, under) if wrong.rows else None,
        "failing": failing,
        "sections": [
            _drawn(listing, [example(name) for name in listing.examples])
            for listing in listings_of(report)
        ],
        "notes": [note for note in report.notes if note not in report.warnings],
    }


def _example_trials(report: Report) -> pd.DataFrame:
    # By id, looked up once: finding one trial in a frame of many takes longer than showing it.
    ids: set[str] = set()
    for frame in (report.failures, report.codes, report.rescues):
        for names in frame["trial_ids"]:
            ids.update(names.split(", "))

    # A trial has a row for each policy, and not every policy is in the report.
    named = report.view.rows(ids)
    # The coercions are counted under the looser policy, all else under the headline's.
    policies = dict.fromkeys((report.policy, report.coerced_policy))
    trials = pd.concat([named[named["policy"] == policy] for policy in policies])
    return trials.drop_duplicates("trial_id").set_index("trial_id", drop=False)


def _tiles(report: Report) -> list[tuple[str, str]]:
    # Rates are a range if there are several cells, because a mean of arms means little.
    def between(column: str) -> str:
        rates = report.frame[column].dropna()
        if rates.empty:
            return "–"
        low, high = share(rates.min()), share(rates.max())
        return low if low == high else f"{low.removesuffix(' %')} – {high}"

    if not report.has_targets:
        return _ungraded_tiles(report)
    frame = report.frame
    # A cell without a judged trial has no rate to be the lowest.
    within = " in the lowest and the highest cell" if frame["n"].gt(0).sum() > 1 else ""
    policy = "each policy" if "policy" in report.by else report.policy
    cells = f"{len(frame)} cell{'' if len(frame) == 1 else 's'}"
    return [
        (between("success"), f"success under {policy}{within}"),
        (between("strict"), "as written, without any help"),
        (between("naive"), "with a naive parser"),
        (between("fabricated"), "fabricated by reading"),
        (f"{frame['n'].sum():,}", f"trials judged in {cells}"),
    ]


def _ungraded_tiles(report: Report) -> list[tuple[str, str]]:
    frame = report.ungraded
    n = frame["n"].sum()
    kinds = [(kind, float((frame[kind] * frame["n"]).sum()) / n) for kind in ANSWER_KINDS]
    good = (frame["executable"] * frame["attempts"]).sum() / max(1, frame["attempts"].sum())
    return [
        (share(good), "of the answers with a call may be executed"),
        *((share(part), kind) for kind, part in kinds if part),
        (f"{n:,}", "answers without a target"),
    ]


# Matrices


def render_matrix(m: Matrix, anchors: Mapping[tuple[str, str], str] | None = None) -> str:
    """Return a matrix with inline styles only, so that it can be shown alone anywhere.

    Rows and columns are best first, by the mean of their rates. Those that are equal, or have no
    rate, in the order of the frame. anchors: by (row, column), the target of a cell's link on its
    page.
    """

    def best_first(column: str) -> list[Any]:
        means = m.frame.groupby(column, dropna=False, observed=True)["success"].mean().to_dict()
        # Sorting is stable; an unknown mean is below every other.
        rates = {
            name: -1.0 if pd.isna(mean := means.get(name)) else float(mean)
            for name in dict.fromkeys(m.frame[column])
        }
        return sorted(rates, key=lambda name: -rates[name])

    def shown(row: Any, column: Any) -> dict[str, str]:
        cell = cells.get((row, column))
        if cell is None:
            return {"reason": UNRECORDED}
        if pd.isna(cell["success"]):
            return {"reason": cell["reason"] or UNRECORDED}
        counts = f"n {cell['n']} · {counted(cell['n_cases'], 'case')}"
        if cell["missing"]:
            counts += f" · {cell['missing']} missing"
        return {
            "reason": "",
            # Never more than .44 of the blue, so that the page's own text colour is readable on it
            # in light and dark.
            "tint": f"{0.04 + 0.4 * float(cell['success']):.3f}",
            "success": share(cell["success"]),
            "interval": span(cell["ci_low"], cell["ci_high"]),
            "counts": counts,
            "anchor": (anchors or {}).get((str(row), str(column)), ""),
        }

    cells = {(c[m.rows], c[m.columns]): c for c in m.frame.to_dict("records")}
    columns = best_first(m.columns)
    return render(
        f"{TEMPLATES}/matrix.html",
        corner=m.rows.replace("_", " "),
        columns=columns,
        rows=[(row, [shown(row, column) for column in columns]) for row in best_first(m.rows)],
    )


# Comparisons: the figures, and the flipped cases, each of which unfolds into both parse views.


def render_comparison(c: ArmComparison) -> str:
    """Return a comparison for a notebook's output."""
    return fragment(_comparison_body(c, "h3", MAX_FLIPS // 10))


def render_comparison_page(c: ArmComparison) -> str:
    """Return a comparison as a whole document."""
    return document(f"{c.b} against {c.a}", fragment(_comparison_body(c, "h1", MAX_FLIPS)))


def _comparison_body(c: ArmComparison, heading: str, max_flips: int) -> str:
    n, unpaired = len(c.flips), len(c.unpaired)
    table = _drawn(unpaired_cases(c, MAX_FLIPS))
    return render(
        f"{TEMPLATES}/comparison.html",
        heading=heading,
        title=f"{c.b} against {c.a}",
        on=c.on.replace("_", " "),
        policy=c.policy,
        chart=difference_svg(c),
        figures=_drawn(comparison(c)),
        flip_count=f"{n} case{'' if n == 1 else 's'} flipped",
        # Two parse views for each: a page of all flips of a long run would not open.
        flips=list(_flip_views(c, c.flips.head(max_flips))),
        more_flips=n - max_flips,
        unpaired={"count": unpaired, "table": table, "more": unpaired - MAX_FLIPS}
        if unpaired
        else None,
        notes=[*c.notes, comparison_legend()],
    )


def _flip_views(c: ArmComparison, flips: pd.DataFrame) -> Iterator[dict[str, Any]]:
    # A comparison that somebody put together has no rows of its flips.
    by_id: list[dict[Any, dict[Any, Any]]] = [{}, {}]
    if c.flip_rows is not None:
        by_id = [
            c.flip_rows(arm, set(flips[f"trial_id_{side}"].dropna())).to_dict("index")
            for side, arm in (("a", c.a), ("b", c.b))
        ]
    for flip in flips.to_dict("records"):
        summary = (
            f"{flip['case_id']} {flip['direction']}: {flip['outcome_a']} → {flip['outcome_b']}"
        )
        strata = [str(flip[name]) for name in c.frame if name not in COMPARISON_COLUMNS]
        if stratum := " · ".join(filter(None, strata)):
            summary += f" ({stratum})"
        a, b = (rows.get(flip[f"trial_id_{side}"]) for rows, side in zip(by_id, "ab", strict=True))
        # The second reading is of use only next to the first one of the same answer.
        alike = a and b and a.get("raw") == b.get("raw")
        readings = _readings((c.a, read_row(a)), (c.b, read_row(b))) if a and b and alike else ""
        sides = [(name, trial_view(row) if row else None) for name, row in ((c.a, a), (c.b, b))]
        yield {"summary": summary, "sides": sides, "readings": readings}


def _readings(*sides: tuple[str, ParseResult | None]) -> Markup:
    # '' where the sides are of two answers.
    (name_a, a), (name_b, b) = sides
    if a is None or b is None or a.raw != b.raw:
        return Markup()
    return Markup(render_side_by_side(a, b, (name_a, name_b)))


def render_flip(flip: Flip) -> str:
    """Return both sides of one flipped case."""

    def side(name: str, trial: Trial) -> dict[str, object]:
        return {
            "name": name,
            "arm": trial.arm,
            "score": trial.score or trial.missing_reason,
            "view": Markup(render_result(trial.result)) if trial.result else Markup(),
        }

    body = render(
        f"{TEMPLATES}/flip.html",
        case_id=flip.case_id,
        direction=flip.direction,
        question=flip.a.case.input_text,
        sides=[side("a", flip.a), side("b", flip.b)],
        readings=_readings((flip.a.arm, flip.a.result), (flip.b.arm, flip.b.result)),
    )
    return fragment(body)
