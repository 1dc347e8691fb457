"""Reports, comparisons, matrices and gates as HTML without any outside reference: styles inline,
readable without a script.

How each is laid out is in `templates`. This file gathers their contents, as text that the templates
escape.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from ....core.types import ParseResult
from ....core.values.printable import counted
from ....core.values.wording import NOTHING, known, level_words, share, span
from ....views import render_result, render_side_by_side
from ....views.rows import Fault
from ....views.sentences import question_of
from ....views.show import visible
from ....views.templating import Markup, macro, render, render_page, style_sheet
from ....views.words import Group, groups_of, word_of
from ...frames.account import failing_rows
from ...frames.parsing import try_read_row
from ..figures.cells import UNRECORDED, groups
from ..figures.conclusion import conclusion_of, conclusion_of_comparison, kinds_of_column
from ..figures.trial_rows import faults_in
from .columns import Cell, Listing, Section
from .tables import (
    PARTS,
    TEMPLATES,
    comparison,
    contrast,
    gate_checks,
    listings_of,
    strata_of,
    success,
    unpaired_cases,
)
from .text import comparison_legend, headline

if TYPE_CHECKING:
    from ...scoring.trial import Trial
    from ..figures.cells import Matrix
    from ..figures.comparison import ArmComparison, Flip
    from ..figures.conclusion import Conclusion
    from ..figures.gates import GateResult
    from ..figures.report import Report

EXAMPLES = 20
"""The failures of one cause in one cell that a page lists, each with its line."""
MOST_VIEWS = 100
"""The failures of a page that show how they were read; a view takes a hundred times its text."""
MOST_LINES = 5_000
"""The failures of a page that have a line; beyond it a page is too long to open."""
MOST_CAUSES = 8
"""The causes that have a column of their own; the smallest others are counted together."""
MOST_DOTS = 60
_MANY = 12  # cells, beyond which what the table of shares has too is folded
_MANY_DIFFERENCES = 6
_WIDEST = 5  # cells in the one row of a table
MAX_FLIPS = 100
"""How many flips a page unfolds; a notebook's output unfolds a tenth of them."""
MAX_RAW = 4000  # characters of an answer that no protocol here can read
MAX_TEXT = 400  # characters of a question, a target or an error
AGAINST: Mapping[str, str] = {
    "model": "Model against model",
    "prompt_protocol": "Format against format",
    "parse_protocol": "Reading against reading",
    "arm": "Variant against variant",
    "policy": "Policy against policy",
}
"""The heading of the differences by the column that is compared."""


def fragment(body: str) -> str:
    """Return HTML for a notebook's output, with the styles it needs. `body` is HTML."""
    # A notebook may hold many of them: an output must be readable by itself.
    html = Markup('<div class="tpx widget"><style>{}</style><div class="doc">{}</div></div>')
    return str(html.format(Markup(style_sheet()), Markup(body)))


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

    codes = [text("outcome") or text("missing_reason"), text("sub_code")]
    outcome = word_of(next(filter(None, reversed(codes)), ""))
    # Read anew: a frame has the figures of a reading, not the reading itself.
    result = read_row(row)
    faults = faults_in(row, result) if text("score_success") == "False" else []
    return {
        "facts": [
            ("outcome", f"{outcome} ({' / '.join(filter(None, codes))})"),
            ("detail", text("detail")),
            ("asked", question_of(text("input"))),
            ("wanted", text("target", MAX_TEXT)),
            ("error", text("error_message", MAX_TEXT)),
        ],
        "raw": text("raw")[:MAX_RAW],
        "view": _view(result, faults),
    }


def _view(result: ParseResult | None, faults: Sequence[Fault] = ()) -> Markup:
    return Markup(render_result(result, faults)) if result else Markup()


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


# Failures: of each cell by cause, counted and shown.


@dataclass(frozen=True, slots=True)
class FailingCause:
    """The failures of one cause in one cell, by their rows; `anchor` is '' outside of a page."""

    group: Group
    anchor: str
    rows: pd.DataFrame

    @property
    def n(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, slots=True)
