"""The store's tables and the steps from each older version of them to the next."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import sqlalchemy as sa

from ...core.errors import StoreError
from .database import shown_url

# How migrations work. A database has its version in a table of one row. Opening a store compares
# it with VERSION and runs the steps in between, oldest first, in one transaction: a step that
# fails, or a kill in the middle, leaves the database as it was. A new version is one entry in
# MIGRATIONS and one number; the step writes plain SQL for the tables as they were then, because the
# Table objects below describe the newest version only and would change under it. Tests open a store
# that version 1 wrote.

VERSION = 5
_LOCK = 0x746F6F6C  # any number that others are unlikely to lock
Migration = Callable[[sa.Connection], None]


def _step(*statements: str) -> Migration:
    # {binary}, {real}, {id}: these types in the words of the database.
    def migrate(connection: sa.Connection) -> None:
        words = {
            "binary": sa.LargeBinary().compile(dialect=connection.dialect),
            "real": sa.Float(53).compile(dialect=connection.dialect),
            "id": "BIGSERIAL" if connection.dialect.name == "postgresql" else "INTEGER",
        }
        for statement in statements:
            connection.exec_driver_sql(statement.format(**words))

    return migrate


MIGRATIONS: Mapping[int, Migration] = MappingProxyType({
    # Results of tool calls.
    1: _step(
        "CREATE TABLE tool_results (completion_id BIGINT NOT NULL REFERENCES completions (id), "
        "call VARCHAR(64) NOT NULL, body {binary} NOT NULL, PRIMARY KEY (completion_id, call))"
    ),
    # Who works on which run, claims on questions, and plans stored once.
    2: _step(
        "CREATE TABLE workers (owner VARCHAR(96) NOT NULL PRIMARY KEY, run_id VARCHAR(64), "
        "host VARCHAR(200) NOT NULL, pid BIGINT NOT NULL, expires {real} NOT NULL)",
        "CREATE TABLE claims (key VARCHAR(64) NOT NULL PRIMARY KEY, owner VARCHAR(96) NOT NULL, "
        "failed VARCHAR(32), at {real})",
        "CREATE INDEX claims_owner ON claims (owner)",
        "ALTER TABLE runs ADD COLUMN items_digest VARCHAR(64)",
        "ALTER TABLE runs ADD COLUMN items_from VARCHAR(64)",
        "ALTER TABLE runs ADD COLUMN items_count INTEGER",
        "CREATE INDEX runs_items ON runs (items_digest)",
    ),
    # Workers are known by the start of their process, and their leases by clocks that no one sets.
    3: _step(
        "ALTER TABLE workers ADD COLUMN started VARCHAR(32)",
        "ALTER TABLE workers ADD COLUMN uptime {real}",
        "ALTER TABLE workers ADD COLUMN since {real}",
    ),
    # Notes of people about trials.
    4: _step(
        "CREATE TABLE remarks (id {id} NOT NULL PRIMARY KEY, run_id VARCHAR(64) NOT NULL "
        "REFERENCES runs (run_id), trial_id VARCHAR(64) NOT NULL, created VARCHAR(40) NOT NULL, "
        "body {binary} NOT NULL)",
        "CREATE INDEX remarks_run ON remarks (run_id)",
    ),
})  # fmt: skip
"""The step from version n to n + 1."""

tables = sa.MetaData()
# SQLite gives ids of its own only to a column that is exactly INTEGER.
Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")

schema_version = sa.Table(
    "toolparse_schema", tables, sa.Column("version", sa.Integer, nullable=False)
)

# A run and its plan. `status` and `summary` are the only columns that are ever updated.
runs = sa.Table(
    "runs",
    tables,
    sa.Column("run_id", sa.String(64), primary_key=True),
    sa.Column("created", sa.String(40), nullable=False),
    sa.Column("status", sa.String(16), nullable=False),
    sa.Column(
        "floor",
        Id,
        nullable=False,
        comment="newest completion when the run began: what it may reuse",
    ),
    sa.Column("plan", sa.Text, nullable=False),
    sa.Column("summary", sa.Text),
    sa.Column("items_digest", sa.String(64), comment="sha256 of the items it began with"),
    sa.Column("items_from", sa.String(64), comment="the earlier run that has these items"),
    sa.Column("items_count", sa.Integer, comment="how many of that run's items are its own"),
    sa.Index("runs_items", "items_digest"),
)

# The lines of a plan, in the order of `position`; several may share a key, asked once.
items = sa.Table(
    "plan_items",
    tables,
    sa.Column("id", Id, primary_key=True, autoincrement=True),
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

# Questions, once each, whatever number of runs and answers they have.
requests = sa.Table(
    "requests",
    tables,
    sa.Column("key", sa.String(64), primary_key=True),
    sa.Column("body", sa.LargeBinary, nullable=False),
)

# Answers and failures, one row an attempt. A larger id was recorded later.
completions = sa.Table(
    "completions",
    tables,
    sa.Column("id", Id, primary_key=True, autoincrement=True),
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

# What functions returned for the calls of an answer, in conversations; added after the answer.
tool_results = sa.Table(
    "tool_results",
    tables,
    sa.Column(
        "completion_id", sa.ForeignKey("completions.id"), primary_key=True, autoincrement=False
    ),
    sa.Column(
        "call", sa.String(64), primary_key=True, comment="sha256 of call id, name and arguments"
    ),
    sa.Column("body", sa.LargeBinary, nullable=False),
)

# Notes and outcomes set by hand; of each part of a trial's remarks the newest row counts.
remarks = sa.Table(
    "remarks",
    tables,
    sa.Column("id", Id, primary_key=True, autoincrement=True),
    sa.Column("run_id", sa.ForeignKey("runs.run_id"), nullable=False),
    sa.Column("trial_id", sa.String(64), nullable=False),
    sa.Column("created", sa.String(40), nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
    sa.Index("remarks_run", "run_id"),
)

# Who asks now, with a lease; see `claims`.
workers = sa.Table(
    "workers",
    tables,
    sa.Column("owner", sa.String(96), primary_key=True),
    sa.Column("run_id", sa.String(64)),
    sa.Column("host", sa.String(200), nullable=False),
    sa.Column("pid", sa.BigInteger, nullable=False),
    sa.Column("expires", sa.Float(53), nullable=False, comment="seconds since 1970"),
    sa.Column("started", sa.String(32), comment="the start of the process, as its system counts"),
    sa.Column("uptime", sa.Float(53), comment="the end of the lease by the machine's own uptime"),
    sa.Column("since", sa.Float(53), comment="when it began, by the store's clock; see `claims`"),
)

# Questions that a worker asks now, or that have failed a moment ago.
claims = sa.Table(
    "claims",
    tables,
    sa.Column("key", sa.String(64), primary_key=True),
    sa.Column("owner", sa.String(96), nullable=False),
    sa.Column("failed", sa.String(32), comment="the error kind of a question given up"),
    sa.Column("at", sa.Float(53), comment="when it was given up"),
    sa.Index("claims_owner", "owner"),
)


def prepare(
    connection: sa.Connection,
    *,
    version: int = VERSION,
    migrations: Mapping[int, Migration] = MIGRATIONS,
) -> None:
    """Create the tables of an empty database, or migrate an older one, in the connection's
    transaction.

    Raises StoreError for a database of a newer version, or one with something else in it.
    """
    if connection.dialect.name == "postgresql":
        # Two that find an empty database would both create the tables; SQLite's transaction is
        # alone anyway.
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
    place = shown_url(connection.engine.url)

    present = set(sa.inspect(connection).get_table_names())
    if schema_version.name not in present:
        _create(connection, present, place, version)
        return

    current = version_of(connection, version)
    for step in range(current, version):
        migrations[step](connection)
        connection.execute(schema_version.update().values(version=step + 1))


def version_of(connection: sa.Connection, newest: int = VERSION) -> int:
    """Return the version of a store's tables. Raises StoreError for one that is too new."""
    current = connection.execute(sa.select(schema_version.c.version)).scalar_one()
    if not isinstance(current, int) or current > newest:
        raise StoreError(
            f"the store {shown_url(connection.engine.url)} was written by a newer version of "
            "toolparse_lab",
            got=f"schema version {current}",
            expected=f"at most {newest}",
            hint="upgrade toolparse_lab, or use another store",
        )
    return current


def _create(connection: sa.Connection, present: set[str], place: str, version: int) -> None:
    # A table of a name that the store needs, in a database that is not a store, is another's.
    clashes = sorted(present & {t.name for t in tables.tables.values()})
    if clashes:
        raise StoreError(
            f"{place} holds other tables under the store's names.",
            got=clashes,
            hint="choose another file or database",
        )
    tables.create_all(connection)
    connection.execute(schema_version.insert().values(version=version))
