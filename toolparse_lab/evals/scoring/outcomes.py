"""The outcomes a trial can have: exclusive, in the order of their precedence, each with one
sentence.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Outcome:
    """One outcome.

    `group` is who it speaks about: success, model, parser, limit (the answer was not finished),
    provider or none. `label` is the short text in charts.
    """

    id: str
    group: str
    label: str
    sentence: str


_OUTCOMES = (
    Outcome("provider_error", "provider", "provider error", "The provider failed, so the model "
        "was never heard."),
    Outcome("context_overflow", "limit", "context overflow", "The request did not fit the model's "
        "context."),
    Outcome("refused", "model", "refused", "A content filter of the provider or the model stopped "
        "the answer."),
    Outcome("empty", "model", "empty", "The answer is empty or white space."),
    Outcome("reasoning_only", "limit", "reasoning only", "The answer ends with the reasoning; "
        "nothing follows it."),
    Outcome("reader_error", "none", "reader error", "The parser of another project failed, "
        "ended or took too long, so nothing was read."),
    Outcome("truncated", "limit", "truncated", "The answer was cut off before it was finished."),
    Outcome("fabricated", "parser", "fabricated", "A call has a name or value that is not "
        "in the text."),
    Outcome("held_back", "parser", "held back", "A call was read, and held back as one that the "
        "text only shows."),
    Outcome("attempted_unparseable", "parser", "unparseable", "A call was tried, and none could "
        "be read."),
    Outcome("self_answered", "model", "self-answered", "The model wrote the tool's result itself."),
    Outcome("wrong_call", "model", "wrong call", "A call was read, but it is not the one that was "
        "asked for."),
    Outcome("abstained_correctly", "success", "abstained", "No call was wanted and none was "
        "tried."),
    Outcome("abstained_wrongly", "model", "no call", "A call was wanted and none was tried."),
    Outcome("correct", "success", "correct", "The calls are the ones that were asked for."),
    Outcome("ungraded", "none", "ungraded", "The case has no target."),
)  # fmt: skip

OUTCOMES: dict[str, Outcome] = {o.id: o for o in _OUTCOMES}
SUCCESSES = frozenset(o.id for o in _OUTCOMES if o.group == "success")
MISSING = frozenset({"provider_error"})
"""Outcomes that say nothing of the model: missing in every rate."""


def is_failure(outcome: str | None, broken: bool) -> bool:
    """Return True for an outcome to look at: no success. Without a target only a problem of
    severity error, which `broken` says, is a failure, and without a score ('' or None) nothing is.

    >>> is_failure("wrong_call", False), is_failure("ungraded", False), is_failure("", True)
    (True, False, False)
    """
    if not outcome or outcome in SUCCESSES:
        return False
    return broken if outcome == "ungraded" else True


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
