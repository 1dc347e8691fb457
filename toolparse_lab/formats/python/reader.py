"""Reads calls written as Python, `f(a=1, b="x")`, with their values. Nothing is evaluated."""

# How it works
#
# A reader by recursive descent over literals: `_pos` only moves forward, `places` and `edits` fill
# on the way, and the first thing that is not understood raises a `Refusal` with its place. Python's
# own parser is not used: it refuses NUL and lone surrogates, knows no offsets of characters, and
# takes expressions that are none of a call's business.
#
# What is repaired is only what cannot be meant as anything else: JSON's words for true, false and
# null, raw line breaks in strings, escapes of Markdown in names, a call in quotes, a bare word
# where the schema has a text.
#
# Cost: linear, no backtracking (the patterns are possessive where they repeat); depth is bounded,
# so that recursion stays inside the interpreter's limit.

from __future__ import annotations

import re
import unicodedata
from dataclasses import replace
from math import isinf

from ...arguments.rjson.strict import Refusal
from ...arguments.schema.view import View, view_of
from ...core.toolspec import ToolSpec
from ...core.types import Edit, Span, Step
from ...core.values import Value, escape_token, number
from ..base import DecodeContext, Decoded, unread

NAME = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
# Markdown escapes an underscore; nothing else in a name has a backslash.
_ESCAPED_NAME = re.compile(r"(?:[^\W\d]|\\_)(?:\w|\\_|\.(?=[^\W\d]))*")
_ASSIGNMENT = re.compile(r"[^\W\d]\w{0,64}[ \t]{0,8}=[ \t]{0,8}(?=[^\W\d][\w.]{0,200}\()")
_PRINT = re.compile(r"print[ \t]{0,8}\(\s{0,8}(?=[^\W\d][\w.]{0,200}\()")
_BARE_WORD = re.compile(r"[^\W\d][\w-]{0,64}(?:[ ][\w-]{1,64}){0,4}(?=\s{0,8}[,)\]}])")
_STRING = re.compile(r"'(?:[^'\\]|\\.)*+'|\"(?:[^\"\\]|\\.)*+\"", re.DOTALL)
_RAW_BREAK = re.compile(r"\\(?:\r\n|.)|(?P<raw>[\r\n])", re.DOTALL)
_LINE_END = re.compile(r"\r\n?")
_TRIPLE = re.compile(r"'''(?:[^\\]|\\.)*?'''|\"\"\"(?:[^\\]|\\.)*?\"\"\"", re.DOTALL)
_KEYWORD = re.compile(r"(?:[^\W\d]|\\_)(?:\w|\\_)*(?=\s*=)")
_QUOTED_NAME = re.compile(r"([\"'])(?P<name>[^\W\d][\w.]{0,200})\1(?=[ \t]{0,8}\()")
# What goes on after a value where that is a part of an expression.
_OPERATORS = "+-*/%@&|^<>.=!"
_NUMBER = re.compile(
    r"-?(?:0|[1-9][0-9]*+(?:_[0-9]++)*+)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![\w.])"
)
# As long as a number of 256 bits is, in each base.
_BASED = re.compile(
    r"[+-]?0(?:[xX](?:_?[0-9a-fA-F]){1,64}+|[oO](?:_?[0-7]){1,86}+|[bB](?:_?[01]){1,256}+)(?![\w.])"
)
_RAW_STRING = re.compile(r"[rR](?=['\"])")
_PADDED = re.compile(r"(?P<sign>-?)(?P<zeros>0+)(?P<digits>[0-9]+)(?=\s*[,)\]}])")
_WORDS = {"True": True, "False": False, "None": None}
_JSON_WORDS = {"true": ("True", True), "false": ("False", False), "null": ("None", None)}
# What is before a name where a model calls through the module of its tools.
MODULES = ("default_api.", "functions.", "tools.", "api.")
_METHOD = ".call"
# Python's own parser refuses NUL and lone surrogates, which a model may well write in a string.
# A backslash that none of these follow stays as it is, so it is not matched at all.
_ESCAPE = re.compile(
    r"\\(?:(?P<line>\r?\n|\r)|(?P<octal>[0-7]{1,3})|x(?P<x>[0-9a-fA-F]{2})|u(?P<u>[0-9a-fA-F]{4})"
    r"|U(?P<U>[0-9a-fA-F]{8})|N\{(?P<name>[^{}\n]{1,128})\}"
    r"|(?P<one>[\\'\"abfnrtv])|(?P<bad>[xuUN]))"
)
_ONE = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
# What may follow the quote that ends a string: a bracket, or a comma and what follows one.
_BEHIND = re.compile(
    r"\s{0,40}+(?:[)\]}:]|,\s{0,40}+(?:[\"'\[{(\])}\d-]|(?:True|False|None|true|false|null)\b"
    r"|[^\W\d][\w.]{0,200}+\s{0,8}+[=(]))"
)
# Words that Python has after a value; any other one is inside a string.
_PASTED = re.compile(r"(?!(?:if|else|for|in|is|and|or|not)\b)[\w/\\$~]")
# Behind it a quote begins a value: a quote or a comma was lost, and two readings fit.
_NAMED = re.compile(r"\w\s{0,4}[=:]\s{0,4}\Z")
_SEPARATED = re.compile(r"[,:]\s{1,8}\Z|[\[({]\s{0,8}\Z")
_MOST_INNER = 64

