"""Marks of reasoning: what models write around what they think before they answer.

`MARKS` lists the marks of known models. Others are recognised by their shape: an element or a
special token whose name says reasoning.
"""

# How it works
# ------------
# An opener counts at the beginning of a line. It is read in any case, with white space inside its
# brackets and with attributes; so is its closer. The closer of an opener has the same word in its
# name, and a slash or a word such as `end`. A closer without an opener ends reasoning whose opener
# stood in the prompt.
#
# Cost: openers are looked for at the beginnings of lines alone, and patterns are bounded.

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import NamedTuple

from .base import NEED_MORE, NeedMore, Opening
from .scan import BodyScanner, Close, ends_inside, longest_of
from .turns import PLAIN, TURNS


class Mark(NamedTuple):
    """Opener and closers of reasoning, and the models or templates that write them.

    stops: what ends the reasoning without being a part of it. late: what does so at the end of a
    text, where nothing else ended it. lone: the closers say reasoning without their opener too.
    first: a line of words, which counts at the beginning of an answer.
    """

    opener: str
    closers: tuple[str, ...]
    source: str
    stops: tuple[str, ...] = ()
    late: tuple[str, ...] = ()
    lone: bool = False
    first: bool = False


_GRANITE_END = ("Here is my response:", "Here's my response:")
_HARMONY_ENDS = ("<|end|>", "<|return|>")
_HARMONY_STOPS = ("<|start|>", "<|channel|>", "<|call|>")

MARKS: tuple[Mark, ...] = (
    Mark("<think>", ("</think>",), "Qwen 3, DeepSeek R1, GLM 4.5, MiniMax, Kimi K2 and others",
         late=("<|tool_calls_section_begin|>",)),
    Mark("<thinking>", ("</thinking>",), "Apriel, Claude by prompt, Reflection"),
    Mark("<thought>", ("</thought>",), "EXAONE Deep, Marco-o1"),
    Mark("<reasoning>", ("</reasoning>",), "LLaVA-CoT, fine-tunes"),
    Mark("<reflection>", ("</reflection>",), "Reflection"),
    Mark("<scratchpad>", ("</scratchpad>",), "Claude by prompt"),
    Mark("<scratch_pad>", ("</scratch_pad>",), "Hermes 2 Pro and 3 by prompt"),
    Mark("<analysis>", ("</analysis>",), "Claude by prompt"),
    Mark("<inner_monologue>", ("</inner_monologue>",), "Claude by prompt, Letta"),
    Mark("<antThinking>", ("</antThinking>",), "Claude"),
    Mark("<think:opensource>", ("</think:opensource>",), "Hunyuan 3"),
    Mark("<seed:think>", ("</seed:think>",), "Seed-OSS"),
    Mark("<mm:think>", ("</mm:think>",), "MiniMax M3"),
    Mark("<longcat_think>", ("</longcat_think>",), "LongCat"),
    Mark("<ifm|think>", ("</ifm|think>",), "K2 of IFM"),
    Mark("<ifm|think_fast>", ("</ifm|think_fast>",), "K2 of IFM"),
    Mark("<ifm|think_faster>", ("</ifm|think_faster>",), "K2 of IFM"),
    Mark("◁think▷", ("◁/think▷",), "Kimi-VL"),
    Mark("[THINK]", ("[/THINK]",), "Magistral, Ministral"),
    Mark("<|think|>", ("<|/think|>", "<|end|>"), "Solar Open", ("<|begin|>",)),
    Mark("<|thinking|>", ("<|/thinking|>",), "LFM"),
    Mark("<|think_start|>", ("<|think_end|>",), "fine-tunes with tokens of their own"),
    Mark("<|thought_start|>", ("<|thought_end|>",), "fine-tunes with tokens of their own"),
    Mark("<|begin_of_thought|>", ("<|end_of_thought|>",), "OpenThinker, Sky-T1"),
    Mark("<|START_THINKING|>", ("<|END_THINKING|>",), "Command A"),
    Mark("<|inner_prefix|>", ("<|inner_suffix|>",), "Apertus", lone=True),
    Mark("<|plamo:begin_think:plamo|>", ("<|plamo:end_think:plamo|>",), "PLaMo"),
    Mark("<|content_thinking|>", ("<|end_message|>",), "Inkling", ("<|message_model|>",)),
    Mark("<|channel>thought", ("<channel|>",), "Gemma 4", late=("<|tool_call>",), lone=True),
    Mark("<|channel|>analysis<|message|>", _HARMONY_ENDS, "gpt-oss", _HARMONY_STOPS),
    Mark("<|im_start|>think\n", (), "s1", ("<|im_start|>answer", "<|im_end|>", "<|im_start|>")),
    Mark("<|im_start|>assistant/think\n", ("<|im_end|>",), "HyperCLOVA X", ("<|im_start|>",)),
    Mark("<|open|>think<|sep|>", ("<|close|>think<|sep|>",), "Kimi K3",
         ("<|open|>response<|sep|>",), late=("<|open|>tools<|sep|>",), lone=True),
    Mark("[unused16]", ("[unused17]",), "openPangu", lone=True),
    Mark("<unused94>thought", ("<unused95>",), "MedGemma", lone=True),
    Mark('<details type="reasoning"', ("</details>",), "Open WebUI"),
    Mark("Here is my thought process:", _GRANITE_END, "Granite 3", first=True),
    Mark("Here's my thought process:", _GRANITE_END, "Granite 3", first=True),
    Mark("Here are my reasoning steps:", ("[BEGIN FINAL RESPONSE]",), "Apriel",
         lone=True, first=True),
)  # fmt: skip

