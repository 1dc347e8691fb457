"""The same cases at several endpoints: which are as good as the reference, and what breaks at the
others.
"""

# How it works. Each measure is a share of the cases that it applies to, such as those in which a
# call is due. An endpoint is held to the reference case by case, in two ways. The interval of the
# differences holds at every look; half of alpha is shared out over all endpoints and measures for
# it. Where all cases were asked, an exact test at the end finds smaller differences; of the other
# half, one part is Holm's for success and one for all other measures. So the chance of any false
# alarm is at most alpha, however early the run stopped. What broke at an endpoint is asked of the
# trials that the reference got right.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ....core.errors import BadOptions, near
from . import Interval

if TYPE_CHECKING:
    from ...frames.recorded import Frame

EndpointVerdict: TypeAlias = Literal["reference", "the same", "worse", "better", "cannot tell"]
MEASURES: Mapping[str, str] = {
    "call when due": "a call was made, of the cases that want one",
    "quiet when not": "no call was made, of the cases that want none",
    "right tool": "the tools are the right ones, of the cases that want a call",
    "valid": "every call satisfies its schema, of the cases that want one",
    "success": "the calls are the wanted ones, arguments and all, or rightly none",
}
"""Measure -> what is counted, and of which cases."""
_OTHER_TOOL = ("name", "unknown_tool", "count", "unexpected_call")


