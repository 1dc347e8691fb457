"""`Lab`: the façade that notebooks and the command line share. Here the runner and the parsers meet."""

from __future__ import annotations

import asyncio
import difflib
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from . import __version__
from .arms import FACTORS, arm_of, check_names
from .checking import refuse_failed
from .errors import BadOptions, BadPlan, ProviderError, ToolparseError, UnknownModel
from .evals.cases.case import Case
from .evals.cases.rows import Errors, Others
from .evals.scoring.trial import Trial
from .flow import read_answer
from .opening import find_run, run_row, stored_plan, stored_summary
from .plan import Plan, make_plan, model_map, plan_one
from .protocols.base import Protocol
from .rounds import run_rounds
from .run import HEADLINE, Run
from .runner.loop import run_sync
from .runner.store import RunRecord, Store
from .runner.summary import LIMITS
from .runner.types import Model
from .toolspec import tool_specs
from .types import ParseResult, Policy

if TYPE_CHECKING:
    from .check import Check
    from .evals.frames.recorded import Frame
    from .evals.reports.comparison import ArmComparison


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
        return f"Lab{repr(self.store).removeprefix('Store')}"

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

    def run(self, plan: Plan, *, despite_check: bool = False, **limits: Any) -> Run:
        """Asks what is not recorded yet. Ctrl-C stops cleanly and keeps everything recorded.

        limits: max_cost (US dollars), max_calls, deadline (seconds), fresh, max_age (seconds), progress; see
        `runner.pool.run_requests`. Failures of a provider are recorded and shown, they do not raise. Raises BadPlan
        for a native arm of which `check` has shown that it offers no tools, unless `despite_check`.
        """
        return run_sync(self.arun(plan, despite_check=despite_check, **limits))

    async def arun(self, plan: Plan, *, despite_check: bool = False, **limits: Any) -> Run:
        """`run`, for code that is async already."""
        if plan.items and not plan.requests:
            raise BadPlan(
                "there is nothing to ask: these are outputs from elsewhere", got=f"{len(plan.items)} answers",
                hint="plan the same cases with lab.plan(run.plan.cases, models, protocols)",
            )  # fmt: skip
        if self._complete is None and not despite_check:
            await asyncio.get_running_loop().run_in_executor(self.store.writer, refuse_failed, plan, self.store)
        given = {k: limits[k] for k in LIMITS if limits.get(k) is not None}
        told = {**plan.to_dict(), "version": __version__, **({"limits": given} if given else {})}
        begin = partial(self.store.begin_run, told, plan.items, requests=plan.requests)
        run_id = await asyncio.get_running_loop().run_in_executor(self.store.writer, begin)
        limits.setdefault("complete", self._complete)
        try:
            summary = await run_rounds(plan, self.store, run_id, **limits)
        except ToolparseError:
            # Most of these are found before anything is asked, where nobody else says that the run is over.
            with suppress(ToolparseError):
                self.store.finish_run(run_id, "incomplete")
            raise
        return Run(self.store, run_id, plan, summary, partial(self._retry, plan))

    def check(self, models: Any, protocols: Any = ("native", "hermes"), *, stream: bool = False) -> Check:
        """One canary a model and protocol: is the raw text really raw, does the native arm really offer tools.

        Asked anew each time and recorded, but as no run. A cell is 'ok', 'failed', which is the endpoint's doing, or
        'uncertain', where the model did not do as it was told. stream: ask for a stream, as a plan may.
        """
        from .checking import check_cells

        named = model_map(models)
        self.models.update(named)
        return check_cells(named, protocols, self.store, complete=self._complete, stream=stream)

    def replaying(self, source: Any) -> Lab:
        """This lab, answering only from a recording (a path or a store): no model is called."""
        from .runner.recording import replay

        self._complete = replay(source)
        return self

    def open(self, run_id: str = "latest", *, models: Mapping[str, Model] | None = None, runnable: Any = None) -> Run:
        """A recorded run again, with every view it had, and a plan that can be run again.

        run_id: the whole id, the beginning of one, or "latest". models: by alias, for what a store does not hold
        (credentials) where questions are to be asked; models this lab has planned with need not be given. runnable:
        tools as functions. Raises BadOptions for an unknown run, and for models that are not the run's.
        """
        record = find_run(self.store, run_id)
        plan = stored_plan(self.store, record, models, self.models, runnable)
        return Run(self.store, record.run_id, plan, stored_summary(record), partial(self._retry, plan))

    def retry(self, run: Run | str, **limits: Any) -> Run:
        """Asks what a run has no answer to, failures included, as a new run of the same plan; all else is as it was.

        run: a Run, or what `open` takes; one that lacks nothing is given back as it is. limits: as for `run`.
        """
        opened = self.open(run) if isinstance(run, str) else run
        record = self.store.run(opened.run_id)
        # Whether a conversation is over depends on the functions that are at hand now.
        settled = not any(arm.conversing for arm in opened.plan.arms)
        if settled and record.status == "complete" and record.done == record.items and not limits.get("fresh"):
            return opened
        return self.run(opened.plan, **limits)

    def ingest(
        self,
        source: Any,
        *,
        tools: Any = None,
        cases: Any = None,
        columns: Mapping[str, str | None] | None = None,
        others: Others = "metadata",
        model: str | None = None,
        protocol: Any = "auto",
        errors: Errors = "raise",
        split: str | None = None,
        progress: bool | None = None,
    ) -> Run:
        """Recorded outputs from elsewhere as a run, which is parsed, scored and debugged like any other.

        source: a path (JSONL, a JSON array, CSV, Parquet, .sse dumps or a folder of them), a frame, rows, texts,
        response objects of any client or their dicts, the chunks of one stream. tools: for rows that name none. cases:
        what `load_cases` takes; rows then say by `case_id` or `input` which they answer. columns: what the source calls
        things, ``{"completion_text": "raw", "user": None}``; what is not said is guessed from `ingest.names`. others:
        what becomes of other columns: "metadata", "drop" or "error". model, protocol: for rows that name none; a
        provider's own calls are read as such. errors: "raise" tells all bad rows at once, "skip" counts them in
        `run.plan.cases.skipped`. Rows that the store holds already are not written again. progress: None shows it
        where somebody can see it.

        Raises BadCase naming the place, UnreadableInput, BadOptions, UnknownProtocol and BadToolSpec.

        >>> import tempfile, toolparse_lab as tp
        >>> lab = tp.Lab(tempfile.mkdtemp() + "/runs.db")
        >>> rows = [{"output": '<tool_call>{"name": "f", "arguments": {}}</tool_call>', "model": "mine"}]
        >>> lab.ingest(rows, tools=[{"name": "f"}], protocol="hermes").trials()[0].result.calls[0].name
        'f'
        """
        from .ingest import ingest

        found = ingest(
            self.store, source, tools=tools, cases=cases, columns=columns, others=others, model=model,
            protocol=protocol, errors=errors, split=split, progress=progress,
        )  # fmt: skip
        known = {alias: self.models.get(alias, model) for alias, model in found.plan.models.items()}
        plan = replace(found.plan, models=known)
        return Run(self.store, found.run_id, plan, found.summary, partial(self._retry, plan))

    def runs(self) -> list[RunRecord]:
        """The runs of this store, newest first."""
        return self.store.runs()[::-1]

    def runs_df(self) -> Frame:
        """The runs frame: one row a run of this store, newest first."""
        from .evals.frames.recorded import runs_frame

        return runs_frame(run_row(record) for record in self.runs())

    def reparse(
        self,
        source: Any,
        protocols: Sequence[str | Protocol] | str | Protocol | None = None,
        policies: Sequence[Policy] | Policy = (HEADLINE,),
        **how: Any,
    ) -> Any:
        """Recorded answers read again by every protocol under every policy, as a trials frame; no model is called.

        source: a Run or a run's id, a trials frame, a Parquet file, a folder of them, or a list of paths. protocols:
        None for the one that each prompt asked for. how: `engine` ("processes", "serial" or "dask"), `workers`,
        `client`, `options`, `to` (Parquet to write, whose path is then given back), `overwrite`, `batch_rows` and
        `progress`; see `toolparse_lab.reparse.reparse`, whose errors it raises.
        """
        from .reparse import reparse, run_answers

        if isinstance(source, str) and not (os.path.exists(source) or source.endswith(".parquet")):
            source = self.open(source)
        if isinstance(source, Run):
            source = run_answers(source.answers(), len(source.plan.items))
        return reparse(source, protocols, policies, **how)

    def diff(
        self, a: Any, b: Any, *, within: str | Sequence[str] | None = None, policy: Policy | None = None
    ) -> ArmComparison:
        """Run b against run a, paired on cases, each a Run, a run id or a trials frame; what flipped is listed.

        within: the columns to hold fixed (default: model and arm, less what each run has one value of its own in).
        policy: by default `safe`, or the only one that a frame holds. `lab.diff(a, b).regression()` says whether
        anything has become worse. Raises BadOptions where the two have nothing in common.
        """
        from .evals.reports.run_diff import compare_runs

        runs = [self.open(x) if isinstance(x, str) else x for x in (a, b)]
        frames = [x.frame(policies=(policy or HEADLINE,)) if isinstance(x, Run) else x for x in runs]
        openers = (runs[0].trial, runs[1].trial) if all(isinstance(x, Run) for x in runs) else None
        return compare_runs(frames[0], frames[1], within=within, policy=policy, openers=openers)

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
        alias, chosen = self._model(model)
        fresh = bool(settings.pop("fresh", False))
        check_names(settings, chosen.params or ())
        arm = arm_of(protocol, settings)
        if arm.conversing:
            raise BadOptions("ask asks one question", got=arm.levels["max_turns"], hint="plan and run a conversation")
        case = Case("ask", text, tool_specs(tools), None)
        plan = plan_one(case, alias, chosen, arm, _params(settings), seed=int(settings.get("seed", 0)))
        known = None if fresh else self.store.get(plan.items[0].key)
        if known is None or not known.ok:
            known = self._asked(plan, fresh).completion
        raw = known.raw if known else ""
        return read_answer(raw, arm.protocol, case.tools, options, arm.levels["tool_choice"])

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

    def _asked(self, plan: Plan, fresh: bool, policy: Policy = HEADLINE) -> Trial:
        """The one trial of a plan; raises ProviderError where its first question has no answer."""
        run = self.run(plan, despite_check=True, fresh=fresh, progress=False)
        trial: Trial = run.trials(policies=(policy,))[0]
        answer = trial.completion
        if answer is None or not answer.ok:
            kind = answer.error_kind if answer else run.summary.stopped if run.summary else None
            message = answer.error_message if answer and answer.error_message else "the model gave no answer"
            raise ProviderError(message, kind=str(kind or "other"), hint="what was recorded is kept; see lab.runs()")
        return trial

    def _retry(self, plan: Plan, trial: Trial, **changes: Any) -> Trial:
        """Asks a trial's model again, with another protocol or other settings, as a new recorded trial: all turns of a
        conversation."""
        fresh, protocol = bool(changes.pop("fresh", False)), changes.pop("protocol", trial.prompt_protocol)
        if protocol == "auto":
            raise BadOptions(
                "nobody knows what this model was told to write", got=trial.trial_id, hint="retry(protocol=...)"
            )
        check_names(changes, (*plan.params, *(plan.models[trial.model].params or ())))
        settings = {**plan.params, **trial.levels, **changes}
        arm = arm_of(protocol, settings)
        one = plan_one(
            trial.case, trial.model, plan.models[trial.model], replace(arm, name=f"{arm.name} retry"),
            _params(settings), seed=int(settings.get("seed", plan.seed)), trial=trial.trial, stream=plan.stream,
            runnable=plan.runnable,
        )  # fmt: skip
        return self._asked(one, fresh, trial.policy)


def _params(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in settings.items() if k not in FACTORS and k != "seed"}
