"""The notes that a person writes beside a trial: notes and outcomes set by hand.

Scores stay as they are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime

import sqlalchemy as sa

from . import schema

# How remarks are kept. Every change adds a row with the parts that changed, and of each part the
# newest holds. The body is ASCII JSON as bytes: a person may paste what a model wrote, NUL and lone
# surrogates included, which break text columns.


def insert_remark(
    connection: sa.Connection, run_id: str, trial_id: str, remark: Mapping[str, str]
) -> None:
    """Add parts of the remarks on a trial. Rows before it stay."""
    connection.execute(
        schema.remarks.insert().values(
            run_id=run_id,
            trial_id=trial_id,
            created=datetime.now(UTC).isoformat(timespec="milliseconds"),
            body=json.dumps(dict(remark), ensure_ascii=True).encode("ascii"),
        )
    )


def newest_remarks(connection: sa.Connection, run_id: str) -> dict[str, dict[str, str]]:
    """Return the remarks on each trial of a run that has some, by trial id: of each part the
    newest.
    """
    r = schema.remarks.c
    query = sa.select(r.trial_id, r.body).where(r.run_id == run_id).order_by(r.id)
    remarks: dict[str, dict[str, str]] = {}
    for row in connection.execute(query):
        remarks.setdefault(row.trial_id, {}).update(json.loads(row.body))
    return remarks