class FailingCell:
    """What fails in one cell: its values by column, and its causes, all of them in one order."""

    name: str
    keys: tuple[str, ...]
    anchor: str
    causes: Sequence[FailingCause]

    @property
    def n(self) -> int:
        return sum(cause.n for cause in self.causes)


def failing_cells(report: Report, *, anchored: bool = True) -> list[FailingCell]:
    """Return every cell, best first, with what fails in it. anchored: on a page."""
    failing = failing_rows(report.headline)
    causes = _few(groups_of(failing["cause"]))
    parts = dict(groups(failing, report.by))
    cells = []
    for n, row in enumerate(_rates(report)[0].to_dict("records"), 1):
        keys = tuple(str(row[c]) for c in report.by)
        part = parts.get(keys, failing.head(0))
        own = []
        for k, group in enumerate(causes, 1):
            found = part[part["cause"].isin(list(group.codes))]
            anchor = f"cell-{n}-{k}" if anchored and len(found) else ""
            own.append(FailingCause(group, anchor, found))
        anchor = f"cell-{n}" if anchored and len(part) else ""
        cells.append(FailingCell(_name(report, row), keys, anchor, own))
    return cells


def _name(report: Report, row: Mapping[Any, Any]) -> str:
    # What all cells have in common tells none from another.
    names = [c for c in report.by if report.frame[c].nunique(dropna=False) > 1] or report.by
    return " · ".join(str(row[c]) or NOTHING for c in names)


def _few(causes: list[Group]) -> list[Group]:
    # The whole equals its parts: what has no column of its own is in the last one.
    if len(causes) <= MOST_CAUSES:
        return causes
    kept = sorted(causes, key=lambda group: -group.n)[: MOST_CAUSES - 1]
    rest = [group for group in causes if group not in kept]
    codes = {code: n for group in rest for code, n in group.codes.items()}
    others = Group("other causes", ", ".join(group.word for group in rest), "f-no", codes)
    return [*(group for group in causes if group in kept), others]


