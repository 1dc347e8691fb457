"""Answers from elsewhere as a recorded run: completions in the store, and a plan made from the
rows.

How it works. Rows come in any order, read by `pieces`, and what they say of one case or one arm is
put together as it comes. The last row may be the one that is refused, and a source that is refused
leaves the store as it was: so answers are put aside, `_BATCH` at a time, without credentials and as
rows of the store, in a file that has no name, and are recorded once all rows are read. Only their
keys, cases and plan items stay in memory. A key is made of the whole row, so that the same log read
twice is recorded once, and rows that differ in anything (a time, a count, a column of their own)
are answers of their own, though their texts are equal.
"""

from __future__ import annotations

import gc
import hashlib
import json
import pickle
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from typing import IO, Any

from ... import __version__
from ...core.errors import BadCase, BadOptions, StoreError
from ...core.values import write_canonical
from ...evals.cases.case import Case
from ...evals.cases.collection import Cases, Skipped
from ...evals.cases.loading import load_cases
from ...evals.cases.row_files import JsonLines
from ...evals.cases.rows import BadRows
from ...evals.engines import Workers
from ...runner.exchange.redaction import redact_strings
from ...runner.exchange.summary import Summary
from ...runner.exchange.types import Held, Model, PlanItem
from ...runner.progress import Progress, Show
from ...runner.store.rows import COMPLETION_ROW, pack_json, unpack, unpack_json
from ...runner.store.store import Store
from ..arms import Arm
from ..plan import Plan
from .columns import Settings
from .exchanges import exchanges_of, is_store
from .pieces import Answer, Numbered, PieceReader, Setup, read_pieces, unpickled
from .rows import question_id, resolved, tools_digest
from .shapes import CONVERSATION, Log, requests_by_id
from .sources import answers_of

UNREADABLE = "rows that cannot be read"
_VERSION = 2  # of the keys; another one makes old rows new answers
_LOOKED_AT = 20  # cases, for what the columns of a log may mean
_BATCH = 1000  # answers in one transaction, and at a time in memory as objects
_IN_MEMORY = 16 << 20  # bytes of answers that wait for the last row, before they go to a file
_PER_STEP = 2000  # rows from one word of progress to the next
_RAW = COMPLETION_ROW[1:].index("raw")  # of an answer's row, whose key is not there yet
_STATUS, _ERROR_KIND = map(COMPLETION_ROW.index, ("status", "error_kind"))


@dataclass(frozen=True, slots=True)
class Ingested:
    """The outcome of a source: a run in the store."""

    run_id: str
    plan: Plan
    summary: Summary
    log: Log


def ingest(store: Store, source: Any, settings: Settings, workers: Workers) -> Ingested:
    """Record the answers of a source, without asking anybody. See `Lab.ingest`.

    Raises BadCase and BadOptions for rows and columns that cannot be read. The store is then as it
    was before.
    """
    start = time.monotonic()
    if is_store(source):
        rows = exchanges_of(source, settings)
    else:
        rows = answers_of(source, split=settings.split)
    # A file is closed at once where an error or Ctrl-C ends it.
    lines = rows.rows.texts if isinstance(rows.rows, JsonLines) else rows.rows
    ended = closing(lines) if isinstance(lines, Generator) else nullcontext()
    setup, numbered = Setup.of(rows, settings)
    requests = {} if settings.requests is None else requests_by_id(settings.requests)
    reader = PieceReader(setup, requests)
    with ended, tempfile.SpooledTemporaryFile(_IN_MEMORY) as aside:
        known = None if settings.cases is None else load_cases(settings.cases)
        building = _Building(store, known, aside, reader)
        bad = BadRows(setup.source, settings.errors)
        _read_rows(numbered, reader, building, bad, workers)
        log = reader.log
        left_out = [Skipped(what, n, why) for (what, why), n in log.left_out.items()]
        left_out[:0] = [
            Skipped(UNREADABLE, n, ": ".join(filter(None, (places, why))))
            for why, (n, places) in bad.by_reason().items()
        ]
        plan = building.plan(left_out, log)
        building.record(workers.progress)
    summary = building.summary
    del building  # what it knows of each row takes more memory than the plan
    summary.seconds = time.monotonic() - start
    run_id = _record_run(store, plan, summary, log)
    return Ingested(run_id, plan, summary, log)


