"""`check_protocol`: the laws tried on a protocol, and the smallest text on which one fails.

Each law is a function that raises LawBroken on a text. `_Court` tries every law on every text, the
shortest texts first, and drops a law at its first failure. The text is then made smaller
(`shrink`), so that the counterexample shows little but the fault.
"""

from __future__ import annotations

import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Literal

from ....core.errors import BadOptions, UnknownProtocol
from ....core.toolspec import ToolsLike, ToolSpec, tool_specs
from ....core.types import ParseOptions, ParseResult
from ....core.values import write_canonical
from ....entry.foreign.protocol import REQUIRED, ForeignProtocol, adapt, any_protocol, camel
from ....entry.laws import (
    ODD,
    TEXT_LAWS,
    TOOLS,
    LawBroken,
    Trial,
    check_round_trip,
    check_splits,
    chunkings,
    try_text,
)
from ....entry.parse import parse
from ....formats.base import Protocol
from ....formats.json.mix import HERMES
from ....formats.like import ProtocolLike
from ....middleware.content_parts import create_stream_parser, parse_generated_text
from ....runner.litellm_door import paused_collector
from .check_stream import joined_parts

Verdict = Literal["held", "violated", "not applicable"]

LAWS: Final[Mapping[str, str]] = {
    "surface": "the required methods are there",
    "total": "no text makes it raise",
    "partition": "every character of the text is in one segment",
    "split invariance": "the result and its events are the same for every chunking",
    "stream agrees": "its stream parser says what its whole-text parser says",
    "log replay": "the events say every character once",
    "text is final": "no text that was sent is taken back",
    "serial": "a result survives JSON",
    "trace replay": "the recorded steps lead from the source to the arguments",
    "idempotent": "coercing what was coerced makes no step",
    "edit law": "a repaired body reads strictly to the same",
    "strict identity": "a body that reads strictly is not repaired",
    "round trip": "a call that is written reads back the same",
    "repeatable": "the same text gives the same result",
    "linear": "four times the text takes at most eight times as long",
}
_LOST = frozenset(
    ("foreign.text-not-in-raw", "foreign.dropped-text", "foreign.no-place", "foreign.bad-part")
)
_RAISED = frozenset(("parser.failed",))
_EVERY_SPLIT = 60  # characters up to which every split is tried
_STEEP = 8  # quadratic cost is 16 times for four times the text; a loaded machine blurs the clock
_TRIES = 250  # texts tried to make a counterexample smaller


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one law.

    checked: the number of texts or calls it was tried on. counterexample: the smallest one. why:
    the fault on it.
    """

    law: str
    verdict: Verdict
    checked: int = 0
    counterexample: str | None = None
    why: str = ""

    def __str__(self) -> str:
        """Return the finding as one line, a violation with its counterexample and its reason."""
        line = f"{self.law:<17} {self.verdict}"
        if self.verdict == "held":
            return f"{line} ({self.checked} tried)"
        if self.verdict != "violated":
            return line

        example = f"\n    on {self.counterexample!r}" if self.counterexample is not None else ""
        return f"{line}: {LAWS[self.law]}{example}\n    {self.why}"


@dataclass(frozen=True, slots=True)
class LawReport:
    """The outcome of `check_protocol`, law by law.

    >>> report = check_protocol("hermes")
    >>> report.ok, report["partition"].verdict
    (True, 'held')
    """

    protocol: str
    seed: int
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """No law is violated."""
        return not self.violated

    @property
    def violated(self) -> tuple[Finding, ...]:
        """The findings of violated laws, in the order of `LAWS`."""
        return tuple(f for f in self.findings if f.verdict == "violated")

    def __getitem__(self, law: str) -> Finding:
        """Return the finding of a law, such as 'split invariance'.

        Raises KeyError for a name that is not in `LAWS`.
        """
        for finding in self.findings:
            if finding.law == law:
                return finding
        raise KeyError(f"no law {law!r}; there are: {', '.join(LAWS)}")

    def __str__(self) -> str:
        """Return the report as text: a summary, then every finding."""
        n_held = sum(1 for f in self.findings if f.verdict == "held")
        n_violated = len(self.violated)
        lines = [f"{self.protocol}: {n_held} laws held, {n_violated} violated (seed {self.seed})"]
        lines += [f"  {line}" for f in self.findings for line in str(f).splitlines()]
        return "\n".join(lines)


def check_protocol(
    protocol: ProtocolLike,
    tools: ToolsLike = None,
    *,
    seed: int = 0,
    examples: int = 60,
    options: ParseOptions | Mapping[str, Any] | None = None,
) -> LawReport:
    """Run the laws on a protocol.

    The texts are made from the calls the protocol itself writes and from its delimiters: some sixty
    whole and damaged ones, and `examples` random ones. Only the law 'linear' uses a clock, with a
    wide margin.

    Args:
        protocol: an id, one of ours, or an object of your own with the methods of an AI SDK's.
        tools: the tools of the calls, by default two of ours.
        seed: the same seed gives the same texts.

    Raises UnknownProtocol for anything that is not a protocol, and BadToolSpec and BadOptions as
    `parse` does.

    >>> check_protocol("hermes", examples=5).ok
    True
    """
    if isinstance(examples, bool) or not isinstance(examples, int) or examples < 0:
        raise BadOptions("examples is a number of texts", got=examples, expected="0 or more")

    subject: Any = any_protocol(protocol) if isinstance(protocol, str) else adapt(protocol)
    if subject is None:
        # By Python's spelling or by TypeScript's.
        near = [
            method
            for method in REQUIRED
            if any(callable(getattr(protocol, name, None)) for name in (method, camel(method)))
        ]
        raise UnknownProtocol(
            "this is no protocol",
            got=type(protocol).__name__,
            expected=f"an id, a Protocol or an object with {', '.join(REQUIRED)}",
            hint=f"it has {', '.join(near)}" if near else None,
        )
    specs = tool_specs(tools) or TOOLS
    court = _Court(subject, specs, options, seed)
    court.try_all(make_texts(subject, specs, seed, examples))
    return court.report()


class _Court:
    """Tries laws on texts and keeps the smallest counterexample of each."""

    def __init__(self, subject: Any, tools: tuple[ToolSpec, ...], options: Any, seed: int) -> None:
        self.subject = subject
        self.tools = tools
        self.options = options
        self.seed = seed
        self.checked: Counter[str] = Counter()  # law -> the number of texts it was tried on
        self.broken: dict[str, tuple[str | None, str]] = {}  # law -> counterexample and reason

    def report(self) -> LawReport:
        findings = []
        for law in LAWS:
            checked = self.checked[law]
            if law in self.broken:
                findings.append(Finding(law, "violated", checked, *self.broken[law]))
            else:
                findings.append(Finding(law, "held" if checked else "not applicable", checked))
        return LawReport(self.subject.id, self.seed, tuple(findings))

    def try_all(self, texts: list[str]) -> None:
        if isinstance(self.subject, ForeignProtocol):
            # This law looks at the object and at no text.
            missing = self.subject.missing()
            self.checked["surface"] = len(REQUIRED)
            if missing:
                self.broken["surface"] = (None, f"missing: {', '.join(missing)}")
            # The engine turns an exception, and a part without a place, into a problem.
            checks: dict[str, Callable[[str], None]] = {
                "total": lambda raw: self._has_none_of(raw, "total", _RAISED),
                "partition": lambda raw: self._has_none_of(raw, "partition", _LOST),
                "repeatable": self._repeats,
            }
            if self.subject.method("create_stream_parser") is not None:
                checks["split invariance"] = self._same_in_pieces
                checks["stream agrees"] = self._stream_agrees
        else:
            # 'idempotent' and 'trace replay' are one function: `_why` tells them apart by the law
            # that it names. Two laws are checked by parsing alone.
            checks = {law: self._of(check) for law, check in TEXT_LAWS.items()}
            checks["total"] = checks["text is final"] = self._of(lambda _: None)
            checks["idempotent"] = checks["trace replay"]
            checks["split invariance"] = self._of(lambda trial: check_splits(trial, _EVERY_SPLIT))
        # The shortest first, so that the first counterexample is a short one.
        for raw in sorted(texts, key=len):
            for law, check in checks.items():
                if law in self.broken:
                    continue
                self.checked[law] += 1
                why = _why(check, raw, law)
                if why is not None:
                    # By the same law: another fault in a smaller text is another finding.
                    smaller = shrink(raw, lambda text: _why(check, text, law) is not None)  # noqa: B023
                    self.broken[law] = (smaller, _why(check, smaller, law) or why)

        self._try_round_trips()
        self._try_linear()

    def _of(self, check: Callable[[Trial], None]) -> Callable[[str], None]:
        return lambda raw: check(try_text(raw, self.subject, self.tools, self.options))

    def _read(self, raw: str) -> ParseResult:
        return parse(raw, self.subject, self.tools, self.options)

    def _has_none_of(self, raw: str, law: str, codes: frozenset[str]) -> None:
        for p in self._read(raw).problems:
            if p.code in codes:
                raise LawBroken(law, p.message)

    def _repeats(self, raw: str) -> None:
        if self._read(raw) != self._read(raw):
            raise LawBroken("repeatable", "a second parse said something else")

    def _streamed(self, chunks: Iterable[str]) -> list[tuple[Any, ...]]:
        # A new parser each time, so that no state remains from the chunks before.
        parser = create_stream_parser(self.subject, self.tools)
        parts = [part for chunk in chunks for part in parser.feed(chunk)]
        return joined_parts([*parts, *parser.close()])

    def _same_in_pieces(self, raw: str) -> None:
        whole = self._streamed([raw])
        for chunks in chunkings(raw, most=_EVERY_SPLIT):
            other = self._streamed(chunks)
            if other != whole:
                where = "single characters"
                if len(chunks) == 2:
                    where = f"the pieces {chunks[0][-20:]!r} and {chunks[1][:20]!r}"
                why = f"in {where} it says {other}, in one piece {whole}"
                raise LawBroken("split invariance", why)

    def _stream_agrees(self, raw: str) -> None:
        def without_blanks(parts: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
            return [part for part in parts if part[0] == "call" or part[1].strip()]

        batch = joined_parts(parse_generated_text(self.subject, raw, self.tools))
        got, expected = without_blanks(self._streamed([raw])), without_blanks(batch)
        if got != expected:
            raise LawBroken("stream agrees", f"the stream says {got}, the whole text {expected}")

    def _try_round_trips(self) -> None:
        # Simple arguments first. Calls that the protocol refuses to write do not count: refusing
        # is allowed. There is no text to shrink, so the shortest failure is kept.
        rng = random.Random(self.seed)  # noqa: S311
        smallest: tuple[str, str] | None = None

        for i in range(20 * len(self.tools)):
            tool = self.tools[i % len(self.tools)]
            arguments_json = write_canonical(make_arguments(tool, rng, simple=i < len(self.tools)))
            try:
                if check_round_trip(self.subject, tool, arguments_json):
                    self.checked["round trip"] += 1
            except LawBroken as no:
                if smallest is None or len(arguments_json) < len(smallest[0]):
                    smallest = f"{tool.name}({arguments_json})", no.why

        if smallest is not None:
            self.broken["round trip"] = smallest

    def _try_linear(self) -> None:
        # (beginning, repeated piece) of texts on which a careless scanner is slow. A protocol that
        # writes no call still gets plain words.
        rng = random.Random(self.seed)  # noqa: S311
        call = next(written_calls(self.subject, self.tools, rng, len(self.tools)), "")
        opener = next(iter(delimiters(self.subject, self.tools, [call] if call else [])), "")
        first, second = call[: len(call) // 2], call[len(call) // 2 :]
        texts = [
            (opener, "x "), ("", opener), ("", call), ("", first), ("", second),
            (first, "x "), (first, "{"), ("", "word "), ("", call[:1]),
        ]  # fmt: skip
        for start, unit in dict.fromkeys((start, unit) for start, unit in texts if unit):
            self.checked["linear"] += 1
            try:
                is_steep = _growth(start, unit, self._read) > _STEEP
            except Exception:  # noqa: S112 - the law 'total' says so
                continue
            if is_steep:
                why = (
                    f"with {unit!r} repeated after {start!r}, four times the text takes over "
                    f"{_STEEP} times as long"
                )
                self.broken["linear"] = (start + unit, why)
                return


def _why(check: Callable[[str], None], raw: str, law: str) -> str | None:
    # None if the law is kept, or where it is another law that is broken.
    try:
        check(raw)
    except LawBroken as no:
        return no.why if no.law == law else None
    except Exception as e:
        return f"raised {type(e).__name__}: {e}"
    return None


def shrink(raw: str, bad: Callable[[str], bool]) -> str:
    """Return a shorter text that is bad as well: pieces drop out, ever smaller ones.

    bad: whether a text still shows the fault. It is called at most `_TRIES` times.

    >>> shrink("some words with an x among them", lambda text: "x" in text)
    'x'
    """
    tries = _TRIES
    size = max(1, len(raw) // 2)

    # Halves first: most of a text has nothing to do with the fault.
    while size and tries:
        at = 0
        while at < len(raw) and tries:
            shorter = raw[:at] + raw[at + size :]
            tries -= 1
            if bad(shorter):
                raw = shorter
            else:
                at += size

        size //= 2

    return raw


def _growth(beginning: str, unit: str, parse_text: Callable[[str], Any]) -> float:
    # The factor by which four times the text takes longer, at a size where the clock can tell.
    # 1.0 if it never can.
    size, before = 250, 0.0
    # A collection takes as long as the heap of the caller is large, whatever the text.
    with paused_collector():
        while size <= 64_000:
            raw = beginning + (unit * (size // len(unit) + 1))[:size]
            times: list[float] = []
            # Processor time, the best of three: a loaded machine slows one measurement down,
            # hardly three.
            for _ in range(3):
                start = time.process_time()
                parse_text(raw)
                times.append(time.process_time() - start)
            # Below five milliseconds the clock says little.
            if before > 0.005:
                return min(times) / before
            size, before = size * 4, min(times)
    return 1.0


# Texts to try a protocol on, made from its own writing: whole calls, damaged ones, and random joins
# of pieces. Everything follows from a seed, so that a counterexample can be made again.

# Values of strings that a careless writer or reader changes.
_TEXTS = (
    "", "x", " two words ", "it's \"quoted\"", "a\nb\r\n", "</f>", "<a>&lt;b</a>", "\\", "\\n",
    "007", "null", "true",
    "é😀", "\x00", "{}", "[1, 2]", "```\n", "- a: b", "# c",
)  # fmt: skip
_NUMBERS = (0, 1, -1, 2**63, 1.5, -0.25, 1e30)
_TOKEN = re.compile(r"</?[^<>\s]{0,40}>?|\w+|\s+|[^\w\s<]+")


def make_arguments(tool: ToolSpec, rng: random.Random, simple: bool = False) -> dict[str, Any]:
    """Return arguments as the tool's schema declares them, as far as plain types go.

    simple: every parameter is there, with the plainest value of its type. Else each may be absent.
    """
    schema = tool.schema if isinstance(tool.schema, dict) else {}
    properties = schema.get("properties")
    required = schema.get("required", ())
    return {
        name: _value(node, rng, simple)
        for name, node in (properties.items() if isinstance(properties, dict) else ())
        if simple or name in required or rng.random() < 0.7
    }


def _value(node: Any, rng: random.Random, simple: bool) -> Any:
    if not isinstance(node, dict):
        node = {}
    # If the schema itself lists values, its type says nothing more.
    for key in ("enum", "examples"):
        if isinstance(node.get(key), list) and node[key]:
            return rng.choice(node[key])
    if "const" in node:
        return node["const"]

    kind = node.get("type")
    if kind == "integer":
        return 1 if simple else rng.choice([n for n in _NUMBERS if isinstance(n, int)])
    if kind == "number":
        return 1 if simple else rng.choice(_NUMBERS)
    if kind == "boolean":
        return simple or rng.random() < 0.5
    if kind == "null":
        return None
    if kind == "array":
        count = 1 if simple else rng.randrange(4)
        return [_value(node.get("items"), rng, simple) for _ in range(count)]
    if kind == "object":
        return make_arguments(ToolSpec("", "", write_canonical(node)), rng, simple)
    # A schema may list several types, or none; a string is as good as any then.
    return "x" if simple else rng.choice(_TEXTS)


def written_calls(
    protocol: Any, tools: Sequence[ToolSpec], rng: random.Random, count: int
) -> Iterator[str]:
    """Yield calls of the tools in turn as the protocol writes them, each first with simple
    arguments. What it cannot write drops out. count: how many calls are tried.
    """
    write: Callable[..., str] = protocol.write_call
    for i in range(count):
        tool = tools[i % len(tools)]
        arguments = make_arguments(tool, rng, simple=i < len(tools))
        with suppress(Exception):  # the law 'round trip' tells of any but a refusal
            yield write(tool.name, write_canonical(arguments), tool)


def delimiters(protocol: Any, tools: Sequence[ToolSpec], calls: Sequence[str]) -> list[str]:
    # Openers and closers of a protocol of ours, and the tokens of the calls that it writes: the
    # first two calls show every token of a format.
    delimiters: list[str] = []
    if isinstance(protocol, Protocol):
        heads = protocol.envelope.heads({t.name: t for t in tools})
        delimiters += (*heads, *protocol.envelope.closers)
    for call in calls[:2]:
        delimiters += _TOKEN.findall(call)
    return list(dict.fromkeys(delimiters))


def make_texts(protocol: Any, tools: Sequence[ToolSpec], seed: int, count: int) -> list[str]:
    rng = random.Random(seed)  # noqa: S311 - texts, not secrets
    calls = list(written_calls(protocol, tools, rng, 4 * len(tools)))
    if not calls:
        # What only reads, as `auto` does, is tried on another format's calls.
        calls = list(written_calls(HERMES, tools, rng, 4))

    pieces = delimiters(protocol, tools, calls)
    texts = ["", " \n", "just words", *_damaged(calls, pieces)]
    # Random texts are joins of pieces of the format, halves of calls and odd characters.
    pool = [*pieces, *ODD, *calls[:3]]
    pool += [call[: len(call) // 2] for call in calls[:3]]
    pool += [call[len(call) // 2 :] for call in calls[:3]]
    joins = (range(rng.randrange(1, 10)) for _ in range(count))
    texts += ["".join([rng.choice(pool) for _ in pieces_of]) for pieces_of in joins]
    return list(dict.fromkeys(texts))


def _damaged(calls: Sequence[str], pieces: Sequence[str]) -> Iterator[str]:
    # Calls with the damage that models do: prose around, neighbours, a cut end, a lost beginning,
    # other quotes. Of the first four every damage is made, the others stay whole.
    for call in calls[:4]:
        yield from (call, f"Sure: {call} done.", f"{call}\n{call}")
        for cut in sorted({1, len(call) // 3, len(call) // 2, len(call) - 5, len(call) - 1}):
            if 0 < cut < len(call):
                yield from (call[:cut], call[:cut] + "\n" + call)
        yield from (call[len(call) // 4 :], call.replace('"', "'"), call.replace("}", ",}"))
        yield from (f"`{call}`", f"```\n{call}\n```", f"<think>{call}</think>{call}")
    yield from calls[4:]
    for piece in pieces[:12]:
        yield from (piece, piece * 3)
