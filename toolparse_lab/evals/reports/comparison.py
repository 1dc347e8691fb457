"""Two arms on the same cases: the difference with its interval, the tests, and the cases that flipped."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pandas as pd

from ...errors import BadOptions
from . import stats
from .cells import check_by, check_trials, groups, read_under

if TYPE_CHECKING:
    from ..scoring.trial import Trial
    from .regression import Regression

_DIMENSIONS = ("prompt_protocol", "parse_protocol", "arm", "model", "policy", "run_id")
COMPARISON_MEANINGS: Mapping[str, str] = {
    "n_cases": "Cases judged in both arms: what every other figure of the row is about.",
    "unpaired_a": "Cases judged in a alone.",
    "unpaired_b": "Cases judged in b alone.",
    "success_a": "Share of a's trials of these cases that succeeded.",
    "success_b": "Share of b's.",
    "difference": "success_b less success_a.",
    "ci_low": "Lower end of its interval, from resampling cases with all their trials.",
    "ci_high": "Upper end of its interval.",
    "only_a": "Cases that the majority of a's trials gets right, and that of b's wrong.",
    "only_b": "The other way round.",
    "ties": "Cases for which an arm has no majority.",
    "p": "McNemar's exact test on majorities.",
    "p_holm": "p, adjusted by Holm for the rows of the comparison.",
    "p_rates": "The exact sign-flip test on the cases' rates, which sees single trials too.",
    "p_rates_holm": "p_rates, adjusted by Holm.",
    "noise_a": "How often two trials of one case by a disagree.",
    "noise_b": "How often two by b do.",
}
"""Column of a comparison's frame -> what it holds, in order."""
COMPARISON_COLUMNS = tuple(COMPARISON_MEANINGS)
FLIP_COLUMNS = (
    "case_id", "direction", "success_a", "success_b", "outcome_a", "outcome_b", "trial_id_a", "trial_id_b",
)  # fmt: skip
UNPAIRED_COLUMNS = ("case_id", "judged_in", "reason")
Opener: TypeAlias = Callable[[str], "Trial"]
"""The trial of a trial id."""


@dataclass(frozen=True, repr=False)
class Flip:
    """One case whose majority differs between two arms, with a trial of each side that shows it."""

    case_id: str
    direction: str
    a: Trial
    b: Trial

    def __str__(self) -> str:
        return f"{self.case_id} {self.direction}\n  a: {self.a}\n  b: {self.b}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from .comparison_html import render_flip

        return render_flip(self)


