"""What the middleware shows of its work: `DEBUG_PARSER_MW` says how much, `DEBUG_PARSER_MW_STYLE` how calls stand out.

Everything goes to the logger `toolparse_lab.middleware`, and to stderr where no handler is installed. What models and
providers say is written with its control characters made visible, so that it cannot act on the terminal.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from ..render.show import visible

Level: TypeAlias = Literal["off", "stream", "parse"]
Style: TypeAlias = Literal["bg", "inverse", "underline", "bold"]

LEVEL_VARIABLE: Final = "DEBUG_PARSER_MW"
STYLE_VARIABLE: Final = "DEBUG_PARSER_MW_STYLE"
LOGGER: Final = logging.getLogger("toolparse_lab.middleware")

_YES = ("1", "true", "yes")
_LEVELS: Mapping[str, Level] = {"stream": "stream", "parse": "parse", "2": "parse"}
_STYLES: Mapping[str, Style] = {
    "inverse": "inverse", "invert": "inverse", "underline": "underline", "ul": "underline", "bold": "bold",
}  # fmt: skip
_STYLE_CODES: Mapping[Style, int] = {"bg": 42, "inverse": 7, "underline": 4, "bold": 1}
_GRAY, _YELLOW, _CYAN, _BLUE = 90, 33, 36, 44
_LINE = re.compile(r"\r?\n")


def level_of(value: str | None) -> Level:
    """The level that a value of `DEBUG_PARSER_MW` asks for; whatever is not known is 'off'.

    >>> level_of("yes"), level_of("2"), level_of("loud"), level_of(None)
    ('stream', 'parse', 'off', 'off')
    """
    word = (value or "off").lower()
    return "stream" if word.strip() in _YES else _LEVELS.get(word, "off")


def style_of(value: str | None) -> Style:
    """The highlight that a value of `DEBUG_PARSER_MW_STYLE` asks for; whatever is not known is 'bg'.

    >>> style_of("invert"), style_of("ul"), style_of("neon")
    ('inverse', 'underline', 'bg')
    """
    return _STYLES.get((value or "").strip().lower(), "bg")


def debug_level() -> Level:
    """The level that the environment asks for now."""
    return level_of(os.environ.get(LEVEL_VARIABLE))


def render_summary(original_text: str, tool_calls: Sequence[Any], style: Style = "bg") -> list[str]:
    """What level 'parse' logs: the text that was read as calls, line by line highlighted, then the calls as JSON.

    Either is left out where it is empty.
    """
    lines: list[str] = []
    if original_text:
        lines.append(_tagged("origin", "\n" + _painted(original_text, _STYLE_CODES[style])))
    if tool_calls:
        lines.append(_tagged("summary", "\n" + _painted(_json(tool_calls), _BLUE)))
    return lines


def log_raw(said: str) -> None:
    """What the provider said: a chunk of a stream, or the whole text."""
    _log(_tagged("raw", _color("\n" + _shown(said), _YELLOW)))


def log_out(made: Any) -> None:
    """What became of it: a delta, or the message."""
    _log(_tagged("out", _color("\n" + _shown(_json(made)), _CYAN)))


def log_summary(original_text: str, tool_calls: Sequence[Any]) -> None:
    """The lines of `render_summary` in the style that the environment asks for."""
    for line in render_summary(original_text, tool_calls, style_of(os.environ.get(STYLE_VARIABLE))):
        _log(line)


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def _shown(text: str) -> str:
    return "\n".join(map(visible, _LINE.split(text)))


def _painted(text: str, code: int) -> str:
    return "\n".join(_color(visible(line), code) if line else "" for line in _LINE.split(text))


def _color(text: str, code: int) -> str:
    return f"\x1b[{code}m{text}\x1b[0m"


def _tagged(tag: str, text: str) -> str:
    return f"{_color(f'[debug:mw:{tag}]', _GRAY)} {text}"


class _ToStderr(logging.Handler):
    """Writes to what stderr is at the time, as notebooks and tests replace it."""

    def emit(self, record: logging.LogRecord) -> None:
        print(self.format(record), file=sys.stderr)


def _log(text: str) -> None:
    if not LOGGER.hasHandlers():
        LOGGER.addHandler(_ToStderr())
    if LOGGER.level == logging.NOTSET:  # who sets the variable wants to see it, whatever the root logger's level
        LOGGER.setLevel(logging.DEBUG)
    LOGGER.debug("%s", text)
