"""Trials to pandas frames: one row a thing, RangeIndex, tidy, the columns of `columns.COLUMNS`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import pandas as pd

from ...errors import BadOptions
from ...rules import CODES, RULES
from ...toolspec import ToolSpec
from ...types import ParseResult, Problem, Span, ToolCall
from ...values import write_canonical
from .. import accessor as accessor  # registers df.toolparse with the first frame
from ..scoring.outcomes import is_failure
from ..scoring.trial import Trial
from .columns import columns_of
from .dtypes import EXTRA, build_frame, surrogate_offsets
from .dtypes import conform as conform
from .dtypes import join_frames as join_frames
from .files import read_frame as read_frame
from .files import write_frame as write_frame

if TYPE_CHECKING:
    from ...flow import Conversation
    from ...runner.types import Completion
    from ..cases.case import Case
    from ..scoring.score import Score

Frame: TypeAlias = pd.DataFrame
"""What every function here gives back."""


def runs_frame(runs: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """One row a run, from mappings with the names of the runs columns; a name it does not know is an error."""
    known = {c.name for c in columns_of("runs")}
    rows = []
    for run in runs:
        if unknown := sorted(set(run) - known):
            raise BadOptions("a run has names that no column has", got=", ".join(unknown), expected=", ".join(known))
        rows.append(dict(run))
    return _frame("runs", rows)


def trials_frame(trials: Iterable[Trial], *, metadata: Iterable[str] = ()) -> pd.DataFrame:
    """One row a completion × parse protocol × policy; `metadata_*` columns follow the declared ones.

    metadata: keys that have a column even where no trial here has them, for frames that are to be alike.
    """
    rows: list[dict[str, Any]] = []
    extra: dict[str, str] = {f"{EXTRA}{key}": "string" for key in metadata}
    for trial in trials:
        own = metadata_row(trial.case)
        extra |= dict.fromkeys(own, "string")
        rows.append(_trial_row(trial) | own)
    return _frame("trials", rows, extra)


def failed_rows(trials: pd.DataFrame) -> list[bool]:
    """Which rows of a trials frame are trials that failed, see `Trial.failed`."""
    outcomes, codes = (trials[c].astype("string").fillna("") for c in ("outcome", "error_code"))
    return [is_failure(outcome, bool(code)) for outcome, code in zip(outcomes, codes, strict=True)]


def calls_frame(source: Iterable[Trial] | Trial | ParseResult) -> pd.DataFrame:
    """One row a call, of trials or of a single result (whose run, case and model stay missing)."""
    rows = [
        {**keys, **_call_row(keys.get("trial_id"), call)}
        for keys, result in _results(source)
        for call in (result.calls if result else ())
    ]
    return _frame("calls", rows)


def events_frame(source: Iterable[Trial] | Trial | ParseResult, told: set[str] | None = None) -> pd.DataFrame:
    """One row a step, problem or retry. Retries are told once a completion, with its first trial.

    told: keys of completions whose retries were told before; those told here are added.
    """
    rows: list[dict[str, Any]] = []
    seen = set() if told is None else told
    if not isinstance(source, (ParseResult, Trial)):
        source = list(source)
    for keys, result in _results(source):
        if result:
            rows += ({**keys, **row} for row in _event_rows(keys.get("trial_id"), result))
    for trial in [source] if isinstance(source, Trial) else () if isinstance(source, ParseResult) else source:
        c = trial.completion
        if c is None or c.attempt < 2 or c.key in seen:
            continue
        seen.add(c.key)
        rows += (
            {**_keys(trial), "kind": "retry", "code": c.error_kind, "message": f"attempt {n} of {c.attempt}"}
            for n in range(2, c.attempt + 1)
        )
    return _frame("events", rows)


def chunks_frame(source: Completion | Trial | Iterable[Completion | Trial]) -> pd.DataFrame:
    """One row a chunk of a recorded stream; trials of one completion share its chunks."""
    from ...runner.types import Completion

    items: Iterable[Any] = [source] if isinstance(source, (Completion, Trial)) else source
    rows: list[dict[str, Any]] = []
    seen: set[str] = set()
    for item in items:
        trial = item if isinstance(item, Trial) else None
        completion = item.completion if isinstance(item, Trial) else item
        if completion is None or completion.key in seen:
            continue
        seen.add(completion.key)
        ends = {"content": 0, "reasoning": 0}
        for i, chunk in enumerate(completion.chunks):
            start = ends[chunk.kind]
            ends[chunk.kind] = start + len(chunk.text)
            rows.append(
                {
                    "completion_key": completion.key,
                    "trial_id": trial.trial_id if trial else None,
                    "case_id": trial.case_id if trial else None,
                    "index": i,
                    "at": chunk.at,
                    "kind": chunk.kind,
                    "text": chunk.text,
                    "start": start,
                    "end": ends[chunk.kind],
                }
            )
    return _frame("chunks", rows)


def tools_text(tools: tuple[ToolSpec, ...]) -> str:
    """Tools as the JSON of `tools_json`."""
    return _tools_text(tools)


@lru_cache(maxsize=1024)
def _tools_text(tools: tuple[ToolSpec, ...]) -> str:
    return write_canonical([t.to_dict() for t in tools])


def choice_text(choice: Any) -> str:
    """A level of the factor tool_choice as the text of the column."""
    return choice if isinstance(choice, str) else write_canonical(dict(choice))


def metadata_row(case: Case) -> dict[str, str]:
    """The `metadata_*` columns of a case."""
    return {
        f"{EXTRA}{key}": value if isinstance(value, str) else _json(value)
        for key, value in case.metadata.items()
        if key != "category"
    }


def _frame(kind: str, rows: Sequence[Mapping[str, Any]], extra: Mapping[str, str] | None = None) -> pd.DataFrame:
    names = [*(c.name for c in columns_of(kind)), *(extra or ())]
    return build_frame(kind, {name: [row.get(name) for row in rows] for name in names}, len(rows), extra)


def _json(value: Any) -> str:
    if not value and type(value) is dict:
        return "{}"
    try:
        return write_canonical(value)
    except TypeError:
        return json.dumps(value, default=str)


def _keys(trial: Trial) -> dict[str, Any]:
    return {
        "run_id": trial.run_id,
        "trial_id": trial.trial_id,
        "case_id": trial.case_id,
        "trial": trial.trial,
        "model": trial.model,
        "arm": trial.arm,
        "prompt_protocol": trial.prompt_protocol,
        "parse_protocol": trial.parse_protocol,
        "policy": trial.policy,
    }


def _results(source: Iterable[Trial] | Trial | ParseResult) -> Iterable[tuple[dict[str, Any], ParseResult | None]]:
    if isinstance(source, ParseResult):
        return [({"parse_protocol": source.protocol, "policy": source.options.coerce}, source)]
    if isinstance(source, Trial):
        source = [source]
    return [(_keys(t), t.result) for t in source]


def _trial_row(trial: Trial) -> dict[str, Any]:
    case = trial.case
    row = _keys(trial) | case_row(case)
    row["tool_choice"] = choice_text(trial.levels.get("tool_choice", "auto"))
    row |= score_row(trial.score, trial.missing_reason)
    row["score_answer"] = trial.score.answer if trial.score is not None else None
    if trial.result is not None:
        row |= result_row(trial.result)
    if trial.completion is not None:
        row |= completion_row(trial.completion)
    if trial.conversation is not None:
        row |= conversation_row(trial.conversation)
    return row


def case_row(case: Case) -> dict[str, Any]:
    """The columns that a case fills, but for its id and metadata."""
    return {
        "category": case.category or None,
        "input": case.input_text,
        "target": None if case.target is None else write_canonical(case.target),
        "tools_json": tools_text(case.tools),
    }


def score_row(score: Score | None, missing_reason: str = "") -> dict[str, Any]:
    """The columns that a score fills, but for `score_answer`, which is the conversation's."""
    if score is None:
        return {"missing_reason": missing_reason or None}
    missing = missing_reason or None
    if score.outcome == "provider_error" and not missing_reason:
        missing = f"provider error: {score.sub_code}"
    elif score.outcome == "ungraded":
        missing = "no target"
    return {
        "outcome": score.outcome,
        "sub_code": score.sub_code or None,
        "detail": score.detail,
        "missing_reason": missing,
        "score_success": score.success,
        "score_strict": score.strict,
        "score_repaired": score.repaired,
        "score_safe": score.safe,
        "score_naive": score.naive,
        "score_fabricated": score.fabricated,
    }


