"""The smallest request that fails like a long one, found by asking again."""

# How it works. The request is cut along its own joints, as a text is by `shrink`: whole tools,
# earlier messages, sentences, descriptions, parameters. Each cut is asked, and stays if the answer
# fails in the same way: the same outcome, sub-code and errors. What the target speaks of must stay
# (its tools, its arguments, the words that its values come from), or the request would fail for a
# reason of its own.

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ...core.toolspec import ToolSpec
from ...core.values import leaves
from ...core.values.printable import counted, printable
from ...evals.cases.case import Case
from ...evals.cases.target import wanted_calls
from ...evals.scoring.trial import Trial
from ...experiments.models import ModelLike
from ...views.show import shorten
from .diagnosis import check_failed
from .shrinking import JOINTS, smallest

_SHOWN = 300


@dataclass(frozen=True)
class ShrunkRequest:
    """A request that fails like the one it was cut from.

    Attributes:
        trial: the answer to what is left, recorded like any other.
        original: the trial that it was cut from.
        cuts: kind of piece -> how many of them went.
        asked: requests that were spent.
        whole: True if nothing more can be left out, False if the budget was spent.
    """

    trial: Trial
    original: Trial
    cuts: Mapping[str, int]
    asked: int
    whole: bool

    @property
    def case(self) -> Case:
        """The question and the tools that are left."""
        return self.trial.case

    def __repr__(self) -> str:
        sizes = [len(case.input_text) for case in (self.original.case, self.case)]
        tools = [len(case.tools) for case in (self.original.case, self.case)]
        lines = [
            f"{sizes[0]:,} to {counted(sizes[1], 'character')} and {tools[0]} to "
            f"{counted(tools[1], 'tool')}, after {counted(self.asked, 'request')}:",
            *(f"  {x}" for x in shorten(printable(self.case.input_text), _SHOWN).splitlines()),
            f"tools: {', '.join(printable(tool.name) for tool in self.case.tools) or 'none'}",
            f"still {printable(str(self.trial.score))}",
        ]
        if self.cuts:
            lines.append(f"cut: {', '.join(f'{n} {what}' for what, n in self.cuts.items())}")
        if not self.whole:
            lines.append("the budget was spent: more may go with budget=…")
        return "\n".join(lines)


class _Spent(Exception):
    pass


def shrink_request(
    trial: Trial, *, budget: int = 60, model: ModelLike | None = None
) -> ShrunkRequest:
    """Find the smallest request that fails like a trial's, by asking again.

    It removes tools, earlier messages, sentences, descriptions and parameters as long as the answer
    fails in the same way. Everything that the target names stays. `shrink(trial)` shortens the
    answer instead, without a model.

    Args:
        trial: a failing trial.
        budget: requests at most, each recorded like any other.
        model: the model to ask, for a trial from a log.

    Raises BadOptions for a trial that did not fail, or that came without its lab.
    """
    check_failed(trial, "there is nothing to keep")

    def ask(case: Case) -> Trial:
        return trial.retry(case=case, model=model, fresh=True, may_fail=True)

    work = _Work(trial, ask, budget)
    whole = work.run()
    return ShrunkRequest(work.trial, trial, work.cuts, work.asked, whole)


class _Work:
    def __init__(self, trial: Trial, ask: Callable[[Case], Trial], budget: int) -> None:
        self.trial = trial
        self.case = trial.case
        self.cuts: dict[str, int] = {}
        self.asked = 0
        self._ask = ask
        self._budget = budget
        self._wanted = _signature(trial)
        wanted = wanted_calls(trial.case.target or ())
        self._words = set(_words_of(wanted))
        self._names = {str(call.get("name")): call for call in wanted}

    def run(self) -> bool:
        try:
            self._cut("tools", self.case.tools, self._with_tools)
            messages = self.case.messages
            self._cut("messages", messages[:-1], partial(self._with_messages, messages[-1]))
            for at, message in enumerate(self.case.messages):
                text = message.get("content")
                if isinstance(text, str):
                    pieces = JOINTS["sentences"].split(text)
                    self._cut("sentences", pieces, partial(self._with_sentences, at))
            for at, tool in enumerate(self.case.tools):
                if tool.description:
                    self._cut("descriptions", [tool.description], partial(self._described, at))
                schema = self.case.tools[at].schema
                properties = schema.get("properties") if isinstance(schema, Mapping) else None
                if isinstance(properties, Mapping):
                    self._cut("parameters", list(properties), partial(self._with_parameters, at))
        except _Spent:
            return False
        return True

    def _holds(self, case: Case) -> bool:
        if self.asked >= self._budget:
            raise _Spent
        self.asked += 1
        trial = self._ask(case)
        if _signature(trial) != self._wanted:
            return False
        self.trial, self.case = trial, case
        return True

    def _cut(
        self, what: str, pieces: Sequence[Any], make: Callable[[Sequence[Any]], Case | None]
    ) -> None:
        def holds(some: Sequence[Any]) -> bool:
            case = make(some)
            return case is not None and self._holds(case)

        kept = smallest(pieces, holds)
        if len(kept) < len(pieces):
            self.cuts[what] = self.cuts.get(what, 0) + len(pieces) - len(kept)

    def _with_tools(self, tools: Sequence[ToolSpec]) -> Case | None:
        names = {tool.name for tool in tools}
        own = [tool.name for tool in self.case.tools if tool.name in self._names]
        return replace(self.case, tools=tuple(tools)) if names.issuperset(own) else None

    def _with_messages(self, last: Any, some: Sequence[Any]) -> Case:
        return replace(self.case, input=[*some, last])

    def _with_sentences(self, at: int, some: Sequence[str]) -> Case | None:
        text = "".join(some).strip()
        before = str(self.case.messages[at].get("content"))
        if not text or any(word in before and word not in text for word in self._words):
            return None
        if isinstance(self.case.input, str):
            return replace(self.case, input=text)
        messages = self.case.messages
        messages[at] = {**messages[at], "content": text}
        return replace(self.case, input=messages)

    def _described(self, at: int, some: Sequence[str]) -> Case:
        return self._with_tool(at, {**self.case.tools[at].to_dict(), "description": "".join(some)})

    def _with_parameters(self, at: int, names: Sequence[str]) -> Case | None:
        tool = self.case.tools[at].to_dict()
        wanted = (self._names.get(tool["name"]) or {}).get("arguments") or {}
        if not set(names).issuperset(wanted):
            return None
        schema = dict(tool["parameters"])
        schema["properties"] = {n: v for n, v in schema["properties"].items() if n in names}
        if isinstance(schema.get("required"), list):
            schema["required"] = [name for name in schema["required"] if name in names]
        return self._with_tool(at, {**tool, "parameters": schema})

    def _with_tool(self, at: int, tool: Mapping[str, Any]) -> Case:
        tools = [*self.case.tools]
        tools[at] = ToolSpec.of(tool)
        return replace(self.case, tools=tuple(tools))


def _signature(trial: Trial) -> tuple[Any, ...]:
    problems = trial.result.all_problems() if trial.result is not None else ()
    codes = sorted({problem.code for problem in problems if problem.severity == "error"})
    kind = trial.completion.error_kind if trial.completion is not None else None
    return trial.outcome, trial.sub_code, kind, tuple(codes)


def _words_of(target: Any) -> Iterator[str]:
    # The values of a target as a question may say them.
    for call in target or ():
        arguments = call.get("arguments")
        for _, value in leaves(arguments if isinstance(arguments, dict) else {}):
            if isinstance(value, str) and value:
                yield value
            elif isinstance(value, (int, float)) and not isinstance(value, bool):
                yield str(value)
