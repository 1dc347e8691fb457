"""A run as its reports see it: the rows of its trials, and what no row says."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import pandas as pd

from .cells import check_trials
from .ladder import Levels

if TYPE_CHECKING:
    from ...scoring.trial import Trial

Opener: TypeAlias = Callable[[str], "Trial"]
"""Trial id -> its trial."""
WholeRows: TypeAlias = Callable[[Collection[str]], pd.DataFrame]
"""Trial ids -> their rows, with every column."""


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
