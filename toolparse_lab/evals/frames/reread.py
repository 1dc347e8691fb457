"""Recorded answers read again: rows of the trials frame in, rows of the trials frame out.

`parse_frame` is the body of every engine of `toolparse_lab.reparse`, and needs nothing but the frame.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from ...errors import BadOptions, UnreadableInput
from ...flow import answer_reader
from ...protocols.base import Protocol
from ...registry import protocol_of
from ...runner.types import Completion, EndpointKind
from ...toolspec import ToolSpec, tool_specs
from ...types import DEFAULT_OPTIONS, ParseOptions, ParseResult, Policy
from ...values import read_strict
from ..cases.case import Case
from ..scoring.score import score_completion
from ..scoring.trial import judged_case, trial_id_of
from .dtypes import build_frame, restored
from .recorded import result_row, score_row

IDENTITY = ("run_id", "case_id", "trial", "model", "arm", "prompt_protocol")
"""The columns that say which answer a row holds; rows that agree in them are readings of one answer."""
NEEDED = (*IDENTITY, "raw", "tools_json")
"""The columns without which nothing can be read again."""
READ_AGAIN = (
    "trial_id", "parse_protocol", "policy", "outcome", "sub_code", "detail", "missing_reason", "score_success",
    "score_strict", "score_repaired", "score_safe", "score_naive", "score_fabricated", "n_calls", "n_ok", "n_valid",
    "n_edits", "n_reads", "n_coercions", "n_problems", "error_code", "codes_json", "rules_json",
)  # fmt: skip
"""The columns that reading fills anew; all others stay what they are."""
_FILLED = READ_AGAIN[3:]
MEMORY = 20_000
"""Readings kept at most: equal answers, which repeated trials often give, are read once a process."""
_known: dict[tuple[Any, ...], tuple[Any, ...]] = {}
_keeping = threading.Lock()

ProtocolLike: TypeAlias = str | Protocol


@dataclass(frozen=True, slots=True)
class Reading:
    """How answers are read again: every protocol under every policy; protocols None is each row's own."""

    protocols: tuple[ProtocolLike, ...] | None
    policies: tuple[Policy, ...]
    options: ParseOptions

    @classmethod
    def of(
        cls,
        protocols: Sequence[ProtocolLike] | ProtocolLike | None,
        policies: Sequence[Policy] | Policy,
        options: Any = None,
    ) -> Reading:
        """Checked, and without repetitions. Raises UnknownProtocol and BadOptions."""
        listed = [protocols] if isinstance(protocols, (str, Protocol)) else protocols
        if listed is not None and not listed:
            raise BadOptions("there is no protocol to read by", expected="a list, or None for each row's own")
        chosen = [policies] if isinstance(policies, str) else list(policies)
        if not chosen:
            raise BadOptions("there is no policy to read under", expected="a list such as ['safe']")
        allowed = ParseOptions.of(options)
        for policy in chosen:
            _with_policy(allowed, policy)
        named = None if listed is None else tuple({_id_of(p): _by_id(p) for p in listed}.values())
        return cls(named, tuple(dict.fromkeys(chosen)), allowed)

    @property
    def readings(self) -> int:
        """How many rows come of one answer."""
        return len(self.protocols or (None,)) * len(self.policies)


def parse_frame(
    frame: pd.DataFrame,
    protocols: Sequence[ProtocolLike] | ProtocolLike | None = None,
    policies: Sequence[Policy] | Policy = ("safe",),
    options: ParseOptions | Mapping[str, Any] | None = None,
) -> pd.DataFrame:
    """Every answer of a trials frame read again by every protocol under every policy, and scored.

    frame: one row an answer, with the columns `NEEDED` at least; `run.trials_df()` has all. A `target` that is missing
    is a case that is not graded. protocols: ids or protocols; None for the one each row's prompt asked for. options:
    what else the parser may do; their policy is not looked at.

    Gives a trials frame whose rows are those of each answer, in order, protocols before policies. Columns of your own
    and those of the recording stay. Raises UnreadableInput for missing columns and for a cell that cannot be read,
    UnknownProtocol, BadOptions and BadToolChoice.
    """
    return read_again(frame, Reading.of(protocols, policies, options))


def read_again(frame: pd.DataFrame, how: Reading) -> pd.DataFrame:
    """`parse_frame` with arguments that were checked."""
    check_columns(frame.columns)
    _check_texts(frame)
    return _Rereading(frame, how).frame()


