"""Holds the state that the scanner of parameter tags knows at a place, and looks at the text around
one.

The states of the scanner share one `Walk`: `scan.py` has those between the tags, `value.py` those
inside a value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ...arguments.schema.view import View, view_of
from ...core.toolspec import ToolSpec
from ..scan import CloseKind
from .form import Mark, MarkKind, closes_itself, kind_of, tag_pattern
from .shape import Form

INDENT = 64  # a tag further right than this is on no line of its own
_CUT_TAG = re.compile(r"</?[A-Za-z_]{0,12}\Z")

# START: before the first tag of a block. TOP: between functions. BODY: right behind a function's
# tag. INSIDE: between parameters. HEAD: right behind a parameter's tag. VALUE: in its value. JSON:
# in an object in place of tags. ENDED: behind a function that has no block around it.
START, TOP, BODY, INSIDE, HEAD, VALUE, JSON, ENDED = range(8)


@dataclass(slots=True)  # made for nearly every chunk, and a frozen one takes twice the time
class Hold:
    """Everything before `at` is final. The rest waits for more text."""

    at: int


class Walk:
    """The state that the parts of one scanner share.

    Offsets count from the beginning of the body.

    whole: it is shown one finished body, looks for no end, and keeps the `marks`. `quoting` holds
    the indices of the parameters whose values hold closers or calls taken for content.
    """

    __slots__ = (
        "at",
        "early",
        "form",
        "hidden",
        "indent",
        "look",
        "marks",
        "pattern",
        "quoting",
        "space",
        "state",
        "tools",
        "view",
        "whole",
        "word",
        "wrapped",
    )

    def __init__(
        self, form: Form, tools: Mapping[str, ToolSpec], *, wrapped: bool, whole: bool
    ) -> None:
        self.form = form
        self.tools = tools
        self.wrapped = wrapped
        self.whole = whole
        self.pattern = tag_pattern(form)
        self.space = form.space
        self.state = START if wrapped else TOP
        self.at = 0  # characters settled so far
        self.look = 0  # up to this offset white space was looked at already
        # White space since the last settled line break; -1 = there is more than that.
        self.indent = -1
        self.word = ""  # of the function's tag
        self.view: View | None = None  # of the function's tool, if it is known
        # The function's name stood between its tags, and no parameter came since.
        self.early = False
        self.hidden: tuple[int, int, CloseKind] | None = None
        self.marks: list[Mark] = []
        self.quoting: set[int] = set()

    # Taking note

    def settle(self, tail: str, settled: int) -> int:
        if settled:
            self.indent = self.indent_at(tail, settled)
            self.at += settled
        return settled

    def mark(
        self,
        kind: MarkKind,
        start: int,
        end: int,
        name: str = "",
        name_start: int = 0,
        doubtful: bool = False,
        rule: str = "tags.spelling",
        flag: str = "",
    ) -> None:
        if self.whole:
            self.marks.append(Mark(kind, start, end, name, name_start, doubtful, rule, flag))

    def quote(self) -> None:
        if self.whole:
            self.quoting.add(len(self.marks) - 1)

    def hide(self, start: int, end: int, kind: CloseKind) -> None:
        if self.hidden is None:
            self.hidden = (self.at + start, self.at + end, kind)

    def begin_function(
        self, match: re.Match[str], word: str, group: str, rule: str = "tags.spelling"
    ) -> None:
        name = match[group]
        tool = self.tools.get(name)
        # Only this word closes the function; closers of other words are content.
        self.word = word
        self.view = view_of(tool.schema_json) if tool else None
        if closes_itself(match):
            rule = "tags.self-closed"
        self.mark("function", match.start(), match.end(), name, match.start(group), rule=rule)
        self.early = group == "ft"
        self.state = BODY
        if closes_itself(match):
            self.end_function(match.end(), match.end())

    def enter(self, name: str) -> None:
        tool = self.tools.get(name)
        self.word = self.form.function_word
        self.view = view_of(tool.schema_json) if tool else None
        self.state = BODY

    def end_function(self, start: int, end: int, *, doubtful: bool = False) -> None:
        self.mark("/function", start, end, doubtful=doubtful)
        self.state = TOP if self.wrapped or self.whole else ENDED

    # Looking around

    def knows(self, match: re.Match[str]) -> bool:
        # `<parameter>x</parameter>` may as well be a value without a name, so such a name
        # has to be known.
        name = match["pt"]
        return name is None or (self.view is not None and name in self.view.properties)

    def stands_for_key(self, name: str) -> bool:
        # Some models write a function's tag in place of a key's.
        if not self.form.value_has_tag or self.view is None:
            return False
        return name in self.view.properties and name not in self.tools

    def skip(self, tail: str, pos: int) -> int:
        # What was looked at before the last chunk is not looked at again.
        match = self.space.match(tail, max(pos, self.look - self.at))
        return match.end() if match else pos

    def following(self, tail: str, pos: int, final: bool) -> str | None:
        """Return the kind of tag after white space; 'text', '{' or 'end' if there is none. None =
        only more text can tell.
        """
        start = self.skip(tail, pos)
        if start >= len(tail):
            if final:
                return "end"
            # A run of white space that comes in pieces is looked at once, piece by piece.
            self.look = self.at + start
            return None

        self.look = 0
        if tail[start] == "{":
            return "{"

        # Every tag begins with this character; most of what follows a tag is text.
        match = self.pattern.match(tail, start) if tail[start] == "<" else None
        if match is None:
            return "text"

        kind = kind_of(match)
        if kind == "cut":
            return _cut_kind(tail, start) if final else None
        if kind == "parameter" and not self.knows(match):
            return "text"
        return kind

    def indent_at(self, tail: str, start: int) -> int:
        # White space since the last line break, -1 if there is more than that, or more than
        # `INDENT`. The line may have begun before the tail: `indent` keeps everything
        # settled of it, so the answer does not depend on where the chunk ends.
        line = tail.rfind("\n", max(0, start - INDENT - 1), start)
        before = 0
        if line < 0:
            # The line began before the tail, so what was settled of it counts as well.
            if start > INDENT or self.indent < 0:
                return -1
            before = self.indent

        blank = tail[line + 1 : start]
        total = before + len(blank)
        return total if total <= INDENT and not blank.strip(" \t\r") else -1


def _cut_kind(tail: str, start: int) -> str:
    return "end" if _CUT_TAG.match(tail, start) else "text"


def past_cut(tail: str, match: re.Match[str]) -> Hold | int:
    # A bracket in it is the end of some other tag.
    inner = tail.find(">", match.start(), match.end())
    return inner + 1 if inner >= 0 else Hold(len(tail))
