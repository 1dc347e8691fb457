"""The answers a template writes for probes, without the prompt before and the end of turn behind.

If an answer begins and ends is measured: against the prompt alone, and against an answer without
calls. A cut never goes through a special token.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...core.errors import UnreadableTemplate
from ...core.toolspec import ToolSpec
from .affixes import common_prefix, common_suffix
from .probes import (
    ANSWER,
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
)
from .renderer import ChatTemplate, Rendering

# What no cut goes through: special tokens, and words.
_TOKEN = re.compile(r"<[^<>\n]{1,80}>|\[/?[A-Z][A-Z_]+\]|\w+")
_THOUGHT_IN_PROMPT = re.compile(r"[<\[][^<>\[\]\n]{0,40}[>\]]\s*\Z")


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
    thought_opener: the text that the prompt ends in where reasoning begins in it, else "". full:
    the whole conversation of each probe to fit. prompt: the question alone.
    """

    fit: Mapping[str, Answer]
    others: Mapping[str, Answer]
    wire: Wire
    thought_opener: str
    full: Mapping[str, str]
    prompt: str


def answers_of(template: ChatTemplate) -> Answers:
    """Return the answers of a template.

    Raises UnreadableTemplate for one that renders no call.
    """
    wire = _wire_of(template)
    fit_tools, held_tools = tools_of(FIT), tools_of(HELD)
    jobs = [wire.job(PLAIN, fit_tools, prompt=True)]
    jobs += [wire.job(probe, fit_tools) for probe in FIT]
    jobs += [wire.job(PLAIN, held_tools, prompt=True), wire.job(PLAIN, held_tools)]
    jobs += [wire.job(probe, held_tools) for probe in HELD]

    texts = template.render(jobs)
    fit = texts[1 : 1 + len(FIT)]
    other_prompt, other_plain, *others = texts[1 + len(FIT) :]
    plain = fit[0].text
    return Answers(
        _cut_all(FIT, fit, texts[0].text, plain),
        _cut_all(HELD, others, other_prompt.text, other_plain.text),
        wire,
        _thought_opener(texts[0].text, fit[FIT.index(THOUGHTFUL)].text),
        {probe.id: rendering.text for probe, rendering in zip(FIT, fit, strict=True)},
        texts[0].text,
    )


def rendered_like(
    template: ChatTemplate, answers: Answers, probes: Sequence[Probe], tools: tuple[ToolSpec, ...]
) -> list[Answer]:
    """Return the answers to other probes, cut as those of `answers` are."""
    wire = answers.wire
    jobs = [wire.job(PLAIN, tools, prompt=True), wire.job(PLAIN, tools)]
    jobs += [wire.job(probe, tools) for probe in probes]
    prompt, plain, *texts = template.render(jobs)
    return [
        Answer(probe, "" if text.error else _cut(text.text, prompt.text, plain.text), text.error)
        for probe, text in zip(probes, texts, strict=True)
    ]


def _wire_of(template: ChatTemplate) -> Wire:
    """Return the first way to hand messages over by which a template writes a call.

    Raises UnreadableTemplate if there is none.
    """
    tools = tools_of(FIT)
    wires = list(WIRES)
    texts = template.render([wire.job(ONE, tools) for wire in wires])
    good = [wire for wire, text in zip(wires, texts, strict=True) if _writes_call(text.text, wire)]
    if not good:
        raise _no_call(texts)
    wire = good[0]
    thoughts = [replace(wire, thought_key=key) for key in THOUGHT_KEYS]
    texts = template.render([thought.job(THOUGHTFUL, tools) for thought in thoughts])
    for thought, text in zip(thoughts, texts, strict=True):
        if THOUGHT in text.text:
            return thought
    return replace(wire, thought_key="")


def _no_call(texts: Sequence[Rendering]) -> UnreadableTemplate:
    """Return the error of a template that writes no call."""
    errors = dict.fromkeys(text.error for text in texts if text.error)
    is_broken = len(errors) > 0 and all(text.error for text in texts)
    return UnreadableTemplate(
        "the template does not render a conversation with a call"
        if is_broken
        else "the template writes no calls of tools",
        got="; ".join(errors) or "a conversation with a call, without the call",
        expected="the name and the arguments of message.tool_calls",
        hint="name the format by hand: tp.protocols(), or Protocol.from_spec; or take a template "
        "for tools, if the model has one",
        probe=ONE.id,
    )


def _writes_call(text: str, wire: Wire) -> bool:
    """Return True if a call stands in a rendering, its arguments not as Python's own notation."""
    call = ONE.calls[0]
    words = (call.name, *call.arguments, *map(str, call.arguments.values()))
    if not all(word in text for word in words):
        return False
    if wire.as_text:
        # A template that encodes JSON text once more wants a mapping.
        return json.dumps(json.dumps(dict(call.arguments)))[1:-1] not in text
    return repr(dict(call.arguments)) not in text


def _cut_all(
    probes: Sequence[Probe], texts: Sequence[Rendering], prompt: str, plain: str
) -> dict[str, Answer]:
    """Return the answers in the renderings of probes."""
    answers: dict[str, Answer] = {}
    for probe, rendering in zip(probes, texts, strict=True):
        text = "" if rendering.error else _cut(rendering.text, prompt, plain)
        answers[probe.id] = Answer(probe, text, rendering.error)
    return answers


def _cut(text: str, prompt: str, plain: str) -> str:
    """Return the answer in a rendering.

    prompt: the rendering of the question alone. plain: that with an answer without calls.
    """
    start = common_prefix(text, prompt)
    # The turn ends behind the words of the plain answer, so that what is common is no part of it.
    tail = plain[plain.rfind(ANSWER) + len(ANSWER) :] if ANSWER in plain else ""
    end = len(text) - common_suffix(text, tail)
    tokens = list(_TOKEN.finditer(text))
    torn = next((token for token in tokens if token.start() < start < token.end()), None)
    if torn is not None:
        # The prompt goes on differently: what stands before a plain answer tells the place.
        before = plain[: plain.rfind(ANSWER)] if ANSWER in plain else ""
        common = common_prefix(text, before)
        start = common if common >= torn.end() else torn.start()
    for token in tokens:
        if token.start() < end < token.end() or _is_torn(text, end, token):
            end = token.end()
    return text[start : max(start, end)]


def _is_torn(text: str, end: int, token: re.Match[str]) -> bool:
    """Return True if a cut in front of a token tears it from the word that it ends."""
    return 0 < end == token.start() and text[end - 1].isalnum() and text[end] == "<"


def _thought_opener(prompt: str, text: str) -> str:
    """Return the tag that opens reasoning at the end of a prompt.

    "" if none stands there.

    text: the rendering of an answer with reasoning.
    """
    match = _THOUGHT_IN_PROMPT.search(prompt)
    if match is None or THOUGHT not in text:
        return ""
    common = common_prefix(prompt, text)
    if common < match.end() or text[common:].find(THOUGHT) > 2:
        return ""
    return match[0].strip()
