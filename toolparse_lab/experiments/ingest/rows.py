"""Rows of another's log: the answer that a row contains, and what it says of who gave it to what.

A row is a mapping (a line of JSONL, a record of a table), a text, or a response object of any
client.
"""

from __future__ import annotations

import hashlib
import json
import marshal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from ...core.errors import BadCase, BadToolSpec, ToolparseError, UnreadableInput
from ...core.toolspec import ToolSpec, tool_specs
from ...core.values import read_strict, write_canonical
from ...entry.capture import Captured
from ...entry.foreign.protocol import AnyProtocol, any_protocol
from ...evals.cases.case import Case, is_storable
from ...evals.cases.loading import case_of_members
from ...evals.cases.row_files import RowSource
from ...evals.cases.rows import is_missing, listed
from ...formats.auto import AUTO
from ...formats.json.openai_json import OPENAI_JSON
from ...runner.exchange.redaction import redact_named
from ...runner.exchange.types import EndpointKind
from ...runner.failures import failure_in
from ..arms import prompt_protocol
from .answers import (
    answer_to_offer,
    captured_of,
    counts_of,
    error_of,
    take_last_message,
    with_argument_texts,
)
from .columns import (
    CREDENTIAL,
    NAMES,
    ColumnNames,
    Place,
    Settings,
    is_true,
    json_or_text,
    tool_choice_of,
)
from .shapes import Log, ShapedRow
from .shapes.parts import ASKED, OF_REQUEST, messages_of, of_request
from .sources import kind_of

_CASE = ("input", "messages", "tools", "target", "metadata")
_OF_OWN_CASE = ("case_id", "target", "trial", "metadata")
_NUMBERS: Mapping[str, type] = {
    "prompt_tokens": int, "completion_tokens": int, "cost": float, "latency": float, "ttft": float,
}  # fmt: skip
_SERVED = {"model": "served_model", "provider": "served_by", "endpoint": "endpoint"}
# Every member of a case came from the column of its own name.
_SAME = {name: name for name in NAMES}
_REMEMBERED = 1000  # sets of tools
_NO_ID = "?"  # of a case until its own is made from its input


@dataclass(frozen=True, slots=True)
class Observed:
    """One row: the answer, and the row's facts about who gave it to what.

    case has only the row's own facts (`id` always). `columns` are the names of its members that
    it says. told: its own word for its protocol. unlifted: tools were offered, and a call stands in
    the text instead of the server's own calls. arguments_lost: the arguments of the calls are not
    the text that the model wrote. served: who answered and where, as its columns say. whole: a
    digest of the row, but for what asks its question. named: it has an id of its own, so that an
    equal row is a copy of it, and no second trial.
    """

    line: int | None
    captured: Captured
    endpoint_kind: EndpointKind
    case: Case
    columns: frozenset[str]
    model: str
    protocol: AnyProtocol | None
    told: str | None
    arm: str
    tool_choice: Any
    trial: int | None
    error: tuple[str, str] | None
    numbers: Mapping[str, Any]
    created: str
    request: Mapping[str, Any] | None
    arguments_lost: bool
    unlifted: bool
    whole: str
    served: Mapping[str, str]
    named: bool


