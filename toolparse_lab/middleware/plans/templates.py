"""Templates in the parameters of a step: `{{step.path}}` is a part of an earlier result."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ...core.errors import BadTaskPlan
from ...core.values import write_canonical

# A template has no braces inside, and its length is bounded, so that the search is linear.
_TEMPLATE = re.compile(r"\{\{\s{0,20}([^{}\s][^{}]{0,400}?)\s{0,20}\}\}")
_PIECE = re.compile(r"\[(\d{1,9})\]|\.?([^.\[\]]+)")
_MOST_LEVELS = 200


@dataclass(frozen=True, slots=True)
class Reference:
    """One template.

    text: as written, with braces. step: the first word. path: the others.
    """

    text: str
    step: str
    path: tuple[str, ...]

    @classmethod
    def of(cls, match: re.Match[str]) -> Reference:
        step, *path = [piece[1] or piece[2] for piece in _PIECE.finditer(match[1])] or [match[1]]
        return cls(match[0], step.strip(), tuple(path))


def references_in(value: Any) -> Iterator[Reference]:
    """Yield every template in the texts of a JSON-like value, at any depth."""
    waiting = [value]
    while waiting:
        here = waiting.pop()
        if isinstance(here, str):
            yield from map(Reference.of, _TEMPLATE.finditer(here))
        elif isinstance(here, Mapping):
            waiting += here.values()
        elif isinstance(here, (list, tuple)):
            waiting += here


def resolve(value: object, results: Mapping[str, Any]) -> Any:
    """Return a value with its templates replaced by parts of `results`.

    `results` has a result for each step.

    A string that is nothing but one template becomes the part itself, with its type. Elsewhere a
    string goes in as it is, and anything else as JSON. Raises BadTaskPlan for one that leads
    nowhere.

    >>> resolve({"a": "{{s.n}}", "b": "n is {{s.n}}"}, {"s": {"n": 7}})
    {'a': 7, 'b': 'n is 7'}
    """
    return _resolved(value, results, 0)


def _resolved(value: Any, results: Mapping[str, Any], level: int) -> Any:
    # A value that nests too deep has no templates.
    if level > _MOST_LEVELS:
        return value
    if isinstance(value, str):
        return _text(value, results)
    if isinstance(value, Mapping):
        return {name: _resolved(member, results, level + 1) for name, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [_resolved(item, results, level + 1) for item in value]
    return value


def _text(text: str, results: Mapping[str, Any]) -> Any:
    # A string that is one template becomes the value itself.
    whole = _TEMPLATE.fullmatch(text.strip())
    if whole is not None:
        return _part(Reference.of(whole), results)

    def written(match: re.Match[str]) -> str:
        part = _part(Reference.of(match), results)
        return part if isinstance(part, str) else write_canonical(part)

    return _TEMPLATE.sub(written, text)


def _part(reference: Reference, results: Mapping[str, Any]) -> Any:
    if reference.step not in results:
        raise BadTaskPlan(
            "a template names a step without a result",
            got=reference.text,
            expected=", ".join(results) or "no step is done",
            code="unresolved-template",
        )
    part = results[reference.step]
    for token in reference.path:
        if isinstance(part, Mapping) and token in part:
            part = part[token]
        elif isinstance(part, (list, tuple)) and token.isascii() and token.isdigit():
            index = int(token)
            if index >= len(part):
                raise _missing(reference, token, f"{len(part)} items")
            part = part[index]
        else:
            names = ", ".join(map(str, part)) if isinstance(part, Mapping) else type(part).__name__
            raise _missing(reference, token, names)
    return part


def _missing(reference: Reference, token: str, expected: str) -> BadTaskPlan:
    return BadTaskPlan(
        f"a template leads nowhere: there is no {token!r}",
        got=reference.text,
        expected=expected,
        code="unresolved-template",
    )
