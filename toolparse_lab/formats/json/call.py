"""Body family: JSON objects that name a tool and hold its arguments, one or several to a body."""

# How it works
#
# Nearly every body is one object with the format's own two keys, and its value often comes along
# from the scanner that read it: `_plain` answers then, with one look at the keys, and so it does
# for such an object that was repaired. Everything else goes through stages, each of which may add a
# step: the wrapper that OpenAI has around a function, the name under another key (or as the key),
# the arguments under another key (or next to the name, or missing), and arguments that are JSON
# text in a string.
#
# A stage never guesses. Where two readings are possible, a `Refusal` with the code
# "decode.ambiguous" says so; a call without a name is a `Decoded` with a problem, since other calls
# of its body can be read.

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ...arguments.rjson.repair import read_damaged
from ...arguments.rjson.strict import Refusal, by_span, read_if_strict, read_next, too_deep
from ...core.toolspec import ToolSpec
from ...core.types import Edit, Problem, Span, Step
from ...core.types.spans import rule_of
from ...core.values import Value, escape_token, write_canonical
from ..base import Codec, DecodeContext, Decoded, Places, with_step
from .judge import WORDS, read_words, settle
from .scan import name_first
from .source import ONE_CALL, BodySource, items_of, unescape_offsets, units_of

NAME_KEYS = (
    "name", "tool_name", "tool", "function", "function_name", "action", "tool_call",
    "function_call",
)  # fmt: skip
ARGUMENT_KEYS = (
    "arguments", "parameters", "args", "params", "input", "tool_input", "action_input",
)  # fmt: skip
_WRAPPERS = ("function", "tool_call", "function_call")  # an object around name and arguments
_THOUGHTS = ("thought", "thoughts", "reasoning")  # what a model may say first, with its call
_UNQUOTED = ("rjson.unquoted-value", "rjson.unquoted-key")
_ID_KEYS = ("id", "tool_call_id", "call_id")
# A name that is first and whole: what follows it may be damaged as it likes.
_NAME_PLAIN = re.compile(
    rf'\s*\{{\s*"(?:{"|".join(NAME_KEYS)})"\s*:\s*"([^"\\\x00-\x1f]+)"\s*[,}}]'
)
# The first key of an object says that it is a call; the value after it may be damaged.
_KEYS = "|".join(sorted({*NAME_KEYS, *ARGUMENT_KEYS, *_WRAPPERS, *_THOUGHTS, "type", "id"}))
# Blanks are bounded here as in what may become a head, so that both agree on every text.
CALL_HEAD = re.compile(rf"(?:\[\s{{0,40}})?\{{\s{{0,40}}[\"'](?:{_KEYS})[\"']\s{{0,10}}:")
# A text that may still become a head. Its repetitions are bounded, so that no text is held back
# for ever.
CALL_HEAD_SO_FAR = re.compile(
    r"(?:\[\s{0,40})?(?:\{\s{0,40}(?:[\"'][a-z_]{0,20}(?:[\"']\s{0,10})?)?)?\Z"
)
# Behind a call of a list or a row: brackets too many, a separator, and the head of another call.
_BETWEEN = r"\s{0,40}+(?:[\]}]\s{0,40}+){0,4}+(?:[;,]\s{0,40}+)?+"
_NEXT_CALL = re.compile(rf"{_BETWEEN}(?={CALL_HEAD.pattern})")
_NEXT_CALL_SO_FAR = re.compile(_BETWEEN + CALL_HEAD_SO_FAR.pattern)
# Only another object, begun as one, makes what is before it an item of its own.
_NEXT_ITEM = re.compile(r"\s*(?:,\s*)?(?=\{)")
_LIST_BEGIN = re.compile(r"\s*(\[?)\s*(?=\{)")
_STRAY = re.compile(r"(?:[ \t]{0,8}+[\]}]){1,4}+")


def next_call(text: str, at: int, final: bool) -> int | None:
    """Return where another call begins after one that ends at `at`, None or -1 to wait."""
    following = _NEXT_CALL.match(text, at)
    if following is not None:
        return following.end()
    return -1 if not final and _NEXT_CALL_SO_FAR.match(text, at) else None


def behind_stray_brackets(text: str, at: int, final: bool) -> int:
    """Return the offset after the closing brackets on a value's line, -1 to wait."""
    stray = _STRAY.match(text, at)
    end = stray.end() if stray else at
    return -1 if not final and not text[end:].strip(" \t") and len(text) - end < 9 else end


