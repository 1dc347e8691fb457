"""Body family: JSON objects that name a tool and hold its arguments, one or several to a body."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..rjson.damage import Refusal
from ..rjson.positions import EditMap, apply_edits, find_places
from ..rjson.repair import read_damaged
from ..rjson.strict import read_if_strict, too_deep
from ..toolspec import ToolSpec
from ..types import Edit, Problem, Span, Step
from ..values import Value, escape_token, write_canonical
from .base import Decoded, Places, Reading

NAME_KEYS = ("name", "tool_name", "tool", "function", "function_name")
ARGUMENT_KEYS = ("arguments", "parameters", "args", "params", "input", "tool_input")
_ID_KEYS = ("id", "tool_call_id", "call_id")
# A name that stands first and whole: what follows it may be damaged as it likes.
_NAME_PLAIN = re.compile(rf'\s*\{{\s*"(?:{"|".join(NAME_KEYS)})"\s*:\s*"([^"\\\x00-\x1f]+)"\s*[,}}]')
_NAME_FIRST = re.compile(r'\s*\{\s*"name"\s*:\s*"([^"\\]*)"')


@dataclass(frozen=True, slots=True)
class JsonCall:
    """Codec: `{"name": …, "arguments": {…}}` between an opener and a closer.

    name_key and arguments_key are the format's own; the others are read as aliases, each a step.
    """

    opener: str
    closer: str
    name_key: str = "name"
    arguments_key: str = "arguments"

    def strict(self, body: str, reading: Reading) -> bool:
        values = read_if_strict(body, reading.max_depth)
        if values is None:
            return False
        calls = [c for v in values for c in (v if isinstance(v, list) else [v]) if isinstance(c, dict)]
        texts = [t for c in calls for k in ARGUMENT_KEYS if isinstance(t := c.get(k), str) and t.strip()[:1] == "{"]
        return all(read_if_strict(t, reading.max_depth) is not None for t in texts)

    def read(self, body: str, reading: Reading) -> tuple[Decoded, ...]:
        known = reading.known
        limit = reading.max_depth
        if known is not None and known[0] is body and (len(body) <= limit or not too_deep(body, [known[1]], limit)):
            plain = self._plain(known[1], body)
            if plain is not None:
                return (plain,)
        try:
            values, edits = read_body_values(body, reading)
        except Refusal as no:
            named = _NAME_PLAIN.match(body)
            if named:
                no.name, no.name_at = named[1], named.span(1)
            raise
        if not edits and len(values) == 1:
            plain = self._plain(values[0], body)
            if plain is not None:
                return (plain,)
        source = _Source(body, tuple(edits), _units(values))
        found: list[Decoded] = []
        for i, value in enumerate(values):
            if isinstance(value, list):
                if not value or not all(isinstance(v, dict) for v in value):
                    raise Refusal("call.not-an-object", "the body is a list, but not of calls", 0)
                found.extend(self._call(v, source, i, f"/{k}", reading) for k, v in enumerate(value))
            elif isinstance(value, dict):
                found.append(self._call(value, source, i, "", reading))
            else:
                raise Refusal("call.not-an-object", f"the body is no object but {write_canonical(value)[:40]}", 0)
        return tuple(found)

    def _plain(self, value: Value, body: str) -> Decoded | None:
        """The call as the format has it, name and arguments and nothing else; None for all others."""
        if type(value) is not dict or len(value) != 2:
            return None
        name, args = value.get(self.name_key), value.get(self.arguments_key)
        if type(name) is not str or not name or type(args) is not dict:
            return None
        span = None
        m = _NAME_FIRST.match(body)
        if m and m[1] == name and self.name_key == "name":
            span = Span(m.start(1), m.end(1))
        else:
            span = _Source(body, (), _ONE).span_of(0, f"/{escape_token(self.name_key)}")

        def places() -> Places:
            return _Source(body, (), _ONE).places_of(0, f"/{escape_token(self.arguments_key)}", "")()

        return Decoded(name, args, span, places=places, unescape=unescape_offsets)

    def _call(self, value: dict[str, Value], source: _Source, index: int, at: str, reading: Reading) -> Decoded:
        edits = source.edits_of(index, at)
        steps: list[Step] = []
        problems: list[Problem] = []
        wire_id = next((v for k in _ID_KEYS if isinstance(v := value.get(k), str)), None)
        inner = value.get("function")
        if isinstance(inner, dict) and self.name_key not in value:
            steps.append(Step("read", "read.function-wrapper", "", None, value, inner))
            value, at = inner, at + "/function"
        key = self._name_key(value)
        name = value.get(key) if key else None
        if key is None and len(value) == 1 and isinstance(next(iter(value.values())), dict):
            only = next(iter(value))
            if only in reading.tools:
                return self._name_is_key(only, value, source, index, at)
        if key is None or not isinstance(name, str) or not name:
            problem = Problem("read", "call.no-name", "error", "the body names no tool", "")
            return Decoded("", None, problems=(problem,), readable=False, edits=edits)
        if key != self.name_key:
            steps.append(Step("read", "read.alias-name", "", None, key, self.name_key))
        args_key = self._arguments_key(value, key)
        args: Value
        base = at
        if args_key is None:
            args, more, problem_found = self._no_arguments(value, key, name, reading)
            steps.extend(more)
            problems.extend(problem_found)
        else:
            args = value[args_key]
            base = f"{at}/{escape_token(args_key)}"
            if args_key != self.arguments_key:
                steps.append(Step("read", "read.alias-arguments", "", None, args_key, self.arguments_key))
        nested = ""
        if isinstance(args, str):
            nested = args
            args, step, inner_edits = self._double_encoded(args, reading)
            if inner_edits:
                placed = source.nested_edits(index, base, nested, inner_edits)
                if placed is None:
                    raise Refusal("decode.ambiguous", "the arguments are damaged JSON inside a damaged string", 0)
                edits = tuple(sorted((*edits, *placed), key=lambda e: (e.span.start, e.span.end)))
            if step is not None:
                steps.append(step)
        elif args is None:
            steps.append(Step("read", "read.empty-arguments", "", None, None, {}))
            args = {}
        if not isinstance(args, dict):
            problem = Problem("read", "call.not-an-object", "error", "the arguments are no JSON object", "")
            return Decoded(
                name, None, name_span=source.span_of(index, f"{at}/{key}"), wire_id=wire_id, steps=tuple(steps),
                problems=(problem,), readable=False, edits=edits,
            )  # fmt: skip
        return Decoded(
            name, args, name_span=source.name_span(index, at, key, name), wire_id=wire_id, steps=tuple(steps),
            problems=tuple(problems), edits=edits,
            places=source.places_of(index, base, nested, args if args_key is None else None), unescape=unescape_offsets,
        )  # fmt: skip

    def _name_is_key(self, name: str, value: dict[str, Value], source: _Source, index: int, at: str) -> Decoded:
        """`{"tool": {…}}`: a known tool's name as the only key."""
        base = f"{at}/{escape_token(name)}"
        return Decoded(
            name, value[name], name_span=source.key_span(index, base, name),
            steps=(Step("read", "read.name-is-key", "", None, value, value[name]),),
            edits=source.edits_of(index, at), places=source.places_of(index, base, ""), unescape=unescape_offsets,
        )  # fmt: skip

    def _name_key(self, value: dict[str, Value]) -> str | None:
        if isinstance(value.get(self.name_key), str):
            return self.name_key
        return next((k for k in NAME_KEYS if isinstance(value.get(k), str)), None)

    def _arguments_key(self, value: dict[str, Value], name_key: str) -> str | None:
        if self.arguments_key in value:
            return self.arguments_key
        return next((k for k in ARGUMENT_KEYS if k in value and k != name_key), None)

    def _no_arguments(
        self, value: dict[str, Value], key: str, name: str, reading: Reading
    ) -> tuple[Value, list[Step], list[Problem]]:
        """No key holds the arguments: they may lie beside the name, if the tool declares every one of them."""
        rest = {k: v for k, v in value.items() if k != key and k not in _ID_KEYS and k != "type"}
        if not rest:
            return {}, [Step("read", "read.empty-arguments", "", None, None, {})], []
        tool = reading.tools.get(name)
        properties = tool.schema.get("properties", {}) if tool and isinstance(tool.schema, dict) else {}
        if all(k in properties for k in rest):
            return rest, [Step("read", "read.flat-arguments", "", None, value, rest)], []
        raise Refusal("decode.ambiguous", f"no arguments, but other keys: {', '.join(list(rest)[:5])}", 0)

    def _double_encoded(self, text: str, reading: Reading) -> tuple[Value, Step | None, list[Edit]]:
        """The object that a text of JSON says, the step that says so, and the edits that its text took."""
        if not text.strip():
            return {}, Step("read", "read.empty-arguments", "", None, text, {}), []
        try:
            values, edits = _read_nested(text, reading)
        except Refusal:
            return text, None, []
        if len(values) == 1 and isinstance(values[0], dict):
            return values[0], Step("read", "read.double-encoded", "", None, text, values[0]), edits
        return text, None, []

    def write(self, name: str, arguments_json: str, tool: ToolSpec | None) -> str:
        text = f"{{{_quote(self.name_key)}:{_quote(name)},{_quote(self.arguments_key)}:{arguments_json}}}"
        return self.opener + text + self.closer