# What a name of reasoning contains. Only the first group says it behind other text, or of a closer
# without an opener.
_STRONG = (
    "think|thought|reasoning|scratch_?pad|reflecti|reflexi|monolog|chain[_ -]?of[_ -]|deliberat"
    "|contemplat|introspect|(?<![a-z])cot(?![a-z])|思考|思维|思維|推理|생각|추론|рассужд|размышл|мысл"
    "|gedank|pensamiento|pensamento|razonamiento|raisonnement|pensée|ragionamento|pensiero|düşünce"
    "|تفكير"
)
_WEAK = (
    "reason|reflect|scratch|rationale|ponder|brainstorm|ruminat|analy[sz]|überleg|denk"
    "|(?<![a-z])(?:plan|planning|inner|internal|private)(?![a-z])"
)
_END_WORD = "end|stop|close|closing|finish|suffix|done"
_SAYS_SO_ALONE = re.compile(_STRONG)
_SAYS_REASONING = re.compile(f"{_STRONG}|{_WEAK}")
# A token that opens nothing: it ends reasoning, or switches it on or off.
_OPENS_NOTHING = re.compile(rf"(?<![a-z])(?:{_END_WORD}|on|off|no|non|not|without)(?![a-z])|^end")
_BEGINS = re.compile(r"(?<![a-z])(?:begin|start|open|prefix|of|my|the)(?![a-z])|^(?:begin|start)of")
_INFLECTION = re.compile(r"(?<=[a-z]{4})(?:ing|s)\Z")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")

