"""Reports as plain text for a terminal, and the words for numbers that every kind of report uses."""

from __future__ import annotations

import math
import shutil
import textwrap
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from .comparison import COMPARISON_COLUMNS

if TYPE_CHECKING:
    from .comparison import ArmComparison
    from .matrix import Matrix
    from .report import Report

_BAR = 20


def percent(x: Any, digits: int = 0) -> str:
    """A share as a percentage, '–' where it is not known; nothing but a whole is shown as 100."""
    if x is None or pd.isna(x):
        return "–"
    text = f"{100 * x:.{digits}f}"
    if float(text) == 100 and x < 1:
        text = f"{100 - 10**-digits:.{digits}f}"
    elif float(text) == 0 and x > 0:
        text = "<1" if digits == 0 else f"{10**-digits:.{digits}f}"
    return f"{text} %"


def span(low: Any, high: Any) -> str:
    """An interval of shares in percent."""
    return "" if pd.isna(low) else f"{100 * low:.0f}–{100 * high:.0f}"


def points(x: Any) -> str:
    """A difference of shares in points, with its sign; '–' where it is not known."""
    if pd.isna(x):
        return "–"
    return f"{100 * x:+.0f}".replace("-", "−").replace("+0", "0").replace("−0", "0")


def money(x: Any) -> str:
    if pd.isna(x):
        return "–"
    return "0" if x == 0 else f"{x:.2g}" if x < 0.01 else f"{x:.4f}" if x < 1 else f"{x:,.2f}"


def interval_bar(low: float, rate: float, high: float, width: int = _BAR) -> str:
    """An interval on a scale of 0 to 100 %: ├ and ┤ its ends, ● the rate."""
    if math.isnan(rate):
        return " " * width
    at = [min(width - 1, int(x * width)) for x in (low, rate, high)]
    cells = ["·"] * width
    for i in range(at[0], at[2] + 1):
        cells[i] = "─"
    cells[at[0]], cells[at[2]] = "├", "┤"
    cells[at[1]] = "●"
    return "".join(cells)


def headline(report: Report) -> str:
    """The report in one line."""
    cells = report.frame
    cases = report.headline.loc[report.headline["score_success"].notna(), "case_id"].nunique()
    parts = [f"{int(cells['n'].sum())} trials judged", f"{cases} cases", report.policy_said]
    if missing := int(cells["missing"].sum()):
        parts.append(f"{missing} missing")
    if ungraded := int(cells["ungraded"].sum()):
        parts.append(f"{ungraded} ungraded")
    return " · ".join(parts)


_RATES = ("strict", "repaired", "coerced", "naive", "fabricated", "coercion_rate")
# What a terminal gets, from wide to narrow: bars, rates, differences from the baseline.
_WIDTHS: tuple[tuple[bool, tuple[str, ...], bool], ...] = (
    (True, _RATES, True),
    (False, _RATES, True),
    (False, ("strict", "repaired", "coerced", "naive"), True),
    (False, ("strict", "naive"), True),
    (False, ("strict", "naive"), False),
    (False, (), False),
)


def cell_rows(
    report: Report, *, bars: bool, rates: Sequence[str] = _RATES, differences: bool = True
) -> tuple[list[str], list[list[str]], int]:
    """(head, rows, number of left-aligned columns) of the table of cells."""
    level = f"{report.level:.0%}".replace("%", " %")
    head = [*report.by, "success", f"{level} interval", *([""] if bars else []), "n", "cases"]
    extra = [c for c in ("missing", "ungraded") if report.frame[c].any()]
    head += [*extra, *(r.replace("_", " ") for r in rates)]
    against = differences and report.baseline is not None
    if against:
        head += [f"Δ {report.baseline}", "Δ interval", "p Holm"]
    rows = []
    for cell in report.frame.to_dict("records"):
        row = [str(cell[c]) for c in report.by]
        row += [percent(cell["success"]), span(cell["ci_low"], cell["ci_high"])]
        if bars:
            row.append(interval_bar(cell["ci_low"], cell["success"], cell["ci_high"]))
        row += [str(cell[c]) for c in ("n", "n_cases", *extra)]
        row += [percent(cell[c]) for c in rates]
        if against:
            known = not pd.isna(cell["difference"])
            row += [f"{100 * cell['difference']:+.0f}" if known else "–"]
            row += [f"{100 * cell['diff_low']:+.0f}…{100 * cell['diff_high']:+.0f}" if known else ""]
            row += [f"{cell['p_holm']:.3f}" if known else ""]
        rows.append(row)
    return head, rows, len(report.by)


