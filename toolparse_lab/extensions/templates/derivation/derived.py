"""A protocol from the constants that a derivation found, family by family.

The constants are JSON, so that a run can record them and make the protocol again. Envelope and
codec of a family stay as they are, in others that add tokens around calls and own reasoning tags.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from ....core.toolspec import ToolSpec
from ....core.types import Span
from ....core.values.printable import printable
from ....formats.bare import BareForm, bare_protocol
from ....formats.base import (
    NEED_MORE,
    Answer,
    Codec,
    DecodeContext,
    Decoded,
    Envelope,
    Fit,
    NeedMore,
    Opening,
    Protocol,
    Signs,
    Tools,
    make_opening,
)
from ....formats.json.call import JsonCall
from ....formats.json.forms import NamedJson
from ....formats.json.header import Frame, Header
from ....formats.json.mix import FAILURE, FramedGrammar, JsonGrammar
from ....formats.json.openers import JsonHeaders
from ....formats.json.scan import JsonTags
from ....formats.parameters.form import TagForm
from ....formats.parameters.slots import SlotForm
from ....formats.parameters.tags import tag_protocol
from ....formats.python.call import PythonCalls
from ....formats.python.rows import between, python_row
from ....formats.reasoning import is_pair
from ....formats.registry import protocol_of
from ....formats.results import Between, TextResult
from ....formats.scan import LiteralBody, Scanner, ends_inside, with_or_without_space
from .account import Derivation


@dataclass(frozen=True, slots=True)
class SurroundedCalls(Envelope):
    """Envelope of a family, with tokens that are markup and tags that enclose reasoning.

    markup: literals that are neither text nor calls. thought: opener and closer of reasoning, two
    empty texts for none but those that every format has. lost: templates of headers, as in
    `json/header.py`, of calls that lost their opener, or whose special tokens were stripped. They
    open a call where they name a tool on offer and JSON follows. whole: the text that such a header
    matches is the beginning of the body itself.
    """

    inner: Envelope
    markup: tuple[str, ...] = ()
    thought: tuple[str, str] = ("", "")
    lost: tuple[str, ...] = ()
    whole: bool = False

    @property
    def closers(self) -> tuple[str, ...]:
        return self.inner.closers

    def closers_in_text(self, tools: Tools) -> tuple[str, ...]:
        return self.inner.closers_in_text(tools)

    @property
    def restarts(self) -> tuple[str, ...] | None:
        return self.inner.restarts

    @property
    def heads_are_fixed(self) -> bool:
        return self.inner.heads_are_fixed

    def heads(self, tools: Tools) -> tuple[str, ...]:
        lost = [Header.of(template).head for template in self.lost if _has_token(template)]
        return tuple(dict.fromkeys((*self._tokens, *self.inner.heads(tools), *lost)))

    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Answer:
        # A longer head of the family may begin like a token.
        opening = self.inner.open(text, pos, final, tools)
        if opening is not None:
            return opening
        for token in self._tokens:
            if text.startswith(token, pos):
                return make_opening(
                    len(token), "reasoning" if token == self.thought[0] else "markup"
                )
            # The rest of a longer token may still come, whatever shorter one is there already.
            if not final and ends_inside(text, pos, (token,)):
                return NEED_MORE
        return self._open_lost(text, pos, final, tools)

    def _open_lost(
        self, text: str, pos: int, final: bool, tools: Tools, *, tokens: bool = True
    ) -> Answer:
        # tokens: only headers that begin with a special token, else only the others
        waits = False
        for template in self.lost:
            if _has_token(template) != tokens:
                continue
            opening = _open_header(template, text, pos, final, tools)
            if isinstance(opening, NeedMore):
                waits = True
            elif opening is not None:
                if not self.whole:
                    return opening
                # The body is the JSON that the header's match begins or ends with.
                match = _BRACKET.search(text, pos, pos + opening.end)
                return make_opening(match.start() - pos if match else 0, speculative=True)
        return NEED_MORE if waits else None

    @property
    def _tokens(self) -> tuple[str, ...]:
        # the longest first
        tokens = {*self.markup, *self.thought} - {""}
        return tuple(sorted(tokens, key=lambda token: (-len(token), token)))

    def scanner(self, opening: Opening, tools: Tools) -> Scanner:
        if opening.kind == "reasoning" and self.thought[0]:
            return LiteralBody((self.thought[1],))
        return self.inner.scanner(opening, tools)

    def speculates(self, text: str) -> Answer:
        return self.inner.speculates(text)

    def resumes(self, text: str, tools: Tools) -> Answer:
        opening = self.inner.resumes(text, tools)
        if opening is not None:
            return opening
        # Without a token a name is an opener at the beginning of the answer alone.
        return self._open_lost(text, 0, False, tools, tokens=False)

    def closer_of(self, opening: Opening) -> str | None:
        return self.thought[1] if opening.kind == "reasoning" else self.inner.closer_of(opening)

    def in_value(self, opening: Opening, text: str, tools: Tools) -> bool:
        return self.inner.in_value(opening, text, tools)

    def opens_parameter(self, opening: Opening, inner: Opening, tools: Tools) -> bool:
        return self.inner.opens_parameter(opening, inner, tools)

    def suits(self, opening: Opening, text: str, at: int, final: bool, tools: Tools) -> Fit:
        return self.inner.suits(opening, text, at, final, tools)


# Behind a name that goes on with one of these, only the names on offer tell where it ends.
_JOINED = re.compile(r"\{name\}(?:[\w./:@+-]|\{id\}|\{any\})|\{id\}\{name\}")
_BRACKET = re.compile(r"[{\[]")
_WORD = re.compile(r"[\w-]{1,256}")
_BLANKS = re.compile(r"\s{0,64}")
_NAME = "{name}"
_LONGEST_NAME = 256


def _has_token(template: str) -> bool:
    return template.startswith("<") or (template.startswith("[") and template[1:2].isalpha())


def _open_header(template: str, text: str, pos: int, final: bool, tools: Tools) -> Answer:
    if _JOINED.search(template):
        return _open_joined(template, text, pos, final, tools)
    opening = Header.of(template).match(text, pos, final)
    if opening is None or isinstance(opening, NeedMore):
        return opening
    return _before_json(template, opening, text, pos, final) if opening.name in tools else None


def _open_joined(template: str, text: str, pos: int, final: bool, tools: Tools) -> Answer:
    # Letters follow the name, so only the names on offer tell where it ends.
    before, _, behind = template.partition(_NAME)
    if before == "{id}":
        return _open_behind_id(template, text, pos, final, tools)
    rest = text[pos : pos + len(before) + _LONGEST_NAME]
    if not rest.startswith(before):
        return NEED_MORE if not final and before.startswith(rest) else None
    waits = False
    # The longest name first: another one may begin like it.
    for name in sorted(tools, key=len, reverse=True):
        if not rest.startswith(name, len(before)):
            waits = waits or (not final and (before + name).startswith(rest))
            continue
        if waits:
            break
        at = len(before)
        opening = Header.of(before + name + behind).match(text, pos, final)
        if isinstance(opening, Opening):
            opening = replace(opening, name=name, name_span=Span(at, at + len(name)))
            return _before_json(template, opening, text, pos, final)
        if opening is not None:
            return opening
    return NEED_MORE if waits else None


def _open_behind_id(template: str, text: str, pos: int, final: bool, tools: Tools) -> Answer:
    # an id and a name with nothing between them
    word = _WORD.match(text, pos)
    if word is None:
        return None
    if word.end() >= len(text) and not final and len(word[0]) < _LONGEST_NAME:
        return NEED_MORE
    for name in sorted(tools, key=len, reverse=True):
        if word[0].endswith(name):
            end = word.end() - pos
            space = _BLANKS.match(text, word.end())
            opening = make_opening(
                end + (len(space[0]) if space else 0),
                name=name,
                name_span=Span(end - len(name), end),
                wire_id=word[0][: -len(name)] or None,
            )
            return _before_json(template, opening, text, pos, final)
    return None


def _before_json(template: str, opening: Opening, text: str, pos: int, final: bool) -> Answer:
    # One in JSON (the template ends in a quote) has it before it.
    at = pos + opening.end
    if template.endswith('"'):
        return replace(opening, speculative=True)
    if at >= len(text):
        return None if final else NEED_MORE
    return replace(opening, speculative=True) if text[at] == "{" else None


@dataclass(frozen=True, slots=True)
class SurroundedCodec(Codec):
    """Codec of a family that writes a section around calls.

    section: the text before the first call and after the last. between: the text between two
    calls.
    """

    inner: Codec
    section: tuple[str, str] = ("", "")
    between: str = "\n"

    def read(self, body: str, context: DecodeContext) -> tuple[Decoded, ...]:
        return self.inner.read(body, context)

    def leading(self, body: str, context: DecodeContext) -> tuple[Decoded, ...]:
        return self.inner.leading(body, context)

    def strict(self, body: str, context: DecodeContext) -> bool:
        return self.inner.strict(body, context)

    def write(self, name: str, arguments_json: str, tool: ToolSpec | None) -> str:
        opener, closer = self.section
        return f"{opener}{self.inner.write(name, arguments_json, tool)}{closer}"

    @property
    def edges(self) -> tuple[str, str]:
        return self.section


NAME, ARGUMENTS, TEXT, ID = "{name}", "{arguments}", "{text}", "{id}"


@dataclass(frozen=True, slots=True)
class ShapedJson(JsonCall):
    """Codec of `JsonCall` that writes a call in a shape.

    shape: the text of a call in parts, of which `{name}` stands for the name as the inside of a
    JSON string, `{arguments}` for the arguments, `{text}` for their text as a JSON string, `{id}`
    for an id.
    """

    shape: tuple[str, ...] = ()

    def write(self, name: str, arguments_json: str, tool: ToolSpec | None) -> str:
        values = {
            NAME: json.dumps(name, ensure_ascii=False)[1:-1],
            ARGUMENTS: arguments_json,
            TEXT: json.dumps(arguments_json, ensure_ascii=False),
            ID: "call00000",
        }
        body = "".join(values.get(part, part) for part in self.shape)
        return f"{self.opener}{body}{self.closer}"


_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True, repr=False)
class DerivedProtocol(Protocol):
    """A protocol derived from a model's files. derivation: what was measured."""

    derivation: Derivation | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        account = self.derivation
        words = f"derived from a {account.source}: {account.family}" if account else self.title
        return printable(f"Protocol({self.id!r}, {words})")


