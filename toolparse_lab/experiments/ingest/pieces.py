"""Pieces of a source, each read by this process or by another of a pool."""

# How it works. A source is cut into pieces of some rows, as it has them: lines of JSONL are not
# even read. A piece becomes answers that need only a key and the number of their trial to be rows
# of the store. Whoever reads a piece does the same, and sends back the errors of the rows that it
# cannot read in their places, and what it counted.
#
# Two things about a piece depend on the rows before it. The shape of the row before is tried first:
# a piece that was read after another shape than there was is read again here. What several rows
# say of one case or arm is put together by `build`, in the order of the rows.

from __future__ import annotations

import hashlib
import json
import pickle
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from itertools import chain, islice
from typing import Any, NamedTuple, TypeAlias

from ...core.errors import BadCase, BadOptions
from ...core.toolspec import tool_specs
from ...entry.foreign.protocol import any_protocol
from ...evals.cases.case import Case
from ...evals.cases.row_files import JsonLines, RowSource
from ...evals.engines import (
    Workers,
    available_processes,
    check_engine,
    collector_paused,
    results_of,
    travels,
)
from ...formats.auto import AUTO
from ...formats.registry import is_shipped
from ...runner.exchange.redaction import (
    redact,
    redact_named,
    redact_strings,
    secrets_in,
)
from ...runner.exchange.types import Chunk, Completion, Passed
from ...runner.store.rows import completion_row, pack_json
from ..arms import prompt_protocol
from .answers import facts_of
from .columns import Settings
from .exchanges import ExchangeAnswer, answers_in
from .rows import Observed, RowReader, beside_calls
from .shapes import Log, ShapedRow, ShapeReader, with_shapes
from .sources import at_most

_ROWS = 1000  # in a piece: reading them takes a tenth of a second
MANY = 50_000
"""Rows from which on all cores read them: others have begun before one is through with fewer."""
_CHARACTERS = 2 << 20  # from which on a piece has no further row

_OF_A_REQUEST = frozenset(("input", "tools"))

Numbered: TypeAlias = tuple[int | None, Any]
"""A row, after its number in the source."""
Rows: TypeAlias = Sequence[Numbered]
Readings: TypeAlias = "list[list[Answer | BadCase]]"
"""For each row its answers; the error comes last, where not all of it could be read."""


class Answer(NamedTuple):
    """One answer of a row, as much of it as does not depend on other rows.

    case: without metadata. columns: the names of its members that the row says. told: the row's own
    word for its protocol, None for that of the source. key_end: what of the answer is in its key,
    as JSON. named: an equal answer in another row is a copy of it. row: a pickled tuple of
    `COMPLETION_ROW` after the key. request: packed, with the number of its trial, 0 where the row
    names none.
    """

    line: int | None
    case: Case
    metadata: dict[str, Any]
    columns: frozenset[str]
    model: str
    native: bool
    told: str | None
    prompt_protocol: str
    arm: str
    tool_choice: Any
    trial: int | None
    error_kind: str | None
    key_end: str
    named: bool
    row: bytes
    request: bytes | None


@dataclass(frozen=True, slots=True)
class Setup:
    """What it takes to read rows of a source in any process.

    source: without its rows. are_lines: the rows are lines of JSONL. shaped: they may have a shape.
    settings: without cases and requests. now: the time of answers that have none.
    """

    source: RowSource
    are_lines: bool
    shaped: bool
    settings: Settings
    now: str

    @classmethod
    def of(cls, rows: RowSource, settings: Settings) -> tuple[Setup, Iterator[Numbered]]:
        """Return the setup, and the rows as they are then read."""
        lines = rows.rows
        # Whoever reads a line of JSONL reads its JSON, too.
        if isinstance(lines, JsonLines):
            rows = replace(rows, rows=lines.texts)
        rows = at_most(rows, settings.max_rows)
        shaped = False
        # Whose columns are mapped has said what they are.
        if settings.shape is not None or not settings.columns:
            rows, shaped = with_shapes(rows, settings.shape)
        # By id: a copy of a shipped one, or of 'auto', would be taken for one of the caller's own.
        protocol = any_protocol(settings.protocol)
        is_ours = protocol.id == "auto" or is_shipped(protocol.id)
        by_id = is_ours and any_protocol(protocol.id) is protocol
        settings = replace(
            settings,
            tools=tool_specs(settings.tools),
            protocol=protocol.id if by_id else protocol,
            cases=None,
            requests=None,
        )
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        source = replace(rows, rows=iter(()))
        return cls(source, isinstance(lines, JsonLines), shaped, settings, now), rows.rows


