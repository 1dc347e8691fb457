"""The subjects of the workbench: a text, how it is read, and the facts about it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ...core.errors import BadOptions
from ...core.toolspec import ToolSpec, tool_specs
from ...core.types import ParseOptions, ParseResult
from ...evals.scoring.trial import Trial
from ...parser.foreign.protocol import AnyProtocol, any_protocol
from ...parser.parse import Reader

MOST_SUBJECTS = 2_000
"""Trials that one workbench goes through; `run.failures()` may have more."""
CHOICES = ("coerce", "reasoning", "repair", "recover", "echoes")
"""The options that can be changed on the workbench."""


@dataclass(frozen=True, slots=True)
class Setup:
    """One text and how it is read.

    target: the wanted calls, None if no one knows. request: the messages that were answered.
    chunks: the text as it was streamed, () where that is not on record. exchange: title -> JSON of
    the traffic. outcome: the lab's score.
    """

    raw: str
    protocol: AnyProtocol
    options: ParseOptions = field(default_factory=ParseOptions)
    tools: tuple[ToolSpec, ...] = ()
    target: Sequence[Mapping[str, Any]] | None = None
    request: tuple[Mapping[str, Any], ...] = ()
    chunks: tuple[str, ...] = ()
    exchange: Mapping[str, str] = field(default_factory=dict)
    outcome: str = ""
    title: str = ""

    def parse(self) -> ParseResult:
        """Read the text."""
        reader = Reader(self.protocol, self.tools, self.options)
        return reader.parse(self.raw, self.request or None)

    def changed(self, values: Mapping[str, Any]) -> Setup:
        """Return this setup with a person's changes.

        Raises ToolparseError for an impossible one.

        values: raw, protocol (an id), tools (JSON text) and options by name. Others are ignored.
        """
        options = {name: values[name] for name in CHOICES if name in values}
        new = replace(self, options=replace(self.options, **options))
        if "raw" in values:
            new = replace(new, raw=str(values["raw"]))
        if values.get("protocol", self.protocol.id) != self.protocol.id:
            new = replace(new, protocol=any_protocol(values["protocol"]))
        if "tools" in values:
            new = replace(new, tools=_tools_of(values["tools"]))
        # What was streamed was another text.
        return new if new.raw == self.raw else replace(new, chunks=())


def _tools_of(text: str) -> tuple[ToolSpec, ...]:
    """Return tools from JSON text. Raises BadOptions that says where it is not JSON."""
    if not text.strip():
        return ()
    try:
        tools = json.loads(text)
    except ValueError as e:
        raise BadOptions(
            "the tools are not JSON", got=str(e), expected="a list of tools as JSON"
        ) from None
    return tool_specs(tools)


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
    """Return the setups of trials that have an answer. Raises BadOptions if none has."""
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
    """Return the setup of one trial."""
    completion = trial.completion
    exchange = {
        name: json.dumps(part, ensure_ascii=False, indent=1, default=str)
        for name, part in trial.wire.items()
        if name in ("request", "response") and part
    }
    return Setup(
        result.raw,
        trial.protocols.parse or any_protocol(result.protocol),
        result.options,
        result.tools or trial.case.tools,
        trial.case.target,
        tuple(trial.request.get("messages") or ()),
        tuple(str(text) for text in _chunk_texts(completion)),
        exchange,
        str(trial.score or trial.missing_reason),
        f"{trial.case_id} · {trial.model} · {trial.arm}",
    )


def _chunk_texts(completion: Any) -> Iterable[str]:
    """Return the texts of a recorded stream."""
    for chunk in getattr(completion, "chunks", None) or ():
        text = chunk if isinstance(chunk, str) else getattr(chunk, "text", None)
        if text:
            yield text
