"""A trial for a notebook without a kernel, and the wanted calls beside those that were read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...core.toolspec import ToolSpec
from ...core.types import ParseResult
from ...core.values import write_canonical
from ...views import render_result
from ...views.show import shorten
from ...views.templating import Markup, render
from .differences import differences_between

if TYPE_CHECKING:
    from .trial import Trial

_MOST = 600  # characters of a call


@dataclass(frozen=True, slots=True)
class WantedRow:
    """A wanted call beside the one read in its place, or "" for one that is not there."""

    target: str
    got: str
    difference: str


def wanted_rows(
    result: ParseResult, target: Sequence[Mapping[str, Any]], tools: Sequence[ToolSpec]
) -> list[WantedRow]:
    """Return the wanted calls beside the read ones, in their order."""
    calls = [call for call in result.calls if call.ok]
    rows = []
    for i in range(max(len(target), len(calls))):
        want = target[i] if i < len(target) else None
        call = calls[i] if i < len(calls) else None
        difference = ""
        if call is None:
            difference = "this call was not made"
        elif want is None:
            difference = "no such call was wanted"
        else:
            differences = differences_between((call.name, call.arguments), want, tools)
            difference = "; ".join(one.detail for one in differences)
        rows.append(
            WantedRow(
                "" if want is None else shorten(write_canonical(dict(want)), _MOST),
                "" if call is None else shorten(f"{call.name} {call.arguments_json}", _MOST),
                shorten(difference, _MOST),
            )
        )
    return rows


def trial_html(trial: Trial) -> str:
    """Return a trial as HTML that reads without a kernel."""
    result, target = trial.result, trial.case.target
    rows = wanted_rows(result, target, trial.case.tools) if result and target is not None else []
    return render(
        "evals/scoring/templates/trial.html",
        title=f"{trial.case_id} · {trial.model} · {trial.arm}",
        outcome=str(trial.score or trial.missing_reason),
        rows=rows,
        answer=Markup(render_result(result)) if result else "",
    )
