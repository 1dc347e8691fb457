"""Family: XML whose parameters say their types, as the prompts of leaderboards ask for it.

`<functions><function name="f"><param name="a" type="integer">1</param></function></functions>`, the
same with the value as an attribute, and `<function_call>` with elements for name and arguments.
"""

# How it works
#
# One envelope and one reader know all the forms, and a row says which of them is written. A body is
# cut at the family's own tags; each function is read by itself, so that one that cannot be read
# leaves the others alone. No value holds such a tag: where one is there, another tag was damaged.
#
# A type says how the text is to be read: `integer` makes a number of it. Text that is none of its
# type stays text, and the tool's schema has the last word on all values.
#
# Cost: one search for tags, and a look at each value.

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from ...arguments.rjson.positions import find_places
from ...arguments.rjson.strict import Refusal, read_if_strict
from ...arguments.schema.view import View, view_of
from ...core.errors import UnwritableCall
from ...core.toolspec import ToolSpec
from ...core.types import Edit, Span
from ...core.values import Value, escape_token, leaves, read_strict, write_canonical
from ..base import (
    NEED_MORE,
    Answer,
    Codec,
    DecodeContext,
    Decoded,
    Envelope,
    Fit,
    Message,
    Opening,
    Places,
    Protocol,
    Signs,
    Tools,
    unread,
)
from ..disambiguation import Calls, Disambiguation
from ..parameters.form import kind_of_value
from ..prompt.type_rules import JSON_TYPE_RULES, TypeRules
from ..prompt.wording import Wordings
from ..python.reader import PythonReader
from ..rxml.element import unescape, unescape_offsets
from ..rxml.writer import SPECIAL, escape
from ..scan import Close, LiteralBody, Scanner, skip_space
from .grammar import BARE_SCALARS

_BLOCKS = {"<functions>": "</functions>", "<function_calls>": "</function_calls>"}
_AROUND = {"<TOOLCALL>": "</TOOLCALL>", "<tool_call>": "</tool_call>"}
# Opener -> what follows it, after white space.
_FOLLOWS: dict[str, tuple[str, ...]] = {
    "<functions>": ("<function ", "<function_call", "</functions>"),
    "<function_calls>": ("<function_call>", "<function_call "),
    "<function_call>": ("<name>",),
    **dict.fromkeys(_AROUND, (*_BLOCKS, "<function_call>", "<function ")),
}
_MOST_SPACE = 64
_LONE_CALL = "<function_call>"
_FENCE = re.compile(r"\s{0,64}```(?:xml)?[ \t]{0,8}\r?\n")
_FENCE_SO_FAR = re.compile(r"\s{0,64}`{1,3}(?:x?|xml?[ \t]{0,8}\r?)\Z")

_GROUPS = ("params", "parameters", "arguments", "args")
_PARAMETERS = ("param", "parameter", "argument", "arg")
_CALLS = ("function", "function_call")
_TAG = re.compile(
    r"<(?:(?P<cdata>!\[CDATA\[)|(?P<close>/?)\s{0,8}"
    r"(?P<word>functions|function_calls|function_call|function|name"
    rf"|{'|'.join(_GROUPS)}|{'|'.join(_PARAMETERS)})(?![\w:.-])"
    r"(?P<attributes>(?:\s{1,40}[\w:.-]{1,64}+\s{0,8}=\s{0,8}"
    r"(?:\"[^\"]*+\"|'[^']*+'|[\w.-]{1,64}+(?=[\s/>])))*+)\s{0,40}(?P<empty>/?)>)"
)
_ATTRIBUTE = re.compile(
    r"(?P<name>[\w:.-]+)\s*=\s*(?:\"(?P<q>[^\"]*)\"|'(?P<a>[^']*)'|(?P<bare>[\w.-]+))"
)
# A function without a block around it is another format's, unless its parameters say more.
_LONE = re.compile(
    r"<function\s{1,8}name\s{0,4}=\s{0,4}(?:\"[^\"<>]{1,128}+\"|'[^'<>]{1,128}+')\s{0,8}>\s{0,64}"
    rf"<(?:(?:{'|'.join(_GROUPS)})>"
    rf"|(?:{'|'.join(_PARAMETERS)})\s{{1,8}}[^<>]{{0,200}}?\b(?:type|value)\s{{0,4}}=)"
)
_LONE_SO_FAR = re.compile(
    r"<function\s{1,8}[^<>]{0,160}+(?:>\s{0,64}+(?:<(?:[a-z]{0,12}(?:\s[^<>]{0,200}+)?)?)?)?\Z"
)
_LONE_HEAD = "<function "
_LIST_TYPES = ("array", "list", "tuple", "object", "dict")
_NUMBER_TYPES = ("integer", "int", "number", "float", "double")
# The words of the prompts for the types of JSON.
_WORDS = {"number": "float", "object": "dict"}
_EDGES = re.compile(r"\A\s+|\s+\Z")
_ATTRIBUTES = ("name", "value", "type")
_KINDS = ("string", "integer", "float", "boolean", "array", "dict", "tuple")
_BLOCK_WORDS = ("functions", "function_calls")
_SECTION = re.compile(r"<!\[CDATA\[(.*)\]\]>", re.DOTALL)
_HALF_TAG = re.compile(
    r"\A\s{0,64}(?:>|/>)|<(?:/\s{0,8})?[a-z]{0,12}\s{0,8}\Z"
    r"|</?\s{0,8}(?:functions?|params?|parameters?|arguments?|args?)(?![\w:.-])"
)