def read_body_values(body: str, reading: Reading) -> tuple[list[Value], list[Edit]]:
    """The JSON values of a body and the edits they took; raises Refusal."""
    if not body or body.isspace():
        raise Refusal("decode.empty", "there is nothing between opener and closer", 0)
    if reading.repair:
        closed = reading.closed
        return read_damaged(body, closed=closed, numbers_end=closed, prose=closed, max_depth=reading.max_depth)
    values = read_if_strict(body, reading.max_depth)
    if values is None:
        raise Refusal("decode.json", "the body is no strict JSON, and repair is off", 0)
    return values, []


def _quote(text: str) -> str:
    return write_canonical(text)


def _read_nested(text: str, reading: Reading) -> tuple[list[Value], list[Edit]]:
    if reading.repair:
        return read_damaged(text, closed=True, numbers_end=False, prose=False, max_depth=reading.max_depth)
    values = read_if_strict(text, reading.max_depth)
    if values is None:
        raise Refusal("decode.json", "no strict JSON", 0)
    return values, []


_ONE = [(0, "")]


def _units(values: list[Value]) -> list[tuple[int, str]]:
    """Where the calls of a body stand: the number of their value, and the path in it."""
    units: list[tuple[int, str]] = []
    for i, value in enumerate(values):
        units.extend([(i, f"/{k}") for k in range(len(value))] if isinstance(value, list) else [(i, "")])
    return units


