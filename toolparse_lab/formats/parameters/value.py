"""The value of a parameter: which tags inside it are content, and which end it.

Nothing is escaped in such formats, so a tag inside a value means something only by the text around
it:

- a value's closer counts where another tag of the format, or the end, follows it.
- the next parameter's opener counts where the tool has such a parameter, and on a line of its own
  if the value is.
- a function's or the block's closer inside a value counts where only more of the block's end
  follows it.
- a whole call inside a value is a quotation, unless the value never ends: then the model began
  again there.
"""

from __future__ import annotations

import re

from ..scan import Close
from .form import function_group, kind_of, parameter_group
from .walk import HEAD, INSIDE, VALUE, Hold, Walk, past_cut

# What may stand behind a call that is over: nothing, or the next one.
_BEHIND_CALL = ("end", "opener", "function")
_NO_TAG = ("text", "{")
_SECTION = "<![CDATA["
_MAX_NESTING = 8  # quoted calls inside quoted calls, which are no longer told apart below that


class ValueScan:
    """Reads inside a value, from its parameter's tag to the tag that ends it.

    State: the tags of a quoted call that are open (`_nest`), and how the value began: behind which
    word, on a line of its own or not (`_lined`), with the name between its tags (`_outside`).
    """

    __slots__ = ("_lined", "_nest", "_outside", "_section", "_walk", "_word")

    def __init__(self, walk: Walk) -> None:
        self._walk = walk
        self._word = ""  # of the parameter's tag
        self._lined = False  # the value begins with a line break
        self._outside = False  # the parameter's name stood between its tags
        self._nest: list[str] = []
        self._section = False  # inside a CDATA section, which no tag ends

    def begin(self, match: re.Match[str]) -> None:
        walk = self._walk
        group = parameter_group(match)
        self._outside = group == "pt"
        self._word = match["p"]
        self._nest.clear()
        rule = "tags.name-inside" if self._outside else "tags.spelling"
        name_start = match.start(group)
        flag = (walk.form.flags and match["flag"]) or ""
        walk.mark(
            "parameter", match.start(), match.end(), match[group], name_start, rule=rule, flag=flag
        )
        walk.early = False
        walk.state = HEAD

    def head(self, tail: str, pos: int, final: bool) -> Hold | int:
        begin = tail[pos : pos + len(_SECTION)]
        if self._walk.form.sections and _SECTION.startswith(begin):
            if begin == _SECTION:
                self._section = True
            elif not final:
                return Hold(pos)
        first = tail[pos : pos + 2]
        if not final and first in ("", "\r"):
            return Hold(pos)
        self._lined = first[:1] == "\n" or first == "\r\n"
        self._walk.state = VALUE
        return pos

    def step(self, tail: str, pos: int, final: bool) -> Close | Hold | int:
        # Tags of a quoted call decide nothing but where the quotation ends.
        if self._section:
            end = tail.find("]]>", pos)
            if end < 0:
                return Hold(len(tail) if final else max(pos, len(tail) - 2))
            self._section = False
            pos = end + 3
        match = self._walk.pattern.search(tail, pos)
        if match is None:
            return Hold(len(tail))

        kind = kind_of(match)
        if kind == "cut":
            return past_cut(tail, match) if final else Hold(match.start())
        # Inside a quoted call no tag ends the value, however it looks.
        if self._nest:
            return self._in_quotation(tail, match, kind, final)
        if kind == "parameter":
            return self._next_parameter(match, tail)
        if kind in ("function", "opener"):
            return self._quotation(tail, match, kind, final)
        return self._closer(tail, match, kind, final)

    def _closer(
        self, tail: str, match: re.Match[str], kind: str, final: bool
    ) -> Close | Hold | int:
        # One of another word than its opener's is content: `</param>` in the value of a
        # `<parameter=…>` is text, and left to the reader where the value's own closer never
        # comes.
        walk = self._walk
        start, end = match.span()
        if kind == "/parameter" and walk.form.is_pair(self._word, match["cp"]):
            return self._value_closer(tail, start, end, final)
        if kind == "/function" and walk.form.is_pair(walk.word, match["cf"]):
            return self._function_closer(tail, start, end, final)
        if kind == "closer" and not walk.whole:
            return self._block_closer(tail, start, end, final)
        return end

    def _value_closer(self, tail: str, start: int, end: int, final: bool) -> Hold | int:
        # Content where text follows it. A closer that counts only because the text ends
        # there is doubtful, if the value began on a line of its own and the closer is not
        # on one.
        walk = self._walk
        follows = walk.following(tail, end, final)
        if follows is None:
            return Hold(start)

        fits = self._fits(tail, start)
        # Two closers, of which only the second is on a line of its own: the first is content, else
        # it is doubled.
        first_of_two = (
            follows == "/parameter" and not fits and self._fits(tail, walk.skip(tail, end))
        )
        if first_of_two or follows in _NO_TAG:
            walk.quote()
            return end

        walk.mark("/parameter", start, end, doubtful=follows == "end" and not fits)
        walk.state = INSIDE
        return end

    def _function_closer(self, tail: str, start: int, end: int, final: bool) -> Hold | int:
        # It counts where only more of the end follows, or the next call. Where text
        # follows, it is content. But a function that stands alone may have ended there
        # after all.
        walk = self._walk
        follows = walk.following(tail, end, final)
        if follows is None:
            return Hold(start)
        if follows == "closer" and not walk.whole:
            return self._both_closers(tail, start, end, final)

        # In a finished body the engine has found the end already, so the lines prove nothing.
        fits = self._fits(tail, start)
        if follows in _BEHIND_CALL:
            if fits or walk.whole:
                walk.end_function(start, end, doubtful=follows == "end" and not fits)
            return end

        # With a block around it the block's own closer would be the place to go back to.
        if follows in _NO_TAG and fits and not walk.wrapped:
            walk.hide(end, end, "rescued")
        return end

    def _both_closers(self, tail: str, start: int, end: int, final: bool) -> Hold | int:
        # After both the end or the next call has to follow: a value may quote the whole end
        # of a call.
        walk = self._walk
        # Alone, it may have the closer of a block whose opener was lost.
        if not walk.wrapped:
            walk.end_function(start, end)
            return end

        match = walk.pattern.search(tail, end)
        behind = walk.following(tail, match.end(), final) if match else None
        if match is None or behind is None:
            return Hold(start)
        if behind in _BEHIND_CALL:
            walk.end_function(start, end)
        else:
            walk.hide(match.start(), match.end(), "rescued")

        return end

    def _block_closer(self, tail: str, start: int, end: int, final: bool) -> Close | Hold | int:
        # If it does not fit the value's lines it is content. If text follows, it is content
        # most likely, and the place to go back to if no other closer comes.
        walk = self._walk
        if not self._fits(tail, start):
            return end

        follows = walk.following(tail, end, final)
        if follows is None:
            return Hold(start)
        if follows in _BEHIND_CALL:
            return Close(walk.at + start, walk.at + end, "closer")

        walk.hide(start, end, "rescued")
        return end

    def _next_parameter(self, match: re.Match[str], tail: str) -> int:
        if self._begins_next(match, tail):
            self.begin(match)
        elif match["pt"]:
            # The match reaches over the closer behind the name, which may close this value.
            return match.end("pt")
        return match.end()

    def _begins_next(self, match: re.Match[str], tail: str) -> bool:
        # With its name between tags it is only believed after one like it.
        walk = self._walk
        same = match["p"].lower() == self._word.lower()
        if not same or not self._fits(tail, match.start()):
            return False
        if match["pt"]:
            return self._outside and walk.knows(match)
        # A tool that nobody knows, or whose parameters are free, may have any parameter.
        view = walk.view
        return view is None or not view.properties or view.child(match["pn"]) is not None

    def _quotation(self, tail: str, match: re.Match[str], kind: str, final: bool) -> Hold | int:
        # A quoted call is skipped if the text after its tag is the inside of one. As a
        # place where the model may have begun again it is remembered, in case the value
        # never ends.
        walk = self._walk
        inside: tuple[str, ...] = ("function", "{")
        if kind == "function":
            inside = ("parameter", "/function", "{")
            if not self._may_quote(match):
                return match.end()

        follows = walk.following(tail, match.end(), final)
        if follows is None:
            return Hold(match.start())
        if follows in inside:
            self._nest.append(kind)
            walk.quote()
            walk.hide(match.start(), match.start(), "implicit")

        return match.end()

    def _may_quote(self, match: re.Match[str]) -> bool:
        walk = self._walk
        if match["f"].lower() != walk.word.lower():
            return False
        return not walk.tools or match[function_group(match)] in walk.tools

    def _in_quotation(self, tail: str, match: re.Match[str], kind: str, final: bool) -> Hold | int:
        # The block's closer ends all that was opened since the block.
        nest = self._nest
        if kind in ("function", "opener"):
            # Deeper ones are skipped with the quotation around them.
            if len(nest) < _MAX_NESTING:
                return self._quotation(tail, match, kind, final)
        elif kind == "/function":
            if nest[-1] == "function":
                nest.pop()
        elif kind == "closer":
            self._end_quotation()
        return match.end()

    def _end_quotation(self) -> None:
        nest = self._nest
        if "opener" not in nest:
            return
        while nest.pop() != "opener":
            pass

    def _fits(self, tail: str, start: int) -> bool:
        # A model that puts a value on lines of its own puts its closer on one as well.
        return not self._lined or self._walk.indent_at(tail, start) >= 0
