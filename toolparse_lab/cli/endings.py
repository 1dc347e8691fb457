"""The last lines of a run: why answers are missing, and the command that looks at what went wrong.

They go to standard error, so that a report on standard output is a report alone.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..runner.exchange.types import PROVIDER_HINTS
from ..views.show import visible
from .hints import as_flags

if TYPE_CHECKING:
    from ..experiments.run import Run

_MOST_LETTERS = 240
"""Of a provider's own message: the rest stands in `toolparse view`."""


def causes(run: Run) -> Iterator[str]:
    """Yield a text for each model and kind of failure: how many, the provider's words, the fix."""
    counts: dict[tuple[str, str], int] = {}
    messages: dict[tuple[str, str], str] = {}
    for item, answer in run.store.completions(run.run_id):
        if answer.ok:
            continue
        cause = (item.model, str(answer.error_kind))
        counts[cause] = counts.get(cause, 0) + 1
        messages.setdefault(cause, " ".join((answer.error_message or "").split()))
    for (model, kind), count in counts.items():
        message = messages[model, kind]
        if len(message) > _MOST_LETTERS:
            message = f"{message[: _MOST_LETTERS - 1]}…"
        questions = "1 question has" if count == 1 else f"{count:,} questions have"
        yield visible(
            f"toolparse: {model}: {questions} no answer ({kind}): {message}"
            f"\n  what to do: {fix_of(model, kind)}"
        )


def fix_of(model: str, kind: str) -> str:
    """Return what to do about a failure of a provider, as commands say it."""
    hint = PROVIDER_HINTS.get(kind)
    if hint is None:
        return "`toolparse retry` asks again; `toolparse view` shows the whole message"
    if kind in ("connection", "not_found"):
        return (
            f"{as_flags(hint)}; `toolparse check --models {shlex.quote(model)}` asks one question"
        )
    return as_flags(hint)


def next_step(run: Run, any_failed: bool, options: Any) -> str | None:
    """Return the command to type next, None for a run that is whole and right.

    any_failed: a trial with an answer is no success.
    """
    if not (run.missing or any_failed):
        return None
    words = ["toolparse", "retry" if run.missing else "view", "latest"]
    # A flag holds for one command; what a file or a variable says holds for the next one, too.
    for flag in ("store", "config"):
        if getattr(options, flag):
            words += [f"--{flag}", str(getattr(options, flag))]
    return f"next: {shlex.join(words)}"
