"""Trials to pandas frames: one row a thing, RangeIndex, tidy, the columns of `columns.COLUMNS`."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pandas as pd

from ..errors import BadOptions, StoreError, UnreadableInput
from ..rules import CODES, RULES
from ..types import ParseResult, Problem, Span, ToolCall
from ..values import write_canonical
from .columns import columns_of
from .trial import Trial

if TYPE_CHECKING:
    from ..flow import Conversation
    from ..runner.types import Completion

Frame: TypeAlias = pd.DataFrame
"""What every function here gives back."""

_SURROGATE = re.compile("[\ud800-\udfff]")


def runs_frame(runs: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """One row a run, from mappings with the names of the runs columns; a name it does not know is an error."""
    known = {c.name for c in columns_of("runs")}
    rows = []
    for run in runs:
        if unknown := sorted(set(run) - known):
            raise BadOptions("a run has names that no column has", got=", ".join(unknown), expected=", ".join(known))
        rows.append(dict(run))
    return _frame("runs", rows)


def trials_frame(trials: Iterable[Trial]) -> pd.DataFrame:
    """One row a completion × parse protocol × policy; `metadata_*` columns follow the declared ones."""
    rows, extra = [], {}
    for trial in trials:
        row = _trial_row(trial)
        for key, value in trial.case.metadata.items():
            if key != "category":
                row[f"metadata_{key}"] = value if isinstance(value, str) else _json(value)
                extra[f"metadata_{key}"] = "string"
        rows.append(row)
    return _frame("trials", rows, extra)


def calls_frame(source: Iterable[Trial] | Trial | ParseResult) -> pd.DataFrame:
    """One row a call, of trials or of a single result (whose run, case and model stay missing)."""
    rows = [
        {**keys, **_call_row(keys.get("trial_id"), call)}
        for keys, result in _results(source)
        for call in (result.calls if result else ())
    ]
    return _frame("calls", rows)


def events_frame(source: Iterable[Trial] | Trial | ParseResult) -> pd.DataFrame:
    """One row a step, problem or retry. Retries are told once a completion, with its first trial."""
    rows: list[dict[str, Any]] = []
    seen: set[str] = set()
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
    from ..runner.types import Completion

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


def conform(frame: pd.DataFrame, kind: str) -> pd.DataFrame:
    """The same rows with every declared column of that kind of frame, in order and of its dtype, and a RangeIndex.

    For frames that came back from a file or from other workers; columns of your own stay behind the declared ones.
    """
    extra = [str(c) for c in frame.columns if c not in {d.name for d in columns_of(kind)}]
    out = {c.name: frame[c.name].array if c.name in frame else [None] * len(frame) for c in columns_of(kind)}
    out |= {name: frame[name].array for name in extra}
    dtypes = {c.name: c.dtype for c in columns_of(kind)}
    dtypes |= {name: "string" for name in extra if name.startswith("metadata_")}
    return pd.DataFrame({name: _column(values, dtypes.get(name)) for name, values in out.items()})


def write_frame(frame: pd.DataFrame, path: str | Path) -> Path:
    """Write a frame as Parquet or CSV, by the path's suffix."""
    file = Path(path)
    try:
        if file.suffix == ".parquet":
            frame.to_parquet(file, index=False)
        elif file.suffix == ".csv":
            frame.to_csv(file, index=False)
        else:
            raise BadOptions("a frame is written as Parquet or CSV", got=file.name, expected=".parquet or .csv")
    except OSError as e:
        raise StoreError("the frame cannot be written", got=f"{path}: {e.strerror or e}") from None
    return file


def read_frame(path: str | Path, kind: str) -> pd.DataFrame:
    """The frame that `write_frame` wrote, with its dtypes."""
    file = Path(path)
    try:
        if file.suffix == ".csv":
            return conform(pd.read_csv(file, dtype="string", keep_default_na=False, na_values=[""]), kind)
        return conform(pd.read_parquet(file), kind)
    except (OSError, ValueError) as e:
        raise UnreadableInput("the frame cannot be read", got=f"{path}: {e}") from None


