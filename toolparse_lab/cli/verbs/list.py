"""`toolparse list`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from ...formats.registry import protocols
from ..options import add_config, add_json, add_store, open_lab, settings_of
from ..output import put, put_json, table, terminal_width

if TYPE_CHECKING:
    from ...runner.settings import Settings
    from ...runner.store.store import RunRecord

EXAMPLES = ("toolparse list", "toolparse list protocols --json")
_Rows: TypeAlias = tuple[tuple[str, ...], list[tuple[Any, ...]]]
_RUN_COLUMNS = (
    "run_id",
    "created",
    "status",
    "items",
    "done",
    "failed",
    "cases",
    "cost",
    "models",
    "arms",
)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the kinds to list."""
    add_config(command)
    command.add_argument(
        "what",
        nargs="?",
        default="runs",
        choices=tuple(_LISTS),
        help="what to list (default: runs)",
    )
    add_store(command)
    add_json(command)


def run(options: Any) -> int:
    """List runs, protocols or models, one a row."""
    head, rows = _LISTS[options.what](settings_of(options))
    if options.json:
        put_json([dict(zip(head, row, strict=True)) for row in rows])
    else:
        put(table(head, rows, width=terminal_width()))
    return 0


def _runs(settings: Settings) -> _Rows:
    """The runs of the store."""
    with open_lab(settings) as lab:
        return _RUN_COLUMNS, [_run(record) for record in lab.runs()]


def _run(record: RunRecord) -> tuple[Any, ...]:
    """Return a run as a row of `_RUN_COLUMNS`."""
    # A run that is under way has no summary yet.
    plan, summary = record.plan, record.summary or {}
    return (
        record.run_id,
        record.created[:19].replace("T", " "),
        record.status,
        record.items,
        record.done,
        record.failed,
        len(plan.get("cases") or ()),
        summary.get("cost"),
        ", ".join(plan.get("models") or ()),
        ", ".join(str(arm.get("name")) for arm in plan.get("arms") or ()),
    )


def _protocols(settings: Settings) -> _Rows:
    """The protocols there are, those of other packages included."""
    rows = [
        (id, ", ".join(protocol.aliases) or None, protocol.title)
        for id, protocol in protocols().items()
    ]
    return ("protocol", "aliases", "what"), list(rows)


def _models(settings: Settings) -> _Rows:
    """Return the configured models, without credentials."""
    rows = [
        (alias, table["name"], table.get("api_base"), table.get("api_key_env"))
        for alias, table in settings.tables.items()
    ]
    return ("model", "name", "api_base", "api_key_env"), list(rows)


_LISTS: Mapping[str, Callable[[Settings], _Rows]] = {
    "runs": _runs,
    "protocols": _protocols,
    "models": _models,
}
