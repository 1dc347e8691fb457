"""Answers from elsewhere as a recorded run: completions in the store, and a plan made from the
rows.

How it works. Rows come one by one and in any order, and what they say of one case or one arm is put
together as it comes. The last row may be the one that is refused, and a source that is refused
leaves the store as it was: so answers are put aside, `_BATCH` at a time and without credentials, in
a file that has no name, and are recorded once all rows are read. Only their keys, cases and plan
items stay in memory. A key is made of the answer itself, so that the same row read twice is one
answer, and a second ingestion of a log records nothing new.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, nullcontext
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from ... import __version__
from ...core.errors import BadCase, BadOptions, StoreError, UnreadableInput
from ...core.values import write_canonical
from ...evals.cases.case import Case
from ...evals.cases.collection import Cases, Skipped
from ...evals.cases.loading import load_cases
from ...evals.cases.row_files import RowSource, has_more_lines, is_packed
from ...evals.cases.rows import BadRows, Errors, Others
from ...runner.exchange.redaction import redact, redact_named, redact_strings, secrets_in
from ...runner.exchange.summary import Summary
from ...runner.exchange.types import Chunk, Completion, Held, Model, PlanItem
from ...runner.progress import Progress, Show
from ...runner.store.batches import batches
from ...runner.store.store import Store
from ..arms import Arm, prompt_protocol
from ..plan import Plan
from .answers import facts_of
from .rows import Observed, RowReader, question_id, tools_digest
from .shapes import CONVERSATION, Log, requests_by_id, shaped
from .sources import answers_of

_VERSION = 1  # of the keys; another one makes old rows new answers
_BATCH = 500  # answers in one transaction, and at a time in memory as objects
_IN_MEMORY = 16 << 20  # bytes of answers that wait for the last row, before they go to a file
_PER_STEP = 2000  # rows from one word of progress to the next
MAX_PACKED_ROWS = 100_000
"""Rows that are read of a packed file if nobody says how many: a small one can hold any number."""


@dataclass(frozen=True, slots=True)
class Ingested:
    """The outcome of a source: a run in the store."""

    run_id: str
    plan: Plan
    summary: Summary
    log: Log


def ingest(
    store: Store,
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
    max_rows: int | None = None,
    shape: str | None = None,
    requests: Any = None,
    progress: Show = None,
) -> Ingested:
    """Record the answers of a source, without asking anybody. See `Lab.ingest`.

    Raises BadCase and BadOptions for rows and columns that cannot be read. The store is then as it
    was before.
    """
    start = time.monotonic()
    if max_rows is not None and (isinstance(max_rows, bool) or max_rows < 1):
        raise BadOptions("max_rows is the most rows that are read", got=max_rows, expected=">= 1")
    rows = _at_most(answers_of(source, split=split), source, max_rows)
    log = Log(rows.name, {} if requests is None else requests_by_id(requests))
    # Whose columns are mapped has said what they are.
    if shape is not None or not columns:
        rows = shaped(rows, log, shape)
    reader = RowReader(
        rows, tools=tools, columns=columns, others=others, model=model, protocol=protocol
    )
    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as aside:
        building = _Building(store, None if cases is None else load_cases(cases), aside)
        bad = BadRows(rows, errors)
        _read_rows(rows, reader, building, bad, progress)
        left_out = []
        if bad.count:
            left_out = [Skipped("rows that cannot be read", bad.count, bad.first_message or "")]
        left_out += [
            Skipped(f"column {column}", n, "it has the name of a credential")
            for column, n in reader.names.secrets.items()
        ]
        if reader.targets_in_words:
            why = "they are no JSON: kept as metadata_target, and their rows are not graded"
            left_out.append(Skipped("targets", reader.targets_in_words, why))
        left_out += [Skipped(what, n, why) for (what, why), n in log.left_out.items()]
        plan = building.plan(rows, left_out, log)
        building.record(progress)
    summary = building.summary
    summary.seconds = time.monotonic() - start
    run_id = _record_run(store, plan, summary, log)
    return Ingested(run_id, plan, summary, log)


def _at_most(rows: RowSource, source: Any, most: int | None) -> RowSource:
    # None: no limit, but for a packed file. Lines of a file are counted before anything is read, so
    # that a refused one is refused at once.
    file = Path(source) if isinstance(source, (str, Path)) and Path(rows.name).is_file() else None
    if most is None:
        if file is None or not is_packed(file):
            return rows
        most = MAX_PACKED_ROWS
    too_many = UnreadableInput(
        "the source has more rows than are read",
        got=f"{rows.name}: more than {most:,}",
        expected=f"at most {most:,} rows",
        hint=f"max_rows={10 * most} reads more",
    )
    # A cell of CSV may have line breaks, and JSON or Parquet has no lines to count.
    if file is not None and ".jsonl" in file.name.lower() and has_more_lines(file, most):
        raise too_many

    def limited() -> Iterator[tuple[int | None, Any]]:
        for count, row in enumerate(rows.rows, 1):
            if count > most:
                raise too_many
            yield row

    return replace(rows, rows=limited())


def _read_rows(
    rows: RowSource, reader: RowReader, building: _Building, bad: BadRows, progress: Show
) -> None:
    # Raises if no row can be read.
    count = 0
    with ExitStack() as stack:
        bar: Progress | None = None
        for line, row in rows.rows:
            count += 1
            try:
                for observed in reader.read(line, row):
                    building.add(observed, rows)
            except BadCase as e:
                bad.add(e)
            # Most logs are read before anybody wonders, so the bar comes late.
            if count % _PER_STEP == 0:
                bar = bar or stack.enter_context(Progress(None, show=progress, unit="row"))
                bar.advance(_PER_STEP)
        building.flush()
    bad.end(count)
    # Only after all rows can it be said that none has a column.
    if unseen := reader.names.unseen:
        raise rows.bad(
            "no row has this column, which is mapped",
            column=unseen[0],
            got=unseen[0],
            hint="columns= maps a name of your source to one of ours: {'completion': 'raw'}",
        )
    if not building.items:
        # The first unreadable row says most of why there is no answer.
        reason = bad.first_message
        raise rows.bad(
            "there are no answers in it", got=reason, expected="at least one row that can be read"
        )


class _Building:
    # A run while its rows come in. cases: those the rows answer; None makes cases of the rows.
    def __init__(self, store: Store, cases: Cases | None, aside: IO[bytes]) -> None:
        # aside: an empty file for the answers until they are recorded in the store.
        self.items: list[PlanItem] = []
        self.summary = Summary()
        self._store = store
        self._aside = aside
        # Cases that the caller gave, by id, and the id by an input that only one of them has.
        self._known = None if cases is None else {case.id: case for case in cases}
        inputs = Counter(case.input_text for case in cases or ())
        self._by_input = {c.input_text: c.id for c in cases or () if inputs[c.input_text] == 1}
        self._now = datetime.now(UTC).isoformat(timespec="milliseconds")
        self._cases: dict[str, Case] = {}
        # What makes an arm -> the arm and its levels; and each name's first owner.
        self._arms: dict[tuple[str, str, str], tuple[Arm, dict[str, Any]]] = {}
        self._arm_names: dict[str, tuple[str, str, str]] = {}
        self._models: dict[str, Model] = {}
        # Case, model and arm -> the next number of a trial; with that number -> the answer's key.
        self._trials: Counter[tuple[str, str, str]] = Counter()
        self._keys: dict[tuple[str, str, str, int], str] = {}
        self._varying: Counter[str] = Counter()
        self._copies = 0
        self._waiting: dict[str, tuple[Observed, int]] = {}

    def add(self, observed: Observed, source: RowSource) -> None:
        # A second row of the same answer counts as a copy and adds nothing.
        case = self._case(observed, source)
        arm, levels = self._arm(observed)
        cell = (case.id, observed.model, arm.name)
        trial = self._trials[cell] if observed.trial is None else observed.trial
        key = _key(observed, case.id, arm, trial)
        place = (*cell, trial)
        if place in self._keys:
            if self._keys[place] != key:
                raise source.bad(
                    f"trial {trial} of case {case.id!r} with this model and arm is there already, "
                    "with another answer",
                    observed.line,
                    got=observed.captured.raw[:120],
                    hint="leave the column trial out to have repeated answers counted, or name "
                    "what differs in arm",
                )
            self._copies += 1
            return
        self._keys[place] = key
        self._trials[cell] = max(self._trials[cell], trial + 1)
        self._models.setdefault(observed.model, Model(observed.model))
        self.items.append(PlanItem(case.id, observed.model, key, trial, levels))
        self._waiting[key] = observed, trial
        if len(self._waiting) >= _BATCH:
            self.flush()

    def flush(self) -> None:
        # The waiting answers that the store does not have go aside, at every batch and after the
        # last row.
        stored = self._store.done_keys(self._waiting)
        new = []
        for key, (observed, trial) in self._waiting.items():
            # A failure is not done, but it is there; it is not recorded a second time.
            if key not in stored and observed.error and self._store.get(key) is not None:
                stored.add(key)
            if key not in stored:
                new.append(_completion(observed, key, trial, self._now))
        self._waiting.clear()
        self.summary.planned += len(stored)
        self.summary.cached += len(stored)
        try:
            # The environment is looked through for credentials once for all of them.
            bodies = redact_strings([[c.request, c.response] for c in new])
            for completion, (request, response) in zip(new, bodies, strict=True):
                completion = replace(completion, request=request, response=response or None)
                # What is not JSON becomes its text, as in the store.
                self._aside.write(json.dumps(completion.to_dict(), default=str).encode() + b"\n")
            self._aside.flush()
        except OSError as e:
            raise StoreError(
                "there is no room for the answers until all of them are read; none is recorded",
                got=str(e),
                hint="free some space, or name another folder in TMPDIR",
            ) from None

    def record(self, progress: Show = None) -> None:
        self._aside.seek(0)
        new = len(self.items) - self.summary.cached
        # As while rows are read: few answers are written before anybody wonders.
        bar = Progress(new, show=progress, unit="answer") if new > _PER_STEP else None
        with bar or nullcontext():
            for lines in batches(self._aside, _BATCH):
                self._record([Completion.from_json(line.decode()) for line in lines])
                if bar is not None:
                    bar.advance(len(lines))

    def _record(self, completions: list[Completion]) -> None:
        # Without what others have recorded of the same log meanwhile.
        stored = self._store.done_keys(c.key for c in completions)
        new = [c for c in completions if c.key not in stored]
        self._store.record_many(new)
        failed = Counter(str(c.error_kind) for c in new if not c.ok)
        self.summary.planned += len(stored) + len(new)
        self.summary.cached += len(stored)
        self.summary.failures.update(failed)
        self.summary.failed += failed.total()
        self.summary.done += len(new) - failed.total()

    def _case(self, observed: Observed, source: RowSource) -> Case:
        # The caller's cases are taken as they are. Others grow by the members that each row adds.
        case = observed.case
        if self._known is not None:
            # A row's id goes before its input.
            id = case.id if case.id in self._known else self._by_input.get(case.input_text)
            if id is None:
                raise source.bad(
                    "there is no such case",
                    observed.line,
                    "case_id",
                    got=case.id,
                    expected="the id of one of the cases given, or the input of just one",
                )
            return self._cases.setdefault(id, self._known[id])
        before = self._cases.get(case.id)
        if (
            before is not None
            and before.input_text != case.input_text
            and case.id == question_id(case)
        ):
            case = replace(case, id=question_id(case, digits=32))
            observed = replace(observed, case=case)
            before = self._cases.get(case.id)
        if before is not None:
            case = self._merged(before, observed, source)
        self._cases[case.id] = case
        return case

    def _merged(self, before: Case, observed: Observed, source: RowSource) -> Case:
        # Only metadata may differ from row to row.
        case = observed.case
        changes: dict[str, Any] = {}
        for name in ("input", "tools", "target"):
            old, new = getattr(before, name), getattr(case, name)
            # Tools may come from the caller, for a row that has no column of them.
            says_it = name in observed.columns or (name == "tools" and new)
            if old == new or not says_it:
                continue
            if old not in ("", (), None):
                raise source.bad(
                    f"case {case.id!r} has another {name} in a row before",
                    observed.line,
                    name,
                    got=str(new)[:120],
                    expected=str(old)[:120],
                    hint="give the cases by cases=, or another case_id",
                )
            changes[name] = new
        if case.metadata != before.metadata:
            # What differs between the rows of a case belongs to the rows, and is left out. A name
            # that only one of them has does not vary: rows need not repeat all that is the same.
            self._varying.update(
                name
                for name, value in case.metadata.items()
                if before.metadata.get(name, value) != value
            )
            changes["metadata"] = {**case.metadata, **before.metadata}
        return replace(before, **changes) if changes else before

    def _arm(self, observed: Observed) -> tuple[Arm, dict[str, Any]]:
        # Rows of one name, protocol and choice share one. The levels are shared by all its items,
        # so they are made once.
        choice = observed.tool_choice
        if not isinstance(choice, str):
            choice = write_canonical(choice)
        protocol = prompt_protocol(observed.protocol)
        identity = (observed.arm, protocol, choice)
        arm = self._arms.get(identity)
        if arm is not None:
            return arm
        name = observed.arm
        if self._arm_names.setdefault(name, identity) != identity:
            # One name for two ways of asking: it says the difference then. The usual tool choice
            # says nothing, and a name may be that of its protocol.
            name = " ".join(dict.fromkeys(word for word in identity if word != "auto"))

        levels = {"max_turns": 1, "tool_choice": observed.tool_choice}
        row_levels = {"arm": name, "prompt_protocol": protocol, **levels}
        self._arms[identity] = Arm(observed.protocol, levels, name), row_levels
        return self._arms[identity]

    def plan(self, source: RowSource, left_out: list[Skipped], log: Log) -> Plan:
        # What asking for all of this would have been. Nothing in it can be asked: the answers are
        # there. Complete only after the last row.
        skipped = list(left_out)
        if self._copies:
            skipped.append(Skipped("copies", self._copies, "the same answer is in an earlier row"))
        for name, n in sorted(self._varying.items()):
            why = "it differs between the rows of one case"
            skipped.append(Skipped(f"metadata {name}", n, why))
        cluster = f"metadata_{CONVERSATION}" if log.conversations else ""
        if CONVERSATION in self._varying:
            cluster = ""
        # Without the metadata that belongs to rows, and without credentials, for which the
        # environment is looked through once for all cases.
        cases = list(self._cases.values())
        members = [
            [case.input, {k: v for k, v in case.metadata.items() if k not in self._varying}]
            for case in cases
        ]
        clean = [
            replace(case, input=input, metadata=metadata)
            for case, (input, metadata) in zip(cases, redact_strings(members), strict=True)
        ]
        return Plan(
            Cases(clean, source.name, skipped),
            self._models,
            tuple(arm for arm, _ in self._arms.values()),
            max(self._trials.values()),
            tuple(self.items),
            Held(()),
            cluster=cluster,
        )


def _completion(observed: Observed, key: str, trial: int, now: str) -> Completion:
    # now: the time of an answer that has none. trial: becomes part of the request.
    captured = observed.captured
    kind, message = observed.error or (None, None)
    response = {
        **facts_of(captured, unlifted=observed.unlifted),
        "arguments_text": "lost" if observed.arguments_lost else None,
    }
    return Completion(
        key=key,
        raw=captured.raw,
        status="ok" if kind is None else "error",
        error_kind=kind,
        error_message=None if message is None else redact(message, secrets_in(observed.request)),
        finish_reason=captured.finish_reason,
        chunks=tuple(Chunk(0.0, text, part) for part, text in captured.chunks),
        reasoning=captured.reasoning,
        endpoint_kind=observed.endpoint_kind,
        fidelity=captured.fidelity,
        stream=captured.stream,
        cut=kind == "cut_stream",
        system_fingerprint=captured.system_fingerprint,
        created=observed.created or now,
        request=_request(observed, trial),
        response={name: value for name, value in response.items() if value is not None},
        **observed.numbers,
    )


def _request(observed: Observed, trial: int) -> dict[str, Any]:
    # Parameters with the name of a credential are removed here, credentials inside of strings when
    # the batch is written.
    body = observed.request
    if body is None:
        return {}
    params = {k: v for k, v in body.items() if k not in ("model", "messages", "tools")}
    request = {
        "model": {"name": body.get("model") or observed.model},
        "model_alias": observed.model,
        "messages": body.get("messages") or [],
        "params": redact_named(params),
        "trial": trial,
    }
    if body.get("tools"):
        request["tools"] = body["tools"]
    # A log that names its keys may have them in its texts as well.
    secrets = secrets_in(params)
    redacted: dict[str, Any] = redact_strings(request, secrets) if secrets else request
    return redacted


def _key(observed: Observed, case_id: str, arm: Arm, trial: int) -> str:
    # The same for the same answer to the same case, whenever and wherever it is read in again.
    # Equal answers of two trials are two answers.
    captured = observed.captured
    choice = arm.levels["tool_choice"]
    subject = [
        "ingested",
        _VERSION,
        case_id,
        observed.model,
        arm.name,
        arm.prompt_protocol,
        choice,
        trial,
        captured.raw,
        captured.reasoning,
        observed.endpoint_kind,
        observed.error,
        captured.finish_reason,
    ]
    return hashlib.sha256(json.dumps(subject, ensure_ascii=True).encode()).hexdigest()


def _record_run(store: Store, plan: Plan, summary: Summary, log: Log) -> str:
    # The id is the same for the same rows and cases, which count in their order; the name of the
    # source does not. A run that is there already is only finished again.
    digest = hashlib.sha256()
    for item in plan.items:
        digest.update(f"{item.key}\n{json.dumps([item.case_id, item.model])}\n".encode())
    for case in plan.cases:
        members = [case.id, case.input, tools_digest(case.tools), case.target, case.metadata]
        digest.update(write_canonical(members).encode("utf-8", "surrogatepass"))
    run_id = f"ingested-{digest.hexdigest()[:16]}"
    summary.run_id = run_id
    try:
        store.items(run_id)
    except BadOptions:
        skipped = [asdict(s) for s in plan.cases.skipped]
        record = {
            **plan.to_dict(),
            "version": __version__,
            "ingested": {
                "source": plan.cases.source,
                "skipped": skipped,
                **log.to_dict(),
                "cluster": plan.cluster,
            },
        }
        store.begin_run(record, plan.items, run_id=run_id)
    status = "complete" if summary.complete else "incomplete"
    store.finish_run(run_id, status, summary.to_dict())
    return run_id
