"""What a text of elements is made of: tags, elements, and the characters between them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias

from ...arguments.schema.scalars import SPACE
from ...arguments.schema.view import View

# How it works. `MARK` finds whatever may be markup: the beginning of a section, a closing tag, an
# opening tag with its attributes. A `<` that fits none of these is text. All repeats are
# possessive, so that a `<` followed by much text costs one look and no backtracking.

# What begins with a sign is no name: `a <- b`, `x <(y)` are prose and code.
NAME = r"(?![-.,:;&|+*(){}\[\]])[^\s<>/=\"'!?]++"
ATTRIBUTE_NAME = r"[^\s<>/=\"'&;|+*(){}\[\],]++"
# The value is quoted, bare, or missing.
ATTRIBUTE_PATTERN = ATTRIBUTE_NAME + r"(?:\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s\"'<>=]*[^\s\"'<>=/]))?"
MARK = re.compile(
    rf"(?P<skip><!\[CDATA\[|<!--|<\?|<![A-Za-z])"
    rf"|<(?P<close>/)(?P<gap>[ \t\r\n]*+)(?P<closed>{NAME})[ \t\r\n]*+>"
    rf"|<(?P<open>{NAME})(?P<attributes>(?:\s++{ATTRIBUTE_PATTERN})*+)\s*+(?P<empty>/?)>"
)
ATTRIBUTE = re.compile(
    r"\s+(?P<name>[^\s=]+)(?:\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'<>=]*[^\s\"'<>=/])))?"
)
CLOSER = re.compile(rf"</[ \t\r\n]*+({NAME})")
# The end of a closing tag that a tag or the end of the text follows.
CLOSE_TAIL = re.compile(rf"[ \t\r\n]*+>(?=[{SPACE}]*+(?:<|\Z))")
# Before a closing tag: it may not be the one that is meant.
DOUBT = re.compile(r"<(?:/[ \t\r\n]|!\[CDATA\[)")
# A declaration with its internal subset, in which a quote may hide what looks like its end.
DOCTYPE = re.compile(
    r"<![A-Za-z](?:[^<>\[\]\"']|\"[^\"]*\"|'[^']*')*+"
    r"(?:\[(?:[^\]\"']|\"[^\"]*\"|'[^']*')*+\]\s*+)?>"
)
BLANK = re.compile(rf"[{SPACE}]*+")
# What people and writers call the items of a list: item, or their numbers.
ITEM = re.compile(r"\s*+<(?:item|[0-9]+)(?=[\s/>])")


@lru_cache(maxsize=512)
def own_tags(name: str) -> re.Pattern[str]:
    own = re.escape(name)
    return re.compile(
        rf"(?P<skip><!\[CDATA\[)|<(?P<close>/)[ \t\r\n]*+{own}[ \t\r\n]*+>"
        rf"|<{own}(?:\s[^<>]*?)?(?P<empty>/?)>"
    )


@lru_cache(maxsize=512)
def raw_tags(name: str, parent: str) -> re.Pattern[str]:
    own = re.escape(name)
    over = "|(?P<over>(?!))"  # a group that never matches, so that it can always be asked for
    if parent and parent != name:
        over = rf"|(?P<over></{re.escape(parent)}[ \t\r\n]*+>)"

    return re.compile(
        rf"(?P<skip><!\[CDATA\[)|<(?P<close>/)(?P<gap>[ \t\r\n]*+){own}[ \t\r\n]*+>"
        rf"|<{own}(?:\s[^<>]*?)?(?P<empty>/?)>{over}"
    )


Piece: TypeAlias = tuple[int, int, str]
"""A stretch between children: start, end, and its kind."""


@dataclass(frozen=True, slots=True)
class Manner:
    """The manner in which a text is read.

    repair: close the open parts instead of refusing it. closed: the text is known to be whole, so
    that the open parts at its end may be closed too. void: elements without an inside, unless the
    schema names them. code: script and style hold text. loose: white space in `</ name>` is taken
    as it is, and sections that are not closed are refused. max_depth: levels of elements.
    """

    repair: bool = False
    closed: bool = True
    void: frozenset[str] = frozenset()
    code: bool = False
    loose: bool = False
    max_depth: int = 100


@dataclass(slots=True, eq=False)
class Element:
    """One element: `<` of its tag at `begin`, its inside [start, end), the end of its closing tag
    at `after`.

    `index` counts the elements of its name before it. `pieces` are the stretches between its
    children: (start, end, kind), kind: text, cdata, comment, instruction or doctype. `view` says
    the schema's word of its value. `raw`: its inside is text, whatever it looks like. `code`:
    because it is a script or style. `lists`: it holds the items of a list.
    """

    name: str
    begin: int
    start: int
    end: int
    after: int
    view: View | None
    parent: Element | None
    index: int = 0
    depth: int = 0
    raw: bool = False
    code: bool = False
    lists: bool | None = None  # None until its first child is seen
    attributes: tuple[int, int] = (0, 0)
    children: list[Element] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)  # name -> children of that name


def walk(root: Element) -> Iterator[Element]:
    """Yield every element but the root, parents first, in the order of the text."""
    # Reversed, so that the first child is taken first.
    stack = list(reversed(root.children))
    while stack:
        element = stack.pop()
        yield element
        if element.children:
            stack.extend(reversed(element.children))


def pieces_between_children(element: Element) -> Iterator[tuple[list[Piece], Element | None]]:
    """Yield the pieces before each child and that child; at last those after all, and None."""
    pieces = element.pieces
    at = 0
    for child in element.children:
        first = at
        while at < len(pieces) and pieces[at][0] < child.begin:
            at += 1

        yield pieces[first:at], child

    yield pieces[at:], None


# How it works. The text of an element is joined from pieces, and three things may differ from one
# to the next: if entities are decoded, if it is trimmed, and if it counts at all. Nearly every
# element has one piece of plain text, and that way is kept short. A place is always that of the
# characters that made the text, without the white space around them.

Place: TypeAlias = tuple[int, int]
"""Where text is in the body: [start, end)."""

_Word: TypeAlias = tuple[str, int, int, bool]
"""A piece of text, its place, and if it is plain: trimmed, with entities."""

_ENTITY = re.compile(r"&(?:#0*([0-9]{1,7})|#[xX]0*([0-9a-fA-F]{1,6})|(lt|gt|amp|quot|apos));")
_NAMED = {"lt": "<", "gt": ">", "quot": '"', "apos": "'", "amp": "&"}
_REFERENCES = tuple((f"&{name};", char) for name, char in _NAMED.items())
_CDATA = re.compile(r"<!\[CDATA\[(.*?)\]\]>", re.DOTALL)
_CDATA_OPEN, _CDATA_CLOSE = "<![CDATA[", "]]>"


def unescape(text: str) -> str:
    """Entities and character references, decoded once.

    An invalid reference stays as it is.

    >>> unescape("a &lt; b &amp;lt; &#65;&#xZZ;")
    'a < b &lt; A&#xZZ;'
    """
    if "&" not in text or not _ENTITY.search(text):
        return text
    if "&#" in text:
        return _ENTITY.sub(_decode, text)
    # Names alone, in a fifth of the time. The one for `&` comes last, since what it makes is not
    # decoded again.
    for reference, character in _REFERENCES:
        text = text.replace(reference, character)
    return text


def _decode(match: re.Match[str]) -> str:
    # A surrogate or NUL is none, and stays as it is written.
    if match[3]:
        return _NAMED[match[3]]

    code = int(match[1]) if match[1] else int(match[2], 16)
    is_character = 0 < code < 0xD800 or 0xDFFF < code < 0x110000
    return chr(code) if is_character else match[0]


def unescape_offsets(raw: str) -> list[int] | None:
    """Return the offset in `raw` of each character of `unescape(raw)`, and of the end. None for
    text with sections.
    """
    if _CDATA_OPEN in raw:
        return None

    offsets: list[int] = []
    pos = 0
    for match in _ENTITY.finditer(raw):
        if _decode(match) != match[0]:
            offsets.extend(range(pos, match.start() + 1))
            pos = match.end()

    offsets.extend(range(pos, len(raw) + 1))
    return offsets


def raw_text(text: str, start: int, end: int) -> tuple[str, Place]:
    """Return the text of [start, end), CDATA unwrapped, entities decoded once; and its place."""
    inner = text[start:end]
    if _CDATA_OPEN not in inner:
        return unescape(inner), (start, end)

    # Text that is one section as a whole is that section's inside.
    stripped = inner.strip()
    whole = _CDATA.match(stripped)
    if whole and whole.end() == len(stripped):
        start += len(inner) - len(inner.lstrip())
        return whole[1], (start + whole.start(1), start + whole.end(1))

    out: list[str] = []
    pos = 0
    # After the last closer no section can end: without this bound, many openers cost a square.
    for section in _CDATA.finditer(inner, 0, inner.rfind(_CDATA_CLOSE) + len(_CDATA_CLOSE)):
        out += [unescape(inner[pos : section.start()]), section[1]]
        pos = section.end()
    out.append(unescape(inner[pos:]))
    return "".join(out), (start, end)


def joined_text(
    text: str, pieces: list[Piece], *, trim: bool = True, comments: bool = False
) -> tuple[str, Place]:
    """Return the text that pieces make, trimmed outside CDATA, and its place. comments count as
    text, and are not trimmed.
    """
    if len(pieces) == 1 and pieces[0][2] == "text":  # nearly always
        start, end, _ = pieces[0]
        inner = text[start:end]
        if not trim:
            return unescape(inner), (start, end)
        stripped = inner.strip(SPACE)
        start += len(inner) - len(inner.lstrip(SPACE))
        return unescape(stripped), (start, start + len(stripped))

    words: list[_Word] = []
    for start, end, kind in pieces:
        if kind == "cdata":
            start, end = start + len(_CDATA_OPEN), end - len(_CDATA_CLOSE)
        if kind in ("cdata", "text") or (kind == "comment" and comments):
            words.append((text[start:end], start, end, kind == "text"))
    # White space goes up to the first and from the last character, or word that is not plain.
    for at in (0, -1) if trim else ():
        while words and words[at][3]:
            word, start, end, _ = words[at]
            word = word.rstrip(SPACE) if at else word.lstrip(SPACE)
            if word:
                start = start if at else end - len(word)
                words[at] = (word, start, start + len(word), True)
                break
            del words[at]
    if not words:
        start = pieces[0][0] if pieces else 0
        return "", (start, start)

    decoded = [unescape(word) if plain else word for word, _, _, plain in words]
    return "".join(decoded), (words[0][1], words[-1][2])
