"""The frozen types that every layer shares. Offsets are Python code points, half-open; `raw` is never changed.

`ParseResult` is the only thing that frames, reports, views and telemetry read. It compares equal for every
chunking of the same text and goes to JSON and back. What a user can ask of a result later (an origin, a trace,
the repaired text) is computed when asked, from `raw` and the edits and steps stored here.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from . import hooks
from .errors import BadOptions, NoOrigin
from .toolspec import ToolSpec
from .values import Value, read_plain, unescape, write_canonical

SegmentKind: TypeAlias = Literal["text", "reasoning", "markup", "call", "recovered"]
CallStatus: TypeAlias = Literal["ok", "unknown_tool", "truncated", "undecodable", "draft"]
Severity: TypeAlias = Literal["error", "warning", "info"]
Stage: TypeAlias = Literal["scan", "repair", "decode", "read", "coerce", "validate"]
Policy: TypeAlias = Literal["none", "safe", "middleware", "seed-layer2", "lossy"]
Reasoning: TypeAlias = Literal["auto", "prefilled", "none"]

VERSION = 1
_POLICIES = ("none", "safe", "middleware", "seed-layer2", "lossy")


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Half-open range of code points of `raw`.

    >>> Span(2, 5).of("abcdefg")
    'cde'
    """

    start: int
    end: int

    def __init__(self, start: int, end: int) -> None:
        # A dozen are made for every call; what a frozen dataclass writes here takes twice the time.
        _set_start(self, start)
        _set_end(self, end)

    def __len__(self) -> int:
        return self.end - self.start

    def of(self, raw: str) -> str:
        return raw[self.start : self.end]

    def shift(self, by: int) -> Span:
        return Span(self.start + by, self.end + by)

    def covers(self, other: Span) -> bool:
        return self.start <= other.start and other.end <= self.end


_set_start: Callable[[Span, int], None] = Span.__dict__["start"].__set__
_set_end: Callable[[Span, int], None] = Span.__dict__["end"].__set__


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value stands in `raw`: the value without its quotes.

    `exact` is False where a structural change left no place of its own; the span is then its source's.
    """

    span: Span
    exact: bool = True

    @property
    def start(self) -> int:
        return self.span.start

    @property
    def end(self) -> int:
        return self.span.end


@dataclass(frozen=True, slots=True)
class Edit:
    """One repair: `raw[span]` is read as `text`. Edits of a call are sorted and never overlap."""

    span: Span
    text: str
    rule: str


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of `raw`. The segments of a result partition it.

    `body` is the call's or reasoning's inner text; `closed` is False where the text ended before its closer. `escaped`:
    the text stands inside a JSON string, so that its characters in `raw` are escaped.
    """

    kind: SegmentKind
    span: Span
    body: Span | None = None
    closed: bool = True
    escaped: bool = False

    def said(self, raw: str) -> str:
        """What the segment of this text says: its characters, or what they mean inside a JSON string."""
        text = (self.body if self.body is not None and self.kind == "reasoning" else self.span).of(raw)
        return unescape(text) if self.escaped else text


@dataclass(frozen=True, slots=True)
class Step:
    """One recorded change on the way from raw text to arguments.

    `path` is a JSON Pointer into the arguments, `span` the raw characters it concerns (None when there are none).
    `before` and `after` are the changed subtree as values; `before_json` and `after_json` render them.
    """

    stage: Stage
    rule: str
    path: str
    span: Span | None
    before: Value
    after: Value

    @property
    def before_json(self) -> str:
        return write_canonical(self.before)

    @property
    def after_json(self) -> str:
        return write_canonical(self.after)

    @property
    def lossless(self) -> bool:
        from .rules import rule_of

        return rule_of(self.rule).lossless


