"""Families of formats fitted to what a template writes: the text between the invented words."""

# How it works. A call of a probe is found again in an answer by its words: its arguments as JSON,
# or name, keys and values one by one. What is before, between and after them are the constants of a
# family (`formats/derived.py`). `FITS` is the table of families; each `fit` returns its constants,
# or None if the answers are not of its family. They are guesses, which verification has to prove.

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from ....core.values.affixes import common_prefix, common_suffix
from .answers import (
    KINDS,
    ONE,
    RESULT,
    SAID,
    THOUGHT,
    THOUGHTFUL,
    TWO,
    Answers,
    Call,
)
from .answers import TEXT as WORDS
from .derived import ARGUMENTS, ID, NAME, TEXT

Constants: TypeAlias = dict[str, Any]

FERRY, BUOY = TWO.calls
# A special token, or two that belong together as `<|close|>word<|sep|>`.
UNIT = re.compile(r"<\|?(?:open|close)\|?>[\w-]+<[^<>\n]{1,40}>|<[^<>\n]{1,80}>|\[/?[A-Z][A-Z_]+\]")
_LONGEST_OPENER = 80
_THOUGHT_TAGS = re.compile(r"</?think(?:ing)?>|\s+")
_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"\s+")
_COUNT = re.compile(r"(?<=\{name\})([:.#-])\d+")
_INDEX = re.compile(r"\d+")
_NUMBER = re.compile(r'"\d+"')
_WORD_TAG = re.compile(r"<(?P<word>[\w.:-]{1,40})(?:=|(?P<attribute> name=\"))\Z")
_FLAG = re.compile(r'" (?P<flag>[\w-]+)="(?P<kind>\w+)"(?P<tail>.*)\Z', re.DOTALL)
_COUNTER = re.compile(r'" (?P<counter>[\w-]+)="\d+"(?P<tail>.*)\Z', re.DOTALL)
_PAIR = re.compile(r"(<[^<>]+>)\s*(<[^<>]+>)\Z")


@dataclass(frozen=True, slots=True)
class Samples:
    """Answers to fit a family to: one call, two calls ("" for a template that writes only one), a
    value of each kind, reasoning before a call.
    """

    one: str
    two: str
    kinds: str
    thoughtful: str

    @classmethod
    def of(cls, answers: Answers) -> Samples:
        one, two, kinds, thoughtful = (
            answers.fit[probe.id].text for probe in (ONE, TWO, KINDS, THOUGHTFUL)
        )
        # Some templates write only the first of two calls.
        both = all(call.name in two for call in TWO.calls)
        return cls(one, two if both else "", kinds, thoughtful)

    @property
    def first(self) -> str:
        return self.two or self.one  # its first call shows the text around calls


def _common(a: str, b: str, *, at_end: bool = False) -> str:
    # The common beginning or end of two strings, cut through no token: `</a>` for `</a><|end|>` and
    # `</a><|begin|>`.
    length = common_suffix(a, b) if at_end else common_prefix(a, b)
    for text in (a, b):
        for token in UNIT.finditer(text):
            if at_end and token.start() < len(text) - length < token.end():
                length = len(text) - token.end()
            elif not at_end and token.start() < length < token.end():
                length = token.start()
    return a[len(a) - length :] if at_end else a[:length]


@dataclass(frozen=True, slots=True)
class Around:
    """The texts around calls: before and after each, around all of them, and between two apart from
    closer and opener (None if only one is written).
    """

    opener: str
    closer: str
    before: str
    behind: str
    between: str | None

    @classmethod
    def of(cls, before: str, middle: str | None, behind: str) -> Around:
        """Return the part that the texts before, between and after two calls have in common.
        middle: None if the template writes one call alone: all of both is around it then.
        """
        before = _without_thoughts(before)
        if middle is None:
            return cls(before.lstrip(), behind, "", "", None)
        closer = _common(behind, middle)
        rest = middle[len(closer) :]
        opener = _common(before, rest, at_end=True)
        blank = len(opener) - len(opener.lstrip())
        between = rest[: len(rest) - len(opener) + blank]
        opener = opener[blank:]
        return cls(
            opener, closer, before[: len(before) - len(opener)], behind[len(closer) :], between
        )

    def markup(self) -> list[str]:
        return _tokens_of(self.before, self.between or "", self.behind)

    def section(self) -> list[str]:
        return [self.before.lstrip(), self.behind.rstrip()]


