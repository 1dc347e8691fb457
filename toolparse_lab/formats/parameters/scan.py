"""Functions and their parameters as tags around raw text: where a body ends, and which tags count.

A block exactly as its format writes it is found by one pattern (`strict.py`). All others are walked
over tag by tag, since the meaning of a tag depends on the text around it.
"""

# How it works
#
# State: one of eight (`walk.py` lists them), and what the states share in a `Walk`. A step reads
# from an offset of the tail to the next thing that matters and returns an offset to go on at, the
# `Close` that was found, or a `Hold`: more text is needed, and only what lies before it is settled.
# `value.py` has the steps inside a value, where nearly every question is; here are the others.
#
# Invariant: a tag is decided on once it is whole and the kind of what follows it is known. Both are
# functions of the text alone, so the answer does not depend on the chunking. Until then the tag
# itself is held back, so that the next step meets it again from its first character.
#
# Cost: one search a tag. What is held back is a tag (400 characters at most) or white space, which
# is remembered as looked at (`Walk.look`); a body of JSON is left to its own scanner.

from __future__ import annotations

import re
from collections.abc import Mapping

from ...core.toolspec import ToolSpec
from ..json.scan import JsonBody
from ..scan import Close
from .form import Mark, bare_head, function_group, kind_of, names_function
from .shape import Form
from .strict import strict_form
from .value import ValueScan
from .walk import BODY, ENDED, HEAD, INDENT, INSIDE, JSON, START, TOP, VALUE, Hold, Walk, past_cut