def derived_protocol(constants: Mapping[str, Any]) -> DerivedProtocol:
    """Return the protocol of these constants.

    constants: {body: "derived", id, family, form, section, between, markup, thought, lost, result,
    prompt}, of which only id, family and form have to be there. A form holds the fields of its
    family.
    """
    family = _FAMILIES[constants["family"]](constants["form"])
    envelope, codec = family.envelope, family.codec
    opener, closer = constants.get("thought", ("", ""))
    # Readers take these for reasoning in every format.
    thought = ("", "") if is_pair(opener, closer) else (opener, closer)
    own = {*envelope.heads({}), *envelope.closers}
    # Of two tokens at one place the longer one counts.
    others = set(constants.get("markup", ())) - own
    markup = tuple(sorted(others, key=lambda token: (-len(token), token)))
    lost = tuple(constants.get("lost", ()))
    if thought[0] or markup or lost:
        whole = constants["family"] == "json"
        envelope = SurroundedCalls(envelope, markup, thought, lost, whole)
    if "section" in constants or "between" in constants:
        section = tuple(constants.get("section", ("", "")))
        codec = SurroundedCodec(codec, section, constants.get("between", "\n"))
    results = family.results
    if "result" in constants:
        pair = tuple(constants["result"])
        results = TextResult(Between(*pair), tuple(tag for tag in pair if tag.strip()))
    parts = {part.name: getattr(family, part.name) for part in fields(Protocol)}
    parts |= {
        "id": constants["id"],
        "title": constants.get("title", ""),
        "aliases": (),
        "envelope": envelope,
        "codec": codec,
        "results": results,
        "spec": json.dumps(dict(constants), ensure_ascii=False),
    }
    return DerivedProtocol(**parts)


