"""Body family: calls written as Python, `f(a=1, b="x")`, alone, in a list, or one a line.

They are read, never evaluated.
"""

# How it works
#
# A reader by recursive descent over literals: `_pos` only moves forward, `places` and `edits` fill
# on the way, and the first thing that is not understood raises a `Refusal` with its place. Python's
# own parser is not used: it refuses NUL and lone surrogates, knows no offsets of characters, and
# takes expressions that are none of a call's business.
#
# What is repaired is only what cannot be meant as anything else: JSON's words for true, false and
# null, and raw line breaks in strings.
#
# Cost: linear, no backtracking (the patterns are possessive where they repeat); depth is bounded,
# so that recursion stays inside the interpreter's limit.

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ...errors import UnwritableCall
from ...rjson.damage import Refusal
from ...toolspec import ToolSpec
from ...types import Edit, Span, Step
from ...values import Value, escape_token, number, read_strict
from ..base import Codec, Decoded, Reading
from .strings import unescape_python

_SPACE = re.compile(r"(?:\s|#[^\n]*)*")
_NAME = re.compile(r"[^\W\d][\w]*(?:\.[^\W\d][\w]*)*")
_STRING = re.compile(r"'(?:[^'\\]|\\.)*+'|\"(?:[^\"\\]|\\.)*+\"", re.DOTALL)
_RAW_BREAK = re.compile(r"\\(?:\r\n|.)|(?P<raw>[\r\n])", re.DOTALL)
_LINE_END = re.compile(r"\r\n?")
_TRIPLE = re.compile(r"'''(?:[^\\]|\\.)*?'''|\"\"\"(?:[^\\]|\\.)*?\"\"\"", re.DOTALL)
_KEYWORD = re.compile(r"[^\W\d]\w*(?=\s*=)")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![\w.])")
_WORDS = {"True": True, "False": False, "None": None}
_JSON_WORDS = {"true": ("True", True), "false": ("False", False), "null": ("None", None)}
# Bounded, as what may become one has to be.
HEAD = re.compile(r"\[\s{0,40}[^\W\d][\w.]{0,200}\s{0,40}\(")


