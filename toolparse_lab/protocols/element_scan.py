"""Where the body of an XML element ends whose children are parameters."""

from __future__ import annotations

import re
from functools import lru_cache

from ..scan import _SPACE, Close, _Follow

# Lengths are bounded so that a hostile text cannot make the unsettled tail grow. Every pattern that is searched for
# begins with a literal `<`, which the search then finds at the speed of memchr.
_XML_NAME = r"[^\s<>/=\"'!]{1,256}"
_QUOTED = r"""\"[^\"<]{0,512}\"|'[^'<]{0,512}'"""
_TAG = re.compile(
    rf"<(?:(?P<skip>!\[CDATA\[|!--)"
    rf"|(?P<slash>/?)[ \t\r\n]{{0,16}}(?P<name>{_XML_NAME})"
    rf"(?P<rest>(?:\s(?:[^<>\"']|{_QUOTED}){{0,512}})?/?)>"
    rf"|(?P<cut>(?:[^<>]{{0,600}}|!\[[A-Z]{{0,5}}\[?)\Z))"
)


@lru_cache(maxsize=512)
def _close_tag(name: str) -> re.Pattern[str]:
    return re.compile(rf"</[ \t\r\n]{{0,16}}{re.escape(name)}[ \t\r\n]{{0,16}}>")


@lru_cache(maxsize=512)
def _flat_body(name: str) -> re.Pattern[str]:
    """A whole body of elements without markup in them or text beside them, and its closer: nearly every body."""
    return re.compile(
        rf"(?:\s*+<({_XML_NAME}+)>[^<]*+</\1>)*\s*+(</[ \t\r\n]{{0,16}}{re.escape(name)}[ \t\r\n]{{0,16}}>)"
    )


@lru_cache(maxsize=2048)
def _raw_param(param: str, element: str) -> re.Pattern[str]:
    """Inside a text parameter only its own closing tag, the element's, and CDATA mean anything."""
    names = f"{re.escape(param)}|{re.escape(element)}"
    longest = max(len(param), len(element))
    return re.compile(
        rf"<(?![^/!])(?:(?P<skip>!\[CDATA\[)|(?P<slash>/)[ \t\r\n]{{0,16}}(?P<name>{names})(?P<rest>)[ \t\r\n]{{0,16}}>"
        rf"|(?P<cut>(?:/[^<>]{{0,{longest + 32}}}|!\[?[A-Z]{{0,5}})?\Z))"
    )


class ElementBody:
    """Finds the closing tag of an XML element whose children are parameters.

    Text parameters are raw: whatever stands in them is content, up to a closing tag of theirs that another tag or
    the end follows. The element's closing tag inside an unclosed parameter counts only if nothing but white space
    and an opener, or the end, follows it.
    """

    __slots__ = (
        "_at", "_follow", "_fresh", "_hidden", "_inner", "_look", "_name", "_openers", "_param", "_raw", "_text",
        "_until",
    )  # fmt: skip

    def __init__(self, name: str, text_params: frozenset[str], openers: tuple[str, ...]) -> None:
        self._name = name
        self._text = text_params
        self._openers = openers
        self._fresh = True  # nothing was looked at yet
        self._follow: _Follow | None = None
        self._at = 0
        self._param: str | None = None
        self._raw: re.Pattern[str] | None = None  # what to look for inside a text parameter
        self._inner = 0  # elements of the parameter's own name that are open inside it
        self._until = ""  # inside CDATA or a comment: what ends it
        self._hidden: tuple[int, int] | None = None
        self._look = 0  # white space behind a parameter's closing tag that was looked at already

    def finish(self) -> Close | None:
        return Close(*self._hidden, "rescued") if self._hidden else None

    def scan(self, tail: str, final: bool) -> Close | int:
        """One pass over the tail. See the class."""
        if self._fresh:
            self._fresh = False
            flat = _flat_body(self._name).match(tail)
            if flat:
                return Close(flat.start(2), flat.end(2), "closer")
        pos = 0
        at = self._at
        while True:
            if self._until:
                end = tail.find(self._until, pos)
                if end < 0:
                    return self._settle(max(pos, len(tail) - len(self._until) + 1))
                pos = end + len(self._until)
                self._until = ""
            m = (self._raw or _TAG).search(tail, pos)
            if not m:
                return self._settle(len(tail))
            start = m.start()
            if m["cut"] is not None:  # a tag that is not complete yet
                return self._settle(len(tail) if final else start)
            if m["skip"] is not None:
                self._until = "]]>" if m["skip"] == "![CDATA[" else "-->"
                pos = m.end()
                continue
            pos = m.end()
            slash, name = m["slash"], m["name"]
            if self._param is None:
                if slash:
                    if _close_tag(self._name).fullmatch(m[0]):
                        return Close(at + start, at + pos, "closer")
                elif not m["rest"].endswith("/"):
                    self._param, self._inner = name, 0
                    self._raw = _raw_param(name, self._name) if name in self._text else None
            elif slash and name == self._param:
                ends = self._param_ends(tail, pos, final) if self._raw else True
                if ends is None:
                    return self._settle(start)
                if self._inner:
                    self._inner -= 1
                elif ends:
                    self._param = self._raw = None
            elif slash and name == self._name:
                follows = self._followed(tail, pos, final)
                if follows is None:
                    return self._settle(start)
                if follows or not self._raw:
                    return Close(at + start, at + pos, "rescued")
                if self._hidden is None:
                    self._hidden = (at + start, at + pos)
            elif not slash and name == self._param and not m["rest"].endswith("/"):
                self._inner += 1

    def _settle(self, settled: int) -> int:
        self._at += settled
        return settled

    def _followed(self, tail: str, pos: int, final: bool) -> bool | None:
        if self._follow is None:
            self._follow = _Follow(self._openers)
        return self._follow.check(tail, pos, self._at, final)

    def _param_ends(self, tail: str, pos: int, final: bool) -> bool | None:
        """A text parameter's closing tag is followed by another tag or the end; else it is content."""
        m = _SPACE.match(tail, max(pos, self._look - self._at))
        end = m.end() if m else pos
        if end >= len(tail) and not final:
            self._look = self._at + len(tail)
            return None
        self._look = 0
        return tail[end : end + 1] in ("<", "")
