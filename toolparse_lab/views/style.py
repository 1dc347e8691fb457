"""The palette of marks and terminals, and the looks of marks as inline styles: untrusted notebooks
drop style sheets, ids and data attributes, but keep `style`, `class`, `title`.

Tints of the Okabe–Ito colours at low opacity read on light and dark alike, text keeps the page's
own colour, and every kind has an underline of its own, so that colour is never the only carrier.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

BLUE, SKY, GREEN = "#0072b2", "#56b4e9", "#009e73"
ORANGE, YELLOW, VERMILLION = "#e69f00", "#f0e442", "#d55e00"
PURPLE, GREY = "#cc79a7", "#7f7f7f"


def tint(rgb: str, opacity: float) -> str:
    """Return a colour that lets its background through.

    >>> tint("#7f7f7f", 0.2)
    '#7f7f7f33'
    """
    return f"{rgb}{round(255 * opacity):02x}"


@dataclass(frozen=True, slots=True)
class Look:
    """How marks of a kind look: on a page, on a terminal, and in a legend."""

    color: str
    opacity: float = 0.09  # of the background
    line: str = ""  # CSS of the border below, "" for none
    terminal: str = ""  # codes of "select graphic rendition", "" for no highlight
    word: str = ""  # in a legend, "" for none
    more: str = ""  # further declarations of CSS

    @property
    def css(self) -> str:
        """The inline style.

        >>> Look("#000000", 0.5, "1px dashed").css
        'background-color:#00000080;border-bottom:1px dashed'
        """
        line = f";border-bottom:{self.line}" if self.line else ""
        return f"background-color:{tint(self.color, self.opacity)}{line}{self.more}"


# Kind of mark -> its look, those of the legend in its order. The terminal has backgrounds of the
# 256-colour cube with a black or white foreground that reads on each. What is around all of a call
# has none there: no text would be left without a colour.
MARKS: Mapping[str, Look] = {
    "name": Look(BLUE, 0.26, "2px solid #2e8bc0", "48;5;25;38;5;231", "tool name"),
    "argument": Look(GREEN, 0.22, f"2px dotted {GREEN}", "48;5;29;38;5;231", "argument"),
    "coerced": Look(ORANGE, 0.30, f"3px double {ORANGE}", "48;5;214;38;5;16", "argument, coerced"),
    "edit": Look(YELLOW, 0.36, "2px dashed #b89600", "48;5;227;38;5;16", "repaired"),
    "problem": Look(
        VERMILLION,
        0.24,
        f"2px solid {VERMILLION}",
        "48;5;166;38;5;231",
        "problem",
        f";border-top:2px solid {VERMILLION}",
    ),
    "opener": Look(PURPLE, 0.20, f"1px solid {PURPLE}", "48;5;182;38;5;16", "opener, closer"),
    "recovered": Look(PURPLE, 0.12, f"1px dashed {PURPLE}", word="recovered"),
    "unclosed": Look(VERMILLION, 0.12, f"1px dashed {VERMILLION}", word="not closed"),
    "reasoning": Look(SKY, 0.1, terminal="3", word="reasoning", more=";font-style:italic"),
    "markup": Look(GREY, terminal="2", word="markup", more=";opacity:0.75"),
    "closer": Look(PURPLE, 0.20, f"1px solid {PURPLE}", "48;5;182;38;5;16"),
    "call": Look(GREY),
}
# Verdict or severity -> its sign, its colour, and that of a terminal.
VERDICTS: Mapping[str, tuple[str, str, str]] = {
    "none": ("·", GREY, "2"),
    "clean": ("✓", GREEN, "32"),
    "repaired (lossless)": ("✓", GREEN, "32"),
    "repaired (lossy)": ("!", ORANGE, "33"),
    "unchecked": ("?", ORANGE, "33"),
    "invalid": ("✗", VERMILLION, "31"),
    "refused": ("✗", VERMILLION, "31"),
    "truncated": ("…", ORANGE, "33"),
    "echoed": ("»", VERMILLION, "31"),
}
SEVERITIES: Mapping[str, tuple[str, str, str]] = {
    "error": ("✗", VERMILLION, "31"),
    "warning": ("!", ORANGE, "33"),
    "info": ("i", SKY, "36"),
}
INVISIBLE = f"border:1px solid {tint(GREY, 0.6)};border-radius:3px;font-size:85%;opacity:0.85"