_TOO_DEEP = "this row is nested too deep"


class PieceReader:
    """Reads pieces of a source one after the other. Raises as `RowReader` does."""

    def __init__(self, setup: Setup, requests: Mapping[str, Any] | None = None) -> None:
        self.setup = setup
        self.log = Log(setup.source.name, requests, offered=bool(setup.settings.tools))
        source = setup.source
        if setup.shaped:
            source = replace(source, columns=None, table=False)
        self.rows = RowReader(source, setup.settings)
        self.shapes = ShapeReader(setup.source, setup.settings.shape if setup.shaped else None)
        self._cases: dict[str, Case] = {}
        self._columns: dict[frozenset[str], frozenset[str]] = {}

    def read(self, piece: Rows) -> Readings:
        """Return what is in the rows of a piece."""
        with collector_paused():
            return self._read(piece)

    def _read(self, piece: Rows) -> Readings:
        self._cases.clear()
        readings: list[list[Observed | Answer | BadCase]] = []
        requests: list[dict[str, Any]] = []
        for line, row in self._shaped(piece):
            if isinstance(row, ShapedRow) and not self.log.counts(row):
                continue
            answers: list[Observed | Answer | BadCase] = []
            try:
                if isinstance(row, Passed):
                    found = answers_in(row, line or 0, self.rows.tools, self.rows.model)
                    answers += [self._exchanged(row, line, answer) for answer in found]
                else:
                    for observed in self.rows.read(line, row, self.log):
                        requests.append(_request(observed))
                        answers.append(observed)
            except BadCase as e:
                answers.append(e)
            except RecursionError:
                answers.append(self.setup.source.bad(_TOO_DEEP, line))
            readings.append(answers)
        good = [x for answers in readings for x in answers if isinstance(x, Observed)]
        good = list(beside_calls(good))
        sent = [[request, _response(x)] for request, x in zip(requests, good, strict=True)]
        # The environment is looked through for credentials once for all of them.
        made = map(self._answer, good, redact_strings(sent))
        return [
            [next(made) if isinstance(x, Observed) else x for x in answers] for answers in readings
        ]

    def _shaped(self, piece: Rows) -> list[Numbered]:
        # All of a piece before the first is read: an outer span may come before its steps.
        shaped: list[Numbered] = []
        for line, row in piece:
            if self.setup.are_lines:
                row = JsonLines.row_of(self.setup.source.name, line, row)
            if self.setup.shaped and not isinstance(row, Passed):
                shaped += ((line, one) for one in self.shapes.read(line, row, self.log))
            else:
                shaped.append((line, row))
        return shaped

    def _exchanged(self, passed: Passed, number: int | None, answer: ExchangeAnswer) -> Answer:
        # Whoever recorded the exchange removed its credentials. It happened once, whatever was
        # asked before: its application, time and number are its identity, with what passed.
        completion, protocol = answer.completion, self.rows.protocol
        if completion.endpoint_kind == "native_tools" or (answer.unlifted and protocol is AUTO):
            protocol = None
        prompted = prompt_protocol(protocol)
        return Answer(
            number,
            answer.case,
            {"app": passed.app},
            _OF_A_REQUEST,
            answer.model,
            protocol is None,
            None,
            prompted,
            prompted,
            answer.tool_choice,
            answer.choice,
            completion.error_kind,
            json.dumps([passed.app, passed.created, number, _digest(passed)])[1:],
            False,
            pickle.dumps(completion_row(completion, None)[1:]),
            pack_json(dict(completion.request or {})),
        )

    def _answer(self, observed: Observed, body: Sequence[Mapping[str, Any]]) -> Answer:
        captured, (request, response) = observed.captured, body
        raw = captured.raw
        kind, message = observed.error or (None, None)
        completion = Completion(
            key="",
            raw=raw,
            status="ok" if kind is None else "error",
            error_kind=kind,
            error_message=message and redact(message, secrets_in(observed.request)),
            finish_reason=captured.finish_reason,
            chunks=tuple(Chunk(0.0, text, part) for part, text in captured.chunks),
            reasoning=captured.reasoning,
            endpoint_kind=observed.endpoint_kind,
            fidelity=captured.fidelity,
            stream=captured.stream,
            cut=kind == "cut_stream",
            system_fingerprint=captured.system_fingerprint,
            created=observed.created or self.setup.now,
            response=response or None,
            **observed.numbers,
        )
        in_key = [
            raw, captured.reasoning, observed.endpoint_kind, observed.error, captured.finish_reason,
            observed.whole,
        ]  # fmt: skip
        columns = observed.columns
        return Answer(
            observed.line,
            self._shared(observed.case),
            observed.case.metadata,
            self._columns.setdefault(columns, columns),
            observed.model,
            observed.protocol is None,
            observed.told,
            prompt_protocol(observed.protocol),
            observed.arm,
            observed.tool_choice,
            observed.trial,
            kind,
            json.dumps(in_key)[1:],
            observed.named,
            pickle.dumps(completion_row(completion, None)[1:]),
            pack_json(request) if request else None,
        )

    def _shared(self, case: Case) -> Case:
        # Rows of one case follow one another, and one that was sent need not be sent again.
        before = self._cases.get(case.id)
        if (
            before is not None
            and before.input == case.input
            and before.tools == case.tools
            and before.target == case.target
        ):
            return before
        self._cases[case.id] = bare = replace(case, metadata={}) if case.metadata else case
        return bare