def _read_rows(
    numbered: Iterator[Numbered],
    reader: PieceReader,
    building: _Building,
    bad: BadRows,
    workers: Workers,
) -> None:
    # Raises if no row can be read.
    rows = reader.rows.source
    count = 0
    with ExitStack() as stack:
        bar: Progress | None = None
        settle = stack.enter_context(_settling())
        pieces = stack.enter_context(closing(read_pieces(reader, numbered, workers)))
        for readings in pieces:
            settle()
            for answers in readings:
                try:
                    for answer in answers:
                        building.add(answer)
                except BadCase as e:
                    bad.add(e)
                # Most logs are read before anybody wonders, so the bar comes late.
                count += 1
                if count % _PER_STEP == 0:
                    show = workers.progress
                    bar = bar or stack.enter_context(Progress(None, show=show, unit="row"))
                    bar.advance(_PER_STEP)
        building.flush()
    bad.end(count, found=bool(building.items))
    # Only after all rows can it be said that none has a column.
    if unseen := reader.rows.names.awaited - reader.log.seen:
        column = min(unseen)
        raise rows.bad(
            "no row has this column, which is mapped",
            column=column,
            got=column,
            hint="columns= maps a name of your source to one of ours: {'completion': 'raw'}",
        )
    if not building.items:
        raise rows.bad("there are no answers in it", expected="at least one row that can be read")


@contextmanager
def _settling() -> Iterator[Callable[[], None]]:
    # What is read stays to the end, and the collector would look at all of it again and again. Each
    # call takes what is there out of its sight. Whoever has done so before does not want it back.
    if gc.get_freeze_count():
        yield lambda: None
        return
    try:
        yield gc.freeze
    finally:
        gc.unfreeze()


