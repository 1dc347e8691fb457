"""Body family: calls written as Python, `f(a=1, b="x")`, alone, in a list, or one a line.

They are read, never evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...errors import UnwritableCall
from ...toolspec import ToolSpec
from ...values import Value, read_strict
from ..base import Codec, Decoded, Message, Reading
from ..json.call import JsonCall
from .reader import NAME, PythonReader

# Bounded, as what may become one has to be.
HEAD = re.compile(r"\[\s{0,40}(?:[^\W\d]|\\_)(?:[\w.]|\\_){0,200}\s{0,40}\(")
_JSON = re.compile(r"\s*+(?:\[\s*+)?\{")
_FENCE = re.compile(
    r"\s*+```[a-z_]{0,16}[ \t]*+\r?\n(?P<inside>.*?)(?:\r?\n)?[ \t]*+```\s*+\Z", re.DOTALL
)


def read_calls(body: str, reading: Reading, json_words: bool = False) -> tuple[Decoded, ...]:
    """Return every call of a body: a list of calls, or calls one behind the other.

    json_words: see `PythonReader`. Raises Refusal.
    """
    fence = _FENCE.match(body)
    reader = PythonReader(body[: fence.end("inside")] if fence else body, reading, json_words)
    reader.pos = fence.start("inside") if fence else 0
    calls: list[Decoded] = []
    # Models leave the list out, above all around one call.
    if reader.skip() == "[":
        reader.pos += 1
        calls += reader.statements("]")
        reader.pos += 1
    else:
        while reader.skip():
            calls.append(reader.statement())
            if reader.skip() in (",", ";"):
                reader.pos += 1

    if reader.skip():
        raise reader.fail("something stands behind the calls")
    return tuple(calls)


@dataclass(frozen=True, slots=True)
class PythonCalls(Codec):
    """Codec: `[f(a=1), g(b="x")]` between `opener` and `closer`.

    Both are empty for the format without delimiters. in_list: calls are written as a list, else one
    a line. `between` stands between two of them then. json_words: JSON's words for true, false and
    null are those of the format.
    """

    opener: str = ""
    closer: str = ""
    in_list: bool = True
    between: str = "\n"
    json_words: bool = False

    def read(self, body: str, reading: Reading) -> tuple[Decoded, ...]:
        """Return the calls of a body, which may be JSON where delimiters are around it.

        Raises Refusal.
        """
        if self.opener and _JSON.match(body):
            return JsonCall(self.opener, self.closer).read(body, reading)
        # An empty list between delimiters says that there is nothing to call.
        return read_calls(body, reading, self.json_words) or Message((), ())

    @property
    def _edges(self) -> tuple[str, str]:
        """(text before the first call of an answer, text behind the last)."""
        start, end = ("[", "]") if self.in_list else ("", "")
        return self.opener + start, end + self.closer

    def write(self, name: str, arguments_json: str, tool: ToolSpec | None) -> str:
        """Return one call, in a list where the format has one.

        Raises UnwritableCall for names that are none in Python, and for values too deep.
        """
        arguments = read_strict(arguments_json)
        sound = NAME.fullmatch(name) and all(_KEY.fullmatch(key) for key in arguments)
        if not sound:
            raise UnwritableCall("a name that Python cannot write", got=name)

        words = _JSON_WORDS if self.json_words else _PYTHON_WORDS
        pairs = [f"{key}={_literal(value, words)}" for key, value in arguments.items()]
        start, end = self._edges
        return f"{start}{name}({', '.join(pairs)}){end}"

    def join(self, calls: Sequence[str]) -> str:
        """Return calls of one answer between the same delimiters: a second list would be text."""
        start, end = self._edges
        inner = [call[len(start) : len(call) - len(end)] for call in calls]
        return f"{start}{(', ' if self.in_list else self.between).join(inner)}{end}"


_KEY = re.compile(r"[^\W\d]\w*")


# By repr, as two of them are equal to numbers.
_PYTHON_WORDS = {"True": "True", "False": "False", "None": "None"}
_JSON_WORDS = {"True": "true", "False": "false", "None": "null"}


def _literal(value: Value, words: Mapping[str, str], depth: int = 0) -> str:
    """Return a value as Python writes it.

    Raises UnwritableCall for one that nests too deep.

    words: of the format for True, False and None.
    """
    if depth > 150:
        raise UnwritableCall("nested too deep for a Python literal")
    if isinstance(value, str):
        return repr(value)
    if isinstance(value, dict):
        members = [
            f"{key!r}: {_literal(member, words, depth + 1)}" for key, member in value.items()
        ]
        return "{" + ", ".join(members) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_literal(item, words, depth + 1) for item in value) + "]"
    if value is None or isinstance(value, bool):
        return words[repr(value)]
    # Numbers that are more than a float keep the text that they were read from.
    return getattr(value, "text", None) or repr(value)