def _examples(report: Report, cells: Sequence[FailingCell], most: int, views: int) -> Markup:
    # The first failures of each cause in each cell; the first ones of them unfold into how they
    # were read, the others into request, wanted and written: reading takes longer than all else.
    found = [(cell, cause) for cell in cells for cause in cell.causes if cause.n]
    most = max(1, min(most, MOST_LINES // max(1, len(found))))
    views = max(1, views // max(1, len(found)))
    # All at once, since the whole rows may have to be loaded.
    shown = pd.concat([cause.rows.head(most) for _, cause in found])
    whole = report.view.whole(shown.drop(columns="cause")).to_dict("records")
    rows = iter(whole)
    blocks: dict[str, Markup] = {}
    for cell, cause in found:
        lines: list[Markup] = []
        for k in range(min(most, cause.n)):
            row = next(rows)
            trial = trial_view(row if k < views else {**row, "tools_json": None})
            detail = "" if pd.isna(row["detail"]) else str(row["detail"])
            summary = str(row["case_id"]) + (f": {detail[:160]}" if detail else "")
            anchor = f"{cause.anchor}-{k + 1}" if cause.anchor else f"{id(cells):x}-{len(lines)}"
            if not cause.anchor:
                lines.append(macro(PARTS, "details", summary, macro(PARTS, "trial", trial)))
                continue
            lines.append(macro(PARTS, "failure", anchor, summary, str(row["trial_id"]), trial))
        more = f", the first {most}" if cause.n > most else ""
        codes = visible(", ".join(cause.group.codes))
        head = Markup('<h3{}>{} <small>{:,}{} · {}</small></h3>').format(
            Markup(' id="{}"').format(cause.anchor) if cause.anchor else "",
            cause.group.title, cause.n, more, codes,
        )  # fmt: skip
        blocks[cell.name] = blocks.get(cell.name, Markup()) + head + Markup().join(lines)
    out = Markup()
    for cell in cells:
        if cell.name in blocks:
            body = Markup("<div{}>{}</div>").format(
                Markup(' id="{}"').format(cell.anchor) if cell.anchor else "", blocks[cell.name]
            )
            out += macro(PARTS, "details", cell.name, body, f"{cell.n:,} failed")
    return out


# Reports


def render_report(
    report: Report, *, page: bool = False, gate: GateResult | None = None, answers: str = ""
) -> str:
    """Return a report as HTML: a fragment for a notebook's output, or a whole document.

    gate: its checks appear at the top. answers: the address of a tab with the answers. Of every
    failure a fragment opens one example.
    """
    empty = report.frame.empty
    values = {} if empty else _contents(report, page)
    body = render(
        f"{TEMPLATES}/report.html",
        **{
            "heading": "" if page else f"{report.title} · {headline(report)}",
            "conclusion": conclusion_of(report),
            "warnings": report.warnings,
            "gate": gate_section(gate) if gate is not None else "",
            "heat_of": None,
            "dots_of": None,
            "wrong_of": None,
            "contrast": None,
            "folded": [],
            **values,
        },
    )
    if not page:
        return fragment(body)
    return render_page(report.title, body, headline(report), answers=answers)


def render_gate(gate: GateResult) -> str:
    """Return the checks of a gate for a notebook's output."""
    return fragment(gate_section(gate))


def gate_section(gate: GateResult) -> Markup:
    return macro(PARTS, "gate_section", _drawn(gate_checks(gate)), gate)


def _drawn(listing: Listing, under: Sequence[Cell] = ()) -> Section:
    return replace(listing.drawn("html"), under=under)


def _contents(report: Report, is_page: bool) -> dict[str, Any]:
    cells = failing_cells(report, anchored=is_page)
    conclusion = conclusion_of(report)
    return {
        "heat_of": _heat(report, cells),
        "dots_of": _dots(report),
        "wrong_of": _wrong(report, cells),
        "contrast": _contrast(report, conclusion),
        "folded": list(_folded(report, cells, is_page)),
    }


def _contrast(report: Report, conclusion: Conclusion) -> dict[str, Any] | None:
    if conclusion.frame is None or conclusion.frame.empty:
        return None
    return {
        "title": f"{AGAINST.get(conclusion.on, 'One against the other')}, same cases",
        "table": _drawn(contrast(conclusion, report.level)),
        "many": counted(n, "difference")
        if (n := len(conclusion.frame)) > _MANY_DIFFERENCES
        else "",
    }


def _folded(
    report: Report, cells: Sequence[FailingCell], is_page: bool
) -> Iterator[dict[str, Any]]:
    # Everything else: the answer beside each title, and the tables behind it.
    if n := sum(cell.n for cell in cells):
        most, views = (EXAMPLES, MOST_VIEWS) if is_page else (1, MOST_VIEWS // 10)
        shown = "the first" if most == 1 else f"the first {most}"
        yield {
            "title": "Failures, example by example",
            "answer": f"{n:,}, {shown} of each cause",
            "body": _examples(report, cells, most, views),
        }
    trials = _example_trials(report) if is_page else None

    def under(listing: Listing) -> list[Cell]:
        # A trial that is not among them has nothing under its row.
        if trials is None:
            return []
        return [
            _unfolding_trials(trials.loc[[name]]) if name in trials.index else ""
            for name in listing.examples
        ]

    parts: dict[str, list[Listing]] = {}
    # In a terminal the kinds of answers without a target are the first table.
    first = [] if report.has_targets else [success(report)]
    for listing in [*first, *listings_of(report)]:
        parts.setdefault(listing.part or listing.title, []).append(listing)
    for title, listings in parts.items():
        several = [
            Markup("<h3>{}</h3>").format(x.title) if len(listings) > 1 else "" for x in listings
        ]
        tables = [macro(PARTS, "table", _drawn(x, under(x))) for x in listings]
        yield {
            "title": title,
            "answer": " · ".join(filter(None, (x.answer for x in listings))),
            "body": Markup().join(h + t for h, t in zip(several, tables, strict=True)),
        }
    yield _reading([note for note in report.notes if note not in report.warnings])


def _reading(notes: Sequence[str]) -> dict[str, Any]:
    items = Markup().join(Markup("<li>{}</li>").format(visible(note)) for note in notes)
    return {
        "title": "How to read this",
        "answer": "intervals, tests, what counts as success",
        "body": Markup('<ul class="stack">{}</ul>').format(items),
    }


def _example_trials(report: Report) -> pd.DataFrame:
    # By id, looked up once: finding one trial in a frame of many takes longer than showing it.
    ids: set[str] = set()
    for frame in (report.codes, report.rescues, report.layers):
        ids.update(str(names).split(", ")[0] for names in frame["trial_ids"])

    # A trial has a row for each policy, and not every policy is in the report.
    named = report.view.rows(ids)
    # The coercions are counted under the looser policy, all else under the headline's.
    policies = dict.fromkeys((report.policy, report.coerced_policy))
    trials = pd.concat([named[named["policy"] == policy] for policy in policies])
    return trials.drop_duplicates("trial_id").set_index("trial_id", drop=False)


# The pictures: HTML and CSS, whose numbers are worded here.


def _rates(report: Report) -> tuple[pd.DataFrame, str, str]:
    # The cells, best first, and the columns of their rate and of its n.
    frame, rate, n = report.frame, "success", "n"
    if not report.has_targets:
        frame, rate, n = report.ungraded, "executable", "attempts"
        # A cell without an answer has no row there.
        frame = report.frame[list(report.by)].merge(frame, on=list(report.by), how="left")
        frame[n] = frame[n].fillna(0).astype("int64")
    return best_first(frame, rate, report.by), rate, n


def best_first(frame: pd.DataFrame, rate: str, by: Sequence[str]) -> pd.DataFrame:
    """Return the cells by the first column of `by`, then by the next, the values of each by the
    mean of their rates; those that are equal in the order they came in.
    """

    def ranks(column: str) -> pd.Series[Any]:
        means = frame.groupby(column, sort=False, dropna=False)[rate].mean()
        best = means.sort_values(ascending=False, kind="stable").index
        return frame[column].map({value: rank for rank, value in enumerate(best)})

    order = pd.DataFrame({column: ranks(column) for column in by})
    return frame.loc[order.sort_values(list(by), kind="stable").index]


def _heat(report: Report, cells: Sequence[FailingCell]) -> dict[str, Any]:
    graded = report.has_targets
    frame, rate, n = _rates(report)
    column = "model" if "model" in report.by else report.by[-1]
    if len(report.by) == 1:
        column = ""
    others = [name for name in report.by if name != column]
    behind = {cell.keys: cell for cell in cells}
    # One column alone lies down, where that is not too wide.
    several = (
        frame[column].nunique() > 1 or len(frame) > _WIDEST if column else len(frame) > _WIDEST
    )
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in frame.to_dict("records"):
        cell = behind[tuple(str(row[c]) for c in report.by)]
        name = " · ".join(str(row[c]) or NOTHING for c in others)
        fails = f"{cell.n:,} of {row[n]:,} fail" if row[n] else ""
        missing = f"{row['missing']:,} missing" if graded and row["missing"] else ""
        key = (name, str(row[column]) if column else "")
        found[key if several else key[::-1]] = {
            **_figures(row, rate, n, fails, missing),
            "anchor": cell.anchor,
        }
    named = corner_words(column, others) if several else ""
    lead = (
        f"Share of answers with the expected call, {level_words(report.level)} interval."
        if graded
        else "Share of the answers with a call whose calls can all be executed."
    )
    if any(cell.anchor for cell in cells):
        lead += " Choose a number for its failures."
    return {
        "title": "Success" if graded else "Executable",
        "lead": lead,
        **_grid(found, named),
    }


_CELL = {"share": NOTHING, "rate": 0, "anchor": "", "ask": ""}


def corner_words(column: str, others: Sequence[str]) -> str:
    """Return what the corner of a table by two axes says."""
    rows = " · ".join(map(word_of, others))
    return f"{rows} \N{MULTIPLICATION SIGN} {word_of(column)}" if column else rows


def _figures(row: Mapping[Any, Any], rate: str, n: str, *lines: str) -> dict[str, Any]:
    value = known(row[rate])
    if value is None:
        reason = row.get("reason") or UNRECORDED
        return {**_CELL, "lines": [reason]}
    interval = span(row["ci_low"], row["ci_high"], row[n])
    return {
        **_CELL,
        "share": share(value, row[n]),
        "rate": f"{value:.2f}",
        "lines": [interval, *lines],
    }


def _grid(found: Mapping[tuple[str, str], dict[str, Any]], corner: str) -> dict[str, Any]:
    nothing = {**_CELL, "lines": [UNRECORDED]}
    rows, columns = (dict.fromkeys(key[axis] for key in found) for axis in (0, 1))
    return {
        "label": f"Shares by {corner}",
        "corner": corner,
        "columns": list(columns),
        "rows": [(row, [found.get((row, c), nothing) for c in columns]) for row in rows],
    }


def render_matrix(m: Matrix) -> str:
    """Return a matrix for a notebook's output, rows and columns best first."""
    found = {}
    for row in best_first(m.frame, "success", (m.rows, m.columns)).to_dict("records"):
        counts = f"n {row['n']:,} · {counted(row['n_cases'], 'case')}"
        missing = f"{row['missing']:,} missing" if row["missing"] else ""
        key = (str(row[m.rows]), str(row[m.columns]))
        found[key] = _figures(row, "success", "n", counts, missing)
    corner = corner_words(m.columns, [m.rows])
    return fragment(macro("views/templates/screen.html", "heat", _grid(found, corner)))


def _dots(report: Report) -> dict[str, Any] | None:
    graded = report.has_targets
    frame, rate, n = _rates(report)
    frame = frame[frame[rate].notna()].head(MOST_DOTS)
    if frame.empty:
        return None
    missing = graded & frame["missing"].gt(0) if graded else pd.Series(False, frame.index)
    ends = [*frame["ci_low"], *frame["ci_high"]]
    if missing.any():
        ends += [*frame.loc[missing, "worst"], *frame.loc[missing, "best"]]
    low, high, ticks = _scale(min(ends), max(ends))

    def at(x: float) -> str:
        return f"{100 * (x - low) / (high - low):.1f}"

    rows = [
        {
            "name": _name(report, row),
            "share": share(row[rate], row[n]),
            "low": at(row["ci_low"]),
            "high": at(row["ci_high"]),
            "at": at(row[rate]),
            "worst": at(row["worst"]) if lacks else None,
            "best": at(row["best"]) if lacks else None,
        }
        for row, lacks in zip(frame.to_dict("records"), missing, strict=True)
    ]
    lead = f"Intervals are clustered by {report.cluster or 'case'}."
    if missing.any():
        lead += " Dashed: from the worst to the best that missing trials leave open."
    words = "; ".join(f"{row['name']} {row['share']}" for row in rows)
    many = counted(len(rows), "interval") if len(rows) > _MANY else ""
    return {"label": words, "lead": lead, "rows": rows, "ticks": ticks, "many": many}


def _scale(low: float, high: float) -> tuple[float, float, list[str]]:
    """Return the ends of an axis of shares and its ticks, at most six of them.

    >>> _scale(0.68, 0.91)
    (0.6, 1.0, ['60 %', '70', '80', '90', '100 %'])
    """
    for step in (10, 20, 25, 50):
        first = math.floor(100 * low / step + 1e-9) * step
        last = max(first + step, math.ceil(100 * high / step - 1e-9) * step)
        if (last - first) // step <= 5 and last <= 100:
            break
    else:
        first, last, step = 0, 100, 50
    ticks = [str(x) for x in range(first, last + 1, step)]
    return first / 100, last / 100, [f"{ticks[0]} %", *ticks[1:-1], f"{ticks[-1]} %"]


def _wrong(report: Report, cells: Sequence[FailingCell]) -> dict[str, Any]:
    n = sum(cell.n for cell in cells)
    if not n:
        return {"lead": "Nothing.", "rows": [], "many": ""}
    most = max(cell.n for cell in cells)
    anchored = any(cell.anchor for cell in cells)
    lead = counted(n, "failure") + "." + (" A number leads to its answers." if anchored else "")
    return {
        "lead": lead,
        "many": counted(n, "failure") if len(cells) > _MANY else "",
        "corner": " · ".join(map(word_of, report.by)),
        "causes": [
            (c.group.title, c.group.fill, ", ".join(c.group.codes)) for c in cells[0].causes
        ],
        "rows": [
            {
                "name": cell.name,
                "width": round(100 * cell.n / most),
                "parts": [(cause.group.fill, cause.n) for cause in cell.causes],
                "counts": [{"n": f"{c.n:,}", "anchor": c.anchor} for c in cell.causes],
                "all": f"{cell.n:,}",
            }
            for cell in cells
            if cell.n or len(cells) <= _MANY
        ],
    }


# Comparisons: the figures, and the flipped cases, each of which unfolds into both parse views.


def render_comparison(c: ArmComparison) -> str:
    """Return a comparison for a notebook's output."""
    return fragment(_comparison_body(c, MAX_FLIPS // 10, _about(c)))


def render_comparison_page(c: ArmComparison) -> str:
    """Return a comparison as a whole document."""
    return render_page(f"{c.b} against {c.a}", _comparison_body(c, MAX_FLIPS), _about(c))


def _about(c: ArmComparison) -> str:
    return f"two {kinds_of_column(c.on)} · policy {c.policy} · paired on cases"


def _comparison_body(c: ArmComparison, max_flips: int, about: str = "") -> str:
    folded = []
    if n := len(c.flips):
        flips = [
            macro(
                PARTS,
                "details",
                flip["summary"],
                macro(PARTS, "pair", flip["sides"], flip["readings"]),
            )
            for flip in _flip_views(c, c.flips.head(max_flips))
        ]
        answer = counted(n, "case") + (f", the first {max_flips}" if n > max_flips else "")
        folded.append({"title": "Cases that flip", "answer": answer, "body": Markup().join(flips)})
    if n := len(c.unpaired):
        answer = counted(n, "case") + (f", the first {MAX_FLIPS}" if n > MAX_FLIPS else "")
        body = macro(PARTS, "table", _drawn(unpaired_cases(c, MAX_FLIPS)))
        folded.append({"title": "Cases that only one side has", "answer": answer, "body": body})
    conclusion = conclusion_of_comparison(c, strata_of(c))
    folded.append(_reading([*filter(None, [c.chance_note, conclusion.note]), comparison_legend()]))
    return render(
        f"{TEMPLATES}/report.html",
        heading=about,
        conclusion=conclusion,
        warnings=[note for note in c.notes if note != c.chance_note],
        gate="",
        heat_of=None,
        dots_of=None,
        wrong_of=None,
        contrast={
            "title": f"{c.b} against {c.a}, same cases",
            "table": _drawn(comparison(c)),
            "many": "",
        },
        folded=folded,
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
            f"{flip['case_id']} {flip['direction']}: {word_of(str(flip['outcome_a']))} → "
            f"{word_of(str(flip['outcome_b']))}"
        )
        strata = [str(flip[name]) for name in strata_of(c)]
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

    def side(trial: Trial) -> tuple[str, dict[str, Any]]:
        facts = [("outcome", str(trial.score or trial.missing_reason))]
        return trial.arm, {"facts": facts, "raw": "", "view": _view(trial.result)}

    sides = [side(flip.a), side(flip.b)]
    readings = _readings((flip.a.arm, flip.a.result), (flip.b.arm, flip.b.result))
    html = Markup("<p><b>{}</b> {}</p><p>asked: {}</p>{}")
    texts = (visible(x) for x in (flip.case_id, flip.direction, flip.a.case.input_text))
    return fragment(html.format(*texts, macro(PARTS, "pair", sides, readings)))
