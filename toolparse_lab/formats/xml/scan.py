"""If the body of an XML element ends whose children are parameters."""

# How it works
#
# The children of the element are the tool's parameters. One that the schema declares as text is
# raw: markup in it is content. So the scanner knows the name of the parameter that is open, and
# looks for every tag outside of text parameters, and inside one only for its own closing tag and
# the element's.
#
# State: `_param` is the parameter that is open, `_raw` its pattern if it is text, `_inner` how many
# elements of the parameter's own name are open inside it, `_until` what ends the CDATA section or
# comment that is open. `_hidden` is the first closing tag of the element inside a text parameter
# that something else than an opener follows: the place to close if the parameter never ends.
#
# Invariant: a tag counts once it is whole, and what follows it, where that matters, is there. An
# unfinished tag stays in the tail ("cut"), so the chunking changes nothing.
#
# Cost: one forward pass. A flat body, which is nearly every body, is one match of one pattern.

from __future__ import annotations

import re
from functools import lru_cache

from ..scan import BodyScanner, Close, FollowCheck, skip_space

# Lengths are bounded so that a hostile text cannot make the unsettled tail grow. Every pattern that
# is searched for begins with a literal `<`, which the search then finds at the speed of memchr.
_XML_NAME = r"[^\s<>/=\"'!]{1,256}"
_QUOTED = r"""\"[^\"<]{0,512}\"|'[^'<]{0,512}'"""
_TAG = re.compile(
    rf"<(?:(?P<skip>!\[CDATA\[|!--)"
    rf"|(?P<slash>/?)[ \t\r\n]{{0,16}}(?P<name>{_XML_NAME})"
    rf"(?P<rest>(?:\s(?:[^<>\"']|{_QUOTED}){{0,512}})?/?)>"
    rf"|(?P<cut>(?:(?:[^<>\"']++|{_QUOTED})*+(?:[\"'][^<]*+)?|!\[[A-Z]{{0,5}}\[?)\Z))"
)
_MAX_TAG = 1024  # a longer tag is text, whether it is whole or may become one


@lru_cache(maxsize=512)
def _close_tag(name: str) -> re.Pattern[str]:
    return re.compile(rf"</[ \t\r\n]{{0,16}}{re.escape(name)}[ \t\r\n]{{0,16}}>")


@lru_cache(maxsize=512)
def _flat_body(name: str) -> re.Pattern[str]:
    # A whole body and its closer, group 2, as nearly every body is.
    return re.compile(
        rf"(?:\s*+<({_XML_NAME}+)>[^<]*+</\1>)*"
        rf"\s*+({_close_tag(name).pattern})"
    )


@lru_cache(maxsize=2048)
def _raw_param(param: str, element: str) -> re.Pattern[str]:
    # What means anything inside a text parameter. The groups are those of `_TAG`.
    names = f"{re.escape(param)}|{re.escape(element)}"
    longest = max(len(param), len(element))
    return re.compile(
        rf"<(?![^/!])(?:(?P<skip>!\[CDATA\[)"
        rf"|(?P<slash>/)[ \t\r\n]{{0,16}}(?P<name>{names})(?P<rest>)[ \t\r\n]{{0,16}}>"
        rf"|(?P<cut>(?:/[^<>]{{0,{longest + 32}}}|!\[?[A-Z]{{0,5}})?\Z))"
    )


def ends_in_element(text: str) -> bool:
    """Return True if the children of an element that break off after `text` end inside one."""
    param = ""  # the child that is open
    inner = 0  # elements of its name that are open inside it
    pos = 0  # after the last child
    for tag in _TAG.finditer(text):
        name = tag["name"]
        if name is None or tag.end() - tag.start() >= _MAX_TAG or tag["rest"].endswith("/"):
            continue
        if not param:
            if tag["slash"] or text[pos : tag.start()].strip():
                return True
            param = name
        elif name == param:
            inner += -1 if tag["slash"] else 1
            if inner < 0:
                param, inner, pos = "", 0, tag.end()

    return param != "" or text[pos:].strip() != ""


