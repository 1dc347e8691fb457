"""`check_stream`: whether what a stream parser says of a text depends on the chunks in which the text comes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .api import stream
from .engine import StreamParser
from .errors import UnknownProtocol
from .foreign import ForeignProtocol, TheirStream, adapt
from .foreign_parse import ForeignParser, read_parts
from .laws import chunkings, merge
from .protocols.base import Protocol
from .values import read_plain, write_canonical


@dataclass(frozen=True, slots=True)
class Difference:
    """A chunking that gives another result. cuts: the offsets in raw where it was cut."""

    cuts: tuple[int, ...]
    got: str
    expected: str


@dataclass(frozen=True, slots=True)
class StreamReport:
    """What `check_stream` found. tried: the number of chunkings."""

    raw: str
    tried: int
    differences: tuple[Difference, ...]

    @property
    def ok(self) -> bool:
        """The result is the same for every chunking tried."""
        return not self.differences

    def __str__(self) -> str:
        if self.ok:
            return f"the same result for all {self.tried} chunkings of {len(self.raw)} characters"
        first = self.differences[0]
        single = [d.cuts[0] for d in self.differences if len(d.cuts) == 1]
        where = f"\n  one cut is enough at {_ranges(single)}" if single else ""
        cuts = ", ".join(map(str, first.cuts[:8])) + (", …" if len(first.cuts) > 8 else "")
        return (
            f"another result for {len(self.differences)} of {self.tried} chunkings{where}"
            f"\n  cut at {cuts}: {first.got}\n  in one piece: {first.expected}"
        )


def check_stream(raw: str, parser: Any, tools: Any = None, options: Any = None) -> StreamReport:
    """Feeds a text to a stream parser in many splits and says where its result depends on the chunking.

    parser: a protocol (an id, a Protocol, an object of your own), a parser of `tp.stream`, or a function that makes a
    new parser each time: an object with feed and close (or write, finish, end, flush), a transformer, a function of all
    chunks. What the parser returns is compared as parts where it is parts, else as it is. A parser that raises has that
    as its result.

    >>> check_stream("a <tool_call>{}</tool_call>", "hermes").ok
    True
    """
    run = _runner(parser, tools, options)
    whole = run([raw])
    plans = [*chunkings(raw), *([raw[i : i + n] for i in range(0, len(raw), n)] for n in (2, 3, 5, 8, 13, 32))]
    found: list[Difference] = []
    for chunks in plans:
        other = run(chunks)
        if other != whole:
            at, cuts = 0, []
            for chunk in chunks[:-1]:
                at += len(chunk)
                cuts.append(at)
            found.append(Difference(tuple(cuts), _shown(other), _shown(whole)))
    found.sort(key=lambda d: (len(d.cuts), d.cuts))
    return StreamReport(raw, len(plans), tuple(found))


def _runner(parser: Any, tools: Any, options: Any) -> Callable[[Iterable[str]], Any]:
    """A function that feeds chunks to a new parser and returns everything it said."""
    if isinstance(parser, (StreamParser, ForeignParser)):
        protocol, specs, chosen = parser.protocol, tuple(parser.tools.values()), parser.options
        return lambda chunks: _fed(stream(protocol, specs, chosen), chunks)
    if isinstance(parser, (str, Protocol)):
        return lambda chunks: _fed(stream(parser, tools, options), chunks)
    if not callable(parser) or isinstance(parser, type):
        foreign = adapt(parser) if not isinstance(parser, type) else None
        if isinstance(foreign, ForeignProtocol):
            return lambda chunks: _fed(foreign.create_stream_parser(tools), chunks)
        if not callable(parser):
            raise UnknownProtocol(
                "this is no stream parser that can be made anew", got=type(parser).__name__,
                expected="a protocol, a parser of tp.stream, or a function that makes a parser",
            )  # fmt: skip
    return lambda chunks: _fed(_made(parser), chunks)


def _made(factory: Callable[[], Any]) -> Any:
    made = factory()
    return made if isinstance(made, (StreamParser, ForeignParser)) else TheirStream(made)


def _fed(parser: Any, chunks: Iterable[str]) -> Any:
    try:
        if isinstance(parser, (StreamParser, ForeignParser)):
            events = [e for chunk in chunks for e in parser.feed(chunk)]
            result = parser.close()
            return result, merge([*events, *parser.last_events()])
        said = [p for chunk in chunks for p in parser.feed(chunk)]
        said += parser.close()
    except Exception as e:
        return f"{type(e).__name__}: {e}"
    return joined_parts(said) if all(isinstance(p, (str, Mapping)) for p in said) else said


def _shown(said: Any) -> str:
    text = str(said[0].why()) if isinstance(said, tuple) else str(said)
    return text if len(text) <= 300 else text[:297] + "..."


def _ranges(numbers: list[int]) -> str:
    """1, 2, 3, 7 as `1-3, 7`."""
    out: list[list[int]] = []
    for n in sorted(set(numbers)):
        if out and n == out[-1][1] + 1:
            out[-1][1] = n
        else:
            out.append([n, n])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in out[:12]) + (", …" if len(out) > 12 else "")


def joined_parts(parts: Iterable[Any]) -> list[tuple[Any, ...]]:
    """What the parts of a stream or of a whole text say: ("text", …) and ("call", name, input), neighbours joined."""
    out: list[tuple[Any, ...]] = []
    for said in read_parts(map(_whole_part, filter(_says, parts)), []):
        if said.kind == "call":
            given = said.input
            out.append(("call", said.name, write_canonical(_plain(given)) if given is not None else "{}"))
        elif not said.text:
            continue
        elif out and out[-1][0] == said.kind:
            out[-1] = (said.kind, out[-1][1] + said.text)
        else:
            out.append((said.kind, said.text))
    return out


def _plain(given: Any) -> Any:
    try:
        return read_plain(given) if isinstance(given, str) else given
    except (ValueError, RecursionError):
        return given


def _says(part: Any) -> bool:
    """Not a frame around what is said: starts, ends, inputs under way, the end of the stream."""
    kind = part.get("type", "") if isinstance(part, Mapping) else "text"
    return kind in ("text", "text-delta", "reasoning", "reasoning-delta", "tool-call", "tool_call")


def _whole_part(part: Any) -> Any:
    if not isinstance(part, Mapping) or not str(part.get("type")).endswith("-delta"):
        return part
    text = next((part[k] for k in ("delta", "textDelta", "text_delta", "text") if isinstance(part.get(k), str)), "")
    return {"type": str(part["type"]).removesuffix("-delta"), "text": text}
