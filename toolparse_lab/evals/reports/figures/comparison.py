"""Two arms on the same cases: the difference with its interval and p, and the cases that flipped.

How it works. The rows of both arms are cut into the strata of other columns, and each stratum is
compared by itself: rates, interval and p over the cases that both arms were judged on, then the
cases whose majority differs, then the cases that only one arm can be judged by. Holm's adjustment
comes last, because it needs the p values of all strata.

Of 18 arms that are alike, one pair of the 153 looks different. So a pair of an experiment with
several arms is held to the level of all pairs (Bonferroni): each interval leaves out 1/153 of what
it would alone, and p_holm is 153 times Holm's p. `pairs=1` is for a pair chosen before the run.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pandas as pd

from ....core import hooks
from ....core.errors import BadOptions, UnknownName, near
from ....core.values.printable import counted
from . import stats
from .cells import (
    UNRECORDED,
    check_by,
    check_trials,
    clusters_of,
    groups,
    read_under,
    same_question_note,
    same_questions,
)
from .differences import paired_difference
from .sampling import sampling_differences

if TYPE_CHECKING:
    from ...scoring.trial import Trial
    from .regression import Regression

MARGIN = 0.05
"""The drop that "not worse" rules out, unless another one is named."""
ASKED = ("input", "target", "tools_json")
"""Columns that say what a case is: a case in which one differs is another case."""
# The columns that a comparison counts.
_COUNTED = (
    "case_id", "trial", "score_success", "outcome", "trial_id", "target", "missing_reason",
)  # fmt: skip
# The columns in which two names are looked for, the most telling ones first.
_DIMENSIONS = ("prompt_protocol", "parse_protocol", "arm", "model", "policy", "run_id")
COMPARISON_MEANINGS: Mapping[str, str] = {
    "n_cases": "Cases judged in both arms: what every other figure of the row is about.",
    "unpaired_a": "Cases judged in a alone.",
    "unpaired_b": "Cases judged in b alone.",
    "n_a": "Trials of these cases by a that were judged.",
    "n_b": "Trials by b.",
    "missing_a": "Trials by a without an answer, of any case. They are no failures.",
    "missing_b": "Trials by b without an answer.",
    "success_a": "Mean over these cases of the share of a's trials that succeeded.",
    "success_b": "The same for b's.",
    "difference": "success_b less success_a: the mean of the cases' differences.",
    "ci_low": "Lower end of its interval, which holds for all pairs together.",
    "ci_high": "Upper end of its interval.",
    "p": "The sign-flip test on the cases' differences, McNemar's exact test where each case has "
    "one trial; with unequal numbers of trials never below the p of the interval.",
    "p_holm": "p, adjusted by Holm for the rows of the comparison, and for the pairs that this one "
    "may have been picked from.",
    "only_a": "Cases that the majority of a's trials gets right, and that of b's wrong.",
    "only_b": "The other way round.",
    "ties": "Cases for which an arm has no majority.",
    "changed": "Cases whose rates differ at all.",
    "low_if_lost": "ci_low if every case that is judged in a alone had failed in b.",
    "smallest": "The smallest drop that these cases could have shown; inf where none could.",
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

    `frame` has one row per stratum of `within`: n_cases (judged in both arms), unpaired_a and
    unpaired_b (cases judged in that arm alone, which are in no figure), both success rates,
    difference (the mean of the cases' differences) with ci_low and ci_high, p and p_holm, only_a
    and only_b (cases that one arm's majority alone gets right), ties, the noise of each arm, and
    the reader of its answers in which version. See `COMPARISON_MEANINGS`. `flips` has one row per
    case whose majority changed, `unpaired` one a case that only one arm has a judged trial of, with
    the reason, `edited` one a case that is not the same in both. `flip_rows` holds the rows of the
    flips' trials of each arm, `source_notes` the sentences on where the frames came from. `cluster`
    is the column that intervals and p go by, `pairs` the number of pairs of arms that intervals and
    p_holm allow for.
    """

    a: str
    b: str
    on: str
    frame: pd.DataFrame
    flips: pd.DataFrame
    unpaired: pd.DataFrame = field(default_factory=pd.DataFrame)
    edited: pd.DataFrame = field(default_factory=pd.DataFrame)
    policy: str = "safe"
    level: float = 0.95
    flip_rows: tuple[pd.DataFrame, pd.DataFrame] | None = field(
        default=None, repr=False, compare=False
    )
    openers: tuple[Opener, Opener] | None = field(default=None, repr=False, compare=False)
    source_notes: tuple[str, ...] = ()
    cluster: str | None = None
    pairs: int = 1

    def flip(self, which: int | str = 0) -> Flip:
        """Return a flipped case, by its row in `flips` or its case id, with the trials behind it.

        `comparison.flip(0).b.result.debug()` is the parse view. Raises BadOptions if there is no
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

    def regression(
        self,
        alpha: float = 0.05,
        tolerance: float | None = None,
        *,
        margin: float = MARGIN,
        confident: bool = False,
    ) -> Regression:
        """Say of each stratum if b is worse, not worse than `margin`, or that it cannot be told, as
        `--fail-on-regression` does. See `find_regressions`.

        tolerance: the old name of `margin`.
        """
        from .regression import find_regressions  # which needs this module's columns

        if tolerance is not None:
            warnings.warn(
                "regression(tolerance=…) is now margin=…", DeprecationWarning, stacklevel=2
            )
            margin = tolerance
        return find_regressions(self, alpha, margin, confident=confident)

    @property
    def notes(self) -> tuple[str, ...]:
        """The sentences on the questions that the figures leave open."""
        notes = list(self.source_notes)
        if self.pairs > 1:
            notes.insert(0, _pairs_note(self.pairs, self.level))
        for side, name in (("a", self.a), ("b", self.b)):
            n = int(self.frame[f"unpaired_{side}"].sum())
            if n == 1:
                notes.append(f"1 case judged under {name} alone is in no figure here.")
            elif n:
                notes.append(f"{n} cases judged under {name} alone are in no figure here.")
        if note := _edited_note(self.edited, self.b):
            notes.append(note)
        n_a, n_b = self.frame["n_a"], self.frame["n_b"]
        if (uneven := n_a != n_b).any():
            notes.append(
                f"The arms have unequal numbers of trials in {int(uneven.sum())} of "
                f"{len(self.frame)} rows ({int(n_a.sum())} and {int(n_b.sum())} in all). Each case "
                "counts once, and p is never below that of the interval."
            )
        if self.cluster is not None:
            notes.append(f"Intervals and p go by {self.cluster} instead of by case.")
        return tuple(notes)

    def __str__(self) -> str:
        return str(hooks.call("figure_text", self))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return str(hooks.call("figure_html", self))


def column_of(trials: pd.DataFrame, a: str, b: str, on: str | None = None) -> str:
    """Return the column that holds both values: `on`, or the first of the usual ones.

    Raises BadOptions if no column does.
    """
    names = [name for name in ((on,) if on else _DIMENSIONS) if name in trials]
    values = {name: set(trials[name].dropna().astype(str).unique()) for name in names}
    for name in names:
        if {a, b} <= values[name]:
            return name
    choices = "; ".join(f"{name}: {', '.join(sorted(values[name]))}" for name in names)
    arms = {value for some in values.values() for value in some}
    lacking = next((arm for arm in (a, b) if arm not in arms), None)
    raise UnknownName(
        "no column holds both of these arms",
        got=f"{a}, {b}",
        expected=choices or "an arm of this run",
        hint=near(lacking, arms) if lacking is not None else "compare two values of one column",
        code="unknown-arm",
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
    cluster: str | None = None,
    pairs: int | None = None,
    openers: tuple[Opener, Opener] | None = None,
    notes: Sequence[str] = (),
) -> ArmComparison:
    """Compare two values of a column (found by itself, or `on`), within the strata of other
    columns.

    Only cases judged in both arms count. p values are Holm's over the strata. A stratum that only
    one arm has is a row without figures. cluster: a column that holds whole cases together, such as
    conversation_id, which intervals and p go by instead of by case. pairs: how many pairs this one
    may have been picked from, by default all pairs of the column's judged values, and 1 for a pair
    that was chosen before the run. Raises BadOptions for a column or an arm that the frame does not
    hold, and for pairs that are not a number from 1 on.
    """
    check_trials(trials)
    if pairs is not None and (not isinstance(pairs, int) or isinstance(pairs, bool) or pairs < 1):
        raise BadOptions(
            "pairs is how many pairs this one was picked from",
            got=pairs,
            expected="a whole number, 1 for a pair chosen before the run",
        )
    if a == b:
        raise BadOptions(
            "an arm is compared with another one", got=a, hint="run.noise() compares it with itself"
        )
    on = column_of(trials, a, b, on)
    strata = [c for c in check_by(trials, within or [on]) if c != on]
    part = read_under(trials, [*strata, on], policy)
    if pairs is None:
        judged_arms = part.loc[part["score_success"].notna(), on].astype("string").nunique()
        pairs = max(1, judged_arms * (judged_arms - 1) // 2)
    # Only the two arms, and only what is counted: a frame holds whole answers too.
    needed = dict.fromkeys([*strata, on, *_COUNTED, "sampling_json", *_READERS.values()])
    part = part[part[on].astype("string").isin([a, b])]
    clusters = clusters_of(part, cluster)
    same = same_question_note(same_questions(part), cluster)
    edited = _edited(part[part["score_success"].notna()], on, a, b)
    part = part[[c for c in needed if c in part]]
    side = part[on].astype(str)

    rows: list[dict[str, Any]] = []
    flips: list[pd.DataFrame] = []
    unpaired: list[dict[str, Any]] = []
    for values, stratum in groups(part, strata) if strata else [((), part)]:
        keys = dict(zip(strata, values, strict=True))
        judged = stratum[stratum["score_success"].notna()]
        of_a, of_b = (judged[side.loc[judged.index] == x] for x in (a, b))
        missing = {
            f"missing_{x}": len(_missing(stratum[side.loc[stratum.index] == name]))
            for x, name in (("a", a), ("b", b))
        }
        rows.append({**keys, **_compare_stratum(of_a, of_b, level, clusters, pairs), **missing})
        flips.append(_flips(of_a, of_b).assign(**keys))
        unpaired += ({**keys, **u} for u in _unpaired(stratum, side.loc[stratum.index], a, b))

    flipped = _all_flips(flips, strata)
    return ArmComparison(
        a,
        b,
        on,
        frame=_adjusted(pd.DataFrame(rows, columns=[*strata, *_RAW_COLUMNS]), pairs),
        flips=flipped,
        unpaired=pd.DataFrame(unpaired, columns=[*strata, *UNPAIRED_COLUMNS]),
        edited=edited,
        policy=policy,
        level=level,
        flip_rows=(
            _rows(trials, flipped["trial_id_a"], on, a),
            _rows(trials, flipped["trial_id_b"], on, b),
        ),
        openers=openers,
        source_notes=(
            *notes,
            *([same] if same else []),
            *_missing_notes({name: _missing(part[side == name]) for name in (a, b)}),
            *_pooled_note(part, side, strata, (a, b)),
            *_sampling_note({name: part[side == name] for name in (a, b)}),
        ),
        cluster=cluster,
        pairs=pairs,
    )


# Holm's adjustment adds the others once all strata are compared.
_RAW_COLUMNS = [c for c in COMPARISON_COLUMNS if not c.endswith("_holm")]


def _adjusted(frame: pd.DataFrame, pairs: int) -> pd.DataFrame:
    # A stratum without a p value does not count as a test.
    adjusted = [min(1.0, p * pairs) if p == p else p for p in stats.holm(frame["p"].tolist())]
    frame.insert(list(frame).index("p") + 1, "p_holm", adjusted)
    return frame


def _pairs_note(pairs: int, level: float) -> str:
    return (
        f"This is one of {pairs} pairs: p and the {level:.0%} interval allow for a pair picked "
        "among all of them. For a pair chosen before the run pass pairs=1 (--pairs 1)."
    )


def _missing(side: pd.DataFrame) -> list[str]:
    if "target" not in side:
        return []
    lacking = side[side["score_success"].isna() & side["target"].notna()]
    if "missing_reason" not in lacking:
        return [UNRECORDED] * len(lacking)
    return lacking["missing_reason"].astype(object).fillna(UNRECORDED).astype(str).tolist()


def _sampling_note(sides: Mapping[str, pd.DataFrame]) -> list[str]:
    differences = sampling_differences(sides)
    return [f"The two were not sampled alike: {differences}."] if differences else []


def _missing_notes(lacking: Mapping[str, Sequence[str]]) -> list[str]:
    notes = []
    for name, reasons in lacking.items():
        if reasons:
            counts = ", ".join(f"{reason} {n}" for reason, n in Counter(reasons).most_common())
            trials = "1 trial is" if len(reasons) == 1 else f"{len(reasons)} trials are"
            notes.append(f"{trials} missing under {name} ({counts}).")
    return notes


def _edited(part: pd.DataFrame, on: str, a: str, b: str) -> pd.DataFrame:
    rows = []
    side = part[on].astype(str)
    for column in (c for c in ASKED if c in part):
        texts = part[column].astype(object).map(lambda x: x if isinstance(x, str) else repr(x))
        first = {
            name: dict(zip(part.loc[mine, "case_id"], texts[mine], strict=True))
            for name, mine in ((name, side == name) for name in (a, b))
        }
        shared = first[a].keys() & first[b].keys()
        changed = sorted(str(case) for case in shared if first[a][case] != first[b][case])
        rows += [{"case_id": case, "column": column} for case in changed]
    return pd.DataFrame(rows, columns=["case_id", "column"])


def _edited_note(edited: pd.DataFrame, b: str) -> str:
    if edited.empty:
        return ""
    columns = " or ".join(
        str(column).removesuffix("_json") for column in edited["column"].drop_duplicates()
    )
    cases = edited["case_id"].drop_duplicates().tolist()
    names = ", ".join(map(str, cases[:3])) + (" …" if len(cases) > 3 else "")
    count = counted(len(cases), "case")
    return f"Not the same question: {b} has another {columns} in {count}: {names}."


def _all_flips(flips: Sequence[pd.DataFrame], strata: Sequence[str]) -> pd.DataFrame:
    # Empty frames drop out, whose dtypes pandas would mix in.
    some = [f for f in flips if len(f)]
    frame = pd.concat(some, ignore_index=True) if some else pd.DataFrame()
    return frame.reindex(columns=[*strata, *FLIP_COLUMNS])


def _pooled_note(
    part: pd.DataFrame, side: pd.Series[Any], strata: Sequence[str], arms: Sequence[str]
) -> list[str]:
    keys = [*strata, "case_id", "trial"]
    pooled = [x for x in arms if part[side == x].duplicated(keys).any()]
    if not pooled:
        return []
    return [f"Several arms are counted together under {' and '.join(pooled)}, case by case."]


def _unpaired(stratum: pd.DataFrame, side: pd.Series[Any], a: str, b: str) -> list[dict[str, Any]]:
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
    rows = trials[trials["trial_id"].isin(ids.dropna()) & (trials[on].astype("string") == side)]
    return rows.drop_duplicates("trial_id").set_index("trial_id", drop=False)


def _compare_stratum(
    of_a: pd.DataFrame,
    of_b: pd.DataFrame,
    level: float,
    clusters: Mapping[Any, Any] | None,
    pairs: int,
) -> dict[str, Any]:
    # p values are not yet adjusted.
    x, x_cases = of_a["score_success"].astype(bool).tolist(), of_a["case_id"].tolist()
    y, y_cases = of_b["score_success"].astype(bool).tolist(), of_b["case_id"].tolist()
    stats.check_level(level)
    of_each = 1 - (1 - level) / pairs
    gap = paired_difference(x, x_cases, y, y_cases, of_each, clusters, alpha=0.05 / pairs)
    shared = set(x_cases) & set(y_cases)
    return {
        "n_cases": gap.n_cases,
        "unpaired_a": len(set(x_cases) - shared),
        "unpaired_b": len(set(y_cases) - shared),
        "n_a": gap.n_a,
        "n_b": gap.n_b,
        "success_a": gap.rate_a,
        "success_b": gap.rate_b,
        "difference": gap.rate,
        "ci_low": gap.low,
        "ci_high": gap.high,
        "p": gap.p,
        "only_a": gap.only_a,
        "only_b": gap.only_b,
        "ties": gap.ties,
        "changed": gap.changed,
        "low_if_lost": gap.low_if_lost,
        "smallest": gap.smallest,
        "noise_a": stats.NAN if _pools(of_a) else stats.noise_floor(x, x_cases),
        "noise_b": stats.NAN if _pools(of_b) else stats.noise_floor(y, y_cases),
        **_readers(of_a, "a"),
        **_readers(of_b, "b"),
    }


_READERS = {"reader": "parse_protocol", "version": "parse_version"}


def _readers(part: pd.DataFrame, side: str) -> dict[str, str | None]:
    names: dict[str, str | None] = {}
    for name, column in _READERS.items():
        values = list(part[column].dropna().astype(str).unique()) if column in part else []
        names[f"{name}_{side}"] = ", ".join(sorted(values)) or None
    return names


def _pools(side: pd.DataFrame) -> bool:
    # A side that has one trial of a case twice: several arms together, whose answers are not
    # repetitions.
    return bool(side.duplicated(["case_id", "trial"]).any())


def _flips(of_a: pd.DataFrame, of_b: pd.DataFrame) -> pd.DataFrame:
    both = _majorities(of_a).add_suffix("_a").join(_majorities(of_b).add_suffix("_b"), how="inner")
    # Rates on different sides of one half: a tie on either side is no flip.
    both = both[(both["success_a"] - 0.5) * (both["success_b"] - 0.5) < 0].copy()
    both["direction"] = (both["success_b"] > both["success_a"]).map({True: "gained", False: "lost"})
    return both.rename_axis("case_id").reset_index().reindex(columns=FLIP_COLUMNS)


def _majorities(side: pd.DataFrame) -> pd.DataFrame:
    # One row per case: its rate, and outcome and id of the first trial that goes with the majority.
    ok = side["score_success"].astype(bool)
    cases = side["case_id"].astype(object)
    rates = ok.astype(float).groupby(cases, sort=False, observed=True).mean()
    # In order of appearance, so that the first trial is the same in every run of a report.
    typical = side[ok == (cases.map(rates) > 0.5)].drop_duplicates("case_id").set_index("case_id")
    texts = {c: typical[c].astype(object) for c in ("outcome", "trial_id")}
    return pd.DataFrame({"success": rates, **texts}, index=rates.index)