class _Source:
    """A JSON body with its edits; finds places in it when asked, once for all its calls."""

    def __init__(self, body: str, edits: tuple[Edit, ...], units: list[tuple[int, str]]) -> None:
        self.body = body
        self.edits = edits
        self.units = units
        self._found: list[dict[str, tuple[int, int]]] | None = None
        self._edited = body
        self._back = EditMap(edits)
        self._places: list[tuple[int, dict[str, tuple[int, int]]]] = []  # start and places of the edited body's values
        self._shares: dict[tuple[int, str], tuple[Edit, ...]] | None = None
        self._ranked: dict[int, tuple[list[str], dict[str, int]]] = {}

    def edits_of(self, index: int, at: str) -> tuple[Edit, ...]:
        """Each edit goes with the call it stands in or behind; those before the first call with the first."""
        if len(self.units) <= 1 or not self.edits:
            return self.edits
        if self._shares is None:
            starts = [e.span.start for e in self.edits]
            begins = [self._all()[i][path][0] for i, path in self.units[1:]]
            cuts = [0, *(bisect_left(starts, begin) for begin in begins), len(starts)]
            self._shares = {u: self.edits[cuts[k] : cuts[k + 1]] for k, u in enumerate(self.units)}
        return self._shares[index, at]

    def _all(self) -> list[dict[str, tuple[int, int]]]:
        if self._found is None:
            self._edited = edited = apply_edits(self.body, self.edits)
            self._found = []
            for start, end in _value_spans(edited):
                places = find_places(edited[start:end]).values
                self._places.append((start, places))
                self._found.append({p: self._back.raw_span(start + a, start + b) for p, (a, b) in places.items()})
        return self._found

    def span_of(self, index: int, path: str) -> Span | None:
        place = self._all()[index].get(path)
        return Span(*place) if place else None

    def key_span(self, index: int, path: str, key: str) -> Span | None:
        """Where the key of a member stands: the last place of its name before the member's value."""
        place = self._all()[index].get(path)
        start = self.body.rfind(key, 0, place[0]) if place else -1
        return Span(start, start + len(key)) if start >= 0 else None

    def name_span(self, index: int, at: str, key: str, name: str) -> Span | None:
        if not self.edits and index == 0 and at == "" and key == "name":
            m = _NAME_FIRST.match(self.body)
            if m and m[1] == name:
                return Span(m.start(1), m.end(1))
        return self.span_of(index, f"{at}/{escape_token(key)}")

    def places_of(
        self, index: int, base: str, nested: str, members: Mapping[str, Value] | None = None
    ) -> Callable[[], Places]:
        """The places at and below `base`; only those of `members` where the object there holds more than them."""

        def find() -> Places:
            if not nested:
                here = self._below(index, base)
                if members is not None:
                    kept = {escape_token(k) for k in members}
                    here = {p: place for p, place in here.items() if p == "" or p.split("/", 2)[1] in kept}
                return here
            return self._nested_places(index, base, nested)

        return find

    def _below(self, index: int, base: str) -> dict[str, tuple[int, int]]:
        """A value is found after those inside it, so that they stand right before it in document order."""
        found = self._all()[index]
        if base not in found:
            return {"": found[""]}
        if index not in self._ranked:
            paths = list(found)
            self._ranked[index] = paths, {p: i for i, p in enumerate(paths)}
        paths, ranks = self._ranked[index]
        last = ranks[base]
        first = last
        while first > 0 and paths[first - 1].startswith(base + "/"):
            first -= 1
        return {p[len(base) :]: found[p] for p in paths[first : last + 1]}

    def nested_edits(self, index: int, base: str, text: str, edits: list[Edit]) -> list[Edit] | None:
        """Edits of a text that stands inside a JSON string, as edits of that string; None if it has edits itself."""
        start, end = self._all()[index][base]
        offsets = self._inside(start, end, text)
        if offsets is None or any(e.span.start < end and start < e.span.end for e in self.edits):
            return None
        return [
            Edit(Span(start + offsets[e.span.start], start + offsets[e.span.end]), _quote(e.text)[1:-1], e.rule)
            for e in edits
        ]

    def _inside(self, start: int, end: int, text: str) -> list[int] | None:
        """Where each character of a string's meaning stands inside it; None where that cannot be told."""
        raw = self.body[start:end]
        offsets = list(range(len(text) + 1)) if raw == text else unescape_offsets(raw)
        return offsets if offsets is not None and len(offsets) == len(text) + 1 else None

    def _nested_places(self, index: int, base: str, text: str) -> Places:
        """The places in a text that stands inside a JSON string, by way of the edited body: its strings are strict."""
        self._all()
        begin, places = self._places[index]
        first, last = (begin + offset for offset in places[base])
        offsets = unescape_offsets(self._edited[first:last])
        outer = self._back.raw_span(first, last)
        if offsets is None or len(offsets) != len(text) + 1:
            return {"": outer}
        try:
            _, edits = read_damaged(text, closed=True, numbers_end=False, prose=False, max_depth=1000)
        except Refusal:
            return {"": outer}
        back = EditMap(edits)
        out: dict[str, tuple[int, int]] = {}
        for path, (a, b) in find_places(apply_edits(text, edits)).values.items():
            start, end = back.raw_span(a, b)
            out[path] = self._back.raw_span(first + offsets[start], first + offsets[end])
        return out


_VALUE = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\]]|[^\s{}\[\]:,"]++', re.DOTALL)


def _value_spans(text: str) -> list[tuple[int, int]]:
    """The spans of the top-level values of strict JSON texts that stand one behind the other."""
    spans: list[tuple[int, int]] = []
    level, start = 0, 0
    for m in _VALUE.finditer(text):
        ch = m[0][0]
        if ch in "{[":
            if level == 0:
                start = m.start()
            level += 1
        elif ch in "}]":
            level -= 1
            if level == 0:
                spans.append((start, m.end()))
        elif level == 0:
            spans.append((m.start(), m.end()))
    return spans


_ESCAPED = re.compile(r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)", re.DOTALL)


def unescape_offsets(raw: str) -> list[int] | None:
    """For the inside of a JSON string: where each character of its meaning begins in `raw`, and the end."""
    offsets: list[int] = []
    pos = 0
    while pos < len(raw):
        offsets.append(pos)
        if raw[pos] == "\\":
            m = _ESCAPED.match(raw, pos)
            pos = m.end() if m else pos + 1
        else:
            pos += 1
    offsets.append(pos)
    return offsets