def _tokens_of(*texts: str) -> list[str]:
    # Each once, and a text without any token as it is.
    tokens: list[str] = []
    for text in texts:
        tokens += UNIT.findall(text) or ([text.strip()] if text.strip() else [])
    return list(dict.fromkeys(token for token in tokens if not _THOUGHT_TAGS.fullmatch(token)))


def _without_thoughts(text: str) -> str:
    # Some templates write empty reasoning, `<think></think>`, in front of a call.
    end = 0
    while match := _THOUGHT_TAGS.match(text, end):
        end = match.end()
    return text[end:] if "think" in text[:end] else text


# JSON: an object or a list that names tools, or a header before the arguments.


class Place(NamedTuple):
    # A JSON value in a text, from `start` to `end`.
    value: Any
    start: int
    end: int


def _value_at(text: str, start: int) -> Place | None:
    try:
        value, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return Place(value, start, end)


def _place_of(text: str, call: Call, start: int = 0) -> Place | None:
    # The outermost JSON value that contains the arguments of the call.
    for at in range(start, len(text)):
        if text[at] in "{[":
            place = _value_at(text, at)
            if place is not None and _contains(place.value, call):
                return place
    return None


def _is_arguments(value: Any, call: Call) -> bool:
    # As an object, or as the JSON of it in a string.
    if isinstance(value, str) and value.startswith("{"):
        place = _value_at(value, 0)
        value = place.value if place is not None else None
    return bool(value == call.arguments)


def _contains(value: Any, call: Call) -> bool:
    if _is_arguments(value, call):
        return True
    members = value.values() if isinstance(value, Mapping) else value
    return isinstance(value, (Mapping, list)) and any(_contains(m, call) for m in members)


def _fit_json(samples: Samples) -> Constants | None:
    text = samples.first
    place = _place_of(text, FERRY)
    if place is None:
        return None
    before, after, middle = text[: place.start], text[place.end :], None
    is_named = place.value == FERRY.arguments
    if not is_named:
        if FERRY.name not in text[place.start : place.end]:
            return None
        if isinstance(place.value, list):
            return _fit_list(text, place)

    second = _place_of(samples.two, BUOY, place.end) if samples.two else None
    if second is not None:
        middle, after = text[place.end : second.start], text[second.end :]
    if is_named:
        before = _header(before, FERRY)
        middle = None if middle is None else _header(middle, BUOY)
    around = Around.of(before, middle, after)
    if not is_named:
        unit = _unit(text, place)
        if unit is None or not around.opener.strip():
            return None
        return {
            "family": "json",
            "form": {"opener": around.opener, "closer": around.closer, **unit},
            "lost": _lost_objects("", unit["shape"], around.opener),
            "section": around.section(),
            "between": around.between or "",
            "markup": around.markup(),
        }

    # A template that leaves the first opener out writes it between two calls.
    if middle is not None and NAME not in around.opener:
        around = Around.of(_common(before, middle, at_end=True), middle, after)
    header = around.opener
    if header.count(NAME) != 1 or header.startswith("{"):
        return None
    return {
        "family": "named",
        "form": {"header": header, "closer": around.closer, "markup": around.markup()},
        "section": around.section(),
        "between": around.between or "",
        "lost": _lost_headers(header),
    }


def _fit_list(text: str, place: Place) -> Constants | None:
    # All calls of an answer in one list.
    first = text.find("{", place.start + 1, place.end)
    item = _value_at(text, first) if first >= 0 else None
    unit = _unit(text, item) if item is not None else None
    opener, closer = Around.of(text[: place.start], None, "").opener, text[place.end :]
    if item is None or unit is None or not opener.strip():
        return None
    last = text.rfind("}", place.start, place.end) + 1
    second = _value_at(text, text.find("{", item.end))
    between = text[item.end : second.start] if second is not None else ", "
    openers, closers = _tokens_of(opener), _tokens_of(closer)
    if closers and closer.strip().startswith(closers[0]):
        closer = closer[: closer.find(closers[0]) + len(closers[0])]
    else:
        closer = closer.strip()
    if openers and opener.rstrip().endswith(openers[-1]):
        opener = opener[opener.rfind(openers[-1]) :]
    form = {
        "opener": opener,
        "closer": closer,
        "list": [text[place.start : first], text[last : place.end]],
        "between": between,
        **unit,
    }
    return {
        "family": "json",
        "form": form,
        "lost": _lost_objects(form["list"][0], unit["shape"], opener),
        "markup": [*openers[:-1], *closers[1:]],
    }


