"""`ParseView`: raw text and argument tree, linked both ways, with every repair and coercion beside
it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anywidget
import traitlets

from ..core.errors import BadOptions
from ..core.types import ParseResult
from ..views import render_result
from ..views.show import visible
from .page import checked, export_html
from .payload import payload_of
from .static import show_both, static_id

_HERE = Path(__file__).parent
STAGES = ("raw", "repaired", "decoded", "coerced")


class ParseView(anywidget.AnyWidget):
    """The interactive view of one ParseResult, as `result.debug()` shows it.

    `stage` is the text on the left: raw, repaired, decoded or coerced. `pinned` is the JSON Pointer
    of the argument that was clicked, '' for none. Both follow the view and can be set. Set `result`
    to show another parse. Raises BadOptions for a stage that does not exist or a subject that is
    not a ParseResult.

    >>> import toolparse_lab as tp
    >>> from toolparse_lab.notebook import ParseView
    >>> ParseView(tp.parse("Hi", "hermes")).stage
    'raw'
    """

    _esm = _HERE / "parse_view.js"
    _css = _HERE / "parse_view.css"
    _payload = traitlets.Dict().tag(sync=True)
    _static = traitlets.Unicode("").tag(sync=True)
    stage = traitlets.Enum(STAGES, default_value="raw").tag(sync=True)
    pinned = traitlets.Unicode("").tag(sync=True)

    def __init__(self, result: ParseResult, *, stage: str = "raw", pinned: str = "") -> None:
        if stage not in STAGES:
            raise BadOptions("unknown stage", got=stage, expected=", ".join(STAGES))
        self._result = checked(result)
        super().__init__(
            _payload=payload_of(result), _static=static_id(), stage=stage, pinned=pinned
        )

    @property
    def result(self) -> ParseResult:
        return self._result

    @result.setter
    def result(self, result: ParseResult) -> None:
        self._result = checked(result)
        # The path of another result's argument may mean something else in this one.
        self.pinned = ""
        self._payload = payload_of(result)

    def export_html(self, path: str | Path) -> Path:
        """This view as one self-contained file. See `export_html`."""
        return export_html(self._result, path)

    def _ipython_display_(self, **kwargs: Any) -> None:
        """Show the static view as an output of its own, then the widget, which hides it."""
        show_both(self._static, self._result, super()._repr_mimebundle_(**kwargs))

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """Return the widget, and the same result as static HTML and text for readers that have no
        widgets.
        """
        # None, or the widget's own views with their metadata.
        bundle = super()._repr_mimebundle_(**kwargs)
        static = {
            "text/plain": visible(str(self._result)),
            "text/html": render_result(self._result),
        }
        if bundle is None:
            return static
        views, metadata = bundle
        return {**views, **static}, metadata
