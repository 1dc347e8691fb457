"""The constants of a format of bare objects."""

from __future__ import annotations

import re
from dataclasses import dataclass

HEAD = "call:"
"""What every call of the family begins with."""
TAG = "<call>"
"""What models write for it where they know the delimiters as tags."""

CALL = re.compile(
    rf"(?P<head>{HEAD}|{TAG})[ \t]{{0,8}}+(?P<name>[\w.:/-]{{1,128}}+)\s{{0,8}}+(?P<open>[{{(])"
)
# Behind the opener the word may be missing, and so may the object of a call without arguments.
CALL_IN_BLOCK = re.compile(
    rf"(?P<head>{HEAD}|{TAG}|:)?+[ \t]{{0,8}}+(?P<name>[\w.:/-]{{1,128}}+)\s{{0,8}}+"
    r"(?P<open>[{(]|\Z)"
)
CALL_SO_FAR = re.compile(rf"(?:{HEAD}|{TAG})[ \t]{{0,8}}+(?:[\w.:/-]{{1,128}}+\s{{0,8}}+)?\Z")
# What stands before a name where a model calls through the module of its tools.
MODULES = ("default_api.", "default_api:", "functions.", "tools.")


@dataclass(frozen=True, slots=True)
class BareForm:
    """opener, closer: around a call. quote: around a text, without any escape inside.

    ends: special tokens that end an answer, before which a call that is not closed ends.
    """

    opener: str
    closer: str
    quote: str
    ends: tuple[str, ...] = ()
