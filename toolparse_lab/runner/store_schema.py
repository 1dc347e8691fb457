"""The store's tables and the steps from each older version of them to the next."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import sqlalchemy as sa

from ..errors import StoreError
from .store_engine import shown_url

VERSION = 2
_LOCK = 0x746F6F6C  # any number that others are unlikely to lock
Migration = Callable[[sa.Connection], None]


def _add_tool_results(connection: sa.Connection) -> None:
    binary = sa.LargeBinary().compile(dialect=connection.dialect)
    connection.exec_driver_sql(
        "CREATE TABLE tool_results (completion_id BIGINT NOT NULL REFERENCES completions (id), "
        f"call VARCHAR(64) NOT NULL, body {binary} NOT NULL, PRIMARY KEY (completion_id, call))"
    )


MIGRATIONS: Mapping[int, Migration] = MappingProxyType({1: _add_tool_results})
"""From version n to n + 1. A step speaks plain SQL: the tables below are those of the newest version only."""

tables = sa.MetaData()
_Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")

schema_version = sa.Table("toolparse_schema", tables, sa.Column("version", sa.Integer, nullable=False))

runs = sa.Table(
    "runs",
    tables,
    sa.Column("run_id", sa.String(64), primary_key=True),
    sa.Column("created", sa.String(40), nullable=False),
    sa.Column("status", sa.String(16), nullable=False),
    sa.Column("floor", _Id, nullable=False, comment="newest completion when the run began: what it may reuse"),
    sa.Column("plan", sa.Text, nullable=False),
    sa.Column("summary", sa.Text),
)

items = sa.Table(
    "plan_items",
    tables,
    sa.Column("id", _Id, primary_key=True, autoincrement=True),
    sa.Column("run_id", sa.ForeignKey("runs.run_id"), nullable=False),
    sa.Column("position", sa.Integer, nullable=False),
    sa.Column("case_id", sa.Text, nullable=False),
    sa.Column("model", sa.Text, nullable=False),
    sa.Column("trial", sa.Integer, nullable=False),
    sa.Column("arm", sa.Text, nullable=False),
    sa.Column("key", sa.String(64), nullable=False),
    sa.Index("plan_items_run", "run_id", "position"),
    sa.Index("plan_items_key", "key"),
)

requests = sa.Table(
    "requests",
    tables,
    sa.Column("key", sa.String(64), primary_key=True),
    sa.Column("body", sa.LargeBinary, nullable=False),
)

completions = sa.Table(
    "completions",
    tables,
    sa.Column("id", _Id, primary_key=True, autoincrement=True),
    sa.Column("key", sa.String(64), nullable=False),
    sa.Column("run_id", sa.String(64)),
    sa.Column("status", sa.String(8), nullable=False),
    sa.Column("error_kind", sa.String(32)),
    sa.Column("error_message", sa.Text),
    sa.Column("finish_reason", sa.Text),
    sa.Column("prompt_tokens", sa.Integer),
    sa.Column("completion_tokens", sa.Integer),
    sa.Column("cost", sa.Float(53)),
    sa.Column("latency", sa.Float(53)),
    sa.Column("ttft", sa.Float(53)),
    sa.Column("queue_wait", sa.Float(53)),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("endpoint_kind", sa.String(16), nullable=False),
    sa.Column("fidelity", sa.String(16), nullable=False),
    sa.Column("stream", sa.Boolean, nullable=False),
    sa.Column("cut", sa.Boolean, nullable=False),
    sa.Column("system_fingerprint", sa.Text),
    sa.Column("created", sa.String(40), nullable=False),
    sa.Column("raw", sa.LargeBinary, nullable=False),
    sa.Column("chunks", sa.LargeBinary),
    sa.Column("reasoning", sa.LargeBinary),
    sa.Column("response", sa.LargeBinary),
    sa.Index("completions_key", "key", "status"),
    sa.Index("completions_run", "run_id"),
)

tool_results = sa.Table(
    "tool_results",
    tables,
    sa.Column("completion_id", sa.ForeignKey("completions.id"), primary_key=True, autoincrement=False),
    sa.Column("call", sa.String(64), primary_key=True, comment="sha256 of call id, name and arguments"),
    sa.Column("body", sa.LargeBinary, nullable=False),
)


def prepare(
    connection: sa.Connection, *, version: int = VERSION, migrations: Mapping[int, Migration] = MIGRATIONS
) -> None:
    """Creates the tables of an empty database, or migrates an older one, in the connection's transaction.

    Raises StoreError for a database of a newer version, or one that holds something else.
    """
    if connection.dialect.name == "postgresql":
        # Two that find an empty database would both create the tables; SQLite's transaction is alone anyway.
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
    place = shown_url(connection.engine.url)
    present = set(sa.inspect(connection).get_table_names())
    if schema_version.name not in present:
        taken = sorted(present & {t.name for t in tables.tables.values()})
        if taken:
            raise StoreError(
                f"{place} holds other tables under the store's names.",
                got=taken,
                hint="choose another file or database",
            )
        tables.create_all(connection)
        connection.execute(schema_version.insert().values(version=version))
        return
    found = connection.execute(sa.select(schema_version.c.version)).scalar_one()
    if found > version:
        raise StoreError(
            f"The store {place} was written by a newer version of toolparse_lab.",
            got=f"schema version {found}",
            expected=f"at most {version}",
            hint="upgrade toolparse_lab, or use another store",
        )
    for step in range(found, version):
        migrations[step](connection)
        connection.execute(schema_version.update().values(version=step + 1))
