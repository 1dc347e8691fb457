"""A plan: steps that call tools, with the dependencies of each, and the inputs of a workflow."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any, Literal

from ...arguments.schema.validate import validate
from ...core.errors import BadOptions, BadTaskPlan, near
from ...core.toolspec import ToolsLike, tool_specs
from ...core.values import nodes, write_canonical
from ..correction import CorrectedCall, Feedback, arun_call
from ..correction.call import OnEvent
from ..correction.drive import Callback, Messages

# A template has no braces inside, and its length is bounded, so that the search is linear.
_TEMPLATE = re.compile(r"\{\{\s{0,20}([^{}\s][^{}]{0,400}?)\s{0,20}\}\}")
_PIECE = re.compile(r"\[(\d{1,9})\]|\.?([^.\[\]]+)")
_MOST_LEVELS = 200


@dataclass(frozen=True, slots=True)
class Reference:
    """One template. text: as written, with braces. step: the first word. path: the others."""

    text: str
    step: str
    path: tuple[str, ...]

    @classmethod
    def of(cls, match: re.Match[str]) -> Reference:
        step, *path = [piece[1] or piece[2] for piece in _PIECE.finditer(match[1])] or [match[1]]
        return cls(match[0], step.strip(), tuple(path))


def references_in(value: Any) -> Iterator[Reference]:
    """Yield every template in the texts of a JSON-like value, at any depth."""
    for node in nodes(value):
        if isinstance(node, str):
            yield from map(Reference.of, _TEMPLATE.finditer(node))


def resolve(value: object, results: Mapping[str, Any]) -> Any:
    """Return a value with its templates replaced by parts of `results`.

    `results` has one result for each step.

    A string that is nothing but one template becomes the part itself, with its type. Elsewhere a
    string goes in as it is, and anything else as JSON. Raises BadTaskPlan for one that leads
    nowhere.

    >>> resolve({"a": "{{s.n}}", "b": "n is {{s.n}}"}, {"s": {"n": 7}})
    {'a': 7, 'b': 'n is 7'}
    """
    return _resolved(value, results, 0)


def _resolved(value: Any, results: Mapping[str, Any], level: int) -> Any:
    # A value that nests too deep has no templates.
    if level > _MOST_LEVELS:
        return value
    if isinstance(value, str):
        # A string that is one template becomes the value itself.
        whole = _TEMPLATE.fullmatch(value.strip())
        if whole is not None:
            return _part(Reference.of(whole), results)

        def written(match: re.Match[str]) -> str:
            part = _part(Reference.of(match), results)
            return part if isinstance(part, str) else write_canonical(part)

        return _TEMPLATE.sub(written, value)
    if isinstance(value, Mapping):
        return {name: _resolved(member, results, level + 1) for name, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [_resolved(item, results, level + 1) for item in value]
    return value


def _part(reference: Reference, results: Mapping[str, Any]) -> Any:
    if reference.step not in results:
        raise BadTaskPlan(
            "a template names a step without a result",
            got=reference.text,
            expected=", ".join(results) or "no step is done",
            code="unresolved-template",
        )
    part = results[reference.step]
    for token in reference.path:
        if isinstance(part, Mapping) and token in part:
            part = part[token]
        elif isinstance(part, (list, tuple)) and token.isascii() and token.isdigit():
            index = int(token)
            if index >= len(part):
                raise _missing(reference, token, f"{len(part)} items")
            part = part[index]
        else:
            names = ", ".join(map(str, part)) if isinstance(part, Mapping) else type(part).__name__
            raise _missing(reference, token, names)
    return part


def _missing(reference: Reference, token: str, expected: str) -> BadTaskPlan:
    return BadTaskPlan(
        f"a template leads nowhere: there is no {token!r}",
        got=reference.text,
        expected=expected,
        code="unresolved-template",
    )


_MOST_STEPS = 1000
_TYPES = {
    "string": "string", "number": "number", "float": "number", "float64": "number",
    "integer": "integer", "int": "integer", "int64": "integer", "boolean": "boolean",
    "bool": "boolean", "array": "array", "list": "array", "object": "object", "map": "object",
    "dict": "object",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Step:
    """One call of a plan.

    Attributes:
        step_id: its name, unlike all others.
        tool: the name of the tool.
        parameters: its arguments, with templates such as `{{step.path}}`.
        depends_on: the steps whose results they may use.
        agent: the owner of the tool, if there is one.
    """

    step_id: str
    tool: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    depends_on: tuple[str, ...] = ()
    agent: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the step as JSON."""
        record: dict[str, Any] = {
            "step_id": self.step_id,
            "tool": self.tool,
            "depends_on": list(self.depends_on),
            "parameters": dict(self.parameters),
        }
        return {**record, "agent": self.agent} if self.agent else record

    def to_orchestrator(self) -> dict[str, Any]:
        """Return the step as the Go orchestrator writes it: the tool as a capability."""
        return {
            "step_id": self.step_id,
            "agent_name": self.agent or self.tool,
            "depends_on": list(self.depends_on),
            "metadata": {"capability": self.tool, "parameters": dict(self.parameters)},
        }


