"""Decides which reading of a body of parameter tags counts, or that none does."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache

from ...arguments.rjson.damage import Refusal
from ...arguments.rjson.positions import EditMap, apply_edits
from ...arguments.schema.view import View, view_of
from ...core.types import Edit, Problem, Span, Step
from ...core.values import Value, escape_token
from ..base import Decoded, Places, Reading, Tools
from ..rxml.doubt import is_plain_object
from ..rxml.nearest import near_edits, nearest_reading
from ..xml.judge import call_is_doubtful, fits_schema
from .keys import KeyReader
from .shape import Form
from .slots import SlotForm
from .strict import read_functions

# How it works. As for elements: what was read without a repair, and holds nothing that looks
# damaged, counts. Else the body is looked at as one in which a single character of a single tag is
# wrong; the only such reading in which every function is of a known tool and fits its schema
# counts. A repaired reading counts where there is none, and nothing in it is doubtful.


_SPECIAL = re.compile(r"<\|[^<>|]+\|>")
_BEFORE_VALUE = 64  # characters before a value's own tag that may be a slip


class TagJudge:
    """Settles the reading of one body."""

    def __init__(self, form: Form, body: str, reading: Reading) -> None:
        self._form = form
        self._body = body
        self._reading = reading

    def is_doubtful(self, call: Decoded) -> bool:
        if not call.readable:
            return False
        view = self._view(call)
        if view is None:
            by_json = any(step.rule == "read.json-body" for step in call.steps)
            if by_json:
                return False
            # A repair that leaves part of a closer in a value has put the wrong thing right.
            has_token = bool(call.edits) and _holds_token(self._form, call.arguments)
            return has_token or _went_on(self._form, call.arguments, None)
        # A tag says a value's type, but no quotes keep its text from swallowing other tags.
        if self._form.flags and not any(step.rule == "read.json-body" for step in call.steps):
            call = replace(call, untyped=True)
        if call_is_doubtful(call, view, self._body, repaired=bool(call.edits)):
            return True
        return call.untyped and self._swallows(call, view)

    def _swallows(self, call: Decoded, view: View) -> bool:
        # The closer of parameters and something that is not in the value: anything in a
        # value that is not text, and in a text a possible tag of a parameter that is
        # missing.
        arguments = call.arguments
        closer = self._form.parameter_closer
        if not isinstance(arguments, dict):
            return False
        if _went_on(self._form, arguments, view):
            return True

        for name, text in arguments.items():
            if ends_in_tag(self._form, text):
                return True
            # Searched from the end, which is several times as fast where nothing is found.
            if not isinstance(text, str) or text.rfind(closer) < 0:
                continue
            member = view.child(name)
            if member is not None and not member.admits_string():
                return True
            if _breaks_key(self._form, text):
                return True
            # In any order: models do not keep to that of the schema.
            missing = [other for other in view.properties if other not in arguments]
            if near_edits(text, [self._form.parameter_tag(m) for m in missing]):
                return True
        return False

    def settle(self, reader: Callable[[], tuple[Decoded, ...]]) -> tuple[Decoded, ...]:
        # A refusal waits: the nearest reading may do without it.
        refusal: Refusal | None = None
        calls: tuple[Decoded, ...] = ()
        try:
            calls = reader()
        except Refusal as reason:
            refusal = reason

        doubtful = [self.is_doubtful(call) for call in calls]
        sound = refusal is None and not any(doubtful) and _all_readable(calls)
        if sound and not _any_repaired(calls):
            return calls

        # The nearest reading goes before a repaired one: it changes a character, not a structure.
        nearest = self._nearest(calls) if self._reading.repair else None
        if nearest is not None and not (sound and _agree(nearest, calls)):
            return nearest
        by_keys = self._by_keys() if self._reading.repair and not sound else None
        if by_keys is not None:
            return by_keys
        if refusal is not None:
            raise refusal
        return _without(calls, doubtful)

    def _view(self, call: Decoded) -> View | None:
        tool = self._reading.tools.get(call.name)
        return view_of(tool.schema_json) if tool is not None else None

    def _nearest(self, calls: tuple[Decoded, ...]) -> tuple[Decoded, ...] | None:
        if not self._reading.closed:
            return None
        try:
            edit = nearest_reading(self._body, self._tags(), self._fitting)
        except Refusal as reason:
            if not calls:
                raise
            # They are of the first call, as each of them is shown.
            first = replace(_refused(calls[0]), readings=reason.readings)
            return (first, *(_refused(call) for call in calls[1:]))

        strict = read_functions(self._form, apply_edits(self._body, [edit])) if edit else None
        if edit is None or strict is None:
            return None
        # Read from the edited body, told of the body as it came.
        return in_raw(strict, [edit])

    def _by_keys(self) -> tuple[Decoded, ...] | None:
        form = self._form
        if not isinstance(form, SlotForm) or not form.value_has_tag or not self._reading.closed:
            return None
        edits = KeyReader(form, self._body, self._reading.tools).edits
        if not edits:
            return None
        edited = apply_edits(self._body, edits)
        calls = read_functions(form, edited)
        if not calls or self._fitting(edited) is None:
            return None
        return in_raw(calls, edits)

    def _fitting(self, text: str) -> Value | None:
        calls = read_functions(self._form, text)
        if not calls:
            return None

        for call in calls:
            # Every function has to fit: one that does not may have taken in what another lost.
            view, tool = self._view(call), self._reading.tools.get(call.name)
            if view is None or tool is None or not fits_schema(call.arguments, tool.schema_json):
                return None
            if call_is_doubtful(call, view, text, repaired=True):
                return None
        return [[call.name, call.arguments] for call in calls]

    def _tags(self) -> list[str]:
        # A parameter of any tool, since the function's own tag may be the damaged one.
        form = self._form
        tags = [form.parameter_closer, form.function_closer]
        names: dict[str, None] = {}
        for name, tool in self._reading.tools.items():
            tags.append(form.function_tag(name))
            names.update(dict.fromkeys(view_of(tool.schema_json).properties))
        return [*tags, *(form.parameter_tag(name) for name in names)]


def ends_in_tag(form: Form, text: Value) -> bool:
    # Such a tag was written twice, or in place of another. In a quoted call each has its
    # closer. Of a format with references nothing is said, since such a tag may have been
    # escaped.
    if form.entities or not isinstance(text, str):
        return False
    stripped = text.strip()
    if stripped[:1] != "<" and stripped[-1:] != ">":
        return False
    pairs = _pairs(form)
    for opener, closer in pairs:
        whole = opener[:1] == "<" and opener[-1:] == ">"
        if whole and stripped.endswith(opener):
            return True
        if closer and stripped.endswith(closer) and text.count(opener) != text.count(closer):
            return True
    # A value that begins as it was begun already.
    opener, closer = pairs[-1]
    begins = opener[-1:] == ">" and stripped.startswith(opener)
    return begins and text.count(opener) != text.count(closer)


@lru_cache(maxsize=256)
def _pairs(form: Form) -> tuple[tuple[str, str], ...]:
    return form.pairs


def _breaks_key(form: Form, text: str) -> bool:
    key, value = _pairs(form)[-2:]
    return value[0][-1:] == ">" and text.count(key[0]) != text.count(key[1])


def _went_on(form: Form, arguments: Value, view: View | None) -> bool:
    # A value begins before its own tag, or goes on over the next parameter's. Prose about tags
    # names parameters that the tool does not have.
    texts = arguments.values() if isinstance(arguments, dict) else ()
    head = _pairs(form)[-1][0]
    for text in texts:
        if not isinstance(text, str) or "<" not in text:
            continue
        begin = text.find(head, 0, _BEFORE_VALUE)
        if form.value_has_tag and begin >= 0 and "<" not in text[:begin]:
            return True
        if view is not None and _runs_into(form, text, view):
            return True
        match = form.next_parameter.search(text)
        if match is not None:
            name = match.groupdict().get("next")
            if name is None or view is None or view.child(name) is not None:
                return True
    return False


def _runs_into(form: Form, text: str, view: View) -> bool:
    # As in `</parameter<>parameter=days>`. Whole tags are the value's own.
    pairs = _pairs(form)
    closer = pairs[-1][1].rstrip(">]")
    at = text.find(closer) if closer else -1
    if at < 0:
        return False
    is_damaged = text[at : at + len(pairs[-1][1])] != pairs[-1][1]
    openers = {pair[0].lstrip("<[").rstrip(" \"'=>]") for pair in pairs[-2:]} - {""}
    for opener in openers:
        for name in view.properties:
            tag = re.search(rf"{re.escape(opener)}[\s\"'=>]{{0,4}}{re.escape(name)}(?![\w-])", text)
            if tag is not None and (is_damaged or text[tag.start() - 1 : tag.start()] not in "<["):
                return True
    return False


def _holds_token(form: Form, arguments: Value) -> bool:
    tokens = _SPECIAL.findall(form.parameter_closer)
    texts = arguments.values() if isinstance(arguments, dict) else ()
    return any(isinstance(text, str) and token in text for text in texts for token in tokens)


def say_tags_in_values(form: Form, body: str, call: Decoded) -> Decoded:
    # Nothing escapes the tags there, so a person has to be able to see it.
    arguments = call.arguments
    if not call.readable or not isinstance(arguments, dict):
        return call
    # What is read as JSON has quotes around its texts.
    if any(step.rule == "read.json-body" for step in call.steps):
        return call
    steps: list[Step] = []
    for name, value in arguments.items():
        if not isinstance(value, str) or "<" not in value or not form.own_tags.search(value):
            continue
        path = f"/{escape_token(name)}"
        start, end = call.places().get(path, (0, 0))
        if form.own_tags.search(body, start, end):
            steps.append(Step("read", "read.tags-in-value", path, None, value, value))
    return replace(call, steps=(*call.steps, *steps)) if steps else call


def hold_no_tag(calls: tuple[Decoded, ...], tools: Tools) -> bool:
    # Of a tool that no one knows nothing can be told.
    for call in calls:
        tool = tools.get(call.name)
        if tool is not None and not is_plain_object(call.arguments, view_of(tool.schema_json)):
            return False
    return True


def in_raw(calls: tuple[Decoded, ...], edits: Sequence[Edit]) -> tuple[Decoded, ...]:
    """Return calls of an edited body with their places in the body as it came. Each edit goes to
    the last call that begins before it, or the first.
    """
    back = EditMap(edits)
    starts = [back.raw_span(*call.places()[""])[0] for call in calls]
    owners = [max(bisect_right(starts, edit.span.start) - 1, 0) for edit in edits]

    moved: list[Decoded] = []
    for index, call in enumerate(calls):
        name_span = call.name_span
        if name_span is not None:
            name_span = Span(*back.raw_span(name_span.start, name_span.end))
        places = _places(call, back)
        own = tuple(edit for edit, owner in zip(edits, owners, strict=True) if owner == index)
        moved.append(replace(call, name_span=name_span, edits=own, places=places))
    return tuple(moved)


def _places(call: Decoded, back: EditMap) -> Callable[[], Places]:
    inner = call.places
    return lambda: {path: back.raw_span(a, b) for path, (a, b) in inner().items()}


def _refused(call: Decoded) -> Decoded:
    if not call.readable:
        return call
    message = "a value or a name looks like a damaged tag"
    problem = Problem("decode", "decode.ambiguous", "error", message, "", call.name_span)
    return Decoded(call.name, None, name_span=call.name_span, problems=(problem,), readable=False)


def _agree(one: tuple[Decoded, ...], other: tuple[Decoded, ...]) -> bool:
    return [(call.name, call.arguments) for call in one] == [
        (call.name, call.arguments) for call in other
    ]


def _all_readable(calls: tuple[Decoded, ...]) -> bool:
    return all(call.readable for call in calls)


def _any_repaired(calls: tuple[Decoded, ...]) -> bool:
    return any(call.edits for call in calls)


def _without(calls: tuple[Decoded, ...], doubtful: list[bool]) -> tuple[Decoded, ...]:
    pairs = zip(calls, doubtful, strict=True)
    return tuple(_refused(call) if refuse else call for call, refuse in pairs)
