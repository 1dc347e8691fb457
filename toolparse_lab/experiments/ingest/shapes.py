"""Shapes of other people's logs, known by their keys: spans, exports, results of benchmarks,
training data.

`tp.shapes()` lists them; `Lab.ingest` finds the shape of a source by itself.
"""

# How it works. A row of a shape becomes rows under our own names of columns (`columns.NAMES`), one
# for each answer in it, and is read like every other from there on. A shape is a predicate on the
# row's keys and a reader of a few lines, found in the order of `_SHAPES`: what holds others, such
# as a file of spans, comes first, and what has few keys of its own last. The shape of the row
# before is tried first. Rows of no shape go on as they came.
#
# Readers ask for members by `at`, which never fails, and raise `_Damaged` where a key that should
# hold the answer holds something else: a row of a shape that is damaged is refused with its line,
# its shape and the key. What is no answer at all (a span of a tool, say) is counted and left out.

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

from ...core.errors import BadCase, UnknownName, near
from ...core.values import write_canonical
from ...evals.cases.row_files import RowSource
from ...evals.cases.rows import is_missing, json_value
from .attributes import at, attributes_of, items_of, value_of
from .columns import json_or_text
from .sources import is_response

Row: TypeAlias = Mapping[str, Any]
Cells: TypeAlias = dict[str, Any]

PLAIN = "rows"
"""The name by which `shape=` says that a source has no shape but columns of its own."""

CONVERSATION = "conversation_id"
"""The metadata that holds the answers of one conversation together."""


@dataclass(frozen=True, slots=True)
class Shape:
    """One shape that `Lab.ingest` knows.

    Attributes:
        name: as `shape=` takes it.
        title: what writes it.
        keys: the columns that are read of it -> where each stands.
        lost: what such a log no longer has.
        knows: returns True for a row of this shape.

    >>> import toolparse_lab as tp
    >>> tp.shapes()["langsmith"].keys["model"]
    'extra.invocation_params.model'
    """

    name: str
    title: str
    keys: Mapping[str, str]
    lost: str
    knows: Callable[[Row], bool] = field(repr=False)
    read: Callable[[Row, Log], Iterator[Cells]] = field(repr=False)


class ShapedRow(dict[str, Any]):
    """One answer of a shape's row, by our own names of columns."""

    __slots__ = ("shape",)

    def __init__(self, shape: Shape, cells: Cells) -> None:
        super().__init__(cells)
        self.shape = shape


class Log:
    """What is known of a source beside the row that is read.

    requests: the lines of the batch that was asked, by `custom_id`.
    """

    def __init__(self, name: str, requests: Mapping[str, Row] | None = None) -> None:
        self.name = name
        self.requests = requests or {}
        self.line: int | None = None
        self.answers: Counter[str] = Counter()  # by the name of their shape
        self.left_out: Counter[tuple[str, str]] = Counter()  # (what, why)
        self.conversations = False
        self._without: Counter[str] = Counter()

    def to_dict(self) -> dict[str, Any]:
        """Return what a run's record says of its source's shapes."""
        if not self.answers:
            return {}
        return {
            "shapes": dict(self.answers),
            "lost": self.losses(),
            **({"cluster": f"metadata_{CONVERSATION}"} if self.conversations else {}),
        }

    def leave_out(self, what: str, why: str) -> None:
        self.left_out[what, why] += 1

    def count(self, shape: Shape, cells: Cells) -> None:
        self.answers[shape.name] += 1
        body = cells.get("request") or {}
        self._without["tools"] += not (cells.get("tools") or body.get("tools"))
        self._without["question"] += not any(
            (cells.get("messages"), cells.get("input"), body.get("messages"))
        )
        self._without["arguments"] += cells.get("arguments_text") == "lost"
        self.conversations |= f"metadata_{CONVERSATION}" in cells

    def losses(self) -> list[str]:
        """Return what the answers of this source no longer have, a sentence each."""
        total = self.answers.total()
        lost = [f"{name}: {_SHAPES[name].lost}" for name in self.answers]
        if n := self._without["tools"]:
            lost.append(f"no tools are in {n} of {total} answers: pass tools= or cases=")
        if n := self._without["question"]:
            lost.append(f"no question is in {n} of {total} answers")
        if n := self._without["arguments"]:
            lost.append(
                f"the text of arguments is gone in {n} of {total} answers, which were kept as "
                "objects: strictness is not judged there"
            )
        return lost


def requests_by_id(source: Any) -> dict[str, Row]:
    """Return the requests of a batch by `custom_id`. source: its file, or rows."""
    from .sources import answers_of

    rows = (row for _, row in answers_of(source).rows if isinstance(row, Mapping))
    return {str(row["custom_id"]): row for row in rows if "custom_id" in row}


def shapes() -> dict[str, Shape]:
    """Return the shapes that `Lab.ingest` knows by their keys, by name."""
    return dict(_SHAPES)


def shaped(rows: RowSource, log: Log, name: str | None = None) -> RowSource:
    """Return a source whose rows of a known shape are `ShapedRow`s, one for each answer.

    name: of the shape that all rows have; None to know each by its keys. A table is of a shape if
    its first row is. Raises UnknownName for a shape that does not exist.
    """
    if name == PLAIN:
        return rows
    if name is not None and name not in _SHAPES:
        raise UnknownName(
            "there is no such shape of a log",
            got=name,
            expected=", ".join((*_SHAPES, PLAIN)),
            hint=near(name, (*_SHAPES, PLAIN)) or "tp.shapes() says how each is known",
        )
    forced = None if name is None else _SHAPES[name]
    if rows.table and forced is None:
        first = next(rows.rows, None)
        if first is None:
            return rows
        rows = replace(rows, rows=chain([first], rows.rows))
        if not isinstance(first[1], Mapping) or _shape_of(_plain(rows, *first), None) is None:
            return rows
    all_rows = _Rows(rows, log, forced)
    return replace(rows, rows=iter(all_rows), columns=None, table=False)


class _Rows:
    def __init__(self, rows: RowSource, log: Log, forced: Shape | None) -> None:
        self._source, self._log, self._forced = rows, log, forced
        self._last: Shape | None = None
        self._responses: set[type] = set()  # of clients' objects that have no shape

    def __iter__(self) -> Iterator[tuple[int | None, Any]]:
        for line, row in self._source.rows:
            try:
                for one in self._read(line, row):
                    yield line, one
            except BadCase as e:
                yield line, e

    def _read(self, line: int | None, row: Any) -> Iterator[Any]:
        known = row if isinstance(row, Mapping) else self._dumped(row)
        shape = None if known is None else self._shape_of(known)
        inner = _inside(known) if known is not None and shape is None else None
        if known is not None and shape is not None:
            yield from self._answers(shape, line, _plain(self._source, line, known))
        elif inner is not None:
            for item in inner:
                yield from self._read(line, item)
        elif self._forced is not None and not isinstance(row, BadCase):
            got = row if known is None else ", ".join(map(str, list(known)[:12]))
            raise self._source.bad(
                f"this is no row of {self._forced.name} ({self._forced.title})",
                line,
                got=got,
                expected=", ".join(dict.fromkeys(self._forced.keys.values())),
                hint="leave shape out to have each row known by its keys",
            )
        else:
            yield row

    def _shape_of(self, row: Row) -> Shape | None:
        if self._forced is not None:
            return self._forced if self._forced.knows(row) else None
        return _shape_of(row, self._last)

    def _dumped(self, row: Any) -> Row | None:
        # A client's own object of a span or a run, as its JSON.
        if type(row) in self._responses or not hasattr(row, "model_dump"):
            return None
        dumped = row.model_dump(mode="json", by_alias=True)
        if isinstance(dumped, Mapping) and self._shape_of(dumped) is not None:
            return dumped
        self._responses.add(type(row))
        return None

    def _answers(self, shape: Shape, line: int | None, row: Row) -> Iterator[ShapedRow]:
        self._last = shape
        self._log.line = line
        try:
            for cells in shape.read(row, self._log):
                kept = {k: v for k, v in cells.items() if not is_missing(v)}
                self._log.count(shape, kept)
                yield ShapedRow(shape, kept)
        except _Damaged as e:
            raise self._source.bad(
                f"{shape.name}: {e.message}", line, e.key, got=e.got, expected=shape.keys.get(e.key)
            ) from None


