"""Scoring one trial so that whatever goes wrong in it stays with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ...core.errors import ToolparseError
from ...core.types import ParseResult
from ...formats.base import Signs
from ...middleware.flow.reading import internal_problem, internal_problem_of
from ...runner.exchange.types import Completion
from ..cases.case import Case
from ..cases.matchers import DEFAULT_MATCHERS, Matchers
from .score import Score, score_completion

# How it works. A run of ten thousand trials must not end at the one that our code has a fault for.
# Reading turns an exception into a result with a problem; here scoring does the same, and a trial
# whose reading failed has no score: what the parser could not look at says nothing of the model.


def score_in_isolation(
    case: Case,
    completion: Completion | None,
    result: ParseResult | None,
    matchers: Matchers = DEFAULT_MATCHERS,
    signs: Signs | None = None,
) -> tuple[Score | None, ParseResult | None, str]:
    """Score one answer: the score, the result, and why there is no score, '' if there is one or
    nothing went wrong.

    The result has one more problem where scoring failed. Raises only errors of this package, which
    are about the caller's own input.
    """
    if problem := internal_problem_of(result):
        return None, result, problem.message
    return attempt(
        lambda: score_completion(case, completion, result, matchers, signs), result, "scoring"
    )


def attempt(
    score: Callable[[], Score | None], result: ParseResult | None, activity: str
) -> tuple[Score | None, ParseResult | None, str]:
    """Return the result of `score`, or no score, the result with a problem, and the problem in
    words.

    activity: the work under way, for the message.
    """
    try:
        return score(), result, ""
    except ToolparseError:
        raise
    except Exception as error:
        problem = internal_problem(error, activity)
        if result is not None:
            result = replace(result, problems=(*result.problems, problem))
        return None, result, problem.message
