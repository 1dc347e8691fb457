"""Recorded answers read again: rows of the trials frame in, rows of the trials frame out.

`parse_frame` is the body of every engine of `evals.reparse`, and needs nothing but the frame.
"""

# How it works. Columns become lists of Python values, and are walked together, one answer at a
# time: that is far quicker than rows of a frame. Every reading of an answer gives a tuple of the
# columns `_FILLED`, and equal answers share one: the memory is keyed by everything that a reading
# depends on, with texts as digests. At the end all other columns are taken from the frame as they
# are, by row number. The cost of a row is its parse and its score; what is around them is kept to a
# few microseconds, so think of the benchmark before you add to `_Walk.read`.

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from ...core.errors import BadOptions, ToolparseError, UnreadableInput
from ...core.toolspec import ToolSpec, tool_specs
from ...core.types import DEFAULT_OPTIONS, ParseOptions, ParseResult, Policy
from ...core.values import read_strict
from ...entry.foreign.protocol import AnyProtocol, any_protocol, listed_names
from ...formats.base import Signs
from ...formats.registry import is_shipped, protocol_of
from ...middleware.flow import answer_reader, is_unlifted
from ...runner.exchange.types import Completion, EndpointKind, Fidelity
from ..cases.case import Case
from ..engines import collector_paused
from ..parsers.outside import version_of
from ..scoring.blame import blame_of
from ..scoring.score import score_in_isolation
from ..scoring.trial import judged_case, reason_missing, trial_id_of
from .dtypes import build_frame, restored
from .rows import (
    BLAME,
    NO_BLAME,
    NO_RESULT,
    RESULT,
    SCORE,
    Cells,
    blame_cells,
    result_cells,
    score_cells,
)

IDENTITY = ("run_id", "case_id", "trial", "model", "arm", "prompt_protocol")
"""The columns that say which answer a row holds; rows that agree in them are readings of one
answer."""
NEEDED = (*IDENTITY, "raw", "tools_json")
"""The columns without which nothing can be read again."""
_FILLED = ("parse_version", *SCORE, *RESULT, *BLAME, "note", "override", "override_why")
READ_AGAIN = ("trial_id", "parse_protocol", "policy", *_FILLED)
"""The columns that reading fills anew; all others stay what they are."""
_STRICT = ("native", "openai_strict")
MEMORY = 20_000
"""Readings kept at most: equal answers, which repeated trials often give, are read once a
process."""

ProtocolLike: TypeAlias = str | AnyProtocol


class _Memory:
    # Threads of one process share it.
    def __init__(self, size: int) -> None:
        self.size = size
        self.readings: dict[tuple[Any, ...], Cells] = {}
        self._adding = threading.Lock()

    def add(self, key: tuple[Any, ...], cells: Cells) -> None:
        with self._adding:
            self.readings[key] = cells
            # A dict keeps the order in which keys came, so that the first is the oldest.
            if len(self.readings) > self.size:
                del self.readings[next(iter(self.readings))]


_memory = _Memory(MEMORY)


@dataclass(frozen=True, slots=True)
class ParseSettings:
    """The way in which answers are read again: every protocol under every policy.

    Protocols None is each row's own.
    """

    protocols: tuple[ProtocolLike, ...] | None
    policies: tuple[Policy, ...]
    options: ParseOptions
    own: tuple[tuple[str, AnyProtocol], ...] = ()
    """Protocols by the ids in the rows, of those that are neither shipped nor installed."""

    @classmethod
    def of(
        cls,
        protocols: Any,
        policies: Sequence[Policy] | Policy,
        options: Any = None,
        own: Mapping[str, AnyProtocol] | None = None,
    ) -> ParseSettings:
        """Return a reading that was checked, without repetitions, of the arguments of
        `parse_frame`. own: see the field. Raises UnknownProtocol and BadOptions.
        """
        if protocols is not None:
            protocols = listed_names(protocols)
            if not protocols:
                raise BadOptions(
                    "there is no protocol to read by", expected="a list, or None for each row's own"
                )
        names = tuple(dict.fromkeys([policies] if isinstance(policies, str) else policies))
        if not names:
            raise BadOptions("there is no policy to read under", expected="a list such as ['safe']")
        allowed = ParseOptions.of(options)
        for policy in names:
            _with_policy(allowed, policy)  # raises where there is no such policy
        if protocols is not None:  # two names of one protocol are one reading
            protocols = tuple(dict(map(_by_id, protocols)).values())
        return cls(protocols, names, allowed, tuple((own or {}).items()))

    @property
    def readings(self) -> int:
        # Each row's own protocol is one for every row.
        protocols = len(self.protocols) if self.protocols else 1
        return protocols * len(self.policies)


