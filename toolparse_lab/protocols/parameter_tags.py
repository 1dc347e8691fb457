"""A tag that names the function, in it one tag a parameter with raw text: `qwen3_coder_xml` and its kin.

The formats are rows of constants (`TagForm`). What is missing or spelt otherwise is an edit; what cannot be read
without inventing is refused, function by function, so that one bad call of a block leaves the others alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from ..errors import UnwritableCall
from ..rjson.damage import Refusal
from ..rjson.positions import EditMap, apply_edits, find_places
from ..rjson.repair import read_damaged, read_if_strict
from ..rxml.reader import unescape, unescape_offsets
from ..scan import Scanner
from ..schema.view import View, view_of
from ..toolspec import ToolSpec
from ..types import Edit, Problem, Span, Step
from ..values import Value, escape_token, read_strict, same, write_canonical
from .base import NEED_MORE, Decoded, NeedMore, Opening, Protocol, Reading, Tools
from .json_call import JsonCall
from .json_call import unescape_offsets as json_offsets
from .parameter_scan import Mark, ParameterScan, TagForm, tag_pattern

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
        name = m["fn"] or m["ft"]
        own = m["f"] is not None and m[0] == self.form.tag(self.form.function, name)
        # Without its block a call is only believed in the format's own spelling, or if the tool is known.
        if m["f"] is None or not (own or name in tools):
            return None
        body, partial, _ = _head_patterns(self.form)
        if body.match(text, m.end()):
            return Opening(0)
        return NEED_MORE if not final and partial.match(text, m.end()) else None

    def suits(self, opening: Opening, text: str, at: int, final: bool, tools: Tools) -> bool | NeedMore:
        """Where another format has the same opener: the block begins with a function's tag."""
        while at < len(text) and text[at].isspace():
            at += 1
        if _head_patterns(self.form)[2].match(text, at):
            return True
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
        functions: list[_Function] = []
        for i, start in enumerate(starts):
            stop = starts[i + 1] if i + 1 < len(starts) else len(scan.marks)
            one = _Function(self.form, body, reading, scan, start, stop, last=stop == len(scan.marks))
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
        for escape in (False, True):
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
        """`escape`: tags of the format inside values are escaped as well."""
        form = self.form
        line = "\n" if form.lines else ""
        edge = "\n" if form.trim and form.lines else ""
        out = [form.opener, line if form.opener else "", form.tag(form.function, name), line]
        for key, value in texts.items():
            text = _NEEDS_AMP.sub("&amp;", value)
            if escape:
                text = tag_pattern(form).sub(lambda m: "&lt;" + m[0][1:], text)
            out += [form.tag(form.parameter, key), edge, text, edge, f"</{form.parameter}>", line]
        out += [f"</{form.function}>", line if form.closer else "", form.closer]
        return "".join(out)


_NEEDS_AMP = re.compile(r"&(?=#[0-9]{1,8};|#[xX][0-9a-fA-F]{1,6};|(?:lt|gt|amp|quot|apos);)")


def _text_of(value: Value) -> str:
    return value if isinstance(value, str) else write_canonical(value)


class _Function:
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
        self._fix(mark.start, mark.end, self.form.tag(word, mark.name), "tags.spelling")

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
            if self.body.startswith("\n", start, end):
                start += 1
            elif self.body.startswith("\r\n", start, end):
                start += 2
            if end > start and self.body[end - 1] == "\n":
                end -= 2 if self.body[end - 2 : end - 1] == "\r" and end - 2 >= start else 1
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

    def _decoded(self) -> Decoded:
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


def _protocol(form: TagForm, id: str, title: str, aliases: tuple[str, ...] = ()) -> Protocol:
    return Protocol(
        id=id, aliases=aliases, title=title, envelope=ParameterTags(form), codec=ParameterCall(form),
        tags=frozenset(("delimited", "schema-typed")),
    )  # fmt: skip


QWEN3_CODER_XML = _protocol(
    TagForm(), "qwen3_coder_xml", "<function=…> and <parameter=…> in <tool_call>", ("qwen3coder", "qwen3_xml")
)
