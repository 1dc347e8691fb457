"""The parameters of a plan, fitted to each model: the model's own go before the plan's, and what a
model does not take is not sent.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ..core.values.printable import printable
from ..runner.exchange.types import Model, Request
from ..runner.routes import LENGTHS, Untaken, shape_of, untaken

_LONGEST = 40  # characters of a value in the lines of a plan

_Shapes = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Fitting:
    """The parameters that are not sent to which model of a plan, found out once and then kept.

    An endpoint that refuses something in the course of a run changes nothing for that run: its
    questions keep their keys, and its arms stay alike. The next plan knows of the refusal.

    left_out: by alias, then by name and shape of the value. own: by alias, the model's own
    parameters that are sent in place of the plan's. typed: names that go before the model's own,
    because they were given for one question. known: no model is asked, because the run was recorded
    with `left_out`.
    """

    left_out: dict[str, dict[tuple[str, str], Untaken]] = field(default_factory=dict)
    own: dict[str, dict[str, Any]] = field(default_factory=dict)
    typed: frozenset[str] = frozenset()
    known: bool = False
    _asked: dict[tuple[str, _Shapes, bool], tuple[Untaken, ...]] = field(default_factory=dict)

    @classmethod
    def of_record(cls, rows: Iterable[Mapping[str, Any]]) -> Fitting:
        """Return the fitting of a recorded run, from the result of `to_list`."""
        fitting = cls(known=True)
        for row in rows:
            values = dict(row)
            alias = values.pop("model")
            fitting._keep(alias, Untaken(**values))
        return fitting

    def to_list(self) -> list[dict[str, Any]]:
        """Return what was left out, as it is recorded with a run."""
        return [
            {"model": alias, **asdict(replace(u, value=shape_of(u.name, u.value)))}
            for alias, found in self.left_out.items()
            for u in found.values()
        ]

    def fitted(self, request: Request) -> Request:
        """Return a request with the parameters that its model takes."""
        model, alias = request.model, request.model_alias
        own, params = model.params or {}, dict(request.params)
        for name in self._taken_over(own, params):
            value = params.pop(name)
            if name in own and own[name] != value:
                self.own.setdefault(alias, {})[name] = own[name]
        for u in self._untaken(alias, model, {**own, **params}, bool(request.tools)):
            value = own.get(u.name) if u.name not in params else params.pop(u.name)
            if u.name in own:
                params[u.name] = None  # the model's own is taken back
            if u.sent_as:
                params[u.sent_as] = value
        return request if params == request.params else replace(request, params=params)

    def _taken_over(self, own: Mapping[str, Any], params: Mapping[str, Any]) -> list[str]:
        # The names in `params` that the model's own parameters settle.
        names = set(own)
        if names & set(LENGTHS):
            names |= set(LENGTHS)
        return [name for name in params if name in names - self.typed]

    def _untaken(
        self, alias: str, model: Model, params: Mapping[str, Any], tools: bool
    ) -> Iterable[Untaken]:
        shapes = tuple(
            (name, repr(shape_of(name, v))) for name, v in params.items() if v is not None
        )
        key = (alias, shapes, tools)
        if key not in self._asked:
            if not self.known:
                for found in untaken(model, params, tools=tools):
                    self._keep(alias, found)
            of_model = self.left_out.get(alias, {})
            self._asked[key] = tuple(of_model[shape] for shape in shapes if shape in of_model)
        return self._asked[key]

    def _keep(self, alias: str, found: Untaken) -> None:
        shape = (found.name, repr(shape_of(found.name, found.value)))
        self.left_out.setdefault(alias, {}).setdefault(shape, found)

    def lines(self, aliases: Iterable[str]) -> Iterator[str]:
        """Yield a line for each of these models that is not sent the plan's parameters as they
        are.
        """
        for alias in aliases:
            clauses = []
            if own := self.own.get(alias):
                shown = ", ".join(itertools.starmap(_shown, sorted(own.items())))
                clauses.append(f"its own {shown}")
            clauses += _clauses(self.left_out.get(alias, {}).values())
            if clauses:
                yield printable(f"fitted: {alias} {'; '.join(clauses)}")


def _clauses(left_out: Iterable[Untaken]) -> Iterator[str]:
    by_reason: dict[str, list[str]] = {}
    for u in sorted(left_out, key=lambda u: u.name):
        if u.sent_as:
            yield f"{u.name} as {u.sent_as}"
        else:
            name = _shown(u.name, u.value) if u.value_alone else u.name
            by_reason.setdefault(u.why, []).append(name)
    for why, names in sorted(by_reason.items()):
        yield f"without {', '.join(names)} ({why})"


def _shown(name: str, value: Any) -> str:
    text = str(value)
    return f"{name}={text if len(text) <= _LONGEST else text[: _LONGEST - 1] + '…'}"
