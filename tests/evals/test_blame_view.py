"""A verdict and a template's findings as pages: evidence at its place, and nothing that acts."""

from __future__ import annotations

from toolparse_lab.core.types import Blame, Evidence
from toolparse_lab.core.types.tokens import Tokens
from toolparse_lab.views.blame import render_blame

RAW = 'I look. <tool_call>{"name": "f"}</tool_call>'
VERDICT = Blame(
    "Server lost it.", "server", "markup_in_content", (Evidence("raw", RAW[8:], 8, len(RAW)),)
)


def test_evidence_is_shown_with_the_text_its_tokens_and_its_chunks_around_it() -> None:
    tokens = Tokens(RAW, (8, 36), logprobs=(-0.1, -0.2))
    page = render_blame(VERDICT, RAW, tokens, [RAW[:4], RAW[4:20], RAW[20:]])
    assert "characters 8 to 44; token 1, the least likely" in page
    assert "82 %" in page
    assert "chunks 1 to 2" in page
    assert "I look. <span" in page
    assert "&lt;tool_call&gt;{&#34;name&#34;" in page or "&lt;tool_call&gt;{&quot;name" in page
    # Pieces of another text have no places in this one.
    assert "chunk" not in render_blame(VERDICT, RAW, None, ["another"])


def test_model_text_in_a_verdict_cannot_act() -> None:
    hostile = "<script>alert(1)</script>\x1b[31m\u202e"
    verdict = Blame(hostile, "model", "", (Evidence("content", hostile),), hostile)
    page = render_blame(verdict, hostile)
    assert "<script" not in page
    assert "\x1b" not in page
    assert "\u202e" not in page


def test_there_is_nothing_to_show_where_nothing_broke() -> None:
    assert render_blame(Blame(), RAW) == ""
    # A place outside the text is told in words.
    far = Blame("So.", "model", "", (Evidence("raw", "there", 100, 105),))
    assert "there" in render_blame(far, RAW)