_LEFT, _RIGHT = "<[◁【〔⟨«‹〈", ">]▷】〕⟩»›〉"
_INSIDE = rf"[^{re.escape(_LEFT + _RIGHT)}\n]"
_BAR = "[|\uff5c]"
_SHAPE = re.compile(
    r"<{1,2}\s{0,3}(?P<element>[^\W\d_][\w:.|\u2581-]{1,47})(?:\s[^<>\n]{0,160})?(?<!/)>"
    rf"|<\s{{0,2}}{_BAR}\s{{0,2}}(?P<token>[^\W\d_]{_INSIDE}{{1,47}}?)\s{{0,2}}{_BAR}?\s?>"
    r"|\[{1,2}\s{0,2}(?P<bracket>[^\W\d_][\w :.-]{1,47})\](?!\()"
    rf"|[{_LEFT[2:]}]\s{{0,2}}(?P<other>[^\W\d_]{_INSIDE}{{1,47}})[{_RIGHT[2:]}]"
)
# The beginning of one, at the end of a text. Of an element with attributes the name says enough.
_SHAPE_SO_FAR = re.compile(
    r"(?:<{1,2}\s{0,3}(?P<element>[^\W\d_][\w:.|\u2581-]{1,47})\s[^<>\n]{0,160}"
    r"|<{1,2}\s{0,3}(?:[^\W\d_][\w:.|\u2581-]{0,47})?"
    rf"|<\s{{0,2}}{_BAR}\s{{0,2}}{_INSIDE}{{0,52}}"
    r"|\[{1,2}\s{0,2}(?:[^\W\d_][\w :.-]{0,47}\]?)?"
    rf"|[{_LEFT[2:]}]{_INSIDE}{{0,50}})\Z"
)
# Most lines that begin with a bracket begin with nothing of the kind. An answer has few such
# beginnings, each many times.
_INSIDE_SO_FAR = 64
_BRACKETED = re.compile(rf"[{re.escape(_LEFT)}]{{1,2}}{_INSIDE}{{0,{_INSIDE_SO_FAR}}}")
_MAY_OPEN = re.compile(
    rf"(?i:{_STRONG}|{_WEAK})|<\|(?:channel|im_start|open|inner_prefix)|<unused94|\[unused16"
)
LONE_ENDS = tuple(dict.fromkeys(end for mark in MARKS if mark.lone for end in mark.closers))
_STRONG_INSIDE = rf"(?={_INSIDE}{{0,40}}?(?i:{_STRONG}))"
END_PATTERN = (
    f"{longest_of(LONE_ENDS)}"
    rf"|[<\[◁【]\s{{0,2}}(?:{_BAR}\s?)?[/\\]\s{{0,2}}{_STRONG_INSIDE}{_INSIDE}{{2,48}}[>\]▷】]"
    rf"|<{_BAR}(?={_INSIDE}{{0,40}}?(?i:{_END_WORD})){_STRONG_INSIDE}{_INSIDE}{{2,48}}{_BAR}>"
)
"""The source of a pattern for the closers of reasoning that need no opener before them."""
END_SO_FAR = rf"[<\[◁【]\s{{0,2}}(?:[|\uff5c/\\]{_INSIDE}{{0,52}})?"
"""The source of a pattern for the beginning of such a closer, at the end of a text."""
LONGEST_END = 60
END_STARTS = "<[◁【"
_END = re.compile(END_PATTERN)
END_NEXT = frozenset({"", *"/\\|\uff5c \t\r\n", *(end[1] for end in LONE_ENDS)})
"""What may follow the first character of such a closer."""
_END_BEGUN = re.compile(rf"(?:{END_SO_FAR})\Z")
STARTS = frozenset(_LEFT + " \t")
"""What a line may begin with whose first visible thing is an opener of reasoning."""
# The header of the assistant, which a model may write before its reasoning.
_ROLES = tuple(
    head for turns in TURNS.values() for head in turns.assistant
    if head not in PLAIN and head[0] in _LEFT
)  # fmt: skip
_ROLE = re.compile(rf"[ \t\ufeff\u200b]*(?:(?:{longest_of(_ROLES)})(?![/\w])\s{{0,4}})?")
_LONGEST = 64
# The token of an answer, before which the closer may be missing.
_ANSWER = rf"<{_BAR}{_INSIDE}{{0,24}}(?:answer|solution|response|final){_INSIDE}{{0,24}}{_BAR}>"


@dataclass(frozen=True, slots=True)
class Thought(Opening):
    """An opener of reasoning. ends: finds its closer; the group `stop` is no part of it. late: see
    `Mark`. tag: the name that says it is one, "" for the mark of a known model.
    """

    ends: re.Pattern[str] = re.compile("(?!)")
    late: tuple[str, ...] = ()
    tag: str = ""