def read_row(row: Mapping[Any, Any] | pd.Series[Any]) -> ParseResult:
    """What the answer of one row of a trials frame says, read as the row says it was.

    Raises BadOptions where the row holds no answer, and what `parse_frame` raises.
    """
    cells = {str(k): None if pd.isna(v) else v for k, v in row.items()}
    if cells.get("raw") is None or cells.get("status") == "error":
        raise BadOptions(
            "this row holds no answer",
            got=cells.get("error_message") or cells.get("missing_reason") or cells.get("status"),
            expected="a trial that was recorded and did not fail",
        )
    text, offsets = str(cells["raw"]), cells.get("raw_surrogates_json")
    protocol = cells.get("parse_protocol") or cells.get("prompt_protocol") or "auto"
    options = _with_policy(DEFAULT_OPTIONS, cells.get("policy") or "safe")
    reader = _reader(protocol, cells.get("tools_json"), cells.get("tool_choice") or "auto", options)
    result: ParseResult = reader(restored(text, _offsets(offsets)) if offsets else text)
    return result


def check_columns(names: Iterable[Any], place: str = "") -> None:
    """Raises UnreadableInput that names the columns which are missing. place: the file, where it is one."""
    there = {str(n) for n in names}
    if missing := [name for name in NEEDED if name not in there]:
        raise UnreadableInput(
            f"{place + ': ' if place else ''}columns are missing: {', '.join(missing)}",
            got=", ".join(sorted(there)) or "no columns",
            expected="a trials frame",
            hint="take it from run.trials_df(); outputs from elsewhere become a run by lab.ingest",
        )


def _check_texts(frame: pd.DataFrame) -> None:
    """Raise UnreadableInput where an answer that was recorded has lost its text: it is not an empty answer."""
    if "status" not in frame:
        return
    lost = frame.index[(frame["raw"].isna() & (frame["status"] == "ok")).fillna(False)]
    if len(lost):
        raise UnreadableInput(
            f"row {lost[0]}, column raw: the text is missing, and status says that there was an answer",
            got=f"{len(lost)} such rows", expected="the text, '' for an empty one",
            hint="leave these rows out, or clear their status: then they are not recorded",
        )  # fmt: skip


class _Rereading:
    """One frame on its way."""

    def __init__(self, frame: pd.DataFrame, how: Reading) -> None:
        self.given = frame
        self.how = how
        self.options = json.dumps(how.options.to_dict())  # what tells readings apart, in a form that is soon compared
        self.rows: list[int] = []
        self.ids: list[str] = []
        self.protocols: list[str] = []
        self.policies: list[str] = []
        self.filled: list[tuple[Any, ...]] = []

    def frame(self) -> pd.DataFrame:
        identity = [self._column(name) for name in IDENTITY]
        texts = [
            self._column(name)
            for name in ("raw", "raw_surrogates_json", "tools_json", "target", "tool_choice", "status", "error",
                         "error_message", "finish_reason", "endpoint_kind", "reasoning", "cut")
        ]  # fmt: skip
        for at, (identity_row, row) in enumerate(
            zip(zip(*identity, strict=True), zip(*texts, strict=True), strict=True)
        ):
            try:
                self._read(at, identity_row, *row)
            except UnreadableInput as e:
                e.message = f"row {self.given.index[at]}, {e.message}"
                raise
        return self._built()

    def _column(self, name: str) -> list[Any]:
        """A column as Python values, None where there is none."""
        if name not in self.given:
            return [None] * len(self.given)
        array = self.given[name].array
        if isinstance(array, pd.Categorical):
            values = [*array.categories.tolist(), None]  # the code of a missing value is -1
            return [values[code] for code in array.codes.tolist()]
        missing = pd.isna(array)
        listed = array.tolist()
        return [None if gone else v for v, gone in zip(listed, missing, strict=True)] if missing.any() else listed

    def _read(
        self, at: int, identity: tuple[Any, ...], raw: str | None, offsets: str | None, tools_json: str | None,
        target: str | None, choice: str | None, status: str | None, error: str | None, message: str | None,
        finish: str | None, kind: EndpointKind | None, reasoning: str | None, cut: bool | None,
    ) -> None:  # fmt: skip
        run_id, case_id, trial, model, arm, own = identity
        recorded = raw is not None or status is not None
        text = raw or ""
        if offsets:
            text = restored(text, _offsets(offsets))
        choice = choice or "auto"
        heard = (_digest(text), status, error, message, finish, kind, _digest(reasoning) if reasoning else "", cut)
        asked = (tools_json, target, choice)
        completion: Completion | None = None
        for protocol in self.how.protocols or (own,):
            reader = _id_of(protocol)
            for policy in self.how.policies:
                key = (protocol, policy, self.options, recorded, heard, asked)
                filled = _known.get(key)
                if filled is None:
                    if completion is None and recorded:
                        completion = Completion(
                            "",
                            text,
                            "error" if status == "error" else "ok",
                            error,
                            message,
                            finish,
                            reasoning=reasoning or "",
                            endpoint_kind=kind or "chat_text",
                            cut=bool(cut),
                        )
                    filled = self._fill(completion, asked, protocol, policy)
                    _keep(key, filled)
                self.rows.append(at)
                self.protocols.append(reader)
                self.policies.append(policy)
                self.filled.append(filled)
                self.ids.append(
                    trial_id_of(
                        run_id or "", case_id or "", model or "", arm or "", own or "", reader, policy, int(trial or 0)
                    )
                )

    def _fill(
        self,
        completion: Completion | None,
        asked: tuple[str | None, str | None, str],
        protocol: ProtocolLike,
        policy: Policy,
    ) -> tuple[Any, ...]:
        case = _case(*asked)
        result = None
        if completion is not None and completion.ok:
            result = _reader(protocol, asked[0], asked[2], _with_policy(self.how.options, policy))(completion.raw)
        score = score_completion(case, completion, result)
        row = score_row(score, "" if score is not None else "not recorded" if completion is None else "not parsed")
        if result is not None:
            row |= result_row(result)
        return tuple([row.get(name) for name in _FILLED])

    def _built(self) -> pd.DataFrame:
        take = np.array(self.rows, dtype=np.int64)
        filled = dict(zip(_FILLED, zip(*self.filled, strict=True), strict=True)) if self.filled else {}
        columns: dict[str, Any] = {name: list(filled.get(name, ())) for name in _FILLED}
        columns |= {"trial_id": self.ids, "parse_protocol": self.protocols, "policy": self.policies}
        whole = len(take) == len(self.given) and bool((take == np.arange(len(take))).all())
        for name in self.given.columns:
            if str(name) not in columns:
                array = self.given[name].array
                columns[str(name)] = array if whole else array.take(take)
        return build_frame("trials", columns, len(take))