@dataclass(frozen=True, slots=True)
class Problem:
    """One complaint. `code` is a permanent id (see `rules`), `path` a JSON Pointer into the arguments or ''."""

    stage: Stage
    code: str
    severity: Severity
    message: str
    path: str = ""
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class ParseOptions:
    """What a parse was allowed to do; stored in the result.

    repair: read damaged bodies, each repair an edit. recover: read calls outside their format. coerce: policy.
    validate: check arguments against the schema. reasoning: 'auto' reads think tags, 'prefilled' begins inside
    one, 'none' reads them as text. max_depth: nesting beyond it is a problem, never an error.
    """

    repair: bool = True
    recover: bool = True
    coerce: Policy = "safe"
    validate: bool = True
    reasoning: Reasoning = "auto"
    max_depth: int = 1000
    version: int = VERSION

    def __post_init__(self) -> None:
        for name in ("repair", "recover", "validate"):
            if not isinstance(getattr(self, name), bool):
                raise BadOptions(f"option {name!r} is a switch", got=getattr(self, name), expected="True or False")
        if self.coerce not in _POLICIES:
            raise BadOptions("unknown coercion policy", got=self.coerce, expected=", ".join(_POLICIES))
        if self.reasoning not in ("auto", "prefilled", "none"):
            raise BadOptions("unknown reasoning mode", got=self.reasoning, expected="auto, prefilled or none")
        if (
            isinstance(self.max_depth, bool)
            or not isinstance(self.max_depth, int)
            or not 1 <= self.max_depth <= 100_000
        ):
            raise BadOptions("max_depth is out of range", got=self.max_depth, expected="1 to 100000")

    @classmethod
    def of(cls, x: ParseOptions | Mapping[str, Any] | None) -> ParseOptions:
        """Options from None, a mapping or options; raises BadOptions for anything else or an unknown name."""
        if x is None:
            return DEFAULT_OPTIONS
        if isinstance(x, ParseOptions):
            return x
        if not isinstance(x, Mapping):
            raise BadOptions("options are ParseOptions or a mapping", got=type(x).__name__)
        known = {f.name for f in dataclasses.fields(cls)}
        if unknown := sorted(str(k) for k in x if k not in known):
            raise BadOptions("unknown option", got=", ".join(unknown), expected=", ".join(sorted(known)))
        return cls(**x)

    def to_dict(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}


DEFAULT_OPTIONS = ParseOptions()

Origins: TypeAlias = Mapping[str, Origin]


class OriginTable:
    """The origins of one call, made by `make` when first asked for and then kept."""

    __slots__ = ("_make", "_table")

    def __init__(self, make: Callable[[], Origins]) -> None:
        self._make = make
        self._table: Origins | None = None

    def get(self) -> Origins:
        if self._table is None:
            self._table = self._make()
        return self._table

    def __deepcopy__(self, memo: object) -> OriginTable:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return (_known_origins, (dict(self.get()),))  # a process pool gets the table, not the parser behind it


def _known_origins(table: dict[str, Origin]) -> OriginTable:
    return OriginTable(lambda: table)


