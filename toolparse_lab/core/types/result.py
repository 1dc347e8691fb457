"""`ParseResult`: everything one text says."""

# A result is the only thing that frames, reports, views and telemetry read. It compares equal for
# every chunking of the same text and goes to JSON and back. What a user can ask of it later (an
# origin, a trace, the repaired text) is computed when asked, from `raw` and the edits and steps
# stored here. The views live in higher layers, which `hooks` reaches.

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from .. import hooks
from ..errors import BadOptions
from ..toolspec import ToolSpec
from ..values.printable import printable
from .blame import Blame
from .call import ToolCall, Verdict, verdict_of_calls
from .options import VERSION, ParseOptions
from .server import ServerReading, explain_blame
from .spans import Problem, Segment, Span, Step, problem_in, problem_out, segment_in, segment_out
from .tokens import TokenLabel, Tokens, label_tokens

if TYPE_CHECKING:
    import pandas as pd

# With each Retract honoured, the spans of all events cover `raw` exactly once, in order. They hold
# no text: `parser.text_of(span)` gives it, and most consumers want only some of it.


@dataclass(frozen=True, slots=True)
class TextDelta:
    """Text of the answer, never taken back. escaped: as in a `Segment`."""

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
    """A call's closer, and the calls of its body, in order.

    The closer is empty if it is missing.

    >>> import toolparse_lab as tp
    >>> text = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'
    >>> end = tp.stream("hermes").feed(text)[-1]
    >>> [call.name for call in end.calls]
    ['f']
    """

    span: Span
    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class Retract:
    """The events from `start` on are void, and others come for those characters.

    It never takes back text.
    """

    start: int


@dataclass(frozen=True, slots=True)
class Recovered:
    """Text that the parser held back, and that is a call outside its format.

    At the end, with an empty span, calls whose delimiters are damaged: their text was handed out,
    and they take the place of all earlier calls, of which none could be read.
    """

    span: Span
    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """Calls of earlier events that you must not execute.

    A reasoning tag that closed after them showed that they are reasoning, or the words after them
    that they are only shown. Index and place stay the same. The event comes at the end.

    Attributes:
        span: empty, in front of the tag that closed the reasoning.
    """

    span: Span
    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class HeldBack:
    """Calls that the text only shows: drafts, with the evidence. Their text was handed out as text.

    The event comes at the end.

    Attributes:
        span: empty, at the end.
    """

    span: Span
    calls: tuple[ToolCall, ...]


Event: TypeAlias = (
    TextDelta
    | ReasoningDelta
    | Markup
    | CallStart
    | CallDelta
    | CallEnd
    | Retract
    | Recovered
    | Withdrawn
    | HeldBack
)


# The sentences of `why`, made from the records of the result. Nothing is parsed again for them, so
# that a stored result explains itself as well, years later. Text of the model (names, paths,
# messages that quote it) goes through `printable`: these sentences are printed to terminals.
_LONGEST_READING = 300  # characters of its arguments that are shown
_MOST_COPIED = 6  # values whose place in the request is told

# Status -> the first cause of a call that is not ok, behind "it".
_STATUS = {
    "unknown_tool": "was read, but names no known tool",
    "truncated": "is cut off and must not be executed",
    "undecodable": "could not be read",
    "draft": "is only shown and must not be executed",
    "echoed": "is an echo and must not be executed",
}


def explain_no_call(
    raw: str,
    protocol: str,
    segments: Iterable[Segment],
    problems: Sequence[Problem],
    tools: Iterable[str],
) -> str:
    """Return one sentence, or two, on why a text holds no call: the first reason that applies."""
    if not raw.strip():
        return "The answer is empty."
    said = [s.kind for s in segments if s.kind == "reasoning" or s.said(raw).strip()]
    if "reasoning" in said and "text" not in said:
        return "The answer is reasoning and nothing else."
    if problems:
        return f"No call in the format {protocol}: {printable(problems[0].message)}."

    sentence = f"No call in the format {protocol}; all of it is text."
    # A tool's name in the text is the sign of a call in another format.
    words = ((re.search(rf"(?<!\w){re.escape(name)}(?!\w)", raw), name) for name in tools)
    mentions = [(word.start(), name) for word, name in words if word]
    if not mentions:
        return sentence
    at, name = min(mentions)
    return (
        f"{sentence} The tool name {printable(name)!r} is in it at {at}; "
        "tp.detect says what formats it may be."
    )


