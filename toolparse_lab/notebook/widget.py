"""`Screen`: what all widgets are. Their front ends send messages, which anybody on this machine may
write: each gets an answer in words.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from ..core.errors import ToolparseError, UnknownName
from ..views.show import visible
from ..views.templating import style_sheet
from .page import front, show_html, static_id, write_view

_METHODS = ("update", "request_state", "custom")
NOT_OF_ITS_FORM = "this message is not of a form that the view answers"


def in_words(e: Exception) -> tuple[int, str]:
    """Return the status of HTTP and the words for what a message led to.

    What it asks for may not be there (404). Any other error of ours is an answer to a person. All
    else came of a message whose members are not what they should be.
    """
    if not isinstance(e, ToolparseError):
        return 400, NOT_OF_ITS_FORM
    return 404 if isinstance(e, UnknownName) else 200, visible(str(e))


class Screen(anywidget.AnyWidget):
    """A widget with a static view and its text, for readers that have no widgets. Its front end may
    send it anything: nothing reaches the kernel's log.
    """

    _esm = front()
    _css = style_sheet()
    _html = traitlets.Unicode("").tag(sync=True)
    _static = traitlets.Unicode("").tag(sync=True)

    def __init__(self, **traits: Any) -> None:
        super().__init__(_static=static_id(), **traits)
        self.on_msg(lambda _widget, message, _buffers: self.send(self.reply(message)))

    def static_html(self) -> str:
        """Return the present view as HTML without JavaScript."""
        raise NotImplementedError

    def answer(self, message: Any) -> dict[str, Any] | None:
        """Return the answer to a message of the front end, None for one of no known kind."""
        return None

    def reply(self, message: Any) -> dict[str, Any]:
        """Return the answer to a message with its number, an error in words among them."""
        status = 200
        try:
            answer = self.answer(message)
        except Exception as e:
            status, words = in_words(e)
            answer = {"error": words}
        if answer is None:
            status, answer = 400, {"error": NOT_OF_ITS_FORM}
        if status != 200:
            answer = {**answer, "status": status}
        number = message.get("seq") if isinstance(message, Mapping) else 0
        return {**answer, "seq": number if type(number) is int and abs(number) < 2**53 else 0}

    def export_html(self, path: str | Path, *, title: str = "") -> Path:
        """Write the present view to one file that works from disk, and return its path."""
        return write_view(path, title or self._heading(), self.static_html())

    def _heading(self) -> str:
        return "Parse view"

    def _words(self) -> str:
        return repr(self)

    def _ipython_display_(self, **kwargs: Any) -> None:
        bundle = super()._repr_mimebundle_(**kwargs)
        show_html(self._static, self._words(), self.static_html(), bundle)

    def _handle_msg(self, msg: Any) -> None:
        data = msg.get("content", {}).get("data")
        known = isinstance(data, Mapping) and data.get("method") in _METHODS
        if not known or not isinstance(data.get("state", {}), dict) or data.get("buffer_paths"):
            self.send({"kind": "error", "text": NOT_OF_ITS_FORM, "status": 400})
        elif data["method"] != "custom" or "content" in data:
            super()._handle_msg(msg)

    def set_state(self, sync_data: Any) -> None:
        """Take the values that fit, as the base class does, and leave out the others."""
        for name, value in sync_data.items():
            with suppress(Exception):
                super().set_state({name: value})