class RowReader:
    """Reads the rows of one source. Every error is a BadCase that names the place.

    source: the rows, for the names of its columns and for errors. Raises for tools, columns or a
    protocol that cannot be read.
    """

    def __init__(self, source: RowSource, settings: Settings) -> None:
        self.source = source
        self.names = ColumnNames(source, settings)
        self.tools = tool_specs(settings.tools)
        self.model = settings.model
        self.protocol = resolved(settings.protocol)
        # A log says the same few tools and protocols in every row, so each is read once.
        self._known_tools: dict[str | bytes, Any] = {}
        self._protocols: dict[str, AnyProtocol | None] = {}

    def read(self, line: int | None, row: Any, log: Log) -> Iterator[Observed]:
        """Yield the answers of a row: one, or as many as its response has choices.

        line: the number of the row in its source, None if rows have none. row: a mapping, a text, a
        response object, or the error of a row that could not be read. log: counts what is left out.
        """
        if isinstance(row, BadCase):
            raise row
        place, offers = Place(self.source, line), False
        if type(row) is ShapedRow:
            place = Place(self.source, line, row.shape.name, row.shape.keys)
            offers = row.offers
        kind = "row" if place.shape else kind_of(row)
        if kind == "row":
            # Only the first line of a recording, which has a reader of its own, has this format.
            if row.get("format") == "toolparse-recording":
                raise UnreadableInput(
                    "this is a recording of this package",
                    got=self.source.name,
                    hint="toolparse_lab.runner.store.recording.import_recording adds it to a store",
                )
            if not place.shape:
                # So that an error names the file's own column.
                place = Place(self.source, line, keys=self.names.keys_of(row))
            cells = self._cells(row, log)
        elif kind == "chunk":
            raise place.bad(
                "a piece of a stream is no answer", got=row, hint="give the list of its pieces"
            )
        else:
            cells = {"raw" if isinstance(row, str) else "response": row}
            if isinstance(row, Mapping) and any(row.get(name) for name in ASKED):
                # Its question stands beside the members of the answer.
                cells["request"] = {name: row[name] for name in OF_REQUEST if name in row}
                cells |= {name: row[name] for name in _OF_OWN_CASE if row.get(name) is not None}

        # The choices of one response share its request and its error.
        request = place.mapping(cells.get("request"), "request")
        error = error_of(place, cells)
        if error is None and not cells.keys() & {"raw", "output", "tool_calls"}:
            error = failure_in(cells.get("response"))
            if error is not None:
                del cells["response"]
        take_last_message(cells)
        first = captured_of(place, cells, error, 0)
        if first.choices > 1:
            cells.pop("trial", None)  # they are answers of one request, and counted
        for choice in range(first.choices):
            answer = captured_of(place, cells, error, choice) if choice else first
            yield self._observed(place, cells, request, error, answer, offers, log)

    def _cells(self, row: Mapping[str, Any], log: Log) -> dict[str, Any]:
        # A cell is missing where it is None, or a mark of its library for that. CSV is the only
        # table counted by lines: an empty cell is how an empty answer is written there.
        is_csv = self.source.table and self.source.unit == "line"
        if len(log.seen) < len(self.names.awaited):
            log.seen |= self.names.awaited.intersection(row)
        cells: dict[str, Any] = {}
        for column, name in self.names.taken(row):
            if name == CREDENTIAL:
                log.leave_out(f"column {column}", "it has the name of a credential")
                continue
            value = row[column]
            if not is_missing(value):
                cells[name] = value
            elif is_csv and name in ("raw", "output") and value is None:
                cells[name] = ""
        return cells

    def _observed(
        self,
        place: Place,
        cells: dict[str, Any],
        request: Mapping[str, Any] | None,
        error: tuple[str, str] | None,
        captured: Captured,
        offers: bool,
        log: Log,
    ) -> Observed:
        # Adds messages and tools of the request to `cells` where the row has no column of them.
        body = request or {}
        asked = _asked_in(body)
        if not cells.keys() & {"messages", "input"}:
            cells |= {k: asked[k] for k in ("messages", "input") if k in asked}
        if "tools" in asked and "tools" not in cells:
            cells["tools"] = asked["tools"]
        captured, has_objects = with_argument_texts(cells, captured)
        case, columns = self._case(place, cells, captured, log)
        told = cells.get("prompt_protocol")
        protocol_is_open = told is None and self.protocol is AUTO
        # A chat request that offered tools, to which the provider may answer by calls.
        offers |= bool(case.tools) and "tools" in asked
        # The conversation before it has calls that the provider made.
        offers |= protocol_is_open and _has_calls(case.input)
        offers &= captured.completion is False
        unlifted = False
        if offers:
            native, unlifted = answer_to_offer(captured, case.tools)
            # Under a protocol that is named, a failure or an answer in prose belongs to the arm of
            # the others, whose calls stand in the text.
            if unlifted or captured.tool_calls or protocol_is_open or not self._is_text(told):
                captured = native

        protocol = None
        # A call that the server left in the text was asked for as its other calls were.
        if not unlifted or told is not None or self.protocol is not AUTO:
            protocol = self._protocol(place, told, captured)
        # Columns go before the response's own count.
        numbers = counts_of(captured) | {
            name: place.number(cells[name], kind, name)
            for name, kind in _NUMBERS.items()
            if name in cells
        }
        # Zeros beside an answer count nothing, in a column as in its usage.
        names = ("prompt_tokens", "completion_tokens")
        counts: dict[str, Any] = {name: numbers[name] for name in names if name in numbers}
        if zeros := counts.keys() - counts_of(replace(captured, usage=counts)):
            numbers = {k: v for k, v in numbers.items() if k not in zeros}
            captured = replace(captured, usage={**(captured.usage or {}), **counts})
        created = place.time(cells.get("created"))
        # Of the row, the request, the response, or the whole source. An answer is that of the model
        # that was asked, as a request that failed is: `served_model` says who gave it.
        candidates = (cells.get("model"), asked.get("model"), captured.model, self.model)
        model = next((name for name in candidates if name), "unknown")
        if not isinstance(model, str) or not model.strip() or not is_storable(model):
            raise place.bad("a model is a name", "model", got=ascii(model))

        trial = cells.get("trial")
        if trial is not None:
            number = place.number(trial, int, "trial")
            if number < 0:
                raise place.bad("a trial is a number from 0", "trial", got=trial)
            trial = int(number)
        return Observed(
            line=place.line,
            captured=captured,
            endpoint_kind=(
                "native_tools" if protocol is None and not unlifted else captured.endpoint_kind
            ),
            case=case,
            columns=columns,
            model=model,
            protocol=protocol,
            told=None if protocol is None or told is None else str(told),
            arm=str(cells.get("arm") or prompt_protocol(protocol)),
            tool_choice=tool_choice_of(cells.get("tool_choice")),
            trial=trial,
            error=error or _error_of_stream(cells, captured),
            numbers=numbers,
            created=created,
            request=request,
            arguments_lost=has_objects
            or (bool(captured.tool_calls) and cells.get("arguments_text") == "lost"),
            unlifted=unlifted,
            served={
                name: str(cells[column]) for name, column in _SERVED.items() if column in cells
            },
            whole=_whole(place, cells, captured, [numbers, created, case.metadata]),
            named=bool(captured.id) or _has_id(cells),
        )

    def _case(
        self, place: Place, cells: dict[str, Any], captured: Captured, log: Log
    ) -> tuple[Case, frozenset[str]]:
        # With the names of the members that the row itself says.
        members = {k: v for k, v in cells.items() if k in _CASE or k.startswith("metadata_")}
        # Messages are an input in another column.
        columns = frozenset("input" if k == "messages" else k for k in members if k in _CASE)
        # Tools given for the whole source are added where the row has none.
        if "tools" in members:
            members["tools"] = self._tools(place, members["tools"])
        elif self.tools:
            members["tools"] = self.tools
        # An input may be the JSON of messages; next to an input, messages are dropped.
        text = members.get("input")
        if (isinstance(text, str) and text.lstrip()[:1] == "[") or isinstance(text, list):
            members["input"] = _messages_or_text(text)
        if "input" in members:
            members.pop("messages", None)
        if not self.source.from_json:
            members = {k: v if _is_final(v) else place.json(v, k) for k, v in members.items()}
        target = members.get("target")
        if isinstance(target, str) and not isinstance(json_or_text(target), (list, Mapping)):
            # Words about the answer are no calls to compare it with.
            members["metadata_target"] = members.pop("target")
            columns -= {"target"}
            log.leave_out(
                "targets",
                "they are no JSON: kept as metadata_target, and their rows are not graded",
            )
        if isinstance(members.get("metadata"), Mapping):
            members["metadata"] = redact_named(members["metadata"])
        members.setdefault("messages" if "messages" in members else "input", "")

        id = cells.get("case_id")
        if id is not None and not isinstance(id, (str, int)):
            id = place.json(id, "case_id")
            # A frame makes floats of integers next to gaps.
            id = str(int(id)) if isinstance(id, float) and id.is_integer() else id
        members = {"id": _NO_ID if id is None else id, **members}
        # Those of a shape are only the columns that it knows.
        origins = {**_SAME, **place.keys} if place.shape or not place.keys else place.keys
        case = case_of_members(members, origins, self.source, place.line)
        if id is None:
            # Made from its question, so that its repetitions are one case, if the row has one.
            asked = "input" in columns
            own = question_id(case) if asked else captured.id or f"row-{place.line}"
            case = replace(case, id=own)
        return case, columns

    def _tools(self, place: Place, x: Any) -> Any:
        # x: definitions, one alone, or their JSON text. Equal cells are read once.
        identity = x if isinstance(x, str) else _identity_of(x)
        tools = self._known_tools.get(identity)
        if tools is not None:
            return tools
        try:
            value = place.json(x, "tools") if self.source.table else x
            tools = tool_specs(listed(read_strict(value) if isinstance(value, str) else value))
        except (ValueError, RecursionError) as e:
            raise place.bad(
                "the tools cannot be read: not JSON",
                "tools",
                got=f"{(x if isinstance(x, str) else repr(x))[:80]} ({e})",
            ) from None
        except BadToolSpec as e:
            raise place.bad(
                f"the tools cannot be read: {e.message}",
                "tools",
                got=e.got,
                expected=e.expected,
                hint=e.hint,
            ) from None
        if len(self._known_tools) < _REMEMBERED:
            self._known_tools[identity] = tools
        return tools

    def _is_text(self, told: Any) -> bool:
        return str(told) != "native" if told is not None else self.protocol is not None

    def _protocol(self, place: Place, name: Any, captured: Captured) -> AnyProtocol | None:
        # None for native, as the provider's own calls are.
        if captured.native:
            return None
        if name is None:
            return self.protocol
        if name not in self._protocols:
            try:
                self._protocols[name] = resolved(str(name))
            except ToolparseError as e:
                raise place.bad(
                    e.message, "prompt_protocol", got=name, expected=e.expected, hint=e.hint
                ) from e
        return self._protocols[name]