@dataclass(frozen=True, slots=True)
class TypedXml(Envelope):
    """Envelope of all forms of the family: a block, one in a tag, or one call alone."""

    closers = tuple(_BLOCKS.values())
    restarts = ()  # the reader finds by itself where a function begins

    def closers_in_text(self, tools: Tools) -> tuple[str, ...]:
        return (*self.closers, *_AROUND.values())

    heads_are_fixed = True

    def heads(self, tools: Tools) -> tuple[str, ...]:
        return (*_FOLLOWS, _LONE_HEAD)

    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Answer:
        if text.startswith(_LONE_HEAD, pos):
            if _LONE.match(text, pos):
                return Opening(0)
            return NEED_MORE if not final and _LONE_SO_FAR.match(text, pos) else None
        opener = next((o for o in _FOLLOWS if text.startswith(o, pos)), None)
        if opener is None:
            return None
        end = pos + len(opener)
        follows = _follows(opener, text, end)
        if follows:
            return Opening(0) if opener == _LONE_CALL else Opening(end - pos, attributes=opener)
        return NEED_MORE if follows is None and not final else None

    def suits(self, opening: Opening, text: str, at: int, final: bool, tools: Tools) -> Fit:
        return True

    def scanner(self, opening: Opening, tools: Tools) -> Scanner:
        if not opening.end:
            return _WholeCall(tuple(f"</{word}>" for word in _CALLS))
        pairs = _AROUND if opening.attributes in _AROUND else _BLOCKS
        return LiteralBody(tuple(pairs.values()))


def _follows(opener: str, text: str, at: int) -> bool | None:
    # None if more text decides. A code fence may follow a tag around a block.
    end = at
    if opener in _AROUND:
        fence = _FENCE.match(text, at)
        at = fence.end() if fence else at
    at = skip_space(text, at, _MOST_SPACE)
    if text.startswith(_FOLLOWS[opener], at):
        return True
    rest = text[at : at + _MOST_SPACE]
    if any(literal.startswith(rest) for literal in _FOLLOWS[opener]):
        return None
    return None if opener in _AROUND and _FENCE_SO_FAR.match(text, end) else False


class _WholeCall(LiteralBody):
    __slots__ = ()

    def scan(self, tail: str, final: bool) -> Close | int:
        answer = LiteralBody.scan(self, tail, final)
        return Close(answer.end, answer.end, "end") if isinstance(answer, Close) else answer


@dataclass(frozen=True, slots=True)
class _Tag:
    # attributes: name -> (raw text, its offset).

    word: str
    start: int
    end: int
    closes: bool
    empty: bool
    attributes: dict[str, tuple[str, int]]


