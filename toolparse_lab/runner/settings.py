"""Configuration: `toolparse.toml` or `[tool.toolparse]` in pyproject.toml, and `TOOLPARSE_*`
environment variables.

A flag goes before the environment, the environment before the file, the file before the default. A
file never contains a credential: it names the environment variable that does. What a file may send
where is in `trust`.
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

from ..core.errors import BadOptions, BadSettings, near
from ..core.types import Policy
from .exchange.redaction import SecretText, is_secret_name, redact, redact_url
from .exchange.types import Model
from .trust import (
    NO_KEY,
    check_trust,
    folders_upward,
    host_of,
    is_beyond,
    is_foreign,
    is_own_host,
    is_trusted,
    sent_variables,
    untrusted,
)

FILE = "toolparse.toml"
PROJECT = "pyproject.toml"
PREFIX = "TOOLPARSE_"
CONFIG = "TOOLPARSE_CONFIG"
# Read where the embedded model is started, and by the recorder of an application.
_ELSEWHERE = ("TOOLPARSE_LOCAL_THREADS", "TOOLPARSE_APP")


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
        """Its environment variable."""
        return PREFIX + self.name.upper()


SETTINGS: Mapping[str, Setting] = {s.name: s for s in (
    Setting("store", "place", "toolparse.db",
            "where answers are recorded: a path, or an SQLAlchemy URL"),
    Setting("cases", "place", None, "the file of the cases to ask"),
    Setting("protocols", "list", None, "prompt protocols of a run"),
    Setting("policy", "choice", "safe", "the coercion policy that answers are read under",
            get_args(Policy)),
    Setting("max_cost", "number", None, "US dollars that one run may spend at most"),
    Setting("max_calls", "count", None, "calls that one run may make at most, retries included"),
    Setting("deadline", "number", None, "seconds that one run may take at most"),
    Setting("color", "choice", "auto", "colour on a terminal", ("auto", "always", "never")),
)}  # fmt: skip
MODEL_KEYS = (*(f.name for f in fields(Model) if f.init and f.name != "api_key"), "api_key_env")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PASSWORD = re.compile(r"://[^/@]*:[^/@]+@")
_FREE = ("headers", "extra_body", "params")  # members whose names are the provider's business
_CREDENTIAL = "put it into an environment variable and name that"


@dataclass(frozen=True, slots=True)
class Source:
    """A file of settings: `table` is its contents, `text` its text, for the lines of its faults.

    trusted: it may send any variable to any host.
    """

    path: Path
    table: Mapping[str, Any]
    text: str = field(repr=False)
    trusted: bool = False

    def place(self, *keys: str) -> str:
        """Return `path:line` of a key, the path alone where the line is not plain to see."""
        for key in reversed(keys):
            name = rf"""(?:{re.escape(key)}|"{re.escape(key)}")"""
            # `key = …`, `key.member = …`, or a table's head with the key in it.
            match = re.search(rf"^\s*(?:{name}\s*[=.]|\[[^\]]*\b{name}[\].])", self.text, re.M)
            if match:
                return f"{self.path}:{self.text.count(chr(10), 0, match.end()) + 1}"
        return str(self.path)


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings in force, and the source of each.

    `values` and `origins` are by the names of `SETTINGS`, `tables` has the models as they are
    written. Credentials are looked up when you use a model, so a missing variable affects that
    model only. `passed_over` says which files were found and not taken, and why.

    >>> import toolparse_lab as tp
    >>> tp.load_settings()["policy"]
    'safe'
    """

    values: Mapping[str, Any]
    origins: Mapping[str, str]
    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    source: Source | None = None
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    passed_over: tuple[str, ...] = ()
    trust: bool = False

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    @property
    def models(self) -> dict[str, Model]:
        """Every configured model by its alias. Raises BadSettings if a variable is not set."""
        return {alias: self.model(alias) for alias in self.tables}

    def model(self, alias: str) -> Model:
        """Return one configured model with its credentials.

        Raises BadSettings, also if it is not configured.
        """
        if alias not in self.tables:
            raise BadSettings(
                "there is no model of this name",
                got=alias,
                expected=", ".join(self.tables) or "none is configured",
                hint=near(alias, self.tables, 1)
                or "add [models.NAME] to toolparse.toml, or give a litellm model string",
            )
        return _model(alias, self.tables[alias], self.source, self.environ)

    def sent_by(self, alias: str) -> str:
        """Return which host gets which variables for a model, "" if none is sent."""
        return sent_by(self.tables[alias], self.environ)

    def elsewhere(self, name: str, strangers: Iterable[str] = ()) -> str:
        """Return a sentence on a store or cases outside of the repository, "" for none.

        See `elsewhere`.
        """
        if self.source is None or not self.origins[name].startswith(str(self.source.path)):
            return ""
        return elsewhere(name, str(self[name]), self.source, self.origins[name], strangers)

    @property
    def unknown(self) -> dict[str, str]:
        """Environment variables that look like settings but are not.

        Each has the nearest real name, or "".
        """
        variables = {s.variable for s in SETTINGS.values()} | {CONFIG, *_ELSEWHERE}
        return {
            name: next(iter(difflib.get_close_matches(name, variables, 1, 0.8)), "")
            for name in sorted(self.environ)
            if name.startswith(PREFIX) and name not in variables
        }