class _Damaged(Exception):
    def __init__(self, key: str, message: str, got: Any = None) -> None:
        super().__init__(message)
        self.key, self.message, self.got = key, message, got


def _plain(source: RowSource, line: int | None, row: Row) -> Row:
    # Frames and clients have values of their own; what came as JSON is plain.
    if source.from_json:
        return row
    return {
        str(name): json_value(value, source, line, str(name))
        for name, value in row.items()
        if not (source.table and is_missing(value))
    }


# Exports that wrap their rows in an object, by the members that hold them.
_WRAPPERS = ("data", "observations", "runs", "spans", "calls", "rows", "results", "samples")


def _inside(row: Row) -> list[Row] | None:
    for name in _WRAPPERS:
        inner = row.get(name)
        if isinstance(inner, list) and inner and all(isinstance(x, Mapping) for x in inner):
            if any(_shape_of(x, None) for x in inner[:20]):
                return inner
    return None


def _shape_of(row: Row, last: Shape | None) -> Shape | None:
    if last is not None and last.knows(row):
        return last
    return next((shape for shape in _SHAPES.values() if shape.knows(row)), None)


# -- parts that shapes share

_ROLES = {
    "human": "user", "humanmessage": "user", "input": "user", "ai": "assistant", "bot": "assistant",
    "aimessage": "assistant", "aimessagechunk": "assistant", "gpt": "assistant",
    "model": "assistant", "chatgpt": "assistant", "systemmessage": "system", "toolmessage": "tool",
    "function_response": "tool", "observation": "tool", "tool_response": "tool", "tool_result":
    "tool", "function": "tool", "functionmessage": "tool", "humanmessagechunk": "user",
}  # fmt: skip
_NANOSECONDS, _MILLISECONDS = 10**16, 10**11  # from here on a number since 1970 is one of these
_PARAMS = ("temperature", "top_p", "max_tokens", "stop", "seed", "tool_choice", "response_format")


def _role(word: Any) -> str:
    role = str(word or "user").lower()
    return _ROLES.get(role, role)


def _text(content: Any) -> str | None:
    # The text of a message's content: a string, or parts.
    if content is None or isinstance(content, str):
        return content
    if not isinstance(content, list):
        return write_canonical(content)
    texts = []
    for part in content:
        text = part if isinstance(part, str) else at(part, "text") or at(part, "content")
        if isinstance(text, str) and at(part, "type") not in ("thinking", "reasoning"):
            texts.append(text)
    return "".join(texts)


@dataclass(slots=True)
class _Message:
    # An assistant's message. lost: the text of an argument was thrown away by who kept it.
    text: str | None = None
    reasoning: str = ""
    calls: list[Cells] = field(default_factory=list)
    lost: bool = False

    def call(self, name: Any, arguments: Any, id: Any = None) -> None:
        # The text of arguments says what the model wrote; a value only what was made of it.
        if not isinstance(arguments, str):
            self.lost = True
            arguments = write_canonical({} if arguments is None else arguments)
        call = {"type": "function", "function": {"name": name, "arguments": arguments}}
        self.calls.append(call if id is None else {"id": str(id), **call})

    def take_calls(self, calls: Any) -> None:
        for call in items_of(calls):
            function = at(call, "function")
            inner = function if isinstance(function, Mapping) else call
            name = function if isinstance(function, str) else at(inner, "name")
            key = next((k for k in ("arguments", "args", "input") if k in (inner or {})), None)
            self.call(name, None if key is None else inner[key], at(call, "id"))

    def to_dict(self) -> Cells:
        message: Cells = {"role": "assistant", "content": self.text}
        if self.reasoning:
            message["reasoning_content"] = self.reasoning
        if self.calls:
            message["tool_calls"] = self.calls
        return message

    def cells(self, finish: Any = None) -> Cells:
        return _answer([self], [finish])


def _answer(messages: list[_Message], finishes: Iterable[Any] = ()) -> Cells:
    reasons = list(finishes)
    reasons += [None] * (len(messages) - len(reasons))
    choices = [
        {"index": i, "message": message.to_dict(), "finish_reason": reason}
        for i, (message, reason) in enumerate(zip(messages, reasons, strict=False))
    ]
    lost = "lost" if any(message.lost for message in messages) else None
    return {"response": {"choices": choices}, "arguments_text": lost}


def _message(x: Any) -> _Message:
    # Of a message in the words of OpenAI, or nearly so.
    made = _Message(_text(at(x, "content")))
    made.reasoning = _text(at(x, "reasoning_content") or at(x, "reasoning")) or ""
    made.take_calls(at(x, "tool_calls"))
    for part in items_of(at(x, "content")) if isinstance(at(x, "content"), list) else ():
        if at(part, "type") == "tool_use" and not at(x, "tool_calls"):
            made.call(at(part, "name"), at(part, "input"), at(part, "id"))
        elif at(part, "type") in ("thinking", "reasoning"):
            made.reasoning += str(at(part, "thinking") or at(part, "text") or "")
    legacy = at(x, "function_call")
    if isinstance(legacy, Mapping):
        made.call(at(legacy, "name"), at(legacy, "arguments"))
    return made


def _asked(messages: Any) -> list[Cells] | None:
    # The conversation before an answer, as OpenAI has it.
    asked = []
    for x in items_of(messages):
        if not isinstance(x, Mapping):
            return None
        role = _role(x.get("role") or x.get("from"))
        message: Cells = {"role": role, "content": x.get("content", x.get("value"))}
        if x.get("tool_calls"):
            made = _Message()
            made.take_calls(x["tool_calls"])
            message["tool_calls"] = made.calls
        for name in ("tool_call_id", "name"):
            if isinstance(x.get(name), str):
                message[name] = x[name]
        asked.append(message)
    return asked or None


def _question(asked: Any) -> Cells:
    # Of what was sent: messages, their JSON, or a text.
    asked = value_of(asked)
    if isinstance(asked, list) and (messages := _asked(asked)):
        return {"messages": messages}
    if isinstance(asked, str) and asked:
        return {"input": asked}
    return {} if not asked else {"input": write_canonical(asked)}


