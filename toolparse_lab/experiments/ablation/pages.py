"""An ablation as HTML, Markdown, terminal text and files."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core.values.printable import counted
from ...evals.reports.pages.columns import Section
from ...evals.reports.pages.files import save_file
from ...evals.reports.pages.html import Table, fragment
from ...evals.reports.pages.html import document as html_page
from ...evals.reports.pages.text import aligned, md, section_lines
from ...views.templating import Markup, render
from .chart import TEMPLATES
from .figures import Figures
from .pictures import chart
from .sections import section_of

TITLE = "Three layers of type safety"
SHOWN = (
    "cells",
    "attribution",
    "layer1",
    "layer2",
    "rules",
    "layer3",
    "costs",
    "scenarios",
    "thresholds",
    "tests",
    "detectors",
)
"""The figures in the order of a page: what is asked first comes first."""
# These have a table and no picture: a verdict and a few means are read faster than drawn.
_PICTURES_OF = {
    "attribution": ("waterfall", "attribution"),
    "detectors": (),
    "scenarios": (),
    "thresholds": (),
}
_LONGEST = 24  # rows of a table that stands open


def headline(ablation: Figures) -> str:
    """Return the ablation in one line: its basis."""
    answers = ablation.recorded.answers
    cases = {one.question.case.id for one in answers}
    models = {one.question.model for one in answers}
    corrections = ablation.corrections["key"].nunique()
    return (
        f"{counted(len(answers), 'base answer')} to {counted(len(cases), 'case')} by "
        f"{counted(len(models), 'model')}, {counted(corrections, 'different correction')}; layer 2 "
        f"is the policy {ablation.settings.policy}, the tools are "
        + ("functions" if ablation.settings.functions else "mocks of their schemas")
    )


def notes(ablation: Figures) -> list[str]:
    """Return the things to be known to read the figures."""
    settings = ablation.settings
    factor, off, on = settings.layer1
    plan, answers = ablation.run.plan, ablation.recorded.answers
    record = ablation.run.store.run(ablation.run.run_id).plan.get("ablation") or {}
    dropped = len(plan.cases) - len({one.question.case.id for one in answers})
    dropped += int(record.get("left_out", 0))
    lines = [
        f"Layer 1 is {factor}: {off} or {on}. It changes the prompt, so that each of its levels "
        "has base answers of its own.",
        "Layer 2 is re-run on the same recorded bytes under every policy.",
        "Layer 3 asks a model only where the tool refused a call. Equal correction prompts are one "
        "question, whichever cell asks it.",
        f"A tool is tried {counted(settings.feedback.max_attempts, 'time')}, corrections are "
        f"{settings.feedback.max_validation_retries} at most; layer 2 is applied to them as well.",
        "An answer with several calls is valid, accepted or gold where all its calls are.",
        "A tool that is a mock takes whatever its schema allows, so that accepted is valid there.",
        "In formats of tags every value is text as it is written: without layer 2 nearly all "
        "numbers are mistyped there, by the format and not by the model.",
    ]
    if dropped:
        lines.append(
            f"Cases left out, because no call is wanted and so no type can be wrong: {dropped}."
        )
    return lines


def warnings(ablation: Figures) -> list[str]:
    """Return the reasons against taking the figures at their word."""
    out = []
    levels = {one.question.on for one in ablation.recorded.answers}
    if len(levels) == 1:
        out.append(
            f"Layer 1 is {'on' if True in levels else 'off'} in all of these answers, so that "
            "half of the cells have none."
        )
    if not ablation.run.plan.requests:
        out.append(
            "These are outputs from elsewhere, so that no correction could be asked. A cell with "
            "layer 3 is not known where a call was refused."
        )
    if ablation.missing:
        size = len(ablation.missing)
        out.append(
            f"{counted(size, 'question')} {'has' if size == 1 else 'have'} no recorded answer. A "
            "cell that needs a correction of theirs is not known; it does not count as a failure."
        )
    frame = ablation.cells
    few = int(frame["n_cases"].max()) if len(frame) else 0
    if few < 100:
        out.append(
            f"{few} cases are few: intervals of such a size cannot tell layers apart that differ "
            "by less than some tens of points."
        )
    return out


@dataclass(frozen=True, slots=True)
class _Block:
    # folded: the line that unfolds a long table, '' where it is open.
    title: str
    lead: str
    pictures: tuple[Markup, ...]
    table: Table
    folded: str


def _block(ablation: Figures, name: str) -> _Block:
    section = section_of(ablation, name)
    drawings = tuple(chart(ablation, one).svg() for one in _PICTURES_OF.get(name, (name,)))
    folded = f"{len(section.rows)} rows" if len(section.rows) > _LONGEST else ""
    return _Block(section.title, section.lead, drawings, Table(section.head, section.rows), folded)


def render_html(ablation: Figures, *, page: bool = False) -> str:
    """Return the ablation as HTML: a fragment for a notebook's output, or a whole document."""
    body = render(
        f"{TEMPLATES}/ablation.html",
        title=TITLE,
        headline=headline(ablation),
        warnings=warnings(ablation),
        blocks=[_block(ablation, name) for name in SHOWN],
        notes=notes(ablation),
    )
    return html_page(TITLE, fragment(body)) if page else fragment(body)