def _digest(passed: Passed) -> str:
    digest = hashlib.sha256(passed.request)
    digest.update(passed.response)
    digest.update(repr((passed.seconds, passed.pieces, passed.status)).encode())
    return digest.hexdigest()


def _response(observed: Observed) -> dict[str, Any]:
    facts = {
        **facts_of(observed.captured, unlifted=observed.unlifted),
        **observed.served,
        "arguments_text": "lost" if observed.arguments_lost else None,
    }
    return {name: value for name, value in facts.items() if value is not None}


def _request(observed: Observed) -> dict[str, Any]:
    # Parameters with the name of a credential are removed here, credentials inside of strings
    # afterwards.
    body = observed.request
    if body is None:
        return {}
    params = {k: v for k, v in body.items() if k not in ("model", "messages", "tools")}
    request = {
        "model": {"name": body.get("model") or observed.model},
        "model_alias": observed.model,
        "messages": body.get("messages") or [],
        "params": redact_named(params),
        "trial": observed.trial or 0,
    }
    if body.get("tools"):
        request["tools"] = body["tools"]
    # A log that names its keys may have them in its texts as well.
    secrets = secrets_in(params)
    redacted: dict[str, Any] = redact_strings(request, secrets) if secrets else request
    return redacted


# by whom


@dataclass(frozen=True, slots=True)
class Work:
    """A piece for another process."""

    setup: bytes
    rows: bytes | None
    shape: str


class Done(NamedTuple):
    """What came of a piece, and what was counted."""

    readings: Readings
    log: Log


