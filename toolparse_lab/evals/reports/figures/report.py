"""Reports: a trials frame summed up by any columns, with intervals and notes, and written where
people read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np
import pandas as pd

from ....core import hooks
from ....core.errors import BadOptions, UnknownName, near
from ....core.values.printable import counted
from ....core.values.wording import level_words, share
from ...frames.files import parquet_files_of, read_frame, unpacked
from . import stats
from .breakdowns import (
    codes_frame,
    conversations_frame,
    endpoint_notes,
    failures_frame,
    flip_grid_frame,
    layers_frame,
    leave_one_out_frame,
    rescues_frame,
    sampling_differences,
    sensitivity_frame,
    served_notes,
    verdicts_frame,
    waterfall_frame,
)
from .cells import (
    READ,
    UNRECORDED,
    Matrix,
    cells_frame,
    check_by,
    check_once,
    check_policy,
    clusters_of,
    codes_of,
    coerced_policy,
    executable_of,
    groups,
    judged_of,
    matrix,
    policies_of,
    read_under,
    same_question_note,
    same_questions,
    tools_frame,
    ungraded_frame,
)
from .comparison import ArmComparison, column_of, compare_arms
from .differences import Difference, paired_difference
from .gates import AnswerAgainst, GateResult, against, check_gates
from .ladder import ladder_frame
from .view import RunView, rows_of

EMBEDDED_MODEL = "toolparse-local/smollm2-135m"
MANY = 3  # cells from which on the best one is a pick of many, and the most that are named
FEW_CASES = 30
UNEVEN = 0.05  # difference of the shares of missing trials in two cells
MOSTLY_COPIES = 0.34  # share of different answers among the trials of a case
MOST_ANSWERS = 5  # of those that count against a gate
_CELL = "the cell"  # no column of a frame has this name
_ALPHA = 0.05  # p at which a cell is told from the best one


class ReportOptions(TypedDict, total=False):
    """The keywords of a report that `Run.report` takes as well.

    Args:
        level: of the intervals.
        cluster: what intervals go by, such as conversation_id (default: the cluster of the run,
            or the case).
        title: of the report's page.
    """

    level: float
    cluster: str | None
    title: str


class ReportKeywords(ReportOptions, total=False):
    """The keywords of `Report` besides its columns and its policy."""

    baseline: str | None


class Report:
    """Success and its reasons, by any columns of a trials frame.

    `source` is a view of a run, or a trials frame.

    `frame` has one row per cell: the `by` columns, then those of `cells.FIGURES`, and with a
    `baseline` those of `cells.OF_BASELINE`. Anything not recorded is NaN.

    `cluster` is a column that keeps whole cases together, such as conversation_id: intervals and p
    go by it instead of by case.

    Raises BadOptions for a frame without the columns of a trials frame, for a column, policy or
    baseline that it lacks, and where a cell has one trial twice. With "policy" among `by`
    each policy of the frame has rows of its own.
    """

    def __init__(
        self,
        source: RunView | pd.DataFrame,
        by: str | Sequence[str] | None = None,
        *,
        policy: str = "safe",
        baseline: str | None = None,
        level: float = 0.95,
        cluster: str | None = None,
        title: str = "Tool calls: what the models wrote and what could be read",
    ) -> None:
        view = RunView.of(source)
        self.trials = view.trials.reset_index(drop=True)
        self.view = replace(view, trials=self.trials)
        self.by = check_by(self.trials, by) if by is not None else _default_by(self.trials)
        policies = policies_of(self.trials)
        if "policy" not in self.by:
            check_policy(policies, policy)
        elif policies and policy not in policies:
            policy = policies[0]  # each has rows of its own, so none needs to be chosen
        self.policy = policy
        self.coerced_policy = coerced_policy(self.trials, policy)
        """The policy that the coerced column stands for."""
        self.left_out_policies: list[str] = []
        self.policy_said = f"policy {policy}"
        if "policy" not in self.by:
            # The columns safe and coerced stand for these two.
            in_figures = (policy, "safe", self.coerced_policy)
            self.left_out_policies = [p for p in policies if p not in in_figures]
        elif len(policies) > 1:
            self.policy_said = f"policies {', '.join(policies)}, each in rows of its own"
        self.level = level
        self.cluster = cluster
        self.clusters = clusters_of(self.trials, cluster)
        """Case -> what intervals and tests count as one with it; None where each is its own."""
        self.title = title
        self.headline = read_under(self.trials, self.by, policy)
        check_once(self.headline, self.by)
        self.baseline = baseline
        self.baseline_column = None if baseline is None else self._column_of(baseline)
        """The column of `by` that holds the baseline, None without one."""

    def _column_of(self, baseline: str) -> str:
        values: dict[str, None] = {}  # in order of appearance
        for column in self.by:
            texts = self.headline[column].dropna().astype(str).unique()
            if baseline in texts:
                return column
            values |= dict.fromkeys(texts)
        if self.view.peers and "arm" in self.by:  # a protocol whose arms differ by more than it
            return "arm"
        raise UnknownName(
            f"no column of the report ({', '.join(self.by)}) holds this baseline",
            got=baseline,
            expected=", ".join(values),
            hint=near(baseline, values) or "name one of these, or go by another column",
            code="unknown-arm",
        )

    @cached_property
    def frame(self) -> pd.DataFrame:
        """One row per cell. See the class for the columns."""
        cells = cells_frame(self.trials, self.by, self.policy, self.level, self.clusters)
        return cells if self.baseline is None else self._against_baseline(cells)

    @cached_property
    def waterfall(self) -> pd.DataFrame:
        """One row per cell and outcome: n and share."""
        return waterfall_frame(self.trials, self.by, self.policy)

    @cached_property
    def failures(self) -> pd.DataFrame:
        """Outcomes that are not success, ranked, with example trial ids."""
        return failures_frame(self.trials, self.policy)

    @cached_property
    def layers(self) -> pd.DataFrame:
        """Layers that broke answers, ranked, see `breakdowns.layers_frame`."""
        return layers_frame(self.trials, self.policy)

    @cached_property
    def codes(self) -> pd.DataFrame:
        """Problem codes, ranked, with example trial ids."""
        return codes_frame(self.trials, self.policy)

    @cached_property
    def verdicts(self) -> pd.DataFrame:
        """One row per cell and verdict: how many answers have it."""
        return verdicts_frame(self.trials, self.by, self.policy)

    @cached_property
    def ungraded(self) -> pd.DataFrame:
        """What is known of answers without a target, cell by cell, see `ungraded_frame`."""
        return ungraded_frame(self.trials, self.by, self.policy, self.level, self.clusters)

    @cached_property
    def tools(self) -> pd.DataFrame:
        """What is known of the calls in answers without a target, tool by tool, see `tools_frame`.
        Empty where the calls are not at hand.
        """
        calls = pd.DataFrame(columns=["trial_id", "name", "verdict"])
        if self.view.calls is not None:
            calls = self.view.calls()
        return tools_frame(self.trials, calls, self.policy, self.level, self.clusters)

    @property
    def has_targets(self) -> bool:
        """False where answers are there and none of them has a target to be judged by."""
        return bool(self.frame["n"].any()) or self.ungraded.empty

    @cached_property
    def coercions(self) -> pd.DataFrame:
        """Coercion rules alone of `rescues`."""
        return self.rescues[self.rescues["stage"] == "coercion"].reset_index(drop=True)

    @cached_property
    def rescues(self) -> pd.DataFrame:
        """Rules of repair, reading, recovery and coercion: applied, rescued, false rescues, harmed.
        Read under the loosest policy at hand. See `breakdowns.rescues_frame`.
        """
        return rescues_frame(self.trials, self.coerced_policy)

    @cached_property
    def ladder(self) -> pd.DataFrame:
        """One row per cell and rung of help, from none to all three layers of type safety (prompt,
        reading, feedback): success, the gain over the rung before, the interval of the gain and its
        p. See `ladder.ladder_frame`.
        """
        return ladder_frame(
            self.frame, self.trials, self.by, self.policy, self.level, self.clusters, self.view.arms
        )

    @cached_property
    def flip_grid(self) -> pd.DataFrame:
        """Cases that one cell gets right and another wrong, with a column per cell."""
        return flip_grid_frame(self.headline, self.by, self.cell_name)

    @cached_property
    def conversations(self) -> pd.DataFrame:
        """Conversations of several turns, cell by cell, see `breakdowns.conversations_frame`."""
        return conversations_frame(self.trials, self.by, self.policy)

    @cached_property
    def sensitivity(self) -> pd.DataFrame:
        """Success under looser matching, see `breakdowns.sensitivity_frame`."""
        return sensitivity_frame(self.trials, self.by, self.policy, self.level, self.clusters)

    @property
    def left_out_columns(self) -> tuple[str, str] | None:
        """The column that `left_out` ranks and the one it leaves values out of, None if there is
        nothing to rank or to leave out.
        """
        judged = self.headline[self.headline["score_success"].notna()]
        # A column with one value cannot be ranked, and leaving that value out leaves nothing.
        names = [c for c in {*self.by, "model", "category"} if c in judged]
        several = {c for c in names if judged[c].nunique() > 1}
        ranked = ("arm", "prompt_protocol", "parse_protocol", "model")
        of = next((c for c in ranked if c in self.by and c in several), None)
        over = next((c for c in ("model", "category") if c in several and c != of), None)
        return (of, over) if of and over else None

    @cached_property
    def left_out(self) -> pd.DataFrame:
        """Ranks of arms or models without each model or category, see `leave_one_out_frame`."""
        columns = self.left_out_columns
        if columns is None:
            raise BadOptions(
                "nothing can be left out",
                got=", ".join(self.by),
                expected="two arms or models, and two models or categories next to them",
            )
        return self.leave_one_out(*columns)

    def leave_one_out(self, of: str, over: str) -> pd.DataFrame:
        """`left_out` for any two columns of the trials frame."""
        return leave_one_out_frame(self.trials, of, over, self.policy)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """The sentences that a reader has to know before any number."""
        return tuple(_warnings(self))

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """The warnings, then the sentences on how the numbers were made and their limits."""
        return (*self.warnings, *_method_notes(self))

    def cell_name(self, row: Mapping[Any, Any]) -> str:
        """Return the name of a cell: its values of `by`."""
        return self.name_of([row[c] for c in self.by])

    def name_of(self, values: Iterable[Any]) -> str:
        """Return the name of the cell with these values of `by`."""
        return " · ".join(str(value) or "–" for value in values)

    def matrix(self, rows: str | None = None, columns: str | None = None) -> Matrix:
        """Success by two columns, see `matrix`."""
        # The cells are counted already where the report goes by just these two.
        both = (rows or "prompt_protocol", columns or "model")
        if sorted(both) == sorted(self.by) and self.has_targets:
            return Matrix(*both, self.policy, self.frame)
        return matrix(
            self.trials, rows=rows, columns=columns, policy=self.policy, level=self.level,
            cluster=self.cluster,
        )  # fmt: skip

    def compare(
        self,
        a: str,
        b: str,
        *,
        on: str | None = None,
        within: str | Sequence[str] | None = None,
        pairs: int | None = None,
    ) -> ArmComparison:
        """Two arms paired on cases, within the other columns of the report or those of `within`.

        pairs: how many pairs this one may have been picked from, all of the report by default.
        Raises BadOptions for an arm or a column that the frame lacks.
        """
        on = column_of(self.trials, a, b, on)

        def follows(column: str) -> bool:
            # A column that changes only with `on` cannot be held fixed while `on` is compared.
            codes = {name: codes_of(self.headline[name])[0] for name in (column, on)}
            pairs = pd.DataFrame(codes).drop_duplicates()
            return len(pairs) > 1 and not pairs[column].duplicated().any()

        others = within
        if others is None:
            others = [c for c in self.by if c != on and not follows(c)]
        return compare_arms(
            self.view,
            a,
            b,
            on=on,
            within=others or None,
            policy=self.policy,
            level=self.level,
            cluster=self.cluster,
            pairs=pairs,
        )

    def flips(self, a: str, b: str, *, on: str | None = None) -> pd.DataFrame:
        """Return the cases whose majority differs between two arms, with a trial of each side."""
        return self.compare(a, b, on=on).flips

    def gate(
        self,
        success: float | None = None,
        coercion_rate: float | None = None,
        **thresholds: float | None,
    ) -> GateResult:
        """Check every cell against thresholds for columns of numbers in `frame`: success and
        similar are least values, all others greatest ones.

        A figure that is unknown does not pass, and neither does a report without trials. Raises
        BadOptions for a column the report has not, for a threshold that is not a number, and if
        there is none.
        """
        bounds = {"success": success, "coercion_rate": coercion_rate, **thresholds}
        gate = check_gates(self.frame, self.by, bounds, self.cell_name, self.is_baseline)
        return gate if gate.ok else self._with_answers(gate)

    def _with_answers(self, gate: GateResult) -> GateResult:
        # A case is told once, and the cells take turns, so that the first few are no one question.
        failed: dict[str, list[str]] = {}
        for check in gate.failures:
            failed.setdefault(check.cell, []).append(check.metric)
        parts = []
        for values, rows in groups(self.headline, self.by):
            name = self.name_of(values)
            counts = [against(metric, rows) for metric in failed.get(name, ())]
            if counts:
                parts.append(rows[np.logical_or.reduce(counts)].assign(**{_CELL: name}))
        if not parts:
            return gate
        found = pd.concat(parts)
        told = found.drop_duplicates([_CELL, "case_id"])
        told = told.iloc[np.argsort(told.groupby(_CELL).cumcount(), kind="stable")]
        first = told.head(MOST_ANSWERS)
        answers = tuple(
            AnswerAgainst(cell, str(row["case_id"]), str(row["trial_id"]), self.view.why(row))
            for cell, row in zip(first[_CELL], rows_of(self.view.whole(first)), strict=True)
        )
        return replace(gate, answers=answers, n_against=len(found))

    def chart(self, name: str = "success") -> Any:
        """Return a chart as an Altair object, which notebooks draw and which can be restyled.

        name: "success" with its intervals, "outcomes" or "verdicts". Raises UnknownName for another
        name, BadOptions where the report has nothing to draw in it, and MissingExtra without the
        extra `charts`.
        """
        return hooks.call("figure_chart", self, name)

    def text(self, width: int | None = None) -> str:
        """Return an aligned plain table with intervals, for a terminal."""
        return str(hooks.call("figure_text", self, width=width))

    def html(self, *, page: bool = False, gate: GateResult | None = None) -> str:
        """HTML without any outside reference: a fragment for a notebook, or a whole page."""
        return str(hooks.call("figure_html", self, page=page, gate=gate))

    def markdown(self) -> str:
        """GitHub-flavoured Markdown, without a gate."""
        return str(hooks.call("figure_markdown", self))

    def save(self, path: str | Path, *, gate: GateResult | None = None) -> Path:
        """Write the report as .html, .md, .csv, .parquet (the frame), .tex or .xml (JUnit).

        The checks of a gate are at the top of a page and of Markdown, and are a suite of JUnit's.
        Raises BadOptions for another suffix, and StoreError.
        """
        return Path(hooks.call("save_figure", self, path, gate=gate))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": self.text(), "text/html": self.html()}

    def __repr__(self) -> str:
        return self.text()

    def _against_baseline(self, cells: pd.DataFrame) -> pd.DataFrame:
        part = self.headline[list(dict.fromkeys((*self.by, "score_success", "case_id")))]
        judged = {values: judged_of(rows) for values, rows in groups(part, self.by)}
        rows = []
        for cell in cells.to_dict("records"):
            own = tuple(str(cell[c]) for c in self.by)
            base = tuple(
                self.baseline_of(value) if column == self.baseline_column else value
                for column, value in zip(self.by, own, strict=True)
            )
            # Nothing for the baseline itself, and where the baseline has no such cell.
            paired, gap = None, Difference()
            if own != base and base in judged:
                gap = paired_difference(*judged[base], *judged[own], self.level, self.clusters)
                paired = gap.n_cases
            rows.append([paired, gap.rate, gap.low, gap.high, gap.p])
        columns = ["paired", "difference", "diff_low", "diff_high", "p"]
        extra = pd.DataFrame(rows, columns=columns, index=cells.index)
        extra["paired"] = extra["paired"].astype("Int64")
        extra["p_holm"] = stats.holm(extra["p"].tolist())
        return pd.concat([cells, extra], axis=1)

    def baseline_of(self, value: str) -> str:
        """Return the value of the baseline's column that a cell with `value` is compared with. If
        the baseline is a protocol, that of an arm is the protocol's arm with its levels.
        """
        if value in self.view.peers and self.baseline_column == "arm":
            return self.view.peers[value]
        return str(self.baseline)

    def is_baseline(self, cell: Mapping[Any, Any]) -> bool:
        """Return True if a cell, a row of `frame`, is the one that others are compared with."""
        if self.baseline_column is None:
            return False
        value = str(cell[self.baseline_column])
        return self.baseline_of(value) == value


def _default_by(trials: pd.DataFrame) -> tuple[str, ...]:
    by = ["model", "prompt_protocol"]
    # One cell must not pool what a plan set apart.
    for column in ("arm", "parse_protocol"):
        if column in trials:
            names = [*by, column]
            keys = pd.DataFrame({n: codes_of(trials[n])[0] for n in names}).drop_duplicates()
            if keys.duplicated(by).any():
                by.append(column)
    return tuple(by)


# The notes: the facts that a reader has to know first, the quantity counted, how, and its limits. A
# new warning is a step of `_warnings`.


def _warnings(report: Report) -> Iterator[str]:
    part, cells = report.headline, report.frame
    for reason in report.view.stops:
        yield f"Stopped early: {reason}"
    if report.view.unknown:
        yield (
            "The plan of this run has parts that this version does not know, and ignores: "
            f"{', '.join(report.view.unknown)}."
        )

    if policies := report.left_out_policies:
        yield (
            f"Readings under {', '.join(policies)} are in the frame too, and in no figure here: "
            f'policy={policies[0]!r} shows them instead, and "policy" among the columns of by= '
            "shows each policy."
        )
    if "override" in part and (n := int(part["override"].notna().sum())):
        yield (
            f"{n} {'outcome' if n == 1 else 'outcomes'} overridden by hand: the column override of "
            "the frame has them, and every rate here is that of the recorded scores."
        )

    models = set(part["model"].dropna().astype(str))
    models |= {str(report.view.models[name]) for name in models if name in report.view.models}
    if "model_name" in part:
        models |= set(part["model_name"].dropna().astype(str))
    if EMBEDDED_MODEL in models:
        yield (
            f"The embedded model ({EMBEDDED_MODEL}, 135 million parameters) shows how damaged "
            "text is read, repaired and scored. It cannot rank protocols: it is far too small to "
            "follow any of them reliably, and an order found with it does not carry over to larger "
            "models."
        )

    if missing := int(cells["missing"].sum()):
        is_missing = part["score_success"].isna() & part["target"].notna()
        reasons = part.loc[is_missing, "missing_reason"].fillna(UNRECORDED).astype(str)
        counts = ", ".join(f"{reason} {n}" for n, reason in reasons.value_counts().items())
        if absent := missing - len(reasons):
            # The plan, where there is one, has a row for each trial.
            absent_words = f"no row {absent}, as other cases have more trials"
            counts = f"{counts}, {absent_words}" if counts else absent_words
        yield (
            f"{counted(missing, 'trial')} {'is' if missing == 1 else 'are'} missing ({counts}). "
            "They are no failures: worst and best say where "
            "the rate would lie if all of them had failed or succeeded."
        )
        shares = cells["missing"] / (cells["missing"] + cells["n"]).clip(lower=1)
        if len(cells) > 1 and shares.max() - shares.min() > UNEVEN:
            yield (
                "Missing trials are spread unevenly over the cells, so compare them by worst and "
                "best."
            )

    if len(cells) > 1 and (note := _unseen_note(report, part)):
        yield note

    def is_pooled(column: str) -> bool:
        codes = {name: codes_of(part[name])[0] for name in (*report.by, column)}
        return bool(pd.DataFrame(codes).drop_duplicates().duplicated(list(report.by)).any())

    names = ("model", "prompt_protocol", "parse_protocol", "arm", "run_id")
    if pooled := [c for c in names if c in part and c not in report.by and is_pooled(c)]:
        yield (
            f"Cells pool several values of {', '.join(pooled)}: the same answer may be counted "
            "more than once."
        )
    told = (*report.by, "model", "endpoint", "sampling_json", "trial")
    sampled = part[[c for c in dict.fromkeys(told) if c in part]]
    trials = {report.name_of(values): rows for values, rows in groups(sampled, report.by)}
    if differences := sampling_differences(trials, within=True):
        yield f"Not all of these trials were sampled alike: {differences}."
    yield from endpoint_notes(sampled, trials)
    yield from served_notes(part)
    if "tokens_estimate" in part and len(estimates := part["tokens_estimate"].dropna()):
        yield (
            f"{counted(len(estimates), 'answer')} came with a usage of zeros, which counts nothing "
            "and is in no figure of tokens or cost. By a tokenizer they have "
            f"{counted(round(estimates.mean()), 'token')} on average (column tokens_estimate)."
        )
    if note := best_of_many(report):
        yield note
    # Without a column to go by, these are the report's clusters.
    alike = same_questions(part) if report.cluster is not None else report.clusters or {}
    if note := same_question_note(alike, report.cluster):
        yield note
    if note := _uneven_note(report, part):
        yield note

    if 0 < (cases := _judged_cases(report)) < FEW_CASES:
        verb = "is" if cases == 1 else "are"
        yield (
            f"{counted(cases, 'case')} {verb} few: the intervals are wide, and they are what the "
            "data can say."
        )


def _unseen_note(report: Report, part: pd.DataFrame) -> str:
    # Cells that share most cases were asked the same ones, by the look of it.
    seen = {report.name_of(key): set(rows["case_id"]) for key, rows in groups(part, report.by)}
    every = set().union(*seen.values())
    if 2 * len(every.intersection(*seen.values())) <= len(every):
        return ""
    lacking = [f"{name} {len(every - own)}" for name, own in seen.items() if own != every]
    if not lacking:
        return ""
    return (
        f"Of {len(every)} cases, some cells have no row at all: {', '.join(lacking)}. Nothing says "
        "that they were asked, so they are in no figure, not even in missing."
    )


def _uneven_note(report: Report, part: pd.DataFrame) -> str:
    # Where the share beside "23 of 100 fail" is not 77 %.
    for key, rows in groups(part, report.by):
        if rows["case_id"].value_counts().nunique() < 2:
            continue
        good = rows["score_success"] if report.has_targets else executable_of(rows)
        good = good.dropna().astype(bool)
        n, cases = len(good), rows.loc[good.index, "case_id"]
        rate = stats.case_rate(good.tolist(), cases.tolist())
        if n and share(rate, n) != share(good.mean(), n):
            return (
                "Cases have different numbers of answers, and a share counts each case once: "
                f"{report.name_of(key)} has {share(rate, n)}, and {int(good.sum()):,} of its "
                f"{n:,} answers."
            )
    return ""


def _judged_cases(report: Report) -> int:
    part = report.headline
    return int(part.loc[part["score_success"].notna(), "case_id"].nunique())


def best_of_many(report: Report) -> str:
    """Return what to think of the best of several cells, and the names of those that cannot be told
    from it on the cases they share. '' for fewer than three cells.

    Each other cell is held against the one with the highest rate by the sign-flip test, by Holm
    over them.
    """
    part = report.headline[list(dict.fromkeys((*report.by, "score_success", "case_id")))]
    cells = {values: judged_of(rows) for values, rows in groups(part, report.by)}
    judged = {values: trials for values, trials in cells.items() if trials[0]}
    if len(judged) < MANY:
        return ""
    rates = {values: stats.case_rate(*trials) for values, trials in judged.items()}
    best = max(rates, key=lambda values: rates[values])
    others = [values for values in judged if values != best]
    adjusted = stats.holm(
        [paired_difference(*judged[k], *judged[best], clusters=report.clusters).p for k in others]
    )
    # Not `p > _ALPHA`: a p that is not known tells two cells no more apart than a high one.
    alike = [report.name_of(k) for k, p in zip(others, adjusted, strict=True) if not p <= _ALPHA]
    n_equal = sum(rates[k] == rates[best] for k in others)
    ties = {0: "", 1: ", whose rate one other has too"}.get(
        n_equal, f", whose rate {n_equal} others have too"
    )
    told = ""
    if alike:
        more = f" and {len(alike) - MANY} more" if len(alike) > MANY else ""
        told = (
            f" {len(alike)} of the {len(others)} others cannot be told from it on these cases: "
            f"{', '.join(alike[:MANY])}{more}."
        )
    return (
        f"The best of {len(judged)} ({report.name_of(best)}{ties}), picked on the cases it is "
        f"measured on, looks better than it is. Confirm it on other cases.{told}"
    )


def _method_notes(report: Report) -> list[str]:
    """Return the sentences on how the numbers were made."""
    cells = report.frame
    level = level_words(report.level)
    notes = [
        f"n = {counted(int(cells['n'].sum()), 'trial')} judged, of "
        f"{counted(_judged_cases(report), 'case')}. Success is counted under the "
        f"{report.policy_said}: readable calls equal to the target, in any "
        "order, numbers compared as decimals, or no call where none was wanted.",
        f"Intervals are {level} intervals over {report.cluster or 'case'}s, each "
        f"{'case' if report.cluster is None else 'of their cases'} counted once: Agresti and "
        "Coull's at the effective sample size, with a t quantile where it is small.",
    ]
    if ungraded := int(cells["ungraded"].sum()):
        notes.append(
            f"{counted(ungraded, 'trial')} of cases without a target: in no rate of success."
        )
    notes.append(levels_legend(report))
    if report.baseline is not None:
        notes.append(
            f"Differences from {report.baseline} are means of the cases' differences, so that each "
            "case counts once; p is the sign-flip test on them (McNemar's exact test where each "
            "case has one trial), by Holm over the cells."
        )
    if (cells["distinct"].dropna() <= MOSTLY_COPIES).any():
        notes.append(
            "In some cells the trials of a case are mostly copies of one answer: more trials add "
            "little."
        )
    return notes


def levels_legend(report: Report, levels: Collection[str] | None = None) -> str:
    """Return the sentences that say the meaning of each level of success, for wherever levels are
    printed. levels: the levels that are, None for all.
    """
    coerced = f"coerced: under the policy {report.coerced_policy}."
    if report.coerced_policy == report.policy:
        coerced = f"coerced: no looser policy was recorded, so it is the same as {report.policy}."
    sentences = {
        "strict": "strict: as written, its closer included, without any edit, reading step or "
        "coercion (formats that carry every value as text cannot reach it for typed arguments).",
        "repaired": "repaired: edits allowed, no coercion.",
        "safe": "safe: with lossless coercion.",
        "coerced": coerced,
        "naive": "naive: a regex for a JSON object and json.loads; it counts what it cannot read "
        "as an abstention.",
    }
    return " ".join(
        sentence
        for level, sentence in sentences.items()
        if levels is None or level in levels or level == "safe"
    )


def report(
    source: Any,
    by: str | Sequence[str] | None = None,
    *,
    policy: str | None = None,
    **options: Unpack[ReportKeywords],
) -> Report:
    """Return the report of a trials frame, or of files with one.

    Files may be of any size: of Parquet only the columns that a report reads are loaded.

    source: a view of a run, a frame, the path of a Parquet or CSV file, a folder of Parquet files,
    a pattern such as "answers/*.parquet", or a list of paths. policy: by default "safe", or the
    only one that there is. by, options: as for `Report`. Raises UnreadableInput for files that are
    not there or are no frame, and the errors of `Report`.

    >>> import tempfile
    >>> import toolparse_lab as tp
    >>> folder = tempfile.mkdtemp()
    >>> run = tp.Lab(":memory:").ingest([{"raw": "Hi", "target": []}], protocol="hermes")
    >>> run.frame().to_parquet(f"{folder}/answers.parquet")
    >>> tp.report(f"{folder}/*.parquet").frame["success"].tolist()
    [1.0]
    """
    view = source
    if not isinstance(source, (RunView, pd.DataFrame)):
        view = load_view(source, by, options.get("cluster"))
    view = RunView.of(view)
    if policy is None:
        policies = policies_of(view.trials)
        policy = policies[0] if len(policies) == 1 else "safe"
    return Report(view, by, policy=policy, **options)


def load_view(
    source: Any, by: str | Sequence[str] | None = None, cluster: str | None = None
) -> RunView:
    """Return the view of a trials frame in files, of which the columns of reports are loaded.

    source: as for `report`. by, cluster: columns that are to be there besides. Raises
    UnreadableInput.
    """
    if isinstance(source, (str, Path)) and Path(source).suffix == ".csv":
        return RunView(read_frame(source, "trials"))
    files = parquet_files_of(source)
    named = [*((by,) if isinstance(by, str) else by or ()), *filter(None, [cluster])]
    names = [*READ, *named]
    columns = list(dict.fromkeys(names))
    trials = unpacked(files, "trials", columns, coded=True, as_texts=named)
    # Where a column lacks, the complaint says which there are. Rows that another column than the id
    # tells apart cannot be found by it.
    ids = trials["trial_id"] if "trial_id" in trials else pd.Series([None])
    if any(name not in trials for name in names) or ids.hasnans or not ids.is_unique:
        return RunView(unpacked(files, "trials"))
    return RunView(trials, whole_rows=partial(unpacked, files, "trials", None))
