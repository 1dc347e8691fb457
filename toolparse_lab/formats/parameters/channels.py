"""Parameter tags in messages with a header that names the recipient."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property

from ...arguments.rjson.damage import Refusal
from ...core.toolspec import ToolSpec
from ...core.types import Edit, Span
from ..base import (
    NEED_MORE,
    Codec,
    Decoded,
    NeedMore,
    Opening,
    Places,
    Reading,
    Tools,
    make_opening,
)
from ..scan import LiteralBody, Scanner
from .form import TagForm
from .scan import ParameterScan
from .tags import ParameterCall, ParameterTags

_MAX_HEADER = 512
_START = "<|start|>"
_HEADER = re.compile(r"<\|start\|>(?P<header>[^<]{0,400})<\|message\|>")
_TO = re.compile(r"\bto=(?P<name>[^\s<]+)")
# The rest of a header whose beginning stood in the prompt.
_LONE_HEADER = re.compile(r"to=[^\s<]{1,128}+\s{0,4}<\|message\|>")
_LONE_SO_FAR = re.compile(
    r"(?:t|to|to=|to=[^\s<]{1,128}+\s{0,4}(?:<(?:\|[a-z]{0,7}(?:(?<=message)\|)?)?)?)\Z"
)


@dataclass(frozen=True)
class MessageTags(ParameterTags):
    """Envelope of blocks in messages, of which header and end are markup.

    A message to the model itself is thought, one to the user is text.
    """

    ends: tuple[str, ...] = ("<|eom|>", "<|eot|>")

    def heads(self, tools: Tools) -> tuple[str, ...]:
        return (*super().heads(tools), _START, *self.ends)

    def may_open(self, literal: str) -> bool:
        return literal.startswith((_START, *self.ends)) or super().may_open(literal)

    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Opening | NeedMore | None:
        for end in self.ends:
            if text.startswith(end, pos):
                return Opening(len(end), "markup")
        if not text.startswith(_START, pos):
            return super().open(text, pos, final, tools)
        match = _HEADER.match(text, pos)
        if match is None:
            return None if final or len(text) - pos >= _MAX_HEADER else NEED_MORE
        return self._message(match[0], match.end() - pos)

    def _message(self, header: str, end: int) -> Opening:
        recipient = _TO.search(header)
        name = recipient["name"] if recipient else ""
        if name == "self":
            return Opening(end, "reasoning")
        return Opening(end, "markup", text=(_START, *self.ends) if name == "user" else ())

    def resumes(self, text: str, tools: Tools) -> Opening | NeedMore | None:
        # An answer may begin inside the header of a message.
        match = _LONE_HEADER.match(text)
        if match is not None:
            return self._message(match[0], match.end())
        return NEED_MORE if _LONE_SO_FAR.match(text) else None

    def resume_starts(self, tools: Tools) -> str | None:
        return "t"

    @property
    def may_resume(self) -> bool:
        return True

    def suits(
        self, opening: Opening, text: str, at: int, final: bool, tools: Tools
    ) -> bool | NeedMore | None:
        if opening.kind == "call":
            return super().suits(opening, text, at, final, tools)
        if opening.kind == "reasoning":
            return True
        while at < len(text) and text[at].isspace():
            at += 1
        opener = self.form.opener
        if text.startswith(opener, at):
            return True
        return NEED_MORE if not final and opener.startswith(text[at : at + len(opener)]) else False

    def scanner(self, opening: Opening, tools: Tools) -> Scanner:
        if opening.kind == "reasoning":
            return LiteralBody(self.ends, (_START,))
        if not opening.end:
            return super().scanner(opening, tools)
        return ParameterScan(self.form, tools, wrapped=True, ends=self._tokens)

    @cached_property
    def _tokens(self) -> re.Pattern[str]:
        return re.compile("|".join(map(re.escape, (_START, *self.ends))))


_RECIPIENT = re.compile(
    r"(?:<\|start\|>assistant)?[ ]?to=(?:functions\.)?(?P<name>[\w.:/-]{1,128}+)"
    r"(?:\s{0,4}<\|channel\|>[^<]{0,64}+)?(?:<\|constrain\|>[ ]?xml[ ]?)<\|message\|>"
)
_RECIPIENT_SO_FAR = re.compile(
    r"(?:<\|start\|>assistant)?[ ]?to=[^<>\s]{0,140}+\s{0,4}(?:<[^\r\n]{0,160})?\Z"
)
_CALL = "<|call|>"
_NEXT_CALL = re.compile(
    rf"{re.escape(_CALL)}\s*+(?={_RECIPIENT.pattern.replace('?P<name>', '?:')})"
)
_ROLE = "<|start|>assistant"
_THOUGHT, _SAID = "<|channel|>analysis<|message|>", "<|channel|>final<|message|>"
_END = "<|end|>"
_THOUGHTS = (_THOUGHT, _ROLE + _THOUGHT)
_AROUND = (*_THOUGHTS, _SAID, _ROLE + _SAID, _END, "<|return|>")  # what stands around calls


@dataclass(frozen=True)
class HeadedTags(ParameterTags):
    """Envelope of a header that names the tool, behind which parameters stand."""

    form: TagForm

    @property
    def closers(self) -> tuple[str, ...]:
        return (_CALL,)

    def heads(self, tools: Tools) -> tuple[str, ...]:
        return (_ROLE + " to=", " to=", "to=", *_AROUND)

    def may_open(self, literal: str) -> bool:
        return True

    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Opening | NeedMore | None:
        for token in _AROUND:
            if text.startswith(token, pos):
                return Opening(len(token), "reasoning" if token in _THOUGHTS else "markup")
        match = _RECIPIENT.match(text, pos)
        if match is None:
            begins = _RECIPIENT_SO_FAR.match(text, pos) or _begins_token(text, pos)
            return NEED_MORE if begins and not final else None
        span = Span(match.start("name") - pos, match.end("name") - pos)
        return make_opening(match.end() - pos, name=match["name"], name_span=span)

    def suits(
        self, opening: Opening, text: str, at: int, final: bool, tools: Tools
    ) -> bool | NeedMore | None:
        return opening.kind == "call"

    def scanner(self, opening: Opening, tools: Tools) -> Scanner:
        if opening.kind == "reasoning":
            return LiteralBody((_END,), ("<|start|>",))
        return ParameterScan(self._ending, tools, wrapped=True, name=opening.name)

    @cached_property
    def _ending(self) -> TagForm:
        return replace(self.form, closer=_CALL)

    def in_value(self, opening: Opening, text: str, tools: Tools) -> bool:
        # A parameter's tag behind the last closer: its value was still open.
        return text.rfind(f"<{self.form.parameter}") > text.rfind(self.form.parameter_closer)

    def closer_of(self, opening: Opening) -> str:
        return _CALL


def _begins_token(text: str, pos: int) -> bool:
    return any(len(text) - pos < len(t) and t.startswith(text[pos:]) for t in _AROUND)


@dataclass(frozen=True, slots=True)
class HeadedCall(Codec):
    """Codec of parameters behind a header, read as inside a function's tags of that name."""

    form: TagForm

    def read(self, body: str, reading: Reading) -> tuple[Decoded, ...]:
        # An end that the next header follows ended a value without its closer.
        swallowed = _NEXT_CALL.search(body)
        if swallowed is not None:
            message = "the call ends inside a value, and another begins"
            raise Refusal("decode.ambiguous", message, swallowed.start())
        # Read as a function's body, since the header says no more than a function's tag. The
        # offsets then move back by the tag's length.
        head = self.form.function_tag(reading.opening.name)
        whole = head + body + (self.form.function_closer if reading.closed else "")
        calls = ParameterCall(self.form).read(whole, reading)
        if any(edit.rule == "tags.unclosed-parameter" for call in calls for edit in call.edits):
            header = _RECIPIENT.search(body)
            if header is not None:
                message = "a value without its closer holds the header of another call"
                raise Refusal("decode.ambiguous", message, header.start())
        return tuple(_shifted(call, -len(head), len(body)) for call in calls)

    def write(self, name: str, arguments_json: str, tool: ToolSpec | None) -> str:
        text = ParameterCall(self.form).write(name, arguments_json, tool)
        head, closer = self.form.function_tag(name), self.form.function_closer
        inner = text[len(head) : len(text) - len(closer)]
        header = f" to={name}<|channel|>analysis <|constrain|>xml<|message|>"
        return f"{header}{inner}{_CALL}"


def _shifted(call: Decoded, by: int, size: int) -> Decoded:
    # Nothing of a call is beyond the body, whose size is `size`.

    def moved(start: int, end: int) -> tuple[int, int]:
        return max(0, min(size, start + by)), max(0, min(size, end + by))

    places = call.places

    def moved_places() -> Places:
        return {path: moved(*place) for path, place in places().items()}

    edits = tuple(
        Edit(Span(*moved(edit.span.start, edit.span.end)), edit.text, edit.rule)
        for edit in call.edits
    )
    return replace(call, name_span=None, edits=edits, places=moved_places)
