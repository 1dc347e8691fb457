"""`gemma4` and similar: a word, a name, and an object with bare keys."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ...arguments.rjson.damage import Refusal
from ...core.errors import UnwritableCall
from ...core.toolspec import ToolSpec
from ...core.values import Value, read_strict, same, write_canonical
from ..base import (
    NEED_MORE,
    Codec,
    Decoded,
    Envelope,
    NeedMore,
    Opening,
    Protocol,
    Reading,
    Signs,
    Tools,
    make_opening,
)
from ..json.call import json_calls
from ..prompt.type_rules import JSON_TYPE_RULES
from ..scan import QuotedBody, Scanner
from .reader import CALL, CALL_SO_FAR, HEAD, MODULES, TAG, BareForm, BareReader

_BARE_KEY = re.compile(r"[\w$-](?:[\w .$/-]{0,126}[\w$-])?")
_NAME = re.compile(r"[\w./-]{1,128}")
_LONE = Opening(0, lone=True)  # of a call that lost its opener


@dataclass(frozen=True, slots=True)
class BareCalls(Envelope):
    """Envelope: a call between special tokens.

    Without them where its name is a known tool's.
    """

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

    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Opening | NeedMore | None:
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

    def suits(
        self, opening: Opening, text: str, at: int, final: bool, tools: Tools
    ) -> bool | NeedMore | None:
        while at < len(text) and text[at].isspace():
            at += 1
        at += text.startswith(":", at)
        if text.startswith((HEAD, TAG), at):
            return True
        rest = text[at : at + len(TAG)]
        return NEED_MORE if not final and any(h.startswith(rest) for h in (HEAD, TAG)) else False


@dataclass(frozen=True, slots=True)
class BareCodec(Codec):
    """Codec of `call:f{a:…}` between the tokens of a form."""

    form: BareForm

    def read(self, body: str, reading: Reading) -> tuple[Decoded, ...]:
        # one that begins as JSON does is read as JSON
        if body.lstrip()[:1] in ("{", "["):
            return json_calls(self.form.opener, self.form.closer, body, reading)
        return BareReader(body, self.form, reading).calls()

    def write(self, name: str, arguments_json: str, tool: ToolSpec | None) -> str:
        # Names and keys that need quotes, and texts that contain them, have no notation.
        arguments = read_strict(arguments_json)
        if not isinstance(arguments, dict) or not _NAME.fullmatch(name):
            raise UnwritableCall("a call of a name and an object", got=name)
        form = self.form
        inner = f"{HEAD}{name}{self._written(arguments)}"
        try:
            calls = self.read(inner, Reading(Opening(1), True, False, 200, {}))
        except Refusal:
            calls = ()
        if len(calls) != 1 or not same(calls[0].arguments, arguments):
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

    def join(self, calls: Sequence[str]) -> str:
        return "".join(calls)


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
