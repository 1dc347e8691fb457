"""Text as a tree of elements: one pass, no recursion, every place kept, the schema at hand."""

from __future__ import annotations

import re
from collections.abc import Container

from ...arguments.rjson.refusal import Refusal
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
# the last closing tag of each name stands is found in one pass; and all other looking twice is paid
# from an allowance. A text that uses it up is refused.

_MAX_DECLARATION = 16_384  # a longer one is text: its end would cost too much at each of many
_ALLOWANCE = 1_000_000  # characters that may be looked at twice, and 16 times the text besides


class Lookahead:
    """One text, with everything known of places further on."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._absent: set[str] = set()  # ends of sections that stand nowhere further on
        self._closers: dict[str, int] | None = None  # name -> where its last closing tag begins
        self._allowance = 16 * len(text) + _ALLOWANCE
        self._last_word = (-1, -1)  # a place, and where the white space before it begins

    # short looks

    def find_end(self, mark: str, pos: int) -> int:
        """Return the offset after the next `mark`, -1 if there is none."""
        if mark in self._absent:
            return -1

        at = self._text.find(mark, pos)
        if at < 0:
            self._absent.add(mark)
            return -1

        return at + len(mark)

    def declaration_end(self, begin: int) -> int:
        # Each failure is paid for, since the next `<!` may look through the same text
        # again.
        declaration = None
        if self._allowance > 0:
            declaration = DOCTYPE.match(self._text, begin, begin + _MAX_DECLARATION)
        if declaration is None:
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

    def _spend(self, characters: int, at: int) -> None:
        if not self._affords(characters):
            raise Refusal("decode.xml", "too many tags without their closing tags", at)

    # lists inside text

    def wraps_list(self, element: Element) -> bool:
        # `<tags><tag>a</tag><tag>b</tag></tags>` is how people write a list, whatever its
        # items are called.
        begin = self.past_space(element.start)
        name = self._name_at(begin)
        if not name or name == element.name:
            return False

        count, end = self._like_elements(own_tags(name), begin)
        if count == 0:
            return False

        # What was looked at here is looked at again when the list is read.
        self._allowance -= end - begin
        if self._allowance < 0:
            return False
        return element.index == 0 and self._is_last_closer(element.name, end)

    def _name_at(self, pos: int) -> str:
        mark = MARK.match(self._text, pos)
        return mark["open"] or "" if mark else ""

    def _like_elements(self, tags: re.Pattern[str], pos: int) -> tuple[int, int]:
        # 0 if the tags of one do not balance: then nothing is known of the others.
        count = 0
        while opener := self._opener_at(tags, pos):
            count += 1
            end = self._behind_element(tags, opener)
            if end < 0:
                return 0, pos
            pos = self.past_space(end)

        return count, pos

    def _opener_at(self, tags: re.Pattern[str], pos: int) -> re.Match[str] | None:
        tag = tags.match(self._text, pos)
        if tag is None or tag["close"] or tag["skip"]:
            return None

        return tag

    def _behind_element(self, tags: re.Pattern[str], opener: re.Match[str]) -> int:
        pos = opener.end()
        level = _level_change(opener)
        while level and (tag := tags.search(self._text, pos)):
            pos = tag.end()
            level += _level_change(tag)

        return -1 if level else pos

    def _is_last_closer(self, name: str, pos: int) -> bool:
        # Several elements of one name are a list themselves, each of them an item.
        own = re.escape(name)
        closer = rf"</[ \t\r\n]*+{own}[ \t\r\n]*+>\s*+(?!<{own}[\s/>])"
        return re.compile(closer).match(self._text, pos) is not None

    # the end of raw text

    def plain_close(self, element: Element, parent: str) -> tuple[int, int] | None:
        """Return the first closing tag of an element, None where another one may be meant."""
        text, start, name = self._text, element.start, element.name
        at = text.find("</" + name, start)
        if at < 0:
            return None

        tail = CLOSE_TAIL.match(text, at + len("</") + len(name))
        if tail is None:
            return None
        if text.find("<", start, at) >= 0 and self._is_doubtful(start, at, name, parent):
            return None

        return at, tail.end()

    def _is_doubtful(self, start: int, end: int, name: str, parent: str) -> bool:
        # Its own name may open or close it, a section may hide the tag, and after its
        # parent's closing tag it can hardly go on.
        text = self._text
        if text.find("<" + name, start, end) >= 0 or DOUBT.search(text, start, end):
            return True

        return parent != "" and text.find("</" + parent, start, end) >= 0

    def raw_close(self, element: Element, parent: str) -> re.Match[str] | None:
        """Return the closing tag of raw text: its own, balanced if possible, that a tag or the end
        follows. None if it stays open. Raises Refusal if too much was looked at twice.
        """
        text, start = self._text, element.start
        if self.never_closed(element.name, start):
            return None

        # The hard way: every tag of its name, until they balance.
        search = _RawClose(self, text, start)
        for tag in raw_tags(element.name, parent).finditer(text, start):
            if tag.start() < search.pos:
                continue  # inside a section
            # Only the hope of a balanced one leads further; not at any price.
            if search.unbalanced is not None and not self._affords(tag.end() - search.pos):
                return search.unbalanced
            if search.decides(tag):
                return search.answer

        closer = search.unbalanced or search.unfollowed
        if closer is None:
            self._spend(len(text) - start, start)

        return closer


class _RawClose:
    # Fed the tags in order until `decides` is true; `answer` None then means that the text
    # stays open. If the tags run out, the next best are `unbalanced` and `unfollowed`.

    __slots__ = (
        "_ahead",
        "_level",
        "_outside",
        "_text",
        "answer",
        "pos",
        "unbalanced",
        "unfollowed",
    )

    def __init__(self, ahead: Lookahead, text: str, start: int) -> None:
        self._ahead = ahead
        self._text = text
        self._level = 0  # tags of its own name that are open
        self._outside = False  # the parent's closing tag was passed
        self.pos = start
        self.unfollowed: re.Match[str] | None = None  # balanced, but more text follows
        self.unbalanced: re.Match[str] | None = None  # followed by a tag, but not balanced
        self.answer: re.Match[str] | None = None

    def decides(self, tag: re.Match[str]) -> bool:
        self.pos = tag.end()
        if tag["skip"] is not None:
            end = self._ahead.find_end("]]>", self.pos)
            self.pos = max(end, self.pos)
            return False
        # Behind its parent's end, the next tag of its name opens another element.
        if tag["over"] is not None:
            self._outside = self._outside or self._level == 0
            return False

        return self._opener(tag) if tag["close"] is None else self._closer(tag)

    def _opener(self, tag: re.Match[str]) -> bool:
        if tag["empty"]:
            return False
        # Behind a closing tag that could be the right one, a new element begins.
        if self._begins_another():
            self.answer = self.unfollowed
            return True

        self._level += 1
        return False

    def _begins_another(self) -> bool:
        if self.unfollowed is not None:
            return True
        return self._outside and self._level == 0

    def _closer(self, tag: re.Match[str]) -> bool:
        is_followed = self._is_followed()
        if self._level:
            self._inner_closer(tag, is_followed)
            return False
        if is_followed:
            self.answer = tag
            return True
        self.unfollowed = self.unfollowed or tag
        return False

    def _inner_closer(self, tag: re.Match[str], is_followed: bool) -> None:
        self._level -= 1
        if is_followed and self.unbalanced is None:
            self.unbalanced = tag

    def _is_followed(self) -> bool:
        follower = self._ahead.past_space(self.pos)
        return follower == len(self._text) or self._text[follower] == "<"


def _level_change(tag: re.Match[str]) -> int:
    if tag["close"]:
        return -1

    return 0 if tag["empty"] or tag["skip"] else 1


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
