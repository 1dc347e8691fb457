"""Runs that stop when a question is answered, by intervals that hold at every look.

How it works. The cases are asked in an order drawn from the plan's seed, a batch at a time, each
case in all its cells. So a run that stops early is a random sample of the cases. After each batch
the rule looks at the mean of every case. Its intervals are anytime-valid (`sequential`), shared out
over the cells, so that all of them together are wrong at most with chance alpha, however often one
looks and whether or not the run is taken up again later.
"""

from __future__ import annotations

import asyncio
import dataclasses
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Unpack

from ..core.errors import BadOptions
from ..core.types import Policy
from ..evals.engines import is_count
from ..evals.reports.figures import Interval
from ..evals.reports.figures.endpoints import chosen_reference
from ..runner.exchange.summary import Summary
from ..runner.exchange.types import PlanItem
from ..runner.limits import RunLimits, remaining_limits
from ..runner.store.store import RunRecord, Store
from .plan import Plan, PlannedRequests
from .rounds import run_rounds
from .run_reader import RunReader

if TYPE_CHECKING:
    from ..evals.frames.recorded import Frame


@dataclass(frozen=True)
class Until:
    """A rule that ends a run as soon as the data decide it.

    Exactly one of `compare`, `reference`, `rate` and `width`.

    Attributes:
        compare: two arms or protocols, (a, b): until b is shown to be better or worse than a, in
            each model. With `margin`, a share, also until it is shown to be worse by less than
            that.
        reference: a model of the plan: until every other model is shown to be better or worse than
            it, in each arm. With `margin` also until it is shown to differ by less than that.
        rate: until every cell's success is shown to be above or below it.
        width: until every cell's interval is no wider on either side than this share.
        alpha: the chance to be wrong anywhere.
        first, step: cases before the first look, and between looks.
        policy: the coercion policy of success.

    >>> Until(compare=("hermes", "gemma"), margin=0.05)
    Until(hermes and gemma differ, or gemma is worse by less than 5.0 points; alpha 0.05)
    """

    compare: tuple[str, str] | None = None
    margin: float | None = None
    reference: str | None = None
    rate: float | None = None
    width: float | None = None
    alpha: float = 0.05
    first: int = 20
    step: int = 10
    policy: Policy = "safe"

    def __post_init__(self) -> None:
        """Raise BadOptions for anything that is not a rule."""
        questions = (self.compare, self.reference, self.rate, self.width)
        rules = [x for x in questions if x is not None]
        if len(rules) != 1:
            raise BadOptions(
                "a run stops by one rule",
                got=len(rules),
                expected="compare=, reference=, rate= or width=",
            )
        pair: Any = self.compare
        is_pair = isinstance(pair, (list, tuple)) and [type(x) for x in pair] == [str, str]
        if pair is not None and not is_pair:
            raise BadOptions("compare has two arms", got=pair, expected="(a, b)")
        if self.margin is not None and self.compare is None and self.reference is None:
            raise BadOptions("a margin belongs to compare or reference", got=self.margin)
        for name in ("margin", "rate", "width", "alpha"):
            value = getattr(self, name)
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if value is not None and not (is_number and 0 < value < 1):
                raise BadOptions(f"{name} is a share", got=value, expected="between 0 and 1")
        for name in ("first", "step"):
            number = getattr(self, name)
            if not is_count(number):
                raise BadOptions(f"{name} is a number of cases", got=number, expected="1 or more")

    def __str__(self) -> str:
        if self.compare is not None:
            a, b = self.compare
            text = f"{a} and {b} differ"
            if self.margin is not None:
                text += f", or {b} is worse by less than {100 * self.margin:.1f} points"
        elif self.reference is not None:
            text = f"every model differs from {self.reference}"
            if self.margin is not None:
                text += f", or does so by less than {100 * self.margin:.1f} points"
        elif self.rate is not None:
            text = f"every rate is above or below {self.rate:.1%}"
        else:
            text = f"every rate is known to ±{100 * (self.width or 0):.1f} points"
        return f"{text}; alpha {self.alpha:g}"

    def __repr__(self) -> str:
        return f"Until({self})"

    def verdict(self, interval: Interval) -> str:
        """Return the verdict of an interval, '' if it is undecided."""
        low, high = interval.low, interval.high
        if self.compare is not None or self.reference is not None:
            if low > 0 or high < 0:
                return "better" if low > 0 else "worse"
            if self.reference is not None:
                margin = self.margin or 0.0
                return "the same" if -margin < low and high < margin else ""
            return "not worse" if self.margin is not None and low > -self.margin else ""
        if self.rate is not None:
            return "above" if low > self.rate else "below" if high < self.rate else ""
        half = max(high - interval.rate, interval.rate - low)
        return "known" if half <= (self.width or 0) else ""