class _Building:
    # A run while its rows come in. cases: those the rows answer; None makes cases of the rows.
    def __init__(
        self, store: Store, cases: Cases | None, aside: IO[bytes], reader: PieceReader
    ) -> None:
        # aside: an empty file for the answers until they are recorded in the store.
        self.items: list[PlanItem] = []
        self.summary = Summary()
        self._store = store
        self._aside = aside
        self._batches = 0  # of answers in it
        self._reader = reader
        self._source = reader.rows.source
        self._newest = store.newest_row()  # that is not of others who record at the same time
        self._was_empty = store.ends_with(0)
        self._protocols: dict[str | None, Any] = {None: reader.rows.protocol}
        # Cases that the caller gave, by id, and the id by an input that only one of them has.
        self._known = None if cases is None else {case.id: case for case in cases}
        inputs = Counter(case.input_text for case in cases or ())
        self._by_input = {c.input_text: c.id for c in cases or () if inputs[c.input_text] == 1}
        self._cases: dict[str, Case] = {}
        # The id of a case -> the id in the log, of which there are several.
        self._shared: dict[str, str] = {}
        # What makes an arm -> the arm and its levels; and each name's first owner.
        self._arms: dict[tuple[str, str, str], tuple[Arm, dict[str, Any]]] = {}
        self._arm_names: dict[str, tuple[str, str, str]] = {}
        self._models: dict[str, Model] = {}
        # Case, model and arm -> the next number of a trial; with that number -> the answer's key,
        # from the first row on that names its trial.
        self._trials: Counter[tuple[str, str, str]] = Counter()
        self._keys: dict[tuple[str, str, str, int], str] | None = None
        self._varying: Counter[str] = Counter()
        self._copies = 0
        # The key of an answer with an id of its own, as if it were the only trial -> its line.
        self._named: dict[str, int | None] = {}
        self._waiting: dict[str, tuple[Answer, int]] = {}

    def add(self, answer: Answer | BadCase) -> None:
        # A second row of the same answer counts as a copy and adds nothing.
        if isinstance(answer, BadCase):
            raise answer
        case = self._case(answer)
        arm, levels = self._arm(answer)
        cell = (case.id, answer.model, arm.name)
        if answer.trial is None and answer.named:
            # Choices of one row have its id in common.
            whole = f"{_key(answer, case.id, arm, 0)} {answer.told} {answer.arm}"
            line = self._named.setdefault(whole, answer.line)
            if line != answer.line:
                self._copies += 1
                return
        trial = self._trials[cell] if answer.trial is None else answer.trial
        key = _key(answer, case.id, arm, trial)
        place = (*cell, trial)
        if self._keys is None and answer.trial is not None:
            self._keys = {(i.case_id, i.model, i.arm["arm"], i.trial): i.key for i in self.items}
        if self._keys is not None and place in self._keys:
            if self._keys[place] != key:
                raise self._source.bad(
                    "this trial of its case, model and arm is there already, in a row that "
                    "differs from this one",
                    answer.line,
                    got=f"trial {trial} of {case.id}: {unpack(unpickled(answer.row)[_RAW])[:120]}",
                    hint="leave the column trial out to have repeated answers counted, or name "
                    "what differs in arm",
                )
            self._copies += 1
            return
        if self._keys is not None:
            self._keys[place] = key
        self._trials[cell] = max(self._trials[cell], trial + 1)
        if answer.model not in self._models:
            self._models[answer.model] = Model(answer.model)
        self.items.append(PlanItem(case.id, answer.model, key, trial, levels))
        self._waiting[key] = answer, trial
        if len(self._waiting) >= _BATCH:
            self.flush()

    def flush(self) -> None:
        # The waiting answers that the store does not have go aside, at every batch and after the
        # last row.
        stored = set() if self._was_empty else self._store.done_keys(self._waiting)
        new = []
        for key, (answer, trial) in self._waiting.items():
            # A failure is not done, but it is there; it is not recorded a second time.
            failed = answer.error_kind and not self._was_empty and key not in stored
            if failed and self._store.get(key) is not None:
                stored.add(key)
            if key not in stored:
                new.append((key, answer.row, _request(answer, trial)))
        self._waiting.clear()
        self.summary.planned += len(stored)
        self.summary.cached += len(stored)
        try:
            self._aside.write(pickle.dumps(new))
            self._batches += 1
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
            for _ in range(self._batches):
                packed = pickle.load(self._aside)  # noqa: S301 - what `flush` wrote
                self._record(packed)
                if bar is not None:
                    bar.advance(len(packed))

    def _record(self, packed: list[tuple[str, bytes, bytes | None]]) -> None:
        # Without what others have recorded of the same log meanwhile.
        stored: set[str] = set()
        if not self._store.ends_with(self._newest):
            stored = self._store.done_keys(key for key, _, _ in packed)
        new = [(key, *unpickled(row)) for key, row, _ in packed if key not in stored]
        requests = {key: body for key, _, body in packed if body and key not in stored}
        self._store.record_rows(new, requests)
        self._newest += len(new)
        failed = Counter(row[_ERROR_KIND] for row in new if row[_STATUS] != "ok")
        self.summary.planned += len(stored) + len(new)
        self.summary.cached += len(stored)
        self.summary.failures.update(failed)
        self.summary.failed += failed.total()
        self.summary.done += len(new) - failed.total()

    def _case(self, answer: Answer) -> Case:
        # The caller's cases are taken as they are. Others grow by the members that each row adds.
        case = answer.case
        if self._known is not None:
            # A row's id goes before its input.
            id = case.id if case.id in self._known else self._by_input.get(case.input_text)
            if id is None:
                raise self._source.bad(
                    "there is no such case",
                    answer.line,
                    "case_id",
                    got=case.id,
                    expected="the id of one of the cases given, or the input of just one",
                )
            return self._cases.setdefault(id, self._known[id])
        told, before = case.id, self._cases.get(case.id)
        changes: dict[str, Any] = {}
        while before is not None:
            other, changes = self._compared(before, case, answer)
            if other is None:
                break
            # One id stands for several questions: the steps of a task, the turns of a chat. Or one
            # question has several targets, as where what tells them apart is in no column.
            if other != "target" and case.id == question_id(case):
                id = question_id(case, digits=32)
            else:
                id = f"{case.id} {_digest(case) if other == 'target' else question_id(case)}"
                self._shared[told] = self._shared[id] = told
            case = replace(case, id=id)
            before = self._cases.get(case.id)
        if before is not None:
            changes |= self._changed_metadata(before, answer)
            case = replace(before, **changes) if changes else before
        elif answer.metadata:
            case = replace(case, metadata=answer.metadata)
        self._cases[case.id] = case
        return case

    def _compared(
        self, before: Case, case: Case, answer: Answer
    ) -> tuple[str | None, dict[str, Any]]:
        # In what a row asks something else than those before it, and the members that it adds. It
        # may leave out the question, the tools or the target.
        changes: dict[str, Any] = {}
        emptied = ""
        for name in ("input", "tools", "target"):
            old, new = getattr(before, name), getattr(case, name)
            # Tools may come from the caller, for a row that has no column of them.
            if old == new or not (name in answer.columns or (name == "tools" and new)):
                continue
            if old in ("", (), None):
                changes[name] = new
            elif new not in ("", (), None):
                return name, {}
            else:
                emptied = emptied or name
        if emptied:
            raise self._source.bad(
                f"its case has another {emptied} in a row before",
                answer.line,
                emptied,
                got=f"{case.id}: {str(getattr(case, emptied))[:120]}",
                expected=str(getattr(before, emptied))[:120],
                hint="give the cases by cases=, or another case_id",
            )
        return None, changes

    def _changed_metadata(self, before: Case, answer: Answer) -> dict[str, Any]:
        if answer.metadata != before.metadata:
            # What differs between the rows of a case belongs to the rows, and is left out. A name
            # that only one of them has does not vary: rows need not repeat all that is the same.
            for name, value in answer.metadata.items():
                if before.metadata.get(name, value) != value:
                    self._varying[name] += 1
            if list(answer.metadata) != list(before.metadata):
                return {"metadata": {**answer.metadata, **before.metadata}}
        return {}

    def _metadata(self, case: Case) -> Iterable[tuple[str, Any]]:
        # Questions under one id are no independent ones.
        if self._shared:
            yield CONVERSATION, self._shared.get(case.id, case.id)
        yield from case.metadata.items()

    def _arm(self, answer: Answer) -> tuple[Arm, dict[str, Any]]:
        # Rows of one name, protocol and choice share one. The levels are shared by all its items,
        # so they are made once.
        choice = answer.tool_choice
        if not isinstance(choice, str):
            choice = write_canonical(choice)
        identity = (answer.arm, answer.prompt_protocol, choice)
        arm = self._arms.get(identity)
        if arm is not None:
            return arm
        name = answer.arm
        if self._arm_names.setdefault(name, identity) != identity:
            # One name for two ways of asking: it says the difference then. The usual tool choice
            # says nothing, and a name may be that of its protocol.
            name = " ".join(dict.fromkeys(word for word in identity if word != "auto"))

        if answer.told not in self._protocols:
            self._protocols[answer.told] = resolved(answer.told)
        protocol = None if answer.native else self._protocols[answer.told]
        levels = {"max_turns": 1, "tool_choice": answer.tool_choice}
        row_levels = {"arm": name, "prompt_protocol": answer.prompt_protocol, **levels}
        self._arms[identity] = Arm(protocol, levels, name), row_levels
        return self._arms[identity]

    def _unnamed(self) -> Iterator[Skipped]:
        # Targets in a column of another name, without which nothing is judged.
        cases = list(self._cases.values())[:_LOOKED_AT]
        if self._known is None and all(case.target is None for case in cases):
            found = (k for case in cases for k, v in case.metadata.items() if _has_calls(v))
            if (name := next(found, None)) is not None:
                why = f"the column {name} has calls; columns={{{name!r}: 'target'}} judges by them"
                yield Skipped("target", len(self.items), f"{why} (--columns {name}=target)")

    def plan(self, left_out: list[Skipped], log: Log) -> Plan:
        # What asking for all of this would have been. Nothing in it can be asked: the answers are
        # there. Complete only after the last row.
        skipped = list(left_out)
        if self._copies:
            skipped.append(Skipped("copies", self._copies, "the same answer is in an earlier row"))
        for name, n in sorted(self._varying.items()):
            why = "it differs between the rows of one case"
            skipped.append(Skipped(f"metadata {name}", n, why))
        if self._shared:
            why = "they stand for several questions or targets, each of which is a case of its own"
            skipped.append(Skipped("case ids", len({*self._shared.values()}), why))
        skipped += self._unnamed()
        cluster = f"metadata_{CONVERSATION}" if log.conversations or self._shared else ""
        if CONVERSATION in self._varying:
            cluster = ""
        # Without the metadata that belongs to rows, and without credentials; some at a time in the
        # place of what they were, since there may be a million.
        cases = list(self._cases.values())
        self._cases.clear()
        for at in range(0, len(cases), _BATCH):
            some = cases[at : at + _BATCH]
            members = [
                [case.input, {k: v for k, v in self._metadata(case) if k not in self._varying}]
                for case in some
            ]
            cases[at : at + _BATCH] = [
                case
                if input is case.input and metadata == case.metadata
                else replace(case, input=input, metadata=metadata)
                for case, (input, metadata) in zip(some, redact_strings(members), strict=True)
            ]
        return Plan(
            Cases(cases, self._source.name, skipped),
            self._models,
            tuple(arm for arm, _ in self._arms.values()),
            max(self._trials.values()),
            tuple(self.items),
            Held(()),
            cluster=cluster,
        )