@dataclass(frozen=True, slots=True)
class Input:
    """A typed input of a workflow.

    Attributes:
        type: of JSON Schema, or a word such as "float64".
    """

    type: str = "string"
    required: bool = False
    default: Any = None

    @classmethod
    def of(cls, x: Input | Mapping[str, Any] | str) -> Input:
        """Return an input from `{type, required, default}` or a type's name. Raises BadTaskPlan."""
        if isinstance(x, Input):
            return x
        if isinstance(x, str):
            x = {"type": x}
        if not isinstance(x, Mapping) or set(x) - {"type", "required", "default", "description"}:
            raise BadTaskPlan(
                "an input that cannot be read", got=x, expected="{type, required, default}"
            )
        kind = x.get("type", "string")
        if kind not in _TYPES:
            raise BadTaskPlan("an input has an unknown type", got=kind, expected=", ".join(_TYPES))
        return cls(kind, bool(x.get("required", False)), x.get("default"))

    @property
    def schema_json(self) -> str:
        """The schema of its values, as canonical JSON text."""
        return write_canonical({"type": _TYPES[self.type]})


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """Steps that fit together.

    Names differ, dependencies exist, none goes in a circle, templates use nothing but dependencies
    and inputs. Raises BadTaskPlan otherwise.
    """

    steps: tuple[Step, ...]
    inputs: Mapping[str, Input] = field(default_factory=dict)

    def __post_init__(self) -> None:
        by_id: dict[str, Step] = {}
        for step in self.steps:
            if step.step_id in by_id:
                raise BadTaskPlan("two steps have the same id", got=step.step_id)
            by_id[step.step_id] = step
        if "inputs" in by_id and self.inputs:
            raise BadTaskPlan("a step of a plan with inputs is not called 'inputs'", got="inputs")
        for step in self.steps:
            self._check_step(step, by_id)
        try:
            TopologicalSorter({name: s.depends_on for name, s in by_id.items()}).prepare()
        except CycleError as e:
            raise BadTaskPlan(
                "steps depend on each other in a circle", got=" → ".join(e.args[1])
            ) from None

    def _check_step(self, step: Step, by_id: Mapping[str, Step]) -> None:
        for name in step.depends_on:
            if name not in by_id:
                raise BadTaskPlan.unknown(
                    f"step {step.step_id!r} depends on a step that is not there", name, by_id
                )
        sources = {*step.depends_on, *(("inputs",) if self.inputs else ())}
        for reference in references_in(step.parameters):
            if reference.step not in sources:
                raise BadTaskPlan(
                    f"a template of step {step.step_id!r} names a step that it does not depend on",
                    got=reference.text,
                    expected=", ".join(sorted(sources)) or "a step of its depends_on",
                    hint=f"add {reference.step!r} to its depends_on"
                    if reference.step in by_id
                    else near(reference.step, sources),
                )

    def bound(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of the inputs, defaults filled in.

        Raises BadTaskPlan for one that is missing, of another type, or no input at all.
        """
        unknown = [name for name in values if name not in self.inputs]
        if unknown:
            raise BadTaskPlan(
                "the plan has no such input",
                got=unknown[0],
                expected=", ".join(self.inputs) or "no inputs",
                hint=near(unknown[0], self.inputs),
            )
        bound: dict[str, Any] = {}
        for name, spec in self.inputs.items():
            if name in values:
                if any(p.severity == "error" for p in validate(values[name], spec.schema_json)):
                    raise BadTaskPlan(
                        f"input {name!r} has another type",
                        got=values[name],
                        expected=_TYPES[spec.type],
                    )
                bound[name] = values[name]
            elif spec.required:
                raise BadTaskPlan("an input is missing", got=None, expected=f"{name} ({spec.type})")
            else:
                bound[name] = spec.default
        return bound

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON."""
        return {"steps": [step.to_dict() for step in self.steps]}


def read_plan(
    plan: TaskPlan | Mapping[str, Any] | Sequence[Mapping[str, Any]],
    tools: ToolsLike = None,
    *,
    inputs: Mapping[str, Input | Mapping[str, Any] | str] | None = None,
) -> TaskPlan:
    """Return a plan from JSON-like data.

    Pass `{steps: [{step_id, tool, depends_on, parameters}]}`, or a list of steps. The function also
    reads the Go orchestrator's shape (`metadata.{capability, parameters}`).

    Args:
        tools: those that there are, None for no check.
        inputs: name -> `{type, required, default}`.

    Raises BadTaskPlan, whose `kind` is "no_plan", "bad_step" or "unknown_tool".

    >>> read_plan([{"step_id": "a", "tool": "f"}]).steps[0].tool
    'f'
    """
    if isinstance(plan, TaskPlan):
        return plan
    steps = plan.get("steps") if isinstance(plan, Mapping) else plan
    if not isinstance(steps, Sequence) or isinstance(steps, (str, bytes)) or not steps:
        raise BadTaskPlan(
            "a plan has steps", got=plan, expected="{steps: [{step_id, tool}]}", kind="no_plan"
        )
    if len(steps) > _MOST_STEPS:
        raise BadTaskPlan("a plan of too many steps", got=len(steps), expected=f"{_MOST_STEPS}")
    every_step = tuple(_step(x, number) for number, x in enumerate(steps, 1))
    if tools is not None:
        names = [tool.name for tool in tool_specs(tools)]
        for step in every_step:
            if step.tool not in names:
                message = f"step {step.step_id!r} needs a tool that is not there"
                raise BadTaskPlan.unknown(message, step.tool, names, kind="unknown_tool")
    return TaskPlan(every_step, {name: Input.of(x) for name, x in (inputs or {}).items()})


def _step(x: Any, number: int) -> Step:
    # Of either shape: in the orchestrator's, a capability is the tool. `number` counts from
    # 1, and names a step that has no id.
    if not isinstance(x, Mapping):
        raise BadTaskPlan(f"step {number} is not an object", got=x)
    metadata = x.get("metadata")
    body: Mapping[Any, Any] = metadata if isinstance(metadata, Mapping) else x
    step_id = x.get("step_id", x.get("id", f"step_{number}"))
    if not _is_id(step_id):
        raise BadTaskPlan(f"the id of step {number} is a text", got=step_id)
    tool = body.get("capability") or body.get("tool") or body.get("name")
    if not isinstance(tool, str):
        raise BadTaskPlan(f"step {number} names no tool", got=dict(body))
    parameters = body.get("parameters", body.get("arguments"))
    if parameters is None:
        parameters = {}
    if not isinstance(parameters, Mapping):
        raise BadTaskPlan(f"the parameters of step {number} are not an object", got=parameters)
    depends_on = x.get("depends_on") or ()
    if isinstance(depends_on, str):
        depends_on = (depends_on,)
    elif not isinstance(depends_on, (list, tuple)) or not all(map(_is_id, depends_on)):
        raise BadTaskPlan(f"depends_on of step {number} is a list of step ids", got=depends_on)
    agent = str(x.get("agent_name") or x.get("agent") or "")
    return Step(str(step_id), tool, dict(parameters), tuple(map(str, depends_on)), agent)


def _is_id(x: Any) -> bool:
    # Models write numbers, too.
    return (isinstance(x, str) and x != "") or (isinstance(x, int) and not isinstance(x, bool))


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
