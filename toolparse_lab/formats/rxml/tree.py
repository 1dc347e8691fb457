"""Text as a tree of elements: one pass, no recursion, every place kept, the schema at hand."""

from __future__ import annotations

import re
from collections.abc import Container

from ...arguments.rjson.strict import Refusal
from ...arguments.schema.view import View
from ...core.types import Edit, Span
from .element import (
    BLANK,
    CLOSE_TAIL,
    CLOSER,
    DOCTYPE,
    DOUBT,
    ITEM,
    MARK,
    Element,
    Manner,
    own_tags,
    raw_tags,
)
from .shape import holds_items, item_view, kind_of, member_view, narrow

# How it works. The inside of a text parameter is content, whatever it looks like, so its closing
# tag cannot be found by parsing. Nearly always the first closing tag of its name is the one. Where
# something in between may be meant otherwise, the tags of that name are counted: the end is where
# they balance, and a tag or the end of the text follows; if no place has both, the first that has
# one of the two.
#
# Each question may look far ahead, and a text can be built that asks it at every character. Three
# things keep the sum linear: what a section ends with is looked for once if it is nowhere; where
# the last closing tag of each name is, is found in one pass; and all other looking twice is paid
# from an allowance. A text that uses it up is refused.

_MAX_DECLARATION = 16_384  # a longer one is text: its end would cost too much at each of many
_ALLOWANCE = 1_000_000  # characters that may be looked at twice, and 16 times the text besides


