"""Has an arm become worse?

The question of a continuous integration, answered for each stratum of a comparison.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import pandas as pd

from ....core.errors import BadOptions, GateFailed
from .comparison import COMPARISON_COLUMNS, MARGIN
from .differences import Difference

if TYPE_CHECKING:
    from .comparison import ArmComparison

ArmVerdict: TypeAlias = Literal["worse", "not worse", "cannot tell", "not judged"]
# From the one that decides over all others.
_RANKS: tuple[ArmVerdict, ...] = ("worse", "cannot tell", "not worse")


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
        """Raise GateFailed with the sentences of each stratum.

        Nothing if the gate holds.
        """
        if not self.ok:
            raise GateFailed(str(self))

    def __str__(self) -> str:
        head: str = self.verdict
        if head == "not worse":
            head += f" than {_points(self.margin)} points"
        elif self.ok:
            head = "nothing changed"
        return "\n".join([head, *(f"  {sentence}" for sentence in self.sentences)])

    __repr__ = __str__


def find_regressions(
    comparison: ArmComparison,
    alpha: float = 0.05,
    margin: float = MARGIN,
    *,
    confident: bool = False,
) -> Regression:
    """Say of each stratum one of three.

    *worse*: the interval of the difference lies below 0, p is at most `alpha` by Holm, and the drop
    is not shown to be smaller than `margin`. *not worse*: the interval lies above -`margin`, also
    if every case that b lost had failed. *cannot tell*: neither is shown by these cases.

    That nothing dropped has to be shown, so an undecided check fails, with one exception: where no
    trial of any case changed and none was lost, there is nothing that dropped. `confident` makes no
    exception. Raises BadOptions for an alpha or a margin that is not a share.
    """
    _check_share("alpha", alpha)
    _check_share("margin", margin)
    strata = [c for c in comparison.frame if c not in COMPARISON_COLUMNS]
    rows: list[dict[Any, Any]] = []
    sentences: list[str] = []
    failed = False
    for row in comparison.frame.to_dict("records"):
        verdict = _verdict(row, alpha, margin)
        name = " · ".join(str(row[c]) for c in strata) or comparison.on
        passes, sentence = _judged(comparison, row, verdict, margin, confident)
        failed = failed or not passes
        sentences.append(f"{name}: {sentence}")
        keys = {c: row[c] for c in strata}
        figures = {
            "difference": float(row["difference"]),
            "p": float(row["p_holm"]),
            "smallest": float(row["smallest"]),
        }
        rows.append({**keys, "verdict": verdict, **figures})
    verdicts = [row["verdict"] for row in rows]
    # Nothing to compare is no proof that nothing dropped: also true of no strata at all.
    if all(verdict == "not judged" for verdict in verdicts):
        failed = True
        sentences.append("the two have no judged case in common, so there is nothing to compare")
    if n := comparison.edited["case_id"].nunique() if len(comparison.edited) else 0:
        sentences.append(f"{n} case{'' if n == 1 else 's'} edited: see the notes")
    sentences += _reader_changes(comparison.frame)
    frame = pd.DataFrame(rows, columns=[*strata, "verdict", "difference", "p", "smallest"])
    return Regression(not failed, frame, tuple(sentences), _overall(verdicts, failed), margin)


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


def _judged(
    comparison: ArmComparison,
    row: Mapping[Any, Any],
    verdict: ArmVerdict,
    margin: float,
    confident: bool,
) -> tuple[bool, str]:
    if verdict == "not judged":
        # A stratum that only b has is new; one of a that b lost may hide a drop.
        return row["unpaired_a"] == 0, f"not judged, {_why_not_judged(comparison, row)}"
    passes = verdict == "not worse" or (_is_unchanged(row) and not confident)
    return passes, _sentence(row, verdict, margin)


def _overall(verdicts: Sequence[ArmVerdict], failed: bool) -> ArmVerdict:
    # That of the worst stratum.
    overall: ArmVerdict = next((v for v in _RANKS if v in verdicts), "cannot tell")
    # An arm that is gone fails, and nothing is known of it.
    return "cannot tell" if overall == "not worse" and failed else overall


def _check_share(name: str, value: Any) -> None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not 0 <= value < 1:
        raise BadOptions(f"{name} is a share", got=value, expected="0 or more, below 1")


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


def _verdict(row: Mapping[Any, Any], alpha: float, margin: float) -> ArmVerdict:
    difference = Difference(
        row["difference"], row["ci_low"], row["ci_high"], low_if_lost=row["low_if_lost"]
    )
    return verdict_of(difference, alpha, margin, float(row["p_holm"]))


def _is_unchanged(row: Mapping[Any, Any]) -> bool:
    # Nothing lost, gained or flipped, down to single trials.
    return bool(row["changed"] == 0 and row["n_a"] == row["n_b"] and row["unpaired_a"] == 0)


def _sentence(row: Mapping[Any, Any], verdict: ArmVerdict, margin: float) -> str:
    parts = [f"{verdict}: {_change(row)}"]
    if verdict == "not worse":
        parts[0] = f"not worse than {_points(margin)} points: {_change(row)}"
    if verdict == "cannot tell":
        parts.append(_smallest(row))
    if n := int(row["unpaired_a"]):
        parts.append(f"{n} case{'' if n == 1 else 's'} lost")
    return "; ".join(parts)


def _change(row: Mapping[Any, Any]) -> str:
    verb = "rose" if row["difference"] > 0 else "fell" if row["difference"] < 0 else "stayed"
    if _is_unchanged(row):
        return f"no case changed, success {row['success_b']:.3g} on {_cases(row)}"
    return (
        f"success {verb} from {row['success_a']:.3g} to {row['success_b']:.3g} on {_cases(row)} "
        f"(difference {row['difference']:+.3f}, interval {row['ci_low']:+.3f} to "
        f"{row['ci_high']:+.3f}, p {row['p_holm']:.2g})"
    )


def _cases(row: Mapping[Any, Any]) -> str:
    return f"{row['n_cases']} case{'' if row['n_cases'] == 1 else 's'}"


def _smallest(row: Mapping[Any, Any]) -> str:
    if row["smallest"] > 1:
        return "so few cases can show no drop at all"
    return f"they could have shown a drop of {_points(row['smallest'])} points or more"


def _points(share: float) -> str:
    return f"{100 * share:.3g}"


def _why_not_judged(comparison: ArmComparison, row: Mapping[Any, Any]) -> str:
    n = int(row["unpaired_a"])
    if not n:
        return f"{comparison.a} has no case of it"
    cases = "1 case of" if n == 1 else f"{n} cases of"
    return f"{cases} {comparison.a} {'has' if n == 1 else 'have'} no counterpart"
