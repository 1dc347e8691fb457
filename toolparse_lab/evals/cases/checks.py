"""The faults and doubts of a data set, before anybody is asked: `validate_cases`."""

# How it works. Errors come from reading the rows, doubts from the cases that could be read. A doubt
# is about a target that contradicts the case's own tools: it compares names with names, and every
# value that would be right with the schema of its parameter. One alternative that fits is enough,
# and whatever a wish leaves open is no contradiction.

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ...arguments.schema.kinds import type_name, unknown_type_names
from ...arguments.schema.validate import validate
from ...core.errors import BadCase
from ...core.toolspec import ToolSpec
from ...core.types import Problem
from ...core.values import write_canonical
from ...core.values.printable import counted, printable, printable_lines
from .case import Case
from .collection import Cases
from .loading import CasesLike, read_all
from .rows import Others
from .target import is_optional, is_wish, plain_wish

DOUBTS: Mapping[str, str] = {
    "no-tools": "Calls are wanted, but the case has no tools.",
    "unknown-tool": "A call is wanted of a tool that the case does not have.",
    "unknown-argument": "The wanted call has an argument that the tool does not have.",
    "missing-argument": "The wanted call leaves out, or may leave out, what the tool requires.",
    "unknown-type": "A tool's schema names a type that JSON Schema does not have.",
    "invalid-value": "No value that is right for an argument fits the tool's schema.",
    "doubt": "An importer says so: a contradiction in the source itself.",
}
"""Kinds of doubt about a case."""
_MOST_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class Doubt:
    """Something a case may be meant to be, but rarely is. `code` is one of `DOUBTS`."""

    case_id: str
    code: str
    message: str

    def __str__(self) -> str:
        """Return the doubt as one line that names the case."""
        return printable(f"case {self.case_id}: {self.message}")


@dataclass(frozen=True, slots=True)
class Validation:
    """The findings of `validate_cases`.

    cases: those that can be read. errors: why the others cannot, of the first hundred. `n_errors`
    are all.
    """

    source: str
    cases: Cases
    errors: tuple[BadCase, ...]
    n_errors: int
    doubts: tuple[Doubt, ...]

    @property
    def ok(self) -> bool:
        """Return True if there are cases and every row can be read. Doubts do not count."""
        return self.n_errors == 0 and len(self.cases) > 0

    def __bool__(self) -> bool:
        """Return `ok`, so that a finding can stand in a condition."""
        return self.ok

    def to_dict(self) -> dict[str, Any]:
        """Return the findings as JSON: counts, errors with their places, doubts."""
        graded = [case for case in self.cases if case.target is not None]
        skipped = [
            {"name": rows.name, "count": rows.count, "reason": rows.reason}
            for rows in self.cases.skipped
        ]
        doubts = [
            {"case_id": doubt.case_id, "code": doubt.code, "message": doubt.message}
            for doubt in self.doubts
        ]
        return {
            "source": self.source,
            "ok": self.ok,
            "cases": len(self.cases),
            "graded": len(graded),
            "categories": self.cases.categories(),
            "skipped": skipped,
            "n_errors": self.n_errors,
            "errors": [_error_json(error) for error in self.errors],
            "doubts": doubts,
        }

    def __str__(self) -> str:
        """Return the findings on one page: the counts, then errors and doubts, a line each."""
        cases = self.cases.counts if len(self.cases) else "no cases"
        lines = [f"{self.source or 'cases'}: {cases}"]

        # Rows that cannot be read follow, each with its place.
        lines += [
            f"skipped: {rows}"
            for rows in self.cases.skipped
            if rows.name != "rows that cannot be read"
        ]
        return printable_lines("\n".join([*lines, *self._error_lines(), *self._doubt_lines()]))

    __repr__ = __str__

    def _error_lines(self) -> Iterator[str]:
        if self.n_errors:
            yield f"{counted(self.n_errors, 'row')} cannot be read:"
        for error in self.errors:
            yield f"- {error}"
        if self.n_errors > len(self.errors):
            yield f"- and {self.n_errors - len(self.errors)} more"

    def _doubt_lines(self) -> Iterator[str]:
        kinds = Counter(doubt.code for doubt in self.doubts)
        for code, n in kinds.items():
            examples = [str(doubt) for doubt in self.doubts if doubt.code == code]
            examples = examples[:_MOST_EXAMPLES]
            if n > len(examples):
                examples.append("…")
            yield f"doubtful, {code} ({n}): {'; '.join(examples)}"


def _error_json(error: BadCase) -> dict[str, Any]:
    # `got` becomes a string, since it may be any Python object.
    return {
        "line": error.line,
        "unit": error.unit,
        "column": error.column,
        "message": error.message,
        "got": None if error.got is None else str(error.got),
        "hint": error.hint,
    }


def validate_cases(
    source: CasesLike,
    *,
    columns: Mapping[str, str | None] | None = None,
    others: Others = "error",
    split: str | None = None,
) -> Validation:
    """Read a data set to its end and return all that is wrong with it, and its doubtful parts.

    Doubtful are targets that contradict the case's own tools, see `DOUBTS`.

    source: anything that `load_cases` reads.
    columns, others, split: as for `load_cases`.

    Raises the errors of `load_cases` if the whole source cannot be read.

    >>> rows = [{"id": "a", "input": "Weather?", "target": [{"name": "weather"}]}]
    >>> print(*validate_cases(rows).doubts)
    case a: calls are wanted, but there are no tools
    """
    cases, bad = read_all(source, columns=columns, others=others, split=split)
    errors, n_errors = (bad.complaints, bad.count) if bad is not None else ([], 0)

    doubts: list[Doubt] = []
    for case in cases:
        doubts += doubts_of(case)

    name = cases.source
    if not name and isinstance(source, str):
        name = source
    return Validation(str(name), cases, tuple(errors), n_errors, tuple(doubts))


