"""Family: calls as a word and an object with bare keys, `call:f{a:<|"|>x<|"|>,b:3}`.

Nothing is evaluated.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..arguments.rjson.strict import Refusal, read_if_strict
from ..arguments.schema.view import View, view_of
from ..core.errors import UnwritableCall
from ..core.toolspec import ToolSpec
from ..core.types import Edit, Span
from ..core.values import Value, escape_token, number, read_strict, write_canonical
from .base import (
    NEED_MORE,
    Answer,
    Codec,
    DecodeContext,
    Decoded,
    Envelope,
    Fit,
    Opening,
    Protocol,
    Signs,
    Tools,
    make_opening,
)
from .json.call import json_calls
from .prompt.type_rules import JSON_TYPE_RULES
from .python.reader import LiteralReader
from .scan import SPACE, QuotedBody, Scanner, ends_inside, skip_space

# How it works
#
# A reader by recursive descent, as that of Python calls: `pos` only moves forward, `places` and
# `edits` fill on the way, and the first thing that is not understood raises a `Refusal`.
#
# What is repaired: texts in ordinary quotes or without any, keys in quotes, `=` for `:`, a comma
# that is missing after a text, a fraction without digits, the last quote of a call. A text
# without quotes is one only where the schema has a place for it.
#
# Cost: linear; depth is bounded.


HEAD = "call:"  # what every call of the family begins with
TAG = "<call>"  # what models write for it where they know the delimiters as tags

CALL = re.compile(
    rf"(?P<head>{HEAD}|{TAG})[ \t]{{0,8}}+(?P<name>[\w.:/-]{{1,128}}+)\s{{0,8}}+(?P<open>[{{(])"
)
# After the opener the word may be missing, and so may the object of a call without arguments.
CALL_IN_BLOCK = re.compile(
    rf"(?P<head>{HEAD}|{TAG}|:)?+[ \t]{{0,8}}+(?P<name>[\w.:/-]{{1,128}}+)\s{{0,8}}+"
    r"(?P<open>[{(]|\Z)"
)
CALL_SO_FAR = re.compile(rf"(?:{HEAD}|{TAG})[ \t]{{0,8}}+(?:[\w.:/-]{{1,128}}+\s{{0,8}}+)?\Z")
# What is before a name where a model calls through the module of its tools.
MODULES = ("default_api.", "default_api:", "functions.", "tools.")


@dataclass(frozen=True, slots=True)
class BareForm:
    """opener, closer: around a call. quote: around a text, without any escape inside.

    ends: special tokens that end an answer, before which a call that is not closed ends.
    """

    opener: str
    closer: str
    quote: str
    ends: tuple[str, ...] = ()


_KEY = re.compile(
    r"[^\s:={}()\[\],<>\"'|](?:[^:={}()\[\],<>\"'|\r\n]{0,127}[^\s:={}()\[\],<>\"'|])?"
)
_MEMBER = re.compile(rf"{_KEY.pattern}:")
_OPEN_FRACTION = re.compile(r"-?(?:0|[1-9][0-9]*+)\.(?=\s*[,}\])])")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?=\s*(?:[,}\])]|\Z))")
_WORD = re.compile(r"(?:true|false|null)(?=\s*(?:[,}\])]|\Z))")
_WORDS = {"true": True, "false": False, "null": None}
# Templates write a value by Python's own words where they have no notation for it.
_PYTHON_WORD = re.compile(r"(?:True|False|None)(?=\s*(?:[,}\])]|\Z))")
_PYTHON_WORDS = {"True": "true", "False": "false", "None": "null"}
_KINDS = {"true": "boolean", "false": "boolean", "null": "null"}
_QUOTED = re.compile(r"\"(?:[^\"\\]|\\.)*+\"|'(?:[^'\\]|\\.)*+'", re.DOTALL)
_BARE = re.compile(r"[^\s,{}()\[\]<>\"'|][^,{}()\[\]<>|\r\n]{0,512}")
_OPEN_TEXT = re.compile(r"[^{}()\[\]<>\r\n]{1,512}(?=\}\s*\Z)")
_NEXT_MEMBER = re.compile(rf",\s{{0,64}}{_KEY.pattern}[:=]")
_BRACKETS = {"{": "}", "(": ")"}


class BareReader(LiteralReader):
    """Reads calls with bare keys."""

    code = "decode.bare"
    space = SPACE
    modules = MODULES

    def __init__(self, text: str, form: BareForm, context: DecodeContext) -> None:
        super().__init__(text, context)
        self.form = form

    def fix(self, start: int, end: int, text: str, rule: str) -> None:
        if not self.repair:
            message = f"not as the format writes it: {self.text[start:end][:40]!r}"
            raise Refusal("decode.bare", message, start)
        self.edits.append(Edit(Span(start, end), text, rule))

    def calls(self) -> tuple[Decoded, ...]:
        calls: list[Decoded] = []
        while self.skip():
            calls.append(self.call(alone=not calls))
            if self.skip() in (",", ";"):
                self.pos += 1
        if not calls:
            raise Refusal("decode.empty", "there is no call between opener and closer", 0)
        return tuple(calls)

    def call(self, *, alone: bool) -> Decoded:
        # alone: no call is before it in the body
        first = len(self.edits)
        if self.text.startswith(":", self.pos) and CALL.match(self.text, self.pos + 1):
            self.fix(self.pos, self.pos + 1, "", "barekey.colon")
            self.pos += 1
        match = CALL.match(self.text, self.pos)
        if match is None:
            match = CALL_IN_BLOCK.match(self.text, self.pos)
            # A call that is not written in full has to name a tool on offer.
            whole = match is not None and (self.context.closed or match["open"])
            if match is None or not whole or self.offered(match["name"]) not in self.context.tools:
                raise self.fail("expected call:name{")
        if match["head"] != HEAD:
            at = match.start("head") if match["head"] else match.start("name")
            rule = {TAG: "barekey.tag", ":": "barekey.colon"}.get(match["head"], "barekey.head")
            self.fix(at, match.end("head") if match["head"] else at, HEAD, rule)
        self.places = {}
        name = self.offered(match["name"])
        tool = self.context.tools.get(name)
        view = view_of(tool.schema_json) if tool is not None else None

        self.pos = match.end()
        opened = match.start("open")
        arguments: dict[str, Value] = {}
        if match["open"]:
            if match["open"] == "(":
                self.fix(opened, self.pos, "{", "barekey.parentheses")
            arguments = self.members(_BRACKETS[match["open"]], "", view, 1)
            if match["open"] == "(":
                self.fix(self.pos - 1, self.pos, "}", "barekey.parentheses")
        elif match["head"] or alone:
            self.fix(opened, opened, "{}", "barekey.no-object")
        else:
            raise self.fail("a word after a call")
        self.places[""] = (opened, self.pos)

        end = match.end("name")
        return self.decoded(name, arguments, Span(end - len(name), end), first)

    def members(self, closer: str, path: str, view: View | None, depth: int) -> dict[str, Value]:
        # view: the schema of the object
        values: dict[str, Value] = {}
        while self.skip() != closer:
            key = self.key()
            if key in values:
                raise Refusal("decode.duplicate-key", f"the key {key!r} appears twice", self.pos)
            mark = self.skip()
            if mark not in (":", "="):
                raise self.fail(f"expected ':', got {mark!r}" if mark else "the text ends in a key")
            if mark == "=":
                self.fix(self.pos, self.pos + 1, ":", "barekey.equals")
            self.pos += 1
            child = view.child(key) if view is not None else None
            values[key] = self.value(f"{path}/{escape_token(key)}", child, depth)
            self.comma(closer)
        self.pos += 1
        return values

    def key(self) -> str:
        start = self.pos
        quote = self.form.quote
        if self.text.startswith(quote, start):
            key = self.delimited("")
        elif (match := _QUOTED.match(self.text, start)) is not None:
            key = match[0][1:-1]
            self.pos = match.end()
        else:
            match = _KEY.match(self.text, start)
            if match is None:
                raise self.fail("expected a key")
            self.pos = match.end()
            return match[0]
        if not _KEY.fullmatch(key):
            raise Refusal("decode.bare", "a key that cannot stand without quotes", start)
        self.fix(start, self.pos, key, "barekey.quoted-key")
        return key

    def comma(self, closer: str) -> None:
        # After a text the comma may be missing: the quote says where it ends.
        end = self.pos
        char = self.skip()
        if char == ",":
            self.pos += 1
        elif not char:
            raise self.fail("the text ends inside a call")
        elif self.text.endswith(self.form.quote, 0, end) and _MEMBER.match(self.text, self.pos):
            self.fix(end, end, ",", "barekey.comma")
        elif char != closer:
            raise self.fail(f"expected a comma or {closer!r}, got {char!r}")

    def value(self, path: str, view: View | None, depth: int) -> Value:
        if depth > self.max_depth:
            raise Refusal("decode.too-deep", f"nested deeper than {self.max_depth}", self.pos)
        char = self.skip()
        start = self.pos
        if self.text.startswith(self.form.quote, start):
            return self.delimited(path)
        if char in ("'", '"'):
            return self.quoted(path)

        value: Value
        if char == "{":
            self.pos += 1
            value = self.members("}", path, view, depth + 1)
        elif char == "[":
            value = self.items(path, view, depth)
        else:
            value = self.scalar(view)
        self.places[path] = (start, self.pos)
        return value

    def items(self, path: str, view: View | None, depth: int) -> list[Value]:
        self.pos += 1
        values: list[Value] = []
        item = view.item(0) if view is not None else None
        while self.skip() != "]":
            values.append(self.value(f"{path}/{len(values)}", item, depth + 1))
            self.comma("]")
        self.pos += 1
        return values

    def scalar(self, view: View | None) -> Value:
        start = self.pos
        takes_text = view is not None and "string" in (view.types or ())
        match = _NUMBER.match(self.text, start)
        text_alone = view is not None and tuple(view.types or ()) == ("string",)
        if match is not None and not (self.repair and text_alone):
            self.pos = match.end()
            return self.number(match[0], start)
        match = _OPEN_FRACTION.match(self.text, start)
        if match is not None and not takes_text:
            self.pos = match.end()
            self.fix(self.pos, self.pos, "0", "barekey.fraction")
            return number(match[0] + "0")
        match = _WORD.match(self.text, start)
        if match is not None:
            self.pos = match.end()
            return _WORDS[match[0]]

        match = _PYTHON_WORD.match(self.text, start)
        if match is not None:
            word = _PYTHON_WORDS[match[0]]
            # Where the schema takes texts and no such value, it is a text without its quotes.
            if not takes_text or view is None or view.allows(_KINDS[word]):
                self.pos = match.end()
                self.fix(start, self.pos, word, "rjson.python-literal")
                return _WORDS[word]

        match = _BARE.match(self.text, start)
        if match is None or not takes_text or match.end() >= len(self.text):
            raise self.fail("expected a value")
        text = match[0].rstrip()
        self.pos = start + len(text)
        quote = self.form.quote
        self.fix(start, self.pos, f"{quote}{text}{quote}", "barekey.text")
        return text

    def delimited(self, path: str) -> str:
        # without any escapes
        start = self.pos + len(self.form.quote)
        end = self.text.find(self.form.quote, start)
        if end < 0:
            end = self.open_end(start, path)
            self.fix(end, end, self.form.quote, "barekey.open-text")
            self.pos = end
        else:
            self.pos = end + len(self.form.quote)
        if path:
            self.places[path] = (start, end)
        return self.text[start:end]

    def open_end(self, start: int, path: str) -> int:
        # The brace of the call ends it, in a whole body. A text with brackets, or with what may be
        # the next member, may end at several places.
        match = _OPEN_TEXT.match(self.text, start)
        whole = self.context.closed and path.count("/") == 1
        if match is None or not whole or _NEXT_MEMBER.search(match[0]):
            raise Refusal("decode.truncated-value", "a text is not closed", self.pos)
        return match.end()

    def quoted(self, path: str) -> str:
        start = self.pos
        match = _QUOTED.match(self.text, start)
        if match is None:
            raise Refusal("decode.truncated-value", "a text is not closed", start)
        values = read_if_strict(match[0], 1) if match[0][0] == '"' else None
        text = values[0] if values and isinstance(values[0], str) else match[0][1:-1]
        quote = self.form.quote
        if quote in text:
            raise Refusal("decode.bare", "a text holds the quotes of the format", start)
        self.pos = match.end()
        self.places[path] = (start + 1, match.end() - 1)
        # Some end a text that began with ordinary quotes in those of the format as well.
        if self.text.startswith(quote, self.pos):
            self.pos += len(quote)
        self.fix(start, self.pos, f"{quote}{text}{quote}", "barekey.quotes")
        return text


_BARE_KEY = re.compile(r"[\w$-](?:[\w .$/-]{0,126}[\w$-])?")
_NAME = re.compile(r"[\w./-]{1,128}")
_LONE = Opening(0, lone=True)  # of a call that lost its opener


@dataclass(frozen=True, slots=True)
class BareCalls(Envelope):
    """Envelope: a call between special tokens, or without them where it names a known tool."""

    form: BareForm

    @property
    def restarts(self) -> tuple[str, ...]:
        # the word alone is in every body
        return (self.form.opener,)

    @property
    def closers(self) -> tuple[str, ...]:
        return (self.form.closer,)

    heads_are_fixed = True

    def heads(self, tools: Tools) -> tuple[str, ...]:
        return (self.form.opener, HEAD, TAG)

    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Answer:
        opener = self.form.opener
        if text.startswith(opener, pos):
            return make_opening(len(opener))
        match = CALL.match(text, pos)
        if match is None:
            return NEED_MORE if not final and CALL_SO_FAR.match(text, pos) else None
        names = {match["name"], *(match["name"].removeprefix(module) for module in MODULES)}
        return _LONE if not names.isdisjoint(tools) else None

    def scanner(self, opening: Opening, tools: Tools) -> Scanner:
        return self._body(lone=opening.end == 0)

    def _body(self, *, lone: bool = False) -> QuotedBody:
        form = self.form
        stops = (form.opener, *form.ends)
        return QuotedBody((form.closer,), stops, (form.quote,), escapes=False, lone=lone)

    def in_value(self, opening: Opening, text: str, tools: Tools) -> bool:
        scan = self._body()
        scan.scan(text, True)
        return scan.in_string != "" or any(bracket in text for bracket in "{(")

    def closer_of(self, opening: Opening) -> str | None:
        # a call that lost its opener may end without it
        return self.form.closer if opening.end else None

    def suits(self, opening: Opening, text: str, at: int, final: bool, tools: Tools) -> Fit:
        at = skip_space(text, at)
        at += text.startswith(":", at)
        if text.startswith((HEAD, TAG), at):
            return True
        return NEED_MORE if not final and ends_inside(text, at, (HEAD, TAG)) else False


@dataclass(frozen=True, slots=True)
class BareCodec(Codec):
    """Codec of `call:f{a:…}` between the tokens of a form."""

    form: BareForm

    def read(self, body: str, context: DecodeContext) -> tuple[Decoded, ...]:
        # one that begins as JSON does is read as JSON
        if body.lstrip()[:1] in ("{", "["):
            return json_calls(self.form.opener, self.form.closer, body, context)
        return BareReader(body, self.form, context).calls()

    def write(self, name: str, arguments_json: str, tool: ToolSpec | None) -> str:
        # Names and keys that need quotes, and texts that contain them, have no notation.
        arguments = read_strict(arguments_json)
        if not isinstance(arguments, dict) or not _NAME.fullmatch(name):
            raise UnwritableCall("a call of a name and an object", got=name)
        form = self.form
        inner = f"{HEAD}{name}{self._written(arguments)}"
        if not self.says(inner, arguments):
            raise UnwritableCall("a value that cannot be told from the notation", got=name)
        return f"{form.opener}{inner}{form.closer}"

    def _written(self, value: Value, depth: int = 0) -> str:
        if depth > 150:
            raise UnwritableCall("nested too deep for this notation")
        if isinstance(value, str):
            return f"{self.form.quote}{value}{self.form.quote}"
        if isinstance(value, dict):
            for key in value:
                if not _BARE_KEY.fullmatch(key):
                    raise UnwritableCall("a key that cannot stand without quotes", got=key)
            members = (f"{key}:{self._written(v, depth + 1)}" for key, v in value.items())
            return "{" + ",".join(members) + "}"
        if isinstance(value, list):
            return "[" + ",".join(self._written(item, depth + 1) for item in value) + "]"
        return write_canonical(value)

    between = ""


def bare_protocol(id: str, form: BareForm) -> Protocol:
    return Protocol(
        id=id,
        title=f"call:name and an object with bare keys, texts between {form.quote}",
        envelope=BareCalls(form),
        codec=BareCodec(form),
        tags=frozenset(("delimited",)),
        type_rules=JSON_TYPE_RULES,
        signs=Signs(openers=(re.escape(form.opener),)),
    )


GEMMA4 = bare_protocol("gemma4", BareForm("<|tool_call>", "<tool_call|>", '<|"|>', ("<turn|>",)))

PROTOCOLS: tuple[Protocol, ...] = (
    bare_protocol(
        "functiongemma",
        BareForm("<start_function_call>", "<end_function_call>", "<escape>", ("<end_of_turn>",)),
    ),
)