def result_row(result: ParseResult) -> dict[str, Any]:
    """The columns that a parse fills."""
    calls = result.calls
    problems = list(result.all_problems())
    n_ok = n_valid = 0
    for call in calls:
        if call.ok:
            n_ok += 1
            n_valid += call.valid
    return {
        "n_calls": len(calls),
        "n_ok": n_ok,
        "n_valid": n_valid,
        "n_problems": len(problems),
        **_changes(calls),
        **_complaints(problems),
    }


def conversation_row(conversation: Conversation) -> dict[str, Any]:
    """The columns that a conversation fills, but for `score_answer`."""
    completions = [turn.completion for turn in conversation.turns]
    tokens = [c.prompt_tokens + c.completion_tokens for c in completions if c.prompt_tokens and c.completion_tokens]
    costs = [c.cost for c in completions if c.cost is not None]
    whole = len(completions)
    return {
        "n_turns": whole,
        "stop": conversation.stop,
        "final_text": conversation.answer,
        **{f"n_{status}": n for status, n in conversation.counts.items()},
        "conversation_tokens": sum(tokens) if len(tokens) == whole else None,
        "conversation_cost": sum(costs) if len(costs) == whole else None,
    }


def completion_row(c: Completion) -> dict[str, Any]:
    """The columns that a recorded answer fills."""
    tokens = None
    if c.prompt_tokens is not None and c.completion_tokens is not None:
        tokens = c.prompt_tokens + c.completion_tokens
    names = (
        "raw", "status", "error_message", "finish_reason", "prompt_tokens", "completion_tokens", "cost", "latency",
        "ttft", "queue_wait", "attempt", "stream", "cut", "endpoint_kind", "fidelity", "system_fingerprint",
    )  # fmt: skip
    return {
        **{name: getattr(c, name) for name in names},
        "model_name": _model_name(c.request),
        "error": c.error_kind,
        "total_tokens": tokens,
        "retries": c.attempt - 1,
        "raw_surrogates_json": surrogate_offsets(c.raw),
        "reasoning": c.reasoning or None,
        "completion_key": c.key,
        "created": c.created or None,
    }


