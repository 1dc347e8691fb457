"""The cells of one row: each part of a trial fills the columns of its own."""

# Each part has the names of its columns beside the function that gives their cells, a tuple in the
# same order, so that a frame is filled column by column. None is a missing cell: that is how a
# trial without an answer says so. Steps and problems are few, and are mappings by name.

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias

from ...core.rules import CODES, RULES
from ...core.toolspec import ToolSpec
from ...core.types import Blame, ParseResult, Problem, Span, Step, ToolCall
from ...core.values import write_canonical
from ...runner.exchange.details import provider_words, sampling_of, token_details
from ...runner.exchange.types import Completion
from ..parsers.outside import version_of
from ..scoring.outcomes import problems_in_order
from .dtypes import EXTRA, surrogate_offsets

if TYPE_CHECKING:
    from ...middleware.flow import Conversation
    from ..cases.case import Case
    from ..scoring.score import Score
    from ..scoring.trial import Trial

Cells: TypeAlias = tuple[Any, ...]


# A run asks for the text once a trial, and has as many different tools as cases at most.
@lru_cache(maxsize=1024)
def _tools_text(tools: tuple[ToolSpec, ...]) -> str:
    return write_canonical([t.to_dict() for t in tools])


def metadata_row(case: Case) -> dict[str, str]:
    # A value that is not text is told as JSON. The category has a column of its own.
    return {
        f"{EXTRA}{key}": value if isinstance(value, str) else _json(value)
        for key, value in case.metadata.items()
        if key != "category"
    }


def _json(value: Any) -> str:
    # As near to JSON as a value that is not JSON comes.
    # Most counts of rules and codes are empty, and every row asks for two of them.
    if not value and type(value) is dict:
        return "{}"
    try:
        return write_canonical(value)
    except TypeError:
        return json.dumps(value, default=str)


KEYS = (
    "run_id", "trial_id", "case_id", "trial", "model", "arm", "prompt_protocol", "parse_protocol",
    "policy",
)  # fmt: skip
key_cells: attrgetter[Cells] = attrgetter(*KEYS)
"""The cells that tell one trial from another."""


def keys_of(trial: Trial) -> dict[str, Any]:
    return dict(zip(KEYS, key_cells(trial), strict=True))


SCORE = (
    "outcome", "sub_code", "detail", "missing_reason", "score_success", "score_strict",
    "score_repaired", "score_safe", "score_naive", "score_fabricated", "rescues_json", "matching",
)  # fmt: skip


def score_cells(score: Score | None, missing_reason: str = "") -> Cells:
    """Return the cells of a score, but for those of the conversation.

    missing_reason: why there is nothing to judge, where the score does not say it better.
    """
    missing = missing_reason or None
    if score is None:
        return (None, None, None, missing, *[None] * 8)

    # These outcomes say nothing of the model, so that every rate leaves their rows out.
    if score.outcome == "provider_error" and missing is None:
        missing = f"provider error: {score.sub_code}"
    elif score.outcome == "ungraded":
        missing = "no target"
    s = score
    return (
        s.outcome, s.sub_code or None, s.detail, missing, s.success, s.strict, s.repaired, s.safe,
        s.naive, s.fabricated, _json({rule: counts for rule, *counts in s.rescues}),
        s.matching or None,
    )  # fmt: skip


DOUBTS = ("n_unchecked", "n_unknown_arguments")


def doubts_of(calls: Iterable[ToolCall]) -> Cells:
    # What the schemas could not judge, and what they do not know.
    codes = [problem.code for call in calls for problem in call.problems]
    return codes.count("validate.unchecked"), codes.count("call.unknown-argument")


CHANGES = ("n_edits", "n_reads", "n_coercions", "rules_json")


def changes_of(calls: Iterable[ToolCall]) -> Cells:
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
    return edits, reads, coercions, _json(dict(sorted(rules.items())))


COMPLAINTS = ("error_code", "codes_json")


