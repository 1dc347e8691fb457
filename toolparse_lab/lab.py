"""`Lab`: the façade that notebooks and the command line share. Here the runner and the parsers meet."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from typing import Any

from .arms import Arm, arm_of
from .asking import request_for
from .errors import BadOptions, ProviderError, UnknownModel
from .evals.cases import Case
from .evals.trial import Trial
from .flow import read_answer
from .plan import Plan, make_plan, model_map
from .protocols.base import Protocol
from .rounds import run_rounds
from .run import Run
from .runner.loop import run_sync
from .runner.pool import Summary, run_requests
from .runner.store import RunRecord, Store
from .runner.types import Completion, Model, PlanItem, Request
from .toolspec import tool_specs
from .types import ParseResult


class Lab:
    """Experiments over one store.

    store: a path (SQLite) or an SQLAlchemy URL. Everything a model answers is recorded there, raw, before it is
    parsed; asking the same question again reads the recording.

    >>> import tempfile, toolparse_lab as tp
    >>> lab = tp.Lab(tempfile.mkdtemp() + "/runs.db")
    >>> plan = lab.plan([{"id": "a", "input": "hi", "tools": [{"name": "f"}], "target": []}],
    ...                 {"small": tp.Model("toolparse-local/smollm2-135m")}, ["hermes", "morph_xml"], max_tokens=64)
    >>> plan.calls
    2
    """

    def __init__(self, store: str | os.PathLike[str] = "toolparse.db") -> None:
        self.store = Store(os.fspath(store))
        self.models: dict[str, Model] = {}
        self._complete: Any = None

    def __repr__(self) -> str:
        return f"Lab({str(self.store.url)!r})"

    def __enter__(self) -> Lab:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the store; may be called twice."""
        self.store.close()

    # experiments

    def plan(self, cases: Any, models: Any, protocols: Any, *, trials: int = 1, **settings: Any) -> Plan:
        """An experiment, shown with its calls, tokens and cost before anything is sent.

        settings: the factors of `arms.FACTORS`, each a value or a list of levels, `runnable` tools, and sampling
        parameters; see `plan.make_plan`.
        """
        made = make_plan(cases, models, protocols, trials=trials, **settings)
        self.models.update(made.models)
        return made

    def run(self, plan: Plan, **limits: Any) -> Run:
        """Asks what is not recorded yet. Ctrl-C stops cleanly and keeps everything recorded.

        limits: max_cost (US dollars), max_calls, deadline (seconds), fresh, max_age (seconds), progress; see
        `runner.pool.run_requests`. Failures of a provider are recorded and shown, they do not raise.
        """
        return run_sync(self.arun(plan, **limits))

    async def arun(self, plan: Plan, **limits: Any) -> Run:
        """`run`, for code that is async already."""
        run_id = self.store.begin_run(plan.to_dict(), plan.items, requests=plan.requests.values())
        limits.setdefault("complete", self._complete)
        summary = await run_rounds(plan, self.store, run_id, **limits)
        return Run(self.store, run_id, plan, summary, self._retry)

    def replaying(self, source: Any) -> Lab:
        """This lab, answering only from a recording (a path or a store): no model is called."""
        from .runner.recording import replay

        self._complete = replay(source)
        return self

    def runs(self) -> list[RunRecord]:
        """The runs of this store, newest first."""
        return self.store.runs()

    # one question

    def ask(
        self,
        text: Any,
        tools: Any = None,
        *,
        model: Any,
        protocol: str | Protocol = "hermes",
        options: Any = None,
        **settings: Any,
    ) -> ParseResult:
        """Asks one question and reads the answer. Recorded like any other; asked only if it is new.

        model: an alias this lab has planned with, a Model, or a litellm model string. settings: the factors of a plan
        (decoding, few_shot, tool_choice, wording, …) and sampling parameters. Raises ProviderError where there is no
        answer, and BadOptions for more than one turn.
        """
        case = Case("ask", text, tool_specs(tools), None)
        alias, chosen = self._model(model)
        fresh = bool(settings.pop("fresh", False))
        arm = arm_of(protocol, settings)
        if arm.conversing:
            raise BadOptions("ask asks one question", got=arm.levels["max_turns"], hint="plan and run a conversation")
        completion = self._answer(case, alias, chosen, arm, settings, 0, fresh)
        return read_answer(completion.raw, arm.protocol, case.tools, options, arm.levels["tool_choice"])

    def _model(self, model: Any) -> tuple[str, Model]:
        if isinstance(model, Model):
            return model.name, model
        if model in self.models:
            return model, self.models[model]
        if isinstance(model, str) and "/" in model:
            return next(iter(model_map(model).items()))
        near = difflib.get_close_matches(str(model), self.models, 3, 0.4)
        raise UnknownModel(
            "no model of this name",
            got=model,
            expected=", ".join(self.models) or "a tp.Model, or a litellm model string with its provider/",
            hint=f"did you mean {' or '.join(near)}?" if near else None,
        )

    def _answer(
        self, case: Case, alias: str, model: Model, arm: Arm, settings: Mapping[str, Any], trial: int, fresh: bool
    ) -> Completion:
        params = {k: v for k, v in settings.items() if k not in arm.levels}
        params["seed"] = int(params.get("seed", 0)) + trial
        request = request_for(case, alias, model, arm, params, trial)
        return self._complete_one(request, case, arm, fresh)

    def _complete_one(self, request: Request, case: Case, arm: Arm, fresh: bool) -> Completion:
        item = PlanItem(case.id, request.model_alias, request.key, request.trial, {"arm": arm.name})
        plan = {"ask": case.input_text, "arm": arm.name, "model": request.model_alias}
        known = None if fresh else self.store.get(request.key)
        if known is not None and known.ok:
            return known
        run_id = self.store.begin_run(plan, [item], requests=[request])
        summary: Summary = run_sync(
            run_requests([request], self.store, run_id=run_id, complete=self._complete, fresh=fresh, progress=False)
        )
        answer = self.store.get(request.key)
        if answer is None or not answer.ok:
            kind = answer.error_kind if answer else summary.stopped or "other"
            message = answer.error_message if answer and answer.error_message else "the model gave no answer"
            raise ProviderError(message, kind=str(kind), hint="what was recorded is kept; see lab.runs()")
        return answer

    def _retry(self, trial: Trial, **changes: Any) -> Trial:
        """Asks a trial's model again, with another protocol or other settings, as a new recorded trial of one turn."""
        fresh, protocol = bool(changes.pop("fresh", False)), changes.pop("protocol", trial.prompt_protocol)
        chosen = trial.levels.get("tool_choice", "auto") != "auto"
        made = ("grammar", "seed", "response_format") if chosen else ("grammar", "seed")  # they follow from the arm
        sent = {k: v for k, v in (trial.request.get("params") or {}).items() if k not in made}
        settings = {**sent, **trial.levels, "max_turns": 1, **changes}
        alias, model = self._model(trial.model)
        arm = arm_of(protocol, settings)
        completion = self._answer(trial.case, alias, model, arm, settings, trial.trial, fresh)
        result = read_answer(
            completion.raw, arm.protocol, trial.case.tools, {"coerce": trial.policy}, arm.levels["tool_choice"]
        )
        return Trial.of(
            trial.case, completion, result, run_id=trial.run_id, model=alias, arm=f"{arm.name} retry",
            prompt_protocol=arm.protocol, parse_protocol=arm.protocol, policy=trial.policy, trial=trial.trial,
            asker=self._retry, levels=arm.levels,
        )  # fmt: skip