def _frame(kind: str, rows: Sequence[Mapping[str, Any]], extra: Mapping[str, str] | None = None) -> pd.DataFrame:
    dtypes = {c.name: c.dtype for c in columns_of(kind)} | dict(extra or {})
    return pd.DataFrame({name: _column([row.get(name) for row in rows], dtype) for name, dtype in dtypes.items()})


def _column(values: Any, dtype: str | None) -> pd.Series[Any]:
    if dtype in ("string", "category"):
        texts = pd.Series(
            [None if v is None or v is pd.NA or v != v else _storable(str(v)) for v in values], dtype="string"
        )
        if dtype == "string":
            return texts
        texts = texts.mask(texts == "")
        return texts.astype(pd.CategoricalDtype(sorted(texts.dropna().unique())))
    if dtype == "boolean" and len(values) and isinstance(values[0], str):
        values = pd.Series(values).map({"True": True, "False": False})
    return pd.Series(values, dtype=dtype)


def _storable(text: str) -> str:
    """Lone surrogates as escapes: Parquet and CSV hold UTF-8."""
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return _SURROGATE.sub(lambda m: f"\\u{ord(m[0]):04x}", text)


def _json(value: Any) -> str:
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
    row = _keys(trial)
    case, score, c, result = trial.case, trial.score, trial.completion, trial.result
    row["category"] = case.category or None
    row["input"] = case.input_text
    row["target"] = None if case.target is None else write_canonical(case.target)
    row["missing_reason"] = trial.missing_reason or None
    if score is not None:
        row |= {"outcome": score.outcome, "sub_code": score.sub_code or None, "detail": score.detail}
        row |= {
            f"score_{name}": getattr(score, name)
            for name in ("success", "strict", "repaired", "safe", "naive", "fabricated", "answer")
        }
        if score.outcome == "provider_error" and not trial.missing_reason:
            row["missing_reason"] = f"provider error: {score.sub_code}"
        elif score.outcome == "ungraded":
            row["missing_reason"] = "no target"
    if result is not None:
        row |= {
            "n_calls": len(result.calls),
            "n_ok": sum(call.ok for call in result.calls),
            "n_valid": sum(call.valid for call in result.calls),
            "n_problems": sum(1 for _ in result.all_problems()),
            **_changes(result.calls),
            **_complaints(result.all_problems()),
        }
    if c is not None:
        row |= _completion_row(c)
    if trial.conversation is not None:
        row |= _conversation_row(trial.conversation)
    return row


def _conversation_row(conversation: Conversation) -> dict[str, Any]:
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


def _completion_row(c: Completion) -> dict[str, Any]:
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
        "completion_key": c.key,
        "created": c.created or None,
    }


def _model_name(request: Mapping[str, Any]) -> str | None:
    model = request.get("model")
    name = model.get("name") if isinstance(model, Mapping) else model
    return name if isinstance(name, str) else None


def _changes(calls: Iterable[ToolCall]) -> dict[str, Any]:
    rules: Counter[str] = Counter()
    counts = {"n_edits": 0, "n_reads": 0, "n_coercions": 0}
    for call in calls:
        rules.update(e.rule for e in call.edits)
        rules.update(s.rule for s in call.steps)
        counts["n_edits"] += len(call.edits)
        counts["n_reads"] += sum(s.stage == "read" for s in call.steps)
        counts["n_coercions"] += sum(s.stage == "coerce" for s in call.steps)
    return {**counts, "rules_json": _json(dict(sorted(rules.items())))}


def _complaints(problems: Iterable[Problem]) -> dict[str, Any]:
    codes: Counter[str] = Counter()
    first = None
    for p in problems:
        if p.severity == "info":
            continue
        codes[p.code] += 1
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
