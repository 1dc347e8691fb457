"""`check_stream`: a stream parser tried on many chunkings of a text, which must give one result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import Any

from ....core.errors import UnknownProtocol
from ....core.values import read_plain, write_canonical
from ....core.values.printable import counted
from ....entry.foreign.parser import ForeignParser, read_parts
from ....entry.foreign.protocol import ForeignProtocol, TheirStream, adapt
from ....entry.laws import chunkings, feed_chunks
from ....entry.parse import stream
from ....formats.base import Protocol
from ....parser.engine import StreamParser


@dataclass(frozen=True, slots=True)
class Difference:
    """A chunking that gives another result. cuts: the offsets in raw where it was cut."""

    cuts: tuple[int, ...]
    got: str
    expected: str


@dataclass(frozen=True, slots=True)
class StreamReport:
    """The outcome of `check_stream`.

    Attributes:
        tried: the number of chunkings.

    >>> text = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'
    >>> report = check_stream(text, "hermes")
    >>> report.ok
    True
    """

    raw: str
    tried: int
    differences: tuple[Difference, ...]

    @property
    def ok(self) -> bool:
        """The result is the same for every chunking tried."""
        return not self.differences

    def __str__(self) -> str:
        """Return the report as text. Of a fault, one chunking that shows it."""
        if self.ok:
            size = counted(len(self.raw), "character")
            return f"the same result for all {counted(self.tried, 'chunking')} of {size}"

        first = self.differences[0]
        single = [d.cuts[0] for d in self.differences if len(d.cuts) == 1]
        where = f"\n  one cut is enough at {_ranges(single)}" if single else ""
        cuts = ", ".join(map(str, first.cuts[:8]))
        if len(first.cuts) > 8:
            cuts += ", …"

        return (
            f"another result for {len(self.differences)} of {self.tried} chunkings{where}"
            f"\n  cut at {cuts}: {first.got}\n  in one piece: {first.expected}"
        )


def check_stream(raw: str, parser: Any, tools: Any = None, options: Any = None) -> StreamReport:
    """Feed a text to a stream parser in many splits, and compare the results.

    The report names each place where the result depends on the chunking.

    Args:
        parser: a protocol (an id, a Protocol, an object of your own), a parser of `tp.stream`, or a
            function that makes a new parser each time: an object with feed and close (or write,
            finish, end, flush), a transformer, a function of all chunks. Text and call parts are
            compared once joined, anything else by equality. An exception counts as a result.

    >>> check_stream("a <tool_call>{}</tool_call>", "hermes").ok
    True
    """
    new_parser = _factory(parser, tools, options)
    whole = _outcome(new_parser(), [raw])
    # Sizes of pieces that are small and have few common factors, so that the cuts differ.
    sizes = (2, 3, 5, 8, 13, 32)
    pieces = ([raw[i : i + n] for i in range(0, len(raw), n)] for n in sizes)
    splits = [*chunkings(raw), *pieces]
    differences: list[Difference] = []

    for chunks in splits:
        other = _outcome(new_parser(), chunks)
        if other != whole:
            cuts = tuple(accumulate(len(chunk) for chunk in chunks[:-1]))
            differences.append(Difference(cuts, _shortened(other), _shortened(whole)))

    # The fewest cuts first: one cut that is enough says where to look.
    differences.sort(key=lambda d: (len(d.cuts), d.cuts))
    return StreamReport(raw, len(splits), tuple(differences))


def _factory(parser: Any, tools: Any, options: Any) -> Callable[[], Any]:
    # A finished parser cannot be used again, which is why each chunking needs a new one.
    if isinstance(parser, (StreamParser, ForeignParser)):
        specs = tuple(parser.tools.values())
        return lambda: stream(parser.protocol, specs, parser.options)
    if isinstance(parser, (str, Protocol)):
        return lambda: stream(parser, tools, options)

    # A class is taken for a function that makes parsers, not for a protocol object.
    if not callable(parser):
        foreign = adapt(parser)
        if isinstance(foreign, ForeignProtocol):
            return lambda: foreign.create_stream_parser(tools)
        raise UnknownProtocol(
            "this is no stream parser that can be made anew",
            got=type(parser).__name__,
            expected="a protocol, a parser of tp.stream, or a function that makes a parser",
        )

    def new_parser() -> Any:
        made = parser()
        return made if isinstance(made, (StreamParser, ForeignParser)) else TheirStream(made)

    return new_parser


def _outcome(parser: Any, chunks: Iterable[str]) -> Any:
    # Of our parsers the result with the merged event log, of others the joined parts; an exception
    # as a string.
    try:
        if isinstance(parser, (StreamParser, ForeignParser)):
            return feed_chunks(parser, chunks)
        parts = [part for chunk in chunks for part in parser.feed(chunk)]
        parts += parser.close()
    except Exception as e:
        return f"{type(e).__name__}: {e}"

    # Values that are no parts of an AI SDK are compared as they are.
    are_parts = all(isinstance(part, (str, Mapping)) for part in parts)
    return joined_parts(parts) if are_parts else parts


def _shortened(outcome: Any) -> str:
    text = str(outcome[0].why()) if isinstance(outcome, tuple) else str(outcome)
    return text if len(text) <= 300 else text[:297] + "..."


def _ranges(numbers: list[int]) -> str:
    # 1, 2, 3, 7 as `1-3, 7`, of more than twelve ranges the first twelve.
    in_order = enumerate(sorted(set(numbers)))
    rows = [[n for _, n in row] for _, row in groupby(in_order, lambda pair: pair[1] - pair[0])]
    text = ", ".join(str(r[0]) if len(r) == 1 else f"{r[0]}-{r[-1]}" for r in rows[:12])
    return f"{text}, …" if len(rows) > 12 else text


def joined_parts(parts: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Return the parts of a stream or of a whole text as ("text", …) and ("call", name, input),
    neighbours joined.

    parts: texts and mappings, in the words of any version of the AI SDK.

    >>> joined_parts(["a", "b", {"type": "tool-call", "toolName": "f", "input": "{}"}])
    [('text', 'ab'), ('call', 'f', '{}')]
    """
    out: list[tuple[Any, ...]] = []
    for part in read_parts(_whole_parts(parts), []):
        if part.kind == "call":
            arguments = {} if part.input is None else part.input
            if isinstance(arguments, str):
                # JSON text as a rule. Other strings stay as they are.
                with suppress(ValueError, RecursionError):
                    arguments = read_plain(arguments)
            out.append(("call", part.name, write_canonical(arguments)))
        elif not part.text:
            continue
        elif out and out[-1][0] == part.kind:
            out[-1] = (part.kind, out[-1][1] + part.text)
        else:
            out.append((part.kind, part.text))

    return out


def _whole_parts(parts: Iterable[Any]) -> Iterator[Any]:
    # Without the frame around content: starts, ends, inputs under way, the end of the stream. A
    # piece of text or reasoning becomes a part of its own.
    for part in parts:
        kind = part.get("type", "") if isinstance(part, Mapping) else "text"
        if kind in ("text-delta", "reasoning-delta"):
            # Versions of the AI SDK differ in the name.
            names = ("delta", "textDelta", "text_delta", "text")
            text = next((part[name] for name in names if isinstance(part.get(name), str)), "")
            yield {"type": kind.removesuffix("-delta"), "text": text}
        elif kind in ("text", "reasoning", "tool-call", "tool_call"):
            yield part
