"""Questions that are not cases: a plan, a correction.

They are asked and recorded like any other, as messages sent as they stand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..core.errors import BadOptions
from ..evals.cases.case import Case
from ..runner.exchange.types import Model, Request
from .arms import FACTORS, NATIVE, arm_of, check_names
from .plan import Plan, plan_one

_ALLOWED = ("temperature",)


def plan_messages_as_they_are(
    name: str,
    messages: Iterable[Mapping[str, Any]],
    alias: str,
    model: Model,
    settings: Mapping[str, Any],
) -> Plan:
    """Return the plan of one question whose messages are sent unchanged, without tools.

    name: of the case that it is recorded as. settings: temperature, seed and sampling parameters.
    Raises BadOptions for a factor that means nothing here, and BadPlan for an unknown name.
    """
    own = model.params or ()
    strange = [n for n in settings if n in FACTORS and n not in _ALLOWED and n not in own]
    if strange:
        raise BadOptions(
            "this question has no prompt of a format, so that the factor means nothing",
            got=strange[0],
            expected=f"{', '.join(_ALLOWED)}, or a sampling parameter such as max_tokens",
        )
    check_names(settings, own)
    case = Case(name, [dict(message) for message in messages])
    params = {k: v for k, v in settings.items() if k not in FACTORS and k != "seed"}
    arm = arm_of(NATIVE, settings)
    return plan_one(case, alias, model, arm, params, seed=settings.get("seed", 0), typed=settings)


def question_of(plan: Plan) -> Request:
    """Return the one question of such a plan."""
    return plan.requests[plan.items[0].key]
