"""The same cases at several endpoints: which are as good as the reference, and what breaks at the
others.
"""

# How it works. Each measure is a share of the cases that it applies to, such as those in which a
# call is due. An endpoint is compared with the reference case by case. Whether it is worse or
# better is an exact test, corrected by Holm: success has half of alpha, all other measures share
# the other half. Whether it is the same is an interval within the margin, at a level that allows
# for all endpoints and measures. What broke at an endpoint is counted over the trials that the
# reference got right.

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ...core.errors import BadOptions, near
from ...core.types import Policy
from ...core.values.wording import money, plain_points, points, points_span, seconds, share
from ...experiments.run import HEADLINE, Run

if TYPE_CHECKING:
    from ...evals.frames.recorded import Frame

EndpointVerdict: TypeAlias = Literal["reference", "the same", "worse", "better", "cannot tell"]
MEASURES: Mapping[str, str] = {
    "call when due": "a call was made, of the cases that want one",
    "quiet when not": "no call was made, of the cases that want none",
    "right tool": "the tools are the right ones, of the cases that want a call",
    "valid": "every call satisfies its schema, of the cases that want one",
    "success": "the calls are the wanted ones, arguments and all, or rightly none",
}
"""Measure -> what is counted, and of which cases."""
_JUDGED = ("difference", "low", "high", "p")
_OTHER_TOOL = ("name", "unknown_tool", "count", "unexpected_call")


@dataclass(frozen=True)
class Endpoints:
    """Several endpoints beside a reference.

    Attributes:
        reference: the model that the others are compared with.
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
        import pandas as pd  # slow to import, as the next ones are

        # pandas and SciPy: two seconds
        from ...evals.reports.figures.differences import paired_difference
        from ...evals.reports.figures.stats import holm

        judged = self.trials["score_success"].notna() & self.trials["target"].notna()
        trials = self.trials[judged]
        models = [str(m) for m in dict.fromkeys(self.trials["model"]) if str(m) != self.reference]
        level = 1 - self.alpha / max(1, len(models) * len(MEASURES))
        rows: list[dict[str, Any]] = []
        for model in models:
            for measure, (flags, applies) in _judged(trials).items():
                a, b = (
                    (flags[own].to_numpy(bool), trials.loc[own, "case_id"].astype(str).to_numpy())
                    for side in (self.reference, model)
                    for own in [applies & (trials["model"].astype(str) == side)]
                )
                d = paired_difference(*a, *b, level)
                if not d.n_cases:
                    continue
                rows.append(
                    {"model": model, "measure": measure, "n": d.n_cases, "rate": d.rate_b}
                    | {"difference": d.rate, "low": d.low, "high": d.high, "p": d.p}
                )
        # Success, which all else ends in, has half of the chance to itself.
        for of_success in (True, False):
            part = [row for row in rows if (row["measure"] == "success") == of_success]
            for row, p in zip(part, holm([row["p"] for row in part]), strict=True):
                row["p"] = min(1.0, 2 * p)
                row["verdict"] = self._verdict(**{k: row[k] for k in _JUDGED})
        columns = ["model", "measure", "n", "rate", "difference", "low", "high", "p", "verdict"]
        return pd.DataFrame(rows, columns=columns)

    def _verdict(self, difference: float, low: float, high: float, p: float) -> EndpointVerdict:
        if p < self.alpha:
            return "worse" if difference < 0 else "better"
        return "the same" if -self.margin < low and high < self.margin else "cannot tell"

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
            f"within {plain_points(self.margin)} points of {self.reference}; "
            f"alpha {self.alpha:g} for all"
        ]
        for model in models:
            latency, cost = self._spent(model)
            spent = f"{seconds(latency)}, {money(cost)}" if latency == latency else money(cost)
            lines.append(f"{model}: {self.verdict(model)} ({spent})")
            for row in self.frame[self.frame["model"] == model].to_dict("records"):
                n = row["n"]
                gap = points_span(row["low"], row["high"], n)
                lines.append(
                    f"  {row['measure']}: {share(row['rate'], n)}, {points(row['difference'], n)} "
                    f"points ({gap}; {n} cases): {row['verdict']}"
                )
            if model != self.reference and (broken := self.broken(model)):
                lines.append("  broken by " + ", ".join(f"{w} {n}" for w, n in broken.items()))
        return lines

    def __str__(self) -> str:
        return "\n".join(self._lines())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def _judged(trials: Frame) -> dict[str, tuple[Any, Any]]:
    # Measure -> whether each trial does it, and the trials that it applies to.
    due = trials["target"].astype(str) != "[]"
    called = trials["n_calls"].fillna(0) > 0
    other = trials["sub_code"].isin(_OTHER_TOOL)
    valid = (trials["n_valid"] == trials["n_calls"]).fillna(False)
    return {
        "call when due": (called, due),
        "quiet when not": (~called, ~due),
        "right tool": (called & ~other, due),
        "valid": (called & valid, due),
        "success": (trials["score_success"], due | ~due),
    }


def endpoints(
    run: Run,
    reference: str | None = None,
    *,
    margin: float = 0.05,
    alpha: float = 0.05,
    policy: Policy = HEADLINE,
) -> Endpoints:
    """Compare the models of a run, which are one model at several endpoints, with one of them.

    Args:
        run: asked of each endpoint with the same cases.
        reference: a model of the run, by default its first.
        margin: the difference in success below which two are the same, a share.
        alpha: the chance of a false alarm, over all endpoints and measures.
        policy: of coercion.

    Raises BadOptions for a run of one model, and for a reference that it does not have.
    """
    models = list(run.plan.models)
    if len(models) < 2:
        raise BadOptions("endpoints are held to each other", got=len(models), expected="2 or more")
    if reference is not None and reference not in models:
        raise BadOptions(
            "the reference is a model of the plan", got=reference, expected=", ".join(models),
            hint=near(reference, models),
        )  # fmt: skip
    return Endpoints(reference or models[0], margin, alpha, run.frame(policies=(policy,)))
