"""Nodes of XML that comes in pieces, each as soon as it is whole."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Unpack

from ...core.errors import BadOptions, RXMLStreamError
from .element import ATTRIBUTE_NAME, ATTRIBUTE_PATTERN, DOCTYPE, MARK, NAME, Element
from .nodes import Node, nodes_of
from .parsing import NodeOptions, Options
from .tree import CODE, SECTION_ENDS, Lookahead

# How it works. Marks are found as in a whole text, and their names kept on a stack. Where it is
# empty after a mark, the text so far is read like any other, and forgotten. So what is handed out
# is what the whole text has there.
#
# A mark is taken only once no further text can change it: a `<` that may still become a tag holds
# everything back, and so does a section that is not closed. `_again` doubles while one of these
# grows, so that a long one is not looked through at every piece.

# A `<` that may be the beginning of a mark, at the end of what came so far.
_PARTIAL = re.compile(
    rf"<(?:/[ \t\r\n]*+(?:{NAME}[ \t\r\n]*+)?|!\[?[CDAT]*+|!-?"
    rf"|{NAME}(?:\s++{ATTRIBUTE_PATTERN})*"
    rf"(?:\s++(?:{ATTRIBUTE_NAME}"
    r"(?:\s*+=\s*+(?:\"[^\"]*+|'[^']*+|[^\s\"'<>=]*+)?)?)?)?"
    r"\s*+/?)?\Z"
)
_LOOKED_AT = 4096  # characters that are looked through again at every piece


def stream_nodes(chunks: Iterable[str], **options: Unpack[NodeOptions]) -> Iterator[Node | str]:
    """Yield the nodes of XML that comes in pieces, and the text between them.

    They are those of `parse_without_schema`, which says the options. There is no `repair`: where
    an element was to be closed is known at the end alone.

    Raises BadOptions. RXMLStreamError for a piece that is no text, and RXMLParseError where the
    whole text would, after the nodes before it.

    >>> pieces = iter(["<a><b>1</b>", "</a><c", "/> x"])
    >>> for node in stream_nodes(pieces):
    ...     print(node if isinstance(node, str) else node["tagName"])
    a
    c
    x
    """
    given = Options(**options)
    if given.repair:
        raise BadOptions("a stream of XML is not repaired", got="repair=True")
    cutter = _Cutter(given.manner("").void)
    before = (0, 0, 0)
    for chunk in chunks:
        if not isinstance(chunk, str):
            raise RXMLStreamError(f"a piece of XML is text, not {type(chunk).__name__}")
        for text in cutter.feed(chunk):
            yield from nodes_of(text, given, before)
            before = _after(before, text)
    yield from nodes_of(cutter.rest(), given, before)


def _after(before: tuple[int, int, int], text: str) -> tuple[int, int, int]:
    # Characters, lines, and characters of the last line.
    characters, lines, column = before
    last = text.rfind("\n")
    in_line = column + len(text) if last < 0 else len(text) - last - 1
    return characters + len(text), lines + text.count("\n"), in_line


class _Cutter:
    # Cuts a text where no element is open.

    def __init__(self, void: frozenset[str]) -> None:
        self._void = void
        self._seen: list[str] = []  # what was looked at since the last cut
        self._tail = ""  # what was not
        self._open: list[str] = []
        self._again = 0  # the length of the tail from which on it is looked at
        self._doubtful = False  # how the rest is read is known at the end alone

    def rest(self) -> str:
        return "".join([*self._seen, self._tail])

    def feed(self, chunk: str) -> Iterator[str]:
        self._tail += chunk
        if self._doubtful or len(self._tail) < self._again:
            return
        self._again = 0
        while mark := self._mark():
            end = self._end_of(mark)
            if end < 0:
                self._hold(mark.start())
                return
            self._seen.append(self._tail[:end])
            self._tail = self._tail[end:]
            if not self._open:
                yield "".join(self._seen)
                self._seen.clear()

    def _hold(self, start: int) -> None:
        self._seen.append(self._tail[:start])
        self._tail = self._tail[start:]
        if len(self._tail) > _LOOKED_AT:
            self._again = 2 * len(self._tail)

    def _mark(self) -> re.Match[str] | None:
        # The next mark, None if it may still be another one.
        text = self._tail
        mark = MARK.search(text)
        end = len(text) if mark is None else mark.start()
        at = text.find("<")
        while 0 <= at < end:
            if _PARTIAL.match(text, at):
                self._hold(at)
                return None
            at = text.find("<", at + 1)
        if mark is None:
            self._hold(end)
        return mark

    def _end_of(self, mark: re.Match[str]) -> int:
        # Of the mark, or of the element that it opens and whose inside is not looked into; -1 if
        # that is not known yet.
        text, end = self._tail, mark.end()
        if mark["skip"]:
            closer = SECTION_ENDS.get(mark["skip"])
            if closer is None:
                declaration = DOCTYPE.match(text, mark.start())
                return declaration.end() if declaration else -1
            at = text.find(closer, end)
            return at + len(closer) if at >= 0 else -1
        if mark["close"]:
            if not self._open or self._open.pop() != mark["closed"]:
                self._open.clear()  # what stands here is refused when it is read
            return end
        name = mark["open"]
        if mark["empty"]:
            return end
        if name in self._void:
            rest = text[end:].lstrip()
            closer = f"</{name}"
            if rest.startswith(closer[: len(rest)]) and ">" not in rest:
                return -1  # white space and its closing tag may follow
            tag = re.compile(rf"\s*+</{re.escape(name)}\s*+>").match(text, end)
            return tag.end() if tag else end
        if name in CODE:
            return self._end_of_code(name, end)
        self._open.append(name)
        return end

    def _end_of_code(self, name: str, start: int) -> int:
        text = self._tail
        if text.find("</" + name, start) < 0:
            return -1
        element = Element(name, start, start, start, start, None, None)
        place = Lookahead(text).plain_close(element, self._open[-1] if self._open else "")
        if place is None:
            self._doubtful = True
        elif text[place[1] :].strip():
            return place[1]
        return -1  # it ends there only if a tag follows
