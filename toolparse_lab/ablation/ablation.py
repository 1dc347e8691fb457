"""`Ablation`: what a recorded set of answers says of the three layers, as frames, text and
pictures."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from ..errors import BadOptions, MissingRecording, near
from . import cells, costs, detectors, layers, pages, pictures, rows
from .recording import Recorded

BY = ("model", "protocol")
FIGURES = (
    "cells", "tests", "attribution", "layer1", "layer2", "rules", "layer3", "detectors", "costs",
)  # fmt: skip
"""The frames of an ablation, in the order in which they are shown."""


class Ablation:
    """Eight cells of three layers, over one recorded set of answers.

    Every figure is a pandas frame with its n and interval, made when it is first asked for;
    `recorded` is what they are made of. Nothing here asks a model. `by`: the columns that figures
    are grouped by.
    """

    def __init__(self, recorded: Recorded, by: Sequence[str] = BY) -> None:
        for name in by:
            if name not in BY:
                raise BadOptions(
                    "an ablation is not grouped by this",
                    got=name,
                    expected=", ".join(BY),
                    hint=near(str(name), BY),
                )
        self.recorded = recorded
        self.settings = recorded.settings
        self.run = recorded.run
        self.by = tuple(by)

    def grouped(self, by: str | Sequence[str]) -> Ablation:
        """Return the same ablation grouped by other columns; "model" pools the protocols.

        Raises BadOptions for others than `BY`.
        """
        return Ablation(self.recorded, (by,) if isinstance(by, str) else by)

    def __repr__(self) -> str:
        questions = len(self.recorded.answers)
        missing = f", {len(self.missing)} not recorded" if self.missing else ""
        return f"Ablation of run {self.run.run_id}: {questions} base answers{missing}"

    @cached_property
    def missing(self) -> tuple[str, ...]:
        """The keys of the questions without an answer: base ones, then corrections that layer 3
        may ask. Later corrections of a path are known only when these are answered."""
        base = [one.question.item.key for one in self.recorded.answers if one.parsed is None]
        return tuple(dict.fromkeys((*base, *self.recorded.open_questions)))

    def check(self) -> None:
        """Raise MissingRecording that names what has to be recorded, if anything."""
        if self.missing:
            names = ", ".join(self.missing[:5])
            more = f" and {len(self.missing) - 5} more" if len(self.missing) > 5 else ""
            raise MissingRecording(
                f"{len(self.missing)} answers of this ablation are not recorded: {names}{more}",
                keys=self.missing,
                hint=f"lab.ablation({self.run.run_id!r}) with the models asks them",
            )

    # the recorded answers

    @cached_property
    def answers(self) -> pd.DataFrame:
        """One row an answer × policy × layer 3: rungs and costs."""
        return rows.answers_frame(self.recorded)

    @cached_property
    def calls(self) -> pd.DataFrame:
        """One row a call × policy: before layer 3 and after it."""
        return rows.calls_frame(self.recorded)

    @cached_property
    def corrections(self) -> pd.DataFrame:
        """One row a correction of a call × policy."""
        return rows.corrections_frame(self.recorded)

    # the figures

    @cached_property
    def cells(self) -> pd.DataFrame:
        """The eight cells: rungs, n, intervals; see `cells.cells_frame`."""
        return cells.cells_frame(self.answers, self.settings.policy, self.by, self.settings.level)

    @cached_property
    def tests(self) -> pd.DataFrame:
        """Paired tests between cells; see `cells.tests_frame`."""
        return cells.tests_frame(self.answers, self.settings.policy, self.by, self.settings.level)

    @cached_property
    def attribution(self) -> pd.DataFrame:
        """The waterfall, and Shapley shares beside it; see `cells.attribution_frame`."""
        return cells.attribution_frame(
            self.answers, self.settings.policy, self.by, self.settings.level
        )

    @cached_property
    def layer1(self) -> pd.DataFrame:
        """Type errors as written, and the price of the prompt; see `layers.layer1_frame`."""
        return layers.layer1_frame(
            self.answers, self.calls, self.tests, self.by, self.settings.level
        )

    @cached_property
    def layer2(self) -> pd.DataFrame:
        """Rescues of every policy, true and false; see `layers.layer2_frame`."""
        return layers.layer2_frame(self.calls, self.settings.policies, self.by, self.settings.level)

    @cached_property
    def rules(self) -> pd.DataFrame:
        """Coercion rules: applied, right, wrong; see `layers.rules_frame`."""
        return layers.rules_frame(self.calls, self.settings.policies, self.settings.level)

    @cached_property
    def layer3(self) -> pd.DataFrame:
        """Corrections; see `layers.layer3_frame`."""
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
        """Precision and recall of detectors; see `detectors.detectors_frame`."""
        return detectors.detectors_frame(self.recorded, self.settings.level)

    @cached_property
    def costs(self) -> pd.DataFrame:
        """Calls, tokens, seconds and dollars of the cells; see `costs.costs_frame`."""
        return costs.costs_frame(self.answers, self.settings.policy, self.by)

    def figure(self, name: str) -> pd.DataFrame:
        """Return the frame of one of `FIGURES`; raises BadOptions for others."""
        if name not in FIGURES:
            raise BadOptions(
                "an ablation has no such figure",
                got=name,
                expected=", ".join(FIGURES),
                hint=near(name, FIGURES),
            )
        frame: pd.DataFrame = getattr(self, name)
        return frame

    # shown and saved

    def text(self, *names: str) -> str:
        """Return figures for a terminal, by default all; names: of `FIGURES`."""
        return pages.render_text(self, names or pages.SHOWN)

    def markdown(self) -> str:
        """Return everything as GitHub-flavoured Markdown."""
        return pages.render_markdown(self)

    def html(self, *, page: bool = False) -> str:
        """Return everything as HTML: a fragment, or a whole document."""
        return pages.render_html(self, page=page)

    def picture(self, name: str = "waterfall") -> pictures.Picture:
        """Return a picture, which shows itself in a notebook; name: of `pictures.PICTURES`."""
        return pictures.Picture(pictures.picture(self, name), pictures.words(self, name))

    def save(self, path: str | Path) -> Path:
        """Write .html, .md, .json, .csv (the cells) or .svg (the waterfall); see `pages.save`."""
        return pages.save(self, path)

    def to_dict(self) -> dict[str, Any]:
        """Return every figure as rows of JSON."""
        return pages.to_dict(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self.html()}
