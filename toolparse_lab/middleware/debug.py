"""The middleware's log of its own work: `DEBUG_PARSER_MW` says how much of it, and
`DEBUG_PARSER_MW_STYLE` how calls stand out.

Everything goes to the logger `toolparse_lab.middleware`, and to stderr where no handler is
installed. Anything that models and providers say is written with its control characters made
visible, so that it cannot act on the terminal.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from ..views.show import visible
from .answer import Answer

Level: TypeAlias = Literal["off", "stream", "parse"]
Style: TypeAlias = Literal["bg", "inverse", "underline", "bold"]

LEVEL_VARIABLE: Final = "DEBUG_PARSER_MW"
STYLE_VARIABLE: Final = "DEBUG_PARSER_MW_STYLE"
LOGGER: Final = logging.getLogger("toolparse_lab.middleware")

_YES = ("1", "true", "yes")
_LEVELS: Mapping[str, Level] = {"stream": "stream", "parse": "parse", "2": "parse"}
_STYLES: Mapping[str, Style] = {
    "inverse": "inverse", "invert": "inverse", "underline": "underline", "ul": "underline",
    "bold": "bold",
}  # fmt: skip
_STYLE_CODES: Mapping[Style, int] = {"bg": 42, "inverse": 7, "underline": 4, "bold": 1}
# Codes of ANSI escape sequences; the last is a background.
_GRAY, _YELLOW, _CYAN, _BLUE = 90, 33, 36, 44
_LINE = re.compile(r"\r?\n")


def level_of(value: str | None) -> Level:
    """Return the level that a value of `DEBUG_PARSER_MW` asks for.

    Whatever is unknown is 'off'.

    >>> level_of("yes"), level_of("2"), level_of("loud"), level_of(None)
    ('stream', 'parse', 'off', 'off')
    """
    word = (value or "off").lower()
    return "stream" if word.strip() in _YES else _LEVELS.get(word, "off")


def style_of(value: str | None) -> Style:
    """Return the highlight that a value of `DEBUG_PARSER_MW_STYLE` asks for.

    Whatever is unknown is 'bg'.

    >>> style_of("invert"), style_of("ul"), style_of("neon")
    ('inverse', 'underline', 'bg')
    """
    return _STYLES.get((value or "").strip().lower(), "bg")


def debug_level() -> Level:
    """Return the level that the environment asks for now, since a program can change it."""
    return level_of(os.environ.get(LEVEL_VARIABLE))


def render_summary(original_text: str, tool_calls: Sequence[Any], style: Style = "bg") -> list[str]:
    """Return the lines that level 'parse' logs: the text read as calls, highlighted line by line,
    then the calls as JSON. Either drops out where it is empty.
    """
    lines: list[str] = []
    if original_text:
        lines.append(_tagged("origin", "\n" + _painted(original_text, _STYLE_CODES[style])))
    if tool_calls:
        lines.append(_tagged("summary", "\n" + _painted(_json(tool_calls), _BLUE)))
    return lines


def log_raw(text: str) -> None:
    """Log what the provider gave: a chunk of a stream, or the whole text."""
    _log(_tagged("raw", _color("\n" + _visible_lines(text), _YELLOW)))


def log_out(output: Any) -> None:
    """Log what became of it: a delta, or the message."""
    _log(_tagged("out", _color("\n" + _visible_lines(_json(output)), _CYAN)))


def log_answer(answer: Answer, level: Level, summary: MutableMapping[str, str] | None) -> None:
    """Fill the caller's `summary` with the calls of an answer; without one, log them at 'parse'."""
    if summary is None and level != "parse":
        return
    calls = [
        {"toolName": c["function"]["name"], "input": c["function"]["arguments"]}
        for c in answer.tool_calls
    ]
    if summary is not None:
        summary["original_text"] = answer.original_text
        summary["tool_calls"] = json.dumps(calls, separators=(",", ":"), ensure_ascii=False)
        return
    style = style_of(os.environ.get(STYLE_VARIABLE))
    for line in render_summary(answer.original_text, calls, style):
        _log(line)


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def _visible_lines(text: str) -> str:
    # A model or a provider may write escape sequences.
    return "\n".join(map(visible, _LINE.split(text)))


def _painted(text: str, code: int) -> str:
    # Line by line, because terminals end a background at the line's end. Empty lines stay empty.
    return "\n".join(_color(visible(line), code) if line else "" for line in _LINE.split(text))


def _color(text: str, code: int) -> str:
    return f"\x1b[{code}m{text}\x1b[0m"


def _tagged(tag: str, text: str) -> str:
    return f"{_color(f'[debug:mw:{tag}]', _GRAY)} {text}"


class _ToStderr(logging.Handler):
    # The stderr of the moment, as notebooks and tests replace it.
    def emit(self, record: logging.LogRecord) -> None:
        print(self.format(record), file=sys.stderr)


def _log(text: str) -> None:
    if not LOGGER.hasHandlers():
        LOGGER.addHandler(_ToStderr())
    # Who sets the variable wants to see it, whatever the root logger's level.
    if LOGGER.level == logging.NOTSET:
        LOGGER.setLevel(logging.DEBUG)
    LOGGER.debug("%s", text)
