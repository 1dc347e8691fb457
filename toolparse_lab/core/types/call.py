"""`ToolCall`: one call found in a text, with the places its values come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any, Literal, TypeAlias, get_args

from .. import hooks
from ..errors import NoSuchItem
from ..values import read_plain
from ..values.printable import printable
from .spans import (
    Edit,
    Origin,
    Problem,
    Segment,
    Span,
    Step,
    edit_in,
    edit_out,
    maker_of,
    origins_in,
    origins_out,
    problem_in,
    problem_out,
    settle_late,
    span_in,
    span_out,
    step_in,
    step_out,
)
from .tokens import Token, Tokens

# The verdict. Words are ordered from best to worst, and a thing has the worst word that applies to
# it: a call the worst of what its status, its problems and its rules say, a result the worst of its
# calls. Nothing is stored: the word follows from what the result records, so that an older result
# has one too.
Verdict: TypeAlias = Literal[
    "none", "clean", "repaired (lossless)", "repaired (lossy)", "unchecked", "invalid", "refused",
    "truncated", "echoed",
]  # fmt: skip
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
"""From best to worst; `none` is a result without a call."""

EXECUTABLE: frozenset[Verdict] = frozenset(VERDICTS[1:5])
"""The verdicts under which a call may be executed."""

_RANK = {word: rank for rank, word in enumerate(VERDICTS)}


def verdict_of_call(call: ToolCall) -> Verdict:
    """Return the verdict on a call."""
    # clean: written in its format and to its schema, without any change. repaired: executable after
    # repairs, readings, coercions or a recovery, lossless where none of them guessed or dropped
    # anything. unchecked: valid as far as its schema can be used.
    # invalid: readable, but its arguments break the schema. refused: not readable, of an
    # unknown tool, or a draft. truncated: cut off. echoed: another wrote it.
    # Where echoes are allowed, the code is there as a warning.
    if any(p.code == "call.echoed" and p.severity == "error" for p in call.problems):
        return "echoed"
    if call.status == "truncated":
        return "truncated"
    if not call.ok:
        return "refused"
    if not call.valid:
        return "invalid"
    if call.problems and call.unchecked:
        return "unchecked"
    if not call.edits and not call.steps and not call.problems:
        return "clean"
    from ..rules import CODES, RULES  # start-up time: parsing needs no rule's description

    # A rule that nobody described counts as one that may lose something.
    rules = [e.rule for e in call.edits] + [s.rule for s in call.steps]
    losses = [rule not in RULES or not RULES[rule].lossless for rule in rules]
    codes = [CODES[problem.code] for problem in call.problems if problem.code in CODES]
    losses += [not code.lossless for code in codes if code.lossless is not None]
    if not losses:
        return "clean"
    return "repaired (lossy)" if any(losses) else "repaired (lossless)"


def is_held_back(call: ToolCall) -> bool:
    """Return True for a call that its text only shows, so that it is a draft."""
    return call.status == "draft" and any(p.code == "call.held-back" for p in call.problems)


def is_meant(call: ToolCall) -> bool:
    """Return True for a call that was read, and that its text does not only show."""
    return call.readable and not is_held_back(call)


def verdict_of_calls(calls: Iterable[ToolCall]) -> Verdict:
    """Return the worst verdict on some calls, `none` if there are none."""
    # A call that the answer says again says nothing of the answer, nor does one that it shows
    # beside those that are meant.
    own = [call for call in calls if not is_repeat(call)]
    meant = [call for call in own if not is_held_back(call)]
    verdicts = (verdict_of_call(call) for call in meant or own)
    return max(verdicts, key=_RANK.__getitem__, default="none")


def is_repeat(call: ToolCall) -> bool:
    """Return True for a call that the answer says again, and that is executed once."""
    return call.status == "draft" and any(p.code == "call.repeated-set" for p in call.problems)


CallStatus: TypeAlias = Literal["ok", "unknown_tool", "truncated", "undecodable", "draft", "echoed"]
Origins: TypeAlias = Mapping[str, Origin]
"""JSON Pointer into the arguments -> place in raw"""

_UNCHECKED = ("validate.unchecked", "call.unknown-argument")
_PATHS_IN_MESSAGE = 20


# Role of a message -> what a sentence calls it.
_WORDS = {
    "user": "user message",
    "tool": "tool result",
    "function": "tool result",
    "document": "document",
    "system": "system message",
    "developer": "system message",
    "assistant": "assistant message",
}


@dataclass(frozen=True, slots=True)
class Source:
    """A place in the request: the message's role and index, counted from 0, and the span in it.

    The span counts in the message's text, its parts joined by line breaks. Documents beside the
    messages have the role `document` and an index of their own.
    """

    role: str
    message: int
    span: Span

    def __str__(self) -> str:
        return f"{_WORDS.get(self.role, 'message of ' + repr(self.role))} {self.message}"


Sources: TypeAlias = Mapping[str, tuple[Source, ...]]
"""JSON Pointer into the arguments -> places in the request; '' is the whole call"""


def sources_out(sources: Sources) -> list[list[Any]]:
    """[path, role, message, start, end] for each place, in the table's order."""
    return [
        [path, s.role, s.message, s.span.start, s.span.end]
        for path, places in sources.items()
        for s in places
    ]


