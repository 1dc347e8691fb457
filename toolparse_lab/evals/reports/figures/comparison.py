"""Two arms on the same cases: the difference with its interval and p, and the cases that flipped.

How it works. The rows of both arms are cut into the strata of other columns, and each stratum is
compared by itself: rates, interval and p over the cases that both arms were judged on, then the
cases whose majority differs, then the cases that only one arm can be judged by. Holm's adjustment
comes last, because it needs the p values of all strata. Two runs are compared in the same way, each
as one arm.

Of 18 arms that are alike, one pair of the 153 looks different. So a pair of an experiment with
several arms is tested at the level of all pairs (Bonferroni): each interval leaves out 1/153 of
what it would alone, and p_holm is 153 times Holm's p. `pairs=1` is for a pair chosen before the
run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from ....core import hooks
from ....core.errors import BadOptions, UnknownName, near
from ....core.values.printable import counted
from ....core.values.wording import level_words, points
from . import stats
from .breakdowns import endpoint_notes, moved_notes, sampling_differences, strangers
from .cells import (
    UNRECORDED,
    check_by,
    check_once,
    clusters_of,
    executable_of,
    groups,
    judged_of,
    policies_of,
    read_under,
    same_question_note,
    same_questions,
)
from .differences import paired_difference
from .gates import MARGIN, Regression, find_regressions
from .view import Opener, RunView

if TYPE_CHECKING:
    from ...scoring.trial import Trial

ASKED = ("input", "target", "tools_json")
"""Columns that say what a case is: a case in which one differs is another case."""
SIDE = "run"
NO_TARGETS = (
    "No answer has a target: success is that all calls of an answer may be executed, and answers "
    "without a call are in no figure."
)
"""The sentence on what is compared where nothing says which calls are right."""
PAIRED = ("model", "arm")
"""The columns in which runs are paired, unless `within` names others."""
# The columns in which two names are looked for, the most telling ones first.
_DIMENSIONS = ("prompt_protocol", "parse_protocol", "arm", "model", "policy", "run_id")
_READERS = {"reader": "parse_protocol", "version": "parse_version"}
# The columns that a comparison counts.
_COUNTED = (
    "case_id", "trial", "score_success", "outcome", "trial_id", "target", "missing_reason",
    "sampling_json", "endpoint", "served_model", "model_name", "model", *_READERS.values(),
)  # fmt: skip
COMPARISON_MEANINGS: Mapping[str, str] = {
    "n_cases": "Cases scored in both arms, on which the other figures of the row are based.",
    "unpaired_a": "Cases scored in a alone.",
    "unpaired_b": "Cases scored in b alone.",
    "n_a": "Scored trials of these cases by a.",
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
    "only_a": "Cases that most trials of a get right, and most trials of b get wrong.",
    "only_b": "The other way round.",
    "ties": "Cases for which an arm has no majority.",
    "changed": "Cases whose rates differ at all.",
    "low_if_lost": "ci_low if every case that is scored in a alone had failed in b.",
    "smallest": "The smallest drop that these cases could have shown; inf where none could.",
    "by_chance": "How far equal arms, whose cases differ as much, lie apart at most in 95 of 100 "
    "comparisons.",
    "reader_a": "The parser of a's answers.",
    "version_a": "Its version, where it has one.",
    "reader_b": "The parser of b's.",
    "version_b": "Its version.",
}
"""Column of a comparison's frame -> its meaning, in order."""
COMPARISON_COLUMNS = tuple(COMPARISON_MEANINGS)
FLIP_COLUMNS = (
    "case_id", "direction", "success_a", "success_b", "outcome_a", "outcome_b", "trial_id_a",
    "trial_id_b",
)  # fmt: skip
UNPAIRED_COLUMNS = ("case_id", "judged_in", "reason")


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

    `frame` has one row per stratum of `within`, see `COMPARISON_MEANINGS` for its columns. `flips`
    has one row per case whose majority changed, `unpaired` one a case that only one arm has a
    judged trial of, with the reason, `edited` one a case that is not the same in both. `flip_rows`
    gives the rows of some trials of an arm, `source_notes` are the sentences on where the frames
    came from. `cluster` is the column that intervals and p go by, `pairs` the number of pairs of
    arms that intervals and p_holm allow for.
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
    flip_rows: Callable[[str, Collection[str]], pd.DataFrame] | None = field(
        default=None, repr=False, compare=False
    )
    openers: tuple[Opener, Opener] | None = field(default=None, repr=False, compare=False)
    source_notes: tuple[str, ...] = ()
    cluster: str | None = None
    pairs: int = 1

    def flip(self, which: int | str = 0) -> Flip:
        """Return a flipped case, by its row in `flips` or its case id, with its trials. Raises
        BadOptions if there is no such flip, or if the comparison was made from a frame alone.
        """
        if self.openers is None:
            raise BadOptions(
                "this comparison knows rows, not trials", hint="make it by run.compare or lab.diff"
            )
        cases = self.flips["case_id"].astype(str).tolist()
        at = cases.index(which) if isinstance(which, str) and which in cases else which
        if isinstance(at, (str, bool)) or not -len(cases) <= int(at) < len(cases):
            numbers = f"0 to {len(cases) - 1}, or a case id of flips"
            raise BadOptions(
                "no such flip", got=which, expected=numbers if cases else "nothing flipped"
            )
        row = self.flips.iloc[int(at)].astype(str)
        open_a, open_b = self.openers
        trials = open_a(row["trial_id_a"]), open_b(row["trial_id_b"])
        return Flip(row["case_id"], row["direction"], *trials)

    def save(self, path: str | Path) -> Path:
        """Write the comparison and return its path: .html (one page), .md, .csv or .parquet (the
        frame). Raises BadOptions for another suffix, and StoreError.
        """
        return Path(hooks.call("save_figure", self, path))

    def regression(
        self,
        alpha: float = 0.05,
        *,
        margin: float = MARGIN,
        confident: bool = False,
    ) -> Regression:
        """Say of each stratum if b is worse, not worse than `margin`, or that it cannot be told, as
        `--fail-on-regression` does. See `find_regressions`.

        Args:
            alpha: how sure a drop must be.
            margin: the drop that must be ruled out (default: 0.05).
            confident: have it shown even where no case changed.
        """
        strata = [str(c) for c in self.frame if c not in COMPARISON_COLUMNS]
        edited = self.edited["case_id"].nunique() if len(self.edited) else 0
        return find_regressions(
            self.frame, strata, (self.a, self.on), edited,
            alpha=alpha, margin=margin, confident=confident,
        )  # fmt: skip

    @property
    def chance_note(self) -> str:
        """The sentence on how far equal arms lie apart, '' where nothing differs."""
        n_cases = self.frame["n_cases"].max()
        spread = [x for x in sorted(self.frame["by_chance"]) if x > 0]
        chances = [points(x, n_cases, signed=False) for x in spread]
        if not chances:
            return ""
        shown = " to ".join(dict.fromkeys((chances[0], chances[-1])))
        return f"Equal arms differ by up to {shown} points by chance, in 95 of 100 runs."

    @property
    def notes(self) -> tuple[str, ...]:
        """The sentences on the questions that the figures leave open."""
        notes = list(self.source_notes)
        if self.pairs > 1:
            notes.insert(
                0,
                f"This is one of {self.pairs} pairs: p and the {level_words(self.level)} interval "
                "allow for a pair picked among all of them. For a pair chosen before the run pass "
                "pairs=1 (--pairs 1).",
            )
        for side, name in (("a", self.a), ("b", self.b)):
            if n := int(self.frame[f"unpaired_{side}"].sum()):
                cases, verb = ("1 case", "is") if n == 1 else (f"{n} cases", "are")
                notes.append(f"{cases} judged under {name} alone {verb} in no figure here.")
        if len(self.edited):
            columns = self.edited["column"].drop_duplicates().str.removesuffix("_json")
            ids = self.edited["case_id"].drop_duplicates().astype(str).tolist()
            notes.append(
                f"Not the same question: {self.b} has another {' or '.join(columns)} in "
                f"{counted(len(ids), 'case')}: {', '.join(ids[:3])}{' …' if len(ids) > 3 else ''}."
            )
        # With a tenth, since these are small.
        notes += filter(None, [self.chance_note])
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

    def chart(self, name: str = "difference") -> Any:
        """Return the differences with their intervals as an Altair object. See `Report.chart`."""
        return hooks.call("figure_chart", self, name)

    def _repr_html_(self) -> str:
        return str(hooks.call("figure_html", self))


