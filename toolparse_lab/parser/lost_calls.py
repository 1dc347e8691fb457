"""Calls that an answer lost on its way: the response says that there is one, or the reasoning holds
it, and the answer has none.
"""

# How it works. Nothing here makes a call. A response whose parts do not go together gets a problem
# that says so, and a call of the server's that is less than what the model wrote becomes a draft.
# All of it is looked at once, at the end, and only where an answer has no call, or an empty one
# with text beside it; an answer with its calls costs a comparison or two.

from __future__ import annotations

from collections.abc import Callable
from html import unescape
from typing import TypeAlias

from ..core.toolspec import ToolSpec
from ..core.types import ParseResult, Problem, Segment, Span, ToolCall, Withdrawn
from ..core.types.server import BESIDE_TEXT, ESCAPED, IN_CONTENT, NO_CALL, ONLY_REASONED
from ..formats.registry import protocols
from .log import Log
from .setting import Setting
from .unclosed import as_draft

Reader: TypeAlias = Callable[[str, str], ParseResult]
"""Reads a text by the protocol of an id."""

# Finish reasons, in the words of providers, of an answer that ends with a call.
CALL_ENDS = frozenset({"tool_calls", "tool-calls", "tool_call", "tool_use", "function_call"})
_CUT_ENDS = frozenset(
    {"length", "max_tokens", "max_output_tokens", "model_length", "max_length", "incomplete"}
)
# Formats whose calls a server has read.
_OF_SERVER = frozenset({"openai_json", "openai_strict"})


def lost_by_response(
    result: ParseResult, finish_reason: str | None, reasoning: str, reader: Reader
) -> list[Problem]:
    """Return what the words of a provider beside an answer without calls say of a lost one."""
    reason = (finish_reason or "").lower()
    problems: list[Problem] = []
    if reason in CALL_ENDS:
        message = f"the response ends with {reason} and holds no call"
        problems.append(Problem("read", NO_CALL, "error", message))
    silent = bool(reasoning.strip()) and reason not in _CUT_ENDS and not result.text.strip()
    if silent and _written_calls(reasoning, result.tools, result.protocol, reader):
        problems.append(_only_reasoned(None))
    return problems


def find_lost_calls(log: Log, raw: str, setting: Setting, reader: Reader) -> None:
    """Look through a finished text for a call that is lost in it.

    Its marks are escaped, it stands in reasoning with nothing after it or in the content of a
    server's message, or it is one of a server's without arguments, which the text beside it has.
    """
    tools, protocol = setting.specs, setting.protocol.id
    if log.calls:
        if protocol == "auto" or protocol in _OF_SERVER:
            _doubt_empty_calls(log, raw, tools, reader)
        return
    if "&lt;" in raw or "&quot;" in raw:
        _find_escaped(log, raw, tools, protocol, reader)
    if protocol in _OF_SERVER:
        _find_in_content(log, raw, tools, reader)
    if len(log.segments) > 1 or (log.segments and log.segments[0].kind != "text"):
        _find_in_reasoning(log, raw, tools, protocol, reader)


def _find_in_content(log: Log, raw: str, tools: tuple[ToolSpec, ...], reader: Reader) -> None:
    """Say that the content of a server's message holds a call, where its list holds none."""
    text = _text_of(log.segments, raw)
    calls = _written_calls(text, tools, "auto", reader) if text.strip() else ()
    if any(call.readable for call in calls):
        message = "the message has no calls, and its content holds one"
        log.problems.append(Problem("read", IN_CONTENT, "error", message))


def _find_in_reasoning(
    log: Log, raw: str, tools: tuple[ToolSpec, ...], protocol: str, reader: Reader
) -> None:
    """Say where a call stands in closed reasoning that nothing follows."""
    thoughts = [s for s in log.segments if s.kind == "reasoning" and s.closed]
    if not thoughts or _text_of(log.segments, raw).strip():
        return
    for thought in thoughts:
        inside = thought.body or thought.span
        calls = _written_calls(thought.said(raw), tools, protocol, reader)
        if calls:
            span = calls[0].segment.span.shift(inside.start)
            log.problems.append(_only_reasoned(inside if thought.escaped else span))
            return


def _find_escaped(
    log: Log, raw: str, tools: tuple[ToolSpec, ...], protocol: str, reader: Reader
) -> None:
    """Say where a call stands whose marks are escaped, as in HTML."""
    for segment in log.texts:
        text = segment.said(raw)
        calls = _written_calls(unescape(text), tools, protocol, reader) if "&" in text else ()
        if any(call.readable for call in calls):
            message = "the text holds a call whose marks are escaped"
            log.problems.append(Problem("scan", ESCAPED, "error", message, "", segment.span))


def _only_reasoned(span: Span | None) -> Problem:
    message = "the only call stands in the reasoning, and nothing follows it"
    return Problem("read", ONLY_REASONED, "error", message, "", span)


def _doubt_empty_calls(log: Log, raw: str, tools: tuple[ToolSpec, ...], reader: Reader) -> None:
    """Make drafts of a server's calls without arguments, where the text beside has them."""
    empty = [i for i, c in enumerate(log.calls) if _is_empty(c)]
    text = _text_of(log.segments, raw) if empty else ""
    if not text.strip():
        return
    others = _written_calls(text, tools, "auto", reader)
    names = {c.name for c in others if c.arguments_json != "{}"}
    withdrawn: list[ToolCall] = []
    for i in empty:
        call = log.calls[i]
        if call.name in names:
            message = "the call has no arguments, and the text beside it holds one that has"
            log.calls[i] = as_draft(call, BESIDE_TEXT, message)
            withdrawn.append(log.calls[i])
    if withdrawn and not log.silent:
        log.events.append(Withdrawn(Span(len(raw), len(raw)), tuple(withdrawn)))


def _is_empty(call: ToolCall) -> bool:
    return call.ok and call.arguments_json == "{}" and call.protocol in _OF_SERVER


def _text_of(segments: list[Segment], raw: str) -> str:
    return "".join([s.said(raw) for s in segments if s.kind == "text"])


def _written_calls(
    text: str, tools: tuple[ToolSpec, ...], protocol: str, reader: Reader
) -> tuple[ToolCall, ...]:
    """Return the calls that a text holds in its own format or any other, prose about one aside."""
    names = {tool.name for tool in tools}
    for name in dict.fromkeys(("auto", protocol)):
        if name in _OF_SERVER or (name != "auto" and name not in protocols()):
            continue
        calls = [c for c in reader(text, name).calls if c.readable or c.name in names]
        if calls:
            return tuple(calls)
    return ()
