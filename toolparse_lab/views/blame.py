"""Which layer broke an answer, with the evidence at its place: in the text, its tokens and its
chunks.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from markupsafe import Markup

from ..core.types import Blame, Span
from ..core.types.blame import Evidence
from ..core.types.tokens import Tokens
from .cells import share_of, text_of
from .show import shorten
from .templating import render

_AROUND = 40  # characters of the text on either side of a place


def render_blame(
    blame: Blame, raw: str, tokens: Tokens | None = None, chunks: Sequence[str] = ()
) -> str:
    """Return the verdict as HTML, with a row for each piece of evidence. '' where there is nothing
    to say.

    raw: the text that was parsed, in which the places of the evidence are. tokens: those of it.
    chunks: the pieces in which it came.
    """
    if not blame or blame.layer == "none":
        return ""
    # Only the pieces of that very text have their places in it.
    ends = list(accumulate(map(len, chunks))) if "".join(chunks) == raw else []
    return render(
        "views/templates/blame.html",
        look="flat" if blame.layer == "cannot_tell" else "bad",
        layer=blame.layer.replace("_", " "),
        why=text_of(shorten(blame, 1_000)),
        rows=[_row(evidence, raw, tokens, ends) for evidence in blame.evidence],
        would_tell=text_of(blame.would_tell),
    )


def _row(
    evidence: Evidence, raw: str, tokens: Tokens | None, ends: Sequence[int]
) -> tuple[str, Markup, Markup, Markup, str]:
    # Where, the text before, the evidence, the text behind, and in which tokens and chunks it is.
    says = " ".join(evidence.says.split())
    start, end = evidence.start, evidence.end
    if start is None or end is None or not 0 <= start <= end <= len(raw):
        return evidence.where, Markup(), text_of(shorten(says, 400)), Markup(), ""
    facts = [f"characters {start} to {end}"]
    if tokens is not None and tokens.raw == raw:
        facts.append(_tokens_at(tokens, Span(start, end)))
    if ends:
        first = next((i for i, at in enumerate(ends) if at > start), len(ends) - 1)
        last = next((i for i, at in enumerate(ends) if at >= end), len(ends) - 1)
        facts.append(f"chunk {first}" if first == last else f"chunks {first} to {last}")
    return (
        evidence.where,
        text_of(("…" if start > _AROUND else "") + raw[max(0, start - _AROUND) : start]),
        text_of(shorten(raw[start:end], 400)),
        text_of(raw[end : end + _AROUND] + ("…" if end + _AROUND < len(raw) else "")),
        "; ".join(fact for fact in facts if fact),
    )


def _tokens_at(tokens: Tokens, span: Span) -> str:
    found = tokens.at(span)
    known = [token for token in found if token.logprob is not None]
    if not found:
        return ""
    places = f"token {found[0].index}"
    if len(found) > 1:
        places = f"tokens {found[0].index} to {found[-1].index}"
    if not known:
        return places
    least = min(known, key=lambda token: token.logprob or 0.0)
    return f"{places}, the least likely {least.text!r} with {share_of(least.logprob)}"
