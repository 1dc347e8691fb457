"""The question to a model that wrote wrong arguments, and the arguments read from its answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from ...arguments.rjson.repair import repair
from ...core.errors import CorrectionFailed
from ...core.toolspec import ToolSpec
from ...core.types import ParseOptions
from ...core.values import read_strict, write_canonical
from ...entry.parse import parse_text
from ...formats.prompt.type_rules import JSON_TYPE_RULES
from .failure import Issue

CorrectionWording: TypeAlias = Literal["plain", "go-orchestrator"]
_MOST_BODY = 4_000  # characters of an error's body that a model is shown
_FENCE = "```"


@dataclass(frozen=True, slots=True)
class CorrectionContext:
    """A call that was refused, for whoever corrects it.

    Attributes:
        arguments: as the tool got them.
        error, body: its message.
        issues: the fields it named.
        tool: with its schema.
        messages: the user's request and the messages before it, OpenAI messages. () where an
            experiment leaves them out.
        number: of this correction, from 1.
        step_id, agent: of a plan.
    """

    tool: ToolSpec
    arguments: Mapping[str, Any]
    error: str
    body: str = ""
    issues: tuple[Issue, ...] = ()
    messages: tuple[Mapping[str, Any], ...] = ()
    number: int = 1
    step_id: str = ""
    agent: str = ""

    @property
    def schema(self) -> Any:
        """The tool's JSON Schema, None if it has none."""
        return self.tool.schema

    def prompt(self, wording: CorrectionWording = "plain") -> str:
        """Return the correction prompt: ours, or the Go orchestrator's."""
        return _orchestrator_prompt(self) if wording == "go-orchestrator" else _plain_prompt(self)


def correction_messages(
    context: CorrectionContext, wording: CorrectionWording = "plain"
) -> tuple[dict[str, Any], ...]:
    """Return the messages to send: the earlier ones, and the prompt as the last thing the user
    says.
    """
    before = tuple(dict(message) for message in context.messages)
    return (*before, {"role": "user", "content": context.prompt(wording)})


def _plain_prompt(context: CorrectionContext) -> str:
    lines = [f"The call of {context.tool.name} was refused.", "", f"Error: {context.error.strip()}"]
    body = context.body.strip()
    if body and body not in context.error:
        lines += ["Details:", body[:_MOST_BODY]]
    if context.issues:
        lines += ["", "Wrong fields:"]
        lines += [
            f"- {i.path or 'the arguments'}: {i.message or i.keyword or 'refused'}"
            for i in context.issues
        ]
    return (
        "\n".join(lines)
        + f"""

Arguments that were sent:
{_indented(context.arguments)}

Schema of the arguments:
{_indented(context.schema)}

Rules about types:
{JSON_TYPE_RULES.render()}

Correct the wrong fields and leave all others as they are. Answer with the whole JSON object of \
the arguments and nothing else."""
    )


def _orchestrator_prompt(context: CorrectionContext) -> str:
    # The orchestrator's agent and capability are the step's agent and the tool's name.
    return f"""The following tool call failed with a type error.

Tool: {context.agent or context.tool.name}
Capability: {context.tool.name}
Error: {context.error}

Original Parameters (INCORRECT):
{_indented(context.arguments)}

Expected Parameter Schema:
{_indented(context.schema)}

Please provide CORRECTED parameters as a JSON object.
Remember:
- Numbers must NOT be in quotes: "lat": 35.6897 (correct) vs "lat": "35.6897" (wrong)
- Booleans must NOT be in quotes: "enabled": true (correct) vs "enabled": "true" (wrong)
- Only strings should be in quotes

Respond with ONLY the corrected JSON parameters object, no explanation."""


def _indented(value: Any) -> str:
    try:
        return json.dumps(json.loads(write_canonical(value)), indent=2, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return str(value)


# the answer


def read_correction(raw: str, tool: ToolSpec) -> dict[str, Any]:
    """Return the arguments in a model's answer to a correction.

    These are a JSON object with any fence, prose or reasoning around it, or a call of the tool in
    any format.

    Damaged JSON is repaired as in any call. An object that wraps the arguments (`{"name": …,
    "arguments": …}`, `{"parameters": …}`) is unwrapped where the tool has no parameters of these
    names. Raises CorrectionFailed.

    >>> import toolparse_lab as tp
    >>> from toolparse_lab.middleware.correction import read_correction
    >>> tool = tp.ToolSpec.of({"name": "f"})
    >>> read_correction('Here it is: {"n": 7}', tool)
    {'n': 7}
    """
    parsed = parse_text(raw, "auto", [tool], ParseOptions(coerce="none"))
    if len(parsed.calls) == 1 and parsed.calls[0].ok and parsed.calls[0].name == tool.name:
        return dict(parsed.calls[0].arguments)
    thoughts = [segment.span for segment in parsed.segments if segment.kind == "reasoning"]
    text = raw
    for span in reversed(thoughts):
        text = text[: span.start] + text[span.end :]
    text = text.strip()
    start = text.find("{")
    after = text[start:] if start >= 0 else ""
    fenced = [part.partition("\n")[2] for part in text.split(_FENCE)[1::2]]
    # Fences, then from the first brace on.
    for candidate in (*fenced, after[: after.rfind("}") + 1], after):
        candidate = candidate.strip()
        if not candidate.startswith("{"):
            continue
        try:
            value = read_strict(candidate)
        except (ValueError, RecursionError):
            value = repair(candidate).value  # None where something would have to be invented
        if not isinstance(value, dict):
            continue
        # A wrapper has no name of the tool's own parameters.
        schema = tool.schema if isinstance(tool.schema, Mapping) else {}
        declared = schema.get("properties") or {}
        for name in ("arguments", "parameters", "args", "input"):
            inner = value.get(name)
            others = set(value) - {name, "name", "tool", "type", "id"}
            if isinstance(inner, dict) and not others and name not in declared:
                return inner
        return value
    raise CorrectionFailed(
        "the correction holds no JSON object", got=raw.strip()[:200] or "an empty answer"
    )


@dataclass(frozen=True, slots=True)
class Corrected:
    """A correction with its price, where a callback knows it."""

    arguments: Mapping[str, Any]
    tokens: int = 0
    cost: float = 0.0
    raw: str = field(default="", repr=False)


def read_paid(raw: str, tool: ToolSpec, tokens: int, cost: float) -> Corrected:
    """Return the correction in a model's answer. Raises CorrectionFailed, with its price."""
    try:
        return Corrected(read_correction(raw, tool), tokens, cost)
    except CorrectionFailed as e:
        e.tokens, e.cost = tokens, cost
        raise
