"""Reads the inside of an element as parameters. Tolerant, with edits and places, and always with the schema at hand.

Text the schema calls a string is raw: markup in it is content, white space stays, entities are decoded once. All
other text is trimmed. Nothing is typed here: text stays text until it is coerced by schema.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..rjson.damage import Refusal
from ..schema.view import View
from ..types import Edit, Span
from ..values import Value, escape_token

_NAME = r"[^\s<>/=\"'!?]+"
_TAG = re.compile(
    rf"<!\[CDATA\[(?P<cdata>.*?)\]\]>|<!--(?P<comment>.*?)-->|<\?(?P<pi>.*?)\?>"
    rf"|<(?P<close>/)(?P<gap>[ \t\r\n]*)(?P<closed>{_NAME})(?P<space>[ \t\r\n]*)>"
    rf"|<(?P<open>{_NAME})(?P<attrs>(?:\s(?:[^<>\"']|\"[^\"]*\"|'[^']*')*?)?)(?P<empty>/?)>",
    re.DOTALL,
)
_ENTITY = re.compile(r"&(?:#([0-9]{1,8})|#[xX]([0-9a-fA-F]{1,6})|(lt|gt|amp|quot|apos));")
_NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}
_ASIDE = re.compile(r"<!--.*?-->|<\?.*?\?>|</[^<>]*>", re.DOTALL)
_CDATA = re.compile(r"<!\[CDATA\[(.*?)\]\]>", re.DOTALL)
_MAX_DEPTH = 100
TEXT_KEY = "#text"


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
        offsets.extend(range(pos, m.start()))
        offsets.extend([m.start()] * len(_decode(m)))
        pos = m.end()
    offsets.extend(range(pos, len(raw) + 1))
    return offsets


@dataclass(slots=True)
class _Element:
    """One child: its name, the span of its inside, and where it ends."""

    name: str
    start: int
    end: int
    after: int


class ElementReader:
    """One body under one schema. `read()` gives the members; `edits` and `places` fill while it reads."""

    def __init__(self, text: str, view: View, *, repair: bool, closed: bool) -> None:
        self.text = text
        self.view = view
        self.repair = repair
        self.closed = closed
        self.edits: list[Edit] = []
        self.places: dict[str, tuple[int, int]] = {}

    def read(self) -> dict[str, Value]:
        """The parameters of the whole body; raises Refusal."""
        value = self.members(0, len(self.text), self.view, "", 0)
        self.places[""] = (0, len(self.text))
        self.edits.sort(key=lambda e: (e.span.start, e.span.end))
        return value

    def root_name(self) -> str | None:
        """The one element that spans the whole body, if there is just one."""
        children = self.children(0, len(self.text), self.view, probe=True)
        return children[0].name if len(children) == 1 and not self.loose_text(0, len(self.text), children)[0] else None

    def members(self, start: int, end: int, view: View | None, path: str, depth: int) -> dict[str, Value]:
        if depth > _MAX_DEPTH:
            raise Refusal("decode.too-deep", f"elements nest deeper than {_MAX_DEPTH}", start)
        out: dict[str, Value] = {}
        seen: dict[str, int] = {}
        children = self.children(start, end, view)
        is_list = view is not None and view.types == ("array",)
        for child in children:
            member = self.child_view(view, child.name)
            key = escape_token(child.name)
            if child.name in seen:
                if member is not None and _is_text(member) and not is_list:
                    raise Refusal(
                        "decode.duplicate-string-tag", f"the text parameter {child.name!r} stands twice", child.start
                    )
                if seen[child.name] == 1:
                    self._renumber(f"{path}/{key}")
                    out[child.name] = [out[child.name]]
                at = f"{path}/{key}/{seen[child.name]}"
                out[child.name].append(self.value(child, member, at, depth))
            else:
                out[child.name] = self.value(child, member, f"{path}/{key}", depth)
            seen[child.name] = seen.get(child.name, 0) + 1
        text, place = self.loose_text(start, end, children)
        if text:
            self.places[f"{path}/{TEXT_KEY}"] = place
            out = {TEXT_KEY: unescape(text.strip()), **out}
        return out

    def child_view(self, view: View | None, name: str) -> View | None:
        if view is None:
            return None
        if name == "item" and not view.allows("object") or (view.types == ("array",)):
            return view.items
        return view.child(name)

    def _renumber(self, path: str) -> None:
        """A second element of the same name makes a list of the first."""
        moved = {p: s for p, s in self.places.items() if p == path or p.startswith(path + "/")}
        for p in moved:
            del self.places[p]
        self.places.update({f"{path}/0{p[len(path) :]}": s for p, s in moved.items()})
        self.places[path] = moved[path]

    def value(self, child: _Element, view: View | None, path: str, depth: int) -> Value:
        """The value of one element: text, or its members."""
        inner = self.text[child.start : child.end]
        if view is not None and _is_text(view):
            return self.raw_text(child.start, child.end, path)
        items = view.items if view is not None and view.types == ("array",) else None
        stripped = inner.strip()
        if items is not None and _is_text(items) and not stripped.startswith("<item"):
            return self.raw_text(child.start, child.end, path) if stripped else self.empty([], child, path)
        if view is not None and not stripped:
            if view.types == ("array",):
                return self.empty([], child, path)
            if view.types == ("object",):
                return self.empty({}, child, path)
        if "<" in inner and self.children(child.start, child.end, view, probe=True):
            self.places[path] = (child.start, child.end)
            inner_view = items if items is not None and not stripped.startswith("<item") else view
            return self.members(child.start, child.end, inner_view, path, depth + 1)
        lead = len(inner) - len(inner.lstrip())
        return self.raw_text(child.start + lead, child.start + lead + len(stripped), path)

    def empty(self, value: Value, child: _Element, path: str) -> Value:
        self.places[path] = (child.start, child.end)
        return value

    def raw_text(self, start: int, end: int, path: str) -> str:
        """Text as it stands: CDATA unwrapped, entities decoded once."""
        text = self.text[start:end]
        self.places[path] = (start, end)
        if "<![CDATA[" not in text:
            return unescape(text)
        whole = _CDATA.fullmatch(text.strip())
        if whole:
            start += len(text) - len(text.lstrip())
            self.places[path] = (start + whole.start(1), start + whole.end(1))
            return whole[1]
        out: list[str] = []
        pos = 0
        for m in _CDATA.finditer(text):
            out.append(unescape(text[pos : m.start()]))
            out.append(m[1])
            pos = m.end()
        out.append(unescape(text[pos:]))
        return "".join(out)

    def loose_text(self, start: int, end: int, children: list[_Element]) -> tuple[str, tuple[int, int]]:
        """The text between the children, without comments, and where it stands (all of it, if in several places)."""
        pieces: list[tuple[int, int]] = []
        pos = start
        for child in children:
            pieces.append((pos, self._begin_of(child)))
            pos = child.after
        pieces.append((pos, end))
        words: list[str] = []
        spans: list[tuple[int, int]] = []
        for a, b in pieces:
            word = _ASIDE.sub("", self.text[a:b]).strip()
            if word:
                words.append(_CDATA.sub(r"\1", word))
                found = self.text.find(word, a, b)
                spans.append((found, found + len(word)) if found >= 0 else (a, b))
        if not spans:
            return "", (start, start)
        return " ".join(words), (spans[0][0], spans[-1][1])

    def _begin_of(self, child: _Element) -> int:
        return self.text.rfind("<", 0, child.start) if child.start > 0 else 0

    # finding the children

    def children(self, start: int, end: int, view: View | None, *, probe: bool = False) -> list[_Element]:
        """The elements directly inside [start, end). `probe` looks without repairing or refusing."""
        text = self.text
        found: list[_Element] = []
        pos = start
        while True:
            m = _TAG.search(text, pos, end)
            if not m:
                return found
            pos = m.end()
            if m["open"]:
                name = m["open"]
                if m["empty"]:
                    found.append(_Element(name, m.end(), m.end(), m.end()))
                    continue
                element = self.element(name, m.end(), end, view, probe=probe)
                if element is None:
                    continue
                found.append(element)
                pos = element.after
            elif m["close"] and not probe:
                if not self.repair:
                    raise Refusal("decode.xml", f"</{m['closed']}> closes nothing", m.start())
                self.edits.append(Edit(Span(m.start(), m.end()), "", "rxml.stray-close-tag"))

    def element(self, name: str, start: int, end: int, view: View | None, *, probe: bool) -> _Element | None:
        """The element whose opening tag ends at `start`."""
        member = self.child_view(view, name)
        raw = member is not None and _is_text(member)
        close = self.closing(name, start, end, raw)
        if close:
            if (close["gap"] or "") and not probe:
                if not self.repair:
                    raise Refusal("decode.xml", f"white space inside </{name}>", close.start())
                span = Span(close.start("gap"), close.end("gap"))
                self.edits.append(Edit(span, "", "rxml.close-tag-space"))
            return _Element(name, start, close.start(), close.end())
        if probe:
            return None
        if not self.repair:
            raise Refusal("decode.xml", f"<{name}> is not closed", start)
        if not self.closed:
            raise Refusal("decode.truncated-value", f"the text ends inside <{name}>", start)
        return self.unclosed(name, start, end, view)

    def closing(self, name: str, start: int, end: int, raw: bool) -> re.Match[str] | None:
        """The closing tag that belongs to an element; for raw text, the first that a tag or the end follows."""
        text = self.text
        pattern = re.compile(
            rf"<!\[CDATA\[.*?\]\]>|<!--.*?-->|<(?P<close>/)(?P<gap>[ \t\r\n]*){re.escape(name)}[ \t\r\n]*>"
            rf"|<(?P<open>{re.escape(name)})(?:\s[^<>]*)?(?P<empty>/?)>",
            re.DOTALL,
        )
        level = 0
        for m in pattern.finditer(text, start, end):
            if m["close"]:
                if raw:
                    rest = text[m.end() : end].lstrip()
                    if rest == "" or rest[0] == "<":
                        return m
                elif level == 0:
                    return m
                else:
                    level -= 1
            elif m["open"] and not raw and not m["empty"]:
                level += 1
        return None

    def unclosed(self, name: str, start: int, end: int, view: View | None) -> _Element:
        """An element without a closing tag ends at a wrongly named one, before the next parameter, or at the end."""
        text = self.text
        known = view.properties if view is not None else {}
        for m in _TAG.finditer(text, start, end):
            if m["open"] and m["open"] in known and m["open"] != name:
                at = len(text[: m.start()].rstrip())
                at = max(at, start)
                self.edits.append(Edit(Span(at, at), f"</{name}>", "rxml.unclosed-tag"))
                return _Element(name, start, at, at)
            if m["close"]:  # inside its parent nothing else is open
                self.edits.append(Edit(Span(m.start(), m.end()), f"</{name}>", "rxml.mismatched-tag"))
                return _Element(name, start, m.start(), m.end())
        at = max(len(text[:end].rstrip()), start)
        self.edits.append(Edit(Span(at, at), f"</{name}>", "rxml.unclosed-tag"))
        return _Element(name, start, at, at)


def _is_text(view: View) -> bool:
    """The schema calls it a string, or a string or null: then its text is raw."""
    if view.any_of:
        return any(_is_text(b) for b in view.any_of) and all(
            b.types is not None and set(b.types) <= {"string", "null"} for b in view.any_of
        )
    return view.types is not None and "string" in view.types and set(view.types) <= {"string", "null"}


def text_params(view: View) -> frozenset[str]:
    """The names of the parameters whose text is raw."""
    return frozenset(name for name, member in view.properties.items() if _is_text(member))
