"""Plans of a task: calls of tools that depend on each other, written by hand or by a model."""

from __future__ import annotations

from .plan import Input, Step, TaskPlan, read_plan, resolve
from .request import (
    PLAN,
    PlanAnswer,
    PlanProtocol,
    plan_from_request,
    plan_messages,
    read_plan_answer,
)
from .run import PlanRun, StepRun, arun_plan, run_plan

__all__ = [
    "PLAN",
    "Input",
    "PlanAnswer",
    "PlanProtocol",
    "PlanRun",
    "Step",
    "StepRun",
    "TaskPlan",
    "arun_plan",
    "plan_from_request",
    "plan_messages",
    "read_plan",
    "read_plan_answer",
    "resolve",
    "run_plan",
]
