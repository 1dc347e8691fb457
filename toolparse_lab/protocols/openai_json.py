"""`openai_json`: a whole message as JSON, the calls in its `tool_calls`, their arguments JSON text inside strings.

A provider's own calls are recorded in this form, and models that were told to write OpenAI's JSON write it. Nothing
opens a message but the beginning of an answer. The arguments of the last call may have been cut off with the answer,
which the JSON around them does not show: no bracket is ever added to them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..rjson.damage import Refusal
from ..rjson.repair import read_damaged
from ..rjson.strict import read_if_strict
from ..scan import Balanced, Scanner
from ..toolspec import ToolSpec
from ..types import Edit, Problem, Span, Step
from ..values import Value, escape_token, write_canonical
from .base import NEED_MORE, Decoded, Message, NeedMore, Opening, Piece, Protocol, Reading, Tools
from .json_call import _Source, read_body_values, unescape_offsets
from .results import JsonResult

_KEYS = ("tool_calls", "function_call", "content", "role", "refusal", "reasoning_content", "reasoning")
_HEAD = re.compile(rf"""\{{\s{{0,40}}["'](?:{"|".join(_KEYS)})["']\s{{0,10}}:""")
_HEAD_SO_FAR = re.compile(r"""\{\s{0,40}(?:["'][a-z_]{0,20}(?:["']\s{0,10})?)?\Z""")
_CALLED = re.compile(r"""["'](?:tool_calls|function_call)["']\s*:\s*[\[{]""")
_NAMED = re.compile(r"""["']name["']\s*:\s*["']([^"'\\]*)["']""")
_Kind: TypeAlias = Literal["text", "reasoning"]
_TEXTS: Mapping[str, _Kind] = {
    "content": "text",
    "refusal": "text",
    "reasoning_content": "reasoning",
    "reasoning": "reasoning",
}
_ARGUMENTS = ("arguments", "input", "parameters")


@dataclass(frozen=True, slots=True)
class WholeMessage:
    """Envelope: an answer that begins with `{` and a key of a message. It ends behind the brace that closes it."""

    def heads(self, tools: Tools) -> tuple[str, ...]:
        return ()

    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Opening | NeedMore | None:
        return None

    def speculates(self, text: str) -> Opening | NeedMore | None:
        if _HEAD.match(text):
            return Opening(0, speculative=True)
        return NEED_MORE if _HEAD_SO_FAR.match(text) else None

    def scanner(self, opening: Opening, tools: Tools) -> Scanner:
        return Balanced()


@dataclass(frozen=True, slots=True)
class MessageCalls:
    """Codec: the calls of a message, each with a place of its own, and its texts; or one call alone."""

    def strict(self, body: str, reading: Reading) -> bool:
        values = read_if_strict(body, reading.max_depth)
        if values is None or len(values) != 1:
            return False
        texts = [_arguments_of(call) for call in _calls_in(values[0]).values()]
        return all(not isinstance(t, str) or not t.strip() or read_if_strict(t, reading.max_depth) for t in texts)

    def read(self, body: str, reading: Reading) -> tuple[Decoded, ...]:
        if not reading.closed:
            return _cut_message(body, reading)
        values = read_if_strict(body, reading.max_depth)
        if values is None and not reading.repair:
            raise Refusal("decode.json", "the message is no strict JSON, and repair is off", 0)
        if values is None or len(values) != 1:
            return _damaged_message(body, reading)
        calls = _calls_in(values[0])
        if not calls and not _is_message(values[0]):
            raise Refusal("call.not-an-object", "this JSON is no message with calls", 0)
        return _message(values[0], calls, body, reading)

    def write(self, name: str, arguments_json: str, tool: ToolSpec | None) -> str:
        function = f'{{"name":{write_canonical(name)},"arguments":{write_canonical(arguments_json)}}}'
        return f'{_OPEN}{_ID}"call_0","type":"function","function":{function}}}{_CLOSE}'

    def join(self, calls: Sequence[str]) -> str:
        """The calls of several messages in one, each with an id of its own."""
        inner = [text[len(_OPEN + _ID) + len('"call_0"') : -len(_CLOSE)] for text in calls]
        return _OPEN + ",".join(f'{_ID}"call_{n}"{text}' for n, text in enumerate(inner)) + _CLOSE


_OPEN, _ID, _CLOSE = '{"content":null,"tool_calls":[', '{"id":', "]}"


def _is_message(value: Value) -> bool:
    if not isinstance(value, dict):
        return False
    return isinstance(value.get("tool_calls", 0), list | None) or value.get("role") == "assistant"


def _calls_in(value: Value) -> dict[str, Value]:
    """JSON Pointer -> call, in order: of a message, of a list of calls, or one call alone."""
    if isinstance(value, list):
        return {f"/{i}": call for i, call in enumerate(value)}
    if not isinstance(value, dict):
        return {}
    if isinstance(value.get("tool_calls"), list):
        return {f"/tool_calls/{i}": call for i, call in enumerate(value["tool_calls"])}
    if isinstance(value.get("function_call"), dict):
        return {"/function_call": value["function_call"]}
    alone = isinstance(value.get("name"), str) or any(isinstance(value.get(k), dict) for k in ("function", "custom"))
    return {"": value} if alone and not _is_message(value) else {}


def _texts_in(value: Value) -> dict[str, _Kind]:
    """JSON Pointer -> kind of each text of a message, those of its content parts included."""
    if not isinstance(value, dict):
        return {}
    found: dict[str, _Kind] = {f"/{key}": kind for key, kind in _TEXTS.items() if isinstance(value.get(key), str)}
    if "/reasoning_content" in found:  # some servers say it twice
        found.pop("/reasoning", None)
    content = value.get("content")
    for i, part in enumerate(content if isinstance(content, list) else ()):
        if isinstance(part, dict) and isinstance(part.get("text"), str):
            found[f"/content/{i}/text"] = "text"
    return found


def _inner(call: Value) -> tuple[Value, str]:
    """What holds name and arguments, and its path from the call."""
    if isinstance(call, dict):
        for key in ("function", "custom"):
            if isinstance(call.get(key), dict):
                return call[key], f"/{key}"
    return call, ""


def _arguments_of(call: Value) -> Value:
    inner, _ = _inner(call)
    return next((inner[k] for k in _ARGUMENTS if k in inner), None) if isinstance(inner, dict) else None


def _message(value: Value, calls: dict[str, Value], body: str, reading: Reading) -> Message:
    source = _Source(body, (), [(0, at) for at in calls])
    decoded = _decoded(calls, source, reading)
    pieces = [Piece("call", source.span_of(0, at) or Span(0, len(body))) for at in calls]
    texts = {} if "" in calls else _texts_in(value)  # a call alone has no text beside it
    pieces += [Piece(kind, span) for at, kind in texts.items() if (span := source.span_of(0, at))]
    return Message(decoded, pieces)


def _decoded(calls: dict[str, Value], source: _Source, reading: Reading) -> list[Decoded]:
    last = next(reversed(calls), None)
    return [_read_call(call, at, source, reading, whole=at != last) for at, call in calls.items()]


def _read_call(call: Value, at: str, source: _Source, reading: Reading, *, whole: bool) -> Decoded:
    """One call. whole: its arguments cannot have been cut off, since another call follows."""
    here = source.span_of(0, at) or Span(0, 0)
    edits = source.edits_of(0, at)
    inner, below = _inner(call)
    name = inner.get("name") if isinstance(inner, dict) else None
    if not isinstance(name, str) or not name:
        problem = Problem("read", "call.no-name", "error", "the call names no tool", "", here)
        return Decoded("", None, problems=(problem,), readable=False, edits=edits)
    at += below
    wire_id = call.get("id")
    made = Decoded(
        name, {}, name_span=source.span_of(0, f"{at}/name"), edits=edits, unescape=unescape_offsets,
        wire_id=wire_id if isinstance(wire_id, str) and wire_id else None,
    )  # fmt: skip
    key = next((k for k in _ARGUMENTS if k in inner), None)
    base = f"{at}/{escape_token(key)}" if key else at
    given = inner[key] if key else None
    if given is None or given == "" or (isinstance(given, str) and given.isspace()):
        made.steps = (Step("read", "read.empty-arguments", "", None, given, {}),)
        made.places = source.places_of(0, base, "", {})
    elif isinstance(given, dict):
        made.arguments, made.places = given, source.places_of(0, base, "")
        made.steps = (Step("read", "read.plain-arguments", "", None, given, write_canonical(given)),)
    elif isinstance(given, str):
        _read_text(made, given, base, source, reading, whole=whole)
    else:
        _refuse(made, Refusal("call.not-an-object", "the arguments are no JSON object", 0), source.span_of(0, base))
    return made


def _read_text(made: Decoded, text: str, base: str, source: _Source, reading: Reading, *, whole: bool) -> None:
    """The arguments that a JSON text inside a string says; what is wrong with it has its place in the body."""
    try:
        values, edits = _values_of(text, reading, whole)
        if len(values) != 1:
            raise Refusal("decode.ambiguous", f"the arguments are {len(values)} JSON values", 0)
        if not isinstance(values[0], dict):
            raise Refusal("call.not-an-object", "the arguments are no JSON object", 0)
        placed: list[Edit] | None = source.nested_edits(0, base, text, edits) if edits else []
        if placed is None:
            raise Refusal("decode.ambiguous", "the arguments are damaged JSON inside a damaged string", 0)
    except Refusal as no:
        place = source.span_of(0, base)
        offsets = unescape_offsets(source.body[place.start : place.end]) if place else None
        if place and offsets is not None and len(offsets) == len(text) + 1:
            at = place.start + offsets[min(no.position, len(text))]
            place = Span(min(at, place.end), min(at + 1, place.end))
        _refuse(made, no, place)
        return
    made.arguments = values[0]
    made.edits = tuple(sorted((*made.edits, *placed), key=lambda e: (e.span.start, e.span.end)))
    made.places = source.places_of(0, base, text)


def _values_of(text: str, reading: Reading, whole: bool) -> tuple[list[Value], list[Edit]]:
    if reading.repair:
        return read_damaged(text, closed=whole, numbers_end=False, prose=False, max_depth=reading.max_depth)
    values = read_if_strict(text, reading.max_depth)
    if values is None:
        raise Refusal("decode.json", "the arguments are no strict JSON, and repair is off", 0)
    return values, []


def _refuse(made: Decoded, no: Refusal, place: Span | None) -> None:
    made.arguments, made.readable = None, False
    made.truncated = no.code == "decode.truncated-value"
    made.problems = (Problem("decode", no.code, "error", no.message, "", place),)
    if made.truncated:
        message = "the arguments end before they are complete"
        made.problems = (Problem("scan", "call.truncated", "error", message, "", place), *made.problems)


def _damaged_message(body: str, reading: Reading) -> tuple[Decoded, ...]:
    """A message whose own JSON is damaged, as only a model's text can be: one segment, since edits may lie between its
    calls."""
    try:
        values, edits = read_body_values(body, reading)
        calls = _calls_in(values[0]) if len(values) == 1 else {}
        if not calls:
            raise Refusal("call.not-an-object", "this JSON is no message with calls", 0)
        return tuple(_decoded(calls, _Source(body, tuple(edits), [(0, at) for at in calls]), reading))
    except Refusal as no:
        if not _CALLED.search(body):
            raise
        return _unread(body, no)


_ENDS = ('"}}]}', "}}]}", "}]}", "]}")


def _cut_message(body: str, reading: Reading) -> Message:
    """A message that the text ends in: the calls before the last one, and that one truncated, unless it is whole."""
    no = Refusal("decode.truncated-value", "the text ends inside the message", len(body))
    if not _CALLED.search(body):
        raise no
    for end in _ENDS:
        values = read_if_strict(body + end, reading.max_depth)
        calls = _calls_in(values[0]) if values and len(values) == 1 else {}
        if values and calls:
            message = _message(values[0], calls, body + end, reading)
            if end != "]}":
                made = message[-1]
                made.edits = made.steps = ()
                if _arguments_of(list(calls.values())[-1]) is None:  # its name may go on
                    made.name, made.name_span = "", None
                _refuse(made, no, Span(len(body), len(body)))
            kept = (Piece(p.kind, Span(p.span.start, min(p.span.end, len(body)))) for p in message.pieces)
            return Message(message, kept)
    return _unread(body, no)


def _unread(body: str, no: Refusal) -> Message:
    """A message that says it has calls, as one call that cannot be read, with the first name that stands in it."""
    named = _NAMED.search(body)
    at = min(no.position, len(body))
    made = Decoded(named[1] if named else "", None, name_span=Span(*named.span(1)) if named else None)
    _refuse(made, no, Span(at, min(at + 1, len(body))))
    return Message((made,), (Piece("call", Span(0, len(body))),))


OPENAI_JSON = Protocol(
    id="openai_json",
    aliases=("native", "openai"),
    title="a message in OpenAI's JSON, as providers give it",
    envelope=WholeMessage(),
    codec=MessageCalls(),
    tags=frozenset(("undelimited",)),
    results=JsonResult("", ""),
)
