"""A tag that names the function, in it one tag a parameter with raw text: `qwen3_coder_xml` and its kin.

The formats are rows of constants (`TagForm`). What is missing or spelt otherwise is an edit; what cannot be read
without inventing is refused, function by function, so that one bad call of a block leaves the others alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from ..errors import UnwritableCall
from ..rjson.damage import Refusal
from ..rjson.positions import apply_edits
from ..scan import Scanner
from ..toolspec import ToolSpec
from ..types import Step
from ..values import Value, read_strict, same, write_canonical
from .base import NEED_MORE, Decoded, NeedMore, Opening, Protocol, Reading, Tools
from .json_call import JsonCall
from .parameter_form import TagForm, bare_head, function_group, names_function, tag_pattern
from .parameter_reader import FunctionReader
from .parameter_scan import ParameterScan
from .parameter_strict import read_functions
from .results import Between, TextResult

_RESPONSE = ("<tool_response>", "</tool_response>")
_LOOK = 256  # white space behind an opener that is looked past


@lru_cache(maxsize=64)
def _head_patterns(form: TagForm) -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """What follows a function's tag in a call; what may become that; how a block begins that holds functions."""
    functions, parameters = "|".join(form.functions), "|".join(form.parameters)
    flags = re.IGNORECASE | re.ASCII
    return (
        re.compile(rf"\s{{0,{_LOOK}}}(?:\{{|<(?:{parameters})[\s=>]|</[ \t]{{0,8}}(?:{functions})[ \t>])", flags),
        re.compile(rf"\s{{0,{_LOOK}}}(?:</?[ \t]{{0,8}}[a-z_]{{0,16}})?\Z", flags),
        re.compile(rf"<(?:{functions})[\s=>]", flags),
    )


@dataclass(frozen=True)
class ParameterTags:
    """Envelope: blocks of functions; and functions without a block where what follows their tag looks like a call.

    `restarts` is empty: its scanner finds by itself where a body was given up and begun anew.
    """

    form: TagForm
    restarts: tuple[str, ...] = ()

    @cached_property
    def closers(self) -> tuple[str, ...]:
        return (self.form.closer,) if self.form.closer else ()

    @cached_property
    def _heads(self) -> tuple[str, ...]:
        words = [w for word in self.form.functions for w in (word, word.capitalize(), word.upper())]
        opener = (self.form.opener,) if self.form.opener else ()
        return (*opener, *("<" + w for w in words))

    def heads(self, tools: Tools) -> tuple[str, ...]:
        return self._heads

    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Opening | NeedMore | None:
        opener = self.form.opener
        if opener and text.startswith(opener, pos):
            return Opening(len(opener))
        if not final and opener and opener.startswith(text[pos : pos + len(opener)]):
            return NEED_MORE
        m = tag_pattern(self.form).match(text, pos)
        if m is None or (m["cut"] is not None and final):
            return None
        if m["cut"] is not None:
            return NEED_MORE
        name = m[function_group(m)]
        own = m["f"] is not None and m[0] == self.form.tag(self.form.function, name)
        # Without its block a call is only believed in the format's own spelling, or if the tool is known.
        if m["f"] is None or not (own or name in tools):
            return None
        body, partial, _ = _head_patterns(self.form)
        if body.match(text, m.end()):
            return Opening(0)
        return NEED_MORE if not final and partial.match(text, m.end()) else None

    def suits(self, opening: Opening, text: str, at: int, final: bool, tools: Tools) -> bool | NeedMore:
        """Where another format has the same opener: the block begins with a function's tag, or what stands for one."""
        while at < len(text) and text[at].isspace():
            at += 1
        if _head_patterns(self.form)[2].match(text, at):
            return True
        bare, partial = bare_head(self.form)
        m = bare.match(text, at)
        if m is not None and names_function(m, tools):
            return True
        if m is None and not final and partial.match(text, at):
            return NEED_MORE
        rest = text[at : at + 12].lower()
        undecided = not rest or any(f"<{w}".startswith(rest) for w in self.form.functions)
        undecided = undecided or any(rest == f"<{w}" for w in self.form.functions)
        return NEED_MORE if undecided and not final else False

    def scanner(self, opening: Opening, tools: Tools) -> Scanner:
        return ParameterScan(self.form, tools, wrapped=opening.end > 0)

    def speculates(self, text: str) -> Opening | NeedMore | None:
        return None