def _tags(body: str) -> list[_Tag]:
    tags: list[_Tag] = []
    pos = 0
    while (match := _TAG.search(body, pos)) is not None:
        pos = match.end()
        if match["cdata"]:
            end = body.find("]]>", pos)
            if end < 0:
                raise Refusal("decode.tags", "a section without its end", match.start())
            pos = end
            continue
        attributes: dict[str, tuple[str, int]] = {}
        for attribute in _ATTRIBUTE.finditer(body, *match.span("attributes")):
            group = next(g for g in ("q", "a", "bare") if attribute[g] is not None)
            name = attribute["name"].lower()
            if name in attributes or name not in _ATTRIBUTES:
                message = f"the attribute {name!r} appears twice, or is not one of the format"
                raise Refusal("decode.attribute", message, attribute.start())
            attributes[name] = attribute[group], attribute.start(group)
        word, closes, empty = match["word"].lower(), bool(match["close"]), bool(match["empty"])
        if closes and (attributes or empty):
            raise Refusal("decode.tags", "a closing tag with attributes", match.start())
        tags.append(_Tag(word, match.start(), match.end(), closes, empty, attributes))
    return tags


class _Function:
    # tags: its own, without the first. end: where the text after its last tag ends.

    def __init__(
        self, body: str, context: DecodeContext, head: _Tag, tags: list[_Tag], end: int
    ) -> None:
        self._body = body
        self._context = context
        self._head = head
        self._tags = tags
        self._end = end
        self._pos = head.end
        self._i = 0
        self._edits: list[Edit] = []
        self._places: dict[str, tuple[int, int]] = {}
        self._arguments: dict[str, Value] = {}
        self._typed = False
        self.name = ""
        self.name_span: Span | None = None
        self._view: View | None = None

    def read(self) -> Decoded:
        self._read_name()
        tool = self._context.tools.get(self.name)
        self._view = view_of(tool.schema_json) if tool is not None else None
        closed = self._head.empty
        while self._i < len(self._tags):
            tag = self._tags[self._i]
            self._blank(tag.start)
            self._i += 1
            self._pos = tag.end
            if closed or tag.word == "name":
                raise Refusal("decode.tags", f"<{tag.word}> cannot stand here", tag.start)
            if tag.word in _CALLS:
                closed = tag.closes
            elif tag.word in _PARAMETERS:
                self._parameter(tag)
            # Tags around all parameters mean nothing.
        self._blank(self._end)
        if not closed:
            self._close(self._pos, f"</{self._head.word}>", "tags.unclosed-function")
        return Decoded(
            self.name,
            self._arguments,
            name_span=self.name_span,
            edits=tuple(sorted(self._edits, key=lambda edit: edit.span.start)),
            untyped=bool(self._arguments) and not self._typed,
            places=self._all_places,
            unescape=unescape_offsets,
        )

    def _all_places(self) -> Places:
        places: dict[str, tuple[int, int]] = {"": (self._head.start, self._end)}
        for (path, place), value in zip(
            self._places.items(), self._arguments.values(), strict=True
        ):
            places[path] = place
            if not isinstance(value, list | dict):
                continue
            # Of what Python writes only the whole is known.
            places |= {path + inner: place for inner, _ in leaves(value)}
            start, end = place
            raw = self._body[start:end]
            text = raw if self._body.endswith("<![CDATA[", 0, start) else unescape(raw)
            offsets = range(len(raw) + 1) if text == raw else unescape_offsets(raw)
            if offsets is not None and read_if_strict(text, self._context.max_depth):
                for inner, (a, b) in find_places(text).values.items():
                    if inner:
                        places[path + inner] = (start + offsets[a], start + offsets[b])
        return places

    def _read_name(self) -> None:
        if "name" in self._head.attributes:
            raw, start = self._head.attributes["name"]
        elif len(self._tags) > 1 and self._tags[0].word == self._tags[1].word == "name":
            opener, closer = self._tags[:2]
            self._blank(opener.start)
            if opener.closes or not closer.closes:
                raise Refusal("decode.tags", "the name is not between its tags", opener.start)
            raw, start = self._body[opener.end : closer.start], opener.end
            self._pos, self._i = closer.end, 2
        else:
            raise Refusal("decode.tags", "a function without a name", self._head.start)
        text = raw.strip()
        start += len(raw) - len(raw.lstrip())
        if not text or "<" in text:
            raise Refusal("decode.tags", "a function without a name", self._head.start)
        self.name, self.name_span = unescape(text), Span(start, start + len(text))

    def _blank(self, end: int) -> None:
        text = self._body[self._pos : end]
        if text.strip():
            message = f"neither a tag nor white space: {text.strip()[:40]!r}"
            raise Refusal("decode.tags", message, self._pos + len(text) - len(text.lstrip()))

    def _fix(self, span: Span, text: str, rule: str) -> None:
        if not self._context.repair:
            raise Refusal("decode.tags", "not as the format writes it", span.start)
        self._edits.append(Edit(span, text, rule))

    def _close(self, at: int, closer: str, rule: str) -> None:
        if not self._context.closed and not self._body[at:].strip():
            raise Refusal("decode.truncated-value", "the text ends inside this call", at)
        self._fix(Span(at, at), closer, rule)

    def _parameter(self, tag: _Tag) -> None:
        if tag.closes:
            if not self._arguments:
                raise Refusal("decode.tags", "a closer without its parameter", tag.start)
            if any(edit.rule == "tags.unclosed-parameter" for edit in self._edits):
                raise Refusal("decode.ambiguous", "a parameter inside a parameter", tag.start)
            self._fix(Span(tag.start, tag.end), "", "tags.doubled-closer")
            return
        if not tag.attributes.get("name", ("",))[0].strip():
            raise Refusal("decode.tags", "a parameter without a name", tag.start)
        if "value" in tag.attributes:
            raw, start = tag.attributes["value"]
            if "<" in raw and _TAG.search(raw):
                raise Refusal("decode.ambiguous", "a value holds tags of the format", start)
            self._take(tag, raw, start, in_text=False)
            closer = self._tags[self._i] if self._i < len(self._tags) else None
            if tag.empty:
                return
            # It may lack its closer.
            if closer is not None and closer.closes and closer.word in _PARAMETERS:
                self._blank(closer.start)
                self._i += 1
                self._pos = closer.end
            else:
                self._fix(Span(tag.end - 1, tag.end - 1), "/", "tags.unclosed-parameter")
        elif tag.empty:
            if tag.attributes.get("type", ("string", 0))[0] != "string":
                raise Refusal("decode.tags", "a parameter without a value", tag.start)
            self._take(tag, "", tag.end, in_text=False)
        else:
            self._element(tag)

    def _element(self, tag: _Tag) -> None:
        closer = self._tags[self._i] if self._i < len(self._tags) else None
        end = closer.start if closer is not None else self._end
        raw = self._body[tag.end : end]
        if closer is not None and closer.closes and closer.word in _PARAMETERS:
            if closer.word != tag.word:
                own = f"</{tag.word}>"
                self._fix(Span(closer.start, closer.end), own, "tags.mismatched-closer")
            self._i += 1
            self._pos = closer.end
        else:
            # What is left of a closer is no part of the value.
            if closer is None or "<" in raw or ">" in raw or not raw.strip():
                raise Refusal("decode.tags", "a parameter without its closer", tag.start)
            raw = raw.rstrip()
            self._pos = tag.end + len(raw)
            self._close(self._pos, f"</{tag.word}>", "tags.unclosed-parameter")
        self._take(tag, raw, tag.end, in_text=True)

    def _take(self, tag: _Tag, raw: str, start: int, *, in_text: bool) -> None:
        name = unescape(tag.attributes["name"][0])
        if name in self._arguments:
            raise Refusal("decode.duplicate-key", f"{name!r} appears twice", tag.start)
        if in_text:
            stripped = raw.strip()
            # White space alone is a value.
            if stripped:
                start += len(raw) - len(raw.lstrip())
                raw = stripped
            section = _SECTION.fullmatch(raw)
            if section is not None:
                start, raw = start + section.start(1), section[1]
                text = raw
            elif _HALF_TAG.search(raw):
                # No one writes such a sign there without a reference for it.
                raise Refusal("decode.ambiguous", "a value holds a part of a tag", start)
            else:
                text = unescape(raw)
        else:
            text = unescape(raw)
        path = "/" + escape_token(name)
        kind = tag.attributes.get("type", ("", 0))[0].strip().lower()
        self._typed = self._typed or bool(kind)
        self._places[path] = (start, start + len(raw))
        member = self._view.child(name) if self._view is not None else None
        try:
            self._arguments[name] = _typed(text, kind, self._context)
        except Refusal as refusal:
            if member is None or not member.admits_string():
                raise Refusal(refusal.code, refusal.message, start) from None
            self._arguments[name] = text


