"""Running a plan: steps run as soon as their dependencies are done, a few at a time. Each call is
coerced, and corrected where its tool refuses it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ...core.errors import BadOptions, BadTaskPlan
from ...core.toolspec import ToolsLike, tool_specs
from ..correction import CorrectedCall, Feedback, arun_call
from ..correction.call import OnEvent
from ..correction.drive import Callback, Messages
from .plan import Step, TaskPlan, resolve

Status = Literal["done", "failed", "skipped"]


@dataclass(frozen=True, slots=True)
class StepRun:
    """One step and its outcome.

    Attributes:
        status: "done". "failed", with `reason`. "skipped", because a step that it depends on is not
            done, which `reason` names.
        parameters: with templates resolved, None if they were not.
        call: with every attempt and correction, None if the tool was not called.
        seconds: from its start.
    """

    step: Step
    status: Status
    reason: str = ""
    value: Any = None
    parameters: Mapping[str, Any] | None = None
    call: CorrectedCall | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class PlanRun:
    """A plan that was run: a StepRun for each step, in the plan's order.

    >>> from toolparse_lab.middleware.plans import read_plan, run_plan
    >>> plan = read_plan([{"step_id": "a", "tool": "add", "parameters": {"n": "7"}}])
    >>> schema = {"properties": {"n": {"type": "integer"}}}
    >>> tools = [{"name": "add", "parameters": schema}]
    >>> run = run_plan(plan, tools, {"add": lambda n: n + 1})
    >>> print(run, run.results)
    a add: done {'a': 8}
    """

    plan: TaskPlan
    steps: tuple[StepRun, ...]

    @property
    def ok(self) -> bool:
        """True if every step is done."""
        return all(step.status == "done" for step in self.steps)

    @property
    def results(self) -> dict[str, Any]:
        """Step id -> result, of the steps that are done."""
        return {run.step.step_id: run.value for run in self.steps if run.status == "done"}

    def __getitem__(self, step_id: str) -> StepRun:
        return {run.step.step_id: run for run in self.steps}[step_id]

    def __str__(self) -> str:
        return "\n".join(
            f"{run.step.step_id} {run.step.tool}: {run.status}"
            + (f" ({run.reason})" if run.reason else "")
            for run in self.steps
        )


async def arun_plan(
    plan: TaskPlan,
    tools: ToolsLike,
    runnable: Mapping[str, Callable[..., Any]],
    *,
    inputs: Mapping[str, Any] | None = None,
    correct: Callback | None = None,
    feedback: Feedback | None = None,
    messages: Messages = (),
    concurrency: int = 5,
    sleep: Callable[[float], Any] = asyncio.sleep,
    on_event: OnEvent | None = None,
) -> PlanRun:
    """Run a plan to its end.

    Args:
        tools: the definitions, as anywhere.
        runnable: name -> function, awaitable function, or the `later` of an `HttpTool`.
        inputs: of a workflow, each checked by its type.
        correct, feedback, messages, sleep, on_event: as for `run_call`.
        concurrency: steps that run at once.

    A step that fails skips those that depend on it, and no others. Raises BadOptions for a tool
    without a function, BadTaskPlan for inputs that do not fit.
    """
    if isinstance(concurrency, bool) or not isinstance(concurrency, int) or concurrency < 1:
        raise BadOptions(
            "concurrency is how many steps run at once", got=concurrency, expected=">= 1"
        )
    specs = {tool.name: tool for tool in tool_specs(tools)}
    for step in plan.steps:
        for names in (specs, runnable):
            if step.tool not in names:
                raise BadOptions(
                    f"step {step.step_id!r} needs a tool that is not there",
                    got=step.tool,
                    expected=", ".join(names),
                )
    bound = plan.bound(inputs or {})
    slots = asyncio.Semaphore(concurrency)
    tasks: dict[str, asyncio.Task[StepRun]] = {}

    async def run(step: Step) -> StepRun:
        results: dict[str, Any] = {"inputs": bound} if bound else {}
        for name in step.depends_on:
            before = await tasks[name]
            if before.status != "done":
                return StepRun(step, "skipped", f"{name} {before.status}")
            results[name] = before.value
        async with slots:
            started = time.perf_counter()
            try:
                parameters = resolve(dict(step.parameters), results)
            except BadTaskPlan as e:
                return StepRun(step, "failed", str(e))
            call = await arun_call(
                specs[step.tool], parameters, runnable[step.tool], correct=correct,
                feedback=feedback, messages=messages, sleep=sleep, on_event=on_event,
                step_id=step.step_id, agent=step.agent,
            )  # fmt: skip
            seconds = time.perf_counter() - started
            if call.ok:
                return StepRun(step, "done", "", call.value, parameters, call, seconds)
            return StepRun(step, "failed", call.error, None, parameters, call, seconds)

    # Each step waits for its dependencies, so the order in which tasks are made does not matter.
    for step in plan.steps:
        tasks[step.step_id] = asyncio.ensure_future(run(step))
    try:
        return PlanRun(plan, tuple(await asyncio.gather(*tasks.values())))
    finally:
        for task in tasks.values():
            task.cancel()


def run_plan(
    plan: TaskPlan,
    tools: ToolsLike,
    runnable: Mapping[str, Callable[..., Any]],
    *,
    inputs: Mapping[str, Any] | None = None,
    correct: Callback | None = None,
    feedback: Feedback | None = None,
    messages: Messages = (),
    concurrency: int = 5,
    sleep: Callable[[float], Any] = time.sleep,
    on_event: OnEvent | None = None,
) -> PlanRun:
    """`arun_plan` for code that is not async, `sleep` included."""
    return asyncio.run(
        arun_plan(
            plan, tools, runnable, inputs=inputs, correct=correct, feedback=feedback,
            messages=messages, concurrency=concurrency, sleep=sleep, on_event=on_event,
        )
    )  # fmt: skip
