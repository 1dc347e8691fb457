"""Visible text."""

from __future__ import annotations

from tests.tables import each_case
from toolparse_lab.views.show import HIDDEN, name_of, one_line, shorten, visible


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
