"""Options that commands share, and what they come to."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TextIO

from ..errors import BadOptions, MissingExtra, StoreError
from ..settings import SETTINGS, Settings, load_settings
from .output import say

if TYPE_CHECKING:
    from ..lab import Lab

RUN_HELP = "a run's id, the beginning of one, latest, or latest~1 (the one before)"


class Commands:
    """Adds commands to a parser, each with an example."""

    def __init__(self, commands: Any) -> None:
        self._commands = commands

    def add(
        self, name: str, run: Callable[[Any], int], about: str, *examples: str, config: bool = True
    ) -> argparse.ArgumentParser:
        """A command that `run` runs; `config`: whether settings of a file hold for it."""
        lines = ["example:" if len(examples) == 1 else "examples:", *(f"  {e}" for e in examples)]
        command: argparse.ArgumentParser = self._commands.add_parser(
            name, help=about, description=about[0].upper() + about[1:] + ".", epilog="\n".join(lines),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )  # fmt: skip
        command.set_defaults(handler=run)
        if config:
            command.add_argument("--config", metavar="FILE", help="settings (default: the nearest toolparse.toml)")
        return command


def names(text: str) -> list[str]:
    """A list as a flag writes it."""
    found = [part.strip() for part in text.split(",") if part.strip()]
    if not found:
        raise argparse.ArgumentTypeError("a list of names, with commas between them")
    return found


def renaming(text: str) -> dict[str, str | None]:
    """`A=B,C=` as a mapping; nothing behind the sign leaves a column out."""
    return {old.strip(): new.strip() or None for old, _, new in (pair.partition("=") for pair in names(text))}


def add_store(command: argparse.ArgumentParser) -> None:
    command.add_argument("--store", metavar="PATH", help="where answers are recorded (default: toolparse.db)")


def add_policy(command: argparse.ArgumentParser) -> None:
    choices = ", ".join(SETTINGS["policy"].choices)
    command.add_argument("--policy", help=f"coercion policy: {choices} (default: safe)")


def add_color(command: argparse.ArgumentParser) -> None:
    command.add_argument("--color", choices=("auto", "always", "never"), help="colour (default: auto)")


def add_json(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="print JSON")


def add_gate(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--fail-under", type=float, metavar="RATE", help="exit code 1 where a cell's success is below, or not known"
    )
    command.add_argument(
        "--gate", action="append", default=[], metavar="COLUMN=BOUND",
        help="exit code 1 where a cell does not keep another bound, such as coercion_rate=0.2; may be repeated",
    )  # fmt: skip


def gates_of(options: Any, more: dict[str, float] | None = None) -> dict[str, float]:
    """The thresholds that were given, by column."""
    found = dict(more or {})
    if options.fail_under is not None:
        found["success"] = options.fail_under
    for text in options.gate:
        column, _, bound = text.partition("=")
        try:
            found[column.strip()] = float(bound)
        except ValueError:
            raise BadOptions("--gate is a column and its bound", got=text, expected="coercion_rate=0.2") from None
    return found


def settings_of(options: Any) -> Settings:
    """The settings that hold for a command. Variables that are none are told of."""
    flags = {name: getattr(options, name, None) for name in SETTINGS}
    settings = load_settings(getattr(options, "config", None), flags=flags)
    for variable, near in settings.unknown.items():
        if near:
            say(f"toolparse: {variable} is no setting; did you mean {near}?")
    return settings


def open_lab(settings: Settings, *, must_be: bool = True) -> Lab:
    """The lab over the settings' store. A store that is only looked at is not made: raises BadOptions."""
    need("lab", "pandas", "litellm", "sqlalchemy")
    from ..lab import Lab

    store = str(settings["store"])
    if must_be and "://" not in store and not os.path.exists(os.path.expanduser(store)):
        raise BadOptions(
            "there is no store here", got=store, hint="--store names another one; `toolparse run` makes one"
        )
    try:
        return Lab(store)
    except StoreError as e:
        if "not a database" not in str(e.got):
            raise
        raise BadOptions("this file is no store", got=store, hint="--store names another one") from None


def check_folder(file: str | None) -> None:
    """Raises BadOptions where a file could not be written in the end, before any work is done."""
    if file and not os.path.isdir(os.path.dirname(os.path.abspath(file))):
        raise BadOptions("there is no such folder to write into", got=file)


def color(settings: Settings, stream: TextIO) -> bool:
    """Whether to colour: on a terminal, unless NO_COLOR is set, or as told."""
    chosen = settings["color"]
    if chosen == "auto":
        return stream.isatty() and not os.environ.get("NO_COLOR")
    return bool(chosen == "always")


def level_of(text: str) -> tuple[str, Any]:
    """`name=value` or `name=value,value`: JSON where it is JSON, else text."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise argparse.ArgumentTypeError(f"NAME=VALUE is wanted, not {text!r}")
    try:
        return name.strip(), json.loads(value)
    except ValueError:
        parts = [_plain(part.strip()) for part in value.split(",")]
    return name.strip(), parts if len(parts) > 1 else parts[0]


def _plain(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def need(extra: str, *modules: str) -> None:
    """Says which extra to install before anything fails half way."""
    missing = [m for m in modules if importlib.util.find_spec(m) is None]
    if missing:
        raise MissingExtra(f"this command needs {', '.join(missing)}", hint=f"pip install 'toolparse_lab[{extra}]'")
