"""Taking a text in: chunks of any size become raw, and a tail of it that is not final yet."""

# How it works
# ------------
# What was fed lies in raw one behind the other:
#
#     settled | tail | late | rest of the chunk
#             ^ base
#
# State: `tail` is what the scanners see, and `base` its offset in raw. `_late` holds what waits
# because the tail is long already; `chunk` is the chunk that is being read, '' when nothing of it
# is left, and `_offset` how much of it was read. `_half` is a surrogate whose other half may come
# with the next chunk; it is not in raw yet.
#
# Invariant: base + len(tail) + the size of `_late` + the rest of the chunk = characters fed. The
# pieces joined are raw, and raw never changes; going back only moves `base`.
#
# Cost: cutting the settled beginning off the tail copies the rest of it. So a chunk is read in
# blocks, and a tail that stays long (text is being held back, and nothing settles) is looked at
# anew only when it has grown by a sixteenth. Both make the whole linear in the text.

from __future__ import annotations

import re
from bisect import bisect_right

from ..core.errors import UnreadableInput
from ..core.types import Span

# A longer chunk is read in blocks, so that taking the settled part off the tail stays cheap.
_BLOCK = 4096
_LONG_TAIL = 2 * _BLOCK
_GROWTH = 16  # a long tail is looked at when what waits is at least this part of it
_HIGH_AT_END = re.compile("[\ud800-\udbff]\\Z")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def not_a_chunk(x: object) -> UnreadableInput:
    """Return the error for a chunk that is neither text nor None."""
    return UnreadableInput(
        "a chunk is text",
        got=f"{type(x).__name__} {x!r}",
        expected="a str, or None for an empty delta",
        hint="pass the delta's content: parser.feed(chunk.choices[0].delta.content)",
    )


class Feed:
    """The text of one parser: all that was fed, and the tail of it that is not final yet."""

    __slots__ = (
        "_closers",
        "_ends",
        "_half",
        "_late",
        "_late_size",
        "_offset",
        "_pieces",
        "_size",
        "base",
        "chunk",
        "tail",
    )

    def __init__(self) -> None:
        """Begin before the first character of the text."""
        self.tail = ""
        self.base = 0  # offset in raw of the tail's first character
        self.chunk = ""  # the chunk that is being read in blocks
        self._offset = 0  # how much of it was read
        self._pieces: list[str] = []
        self._ends: list[int] = []  # the offset behind each piece, by which a place is found
        self._size = 0  # characters in the pieces
        self._half = ""  # a surrogate whose other half may come
        self._late: list[str] = []  # blocks that wait because the tail is long
        self._late_size = 0
        self._closers: dict[str, int] = {}  # a closer -> its next offset in the chunk

    # taking in

    def add(self, chunk: str) -> bool:
        """Take in a chunk.

        Return True when the tail has grown and is to be scanned.

        After that, `next_block` gives the rest of a chunk that `self.chunk` still holds.

        A half of a surrogate pair at the end of the chunk stays for the next one.
        """
        if self._half or not chunk.isascii():
            chunk = self._join_surrogates(chunk)
        size = len(chunk)
        if not size:
            return False
        self._pieces.append(chunk)
        self._size += size
        self._ends.append(self._size)
        # The usual chunk is a few characters: it goes straight into the tail.
        if size <= _BLOCK and len(self.tail) <= _LONG_TAIL:
            self.tail += chunk
            return True
        self.chunk = chunk
        self._offset = 0
        return self.next_block()

    def next_block(self) -> bool:
        """Move the next block of the chunk into the tail.

        Return True when the tail is to be scanned.

        False means that the chunk is used up: it is in the tail, or waits behind a long one.

        A long tail gets the waiting text in one go, when that is worth a look at it.
        """
        while self.chunk:
            block = self.chunk[self._offset : self._offset + _BLOCK]
            self._pass_chunk(self._offset + _BLOCK)
            if len(self.tail) <= _LONG_TAIL:
                self.tail += block
                return True
            self._late.append(block)
            self._late_size += len(block)
            if self._late_size * _GROWTH >= len(self.tail):
                self._join_late()
                return True

        return False

    def _pass_chunk(self, offset: int) -> None:
        """Note that the chunk was read up to an offset."""
        self._offset = offset
        if offset >= len(self.chunk):
            self.chunk = ""
            self._closers.clear()

    def end(self) -> None:
        """Bring all that waits into the tail: no more text will come.

        To be called once, before the last scan.
        """
        if self._half:
            self._pieces.append(self._half)
            self._size += 1
            self._ends.append(self._size)
            self._late.append(self._half)
            self._half = ""
        if self._late:
            self._join_late()

    def fetch_closer(self, closer: str) -> None:
        """Bring a whole body into the tail where its closer is in the chunk already.

        A body is scanned faster in one go. `closer` is a literal that every closer of the body
        contains. The body begins where the tail does.
        """
        chunk = self.chunk
        begin = max(0, self._offset - len(self.tail))
        # Kept until it is passed, so that many bodies look through a long chunk only once.
        at = self._closers.get(closer, -1)
        if at < begin:
            at = chunk.find(closer, begin)
            if at < 0:
                at = len(chunk)
            self._closers[closer] = at

        end = at + len(closer)
        if self._offset < end <= len(chunk):
            self.tail += chunk[self._offset : end]
            self._pass_chunk(end)

    # settling

    def take(self, n: int) -> None:
        """Cut `n` settled characters off the tail.

        The rest of the tail is copied, which is why it should be short (see above).
        """
        if n:
            self.tail = self.tail[n:]
            self.base += n

    def go_to(self, base: int, tail: str) -> None:
        """Let the tail begin at offset `base` in raw, before or behind where it begins now.

        `tail` is the characters of raw from there to the end of the present tail.
        """
        self.tail = tail
        self.base = base

    # looking back

    def raw(self) -> str:
        """Return the whole text that was fed.

        Joined on each call. Meant for the end.
        """
        return "".join(self._pieces)

    def text_of(self, span: Span) -> str:
        """Return the characters of a span of the text fed so far.

        The cost is that of the characters, however many chunks there are and wherever they stand.
        """
        begin, end = span.start, span.end
        at = bisect_right(self._ends, begin)
        parts: list[str] = []
        for i in range(at, len(self._pieces)):
            piece = self._pieces[i]
            start = self._ends[i] - len(piece)
            if start >= end:
                break
            parts.append(piece[max(0, begin - start) : end - start])

        return "".join(parts)

    def _join_surrogates(self, chunk: str) -> str:
        """Return the chunk with pairs of surrogates as one character.

        A half at its end stays back.

        A pair comes apart where a client cuts a text by UTF-16 units, as JavaScript does.
        """
        chunk, self._half = self._half + chunk, ""
        if _PAIR.search(chunk):
            chunk = chunk.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        if _HIGH_AT_END.search(chunk):
            chunk, self._half = chunk[:-1], chunk[-1]
        return chunk

    def _join_late(self) -> None:
        """Put the waiting text behind the tail."""
        self.tail += "".join(self._late)
        self._late.clear()
        self._late_size = 0
