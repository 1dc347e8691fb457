"""Text as a tree of elements: one pass, no recursion, every place kept, the schema at hand while it
reads.

A `<` that begins no tag is text. Repairs are edits of the raw text. Without `repair`, a text that
would need one is refused.
"""

from __future__ import annotations

import re
from collections.abc import Container

from ...arguments.rjson.refusal import Refusal
from ...arguments.schema.view import View
from ...core.types import Edit, Span
from .element import Element, Manner
from .lookahead import Lookahead
from .marks import ITEM, MARK
from .shape import holds_items, item_view, kind_of, member_view, narrow

# How it works. One regular expression finds the next mark; everything up to it is a piece of text
# of `top`, the innermost element that is open. An opening tag makes an element whose view is looked
# up at once, because it decides how to go on: what the schema calls a string is a leaf, its inside
# is not looked into, and the pass goes on behind its closing tag. Any other element becomes `top`.
#
# The pass never goes back. An element that lost its closing tag is closed where the schema leaves
# no other place: before the next parameter that only its parent knows, at its parent's closing tag,
# or at the end of a text that is known to be whole. Such a repair may be wrong only in a way that
# the reader notices: it reads the repaired text again, strictly, and compares.

_ENDS = {"<!--": "-->", "<![CDATA[": "]]>", "<?": "?>"}
_KINDS = {"<!--": "comment", "<![CDATA[": "cdata", "<?": "instruction"}
_CODE = frozenset(("script", "style"))


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
        self.finish()
        return self.root

    def piece(self, start: int, end: int) -> None:
        if end > start:
            self.top.pieces.append((start, end, "text"))

    def section_end(self, skip: str, mark: re.Match[str]) -> int:
        # -1 if it is text.
        closer = _ENDS.get(skip)
        if closer is None:
            return self.ahead.declaration_end(mark.start())

        end = self.ahead.find_end(closer, mark.end())
        if end < 0 and self.manner.loose and closer != "?>":
            raise Refusal("decode.xml", f"{skip} is not closed by {closer}", mark.start())

        return end

    # opening

    def open(self, tag: re.Match[str]) -> int:
        # Elements that need no look inside are ended at once. Returns the offset to go on
        # at.
        name, start = tag["open"], tag.end()
        if self.top is not self.root and self.manner.repair:
            self.end_before(name, tag.start())
        element = self.new_element(tag, name)
        view = element.view
        if tag["empty"]:
            element.raw = kind_of(view) == "text"
            return start
        if view is None and name in self.manner.void:
            return self.void_end(element)

        # The short way of most elements: text and the closing tag, without a search by pattern.
        closer = f"</{name}>"
        inner = self.text.find("<", start)
        is_plain = inner >= 0 and self.text.startswith(closer, inner)
        if self.is_raw(element, is_plain):
            element.raw = True
            return self.leaf(element)
        if not is_plain:
            self.top = element
            self.open_names[name] = self.open_names.get(name, 0) + 1
            return start

        if inner > start:
            element.pieces.append((start, inner, "text"))
        element.end, element.after = inner, inner + len(closer)
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

    def void_end(self, element: Element) -> int:
        own = re.escape(element.name)
        closer = re.compile(rf"\s*+</{own}\s*+>").match(self.text, element.start)
        if closer:
            element.after = closer.end()

        return element.after

    def is_raw(self, element: Element, is_plain: bool) -> bool:
        view = element.view
        kind = kind_of(view)
        if kind == "text":
            return True
        if kind == "array":
            # One element an item is how lists are written; one element with the items inside, too.
            item_is_text = kind_of(item_view(view, element.index)) == "text"
            return item_is_text and (is_plain or not self.holds_text_items(element))
        if view is None:
            element.code = self.manner.code and element.name in _CODE

        return element.code

    def holds_text_items(self, element: Element) -> bool:
        # <item> and numbers are the usual names of items. Any other name has to be that of
        # all.
        if ITEM.match(self.text, element.start):
            return True
        return self.ahead.wraps_list(element)

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
        # The names that can end the text: its own may well stand in it.
        siblings = self.sibling_names(element)
        inside: dict[str, int] = {}  # name -> elements of that name that are open in the text
        pos = element.start
        while mark := MARK.search(self.text, pos):
            pos = mark.end()
            if mark["skip"] is not None:
                pos = max(pos, self.skipped_end(mark))
                continue

            name = mark["open"]
            if not name:
                if not _closes_inside(inside, mark["closed"]):
                    return self.end_at_wrong_close(element, mark)
            elif name in siblings and name != element.name:
                return self.insert_close(element, mark.start())
            elif not mark["empty"]:
                inside[name] = inside.get(name, 0) + 1

        return self.insert_close(element, len(self.text))

    def end_at_wrong_close(self, element: Element, mark: re.Match[str]) -> int:
        if self.open_names.get(mark["closed"], 0):
            return self.insert_close(element, mark.start())

        self.replace_close(element, mark)
        element.end, element.after = mark.span()
        return mark.end()

    def sibling_names(self, element: Element) -> Container[str]:
        # Names that a text can hardly go beyond.
        view = narrow(element.parent.view) if element.parent is not None else None
        return view.properties if view is not None else ()

    def skipped_end(self, mark: re.Match[str]) -> int:
        # In the loose manner, sections inside raw text are content like any other.
        return -1 if self.manner.loose else self.section_end(mark["skip"], mark)

    # closing

    def close(self, tag: re.Match[str]) -> int:
        # With repair, a tag of an outer element ends all inside it. A tag of no open
        # element is for the innermost one, if that has none of its own further on.
        name, top = tag["closed"], self.top
        if top is not self.root and top.name == name:
            self.gap(tag, name)
            self.pop(*tag.span())
        elif not self.manner.repair:
            raise self.wrong_close(tag)
        elif self.open_names.get(name, 0):
            self.close_outer(tag, name)
        elif top is not self.root and self.ahead.never_closed(top.name, tag.end()):
            self.replace_close(top, tag)
            self.pop(*tag.span())
        else:
            self.edits.append(Edit(Span(*tag.span()), "", "rxml.stray-close-tag"))

        return tag.end()

    def close_outer(self, tag: re.Match[str], name: str) -> None:
        # All elements inside the one that is closed lost their closing tags.
        while self.top.name != name:
            self.insert_close(self.top, tag.start())

        self.gap(tag, name)
        self.pop(*tag.span())

    def wrong_close(self, tag: re.Match[str]) -> Refusal:
        name, top = tag["closed"], self.top
        if top is self.root:
            return Refusal("decode.xml", f"</{name}> closes nothing", tag.start())

        return Refusal("decode.xml", f"</{name}> stands where </{top.name}> is due", tag.start())

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
        while self.is_sibling(self.top, name) and self.ahead.never_closed(self.top.name, begin):
            self.refuse_unclosed(self.top)
            self.insert_close(self.top, begin)

    def is_sibling(self, element: Element, name: str) -> bool:
        if element is self.root or element.name == name:
            return False
        if name not in self.sibling_names(element):
            return False

        inner = narrow(element.view)
        return inner is None or name not in inner.properties

    def finish(self) -> None:
        while self.top is not self.root:
            self.refuse_unclosed(self.top)
            self.insert_close(self.top, len(self.text))

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
            self.cut_pieces(element, at)
            self.pop(at, at)
        else:
            element.end = element.after = at

        return at

    def cut_pieces(self, element: Element, end: int) -> None:
        # The end is never before the element's own start.
        pieces = element.pieces
        while pieces and pieces[-1][0] >= end:
            pieces.pop()
        # The last one may reach over the end, and is cut there.
        if pieces and pieces[-1][1] > end:
            start, _, kind = pieces[-1]
            pieces[-1] = (start, end, kind)


def _closes_inside(inside: dict[str, int], name: str) -> bool:
    if not inside.get(name, 0):
        return False

    inside[name] -= 1
    return True
