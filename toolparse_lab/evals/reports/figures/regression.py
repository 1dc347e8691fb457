"""Has an arm become worse? The question of a continuous integration, answered for each stratum of a
comparison."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from ....errors import BadOptions, GateFailed
from .comparison import COMPARISON_COLUMNS

if TYPE_CHECKING:
    from .comparison import ArmComparison


@dataclass(frozen=True)
class Regression:
    """The verdict on a comparison. `frame` has one row a stratum, `verdict` being better, same,
    worse or not judged.

    `ok` is False where a stratum is worse, where one of the old arm has nothing to be compared
    with, and where nothing could be compared at all.
    """

    ok: bool
    frame: pd.DataFrame
    sentences: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.ok

    def raise_(self) -> None:
        """Raise GateFailed with the sentences of what became worse; nothing where nothing did."""
        if not self.ok:
            raise GateFailed(str(self))

    def __str__(self) -> str:
        head = "no regression" if self.ok else "regression"
        return "\n".join([head, *(f"  {sentence}" for sentence in self.sentences)])

    __repr__ = __str__


def find_regressions(
    comparison: ArmComparison, alpha: float = 0.05, tolerance: float = 0.0
) -> Regression:
    """A stratum is worse where b's rate lies more than `tolerance` below a's and chance does not
    explain the drop.

    That is: the interval of the difference lies below 0, and the sign-flip test on the cases'
    rates, by Holm over the strata, gives a p of at most `alpha`. An interval alone would cry wolf
    with a handful of cases, and a test of majorities alone would miss a drop in single trials.
    Raises BadOptions for an alpha or a tolerance that is no share.
    """
    _check_share("alpha", alpha)
    _check_share("tolerance", tolerance)
    strata = [c for c in comparison.frame if c not in COMPARISON_COLUMNS]
    rows: list[dict[Any, Any]] = []
    sentences: list[str] = []
    failed = False
    for row in comparison.frame.to_dict("records"):
        verdict = _verdict(row, alpha, tolerance)
        name = " · ".join(str(row[c]) for c in strata) or comparison.on
        if verdict == "worse":
            failed = True
            sentences.append(f"{name}: {_drop(row)}")
        elif verdict == "not judged":
            # A stratum that only b has is new; one of a that b lost may hide a drop.
            failed = failed or row["unpaired_a"] > 0
            sentences.append(f"{name}: not judged, {_why_not_judged(comparison, row)}")
        keys = {c: row[c] for c in strata}
        figures = {"difference": float(row["difference"]), "p": float(row["p_rates_holm"])}
        rows.append({**keys, "verdict": verdict, **figures})
    # Nothing to compare is no proof that nothing dropped: also true of no strata at all.
    if all(row["verdict"] == "not judged" for row in rows):
        failed = True
        sentences.append("the two have no judged case in common, so there is nothing to compare")
    frame = pd.DataFrame(rows, columns=[*strata, "verdict", "difference", "p"])
    return Regression(not failed, frame, tuple(sentences))


def _check_share(name: str, value: Any) -> None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not 0 <= value < 1:
        raise BadOptions(f"{name} is a share", got=value, expected="0 or more, below 1")


def _verdict(row: Mapping[Any, Any], alpha: float, tolerance: float) -> str:
    """The verdict on one stratum, a row of the comparison's frame."""
    if math.isnan(row["difference"]):
        return "not judged"
    # A p value that is not known certifies nothing, hence `not … <=`.
    if not row["p_rates_holm"] <= alpha:
        return "same"
    if row["ci_high"] < 0 and row["difference"] < -tolerance:
        return "worse"
    return "better" if row["ci_low"] > 0 else "same"


def _drop(row: Mapping[Any, Any]) -> str:
    """The drop of one stratum, in words."""
    return (
        f"success fell from {row['success_a']:.3g} to {row['success_b']:.3g} on "
        f"{row['n_cases']} cases (difference {row['difference']:+.3f}, interval "
        f"{row['ci_low']:+.3f} to {row['ci_high']:+.3f}, p {row['p_rates_holm']:.2g})"
    )


def _why_not_judged(comparison: ArmComparison, row: Mapping[Any, Any]) -> str:
    """The reason why a stratum has no difference, in words."""
    n = int(row["unpaired_a"])
    if not n:
        return f"{comparison.a} has no case of it"
    cases = "1 case of" if n == 1 else f"{n} cases of"
    return f"{cases} {comparison.a} {'has' if n == 1 else 'have'} no counterpart"
