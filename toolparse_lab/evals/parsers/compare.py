"""`compare`: one text read by every protocol, and by parsers of others, side by side."""

# How it works. Every parser makes a `ParserResult` of the same text. Ours are ranked by what can be
# run of them, those of others keep their order. Letters group the results whose executable calls
# are the same, by JSON equality and in order, so that the eye finds who agrees with whom.

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from ...arguments.schema.validate import validate
from ...core.errors import BadOptions, MissingExtra, UnreadableInput, UsageError
from ...core.toolspec import ToolsLike, ToolSpec, tool_specs
from ...core.types import CallStatus, ParseOptions, ParseResult, Problem, RawLike, ToolCall
from ...core.values import read_strict, same, write_canonical
from ...entry.foreign.protocol import any_protocol
from ...entry.parse import parse
from ...formats.like import ProtocolLike
from ...formats.registry import protocols as known_protocols
from ...middleware.content_parts import parse_generated_text
from ...views import render_result
from ...views.html import standalone
from ...views.show import one_line, shorten
from ...views.templating import Markup, macro
from ...views.words import word_of
from .outside import outside_calls, parser_of

if TYPE_CHECKING:
    import pandas as pd

_MOST_CALLS = 8
_MOST_TEXT = 32 * 1024
_TERMINAL = 160  # the columns of a wide one
# Why a call of this status is not run, in the words of the table.
_NOT_RUN = {
    "unknown_tool": "refused: unknown tool",
    "truncated": "truncated",
    "undecodable": "refused: unreadable",
    "draft": "refused: unfinished",
}


@dataclass(frozen=True, slots=True)
class ReadCall:
    """A call as one parser reads it. status, valid: as of a ToolCall."""

    name: str
    arguments_json: str
    status: CallStatus
    valid: bool

    @classmethod
    def of(cls, call: ToolCall) -> ReadCall:
        return cls(call.name, call.arguments_json, call.status, call.valid)

    @property
    def is_executable(self) -> bool:
        """True if the call may be run: it was read whole, its tool is there, and its arguments
        satisfy the schema.
        """
        return self.status == "ok" and self.valid


@dataclass(frozen=True, slots=True)
class ParserResult:
    """The calls that one parser makes of the text.

    kind: 'protocol' for ours, 'outside' for a callable. result: the whole parse, of ours. failure:
    the error of an outside parser, or why its return value is not a list of calls. agrees: the same
    letter for the same executable calls in the same order, '' if there are none.
    """

    name: str
    kind: Literal["protocol", "outside"]
    calls: tuple[ReadCall, ...]
    result: ParseResult | None = None
    failure: str | None = None
    agrees: str = ""

    @property
    def executable(self) -> tuple[tuple[str, str], ...]:
        """(name, canonical arguments) of the calls that may be run, in the order of the text."""
        return tuple((call.name, call.arguments_json) for call in self.calls if call.is_executable)

    @property
    def problems(self) -> tuple[Problem, ...]:
        return () if self.result is None else tuple(self.result.all_problems())

    @property
    def n_repairs(self) -> int | None:
        """The number of repairs, or None for parsers of others, which do not say."""
        if self.result is None:
            return None
        return sum(len(call.edits) for call in self.result.calls)

    @property
    def n_coercions(self) -> int | None:
        """The number of coercions, or None for parsers of others, which do not say."""
        if self.result is None:
            return None
        return sum(step.stage == "coerce" for call in self.result.calls for step in call.steps)

    def row(self) -> dict[str, Any]:
        """Return the columns of the frame `readings`."""
        # A parser of others has no result: it says nothing of repairs, of coercions or of the text.
        row = {
            "reading": self.name,
            "kind": self.kind,
            "agrees": self.agrees or None,
            "n_repairs": self.n_repairs,
            "n_coercions": self.n_coercions,
            "text": None if self.result is None else self.result.text,
            "failure": self.failure,
        }
        # With commas between, so that the column can be searched as text.
        errors = dict.fromkeys(p.code for p in self.problems if p.severity == "error")
        row["error_codes"] = ",".join(errors) or None
        # A parser that failed has none of these: missing is not 0.
        if self.failure is None:
            # The JSON of each call is canonical already. Null arguments could not be read.
            pairs = [(c.arguments_json or "null", write_canonical(c.name)) for c in self.calls]
            calls = [f'{{"arguments":{arguments},"name":{name}}}' for arguments, name in pairs]
            row |= {
                "n_calls": len(self.calls),
                "n_ok": sum(call.status == "ok" for call in self.calls),
                "n_executable": len(self.executable),
                "calls_json": f"[{','.join(calls)}]",
            }
        return row


