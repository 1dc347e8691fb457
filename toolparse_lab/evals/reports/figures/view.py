"""A run as its reports see it: the rows of its trials, and what no row says."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import pandas as pd

from ...cases.case import Case
from ...frames.parsing import try_read_row
from ...scoring.score import Score, score_text
from .cells import check_trials
from .ladder import Levels

if TYPE_CHECKING:
    from ...scoring.trial import Trial

Opener: TypeAlias = Callable[[str], "Trial"]
"""Trial id -> its trial."""
WholeRows: TypeAlias = Callable[[Collection[str]], pd.DataFrame]
"""Trial ids -> their rows, with every column."""


def rows_of(part: pd.DataFrame) -> list[dict[str, Any]]:
    """Return rows as dicts, None for what is missing."""
    part = part.astype(object)
    rows: list[Any] = part.where(part.notna(), None).to_dict("records")
    return rows


@dataclass(frozen=True, eq=False)
class RunView:
    """What reports and comparisons are made from. A trials frame alone does, see `of`.

    Attributes:
        trials: a row per trial and policy, with the columns of `cells.REQUIRED`.
        name: what the run is called in a comparison, by default its id.
        stops: sentences that say why the run ended before its plan (a budget, an interrupt).
        unknown: parts of the run's plan that this version does not know.
        models: alias -> name of the model.
        peers: arm -> the arm it is compared with, where a baseline is a protocol of several arms.
        arms: arm -> its factors, for the ladder's layer of the prompt.
        open_trial: gives the trial of an id.
        whole_rows: gives rows with all columns, where `trials` has only those of `cells.READ`.
        calls: gives the calls frame of the trials, for figures tool by tool.
    """

    trials: pd.DataFrame
    name: str = ""
    stops: Iterable[str] = ()
    unknown: Sequence[str] = ()
    models: Mapping[str, str] = field(default_factory=dict)
    peers: Mapping[str, str] = field(default_factory=dict)
    arms: Levels = field(default_factory=dict)
    open_trial: Opener | None = None
    whole_rows: WholeRows | None = None
    calls: Callable[[], pd.DataFrame] | None = None

    @classmethod
    def of(cls, source: RunView | pd.DataFrame) -> RunView:
        """Return a view as it is, or that of a trials frame.

        Raises BadOptions for a frame without the columns of a trials frame.
        """
        view = source if isinstance(source, RunView) else cls(source)
        check_trials(view.trials)
        return view

    def why(self, row: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the score of a whole row in words, then a line for each thing that is wrong."""
        score = None
        if self.open_trial is not None:
            score = self.open_trial(str(row["trial_id"])).score
        elif (result := try_read_row(row)) is not None and isinstance(row.get("target"), str):
            case = Case(str(row["case_id"]), "", result.tools, json.loads(row["target"]))
            score = score_text(case, result)
        # A frame may have been scored by other matchers.
        outcome, code, detail = (str(row[c] or "") for c in ("outcome", "sub_code", "detail"))
        own = str(Score(outcome, code, detail))
        if score is None or str(score) != own:
            return (own,)
        rules = ", ".join(json.loads(row["rules_json"] or "{}"))
        return (f"{own} (changed: {rules})" if rules else own, *score.why[1:])

    def rows(self, ids: Collection[str]) -> pd.DataFrame:
        """Return the rows of the trials of these ids, with all that is known of them."""
        if self.whole_rows is not None:
            return self.whole_rows(ids)
        return self.trials[self.trials["trial_id"].isin(ids)]

    def whole(self, part: pd.DataFrame) -> pd.DataFrame:
        """Return rows of `trials`, in their order, with all that is known of them."""
        if self.whole_rows is None:
            return part
        ids = part["trial_id"].tolist()
        return self.whole_rows(ids).set_index("trial_id", drop=False).loc[ids]
