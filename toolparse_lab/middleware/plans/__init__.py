"""Plans of a task: calls of tools that depend on each other, written by hand or by a model."""

from __future__ import annotations

from .plan import Input, PlanRun, Step, StepRun, TaskPlan, arun_plan, read_plan, resolve, run_plan
from .request import (
    PLAN,
    PlanAnswer,
    PlanProtocol,
    plan_from_request,
    plan_messages,
    read_plan_answer,
)

__all__ = [
    "PLAN", "Input", "PlanAnswer", "PlanProtocol", "PlanRun", "Step", "StepRun", "TaskPlan",
    "arun_plan", "plan_from_request", "plan_messages", "read_plan", "read_plan_answer", "resolve",
    "run_plan",
]  # fmt: skip
