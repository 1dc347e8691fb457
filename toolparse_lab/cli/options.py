"""The declaration of a verb, the options that several verbs share, and what their values mean.

An option that is passed on to a function is taken from this function, see `options_of`.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import json
import os
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias

from ..core.errors import BadOptions, MissingExtra, StoreError, UsageError
from ..runner.settings import SETTINGS, Settings, load_settings
from .console import say

if TYPE_CHECKING:
    from ..experiments.run import Run as RecordedRun
    from ..lab import Lab

PACKAGE = Path(__file__).resolve().parents[1]
_ARGUMENT = re.compile(r"(\w+(?:, \w+)*): (.*)")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter. default: None too where there is none. help: the first sentence about it."""

    annotation: str
    default: Any
    help: str


@cache
def parameters(path: str) -> Mapping[str, Parameter]:
    """Return the parameters of a function, or the members of a TypedDict, by name.

    path: such as "lab.Lab.ingest", below the package. Raises LookupError if it is not there.
    """
    node = _definition(path)
    helps = _helps(ast.get_docstring(node) or "")
    rows: list[tuple[str, ast.expr | None, ast.expr | None]]
    if isinstance(node, ast.ClassDef):
        fields = [row for row in node.body if isinstance(row, ast.AnnAssign)]
        rows = [(ast.unparse(row.target), row.annotation, row.value) for row in fields]
    else:
        args = node.args
        plain = [*args.posonlyargs, *args.args]
        defaults = [*[None] * (len(plain) - len(args.defaults)), *args.defaults]
        rows = [
            (arg.arg, arg.annotation, default)
            for arg, default in zip(
                [*plain, *args.kwonlyargs], [*defaults, *args.kw_defaults], strict=True
            )
        ]
    return {
        name: Parameter(
            "" if annotation is None else ast.unparse(annotation),
            default.value if isinstance(default, ast.Constant) else None,
            helps.get(name, ""),
        )
        for name, annotation, default in rows
    }


def _definition(path: str) -> ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef:
    # The last of a name: the ones before it are its overloads.
    names = path.split(".")
    place = PACKAGE
    while names and (place / names[0]).is_dir():
        place /= names.pop(0)
    found: Any = _module(place / f"{names.pop(0)}.py")
    for name in names:
        found = next((node for node in found.body[::-1] if getattr(node, "name", "") == name), None)
        if found is None:
            raise LookupError(f"there is no {path}")
    definition: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef = found
    return definition


@cache
def _module(file: Path) -> ast.Module:
    return ast.parse(file.read_text("utf-8"))


def _helps(docstring: str) -> dict[str, str]:
    # The first sentence about each argument of the section "Args:".
    _, _, section = docstring.partition("\nArgs:\n")
    section = section.split("\n\n")[0]
    helps: dict[str, str] = {}
    for entry in re.split(r"\n(?=    \S)", f"\n{section}"):
        found = _ARGUMENT.match(" ".join(entry.split()))
        if found:
            sentence = re.split(r"\.(?: |$)", found[2], maxsplit=1)[0]
            helps |= dict.fromkeys(found[1].split(", "), sentence)
    return helps


# Where a store may be that nobody named; the last is inside the demo's own folder.
_STORES = ("toolparse.db", ".demo/runs.db", "runs.db")
_ROOTS = (".git", "pyproject.toml", "toolparse.toml")

# a verb


class Option:
    """One argument of a verb.

    usage: its name and what it takes, as `--help` shows it. "--quiet" is a switch, "--out FILE"
    takes a value and "--gate RULE ..." may be repeated. "run RUN" has to be there, "run [RUN]" may
    be left out, "file FILE ..." are several. The word says the type, see `TYPES`. more: in the
    words of `ArgumentParser.add_argument`.
    """

    def __init__(self, usage: str, help: str, **more: Any) -> None:
        self.name, _, takes = usage.partition(" ")
        is_flag, optional = self.name.startswith("-"), takes.startswith("[")
        word = takes.strip("[]").removesuffix(" ...")
        several = takes.strip("[]") != word
        own: dict[str, Any] = {"metavar": word, "type": TYPES.get(word)} if word else {}
        if is_flag and several:
            own |= {"action": "append", "default": []}
        elif is_flag and not word and "choices" not in more:
            own["action"] = "store_true"
        elif several or optional:
            own["nargs"] = "+" if not optional else "*" if several else "?"
        self.members = {"help": help, **own, **more}