@dataclass(frozen=True)
class Comparison:
    """The parses of one text: ours, the best first, then other parsers'.

    Those of other parsers have the order in which they were passed.

    >>> import toolparse_lab as tp
    >>> text = '<tool_call>{"name": "f", "arguments": {"a": "1",}}</tool_call>'
    >>> tp.compare(text, protocols=["hermes", "gemma"])["hermes"].calls[0].arguments_json
    '{"a":"1"}'
    """

    raw: str
    tools: tuple[ToolSpec, ...]
    readings: tuple[ParserResult, ...]

    def __getitem__(self, name: str) -> ParserResult:
        """Return the reading of that name. Raises KeyError with the names there are."""
        by_name = {reading.name: reading for reading in reversed(self.readings)}
        if name not in by_name:
            names = ", ".join(reading.name for reading in self.readings)
            raise KeyError(f"no reading of {name!r}; there are {names}")
        return by_name[name]

    def frame(self) -> pd.DataFrame:
        """Return one row per reading, in order.

        The columns are those of the frame `readings`. Raises MissingExtra without pandas.
        """
        try:
            from ..frames.dtypes import build_frame  # needs pandas, which is an extra
        except ModuleNotFoundError as e:
            raise MissingExtra(
                "frames need pandas", got=str(e), hint="in a checkout: pip install '.[lab]'"
            ) from e
        rows = [reading.row() for reading in self.readings]
        names = dict.fromkeys(name for row in rows for name in row)
        columns = {name: [row.get(name) for row in rows] for name in names}
        return build_frame("readings", columns, len(rows))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": str(self), "text/html": standalone(compared_html(self.readings, {}))}

    def __str__(self) -> str:
        """Return the table as text, one line per reading, cut at the width of a wide terminal."""
        rows = [("reading", "agrees", "calls")]
        for reading in self.readings:
            calls = ", ".join([_calls(reading), *_changes(reading)])
            rows.append((one_line(reading.name, 40), reading.agrees, calls))

        # The last column has no width of its own: whatever it takes is cut.
        first = max(len(row[0]) for row in rows)
        second = max(len(row[1]) for row in rows)
        lines = [f"{n:{first}}  {a:{second}}  {one_line(c, _TERMINAL)}" for n, a, c in rows]
        return "\n".join(lines)


def compare(
    raw: RawLike,
    tools: ToolsLike = None,
    protocols: Iterable[ProtocolLike] | None = None,
    also: Mapping[str, Any] | Iterable[Any] | None = None,
    options: ParseOptions | Mapping[str, Any] | None = None,
) -> Comparison:
    """Return one text read by several parsers.

    Args:
        raw, tools, options: as for `parse`.
        protocols: ids or protocol objects. All there are, and `auto`, by default.
        also: other parsers, in a list or by name: each a protocol object, or a function from the
            text to calls (`outside.outside_calls`). If one raises, its row has the error in
            `failure`.

    Raises the errors of `parse`, and BadOptions for a name that comes twice.

    >>> text = '<tool_call>{"name": "f", "arguments": {"a": 1,}}</tool_call>'
    >>> import json
    >>> print(compare(text, protocols=["hermes", "pythonic"], also={"json": json.loads}))
    reading   agrees  calls
    hermes    A       f({"a":1}), 1 repair
    pythonic          no call
    json              failed: JSONDecodeError: Expecting value: line 1 column 1 (char 0)
    """
    specs = tool_specs(tools)
    if protocols is None:
        protocols = (*known_protocols(), "auto")
    elif isinstance(protocols, str) or not isinstance(protocols, Iterable):
        protocols = (protocols,)

    # A protocol that comes twice, by its name and by an alias, is one reading.
    by_name = {protocol.id: protocol for protocol in map(any_protocol, protocols)}
    outside = _named_parsers(also)
    if twice := sorted(by_name.keys() & outside.keys()):
        raise BadOptions(
            "two readings of one name", got=twice[0], hint="give the outside parser another name"
        )

    results = {name: parse(raw, protocol, specs, options) for name, protocol in by_name.items()}
    # `parse` takes more than text; others are given the text that ours have read.
    first = next(iter(results.values()), None)
    if first is None:
        first = parse(raw, "auto", specs, options)

    readings = [
        ParserResult(name, "protocol", tuple(map(ReadCall.of, result.calls)), result)
        for name, result in results.items()
    ]
    readings.sort(key=_rank)
    readings += [_of_others(name, parser, first.raw, specs) for name, parser in outside.items()]
    return Comparison(first.raw, specs, tuple(_lettered(readings)))


def _rank(reading: ParserResult) -> tuple[int, int, int, int]:
    # More executable calls first, then fewer errors, fewer calls that cannot be run, fewer changes.
    n = len(reading.executable)
    errors = sum(problem.severity == "error" for problem in reading.problems)
    calls = reading.result.calls if reading.result is not None else ()
    changes = sum(len(call.edits) + len(call.steps) for call in calls)

    # Less sorts first, so that the number that should be large is negated.
    return -n, errors, len(reading.calls) - n, changes


def _named_parsers(also: Any) -> dict[str, Any]:
    # A function stays one, since what it returns may say why it is no list of calls.
    parsers: dict[str, Any] = {}
    if isinstance(also, Mapping) and all(isinstance(name, str) for name in also):
        parsers = dict(also)
    elif isinstance(also, (list, tuple)) and also:
        for one in also:
            try:
                chosen = parser_of(one)
            except UsageError as e:
                e.message = f"also: {e.message}"
                raise
            parsers[chosen.id] = one if callable(one) else chosen
    elif also:
        raise BadOptions(
            "also holds parsers",
            got=also,
            expected="a list of readers, or a mapping of name to reader",
            hint='pass also=[parse_it] or also={"mine": parse_it}',
        )
    return {
        name: parser if callable(parser) else parser_of(parser) for name, parser in parsers.items()
    }


