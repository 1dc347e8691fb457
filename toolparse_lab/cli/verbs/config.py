"""`toolparse config`."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from ...runner.exchange.redaction import redact
from ...runner.settings import SETTINGS, Settings
from ..options import add_config, add_json, settings_of
from ..output import put, put_json, table

EXAMPLES = ("toolparse config --json",)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the file and the form of the output."""
    add_config(command)
    add_json(command)


def run(options: Any) -> int:
    """Show the settings and models that hold, credentials only by the name of their variable."""
    settings = settings_of(options)
    file = str(settings.source.path) if settings.source else None
    models = [_model(alias, table, settings) for alias, table in settings.tables.items()]
    if options.json:
        put_json({"file": file, "settings": _values(settings), "models": models})
    else:
        _put_tables(file, settings, models)
    return 0


def _model(alias: str, table: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    """Return a configured model as it stands in the file, with the state of its key's variable."""
    members = dict(table)
    # Only the variable's name is shown, never its value.
    variable = members.pop("api_key_env", None)
    key = None
    if variable:
        key = f"{variable} ({'set' if settings.environ.get(variable) else 'not set'})"
    place = settings.source.place(alias) if settings.source else ""
    return {"alias": alias, **members, "api_key": key, "origin": place}


def _values(settings: Settings) -> dict[str, dict[str, Any]]:
    """Return name of a setting -> its value and where it came from."""
    return {
        name: {"value": _masked(settings[name]), "origin": settings.origins[name]}
        for name in SETTINGS
    }


def _put_tables(file: str | None, settings: Settings, models: list[dict[str, Any]]) -> None:
    """Write settings and models as two tables."""
    put(f"file: {file or 'none'}\n")
    rows = [(name, _cell(settings[name]), settings.origins[name]) for name in SETTINGS]
    put(table(("setting", "value", "from"), rows))
    if not models:
        return
    cells = [
        (
            model["alias"],
            model["name"],
            model.get("api_base"),
            model["api_key"] or "the provider's own",
            model["origin"],
        )
        for model in models
    ]
    put("\n" + table(("model", "name", "api_base", "key", "from"), cells))


def _masked(value: Any) -> Any:
    # An address of a database may hold a password.
    return redact(value) if isinstance(value, str) else value


def _cell(value: Any) -> Any:
    return ", ".join(value) if isinstance(value, list) else _masked(value)
