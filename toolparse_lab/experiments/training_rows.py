"""Recorded answers as rows to train on."""

# What is trained on must be the model's own and rightly judged: right as written, with no repair,
# no coercion and no other reading. Everything else is left out, and counted by its reason.

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ..core.errors import BadOptions, StoreError
from ..core.files import replace_file
from ..core.values import write_canonical
from ..core.values.printable import counted
from ..evals.scoring.trial import Trial

TrainingForm: TypeAlias = Literal["calls", "text"]
"""How an answer is written: with `tool_calls`, for the model's chat template, or as its text."""
Row: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Written:
    """A file of rows, and what is not in it.

    Attributes:
        path: the file, with a JSON object a line.
        rows: how many.
        left_out: reason -> how many answers.
    """

    path: Path
    rows: int
    left_out: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        head = f"{counted(self.rows, 'row')} in {self.path}"
        if not self.left_out:
            return head
        reasons = "; ".join(f"{n} {reason}" for reason, n in self.left_out.items())
        return f"{head}; left out: {reasons}"


def write_rows(
    path: str | os.PathLike[str], rows: Callable[[Counter[str]], Iterator[Row]]
) -> Written:
    """Write rows as JSON lines, in place of a file that is there.

    rows: yields them, and counts what it leaves out by its reason. Raises StoreError where the file
    cannot be written; one that is there stays as it is then.
    """
    left_out: Counter[str] = Counter()
    count = 0

    def lines() -> Iterator[str]:
        nonlocal count
        for row in rows(left_out):
            count += 1
            yield json.dumps(row) + "\n"

    try:
        file = replace_file(path, lines())
    except OSError as e:
        raise StoreError("the rows cannot be written", got=f"{path}: {e.strerror}") from None
    return Written(file, count, dict(left_out.most_common()))


def sft_rows(
    trials: Iterable[Trial], form: TrainingForm | None, left_out: Counter[str]
) -> Iterator[Row]:
    """Yield one chat row for each answer that is right as written, each text once a prompt."""
    seen: set[str] = set()
    for trial in trials:
        if reason := _why_not_right(trial):
            left_out[reason] += 1
            continue
        own_form = form or _form_of(trial)
        messages, tools = _prompt_of(trial, own_form)
        row = {"messages": [*messages, _answer_of(trial, own_form)], **tools}
        identity = write_canonical(row)
        if identity in seen:
            left_out["the same as another"] += 1
            continue
        seen.add(identity)
        yield row


# -- which answers


def _why_not_judged(trial: Trial) -> str:
    if trial.completion is None or not trial.completion.ok or trial.score is None:
        return "without an answer"
    return "without a target" if trial.score.success is None else ""


def _why_not_right(trial: Trial) -> str:
    score, reason = trial.score, _why_not_judged(trial)
    if reason or score is None:
        return reason
    if not score.success:
        return "not right"
    return "" if score.strict else "right after a repair or a coercion"


# -- how they are written


def _form_of(trial: Trial) -> TrainingForm:
    # As it was asked: an arm with native tools is trained for its chat template.
    native = trial.completion is not None and trial.completion.endpoint_kind == "native_tools"
    return "calls" if native else "text"


def _prompt_of(trial: Trial, form: TrainingForm) -> tuple[list[Row], Row]:
    # The tools are JSON text: their schemas differ from row to row.
    if form == "text":
        sent = trial.request.get("messages") or trial.case.messages
        return [dict(message) for message in sent], {}
    tools = [tool.to_openai() for tool in trial.case.tools]
    return trial.case.messages, {"tools": json.dumps(tools)} if tools else {}


def _answer_of(trial: Trial, form: TrainingForm) -> Row:
    result = trial.result
    if form == "text" or result is None or not any(call.readable for call in result.calls):
        raw = trial.completion.raw if trial.completion is not None else ""
        if form != "text" and result is not None:
            raw = result.content().strip()
        return {"role": "assistant", "content": raw}
    calls = [
        {
            "type": "function",
            "function": {"name": call.name, "arguments": json.loads(call.arguments_json)},
        }
        for call in result.calls
        if call.readable
    ]
    return {"role": "assistant", "content": result.text.strip(), "tool_calls": calls}


def checked_form(form: Any) -> TrainingForm | None:
    """Return the form of rows. Raises BadOptions for one that does not exist."""
    if form not in (None, "calls", "text"):
        raise BadOptions(
            "no form of training rows of this name", got=form, expected="'calls', 'text' or None"
        )
    return form  # type: ignore[no-any-return]
