"""Reads one function of a body: its tags, its values, and what is missing or written otherwise."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from typing import TypeAlias

from ...arguments.rjson.repair import read_damaged
from ...arguments.rjson.strict import Refusal, read_if_strict
from ...arguments.schema.view import View, view_of
from ...core.types import Edit, Span, Step
from ...core.values import Value, escape_token
from ..base import DecodeContext, Decoded, unread
from ..json.call import in_order
from ..json.source import ONE_CALL, BodySource
from ..json.source import unescape_offsets as json_offsets
from ..rxml.element import unescape_offsets
from ..rxml.reader import ElementReader
from .form import (
    Form,
    Mark,
    decoded_text,
    inner_places,
    kind_of_flag,
    section_in,
    typed_value,
    value_offsets,
)
from .scan import ParameterScan
from .slots import SlotForm
from .strict import trimmed

# How it works: the schema of the items decides. Where it names the kind of the JSON, coercion reads
# each text as an item. Where it names texts alone, an object may be meant as text, such as a row of
# a log; a list may not, since the parameter is one itself and models write it as one JSON list.

_MAX_DEPTH = 200
_TEXTS = re.compile(r"\[\s*(['\"]).*\1\s*,?\s*\]", re.DOTALL)  # JSON, or as Python writes them


def holds_json_unread(texts: Sequence[Value], member: View | None) -> bool:
    # Under a list of texts, `["a"]` and `["b"]` may be one list in two parts, or the second
    # list in place of the first; engines differ. Objects may be texts where the schema says so.
    kinds = {kind for text in texts if (kind := _container_in(text))}
    return any(not _takes(kind, member) for kind in kinds)


def may_be_list(member: View | None) -> bool:
    # A schema without a type says nothing.
    if member is None:
        return False
    views = (member, *member.alternatives)
    return any("array" in (view.types or ()) or view.items is not None for view in views)


def _container_in(text: Value) -> str:
    if not isinstance(text, str) or text.lstrip()[:1] not in ("[", "{"):
        return ""
    text = text.strip()
    if _TEXTS.fullmatch(text):
        return "array"
    values = read_if_strict(text, _MAX_DEPTH)
    if values is None or len(values) != 1:
        return ""
    return "array" if isinstance(values[0], list) else "object"


def _takes(kind: str, member: View | None) -> bool:
    lists = member.alternatives if member is not None else ()
    items = [view.items for view in lists if view.items is not None]
    types = {name for item in items for view in item.alternatives for name in view.types or ()}
    if kind in types:
        # A text that may stay text is never read as JSON.
        return not any(item.admits_string() for item in items)
    return kind == "object" and "string" in types


# How it works
#
# State: the marks of one function (the tags that `ParameterScan` found to count), and `_pos`, the
# offset up to which the body is accounted for. Every character of the function ends up in one of
# four: a tag, a value, white space between tags, or an edit that removes it. Whatever is in none of
# them is a `Refusal`, so nothing of a call is lost in silence.
#
# Invariant: the edits bring the body to the format's own spelling, and the edited body read
# strictly gives the same values (the codec checks that for every repaired body).
#
# Cost: linear in the function, one pass over its marks.


_Text: TypeAlias = tuple[str, int, int]
"""A value: its text, and where it is in the body."""

_VALUE = re.compile(r"\s*+<value>((?:[^<]|<(?!/?value>))*+)</value>\s*+")
_AROUND_WORD = "</>\\ \t"  # in a closer
# What in front of the first function is more than words: the beginning of markup, JSON or a tag.
_NO_MARKUP = re.compile(r"[^<>\[\]=]{1,80}")
_NO_PROSE = re.compile(r"[<{\[=]")


class FunctionReader:
    """Reads one function: the marks [start, stop) and the text up to the next function.

    last: no function follows, so that the text may have ended early inside this one.
    """

    def __init__(
        self,
        form: Form,
        body: str,
        context: DecodeContext,
        scan: ParameterScan,
        start: int,
        stop: int,
        *,
        last: bool,
    ) -> None:
        self._form = form
        self._body = body
        self._context = context
        # Values in which tags were taken for content: if such a value lacks its closer, it may have
        # ended at one of those tags.
        self._quoting = scan.quoting
        self._marks: Sequence[Mark] = scan.marks[start:stop]
        self._index = start
        # The text may end inside the last function of a block without its closer.
        self._cut = last and not context.closed
        self._last = last
        self._end = len(body) if last else scan.marks[stop].start
        self._head = self._marks[0]
        self._pos = self._head.end
        self._edits: list[Edit] = []
        self._values: dict[str, list[_Text]] = {}
        self._flags: dict[str, str] = {}  # parameter -> the type that its tag says
        self._steps: list[Step] = []
        tool = context.tools.get(self._head.name)
        self._view: View | None = view_of(tool.schema_json) if tool else None

    @property
    def _name_span(self) -> Span:
        start = self._head.name_start
        return Span(start, start + len(self._head.name))

    @property
    def start(self) -> int:
        return self._head.start

    @property
    def breaks_off(self) -> bool:
        # The text after it may be part of the words it ends in.
        if any(mark.kind == "/function" for mark in self._marks):
            return False
        return self._body[self._marks[-1].end : self._end].strip() != ""

    def unread(self, refusal: Refusal) -> Decoded:
        """Return the function as an unreadable one, although others of its block can be read."""
        place = Span(refusal.position, min(refusal.position + 1, len(self._body)))
        cut = Span(self._head.start, self._end) if self._cut else None
        return unread(self._head.name, refusal, place, name_span=self._name_span, cut=cut)

    def read(self) -> Decoded:
        """Return the call. Raises Refusal if it cannot be read without inventing."""
        if self._index == 0:
            text = self._body[: self._head.start]
            if _NO_PROSE.search(text):
                message = "before the function stands what is neither a tag nor plain words"
                raise Refusal("decode.tags", message, 0)
            if text.strip():
                self._fix(len(text) - len(text.lstrip()), len(text.rstrip()), "", "tags.prose")

        self._respell_tag(self._head, function=True)
        elements = self._elements()
        if elements is not None:
            return elements
        # An object has no tags next to it but the function's own, so at most one mark is one.
        json = next((mark for mark in self._marks[1:] if mark.kind == "json"), None)
        if not self._read_marks():
            self._close_function(json)

        self._check_gap(self._pos, self._end, closed=True)
        self._edits = list(in_order(*self._edits))
        return self._json(json) if json is not None else self._decoded()

    def _read_marks(self) -> bool:
        marks = self._marks
        closed = False
        i = 1
        while i < len(marks):
            mark = marks[i]
            following = marks[i + 1] if i + 1 < len(marks) else None
            self._check_gap(self._pos, mark.start, closed)
            self._pos = mark.end
            i += 1
            if mark.kind == "/function":
                # With a parameter after it, it closed too early.
                if following is not None and following.kind == "parameter":
                    self._fix(mark.start, mark.end, "", "tags.early-closer")
                else:
                    self._respell_closer(mark, self._form.function_closer)
                    closed = True
            elif mark.kind == "function" or (
                # The same parameter's tag follows at once, so that no value is between.
                mark.kind == "parameter"
                and following is not None
                and (following.kind, following.name) == ("parameter", mark.name)
                and not self._body[mark.end : following.start].strip()
            ):
                self._fix(mark.start, mark.end, "", "tags.doubled-opener")
            elif mark.kind == "parameter":
                self._respell_tag(mark, function=False)
                if following is not None and following.kind == "/parameter":
                    self._respell_closer(following, self._form.parameter_closer)
                    self._take_value(mark, following.start)
                    self._pos = following.end
                    i += 1
                else:
                    self._close_parameter(mark, i - 1, following)

        return closed

    # Tags and what is between them

    def _fix(self, start: int, end: int, text: str, rule: str) -> None:
        # Most tags are in the format's own spelling: strict bodies come here without any edit.
        if self._body[start:end] == text:
            return
        if not self._context.repair:
            excerpt = self._body[start:end][:40]
            raise Refusal("decode.tags", f"not as the format writes it: {excerpt!r}", start)

        self._edits.append(Edit(Span(start, end), text, rule))

    def _respell_tag(self, mark: Mark, *, function: bool) -> None:
        form = self._form
        if form.owns(self._body[mark.start : mark.end], mark.name, function=function):
            return
        own = form.function_tag(mark.name)
        if not function:
            own = form.parameter_tag(mark.name, kind_of_flag(mark.flag))
        self._fix(mark.start, mark.end, own, mark.rule)

    def _respell_closer(self, mark: Mark, own: str) -> None:
        if mark.doubtful and not self._context.closed:
            message = f"the text ends inside {self._head.name!r}"
            raise Refusal("decode.truncated-value", message, mark.start)
        tag = self._body[mark.start : mark.end]
        if tag == own:
            return
        if not tag:  # after a tag that closes itself
            rule = "tags.self-closed"
        else:
            is_same = tag.strip(_AROUND_WORD).lower() == own.strip(_AROUND_WORD).lower()
            rule = "tags.spelling" if is_same else "tags.mismatched-closer"
        self._fix(mark.start, mark.end, own, rule)

    def _check_gap(self, start: int, end: int, closed: bool) -> None:
        # closed: it is after the closer of the function.
        pos = start
        # Right after the function's tag a parameter's closer closes nothing.
        if closed or start != self._head.end:
            pos = self._drop_doubled_closers(start, end, closed)

        text = self._body[pos:end]
        if not text.strip() or self._form.space.fullmatch(text):
            return

        at = pos + len(text) - len(text.lstrip())
        # Behind the last function nothing but its block's closer is to come.
        if closed and self._last and self._context.closed and _NO_MARKUP.fullmatch(text):
            self._fix(at, pos + len(text.rstrip()), "", "tags.prose")
            return
        between = "functions" if closed else "parameters"
        message = f"neither a tag nor white space between the {between}: {text.strip()[:40]!r}"
        # At the end of a text that was cut off it may be the beginning of a tag.
        cut = not self._context.closed and end == len(self._body)
        raise Refusal("decode.truncated-value" if cut else "decode.tags", message, at)

    # What lacks its closer

    def _drop_doubled_closers(self, start: int, end: int, closed: bool) -> int:
        pattern = _stray_closer(self._form, function=closed)
        pos = start
        while (match := pattern.match(self._body, pos, end)) is not None:
            if not closed and any(edit.rule == "tags.doubled-opener" for edit in self._edits):
                message = "a parameter inside a parameter of the same name"
                raise Refusal("decode.ambiguous", message, match.start("tag"))
            self._fix(match.start("tag"), match.end(), "", "tags.doubled-closer")
            pos = match.end()
        return pos

    def _close_parameter(self, mark: Mark, i: int, following: Mark | None) -> None:
        if following is None and self._cut:
            message = f"the text ends inside {mark.name!r}"
            raise Refusal("decode.truncated-value", message, mark.end)
        if self._index + i in self._quoting:
            message = f"it cannot be told where the value of {mark.name!r} ends"
            raise Refusal("decode.ambiguous", message, mark.end)
        end = following.start if following is not None else self._end
        own = self._form.parameter_closer
        # Only the end of the value is looked at, so that many long values stay linear.
        wrong = _wrong_closer(self._form).search(self._body, max(mark.end, end - 128), end)
        if wrong:
            self._fix(wrong.start("tag"), wrong.end("tag"), own, "tags.mismatched-closer")
            self._take_value(mark, wrong.start("tag"))
        else:
            # The line break in front of the next tag is the format's, not the value's.
            stop = end - 1 if not self._form.trim and self._body[end - 1] == "\n" else end
            stop = max(stop, mark.end)
            self._fix(stop, stop, own, "tags.unclosed-parameter")
            self._take_value(mark, stop)

        self._pos = end

    def _close_function(self, json: Mark | None) -> None:
        # Without its closer a body of tags may go on. An object in place of parameters
        # closes itself.
        pos, end = self._pos, self._end
        self._pos = end
        # Its parameters look whole, but another one, or more of the last value, may have come.
        # Elements are refused there for the same reason.
        if self._cut and json is None:
            message = f"the text ends inside {self._head.name!r}"
            raise Refusal("decode.truncated-value", message, self._head.end)

        self._check_gap(pos, end, closed=False)
        self._fix(end, end, self._form.function_closer, "tags.unclosed-function")

    # Values

    def _take_value(self, mark: Mark, end: int) -> None:
        start = mark.end
        # The line breaks that put a value on lines of its own are the format's, not the value's.
        if self._form.trim:
            start, end = trimmed(self._body, start, end)
        if mark.flag:
            self._flags[mark.name] = mark.flag
        self._values.setdefault(mark.name, []).append(self._text_at(start, end))

    def _text_at(self, start: int, end: int) -> _Text:
        text = self._body[start:end]
        decoded = decoded_text(self._form, text)
        if self._form.sections and text.startswith("<!"):
            inner, stop = section_in(text)
            return decoded, start + inner, start + stop
        return decoded, start, end

    def _unwrap(self) -> None:
        # Some models put `<value>` around each. It is taken off where the schema has no place for a
        # text, or if all of several values have it: one text alone may be written so on purpose.
        inner = {
            name: [_VALUE.fullmatch(self._body, start, end) for _, start, end in texts]
            for name, texts in self._values.items()
        }
        every_match = list(chain.from_iterable(inner.values()))
        all_wrapped = len(every_match) > 1 and all(every_match)

        for name, matches in inner.items():
            # Of a list either all items have it, or it is part of the texts.
            wrapped = [match for match in matches if match]
            member = self._member(name)
            takes_text = member is None or member.admits_string()
            if len(wrapped) < len(matches) or (takes_text and not all_wrapped):
                continue
            values = [self._text_at(*trimmed(self._body, *match.span(1))) for match in wrapped]
            before, after = (
                texts if len(texts) > 1 else texts[0]
                for texts in ([text for text, _, _ in v] for v in (self._values[name], values))
            )
            self._values[name] = values
            self._step(name, "read.value-element", before, after)

    def _step(self, name: str, rule: str, before: Value, after: Value) -> None:
        path = f"/{escape_token(name)}"
        self._steps.append(Step("read", rule, path, None, before, after))

    def _member(self, name: str) -> View | None:
        return self._view.child(name) if self._view is not None else None

    def _decoded(self) -> Decoded:
        # One argument a parameter. All values are text, which the schema types later, where
        # no tag says their types.
        if "<value>" in self._body:
            self._unwrap()
        form = self._form
        arguments: dict[str, Value] = {}
        places = {"": (self._head.start, self._end)}
        for name, values in self._values.items():
            path = f"/{escape_token(name)}"
            members = [self._typed(name, text) for text in self._texts(name, values)]
            start = values[0][1]
            if len(members) == 1:
                # Equal texts have one value, whose place is that of the first.
                arguments[name] = members[0]
                spans = [(path, start, values[0][2])]
            else:
                arguments[name] = members
                places[path] = (start, values[-1][2])
                spans = [(f"{path}/{k}", a, b) for k, (_, a, b) in enumerate(values)]
            for (at, a, b), value in zip(spans, members, strict=True):
                places[at] = (a, b)
                if form.flags:
                    entities = form.entities and not self._body.endswith("<![CDATA[", 0, a)
                    inner = inner_places(self._body[a:b], a, value, entities=entities)
                    places |= {at + below: place for below, place in inner.items()}

        return Decoded(
            self._head.name,
            arguments,
            name_span=self._name_span,
            edits=tuple(self._edits),
            steps=tuple(self._steps),
            untyped=not form.flags or (form.flags_may_miss and not self._flags),
            places=lambda: places,
            unescape=value_offsets,
        )

    def _texts(self, name: str, values: list[_Text]) -> list[str]:
        # The texts that a parameter has: several where they are a list. Raises Refusal where no one
        # can tell.
        form = self._form
        texts = [text for text, _, _ in values]
        start = values[0][1]
        cut_tag = form.parameter[-1][1:] if isinstance(form, SlotForm) else ""
        if cut_tag and form.value_has_tag and texts[0].startswith(cut_tag):
            raise Refusal("decode.tags", "a value begins with its own tag, cut", start)
        if len(texts) == 1:
            return texts
        member = self._member(name)
        # Under a schema without lists several texts are wrong in any case. A union says nothing.
        single = member is not None and not member.any_of and not member.allows("array")
        holds_json = not single and holds_json_unread(texts, member)
        # The same each time, where the schema wants no list, or each is a whole one.
        if len(set(texts)) == 1 and (single or holds_json):
            self._step(name, "read.equal-duplicate", texts, texts[0])
            return texts[:1]
        # A tag that says the type of its value leaves nothing to ask.
        if name not in self._flags and holds_json:
            message = f"{name!r} stands several times, with a list or an object in each"
            raise Refusal("decode.ambiguous", message, start)
        # Under a schema of another type, validation has the words for the list.
        if not (form.repeats_are_lists and single) and not may_be_list(member):
            message = f"{name!r} stands several times, and no schema says that it is a list"
            raise Refusal("decode.duplicate-key", message, values[1][1])
        return texts

    def _typed(self, name: str, text: str) -> Value:
        return typed_value(text, self._flags.get(name, ""), self._context.max_depth)

    # Other things in place of parameters

    def _elements(self) -> Decoded | None:
        # None if they are not all that is between the tags, or the tool does not know each.
        view = self._view
        # Nothing but markup, none of it a tag that counts, is between both tags.
        if view is None or [mark.kind for mark in self._marks[1:]] != ["/function"]:
            return None
        start, end = self._head.end, self._marks[1].start
        if self._body[start:end].lstrip()[:1] != "<":
            return None
        repair = self._context.repair
        reader = ElementReader(self._body[start:end], view, repair=repair, closed=True)
        value = reader.read()
        if not value or any(name not in view.properties for name in value):
            return None

        # Only now is it sure that the function is read this way, so that edits may be made.
        self._respell_closer(self._marks[1], self._form.function_closer)
        self._check_gap(self._marks[1].end, self._end, closed=True)
        for edit in reader.edits:
            self._edits.append(Edit(edit.span.shift(start), edit.text, edit.rule))

        places = {path: (a + start, b + start) for path, (a, b) in reader.places.items()}
        if self._form.trim:  # texts on lines of their own, as this format's are
            for name, text in value.items():
                path = f"/{escape_token(name)}"
                if isinstance(text, str) and path in places:
                    value[name] = text[slice(*trimmed(text, 0, len(text)))]
                    places[path] = trimmed(self._body, *places[path])
        step = Step("read", "read.element-parameters", "", Span(start, end), None, value)
        return Decoded(
            self._head.name,
            value,
            name_span=self._name_span,
            edits=in_order(*self._edits),
            steps=(step,),
            untyped=True,
            places=lambda: places,
            unescape=unescape_offsets,
        )

    def _json(self, mark: Mark) -> Decoded:
        text = self._body[mark.start : mark.end]
        depth = self._context.max_depth
        json_edits: list[Edit] = []
        if self._context.repair:
            # What ends before the body does was ended by something.
            closed = self._context.closed or mark.end < len(self._body)
            values, json_edits = read_damaged(
                text, closed=closed, numbers_end=closed, prose=False, max_depth=depth
            )
        else:
            strict = read_if_strict(text, depth)
            if strict is None:
                message = "the body is no strict JSON, and repair is off"
                raise Refusal("decode.json", message, mark.start)
            values = strict
        if len(values) != 1 or not isinstance(values[0], dict):
            message = "the arguments are no single JSON object"
            raise Refusal("call.not-an-object", message, mark.start)
        value = values[0]

        inner = BodySource(text, tuple(json_edits), ONE_CALL).places_of(0, "", "")
        for edit in json_edits:
            self._edits.append(Edit(edit.span.shift(mark.start), edit.text, edit.rule))

        step = Step("read", "read.json-body", "", Span(mark.start, mark.end), None, value)
        return Decoded(
            self._head.name,
            value,
            name_span=self._name_span,
            edits=in_order(*self._edits),
            steps=(step,),
            places=lambda: {
                path: (a + mark.start, b + mark.start) for path, (a, b) in inner().items()
            },
            unescape=json_offsets,
        )


@lru_cache(maxsize=256)
def _stray_closer(form: Form, *, function: bool) -> re.Pattern[str]:
    return re.compile(rf"\s*(?P<tag>{form.closers_like(function=function)})", re.ASCII)


@lru_cache(maxsize=256)
def _wrong_closer(form: Form) -> re.Pattern[str]:
    return re.compile(rf"(?P<tag>{form.closers_like(function=False)})\s*\Z", re.ASCII)
