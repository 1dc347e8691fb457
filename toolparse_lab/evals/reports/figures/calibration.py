"""Whether the probability of an argument's tokens says how often the argument is right."""

# How it works. Arguments are put in the order of their confidence and cut into bins of equal size;
# arguments of equal confidence are in one bin. In each bin the share of right ones has an interval
# whose unit is the case, since the arguments of one case are not independent. The two figures of
# the whole, the calibration error and the chance that a right argument has the higher confidence of
# a right and a wrong one, have intervals from cases that are drawn again.

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from ....core.errors import BadOptions
from . import Interval

if TYPE_CHECKING:
    from ...frames.recorded import Frame

Confidence: TypeAlias = Literal["all tokens", "least likely token"]
"""The probability of all tokens of an argument together, or that of the least likely of them."""
_COLUMNS: dict[Confidence, str] = {"all tokens": "logprob", "least likely token": "min_logprob"}
LEAST = 500
"""Judged arguments below which nothing is said."""
_DRAWN = 1000


@dataclass(frozen=True)
class Calibration:
    """The confidence of arguments beside how often they are right.

    Attributes:
        arguments: the arguments frame of a run.
        by: which probability is the confidence.
        bins: how many there are at most.
        least: the judged arguments below which nothing is said.
    """

    arguments: Frame
    by: Confidence = "all tokens"
    bins: int = 10
    least: int = LEAST

    def __post_init__(self) -> None:
        if self.by not in _COLUMNS:
            expected = ", ".join(map(repr, get_args(Confidence)))
            raise BadOptions("no confidence of this name", got=self.by, expected=expected)
        for name in ("bins", "least"):
            value = getattr(self, name)
            if type(value) is not int or value < 2:
                raise BadOptions(f"{name} is a number", got=value, expected="2 or more")

    @cached_property
    def _judged(self) -> Frame:
        import numpy as np  # slow to import, as pandas is

        frame = self.arguments[["case_id", "right", _COLUMNS[self.by]]].dropna()
        confidence = np.exp(frame[_COLUMNS[self.by]].astype(float))
        return frame.assign(right=frame["right"].astype(bool), confidence=confidence)

    @property
    def n(self) -> int:
        """Arguments that are judged and whose tokens are known."""
        return len(self._judged)

    @property
    def measured(self) -> bool:
        """Whether there are enough of them, and both right and wrong ones."""
        return self.n >= self.least and self._judged["right"].nunique() == 2

    @cached_property
    def frame(self) -> Frame:
        """One row per bin: n, n_cases, confidence (mean, with the lowest and the highest), right
        (share), low, high. Empty where too few arguments are judged.
        """
        import pandas as pd

        from .stats import clustered_interval  # slow to import, as pandas is

        rows = []
        for part in self._parts():
            interval = clustered_interval(part["right"].tolist(), part["case_id"].tolist())
            rows.append(
                {
                    "n": len(part),
                    "n_cases": part["case_id"].nunique(),
                    "lowest": part["confidence"].min(),
                    "confidence": part["confidence"].mean(),
                    "highest": part["confidence"].max(),
                    "right": part["right"].mean(),
                    "low": interval.low,
                    "high": interval.high,
                }
            )
        names = ["n", "n_cases", "lowest", "confidence", "highest", "right", "low", "high"]
        return pd.DataFrame(rows, columns=names)

    def _parts(self) -> Iterator[Frame]:
        if not self.measured:
            return
        judged = self._judged
        ranks = judged["confidence"].rank(method="max")
        bins = ((ranks - 1) * self.bins // len(judged)).astype(int)
        for _, part in judged.groupby(bins):
            yield part

    @cached_property
    def error(self) -> Interval:
        """The expected calibration error: how far, on average over the arguments, the confidence of
        a bin is from its share of right ones. NaN where too few are judged.
        """
        return self._figures[0]

    @cached_property
    def ranking(self) -> Interval:
        """The chance that, of a right and a wrong argument, the right one has the higher confidence
        (the area under the ROC curve). NaN where too few are judged.
        """
        return self._figures[1]

    @cached_property
    def _figures(self) -> tuple[Interval, Interval]:
        import numpy as np

        if not self.measured:
            nothing = Interval(float("nan"), float("nan"), float("nan"))
            return nothing, nothing
        confidence = self._judged["confidence"].to_numpy()
        right = self._judged["right"].to_numpy()
        codes, _ = self._judged["case_id"].astype(str).factorize()
        order = np.argsort(codes, kind="stable")
        places = np.split(order, np.cumsum(np.bincount(codes))[:-1])
        # A bin's limits are those of all arguments, whatever is drawn.
        edges = np.unique([float(part["confidence"].max()) for part in self._parts()])
        rng = np.random.default_rng(0)
        drawn = []
        for _ in range(_DRAWN):
            chosen = np.concatenate([places[i] for i in rng.integers(0, len(places), len(places))])
            drawn.append(_figures(confidence[chosen], right[chosen], edges))
        low, high = np.nanpercentile(drawn, [2.5, 97.5], axis=0)
        error, ranking = _figures(confidence, right, edges)
        return (
            Interval(error, float(low[0]), float(high[0])),
            Interval(ranking, float(low[1]), float(high[1])),
        )

    def __str__(self) -> str:
        if not self.measured:
            return self._why_not()
        lines = [
            f"{self.n} arguments of {self._judged['case_id'].nunique()} cases; confidence: the "
            f"probability of {_WORDS[self.by]}.",
            "",
            "confidence        n    right",
        ]
        lines += (
            f"{row.lowest:.3f}–{row.highest:.3f}  {row.n:5}    {row.right:6.1%}  "
            f"({row.low:.1%} to {row.high:.1%})"
            for row in self.frame.itertuples()
        )
        error, ranking = self.error, self.ranking
        lines += [
            "",
            f"Calibration error {error.rate:.3f} ({error.low:.3f} to {error.high:.3f}).",
            "Of a right and a wrong argument the right one has the higher confidence in "
            f"{ranking.rate:.1%} ({ranking.low:.1%} to {ranking.high:.1%}).",
        ]
        return "\n".join(lines)

    def _why_not(self) -> str:
        have = len(self.arguments)
        tokens = int(self.arguments["n_tokens"].notna().sum()) if have else 0
        if self.n >= self.least:
            which = "right" if self._judged["right"].all() else "wrong"
            return f"Not measured: all {self.n} arguments are {which}, so there is nothing to tell."
        hint = "" if tokens else " Ask with logprobs=True to record tokens."
        return (
            f"Not measured: {self.n} arguments are judged and have tokens with probabilities, of "
            f"{have}; {self.least} are needed.{hint}"
        )

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


_WORDS: dict[Confidence, str] = {
    "all tokens": "all tokens of an argument together",
    "least likely token": "the least likely token of an argument",
}


def _figures(confidence: Any, right: Any, edges: Any) -> tuple[float, float]:
    import numpy as np
    from scipy.stats import rankdata

    bins = np.searchsorted(edges, confidence)
    size = len(edges) + 1
    gaps = np.bincount(bins, confidence, size) - np.bincount(bins, right, size)
    error = float(np.abs(gaps).sum() / len(right))
    n_right = int(right.sum())
    n_wrong = len(right) - n_right
    if not n_right or not n_wrong:
        return error, float("nan")
    ranks = rankdata(confidence)[right].sum() - n_right * (n_right + 1) / 2
    return error, float(ranks / (n_right * n_wrong))
