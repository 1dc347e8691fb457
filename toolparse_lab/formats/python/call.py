"""Body family: calls written as Python, `f(a=1, b="x")`, alone, in a list, or one a line.

They are read, never evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ...arguments.rjson.strict import Refusal
from ...core.errors import UnwritableCall
from ...core.toolspec import ToolSpec
from ...core.types import Edit, Span
from ...core.values import Value, read_strict, write_canonical
from ..base import Codec, DecodeContext, Decoded, Message, moved_places, with_step
from ..json.call import JsonCall
from ..prompt.type_rules import make_rules
from .reader import NAME, PythonReader

# Bounded, as what may become one has to be.
RULE = "pythonic.quoted-call"
HEAD = re.compile(r"\[\s{0,40}(?:[^\W\d]|\\_)(?:[\w.]|\\_){0,200}\s{0,40}\(")
_CALL = re.compile(r"\s{0,64}(?:\[\s{0,64})?[^\W\d][\w.]{0,200}\(")
_JSON = re.compile(r"\s*+(?:\[\s*+)?\{")
_FENCE = re.compile(
    r"\s*+```[a-z_]{0,16}[ \t]*+\r?\n(?P<inside>.*?)(?:\r?\n)?[ \t]*+```\s*+\Z", re.DOTALL
)


def read_calls(body: str, context: DecodeContext, json_words: bool = False) -> tuple[Decoded, ...]:
    """Return every call of a body: lists of calls, or calls one after the other.

    json_words: see `PythonReader`. Raises Refusal.
    """
    fence = _FENCE.match(body)
    reader = PythonReader(body[: fence.end("inside")] if fence else body, context, json_words)
    reader.pos = fence.start("inside") if fence else 0
    calls: list[Decoded] = []
    # Models leave the list out, above all around one call.
    while char := reader.skip():
        if char == "[":
            reader.pos += 1
            calls += reader.statements("]")
            reader.pos += 1
            stray = reader.stray_brackets()
            if stray is not None and calls:
                calls[-1] = replace(calls[-1], edits=(*calls[-1].edits, stray))
        else:
            calls.append(reader.statement())
        if reader.skip() in (",", ";"):
            reader.pos += 1
            # Behind a list it is a part of a sentence, unless another one follows.
            if char == "[" and not reader.skip():
                raise reader.fail("a separator, and nothing after it")
    return tuple(calls)


def read_instead(body: str, context: DecodeContext) -> tuple[Decoded, ...]:
    """Return the calls of another format's body that a model wrote as Python, () for none of that.

    All have to be of tools on offer: nothing else tells such a body from damage.
    """
    is_whole = context.repair and context.closed and not context.opening.name
    if not is_whole or not _CALL.match(body):
        return ()
    try:
        calls = read_calls(body, context)
    except Refusal:
        return ()
    if not all(call.readable and call.name in context.tools for call in calls):
        return ()
    return tuple(with_step(call, "read.python-body") for call in calls)


def read_quoted(body: str, context: DecodeContext) -> tuple[Decoded, ...]:
    """Return the calls of a body that is one string. Raises Refusal.

    The quotes are dropped. Where the string has escapes, it stands for the text that it means.
    """
    quote, inner = body[:1], body[1:-1]
    if len(body) < 2 or quote not in ("'", '"') or body[-1] != quote or not context.repair:
        raise Refusal("decode.pythonic", "no string", 0)
    edits = [Edit(Span(at, at + 1), "", RULE) for at in (0, len(body) - 1)]
    shift = 1
    if "\\" in inner:
        whole = PythonReader(body, context)
        inner = whole.string("")
        if whole.skip():
            raise Refusal("decode.pythonic", "something follows the string", whole.pos)
        edits, shift = [Edit(Span(0, len(body)), inner, RULE)], -1
    calls = read_calls(inner, replace(context, repair=False))
    if not calls:
        raise Refusal("decode.pythonic", "no call in the string", 0)
    moved = [_moved(call, shift, len(body)) for call in calls]
    return (replace(moved[0], edits=tuple(edits)), *moved[1:])


def _moved(call: Decoded, shift: int, size: int) -> Decoded:
    # shift: -1 where the places are unknown: with escapes that of each value is the whole string
    span = call.name_span.shift(shift) if shift >= 0 and call.name_span else None
    places = moved_places(
        call.places, lambda a, b: (a + shift, b + shift) if shift >= 0 else (0, size)
    )
    return replace(call, name_span=span, places=places)


@dataclass(frozen=True, slots=True)
class PythonCalls(Codec):
    """Codec: `[f(a=1), g(b="x")]` between `opener` and `closer`.

    Both are empty for the format without delimiters. in_list: calls are written as a list, else one
    a line. `line` is the text between two of them then. json_words: JSON's words for true, false
    and null are those of the format.
    """

    opener: str = ""
    closer: str = ""
    in_list: bool = True
    line: str = "\n"
    json_words: bool = False

    def read(self, body: str, context: DecodeContext) -> tuple[Decoded, ...]:
        # which may be JSON where delimiters are around it
        if self.opener and _JSON.match(body):
            return JsonCall(self.opener, self.closer).read(body, context)
        # An empty list between delimiters says that there is nothing to call.
        return read_calls(body, context, self.json_words) or Message((), ())

    @property
    def edges(self) -> tuple[str, str]:
        start, end = ("[", "]") if self.in_list else ("", "")
        return self.opener + start, end + self.closer

    def write(self, name: str, arguments_json: str, tool: ToolSpec | None) -> str:
        arguments = read_strict(arguments_json)
        sound = NAME.fullmatch(name) and all(_KEY.fullmatch(key) for key in arguments)
        if not sound:
            raise UnwritableCall("a name that Python cannot write", got=name)

        words = _JSON_WORDS if self.json_words else _PYTHON_WORDS
        pairs = [f"{key}={_literal(value, words)}" for key, value in arguments.items()]
        start, end = self.edges
        return f"{start}{name}({', '.join(pairs)}){end}"

    @property
    def between(self) -> str:
        return ", " if self.in_list else self.line  # a second list would be text


_KEY = re.compile(r"[^\W\d]\w*")


# By repr, as two of them are equal to numbers.
_PYTHON_WORDS = {"True": "True", "False": "False", "None": "None"}
_JSON_WORDS = {"True": "true", "False": "false", "None": "null"}


def _literal(value: Value, words: Mapping[str, str], depth: int = 0) -> str:
    # words: of the format for True, False and None
    if depth > 150:
        raise UnwritableCall("nested too deep for a Python literal")
    if isinstance(value, str):
        return repr(value)
    if isinstance(value, dict):
        members = [
            f"{key!r}: {_literal(member, words, depth + 1)}" for key, member in value.items()
        ]
        return "{" + ", ".join(members) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_literal(item, words, depth + 1) for item in value) + "]"
    if value is None or isinstance(value, bool):
        return words[repr(value)]
    return write_canonical(value)


# JSON's words for booleans and null are names in Python, so these rules cannot be JSON's.
PYTHON_TYPE_RULES = make_rules(
    "{name}={value}",
    ("boolean", "enabled", "True", '"True"', "A boolean is the bare word True or False."),
    (
        *("string", "city", '"Tokyo"', "Tokyo"),
        "A string always stands in quotes, also when it looks like a number.",
    ),
    (
        *("array", "tags", '["red", "blue"]', '"red, blue"'),
        "An array is a list in square brackets, not one string.",
    ),
    (
        *("object", "size", '{"w": 3, "h": 4}', "\"{'w': 3, 'h': 4}\""),
        "An object is a dict in braces with quoted keys, not a string that holds one.",
    ),
)