def _tools(x: Any, key: str) -> list[Any] | None:
    # Definitions of functions, in any provider's form; what a provider runs itself has none.
    if x is None or x in ("", "null"):
        return None
    value = value_of(x)
    if isinstance(value, str):
        raise _Damaged(key, "the tools are no JSON", x[:120])
    tools: list[Any] = []
    for tool in [value] if isinstance(value, Mapping) and "name" in value else items_of(value):
        tool = value_of(tool)
        declared = at(tool, "functionDeclarations") or at(tool, "function_declarations")
        spec = at(tool, "toolSpec")
        if declared:
            tools += items_of(declared)
        elif isinstance(spec, Mapping):
            schema = at(spec, "inputSchema", "json") or at(spec, "inputSchema")
            tools.append({**spec, "inputSchema": schema})
        elif isinstance(tool, Mapping) and (at(tool, "function", "name") or tool.get("name")):
            tools.append(tool)
    return tools or None


def _request(tools: Any, params: Any = None, **more: Any) -> Cells | None:
    # A request that offered tools, to which the server was to answer by calls.
    body = dict(params) if isinstance(params, Mapping) else {}
    body.update({name: value for name, value in more.items() if value is not None})
    if tools:
        body["tools"] = tools
    return body or None


def _seconds(x: Any) -> float | None:
    # Seconds since 1970 of a time in any of the usual forms.
    if isinstance(x, str):
        if not x.strip().isdecimal():
            try:
                return datetime.fromisoformat(x.replace("Z", "+00:00")).timestamp()
            except ValueError:
                return None
        x = int(x)
    if isinstance(x, bool) or not isinstance(x, (int, float)) or x <= 0:
        return None
    scale = 10**9 if x >= _NANOSECONDS else 10**3 if x >= _MILLISECONDS else 1
    return float(x) / scale


def _times(start: Any, end: Any, first: Any = None) -> Cells:
    begun, ended, came = _seconds(start), _seconds(end), _seconds(first)
    cells: Cells = {"created": start if isinstance(start, str) and begun != start else begun}
    if isinstance(start, str) and start.strip().isdecimal():
        cells["created"] = begun
    if begun is not None and ended is not None and ended >= begun:
        cells["latency"] = round(ended - begun, 6)
    if begun is not None and came is not None and came >= begun:
        cells["ttft"] = round(came - begun, 6)
    return cells


def _count(x: Any) -> int | None:
    if isinstance(x, str) and x.isdecimal():
        return int(x)
    return int(x) if isinstance(x, (int, float)) and not isinstance(x, bool) and x >= 0 else None


def _tokens(sent: Any, received: Any) -> Cells:
    return {"prompt_tokens": _count(sent), "completion_tokens": _count(received)}


def _number(x: Any) -> float | None:
    is_number = isinstance(x, (int, float)) and not isinstance(x, bool)
    return float(x) if is_number else None


def _conversation(id: Any) -> Cells:
    return {} if id in (None, "") else {f"metadata_{CONVERSATION}": str(id)}


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None and value != ""), None)


def _turns(messages: list[Any], id: Any, line_name: str) -> Iterator[tuple[Cells, Any]]:
    # Every assistant's message of a conversation: its cells, and the message.
    places = [i for i, m in enumerate(messages) if _role(at(m, "role") or at(m, "from")) == "assistant"]
    for number, place in enumerate(places):
        cells: Cells = {"messages": _asked(messages[:place])}
        if len(places) > 1:
            name = id if id is not None else line_name
            cells["case_id"] = f"{name}#{number}"
            cells |= _conversation(name)
        elif id is not None:
            cells["case_id"] = id
        yield cells, messages[place]


# -- the shapes

_SHAPES: dict[str, Shape] = {}


def _shape(
    name: str,
    title: str,
    keys: Mapping[str, str],
    lost: str,
    knows: Callable[[Row], bool],
) -> Callable[[Callable[[Row, Log], Iterator[Cells]]], Callable[[Row, Log], Iterator[Cells]]]:
    def add(read: Callable[[Row, Log], Iterator[Cells]]) -> Callable[[Row, Log], Iterator[Cells]]:
        _SHAPES[name] = Shape(name, title, keys, lost, knows, read)
        return read

    return add


_GENAI_KEYS = {
    "response": "gen_ai.output.messages",
    "messages": "gen_ai.input.messages",
    "tools": "gen_ai.tool.definitions",
    "model": "gen_ai.response.model, gen_ai.request.model",
    "prompt_tokens": "gen_ai.usage.input_tokens",
    "completion_tokens": "gen_ai.usage.output_tokens",
}
_OTLP_LISTS = (
    ("resourceSpans", "scopeSpans", "spans"),
    ("resourceSpans", "instrumentationLibrarySpans", "spans"),
    ("resourceLogs", "scopeLogs", "logRecords"),
)


@_shape(
    "otlp",
    "OTLP as JSON: spans or log records",
    {**_GENAI_KEYS, "response": "resourceSpans.scopeSpans.spans.attributes"},
    "as of the convention inside: otel, or openinference",
    lambda row: isinstance(row.get("resourceSpans") or row.get("resourceLogs"), list),
)
def _otlp(row: Row, log: Log) -> Iterator[Cells]:
    for outer, scopes, leaves in _OTLP_LISTS:
        for resource in items_of(row.get(outer)):
            for scope in items_of(at(resource, scopes)):
                for span in items_of(at(scope, leaves)):
                    if isinstance(span, Mapping):
                        yield from _span(span, log)


def _span(span: Row, log: Log) -> Iterator[Cells]:
    attributes = attributes_of(span)
    if "llm" in attributes or "openinference" in attributes:
        if "gen_ai" not in attributes:
            return _inference(span, attributes, log)
    return _genai(span, attributes, log)


def _is_span(row: Row, roots: tuple[str, ...]) -> bool:
    if any(str(name).startswith(roots) for name in row):
        return True
    attributes = row.get("attributes")
    if isinstance(attributes, str):
        attributes = value_of(attributes)
    if isinstance(attributes, Mapping):
        return any(str(name).startswith(roots) or f"{name}." in roots for name in attributes)
    if isinstance(attributes, list):
        return any(str(at(one, "key")).startswith(roots) for one in attributes)
    return False


@_shape(
    "openinference",
    "OpenInference spans: Phoenix, Arize, and their frames",
    {
        "response": "llm.output_messages, output.value",
        "messages": "llm.input_messages, input.value",
        "tools": "llm.tools",
        "model": "llm.model_name",
        "prompt_tokens": "llm.token_count.prompt",
        "completion_tokens": "llm.token_count.completion",
        "cost": "llm.cost.total",
    },
    "chunks, special tokens, what a masking setting hid",
    lambda row: _is_span(
        row,
        (
            "llm.", "openinference.", "attributes.llm.", "attributes.openinference.",
        ),
    )
    and not _is_span(row, ("gen_ai.", "attributes.gen_ai.")),
)  # fmt: skip
def _openinference(row: Row, log: Log) -> Iterator[Cells]:
    return _inference(row, attributes_of(row), log)


