"""What a report or a comparison says first: which arm succeeds more often, by how much and how
sure, on the same cases; and that nothing differs, where nothing does.

How it works. The rows of `contrasts` hold one arm against another within one stratum, such as two
formats with one model. The words are made from these rows alone, so that a report, a comparison of
two arms and one of two runs say the same of the same figures. A difference is told from chance by
p, adjusted by Holm and for the pairs that one was picked from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import pandas as pd

from ....core.values.printable import counted
from ....core.values.wording import p_value, p_words, points, points_span, share, span
from ...frames.account import NOT_JUDGED, account_of
from ...scoring.outcomes import SUCCESSES
from . import stats
from .cells import codes_of, executable_of, groups, judged_of
from .differences import ALPHA, decides, paired_difference

if TYPE_CHECKING:
    from .comparison import ArmComparison
    from .report import Report

CONTRAST_COLUMNS = (
    "first", "second", "n_cases", "repeated", "success_first", "success_second", "difference",
    "low", "high", "p", "p_holm",
)  # fmt: skip
"""Of each row of contrasts; `difference` is that of first less second, over `n_cases` that both
have; `repeated` is True where a case has several trials."""
CHANCE = "by more than chance explains"
# The columns whose values are compared, the most telling first, and what their values are called.
_COMPARED = ("arm", "prompt_protocol", "parse_protocol", "model")
_KINDS: Mapping[str, str] = {
    "arm": "variants",
    "prompt_protocol": "formats",
    "parse_protocol": "readings",
    "model": "models",
    "policy": "policies",
    "run_id": "runs",
    "run": "runs",
}
_MOST = 4  # strata and names that a sentence lists


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The first words of a page: `first` is a heading, `rest` the sentences below it.

    `frame` has the contrasts that they are made from, `strata` the columns that hold them apart,
    `on` the column whose values are compared.
    """

    first: str
    rest: str = ""
    frame: pd.DataFrame | None = None
    strata: Sequence[str] = ()
    on: str = ""

    @property
    def text(self) -> str:
        return f"{self.first}. {self.rest}".rstrip()

    @property
    def note(self) -> str:
        """The sentence on rows whose interval and p say two things, '' where none does."""
        frame = self.frame
        return "" if frame is None else decides(frame["low"], frame["high"], frame["p_holm"])


def kinds_of_column(column: str) -> str:
    """Return what the values of a column are called together.

    >>> kinds_of_column("prompt_protocol"), kinds_of_column("metadata_level")
    ('formats', 'values of level')
    """
    return _KINDS.get(column, f"values of {column.removeprefix('metadata_').replace('_', ' ')}")


def conclusion_of(report: Report) -> Conclusion:
    """Return what a report says first."""
    total = _total(report)
    if report.frame.empty:
        return Conclusion(*total)
    found = contrasts(report)
    if not report.has_targets:
        if found is None or not found[0]["n_cases"].any():
            return Conclusion(*total)
        heading, by = contrast_words(*found)
        words = f"Counting an answer as right if all its calls may be executed: {heading}. {by}"
        return Conclusion(total[0], f"{total[1]} {words}".lstrip(), *found)
    told = " ".join(f"{part}." for part in total if part)
    if found is None or not found[0]["n_cases"].any():
        first, rest = total
        if len(report.frame) == 1 and report.frame["n"].any():
            cell = report.frame.iloc[0]
            interval = span(cell["ci_low"], cell["ci_high"], cell["n"])
            rest = f"{share(cell['success'], cell['n'])} ({interval}). {rest}".rstrip()
        elif report.frame["n"].any():
            cells = f"{len(report.frame)} cells"
            rest = f"No two of the {cells} share a case: nothing is tested. {rest}"
        return Conclusion(first, rest.rstrip())
    frame, strata, on = found
    first, rest = contrast_words(frame, strata, on)
    return Conclusion(first, f"{rest} {told}", frame, strata, on)