def _identity_of(x: Any) -> str | bytes:
    try:
        return marshal.dumps(x, 2)  # equal bytes are equal values
    except ValueError:  # what is not plain JSON
        return repr(x)


# Members of a tool's own row that no other answer has.
_IDS = ("id", "span_id", "spanId", "request_id", "requestId", "uuid", "call_id")
# Cells that are told by what was read of them; the case and the arm are in the key besides.
_TOLD = frozenset(
    {*_CASE, *_NUMBERS, "created", "case_id", "trial", "model", "prompt_protocol", "arm",
     "tool_choice", "stream", "cut"}
)  # fmt: skip


def _has_id(cells: Mapping[str, Any]) -> bool:
    row = cells.row if isinstance(cells, ShapedRow) else None
    return row is not None and any(row.get(name) for name in _IDS)


def _whole(place: Place, cells: Mapping[str, Any], captured: Captured, told: list[Any]) -> str:
    # Equal in every table that has the same row, as a text or as what the text is the JSON of.
    parts: list[Any] = [
        *told,
        captured.usage,
        captured.id,
        captured.chunks,
        is_true(cells.get("cut")),
    ]
    for name in sorted(cells.keys() - _TOLD):
        value = cells[name]
        if name.startswith("metadata_"):
            continue
        if isinstance(value, str):
            value = json_or_text(value) if name != "raw" and value[:1] in "{[" else value
        else:
            try:
                value = place.json(value, name)
            except BadCase:  # an object of a client, of which all that is read is told above
                value = None
        parts += name, value
    if isinstance(cells, ShapedRow):
        parts.append(cells.row)
    try:
        text = json.dumps(parts, sort_keys=True, default=str)
    except (TypeError, ValueError, RecursionError):  # keys of several types
        text = repr(parts)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _error_of_stream(cells: Mapping[str, Any], captured: Captured) -> tuple[str, str] | None:
    # Where the row tells of no failure: a stream with text was cut, one without never began.
    if captured.error is not None:
        has_text = captured.stream and captured.content
        return ("cut_stream" if has_text else "other"), captured.error
    if captured.cut or is_true(cells.get("cut")):
        return "cut_stream", "the stream ended without a finish part"
    return None


