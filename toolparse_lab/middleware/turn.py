"""One request and everything prepared for its answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..core.toolspec import ToolSpec
from ..formats.base import Protocol
from ..formats.prompt.messages import LeftOut
from ..parser.foreign.protocol import ForeignProtocol
from ..parser.parse import Reader
from .choice import Kind, Offer
from .choice_schema import PLAIN, ChoiceForm
from .history import Writer
from .options import Ways


@dataclass(frozen=True)
class Turn:
    """One request and the allowed forms of its answer.

    Attributes:
        params: the request to send.
        tools: those that the model was told of, with the schemas to read arguments by. choice and
            tool_name: everything asked for.
        active: answers are parsed, or False if there are no tools or none may be called.
        forced: the answer must be one call.
        one_call: of the calls in a text only the first is made, because the request says
            `parallel_tool_calls=False`.
        messages: the conversation as the application gave it, by which echoes are known.
        many: a forced answer may be several calls.
        formatted: the answer is a call as JSON, or the form of the request's own response_format.

    >>> from toolparse_lab import hermes_tool_middleware as middleware
    >>> tools = [{"name": "f"}]
    >>> question = [{"role": "user", "content": "Hi"}]
    >>> turn = middleware.transform_params({"messages": question, "tools": tools})
    >>> [message["role"] for message in turn.params["messages"]], turn.active
    (['system', 'user'], True)
    """

    params: dict[str, Any]
    tools: tuple[ToolSpec, ...] = ()
    choice: Kind = "auto"
    tool_name: str | None = None
    active: bool = False
    forced: bool = False
    one_call: bool = False
    messages: tuple[Any, ...] = field(default=(), repr=False, compare=False)
    _prepared: Prepared | None = field(default=None, repr=False, compare=False)
    many: bool = False
    formatted: bool = False
    _documents: Any = field(default=None, repr=False, compare=False)
    # The middleware with the options that the request says for itself, None where it says none.
    _middleware: Any = field(default=None, repr=False, compare=False)

    @property
    def asked(self) -> Any:
        """The request as `parse` takes it: the conversation, and the documents next to it."""
        if not self._documents:
            return self.messages
        return {"messages": self.messages, "documents": self._documents}

    @property
    def allowed(self) -> tuple[ToolSpec, ...]:
        """The tools that may be called: all of them without a name in the tool choice."""
        return tuple(t for t in self.tools if self.tool_name in (None, t.name))

    @property
    def read_whole(self) -> bool:
        """The answer is JSON from its first character to its last, and read at its end."""
        return self.forced or self.formatted

    @property
    def left_out(self) -> tuple[Mapping[str, Any], ...]:
        """The tools that only the provider could run. The model does not learn of them."""
        return self._prepared.offer.provider if self._prepared is not None else ()


@dataclass(slots=True)
class Prepared:
    """The outcome of one set of tools and one tool choice, shared by all requests with them."""

    offer: Offer
    writer: Writer
    protocol: Protocol | ForeignProtocol
    ways: Ways
    form: ChoiceForm = PLAIN
    # Examples of inputs that the prompt does not show.
    left_out: tuple[LeftOut, ...] = ()
    # Each is made when it is first needed: a request that is only prepared pays for no readers.
    prompt: str | None = None
    # Of whole answers, and of those that come in pieces.
    readers: tuple[Reader, Reader] | None = None
    # Of the format, which no user's text may contain.
    delimiters: tuple[str, ...] | None = None
