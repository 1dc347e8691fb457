"""The small pieces of a result's page as HTML: text, badges, and the text in the cells of rows.

They are joined as strings here, not rendered by templates: a page has thousands of them, a template
takes two to four times as long for each, and a parse view is rendered often. Whatever comes from a
result goes through `escaped` or `text_of`.
"""

# ruff: noqa: S704 - every Markup of this file is made of escaped parts and of our own styles

from __future__ import annotations

import math
import re
from html import escape

from markupsafe import Markup

from ..core.types import ParseResult, Span, ToolCall
from ..core.types.tokens import TokenLabel
from ..core.values.printable import counted
from ..core.values.wording import share
from .rows import Change, Row, place
from .show import HIDDEN, name_of, one_line, shorten, visible
from .style import (
    AFTER,
    BADGE,
    BEFORE,
    DIM,
    GREEN,
    GREY,
    INVISIBLE,
    MARKS,
    MONO,
    ORANGE,
    VALUE,
    VERDICTS,
    VERMILLION,
    tint,
)

MAX_VALUE = 2_000
MAX_STEPS = 12

_HIDDEN_RUNS = re.compile(f"{HIDDEN.pattern}+")
_NOTHING = Markup()
_MAX_NAMES = 6  # hidden characters named in one tooltip


def escaped(value: object) -> Markup:
    """Return a value as HTML: characters that cannot be seen, or that turn text around, become
    signs, and no other character is markup.
    """
    return Markup(_shown(str(value)))


def text_of(text: str) -> Markup:
    """Return model text as HTML: escaped, hidden characters as signs that say on hover what they
    are.
    """
    return Markup(text_html(text))


# Plain strings are joined: making Markup of every piece would cost as much as escaping it.
def _shown(text: str) -> str:
    return escape(visible(text))


def text_html(text: str) -> str:
    """Return the result of `text_of` as a plain string."""
    if text.isprintable() or not HIDDEN.search(text):
        return escape(text)

    # Between two runs of hidden characters the text is only escaped.
    out: list[str] = []
    last = 0
    for match in _HIDDEN_RUNS.finditer(text):
        out.append(escape(text[last : match.start()]))
        # Their signs are in a frame with their names.
        hidden = match[0]
        names = [name_of(c) for c in hidden[:_MAX_NAMES]]
        if len(hidden) > _MAX_NAMES:
            names.append(f"and {len(hidden) - _MAX_NAMES:,} more")
        title = escape(", ".join(names))
        out.append(
            f'<span class="toolparse-hidden" title="{title}" style="{INVISIBLE}">'
            f"{visible(hidden)}</span>"
        )
        last = match.end()
    out.append(escape(text[last:]))
    return "".join(out)


def badge(text: str, rgb: str, *, title: str = "") -> Markup:
    """Return a word in a frame of a colour "#rrggbb". `text` and `title` are escaped."""
    return Markup(_badge(text, rgb, title))


def _badge(text: str, rgb: str, title: str = "") -> str:
    tip = f' title="{_shown(title)}"' if title else ""
    look = f"{BADGE};border:1px solid {rgb};background-color:{tint(rgb, 0.16)}"
    return f'<span style="{look}"{tip}>{_shown(text)}</span>'


def verdict_badge(word: str) -> Markup:
    """Return the badge of a verdict, its sign before the word."""
    sign, rgb, _ = VERDICTS[word]
    return badge(f"{sign} {word}", rgb)


# Made once, because every change has one of them.
LOSSLESS = _badge("lossless", GREEN)
LOSSY = _badge("lossy", VERMILLION)


def call_title(call: ToolCall) -> Markup:
    """Return the line above a call: its number, name, status, and where it was found."""
    name = text_html(shorten(call.name, 200)) if call.name else _dim("no name")
    facts = [f"protocol {call.protocol}", place(call.segment.span)]
    if call.wire_id is not None:
        facts.insert(0, f"id {call.wire_id}")

    badges: list[str] = [verdict_badge(call.verdict)]
    if call.status not in ("ok", call.verdict):
        badges.append(_badge(call.status.replace("_", " "), GREY))
    # Without a badge a call is certain.
    if call.confidence < 1:
        badges.append(_badge(f"confidence {call.confidence:.2f}", ORANGE))

    return Markup(
        f'<span style="{DIM}">call {call.index} </span>'
        f'<span style="{MONO};font-size:14px;font-weight:700;margin:0 8px 0 0">{name}</span> '
        f"{' '.join(badges)} "
        f'<span style="{DIM};font-weight:400;font-size:12px">'
        f"{text_html(shorten(' · '.join(facts), 200))}</span>"
    )


