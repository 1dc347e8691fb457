"""Questions as a lab asks them: its store, and the models and protocols that it has seen."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias, Unpack

from .. import __version__
from ..core.errors import (
    BadOptions,
    BadPlan,
    ProviderError,
    ToolparseError,
    UnknownName,
    near,
)
from ..core.toolspec import ToolsLike, tool_specs
from ..core.types import Policy
from ..core.values.printable import counted
from ..entry.foreign.protocol import AnyProtocol
from ..evals.cases.case import Case
from ..evals.scoring.trial import Trial
from ..formats.like import ProtocolLike
from ..formats.prompt.wording import OwnPrompt
from ..middleware import CorrectedAnswer, Reply, correct_answer, create_tool_middleware
from ..middleware.correction.drive import tokens_of
from ..middleware.flow import Conversation, Flow, Runnable, ToolRun, advance, result_row
from ..runner.exchange.redaction import redact_strings
from ..runner.exchange.summary import LIMITS, Summary
from ..runner.exchange.types import (
    PROVIDER_HINTS,
    RAW_COMPLETION,
    Completion,
    Model,
    PlanItem,
    Request,
)
from ..runner.ledger import RunLimits, check_limits, remaining_limits
from ..runner.loop import run_sync
from ..runner.pool import run_requests
from ..runner.store.store import Store
from .arms import FACTORS, Arm, LostProtocol, arm_of, check_names, later_questions
from .endpoint_check import refuse_failed
from .models import ModelLike, model_map
from .plan import (
    Plan,
    plan_messages_as_they_are,
    plan_one,
    question_of,
)
from .run import HEADLINE, Run
from .stored_run import find_run, stored_plan, stored_summary

# How it works. Every conversation is a flow, a generator that waits for the answer to one question.
# A round asks what all of them wait for, in one go of the pool; then each flow is sent its answer,
# runs its tools and yields its next question, or ends. Only what is in the store counts as an
# answer, so a round that was cut off loses nothing.
#
# Invariant: a function's result is recorded soon after it ran (`_AT_ONCE` conversations at most
# are ahead of the store), since running it again could have effects.
#
# Tools run in a thread and the store is written by its own one, so the event loop stays free.


async def run_rounds(
    plan: Plan,
    store: Store,
    run_id: str,
    *,
    more: bool = False,
    met: Collection[str] = (),
    **limits: Unpack[RunLimits],
) -> Summary:
    """Ask a plan's first questions, and the later ones of its conversations, as one run.

    limits: max_cost, max_calls and deadline hold for all rounds together.
    more: further parts of this run follow, so that it is not marked complete. met: the models
    reached in earlier parts. Returns the summary of all rounds. Raises as `run_requests` does.
    """
    began = time.monotonic()
    conversing = [item for item in plan.items if later_questions(item.arm)]
    summary = await run_requests(
        plan.requests, store, run_id=run_id, more=more or bool(conversing), met=met, **limits
    )
    if not conversing:
        return summary
    conversations = _OpenConversations(plan, conversing)
    try:
        while summary.stopped is None:
            questions = await _next_questions(conversations, store, run_id)
            if not questions:
                break
            remaining = remaining_limits(limits, summary, began)
            if remaining is None:
                # The tools took all the time there was.
                planned = summary.planned + len(questions)
                summary = dataclasses.replace(summary, planned=planned, stopped="deadline")
                break
            # A next question comes from an answer, so that each of these models was reached.
            answered = {request.model_alias for request in questions.values()}
            later = await run_requests(
                questions.values(), store, run_id=run_id, more=True, met=answered, **remaining
            )
            summary = summary.joined(later)
    except asyncio.CancelledError:
        # Not in a thread: a task that was cancelled may not get to wait for one.
        store.record_results(run_id, conversations.new_results())
        store.finish_run(run_id, "interrupted")
        raise
    finally:
        conversations.close()

    complete = "running" if more else "complete"
    status = complete if summary.complete else "incomplete"
    loop = asyncio.get_running_loop()
    await loop.run_in_executor(store.writer, store.finish_run, run_id, status, summary.to_dict())
    return summary


async def _next_questions(
    conversations: _OpenConversations, store: Store, run_id: str
) -> dict[str, Request]:
    # By key, once they are part of the recorded run.
    loop = asyncio.get_running_loop()
    keys = {item.key for item in conversations.items}
    rows = await loop.run_in_executor(None, lambda: list(store.completions(run_id, keys=keys)))
    answers = {item.key: completion for item, completion in rows}
    questions: dict[str, Request] = {}
    for batch in conversations.take():
        # Tools run here, and may take their time.
        questions |= await loop.run_in_executor(None, conversations.go_on, batch, answers)
        await loop.run_in_executor(
            store.writer, store.record_results, run_id, conversations.new_results()
        )
    if questions:
        await loop.run_in_executor(
            store.writer, store.extend_run, run_id, conversations.items, questions.values()
        )
    return questions


_Waiting: TypeAlias = list[tuple[PlanItem, Flow[Conversation]]]
_AT_ONCE = 50  # conversations whose tools run between two writes of their results


class _OpenConversations:
    # The conversations that are not over, each with the item of the question it waits for.
    def __init__(self, plan: Plan, items: list[PlanItem]) -> None:
        self._waiting: _Waiting = []
        self._secrets = {alias: model.secrets for alias, model in plan.models.items()}
        # Results of functions by the key of the question whose answer called them: those of this
        # round, and those that are not in the store yet.
        self._results: dict[str, list[dict[str, str]]] = {}
        self._new_results: dict[str, list[dict[str, str]]] = {}
        for item in items:
            flow = plan.flow(item, record=functools.partial(self._record, item.model))
            advance(flow)  # to the first question, which has been asked
            self._waiting.append((item, flow))

    @property
    def items(self) -> list[PlanItem]:
        return [item for item, _ in self._waiting]

    def take(self) -> list[_Waiting]:
        # A few at a time: in between, the results of functions can be written, so that few of them
        # can be lost.
        waiting, self._waiting, self._results = self._waiting, [], {}
        return [waiting[at : at + _AT_ONCE] for at in range(0, len(waiting), _AT_ONCE)]

    def go_on(self, batch: _Waiting, answers: Mapping[str, Completion]) -> dict[str, Request]:
        # A conversation without an answer is over.
        questions: dict[str, Request] = {}
        for item, flow in batch:
            answer = answers.get(item.key)
            if answer is not None and (results := self._results.get(item.key)):
                # Arms that share a question share the results for its answer: no function is run
                # twice.
                answer = dataclasses.replace(answer, results=(*answer.results, *results))
            request, _ = advance(flow, answer)
            if request is not None:
                questions[request.key] = request
                arm = {**item.arm, "turn": item.arm.get("turn", 1) + 1}
                next_item = dataclasses.replace(item, key=request.key, arm=arm)
                self._waiting.append((next_item, flow))
        return questions

    def new_results(self) -> dict[str, list[dict[str, str]]]:
        results, self._new_results = self._new_results, {}
        return results

    def _record(self, alias: str, completion: Completion, run: ToolRun) -> None:
        # Without the secrets of the model.
        row = redact_strings(result_row(run), self._secrets[alias])
        for results in (self._results, self._new_results):
            results.setdefault(completion.key, []).append(row)

    def close(self) -> None:
        for _, flow in self._waiting:
            flow.close()


class Session:
    """The store of a lab, and what a store cannot keep: models with credentials, and code.

    Args:
        store: where answers are recorded before they are parsed.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.models: dict[str, Model] = {}
        self.protocols: dict[str, AnyProtocol] = {}
        self.prompts: dict[str, OwnPrompt] = {}
        # Answers in the place of litellm, see `Lab.replaying`.
        self.complete: Any = None

    # runs

    async def run(
        self, plan: Plan, *, despite_check: bool = False, **limits: Unpack[RunLimits]
    ) -> Run:
        """Ask all questions of a plan that have no recorded answer. See `Lab.run`."""
        if not isinstance(plan, Plan):
            raise BadPlan(
                "only a plan can be run",
                got=type(plan).__name__,
                expected="the plan that lab.plan(cases, models, protocols) returns",
                hint='plan = lab.plan("cases.jsonl", models, ["hermes"]); lab.run(plan)',
            )
        check_limits(limits)
        if plan.items and not plan.requests:
            raise BadPlan(
                "there is nothing to ask: these are outputs from elsewhere",
                got=counted(len(plan.items), "answer"),
                hint="plan the same cases with lab.plan(run.plan.cases, models, protocols)",
            )

        run_id = await self._begin(plan, despite_check, limits)
        limits.setdefault("complete", self.complete)
        try:
            summary = await run_rounds(plan, self.store, run_id, **limits)
        except ToolparseError:
            # Most of these are raised before anything is asked, where nobody else marks the run as
            # over.
            with suppress(ToolparseError):
                self.store.finish_run(run_id, "incomplete")
            raise
        return Run(self.store, run_id, plan, summary, partial(self.retry, plan))

    async def _begin(
        self, plan: Plan, despite_check: bool, limits: Mapping[str, Any], **record: Any
    ) -> str:
        """Record a plan, with other facts to keep, as a run that is begun, and return its id."""
        # The store is written by its own thread, so that the event loop stays free.
        loop = asyncio.get_running_loop()
        if self.complete is None and not despite_check:
            await loop.run_in_executor(self.store.writer, refuse_failed, plan, self.store)
        row = {**plan.to_dict(), "version": __version__, **record}
        chosen = {name: v for name, v in limits.items() if name in LIMITS and v is not None}
        if chosen:
            row["limits"] = chosen
        begin = partial(self.store.begin_run, row, plan.items, requests=plan.requests)
        return await loop.run_in_executor(self.store.writer, begin)

    def open(
        self,
        run_id: str,
        models: Mapping[str, Model] | None = None,
        runnable: Runnable | None = None,
        protocols: Iterable[ProtocolLike] | None = None,
    ) -> Run:
        """Return a recorded run. See `Lab.open`."""
        record = find_run(self.store, run_id)
        plan = stored_plan(
            self.store,
            record,
            models,
            self.models,
            runnable,
            passed=protocols,
            known_protocols=self.protocols,
            known_prompts=self.prompts,
        )
        self.remember(plan.arms)
        return Run(
            self.store, record.run_id, plan, stored_summary(record), partial(self.retry, plan)
        )

    def remember(self, arms: Iterable[Arm]) -> None:
        """Keep protocols and prompts that are code, so that their runs can be opened again."""
        for arm in arms:
            if arm.own_prompt is not None and not arm.own_prompt.is_lost:
                self.prompts[arm.own_prompt.name] = arm.own_prompt
            if arm.protocol is not None and not isinstance(arm.protocol, LostProtocol):
                self.protocols[arm.protocol.id] = arm.protocol

    def model(self, model: Any) -> tuple[str, Model]:
        """Return alias and Model of a question. Raises UnknownName."""
        if isinstance(model, Model):
            return model.name, model
        if model in self.models:
            return model, self.models[model]
        if isinstance(model, str) and "/" in model:
            return next(iter(model_map(model).items()))
        raise UnknownName(
            "no model of this name",
            got=model,
            expected=", ".join(self.models)
            or "a tp.Model, or a litellm model string with its provider/",
            hint=near(model, self.models, cutoff=0.4),
            code="unknown-model",
        )

    # one question

    def question(
        self, text: Any, tools: Any, model: Any, protocol: Any, settings: Mapping[str, Any]
    ) -> Plan:
        """Return the plan of one question. Raises BadOptions for more than one turn."""
        alias, chosen = self.model(model)
        check_names(settings, chosen.params or ())
        arm = arm_of(protocol, settings)
        if arm.conversing:
            raise BadOptions(
                "ask asks one question",
                got=", ".join(
                    f"{name}={arm.levels[name]}" for name in ("max_turns", "corrections")
                ),
                hint="plan and run a conversation",
            )
        case = Case("ask", text, tool_specs(tools), None)
        self.remember([arm])
        return plan_one(
            case,
            alias,
            chosen,
            arm,
            sampling_of(settings),
            seed=settings.get("seed", 0),
            typed=settings,
        )

    def completion(self, plan: Plan, fresh: bool) -> Completion:
        """Return the answer to a plan of one question, asked if it is new. Raises ProviderError."""
        answer = None if fresh else self.store.get(plan.items[0].key)
        if answer is None or not answer.ok:
            answer = self.asked(plan, fresh).completion
        if answer is None:
            raise ProviderError("the model gave no answer", kind="other")
        return answer

    def asked_messages(
        self, name: str, messages: Iterable[Mapping[str, Any]], model: Any, settings: Any
    ) -> Completion:
        """Return the answer to messages that go out as they are. Raises ProviderError."""
        alias, chosen = self.model(model)
        others = {k: v for k, v in settings.items() if k != "fresh"}
        plan = plan_messages_as_they_are(name, messages, alias, chosen, others)
        return self.completion(plan, fresh=bool(settings.get("fresh", False)))

    def corrected(
        self, plan: Plan, tools: ToolsLike, model: ModelLike, feedback: Any, settings: Any
    ) -> CorrectedAnswer:
        """Return the answer to a plan of one question, its refused calls asked again."""
        completion = self.completion(plan, fresh=False)
        arm, request = plan.arms[0], question_of(plan)
        middleware = create_tool_middleware(arm.reader, feedback=feedback)
        params = {"messages": plan.cases[0].messages, "tools": tools}
        choice = request.params.get("tool_choice")
        turn = middleware.transform_params({**params, "tool_choice": choice} if choice else params)
        turn = replace(turn, params={"messages": [dict(m) for m in request.messages]})
        answer = middleware.wrap_generate(
            turn, completion.raw, finish_reason=completion.finish_reason
        )
        again = {name: value for name, value in settings.items() if name not in FACTORS}

        def ask(params: dict[str, Any]) -> Reply:
            reply = self.asked_messages("correction", params["messages"], model, again)
            return Reply(
                reply.raw, tokens_of(reply), reply.cost or 0.0, seconds=reply.latency or 0.0
            )

        return correct_answer(middleware, turn, answer, ask)

    def asked(
        self, plan: Plan, fresh: bool, policy: Policy = HEADLINE, *, may_fail: bool = False
    ) -> Trial:
        """Run a plan of one trial and return it.

        Raises ProviderError if its first question has no answer, unless it `may_fail`.
        """
        run = run_sync(self.run(plan, despite_check=True, fresh=fresh, progress=False))
        trial: Trial = run.trials(policies=(policy,))[0]
        if may_fail:
            return trial
        answer = trial.completion
        if answer is not None and answer.ok:
            return trial

        # A limit, such as a deadline, leaves no answer at all; a failure leaves one with an error.
        kind = message = None
        if answer is not None:
            kind, message = answer.error_kind, answer.error_message
        elif run.summary is not None:
            kind = run.summary.stopped
        raise ProviderError(
            message or "the model gave no answer",
            kind=str(kind or "other"),
            hint=PROVIDER_HINTS.get(str(kind)) or "what was recorded is kept; see lab.runs()",
        )

    def retry(
        self,
        plan: Plan,
        trial: Trial,
        *,
        case: Case | None = None,
        model: ModelLike | None = None,
        chat_template: Any = None,
        stream: bool | None = None,
        may_fail: bool = False,
        fresh: bool = False,
        **changes: Any,
    ) -> Trial:
        """See `Trial.retry`. changes: another protocol or other settings."""
        asked = plan.models[trial.model] if model is None else self.model(model)[1]
        if chat_template is not None:
            name = RAW_COMPLETION + asked.name.removeprefix(RAW_COMPLETION)
            asked = replace(asked, name=name, chat_template=chat_template)
        again = self._plan_again(
            plan,
            trial if case is None else replace(trial, case=case),
            asked,
            plan.stream if stream is None else stream,
            changes,
        )
        return self.asked(again, fresh, trial.policy, may_fail=may_fail)

    def _plan_again(
        self, plan: Plan, trial: Trial, model: Model, stream: bool, changes: dict[str, Any]
    ) -> Plan:
        """Return the plan that asks a trial's question again, with another protocol or settings."""
        # The object itself where the plan has it: an id alone may not bring it back.
        own = next((arm for arm in plan.arms if arm.name == trial.arm), None)
        protocol = changes.pop("protocol", (own and own.protocol) or trial.prompt_protocol)
        if getattr(protocol, "id", protocol) == "auto":
            raise BadOptions(
                "nobody knows what this model was told to write",
                got=trial.trial_id,
                hint="retry(protocol=...)",
            )
        check_names(changes, (*plan.params, *(model.params or ())))
        prompt = {"wording": own.own_prompt} if own is not None and own.own_prompt else {}
        settings = {**plan.params, **trial.levels, **prompt, **changes}
        arm = arm_of(protocol, settings)
        return plan_one(
            trial.case,
            trial.model,
            model,
            replace(arm, name=f"{arm.name} retry"),
            sampling_of(settings),
            seed=settings.get("seed", plan.seed),
            trial=trial.trial,
            stream=stream,
            runnable=plan.runnable,
            typed=changes,
        )


def sampling_of(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sampling parameters of settings. The seed is an argument of its own."""
    return {k: v for k, v in settings.items() if k not in FACTORS and k != "seed"}
