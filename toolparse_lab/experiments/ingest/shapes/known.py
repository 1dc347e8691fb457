"""Shapes of other people's logs, known by their keys: spans, exports, results of benchmarks,
training data.

`shapes()` lists them; `Lab.ingest` finds the shape of a source by itself.
"""

# How it works. A row of a shape becomes rows under our own names of columns (`columns.NAMES`), one
# for each answer in it, and is read like every other from there on. A shape is a predicate on the
# row's keys and a reader of a few lines, found in the order of `_IN_ORDER`: what holds others, such
# as a file of spans, comes first, and what has few keys of its own last. The shape of the row
# before is tried first. Rows of no shape go on as they came; most logs have no other, so it is
# remembered which shapes need to be asked about a row of these names.
#
# Readers ask for members by `at`, which never fails, and raise `Damaged` where a key that should
# hold the answer holds something else: a row of a shape that is damaged is refused with its line,
# its shape and the key. What is no answer at all (a span of a tool, say) is counted and left out.

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from typing import Any

from ....core.errors import BadCase, UnknownName, near
from ....entry.capture.known import nearest_shape
from ....evals.cases.row_files import RowSource
from ....evals.cases.rows import is_missing, json_value
from ..sources import answers_of
from . import benchmarks, exports, spans
from .attributes import at, items_of
from .parts import first, tools_of, turns
from .shape import Cells, Damaged, Log, Row, Shape, ShapedRow, shape


@shape(
    "sharegpt",
    ("conversations",),
    "conversations as ShareGPT has them",
    {"output": "conversations[gpt]", "messages": "conversations before it", "tools": "tools"},
    "model and time",
    lambda row: isinstance(at(row, "conversations", 0), Mapping),
)
def sharegpt(row: Row, log: Log) -> Iterator[Cells]:
    # A turn of the role function_call is the model's as well.
    said = [
        {**turn, "from": "gpt"} if at(turn, "from") == "function_call" else turn
        for turn in items_of(row["conversations"])
    ]
    if isinstance(row.get("system"), str) and row["system"]:
        said.insert(0, {"from": "system", "value": row["system"]})
    others = {k: v for k, v in row.items() if k not in ("conversations", "system", "tools")}
    id = first(row.get("id"), row.get("case_id"))
    for cells, turn in turns(said, id, f"row-{log.line}"):
        text = first(at(turn, "value"), at(turn, "content"))
        if not isinstance(text, str):
            raise Damaged("output", "a turn of the model has no text", turn)
        yield {
            **others,
            **cells,
            "id": None,
            "output": text,
            "tools": tools_of(row.get("tools")),
        }


_IDS = ("case_id", "id", "custom_id", "example_id")
_ANSWERS = frozenset(("raw", "output", "response", "error", "completion", "raw_output",
                      "output_text", "tool_calls"))  # fmt: skip


def _is_conversation(row: Row) -> bool:
    if row.keys() & _ANSWERS or "messages" not in row:
        return False
    messages = items_of(row["messages"])
    return any(at(message, "role") == "assistant" for message in messages)


@shape(
    "messages",
    ("messages",),
    "conversations as messages, as training data have them",
    {"output": "messages[assistant]", "messages": "messages before it", "tools": "tools"},
    "model and time",
    _is_conversation,
)
def messages(row: Row, log: Log) -> Iterator[Cells]:
    others = {k: v for k, v in row.items() if k != "messages"}
    key = next((name for name in _IDS if row.get(name) is not None), None)
    id = others.pop(key) if key else None
    said = list(turns(items_of(row["messages"]), id, f"row-{log.line}"))
    # A target is of one answer: the last.
    if "target" in row or "expected_calls" in row:
        said = [({**said[-1][0], "case_id": id}, said[-1][1])]
    for cells, message in said:
        yield {**others, **cells, "output": message}


PLAIN = "rows"
"""The name by which `shape=` says that a source has no shape but columns of its own."""

_IN_ORDER = (
    spans.otlp, benchmarks.inspect, benchmarks.promptfoo, benchmarks.tau2, benchmarks.k2vv,
    exports.litellm, exports.langfuse, exports.langsmith, exports.weave, spans.ai_sdk,
    spans.openinference, spans.otel, exports.batch, benchmarks.bfcl, exports.bedrock,
    exports.responses, sharegpt, messages,
)  # fmt: skip
_SHAPES = {shape.name: shape for shape in _IN_ORDER}


def requests_by_id(source: Any) -> dict[str, Row]:
    """Return the requests of a batch by `custom_id`. source: its file, or rows."""
    rows = (row for _, row in answers_of(source).rows if isinstance(row, Mapping))
    return {str(row["custom_id"]): row for row in rows if "custom_id" in row}


def shapes() -> dict[str, Shape]:
    """Return the shapes that `Lab.ingest` knows by their keys, by name."""
    return dict(_SHAPES)