def sources_in(rows: Iterable[Any]) -> dict[str, tuple[Source, ...]]:
    """Return the table of rows that `sources_out` wrote."""
    table: dict[str, tuple[Source, ...]] = {}
    for path, role, message, start, end in rows:
        table[path] = (*table.get(path, ()), Source(role, message, Span(start, end)))
    return table


@dataclass(frozen=True, slots=True)
class Reading:
    """A candidate that no one chose: the value of the call, and the edits in raw it would take.

    `cost` is the cost of the edits together: the least one is nearest to the text. `why` says the
    verdict of the tool's schema on it.
    """

    name: str
    arguments_json: str
    edits: tuple[Edit, ...]
    cost: int
    why: str

    @property
    def arguments(self) -> dict[str, Any]:
        """A fresh dict of the arguments."""
        value = read_plain(self.arguments_json)
        return value if isinstance(value, dict) else {}

    def shift(self, by: int) -> Reading:
        """Return the same reading of a text that begins at offset `by`."""
        edits = tuple(Edit(e.span.shift(by), e.text, e.rule) for e in self.edits)
        return replace(self, edits=edits)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready dict of all fields."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        return {**fields, "edits": list(map(edit_out, self.edits))}

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> Reading:
        """Return the reading that `to_dict` described."""
        return cls(**{**d, "edits": tuple(map(edit_in, d["edits"]))})


# Most calls are never asked where a value stood, and tracing their values would take longer than
# reading them. So a call carries the function that traces, and it runs at most once. Until then it
# keeps the body's text alive, and what the codec read in it; a pickle or a dict of the call carries
# the table instead. Origins are no part of a call's equality: another chunking of the same text
# gives the same table, by another function.


class OriginTable:
    """The origins of one call, made by `make` when first asked for and then kept.

    make_sources: its places in the request, likewise, or None if no request is known. tokens: those
    of the answer, where they were recorded.
    """

    __slots__ = ("_make", "_make_sources", "_sources", "_table", "tokens")

    def __init__(
        self,
        make: Callable[[], Origins],
        make_sources: Callable[[], Sources] | None = None,
        tokens: Tokens | None = None,
    ) -> None:
        self._make = make
        self._table: Origins | None = None
        self._make_sources = make_sources
        self._sources: Sources | None = None
        self.tokens = tokens

    def get(self) -> Origins:
        """Return the table, JSON Pointer -> origin: the same object every time.

        Empty for a call that could not be read.
        """
        if self._table is None:
            self._table = self._make()
        return self._table

    @property
    def sources(self) -> Sources | None:
        """JSON Pointer -> the places of that leaf in the request. None if none is known."""
        if self._sources is None and self._make_sources is not None:
            self._sources = self._make_sources()
        return self._sources

    def with_sources(self, make_sources: Callable[[], Sources]) -> OriginTable:
        """Return the same origins, with sources beside them."""
        return OriginTable(self.get, make_sources, self.tokens)

    def with_tokens(self, tokens: Tokens) -> OriginTable:
        """Return the same origins, with the tokens of the answer beside them."""
        has_sources = self._sources is not None or self._make_sources is not None
        return OriginTable(self.get, (lambda: self.sources or {}) if has_sources else None, tokens)

    def __deepcopy__(self, memo: object) -> OriginTable:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # The pickle names the function: a new name would make older pickles unreadable.
        sources = self.sources
        tables = (dict(self.get()),) if sources is None else (dict(self.get()), dict(sources))
        return (_known_origins, tables)


def _known_origins(
    table: dict[str, Origin], sources: dict[str, tuple[Source, ...]] | None = None
) -> OriginTable:
    return OriginTable(lambda: table, None if sources is None else lambda: sources)


