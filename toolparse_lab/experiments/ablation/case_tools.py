"""The tools that take the calls of an ablation: functions, addresses, or mocks of their schemas."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...core.errors import BadOptions, near
from ...core.toolspec import ToolSpec
from ...core.values import write_canonical
from ...evals.cases.case import Case
from ...middleware.correction import Accepted, HttpTool, RunTool, ToolFailure
from ...middleware.correction.drive import result_of
from .mock_tool import MockTool

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
        self._tools: dict[tuple[str, str], Callable[..., Any]] = {}
        self._results: dict[tuple[str, str, int], Accepted | ToolFailure] = {}
        self.calls = 0

    def call(
        self, case: Case, tool: ToolSpec, arguments: Mapping[str, Any], attempt: int
    ) -> Accepted | ToolFailure:
        """Return the outcome of a call. attempt: how often one flow has made this very call, from
        1.
        """
        name = f"{self._place(case, tool)} {tool.name} {tool.schema_json}"
        try:
            text = write_canonical(dict(arguments))
        except (TypeError, ValueError):  # nothing that JSON can carry
            text = repr(arguments)
        key = (name, text, attempt)
        if key not in self._results:
            self.calls += 1
            self._results[key] = result_of(self._tool(case, tool), RunTool(tool, arguments))
        return self._results[key]

    def _place(self, case: Case, tool: ToolSpec) -> str:
        names = case.metadata.get("tools")
        place = names.get(tool.name) if isinstance(names, Mapping) else None
        return place if isinstance(place, str) else ""

    def _tool(self, case: Case, tool: ToolSpec) -> Callable[..., Any]:
        place = self._place(case, tool)
        key = (place, f"{tool.name} {tool.schema_json}")
        if key not in self._tools:
            self._tools[key] = self._new_tool(case, tool, place)
        return self._tools[key]

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