class _Reader:
    """Reads forward through one text; `places` and `edits` fill on the way.

    Paths are JSON Pointers into the arguments of the call that is being read. Every method raises
    Refusal where the text is something else than it reads.
    """

    def __init__(self, text: str, repair: bool, max_depth: int) -> None:
        """Make a reader for one body. max_depth: how deep its literals may nest."""
        self.text = text
        self.pos = 0
        self.repair = repair
        # Read by recursion, well inside the interpreter's limit.
        self.max_depth = min(max_depth, 200)
        self.edits: list[Edit] = []
        self.places: dict[str, tuple[int, int]] = {}

    def skip(self) -> str:
        """Move behind white space and comments; return the next character, "" at the end."""
        match = _SPACE.match(self.text, self.pos)
        self.pos = match.end() if match else self.pos
        return self.text[self.pos : self.pos + 1]

    def fail(self, message: str) -> Refusal:
        """Return a refusal at this place; at the end of the text it is a truncation."""
        code = "decode.truncated-value" if self.pos >= len(self.text) else "decode.pythonic"
        return Refusal(code, message, self.pos)

    def expect(self, char: str) -> None:
        """Move behind this character."""
        got = self.skip()
        if got != char:
            instead = f", got {got!r}" if got else ", but the text ends"
            raise self.fail(f"expected {char!r}{instead}")
        self.pos += 1

    def comma(self, closer: str) -> None:
        """Move behind a comma, if there is one; else the closer has to follow."""
        char = self.skip()
        if char == ",":
            self.pos += 1
        elif not char:
            raise self.fail("the text ends inside a call")
        elif char != closer:
            raise self.fail(f"expected a comma or {closer!r}, got {char!r}")

    # Values

    def value(self, path: str, depth: int) -> Value:
        """Return the literal at this place; its own place goes under `path`."""
        if depth > self.max_depth:
            raise Refusal("decode.too-deep", f"nested deeper than {self.max_depth}", self.pos)

        char = self.skip()
        if char in ("'", '"'):
            return self.string(path)

        start = self.pos
        value: Value
        if char == "[":
            value = self.items("]", path, depth)
        elif char == "(":
            value = self.items(")", path, depth)
        elif char == "{":
            value = self.members(path, depth)
        else:
            value = self.word(char)

        self.places[path] = (start, self.pos)
        return value

    def word(self, char: str) -> Value:
        """Return a number, or True, False or None; JSON's words for them are repaired.

        char: the first of it, "" at the end of the text.
        """
        start = self.pos
        # Numbers as JSON has them: Python's other spellings are no arguments that a schema knows.
        digits = _NUMBER.match(self.text, start)
        if digits:
            self.pos = digits.end()
            try:
                return number(digits[0])
            except ValueError as error:
                raise Refusal("decode.json", str(error), start) from None

        match = _NAME.match(self.text, start)
        word = match[0] if match else ""
        if word in _WORDS:
            self.pos = start + len(word)
            return _WORDS[word]
        if word in _JSON_WORDS and self.repair:
            python, value = _JSON_WORDS[word]
            self.pos = start + len(word)
            self.edits.append(Edit(Span(start, self.pos), python, "pythonic.json-literal"))
            return value

        if not char:
            raise self.fail("the text ends where a value should be")
        raise self.fail(f"expected a value, got {char!r}")

    def string(self, path: str) -> str:
        """Return a string of any quotes; its place is what is between them."""
        # Three quotes begin a string of several lines, which one quote twice would not.
        triple = self.text.startswith(("'''", '"""'), self.pos)
        match = (_TRIPLE if triple else _STRING).match(self.text, self.pos)
        if not match:
            raise Refusal("decode.truncated-value", "a string is not closed", self.pos)

        quotes = 3 if triple else 1
        start, end = match.start() + quotes, match.end() - quotes
        self.places[path] = (start, end)
        self.pos = match.end()

        text = self.text[start:end]
        if triple:
            text = _LINE_END.sub("\n", text)  # as Python reads its source
        elif "\n" in text or "\r" in text:
            self.escape_breaks(start, end)

        try:
            return unescape_python(text)
        except ValueError as error:
            message = f"a string Python cannot read: {error}"
            raise Refusal("decode.pythonic", message, match.start()) from None

    def escape_breaks(self, start: int, end: int) -> None:
        """Repair raw line breaks in a string between single quotes, or double ones.

        They are no Python; but nothing else can be meant by them.
        """
        for match in _RAW_BREAK.finditer(self.text, start, end):
            if not match["raw"]:
                continue
            if not self.repair:
                raise Refusal("decode.pythonic", "a raw line break in a string", match.start())
            escape = "\\n" if match["raw"] == "\n" else "\\r"
            self.edits.append(Edit(Span(*match.span()), escape, "pythonic.raw-break"))

    def items(self, closer: str, path: str, depth: int) -> list[Value]:
        """Return the items of a list or tuple, up to its closer."""
        self.pos += 1
        values: list[Value] = []
        while self.skip() != closer:
            values.append(self.value(f"{path}/{len(values)}", depth + 1))
            self.comma(closer)
        self.pos += 1
        return values

    def members(self, path: str, depth: int) -> dict[str, Value]:
        """Return the members of a dict; its keys are strings, each there once."""
        self.pos += 1
        values: dict[str, Value] = {}
        while self.skip() != "}":
            if self.text[self.pos : self.pos + 1] not in ("'", '"'):
                raise self.fail("expected a key in quotes")
            key = self.string("")
            # Python takes the last of two; a model that writes two means neither for sure.
            if key in values:
                raise Refusal("decode.duplicate-key", f"the key {key!r} stands twice", self.pos)
            self.expect(":")
            values[key] = self.value(f"{path}/{escape_token(key)}", depth + 1)
            self.comma("}")

        self.pos += 1
        return values

    # Calls

    def name(self) -> tuple[str, Span]:
        """Return a name, dots included, and where it stands."""
        self.skip()
        match = _NAME.match(self.text, self.pos)
        if not match:
            raise self.fail("expected a name")
        self.pos = match.end()
        return match[0], Span(match.start(), match.end())

    def call(self, reading: Reading) -> Decoded:
        """Return the call at this place, with its own edits and places."""
        first_edit = len(self.edits)
        self.places = {}
        name, span = self.name()
        self.expect("(")
        start = self.pos
        # Positional arguments are named by the schema, in its own order.
        parameters = _parameters(reading.tools.get(name))
        arguments: dict[str, Value] = {}
        steps: list[Step] = []
        while self.skip() != ")":
            key = self.keyword()
            if key is None:
                key = self.positional(len(arguments), parameters)
                steps.append(Step("read", "read.positional", "", None, len(arguments), key))
            if key in arguments:
                message = f"the argument {key!r} stands twice"
                raise Refusal("decode.duplicate-key", message, self.pos)

            arguments[key] = self.value("/" + escape_token(key), 1)
            self.comma(")")

        self.places[""] = (start, self.pos)
        self.pos += 1

        places = self.places  # the next call has others
        return Decoded(
            name,
            arguments,
            name_span=span,
            steps=tuple(steps),
            edits=tuple(self.edits[first_edit:]),
            places=lambda: places,
        )

    def keyword(self) -> str | None:
        """Move behind `key=` and return the key; None where no keyword stands."""
        match = _KEYWORD.match(self.text, self.pos)
        if not match:
            return None
        self.pos = match.end()
        self.expect("=")
        return match[0]

    def positional(self, index: int, parameters: list[str]) -> str:
        """Return the name of a positional argument: the schema's parameter of this number."""
        if index >= len(parameters):
            raise self.fail("a positional argument, and no schema that says which it is")
        return parameters[index]