def render_markdown(ablation: Figures) -> str:
    """Return the ablation as GitHub-flavoured Markdown."""
    lines = [f"# {TITLE}", "", md(headline(ablation)), ""]
    lines += [f"> {md(warning)}\n>" for warning in warnings(ablation)]
    lines.append("")
    for name in SHOWN:
        lines += section_lines(section_of(ablation, name))
    return "\n".join([*lines, "## Method", "", *(f"- {md(note)}" for note in notes(ablation)), ""])


def render_text(ablation: Figures, names: tuple[str, ...] = SHOWN) -> str:
    """Return figures for a terminal, each as a table."""
    lines = [TITLE, headline(ablation), ""]
    for name in names:
        section = section_of(ablation, name)
        lines += [section.title, section_text(section), ""]
    lines += [f"! {warning}" for warning in warnings(ablation)]
    return "\n".join(lines).rstrip()


def section_text(section: Section) -> str:
    """Return a table for a terminal, columns of the same words throughout left out."""
    if not section.rows:
        return "nothing to show"
    names = [i for i, (_, kind) in enumerate(section.head) if "k" in kind.split()]
    others = [i for i in range(len(section.head)) if i not in names]
    places = [*names, *others]
    rows = [[row[i] for i in places] for row in section.rows]
    return aligned([section.head[i][0] for i in places], rows, len(names))


def _save_json(ablation: Figures, file: Path) -> None:
    file.write_text(json.dumps(to_dict(ablation), indent=1), encoding="utf-8")


def _save_svg(ablation: Figures, file: Path) -> None:
    file.write_text(chart(ablation, "waterfall").svg(alone=True), encoding="utf-8")


WRITERS: Mapping[str, Callable[[Figures, Path], object]] = {
    ".html": lambda a, file: file.write_text(render_html(a, page=True), encoding="utf-8"),
    ".md": lambda a, file: file.write_text(render_markdown(a), encoding="utf-8"),
    ".json": _save_json,
    ".csv": lambda a, file: a.cells.to_csv(file, index=False),
    ".svg": _save_svg,
}
"""Suffix -> what writes such a file."""


def save(ablation: Figures, path: str | Path) -> Path:
    """Write the ablation as its suffix says, and return the path.

    .html and .md hold everything, .json every figure as rows, .csv the eight cells, .svg the
    waterfall. Raises BadOptions for another suffix, StoreError where the file cannot be written.
    """
    return save_file(path, WRITERS, lambda writer, file: writer(ablation, file), "an ablation")


def to_dict(ablation: Figures, names: tuple[str, ...] = SHOWN) -> dict[str, Any]:
    """Return figures as rows of JSON, anything not known as null, beside their basis."""
    return {
        "run_id": ablation.run.run_id,
        "settings": ablation.settings.to_dict(),
        "missing": list(ablation.missing),
        **{name: json.loads(ablation.figure(name).to_json(orient="records")) for name in names},
    }
