"""The faults and doubts of a data set, before anybody is asked: `validate_cases`."""

# How it works. Errors come from reading the rows, doubts from the cases that could be read. A doubt
# is about a target that contradicts the case's own tools: it compares names with names, and every
# value that would be right with the schema of its parameter. One alternative that fits is enough,
# and whatever a wish leaves open is no contradiction.

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ...arguments.schema.sound import sound_schema
from ...arguments.schema.validate import validate
from ...core.errors import BadCase
from ...core.types import Problem
from ...core.values import write_canonical
from ...core.values.printable import counted, printable, printable_lines
from .case import Case
from .collection import Cases
from .loading import CasesLike, read_all
from .rows import Others
from .target import ANY, is_optional, is_wish, plain_wish, rule_calls, rule_of

DOUBTS: Mapping[str, str] = {
    "no-tools": "Calls are wanted, but the case has no tools.",
    "unknown-tool": "A call is wanted of a tool that the case does not have.",
    "unknown-argument": "The wanted call has an argument that the tool does not have.",
    "missing-argument": "The wanted call leaves out, or may leave out, what the tool requires.",
    "unknown-type": "A tool's schema names a type that JSON Schema does not have.",
    "broken-schema": "A part of a tool's schema cannot be used, or is read in another way.",
    "invalid-value": "No value that is right for an argument fits the tool's schema.",
    "doubt": "An importer says so: a contradiction in the source itself.",
}
"""Kinds of doubt about a case."""
_MOST_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class Doubt:
    """Something a case may intend, but rarely does. `code` is one of `DOUBTS`."""

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
        return self.ok

    def to_dict(self) -> dict[str, Any]:
        """Return the findings as JSON: counts, errors with their places, doubts."""
        return {
            "source": self.source,
            "ok": self.ok,
            "cases": len(self.cases),
            "graded": sum(case.target is not None for case in self.cases),
            "categories": self.cases.categories(),
            "skipped": [asdict(rows) for rows in self.cases.skipped],
            "n_errors": self.n_errors,
            "errors": [
                {
                    **{name: getattr(e, name) for name in ("line", "unit", "column", "message")},
                    # A string, since it may be any Python object.
                    "got": None if e.got is None else str(e.got),
                    "hint": e.hint,
                }
                for e in self.errors
            ],
            "doubts": [asdict(doubt) for doubt in self.doubts],
        }

    def __str__(self) -> str:
        """Return the findings on one page: the counts, then errors and doubts, a line each."""
        cases = self.cases.counts if len(self.cases) else "no cases"
        lines = [f"{self.source or 'cases'}: {cases}"]
        # Rows that cannot be read follow, each with its place.
        others = (rows for rows in self.cases.skipped if rows.name != "rows that cannot be read")
        lines += [f"skipped: {rows}" for rows in others]
        if self.n_errors:
            lines.append(f"{counted(self.n_errors, 'row')} cannot be read:")
        lines += [f"- {error}" for error in self.errors]
        if self.n_errors > len(self.errors):
            lines.append(f"- and {self.n_errors - len(self.errors)} more")
        for code, n in Counter(doubt.code for doubt in self.doubts).items():
            examples = [str(doubt) for doubt in self.doubts if doubt.code == code][:_MOST_EXAMPLES]
            if n > len(examples):
                examples.append("…")
            lines.append(f"doubtful, {code} ({n}): {'; '.join(examples)}")
        return printable_lines("\n".join(lines))

    __repr__ = __str__


def validate_cases(
    source: CasesLike,
    *,
    columns: Mapping[str, str | None] | None = None,
    others: Others = "error",
    split: str | None = None,
) -> Validation:
    """Read a data set to its end and return all that is wrong with it, and the targets that
    contradict their case's own tools, see `DOUBTS`.

    The arguments are those of `load_cases`, whose errors it raises if the whole source cannot be
    read.

    >>> rows = [{"id": "a", "input": "Weather?", "target": [{"name": "weather"}]}]
    >>> print(*validate_cases(rows).doubts)
    case a: calls are wanted, but there are no tools
    """
    cases, bad = read_all(source, columns=columns, others=others, split=split)
    errors, n_errors = (bad.complaints, bad.count) if bad is not None else ([], 0)

    doubts = tuple(Doubt(case.id, *doubt) for case in cases for doubt in _doubts(case))
    name = cases.source or (source if isinstance(source, str) else "")
    return Validation(name, cases, tuple(errors), n_errors, doubts)


