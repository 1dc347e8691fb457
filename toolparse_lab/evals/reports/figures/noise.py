"""The noise of an endpoint: how far two runs of the same arm on the same cases lie apart.

The variance of one answer's success is the sum of two parts: how much the answers to one case vary
(prediction noise), and how much cases differ (data noise). A rate over N cases with k trials each
has the standard error sqrt(data / N + prediction / (k N)). The difference of two runs of the same
arm over the same cases, an A/A difference, knows no data noise, since each case stands against
itself: its standard error is sqrt(2 prediction / (k N)), and more trials shrink it. Both parts are
estimated without bias from trials of the same case (Miller 2024 and eval-arena do the same).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

import pandas as pd

from ....core.values.printable import counted
from .cells import by_question, check_trials, groups, read_under
from .power_table import asked_anew, case_counts, disagreement
from .stats import NAN, are_copies

_BY = ("model", "arm")


@dataclass(frozen=True, slots=True)
class CellNoise:
    """The noise of one model and arm, or NaN if no case has two trials.

    Shares are of 0 to 1.

    cases, trials: those judged. rate: mean of the cases' rates. disagree: how often two trials of a
    case disagree. prediction, data: the standard error of the rate that answers and that cases
    account for. total: both together. again: the standard error of the difference from another run
    like this one. difference, difference_se: later less earlier half of each case's trials, as
    observed, with its standard error. copies: whether all trials of each case are one text.
    """

    name: str
    cases: int
    trials: int
    rate: float
    disagree: float
    prediction: float
    data: float
    total: float
    again: float
    difference: float
    difference_se: float
    copies: bool = False

    def __str__(self) -> str:
        head = f"{self.name}: {counted(self.trials, 'trial')} of {counted(self.cases, 'case')}"
        if self.copies:
            return (
                f"{head}. All trials of a case are the same text: the endpoint was not asked anew, "
                "or answers the same each time, and its noise cannot be told from zero."
            )
        if self.disagree != self.disagree:
            return f"{head}. No case has two trials, so that noise cannot be measured."
        points = [f"{100 * x:.1f}" for x in (self.again, 1.96 * self.again)]
        parts = [f"{100 * x:.1f}" for x in (self.total, self.prediction, self.data)]
        return (
            f"{head}. Another run like it differs by chance by {points[0]} points (standard "
            f"error), in 19 of 20 by {points[1]} or less. The rate's own standard error is "
            f"{parts[0]} points: {parts[1]} from answers, {parts[2]} from cases. "
            f"{self._observed()}"
        )

    def _observed(self) -> str:
        far = abs(self.difference) > 2.5758 * self.difference_se  # 99 %
        drift = ", more than chance explains: the endpoint changed" if far else ""
        return (
            f"Seen: later trials {100 * self.difference:+.1f} points from earlier ones "
            f"(standard error {100 * self.difference_se:.1f}){drift}."
        )


class Noise(Sequence[CellNoise]):
    """The noise of each model and arm. A frame by `frame()`.

    `note` says which cases count as one, '' for none.
    """

    def __init__(self, cells: Sequence[CellNoise], note: str = "") -> None:
        self._cells = tuple(cells)
        self.note = note

    def __len__(self) -> int:
        return len(self._cells)

    def __getitem__(self, index: Any) -> Any:
        return self._cells[index]

    def frame(self) -> pd.DataFrame:
        """Return one row per model and arm, with the fields of `CellNoise`."""
        return pd.DataFrame([asdict(cell) for cell in self._cells])

    def __str__(self) -> str:
        return "\n".join(self._lines())

    __repr__ = __str__

    def _lines(self) -> list[str]:
        return [*map(str, self._cells), *filter(None, [self.note])]

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        lines = "".join(f"<li>{escape(line)}</li>" for line in self._lines())
        return {"text/plain": str(self), "text/html": f"<ul>{lines}</ul>"}


def noise_table(frames: Sequence[pd.DataFrame], policy: str = "safe") -> Noise:
    """Return the noise of each model and arm.

    Several frames are runs of the same plan, one after the other.

    An answer that stands in two frames was recorded once, and counts once. Cases that ask the same
    question count as one case, which has the trials of all of them. Raises BadOptions for anything
    but a trials frame.
    """
    for frame in frames:
        check_trials(frame)
    parts = [
        read_under(frame, (), policy).astype(object).assign(order=number)
        for number, frame in enumerate(frames)
    ]
    rows, note = by_question(pd.concat(parts, ignore_index=True))
    judged = rows[rows["score_success"].notna()]
    by = [c for c in _BY if c in judged]
    return Noise([_cell(" · ".join(values), part) for values, part in groups(judged, by)], note)


def _cell(name: str, judged: pd.DataFrame) -> CellNoise:
    judged = asked_anew(judged).sort_values(["order", "trial"], kind="stable")
    rates = case_counts(judged)
    shares = rates["hits"] / rates["n"]
    several = rates[rates["n"] >= 2]
    copies = len(several) > 0 and are_copies(
        judged["raw"].astype(str).tolist(), judged["case_id"].tolist()
    )
    prediction = float(disagreement(several).mean()) / 2 if len(several) and not copies else NAN
    cases = len(rates)
    spread = float(shares.var(ddof=1)) if cases > 1 else NAN
    # The cases' rates vary by the noise of their own trials, too, which is no difference of cases.
    own = prediction * float((1 / rates["n"]).mean())
    data = max(0.0, spread - own) if spread == spread and own == own else NAN
    difference, difference_se = _halves(judged)
    return CellNoise(
        name,
        cases,
        len(judged),
        float(shares.mean()),
        2 * prediction,
        _root(own / cases),
        _root(data / cases),
        _root((data + own) / cases),
        _root(2 * own / cases),
        difference,
        difference_se,
        copies,
    )


def _root(variance: float) -> float:
    return math.sqrt(variance) if variance >= 0 else NAN


def _halves(judged: pd.DataFrame) -> tuple[float, float]:
    # A middle trial of an odd number is in neither half. Cases are compared with themselves, so
    # that their differences do not count.
    place = judged.groupby("case_id", sort=False, observed=True).cumcount()
    size = judged.groupby("case_id", sort=False, observed=True)["case_id"].transform("count")
    early, late = place < size // 2, place >= size - size // 2
    first, second = (case_counts(judged[half & (size >= 2)]) for half in (early, late))
    gaps = second["hits"] / second["n"] - first["hits"] / first["n"]
    if len(gaps) < 2:
        return NAN, NAN
    return float(gaps.mean()), float(gaps.std(ddof=1)) / math.sqrt(len(gaps))