def explain_call(call: ToolCall) -> str:
    """Return one sentence on the outcome to a call and why: its verdict, then the causes."""
    name = printable(call.name) or "without a name"
    sentence = f"Call {call.index}, {name}, is {call.verdict}"
    causes: list[str] = []
    if call.status != "ok":
        causes.append(f"it {_STATUS[call.status]}")
    elif not call.valid:
        causes.append("its arguments break the schema")
    for word, rules in (
        ("repair", [e.rule for e in call.edits]),
        ("reading", [s.rule for s in call.steps if s.stage == "read"]),
        ("coercion", [s.rule for s in call.steps if s.stage == "coerce"]),
    ):
        if rules:
            counted = [f"{rule} × {n}" if n > 1 else rule for rule, n in Counter(rules).items()]
            plural = "s" if len(rules) > 1 else ""
            causes.append(f"{len(rules)} {word}{plural} ({', '.join(counted)})")
    for problem in call.problems:
        if problem.severity != "info":
            place = f" at {printable(problem.path)}" if problem.path else ""
            causes.append(printable(problem.message) + place)
    if causes:
        sentence += ": " + "; ".join(causes)
    sentence += "".join(f". It may be {line}" for line in explain_readings(call))
    copied = explain_sources(call)
    return f"{sentence}. {copied}" if copied else f"{sentence}."


def explain_sources(call: ToolCall) -> str:
    """Return a sentence on the values that are in the request, and where. '' if there are none."""
    sources = call.origins.sources or {}
    phrases = [
        f"`{printable(path.removeprefix('/'))}` was copied from {places[0]}"
        for path, places in sources.items()
        if path and places
    ]
    if not phrases:
        return ""
    more = len(phrases) - _MOST_COPIED
    rest = f"; and {more} more" if more > 0 else ""
    return f"{'; '.join(phrases[:_MOST_COPIED])}{rest}."


def explain_readings(call: ToolCall) -> list[str]:
    """Return the possible readings of a refused call, the nearest first, a line each."""
    lines: list[str] = []
    for reading in call.readings:
        arguments = printable(reading.arguments_json[:_LONGEST_READING])
        more = " …" if len(reading.arguments_json) > _LONGEST_READING else ""
        edits = ", ".join(f"{e.rule} at {e.span.start}" for e in reading.edits) or "no edit"
        why = f"; {printable(reading.why)}" if reading.why else ""
        name = printable(reading.name) or "without a name"
        lines.append(f"{name} {arguments}{more} (cost {reading.cost}: {edits}{why})")
    return lines


Stage: TypeAlias = Literal["raw", "repaired", "decoded", "coerced"]
"""The text on the left of the parse view."""


class DebugView(Protocol):
    """The parse view, as far as a program uses it. `widgets.ParseView` is one."""

    stage: str
    pinned: str

    @property
    def result(self) -> ParseResult:
        """The result in view."""

    def export_html(self, path: str | os.PathLike[str]) -> Path:
        """Write the view as one self-contained HTML file and return its path."""


