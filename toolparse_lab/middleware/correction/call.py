"""A call that is tried, corrected and tried again: one generator, for every way to run it."""

from __future__ import annotations

import hashlib
import logging
import math
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from ...arguments.schema import coerce
from ...arguments.schema.go import GO_KINDS, go_log_line
from ...core.errors import CorrectionFailed
from ...core.toolspec import EMPTY_SCHEMA, ToolSpec
from ...core.types import Step
from ...core.values import escape_token, leaves, pointer_tokens, same, write_canonical
from .failure import Detector, Issue, Refused, ToolFailure, detect, detectors_of
from .feedback import Feedback
from .prompt import Corrected, CorrectionContext

_MOST_LEVELS = 100
# Rules about which members an object has, in lower case: their place is the object.
_OF_MEMBERS = frozenset(
    ("required", "missing", "additional", "additionalproperties", "extra_forbidden",
     "dependentrequired")
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class FieldEdit:
    """One change of the arguments, at a JSON Pointer.

    Attributes:
        kind: "changed", "added" or "removed".
        old, new: None if there is none.
    """

    path: str
    kind: str
    old: Any = None
    new: Any = None


def edits_between(old: Any, new: Any) -> list[FieldEdit]:
    """Return the smallest changes that make `new` of `old`, by member.

    >>> [e.path for e in edits_between({"a": 1, "b": {"c": 2}}, {"a": 1, "b": {"c": 3, "d": 4}})]
    ['/b/c', '/b/d']
    """
    return list(_edits(old, new, "", 0))


def _edits(old: Any, new: Any, path: str, level: int) -> Iterator[FieldEdit]:
    # A value that nests too deep is one change.
    if same(old, new):
        return
    if level < _MOST_LEVELS and isinstance(old, Mapping) and isinstance(new, Mapping):
        for name in dict.fromkeys((*old, *new)):
            below = f"{path}/{escape_token(name)}"
            if name not in new:
                yield FieldEdit(below, "removed", old[name])
            elif name not in old:
                yield FieldEdit(below, "added", None, new[name])
            else:
                yield from _edits(old[name], new[name], below, level + 1)
    elif (
        level < _MOST_LEVELS
        and isinstance(old, list)
        and isinstance(new, list)
        and len(old) == len(new)
    ):
        for i, (a, b) in enumerate(zip(old, new, strict=True)):
            yield from _edits(a, b, f"{path}/{i}", level + 1)
    else:
        yield FieldEdit(path, "changed", old, new)


def merged(
    arguments: Mapping[str, Any], correction: Mapping[str, Any], issues: Iterable[Issue]
) -> tuple[dict[str, Any], tuple[FieldEdit, ...], tuple[FieldEdit, ...]]:
    """Return the arguments, corrected at the fields that the issues name.

    Returned are the new arguments, the edits that were taken and those that were not. If an issue
    names no field, every edit is taken: there is nothing to hold it to.

    >>> from toolparse_lab.middleware.correction import Issue, merged
    >>> arguments, edits, others = merged({"n": "x", "a": 1}, {"n": 7, "a": 2}, [Issue("/n")])
    >>> arguments, [edit.path for edit in others]
    ({'n': 7, 'a': 1}, ['/a'])
    """
    issues = tuple(issues)
    edits = edits_between(dict(arguments), dict(correction))
    if any(issue.path is None for issue in issues):
        return dict(correction), tuple(edits), ()
    named = tuple(edit for edit in edits if any(_is_named(edit, issue) for issue in issues))
    collateral = tuple(edit for edit in edits if edit not in named)
    new: Any = dict(arguments)
    for edit in named:
        new = _with(new, pointer_tokens(edit.path), edit)
    return new, named, collateral


def _is_named(edit: FieldEdit, issue: Issue) -> bool:
    # A rule about members is told of their object: they may be added or removed there, and the
    # others stay as they are.
    place = issue.path or ""
    if issue.keyword.lower() in _OF_MEMBERS:
        # Of the object itself where the rule is told of it, of the member where it is told of that.
        parent = edit.path.rpartition("/")[0]
        return edit.path == place or (edit.kind != "changed" and parent == place)
    return (
        edit.path == place or edit.path.startswith(f"{place}/") or place.startswith(f"{edit.path}/")
    )


def _with(value: Any, tokens: list[str], edit: FieldEdit) -> Any:
    # What is not on the way to the edit is shared with `value`.
    if not tokens:
        return edit.new
    token, *rest = tokens
    if isinstance(value, list):
        items = list(value)
        items[int(token)] = _with(items[int(token)], rest, edit)
        return items
    members = dict(value)
    if not rest and edit.kind == "removed":
        members.pop(token, None)
    else:
        members[token] = _with(members.get(token), rest, edit)
    return members


# How it works. The generator yields what it needs and is sent what came of it: a call of the tool
# (its result or a ToolFailure), a correction (arguments, or the exception that was raised), or a
# pause. So it has no clock and no network, and a driver decides what each means: live, awaited, or
# looked up in a recording.
#
# Two counts run apart, as in the Go orchestrator. A regular attempt calls the tool, and a failed
# one is followed by a pause. A correction uses up no attempt and no pause: the call is made
# again at once. A correction that fails is used up all the same, and the regular attempt goes on.

Stop: TypeAlias = Literal[
    "accepted", "attempts_used_up", "same_arguments", "budget_used_up", "not_recorded"
]
# Why a corrected call ended -> one sentence.
STOPS: Mapping[Stop, str] = {
    "accepted": "The tool took the call.",
    "attempts_used_up": "The tool refused the last regular attempt.",
    "same_arguments": "A correction brought arguments that the tool had refused already.",
    "budget_used_up": "The corrections have cost as much as they may.",
    "not_recorded": "The next correction is not recorded.",
}
# The `reason` of an event validation_feedback_failed -> one sentence. Its words are in `error`.
REASONS: Mapping[str, str] = {
    "no_schema": "The tool has no schema, so that nothing says what is right.",
    "no_corrector": "Nobody can be asked for a correction.",
    "unusable_correction": "The correction held no arguments, or its model could not be asked.",
    "corrector_error": "The callback that corrects raised an error of its own.",
    "same_arguments": STOPS["same_arguments"],
    "max_retries_exceeded": STOPS["attempts_used_up"],
    "budget_used_up": STOPS["budget_used_up"],
    "not_recorded": STOPS["not_recorded"],
}


@dataclass(frozen=True, slots=True)
class RunTool:
    """Needed: a call of the tool. To be sent: `Accepted`, or a ToolFailure."""

    tool: ToolSpec
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Correct:
    """Needed: a correction.

    To be sent: arguments, `Corrected`, the exception that was raised, or None if a recording has
    none.
    """

    context: CorrectionContext


@dataclass(frozen=True, slots=True)
class Pause:
    """Needed: a pause of some seconds. To be sent: None."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Accepted:
    """The tool took the call, with `value` as its result."""

    value: Any = None


Need: TypeAlias = RunTool | Correct | Pause


@dataclass(frozen=True, slots=True)
class Correction:
    """One correction as it went.

    Attributes:
        issues: the members that the error named.
        status: "applied". "failed", nothing came that could be used, with `reason`. "repeated", it
            was refused already.
        edits: taken at the named fields.
        collateral: made elsewhere and left out.
        steps: of layer 2 on the corrected call.
    """

    number: int
    error: str
    issues: tuple[Issue, ...]
    status: Literal["applied", "failed", "repeated"]
    reason: str = ""
    edits: tuple[FieldEdit, ...] = ()
    collateral: tuple[FieldEdit, ...] = ()
    steps: tuple[Step, ...] = ()
    tokens: int = 0
    cost: float = 0.0


@dataclass(frozen=True, slots=True)
class CorrectedCall:
    """A call with everything done for it.

    Attributes:
        arguments: as the tool got them last.
        stop: one of `STOPS`.
        attempts: regular ones.
        tool_calls, model_calls: how often each was asked.
        pauses: seconds, one for each.
        failures: of the tool, in order.
        steps: of layer 2 on the first arguments.

    >>> from toolparse_lab.middleware.correction import run_call
    >>> tool = {"name": "f", "parameters": {"properties": {"n": {"type": "integer"}}}}
    >>> call = run_call(tool, {"n": "many"}, lambda n: n + 1, correct=lambda context: {"n": 7})
    >>> call.stop, call.value, call.model_calls
    ('accepted', 8, 1)
    >>> call.corrections[0].status, call.corrections[0].edits[0].path
    ('applied', '/n')
    """

    tool: ToolSpec
    arguments: Mapping[str, Any]
    stop: Stop
    value: Any = None
    attempts: int = 0
    tool_calls: int = 0
    model_calls: int = 0
    pauses: tuple[float, ...] = ()
    failures: tuple[ToolFailure, ...] = ()
    corrections: tuple[Correction, ...] = ()
    steps: tuple[Step, ...] = ()

    @property
    def ok(self) -> bool:
        """True if the tool took the call. That the model answered is not enough."""
        return self.stop == "accepted"

    @property
    def rescued(self) -> bool:
        """True if the tool took the call after a correction was applied."""
        return self.ok and any(c.status == "applied" for c in self.corrections)

    @property
    def error(self) -> str:
        """The tool's last message, "" if it took the call."""
        return "" if self.ok or not self.failures else self.failures[-1].message


# Told of what happens: a name of `EVENTS` and its attributes.
OnEvent: TypeAlias = Callable[[str, Mapping[str, Any]], None]
# The names of the events; those of the Go orchestrator but for `parameters_corrected` and the last.
EVENTS = (
    "type_coercion_applied", "validation_feedback_started", "parameters_corrected",
    "validation_feedback_success", "validation_feedback_failed", "layer3_rescued",
)  # fmt: skip
LOGGER = logging.getLogger("toolparse_lab.type_safety")
# Event -> level, the record's `operation`, its message: those of the orchestrator.
_RECORDS: Mapping[str, tuple[int, str, str]] = {
    "type_coercion_applied": (
        logging.DEBUG, "type_coercion", "Parameter types coerced to match schema",
    ),
    "validation_feedback_started": (
        logging.INFO, "validation_feedback", "Type error detected, requesting LLM correction",
    ),
    "parameters_corrected": (
        logging.DEBUG, "validation_feedback_success", "Parameters corrected by LLM",
    ),
}  # fmt: skip


def _log_event(name: str, attributes: Mapping[str, Any]) -> None:
    # The record's attribute `toolparse` has the details: `operation`, `step_id`, `capability`,
    # and the fields of the event: `coercions` (a line each), `changes` (a record each),
    # `validation_retry` and `error`, `new_params`.
    level, operation, message = _RECORDS.get(name, (logging.NOTSET, "", ""))
    if not operation or not LOGGER.isEnabledFor(level):
        return
    details = {k: v for k, v in attributes.items() if k not in ("steps", "retry_number")}
    if "retry_number" in attributes:
        details["validation_retry"] = attributes["retry_number"]
    if "steps" in attributes:
        where = {k: attributes[k] for k in ("step_id", "capability") if k in attributes}
        details["coercions"] = [
            go_log_line(step)
            if step.rule in GO_KINDS
            else f"{step.path}: {step.before_json} -> {step.after_json}"
            for step in attributes["steps"]
        ]
        details["changes"] = [
            {"operation": "type_coercion", **where, "path": step.path}
            | {"from": step.before, "to": step.after, "rule": step.rule}
            for step in attributes["steps"]
        ]
    LOGGER.log(level, message, extra={"toolparse": {"operation": operation, **details}})


def corrected_call(
    tool: Any,
    arguments: Mapping[str, Any],
    feedback: Feedback | None = None,
    *,
    messages: tuple[Mapping[str, Any], ...] = (),
    can_correct: bool = True,
    step_id: str = "",
    agent: str = "",
    on_event: OnEvent | None = None,
) -> Generator[Need, Any, CorrectedCall]:
    """Run a flow that calls a tool and has refused arguments corrected.

    Args:
        tool: any shape that `ToolSpec.of` takes.
        arguments: as the model wrote them. Layer 2 brings them to the schema first.
        messages: the user's request and the messages before it.
        can_correct: False if no one can be asked. Such a correction is used up, and a regular
            attempt follows.

    Returns a CorrectedCall. Raises BadToolSpec.

    >>> from toolparse_lab.middleware.correction import corrected_call
    >>> flow = corrected_call({"name": "f"}, {"n": 1})
    >>> next(flow).arguments
    {'n': 1}
    """
    feedback = feedback or Feedback()
    spec = ToolSpec.of(tool)
    # The user's last message is the request.
    last = max((i for i, m in enumerate(messages) if m.get("role") == "user"), default=-1)
    visible = tuple(
        message
        for i, message in enumerate(messages)
        if (feedback.request if i == last else feedback.history)
    )
    detectors = detectors_of(feedback.detectors)
    flow = _Call(spec, feedback, detectors, visible, can_correct, step_id, agent, on_event)
    return flow.run(dict(arguments))


@dataclass(slots=True)
class _Call:
    tool: ToolSpec
    feedback: Feedback
    detectors: tuple[Detector, ...]
    messages: tuple[Mapping[str, Any], ...]
    can_correct: bool
    step_id: str
    agent: str
    on_event: OnEvent | None
    attempt: int = 1
    tool_calls: int = 0
    model_calls: int = 0
    pauses: list[float] = field(default_factory=list)
    failures: list[ToolFailure] = field(default_factory=list)
    corrections: list[Correction] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)
    steps: tuple[Step, ...] = ()

    def run(self, arguments: dict[str, Any]) -> Generator[Need, Any, CorrectedCall]:
        arguments, self.steps = self._coerced(arguments)
        while True:
            reply = yield from self._call(arguments)
            if isinstance(reply, Accepted):
                return self._ended(arguments, "accepted", reply.value)
            stop, new = yield from self._correction(arguments, reply)
            if stop is not None:
                return self._ended(arguments, stop)
            if new is not None:
                arguments = new
                continue
            if self.attempt >= self.feedback.max_attempts:
                return self._ended(arguments, "attempts_used_up")
            seconds = self.feedback.backoff(self.attempt)
            self.pauses.append(seconds)
            yield Pause(seconds)
            self.attempt += 1

    def _tell(self, name: str, **attributes: Any) -> None:
        where = {"capability": self.tool.name, "step_id": self.step_id, "agent": self.agent}
        attributes = {**{k: v for k, v in where.items() if v}, **attributes}
        _log_event(name, attributes)
        if self.on_event is not None:
            self.on_event(name, attributes)

    def _call(self, arguments: dict[str, Any]) -> Generator[Need, Any, Accepted | ToolFailure]:
        # A number that JSON cannot carry never reaches the tool.
        bad = [
            path
            for path, value in leaves(dict(arguments))
            if isinstance(value, float) and not math.isfinite(value)
        ]
        if bad:
            issues = tuple(Issue(path, "finite", "is not a finite number") for path in bad)
            failure = ToolFailure("a number is not finite", issues=issues, called=False)
        else:
            self.tool_calls += 1
            reply = yield RunTool(self.tool, arguments)
            if isinstance(reply, Accepted):
                return reply
            failure = reply
        self.refused.add(_key(arguments))
        self.failures.append(failure)
        return failure

    def _correction(
        self, arguments: dict[str, Any], failure: ToolFailure
    ) -> Generator[Need, Any, tuple[Stop | None, dict[str, Any] | None]]:
        # Gives why the call ends here, or new arguments, or neither: a regular attempt is next.
        feedback = self.feedback
        if not feedback.enabled or len(self.corrections) >= feedback.max_validation_retries:
            return None, None
        issues = detect(Refused(failure, arguments, self.tool.schema_json), self.detectors)
        if not issues:
            return None, None
        tokens, cost = feedback.max_tokens, feedback.max_cost
        if tokens is not None and sum(c.tokens for c in self.corrections) >= tokens:
            return "budget_used_up", None
        if cost is not None and sum(c.cost for c in self.corrections) >= cost:
            return "budget_used_up", None

        number = len(self.corrections) + 1
        self._tell("validation_feedback_started", retry_number=number, error=failure.message)
        answer: Any = None
        code = reason = ""
        if not self.can_correct:
            code, reason = "no_corrector", "nobody can be asked"
        elif self.tool.schema_json == EMPTY_SCHEMA:
            code, reason = "no_schema", "the tool has no schema"
        else:
            self.model_calls += 1
            context = CorrectionContext(
                self.tool, arguments, failure.message, failure.body, issues, self.messages,
                number, self.step_id, self.agent,
            )  # fmt: skip
            answer = yield Correct(context)
            if answer is None:
                self.model_calls -= 1
                return "not_recorded", None
            answer = Corrected(answer) if isinstance(answer, Mapping) else answer
            if isinstance(answer, CorrectionFailed):
                code, reason = "unusable_correction", str(answer)
            elif isinstance(answer, BaseException):
                code, reason = "corrector_error", str(answer)
            elif not isinstance(answer, Corrected) or not isinstance(answer.arguments, Mapping):
                code, reason = "unusable_correction", "no arguments came"
        # What could not be used has its price all the same.
        spent = (getattr(answer, "tokens", 0) or 0, getattr(answer, "cost", 0.0) or 0.0)
        about = (number, failure.message, issues)
        if code:
            self.corrections.append(Correction(*about, "failed", reason, (), (), (), *spent))
            self._tell("validation_feedback_failed", retry_number=number, reason=code, error=reason)
            return None, None

        places = issues if feedback.merge == "named" else (Issue(None),)
        new, edits, collateral = merged(arguments, dict(answer.arguments), places)
        new, steps = self._coerced(new)
        changes = (edits, collateral, steps)
        if feedback.stop_on_repeat and _key(new) in self.refused:
            reason = "the same arguments were refused before"
            self.corrections.append(Correction(*about, "repeated", reason, *changes, *spent))
            self._tell("validation_feedback_failed", retry_number=number, reason="same_arguments")
            return "same_arguments", None
        self.corrections.append(Correction(*about, "applied", "", *changes, *spent))
        self._tell("parameters_corrected", retry_number=number, new_params=new)
        return None, new

    def _coerced(self, arguments: dict[str, Any]) -> tuple[dict[str, Any], tuple[Step, ...]]:
        coerced = coerce(arguments, self.tool.schema_json, self.feedback.policy)
        if coerced.steps:
            count = len(coerced.steps)
            self._tell("type_coercion_applied", coercions_count=count, steps=coerced.steps)
        value = coerced.value
        return (value if isinstance(value, dict) else arguments), coerced.steps

    def _ended(self, arguments: dict[str, Any], stop: Stop, value: Any = None) -> CorrectedCall:
        number = len(self.corrections)
        applied = any(c.status == "applied" for c in self.corrections)
        # Only a call that the tool takes makes a correction a success.
        if applied and stop == "accepted":
            self._tell("validation_feedback_success", retry_number=number)
            self._tell("layer3_rescued", retry_number=number)
        elif applied and stop != "same_arguments":
            reason = "max_retries_exceeded" if stop == "attempts_used_up" else stop
            self._tell("validation_feedback_failed", retry_number=number, reason=reason)
        return CorrectedCall(
            self.tool, arguments, stop, value, self.attempt, self.tool_calls, self.model_calls,
            tuple(self.pauses), tuple(self.failures), tuple(self.corrections), self.steps,
        )  # fmt: skip


def _key(arguments: Mapping[str, Any]) -> str:
    # Equal arguments have the same key.
    try:
        text = write_canonical(dict(arguments))
    except (TypeError, ValueError):
        text = repr(arguments)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
