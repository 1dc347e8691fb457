"""`CoercionDiff`: two readings of one text side by side, linked to the characters of the text."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from ..core.types import ParseResult
from ..views import render_page, render_side_by_side
from ..views.cells import MAX_VALUE
from ..views.rows import Change, place, protocol_words
from ..views.show import shorten, visible
from ..views.side_by_side import MAX_ROWS, Side, SideRow, pieces_of, side_rows
from .page import checked
from .payload import payload_json
from .static import show_html, static_id

_HERE = Path(__file__).parent


class CoercionDiff(anywidget.AnyWidget):
    """Two readings of one text side by side: before, after, rule and loss.

    The readings may differ in policy, protocol, or the version of the reader (a stored
    `ParseResult.from_dict`). Point at a row, or choose it, and its characters in the text are
    marked; the text leads to its rows the same way. names: of the two readings. `pinned` is the
    number of the chosen row, 0 for none. Raises BadOptions for readings of different texts.

    >>> import toolparse_lab as tp
    >>> from toolparse_lab.notebook import CoercionDiff
    >>> text = '<tool_call>{"name": "f", "arguments": {"a": "1"}}</tool_call>'
    >>> tools = [{"name": "f", "parameters": {"properties": {"a": {"type": "integer"}}}}]
    >>> none = tp.parse(text, "hermes", tools, {"coerce": "none"})
    >>> CoercionDiff(none, tp.parse(text, "hermes", tools), ("none", "safe")).rows[0].path
    '/a'
    """

    _esm = _HERE / "coercion_diff.js"
    # The colours and fonts of the parse view, then this view's own.
    _css = "".join(
        files(__package__).joinpath(name).read_text("utf-8")
        for name in ("parse_view.css", "coercion_diff.css")
    )
    _payload = traitlets.Dict().tag(sync=True)
    _static = traitlets.Unicode("").tag(sync=True)
    pinned = traitlets.Int(0).tag(sync=True)

    def __init__(self, a: ParseResult, b: ParseResult, names: tuple[str, str] = ("a", "b")) -> None:
        self._readings = checked(a), checked(b)
        self._names = names
        self.rows = side_rows(a, b)
        super().__init__(_payload=self._made(), _static=static_id())

    def _made(self) -> dict[str, Any]:
        """Return what the front end shows: text alone, in which no character is hidden."""
        rows = self.rows[:MAX_ROWS]
        return {
            "names": [visible(shorten(name, 80)) for name in self._names],
            "protocols": [visible(protocol_words(result)) for result in self._readings],
            "pieces": [
                [visible(text), list(numbers)]
                for text, numbers in pieces_of(self._readings[0].raw, rows)
            ],
            "rows": [_row(row) for row in rows],
            "left_out": len(self.rows) - len(rows),
        }

    def html(self) -> str:
        """Return the static view, see `render_side_by_side`."""
        return render_side_by_side(*self._readings, self._names)

    def export_html(self, path: str | Path, *, title: str = "Two readings") -> Path:
        """Write this view to one self-contained HTML file, and return its path."""
        target = Path(path)
        data = payload_json(self._payload)
        # The front end of the notebook, with two lines that mount it where there is no notebook.
        module = files(__package__).joinpath("coercion_diff.js").read_text("utf-8") + (
            "\nconst data = document.getElementById('toolparse-payload');"
            "\nmount(document.getElementById('toolparse-view'), JSON.parse(data.textContent));\n"
        )
        body = (
            '<div id="toolparse-view"></div>'
            f'<script type="application/json" id="toolparse-payload">{data}</script>'
            f"<noscript>{self.html()}</noscript>"
        )
        page = render_page(title, body, css=self._css, module=module)
        target.write_text(page, encoding="utf-8")
        return target

    def _ipython_display_(self, **kwargs: Any) -> None:
        """Show the static view as an output of its own, then the widget, which hides it."""
        show_html(self._static, str(self), self.html(), super()._repr_mimebundle_(**kwargs))

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """Return the widget, and the static view for readers that have no widgets."""
        bundle = super()._repr_mimebundle_(**kwargs)
        static = {"text/plain": str(self), "text/html": self.html()}
        if bundle is None:
            return static
        views, metadata = bundle
        return {**views, **static}, metadata

    def __str__(self) -> str:
        lines = [f"{self._names[0]} against {self._names[1]}, {len(self.rows)} rows"]
        for row in self.rows[:MAX_ROWS]:
            first, second = (_in_words(side) for side in row.sides)
            lines.append(f"{row.name}: {first} | {second}")
        return visible("\n".join(lines))

    __repr__ = __str__


def _in_words(side: Side) -> str:
    rules = ", ".join(change.rule for change in side.changes)
    return " ".join(filter(None, (side.value or "–", f"({rules})" if rules else "")))


def _row(row: SideRow) -> dict[str, Any]:
    return {
        "number": row.number,
        "argument": visible(shorten(row.name, 120)),
        "place": place(row.span),
        "differs": row.differs,
        "sides": [
            {
                "value": visible(shorten(side.value, MAX_VALUE)),
                "changes": [_change(change) for change in side.changes],
            }
            for side in row.sides
        ],
    }


def _change(change: Change) -> dict[str, Any]:
    return {
        "before": visible(shorten(change.before, MAX_VALUE)),
        "after": visible(shorten(change.after, MAX_VALUE)),
        "rule": visible(change.rule),
        "sentence": visible(change.sentence),
        "lossless": change.lossless,
    }