def parse_frame(
    frame: pd.DataFrame,
    protocols: Sequence[ProtocolLike] | ProtocolLike | None = None,
    policies: Sequence[Policy] | Policy = ("safe",),
    options: ParseOptions | Mapping[str, Any] | None = None,
) -> pd.DataFrame:
    """Return every answer of a trials frame read again by every protocol under every policy, and
    scored.

    frame: one row per answer, with the columns `NEEDED` at least; a case without a `target` is not
    graded. protocols: ids or protocols, or None for the one each row's prompt asked for. options:
    the other options of the parser, whose policy is not looked at.

    The rows are those of each answer, in order, protocols before policies, with all other columns
    as they are. Raises UnreadableInput for missing columns and for an unreadable cell,
    UnknownProtocol, BadOptions and BadToolChoice.
    """
    return read_again(frame, ParseSettings.of(protocols, policies, options))


def read_again(frame: pd.DataFrame, reading: ParseSettings) -> pd.DataFrame:
    """Return what `parse_frame` does, for arguments that were checked. Raises UnreadableInput."""
    check_columns(frame.columns)
    if "status" in frame:  # without that column nobody says that there was an answer
        lost = frame.index[(frame["raw"].isna() & (frame["status"] == "ok")).fillna(False)]
        if len(lost):
            raise UnreadableInput(
                f"row {lost[0]}, column raw: the text is missing, and status says that there was "
                "an answer",
                got=f"{len(lost)} such rows",
                expected="the text, '' for an empty one",
                hint="leave these rows out, or clear their status: then they are not recorded",
            )

    # One entry a reading in each list; `rows` are those of the frame.
    rows: list[int] = []
    cells: list[Cells] = []
    columns: dict[str, Any] = {"trial_id": [], "parse_protocol": [], "policy": []}
    walk = _Walk(reading)
    identities = zip(*[_column(frame, name) for name in IDENTITY], strict=True)
    answers = zip(*[_column(frame, name) for name in _Answer._fields], strict=True)
    readers = _column(frame, "parse_protocol")
    with collector_paused():
        for row, (identity, answer, reader) in enumerate(
            zip(identities, answers, readers, strict=True)
        ):
            try:
                for filled, *names in walk.read(identity, reader, _Answer(*answer)):
                    rows.append(row)
                    cells.append(filled)
                    for values, name in zip(columns.values(), names, strict=True):
                        values.append(name)
            except UnreadableInput as e:
                # By its label: a piece of a large frame keeps the places of the whole.
                e.message = f"row {frame.index[row]}, {e.message}"
                raise

    by_column = map(list, zip(*cells, strict=True)) if cells else ([] for _ in _FILLED)
    columns |= zip(_FILLED, by_column, strict=True)
    taken = np.array(rows, dtype=np.int64)
    # With one reading an answer the rows are those of the source, which need not be copied.
    is_whole = len(rows) == len(frame) and bool((taken == np.arange(len(rows))).all())
    for name in frame.columns:
        if str(name) not in columns:
            array = frame[name].array
            columns[str(name)] = array if is_whole else array.take(taken)
    return build_frame("trials", columns, len(rows))


def read_row(row: Mapping[Any, Any] | pd.Series[Any]) -> ParseResult:
    """Return the answer of one row of a trials frame, read as the row says it was read, or else by
    the protocol its prompt asked for and the policy "safe".

    Raises BadOptions if the row holds no answer, and the errors of `parse_frame`.
    """
    check_columns(row.keys())
    cells = {str(name): None if pd.isna(cell) else cell for name, cell in row.items()}
    if cells.get("raw") is None or cells.get("status") == "error":
        # The cell that says most about why.
        reason = cells.get("error_message") or cells.get("missing_reason")
        raise BadOptions(
            "this row holds no answer",
            got=reason or cells.get("status"),
            expected="a trial that was recorded and did not fail",
        )

    answer = _Answer(*(cells.get(name) for name in _Answer._fields))
    protocol = cells.get("parse_protocol") or cells.get("prompt_protocol") or "auto"
    options = _with_policy(DEFAULT_OPTIONS, cells.get("policy") or "safe")
    reader = _reader(protocol, answer.tools_json, answer.choice, options, answer.finish_reason)
    result: ParseResult = reader(answer.text(), answer.request())
    return result


def try_read_row(row: Mapping[Any, Any] | pd.Series[Any]) -> ParseResult | None:
    """Return `read_row`, or None for a row without an answer, and for a protocol that is not at
    hand.
    """
    if not isinstance(row.get("raw"), str):
        return None
    try:
        return read_row(row)
    except ToolparseError:
        return None