def column_of(trials: pd.DataFrame, a: str, b: str, on: str | None = None) -> str:
    """Return the column that holds both values: `on`, or the first of the usual ones.

    Raises UnknownName if no column does.
    """
    names = [name for name in ((on,) if on else _DIMENSIONS) if name in trials]
    values = {name: set(_texts(trials, name)) for name in names}
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


def _texts(frame: pd.DataFrame, column: str) -> list[str]:
    # The values of a column, in order of appearance.
    return list(frame[column].dropna().astype(str).unique()) if column in frame else []


def compare_arms(
    source: RunView | pd.DataFrame,
    a: str,
    b: str,
    *,
    on: str | None = None,
    within: str | Sequence[str] | None = "model",
    policy: str = "safe",
    level: float = 0.95,
    cluster: str | None = None,
    pairs: int | None = None,
) -> ArmComparison:
    """Compare two values of a column (found by itself, or `on`), within the strata of other
    columns.

    Only cases judged in both arms count. Where no trial has a target, success is that all calls of
    an answer with a call may be executed, and a note says so. p values are Holm's over the strata.
    A stratum that only one arm has is a row without figures. cluster: a column that keeps whole
    cases together, such as conversation_id, which intervals and p go by instead of by case. pairs:
    how many pairs this one may have been picked from, by default all pairs of the column's judged
    values, and 1 for a pair that was chosen before the run. Raises BadOptions for a column or an
    arm that the frame lacks, and for pairs that are not a number from 1 on.
    """
    view = RunView.of(source)
    trials = view.trials
    if pairs is not None and (not isinstance(pairs, int) or isinstance(pairs, bool) or pairs < 1):
        raise BadOptions(
            "pairs is how many pairs this one was picked from",
            got=pairs,
            expected="a whole number, 1 for a pair chosen before the run",
        )
    if a == b:
        raise BadOptions("an arm is compared with another one", got=a)
    stats.check_level(level)
    on = column_of(trials, a, b, on)
    strata = [c for c in check_by(trials, within or [on]) if c != on]
    part = read_under(trials, [*strata, on], policy)
    source_notes = []
    answered = "verdict" in part and part["verdict"].notna().any()
    if answered and part["score_success"].isna().all():
        good = executable_of(part)
        part = part.assign(score_success=good, outcome=part["verdict"])
        source_notes.append(NO_TARGETS)
    if pairs is None:
        judged_arms = part.loc[part["score_success"].notna(), on].astype("string").nunique()
        pairs = max(1, judged_arms * (judged_arms - 1) // 2)
    part = part[part[on].astype("string").isin([a, b])]
    clusters = clusters_of(part, cluster)
    source_notes += filter(None, [same_question_note(same_questions(part), cluster)])
    part, mixed = _unmixed(part, on)
    source_notes += mixed
    edited = _edited(part[part["score_success"].notna()], on, a, b)
    # Only what is counted: a frame has whole answers too.
    part = part[[c for c in dict.fromkeys([*strata, on, *_COUNTED]) if c in part]]
    arms = part[on].astype(str)

    rows: list[dict[str, Any]] = []
    flips: list[pd.DataFrame] = []
    unpaired: list[dict[str, Any]] = []
    for values, stratum in groups(part, strata) if strata else [((), part)]:
        keys = dict(zip(strata, values, strict=True))
        sides = [(arm, stratum[arms.loc[stratum.index] == arm]) for arm in (a, b)]
        judged = [side[side["score_success"].notna()] for _, side in sides]
        flips.append(_flips(*judged).assign(**keys))
        unpaired += ({**keys, **row} for row in _unpaired(*sides))
        rows.append({**keys, **_compare_stratum(judged, level, clusters, pairs)})
        for x, (_, side) in zip("ab", sides, strict=True):
            rows[-1][f"missing_{x}"] = len(_missing(side))
    raw_columns = [c for c in COMPARISON_COLUMNS if c != "p_holm"]
    frame = pd.DataFrame(rows, columns=[*strata, *raw_columns])
    # A stratum without a p value does not count as a test.
    adjusted = [min(1.0, p * pairs) if p == p else p for p in stats.holm(frame["p"].tolist())]
    frame.insert(list(frame).index("p") + 1, "p_holm", adjusted)
    # Empty frames drop out, whose dtypes pandas would mix in.
    some = [f for f in flips if len(f)]
    flipped = pd.concat(some, ignore_index=True) if some else pd.DataFrame()
    flipped = flipped.reindex(columns=[*strata, *FLIP_COLUMNS])

    sides = [(arm, part[arms == arm]) for arm in (a, b)]
    for arm, side in sides:
        if reasons := _missing(side):
            counts = ", ".join(f"{reason} {n}" for reason, n in Counter(reasons).most_common())
            missing = "1 trial is" if len(reasons) == 1 else f"{len(reasons)} trials are"
            source_notes.append(f"{missing} missing under {arm} ({counts}).")
    if pooled := [arm for arm, x in sides if x.duplicated([*strata, "case_id", "trial"]).any()]:
        names = " and ".join(pooled)
        source_notes.append(f"Several arms are counted together under {names}, case by case.")
    if differences := sampling_differences(dict(sides)):
        source_notes.append(f"The two were not sampled alike: {differences}.")
    if "model" in part:
        source_notes += endpoint_notes(part, dict(sides))
        source_notes += moved_notes(dict(sides))

    def flip_rows(arm: str, ids: Collection[str]) -> pd.DataFrame:
        named = view.rows(ids)
        of_arm = named[named[on].astype("string") == arm]
        return of_arm.drop_duplicates("trial_id").set_index("trial_id", drop=False)

    return ArmComparison(
        a,
        b,
        on,
        frame=frame,
        flips=flipped,
        unpaired=pd.DataFrame(unpaired, columns=[*strata, *UNPAIRED_COLUMNS]),
        edited=edited,
        policy=policy,
        level=level,
        flip_rows=flip_rows,
        openers=(view.open_trial, view.open_trial) if view.open_trial else None,
        source_notes=tuple(source_notes),
        cluster=cluster,
        pairs=pairs,
    )


def _unmixed(part: pd.DataFrame, on: str) -> tuple[pd.DataFrame, list[str]]:
    # Without the answers of a fallback or a router's choice where the model that was asked has
    # answered too. A name of its own that all answers of an endpoint have is its alias.
    other = strangers(part)
    if not other.any():
        return part, []
    arms = part[on].astype(str) + "\0" + part["model"].astype(str)
    own_too = arms[~other & part["served_model"].notna()].unique()
    out = other & arms.isin(own_too)
    notes = []
    for arm, rows in part[out].groupby(part.loc[out, on].astype(str), sort=False):
        names = ", ".join(rows["served_model"].astype(str).unique())
        n = counted(len(rows), "answer")
        notes.append(f"{n} under {arm} came from another model ({names}): in no figure here.")
    return part[~out], notes


def _missing(side: pd.DataFrame) -> list[str]:
    # Why each missing trial is missing.
    if "target" not in side:
        return []
    lacking = side[side["score_success"].isna() & side["target"].notna()]
    if "missing_reason" not in lacking:
        return [UNRECORDED] * len(lacking)
    return lacking["missing_reason"].astype(object).fillna(UNRECORDED).astype(str).tolist()


def _edited(part: pd.DataFrame, on: str, a: str, b: str) -> pd.DataFrame:
    rows = []
    arms = part[on].astype(str)
    for column in (c for c in ASKED if c in part):
        texts = part[column].astype(object).map(lambda x: x if isinstance(x, str) else repr(x))
        first, second = (
            dict(zip(part.loc[arms == arm, "case_id"], texts[arms == arm], strict=True))
            for arm in (a, b)
        )
        shared = first.keys() & second.keys()
        changed = sorted(str(case) for case in shared if first[case] != second[case])
        rows += [{"case_id": case, "column": column} for case in changed]
    return pd.DataFrame(rows, columns=["case_id", "column"])


def _unpaired(*sides: tuple[str, pd.DataFrame]) -> list[dict[str, Any]]:
    rows = []
    for (arm, mine), (other, others) in (sides, sides[::-1]):
        asked_of_other = set(others["case_id"])
        judged_in_other = set(others.loc[others["score_success"].notna(), "case_id"])
        for case in mine.loc[mine["score_success"].notna(), "case_id"].drop_duplicates():
            if case not in judged_in_other:
                why = "not judged" if case in asked_of_other else "not asked"
                rows.append({"case_id": case, "judged_in": arm, "reason": f"{why} in {other}"})
    return rows


def _compare_stratum(
    sides: Sequence[pd.DataFrame], level: float, clusters: Mapping[Any, Any] | None, pairs: int
) -> dict[str, Any]:
    # sides: the judged rows of each arm. p values are not yet adjusted.
    a, b = (judged_of(side) for side in sides)
    of_each = 1 - (1 - level) / pairs
    gap = paired_difference(*a, *b, of_each, clusters, alpha=0.05 / pairs)
    same = ("n_cases", "n_a", "n_b", "p", "only_a", "only_b", "ties", "changed", "low_if_lost")
    row: dict[str, Any] = {
        **{name: getattr(gap, name) for name in (*same, "smallest", "by_chance")},
        "success_a": gap.rate_a,
        "success_b": gap.rate_b,
        "difference": gap.rate,
        "ci_low": gap.low,
        "ci_high": gap.high,
    }
    shared = set(a[1]) & set(b[1])
    for x, side, (_, cases) in zip("ab", sides, (a, b), strict=True):
        row[f"unpaired_{x}"] = len(set(cases) - shared)
        for name, column in _READERS.items():
            row[f"{name}_{x}"] = ", ".join(sorted(_texts(side, column))) or None
    return row


def _flips(of_a: pd.DataFrame, of_b: pd.DataFrame) -> pd.DataFrame:
    def majorities(side: pd.DataFrame) -> pd.DataFrame:
        # One row per case: its rate, and outcome and id of the first trial of the majority.
        ok = side["score_success"].astype(bool)
        cases = side["case_id"].astype(object)
        rates = ok.astype(float).groupby(cases, sort=False, observed=True).mean()
        # In order of appearance, so that the first trial is the same in every run of a report.
        typical = side[ok == (cases.map(rates) > 0.5)].drop_duplicates("case_id")
        typical = typical.set_index("case_id")
        texts = {c: typical[c].astype(object) for c in ("outcome", "trial_id")}
        return pd.DataFrame({"success": rates, **texts}, index=rates.index)

    both = majorities(of_a).add_suffix("_a").join(majorities(of_b).add_suffix("_b"), how="inner")
    # Rates on different sides of one half: a tie on either side is no flip.
    both = both[(both["success_a"] - 0.5) * (both["success_b"] - 0.5) < 0].copy()
    both["direction"] = (both["success_b"] > both["success_a"]).map({True: "gained", False: "lost"})
    return both.rename_axis("case_id").reset_index().reindex(columns=FLIP_COLUMNS)


def compare_runs(
    a: RunView | pd.DataFrame,
    b: RunView | pd.DataFrame,
    *,
    within: str | Sequence[str] | None = None,
    policy: str | None = None,
    level: float = 0.95,
    cluster: str | None = None,
) -> ArmComparison:
    """Compare two runs, `b` against `a`, paired on case ids within model and arm (or `within`): the
    same cases with other settings, another model, version or parser.

    A column of these two in which each run has one value of its own is the difference of the runs,
    and is not held fixed. A note says so. Cases and strata of one run alone are listed in
    `unpaired` and are in no figure. policy: by default the one that both have. Of two runs with one
    policy each that is another, each by its own, and a note says so. A note says if they were read
    by another reader or version. Raises BadOptions if the runs have nothing in common to be held
    together by.
    """
    notes: list[str] = []
    views = RunView.of(a), RunView.of(b)
    # First the rows that are compared: a frame may have one trial under several policies.
    policy, frames = _read_alike(views[0].trials, views[1].trials, policy, notes)
    readers = []
    for frame in frames:
        check_once(frame)
        columns = [c for c in _READERS.values() if c in frame]
        pairs = frame[columns].dropna().astype(str).drop_duplicates()
        words = sorted(" ".join(row) for row in pairs.itertuples(index=False, name=None))
        readers.append(", ".join(words))
    if readers[0] != readers[1]:
        notes.append(
            f"The answers were read by {readers[0]} in the first, {readers[1]} in the second."
        )
    names = _names(views, frames)
    strata = list(check_by(frames[0], within)) if within else _strata(*frames, notes)
    check_by(frames[1], strata or ["model"])
    both = [c for c in frames[0] if c in frames[1]]
    # As objects, because the two frames may have one column as different types.
    sides = [
        frame[both].astype(object).assign(**{SIDE: name})
        for frame, name in zip(frames, names, strict=True)
    ]
    compared = compare_arms(
        pd.concat(sides, ignore_index=True),
        *names,
        on=SIDE,
        within=strata or None,
        policy=policy,
        level=level,
        cluster=cluster,
    )
    open_a, open_b = (view.open_trial for view in views)
    openers = (open_a, open_b) if open_a and open_b else None
    return replace(compared, openers=openers, source_notes=(*notes, *compared.source_notes))


def _names(views: tuple[RunView, RunView], frames: tuple[pd.DataFrame, pd.DataFrame]) -> list[str]:
    names = [view.name for view in views]
    if any(names):
        names = [name or "as recorded" for name in names]
    else:
        names = [", ".join(_texts(frame, "run_id")) for frame in frames]
    if not all(names) or names[0] == names[1]:
        ends = ("first", "second")
        names = [f"{name} {end}".strip() for name, end in zip(names, ends, strict=True)]
    return names


def _read_alike(
    a: pd.DataFrame, b: pd.DataFrame, policy: str | None, notes: list[str]
) -> tuple[str, tuple[pd.DataFrame, pd.DataFrame]]:
    # A difference of policies is added to `notes`.
    policies = (policies_of(a), policies_of(b))
    common = [p for p in policies[0] if p in policies[1]]
    if policy is None and not common and all(len(names) == 1 for names in policies):
        # Each run has one reading and they differ: then the policy is what is compared.
        (first,), (second,) = policies
        notes.append(f"The runs differ in policy: {first} in the first, {second} in the second.")
        name = f"{first} against {second}"
        return name, (a.assign(policy=name), b.assign(policy=name))
    chosen = policy or (common[0] if len(common) == 1 else "safe")
    lacking = [
        which
        for which, names in zip(("first", "second"), policies, strict=True)
        if names and chosen not in names
    ]
    if lacking:
        raise BadOptions(
            f"the {' and the '.join(lacking)} frame holds no reading under the policy {chosen}",
            got=" against ".join(", ".join(names) for names in policies),
            expected=f"policy= one of {', '.join(common)}" if common else "a policy that both have",
            hint="two policies are compared where each frame has one: df[df['policy'] == 'none']",
        )
    return chosen, (a[a["policy"] == chosen], b[b["policy"] == chosen])


def _strata(a: pd.DataFrame, b: pd.DataFrame, notes: list[str]) -> list[str]:
    # What the runs as a whole differ in is added to `notes`.
    def share_values(columns: list[str]) -> bool:
        # Also True where nothing can tell.
        if not columns or a.empty or b.empty:
            return True
        in_a, in_b = (
            set(frame[columns].astype("string").fillna("").itertuples(index=False, name=None))
            for frame in (a, b)
        )
        return bool(in_a & in_b)

    columns = [c for c in PAIRED if c in a and c in b]
    if share_values(columns):
        return columns
    common = []
    for column in columns:
        first, second = _texts(a, column), _texts(b, column)
        if len(first) == len(second) == 1 and first != second:
            notes.append(
                f"The runs differ in {column}: {first[0]} in the first, {second[0]} in the second."
            )
        else:
            common.append(column)
    if not share_values(common):
        values = [
            "; ".join(f"{column}: {', '.join(_texts(frame, column))}" for column in columns)
            for frame in (a, b)
        ]
        raise BadOptions(
            "the runs have no model and arm in common",
            got=" against ".join(values),
            hint="name the columns that hold them together: within='model', or within='category'",
        )
    return common
