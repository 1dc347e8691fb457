"""Recorded answers as chat rows for supervised fine-tuning."""

# How it works. A row is right as written: no repair, no coercion, no other reading. Everything else
# is left out, and counted by its reason.

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias, Unpack

from ...core.errors import BadOptions, StoreError
from ...core.files import replace_file
from ...core.types.call import is_meant
from ...core.values import write_canonical
from ...core.values.printable import counted
from ...evals.scoring.trial import Trial
from ...experiments.run import FrameOptions, Run

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


def sft(
    run: Run,
    path: str | os.PathLike[str],
    *,
    form: TrainingForm | None = None,
    **reading: Unpack[FrameOptions],
) -> Written:
    """Write every answer that is right as written as a row of chat messages (JSON lines).

    Each row has `messages`, the answer last, and `tools` (JSON text) where there are any. Answers
    that are right only after a repair or a coercion are left out, and so is all that is not judged;
    the return value says how many.

    Args:
        run: a recorded run.
        path: a new file, or one to replace.
        form: 'calls' writes `tool_calls` for the model's chat template, 'text' what the model
            wrote, behind the messages as they were sent. By default as the answer was asked.
        reading: as for `run.trials`.

    Raises BadOptions for another form, and StoreError where the file cannot be written; one that is
    there stays as it is then.
    """
    if form not in (None, "calls", "text"):
        raise BadOptions(
            "no form of training rows of this name", got=form, expected="'calls', 'text' or None"
        )
    left_out: Counter[str] = Counter()
    count = 0

    def lines() -> Iterator[str]:
        nonlocal count
        for row in _rows(run.trials(**reading), form, left_out):
            count += 1
            yield json.dumps(row) + "\n"

    try:
        file = replace_file(path, lines())
    except OSError as e:
        raise StoreError("the rows cannot be written", got=f"{path}: {e.strerror}") from None
    return Written(file, count, dict(left_out.most_common()))


def _rows(
    trials: Iterable[Trial], form: TrainingForm | None, left_out: Counter[str]
) -> Iterator[Row]:
    # Each text once a prompt.
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


def _why_not_right(trial: Trial) -> str:
    score = trial.score
    if trial.completion is None or not trial.completion.ok or score is None:
        return "without an answer"
    if score.success is None:
        return "without a target"
    if not score.success:
        return "not right"
    return "" if score.strict else "right after a repair or a coercion"


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
    if form == "text" or result is None or not any(map(is_meant, result.calls)):
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
        if is_meant(call)
    ]
    return {"role": "assistant", "content": result.text.strip(), "tool_calls": calls}