def complaints_of(problems: Iterable[Problem]) -> Cells:
    # Complaints of severity info are notes, and not counted.
    codes: dict[str, int] = {}
    first = None  # of severity error
    for problem in problems:
        if problem.severity == "info":
            continue
        codes[problem.code] = codes.get(problem.code, 0) + 1
        if first is None and problem.severity == "error":
            first = problem.code

    return first, _json(dict(sorted(codes.items())))


RESULT = (
    "verdict", "n_calls", "n_ok", "n_valid", "n_problems", *DOUBTS, *CHANGES, *COMPLAINTS,
)  # fmt: skip
NO_RESULT: Cells = (None,) * len(RESULT)


def result_cells(result: ParseResult) -> Cells:
    """Return the cells of a parse: counts of calls, of changes and of complaints."""
    calls = result.calls
    problems = problems_in_order(result)
    ok = [call for call in calls if call.ok]
    return (
        result.verdict, len(calls), len(ok), sum(call.valid for call in ok), len(problems),
        *doubts_of(calls), *changes_of(calls), *complaints_of(problems),
    )  # fmt: skip


BLAME = ("blame", "blame_layer", "blame_code")
NO_BLAME: Cells = (None,) * len(BLAME)


def blame_cells(blame: Blame) -> Cells:
    """Return the cells that say which layer broke an answer."""
    return str(blame) or None, blame.layer, blame.code or None


_CONVERSATION = (
    "n_turns", "n_corrections", "stop", "final_text", "n_ran", "n_failed", "n_rejected",
    "conversation_tokens", "conversation_cost",
)  # fmt: skip


def _conversation_cells(conversation: Conversation) -> Cells:
    # A sum over some of the turns would pass for the whole, so one turn without a number leaves the
    # cell missing. A count of 0 tokens is no number either.
    answers = [turn.completion for turn in conversation.turns]
    pairs = [(c.prompt_tokens, c.completion_tokens) for c in answers]
    tokens = [sent + received for sent, received in pairs if sent and received]
    costs = [c.cost for c in answers if c.cost is not None]
    n_turns = len(answers)
    return (
        n_turns,
        sum(bool(turn.corrects) for turn in conversation.turns),
        conversation.stop,
        conversation.answer,
        *[conversation.counts.get(status) for status in ("ran", "failed", "rejected")],
        sum(tokens) if len(tokens) == n_turns else None,
        sum(costs) if len(costs) == n_turns else None,
    )


# Columns that are called as the fields they come from.
_FIELDS = (
    "raw", "status", "error_message", "finish_reason", "prompt_tokens", "completion_tokens", "cost",
    "latency", "ttft", "queue_wait", "attempt", "stream", "cut", "endpoint_kind", "fidelity",
    "system_fingerprint",
)  # fmt: skip
_fields = attrgetter(*_FIELDS)
COMPLETION = (
    *_FIELDS, "error", "error_param", "total_tokens", "retries", "raw_surrogates_json", "reasoning",
    "completion_key", "created", "model_name", "sampling_json", "served_model", "served_by",
    "endpoint", "provider_json", "server_json", "arguments_text", "reasoning_tokens",
    "cached_tokens", "cache_write_tokens", "tokens_estimate",
)  # fmt: skip


def completion_cells(c: Completion) -> Cells:
    """Return the cells of a recorded answer or a failed request."""
    # One direction alone would pass for the total.
    tokens = None
    if c.prompt_tokens is not None and c.completion_tokens is not None:
        tokens = c.prompt_tokens + c.completion_tokens
    sampling = sampling_of(c.request, c.response)
    # Older records have the model string as the model itself.
    model = c.request.get("model")
    name = model.get("name") if isinstance(model, Mapping) else model
    own = (
        c.error_kind, c.refused_param, tokens, c.attempt - 1, surrogate_offsets(c.raw),
        c.reasoning or None, c.key, c.created or None, name if isinstance(name, str) else None,
        None if sampling is None else _json(sampling),
    )  # fmt: skip
    response = c.response
    if not response:
        return (*_fields(c), *own, *[None] * 10)
    server = response.get("server")
    has_calls = isinstance(server, Mapping) and "calls" in server
    words = provider_words(response)
    return (
        *_fields(c),
        *own,
        _word(response.get("model")),
        _word(response.get("provider")),
        _word(response.get("endpoint")),
        _json(words) if words else None,
        _json(server) if has_calls else None,
        response.get("arguments_text"),
        *token_details(response).values(),
        response.get("tokens_estimate"),
    )


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