@dataclass(slots=True)
class _Unit:
    # One call on its way from a JSON value to a `Decoded`. value: the object with name and
    # arguments, at path `at` of value number `index`.
    value: dict[str, Value]
    index: int
    at: str
    source: BodySource
    context: DecodeContext
    edits: tuple[Edit, ...]
    steps: list[Step]

    def step(self, rule: str, before: Value, after: Value) -> None:
        self.steps.append(Step("read", rule, "", None, before, after))


@dataclass(frozen=True, slots=True)
class JsonCall(Codec):
    """Codec: `{"name": …, "arguments": {…}}` between an opener and a closer.

    name_key and arguments_key are the format's own. The others are read as aliases, each a step.
    name_is_key: the format's own objects are `{name: arguments}`.
    """

    opener: str
    closer: str
    name_key: str = "name"
    arguments_key: str = "arguments"
    name_is_key: bool = False

    def strict(self, body: str, context: DecodeContext) -> bool:
        # Asked where a closer was in a string, to choose between two places to close at. Text of
        # arguments counts if it begins with a brace: another is not a double encoding.
        values = read_if_strict(body, context.max_depth)
        if values is None:
            return False
        calls = [call for v in values for call in (v if isinstance(v, list) else [v])]
        texts = [call.get(key) for call in calls if isinstance(call, dict) for key in ARGUMENT_KEYS]
        return all(
            read_if_strict(text, context.max_depth) is not None
            for text in texts
            if isinstance(text, str) and text.strip()[:1] == "{"
        )

    def read(self, body: str, context: DecodeContext) -> tuple[Decoded, ...]:
        # The value that came along with the close is used if it is that of this very body, by
        # identity: a body that was cut or joined again is another one. A text cannot nest deeper
        # than it is long. A plain call needs no `BodySource`, which is made for all others.
        known, limit = context.strict_value, context.max_depth
        if (
            known is not None
            and known[0] is body
            and (len(body) <= limit or not too_deep(body, [known[1]], limit))
        ):
            plain = self._plain(known[1], body)
            if plain is not None:
                return (plain,)

        if not body:
            raise _nothing()  # a model that repeats an opener leaves thousands of these
        repaired: tuple[list[Value], list[Edit]] | Refusal
        try:
            repaired = values, edits = read_body_values(body, context)
            if not edits:
                # Strict JSON whose closer was found without reading it, as in a stream.
                return self._decode(body, values, [], context)
            if not WORDS.isdisjoint(map(rule_of, edits)):
                # The tool that the only value calls by itself, if it does.
                value = values[0] if len(values) == 1 and isinstance(values[0], dict) else {}
                key = self._name_key(value)
                whole = value[key] if key is not None and self._arguments_key(value, key) else ""
                keys = self.name_key, self.arguments_key
                repaired = read_words(body, values, edits, context, keys, whole)
        except Refusal as refusal:
            if read_if_strict(body, limit) is not None:
                raise
            repaired = refusal

        try:
            return settle(body, context, repaired, partial(self._decode, body, context=context))
        except Refusal as refusal:
            # The name may be whole although the rest is not: it goes into the problem.
            if (named := _NAME_PLAIN.match(body)) is not None:
                refusal.name, refusal.name_at = named[1], named.span(1)
            raise

    def leading(self, body: str, context: DecodeContext) -> tuple[Decoded, ...]:
        # A list that is cut off is not executed in part: its end may have said more.
        # So are objects that nothing follows which may be another call.
        begin = _LIST_BEGIN.match(body) if context.closed else None
        if begin is None:
            return ()
        objects: list[Value] = []
        end, at = 0, begin.end()
        while (item := read_next(body, at)) is not None and isinstance(item[0], dict):
            following = _NEXT_ITEM.match(body, item[1])
            if following is None:
                return ()
            objects.append(item[0])
            end, at = item[1], following.end()
        # As JSON: a list is closed, so that every offset is one of the body too.
        values: list[Value] = [objects] if begin[1] else objects
        if not objects or too_deep(body, values, context.max_depth):
            return ()
        try:
            return self._decode(body[:end] + "]" * bool(begin[1]), values, [], context)
        except Refusal:
            return ()

    def _decode(
        self, body: str, values: list[Value], edits: list[Edit], context: DecodeContext
    ) -> tuple[Decoded, ...]:
        # A second value is a second call: models write several to a body, one a line. A value that
        # can be no call makes the body something else: reading the rest would be a guess.
        plain = self._plain(values[0], body, tuple(edits)) if len(values) == 1 else None
        if plain is not None:
            if edits and not context.tools:
                refuse_bare_name(plain.edits, plain.name_span)
            return (plain,)
        source = BodySource(body, tuple(edits), units_of(values))
        calls: list[Decoded] = []
        for i, value in enumerate(values):
            items, base = items_of(value)
            if items is None and isinstance(value, dict):
                calls.append(self._call(value, source, i, "", context))
                continue
            if items is None:
                text = write_canonical(value)[:40]
                raise Refusal("call.not-an-object", f"the body is no object but {text}", 0)
            if not items or not all(isinstance(item, dict) for item in items):
                raise Refusal("call.not-an-object", "the body is a list, but not of calls", 0)
            for k, item in enumerate(items):
                call = self._call(item, source, i, f"{base}/{k}", context)
                calls.append(with_step(call, "read.list-wrapper") if base else call)
        return tuple(calls)

    def _plain(self, value: Value, body: str, edits: tuple[Edit, ...] = ()) -> Decoded | None:
        # Types are compared and not asked with isinstance: the reader makes no subclasses, and this
        # is on the way of every sound call.
        if type(value) is not dict or len(value) != 2:
            return None

        name, args = value.get(self.name_key), value.get(self.arguments_key)
        if type(name) is not str or not name or type(args) is not dict:
            return None
        if "properties" in args:
            return None  # it may describe the tool

        # The pattern finds the name in nearly every body, and an edit after the name leaves it as
        # it is; else the body is read for its places.
        span = name_first(body, name) if self.name_key == "name" else None
        if span is None or (edits and edits[0].span.start <= span.end):
            span = BodySource(body, edits, ONE_CALL).span_of(0, f"/{escape_token(self.name_key)}")

        def places() -> Places:
            base = f"/{escape_token(self.arguments_key)}"
            return BodySource(body, edits, ONE_CALL).places_of(0, base, "")()

        return Decoded(name, args, span, None, edits, places=places, unescape=unescape_offsets)

    # The stages of a call that is not plain

    def _call(
        self,
        value: dict[str, Value],
        source: BodySource,
        index: int,
        at: str,
        context: DecodeContext,
    ) -> Decoded:
        # at path `at` of value number `index`
        # The id is in the outer object, also where name and arguments are wrapped.
        wire_id = next((value[key] for key in _ID_KEYS if isinstance(value.get(key), str)), None)
        unit = _Unit(value, index, at, source, context, source.edits_of(index, at), [])
        if self.name_key not in value:
            self._unwrap(unit)
        key = self._name_key(unit.value)
        only = self._only_known_key(unit) if key is None else None
        if only is not None:
            call = _name_is_key(unit, only)
            return replace(call, steps=()) if self.name_is_key else call

        name = unit.value[key] if key is not None else ""
        if key is None or not name:
            problem = Problem("read", "call.no-name", "error", "the body names no tool", "")
            return Decoded("", None, problems=(problem,), readable=False, edits=unit.edits)
        if key != self.name_key:
            unit.step("read.alias-name", key, self.name_key)

        has_more = len(unit.value) > 2  # members next to name and arguments
        # base: where the arguments are, for their places
        args_key = self._arguments_key(unit.value, key)
        args: Value
        if args_key is None:
            args, base = _no_arguments(unit, key, name), unit.at
        else:
            own_key = _only_arguments(unit, args_key, key, name) if has_more else args_key
            # Another key than the format's own is an alias, which is noted.
            if own_key != self.arguments_key:
                unit.step("read.alias-arguments", own_key, self.arguments_key)
            args, base = unit.value[own_key], f"{unit.at}/{escape_token(own_key)}"

        nested = args if isinstance(args, str) else ""  # a text keeps its own place
        if isinstance(args, str):
            args = _double_encoded(unit, args, base)
        elif args is None:
            unit.step("read.empty-arguments", None, {})
            args = {}
        if isinstance(args, dict) and "properties" in args:
            definition = definition_of(args, name, context)
            if definition is not None:
                raise definition
        if args_key is not None and has_more:
            _refuse_strays(unit, key, args_key, args)

        name_span = source.name_span(index, unit.at, key, name)
        if unit.edits and not context.tools:
            refuse_bare_name(unit.edits, name_span)
        call = Decoded(
            name,
            args,
            name_span=name_span,
            wire_id=wire_id,
            steps=tuple(unit.steps),
            edits=unit.edits,
        )
        if isinstance(args, dict):
            # Next to the name are members that are no arguments.
            members = args if args_key is None else None
            call.places = source.places_of(index, base, nested, members)
            call.unescape = unescape_offsets
        else:
            message = "the arguments are no JSON object"
            call.arguments = None
            call.readable = False
            call.problems = (Problem("read", "call.not-an-object", "error", message, ""),)

        return call

    def _only_known_key(self, unit: _Unit) -> str | None:
        # `{"get_tide": {…}}`: only a known tool makes such a key a name. Without that tool the
        # object may be anything, such as arguments without a name.
        if len(unit.value) != 1:
            return None
        ((key, inside),) = unit.value.items()
        is_name = self.name_is_key or (key in unit.context.tools and inside is not None)
        return key if is_name and (inside is None or isinstance(inside, dict)) else None

    def _unwrap(self, unit: _Unit) -> None:
        # {"function": {…}}, which OpenAI has around name and arguments
        for key in _WRAPPERS:
            inner = unit.value.get(key)
            if isinstance(inner, dict):
                if key in unit.context.tools and self._name_key(inner) is None:
                    continue  # the name of a tool is the key of its arguments
                if any(other in unit.context.tools for other in unit.value if other != key):
                    message = "a call is next to another tool's name in one object"
                    raise Refusal("decode.ambiguous", message, 0)
                unit.step("read.function-wrapper", unit.value, inner)
                unit.value = inner
                unit.at += f"/{key}"
                return

    def _name_key(self, value: dict[str, Value]) -> str | None:
        # The format's own comes before the aliases, and these in the order of how sure they are.
        if isinstance(value.get(self.name_key), str):
            return self.name_key
        return next((key for key in NAME_KEYS if isinstance(value.get(key), str)), None)

    def _arguments_key(self, value: dict[str, Value], name_key: str) -> str | None:
        # An alias taken for the name (`tool`, `function`) cannot be the arguments as well.
        if self.arguments_key in value:
            return self.arguments_key
        return next((key for key in ARGUMENT_KEYS if key in value and key != name_key), None)

    def write(self, name: str, arguments_json: str, tool: ToolSpec | None) -> str:
        name_member = f"{write_canonical(self.name_key)}:{write_canonical(name)}"
        arguments_member = f"{write_canonical(self.arguments_key)}:{arguments_json}"
        return f"{self.opener}{{{name_member},{arguments_member}}}{self.closer}"


