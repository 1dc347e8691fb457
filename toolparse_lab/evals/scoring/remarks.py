"""A person's remarks beside a trial: a note, and an outcome set by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ...core.errors import BadOptions, near
from .outcomes import OUTCOMES


@dataclass(frozen=True, slots=True)
class Remarks:
    """A note, and an outcome set by hand with its reason. '' if there is none.

    `keep` writes changed parts of a trial's remarks, by its id, into the store of its run, or None
    if a trial comes without one.
    """

    note: str = ""
    outcome: str = ""
    why: str = ""
    keep: Callable[[str, Mapping[str, str]], None] | None = field(
        default=None, repr=False, compare=False
    )

    def with_note(self, trial_id: str, text: str) -> Remarks:
        """Keep and return these remarks with another note.

        Raises BadOptions if nothing keeps them.
        """
        return self._kept(trial_id, {"note": str(text)})

    def with_outcome(self, trial_id: str, outcome: str | None, why: str) -> Remarks:
        """Keep and return these remarks with another outcome, None for that of the score.

        Raises BadOptions for an outcome that does not exist, and where nothing keeps them.
        """
        if outcome is not None and outcome not in OUTCOMES:
            raise BadOptions(
                "there is no such outcome",
                got=outcome,
                expected=", ".join(OUTCOMES),
                hint=near(outcome, OUTCOMES),
            )
        reason = str(why) if outcome else ""
        return self._kept(trial_id, {"outcome": outcome or "", "why": reason})

    def _kept(self, trial_id: str, parts: Mapping[str, str]) -> Remarks:
        """Write the parts that change, and return these remarks with them."""
        if self.keep is None:
            raise BadOptions(
                "this trial has no store that could keep a remark",
                got=trial_id,
                hint="take it from a run of a Lab",
            )
        self.keep(trial_id, parts)
        return Remarks(
            **{"note": self.note, "outcome": self.outcome, "why": self.why, **parts}, keep=self.keep
        )


NO_REMARKS = Remarks()