def _unit(text: str, place: Place) -> Constants | None:
    # Keys and shape of one call's object, or None if it has no name.
    source = text[place.start : place.end]
    keys = _keys(place.value)
    values = (_value_at(source, at) for at in range(1, len(source)) if source[at] in '{"')
    arguments = next((v for v in values if v is not None and _is_arguments(v.value, FERRY)), None)
    if arguments is None or keys is None:
        return None
    slots = re.compile(f"({re.escape(FERRY.name)}|{re.escape(FERRY.id)})")
    names = {FERRY.name: NAME, FERRY.id: ID}

    def parts(text: str) -> list[str]:
        return [names.get(part, part) for part in slots.split(text) if part]

    part = TEXT if source[arguments.start] == '"' else ARGUMENTS
    shape = [*parts(source[: arguments.start]), part, *parts(source[arguments.end :])]
    if NAME not in shape:
        return None
    form: Constants = {"shape": shape, "name_key": keys[0], "arguments_key": keys[1]}
    if FERRY.name in place.value:
        form["name_is_key"] = True
    return form


def _keys(value: Mapping[str, Any]) -> tuple[str, str] | None:
    # The keys of name and arguments, wherever in an object both are.
    name = next((key for key, member in value.items() if member == FERRY.name), None)
    arguments = next((key for key, m in value.items() if _is_arguments(m, FERRY)), None)
    if name is not None and arguments is not None:
        return name, arguments
    if FERRY.name in value:  # the name is the key, which every reader of JSON knows
        return "name", "arguments"
    inner = (_keys(member) for member in value.values() if isinstance(member, Mapping))
    return next((keys for keys in inner if keys is not None), None)


def _lost_objects(prefix: str, shape: list[str], opener: str) -> list[str]:
    # The headers of a call's object without the tokens before it, up to the name, such as
    # `{"name":{ }"{name}"` and `function{ }call{ }{"name":{ }"{name}"`.
    before = prefix + "".join(shape[: shape.index(NAME)])
    if not before or before[0] not in "{[":
        return []
    before = _NUMBER.sub('"{id}"', _SPACE.sub("{ }", before)) + f'{NAME}"'
    words = _SPACE.sub("{ }", UNIT.sub("", opener).strip())
    is_word = words.isascii() and words[:1].isalpha()
    return [before, f"{words}{{ }}{before}"] if is_word else [before]


def _lost_headers(header: str) -> list[str]:
    # The rest of a header without its tokens, or without the text next to the name: of
    # `[TOOL_CALLS]{name}[ARGS]` `{name}{ }`, `{name}[ARGS]{ }` and `[TOOL_CALLS]{name}{ }`.
    at = header.index(NAME)
    tokens = list(UNIT.finditer(header, 0, at))
    near = header[tokens[-1].start() :] if tokens else header
    variants = (UNIT.sub("", header), header[at:], header[: at + len(NAME)], near)
    own, *heads = (_SPACE.sub("{ }", text.strip()) + "{ }" for text in (header, *variants))
    sound = (text for text in heads if NAME in text and text != own)
    return [text for text in dict.fromkeys(sound) if not text.startswith("{ }")]


def lost_in(samples: Samples) -> list[str]:
    # The header of a call whose tokens were stripped, whatever family it is of.
    place = _place_of(samples.one, FERRY)
    if place is None or place.value != FERRY.arguments:
        return []
    header = UNIT.sub("", _header(samples.one[: place.start], FERRY)).strip()
    if header.count(NAME) != 1 or header == NAME:
        return []
    return [_SPACE.sub("{ }", _INDEX.sub("{any}", header)) + "{ }"]


def _header(text: str, call: Call) -> str:
    # The text before the arguments, name and id of the call as slots.
    before, name, after = text.rpartition(call.name)
    if not name:
        return text
    # A number after the name counts the calls.
    return _COUNT.sub(r"\1{any}", f"{before}{NAME}{after}".replace(call.id, ID))


# Words one by one: tags around names and values, Python, bare keys.


