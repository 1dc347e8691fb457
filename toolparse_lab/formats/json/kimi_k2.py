"""`kimi_k2`: a section of calls, whose ids hold the tool's name: `functions.NAME:INDEX`."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, replace

from ...arguments.rjson.strict import Refusal
from ...arguments.schema.view import view_of
from ...core.types import Span, Step
from ..base import (
    NEED_MORE,
    Answer,
    DecodeContext,
    Decoded,
    Opening,
    Protocol,
    Signs,
    Tools,
    make_opening,
)
from ..results import TextResult
from ..scan import Scanner, any_of, begun
from .call import JsonCall
from .forms import NamedJson
from .header import Frame
from .scan import JsonBody, JsonEnvelope

_SECTION = ("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>")
_BEGIN = "<|tool_call_begin|>"
_ARGUMENTS = "<|tool_call_argument_begin|>"
_ARGUMENTS_TOKEN = re.compile(r"<\|tool_call_arguments?_begin\|>")
_END = "<|tool_call_end|>"
_ID = re.compile(r"(?:functions?\.)?(?P<name>[^\s:<>]+?)(?::(?P<index>\d+))?\Z")
# Other separators, as models write them that have seen other ids.
_DAMAGED_ID = re.compile(
    r"(?:(?:functions?|tools?)[._:]?)?(?P<name>\S+?)(?:[_:#.-]?\d*|:?\s?\d*)(?:\s?json)?\Z",
    re.IGNORECASE,
)
_MAX_ID = 512
_OTHER = re.compile(any_of((_BEGIN, _END, *_SECTION)))  # tokens that end an id
# A call whose special tokens a server took out: its id and its arguments, one after the other.
_BARE_ID = "functions."
# On one line: a result as this format writes it has its JSON on the line below the id.
# The token of the arguments may be there all the same.
_TOKEN = re.escape(_ARGUMENTS)
_STRIPPED = re.compile(
    rf"functions\.(?P<name>[^\s:<>{{]{{1,256}}+)(?::\d{{1,6}}+)?+"
    rf"(?:\s{{0,8}}+{_TOKEN}\s{{0,16}}+|(?<=\d)[ \t]{{0,8}}+)(?=\{{)"
)
_STRIPPED_SO_FAR = re.compile(
    rf"functions\.[^\s:<>{{]{{0,256}}+(?::\d{{0,6}}+)?+"
    rf"(?:\s{{0,8}}+(?:{begun(_ARGUMENTS)})?+|\s{{0,8}}+{_TOKEN}\s{{0,16}}+)\Z"
)
# A call whose arguments lost their token, and an id that names no tool.
_NO_TOKEN = re.compile(r"\s{0,64}+(?P<id>[^\s<>{}\"]{1,256}+)\s{0,64}+(?=\{)")
_BODY_ALONE = re.compile(r"\s{0,64}+(?=\{)")
_PLAIN_ID = re.compile(
    r"(?:\d{1,6}|(?:call|tool|fc)[_-]?[\w-]{0,64}|(?:toolu|chatcmpl)[_-][\w-]{1,64}"
    r"|[0-9a-f-]{8,40})?\Z",
    re.IGNORECASE,
)
_NAME_FIRST = re.compile(r"\s{0,64}+\{\s{0,64}+[\"']name[\"']")
_QUOTES = "\"'`"


@dataclass(frozen=True, slots=True)
class KimiSection(JsonEnvelope):
    """Envelope: a section's tokens are markup. In it each call has its own."""

    closers: tuple[str, ...] = (_END,)

    def heads(self, tools: Tools) -> tuple[str, ...]:
        return (*_SECTION, _BEGIN, _BARE_ID)

    def token(self, head: str) -> Opening | None:
        return Opening(len(head), "markup") if head in _SECTION else None

    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Answer:
        # Offsets count from `pos`. White space around the id is no part of it.
        for token in _SECTION:
            if text.startswith(token, pos):
                return Opening(len(token), "markup")

        if text[pos] != "<":
            match = _STRIPPED.match(text, pos)
            if match is None:
                return None if final or not _STRIPPED_SO_FAR.match(text, pos) else NEED_MORE
            if match["name"] not in tools:
                return None
            return make_opening(
                match.end() - pos,
                name=match["name"],
                name_span=Span(match.start("name") - pos, match.end("name") - pos),
                wire_id=match[0].rstrip(),
                speculative=True,
            )

        start = pos + len(_BEGIN)
        mark = _ARGUMENTS_TOKEN.search(text, start, start + _MAX_ID)
        end = mark.start() if mark else -1
        # No id contains a brace: arguments begin there, whatever follows them.
        if text.find("{", start, end if mark else start + _MAX_ID) >= 0:
            without = _without_token(text, start, pos, tools)
            if without is not None:
                return without
        # No id contains a token: one that is there says that the arguments' own is missing.
        other = _OTHER.search(text, start, start + _MAX_ID if end < 0 else end)
        if other is not None:
            doubled = other[0] == _BEGIN and not text[start : other.start()].strip()
            return Opening(len(_BEGIN), "markup") if doubled else None
        if end < 0:
            # An id longer than any is text: waiting would cost too much at each of many openers.
            return None if final or len(text) - start > _MAX_ID else NEED_MORE

        # Spans are those of the name itself, without the white space around the id.
        padded = text[start:end]
        wire_id = padded.strip().strip(_QUOTES).strip()
        name, offset = _name_of(wire_id, tools)
        name_start = start + padded.find(wire_id) + offset - pos
        place = Span(name_start, name_start + len(name)) if offset >= 0 else None
        after = mark.end() if mark else end
        return make_opening(after - pos, name=name, name_span=place, wire_id=wire_id)

    def scanner(self, opening: Opening, tools: Tools) -> Scanner:
        # the next call or the section's end closes too
        stops = (_BEGIN, _SECTION[1])
        return JsonBody(self.closers, (*stops, _BARE_ID) if opening.speculative else stops)