def render_text(report: Report, width: int | None = None) -> str:
    """The report for a terminal of `width` columns (its own when None); what does not fit is left out of the table."""
    width = width or shutil.get_terminal_size((120, 24)).columns
    lines = [report.title, headline(report), ""]
    if report.frame.empty:
        return "\n".join([*lines, "There are no trials in this report."])
    for bars, rates, differences in _WIDTHS:
        head, rows, left = cell_rows(report, bars=bars, rates=rates, differences=differences)
        table = aligned(head, rows, left, centred={left + 2} if bars else set())
        if (over := max(map(_width, table.splitlines())) - width) <= 0:
            break
    else:
        longest = max(len(x) for row in rows for x in row[:left])
        limit = max(8, longest - over)
        table = aligned(head, [[*(_clipped(x, limit) for x in row[:left]), *row[left:]] for row in rows], left)
    lines += [table, ""]
    failures = report.failures
    if len(failures):
        lines.append("what went wrong")
        rows = [
            [outcome_name(f["outcome"], f["sub_code"]), str(f["n"]), percent(f["share"]), f["trial_ids"]]
            for f in failures.head(8).to_dict("records")
        ]
        lines += [aligned(["outcome", "n", "share", "trials"], rows, 1, {3}), ""]
    codes = report.codes
    if len(codes):
        lines.append("problem codes")
        rows = [[c["code"], str(c["n"]), percent(c["share"]), c["trial_ids"]] for c in codes.head(8).to_dict("records")]
        lines += [aligned(["code", "n", "share", "trials"], rows, 1, {3}), ""]
    for warning in report.warnings:
        lines += textwrap.wrap(_visible(warning), width, initial_indent="! ", subsequent_indent="  ")
    return "\n".join(lines).rstrip()


def outcome_name(outcome: str, sub_code: str) -> str:
    return f"{outcome}/{sub_code}" if sub_code else outcome


def _clipped(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def aligned(head: Sequence[str], rows: Sequence[Sequence[str]], left: int, centred: set[int] | None = None) -> str:
    """Columns padded to one width: the first `left` and those in `centred` to the left, the others to the right."""
    starts = set(range(left)) | (centred or set())
    clean = [[_visible(x) for x in r] for r in (head, *rows)]
    widths = [max(_width(r[i]) for r in clean) for i in range(len(head))]
    lines = []
    for r in clean:
        padded = [
            x + " " * (w - _width(x)) if i in starts else " " * (w - _width(x)) + x
            for i, (x, w) in enumerate(zip(r, widths, strict=True))
        ]
        lines.append("  ".join(padded).rstrip())
    lines.insert(1, "  ".join("─" * w for w in widths))
    return "\n".join(lines)


def _visible(text: str) -> str:
    """Text that cannot move a terminal's cursor or change its colours."""
    return text if text.isprintable() else "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def _width(text: str) -> int:
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def render_matrix_text(m: Matrix) -> str:
    found = {(r[m.rows], r[m.columns]): r for r in m.frame.to_dict("records")}
    rows = []
    for name in m.table.index:
        row = [str(name)]
        for column in m.table.columns:
            cell = found.get((name, column))
            interval = f" [{span(cell['ci_low'], cell['ci_high'])}]" if cell and cell["n"] else ""
            row.append(percent(cell["success"] if cell else None) + interval)
        rows.append(row)
    head = [f"{m.rows} \\ {m.columns}", *map(str, m.table.columns)]
    return f"success, policy {m.policy}\n{aligned(head, rows, 1)}"


def comparison_rows(c: ArmComparison) -> tuple[list[str], list[list[str]], int]:
    """(head, rows, number of left-aligned columns) of a comparison's figures; differences in points."""
    strata = [str(x) for x in c.frame if x not in COMPARISON_COLUMNS]
    head = [
        *strata,
        "cases",
        "a",
        "b",
        "b−a",
        "interval",
        "only a",
        "only b",
        "p rates",
        "p majority",
        "noise",
    ]
    rows = []
    for r in c.frame.to_dict("records"):
        known = not pd.isna(r["difference"])
        noise = max((x for x in (r["noise_a"], r["noise_b"]) if x == x), default=None)
        rows.append(
            [*(str(r[s]) for s in strata), str(r["n_cases"]), percent(r["success_a"]), percent(r["success_b"]),
             points(r["difference"]), f"{points(r['ci_low'])} … {points(r['ci_high'])}" if known else "–",
             str(r["only_a"]), str(r["only_b"]),
             *(f"{r[p]:.3f}" if known else "–" for p in ("p_rates_holm", "p_holm")), percent(noise)]
        )  # fmt: skip
    return head, rows, len(strata)


def comparison_text(c: ArmComparison, flips: int = 20) -> str:
    """A comparison for a terminal: its figures, the first flips, and its notes."""
    head, rows, left = comparison_rows(c)
    lines = [f"a {c.a}, b {c.b}: by {c.on}, policy {c.policy}, paired on cases, differences in points", ""]
    lines += [aligned(head, rows, left) if rows else "no cases", ""]
    n = len(c.flips)
    lines.append(f"{n} case{'' if n == 1 else 's'} flipped")
    if n:
        names = [*head[:left], "case_id", "direction", "outcome_a", "outcome_b", "trial_id_a", "trial_id_b"]
        told = [["" if pd.isna(x) else str(x) for x in row] for row in c.flips.head(flips)[names].to_numpy().tolist()]
        lines.append(aligned([x.replace("_", " ") for x in names], told, len(names)))
        lines += [f"… and {n - flips} more"] if n > flips else []
    return "\n".join([*lines, *c.notes])
