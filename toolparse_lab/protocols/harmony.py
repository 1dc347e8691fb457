"""`harmony_channel`: an answer made of messages with headers; the header says whether it is thought, call or text."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..scan import JsonBody, LiteralBody, Scanner
from ..types import Span
from .base import NEED_MORE, NeedMore, Opening, Protocol, Tools
from .named_json import NamedJson
from .results import TextResult

_START, _CHANNEL, _MESSAGE = "<|start|>", "<|channel|>", "<|message|>"
_END, _CALL, _RETURN = "<|end|>", "<|call|>", "<|return|>"
_HEADER = re.compile(
    r"(?:<\|start\|>(?P<role>[^<]*))?(?:<\|channel\|>(?P<channel>[^<]*))?(?:<\|constrain\|>[^<]*)?<\|message\|>"
)
_TO = re.compile(r"\bto=(?:functions\.)?(?P<name>[^\s<]+)")
_MAX_HEADER = 512


@dataclass(frozen=True, slots=True)
class Channels:
    closers: tuple[str, ...] = (_CALL,)

    def heads(self, tools: Tools) -> tuple[str, ...]:
        return (_START, _CHANNEL, _END, _CALL, _RETURN)

    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Opening | NeedMore | None:
        for token in (_END, _CALL, _RETURN):
            if text.startswith(token, pos):
                return Opening(len(token), "markup")
        m = _HEADER.match(text, pos)
        if not m:
            return None if final or len(text) - pos > _MAX_HEADER else NEED_MORE
        end = m.end() - pos
        to = _TO.search(text, pos, m.end())
        if to:
            span = Span(to.start("name") - pos, to.end("name") - pos)
            return Opening(end, name=to["name"], name_span=span)
        if (m["channel"] or "").strip().startswith("analysis"):
            return Opening(end, "reasoning")
        return Opening(end, "markup")

    def scanner(self, opening: Opening, tools: Tools) -> Scanner:
        if opening.kind == "reasoning":
            return LiteralBody((_END,), (_START, _CHANNEL))
        return JsonBody((_CALL,), (_START, _CHANNEL, _END))

    def speculates(self, text: str) -> Opening | NeedMore | None:
        return None


def _frame(name: str, arguments_json: str) -> str:
    return (
        f"{_START}assistant{_CHANNEL}commentary to=functions.{name} <|constrain|>json{_MESSAGE}{arguments_json}{_CALL}"
    )


def _result(name: str, call_id: str, content: str) -> str:
    return f"{_START}functions.{name} to=assistant{_CHANNEL}commentary{_MESSAGE}{content}{_END}"


HARMONY = Protocol(
    id="harmony_channel",
    title="messages in channels",
    envelope=Channels(),
    codec=NamedJson(_frame),
    tags=frozenset(("delimited", "channels")),
    results=TextResult(_result, (_MESSAGE, "<|constrain|>")),
)
