"""Options that several verbs share, and their result."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from ..core.errors import BadOptions, MissingExtra, StoreError, UsageError
from ..runner.settings import SETTINGS, Settings, load_settings
from .output import say

if TYPE_CHECKING:
    from ..lab import Lab

_STORES = ("toolparse.db", ".demo/runs.db", "runs.db")
"""Where a store may lie that nobody named; the last is inside the demo's own folder."""
_ROOTS = (".git", "pyproject.toml", "toolparse.toml")

RUN_HELP = "a run's id, the beginning of one, latest, or latest~1 (the one before)"

# arguments that several verbs declare


def add_config(command: argparse.ArgumentParser) -> None:
    """`--config`, for a verb that settings of a file hold for."""
    command.add_argument(
        "--config", metavar="FILE", help="settings (default: the nearest toolparse.toml)"
    )


def add_store(command: argparse.ArgumentParser) -> None:
    """`--store`."""
    command.add_argument(
        "--store", metavar="PATH", help="where answers are recorded (default: toolparse.db)"
    )


def add_run(command: argparse.ArgumentParser) -> None:
    """The run looked at, the latest unless another one is named."""
    command.add_argument(
        "run", nargs="?", default="latest", metavar="RUN", help=f"{RUN_HELP} (default: latest)"
    )


def add_policy(command: argparse.ArgumentParser) -> None:
    """`--policy`, which goes before the setting of this name."""
    choices = ", ".join(SETTINGS["policy"].choices)
    command.add_argument("--policy", help=f"coercion policy: {choices} (default: safe)")


def add_reader(command: argparse.ArgumentParser) -> None:
    """`--protocol` and `--policy`: how recorded answers are read."""
    command.add_argument(
        "--protocol",
        metavar="ID",
        help="what reads the answers (default: what each prompt asked for)",
    )
    add_policy(command)


def add_columns(command: argparse.ArgumentParser) -> None:
    """`--columns`, of a file of cases."""
    command.add_argument(
        "--columns",
        type=renaming,
        metavar="A=B,...",
        help="what the file calls things: question=input",
    )


def add_color(command: argparse.ArgumentParser) -> None:
    """`--color`."""
    command.add_argument(
        "--color", choices=("auto", "always", "never"), help="colour (default: auto)"
    )


def add_json(command: argparse.ArgumentParser) -> None:
    """`--json`."""
    command.add_argument("--json", action="store_true", help="print JSON")


# texts of flags as values


