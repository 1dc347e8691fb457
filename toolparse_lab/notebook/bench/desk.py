"""`Desk`: the setups on the workbench, and the answers to its front end, whatever carries them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...core.errors import ToolparseError
from ...core.types import ParseResult
from ...views.show import visible
from .setup import Setup
from .snippets import snippet_of
from .timeline import timeline_of
from .view import choices, comparison_of, view_of


class Desk:
    """The setups that a person goes through, and the one that lies in front of them.

    subjects: the setups. `setup` is the present one with the person's changes, `result` its parse.
    """

    def __init__(self, subjects: list[Setup]) -> None:
        self._subjects = subjects
        self.setup = subjects[0]
        self._index = 0
        self.result: ParseResult

    def state(self, static: str = "") -> dict[str, Any]:
        """Return what the front end begins with. static: the id of the view that it hides."""
        return {"choices": choices(), "static": static, "view": self.view()}

    def view(self) -> dict[str, Any]:
        """Read the setup again and return its view."""
        view, self.result = view_of(self.setup)
        return view | {"index": self._index, "count": len(self._subjects)}

    def answer(self, message: Any) -> dict[str, Any] | None:
        """Return the answer to a message of the front end: a reply of its kind, or an error in
        words. None for a message of no known kind.
        """
        kind = message.get("kind") if isinstance(message, Mapping) else None
        handler = self._handlers().get(str(kind))
        if handler is None:
            return None
        reply = {"kind": kind, "serial": message.get("serial")}
        try:
            reply |= handler(message)
        except ToolparseError as e:
            reply["error"] = visible(str(e))
        return reply

    def _handlers(self) -> dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]]:
        """Kind of a message -> its handler."""
        return {
            "parse": self._parse,
            "go": self._go,
            "timeline": lambda m: {"timeline": timeline_of(self.setup, int(m.get("size") or 0))},
            "compare": lambda m: {"rows": comparison_of(self.setup)},
            "keep": lambda m: {"text": snippet_of(self.setup, self.result, str(m.get("as")))},
        }

    def _parse(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Read the text as it was changed."""
        self.setup = self.setup.changed(dict(message.get("values") or {}))
        return {"view": self.view()}

    def _go(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Go to another subject, as it was recorded."""
        self._index = min(max(int(message.get("index") or 0), 0), len(self._subjects) - 1)
        self.setup = self._subjects[self._index]
        return {"view": self.view()}
