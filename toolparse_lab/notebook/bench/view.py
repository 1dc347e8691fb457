"""What the workbench works on and finds: a text and how it is read, what may read it better, other
readings beside it, the replay of its stream, and a snippet to keep.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ...core.errors import BadOptions
from ...core.rules import RULES
from ...core.toolspec import ToolSpec, tool_specs
from ...core.types import (
    CallEnd,
    ParseOptions,
    ParseResult,
    Reading,
    Recovered,
    Retract,
    Step,
    ToolCall,
    Withdrawn,
)
from ...core.values import leaves, read_plain
from ...core.values.printable import counted
from ...entry.foreign.protocol import AnyProtocol, any_protocol
from ...entry.parse import Reader
from ...evals.parsers.compare import compare
from ...evals.scoring.exports import parsing_source, pinning_file
from ...evals.scoring.trial import Trial
from ...formats.registry import protocols
from ...views.rows import is_lossless
from ...views.show import shorten, visible

# Trials that one workbench goes through; `run.failures()` may have more.
MOST_SUBJECTS = 2_000
# The options that can be changed on the workbench.
CHOICES = ("coerce", "reasoning", "repair", "recover", "echoes", "quotes")
KINDS = ("pytest", "python", "curl")
EVENT_WORDS = {
    "TextDelta": "text",
    "ReasoningDelta": "reasoning",
    "Markup": "markup",
    "CallStart": "a call begins",
    "CallDelta": "body",
    "CallEnd": "the call ends",
    "Retract": "taken back",
    "Recovered": "a call outside its format",
    "Withdrawn": "calls withdrawn",
}


@dataclass(frozen=True, slots=True)
class Setup:
    """One text and how it is read."""

    raw: str
    protocol: AnyProtocol
    options: ParseOptions = field(default_factory=ParseOptions)
    tools: tuple[ToolSpec, ...] = ()
    target: Sequence[Mapping[str, Any]] | None = None  # the wanted calls, None if no one knows
    request: tuple[Mapping[str, Any], ...] = ()  # the messages that were answered
    chunks: tuple[str, ...] = ()  # as it was streamed, () where that is not on record
    exchange: Mapping[str, str] = field(default_factory=dict)  # title -> JSON of the traffic
    outcome: str = ""  # the lab's score
    title: str = ""

    def parse(self) -> ParseResult:
        """Read the text."""
        reader = Reader(self.protocol, self.tools, self.options)
        return reader.parse(self.raw, self.request or None)

    def changed(self, values: Mapping[str, Any]) -> Setup:
        """Return this setup with a person's changes. Raises ToolparseError for an impossible one.

        values: raw, protocol (an id), tools (JSON text) and options by name. Others are ignored.
        """
        options = {name: values[name] for name in CHOICES if name in values}
        new = replace(self, options=replace(self.options, **options))
        if "raw" in values:
            new = replace(new, raw=str(values["raw"]))
        if values.get("protocol", self.protocol.id) != self.protocol.id:
            new = replace(new, protocol=any_protocol(values["protocol"]))
        if "tools" in values:
            try:
                tools = json.loads(values["tools"]) if values["tools"].strip() else []
            except ValueError as e:
                raise BadOptions(
                    "the tools are not JSON", got=str(e), expected="a list of tools as JSON"
                ) from None
            new = replace(new, tools=tool_specs(tools))
        # What was streamed was another text.
        return new if new.raw == self.raw else replace(new, chunks=())


def setups_of(
    subject: Any, protocol: Any = "auto", tools: Any = None, **options: Any
) -> list[Setup]:
    """Return the setups of a text, a parse, a trial, trials, or a run (then its failures).

    protocol, tools, options: for a text. Raises BadOptions for another subject and for none.
    """
    if isinstance(subject, str):
        setup = Setup(subject, any_protocol(protocol), ParseOptions.of(options), tool_specs(tools))
        return [setup]
    if isinstance(subject, ParseResult):
        return [Setup(subject.raw, any_protocol(subject.protocol), subject.options, subject.tools)]
    if isinstance(subject, Trial):
        return _of_trials([subject])
    if isinstance(subject, Iterable):
        return _of_trials(subject)
    # A run, which needs extras that a text does not.
    if hasattr(subject, "failures") and hasattr(subject, "trials"):
        return _of_trials(subject.failures() or subject.trials())
    raise BadOptions(
        "the workbench has no place for this",
        got=type(subject).__name__,
        expected="a text, a ParseResult, a trial, trials, or a run",
    )


def _of_trials(trials: Iterable[Any]) -> list[Setup]:
    setups = []
    for trial in trials:
        if not isinstance(trial, Trial):
            raise BadOptions("this is no trial", got=type(trial).__name__, expected="a Trial")
        if trial.result is not None:
            setups.append(_of_trial(trial, trial.result))
        if len(setups) == MOST_SUBJECTS:
            break
    if not setups:
        raise BadOptions(
            "there is no answer to look at",
            got="no trial with a text",
            expected="a recorded answer",
        )
    return setups


def _of_trial(trial: Trial, result: ParseResult) -> Setup:
    exchange = {
        name: json.dumps(part, ensure_ascii=False, indent=1, default=str)
        for name, part in trial.wire.items()
        if name in ("request", "response") and part
    }
    chunks = []
    for chunk in getattr(trial.completion, "chunks", None) or ():
        text = chunk if isinstance(chunk, str) else getattr(chunk, "text", None)
        if text:
            chunks.append(str(text))
    # A case may be a text, which is what the user said.
    asked = trial.case.input if isinstance(trial.case.input, list) else []
    return Setup(
        result.raw,
        trial.protocols.parse or any_protocol(result.protocol),
        result.options,
        result.tools or trial.case.tools,
        trial.case.target,
        tuple(trial.request.get("messages") or asked),
        tuple(chunks),
        exchange,
        str(trial.score or trial.missing_reason),
        f"{trial.case_id} · {trial.model} · {trial.arm}",
    )


def snippet_of(setup: Setup, result: ParseResult, kind: str) -> str:
    """Return a finding as a snippet to keep, of one of `KINDS`: a pytest case, Python, or a shell
    command. Raises BadOptions for another kind, and for a request that is not on record.
    """
    if kind == "pytest":
        name = re.sub(r"\W+", "_", setup.title.split(" ")[0]).strip("_").lower() or "answer"
        words = "the calls as they are read now"
        if setup.target is not None:
            words = "the wanted calls"
        return pinning_file(f"test_{name}", result, words, setup.target)
    if kind == "python":
        return parsing_source(result)
    if kind == "curl":
        return _curl(setup)
    raise BadOptions("unknown kind of snippet", got=kind, expected=", ".join(KINDS))


def _curl(setup: Setup) -> str:
    # The recorded request, its key and address left to variables.
    text = setup.exchange.get("request")
    if text is None:
        raise BadOptions(
            "no request is recorded for this text", got="a text", expected="a trial of a run"
        )
    request = json.loads(text)
    body = {key: request[key] for key in ("messages", "tools") if request.get(key)}
    body |= request.get("params") or {}
    model = request.get("model")
    body["model"] = model.get("id", "") if isinstance(model, Mapping) else str(model or "")
    return (
        'curl "$OPENAI_BASE_URL/chat/completions" \\\n'
        '  -H "Authorization: Bearer $OPENAI_API_KEY" \\\n'
        '  -H "Content-Type: application/json" \\\n'
        f"  -d {shlex.quote(json.dumps(body, ensure_ascii=False))}\n"
    )


POLICIES = ("none", "safe", "middleware", "go-strconv", "lossy")
REASONING = ("auto", "prefilled", "none")
_MOST_TEXT = 600
_MOST_TRIED = 50_000  # characters of an answer that is tried in other ways unasked
MOST_STEPS = 1_500  # chunks of a replay; a longer text comes in larger ones
_MOST_CALL = 400  # characters of a call's arguments in an event


def conversation_of(setup: Setup) -> list[list[str]]:
    """Return [role, text] of each message that was answered."""
    return [
        [
            _text(str(m.get("role", "")), 40),
            _text(said if isinstance(said := m.get("content"), str) else _json(said), 20_000),
        ]
        for m in setup.request
    ]


def next_steps(setup: Setup, result: ParseResult) -> list[dict[str, Any]]:
    """Return what may read an answer better, the best first: `words`, and the `values` to set.

    A protocol under which more calls may be executed, and the strictest other policy under which
    all of them may. A value that the model did not write is never offered, and of what guesses or
    drops something the words say what.
    """
    executable = sum(call.valid for call in result.calls)
    if (result.calls and executable == len(result.calls)) or len(setup.raw) > _MOST_TRIED:
        return []
    steps = []
    for reading in compare(setup.raw, setup.tools, options=setup.options).readings:
        if reading.name not in (setup.protocol.id, "auto") and len(reading.executable) > executable:
            runs = counted(len(reading.executable), "call")
            words = f"read it as {reading.name}: {runs} may be executed"
            words += _lost(
                rule
                for call in (reading.result.calls if reading.result else ())
                for rule in (*(e.rule for e in call.edits), *(s.rule for s in call.steps))
            )
            steps.append({"words": words, "values": {"protocol": reading.name}})
            break  # the best stands first
    for policy in POLICIES:
        other = setup.changed({"coerce": policy})
        calls = other.parse().calls if policy != setup.options.coerce else ()
        if calls and all(call.valid for call in calls):
            made = [step for call in calls for step in call.steps]
            if not all(_is_written(step) for step in made):
                continue
            changes = [
                _text(f"{step.path} {step.before_json} → {step.after_json}", 80) for step in made
            ]
            words = f"accept it under the policy {policy}"
            if changes:
                words += f": {', '.join(changes[:3])}{' …' if len(changes) > 3 else ''}"
            words += _lost(step.rule if step.rule != _FORCED else _rest(step) for step in made)
            steps.append({"words": words, "values": {"coerce": policy}})
            break
    return steps


_FORCED = "coerce.lossy"


def _is_written(step: Step) -> bool:
    # Whether the model wrote the value that the policy `lossy` puts in: each leaf of it.
    if step.rule != _FORCED:
        return True
    before = step.before_json.casefold()
    values = [value for _, value in leaves(read_plain(step.after_json))]
    written = (_json(v).strip('"').casefold() for v in values if v not in ({}, []))
    return (
        bool(values)
        and values != [{}]
        and all(re.search(rf"(?<!\w){re.escape(text)}(?!\w)", before) for text in written)
    )


def _rest(step: Step) -> str:
    # What of the value the policy `lossy` leaves out.
    after = step.after_json.strip('"')
    return f"{step.before_json.replace(after, ' … ', 1)} is left out"


def _lost(rules: Iterable[str]) -> str:
    # What rules guess or drop, in words; '' for rules that do neither.
    whys = (
        RULES[r].why if r in RULES else r for r in rules if r not in RULES or not is_lossless(r)
    )
    words = "; ".join(dict.fromkeys(filter(None, whys)))
    return f" (lossy: {_text(words, 200)})" if words else ""


def choices() -> dict[str, list[str]]:
    """Return the choices of the pickers."""
    return {
        "protocol": ["auto", *protocols()],
        "coerce": list(POLICIES),
        "reasoning": list(REASONING),
    }


def _text(value: str, limit: int = _MOST_TEXT) -> str:
    return visible(shorten(value, limit))


def _json(value: Any) -> str:
    # Values without a JSON form are written as Python does.
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        return repr(value)


def written(setup: Setup, call: ToolCall, reading: Reading) -> str | None:
    """Return the text with a reading of a refused call written in, None where it cannot be."""
    span = call.segment.span
    text = _call_text(setup, reading.name, reading.arguments)
    return None if text is None else f"{setup.raw[: span.start]}{text}{setup.raw[span.end :]}"


def _call_text(setup: Setup, name: str, arguments: Any) -> str | None:
    """Return a call as the protocol writes it, None for one that only reads."""
    write = getattr(setup.protocol, "format_tool_call", None)
    if write is None:
        return None
    try:
        return str(write({"name": name, "arguments": arguments}))
    except Exception:
        # A reading that the format cannot carry, or another package's protocol that fails.
        return None


def timeline_of(setup: Setup, size: int = 0) -> dict[str, Any]:
    """Return the replay of a text in chunks of `size` characters. 0: as recorded, else one each.

    `ends` are where each chunk ends, in code points. `events` has for each chunk a list of [kind,
    start, end, words]. The replay's last list is that of the end of the text. `settled` is how far
    the events after each chunk reach: the text after it waits.
    """
    chunks = list(setup.chunks) if not size and "".join(setup.chunks) == setup.raw else []
    is_recorded = bool(chunks)
    if not chunks:
        size = max(size, 1, -(-len(setup.raw) // MOST_STEPS))
        chunks = [setup.raw[i : i + size] for i in range(0, len(setup.raw), size)]
    parser = Reader(setup.protocol, setup.tools, setup.options).stream(setup.request or None)
    ends, settled, events = [], [], []
    at = reach = 0
    for chunk in chunks:
        rows = list(_rows(parser.feed(chunk)))
        at += len(chunk)
        for _, start, end, _ in rows:
            # After an event that takes others back their place is reached again.
            reach = max(end, start) if end >= 0 else start
        ends.append(at)
        settled.append(reach)
        events.append(rows)
    parser.close()
    last_events = getattr(parser, "last_events", None)
    last = list(_rows(last_events())) if last_events else []
    ends.append(at)
    settled.append(len(setup.raw))
    events.append(last)
    return {
        "size": size,
        "recorded": is_recorded,
        "ends": ends,
        "settled": settled,
        "events": events,
    }


def _rows(events: Any) -> Iterator[list[Any]]:
    """Yield events as [kind, start, end, words]."""
    for event in events:
        kind = type(event).__name__
        if isinstance(event, Retract):
            yield [kind, event.start, -1, f"all from character {event.start} on is taken back"]
            continue
        span = getattr(event, "span", None)
        if span is None:  # a part of another package's parser
            yield [kind, 0, -1, visible(shorten(str(event), _MOST_CALL))]
            continue
        words = ""
        if isinstance(event, CallEnd | Recovered | Withdrawn):
            words = ", ".join(
                visible(
                    shorten(f"{c.name or 'no name'}({c.arguments_json or c.status})", _MOST_CALL)
                )
                for c in event.calls
            )
        yield [kind, span.start, span.end, words]