def _name_is_key(unit: _Unit, name: str) -> Decoded:
    base = f"{unit.at}/{escape_token(name)}"
    arguments = unit.value[name]
    source = unit.source
    definition = definition_of(arguments, name, unit.context)
    if definition is not None:
        raise definition
    if arguments is None:
        arguments = {}
    name_span = source.key_span(unit.index, base, name)
    if unit.edits and not unit.context.tools:
        refuse_bare_name(unit.edits, name_span)
    return Decoded(
        name,
        arguments,
        name_span=name_span,
        steps=(Step("read", "read.name-is-key", "", None, unit.value, arguments),),
        edits=unit.edits,
        places=source.places_of(unit.index, base, ""),
        unescape=unescape_offsets,
    )


def is_definition(value: Value) -> bool:
    """Return True if a value is the schema of a tool's parameters.

    Models repeat the tools on offer, with the name before them as in a call.

    >>> is_definition({"type": "object", "properties": {}}), is_definition({"properties": 1})
    (True, False)
    """
    if not isinstance(value, dict) or not isinstance(value.get("properties"), dict):
        return False
    return value.get("type") == "object" or "required" in value


def definition_of(arguments: Value, name: str, context: DecodeContext) -> Refusal | None:
    """Return the refusal of arguments that are the schema of their tool, None for others."""
    if not is_definition(arguments) or "properties" in _properties(context, name):
        return None
    return Refusal("call.is-definition", f"it describes {name}, and does not call it", 0)