def _inference(span: Row, attributes: Row, log: Log) -> Iterator[Cells]:
    llm = at(attributes, "llm")
    kind = _first(at(attributes, "openinference", "span", "kind"), span.get("span_kind"))
    if isinstance(kind, str) and kind.upper() not in ("LLM", "UNKNOWN", "INTERNAL"):
        log.leave_out(f"{kind.upper()} spans", "they are no answer of a model")
        return
    sent = value_of(at(attributes, "input", "value"))
    body = sent if isinstance(sent, Mapping) else {}
    whole = value_of(at(attributes, "output", "value"))
    written = [at(item, "message") or item for item in items_of(at(llm, "output_messages"))]
    if is_response(whole):
        answer: Cells = {"response": whole}
    elif written:
        reason = at(llm, "finish_reason")
        answer = _answer([_openinference_message(x) for x in written], [reason] * len(written))
    elif isinstance(whole, str) and whole:
        answer = _Message(whole).cells()
    elif (error := _error_of_span(span)) is not None:
        answer = error
    else:
        log.leave_out("spans without an answer", "their contents were not recorded")
        return
    tools = [
        value_of(at(tool, "tool", "json_schema") or at(tool, "json_schema"))
        for tool in items_of(at(llm, "tools"))
    ]
    asked = [_openinference_asked(at(x, "message") or x) for x in items_of(at(llm, "input_messages"))]
    params = value_of(at(llm, "invocation_parameters"))
    params = params if isinstance(params, Mapping) else body
    yield {
        **answer,
        **(_question(asked or body.get("messages") or (None if body else sent))),
        "request": _request(
            _tools(tools or params.get("tools") or body.get("tools"), "tools"),
            {k: params[k] for k in _PARAMS if k in params},
        ),
        "model": _first(at(llm, "model_name"), body.get("model")),
        **_tokens(at(llm, "token_count", "prompt"), at(llm, "token_count", "completion")),
        "cost": _number(at(llm, "cost", "total")),
        **_of_span(span, at(attributes, "session", "id")),
    }


def _openinference_message(x: Any) -> _Message:
    parts = [at(part, "message_content", "text") for part in items_of(at(x, "contents"))]
    made = _Message(_first(_text(at(x, "content")), "".join(filter(None, parts)) or None))
    for call in items_of(at(x, "tool_calls")):
        inner = at(call, "tool_call") or call
        made.call(
            at(inner, "function", "name"), at(inner, "function", "arguments"), at(inner, "id")
        )
    return made


def _openinference_asked(x: Any) -> Cells:
    made = _openinference_message(x)
    message: Cells = {"role": _role(at(x, "role")), "content": made.text}
    if made.calls:
        message["tool_calls"] = made.calls
    for name in ("tool_call_id", "name"):
        if isinstance(at(x, name), str):
            message[name] = at(x, name)
    return message


@_shape(
    "otel",
    "OpenTelemetry's gen_ai spans and events",
    _GENAI_KEYS,
    "wire text and chunks, cost; contents and tools where the instrumentation was not told to "
    "write them",
    lambda row: _is_span(row, ("gen_ai.", "attributes.gen_ai.", "traceloop.")),
)
def _otel(row: Row, log: Log) -> Iterator[Cells]:
    return _genai(row, attributes_of(row), log)


def _genai(span: Row, attributes: Row, log: Log) -> Iterator[Cells]:
    genai: Cells = dict(at(attributes, "gen_ai") or {})
    # The contents stand on the span, or on its events.
    chosen = []
    for event in items_of(span.get("events")):
        name = str(_first(at(event, "name"), at(event, "event_name"), ""))
        of_event = attributes_of(event) if isinstance(event, Mapping) else {}
        if name == "gen_ai.choice":
            chosen.append(value_of(at(event, "body")) or of_event)
        inner = at(of_event, "gen_ai")
        for key, value in inner.items() if isinstance(inner, Mapping) else ():
            genai.setdefault(key, value)
    output = at(genai, "output", "messages")
    listed = value_of(output)
    if isinstance(output, str) and not isinstance(listed, list):
        raise _Damaged("response", "gen_ai.output.messages is no JSON of messages", output[:120])
    reasons = items_of(at(genai, "response", "finish_reasons"))
    if isinstance(listed, list):
        messages = [_genai_message(x) for x in listed]
        finishes = [_first(at(x, "finish_reason"), *reasons[:1]) for x in listed]
    else:
        # As before 1.37: an event for each choice, or traceloop's numbered completions.
        chosen = chosen or items_of(at(genai, "completion"))
        messages = [_genai_message(at(x, "message") or x) for x in chosen]
        finishes = [_first(at(x, "finish_reason"), *reasons[:1]) for x in chosen]
    operation = at(genai, "operation", "name")
    if messages:
        answer = _answer(messages, finishes)
    elif operation in ("execute_tool", "embeddings", "invoke_agent", "create_agent"):
        log.leave_out(f"{operation} spans", "they are no answer of a model")
        return
    elif (error := _error_of_span(span, at(attributes, "error", "type"))) is not None:
        answer = error
    elif genai:
        log.leave_out(
            "spans without an answer",
            "no contents were recorded: OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT",
        )
        return
    else:
        log.leave_out("other spans", "they are no answer of a model")
        return
    functions = items_of(at(attributes, "llm", "request", "functions"))
    instructions = value_of(at(genai, "system_instructions"))
    asked = [_genai_asked(x) for x in items_of(_first(at(genai, "input", "messages"), at(genai, "prompt")))]
    if instructions and asked and asked[0]["role"] != "system":
        asked.insert(0, {"role": "system", "content": _text(instructions)})
    usage = at(genai, "usage")
    params = {k: at(genai, "request", k) for k in _PARAMS if at(genai, "request", k) is not None}
    yield {
        **answer,
        **_question(asked),
        "request": _request(_tools(at(genai, "tool", "definitions") or functions, "tools"), params),
        "model": _first(at(genai, "response", "model"), at(genai, "request", "model")),
        **_tokens(
            _first(at(usage, "input_tokens"), at(usage, "prompt_tokens")),
            _first(at(usage, "output_tokens"), at(usage, "completion_tokens")),
        ),
        **_of_span(span, at(genai, "conversation", "id"), at(genai, "response", "id")),
    }


def _genai_message(x: Any) -> _Message:
    parts = at(x, "parts")
    if parts is None:
        return _message(x)
    made = _Message()
    for part in items_of(parts):
        kind, content = at(part, "type"), at(part, "content")
        if kind == "tool_call":
            made.call(at(part, "name"), at(part, "arguments"), at(part, "id"))
        elif kind in ("reasoning", "thinking"):
            made.reasoning += _text(content) or ""
        elif kind in ("text", None) and content is not None:
            made.text = (made.text or "") + (_text(content) or "")
    return made


def _genai_asked(x: Any) -> Cells:
    made = _genai_message(x)
    message: Cells = {"role": _role(at(x, "role")), "content": made.text}
    if made.calls:
        message["tool_calls"] = made.calls
    for part in items_of(at(x, "parts")):
        if at(part, "type") == "tool_call_response":
            result = _first(at(part, "response"), at(part, "result"))
            message |= {"content": _text(result), "tool_call_id": str(at(part, "id") or "")}
    return message


def _error_of_span(span: Row, kind: Any = None) -> Cells | None:
    code = _first(at(span, "status", "status_code"), at(span, "status", "code"), span.get("status_code"))
    if kind is None and str(code).upper() not in ("ERROR", "STATUS_CODE_ERROR", "2"):
        return None
    message = _first(
        at(span, "status", "description"), at(span, "status", "message"),
        span.get("status_message"),
    )  # fmt: skip
    return {"error": str(kind or "other"), "error_message": str(message or kind or "")}


