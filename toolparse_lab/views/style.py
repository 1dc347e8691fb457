"""Inline styles.

Untrusted notebooks drop style sheets, ids and data attributes, but keep `style`, `class`, `title`.

Tints of the Okabe–Ito colours at low opacity read on light and dark alike, text keeps the page's
own colour, and every kind has an underline of its own, so that colour is never the only carrier.
"""

from __future__ import annotations

from .marks import Mark

MONO = "font-family:ui-monospace,monospace"
BLUE, SKY, GREEN, ORANGE, YELLOW, VERMILLION, PURPLE, GREY = (
    "#0072b2",
    "#56b4e9",
    "#009e73",
    "#e69f00",
    "#f0e442",
    "#d55e00",
    "#cc79a7",
    "#7f7f7f",
)


def tint(rgb: str, opacity: float) -> str:
    """Return a colour that lets its background through.

    >>> tint("#7f7f7f", 0.2)
    '#7f7f7f33'
    """
    return f"{rgb}{round(255 * opacity):02x}"


LINE = tint(GREY, 0.35)
FAINT = tint(GREY, 0.09)


def _underlined(rgb: str, opacity: float, line: str) -> str:
    """Return the style of a background in a colour, with an underline of the form of a border.

    >>> _underlined("#000000", 0.5, "1px dashed")
    'background-color:#00000080;border-bottom:1px dashed'
    """
    return f"background-color:{tint(rgb, opacity)};border-bottom:{line}"


KINDS: dict[str, str] = {
    "call": f"background-color:{FAINT}",
    "recovered": _underlined(PURPLE, 0.12, f"1px dashed {PURPLE}"),
    "unclosed": _underlined(VERMILLION, 0.12, f"1px dashed {VERMILLION}"),
    "reasoning": f"background-color:{tint(SKY, 0.1)};font-style:italic",
    "markup": f"background-color:{FAINT};opacity:0.75",
    "opener": _underlined(PURPLE, 0.20, f"1px solid {PURPLE}"),
    "closer": _underlined(PURPLE, 0.20, f"1px solid {PURPLE}"),
    "name": _underlined(BLUE, 0.26, "2px solid #2e8bc0"),
    "argument": _underlined(GREEN, 0.22, f"2px dotted {GREEN}"),
    "coerced": _underlined(ORANGE, 0.30, f"3px double {ORANGE}"),
    "edit": _underlined(YELLOW, 0.36, "2px dashed #b89600"),
    "problem": _underlined(VERMILLION, 0.24, f"2px solid {VERMILLION}")
    + f";border-top:2px solid {VERMILLION}",
}
INSERTION = f"border-left:3px solid {VERMILLION};background-color:{tint(YELLOW, 0.5)};margin:0 1px"
DROPPED = ";text-decoration:line-through"
INVISIBLE = f"border:1px solid {tint(GREY, 0.6)};border-radius:3px;font-size:85%;opacity:0.85"

LEGEND = (
    ("name", "tool name"),
    ("argument", "argument"),
    ("coerced", "argument, coerced"),
    ("edit", "repaired"),
    ("problem", "problem"),
    ("opener", "opener, closer"),
    ("recovered", "recovered"),
    ("unclosed", "not closed"),
    ("reasoning", "reasoning"),
    ("markup", "markup"),
)

BADGE = (
    "display:inline-block;border-radius:9px;padding:0 8px;margin:0 6px 0 0;font-size:11px;"
    "font-weight:600"
)
# Verdict -> its sign and its colour.
VERDICT: dict[str, tuple[str, str]] = {
    "none": ("·", GREY),
    "clean": ("✓", GREEN),
    "repaired (lossless)": ("✓", GREEN),
    "repaired (lossy)": ("!", ORANGE),
    "invalid": ("✗", VERMILLION),
    "refused": ("✗", VERMILLION),
    "truncated": ("…", ORANGE),
    "echoed": ("»", VERMILLION),
}
SEVERITY: dict[str, tuple[str, str]] = {
    "error": ("✗", VERMILLION),
    "warning": ("!", ORANGE),
    "info": ("i", SKY),
}

BOX = f"border:1px solid {LINE};border-radius:6px;padding:8px 10px;margin:6px 0"
RAW = (
    f"{MONO};font-size:12.5px;line-height:1.75;"
    "white-space:pre-wrap;overflow-wrap:anywhere;word-break:break-word;"
    f"max-height:420px;overflow:auto;background-color:{tint(GREY, 0.05)}"
)
# A notebook's own table styles stripe, right-align and centre: each is overridden where it would
# apply.
TABLE = (
    "border-collapse:collapse;margin:4px 0;width:100%;min-width:480px;font-size:12.5px;"
    "table-layout:fixed"
)
# Around a table, which would otherwise break its words in a narrow column. What all cells inherit
# stands here once.
WIDE = "overflow-x:auto;overflow-wrap:anywhere;word-break:break-word"
ROW = f"background-color:transparent;border-bottom:1px solid {LINE}"
CELL = "text-align:left;vertical-align:top;padding:3px 10px 3px 4px"
HEAD = CELL + ";font-weight:600;font-size:11px"
VALUE = f"{MONO};white-space:pre-wrap"
BEFORE = f"{VALUE};background-color:{tint(VERMILLION, 0.16)};text-decoration:none"
AFTER = f"{VALUE};background-color:{tint(GREEN, 0.2)};text-decoration:none;font-weight:600"
DIM = "opacity:0.75"
TITLE = "font-weight:600;font-size:12px;margin:10px 0 2px 0"


def style_of(mark: Mark) -> str:
    """Return the style of a mark's kind.

    An argument that was coerced has one of its own.
    """
    kind = "coerced" if mark.coerced else mark.kind
    return KINDS[kind]


def constant(name: str) -> str:
    """Return the constant of this name, for the templates.

    Raises KeyError for a name that this module has not, or that is not a string.
    """
    value = globals()[name]
    if not isinstance(value, str):
        raise KeyError(name)
    return value