@dataclass(frozen=True, slots=True)
class ParseResult:
    """The parse of one text by one protocol and one set of options.

    text + markup + reasoning + calls account for every character of `raw`: the segments partition
    it. Compares equal for every chunking of the same text.

    >>> import toolparse_lab as tp
    >>> text = '<tool_call>{"name": "f", "arguments": {"a": "1",}}</tool_call>'
    >>> result = tp.parse("Well. " + text, "hermes")
    >>> result.text, result.calls[0].arguments, result.verdict
    ('Well. ', {'a': '1'}, 'repaired (lossless)')
    """

    raw: str
    protocol: str
    options: ParseOptions
    segments: tuple[Segment, ...]
    calls: tuple[ToolCall, ...]
    problems: tuple[Problem, ...]
    tools: tuple[ToolSpec, ...] = ()
    # What was received beside the text is no part of what the text says.
    server: ServerReading | None = field(default=None, compare=False)
    tokens: Tokens | None = field(default=None, compare=False, repr=False)

    @property
    def ok(self) -> bool:
        """True if neither the text nor a call has a problem of severity error."""
        return not any(p.severity == "error" for p in self.all_problems())

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of the calls, see `ToolCall.verdict`, and `none` without a call.

        Unlike `ok` it says nothing of the text outside calls.
        """
        return verdict_of_calls(self.calls)

    @property
    def blame(self) -> Blame:
        """One sentence on who is at fault, the model or the server's parser, with its `layer`.

        '' for a text that came without a response. `trial.blame` weighs everything that was
        recorded of an answer.

        It compares the server's own tool calls with the calls read here, and begins with Agree,
        Server lost it, Server changed it, Model wrote none, or, where the response does not hold
        the model's own text, Cannot be told.

        >>> import toolparse_lab as tp
        >>> written = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'
        >>> token = {"token": written, "bytes": list(written.encode())}
        >>> choice = {"message": {"content": ""}, "logprobs": {"content": [token]}}
        >>> tp.parse({"choices": [choice]}, "hermes").blame
        'Server lost it: the model wrote f, which is not in tool_calls.'
        """
        if self.server is None:
            return Blame()
        return explain_blame(self.calls, self.server, (p.code for p in self.all_problems()))

    @property
    def formats(self) -> tuple[str, ...]:
        """The ids of the formats of the calls, each once, in the order of the calls.

        Under 'auto' they are the protocols that matched. A call outside every format has 'auto'.
        """
        return tuple(dict.fromkeys(call.protocol for call in self.calls))

    def all_problems(self) -> Iterator[Problem]:
        """Yield the result's own problems, then each call's, in order.

        The result's own are about the text: quoted examples, reasoning that was never closed.
        """
        yield from self.problems
        for call in self.calls:
            yield from call.problems

    @property
    def text(self) -> str:
        """The text outside calls, markup and reasoning, untrimmed.

        Unreadable calls are left out. `content` keeps them.
        """
        return "".join(s.said(self.raw) for s in self.segments if s.kind == "text")

    @property
    def reasoning(self) -> str:
        """The model's reasoning, untrimmed and without its tags.

        Several pieces are joined without a break.
        """
        return "".join(s.said(self.raw) for s in self.segments if s.kind == "reasoning")

    def content(self, on_error: Literal["text", "drop"] = "text") -> str:
        """Return the message content: the text, and unreadable calls as you choose.

        Args:
            on_error: 'text' keeps such calls as they were written, 'drop' leaves them out.

        Raises BadOptions for anything else.

        >>> import toolparse_lab as tp
        >>> result = tp.parse('Hi <tool_call>{"name"', "hermes")
        >>> result.content(), result.content("drop")
        ('Hi <tool_call>{"name"', 'Hi ')
        """
        if on_error not in ("text", "drop"):
            raise BadOptions(
                "unknown way to treat calls that could not be read",
                got=on_error,
                expected="on_error='text' or on_error='drop'",
            )
        readable = {c.segment_index for c in self.calls if c.readable}
        as_text = {c.segment_index for c in self.calls if on_error == "text"} - readable
        return "".join(
            segment.said(self.raw)
            for index, segment in enumerate(self.segments)
            if segment.kind == "text" or index in as_text
        )

    @property
    def trace(self) -> tuple[Step, ...]:
        """Every change made to every call, in order: repairs, reading, coercion."""
        return tuple(step for call in self.calls for step in (*call.repair_steps, *call.steps))

    def with_tokens(self, tokens: Tokens | None) -> ParseResult:
        """Return the result with the tokens of its text. Its calls know them too."""
        if tokens is None:
            return self
        calls = tuple(
            replace(call, origins=call.origins.with_tokens(tokens)) for call in self.calls
        )
        return replace(self, calls=calls, tokens=tokens)

    def token_labels(self) -> tuple[TokenLabel, ...]:
        """Return each token of the answer with its kind.

        The kinds are argument (with its call and path), name, text, reasoning, markup, and
        `outside` for tokens around the parsed text, such as the end token. Empty without recorded
        tokens, which servers send for `logprobs=true`.

        >>> import toolparse_lab as tp
        >>> call = ['<tool_call>{"name": "', 'f", "arguments', '": {"a": ', "1", "}}</tool_call>"]
        >>> words = ["Well. ", *call, "<|im_end|>"]
        >>> drawn = [{"token": word, "logprob": -0.1} for word in words]
        >>> message = {"content": "".join(words[:-1])}
        >>> answer = {"choices": [{"message": message, "logprobs": {"content": drawn}}]}
        >>> [label.kind for label in tp.parse(answer, "hermes").token_labels()]
        ['text', 'markup', 'name', 'markup', 'argument', 'markup', 'outside']
        """
        if self.tokens is None:
            return ()
        return label_tokens(self.tokens, self.segments, self.calls)

    def why(self) -> str:
        """Return one sentence per call with its verdict and the reason.

        Without a call, the sentence says why there is none. With 'auto', a first sentence names the
        formats that matched.

        >>> import toolparse_lab as tp
        >>> print(tp.parse("Hello!", "hermes").why())
        Verdict none: No call in the format hermes; all of it is text.
        """
        if not self.calls:
            reason = explain_no_call(
                self.raw, self.protocol, self.segments, self.problems, [t.name for t in self.tools]
            )
            return f"Verdict {self.verdict}: {reason}"
        lines = list(map(explain_call, self.calls))
        matched = [name for name in self.formats if name != "auto"]
        if self.protocol == "auto" and matched:
            lines.insert(0, f"Read as {', '.join(matched)}.")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready dict.

        Lone surrogates survive `json.dumps` with its default `ensure_ascii`.
        """
        beside = {
            name: value.to_dict()
            for name, value in (("server", self.server), ("tokens", self.tokens))
            if value is not None
        }
        return {
            "version": VERSION,
            "raw": self.raw,
            "protocol": self.protocol,
            "verdict": self.verdict,
            "options": self.options.to_dict(),
            "tools": [t.to_dict() for t in self.tools],
            "segments": list(map(segment_out, self.segments)),
            "calls": [c.to_dict() for c in self.calls],
            "problems": list(map(problem_out, self.problems)),
            **beside,
        }

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> ParseResult:
        """Return the result that `to_dict` described.

        Raises BadOptions for a version this code does not know.
        """
        if d.get("version") != VERSION:
            raise BadOptions(
                "a parse result of another version", got=d.get("version"), expected=VERSION
            )
        segments = tuple(map(segment_in, d["segments"]))
        result = cls(
            raw=d["raw"],
            protocol=d["protocol"],
            options=ParseOptions.of(d["options"]),
            segments=segments,
            calls=tuple(ToolCall.from_dict(c, segments) for c in d["calls"]),
            problems=tuple(map(problem_in, d["problems"])),
            tools=tuple(ToolSpec.of(t) for t in d["tools"]),
            server=ServerReading.from_dict(d["server"]) if "server" in d else None,
        )
        return result.with_tokens(Tokens.from_dict(result.raw, d.get("tokens")))

    def to_json(self) -> str:
        """Return `to_dict` as compact JSON text, in ASCII.

        `from_dict(json.loads(text))` gives an equal result.
        """
        return json.dumps(self.to_dict(), separators=(",", ":"))

    def debug(self, *, stage: Stage = "raw", pinned: str = "") -> DebugView:
        """Return the interactive parse view.

        Args:
            stage: the text on the left: raw, repaired, decoded or coerced.
            pinned: the JSON Pointer of the argument to mark, '' for none.

        Raises MissingExtra without the `jupyter` extra, and BadOptions for an unknown stage.
        """
        view: DebugView = hooks.call("debug", self, stage=stage, pinned=pinned)
        return view

    def frame(self) -> pd.DataFrame:
        """Return the calls as a pandas frame, one row per call.

        Raises MissingExtra without the `lab` extra.
        """
        frame: pd.DataFrame = hooks.call("frame", self)
        return frame

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return hooks.mimebundle(self)

    def __str__(self) -> str:
        return self.why()