def _of_span(span: Row, conversation: Any = None, id: Any = None) -> Cells:
    context = span.get("context")
    return {
        "case_id": _first(
            span.get("spanId"), span.get("span_id"), span.get("context.span_id"),
            at(context, "span_id"), span.get("id"), id,
        ),
        **_times(
            _first(span.get("startTimeUnixNano"), span.get("start_time"), span.get("startTime"),
                   span.get("timeUnixNano"), span.get("timestamp")),
            _first(span.get("endTimeUnixNano"), span.get("end_time"), span.get("endTime")),
        ),
        **_conversation(
            _first(conversation, span.get("traceId"), span.get("trace_id"),
                   span.get("context.trace_id"), at(context, "trace_id"))
        ),
    }  # fmt: skip


def _is_inspect(row: Row) -> bool:
    if isinstance(row.get("samples"), list) and ("eval" in row or "plan" in row):
        return True
    events = row.get("events")
    return isinstance(events, list) and "epoch" in row and "id" in row


@_shape(
    "inspect",
    "inspect_ai logs (.eval, .json) and their samples",
    {
        "response": "events[model].call.response, output.choices",
        "messages": "events[model].input",
        "tools": "events[model].tools",
        "model": "events[model].model",
        "case_id": "samples.id",
        "trial": "samples.epoch",
    },
    "arguments' text where call.response is not there",
    _is_inspect,
)
def _inspect(row: Row, log: Log) -> Iterator[Cells]:
    samples = row["samples"] if isinstance(row.get("samples"), list) else [row]
    of_log = _first(at(row, "eval", "model"), at(row, "header", "eval", "model"))
    for sample in samples:
        name, epoch = at(sample, "id"), _count(at(sample, "epoch")) or 1
        attachments = at(sample, "attachments") or {}
        events = [e for e in items_of(at(sample, "events")) if at(e, "event") == "model"]
        same = f"{name}/{epoch}"
        if not events:
            # A log of which only the messages were kept.
            messages = _attached(items_of(at(sample, "messages")), attachments)
            for cells, message in _turns(messages, name, same):
                yield {
                    **cells,
                    **_message(message).cells(),
                    "model": _first(at(message, "model"), of_log),
                    "trial": epoch - 1,
                    **_conversation(same),
                }
            continue
        for number, event in enumerate(events):
            event = _attached(event, attachments)
            response, body = at(event, "call", "response"), at(event, "call", "request")
            choices = items_of(at(event, "output", "choices"))
            if is_response(response):
                answer: Cells = {"response": response}
            elif at(event, "error") and not choices:
                answer = {"error": "other", "error_message": str(at(event, "error"))}
            elif choices:
                answer = _answer(
                    [_message(at(choice, "message")) for choice in choices],
                    [at(choice, "stop_reason") for choice in choices],
                )
            else:
                raise _Damaged("response", "a model event has neither output nor error", event)
            tools = at(event, "tools") or at(body, "tools")
            usage = at(event, "output", "usage")
            yield {
                **answer,
                **_question(at(event, "input")),
                "request": _request(_tools(tools, "tools")),
                "model": _first(at(event, "output", "model"), at(event, "model"), of_log),
                "case_id": f"{name}" if len(events) == 1 else f"{name}#{number}",
                "trial": epoch - 1,
                "created": at(event, "timestamp"),
                "latency": _number(_first(at(event, "output", "time"), at(event, "working_time"))),
                **_tokens(at(usage, "input_tokens"), at(usage, "output_tokens")),
                **_conversation(name),
            }


_ATTACHED = "attachment://"


def _attached(x: Any, attachments: Row) -> Any:
    # Long texts of a log stand once, apart from the events.
    if isinstance(x, str):
        return attachments.get(x[len(_ATTACHED) :], x) if x.startswith(_ATTACHED) else x
    if isinstance(x, list):
        return [_attached(item, attachments) for item in x]
    if isinstance(x, Mapping) and attachments:
        return {name: _attached(value, attachments) for name, value in x.items()}
    return x


@_shape(
    "promptfoo",
    "promptfoo results",
    {
        "response": "results.results.response.output",
        "input": "results.results.prompt.raw",
        "tools": "config.providers.config.tools",
        "model": "results.results.provider.id",
        "case_id": "results.results.testIdx",
        "cost": "results.results.cost",
        "latency": "results.results.latencyMs",
        "error": "results.results.error",
    },
    "tools but for those of the config, messages where the prompt is a template, why an answer "
    "ended",
    lambda row: isinstance(at(row, "results", "results"), list)
    or ("response" in row and "provider" in row and ("vars" in row or "promptIdx" in row)),
)
def _promptfoo(row: Row, log: Log) -> Iterator[Cells]:
    results = items_of(at(row, "results", "results")) or [row]
    offered = {}
    for provider in items_of(at(row, "config", "providers")):
        tools = at(provider, "config", "tools")
        offered |= {at(provider, key): tools for key in ("id", "label") if at(provider, key)}
    for result in results:
        provider = at(result, "provider")
        name = _first(at(provider, "id"), provider if isinstance(provider, str) else None)
        response = at(result, "response")
        output, error = at(response, "output"), _first(at(response, "error"), at(result, "error"))
        raw = at(response, "raw")
        if is_response(value_of(raw)):
            answer: Cells = {"response": value_of(raw)}
        elif isinstance(output, list):
            made = _Message()
            made.take_calls(output)
            answer = made.cells()
        elif isinstance(output, Mapping):
            answer = {"response": output} if is_response(output) else _message(output).cells()
            if not is_response(output) and not (output.keys() & {"content", "tool_calls"}):
                answer = _Message(write_canonical(output)).cells()
        elif isinstance(output, str):
            answer = _Message(output).cells(at(response, "finishReason"))
        elif error:
            answer = {"error": "other", "error_message": str(error)}
        else:
            raise _Damaged("response", "there is neither an output nor an error", response)
        tools = _first(offered.get(at(provider, "label")), offered.get(name),
                       at(provider, "config", "tools"))  # fmt: skip
        asked = value_of(at(result, "prompt", "raw"))
        variables = at(result, "vars")
        test = at(result, "testIdx")
        tokens = _first(at(response, "tokenUsage"), at(result, "tokenUsage"))
        milliseconds = _number(at(result, "latencyMs"))
        yield {
            **answer,
            **_question(asked if asked is not None else variables),
            "request": _request(_tools(tools, "tools")),
            "model": _first(at(provider, "label"), name),
            "case_id": None if test is None else f"test-{test}.{at(result, 'promptIdx') or 0}",
            "latency": None if milliseconds is None else milliseconds / 1000,
            "cost": _number(_first(at(response, "cost"), at(result, "cost"))),
            "metadata_success": at(result, "success"),
            **_tokens(at(tokens, "prompt"), at(tokens, "completion")),
        }