NO_ORIGINS = OriginTable(dict)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call found in the text, readable or not.

    `index` is its place among the calls. `source_json` is the arguments as found, `arguments_json`
    after coercion, both canonical JSON ('' when the body could not be read). `confidence` is 1.0
    for a call in its own format, lower for a recovered one. `readings` has up to five possible
    readings of a refused body, the nearest first, for you to choose from.

    >>> import toolparse_lab as tp
    >>> text = '<tool_call>{"name": "f", "arguments": {"a": "1",}}</tool_call>'
    >>> tools = [{"name": "f", "parameters": {"properties": {"a": {"type": "integer"}}}}]
    >>> call = tp.parse(text, "hermes", tools).calls[0]
    >>> call.name, call.arguments, call.valid
    ('f', {'a': 1}, True)
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
    readings: tuple[Reading, ...] = ()

    @property
    def ok(self) -> bool:
        """True if the call is readable, complete and, with tools, of a known name.

        The schema is not checked here, see `valid`.
        """
        return self.status == "ok"

    @property
    def valid(self) -> bool:
        """True if the call is `ok` and its arguments satisfy the tool's schema.

        Execute only valid calls. Without tools, or with `validate=False`, no schema was checked.
        """
        if self.status != "ok":
            return False
        return not any(p.stage == "validate" and p.severity == "error" for p in self.problems)

    @property
    def verdict(self) -> Verdict:
        """The verdict on the call, as in every view.

        From best to worst: clean, repaired (lossless), repaired (lossy), unchecked, invalid,
        refused, truncated, echoed. You may execute the call under the first three, and under
        `unchecked` where a schema that is partly unusable is good enough for you.

        >>> import toolparse_lab as tp
        >>> text = '<tool_call>{"name": "f", "arguments": {"a": 1,}}</tool_call>'
        >>> tp.parse(text, "hermes").calls[0].verdict
        'repaired (lossless)'
        """
        return verdict_of_call(self)

    @property
    def unchecked(self) -> tuple[str, ...]:
        """JSON Pointers of the values that no part of the schema could check.

        Their part of it cannot be used, or the tool has no argument of that name.

        >>> import toolparse_lab as tp
        >>> text = '<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>'
        >>> tools = [{"name": "f", "parameters": {"properties": {"a": {"$ref": "#/$defs/Lost"}}}}]
        >>> call = tp.parse(text, "hermes", tools).calls[0]
        >>> call.unchecked, call.verdict
        (('/a',), 'unchecked')
        """
        return tuple(p.path for p in self.problems if p.code in _UNCHECKED)

    @property
    def readable(self) -> bool:
        """True if the parser read the body.

        There are arguments then, even with an unknown tool or against the schema.
        """
        return bool(self.arguments_json)

    @property
    def arguments(self) -> dict[str, Any]:
        """A fresh dict of the arguments after coercion, empty for an unreadable body.

        Integers are int, other numbers float, and Decimal only where a float loses digits. Each
        access reads `arguments_json` again, so that changing the dict changes nothing here.
        """
        value = read_plain(self.arguments_json) if self.arguments_json else {}
        return value if isinstance(value, dict) else {}

    def origin(self, path: str = "") -> Origin:
        """Return the place in `raw` of the value at a JSON Pointer into `arguments`.

        Raises NoSuchItem for a path that is not in the arguments.

        >>> import toolparse_lab as tp
        >>> text = '<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>'
        >>> tp.parse(text, "hermes").calls[0].origin("/a")
        Origin(span=Span(start=44, end=45), exact=True)
        """
        table = self.origins.get()
        try:
            return table[path]
        except KeyError:
            paths = ", ".join(map(repr, islice(table, _PATHS_IN_MESSAGE)))
            raise NoSuchItem(
                "no argument at this path",
                got=path,
                expected=paths or "none: the body was not read",
                code="no-origin",
            ) from None

    def source(self, path: str = "") -> tuple[Source, ...]:
        """Return the places in the request that hold the value at a JSON Pointer.

        The longest place comes first.

        Empty for a value that is not in the request, for anything but strings and numbers, and
        without `request=`. '' is the whole call, which has a place only if it is an echo. Raises
        NoSuchItem for a path that is not in the arguments.

        >>> import toolparse_lab as tp
        >>> text = '<tool_call>{"name": "f", "arguments": {"city": "Rome"}}</tool_call>'
        >>> asked = [{"role": "user", "content": "How is Rome?"}]
        >>> str(tp.parse(text, "hermes", request=asked).calls[0].source("/city")[0])
        'user message 0'
        """
        if path:
            self.origin(path)
        return (self.origins.sources or {}).get(path, ())

    def tokens(self, path: str = "") -> tuple[Token, ...]:
        """Return the tokens of the value at a JSON Pointer.

        For an empty value, the token that ends it. Empty without recorded tokens, which servers
        send for `logprobs=true`. Raises NoSuchItem for a path that is not in the arguments.

        >>> import toolparse_lab as tp
        >>> head = '<tool_call>{"name": "f", "arguments": {"a'
        >>> words = [head, '": "Ro', 'me"', "}}", "</tool_call>"]
        >>> drawn = [{"token": word, "logprob": -0.1} for word in words]
        >>> message = {"content": "".join(words)}
        >>> answer = {"choices": [{"message": message, "logprobs": {"content": drawn}}]}
        >>> call = tp.parse(answer, "hermes").calls[0]
        >>> [(token.text, token.logprob) for token in call.tokens("/a")]
        [('": "Ro', -0.1), ('me"', -0.1)]
        """
        span = self.origin(path).span
        return () if self.origins.tokens is None else self.origins.tokens.at(span)

    @property
    def repair_steps(self) -> tuple[Step, ...]:
        """The edits as steps of the stage 'repair'.

        They are stored once, as edits, and have no path: an edit is one of text, not of a value.
        """
        return tuple(Step("repair", e.rule, "", e.span, None, e.text) for e in self.edits)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready dict with the verdict and all fields but the segment.

        Asks for the origins, so that they can be read back without the parser.
        """
        sources = self.origins.sources
        # Only a call that was read with its request has them.
        rest: dict[str, Any] = {} if sources is None else {"sources": sources_out(sources)}
        if self.readings:
            rest["readings"] = [reading.to_dict() for reading in self.readings]
        # A span or step is a short row: a result has thousands of them (see `serial`).
        return {
            "index": self.index,
            "segment_index": self.segment_index,
            "name": self.name,
            "name_span": span_out(self.name_span),
            "wire_id": self.wire_id,
            "protocol": self.protocol,
            "status": self.status,
            "verdict": self.verdict,
            "confidence": self.confidence,
            "source_json": self.source_json,
            "arguments_json": self.arguments_json,
            "edits": list(map(edit_out, self.edits)),
            "steps": list(map(step_out, self.steps)),
            "problems": list(map(problem_out, self.problems)),
            "origins": origins_out(self.origins.get()),
            **rest,
        }

    @classmethod
    def from_dict(cls, d: Mapping[str, Any], segments: tuple[Segment, ...]) -> ToolCall:
        """Return the call that `to_dict` described. `segments` are those of its result."""
        return cls(
            *(d["index"], d["segment_index"], d["name"], span_in(d["name_span"]), d["wire_id"]),
            *(d["protocol"], d["status"], d["confidence"], d["source_json"], d["arguments_json"]),
            edits=tuple(map(edit_in, d["edits"])),
            steps=tuple(map(step_in, d["steps"])),
            problems=tuple(map(problem_in, d["problems"])),
            segment=segments[d["segment_index"]],
            origins=_known_origins(
                origins_in(d["origins"]), sources_in(d["sources"]) if "sources" in d else None
            ),
            readings=tuple(map(Reading.from_dict, d.get("readings", ()))),
        )

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return hooks.mimebundle(self)

    def __str__(self) -> str:
        return printable(f"{self.name or '?'}({self.arguments_json}) [{self.verdict}]")


make_call = maker_of(ToolCall)


def calls_by_segment(calls: Iterable[ToolCall]) -> dict[int, list[ToolCall]]:
    """Return the index of each segment with calls -> its calls."""
    by_segment: dict[int, list[ToolCall]] = {}
    for call in calls:
        by_segment.setdefault(call.segment_index, []).append(call)
    return by_segment


class LateAccount(partial[tuple[str, tuple[Step, ...], OriginTable]]):
    """Gives the source, the steps and the origins of a call when the first of them is asked for.

    Until then it stands in the place of all three. Most calls are executed, and nobody asks how
    their arguments came about; to find that takes as long as to read them.
    """

    __slots__ = ()


_ACCOUNT = [ToolCall.__dict__[name] for name in ("source_json", "steps", "origins")]


def _settle(call: ToolCall, account: LateAccount) -> None:
    for slot, part in zip(_ACCOUNT, account(), strict=True):
        slot.__set__(call, part)


for _name in ("source_json", "steps", "origins"):
    settle_late(ToolCall, _name, LateAccount, _settle)


def make_late_call(
    index: int,
    segment_index: int,
    name: str,
    name_span: Span,
    protocol: str,
    arguments_json: str,
    segment: Segment,
    account: LateAccount,
) -> ToolCall:
    """Return a good call whose source, steps and origins are not worked out yet."""
    late: Any = account
    return make_call(
        index, segment_index, name, name_span, None, protocol, "ok", 1.0,
        late, arguments_json, (), late, (), segment, late,
    )  # fmt: skip
