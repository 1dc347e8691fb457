"""Recorded answers read again: rows of the trials frame in, rows of the trials frame out.

`parse_frame` is the body of every engine of `evals.reparse`, and needs nothing but the frame.
"""

# How it works. Columns become lists of Python values, and are walked together, one answer at a
# time: that is far quicker than rows of a frame. Every reading of an answer gives a tuple of the
# columns `_FILLED`, and equal answers share one: the memory is keyed by everything that a reading
# depends on, with texts as digests. At the end all other columns are taken from the frame as they
# are, by row number. The cost of a row is its parse and its score; what is around them is kept to a
# few microseconds, so think of the benchmark before you add to `_read`.

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from ...core.errors import BadOptions, UnreadableInput
from ...core.toolspec import ToolSpec, tool_specs
from ...core.types import DEFAULT_OPTIONS, ParseOptions, ParseResult, Policy
from ...core.values import read_strict
from ...formats.base import Signs
from ...formats.registry import is_shipped, protocol_of
from ...middleware.flow import answer_reader
from ...parser.foreign.protocol import AnyProtocol, any_protocol, listed_names
from ...runner.exchange.types import Completion, EndpointKind
from ..cases.case import Case
from ..readings.readers import version_of
from ..scoring.isolation import score_in_isolation
from ..scoring.trial import judged_case, reason_missing, trial_id_of
from .dtypes import build_frame, restored
from .recorded import blame_row, result_row, score_row

IDENTITY = ("run_id", "case_id", "trial", "model", "arm", "prompt_protocol")
"""The columns that say which answer a row holds; rows that agree in them are readings of one
answer."""
NEEDED = (*IDENTITY, "raw", "tools_json")
"""The columns without which nothing can be read again."""
READ_AGAIN = (
    "trial_id", "parse_protocol", "policy", "parse_version", "outcome", "sub_code", "detail",
    "missing_reason", "score_success", "score_strict", "score_repaired", "score_safe",
    "score_naive", "score_fabricated", "verdict", "blame", "n_calls", "n_ok", "n_valid", "n_edits",
    "n_reads", "n_coercions", "n_problems", "error_code", "codes_json", "rules_json",
    "rescues_json", "note", "override", "override_why",
)  # fmt: skip
"""The columns that reading fills anew; all others stay what they are."""
_FILLED = READ_AGAIN[3:]
# The columns behind the fields of `_Answer`, in their order.
_RECORDED = (
    "raw", "raw_surrogates_json", "tools_json", "target", "tool_choice", "status", "error",
    "error_message", "finish_reason", "endpoint_kind", "reasoning", "cut", "input",
    "server_json",
)  # fmt: skip
_STRICT = ("native", "openai_strict")
MEMORY = 20_000
"""Readings kept at most: equal answers, which repeated trials often give, are read once a
process."""