def _doubts(case: Case) -> Iterator[tuple[str, str]]:
    # (code, message) of each. If an importer wrote its own doubt down, or there are no tools to
    # compare with, nothing more is looked for.
    message = case.metadata.get("doubt")
    if isinstance(message, str):
        yield "doubt", message
        return

    for tool in case.tools:
        sound = sound_schema(tool.schema_json)
        for name, meaning in sorted(sound.type_names.items()):
            unknown = f"{tool.name} has the type {name!r}, which JSON Schema does not have"
            yield "unknown-type", f"{unknown}; it is read as {meaning}"
        for note in sound.notes:
            yield "broken-schema", f"the schema of {tool.name}: {note}"
    if case.target and not case.tools:
        yield "no-tools", "calls are wanted, but there are no tools"
        return

    tools = {tool.name: tool for tool in reversed(case.tools)}  # of two, the first
    for call in _calls(case.target or []):
        # Wishes for its name or for all of its arguments leave nothing to compare.
        name, arguments = call["name"], call.get("arguments", {})
        if is_wish(name):
            continue
        if name not in tools:
            names = ", ".join(tool.name for tool in case.tools)
            yield "unknown-tool", f"{name} is wanted, the tools are {names}"
        elif arguments == ANY or is_wish(arguments):
            continue
        elif isinstance(tools[name].schema, Mapping):
            yield from _doubts_of_arguments(name, arguments, tools[name].schema)


def _calls(target: list[Any]) -> Iterator[Mapping[str, Any]]:
    # The alternatives of a call come one after the other.
    for item in target:
        if "$any" in item:
            yield from _calls(item["$any"])
        elif rule := rule_of(item):
            # A tool that is never to be called need not be there.
            yield from _calls(rule_calls(item)) if rule != "$never" else ()
        else:
            yield item


def _doubts_of_arguments(
    tool: str, arguments: Mapping[str, Any], schema: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        properties = {}
    for name in schema.get("required") or ():
        inner = properties.get(name)
        # A default counts as written, even where the tool requires the parameter.
        if isinstance(inner, Mapping) and "default" in inner:
            continue
        if name not in arguments or is_optional(arguments[name]):
            yield "missing-argument", f"{tool} requires {name}, which the target leaves open"

    # A schema that does not mention further parameters counts as closed: a model has no other way
    # to know of them. Without any parameters it is more likely unfinished.
    is_open = "patternProperties" in schema or schema.get("additionalProperties") not in (
        None,
        False,
    )
    definitions = {key: schema[key] for key in ("$defs", "definitions") if key in schema}
    for name, want in arguments.items():
        if name not in properties:
            if properties and not is_open:
                yield "unknown-argument", f"{tool} has no parameter {name}"
            continue
        # One alternative that can be right is enough, and so is leaving the argument out.
        if not isinstance(properties[name], Mapping) or is_optional(want):
            continue
        schema_json = write_canonical({**definitions, **properties[name]})
        alternatives = want["$any"] if is_wish(want) and "$any" in want else [want]
        problems = [p for one in alternatives if (p := _first_error(one, schema_json)) is not None]
        if problems and len(problems) == len(alternatives):
            problem = problems[0]
            place = f" at {problem.path}" if problem.path else ""
            yield "invalid-value", f"{name} of {tool}{place}: {problem.message}"


def _first_error(value: Any, schema_json: str) -> Problem | None:
    # None if the value fits, and where it contains a wish, which no schema can judge. With a
    # matcher there is a pattern or an example, not a value to be judged.
    if not (is_wish(value) and "$match" in value):
        value = plain_wish(value)
    # A list of values still to be looked at, so that no depth of nesting is too much.
    stack = [value]
    while stack:
        x = stack.pop()
        if is_wish(x):
            return None
        if isinstance(x, Mapping):
            stack += x.values()
        elif isinstance(x, list):
            stack += x
    return next((p for p in validate(value, schema_json) if p.severity == "error"), None)
