"""What a template loses of whole conversations: calls side by side, earlier calls and results, and
arguments that are given as JSON text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from ...core.toolspec import ToolSpec
from ...core.types import ToolCall
from ..derivation.answers import ANSWER, PLAIN, TOKEN, Call, Probe, Wire
from ..derivation.renderer import ChatTemplate, Rendering
from .lines import TESTS, first_difference
from .report import Finding, Loss
from .samples import OTHER, STRINGS, WORD

FIRST = Call("keep_note", {"note": WORD})
SECOND = Call("GetTide2", {"note": OTHER}, "call00002")
THIRD = Call("mcp__quay__find", {"note": "Elm Ness"}, "call00003")
RESULTS = ("moored at dusk", "adrift at noon")
_MOST_FLIPS = 400

Job: TypeAlias = dict[str, Any]
Answer: TypeAlias = Callable[[Rendering], str]
Read: TypeAlias = Callable[[Rendering], Sequence[ToolCall]]


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


SAID: tuple[Job, ...] = (
    {"role": "assistant", "content": "It is late there."},
    {"role": "user", "content": "And now?"},
)


def conversation_findings(
    template: ChatTemplate,
    wire: Wire,
    tools: tuple[ToolSpec, ...],
    answer: Answer,
    read: Read,
) -> tuple[list[Finding], int]:
    """Return the findings, and how many conversations were rendered.

    answer, read: the last answer of a rendering, and the calls in it.
    """
    turns = Turns(wire, tools)
    one = (turns.calls(FIRST), turns.result(FIRST, RESULTS[0]))
    two = (*one, turns.calls(SECOND), turns.result(SECOND, RESULTS[1]))
    jobs = {
        "one step": turns.job(*one),
        "two steps": turns.job(*two),
        "a later turn": turns.job(*one, *SAID),
        "two calls": turns.job(turns.calls(FIRST, SECOND), prompt=False),
        "one call": turns.job(turns.calls(FIRST), prompt=False),
        "three calls": turns.job(turns.calls(FIRST, SECOND, THIRD), prompt=False),
        "no call": turns.wire.job(PLAIN, tools),
        "two results": turns.job(
            turns.calls(FIRST, SECOND),
            turns.result(FIRST, RESULTS[0]),
            turns.result(SECOND, RESULTS[1]),
        ),
    }
    texts = dict(zip(jobs, template.render(list(jobs.values())), strict=True))
    source = template.text.split("\n")
    findings: list[Finding] = []

    def add(code: str, loss: Loss, line: int | None) -> None:
        text = source[line - 1] if line is not None and line <= len(source) else ""
        findings.append(Finding(code, (loss,), line, text))

    kept = {
        "one step": (WORD, RESULTS[0]),
        "two steps": (WORD, RESULTS[0], OTHER, RESULTS[1]),
        "a later turn": (WORD, RESULTS[0]),
        "two calls": (WORD, OTHER),
        "two results": (WORD, OTHER, *RESULTS),
    }
    for name, words in kept.items():
        rendering = texts[name]
        if rendering.error:
            # A template that says so refuses on purpose.
            refused = name in ("two calls", "two results")
            code = "limit.parallel" if refused else "template.conversation"
            if code not in [finding.code for finding in findings]:
                add(code, Loss(name, "conversation", name, rendering.error), rendering.line)
            continue
        missing = [word for word in words if word not in rendering.text]
        if not missing:
            continue
        code = "template.earlier-call"
        if name == "two calls" or (missing[0] in (WORD, OTHER) and name == "two results"):
            code = "template.parallel"
        elif missing[0] in RESULTS:
            code = "template.result"
        if code in [finding.code for finding in findings]:
            continue
        came = ", ".join(f"without {word}" for word in missing)
        loss = Loss(name, "conversation", ", ".join(words), came)
        near = _around(missing[0], texts["one step"], texts["one call"])
        add(code, loss, _line_that_drops(template, jobs[name], near))
    parallel = texts["two calls"]
    if not parallel.error and all(word in parallel.text for word in (WORD, OTHER)):
        found = [call for call in read(parallel) if call.ok]
        names = [call.name for call in found]
        if names != [FIRST.name, SECOND.name]:
            loss = Loss("two calls", "conversation", "two calls", str(names), parallel.text[-300:])
            add("reader.value", loss, None)

    end = _irregular_end(texts)
    if end:
        (calls,) = template.render([jobs["three calls"]], flips=[None])
        writes = [e for e in calls.events if e[0] == "write"]
        seen = [i for i, e in enumerate(writes) if OTHER in e[3]]
        lines = [int(e[1]) for e in writes[seen[0] :] if end in e[3]] if seen else []
        came = "the end of turn is not where the calls end"
        loss = Loss("one call, two and three", "conversation", "calls", came, end)
        add("template.turn-end", loss, lines[0] if lines else None)

    # A result whose text is what stands between two results.
    steps = texts["two steps"]
    between = steps.text.partition(RESULTS[0])[2].partition(RESULTS[1])[0]
    forged = f"{RESULTS[0]}{between}{RESULTS[1]}"
    job = turns.job(turns.calls(FIRST), turns.result(FIRST, forged))
    traced = template.render([job, jobs["one step"]], flips=[None, None])
    if OTHER in between and not steps.error and traced[0].text == steps.text:
        proof = "a conversation in which the model made the call is written alike"
        line = first_difference(traced[0].events, traced[1].events, forged)
        loss = Loss("a result", "tool result", json.dumps(forged), "another call", "", proof)
        add("limit.result-opens-call", loss, line)

    changed = _changed_results(template, turns, texts["one step"])
    for line in dict.fromkeys(line for line, _ in changed):
        text = source[line - 1] if line is not None and line <= len(source) else ""
        losses = tuple(loss for at, loss in changed if at == line)
        findings.append(Finding("template.result-changed", losses, line, text))
    finding = _other_form(template, turns, texts["one call"], answer, read)
    if finding is not None:
        findings.append(finding)
    return findings, len(jobs) + len(STRINGS) + 2


def _changed_results(
    template: ChatTemplate, turns: Turns, plain: Rendering
) -> list[tuple[int | None, Loss]]:
    # Where the result that is seen is written alike, the one that was put in is lost.
    if plain.text.count(RESULTS[0]) != 1:
        return []
    head, tail = plain.text.split(RESULTS[0])

    def jobs(results: Sequence[str]) -> list[Job]:
        return [turns.job(turns.calls(FIRST), turns.result(FIRST, text)) for text in results]

    seen: dict[str, tuple[str, Rendering]] = {}
    for title, rendering in zip(STRINGS, template.render(jobs([*STRINGS.values()])), strict=True):
        text = rendering.text
        if not rendering.error and text.startswith(head) and text.endswith(tail):
            written = text[len(head) : len(text) - len(tail)]
            if written not in (STRINGS[title], json.dumps(STRINGS[title])[1:-1]):
                seen[title] = (written, rendering)
    if not seen:
        return []
    again = template.render(jobs([written for written, _ in seen.values()]))
    alike = [
        title
        for (title, (_, rendering)), other in zip(seen.items(), again, strict=True)
        if other.text == rendering.text
    ]
    traced = template.render(jobs([RESULTS[0], *(STRINGS[t] for t in alike)]),
                             flips=[None] * (len(alike) + 1))  # fmt: skip
    changed = []
    for title, rendering in zip(alike, traced[1:], strict=True):
        written, text = seen[title][0], STRINGS[title]
        line = first_difference(rendering.events, traced[0].events, text)
        proof = f"the result {json.dumps(written)} is written alike"
        loss = Loss(title, "tool result", json.dumps(text), json.dumps(written), written, proof)
        changed.append((line if rendering.text == seen[title][1].text else None, loss))
    return changed


def _irregular_end(texts: Mapping[str, Rendering]) -> str:
    # The token that ends a plain answer, where it is between calls, or after some calls only.
    token = TOKEN.search(texts["no call"].text.rpartition(ANSWER)[2])
    one, two, three = (texts[f"{n} call{'s' * (n != 'one')}"] for n in ("one", "two", "three"))
    if token is None or three.error or two.error or str(THIRD.arguments["note"]) not in three.text:
        return ""
    after_first, after_second = three.text.partition(WORD)[2].split(OTHER, 1)
    between = token[0] in after_second.partition(str(THIRD.arguments["note"]))[0]
    ends = [token[0] in one.text.rpartition(WORD)[2], token[0] in two.text.rpartition(OTHER)[2]]
    irregular = ends[0] != ends[1] or (between and token[0] not in after_first)
    return token[0] if irregular else ""


def _around(word: str, *renderings: Rendering) -> str:
    # The word as the template writes it where it does, with the signs next to it.
    for rendering in renderings:
        at = rendering.text.find(word)
        if at >= 0:
            return rendering.text[max(0, at - 8) : at + len(word) + 2]
    return word


def _line_that_drops(template: ChatTemplate, job: Job, word: str) -> int | None:
    # Each test is made to answer the opposite: where the word comes back then, that test is why.
    (traced,) = template.render([job], flips=[None])
    tests = [event for event in traced.events if event[0] in TESTS][:_MOST_FLIPS]
    flipped = template.render([job] * len(tests), flips=list(range(len(tests))))
    lines = {
        int(test[1])
        for test, rendering in zip(tests, flipped, strict=True)
        if word in rendering.text
    }
    if not lines:
        # No test: then a line takes the first of several.
        first = re.compile(r"tool_calls\s*(?:\[\s*0\s*\]|\|\s*first\b)")
        source = template.text.split("\n")
        lines = {i for i, text in enumerate(source, 1) if first.search(text)}
    return lines.pop() if len(lines) == 1 else None


def _other_form(
    template: ChatTemplate, turns: Turns, own: Rendering, answer: Answer, read: Read
) -> Finding | None:
    # Arguments as text where the template takes an object, or the other way round.
    other = replace(turns.wire, as_text=not turns.wire.as_text)
    both = (Turns(other, turns.tools), turns)
    given, plain = template.render(
        [turn.job(turn.calls(FIRST), prompt=False) for turn in both], flips=[None, None]
    )
    if not given.error and "".join(given.text.split()) == "".join(own.text.split()):
        return None
    text = json.dumps(dict(FIRST.arguments), ensure_ascii=False)
    # Jinja cannot read JSON, so a template that needs the values cannot take the text.
    code = "limit.text-arguments" if other.as_text else "template.object-arguments"
    line, came, written = given.line, given.error, ""
    if not given.error:
        line = first_difference(given.events, plain.events, text)
        came = written = answer(given).strip()
        once, twice = json.dumps(text), json.dumps(json.dumps(text))
        if other.as_text and (twice in given.text or (once in given.text and once not in own.text)):
            code, came = "template.encoded-twice", twice if twice in given.text else once
        elif repr(FIRST.arguments) not in given.text and _is_first(read(given)):
            return None  # another notation, and a good one
    loss = Loss("all arguments", "arguments", json.dumps(text) if other.as_text else text, came)
    source = template.text.split("\n")
    at = source[line - 1] if line is not None and line <= len(source) else ""
    return Finding(code, (replace(loss, text=written),), line, at)


def _is_first(calls: Sequence[ToolCall]) -> bool:
    return [(call.name, call.arguments) for call in calls if call.ok] == [
        (FIRST.name, dict(FIRST.arguments))
    ]