@_shape(
    "tau2",
    "tau2-bench simulations",
    {
        "response": "simulations.messages[assistant]",
        "messages": "simulations.messages before it",
        "model": "info.agent_info.llm",
        "case_id": "simulations.task_id",
        "trial": "simulations.trial",
        "cost": "messages.cost",
    },
    "tools (the environment has them), arguments' text",
    lambda row: isinstance(row.get("simulations"), list)
    or ("task_id" in row and isinstance(row.get("messages"), list)),
)
def _tau2(row: Row, log: Log) -> Iterator[Cells]:
    simulations = row["simulations"] if isinstance(row.get("simulations"), list) else [row]
    model = _first(at(row, "info", "agent_info", "llm"), row.get("model"))
    tools = _tools(at(row, "info", "environment_info", "tool_defs"), "tools")
    for simulation in simulations:
        task, id = at(simulation, "task_id"), at(simulation, "id")
        for cells, message in _turns(items_of(at(simulation, "messages")), task, "task"):
            # Calls of the simulated user are not the model's.
            calls = [
                call
                for call in items_of(at(message, "tool_calls"))
                if at(call, "requestor") != "user"
            ]
            usage = at(message, "usage")
            yield {
                **cells,
                **_message({**message, "tool_calls": calls}).cells(),
                "request": _request(tools),
                "model": model,
                "trial": _count(at(simulation, "trial")),
                "created": at(message, "timestamp"),
                "cost": _number(at(message, "cost")),
                **_tokens(at(usage, "prompt_tokens"), at(usage, "completion_tokens")),
                **_conversation(_first(task, id)),
            }


@_shape(
    "k2vv",
    "results of K2 Vendor Verifier",
    {
        "response": "response",
        "messages": "request.messages",
        "tools": "request.tools",
        "model": "request.model",
        "case_id": "data_index",
    },
    "chunks",
    lambda row: "data_index" in row and "response" in row and "request" in row,
)
def _k2vv(row: Row, log: Log) -> Iterator[Cells]:
    yield {
        **_whole(row.get("response"), row.get("error")),
        **_of_request(row.get("request")),
        "case_id": row["data_index"],
        "metadata_status": row.get("status"),
    }


def _whole(response: Any, error: Any = None) -> Cells:
    # An answer that was kept whole, or what came in its place.
    response = value_of(response)
    if is_response(response):
        return {"response": response}
    if error:
        return {"error": error if isinstance(error, (str, Mapping)) else str(error)}
    if isinstance(response, str) and response:
        return _Message(response).cells()
    raise _Damaged("response", "the response is no answer of a model", response)


def _of_request(request: Any, **more: Any) -> Cells:
    # Messages, tools and parameters of a request's body.
    body = value_of(request)
    body = body if isinstance(body, Mapping) else {}
    params = {k: v for k, v in body.items() if k not in ("messages", "input", "prompt", "tools")}
    tools = _tools(_first(body.get("tools"), body.get("functions")), "tools")
    return {
        **_question(_first(body.get("messages"), body.get("input"), body.get("prompt"))),
        "request": _request(tools, params, **more),
        "model": body.get("model"),
    }


@_shape(
    "litellm",
    "litellm's standard log and the spend logs of its proxy",
    {
        "response": "response",
        "messages": "messages",
        "tools": "model_parameters.tools",
        "model": "model",
        "case_id": "id, request_id",
        "cost": "response_cost, spend",
        "error": "error_information, error_str",
        "created": "startTime",
    },
    "wire text and chunks; messages where they are redacted",
    lambda row: "call_type" in row and "startTime" in row,
)
def _litellm(row: Row, log: Log) -> Iterator[Cells]:
    failed = row.get("status") in ("failure", "error")
    information = value_of(row.get("error_information"))
    said = _first(row.get("error_str"), at(information, "error_message"))
    kind = _first(at(information, "error_class"), "other")
    if failed and not is_response(value_of(row.get("response"))):
        answer: Cells = {"error": kind, "error_message": str(said or "")}
    else:
        answer = _whole(row.get("response"))
    params = value_of(row.get("model_parameters")) or value_of(row.get("optional_params")) or {}
    sent = value_of(row.get("proxy_server_request"))
    body = sent if isinstance(sent, Mapping) else {}
    asked = _first(value_of(row.get("messages")) or None, body.get("messages"))
    id, trace = _first(row.get("id"), row.get("request_id")), row.get("trace_id")
    yield {
        **answer,
        **_question(asked),
        "request": _request(
            _tools(_first(at(params, "tools"), body.get("tools")), "tools"),
            {k: v for k, v in params.items() if k != "tools"},
            model=row.get("model"),
        ),
        "model": row.get("model"),
        "case_id": id,
        "cost": _number(_first(row.get("response_cost"), row.get("spend"))),
        **_tokens(row.get("prompt_tokens"), row.get("completion_tokens")),
        **_times(row.get("startTime"), row.get("endTime"), row.get("completionStartTime")),
        **_conversation(_first(row.get("session_id"), trace if trace != id else None)),
    }


_OBSERVATIONS = frozenset((
    "GENERATION", "SPAN", "EVENT", "AGENT", "TOOL", "CHAIN", "RETRIEVER", "EVALUATOR", "EMBEDDING",
    "GUARDRAIL",
))  # fmt: skip
_OF_LANGFUSE = frozenset((
    "traceId", "trace_id", "usageDetails", "usage_details", "modelParameters", "model_parameters",
    "costDetails", "cost_details", "parentObservationId", "completionStartTime",
))  # fmt: skip


@_shape(
    "langfuse",
    "Langfuse observations",
    {
        "response": "output",
        "messages": "input.messages, input",
        "tools": "input.tools",
        "model": "model",
        "case_id": "id",
        "prompt_tokens": "usageDetails.input",
        "completion_tokens": "usageDetails.output",
        "cost": "costDetails.total, totalCost",
        "error": "statusMessage",
    },
    "tools unless they stand in the input, arguments' text where objects were stored, chunks",
    lambda row: str(row.get("type")).upper() in _OBSERVATIONS and bool(row.keys() & _OF_LANGFUSE),
)
def _langfuse(row: Row, log: Log) -> Iterator[Cells]:
    def of(name: str) -> Any:
        # Clients in Python write `usage_details` for `usageDetails`.
        return _first(row.get(name), row.get(re.sub("[A-Z]", lambda m: f"_{m[0].lower()}", name)))

    if str(row["type"]).upper() != "GENERATION":
        log.leave_out(f"{row['type']} observations", "they are no answer of a model")
        return
    output, sent = value_of(row.get("output")), value_of(row.get("input"))
    if isinstance(output, list) and output and all(isinstance(x, Mapping) for x in output):
        # Messages, or calls without one.
        if any("role" in x for x in output):
            output = next((x for x in reversed(output) if _role(x.get("role")) == "assistant"), output[-1])
        else:
            output = {"role": "assistant", "tool_calls": output}
    if isinstance(output, Mapping) and isinstance(output.get("completion"), str):
        output = output["completion"]
    if output is None or output == "":
        if row.get("level") == "ERROR" or of("statusMessage"):
            answer: Cells = {"error": "other", "error_message": str(of("statusMessage") or "")}
        elif output is None:
            raise _Damaged("response", "this generation has no output", None)
        else:
            answer = _Message("").cells()
    elif isinstance(output, Mapping) and isinstance(output.get("choices"), list):
        answer = {"response": output}
    elif isinstance(output, Mapping) and output.keys() & {"content", "tool_calls", "role"}:
        answer = _message(output).cells(at(output, "finish_reason"))
    else:
        text = output if isinstance(output, str) else write_canonical(output)
        answer = _Message(text).cells()
    body = sent if isinstance(sent, Mapping) and "messages" in sent else {}
    usage, costs = of("usageDetails") or row.get("usage"), of("costDetails")
    params = value_of(of("modelParameters"))
    params = params if isinstance(params, Mapping) else {}
    tools = _first(body.get("tools"), params.get("tools"), at(row, "metadata", "tools"))
    yield {
        **answer,
        **_question(body.get("messages") if body else sent),
        "request": _request(_tools(tools, "tools"), params),
        "model": _first(row.get("model"), of("providedModelName")),
        "case_id": row.get("id"),
        "cost": _number(_first(at(costs, "total"), of("totalCost"), of("calculatedTotalCost"))),
        **_tokens(
            _first(at(usage, "input"), at(usage, "promptTokens"), at(usage, "prompt_tokens")),
            _first(at(usage, "output"), at(usage, "completionTokens"), at(usage, "completion_tokens")),
        ),
        **_times(of("startTime"), of("endTime"), of("completionStartTime")),
        **_conversation(_first(of("sessionId"), of("traceId"))),
    }