def _of_others(name: str, parser: Any, text: str, tools: tuple[ToolSpec, ...]) -> ParserResult:
    try:
        if callable(parser):
            said = parser(text)
        else:
            parts: list[Any] = parse_generated_text(any_protocol(parser), text, tools)
            said = [part for part in parts if not isinstance(part, str)]
        calls = outside_calls(said)
    except UnreadableInput as e:
        return ParserResult(name, "outside", (), failure=f"what it returned cannot be read: {e}")
    except Exception as e:  # whatever it is, it is what the parser makes of this text
        return ParserResult(name, "outside", (), failure=f"{type(e).__name__}: {e}")

    by_name = {tool.name: tool for tool in tools}
    read = []
    for call in calls:
        # Without tools there is nothing that a call could break.
        status: CallStatus = "ok" if call.name in by_name or not tools else "unknown_tool"
        valid = status == "ok"
        if call.name in by_name:
            # Nothing is coerced, because they gave it as the function to be run.
            schema = by_name[call.name].schema_json
            problems = validate(read_strict(call.arguments_json), schema)
            valid = not any(problem.severity == "error" for problem in problems)
        read.append(ReadCall(call.name, call.arguments_json, status, valid))
    return ParserResult(name, "outside", tuple(read))


def _lettered(readings: Iterable[ParserResult]) -> Iterator[ParserResult]:
    # The same letter for the same calls in the same order; the order of an object's keys does not
    # count. Two readings without executable calls do not agree on much, so they have no letter.
    groups: list[list[Any]] = []
    for reading in readings:
        # A list, not a tuple, so that the pair is a JSON value.
        calls: list[Any] = [[name, read_strict(text)] for name, text in reading.executable]
        if not calls:
            yield reading
            continue
        n = next((i for i, group in enumerate(groups) if same(calls, group)), len(groups))
        if n == len(groups):
            groups.append(calls)
        # After Z come AA, BB and so on.
        yield replace(reading, agrees=string.ascii_uppercase[n % 26] * (n // 26 + 1))


# to look at


def _calls(reading: ParserResult) -> str:
    if reading.failure is not None:
        return f"failed: {reading.failure}"
    words = []
    for call in reading.calls[:_MOST_CALLS]:
        # A status says more than the schema, which holds for readable calls of a known tool only.
        note = _NOT_RUN.get(call.status, "" if call.valid else "invalid")
        text = f"{call.name or '?'}({call.arguments_json})"
        words.append(f"{text} [{note}]" if note else text)
    more = len(reading.calls) - _MOST_CALLS
    if more > 0:
        words.append(f"and {more} more")
    return "; ".join(words) or "no call"


def _changes(reading: ParserResult) -> list[str]:
    # Nothing where nothing was changed, and of a parser that does not say.
    counts = ((reading.n_repairs, "repair"), (reading.n_coercions, "coercion"))
    return [f"{n} {word}{'' if n == 1 else 's'}" for n, word in counts if n]


def compared_html(readings: Sequence[ParserResult], asks: Mapping[str, str]) -> str:
    """Return readings as a table that says which agree.

    asks: by name, what choosing a reading asks for. Without them each unfolds to its parse view;
    with them the ones without a call are named below.
    """
    groups = len({reading.agrees for reading in readings if reading.agrees})
    summary = f"{groups} different sets of executable calls: readings with the same letter agree."
    if groups == 0:
        summary = "No reading has a call that may be run."
    elif groups == 1:
        summary = "All readings that have executable calls agree."
    silent = [r.name for r in readings if asks and not r.calls and r.failure is None]
    rows = [_row(r, asks.get(r.name, "")) for r in readings if r.name not in silent]
    return macro("views/templates/compared.html", "compared", summary, rows, silent)


def _row(reading: ParserResult, ask: str) -> dict[str, Any]:
    # Parsers of others do not say what they changed, which is not the same as nothing.
    absent = "not told" if reading.result is None else "none"
    # Notes of severity info are not complaints.
    counts = Counter(problem.code for problem in reading.problems if problem.severity != "info")
    problems = [f"{word_of(code)} × {n}" if n > 1 else word_of(code) for code, n in counts.items()]
    view: str = ""
    if not ask and reading.result is not None and (reading.calls or reading.problems):
        # Each view holds the whole text again.
        view = "Too long to be shown for each reading: see its result.debug()."
        if len(reading.result.raw) <= _MOST_TEXT:
            view = Markup(render_result(reading.result))
    return {
        "name": one_line(reading.name, 60),
        "ask": ask,
        "outside": reading.kind == "outside",
        "agrees": reading.agrees,
        "calls": shorten(_calls(reading), 600),
        "changes": ", ".join(_changes(reading)) or absent,
        "problems": ", ".join(problems) or absent,
        "view": view,
    }
