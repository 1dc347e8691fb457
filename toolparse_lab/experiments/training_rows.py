"""Recorded answers as rows to train on: right answers, pairs of a right and a wrong one, and
rollouts with the tokens that were drawn.
"""

# How it works. What is trained on must be the model's own and rightly judged. An example is right
# as written: no repair, no coercion, no other reading. A bad example is one that the model is to
# blame for: an answer that a server broke, a stream that was cut or a reader's fault says nothing
# of it. Everything else is left out, and counted by its reason.
#
# Tokens are only those that were recorded. The turns of a conversation are one sequence as far as
# each prompt begins with what was drawn before; where one does not, a new row begins, because the
# model never saw the two together.

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ..core.errors import BadOptions, StoreError
from ..core.files import replace_file
from ..core.types import ParseResult
from ..core.types.tokens import Tokens, label_tokens, leaves_of, total_logprob
from ..core.values import write_canonical
from ..core.values.printable import counted
from ..evals.scoring.trial import Trial
from ..middleware.flow import recorded_tokens

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


def dpo_rows(
    trials: Iterable[Trial], form: TrainingForm | None, left_out: Counter[str]
) -> Iterator[Row]:
    """Yield pairs of answers to one prompt: one that is right as written, and one that is wrong by
    the model's own fault.
    """
    prompts: dict[str, _Sides] = {}
    for trial in trials:
        why_not_right, why_not_wrong = _why_not_right(trial), _why_not_wrong(trial)
        if why_not_right and why_not_wrong:
            left_out[why_not_wrong] += 1
            continue
        own_form = form or _form_of(trial)
        messages, tools = _prompt_of(trial, own_form)
        prompt = {"prompt": messages, **tools}
        sides = prompts.setdefault(write_canonical(prompt), _Sides(prompt))
        side = sides.rejected if why_not_right else sides.chosen
        answer = _answer_of(trial, own_form)
        side.setdefault(write_canonical(answer), answer)
    for sides in prompts.values():
        pairs = min(len(sides.chosen), len(sides.rejected))
        if alone := max(len(sides.chosen), len(sides.rejected)) - pairs:
            left_out["without a counterpart of the same prompt"] += alone
        for chosen, rejected in zip(
            list(sides.chosen.values())[:pairs], list(sides.rejected.values())[:pairs], strict=True
        ):
            yield {**sides.prompt, "chosen": [chosen], "rejected": [rejected]}


@dataclass(slots=True)
class _Sides:
    prompt: Row
    chosen: dict[str, Row] = field(default_factory=dict)
    rejected: dict[str, Row] = field(default_factory=dict)


def rollout_rows(
    trials: Iterable[Trial], reward: Callable[[Trial], float | None], left_out: Counter[str]
) -> Iterator[Row]:
    """Yield one row for each answer whose tokens are recorded, or for each stretch of a
    conversation that is one sequence of tokens.
    """
    for trial in trials:
        if trial.completion is None or not trial.completion.ok or trial.result is None:
            left_out["without an answer"] += 1
            continue
        stretches = _stretches(trial)
        if not stretches:
            left_out["without recorded tokens"] += 1
            continue
        number = reward(trial)
        for index, stretch in enumerate(stretches):
            yield {
                "case_id": trial.case_id,
                "model": trial.model,
                "arm": trial.arm,
                "trial": trial.trial,
                "part": index,
                "parts": len(stretches),
                **stretch.to_dict(),
                "reward": number,
            }


def reward_of(trial: Trial) -> float | None:
    """Return 1 for a trial that succeeded, 0 for one that failed, None where nothing says so."""
    success = trial.score.success if trial.score is not None else None
    return None if success is None else float(success)


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


def _why_not_wrong(trial: Trial) -> str:
    if reason := _why_not_judged(trial):
        return reason
    if trial.score is not None and trial.score.success:
        return "right after a repair or a coercion"
    # A call that a server left in its text is the model's own all the same.
    blame = trial.blame
    if blame.layer not in ("model", "none") and blame.code != "markup_in_content":
        return "wrong, and not by the model's own fault"
    return ""


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


# -- tokens


@dataclass(slots=True)
class _Stretch:
    # One sequence: the prompt's ids, and behind them what was drawn (mask 1) or came in between.
    messages: list[Row]
    completion: str
    prompt_ids: list[int]
    completion_ids: list[int] = field(default_factory=list)
    loss_mask: list[int] = field(default_factory=list)
    logprobs: list[float | None] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    arguments: list[Row] = field(default_factory=list)

    def to_dict(self) -> Row:
        return {field.name: getattr(self, field.name) for field in fields(self)}


def _stretches(trial: Trial) -> list[_Stretch]:
    stretches: list[_Stretch] = []
    for turn, (messages, completion, result) in enumerate(_turns_of(trial)):
        tokens = recorded_tokens(completion) if completion is not None else None
        if tokens is None or not tokens.ids:
            continue
        last = stretches[-1] if stretches else None
        so_far = [*last.prompt_ids, *last.completion_ids] if last is not None else []
        prompt = list(tokens.prompt_ids)
        if last is None or not prompt or prompt[: len(so_far)] != so_far:
            last = _Stretch(messages, tokens.drawn or completion.raw, prompt)
            stretches.append(last)
        else:
            between = prompt[len(so_far) :]
            last.messages, last.completion = messages, tokens.drawn or completion.raw
            last.completion_ids += between
            last.loss_mask += [0] * len(between)
            last.logprobs += [None] * len(between)
            last.kinds += ["prompt"] * len(between)
        start = len(last.completion_ids)
        last.completion_ids += tokens.ids
        last.loss_mask += [1] * len(tokens)
        last.logprobs += tokens.logprobs or [None] * len(tokens)
        last.kinds += _kinds_of(result, tokens)
        if result is not None:
            last.arguments += _arguments_of(
                trial if turn == 0 else None, result, tokens, start, turn
            )
    return stretches


def _turns_of(trial: Trial) -> Iterator[tuple[list[Row], Any, ParseResult | None]]:
    if trial.conversation is None:
        yield list(trial.request.get("messages") or ()), trial.completion, trial.result
        return
    for turn in trial.conversation.turns:
        yield [dict(m) for m in turn.request.messages], turn.completion, turn.result


def _kinds_of(result: ParseResult | None, tokens: Tokens) -> list[str]:
    own = tokens.of_text(result.raw if result is not None else "")
    # What has no place in the text that was parsed was drawn as text all the same.
    if result is None or not own.raw:
        return ["text"] * len(tokens)
    return [label.kind for label in label_tokens(own, result.segments, result.calls)]


def _arguments_of(
    trial: Trial | None, result: ParseResult, tokens: Tokens, start: int, turn: int
) -> list[Row]:
    own = tokens.of_text(result.raw)
    judged = trial.judged_arguments() if trial is not None else {}
    rows: list[Row] = []
    for call in result.calls:
        if not call.readable:
            continue
        for path, span in leaves_of(call.origins.get()):
            drawn = own.at(span)
            rows.append(
                {
                    "turn": turn,
                    "call": call.index,
                    "path": path,
                    "start": start + drawn[0].index if drawn else None,
                    "end": start + drawn[-1].index + 1 if drawn else None,
                    "logprob": total_logprob(drawn),
                    "right": judged.get((call.index, path)),
                }
            )
    return rows


def checked_form(form: Any) -> TrainingForm | None:
    """Return the form of rows. Raises BadOptions for one that does not exist."""
    if form not in (None, "calls", "text"):
        raise BadOptions(
            "no form of training rows of this name", got=form, expected="'calls', 'text' or None"
        )
    return form  # type: ignore[no-any-return]
