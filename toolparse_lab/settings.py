"""Configuration: `toolparse.toml` or `[tool.toolparse]` in pyproject.toml, and `TOOLPARSE_*` environment variables.

A flag goes before the environment, the environment before the file, the file before the default. A file never holds a
credential: it names the environment variable that does.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, get_args

from .errors import BadOptions, BadSettings
from .runner.redaction import is_secret_name, redact
from .runner.types import Model
from .types import Policy

FILE = "toolparse.toml"
PROJECT = "pyproject.toml"
PREFIX = "TOOLPARSE_"
CONFIG = "TOOLPARSE_CONFIG"
_ELSEWHERE = ("TOOLPARSE_LOCAL_THREADS",)  # read where the embedded model is started


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: `name` in a file, `TOOLPARSE_NAME` in the environment, `--name` as a flag."""

    name: str
    kind: Literal["text", "place", "list", "number", "count", "choice"]
    default: Any
    meaning: str
    choices: tuple[str, ...] = ()

    @property
    def variable(self) -> str:
        return PREFIX + self.name.upper()


SETTINGS: Mapping[str, Setting] = {
    s.name: s
    for s in (
        Setting("store", "place", "toolparse.db", "where answers are recorded: a path, or an SQLAlchemy URL"),
        Setting("cases", "place", None, "the cases to ask: a file, or bfcl"),
        Setting("protocols", "list", None, "prompt protocols of a run"),
        Setting("policy", "choice", "safe", "the coercion policy that answers are read under", get_args(Policy)),
        Setting("max_cost", "number", None, "US dollars that one run may spend at most"),
        Setting("max_calls", "count", None, "calls that one run may make at most, retries included"),
        Setting("deadline", "number", None, "seconds that one run may take at most"),
        Setting("color", "choice", "auto", "colour on a terminal", ("auto", "always", "never")),
    )
}
MODEL_KEYS = (*(f.name for f in fields(Model) if f.init and f.name != "api_key"), "api_key_env")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PASSWORD = re.compile(r"://[^/@]*:[^/@]+@")
_FREE = ("headers", "extra_body", "params")  # members whose names are the provider's business


@dataclass(frozen=True, slots=True)
class Source:
    """A file of settings: `table` is what it holds, `text` its text, for the lines of what is wrong in it."""

    path: Path
    table: Mapping[str, Any]
    text: str = field(repr=False)

    def place(self, *keys: str) -> str:
        """`path:line` of a key, the path alone where the line is not plain to see."""
        for key in reversed(keys):
            named = rf"""(?:{re.escape(key)}|"{re.escape(key)}")"""
            found = re.search(rf"^\s*(?:{named}\s*[=.]|\[[^\]]*\b{named}[\].])", self.text, re.M)
            if found:
                return f"{self.path}:{self.text.count(chr(10), 0, found.end()) + 1}"
        return str(self.path)


@dataclass(frozen=True, slots=True)
class Settings:
    """What holds, and where it came from.

    `values` and `origins` are by the names of `SETTINGS`, `tables` holds the models as they are written. Credentials
    are looked up when a model is asked for, so that one without its variable does not stand in the way of the others.
    """

    values: Mapping[str, Any]
    origins: Mapping[str, str]
    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    source: Source | None = None
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    @property
    def models(self) -> dict[str, Model]:
        """Every configured model by its alias. Raises BadSettings where a variable is not set."""
        return {alias: self.model(alias) for alias in self.tables}

    def model(self, alias: str) -> Model:
        """One configured model with its credentials. Raises BadSettings, also where it is not configured."""
        if alias not in self.tables:
            raise BadSettings(
                "there is no model of this name", got=alias, expected=", ".join(self.tables) or "none is configured",
                hint=_near(alias, self.tables) or "add [models.NAME] to toolparse.toml, or give a litellm model string",
            )  # fmt: skip
        return _model(alias, self.tables[alias], self.source, self.environ)

    @property
    def unknown(self) -> dict[str, str]:
        """Environment variables that look like settings and are none -> the nearest one, or ''."""
        known = {s.variable for s in SETTINGS.values()} | {CONFIG, *_ELSEWHERE}
        found = sorted(v for v in self.environ if v.startswith(PREFIX) and v not in known)
        return {v: next(iter(difflib.get_close_matches(v, known, 1, 0.8)), "") for v in found}


