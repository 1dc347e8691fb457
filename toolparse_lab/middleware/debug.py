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
    """Return the level that the environment asks for now.

    It is looked up each time, so that a program can change it while it runs.
    """
    return level_of(os.environ.get(LEVEL_VARIABLE))


def render_summary(original_text: str, tool_calls: Sequence[Any], style: Style = "bg") -> list[str]:
    """Return the lines that level 'parse' logs: the text read as calls, highlighted line by line,
    then the calls as JSON.

    Either drops out where it is empty.

    original_text: the pieces of the text read as calls.
    tool_calls: the calls, as anything JSON can carry.
    style: the highlight of the text. The calls always have a blue background.
    """
    lines: list[str] = []
    if original_text:
        lines.append(_tagged("origin", "\n" + _painted(original_text, _STYLE_CODES[style])))

    if tool_calls:
        lines.append(_tagged("summary", "\n" + _painted(_json(tool_calls), _BLUE)))

    return lines


def log_raw(text: str) -> None:
    """Log the words that the provider said: a chunk of a stream, or the whole text.

    text: as it came, before anything was read from it.
    """
    _log(_tagged("raw", _color("\n" + _visible_lines(text), _YELLOW)))


def log_out(output: Any) -> None:
    """Log the outcome of it: a delta, or the message.

    output: anything JSON can carry. The rest is shown as text.
    """
    _log(_tagged("out", _color("\n" + _visible_lines(_json(output)), _CYAN)))


def log_answer(answer: Answer, level: Level, summary: MutableMapping[str, str] | None) -> None:
    """Fill the caller's `summary` with the calls of an answer.

    Without one, log them at level 'parse'.

    answer: a finished answer, whole or from a stream.
    level: of the log, as the environment asks for it.
    summary: the caller's own mapping, None if no one wants one.
    """
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
    """Return JSON for people to read.

    A value that JSON cannot carry is shown as text.

    >>> _json([])
    '[]'
    """
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def _visible_lines(text: str) -> str:
    """Return the text with control characters made visible, its line breaks kept.

    text: of a model or a provider, which may hold escape sequences.
    """
    return "\n".join(map(visible, _LINE.split(text)))


def _painted(text: str, code: int) -> str:
    """Return the text in one colour, line by line: terminals end a background at the line's end.

    code: of an ANSI escape sequence. Empty lines stay empty, without a coloured stump.
    """
    return "\n".join(_color(visible(line), code) if line else "" for line in _LINE.split(text))


def _color(text: str, code: int) -> str:
    """Return the text between an escape sequence and the one that ends it.

    code: a number of an ANSI escape sequence, as those at the top of this file.
    """
    return f"\x1b[{code}m{text}\x1b[0m"


def _tagged(tag: str, text: str) -> str:
    """Return the text behind its gray tag.

    tag: a word that names the kind of the line, such as 'raw'.
    """
    return f"{_color(f'[debug:mw:{tag}]', _GRAY)} {text}"


class _ToStderr(logging.Handler):
    """Writes to the stderr of the moment, as notebooks and tests replace it."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one record."""
        print(self.format(record), file=sys.stderr)


def _log(text: str) -> None:
    """Log a text, to stderr where the program has set up no logging.

    text: one record, which may have several lines.
    """
    if not LOGGER.hasHandlers():
        LOGGER.addHandler(_ToStderr())

    # Who sets the variable wants to see it, whatever the root logger's level.
    if LOGGER.level == logging.NOTSET:
        LOGGER.setLevel(logging.DEBUG)

    LOGGER.debug("%s", text)
