"""`result.why()`: one sentence a call, from what the result records."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .types import ParseResult, ToolCall

_STATUS = {
    "unknown_tool": "was read, but names no known tool",
    "truncated": "is cut off and must not be executed",
    "undecodable": "could not be read",
    "draft": "is not finished yet",
}


def explain_result(result: ParseResult) -> str:
    """One line a call, or one line that says why there is none."""
    if result.calls:
        return "\n".join(explain_call(c) for c in result.calls)
    if not result.raw.strip():
        return "The answer is empty."
    kinds = {s.kind for s in result.segments}
    if "reasoning" in kinds and not result.text.strip():
        return "The answer is reasoning and nothing else."
    notes = [shown(p.message) for p in result.problems]
    if notes:
        return f"No call in the format {result.protocol}: {notes[0]}."
    said = f"No call in the format {result.protocol}; all of it is text."
    named = min(((at, t.name) for t in result.tools if (at := _named(result.raw, t.name)) >= 0), default=None)
    if named is None:
        return said
    return (
        f"{said} The tool name {shown(named[1])!r} stands in it at {named[0]}; tp.detect says what formats it may be."
    )


def _named(raw: str, name: str) -> int:
    """Where a tool's name stands as a word of its own, or -1."""
    found = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", raw)
    return found.start() if found else -1


def explain_call(call: ToolCall) -> str:
    """What happened to one call and why.

    >>> import toolparse_lab as tp
    >>> print(tp.parse('<tool_call>{"name": "f", "arguments": {"a": 1,}}</tool_call>', "hermes").why())
    Call 0, f, is ok: 1 repair (rjson.trailing-comma).
    """
    what = f"Call {call.index}, {shown(call.name) or 'without a name'}, "
    if call.status == "ok":
        what += "is ok" if call.valid else "is readable, but its arguments break the schema"
    else:
        what += _STATUS[call.status]
    causes: list[str] = []
    if call.edits:
        causes.append(_counted("repair", [e.rule for e in call.edits]))
    for stage, word in (("read", "reading"), ("coerce", "coercion")):
        rules = [s.rule for s in call.steps if s.stage == stage]
        if rules:
            causes.append(_counted(word, rules))
    causes.extend(
        shown(p.message) + (f" at {shown(p.path)}" if p.path else "") for p in call.problems if p.severity != "info"
    )
    return what + (": " + "; ".join(causes) if causes else "") + "."


def shown(text: str) -> str:
    """Model text for a sentence: what a terminal would act on is written as an escape."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _counted(word: str, rules: list[str]) -> str:
    counts = Counter(rules)
    listed = ", ".join(f"{r} × {n}" if n > 1 else r for r, n in counts.items())
    return f"{len(rules)} {word}{'s' if len(rules) > 1 else ''} ({listed})"
