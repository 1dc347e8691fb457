"""The outcomes a trial can have: exclusive, in the order of their precedence, each with one
sentence.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...core.types import ParseResult, Problem
from ...middleware.flow.reading import INTERNAL_ERROR


@dataclass(frozen=True, slots=True)
class Outcome:
    """One outcome.

    `group` is who it speaks about: success, model, parser, limit (the answer was not finished),
    provider or none.
    """

    id: str
    group: str
    sentence: str


_OUTCOMES = (
    Outcome("provider_error", "provider", "The provider failed, so the model "
        "was never heard."),
    Outcome("context_overflow", "limit", "The request did not fit the model's "
        "context."),
    Outcome("refused", "model", "A content filter of the provider or the model stopped "
        "the answer."),
    Outcome("empty", "model", "The answer is empty or white space."),
    Outcome("reasoning_only", "limit", "The answer ends with the reasoning; "
        "nothing follows it."),
    Outcome("reader_error", "none", "The parser of another project failed, "
        "ended or took too long, so nothing was read."),
    Outcome("truncated", "limit", "The answer was cut off before it was finished."),
    Outcome("fabricated", "parser", "A call has a name or value that is not "
        "in the text."),
    Outcome("held_back", "parser", "A call was read, and held back as one that the "
        "text only shows."),
    Outcome("attempted_unparseable", "parser", "A call was tried, and none could "
        "be read."),
    Outcome("self_answered", "model", "The model wrote the tool's result itself."),
    Outcome("wrong_call", "model", "A call was read, but it is not the one that was "
        "asked for."),
    Outcome("abstained_correctly", "success", "No call was wanted and none was "
        "tried."),
    Outcome("abstained_wrongly", "model", "A call was wanted and none was tried."),
    Outcome("correct", "success", "The calls are the ones that were asked for."),
    Outcome("ungraded", "none", "The case has no target."),
)  # fmt: skip

OUTCOMES: dict[str, Outcome] = {o.id: o for o in _OUTCOMES}
SUCCESSES = frozenset(o.id for o in _OUTCOMES if o.group == "success")
MISSING = frozenset({"provider_error"})
"""Outcomes that say nothing of the model: missing in every rate."""


# Of a request that was not answered as it should be, whatever was wanted.
_UNANSWERED = frozenset({"provider_error", "context_overflow", "reader_error"})
# An attempt that nobody can execute, whatever was wanted.
_LOST = frozenset({"attempted_unparseable", "fabricated", "held_back"})


def problems_in_order(result: ParseResult) -> list[Problem]:
    """Return a result's problems: internal ones, those of each call, then those of the text."""
    problems = [problem for call in result.calls for problem in call.problems]
    problems += result.problems
    return sorted(problems, key=lambda problem: problem.code != INTERNAL_ERROR)


def first_error(result: ParseResult) -> str:
    """Return the code of the first problem of severity error, '' for none."""
    return next((p.code for p in problems_in_order(result) if p.severity == "error"), "")


def cause_of(outcome: str, sub_code: str, error_code: str, *, graded: bool) -> str:
    """Return why a trial is a failure, as a code, and '' for one that is none.

    With a target it is a failure if it is no success, and the cause is its outcome, or what says it
    more exactly. Without one it is a failure if not every call can be executed, or if an attempt
    was lost: the cause is what stops the first such call. A request that a provider failed is one
    in both, and without a score nothing is.

    error_code: the first problem of severity error, those of calls before those of the text.

    >>> cause_of("wrong_call", "name", "", graded=True)
    'name'
    >>> cause_of("ungraded", "not_lifted", "validate.type", graded=False)
    'validate.type'
    >>> cause_of("empty", "", "", graded=False)
    ''
    """
    if error_code == INTERNAL_ERROR:
        return error_code
    if not outcome or outcome in SUCCESSES:
        return ""
    if graded or outcome in _UNANSWERED or sub_code == "cut_stream":
        return sub_code or outcome
    return error_code or (sub_code or outcome if outcome in _LOST else "")


SUB_CODES: dict[str, str] = {
    "name": "Another tool of the list was called.",
    "unknown_tool": "The called tool is not in the list.",
    "missing_argument": "A required argument is not there.",
    "extra_argument": "An argument is there that was not asked for.",
    "wrong_argument": "An argument has another value than was asked for.",
    "count": "There are more or fewer calls than were asked for.",
    "unexpected_call": "A call was made where none was wanted.",
    "order": "The calls are the right ones, in another order than was asked for.",
    "forbidden_call": "A call was made that the target forbids.",
    "one_of_several_broken": "At least one of several calls could not be read.",
    "length": "The token limit was reached.",
    "cut_stream": "The stream ended without a finish part.",
    "open_call": "The text ends inside a call.",
    "open_reasoning": "The text ends inside the reasoning.",
    "unread_part": "The response has a part of a kind that nobody knows, and no call was read.",
    "no_calls": "The finish reason says that there is a call, and the response has none.",
    "in_reasoning": "A call is in the reasoning, and nothing follows it.",
    "escaped": "The text holds a call whose marks are escaped, but no call was found.",
    "not_lifted": "The server was offered tools, and left the call in its text, where it was read.",
    "undecodable": "The body of the call could not be read.",
    "incomplete": "The model ended its answer inside a call.",
    "delimiter": "The text holds a call delimiter, but no call was found.",
    "json": "The text holds a JSON object that names a tool, but no call was found.",
    "code": "The text holds a tool call written as code, but no call was found.",
    "markup": "The text holds an element with a tool's name, but no call was found.",
    "keys": "The text holds a tool's name with its parameters as keys, but no call was found.",
}