def nearest(keys: Iterable[str]) -> str | None:
    """Return the shape of a log, or of an answer, that has most of these keys, None for no such."""
    own = {str(key).partition(".")[0] for key in keys}
    shared = {
        f"{shape.name} ({shape.title})": len(
            own & {re.split(r"[.\[]", n)[0] for n in (*shape.needs, *_paths(shape)) if n}
        )
        for shape in _IN_ORDER
    }
    name = max(shared, key=lambda name: shared[name])
    return name if shared[name] else nearest_shape(dict.fromkeys(own, ""))


def _paths(shape: Shape) -> list[str]:
    return [path for where in shape.keys.values() for path in where.split(", ")]


def with_shapes(rows: RowSource, name: str | None = None) -> tuple[RowSource, bool]:
    """Return the source, and True if its rows may have a shape, for a `ShapeReader`.

    name: of the shape that all rows have; None to know each by its keys. A table is of a shape if
    its first row is. Raises UnknownName for a shape that does not exist.
    """
    if name == PLAIN:
        return rows, False
    if name is not None and name not in _SHAPES:
        raise UnknownName(
            "there is no such shape of a log",
            got=name,
            expected=", ".join((*_SHAPES, PLAIN)),
            hint=near(name, (*_SHAPES, PLAIN)) or "ingest.shapes.shapes() says how each is known",
        )
    if rows.table and name is None:
        first = next(rows.rows, None)
        if first is None:
            return rows, False
        rows = replace(rows, rows=chain([first], rows.rows))
        if not isinstance(first[1], Mapping) or _shape_of(_plain(rows, *first), None) is None:
            return rows, False
    return rows, True


class ShapeReader:
    """Makes `ShapedRow`s of rows that have a shape, one for each answer. `Log.counts` counts them.

    source: of the rows, for errors. name: as for `with_shapes`.
    """

    def __init__(self, source: RowSource, name: str | None = None) -> None:
        self._source, self._forced = source, None if name is None else _SHAPES[name]
        self._responses: set[type] = set()  # of clients' objects that have no shape

    def read(self, line: int | None, row: Any, log: Log) -> Iterator[Any]:
        """Yield the answers of a row, and the error of one that cannot be read."""
        try:
            yield from self._read(line, row, log)
        except BadCase as e:
            yield e

    def _read(self, line: int | None, row: Any, log: Log) -> Iterator[Any]:
        if self._source.table and isinstance(row, Mapping):
            row = _plain(self._source, line, row)  # cells may be arrays
        known = row if isinstance(row, Mapping) else self._dumped(row, log)
        shape = None if known is None else self._shape_of(known, log)
        inner = _inside(known) if known is not None and shape is None else None
        if known is not None and shape is not None:
            yield from self._answers(shape, line, _plain(self._source, line, known), log)
        elif inner is not None:
            for item in inner:
                yield from self._read(line, item, log)
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

    def _shape_of(self, row: Row, log: Log) -> Shape | None:
        if self._forced is not None:
            return self._forced if self._forced.knows(row) else None
        return _shape_of(row, _SHAPES.get(log.last))

    def _dumped(self, row: Any, log: Log) -> Row | None:
        # A client's own object of a span or a run, as its JSON.
        if type(row) in self._responses or not hasattr(row, "model_dump"):
            return None
        dumped = row.model_dump(mode="json", by_alias=True)
        if isinstance(dumped, Mapping) and self._shape_of(dumped, log) is not None:
            return dumped
        self._responses.add(type(row))
        return None

    def _answers(self, shape: Shape, line: int | None, row: Row, log: Log) -> Iterator[ShapedRow]:
        log.last = shape.name
        log.line = line
        answers: list[ShapedRow] = []
        try:
            for cells in shape.read(row, log):
                kept = {k: v for k, v in cells.items() if not is_missing(v)}
                answers.append(ShapedRow(shape, kept))
        except Damaged as e:
            yield from answers
            raise self._source.bad(
                f"{shape.name}: {e.message}", line, e.key, got=e.got, expected=shape.keys.get(e.key)
            ) from None
        # Of several answers each has its own cells: a conversation that goes on, or a file of spans
        # that grows, has its earlier answers still.
        if len(answers) == 1:
            answers[0].row = row
        yield from answers


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
        if name not in row:
            continue
        inner = row[name]
        items = [x for x in inner if isinstance(x, Mapping)] if isinstance(inner, list) else []
        if any(_shape_of(x, None) for x in items[:20]):
            return items
    return None


def _shape_of(row: Row, last: Shape | None) -> Shape | None:
    if last is not None and last.knows(row):
        return last
    for known in _possible(tuple(row)):
        if known.knows(row):
            return known
    return None


@lru_cache(1000)
def _possible(names: tuple[Any, ...]) -> tuple[Shape, ...]:
    words = [str(name) for name in names]
    return tuple(
        shape
        for shape in _IN_ORDER
        if any(
            word.startswith(need) if need.endswith(".") else word == need
            for need in shape.needs
            for word in words
        )
    )
