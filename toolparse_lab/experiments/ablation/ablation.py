"""`Ablation`: the effect that a recorded set of answers says of the three layers, as frames, text,
pages, pictures and files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...core.values.printable import counted
from ...evals.reports.pages.files import save_file
from ...evals.reports.pages.html import document, fragment
from ...evals.reports.pages.text import aligned, md, section_lines
from ...views.templating import render
from .chart import Picture, picture_of
from .figures import Figures
from .sections import SECTIONS, listing_of

TITLE = "Three layers of type safety"
SHOWN = tuple(SECTIONS)
# The pictures of a figure, where they are not its own one: a verdict and a few means are read
# faster than drawn.
_PICTURES_OF = {
    "attribution": ("waterfall", "attribution"),
    "detectors": (),
    "scenarios": (),
    "thresholds": (),
}


class Ablation(Figures):
    """Eight cells of three layers, over one recorded set of answers.

    Every figure is a pandas frame with its n and interval. Here they are shown and saved.
    """

    def grouped(self, by: str | Sequence[str]) -> Ablation:
        """Return the same ablation grouped by other columns: "model" pools the protocols.

        Raises BadOptions for others than `BY`.
        """
        return Ablation(self.recorded, (by,) if isinstance(by, str) else by)

    def __repr__(self) -> str:
        questions = len(self.recorded.answers)
        missing = f", {len(self.missing)} not recorded" if self.missing else ""
        return f"Ablation of run {self.run.run_id}: {questions} base answers{missing}"

    def text(self, *names: str) -> str:
        """Return figures for a terminal, by default all. names: of `FIGURES`."""
        lines = [TITLE, self._headline(), ""]
        for name in names or SHOWN:
            listing = listing_of(self, name)
            # The columns that name a row come first.
            columns = sorted(listing.columns, key=lambda column: "k" not in column.kind.split())
            n_left = sum("k" in column.kind.split() for column in columns)
            rows = [[column.cell(row) for column in columns] for row in listing.rows]
            table = aligned([column.head for column in columns], rows, n_left) if rows else ""
            lines += [listing.title, table or "nothing to show", ""]
        lines += [f"! {warning}" for warning in self._warnings()]
        return "\n".join(lines).rstrip()

    def markdown(self) -> str:
        """Return everything as GitHub-flavoured Markdown."""
        lines = [f"# {TITLE}", "", md(self._headline()), ""]
        lines += [f"> {md(warning)}\n>" for warning in self._warnings()]
        lines.append("")
        for name in SHOWN:
            lines += section_lines(listing_of(self, name).drawn("md"))
        notes = (f"- {md(note)}" for note in self._notes())
        return "\n".join([*lines, "## Method", "", *notes, ""])

    def html(self, *, page: bool = False) -> str:
        """Return everything as HTML: a fragment, or a whole document."""
        blocks = []
        for name in SHOWN:
            section = listing_of(self, name).drawn("html")
            pictures = [picture_of(self, one).svg for one in _PICTURES_OF.get(name, (name,))]
            blocks.append((section, pictures))
        body = render(
            "experiments/ablation/templates/ablation.html",
            title=TITLE,
            headline=self._headline(),
            warnings=self._warnings(),
            blocks=blocks,
            notes=self._notes(),
        )
        return document(TITLE, fragment(body)) if page else fragment(body)

    def picture(self, name: str = "waterfall") -> Picture:
        """Return a picture, which shows itself in a notebook. name: of `chart.PICTURES`."""
        return picture_of(self, name)

    def save(self, path: str | Path) -> Path:
        """Write the ablation as its suffix says, and return the path.

        .html and .md hold everything, .json every figure as rows, .csv the eight cells, .svg the
        waterfall. Raises BadOptions for another suffix, StoreError where the file cannot be
        written, and MissingExtra for .svg without the extra `charts`.
        """
        return save_file(path, WRITERS, lambda writer, file: writer(self, file), "an ablation")

    def to_dict(self, *names: str) -> dict[str, Any]:
        """Return figures as rows of JSON, by default all, with the run and settings.

        Anything not known is null. names: of `FIGURES`.
        """
        figures = {name: self.figure(name) for name in names or SHOWN}
        return {
            "run_id": self.run.run_id,
            "settings": self.settings.to_dict(),
            "missing": list(self.missing),
            **{name: json.loads(one.to_json(orient="records")) for name, one in figures.items()},
        }

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self.html()}

    def _headline(self) -> str:
        answers = self.recorded.answers
        cases = {one.question.case.id for one in answers}
        models = {one.question.model for one in answers}
        corrections = self.corrections["key"].nunique()
        return (
            f"{counted(len(answers), 'base answer')} to {counted(len(cases), 'case')} by "
            f"{counted(len(models), 'model')}, {counted(corrections, 'different correction')}; "
            f"layer 2 is the policy {self.settings.policy}, the tools are "
            + ("functions" if self.settings.functions else "mocks of their schemas")
        )

    def _notes(self) -> list[str]:
        # What has to be known to read the figures.
        settings = self.settings
        factor, off, on = settings.layer1
        record = self.run.store.run(self.run.run_id).plan.get("ablation") or {}
        asked = {one.question.case.id for one in self.recorded.answers}
        dropped = len(self.run.plan.cases) - len(asked) + int(record.get("left_out", 0))
        lines = [
            f"Layer 1 is {factor}: {off} or {on}. It changes the prompt, so that each of its "
            "levels has base answers of its own.",
            "Layer 2 is re-run on the same recorded bytes under every policy.",
            "Layer 3 asks a model only where the tool refused a call. Equal correction prompts are "
            "one question, whichever cell asks it.",
            f"A tool is tried {counted(settings.feedback.max_attempts, 'time')}, corrections are "
            f"{settings.feedback.max_validation_retries} at most; layer 2 is applied to them as "
            "well.",
            "An answer with several calls is valid, accepted or gold where all its calls are.",
            "A tool that is a mock takes whatever its schema allows, so that accepted is valid "
            "there.",
            "In formats of tags every value is text as it is written: without layer 2 nearly all "
            "numbers are mistyped there, by the format and not by the model.",
        ]
        if dropped:
            lines.append(
                f"Cases left out, because no call is wanted and so no type can be wrong: {dropped}."
            )
        return lines

    def _warnings(self) -> list[str]:
        # The reasons against taking the figures at their word.
        out = []
        levels = {one.question.on for one in self.recorded.answers}
        if len(levels) == 1:
            out.append(
                f"Layer 1 is {'on' if True in levels else 'off'} in all of these answers, so that "
                "half of the cells have none."
            )
        if not self.run.plan.requests:
            out.append(
                "These are outputs from elsewhere, so that no correction could be asked. A cell "
                "with layer 3 is not known where a call was refused."
            )
        if size := len(self.missing):
            out.append(
                f"{counted(size, 'question')} {'has' if size == 1 else 'have'} no recorded answer. "
                "A cell that needs a correction of theirs is not known; it does not count as a "
                "failure."
            )
        few = int(self.cells["n_cases"].max()) if len(self.cells) else 0
        if few < 100:
            out.append(
                f"{few} cases are few: intervals of such a size cannot tell layers apart that "
                "differ by less than some tens of points."
            )
        return out


def _text_writer(text: Callable[[Ablation], str]) -> Callable[[Ablation, Path], object]:
    return lambda ablation, file: file.write_text(text(ablation), encoding="utf-8")


WRITERS: Mapping[str, Callable[[Ablation, Path], object]] = {
    ".html": _text_writer(lambda a: a.html(page=True)),
    ".md": _text_writer(Ablation.markdown),
    ".json": _text_writer(lambda a: json.dumps(a.to_dict(), indent=1)),
    ".csv": lambda a, file: a.cells.to_csv(file, index=False),
    ".svg": _text_writer(lambda a: picture_of(a, "waterfall").file()),
}
"""Suffix -> what writes such a file."""
