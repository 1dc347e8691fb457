"""Plans as an arm of an experiment: the same case, answered by one plan instead of by calls."""

# How it works. The arm's model is sent the planning prompt, and the steps of the plan that it
# writes are read as calls, so that the case's own target judges them, under every policy, as it
# judges the calls of other arms. What is lost between a plan and calls is then a difference of two
# arms. A step that waits for another one's result has a template in the place of a value, and
# only a run of the plan could put it in.

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...arguments.rjson.repair import repair
from ...core.errors import BadTaskPlan
from ...core.values import read_strict, write_canonical
from ...formats.base import Signs
from ...formats.json.source import BodySource
from ...formats.prompt.wording import Wordings
from ...formats.results import TOOL_RESPONSE, ToolResult
from ...parser.foreign.protocol import ForeignProtocol
from .request import INSTRUCTIONS, find_plan

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
            {
                "type": "tool-call",
                "toolCallId": step.step_id,
                "toolName": step.tool,
                "input": write_canonical(dict(step.parameters)),
            }
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
        {
            "step_id": f"step_{number}",
            "tool": name,
            "depends_on": [],
            "parameters": read_strict(arguments_json),
        }
        for number, (name, arguments_json) in enumerate(calls, 1)
    ]
    return write_canonical({"steps": steps})


# The one protocol of this arm.
PLAN = PlanProtocol()
