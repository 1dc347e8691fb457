"""Characters between tags: entities decoded once, CDATA as it stands, comments left out, each place kept."""

from __future__ import annotations

import re

from ..schema.scalars import SPACE

_ENTITY = re.compile(r"&(?:#0*([0-9]{1,7})|#[xX]0*([0-9a-fA-F]{1,6})|(lt|gt|amp|quot|apos));")
_NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}
_CDATA = re.compile(r"<!\[CDATA\[(.*?)\]\]>", re.DOTALL)


def unescape(text: str) -> str:
    """Entities and character references, decoded once; what is no valid reference stays as it is.

    >>> unescape("a &lt; b &amp;lt; &#65;&#xZZ;")
    'a < b &lt; A&#xZZ;'
    """
    return _ENTITY.sub(_decode, text) if "&" in text else text


def _decode(m: re.Match[str]) -> str:
    if m[3]:
        return _NAMED[m[3]]
    code = int(m[1]) if m[1] else int(m[2], 16)
    return chr(code) if 0 < code < 0xD800 or 0xDFFF < code < 0x110000 else m[0]


def unescape_offsets(raw: str) -> list[int] | None:
    """Where each character of `unescape(raw)` begins in `raw`, and the end."""
    if "<![CDATA[" in raw:
        return None
    offsets: list[int] = []
    pos = 0
    for m in _ENTITY.finditer(raw):
        if _decode(m) != m[0]:
            offsets.extend(range(pos, m.start() + 1))
            pos = m.end()
    offsets.extend(range(pos, len(raw) + 1))
    return offsets


def raw_text(text: str, start: int, end: int) -> tuple[str, tuple[int, int]]:
    """The text of [start, end) as it stands: CDATA unwrapped, entities decoded once; and where it stands."""
    inner = text[start:end]
    if "<![CDATA[" not in inner:
        return unescape(inner), (start, end)
    stripped = inner.strip()
    whole = _CDATA.match(stripped)
    if whole and whole.end() == len(stripped):
        start += len(inner) - len(inner.lstrip())
        return whole[1], (start + whole.start(1), start + whole.end(1))
    out: list[str] = []
    pos = 0
    for m in _CDATA.finditer(inner, 0, inner.rfind("]]>") + 3):
        out.append(unescape(inner[pos : m.start()]))
        out.append(m[1])
        pos = m.end()
    out.append(unescape(inner[pos:]))
    return "".join(out), (start, end)


def joined_text(
    text: str, pieces: list[tuple[int, int, str]], *, trim: bool = True, comments: bool = False
) -> tuple[str, tuple[int, int]]:
    """The text that pieces standing next to each other make, trimmed outside CDATA, and where it stands."""
    if len(pieces) == 1 and pieces[0][2] == "text":  # nearly always
        start, end, _ = pieces[0]
        inner = text[start:end]
        if not trim:
            return unescape(inner), (start, end)
        stripped = inner.strip(SPACE)
        start += len(inner) - len(inner.lstrip(SPACE))
        return unescape(stripped), (start, start + len(stripped))
    words: list[tuple[str, int, int, bool]] = []
    for start, end, kind in pieces:
        if kind == "cdata":
            words.append((text[start + 9 : end - 3], start + 9, end - 3, False))
        elif kind == "text":
            words.append((text[start:end], start, end, True))
        elif kind == "comment" and comments:
            words.append((text[start:end], start, end, False))
    if trim:
        while words and words[0][3]:
            word, _, end, _ = words[0]
            word = word.lstrip(SPACE)
            if word:
                words[0] = (word, end - len(word), end, True)
                break
            del words[0]
        while words and words[-1][3]:
            word, start, _, _ = words[-1]
            word = word.rstrip(SPACE)
            if word:
                words[-1] = (word, start, start + len(word), True)
                break
            words.pop()
    if not words:
        return "", (pieces[0][0], pieces[0][0]) if pieces else (0, 0)
    return "".join(unescape(w) if plain else w for w, _, _, plain in words), (words[0][1], words[-1][2])