def _typed(text: str, kind: str, context: DecodeContext) -> Value:
    word = text.strip()
    if kind in ("boolean", "bool"):
        return {"true": True, "false": False}.get(word.lower(), text)
    if kind in ("null", "none"):
        return None if word.lower() in ("null", "none", "") else text
    if kind not in _NUMBER_TYPES and kind not in _LIST_TYPES:
        return text
    values = read_if_strict(word, context.max_depth)
    if values is not None and len(values) == 1:
        types = list | dict if kind in _LIST_TYPES else str | bool | list | dict | None
        if isinstance(values[0], types) == (kind in _LIST_TYPES):
            return values[0]
    if kind in _NUMBER_TYPES:
        return text
    # As Python writes it.
    reader = PythonReader(word, replace(context, repair=False), json_words=True)
    try:
        value = reader.value("", 0)
        if not reader.skip() and isinstance(value, list | dict):
            return value
    except Refusal:
        pass
    raise Refusal("decode.tags", f"no list or object: {word[:40]!r}", 0)


def _functions(body: str, context: DecodeContext) -> tuple[Decoded, ...]:
    tags = _tags(body)
    # The functions are inside a fence and a block, if those are there.
    begin, stop = 0, len(body)
    fence, fence_end = _FENCE.match(body), body.rfind("```")
    if fence is not None and fence_end >= fence.end() and not body[fence_end + 3 :].strip():
        begin, stop = fence.end(), fence_end
    blocks = [tag for tag in tags if tag.word in _BLOCK_WORDS]
    if blocks:
        first, last = blocks[0], blocks[-1]
        if [tag.closes for tag in blocks] not in ([False, True], [False], [True]):
            raise Refusal("decode.tags", "a block inside a block", first.start)
        if not first.closes:
            _only_space(body, begin, first.start)
            begin = first.end
        if last.closes:
            _only_space(body, last.end, stop)
            stop = last.start
    groups: list[list[_Tag]] = []
    for tag in tags:
        if tag.word in _CALLS and not tag.closes:
            groups.append([tag])
        elif tag.word not in _BLOCK_WORDS:
            if not groups or tag.end > stop:
                raise Refusal("decode.tags", "a tag outside of the functions", tag.start)
            groups[-1].append(tag)
    starts = [head.start for head, *_ in groups]
    _only_space(body, begin, starts[0] if starts else stop)

    calls: list[Decoded] = []
    for (head, *inner), end in zip(groups, [*starts[1:], stop], strict=False):
        function = _Function(body, context, head, inner, end)
        try:
            calls.append(function.read())
        except Refusal as refusal:
            if len(groups) == 1:
                raise
            place = Span(refusal.position, min(refusal.position + 1, len(body)))
            calls.append(unread(function.name, refusal, place, name_span=function.name_span))
    return tuple(calls)