@dataclass(frozen=True)
class Answer:
    """One cell's interval, which holds at every look, and its result. '' for nothing yet.

    cases: judged, in both arms where two are compared.
    """

    name: str
    cases: int
    interval: Interval
    verdict: str

    def __str__(self) -> str:
        interval = self.interval
        low, mean, high = (f"{100 * x:.1f}" for x in (interval.low, interval.rate, interval.high))
        end = self.verdict or "not decided"
        return f"{self.name}: {mean} ({low} to {high}, {self.cases} cases): {end}"


@dataclass(frozen=True)
class Stopping:
    """The end of a run with a rule: the answers, and the calls that were not needed.

    cases, questions: looked at by the rule, of planned_cases and planned_questions.
    """

    rule: Until
    answers: tuple[Answer, ...]
    cases: int
    planned_cases: int
    questions: int
    planned_questions: int

    @property
    def decided(self) -> bool:
        """True if every cell's question is answered."""
        return bool(self.answers) and all(answer.verdict for answer in self.answers)

    @property
    def saved(self) -> float:
        """The share of the planned first questions that were not asked."""
        return 1 - self.questions / self.planned_questions if self.planned_questions else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the end of the run as JSON values, from which `from_dict` makes it again."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Stopping:
        """Return the end of a run from the fields that a store keeps."""
        rule = dict(fields["rule"])
        pair = rule["compare"]
        rule["compare"] = None if pair is None else tuple(pair)
        answers = tuple(
            Answer(**{**answer, "interval": Interval(**answer["interval"])})
            for answer in fields["answers"]
        )
        return cls(**{**fields, "rule": Until(**rule), "answers": answers})

    def to_frame(self) -> Frame:
        """Return one row per cell: name, cases, mean, low, high, verdict."""
        from ..evals.reports.figures.stats import answers_frame  # pandas is slow to import

        return answers_frame([(x.name, x.cases, x.interval, x.verdict) for x in self.answers])

    def _lines(self) -> list[str]:
        end = "decided" if self.decided else "not decided"
        head = f"{end} after {self.cases} of {self.planned_cases} cases; {self.saved:.0%} of the "
        head += f"{self.planned_questions} planned questions were not asked"
        return [
            f"until {self.rule}: {head}.",
            *map(str, self.answers),
            "These intervals, in per cent or points, hold at every look; those of reports are for "
            "a number of cases fixed in advance, and too narrow for a run that stopped by its "
            "results.",
        ]

    def __str__(self) -> str:
        return "\n".join(self._lines())

    __repr__ = __str__

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        lines = "".join(f"<li>{escape(line)}</li>" for line in self._lines())
        return {"text/plain": str(self), "text/html": f"<ul>{lines}</ul>"}


def check_rule(rule: Any, plan: Plan) -> None:
    """Raise BadOptions for anything that is not a rule, and for one about arms that the plan has
    not.
    """
    if not isinstance(rule, Until):
        raise BadOptions(
            "until is a rule", got=rule, expected='tp.Until(compare=("a", "b")), for example'
        )
    CaseMeans(rule, plan)


class CaseMeans:
    """The mean success of each case in each cell, added a batch at a time."""

    def __init__(self, rule: Until, plan: Plan) -> None:
        """Raises BadOptions if the plan has not the arms that are compared."""
        self.rule = rule
        self._cells: dict[tuple[str, str], dict[str, float]] = {}
        self._models = list(plan.models)
        self._arms = [arm.name for arm in plan.arms]
        self._pair = None if rule.compare is None else _arms_of(plan, rule.compare)
        if rule.reference is not None:
            chosen_reference(self._models, rule.reference)

    def add(self, frame: Frame) -> None:
        """Add the trials of further cases."""
        judged = frame[frame["score_success"].notna()]
        success = judged["score_success"].astype(bool).astype(float)
        keys = [judged[c].astype(str) for c in ("model", "arm", "case_id")]
        means: Mapping[Any, float] = success.groupby(keys, observed=True).mean().to_dict()
        for (model, arm, case), mean in means.items():
            self._cells.setdefault((model, arm), {})[case] = float(mean)

    def answers(self) -> tuple[Answer, ...]:
        """Return every cell's interval and its result. Alpha is shared out over them."""
        from ..evals.reports.figures.stats import (  # scipy is slow to import
            anytime_difference,
            anytime_interval,
        )

        # By the name of the cell: a mean of each case, or a difference of two.
        values: dict[str, list[float]] = {}
        reference = self.rule.reference
        for model in self._models:
            if model == reference:
                continue
            means = {arm: self._cells.get((model, arm), {}) for arm in self._arms}
            if reference is not None:
                for arm, of in means.items():
                    others = self._cells.get((reference, arm), {})
                    gaps = [x - others[case] for case, x in of.items() if case in others]
                    name = f"{reference} → {model}"
                    values[name if len(means) == 1 else f"{name} · {arm}"] = gaps
            elif self._pair is None:
                values |= {f"{model} · {arm}": list(of.values()) for arm, of in means.items()}
            else:
                a, b = self._pair
                gaps = [means[b][case] - x for case, x in means[a].items() if case in means[b]]
                values[f"{model}: {a} → {b}"] = gaps
        is_difference = self._pair is not None or reference is not None
        interval_of = anytime_difference if is_difference else anytime_interval
        answers = []
        for name, numbers in values.items():
            interval = interval_of(numbers, self.rule.alpha / len(values))
            answers.append(Answer(name, len(numbers), interval, self.rule.verdict(interval)))
        return tuple(answers)


