"""Constants of a family from the text that a template writes: the text between the invented words.

Each `fit` answers with the constants of a protocol (`formats/derived.py`), or None if the answers
are not of its family. They are guesses, which verification has to prove.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from .affixes import common_prefix, common_suffix
from .answers import Answers
from .probes import EMPTY, KINDS, ONE, SAID, TEXT, THOUGHT, THOUGHTFUL, TWO, Call

Constants: TypeAlias = dict[str, Any]

# A special token, or two that belong together as `<|close|>word<|sep|>`.
UNIT = re.compile(r"<\|?(?:open|close)\|?>[\w-]+<[^<>\n]{1,40}>|<[^<>\n]{1,80}>|\[/?[A-Z][A-Z_]+\]")
_LONGEST_OPENER = 80
_THOUGHT_TAGS = re.compile(r"</?think(?:ing)?>|\s+")


@dataclass(frozen=True, slots=True)
class Samples:
    """Answers to fit a family to.

    one, two: with one and with two calls. Two is "" for a template that writes only one. none: a
    call without arguments. kinds: a call with a value of each kind.
    """

    one: str
    two: str
    none: str
    kinds: str
    thoughtful: str

    @classmethod
    def of(cls, answers: Answers) -> Samples:
        """Return the answers to the probes of the first group."""
        fit = answers.fit
        two = fit[TWO.id].text
        # Some templates write only the first of two calls.
        if not all(call.name in two for call in TWO.calls):
            two = ""
        return cls(
            fit[ONE.id].text, two, fit[EMPTY.id].text, fit[KINDS.id].text, fit[THOUGHTFUL.id].text
        )

    @property
    def first(self) -> str:
        """The answer whose first call shows the text around calls."""
        return self.two or self.one


FERRY, BUOY = TWO.calls


def common_start(a: str, b: str) -> str:
    """Return the common beginning of two texts, which ends in no token.

    >>> common_start("</a><|end|>", "</a><|begin|>")
    '</a>'
    """
    length = common_prefix(a, b)
    for text in (a, b):
        for token in UNIT.finditer(text):
            if token.start() < length < token.end():
                length = token.start()
    return a[:length]


def common_end(a: str, b: str) -> str:
    """Return the common end of two texts, which begins in no token.

    >>> common_end("<x><open>", "</a><open>")
    '<open>'
    """
    length = common_suffix(a, b)
    start = len(a) - length
    for text in (a, b):
        shift = len(a) - len(text)
        for token in UNIT.finditer(text):
            if token.start() + shift < start < token.end() + shift:
                start = token.end() + shift
    return a[start:]


@dataclass(frozen=True, slots=True)
class Around:
    """The texts around calls: before and behind each, and around all of them.

    between: the text between two calls beside closer and opener, or None if only one is written.
    """

    opener: str
    closer: str
    before: str
    behind: str
    between: str | None

    @classmethod
    def of(cls, before: str, middle: str | None, behind: str) -> Around:
        """Return the part that the texts before, between and behind two calls have in common.

        middle: None if the template writes one call alone. All of both is then around the call.
        """
        before = without_thoughts(before)
        if middle is None:
            return cls(before.lstrip(), behind, "", "", None)
        closer = common_start(behind, middle)
        rest = middle[len(closer) :]
        opener = common_end(before, rest)
        blank = len(opener) - len(opener.lstrip())
        between = rest[: len(rest) - len(opener) + blank]
        opener = opener[blank:]
        return cls(
            opener, closer, before[: len(before) - len(opener)], behind[len(closer) :], between
        )

    def markup(self) -> list[str]:
        """Return the tokens around all calls, and between two."""
        return tokens_of(self.before, self.between or "", self.behind)

    def section(self) -> list[str]:
        """Return everything written before the first and behind the last of all calls."""
        return [self.before.lstrip(), self.behind.rstrip()]


def tokens_of(*texts: str) -> list[str]:
    """Return the tokens in texts, each once, and a text without any as it is."""
    tokens: list[str] = []
    for text in texts:
        units = UNIT.findall(text)
        tokens += units or ([text.strip()] if text.strip() else [])
    return list(dict.fromkeys(token for token in tokens if not _THOUGHT_TAGS.fullmatch(token)))


def without_thoughts(text: str) -> str:
    """Return a text without the empty reasoning in front of it.

    >>> without_thoughts("<think></think>\\n<call>")
    '<call>'
    """
    end = 0
    while match := _THOUGHT_TAGS.match(text, end):
        end = match.end()
    return text[end:] if "think" in text[:end] else text


def thought_of(answers: Answers) -> list[str]:
    """Return opener and closer of reasoning.

    Two empty texts where the template writes none.
    """
    samples = Samples.of(answers)
    if THOUGHT not in samples.thoughtful:
        return ["", ""]
    before, behind = samples.thoughtful.split(THOUGHT, 1)
    closer = UNIT.match(behind.lstrip())
    # Without an opener in the answer it stands at the end of the prompt.
    opener = before.strip() or "".join(UNIT.findall(answers.prompt)[-1:])
    if closer is not None and opener == closer[0]:
        # The prompt holds empty reasoning, which keeps the model from any.
        units = list(UNIT.finditer(answers.prompt))[-2:]
        opener = answers.prompt[units[0].start() : units[-1].start()].strip()
    if closer is None or not 0 < len(opener) <= _LONGEST_OPENER:
        return ["", ""]
    return [opener, closer[0]]


def beside_of(answers: Answers) -> list[str]:
    """Return the tokens that a template writes around text and reasoning beside a call."""
    samples = Samples.of(answers)
    literals: list[str] = []
    for word, answer in ((TEXT, answers.fit[SAID.id].text), (THOUGHT, samples.thoughtful)):
        if word not in answer:
            continue
        before, behind = answer.split(word, 1)
        # Some templates write the text behind the call.
        before = before.replace(samples.one, "")
        if word == THOUGHT:
            closer = UNIT.match(behind.lstrip())
            before = ""
            behind = behind.lstrip()[closer.end() :] if closer else ""
        rest = behind.removesuffix(samples.one) if behind.endswith(samples.one) else ""
        for text in (before, rest):
            literals += _literals(text)
    return list(dict.fromkeys(literals))


def _literals(text: str) -> list[str]:
    """Return the tokens of a text, or it as a whole where it has words beside them."""
    units = UNIT.findall(text)
    if not units:
        return []
    words = UNIT.sub("", text).strip()
    return [text.strip()] if words else tokens_of(text)


def between_words(text: str, call: Call, start: int = 0) -> tuple[list[str], list[str], int] | None:
    """Return the text between name, keys and values of a call, in the order of the text.

    The literals: before the name, before each key, before each value. Then the keys, and the offset
    behind the last value. None if the words do not stand in that order.
    """
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


def result_of(answers: Answers, result: str, plain: Mapping[str, str]) -> list[str]:
    """Return the text before and behind a result of a tool.

    Empty if it is not written.
    """
    text = plain.get("a result", "")
    if result not in text:
        return []
    before, behind = text.split(result, 1)
    opener = UNIT.findall(before[-200:])
    closer = UNIT.search(behind)
    if not opener or closer is None:
        return []
    start = before.rfind(opener[-1])
    return [before[start:], behind[: closer.end()]]