Cells: TypeAlias = tuple[Any, ...]
"""The columns `_FILLED` of one reading of one answer."""
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
class Reading:
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
    ) -> Reading:
        """Return a reading that was checked, without repetitions.

        protocols: ids, aliases or protocol objects, or one of them, or None for the one each row's
        prompt asked for. policies: names, or one name. options: the inputs of `ParseOptions.of`.
        Their policy is not looked at. own: see the field.

        Raises UnknownProtocol and BadOptions.
        """
        if protocols is not None:
            protocols = listed_names(protocols)
        if isinstance(policies, str):
            policies = [policies]

        if protocols is not None and not protocols:
            raise BadOptions(
                "there is no protocol to read by", expected="a list, or None for each row's own"
            )

        different_policies = tuple(dict.fromkeys(policies))
        if not different_policies:
            raise BadOptions("there is no policy to read under", expected="a list such as ['safe']")
        allowed = ParseOptions.of(options)
        for policy in different_policies:
            _with_policy(allowed, policy)  # raises where there is no such policy

        # Two names of one protocol are one reading.
        different = None
        if protocols is not None:
            different = tuple(dict(map(_by_id, protocols)).values())
        return cls(different, different_policies, allowed, tuple((own or {}).items()))

    @property
    def readings(self) -> int:
        """The number of rows that come of one answer."""
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

    frame: one row per answer, with the columns `NEEDED` at least. `run.trials_df()` has all. A
    `target` that is missing is a case that is not graded. protocols: ids or protocols, or None for
    the one each row's prompt asked for. options: the other options of the parser. Their policy is
    not looked at.

    Gives a trials frame whose rows are those of each answer, in order, protocols before policies.
    Columns of your own and those of the recording stay. Raises UnreadableInput for missing columns
    and for an unreadable cell, UnknownProtocol, BadOptions and BadToolChoice.
    """
    return read_again(frame, Reading.of(protocols, policies, options))


def read_again(frame: pd.DataFrame, reading: Reading) -> pd.DataFrame:
    """Return what `parse_frame` does, for arguments that were checked.

    Raises UnreadableInput for missing columns and for an unreadable cell.
    """
    check_columns(frame.columns)
    _check_texts(frame)
    return _Rereading(frame, reading).frame()


def read_row(row: Mapping[Any, Any] | pd.Series[Any]) -> ParseResult:
    """Return the answer of one row of a trials frame, read as the row says it was.

    row: the cells by column, of which `raw` is necessary. Protocol and policy are those the row was
    read by, or where it does not say, the protocol its prompt asked for and "safe".

    Raises BadOptions if the row holds no answer, UnreadableInput for a row of another kind of
    frame, and the errors of `parse_frame`.
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

    answer = _Answer(*(cells.get(name) for name in _RECORDED))
    protocol = cells.get("parse_protocol") or cells.get("prompt_protocol") or "auto"
    options = _with_policy(DEFAULT_OPTIONS, cells.get("policy") or "safe")
    choice, reason = answer.choice or "auto", answer.finish
    reader = _reader(protocol, answer.tools_json, choice, options, reason)
    result: ParseResult = reader(answer.text(), answer.request())
    return result


def check_columns(names: Iterable[Any], place: str = "") -> None:
    """Raise UnreadableInput that names the columns which are missing. place: the file, where it is
    one.
    """
    present = {str(name) for name in names}
    missing = [name for name in NEEDED if name not in present]
    if not missing:
        return

    prefix = f"{place}: " if place else ""
    raise UnreadableInput(
        f"{prefix}columns are missing: {', '.join(missing)}",
        got=", ".join(sorted(present)) or "no columns",
        expected="a trials frame",
        hint="take it from run.trials_df(); outputs from elsewhere become a run by lab.ingest",
    )


def _check_texts(frame: pd.DataFrame) -> None:
    # Without that column nobody says that there was an answer.
    if "status" not in frame:
        return

    is_lost = frame["raw"].isna() & (frame["status"] == "ok")
    lost = frame.index[is_lost.fillna(False)]
    if len(lost):
        raise UnreadableInput(
            f"row {lost[0]}, column raw: the text is missing, and status says that there was an "
            "answer",
            got=f"{len(lost)} such rows",
            expected="the text, '' for an empty one",
            hint="leave these rows out, or clear their status: then they are not recorded",
        )