def conclusion_of_comparison(comparison: ArmComparison, strata: Sequence[str]) -> Conclusion:
    """Return what a comparison says first. strata: the columns of its frame that name a row."""
    own = comparison.frame
    frame = pd.DataFrame(
        {
            **{name: own[name] for name in strata},
            "first": comparison.b,
            "second": comparison.a,
            "n_cases": own["n_cases"],
            "repeated": (own["n_a"] > own["n_cases"]) | (own["n_b"] > own["n_cases"]),
            "success_first": own["success_b"],
            "success_second": own["success_a"],
            "difference": own["difference"],
            "low": own["ci_low"],
            "high": own["ci_high"],
            "p": own["p"],
            "p_holm": own["p_holm"],
        }
    )
    if not frame["n_cases"].any():
        return Conclusion(f"{comparison.a} and {comparison.b} have no judged case in common")
    return Conclusion(*contrast_words(frame, strata, comparison.on), frame, strata, comparison.on)


def contrasts(report: Report) -> tuple[pd.DataFrame, list[str], str] | None:
    """Return (contrasts, strata, the column whose values are held against each other), None where
    there is only one cell.

    The value with the highest rate is held against each other one, a baseline by all others.
    """
    on = report.baseline_column or next(iter(_varying(report)), None)
    if on is None:
        return None

    def follows(column: str) -> bool:
        # A column that changes only with `on` holds nothing apart.
        codes = {name: codes_of(report.frame[name])[0] for name in (column, on)}
        pairs = pd.DataFrame(codes).drop_duplicates()
        return not pairs[column].duplicated().any() or not pairs[on].duplicated().any()

    varying = [c for c in report.by if c != on and report.frame[c].nunique() > 1]
    strata = [c for c in varying if not follows(c)]
    if report.baseline is not None:
        return _against_baseline(report, on, strata), strata, on
    keys = [*strata, on]
    rows_of = report.headline[list(dict.fromkeys((*keys, "score_success", "case_id")))]
    if not report.has_targets:
        rows_of = rows_of.assign(score_success=executable_of(report.headline))
    judged = {values: judged_of(rows) for values, rows in groups(rows_of, keys)}
    names = list(dict.fromkeys(values[-1] for values, trials in judged.items() if trials[0]))
    if len(names) < 2:
        return None
    means = {
        name: [stats.case_rate(*t) for values, t in judged.items() if values[-1] == name and t[0]]
        for name in names
    }
    first = max(names, key=lambda name: sum(means[name]) / len(means[name]))
    pairs = len(names) * (len(names) - 1) // 2
    rows: list[dict[str, Any]] = []
    for second in (name for name in names if name != first):
        rows += _tested(judged, strata, (first, second), report, pairs)
    return pd.DataFrame(rows, columns=[*strata, *CONTRAST_COLUMNS]), strata, on


def _varying(report: Report) -> list[str]:
    several = [c for c in report.by if report.frame[c].nunique() > 1]
    return sorted(several, key=lambda c: _COMPARED.index(c) if c in _COMPARED else len(_COMPARED))


def _tested(
    judged: Mapping[tuple[str, ...], tuple[list[bool], list[Any]]],
    strata: Sequence[str],
    names: tuple[str, str],
    report: Report,
    pairs: int,
) -> list[dict[str, Any]]:
    # The rows of one pair of values, in the strata that both have.
    first, second = names
    level = 1 - (1 - report.level) / pairs
    rows: list[dict[str, Any]] = []
    for values in [values[:-1] for values in judged if values[-1] == first]:
        if (*values, second) not in judged:
            continue
        a, b = judged[*values, second], judged[*values, first]
        gap = paired_difference(*a, *b, level, report.clusters, alpha=ALPHA / pairs)
        rows.append(
            dict(zip(strata, values, strict=True))
            | {
                "first": first,
                "second": second,
                "n_cases": gap.n_cases,
                "repeated": max(gap.n_a, gap.n_b) > gap.n_cases,
                "success_first": gap.rate_b,
                "success_second": gap.rate_a,
                "difference": gap.rate,
                "low": gap.low,
                "high": gap.high,
                "p": gap.p,
            }
        )
    adjusted = stats.holm([row["p"] for row in rows])
    return [{**r, "p_holm": min(1.0, p * pairs)} for r, p in zip(rows, adjusted, strict=True)]


