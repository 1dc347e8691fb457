"""What operators want an alarm on: signs that an answer did not arrive as the model wrote it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from ...core.types import ParseResult
from ...core.types.server import ESCAPED, IN_CONTENT, NO_CALL, ONLY_REASONED
from ...entry.capture import Captured
from ...entry.parse import parse, parse_text, stream
from ...formats.registry import protocol_of, protocols
from ...formats.surface import delimiters_of
from ...parser.recognition.attempts import find_attempt, parameter_names
from .answers import LiveAnswer

ALARMS: Mapping[str, str] = {
    "calls_dropped": "the model wrote a call, and the response holds it nowhere",
    "markup_in_content": "a call, or a part of its marks, was left in the content",
    "markup_in_reasoning": "a call, or a part of its marks, is in the reasoning",
    "everything_lost": "tokens were counted, and neither text nor reasoning nor a call came",
    "stream_differs": "the pieces of a stream say something else than the whole",
}
"""Alarm -> what it means."""
_PROTOCOL = "auto"
_MARK = re.compile(r"[<\[].{4}")


def alarms_of(answer: LiveAnswer) -> list[str]:
    """Return the alarms of an answer, in the order of `ALARMS`. A failed one has none."""
    if not answer.completion.ok:
        return []
    raised = set(_alarms(answer))
    return [alarm for alarm in ALARMS if alarm in raised]


def _alarms(answer: LiveAnswer) -> Iterator[str]:
    captured, tools = answer.captured, answer.case.tools
    result = parse(captured, _PROTOCOL, tools)
    codes = {problem.code for problem in result.all_problems()}
    found = result.blame.code
    left = bool({IN_CONTENT, ESCAPED} & codes) or found == "markup_in_content"
    if NO_CALL in codes or (answer.offers and not left and found == "dropped_by_server"):
        yield "calls_dropped"
    if answer.offers:
        if left or _has_markup(captured.content, result):
            yield "markup_in_content"
        if _has_markup(captured.reasoning, result):
            yield "markup_in_reasoning"
    if ONLY_REASONED in codes:
        yield "markup_in_reasoning"
    if not (captured.raw if not captured.native else captured.content or captured.tool_calls) and (
        not captured.reasoning and (answer.completion.completion_tokens or 0) > 1
    ):
        # One token may be the end of the turn alone.
        yield "everything_lost"
    if captured.stream and (_server_differs(captured, answer.final) or _we_differ(answer, result)):
        yield "stream_differs"


def _has_markup(text: str, result: ParseResult) -> bool:
    if not text:
        return False
    if any(mark in text for mark in _marks()):
        return True
    names = [tool.name for tool in result.tools]
    return find_attempt(text, names, (), parameter_names(result.tools)) is not None


@cache
def _marks() -> tuple[str, ...]:
    # Those that no prose has: in angle or square brackets.
    marks = {mark for id in protocols() for mark in delimiters_of(protocol_of(id), {})}
    return tuple(sorted(mark for mark in marks if _MARK.match(mark)))


def _we_differ(answer: LiveAnswer, whole: ParseResult) -> bool:
    # The pieces as they came, fed to the stream parser.
    captured = answer.captured
    if captured.native or captured.token_text or len(captured.chunks) < 2:
        return False
    parser = stream(_PROTOCOL, answer.case.tools)
    for kind, text in captured.chunks:
        if kind == "content":
            parser.feed(text)
    batch = parse_text(whole.raw, _PROTOCOL, answer.case.tools)
    return bool(_said(parser.close()) != _said(batch))


def _said(result: ParseResult) -> Any:
    return result.text, [(call.name, call.arguments_json, call.status) for call in result.calls]


def _server_differs(captured: Captured, final: Captured | None) -> bool:
    # The whole answer that some APIs send at the end, against its pieces; and what the model wrote,
    # token by token, against the calls that were sent.
    if final is not None and _sent(final) != _sent(captured):
        return True
    if not captured.token_text:
        return False
    return bool(parse(captured, _PROTOCOL).blame.code == "changed_by_server")


def _sent(captured: Captured) -> Any:
    functions = [call.get("function") or {} for call in captured.tool_calls]
    calls = [(function.get("name"), function.get("arguments")) for function in functions]
    return captured.content, calls
