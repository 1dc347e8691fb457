"""Reads one function of a body: its tags, its values, and what is missing or spelt otherwise."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from ..rjson.damage import Refusal
from ..rjson.positions import EditMap, apply_edits, find_places
from ..rjson.repair import read_damaged
from ..rjson.strict import read_if_strict
from ..rxml.reader import ElementReader, unescape, unescape_offsets
from ..schema.view import View, view_of
from ..types import Edit, Problem, Span, Step
from ..values import Value, escape_token
from .base import Decoded, Reading
from .json_call import unescape_offsets as json_offsets
from .parameter_form import Mark, TagForm
from .parameter_scan import ParameterScan
from .parameter_strict import trimmed


class FunctionReader:
    """One function of a body under way: the marks [start, stop) and the text up to the next function."""

    def __init__(
        self, form: TagForm, body: str, reading: Reading, scan: ParameterScan, start: int, stop: int, *, last: bool
    ) -> None:
        self.form = form
        self.body = body
        self.reading = reading
        self.scan = scan
        self.marks: Sequence[Mark] = scan.marks[start:stop]
        self.index = start
        self.last = last
        self.end = len(body) if last else scan.marks[stop].start
        self.head = self.marks[0]
        self.edits: list[Edit] = []
        self.values: dict[str, list[tuple[str, int, int]]] = {}
        self.steps: list[Step] = []
        tool = reading.tools.get(self.head.name)
        self.view: View | None = view_of(tool.schema_json) if tool else None

    @property
    def name_span(self) -> Span:
        return Span(self.head.name_start, self.head.name_start + len(self.head.name))

    def unread(self, no: Refusal) -> Decoded:
        """This function cannot be read, but others of its block can."""
        at = Span(no.position, min(no.position + 1, len(self.body)))
        cut = self.last and not self.reading.closed
        problems = [Problem("decode", no.code, "error", no.message, "", at)]
        if cut:
            text = "the text ends inside this call"
            problems.insert(0, Problem("scan", "call.truncated", "error", text, "", Span(self.head.start, self.end)))
        return Decoded(
            self.head.name, None, name_span=self.name_span, problems=tuple(problems), readable=False, truncated=cut
        )

    def read(self) -> Decoded:
        marks, form = self.marks, self.form
        if self.index == 0:
            self._before()
        self._tag(self.head, form.function)
        elements = self._elements()
        if elements is not None:
            return elements
        pos = self.head.end
        json: Mark | None = None
        closed = trusted = False
        done = 0
        i = 1
        while i < len(marks):
            mark = marks[i]
            self._gap(pos, mark.start, closed)
            pos = mark.end
            if mark.kind == "json":
                json = mark
            elif mark.kind == "/function" and i + 1 < len(marks) and marks[i + 1].kind == "parameter":
                self._fix(mark.start, mark.end, "", "tags.early-closer")
            elif mark.kind == "/function":
                self._closer(mark, form.function)
                closed = True
            elif mark.kind == "parameter":
                self._tag(mark, form.parameter)
                following = marks[i + 1] if i + 1 < len(marks) else None
                if following is not None and following.kind == "/parameter":
                    self._closer(following, form.parameter)
                    self._value(mark, following.start)
                    trusted = not following.doubtful
                    pos = following.end
                    i += 1
                else:
                    pos = self._unclosed(mark, i, following)
                    trusted = True
                done += 1
            i += 1
        if not closed:
            pos = self._unfinished(pos, trusted and done > 0, json)
        self._gap(pos, self.end, closed=True)
        self.edits.sort(key=lambda e: (e.span.start, e.span.end))
        return self._json(json) if json is not None else self._decoded()

    def _fix(self, start: int, end: int, text: str, rule: str) -> None:
        if self.body[start:end] == text:
            return
        if not self.reading.repair:
            raise Refusal("decode.tags", f"not as the format writes it: {self.body[start:end][:40]!r}", start)
        self.edits.append(Edit(Span(start, end), text, rule))

    def _tag(self, mark: Mark, word: str) -> None:
        self._fix(mark.start, mark.end, self.form.tag(word, mark.name), mark.rule)

    def _closer(self, mark: Mark, word: str) -> None:
        if mark.doubtful and not self.reading.closed:
            raise Refusal("decode.truncated-value", f"the text ends inside {self.head.name!r}", mark.start)
        rule = "tags.spelling" if _word(self.body[mark.start : mark.end]) == word else "tags.mismatched-closer"
        self._fix(mark.start, mark.end, f"</{word}>", rule)

    def _before(self) -> None:
        """Words between the opener and the first function."""
        text = self.body[: self.head.start]
        if text.strip():
            if re.search(r"[<{\[=]", text):
                raise Refusal("decode.tags", "before the function stands what is neither a tag nor plain words", 0)
            lead = len(text) - len(text.lstrip())
            self._fix(lead, len(text.rstrip()), "", "tags.prose")

    def _gap(self, start: int, end: int, closed: bool) -> None:
        """Between tags stands white space; a closer written twice is dropped, anything else is no call."""
        pos = start
        own = "functions" if closed else "parameters"
        words: tuple[str, ...] = self.form.functions if closed else self.form.parameters
        pattern = _stray(words)
        while (m := pattern.match(self.body, pos, end)) is not None:
            if start == self.head.end and not closed:
                break  # closes nothing: there was no parameter yet
            self._fix(m.start("tag"), m.end(), "", "tags.doubled-closer")
            pos = m.end()
        text = self.body[pos:end]
        if text.strip():
            at = pos + len(text) - len(text.lstrip())
            cut = not self.reading.closed and end == len(self.body)
            code = "decode.truncated-value" if cut else "decode.tags"
            raise Refusal(code, f"neither a tag nor white space between the {own}: {text.strip()[:40]!r}", at)

    def _value(self, mark: Mark, end: int) -> None:
        """The value behind a parameter's tag: verbatim but for one line break at each end."""
        start = mark.end
        if self.form.trim:
            start, end = trimmed(self.body, start, end)
        self.values.setdefault(mark.name, []).append((unescape(self.body[start:end]), start, end))

    def _unclosed(self, mark: Mark, i: int, following: Mark | None) -> int:
        """A value without its closer ends where the next tag stands, or at the block's end."""
        end = following.start if following is not None else self.end
        if following is None and self.last and not self.reading.closed:
            raise Refusal("decode.truncated-value", f"the text ends inside {mark.name!r}", mark.end)
        if self.index + i in self.scan.quoting:
            raise Refusal("decode.ambiguous", f"it cannot be told where the value of {mark.name!r} ends", mark.end)
        own = self.form.parameter
        m = _wrong_closer(self.form).search(self.body, max(mark.end, end - 128), end)
        if m:
            self._fix(m.start("tag"), m.end("tag"), f"</{own}>", "tags.mismatched-closer")
            self._value(mark, m.start("tag"))
        else:
            self._fix(end, end, f"</{own}>", "tags.unclosed-parameter")
            self._value(mark, end)
        return end

    def _unfinished(self, pos: int, complete: bool, json: Mark | None) -> int:
        """The function's closer is missing. Where the text ends, only a function that may be complete is read."""
        body, own = self.body, f"</{self.form.function}>"
        end = self.end
        if self.last and not self.reading.closed:
            takes_none = self.view is not None and not self.view.properties and not self.view.open
            if not (complete or json is not None or (takes_none and len(self.marks) == 1)):
                raise Refusal("decode.truncated-value", f"the text ends inside {self.head.name!r}", self.head.end)
            rest = body[pos:end]
            lead = len(rest) - len(rest.lstrip())
            if json is None and len(rest.strip()) > 1 and own.startswith(rest.strip()):
                self._fix(pos + lead, pos + len(rest.rstrip()), own, "tags.unclosed-function")
                return end
        self._gap(pos, end, closed=False)
        self._fix(end, end, own, "tags.unclosed-function")
        return end

    def _unwrap(self) -> None:
        """Takes `<value>` off a value: where the schema has no place for a text, or if all of several have it."""
        inner = {
            name: [_VALUE.fullmatch(self.body, start, end) for _, start, end in found]
            for name, found in self.values.items()
        }
        matches = [m for found in inner.values() for m in found]
        every = len(matches) > 1 and all(matches)
        for name, found in inner.items():
            if not (every or (all(found) and not self._takes_text(name))):
                continue
            places = [trimmed(self.body, *m.span(1)) for m in found if m]
            before = [text for text, _, _ in self.values[name]]
            self.values[name] = [(unescape(self.body[a:b]), a, b) for a, b in places]
            after = [text for text, _, _ in self.values[name]]
            pair = (before, after) if len(before) > 1 else (before[0], after[0])
            self.steps.append(Step("read", "read.value-element", f"/{escape_token(name)}", None, *pair))

    def _takes_text(self, name: str) -> bool:
        member = self.view.child(name) if self.view is not None else None
        return member is None or member.admits_string()

    def _decoded(self) -> Decoded:
        if "<value>" in self.body:
            self._unwrap()
        arguments: dict[str, Value] = {}
        places = {"": (self.head.start, self.end)}
        for name, found in self.values.items():
            path = f"/{escape_token(name)}"
            texts = [text for text, _, _ in found]
            if len(texts) > 1 and self._single(name) and len(set(texts)) == 1:
                self.steps.append(Step("read", "read.equal-duplicate", path, None, texts, texts[0]))
                texts = texts[:1]
            places[path] = (found[0][1], found[-1][2]) if len(texts) > 1 else found[0][1:]
            if len(texts) > 1:
                arguments[name] = texts
                places |= {f"{path}/{k}": (a, b) for k, (_, a, b) in enumerate(found)}
            else:
                arguments[name] = texts[0]
        return Decoded(
            self.head.name, arguments, name_span=self.name_span, edits=tuple(self.edits), steps=tuple(self.steps),
            untyped=True, places=lambda: places, unescape=unescape_offsets,
        )  # fmt: skip

    def _elements(self) -> Decoded | None:
        """Elements named after the parameters stand in place of parameter tags; None where they do not."""
        if len(self.marks) != 2 or self.marks[1].kind != "/function" or self.view is None:
            return None
        start, end = self.head.end, self.marks[1].start
        if self.body[start:end].lstrip()[:1] != "<":
            return None
        reader = ElementReader(self.body[start:end], self.view, repair=self.reading.repair, closed=True)
        value = reader.read()
        if not value or any(name not in self.view.properties for name in value):
            return None
        self._closer(self.marks[1], self.form.function)
        self._gap(self.marks[1].end, self.end, closed=True)
        edits = [*self.edits, *(Edit(e.span.shift(start), e.text, e.rule) for e in reader.edits)]
        edits.sort(key=lambda e: (e.span.start, e.span.end))
        places = {p: (a + start, b + start) for p, (a, b) in reader.places.items()}
        step = Step("read", "read.element-parameters", "", Span(start, end), None, value)
        return Decoded(
            self.head.name, value, name_span=self.name_span, edits=tuple(edits), steps=(step,), untyped=True,
            places=lambda: places, unescape=unescape_offsets,
        )  # fmt: skip

    def _single(self, name: str) -> bool:
        """The schema knows the parameter, and it is no list."""
        member = self.view.child(name) if self.view is not None else None
        return member is not None and not member.any_of and not member.allows("array")

    def _json(self, mark: Mark) -> Decoded:
        """The function's tag holds one JSON object: its arguments."""
        text = self.body[mark.start : mark.end]
        closed = self.reading.closed or mark.end < len(self.body)
        if self.reading.repair:
            values, edits = read_damaged(
                text, closed=closed, numbers_end=closed, prose=False, max_depth=self.reading.max_depth
            )
        else:
            strict = read_if_strict(text, self.reading.max_depth)
            if strict is None:
                raise Refusal("decode.json", "the body is no strict JSON, and repair is off", mark.start)
            values, edits = strict, []
        if len(values) != 1 or not isinstance(values[0], dict):
            raise Refusal("call.not-an-object", "the arguments are no single JSON object", mark.start)
        fixed = tuple(edits)

        def places() -> dict[str, tuple[int, int]]:
            back = EditMap(fixed)
            found = {p: back.raw_span(a, b) for p, (a, b) in find_places(apply_edits(text, fixed)).values.items()}
            return {p: (a + mark.start, b + mark.start) for p, (a, b) in found.items()}

        shifted = [Edit(e.span.shift(mark.start), e.text, e.rule) for e in fixed]
        every = sorted([*self.edits, *shifted], key=lambda e: (e.span.start, e.span.end))
        step = Step("read", "read.json-body", "", Span(mark.start, mark.end), None, values[0])
        return Decoded(
            self.head.name, values[0], name_span=self.name_span, edits=tuple(every), steps=(step,), places=places,
            unescape=json_offsets,
        )  # fmt: skip


_VALUE = re.compile(r"\s*+<value>((?:[^<]|<(?!/?value>))*+)</value>\s*+")


def _word(tag: str) -> str:
    return tag.strip("</> \t").lower()


@lru_cache(maxsize=64)
def _stray(words: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"\s*(?P<tag></[ \t]{{0,8}}(?:{'|'.join(words)})[ \t]{{0,8}}>)", re.IGNORECASE | re.ASCII)


@lru_cache(maxsize=64)
def _wrong_closer(form: TagForm) -> re.Pattern[str]:
    """Another word's closer at the end of a value that lacks its own."""
    words = "|".join(form.parameters)
    return re.compile(rf"(?P<tag></[ \t]{{0,8}}(?:{words})[ \t]{{0,8}}>)\s*\Z", re.IGNORECASE | re.ASCII)
