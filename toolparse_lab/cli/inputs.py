"""Inputs of the verbs: a text as it was written, from a file, standard input or the command line.
Tools as JSON.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

from ..core.errors import BadToolSpec, UnreadableInput
from .output import say

# What the name of a file seldom holds, and an answer with a call nearly always does.
_PASTED = re.compile(r"[<{\n]|\A\s*\[|\w\([^)]*=.*\)\s*\Z", re.S)
# A character beyond ASCII as UTF-8 has it: bytes in another encoding hardly ever look like one.
_MULTIBYTE = re.compile(rb"[\xc3-\xf4][\x80-\xbf]+")
_CUT_CHARACTER = re.compile(rb"[\xc2-\xf4][\x80-\xbf]{0,2}\Z")
# What no text holds.
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")


def read_text(name: str) -> str:
    """Return a text as it was written, whatever bytes it holds.

    name: a file, `-` for standard input, or, if there is no such file and it looks like one, the
    text itself. Anything that was understood otherwise than it was said goes to standard error.
    Raises UnreadableInput.
    """
    if name == "-":
        return _decoded(_standard_input(), "standard input")
    if looks_pasted(name):
        say("toolparse: there is no file of this name, so the argument is read as the text itself")
        return name
    try:
        content = Path(name).read_bytes()
    except OSError as e:
        raise UnreadableInput(f"{name}: {e.strerror or e}") from None
    except ValueError:  # a NUL
        raise UnreadableInput("this is no name of a file", got=ascii(name)) from None
    return _decoded(content, name)


def looks_pasted(name: str) -> bool:
    """Return True if there is no file of this name, and it looks like a text with a call."""
    return _PASTED.search(name) is not None and not os.path.lexists(name)


def _standard_input() -> bytes:
    """Everything on standard input. Raises UnreadableInput if it is closed."""
    if sys.stdin is None or sys.stdin.closed:
        raise UnreadableInput(
            "standard input is closed", hint="name a file, or pipe the text into the command"
        )
    if sys.stdin.isatty():
        say("toolparse: paste the text; Ctrl-D on a line of its own ends it")
    try:
        return sys.stdin.buffer.read()
    except OSError as e:
        raise UnreadableInput(f"standard input: {e.strerror or e}") from None


def _decoded(content: bytes, name: str) -> str:
    """Bytes as text: UTF-8, else what they look like, which is said."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as e:
        place = f"{name} is not UTF-8 (byte {e.start})"
    encoding = _guessed(content)
    if encoding is not None:
        say(f"toolparse: {place}; guessed and read as {encoding}")
        return content.decode(encoding)
    say(f"toolparse: {place}; such bytes are kept, and shown as \\udc80 to \\udcff")
    # They become lone surrogates, which the parser takes as they are.
    return content.decode("utf-8", "surrogateescape")


def _guessed(content: bytes) -> str | None:
    """Return the encoding that bytes look like that are not UTF-8.

    None for damaged UTF-8, and no text.
    """
    if content.startswith((b"\xff\xfe", b"\xfe\xff")) and b"\x00" in content:
        return _that_reads(content, "utf-16")
    # An answer that was cut off may end inside a character.
    if _MULTIBYTE.search(content) or _CONTROL.search(content):
        return None
    cut = _CUT_CHARACTER.search(content)
    if cut is not None and content[: cut.start()].isascii():
        return None
    return _that_reads(content, "windows-1252")


def _that_reads(content: bytes, encoding: str) -> str | None:
    """Return the encoding, None if it does not read these bytes."""
    try:
        content.decode(encoding)
    except UnicodeDecodeError:
        return None
    return encoding


def read_tools(name: str | None) -> Any:
    """Return the tools of a JSON file, or of JSON on the command line.

    None for no file.

    Raises BadToolSpec and UnreadableInput.
    """
    if name is None:
        return None
    label = name if len(name) <= 80 else f"{name[:77]}..."
    try:
        return json.loads(read_text(name))
    except RecursionError:
        raise BadToolSpec("the tools are nested deeper than any schema", got=label) from None
    except ValueError as e:
        raise BadToolSpec(
            "the tools file is no JSON",
            got=f"{label}: {e}",
            expected="a list of tools",
            hint='write each as {"name": "f", "parameters": {…}}, as in the "tools" of a request',
        ) from None
