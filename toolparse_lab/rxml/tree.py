"""Text as a tree of elements: one pass, no recursion, every place kept, the schema at hand while it reads.

What the schema calls a string is a leaf whose inside is text, whatever it looks like. A `<` that begins no tag is
text. Repairs are edits of the raw text; without `repair`, what would need one is refused.
"""

from __future__ import annotations

import re

from ..rjson.damage import Refusal
from ..schema.view import View
from ..types import Edit, Span
from .element import Element, Manner
from .marks import BLANK, CLOSE_TAIL, CLOSER, DOCTYPE, DOUBT, ITEM, MARK, own_tags, raw_tags
from .shape import holds_items, item_view, kind_of, member_view, narrow

_MAX_DECLARATION = 16_384  # a longer one is text: looking for its end would cost too much at each of many
_ENDS = {"<!--": "-->", "<![CDATA[": "]]>", "<?": "?>"}
_KINDS = {"<!--": "comment", "<![CDATA[": "cdata", "<?": "instruction"}
_CODE = frozenset(("script", "style"))


def read_tree(
    text: str, view: View | None, manner: Manner, *, wrapper: str | None = None
) -> tuple[Element, list[Edit]]:
    """The root, which spans the whole text, and the repairs. Raises Refusal.

    wrapper: an element of that name directly in the root stands for the root's value instead of a member.
    """
    builder = _Builder(text, view, manner, wrapper)
    root = builder.build()
    builder.edits.sort(key=lambda e: (e.span.start, e.span.end))
    return root, builder.edits