def load_settings(
    config: str | os.PathLike[str] | None = None,
    *,
    start: str | os.PathLike[str] | None = None,
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, Any] | None = None,
    trust: bool = False,
) -> Settings:
    """Return the settings in force in a folder.

    Args:
        config: a file. Without it, the file that `TOOLPARSE_CONFIG` names, else the nearest
            `toolparse.toml`, or `pyproject.toml` with a table `tool.toolparse`, from `start` (the
            current folder) up to the root of its repository, and of your own. Paths in a file are
            relative to it.
        flags: values set by hand, by name. None is no value.
        trust: the file may send any environment variable to any host. Else a model gets only those
            that bear its provider's name, and only at its provider's host or on this machine. A
            folder in `trusted` of `~/.config/toolparse/settings.toml` is trusted always.

    Raises BadSettings naming the file and the line.

    >>> load_settings(environ={"TOOLPARSE_POLICY": "none"}, start="/")["policy"]
    'none'
    """
    environ = os.environ if environ is None else environ
    source, passed_over = _find_source(
        config or environ.get(CONFIG) or None, Path(start or Path.cwd()), trust
    )
    table = dict(source.table) if source else {}
    tables = table.pop("models", {})
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}

    # The last one that has a value counts, so they come in the order of the sentence above.
    for name, setting in SETTINGS.items():
        values[name], origins[name] = setting.default, "default"
        if source and name in table:
            where, value = source.place(name), table[name]
            if isinstance(value, str) and _PASSWORD.search(value):
                raise BadSettings(
                    f"{where}: a password does not stand in a file",
                    got=f"{name} with a password",
                    hint=f"put the whole address into the environment variable {setting.variable}",
                )
            value = checked_value(setting, value, where)
            if setting.kind == "place" and is_path(value):  # wherever the command is run
                value = str(source.path.parent / value)
            values[name], origins[name] = value, where

        if environ.get(setting.variable):
            where = f"environment variable {setting.variable}"
            value = _from_text(setting, environ[setting.variable])
            values[name], origins[name] = checked_value(setting, value, where), where

        if flags and flags.get(name) is not None:
            where = f"--{name.replace('_', '-')}"
            values[name], origins[name] = checked_value(setting, flags[name], where), where

    if source:
        check_keys(table, SETTINGS, source, "setting", also=("models",))
        if not isinstance(tables, Mapping):
            raise BadSettings(
                f"{source.place('models')}: models are a table",
                got=tables,
                expected="[models.NAME]",
            )
        tables = {alias: _check_model(alias, value, source) for alias, value in tables.items()}

    return Settings(values, origins, tables, source, environ, tuple(passed_over), trust)


def _find_source(
    config: str | os.PathLike[str] | None, start: Path, trust: bool
) -> tuple[Source | None, list[str]]:
    inside, beyond = folders_upward(start)
    places = [folder / name for folder in inside for name in (FILE, PROJECT)]
    passed_over = [
        f"{folder / FILE} is outside of this folder's repository and was not read; "
        "--config names it"
        for folder in beyond
        if config is None and (folder / FILE).is_file()
    ]
    for path in places if config is None else [Path(config).expanduser()]:
        if config is None and not path.is_file():
            continue
        if config is None and is_foreign(path) and not trust and not is_trusted(path):
            if path.name == FILE:
                passed_over.append(
                    f"{path} belongs to somebody else and was not read; --config names it"
                )
            continue
        table, text = read_toml(
            path, "file of settings", "`toolparse init` writes one to begin with"
        )
        if path.name == PROJECT:
            tool = table.get("tool", {})
            if config is None and "toolparse" not in tool:
                continue
            table = tool.get("toolparse", {})
        return Source(path, table, text, trust or is_trusted(path)), passed_over
    return None, passed_over


def elsewhere(
    name: str, value: str, source: Source, where: str, strangers: Iterable[str] = ()
) -> str:
    """Return a sentence about a place outside of the repository of a file that is not trusted.

    It is "" if there is nothing to say.

    strangers: hosts that are nobody's own and would get what is read there. Raises BadSettings if
    there are any, and for a store on another machine.
    """
    if source.trusted or not is_beyond(value, source.path):
        return ""
    hosts = [host_of(value) or "a path"] if name == "store" and "://" in value else list(strangers)
    shown = redact_url(value)
    if hosts and not value.startswith("sqlite:"):
        raise untrusted(
            where,
            f"a file does not decide alone that {' and '.join(hosts)} gets what is not below it",
            [shown],
            source.path,
            expected="a path of its own repository, or a server on this machine",
            way=f"name it by --{name}" if name in SETTINGS else "pass trust=True",
        )
    return f"{where}: {name} is {shown}, outside of the repository of this file"