@dataclass(frozen=True, slots=True)
class ParameterCall:
    """Codec of the whole family. A body is one or several functions, their own tags included."""

    form: TagForm

    def strict(self, body: str, reading: Reading) -> bool:
        try:
            found = self.read(body, replace(reading, closed=True, repair=False))
        except Refusal:
            return False
        return all(d.readable for d in found)

    def read(self, body: str, reading: Reading) -> tuple[Decoded, ...]:
        return read_functions(self.form, body) or self._damaged(body, reading)

    def _damaged(self, body: str, reading: Reading) -> tuple[Decoded, ...]:
        if body.lstrip()[:1] in ("{", "["):
            return self._json(body, reading)
        scan = ParameterScan(self.form, reading.tools, wrapped=True, whole=True)
        scan.scan(body, True)
        starts = [i for i, mark in enumerate(scan.marks) if mark.kind == "function"]
        if not starts:
            if "{" in body and reading.repair:
                return self._json(body, reading)
            code = "decode.tags" if body.strip() else "decode.empty"
            raise Refusal(code, "there is no function between opener and closer", 0)
        found: list[Decoded] = []
        functions: list[FunctionReader] = []
        for i, start in enumerate(starts):
            stop = starts[i + 1] if i + 1 < len(starts) else len(scan.marks)
            one = FunctionReader(self.form, body, reading, scan, start, stop, last=stop == len(scan.marks))
            functions.append(one)
            try:
                found.append(one.read())
            except Refusal as no:
                found.append(one.unread(no))
        if any(d.edits for d in found) and not self._proven(body, reading, found):
            other = Refusal("decode.ambiguous", "repaired, it would read as something else", 0)
            return tuple(one.unread(other) if d.edits else d for one, d in zip(functions, found, strict=True))
        return tuple(found)

    def _proven(self, body: str, reading: Reading, found: list[Decoded]) -> bool:
        """Whether the edited body reads strictly to the same: a tag that is spelt right can make others count."""
        edited = apply_edits(body, [e for d in found for e in d.edits])
        again = self.read(edited, replace(reading, closed=True, repair=False))
        return len(again) == len(found) and all(
            new.readable and new.name == old.name and same(new.arguments, old.arguments)
            for old, new in zip(found, again, strict=True)
            if old.readable
        )

    def _json(self, body: str, reading: Reading) -> tuple[Decoded, ...]:
        """The block holds JSON, as other formats write it."""
        step = Step("read", "read.json-body", "", None, None, None)
        calls = JsonCall(self.form.opener, self.form.closer).read(body, reading)
        return tuple(replace(d, steps=(replace(step, after=d.arguments), *d.steps)) for d in calls)

    def write(self, name: str, arguments_json: str, tool: ToolSpec | None) -> str:
        arguments = read_strict(arguments_json)
        if not isinstance(arguments, dict):
            raise UnwritableCall("arguments are written as tags, so they must be an object", got=arguments_json)
        tools = {tool.name: tool} if tool is not None else {}
        texts = {key: _text_of(value) for key, value in arguments.items()}
        quoting = any(_holds_call(self.form, t) for t in texts.values())
        for escape in (True,) if quoting else (False, True):
            text = self._written(name, texts, escape)
            inner = text[len(self.form.opener) : len(text) - len(self.form.closer)]
            try:
                read = self.read(inner, Reading(Opening(1), True, False, 1000, tools))
            except Refusal:
                continue
            if len(read) == 1 and read[0].readable and same(read[0].arguments, texts):
                break
        return text

    def _written(self, name: str, texts: dict[str, str], escape: bool) -> str:
        """`escape`: tags of the format and `<value>` inside values are escaped as well."""
        form = self.form
        line = "\n" if form.lines else ""
        edge = "\n" if form.trim and form.lines else ""
        out = [form.opener, line if form.opener else "", form.tag(form.function, name), line]
        for key, value in texts.items():
            text = _NEEDS_AMP.sub("&amp;", value)
            if escape:
                text = tag_pattern(form).sub(lambda m: "&lt;" + m[0][1:], text).replace("<value>", "&lt;value>")
            out += [form.tag(form.parameter, key), edge, text, edge, f"</{form.parameter}>", line]
        out += [f"</{form.function}>", line if form.closer else "", form.closer]
        return "".join(out)


_NEEDS_AMP = re.compile(r"&(?=#[0-9]{1,8};|#[xX][0-9a-fA-F]{1,6};|(?:lt|gt|amp|quot|apos);)")


def _holds_call(form: TagForm, text: str) -> bool:
    """Whether a value quotes a call of whatever tool: a reader that knows the tool would look for its end."""
    tags = (m for m in tag_pattern(form).finditer(text) if m["f"] or m["opener"])
    return any(text[m.end() :].lstrip()[:1] in ("<", "{") for m in tags)


def _text_of(value: Value) -> str:
    return value if isinstance(value, str) else write_canonical(value)


def _protocol(form: TagForm, id: str, title: str, aliases: tuple[str, ...] = ()) -> Protocol:
    return Protocol(
        id=id, aliases=aliases, title=title, envelope=ParameterTags(form), codec=ParameterCall(form),
        tags=frozenset(("delimited", "schema-typed")),
        results=TextResult(Between(*_RESPONSE), _RESPONSE),
    )  # fmt: skip


QWEN3_CODER_XML = _protocol(
    TagForm(), "qwen3_coder_xml", "<function=…> and <parameter=…> in <tool_call>", ("qwen3coder", "qwen3_xml")
)