class _Builder:
    """One text under way."""

    def __init__(self, text: str, view: View | None, manner: Manner, wrapper: str | None) -> None:
        self.text = text
        self.manner = manner
        self.wrapper = wrapper
        self.edits: list[Edit] = []
        self.root = Element("", 0, 0, len(text), len(text), view, None)
        self.top = self.root
        self.open_names: dict[str, int] = {}
        self.unended: set[str] = set()  # what ends a section and stands nowhere further on
        self._closers: dict[str, int] | None = None  # name -> where its last closing tag begins
        self._allowance = 16 * len(text) + 1_000_000  # characters that may be looked at twice
        self._last_word = (-1, -1)  # a place, and where the white space before it begins

    def build(self) -> Element:
        text, done, pos = self.text, 0, 0
        search = MARK.search
        while m := search(text, pos):
            start = m.start()
            skip = m["skip"]
            if skip is not None:
                end = self.section_end(skip, m)
                if end < 0:
                    pos = m.end()
                    continue
                self.piece(done, start)
                self.top.pieces.append((start, end, _KINDS.get(skip, "doctype")))
            elif m["close"]:
                self.piece(done, start)
                end = self.close(m)
            else:
                self.piece(done, start)
                end = self.open(m)
            done = pos = end
        self.piece(done, len(text))
        self.finish()
        return self.root

    def piece(self, start: int, end: int) -> None:
        if end > start:
            self.top.pieces.append((start, end, "text"))

    def section_end(self, skip: str, m: re.Match[str]) -> int:
        """Where a comment, CDATA section, instruction or declaration ends; -1 where it is text."""
        mark = _ENDS.get(skip)
        if mark is None:
            found = DOCTYPE.match(self.text, m.start(), m.start() + _MAX_DECLARATION) if self._allowance > 0 else None
            if found is None:
                self._allowance -= _MAX_DECLARATION
            return found.end() if found else -1
        end = self.find_end(mark, m.end())
        if end < 0 and self.manner.loose and mark != "?>":
            raise Refusal("decode.xml", f"{skip} is not closed by {mark}", m.start())
        return end

    def find_end(self, mark: str, pos: int) -> int:
        if mark in self.unended:
            return -1
        at = self.text.find(mark, pos)
        if at < 0:
            self.unended.add(mark)
            return -1
        return at + len(mark)

    # opening

    def open(self, m: re.Match[str]) -> int:
        name, begin, start = m["open"], m.start(), m.end()
        if self.top is not self.root and self.manner.repair:
            self.end_before(name, begin)
        top = self.top
        view = self.member_view(top, name)
        count = top.counts.get(name, 0)
        element = Element(
            name, begin, start, start, start, view, top, 0 if top.lists else count, top.depth + 1,
            attributes=m.span("attributes"),
        )  # fmt: skip
        if element.depth > self.manner.max_depth:
            raise Refusal("decode.too-deep", f"elements nest deeper than {self.manner.max_depth}", begin)
        top.counts[name] = count + 1
        top.children.append(element)
        kind = kind_of(view)
        raw = kind == "text" or (kind == "array" and kind_of(item_view(view, element.index)) == "text")
        if m["empty"]:
            element.raw = kind == "text"
            return start
        if view is None and name in self.manner.void:
            close = re.compile(rf"\s*+</{re.escape(name)}\s*+>").match(self.text, start)
            element.after = close.end() if close else start
            return element.after
        closer = f"</{name}>"
        inner = self.text.find("<", start)
        plain = self.text.startswith(closer, inner) if inner >= 0 else False  # nothing but text inside
        if raw and kind == "array" and not plain and (ITEM.match(self.text, start) or self.wraps_list(element)):
            raw = False
        if not raw and view is None and self.manner.code and name in _CODE:
            raw = element.code = True
        if raw:
            element.raw = True
            return self.leaf(element)
        if plain:
            if inner > start:
                element.pieces.append((start, inner, "text"))
            element.end, element.after = inner, inner + len(closer)
            return element.after
        self.top = element
        self.open_names[name] = self.open_names.get(name, 0) + 1
        return start

    def member_view(self, top: Element, name: str) -> View | None:
        """What the schema says of an element of this name directly inside `top`."""
        if top is self.root and name == self.wrapper:
            return narrow(top.view)
        if top.lists is None:
            top.lists = holds_items(top.view, top.index, name)
        return member_view(top.view, top.index, top.lists, name, len(top.children))

    def wraps_list(self, element: Element) -> bool:
        """Nothing but two or more elements of one name stand inside: `<tags><tag>a</tag><tag>b</tag></tags>`."""
        text, name = self.text, element.name
        pos = self.past_space(element.start)
        first = MARK.match(text, pos)
        if not first or not first["open"] or first["open"] == name:
            return False
        pattern = own_tags(first["open"])
        count = 0
        begin = pos
        while (m := pattern.match(text, pos)) and not m["close"] and m["skip"] is None:
            count += 1
            pos = m.end()
            level = 0 if m["empty"] else 1
            while level and (m := pattern.search(text, pos)):
                pos = m.end()
                level += -1 if m["close"] else 0 if m["empty"] or m["skip"] else 1
            if level:
                return False
            pos = self.past_space(pos)
        self._allowance -= pos - begin
        if count < 2 or self._allowance < 0:
            return False
        own = re.escape(name)
        end = re.compile(rf"</[ \t\r\n]*+{own}[ \t\r\n]*+>\s*+(?!<{own}[\s/>])").match(text, pos)
        return end is not None and element.index == 0

    def past_space(self, pos: int) -> int:
        m = BLANK.match(self.text, pos)
        return m.end() if m else pos

    # text whose markup is content

    def leaf(self, element: Element) -> int:
        """Ends an element whose inside is text; gives the position behind it."""
        if not self.plain_close(element):
            m = self.raw_close(element)
            if m is None:
                return self.unclosed_leaf(element)
            self.gap(m, element.name)
            element.end, element.after = m.start(), m.end()
        return element.after

    def plain_close(self, element: Element) -> bool:
        """Ends an element at its first closing tag where nothing else can be meant, which is nearly always so."""
        text, start, name = self.text, element.start, element.name
        at = text.find("</" + name, start)
        tail = CLOSE_TAIL.match(text, at + 2 + len(name)) if at >= 0 else None
        if tail is None:
            return False
        if text.find("<", start, at) >= 0:
            parent = element.parent
            if text.find("<" + name, start, at) >= 0 or DOUBT.search(text, start, at):
                return False
            if parent is not None and parent is not self.root and text.find("</" + parent.name, start, at) >= 0:
                return False
        element.end, element.after = at, tail.end()
        return True

    def raw_close(self, element: Element) -> re.Match[str] | None:
        """The closing tag of raw text: its own, balanced if possible, that a tag or the end follows.

        Behind the parent's closing tag an opening tag of its own is another element, not content.
        """
        text, start = self.text, element.start
        if self.never_closed(element.name, start):
            return None
        parent = element.parent.name if element.parent is not None and element.parent is not self.root else ""
        level = 0
        plain: re.Match[str] | None = None  # balanced, but more text follows
        first: re.Match[str] | None = None  # followed by a tag, but not balanced
        outside = False
        pos = start
        for m in raw_tags(element.name, parent).finditer(text, start):
            if m.start() < pos:
                continue
            if first is not None:
                self._allowance -= m.end() - pos
                if self._allowance < 0:
                    return first
            pos = m.end()
            if m["skip"] is not None:
                end = self.find_end("]]>", pos)
                pos = end if end >= 0 else pos
            elif m["over"] is not None:
                outside = outside or level == 0
            elif m["close"] is None:
                if m["empty"]:
                    continue
                if plain is not None or (outside and level == 0):
                    return plain
                level += 1
            else:
                follows = self.past_space(pos)
                ends = follows == len(text) or text[follows] == "<"
                if level == 0:
                    if ends:
                        return m
                    plain = plain or m
                else:
                    level -= 1
                    if ends:
                        first = first or m
        found = first or plain
        if found is None:
            self.spend(len(text) - start, start)
        return found

    def unclosed_leaf(self, element: Element) -> int:
        """Raw text without a closing tag ends before the next parameter, at a wrong closing tag, or at the end."""
        text, name, start = self.text, element.name, element.start
        self.refuse_unclosed(element)
        parent = element.parent
        view = narrow(parent.view) if parent is not None else None
        known = view.properties if view is not None else {}
        inner: dict[str, int] = {}
        pos = start
        while m := MARK.search(text, pos):
            pos = m.end()
            if m["skip"] is not None:
                end = self.section_end(m["skip"], m) if not self.manner.loose else -1
                pos = end if end >= 0 else pos
            elif m["open"]:
                if m["open"] in known and m["open"] != name:
                    return self.insert_close(element, m.start())
                if not m["empty"]:
                    inner[m["open"]] = inner.get(m["open"], 0) + 1
            elif inner.get(m["closed"], 0):
                inner[m["closed"]] -= 1
            elif self.open_names.get(m["closed"], 0):
                return self.insert_close(element, m.start())
            else:
                self.edits.append(Edit(Span(m.start(), m.end()), f"</{name}>", "rxml.mismatched-tag"))
                element.end, element.after = m.start(), m.end()
                return m.end()
        return self.insert_close(element, len(text))

    # closing

    def close(self, m: re.Match[str]) -> int:
        name, top = m["closed"], self.top
        if top is not self.root and top.name == name:
            self.gap(m, name)
            self.pop(m.start(), m.end())
            return m.end()
        if not self.manner.repair:
            if top is self.root:
                raise Refusal("decode.xml", f"</{name}> closes nothing", m.start())
            raise Refusal("decode.xml", f"</{name}> stands where </{top.name}> is due", m.start())
        if self.open_names.get(name, 0):
            while self.top.name != name:
                self.insert_close(self.top, m.start())
            self.gap(m, name)
            self.pop(m.start(), m.end())
        elif top is not self.root and self.never_closed(top.name, m.end()):
            self.edits.append(Edit(Span(m.start(), m.end()), f"</{top.name}>", "rxml.mismatched-tag"))
            self.pop(m.start(), m.end())
        else:
            self.edits.append(Edit(Span(m.start(), m.end()), "", "rxml.stray-close-tag"))
        return m.end()

    def pop(self, end: int, after: int) -> None:
        top = self.top
        top.end, top.after = end, after
        self.open_names[top.name] -= 1
        self.top = top.parent or self.root

    def gap(self, m: re.Match[str], name: str) -> None:
        """White space before the name in a closing tag."""
        if not m["gap"] or self.manner.loose:
            return
        if not self.manner.repair:
            raise Refusal("decode.xml", f"white space inside </{name}>", m.start())
        self.edits.append(Edit(Span(m.start("gap"), m.end("gap")), "", "rxml.close-tag-space"))

    def end_before(self, name: str, begin: int) -> None:
        """An element without a closing tag ends before the next parameter that only its parent knows."""
        while (top := self.top) is not self.root and top.parent is not None and top.name != name:
            outer, inner = narrow(top.parent.view), narrow(top.view)
            if outer is None or name not in outer.properties or (inner is not None and name in inner.properties):
                return
            if not self.never_closed(top.name, begin):
                return
            self.refuse_unclosed(top)
            self.insert_close(top, begin)

    def finish(self) -> None:
        """What is still open at the end of the text."""
        while self.top is not self.root:
            self.refuse_unclosed(self.top)
            self.insert_close(self.top, len(self.text))

    def refuse_unclosed(self, element: Element) -> None:
        if not self.manner.repair:
            raise Refusal("decode.xml", f"<{element.name}> is not closed", element.begin)
        if not self.manner.closed:
            raise Refusal("decode.truncated-value", f"the text ends inside <{element.name}>", element.begin)

    def insert_close(self, element: Element, before: int) -> int:
        """Closes an element behind the last word before `before`; gives the position behind what it took."""
        at = max(self.last_word(before), element.start)
        self.edits.append(Edit(Span(at, at), f"</{element.name}>", "rxml.unclosed-tag"))
        if element is self.top:
            rest = [p for p in element.pieces if p[0] >= at]
            if rest:
                del element.pieces[-len(rest) :]
            if element.pieces and element.pieces[-1][1] > at:
                a, _, kind = element.pieces[-1]
                element.pieces[-1] = (a, at, kind)
            self.pop(at, at)
        else:
            element.end = element.after = at
        return at

    def last_word(self, end: int) -> int:
        """Where the white space before `end` begins; remembered, for many elements may end at one place."""
        if self._last_word[0] != end:
            at = end
            while at and self.text[at - 1].isspace():
                at -= 1
            self._last_word = (end, at)
        return self._last_word[1]

    def never_closed(self, name: str, start: int) -> bool:
        """Whether no closing tag of this name stands behind `start`."""
        if self._closers is None:
            self._closers = {m[1]: m.start() for m in CLOSER.finditer(self.text)}
        return self._closers.get(name, -1) < start

    def spend(self, characters: int, at: int) -> None:
        """Looking ahead has a budget, so that a text of nothing but tags stays linear."""
        self._allowance -= characters
        if self._allowance < 0:
            raise Refusal("decode.xml", "too many tags without their closing tags", at)
