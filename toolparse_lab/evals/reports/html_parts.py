"""What the HTML of reports and comparisons is built from: escaped text, tables, trials that unfold, whole pages.

Nothing here refers to anything outside the page, and nothing needs a script. Text of models, cases and providers is
escaped wherever it is put in.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Any, TypeAlias

import pandas as pd

from ...errors import ToolparseError
from ...flow import read_answer
from ...render import render_result
from ...render.show import visible
from ...types import ParseResult
from ..frames.dtypes import restored

if TYPE_CHECKING:
    from .gates import GateResult

Head: TypeAlias = Sequence[tuple[str, str]]
MAX_RAW = 4000
MAX_SHOWN = 400


def esc(x: object) -> str:
    """Text for HTML; characters that cannot be seen, or turn the text around, are shown as signs."""
    return html.escape(visible(str(x)))


@lru_cache(maxsize=1)
def _css() -> str:
    return resources.files(__package__).joinpath("report.css").read_text(encoding="utf-8")


def fragment(body: str) -> str:
    """HTML for a notebook's output, with the styles it needs."""
    return f'<div class="tpr"><style>{_css()}</style>{body}</div>'


def page(title: str, body: str) -> str:
    """A whole document, light or dark as the reader's system asks."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{esc(title)}</title>"
        "<style>html{background:#fff;color:#1a1d21}body{margin:0;padding:clamp(1rem,4vw,3rem)}"
        "body>.tpr{margin:0 auto}"
        "@media(prefers-color-scheme:dark){html{background:#14171a;color:#e6e8ea}.tpr{--ok:#56B4E9!important}}"
        "@media print{html{background:#fff;color:#000}body{padding:0}}</style></head>"
        f"<body>{body}</body></html>\n"
    )


def table(head: Head, rows: Iterable[Sequence[str]], under: Sequence[str] = ()) -> str:
    """A table from (name, class) columns and cells that are HTML already; on a phone each row is a card.

    `under` has HTML for each row that takes the whole width below it, '' where there is none.
    """
    # Notebooks set tables to equal columns and right-aligned cells, which only inline styles outrank.
    side = {c: ' style="text-align:left"' if "l" in c.split() else "" for _, c in head}
    top = "".join(f'<th class="{c}" scope="col"{side[c]}>{esc(n)}</th>' for n, c in head)
    body = []
    for i, row in enumerate(rows):
        cells = "".join(_cell(n, c, side[c], x) for (n, c), x in zip(head, row, strict=True))
        below = under[i] if under else ""
        more = f'<tr class="more"><td colspan="{len(head)}" style="text-align:left">{below}</td></tr>' if below else ""
        body.append(f"<tr{' class=has' if below else ''}>{cells}</tr>{more}")
    return (
        '<div class="wrap"><table class="cards" style="table-layout:auto">'
        f"<thead><tr>{top}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
    )


def _cell(name: str, kind: str, side: str, content: str) -> str:
    tag = 'th scope="row"' if "k" in kind.split() else "td"
    return f'<{tag} class="{kind}" data-label="{esc(name)}"{side}>{content}</{tag[:2]}>'


def unfolding(summary: str, body: str) -> str:
    """A line that unfolds; `summary` is text, `body` HTML."""
    return f"<details><summary>{esc(summary)}</summary>{body}</details>"


def answer_view(row: Mapping[Any, Any]) -> str:
    """A row of a trials frame as it is looked at: what was asked, what came of it, and the parse view."""

    def text(name: str) -> str:
        x = row.get(name)
        return "" if x is None or pd.isna(x) else str(x)

    outcome = " / ".join(x for x in (text("outcome") or text("missing_reason"), text("sub_code")) if x)
    detail = text("detail")
    lead = [f"<b>{esc(outcome)}</b>{esc(': ' + detail) if detail else ''}", f"asked: {esc(_short(text('input')))}"]
    if text("target"):
        lead.append(f"wanted: <code>{esc(_short(text('target')))}</code>")
    if text("error_message"):
        lead.append(f"error: {esc(_short(text('error_message')))}")
    result = read_row(row)
    view = render_result(result) if result else f"<pre>{esc(text('raw')[:MAX_RAW])}</pre>" if text("raw") else ""
    return f'<div class="trial"><p>{"<br>".join(lead)}</p>{view}</div>'


def read_row(row: Mapping[Any, Any]) -> ParseResult | None:
    """The answer of a row of a trials frame, read again as it was read; None where there is no answer or no tools."""
    raw, tools = row.get("raw"), row.get("tools_json")
    if not isinstance(raw, str) or not isinstance(tools, str) or row.get("status") == "error":
        return None
    offsets, choice = row.get("raw_surrogates_json"), row.get("tool_choice")
    if isinstance(offsets, str):
        raw = restored(raw, json.loads(offsets))
    choice = json.loads(choice) if isinstance(choice, str) and choice.startswith("{") else choice
    try:
        return read_answer(
            raw, row["parse_protocol"], json.loads(tools), {"coerce": row["policy"]},
            choice if choice and not (isinstance(choice, float) or choice is pd.NA) else "auto",
        )  # fmt: skip
    except ToolparseError:  # a protocol that is not registered here
        return None


def unfolded_rows(rows: Iterable[Mapping[Any, Any]]) -> str:
    """Trials by name, each of which unfolds into its view."""
    return "".join(unfolding(f"{r['case_id']} · {r['trial_id']}", answer_view(r)) for r in rows)


def _short(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"


def gate_section(gate: GateResult) -> str:
    """The checks of a gate, the ones that fail first."""
    verdict = "passed" if gate.ok else f"failed: {len(gate.failures)} of {len(gate.checks)} checks"
    head: Head = (("cell", "l k full"), ("metric", "l"), ("value", ""), ("bound", ""), ("n", ""), ("", "l w"))
    ordered = sorted(gate.checks, key=lambda c: c.ok)
    rows = [
        [esc(c.cell), esc(c.metric), "–" if c.value != c.value else f"{c.value:.4g}", f"{c.bound:.4g}", str(c.n),
         "✓ kept" if c.ok else f"<b>✗</b> {esc(c.sentence.removeprefix(c.cell + ': '))}"]
        for c in ordered
    ]  # fmt: skip
    return f"<h2>Gate {verdict}</h2>{table(head, rows)}"
