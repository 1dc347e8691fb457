"""`openai_json`: a whole message as JSON, its calls in `tool_calls`, with arguments as JSON text.

A provider's own calls are recorded in this form, and models told to write OpenAI's JSON write it.
Nothing opens a message but the beginning of an answer. The arguments of a call may have ended early
with the answer, or lost their end in a stream, which the JSON around them does not show: no bracket
is ever added to them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal, TypeAlias

from ...arguments.rjson.repair import read_damaged
from ...arguments.rjson.strict import Refusal, read_if_strict
from ...arguments.schema.plain import takes_arguments
from ...arguments.schema.strict_form import plain_arguments, strict_arguments
from ...core.toolspec import ToolSpec
from ...core.types import Edit, Problem, Span, Step
from ...core.types.call import Reading
from ...core.values import Value, escape_token, read_strict, write_canonical
from ..base import (
    NEED_MORE,
    Answer,
    Codec,
    DecodeContext,
    Decoded,
    Envelope,
    Message,
    Opening,
    Piece,
    Protocol,
    Tools,
)
from ..results import JsonResult
from ..scan import Balanced, Scanner
from .call import definition_of, in_order, is_definition, read_body_values, refuse_bare_name
from .judge import settle
from .source import BodySource, unescape_offsets

_Kind: TypeAlias = Literal["text", "reasoning"]
_TEXTS: Mapping[str, _Kind] = {
    "content": "text",
    "refusal": "text",
    "reasoning_content": "reasoning",
    "reasoning": "reasoning",
}
_ARGUMENTS = ("arguments", "input", "parameters", "args", "params")
_WRAPPERS = ("function", "custom")  # a call of either kind holds its name and arguments


def is_message(value: Value) -> bool:
    """Return True if a value is a message, with calls or without.

    Either its `tool_calls` are a list or null, as OpenAI has them, or it says that it is the
    assistant's.
    """
    if not isinstance(value, dict):
        return False
    # Without the key the default is neither a list nor null.
    return isinstance(value.get("tool_calls", 0), list | None) or value.get("role") == "assistant"


def calls_in(value: Value) -> dict[str, Value]:
    """Return JSON Pointer -> call, in order, or empty if the value holds none.

    They are those of a message (`tool_calls`, or the older `function_call`), of a list of calls, or
    one call alone, as models write it that leave the message out.

    >>> list(calls_in({"tool_calls": [{"name": "f"}]})), calls_in("text")
    (['/tool_calls/0'], {})
    """
    # Models that leave the message out write its list of calls alone.
    if isinstance(value, list):
        return {f"/{i}": item for i, item in enumerate(value)}
    if not isinstance(value, dict):
        return {}
    if isinstance(value.get("tool_calls"), list):
        return {f"/tool_calls/{i}": item for i, item in enumerate(value["tool_calls"])}
    # Clients of before 2023-11 have one call, without a list and without an id.
    if isinstance(value.get("function_call"), dict):
        return {"/function_call": value["function_call"]}
    # A message has a "name" too, of who speaks.
    names = isinstance(value.get("name"), str)
    if (names or any(isinstance(value.get(k), dict) for k in _WRAPPERS)) and not is_message(value):
        return {"": value}
    return {}


def texts_in(value: Value) -> dict[str, _Kind]:
    """Return JSON Pointer -> kind of each text of a message, content parts included.

    The order is that of the keys in `_TEXTS`, then of the parts. `Message` sorts them by place.

    >>> texts_in({"content": [{"text": "a"}, {"image": "b"}]})
    {'/content/0/text': 'text'}
    """
    if not isinstance(value, dict):
        return {}

    texts: dict[str, _Kind] = {}
    for key, kind in _TEXTS.items():
        if isinstance(value.get(key), str):
            texts[f"/{key}"] = kind
    if "/reasoning_content" in texts:  # some servers say it twice
        texts.pop("/reasoning", None)

    # Images and files among the parts of the content are markup.
    content = value.get("content")
    for i, part in enumerate(content if isinstance(content, list) else ()):
        if isinstance(part, dict) and isinstance(part.get("text"), str):
            texts[f"/content/{i}/text"] = "text"
    return texts


def inner_of(call: Value) -> tuple[Value, str]:
    """Return the object with name and arguments, and its path from the call."""
    if not isinstance(call, dict):
        return call, ""

    for key in _WRAPPERS:
        if isinstance(call.get(key), dict):
            return call[key], f"/{key}"
    return call, ""


def arguments_key(inner: dict[str, Value]) -> str | None:
    return next((key for key in _ARGUMENTS if key in inner), None)


def doubt_about(inner: dict[str, Value]) -> str:
    """Return why it is open what the arguments of a call are, "" where it is not.

    Objects are under two keys that may be theirs, or under a key that no one knows alone.

    >>> doubt_about({"name": "f", "kwargs": {"a": 1}})
    'no arguments, but another object: kwargs'
    """
    key = arguments_key(inner)
    first = inner[key] if key else None
    for other, value in inner.items():
        if other == key or not isinstance(value, dict) or not value:
            continue
        if key is None:
            return f"no arguments, but another object: {other}"
        if other in _ARGUMENTS and value != first and not is_definition(value):
            return f"arguments stand under two keys: {key} and {other}"
    return ""


def arguments_of(call: Value) -> Value:
    inner, _ = inner_of(call)
    if not isinstance(inner, dict):
        return None
    key = arguments_key(inner)
    return inner[key] if key else None


_KEYS = "tool_calls|function_call|content|role|refusal|reasoning_content|reasoning"
_HEAD = re.compile(rf"""\{{\s{{0,40}}["'](?:{_KEYS})["']\s{{0,10}}:""")
_HEAD_SO_FAR = re.compile(r"""\{\s{0,40}(?:["'][a-z_]{0,20}(?:["']\s{0,10})?)?\Z""")
_CALLED = re.compile(r"""["'](?:tool_calls|function_call)["']\s*:\s*[\[{]""")
_MOST_READINGS = 5
_NAMED = re.compile(r"""["']name["']\s*:\s*["']([^"'\\]*)["']""")


@dataclass(frozen=True, slots=True)
class WholeMessage(Envelope):
    """Envelope: an answer that begins with `{` and a key of a message.

    It ends after the brace that closes it.
    """

    heads_are_fixed = True
    speculation_starts = "{"

    def heads(self, tools: Tools) -> tuple[str, ...]:
        return ()

    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Answer:
        return None

    def speculates(self, text: str) -> Answer:
        if _HEAD.match(text):
            return Opening(0, speculative=True)
        return NEED_MORE if _HEAD_SO_FAR.match(text) else None

    def scanner(self, opening: Opening, tools: Tools) -> Scanner:
        return Balanced()


@dataclass(frozen=True, slots=True)
class MessageCalls(Codec):
    """Codec: the calls of a message, each with a place of its own, and its texts.

    Or one call alone.
    """

    # How it works: a message that is strict JSON, as a provider's own always is, gives a `Message`,
    # in which each call and each text has its place. One that is damaged can only be a model's
    # text; its edits may be between the calls, so it is one piece. One that the text ends in is
    # completed with the few endings that a message can have, to read the calls before the last.

    def strict(self, body: str, context: DecodeContext) -> bool:
        values = read_if_strict(body, context.max_depth)
        if values is None or len(values) != 1:
            return False
        # Arguments that are not text, or an empty one, are none that could be damaged.
        texts = map(arguments_of, calls_in(values[0]).values())
        return all(
            bool(read_if_strict(text, context.max_depth))
            for text in texts
            if isinstance(text, str) and text.strip()
        )

    def read(self, body: str, context: DecodeContext) -> tuple[Decoded, ...]:
        # A whole message without a call is still a `Message`: its texts are the answer. JSON that
        # is not a message at all is refused, so that it stays the text it was.
        if not context.closed:
            return _cut_message(body, context)

        # A provider's own message is strict JSON; this is the way of nearly all.
        values = read_if_strict(body, context.max_depth)
        if values is None and not context.repair:
            raise Refusal("decode.json", "the message is no strict JSON, and repair is off", 0)
        if values is None or len(values) != 1:
            # The calls of a damaged message are one segment, since edits may be between them. It
            # may be beyond repair and still plainly have calls: they are reported then.
            try:
                values, edits = read_body_values(body, context)
                calls = calls_in(values[0]) if len(values) == 1 else {}
                if not calls:
                    raise Refusal("call.not-an-object", "this JSON is no message with calls", 0)
                source = BodySource(body, tuple(edits), [(0, path) for path in calls])
                return tuple(_read_call(calls[path], path, source, context) for path in calls)
            except Refusal as refusal:
                if not _CALLED.search(body):
                    raise
                return _unread(body, refusal)

        calls = calls_in(values[0])
        if not calls and not is_message(values[0]):
            raise Refusal("call.not-an-object", "this JSON is no message with calls", 0)
        return _message(values[0], calls, body, context)

    def write(self, name: str, arguments_json: str, tool: ToolSpec | None) -> str:
        members = f'"name":{write_canonical(name)},"arguments":{write_canonical(arguments_json)}'
        return f'{_OPEN}{_ID}"call_0","type":"function","function":{{{members}}}}}{_CLOSE}'

    def join(self, calls: Sequence[str]) -> str:
        begin = len(_OPEN + _ID) + len('"call_0"')
        numbered = (
            f'{_ID}"call_{number}"{text[begin : -len(_CLOSE)]}' for number, text in enumerate(calls)
        )
        return _OPEN + ",".join(numbered) + _CLOSE


_OPEN, _ID, _CLOSE = '{"content":null,"tool_calls":[', '{"id":', "]}"


# A message and its calls


def _message(value: Value, calls: dict[str, Value], body: str, context: DecodeContext) -> Message:
    # Each call and each text is a segment of its own. The text between them is markup.
    source = BodySource(body, (), [(0, path) for path in calls])
    whole = Span(0, len(body))
    pieces = [Piece("call", source.span_of(0, path) or whole) for path in calls]
    if "" not in calls:  # a call alone has no text next to it
        spans = ((kind, source.span_of(0, path)) for path, kind in texts_in(value).items())
        pieces += [Piece(kind, span) for kind, span in spans if span]
    return Message([_read_call(calls[path], path, source, context) for path in calls], pieces)


def _read_call(call: Value, path: str, source: BodySource, context: DecodeContext) -> Decoded:
    place = source.span_of(0, path) or Span(0, 0)
    edits = source.edits_of(0, path)
    inner, below = inner_of(call)
    name = inner.get("name") if isinstance(inner, dict) else None
    if not isinstance(name, str) or not name:
        problem = Problem("read", "call.no-name", "error", "the call names no tool", "", place)
        return Decoded("", None, problems=(problem,), readable=False, edits=edits)

    wire_id = call.get("id")
    name_span = source.span_of(0, f"{path}{below}/name")
    if edits and not context.tools:
        refuse_bare_name(edits, name_span)
    decoded = Decoded(
        name,
        {},
        name_span=name_span,
        edits=edits,
        unescape=unescape_offsets,
        wire_id=wire_id if isinstance(wire_id, str) and wire_id else None,
    )
    _read_arguments(decoded, inner, path + below, source, context)
    return decoded


def _read_arguments(
    decoded: Decoded, inner: dict[str, Value], path: str, source: BodySource, context: DecodeContext
) -> None:
    # path: of `inner`, the object that contains them
    key = arguments_key(inner)
    base = f"{path}/{escape_token(key)}" if key else path
    arguments = inner[key] if key else None
    message = doubt_about(inner)
    if not message:
        definition = definition_of(arguments, decoded.name, context)
        if definition is not None:
            _refuse(decoded, definition, source.span_of(0, base))
            return
        if key is None:
            # The key may be damaged; what a server adds is no object, and known by name.
            stray = next((n for n, v in inner.items() if _may_be_arguments(n, v)), None)
            if stray is not None:
                message = f"no arguments, but {stray!r} may hold them"
            elif decoded.edits:
                message = "no arguments, and the damage may be what took them away"
    if message:
        _refuse(decoded, Refusal("decode.ambiguous", message, 0), source.span_of(0, path))
        return
    # A tool without parameters is often called with nothing at all. For any other one the text of
    # the arguments was lost on the way: those that mean none send an empty object.
    if arguments is None or (isinstance(arguments, str) and arguments.strip() in ("", "null")):
        tool = context.tools.get(decoded.name)
        is_said = key is None or (arguments is not None and arguments.strip() == "null")
        if not is_said and (tool is None or takes_arguments(tool.schema_json)):
            refusal = Refusal("decode.truncated-value", "the arguments never came", 0)
            _refuse(decoded, refusal, source.span_of(0, base) or source.span_of(0, path))
            return
        decoded.steps = (Step("read", "read.empty-arguments", "", None, arguments, {}),)
        decoded.places = source.places_of(0, base, "", {})
    elif isinstance(arguments, dict):
        text = write_canonical(arguments)
        decoded.arguments = arguments
        decoded.places = source.places_of(0, base, "")
        decoded.steps = (Step("read", "read.plain-arguments", "", None, arguments, text),)
    elif isinstance(arguments, str):
        _read_text(decoded, arguments, base, source, context)
    else:
        refusal = Refusal("call.not-an-object", "the arguments are no JSON object", 0)
        _refuse(decoded, refusal, source.span_of(0, base))


def _may_be_arguments(name: str, value: Value) -> bool:
    is_object = isinstance(value, dict) or (isinstance(value, str) and value.lstrip()[:1] == "{")
    return is_object and name not in ("name", "provider_specific_fields", "extra_content")


def _read_text(
    decoded: Decoded, text: str, base: str, source: BodySource, context: DecodeContext
) -> None:
    # Its edits are placed in the body, and so is the fault with it.
    try:
        _refuse_lost_quote(decoded.edits, source.body)
        value, edits = _object_of(decoded.name, text, context)
        _refuse_moved_escape(text, edits)
        placed: list[Edit] | None = source.nested_edits(0, base, text, edits) if edits else []
        if placed is None:
            message = "the arguments are damaged JSON inside a damaged string"
            raise Refusal("decode.ambiguous", message, 0)
    except Refusal as refusal:
        _refuse(decoded, refusal, _place_in_text(refusal, text, base, source))
        # Their edits are in the text, which is in a string of the body.
        for reading in refusal.readings:
            at = source.nested_edits(0, base, text, list(reading.edits)) if reading.edits else []
            if at is not None:
                named = replace(reading, name=decoded.name, edits=tuple(at))
                decoded.readings = (*decoded.readings, named)
        return

    decoded.arguments = value
    decoded.edits = in_order(*decoded.edits, *placed)
    decoded.places = source.places_of(0, base, text, edits=edits)


# A quote in a text within a text has two backslashes or more. Where one was lost, or changed places
# with its neighbour, what is left is an escape of its own, and the text inside may be strict.


def _refuse_lost_quote(edits: Sequence[Edit], body: str) -> None:
    for edit in edits:
        at = edit.span.start
        before = body[max(0, at - 2) : at]
        is_moved = edit.rule == "rjson.unescaped-quote" and before in _ESCAPES
        is_lost = edit.rule == "rjson.bad-escape" and before == "\\\\"
        if is_moved or (is_lost and body.count('\\\\\\"') % 2):
            message = "a backslash in the arguments may have lost its quote"
            raise Refusal("decode.ambiguous", message, at)


def _refuse_moved_escape(text: str, edits: Sequence[Edit]) -> None:
    for edit in edits:
        before = text[max(0, edit.span.start - 1) : edit.span.start]
        if edit.rule in _PUT_IN and before in _CONTROLS:
            message = "a sign of the arguments may be the rest of a damaged quote"
            raise Refusal("decode.ambiguous", message, edit.span.start)


_PUT_IN = ("rjson.missing-quote", "rjson.unescaped-quote")
_CONTROLS = frozenset("\b\f\n\r\t")
_ESCAPES = frozenset(("\\b", "\\f", "\\n", "\\r", "\\t"))


def _place_in_text(refusal: Refusal, text: str, base: str, source: BodySource) -> Span | None:
    # the whole string where the character cannot be told
    place = source.span_of(0, base)
    if place is None:
        return None

    offsets = unescape_offsets(source.body[place.start : place.end])
    if len(offsets) != len(text) + 1:
        return place

    at = place.start + offsets[min(refusal.position, len(text))]
    return Span(min(at, place.end), min(at + 1, place.end))


def _object_of(name: str, text: str, context: DecodeContext) -> tuple[dict[str, Value], list[Edit]]:
    # No bracket is added: the text may have ended early with the answer, and a stream may have lost
    # its end in any call.
    strict = read_if_strict(text, context.max_depth)
    if strict is not None:
        return _only_object(strict), []
    if not context.repair:
        raise Refusal("decode.json", "the arguments are no strict JSON, and repair is off", 0)

    def decode(values: list[Value], edits: list[Edit]) -> tuple[Decoded, ...]:
        return (Decoded(name, _only_object(values), edits=tuple(edits)),)

    repaired: tuple[list[Value], list[Edit]] | Refusal
    try:
        # A number at the end of a text that was cut off may go on, so it ends nothing.
        repaired = read_damaged(
            text, closed=False, numbers_end=False, prose=False, max_depth=context.max_depth
        )
    except Refusal as refusal:
        repaired = refusal
    closed = text.rstrip().endswith("}")
    (call,) = settle(text, replace(context, closed=closed), repaired, decode)
    return _only_object([call.arguments]), list(call.edits)


def _only_object(values: list[Value]) -> dict[str, Value]:
    # Several objects may be those of as many calls, or one that was sent again: each is a reading.
    if len(values) != 1:
        refusal = Refusal("decode.ambiguous", f"the arguments are {len(values)} JSON values", 0)
        objects = dict.fromkeys([write_canonical(v) for v in values if isinstance(v, dict)])
        refusal.readings = tuple(
            Reading("", text, (), 0, f"object {number} of {len(objects)}")
            for number, text in enumerate(islice(objects, _MOST_READINGS), 1)
        )
        raise refusal
    if not isinstance(values[0], dict):
        raise Refusal("call.not-an-object", "the arguments are no JSON object", 0)
    return values[0]


def _refuse(decoded: Decoded, refusal: Refusal, place: Span | None) -> None:
    # place: where in the body it went wrong, None if that is unknown
    decoded.arguments = None
    decoded.readable = False
    # A body of several calls cannot tell the engine that it was cut off; the call does.
    decoded.truncated = refusal.code == "decode.truncated-value"
    problem = Problem("decode", refusal.code, "error", refusal.message, "", place)
    if decoded.truncated:
        message = "the arguments end before they are complete"
        cut = Problem("scan", "call.truncated", "error", message, "", place)
        decoded.problems = (cut, problem)
    else:
        decoded.problems = (problem,)


# Messages that are no strict JSON


# The endings that make a message whole that was cut off inside its last call, from the innermost
# place to the outermost: in the text of the arguments, after it, after the call, after the list.
_ENDS = ('"}}]}', "}}]}", "}]}", "]}")


def _cut_message(body: str, context: DecodeContext) -> Message:
    # The calls before the last are read as they are; the last is truncated unless it is whole. Four
    # endings are tried at most, so this is linear.
    refusal = Refusal("decode.truncated-value", "the text ends inside the message", len(body))
    if not _CALLED.search(body):
        raise refusal
    for end in _ENDS:
        values = read_if_strict(body + end, context.max_depth)
        calls = calls_in(values[0]) if values and len(values) == 1 else {}
        if not values or not calls:
            continue
        message = _message(values[0], calls, body + end, context)
        if end != "]}":  # the last call itself is not closed
            last = message[-1]
            last.edits = last.steps = ()
            if arguments_of(list(calls.values())[-1]) is None:  # its name may go on
                last.name, last.name_span = "", None
            _refuse(last, refusal, Span(len(body), len(body)))
        pieces = [
            Piece(piece.kind, Span(piece.span.start, min(piece.span.end, len(body))))
            for piece in message.pieces
        ]
        return Message(message, pieces)

    return _unread(body, refusal)


def _unread(body: str, refusal: Refusal) -> Message:
    # with the first name that is in it
    named = _NAMED.search(body)
    name = named[1] if named else ""
    name_span = Span(*named.span(1)) if named else None
    decoded = Decoded(name, None, name_span=name_span)
    at = min(refusal.position, len(body))
    _refuse(decoded, refusal, Span(at, min(at + 1, len(body))))
    return Message((decoded,), (Piece("call", Span(0, len(body))),))


OPENAI_JSON = Protocol(
    id="openai_json",
    aliases=("native", "openai"),
    title="a message in OpenAI's JSON, as providers give it",
    envelope=WholeMessage(),
    codec=MessageCalls(),
    tags=frozenset(("undelimited",)),
    results=JsonResult("", ""),
)


@dataclass(frozen=True, slots=True)
class StrictCalls(MessageCalls):
    """Codec: the calls of a message, without the nulls that only the strict form asked for."""

    def read(self, body: str, context: DecodeContext) -> tuple[Decoded, ...]:
        # Not `super()`: a dataclass with slots is another class than the one its methods close over
        message = MessageCalls.read(self, body, context)
        calls: list[Decoded] = []
        for call in message:
            # A provider writes underscores for the dots of a tool's name. Of two such tools nobody
            # knows which one was meant.
            tools = context.tools
            names = [name for name in tools if call.name in (name, name.replace(".", "_"))]
            if call.readable and len(names) == 1:
                schema = tools[names[0]].schema_json
                arguments, changes = plain_arguments(call.arguments, schema)
                steps = [
                    Step("read", "read.strict-null", c.path, None, c.before, c.after)
                    for c in changes
                ]
                if changes:
                    call = replace(call, arguments=arguments, steps=(*call.steps, *steps))
            calls.append(call)
        return Message(calls, message.pieces) if isinstance(message, Message) else tuple(calls)

    def write(self, name: str, arguments_json: str, tool: ToolSpec | None) -> str:
        if tool is not None:
            strict = strict_arguments(read_strict(arguments_json), tool.schema_json)
            arguments_json = write_canonical(strict)
        return MessageCalls.write(self, name, arguments_json, tool)


OPENAI_STRICT = replace(
    OPENAI_JSON,
    id="openai_strict",
    aliases=(),
    title="a message in OpenAI's JSON from a strict mode: null for what is left out",
    codec=StrictCalls(),
)

PROTOCOLS: tuple[Protocol, ...] = (OPENAI_STRICT,)