def opens_at(
    text: str, pos: int, final: bool, first: bool
) -> tuple[int, Thought] | NeedMore | None:
    """Return where an opener of reasoning is on the line that begins at `pos`, and the opener.

    first: nothing was said before.
    """
    end = text.find(">", pos, pos + _INSIDE_SO_FAR) + 1
    if end and opens_nothing(text[pos:end]):
        return None
    role = _ROLE.match(text, pos)
    at = role.end() if role else pos
    if at >= len(text):
        return NEED_MORE if not final and text[pos:at].strip() else None
    if text[at] not in _LEFT:
        return _words_at(text, at, final) if first and text[at] in "Hh*" else None
    is_near_end = len(text) - at < _LONGEST
    if not final and is_near_end and ends_inside(text, at, _ROLES):
        return NEED_MORE
    begin = _BRACKETED.match(text, at)
    if begin is None or not _may_open(begin[0]):
        end = begin.end() if begin is not None else at
        is_whole = end < len(text) and end - at < _INSIDE_SO_FAR and text[end] != "]"
        return NEED_MORE if not (final or is_whole) and _may_be_shape(text, at) else None
    for opener, mark in _known() if _any_known().match(text, at) else ():
        match = None if mark.first else opener.match(text, at)
        if match is not None:
            return at, _thought(mark, match.end() - at)
    if (
        not final
        and is_near_end
        and ends_inside(text[at : at + _LONGEST].lower(), 0, _odd_openers())
    ):
        return NEED_MORE
    shape = _SHAPE.match(text, at)
    if shape is None:
        return NEED_MORE if not final and _may_be_shape(text, at) else None
    name = shape[shape.lastgroup or 0]
    if not _is_name(name) or not (first or _SAYS_SO_ALONE.search(_plain(name))):
        return None
    if not final and shape.end() == len(text) and text[-1] == "]":
        return NEED_MORE  # it may be the text of a link
    ends = _ends_by_name(name, shape.lastgroup == "token")
    return at, Thought(shape.end() - at, "reasoning", ends=ends, tag=name)


@lru_cache(maxsize=1024)
def opens_nothing(tag: str) -> bool:
    """Return True for a whole tag that opens no reasoning, as nearly all tags of calls."""
    begin = _BRACKETED.match(tag)
    return (
        begin is not None
        and begin.end() == len(tag) - 1 == tag.find(">", 0, _INSIDE_SO_FAR)
        and not _may_open(begin[0])
        and not any(role.startswith(tag) or tag.startswith(role) for role in _ROLES)
    )


@lru_cache(maxsize=1024)
def _may_open(begin: str) -> bool:
    return _MAY_OPEN.search(begin) is not None


def _thought(mark: Mark, end: int) -> Thought:
    return Thought(end, "reasoning", ends=_ends_of(mark), late=mark.late)


def _may_be_shape(text: str, at: int) -> bool:
    so_far = _SHAPE_SO_FAR.match(text, at)
    if so_far is None or so_far["element"] is None or _is_name(so_far["element"]):
        return so_far is not None
    return ends_inside(text[at : at + _LONGEST].lower(), 0, _odd_openers())


def _words_at(text: str, at: int, final: bool) -> tuple[int, Thought] | NeedMore | None:
    for opener, mark in _known():
        match = opener.match(text, at) if mark.first else None
        if match is not None:
            return at, _thought(mark, match.end() - at)
    line = text[at : at + _LONGEST]
    if final or "\n" in line or len(line) == _LONGEST:
        return None
    words = line.replace("*", "").replace("\u2019", "'").lower().rstrip(" \t")
    return NEED_MORE if any(m.opener.lower().startswith(words) for m in MARKS if m.first) else None


# names


@lru_cache(maxsize=1024)
def _is_name(name: str) -> bool:
    name = _plain(name)
    return _SAYS_REASONING.search(name) is not None and _OPENS_NOTHING.search(name) is None


def _plain(name: str) -> str:
    # Capitals in a word begin another one, as in `antThinking`.
    return _HUMP.sub(" ", name).lower().replace("_", " ")