_STRAY_END = re.compile(r"\s{0,40}+(\]{1,4}+)\s*+\Z")
_PIECE = re.compile(
    r"(?P<open>[(\[{])|(?P<close>[)\]}])"
    r"|(?:(?<=[=,:(\[{])|(?<=[=,:(\[{][ ])|(?<=[=,:(\[{]\n))[bBrRfFuU]{0,2}+"
    r"(?:'(?:[^'\\\n]|\\.)*+'|\"(?:[^\"\\\n]|\\.)*+\")(?=\s{0,64}[,)\]}:])"
    r"|[^()\[\]{}'\"]"
)
_CALL_HEAD = re.compile(r"[^\W\d]\w{0,200}(?:\.[^\W\d]\w{0,200}){0,8}(?=[ \t]{0,8}\()")


class NoLiteral(Refusal):
    """A value that is an expression of Python, which nobody evaluates here."""


class LiteralReader:
    """Reads forward through one text of calls with literals.

    `places` and `edits` fill on the way.

    Paths are JSON Pointers into the arguments of the call that is being read. Every method raises
    Refusal if the text is something else than it reads.
    """

    code = "decode.pythonic"
    space = re.compile(r"(?:\s|#[^\n]*)*")  # with comments
    modules = MODULES  # before the name of a tool

    def __init__(self, text: str, context: DecodeContext) -> None:
        self.text = text
        self.pos = 0
        self.context = context
        self.repair = context.repair
        # Read by recursion, well inside the interpreter's limit.
        self.max_depth = min(context.max_depth, 200)
        self.edits: list[Edit] = []
        self.places: dict[str, tuple[int, int]] = {}

    def skip(self) -> str:
        match = self.space.match(self.text, self.pos)
        self.pos = match.end() if match else self.pos
        return self.text[self.pos : self.pos + 1]

    def fail(self, message: str) -> Refusal:
        # At the end of the text it is a truncation.
        code = "decode.truncated-value" if self.pos >= len(self.text) else self.code
        return Refusal(code, message, self.pos)

    def offered(self, name: str) -> str:
        """Return the tool that a name means where a model calls through the module of its tools."""
        tools = self.context.tools
        if name in tools:
            return name
        rests = (name.removeprefix(module) for module in self.modules if name.startswith(module))
        return next((rest for rest in rests if rest in tools), name)

    def number(self, lexeme: str, at: int) -> Value:
        try:
            return number(lexeme)
        except ValueError as error:
            raise Refusal("decode.json", str(error), at) from None

    def decoded(
        self, name: str, arguments: Value, span: Span, first_edit: int, steps: tuple[Step, ...] = ()
    ) -> Decoded:
        """Return the call that was read. first_edit: the number of its first edit."""
        places = self.places  # the next call has others
        edits = sorted(self.edits[first_edit:], key=lambda edit: edit.span.start)
        return Decoded(
            name,
            arguments,
            name_span=span,
            steps=steps,
            edits=tuple(edits),
            places=lambda: places,
        )


