"""`harmony_channel`: an answer made of messages, whose headers say if they are thought, call or
text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ...core.types import Span
from ..base import NEED_MORE, Answer, Opening, Protocol, Signs, Tools, make_opening
from ..results import TextResult
from ..scan import LiteralBody, Scanner, begun
from .forms import NamedJson
from .header import Frame
from .scan import JsonBody, JsonEnvelope

_START, _CHANNEL, _MESSAGE = "<|start|>", "<|channel|>", "<|message|>"
_END, _CALL, _RETURN = "<|end|>", "<|call|>", "<|return|>"
# All parts but the last may be missing: what serves a model strips some of its special tokens. The
# channel may be said several times, also after the recipient: the last word counts.
_HEADER = re.compile(
    r"(?:<\|start\|>(?P<role>[^<]*))?"
    r"(?:(?:<\|channel\|>[^<]*+){0,3}<\|channel\|>(?P<channel>[^<]*))?"
    r"(?:<\|constrain\|>[^<]*)?<\|message\|>"
)
# What is before it is looked at last, so that a search finds its letters first.
_TO = re.compile(
    r"to=(?:(?<=\bto=)|(?<=commentaryto=)|(?<=analysisto=))"
    r"\s?(?:functions\.)?(?P<name>[^\s<]+)"
)
_MAX_HEADER = 512
# The beginning of an answer whose prompt ends with `<|start|>assistant`, or after that.
_LONE_HEADS = (
    "to=",
    "commentary to=",
    *(f"{c}<|message|>" for c in ("analysis", "commentary", "final")),
)
_LONE = re.compile(
    r"(?P<role>(?!))?(?:[a-z]{1,10}\x20)?(?P<channel>[^<\n]{1,256})(?:<\|channel\|>[^<]{0,256})?"
    r"(?:<\|constrain\|>[^<]{0,64})?<\|message\|>"
)
_LONE_SO_FAR = re.compile(
    r"[^<\n]{1,267}(?:<\|channel\|>[^<]{0,256})?(?:<\|constrain\|>[^<]{0,64})?"
    rf"(?:{begun(_CHANNEL)}|{begun('<|constrain|>')}|{begun(_MESSAGE)})\Z"
)
# A call's header without its special tokens, which a server took out: the words on both sides of
# `to=functions.` are left, one after the other, and only the tools tell where the name ends.
_STRIPPED_HEADS = tuple(
    f"{role}{channel}to=functions."
    for role in ("assistant", "")
    for channel in ("commentary ", "analysis ", " ")
    if role or channel != " "
)
_STRIPPED_TAIL = re.compile(
    r"\x20?(?:commentary|analysis)?\x20{0,2}(?:(?:json|code)\x20?)?\s{0,8}(?=\{)"
)
_TAIL_SO_FAR = re.compile(r"[\sa-z]{0,40}")
_STRIPPED_TO = re.compile(r"(?:assistant)?(?:commentary|analysis)?\x20?to=functions\.")
_MAX_TAIL = 40
# What roles and channels of calls begin with: engines differ on a recipient in any other channel.
_MAY_CALL = re.compile(r"\s*(?:(?:assistant|analysis|comment)|to=|\Z|code\b|json\b)", re.IGNORECASE)
# Recipients that are no tools: a message to them is text, or thought.
_FOREIGN = ("user", "system", "developer", "tool", "functions.")  # whose messages are not calls
_PEOPLE = frozenset(
    ("user", "all", "assistant", "self", "developer", "system", "commentary", "final", "analysis")
)
# A header that breaks off. The channels without a recipient contain no calls.
_CUT_HEADER = re.compile(
    r"(?:<\|start\|>(?P<role>assistant[ ]?))?"
    r"(?:<\|channel\|>(?P<channel>final|commentary|analysis)[ ]?)(?=\n|<|\{|\[|\Z)"
)
_MESSAGE_ENDS = (_START, _CHANNEL, _END, _CALL, _RETURN)


@dataclass(frozen=True, slots=True)
class Channels(JsonEnvelope):
    """Envelope: `<|channel|>` and other tokens around the header and the text of a message."""

    closers: tuple[str, ...] = (_CALL,)

    def heads(self, tools: Tools) -> tuple[str, ...]:
        return (_START, _CHANNEL, _MESSAGE, _END, _CALL, _RETURN, *_STRIPPED_HEADS)

    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Answer:
        # A recipient makes it a call, the channel "analysis" makes it thought. Around any other
        # text the header is markup, and the text is text, whatever is in it.
        # Tokens that end a message are markup where no message is open.
        for token in (_END, _CALL, _RETURN):
            if text.startswith(token, pos):
                return Opening(len(token), "markup")

        if text[pos] != "<":
            return _stripped_opening(text, pos, final, tools)

        # A header that goes on longer than any is text, in one piece too; to wait for its end would
        # cost too much at each of many openers.
        match = _HEADER.match(text, pos, pos + _MAX_HEADER)
        if not match:
            if not final and len(text) - pos < _MAX_HEADER:
                return NEED_MORE
            match = _CUT_HEADER.match(text, pos)
            return _opening_of(match, text, pos, tools) if match else None

        return _opening_of(match, text, pos, tools)

    def resumes(self, text: str, tools: Tools) -> Answer:
        if not text.startswith(_LONE_HEADS):
            return NEED_MORE if any(head.startswith(text) for head in _LONE_HEADS) else None
        stripped = _stripped_opening(text, 0, False, tools)
        if stripped is not None:
            return stripped
        match = _LONE.match(text, 0, _MAX_HEADER)
        if not match:
            is_open = len(text) < _MAX_HEADER and _LONE_SO_FAR.match(text)
            return NEED_MORE if is_open else None
        # Arguments in XML are those of another format with the same headers.
        if "xml" in match[0]:
            return None
        opening = _opening_of(match, text, 0, tools)
        if opening.kind == "markup":
            return opening
        # A call in tags, and a message to the model itself, are of other formats.
        if opening.kind == "reasoning":
            return None if "to=self" in text[: opening.end] else opening
        rest = text[opening.end : opening.end + _MAX_TAIL].lstrip()
        if not rest:
            return NEED_MORE if len(text) < opening.end + _MAX_TAIL else opening
        return None if rest[0] == "<" else opening

    def resume_starts(self, tools: Tools) -> str | None:
        return "".join({head[0] for head in _LONE_HEADS})

    def scanner(self, opening: Opening, tools: Tools) -> Scanner:
        # Models often leave the end token out, so the next header ends both. A call's arguments are
        # JSON, in whose strings such tokens are content.
        if opening.kind == "reasoning":
            return LiteralBody((_END,), (_START, _CHANNEL))
        return JsonBody((_CALL,), (_START, _CHANNEL, _END, *_STRIPPED_HEADS))


def _opening_of(match: re.Match[str], text: str, pos: int, tools: Tools) -> Opening:
    # the header is text[pos:match.end()]
    end = match.end() - pos
    # The recipient may be in the role or in the channel; both are in the header.
    recipient = _TO.search(text, pos, match.end())
    # The rest of a header whose beginning is in the prompt has no role.
    role, channel = match["role"] or "", match["channel"] or ""
    if not _MAY_CALL.match(role) or role.lstrip().startswith(_FOREIGN):
        return Opening(end, "markup", text=_MESSAGE_ENDS)
    name = recipient["name"] if recipient else ""
    if recipient and _MAY_CALL.match(channel) and (name not in _PEOPLE or name in tools):
        span = Span(recipient.start("name") - pos, recipient.end("name") - pos)
        return make_opening(end, name=name, name_span=span)

    # What goes to the user is text, even where it looks like a call.
    if channel.lstrip().startswith("analysis") or name == "self":
        return Opening(end, "reasoning")
    return Opening(end, "markup", text=_MESSAGE_ENDS)


def _stripped_opening(text: str, pos: int, final: bool, tools: Tools) -> Answer:
    # of a known tool only; NEED_MORE while a longer text may still be such a header
    begin = _STRIPPED_TO.match(text, pos)
    if not begin:
        return None
    start = begin.end()
    longest = None
    for name in sorted(tools, key=len, reverse=True):
        if not text.startswith(name, start):
            if not final and name.startswith(text[start:]):
                longest = NEED_MORE
            continue
        end = start + len(name)
        tail = _STRIPPED_TAIL.match(text, end)
        if tail:
            return make_opening(tail.end() - pos, name=name, name_span=Span(start - pos, end - pos))
        if not final and len(text) - end < _MAX_TAIL and _TAIL_SO_FAR.fullmatch(text, end):
            longest = NEED_MORE
    return longest


_HEAD = f"{_START}assistant{_CHANNEL}commentary to=functions.{{name}} <|constrain|>json{_MESSAGE}"


def _result(name: str, call_id: str, content: str) -> str:
    return f"{_START}functions.{name} to=assistant{_CHANNEL}commentary{_MESSAGE}{content}{_END}"


HARMONY = Protocol(
    id="harmony_channel",
    aliases=("harmony_role", "gpt_oss"),
    title="messages in channels",
    envelope=Channels(),
    codec=NamedJson(Frame(_HEAD, _CALL)),
    tags=frozenset(("delimited", "channels")),
    results=TextResult(_result, (_MESSAGE, "<|constrain|>")),
    signs=Signs(marks=(r"<\|channel\|>\s*\w+\s+to=[\w.]+|to=functions\.[\w.]+",)),
)
