"""Reports: a trials frame summed up by any columns, with intervals, and written where people read."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from ..errors import BadOptions, StoreError
from . import stats
from .cells import (
    cells_frame,
    check_by,
    check_trials,
    codes_frame,
    coerced_policy,
    coercions_frame,
    failures_frame,
    groups,
    waterfall_frame,
)
from .compare import ArmComparison, column_of, compare_arms
from .notes import method_notes

SUFFIXES = (".html", ".md", ".csv", ".parquet")
_AT_LEAST = ("success", "strict", "repaired", "coerced", "naive", "worst", "best", "ci_low", "n", "n_cases", "distinct")


@dataclass(frozen=True, slots=True)
class GateFailure:
    """One cell that misses one threshold."""

    cell: str
    metric: str
    value: float
    threshold: float
    sentence: str


@dataclass(frozen=True, slots=True)
class GateResult:
    """Whether every recorded cell keeps every threshold; `unrecorded` names what could not be judged."""

    ok: bool
    failures: tuple[GateFailure, ...] = ()
    unrecorded: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        lines = ["gate passed" if self.ok else f"gate failed: {len(self.failures)} of the thresholds are not kept"]
        lines += [f"  {f.sentence}" for f in self.failures]
        lines += [f"  not judged: {name}" for name in self.unrecorded]
        return "\n".join(lines)


class Report:
    """Success and its reasons, by any columns of a trials frame.

    `frame` has one row a cell: the `by` columns, then n_cases, n (trials judged), missing (not recorded, or the
    provider failed), ungraded, success with ci_low and ci_high (clustered by case), strict, repaired, coerced, naive
    and fabricated (shares of 0 to 1), coercion_rate and repair_rate (shares of the answers with calls), worst and best
    (every missing trial failed, or succeeded), noise, distinct, latency_p50 and _p95 (seconds), tokens_mean, cost and
    cost_per_success (US dollars), and the reason of what is missing. With a `baseline`, difference, diff_low,
    diff_high, p and p_holm follow. What is not recorded is NaN.

    `stops` says in sentences why a run ended before its plan (a budget, an interrupt). Raises BadOptions for a frame
    without the columns of a trials frame, and for a column, policy or baseline that it does not hold.
    """

    def __init__(
        self,
        trials: pd.DataFrame,
        by: str | Sequence[str] | None = None,
        *,
        policy: str = "safe",
        baseline: str | None = None,
        level: float = 0.95,
        title: str = "Tool calls: what the models wrote and what could be read",
        stops: Iterable[str] = (),
        models: Mapping[str, str] | None = None,
    ) -> None:
        check_trials(trials)
        self.trials = trials.reset_index(drop=True)
        held = sorted(set(self.trials["policy"].dropna().astype(str)))
        if held and policy not in held:
            raise BadOptions("no trial was read under this policy", got=policy, expected=", ".join(held))
        self.policy = policy
        self.by = check_by(self.trials, by) if by is not None else _default_by(self.trials)
        self.level = level
        self.title = title
        self.stops = tuple(stops)
        self.models = dict(models or {})
        self.baseline = baseline
        self.baseline_column: str | None = None
        self.headline = self.trials[self.trials["policy"] == policy]
        if baseline is not None:
            self.baseline_column = next(
                (c for c in self.by if baseline in set(self.headline[c].dropna().astype(str))), None
            )
            if self.baseline_column is None:
                raise BadOptions(
                    "no column of the report holds this baseline", got=baseline, expected=", ".join(self.by)
                )

    @cached_property
    def frame(self) -> pd.DataFrame:
        cells = cells_frame(self.trials, self.by, self.policy, self.level)
        return cells if self.baseline is None else self._against_baseline(cells)

    @cached_property
    def waterfall(self) -> pd.DataFrame:
        """One row a cell and outcome: n and share."""
        return waterfall_frame(self.trials, self.by, self.policy)

    @cached_property
    def failures(self) -> pd.DataFrame:
        """Outcomes that are no success, ranked, with example trial ids."""
        return failures_frame(self.trials, self.policy)

    @cached_property
    def codes(self) -> pd.DataFrame:
        """Problem codes, ranked, with example trial ids."""
        return codes_frame(self.trials, self.policy)

    @cached_property
    def coercions(self) -> pd.DataFrame:
        """Coercion rules: applied, rescued, false rescues, harmed. Read under the loosest policy at hand."""
        return coercions_frame(self.trials, self.coerced_policy)

    @property
    def coerced_policy(self) -> str:
        """The policy that the coerced column stands for."""
        return coerced_policy(self.trials, self.policy)

    @property
    def notes(self) -> tuple[str, ...]:
        """How the numbers were made and what they cannot show, in sentences."""
        return method_notes(self)

    def cell_name(self, row: Mapping[Any, Any]) -> str:
        """The name of a cell: its values of `by`."""
        return " · ".join(str(row[c]) or "–" for c in self.by)

    def matrix(self, rows: str | None = None, columns: str | None = None) -> Matrix:
        """Success by two columns, see `matrix`."""
        return matrix(self.trials, rows=rows, columns=columns, policy=self.policy, level=self.level)

    def compare(
        self, a: str, b: str, *, on: str | None = None, within: str | Sequence[str] | None = None
    ) -> ArmComparison:
        """Two arms paired on cases, within the other columns of the report."""
        on = column_of(self.trials, a, b, on)
        others = within if within is not None else [c for c in self.by if c != on and not self._follows(c, on)]
        return compare_arms(self.trials, a, b, on=on, within=others or None, policy=self.policy, level=self.level)

    def flips(self, a: str, b: str, *, on: str | None = None) -> pd.DataFrame:
        """The cases of which the majority differs between two arms: one row a case, with a trial of each side."""
        return self.compare(a, b, on=on).flips

    def gate(self, success: float | None = None, coercion_rate: float | None = None, **thresholds: float) -> GateResult:
        """Hold every cell to thresholds: success and its kin are least values, all other columns greatest ones.

        Cells without a recorded trial are named, not failed; a report without any recorded trial fails. Raises
        BadOptions for a column the report has not, and for a threshold that is no number.
        """
        wanted: dict[str, float] = {}
        for metric, limit in {"success": success, "coercion_rate": coercion_rate, **thresholds}.items():
            if limit is None:
                continue
            if metric not in self.frame or metric in (*self.by, "reason"):
                numbers = [str(c) for c in self.frame if c not in (*self.by, "reason")]
                raise BadOptions("the report has no such column to gate on", got=metric, expected=", ".join(numbers))
            if isinstance(limit, bool) or not isinstance(limit, (int, float)) or not math.isfinite(limit):
                raise BadOptions(f"the threshold of {metric} is no number", got=limit, expected="a number")
            wanted[metric] = float(limit)
        failures: list[GateFailure] = []
        unrecorded: list[str] = []
        if not self.frame["n"].sum():
            sentence = "no trial of this report is recorded and graded, so there is nothing to judge"
            failures.append(GateFailure("all", "n", 0.0, 1.0, sentence))
        for row in self.frame.to_dict("records"):
            name = self.cell_name(row)
            for metric, limit in wanted.items():
                value = float(row[metric])
                if math.isnan(value):
                    unrecorded.append(f"{metric} of {name} ({row['reason'] or 'no trial has it'})")
                elif (value < limit) if metric in _AT_LEAST else (value > limit):
                    word = "below" if metric in _AT_LEAST else "above"
                    sentence = f"{name}: {metric} is {value:.4g}, {word} {limit:.4g}"
                    failures.append(GateFailure(name, metric, value, limit, sentence))
        return GateResult(not failures, tuple(failures), tuple(unrecorded))

    def text(self, width: int | None = None) -> str:
        """An aligned plain table with intervals, for a terminal."""
        from .report_text import render_text

        return render_text(self, width)

    def html(self, *, page: bool = False) -> str:
        """HTML without any outside reference: a fragment for a notebook, or a whole page."""
        from .report_html import render_fragment, render_page

        return render_page(self) if page else render_fragment(self)

    def markdown(self) -> str:
        from .report_text import render_markdown

        return render_markdown(self)

    def save(self, path: str | Path) -> Path:
        """Write the report; the suffix says how: .html (one self-contained page), .md, .csv or .parquet (the frame)."""
        file = Path(path)
        suffix = file.suffix.lower()
        if suffix not in SUFFIXES:
            raise BadOptions(
                "a report is not written as this kind of file", got=file.name, expected=", ".join(SUFFIXES)
            )
        try:
            if suffix == ".html":
                file.write_text(self.html(page=True), encoding="utf-8")
            elif suffix == ".md":
                file.write_text(self.markdown(), encoding="utf-8")
            elif suffix == ".csv":
                self.frame.to_csv(file, index=False)
            else:
                self.frame.to_parquet(file, index=False)
        except OSError as e:
            raise StoreError("the report cannot be written", got=f"{path}: {e.strerror or e}") from None
        return file

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": self.text(), "text/html": self.html()}

    def __repr__(self) -> str:
        return self.text()

    def _follows(self, column: str, on: str) -> bool:
        """Whether a column changes only with `on`, so that it cannot be held fixed while `on` is compared."""
        pairs = self.headline[[column, on]].astype("string").fillna("").drop_duplicates()
        return len(pairs) > 1 and not pairs[column].duplicated().any()

    def _against_baseline(self, cells: pd.DataFrame) -> pd.DataFrame:
        judged = {values: _judged(part) for values, part in groups(self.headline, self.by)}
        rows = []
        for cell in cells.to_dict("records"):
            here = tuple(str(cell[c]) for c in self.by)
            there = tuple(str(self.baseline) if c == self.baseline_column else str(cell[c]) for c in self.by)
            if here == there or there not in judged:
                rows.append([stats.NAN] * 4)
                continue
            (b, b_cases), (a, a_cases) = judged[here], judged[there]
            gap = stats.bootstrap_difference(a, a_cases, b, b_cases, self.level)
            rows.append([gap.rate, gap.low, gap.high, stats.paired_mcnemar(a, a_cases, b, b_cases).p])
        extra = pd.DataFrame(rows, columns=["difference", "diff_low", "diff_high", "p"], index=cells.index)
        extra["p_holm"] = stats.holm(extra["p"].tolist())
        return pd.concat([cells, extra], axis=1)


def _judged(part: pd.DataFrame) -> tuple[list[bool], list[Any]]:
    """(successes, cases) of the trials that could be judged."""
    part = part[part["score_success"].notna()]
    return part["score_success"].astype(bool).tolist(), part["case_id"].tolist()


def _default_by(trials: pd.DataFrame) -> tuple[str, ...]:
    """model and prompt_protocol, and arm and parse_protocol where these tell cells further apart."""
    by = ["model", "prompt_protocol"]
    for column in ("arm", "parse_protocol"):
        if column in trials:
            keys = trials[[*by, column]].astype("string").fillna("").drop_duplicates()
            if keys.duplicated(by).any():
                by.append(column)
    return tuple(by)


@dataclass(frozen=True)
class Matrix:
    """Success by two columns. `frame`: one row a cell; `table`: rows × columns of the success rate."""

    rows: str
    columns: str
    policy: str
    frame: pd.DataFrame

    @property
    def table(self) -> pd.DataFrame:
        wide = self.frame.pivot(index=self.rows, columns=self.columns, values="success")
        names = [list(dict.fromkeys(self.frame[c])) for c in (self.rows, self.columns)]
        return wide.reindex(index=names[0], columns=names[1])

    def _repr_html_(self) -> str:
        from .report_html import render_matrix

        return render_matrix(self)

    def __repr__(self) -> str:
        from .report_text import render_matrix_text

        return render_matrix_text(self)


def matrix(
    trials: pd.DataFrame,
    *,
    rows: str | None = None,
    columns: str | None = None,
    policy: str = "safe",
    level: float = 0.95,
) -> Matrix:
    """Success with intervals by protocol (rows) and model (columns), or any other two columns.

    A cell that pools several trials of other columns says so by its n.
    """
    check_trials(trials)
    rows, columns = rows or "prompt_protocol", columns or "model"
    if rows == columns:
        raise BadOptions("a matrix has two different columns", got=rows)
    check_by(trials, [rows, columns])
    held = sorted(set(trials["policy"].dropna().astype(str)))
    if held and policy not in held:
        raise BadOptions("no trial was read under this policy", got=policy, expected=", ".join(held))
    return Matrix(rows, columns, policy, cells_frame(trials.reset_index(drop=True), [rows, columns], policy, level))


def render_report(report: Report) -> str:
    """The report as an HTML fragment."""
    return report.html()
