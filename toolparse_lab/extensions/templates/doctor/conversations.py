"""What a template loses of whole conversations: calls side by side, earlier calls and results, and
arguments that are given as JSON text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from ....core.toolspec import ToolSpec
from ....core.types import ToolCall
from ....runner.chat_templates.renderer import ChatTemplate, Rendering
from ..derivation.answers import ANSWER, PLAIN, TOKEN, Call, Probe, Wire
from .lines import TESTS, first_difference
from .report import Finding, Loss
from .samples import OTHER, STRINGS, WORD

THIRD_WORD = "Elm Ness"
RESULTS = ("moored at dusk", "adrift at noon")
# What is written as Python has it shows in the object.
FIRST = Call("keep_note", {"note": WORD, "box": {"dry": True}})
SECOND = Call("keep_note", {"note": OTHER, "box": {"dry": True}}, "call00002")
THIRD = Call("mcp__quay__find", {"note": THIRD_WORD}, "call00003")
_CALLS = ("two calls", "three calls")
_BESIDE = "a text and two calls"
# Conversation -> the words that are to be found in it.
KEPT: Mapping[str, tuple[str, ...]] = {
    "one step": (WORD, RESULTS[0]),
    "two steps": (WORD, RESULTS[0], OTHER, RESULTS[1]),
    "a later turn": (WORD, RESULTS[0]),
    "two calls": (WORD, OTHER),
    "three calls": (WORD, OTHER, THIRD_WORD),
    _BESIDE: (WORD, OTHER),
    "two results": (WORD, OTHER, *RESULTS),
}
_MOST_FLIPS = 400
_TAKES_FIRST = re.compile(r"tool_calls\s*(?:\[\s*0\s*\]|\|\s*first\b)")

Job: TypeAlias = dict[str, Any]
Jobs: TypeAlias = Mapping[str, Job]
Texts: TypeAlias = Mapping[str, Rendering]
Answer: TypeAlias = Callable[[Rendering], str]
Read: TypeAlias = Callable[[Rendering], Sequence[ToolCall]]

_LATER: tuple[Job, ...] = (
    {"role": "assistant", "content": "It is late there."},
    {"role": "user", "content": "And now?"},
)


@dataclass(frozen=True, slots=True)
class Turns:
    """The messages of conversations, as a template takes them."""

    wire: Wire
    tools: tuple[ToolSpec, ...]

    def job(self, *messages: Job, prompt: bool = True) -> Job:
        job = self.wire.job(Probe(""), self.tools, prompt=True)
        job["messages"] += messages
        return {**job, "add_generation_prompt": prompt}

    def calls(self, *calls: Call) -> Job:
        message: Job = self.wire.job(Probe("", calls), self.tools)["messages"][1]
        return message

    @staticmethod
    def result(call: Call, text: str) -> Job:
        return {"role": "tool", "tool_call_id": call.id, "name": call.name, "content": text}


def conversation_findings(
    template: ChatTemplate, turns: Turns, answer: Answer, read: Read, *, python: bool
) -> tuple[list[Finding], int]:
    """Return the findings, and how many conversations were rendered.

    answer, read: the last answer of a rendering, and the calls in it. python: the format writes
    values as Python has them.
    """
    one = (turns.calls(FIRST), turns.result(FIRST, RESULTS[0]))
    results = (turns.result(FIRST, RESULTS[0]), turns.result(SECOND, RESULTS[1]))
    said = {**turns.calls(FIRST, SECOND), "content": "One moment, please."}
    jobs = {
        "one step": turns.job(*one),
        "two steps": turns.job(*one, turns.calls(SECOND), results[1]),
        "a later turn": turns.job(*one, *_LATER),
        "one call": turns.job(turns.calls(FIRST), prompt=False),
        "two calls": turns.job(turns.calls(FIRST, SECOND), prompt=False),
        "three calls": turns.job(turns.calls(FIRST, SECOND, THIRD), prompt=False),
        _BESIDE: turns.job(said, prompt=False),
        "two results": turns.job(turns.calls(FIRST, SECOND), *results),
        "no call": turns.wire.job(PLAIN, turns.tools),
    }
    texts = dict(zip(jobs, template.render(list(jobs.values())), strict=True))
    turn_end = list(_turn_end(template, jobs, texts))
    # Behind the end of a turn nothing needs to be read.
    read_back = _CALLS[: 1 if turn_end else 2]
    findings = [
        *_dropped(template, jobs, texts),
        *_garbled(template, jobs, texts, python=python),
        *_misread({name: texts[name] for name in read_back}, read),
        *turn_end,
        *_forged_result(template, turns, jobs["one step"], texts["two steps"]),
        *_changed_results(template, turns, texts["one step"]),
        *_other_form(template, turns, texts["one call"], answer, read),
    ]
    return findings, len(jobs) + len(STRINGS) + 2


def finding_at(template: ChatTemplate, code: str, line: int | None, *losses: Loss) -> Finding:
    source = template.text.split("\n")
    return Finding(code, losses, line, source[line - 1] if line and line <= len(source) else "")


def _dropped(template: ChatTemplate, jobs: Jobs, texts: Texts) -> Iterator[Finding]:
    codes: set[str] = set()
    for name, words in KEPT.items():
        rendering, line = texts[name], texts[name].line
        missing = [word for word in words if word not in rendering.text]
        if not missing:
            continue
        several = name in (*_CALLS, _BESIDE, "two results")
        code, came = "template.earlier-call", ", ".join(f"without {word}" for word in missing)
        if rendering.error:
            # A template that raises an error of its own refuses on purpose.
            refused = rendering.error.startswith("TemplateError") and not texts["one step"].error
            code = "limit.parallel" if several and refused else "template.conversation"
            came = rendering.error
        elif missing[0] in RESULTS:
            code = "template.result"
        elif name == _BESIDE and WORD in missing:
            code = "template.beside-text"
        elif several:
            code = "template.parallel"
        if code in codes:
            continue
        codes.add(code)
        if not rendering.error:
            # The word as the template writes it where it does, with the signs next to it.
            word = near = missing[0]
            for text in (texts["one call"].text, texts["one step"].text):
                if (at := text.find(word)) >= 0:
                    near = text[max(0, at - 8) : at + len(word) + 2]
            line = _line_that_drops(template, jobs[name], near)
        yield finding_at(template, code, line, Loss(name, "conversation", ", ".join(words), came))


def _line_that_drops(template: ChatTemplate, job: Job, word: str) -> int | None:
    # Each test is made to answer the opposite: where the word comes back then, that test is why.
    (traced,) = template.render([job], flips=[None])
    tests = [event for event in traced.events if event[0] in TESTS][:_MOST_FLIPS]
    flipped = template.render([job] * len(tests), flips=list(range(len(tests))))
    lines = {int(t[1]) for t, text in zip(tests, flipped, strict=True) if word in text.text}
    if not lines:
        # No test: then a line takes the first of several.
        source = enumerate(template.text.split("\n"), 1)
        lines = {number for number, text in source if _TAKES_FIRST.search(text)}
    return lines.pop() if len(lines) == 1 else None


def _garbled(
    template: ChatTemplate, jobs: Jobs, texts: Texts, *, python: bool
) -> Iterator[Finding]:
    # Calls after the first one, and those of earlier turns, may have lines of their own.
    box = FIRST.arguments["box"]
    lines: set[int | None] = set()
    for name in KEPT if not python else ():
        if repr(box) in texts[name].text:
            (traced,) = template.render([jobs[name]], flips=[None])
            line = next((int(e[1]) for e in traced.events if repr(box) in e[3]), None)
            place = "one of several calls" if name in (*_CALLS, _BESIDE) else "an earlier call"
            if line not in lines:
                loss = Loss(name, place, json.dumps(box), repr(box))
                yield finding_at(template, "template.python", line, loss)
            lines.add(line)


def _misread(texts: Texts, read: Read) -> Iterator[Finding]:
    for name, rendering in texts.items():
        words = KEPT[name]
        if all(word in rendering.text for word in words):
            calls = (FIRST, SECOND, THIRD)[: len(words)]
            came = [(call.name, call.arguments) for call in read(rendering) if call.ok]
            if came != [(call.name, dict(call.arguments)) for call in calls]:
                loss = Loss(name, "conversation", ", ".join(words), json.dumps(came))
                yield Finding("reader.value", (loss,))


def _turn_end(template: ChatTemplate, jobs: Jobs, texts: Texts) -> Iterator[Finding]:
    # The token that ends a plain answer, where it is between calls, or after some calls only.
    token = TOKEN.search(texts["no call"].text.rpartition(ANSWER)[2])
    one, two, three = (texts[name].text for name in ("one call", "two calls", "three calls"))
    if token is None or not all(word in three for word in KEPT["three calls"]) or OTHER not in two:
        return
    end = token[0]
    after_first, _, after_second = three.partition(WORD)[2].partition(OTHER)
    between = end in after_second.partition(THIRD_WORD)[0] and end not in after_first
    if not between and (end in one.rpartition(WORD)[2]) == (end in two.rpartition(OTHER)[2]):
        return
    (traced,) = template.render([jobs["three calls"]], flips=[None])
    writes = [event for event in traced.events if event[0] == "write"]
    second = next((i for i, event in enumerate(writes) if OTHER in event[3]), 0)
    line = next((int(event[1]) for event in writes[second:] if end in event[3]), None)
    came = f"{end} between the calls, or not after all of them"
    loss = Loss("one call, two and three", "conversation", f"calls, then {end}", came)
    yield finding_at(template, "template.turn-end", line, loss)


def _forged_result(
    template: ChatTemplate, turns: Turns, step: Job, steps: Rendering
) -> Iterator[Finding]:
    # A result whose text is what the template writes between two results.
    between = steps.text.partition(RESULTS[0])[2].partition(RESULTS[1])[0]
    if OTHER not in between:
        return
    forged = f"{RESULTS[0]}{between}{RESULTS[1]}"
    job = turns.job(turns.calls(FIRST), turns.result(FIRST, forged))
    traced, plain = template.render([job, step], flips=[None, None])
    if traced.text == steps.text:
        proof = "a conversation in which the model made the call is written alike"
        line = first_difference(traced.events, plain.events, forged)
        loss = Loss("a result", "tool result", json.dumps(forged), "another call", "", proof)
        yield finding_at(template, "limit.result-opens-call", line, loss)


def _changed_results(template: ChatTemplate, turns: Turns, plain: Rendering) -> Iterator[Finding]:
    # Where the result that is seen is written alike, the one that was put in is lost.
    if plain.text.count(RESULTS[0]) != 1:
        return
    head, tail = plain.text.split(RESULTS[0])

    def jobs(results: Sequence[str]) -> list[Job]:
        return [turns.job(turns.calls(FIRST), turns.result(FIRST, text)) for text in results]

    seen: dict[str, tuple[str, str]] = {}
    for title, rendering in zip(STRINGS, template.render(jobs([*STRINGS.values()])), strict=True):
        text = rendering.text
        if text.startswith(head) and text.endswith(tail):
            written = text[len(head) : len(text) - len(tail)]
            if written not in (STRINGS[title], json.dumps(STRINGS[title])[1:-1]):
                seen[title] = (written, text)
    again = template.render(jobs([written for written, _ in seen.values()])) if seen else []
    pairs = zip(seen, again, strict=True)
    alike = [title for title, other in pairs if other.text == seen[title][1]]
    if not alike:
        return
    every = jobs([RESULTS[0], *(STRINGS[title] for title in alike)])
    base, *traced = template.render(every, flips=[None] * len(every))
    losses: dict[int | None, list[Loss]] = {}
    for title, rendering in zip(alike, traced, strict=True):
        written, value = seen[title][0], STRINGS[title]
        line = first_difference(rendering.events, base.events, value)
        proof = f"the result {json.dumps(written)} is written alike"
        loss = Loss(title, "tool result", json.dumps(value), json.dumps(written), written, proof)
        losses.setdefault(line, []).append(loss)
    for line, of_line in losses.items():
        yield finding_at(template, "template.result-changed", line, *of_line)


def _other_form(
    template: ChatTemplate, turns: Turns, own: Rendering, answer: Answer, read: Read
) -> Iterator[Finding]:
    # Arguments as text where the template takes an object, or the other way round.
    other = replace(turns.wire, as_text=not turns.wire.as_text)
    both = (Turns(other, turns.tools), turns)
    given, plain = template.render(
        [turn.job(turn.calls(FIRST), prompt=False) for turn in both], flips=[None, None]
    )
    if not given.error and "".join(given.text.split()) == "".join(own.text.split()):
        return
    text = json.dumps(dict(FIRST.arguments), ensure_ascii=False)
    # Jinja cannot read JSON, so a template that needs the values cannot take the text.
    code = "limit.text-arguments" if other.as_text else "template.object-arguments"
    line, came, written = given.line, given.error, ""
    if not given.error:
        line = first_difference(given.events, plain.events, text)
        came = written = answer(given).strip()
        once, twice = json.dumps(text), json.dumps(json.dumps(text))
        calls = [(call.name, call.arguments) for call in read(given) if call.ok]
        if other.as_text and (twice in given.text or (once in given.text and once not in own.text)):
            code, came = "template.encoded-twice", twice if twice in given.text else once
        elif repr(FIRST.arguments) not in given.text and calls == [
            (FIRST.name, dict(FIRST.arguments))
        ]:
            return  # another notation, and a good one
    value = json.dumps(text) if other.as_text else text
    loss = Loss("all arguments", "arguments", value, came, written)
    yield finding_at(template, code, line, loss)
