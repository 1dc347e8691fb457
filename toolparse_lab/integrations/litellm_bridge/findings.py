"""The findings of an answer's parse, as the `provider_specific_fields` of its message."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...core.errors import ToolparseError
from ...core.types import ParseResult, Problem
from ...core.types.spans import span_out
from ...middleware import Answer, CorrectedAnswer, ToolCallMiddleware, Turn
from ...parser.parse import parse

FIELD = "toolparse"
"""the member of `provider_specific_fields` that is ours"""

Findings = dict[str, Any]


def findings_of(answer: Answer, turn: Turn, blame: str = "") -> Findings | None:
    """Return the findings about an answer beside its message, ready for JSON.

    None if there are none: for a text in which no call was tried, or an answer passed through.

    verdict: of the whole answer. problems: of the text, and of each call (`call`: its number in the
    text, from 0, `tool`: its name). blame: whether the model or the server is at fault, where the
    response tells. left_out: tools of the request that only a provider could run.
    """
    result = answer.result
    if result is None:
        return None
    if not (result.calls or answer.problems or blame or turn.left_out):
        return None
    findings: Findings = {"verdict": result.verdict, "problems": _problems(result, answer)}
    if blame:
        findings["blame"] = blame
    if turn.left_out:
        findings["left_out"] = [_tool_out(tool) for tool in turn.left_out]
    return {FIELD: findings}


def with_feedback(findings: Findings | None, corrected: CorrectedAnswer) -> Findings:
    """Findings with what layer 3 did about the calls that the schema refused.

    feedback: how often the model was asked again, the tokens, US dollars and seconds of that, and
    for each call its number among the message's tool calls, from 0, and whether it is valid now.
    """
    members = (findings or {}).get(FIELD, {})
    return {FIELD: {**members, "feedback": corrected.to_dict()}}


def blame_of(response: Any, middleware: ToolCallMiddleware, turn: Turn) -> str:
    """One sentence on whether the model or the server's parser is at fault. '' where the response
    does not tell.

    response: a choice of litellm's, or the chunks of a stream, with calls that the server read
    itself or with the tokens that the model wrote.
    """
    try:
        return parse(response, middleware.protocol, turn.tools, request=turn.asked).blame
    except ToolparseError:  # a shape that holds no answer says nothing of a fault
        return ""


def without_findings(messages: Iterable[Any]) -> list[Any]:
    """Return the messages of a conversation without everything found in their answers: it is for
    programs, and no provider knows it. Messages that hold none are the same objects.
    """
    return [_without(message) if _has_findings(message) else message for message in messages]


def _has_findings(message: Any) -> bool:
    """Return True for an answer of the bridge that came back as a message."""
    if isinstance(message, Mapping):
        fields = message.get("provider_specific_fields")
    else:
        fields = getattr(message, "provider_specific_fields", None)
    return isinstance(fields, Mapping) and FIELD in fields


def _without(message: Any) -> Any:
    """Return a copy of such a message, as a dict, without the findings."""
    copied = dict(message) if isinstance(message, Mapping) else message.model_dump()
    fields = {k: v for k, v in copied.pop("provider_specific_fields").items() if k != FIELD}
    # What litellm puts there itself is only of use where it says something.
    if any(value is not None for value in fields.values()):
        copied["provider_specific_fields"] = fields
    return copied


def _problems(result: ParseResult, answer: Answer) -> list[dict[str, Any]]:
    """Return the problems of a result as dicts, those of the text first."""
    if not answer.problems:
        return []
    whose: list[tuple[int | None, str | None, Problem]] = [
        (None, None, problem) for problem in result.problems
    ]
    for index, call in enumerate(result.calls):
        whose += [(index, call.name, problem) for problem in call.problems]
    return [
        {
            "code": problem.code,
            "severity": problem.severity,
            "message": problem.message,
            "path": problem.path,
            "span": span_out(problem.span),
            "call": index,
            "tool": name,
        }
        for index, name, problem in whose
    ]


def _tool_out(tool: Any) -> dict[str, Any]:
    """Return the type and the name of a tool that dropped out."""
    kind = tool.get("type")
    inner = tool.get(kind)
    name = tool.get("name") or (inner.get("name") if isinstance(inner, dict) else None)
    return {"type": kind, "name": name} if name else {"type": kind}
