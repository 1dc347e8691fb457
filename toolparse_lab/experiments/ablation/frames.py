"""Recorded answers and paths as frames: a row per answer, a row per call, a row per correction.

How it works. A rung of an answer is that of all its calls: an answer of two calls of which one is
refused has not been taken. A rung is None where it is not known: nothing is recorded, a
correction of one of its calls is missing, or the case has no target (gold alone).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import pandas as pd

from ...arguments.schema import coerce
from ...core.toolspec import ToolSpec
from ...core.types import Policy
from ...core.values import pointer_tokens, same
from ...evals.cases.matchers import DEFAULT_MATCHERS
from ...evals.scoring.match import agree, differences_between
from ...evals.scoring.rescues import Rescues, judge_rescues
from .answers import AnswerCall, BaseAnswer, Path
from .recording import Recorded
from .tools import check_names, problems_of

BY = ("model", "protocol")
RUNGS = ("parsed", "valid", "accepted", "gold")
_QUESTION = ("case_id", "model", "protocol", "trial", "l1")
_ANSWER = (
    *_QUESTION, "policy", "l3", *RUNGS, "reason", "prompt_tokens", "tokens", "cost", "latency",
    "model_calls", "extra_tokens", "extra_cost", "extra_latency", "tool_calls", "pauses",
)  # fmt: skip
_CALL = (
    *_QUESTION, "answer", "call", "tool", "policy", "valid", "gold", "accepted", "typed",
    "mistyped", "steps", "rules", "idempotent", "stop", "entered", "corrected_valid",
    "corrected_accepted", "corrected_gold", "model_calls", "applied", "needed", "extra_tokens",
    "extra_cost",
)  # fmt: skip
_CORRECTION = (
    *_QUESTION, "answer", "call", "policy", "number", "status", "reason", "edits", "collateral",
    "tokens", "cost", "latency", "key",
)  # fmt: skip
# These may be unknown.
_FLAGS = (
    *RUNGS, "idempotent", "corrected_valid", "corrected_accepted", "corrected_gold", "entered",
)  # fmt: skip


class Frames:
    """One recorded set of answers as frames. Nothing here asks a model.

    by: the columns that figures are grouped by.
    """

    def __init__(self, recorded: Recorded, by: Sequence[str] = BY) -> None:
        check_names(by, BY, "an ablation is not grouped by this")
        self.recorded = recorded
        self.settings = recorded.settings
        self.run = recorded.run
        self.by = tuple(by)

    @cached_property
    def answers(self) -> pd.DataFrame:
        """One row per answer × policy × layer 3 off and on: rungs and costs."""
        rows = []
        for i, answer in enumerate(self.recorded.answers):
            base = _base_costs(answer)
            for policy in self.settings.policies:
                for l3 in (False, True):
                    # None for a call of a tool that was not offered.
                    paths = [
                        self.recorded.paths.get((i, j, policy, l3))
                        for j in range(len(answer.calls))
                    ]
                    place = {**_question(answer), "policy": policy, "l3": l3}
                    rows.append({**place, **base, **_answer_row(answer, paths)})
        return _frame(rows, _ANSWER)

    @cached_property
    def calls(self) -> pd.DataFrame:
        """One row per call × policy: before layer 3 and after it."""
        rows = []
        for i, answer in enumerate(self.recorded.answers):
            for j, call in enumerate(answer.calls):
                for policy in call.readings:
                    off, on = (self.recorded.paths.get((i, j, policy, l3)) for l3 in (False, True))
                    place = {**_question(answer), "answer": i, "call": j, "policy": policy}
                    rows.append({**place, **_call_row(answer, call, policy, off, on)})
        return _frame(rows, _CALL)

    @cached_property
    def corrections(self) -> pd.DataFrame:
        """One row per correction of a call × policy, in the order in which they were asked."""
        rows = []
        for (i, j, policy, _), path in self.recorded.paths.items():
            place = {**_question(self.recorded.answers[i]), "answer": i, "call": j}
            # Where nobody could be asked, a correction is used up without an answer.
            for correction, node in zip(path.call.corrections, path.nodes, strict=False):
                rows.append(
                    {
                        **place,
                        "policy": policy,
                        "number": correction.number,
                        "status": correction.status,
                        "reason": correction.reason,
                        "edits": len(correction.edits),
                        "collateral": len(correction.collateral),
                        "tokens": correction.tokens,
                        "cost": correction.cost,
                        "latency": _number(node.latency),
                        "key": node.key,
                    }
                )
        return _frame(rows, _CORRECTION)


def _frame(rows: list[dict[str, Any]], columns: tuple[str, ...]) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=list(columns))
    return frame.astype({name: "boolean" for name in _FLAGS if name in frame})


def _question(answer: BaseAnswer) -> dict[str, Any]:
    question = answer.question
    values = question.case.id, question.model, question.protocol, question.trial, question.on
    return dict(zip(_QUESTION, values, strict=True))


def _number(value: float | None, otherwise: float = math.nan) -> float:
    return otherwise if value is None else float(value)


def _base_costs(answer: BaseAnswer) -> dict[str, float]:
    # Tokens (the prompt's, and all), US dollars and seconds.
    one = answer.completion
    if one is None:
        return dict.fromkeys(("prompt_tokens", "tokens", "cost", "latency"), math.nan)
    prompt = _number(one.prompt_tokens)
    return {
        "prompt_tokens": prompt,
        "tokens": prompt + _number(one.completion_tokens),
        "cost": _number(one.cost),
        "latency": _number(one.latency),
    }


def _rungs(answer: BaseAnswer, paths: list[Path | None]) -> tuple[bool | None, ...]:
    # In the order of `RUNGS`.
    case, ends = answer.question.case, [path for path in paths if path is not None]
    if answer.parsed is None:
        return None, None, None, None
    if not answer.parsed or len(ends) < len(paths):
        # Nothing can mend a call of a tool that was not offered.
        return answer.parsed, False, False, None if case.target is None else False
    if not all(path.whole for path in ends):
        return True, None, None, None
    calls = [path.call for path in ends]
    valid = all(not problems_of(call.arguments, call.tool) for call in calls)
    gold = None
    if case.target is not None:
        pairs = [(call.tool.name, dict(call.arguments)) for call in calls]
        gold = agree(pairs, case.target, case.tools)  # in any order
    return True, valid, all(call.ok for call in calls), gold


def _answer_row(answer: BaseAnswer, paths: list[Path | None]) -> dict[str, Any]:
    ends = [path for path in paths if path is not None]
    calls = [path.call for path in ends]
    rungs = dict(zip(RUNGS, _rungs(answer, paths), strict=True))
    is_open = rungs["parsed"] and rungs["valid"] is None
    return {
        **rungs,
        "reason": "a correction is missing" if is_open else answer.reason,
        "model_calls": sum(call.model_calls for call in calls),
        "extra_tokens": sum(path.tokens for path in ends),
        "extra_cost": sum(path.cost for path in ends),
        "extra_latency": sum(_number(node.latency, 0) for path in ends for node in path.nodes),
        "tool_calls": sum(call.tool_calls for call in calls),
        "pauses": sum(sum(call.pauses) for call in calls),
    }


def _call_row(
    answer: BaseAnswer, call: AnswerCall, policy: Policy, off: Path | None, on: Path | None
) -> dict[str, Any]:
    # off, on: its paths without and with layer 3, None for a tool that was not offered.
    arguments, tool = call.arguments(policy), call.tool
    row: dict[str, Any] = {
        "tool": call.name,
        "steps": sum(step.stage == "coerce" for step in call.readings[policy].steps),
        "rules": _judged_rules(answer, call, policy),
        "gold": _is_wanted(answer, call.name, arguments),
    }
    if tool is None or off is None or on is None:
        return {**row, "valid": False, "accepted": False, "typed": 0, "mistyped": 0,
                "entered": False, "model_calls": 0, "applied": 0, "needed": 0,
                "extra_tokens": 0, "extra_cost": 0.0}  # fmt: skip
    problems = problems_of(arguments, tool)
    wrong = {pointer_tokens(p.path)[0] for p in problems if p.code == "validate.type" and p.path}
    typed = _typed_names(arguments, tool)
    again = coerce(arguments, tool.schema_json, policy).value
    end = on.call
    applied = [c.number for c in end.corrections if c.status == "applied"]
    return {
        **row,
        "valid": not problems,
        "accepted": off.call.ok,
        "typed": len(typed),
        "mistyped": len(wrong & typed),
        "idempotent": same(again, arguments),
        "stop": end.stop,
        "entered": bool(end.corrections) or not on.whole,
        "corrected_valid": not problems_of(end.arguments, tool) if on.whole else None,
        "corrected_accepted": end.ok if on.whole else None,
        "corrected_gold": _is_wanted(answer, call.name, end.arguments) if on.whole else None,
        "model_calls": end.model_calls,
        "applied": len(applied),
        # The number of the correction after which the tool took the call.
        "needed": applied[-1] if end.rescued else 0,
        "extra_tokens": on.tokens,
        "extra_cost": on.cost,
    }


def _typed_names(arguments: Mapping[str, Any], tool: ToolSpec) -> set[str]:
    # Given a type, or values, or branches.
    members = tool.schema.get("properties") if isinstance(tool.schema, Mapping) else None
    if not isinstance(members, Mapping):
        return set()
    return {name for name in arguments if members.get(name) not in (None, True, {})}


def _is_wanted(answer: BaseAnswer, name: str, arguments: Mapping[str, Any]) -> bool | None:
    # None if the case has no target.
    case = answer.question.case
    if case.target is None:
        return None
    call = (name, dict(arguments))
    return any(not differences_between(call, want, case.tools) for want in case.target)


def _judged_rules(answer: BaseAnswer, call: AnswerCall, policy: Policy) -> Rescues:
    # With the values it made right and wrong.
    reading, case = call.readings[policy], answer.question.case
    if case.target is None or not any(step.stage == "coerce" for step in reading.steps):
        return ()
    judged = judge_rescues(
        answer.raw, [reading], [reading.arguments], case.target, None, case.tools, DEFAULT_MATCHERS
    )
    return tuple(row for row in judged if row[0].startswith("coerce."))
