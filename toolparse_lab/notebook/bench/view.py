"""The view of a setup on the workbench: the parse view's payload, the pipeline stage by stage, the
readings to choose from, and how the calls differ from the wanted ones. JSON-ready.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any

from ...core.types import ParseResult, Problem, ToolCall
from ...core.types.result import explain_call
from ...evals.readings.compare import compare
from ...evals.scoring.trial_view import wanted_rows
from ...formats.registry import protocols
from ...views.changes import is_lossless
from ...views.show import shorten, visible
from ..payload import payload_of
from .setup import Setup

POLICIES = ("none", "safe", "middleware", "seed-layer2", "lossy")
REASONING = ("auto", "prefilled", "none")
_MOST_LINES = 200
_MOST_TOLD = 5  # calls that have a sentence each
_MOST_TEXT = 600


def view_of(setup: Setup) -> tuple[dict[str, Any], ParseResult]:
    """Return the view of a setup, and its parse."""
    result = setup.parse()
    return {
        "raw": setup.raw,
        "protocol": setup.protocol.id,
        "options": {
            "coerce": setup.options.coerce,
            "reasoning": setup.options.reasoning,
            "repair": setup.options.repair,
            "recover": setup.options.recover,
        },
        "tools": json.dumps([t.to_dict() for t in setup.tools], ensure_ascii=False, indent=1),
        "title": visible(setup.title),
        "outcome": visible(shorten(setup.outcome, _MOST_TEXT)),
        "asked": [
            [_text(str(m.get("role", "")), 40), _text(_said(m), 20_000)] for m in setup.request
        ],
        "exchange": {name: _text(text, 100_000) for name, text in setup.exchange.items()},
        "payload": payload_of(result),
        "sentence": visible(shorten(_sentence(result), 1_000)),
        "pipeline": list(pipeline_of(result)),
        "readings": list(_readings(result, setup)),
        "wanted": _wanted(result, setup),
    }, result


def choices() -> dict[str, list[str]]:
    """Return the choices of the pickers."""
    return {
        "protocol": ["auto", *protocols()],
        "coerce": list(POLICIES),
        "reasoning": list(REASONING),
    }


def _said(message: Any) -> str:
    """Return a message's text, or the JSON of its parts."""
    content = message.get("content")
    return content if isinstance(content, str) else _json(content)


def _sentence(result: ParseResult) -> str:
    """Return the verdict in a sentence for each call, or in one where there are many."""
    calls = result.calls
    if 0 < len(calls) <= _MOST_TOLD:
        return "\n".join(map(explain_call, calls))
    return result.why() if not calls else f"{len(calls):,} calls; the verdict is {result.verdict}."


def _text(value: str, limit: int = _MOST_TEXT) -> str:
    return visible(shorten(value, limit))


def pipeline_of(result: ParseResult) -> Iterator[dict[str, Any]]:
    """Yield the six stages on the way from text to calls, each with its changes.

    A line is [what, detail, kind], its kind one of good, warn, bad or plain.
    """
    calls = result.calls
    yield _stage("raw", len(result.raw), "character", iter(()))
    yield _stage("segments", len(result.segments), "segment", _segment_lines(result))
    edits = sum(len(call.edits) for call in calls)
    yield _stage("repaired", edits, "repair", _repair_lines(result))
    yield _stage("decoded", len(calls), "call", map(_decoded_line, calls))
    steps = sum(len(call.steps) for call in calls)
    yield _stage("coerced", steps, "step", _coercion_lines(calls))
    problems = list(result.all_problems())
    lines = chain(map(_problem_line, problems), map(_verdict_line, calls))
    yield _stage("validated", len(problems), "problem", lines, len(calls))


def _segment_lines(result: ParseResult) -> Iterator[list[str]]:
    for segment in result.segments:
        kind = "plain" if segment.kind == "text" else "good"
        yield [segment.kind, _text(segment.span.of(result.raw), 160), kind]


