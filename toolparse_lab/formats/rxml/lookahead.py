"""Looking ahead in a text of elements: where an element or a section ends, before it is read.

Nothing here changes anything. The tree decides the handling of the answers.
"""

from __future__ import annotations

import re

from ...arguments.rjson.refusal import Refusal
from .element import Element
from .marks import BLANK, CLOSE_TAIL, CLOSER, DOCTYPE, DOUBT, MARK, own_tags, raw_tags

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