def _against_baseline(report: Report, on: str, strata: Sequence[str]) -> pd.DataFrame:
    cells = report.frame[report.frame["difference"].notna()].to_dict("records")
    rows = [
        {
            **{name: cell[name] for name in strata},
            "first": str(cell[on]),
            "second": report.baseline_of(str(cell[on])),
            "n_cases": cell["paired"],
            "repeated": cell["n"] > cell["n_cases"],
            "success_first": cell["success"],
            "success_second": cell["success"] - cell["difference"],
            "low": cell["diff_low"],
            "high": cell["diff_high"],
            **{name: cell[name] for name in ("difference", "p", "p_holm")},
        }
        for cell in cells
    ]
    return pd.DataFrame(rows, columns=[*strata, *CONTRAST_COLUMNS])


def _total(report: Report) -> tuple[str, str]:
    # How many answers are right, or can be executed; and the others.
    rows = report.headline
    scores = rows["score_success"].dropna().astype(bool)
    account = account_of(rows)
    if not len(scores):
        judged = NOT_JUDGED if account.answers else ""
        return account.first, f"{account.rest} {judged}".strip()
    outcomes = set(rows.loc[scores.index[scores], "outcome"].astype(str)) & SUCCESSES
    # Where no call was wanted, and none was made, an answer holds no call.
    verb = "hold the right call" if outcomes <= {"correct"} else "are right"
    right, n = int(scores.sum()), len(scores)
    first = f"{right:,} of {counted(n, 'answer')} {verb}"
    if n == 1:
        first = f"The one answer {'is right' if right else 'is wrong'}"
    rest = []
    if missing := int(report.frame["missing"].sum()):
        rest.append(f"{counted(missing, 'trial')} {'has' if missing == 1 else 'have'} no answer")
    if ungraded := int(report.frame["ungraded"].sum()):
        has = "has" if ungraded == 1 else "have"
        rest.append(f"{counted(ungraded, 'answer')} more {has} nothing to be judged by")
    return first, ". ".join(rest)


# The words.


def contrast_words(frame: pd.DataFrame, strata: Sequence[str], on: str) -> tuple[str, str]:
    """Return (the heading, the sentences below it) of contrasts.

    on: the column whose values are compared.
    """
    rows: list[dict[Any, Any]] = frame[frame["p_holm"].notna()].to_dict("records")
    names = list(dict.fromkeys((row["first"], row["second"]) for row in rows))
    if not rows:
        return f"The {kinds_of_column(on)} share no judged case", ""
    if len(names) == 1:
        return _of_one_pair(rows, strata)
    return _of_several(rows, strata, on)


def _is_told(row: Mapping[Any, Any]) -> bool:
    return bool(row["p_holm"] <= ALPHA and row["difference"])


def _turned(row: Mapping[Any, Any]) -> dict[Any, Any]:
    return {
        **row,
        "first": row["second"],
        "second": row["first"],
        "success_first": row["success_second"],
        "success_second": row["success_first"],
        "difference": -row["difference"],
        "low": -row["high"],
        "high": -row["low"],
    }


def _of_one_pair(rows: list[dict[Any, Any]], strata: Sequence[str]) -> tuple[str, str]:
    # The side that is named first has the higher rate, where one has.
    if len(rows) == 1:
        strata = ()
    if sum(row["difference"] for row in rows) < 0:
        rows = [_turned(row) for row in rows]
    first, second = rows[0]["first"], rows[0]["second"]
    told = [row for row in rows if _is_told(row)]
    more = [row for row in told if row["difference"] > 0]
    less = [row for row in told if row["difference"] < 0]
    rest = [row for row in rows if row not in told]
    if not told:
        heading = f"{first} and {second} do not differ {CHANCE}"
    elif not less:
        everywhere = _everywhere(rows, strata) if not rest else _within(more, strata)
        heading = f"{first} succeeds more often than {second}{everywhere}"
        if rest:
            heading += f"; they do not differ {CHANCE}{_within(rest, strata)}"
    elif not more:
        return _of_one_pair([_turned(row) for row in rows], strata)
    else:
        heading = (
            f"{first} succeeds more often than {second}{_within(more, strata)}, and less often"
            f"{_within(less, strata)}"
        )
    return heading, f"{_amounts(rows, strata, bool(more) and not less and not rest)}."