def _core(name: str) -> str:
    # The words of a name that its closer has too: `begin_of_thought` and `end_of_thought`.
    words = re.findall(r"[^\W_]+", _BEGINS.sub(" ", _plain(name)))
    words = [re.escape(_INFLECTION.sub("", word)) + "(?:ing|s)?" for word in words]
    return r"[\W_]{0,3}(?:of[\W_]{0,3})?".join(words)


# patterns of marks


class _Known(NamedTuple):
    opener: re.Pattern[str]
    mark: Mark


@cache
def _known() -> tuple[_Known, ...]:
    # The longest first: one may begin with another.
    marks = sorted(MARKS, key=lambda mark: -len(mark.opener))
    return tuple(_Known(re.compile(_loose(m.opener, True), re.IGNORECASE), m) for m in marks)


@cache
def _any_known() -> re.Pattern[str]:
    return re.compile("|".join(opener.pattern for opener, _ in _known()), re.IGNORECASE)


@cache
def _odd_openers() -> tuple[str, ...]:
    # Marks of several tokens.
    return tuple(m.opener.lower() for m in MARKS if not m.first and not _SHAPE.fullmatch(m.opener))


def _loose(literal: str, opens: bool = False) -> str:
    # A mark with white space inside its brackets and, as an opener, with attributes. One of several
    # tokens is taken as it is, and one of words as a line, or as the beginning of one.
    source = re.escape(literal.strip())
    if literal[-1] == ":":
        source = rf"\*{{0,2}}{source}\*{{0,2}}".replace("'", "['\u2019]")
        return source + r"(?=[ \t]{0,8}\n)" if opens else rf"(?<=\n)[ \t]{{0,8}}{source}"
    if literal[-1] == "\n":
        return source + r"(?=\s)"
    if len(re.findall(f"[{re.escape(_LEFT)}]", literal)) > 1 or literal[-1] not in _RIGHT:
        return source
    left, slash, name, right = re.fullmatch(r"(\W{1,4}?)(\\/|/|)(\w.*?)(\W{1,4})", source).groups()  # type: ignore[union-attr]
    left, right = (side.replace("\\|", _BAR) for side in (left, right))
    more = r"(?:\s[^<>\n]{0,160})?(?<!/)" if opens and left == "<" and right == ">" else r"\s{0,2}"
    if left == "\\[":  # words in brackets are a link, unless they are capitals
        return rf"(?-i:{source})"
    return rf"{left}\s{{0,2}}{slash}\s{{0,2}}{name}{more}{right}"


@lru_cache(maxsize=256)
def _ends_by_name(name: str, is_token: bool, more: str = "(?!)", stop: str = "") -> re.Pattern[str]:
    own = rf"(?:(?<![^\W_])|(?<=end)|(?<=endof)){_core(name)}(?![^\W_])"
    left = rf"[{re.escape(_LEFT)}](?={_INSIDE}{{0,{_LONGEST - 4}}}[{re.escape(_RIGHT)}])"
    slash = rf"\s{{0,2}}(?:{_BAR}\s?)?[/\\]{_INSIDE}{{0,40}}?{own}{_INSIDE}{{0,12}}"
    word = (
        rf"(?={_INSIDE}{{0,48}}?(?<![^\W_])(?:{_END_WORD})){_INSIDE}{{0,48}}?{own}{_INSIDE}{{0,24}}"
    )
    mirrored = rf"\s?{_core(name)}{_BAR}"  # of a token with a bar at one side
    if is_token:
        more += rf"|<{_BAR}end{_BAR}>"
        stop = stop or _ANSWER
    right = f"[{re.escape(_RIGHT)}]"
    closer = rf"{left}(?:{slash}|{word}|{mirrored}){right}"
    return re.compile(rf"(?P<stop>{stop or '(?!)'})|{closer}|{more}", re.IGNORECASE)


