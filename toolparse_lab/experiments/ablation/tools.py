"""The tools that take the calls of an ablation: functions, addresses, or mocks of their schemas."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any

from ...arguments.schema.validate import validate
from ...core.errors import BadOptions, near
from ...core.toolspec import ToolSpec
from ...core.types import Problem
from ...core.values import Value, pointer_tokens, write_canonical
from ...evals.cases.case import Case
from ...middleware.correction import Accepted, HttpTool, RunTool, ToolFailure, ToolRefused
from ...middleware.correction.drive import result_of
from ...middleware.correction.failure import issues_in_body

# How it works. Our own validation says what is wrong, once; a dialect only words it, as a server of
# its kind would. So every dialect refuses the same calls, and what differs between two dialects is
# how well the refusal can be understood.

_GO_KINDS: Mapping[type, str] = {
    str: "string",
    bool: "bool",
    dict: "object",
    list: "array",
    type(None): "null",
}
_GO_TYPES: Mapping[str, str] = {
    "integer": "int64",
    "number": "float64",
    "boolean": "bool",
    "string": "string",
    "array": "[]interface {}",
    "object": "map[string]interface {}",
}
# Rule -> the code and the sentence of pydantic.
_PYDANTIC: Mapping[str, tuple[str, str]] = {
    "integer": ("int_type", "Input should be a valid integer"),
    "number": ("float_type", "Input should be a valid number"),
    "boolean": ("bool_type", "Input should be a valid boolean"),
    "string": ("string_type", "Input should be a valid string"),
    "array": ("list_type", "Input should be a valid list"),
    "object": ("dict_type", "Input should be a valid dictionary"),
    "enum": ("literal_error", "Input should be one of the allowed values"),
    "required": ("missing", "Field required"),
    "additional": ("extra_forbidden", "Extra inputs are not permitted"),
}


class MockTool:
    """A tool made from its definition.

    Called with arguments by name. Raises ToolRefused for arguments that the schema does not allow,
    and gives back its arguments.

    Args:
        dialect: one of `DIALECTS`.

    >>> tool = {"name": "f", "parameters": {"properties": {"n": {"type": "integer"}}}}
    >>> MockTool(tool)(n=7)
    {'n': 7}
    """

    def __init__(self, tool: Any, dialect: str = "jsonschema") -> None:
        self.tool = ToolSpec.of(tool)
        check_dialect(dialect)
        self.dialect = dialect

    def __repr__(self) -> str:
        return f"MockTool({self.tool.name!r}, {self.dialect!r})"

    def __call__(self, **arguments: Any) -> Any:
        """Take a call. Raises ToolRefused."""
        problems = problems_of(arguments, self.tool)
        if problems:
            raise ToolRefused(DIALECTS[self.dialect](problems, arguments, self.tool))
        return arguments


def problems_of(arguments: Mapping[str, Any], tool: ToolSpec) -> tuple[Problem, ...]:
    """Return the errors of arguments under a tool's schema: the truth that detectors are
    held to.
    """
    problems = validate(dict(arguments), tool.schema_json)
    return tuple(problem for problem in problems if problem.severity == "error")


def check_names(names: Iterable[Any], choices: Collection[str], problem: str) -> None:
    """Raise BadOptions for the first name that is not among the choices."""
    for name in names:
        if name not in choices:
            raise BadOptions(
                problem, got=name, expected=", ".join(choices), hint=near(str(name), choices)
            )


def check_dialect(dialect: Any) -> None:
    """Raise BadOptions for a dialect that does not exist."""
    check_names([dialect], DIALECTS, "a mock tool knows no such dialect")


def arguments_text(arguments: Mapping[str, Any]) -> str:
    """Return equal strings for equal arguments, even if JSON cannot carry them."""
    try:
        return write_canonical(dict(arguments))
    except (TypeError, ValueError):
        return repr(arguments)


def _jsonschema(
    problems: tuple[Problem, ...], arguments: Mapping[str, Any], tool: ToolSpec
) -> ToolFailure:
    # Python's jsonschema prints its first error.
    problem = problems[0]
    rule, value, node = _rule_of(problem), _at(arguments, problem.path), _node(tool, problem.path)
    words = {
        "type": f"{value!r} is not of type {_type_of(node)!r}",
        "enum": f"{value!r} is not one of {node.get('enum')!r}",
        "required": f"{next(iter(_missing(node, value)), '')!r} is a required property",
        "additional": "Additional properties are not allowed",
    }
    tokens = (t if t.isdecimal() else repr(t) for t in pointer_tokens(problem.path))
    place = "".join(f"[{token}]" for token in tokens)
    text = f"{words.get(rule, problem.message)}\n\nFailed validating {rule!r} in schema\n"
    return ToolFailure(f"{text}\nOn instance{place}:\n    {write_canonical(value)[:200]}")


def _go(problems: tuple[Problem, ...], arguments: Mapping[str, Any], tool: ToolSpec) -> ToolFailure:
    # A Go service decodes into a struct, and checks the values itself.
    problem = problems[0]
    name = ".".join(pointer_tokens(problem.path)) or "arguments"
    if _rule_of(problem) != "type":
        return ToolFailure(f"invalid value for {name}: {problem.message}", status=400)
    got = _GO_KINDS.get(type(_at(arguments, problem.path)), "number")
    kind = _GO_TYPES.get(_type_of(_node(tool, problem.path)), "float64")
    struct = "".join(word.capitalize() for word in tool.name.split("_")) or "Call"
    message = f"json: cannot unmarshal {got} into Go struct field {struct}.{name} of type {kind}"
    return ToolFailure(message, status=400)


def _pydantic(
    problems: tuple[Problem, ...],
    arguments: Mapping[str, Any],
    tool: ToolSpec,
    *,
    fastapi: bool = False,
) -> ToolFailure:
    # One row a problem, and one for each member that is missing.
    rows: list[dict[str, Any]] = []
    place = ["body"] if fastapi else []
    for problem in problems:
        rule, node = _rule_of(problem), _node(tool, problem.path)
        code, message = _PYDANTIC.get(
            _type_of(node) if rule == "type" else rule, ("value_error", problem.message)
        )
        names = _missing(node, _at(arguments, problem.path)) if rule == "required" else []
        loc = [*place, *pointer_tokens(problem.path)]
        rows += [
            {"type": code, "loc": [*loc, *tail], "msg": message}
            for tail in [[name] for name in names] or [[]]
        ]
    body = json.dumps({"detail": rows} if fastapi else rows)
    message = "the tool answered with status 422" if fastapi else "validation failed"
    return ToolFailure(message, body, 422 if fastapi else 400, issues_in_body(body))


Dialect = Callable[[tuple[Problem, ...], Mapping[str, Any], ToolSpec], ToolFailure]
DIALECTS: Mapping[str, Dialect] = {
    "jsonschema": _jsonschema,
    "go": _go,
    "pydantic": _pydantic,
    "fastapi": partial(_pydantic, fastapi=True),
    "silent": lambda problems, arguments, tool: ToolFailure("bad request", status=400),
}
"""Name -> how a call is refused: problems, arguments and tool to a ToolFailure."""

OTHER_FAILURES: tuple[ToolFailure, ...] = (
    ToolFailure("the tool answered with status 503", "upstream connect error", 503),
    ToolFailure("the tool answered with status 401", '{"error": "invalid token"}', 401),
    ToolFailure("the tool answered with status 404", '{"message": "no such station"}', 404),
    ToolFailure("request failed: timed out"),
    ToolFailure("insufficient funds", '{"error": "balance is below amount"}', 409),
    ToolFailure("invalid value in cache, please retry", "", 500),
)
"""Failures that say nothing of the arguments: a detector that finds something in one is wrong."""


def _rule_of(problem: Problem) -> str:
    return problem.code.rpartition(".")[2]


def _at(value: Value, path: str) -> Value:
    for token in pointer_tokens(path):
        if isinstance(value, Mapping):
            value = value.get(token)
        elif isinstance(value, list) and token.isdecimal() and int(token) < len(value):
            value = value[int(token)]
        else:
            return None
    return value


def _node(tool: ToolSpec, path: str) -> Mapping[str, Any]:
    # {} where the schema has none in plain words.
    node = tool.schema
    for token in pointer_tokens(path):
        if not isinstance(node, Mapping):
            return {}
        items, members = node.get("items"), node.get("properties")
        if token.isdecimal() and items is not None:
            node = items
        else:
            node = members.get(token) if isinstance(members, Mapping) else None
    return node if isinstance(node, Mapping) else {}


def _type_of(node: Mapping[str, Any]) -> str:
    # But for null. '' where it names none.
    kind = node.get("type")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), None)
    return kind if isinstance(kind, str) else ""


def _missing(node: Mapping[str, Any], value: Value) -> list[str]:
    names, members = node.get("required"), value if isinstance(value, Mapping) else {}
    return [str(name) for name in names if name not in members] if isinstance(names, list) else []


# How it works. A case may name its tools in its metadata, {"tools": {"get_weather": "http://…"}}:
# an address, or the name of a function that the caller hands in. A data file never names code to
# be imported. What no one names is a mock. Each tool gets the same arguments once for each attempt
# of one call, however many cells need the answer: cells differ by their layers and not by the
# weather.


class CaseTools:
    """Calls the tools of cases, and remembers the outcome of each call.

    functions: by the name of the tool, or by the name that a case gives it. dialect: of mocks.
    """

    def __init__(self, functions: Mapping[str, Callable[..., Any]], dialect: str) -> None:
        self._functions = functions
        self._dialect = dialect
        self._tools: dict[str, Callable[..., Any]] = {}
        self._results: dict[tuple[str, str, int], Accepted | ToolFailure] = {}
        self.calls = 0

    def call(
        self, case: Case, tool: ToolSpec, arguments: Mapping[str, Any], attempt: int
    ) -> Accepted | ToolFailure:
        """Return the outcome of a call. attempt: how often one flow has made this very call, from
        1.
        """
        names = case.metadata.get("tools")
        place = names.get(tool.name) if isinstance(names, Mapping) else None
        if not isinstance(place, str):
            place = ""
        name = f"{place} {tool.name} {tool.schema_json}"
        key = (name, arguments_text(arguments), attempt)
        if key not in self._results:
            self.calls += 1
            if name not in self._tools:
                self._tools[name] = self._new_tool(case, tool, place)
            self._results[key] = result_of(self._tools[name], RunTool(tool, arguments))
        return self._results[key]

    def _new_tool(self, case: Case, tool: ToolSpec, place: str) -> Callable[..., Any]:
        if place.startswith(("http://", "https://")):
            return HttpTool(place)
        if place and place not in self._functions:
            raise BadOptions(
                f"case {case.id!r} names a function for its tool {tool.name!r} that is not there",
                got=place,
                expected=", ".join(self._functions) or "an address, or a name in `functions`",
                hint=near(place, self._functions),
            )
        function = self._functions.get(place or tool.name)
        return function or MockTool(tool, self._dialect)
