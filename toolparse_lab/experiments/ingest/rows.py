"""Rows of another's log: the answer a row holds, and its content about who gave it to what.

A row is a mapping (a line of JSONL, a record of a table), a text, or a response object of any
client.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from ...core.errors import BadCase, BadToolSpec, ToolparseError, UnreadableInput
from ...core.toolspec import ToolSpec, tool_specs
from ...core.values import read_strict, write_canonical
from ...evals.cases.case import Case, is_storable
from ...evals.cases.loading import case_of_members
from ...evals.cases.row_files import RowSource
from ...evals.cases.rows import Others, is_missing, listed
from ...formats.json.openai_json import OPENAI_JSON
from ...parser.capture import Captured
from ...parser.foreign.protocol import AnyProtocol, any_protocol
from ...runner.exchange.redaction import redact_named
from ...runner.exchange.types import EndpointKind
from ..arms import prompt_protocol
from .answers import captured_of, error_of, take_last_message
from .cells import (
    LARGEST,
    Place,
    is_true,
    json_or_text,
    mapping_of,
    number_of,
    time_of,
    tool_choice_of,
)
from .names import ColumnNames
from .sources import is_chunk, is_response

_CASE = ("input", "messages", "tools", "target", "metadata")
_NUMBERS: Mapping[str, type] = {
    "prompt_tokens": int, "completion_tokens": int, "cost": float, "latency": float, "ttft": float,
}  # fmt: skip
_REMEMBERED = 1000  # sets of tools
_NO_ID = "?"  # of a case until its own is made from its input


@dataclass(frozen=True, slots=True)
class Observed:
    """One row: the answer, and the row's facts about who gave it to what.

    case holds only the row's own facts (`id` always). `columns` are the names of its members that
    it says.
    """

    line: int | None
    captured: Captured
    endpoint_kind: EndpointKind
    case: Case
    columns: frozenset[str]
    model: str
    protocol: AnyProtocol | None
    arm: str
    tool_choice: Any
    trial: int | None
    error: tuple[str, str] | None
    numbers: Mapping[str, Any]
    created: str
    request: Mapping[str, Any] | None


class RowReader:
    """Reads the rows of one source.

    Every error is a BadCase that names the place.

    tools, model, protocol: those of rows that name none. columns, others: as for `Lab.ingest`.
    """

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
        """Read the facts that hold for all rows.

        Raise for tools, columns or a protocol that cannot be read.

        source: the rows, for the names of its columns and for errors.
        tools, model, protocol: those of rows that name none.
        columns, others: as for `Lab.ingest`.
        """
        self.source = source
        self.names = ColumnNames(source, columns, others)
        self.tools = tool_specs(tools)
        self.model = model
        self.protocol = _resolved(protocol)
        # A log says the same few tools and protocols in every row, so each is read once.
        self._tools_by_text: dict[str, Any] = {}
        self._protocols: dict[str, AnyProtocol | None] = {}

    def read(self, line: int | None, row: Any) -> Iterator[Observed]:
        """Yield the answers of a row: one, or as many as its response has choices.

        line: the number of the row in its source, None if rows have none.
        row: a mapping, a text, a response object, or the error of a row that could not be read.
        """
        if isinstance(row, BadCase):
            raise row

        place = Place(self.source, line)
        if isinstance(row, Mapping) and not is_response(row):
            _refuse_recording(row, self.source)
            yield from self._answers(place, self._cells(row))
            return

        if is_chunk(row):
            raise place.bad(
                "a piece of a stream is no answer", got=row, hint="give the list of its pieces"
            )

        yield from self._answers(place, {"raw" if isinstance(row, str) else "response": row})

    def _cells(self, row: Mapping[str, Any]) -> dict[str, Any]:
        # A cell is missing where it is None, or a mark of its library for that.
        cells: dict[str, Any] = {}
        for name, value in self.names.taken(row):
            if not is_missing(value):
                cells[name] = value
            elif name in ("raw", "output") and value is None and self._is_csv():
                cells[name] = ""  # an empty cell of CSV is how an empty answer is written there

        return cells

    def _is_csv(self) -> bool:
        # CSV is the only table counted by lines. It has an empty cell where other tables have an
        # empty string.
        return self.source.table and self.source.unit == "line"

    # answers

    def _answers(self, place: Place, cells: dict[str, Any]) -> Iterator[Observed]:
        # Changes `cells`. The choices of one response share its request and its error.
        request = mapping_of(place, cells.get("request"), "request")
        error = error_of(place, cells)
        take_last_message(cells)

        first = captured_of(place, cells, error, 0)
        if first.choices > 1:
            cells.pop("trial", None)  # they are answers of one request, and counted

        yield self._observed(place, cells, request, error, first)

        for choice in range(1, first.choices):
            further = captured_of(place, cells, error, choice)
            yield self._observed(place, cells, request, error, further)

    def _observed(
        self,
        place: Place,
        cells: dict[str, Any],
        request: Mapping[str, Any] | None,
        error: tuple[str, str] | None,
        captured: Captured,
    ) -> Observed:
        # Adds messages and tools of the request to `cells`.
        body = request or {}
        _complete_case(cells, body)
        case, columns = self._case(place, cells, captured)
        if _offers_native_tools(case, captured, body):
            captured = captured.as_native()

        protocol = self._protocol(place, cells.get("prompt_protocol"), captured)
        kind: EndpointKind = "native_tools" if protocol is None else captured.endpoint_kind
        return Observed(
            line=place.line,
            captured=captured,
            endpoint_kind=kind,
            case=case,
            columns=columns,
            model=self._model(place, cells, captured, body),
            protocol=protocol,
            arm=str(cells.get("arm") or prompt_protocol(protocol)),
            tool_choice=tool_choice_of(cells.get("tool_choice")),
            trial=_trial(place, cells.get("trial")),
            error=error or _error_of_stream(cells, captured),
            numbers=_numbers(place, cells, captured),
            created=time_of(place, cells.get("created")),
            request=request,
        )

    def _model(
        self, place: Place, cells: Mapping[str, Any], captured: Captured, body: Mapping[str, Any]
    ) -> str:
        # Of the row, the response, the request, or the whole source; "unknown" without any of them.
        candidates = (cells.get("model"), captured.model, body.get("model"), self.model)
        model = next((name for name in candidates if name), "unknown")
        if not _is_model_name(model):
            raise place.bad("a model is a name", "model", got=ascii(model))

        return model

    # the case

    def _case(
        self, place: Place, cells: dict[str, Any], captured: Captured
    ) -> tuple[Case, frozenset[str]]:
        # With the names of the members that the row itself says. The id of the answer may become
        # that of the case.
        members = _members_of(cells)
        columns = _columns_of(members)
        members = self._plain_members(place, members)
        if isinstance(members.get("metadata"), Mapping):
            members["metadata"] = redact_named(members["metadata"])

        members.setdefault("messages" if "messages" in members else "input", "")

        id = _case_id(place, cells.get("case_id"))
        case = case_of_members(
            {"id": _NO_ID if id is None else id, **members}, _Same(), self.source, place.line
        )
        if id is None:
            case = replace(case, id=_derived_id(case, columns, captured, place.line))

        return case, columns

    def _plain_members(self, place: Place, members: dict[str, Any]) -> dict[str, Any]:
        # Tools given for the whole source are added where the row has none.
        if "tools" in members:
            members["tools"] = self._tools(place, members["tools"])
        elif self.tools:
            members["tools"] = self.tools

        _settle_input(members)
        if self.source.from_json:
            return members
        return {k: v if _is_final(v) else place.json(v, k) for k, v in members.items()}

    def _tools(self, place: Place, x: Any) -> Any:
        # Equal cells are read once.
        text = x if isinstance(x, str) else repr(x)
        tools = self._tools_by_text.get(text)
        if tools is None:
            tools = _read_tools(place, x, text)
            if len(self._tools_by_text) < _REMEMBERED:
                self._tools_by_text[text] = tools

        return tools

    def _protocol(self, place: Place, name: Any, captured: Captured) -> AnyProtocol | None:
        # None for native, as the provider's own calls are.
        if captured.native:
            return None
        if name is None:
            return self.protocol

        if name not in self._protocols:
            try:
                self._protocols[name] = _resolved(str(name))
            except ToolparseError as e:
                raise place.bad(
                    e.message, "prompt_protocol", got=name, expected=e.expected, hint=e.hint
                ) from e

        return self._protocols[name]


def _refuse_recording(row: Mapping[Any, Any], source: RowSource) -> None:
    # Only the first line of a recording, which has a reader of its own, has this format.
    if row.get("format") == "toolparse-recording":
        raise UnreadableInput(
            "this is a recording of this package",
            got=source.name,
            hint="toolparse_lab.runner.store.recording.import_recording adds it to a store",
        )


def _offers_native_tools(case: Case, captured: Captured, body: Mapping[str, Any]) -> bool:
    # A chat request that offered tools, to which the provider may answer by calls.
    # What the model wrote says more than what the provider made of it.
    if captured.token_text or not case.tools or "tools" not in body:
        return False
    return captured.completion is False


def _is_model_name(model: Any) -> bool:
    if not isinstance(model, str) or not model.strip():
        return False
    return is_storable(model)


def _members_of(cells: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in cells.items() if k in _CASE or k.startswith("metadata_")}


def _columns_of(members: Mapping[str, Any]) -> frozenset[str]:
    # Messages are an input in another column.
    return frozenset("input" if name == "messages" else name for name in members if name in _CASE)


class _Same(Mapping[str, str]):
    # Every member came from the column of its own name.
    def __getitem__(self, key: str) -> str:
        return key

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def _complete_case(cells: dict[str, Any], body: Mapping[str, Any]) -> None:
    # Adds to `cells` where the row has no column of its own.
    for name, other in (("messages", "input"), ("tools", "tools")):
        value = body.get(name)
        if isinstance(value, list) and value and not cells.keys() & {name, other}:
            cells[name] = value


def _error_of_stream(cells: Mapping[str, Any], captured: Captured) -> tuple[str, str] | None:
    # Where the row tells of no failure: a stream with text was cut, one without never began.
    if captured.error is not None:
        has_text = captured.stream and captured.content
        return ("cut_stream" if has_text else "other"), captured.error
    if captured.cut or is_true(cells.get("cut")):
        return "cut_stream", "the stream ended without a finish part"
    return None


def _settle_input(members: dict[str, Any]) -> None:
    # An input may be the JSON of messages; next to an input, messages are dropped.
    text = members.get("input")
    if isinstance(text, str) and text.lstrip()[:1] == "[":
        members["input"] = _messages_or_text(text)

    if "input" in members and "messages" in members:
        del members["messages"]


def _case_id(place: Place, id: Any) -> Any:
    # A frame makes floats of integers next to gaps.
    if id is None or isinstance(id, (str, int)):
        return id

    id = place.json(id, "case_id")
    return str(int(id)) if isinstance(id, float) and id.is_integer() else id


def _read_tools(place: Place, x: Any, text: str) -> tuple[ToolSpec, ...]:
    # x: definitions, one alone, or their JSON text. text: for the error.
    try:
        value = place.json(x, "tools") if place.source.table else x
        return tool_specs(listed(read_strict(value) if isinstance(value, str) else value))
    except (ValueError, RecursionError) as e:
        raise place.bad(
            "the tools cannot be read: not JSON", "tools", got=f"{text[:80]} ({e})"
        ) from None
    except BadToolSpec as e:
        raise place.bad(
            f"the tools cannot be read: {e.message}",
            "tools",
            got=e.got,
            expected=e.expected,
            hint=e.hint,
        ) from None


def _trial(place: Place, x: Any) -> int | None:
    # None if it is to be counted.
    if x is None:
        return None

    number = number_of(place, x, int, "trial")
    if number < 0:
        raise place.bad("a trial is a number from 0", "trial", got=x)

    return int(number)


def _numbers(place: Place, cells: Mapping[str, Any], captured: Captured) -> dict[str, Any]:
    # Columns go before the response's own count.
    numbers = _token_counts(captured.usage or {})
    for name, kind in _NUMBERS.items():
        if name in cells:
            numbers[name] = number_of(place, cells[name], kind, name)

    return numbers


def _token_counts(usage: Mapping[str, Any]) -> dict[str, Any]:
    # In the words of either OpenAI interface. What is not an integer, or larger than a store can
    # hold, drops out.
    counts = {
        "prompt_tokens": usage.get("prompt_tokens", usage.get("input_tokens")),
        "completion_tokens": usage.get("completion_tokens", usage.get("output_tokens")),
    }
    return {k: v for k, v in counts.items() if type(v) is int and abs(v) < LARGEST}


def _resolved(x: Any) -> AnyProtocol | None:
    protocol = any_protocol(x)
    return None if protocol is OPENAI_JSON else protocol


def _is_final(x: Any) -> bool:
    # Needs no conversion to JSON.
    return isinstance(x, str) or (isinstance(x, tuple) and all(isinstance(v, ToolSpec) for v in x))


def _derived_id(case: Case, columns: frozenset[str], captured: Captured, line: int | None) -> str:
    # Made from its question, so that its repetitions are one case. captured, line: where the row
    # has no question.
    if "input" in columns:
        text = f"{tools_digest(case.tools)} {case.input_text}"
        return f"input-{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:10]}"
    return captured.id or f"row-{line}"


@lru_cache(maxsize=1024)
def tools_digest(tools: tuple[ToolSpec, ...]) -> str:
    """Return a digest that tells one set of tools from another.

    tools: in order, which counts. Equal tools give equal digests in every process.
    """
    text = write_canonical([[t.name, t.description, t.schema_json] for t in tools])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _messages_or_text(text: str) -> Any:
    # The text itself where it is not the JSON of messages.
    value = json_or_text(text)
    if not isinstance(value, list) or not value:
        return text
    return value if all(map(_is_message, value)) else text


def _is_message(x: Any) -> bool:
    return isinstance(x, Mapping) and "role" in x
