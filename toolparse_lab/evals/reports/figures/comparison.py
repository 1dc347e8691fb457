"""Two arms on the same cases: the difference with its interval, the tests, and the cases that
flipped.

How it works. The rows of both arms are cut into the strata of other columns, and each stratum is
compared by itself: rates, interval and tests over the cases that both arms were judged on, then the
cases whose majority differs, then the cases that only one arm can be judged by. Holm's adjustment
comes last, because it needs the p values of all strata.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pandas as pd

from .... import hooks
from ....errors import BadOptions
from . import stats
from .cells import check_by, check_trials, groups, read_under

if TYPE_CHECKING:
    from ...scoring.trial import Trial
    from .regression import Regression

# The columns in which two names are looked for, the most telling ones first.
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
    "reader_a": "What read a's answers.",
    "version_a": "Its version, where it has one.",
    "reader_b": "What read b's.",
    "version_b": "Its version.",
}
"""Column of a comparison's frame -> what it holds, in order."""
COMPARISON_COLUMNS = tuple(COMPARISON_MEANINGS)
FLIP_COLUMNS = (
    "case_id", "direction", "success_a", "success_b", "outcome_a", "outcome_b", "trial_id_a",
    "trial_id_b",
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
        return str(hooks.call("figure_html", self))


@dataclass(frozen=True)
class ArmComparison:
    """`b` against `a`, paired on cases.

    `frame` has one row a stratum of `within`: n_cases (judged in both arms), unpaired_a and
    unpaired_b (cases judged in that arm alone, which are in no figure), both success rates,
    difference with ci_low and ci_high (cases resampled with all their trials), only_a and only_b
    (cases that one arm's majority alone gets right), ties, p and p_holm (McNemar's exact test on
    majorities), p_rates and p_rates_holm (the sign-flip test on the cases' rates, which sees single
    trials too), the noise of each arm, and what read its answers in which version. `flips` has one
    row a case whose majority changed,
    `unpaired` one a case that only one arm has a judged trial of, with the reason. `flip_rows`
    holds the rows of the flips' trials of each arm, `source_notes` the sentences on where
    the frames came from.
    """

    a: str
    b: str
    on: str
    frame: pd.DataFrame
    flips: pd.DataFrame
    unpaired: pd.DataFrame = field(default_factory=pd.DataFrame)
    policy: str = "safe"
    level: float = 0.95
    flip_rows: tuple[pd.DataFrame, pd.DataFrame] | None = field(
        default=None, repr=False, compare=False
    )
    openers: tuple[Opener, Opener] | None = field(default=None, repr=False, compare=False)
    source_notes: tuple[str, ...] = ()

    def flip(self, which: int | str = 0) -> Flip:
        """A flipped case, by its row in `flips` or its case id, with the trials behind it.

        `comparison.flip(0).b.result.debug()` is the parse view. Raises BadOptions where there is no
        such flip, or where the comparison was made from a frame alone.
        """
        if self.openers is None:
            raise BadOptions(
                "this comparison knows rows, not trials", hint="make it by run.compare or lab.diff"
            )
        row = self.flips.iloc[self._flip_row(which)]
        open_a, open_b = self.openers
        return Flip(
            str(row["case_id"]),
            str(row["direction"]),
            open_a(str(row["trial_id_a"])),
            open_b(str(row["trial_id_b"])),
        )

    def _flip_row(self, which: int | str) -> int:
        """The number of a row of `flips`; raises BadOptions for one that it has not."""
        cases = self.flips["case_id"].astype(str).tolist()
        at = cases.index(which) if isinstance(which, str) and which in cases else which
        is_number = not isinstance(at, (str, bool))
        if not is_number or not -len(cases) <= int(at) < len(cases):
            expected = "nothing flipped"
            if cases:
                expected = f"0 to {len(cases) - 1}, or a case id of flips"
            raise BadOptions("no such flip", got=which, expected=expected)
        return int(at)

    def save(self, path: str | Path) -> Path:
        """Write the comparison and return its path.

        The suffix says how: .html (one page), .md, .csv or .parquet (the frame). Raises BadOptions
        for another one, and StoreError where the file cannot be written.
        """
        return Path(hooks.call("save_figure", self, path))

    def regression(self, alpha: float = 0.05, tolerance: float = 0.0) -> Regression:
        """Find the strata that dropped by more than chance explains, as `--fail-on-regression`
        does; see `find_regressions`."""
        from .regression import find_regressions  # which needs this module's columns

        return find_regressions(self, alpha, tolerance)

    @property
    def notes(self) -> tuple[str, ...]:
        """The sentences on what the figures leave open."""
        notes = list(self.source_notes)
        for side, name in (("a", self.a), ("b", self.b)):
            n = int(self.frame[f"unpaired_{side}"].sum())
            if n == 1:
                notes.append(f"1 case judged under {name} alone is in no figure here.")
            elif n:
                notes.append(f"{n} cases judged under {name} alone are in no figure here.")
        return tuple(notes)

    def __str__(self) -> str:
        return str(hooks.call("figure_text", self))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return str(hooks.call("figure_html", self))


def column_of(trials: pd.DataFrame, a: str, b: str, on: str | None = None) -> str:
    """The column that holds both values: `on`, or the first of the usual ones.

    Raises BadOptions where no column does.
    """
    names = [name for name in ((on,) if on else _DIMENSIONS) if name in trials]
    values = {name: set(trials[name].dropna().astype(str).unique()) for name in names}
    for name in names:
        if {a, b} <= values[name]:
            return name
    choices = "; ".join(f"{name}: {', '.join(sorted(values[name]))}" for name in names)
    raise BadOptions(
        "no column holds both of these arms",
        got=f"{a}, {b}",
        expected=choices or "an arm of this run",
    )


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
    """Compare two values of a column (found by itself, or `on`), within the strata of other
    columns.

    Only cases judged in both arms count; p values are Holm's over the strata. A stratum that only
    one arm has is a row without figures. Raises BadOptions for a column or an arm that the frame
    does not hold.
    """
    check_trials(trials)
    on = column_of(trials, a, b, on)
    strata = [c for c in check_by(trials, within or [on]) if c != on]
    part = read_under(trials, [*strata, on], policy)
    needed = dict.fromkeys(
        [*strata, on, "case_id", "trial", "score_success", "outcome", "trial_id"]
    )
    # Only the two arms, and only what is counted: a frame holds whole answers too.
    needed |= dict.fromkeys(c for c in _READERS.values() if c in part)
    part = part.loc[part[on].astype("string").isin([a, b]), list(needed)]
    side = part[on].astype(str)

    rows: list[dict[str, Any]] = []
    flips: list[pd.DataFrame] = []
    unpaired: list[dict[str, Any]] = []
    for values, stratum in groups(part, strata) if strata else [((), part)]:
        keys = dict(zip(strata, values, strict=True))
        judged = stratum[stratum["score_success"].notna()]
        of_a, of_b = (judged[side.loc[judged.index] == x] for x in (a, b))
        rows.append({**keys, **_compare_stratum(of_a, of_b, level, seed)})
        flips.append(_flips(of_a, of_b).assign(**keys))
        unpaired += ({**keys, **u} for u in _unpaired(stratum, side.loc[stratum.index], a, b))

    flipped = _all_flips(flips, strata)
    return ArmComparison(
        a,
        b,
        on,
        frame=_adjusted(pd.DataFrame(rows, columns=[*strata, *_RAW_COLUMNS])),
        flips=flipped,
        unpaired=pd.DataFrame(unpaired, columns=[*strata, *UNPAIRED_COLUMNS]),
        policy=policy,
        level=level,
        flip_rows=(
            _rows(trials, flipped["trial_id_a"], on, a),
            _rows(trials, flipped["trial_id_b"], on, b),
        ),
        openers=openers,
        source_notes=(*notes, *_pooled_note(part, side, strata, (a, b))),
    )


# Holm's adjustment adds the others once all strata are compared.
_RAW_COLUMNS = [c for c in COMPARISON_COLUMNS if not c.endswith("_holm")]


def _adjusted(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with each p value's adjusted one beside it."""
    # A stratum without a p value does not count as a test.
    for p in ("p", "p_rates"):
        frame.insert(list(frame).index(p) + 1, f"{p}_holm", stats.holm(frame[p].tolist()))
    return frame


def _all_flips(flips: Sequence[pd.DataFrame], strata: Sequence[str]) -> pd.DataFrame:
    """The flips of all strata; empty frames are left out, whose dtypes pandas would mix in."""
    some = [f for f in flips if len(f)]
    frame = pd.concat(some, ignore_index=True) if some else pd.DataFrame()
    return frame.reindex(columns=[*strata, *FLIP_COLUMNS])


def _pooled_note(
    part: pd.DataFrame, side: pd.Series[Any], strata: Sequence[str], arms: Sequence[str]
) -> list[str]:
    """The note that a side holds one trial of a case twice, and so pools several arms."""
    keys = [*strata, "case_id", "trial"]
    pooled = [x for x in arms if part[side == x].duplicated(keys).any()]
    if not pooled:
        return []
    return [f"Several arms are counted together under {' and '.join(pooled)}, case by case."]


def _unpaired(stratum: pd.DataFrame, side: pd.Series[Any], a: str, b: str) -> list[dict[str, Any]]:
    """The cases that only one arm can be judged by, and why the other cannot."""
    judged = stratum["score_success"].notna()
    rows = []
    for arm, other in ((a, b), (b, a)):
        asked_of_other = set(stratum.loc[side == other, "case_id"])
        judged_in_other = set(stratum.loc[(side == other) & judged, "case_id"])
        for case in stratum.loc[(side == arm) & judged, "case_id"].drop_duplicates():
            if case in judged_in_other:
                continue
            why = "not judged" if case in asked_of_other else "not asked"
            rows.append({"case_id": case, "judged_in": arm, "reason": f"{why} in {other}"})
    return rows


def _rows(trials: pd.DataFrame, ids: pd.Series[Any], on: str, side: str) -> pd.DataFrame:
    """The rows behind the flips, one a trial id."""
    rows = trials[trials["trial_id"].isin(ids.dropna()) & (trials[on].astype("string") == side)]
    return rows.drop_duplicates("trial_id").set_index("trial_id", drop=False)


def _compare_stratum(
    of_a: pd.DataFrame, of_b: pd.DataFrame, level: float, seed: int
) -> dict[str, Any]:
    """The figures of the judged trials of both arms in one stratum, p values not yet adjusted."""
    x, x_cases = of_a["score_success"].astype(bool).tolist(), of_a["case_id"].tolist()
    y, y_cases = of_b["score_success"].astype(bool).tolist(), of_b["case_id"].tolist()
    test = stats.paired_mcnemar(x, x_cases, y, y_cases)
    gap = stats.bootstrap_difference(x, x_cases, y, y_cases, level, seed=seed)
    shared = set(x_cases) & set(y_cases)
    return {
        "n_cases": len(shared),
        "unpaired_a": len(set(x_cases) - shared),
        "unpaired_b": len(set(y_cases) - shared),
        "success_a": _mean(x, x_cases, shared),
        "success_b": _mean(y, y_cases, shared),
        "difference": gap.rate,
        "ci_low": gap.low,
        "ci_high": gap.high,
        "only_a": test.only_a,
        "only_b": test.only_b,
        "ties": test.ties,
        "p": test.p,
        "p_rates": stats.sign_flip(x, x_cases, y, y_cases),
        "noise_a": stats.NAN if _pools(of_a) else stats.noise_floor(x, x_cases),
        "noise_b": stats.NAN if _pools(of_b) else stats.noise_floor(y, y_cases),
        **_readers(of_a, "a"),
        **_readers(of_b, "b"),
    }


_READERS = {"reader": "parse_protocol", "version": "parse_version"}


def _readers(part: pd.DataFrame, side: str) -> dict[str, str | None]:
    """The readers of the trials of one arm, and their versions; None where nothing says it."""
    names: dict[str, str | None] = {}
    for name, column in _READERS.items():
        values = list(part[column].dropna().astype(str).unique()) if column in part else []
        names[f"{name}_{side}"] = ", ".join(sorted(values)) or None
    return names


def _pools(side: pd.DataFrame) -> bool:
    """True for a side that holds one trial of a case twice: several arms together, whose answers
    are no repetitions."""
    return bool(side.duplicated(["case_id", "trial"]).any())


def _mean(values: list[bool], cases: list[Any], shared: set[Any]) -> float:
    """The rate over the shared cases."""
    counted = [v for v, case in zip(values, cases, strict=True) if case in shared]
    return sum(counted) / len(counted) if counted else stats.NAN


def _flips(of_a: pd.DataFrame, of_b: pd.DataFrame) -> pd.DataFrame:
    """The cases whose majority differs, with a trial of each side that shows it."""
    both = _majorities(of_a).add_suffix("_a").join(_majorities(of_b).add_suffix("_b"), how="inner")
    # Rates on different sides of one half: a tie on either side is no flip.
    both = both[(both["success_a"] - 0.5) * (both["success_b"] - 0.5) < 0].copy()
    both["direction"] = (both["success_b"] > both["success_a"]).map({True: "gained", False: "lost"})
    return both.rename_axis("case_id").reset_index().reindex(columns=FLIP_COLUMNS)


def _majorities(side: pd.DataFrame) -> pd.DataFrame:
    """One row a case: its rate, and outcome and id of the first trial that goes with the
    majority."""
    ok = side["score_success"].astype(bool)
    cases = side["case_id"].astype(object)
    rates = ok.astype(float).groupby(cases, sort=False).mean()
    # In order of appearance, so that the first trial is the same in every run of a report.
    typical = side[ok == (cases.map(rates) > 0.5)].drop_duplicates("case_id").set_index("case_id")
    texts = {c: typical[c].astype(object) for c in ("outcome", "trial_id")}
    return pd.DataFrame({"success": rates, **texts}, index=rates.index)
