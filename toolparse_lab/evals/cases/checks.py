"""What is wrong or doubtful about a data set, before anybody is asked: `validate_cases`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ...errors import BadCase
from ...schema.validate import validate
from ...values import write_canonical
from .case import Case, Cases
from .loading import read_all
from .target import is_optional, is_wish, plain_wish

DOUBTS: Mapping[str, str] = {
    "no-tools": "Calls are wanted, but the case has no tools.",
    "unknown-tool": "A call is wanted of a tool that the case does not have.",
    "unknown-argument": "The wanted call has an argument that the tool does not have.",
    "missing-argument": "The wanted call leaves out, or may leave out, what the tool requires.",
    "invalid-value": "No value that is right for an argument fits the tool's schema.",
    "doubt": "An importer says so: a contradiction in the source itself.",
}
"""Kinds of doubt about a case."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """Something a case may be meant to be, but rarely is. `code` is one of `DOUBTS`."""

    case_id: str
    code: str
    message: str

    def __str__(self) -> str:
        return f"case {self.case_id}: {self.message}"


@dataclass(frozen=True, slots=True)
class Validation:
    """What `validate_cases` found.

    cases: those that can be read. errors: why the others cannot, of the first hundred; `n_errors` are all.
    """

    source: str
    cases: Cases
    errors: tuple[BadCase, ...]
    n_errors: int
    doubts: tuple[Doubt, ...]

    @property
    def ok(self) -> bool:
        """Whether every row can be read; doubts do not count."""
        return self.n_errors == 0 and len(self.cases) > 0

    def __bool__(self) -> bool:
        return self.ok

    def to_dict(self) -> dict[str, Any]:
        """JSON: counts, errors with their places, doubts."""
        return {
            "source": self.source,
            "ok": self.ok,
            "cases": len(self.cases),
            "graded": sum(c.target is not None for c in self.cases),
            "categories": self.cases.categories(),
            "skipped": [{"name": s.name, "count": s.count, "reason": s.reason} for s in self.cases.skipped],
            "n_errors": self.n_errors,
            "errors": [
                {"line": e.line, "unit": e.unit, "column": e.column, "message": e.message,
                 "got": None if e.got is None else str(e.got), "hint": e.hint}
                for e in self.errors
            ],
            "doubts": [{"case_id": d.case_id, "code": d.code, "message": d.message} for d in self.doubts],
        }  # fmt: skip

    def __str__(self) -> str:
        lines = [f"{self.source or 'cases'}: {repr(self.cases) if len(self.cases) else 'no cases'}"]
        lines += [f"skipped: {s}" for s in self.cases.skipped if s.name != "rows that cannot be read"]
        if self.n_errors:
            lines.append(f"{self.n_errors} rows cannot be read:")
            lines += [f"- {e}" for e in self.errors]
            if self.n_errors > len(self.errors):
                lines.append(f"- and {self.n_errors - len(self.errors)} more")
        kinds = Counter(d.code for d in self.doubts)
        for code, n in kinds.items():
            some = [d for d in self.doubts if d.code == code][:3]
            lines.append(f"doubtful, {code} ({n}): " + "; ".join(map(str, some)) + ("; …" if n > 3 else ""))
        return "\n".join(lines)

    __repr__ = __str__


def validate_cases(source: Any, **how: Any) -> Validation:
    """Reads a data set to its end and says all that is wrong with it, and what is doubtful.

    how: `columns`, `others` and `split` as for `load_cases`. Doubtful are targets that contradict the case's own tools,
    see `DOUBTS`. Raises what `load_cases` raises where the whole source cannot be read.
    """
    cases, bad = read_all(source, **how)
    doubts = tuple(d for case in cases for d in doubts_of(case))
    name = cases.source or (source if isinstance(source, str) else "")
    return Validation(str(name), cases, tuple(bad.found) if bad else (), bad.count if bad else 0, doubts)


def doubts_of(case: Case) -> Iterator[Doubt]:
    """What is doubtful about a case, see `validate_cases`."""
    if isinstance(case.metadata.get("doubt"), str):
        yield Doubt(case.id, "doubt", case.metadata["doubt"])
        return
    if case.target and not case.tools:
        yield Doubt(case.id, "no-tools", "calls are wanted, but there are no tools")
        return
    for call in _calls(case.target or []):
        yield from _doubts_of_call(case, call)


def _calls(target: list[Any]) -> Iterator[Mapping[str, Any]]:
    for item in target:
        if "$any" in item:
            yield from _calls(item["$any"])
        else:
            yield item


def _doubts_of_call(case: Case, call: Mapping[str, Any]) -> Iterator[Doubt]:
    if is_wish(call["name"]):
        return
    tool = next((t for t in case.tools if t.name == call["name"]), None)
    if tool is None:
        near = ", ".join(t.name for t in case.tools)
        yield Doubt(case.id, "unknown-tool", f"{call['name']} is wanted, the tools are {near}")
        return
    schema, arguments = tool.schema, call.get("arguments", {})
    if is_wish(arguments) or not isinstance(schema, Mapping):
        return
    properties = schema.get("properties")
    known: Mapping[str, Any] = properties if isinstance(properties, Mapping) else {}
    open_ended = schema.get("additionalProperties") not in (None, False) or "patternProperties" in schema
    for name in schema.get("required") or ():
        has_default = isinstance(known.get(name), Mapping) and "default" in known[name]
        if not has_default and (name not in arguments or is_optional(arguments[name])):
            yield Doubt(case.id, "missing-argument", f"{tool.name} requires {name}, which the target leaves open")
    for name, wanted in arguments.items():
        if name in known:
            yield from _doubts_of_value(case, f"{name} of {tool.name}", wanted, known[name], schema)
        elif known and not open_ended:
            yield Doubt(case.id, "unknown-argument", f"{tool.name} has no parameter {name}")


def _doubts_of_value(case: Case, what: str, wanted: Any, inner: Any, schema: Mapping[str, Any]) -> Iterator[Doubt]:
    if not isinstance(inner, Mapping):
        return
    shared = {k: schema[k] for k in ("$defs", "definitions") if k in schema}
    text = write_canonical({**shared, **inner})
    first = None
    for value in wanted["$any"] if is_wish(wanted) and "$any" in wanted else [wanted]:
        if not (is_wish(value) and "$match" in value):
            value = plain_wish(value)
        found = () if _holds_wish(value) else validate(value, text)
        problem = next((p for p in found if p.severity == "error"), None)
        if problem is None or is_optional(wanted):
            return  # one alternative, or leaving it out, can be right
        first = first or problem
    if first is not None:
        yield Doubt(case.id, "invalid-value", f"{what}{f' at {first.path}' if first.path else ''}: {first.message}")


def _holds_wish(x: Any) -> bool:
    """Whether there is a wish anywhere in a value, which no schema knows."""
    stack = [x]
    while stack:
        x = stack.pop()
        if is_wish(x):
            return True
        stack += x.values() if isinstance(x, Mapping) else x if isinstance(x, list) else ()
    return False