def beside_calls(answers: Sequence[Observed]) -> Iterator[Observed]:
    """Yield answers, and those that leave open what they answered as answers to an offer of tools
    where the same model answered others by the provider's own calls: then prose and failures are
    what came of the same requests, and no arm of their own.
    """
    called = {answer.model for answer in answers if answer.captured.tool_calls}
    for answer in answers:
        captured = answer.captured
        is_open = answer.protocol is AUTO and answer.told is None and answer.model in called
        if is_open and not captured.completion and not captured.token_text:
            native, unlifted = answer_to_offer(captured, answer.case.tools)
            if not unlifted:
                arm = prompt_protocol(None) if answer.arm == AUTO.id else answer.arm
                answer = replace(
                    answer, captured=native, endpoint_kind="native_tools", protocol=None, arm=arm
                )
        yield answer


def resolved(x: Any) -> AnyProtocol | None:
    """Return the protocol of rows, None for the provider's own calls. Raises UnknownProtocol."""
    protocol = any_protocol(x)
    return None if protocol is OPENAI_JSON else protocol


def _is_final(x: Any) -> bool:
    # Needs no conversion to JSON.
    return isinstance(x, str) or (isinstance(x, tuple) and all(isinstance(v, ToolSpec) for v in x))


def question_id(case: Case, digits: int = 10) -> str:
    """Return the id of a case whose row names none, the same for the same question and tools.

    digits: of its digest. Ten are those of all runs so far, and of some hundred thousand questions
    two may have the same.
    """
    question = f"{tools_digest(case.tools)} {case.input_text}"
    digest = hashlib.sha256(question.encode("utf-8", "surrogatepass")).hexdigest()
    return f"input-{digest[:digits]}"