def doubts_of(case: Case) -> Iterator[Doubt]:
    """Yield the doubts about a case, see `validate_cases`.

    If an importer wrote its own doubt down, or there are no tools to compare with, nothing more is
    looked for.
    """
    message = case.metadata.get("doubt")
    if isinstance(message, str):
        yield Doubt(case.id, "doubt", message)
        return

    for tool in case.tools:
        yield from _doubts_of_types(case, tool)

    if case.target and not case.tools:
        yield Doubt(case.id, "no-tools", "calls are wanted, but there are no tools")
        return

    for call in _calls(case.target or []):
        yield from _doubts_of_call(case, call)


def _doubts_of_types(case: Case, tool: ToolSpec) -> Iterator[Doubt]:
    for name in sorted(unknown_type_names(tool.schema)):
        meaning = type_name(name)
        reading = f"it is read as {meaning}" if meaning != name else "no value is checked by it"
        message = f"{tool.name} has the type {name!r}, which JSON Schema does not have; {reading}"
        yield Doubt(case.id, "unknown-type", message)


def _calls(target: list[Any]) -> Iterator[Mapping[str, Any]]:
    # The alternatives of a call come one after the other.
    for item in target:
        if "$any" in item:
            yield from _calls(item["$any"])
        else:
            yield item


def _doubts_of_call(case: Case, call: Mapping[str, Any]) -> Iterator[Doubt]:
    # Wishes for its name or for all of its arguments leave nothing to compare.
    name = call["name"]
    if is_wish(name):
        return

    tool = _tool_named(case, name)
    if tool is None:
        names = ", ".join(tool.name for tool in case.tools)
        yield Doubt(case.id, "unknown-tool", f"{name} is wanted, the tools are {names}")
        return

    arguments = call.get("arguments", {})
    if is_wish(arguments) or not isinstance(tool.schema, Mapping):
        return
    wanted_call = _WantedCall(case.id, tool.name, arguments, tool.schema)
    yield from wanted_call.missing_arguments()
    yield from wanted_call.doubtful_arguments()


def _tool_named(case: Case, name: str) -> ToolSpec | None:
    return next((tool for tool in case.tools if tool.name == name), None)


@dataclass(frozen=True, slots=True)
class _WantedCall:
    case_id: str
    tool: str
    arguments: Mapping[str, Any]
    schema: Mapping[str, Any]

    @property
    def properties(self) -> Mapping[str, Any]:
        properties = self.schema.get("properties")
        return properties if isinstance(properties, Mapping) else {}

    @property
    def is_closed(self) -> bool:
        # A schema that does not mention further parameters counts as closed: a model has no other
        # way to know of them.
        if "patternProperties" in self.schema:
            return False
        return self.schema.get("additionalProperties") in (None, False)

    def missing_arguments(self) -> Iterator[Doubt]:
        for name in self.schema.get("required") or ():
            # A default counts as written, even where the tool requires the parameter.
            if self._has_default(name):
                continue
            if name not in self.arguments or is_optional(self.arguments[name]):
                message = f"{self.tool} requires {name}, which the target leaves open"
                yield Doubt(self.case_id, "missing-argument", message)

    def _has_default(self, name: str) -> bool:
        inner = self.properties.get(name)
        return isinstance(inner, Mapping) and "default" in inner

    def doubtful_arguments(self) -> Iterator[Doubt]:
        properties = self.properties
        for name, want in self.arguments.items():
            if name in properties:
                problem = self._problem(want, properties[name])
                if problem is not None:
                    yield self._invalid_value(name, problem)
            # Without any parameters the schema is more likely unfinished than closed.
            elif properties and self.is_closed:
                message = f"{self.tool} has no parameter {name}"
                yield Doubt(self.case_id, "unknown-argument", message)

    def _invalid_value(self, name: str, problem: Problem) -> Doubt:
        place = f" at {problem.path}" if problem.path else ""
        message = f"{name} of {self.tool}{place}: {problem.message}"
        return Doubt(self.case_id, "invalid-value", message)

    def _problem(self, want: Any, inner: Any) -> Problem | None:
        # None if one alternative, or leaving the argument out, can be right.
        if not isinstance(inner, Mapping) or is_optional(want):
            return None

        schema_json = write_canonical({**self._definitions(), **inner})
        first = None
        for value in _alternatives(want):
            problem = _first_error(value, schema_json)
            if problem is None:
                return None
            first = first or problem
        return first

    def _definitions(self) -> dict[str, Any]:
        return {key: self.schema[key] for key in ("$defs", "definitions") if key in self.schema}


def _alternatives(want: Any) -> list[Any]:
    if is_wish(want) and "$any" in want:
        alternatives: list[Any] = want["$any"]
        return alternatives
    return [want]


def _first_error(value: Any, schema_json: str) -> Problem | None:
    # None if the value fits, and where it contains a wish, which no schema can judge.
    # What stands beside a matcher is a pattern or an example, not a value to be judged.
    is_matched = is_wish(value) and "$match" in value
    if not is_matched:
        value = plain_wish(value)
    if _holds_wish(value):
        return None

    for problem in validate(value, schema_json):
        if problem.severity == "error":
            return problem
    return None


def _holds_wish(x: Any) -> bool:
    # A list of values still to be looked at, so that no depth of nesting is too much.
    stack = [x]
    while stack:
        x = stack.pop()
        if is_wish(x):
            return True

        if isinstance(x, Mapping):
            stack += x.values()
        elif isinstance(x, list):
            stack += x
    return False
