"""Headers of calls as templates: literals around the name of the tool and the id of the call.

    [TOOL_CALLS]{name}[CALL_ID]{id}[ARGS]

`{name}` and `{id}` stand for a word, `{any}` for the rest of a line up to the text after it, `{ }`
for white space that may be there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from ...core.types import Span
from ..base import NEED_MORE, Answer, make_opening

# How it works: a header is read part by part, without going back, so that it is known at each
# character whether more text can still complete it. White space and words are bounded: a header
# that is longer than any is text.


_PART = re.compile(r"(\{name\}|\{id\}|\{any\}|\{ \})")
_SPACE = re.compile(r"\s{0,64}")
# A dot or a slash is in the names of tools that come from a server or a module.
_WORD = re.compile(r"[\w./:@+-]{1,256}")
_SIMPLE_WORD = re.compile(r"[\w./@+-]{1,256}")
_REST = re.compile(r"[^<>{}\[\]\n]{0,64}")
# What a model writes for a name where it calls nothing: `Action: None`.
NO_TOOL_WORDS = ("None", "none", "NONE", "null", "N/A", "n/a", "NA")
NO_TOOL = rf"(?!(?:{'|'.join(NO_TOOL_WORDS)})(?![\w./:@+-]))"
_PATTERNS = {"{ }": _SPACE, "{name}": _WORD, "{id}": _WORD, "{any}": _REST}
_WORDS = ("{name}", "{id}")
_NO_END = ".:/@+"  # no tool's name ends with one of these: `Here:` begins a sentence
_LIMITS = {"{ }": 64, "{name}": 256, "{id}": 256, "{any}": 64}


@dataclass(frozen=True, slots=True)
class Header:
    """One header: its parts, of which the first is a literal.

    >>> Header.of("<call {name}>").match("<call f>{}", 0, True).name
    'f'
    """

    parts: tuple[str, ...]

    @staticmethod
    @lru_cache(maxsize=512)
    def of(template: str) -> Header:
        """Return the header of a template. See the head of this module."""
        return Header(tuple(part for part in _PART.split(template) if part))

    @property
    def head(self) -> str:
        return self.parts[0]

    @property
    def ends_in_name(self) -> bool:
        # No literal says that the name is over: any words may be such a header.
        return (
            len(self.parts) > 1
            and self.parts[-1] in ("{name}", "{ }")
            and "{name}" in (self.parts[-2:])
        )

    def write(self, name: str) -> str:
        # with an id that any call may have
        values = {"{name}": name, "{id}": "call00000", "{ }": "", "{any}": ""}
        return "".join(values.get(part, part) for part in self.parts)

    def rest(self, *, grouped: bool = True) -> str:
        """Return a pattern of the header after its head that matches what `match` does.

        grouped: with a group `name`, and a group `id` for the id.

        >>> import re
        >>> re.fullmatch(Header.of("<call {name}>").rest(), "f>")["name"]
        'f'
        """
        pattern = ""
        for i, part in enumerate(self.parts[1:], 1):
            run = self._run(i)
            if run is None:
                pattern += re.escape(part)
                continue
            word = part.strip("{}") if grouped and part in _WORDS else ""
            if part == "{name}":
                pattern += NO_TOOL
            # Possessive, as a match by steps is.
            pattern += rf"({f'?P<{word}>' if word else '?:'}{run.pattern}+)"
            if part == "{name}":
                pattern += rf"(?<![{re.escape(_NO_END)}])"
        return pattern

    def _run(self, i: int) -> re.Pattern[str] | None:
        # the pattern of the characters of part i, None for a literal
        # A colon after the name ends it, although names may contain one.
        if self.parts[i : i + 2] == ("{name}", ":"):
            return _SIMPLE_WORD
        return _PATTERNS.get(self.parts[i])

    def match(self, text: str, pos: int, final: bool) -> Answer:
        """Return the opening whose header is at `text[pos]`, with offsets that count from there.

        NEED_MORE where the text ends inside a possible one, unless it is `final`.
        """
        at = pos
        words: dict[str, Span] = {}
        for i, part in enumerate(self.parts):
            pattern = self._run(i)
            if pattern is None:
                if not text.startswith(part, at):
                    # NEED_MORE where the text ends inside the literal.
                    is_cut = not final and len(text) - at < len(part)
                    return NEED_MORE if is_cut and part.startswith(text[at:]) else None
                at += len(part)
                continue
            word = pattern.match(text, at)
            end = word.end() if word else at
            # A run that reaches the end of the text may go on there.
            if end >= len(text) and not final and end - at < _LIMITS[part]:
                return NEED_MORE
            if word is None or (part == "{name}" and word[0][-1] in _NO_END):
                return None
            words[part] = Span(at - pos, end - pos)
            at = end

        name, wire_id = words.get("{name}"), words.get("{id}")
        return make_opening(
            at - pos,
            name=name.shift(pos).of(text) if name else "",
            name_span=name,
            wire_id=wire_id.shift(pos).of(text) if wire_id else None,
        )


@dataclass(frozen=True, slots=True)
class Frame:
    """The text around a call's name and arguments where the format writes them apart.

    template: a header, see `json/header.py`, with the text before it. closer: after the arguments.

    >>> Frame("<call {name}>", "</call>")("f", "{}")
    '<call f>{}</call>'
    """

    template: str
    closer: str = ""

    def __call__(self, name: str, arguments_json: str) -> str:
        return f"{Header.of(self.template).write(name)}{arguments_json}{self.closer}"
