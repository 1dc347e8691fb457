"""Trials to pandas frames: one row per thing, RangeIndex, tidy, the columns of
`columns.COLUMNS`.
"""

# How it works. Each kind of frame has a function that yields plain dicts with the names of the
# declared columns, and `_frame` makes columns of them at the end. A name that a dict leaves out is
# a missing cell: that is how a trial without an answer, or a problem without a span, says so. The
# functions for parts of a row (`score_row`, `result_row` …) are shared with `reread`.

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import pandas as pd

from ...core.errors import BadOptions
from ...core.rules import CODES, RULES
from ...core.toolspec import ToolSpec
from ...core.types import ParseResult, Problem, ServerReading, Span, Step, ToolCall
from ...core.types.server import explain_blame
from ...core.values import write_canonical
from ...runner.exchange.details import sampling_of, token_details
from ...runner.exchange.types import Completion
from .. import accessor as accessor  # registers df.toolparse with the first frame
from ..readings.readers import version_of
from ..scoring.outcomes import is_failure
from ..scoring.trial import Trial
from .columns import columns_of
from .dtypes import EXTRA, build_frame, surrogate_offsets
from .dtypes import conform as conform
from .dtypes import join_frames as join_frames
from .files import read_frame as read_frame
from .files import write_frame as write_frame

if TYPE_CHECKING:
    from ...middleware.flow import Conversation
    from ..cases.case import Case
    from ..scoring.score import Score

Frame: TypeAlias = pd.DataFrame
"""The type of what every function here returns."""


