"""Exchanges as they passed by, written as they came and read by whoever looks at them later.

Their table is made with the first of them, also in a store of an earlier version, and earlier
versions do not see it. A row is never changed.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa

from ..exchange.types import Passed
from .batches import BATCH
from .database import Connected
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


def _packed(passed: Passed) -> dict[str, str | bytes]:
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


def _unpacked(row: Any) -> Passed:
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


class RecordedExchanges(Connected):
    # A part of `Store`.

    _has_exchanges = False  # not known yet

    def record_exchanges(self, passed: Iterable[Passed]) -> None:
        """Write exchanges in one transaction: all of them, or none."""
        packed = list(map(_packed, passed))
        with self._writing() as connection:
            if not self._has_exchanges:
                _own.create_all(connection)
            connection.execute(_INSERT, packed)
        self._has_exchanges = True

    def exchanges(self, after: int = 0, most: int = BATCH) -> list[tuple[int, Passed]]:
        """Return exchanges with their numbers, oldest first, those after number `after`."""
        e = exchanges.c
        query = sa.select(exchanges).where(e.id > after).order_by(e.id).limit(most)
        with self._reading() as connection:
            if not (self._has_exchanges or sa.inspect(connection).has_table(exchanges.name)):
                return []
            return [(row.id, _unpacked(row)) for row in connection.execute(query)]
