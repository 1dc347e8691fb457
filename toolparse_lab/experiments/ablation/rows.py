"""Recorded answers and paths as frames: a row per answer, a row per call, a row per correction."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ...arguments.schema import coerce
from ...core.toolspec import ToolSpec
from ...core.types import Policy
from ...core.values import pointer_tokens, same
from ...evals.cases.matchers import DEFAULT_MATCHERS
from ...evals.scoring.match import agree, differences_between
from ...evals.scoring.rescues import Rescues, judge_rescues
from ...middleware.correction import CorrectedCall
from .answers import AnswerCall, BaseAnswer
from .paths import Path
from .recording import Recorded
from .tools import problems_of

# How it works. A rung of an answer is that of all its calls: an answer of two calls of which one is
# refused has not been taken. A rung is None where it is not known: nothing is recorded, a
# correction of one of its calls is missing, or the case has no target (gold alone).

QUESTION = ("case_id", "model", "protocol", "trial", "l1")
RUNGS = ("parsed", "valid", "accepted", "gold")
ANSWER_COLUMNS = (
    *QUESTION, "policy", "l3", *RUNGS, "reason", "prompt_tokens", "tokens", "cost", "latency",
    "model_calls", "extra_tokens", "extra_cost", "extra_latency", "tool_calls", "pauses",
)  # fmt: skip
CALL_COLUMNS = (
    *QUESTION, "answer", "call", "tool", "policy", "valid", "gold", "accepted", "typed",
    "mistyped", "steps", "rules", "idempotent", "stop", "entered", "corrected_valid",
    "corrected_accepted", "corrected_gold", "model_calls", "applied", "needed", "extra_tokens",
    "extra_cost",
)  # fmt: skip
CORRECTION_COLUMNS = (
    *QUESTION, "answer", "call", "policy", "number", "status", "reason", "edits", "collateral",
    "tokens", "cost", "latency", "key",
)  # fmt: skip
_FLAGS = (
    *RUNGS, "idempotent", "corrected_valid", "corrected_accepted", "corrected_gold", "entered",
)  # fmt: skip


def answers_frame(recorded: Recorded) -> pd.DataFrame:
    """Return one row per answer × policy × layer 3 off and on."""
    rows = []
    for i, answer in enumerate(recorded.answers):
        for policy in recorded.settings.policies:
            for l3 in (False, True):
                paths = [recorded.paths.get((i, j, policy, l3)) for j in range(len(answer.calls))]
                rows.append(_answer_row(answer, policy, l3, paths))
    return _frame(rows, ANSWER_COLUMNS)


def calls_frame(recorded: Recorded) -> pd.DataFrame:
    """Return one row per call × policy: the effect of layer 2, and the effect of layer 3 then."""
    rows = []
    for i, answer in enumerate(recorded.answers):
        for j, call in enumerate(answer.calls):
            for policy in call.readings:
                paths = tuple(recorded.paths.get((i, j, policy, l3)) for l3 in (False, True))
                place = {**_question(answer), "answer": i, "call": j}
                rows.append({**place, **_call_row(answer, call, policy, *paths)})
    return _frame(rows, CALL_COLUMNS)


def corrections_frame(recorded: Recorded) -> pd.DataFrame:
    """Return one row per correction of a call × policy, in the order in which they were asked."""
    rows = []
    for (i, j, policy, _), path in recorded.paths.items():
        place = {**_question(recorded.answers[i]), "answer": i, "call": j, "policy": policy}
        rows += [{**place, **row} for row in _correction_rows(path)]
    return _frame(rows, CORRECTION_COLUMNS)


def _correction_rows(path: Path) -> Iterator[dict[str, Any]]:
    # Where nobody could be asked, a correction is used up without an answer.
    for correction, node in zip(path.call.corrections, path.nodes, strict=False):
        yield {
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


def _frame(rows: list[dict[str, Any]], columns: tuple[str, ...]) -> pd.DataFrame:
    # Flags may be unknown.
    frame = pd.DataFrame(rows, columns=list(columns))
    flags = {name: "boolean" for name in _FLAGS if name in frame}
    return frame.astype(flags)


def _question(answer: BaseAnswer) -> dict[str, Any]:
    question = answer.question
    return {
        "case_id": question.case.id,
        "model": question.model,
        "protocol": question.protocol,
        "trial": question.trial,
        "l1": question.on,
    }


# rungs


@dataclass(frozen=True, slots=True)
class Rungs:
    """The rungs of the ladder. Each True, False, or None if it is unknown."""

    parsed: bool | None
    valid: bool | None
    accepted: bool | None
    gold: bool | None


def _rungs(answer: BaseAnswer, paths: list[Path | None]) -> Rungs:
    # paths: of each call, or None for one of a tool that was not offered, which nothing can mend.
    if answer.parsed is None:
        return Rungs(None, None, None, None)
    graded = answer.question.case.target is not None
    if not answer.parsed or None in paths:
        return Rungs(answer.parsed, False, False, False if graded else None)
    ends = [path for path in paths if path is not None]
    if not all(path.whole for path in ends):
        return Rungs(True, None, None, None)
    calls = [path.call for path in ends]
    return Rungs(
        True,
        all(not problems_of(call.arguments, call.tool) for call in calls),
        all(call.ok for call in calls),
        _is_gold(answer, calls) if graded else None,
    )


def _is_gold(answer: BaseAnswer, calls: list[CorrectedCall]) -> bool:
    # In any order.
    case = answer.question.case
    pairs = [(call.tool.name, dict(call.arguments)) for call in calls]
    return agree(pairs, case.target or [], case.tools)


def _answer_row(
    answer: BaseAnswer, policy: Policy, l3: bool, paths: list[Path | None]
) -> dict[str, Any]:
    rungs = _rungs(answer, paths)
    is_open = bool(answer.parsed) and rungs.valid is None
    ends = [path for path in paths if path is not None]
    return {
        **_question(answer),
        "policy": policy,
        "l3": l3,
        **{name: getattr(rungs, name) for name in RUNGS},
        "reason": "a correction is missing" if is_open else answer.reason,
        **_base_costs(answer),
        "model_calls": sum(path.call.model_calls for path in ends),
        "extra_tokens": sum(_tokens(path) for path in ends),
        "extra_cost": sum(_cost(path) for path in ends),
        "extra_latency": sum(_number(node.latency, 0) for path in ends for node in path.nodes),
        "tool_calls": sum(path.call.tool_calls for path in ends),
        "pauses": sum(sum(path.call.pauses) for path in ends),
    }


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


def _number(value: float | None, otherwise: float = math.nan) -> float:
    return otherwise if value is None else float(value)


def _tokens(path: Path) -> int:
    return sum(correction.tokens for correction in path.call.corrections)


def _cost(path: Path) -> float:
    return sum(correction.cost for correction in path.call.corrections)


# calls


def _call_row(
    answer: BaseAnswer, call: AnswerCall, policy: Policy, off: Path | None, on: Path | None
) -> dict[str, Any]:
    # off, on: its paths without and with layer 3, None for a tool that was not offered.
    row: dict[str, Any] = {"tool": call.name, "policy": policy}
    arguments, tool = call.arguments(policy), call.tool
    row["steps"] = sum(step.stage == "coerce" for step in call.readings[policy].steps)
    row["rules"] = _judged_rules(answer, call, policy)
    row["gold"] = _is_wanted(answer, call.name, arguments)
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
        "extra_tokens": _tokens(on),
        "extra_cost": _cost(on),
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
