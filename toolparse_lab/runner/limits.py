"""Limits and options of a run."""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias, TypedDict, cast

from ..core.errors import BadOptions, near
from .exchange.summary import RunEvent, Summary
from .exchange.types import Completion, Request

Complete: TypeAlias = Callable[[Request], Awaitable[Completion]]


class RunLimits(TypedDict, total=False):
    """Limits and options of one run.

    Args:
        max_cost: stop before more is spent. In US dollars; calls in flight are reserved.
        max_calls: stop before more calls are made. Retries count.
        deadline: stop after this time. In seconds.
        fresh: ask again what is recorded already.
        max_age: ask again where the recorded answer is older, in seconds.
        progress: None shows a bar where someone can see it.
        on_event: takes each event.
        backoff: seconds before the first retry, doubled each time.
        give_up_after: failures in a row after which a model is asked no more, None for never.
        complete: is called in place of litellm.
    """

    max_cost: float | None
    max_calls: int | None
    deadline: float | None
    fresh: bool
    max_age: float | None
    progress: bool | None
    on_event: Callable[[RunEvent], None] | None
    backoff: float
    give_up_after: int | None
    complete: Complete | None


# Each of them may be None, for no limit.
_NUMBERS = ("max_cost", "max_calls", "deadline", "max_age", "backoff", "give_up_after")
_COUNTS = ("max_calls", "give_up_after")


def check_limits(limits: Mapping[str, Any]) -> None:
    """Raise BadOptions for a limit that does not exist, and for one that is not a number.

    The type checker finds most of these. Calls from notebooks and plan files pass no type checker.
    """
    names = RunLimits.__annotations__
    for name, value in limits.items():
        if name not in names:
            raise BadOptions(
                "a run has no such limit",
                got=name,
                expected=", ".join(names),
                hint=near(name, names) or "factors and sampling parameters go to lab.plan",
            )
        if name not in _NUMBERS or value is None:
            continue
        # `not value >= 0` and not `value < 0`, so that NaN is refused, too.
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
            raise BadOptions(f"{name} is a number", got=repr(value), expected="0 or more, or None")
        if name in _COUNTS and value != math.inf and value != int(value):
            raise BadOptions(f"{name} is a whole number", got=value, expected="0 or more, or None")


def remaining_limits(limits: RunLimits, used: Summary, began: float) -> RunLimits | None:
    """Return the limits of the rounds to come, or None if there is no time left for any.

    used: by the rounds before. began: by `time.monotonic`, when the first did.
    """
    spent = {"max_cost": used.cost, "max_calls": used.calls, "deadline": time.monotonic() - began}
    remaining: dict[str, Any] = {**limits}
    for name, amount in spent.items():
        if remaining.get(name) is not None:
            remaining[name] -= amount
    deadline = remaining.get("deadline")
    return None if deadline is not None and deadline <= 0 else cast(RunLimits, remaining)
