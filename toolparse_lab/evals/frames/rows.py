"""The cells of one row: each part of a trial fills the columns of its own."""

# A name that a mapping leaves out is a missing cell: that is how a trial without an answer, or a
# problem without a span, says so. The names are those of the declared columns.

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from ...core.rules import CODES, RULES
from ...core.toolspec import ToolSpec
from ...core.types import Blame, ParseResult, Problem, Span, Step, ToolCall
from ...core.types.tokens import Token, leaves_of, total_logprob
from ...core.values import pointer_get, read_strict, write_canonical
from ...runner.exchange.details import provider_words, sampling_of, token_details
from ...runner.exchange.types import Completion
from ..parsers.outside import version_of
from ..scoring.outcomes import problems_in_order
from ..scoring.rescues import changes_in
from .dtypes import EXTRA, surrogate_offsets

if TYPE_CHECKING:
    from ...middleware.flow import Conversation
    from ..cases.case import Case
    from ..scoring.score import Score
    from ..scoring.trial import Trial

_LEVELS = ("success", "strict", "repaired", "safe", "naive", "fabricated")


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


def fields_of(x: Any, names: str) -> dict[str, Any]:
    # Columns that are called as the fields they come from.
    words, values_of = _getter(names)
    return dict(zip(words, values_of(x), strict=True))


@cache
def _getter(names: str) -> tuple[list[str], attrgetter[tuple[Any, ...]]]:
    words = names.split()
    return words, attrgetter(*words)


def keys_of(trial: Trial) -> dict[str, Any]:
    names = "run_id trial_id case_id trial model arm prompt_protocol parse_protocol policy"
    return fields_of(trial, names)


def trial_row(trial: Trial) -> dict[str, Any]:
    # Each part of a trial has its columns, and no two of them fill the same one.
    case, remarks = trial.case, trial.remarks
    choice = trial.levels.get("tool_choice", "auto")
    row = keys_of(trial) | {
        "category": case.category or None,
        "input": case.input_text,
        # A case without a target is not graded. One that wants no call has [].
        "target": None if case.target is None else write_canonical(case.target),
        "tools_json": _tools_text(case.tools),
        "tool_choice": choice if isinstance(choice, str) else write_canonical(dict(choice)),
        **score_row(trial.score, trial.missing_reason),
        "score_answer": trial.score.answer if trial.score is not None else None,
        "score_corrected": trial.score.corrected if trial.score is not None else None,
        "note": remarks.note or None,
        "override": remarks.outcome or None,
        "override_why": remarks.why or None,
    }
    if trial.result is not None:
        row["parse_version"] = version_of(trial.protocols.parse or trial.parse_protocol)
        row |= result_row(trial.result)
    if trial.completion is not None:
        row |= completion_row(trial.completion)
        row |= blame_row(trial.blame)
    if trial.conversation is not None:
        row |= _conversation_row(trial.conversation)
    return row


