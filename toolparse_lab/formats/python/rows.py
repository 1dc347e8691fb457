"""Calls written as Python: their envelopes, and the formats as rows of constants."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..base import (
    NEED_MORE,
    Answer,
    Envelope,
    Fit,
    NeedMore,
    Opening,
    Protocol,
    Signs,
    Tools,
    make_opening,
)
from ..scan import (
    Balanced,
    Close,
    QuotedBody,
    Scanner,
    any_of,
    ends_inside,
    line_end,
    skip_space,
    with_or_without_space,
)
from ..turns import TURN_ENDS
from .call import HEAD, PYTHON_TYPE_RULES, PythonCalls

# How it works: a list ends after the bracket that closes it, which `Balanced` finds. The rest of
# that line decides if it was a list of calls at all: `[a(b)](c)` is a link in Markdown. So the scan
# goes on for at most 64 blanks and a token after the bracket, and if text is there the body is made
# to reach over it, so that the codec refuses it and the text stays text.
#
# Between delimiters strings decide: see `QuotedBody`.


# What a body begins with: a call, or a list with one in it or nothing.
_NAME = r"(?:[^\W\d]|\\_)(?:[\w.]|\\_){0,200}"
_CALL = re.compile(rf"\[\s{{0,40}}\]|(?:\[\s{{0,40}})?['\"]?{_NAME}['\"]?\s{{0,40}}\(")
_CALL_SO_FAR = re.compile(rf"(?:\[\s{{0,40}})?(?:['\"]?(?:{_NAME}|\\)?\\?['\"]?\s{{0,40}})?\Z")
_FENCE = re.compile(r"```(?:python|py|tool_code|json)?[ \t]{0,8}\r?\n\s{0,40}")
_FENCE_SO_FAR = re.compile(r"`{1,3}[a-z_]{0,9}[ \t]{0,8}\r?\Z")
_LONGEST_LINE_END = 64


@dataclass(frozen=True, slots=True)
class PythonTags(Envelope):
    """Envelope of Python calls between delimiters.

    openers, closers: the literals. Any closer goes with any opener. line: the opener is a line of
    its own, as a code fence is. fenced: the body is a code fence, by which it is told from that of
    another format with the same opener. strict_head: the opener counts only in front of a call.
    """

    openers: tuple[str, ...]
    closers: tuple[str, ...] = ()
    line: bool = False
    fenced: bool = False
    strict_head: bool = False

    calls_are_python = True

    heads_are_fixed = True

    def heads(self, tools: Tools) -> tuple[str, ...]:
        return self.openers

    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Answer:
        opener = next((o for o in self.openers if text.startswith(o, pos)), None)
        if opener is None:
            return None
        end = pos + len(opener)
        if self.line:
            end = line_end(text, end, _LONGEST_LINE_END - len(opener))
            if end >= len(text):
                return None if final else NEED_MORE
            if text[end] != "\n":
                return None
            end += 1
        if self.strict_head:
            begins = _begins_call(text, end, final, fenced=True)
            if begins is not True:
                return begins or None
        return make_opening(end - pos)

    def scanner(self, opening: Opening, tools: Tools) -> Scanner:
        # Without a closer a call ends after its bracket.
        if not self.closers:
            return LoneCall("\"'")
        return QuotedBody(self.closers, () if self.line else self.openers)

    def in_value(self, opening: Opening, text: str, tools: Tools) -> bool:
        scan = QuotedBody(())
        scan.scan(text, True)
        return scan.in_string not in ("", "#") or "(" in text

    def closer_of(self, opening: Opening) -> str | None:
        return min(self.closers, key=len, default=None)

    def suits(self, opening: Opening, text: str, at: int, final: bool, tools: Tools) -> Fit:
        at = skip_space(text, at)
        if self.fenced:
            if text.startswith("```", at):
                return True
            return NEED_MORE if not final and "```".startswith(text[at : at + 3]) else False
        return _begins_call(text, at, final, fenced=self.strict_head)


def _begins_call(text: str, at: int, final: bool, *, fenced: bool) -> bool | NeedMore:
    # fenced: a code fence may be around it
    at = skip_space(text, at)
    if fenced and text.startswith("`", at):
        fence = _FENCE.match(text, at)
        if fence is None:
            return NEED_MORE if not final and _FENCE_SO_FAR.match(text, at) else False
        at = fence.end()
    if _CALL.match(text, at):
        return True
    return NEED_MORE if not final and _CALL_SO_FAR.match(text, at) else False


# What may become the beginning of a call when more text comes.
_LIST_SO_FAR = re.compile(r"\[\s{0,40}(?:[^\W\d][\w.]{0,200}\s{0,40})?\Z")


@dataclass(frozen=True, slots=True)
class WholeList(Envelope):
    """Envelope: nothing opens a call but the beginning of the answer, `[name(`.

    tokens: special tokens around a list, which are read where this format is named.
    """

    tokens: tuple[str, ...] = ()

    @property
    def among_others(self) -> Envelope:
        # another format is known by the tokens
        return WholeList()

    calls_are_python = True

    heads_are_fixed = True
    speculation_starts = "["

    def heads(self, tools: Tools) -> tuple[str, ...]:
        return self.tokens

    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Answer:
        token = next((token for token in self.tokens if text.startswith(token, pos)), None)
        return Opening(len(token), "markup") if token else None

    def speculates(self, text: str) -> Answer:
        # if the body is no list of calls, the text is text
        if HEAD.match(text):
            return Opening(0, speculative=True)
        return NEED_MORE if _LIST_SO_FAR.match(text) else None

    def scanner(self, opening: Opening, tools: Tools) -> Scanner:
        return LoneList("\"'")


# How special tokens begin that may end an answer, where they were not stripped from it.
_TOKENS = ("<|", "<｜", *TURN_ENDS)
# An argument after the bracket of its call, and what may become one.
_ARGUMENT = re.compile(r"[ \t]{0,64}+,?[ \t]{0,64}+[A-Za-z_]\w{0,127}+[ \t]{0,64}+=(?!=)")
_ARGUMENT_SO_FAR = re.compile(
    r"[ \t]{0,64}+(?:,[ \t]{0,64}+)?(?:[A-Za-z_]\w{0,127}+[ \t]{0,64}+=?)?\Z"
)
# What follows the list on its line, not far away: such a token, or any character.
_AFTER = re.compile(rf"[ \t]{{0,64}}+(?P<char>{any_of(_TOKENS)}|\S|\s)")


class LoneCall(Balanced):
    """A call: if an argument follows its bracket, the bracket was closed too early."""

    __slots__ = ()

    def _behind_value(self, tail: str, pos: int, final: bool) -> Close | int:
        # The body ends past the bracket then, and cannot be read.
        argument = _ARGUMENT.match(tail, pos)
        if not final and (
            _ARGUMENT_SO_FAR.match(tail, pos) or (argument and argument.end() == len(tail))
        ):
            return -1
        end = self._at + (argument.end() if argument else pos)
        return Close(end, end, "end")


class LoneList(Balanced):
    """A list: if something else is on the line of its bracket, it is no list of calls.

    A special token that was not stripped may be there.
    """

    __slots__ = ()

    def _behind_value(self, tail: str, pos: int, final: bool) -> Close | int:
        after = _AFTER.match(tail, pos)
        # The end of the tail may become a special token.
        begin = after.start("char") if after else len(tail)
        if not final and ends_inside(tail, begin, _TOKENS):
            return -1
        # The body ends past the bracket where text follows it, and cannot be read.
        is_text = after is not None and after["char"] not in _TOKENS
        if after is not None and is_text and not after["char"].isspace():
            pos = after.end()
        return Close(self._at + pos, self._at + pos, "end")


def python_row(
    id: str, title: str, envelope: PythonTags, codec: PythonCalls, *aliases: str
) -> Protocol:
    return Protocol(
        id=id,
        aliases=aliases,
        title=title,
        envelope=envelope,
        codec=codec,
        tags=frozenset(("delimited",)),
        type_rules=PYTHON_TYPE_RULES,
        signs=Signs(openers=(re.escape(codec.opener.strip()),)),
    )


def between(opener: str, closer: str, **fields: bool) -> PythonTags:
    return PythonTags((opener.strip(),), with_or_without_space(closer), **fields)


PYTHONIC = Protocol(
    id="pythonic",
    aliases=("bfcl_prompt", "bfcl_python"),
    title="a list of Python calls, no delimiters",
    envelope=WholeList(("<|python_start|>", "<|python_end|>")),
    codec=PythonCalls(),
    tags=frozenset(("undelimited",)),
    type_rules=PYTHON_TYPE_RULES,
)

PROTOCOLS: tuple[Protocol, ...] = (
    python_row("llama4_python_start",
         "a list of Python calls between <|python_start|> and <|python_end|>",
         between("<|python_start|>", "<|python_end|>"),
         PythonCalls("<|python_start|>", "<|python_end|>"), "llama4_pythonic"),
    python_row("gemma_fence_tool_code", "Python calls in a fence of tool_code",
         between("```tool_code", "\n```", line=True), PythonCalls("```tool_code\n", "\n```")),
    python_row("olmo3", "Python calls on lines in <function_calls>",
         between("<function_calls>", "</function_calls>"),
         PythonCalls("<function_calls>", "</function_calls>", in_list=False, json_words=True)),
    python_row("lfm2", "a list of Python calls between <|tool_call_start|> and <|tool_call_end|>",
         between("<|tool_call_start|>", "<|tool_call_end|>"),
         PythonCalls("<|tool_call_start|>", "<|tool_call_end|>")),
    python_row("minicpm3",
         "Python calls in a fence between <|tool_call_start|> and <|tool_call_end|>",
         between("<|tool_call_start|>", "<|tool_call_end|>", fenced=True),
         PythonCalls("<|tool_call_start|>\n```python\n", "\n```\n<|tool_call_end|>",
                     in_list=False)),
    python_row("gorilla_openfunctions", "Python calls after <<function>>",
         PythonTags(("<<function>>",), (), strict_head=True),
         PythonCalls("<<function>>", "", in_list=False, line="<<function>>")),
    python_row("bfcl_python_tag", "a list of Python calls in <TOOLCALL>",
         PythonTags(("<TOOLCALL>", "<tool_call>", "<tool_calls>"),
                    ("</TOOLCALL>", "</tool_call>", "</tool_calls>"), strict_head=True),
         PythonCalls("<TOOLCALL>", "</TOOLCALL>"), "toolcall_python"),
    python_row("llama3_python_calls", "Python calls after <|python_tag|>",
         PythonTags(("<|python_tag|>",), (), strict_head=True),
         PythonCalls("<|python_tag|>", "", in_list=False, line="<|python_tag|>")),
)  # fmt: skip