def _name_of(wire_id: str, tools: Tools) -> tuple[str, int]:
    # The offset is -1 where the name is not in the id. A damaged id gives it up only if it contains
    # a known name; one that no one knows is taken as it is, so that the call can be reported by it.
    match = _ID.match(wire_id)
    if match and (not tools or match["name"] in tools):
        return match["name"], match.start("name")

    # A counter alone can only mean the only tool.
    if len(tools) == 1 and wire_id.isdigit():
        return next(iter(tools)), -1

    damaged = _DAMAGED_ID.match(wire_id)
    if damaged and damaged["name"] in tools:
        return damaged["name"], damaged.start("name")
    return (match["name"], match.start("name")) if match else (wire_id, 0)


def _without_token(text: str, start: int, pos: int, tools: Tools) -> Opening | None:
    # The id names a tool on offer, or there is none and the body says the name.
    alone = _BODY_ALONE.match(text, start)
    if alone is not None:
        return make_opening(alone.end() - pos)
    match = _NO_TOKEN.match(text, start)
    name, offset = _name_of(match["id"], tools) if match else ("", -1)
    if match is None or offset < 0 or name not in tools:
        return None
    at = match.start("id") + offset - pos
    span = Span(at, at + len(name))
    return make_opening(match.end() - pos, name=name, name_span=span, wire_id=match["id"])


@dataclass(frozen=True, slots=True)
class KimiJson(NamedJson):
    """Codec of such calls. Where an id names no tool, as `call_1` does, the body may."""

    def read(self, body: str, context: DecodeContext) -> tuple[Decoded, ...]:
        # The body may name the tool where its id does not, or no parameter of it is a name.
        # Another tool's arguments may have a name, which is none of a tool.
        tool = context.tools.get(context.opening.name)
        if tool is None:
            may_name = _PLAIN_ID.match(context.opening.wire_id or "") is not None
        else:
            properties = view_of(tool.schema_json).properties
            may_name = bool(properties) and "name" not in properties
        if may_name and _NAME_FIRST.match(body):
            with suppress(Refusal):
                named = self._named(body, context)
                if named:
                    return named
        return super(KimiJson, self).read(body, context)

    def _named(self, body: str, context: DecodeContext) -> tuple[Decoded, ...]:
        opening = context.opening
        calls = JsonCall(_BEGIN, _END).read(body, replace(context, opening=Opening(opening.end)))
        named: list[Decoded] = []
        for call in calls:
            is_tool = call.name in context.tools
            fits = is_tool and opening.name in (call.name, opening.wire_id, "")
            # An object with nothing but a name may be the arguments of any tool.
            if not call.readable or not call.arguments or not fits:
                return ()
            step = Step("read", "read.name-in-body", "", None, opening.wire_id, call.name)
            named.append(replace(call, wire_id=opening.wire_id, steps=(step, *call.steps)))
        return tuple(named)


_HEAD = f"{_SECTION[0]}{_BEGIN}functions.{{name}}:0{_ARGUMENTS}"


def _result(name: str, call_id: str, content: str) -> str:
    # under the id of its call, or one that this format would have
    wire_id = call_id if call_id.startswith("functions.") else f"functions.{name}:0"
    return f"## Return of {wire_id}\n{content}"


KIMI_K2 = Protocol(
    id="kimi_k2",
    title="a section of calls with ids",
    envelope=KimiSection(),
    codec=KimiJson(Frame(_HEAD, _END + _SECTION[1])),
    tags=frozenset(("delimited", "section")),
    results=TextResult(_result, ("## Return of", _ARGUMENTS, "<|im_")),
    signs=Signs(openers=(r"<\|tool_calls?_(?:section_)?(?:begin|start)\|>",)),
)
