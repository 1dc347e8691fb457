"""`Ablation`: the effect that a recorded set of answers says of the three layers, as frames, text
and pictures.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import pages, pictures
from .chart import Picture
from .figures import Figures


class Ablation(Figures):
    """Eight cells of three layers, over one recorded set of answers.

    Every figure is a pandas frame with its n and interval. Here they are shown and saved.
    """

    def grouped(self, by: str | Sequence[str]) -> Ablation:
        """Return the same ablation grouped by other columns.

        "model" pools the protocols.

        Raises BadOptions for others than `BY`.
        """
        return Ablation(self.recorded, (by,) if isinstance(by, str) else by)

    def __repr__(self) -> str:
        questions = len(self.recorded.answers)
        missing = f", {len(self.missing)} not recorded" if self.missing else ""
        return f"Ablation of run {self.run.run_id}: {questions} base answers{missing}"

    # shown and saved

    def text(self, *names: str) -> str:
        """Return figures for a terminal, by default all.

        Args:
            names: of `FIGURES`.
        """
        return pages.render_text(self, names or pages.SHOWN)

    def markdown(self) -> str:
        """Return everything as GitHub-flavoured Markdown."""
        return pages.render_markdown(self)

    def html(self, *, page: bool = False) -> str:
        """Return everything as HTML: a fragment, or a whole document."""
        return pages.render_html(self, page=page)

    def picture(self, name: str = "waterfall") -> Picture:
        """Return a picture, which shows itself in a notebook.

        Args:
            name: of `pictures.PICTURES`.
        """
        return pictures.picture(self, name)

    def save(self, path: str | Path) -> Path:
        """Write .html, .md, .json, .csv (the cells) or .svg (the waterfall).

        See `pages.save`.
        """
        return pages.save(self, path)

    def to_dict(self, *names: str) -> dict[str, Any]:
        """Return figures as rows of JSON, by default all.

        Args:
            names: of `FIGURES`.
        """
        return pages.to_dict(self, names or pages.SHOWN)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self.html()}
