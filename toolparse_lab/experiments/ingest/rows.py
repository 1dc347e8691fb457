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
from ...parser.any_protocol import AnyProtocol, any_protocol
from ...parser.capture import Captured
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
        """Return the cells of a row by the names of their columns, those that are missing left out.

        row: column -> cell. A cell is missing where it is None, or a mark of its library for that.
        """
        cells: dict[str, Any] = {}
        for name, value in self.names.taken(row):
            if not is_missing(value):
                cells[name] = value
            elif name in ("raw", "output") and value is None and self._is_csv():
                cells[name] = ""  # an empty cell of CSV is how an empty answer is written there

        return cells

    def _is_csv(self) -> bool:
        """Return True for the only tables counted by lines.

        Files of CSV are tables, and have an empty cell where other tables have an empty text.
        """
        return self.source.table and self.source.unit == "line"

    # answers

    def _answers(self, place: Place, cells: dict[str, Any]) -> Iterator[Observed]:
        """Yield an answer for each choice of the row's response.

        place: the row, for errors.
        cells: the row by the names of its columns. It is changed.

        The choices of one response share its request and its error.
        """
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
        """Return one answer with all that the row says about it.

        place: the row, for errors.
        cells: the row by the names of its columns. Messages and tools of the request are added to
        it.
        request: as it was sent, None if the row does not hold it.
        error: the failure that the row tells of, None if it tells of none.
        captured: the answer itself.
        """
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
        """Return the model of an answer: of the row, the response, the request, or the whole
        source.

        place: the row, for the error.
        body: the request as it was sent, empty if the row does not hold it.

        Without any of them it is 'unknown'. Raises BadCase for anything that is not a name.
        """
        candidates = (cells.get("model"), captured.model, body.get("model"), self.model)
        model = next((name for name in candidates if name), "unknown")
        if not _is_model_name(model):
            raise place.bad("a model is a name", "model", got=ascii(model))

        return model

    # the case

    def _case(
        self, place: Place, cells: dict[str, Any], captured: Captured
    ) -> tuple[Case, frozenset[str]]:
        """Return the case of a row, and the names of its members that the row itself says.

        place: the row, for errors.
        cells: the row by the names of its columns.
        captured: the answer, whose id may become that of the case.

        A question that is not in the row is the empty text.
        """
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
        """Return the members of a case as plain JSON, the tools read.

        place: the row, for errors.
        members: of the case. Tools given for the whole source are added where the row has none.
        """
        if "tools" in members:
            members["tools"] = self._tools(place, members["tools"])
        elif self.tools:
            members["tools"] = self.tools

        _settle_input(members)
        if self.source.from_json:
            return members
        return {k: v if _is_final(v) else place.json(v, k) for k, v in members.items()}

    def _tools(self, place: Place, x: Any) -> Any:
        """Tools as ToolSpecs.

        Equal cells are read once.

        place: the row, for errors. x: the cell: definitions, or their JSON text.
        """
        text = x if isinstance(x, str) else repr(x)
        tools = self._tools_by_text.get(text)
        if tools is None:
            tools = _read_tools(place, x, text)
            if len(self._tools_by_text) < _REMEMBERED:
                self._tools_by_text[text] = tools

        return tools

    def _protocol(self, place: Place, name: Any, captured: Captured) -> AnyProtocol | None:
        """Return the prompt protocol of an answer, None for native, as the provider's own calls
        are.

        place: the row, for the error.
        name: the cell of the column `prompt_protocol`, None if the row has none.
        captured: the answer, which may hold calls of the provider's own.

        Raises BadCase for the name of no protocol.
        """
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
    """Raise UnreadableInput for the first line of a recording, which has a reader of its own.

    row: any mapping. Only the first line of a recording has this format.
    source: of the row, for the error.
    """
    if row.get("format") == "toolparse-recording":
        raise UnreadableInput(
            "this is a recording of this package",
            got=source.name,
            hint="toolparse_lab.runner.store.recording.import_recording adds it to a store",
        )


def _offers_native_tools(case: Case, captured: Captured, body: Mapping[str, Any]) -> bool:
    """Return True for a chat request that offered tools, to which the provider may answer by calls.

    case: with the tools of the row. captured: the answer, which knows its endpoint.
    body: the request as it was sent, empty if the row does not hold it.
    """
    # What the model wrote says more than what the provider made of it.
    if captured.token_text or not case.tools or "tools" not in body:
        return False
    return captured.completion is False


def _is_model_name(model: Any) -> bool:
    """Return True for a text that can be stored and is more than white space.

    model: whatever the row, the response or the caller calls the model.
    """
    if not isinstance(model, str) or not model.strip():
        return False
    return is_storable(model)


