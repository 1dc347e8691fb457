"""Where a body of parameter tags ends, and which of its tags count."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from ...arguments.schema.view import View, view_of
from ...core.toolspec import ToolSpec
from ..json.scan import JsonBody
from ..scan import NO_WAITS, Close, CloseKind
from .form import (
    Form,
    Mark,
    MarkKind,
    closes_itself,
    function_group,
    has_more_words,
    kind_of,
    names_function,
)
from .strict import strict_form

INDENT = 64  # a tag further right than this is on no line of its own
_CUT_TAG = re.compile(r"</?[A-Za-z_]{0,12}\Z")

# START: before the first tag of a block. TOP: between functions. BODY: right after a function's
# tag. INSIDE: between parameters. HEAD: right after a parameter's tag. VALUE: in its value. JSON:
# in an object in place of tags. ENDED: after a function that has no block around it.
START, TOP, BODY, INSIDE, HEAD, VALUE, JSON, ENDED = range(8)


@dataclass(slots=True)  # made for nearly every chunk, and a frozen one takes twice the time
class Hold:
    """Everything before `at` is final. The rest waits for more text."""

    at: int


# What may follow a call that is over: nothing, or the next one.
_BEHIND_CALL = ("end", "opener", "function")
_NO_TAG = ("text", "{")
_SECTION = "<![CDATA["
_MAX_NESTING = 8  # quoted calls inside quoted calls, which are no longer told apart below that


def past_cut(tail: str, match: re.Match[str]) -> Hold | int:
    # A bracket in it is the end of some other tag.
    inner = tail.find(">", match.start(), match.end())
    return inner + 1 if inner >= 0 else Hold(len(tail))


# How it works
#
# State: one of eight (START to ENDED), and what the states share. A step reads
# from an offset of the tail to the next thing that matters and returns an offset to go on at, the
# `Close` that was found, or a `Hold`: more text is needed, and only what lies before it is settled.
# Nearly every question is inside a value.
#
# Invariant: a tag is decided on once it is whole and the kind of what follows it is known. Both are
# functions of the text alone, so the answer does not depend on the chunking. Until then the tag
# itself is held back, so that the next step meets it again from its first character.
#
# Cost: one search a tag. What is held back is a tag (400 characters at most) or white space, which
# is remembered as looked at (`look`); a body of JSON is left to its own scanner.


class ParameterScan:
    """Finds the end of a block (`wrapped`) or of one function that is alone, tag by tag.

    The body includes the function's own tags. Offsets count from its beginning.

    whole: it is shown one finished body, looks for no end, and keeps the `marks`. quoting: the
    indices of the parameters whose values hold closers or calls taken for content.
    """

    __slots__ = (
        "_fresh", "_json", "_json_start", "_lined", "_nest", "_outside", "_param_word", "_section",
        "at", "early", "ends", "form", "hidden", "indent", "look", "marks", "pattern", "quoting",
        "space", "state", "tools", "view", "waits", "whole", "word", "wrapped",
    )  # fmt: skip

    _json: JsonBody  # in the state JSON

    def __init__(
        self,
        form: Form,
        tools: Mapping[str, ToolSpec],
        *,
        wrapped: bool,
        whole: bool = False,
        bare: bool = False,
        name: str = "",
        ends: re.Pattern[str] | None = None,
    ) -> None:
        # bare: the name may stand without its tag. name: of the function that the body is inside
        # of. ends: the tokens after a whole function that end a block without its closer.
        self.form = form
        self.tools = tools
        self.wrapped = wrapped
        self.whole = whole
        self.ends = ends
        self.pattern = form.tags
        self.space = form.space
        self.state = START if wrapped or bare else TOP
        self.waits = NO_WAITS
        # A whole body comes here only after it was found not to be strict.
        self._fresh = not whole
        self.at = 0  # characters settled so far
        self.look = 0  # up to this offset white space was looked at already
        # White space since the last settled line break; -1 = there is more than that.
        self.indent = -1
        self.word = ""  # of the function's tag
        self.view: View | None = None  # of the function's tool, if it is known
        # The function's name stood between its tags, and no parameter came since.
        self.early = False
        self.hidden: tuple[int, int, CloseKind] | None = None
        self.marks: list[Mark] = []
        self.quoting: set[int] = set()
        # Of a value: how it began, and the tags of a quoted call that are open in it.
        self._param_word = ""  # of the parameter's tag
        self._lined = False  # the value begins with a line break
        self._outside = False  # the parameter's name stood between its tags
        self._nest: list[str] = []
        self._section = False  # inside a CDATA section, which no tag ends
        self._json_start = 0  # where the JSON began that `_json` reads, from the body's beginning
        if name:
            self.enter(form.function_word, name)

    @property
    def in_value(self) -> bool:
        return self.state in (HEAD, VALUE, JSON)

    def scan(self, tail: str, final: bool) -> Close | int:
        pos = 0
        if self._fresh:
            self._fresh = False
            # Most bodies are strict, and found by one pattern.
            strict = strict_form(self.form)
            match = (strict.block if self.wrapped else strict.function).match(tail)
            # No tag ends a section, which may have no end of its own.
            if match is not None and tail.find(_SECTION, 0, match.end()) < 0:
                if self.wrapped:
                    return Close(*match.span(1), "closer")
                self.state, pos = ENDED, match.end()
        elif (
            self.state == VALUE
            and not self._section
            and tail[-1:].strip()
            and self.pattern.search(tail) is None
        ):
            # Most chunks of a stream are the middle of a value.
            self.indent = -1
            self.at += len(tail)
            return len(tail)
        while True:
            answer = self._STEPS[self.state](self, tail, pos, final)
            if isinstance(answer, int):
                pos = answer
            elif isinstance(answer, Hold):
                return self.settle(tail, answer.at)
            else:
                return answer

    def finish(self) -> Close | None:
        # The best close after all: the JSON's, or the first doubtful place.
        if self.state != JSON:
            return Close(*self.hidden) if self.hidden else None
        close = self._json.finish()
        if close is None:
            return None
        end = self._json_start + close.end
        if self.wrapped:
            return Close(self._json_start + close.start, end, close.kind)
        return Close(end, end, "rescued")

    # Taking note

    def settle(self, tail: str, settled: int) -> int:
        in_value = self.state == VALUE and not self._section and not self._nest
        self.waits = self.form.waits if in_value else NO_WAITS
        if settled:
            self.indent = self.indent_at(tail, settled)
            self.at += settled
        return settled

    def mark(
        self,
        kind: MarkKind,
        start: int,
        end: int,
        name: str = "",
        name_start: int = 0,
        doubtful: bool = False,
        rule: str = "tags.spelling",
        flag: str = "",
    ) -> None:
        if self.whole:
            self.marks.append(Mark(kind, start, end, name, name_start, doubtful, rule, flag))

    def quote(self) -> None:
        if self.whole:
            self.quoting.add(len(self.marks) - 1)

    def hide(self, start: int, end: int, kind: CloseKind) -> None:
        if self.hidden is None:
            self.hidden = (self.at + start, self.at + end, kind)

    def begin_function(
        self, match: re.Match[str], word: str, group: str, rule: str = "tags.spelling"
    ) -> None:
        self.enter(word, match[group])
        whole = closes_itself(match)
        rule = "tags.self-closed" if whole else rule
        start, end = match.span()
        self.mark("function", start, end, match[group], match.start(group), rule=rule)
        self.early = group == "ft"
        if whole:
            self.end_function(end, end)

    def enter(self, word: str, name: str) -> None:
        # Only this word closes the function; closers of other words are content.
        tool = self.tools.get(name)
        self.word = word
        self.view = view_of(tool.schema_json) if tool else None
        self.state = BODY

    def end_function(self, start: int, end: int, *, doubtful: bool = False) -> None:
        self.mark("/function", start, end, doubtful=doubtful)
        self.state = TOP if self.wrapped or self.whole else ENDED

    # Looking around

    def knows(self, match: re.Match[str]) -> bool:
        # `<parameter>x</parameter>` may as well be a value without a name, so such a name
        # has to be known.
        name = match["pt"]
        return name is None or (self.view is not None and name in self.view.properties)

    def stands_for_key(self, name: str) -> bool:
        # Some models write a function's tag in place of a key's.
        if not self.form.value_has_tag or self.view is None:
            return False
        return name in self.view.properties and name not in self.tools

    def skip(self, tail: str, pos: int) -> int:
        # What was looked at before the last chunk is not looked at again.
        match = self.space.match(tail, max(pos, self.look - self.at))
        return match.end() if match else pos

    def following(self, tail: str, pos: int, final: bool) -> str | None:
        """Return the kind of tag after white space; 'text', '{' or 'end' if there is none. None =
        only more text can tell.
        """
        start = self.skip(tail, pos)
        if start >= len(tail):
            if final:
                return "end"
            # A run of white space that comes in pieces is looked at once, piece by piece.
            self.look = self.at + start
            return None

        self.look = 0
        if tail[start] == "{":
            return "{"

        # Every tag begins with this character; most of what follows a tag is text.
        match = self.pattern.match(tail, start) if tail[start] == "<" else None
        if match is None:
            return "text"

        kind = kind_of(match)
        if kind == "cut":
            # Where the text ends inside a plain tag, it ends.
            return ("end" if _CUT_TAG.match(tail, start) else "text") if final else None
        if kind == "parameter" and not self.knows(match):
            return "text"
        return kind

    def indent_at(self, tail: str, start: int) -> int:
        # White space since the last line break, -1 if there is more than that, or more than
        # `INDENT`. The line may have begun before the tail: `indent` keeps everything
        # settled of it, so the answer does not depend on where the chunk ends.
        line = tail.rfind("\n", max(0, start - INDENT - 1), start)
        before = 0
        if line < 0:
            # The line began before the tail, so what was settled of it counts as well.
            if start > INDENT or self.indent < 0:
                return -1
            before = self.indent

        blank = tail[line + 1 : start]
        total = before + len(blank)
        return total if total <= INDENT and not blank.strip(" \t\r") else -1

    # Inside a value, from its parameter's tag to the tag that ends it

    def begin(self, match: re.Match[str]) -> None:
        group = "pn" if match["pn"] else "pt"
        self._outside = group == "pt"
        self._param_word = match["p"]
        self._nest.clear()
        rule = "tags.name-inside" if self._outside else "tags.spelling"
        name_start = match.start(group)
        flag = (self.form.flags and match["flag"]) or ""
        self.mark(
            "parameter", match.start(), match.end(), match[group], name_start, rule=rule, flag=flag
        )
        self.early = False
        self.state = HEAD

    def head(self, tail: str, pos: int, final: bool) -> Hold | int:
        begin = tail[pos : pos + len(_SECTION)]
        if self.form.sections and _SECTION.startswith(begin):
            if begin == _SECTION:
                self._section = True
            elif not final:
                return Hold(pos)
        first = tail[pos : pos + 2]
        if not final and first in ("", "\r"):
            return Hold(pos)
        self._lined = first[:1] == "\n" or first == "\r\n"
        self.state = VALUE
        return pos

    def step(self, tail: str, pos: int, final: bool) -> Close | Hold | int:
        # Tags of a quoted call decide nothing but where the quotation ends.
        if self._section:
            end = tail.find("]]>", pos)
            if end < 0:
                return Hold(len(tail) if final else max(pos, len(tail) - 2))
            self._section = False
            pos = end + 3
        match = self.pattern.search(tail, pos)
        if match is None:
            return Hold(len(tail))

        kind = kind_of(match)
        if kind == "cut":
            return past_cut(tail, match) if final else Hold(match.start())
        # Inside a quoted call no tag ends the value, however it looks.
        if self._nest:
            return self._in_quotation(tail, match, kind, final)
        start, end = match.span()
        if kind == "parameter":
            if self._begins_next(match, tail):
                self.begin(match)
            elif match["pt"]:
                # The match reaches over the closer after the name, which may close this value.
                return match.end("pt")
            return end
        if kind in ("function", "opener"):
            return self._quotation(tail, match, kind, final)
        if has_more_words(match):
            return end
        # A closer of another word than its opener's is content: `</param>` in the value of a
        # `<parameter=…>` is text, and left to the reader where the value's own closer never comes.
        if kind == "/parameter" and self.form.is_pair(self._param_word, match["cp"]):
            return self._value_closer(tail, start, end, final)
        if kind == "/function" and self.form.is_pair(self.word, match["cf"]):
            return self._function_closer(tail, start, end, final)
        if kind == "closer" and not self.whole:
            return self._block_closer(tail, start, end, final)
        return end

    def _value_closer(self, tail: str, start: int, end: int, final: bool) -> Hold | int:
        # Content where text follows it. A closer that counts only because the text ends there is
        # doubtful, if the value began on a line of its own and the closer is not on one.
        follows = self.following(tail, end, final)
        if follows is None:
            return Hold(start)

        fits = self._fits(tail, start)
        # Two closers, of which only the second is on a line of its own: the first is content, else
        # it is doubled.
        first_of_two = (
            follows == "/parameter" and not fits and self._fits(tail, self.skip(tail, end))
        )
        if first_of_two or follows in _NO_TAG:
            self.quote()
            return end

        self.mark("/parameter", start, end, doubtful=follows == "end" and not fits)
        self.state = INSIDE
        return end

    def _function_closer(self, tail: str, start: int, end: int, final: bool) -> Hold | int:
        # It counts where only more of the end follows, or the next call. Where text follows, it is
        # content. But a function that is alone may have ended there after all.
        follows = self.following(tail, end, final)
        if follows is None:
            return Hold(start)
        if follows == "closer" and not self.whole:
            # Alone, it may have the closer of a block whose opener was lost.
            if not self.wrapped:
                self.end_function(start, end)
                return end
            # After both the end or the next call has to follow: a value may quote the whole end of
            # a call.
            match = self.pattern.search(tail, end)
            behind = self.following(tail, match.end(), final) if match else None
            if match is None or behind is None:
                return Hold(start)
            if behind in _BEHIND_CALL:
                self.end_function(start, end)
            else:
                self.hide(match.start(), match.end(), "rescued")
            return end

        # In a finished body the engine has found the end already, so the lines prove nothing.
        fits = self._fits(tail, start)
        if follows in _BEHIND_CALL:
            if fits or self.whole:
                self.end_function(start, end, doubtful=follows == "end" and not fits)
            return end

        # With a block around it the block's own closer would be the place to go back to.
        if follows in _NO_TAG and fits and not self.wrapped:
            self.hide(end, end, "rescued")
        return end

    def _block_closer(self, tail: str, start: int, end: int, final: bool) -> Close | Hold | int:
        # If it does not fit the value's lines it is content. If text follows, it is content
        # most likely, and the place to go back to if no other closer comes.
        if not self._fits(tail, start):
            return end

        follows = self.following(tail, end, final)
        if follows is None:
            return Hold(start)
        if follows in _BEHIND_CALL:
            return Close(self.at + start, self.at + end, "closer")

        self.hide(start, end, "rescued")
        return end

    def _begins_next(self, match: re.Match[str], tail: str) -> bool:
        # With its name between tags it is only believed after one like it.
        same = match["p"].lower() == self._param_word.lower()
        if not same or not self._fits(tail, match.start()):
            return False
        if match["pt"]:
            return self._outside and self.knows(match)
        # A tool that nobody knows, or whose parameters are free, may have any parameter.
        view = self.view
        return view is None or not view.properties or view.child(match["pn"]) is not None

    def _quotation(self, tail: str, match: re.Match[str], kind: str, final: bool) -> Hold | int:
        # A quoted call is skipped if the text after its tag is the inside of one. As a place where
        # the model may have begun again it is remembered, in case the value never ends.
        inside: tuple[str, ...] = ("function", "{")
        if kind == "function":
            inside = ("parameter", "/function", "{")
            # A tag of another word, or of no known tool, begins no call of this format.
            known = not self.tools or match[function_group(match)] in self.tools
            if match["f"].lower() != self.word.lower() or not known:
                return match.end()

        follows = self.following(tail, match.end(), final)
        if follows is None:
            return Hold(match.start())
        if follows in inside:
            self._nest.append(kind)
            self.quote()
            self.hide(match.start(), match.start(), "implicit")

        return match.end()

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
        elif kind == "closer" and "opener" in nest:
            while nest.pop() != "opener":
                pass
        return match.end()

    def _fits(self, tail: str, start: int) -> bool:
        # A model that puts a value on lines of its own puts its closer on one as well.
        return not self._lined or self.indent_at(tail, start) >= 0

    # At the beginning

    def _first(self, tail: str, pos: int, final: bool) -> Hold | int:
        # In a block JSON may be a list of calls, after a tag only the object of its arguments.
        start = self.skip(tail, pos)
        if start >= len(tail):
            return Hold(len(tail))

        self.look = 0
        char = tail[start]
        # After a function's tag only an object can stand in place of parameters.
        if self.state == BODY:
            if char == "{":
                return self._begin_json(start)
            self.state = INSIDE
            return start

        if char in "{[" and not self.whole:
            return self._begin_json(start)
        if char == "<":
            self.state = TOP
            return start

        # A tag that lost its bracket, or a known tool's name on a line. Anything else is
        # skipped: words that mean nothing, which the reader removes or refuses.
        whole, partial = self.form.bare
        match = whole.match(tail, start)
        if match is None and not final and partial.match(tail, start):
            return Hold(start)

        self.state = TOP
        if match is None or not names_function(match, self.tools):
            return start
        if match["f"]:
            self.begin_function(match, match["f"], "fn", "tags.lost-bracket")
        else:
            self.begin_function(match, self.form.function_word, "line", "tags.bare-name")

        return match.end()

    # JSON in place of tags

    def _begin_json(self, start: int) -> int:
        form = self.form
        own = form.closer_of(self.word)
        # In a finished body nothing but the function's own closer can follow the object.
        if self.whole:
            self._json = JsonBody((own,))
        elif self.wrapped:
            self._json = JsonBody((form.closer,), (form.opener,))
        else:
            self._json = JsonBody((own,), form.begins_json(self.word))

        self._json_start = self.at + start
        self.state = JSON
        return start

    def _in_json(self, tail: str, pos: int, final: bool) -> Close | Hold | int:
        # In a block the end of the JSON is the end of the body. After a function that
        # is alone its block's closer may follow, which belongs to the call as well.
        # Offsets of the inner scanner count from the beginning of the JSON.
        json, base = self._json, self._json_start
        answer = json.scan(tail[pos:], final)
        if self.whole:
            close = answer if isinstance(answer, Close) else json.finish()
            if close is None:
                self.mark("json", base, len(tail))
                return Hold(len(tail))
            self.mark("json", base, base + close.start)
            self.mark("/function", base + close.start, base + close.end)
            self.state = TOP
            return base + close.end
        if not isinstance(answer, Close):
            return Hold(pos + answer)

        start, end = base + answer.start, base + answer.end
        if self.wrapped:
            hidden = answer.hidden
            if hidden:
                hidden = (base + hidden[0], base + hidden[1])
            return Close(start, end, answer.kind, hidden)
        if answer.kind == "implicit":
            return Close(start, start, "implicit")
        if end < self.at:  # a rescued closer, before what is settled
            return Close(end, end, "rescued")

        self.state = ENDED
        return end - self.at

    # Between the tags

    def _between(self, tail: str, pos: int, final: bool) -> Close | Hold | int:
        # Closers of parameters close nothing here. A parameter counts inside a function, or
        # after one whose name stood between its tags, which looks closed already.
        match = self.pattern.search(tail, pos)
        inside = self.state == INSIDE
        # Half a token is held back as half a tag, since it begins with the same character.
        ends = self.ends if not inside and self.word else None
        token = ends.search(tail, pos, match.start() if match else len(tail)) if ends else None
        if token is not None:
            start = self.at + token.start()
            return Close(start, start, "implicit")
        if match is None:
            return Hold(len(tail))

        kind = kind_of(match)
        if kind == "cut":
            return past_cut(tail, match) if final else Hold(match.start())
        start = self.at + match.start()
        if kind == "function":
            if inside and self.stands_for_key(match[function_group(match)]):
                return match.end()
            # A function that is alone and is still open ends there: its closer is missing.
            if inside and not self.wrapped and not self.whole:
                return Close(start, start, "implicit")
            self.begin_function(match, match["f"], function_group(match))
            return match.end()
        if kind in ("opener", "closer"):
            # In a finished body neither counts: the engine has decided where it ends.
            if self.whole:
                return match.end()
            if kind == "opener":
                return Close(start, start, "implicit")
            return Close(start, self.at + match.end(), "closer")
        if kind == "/function":
            if inside:
                self.end_function(match.start(), match.end())
        elif kind == "parameter" and (inside or self.early) and self.knows(match):
            self.begin(match)

        return match.end()

    # Behind a function without a block

    def _behind(self, tail: str, pos: int, final: bool) -> Close | Hold | int:
        closer = self.form.closer
        end = self.at + pos
        after = pos
        while after < len(tail) and after - pos <= INDENT and tail[after] in " \t\r\n":
            after += 1
        # `<function>f</function>` closes the name, and the parameters come only now.
        if self.early:
            match = self.pattern.match(tail, after)
            kind = kind_of(match) if match else ""
            if not final and (after == len(tail) or kind == "cut"):
                return Hold(pos)
            if match is not None and kind == "parameter" and self.knows(match):
                self.begin(match)
                return match.end()

        # Too far after it, a closer belongs to something else.
        if closer and after - pos <= INDENT:
            if tail.startswith(closer, after):
                return Close(end, self.at + after + len(closer), "closer")
            # Half of it may be all that is here.
            if not final and closer.startswith(tail[after:]):
                return Hold(pos)

        return Close(end, end, "end")

    # By state, in the order of their numbers.
    _STEPS: ClassVar[tuple[Callable[..., Close | Hold | int], ...]] = (
        _first, _between, _first, _between, head, step, _in_json, _behind,
    )  # fmt: skip