class Lookahead:
    """One text, with everything known of places further on. Nothing here changes anything."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._absent: set[str] = set()  # ends of sections that are nowhere further on
        self._closers: dict[str, int] | None = None  # name -> where its last closing tag begins
        self._allowance = 16 * len(text) + _ALLOWANCE
        self._last_word = (-1, -1)  # a place, and where the white space before it begins

    def find_end(self, mark: str, pos: int) -> int:
        """Return the offset after the next `mark`, -1 if there is none."""
        at = -1 if mark in self._absent else self._text.find(mark, pos)
        if at < 0:
            self._absent.add(mark)
            return -1
        return at + len(mark)

    def declaration_end(self, begin: int) -> int:
        declaration = None
        if self._allowance > 0:
            declaration = DOCTYPE.match(self._text, begin, begin + _MAX_DECLARATION)
        if declaration is None:
            # Each failure is paid for, since the next `<!` may look through the same text again.
            self._allowance -= _MAX_DECLARATION
            return -1
        return declaration.end()

    def past_space(self, pos: int) -> int:
        blank = BLANK.match(self._text, pos)
        return blank.end() if blank else pos

    def last_word(self, end: int) -> int:
        # The last answer is remembered, for many elements may end at one place.
        if self._last_word[0] != end:
            at = end
            while at and self._text[at - 1].isspace():
                at -= 1
            self._last_word = (end, at)
        return self._last_word[1]

    def never_closed(self, name: str, start: int) -> bool:
        # Closing tags inside sections count, too: rather is an element closed too seldom.
        if self._closers is None:
            self._closers = {tag[1]: tag.start() for tag in CLOSER.finditer(self._text)}
        return self._closers.get(name, -1) < start

    def _affords(self, characters: int) -> bool:
        self._allowance -= characters
        return self._allowance >= 0

    def wraps_list(self, element: Element) -> bool:
        """Return True if nothing but elements of one name are inside an element.

        `<tags><tag>a</tag><tag>b</tag></tags>` is how people write a list, whatever its items are
        called.
        """
        begin = pos = self.past_space(element.start)
        mark = MARK.match(self._text, begin)
        name = mark["open"] if mark else ""
        if not name or name == element.name:
            return False

        tags = own_tags(name)
        while (tag := tags.match(self._text, pos)) and not (tag["close"] or tag["skip"]):
            end = tag.end()
            level = 0 if tag["empty"] else 1
            while level and (tag := tags.search(self._text, end)):
                end = tag.end()
                level += -1 if tag["close"] else not (tag["empty"] or tag["skip"])
            if level:
                return False  # where the tags of one do not balance, nothing is known of the others
            pos = self.past_space(end)

        # What was looked at here is looked at again when the list is read.
        if pos == begin or not self._affords(pos - begin) or element.index:
            return False
        # Several elements of one name are a list themselves, each of them an item.
        own = re.escape(element.name)
        closer = rf"</[ \t\r\n]*+{own}[ \t\r\n]*+>\s*+(?!<{own}[\s/>])"
        return re.compile(closer).match(self._text, pos) is not None

    def plain_close(self, element: Element, parent: str) -> tuple[int, int] | None:
        """Return the first closing tag of an element, None where another one may be the right one.

        parent: the name of the element around it, "" for none.
        """
        text, start, name = self._text, element.start, element.name
        at = text.find("</" + name, start)
        tail = CLOSE_TAIL.match(text, at + len("</") + len(name)) if at >= 0 else None
        if tail is None:
            return None
        # Its own name may open or close it, a section may hide the tag, and after its parent's
        # closing tag it can hardly go on.
        if text.find("<", start, at) >= 0 and (
            text.find("<" + name, start, at) >= 0
            or DOUBT.search(text, start, at)
            or (parent and text.find("</" + parent, start, at) >= 0)
        ):
            return None
        return at, tail.end()

    def raw_close(self, element: Element, parent: str) -> re.Match[str] | None:
        """Return the closing tag of raw text: its own, balanced if possible, that a tag or the end
        follows. None if it stays open. Raises Refusal if too much was looked at twice.
        """
        text, start = self._text, element.start
        if self.never_closed(element.name, start):
            return None

        level, pos = 0, start  # tags of its own name that are open; the end of the last one
        outside = False  # the parent's closing tag was passed
        unfollowed: re.Match[str] | None = None  # balanced, but more text follows
        unbalanced: re.Match[str] | None = None  # followed by a tag, but not balanced
        for tag in raw_tags(element.name, parent).finditer(text, start):
            if tag.start() < pos:
                continue  # inside a section
            # Only the hope of a balanced one leads further; not at any price.
            if unbalanced is not None and not self._affords(tag.end() - pos):
                return unbalanced
            pos = tag.end()
            if tag["skip"] is not None:
                pos = max(self.find_end("]]>", pos), pos)
            elif tag["over"] is not None:
                outside = outside or level == 0
            elif tag["close"] is None:
                if tag["empty"]:
                    continue
                # After a closing tag that could be the right one, or after its parent's end,
                # another element begins.
                if unfollowed is not None or (outside and level == 0):
                    return unfollowed
                level += 1
            else:
                after = self.past_space(pos)
                is_followed = after == len(text) or text[after] == "<"
                if level:
                    level -= 1
                    if is_followed and unbalanced is None:
                        unbalanced = tag
                elif is_followed:
                    return tag
                else:
                    unfollowed = unfollowed or tag

        closer = unbalanced or unfollowed
        if closer is None and not self._affords(len(text) - start):
            raise Refusal("decode.xml", "too many tags without their closing tags", start)
        return closer


# How it works. One regular expression finds the next mark; everything up to it is a piece of text
# of `top`, the innermost element that is open. An opening tag makes an element whose view is looked
# up at once, because it decides how to go on: what the schema calls a string is a leaf, its inside
# is not looked into, and the pass goes on after its closing tag. Any other element becomes `top`.
#
# The pass never goes back. An element that lost its closing tag is closed where the schema leaves
# no other place: before the next parameter that only its parent knows, at its parent's closing tag,
# or at the end of a text that is known to be whole. Such a repair may be wrong only in a way that
# the reader notices: it reads the repaired text again, strictly, and compares.

SECTION_ENDS = {"<!--": "-->", "<![CDATA[": "]]>", "<?": "?>"}
_KINDS = {"<!--": "comment", "<![CDATA[": "cdata", "<?": "instruction"}
CODE = frozenset(("script", "style"))


def read_tree(
    text: str, view: View | None, manner: Manner, *, wrapper: str | None = None
) -> tuple[Element, list[Edit]]:
    """Return the root, which spans the whole text, and the repairs. Raises Refusal. wrapper: an
    element of that name directly in the root has the root's value.
    """
    builder = _Builder(text, view, manner, wrapper)
    root = builder.build()
    builder.edits.sort(key=lambda edit: (edit.span.start, edit.span.end))
    return root, builder.edits


class _Builder:
    def __init__(self, text: str, view: View | None, manner: Manner, wrapper: str | None) -> None:
        self.text = text
        self.manner = manner
        self.wrapper = wrapper
        self.edits: list[Edit] = []
        self.root = Element("", 0, 0, len(text), len(text), view, None)
        self.top = self.root
        self.open_names: dict[str, int] = {}  # name -> elements of that name that are open
        self.ahead = Lookahead(text)

    def build(self) -> Element:
        text, behind, pos = self.text, 0, 0
        search = MARK.search
        while mark := search(text, pos):
            start = mark.start()
            skip = mark["skip"]
            if skip is not None:
                end = self.section_end(skip, mark)
                if end < 0:
                    pos = mark.end()
                    continue
                self.piece(behind, start)
                self.top.pieces.append((start, end, _KINDS.get(skip, "doctype")))
            elif mark["close"]:
                self.piece(behind, start)
                end = self.close(mark)
            else:
                self.piece(behind, start)
                end = self.open(mark)

            behind = pos = end

        self.piece(behind, len(text))
        while self.top is not self.root:
            self.refuse_unclosed(self.top)
            self.insert_close(self.top, len(text))
        return self.root

    def piece(self, start: int, end: int) -> None:
        if end > start:
            self.top.pieces.append((start, end, "text"))

    def section_end(self, skip: str, mark: re.Match[str]) -> int:
        # -1 if it is text.
        closer = SECTION_ENDS.get(skip)
        if closer is None:
            return self.ahead.declaration_end(mark.start())

        end = self.ahead.find_end(closer, mark.end())
        if end < 0 and self.manner.loose and closer != "?>":
            raise Refusal("decode.xml", f"{skip} is not closed by {closer}", mark.start())

        return end

    # opening

    def open(self, tag: re.Match[str]) -> int:
        # Elements that need no look inside are ended at once. Returns the offset to go on at.
        name, start = tag["open"], tag.end()
        if self.top is not self.root and self.manner.repair:
            self.end_before(name, tag.start())
        element = self.new_element(tag, name)
        view = element.view
        if tag["empty"]:
            element.raw = kind_of(view) == "text"
            return start
        if view is None and name in self.manner.void:
            closer = re.compile(rf"\s*+</{re.escape(name)}\s*+>").match(self.text, start)
            element.after = closer.end() if closer else start
            return element.after

        # The short way of most elements: text and the closing tag, without a search by pattern.
        own = f"</{name}>"
        inner = self.text.find("<", start)
        is_plain = inner >= 0 and self.text.startswith(own, inner)
        if self.is_raw(element, is_plain):
            element.raw = True
            return self.leaf(element)
        if not is_plain:
            self.top = element
            self.open_names[name] = self.open_names.get(name, 0) + 1
            return start

        if inner > start:
            element.pieces.append((start, inner, "text"))
        element.end, element.after = inner, inner + len(own)
        return element.after

    def new_element(self, tag: re.Match[str], name: str) -> Element:
        top, start = self.top, tag.end()
        if top is self.root and name == self.wrapper:
            view = narrow(top.view)
        else:
            if top.lists is None:
                top.lists = holds_items(top.view, top.index, name)
            view = member_view(top.view, top.index, top.lists, name, len(top.children))

        count = top.counts.get(name, 0)
        element = Element(
            name,
            tag.start(),
            start,
            start,
            start,
            view,
            top,
            0 if top.lists else count,
            top.depth + 1,
            attributes=tag.span("attributes"),
        )
        if element.depth > self.manner.max_depth:
            message = f"elements nest deeper than {self.manner.max_depth}"
            raise Refusal("decode.too-deep", message, element.begin)

        # Only now: an element that is refused was never there.
        top.counts[name] = count + 1
        top.children.append(element)
        return element

    def is_raw(self, element: Element, is_plain: bool) -> bool:
        view = element.view
        kind = kind_of(view)
        if kind == "text":
            return True
        if kind == "array":
            # One element an item is how lists are written; one element with the items inside, too.
            item_is_text = kind_of(item_view(view, element.index)) == "text"
            # <item> and numbers are the usual names of items. Any other has to be that of all.
            return item_is_text and (
                is_plain
                or not (ITEM.match(self.text, element.start) or self.ahead.wraps_list(element))
            )
        if view is None:
            element.code = self.manner.code and element.name in CODE

        return element.code

    # text whose markup is content

    def leaf(self, element: Element) -> int:
        parent = element.parent.name if element.parent is not None else ""
        # The first closing tag, as nearly always; else the tags must be counted.
        place = self.ahead.plain_close(element, parent)
        if place is not None:
            element.end, element.after = place
            return element.after

        closer = self.ahead.raw_close(element, parent)
        if closer is None:
            return self.unclosed_leaf(element)

        self.gap(closer, element.name)
        element.end, element.after = closer.span()
        return element.after

    def unclosed_leaf(self, element: Element) -> int:
        self.refuse_unclosed(element)
        # The names that can end the text: its own may well be in it.
        siblings = self.sibling_names(element)
        inside: dict[str, int] = {}  # name -> elements of that name that are open in the text
        pos = element.start
        while mark := MARK.search(self.text, pos):
            pos = mark.end()
            if mark["skip"] is not None:
                # In the loose manner, sections inside raw text are content like any other.
                if not self.manner.loose:
                    pos = max(pos, self.section_end(mark["skip"], mark))
                continue

            name = mark["open"]
            if not name:
                if inside.get(mark["closed"], 0):
                    inside[mark["closed"]] -= 1
                elif self.open_names.get(mark["closed"], 0):
                    return self.insert_close(element, mark.start())
                else:
                    self.replace_close(element, mark)
                    element.end, element.after = mark.span()
                    return pos
            elif name in siblings and name != element.name:
                return self.insert_close(element, mark.start())
            elif not mark["empty"]:
                inside[name] = inside.get(name, 0) + 1

        return self.insert_close(element, len(self.text))

    def sibling_names(self, element: Element) -> Container[str]:
        # Names that a text can hardly go beyond.
        view = narrow(element.parent.view) if element.parent is not None else None
        return view.properties if view is not None else ()

    # closing

    def close(self, tag: re.Match[str]) -> int:
        # With repair, a tag of an outer element ends all inside it. A tag of no open
        # element is for the innermost one, if that has none of its own further on.
        name, top = tag["closed"], self.top
        if not self.manner.repair and (top is self.root or top.name != name):
            wrong = "closes nothing"
            if top is not self.root:
                wrong = f"stands where </{top.name}> is due"
            raise Refusal("decode.xml", f"</{name}> {wrong}", tag.start())
        if self.open_names.get(name, 0):
            # All elements inside the one that is closed lost their closing tags.
            while self.top.name != name:
                self.insert_close(self.top, tag.start())
            self.gap(tag, name)
            self.pop(*tag.span())
        elif top is not self.root and self.ahead.never_closed(top.name, tag.end()):
            self.replace_close(top, tag)
            self.pop(*tag.span())
        else:
            self.edits.append(Edit(Span(*tag.span()), "", "rxml.stray-close-tag"))

        return tag.end()

    def replace_close(self, element: Element, tag: re.Match[str]) -> None:
        edit = Edit(Span(*tag.span()), f"</{element.name}>", "rxml.mismatched-tag")
        self.edits.append(edit)

    def pop(self, end: int, after: int) -> None:
        top = self.top
        top.end, top.after = end, after
        self.open_names[top.name] -= 1
        self.top = top.parent or self.root

    def gap(self, tag: re.Match[str], name: str) -> None:
        if not tag["gap"] or self.manner.loose:
            return
        if not self.manner.repair:
            raise Refusal("decode.xml", f"white space inside </{name}>", tag.start())

        self.edits.append(Edit(Span(*tag.span("gap")), "", "rxml.close-tag-space"))

    def end_before(self, name: str, begin: int) -> None:
        # An element ends here if only its parent knows the name that begins at `begin`.
        while (top := self.top) is not self.root:
            inner = narrow(top.view)
            if (
                top.name == name
                or name not in self.sibling_names(top)
                or (inner is not None and name in inner.properties)
                or not self.ahead.never_closed(top.name, begin)
            ):
                return
            self.refuse_unclosed(top)
            self.insert_close(top, begin)

    def refuse_unclosed(self, element: Element) -> None:
        if not self.manner.repair:
            raise Refusal("decode.xml", f"<{element.name}> is not closed", element.begin)
        if not self.manner.closed:
            message = f"the text ends inside <{element.name}>"
            raise Refusal("decode.truncated-value", message, element.begin)

    def insert_close(self, element: Element, before: int) -> int:
        # After the last word: white space in front of `before` stays outside.
        at = max(self.ahead.last_word(before), element.start)
        self.edits.append(Edit(Span(at, at), f"</{element.name}>", "rxml.unclosed-tag"))
        # A leaf is never on top, and has no pieces.
        if element is self.top:
            pieces = element.pieces
            while pieces and pieces[-1][0] >= at:
                pieces.pop()
            if pieces and pieces[-1][1] > at:
                pieces[-1] = (pieces[-1][0], at, pieces[-1][2])
            self.pop(at, at)
        else:
            element.end = element.after = at

        return at