@_shape(
    "langsmith",
    "LangSmith runs",
    {
        "response": "outputs.generations",
        "messages": "inputs.messages",
        "tools": "extra.invocation_params.tools",
        "model": "extra.invocation_params.model",
        "case_id": "id",
        "error": "error",
        "created": "start_time",
    },
    "arguments' text but for additional_kwargs.tool_calls and invalid_tool_calls, chunks",
    lambda row: "run_type" in row and ("outputs" in row or "inputs" in row),
)
def _langsmith(row: Row, log: Log) -> Iterator[Cells]:
    if row["run_type"] != "llm":
        log.leave_out(f"{row['run_type']} runs", "they are no answer of a model")
        return
    outputs, params = value_of(row.get("outputs")), at(row, "extra", "invocation_params")
    generations = items_of(at(outputs, "generations"))
    # A list of lists, one for each prompt; some exports have one list alone.
    if generations and isinstance(generations[0], list):
        generations = generations[0]
    kwargs: Any = {}
    if generations:
        messages = [_langchain_message(x) for x in generations]
        finishes = [
            _first(
                at(x, "generation_info", "finish_reason"),
                at(x, "message", "kwargs", "response_metadata", "finish_reason"),
            )
            for x in generations
        ]
        answer = _answer(messages, finishes)
        kwargs = at(generations[0], "message", "kwargs")
    elif is_response(outputs):
        answer = {"response": outputs}
    elif isinstance(output := _first(at(outputs, "message"), at(outputs, "output"),
                                     at(outputs, "messages", -1)), Mapping):  # fmt: skip
        answer = _langchain_message({"message": output}).cells()
    elif isinstance(output, str):
        answer = _Message(output).cells()
    elif row.get("error"):
        answer = {"error": "other", "error_message": str(row["error"])}
    else:
        raise _Damaged("response", "this run has neither an output nor an error", outputs)
    asked = items_of(_first(at(row, "inputs", "messages"), at(row, "inputs", "input")))
    if asked and isinstance(asked[0], list):
        asked = asked[0]
    question = _question([_langchain_asked(x) for x in asked]) if asked else _question(
        _first(at(row, "inputs", "prompts", 0), at(row, "inputs", "prompt"))
    )  # fmt: skip
    tools = _first(
        at(params, "tools"), at(params, "functions"), at(row, "extra", "tools"), at(row, "inputs", "tools")
    )
    usage = _first(at(kwargs, "usage_metadata"), at(outputs, "usage_metadata"),
                   at(outputs, "llm_output", "token_usage"), {})  # fmt: skip
    yield {
        **answer,
        **question,
        "request": _request(
            _tools(tools, "tools"), {k: v for k in _PARAMS if (v := at(params, k)) is not None}
        ),
        "model": _first(
            at(params, "model"), at(params, "model_name"), at(row, "extra", "metadata", "ls_model_name"),
            at(kwargs, "response_metadata", "model_name"), at(outputs, "model"),
        ),
        "case_id": row.get("id"),
        "cost": _number(row.get("total_cost")),
        **_tokens(
            _first(at(usage, "input_tokens"), at(usage, "prompt_tokens"), row.get("prompt_tokens")),
            _first(at(usage, "output_tokens"), at(usage, "completion_tokens"),
                   row.get("completion_tokens")),
        ),
        **_times(row.get("start_time"), row.get("end_time"), row.get("first_token_time")),
        **_conversation(
            _first(
                at(row, "extra", "metadata", "thread_id"), at(row, "extra", "metadata", "session_id"),
                row.get("trace_id") if row.get("trace_id") != row.get("id") else None,
            )
        ),
    }  # fmt: skip


def _langchain_body(x: Any) -> Any:
    # A message as LangChain stores it: {lc, id, kwargs}, {type, data}, or the message alone.
    for name in ("kwargs", "data"):
        if isinstance(at(x, name), Mapping):
            return at(x, name)
    return x


def _langchain_message(generation: Any) -> _Message:
    body = _langchain_body(at(generation, "message"))
    if not isinstance(body, Mapping):
        return _Message(at(generation, "text"))
    made = _Message(_first(_text(body.get("content")), at(generation, "text")))
    extra = at(body, "additional_kwargs")
    made.reasoning = _text(at(extra, "reasoning_content")) or ""
    written = items_of(at(extra, "tool_calls"))
    if written:
        made.take_calls(written)
    else:
        made.take_calls(body.get("tool_calls"))
        # Calls that LangChain could not read have their text still.
        made.take_calls(body.get("invalid_tool_calls"))
    if not made.calls and isinstance(legacy := at(extra, "function_call"), Mapping):
        made.call(at(legacy, "name"), at(legacy, "arguments"))
    return made


def _langchain_asked(x: Any) -> Cells:
    body = _langchain_body(x)
    kind = _first(at(x, "id", -1) if at(x, "lc") else None, at(x, "type"), at(x, "role"), "human")
    message: Cells = {"role": _role(kind), "content": at(body, "content")}
    made = _langchain_message({"message": x})
    if made.calls:
        message["tool_calls"] = made.calls
    for name in ("tool_call_id", "name"):
        if isinstance(at(body, name), str):
            message[name] = at(body, name)
    return message


@_shape(
    "weave",
    "Weave calls",
    {
        "response": "output",
        "messages": "inputs.messages",
        "tools": "inputs.tools",
        "model": "inputs.model",
        "case_id": "id",
        "created": "started_at",
        "error": "exception",
    },
    "chunks",
    lambda row: "op_name" in row and "inputs" in row,
)
def _weave(row: Row, log: Log) -> Iterator[Cells]:
    inputs, output = value_of(row.get("inputs")), value_of(row.get("output"))
    asks = isinstance(inputs, Mapping) and bool(inputs.keys() & {"messages", "prompt", "model"})
    if not asks and not is_response(output):
        log.leave_out("other calls", "they are no answer of a model")
        return
    usage = next(iter((at(row, "summary", "usage") or {}).values()), None)
    counted = at(output, "usage") is not None
    yield {
        **_whole(output, row.get("exception")),
        **_of_request(inputs),
        "case_id": row.get("id"),
        **({} if counted else _tokens(at(usage, "prompt_tokens"), at(usage, "completion_tokens"))),
        **_times(row.get("started_at"), row.get("ended_at")),
        **_conversation(_first(row.get("thread_id"), row.get("trace_id"))),
    }


