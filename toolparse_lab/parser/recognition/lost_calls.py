"""Calls that an answer lost: escaped, in reasoning alone, or beside a server's empty ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from html import unescape
from typing import TypeAlias

from ...core.toolspec import ToolSpec
from ...core.types import ParseResult, Problem, Span, ToolCall, Withdrawn
from ...core.types.call import is_held_back
from ...core.types.server import BESIDE_TEXT, ESCAPED, IN_CONTENT, NO_CALL, ONLY_REASONED
from ...core.types.spans import Severity
from ...formats.registry import protocols
from ..resolve import as_draft
from ..state import Log, Setting

Reader: TypeAlias = Callable[[str, str], ParseResult]  # (text, id of its protocol) -> result
# Finish reasons, in the words of providers, of an answer that ends with a call.
CALL_ENDS = frozenset(
    {"tool_calls", "tool-calls", "tool_call", "tool_use", "function_call",
     "malformed_function_call", "unexpected_tool_call", "malformed_tool_use"}
)  # fmt: skip
_CUT_ENDS = frozenset(
    {"length", "max_tokens", "max_output_tokens", "model_length", "max_length", "incomplete"}
)
# Formats whose calls a server has read.
OF_SERVER = frozenset({"openai_json", "openai_strict"})
_BESIDE = "the call has no arguments, and the text beside it holds one that has"
_ONLY_REASONED = "the only call is in the reasoning, and nothing follows it"


def doubt_empty_calls(log: Log, raw: str, tools: tuple[ToolSpec, ...], read: Reader) -> None:
    """Make a server's calls without arguments drafts where the text next to them has arguments."""
    empty = [
        i
        for i, c in enumerate(log.calls)
        if c.ok and c.arguments_json == "{}" and c.protocol in OF_SERVER
    ]
    text = _text_in(log, raw) if empty else ""
    if text.strip():
        others = _written_calls(text, tools, "auto", read)
        names = {c.name for c in others if c.arguments_json != "{}"}
        doubted = [i for i in empty if log.calls[i].name in names]
        make_drafts(log, doubted, len(raw), BESIDE_TEXT, _BESIDE)


def make_drafts(
    log: Log,
    places: Sequence[int],
    at: int,
    code: str,
    message: str,
    severity: Severity = "error",
) -> None:
    """Turn calls of the log into drafts. at: the offset in raw where that was decided."""
    for i in places:
        log.calls[i] = as_draft(log.calls[i], code, message, severity)
    if places and not log.silent:
        log.events.append(Withdrawn(Span(at, at), tuple([log.calls[i] for i in places])))


def lost_by_response(
    result: ParseResult, finish_reason: str | None, reasoning: str, reader: Reader
) -> list[Problem]:
    """Return problems if the provider's finish reason or reasoning shows that a call was lost."""
    reason = (finish_reason or "").lower()
    problems: list[Problem] = []
    if reason in CALL_ENDS:
        message = f"the response ends with {reason} and holds no call"
        problems.append(Problem("read", NO_CALL, "error", message))
    silent = bool(reasoning.strip()) and reason not in _CUT_ENDS and not result.text.strip()
    if silent and _written_calls(reasoning, result.tools, result.protocol, reader):
        problems.append(Problem("read", ONLY_REASONED, "error", _ONLY_REASONED))
    return problems


def lost_calls(log: Log, raw: str, setting: Setting, read: Reader) -> Iterator[Problem]:
    """Yield problems for calls in escaped text, in a server's content, or in reasoning alone."""
    tools, protocol = setting.specs, setting.protocol.id
    if "&lt;" in raw or "&quot;" in raw:
        for segment in log.texts:
            text = segment.said(raw)
            calls = _written_calls(unescape(text), tools, protocol, read) if "&" in text else ()
            if any(call.readable for call in calls):
                message = "the text holds a call whose marks are escaped"
                yield Problem("scan", ESCAPED, "error", message, "", segment.span)
    if protocol not in OF_SERVER and all(s.kind == "text" for s in log.segments):
        return
    text = _text_in(log, raw)
    if text.strip():
        # In the content of a server's message, whose list has none.
        calls = _written_calls(text, tools, "auto", read) if protocol in OF_SERVER else ()
        if any(call.readable for call in calls):
            message = "the message has no calls, and its content holds one"
            yield Problem("read", IN_CONTENT, "error", message)
        return
    for thought in log.segments:
        # In closed reasoning that nothing follows.
        if thought.kind == "reasoning" and thought.closed:
            calls = _written_calls(thought.said(raw), tools, protocol, read)
            if calls:
                inside = thought.body or thought.span
                span = inside if thought.escaped else calls[0].segment.span.shift(inside.start)
                yield Problem("read", ONLY_REASONED, "error", _ONLY_REASONED, "", span)
                return


def _text_in(log: Log, raw: str) -> str:
    return "".join([s.said(raw) for s in log.segments if s.kind == "text"])


def _written_calls(
    text: str, tools: tuple[ToolSpec, ...], protocol: str, reader: Reader
) -> tuple[ToolCall, ...]:
    # In the text's own format or any other, prose about a call aside.
    names = {tool.name for tool in tools}
    for name in dict.fromkeys(("auto", protocol)):
        if name in OF_SERVER or (name != "auto" and name not in protocols()):
            continue
        found = [c for c in reader(text, name).calls if not is_held_back(c)]
        calls = [c for c in found if c.readable or c.name in names]
        if calls:
            return tuple(calls)
    return ()