def _parameters(tool: ToolSpec | None) -> list[str]:
    """Return the names of a tool's parameters in the order of its schema."""
    schema = tool.schema if tool else None
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return list(properties) if isinstance(properties, dict) else []


def read_calls(body: str, reading: Reading) -> tuple[Decoded, ...]:
    """Return every call of a body: a list of calls, or calls one behind the other.

    Raises Refusal.
    """
    reader = _Reader(body, reading.repair, reading.max_depth)
    calls: list[Decoded] = []
    # Models leave the list out, above all around one call.
    if reader.skip() == "[":
        reader.pos += 1
        while reader.skip() != "]":
            calls.append(reader.call(reading))
            reader.comma("]")
        reader.pos += 1
    else:
        while reader.skip():
            calls.append(reader.call(reading))
            if reader.skip() in (",", ";"):
                reader.pos += 1

    if reader.skip():
        raise reader.fail("something stands behind the calls")
    return tuple(calls)


@dataclass(frozen=True, slots=True)
class PythonCalls(Codec):
    """Codec: `[f(a=1), g(b="x")]` between `opener` and `closer`.

    Both are empty for the format without delimiters.
    """

    opener: str = ""
    closer: str = ""

    def read(self, body: str, reading: Reading) -> tuple[Decoded, ...]:
        """Return the calls of a body; raises Refusal."""
        return read_calls(body, reading)

    def write(self, name: str, arguments_json: str, tool: ToolSpec | None) -> str:
        """Return a list of one call.

        Raises UnwritableCall for names that are none in Python, and for values too deep.
        """
        arguments = read_strict(arguments_json)
        sound = _NAME.fullmatch(name) and all(_KEY.fullmatch(key) for key in arguments)
        if not sound:
            raise UnwritableCall("a name that Python cannot write", got=name)

        pairs = [f"{key}={_literal(value)}" for key, value in arguments.items()]
        return f"{self.opener}[{name}({', '.join(pairs)})]{self.closer}"

    def join(self, calls: Sequence[str]) -> str:
        """Return calls of one answer as items of one list: a second list would be text."""
        start, end = len(self.opener) + 1, len(self.closer) + 1
        inner = [call[start : len(call) - end] for call in calls]
        return f"{self.opener}[{', '.join(inner)}]{self.closer}"


_KEY = re.compile(r"[^\W\d]\w*")


def _literal(value: Value, depth: int = 0) -> str:
    """Return a value as Python writes it; raises UnwritableCall for one that nests too deep."""
    if depth > 150:
        raise UnwritableCall("nested too deep for a Python literal")
    if isinstance(value, str):
        return repr(value)
    if isinstance(value, dict):
        members = [f"{key!r}: {_literal(member, depth + 1)}" for key, member in value.items()]
        return "{" + ", ".join(members) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_literal(item, depth + 1) for item in value) + "]"
    # Numbers that are more than a float keep the text that they were read from.
    return getattr(value, "text", None) or repr(value)
