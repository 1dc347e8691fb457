"""`Lab`: the façade that notebooks and the command line share.

This is where the runner and the parsers meet: everything below knows only one of the two.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack, overload

from .core.errors import BadOptions
from .core.remote import is_remote
from .core.toolspec import ToolsLike
from .core.types import ParseOptions, ParseResult, Policy
from .evals.cases.loading import CasesLike
from .evals.cases.rows import Errors, Others
from .evals.engines import Engine, Workers
from .experiments.arms import own_protocols
from .experiments.endpoint_check import check_cells
from .experiments.ingest.build import UNREADABLE, ingest
from .experiments.ingest.columns import Settings
from .experiments.models import ModelLike, ModelsLike, model_map
from .experiments.plan import (
    Plan,
    PlanProtocols,
    make_plan,
)
from .experiments.run import HEADLINE, Run
from .experiments.session import Session
from .experiments.stored_run import run_row
from .formats.like import ProtocolLike
from .middleware import CorrectedAnswer
from .middleware.correction import Corrected, CorrectionContext, Feedback
from .middleware.correction.drive import corrected_by
from .middleware.correction.prompt import CorrectionWording, correction_messages
from .middleware.flow import Runnable, asked_of, read_answer, with_recorded
from .middleware.flow.factors import PlanSettings, QuestionSettings, TaskSettings
from .middleware.plans.request import PlanAnswer, plan_messages, read_plan_answer
from .runner.exchange.types import Model
from .runner.ledger import RunLimits
from .runner.loop import run_sync
from .runner.progress import Show
from .runner.store.recording import replay
from .runner.store.store import RunRecord, Store

if TYPE_CHECKING:
    from .evals.frames.recorded import Frame
    from .evals.reparse import ReparseSettings
    from .evals.reports.figures.comparison import ArmComparison
    from .experiments.endpoint_check import Check

Question: TypeAlias = str | Sequence[Mapping[str, Any]]
"""A text, or messages."""
Answers: TypeAlias = "Run | Frame | str | os.PathLike[str] | Sequence[str | os.PathLike[str]]"
"""A run, its id, a trials frame, a Parquet file, a folder of them, or a list of paths."""


class Lab:
    """Experiments over one store.

    Args:
        store: a path (SQLite) or an SQLAlchemy URL. Every answer is recorded there before it is
            parsed. A question that has a recorded answer is not asked again, except with `fresh`.

    >>> import tempfile, toolparse_lab as tp
    >>> lab = tp.Lab(tempfile.mkdtemp() + "/runs.db")
    >>> cases = [{"id": "a", "input": "hi", "tools": [{"name": "f"}], "target": []}]
    >>> models = {"small": tp.Model("toolparse-local/smollm2-135m")}
    >>> plan = lab.plan(cases, models, ["hermes", "morph_xml"], max_tokens=64)
    >>> plan.calls
    2
    """

    def __init__(self, store: str | os.PathLike[str] = "toolparse.db") -> None:
        if not isinstance(store, str | os.PathLike):
            raise BadOptions(
                "a lab keeps its runs in a store",
                got=store,
                expected="a path or an SQLAlchemy URL",
                hint='tp.Lab("runs.db")',
            )
        self.store = Store(os.fspath(store))
        # Models and protocols this lab has seen, for runs that are opened later: a store holds
        # neither credentials nor code.
        self._session = Session(self.store)
        self.models = self._session.models

    def __repr__(self) -> str:
        return f"Lab{repr(self.store).removeprefix('Store')}"

    def __reduce__(self) -> Any:
        return self.store.__reduce__()

    def __enter__(self) -> Lab:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the store. May be called twice."""
        self.store.close()

    # experiments

    def plan(
        self,
        cases: CasesLike,
        models: ModelsLike,
        protocols: PlanProtocols,
        *,
        trials: int = 1,
        seed: int | None = 0,
        stream: bool = False,
        runnable: Runnable | None = None,
        **settings: Unpack[PlanSettings],
    ) -> Plan:
        """Return an experiment with its calls, tokens and cost. Nothing goes out yet.

        Args:
            protocols: ids or protocols; 'native' sends the tools as such, 'model' asks each model
                in the format it writes by its training, see `protocol_for`.
            trials: how often each case is asked.
            seed: base of the seeds and of the order. Each request is sent with seed + trial. None:
                without a seed.
            stream: stream the answers.
            runnable: functions by tool name, for arms with max_turns above 1.
            settings: the factors of `arms.FACTORS`, each a value or a list of levels, and sampling
                parameters. A model's own `params` override them, and a parameter that a model does
                not take is not sent. See `plan.make_plan`.
        """
        plan = make_plan(
            cases,
            models,
            protocols,
            trials=trials,
            seed=seed,
            stream=stream,
            runnable=runnable,
            **settings,
        )
        self.models.update(plan.models)
        self._session.remember(plan.arms)
        return plan

    def run(self, plan: Plan, *, despite_check: bool = False, **limits: Unpack[RunLimits]) -> Run:
        """Ask all questions that have no recorded answer, and return the run.

        Ctrl-C stops cleanly and keeps everything recorded.

        Args:
            despite_check: run native arms whose check has failed.
            limits: max_cost (US dollars), max_calls, deadline (seconds), fresh, max_age (seconds),
                progress and more. See `runner.ledger.RunLimits`.

        A provider's failures are recorded and shown; they do not raise. Raises BadOptions for an
        unknown limit, and BadPlan for a native arm whose latest `check` failed.
        """
        return run_sync(self.arun(plan, despite_check=despite_check, **limits))

    async def arun(
        self, plan: Plan, *, despite_check: bool = False, **limits: Unpack[RunLimits]
    ) -> Run:
        """Do the same as `run`, for async code."""
        return await self._session.run(plan, despite_check=despite_check, **limits)

    def check(
        self,
        models: ModelsLike,
        protocols: PlanProtocols = ("native", "hermes"),
        *,
        stream: bool = False,
    ) -> Check:
        """Ask one canary question per model and protocol, and return a table.

        It shows if the server keeps the raw text, and if the native arm offers tools. Each check
        asks again, and is recorded outside of any run. A cell is 'ok', 'failed' (the endpoint's
        fault) or 'uncertain' (the model did not follow its instructions).

        Args:
            stream: ask for a stream, as a plan may.
        """
        by_alias = model_map(models)
        self.models.update(by_alias)
        complete = self._session.complete
        return check_cells(by_alias, protocols, self.store, complete=complete, stream=stream)

    def replaying(self, source: str | os.PathLike[str] | Store) -> Lab:
        """Return this lab, which now answers only from a recording: no model is called.

        Args:
            source: a path or a store.
        """
        self._session.complete = replay(source)
        return self

    def open(
        self,
        run_id: str = "latest",
        *,
        models: Mapping[str, Model] | None = None,
        runnable: Runnable | None = None,
        protocols: Iterable[ProtocolLike] | None = None,
    ) -> Run:
        """Return a recorded run with every view it had, and a plan that can be run again.

        Args:
            run_id: the whole id, the beginning of one, or "latest".
            models: by alias, to ask more questions: the store has no credentials. Not needed for
                models that this lab has planned with.
            runnable: tools as functions.
            protocols: a list of the protocol objects of the run that are code, which a store cannot
                keep. Those that this lab has used can be left out.

        Raises BadOptions for an unknown run, and BadPlan for models and protocols that are not the
        run's.
        """
        return self._session.open(run_id, models, runnable, protocols)

    def retry(self, run: Run | str, **limits: Unpack[RunLimits]) -> Run:
        """Ask the questions of a run that have no answer, as a new run of the same plan.

        Failures are asked again. Recorded answers stay.

        Args:
            run: a Run, or its id, as for `open`. A complete run is returned as it is.
            limits: as for `run`.
        """
        opened = self.open(run) if isinstance(run, str) else run
        record = self.store.run(opened.run_id)
        is_whole = record.status == "complete" and record.done == record.items
        # Whether a conversation is over depends on the functions that are at hand now.
        conversing = any(arm.conversing for arm in opened.plan.arms)
        if is_whole and not conversing and not limits.get("fresh"):
            return opened
        return self.run(opened.plan, **limits)

    def ingest(
        self,
        source: Any,
        *,
        tools: ToolsLike = None,
        cases: CasesLike | None = None,
        columns: Mapping[str, str | None] | None = None,
        others: Others = "metadata",
        model: str | None = None,
        protocol: ProtocolLike = "auto",
        errors: Errors = "skip",
        split: str | None = None,
        max_rows: int | None = None,
        shape: str | None = None,
        requests: Any = None,
        engine: Engine | None = None,
        workers: int | None = None,
        progress: Show = None,
    ) -> Run:
        """Record outputs from elsewhere as a run, to parse, score and debug.

        Args:
            source: JSONL, JSON, CSV, Parquet, inspect's .eval, .sse dumps, a folder of them, or an
                export of a tracing tool. A store with what a proxy or a recorder has written, or
                its path: each request is a case, its application the metadata `app`. Or a frame,
                rows, texts, response objects of any client or their dicts, the chunks of one
                stream. See `ingest.shapes`.
            tools: the tools of rows that name none, or the path of their JSON.
            cases: the cases that rows answer, by case_id or input. Anything that `load_cases`
                takes.
            columns: what the source calls things, such as ``{"completion_text": "raw", "user":
                None}``. The others are guessed from `ingest.columns`.
            others: what to do with other columns: "metadata", "drop" or "error".
            model: the model of rows that name none.
            protocol: the protocol of rows that name none. A provider's own calls are read as such.
            errors: "skip" leaves bad rows out, says so, and counts them by reason, with lines, in
                `run.plan.cases.skipped`; "raise" reports them all at once. A source without a row
                that can be read is an error. Rows that the store holds are not written again.
            max_rows: refuse a source with more rows (default: no limit, 100,000 for a packed file).
            shape: the shape of all rows, such as langsmith; rows: columns of your own (default:
                known by its keys).
            requests: the requests of a batch whose results are read. These say only `custom_id`.
            engine: processes or serial (default: processes from 50,000 rows on). This process alone
                writes the store.
            workers: processes (default: one a core).
            progress: None shows a bar in a terminal or a notebook, "lines" also prints a line now
                and then elsewhere, False prints nothing. Unless False, the shape of a log, and the
                parts that it has lost, are printed.

        Raises BadCase naming the place, UnreadableInput, BadOptions, UnknownProtocol, BadToolSpec,
        and IncompleteError where a process ended before its rows were read.

        >>> import tempfile, toolparse_lab as tp
        >>> lab = tp.Lab(tempfile.mkdtemp() + "/runs.db")
        >>> output = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'
        >>> rows = [{"output": output, "model": "mine"}]
        >>> run = lab.ingest(rows, tools=[{"name": "f"}], protocol="hermes")
        >>> run.trials()[0].result.calls[0].name
        'f'
        """
        settings = Settings(
            tools=tools,
            cases=cases,
            columns=columns,
            others=others,
            model=model,
            protocol=protocol,
            errors=errors,
            split=split,
            max_rows=max_rows,
            shape=shape,
            requests=requests,
        )
        ingested = ingest(self.store, source, settings, Workers(engine, workers, progress))
        bad = [s for s in ingested.plan.cases.skipped if s.name == UNREADABLE]
        news = [str(ingested.log), *(f"warning: left out: {skipped}" for skipped in bad)]
        if progress is not False and any(news):
            print("\n".join(filter(None, news)), file=sys.stderr)
        self._session.remember(ingested.plan.arms)
        # An output names its model; one of that alias here can be asked again, too.
        models = {
            alias: self.models.get(alias, model) for alias, model in ingested.plan.models.items()
        }
        plan = replace(ingested.plan, models=models)
        asker = partial(self._session.retry, plan)
        return Run(self.store, ingested.run_id, plan, ingested.summary, asker)

    def runs(self) -> list[RunRecord]:
        """Return the runs of this store, newest first."""
        return self.store.runs()[::-1]

    def runs_df(self) -> Frame:
        """Return the runs frame: one row per run of this store, newest first."""
        from .evals.frames.recorded import runs_frame  # pandas is slow to import

        return runs_frame(run_row(record) for record in self.runs())

    def forget_parses(self, run: Run | str | None = None) -> int:
        """Delete the stored parses, and return their size in bytes.

        Answers stay, and are parsed again when a view needs them.

        Args:
            run: a Run, or its id, as for `open`. None: all runs.
        """
        opened = self.open(run) if isinstance(run, str) else run
        return self.store.forget_parses(None if opened is None else opened.run_id)

    @overload
    def reparse(
        self,
        source: Answers,
        protocols: ProtocolLike | Iterable[ProtocolLike] | None = ...,
        policies: Sequence[Policy] | Policy = ...,
        *,
        to: None = ...,
        **settings: Unpack[ReparseSettings],
    ) -> Frame: ...
    @overload
    def reparse(
        self,
        source: Answers,
        protocols: ProtocolLike | Iterable[ProtocolLike] | None = ...,
        policies: Sequence[Policy] | Policy = ...,
        *,
        to: str | os.PathLike[str],
        **settings: Unpack[ReparseSettings],
    ) -> Path: ...
    def reparse(
        self,
        source: Answers,
        protocols: ProtocolLike | Iterable[ProtocolLike] | None = None,
        policies: Sequence[Policy] | Policy = (HEADLINE,),
        *,
        to: str | os.PathLike[str] | None = None,
        **settings: Unpack[ReparseSettings],
    ) -> Frame | Path:
        """Parse recorded answers with every protocol and policy, and return a frame.

        No model is called.

        Args:
            source: a Run or a run's id, a trials frame, a Parquet file, a folder of them, or a list
                of paths.
            protocols: what reads (default: what each prompt asked for). Ids, protocol objects, or
                one of them.
            policies: coercion policies.
            to: a .parquet file to write, whose path is then returned.
            settings: see `toolparse_lab.evals.reparse.ReparseSettings`.

        Raises as `toolparse_lab.evals.reparse.reparse` does.
        """
        # pandas and process pools are slow to import
        from .evals.reparse import reparse, run_answers

        is_file = isinstance(source, str) and (os.path.exists(source) or is_remote(source))
        if isinstance(source, str) and not (is_file or source.endswith(".parquet")):
            source = self.open(source)
        answers: Any = source
        if isinstance(source, Run):
            settings.setdefault("own", own_protocols(source.plan.arms))
            answers = run_answers(source.answers(), len(source.plan.items))
        if to is None:
            return reparse(answers, protocols, policies, **settings)
        return reparse(answers, protocols, policies, to=to, **settings)

    def diff(
        self,
        a: Any,
        b: Any,
        *,
        answers: Any = None,
        within: str | Sequence[str] | None = None,
        policy: Policy | None = None,
        cluster: str | None = None,
    ) -> ArmComparison:
        """Return the comparison of b with a, paired on cases, and the cases that flipped.

        Its frame names the parser and version of each side. `lab.diff(a, b).regression()` gives the
        verdict of each stratum: worse, not worse, or cannot tell.

        Args:
            a, b: each a Run, a run id or a trials frame. Or a parser for the same recorded answers:
                a protocol object, or a function of the raw text (and the tools).
            answers: a Run, a run id or a trials frame for two parsers, by default the latest run.
                Strings are then protocols, and None is the protocol of each prompt. No model is
                called.
            within: the columns to compare within (default: model and arm, without a column in which
                each run has one value and the two differ).
            policy: by default `safe`, or the only one that a frame holds.
            cluster: a column such as conversation_id, whose groups, not cases, are then the unit of
                intervals and p.

        Raises BadOptions if the two have nothing in common, and for anything that is not a reader.

        >>> import tempfile, toolparse_lab as tp
        >>> lab = tp.Lab(tempfile.mkdtemp() + "/runs.db")
        >>> row = {"output": '<tool_call>{"name": "f", "arguments": {}}</tool_call>', "target": []}
        >>> run = lab.ingest([row], tools=[{"name": "f"}], model="mine", protocol="hermes")
        >>> diff = lab.diff("hermes", lambda text: [], answers=run)
        >>> diff.frame[["reader_a", "reader_b"]].values.tolist()
        [['hermes', '<lambda>']]
        """
        from .experiments.reader_diff import diff_sides  # pandas is slow to import

        return diff_sides(
            self.open, a, b, answers=answers, within=within, policy=policy, cluster=cluster
        )

    # one question

    def ask(
        self,
        text: Question,
        tools: ToolsLike = None,
        *,
        model: ModelLike,
        protocol: ProtocolLike = "hermes",
        options: ParseOptions | Mapping[str, Any] | None = None,
        **settings: Unpack[QuestionSettings],
    ) -> ParseResult:
        """Ask one question and return its parsed answer.

        The question is recorded like any other, and asked only if it is new.

        Args:
            model: an alias this lab has planned with, a Model, or a litellm model string.
            settings: the factors of a plan (decoding, few_shot, tool_choice, wording, …) and
                sampling parameters.

        Raises ProviderError if there is no answer, and BadOptions for more than one turn.
        """
        fresh = bool(settings.pop("fresh", False))
        plan = self._session.question(text, tools, model, protocol, settings)
        answer = self._session.completion(plan, fresh)
        arm, case = plan.arms[0], plan.cases[0]
        question = asked_of(answer, case.input)
        choice, reason = arm.levels["tool_choice"], answer.finish_reason
        read = read_answer(
            answer.raw,
            arm.reader,
            case.tools,
            options,
            choice,
            reason,
            request=question,
            reasoning=answer.reasoning or "",
        )
        return with_recorded(read, answer)

    def answer(
        self,
        text: Question,
        tools: ToolsLike = None,
        *,
        model: ModelLike,
        protocol: ProtocolLike = "hermes",
        feedback: Feedback | str | bool | None = True,
        **settings: Unpack[QuestionSettings],
    ) -> CorrectedAnswer:
        """Ask one question, and ask again about calls that the schema refuses.

        Everything is recorded. The calls are in `answer.answer.tool_calls`, and the parse of the
        first answer is `answer.answer.result`. `answer` also counts the corrections.

        Args:
            feedback: a Feedback or the name of one of `correction.PRESETS`. Other arguments and
                errors are those of `ask`.
        """
        plan = self._session.question(text, tools, model, protocol, settings)
        return self._session.corrected(plan, tools, model, feedback, settings)

    def plan_task(
        self,
        text: str,
        tools: ToolsLike,
        *,
        model: ModelLike,
        type_rules: bool = True,
        policy: Policy = HEADLINE,
        **settings: Unpack[TaskSettings],
    ) -> PlanAnswer:
        """Let a model write the plan of a task: tools to call, their arguments and order.

        The question is recorded like any other. Pass `.plan` of the result to `plans.run_plan`.
        `.fault` is the error in a bad plan.

        Args:
            type_rules: whether the prompt says how each type is written.
            policy: of coercion, under which the types of its parameters are judged.
            settings: temperature, `fresh` and sampling parameters.

        Raises ProviderError if there is no answer.
        """
        messages = plan_messages(text, tools, type_rules=type_rules)
        completion = self._session.asked_messages("task", messages, model, settings)
        return read_plan_answer(completion.raw, tools, policy=policy)

    def correction(
        self,
        model: ModelLike,
        *,
        wording: CorrectionWording = "plain",
        **settings: Unpack[TaskSettings],
    ) -> Callable[[CorrectionContext], Corrected]:
        """Return a callback for `run_call` and `run_plan` that asks a model.

        Everything is recorded.

        Args:
            wording: of the correction prompt.
            settings: as for `plan_task`. In a lab that replays, a correction that was never
                recorded ends the call as `not_recorded`.
        """

        def correct(context: CorrectionContext) -> Corrected:
            messages = correction_messages(context, wording)
            completion = self._session.asked_messages("correction", messages, model, settings)
            return corrected_by(completion, context)

        return correct
