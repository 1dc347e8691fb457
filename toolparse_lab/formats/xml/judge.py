"""Decides which reading of a body of elements counts, or that none does."""

from __future__ import annotations

import re
from collections.abc import Callable, Container
from dataclasses import replace
from itertools import chain, islice

from ...arguments.rjson.damage import Refusal
from ...arguments.rjson.positions import EditMap, apply_edits
from ...arguments.schema.coerce import coerce
from ...arguments.schema.validate import find_problems
from ...arguments.schema.view import View
from ...core.types import Edit, Problem, Span
from ...core.values import Value
from ..base import Decoded, Places, Reading
from ..rxml.doubt import is_doubtful, names_below
from ..rxml.element import Manner, pieces_between_children
from ..rxml.marks import MARK
from ..rxml.nearest import nearest_reading
from ..rxml.reader import TEXT_KEY
from ..rxml.tree import read_tree

# How it works. The tolerant reader has one reading of every text. It counts as it is where it took
# no repair and nothing in it looks damaged. Otherwise the text is looked at once more, as one in
# which a single character of a single tag is wrong: if that gives one reading which fits the
# schema, it counts; if it gives several, nobody can tell. Only without any does a repaired reading
# count, and only where nothing in it looks like a tag that was meant and not understood.

_MOST_NAMES = 64
_PLAIN_TAG = re.compile(r"<(/?)([^\s<>/=\"'!?]++)>")
_Read = Callable[[str, Reading], Decoded]


class ElementJudge:
    """Settles the reading of one body."""

    def __init__(self, body: str, view: View, schema: str | None, reading: Reading) -> None:
        self._body = body
        self._view = view
        self._schema = schema
        self._reading = reading

    def settle(self, reader: _Read) -> Decoded:
        refusal = Refusal("decode.ambiguous", "a value holds what looks like a damaged tag", 0)
        call: Decoded | None = None
        try:
            call = self._without_loose_text(reader(self._body, self._reading))
        except Refusal as reason:
            refusal = reason

        repaired = bool(call and call.edits)
        doubtful = call is None or self._is_doubtful(call)
        if call is not None and not doubtful and not repaired:
            return call

        # A character put right is less than a repair of the structure, so it goes first.
        nearest = self._nearest(reader) if self._reading.repair else None
        if nearest is not None and (doubtful or call is None or not _agree(nearest, call)):
            return nearest
        if doubtful or call is None:
            raise refusal
        return call

    def _is_doubtful(self, call: Decoded) -> bool:
        repaired = any(edit.rule != "rxml.loose-text" for edit in call.edits)
        return call_is_doubtful(call, self._view, self._body, repaired=repaired)

    def _nearest(self, reader: _Read) -> Decoded | None:
        if self._schema is None or not self._view.properties:
            return None

        strict = replace(self._reading, repair=False)
        edit = nearest_reading(self._body, self._tags(), lambda text: self._fitting(reader, text))
        if edit is None:
            return None
        # Read again for its places; the candidates were only asked for their values.
        call = reader(apply_edits(self._body, [edit]), strict)
        inner = call.places

        def places() -> Places:
            back = EditMap((edit,))
            return {path: back.raw_span(a, b) for path, (a, b) in inner().items()}

        return replace(call, edits=(edit,), places=places)

    def _fitting(self, reader: _Read, text: str) -> Value | None:
        # Most candidates turn an opening tag into a closing one, or back, where another was wrong.
        if not _is_balanced(text, names_below(self._view)):
            return None
        try:
            call = reader(text, replace(self._reading, repair=False))
        except Refusal:
            return None
        value = call.arguments
        if not isinstance(value, dict) or _holds_loose_text(value):
            return None
        if call_is_doubtful(call, self._view, text, repaired=True):
            return None
        return value if fits_schema(value, self._schema) else None

    def _tags(self) -> list[str]:
        # Names of items stand in no schema, but in the body.
        marks = islice(MARK.finditer(self._body), _MOST_NAMES)
        present = (mark["open"] or mark["closed"] for mark in marks)
        names = dict.fromkeys(chain(sorted(names_below(self._view)), filter(None, present)))
        # Both tags of each, since either may be the one that is wrong.
        return [tag for name in names for tag in (f"<{name}>", f"</{name}>")]

    # text beside the parameters

    def _without_loose_text(self, call: Decoded) -> Decoded:
        value = call.arguments
        if not isinstance(value, dict) or TEXT_KEY not in value:
            return call
        if TEXT_KEY in self._view.properties:
            return call

        text = str(value[TEXT_KEY])
        at = max(0, self._body.find(text[:1]))
        if not self._reading.repair:
            raise Refusal("decode.xml", "text stands beside the parameters", at)
        # A bracket in it, or a repair beside it, may have made text of a tag.
        if call.edits or any(mark in text for mark in "<>"):
            message = "the text beside the parameters may be a damaged tag"
            raise Refusal("decode.ambiguous", message, at)

        # Whole words between sound elements: nothing else can have been meant by them.
        edits = self._loose_edits()
        if not edits:  # it stands inside a wrapper
            raise Refusal("decode.ambiguous", "text stands beside the parameters", at)
        span = Span(edits[0].span.start, edits[-1].span.end)
        message = f"text beside the parameters was left out: {text[:40]!r}"
        problem = Problem("decode", "decode.loose-text", "warning", message, "", span)
        arguments = {name: item for name, item in value.items() if name != TEXT_KEY}
        return replace(
            call,
            arguments=arguments,
            edits=tuple(edits),
            problems=(*call.problems, problem),
        )

    def _loose_edits(self) -> list[Edit]:
        root, _ = read_tree(self._body, self._view, Manner(repair=False, closed=True))
        edits: list[Edit] = []
        for pieces, _child in pieces_between_children(root):
            for start, end, kind in pieces:
                text = self._body[start:end]
                if kind == "comment" or not text.strip():
                    continue
                lead = len(text) - len(text.lstrip())
                span = Span(start + lead, start + len(text.rstrip()))
                edits.append(Edit(span, "", "rxml.loose-text"))
        return edits


def call_is_doubtful(call: Decoded, view: View, body: str, *, repaired: bool) -> bool:
    # JSON strings have quotes around them, and contain whatever they like.
    if not call.untyped:
        return False
    return is_doubtful(call.arguments, view, body, call.places, repaired=repaired)


def fits_schema(value: Value, schema: str | None) -> bool:
    if schema is None:
        return True
    # Every leaf is text as yet, so its types are judged behind coercion.
    coerced = coerce(value, schema, "safe", one_item=True).value
    return not find_problems(coerced, schema)


def _is_balanced(text: str, names: Container[str]) -> bool:
    tags = _PLAIN_TAG.findall(text)
    if len(tags) != text.count("<"):
        return True
    balance: dict[str, int] = {}
    for slash, name in tags:
        if name in names:
            balance[name] = balance.get(name, 0) + (-1 if slash else 1)
    return not any(balance.values())


def _agree(one: Decoded, other: Decoded) -> bool:
    return bool(one.arguments == other.arguments)


def _holds_loose_text(value: Value) -> bool:
    # A stack, since depth is the text's to choose.
    stack: list[Value] = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            if TEXT_KEY in node:
                return True
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)
    return False