def _repair_lines(result: ParseResult) -> Iterator[list[str]]:
    for call in result.calls:
        for edit in call.edits:
            change = _change(edit.span.of(result.raw), edit.text)
            yield [edit.rule, change, _kind(edit.rule)]


def _decoded_line(call: ToolCall) -> list[str]:
    kind = "good" if call.source_json else "bad"
    return [call.name or "no name", _text(call.source_json or call.status), kind]


def _coercion_lines(calls: Iterable[ToolCall]) -> Iterator[list[str]]:
    for call in calls:
        for step in call.steps:
            change = _change(_json(step.before), _json(step.after))
            yield [f"{step.rule} {step.path}".strip(), change, _kind(step.rule)]


def _problem_line(problem: Problem) -> list[str]:
    kind = {"error": "bad", "warning": "warn"}.get(problem.severity, "plain")
    return [problem.code, _text(f"{problem.path} {problem.message}".strip()), kind]


def _verdict_line(call: ToolCall) -> list[str]:
    return [call.name or "no name", call.verdict, "good" if call.valid else "bad"]


def _stage(
    name: str, count: int, noun: str, lines: Iterator[list[str]], more: int = 0
) -> dict[str, Any]:
    """Return a stage with its first lines. more: lines beside those that count."""
    return {
        "name": name,
        "count": _counted(count, noun),
        "lines": list(islice(lines, _MOST_LINES)),
        "of": count + more if name != "raw" else 0,
    }


def _counted(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def _kind(rule: str) -> str:
    return "good" if is_lossless(rule) else "warn"


def _json(value: Any) -> str:
    """Return a step's value as JSON. Values without a JSON form as Python does."""
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        return repr(value)


def _change(before: str, after: str) -> str:
    if not before:
        return f"{_text(after, 200)} was put in"
    if not after:
        return f"{_text(before, 200)} was left out"
    return f"{_text(before, 200)} → {_text(after, 200)}"


def _readings(result: ParseResult, setup: Setup) -> Iterator[dict[str, Any]]:
    """Yield the readings of refused calls.

    `text` is the answer with this one written in.
    """
    for call in result.calls:
        for reading in call.readings:
            span = call.segment.span
            call_text = _call_text(setup, reading.name, reading.arguments)
            before, behind = setup.raw[: span.start], setup.raw[span.end :]
            yield {
                "call": call.index,
                "name": _text(reading.name, 100),
                "arguments": _text(reading.arguments_json),
                "cost": reading.cost,
                "why": _text(reading.why, 300),
                "edits": [_text(f"{e.rule} at {e.span.start}", 100) for e in reading.edits],
                "text": "" if call_text is None else f"{before}{call_text}{behind}",
            }


def _call_text(setup: Setup, name: str, arguments: Any) -> str | None:
    """Return a call as the protocol writes it, None for one that only reads."""
    write = getattr(setup.protocol, "format_tool_call", None)
    if write is None:
        return None
    try:
        return str(write({"name": name, "arguments": arguments}))
    except Exception:
        # A reading that the format cannot carry, or another package's protocol that fails.
        return None


def _wanted(result: ParseResult, setup: Setup) -> list[dict[str, Any]]:
    """Return the wanted calls beside the text read, and where each differs."""
    rows = [] if setup.target is None else wanted_rows(result, setup.target, setup.tools)
    return [
        {"want": visible(r.target), "got": visible(r.got), "difference": visible(r.difference)}
        for r in rows
    ]


def comparison_of(setup: Setup) -> list[dict[str, Any]]:
    """Return the reading of every protocol, the best first."""
    rows = []
    for reading in compare(setup.raw, setup.tools, options=setup.options).readings:
        result = reading.result
        rows.append(
            {
                "protocol": reading.name,
                "agrees": reading.agrees,
                "verdict": result.verdict if result is not None else "",
                "calls": [_text(f"{c.name}({c.arguments_json})", 300) for c in reading.calls],
                "problems": sorted({_text(p.code, 80) for p in reading.problems}),
            }
        )
    return rows
