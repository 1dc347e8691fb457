"""The one word on a call or a result, which every view, frame and report shows."""

# How it works. Words are ordered from best to worst, and a thing has the worst word that applies to
# it: a call the worst of what its status, its problems and its rules say, a result the worst of its
# calls. Nothing is stored: the word follows from what the result records, so that an older result
# has one too. `result` and `call` import this file, which therefore imports neither.

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from .call import ToolCall

Verdict: TypeAlias = Literal[
    "none",
    "clean",
    "repaired (lossless)",
    "repaired (lossy)",
    "invalid",
    "refused",
    "truncated",
    "echoed",
]

VERDICTS: tuple[Verdict, ...] = (
    "none",
    "clean",
    "repaired (lossless)",
    "repaired (lossy)",
    "invalid",
    "refused",
    "truncated",
    "echoed",
)
"""From best to worst; `none` is a result without a call."""

EXECUTABLE: frozenset[Verdict] = frozenset(VERDICTS[1:4])
"""The verdicts under which a call may be executed."""

_RANK = {word: rank for rank, word in enumerate(VERDICTS)}
_ECHOED = "call.echoed"
_REPEATED = "call.repeated-set"


def verdict_of_call(call: ToolCall) -> Verdict:
    """Return the verdict on a call."""
    # clean: written in its format and to its schema, without any change. repaired: executable after
    # repairs, readings, coercions or a recovery, lossless where none of them guessed or dropped
    # anything. invalid: readable, but its arguments break the schema. refused: not readable, of an
    # unknown tool, or a draft. truncated: cut off. echoed: another wrote it.
    # Where echoes are allowed, the code is there as a warning.
    if any(p.code == _ECHOED and p.severity == "error" for p in call.problems):
        return "echoed"
    if call.status == "truncated":
        return "truncated"
    if not call.ok:
        return "refused"
    if not call.valid:
        return "invalid"
    return _change_of(call)


def verdict_of_calls(calls: Iterable[ToolCall]) -> Verdict:
    """Return the worst verdict on some calls, `none` if there are none."""
    # A call that the answer says again says nothing of the answer.
    verdicts = (verdict_of_call(call) for call in calls if not is_repeat(call))
    return max(verdicts, key=_RANK.__getitem__, default="none")


def is_repeat(call: ToolCall) -> bool:
    """Return True for a call that the answer says again, and that is executed once."""
    return call.status == "draft" and any(p.code == _REPEATED for p in call.problems)


def _change_of(call: ToolCall) -> Verdict:
    if not call.edits and not call.steps and not call.problems:
        return "clean"
    from ..rules import CODES, RULES  # start-up time: parsing needs no rule's description

    # A rule that nobody described counts as one that may lose something.
    rules = [e.rule for e in call.edits] + [s.rule for s in call.steps]
    losses = [rule not in RULES or not RULES[rule].lossless for rule in rules]
    for problem in call.problems:
        code = CODES.get(problem.code)
        if code is not None and code.lossless is not None:
            losses.append(not code.lossless)
    if not losses:
        return "clean"
    return "repaired (lossy)" if any(losses) else "repaired (lossless)"
