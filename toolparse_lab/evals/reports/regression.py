"""Has an arm become worse? The question of a continuous integration, answered for each stratum of a comparison."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from ...errors import BadOptions, GateFailed
from .comparison import COMPARISON_COLUMNS

if TYPE_CHECKING:
    from .comparison import ArmComparison


@dataclass(frozen=True)
class Regression:
    """Whether no stratum dropped. `frame` has one row a stratum, `verdict` being better, same, worse or not judged.

    `ok` is False where a stratum is worse, where one of the old arm has nothing to be compared with, and where
    nothing could be compared at all.
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
        return "\n".join(["no regression" if self.ok else "regression", *(f"  {s}" for s in self.sentences)])

    __repr__ = __str__


def find_regressions(comparison: ArmComparison, alpha: float = 0.05, tolerance: float = 0.0) -> Regression:
    """A stratum is worse where b's rate lies more than `tolerance` below a's and chance does not explain the drop.

    That is: the interval of the difference lies below 0, and the sign-flip test on the cases' rates, by Holm over the
    strata, gives a p of at most `alpha`. An interval alone would cry wolf with a handful of cases, and a test of
    majorities alone would miss a drop in single trials. Raises BadOptions for an alpha or a tolerance that is no share.
    """
    for name, value, top in (("alpha", alpha, 1.0), ("tolerance", tolerance, 1.0)):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < top:
            raise BadOptions(f"{name} is a share", got=value, expected="0 or more, below 1")
    strata = [c for c in comparison.frame if c not in COMPARISON_COLUMNS]
    rows, sentences, failed = [], [], False
    for row in comparison.frame.to_dict("records"):
        name = " · ".join(str(row[c]) for c in strata) or comparison.on
        gap, p = float(row["difference"]), float(row["p_rates_holm"])
        if math.isnan(gap):
            verdict = "not judged"
            lost = int(row["unpaired_a"])
            failed = failed or lost > 0
            one = f"1 case of {comparison.a} has" if lost == 1 else f"{lost} cases of {comparison.a} have"
            what = f"{one} no counterpart" if lost else f"{comparison.a} has no case of it"
            sentences.append(f"{name}: not judged, {what}")
        else:
            certain = p <= alpha
            worse = certain and row["ci_high"] < 0 and gap < -tolerance
            verdict = "worse" if worse else "better" if certain and row["ci_low"] > 0 else "same"
            if worse:
                failed = True
                sentences.append(
                    f"{name}: success fell from {row['success_a']:.3g} to {row['success_b']:.3g} on "
                    f"{row['n_cases']} cases (difference {gap:+.3f}, interval {row['ci_low']:+.3f} to "
                    f"{row['ci_high']:+.3f}, p {p:.2g})"
                )
        rows.append({**{c: row[c] for c in strata}, "verdict": verdict, "difference": gap, "p": p})
    if not any(r["verdict"] != "not judged" for r in rows):
        failed = True
        sentences.append("the two have no judged case in common, so there is nothing to compare")
    return Regression(not failed, pd.DataFrame(rows, columns=[*strata, "verdict", "difference", "p"]), tuple(sentences))