def check_columns(names: Iterable[Any], place: str = "") -> None:
    """Raise UnreadableInput that names the columns which are missing. place: the file, where it is
    one.
    """
    present = {str(name) for name in names}
    if missing := [name for name in NEEDED if name not in present]:
        prefix = f"{place}: " if place else ""
        raise UnreadableInput(
            f"{prefix}columns are missing: {', '.join(missing)}",
            got=", ".join(sorted(present)) or "no columns",
            expected="a trials frame",
            hint="take it from run.trials_df(); outputs from elsewhere become a run by lab.ingest",
        )


class _Answer(NamedTuple):
    # One recorded answer as its row has it: columns of the frame, None for a missing cell.
    raw: str | None
    raw_surrogates_json: str | None
    tools_json: str | None
    target: str | None
    tool_choice: str | None
    status: str | None
    error: str | None
    error_message: str | None
    finish_reason: str | None
    endpoint_kind: EndpointKind | None
    reasoning: str | None
    cut: bool | None
    input: str | None
    server_json: str | None
    arguments_text: str | None
    fidelity: Fidelity | None
    prompt_tokens: int | None
    completion_tokens: int | None
    reasoning_tokens: int | None
    cached_tokens: int | None
    cache_write_tokens: int | None
    sampling_json: str | None

    @property
    def is_recorded(self) -> bool:
        return self.raw is not None or self.status is not None

    @property
    def choice(self) -> str:
        return self.tool_choice or "auto"

    def text(self) -> str:
        # A frame has lone surrogates as escapes, because neither Parquet nor CSV can hold them.
        text = self.raw or ""
        if not self.raw_surrogates_json:
            return text
        try:
            offsets = [int(n) for n in json.loads(self.raw_surrogates_json)]
        except (ValueError, TypeError):
            raise UnreadableInput(
                "column raw_surrogates_json: these are no offsets",
                got=self.raw_surrogates_json[:120],
                expected="a JSON array of integers",
            ) from None
        return restored(text, offsets)

    def key(self, text: str) -> tuple[Any, ...]:
        # Every field that the reading or the score depends on, with texts as digests.
        reasoning = _digest(self.reasoning) if self.reasoning else ""
        question = _digest(self.input) if self.input else ""
        plain = self[2:10]  # from the tools to the kind of endpoint
        return _digest(text), self.is_recorded, *plain, reasoning, self.cut, question, *self[13:]

    def request(self) -> Any:
        return _request(self.input) if self.input else None

    def completion(self, text: str) -> Completion | None:
        # It has no key, since no one looks it up.
        if not self.is_recorded:
            return None
        tokens = {
            "reasoning_tokens": self.reasoning_tokens,
            "cached_tokens": self.cached_tokens,
            "cache_creation_input_tokens": self.cache_write_tokens,
        }
        response: dict[str, Any] = {"usage": tokens}
        if self.arguments_text:
            response["arguments_text"] = self.arguments_text
        if self.server_json:
            try:
                response["server"] = read_strict(self.server_json)
            except ValueError:
                got = self.server_json[:80]
                raise UnreadableInput("server_json is no JSON", got=got) from None
        # A frame of texts from elsewhere may have no status: its answers are there.
        status: Any = "error" if self.status == "error" else "ok"
        return Completion(
            "", text, status, self.error, self.error_message, self.finish_reason,
            prompt_tokens=self.prompt_tokens, completion_tokens=self.completion_tokens,
            reasoning=self.reasoning or "", endpoint_kind=self.endpoint_kind or "chat_text",
            fidelity=self.fidelity or "sdk", cut=bool(self.cut), response=response,
            request={"params": read_strict(self.sampling_json)} if self.sampling_json else {},
        )  # fmt: skip


def _column(frame: pd.DataFrame, name: str) -> list[Any]:
    if name not in frame:
        return [None] * len(frame)
    array = frame[name].array
    # The few values of a category are made once and not once a row.
    if isinstance(array, pd.Categorical):
        categories = [*array.categories.tolist(), None]  # the code of a missing value is -1
        return [categories[code] for code in array.codes.tolist()]
    values: list[Any] = array.tolist()
    missing = pd.isna(array)
    if not missing.any():
        return values
    return [None if is_missing else v for v, is_missing in zip(values, missing, strict=True)]


