"""`check_protocol`: the laws tried on a protocol, and the smallest text on which one fails.

How it works: each law is a function that raises LawBroken on a text. `_Court` tries every law on
every text, the shortest texts first, and drops a law at its first failure. The text is then made
smaller (`shrink`), so that the counterexample shows little but the fault. The cost is that of the
texts times the splits of each. Shrinking takes at most `_TRIES` more parses for each broken law.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from ...core.errors import BadOptions, UnknownProtocol
from ...core.toolspec import ToolsLike, ToolSpec, tool_specs
from ...core.types import ParseOptions, ParseResult
from ...core.values import write_canonical
from ...formats.like import ProtocolLike
from ..any_protocol import any_protocol
from ..foreign.protocol import REQUIRED, ForeignProtocol, adapt, camel
from ..parse import parse
from .check_stream import joined_parts
from .checks import TEXT_LAWS, LawBroken, Trial, check_round_trip, check_splits, chunkings, try_text
from .texts import TOOLS, delimiters, make_arguments, make_texts, written_calls

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

    >>> import toolparse_lab as tp
    >>> report = tp.check_protocol("hermes")
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
        """The findings of the laws that do not hold.

        They stand in the order of `LAWS`, or empty if every law holds or does not apply.
        """
        return tuple(f for f in self.findings if f.verdict == "violated")

    def __getitem__(self, law: str) -> Finding:
        """Return the finding of a law.

        KeyError for a name that is none.

        law: one of the names in `LAWS`, such as 'split invariance'.
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

        for finding in self.findings:
            lines += [f"  {line}" for line in str(finding).splitlines()]

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

    Pass an id, one of ours, or an object of your own with the methods of an AI SDK's.

    The texts are made from the calls the protocol itself writes and from its delimiters: some sixty
    whole and damaged ones, and `examples` random ones.

    Args:
        tools: those the calls are of (two of ours unless said otherwise). The same seed gives the
            same texts. Only the law 'linear' looks at a clock, and so with a wide margin.

    Raises UnknownProtocol for anything that is not a protocol, and BadToolSpec and BadOptions as
    `parse` does.

    >>> check_protocol("hermes", examples=5).ok
    True
    """
    if isinstance(examples, bool) or not isinstance(examples, int) or examples < 0:
        raise BadOptions("examples is a number of texts", got=examples, expected="0 or more")

    subject = _subject(protocol)
    specs = tool_specs(tools) or TOOLS
    court = _Court(subject, specs, options, seed)
    court.try_all(make_texts(subject, specs, seed, examples))
    findings = tuple(court.finding(law) for law in LAWS)
    return LawReport(subject.id, seed, findings)


def _subject(x: Any) -> Any:
    """Return the protocol that is tried.

    Raises UnknownProtocol, with the methods that are there.

    x: an id such as "hermes" or "auto", a Protocol, or another's object with its methods.
    """
    if isinstance(x, str):
        return any_protocol(x)

    subject = adapt(x)
    if subject is None:
        near = [method for method in REQUIRED if _has_method(x, method)]
        raise UnknownProtocol(
            "this is no protocol",
            got=type(x).__name__,
            expected=f"an id, a Protocol or an object with {', '.join(REQUIRED)}",
            hint=f"it has {', '.join(near)}" if near else None,
        )

    return subject


def _has_method(x: Any, name: str) -> bool:
    """Return True if an object has a method, by Python's spelling or by TypeScript's.

    >>> _has_method("text", "upper"), _has_method("text", "lower_case")
    (True, False)
    """
    return callable(getattr(x, name, None)) or callable(getattr(x, camel(name), None))


class _Court:
    """Tries laws on texts and keeps the smallest counterexample of each.

    checked: law -> the number of texts it was tried on. broken: law -> counterexample and reason.
    """

    def __init__(self, subject: Any, tools: tuple[ToolSpec, ...], options: Any, seed: int) -> None:
        self.subject = subject
        self.tools = tools
        self.options = options
        self.seed = seed
        self.is_foreign = isinstance(subject, ForeignProtocol)
        self.checked: dict[str, int] = {}
        self.broken: dict[str, tuple[str | None, str]] = {}

    def finding(self, law: str) -> Finding:
        """Return the outcome of a law.

        One tried on nothing is not applicable.

        law: one of the names in `LAWS`. The reason is that of the smallest counterexample.
        """
        checked = self.checked.get(law, 0)
        if law in self.broken:
            return Finding(law, "violated", checked, *self.broken[law])
        return Finding(law, "held" if checked else "not applicable", checked)

    def try_all(self, texts: list[str]) -> None:
        """Try every law.

        texts: any. Each is tried on every law that no shorter text has broken.
        """
        if self.is_foreign:
            self._try_surface()

        checks = self._foreign_checks() if self.is_foreign else self._our_checks()
        # The shortest first, so that the first counterexample is a short one.
        for raw in sorted(texts, key=len):
            for law, check in checks.items():
                self._try(law, raw, check)

        self._try_round_trips()
        self._try_linear()

    def _count(self, law: str) -> None:
        """Count one more trial of a law."""
        self.checked[law] = self.checked.get(law, 0) + 1

    def _try(self, law: str, raw: str, check: Callable[[str], None]) -> None:
        """Try a law on a text, unless it is broken already.

        law: its name in `LAWS`.
        raw: the text.
        check: raises LawBroken if the law does not hold on a text.

        The first failure is made smaller and kept, and the law is not tried again.
        """
        if law in self.broken:
            return

        self._count(law)
        why = _why(check, raw, law)
        if why is not None:
            # Smaller by the same law: another fault in a smaller text is another finding.
            smaller = shrink(raw, lambda text: _why(check, text, law) is not None)
            self.broken[law] = (smaller, _why(check, smaller, law) or why)

    # a protocol of ours

    def _trial(self, raw: str) -> Trial:
        """Return the text parsed by the protocol.

        Raises LawBroken if parsing itself breaks a law.
        """
        return try_text(raw, self.subject, self.tools, self.options)

    def _our_checks(self) -> Mapping[str, Callable[[str], None]]:
        """Law -> a function of a text that raises LawBroken.

        'idempotent' and 'trace replay' are one function, which raises the name of the law it saw
        broken. `_why` tells them apart.
        """

        def of(check: Callable[[Trial], None]) -> Callable[[str], None]:
            """Return a function of a text that parses it and checks the law."""
            return lambda raw: check(self._trial(raw))

        checks = {law: of(check) for law, check in TEXT_LAWS.items() if law != "split invariance"}
        # These two are checked by parsing alone: `try_text` raises for them.
        checks["total"] = checks["text is final"] = of(lambda _: None)
        checks["idempotent"] = checks["trace replay"]
        checks["split invariance"] = lambda raw: check_splits(self._trial(raw), _EVERY_SPLIT)
        return checks

    # an object of somebody else's

    def _try_surface(self) -> None:
        """Look for the methods that every protocol has.

        This law looks at the object and at no text, so its counterexample has only a reason.
        """
        missing = self.subject.missing()
        self.checked["surface"] = len(REQUIRED)
        if missing:
            self.broken["surface"] = (None, f"missing: {', '.join(missing)}")

    def _foreign_checks(self) -> Mapping[str, Callable[[str], None]]:
        """Law -> a function of a text that raises LawBroken.

        The laws of streams only for one.
        """
        checks = {
            "total": self._raises_nothing,
            "partition": self._accounts,
            "repeatable": self._repeats,
        }
        if self.subject.method("create_stream_parser") is not None:
            checks |= {
                "split invariance": self._same_in_pieces,
                "stream agrees": self._stream_agrees,
            }

        return checks

    def _read(self, raw: str) -> ParseResult:
        """Return the result of a whole text.

        Raises nothing for a foreign parser that fails: its exception is a problem of the result.
        """
        return parse(raw, self.subject, self.tools, self.options)

    def _raises_nothing(self, raw: str) -> None:
        """The law 'total'.

        The engine turns an exception into a problem.

        raw: the text. Raises LawBroken with the parser's own message.
        """
        for p in self._read(raw).problems:
            if p.code == "parser.failed":
                raise LawBroken("total", p.message)

    def _accounts(self, raw: str) -> None:
        """The law 'partition': every part has a place in the text, every character a part.

        raw: the text. Raises LawBroken with the first part that has no place.
        """
        for p in self._read(raw).problems:
            if p.code in _LOST:
                raise LawBroken("partition", p.message)

    def _repeats(self, raw: str) -> None:
        """The law 'repeatable', broken by state that one parse leaves to the next.

        raw: the text, parsed twice by the same object.
        """
        if self._read(raw) != self._read(raw):
            raise LawBroken("repeatable", "a second parse said something else")

    def _streamed(self, chunks: Iterable[str]) -> list[tuple[Any, ...]]:
        """Return the joined parts of the object's own stream parser.

        chunks: the pieces of one text, in order.

        Each call makes a new parser, so that no state remains from the chunks before.
        """
        parser = self.subject.create_stream_parser(self.tools)
        parts: list[Any] = []
        for chunk in chunks:
            parts.extend(parser.feed(chunk))

        parts.extend(parser.close())
        return joined_parts(parts)

    def _same_in_pieces(self, raw: str) -> None:
        """The law 'split invariance'.

        raw: the text. Raises LawBroken for the first chunking that gives other parts, with both
        results.
        """
        whole = self._streamed([raw])
        for chunks in chunkings(raw, most=_EVERY_SPLIT):
            other = self._streamed(chunks)
            if other != whole:
                raise LawBroken(
                    "split invariance",
                    f"in {_pieces(chunks)} it says {other}, in one piece {whole}",
                )

    def _stream_agrees(self, raw: str) -> None:
        """The law 'stream agrees', but for white space.

        raw: the text, read once as a whole and once as a stream of one piece.
        """
        batch = joined_parts(self.subject.parse_generated_text(raw, self.tools))
        got = [part for part in self._streamed([raw]) if _has_words(part)]
        expected = [part for part in batch if _has_words(part)]
        if got != expected:
            raise LawBroken("stream agrees", f"the stream says {got}, the whole text {expected}")

    # both

    def _try_round_trips(self) -> None:
        """Write calls of every tool, simple arguments first, and read them back.

        Calls that the protocol refuses to write do not count: refusing is allowed.
        """
        # Calls, not texts: so there is nothing to shrink, and the shortest failure is kept.
        rng = random.Random(self.seed)  # noqa: S311
        smallest: tuple[str, str] | None = None

        for i in range(20 * len(self.tools)):
            tool = self.tools[i % len(self.tools)]
            arguments_json = write_canonical(make_arguments(tool, rng, simple=i < len(self.tools)))
            try:
                if check_round_trip(self.subject, tool, arguments_json):
                    self._count("round trip")
            except LawBroken as no:
                if smallest is None or len(arguments_json) < len(smallest[0]):
                    smallest = f"{tool.name}({arguments_json})", no.why

        if smallest is not None:
            self.broken["round trip"] = smallest

    def _try_linear(self) -> None:
        """Measure how the cost of some texts grows, up to the first that grows too fast.

        A text on which the parser raises is left out here, because another law tells of it.
        """
        for start, unit in self._growing_texts():
            self._count("linear")
            try:
                steep = _growth(start, unit, self._read) > _STEEP
            except Exception:  # noqa: S112 - the law 'total' says so
                continue

            if steep:
                why = (
                    f"with {unit!r} repeated behind {start!r}, four times the text takes over "
                    f"{_STEEP} times as long"
                )
                self.broken["linear"] = (start + unit, why)
                return

    def _growing_texts(self) -> Iterable[tuple[str, str]]:
        """(beginning, repeated piece) of texts on which a careless scanner is slow.

        They are made of a call of the protocol's own, cut in the middle, and of its first opener. A
        protocol that writes no call still gets plain words.
        """
        rng = random.Random(self.seed)  # noqa: S311
        call = next(written_calls(self.subject, self.tools, rng, len(self.tools)), "")
        opener = next(iter(delimiters(self.subject, self.tools, [call] if call else [])), "")
        half = len(call) // 2
        first, second = call[:half], call[half:]
        texts = [
            (opener, "x "),
            ("", opener),
            ("", call),
            ("", first),
            ("", second),
            (first, "x "),
            (first, "{"),
            ("", "word "),
            ("", call[:1]),
        ]
        return dict.fromkeys((start, unit) for start, unit in texts if unit)


def _has_words(part: tuple[Any, ...]) -> bool:
    """Return False for a part that is white space alone.

    >>> _has_words(("text", " ")), _has_words(("call", "f", "{}"))
    (False, True)
    """
    return part[0] == "call" or bool(part[1].strip())


def _why(check: Callable[[str], None], raw: str, law: str) -> str | None:
    """The reason why a law does not hold on a text.

    None if it does, or where it is another law that does not.

    check: raises LawBroken if a law does not hold.
    raw: the text it is tried on.
    law: the name of the law that is asked about.

    Any other exception counts as a broken law, with its class and message as the reason.
    """
    try:
        check(raw)
    except LawBroken as no:
        return no.why if no.law == law else None
    except Exception as e:
        return f"raised {type(e).__name__}: {e}"

    return None


def shrink(raw: str, bad: Callable[[str], bool]) -> str:
    """Return a shorter text that is bad as well: pieces drop out, ever smaller ones, as long as
    it stays bad.

    raw: a text that is bad.
    bad: tells of a text whether it still shows the fault. It is called at most `_TRIES` times.

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
    """Return the factor by which four times the text takes longer, at a size where the clock can
    tell. 1.0 if it never can.

    beginning: stands once before what is repeated.
    unit: the piece that is repeated up to the size, never empty.
    parse_text: the function whose time is taken, as processor time of this process.

    Sizes grow by four until one measurement is long enough to compare the next one with.
    """
    size, before = 250, 0.0
    while size <= 64_000:
        seconds = _fastest(parse_text, beginning + (unit * (size // len(unit) + 1))[:size])
        # Below five milliseconds the clock says little.
        if before > 0.005:
            return seconds / before

        size, before = size * 4, seconds

    return 1.0


def _fastest(parse_text: Callable[[str], Any], raw: str) -> float:
    """Return the processor time of the fastest of three runs, in seconds.

    A loaded machine slows one measurement down, hardly three. Each size is measured so, because a
    slow measurement of the small text hides the growth as surely as one of the large text feigns
    it.
    """
    collects = gc.isenabled()
    # A collection takes as long as the heap of the caller is large, whatever the text.
    gc.disable()
    try:
        return min(_processor_time(parse_text, raw) for _ in range(3))
    finally:
        if collects:
            gc.enable()


def _processor_time(parse_text: Callable[[str], Any], raw: str) -> float:
    start = time.process_time()
    parse_text(raw)
    return time.process_time() - start


def _pieces(chunks: list[str]) -> str:
    """Return the chunking in words.

    >>> _pieces(["ab", "c"]), _pieces(["a", "b", "c"])
    ("the pieces 'ab' and 'c'", 'single characters')
    """
    if len(chunks) != 2:
        return "single characters"
    return f"the pieces {chunks[0][-20:]!r} and {chunks[1][:20]!r}"
