"""Forms of parameter tags that are literals around a name: `<arg_key>city</arg_key>`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from .form import LOOK, QUOTES, Form, Heads, StrictTags

# How it works. White space between the parts is free, and belongs to the tag. A name is what may
# be between them: of a function what names a tool anywhere, of a parameter nearly anything.
# Every repetition is possessive and bounded, so that a tag costs what it is long.

# Models that were taught from escaped text write a line break between tags as two characters.
_BREAK = r"(?:\s|\\n)"
_FIRST_TOKEN = re.compile(r"<\|[^<>|]+\|>(?=.)")  # of a closer of several tokens
_GAP = rf"{_BREAK}{{0,64}}+"
_SPACE_OR_BREAKS = re.compile(rf"{_BREAK}*+")
_TOOL = r"[\w.:/-]{1,128}+"
_WORD = rf"[^\s<>={QUOTES}]{{1,64}}+"
_KEY = rf"[^\s<>{QUOTES},;:|)}}\]][^\s<>{QUOTES}]{{0,127}}+(?:[ \t]{{1,8}}+{_WORD}){{0,8}}+"
_SPACE = r"[ \t\r\n]*+"
_WORD_TAG = re.compile(r"</?[A-Za-z][\w:|-]*\w>")
# Behind a name in quotes: attributes that mean nothing here, such as the number of the call. Any
# other may be an argument.
_ATTRIBUTES = r"(?:\s{1,8}+(?:index|type|counter|(?:call_|tool_call_)?id)=\"[^\"<>]{0,64}+\"){0,4}+"
_ATTRIBUTES_CUT = _ATTRIBUTES + r"(?:\s{1,8}+(?:[\w-]{1,24}+(?:=(?:\"[^\"<>]{0,64}+)?)?)?)?"


class Part(NamedTuple):
    """One part of a tag: the source of its pattern, and of every beginning of it but the whole."""

    whole: str
    cut: str


def _literal(text: str) -> Part:
    cut = ""
    for char in reversed(text[:-1]):
        cut = f"(?:{re.escape(char)}{cut})?"
    return Part(re.escape(text), cut)


def _spaced(tag: str) -> Part:
    # Before the bracket of a tag that is a word may be a slip: `<tool_call >`, `</tool_call\>`.
    part = _literal(tag)
    if not _WORD_TAG.fullmatch(tag):
        return part
    word = _literal(tag[:-1])
    slip = r"[ \t\\]{0,4}+"
    return Part(f"{word.whole}{slip}>", f"(?:{word.whole}{slip}|{word.cut})")


def _bare(head: str) -> str:
    return head.removesuffix('="')


def _head(group: str, head: str) -> Part:
    # With quotes of any kind around the name, or none.
    word = _spaced(_bare(head))
    if _bare(head) == head:
        return Part(f"(?P<{group}>{word.whole})", word.cut)
    sign = rf"\s?+=\s?+[{QUOTES}]?+"
    return Part(f"(?P<{group}>{word.whole}){sign}", rf"(?:{word.whole}\s?+(?:=\s?+)?+|{word.cut})")


def _name(group: str, source: str) -> Part:
    return Part(f"(?P<{group}>{source})", f"(?:{source}[ \\t]{{0,8}}+)?")


_SPACES = Part(_GAP, "")


def _sequence(parts: Sequence[Part]) -> tuple[str, str]:
    # The source of a whole tag, and of what may become one, to the end of the text.
    whole = "".join(part.whole for part in parts)
    cut = ""
    for part in reversed(parts):
        anonymous = re.sub(r"\?P<\w+>", "?:", part.whole)
        cut = f"(?:{anonymous}{cut}|{part.cut})" if cut else f"(?:{part.cut})"
    return whole, rf"{cut}\Z"


@dataclass(frozen=True)
class SlotForm(Form):
    """The constants of one format whose tags are literals around a name.

    function: the literals before and after a function's name. The second may be empty.
    function_end: its closer. parameter: the literals before, after and, for formats that write key
    and value apart, in front of the value. parameter_end: its closer. flag: the name of the
    attribute after a parameter's name that says the type of its value. boolean_flag: it says
    "true" for text and "false" for JSON. types: the literals around the type of a value, which
    may be between key and value in formats that write them apart. counter: the name of an
    attribute after a function's name, with the number of the call. The other fields are those of
    `Form`.
    """

    opener: str
    closer: str
    function: tuple[str, str]
    function_end: str
    parameter: tuple[str, ...]
    parameter_end: str
    trim: bool = False
    lines: bool = False
    entities: bool = False
    sections: bool = False
    markup: tuple[str, ...] = ()
    flag: str = ""
    boolean_flag: bool = False
    types: tuple[str, str] = ("", "")
    counter: str = ""

    @property
    def flags(self) -> bool:  # type: ignore[override]  # an attribute of the other forms
        return bool(self.flag or self.types[0])

    @property
    def repeats_are_lists(self) -> bool:
        # A key in a tag of its own that is there twice is one too many.
        return not self.value_has_tag

    @property
    def value_has_tag(self) -> bool:
        return len(self.parameter) > 2

    @property
    def flags_may_miss(self) -> bool:
        return not self.flag

    @property
    def space(self) -> re.Pattern[str]:
        return _SPACE_OR_BREAKS

    @cached_property
    def next_parameter(self) -> re.Pattern[str]:
        # A closer and a tag, or what is left of a tag that lost its beginning.
        head, tail, *value = self.parameter
        behind = (f'" {self.flag}="',) if self.flag else (tail, *value)
        word = re.escape(re.sub(r"\s+\w+=\"\Z", "", head))
        rest = "|".join(re.escape(literal) for literal in behind if literal)
        closer = re.escape(self.parameter_end)
        return re.compile(rf"{closer}{_GAP}(?:{word}|(?s:.{{1,96}}?)(?:{rest}))")

    @cached_property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        head, *value = self.parameter
        inner = ((head, value[0]), (value[-1], self.parameter_end)) if value[0][:1] == "<" else ()
        return (
            (self.opener, self.closer),
            (self.function[0], self.function_end),
            (self.function[1], ""),
            self.types,
            *(inner or ((head, self.parameter_end),)),
        )

    @property
    def bare_names(self) -> bool:
        # A name without quotes is one by its place alone.
        return not self.function[0].endswith('"')

    @property
    def function_word(self) -> str:
        return _bare(self.function[0])

    @property
    def function_closer(self) -> str:
        return self.function_end

    @property
    def parameter_closer(self) -> str:
        return self.parameter_end

    @property
    def sign(self) -> str:
        head = re.escape(self.function_word.rstrip())
        if not self.bare_names:
            return head + r"[^<>\n]{1,200}"
        # Words after such a tag are a mention of it; a name is followed by more of a call.
        inside = (self.function[1].strip(), self.parameter[0].rstrip(), self.function_end)
        follows = "|".join(re.escape(text) for text in inside if text)
        return rf"{head}{_GAP}{_TOOL}{_GAP}(?:{follows}|\{{)"

    def function_tag(self, name: str) -> str:
        head, tail = self.function
        if self.counter:
            tail = f'" {self.counter}="1' + tail
        return f"{head}{name}{tail}"

    def parameter_tag(self, name: str, kind: str = "string") -> str:
        head, tail, *value = self.parameter
        if self.flag:
            flag = {"integer": "number", "any": "string"}.get(kind, kind)
            if self.boolean_flag:
                flag = "true" if flag == "string" else "false"
            tail = f'" {self.flag}="{flag}"' + tail.removeprefix('"')
        gap = "\n" if self.lines and value else ""
        return f"{head}{name}{tail}{gap}{''.join(value)}"

    def owns(self, tag: str, name: str, *, function: bool) -> bool:
        return self._own[0 if function else 1].fullmatch(tag) is not None

    @cached_property
    def _own(self) -> tuple[re.Pattern[str], re.Pattern[str]]:
        # the tags of a function and of a parameter in the format's own spelling
        strict = self.strict_tags()
        function = rf"{strict.function[0]}{_SPACE}{_TOOL}{strict.function[1]}"
        parameter = rf"{strict.parameter[0]}{_KEY}{strict.parameter[1]}"
        return re.compile(function), re.compile(parameter)

    def closer_of(self, word: str) -> str:
        return self.function_end

    def is_pair(self, opening: str, closing: str) -> bool:
        return True

    def begins_json(self, word: str) -> tuple[str, ...]:
        return tuple(opener for opener in (self.opener, self.function[0]) if opener)

    def tag_heads(self) -> tuple[str, ...]:
        word = self.function_word
        return (word, f"{word[:-1]} ") if _WORD_TAG.fullmatch(word) else (word,)

    def may_begin(self, rest: str) -> bool:
        word = self.function_word.removesuffix(">")
        return word.startswith(rest) or rest.startswith(word)

    @cached_property
    def tags(self) -> re.Pattern[str]:
        wholes: list[str] = []
        cuts: list[str] = []
        for parts in (self._function_parts(), self._parameter_parts()):
            whole, cut = _sequence(parts)
            wholes.append(whole)
            cuts.append(cut)

        literals = {
            "cf": self.function_end, "cp": self.parameter_end,
            "opener": self.opener, "closer": self.closer,
        }  # fmt: skip
        for group, text in literals.items():
            if text:
                part = _spaced(text)
                wholes.append(f"(?P<{group}>{part.whole})")
                cuts.append(_sequence((part,))[1])
            else:
                wholes.append(f"(?P<{group}>(?!))")

        # The common first character is in front, so that a search skips ordinary text at once.
        start = "(?=<)" if all(tag.startswith("<") for tag in self._literals()) else ""
        never = "(?P<ft>(?!))|(?P<pt>(?!))"
        sources = "|".join(wholes)
        cut = "|".join(cuts)
        return re.compile(rf"{start}(?:{sources}|{never}|(?P<cut>(?=\S)(?:{cut})))")

    def _literals(self) -> tuple[str, ...]:
        tags = (
            self.opener, self.closer, self.function[0], self.function_end,
            self.parameter[0], self.parameter_end,
        )  # fmt: skip
        return tuple(tag for tag in tags if tag)

    def _function_parts(self) -> tuple[Part, ...]:
        head, tail = self.function
        if tail.startswith('"'):
            rest, quote = _literal(tail[1:]), f"[{QUOTES}]?+"
            # Where the tag ends in a bracket, it may close itself.
            slash = r"\s{0,8}+(?P<self>/)?+" if tail == '">' else ""
            cut = r"\s{0,8}+/?" if slash else ""
            end = Part(
                f"{quote}{_ATTRIBUTES}{slash}{rest.whole}",
                f"{quote}{_ATTRIBUTES_CUT}{cut}{rest.cut}",
            )
        elif tail:
            end = _literal(tail)
            # Models leave a mere separator out; a quote or bracket they do not.
            if tail.startswith("<"):
                end = self._inside_follows(end)
        else:
            end = self._inside_follows(None)
        return (
            _head("f", head),
            Part(r"[ \t\r\n]{0,8}+", ""),
            _name("fn", _TOOL),
            end,
        )

    def _inside_follows(self, separator: Part | None) -> Part:
        # Nothing ends the name but the inside of a call. separator: what should be there.
        inside = self._inside()
        whole, cut = f"(?={_GAP}{inside.whole})", inside.cut
        if separator is not None:
            whole = rf"(?:{_GAP}{separator.whole}|{whole})"
            cut = f"{cut}|{separator.cut}"
        return Part(whole, rf"{_GAP}(?:{cut}|\\)")

    def _inside(self) -> Part:
        # A key that lost one of its tags begins it too, where key and value have tags of their own.
        inside = (_bare(self.parameter[0]).rstrip(), self.function_end, "{")
        literals = [_literal(text) for text in inside]
        whole = "|".join(part.whole for part in literals)
        cut = "|".join(part.cut for part in literals if part.cut)
        if self.value_has_tag:
            ends = [_literal(tag) for tag in (*self.parameter[1:], self.parameter_end)]
            end = "|".join(part.whole for part in ends)
            end_cut = "|".join(part.cut for part in ends)
            whole += f"|(?:{_TOOL}{_GAP})?+(?:{end})"
            cut += f"|(?:{_TOOL}{_GAP})?+(?:{end_cut})"
            # The function's own tag in place of the first key's.
            again, key_end = _literal(self.function[0]), ends[0]
            whole += f"|{again.whole}{_TOOL}{_GAP}{key_end.whole}"
            cut += f"|{again.cut}|{again.whole}(?:{_TOOL}{_GAP}(?:{key_end.cut}))?+"
        return Part(f"(?:{whole})", cut)

    def _parameter_parts(self) -> tuple[Part, ...]:
        head, tail, *value = self.parameter
        parts = [
            _head("p", head),
            _SPACES if value else Part("", ""),
            _name("pn", _KEY),
            _SPACES if value else Part("", ""),
        ]
        if self.flag:
            end = _literal(tail.removeprefix('"'))
            quote = f"[{QUOTES}]?+"
            word = rf"{self.flag}\s?+=\s?+{quote}(?P<flag>[a-z]{{1,12}}+){quote}"
            flag = rf"{quote}(?:\s{{1,8}}+{word})?+\s{{0,8}}+{end.whole}"
            word = rf"[a-z]{{0,12}}+\s?+=?+\s?+{quote}[a-z]{{0,12}}+{quote}"
            cut = rf"{quote}(?:\s{{1,8}}+{word}\s{{0,8}}+{end.cut})?"
            parts.append(Part(flag, cut))
        else:
            parts.append(_literal(tail))
        if value:
            parts[-1:] = [self._before_value(_literal(tail), _literal(value[0]))]
        return tuple(parts)

    def _before_value(self, tail: Part, value: Part) -> Part:
        # One of two tags may be missing.
        kind, kind_cut = self._type_part()
        behind = f"{tail.whole}{kind}"
        whole = rf"(?:{behind}(?:{_GAP}{value.whole}|{_GAP}(?=[^\s<]))|{value.whole})"
        anonymous = re.sub(r"\?P<\w+>", "?:", behind)
        start = rf"{anonymous}{_GAP}(?:{value.cut}|\\)"
        cut = rf"(?:{start}|{tail.whole}{kind_cut}|{tail.cut}|{value.cut})"
        return Part(whole, cut)

    def _type_part(self) -> Part:
        begin, end = self.types
        if not begin:
            return Part("", "")
        head, tail = _literal(begin), _literal(end)
        whole = rf"(?:{_GAP}{head.whole}\s{{0,8}}+(?P<flag>[a-z]{{1,12}}+)\s{{0,8}}+{tail.whole})?+"
        cut = rf"{_GAP}(?:{head.whole}\s{{0,8}}+[a-z]{{0,12}}+\s{{0,8}}+{tail.cut}|{head.cut})"
        return Part(whole, cut)

    @cached_property
    def bare(self) -> tuple[re.Pattern[str], re.Pattern[str]]:
        if not self.bare_names:
            return super().bare
        head = _literal(self.parameter[0])
        separator = f"(?:{_literal(self.function[1]).whole}{_GAP})?+" if self.function[1] else ""
        whole = rf"(?P<f>(?!))?(?P<line>{_TOOL}){_GAP}{separator}(?={head.whole})"
        cuts = f"(?:{head.cut}|{_literal(self.function[1]).cut})"
        partial = rf"(?P<line>{_TOOL}){_GAP}{separator}{cuts}"
        return re.compile(whole), re.compile(partial + r"\Z")

    @cached_property
    def heads(self) -> Heads:
        inside = self._inside()
        return Heads(
            re.compile(rf"{_BREAK}{{0,{LOOK}}}+{inside.whole}"),
            re.compile(rf"{_BREAK}{{0,{LOOK}}}+(?:{inside.cut}|\\)\Z"),
            re.compile(_spaced(self.function_word).whole),
        )

    def strict_tags(self) -> StrictTags:
        signs = "|".join(re.escape(tag.rstrip(' ">')[1:]) for tag in self._literals())
        head, tail, *value = self.parameter
        gap = _SPACE if value else ""
        behind = re.escape(tail)
        if self.flag:
            end = re.escape(tail.removeprefix('"'))
            behind = rf"\" {self.flag}=\"(?P<flag>[a-z]{{1,12}})\"{end}"
        behind += self._type_part().whole
        for literal in value:
            behind += _SPACE + re.escape(literal)
        end = re.escape(self.function[1])
        if end.startswith("<"):
            end = _SPACE + end
        elif end.startswith('"'):
            end = f'"{_ATTRIBUTES}{end[1:]}'
        return StrictTags(
            (re.escape(self.function[0]), end),
            (re.escape(head) + gap, gap + behind),
            f"(?:{signs})",
        )

    def closers_like(self, *, function: bool) -> str:
        # One of several tokens may have lost its first: `argument<|sep|>`.
        closer = self.function_end if function else self.parameter_end
        first = _FIRST_TOKEN.match(closer)
        if first is None:
            return _spaced(closer).whole
        return rf"(?:{re.escape(first[0])})?+{re.escape(closer[first.end() :])}"