@dataclass(frozen=True, slots=True)
class Gaps:
    """The texts between the words of a call with two arguments."""

    before: str  # before the name
    inside: str  # between name and first key
    next: str  # between the first value and the second key
    behind: str  # after the last value
    middle: str  # from there to the name of a second call, "" if there is one call
    text_value: str  # before the value that is a string
    number_value: str

    @classmethod
    def of(cls, samples: Samples) -> Gaps | None:
        """Return the gaps in an answer, or None if its words are not there one by one."""
        text = samples.first
        words = _between_words(text, FERRY)
        if words is None:
            return None
        (before, inside, first, following, second), keys, end = words
        middle, behind = "", text[end:]
        if samples.two:
            later = _between_words(text, BUOY, end)
            if later is None:
                return None
            middle, behind = later[0][0], text[later[2] :]
        if not isinstance(FERRY.arguments[keys[0]], str):
            first, second = second, first
        return cls(_without_thoughts(before), inside, following, behind, middle, first, second)


def _between_words(
    text: str, call: Call, start: int = 0
) -> tuple[list[str], list[str], int] | None:
    # The text before the name, before each key, before each value; the keys in the order of the
    # text, and the offset after the last value. None if the words are not in that order.
    at = text.find(call.name, start)
    if at < 0:
        return None
    literals = [text[start:at]]
    at += len(call.name)
    places = {key: text.find(key, at) for key in call.arguments}
    if min(places.values()) < 0:
        return None
    keys = sorted(places, key=lambda key: places[key])
    for key in keys:
        for word in (key, str(call.arguments[key])):
            place = text.find(word, at)
            if place < 0:
                return None
            literals.append(text[at:place])
            at = place + len(word)
    return literals, keys, at


def _fit_tags(samples: Samples) -> Constants | None:
    gaps = Gaps.of(samples)
    if gaps is None or "<" not in gaps.next or "<" not in gaps.before:
        return None
    # The tags: before a key, after a value, before a name, after a name.
    head = gaps.next[gaps.next.rindex("<") :]
    value_end = gaps.next.removesuffix(head).strip()
    before, mark, rest = gaps.before.rpartition("<")
    function = mark + rest
    if not gaps.inside.endswith(head) or not value_end:
        return None
    tail = gaps.inside.removesuffix(head).strip()

    # Around functions: the closer of one, the block, and tokens around all.
    after = gaps.behind.lstrip().removeprefix(value_end).lstrip()
    end = UNIT.match(after)
    if end is None:
        return None
    function_end, after, before = end[0], after[end.end() :].strip(), before.strip()
    middle = gaps.middle.lstrip().removeprefix(value_end).strip()
    middle = middle.removeprefix(function_end).removesuffix(function).strip()
    opener, closer = _common(before, middle, at_end=True), _common(after, middle)
    if opener and closer and gaps.middle:
        markup = _tokens_of(before.removesuffix(opener), after.removeprefix(closer))
        opener, closer = opener.strip(), closer.strip()
    else:
        openers, closers = _tokens_of(before), _tokens_of(after)
        if openers and closers:
            opener, closer = openers.pop(), closers.pop(0)
        else:
            opener = closer = ""
        markup = [*openers, *closers]

    block = {"opener": opener, "closer": closer}
    lines = "\n" in gaps.inside
    trim = gaps.text_value.endswith("\n") and gaps.next.startswith("\n")
    value = gaps.text_value.strip()

    # Tags whose words are those of HTML.
    name_tag, key_tag = _WORD_TAG.match(function), _WORD_TAG.match(head)
    if name_tag is not None and key_tag is not None:
        attribute = name_tag["attribute"] is not None
        closers = [f"</{name_tag['word']}>", f"</{key_tag['word']}>"]
        if (
            attribute == (key_tag["attribute"] is not None)
            and value == tail == ('">' if attribute else ">")
            and [function_end, value_end] == closers
            and gaps.text_value == gaps.number_value
        ):
            form = {
                **block,
                "function": name_tag["word"],
                "parameter": key_tag["word"],
                "attribute": attribute,
                "trim": trim,
                "lines": lines,
                "entities": "&lt;b&gt;" in samples.kinds,
                "markup": markup,
            }
            return {"family": "tags", "form": form}

    # Tags that are literals around a name.
    counter = ""
    if match := _COUNTER.match(tail):
        tail, counter = '"' + match["tail"], match["counter"]
    form = {
        **block,
        "function": [function, tail],
        "function_end": function_end,
        "parameter_end": value_end,
        "lines": lines,
        "trim": trim,
        "markup": markup,
        "counter": counter,
    }
    flag = _FLAG.match(value)
    if flag is not None and gaps.number_value.strip() != value:
        form["flag"] = flag["flag"]
        form["boolean_flag"] = flag["kind"] == "true"
        form["parameter"] = [head, '"' + flag["tail"]]
    elif pair := _PAIR.match(value):
        form["parameter"] = [head, pair[1], pair[2]]
    elif value:
        form["parameter"] = [head, value]
    else:
        return None
    return {"family": "slots", "form": form}