class _Answer(NamedTuple):
    # One recorded answer as its row has it, None for a missing cell.
    raw: str | None
    surrogates: str | None
    tools_json: str | None
    target: str | None
    choice: str | None
    status: str | None
    error: str | None
    message: str | None
    finish: str | None
    kind: EndpointKind | None
    reasoning: str | None
    cut: bool | None
    input: str | None
    server: str | None = None

    @property
    def is_recorded(self) -> bool:
        return self.raw is not None or self.status is not None

    def text(self) -> str:
        # A frame has lone surrogates as escapes, because neither Parquet nor CSV can hold them.
        text = self.raw or ""
        if not self.surrogates:
            return text
        try:
            offsets = [int(n) for n in json.loads(self.surrogates)]
        except (ValueError, TypeError):
            raise UnreadableInput(
                "column raw_surrogates_json: these are no offsets",
                got=self.surrogates[:120],
                expected="a JSON array of integers",
            ) from None
        return restored(text, offsets)

    def question(self) -> tuple[str | None, str | None, str]:
        return self.tools_json, self.target, self.choice or "auto"

    def key(self, text: str) -> tuple[Any, ...]:
        # Every field that the reading or the score depends on.
        return (
            self.is_recorded,
            _digest(text),
            self.status,
            self.error,
            self.message,
            self.finish,
            self.kind,
            _digest(self.reasoning) if self.reasoning else "",
            self.cut,
            _digest(self.input) if self.input else "",
            self.server,
            self.question(),
        )

    def request(self) -> Any:
        return _request(self.input) if self.input else None

    def completion(self, text: str) -> Completion | None:
        # It has no key, since no one looks it up.
        if not self.is_recorded:
            return None

        # A frame of texts from elsewhere may have no status: its answers are there.
        return Completion(
            "",
            text,
            "error" if self.status == "error" else "ok",
            self.error,
            self.message,
            self.finish,
            reasoning=self.reasoning or "",
            endpoint_kind=self.kind or "chat_text",
            cut=bool(self.cut),
            response=_response(self.server),
        )


def _response(server_json: str | None) -> Mapping[str, Any] | None:
    if not server_json:
        return None
    try:
        return {"server": read_strict(server_json)}
    except ValueError:
        raise UnreadableInput("server_json is no JSON", got=server_json[:80]) from None


