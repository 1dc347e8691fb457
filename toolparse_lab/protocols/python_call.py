"""Body family: calls written as Python, `f(a=1, b="x")`, alone, in a list, or one a line. Read, never evaluated."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import UnwritableCall
from ..rjson.damage import Refusal
from ..toolspec import ToolSpec
from ..types import Edit, Span, Step
from ..values import Value, escape_token, number, read_strict
from .base import Decoded, Reading
from .python_string import unescape_python

_SPACE = re.compile(r"(?:\s|#[^\n]*)*")
_NAME = re.compile(r"[^\W\d][\w]*(?:\.[^\W\d][\w]*)*")
_STRING = re.compile(r"'(?:[^'\\]|\\.)*+'|\"(?:[^\"\\]|\\.)*+\"", re.DOTALL)
_RAW_BREAK = re.compile(r"\\(?:\r\n|.)|(?P<raw>[\r\n])", re.DOTALL)
_LINE_END = re.compile(r"\r\n?")
_TRIPLE = re.compile(r"'''(?:[^\\]|\\.)*?'''|\"\"\"(?:[^\\]|\\.)*?\"\"\"", re.DOTALL)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![\w.])")
_WORDS = {"True": True, "False": False, "None": None}
_JSON_WORDS = {"true": ("True", True), "false": ("False", False), "null": ("None", None)}
HEAD = re.compile(r"\[\s*[^\W\d][\w.]*\s*\(")


class _Reader:
    """Reads forward through one text; `places` and `edits` fill on the way."""

    def __init__(self, text: str, repair: bool, max_depth: int) -> None:
        self.text = text
        self.pos = 0
        self.repair = repair
        self.max_depth = min(max_depth, 200)  # read by recursion, well inside the interpreter's limit
        self.edits: list[Edit] = []
        self.places: dict[str, tuple[int, int]] = {}

    def skip(self) -> str:
        m = _SPACE.match(self.text, self.pos)
        self.pos = m.end() if m else self.pos
        return self.text[self.pos : self.pos + 1]

    def fail(self, message: str) -> Refusal:
        code = "decode.truncated-value" if self.pos >= len(self.text) else "decode.pythonic"
        return Refusal(code, message, self.pos)

    def expect(self, ch: str) -> None:
        got = self.skip()
        if got != ch:
            raise self.fail(f"expected {ch!r}, got {got!r}" if got else f"expected {ch!r}, but the text ends")
        self.pos += 1

    def name(self) -> tuple[str, Span]:
        self.skip()
        m = _NAME.match(self.text, self.pos)
        if not m:
            raise self.fail("expected a name")
        self.pos = m.end()
        return m[0], Span(m.start(), m.end())

    def value(self, path: str, depth: int) -> Value:
        if depth > self.max_depth:
            raise Refusal("decode.too-deep", f"nested deeper than {self.max_depth}", self.pos)
        ch = self.skip()
        start = self.pos
        if ch in "'\"":
            return self.string(path)
        if ch in "[(":
            out = self.items("]" if ch == "[" else ")", path, depth)
            self.places[path] = (start, self.pos)
            return out
        if ch == "{":
            members = self.members(path, depth)
            self.places[path] = (start, self.pos)
            return members
        m = _NUMBER.match(self.text, start)
        if m:
            self.pos = m.end()
            self.places[path] = (start, self.pos)
            try:
                return number(m[0])
            except ValueError as e:
                raise Refusal("decode.json", str(e), start) from None
        m = _NAME.match(self.text, start)
        word = m[0] if m else ""
        if word in _WORDS:
            self.pos = start + len(word)
            self.places[path] = (start, self.pos)
            return _WORDS[word]
        if word in _JSON_WORDS and self.repair:
            python, value = _JSON_WORDS[word]
            self.pos = start + len(word)
            self.edits.append(Edit(Span(start, self.pos), python, "pythonic.json-literal"))
            self.places[path] = (start, self.pos)
            return value
        raise self.fail(f"expected a value, got {ch!r}" if ch else "the text ends where a value should be")

    def string(self, path: str) -> str:
        triple = self.text.startswith(("'''", '"""'), self.pos)
        m = (_TRIPLE if triple else _STRING).match(self.text, self.pos)
        if not m:
            raise Refusal("decode.truncated-value", "a string is not closed", self.pos)
        quotes = 3 if triple else 1
        start, end = m.start() + quotes, m.end() - quotes
        self.places[path] = (start, end)
        self.pos = m.end()
        text = self.text[start:end]
        if triple:
            text = _LINE_END.sub("\n", text)  # as Python reads its source
        elif "\n" in text or "\r" in text:
            self.escape_breaks(start, end)
        try:
            return unescape_python(text)
        except ValueError as no:
            raise Refusal("decode.pythonic", f"a string Python cannot read: {no}", m.start()) from None

    def escape_breaks(self, start: int, end: int) -> None:
        """A raw line break in a string between single quotes, or double ones, is no Python."""
        for m in _RAW_BREAK.finditer(self.text, start, end):
            if m["raw"]:
                if not self.repair:
                    raise Refusal("decode.pythonic", "a raw line break in a string", m.start())
                escape = "\\n" if m["raw"] == "\n" else "\\r"
                self.edits.append(Edit(Span(*m.span()), escape, "pythonic.raw-break"))

    def items(self, closer: str, path: str, depth: int) -> list[Value]:
        self.pos += 1
        out: list[Value] = []
        while self.skip() != closer:
            out.append(self.value(f"{path}/{len(out)}", depth + 1))
            self.comma(closer)
        self.pos += 1
        return out

    def members(self, path: str, depth: int) -> dict[str, Value]:
        self.pos += 1
        out: dict[str, Value] = {}
        while self.skip() != "}":
            if self.text[self.pos : self.pos + 1] not in ("'", '"'):
                raise self.fail("expected a key in quotes")
            key = self.string("")
            if key in out:
                raise Refusal("decode.duplicate-key", f"the key {key!r} stands twice", self.pos)
            self.expect(":")
            out[key] = self.value(f"{path}/{escape_token(key)}", depth + 1)
            self.comma("}")
        self.pos += 1
        return out

    def comma(self, closer: str) -> None:
        ch = self.skip()
        if ch == ",":
            self.pos += 1
        elif ch != closer:
            raise self.fail(f"expected a comma or {closer!r}, got {ch!r}" if ch else "the text ends inside a call")

    def call(self, reading: Reading) -> Decoded:
        mark = len(self.edits)
        self.places = {}
        name, span = self.name()
        self.expect("(")
        start = self.pos
        arguments: dict[str, Value] = {}
        steps: list[Step] = []
        tool = reading.tools.get(name)
        properties = tool.schema.get("properties") if tool and isinstance(tool.schema, dict) else None
        order = list(properties) if isinstance(properties, dict) else []
        while self.skip() != ")":
            m = re.compile(r"[^\W\d]\w*(?=\s*=)").match(self.text, self.pos)
            if m:
                key = m[0]
                self.pos = m.end()
                self.expect("=")
            elif len(arguments) < len(order):
                key = order[len(arguments)]
                steps.append(Step("read", "read.positional", "", None, len(arguments), key))
            else:
                raise self.fail("a positional argument, and no schema that says which it is")
            if key in arguments:
                raise Refusal("decode.duplicate-key", f"the argument {key!r} stands twice", self.pos)
            arguments[key] = self.value("/" + escape_token(key), 1)
            self.comma(")")
        self.places[""] = (start, self.pos)
        self.pos += 1
        places = self.places
        return Decoded(
            name, arguments, name_span=span, steps=tuple(steps), edits=tuple(self.edits[mark:]), places=lambda: places
        )


