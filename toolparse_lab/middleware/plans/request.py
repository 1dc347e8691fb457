"""Plans that a model writes: the planning prompt, and the plan read from its answer, with the fault
in it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ...arguments.rjson.repair import repair
from ...arguments.schema import coerce
from ...arguments.schema.validate import validate
from ...core.errors import BadTaskPlan
from ...core.toolspec import ToolsLike, ToolSpec, tool_specs
from ...core.types import Policy, Problem
from ...core.values import read_strict, write_canonical
from ...entry.foreign.protocol import ForeignProtocol
from ...formats.base import Signs
from ...formats.json.source import BodySource
from ...formats.prompt.type_rules import JSON_TYPE_RULES
from ...formats.prompt.wording import Wordings
from ...formats.results import TOOL_RESPONSE, ToolResult
from ...runner.exchange.types import Completion, Request
from ..flow import Flow
from .plan import Step, TaskPlan, read_plan, references_in

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
    >>> answer = read_plan_answer(text, [{"name": "f"}])
    >>> answer.plan.steps[0].tool, answer.fault
    ('f', None)
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


# Plans as an arm of an experiment: the same case, answered by one plan instead of by calls.
#
# How it works. The arm's model is sent the planning prompt, and the steps of the plan that it
# writes are read as calls, so that the case's own target judges them, under every policy, as it
# judges the calls of other arms. What is lost between a plan and calls is then a difference of two
# arms. A step that waits for another one's result has a template in the place of a value, and
# only a run of the plan could put it in.
_WORDING = f"""\
{INSTRUCTIONS}
Tools:
{{{{tools_json}}}}
{{{{#type_rules}}}}

Rules about types:
{{{{type_rules}}}}
{{{{/type_rules}}}}
"""


_WORDINGS = Wordings("plan", (("plain", _WORDING),))


class PlanText:
    """The methods of a tool-call protocol over the text of a plan."""

    def format_tools(self, tools: Any, template: Callable[[str], str]) -> str:
        """Return the system prompt for some tools."""
        return template(json.dumps(list(tools), ensure_ascii=False))

    def format_tool_call(self, tool_call: Any) -> str:
        """Return a call as a plan of one step."""
        return _written([(tool_call["toolName"], tool_call["input"])])

    def format_tool_response(self, tool_result: Any) -> str:
        """Return a result in its own words: a plan has no place for one."""
        return TOOL_RESPONSE.write(ToolResult.of(tool_result), (), False)

    def parse_generated_text(self, text: str, tools: Any, options: Any) -> list[dict[str, Any]]:
        """Return the steps of the plan in a text as calls, next to the text around it.

        Raises BadTaskPlan for a plan that cannot be read. A text without one is text.
        """
        try:
            plan, part = find_plan(text)
        except BadTaskPlan as fault:
            if fault.kind != "no_plan":
                raise
            return [{"type": "text", "text": text}]
        before, _, after = text.rpartition(part)
        calls = [
            {"type": "tool-call", "toolCallId": step.step_id, "toolName": step.tool}
            | {"input": write_canonical(dict(step.parameters))}
            for step in plan.steps
        ]
        return [{"type": "text", "text": before}, *calls, {"type": "text", "text": after}]

    def extract_tool_call_segments(self, text: str, tools: Any) -> list[str]:
        """Return the text of each step as written, so that each call has a place of its own."""
        try:
            plan, part = find_plan(text)
        except BadTaskPlan:
            return []
        repaired = repair(part)
        base = "/steps" if isinstance(repaired.value, dict) else ""
        paths = [f"{base}/{i}" for i in range(len(plan.steps))]
        source = BodySource(part, repaired.edits, [(0, path) for path in paths])
        spans = [source.span_of(0, path) for path in paths]
        return [span.of(part) for span in spans if span is not None]

    def create_stream_parser(self, tools: Any, options: Any) -> Callable[[Iterable[str]], Any]:
        """Return a reader of chunks: a plan is read once it is whole."""
        return lambda chunks: self.parse_generated_text("".join(chunks), tools, options)


@dataclass(frozen=True, slots=True, eq=False)
class PlanProtocol(ForeignProtocol):
    """The arm `plan`: its prompt asks for a plan, whose steps are its calls.

    >>> import toolparse_lab as tp
    >>> from toolparse_lab.middleware.plans import PLAN
    >>> text = '{"steps": [{"step_id": "a", "tool": "f", "parameters": {"n": 1}}]}'
    >>> [call.name for call in tp.parse(text, PLAN, [{"name": "f"}]).calls]
    ['f']
    """

    id: str = "plan"
    subject: Any = field(default_factory=PlanText)
    title: str = "a plan, whose steps are the calls"
    wordings: Wordings = _WORDINGS

    def join_calls(self, calls: Sequence[str]) -> str:
        """Return written plans as one plan of all their steps."""
        steps = [step for call in calls for step in find_plan(call)[0].steps]
        return _written([(s.tool, write_canonical(dict(s.parameters))) for s in steps])

    def signs_of_attempts(self) -> Signs:
        """Return the head of a plan."""
        return Signs(openers=(r"""["']steps["']\s*:""",))


def _written(calls: Iterable[tuple[str, str]]) -> str:
    # A call is a name and its arguments' JSON.
    steps = [
        Step(f"step_{number}", name, read_strict(arguments_json)).to_dict()
        for number, (name, arguments_json) in enumerate(calls, 1)
    ]
    return write_canonical({"steps": steps})


# The one protocol of this arm.
PLAN = PlanProtocol()