def _has_calls(x: Any) -> bool:
    # A list whose items are calls, or its JSON.
    if isinstance(x, str) and x.startswith("["):
        with suppress(ValueError, RecursionError):
            x = json.loads(x)
    return (
        isinstance(x, list)
        and bool(x)
        and all(isinstance(item, dict) and {"name", "arguments"} <= item.keys() for item in x)
    )


def _digest(case: Case) -> str:
    target = write_canonical(list(case.target or ()))
    return hashlib.sha256(target.encode()).hexdigest()[:10]


def _request(answer: Answer, trial: int) -> bytes | None:
    if answer.request is None or trial == (answer.trial or 0):
        return answer.request
    return pack_json(unpack_json(answer.request) | {"trial": trial})


def _key(answer: Answer, case_id: str, arm: Arm, trial: int) -> str:
    # The same for the same answer to the same case, whenever and wherever it is read in again.
    # Equal answers of two trials are two answers.
    choice = arm.levels["tool_choice"]
    subject = (case_id, answer.model, arm.name, arm.prompt_protocol, choice, trial)
    text = f'["ingested", {_VERSION}, {_write(subject)[1:-1]}, {answer.key_end}'
    return hashlib.sha256(text.encode()).hexdigest()


_write = json.JSONEncoder().encode


def _record_run(store: Store, plan: Plan, summary: Summary, log: Log) -> str:
    # The id is the same for the same rows and cases, which count in their order; the name of the
    # source does not. A run that is there already is only finished again.
    digest = hashlib.sha256()
    for item in plan.items:
        digest.update(f"{item.key}\n{_write([item.case_id, item.model])}\n".encode())
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
