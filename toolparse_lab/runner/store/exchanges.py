"""Exchanges as they passed by, written as they came and read by whoever looks at them later.

Their table is made with the first of them, also in a store of an earlier version, and earlier
versions do not see it. A row is never changed.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable

import sqlalchemy as sa

from ..exchange.passed import Passed
from .schema import Id

_own = sa.MetaData()
exchanges = sa.Table(
    "exchanges",
    _own,
    sa.Column("id", Id, primary_key=True, autoincrement=True),
    sa.Column("app", sa.String(100), nullable=False),
    sa.Column("created", sa.String(40), nullable=False),
    sa.Column("head", sa.LargeBinary, nullable=False),
    sa.Column("request", sa.LargeBinary, nullable=False),
    sa.Column("response", sa.LargeBinary, nullable=False),
    sa.Index("exchanges_app", "app", "id"),
)
_INSERT = exchanges.insert()
_FAST = 1  # level of zlib: whoever writes is in a running application


def is_there(connection: sa.Connection) -> bool:
    return bool(sa.inspect(connection).has_table(exchanges.name))


def make(connection: sa.Connection) -> None:
    """Create the table where there is none."""
    _own.create_all(connection)


def packed(passed: Passed) -> dict[str, str | bytes]:
    """Return the row of an exchange."""
    head = {
        "path": passed.path,
        "status": passed.status,
        "pieces": [[round(at, 6), size] for at, size in passed.pieces],
        "seconds": round(passed.seconds, 6),
        "end": passed.end,
        "fidelity": passed.fidelity,
        "facts": passed.facts,
    }
    text = json.dumps(head, ensure_ascii=True, separators=(",", ":"), default=str)
    return {
        "app": passed.app,
        "created": passed.created,
        "head": zlib.compress(text.encode(), _FAST),
        "request": zlib.compress(passed.request, _FAST),
        "response": zlib.compress(passed.response, _FAST),
    }


def write(connection: sa.Connection, rows: list[dict[str, str | bytes]]) -> None:
    connection.execute(_INSERT, rows)


def apps(connection: sa.Connection) -> dict[str, int]:
    """Return the newest exchange of each application, by name."""
    e = exchanges.c
    query = sa.select(e.app, sa.func.max(e.id)).group_by(e.app).order_by(e.app)
    return {row[0]: row[1] for row in connection.execute(query)}


def newest(connection: sa.Connection, app: str) -> int:
    """Return the newest exchange of an application, 0 for none."""
    e = exchanges.c
    return connection.execute(sa.select(sa.func.max(e.id)).where(e.app == app)).scalar() or 0


def after(connection: sa.Connection, app: str, id: int, most: int) -> Iterable[tuple[int, Passed]]:
    """Return the exchanges of an application after one of them, oldest first, at most so many."""
    e = exchanges.c
    query = sa.select(exchanges).where(e.app == app, e.id > id).order_by(e.id).limit(most)
    return [(row.id, _unpacked(row)) for row in connection.execute(query)]


def _unpacked(row: sa.Row[tuple[object, ...]]) -> Passed:
    head = json.loads(zlib.decompress(row.head))
    return Passed(
        app=row.app,
        created=row.created,
        path=head["path"],
        request=zlib.decompress(row.request),
        response=zlib.decompress(row.response),
        status=head["status"],
        pieces=tuple((at, size) for at, size in head["pieces"]),
        seconds=head["seconds"],
        end=head["end"],
        fidelity=head["fidelity"],
        facts=head["facts"],
    )