def read_calls(body: str, reading: Reading) -> tuple[Decoded, ...]:
    """Every call of a body: a list of calls, or calls one behind the other. Raises Refusal."""
    reader = _Reader(body, reading.repair, reading.max_depth)
    found: list[Decoded] = []
    if reader.skip() == "[":
        reader.pos += 1
        while reader.skip() != "]":
            found.append(reader.call(reading))
            reader.comma("]")
        reader.pos += 1
    else:
        while reader.skip():
            found.append(reader.call(reading))
            if reader.skip() in (",", ";"):
                reader.pos += 1
    if reader.skip():
        raise reader.fail("something stands behind the calls")
    return tuple(found)


@dataclass(frozen=True, slots=True)
class PythonCalls:
    """Codec: `[f(a=1), g(b="x")]` between `opener` and `closer` (both empty for the format without delimiters)."""

    opener: str = ""
    closer: str = ""

    def strict(self, body: str, reading: Reading) -> bool:
        try:
            self.read(body, Reading(reading.opening, True, False, reading.max_depth, reading.tools))
        except Refusal:
            return False
        return True

    def read(self, body: str, reading: Reading) -> tuple[Decoded, ...]:
        return read_calls(body, reading)

    def write(self, name: str, arguments_json: str, tool: ToolSpec | None) -> str:
        arguments = read_strict(arguments_json)
        if not _NAME.fullmatch(name) or not all(re.fullmatch(r"[^\W\d]\w*", k) for k in arguments):
            raise UnwritableCall("a name that Python cannot write", got=name)
        inner = ", ".join(f"{k}={_literal(v)}" for k, v in arguments.items())
        return f"{self.opener}[{name}({inner})]{self.closer}"

    def join(self, calls: Sequence[str]) -> str:
        """Calls of one answer are items of one list: a second list would be text."""
        start, end = len(self.opener) + 1, len(self.closer) + 1
        return f"{self.opener}[{', '.join(c[start : len(c) - end] for c in calls)}]{self.closer}"


def _literal(value: Value, depth: int = 0) -> str:
    if depth > 150:
        raise UnwritableCall("nested too deep for a Python literal")
    if isinstance(value, str):
        return repr(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k!r}: {_literal(v, depth + 1)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_literal(v, depth + 1) for v in value) + "]"
    return getattr(value, "text", None) or repr(value)