def _only_arguments(unit: _Unit, args_key: str, name_key: str, name: str) -> str:
    # args_key: the first of the keys there. One with nothing, or with the tool's schema, gives way
    # to another if the tool has such parameters.
    first = unit.value[args_key]
    for key in ARGUMENT_KEYS:
        other = unit.value.get(key) if key not in (args_key, name_key) else None
        if not other or not isinstance(other, dict) or is_definition(other):
            continue
        is_void = first in ({}, None, "") or definition_of(first, name, unit.context) is not None
        if is_void and other.keys() <= _properties(unit.context, name).keys():
            return key
        if not isinstance(first, dict) or write_canonical(first) != write_canonical(other):
            message = f"arguments stand under two keys: {args_key} and {key}"
            raise Refusal("decode.ambiguous", message, 0)
    return args_key


def refuse_bare_name(edits: tuple[Edit, ...], name_span: Span | None) -> None:
    """Raise Refusal for a name without quotes, where no tools say that it is one."""
    for edit in edits:
        if edit.rule in _UNQUOTED and name_span is not None and edit.span.start == name_span.start:
            message = "the name is a bare word, and no tool is known that has it"
            raise Refusal("decode.ambiguous", message, name_span.start)


def _refuse_strays(unit: _Unit, name_key: str, args_key: str, arguments: Value) -> None:
    # A bracket was closed too early, or the model meant two things.
    if not isinstance(arguments, dict):
        return
    properties = _properties(unit.context, unit.value[name_key])
    others = {name_key, "type", *_ID_KEYS, *NAME_KEYS, *ARGUMENT_KEYS}
    for member, value in unit.value.items():
        if member in properties and member not in others and arguments.get(member) != value:
            message = f"a parameter stands beside the arguments: {member}"
            raise Refusal("decode.ambiguous", message, 0)
        # In a damaged object the bracket of the arguments may be the one that was moved.
        if unit.edits and member not in (args_key, name_key, "type", *_ID_KEYS, *_THOUGHTS):
            message = f"the object is damaged, and {member} is next to the arguments"
            raise Refusal("decode.ambiguous", message, 0)