@cache
def _ends_of(mark: Mark) -> re.Pattern[str]:
    more, stop = ("|".join(map(_loose, ends)) or "(?!)" for ends in (mark.closers, mark.stops))
    shape = _SHAPE.fullmatch(mark.opener)
    name = shape[shape.lastgroup or 0] if shape else ""
    if shape is not None and _is_name(name):
        return _ends_by_name(name, shape.lastgroup == "token", more, "" if stop == "(?!)" else stop)
    return re.compile(f"(?P<stop>{stop})|{more}", re.IGNORECASE)


# bodies and closers

_HELD = re.compile(
    rf"(?:[{re.escape(_LEFT)}][^{re.escape(_RIGHT)}\n]{{0,{_LONGEST}}}|<\|[^\n]{{0,{_LONGEST}}}"
    r"|\n[ \t]{0,8}\**(?i:h[^\n]{0,40})?)\Z"
)


class ThoughtBody(BodyScanner):
    """Ends at what a pattern finds, in front of it where its group `stop` does."""

    __slots__ = ("_ends",)

    def __init__(self, ends: re.Pattern[str]) -> None:
        self._at, self._hidden = 0, None
        self._ends = ends

    def scan(self, tail: str, final: bool) -> Close | int:
        match = self._ends.search(tail)
        if match is None:
            size = len(tail)
            held = None if final else _HELD.search(tail, max(0, size - _LONGEST - 2))
            return self._settle(held.start() if held else size)
        start, end = self._at + match.start(), self._at + match.end()
        is_stop = match["stop"] is not None
        return Close(start, start, "implicit") if is_stop else Close(start, end, "closer")


def encloses(before: str, after: str) -> bool:
    """Return True if an element whose name may say reasoning is open between two texts, and holds
    words of both.

    >>> encloses("Well.\\n<plan>I could call", "but no.</plan>"), encloses("<plan>", "</plan>")
    (True, False)
    """
    for shape in _SHAPE.finditer(before):
        name = shape["element"]
        if name and _is_name(name) and before[shape.end() :].strip():
            ends = _ends_by_name(name, False)
            end = None if ends.search(before, shape.end()) else ends.search(after)
            if end is not None and after[: end.start()].strip():
                return True
    return False


def body_in_prompt() -> ThoughtBody:
    """Return the scanner of reasoning whose opener is in the prompt."""
    return ThoughtBody(_any_end())


@cache
def _any_end() -> re.Pattern[str]:
    return re.compile(f"(?P<stop>(?!))|{END_PATTERN}")


def end_at(text: str, pos: int, final: bool) -> int | NeedMore | None:
    """Return the length of the closer at `text[pos]` of reasoning without an opener."""
    match = _END.match(text, pos)
    if match is not None:
        return match.end() - pos
    if final or len(text) - pos >= LONGEST_END:
        return None
    begins = _END_BEGUN.match(text, pos) or ends_inside(text, pos, LONE_ENDS)
    return NEED_MORE if begins else None


def is_end(mark: str) -> bool:
    """Return True if a text is a closer of reasoning that needs no opener before it."""
    return _END.fullmatch(mark) is not None


def opener_before(text: str, closer: str) -> int:
    """Return where the last opener is in a text that the closer after it may belong to, or -1."""
    return max((m.start() for m in _opener_of(closer).finditer(text)), default=-1)


@lru_cache(maxsize=512)
def _opener_of(closer: str) -> re.Pattern[str]:
    name = re.sub(rf"(?i)(?<![a-z])(?:{_END_WORD})", "", closer)
    opener = rf"[{re.escape(_LEFT)}]\s{{0,2}}{_BAR}?{_INSIDE}{{0,24}}?{_core(name)}"
    return re.compile(opener, re.IGNORECASE)


def mark_in(delimiter: str) -> str:
    """Return the opener or closer of a known model that a delimiter begins with, or ""."""
    for opener, mark in _known():
        if not mark.first and opener.match(delimiter.strip()):
            return mark.opener
    end = _END.match(delimiter.strip())
    return end[0] if end else ""


def is_pair(opener: str, closer: str) -> bool:
    """Return True if reasoning that a known model begins so ends so."""
    return any(m.opener == opener and closer in m.closers for m in MARKS)
