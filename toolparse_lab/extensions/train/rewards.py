"""A trainer's reward for tool calls that are right, valid and need no repair."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from ...core.errors import BadOptions
from ...core.toolspec import tool_specs
from ...core.types import ParseResult
from ...core.types.call import is_held_back, is_repeat
from ...entry.capture import capture
from ...entry.parse import parse_text
from ...evals.cases.case import Case
from ...evals.cases.matchers import DEFAULT_MATCHERS, Matchers
from ...evals.cases.target import is_wish
from ...evals.scoring.score import score_completion
from ...formats.like import ProtocolLike
from ...runner.exchange.types import Completion
from .probabilities import judge_arguments

PARTS: Mapping[str, str] = {
    "right": "1 if the calls are the wanted ones, or rightly none",
    "arguments": "the share of the arguments, wanted and written, that are right",
    "valid": "the share of the calls that satisfy their schema",
    "unrepaired": "1 if no call needed a repair, another reading or a coercion",
}
"""Part of a reward -> what it is. Each is from 0 to 1."""
WEIGHTS: Mapping[str, float] = {"right": 0.7, "valid": 0.2, "unrepaired": 0.1}
RewardFunction: TypeAlias = Callable[..., list[float | None]]


def reward(
    protocol: ProtocolLike = "auto",
    weights: Mapping[str, float] | None = None,
    *,
    tools: str = "tools",
    target: str = "target",
    matchers: Matchers = DEFAULT_MATCHERS,
) -> RewardFunction:
    """Return a reward function for the trainers of TRL.

    It takes `completions`, texts or lists of messages, and the columns of the dataset as lists, and
    returns a number from 0 to 1 for each: the mean of its parts by their weights. A part that
    cannot be scored, such as `right` without a target, is left out. Without any part, the reward is
    None.

    Args:
        protocol: the format of the completions.
        weights: part -> how much it counts, by default `WEIGHTS`. The parts are those of `PARTS`.
        tools, target: the columns of the tools and of the wanted calls, each a list or its JSON.
            A target has the form that cases have; [] where no call is right.
        matchers: how arguments are compared with the target.

    Raises BadOptions for a part that does not exist or a weight that is no number.

    >>> judge = reward("hermes")
    >>> call = '<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>'
    >>> wanted = [{"name": "f", "arguments": {"a": 1}}]
    >>> tool = {"name": "f", "parameters": {"properties": {"a": {"type": "integer"}}}}
    >>> judge([call, "I cannot."], tools=[[tool]] * 2, target=[wanted] * 2)
    [1.0, 0.0]
    """
    shares = dict(WEIGHTS if weights is None else weights)
    if unknown := sorted(shares.keys() - PARTS.keys()):
        raise BadOptions(
            "no part of a reward has this name", got=", ".join(unknown), expected=", ".join(PARTS)
        )
    if not shares or not all(
        isinstance(x, (int, float)) and not isinstance(x, bool) and x >= 0 for x in shares.values()
    ):
        raise BadOptions("a weight is a number", got=shares, expected="0 or more, for each part")

    def judge(completions: Sequence[Any], **columns: Any) -> list[float | None]:
        every = _column(columns, tools, len(completions))
        wanted = _column(columns, target, len(completions))
        rewards = []
        for completion, own_tools, own_target in zip(completions, every, wanted, strict=True):
            case = Case("", "", tool_specs(own_tools), own_target)
            raw, reader = _text_of(completion, protocol)
            parts = _parts_of(raw, parse_text(raw, reader, case.tools), case, matchers)
            judged = {name: x for name, x in parts.items() if x is not None and shares.get(name)}
            total = sum(shares[name] for name in judged)
            rewards.append(
                sum(shares[name] * x for name, x in judged.items()) / total if total else None
            )
        return rewards

    judge.__name__ = judge.__qualname__ = f"tool_calls_{getattr(protocol, 'id', protocol)}"
    return judge


def _column(columns: Mapping[str, Any], name: str, size: int) -> list[Any]:
    values = columns.get(name)
    if values is None:
        return [None] * size
    if not isinstance(values, (list, tuple)) or len(values) != size:
        raise BadOptions(
            f"the column {name!r} has one value for each completion",
            got=f"{len(values)} values" if isinstance(values, (list, tuple)) else type(values),
            expected=f"{size} values",
        )
    # Datasets keep what differs from row to row as JSON.
    try:
        return [json.loads(value) if isinstance(value, str) else value for value in values]
    except ValueError as e:
        raise BadOptions(
            f"a text of the column {name!r} is no JSON", got=e, expected="a list, or its JSON"
        ) from None


def _text_of(completion: Any, protocol: ProtocolLike) -> tuple[str, ProtocolLike]:
    # Of a conversation, the first answer: what the prompt asked for.
    if isinstance(completion, str):
        return completion, protocol
    messages = [completion] if isinstance(completion, Mapping) else list(completion)
    first = next((m for m in messages if m.get("role", "assistant") == "assistant"), None)
    if first is None:
        return "", protocol
    answer = capture({"choices": [{"message": first}]})
    return answer.raw, "openai_json" if answer.native else protocol


def _parts_of(
    raw: str, result: ParseResult, case: Case, matchers: Matchers
) -> dict[str, float | None]:
    calls = [call for call in result.calls if not (is_repeat(call) or is_held_back(call))]
    score = score_completion(case, Completion("", raw), result, matchers)
    success = score.success if score is not None else None
    # Without a call there is nothing to judge but its absence.
    absent = None if case.target is None else float(not case.target)
    return {
        "right": None if success is None else float(success),
        "arguments": _share_right(result, case, matchers),
        "valid": sum(call.valid for call in calls) / len(calls) if calls else absent,
        "unrepaired": float(result.verdict == "clean") if calls else absent,
    }


def _share_right(result: ParseResult, case: Case, matchers: Matchers) -> float | None:
    if case.target is None:
        return None
    judged = judge_arguments(result.calls, case, matchers)
    wanted = sum(_leaves(want.get("arguments", {})) for want in case.target)
    count = max(wanted, sum(len(call.arguments) for call in result.calls if call.ok), len(judged))
    if count:
        return sum(judged.values()) / count
    return float(bool(result.calls) == bool(case.target))


def _leaves(value: Any) -> int:
    # A choice of values is one value.
    if isinstance(value, Mapping) and not is_wish(value):
        return sum(map(_leaves, value.values()))
    if isinstance(value, list):
        return sum(map(_leaves, value))
    return 1
