"""The rows of the store's tables, made from the runner's types and back.

Texts of models are packed bytes.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from ...core.values import write_canonical
from ..exchange.types import RESULT_KEYS, Chunk, Completion, PlanItem
from . import schema
from .batches import batches

# How rows are made. A completion's plain fields have a column of their own name; five are packed
# (zlib over UTF-8 with surrogatepass), because a model's text may hold lone surrogates and NUL
# characters, which break text columns. The request is a row of `requests`, once for all answers to
# it, and results are rows of `tool_results`, which may be added later. So no answer is ever
# updated.

_PACKED = ("raw", "chunks", "reasoning", "response", "results")
_PLAIN = tuple(
    f.name
    for f in fields(Completion)
    if f.name not in (*_PACKED, "request") and f.name in schema.completions.c
)
# Plain fields that hold the words of a provider, with whatever characters it sent.
_FOREIGN_TEXTS = ("error_message", "finish_reason", "system_fingerprint")
# Built once, because building a statement costs more than running it.
INSERT_COMPLETION = schema.completions.insert()
_KNOWN_REQUESTS = sa.select(schema.requests.c.key).where(
    schema.requests.c.key.in_(sa.bindparam("keys", expanding=True))
)


def pack(text: str) -> bytes:
    """Return text as compressed bytes that keep lone surrogates."""
    return zlib.compress(text.encode("utf-8", "surrogatepass"))


def unpack(blob: bytes) -> str:
    """Return the text that `pack` was called with."""
    return zlib.decompress(blob).decode("utf-8", "surrogatepass")


def pack_json(value: Any) -> bytes:
    # A value that is not JSON is written as its text.
    return pack(_write(value))


_write = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str).encode


def unpack_json(blob: bytes) -> Any:
    """Return the value that `pack_json` was called with."""
    return json.loads(unpack(blob))


def plain_text(value: str | None) -> str | None:
    """Return a text for a text column: text that UTF-8 or PostgreSQL cannot hold becomes a
    replacement character.
    """
    if value is None or (value.isascii() and "\0" not in value):
        return value
    return value.encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")


def completion_of(row: Any, results: Iterable[dict[str, str]]) -> Completion:
    """Return the completion of a row of `completions` joined with its request's `body`.

    `results` are those of its tool calls, from their own table.
    """
    values: dict[str, Any] = {name: getattr(row, name) for name in _PLAIN}
    values["raw"] = unpack(row.raw)
    if row.chunks is not None:
        chunks = unpack_json(row.chunks)
        values["chunks"] = tuple(Chunk(at, text, kind) for at, text, kind in chunks)
    if row.reasoning is not None:
        values["reasoning"] = unpack(row.reasoning)
    if row.response is not None:
        values["response"] = unpack_json(row.response)
    if row.body is not None:
        values["request"] = unpack_json(row.body)
    values["results"] = tuple(results)
    return Completion(**values)


def completion_row(c: Completion, run_id: str | None) -> dict[str, Any]:
    """Return a completion as a row of `completions`, recorded by `run_id` or by no run.

    Its request and results are not in it: `keep_requests` and `keep_results` write them.
    """
    row = {name: getattr(c, name) for name in _PLAIN}
    for name in _FOREIGN_TEXTS:
        row[name] = plain_text(row[name])
    row["run_id"] = run_id

    # Every row has every column, so that one statement takes them all.
    row["raw"] = pack(c.raw)
    row["chunks"] = pack_json([[x.at, x.text, x.kind] for x in c.chunks]) if c.chunks else None
    row["reasoning"] = pack(c.reasoning) if c.reasoning else None
    row["response"] = pack_json(dict(c.response)) if c.response is not None else None
    return row


def item_rows(run_id: str, items: Iterable[PlanItem], start: int = 0) -> Iterator[dict[str, Any]]:
    """Yield the rows of a plan's items, numbered from `start` in their order."""
    for n, item in enumerate(items, start):
        yield {
            "run_id": run_id,
            "position": n,
            "case_id": plain_text(item.case_id),
            "model": plain_text(item.model),
            "trial": item.trial,
            "arm": json.dumps(dict(item.arm), ensure_ascii=True, separators=(",", ":")),
            "key": item.key,
        }


def items_digest(items: Iterable[PlanItem]) -> str:
    """Return the identity of a plan's items in their order, as hexadecimal sha256."""
    digest = hashlib.sha256()
    for row in item_rows("", items):
        digest.update(json.dumps(list(row.values())).encode("ascii"))
    return digest.hexdigest()


def insert_items(connection: sa.Connection, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write the rows of a plan's items, a batch a statement."""
    for batch in batches(rows):
        connection.execute(schema.items.insert(), batch)


def keep_requests(
    connection: sa.Connection, keys: Iterable[str], body: Callable[[str], Mapping[str, Any]]
) -> None:
    # Those that are not there yet: only of these the body is asked for.
    # In one order for all: two on a server that add the same ones would wait for each other.
    for batch in batches(sorted(set(keys))):
        present = set(connection.execute(_KNOWN_REQUESTS, {"keys": batch}).scalars())
        # Making a body renders a prompt, which costs more than the query above.
        rows = [
            {"key": key, "body": pack_json(dict(body(key)))} for key in batch if key not in present
        ]
        if rows:
            connection.execute(insert_or_keep(connection, schema.requests), rows)


def keep_results(
    connection: sa.Connection, completion_id: int, results: Iterable[Mapping[str, str]]
) -> None:
    # The first one recorded for a call stays.
    rows = []
    for result in results:
        members = {name: str(result[name]) for name in RESULT_KEYS}
        # A call is known by its id, name and arguments together: models repeat ids.
        call = write_canonical([members["call_id"], members["name"], members["arguments_json"]])
        digest = hashlib.sha256(call.encode("utf-8", "surrogatepass")).hexdigest()
        rows.append({"completion_id": completion_id, "call": digest, "body": pack_json(members)})
    if rows:
        connection.execute(insert_or_keep(connection, schema.tool_results), rows)


def insert_or_keep(connection: sa.Connection, table: sa.Table) -> Any:
    # Rows of the same key stay, whoever wrote them in between.
    insert: Any = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    return insert(table).on_conflict_do_nothing()