class ParameterScan:
    """Finds the end of a block (`wrapped`) or of one function that stands alone.

    The body includes the function's own tags. `whole`: it is shown one finished body, looks for no
    end, and keeps the `marks`.
    """

    __slots__ = (
        "_begin",
        "_ends",
        "_form",
        "_fresh",
        "_json",
        "_json_start",
        "_value",
        "_walk",
        "_wrapped",
    )

    # Made by `_begin` for a body that is not strict, which most bodies are.
    _walk: Walk
    _value: ValueScan

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
        # bare: the name may stand without its tag. name: of the function that the body is
        # inside of. ends: the tokens after a whole function that end a block without its
        # closer.
        self._form = form
        self._wrapped = wrapped
        self._ends = ends
        self._json: JsonBody | None = None
        self._json_start = 0  # where the JSON began that `_json` reads, from the body's beginning

        def begin() -> None:
            self._walk = walk = Walk(form, tools, wrapped=wrapped, whole=whole)
            self._value = ValueScan(walk)
            if bare:
                walk.state = START
            if name:
                walk.enter(name)

        self._begin = begin
        # A whole body comes here only after it was found not to be strict.
        self._fresh = not whole
        if whole:
            begin()

    @property
    def marks(self) -> list[Mark]:
        return self._walk.marks

    @property
    def quoting(self) -> set[int]:
        return self._walk.quoting

    @property
    def in_value(self) -> bool:
        return self._walk.state in (HEAD, VALUE, JSON)

    def finish(self) -> Close | None:
        # The best close after all: the JSON's, or the first doubtful place.
        if self._json is None:
            hidden = self._walk.hidden
            return Close(*hidden) if hidden else None

        close = self._json.finish()
        if close is None:
            return None

        end = self._json_start + close.end
        if self._walk.wrapped:
            return Close(self._json_start + close.start, end, close.kind)
        return Close(end, end, "rescued")

    def scan(self, tail: str, final: bool) -> Close | int:
        """Return the close, or how many characters of the tail are final."""
        pos = 0
        if self._fresh:
            self._fresh = False
            strict = strict_form(self._form)
            match = (strict.block if self._wrapped else strict.function).match(tail)
            if match is not None and self._wrapped:
                return Close(*match.span(1), "closer")
            self._begin()
            if match is not None:
                self._walk.state, pos = ENDED, match.end()

        walk = self._walk
        while True:
            # Most chunks of a stream are the middle of a value.
            if walk.state == VALUE:
                answer = self._value.step(tail, pos, final)
            else:
                answer = self._step(tail, pos, final)

            if isinstance(answer, int):
                pos = answer
            elif isinstance(answer, Hold):
                return walk.settle(tail, answer.at)
            else:
                return answer

    def _step(self, tail: str, pos: int, final: bool) -> Close | Hold | int:
        state = self._walk.state
        if state in (TOP, INSIDE):
            return self._between(tail, pos, final)
        if state == HEAD:
            return self._value.head(tail, pos, final)
        if state == JSON:
            return self._in_json(tail, pos, final)
        if state == ENDED:
            return self._behind(tail, pos, final)
        return self._first(tail, pos, final)

    def _first(self, tail: str, pos: int, final: bool) -> Hold | int:
        # In a block JSON may be a list of calls, after a tag only the object of its
        # arguments.
        walk = self._walk
        start = walk.skip(tail, pos)
        if start >= len(tail):
            return Hold(len(tail))

        walk.look = 0
        char = tail[start]
        # Behind a function's tag only an object can stand in place of parameters.
        if walk.state == BODY:
            if char == "{":
                return self._begin_json(start)
            walk.state = INSIDE
            return start

        if char in "{[" and not walk.whole:
            return self._begin_json(start)
        if char == "<":
            walk.state = TOP
            return start
        return self._bare_head(tail, start, final)

    def _bare_head(self, tail: str, start: int, final: bool) -> Hold | int:
        # A tag that lost its bracket, or a known tool's name on a line. Anything else is
        # skipped: words that mean nothing, which the reader removes or refuses.
        walk = self._walk
        whole, partial = bare_head(walk.form)
        match = whole.match(tail, start)
        if match is None and not final and partial.match(tail, start):
            return Hold(start)

        walk.state = TOP
        if match is None or not names_function(match, walk.tools):
            return start
        if match["f"]:
            walk.begin_function(match, match["f"], "fn", "tags.lost-bracket")
        else:
            walk.begin_function(match, walk.form.function_word, "line", "tags.bare-name")

        return match.end()

    # JSON in place of tags

    def _begin_json(self, start: int) -> int:
        walk = self._walk
        form = walk.form
        own = form.closer_of(walk.word)
        # In a finished body nothing but the function's own closer can follow the object.
        if walk.whole:
            self._json = JsonBody((own,))
        elif walk.wrapped:
            self._json = JsonBody((form.closer,), (form.opener,))
        else:
            self._json = JsonBody((own,), form.begins_json(walk.word))

        self._json_start = walk.at + start
        walk.state = JSON
        return start

    def _in_json(self, tail: str, pos: int, final: bool) -> Close | Hold | int:
        # In a block the end of the JSON is the end of the body. After a function that
        # stands alone its block's closer may follow, which belongs to the call as well.
        # Offsets of the inner scanner count from the beginning of the JSON.
        walk, json, base = self._walk, self._json, self._json_start
        if json is None:
            raise LookupError("no JSON has begun")

        answer = json.scan(tail[pos:], final)
        if walk.whole:
            close = answer if isinstance(answer, Close) else json.finish()
            return self._whole_json(tail, close)
        if not isinstance(answer, Close):
            return Hold(pos + answer)

        start, end = base + answer.start, base + answer.end
        if walk.wrapped:
            return self._shifted(answer)
        if answer.kind == "implicit":
            return Close(start, start, "implicit")
        if end < walk.at:  # a rescued closer, before what is settled
            return Close(end, end, "rescued")

        self._json = None
        walk.state = ENDED
        return end - walk.at

    def _shifted(self, close: Close) -> Close:
        base = self._json_start
        hidden = close.hidden
        if hidden:
            hidden = (base + hidden[0], base + hidden[1])
        return Close(base + close.start, base + close.end, close.kind, hidden)

    def _whole_json(self, tail: str, close: Close | None) -> Hold | int:
        walk, base = self._walk, self._json_start
        self._json = None
        if close is None:
            walk.mark("json", base, len(tail))
            return Hold(len(tail))

        walk.mark("json", base, base + close.start)
        walk.mark("/function", base + close.start, base + close.end)
        walk.state = TOP
        return base + close.end

    # Between the tags

    def _between(self, tail: str, pos: int, final: bool) -> Close | Hold | int:
        # Closers of parameters close nothing here. A parameter counts inside a function, or
        # after one whose name stood between its tags, which looks closed already.
        walk = self._walk
        match = walk.pattern.search(tail, pos)
        inside = walk.state == INSIDE
        token = self._end_token(tail, pos, match.start() if match else len(tail))
        if token is not None:
            start = walk.at + token.start()
            return Close(start, start, "implicit")
        if match is None:
            return Hold(len(tail))

        kind = kind_of(match)
        if kind == "cut":
            return past_cut(tail, match) if final else Hold(match.start())
        if kind == "function":
            return self._function_tag(match)
        if kind in ("opener", "closer"):
            return self._block_tag(match, kind)
        if kind == "/function":
            if inside:
                walk.end_function(match.start(), match.end())
        elif kind == "parameter" and (inside or walk.early) and walk.knows(match):
            self._value.begin(match)

        return match.end()

    def _end_token(self, tail: str, pos: int, end: int) -> re.Match[str] | None:
        # Half a token is held back as half a tag, since it begins with the same character.
        if self._ends is None or self._walk.state == INSIDE or not self._walk.word:
            return None
        return self._ends.search(tail, pos, end)

    def _function_tag(self, match: re.Match[str]) -> Close | int:
        # A function that stands alone and is still open ends there: its closer is missing.
        walk = self._walk
        if walk.state == INSIDE and walk.stands_for_key(match[function_group(match)]):
            return match.end()
        if walk.state == INSIDE and not walk.wrapped and not walk.whole:
            start = walk.at + match.start()
            return Close(start, start, "implicit")
        walk.begin_function(match, match["f"], function_group(match))
        return match.end()

    def _block_tag(self, match: re.Match[str], kind: str) -> Close | int:
        # In a finished body neither counts: the engine has decided where it ends.
        walk = self._walk
        if walk.whole:
            return match.end()
        start = walk.at + match.start()
        if kind == "opener":
            return Close(start, start, "implicit")
        return Close(start, walk.at + match.end(), "closer")

    # Behind a function without a block

    def _behind(self, tail: str, pos: int, final: bool) -> Close | Hold | int:
        walk = self._walk
        closer = walk.form.closer
        end = walk.at + pos
        after = pos
        while after < len(tail) and after - pos <= INDENT and tail[after] in " \t\r\n":
            after += 1
        # `<function>f</function>` closes the name, and the parameters come only now.
        if walk.early:
            answer = self._late_parameter(tail, pos, after, final)
            if answer is not None:
                return answer

        # Too far behind, a closer belongs to something else.
        if closer and after - pos <= INDENT:
            if tail.startswith(closer, after):
                return Close(end, walk.at + after + len(closer), "closer")
            # Half of it may be all that is here.
            if not final and closer.startswith(tail[after:]):
                return Hold(pos)

        return Close(end, end, "end")

    def _late_parameter(self, tail: str, pos: int, after: int, final: bool) -> Hold | int | None:
        # `<function>name</function>` may be followed by its parameters.
        walk = self._walk
        match = walk.pattern.match(tail, after)
        kind = kind_of(match) if match else ""
        if not final and (after == len(tail) or kind == "cut"):
            return Hold(pos)
        if match is None or kind != "parameter" or not walk.knows(match):
            return None

        self._value.begin(match)
        return match.end()