class PythonReader(LiteralReader):
    """Reads calls of Python. json_words: JSON's words for true, false and null are as good."""

    def __init__(self, text: str, context: DecodeContext, json_words: bool = False) -> None:
        super().__init__(text, context)
        self.json_words = json_words
        self.view: View | None = None  # of the tool whose call is being read

    def expect(self, char: str) -> None:
        got = self.skip()
        if got != char:
            instead = f", got {got!r}" if got else ", but the text ends"
            raise self.fail(f"expected {char!r}{instead}")
        self.pos += 1

    def comma(self, closer: str) -> None:
        char = self.skip()
        if char == ",":
            self.pos += 1
        elif not char:
            raise self.fail("the text ends inside a call")
        elif char != closer:
            refusal = self.fail(f"expected a comma or {closer!r}, got {char!r}")
            if char in _OPERATORS:
                raise NoLiteral(refusal.code, refusal.message, refusal.position)
            raise refusal

    # Values

    def value(self, path: str, depth: int) -> Value:
        if depth > self.max_depth:
            raise Refusal("decode.too-deep", f"nested deeper than {self.max_depth}", self.pos)

        char = self.skip()
        raw = _RAW_STRING.match(self.text, self.pos)
        if raw or char in ("'", '"'):
            self.pos += bool(raw)
            return self.string(path, raw=bool(raw))

        start = self.pos
        value: Value
        if char == "[":
            value = self.items("]", path, depth)
        elif char == "(":
            value = self.items(")", path, depth)
        elif char == "{":
            value = self.members(path, depth)
        else:
            value = self.word(path, char)

        self.places[path] = (start, self.pos)
        return value

    def word(self, path: str, char: str) -> Value:
        # char: the first of it, "" at the end of the text
        start = self.pos
        # Where the schema has a text, these would lose their spelling.
        if char in ("+", "-", "0") and not self.takes_text(path):
            based = _BASED.match(self.text, start)
            if based:
                self.pos = based.end()
                return int(based[0].replace("_", ""), 0)
            start += char == "+"
        digits = _NUMBER.match(self.text, start)
        if digits:
            self.pos = digits.end()
            lexeme = digits[0].replace("_", "")
            if not lexeme.lstrip("-").isdigit() and isinf(float(lexeme)):
                raise NoLiteral("decode.pythonic", f"{lexeme} is infinite in Python", start)
            return self.number(lexeme, start)

        match = NAME.match(self.text, start)
        word = match[0] if match else ""
        if word in _WORDS:
            self.pos = start + len(word)
            return _WORDS[word]
        if word in _JSON_WORDS and (self.repair or self.json_words):
            python, value = _JSON_WORDS[word]
            self.pos = start + len(word)
            if not self.json_words:
                self.edits.append(Edit(Span(start, self.pos), python, "pythonic.json-literal"))
            return value

        if not char:
            raise self.fail("the text ends where a value should be")
        takes_text = self.repair and self.takes_text(path)
        padded = _PADDED.match(self.text, start) if self.repair else None
        if padded is not None and not takes_text:  # Python refuses zeros before an integer
            self.pos = padded.end()
            self.edits.append(Edit(Span(*padded.span("zeros")), "", "pythonic.leading-zeros"))
            return self.number(padded["sign"] + padded["digits"], start)
        # Only where the schema has a place for a text, which a value inside another one lacks.
        bare = padded or _BARE_WORD.match(self.text, self.pos)
        if bare is None or not takes_text:
            raise NoLiteral("decode.pythonic", f"expected a value, got {char!r}", self.pos)
        self.pos = bare.end()
        self.edits.append(Edit(Span(*bare.span()), repr(bare[0]), "pythonic.bare-word"))
        return bare[0]

    def takes_text(self, path: str) -> bool:
        name = path.removeprefix("/").replace("~1", "/").replace("~0", "~")
        member = self.view.child(name) if self.view is not None else None
        return member is not None and "string" in (member.types or ())

    def string(self, path: str, *, raw: bool = False) -> str:
        # Its place is the gap between the quotes. raw: an `r` was before it, so that a backslash is
        # nothing but itself.
        # Three quotes begin a string of several lines, which one quote twice would not.
        triple = self.text.startswith(("'''", '"""'), self.pos)
        match = (_TRIPLE if triple else _STRING).match(self.text, self.pos)
        if not match:
            raise Refusal("decode.truncated-value", "a string is not closed", self.pos)

        quotes = 3 if triple else 1
        start, end = match.start() + quotes, match.end() - quotes
        late = None
        if self.repair and not triple and not raw:
            late = late_end(self.text, match.end(), inside=path.count("/") != 1)
        if late is not None:
            # Quotes of the same kind are inside, without a backslash.
            inner = [end, *late[:-1]]
            self.edits += [Edit(Span(at, at), "\\", "pythonic.inner-quote") for at in inner]
            end = late[-1]
        self.places[path] = (start, end)
        self.pos = end + quotes

        text = self.text[start:end]
        if triple:
            text = _LINE_END.sub("\n", text)  # as Python reads its source
        elif "\n" in text or "\r" in text:
            if raw:
                raise Refusal("decode.pythonic", "a line break in a raw string", match.start())
            # They are no Python. But nothing else can be meant by them.
            for at in _RAW_BREAK.finditer(self.text, start, end):
                if at["raw"] and not self.repair:
                    message = "a raw line break in a string"
                    raise Refusal("decode.pythonic", message, at.start())
                if at["raw"]:
                    escape = "\\n" if at["raw"] == "\n" else "\\r"
                    self.edits.append(Edit(Span(*at.span()), escape, "pythonic.raw-break"))
        if raw:
            return text

        try:
            return unescape_python(text)
        except ValueError as error:
            message = f"a string Python cannot read: {error}"
            raise Refusal("decode.pythonic", message, match.start()) from None

    def items(self, closer: str, path: str, depth: int) -> list[Value]:
        self.pos += 1
        values: list[Value] = []
        while self.skip() != closer:
            values.append(self.value(f"{path}/{len(values)}", depth + 1))
            self.comma(closer)
        self.pos += 1
        return values

    def members(self, path: str, depth: int) -> dict[str, Value] | list[Value]:
        # Of a dict, or of a set as a list. The keys of a dict are strings, each there once.
        start, first_edit = self.pos, len(self.edits)
        self.pos += 1
        values: dict[str, Value] = {}
        while self.skip() != "}":
            if self.text[self.pos : self.pos + 1] not in ("'", '"'):
                if values or not self.repair:
                    raise self.fail("expected a key in quotes")
                item = self.value(f"{path}/0", depth + 1)
                return self.set_items(item, path, depth, start, first_edit)
            key = self.string("")
            if self.repair and not values and self.skip() in (",", "}"):
                self.places[f"{path}/0"] = self.places[""]
                return self.set_items(key, path, depth, start, first_edit)
            # Python takes the last of two; a model that writes two means neither for sure.
            if key in values:
                raise Refusal("decode.duplicate-key", f"the key {key!r} appears twice", self.pos)
            self.expect(":")
            values[key] = self.value(f"{path}/{escape_token(key)}", depth + 1)
            self.comma("}")

        self.pos += 1
        return values

    def set_items(
        self, first: Value, path: str, depth: int, start: int, first_edit: int
    ) -> list[Value]:
        # first: the item that was read. start: of the brace. first_edit: where its edit belongs.
        if self.skip() == ":":
            raise self.fail("expected a key in quotes")
        self.edits.insert(first_edit, Edit(Span(start, start + 1), "[", "pythonic.set"))
        values = [first]
        self.comma("}")
        while self.skip() != "}":
            values.append(self.value(f"{path}/{len(values)}", depth + 1))
            self.comma("}")
        self.edits.append(Edit(Span(self.pos, self.pos + 1), "]", "pythonic.set"))
        self.pos += 1
        return values

    # Calls

    def name(self) -> tuple[str, Span]:
        self.skip()
        quoted = _QUOTED_NAME.match(self.text, self.pos) if self.repair else None
        if quoted is not None:
            start, end = quoted.span()
            self.edits.append(Edit(Span(start, start + 1), "", "pythonic.quoted-name"))
            self.edits.append(Edit(Span(end - 1, end), "", "pythonic.quoted-name"))
            self.pos = end
            return quoted["name"], Span(*quoted.span("name"))
        match = _ESCAPED_NAME.match(self.text, self.pos)
        if match is None:
            raise self.fail("expected a name")
        start, end = match.span()
        if "\\" in match[0] and not self.repair:
            raise self.fail("a backslash in a name")

        self.pos = end
        name = self.unescaped(match)
        # The built-in tools of Llama are objects with a method.
        tools, plain = self.context.tools, name.removesuffix(_METHOD)
        if plain != name and self.offered(name) not in tools and plain in tools:
            return plain, Span(start, end - len(_METHOD))
        offered = self.offered(name)
        return offered, Span(start + len(name) - len(offered), end)

    def unescaped(self, match: re.Match[str]) -> str:
        if "\\" not in match[0]:
            return match[0]
        for escape in re.finditer(r"\\", match[0]):
            at = match.start() + escape.start()
            self.edits.append(Edit(Span(at, at + 1), "", "pythonic.escaped-name"))
        return match[0].replace("\\", "")

    def statement(self) -> Decoded:
        # out of `print(…)`, `x = …` or quotes
        char = self.skip()
        if char in ("'", '"') and not _QUOTED_NAME.match(self.text, self.pos):
            return self.quoted()

        first = len(self.edits)
        assignment = _ASSIGNMENT.match(self.text, self.pos) if self.repair else None
        if assignment is not None:
            self.edits.append(Edit(Span(*assignment.span()), "", "pythonic.assignment"))
            self.pos = assignment.end()
        may_print = self.repair and "print" not in self.context.tools
        printer = _PRINT.match(self.text, self.pos) if may_print else None
        if printer is not None:
            self.edits.append(Edit(Span(*printer.span()), "", "pythonic.print"))
            self.pos = printer.end()
        call = self.call()
        if printer is not None:
            self.expect(")")
            self.edits.append(Edit(Span(self.pos - 1, self.pos), "", "pythonic.print"))
        edits = sorted(self.edits[first:], key=lambda edit: edit.span.start)
        return replace(call, edits=tuple(edits))

    def statements(self, closer: str) -> list[Decoded]:
        # One with a value that is no literal is refused alone, if another one can be read.
        calls: list[Decoded] = []
        first: Refusal | None = None
        while self.skip() != closer:
            start, first_edit = self.pos, len(self.edits)
            try:
                calls.append(self.statement())
            except NoLiteral as refusal:
                # The call is left out from its bracket to the one that closes it. That is only sure
                # where no quote is out of step, so each string on the way has to begin where a
                # value may, and to end in front of a separator: an apostrophe in loose words does
                # neither.
                head = _CALL_HEAD.match(self.text, start)
                end = _end(self.text, head.end()) if head else -1
                if head is None or end < 0:
                    raise
                self.pos = end
                span = Span(*head.span())
                calls.append(unread(head[0], refusal, span, name_span=span))
                del self.edits[first_edit:]
                first = first or refusal
            self.comma(closer)
        if first is not None and not any(call.readable for call in calls):
            raise first
        return calls

    def stray_brackets(self) -> Edit | None:
        """Pass brackets that close nothing at the end of the text, and return their edit."""
        stray = _STRAY_END.match(self.text, self.pos) if self.repair else None
        if stray is None:
            return None
        self.pos = stray.end()
        return Edit(Span(*stray.span(1)), "", "pythonic.stray-bracket")

    def quoted(self) -> Decoded:
        # a call that a model put into quotes as a whole
        start = self.pos
        text = self.string("")
        if not self.repair:
            raise Refusal("decode.pythonic", "a call in quotes", start)

        inner = PythonReader(text, replace(self.context, repair=False), self.json_words)
        call = inner.call()
        if inner.skip():
            raise Refusal("decode.pythonic", "something follows a call in quotes", start)
        edit = Edit(Span(start, self.pos), text, "pythonic.quoted-call")
        self.edits.append(edit)
        # Escapes in the string move what follows them, so only a plain one has places.
        shift = start + 1
        plain = self.text[shift : shift + len(text)] == text
        span = call.name_span.shift(shift) if plain and call.name_span else None
        places = {"": (start, self.pos)}
        if plain:
            places = {path: (a + shift, b + shift) for path, (a, b) in call.places().items()}
        return replace(call, name_span=span, edits=(edit,), places=lambda: places)

    def call(self) -> Decoded:
        first_edit = len(self.edits)
        self.places = {}
        name, span = self.name()
        tool = self.context.tools.get(name)
        self.view = view_of(tool.schema_json) if tool is not None else None
        self.expect("(")
        start = self.pos
        arguments, steps = self.arguments(_parameters(tool))
        placed = [step for step in steps if step.rule == "read.positional"]
        if placed and not _is_signature(tool, len(placed)):
            message = "the order of the schema's parameters does not say which one this is"
            raise NoLiteral("decode.pythonic", message, start)
        self.places[""] = (start, self.pos)
        self.pos += 1

        return self.decoded(name, arguments, span, first_edit, tuple(steps))

    def arguments(self, parameters: list[str]) -> tuple[dict[str, Value], list[Step]]:
        # parameters: positional arguments are named by the schema, in its own order
        arguments: dict[str, Value] = {}
        steps: list[Step] = []
        while self.skip() != ")":
            key = self.keyword()
            named = key is not None
            if key is None:
                if len(arguments) >= len(parameters):
                    raise self.fail("a positional argument, and no schema that says which it is")
                key = parameters[len(arguments)]
                steps.append(Step("read", "read.positional", "", None, len(arguments), key))
            if key in arguments:
                message = f"the argument {key!r} appears twice"
                raise Refusal("decode.duplicate-key", message, self.pos)

            edits = len(self.edits)
            arguments[key] = self.value("/" + escape_token(key), 1)
            if not named and any(e.rule == "pythonic.bare-word" for e in self.edits[edits:]):
                raise self.fail("words without quotes, and no parameter that they are said to be")
            self.comma(")")

        if len(steps) == len(arguments) == 1:
            return self.unfolded(arguments, steps, parameters)
        return arguments, steps

    def unfolded(
        self, arguments: dict[str, Value], steps: list[Step], parameters: list[str]
    ) -> tuple[dict[str, Value], list[Step]]:
        # One positional argument under the name of the first parameter. If that parameter takes an
        # object, the dict may be meant as its value; if it takes none, the dict is no value of it,
        # whatever its keys are.
        ((name, value),) = arguments.items()
        member = self.view.child(name) if self.view is not None else None
        if not isinstance(value, dict) or not value:
            return arguments, steps
        takes_object = member is None or member.allows("object") or bool(member.any_of)
        known = value.keys() <= set(parameters)
        if takes_object and (not known or (member is not None and name not in value)):
            return arguments, steps

        prefix = "/" + escape_token(name)
        self.places = {
            path.removeprefix(prefix): place
            for path, place in self.places.items()
            if path.startswith(prefix + "/")
        }
        return value, [Step("read", "read.dict-argument", "", None, name, value)]

    def keyword(self) -> str | None:
        match = _KEYWORD.match(self.text, self.pos)
        if not match:
            return None
        if "\\" in match[0] and not self.repair:
            raise self.fail("a backslash in a name")
        self.pos = match.end()
        self.expect("=")
        return self.unescaped(match)


