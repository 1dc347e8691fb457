"""`compare`: one text read by every protocol, and by parsers of others, side by side."""

from __future__ import annotations

import string
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from ...api import parse
from ...errors import BadOptions, MissingExtra, UnreadableInput
from ...protocols.base import Protocol
from ...registry import protocol_of
from ...registry import protocols as known_protocols
from ...schema.validate import validate
from ...toolspec import ToolSpec, tool_specs
from ...types import CallStatus, ParseOptions, ParseResult, Problem
from ...values import Value, read_strict, same
from .outside import SaidCall, said_calls

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class ReadCall:
    """A call as one parser reads it. status, valid: as of a ToolCall."""

    name: str
    arguments_json: str
    status: CallStatus
    valid: bool


@dataclass(frozen=True, slots=True)
class Reading:
    """What one parser makes of the text.

    kind: 'protocol' for ours, 'outside' for a callable. result: the whole parse, of ours. failure: what an outside
    parser raised, or why what it returned is no list of calls. agrees: the same letter for the same executable calls
    in the same order, '' where there are none.
    """

    name: str
    kind: Literal["protocol", "outside"]
    calls: tuple[ReadCall, ...]
    result: ParseResult | None = None
    failure: str | None = None
    agrees: str = ""

    @property
    def executable(self) -> tuple[tuple[str, str], ...]:
        """(name, canonical arguments) of the calls that may be run."""
        return tuple((c.name, c.arguments_json) for c in self.calls if c.status == "ok" and c.valid)

    @property
    def problems(self) -> tuple[Problem, ...]:
        return tuple(self.result.all_problems()) if self.result is not None else ()

    @property
    def n_repairs(self) -> int | None:
        """None for parsers of others: they do not say."""
        return sum(len(c.edits) for c in self.result.calls) if self.result is not None else None

    @property
    def n_coercions(self) -> int | None:
        if self.result is None:
            return None
        return sum(s.stage == "coerce" for c in self.result.calls for s in c.steps)


@dataclass(frozen=True)
class Comparison:
    """Readings of one text: ours from the best to the worst, then those of others as they were given."""

    raw: str
    tools: tuple[ToolSpec, ...]
    readings: tuple[Reading, ...]

    def __getitem__(self, name: str) -> Reading:
        """The reading of that name; raises KeyError with the names there are."""
        for reading in self.readings:
            if reading.name == name:
                return reading
        raise KeyError(f"no reading of {name!r}; there are {', '.join(r.name for r in self.readings)}")

    def frame(self) -> pd.DataFrame:
        """One row a reading; its columns are those of the frame `readings`. Raises MissingExtra without pandas."""
        try:
            from .frame import readings_frame
        except ModuleNotFoundError as e:
            raise MissingExtra("frames need pandas", got=str(e), hint="pip install 'toolparse_lab[lab]'") from e
        return readings_frame(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        from .view import readings_html

        return {"text/plain": str(self), "text/html": readings_html(self)}

    def __str__(self) -> str:
        from .view import readings_text

        return readings_text(self)


def compare(
    raw: Any,
    tools: Any = None,
    protocols: Iterable[Any] | None = None,
    also: Mapping[str, Callable[[str], Any]] | None = None,
    options: ParseOptions | Mapping[str, Any] | None = None,
) -> Comparison:
    """One text read by several parsers.

    raw, tools, options: as for `parse`. protocols: ids or protocol objects; all there are, and `auto`, by default.
    also: parsers of others by name; each is called with the text and gives a list of calls in any of the usual shapes
    (`outside.said_calls`). What they raise is their reading's failure. Raises what `parse` raises, and BadOptions for
    a name that stands twice.

    >>> text = '<tool_call>{"name": "f", "arguments": {"a": 1,}}</tool_call>'
    >>> print(compare(text, protocols=["hermes", "pythonic"], also={"json": __import__("json").loads}))
    reading   agrees  calls
    hermes    A       f({"a":1}), 1 repair
    pythonic          no call
    json              failed: JSONDecodeError: Expecting value: line 1 column 1 (char 0)
    """
    specs = tool_specs(tools)
    named = {_name(p): p for p in (protocols if protocols is not None else (*known_protocols(), "auto"))}
    doubled = sorted(named.keys() & (also or {}).keys())
    if doubled:
        raise BadOptions("two readings of one name", got=doubled[0], hint="give the outside parser another name")
    results = {name: parse(raw, p, specs, options) for name, p in named.items()}
    text = next(iter(results.values())).raw if results else parse(raw, "auto", specs, options).raw
    ours = sorted((_of_ours(name, r) for name, r in results.items()), key=_rank)
    theirs = [_of_others(name, call, text, specs) for name, call in (also or {}).items()]
    return Comparison(text, specs, tuple(_lettered([*ours, *theirs])))


def _name(protocol: Any) -> str:
    if isinstance(protocol, str):
        return protocol if protocol == "auto" else protocol_of(protocol).id
    return protocol.id if isinstance(protocol, Protocol) else str(getattr(protocol, "id", type(protocol).__name__))


def _of_ours(name: str, result: ParseResult) -> Reading:
    calls = tuple(ReadCall(c.name, c.arguments_json, c.status, c.valid) for c in result.calls)
    return Reading(name, "protocol", calls, result)


def _rank(reading: Reading) -> tuple[int, int, int, int]:
    """More executable calls first, then fewer errors, fewer calls that cannot be run, fewer changes."""
    n = len(reading.executable)
    errors = sum(p.severity == "error" for p in reading.problems)
    changes = sum(len(c.edits) + len(c.steps) for c in reading.result.calls) if reading.result else 0
    return -n, errors, len(reading.calls) - n, changes


def _of_others(name: str, parser: Callable[[str], Any], text: str, tools: tuple[ToolSpec, ...]) -> Reading:
    try:
        said = said_calls(parser(text))
    except UnreadableInput as e:
        return Reading(name, "outside", (), failure=f"what it returned cannot be read: {e}")
    except Exception as e:
        return Reading(name, "outside", (), failure=f"{type(e).__name__}: {e}")
    by_name = {t.name: t for t in tools}
    return Reading(name, "outside", tuple(_judged(c, by_name) for c in said))


def _judged(call: SaidCall, tools: Mapping[str, ToolSpec]) -> ReadCall:
    """Their call by the tools: nothing is coerced, because they gave it as what is to be run."""
    tool = tools.get(call.name)
    if tool is None:
        return ReadCall(call.name, call.arguments_json, "unknown_tool" if tools else "ok", not tools)
    problems = validate(read_strict(call.arguments_json), tool.schema_json)
    return ReadCall(call.name, call.arguments_json, "ok", not any(p.severity == "error" for p in problems))


def _lettered(readings: Iterable[Reading]) -> Iterable[Reading]:
    """The readings with the letters of their groups: A is that of the first with executable calls."""
    groups: list[list[tuple[str, Value]]] = []
    for reading in readings:
        calls = [(name, read_strict(arguments)) for name, arguments in reading.executable]
        if not calls:
            yield reading
            continue
        n = next((i for i, known in enumerate(groups) if _same_calls(calls, known)), len(groups))
        if n == len(groups):
            groups.append(calls)
        yield replace(reading, agrees=string.ascii_uppercase[n % 26] * (n // 26 + 1))


def _same_calls(a: list[tuple[str, Value]], b: list[tuple[str, Value]]) -> bool:
    """Equal names and equal JSON, in order; the order of an object's keys says nothing."""
    return len(a) == len(b) and all(x[0] == y[0] and same(x[1], y[1]) for x, y in zip(a, b, strict=True))