NO_ORIGINS = OriginTable(dict)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call found in the text, readable or not. Its identity is `index`, its place among the calls.

    `source_json` is the arguments as found, `arguments_json` after coercion, both canonical JSON ('' when the body
    could not be read). `confidence` is 1.0 for a call in its own format, lower for a recovered one.
    """

    index: int
    segment_index: int
    name: str
    name_span: Span | None
    wire_id: str | None
    protocol: str
    status: CallStatus
    confidence: float
    source_json: str
    arguments_json: str
    edits: tuple[Edit, ...] = ()
    steps: tuple[Step, ...] = ()
    problems: tuple[Problem, ...] = ()
    segment: Segment = field(default=Segment("call", Span(0, 0)))
    origins: OriginTable = field(default=NO_ORIGINS, compare=False, repr=False)

    @property
    def ok(self) -> bool:
        """Readable, complete and, where tools are given, of a known name."""
        return self.status == "ok"

    @property
    def valid(self) -> bool:
        """`ok`, and the arguments satisfy the tool's schema. Execute only what is valid."""
        return self.status == "ok" and not any(p.stage == "validate" and p.severity == "error" for p in self.problems)

    @property
    def readable(self) -> bool:
        """The body was read: there are arguments, whatever the name and the schema say of them."""
        return bool(self.arguments_json)

    @property
    def arguments(self) -> dict[str, Any]:
        """A fresh dict: int for integers, float for other numbers, Decimal only where a float loses digits."""
        value = read_plain(self.arguments_json) if self.arguments_json else {}
        return value if isinstance(value, dict) else {}

    def origin(self, path: str = "") -> Origin:
        """Where the value at a JSON Pointer into `arguments` stands in `raw`.

        Raises NoOrigin for a path that is not in the arguments.

        >>> import toolparse_lab as tp
        >>> call = tp.parse('<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>', "hermes").calls[0]
        >>> call.origin("/a")
        Origin(span=Span(start=44, end=45), exact=True)
        """
        table = self.origins.get()
        try:
            return table[path]
        except KeyError:
            known = ", ".join(repr(p) for p in list(table)[:20]) or "none: the body was not read"
            raise NoOrigin("no argument at this path", got=path, expected=known) from None

    @property
    def repair_steps(self) -> tuple[Step, ...]:
        """The edits as steps; they are stored once, as edits."""
        return tuple(Step("repair", e.rule, "", e.span, None, e.text) for e in self.edits)

    def to_dict(self) -> dict[str, Any]:
        return {
            "index": self.index,
            "segment_index": self.segment_index,
            "name": self.name,
            "name_span": _span_out(self.name_span),
            "wire_id": self.wire_id,
            "protocol": self.protocol,
            "status": self.status,
            "confidence": self.confidence,
            "source_json": self.source_json,
            "arguments_json": self.arguments_json,
            "edits": [[e.span.start, e.span.end, e.text, e.rule] for e in self.edits],
            "steps": [[s.stage, s.rule, s.path, _span_out(s.span), s.before_json, s.after_json] for s in self.steps],
            "problems": [_problem_out(p) for p in self.problems],
            "origins": [[p, o.span.start, o.span.end, o.exact] for p, o in self.origins.get().items()],
        }

    @classmethod
    def from_dict(cls, d: Mapping[str, Any], segments: tuple[Segment, ...]) -> ToolCall:
        from .values import read_strict

        table = {p: Origin(Span(a, b), exact) for p, a, b, exact in d["origins"]}
        return cls(
            index=d["index"],
            segment_index=d["segment_index"],
            name=d["name"],
            name_span=_span_in(d["name_span"]),
            wire_id=d["wire_id"],
            protocol=d["protocol"],
            status=d["status"],
            confidence=d["confidence"],
            source_json=d["source_json"],
            arguments_json=d["arguments_json"],
            edits=tuple(Edit(Span(a, b), text, rule) for a, b, text, rule in d["edits"]),
            steps=tuple(
                Step(stage, rule, path, _span_in(span), read_strict(before), read_strict(after))
                for stage, rule, path, span, before, after in d["steps"]
            ),
            problems=tuple(_problem_in(p) for p in d["problems"]),
            segment=segments[d["segment_index"]],
            origins=_known_origins(table),
        )

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """The coercion diff: arguments before and after, each change with its rule."""
        return hooks.mimebundle(self)

    def __str__(self) -> str:
        return f"{self.name or '?'}({self.arguments_json}) [{self.status}]"


@dataclass(frozen=True, slots=True)
class TextDelta:
    """Text of the answer. It is final: what was said as text is never taken back. escaped: as in a `Segment`."""

    span: Span
    escaped: bool = False


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """Characters of the model's reasoning. escaped: as in a `Segment`."""

    span: Span
    escaped: bool = False


@dataclass(frozen=True, slots=True)
class Markup:
    """Section tokens, channel headers, think tags: neither text nor call."""

    span: Span


@dataclass(frozen=True, slots=True)
class CallStart:
    """A call's opener."""

    span: Span


@dataclass(frozen=True, slots=True)
class CallDelta:
    """Characters of a call's body."""

    span: Span


@dataclass(frozen=True, slots=True)
class CallEnd:
    """A call's closer (empty when it is missing) and the calls its body held, in order."""

    span: Span
    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class Retract:
    """What was said from `start` on is void; it is said anew. Never reaches back over text."""

    start: int


@dataclass(frozen=True, slots=True)
class Recovered:
    """Text that was held back and turned out to be a call outside its format."""

    span: Span
    calls: tuple[ToolCall, ...]


Event: TypeAlias = TextDelta | ReasoningDelta | Markup | CallStart | CallDelta | CallEnd | Retract | Recovered