def _dim(text: str) -> str:
    return f'<span style="{DIM}">{_shown(text)}</span>'


def key_cell(row: Row) -> Markup:
    """Return the name of an argument, indented by its depth."""
    indent = min(max(row.depth - 1, 0), 12) * 16
    key = text_html(shorten(row.key, 120)) if row.path else "arguments"
    return Markup(f'<span style="{MONO};margin:0 0 0 {indent}px">{key}</span>')


def value_cell(row: Row) -> Markup:
    """Return the value of an argument. Of a container, its kind and size."""
    if not row.leaf:
        return Markup(_dim(f"{row.kind}, {row.text}"))
    return Markup(f'<span style="{VALUE}">{text_html(shorten(row.text, MAX_VALUE))}</span>')


def origin_cell(row: Row, raw: str) -> Markup:
    """Return the place an argument came from, with the text there on hover. '' without one."""
    if row.origin is None:
        return _NOTHING

    span = row.origin.span
    title = one_line(span.of(raw), 200)
    about = ""
    if not row.origin.exact:
        about = "~"
        title = f"nearest place, a structural change left it none of its own: {title}"
    return Markup(
        f'<span style="{DIM}" title="{escape(title)}">{about}{span.start}–{span.end}</span>'
    )


def steps_cell(changes: list[Change]) -> Markup:
    """Return the coercions of an argument, one below another, '' for none. Beyond `MAX_STEPS` they
    are only counted.
    """
    if not changes:
        return _NOTHING

    steps = "".join(
        f'<div style="margin:0 0 2px 0">{_before_after(change)}</div>'
        f'<div style="font-size:11px">{_rule(change)}</div>'
        for change in changes[:MAX_STEPS]
    )
    more = len(changes) - MAX_STEPS
    if more > 0:
        # As plain text: added to a Markup, the steps would be escaped once more.
        steps += str(note(f"{more:,} more changes"))
    return Markup(steps)


def change_cells(change: Change, more: int = 0) -> tuple[Markup, Markup, Markup]:
    """Return the cells of a change: its before and after, its rule, and its place.

    more: how many others did the same elsewhere.
    """
    where = place_cell(change.path, change.span)
    if more:
        where += Markup(_dim(f" and {more:,} more"))
    return Markup(_before_after(change)), Markup(_rule(change)), where


def _before_after(change: Change) -> str:
    # Of a repair that only drops or adds, the word for it.
    parts = []
    if change.before:
        text = text_html(shorten(change.before, MAX_VALUE))
        parts.append(f'<del style="{BEFORE}">{text}</del>')
    if change.after:
        text = text_html(shorten(change.after, MAX_VALUE))
        parts.append(f'<ins style="{AFTER}">{text}</ins>')

    if change.kind == "repair" and not change.after:
        parts.append(_dim("dropped"))
    elif change.kind == "repair" and not change.before:
        parts.insert(0, _dim("added"))
    elif len(parts) == 2:
        parts.insert(1, "→")
    return " ".join(parts)


def _rule(change: Change) -> str:
    loss = LOSSLESS if change.lossless else LOSSY
    return (
        f'<span style="{MONO};margin:0 6px 0 0">{_shown(change.rule)}</span> {loss} '
        f"{_dim(change.sentence)}"
    )


def place_cell(path: str, span: Span | None) -> Markup:
    """Return where something is: the path into the arguments, and the characters of the text."""
    parts = (text_html(shorten(path, 120)), place(span))
    return Markup(f'<span style="{DIM}">{" · ".join(filter(None, parts))}</span>')


def note(text: str) -> Markup:
    """Return a sentence of the page's own, such as the parts that it leaves out."""
    return Markup(f'<div style="{DIM};font-style:italic;margin:4px 0">{_shown(text)}</div>')


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
    return Markup(f'<span title="{title}" style="{css}">{text}</span>')


def share_of(logprob: float | None) -> str:
    return "" if logprob is None else share(math.exp(logprob))