class _Walk:
    # One reading of many answers, with what tells it from others in a form that is soon compared.
    def __init__(self, reading: ParseSettings) -> None:
        self.reading = reading
        self.options = json.dumps(reading.options.to_dict())
        self.own = dict(reading.own)
        self.signs = {name: p.signs_of_attempts() for name, p in reading.own}

    def read(
        self, identity: tuple[Any, ...], reader: str | None, answer: _Answer
    ) -> Iterator[tuple[Cells, str, str, str]]:
        # Yields the cells with trial_id, parse_protocol and policy of each reading.
        run_id, case_id, trial, model, arm, own = identity
        text = answer.text()
        answer_key = answer.key(text)
        completion: Completion | None = None  # made for the first reading not in the memory
        signs = self.signs.get(own)

        # A provider's calls are read by the mode that it was in, which the row's own reading says.
        default = _STRICT[1] if (own, reader) == _STRICT else self.own.get(own, own)
        if own == _STRICT[0] and answer.endpoint_kind == "chat_text":
            default = "auto"  # what the server left in its text may be in any format
        for protocol in self.reading.protocols or (default,):
            name = _registered_id(protocol) if isinstance(protocol, str) else protocol.id
            for policy in self.reading.policies:
                key = (protocol, policy, self.options, answer_key, signs)
                cells = _memory.readings.get(key)
                if cells is None:
                    if completion is None:
                        completion = answer.completion(text)
                    options = _with_policy(self.reading.options, policy)
                    cells = _fill(completion, answer, protocol, options, signs)
                    _memory.add(key, cells)
                asked = (run_id or "", case_id or "", model or "", arm or "", own or "")
                yield cells, trial_id_of(*asked, name, policy, int(trial or 0)), name, policy


def _fill(
    completion: Completion | None,
    answer: _Answer,
    protocol: ProtocolLike,
    options: ParseOptions,
    signs: Signs | None,
) -> Cells:
    case = _case(answer.tools_json, answer.target, answer.choice)
    result = None  # of a provider's failure there is nothing to parse
    if completion is not None and completion.ok:
        reason, unlifted = completion.finish_reason, is_unlifted(completion)
        reader = _reader(protocol, answer.tools_json, answer.choice, options, reason, unlifted)
        result = reader(completion.raw, answer.request(), completion.reasoning or "")

    score, result, fault = score_in_isolation(case, completion, result, signs=signs)
    missing = "" if score is not None else fault or reason_missing(completion)
    blame = NO_BLAME
    if completion is not None:
        found = blame_of(case, completion, result, score, tool_choice=answer.choice)
        blame = blame_cells(found)
    return (
        None if result is None else version_of(protocol),
        *score_cells(score, missing),
        *(NO_RESULT if result is None else result_cells(result)),
        *blame,
        *[None] * 3,  # what people have said of the reading before
    )


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


@lru_cache(maxsize=1024)
def _tools(tools_json: str | None) -> tuple[ToolSpec, ...]:
    return tool_specs(_read_cell("tools_json", tools_json, json.loads)) if tools_json else ()


# Rows of one case follow one another, so that a few thousand are kept for every reading of them.
@lru_cache(maxsize=4096)
def _case(tools_json: str | None, target: str | None, choice: str) -> Case:
    # `null` is not graded either: that is how a file without missing cells says it.
    calls = _read_cell("target", target, read_strict) if target is not None else None
    if calls is not None and not isinstance(calls, list):
        raise UnreadableInput(
            "column target: this is no list of calls", got=target, expected="a JSON array"
        )
    # Without an id it is never mistaken for a real one.
    return judged_case(Case("", "", _tools(tools_json), calls), choice)


def _read_cell(column: str, text: str, read: Callable[[str], Any]) -> Any:
    try:
        return read(text)
    except (ValueError, RecursionError) as e:
        raise UnreadableInput(
            f"column {column}: this is not JSON", got=f"{text[:120]} ({e})"
        ) from None


@lru_cache(maxsize=4096)
def _request(cell: str) -> Any:
    if not cell.startswith("["):
        return cell
    try:
        messages = read_strict(cell)
    except (ValueError, RecursionError):
        return cell
    is_messages = isinstance(messages, list) and all(isinstance(m, dict) for m in messages)
    return messages if is_messages else cell


@lru_cache(maxsize=4096)
def _reader(
    protocol: ProtocolLike,
    tools_json: str | None,
    choice: str,
    options: ParseOptions,
    finish_reason: str | None,
    unlifted: bool = False,
) -> Any:
    level = json.loads(choice) if choice.startswith("{") else choice
    return answer_reader(protocol, _tools(tools_json), options, level, finish_reason, unlifted)


@lru_cache(maxsize=64)
def _with_policy(options: ParseOptions, policy: Policy) -> ParseOptions:
    return ParseOptions.of({**(options or DEFAULT_OPTIONS).to_dict(), "coerce": policy})


@lru_cache(maxsize=256)
def _registered_id(name: str) -> str:
    # Asked once a row, hence the memory.
    return any_protocol(name).id


def _by_id(x: Any) -> tuple[str, ProtocolLike]:
    # An id travels best: the protocol itself can come to another process only if it can be pickled.
    protocol = any_protocol(x)
    if protocol.id == "auto":
        return protocol.id, protocol.id
    if is_shipped(protocol.id) and protocol_of(protocol.id) == protocol:
        return protocol.id, protocol.id
    return protocol.id, protocol