@dataclass(frozen=True, slots=True)
class ParseResult:
    """Everything one text says under one protocol and one set of options.

    text + markup + reasoning + calls account for every character of `raw`: the segments partition it.
    """

    raw: str
    protocol: str
    options: ParseOptions
    segments: tuple[Segment, ...]
    calls: tuple[ToolCall, ...]
    problems: tuple[Problem, ...]
    tools: tuple[ToolSpec, ...] = ()

    @property
    def ok(self) -> bool:
        """No problem of severity error, in the text or in any call."""
        return not any(p.severity == "error" for p in self.all_problems())

    def all_problems(self) -> Iterator[Problem]:
        """The result's own problems, then each call's."""
        yield from self.problems
        for call in self.calls:
            yield from call.problems

    @property
    def text(self) -> str:
        """The text outside calls, markup and reasoning, untrimmed."""
        return "".join(s.said(self.raw) for s in self.segments if s.kind == "text")

    @property
    def reasoning(self) -> str:
        return "".join(s.said(self.raw) for s in self.segments if s.kind == "reasoning")

    def content(self, on_error: Literal["text", "drop"] = "text") -> str:
        """The message content: the text, with calls that could not be read kept as written ('text') or left out."""
        if on_error not in ("text", "drop"):
            raise BadOptions("on_error is 'text' or 'drop'", got=on_error)
        unread = _unread_segments(self.calls) if on_error == "text" else frozenset()
        return "".join(s.said(self.raw) for i, s in enumerate(self.segments) if s.kind == "text" or i in unread)

    @property
    def trace(self) -> tuple[Step, ...]:
        """Every change made to every call, in order: repairs, reading, coercion."""
        return tuple(step for call in self.calls for step in (*call.repair_steps, *call.steps))

    def why(self) -> str:
        """One sentence a call: what happened and why."""
        from .explain import explain_result

        return explain_result(self)

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready dict; lone surrogates survive `json.dumps` with its default `ensure_ascii`."""
        return {
            "version": VERSION,
            "raw": self.raw,
            "protocol": self.protocol,
            "options": self.options.to_dict(),
            "tools": [t.to_dict() for t in self.tools],
            "segments": [_segment_out(s) for s in self.segments],
            "calls": [c.to_dict() for c in self.calls],
            "problems": [_problem_out(p) for p in self.problems],
        }

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> ParseResult:
        """The result that `to_dict` described; raises BadOptions for a version this code does not know."""
        if d.get("version") != VERSION:
            raise BadOptions("a parse result of another version", got=d.get("version"), expected=VERSION)
        segments = tuple(
            Segment(kind, Span(a, b), _span_in(body), closed, bool(escaped))
            for kind, a, b, body, closed, *escaped in d["segments"]
        )
        return cls(
            raw=d["raw"],
            protocol=d["protocol"],
            options=ParseOptions.of(d["options"]),
            segments=segments,
            calls=tuple(ToolCall.from_dict(c, segments) for c in d["calls"]),
            problems=tuple(_problem_in(p) for p in d["problems"]),
            tools=tuple(ToolSpec.of(t) for t in d["tools"]),
        )

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), separators=(",", ":"))

    def debug(self, **options: Any) -> Any:
        """The interactive parse view (needs the `jupyter` extra)."""
        return hooks.call("debug", self, **options)

    def frame(self) -> Any:
        """The calls as a pandas frame, one row a call (needs the `lab` extra)."""
        return hooks.call("frame", self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return hooks.mimebundle(self)

    def __str__(self) -> str:
        return self.why()


def _unread_segments(calls: tuple[ToolCall, ...]) -> frozenset[int]:
    read = {c.segment_index for c in calls if c.readable}
    return frozenset(c.segment_index for c in calls if c.segment_index not in read)


def _segment_out(s: Segment) -> list[Any]:
    escaped = [True] if s.escaped else []
    return [s.kind, s.span.start, s.span.end, _span_out(s.body), s.closed, *escaped]


def _span_out(span: Span | None) -> list[int] | None:
    return None if span is None else [span.start, span.end]


def _span_in(x: Any) -> Span | None:
    return None if x is None else Span(x[0], x[1])


def _problem_out(p: Problem) -> list[Any]:
    return [p.stage, p.code, p.severity, p.message, p.path, _span_out(p.span)]


def _problem_in(x: Any) -> Problem:
    stage, code, severity, message, path, span = x
    return Problem(stage, code, severity, message, path, _span_in(span))