def runs_frame(runs: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Return one row per run, from mappings with the names of the runs columns.

    A name that a mapping leaves out is a missing cell. Raises BadOptions for a name that no column
    has.
    """
    names = {column.name for column in columns_of("runs")}
    rows = []
    for run in runs:
        unknown = sorted(set(run) - names)
        if unknown:
            raise BadOptions(
                "a run has names that no column has",
                got=", ".join(unknown),
                expected=", ".join(names),
            )
        rows.append(dict(run))
    return _frame("runs", rows)


def trials_frame(trials: Iterable[Trial], *, metadata: Iterable[str] = ()) -> pd.DataFrame:
    """Return one row per completion × parse protocol × policy.

    `metadata_*` columns follow the declared ones.

    trials: walked once, so that they may come from a generator. metadata: keys that have a column
    even where no trial here has them, for frames that are to be alike.
    """
    rows: list[dict[str, Any]] = []
    extra: dict[str, str] = {f"{EXTRA}{key}": "string" for key in metadata}
    for trial in trials:
        own = metadata_row(trial.case)
        extra |= dict.fromkeys(own, "string")
        rows.append(_trial_row(trial) | own)
    return _frame("trials", rows, extra)


def failed_rows(trials: pd.DataFrame) -> list[bool]:
    """Return True for each row of a trials frame that is a trial that failed, see `Trial.failed`.

    trials: needs the columns `outcome` and `error_code` alone.
    """
    outcomes = trials["outcome"].astype("string").fillna("")
    codes = trials["error_code"].astype("string").fillna("")
    return [is_failure(outcome, bool(code)) for outcome, code in zip(outcomes, codes, strict=True)]


def calls_frame(source: Iterable[Trial] | Trial | ParseResult) -> pd.DataFrame:
    """Return one row per call, of trials or of a single result (whose run, case and model stay
    missing). A trial without calls has no row.
    """
    rows: list[dict[str, Any]] = []
    for keys, result in _results(source):
        if result is None:
            continue
        trial_id = keys.get("trial_id")
        rows += ({**keys, **_call_row(trial_id, call)} for call in result.calls)
    return _frame("calls", rows)


def events_frame(
    source: Iterable[Trial] | Trial | ParseResult, with_retries: set[str] | None = None
) -> pd.DataFrame:
    """Return one row per step, problem or retry.

    Retries stand once a completion, with its first trial.

    with_retries: keys of completions whose retries stand in an earlier frame. Those that stand in
    this one are added.
    """
    if isinstance(source, Trial):
        source = [source]
    elif not isinstance(source, ParseResult):
        source = list(source)  # it is walked twice

    rows: list[dict[str, Any]] = []
    for keys, result in _results(source):
        if result is None:
            continue
        events = _event_rows(keys.get("trial_id"), result)
        rows += ({**keys, **row} for row in events)

    # A result alone has not been asked for, so that nothing was tried again.
    if not isinstance(source, ParseResult):
        rows += _retry_rows(source, set() if with_retries is None else with_retries)
    return _frame("events", rows)


def _retry_rows(trials: Iterable[Trial], with_retries: set[str]) -> Iterator[dict[str, Any]]:
    for trial in trials:
        c = trial.completion
        if c is None or c.attempt < 2:
            continue
        # Trials that read one completion share its retries.
        if c.key in with_retries:
            continue

        with_retries.add(c.key)
        for n in range(2, c.attempt + 1):
            message = f"attempt {n} of {c.attempt}"
            yield {**_keys(trial), "kind": "retry", "code": c.error_kind, "message": message}


def chunks_frame(source: Completion | Trial | Iterable[Completion | Trial]) -> pd.DataFrame:
    """Return one row per chunk of a recorded stream.

    Trials of one completion share its chunks, which stand once, with the first of them.

    A completion that was not a stream, and a trial that is not on record, have no row.
    """

    items: Iterable[Any] = [source] if isinstance(source, (Completion, Trial)) else source
    rows: list[dict[str, Any]] = []
    keys: set[str] = set()
    for item in items:
        trial, completion = None, item
        if isinstance(item, Trial):
            trial, completion = item, item.completion
        if completion is None or completion.key in keys:
            continue
        keys.add(completion.key)
        rows += _chunk_rows(completion, trial)
    return _frame("chunks", rows)


def _chunk_rows(completion: Completion, trial: Trial | None) -> Iterator[dict[str, Any]]:
    keys = {
        "completion_key": completion.key,
        "trial_id": trial.trial_id if trial else None,
        "case_id": trial.case_id if trial else None,
    }

    # Content and reasoning are two texts, each with offsets of its own.
    ends = {"content": 0, "reasoning": 0}
    for i, chunk in enumerate(completion.chunks):
        start = ends[chunk.kind]
        end = start + len(chunk.text)
        ends[chunk.kind] = end
        yield {
            **keys,
            "index": i,
            "at": chunk.at,
            "kind": chunk.kind,
            "text": chunk.text,
            "start": start,
            "end": end,
        }


def tools_text(tools: tuple[ToolSpec, ...]) -> str:
    """Return tools as the JSON of `tools_json`.

    >>> tools_text(())
    '[]'
    """
    return _tools_text(tools)


# A run asks for the text once a trial, and has as many different tools as cases at most.
@lru_cache(maxsize=1024)
def _tools_text(tools: tuple[ToolSpec, ...]) -> str:
    return write_canonical([t.to_dict() for t in tools])


def choice_text(choice: Any) -> str:
    """Return a level of the factor tool_choice as the text of the column.

    choice: a word, or a mapping that names the one tool to call.

    >>> choice_text("auto"), choice_text({"name": "f"})
    ('auto', '{"name":"f"}')
    """
    if isinstance(choice, str):
        return choice
    return write_canonical(dict(choice))


def metadata_row(case: Case) -> dict[str, str]:
    """Return the `metadata_*` columns of a case.

    A value that is not text is told as JSON.
    """
    row = {}
    for key, value in case.metadata.items():
        if key == "category":
            continue  # which has a column of its own
        row[f"{EXTRA}{key}"] = value if isinstance(value, str) else _json(value)
    return row


def _frame(
    kind: str, rows: Sequence[Mapping[str, Any]], extra: Mapping[str, str] | None = None
) -> pd.DataFrame:
    names = [column.name for column in columns_of(kind)]
    names += extra or ()
    columns = {name: [row.get(name) for row in rows] for name in names}
    return build_frame(kind, columns, len(rows), extra)


def _json(value: Any) -> str:
    # As near to JSON as a value that is not JSON comes.
    # Most counts of rules and codes are empty, and every row asks for two of them.
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


def _results(
    source: Iterable[Trial] | Trial | ParseResult,
) -> Iterable[tuple[dict[str, Any], ParseResult | None]]:
    # A trial that was never parsed has None as its result.
    if isinstance(source, ParseResult):
        keys = {"parse_protocol": source.protocol, "policy": source.options.coerce}
        return [(keys, source)]

    if isinstance(source, Trial):
        source = [source]
    return [(_keys(trial), trial.result) for trial in source]


def _trial_row(trial: Trial) -> dict[str, Any]:
    # Each part of a trial has a function for its columns, and no two of them fill the same one.
    row = _keys(trial) | case_row(trial.case)
    row["tool_choice"] = choice_text(trial.levels.get("tool_choice", "auto"))
    row |= score_row(trial.score, trial.missing_reason)
    row |= {
        "note": trial.remarks.note or None,
        "override": trial.remarks.outcome or None,
        "override_why": trial.remarks.why or None,
    }
    row["score_answer"] = trial.score.answer if trial.score is not None else None

    if trial.result is not None:
        row["parse_version"] = version_of(trial.protocols.parse or trial.parse_protocol)
        row |= result_row(trial.result)
        row |= blame_row(trial.result, trial.completion)
    if trial.completion is not None:
        row |= completion_row(trial.completion)
    if trial.conversation is not None:
        row |= conversation_row(trial.conversation)
    return row


def case_row(case: Case) -> dict[str, Any]:
    """Return the columns that a case fills, but for its id and metadata.

    A case without a target is not graded, which a missing cell says. One that wants no call has [].
    """
    return {
        "category": case.category or None,
        "input": case.input_text,
        "target": None if case.target is None else write_canonical(case.target),
        "tools_json": tools_text(case.tools),
    }


def score_row(score: Score | None, missing_reason: str = "") -> dict[str, Any]:
    """Return the columns that a score fills, but for `score_answer`, which is the conversation's.

    missing_reason: why there is nothing to judge, where the score does not say it better.
    """
    missing = missing_reason or None
    if score is None:
        return {"missing_reason": missing}

    # These outcomes say nothing of the model, so that every rate leaves their rows out.
    if score.outcome == "provider_error" and missing is None:
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
        "rescues_json": _json({rule: counts for rule, *counts in score.rescues}),
    }


def result_row(result: ParseResult) -> dict[str, Any]:
    """Return the columns that a parse fills: counts of calls, of changes and of complaints."""
    calls = result.calls
    problems = list(result.all_problems())
    n_ok = n_valid = 0
    for call in calls:
        if call.ok:
            n_ok += 1
            n_valid += call.valid

    return {
        "verdict": result.verdict,
        "n_calls": len(calls),
        "n_ok": n_ok,
        "n_valid": n_valid,
        "n_problems": len(problems),
        **_changes(calls),
        **_complaints(problems),
    }


def blame_row(result: ParseResult, completion: Completion | None) -> dict[str, Any]:
    """Return the column that compares a parse with the server's own calls, where these were
    recorded.
    """
    server = _server_of(completion)
    if server is None:
        return {}
    return {"blame": explain_blame(result.calls, ServerReading.from_dict(server))}


def _server_of(completion: Completion | None) -> Mapping[str, Any] | None:
    server = (completion.response or {}).get("server") if completion is not None else None
    return server if isinstance(server, Mapping) and "calls" in server else None


def conversation_row(conversation: Conversation) -> dict[str, Any]:
    """Return the columns that a conversation fills, but for `score_answer`: that is the score's."""
    completions = [turn.completion for turn in conversation.turns]
    # A sum over some of the turns would pass for the whole, so one turn without a number leaves the
    # cell missing. A count of 0 tokens is no number either.
    tokens = _total([_tokens(completion) or None for completion in completions])
    cost = _total([completion.cost for completion in completions])
    return {
        "n_turns": len(completions),
        "stop": conversation.stop,
        "final_text": conversation.answer,
        **{f"n_{status}": n for status, n in conversation.counts.items()},
        "conversation_tokens": tokens,
        "conversation_cost": cost,
    }


def _tokens(c: Completion) -> int:
    # 0 where one direction was not counted.
    if not c.prompt_tokens or not c.completion_tokens:
        return 0
    return c.prompt_tokens + c.completion_tokens


def _total(numbers: Iterable[float | None]) -> float | None:
    # None if one number is missing.
    total: float = 0
    for number in numbers:
        if number is None:
            return None
        total += number
    return total


def completion_row(c: Completion) -> dict[str, Any]:
    """Return the columns that a recorded answer fills.

    Of a failed request, those that a failure has.
    """
    # One direction alone would pass for the total.
    tokens = None
    if c.prompt_tokens is not None and c.completion_tokens is not None:
        tokens = c.prompt_tokens + c.completion_tokens

    # Columns that are called as their fields.
    names = (
        "raw",
        "status",
        "error_message",
        "finish_reason",
        "prompt_tokens",
        "completion_tokens",
        "cost",
        "latency",
        "ttft",
        "queue_wait",
        "attempt",
        "stream",
        "cut",
        "endpoint_kind",
        "fidelity",
        "system_fingerprint",
    )
    server = _server_of(c)
    return {
        **{name: getattr(c, name) for name in names},
        "model_name": _model_name(c.request),
        "server_json": None if server is None else _json(server),
        "error": c.error_kind,
        "sampling_json": _sampling_text(c),
        "error_param": c.refused_param,
        "total_tokens": tokens,
        **token_details(c.response),
        "retries": c.attempt - 1,
        "raw_surrogates_json": surrogate_offsets(c.raw),
        "reasoning": c.reasoning or None,
        "completion_key": c.key,
        "created": c.created or None,
    }


def _sampling_text(c: Completion) -> str | None:
    sampling = sampling_of(c.request, c.response)
    return None if sampling is None else _json(sampling)


def _model_name(request: Mapping[str, Any]) -> str | None:
    # Older records have the model string as the model itself.
    model = request.get("model")
    name = model
    if isinstance(model, Mapping):
        name = model.get("name")
    return name if isinstance(name, str) else None


def _changes(calls: Iterable[ToolCall]) -> dict[str, Any]:
    rules: dict[str, int] = {}
    edits = reads = coercions = 0
    for call in calls:
        for edit in call.edits:
            rules[edit.rule] = rules.get(edit.rule, 0) + 1
        for step in call.steps:
            rules[step.rule] = rules.get(step.rule, 0) + 1
            reads += step.stage == "read"
            coercions += step.stage == "coerce"
        edits += len(call.edits)

    # Sorted, so that equal counts are equal texts.
    return {
        "n_edits": edits,
        "n_reads": reads,
        "n_coercions": coercions,
        "rules_json": _json(dict(sorted(rules.items()))),
    }


def _complaints(problems: Iterable[Problem]) -> dict[str, Any]:
    # Complaints of severity info are notes, and not counted.
    codes: dict[str, int] = {}
    first = None  # of severity error
    for problem in problems:
        if problem.severity == "info":
            continue
        codes[problem.code] = codes.get(problem.code, 0) + 1
        if first is None and problem.severity == "error":
            first = problem.code

    return {"error_code": first, "codes_json": _json(dict(sorted(codes.items())))}


def _call_row(trial_id: Any, call: ToolCall) -> dict[str, Any]:
    # The offsets are those of the whole call in the text, with its delimiters.
    return {
        "call_id": _call_id(trial_id, call),
        "index": call.index,
        "name": call.name,
        "status": call.status,
        "verdict": call.verdict,
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
    # A single result has no trial: there the place alone is the id.
    return f"{trial_id}/{call.index}" if trial_id else str(call.index)


def _event_rows(trial_id: Any, result: ParseResult) -> Iterator[dict[str, Any]]:
    # The problems of the text come first, then each call's steps, in the order in which they were
    # made and repairs first, and its problems.
    for problem in result.problems:
        yield _problem_row(problem)
    for call in result.calls:
        key = {"call_id": _call_id(trial_id, call)}
        for step in (*call.repair_steps, *call.steps):
            yield {**key, **_step_row(step, result.raw)}
        for problem in call.problems:
            yield {**key, **_problem_row(problem)}


def _step_row(step: Step, raw: str) -> dict[str, Any]:
    # raw: the text, which alone says what a repair replaced.
    rule = RULES.get(step.rule)
    before = step.before_json
    if step.stage == "repair":
        before = _json(step.span.of(raw) if step.span else "")

    # A rule that the table does not have is neither explained nor trusted.
    return {
        "kind": "step",
        "stage": step.stage,
        "code": step.rule,
        "lossless": rule.lossless if rule else None,
        "path": step.path,
        **_span_row(step.span),
        "before_json": before,
        "after_json": step.after_json,
        "message": rule.sentence if rule else None,
    }


def _problem_row(p: Problem) -> dict[str, Any]:
    message = p.message or None
    if message is None and p.code in CODES:
        message = CODES[p.code].sentence

    return {
        "kind": "problem",
        "stage": p.stage,
        "code": p.code,
        "severity": p.severity,
        "path": p.path,
        **_span_row(p.span),
        "message": message,
    }


def _span_row(span: Span | None) -> dict[str, Any]:
    if not span:
        return {}
    return {"start": span.start, "end": span.end}