def batches_of(plan: Plan, rule: Until) -> Iterator[Plan]:
    """Yield the plan in parts, each of some cases with all their items, in random order.

    The order depends on the plan's seed alone, so a run that is taken up again looks at the same
    cases first.
    """
    by_case: dict[str, list[PlanItem]] = {}
    for item in plan.items:
        by_case.setdefault(item.case_id, []).append(item)
    order = list(by_case)
    random.Random(f"until {plan.seed}").shuffle(order)  # noqa: S311 - an order, not a secret
    at, size = 0, rule.first
    while at < len(order):
        items = tuple(item for case in order[at : at + size] for item in by_case[case])
        requests = PlannedRequests(items, plan.models, lambda item: plan.requests[item.key])
        yield dataclasses.replace(plan, items=items, requests=requests)
        at += size
        # Looks grow with what is known, so that a plan of 100,000 cases has about a hundred.
        size = max(rule.step, at // 10)


async def run_until(
    plan: Plan, store: Store, run_id: str, rule: Until, **limits: Unpack[RunLimits]
) -> tuple[Summary, Stopping]:
    """Ask a plan's questions batch by batch until the rule's question is answered.

    limits: as for `run_rounds`, for all batches together. Returns the summary of the whole plan,
    whose `stopped` is "until" if questions are left over, and the figures of the rule. Raises
    as `run_rounds` does, and BadOptions for arms that the plan has not.
    """
    began = time.monotonic()
    loop = asyncio.get_running_loop()
    means = CaseMeans(rule, plan)
    answers: tuple[Answer, ...] = ()
    summary, cases, keys, met = Summary(run_id=run_id), 0, set[str](), set[str]()
    for part in batches_of(plan, rule):
        rest = remaining_limits(limits, summary, began)
        if rest is None:
            summary = dataclasses.replace(summary, stopped="deadline")
            break
        batch = await run_rounds(part, store, run_id, more=True, met=met, **rest)
        summary = summary.joined(batch)
        met |= {item.model for item in part.items} - set(batch.given_up)
        cases += len({item.case_id for item in part.items})
        keys |= set(part.requests)
        if summary.stopped is not None:
            break
        reader = RunReader(store, run_id, part)
        means.add(await loop.run_in_executor(None, reader.frame, rule.policy))
        answers = means.answers()
        if answers and all(answer.verdict for answer in answers):
            break
    rest_size = len(plan.requests) - len(keys)
    summary.planned += rest_size
    if rest_size and summary.stopped is None:
        summary.stopped = "until"
    stopping = Stopping(rule, answers, cases, len(plan.cases), len(keys), len(plan.requests))
    status = "complete" if summary.complete else "incomplete"
    record = {**summary.to_dict(), "stopping": stopping.to_dict()}
    await loop.run_in_executor(store.writer, store.finish_run, run_id, status, record)
    return summary, stopping


def stored_stopping(record: RunRecord) -> Stopping | None:
    """Return the end of a recorded run; None where it ran without a rule or was cut off."""
    fields = (record.summary or {}).get("stopping")
    return None if fields is None else Stopping.from_dict(fields)


def _arms_of(plan: Plan, pair: Sequence[str]) -> tuple[str, str]:
    # Each named by itself or by its protocol.
    names: list[str] = []
    for name in pair:
        by_name = [arm.name for arm in plan.arms if arm.name == name]
        matches = by_name or [arm.name for arm in plan.arms if arm.prompt_protocol == name]
        if len(matches) != 1:
            raise BadOptions(
                "this names no arm of the plan, or several",
                got=name,
                expected=", ".join(arm.name for arm in plan.arms),
            )
        names.append(matches[0])
    if names[0] == names[1]:
        raise BadOptions("an arm cannot be compared with itself", got=names[0])
    return names[0], names[1]
