"""Gates: thresholds that every cell of a report has to keep, and the verdict on each stratum of a
comparison. Anything not known never passes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import pandas as pd

from ....core import hooks
from ....core.errors import BadOptions, GateFailed, UnknownName, near
from ....core.values.printable import counted
from ....core.values.wording import p_words, plain_points, points, points_span, share
from ....views.show import visible
from .cells import FIGURES, OF_BASELINE
from .differences import Difference

MARGIN = 0.05
"""The drop that "not worse" rules out, unless another one is named."""
Row: TypeAlias = Mapping[Any, Any]
ArmVerdict: TypeAlias = Literal["worse", "not worse", "cannot tell", "not judged"]

_FIGURES = {**FIGURES, **OF_BASELINE}
AT_LEAST = frozenset(name for name, figure in _FIGURES.items() if "more" in figure.kind)
"""Columns of which more is better: their thresholds are least values. Those of all others are
greatest ones."""
_OF_REPETITIONS = frozenset(
    {"pass_at_k", "pass_at_k_best", "pass_all_k", "pass_all_k_best", "distinct"}
)
# Success has an interval, so a bound on it says which figure it is about.
_NAMES = {
    "success": "success as measured, whatever its interval, against",
    "ci_low": "the lower end of success's interval against",
}


@dataclass(frozen=True, slots=True)
class GateCheck:
    """One cell against one threshold. `n` answers give `value`, which is NaN if it is not known."""

    cell: str
    metric: str
    value: float
    n: int
    bound: float
    ok: bool
    sentence: str


@dataclass(frozen=True, slots=True)
class AnswerAgainst:
    """An answer that a failed check counts against its cell. `why` is its score in words, then a
    line for each thing that is wrong.
    """

    cell: str
    case_id: str
    trial_id: str
    why: tuple[str, ...]

    def __str__(self) -> str:
        head = f"{self.case_id} ({self.cell}, trial {self.trial_id}): {self.why[0]}"
        return "\n".join([head, *self.why[1:]])


@dataclass(frozen=True, slots=True)
class GateResult:
    """The checks of every cell against every threshold. True if all pass. `answers` are the first
    of the `n_against` that count against failed checks.
    """

    checks: tuple[GateCheck, ...]
    answers: tuple[AnswerAgainst, ...] = ()
    n_against: int = 0

    @property
    def ok(self) -> bool:
        return all(c.ok for c in self.checks)

    @property
    def failures(self) -> tuple[GateCheck, ...]:
        return tuple(c for c in self.checks if not c.ok)

    @property
    def frame(self) -> pd.DataFrame:
        """One row per check: cell, metric, value, n, bound, ok, sentence."""
        names = list(GateCheck.__slots__)
        return pd.DataFrame([[getattr(c, n) for n in names] for c in self.checks], columns=names)

    def __bool__(self) -> bool:
        return self.ok

    def raise_(self) -> None:
        """Raise GateFailed with the sentences of the failed checks, if there are any."""
        if not self.ok:
            raise GateFailed(str(self))

    def __str__(self) -> str:
        checks = f"{len(self.checks)} check{'' if len(self.checks) == 1 else 's'}"
        head = f"gate passed: {checks}"
        if not self.ok:
            head = f"gate failed: {len(self.failures)} of {checks}"
        head += "".join(
            f"; {_NAMES[metric]} {plain_points(bound)} %"
            for metric, bound in dict.fromkeys((c.metric, c.bound) for c in self.checks)
            if metric in _NAMES
        )
        lines = [head, *(f"  {c.sentence}" for c in self.failures)]
        if self.answers:
            lines += ["", f"{self.against}:"]
            lines += [f"  {line}" for a in self.answers for line in str(a).split("\n")]
        return "\n".join(map(visible, lines))

    @property
    def against(self) -> str:
        """How many answers count against the failed checks, and where those are that are left."""
        told = f"{counted(self.n_against, 'answer')} against"
        if self.n_against == len(self.answers):
            return told
        shown = "the first" if len(self.answers) == 1 else f"the first {len(self.answers)}"
        return f"{told}, {shown}; toolparse report --score --failed and run.failures() have all"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return str(hooks.call("figure_html", self))


def check_gates(
    frame: pd.DataFrame,
    by: Sequence[str],
    thresholds: Mapping[str, Any],
    name_of: Callable[[Row], str],
    is_baseline: Callable[[Row], bool],
) -> GateResult:
    """Check every cell of a report's frame against every threshold that is not None.

    by: the columns that name a cell. name_of, is_baseline: called with a row. Raises BadOptions for
    a column the frame has not, for a threshold that is not a number or above 1 if a share is
    meant, and if there is none.
    """
    numbers = [str(c) for c in frame if c not in (*by, "reason")]
    bounds = {}
    for metric, limit in thresholds.items():
        if limit is None:
            continue
        if metric not in numbers:
            hint = near(metric, numbers)
            if metric in OF_BASELINE:
                hint = "a difference needs a report with a baseline"
            raise UnknownName(
                "the report has no such column to gate on",
                got=metric,
                expected=", ".join(numbers),
                hint=hint,
                code="unknown-column",
            )
        # True and False are ints to Python, and a slip to whoever wrote them.
        is_number = isinstance(limit, (int, float)) and not isinstance(limit, bool)
        if not is_number or not math.isfinite(limit):
            raise BadOptions(
                f"the threshold of {metric} is no number", got=limit, expected="a number"
            )
        if "share" in _FIGURES[metric].kind and limit > 1:
            raise BadOptions(
                f"the threshold of {metric} is a share",
                got=limit,
                expected="0 to 1",
                hint=f"{limit / 100:g} for {limit:g} %" if limit <= 100 else None,
            )
        bounds[metric] = float(limit)
    if not bounds:
        raise BadOptions(
            "a gate has at least one threshold", got="none", expected="success=0.95, for example"
        )
    if frame.empty:
        sentence = "there are no trials in this report, so there is nothing to judge"
        return GateResult(
            tuple(GateCheck("all", m, math.nan, 0, b, False, sentence) for m, b in bounds.items())
        )
    return GateResult(
        tuple(
            _check(row, name_of(row), metric, bound, is_baseline)
            for row in frame.to_dict("records")
            for metric, bound in bounds.items()
        )
    )


def against(metric: str, rows: pd.DataFrame) -> Any:
    """Return which answers of a cell, rows of one policy, count against a column of its report, as
    a mask; none for a column that is about no single answer.
    """
    if metric in ("strict", "repaired", "safe", "naive"):
        counts = rows[f"score_{metric}"].eq(False)
    elif metric == "fabricated":
        counts = rows["score_fabricated"].eq(True)
    elif metric == "unread":
        counts = rows["outcome"].eq("attempted_unparseable")
    elif metric == "missing":
        counts = rows["score_success"].isna() & rows["target"].notna()
    elif metric in ("coercion_rate", "repair_rate"):
        counts = rows["n_coercions" if metric == "coercion_rate" else "n_edits"].gt(0)
    elif metric in AT_LEAST and "share" in _FIGURES[metric].kind:
        counts = rows["score_success"].eq(False)
    else:
        counts = pd.Series(False, rows.index)
    return counts.fillna(False).astype(bool)


def _check(
    row: Mapping[Any, Any], name: str, metric: str, bound: float, is_baseline: Callable[[Row], bool]
) -> GateCheck:
    n = int(row[_FIGURES[metric].of])
    # pandas has a second way of not knowing an integer, which float would not take.
    value = math.nan if pd.isna(row[metric]) else float(row[metric])

    def said(x: float) -> str:
        if "share" not in _FIGURES[metric].kind:
            return f"{x:.4g}"
        # A bound may be finer than what a share is rounded to.
        words = share(value, n), share(bound, n)
        if words[0] == words[1] and value != bound:
            return f"{100 * x:.4g} %"
        return words[x is bound]

    if metric in OF_BASELINE and is_baseline(row):
        ok, sentence = True, f"{name} is the baseline itself"
    elif math.isnan(value):
        ok, sentence = False, f"{name}: {metric} is not known ({_why_unknown(row, metric, n)})"
    else:
        ok = value >= bound if metric in AT_LEAST else value <= bound
        relations = ("below", "at least") if metric in AT_LEAST else ("above", "at most")
        sentence = f"{name}: {metric} is {said(value)}, {relations[ok]} {said(bound)} (n {n})"
    return GateCheck(name, metric, value, n, bound, ok, sentence)


def _why_unknown(row: Mapping[Any, Any], metric: str, n: int) -> str:
    if reason := _FIGURES[metric].unknown:
        return reason
    if not row["n"]:
        return row["reason"] or "no trial of it was counted"
    if metric == "cost_per_success":
        return FIGURES["cost"].unknown if math.isnan(row["cost"]) else "no trial succeeded"
    if metric in _OF_REPETITIONS and row["k"] < 2:
        return "it needs several trials of a case, and here a case has one, or the cell pools arms"
    if metric.startswith("pass_"):
        return f"the {row['k']} trials of each case are copies of one answer"
    return row["reason"] or f"nothing of its {n} trials says it"


@dataclass(frozen=True)
class Regression:
    """The verdict on a comparison.

    `frame` has one row per stratum: its columns, verdict, difference, p, and smallest, the smallest
    drop that its cases could have shown.

    `verdict` is that of the worst stratum: worse, cannot tell, or not worse than `margin`. `ok` is
    True if every stratum of the old arm is not worse, or has not changed in any case.
    """

    ok: bool
    frame: pd.DataFrame
    sentences: tuple[str, ...] = ()
    verdict: ArmVerdict = "cannot tell"
    margin: float = MARGIN

    def __bool__(self) -> bool:
        return self.ok

    def raise_(self) -> None:
        """Raise GateFailed with the sentences of each stratum, if it is not ok."""
        if not self.ok:
            raise GateFailed(str(self))

    def __str__(self) -> str:
        head: str = self.verdict
        if head == "not worse":
            head += f" than {plain_points(self.margin)} points"
        elif self.ok:
            head = "nothing changed"
        return "\n".join([head, *(f"  {sentence}" for sentence in self.sentences)])

    __repr__ = __str__


def find_regressions(
    compared: pd.DataFrame,
    strata: Sequence[str],
    names: tuple[str, str],
    edited: int,
    *,
    alpha: float = 0.05,
    margin: float = MARGIN,
    confident: bool = False,
) -> Regression:
    """Say of each stratum of a comparison one of three.

    compared, strata: the frame of an `ArmComparison`, and those of its columns that are strata.
    names: the old arm, and the column that both arms are values of. edited: cases that differ.

    *worse*: the interval of the difference is below 0, p is at most `alpha` by Holm, and the drop
    is not shown to be smaller than `margin`. *not worse*: the interval is above -`margin`, also
    if every case that b lost had failed. *cannot tell*: neither is shown by these cases.

    That nothing dropped has to be shown, so an undecided check fails, with one exception: if no
    trial of any case changed and none was lost, there is nothing that dropped. `confident` makes no
    exception. Raises BadOptions for an alpha or a margin that is not a share.
    """
    for name, value in (("alpha", alpha), ("margin", margin)):
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not is_number or not 0 <= value < 1:
            raise BadOptions(f"{name} is a share", got=value, expected="0 or more, below 1")
    rows: list[dict[Any, Any]] = []
    verdicts: list[ArmVerdict] = []
    sentences: list[str] = []
    failed = False
    for row in compared.to_dict("records"):
        difference = Difference(
            row["difference"], row["ci_low"], row["ci_high"], low_if_lost=row["low_if_lost"]
        )
        verdict = verdict_of(difference, alpha, margin, float(row["p_holm"]))
        # Nothing lost, gained or flipped, down to single trials.
        lost = int(row["unpaired_a"])
        unchanged = bool(row["changed"] == 0 and row["n_a"] == row["n_b"] and not lost)
        if verdict == "not judged":
            # A stratum that only b has is new; one of a that b lost may hide a drop.
            failed = failed or lost > 0
            cases = "1 case of" if lost == 1 else f"{lost} cases of"
            why = f"{cases} {names[0]} {'has' if lost == 1 else 'have'} no counterpart"
            sentence = f"not judged, {why if lost else f'{names[0]} has no case of it'}"
        else:
            failed = failed or not (verdict == "not worse" or (unchanged and not confident))
            sentence = _sentence(row, verdict, margin, unchanged)
        name = " · ".join(str(row[c]) for c in strata) or names[1]
        sentences.append(f"{name}: {sentence}")
        verdicts.append(verdict)
        figures = [float(row[c]) for c in ("difference", "p_holm", "smallest")]
        rows.append(
            {c: row[c] for c in strata}
            | {"verdict": verdict}
            | dict(zip(("difference", "p", "smallest"), figures, strict=True))
        )
    # Nothing to compare is no proof that nothing dropped: also true of no strata at all.
    if all(verdict == "not judged" for verdict in verdicts):
        failed = True
        sentences.append("the two have no judged case in common, so there is nothing to compare")
    if edited:
        sentences.append(f"{edited} case{'' if edited == 1 else 's'} edited: see the notes")
    sentences += _reader_changes(compared)
    frame = pd.DataFrame(rows, columns=[*strata, "verdict", "difference", "p", "smallest"])
    # That of the worst stratum. An arm that is gone fails, and nothing is known of it.
    ranks: tuple[ArmVerdict, ...] = ("worse", "cannot tell", "not worse")
    overall: ArmVerdict = next((v for v in ranks if v in verdicts), "cannot tell")
    if overall == "not worse" and failed:
        overall = "cannot tell"
    return Regression(not failed, frame, tuple(sentences), overall, margin)


def _reader_changes(frame: pd.DataFrame) -> list[str]:
    names = [[f"{kind}_{side}" for kind in ("reader", "version")] for side in ("a", "b")]
    if not {*names[0], *names[1]} <= set(frame):
        return []
    changes: dict[str, None] = {}  # in order of appearance, each once
    for row in frame[[*names[0], *names[1]]].astype("string").fillna("").to_dict("records"):
        old, new = (" ".join(row[name] for name in side if row[name]) for side in names)
        if old and new and old != new:
            changes[f"read by {old}, then by {new}"] = None
    return list(changes)


def verdict_of(
    difference: Difference, alpha: float = 0.05, margin: float = MARGIN, p: float | None = None
) -> ArmVerdict:
    """Return the verdict on one difference. p: the adjusted one where there are several."""
    if math.isnan(difference.rate):
        return "not judged"
    if difference.low_if_lost > -margin and difference.low > -margin:
        return "not worse"
    p = difference.p if p is None else p
    # A p value that is not known certifies nothing, hence `<=`.
    if p <= alpha and difference.high < 0 and not difference.low > -margin:
        return "worse"
    return "cannot tell"


def _sentence(row: Mapping[Any, Any], verdict: ArmVerdict, margin: float, unchanged: bool) -> str:
    cases = counted(row["n_cases"], "case")
    verb = "rose" if row["difference"] > 0 else "fell" if row["difference"] < 0 else "stayed"
    n = row["n_cases"]
    before, after = (share(row[f"success_{side}"], n) for side in "ab")
    change = (
        f"success {verb} from {before} to {after} on {cases} ({points(row['difference'], n)} "
        f"points, interval {points_span(row['ci_low'], row['ci_high'], n)}, "
        f"{p_words(row['p_holm'])})"
    )
    if unchanged:
        change = f"no case changed, success {after} on {cases}"
    than = f" than {plain_points(margin)} points" if verdict == "not worse" else ""
    parts = [f"{verdict}{than}: {change}"]
    if verdict == "cannot tell":
        shown = f"they could have shown a drop of {plain_points(row['smallest'])} points or more"
        parts.append("so few cases can show no drop at all" if row["smallest"] > 1 else shown)
    if n := int(row["unpaired_a"]):
        parts.append(f"{n} case{'' if n == 1 else 's'} lost")
    return "; ".join(parts)
