"""The figures of an ablation: frames, each with its n and intervals, of one recorded set of
answers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from typing import Any

import pandas as pd

from ...core.errors import BadOptions, MissingRecording, near
from ...core.values.printable import counted
from . import cells, layers, rows
from .recording import Recorded

BY = ("model", "protocol")
FIGURES = (
    "cells", "tests", "attribution", "layer1", "layer2", "rules", "layer3", "detectors", "costs",
    "scenarios", "thresholds",
)  # fmt: skip
"""The frames of an ablation, in the order in which they are shown."""


def check_names(names: Iterable[Any], choices: Collection[str], problem: str) -> None:
    """Raise BadOptions for the first name that is not among the choices."""
    for name in names:
        if name not in choices:
            raise BadOptions(
                problem, got=name, expected=", ".join(choices), hint=near(str(name), choices)
            )


class Figures:
    """The figures of an ablation as pandas frames, each made when it is first asked for.

    recorded: their parts. Nothing here asks a model. by: the columns that they are grouped by.
    """

    def __init__(self, recorded: Recorded, by: Sequence[str] = BY) -> None:
        check_names(by, BY, "an ablation is not grouped by this")
        self.recorded = recorded
        self.settings = recorded.settings
        self.run = recorded.run
        self.by = tuple(by)

    @cached_property
    def missing(self) -> tuple[str, ...]:
        """The keys of the questions without an answer: base ones, then corrections that layer 3 may
        ask. Later corrections of a path are known only when these are answered.
        """
        base = [one.question.item.key for one in self.recorded.answers if one.parsed is None]
        return tuple(dict.fromkeys((*base, *self.recorded.open_questions)))

    def check(self) -> None:
        """Raise MissingRecording that names the things to be recorded, if anything."""
        if self.missing:
            names = ", ".join(self.missing[:5])
            more = f" and {len(self.missing) - 5} more" if len(self.missing) > 5 else ""
            raise MissingRecording(
                f"not recorded for this ablation: {counted(len(self.missing), 'answer')}, "
                f"{names}{more}",
                keys=self.missing,
                hint=f"lab.ablation({self.run.run_id!r}) with the models asks them",
            )

    # the recorded answers

    @cached_property
    def answers(self) -> pd.DataFrame:
        """One row per answer × policy × layer 3: rungs and costs."""
        return rows.answers_frame(self.recorded)

    @cached_property
    def calls(self) -> pd.DataFrame:
        """One row per call × policy: before layer 3 and after it."""
        return rows.calls_frame(self.recorded)

    @cached_property
    def corrections(self) -> pd.DataFrame:
        """One row per correction of a call × policy."""
        return rows.corrections_frame(self.recorded)

    # the figures

    @cached_property
    def cells(self) -> pd.DataFrame:
        """The eight cells: rungs, n, intervals. See `cells.cells_frame`."""
        return cells.cells_frame(self.answers, self.settings.policy, self.by, self.settings.level)

    @cached_property
    def tests(self) -> pd.DataFrame:
        """Paired tests between cells. See `cells.tests_frame`."""
        return cells.tests_frame(self.answers, self.settings.policy, self.by, self.settings.level)

    @cached_property
    def attribution(self) -> pd.DataFrame:
        """The waterfall, and Shapley shares beside it. See `cells.attribution_frame`."""
        return cells.attribution_frame(
            self.answers, self.settings.policy, self.by, self.settings.level
        )

    @cached_property
    def layer1(self) -> pd.DataFrame:
        """Type errors as written, and the price of the prompt. See `layers.layer1_frame`."""
        return layers.layer1_frame(
            self.answers, self.calls, self.tests, self.by, self.settings.level
        )

    @cached_property
    def layer2(self) -> pd.DataFrame:
        """Rescues of every policy, true and false. See `layers.layer2_frame`."""
        return layers.layer2_frame(self.calls, self.settings.policies, self.by, self.settings.level)

    @cached_property
    def rules(self) -> pd.DataFrame:
        """Coercion rules: applied, right, wrong. See `layers.rules_frame`."""
        return layers.rules_frame(self.calls, self.settings.policies, self.settings.level)

    @cached_property
    def layer3(self) -> pd.DataFrame:
        """Corrections. See `layers.layer3_frame`."""
        return layers.layer3_frame(
            self.calls,
            self.corrections,
            self.settings.correct_under,
            self.settings.feedback.max_validation_retries,
            self.by,
            self.settings.level,
        )

    @cached_property
    def detectors(self) -> pd.DataFrame:
        """Precision and recall of detectors. See `layers.detectors_frame`."""
        return layers.detectors_frame(self.recorded, self.settings.level)

    @cached_property
    def costs(self) -> pd.DataFrame:
        """Calls, tokens, seconds and dollars of the cells. See `layers.costs_frame`."""
        return layers.costs_frame(self.answers, self.settings.policy, self.by, self.settings.level)

    @cached_property
    def scenarios(self) -> pd.DataFrame:
        """The cost of corrections by how many were needed. See `layers.scenarios_frame`."""
        return layers.scenarios_frame(
            self.answers, self.settings.policy, self.by, self.settings.level
        )

    @cached_property
    def thresholds(self) -> pd.DataFrame:
        """Rates held against the thresholds of a service.

        See `layers.thresholds_frame`.
        """
        return layers.thresholds_frame(
            self.calls, self.settings.policy, self.by, self.settings.level
        )

    def figure(self, name: str) -> pd.DataFrame:
        """Return the frame of one of `FIGURES`. Raises BadOptions for others."""
        check_names([name], FIGURES, "an ablation has no such figure")
        frame: pd.DataFrame = getattr(self, name)
        return frame