def _digest(text: str) -> bytes:
    """What stands for a text in the memory, so that long ones do not stay there."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _keep(key: tuple[Any, ...], filled: tuple[Any, ...]) -> None:
    with _keeping:
        _known[key] = filled
        if len(_known) > MEMORY:
            del _known[next(iter(_known))]


@lru_cache(maxsize=1024)
def _tools(tools_json: str | None) -> tuple[ToolSpec, ...]:
    if not tools_json:
        return ()
    try:
        return tool_specs(json.loads(tools_json))
    except (ValueError, RecursionError) as e:
        raise UnreadableInput("column tools_json: this is not JSON", got=f"{tools_json[:120]} ({e})") from None


@lru_cache(maxsize=4096)
def _case(tools_json: str | None, target: str | None, choice: str) -> Case:
    try:
        wanted = None if target is None else read_strict(target)
    except (ValueError, RecursionError) as e:
        raise UnreadableInput("column target: this is not JSON", got=f"{(target or '')[:120]} ({e})") from None
    if wanted is not None and not isinstance(wanted, list):
        raise UnreadableInput("column target: this is no list of calls", got=target, expected="a JSON array")
    return judged_case(Case("", "", _tools(tools_json), wanted), choice)


@lru_cache(maxsize=4096)
def _reader(protocol: ProtocolLike, tools_json: str | None, choice: str, options: ParseOptions) -> Any:
    asked = json.loads(choice) if choice.startswith("{") else choice
    return answer_reader(protocol, _tools(tools_json), options, asked)


@lru_cache(maxsize=64)
def _with_policy(options: ParseOptions, policy: Policy) -> ParseOptions:
    return ParseOptions.of({**(options or DEFAULT_OPTIONS).to_dict(), "coerce": policy})


def _offsets(text: str) -> list[int]:
    try:
        return [int(n) for n in json.loads(text)]
    except (ValueError, TypeError):
        raise UnreadableInput(
            "column raw_surrogates_json: these are no offsets", got=text[:120], expected="a JSON array of integers"
        ) from None


def _id_of(protocol: ProtocolLike | None) -> str:
    return _known_id(protocol) if isinstance(protocol, str) else protocol_of(protocol).id


@lru_cache(maxsize=256)
def _known_id(name: str) -> str:
    return name if name == "auto" else protocol_of(name).id


def _by_id(protocol: ProtocolLike) -> ProtocolLike:
    """The id where it stands for this very protocol: that is what travels best."""
    if isinstance(protocol, str):
        return _known_id(protocol)
    try:
        return protocol.id if protocol_of(protocol.id) is protocol else protocol
    except Exception:
        return protocol
