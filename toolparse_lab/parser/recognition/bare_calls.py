"""Calls as JSON: a value, or several in a row, alone on their lines or in a code fence, or one on
the line after a tool's name.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import replace
from functools import lru_cache
from typing import Literal

from ...core.types import Span
from ...formats.base import NEED_MORE, NeedMore, Opening
from ...formats.json.call import (
    ARGUMENT_KEYS,
    CALL_HEAD,
    CALL_HEAD_SO_FAR,
    JsonCall,
    behind_stray_brackets,
    next_call,
)
from ...formats.json.forms import JsonList, NamedJson
from ...formats.scan import longest_of
from ..resolve import Resolver
from .held import FENCE_SO_FAR, MOST_CUT, Candidate, Held, count_ticks
from .quotes import run_length

_ARGUMENTS = re.compile(rf"""["'](?:{"|".join(ARGUMENT_KEYS)})["']\s*:\s*(?:[{{"']|null\b)""")
_CODEC = JsonCall("", "")  # calls as objects, without delimiters
_NAMED_CODEC = JsonList("[", "]", name_is_key=True)  # objects of which each key is a tool's name
_NAMED_HEAD = re.compile(
    r"""(?:\[\s{0,40})?\{\s{0,40}(["'])(?P<name>[^"'\\\s]{1,256})\1\s{0,10}:\s{0,10}\{"""
)
_NAMED_SO_FAR = re.compile(
    r"""(?:\[\s{0,40})?(?:\{\s{0,40}"""
    r"""(?:(["'])(?P<name>[^"'\\\s]{0,256})(?:\1\s{0,10}(?::\s{0,10})?)?)?)?\Z"""
)

# A fence, and one in a fence.
_OPENING = r"`{3,}+[ \t]{0,8}(?i:json|json5|jsonc|tools?_calls?|function_calls?|tool|)[ \t]{0,8}"
_FENCE_LINE = rf"{_OPENING}\r?\n\s{{0,40}}"
_FENCE_HEAD = rf"{_OPENING}(?:\r?\n\s{{0,40}}|(?=[{{\[]))"
# Some models put the fence that they were taught into one more.
_FENCE = re.compile(rf"(?P<outer>{_FENCE_LINE}(?=```))?(?P<inner>{_FENCE_HEAD})")
_INNER_SO_FAR = re.compile(
    rf"{_FENCE_LINE}`{{1,}}+[ \t]{{0,8}}[a-zA-Z0-9_]{{0,12}}[ \t]{{0,8}}\r?\Z"
)
_OUTER_END = re.compile(r"\s{0,16}+(?P<ticks>`*+)")


class JsonValue(Candidate):
    """A JSON value that may be a call, wherever it is."""

    def __init__(self, resolver: Resolver, heads: tuple[str, ...]) -> None:
        super().__init__(resolver, heads, '"')
        self._is_named = False  # its first key is a tool's name

    def _head(self, text: str, pos: int, final: bool) -> Literal[True] | NeedMore | None:
        tools = self._resolver.tools
        self._is_named = False
        if CALL_HEAD.match(text, pos):
            return True
        named = _NAMED_HEAD.match(text, pos)
        self._is_named = named is not None and named["name"] in tools
        if self._is_named:
            return True
        if final:
            return None
        so_far = _NAMED_SO_FAR.match(text, pos)
        key = so_far["name"] or "" if so_far else ""
        may_be = so_far is not None and any(name.startswith(key) for name in tools)
        return NEED_MORE if may_be or CALL_HEAD_SO_FAR.match(text, pos) else None

    def _call_or_text(self, text: str, start: int, end: int, close: int, at: int) -> Held:
        # `close` is where the held text ends. It is a call if a codec of plain JSON calls reads
        # it, and every call in it is of a known tool with its arguments under a key of their own:
        # faults that the schema reports are problems of the call. Without such a key they have to
        # be valid, and more than a name.
        inner = text[start:end]
        codec = _NAMED_CODEC if self._is_named else _CODEC
        decoded, calls = self._calls_in(codec.read, inner, start, close, at)
        has_key = _ARGUMENTS.search(inner) is not None
        if not calls or not all((c.valid and c.arguments) or (c.ok and has_key) for c in calls):
            return Held(close)
        return Held(close, Span(at + start, at + end), decoded, inner)


class BareCalls(JsonValue):
    """Recognises a JSON value, or several in a row as one, with no other text on its lines."""

    def judge(
        self, text: str, final: bool, at: int, first: bool, again: bool = False
    ) -> Held | NeedMore | None:
        """Judge a JSON value, or several in a row as one, with no other text on its lines. It may
        end at an opener or a stray closer. The arguments are those of `alone`.

        first: its opener may be in the prompt. again: it is a list right behind a call. Elsewhere a
        stray closer says that something is wrong, and there is no call. What is no call is text up
        to `Held.end`.
        """
        if self._at != at:
            head = self._head(text, 0, final)
            if head is not True:
                return head
            self._begin(at, 0)

        end = self._value_end(text, final)
        # Another value that looks like a call may follow: Llama's semicolon, a comma or a line
        # break stand between them, or brackets too many.
        while end is not None and (begin := next_call(text, end, final)) is not None:
            if begin < 0:
                return NEED_MORE
            # A list on a line of its own is another set of calls.
            if text[begin] == "[" and text[end:begin].isspace() and "\n" in text[end:begin]:
                break
            space = self._space  # what `_begin` forgets, and was passed all the same
            self._begin(at, begin)
            self._space = space
            end = self._value_end(text, final)
        if end is None:
            # Cut off: one character is text, and what is behind it may be something else.
            return Held(1) if final else NEED_MORE
        # Brackets too many are a part of the value, for the codec to judge.
        end = behind_stray_brackets(text, end, final)
        if end < 0:
            return NEED_MORE
        close = self._line_end(text, end, final, first or again)
        if isinstance(close, NeedMore):
            return NEED_MORE
        if close is None:
            return Held(end, alone=False)
        return self._call_or_text(text, 0, end, close, at)


class FencedCalls(JsonValue):
    """Recognises a JSON value that is alone in a code fence, or in a fence inside a fence."""

    def judge(self, text: str, final: bool, at: int, first: bool) -> Held | NeedMore | None:
        # At the end of the text a fence that stays open, or not entirely, still has a call.
        if not final and _INNER_SO_FAR.match(text):
            return NEED_MORE
        fence = _FENCE.match(text)
        if not fence:
            return NEED_MORE if not final and FENCE_SO_FAR.match(text) else None
        lead = fence.end()
        if self._at != at:
            head = self._head(text, lead, final)
            if head is not True:
                return head
            self._begin(at, lead)

        end = self._value_end(text, final)
        if end is None:
            return Held(lead) if final else NEED_MORE
        after = self._pass_space(text, end)
        if not fence["outer"]:
            run = run_length(text, 0)
            ticks = text[after : after + run]
            if ticks.strip("`"):
                return Held(end)
            if len(ticks) == run:
                return self._call_or_text(text, lead, end, after + run, at)
            if not final:
                return NEED_MORE
            return replace(
                self._call_or_text(text, lead, end, after + len(ticks), at), closed=False
            )
        # The inner fence has to close, the outer one may stay open.
        inner = count_ticks(fence["inner"])
        if count_ticks(text[after : after + inner]) < inner:
            is_cut = not final and after + inner > len(text) and not text[after:].strip("`")
            return NEED_MORE if is_cut else Held(end)
        close = _OUTER_END.match(text, after + inner)
        outer = count_ticks(fence["outer"])
        if close is None or len(close["ticks"]) < outer:
            if not final and close is not None and close.end() == len(text):
                return NEED_MORE
            return self._call_or_text(text, lead, end, after + inner, at)
        return self._call_or_text(text, lead, end, close.start("ticks") + outer, at)


# A tool's name on a line of its own, with one object of arguments on the next

_ARGUMENTS_CODEC = NamedJson(lambda name, arguments: arguments)  # the name is known already
_AFTER_NAME = r"[ \t]{0,16}+\r?\n[ \t]{0,16}+"
_AFTER_NAME_SO_FAR = re.compile(r"[ \t]{0,16}+\r?(?:\n[ \t]{0,16}+)?\Z")


class NameHeads:
    r"""The heads of calls that are a tool's name on a line of its own, the arguments on the next.

    >>> heads = name_heads(("get_tide",))
    >>> heads.match('get_tide\n{"port": 1}', 0, True).end()
    9
    >>> heads.match("get_tide now", 0, True) is None
    True
    """

    def __init__(self, names: tuple[str, ...]) -> None:
        words = tuple(sorted(name for name in names if name and not name[0].isspace()))
        self._names = words
        self._pattern = re.compile(rf"(?P<name>{longest_of(words)}){_AFTER_NAME}(?=\{{)")
        self._longest = max(map(len, words), default=0) + 36
        self.starts = frozenset(name[0] for name in words)

    def match(self, text: str, at: int, final: bool) -> re.Match[str] | NeedMore | None:
        head = self._pattern.match(text, at)
        if head is not None or final or len(text) - at > self._longest:
            return head
        rest = text[at:]
        word = rest.split(None, 1)[0]
        name = longer(self._names, word)
        is_whole = name == word and _AFTER_NAME_SO_FAR.match(rest, len(word))
        return NEED_MORE if name and (word == rest or is_whole) else None


name_heads = lru_cache(maxsize=64)(NameHeads)


def longer(names: tuple[str, ...], beginning: str) -> str:
    # The first of sorted names with this beginning, '' for none.
    place = bisect_left(names, beginning)
    return names[place] if place < len(names) and names[place].startswith(beginning) else ""


class NameLine(Candidate):
    """Recognises a known tool's name alone on a line, with one object on the next."""

    def __init__(self, resolver: Resolver, heads: tuple[str, ...], names: NameHeads) -> None:
        super().__init__(resolver, heads, '"')
        self._names = names

    def judge(self, text: str, final: bool, at: int, first: bool) -> Held | NeedMore | None:
        head = self._names.match(text, 0, final)
        if not isinstance(head, re.Match):
            return head
        lead = head.end()
        if self._cut > MOST_CUT:
            return None
        if self._at != at:
            self._begin(at, lead)

        end = self._value_end(text, final)
        if end is None:
            self._cut += final
            return Held(1, lead=lead) if final else NEED_MORE
        close = self._line_end(text, end, final, first)
        if isinstance(close, NeedMore):
            return NEED_MORE
        if close is None:
            return Held(end, alone=False, lead=lead)
        # The tool takes the arguments, or they name nothing but its parameters.
        name, inner = head["name"], text[lead:end]
        opening = Opening(lead, name=name, name_span=Span(0, len(name)))
        read = _ARGUMENTS_CODEC.read
        decoded, calls = self._calls_in(read, inner, lead, close, at, opening)
        if not calls or not calls[0].ok:
            return Held(close, lead=lead)
        schema, arguments = self._resolver.tools[name].schema, calls[0].arguments
        properties = schema.get("properties") if isinstance(schema, dict) else None
        if not arguments or not properties or schema.get("additionalProperties"):
            suits = calls[0].valid
        else:
            suits = all(key in properties for key in arguments)
        if not suits:
            return Held(close, lead=lead)
        return Held(close, Span(at + lead, at + end), decoded, inner)