def _json(form: Mapping[str, Any]) -> Protocol:
    opener, closer, shape = form["opener"], form["closer"], tuple(form["shape"])
    name, arguments = form["name_key"], form["arguments_key"]
    prefix, suffix = form.get("list", ("", ""))
    is_key = bool(form.get("name_is_key", False))
    codec = ShapedJson(opener, closer, name, arguments, name_is_key=is_key, shape=shape)
    if prefix:
        inner = replace(codec, opener="", closer="")
        edges = (opener + prefix, suffix + closer)
        return replace(
            _between(opener, closer), codec=SurroundedCodec(inner, edges, form.get("between", ", "))
        )
    grammar = JsonGrammar(opener, closer, name, arguments)
    return replace(_between(opener, closer), codec=codec, grammar=grammar)


def _between(opener: str, closer: str) -> Protocol:
    head = opener.strip()
    closers = with_or_without_space(closer)
    envelope: Envelope
    if closers and not _SPACE.search(head):
        envelope = JsonTags((head,), closers)
    else:
        # A part of a role's header may be in the prompt: its last line tells enough.
        last = head.rsplit("\n", 1)[-1]
        headers = dict.fromkeys((_relaxed(head), _relaxed(last) if "<" in last else _relaxed(head)))
        envelope = JsonHeaders(tuple(headers), closers, runs=not closers, separators=",;")
    return Protocol(
        id="",
        envelope=envelope,
        codec=ShapedJson(opener, closer),
        tags=frozenset(("delimited",)),
        failure=FAILURE,
        signs=Signs(openers=(re.escape(head),)),
    )


