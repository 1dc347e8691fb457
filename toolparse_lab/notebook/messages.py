"""Messages of front ends, which anybody on this machine may write: each gets an answer in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from ..core.errors import ToolparseError, UnknownName
from ..views.show import visible

_METHODS = ("update", "request_state", "custom")
NOT_OF_ITS_FORM = "this message is not of a form that the view answers"


class UnknownMessage(ToolparseError):
    """A message of a kind that there is not."""


def in_words(e: Exception) -> tuple[int, str]:
    """Return the status of HTTP and the words for what a message led to.

    What it asks for may not be there (404). Any other error of ours is an answer to a person. All
    else came of a message whose members are not what they should be.
    """
    if isinstance(e, UnknownMessage) or not isinstance(e, ToolparseError):
        return 400, NOT_OF_ITS_FORM
    return 404 if isinstance(e, UnknownName) else 200, visible(str(e))


class Answering:
    """A widget whose front end may send it anything: nothing reaches the kernel's log."""

    def _handle_msg(self, msg: Any) -> None:
        data = msg.get("content", {}).get("data")
        known = isinstance(data, Mapping) and data.get("method") in _METHODS
        if not known or not isinstance(data.get("state", {}), dict) or data.get("buffer_paths"):
            self.send({"kind": "error", "text": NOT_OF_ITS_FORM, "status": 400})  # type: ignore[attr-defined]
        elif data["method"] != "custom" or "content" in data:
            super()._handle_msg(msg)  # type: ignore[misc]

    def set_state(self, sync_data: Any) -> None:
        """Take the values that fit, as the base class does, and leave out the others."""
        for name, value in sync_data.items():
            with suppress(Exception):
                super().set_state({name: value})  # type: ignore[misc]


def answered(answer: Callable[[Any], Any], message: Any) -> tuple[Any, int]:
    """Return the answer to a message with its status, an error in words among them."""
    try:
        reply = answer(message)
    except Exception as e:
        status, words = in_words(e)
        return {"error": words}, status
    return (reply, 200) if reply is not None else ({"error": NOT_OF_ITS_FORM}, 400)
