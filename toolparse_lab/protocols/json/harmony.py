"""`harmony_channel`: an answer made of messages, whose headers say if they are thought, call or
text."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ...types import Span
from ..base import NEED_MORE, Envelope, NeedMore, Opening, Protocol, Signs, Tools
from ..results import TextResult
from ..scan import LiteralBody, Scanner
from .named import NamedJson
from .scan import JsonBody, ends_in_value

_START, _CHANNEL, _MESSAGE = "<|start|>", "<|channel|>", "<|message|>"
_END, _CALL, _RETURN = "<|end|>", "<|call|>", "<|return|>"
# All parts but the last may be missing: what serves a model strips some of its special tokens.
_HEADER = re.compile(
    r"(?:<\|start\|>(?P<role>[^<]*))?(?:<\|channel\|>(?P<channel>[^<]*))?"
    r"(?:<\|constrain\|>[^<]*)?<\|message\|>"
)
_TO = re.compile(r"\bto=(?:functions\.)?(?P<name>[^\s<]+)")
_MAX_HEADER = 512


@dataclass(frozen=True, slots=True)
class Channels(Envelope):
    """Envelope: `<|channel|>` and other tokens around the header and the text of a message."""

    closers: tuple[str, ...] = (_CALL,)

    def heads(self, tools: Tools) -> tuple[str, ...]:
        """Return the tokens that begin a header or stand alone."""
        return (_START, _CHANNEL, _END, _CALL, _RETURN)

    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Opening | NeedMore | None:
        """Return what the header at `pos` opens.

        A recipient makes it a call, the channel "analysis" makes it thought; around any other text
        the header is markup, and the text is text. NEED_MORE while a header may still go on.
        """
        # Tokens that end a message are markup where no message is open.
        for token in (_END, _CALL, _RETURN):
            if text.startswith(token, pos):
                return Opening(len(token), "markup")

        # A header that goes on longer than any is text, in one piece too; to wait for its end would
        # cost too much at each of many openers.
        match = _HEADER.match(text, pos, pos + _MAX_HEADER)
        if not match:
            return None if final or len(text) - pos >= _MAX_HEADER else NEED_MORE

        end = match.end() - pos
        # The recipient may stand in the role or in the channel; both are in the header.
        recipient = _TO.search(text, pos, match.end())
        if recipient:
            span = Span(recipient.start("name") - pos, recipient.end("name") - pos)
            return Opening(end, name=recipient["name"], name_span=span)

        channel = (match["channel"] or "").strip()
        return Opening(end, "reasoning" if channel.startswith("analysis") else "markup")

    def scanner(self, opening: Opening, tools: Tools) -> Scanner:
        """Return the scanner of a thought, or of a call's arguments.

        Models often leave the end token out, so the next header ends both. A call's arguments are
        JSON, in whose strings such tokens are content.
        """
        if opening.kind == "reasoning":
            return LiteralBody((_END,), (_START, _CHANNEL))
        return JsonBody((_CALL,), (_START, _CHANNEL, _END))

    def in_value(self, opening: Opening, text: str, tools: Tools) -> bool:
        """Return whether arguments that were given up behind `text` end inside a value."""
        return ends_in_value(text)


def _frame(name: str, arguments_json: str) -> str:
    """Return a call as the model writes it."""
    header = f"{_START}assistant{_CHANNEL}commentary to=functions.{name} <|constrain|>json"
    return f"{header}{_MESSAGE}{arguments_json}{_CALL}"


def _result(name: str, call_id: str, content: str) -> str:
    """Return a result as a message of the tool to the assistant."""
    return f"{_START}functions.{name} to=assistant{_CHANNEL}commentary{_MESSAGE}{content}{_END}"


HARMONY = Protocol(
    id="harmony_channel",
    title="messages in channels",
    envelope=Channels(),
    codec=NamedJson(_frame),
    tags=frozenset(("delimited", "channels")),
    results=TextResult(_result, (_MESSAGE, "<|constrain|>")),
    signs=Signs(marks=(r"<\|channel\|>\s*\w+\s+to=[\w.]+|to=functions\.[\w.]+",)),
)
