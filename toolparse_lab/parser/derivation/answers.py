"""The answers a template writes for probes, without the prompt before and the end of turn after.

Where an answer begins and ends is measured: against the prompt alone, and against an answer without
calls. A cut never goes through a special token.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...core.errors import UnreadableTemplate
from ...core.toolspec import ToolSpec
from .probes import (
    ANSWER,
    ANSWERED,
    FIT,
    HELD,
    ONE,
    PLAIN,
    THOUGHT,
    THOUGHT_KEYS,
    THOUGHTFUL,
    WIRES,
    Probe,
    Wire,
    tools_of,
)  # fmt: skip
from .renderer import ChatTemplate, Rendering

# What no cut goes through: special tokens, and words.
_TOKEN = re.compile(r"<[^<>\n]{1,80}>|\[/?[A-Z][A-Z_]+\]|\w+")


@dataclass(frozen=True, slots=True)
class Answer:
    """A probe and the answer that a template writes for it. error: the reason why it is not one."""

    probe: Probe
    text: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers of one template.

    fit, others: to the probes of both groups, by id. wire: how messages are handed to the template.
    prompt: the question alone. answered: the whole conversation with a tool's result.
    """

    fit: Mapping[str, Answer]
    others: Mapping[str, Answer]
    wire: Wire
    prompt: str = ""
    answered: str = ""


def answers_of(template: ChatTemplate) -> Answers:
    """Return the answers of a template.

    Raises UnreadableTemplate for one that renders no call.
    """
    wire = _wire_of(template)
    jobs = _jobs(wire, FIT, tools_of(FIT))
    texts = template.render([*jobs, *_jobs(wire, HELD, tools_of(HELD))])
    fit, others = texts[: len(jobs)], texts[len(jobs) :]
    return Answers(
        {answer.probe.id: answer for answer in _answers(FIT, fit)},
        {answer.probe.id: answer for answer in _answers(HELD, others)},
        wire,
        prompt=fit[0].text,
        answered=fit[2 + FIT.index(ANSWERED)].text,
    )


def rendered_like(
    template: ChatTemplate, answers: Answers, probes: Sequence[Probe], tools: tuple[ToolSpec, ...]
) -> list[Answer]:
    """Return the answers to other probes, cut as those of `answers` are."""
    return _answers(probes, template.render(_jobs(answers.wire, probes, tools)))


def _jobs(wire: Wire, probes: Iterable[Probe], tools: tuple[ToolSpec, ...]) -> list[dict[str, Any]]:
    jobs = [wire.job(probe, tools) for probe in (PLAIN, *probes)]
    return [wire.job(PLAIN, tools, prompt=True), *jobs]


def _answers(probes: Sequence[Probe], texts: Sequence[Rendering]) -> list[Answer]:
    prompt, plain, *answers = texts
    return [
        Answer(probe, "" if text.error else _cut(text.text, prompt.text, plain.text), text.error)
        for probe, text in zip(probes, answers, strict=True)
    ]


def _wire_of(template: ChatTemplate) -> Wire:
    # The first way to hand messages over by which the template writes a call.
    tools = tools_of(FIT)
    texts = template.render([wire.job(ONE, tools) for wire in WIRES])
    good = [wire for wire, text in zip(WIRES, texts, strict=True) if _writes_call(text.text, wire)]
    if not good:
        errors = dict.fromkeys(text.error for text in texts if text.error)
        is_broken = len(errors) > 0 and all(text.error for text in texts)
        raise UnreadableTemplate(
            "the template does not render a conversation with a call"
            if is_broken
            else "the template writes no calls of tools",
            got="; ".join(errors) or "a conversation with a call, without the call",
            expected="the name and the arguments of message.tool_calls",
            hint="name the format by hand: tp.protocols(), or Protocol.from_spec; or take a "
            "template for tools, if the model has one",
            probe=ONE.id,
        )
    wire = good[0]
    thoughts = [replace(wire, thought_key=key) for key in THOUGHT_KEYS]
    texts = template.render([thought.job(THOUGHTFUL, tools) for thought in thoughts])
    for thought, text in zip(thoughts, texts, strict=True):
        if THOUGHT in text.text:
            return thought
    return replace(wire, thought_key="")


def _writes_call(text: str, wire: Wire) -> bool:
    call = ONE.calls[0]
    words = (call.name, *call.arguments, *map(str, call.arguments.values()))
    if not all(word in text for word in words):
        return False
    if wire.as_text:
        # A template that encodes JSON text once more wants a mapping.
        return json.dumps(json.dumps(dict(call.arguments)))[1:-1] not in text
    return repr(dict(call.arguments)) not in text


def _cut(text: str, prompt: str, plain: str) -> str:
    # prompt: the rendering of the question alone. plain: that with an answer without calls.
    start = common_prefix(text, prompt)
    # The turn ends after the words of the plain answer, so that what is common is no part of it.
    tail = plain[plain.rfind(ANSWER) + len(ANSWER) :] if ANSWER in plain else ""
    end = len(text) - common_suffix(text, tail)
    tokens = list(_TOKEN.finditer(text))
    torn = next((token for token in tokens if token.start() < start < token.end()), None)
    if torn is not None:
        # The prompt goes on differently: what is before a plain answer tells the place.
        before = plain[: plain.rfind(ANSWER)] if ANSWER in plain else ""
        common = common_prefix(text, before)
        start = common if common >= torn.end() else torn.start()
    for token in tokens:
        # A cut in front of a closer would tear it from the word that it ends.
        torn_off = 0 < end == token.start() and text[end - 1].isalnum() and text[end] == "<"
        if token.start() < end < token.end() or torn_off:
            end = token.end()
    return text[start : max(start, end)]


def common_prefix(a: str, b: str) -> int:
    """Return how many characters two strings begin with alike.

    >>> common_prefix("abc", "abd")
    2
    """
    length = min(len(a), len(b))
    if a[:length] == b[:length]:
        return length
    return next(i for i in range(length) if a[i] != b[i])


def common_suffix(a: str, b: str) -> int:
    """Return how many characters two strings end with alike."""
    return common_prefix(a[::-1], b[::-1])
