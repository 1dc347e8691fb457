"""Plans that a model writes: the planning prompt, and the plan read from its answer, with the fault
in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from ...arguments.rjson.repair import repair
from ...arguments.schema import coerce
from ...arguments.schema.validate import validate
from ...core.errors import BadTaskPlan
from ...core.toolspec import ToolsLike, ToolSpec, tool_specs
from ...core.types import Policy, Problem
from ...core.values import write_canonical
from ...formats.prompt.type_rules import JSON_TYPE_RULES
from ...runner.exchange.types import Completion, Request
from ..flow import Flow
from .plan import TaskPlan, read_plan
from .templates import references_in

# The planning prompt, before its tools.
INSTRUCTIONS = """\
You plan calls of tools. Answer with one JSON object and nothing else:
{"steps": [{"step_id": "step_1", "tool": "NAME", "depends_on": [], "parameters": {}}]}

A step runs when the steps in its depends_on are done. A part of their results is written
as a template, such as "{{step_1.location.lat}}" or "{{step_1.items[0]}}". A template
alone in its quotes keeps the type of the part.
"""

PlanFault = Literal["no_answer", "no_plan", "bad_step", "unknown_tool", "wrong_type"]


@dataclass(frozen=True, slots=True)
class PlanAnswer:
    """A model's plan as it was read.

    Attributes:
        plan: None if none could be read.
        fault: the first that was found, None for none. A plan with a "wrong_type" is a plan, since
            coercion or its tool's refusal may mend it.
        problems: step id -> problems of its parameters under the tool's schema, templates left out.

    >>> from toolparse_lab.middleware.plans import read_plan_answer
    >>> answer = read_plan_answer('{"steps": [{"step_id": "a", "tool": "f"}]}', [{"name": "f"}])
    >>> answer.plan.steps[0].tool, answer.fault
    ('f', None)
    """

    raw: str
    plan: TaskPlan | None = None
    fault: PlanFault | None = None
    message: str = ""
    problems: Mapping[str, tuple[Problem, ...]] | None = None


def plan_messages(
    request: str, tools: ToolsLike, *, type_rules: bool = True
) -> tuple[dict[str, Any], ...]:
    """Return the messages that ask a model for a plan.

    Args:
        request: what the user asks for.
        type_rules: layer 1 of type safety, the rules about JSON types.

    >>> from toolparse_lab.middleware.plans import plan_messages
    >>> [message["role"] for message in plan_messages("Weather in Oslo?", [{"name": "f"}])]
    ['system', 'user']
    """
    specs = tool_specs(tools)
    lines = [INSTRUCTIONS, "Tools:", *(write_canonical(spec.to_dict()) for spec in specs)]
    if type_rules:
        lines += ["", "Rules about types:", JSON_TYPE_RULES.render()]
    return ({"role": "system", "content": "\n".join(lines)}, {"role": "user", "content": request})


def plan_from_request(
    request: str,
    tools: ToolsLike,
    question: Request,
    *,
    type_rules: bool = True,
    policy: Policy = "safe",
) -> Flow[PlanAnswer]:
    """Run a flow that asks a model for a plan.

    It yields one Request and returns a PlanAnswer.

    Args:
        question: whose model and parameters are taken. Its messages are replaced.

    >>> import toolparse_lab as tp
    >>> from toolparse_lab.middleware.plans import plan_from_request
    >>> from toolparse_lab.runner.exchange.types import Request
    >>> question = Request(tp.Model("openai/m"), "m", ())
    >>> flow = plan_from_request("Weather in Oslo?", [{"name": "f"}], question)
    >>> len(next(flow).messages)
    2
    """
    messages = plan_messages(request, tools, type_rules=type_rules)
    completion: Completion | None = yield replace(question, messages=messages, tools=())
    if completion is None or not completion.ok:
        kind = "" if completion is None else completion.error_kind or "other"
        return PlanAnswer("", fault="no_answer", message=kind or "not recorded")
    return read_plan_answer(completion.raw, tools, policy=policy)


def read_plan_answer(raw: str, tools: ToolsLike, *, policy: Policy = "safe") -> PlanAnswer:
    """Return the plan in a model's text, strict or damaged JSON.

    There may be any fence, prose or reasoning around it.

    Args:
        policy: of coercion, under which the parameters' problems are told. "none" tells those of
            the model's own types.

    Raises nothing for any text.

    >>> from toolparse_lab.middleware.plans import read_plan_answer
    >>> text = 'Sure: {"steps": [{"step_id": "a", "tool": "f"}]}'
    >>> read_plan_answer(text, [{"name": "f"}]).plan.steps[0].step_id
    'a'
    """
    specs = {tool.name: tool for tool in tool_specs(tools)}
    try:
        plan, _ = find_plan(raw, list(specs.values()))
    except BadTaskPlan as fault:
        return PlanAnswer(raw, None, fault.kind, str(fault))
    problems = {
        step.step_id: complaints
        for step in plan.steps
        if (complaints := _problems(step.parameters, specs[step.tool], policy))
    }
    message = "; ".join(f"{step_id}: {p[0].message}" for step_id, p in problems.items())
    return PlanAnswer(raw, plan, "wrong_type" if problems else None, message, problems)


def find_plan(raw: str, tools: ToolsLike = None) -> tuple[TaskPlan, str]:
    """Return the plan in a model's text, and the part of the text that is the plan.

    tools: those that there are, None for no check. Raises BadTaskPlan with the first fault of
    something that has steps, else of the kind "no_plan".
    """
    fault = BadTaskPlan("the answer holds no plan", got=raw[:200], kind="no_plan")
    for part, value in _values(raw):
        try:
            return read_plan(value, tools), part
        except BadTaskPlan as e:
            # The first complaint about something that has steps says more than "no plan".
            if fault.kind == "no_plan":
                fault = e
    raise fault


def _problems(parameters: Mapping[str, Any], tool: ToolSpec, policy: Policy) -> tuple[Problem, ...]:
    # Without templates, whose values are unknown.
    coerced = coerce(dict(parameters), tool.schema_json, policy).value
    problems = validate(coerced, tool.schema_json)
    templates = [f"/{name}" for name, v in parameters.items() if any(references_in(v))]
    return tuple(
        p
        for p in problems
        if p.severity == "error" and not any(p.path.startswith(path) for path in templates)
    )


def _values(raw: str) -> Sequence[tuple[str, Any]]:
    # With their texts, the likeliest first. What a model thought before is not what it says.
    text = raw.rpartition("</think>")[2]
    parts = [part.partition("\n")[2] for part in text.split("```")[1::2]]
    for opener, closer in (("{", "}"), ("[", "]")):
        start, end = text.find(opener), text.rfind(closer)
        if 0 <= start < end:
            parts.append(text[start : end + 1])
    values = []
    for part in parts:
        repaired = repair(part.strip())
        if repaired.ok and isinstance(repaired.value, (dict, list)):
            values.append((part.strip(), repaired.value))
    return values
