"""`check_protocol`: whether a protocol keeps the laws, and the smallest text on which it does not."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from .api import parse
from .auto import AUTO
from .errors import BadOptions, UnknownProtocol
from .foreign import REQUIRED, ForeignProtocol, adapt, camel
from .law_texts import TOOLS, delimiters, make_arguments, make_texts, written_calls
from .laws import TEXT_LAWS, LawBroken, Trial, check_round_trip, check_splits, chunkings, try_text
from .registry import protocol_of
from .stream_report import joined_parts
from .toolspec import ToolSpec, tool_specs
from .types import ParseResult
from .values import write_canonical

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
_LOST = frozenset(("foreign.text-not-in-raw", "foreign.dropped-text", "foreign.no-place", "foreign.bad-part"))
_EVERY_SPLIT = 60  # characters up to which every split is tried
_STEEP = 8  # quadratic cost is 16 times for four times the text; a loaded machine blurs the clock
_TRIES = 250  # texts tried to make a counterexample smaller


@dataclass(frozen=True, slots=True)
class Finding:
    """What became of one law. checked: how many texts or calls it was tried on. counterexample: the smallest found."""

    law: str
    verdict: Verdict
    checked: int = 0
    counterexample: str | None = None
    why: str = ""

    def __str__(self) -> str:
        line = f"{self.law:<17} {self.verdict}"
        if self.verdict == "held":
            return f"{line} ({self.checked} tried)"
        if self.verdict == "violated":
            shown = f"\n    on {self.counterexample!r}" if self.counterexample is not None else ""
            return f"{line}: {LAWS[self.law]}{shown}\n    {self.why}"
        return line


@dataclass(frozen=True, slots=True)
class LawReport:
    """What `check_protocol` found, law by law."""

    protocol: str
    seed: int
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """No law is violated."""
        return not self.violated

    @property
    def violated(self) -> tuple[Finding, ...]:
        return tuple(f for f in self.findings if f.verdict == "violated")

    def __getitem__(self, law: str) -> Finding:
        """The finding of a law; KeyError for a name that is none."""
        return next((f for f in self.findings if f.law == law), None) or _no_law(law)

    def __str__(self) -> str:
        held = sum(1 for f in self.findings if f.verdict == "held")
        head = f"{self.protocol}: {held} laws held, {len(self.violated)} violated (seed {self.seed})"
        return "\n".join([head, *(f"  {line}" for f in self.findings for line in str(f).splitlines())])


def _no_law(law: str) -> Finding:
    raise KeyError(f"no law {law!r}; there are: {', '.join(LAWS)}")


def check_protocol(
    protocol: Any, tools: Any = None, *, seed: int = 0, examples: int = 60, options: Any = None
) -> LawReport:
    """Runs the laws on a protocol: an id, one of ours, or an object of your own with the methods of an AI SDK's.

    The texts are made from the calls the protocol itself writes and from its delimiters: some sixty whole and damaged
    ones, and `examples` random ones. tools: those the calls are of (two of ours unless said otherwise). The same seed
    gives the same texts; only the law 'linear' looks at a clock, and so with a wide margin.

    Raises UnknownProtocol for what is no protocol, and BadToolSpec and BadOptions as `parse` does.

    >>> check_protocol("hermes", examples=5).ok
    True
    """
    if isinstance(examples, bool) or not isinstance(examples, int) or examples < 0:
        raise BadOptions("examples is a number of texts", got=examples, expected="0 or more")
    subject = _subject(protocol)
    specs = tool_specs(tools) or TOOLS
    court = _Court(subject, specs, options, seed)
    court.hear(make_texts(subject, specs, seed, examples))
    findings = tuple(court.finding(law) for law in LAWS)
    return LawReport(subject.id, seed, findings)


def _subject(x: Any) -> Any:
    if isinstance(x, str):
        return AUTO if x == "auto" else protocol_of(x)
    found = adapt(x)
    if found is None:
        near = [m for m in REQUIRED if callable(getattr(x, m, None)) or callable(getattr(x, camel(m), None))]
        raise UnknownProtocol(
            "this is no protocol", got=type(x).__name__,
            expected=f"an id, a Protocol or an object with {', '.join(REQUIRED)}",
            hint=f"it has {', '.join(near)}" if near else None,
        )  # fmt: skip
    return found


class _Court:
    """Tries laws on texts and keeps the smallest counterexample of each."""

    def __init__(self, subject: Any, tools: tuple[ToolSpec, ...], options: Any, seed: int) -> None:
        self.subject = subject
        self.tools = tools
        self.options = options
        self.seed = seed
        self.theirs = isinstance(subject, ForeignProtocol)
        self.checked: dict[str, int] = {}
        self.broken: dict[str, tuple[str | None, str]] = {}

    def finding(self, law: str) -> Finding:
        if law in self.broken:
            return Finding(law, "violated", self.checked.get(law, 0), *self.broken[law])
        checked = self.checked.get(law, 0)
        return Finding(law, "held" if checked else "not applicable", checked)

    def hear(self, texts: list[str]) -> None:
        if self.theirs:
            self._surface()
        for raw in sorted(texts, key=len):  # so that the first counterexample is a short one
            for law, check in self._checks().items():
                self._try(law, raw, check)
        self._round_trips()
        self._linear()

    def _checks(self) -> Mapping[str, Callable[[str], None]]:
        return self._their_checks() if self.theirs else self._our_checks()

    def _try(self, law: str, raw: str, check: Callable[[str], None]) -> None:
        if law in self.broken:
            return
        self.checked[law] = self.checked.get(law, 0) + 1
        why = _why(check, raw, law)
        if why is not None:
            smaller = shrink(raw, lambda text: _why(check, text, law) is not None)
            self.broken[law] = (smaller, _why(check, smaller, law) or why)

    # a protocol of ours

    def _trial(self, raw: str) -> Trial:
        return try_text(raw, self.subject, self.tools, self.options)

    def _our_checks(self) -> Mapping[str, Callable[[str], None]]:
        def of(check: Callable[[Trial], None]) -> Callable[[str], None]:
            return lambda raw: check(self._trial(raw))

        found = {law: of(check) for law, check in TEXT_LAWS.items() if law != "split invariance"}
        found["total"] = found["text is final"] = of(lambda _: None)
        found["idempotent"] = found["trace replay"]
        found["split invariance"] = lambda raw: check_splits(self._trial(raw), _EVERY_SPLIT)
        return found

    # an object of somebody else's

    def _surface(self) -> None:
        missing = self.subject.missing()
        self.checked["surface"] = len(REQUIRED)
        if missing:
            self.broken["surface"] = (None, f"missing: {', '.join(missing)}")

    def _their_checks(self) -> Mapping[str, Callable[[str], None]]:
        checks = {"total": self._raises_nothing, "partition": self._accounts, "repeatable": self._repeats}
        if self.subject.method("create_stream_parser") is not None:
            checks |= {"split invariance": self._same_in_pieces, "stream agrees": self._stream_agrees}
        return checks

    def _read(self, raw: str) -> ParseResult:
        return parse(raw, self.subject, self.tools, self.options)

    def _raises_nothing(self, raw: str) -> None:
        for p in self._read(raw).problems:
            if p.code == "parser.failed":
                raise LawBroken("total", p.message)

    def _accounts(self, raw: str) -> None:
        for p in self._read(raw).problems:
            if p.code in _LOST:
                raise LawBroken("partition", p.message)

    def _repeats(self, raw: str) -> None:
        if self._read(raw) != self._read(raw):
            raise LawBroken("repeatable", "a second parse said something else")

    def _streamed(self, chunks: Iterable[str]) -> list[tuple[Any, ...]]:
        stream = self.subject.create_stream_parser(self.tools)
        return joined_parts([*(p for chunk in chunks for p in stream.feed(chunk)), *stream.close()])

    def _same_in_pieces(self, raw: str) -> None:
        whole = self._streamed([raw])
        for chunks in chunkings(raw, most=_EVERY_SPLIT):
            if (other := self._streamed(chunks)) != whole:
                raise LawBroken("split invariance", f"in {_pieces(chunks)} it says {other}, in one piece {whole}")

    def _stream_agrees(self, raw: str) -> None:
        batch = joined_parts(self.subject.parse_generated_text(raw, self.tools))
        said = [p for p in self._streamed([raw]) if p[0] == "call" or p[1].strip()]
        expected = [p for p in batch if p[0] == "call" or p[1].strip()]
        if said != expected:
            raise LawBroken("stream agrees", f"the stream says {said}, the whole text {expected}")

    # both

    def _round_trips(self) -> None:
        rng = random.Random(self.seed)  # noqa: S311 - arguments, not secrets
        smallest: tuple[str, str] | None = None
        for i in range(20 * len(self.tools)):
            tool = self.tools[i % len(self.tools)]
            arguments_json = write_canonical(make_arguments(tool, rng, simple=i < len(self.tools)))
            try:
                if check_round_trip(self.subject, tool, arguments_json):
                    self.checked["round trip"] = self.checked.get("round trip", 0) + 1
            except LawBroken as no:
                if smallest is None or len(arguments_json) < len(smallest[0]):
                    smallest = f"{tool.name}({arguments_json})", no.why
        if smallest is not None:
            self.broken["round trip"] = smallest

    def _linear(self) -> None:
        rng = random.Random(self.seed)  # noqa: S311
        call = next(written_calls(self.subject, self.tools, rng, len(self.tools)), "")
        begun, rest = call[: len(call) // 2], call[len(call) // 2 :]
        opener = next(iter(delimiters(self.subject, self.tools, [call] if call else [])), "")
        shapes = [
            (opener, "x "),
            ("", opener),
            ("", call),
            ("", begun),
            ("", rest),
            (begun, "x "),
            (begun, "{"),
            ("", "word "),
            ("", call[:1]),
        ]
        for start, unit in dict.fromkeys(s for s in shapes if s[1]):
            self.checked["linear"] = self.checked.get("linear", 0) + 1
            try:
                steep = min(_growth(start, unit, self._read) for _ in range(3)) > _STEEP
            except Exception:  # noqa: S112 - the law 'total' says so
                continue
            if steep:
                why = f"with {unit!r} repeated behind {start!r}, four times the text takes over {_STEEP} times as long"
                self.broken["linear"] = (start + unit, why)
                return


def _why(check: Callable[[str], None], raw: str, law: str) -> str | None:
    """Why a law does not hold on a text; None where it does, or where it is another law that does not."""
    try:
        check(raw)
    except LawBroken as no:
        return no.why if no.law == law else None
    except Exception as e:
        return f"raised {type(e).__name__}: {e}"
    return None


def shrink(raw: str, bad: Callable[[str], bool]) -> str:
    """A shorter text that is bad as well: pieces are left out, ever smaller ones, as long as it stays bad."""
    tries = _TRIES
    size = max(1, len(raw) // 2)
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


def _growth(begun: str, unit: str, read: Callable[[str], Any]) -> float:
    """How much longer four times the text takes, at a size where the clock can tell; 1.0 where it never can."""
    size, before = 250, 0.0
    while size <= 64_000:
        raw = begun + (unit * (size // len(unit) + 1))[:size]
        start = time.process_time()
        read(raw)
        took = time.process_time() - start
        if before > 0.005:
            return took / before
        size, before = size * 4, took
    return 1.0


def _pieces(chunks: list[str]) -> str:
    return f"the pieces {chunks[0][-20:]!r} and {chunks[1][:20]!r}" if len(chunks) == 2 else "single characters"