def _no_arguments(unit: _Unit, key: str, name: str) -> dict[str, Value]:
    # They may be next to the name, if the tool declares every one of them. A member that no one
    # knows may be an argument or not.
    # "type": "function" is OpenAI's, and says nothing.
    others = {key, "type", *_ID_KEYS}
    rest = {member: value for member, value in unit.value.items() if member not in others}
    if not rest:
        unit.step("read.empty-arguments", None, {})
        return {}

    properties = _properties(unit.context, name)
    if any(member not in properties for member in rest):
        members = ", ".join(list(rest)[:5])
        raise Refusal("decode.ambiguous", f"no arguments, but other keys: {members}", 0)

    unit.step("read.flat-arguments", unit.value, rest)
    return rest


def _properties(context: DecodeContext, name: str) -> Mapping[str, Any]:
    tool = context.tools.get(name)
    schema = tool.schema if tool else None
    return schema.get("properties", {}) if isinstance(schema, dict) else {}


def _double_encoded(unit: _Unit, text: str, base: str) -> Value:
    # The object that a text of JSON says, or the text: some other JSON is reported as what it is.
    # Its edits join those of the call, as edits of the string at path `base`.
    if not text.strip():
        unit.step("read.empty-arguments", text, {})
        return {}
    try:
        values, edits = read_body_values(text, unit.context, nested=True)
    except Refusal:
        return text
    if len(values) != 1 or not isinstance(values[0], dict):
        return text
    if edits:
        placed = unit.source.nested_edits(unit.index, base, text, edits)
        if placed is None:
            message = "the arguments are damaged JSON inside a damaged string"
            raise Refusal("decode.ambiguous", message, 0)
        unit.edits = in_order(*unit.edits, *placed)
    unit.step("read.double-encoded", text, values[0])
    return values[0]


def in_order(*edits: Edit) -> tuple[Edit, ...]:
    return tuple(sorted(edits, key=by_span))


def _nothing() -> Refusal:
    return Refusal("decode.empty", "there is nothing between opener and closer", 0)


def read_body_values(
    body: str, context: DecodeContext, *, nested: bool = False
) -> tuple[list[Value], list[Edit]]:
    """Return the JSON values of a body and the edits they took. Raises Refusal.

    nested: it is the text of a string in a body.
    """
    if not body or body.isspace():
        raise _nothing()
    if not context.repair:
        values = read_if_strict(body, context.max_depth)
        if values is None:
            message = "the body is no strict JSON, and repair is off"
            raise Refusal("decode.json", message, 0)
        return values, []
    # Without its closer a body may be cut off, so that nothing is added at its end. A string has
    # its own end, but prose around its JSON would be content.
    own = context.closed and not nested
    return read_damaged(
        body, closed=nested or own, numbers_end=own, prose=own, max_depth=context.max_depth
    )


def json_calls(opener: str, closer: str, body: str, context: DecodeContext) -> tuple[Decoded, ...]:
    """Return the calls of a body of JSON in place of another notation. Raises Refusal."""
    calls = JsonCall(opener, closer).read(body, context)
    return tuple(with_step(call, "read.json-body") for call in calls)