TRIAL = (
    *KEYS, "category", "input", "target", "tools_json", "tool_choice", *SCORE, "score_answer",
    "score_corrected", "note", "override", "override_why", "parse_version", *RESULT, *COMPLETION,
    *BLAME, *_CONVERSATION,
)  # fmt: skip
_NO_COMPLETION: Cells = (None,) * (len(COMPLETION) + len(BLAME))
_NO_CONVERSATION: Cells = (None,) * len(_CONVERSATION)


def trial_cells(trial: Trial) -> Cells:
    """Return the cells of a trial, in the order of `TRIAL`."""
    case, remarks, score, result = trial.case, trial.remarks, trial.score, trial.result
    choice = trial.levels.get("tool_choice", "auto")
    version, completion, conversation = None, _NO_COMPLETION, _NO_CONVERSATION
    if result is not None:
        version = version_of(trial.protocols.parse or trial.parse_protocol)
    if trial.completion is not None:
        completion = (*completion_cells(trial.completion), *blame_cells(trial.blame))
    if trial.conversation is not None:
        conversation = _conversation_cells(trial.conversation)
    return (
        *key_cells(trial),
        case.category or None,
        case.input_text,
        # A case without a target is not graded. One that wants no call has [].
        None if case.target is None else write_canonical(case.target),
        _tools_text(case.tools),
        choice if isinstance(choice, str) else write_canonical(dict(choice)),
        *score_cells(score, trial.missing_reason),
        score.answer if score is not None else None,
        score.corrected if score is not None else None,
        remarks.note or None,
        remarks.outcome or None,
        remarks.why or None,
        version,
        *(NO_RESULT if result is None else result_cells(result)),
        *completion,
        *conversation,
    )


CALL = (
    "index", "name", "status", "verdict", "ok", "valid", "confidence", "wire_id", "wire_format",
    "arguments_json", "source_json", "start", "end", "closed", *DOUBTS, *CHANGES, *COMPLAINTS,
)  # fmt: skip


def call_cells(call: ToolCall) -> Cells:
    """Return the cells of a call, but for those of its trial."""
    span = call.segment.span  # of the whole call in the text, with its delimiters
    return (
        call.index, call.name, call.status, call.verdict, call.ok, call.valid, call.confidence,
        call.wire_id, call.protocol, call.arguments_json or None, call.source_json or None,
        span.start, span.end, call.segment.closed, *doubts_of([call]), *changes_of([call]),
        *complaints_of(call.problems),
    )  # fmt: skip


def call_id(keys: Mapping[str, Any], call: ToolCall) -> str:
    # A single result has no trial: there the place alone is the id.
    trial_id = keys.get("trial_id")
    return f"{trial_id}/{call.index}" if trial_id else str(call.index)


def step_row(step: Step, raw: str) -> dict[str, Any]:
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
        "before_json": before,
        "after_json": step.after_json,
        "message": rule.sentence if rule else None,
        **_span_row(step.span),
    }


def problem_row(p: Problem) -> dict[str, Any]:
    return {
        "kind": "problem",
        "stage": p.stage,
        "code": p.code,
        "severity": p.severity,
        "path": p.path,
        "message": p.message or (CODES[p.code].sentence if p.code in CODES else None),
        **_span_row(p.span),
    }


def _span_row(span: Span | None) -> dict[str, Any]:
    return {"start": span.start, "end": span.end} if span else {}