def _model_name(request: Mapping[str, Any]) -> str | None:
    model = request.get("model")
    name = model.get("name") if isinstance(model, Mapping) else model
    return name if isinstance(name, str) else None


def _changes(calls: Iterable[ToolCall]) -> dict[str, Any]:
    rules: dict[str, int] = {}
    edits = reads = coercions = 0
    for call in calls:
        for e in call.edits:
            rules[e.rule] = rules.get(e.rule, 0) + 1
        for s in call.steps:
            rules[s.rule] = rules.get(s.rule, 0) + 1
            reads += s.stage == "read"
            coercions += s.stage == "coerce"
        edits += len(call.edits)
    return {
        "n_edits": edits,
        "n_reads": reads,
        "n_coercions": coercions,
        "rules_json": _json(dict(sorted(rules.items()))),
    }


def _complaints(problems: Iterable[Problem]) -> dict[str, Any]:
    codes: dict[str, int] = {}
    first = None
    for p in problems:
        if p.severity == "info":
            continue
        codes[p.code] = codes.get(p.code, 0) + 1
        if first is None and p.severity == "error":
            first = p.code
    return {"error_code": first, "codes_json": _json(dict(sorted(codes.items())))}


def _call_row(trial_id: Any, call: ToolCall) -> dict[str, Any]:
    return {
        "call_id": _call_id(trial_id, call),
        "index": call.index,
        "name": call.name,
        "status": call.status,
        "ok": call.ok,
        "valid": call.valid,
        "confidence": call.confidence,
        "wire_format": call.protocol,
        "wire_id": call.wire_id,
        "arguments_json": call.arguments_json or None,
        "source_json": call.source_json or None,
        "start": call.segment.span.start,
        "end": call.segment.span.end,
        "closed": call.segment.closed,
        **_changes([call]),
        **_complaints(call.problems),
    }


def _call_id(trial_id: Any, call: ToolCall) -> str:
    return f"{trial_id}/{call.index}" if trial_id else str(call.index)


def _event_rows(trial_id: Any, result: ParseResult) -> Iterable[dict[str, Any]]:
    for p in result.problems:
        yield _problem_row(p)
    for call in result.calls:
        key = {"call_id": _call_id(trial_id, call)}
        for s in (*call.repair_steps, *call.steps):
            rule = RULES.get(s.rule)
            yield {
                **key,
                "kind": "step",
                "stage": s.stage,
                "code": s.rule,
                "lossless": rule.lossless if rule else None,
                "path": s.path,
                **_span_row(s.span),
                "before_json": s.before_json if s.stage != "repair" else _json(s.span.of(result.raw) if s.span else ""),
                "after_json": s.after_json,
                "message": rule.sentence if rule else None,
            }
        for p in call.problems:
            yield {**key, **_problem_row(p)}


def _problem_row(p: Problem) -> dict[str, Any]:
    return {
        "kind": "problem",
        "stage": p.stage,
        "code": p.code,
        "severity": p.severity,
        "path": p.path,
        **_span_row(p.span),
        "message": p.message or (CODES[p.code].sentence if p.code in CODES else None),
    }


def _span_row(span: Span | None) -> dict[str, Any]:
    return {"start": span.start, "end": span.end} if span else {}