def score_row(score: Score | None, missing_reason: str = "") -> dict[str, Any]:
    """Return the columns that a score fills, but for those of the conversation.

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
        **{f"score_{level}": getattr(score, level) for level in _LEVELS},
        "rescues_json": _json({rule: counts for rule, *counts in score.rescues}),
        "matching": score.matching or None,
    }


def result_row(result: ParseResult) -> dict[str, Any]:
    """Return the columns that a parse fills: counts of calls, of changes and of complaints."""
    calls = result.calls
    problems = problems_in_order(result)
    ok = [call for call in calls if call.ok]
    return {
        "verdict": result.verdict,
        "n_calls": len(calls),
        "n_ok": len(ok),
        "n_valid": sum(call.valid for call in ok),
        "n_problems": len(problems),
        **doubts_of(calls),
        **changes_of(calls),
        **complaints_of(problems),
    }


def blame_row(blame: Blame) -> dict[str, Any]:
    """Return the columns that say which layer broke an answer."""
    return {
        "blame": str(blame) or None,
        "blame_layer": blame.layer,
        "blame_code": blame.code or None,
    }


def _conversation_row(conversation: Conversation) -> dict[str, Any]:
    # A sum over some of the turns would pass for the whole, so one turn without a number leaves the
    # cell missing. A count of 0 tokens is no number either.
    answers = [turn.completion for turn in conversation.turns]
    pairs = [(c.prompt_tokens, c.completion_tokens) for c in answers]
    tokens = [sent + received for sent, received in pairs if sent and received]
    costs = [c.cost for c in answers if c.cost is not None]
    n_turns = len(answers)
    return {
        "n_turns": n_turns,
        "n_corrections": sum(bool(turn.corrects) for turn in conversation.turns),
        "stop": conversation.stop,
        "final_text": conversation.answer,
        **{f"n_{status}": n for status, n in conversation.counts.items()},
        "conversation_tokens": sum(tokens) if len(tokens) == n_turns else None,
        "conversation_cost": sum(costs) if len(costs) == n_turns else None,
    }


def completion_row(c: Completion) -> dict[str, Any]:
    """Return the columns that a recorded answer or a failed request fills."""
    # One direction alone would pass for the total.
    tokens = None
    if c.prompt_tokens is not None and c.completion_tokens is not None:
        tokens = c.prompt_tokens + c.completion_tokens

    server = (c.response or {}).get("server")
    has_calls = isinstance(server, Mapping) and "calls" in server
    sampling = sampling_of(c.request, c.response)
    response = c.response or {}
    words = provider_words(response)
    # Older records have the model string as the model itself.
    model = c.request.get("model")
    name = model.get("name") if isinstance(model, Mapping) else model
    return {
        **fields_of(
            c,
            "raw status error_message finish_reason prompt_tokens completion_tokens cost latency "
            "ttft queue_wait attempt stream cut endpoint_kind fidelity system_fingerprint",
        ),
        "model_name": name if isinstance(name, str) else None,
        "served_model": _word(response.get("model")),
        "served_by": _word(response.get("provider")),
        "endpoint": _word(response.get("endpoint")),
        "provider_json": _json(words) if words else None,
        "server_json": _json(server) if has_calls else None,
        "arguments_text": response.get("arguments_text"),
        "error": c.error_kind,
        "sampling_json": None if sampling is None else _json(sampling),
        "error_param": c.refused_param,
        "total_tokens": tokens,
        **token_details(c.response),
        "retries": c.attempt - 1,
        "raw_surrogates_json": surrogate_offsets(c.raw),
        "reasoning": c.reasoning or None,
        "completion_key": c.key,
        "created": c.created or None,
    }


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def doubts_of(calls: Iterable[ToolCall]) -> dict[str, Any]:
    # What the schemas could not judge, and what they do not know.
    doubts = {"n_unchecked": 0, "n_unknown_arguments": 0}
    for call in calls:
        for problem in call.problems:
            doubts["n_unchecked"] += problem.code == "validate.unchecked"
            doubts["n_unknown_arguments"] += problem.code == "call.unknown-argument"
    return doubts


def changes_of(calls: Iterable[ToolCall]) -> dict[str, Any]:
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


def complaints_of(problems: Iterable[Problem]) -> dict[str, Any]:
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


def call_id(keys: Mapping[str, Any], call: ToolCall) -> str:
    # A single result has no trial: there the place alone is the id.
    trial_id = keys.get("trial_id")
    return f"{trial_id}/{call.index}" if trial_id else str(call.index)


def argument_rows(
    result: ParseResult, judged: Mapping[tuple[int, str], bool]
) -> Iterator[dict[str, Any]]:
    """Yield the cells of each argument of a result's calls. judged: those that are right or not, by
    the index of their call and their path.
    """
    for call in result.calls:
        if not call.readable:
            continue
        origins = call.origins.get()
        value = read_strict(call.arguments_json)
        changed = {path for _, path in changes_in(call, result.raw)}
        for path, span in leaves_of(origins):
            yield {
                "index": call.index,
                "name": call.name,
                "path": path,
                "value_json": write_canonical(pointer_get(value, path)),
                "start": span.start,
                "end": span.end,
                "exact": origins[path].exact,
                "changed": path in changed,
                "right": judged.get((call.index, path)),
                **_tokens_row(call.tokens(path) if result.tokens is not None else ()),
            }


def _tokens_row(tokens: Sequence[Token]) -> dict[str, Any]:
    if not tokens:
        return {}
    logprobs = [token.logprob for token in tokens if token.logprob is not None]
    entropies = [token.entropy for token in tokens if token.entropy is not None]
    total = total_logprob(tokens)
    return {
        "n_tokens": len(tokens),
        "logprob": total,
        "min_logprob": None if total is None else min(logprobs),
        "entropy": max(entropies, default=None),
    }


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