def _relaxed(header: str) -> str:
    # white space may be missing, or more
    return _SPACE.sub("{ }", header.strip())


def _named(form: Mapping[str, Any]) -> Protocol:
    header, closer = form["header"], form["closer"]
    closers = with_or_without_space(closer)
    relaxed = _relaxed(header)
    frame = Frame(header.replace("{any}", "0"), closer)
    return Protocol(
        id="",
        envelope=JsonHeaders(
            (relaxed + "{ }",), closers, markup=tuple(form.get("markup", ())), runs=not closers
        ),
        codec=NamedJson(frame),
        tags=frozenset(("delimited",)),
        grammar=FramedGrammar(frame),
        failure=FAILURE,
        signs=Signs(openers=(re.escape(relaxed.split("{")[0]),)),
    )


def _tuples(form: Mapping[str, Any]) -> dict[str, Any]:
    return {k: tuple(v) if isinstance(v, list) else v for k, v in form.items()}


def _python(form: Mapping[str, Any]) -> Protocol:
    opener, closer = form["opener"], form["closer"]
    words = form["json_words"]
    codec = PythonCalls(opener, closer, form["listed"], form["between"], json_words=words)
    return python_row("", "", between(opener, closer), codec)


_FAMILIES: Mapping[str, Callable[[Mapping[str, Any]], Protocol]] = {
    "json": _json,
    "named": _named,
    "tags": lambda form: tag_protocol(TagForm(**_tuples(form)), ""),
    "slots": lambda form: tag_protocol(SlotForm(**_tuples(form)), ""),
    "python": _python,
    "bare": lambda form: bare_protocol("", BareForm(**form)),
    "row": lambda form: protocol_of(form["id"]),
}
FAMILIES = tuple(_FAMILIES)
"""The families of which derived protocols are, and 'row' for a shipped one."""
