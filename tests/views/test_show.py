"""Visible text, and offsets from code points to UTF-16."""

from __future__ import annotations

import pytest

from tests.render_samples import HOSTILE
from tests.tables import each_case
from toolparse_lab.views.show import HIDDEN, Shown, name_of, one_line, shorten, visible


@each_case
def test_visible(text: str, shown: str) -> None:
    assert visible(text) == shown


def utf16(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


@pytest.mark.parametrize(
    "text", ["", "a😀b", "😀😀\x1b\x1b😀", "a\ud83db\U000e0041c", *HOSTILE.values()]
)
def test_offsets_are_utf16_units_of_the_shown_text(text: str) -> None:
    shown = Shown.of(text)
    assert shown.text == visible(text)
    assert [shown.at(i) for i in range(len(text) + 1)] == [
        utf16(visible(text[:i])) for i in range(len(text) + 1)
    ]
    units = shown.text.encode("utf-16-le")
    pairs = list(zip(shown.hidden[::2], shown.hidden[1::2], strict=True))
    signs = "".join(units[2 * a : 2 * b].decode("utf-16-le") for a, b in pairs)
    assert signs == "".join(visible(c) for c in text if HIDDEN.match(c))


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