def _is_signature(tool: ToolSpec | None, count: int) -> bool:
    # in which no parameter that is required comes after one that is not
    schema = tool.schema if tool else None
    required = schema.get("required") if isinstance(schema, dict) else None
    if not isinstance(required, list):
        return True
    kinds = [name in required for name in _parameters(tool)]
    return not any(not kind and any(kinds[i:]) for i, kind in enumerate(kinds[:count]))


def _parameters(tool: ToolSpec | None) -> list[str]:
    schema = tool.schema if tool else None
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return list(properties) if isinstance(properties, dict) else []


def _end(text: str, at: int) -> int:
    # -1 if that is not sure
    level = 0
    while (piece := _PIECE.match(text, at)) is not None:
        at = piece.end()
        level += bool(piece["open"]) - bool(piece["close"])
        if level <= 0 and piece["close"]:
            return at
    return -1


def late_end(text: str, pos: int, *, inside: bool = False) -> list[int] | None:
    """Return where quotes are in a string that goes on after `pos`; the last one ends it.

    pos: after a quote that ends the string as Python reads it. None where that is its end, as far
    as can be told: what follows it at once is no part of a word. A string goes on up to the
    first quote of its kind after which a value may end. Where it would take in another argument
    it does not go on.
    """
    if not _PASTED.match(text, pos) or _NAMED.search(text, max(0, pos - 12), pos - 1):
        return None
    if inside and _SEPARATED.search(text, max(0, pos - 12), pos - 1):
        return None
    quote = text[pos - 1]
    places: list[int] = []
    end = text.find(quote, pos)
    while end >= 0 and len(places) < _MOST_INNER:
        if text[end - 1] != "\\":
            if _NAMED.search(text, max(0, end - 12), end):
                return None
            places.append(end)
            if _BEHIND.match(text, end + 1):
                # One quote more after an empty string: its first quote was doubled.
                is_doubled = pos > 1 and text[pos - 2] == quote and len(places) == 1
                return None if is_doubled else places
        end = text.find(quote, end + 1)
    return None


def unescape_python(text: str) -> str:
    r"""Return the text between a literal's quotes, decoded once.

    An unknown escape keeps its backslash, as Python reads it. A surrogate pair written as two
    escapes is one character, as in JSON. Raises ValueError for a broken escape.

    >>> unescape_python(r"C:\dir\x41\N{BULLET}")
    'C:\\dirA•'
    """
    if "\\" not in text:
        return text

    value = _ESCAPE.sub(_decode, text)
    # Two escapes may have made a pair; UTF-16 joins it and passes a lone half on.
    if _PAIR.search(value):
        value = value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return value


def _decode(match: re.Match[str]) -> str:
    # "line" is a line break that is escaped, and so nothing
    kind = str(match.lastgroup)
    text = str(match[kind])
    if kind == "line":
        return ""
    if kind == "one":
        return _ONE.get(text, text)
    if kind == "octal":
        return chr(int(text, 8))
    if kind == "name":
        try:
            return unicodedata.lookup(text)
        except KeyError:
            raise ValueError(f"no character is named {text!r}") from None

    if kind == "bad":
        raise ValueError(f"a broken escape \\{text}")
    code = int(text, 16)
    if code > 0x10FFFF:
        raise ValueError(f"no such character: {text}")
    return chr(code)
