"""The sentences of `result.why()`, made from the records of the result."""

# Nothing is parsed again for an explanation: it can be given for a stored result as well, years
# later. Text of the model (names, paths, messages that quote it) goes through `printable`, since
# these sentences are printed to terminals. The functions take parts of a result, not the result,
# so that `result` can import them and they need not import it.

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from ..values.printable import printable
from .call import ToolCall
from .spans import Problem, Segment

_LONGEST_READING = 300  # characters of its arguments that are shown
_MOST_COPIED = 6  # values whose place in the request is told

# Status -> the first cause of a call that is not ok, behind "it".
_STATUS = {
    "unknown_tool": "was read, but names no known tool",
    "truncated": "is cut off and must not be executed",
    "undecodable": "could not be read",
    "draft": "is only shown and must not be executed",
    "echoed": "is an echo and must not be executed",
}


def explain_no_call(
    raw: str,
    protocol: str,
    segments: Iterable[Segment],
    problems: Sequence[Problem],
    tools: Iterable[str],
) -> str:
    """Return one sentence, or two, on why a text holds no call: the first reason that applies."""
    if not raw.strip():
        return "The answer is empty."
    if _only_reasoning(raw, segments):
        return "The answer is reasoning and nothing else."
    if problems:
        return f"No call in the format {protocol}: {printable(problems[0].message)}."

    sentence = f"No call in the format {protocol}; all of it is text."
    # A tool's name in the text is the sign of a call in another format.
    mentions = [(at, name) for name in tools if (at := _offset_of_name(raw, name)) >= 0]
    if not mentions:
        return sentence
    at, name = min(mentions)
    return (
        f"{sentence} The tool name {printable(name)!r} stands in it at {at}; "
        "tp.detect says what formats it may be."
    )


def _only_reasoning(raw: str, segments: Iterable[Segment]) -> bool:
    reasons = False
    for segment in segments:
        if segment.kind == "reasoning":
            reasons = True
        elif segment.kind == "text" and segment.said(raw).strip():
            return False
    return reasons


def _offset_of_name(raw: str, name: str) -> int:
    match = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", raw)
    return match.start() if match else -1


def explain_call(call: ToolCall) -> str:
    """Return one sentence on the outcome to a call and why: its verdict, then the causes."""
    name = printable(call.name) or "without a name"
    sentence = f"Call {call.index}, {name}, is {call.verdict}"
    causes = _reasons(call) + _changes(call) + _complaints(call)
    if causes:
        sentence += ": " + "; ".join(causes)
    sentence += "".join(f". It may be {line}" for line in explain_readings(call))
    copied = explain_sources(call)
    return f"{sentence}. {copied}" if copied else f"{sentence}."


def explain_sources(call: ToolCall) -> str:
    """Return a sentence on the values that are in the request, and where. '' if there are none."""
    sources = call.origins.sources or {}
    phrases = [
        f"`{printable(path.removeprefix('/'))}` was copied from {places[0]}"
        for path, places in sources.items()
        if path and places
    ]
    if not phrases:
        return ""
    more = len(phrases) - _MOST_COPIED
    rest = f"; and {more} more" if more > 0 else ""
    return f"{'; '.join(phrases[:_MOST_COPIED])}{rest}."


def explain_readings(call: ToolCall) -> list[str]:
    """Return the possible readings of a refused call, the nearest first, a line each."""
    lines: list[str] = []
    for reading in call.readings:
        arguments = printable(reading.arguments_json[:_LONGEST_READING])
        more = " …" if len(reading.arguments_json) > _LONGEST_READING else ""
        edits = ", ".join(f"{e.rule} at {e.span.start}" for e in reading.edits) or "no edit"
        why = f"; {printable(reading.why)}" if reading.why else ""
        name = printable(reading.name) or "without a name"
        lines.append(f"{name} {arguments}{more} (cost {reading.cost}: {edits}{why})")
    return lines


def _reasons(call: ToolCall) -> list[str]:
    if call.status != "ok":
        return [f"it {_STATUS[call.status]}"]
    return [] if call.valid else ["its arguments break the schema"]


def _changes(call: ToolCall) -> list[str]:
    changes: list[str] = []
    if call.edits:
        changes.append(_count_rules("repair", [e.rule for e in call.edits]))
    for stage, word in (("read", "reading"), ("coerce", "coercion")):
        rules = [s.rule for s in call.steps if s.stage == stage]
        if rules:
            changes.append(_count_rules(word, rules))
    return changes


def _complaints(call: ToolCall) -> list[str]:
    complaints: list[str] = []
    for problem in call.problems:
        if problem.severity == "info":
            continue
        place = f" at {printable(problem.path)}" if problem.path else ""
        complaints.append(printable(problem.message) + place)
    return complaints


def _count_rules(word: str, rules: list[str]) -> str:
    counts = Counter(rules)
    phrases = [f"{rule} × {n}" if n > 1 else rule for rule, n in counts.items()]
    plural = "s" if len(rules) > 1 else ""
    return f"{len(rules)} {word}{plural} ({', '.join(phrases)})"