class _TypedDisambiguation(Disambiguation):
    keeps_equal = False

    def read_strictly(self, text: str) -> Calls:
        return _functions(text, replace(self.context, repair=False))

    def tags(self) -> list[str]:
        # The literals of which one may be damaged: tags, or parts of a tag around a value.
        words = [word for word in (*_PARAMETERS, *_GROUPS, *_CALLS) if word in self.body]
        literals = [f"</{word}>" for word in words]
        literals += [f"<{word}>" for word in _GROUPS if word in words]
        literals += [f'" type="{kind}"{end}' for kind in _KINDS for end in ("/>", " />", ">")]
        own = [word for word in words if word in _PARAMETERS]
        for name, tool in self.context.tools.items():
            if name not in self.body:
                continue
            literals.append(f'<function name="{name}">')
            for key in view_of(tool.schema_json).properties:
                begins = [f'<{word} name="{key}" ' for word in own]
                literals += [begin + rest for begin in begins for rest in ('value="', 'type="')]
        return list(dict.fromkeys(literals))

    def may_search(self) -> bool:
        return self.context.closed

    def is_doubtful(self, call: Decoded) -> bool:
        return False

    def is_doubtful_once_edited(self, call: Decoded, text: str) -> bool:
        return False


Form: TypeAlias = Literal["attribute", "text", "elements"]