def _fit_python(samples: Samples) -> Constants | None:
    gaps = Gaps.of(samples)
    if gaps is None or not gaps.inside.startswith("(") or "=" not in gaps.text_value:
        return None
    opener, closer = gaps.before, gaps.behind.lstrip("\"'").removeprefix(")")
    is_list = opener.rstrip().endswith("[") and closer.lstrip().startswith("]")
    if is_list:
        opener, closer = opener.rstrip()[:-1], closer.lstrip()[1:]
    opener = opener.lstrip()
    if not opener:
        return None
    middle = gaps.middle.lstrip("\"'").removeprefix(")")
    form = {
        "opener": opener,
        "closer": closer.rstrip(),
        "listed": is_list,
        "between": middle if middle and not is_list else "\n",
        "json_words": "=true" in samples.kinds,
    }
    return {"family": "python", "form": form, "markup": _tokens_of(opener)[:-1]}


def _fit_bare(samples: Samples) -> Constants | None:
    # `call:name{key:value}`
    gaps = Gaps.of(samples)
    if gaps is None or gaps.inside.strip() != "{" or not gaps.before.endswith("call:"):
        return None
    quote = gaps.text_value.removeprefix(":")
    opener = gaps.before.removesuffix("call:")
    behind = gaps.behind.removeprefix(quote)
    if not quote or not opener or not behind.startswith("}"):
        return None
    form = {"opener": opener.strip(), "closer": behind[1:].strip(), "quote": quote}
    return {"family": "bare", "form": form}


# In order of preference, for answers that several of them read alike.
FITS: tuple[Callable[[Samples], Constants | None], ...] = (
    _fit_json, _fit_tags, _fit_bare, _fit_python,
)  # fmt: skip


# Around text, reasoning and results.


def thought_of(answers: Answers) -> list[str]:
    # Opener and closer of reasoning, two empty strings for none.
    samples = Samples.of(answers)
    if THOUGHT not in samples.thoughtful:
        return ["", ""]
    before, behind = samples.thoughtful.split(THOUGHT, 1)
    closer = UNIT.match(behind.lstrip())
    # Without an opener in the answer it is at the end of the prompt.
    opener = before.strip() or "".join(UNIT.findall(answers.prompt)[-1:])
    if closer is not None and opener == closer[0]:
        # The prompt holds empty reasoning, which keeps the model from any.
        units = list(UNIT.finditer(answers.prompt))[-2:]
        opener = answers.prompt[units[0].start() : units[-1].start()].strip()
    if closer is None or not 0 < len(opener) <= _LONGEST_OPENER:
        return ["", ""]
    return [opener, closer[0]]


def beside_of(answers: Answers) -> list[str]:
    # The tokens that a template writes around text and reasoning next to a call.
    samples = Samples.of(answers)
    texts: list[str] = []
    if WORDS in (answer := answers.fit[SAID.id].text):
        before, behind = answer.split(WORDS, 1)
        # Some templates write the text after the call.
        texts.append(before.replace(samples.one, ""))
        if behind.endswith(samples.one):
            texts.append(behind.removesuffix(samples.one))
    if THOUGHT in samples.thoughtful:
        behind = samples.thoughtful.split(THOUGHT, 1)[1].lstrip()
        closer = UNIT.match(behind)
        if closer is not None and behind.endswith(samples.one, closer.end()):
            texts.append(behind[closer.end() :].removesuffix(samples.one))
    literals: list[str] = []
    for text in texts:
        if UNIT.search(text):
            # As a whole if it has words next to its tokens.
            literals += [text.strip()] if UNIT.sub("", text).strip() else _tokens_of(text)
    return list(dict.fromkeys(literals))


def result_of(answers: Answers) -> list[str]:
    # The text before and after a result of a tool, [] if it is not written.
    text = answers.answered
    if RESULT not in text:
        return []
    before, behind = text.split(RESULT, 1)
    opener = UNIT.findall(before[-200:])
    closer = UNIT.search(behind)
    if not opener or closer is None:
        return []
    return [before[before.rfind(opener[-1]) :], behind[: closer.end()]]
