"""What a chat template loses, as HTML: the guilty line beside the value it lost."""

from __future__ import annotations

from typing import Any

from ....views.cells import text_of
from ....views.show import shorten
from ....views.templating import Markup, render
from .report import CODES, Finding, TemplateReport

_LOOKS = {"error": "bad", "warning": "warn", "info": "flat"}
_LONGEST = 400
_MOST = 12  # losses of a finding


def render_template_report(report: TemplateReport) -> str:
    """Return the findings as HTML: each with its line, the patch, and the values that it loses."""
    return render(
        "extensions/templates/doctor/view.html",
        summary=str(report).rpartition("\n")[2],
        findings=[_finding(finding) for finding in report.findings],
        example=text_of(shorten(report.example, 2_000)),
    )


def _finding(finding: Finding) -> dict[str, Any]:
    source = finding.source.strip()
    before, guilty, behind = source, "", ""
    patch = finding.patch
    if patch is not None and patch.old in source:
        before, guilty, behind = source.partition(patch.old)
    losses = [
        (text_of(f"{loss.title}, {loss.place}"), *map(_shown, (loss.value, loss.came, loss.text)))
        for loss in finding.losses[:_MOST]
    ]
    more = len(finding.losses) - _MOST
    proof = next((loss.proof for loss in finding.losses if loss.proof), "")
    return {
        "look": _LOOKS[finding.severity],
        "severity": finding.severity,
        "code": finding.code,
        "meaning": CODES[finding.code][1],
        "line": finding.line,
        "source": tuple(map(_shown, (before, guilty, behind))),
        "patch": None if patch is None else _shown(patch.new),
        "healed": "" if patch is None else f"heals {patch.healed} of {len(finding.losses)}",
        "losses": losses,
        "more": f"and {more} more" if more > 0 else "",
        "proof": _shown(proof),
    }


def _shown(text: str) -> Markup:
    return text_of(shorten(text, _LONGEST))