class _Rereading:
    def __init__(self, frame: pd.DataFrame, reading: Reading) -> None:
        self.source = frame
        self.reading = reading

        # What tells readings apart, in a form that is soon compared.
        self.options = json.dumps(reading.options.to_dict())
        self.own = dict(reading.own)
        self.signs = {name: p.signs_of_attempts() for name, p in reading.own}

        # One entry a reading in each list.
        self.rows: list[int] = []  # of the source, for each reading
        self.ids: list[str] = []
        self.protocols: list[str] = []
        self.policies: list[str] = []
        self.cells: list[Cells] = []

    def frame(self) -> pd.DataFrame:
        identities = zip(*[self._column(name) for name in IDENTITY], strict=True)
        answers = zip(*[self._column(name) for name in _RECORDED], strict=True)

        readers = self._column("parse_protocol")
        for row, (identity, answer, reader) in enumerate(
            zip(identities, answers, readers, strict=True)
        ):
            try:
                self._read(row, identity, reader, _Answer(*answer))
            except UnreadableInput as e:
                # By its label: a piece of a large frame keeps the places of the whole.
                e.message = f"row {self.source.index[row]}, {e.message}"
                raise

        return self._built()

    def _column(self, name: str) -> list[Any]:
        if name not in self.source:
            return [None] * len(self.source)

        array = self.source[name].array
        # The few values of a category are made once and not once a row.
        if isinstance(array, pd.Categorical):
            categories = [*array.categories.tolist(), None]  # the code of a missing value is -1
            return [categories[code] for code in array.codes.tolist()]

        values: list[Any] = array.tolist()
        missing = pd.isna(array)
        if not missing.any():
            return values
        return [
            None if is_missing else value for value, is_missing in zip(values, missing, strict=True)
        ]

    def _read(
        self, row: int, identity: tuple[Any, ...], reader: str | None, answer: _Answer
    ) -> None:
        run_id, case_id, trial, model, arm, own = identity
        text = answer.text()
        answer_key = answer.key(text)
        completion: Completion | None = None  # made for the first reading not in the memory
        signs = self.signs.get(own)

        # A provider's calls are read by the mode that it was in, which the row's own reading says.
        default = _STRICT[1] if (own, reader) == _STRICT else self.own.get(own, own)
        for protocol in self.reading.protocols or (default,):
            name = _registered_id(protocol) if isinstance(protocol, str) else protocol.id
            for policy in self.reading.policies:
                key = (protocol, policy, self.options, answer_key, signs)
                cells = _memory.readings.get(key)
                if cells is None:
                    if completion is None:
                        completion = answer.completion(text)
                    cells = self._fill(completion, answer, protocol, policy, signs)
                    _memory.add(key, cells)

                self.rows.append(row)
                self.protocols.append(name)
                self.policies.append(policy)
                self.cells.append(cells)
                trial_id = trial_id_of(
                    run_id or "",
                    case_id or "",
                    model or "",
                    arm or "",
                    own or "",
                    name,
                    policy,
                    int(trial or 0),
                )
                self.ids.append(trial_id)

    def _fill(
        self,
        completion: Completion | None,
        answer: _Answer,
        protocol: ProtocolLike,
        policy: Policy,
        signs: Signs | None,
    ) -> Cells:
        tools_json, _, choice = question = answer.question()
        case = _case(*question)

        result = None  # of a provider's failure there is nothing to parse
        if completion is not None and completion.ok:
            options = _with_policy(self.reading.options, policy)
            reader = _reader(protocol, tools_json, choice, options, completion.finish_reason)
            result = reader(completion.raw, answer.request(), completion.reasoning or "")

        score, result, fault = score_in_isolation(case, completion, result, signs=signs)
        row = score_row(score, "" if score is not None else fault or reason_missing(completion))
        if result is not None:
            row["parse_version"] = version_of(protocol)
            row |= result_row(result)
            row |= blame_row(result, completion)
        return tuple([row.get(name) for name in _FILLED])

    def _built(self) -> pd.DataFrame:
        columns: dict[str, Any] = {name: [] for name in _FILLED}
        if self.cells:
            by_column = map(list, zip(*self.cells, strict=True))
            columns = dict(zip(_FILLED, by_column, strict=True))
        columns["trial_id"] = self.ids
        columns["parse_protocol"] = self.protocols
        columns["policy"] = self.policies

        rows = np.array(self.rows, dtype=np.int64)
        # With one reading an answer the rows are those of the source, which need not be copied.
        is_whole = len(rows) == len(self.source) and bool((rows == np.arange(len(rows))).all())
        for name in self.source.columns:
            if str(name) not in columns:
                array = self.source[name].array
                columns[str(name)] = array if is_whole else array.take(rows)
        return build_frame("trials", columns, len(rows))


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


@lru_cache(maxsize=1024)
def _tools(tools_json: str | None) -> tuple[ToolSpec, ...]:
    if not tools_json:
        return ()
    try:
        return tool_specs(json.loads(tools_json))
    except (ValueError, RecursionError) as e:
        raise UnreadableInput(
            "column tools_json: this is not JSON", got=f"{tools_json[:120]} ({e})"
        ) from None


# Rows of one case follow one another, so that a few thousand are kept for every reading of them.
@lru_cache(maxsize=4096)
def _case(tools_json: str | None, target: str | None, choice: str) -> Case:
    # Without an id it is never mistaken for a real one.
    case = Case("", "", _tools(tools_json), _calls_wanted(target))
    return judged_case(case, choice)


def _calls_wanted(target: str | None) -> list[Any] | None:
    if target is None:
        return None
    try:
        calls = read_strict(target)
    except (ValueError, RecursionError) as e:
        raise UnreadableInput(
            "column target: this is not JSON", got=f"{target[:120]} ({e})"
        ) from None

    # `null` is not graded either: that is how a file without missing cells says it.
    if calls is not None and not isinstance(calls, list):
        raise UnreadableInput(
            "column target: this is no list of calls", got=target, expected="a JSON array"
        )
    return calls


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
) -> Any:
    level = json.loads(choice) if choice.startswith("{") else choice
    return answer_reader(protocol, _tools(tools_json), options, level, finish_reason)


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
