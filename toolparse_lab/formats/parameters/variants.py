"""Formats of parameter tags that are more than constants: headers, other tokens, escapes."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Literal

from ...arguments.rjson.strict import Refusal, read_if_strict
from ...core.toolspec import ToolSpec
from ...core.types import Edit, Span
from ...core.values import Value, escape_token, read_strict, write_canonical
from ..base import (
    NEED_MORE,
    Answer,
    Codec,
    DecodeContext,
    Decoded,
    Envelope,
    Fit,
    Opening,
    Places,
    Tools,
    make_opening,
    moved_places,
    with_step,
)
from ..scan import LiteralBody, Scanner, begun, ends_inside, skip_space
from .form import Form, TagForm
from .scan import ParameterScan
from .tags import ParameterCall, ParameterTags

_MAX_HEADER = 512
_START = "<|start|>"
_HEADER = re.compile(r"<\|start\|>(?P<header>[^<]{0,400})<\|message\|>")
_CUT_HEADER = re.compile(r"<\|start\|>assistant(?:\s{1,4}to=[^\s<]{1,128})?[ ]?(?=\n|<)")
_TO = re.compile(r"\bto=(?P<name>[^\s<]+)")
_NO_TOOLS = frozenset(("user", "commentary", "developer", "system", "assistant", "all", "final"))
_ANY_TOOL = frozenset(("functions", "function", "tools", "tool", "skill"))
# The rest of a header whose beginning stood in the prompt, or is missing.
_LONE_HEADER = re.compile(r"to=[^\s<]{1,128}+\s{0,4}<\|message\|>")
_LONE_SO_FAR = re.compile(
    r"(?:t|to|to=|to=[^\s<]{1,128}+\s{0,4}(?:<(?:\|[a-z]{0,7}(?:(?<=message)\|)?)?)?)\Z"
)


@dataclass(frozen=True)
class MessageTags(ParameterTags):
    """Envelope of blocks in messages, of which header and end are markup.

    A message to the model itself is thought, one to the user is text.
    """

    ends: tuple[str, ...] = ("<|eom|>", "<|eot|>")

    def heads(self, tools: Tools) -> tuple[str, ...]:
        return (*super().heads(tools), _START, "to=", "<|message|>", *self.ends)

    def may_open(self, literal: str) -> bool:
        own = (_START, "to=", "<|message|>", *self.ends)
        return literal.startswith(own) or super().may_open(literal)

    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Answer:
        for end in self.ends:
            if text.startswith(end, pos):
                return Opening(len(end), "markup")
        if text.startswith("<|message|>", pos):
            return self._message("", len("<|message|>"), tools)
        if text.startswith("to=", pos):
            match = _LONE_HEADER.match(text, pos)
            if match is not None:
                return self._message(match[0], match.end() - pos, tools)
            return NEED_MORE if not final and _LONE_SO_FAR.match(text, pos) else None
        if not text.startswith(_START, pos):
            return super().open(text, pos, final, tools)
        match = _HEADER.match(text, pos)
        if match is None:
            if not final and len(text) - pos < _MAX_HEADER:
                return NEED_MORE
            match = _CUT_HEADER.match(text, pos)
        return self._message(match[0], match.end() - pos, tools) if match else None

    def _message(self, header: str, end: int, tools: Tools) -> Opening:
        # Calls are in messages to a tool alone. One without a recipient is thought or text.
        recipient = _TO.search(header)
        name = recipient["name"] if recipient else ""
        if name == "self":
            return Opening(end, "reasoning")
        words = {name, *re.split(r"[.:/]", name)}
        is_tool = words & {*tools, *_ANY_TOOL} if tools else name and name not in _NO_TOOLS
        return Opening(end, "markup", text=() if is_tool else (_START, *self.ends))

    def resumes(self, text: str, tools: Tools) -> Answer:
        # An answer may begin inside the header of a message.
        match = _LONE_HEADER.match(text)
        if match is not None:
            return self._message(match[0], match.end(), tools)
        return NEED_MORE if _LONE_SO_FAR.match(text) else None

    def resume_starts(self, tools: Tools) -> str | None:
        return "t"

    may_resume = True

    def suits(self, opening: Opening, text: str, at: int, final: bool, tools: Tools) -> Fit:
        if opening.kind == "call":
            return super().suits(opening, text, at, final, tools)
        if opening.kind == "reasoning":
            return True
        at, opener = skip_space(text, at), self.form.opener
        if text.startswith(opener, at):
            return True
        return NEED_MORE if not final and ends_inside(text, at, (opener,)) else False

    def scanner(self, opening: Opening, tools: Tools) -> Scanner:
        if opening.kind == "reasoning":
            return LiteralBody(self.ends, (_START,))
        if not opening.end:
            return super().scanner(opening, tools)
        return ParameterScan(self.form, tools, wrapped=True, ends=self._tokens)

    @cached_property
    def _tokens(self) -> re.Pattern[str]:
        return re.compile("|".join(map(re.escape, (_START, *self.ends))))


_RECIPIENT = re.compile(
    r"(?:<\|start\|>assistant)?[ ]?to=(?:functions\.)?(?P<name>[\w.:/-]{1,128}+)"
    r"(?:\s{0,4}<\|channel\|>[ ]?(?:analysis|comment)[^<]{0,56}+)?"
    r"(?:<\|constrain\|>[ ]?xml[ ]?)<\|message\|>"
)
_RECIPIENT_SO_FAR = re.compile(
    r"(?:<\|start\|>assistant)?[ ]?to=[^<>\s]{0,140}+\s{0,4}(?:<\|channel\|>[^<]{0,64}+)?"
    r"(?:<\|constrain\|>[ ]?(?:x(?:ml?)?)?[ ]?)?"
    rf"(?:{'|'.join(map(begun, ('<|channel|>', '<|constrain|>', '<|message|>')))})\Z"
)
_CALL = "<|call|>"
_NEXT_CALL = re.compile(
    rf"{re.escape(_CALL)}\s*+(?={_RECIPIENT.pattern.replace('?P<name>', '?:')})"
)
_ROLE = "<|start|>assistant"
_THOUGHT, _SAID = "<|channel|>analysis<|message|>", "<|channel|>final<|message|>"
_END = "<|end|>"
_THOUGHTS = (_THOUGHT, _ROLE + _THOUGHT)
_TEXTS = (_SAID, _ROLE + _SAID, "<|message|>")
_AROUND = (*_THOUGHTS, *_TEXTS, _END, "<|return|>")  # what is around calls
_TEXT_ENDS = ("<|start|>", "<|channel|>", _END, _CALL, "<|return|>")


@dataclass(frozen=True)
class HeadedTags(ParameterTags):
    """Envelope of a header that names the tool, after which come the parameters."""

    form: TagForm

    closers = (_CALL,)

    def heads(self, tools: Tools) -> tuple[str, ...]:
        return (_ROLE + " to=", " to=", "to=", *_AROUND)

    def may_open(self, literal: str) -> bool:
        return True

    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Answer:
        for token in _AROUND:
            if text.startswith(token, pos):
                kind: Literal["reasoning", "markup"] = (
                    "reasoning" if token in _THOUGHTS else "markup"
                )
                return Opening(len(token), kind, text=_TEXT_ENDS if token in _TEXTS else ())
        match = _RECIPIENT.match(text, pos)
        if match is None:
            begins = _RECIPIENT_SO_FAR.match(text, pos) or ends_inside(text, pos, _AROUND)
            return NEED_MORE if begins and not final else None
        span = Span(match.start("name") - pos, match.end("name") - pos)
        return make_opening(match.end() - pos, name=match["name"], name_span=span)

    def suits(self, opening: Opening, text: str, at: int, final: bool, tools: Tools) -> Fit:
        return opening.kind == "call"

    def scanner(self, opening: Opening, tools: Tools) -> Scanner:
        if opening.kind == "reasoning":
            return LiteralBody((_END,), ("<|start|>",))
        return ParameterScan(self._ending, tools, wrapped=True, name=opening.name)

    @cached_property
    def _ending(self) -> TagForm:
        return replace(self.form, closer=_CALL)

    def in_value(self, opening: Opening, text: str, tools: Tools) -> bool:
        # A parameter's tag after the last closer: its value was still open.
        return text.rfind(f"<{self.form.parameter}") > text.rfind(self.form.parameter_closer)

    def closer_of(self, opening: Opening) -> str:
        return _CALL


@dataclass(frozen=True, slots=True)
class HeadedCall(Codec):
    """Codec of parameters after a header, read as inside a function's tags of that name."""

    form: TagForm

    def read(self, body: str, context: DecodeContext) -> tuple[Decoded, ...]:
        # An end that the next header follows ended a value without its closer.
        swallowed = _NEXT_CALL.search(body)
        if swallowed is not None:
            message = "the call ends inside a value, and another begins"
            raise Refusal("decode.ambiguous", message, swallowed.start())
        # Read as a function's body, since the header says no more than a function's tag. The
        # offsets then move back by the tag's length.
        head = self.form.function_tag(context.opening.name)
        whole = head + body + (self.form.function_closer if context.closed else "")
        calls = ParameterCall(self.form).read(whole, context)
        if any(edit.rule == "tags.unclosed-parameter" for call in calls for edit in call.edits):
            header = _RECIPIENT.search(body)
            if header is not None:
                message = "a value without its closer holds the header of another call"
                raise Refusal("decode.ambiguous", message, header.start())
        return tuple(_shifted(call, -len(head), len(body)) for call in calls)

    def write(self, name: str, arguments_json: str, tool: ToolSpec | None) -> str:
        text = ParameterCall(self.form).write(name, arguments_json, tool)
        head, closer = self.form.function_tag(name), self.form.function_closer
        inner = text[len(head) : len(text) - len(closer)]
        header = f" to={name}<|channel|>analysis <|constrain|>xml<|message|>"
        return f"{header}{inner}{_CALL}"


