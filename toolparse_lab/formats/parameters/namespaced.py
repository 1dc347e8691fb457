"""Elements after a mark of their own: `]<]minimax[>[<port>Bergen]<]minimax[>[</port>`."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from ...arguments.rjson.positions import EditMap, apply_edits
from ...arguments.rjson.strict import Refusal
from ...arguments.schema.view import View, view_of
from ...core.errors import UnwritableCall
from ...core.toolspec import ToolSpec
from ...core.types import Edit, Span
from ...core.values import Value, escape_token, read_strict, write_canonical
from ..base import (
    Answer,
    Codec,
    DecodeContext,
    Decoded,
    Envelope,
    Opening,
    Protocol,
    Signs,
    Tools,
    make_opening,
    unread,
)
from ..prompt.type_rules import JSON_TYPE_RULES
from ..results import Between, TextResult
from ..rxml.reader import TEXT_KEY, ElementReader
from ..scan import LiteralBody, Scanner
from .reader import holds_json_unread, may_be_list

# How it works. Under a schema that wants a list, coercion makes one of `{"item": …}` and says so in
# a step. Under a free object, or a parameter that nobody declared, nothing would: the format itself
# says that these are items. So such a value is a list from the beginning, and its places move.

_ITEM = "item"


class ItemLists:
    """A value of elements, in which the free lists are lists. view: its schema, not a list."""

    def __init__(self, value: Value, view: View) -> None:
        self._moves: dict[str, str] = {}
        self.value = self._members(value, view, "", "", 0)

    def path(self, path: str) -> str:
        return self._moves.get(path, path)

    def _read(self, value: Value, view: View | None, old: str, new: str, depth: int) -> Value:
        # old, new: the path in the elements, and as it is.
        if old != new:
            self._moves[old] = new
        free = view is None or (view.types is None and not view.any_of and view.enum is None)
        if not free or not isinstance(value, dict) or value.keys() != {_ITEM}:
            return self._members(value, view, old, new, depth)
        items = value[_ITEM]
        if not isinstance(items, list):
            return [self._read(items, None, f"{old}/{_ITEM}", f"{new}/0", depth + 1)]
        self._moves[f"{old}/{_ITEM}"] = new
        return self._members(items, None, f"{old}/{_ITEM}", new, depth)

    def _members(self, value: Value, view: View | None, old: str, new: str, depth: int) -> Value:
        if depth > _MAX_DEPTH or not isinstance(value, dict | list):
            return value
        if isinstance(value, list):
            return [
                self._read(item, view.item(i) if view else None, f"{old}/{i}", f"{new}/{i}",
                           depth + 1)
                for i, item in enumerate(value)
            ]  # fmt: skip
        return {
            key: self._read(
                member, view.child(key) if view else None, f"{old}/{escape_token(key)}",
                f"{new}/{escape_token(key)}", depth + 1,
            )
            for key, member in value.items()
        }  # fmt: skip


# How it works. A tag without the mark is content. So the body is rewritten: the mark is taken off
# every tag that has it, and every other `<` or `&` is escaped. What is left are elements, which the
# reader of elements knows, with all their damage. Offsets come back by the map of the rewriting.
#
# Cost: one pass for the rewriting, one for the reader.


_MARK = "]<]minimax[>["
_OPENER, _CLOSER = f"{_MARK}<tool_call>", f"{_MARK}</tool_call>"
# Models put white space between the mark and its tag.
_MARKED = re.compile(rf"(?P<mark>{re.escape(_MARK)}[ \t\r\n]{{0,8}}+)<(?=/?[A-Za-z_])|[<&]")
# What is left of a mark that no tag followed, or that is damaged, after the rewriting.
_LEFT_MARK = "]minimax["
_INVOKE = re.compile(r"\s*+<invoke name=\"(?P<name>[^\"<>\r\n]{1,200}+)\"\s*+>")
_INVOKE_END = re.compile(r"</invoke\s*+>")
_KEY = re.compile(r"[A-Za-z_][\w.-]*")
_MAX_DEPTH = 100  # of a value


@dataclass(frozen=True, slots=True)
class MarkedElements(Envelope):
    """Envelope: a block between two marked tags, or a marked call that lost its block."""

    closers: tuple[str, ...] = (_CLOSER,)

    restarts = (_OPENER,)

    heads_are_fixed = True

    def heads(self, tools: Tools) -> tuple[str, ...]:
        return (_OPENER, f"{_MARK}<invoke ")

    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Answer:
        if text.startswith(_OPENER, pos):
            return make_opening(len(_OPENER))
        return make_opening(0)

    def scanner(self, opening: Opening, tools: Tools) -> Scanner:
        if opening.end:
            return LiteralBody((_CLOSER,), (_OPENER,))
        return LiteralBody((f"{_MARK}</invoke>", _CLOSER), (_OPENER,))

    def closer_of(self, opening: Opening) -> str | None:
        return _CLOSER if opening.end else None


def _no_closer(head: re.Match[str], after: re.Match[str] | None, back: EditMap) -> Refusal:
    if after is not None:
        return Refusal("decode.tags", "a call in a call", back.raw_span(*after.span())[0])
    message = f"the text ends inside {head['name']!r}"
    return Refusal("decode.truncated-value", message, back.raw_span(*head.span())[0])


def _check_repeated(inner: str, value: dict[str, Value], view: View, at: int) -> None:
    # Twice where the schema says no list, or with a whole list in each.
    for name, items in value.items():
        # The items of one list are in elements of their own, and are meant as they are.
        if not isinstance(items, list) or inner.count(f"<{name}>") < 2:
            continue
        member = view.child(name)
        if not may_be_list(member):
            message = f"{name!r} stands several times, and no schema says that it is a list"
            raise Refusal("decode.duplicate-key", message, at)
        if holds_json_unread(items, member):
            message = f"{name!r} stands several times, with a list or an object in each"
            raise Refusal("decode.ambiguous", message, at)


def _check_closers(value: dict[str, Value], at: int) -> None:
    # A text that ends with the closer of its own element: that closer lost its mark.
    stack: list[tuple[str, Value]] = list(value.items())
    while stack:
        name, member = stack.pop()
        if isinstance(member, dict):
            stack.extend(member.items())
        elif isinstance(member, list):
            stack.extend((name, item) for item in member)
        elif (
            isinstance(member, str)
            and member.rstrip().endswith(f"</{name}>")
            and member.count(f"<{name}>") < member.count(f"</{name}>")
        ):
            raise Refusal("decode.tags", f"a tag of {name!r} stands without its mark", at)


@dataclass(frozen=True, slots=True)
class MarkedCalls(Codec):
    """Codec of such blocks: calls with elements named after their parameters."""

    def read(self, body: str, context: DecodeContext) -> tuple[Decoded, ...]:
        edits = [
            Edit(Span(*match.span("mark")), "", "")
            if match["mark"]
            else Edit(Span(*match.span()), "&lt;" if match[0] == "<" else "&amp;", "")
            for match in _MARKED.finditer(body)
        ]
        text, back = apply_edits(body, edits), EditMap(edits)
        calls: list[Decoded] = []
        pos = 0
        while (head := _INVOKE.match(text, pos)) is not None:
            try:
                call, pos = self._call(text, head, context, back)
            except Refusal as refusal:
                # Those before the one that the text ends in are whole.
                if not calls or context.closed:
                    raise
                place = Span(refusal.position, min(refusal.position + 1, len(body)))
                whole = Span(back.raw_span(*head.span())[0], len(body))
                span = Span(*back.raw_span(*head.span("name")))
                return (*calls, unread(head["name"], refusal, place, name_span=span, cut=whole))
            calls.append(call)
        if not calls or text[pos:].strip():
            message = "there is no call" if not calls else "something is between the calls"
            raise Refusal("decode.tags", message, back.raw_span(pos, pos)[0])
        return tuple(calls)

    def _call(
        self, text: str, head: re.Match[str], context: DecodeContext, back: EditMap
    ) -> tuple[Decoded, int]:
        # A closer that is missing belongs before the next call, if the elements before it
        # close themselves: else that call may be part of a value.
        after = _INVOKE.search(text, head.end())
        limit = after.start() if after is not None else len(text)
        end = _INVOKE_END.search(text, head.end(), limit)
        if end is not None:
            return self._decoded(text, head, end.start(), context, back), end.end()
        # The closer of a call without a block is that of the body.
        if after is None and context.opening.end == 0 and context.closed:
            return self._decoded(text, head, limit, context, back), limit
        if after is None or not context.closed or not context.repair:
            raise _no_closer(head, after, back)

        stop = head.end() + len(text[head.end() : limit].rstrip())
        call = self._decoded(text, head, stop, context, back)
        if call.edits:
            raise _no_closer(head, after, back)
        at = back.raw_span(stop, stop)[0]
        edit = Edit(Span(at, at), f"{_MARK}</invoke>", "tags.unclosed-function")
        return replace(call, edits=(edit,)), stop

    def _decoded(
        self, text: str, head: re.Match[str], stop: int, context: DecodeContext, back: EditMap
    ) -> Decoded:
        tool = context.tools.get(head["name"])
        view: View = view_of(tool.schema_json if tool is not None else "{}")
        inner = text[head.end() : stop]
        start = head.end()
        if _LEFT_MARK in inner:
            at = back.raw_span(start + inner.find(_LEFT_MARK), stop)[0]
            raise Refusal("decode.tags", "a mark is not before a tag", at)
        reader = ElementReader(inner, view, repair=context.repair, closed=True)
        value = reader.read()
        # Few calls have any, and they cost a walk over all values.
        lists = ItemLists(value, view) if "<item" in inner else None
        at = back.raw_span(start, start)[0]
        if TEXT_KEY in value and TEXT_KEY not in view.properties:
            raise Refusal("decode.tags", "text stands beside the parameters", at)
        _check_closers(value, at)
        _check_repeated(inner, value, view, at)
        edits = tuple(
            Edit(Span(*back.raw_span(e.span.start + start, e.span.end + start)),
                 e.text.replace("<", f"{_MARK}<"), e.rule)
            for e in reader.edits
        )  # fmt: skip

        def places() -> dict[str, tuple[int, int]]:
            inner_places = reader.places
            if lists is not None:
                inner_places = {lists.path(p): place for p, place in inner_places.items()}
            moved = {p: back.raw_span(a + start, b + start) for p, (a, b) in inner_places.items()}
            return {"": back.raw_span(head.start(), stop), **moved}

        return Decoded(
            head["name"],
            lists.value if lists is not None else value,
            name_span=Span(*back.raw_span(*head.span("name"))),
            edits=edits,
            untyped=True,
            places=places,
        )

    def write(self, name: str, arguments_json: str, tool: ToolSpec | None) -> str:
        arguments = read_strict(arguments_json)
        if not isinstance(arguments, dict):
            raise UnwritableCall("arguments are elements, so they must be an object", got=name)
        lines = [_OPENER, f'{_MARK}<invoke name="{name}">']
        lines += [_element(key, value, 0) for key, value in arguments.items()]
        text = "\n".join([*lines, f"{_MARK}</invoke>", _CLOSER])
        inner = text[len(_OPENER) : -len(_CLOSER)]
        view = view_of(tool.schema_json if tool is not None else "{}")
        if not self.says(inner, ItemLists(_texts(arguments), view).value, tool, name):
            raise UnwritableCall("a value that its elements do not say", got=name)
        return text


def _element(key: str, value: Value, depth: int) -> str:
    if depth > _MAX_DEPTH or not _KEY.fullmatch(key):
        raise UnwritableCall("this key cannot be the name of an element", got=key)
    return f"{_MARK}<{key}>{_content(value, depth)}{_MARK}</{key}>"


def _content(value: Value, depth: int) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "".join(_element(key, member, depth + 1) for key, member in value.items())
    if isinstance(value, list):
        return "".join(_element("item", item, depth + 1) for item in value)
    return write_canonical(value)


def _texts(value: Value) -> Value:
    if isinstance(value, dict):
        return {key: _texts(member) for key, member in value.items()}
    if isinstance(value, list):
        items = [_texts(item) for item in value]
        return {"item": items[0] if len(items) == 1 else items} if items else ""
    return _content(value, 0)


MINIMAX_M3 = Protocol(
    id="minimax_m3",
    title="elements after a mark, in <tool_call>",
    envelope=MarkedElements(),
    codec=MarkedCalls(),
    tags=frozenset(("delimited", "schema-typed")),
    results=TextResult(Between("<tool_response>", "</tool_response>"), ("<tool_response>",)),
    type_rules=JSON_TYPE_RULES,
    signs=Signs(openers=(re.escape(_MARK) + "<",)),
)