def load_settings(
    config: str | os.PathLike[str] | None = None,
    *,
    start: str | os.PathLike[str] | None = None,
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, Any] | None = None,
) -> Settings:
    """The settings that hold in a folder.

    config: a file; without it, what `TOOLPARSE_CONFIG` names, else the nearest `toolparse.toml`, or `pyproject.toml`
    with a table `tool.toolparse`, from `start` (the current folder) upward. Paths in a file are relative to it. flags:
    what was given by hand, by name; None means not given. Raises BadSettings naming the file and the line.

    >>> load_settings(environ={"TOOLPARSE_POLICY": "none"}, start="/")["policy"]
    'none'
    """
    environ = os.environ if environ is None else environ
    source = find_source(config or environ.get(CONFIG) or None, Path(start or Path.cwd()))
    table = dict(source.table) if source else {}
    tables = table.pop("models", {})
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for name, setting in SETTINGS.items():
        values[name], origins[name] = setting.default, "default"
        if source and name in table:
            where = source.place(name)
            if isinstance(table[name], str) and _PASSWORD.search(table[name]):
                raise BadSettings(
                    f"{where}: a password does not stand in a file", got=f"{name} with a password",
                    hint=f"put the whole address into the environment variable {setting.variable}",
                )  # fmt: skip
            values[name] = _beside(_checked(setting, table[name], where), setting, source.path)
            origins[name] = where
        if environ.get(setting.variable):
            where = f"environment variable {setting.variable}"
            values[name], origins[name] = (
                _checked(setting, _from_text(setting, environ[setting.variable]), where),
                where,
            )
        if flags and flags.get(name) is not None:
            where = f"--{name.replace('_', '-')}"
            values[name], origins[name] = _checked(setting, flags[name], where), where
    if source:
        check_keys(table, SETTINGS, source, "setting", also=("models",))
        tables = _check_models(tables, source)
    return Settings(values, origins, tables, source, environ)


def find_source(config: str | os.PathLike[str] | None, start: Path) -> Source | None:
    """The file of settings that holds; raises BadSettings for one that is named and not there."""
    if config is not None:
        path = Path(config).expanduser()
        table, text = _read(path)
        inner = path.name == PROJECT
        return Source(path, table.get("tool", {}).get("toolparse", {}) if inner else table, text)
    for folder in (start.resolve(), *start.resolve().parents):
        if (folder / FILE).is_file():
            table, text = _read(folder / FILE)
            return Source(folder / FILE, table, text)
        if (folder / PROJECT).is_file():
            table, text = _read(folder / PROJECT)
            if "toolparse" in table.get("tool", {}):
                return Source(folder / PROJECT, table["tool"]["toolparse"], text)
    return None


def read_toml(path: Path, what: str = "file") -> tuple[dict[str, Any], str]:
    """A TOML file as a table, and its text; raises BadSettings naming the line."""
    try:
        text = path.read_text("utf-8")
        return tomllib.loads(text), text
    except OSError as e:
        raise BadSettings(f"the {what} cannot be read", got=f"{path}: {e.strerror or e}") from None
    except UnicodeDecodeError as e:
        raise BadSettings(f"the {what} is not UTF-8", got=f"{path}, byte {e.start}") from None
    except tomllib.TOMLDecodeError as e:
        at = re.search(r" \(at line (\d+), column \d+\)$", str(e))
        where = f"{path}:{at[1]}" if at else str(path)
        raise BadSettings(f"{where}: this is no TOML", got=str(e)) from None


def _read(path: Path) -> tuple[dict[str, Any], str]:
    return read_toml(path, "file of settings")


def model_of(alias: str, table: Any, source: Source, environ: Mapping[str, str] | None = None) -> Model:
    """A model from a table of a TOML file, with its credentials. Raises BadSettings."""
    checked = _check_models({alias: table}, source)
    return _model(alias, checked[alias], source, os.environ if environ is None else environ)


def _checked(setting: Setting, value: Any, where: str) -> Any:
    def bad(expected: str) -> BadSettings:
        return BadSettings(f"{where}: `{setting.name}` has a value it cannot have", got=value, expected=expected)

    if setting.kind in ("text", "place"):
        if not isinstance(value, str) or not value:
            raise bad("a text")
    elif setting.kind == "list":
        listed = [value] if isinstance(value, str) else value
        if not isinstance(listed, list) or not listed or not all(isinstance(v, str) and v for v in listed):
            raise bad("a list of texts")
        return listed
    elif setting.kind == "choice":
        if value not in setting.choices:
            raise bad(" or ".join(setting.choices))
    else:
        whole = setting.kind == "count"
        good = isinstance(value, int if whole else (int, float)) and not isinstance(value, bool)
        if not good or not value >= 0:
            raise bad("a whole number of 0 or more" if whole else "a number of 0 or more")
    return value


def _from_text(setting: Setting, text: str) -> Any:
    if setting.kind == "list":
        return [part.strip() for part in text.split(",") if part.strip()]
    if setting.kind in ("number", "count"):
        try:
            return int(text) if setting.kind == "count" else float(text)
        except ValueError:
            return text
    return text


def _beside(value: Any, setting: Setting, path: Path) -> Any:
    """A path in a file is relative to the file, wherever the command is run."""
    if setting.kind != "place" or not is_path(value):
        return value
    return str(path.parent / value)