def _shifted(call: Decoded, by: int, size: int) -> Decoded:
    # Nothing of a call is beyond the body, whose size is `size`.

    def moved(start: int, end: int) -> tuple[int, int]:
        return max(0, min(size, start + by)), max(0, min(size, end + by))

    edits = tuple(
        Edit(Span(*moved(edit.span.start, edit.span.end)), edit.text, edit.rule)
        for edit in call.edits
    )
    return replace(call, name_span=None, edits=edits, places=moved_places(call.places, moved))


BARS = "|｜│┃‖║¦∣￨❘⏐ǀ"
"""Characters that look like the bar of a special token."""
_ALIKE = ":alike:"  # in an opening: the token and the block's word follow
_BLOCKS = ("tool_calls", "function_calls", "tool_call", "function_call", "toolcalls", "calls")
_WORDS = (*_BLOCKS, "invoke")


@lru_cache(maxsize=8)
def _openers(word: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    bars = rf"[{re.escape(BARS)}]{{0,2}}"
    token = rf"{bars}\x20?{word}\x20?{bars}\x20?"
    letters = "".join(f"(?:{c}" for c in word) + ")?" * len(word)
    so_far = rf"<{bars}(?:\x20?(?:{letters}|{word}\x20?{bars}(?:\x20?[a-z_]{{0,16}})))\Z"
    words = "|".join(_WORDS)
    return (
        re.compile(rf"<(?P<token>{token})(?P<word>{words})(?=[\s>])", re.IGNORECASE),
        re.compile(so_far, re.IGNORECASE),
    )


@lru_cache(maxsize=96)
def _form_of(maker: Callable[..., Form], *words: str) -> Form:
    return maker(*words)


@dataclass(frozen=True)
class EitherTags(ParameterTags):
    """Envelope of blocks that are written in several ways, of which `form` is the format's own.

    An opening says in its attributes which one it is: it has no other place for what scanner and
    codec have to know.
    """

    @cached_property
    def _own(self) -> ParameterTags:
        return ParameterTags(self.form, self.restarts)

    def owner_of(self, opening: Opening) -> Envelope:
        """Return the envelope of the way in which a block is written."""
        return self._own

    def scanner(self, opening: Opening, tools: Tools) -> Scanner:
        return self.owner_of(opening).scanner(opening, tools)

    def in_value(self, opening: Opening, text: str, tools: Tools) -> bool:
        return self.owner_of(opening).in_value(opening, text, tools)

    def closer_of(self, opening: Opening) -> str | None:
        return self.owner_of(opening).closer_of(opening)


@dataclass(frozen=True)
class Alikes:
    """Blocks with other spellings of a token.

    word: of the token, without its bars. own: the token as the format writes it. block: the word of
    its block. maker: makes the form of a token and a block's word. of_others: tokens and words of
    blocks that are other formats' own, where several are read at once.
    """

    word: str
    own: str
    block: str
    maker: Callable[[str, str], Form]
    of_others: frozenset[tuple[str, str]] = frozenset()

    @cached_property
    def heads(self) -> tuple[str, ...]:
        heads = [f"<{self.word}"]
        for bar in BARS:
            heads += [f"<{bar}{self.word}", f"<{bar}{bar}{self.word}", f"<{bar} {self.word}"]
        # The token's word is a name, which a model may write small.
        return tuple(dict.fromkeys((*heads, *map(str.lower, heads))))

    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Answer:
        whole, partial = _openers(self.word)
        match = whole.match(text, pos)
        if match is None:
            return NEED_MORE if not final and partial.match(text, pos) else None
        block = self.block if match["word"].lower() == "invoke" else match["word"]
        if match["token"] == self.own:
            return None  # whatever the block's word, its functions are the format's own
        if (match["token"], match["word"]) in self.of_others:
            return None
        form = _form_of(self.maker, match["token"], block)
        opening = ParameterTags(form).open(text, pos, final, tools)
        if not isinstance(opening, Opening):
            return opening
        return replace(opening, attributes=f"{_ALIKE}{match['token']}:{block}")

    def form_of(self, opening: Opening) -> Form:
        token, _, block = opening.attributes.removeprefix(_ALIKE).rpartition(":")
        return _form_of(self.maker, token, block)

    def read(self, body: str, token: str, context: DecodeContext) -> tuple[Decoded, ...]:
        """Return the calls of a body, with a step that says how they were written."""
        calls = ParameterCall(_form_of(self.maker, token, self.block)).read(body, context)
        return tuple(
            with_step(call, "read.look-alike", f"<{token}") if call.readable else call
            for call in calls
        )


_PLAIN = ":plain"  # in an opening: its tags have no token


@dataclass(frozen=True, kw_only=True)
class TokenTags(EitherTags):
    """Envelope of blocks whose tags have their token in whatever spelling, or have lost it.

    alikes: reads its other spellings, None where another format does. plain: the form of the tags
    without it, None where several formats are read at once. elsewhere: `alikes` then.
    """

    alikes: Alikes | None
    plain: Form | None
    elsewhere: Alikes | None = None

    @cached_property
    def among_others(self) -> Envelope:
        return replace(self, alikes=self.elsewhere, plain=None, elsewhere=None)

    @cached_property
    def _plain(self) -> ParameterTags | None:
        return ParameterTags(self.plain) if self.plain else None

    @property
    def closers(self) -> tuple[str, ...]:
        return (self.form.closer, *((self.plain.closer,) if self.plain else ()))

    def heads(self, tools: Tools) -> tuple[str, ...]:
        alike = self.alikes.heads if self.alikes else ()
        return (*super().heads(tools), *alike, *(self._plain.heads(tools) if self._plain else ()))

    def may_open(self, literal: str) -> bool:
        return True

    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Answer:
        opening = super().open(text, pos, final, tools)
        if opening is None and self.alikes is not None:
            opening = self.alikes.open(text, pos, final, tools)
        if opening is not None or self._plain is None:
            return opening
        opening = self._plain.open(text, pos, final, tools)
        return replace(opening, attributes=_PLAIN) if isinstance(opening, Opening) else opening

    def owner_of(self, opening: Opening) -> Envelope:
        if self.alikes is not None and opening.attributes.startswith(_ALIKE):
            return ParameterTags(self.alikes.form_of(opening))
        return self._plain if self._plain and opening.attributes == _PLAIN else self._own

    def suits(self, opening: Opening, text: str, at: int, final: bool, tools: Tools) -> Fit:
        # No other format has such a spelling.
        if opening.attributes.startswith(_ALIKE):
            return True
        return super().suits(opening, text, at, final, tools)


@dataclass(frozen=True, slots=True)
class TokenCall(Codec):
    """Codec of such blocks. plain: the form of the tags in a body without the token.

    alikes: reads blocks whose opener spells the token in another way.
    """

    form: Form
    plain: Form
    alikes: Alikes

    def read(self, body: str, context: DecodeContext) -> tuple[Decoded, ...]:
        if f"<{self.alikes.own}invoke" not in body:
            tags = _openers(self.alikes.word)[0].finditer(body)
            match = next((tag for tag in tags if tag["word"].lower() == "invoke"), None)
            if match is not None and match["token"] != self.alikes.own:
                return self.alikes.read(body, match["token"], context)
        # A body of JSON has no tags at all: either form reads it.
        is_plain = context.opening.attributes == _PLAIN or self.alikes.own.strip() not in body
        return ParameterCall(self.plain if is_plain else self.form).read(body, context)

    def write(self, name: str, arguments_json: str, tool: ToolSpec | None) -> str:
        return ParameterCall(self.form).write(name, arguments_json, tool)


_SUFFIX = r"[\w-]{1,32}+"
_THINK = "think"


@lru_cache(maxsize=8)
def _suffixed_openers(word: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    head = re.escape(word)
    return re.compile(rf"<{head}:(?P<suffix>{_SUFFIX})>"), re.compile(rf"<{head}:(?:{_SUFFIX})?\Z")


@dataclass(frozen=True, slots=True)
class SuffixedBlocks(Envelope):
    """Envelope of blocks whose opener ends in a suffix. word: of the opener. maker: its form."""

    word: str
    maker: Callable[[str], Form]
    restarts: tuple[str, ...] = ()

    heads_are_fixed = True

    def heads(self, tools: Tools) -> tuple[str, ...]:
        return (f"<{self.word}:", f"<{_THINK}:")

    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Answer:
        is_thought = text.startswith(f"<{_THINK}:", pos)
        whole, partial = _suffixed_openers(_THINK if is_thought else self.word)
        match = whole.match(text, pos)
        if match is not None:
            kind: Literal["reasoning", "call"] = "reasoning" if is_thought else "call"
            return make_opening(match.end() - pos, kind, attributes=f":{match['suffix']}")
        return NEED_MORE if not final and partial.match(text, pos) else None

    def scanner(self, opening: Opening, tools: Tools) -> Scanner:
        suffix = opening.attributes
        if opening.kind == "reasoning":
            return LiteralBody((f"</{_THINK}{suffix}>",))
        return ParameterScan(_form_of(self.maker, suffix), tools, wrapped=True)

    def in_value(self, opening: Opening, text: str, tools: Tools) -> bool:
        form = _form_of(self.maker, opening.attributes)
        scan = ParameterScan(form, tools, wrapped=True, whole=True)
        scan.scan(text, True)
        return scan.in_value


@dataclass(frozen=True, kw_only=True)
class MaybeSuffixed(EitherTags):
    """Envelope of blocks without a suffix, and, where the format is named, of those with one."""

    suffixed: SuffixedBlocks

    @property
    def among_others(self) -> Envelope:
        return self._own

    def heads(self, tools: Tools) -> tuple[str, ...]:
        return (*super().heads(tools), *self.suffixed.heads(tools))

    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Answer:
        if text.startswith(self.suffixed.heads(tools), pos):
            return self.suffixed.open(text, pos, final, tools)
        return super().open(text, pos, final, tools)

    def owner_of(self, opening: Opening) -> Envelope:
        return self.suffixed if opening.attributes.startswith(":") else self._own


@dataclass(frozen=True, slots=True)
class SuffixedCall(Codec):
    """Codec of such blocks. suffix: the one that is written, with its colon, "" for none."""

    maker: Callable[[str], Form]
    suffix: str

    def read(self, body: str, context: DecodeContext) -> tuple[Decoded, ...]:
        suffix = context.opening.attributes
        if not suffix.startswith(":"):
            tag = _form_of(self.maker, "").function_word.removesuffix(">")
            match = re.search(rf"{re.escape(tag)}(:{_SUFFIX})>", body)
            suffix = match[1] if match else self.suffix
        return ParameterCall(_form_of(self.maker, suffix)).read(body, context)

    def write(self, name: str, arguments_json: str, tool: ToolSpec | None) -> str:
        return ParameterCall(_form_of(self.maker, self.suffix)).write(name, arguments_json, tool)


# What another codec of tags reads, put into other words. How it works: the other codec reads a
# body, and checks its edits, as it came. The change comes afterwards, in strict and repaired bodies
# alike, so that an edited body reads to the same as the one that was repaired.


@dataclass(frozen=True, slots=True)
class RewordedTags(Codec):
    tags: Codec

    @abstractmethod
    def reword(self, call: Decoded) -> Decoded:
        """Return what a call of the other codec says in this format."""

    @abstractmethod
    def word(self, key: str, value: Value) -> tuple[str, Value]:
        """Return the argument that says this one in the other codec's format."""

    def read(self, body: str, context: DecodeContext) -> tuple[Decoded, ...]:
        return tuple(map(self.reword, self.tags.read(body, context)))

    def write(self, name: str, arguments_json: str, tool: ToolSpec | None) -> str:
        arguments = read_strict(arguments_json)
        if isinstance(arguments, dict):
            pairs = (self.word(key, value) for key, value in arguments.items())
            arguments_json = write_canonical(dict(pairs))
        return self.tags.write(name, arguments_json, tool)

    @property
    def list_head(self) -> str:
        return self.tags.list_head

    def join(self, calls: Sequence[str]) -> str:
        return self.tags.join(calls)


def unescaped_name(text: str) -> str:
    # The ampersand last: its escape may be before the letters of another one.
    return text.replace("&quot;", '"').replace("&amp;", "&")


def escaped_name(name: str) -> str:
    return name.replace("&", "&amp;").replace('"', "&quot;")


class EscapedNames(RewordedTags):
    """Codec that takes the escapes out of the names that another codec reads."""

    __slots__ = ()

    def reword(self, call: Decoded) -> Decoded:
        arguments = call.arguments
        if isinstance(arguments, dict) and any("&" in key for key in arguments):
            values: dict[str, Value] = {unescaped_name(key): v for key, v in arguments.items()}
            # Two keys that say one name are left as they are: neither value is lost.
            if len(values) == len(arguments):
                places = partial(_unescaped_places, call, tuple(arguments))
                call = replace(call, arguments=values, places=places)
        # A name that was escaped has no place of its own letters in the text.
        name = unescaped_name(call.name)
        return call if name == call.name else replace(call, name=name, name_span=None)

    def word(self, key: str, value: Value) -> tuple[str, Value]:
        return escaped_name(key), value

    def write(self, name: str, arguments_json: str, tool: ToolSpec | None) -> str:
        return RewordedTags.write(self, escaped_name(name), arguments_json, tool)


def _unescaped_places(call: Decoded, keys: tuple[str, ...]) -> Places:
    # keys: of the arguments as they are in the text.
    heads = {escape_token(key): escape_token(unescaped_name(key)) for key in keys}
    places: dict[str, tuple[int, int]] = {}
    for path, place in call.places().items():
        key, slash, rest = path[1:].partition("/")
        places[f"/{heads.get(key, key)}{slash}{rest}" if path else ""] = place
    return places


# Possessive, as it is asked of every text.
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)


class JsonTexts(RewordedTags):
    """Codec that takes the quotes off the texts that another codec reads.

    A text that is not quoted as a whole is what it is.
    """

    __slots__ = ()

    def reword(self, call: Decoded) -> Decoded:
        if not isinstance(call.arguments, dict) or not call.untyped:
            return call
        texts: dict[str, Value] = {}
        # Nothing but the arguments themselves: quotes inside a list are the list's own.
        for name, value in call.arguments.items():
            if isinstance(value, str) and _QUOTED.fullmatch(value):
                values = read_if_strict(value, 1)
                if values is not None and len(values) == 1:
                    texts[name] = values[0]
        if not texts:
            return call
        return replace(
            call,
            arguments={**call.arguments, **texts},
            places=partial(_unquoted_places, call, tuple(texts)),
            unescape=_offsets,
        )

    def word(self, key: str, value: Value) -> tuple[str, Value]:
        is_quoted = isinstance(value, str) and _QUOTED.fullmatch(value)
        return key, write_canonical(value) if is_quoted else value


def _unquoted_places(call: Decoded, names: tuple[str, ...]) -> Places:
    places = dict(call.places())
    for name in names:
        path = f"/{escape_token(name)}"
        if path in places:
            # One mark at each end; escapes inside move nothing outside.
            start, end = places[path]
            places[path] = (start + 1, end - 1)
    return places


def _offsets(raw: str) -> list[int] | None:
    return None if "\\" in raw else list(range(len(raw) + 1))