Run: TypeAlias = Callable[[Any], int]


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb as its file declares it. options: those of a tuple exclude each other."""

    run: Run
    options: tuple[Option | tuple[Option, ...], ...]
    examples: tuple[str, ...]

    def declare(self, command: argparse.ArgumentParser) -> None:
        """Add the options, the examples and the function of the verb to its parser."""
        for option in self.options:
            if isinstance(option, Option):
                command.add_argument(option.name, **option.members)
            else:
                group = command.add_mutually_exclusive_group()
                for one in option:
                    group.add_argument(one.name, **one.members)
        command.set_defaults(run_verb=self.run)
        title = "example:" if len(self.examples) == 1 else "examples:"
        command.epilog = "\n".join([title, *(f"  {example}" for example in self.examples)])


DECLARED: dict[str, Verb] = {}  # the verbs whose files were imported


def verb(
    name: str, *options: Option | tuple[Option, ...], examples: tuple[str, ...]
) -> Callable[[Run], Run]:
    """Declare the decorated function, from parsed options to an exit code, as a verb."""

    def declare(run: Run) -> Run:
        DECLARED[name] = Verb(run, options, examples)
        return run

    return declare


def options_of(path: str, *usages: str, **helps: str) -> tuple[Option, ...]:
    """Return the options that a verb passes on to a function.

    Types, defaults and helps come from its signature and its docstring.

    Args:
        path: the function, such as "lab.Lab.ingest", below the package.
        usages: as for `Option`: "source", "--max-rows". A word, as in "--tools FILE", is needed
            only if that of the parameter's type does not fit.
        helps: by parameter, if the docstring's first sentence does not fit.
    """
    known = parameters(path)
    return tuple(_option_of(known[_name(usage)], usage, helps) for usage in usages)


def _name(usage: str) -> str:
    return usage.partition(" ")[0].lstrip("-").replace("-", "_")


def _option_of(parameter: Parameter, usage: str, helps: Mapping[str, str]) -> Option:
    name, annotation = _name(usage), parameter.annotation
    more: dict[str, Any] = {}
    if usage.startswith("-") and " " not in usage and annotation != "bool":
        if annotation.startswith("Literal["):
            more["choices"] = ast.literal_eval(annotation.removeprefix("Literal"))
        else:
            word = next((word for part, word in _WORDS if re.search(part, annotation)), None)
            usage = f"{usage} {word or name.rpartition('_')[2].upper()}"
    help = helps.get(name) or parameter.help
    if parameter.default is not None and parameter.default is not False and "default: " not in help:
        help = f"{help} (default: {parameter.default})"
    # A switch that is not given is left to the function, too.
    return Option(usage, help, default=None, **more)


def given(options: Any, path: str, *others: str) -> dict[str, Any]:
    """Return the options of a command that are arguments of a function and were given.

    path: as for `options_of`. others: further functions that take them.
    """
    names = [name for each in (path, *others) for name in parameters(each)]
    values = {name: getattr(options, name, None) for name in names}
    return {name: value for name, value in values.items() if value is not None}


# values of flags


def names(text: str) -> list[str]:
    """Return the names in `A,B`. Raises ArgumentTypeError for none."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise argparse.ArgumentTypeError("a list of names, with commas between them")
    return parts


def renaming(text: str) -> dict[str, str | None]:
    """`A=B,C=` as a mapping. Nothing after the sign leaves a column out."""
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


def port_number(text: str) -> int:
    """Return the number of a port. Raises ArgumentTypeError for anything else."""
    if not text.isascii() or not text.isdigit() or len(text) > 5 or int(text) > 65_535:
        raise argparse.ArgumentTypeError(f"a port is a number from 0 to 65535, not {text[:40]!r}")
    return int(text)


# Word of a value in the usage of an option -> its type. Any other is a text.
TYPES: Mapping[str, Callable[[str], Any]] = {
    "A,B": names,
    "A=B,...": renaming,
    "NAME=VALUE": level_of,
    "PORT": port_number,
    **dict.fromkeys(("N", "THREADS"), int),
    **dict.fromkeys(("RATE", "SECONDS", "SHARE", "USD"), float),
    **dict.fromkeys(("ALPHA", "DROP", "MARGIN", "NUMBER", "POWER", "TOLERANCE"), float),
}

# Part of a parameter's annotation -> the word of its values, the first that fits.
_WORDS = (
    (r"\bMapping\[", "A=B,..."),
    (r"\b(Sequence|Iterable)\[", "A,B"),
    (r"\bint\b", "N"),
    (r"\bfloat\b", "NUMBER"),
)

# options that several verbs share

RUN_HELP = "a run's id, the beginning of one, latest, or latest~1 (the one before)"
CONFIG = Option("--config FILE", "settings (default: the nearest toolparse.toml)")
TRUST = Option("--trust", "let the file of settings send any environment variable to any host")
STORE = Option("--store PATH", "where answers are recorded (default: toolparse.db)")
RUN = Option("run [RUN]", f"{RUN_HELP} (default: latest)", default="latest")
POLICY = Option(
    "--policy POLICY", f"coercion policy: {', '.join(SETTINGS['policy'].choices)} (default: safe)"
)
# How recorded answers are read.
READER = (
    Option("--protocol ID", "what reads the answers (default: what each prompt asked for)"),
    POLICY,
)
COLUMNS = Option("--columns A=B,...", "what the file calls things: question=input")
HOST = Option("--host HOST", "address to listen at (default: 127.0.0.1)", default="127.0.0.1")
SERVED_PORT = Option("--port PORT", "port, 0 for any free one (default: 8080)", default=8080)
COLOR = Option("--color", "colour (default: auto)", choices=("auto", "always", "never"))
JSON = Option("--json", "print JSON")
KEY_ENV = Option(
    "--key-env NAME",
    "environment variable with the key that callers must send; needed off loopback",
)
LIMIT_OPTIONS = options_of(
    "runner.ledger.RunLimits", "--max-cost USD", "--max-calls", "--deadline SECONDS"
)


