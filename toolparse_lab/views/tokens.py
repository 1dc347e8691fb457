"""The tokens of a result: what each is part of, and how likely it was."""

from __future__ import annotations

import math

from markupsafe import Markup

from ..core.types import ParseResult
from ..core.types.tokens import TokenLabel
from ..core.values.printable import counted
from .cells import escaped, text_html
from .show import shorten, visible
from .style import MARKS, VERMILLION, tint

MAX_TOKENS = 2_000
_MOST_LIKELY = 0.9  # from here on nothing is to be seen
# Kind of token -> the mark whose line it has.
_LINES = {"argument": "argument", "name": "name", "reasoning": "reasoning"}


def tokens_line(result: ParseResult) -> str:
    """Return in one line how many tokens there are, and how likely the least likely one was.

    '' where no tokens were recorded.
    """
    tokens = result.tokens or ()
    known = [token for token in tokens if token.logprob is not None]
    line = counted(len(tokens), "token") if tokens else ""
    if known:
        least = min(known, key=lambda token: token.logprob or 0.0)
        line += f"; the least likely, {visible(repr(least.text))}, had {share_of(least.logprob)}"
    return line


def tokens_html(result: ParseResult) -> Markup:
    """Return the tokens side by side. The less likely one was, the stronger its background; the
    line below it says what it is part of, and its tooltip everything.
    """
    spans = [_span(label) for label in result.token_labels()[:MAX_TOKENS]]
    return Markup("").join(spans)


def _span(label: TokenLabel) -> Markup:
    token = label.token
    facts: list[str] = [label.kind]
    if label.path:
        facts.append(f"{label.path} of call {label.call}")
    if label.repaired:
        facts.append("repaired here")
    if token.logprob is not None:
        facts.append(f"{share_of(token.logprob)} likely")
    if token.entropy is not None:
        facts.append(f"entropy {token.entropy:.2f}")
    if token.id is not None:
        facts.append(f"id {token.id}")
    css = "border-radius:2px"
    if token.logprob is not None and math.exp(token.logprob) < _MOST_LIKELY:
        css += f";background-color:{tint(VERMILLION, 0.6 * (1 - math.exp(token.logprob)))}"
    if line := _LINES.get(label.kind):
        css += f";border-bottom:{MARKS[line].line or '1px dotted'}"
    if label.kind in ("markup", "outside"):
        css += ";opacity:0.75"
    title = escaped(shorten(" · ".join(facts), 300))
    text = text_html(token.text)
    return Markup(f'<span title="{title}" style="{css}">{text}</span>')  # noqa: S704 - escaped


def share_of(logprob: float | None) -> str:
    return "" if logprob is None else f"{math.exp(logprob):.1%}"