def strangers(tables: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the hosts of models that are neither their providers' own nor this machine."""
    return [host_of(str(table.get("api_base"))) for table in tables if not is_own_host(table)]


_ENDLESS_KEY = re.compile(
    r"""(?:^|[\[{,])[ \t]{0,4}(?:(?:[\w-]{1,40}+|"[^"\n]{0,40}"|'[^'\n]{0,40}')[ \t]{0,4}"""
    r"""\.[ \t]{0,4}){64}""",
    re.MULTILINE,
)


def read_toml(
    path: Path, what: str = "file", hint: str | None = None
) -> tuple[dict[str, Any], str]:
    """Return a TOML file as a table, and its text.

    hint: what to do where there is no such file. Raises BadSettings naming the line.
    """
    try:
        text = path.read_text("utf-8")
        if _ENDLESS_KEY.search(text):
            raise ValueError("a key of more than 64 parts")  # each costs as much as all before it
        return tomllib.loads(text), text
    except OSError as e:
        raise BadSettings(
            f"the {what} cannot be read",
            got=f"{path}: {e.strerror or e}",
            hint=hint if isinstance(e, FileNotFoundError) else None,
        ) from None
    except UnicodeDecodeError as e:
        raise BadSettings(f"the {what} is not UTF-8", got=f"{path}, byte {e.start}") from None
    except ValueError as e:  # also a number of thousands of digits
        # tomllib tells the line only in its message.
        at = re.search(r" \(at line (\d+), column \d+\)$", str(e))
        where = f"{path}:{at[1]}" if at else str(path)
        raise BadSettings(f"{where}: this is no TOML", got=str(e)) from None


def model_of(
    alias: str, table: Any, source: Source, environ: Mapping[str, str] | None = None
) -> Model:
    """Return a model from a table of a TOML file, with its credentials. Raises BadSettings."""
    checked = _check_model(alias, table, source)
    return _model(alias, checked, source, os.environ if environ is None else environ)


# -- values

_EXPECTED = {
    "text": "a text",
    "place": "a text",
    "list": "a list of texts",
    "number": "a number of 0 or more",
    "count": "a whole number of 0 or more",
}
"""Kind of a setting -> the values it may have; those of a choice are its own."""


def checked_value(setting: Setting, value: Any, where: str) -> Any:
    """Return the value of a setting, a single name of a list as a list.

    where: its place. Raises BadSettings.
    """
    settled = [value] if setting.kind == "list" and isinstance(value, str) else value
    match setting.kind:
        case "choice":
            fits = settled in setting.choices
        case "list":
            fits = isinstance(settled, list) and bool(settled) and all(map(_is_text, settled))
        case "text" | "place":
            fits = _is_text(settled)
        case _:
            # In Python True is a number.
            kinds = int if setting.kind == "count" else (int, float)
            fits = isinstance(settled, kinds) and not isinstance(settled, bool) and settled >= 0
    if not fits:
        raise BadSettings(
            f"{where}: `{setting.name}` has a value it cannot have",
            got=repr(value),
            expected=_EXPECTED.get(setting.kind) or " or ".join(setting.choices),
        )
    return settled


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _from_text(setting: Setting, text: str) -> Any:
    # A value that is not of the kind is complained of later.
    if setting.kind == "list":
        return [part.strip() for part in text.split(",") if part.strip()]
    if setting.kind in ("number", "count"):
        try:
            return int(text) if setting.kind == "count" else float(text)
        except ValueError:
            return text
    return text


def is_path(value: str) -> bool:
    """Return True for a text that names a file relative to something: no address, no home."""
    return "://" not in value and not value.startswith((":memory:", "~"))


def check_keys(
    table: Iterable[str],
    allowed: Iterable[str],
    source: Source,
    what: str,
    also: tuple[str, ...] = (),
) -> None:
    """Raise BadSettings for a key that is unknown, with its line and the nearest name."""
    names = (*allowed, *also)
    for key in table:
        if key not in names:
            raise BadSettings(
                f"{source.place(key)}: there is no {what} {key!r}",
                expected=", ".join(names),
                hint=near(key, names, 1),
            )


# -- models


def sent_by(table: Any, environ: Mapping[str, str]) -> str:
    """Return which host gets which variables for a model's table, "" if none is sent."""
    table = {"name": table} if isinstance(table, str) else table
    names = sent_variables(table, environ)
    base = table.get("api_base")
    host = host_of(base) if isinstance(base, str) else f"the provider of {table['name']}"
    return f"{host} gets {', '.join(names)}" if names else ""


def _check_model(alias: str, value: Any, source: Source) -> Mapping[str, Any]:
    table = {"name": value} if isinstance(value, str) else value
    if not isinstance(table, Mapping) or "name" not in table:
        raise BadSettings(
            f"{source.place(alias)}: the model {alias!r} has no name",
            expected='name = "a litellm model string"',
            hint=f'[models.{alias}] with a name, such as name = "openai/gpt-4o-mini"',
        )
    if "api_key" in table:
        raise BadSettings(
            f"{source.place(alias, 'api_key')}: a key does not stand in a file",
            got=f"api_key of {alias!r}",
            hint=f'{_CREDENTIAL}: api_key_env = "MY_KEY"',
        )

    check_keys(table, MODEL_KEYS, source, f"setting of the model {alias!r} called")
    variable = table.get("api_key_env", "API_KEY")
    # A text like a key is taken for the key itself.
    is_name = isinstance(variable, str) and _VARIABLE.fullmatch(variable)
    if not is_name or redact(variable) != variable:
        raise BadSettings(
            f"{source.place(alias, 'api_key_env')}: api_key_env of {alias!r} names no "
            "environment variable",
            expected='the name of a variable, such as "MY_KEY", and not the key itself',
        )
    for name, member in table.items():
        _no_literal(member, (name,), alias, source)
    return table


def _no_literal(value: Any, path: tuple[str, ...], alias: str, source: Source) -> None:
    # Told by its name or by its look. path: the keys to the value in the model's table.
    if isinstance(value, Mapping):
        if _variable(value) is None:
            for key, member in value.items():
                _no_literal(member, (*path, key), alias, source)
    elif isinstance(value, list):
        for member in value:
            _no_literal(member, path, alias, source)
    elif isinstance(value, str) and path != ("api_key_env",):
        # The model's own settings have names that are known, so only deeper ones are suspect.
        if (len(path) == 1 or not is_secret_name(path[-1])) and redact(value) == value:
            return
        raise BadSettings(
            f"{source.place(alias, path[-1])}: a credential does not stand in a file",
            got=f"{'.'.join(path)} of the model {alias!r}",
            hint=f'{_CREDENTIAL}: {path[-1]} = {{ env = "MY_VARIABLE" }}',
        )


def _is_there(path: str) -> bool:
    try:
        return Path(path).exists()
    except (OSError, ValueError):
        return False


def _variable(value: Any) -> str | None:
    if isinstance(value, Mapping) and set(value) == {"env"} and isinstance(value["env"], str):
        return str(value["env"])
    return None


def _model(alias: str, table: Any, source: Source | None, environ: Mapping[str, str]) -> Model:
    where = source.place(alias) if source else f"model {alias!r}"
    if source is not None and not source.trusted:
        check_trust(table, environ, where, source.path)
        template = table.get("chat_template")
        if isinstance(template, str) and _is_there(template):
            # Of the current folder, as it is read.
            elsewhere(
                "chat_template", str(Path(template).absolute()), source, where, strangers([table])
            )

    def value_of(variable: str) -> str:
        if not environ.get(variable):
            raise BadSettings(
                f"{where}: the environment variable {variable} is not set",
                got=f"model {alias!r}",
                hint=f"export {variable}=… before the command",
            )
        return environ[variable]

    def filled(value: Any) -> Any:
        variable = _variable(value)
        if variable is not None:
            return SecretText(value_of(variable))
        if isinstance(value, Mapping):
            return {k: filled(v) for k, v in value.items()}
        return [filled(v) for v in value] if isinstance(value, list) else value

    values = filled(dict(table))
    key = values.pop("api_key_env", None)
    if key is not None:
        values["api_key"] = value_of(str(key))
    elif source is not None and not source.trusted and not is_own_host(table):
        values["api_key"] = NO_KEY

    # Names and addresses are in every record, the latter without their logins.
    for name in ("name", "api_base"):
        if isinstance(values.get(name), SecretText):
            values[name] = str(values[name])

    # A price is a table in the file, or a list, and a pair for Python.
    price = values.get("price")
    if isinstance(price, Mapping):
        cached = [price["cached"]] if "cached" in price else []
        price = [price.get("input"), price.get("output"), *cached]
    if isinstance(price, list):
        values["price"] = tuple(price)

    for name in _FREE:
        if name in values and not isinstance(values[name], Mapping):
            raise BadSettings(
                f"{where}: {name} of the model {alias!r} is a table", got=values[name]
            )
    try:
        return Model(**values)
    except BadOptions as e:
        raise BadSettings(
            f"{where}: model {alias!r}: {e.message}", got=e.got, expected=e.expected, hint=e.hint
        ) from None
