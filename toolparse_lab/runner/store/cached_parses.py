"""What was read of a run's answers, kept in blocks of columns, so that nobody reads them twice.

It is a cache beside the record: any block may be thrown away at any time and is then made again.
So it is no part of the store's schema. Its table is made when there is something to keep, also in
a store that an earlier version wrote, and earlier versions do not see it.
"""

# How it works. The runner does not know what a reading is: a block is bytes under the id of a run,
# a kind (whatever tells one way of reading from another) and a number. Whoever keeps it says of
# which items it was made (`items`), of which answers to them (`answers`), both as digests, and what
# was the newest row in the store before these were read (`newest`). A block is still true if its
# items are the same and nothing was recorded for one of them since, which one query over the rows
# after `newest` says, and these are few. Where something was, `answers` decides. A digest comes
# before the bytes: a cache that was damaged must not pass for a reading.

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass

import sqlalchemy as sa

from . import rows, schema
from .batches import batches
from .database import Connected

_DIGEST = 16  # bytes
_AT_ONCE = 1000  # rows that writers of a server may have under way

_cache = sa.MetaData()
readings = sa.Table(
    "readings",
    _cache,
    sa.Column("run_id", sa.String(64), primary_key=True),
    sa.Column("kind", sa.String(200), primary_key=True),
    sa.Column("block", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("items", sa.String(64), nullable=False),
    sa.Column("answers", sa.String(64), nullable=False),
    sa.Column("newest", sa.BigInteger, nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
)


@dataclass(frozen=True, slots=True)
class Block:
    """What a block was made of, as it is kept."""

    items: str
    answers: str
    newest: int


def _digest(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=_DIGEST).digest()


class CachedParseTable(Connected):
    # A part of `Store`. A store that can only be read has one in memory for what is kept.
    _parses: CachedParseTable | None = None

    @property
    def _cache(self) -> CachedParseTable:
        return self if self._parses is None else self._parses

    def _has_readings(self, connection: sa.Connection) -> bool:
        return bool(sa.inspect(connection).has_table(readings.name))

    def reading_blocks(self, run_id: str, kind: str) -> dict[int, Block]:
        """Return what the kept blocks of one kind of reading were made of, by their numbers."""
        r = readings.c
        query = sa.select(r.block, r["items"], r.answers, r.newest)  # `r.items` is a method
        query = query.where(r.run_id == run_id, r.kind == kind)
        with self._cache._reading() as connection:
            if not self._has_readings(connection):
                return {}
            return {n: Block(*made_of) for n, *made_of in connection.execute(query)}

    def reading_block(self, run_id: str, kind: str, number: int) -> bytes | None:
        """Return one block as it was kept, None if it is gone meanwhile, or damaged."""
        r = readings.c
        query = sa.select(r.body).where(r.run_id == run_id, r.kind == kind, r.block == number)
        with self._cache._reading() as connection:
            kept: bytes = connection.execute(query).scalar() or b""
        digest, body = kept[:_DIGEST], kept[_DIGEST:]
        return body if digest == _digest(body) else None

    def keep_reading(
        self, run_id: str, kind: str, number: int, made_of: Block, body: bytes
    ) -> None:
        """Keep one block, in the place of an older one of its number."""
        r = readings.c
        same = (r.run_id == run_id, r.kind == kind, r.block == number)
        place = {"run_id": run_id, "kind": kind, "block": number}
        values = {**place, **asdict(made_of), "body": _digest(body) + body}
        with self._cache._writing() as connection:
            _cache.create_all(connection, checkfirst=True)
            connection.execute(readings.delete().where(*same))
            connection.execute(rows.insert_or_keep(connection, readings), values)

    def forget_parses(self, run_id: str | None = None) -> int:
        """Throw away what was kept of a run, or of all runs. Return its size in bytes."""
        r = readings.c
        chosen = [] if run_id is None else [r.run_id == run_id]
        size = sa.select(sa.func.sum(sa.func.length(r.body))).where(*chosen)
        with self._cache._writing() as connection:
            if not self._has_readings(connection):
                return 0
            freed = connection.execute(size).scalar() or 0
            connection.execute(readings.delete().where(*chosen))
        return int(freed)

    def newest_row(self) -> int:
        """Return the mark for `answered_since`: every row that is recorded from now on is after
        it.
        """
        query = sa.select(sa.func.max(schema.completions.c.id))
        with self._reading() as connection:
            newest = connection.execute(query).scalar() or 0
            # Several may write at once to a server: a row of a smaller id may be there later.
            return newest if connection.dialect.name == "sqlite" else max(0, newest - _AT_ONCE)

    def ends_with(self, newest: int) -> bool:
        """Return True if this row (0: none) is the newest. False on a server, where several write
        at once, and nobody can say.
        """
        query = sa.select(sa.func.max(schema.completions.c.id))
        with self._reading() as connection:
            last = connection.execute(query).scalar() or 0
            return connection.dialect.name == "sqlite" and last == newest

    def recorded_since(self, mark: int) -> str:
        """Return a word that changes when anything is recorded after the mark."""
        ids = schema.completions.c.id
        # Rows are only ever added.
        query = sa.select(sa.func.count(), sa.func.max(ids)).where(ids > mark)
        with self._reading() as connection:
            return " ".join(map(str, connection.execute(query).one()))

    def answered_since(self, run_id: str, mark: int) -> set[str]:
        """Return the keys of a run's items for which something was recorded after the mark."""
        i, c = schema.items.c, schema.completions.c
        keys = sa.select(c.key).where(c.id > mark).distinct()
        found: set[str] = set()
        with self._reading() as connection:
            own = rows.items_of(rows.run_row(connection, run_id))
            for batch in batches(connection.execute(keys).scalars().all()):
                query = sa.select(i.key).where(i.key.in_(batch), own).distinct()
                found.update(connection.execute(query).scalars())
        return found