@_shape(
    "batch",
    "results of a batch: OpenAI's, and Anthropic's",
    {
        "response": "response.body, result.message",
        "case_id": "custom_id",
        "error": "error, result.error",
    },
    "messages and tools: requests= takes the file of the batch that was asked",
    lambda row: "custom_id" in row and ("response" in row or "result" in row),
)
def _batch(row: Row, log: Log) -> Iterator[Cells]:
    result = row.get("result")
    body = _first(at(row, "response", "body"), at(result, "message"))
    error = _first(row.get("error"), at(result, "error"))
    if at(result, "type") in ("errored", "expired", "canceled"):
        error = error or at(result, "type")
    asked = log.requests.get(str(row["custom_id"]))
    yield {
        **_whole(None if at(body, "error") else body, _first(error, at(body, "error"))),
        **(_of_request(_first(at(asked, "body"), at(asked, "params"))) if asked else {}),
        **({} if at(body, "model") is None else {"model": at(body, "model")}),
        "case_id": row["custom_id"],
        "created": at(body, "created"),
    }


_BFCL_ID = re.compile(
    r"(?:live_)?(?:simple|multiple|parallel|irrelevance|relevance|java|javascript|multi_turn|memory"
    r"|web_search|exec|rest|sql|chatable|format_sensitivity)\w*_\d[\w.:-]*"
)
_BFCL_COUNTS = ("input_token_count", "output_token_count")
_BFCL_GROUPS = frozenset(("non_live", "live", "multi_turn", "agentic", "memory", "web_search",
                          "format_sensitivity"))  # fmt: skip


def _is_bfcl(row: Row) -> bool:
    result = row.get("result")
    if not isinstance(result, (str, list)) or not isinstance(row.get("id"), str):
        return False
    return any(name in row for name in _BFCL_COUNTS) or bool(_BFCL_ID.fullmatch(row["id"]))


@_shape(
    "bfcl",
    "results of BFCL, as text or as calls",
    {
        "response": "result",
        "case_id": "id",
        "model": "the folder",
        "prompt_tokens": "input_token_count",
        "completion_tokens": "output_token_count",
        "latency": "latency",
    },
    "tools and questions (cases= has them, by id); words beside the calls",
    _is_bfcl,
)
def _bfcl(row: Row, log: Log) -> Iterator[Cells]:
    # Of several turns there is a list for each, of one answer for each step.
    id, result = row["id"], row["result"]
    several = isinstance(result, list) and any(isinstance(turn, list) for turn in result)
    steps = (
        [(f"{id}#{t}.{s}", step, (t, s)) for t, turn in enumerate(result)
         for s, step in enumerate(turn if isinstance(turn, list) else [turn])]
        if several else [(id, result, ())]
    )  # fmt: skip
    for name, step, place in steps:
        if isinstance(step, str) and step.startswith("Error during inference:"):
            answer: Cells = {"error": "other", "error_message": step}
        elif isinstance(step, str):
            answer = {"output": step}
        else:
            made = _Message()
            for call in items_of(step):
                if not isinstance(call, Mapping) or len(call) != 1:
                    raise _Damaged("response", "a result is text, or a list of {name: arguments}", call)
                ((function, arguments),) = call.items()
                made.call(function, arguments)
            answer = made.cells()
        sent, received, latency = (at(row.get(key), *place) for key in (*_BFCL_COUNTS, "latency"))
        yield {
            **answer,
            "case_id": name,
            "model": _bfcl_model(log.name),
            **_tokens(sent, received),
            "latency": _number(latency),
            **(_conversation(id) if several else {}),
        }


def _bfcl_model(name: str) -> str | None:
    # result/MODEL/[GROUP/]BFCL_v4_…_result.json
    path = Path(name)
    if not path.name.startswith("BFCL_"):
        return None
    folders = [folder for folder in path.parts[:-1] if folder not in _BFCL_GROUPS]
    return folders[-1] if folders else None


@_shape(
    "responses",
    "objects of OpenAI's Responses API",
    {"response": "output", "tools": "tools", "model": "model", "created": "created_at"},
    "what was asked",
    lambda row: row.get("object") == "response" and isinstance(row.get("output"), list),
)
def _responses(row: Row, log: Log) -> Iterator[Cells]:
    params = {k: row[k] for k in _PARAMS if row.get(k) is not None}
    yield {
        "response": row,
        "request": _request(_tools(row.get("tools"), "tools"), params),
        "model": row.get("model"),
        "created": row.get("created_at"),
        **_conversation(at(row, "conversation", "id")),
    }


@_shape(
    "sharegpt",
    "conversations as ShareGPT has them",
    {"output": "conversations[gpt]", "messages": "conversations before it", "tools": "tools"},
    "model and time",
    lambda row: isinstance(at(row, "conversations", 0), Mapping),
)
def _sharegpt(row: Row, log: Log) -> Iterator[Cells]:
    turns = items_of(row["conversations"])
    # A turn of the role function_call is the model's as well.
    said = [
        {**turn, "from": "gpt"} if at(turn, "from") == "function_call" else turn for turn in turns
    ]
    if isinstance(row.get("system"), str) and row["system"]:
        said.insert(0, {"from": "system", "value": row["system"]})
    others = {k: v for k, v in row.items() if k not in ("conversations", "system", "tools")}
    id = _first(row.get("id"), row.get("case_id"))
    for cells, turn in _turns(said, id, f"row-{log.line}"):
        text = _first(at(turn, "value"), at(turn, "content"))
        if not isinstance(text, str):
            raise _Damaged("output", "a turn of the model has no text", turn)
        yield {**others, **cells, "id": None, "output": text, "tools": _tools(row.get("tools"), "tools")}


_ANSWERS = frozenset(("raw", "output", "response", "error", "completion", "raw_output",
                      "output_text", "tool_calls"))  # fmt: skip


def _is_conversation(row: Row) -> bool:
    if row.keys() & _ANSWERS or "messages" not in row:
        return False
    messages = items_of(row["messages"])
    return any(at(message, "role") == "assistant" for message in messages)


@_shape(
    "messages",
    "conversations as messages, as training data have them",
    {"output": "messages[assistant]", "messages": "messages before it", "tools": "tools"},
    "model and time",
    _is_conversation,
)
def _messages(row: Row, log: Log) -> Iterator[Cells]:
    others = {k: v for k, v in row.items() if k != "messages"}
    key = next((k for k in ("case_id", "id", "custom_id", "example_id") if row.get(k) is not None), None)
    turns = list(_turns(items_of(row["messages"]), row.get(key) if key else None, f"row-{log.line}"))
    # A target is of one answer: the last.
    if "target" in row or "expected_calls" in row:
        turns = [({**turns[-1][0], "case_id": row.get(key) if key else None}, turns[-1][1])]
    for cells, message in turns:
        if key:
            others.pop(key, None)
        yield {**others, **cells, "output": message}
