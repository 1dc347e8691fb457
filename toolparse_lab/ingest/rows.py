"""Rows of somebody else's log: the answer a row holds, and what it says about who gave it to what.

A row is a mapping (a line of JSONL, a record of a table), a text, or a response object of any client.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from ..arms import NATIVE
from ..capture import Captured
from ..errors import BadCase, BadToolSpec, ToolparseError, UnreadableInput
from ..evals.cases.case import Case, is_storable
from ..evals.cases.loading import case_of_members
from ..evals.cases.row_files import RowSource
from ..evals.cases.rows import Others, is_missing, json_value, listed
from ..registry import protocol_of
from ..runner.redaction import redact_named
from ..runner.types import EndpointKind
from ..toolspec import ToolSpec, tool_specs
from ..values import read_strict, write_canonical
from .answers import captured_of, error_of, is_true, json_or_text, take_last_message
from .names import ColumnNames
from .sources import is_chunk, is_response

_CASE = ("input", "messages", "tools", "target", "metadata")
_NUMBERS: Mapping[str, type] = {
    "prompt_tokens": int, "completion_tokens": int, "cost": float, "latency": float, "ttft": float,
}  # fmt: skip
_REMEMBERED = 1000  # sets of tools
_LARGEST = 2**31  # what a database's integers hold
_MILLISECONDS = 10**11  # from here on a time is meant in milliseconds: in seconds it would be the year 5138


@dataclass(frozen=True, slots=True)
class Observed:
    """One row: the answer, and what the row says about who gave it to what.

    case holds only what the row itself says (`id` always); `known` are the names of its members that it says.
    """

    line: int | None
    captured: Captured
    endpoint_kind: EndpointKind
    case: Case
    known: frozenset[str]
    model: str
    protocol: str
    arm: str
    tool_choice: Any
    trial: int | None
    error: tuple[str, str] | None
    numbers: Mapping[str, Any]
    created: str
    request: Mapping[str, Any] | None


class RowReader:
    """Reads the rows of one source. Every error is a BadCase that names the place."""

    def __init__(
        self,
        source: RowSource,
        *,
        tools: Any = None,
        columns: Mapping[str, str | None] | None = None,
        others: Others = "metadata",
        model: str | None = None,
        protocol: Any = "auto",
    ) -> None:
        self.source = source
        self.names = ColumnNames(source, columns, others)
        self.tools = tool_specs(tools)
        self.model = model
        self.protocol = _asked_for(protocol)
        self._read_tools: dict[str, Any] = {}
        self._protocols: dict[str, str] = {}

    def read(self, line: int | None, row: Any) -> Iterator[Observed]:
        """The answers of a row: one, or as many as its response has choices."""
        if isinstance(row, BadCase):
            raise row
        if isinstance(row, Mapping) and not is_response(row):
            if row.get("format") == "toolparse-recording":
                raise UnreadableInput(
                    "this is a recording of this package", got=self.source.name,
                    hint="toolparse_lab.runner.recording.import_recording adds it to a store",
                )  # fmt: skip
            yield from self._observed(line, self._members(row))
            return
        if is_chunk(row):
            raise self._bad(line, "a piece of a stream is no answer", got=row, hint="give the list of its pieces")
        yield from self._observed(line, {"response": row} if not isinstance(row, str) else {"raw": row})

    def _bad(self, line: int | None, message: str, column: str | None = None, **more: Any) -> BadCase:
        return self.source.bad(message, line, column, **more)

    def _members(self, row: Mapping[str, Any]) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for name, value in self.names.taken(row):
            if not is_missing(value):
                out[name] = value
            elif name in ("raw", "output") and value is None and self.source.table and self.source.unit == "line":
                out[name] = ""  # an empty cell of CSV is how an empty answer is written there
        return out

    # answers

    def _observed(self, line: int | None, said: dict[str, Any]) -> Iterator[Observed]:
        request = self._mapping(line, said, "request")
        error = error_of(self.source, line, said)
        take_last_message(said)
        first = captured_of(self.source, line, said, error, 0)
        if first.choices > 1:
            said.pop("trial", None)  # they are answers of one request, and counted
        yield self._observe(line, said, request, error, first)
        for choice in range(1, first.choices):
            yield self._observe(line, said, request, error, captured_of(self.source, line, said, error, choice))

    def _observe(
        self,
        line: int | None,
        said: dict[str, Any],
        request: Mapping[str, Any] | None,
        error: tuple[str, str] | None,
        captured: Captured,
    ) -> Observed:
        if error is None and captured.error is not None:
            error = ("cut_stream" if captured.stream and captured.content else "other", captured.error)
        if error is None and (captured.cut or is_true(said.get("cut"))):
            error = ("cut_stream", "the stream ended without a finish part")
        for name, other in (("messages", "input"), ("tools", "tools")):
            asked = (request or {}).get(name)
            if isinstance(asked, list) and asked and not said.keys() & {name, other}:
                said[name] = asked
        case, known = self._case(line, said, captured)
        if case.tools and captured.completion is False and "tools" in (request or {}):
            captured = captured.as_native()
        protocol = self._protocol(line, said.get("prompt_protocol"), captured)
        kind: EndpointKind = "native_tools" if protocol == NATIVE else captured.endpoint_kind
        model = said.get("model") or captured.model or (request or {}).get("model") or self.model or "unknown"
        if not isinstance(model, str) or not model.strip() or not is_storable(model):
            raise self._bad(line, "a model is a name", "model", got=ascii(model))
        return Observed(
            line, captured, kind, case, known, model, protocol, str(said.get("arm") or protocol), self._choice(said),
            self._trial(line, said.get("trial")), error, self._numbers(line, said, captured),
            self._created(line, said.get("created")), request,
        )  # fmt: skip

    def _case(self, line: int | None, said: dict[str, Any], captured: Captured) -> tuple[Case, frozenset[str]]:
        members = {k: v for k, v in said.items() if k in _CASE or k.startswith("metadata_")}
        known = frozenset("input" if k == "messages" else k for k in members if k in _CASE)
        given = said.get("case_id")
        if given is not None and not isinstance(given, (str, int)):
            given = json_value(given, self.source, line, "case_id")
            given = str(int(given)) if isinstance(given, float) and given.is_integer() else given
        if "tools" in members:
            members["tools"] = self._tools(line, members["tools"])
        elif self.tools:
            members["tools"] = self.tools
        if isinstance(members.get("input"), str) and members["input"].lstrip()[:1] == "[":
            members["input"] = _messages_or_text(members["input"])
        if "input" in members and "messages" in members:
            del members["messages"]
        if not self.source.from_json:
            members = {k: json_value(v, self.source, line, k) if not _is_read(v) else v for k, v in members.items()}
        if isinstance(members.get("metadata"), Mapping):
            members["metadata"] = redact_named(members["metadata"])
        members.setdefault("messages" if "messages" in members else "input", "")
        case = case_of_members({"id": given if given is not None else "?", **members}, _Same(), self.source, line)
        if given is None:
            case = replace(case, id=_derived_id(case, known, captured, line))
        return case, known

    def _tools(self, line: int | None, x: Any) -> Any:
        """Tools as ToolSpecs; a log says the same ones in every row, so that they are read once."""
        seen = x if isinstance(x, str) else repr(x)
        known = self._read_tools.get(seen)
        if known is None:
            try:
                found = json_value(x, self.source, line, "tools") if self.source.table else x
                known = tool_specs(listed(read_strict(found) if isinstance(found, str) else found))
            except (ValueError, RecursionError) as e:
                raise self._bad(line, "the tools cannot be read: not JSON", "tools", got=f"{seen[:80]} ({e})") from None
            except BadToolSpec as e:
                raise self._bad(
                    line, f"the tools cannot be read: {e.message}", "tools", got=e.got, expected=e.expected, hint=e.hint
                ) from None
            if len(self._read_tools) < _REMEMBERED:
                self._read_tools[seen] = known
        return known

    def _protocol(self, line: int | None, named: Any, captured: Captured) -> str:
        if captured.native:
            return NATIVE
        if named is None:
            return self.protocol
        if named not in self._protocols:
            try:
                self._protocols[named] = _asked_for(str(named))
            except ToolparseError as e:
                raise self._bad(line, e.message, "prompt_protocol", got=named, expected=e.expected, hint=e.hint) from e
        return self._protocols[named]

    def _choice(self, said: Mapping[str, Any]) -> Any:
        choice = said.get("tool_choice")
        if isinstance(choice, str) and choice[:1] == "{":
            choice = json_or_text(choice)
        if isinstance(choice, Mapping):
            function = choice.get("function")
            name = function.get("name") if isinstance(function, Mapping) else choice.get("name")
            return {"name": name} if isinstance(name, str) else "auto"
        return choice if choice in ("required", "none") else "auto"

    def _trial(self, line: int | None, x: Any) -> int | None:
        if x is None:
            return None
        number = self._number(line, x, int, "trial")
        if number < 0:
            raise self._bad(line, "a trial is a number from 0", "trial", got=x)
        return int(number)

    def _numbers(self, line: int | None, said: Mapping[str, Any], captured: Captured) -> dict[str, Any]:
        usage = captured.usage or {}
        found = {
            "prompt_tokens": usage.get("prompt_tokens", usage.get("input_tokens")),
            "completion_tokens": usage.get("completion_tokens", usage.get("output_tokens")),
        }
        out = {k: v for k, v in found.items() if type(v) is int and abs(v) < _LARGEST}
        for name, kind in _NUMBERS.items():
            if name in said:
                out[name] = self._number(line, said[name], kind, name)
        return out

    def _number(self, line: int | None, x: Any, kind: type, column: str) -> Any:
        try:
            value = float(x)
            whole = value.is_integer() and abs(value) < _LARGEST
            if not math.isfinite(value) or isinstance(x, bool) or (kind is int and not whole):
                raise ValueError
        except (TypeError, ValueError, OverflowError):
            raise self._bad(line, f"this is no {'whole ' if kind is int else ''}number", column, got=x) from None
        return kind(value)

    def _created(self, line: int | None, x: Any) -> str:
        if x is None:
            return ""
        if isinstance(x, (int, float)) and not isinstance(x, bool) and 0 < x < _MILLISECONDS * 1000:
            seconds = x / 1000 if x >= _MILLISECONDS else x
            return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
        return str(json_value(x, self.source, line, "created"))[:40]

    def _mapping(self, line: int | None, said: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
        x = said.get(name)
        if isinstance(x, str):
            x = json_or_text(x)
        if x is None or isinstance(x, str):
            return None  # somebody's own text about the request
        x = json_value(x, self.source, line, name)
        if not isinstance(x, Mapping):
            raise self._bad(line, f"the {name} is no object", name, got=x)
        body = x.get("body")
        return body if isinstance(body, Mapping) else x


class _Same(Mapping[str, str]):
    """Every member came from the column of its own name."""

    def __getitem__(self, key: str) -> str:
        return key

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def _asked_for(protocol: Any) -> str:
    """The prompt protocol of an arm: an id, auto, or native; raises UnknownProtocol."""
    if protocol == "auto":
        return "auto"
    found = protocol_of(protocol).id
    return NATIVE if found == protocol_of(NATIVE).id else found


def _is_read(x: Any) -> bool:
    return isinstance(x, str) or (isinstance(x, tuple) and all(isinstance(v, ToolSpec) for v in x))


def _derived_id(case: Case, known: frozenset[str], captured: Captured, line: int | None) -> str:
    if "input" in known:
        text = f"{tools_digest(case.tools)} {case.input_text}"
        return f"input-{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:10]}"
    return captured.id or f"row-{line}"


@lru_cache(maxsize=1024)
def tools_digest(tools: tuple[ToolSpec, ...]) -> str:
    """What tells one set of tools from another."""
    text = write_canonical([[t.name, t.description, t.schema_json] for t in tools])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _messages_or_text(text: str) -> Any:
    found = json_or_text(text)
    ok = isinstance(found, list) and found and all(isinstance(m, Mapping) and "role" in m for m in found)
    return found if ok else text
