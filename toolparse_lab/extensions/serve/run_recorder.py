"""Traffic through the gateway as a run in a lab's store: parsed, judged and debugged like any
other.

How it works: answers go out first and are written afterwards, by a thread of the recorder's own, so
that a slow disk delays no one. All that waits is written together: the completions, the plan with
their cases, and its items, in this order, so that an item has its case and its answer whenever the
run is read. A run takes `_MOST` exchanges, because its plan is written again each time. Then
another begins. Anything that cannot be written is told, and the gateway goes on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from ... import __version__
from ...core.errors import ToolparseError
from ...core.toolspec import tool_specs
from ...core.values import write_canonical
from ...entry.foreign.protocol import AnyProtocol
from ...evals.cases.case import Case
from ...evals.cases.collection import Cases, pack_cases, unpack_cases
from ...experiments.arms import Arm, prompt_protocol
from ...experiments.ingest.columns import tool_choice_of
from ...experiments.plan import Plan
from ...runner.exchange.redaction import redact_strings
from ...runner.exchange.summary import Summary
from ...runner.exchange.types import Completion, Held, Model, PlanItem
from ...runner.store.store import Store
from .chat import Exchange
from .writer import Background

_MOST = 500  # exchanges of a run
_MOST_WAITING = 5_000  # behind a store that is too slow for them
SOURCE = "gateway"


class RunRecorder(Background[Exchange]):
    """Writes exchanges into a store until it is closed. `tell` is called, with a sentence, where
    something cannot be written.
    """

    def __init__(self, store: Store, protocol: AnyProtocol, tell: Callable[[str], None]) -> None:
        self.run_ids: list[str] = []
        self._store = store
        self._protocol = protocol
        self._tell = tell
        self._run = _RunSoFar(protocol)
        super().__init__(_MOST_WAITING, _MOST)

    def add(self, item: Exchange) -> bool:
        """Take an exchange that has ended. It is written soon, and told where too many wait."""
        taken = super().add(item)
        if not taken:
            self._tell("not recorded: the store is too slow for what waits already")
        return taken

    @contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except Exception as e:  # one that nobody foresaw does not end the recording
            # Only our own messages and the system's are known to hold no secret.
            is_known = isinstance(e, (ToolparseError, OSError))
            self._tell(f"not recorded: {e if is_known else type(e).__name__}")

    def _write(self, batch: list[Exchange]) -> None:
        # Into as many runs as they need.
        with self._telling():
            while batch:
                room = _MOST - len(self._run.items)
                completions = [c for e in batch[:room] if (c := self._run.add(e)) is not None]
                batch = batch[room:]
                run = self._run
                if completions and not run.run_id:
                    run.run_id = self._store.begin_run(run.record(), run.items)
                    self.run_ids.append(run.run_id)
                    self._store.record_many(completions, run.run_id)
                elif completions:
                    self._store.record_many(completions, run.run_id)
                    self._store.replace_plan(run.run_id, run.record())
                    self._store.extend_run(run.run_id, run.items[-len(completions) :])
                if len(run.items) >= _MOST:
                    self._end_run()

    def _finish(self) -> None:
        with self._telling():
            self._end_run()

    def _end_run(self) -> None:
        # A run without exchanges drops out.
        run, self._run = self._run, _RunSoFar(self._protocol)
        if run.run_id:
            run.summary.run_id = run.run_id
            self._store.finish_run(run.run_id, "complete", run.summary.to_dict())


class _RunSoFar:
    """A run while its exchanges come in."""

    def __init__(self, protocol: AnyProtocol) -> None:
        self.run_id = ""
        self.items: list[PlanItem] = []
        self.summary = Summary()
        self._protocol = protocol
        self._cases: list[Case] = []
        self._models: dict[str, Model] = {}
        # A tool choice as JSON -> its arm.
        self._arms: dict[str, Arm] = {}

    def add(self, exchange: Exchange) -> Completion | None:
        """Take an exchange in. Its completion comes back, None if nothing was sent."""
        completion = exchange.completion()
        if completion is None:
            return None
        number = len(self.items)
        case = _case_of(f"{number + 1:04}", exchange)
        # The exchanges with one tool choice have one arm.
        choice = tool_choice_of(exchange.question.body.get("tool_choice"))
        word = choice if isinstance(choice, str) else write_canonical(choice)
        name = self._protocol.id if word == "auto" else f"{self._protocol.id} {word}"
        arm = Arm(self._protocol, {"max_turns": 1, "tool_choice": choice}, name)
        arm = self._arms.setdefault(word, arm)
        completion = _clean(completion, exchange.question.secrets)
        # Equal questions are different exchanges, of this run and of all others.
        subject = [SOURCE, completion.created, number, completion.key]
        key = hashlib.sha256(write_canonical(subject).encode()).hexdigest()
        completion = replace(completion, key=key)

        alias = _word(exchange.question.model, exchange.question.secrets)
        request = completion.request.get("model") or {"name": alias}
        self._models.setdefault(alias, Model.from_dict(request))
        levels = {"arm": arm.name, "prompt_protocol": prompt_protocol(arm.protocol), **arm.levels}
        self._cases.append(case)
        self.items.append(PlanItem(case.id, alias, key, 0, levels))
        self.summary.count(None if completion.ok else str(completion.error_kind))
        return completion

    def record(self) -> Mapping[str, Any]:
        """Return the plan as it is recorded: one of answers from elsewhere, which no one asks
        again.
        """
        plan = Plan(
            Cases(self._cases, SOURCE),
            self._models,
            tuple(self._arms.values()),
            1,
            tuple(self.items),
            Held(()),
        )
        ingested = {"source": SOURCE, "skipped": []}
        return {**plan.to_dict(), "version": __version__, "ingested": ingested}


def _case_of(id: str, exchange: Exchange) -> Case:
    body, secrets = exchange.question.body, exchange.question.secrets
    messages, tools = redact_strings([body["messages"], body.get("tools") or []], secrets)
    try:
        case = Case(id, messages, tool_specs(tools))
        unpack_cases(pack_cases([case]))
    except ToolparseError:
        # What a lab's case cannot contain was asked all the same, and can be looked at as text.
        return Case(id, write_canonical(messages))
    return case


def _word(text: str, secrets: tuple[str, ...]) -> str:
    return str(redact_strings(text, secrets))


def _clean(completion: Completion, secrets: tuple[str, ...]) -> Completion:
    """Return a completion without these credentials, in the model's own text too."""
    chunks = completion.chunks
    for kind in ("content", "reasoning"):
        of_kind = [chunk for chunk in chunks if chunk.kind == kind]
        text = "".join(chunk.text for chunk in of_kind)
        if (clean := _word(text, secrets)) != text:
            # A credential may cross chunks, which then become one.
            others = [chunk for chunk in chunks if chunk.kind != kind]
            chunks = (*others, replace(of_kind[0], text=clean))
    members = redact_strings(
        {
            "raw": completion.raw,
            "reasoning": completion.reasoning,
            "request": dict(completion.request),
            "response": None if completion.response is None else dict(completion.response),
            "error_message": completion.error_message,
            "finish_reason": completion.finish_reason,
            "system_fingerprint": completion.system_fingerprint,
        },
        secrets,
    )
    return replace(completion, chunks=tuple(sorted(chunks, key=lambda c: c.at)), **members)
