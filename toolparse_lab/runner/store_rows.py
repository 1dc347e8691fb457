"""What stands in the store's tables, made from the runner's types and back. Texts of models are packed bytes."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from ..values import write_canonical
from . import store_schema as schema
from .batches import batches
from .types import RESULT_KEYS, Chunk, Completion, PlanItem

_PACKED = ("raw", "chunks", "reasoning", "response", "results")
_PLAIN = tuple(
    f.name for f in fields(Completion) if f.name not in (*_PACKED, "request") and f.name in schema.completions.c
)
# Built once, because building a statement costs more than running it.
INSERT_COMPLETION = schema.completions.insert()
_KNOWN_REQUESTS = sa.select(schema.requests.c.key).where(
    schema.requests.c.key.in_(sa.bindparam("keys", expanding=True))
)


def pack(text: str) -> bytes:
    """Text as compressed bytes that keep lone surrogates."""
    return zlib.compress(text.encode("utf-8", "surrogatepass"))


def unpack(blob: bytes) -> str:
    return zlib.decompress(blob).decode("utf-8", "surrogatepass")


def pack_json(value: Any) -> bytes:
    return pack(json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str))


def unpack_json(blob: bytes) -> Any:
    return json.loads(unpack(blob))


def plain_text(value: str | None) -> str | None:
    """A text for a text column: what UTF-8 or PostgreSQL cannot hold becomes a replacement character."""
    if value is None or (value.isascii() and "\0" not in value):
        return value
    return value.encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")


def completion_of(row: Any, results: Iterable[dict[str, str]]) -> Completion:
    values: dict[str, Any] = {name: getattr(row, name) for name in _PLAIN}
    values["raw"] = unpack(row.raw)
    chunks = unpack_json(row.chunks) if row.chunks is not None else []
    values["chunks"] = tuple(Chunk(at, text, kind) for at, text, kind in chunks)
    values["reasoning"] = unpack(row.reasoning) if row.reasoning is not None else ""
    values["response"] = unpack_json(row.response) if row.response is not None else None
    values["request"] = unpack_json(row.body) if row.body is not None else {}
    values["results"] = tuple(results)
    return Completion(**values)


def completion_row(c: Completion, run_id: str | None) -> dict[str, Any]:
    row = {name: getattr(c, name) for name in _PLAIN}
    for name in ("error_message", "finish_reason", "system_fingerprint"):
        row[name] = plain_text(row[name])
    row["run_id"] = run_id
    row["raw"] = pack(c.raw)
    row["chunks"] = pack_json([[x.at, x.text, x.kind] for x in c.chunks]) if c.chunks else None
    row["reasoning"] = pack(c.reasoning) if c.reasoning else None
    row["response"] = pack_json(dict(c.response)) if c.response is not None else None
    return row


def item_rows(run_id: str, items: Iterable[PlanItem], start: int = 0) -> Iterator[dict[str, Any]]:
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


def keep_requests(connection: sa.Connection, keys: Iterable[str], body: Callable[[str], Mapping[str, Any]]) -> None:
    """Writes the requests of `keys` that are not there yet; only of these the body is asked for."""
    for batch in batches(dict.fromkeys(keys)):
        known = set(connection.execute(_KNOWN_REQUESTS, {"keys": batch}).scalars())
        rows = [{"key": key, "body": pack_json(dict(body(key)))} for key in batch if key not in known]
        if rows:
            connection.execute(_insert_or_keep(connection, schema.requests), rows)


def keep_results(connection: sa.Connection, completion_id: int, results: Iterable[Mapping[str, str]]) -> None:
    rows = []
    for result in results:
        kept = {k: str(result[k]) for k in RESULT_KEYS}
        call = write_canonical([kept["call_id"], kept["name"], kept["arguments_json"]])
        digest = hashlib.sha256(call.encode("utf-8", "surrogatepass")).hexdigest()
        rows.append({"completion_id": completion_id, "call": digest, "body": pack_json(kept)})
    if rows:
        connection.execute(_insert_or_keep(connection, schema.tool_results), rows)


def _insert_or_keep(connection: sa.Connection, table: sa.Table) -> Any:
    made = sqlite.insert(table) if connection.dialect.name == "sqlite" else postgresql.insert(table)
    return made.on_conflict_do_nothing()