@dataclass(frozen=True)
class ArmComparison:
    """`b` against `a`, paired on cases.

    `frame` has one row a stratum of `within`: n_cases (judged in both arms), unpaired_a and unpaired_b (cases judged
    in that arm alone, which are in no figure), both success rates, difference with ci_low and ci_high (cases
    resampled with all their trials), only_a and only_b (cases that one arm's majority alone gets right), ties, p and
    p_holm (McNemar's exact test on majorities), p_rates and p_rates_holm (the sign-flip test on the cases' rates, which
    sees single trials too) and the noise of each arm. `flips` has one row a case whose majority changed, `unpaired` one
    a case that only one arm has a judged trial of, with the reason. `told` are notes from where the frames came from.
    """

    a: str
    b: str
    on: str
    frame: pd.DataFrame
    flips: pd.DataFrame
    unpaired: pd.DataFrame = field(default_factory=pd.DataFrame)
    policy: str = "safe"
    level: float = 0.95
    shown: tuple[pd.DataFrame, pd.DataFrame] | None = field(default=None, repr=False, compare=False)
    openers: tuple[Opener, Opener] | None = field(default=None, repr=False, compare=False)
    told: tuple[str, ...] = ()

    def flip(self, which: int | str = 0) -> Flip:
        """A flipped case, by its row in `flips` or its case id, with the trials behind it.

        `comparison.flip(0).b.result.debug()` is the parse view. Raises BadOptions where there is no such flip, or
        where the comparison was made from a frame alone.
        """
        if self.openers is None:
            raise BadOptions("this comparison knows rows, not trials", hint="make it by run.compare or lab.diff")
        names = self.flips["case_id"].astype(str).tolist()
        at = names.index(which) if isinstance(which, str) and which in names else which
        if isinstance(at, (str, bool)) or not -len(names) <= at < len(names):
            expected = f"0 to {len(names) - 1}, or a case id of flips" if names else "nothing flipped"
            raise BadOptions("no such flip", got=which, expected=expected)
        row = self.flips.iloc[at]
        left, right = self.openers
        return Flip(
            str(row["case_id"]), str(row["direction"]), left(str(row["trial_id_a"])), right(str(row["trial_id_b"]))
        )

    def save(self, path: str | Path) -> Path:
        """Write the comparison; the suffix says how: .html (one page), .md, .csv or .parquet (the frame)."""
        from .files import save_comparison

        return save_comparison(self, path)

    def regression(self, alpha: float = 0.05, tolerance: float = 0.0) -> Regression:
        """Which strata dropped by more than chance explains: what `--fail-on-regression` asks; see `regression`."""
        from .regression import find_regressions

        return find_regressions(self, alpha, tolerance)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the figures leave open, in sentences."""
        said = list(self.told)
        for side, name in (("a", self.a), ("b", self.b)):
            if n := int(self.frame[f"unpaired_{side}"].sum()):
                said.append(f"{_cases(n)} judged under {name} alone {'is' if n == 1 else 'are'} in no figure here.")
        noisy = self.frame[["noise_a", "noise_b"]].max(axis="columns")
        if (below := self.frame["difference"].abs() < noisy).any():
            said.append(
                f"In {int(below.sum())} of {len(self.frame)} rows the difference is below the noise: two trials of one "
                "case by one arm disagree more often than that."
            )
        return tuple(said)

    def __str__(self) -> str:
        from .text import comparison_text

        return comparison_text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from .comparison_html import render_comparison

        return render_comparison(self)


def _cases(n: int) -> str:
    return f"{n} case{'' if n == 1 else 's'}"


def column_of(trials: pd.DataFrame, a: str, b: str, on: str | None = None) -> str:
    """The column in which both values stand; raises BadOptions where there is none."""
    names = (on,) if on else _DIMENSIONS
    for name in names:
        if name in trials and {a, b} <= set(trials[name].dropna().astype(str).unique()):
            return name
    known = "; ".join(
        f"{n}: {', '.join(sorted(trials[n].dropna().astype(str).unique()))}" for n in names if n in trials
    )
    raise BadOptions("no column holds both of these arms", got=f"{a}, {b}", expected=known or "an arm of this run")


def compare_arms(
    trials: pd.DataFrame,
    a: str,
    b: str,
    *,
    on: str | None = None,
    within: str | Sequence[str] | None = "model",
    policy: str = "safe",
    level: float = 0.95,
    seed: int = 0,
    openers: tuple[Opener, Opener] | None = None,
    notes: Sequence[str] = (),
) -> ArmComparison:
    """Compare two values of a column (found by itself, or `on`), within the strata of other columns.

    Only cases judged in both arms count; p values are Holm's over the strata. A stratum that only one arm has is a
    row without figures. Raises BadOptions for a column or an arm that the frame does not hold.
    """
    check_trials(trials)
    on = column_of(trials, a, b, on)
    strata = [c for c in check_by(trials, within or [on]) if c != on]
    part = read_under(trials, [*strata, on], policy)
    needed = dict.fromkeys([*strata, on, "case_id", "trial", "score_success", "outcome", "trial_id"])
    part = part.loc[part[on].astype("string").isin([a, b]), list(needed)]
    side = part[on].astype(str)
    rows = []
    flips: list[pd.DataFrame] = []
    alone: list[dict[str, Any]] = []
    for values, stratum in groups(part, strata) if strata else [((), part)]:
        here = dict(zip(strata, values, strict=True))
        judged = stratum[stratum["score_success"].notna()]
        left, right = (judged[side.loc[judged.index] == x] for x in (a, b))
        row, flipped = _compare_stratum(left, right, level, seed)
        rows.append({**here, **row})
        for name, value in reversed(here.items()):
            flipped.insert(0, name, value)
        flips.append(flipped)
        alone += ({**here, **u} for u in _unpaired(stratum, side.loc[stratum.index], a, b))
    frame = pd.DataFrame(rows, columns=[*strata, *(c for c in COMPARISON_COLUMNS if not c.endswith("_holm"))])
    for p in ("p", "p_rates"):
        frame.insert(list(frame).index(p) + 1, f"{p}_holm", stats.holm(frame[p].tolist()))
    if pooled := [x for x in (a, b) if part[side == x].duplicated([*strata, "case_id", "trial"]).any()]:
        notes = (*notes, f"Several arms are counted together under {' and '.join(pooled)}, case by case.")
    kept = [f for f in flips if len(f)]
    flipped = pd.concat(kept, ignore_index=True) if kept else pd.DataFrame()
    flipped = flipped.reindex(columns=[*strata, *FLIP_COLUMNS])
    shown = (_rows(trials, flipped["trial_id_a"], on, a), _rows(trials, flipped["trial_id_b"], on, b))
    unpaired = pd.DataFrame(alone, columns=[*strata, *UNPAIRED_COLUMNS])
    return ArmComparison(a, b, on, frame, flipped, unpaired, policy, level, shown, openers, tuple(notes))


def _unpaired(stratum: pd.DataFrame, side: pd.Series[Any], a: str, b: str) -> list[dict[str, Any]]:
    """The cases that only one arm can be judged by, and why the other cannot."""
    judged = stratum["score_success"].notna()
    asked = {x: set(stratum.loc[side == x, "case_id"]) for x in (a, b)}
    known = {x: set(stratum.loc[(side == x) & judged, "case_id"]) for x in (a, b)}
    return [
        {"case_id": case, "judged_in": x, "reason": f"{'not judged' if case in asked[y] else 'not asked'} in {y}"}
        for x, y in ((a, b), (b, a))
        for case in stratum.loc[(side == x) & judged, "case_id"].drop_duplicates()
        if case not in known[y]
    ]


def _rows(trials: pd.DataFrame, ids: pd.Series[Any], on: str, side: str) -> pd.DataFrame:
    """The rows behind the flips, one a trial id."""
    found = trials[trials["trial_id"].isin(ids.dropna()) & (trials[on].astype("string") == side)]
    return found.drop_duplicates("trial_id").set_index("trial_id", drop=False)


def _compare_stratum(
    left: pd.DataFrame, right: pd.DataFrame, level: float, seed: int
) -> tuple[Mapping[str, Any], pd.DataFrame]:
    x, xc = left["score_success"].astype(bool).tolist(), left["case_id"].tolist()
    y, yc = right["score_success"].astype(bool).tolist(), right["case_id"].tolist()
    test = stats.paired_mcnemar(x, xc, y, yc)
    gap = stats.bootstrap_difference(x, xc, y, yc, level, seed=seed)
    shared = set(xc) & set(yc)
    row = {
        "n_cases": len(shared),
        "unpaired_a": len(set(xc) - shared),
        "unpaired_b": len(set(yc) - shared),
        "success_a": _mean(x, xc, shared),
        "success_b": _mean(y, yc, shared),
        "difference": gap.rate,
        "ci_low": gap.low,
        "ci_high": gap.high,
        "only_a": test.only_a,
        "only_b": test.only_b,
        "ties": test.ties,
        "p": test.p,
        "p_rates": stats.sign_flip(x, xc, y, yc),
        "noise_a": stats.NAN if _pools(left) else stats.noise_floor(x, xc),
        "noise_b": stats.NAN if _pools(right) else stats.noise_floor(y, yc),
    }
    return row, _flips(left, right)


def _pools(side: pd.DataFrame) -> bool:
    """Whether a side holds one trial of a case twice: several arms together, whose answers are no repetitions."""
    return bool(side.duplicated(["case_id", "trial"]).any())


def _mean(values: list[bool], cases: list[Any], shared: set[Any]) -> float:
    kept = [v for v, c in zip(values, cases, strict=True) if c in shared]
    return sum(kept) / len(kept) if kept else stats.NAN


def _flips(left: pd.DataFrame, right: pd.DataFrame) -> pd.DataFrame:
    """Cases whose majority differs, with a trial of each side that shows it."""
    both = _telling(left).add_suffix("_a").join(_telling(right).add_suffix("_b"), how="inner")
    both = both[(both["success_a"] - 0.5) * (both["success_b"] - 0.5) < 0].copy()
    both["direction"] = (both["success_b"] > both["success_a"]).map({True: "gained", False: "lost"})
    return both.rename_axis("case_id").reset_index().reindex(columns=FLIP_COLUMNS)


def _telling(side: pd.DataFrame) -> pd.DataFrame:
    """One row a case: its rate, and outcome and id of the first trial that goes with the majority."""
    ok = side["score_success"].astype(bool)
    cases = side["case_id"].astype(object)
    rates = ok.astype(float).groupby(cases, sort=False).mean()
    shown = side[ok == (cases.map(rates) > 0.5)].drop_duplicates("case_id").set_index("case_id")
    texts = {c: shown[c].astype(object) for c in ("outcome", "trial_id")}
    return pd.DataFrame({"success": rates, **texts}, index=rates.index)
