"""What the answers of a log are: how many can be executed, and what stops the others, or which rows
of a trials frame are failures, and why. One count for pages, terminals and files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from ...core.values.printable import counted
from ...views.words import Group, groups_of, word_of
from ..scoring.outcomes import cause_of

NOT_JUDGED = "No expected answers, so “right” is not judged."
_UNANSWERED = ("provider_error", "context_overflow")
_GOOD = ("clean", "repaired (lossless)", "repaired (lossy)", "unchecked")


@dataclass(frozen=True, slots=True)
class Account:
    """Every answer counted once: `broken` by cause, the executable by verdict, `silent` without a
    call. `unanswered` requests are none of the answers.

    Attributes:
        answers: how many there are.
        stopped: the cause of each that cannot be executed.
        good: verdict -> how many can, the ones as written first.
        toolless: how many of these had no tools that their names and arguments could be held to.
    """

    answers: int
    unanswered: int
    stopped: Sequence[str]
    good: dict[str, int]
    toolless: int = 0

    @property
    def broken(self) -> int:
        return len(self.stopped)

    @property
    def silent(self) -> int:
        return self.answers - self.broken - sum(self.good.values())

    @property
    def groups(self) -> list[Group]:
        """What stops the broken ones, by the words for people, in the order of the pipeline."""
        return groups_of(self.stopped)

    @property
    def first(self) -> str:
        """The one sentence, without its stop."""
        if not self.answers:
            return "There are no answers"
        if not self.broken and not self.silent:
            return f"All {counted(self.answers, 'answer')} can be executed"
        return f"{self.broken:,} of {counted(self.answers, 'answer')} cannot be executed"

    @property
    def rest(self) -> str:
        """The parts of the others, as sentences."""
        parts = [f"{n:,} {word_of(verdict)}" for verdict, n in self.good.items()]
        n, said = sum(self.good.values()), []
        if len(parts) == 1 and n < self.answers:
            said.append(f"{n:,} can, {word_of(next(iter(self.good)))}")
        elif parts:
            said.append(f"{n:,} can: {', '.join(parts)}" if n < self.answers else ", ".join(parts))
        if self.toolless:
            had = f"{self.toolless:,} had no tools" if self.toolless < n else "No tools were given"
            said.append(f"{had}, so names and arguments were not checked")
        if self.silent:
            said.append(f"{self.silent:,} {'holds' if self.silent == 1 else 'hold'} no call")
        if self.unanswered:
            said.append(f"{counted(self.unanswered, 'request')} got no answer")
        return " ".join(f"{sentence}." for sentence in said)

    @property
    def text(self) -> str:
        return f"{self.first}. {self.rest}".rstrip()


def account_of(rows: pd.DataFrame) -> Account:
    """Return the account of the rows of a trials frame of one policy."""
    outcomes = rows["outcome"].astype("string").fillna("")
    answered = outcomes.ne("") & ~outcomes.isin(_UNANSWERED)
    part = rows[answered]
    stopped = causes(part, graded=False)
    verdicts, toolless = Counter[str](), 0
    if "verdict" in part:
        free = pd.Series(stopped, part.index, dtype=object).eq("")
        words = part["verdict"].astype("string").fillna("").where(free, "")
        verdicts.update(words)
        if "tools_json" in part:
            toolless = int((words.isin(_GOOD) & part["tools_json"].isin(["[]"])).sum())
    return Account(
        len(part),
        len(rows) - len(part),
        [cause for cause in stopped if cause],
        {verdict: verdicts[verdict] for verdict in _GOOD if verdicts[verdict]},
        toolless,
    )


def failing_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a trials frame that fail, with a column `cause`.

    With a target those that were judged and are wrong, without one the answers that cannot be
    executed. A request without an answer is not among them.
    """
    reasons = pd.Series(causes(rows), rows.index, dtype=object)
    outcomes = rows["outcome"].astype("string").fillna("")
    judged = rows["score_success"].notna() if "score_success" in rows else rows["target"].notna()
    answered = outcomes.ne("") & ~outcomes.isin(_UNANSWERED)
    fails = reasons.ne("") & (judged | (rows["target"].isna() & answered))
    return rows[fails].assign(cause=reasons[fails])


def causes(trials: pd.DataFrame, *, graded: bool = True) -> list[str]:
    """Return why each row of a trials frame is a failure, '' for one that is none, see `cause_of`.

    trials: needs the columns `outcome`, `sub_code`, `error_code` and `target` alone. graded: False
    asks of every row what is asked without a target.
    """
    words = [
        trials[name].astype("string").fillna("").tolist() if name in trials else [""] * len(trials)
        for name in ("outcome", "sub_code", "error_code")
    ]
    wanted = trials["target"].notna().tolist() if graded and "target" in trials else None
    known: dict[tuple[str, str, str, bool], str] = {}
    found = []
    for key in zip(*words, wanted or [False] * len(trials), strict=True):
        if key not in known:
            known[key] = cause_of(*key[:3], graded=key[3])
        found.append(known[key])
    return found


def failed_rows(trials: pd.DataFrame) -> list[bool]:
    """Return True for each row of a trials frame that has a cause to be a failure, see `causes`."""
    return [bool(cause) for cause in causes(trials)]