@dataclass(frozen=True, slots=True)
class TypedCall(Codec):
    """Codec of the family. form: what is written. around: the tag around it, "" for none."""

    form: Form
    around: str = ""

    def read(self, body: str, context: DecodeContext) -> tuple[Decoded, ...]:
        bodies = _TypedDisambiguation(body, context)
        return bodies.settle(lambda: _functions(body, context)) or Message((), ())

    def write(self, name: str, arguments_json: str, tool: ToolSpec | None) -> str:
        arguments = read_strict(arguments_json)
        if not isinstance(arguments, dict):
            raise UnwritableCall("arguments have to be an object", got=arguments_json)
        parameters = "".join(self._pair(key, value) for key, value in arguments.items())
        start, end = self.edges
        if self.form == "elements":
            call = f"<name>{_escape(name)}</name><arguments>{parameters}</arguments>"
            return f"{start}<function_call>{call}</function_call>{end}"
        if self.form == "attribute":
            parameters = f"<params>{parameters}</params>"
        return f'{start}<function name="{_escape(name)}">{parameters}</function>{end}'

    between = ""

    @property
    def edges(self) -> tuple[str, str]:
        block = "<function_calls>" if self.form == "elements" else "<functions>"
        return self.around + block, _BLOCKS[block] + _AROUND.get(self.around, "")

    def _pair(self, name: str, value: Value) -> str:
        kind = kind_of_value(value)
        kind = _WORDS.get(kind, kind)
        text = _escape(value if isinstance(value, str) else write_canonical(value))
        key = _escape(name)
        if self.form == "attribute":
            return f'<param name="{key}" value="{text}" type="{kind}"/>'
        word = "arg" if self.form == "elements" else "param"
        return f'<{word} name="{key}" type="{kind}">{text}</{word}>'


def _only_space(body: str, start: int, end: int) -> None:
    if body[start:end].strip():
        raise Refusal("decode.tags", "text outside of the functions", start)


def _escape(text: str) -> str:
    # White space at its edges would be taken off, so it is written by its number.
    return _EDGES.sub(lambda m: "".join(f"&#{ord(c)};" for c in m[0]), escape(text, SPECIAL[:4]))


def _type_rules(form: Form) -> TypeRules:
    structures = JSON_TYPE_RULES.rules[len(BARE_SCALARS) :]
    rules = []
    for rule in (*BARE_SCALARS, *structures):
        word = _WORDS.get(rule.json_type, rule.json_type)
        example, wrong = rule.example, rule.anti_pattern
        if form == "attribute":
            example, wrong = (text.replace('"', "&quot;") for text in (example, wrong))
        parameter = f'{rule.parameter}" type="{word}'
        rules.append(replace(rule, parameter=parameter, example=example, anti_pattern=wrong))
    pairs = {
        "attribute": '<param name="{name}" value="{value}"/>',
        "text": '<param name="{name}">{value}</param>',
        "elements": '<arg name="{name}">{value}</arg>',
    }
    return TypeRules(tuple(rules), pairs[form])


def _row(id: str, title: str, form: Form, around: str = "", *aliases: str) -> Protocol:
    return Protocol(
        id=id,
        aliases=aliases,
        title=title,
        envelope=TypedXml(),
        codec=TypedCall(form, around),
        tags=frozenset(("delimited",)),
        type_rules=_type_rules(form),
        wordings=Wordings("typed_xml"),
        signs=Signs(openers=(r"<functions?(?: name=[^<>\n]{1,200})?>", "<function_call>")),
    )


_TAG_WORD = "<TOOLCALL>"
_VERBOSE = "<param name value type/> in <params> of a <function>"
_CONCISE = "<param name type> with text, in a <function>"
_ELEMENTS = "<function_call> with <name>, <arguments> and <arg>"
PROTOCOLS: tuple[Protocol, ...] = (
    _row("bfcl_verbose_xml", _VERBOSE, "attribute", "", "verbose_xml"),
    _row("bfcl_verbose_xml_tag", f"{_VERBOSE}, in <TOOLCALL>", "attribute", _TAG_WORD),
    _row("bfcl_concise_xml", _CONCISE, "text", "", "concise_xml"),
    _row("bfcl_concise_xml_tag", f"{_CONCISE}, in <TOOLCALL>", "text", _TAG_WORD),
    _row("function_call_xml", _ELEMENTS, "elements"),
    _row("function_call_xml_tag", f"{_ELEMENTS}, in <TOOLCALL>", "elements", _TAG_WORD),
)
