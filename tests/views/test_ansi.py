"""The terminal view: highlights of our own, and no escape sequence of the model's."""

from __future__ import annotations

import dataclasses
import re
from typing import get_args

import pytest

from tests.render_samples import HOSTILE, example, hostile, plain, several
from tests.tables import asked_of, each_case
from toolparse_lab.core.errors import BadOptions
from toolparse_lab.core.types import Span
from toolparse_lab.views import render_ansi
from toolparse_lab.views.ansi import AnsiStyle
from toolparse_lab.views.show import HIDDEN, name_of, one_line, shorten, visible

OURS = re.compile(r"\x1b\[[\d;]*m")


def test_without_colour_the_marks_are_brackets() -> None:
    assert render_ansi(example(), color=False) == (
        "✓ repaired (lossless)  hermes  1 call  62 characters  policy safe\n\n"
        '[opener|<tool_call>]{"name": "[name|f]", "arguments": {"a": '
        '"[coerced|1]"[edit|,]}}[closer|</tool_call>]\n\n'
        "call 0  f  ✓ repaired (lossless)  characters 0 to 62\n"
        "  a: 1  45–46\n"
        "  repair characters 47 to 48: , dropped  rjson.trailing-comma\n"
        '  coerce /a: "1" → 1  coerce.integer-from-string'
    )


@asked_of("style", get_args(AnsiStyle))
def test_every_style_shows_the_whole_text(style: AnsiStyle) -> None:
    text = render_ansi(several(), style)
    assert "\x1b[" in text
    stripped = OURS.sub("", text)
    assert visible(several().raw).replace("5</tool", "5‸</tool") in stripped
    assert "(lossy)" in stripped
    assert "✗ refused (unknown tool)" in stripped


@pytest.mark.parametrize("color", [True, False])
@asked_of("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_no_control_character_of_the_model_gets_through(text: str, color: bool) -> None:
    out = render_ansi(hostile(text), color=color)
    rest = OURS.sub("", out) if color else out
    assert not HIDDEN.search(rest)
    out.encode("utf-8")


def test_a_highlight_ends_before_the_line_does() -> None:
    raw = "<think>a\nb</think>"
    result = plain(raw)
    segment = several().segments[0]
    segment = dataclasses.replace(segment, span=Span(0, len(raw)), body=Span(7, 10))
    out = render_ansi(dataclasses.replace(result, segments=(segment,)))
    assert "\x1b[3ma\x1b[0m\n\x1b[3mb\x1b[0m" in out


def test_long_text_is_cut_in_the_middle() -> None:
    out = render_ansi(plain("x" * 100_000))
    assert len(out) < 40_000
    assert "characters not shown" in out


def test_unknown_style() -> None:
    with pytest.raises(BadOptions, match="unknown highlight style"):
        render_ansi(example(), "blink")  # type: ignore[arg-type]


# Visible text.


@each_case
def test_visible(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_names() -> None:
    assert name_of("\u202e") == "U+202E RIGHT-TO-LEFT OVERRIDE"
    assert name_of("\x1b") == "U+001B ESC"
    assert name_of("\ud83d") == "U+D83D lone surrogate"


def test_shortened_text_says_how_much_is_left_out() -> None:
    assert shorten("x" * 100, 100) == "x" * 100
    assert shorten("a" * 1000 + "z", 60).startswith("a" * 40 + "… 941 more …")
    assert shorten("a" * 1000 + "z", 60).endswith("z")
    assert one_line("a\nb\tc") == "a⏎b⇥c"


def test_no_hidden_character_is_printable() -> None:
    """What `visible` takes its short way by."""
    hidden = HIDDEN.findall("".join(map(chr, range(0x110000))))
    assert len(hidden) > 2_000
    assert not any(char.isprintable() for char in hidden)