def settings_of(options: Any) -> Settings:
    """Return the settings of a command. Warns of variables that look like one and are not."""
    # Not every verb has every flag.
    flags: Mapping[str, Any] = {name: getattr(options, name, None) for name in SETTINGS}
    settings = load_settings(
        getattr(options, "config", None), flags=flags, trust=getattr(options, "trust", False)
    )
    for sentence in settings.passed_over:
        say(f"toolparse: {sentence}")
    for variable, nearest in settings.unknown.items():
        if nearest:
            say(f"toolparse: {variable} is no setting; did you mean {nearest}?")
    return settings


def open_lab(settings: Settings, *, must_be: bool = True) -> Lab:
    """Return the lab over the settings' store.

    must_be: the store is only looked at, so it is not made. Raises MissingExtra without the lab's
    packages, and BadOptions for a store that is not there or another file.
    """
    need_lab()
    from ..lab import Lab  # SQLAlchemy: 0.8 s, and an extra

    if word := settings.elsewhere("store"):
        say(f"toolparse: {word}")
    store = str(settings["store"])
    is_file = "://" not in store
    if must_be and is_file and not os.path.exists(os.path.expanduser(store)):
        # Only a store that nobody named is looked for.
        nearest = nearest_store() if settings.origins["store"] == "default" else None
        if nearest is None:
            raise BadOptions(
                "there is no store here",
                got=store,
                hint="--store names another one; `toolparse ingest`, `run` and `demo` make one",
            )
        say(f"toolparse: the store is {nearest}")
        store = str(nearest)
    try:
        return Lab(store)
    except StoreError as e:
        # SQLite's own words; any other failure of the store is not a matter of usage.
        if "not a database" not in str(e.got):
            raise
        raise BadOptions(
            "this file is no store", got=store, hint="--store names another one"
        ) from None


@contextmanager
def lab_to_write(settings: Settings) -> Iterator[Lab]:
    """Yield the lab over the settings' store, which is made, but not left by a refused command."""
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


def with_credentials(lab: Lab, before: RecordedRun, settings: Settings) -> RecordedRun:
    """Return the run opened again with the configured models: no store has their credentials."""
    configured = {
        alias: settings.model(alias) for alias in before.plan.models if alias in settings.tables
    }
    lab.models.update(configured)
    opened = lab.open(before.run_id)
    for alias, model in configured.items():
        # The lab takes a model only where it is the one that the run was planned with.
        if opened.plan.models[alias] is not model:
            say(
                f"toolparse: {alias} is configured otherwise than the run had it, and is "
                "asked as it was then"
            )
    return opened


def nearest_store(folder: Path | None = None) -> Path | None:
    """Return the store nearest to a folder, by default the present one: its own or its demo's, else
    those of the folders above it, or None.

    The search ends at the root of a project and at the home of the person who asks, because a store
    beyond them belongs to other work.
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
            f"this command needs {', '.join(missing)}",
            hint=f"in a checkout: pip install '.[{extra}]'",
        )


def refuse(options: Any, names: str, with_: str) -> None:
    """Raise BadOptions if one of these options was given, which do not go with another one."""
    flags = [
        f"--{name.replace('_', '-')}"
        for name in names.split()
        if getattr(options, name) not in (None, False, [])
    ]
    if flags:
        raise BadOptions(f"these options do not go with {with_}", got=", ".join(flags))


def check_folder(file: str | None) -> None:
    """Raise BadOptions if a file could not be written in the end, before any work is done."""
    from ..core.remote import is_remote  # start-up time

    if file and not is_remote(file) and not os.path.isdir(os.path.dirname(os.path.abspath(file))):
        folder = shlex.quote(os.path.dirname(file))
        raise BadOptions(
            "there is no such folder to write into", got=file, hint=f"make it: mkdir -p {folder}"
        )


def check_kinds(files: Iterable[str], kinds: Collection[str], what: str) -> None:
    """Raise BadOptions if a file is of another kind, or has no folder.

    kinds: the suffixes, with their dots. what: the beginning of the sentence.
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
    """Return True for colour. The setting 'auto' is a terminal without NO_COLOR."""
    chosen = settings["color"]
    if chosen == "auto":
        return stream.isatty() and not os.environ.get("NO_COLOR")
    return bool(chosen == "always")
