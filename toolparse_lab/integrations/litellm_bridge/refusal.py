"""A provider's refusal of a response_format, as an error that says what to do."""

from __future__ import annotations

import functools
from typing import Any

from ...core.errors import ResponseFormatRejected
from ...middleware import Turn

_REFUSALS = ("UnsupportedParamsError", "BadRequestError", "UnprocessableEntityError")
_HINT = (
    'pass tool_choice_by="prompt": the call is then asked for in the system prompt, without a '
    "response_format"
)


def refusal(e: Exception, turn: Turn) -> Exception | None:
    """None, or where the request had a response_format for a forced tool choice and was refused as
    a whole (HTTP 400 or 422, or litellm knows that the provider has no such parameter), a
    ResponseFormatRejected that is also of `e`'s own class and carries what `e` carries.
    """
    kind: Any = type(e)
    if not _is_refusal(kind.__name__, str(e), turn):
        return None
    # Made without its constructor: litellm's exceptions take arguments that are lost by now.
    rejected = _class_for(kind).__new__(_class_for(kind))
    rejected.__dict__.update(e.__dict__)
    rejected.message = (
        "The provider refused the request, which asks for the tool call by response_format: "
        f"{getattr(e, 'message', e)}\n  what to do: {_HINT}"
    )
    rejected.args = (rejected.message,)
    rejected.got, rejected.expected, rejected.hint, rejected.kind = None, None, _HINT, "bad_request"
    failure: Exception = rejected
    return failure


def _is_refusal(name: str, message: str, turn: Turn) -> bool:
    """Return True if an exception of that class refuses the response_format of a forced tool
    choice.
    """
    if not turn.read_whole or "response_format" not in turn.params:
        return False
    # Their subclasses say what else was wrong: the context's length, the content.
    if name not in _REFUSALS:
        return False
    return name != "UnsupportedParamsError" or "response_format" in message


@functools.lru_cache(maxsize=8)
def _class_for(kind: Any) -> Any:
    """Return both at once, so that code written for litellm's exceptions still catches it. Its
    message holds the hint, because a gateway passes on nothing else.
    """
    return type(
        ResponseFormatRejected.__name__,
        (ResponseFormatRejected, kind),
        {"__module__": __name__, "__str__": lambda self: self.message},
    )
