"""`compare`: one text read by every protocol, and by parsers of others, side by side."""

# How it works. Every parser makes a `Reading` of the same text. Ours are ranked by what can be run
# of them, those of others keep their order. Letters group the readings whose executable calls are
# the same, by JSON equality and in order, so that the eye finds who agrees with whom.

from __future__ import annotations

import string
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ...arguments.schema.validate import validate
from ...core.errors import BadOptions, MissingExtra, UnreadableInput
from ...core.toolspec import ToolsLike, ToolSpec, tool_specs
from ...core.types import ParseOptions, ParseResult, RawLike
from ...core.values import Value, read_strict, same
from ...formats.like import ProtocolLike
from ...formats.registry import protocols as known_protocols
from ...parser.foreign.protocol import any_protocol
from ...parser.parse import parse
from .outside import OutsideCall, outside_calls
from .reading import ReadCall, Reading
from .view import readings_html, readings_text

if TYPE_CHECKING:
    import pandas as pd

_Calls = list[tuple[str, Value]]


@dataclass(frozen=True)
class Comparison:
    """Readings of one text: ours, the best first, then those of others.

    Readings of others keep the order in which you passed them.

    >>> import toolparse_lab as tp
    >>> text = '<tool_call>{"name": "f", "arguments": {"a": "1",}}</tool_call>'
    >>> tp.compare(text, protocols=["hermes", "gemma"])["hermes"].calls[0].arguments_json
    '{"a":"1"}'
    """

    raw: str
    tools: tuple[ToolSpec, ...]
    readings: tuple[Reading, ...]

    def __getitem__(self, name: str) -> Reading:
        """Return the reading of that name. Raises KeyError with the names there are."""
        by_name = {reading.name: reading for reading in reversed(self.readings)}
        if name not in by_name:
            names = ", ".join(reading.name for reading in self.readings)
            raise KeyError(f"no reading of {name!r}; there are {names}")
        return by_name[name]

    def frame(self) -> pd.DataFrame:
        """Return one row per reading, in order.

        Its columns are those of the frame `readings`.

        Raises MissingExtra without pandas.
        """
        try:
            from .frame import readings_frame  # needs pandas, which is an extra
        except ModuleNotFoundError as e:
            raise MissingExtra(
                "frames need pandas", got=str(e), hint="pip install 'toolparse_lab[lab]'"
            ) from e
        return readings_frame(self.readings)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": str(self), "text/html": readings_html(self.readings)}

    def __str__(self) -> str:
        """Return the table as text, one line per reading. See the example of `compare`."""
        return readings_text(self.readings)


def compare(
    raw: RawLike,
    tools: ToolsLike = None,
    protocols: Iterable[ProtocolLike] | None = None,
    also: Mapping[str, Callable[[str], object]] | None = None,
    options: ParseOptions | Mapping[str, Any] | None = None,
) -> Comparison:
    """Return one text read by several parsers.

    Args:
        raw, tools, options: as for `parse`.
        protocols: ids or protocol objects. All there are, and `auto`, by default.
        also: parsers of others by name. Each takes the text and gives a list of calls in any of the
            usual shapes (`outside.outside_calls`). An error of theirs is their reading's failure.

    Raises the errors of `parse`, and BadOptions for a name that stands twice.

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
    outside = also or {}
    if not isinstance(outside, Mapping) or not all(isinstance(name, str) for name in outside):
        raise BadOptions(
            "also holds parsers by name",
            got=also,
            expected="a mapping of name to function",
            hint='pass also={"mine": parse_it}',
        )
    if twice := sorted(by_name.keys() & outside.keys()):
        raise BadOptions(
            "two readings of one name", got=twice[0], hint="give the outside parser another name"
        )

    results = {name: parse(raw, protocol, specs, options) for name, protocol in by_name.items()}
    # `parse` takes more than text; others are given the text that ours have read.
    first = next(iter(results.values()), None)
    if first is None:
        first = parse(raw, "auto", specs, options)

    ours = sorted((_of_ours(name, result) for name, result in results.items()), key=_rank)
    theirs = [_of_others(name, parser, first.raw, specs) for name, parser in outside.items()]
    return Comparison(first.raw, specs, tuple(_lettered([*ours, *theirs])))


def _of_ours(name: str, result: ParseResult) -> Reading:
    calls = tuple(
        ReadCall(call.name, call.arguments_json, call.status, call.valid) for call in result.calls
    )
    return Reading(name, "protocol", calls, result)


def _rank(reading: Reading) -> tuple[int, int, int, int]:
    # More executable calls first, then fewer errors, fewer calls that cannot be run, fewer changes.
    n = len(reading.executable)
    errors = sum(problem.severity == "error" for problem in reading.problems)
    calls = reading.result.calls if reading.result is not None else ()
    changes = sum(len(call.edits) + len(call.steps) for call in calls)

    # Less sorts first, so that the number that should be large is negated.
    return -n, errors, len(reading.calls) - n, changes


def _of_others(
    name: str, parser: Callable[[str], Any], text: str, tools: tuple[ToolSpec, ...]
) -> Reading:
    try:
        calls = outside_calls(parser(text))
    except UnreadableInput as e:
        return Reading(name, "outside", (), failure=f"what it returned cannot be read: {e}")
    except Exception as e:  # whatever it is, it is what the parser makes of this text
        return Reading(name, "outside", (), failure=f"{type(e).__name__}: {e}")

    by_name = {tool.name: tool for tool in tools}
    return Reading(name, "outside", tuple(_judged(call, by_name) for call in calls))


def _judged(call: OutsideCall, tools: Mapping[str, ToolSpec]) -> ReadCall:
    # Nothing is coerced, because they gave it as the function to be run.
    tool = tools.get(call.name)
    if tool is not None:
        problems = validate(read_strict(call.arguments_json), tool.schema_json)
        is_valid = not any(problem.severity == "error" for problem in problems)
        return ReadCall(call.name, call.arguments_json, "ok", is_valid)

    # Without tools there is nothing that a call could break.
    if not tools:
        return ReadCall(call.name, call.arguments_json, "ok", True)
    return ReadCall(call.name, call.arguments_json, "unknown_tool", False)


def _lettered(readings: Iterable[Reading]) -> Iterator[Reading]:
    # Two readings without executable calls do not agree on much, so they have no letter.
    groups: list[_Calls] = []
    for reading in readings:
        calls = [(name, read_strict(arguments)) for name, arguments in reading.executable]
        if not calls:
            yield reading
            continue

        n = _group_of(calls, groups)
        if n == len(groups):
            groups.append(calls)
        # Behind Z come AA, BB and so on.
        yield replace(reading, agrees=string.ascii_uppercase[n % 26] * (n // 26 + 1))


def _group_of(calls: _Calls, groups: list[_Calls]) -> int:
    # len(groups) for a new group.
    for i, group in enumerate(groups):
        if _are_same_calls(calls, group):
            return i
    return len(groups)


def _are_same_calls(a: _Calls, b: _Calls) -> bool:
    # In order; the order of an object's keys does not count.
    if len(a) != len(b):
        return False
    for (name, value), (other_name, other_value) in zip(a, b, strict=True):
        if name != other_name:
            return False
        if not same(value, other_value):
            return False
    return True