def _everywhere(rows: Sequence[Mapping[Any, Any]], strata: Sequence[str]) -> str:
    if len(rows) < 2:
        return ""
    kind = kinds_of_column(strata[0]) if len(strata) == 1 else "cells"
    return f" with both {kind}" if len(rows) == 2 else f" with all {len(rows)} {kind}"


def _name(row: Mapping[Any, Any], strata: Sequence[str]) -> str:
    return " · ".join(str(row[name]) for name in strata)


def _within(rows: Sequence[Mapping[Any, Any]], strata: Sequence[str]) -> str:
    names = [_name(row, strata) for row in rows]
    return f" with {listed(names)}" if all(names) else ""


def listed(names: Sequence[str]) -> str:
    """Return names as a list in a sentence, the last of many as a count.

    >>> listed(["a"]), listed(["a", "b", "c"]), listed(list("abcdef"))
    ('a', 'a, b and c', 'a, b, c and 3 more')
    """
    if len(names) > _MOST:
        names = [*names[: _MOST - 1], f"{len(names) - _MOST + 1} more"]
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def _amounts(rows: Sequence[Mapping[Any, Any]], strata: Sequence[str], told: bool) -> str:
    # By how much, over how many cases, and how sure. told: all rows are told, and rises.
    n = max(int(row["n_cases"]) for row in rows)
    if len(rows) > _MOST:
        gaps = sorted(row["difference"] for row in rows)
        amount = f"{points(gaps[0], n, signed=not told)} to {points(gaps[-1], n, signed=not told)}"
        by = f"By {amount} points"
    elif told:
        amounts = [points(row["difference"], n, signed=False) for row in rows]
        amounts[0] += " point" if amounts[0] in ("1", "1.0") else " points"
        by = f"By {listed([a + _within([r], strata) for a, r in zip(amounts, rows, strict=True)])}"
    else:
        amounts = [
            f"{points(row['difference'], n)} ({points_span(row['low'], row['high'], n)})"
            f"{_within([row], strata)}"
            for row in rows
        ]
        first, second = rows[0]["first"], rows[0]["second"]
        by = f"{first} less {second}, in points: {listed(amounts)}"
    sizes = sorted({int(row["n_cases"]) for row in rows})
    cases = counted(sizes[-1], "case")
    if len(sizes) > 1:
        cases = f"{sizes[0]:,} to {cases}"
    return f"{by}, on the same {cases}; {_p_words(rows, strata)}"


def _p_words(rows: Sequence[Mapping[Any, Any]], strata: Sequence[str]) -> str:
    ps = [row["p_holm"] for row in rows]
    words = list(dict.fromkeys(map(p_words, ps)))
    if len(words) == 1:
        each = {1: "", 2: "both "}.get(len(ps), "each ")
        said = f"{each}{words[0]}"
    elif len(ps) > _MOST:
        said = f"p {p_value(min(ps))} to {p_value(max(ps))}"
    else:
        said = listed([f"{p_words(row['p_holm'])}{_within([row], strata)}" for row in rows])
    test = "sign-flip test" if any(row["repeated"] for row in rows) else "McNemar"
    return f"{said} ({test}, Holm)" if len(ps) > 1 else f"{said} ({test})"