def names(text: str) -> list[str]:
    """Return the names of `A,B`. Raises ArgumentTypeError for none."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise argparse.ArgumentTypeError("a list of names, with commas between them")
    return parts


def renaming(text: str) -> dict[str, str | None]:
    """`A=B,C=` as a mapping. Nothing behind the sign leaves a column out."""
    columns: dict[str, str | None] = {}
    for pair in names(text):
        old, _, new = pair.partition("=")
        columns[old.strip()] = new.strip() or None
    return columns


def level_of(text: str) -> tuple[str, Any]:
    """`name=value` or `name=value,value`: JSON where it is JSON, else text.

    Raises ArgumentTypeError for a text without a name or without the sign.

    >>> level_of("few_shot=0,2"), level_of("wording=brief")
    (('few_shot', [0, 2]), ('wording', 'brief'))
    """
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise argparse.ArgumentTypeError(f"NAME=VALUE is wanted, not {text!r}")
    # First as one value, so that a JSON list or object keeps its commas.
    try:
        return name.strip(), json.loads(value)
    except ValueError:
        parts = [_json_or_text(part.strip()) for part in value.split(",")]
    return name.strip(), parts if len(parts) > 1 else parts[0]


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


# what flags come to


def settings_of(options: Any) -> Settings:
    """Return the settings that hold for a command.

    Warns of variables that look like one and are none.
    """
    # Not every verb has every flag.
    flags: Mapping[str, Any] = {name: getattr(options, name, None) for name in SETTINGS}
    settings = load_settings(getattr(options, "config", None), flags=flags)
    for variable, nearest in settings.unknown.items():
        if nearest:
            say(f"toolparse: {variable} is no setting; did you mean {nearest}?")
    return settings


def open_lab(settings: Settings, *, must_be: bool = True) -> Lab:
    """Return the lab over the settings' store.

    must_be: the store is only looked at, so it is not made. Raises MissingExtra without the lab's
    packages, and BadOptions for a store that is not there or is no store.
    """
    need_lab()
    from ..lab import Lab  # SQLAlchemy: 0.8 s, and an extra

    store = str(settings["store"])
    is_file = "://" not in store
    if must_be and is_file and not os.path.exists(os.path.expanduser(store)):
        # Only a store that nobody named is looked for; a named one is meant.
        nearest = nearest_store() if settings.origins["store"] == "default" else None
        if nearest is None:
            raise BadOptions(
                "there is no store here",
                got=store,
                hint="--store names another one; `toolparse demo` or `toolparse run` makes one",
            )
        say(f"toolparse: the store is {nearest}")
        store = str(nearest)
    try:
        return Lab(store)
    except StoreError as e:
        # SQLite's own words; any other failure of the store is no matter of usage.
        if "not a database" not in str(e.got):
            raise
        raise BadOptions(
            "this file is no store", got=store, hint="--store names another one"
        ) from None


@contextmanager
def lab_to_write(settings: Settings) -> Iterator[Lab]:
    """Yield the lab over the settings' store, which is made.

    A store that was not there is not left there by a command that was refused.
    """
    store = Path(str(settings["store"])).expanduser()
    is_new = "://" not in str(settings["store"]) and not store.exists()
    try:
        with open_lab(settings, must_be=False) as lab:
            yield lab
    except UsageError:
        if is_new:
            for suffix in ("", "-wal", "-shm"):
                Path(f"{store}{suffix}").unlink(missing_ok=True)
        raise


def nearest_store(folder: Path | None = None) -> Path | None:
    """Return the store nearest to a folder, by default the present one: its own or its demo's, else
    those of the folders above it, or None if no folder has one.

    The search ends at the root of a project, and at the home of the person who asks, because a
    store beyond them belongs to other work.
    """
    here = (folder or Path.cwd()).resolve()
    for place in (here, *here.parents):
        for name in _STORES:
            store = place / name
            if store.is_file():
                # Short where it is below the present folder, as a person would type it.
                return store.relative_to(here) if place == here else store
        if place == Path.home() or any((place / root).exists() for root in _ROOTS):
            return None
    return None


def need_lab() -> None:
    """Check the packages of the extra `lab`. Raises MissingExtra."""
    need("lab", "pandas", "litellm", "sqlalchemy")


def need(extra: str, *modules: str) -> None:
    """Raise MissingExtra, with the extra to install, before anything fails half way."""
    missing = [m for m in modules if importlib.util.find_spec(m) is None]
    if missing:
        raise MissingExtra(
            f"this command needs {', '.join(missing)}", hint=f"pip install 'toolparse_lab[{extra}]'"
        )


def check_folder(file: str | None) -> None:
    """Raise BadOptions if a file could not be written in the end, before any work is done."""
    if file and not os.path.isdir(os.path.dirname(os.path.abspath(file))):
        folder = shlex.quote(os.path.dirname(file))
        raise BadOptions(
            "there is no such folder to write into", got=file, hint=f"make it: mkdir -p {folder}"
        )


def check_kinds(files: Iterable[str], kinds: Collection[str], what: str) -> None:
    """Raise BadOptions if one of the files is of no kind that is written, or has no folder.

    kinds: the suffixes, with their dots. what: is written, as the beginning of a sentence.
    """
    for file in files:
        if Path(file).suffix.lower() not in kinds:
            raise BadOptions(
                f"{what} not written as this kind of file",
                got=Path(file).name,
                expected=", ".join(kinds),
            )
        check_folder(file)


def color(settings: Settings, stream: TextIO) -> bool:
    """Decide on colour: as the setting says. 'auto' is a terminal without NO_COLOR."""
    chosen = settings["color"]
    if chosen == "auto":
        return stream.isatty() and not os.environ.get("NO_COLOR")
    return bool(chosen == "always")
