"""`ParseView`: raw text and argument tree, linked both ways, with every repair and coercion; and
`CoercionDiff`: two readings of one text side by side, linked to the characters of the text.
"""

from __future__ import annotations

from typing import Any

import traitlets

from ..core.errors import BadOptions
from ..core.types import ParseResult
from ..views import render_result, render_side_by_side
from ..views.html import standalone
from ..views.show import visible
from ..views.side_by_side import MAX_ROWS, Side, side_rows
from ..views.stages import STAGES
from .page import as_widget, checked
from .widget import Screen


class _View(Screen):
    # A view whose bundle has its static form too.
    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        # None, or the widget's own views with their metadata.
        bundle = super()._repr_mimebundle_(**kwargs)
        static = {"text/plain": self._words(), "text/html": standalone(self.static_html())}
        return static if bundle is None else ({**bundle[0], **static}, bundle[1])


class ParseView(_View):
    """The interactive view of one ParseResult, as `result.debug()` shows it.

    `stage` is the text on the left: raw, repaired, decoded, coerced or checked. `pinned` is the
    JSON Pointer of the argument that was clicked, '' for none. Both follow the view and can be set.
    Set `result` to show another parse. Raises BadOptions for a stage that does not exist or a
    subject that is not a ParseResult.
    """

    stage = traitlets.Enum(tuple(STAGES), default_value="raw").tag(sync=True)
    pinned = traitlets.Unicode("").tag(sync=True)

    def __init__(self, result: ParseResult, *, stage: str = "raw", pinned: str = "") -> None:
        if stage not in STAGES:
            raise BadOptions("unknown stage", got=stage, expected=", ".join(STAGES))
        self._result = checked(result)
        super().__init__(_html=as_widget(self.static_html()), stage=stage, pinned=pinned)

    @property
    def result(self) -> ParseResult:
        return self._result

    @result.setter
    def result(self, result: ParseResult) -> None:
        self._result = checked(result)
        # The path of another result's argument may mean something else in this one.
        self.pinned = ""
        self._html = as_widget(self.static_html())

    def static_html(self) -> str:
        """Return the static view, see `render_result`."""
        return render_result(self._result)

    def _words(self) -> str:
        return visible(str(self._result))


class CoercionDiff(_View):
    """Two readings of one text side by side: before, after, rule and loss.

    The readings may differ in policy, protocol, or the version of the parser (a stored
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

    pinned = traitlets.Int(0).tag(sync=True)

    def __init__(self, a: ParseResult, b: ParseResult, names: tuple[str, str] = ("a", "b")) -> None:
        self._readings = checked(a), checked(b)
        self._names = names
        self.rows = side_rows(a, b)
        super().__init__(_html=as_widget(self.static_html()))

    def static_html(self) -> str:
        """Return the static view, see `render_side_by_side`."""
        return render_side_by_side(*self._readings, self._names)

    def _heading(self) -> str:
        return "Two readings"

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