@lru_cache(maxsize=1024)
def tools_digest(tools: tuple[ToolSpec, ...]) -> str:
    """Return a digest that tells one set of tools from another.

    tools: in order, which counts. Equal tools give equal digests in every process.
    """
    text = write_canonical([[t.name, t.description, t.schema_json] for t in tools])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _has_calls(asked: Any) -> bool:
    return isinstance(asked, (list, tuple)) and any(
        isinstance(message, Mapping) and message.get("tool_calls") for message in asked
    )


def _messages_or_text(asked: Any) -> Any:
    # The text itself where it is not the JSON of messages, of any interface.
    value = json_or_text(asked) if isinstance(asked, str) else asked
    if not isinstance(value, list) or not value:
        return asked
    return messages_of(value) or asked


def _asked_in(body: Mapping[str, Any]) -> Mapping[str, Any]:
    # The messages, tools and model of a request, under our names.
    if not body:
        return body
    cells = of_request(body)
    asked = {name: cells[name] for name in ("messages", "input", "model") if cells.get(name)}
    if tools := (cells["request"] or {}).get("tools"):
        asked["tools"] = tools
    elif "tools" in body:
        asked["tools"] = body["tools"]
    messages = body.get("messages")
    if (
        isinstance(messages, list)
        and messages
        and messages_of(messages) is messages
        and not body.get("system")
    ):
        asked["messages"] = messages
    return asked
