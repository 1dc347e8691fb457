"""Reads the inside of an element as parameters. Tolerant, with edits and places, and always with the schema at hand.

Text the schema calls a string is raw: markup in it is content, white space stays, entities are decoded once. All
other text is trimmed. Nothing is typed here: text stays text until it is coerced by schema.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from ..rjson.damage import Refusal
from ..schema.view import View
from ..types import Edit, Span
from ..values import Value, escape_token

_NAME = r"[^\s<>/=\"'!?]+"
_TAG = re.compile(
    rf"(?P<skip><!\[CDATA\[|<!--|<\?)"
    rf"|<(?P<close>/)(?P<gap>[ \t\r\n]*)(?P<closed>{_NAME})(?P<space>[ \t\r\n]*)>"
    rf"|<(?P<open>{_NAME})(?P<attrs>(?:\s(?:[^<>\"']|\"[^\"]*\"|'[^']*')*?)?)(?P<empty>/?)>",
    re.DOTALL,
)
_ENTITY = re.compile(r"&(?:#([0-9]{1,8})|#[xX]([0-9a-fA-F]{1,6})|(lt|gt|amp|quot|apos));")
_NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}
_ASIDE = re.compile(r"(?P<skip><!--|<\?)|</[^<>]*>")
_CDATA = re.compile(r"<!\[CDATA\[(.*?)\]\]>", re.DOTALL)
_SKIP_ENDS = {"<!--": "-->", "<![CDATA[": "]]>", "<?": "?>"}
_SPACE = re.compile(r"\s*")
_GAP = re.compile(r"</[ \t\r\n]")
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
        if _decode(m) != m[0]:
            offsets.extend(range(pos, m.start() + 1))
            pos = m.end()
    offsets.extend(range(pos, len(raw) + 1))
    return offsets


@dataclass(slots=True)
class _Element:
    """One child: its name, the span of its inside, and where it ends."""

    name: str
    begin: int
    start: int
    end: int
    after: int


def _next_tag(pattern: re.Pattern[str], text: str, pos: int, end: int, unclosed: set[str]) -> re.Match[str] | None:
    """The next tag in [pos, end) outside comments, CDATA and processing instructions.

    One of those that is not closed is text; `unclosed` remembers it, so that its end is looked for only once.
    """
    while m := pattern.search(text, pos, end):
        skip = m["skip"]
        if skip is None:
            return m
        pos = m.end()
        if skip not in unclosed:
            at = text.find(_SKIP_ENDS[skip], pos, end)
            if at < 0:
                unclosed.add(skip)
            else:
                pos = at + len(_SKIP_ENDS[skip])
    return None


def _without_asides(text: str) -> str:
    """Text without comments, processing instructions and closing tags that close nothing."""
    out: list[str] = []
    unclosed: set[str] = set()
    done = pos = 0
    while m := _ASIDE.search(text, pos):
        pos = m.end()
        skip = m["skip"]
        if skip in unclosed:
            continue
        if skip is not None:
            at = text.find(_SKIP_ENDS[skip], pos)
            if at < 0:
                unclosed.add(skip)
                continue
            pos = at + len(_SKIP_ENDS[skip])
        out.append(text[done : m.start()])
        done = pos
    out.append(text[done:])
    return "".join(out)


class ElementReader:
    """One body under one schema. `read()` gives the members; `edits` and `places` fill while it reads."""

    def __init__(self, text: str, view: View, *, repair: bool, closed: bool) -> None:
        self.text = text
        self.view = view
        self.repair = repair
        self.closed = closed
        self.edits: list[Edit] = []
        self.places: dict[str, tuple[int, int]] = {}
        self._last_close: dict[str, int] = {}  # name -> where its last closing tag begins
        self._gaps = bool(_GAP.search(text))  # there are closing tags with white space before their name
        self._allowance = 64 * len(text) + 2_000_000  # characters that may be searched for closing tags

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
                    self._renumber(f"{path}/{key}", out[child.name])
                    out[child.name] = [out[child.name]]
                at = f"{path}/{key}/{seen[child.name]}"
                out[child.name].append(self.value(child, member, at, depth))
                self.places[f"{path}/{key}"] = (self.places[f"{path}/{key}"][0], self.places[at][1])
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
        if (name == "item" and not view.allows("object")) or view.types == ("array",):
            return view.items
        return view.child(name)

    def _renumber(self, path: str, first: Value) -> None:
        """A second element of the same name makes a list of the first."""
        span = self.places[path]
        stack = [("", first)]
        while stack:
            rel, node = stack.pop()
            place = self.places.pop(path + rel, None)
            if place is not None:
                self.places[f"{path}/0{rel}"] = place
            if isinstance(node, dict):
                stack.extend((f"{rel}/{escape_token(k)}", v) for k, v in node.items())
            elif isinstance(node, list):
                stack.extend((f"{rel}/{i}", v) for i, v in enumerate(node))
        self.places[path] = span

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
        stripped = text.strip()
        whole = _CDATA.match(stripped)
        if whole and whole.end() == len(stripped):
            start += len(text) - len(text.lstrip())
            self.places[path] = (start + whole.start(1), start + whole.end(1))
            return whole[1]
        out: list[str] = []
        pos = 0
        for m in _CDATA.finditer(text, 0, text.rfind("]]>") + 3):
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
            pieces.append((pos, child.begin))
            pos = child.after
        pieces.append((pos, end))
        words: list[str] = []
        spans: list[tuple[int, int]] = []
        for a, b in pieces:
            word = _without_asides(self.text[a:b]).strip()
            if word:
                last = word.rfind("]]>") + 3
                words.append(_CDATA.sub(r"\1", word[:last]) + word[last:])
                found = self.text.find(word, a, b)
                spans.append((found, found + len(word)) if found >= 0 else (a, b))
        if not spans:
            return "", (start, start)
        return " ".join(words), (spans[0][0], spans[-1][1])

    # finding the children

    def children(self, start: int, end: int, view: View | None, *, probe: bool = False) -> list[_Element]:
        """The elements directly inside [start, end). `probe` looks without repairing or refusing."""
        text = self.text
        found: list[_Element] = []
        pos = start
        unclosed: set[str] = set()
        while m := _next_tag(_TAG, text, pos, end, unclosed):
            pos = m.end()
            if m["open"]:
                name = m["open"]
                if m["empty"]:
                    found.append(_Element(name, m.start(), m.end(), m.end(), m.end()))
                    continue
                element = self.element(name, m.start(), m.end(), end, view, probe=probe)
                if element is None:
                    continue
                found.append(element)
                pos = element.after
            elif m["close"] and not probe:
                if not self.repair:
                    raise Refusal("decode.xml", f"</{m['closed']}> closes nothing", m.start())
                self.edits.append(Edit(Span(m.start(), m.end()), "", "rxml.stray-close-tag"))
        return found

    def element(
        self, name: str, begin: int, start: int, end: int, view: View | None, *, probe: bool
    ) -> _Element | None:
        """The element whose opening tag is [begin, start)."""
        member = self.child_view(view, name)
        raw = member is not None and _is_text(member)
        close = self.closing(name, start, end, raw)
        if close:
            if (close["gap"] or "") and not probe:
                if not self.repair:
                    raise Refusal("decode.xml", f"white space inside </{name}>", close.start())
                span = Span(close.start("gap"), close.end("gap"))
                self.edits.append(Edit(span, "", "rxml.close-tag-space"))
            return _Element(name, begin, start, close.start(), close.end())
        if probe:
            return None
        if not self.repair:
            raise Refusal("decode.xml", f"<{name}> is not closed", start)
        if not self.closed:
            raise Refusal("decode.truncated-value", f"the text ends inside <{name}>", start)
        return self.unclosed(name, begin, start, end, view)

    def closing(self, name: str, start: int, end: int, raw: bool) -> re.Match[str] | None:
        """The closing tag that belongs to an element; for raw text, the first that a tag or the end follows."""
        if self._never_closed(name, start):
            return None
        text = self.text
        pattern = _own_tags(name, raw)
        found: re.Match[str] | None = None
        unclosed: set[str] = set()
        level, pos = 0, start
        while m := _next_tag(pattern, text, pos, end, unclosed):
            pos = m.end()
            if m["close"]:
                if raw:
                    space = _SPACE.match(text, pos, end)
                    after = space.end() if space else pos
                    if after == end or text[after] == "<":
                        found = m
                        break
                elif level == 0:
                    found = m
                    break
                else:
                    level -= 1
            elif not m["empty"]:
                level += 1
        self._spend((found.end() if found else end) - start, start)
        return found

    def _never_closed(self, name: str, start: int) -> bool:
        """Whether no closing tag of this name stands behind `start`; False where that takes a search to say."""
        if self._gaps:
            return False
        last = self._last_close.get(name)
        if last is None:
            last = self._last_close[name] = self.text.rfind("</" + name)
            self._spend(len(self.text) // 32, start)
        return last < start

    def _spend(self, characters: int, at: int) -> None:
        """Searching for closing tags has a budget, so that a text of nothing but tags stays linear."""
        self._allowance -= characters
        if self._allowance < 0:
            raise Refusal("decode.xml", "too many tags without their closing tags, or nested too deep", at)

    def unclosed(self, name: str, begin: int, start: int, end: int, view: View | None) -> _Element:
        """An element without a closing tag ends at a wrongly named one, before the next parameter, or at the end."""
        text = self.text
        known = view.properties if view is not None else {}
        pos = start
        skipped: set[str] = set()
        while m := _next_tag(_TAG, text, pos, end, skipped):
            pos = m.end()
            if m["open"] and m["open"] in known and m["open"] != name:
                at = len(text[: m.start()].rstrip())
                at = max(at, start)
                self.edits.append(Edit(Span(at, at), f"</{name}>", "rxml.unclosed-tag"))
                return _Element(name, begin, start, at, at)
            if m["close"]:  # inside its parent nothing else is open
                self.edits.append(Edit(Span(m.start(), m.end()), f"</{name}>", "rxml.mismatched-tag"))
                return _Element(name, begin, start, m.start(), m.end())
        at = max(len(text[:end].rstrip()), start)
        self.edits.append(Edit(Span(at, at), f"</{name}>", "rxml.unclosed-tag"))
        return _Element(name, begin, start, at, at)


@lru_cache(maxsize=512)
def _own_tags(name: str, raw: bool) -> re.Pattern[str]:
    """An element's own tags, and what hides them; raw text is hidden by CDATA alone, and its openers are text."""
    close = rf"<(?P<close>/)(?P<gap>[ \t\r\n]*){re.escape(name)}[ \t\r\n]*>"
    if raw:
        return re.compile(rf"(?P<skip><!\[CDATA\[)|{close}")
    return re.compile(rf"(?P<skip><!\[CDATA\[|<!--)|{close}|<{re.escape(name)}(?:\s[^<>]*)?(?P<empty>/?)>")


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