def _members_of(cells: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cells that are members of a case, its metadata included.

    cells: the row by the names of its columns, of which many say something of the answer only.
    """
    return {k: v for k, v in cells.items() if k in _CASE or k.startswith("metadata_")}


def _columns_of(members: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of the members that a row itself says, metadata aside.

    >>> sorted(_columns_of({"messages": [], "tools": [], "metadata_a": 1}))
    ['input', 'tools']
    """
    # Messages are an input in another column.
    return frozenset("input" if name == "messages" else name for name in members if name in _CASE)


class _Same(Mapping[str, str]):
    """Every member came from the column of its own name."""

    def __getitem__(self, key: str) -> str:
        return key

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def _complete_case(cells: dict[str, Any], body: Mapping[str, Any]) -> None:
    """Take messages and tools from the request where the row has no column of its own for them.

    cells: the row by the names of its columns, which is added to.
    body: the request as it was sent, empty if the row does not hold it.
    """
    for name, other in (("messages", "input"), ("tools", "tools")):
        value = body.get(name)
        if isinstance(value, list) and value and not cells.keys() & {name, other}:
            cells[name] = value


def _error_of_stream(cells: Mapping[str, Any], captured: Captured) -> tuple[str, str] | None:
    """Return the failure that the answer itself shows, where the row tells of none.

    cells: the row, whose column `cut` may say that the stream was cut.
    captured: the answer. A stream with text was cut. One without never began.
    """
    if captured.error is not None:
        has_text = captured.stream and captured.content
        return ("cut_stream" if has_text else "other"), captured.error
    if captured.cut or is_true(cells.get("cut")):
        return "cut_stream", "the stream ended without a finish part"
    return None


def _settle_input(members: dict[str, Any]) -> None:
    """Read an input that is the JSON of messages, and drop messages where there is an input.

    members: of the case, which is changed.
    """
    text = members.get("input")
    if isinstance(text, str) and text.lstrip()[:1] == "[":
        members["input"] = _messages_or_text(text)

    if "input" in members and "messages" in members:
        del members["messages"]


def _case_id(place: Place, id: Any) -> Any:
    """Return the id of a row's case as text or integer.

    A frame makes floats of integers beside gaps.

    place: the row, for errors.
    id: the cell, None if there is none.
    """
    if id is None or isinstance(id, (str, int)):
        return id

    id = place.json(id, "case_id")
    return str(int(id)) if isinstance(id, float) and id.is_integer() else id


def _read_tools(place: Place, x: Any, text: str) -> tuple[ToolSpec, ...]:
    """Return the tools of a cell.

    Raises BadCase. text: the cell for an error.

    place: the row, for errors.
    x: the cell: definitions, one alone, or their JSON text.
    """
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
    """Return the number of a repetition, None if it is to be counted.

    Raises BadCase.

    place: the row, for the error. x: the cell, a number or its text.
    """
    if x is None:
        return None

    number = number_of(place, x, int, "trial")
    if number < 0:
        raise place.bad("a trial is a number from 0", "trial", got=x)

    return int(number)


def _numbers(place: Place, cells: Mapping[str, Any], captured: Captured) -> dict[str, Any]:
    """Tokens, cost and times.

    Columns go before the response's own count.

    place: the row, for errors.
    cells: the row by the names of its columns. captured: the answer, with its usage.

    Raises BadCase for a cell that is not a number of its kind.
    """
    numbers = _token_counts(captured.usage or {})
    for name, kind in _NUMBERS.items():
        if name in cells:
            numbers[name] = number_of(place, cells[name], kind, name)

    return numbers


def _token_counts(usage: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tokens that a response counted itself, in the words of either OpenAI interface.

    What is no integer, or larger than a store can hold, drops out.

    usage: of a response, empty if it has none.

    >>> _token_counts({"input_tokens": 3, "output_tokens": "many"})
    {'prompt_tokens': 3}
    """
    counts = {
        "prompt_tokens": usage.get("prompt_tokens", usage.get("input_tokens")),
        "completion_tokens": usage.get("completion_tokens", usage.get("output_tokens")),
    }
    return {k: v for k, v in counts.items() if type(v) is int and abs(v) < LARGEST}


def _resolved(x: Any) -> AnyProtocol | None:
    """Return the prompt protocol of an arm, None for native.

    Raises UnknownProtocol.

    x: an id, a Protocol, or an object of another's. The provider's own calls are 'native'.
    """
    protocol = any_protocol(x)
    return None if protocol is OPENAI_JSON else protocol


def _is_final(x: Any) -> bool:
    """Return True for a text and for tools that are read already, which need no conversion to JSON.

    x: a member of a case, of any type.
    """
    return isinstance(x, str) or (isinstance(x, tuple) and all(isinstance(v, ToolSpec) for v in x))


def _derived_id(case: Case, columns: frozenset[str], captured: Captured, line: int | None) -> str:
    """Return an id for a case without one: of its question, so that its repetitions are one case.

    case: with its tools and its input.
    columns: the members that the row itself says.
    captured, line: give the id where the row holds no question.
    """
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
    """Return the messages that a text is the JSON of.

    The text itself if it is none.

    text: an input that begins like a list.
    """
    value = json_or_text(text)
    if not isinstance(value, list) or not value:
        return text
    return value if all(map(_is_message, value)) else text


def _is_message(x: Any) -> bool:
    """Return True for a mapping with a role, which every message of a conversation has."""
    return isinstance(x, Mapping) and "role" in x