def is_path(value: str) -> bool:
    """Whether a text names a file relative to something: no address, no home, no data set of its own name."""
    return "://" not in value and not value.startswith((":memory:", "~", "bfcl:")) and value != "bfcl"


def check_keys(
    table: Iterable[str], known: Iterable[str], source: Source, what: str, also: tuple[str, ...] = ()
) -> None:
    """Raises BadSettings for a key that is not known, with its line and the nearest name."""
    names = (*known, *also)
    for key in table:
        if key not in names:
            raise BadSettings(
                f"{source.place(key)}: there is no {what} {key!r}", expected=", ".join(names), hint=_near(key, names)
            )


def _near(name: str, known: Iterable[str]) -> str | None:
    near = difflib.get_close_matches(name, list(known), 1, 0.6)
    return f"did you mean {near[0]}?" if near else None


def _check_models(tables: Any, source: Source) -> dict[str, Mapping[str, Any]]:
    """The models as tables; a text is a name. Raises BadSettings."""
    if not isinstance(tables, Mapping):
        raise BadSettings(f"{source.place('models')}: models are a table", got=tables, expected="[models.NAME]")
    checked: dict[str, Mapping[str, Any]] = {}
    for alias, given in tables.items():
        where = source.place(alias)
        table = {"name": given} if isinstance(given, str) else given
        if not isinstance(table, Mapping) or "name" not in table:
            raise BadSettings(
                f"{where}: the model {alias!r} has no name", expected='name = "a litellm model string"',
                hint=f"[models.{alias}] with a name, such as name = \"openai/gpt-4o-mini\"",
            )  # fmt: skip
        if "api_key" in table:
            raise BadSettings(
                f"{source.place(alias, 'api_key')}: a key does not stand in a file", got=f"api_key of {alias!r}",
                hint='put it into an environment variable and name that: api_key_env = "MY_KEY"',
            )  # fmt: skip
        check_keys(table, MODEL_KEYS, source, f"setting of the model {alias!r} called")
        variable = table.get("api_key_env", "API_KEY")
        if not isinstance(variable, str) or not _VARIABLE.fullmatch(variable) or redact(variable) != variable:
            raise BadSettings(
                f"{source.place(alias, 'api_key_env')}: api_key_env of {alias!r} names no environment variable",
                expected='the name of a variable, such as "MY_KEY", and not the key itself',
            )
        for name, value in table.items():
            _no_literal(value, (name,), alias, source)
        checked[alias] = table
    return checked


def _no_literal(value: Any, path: tuple[str, ...], alias: str, source: Source) -> None:
    """No credential as it is, neither by its name nor by its look."""
    if isinstance(value, Mapping):
        if _variable(value) is None:
            for key, member in value.items():
                _no_literal(member, (*path, key), alias, source)
    elif isinstance(value, list):
        for member in value:
            _no_literal(member, path, alias, source)
    elif isinstance(value, str) and path != ("api_key_env",):
        named = len(path) > 1 and is_secret_name(path[-1])
        if named or redact(value) != value:
            raise BadSettings(
                f"{source.place(alias, path[-1])}: a credential does not stand in a file",
                got=f"{'.'.join(path)} of the model {alias!r}",
                hint=f'put it into an environment variable and name that: {path[-1]} = {{ env = "MY_VARIABLE" }}',
            )


def _variable(value: Any) -> str | None:
    """The variable that a table of one member, `env`, names."""
    if isinstance(value, Mapping) and set(value) == {"env"} and isinstance(value["env"], str):
        return str(value["env"])
    return None


def _model(alias: str, table: Any, source: Source | None, environ: Mapping[str, str]) -> Model:
    where = source.place(alias) if source else f"model {alias!r}"

    def held(variable: str) -> str:
        if not environ.get(variable):
            raise BadSettings(
                f"{where}: the environment variable {variable} is not set", got=f"model {alias!r}",
                hint=f"export {variable}=… before the command",
            )  # fmt: skip
        return environ[variable]

    def filled(value: Any) -> Any:
        variable = _variable(value)
        if variable is not None:
            return held(variable)
        if isinstance(value, Mapping):
            return {k: filled(v) for k, v in value.items()}
        return [filled(v) for v in value] if isinstance(value, list) else value

    values = filled(dict(table))
    key = values.pop("api_key_env", None)
    if key is not None:
        values["api_key"] = held(str(key))
    if isinstance(values.get("price"), Mapping):
        values["price"] = [values["price"].get("input"), values["price"].get("output")]
    if isinstance(values.get("price"), list):
        values["price"] = tuple(values["price"])
    for name in _FREE:
        if name in values and not isinstance(values[name], Mapping):
            raise BadSettings(f"{where}: {name} of the model {alias!r} is a table", got=values[name])
    try:
        return Model(**values)
    except BadOptions as e:
        raise BadSettings(
            f"{where}: model {alias!r}: {e.message}", got=e.got, expected=e.expected, hint=e.hint
        ) from None