def read_pieces(
    reader: PieceReader, rows: Iterator[Numbered], workers: Workers
) -> Generator[Readings]:
    """Yield what is in the pieces of a source, in their order.

    reader: has counted all of them at the end. Raises the errors of the source and of
    `results_of`.
    """
    check_engine(workers.engine or "processes", workers.workers)
    pieces = _Pieces(rows)
    ahead: deque[Rows] = deque()
    engine = workers.engine
    if engine is None:
        engine = "serial"
        if available_processes() > 1 and not reader.log.requests and travels(reader.setup):
            ahead += islice(pieces, MANY // _ROWS)
            engine = "processes" if len(ahead) == MANY // _ROWS else "serial"
    elif engine != "serial" and reader.log.requests:
        raise BadOptions(
            "a batch is read with its requests by one process",
            got=engine,
            expected="serial",
            hint="leave out engine, or requests",
        )
    elif engine != "serial" and not travels(reader.setup):
        raise BadOptions(
            "the protocol cannot be sent to another process",
            got=reader.setup.settings.protocol,
            hint="put it into a module that can be imported, or say engine='serial'",
        )
    all_pieces = chain(_taken_from(ahead), pieces)
    if engine == "serial":
        yield from map(reader.read, all_pieces)
    else:
        # The first one shows the shape that the others are likely to have.
        yield from map(reader.read, islice(all_pieces, 1))
        yield from _read_elsewhere(reader, all_pieces, workers)
    if pieces.failure is not None:
        raise pieces.failure


def _read_elsewhere(
    reader: PieceReader, pieces: Iterator[Rows], workers: Workers
) -> Iterator[Readings]:
    setup = pickle.dumps(reader.setup)
    sent: deque[tuple[Rows, str]] = deque()

    def works() -> Iterator[Work]:
        for piece in pieces:
            sent.append((piece, reader.log.last))
            yield Work(setup, _packed(piece, reader.setup.are_lines), reader.log.last)

    with closing(results_of(read_piece, works(), "processes", workers.workers)) as results:
        for done in results:
            piece, shape = sent.popleft()
            if done is None or shape != reader.log.last:
                yield reader.read(piece)
                continue
            reader.log.add(done.log)
            yield done.readings


def read_piece(work: Work) -> Done | None:
    """Read a piece in a process that has nothing but the work."""
    if work.rows is None:
        return None
    reader = _reader_of(work.setup)
    reader.log = Log(reader.setup.source.name, last=work.shape)
    return Done(reader.read(unpickled(work.rows)), reader.log)


@lru_cache(maxsize=1)
def _reader_of(setup: bytes) -> PieceReader:
    # What it remembers of tools and columns serves the next piece.
    return PieceReader(unpickled(setup))


def _packed(piece: Rows, are_lines: bool) -> bytes | None:
    # None for rows that no other process can be given.
    try:
        packed = pickle.dumps(piece)
    except (pickle.PicklingError, AttributeError, TypeError, RecursionError):
        return None
    return packed if are_lines or b"__main__" not in packed else None


def unpickled(own: bytes) -> Any:
    """Return what a process of this program has pickled."""
    return pickle.loads(own)  # noqa: S301


class _Pieces(Iterator[Rows]):
    # failure: what ended the source before its end. The rows before it are read first.
    def __init__(self, rows: Iterable[Numbered]) -> None:
        self._rows = iter(rows)
        self.failure: Exception | None = None

    def __next__(self) -> Rows:
        piece: list[Numbered] = []
        size = 0
        try:
            for numbered in self._rows:
                piece.append(numbered)
                size += _size(numbered[1])
                if len(piece) == _ROWS or size >= _CHARACTERS:
                    break
        except Exception as e:  # raised again at the end
            self.failure = e
            self._rows = iter(())
        if not piece:
            raise StopIteration
        return piece


def _taken_from(pieces: deque[Rows]) -> Iterator[Rows]:
    while pieces:
        yield pieces.popleft()


def _size(row: Any) -> int:
    if isinstance(row, str):
        return len(row)
    if isinstance(row, Passed):
        return row.size
    if isinstance(row, Mapping):
        return sum(len(cell) for cell in row.values() if isinstance(cell, str))
    return 0