@dataclass(frozen=True)
class Endpoints:
    """Several endpoints beside a reference.

    Attributes:
        reference: the model that the others are held to.
        margin: the difference below which two are the same.
        alpha: the chance of a false alarm anywhere in the table.
        trials: the trials frame that was judged.
    """

    reference: str
    margin: float
    alpha: float
    trials: Frame

    @cached_property
    def frame(self) -> Frame:
        """One row per endpoint and measure: n (cases), rate, difference, low, high, p, verdict."""
        import numpy as np  # slow to import, as pandas is
        import pandas as pd

        from .differences import sign_flip  # numpy and pandas, again
        from .stats import anytime_difference, holm

        means = _case_means(self.trials)
        models = [str(m) for m in dict.fromkeys(self.trials["model"]) if str(m) != self.reference]
        share = self.alpha / 2 / max(1, len(models) * len(MEASURES))
        rows: list[list[Any]] = []
        for model in models:
            for measure, of in means.items():
                own, others = of.get(model, {}), of.get(self.reference, {})
                cases = [case for case in own if case in others]
                if not cases:
                    continue
                a, b = [others[case] for case in cases], [own[case] for case in cases]
                interval = anytime_difference((y - x for x, y in zip(a, b, strict=True)), share)
                p = sign_flip(np.asarray(a), cases, np.asarray(b), cases)
                ends = (interval.rate, interval.low, interval.high)
                rows.append([model, measure, len(cases), sum(b) / len(b), *ends, p])
        # Success, which all else ends in, has half of the chance to itself.
        for part in (
            [row for row in rows if row[1] == "success"],
            [row for row in rows if row[1] != "success"],
        ):
            for row, p in zip(part, holm([row[-1] for row in part]), strict=True):
                row[-1] = min(1.0, 2 * p)
                row.append(self._verdict(Interval(*row[4:7]), row[-1]))
        columns = ["model", "measure", "n", "rate", "difference", "low", "high", "p", "verdict"]
        return pd.DataFrame(rows, columns=columns)

    def _verdict(self, interval: Interval, p: float) -> EndpointVerdict:
        if interval.high < 0 or interval.low > 0 or p < self.alpha / 2:
            return "worse" if interval.rate < 0 else "better"
        is_within = -self.margin < interval.low and interval.high < self.margin
        return "the same" if is_within else "cannot tell"

    def verdict(self, model: str) -> EndpointVerdict:
        """Return the verdict on an endpoint: worse if it is so by any measure, the same if it is by
        success, and by every measure that says anything. Raises BadOptions for another name.
        """
        if model == self.reference:
            return "reference"
        models = sorted({*map(str, self.trials["model"])})
        if model not in models:
            raise BadOptions(
                "no endpoint of this name", got=model, expected=", ".join(models),
                hint=near(model, models),
            )  # fmt: skip
        rows = self.frame[self.frame["model"] == model]
        verdicts = dict(zip(rows["measure"], rows["verdict"], strict=True))
        if "worse" in verdicts.values():
            return "worse"
        success: EndpointVerdict = verdicts.get("success", "cannot tell")
        return success

    def broken(self, model: str) -> Mapping[str, int]:
        """Return what broke at an endpoint where the reference was right: layer and code -> n."""
        trials = self.trials
        right = trials[(trials["model"] == self.reference) & (trials["score_success"] == True)]  # noqa: E712
        own = trials[
            (trials["model"] == model)
            & (trials["score_success"] == False)  # noqa: E712
            & trials["case_id"].isin(right["case_id"])
        ]
        codes = " (" + own["blame_code"].astype("string") + ")"
        words = own["blame_layer"].astype("string") + codes.fillna("")
        return {str(word): int(n) for word, n in words.value_counts().items()}

    def _spent(self, model: str) -> tuple[float, float]:
        # Median latency in seconds, and US dollars in all.
        own = self.trials[self.trials["model"] == model]
        return float(own["latency"].astype("float64").median()), float(own["cost"].sum())

    def _lines(self) -> list[str]:
        models = [str(m) for m in dict.fromkeys(self.trials["model"])]
        judged = self.trials[self.trials["score_success"].notna()]
        lines = [
            f"{len(models)} endpoints, {judged['case_id'].nunique()} cases; the same is "
            f"within {100 * self.margin:.1f} points of {self.reference}; "
            f"alpha {self.alpha:g} for all"
        ]
        for model in models:
            latency, cost = self._spent(model)
            spent = f"{latency:.2f} s, ${cost:.4f}" if latency == latency else f"${cost:.4f}"
            lines.append(f"{model}: {self.verdict(model)} ({spent})")
            for row in self.frame[self.frame["model"] == model].to_dict("records"):
                gap = " to ".join(f"{100 * row[end]:+.1f}" for end in ("low", "high"))
                lines.append(
                    f"  {row['measure']}: {row['rate']:.1%}, {100 * row['difference']:+.1f} points "
                    f"({gap}; {row['n']} cases): {row['verdict']}"
                )
            if model != self.reference and (broken := self.broken(model)):
                lines.append("  broken by " + ", ".join(f"{w} {n}" for w, n in broken.items()))
        return lines

    def __str__(self) -> str:
        return "\n".join(self._lines())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def _case_means(trials: Frame) -> dict[str, dict[str, dict[str, float]]]:
    # Measure -> model -> case -> the share of its trials, of those that the measure applies to.
    part = trials[trials["score_success"].notna() & trials["target"].notna()]
    due = part["target"].astype(str) != "[]"
    called = part["n_calls"].fillna(0) > 0
    other = part["sub_code"].isin(_OTHER_TOOL)
    valid = (part["n_valid"] == part["n_calls"]).fillna(False)
    measured = {
        "call when due": (called, due),
        "quiet when not": (~called, ~due),
        "right tool": (called & ~other, due),
        "valid": (called & valid, due),
        "success": (part["score_success"], due | ~due),
    }
    means: dict[str, dict[str, dict[str, float]]] = {measure: {} for measure in MEASURES}
    for measure, (flags, applies) in measured.items():
        keys = [part.loc[applies, name].astype(str) for name in ("model", "case_id")]
        shares = flags[applies].astype(float).groupby(keys, observed=True).mean()
        grouped: Mapping[Any, float] = shares.to_dict()
        for (model, case), mean in grouped.items():
            means[measure].setdefault(model, {})[case] = float(mean)
    return means


def chosen_reference(models: Sequence[str], reference: str | None) -> str:
    """Return the model that the others are held to, by default the first.

    Raises BadOptions for fewer than two models, or another name.
    """
    if len(models) < 2:
        raise BadOptions("endpoints are held to each other", got=len(models), expected="2 or more")
    if reference is None:
        return models[0]
    if reference not in models:
        raise BadOptions(
            "the reference is a model of the plan", got=reference, expected=", ".join(models),
            hint=near(reference, models),
        )  # fmt: skip
    return reference