class ElementBody(BodyScanner):
    """Finds the closing tag of an XML element whose children are parameters.

    Text parameters are raw: whatever is in them is content, up to a closing tag of theirs that
    another tag or the end follows. The element's closing tag inside an unclosed parameter counts
    only if nothing but white space and an opener, or the end, follows it.
    """

    __slots__ = (
        "_follow", "_fresh", "_inner", "_look", "_name", "_openers", "_param",
        "_raw", "_text", "_until",
    )  # fmt: skip

    def __init__(self, name: str, text_params: frozenset[str], openers: tuple[str, ...]) -> None:
        self._name = name
        self._text = text_params
        self._openers = openers
        self._fresh = True  # nothing was looked at yet
        self._follow: FollowCheck | None = None
        self._at, self._hidden = 0, None  # a closing tag in a text parameter that never ended
        self._param: str | None = None
        self._raw: re.Pattern[str] | None = None  # what to look for inside a text parameter
        self._inner = 0  # elements of the parameter's own name that are open inside it
        self._until = ""  # inside CDATA or a comment: what ends it
        self._look = 0  # white space after a parameter's closing tag that was looked at already

    def scan(self, tail: str, final: bool) -> Close | int:
        if self._fresh:
            self._fresh = False
            flat = _flat_body(self._name).match(tail)
            if flat:
                return Close(flat.start(2), flat.end(2), "closer")

        pos = 0
        while True:
            if self._until:
                end = tail.find(self._until, pos)
                if end < 0:
                    # Its beginning may already be here, but for the last character.
                    return self._settle(max(pos, len(tail) - len(self._until) + 1))
                pos = end + len(self._until)
                self._until = ""

            tag = (self._raw or _TAG).search(tail, pos)
            if tag is None:
                return self._settle(len(tail))

            kind = tag.lastgroup
            start, end = tag.span()
            if end - start >= _MAX_TAG:
                pos = start + 1
                continue
            if kind == "cut":  # a tag that is not complete yet
                return self._settle(len(tail) if final else start)

            pos = end
            if kind == "skip":
                self._until = "]]>" if tag["skip"] == "![CDATA[" else "-->"
                continue

            # None = read on after it. An empty element is closed already.
            answer: Close | int | None = None
            name, is_open = tag["name"], not tag["rest"].endswith("/")
            if self._param is None:
                # Any other closing tag is left to the reader. The name alone is not enough:
                # `</f x>` closes nothing.
                if tag["slash"]:
                    if _close_tag(self._name).fullmatch(tag[0]):
                        return Close(self._at + start, self._at + end, "closer")
                elif is_open:
                    self._param, self._inner = name, 0
                    self._raw = _raw_param(name, self._name) if name in self._text else None
            elif not tag["slash"]:
                # Elements of the same name are counted.
                self._inner += name == self._param and is_open
            elif name == self._param:
                answer = self._close_param(tag, tail, final)
            elif name == self._name:
                answer = self._close_element(tag, tail, final)
            if answer is not None:
                return answer

    def _close_param(self, tag: re.Match[str], tail: str, final: bool) -> int | None:
        ends: bool | None = True
        if self._raw:
            # Another tag or the end follows, else the tag is content.
            after = skip_space(tail, max(tag.end(), self._look - self._at))
            self._look = 0
            ends = tail[after : after + 1] in ("<", "")
            if after >= len(tail) and not final:
                self._look, ends = self._at + len(tail), None
        if ends is None:
            return self._settle(tag.start())
        if self._inner:
            self._inner -= 1
        elif ends:
            self._param = self._raw = None

        return None

    def _close_element(self, tag: re.Match[str], tail: str, final: bool) -> Close | int | None:
        if self._follow is None:
            self._follow = FollowCheck(self._openers)

        start = self._at + tag.start()
        end = self._at + tag.end()
        follows = self._follow.check(tail, tag.end(), self._at, final)
        if follows is None:
            return self._settle(tag.start())
        # In a parameter that is no text the tag can be no content, so it closes in any case.
        if follows or not self._raw:
            return Close(start, end, "rescued")
        if self._hidden is None:
            self._hidden = (start, end)
        return None
