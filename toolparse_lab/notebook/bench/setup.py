"""The subjects of the workbench: a text, how it is read, the facts about it; snippets to keep."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pprint import pformat
from typing import Any

from ...core.errors import BadOptions
from ...core.toolspec import ToolSpec, tool_specs
from ...core.types import ParseOptions, ParseResult
from ...entry.foreign.protocol import AnyProtocol, any_protocol
from ...entry.parse import Reader
from ...evals.scoring.trial import Trial

# Trials that one workbench goes through; `run.failures()` may have more.
MOST_SUBJECTS = 2_000
# The options that can be changed on the workbench.
CHOICES = ("coerce", "reasoning", "repair", "recover", "echoes")
KINDS = ("pytest", "python", "curl")
_CALL = "result = tp.parse(RAW, PROTOCOL, TOOLS, OPTIONS)\n"


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
        return _pytest(setup, result)
    if kind == "python":
        return f"{_head(setup)}{_CALL}\nprint(result.why())\n"
    if kind == "curl":
        return _curl(setup)
    raise BadOptions("unknown kind of snippet", got=kind, expected=", ".join(KINDS))


def _head(setup: Setup) -> str:
    tools = [tool.to_dict() for tool in setup.tools]
    default = type(setup.options)()
    options = {
        name: getattr(setup.options, name)
        for name in CHOICES
        if getattr(setup.options, name) != getattr(default, name)
    }
    return (
        "import toolparse_lab as tp\n\n"
        f"RAW = {_literal(setup.raw)}\n"
        f"TOOLS = {pformat(tools, width=88, sort_dicts=False)}\n"
        f"PROTOCOL = {setup.protocol.id!r}\n"
        f"OPTIONS = {options!r}\n\n"
    )


def _literal(text: str) -> str:
    # One line of the text a line of the literal.
    lines = text.splitlines(keepends=True)
    if len(lines) < 2:
        return ascii(text) if _is_hidden(text) else repr(text)
    inner = "".join(f"    {ascii(line) if _is_hidden(line) else repr(line)}\n" for line in lines)
    return f"(\n{inner})"


def _is_hidden(text: str) -> bool:
    # An editor would not show such characters.
    return not text.replace("\n", "").isprintable()


def _pytest(setup: Setup, result: ParseResult) -> str:
    # It checks the wanted calls where they are known and without alternatives, else the parse as
    # it is now.
    if setup.target is not None and all(
        isinstance(want, Mapping) and "name" in want and '"$' not in json.dumps(want)
        for want in setup.target
    ):
        calls = [(want["name"], want.get("arguments", {})) for want in setup.target]
        source = "the wanted calls"
    else:
        calls = [(call.name, call.arguments) for call in result.calls if call.valid]
        source = "the calls that may be executed now"
    name = re.sub(r"\W+", "_", setup.title.split(" ")[0]).strip("_").lower() or "answer"
    return (
        f"{_head(setup)}"
        f"# {source}\n"
        f"CALLS = {pformat(calls, width=88, sort_dicts=False)}\n\n\n"
        f"def test_{name}() -> None:\n"
        f"    {_CALL}"
        "    calls = [(call.name, call.arguments) for call in result.calls if call.valid]\n"
        "    assert calls == CALLS, result.why()\n"
    )


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
