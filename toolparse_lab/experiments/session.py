"""Questions as a lab asks them: its store, and the models and protocols that it has seen."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Unpack

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
from ..formats.prompt.own_prompt import OwnPrompt
from ..middleware import CorrectedAnswer, Reply, correct_answer, create_tool_middleware
from ..middleware.correction.drive import tokens_of
from ..middleware.flow import Runnable
from ..runner.exchange.summary import LIMITS
from ..runner.exchange.types import PROVIDER_HINTS, RAW_COMPLETION, Completion, Model
from ..runner.limits import RunLimits, check_limits
from ..runner.loop import run_sync
from ..runner.store.store import Store
from .arms import FACTORS, Arm, LostProtocol, arm_of, check_names
from .endpoint_check import refuse_failed
from .models import ModelLike, model_map
from .plan import (
    Plan,
    plan_messages_as_they_are,
    plan_one,
    question_of,
)
from .rounds import run_rounds
from .run import HEADLINE, Run
from .stored_run import find_run, stored_plan, stored_summary


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