def _of_several(rows: list[dict[Any, Any]], strata: Sequence[str], on: str) -> tuple[str, str]:
    # One value against each of several others, or several against a baseline.
    by_first = rows[0]["first"] == rows[-1]["first"]
    if not by_first:
        rows = [_turned(row) for row in rows]
    others: dict[str, list[dict[Any, Any]]] = {}
    for row in rows:
        others.setdefault(row["second"], []).append(row)
    sides = _Sides.of(others, strata)
    heading = sides.heading(rows[0]["first"], others, strata, kinds_of_column(on), by_first)
    told = sides.told
    shown = [r for r in rows if r["second"] in told and (_is_told(r) or not sides.partly)] or rows
    adjusted = "Holm, and for every pair" if by_first else "Holm"
    by = "By {} points" if told else "The differences are {} points"
    return heading, _range_words(shown, by, adjusted)


@dataclass(frozen=True, slots=True)
class _Sides:
    # Which others one value differs from: in every stratum, or, by how and where, in some alone.
    worse: list[str]
    better: list[str]
    partly: dict[tuple[str, str], list[str]]
    alike: list[str]

    @classmethod
    def of(cls, others: Mapping[str, list[dict[Any, Any]]], strata: Sequence[str]) -> _Sides:
        sides = cls([], [], {}, [])
        for other, rows in others.items():
            above, below = (
                [row for row in rows if _is_told(row) and row["difference"] * sign > 0]
                for sign in (1, -1)
            )
            if len(above) == len(rows):
                sides.worse.append(other)
            elif len(below) == len(rows):
                sides.better.append(other)
            elif not above and not below:
                sides.alike.append(other)
            for how, there in (("more", above), ("less", below)):
                if 0 < len(there) < len(rows):
                    sides.partly.setdefault((how, _within(there, strata)), []).append(other)
        return sides

    @property
    def told(self) -> set[str]:
        return {*self.worse, *self.better, *chain.from_iterable(self.partly.values())}

    def heading(
        self,
        one: str,
        others: Mapping[str, list[dict[Any, Any]]],
        strata: Sequence[str],
        kind: str,
        by_first: bool,
    ) -> str:
        each = {len(rows) for rows in others.values()}
        where = _everywhere(next(iter(others.values())), strata) if len(each) == 1 else ""
        n = len(others)
        if not self.told and by_first:
            none = f"but from none does it differ {CHANCE}{where}"
            return f"{one} has the highest rate of {n + 1} {kind}, {none}"
        if not self.told:
            return f"None of {n} {kind} differs from {one} {CHANCE}{where}"
        if len(self.worse) == n:
            which = "both others" if n == 2 else f"each of the {n} other {kind}"
            return f"{one} succeeds more often than {which}{where}"

        parts = []
        if self.worse:
            parts.append(f"{one} succeeds more often than {listed(self.worse)}{where}")
        for (how, within), names in self.partly.items():
            subject = "it" if parts else one
            parts.append(f"{subject} succeeds {how} often than {listed(names)}{within}")
        if self.better:
            verb = "succeeds" if len(self.better) == 1 else "succeed"
            parts.append(f"{listed(self.better)} {verb} more often than {one}{where}")
        if self.alike:
            verb = "does" if len(self.alike) == 1 else "do"
            parts.append(f"{listed(self.alike)} {verb} not differ from it {CHANCE}")
        return "; ".join(parts)


def _range_words(rows: Sequence[Mapping[Any, Any]], by: str, adjusted: str) -> str:
    # From the least to the largest difference; by: the words around them.
    gaps = sorted(abs(row["difference"]) for row in rows)
    sizes = sorted({int(row["n_cases"]) for row in rows})
    ps = sorted(row["p_holm"] for row in rows)
    amount = (points(gap, sizes[-1], signed=False) for gap in (gaps[0], gaps[-1]))
    said = list(dict.fromkeys((p_words(ps[0]), p_words(ps[-1]))))
    p = said[0] if len(said) == 1 else f"p {p_value(ps[0])} to {p_value(ps[-1])}"
    test = "sign-flip test" if any(row["repeated"] for row in rows) else "McNemar"
    cases = counted(sizes[-1], "case")
    if len(sizes) > 1:
        cases = f"{sizes[0]:,} to {cases}"
    words = by.format(" to ".join(dict.fromkeys(amount)))
    return f"{words}, on the same {cases}; {p} ({test}, {adjusted})."
