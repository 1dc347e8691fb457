"""The families that write name, keys and values in tags, in Python, or with bare keys."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .fitting import (
    BUOY,
    FERRY,
    UNIT,
    Constants,
    Samples,
    between_words,
    common_end,
    common_start,
    tokens_of,
    without_thoughts,
)

_WORD_TAG = re.compile(r"<(?P<word>[\w.:-]{1,40})(?:=|(?P<attribute> name=\"))\Z")
_FLAG = re.compile(r'" (?P<flag>[\w-]+)="(?P<kind>\w+)"(?P<tail>.*)\Z', re.DOTALL)
_COUNTER = re.compile(r'" (?P<counter>[\w-]+)="\d+"(?P<tail>.*)\Z', re.DOTALL)
_PAIR = re.compile(r"(<[^<>]+>)\s*(<[^<>]+>)\Z")


@dataclass(frozen=True, slots=True)
class Gaps:
    """The texts between the words of a call with two arguments.

    before: in front of the name. inside: between name and first key. values: before each value.
    next: between the first value and the second key. behind: behind the last value. middle: between
    the last value of the first of two calls and the name of the second, or "" if there is one call.
    texts: whether the first argument is a text, and the second.
    """

    before: str
    inside: str
    values: tuple[str, str]
    next: str
    behind: str
    middle: str
    texts: tuple[bool, bool]

    @classmethod
    def of(cls, samples: Samples) -> Gaps | None:
        """Return the gaps in an answer, or None if its words do not stand one by one."""
        text = samples.first
        words = between_words(text, FERRY)
        if words is None:
            return None
        (before, inside, first, following, second), keys, end = words
        middle, behind = "", text[end:]
        if samples.two:
            later = between_words(text, BUOY, end)
            if later is None:
                return None
            middle, behind = later[0][0], text[later[2] :]
        texts = tuple(isinstance(FERRY.arguments[key], str) for key in keys)
        return cls(
            without_thoughts(before),
            inside,
            (first, second),
            following,
            behind,
            middle,
            (texts[0], texts[1]),
        )

    @property
    def text_value(self) -> str:
        """The text before a value that is text."""
        return self.values[0 if self.texts[0] else 1]

    @property
    def number_value(self) -> str:
        """The text before a value that is a number."""
        return self.values[1 if self.texts[0] else 0]


def fit_tags(samples: Samples) -> Constants | None:
    """Return the constants of tags around names and values."""
    gaps = Gaps.of(samples)
    if gaps is None or "<" not in gaps.next or "<" not in gaps.before:
        return None
    head = gaps.next[gaps.next.rindex("<") :]
    at = gaps.before.rindex("<")
    function, before = gaps.before[at:], gaps.before[:at]
    if not gaps.inside.endswith(head):
        return None
    parts = _Parts(
        head=head,
        value_end=gaps.next[: len(gaps.next) - len(head)].strip(),
        function=function,
        tail=gaps.inside[: len(gaps.inside) - len(head)],
    )
    block = _Block.of(before, gaps, parts, samples)
    if block is None or not parts.value_end:
        return None
    return parts.word_tags(gaps, block, samples) or parts.slots(gaps, block)


@dataclass(frozen=True, slots=True)
class _Block:
    """The texts around functions: the closer of one, the block, and tokens around all."""

    function_end: str
    opener: str
    closer: str
    markup: list[str]

    @classmethod
    def of(cls, before: str, gaps: Gaps, parts: _Parts, samples: Samples) -> _Block | None:
        """Return the block of the gaps, or None if a function has no closer."""
        behind = _behind(gaps.behind, parts.value_end)
        end = UNIT.match(behind.lstrip())
        if end is None:
            return None
        function_end = end[0]
        after = behind.lstrip()[end.end() :].strip()
        before = before.strip()
        middle = _behind(gaps.middle, parts.value_end).strip()
        rest = middle.removeprefix(function_end).removesuffix(parts.function).strip()
        opener, closer = common_end(before, rest), common_start(after, rest)
        if opener and closer and gaps.middle:
            outer = before[: len(before) - len(opener)], after[len(closer) :]
            return cls(function_end, opener.strip(), closer.strip(), tokens_of(*outer))
        openers, closers = tokens_of(before), tokens_of(after)
        if not openers or not closers:
            return cls(function_end, "", "", [*openers, *closers])
        return cls(function_end, openers[-1], closers[0], [*openers[:-1], *closers[1:]])


def _behind(text: str, value_end: str) -> str:
    """Return a text behind the closer of a value that it begins with."""
    return text.lstrip().removeprefix(value_end)


@dataclass(frozen=True, slots=True)
class _Parts:
    """The tags of a call: the text before a key, behind a value, before and behind a name."""

    head: str
    value_end: str
    function: str
    tail: str

    def word_tags(self, gaps: Gaps, block: _Block, samples: Samples) -> Constants | None:
        """Return the constants of tags whose words are those of HTML.

        None for other tags.
        """
        function, parameter = _WORD_TAG.match(self.function), _WORD_TAG.match(self.head)
        if function is None or parameter is None:
            return None
        attribute = function["attribute"] is not None
        end = '">' if attribute else ">"
        alike = attribute == (parameter["attribute"] is not None)
        if not alike or gaps.text_value.strip() != end or self.tail.strip() != end:
            return None
        closers = (f"</{function['word']}>", f"</{parameter['word']}>")
        if (block.function_end, self.value_end) != closers:
            return None
        if gaps.text_value != gaps.number_value:
            return None
        trim = gaps.text_value.endswith("\n") and gaps.next.startswith("\n")
        form = {
            "opener": block.opener,
            "closer": block.closer,
            "function": function["word"],
            "parameter": parameter["word"],
            "attribute": attribute,
            "trim": trim,
            "lines": "\n" in gaps.inside,
            "entities": "&lt;b&gt;" in samples.kinds,
            "markup": block.markup,
        }
        return {"family": "tags", "form": form}

    def slots(self, gaps: Gaps, block: _Block) -> Constants | None:
        """Return the constants of tags that are literals around a name."""
        tail, counter = self.tail.strip(), ""
        if match := _COUNTER.match(tail):
            tail, counter = '"' + match["tail"], match["counter"]
        form: Constants = {
            "opener": block.opener,
            "closer": block.closer,
            "function": [self.function, tail],
            "function_end": block.function_end,
            "parameter_end": self.value_end,
            "lines": "\n" in gaps.inside,
            "trim": gaps.text_value.endswith("\n") and gaps.next.startswith("\n"),
            "markup": block.markup,
            "counter": counter,
        }
        value = gaps.text_value.strip()
        flag = _FLAG.match(value)
        if flag is not None and gaps.number_value.strip() != value:
            form["flag"] = flag["flag"]
            form["boolean_flag"] = flag["kind"] == "true"
            form["parameter"] = [self.head, '"' + flag["tail"]]
        elif pair := _PAIR.match(value):
            form["parameter"] = [self.head, pair[1], pair[2]]
        elif value:
            form["parameter"] = [self.head, value]
        else:
            return None
        return {"family": "slots", "form": form}


def fit_python(samples: Samples) -> Constants | None:
    """Return the constants of calls as Python writes them, between delimiters."""
    gaps = Gaps.of(samples)
    if gaps is None or not gaps.inside.startswith("(") or "=" not in gaps.text_value:
        return None
    before, behind = gaps.before, gaps.behind.lstrip("\"'").removeprefix(")")
    is_list = before.rstrip().endswith("[") and behind.lstrip().startswith("]")
    if is_list:
        before = before.rstrip()[:-1]
        behind = behind.lstrip()[1:]
    opener, closer = before.lstrip(), behind
    openers = tokens_of(opener)
    if not opener.strip():
        return None
    middle = gaps.middle.lstrip("\"'").removeprefix(")")
    form = {
        "opener": opener,
        "closer": closer.rstrip() if closer.strip() else "",
        "listed": is_list,
        "between": middle if middle and not is_list else "\n",
        "json_words": "=true" in samples.kinds,
    }
    return {"family": "python", "form": form, "markup": openers[:-1]}


def fit_bare(samples: Samples) -> Constants | None:
    """Return the constants of `call:name{key:value}` with bare keys."""
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
