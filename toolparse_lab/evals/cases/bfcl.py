"""The Berkeley Function Calling Leaderboard as cases, read from the files of a `bfcl-eval` wheel.

The package is never imported: installed normally it pulls in a great deal. Its data is read from where it is installed
(``pip install --no-deps bfcl-eval``), from a wheel that was downloaded (``pip download --no-deps bfcl-eval``), from a
folder of its files, or from one of these files.

What becomes of an entry: type words (``dict``, ``float``, ``tuple``, ``HashMap`` …) become JSON Schema types, ``any``
becomes a schema without a type; function names stay as they are, dots included. A list of right values becomes
``{"$any": […]}``, and an empty text in it, which means that the parameter may be left out, ``"$optional": true``.
Irrelevant questions want no call (``[]``), relevant ones at least one call of any tool. What cannot be a case, since
its right answer is no set of calls, is counted in `Cases.skipped` with the reason.
"""

from __future__ import annotations

import importlib.metadata
import json
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ...errors import BadCase, BadOptions, MissingExtra, UnreadableInput
from ...values import read_strict
from .bfcl_gold import Strings, doubts, schema_of, wanted_call
from .case import Case, Cases, Skipped, read_case

Folder: TypeAlias = Path | zipfile.Path
Kind: TypeAlias = Literal["calls", "irrelevance", "relevance"]

PACKAGE = "bfcl-eval"
_ADDRESS = re.compile(r"bfcl(?::(.*))?", re.DOTALL)
_FILE = re.compile(r"BFCL_v(\d+)_(\w+)\.json")
_MOST_CALLS = 8
"""A relevant question wants one call of any tool; up to so many are taken for right."""

_REASONS: Mapping[str, str] = {
    "multi_turn": "its calls act on a simulated system, and the system's state is judged, not the calls",
    "web_search": "its final answer is judged, after searches in a live web",
    "memory": "its final answer is judged, after conversations that fill a memory",
    "format_sensitivity": "it lists entries of other categories, to be asked in other prompt formats",
}
_NO_CALLS = "its right answers are not calls with their alternatives"


def is_address(source: str | Path) -> bool:
    """Whether `load_cases` is to read a source as this data set: ``bfcl``, ``bfcl:live,multiple``, a wheel, a folder
    of the data set or one of its files."""
    if isinstance(source, str) and _ADDRESS.fullmatch(source):
        return True
    path = Path(source)
    if path.suffix == ".whl" or _FILE.fullmatch(path.name):
        return True
    return path.is_dir() and _data_in(path) is not None


def load_address(source: str | Path) -> Cases:
    """The cases of an address, see `is_address`; raises as `load_bfcl` does."""
    m = _ADDRESS.fullmatch(source) if isinstance(source, str) else None
    if m is None:
        return load_bfcl(source=source)
    return load_bfcl([c.strip() for c in m[1].split(",") if c.strip()] if m[1] else None)


def load_bfcl(
    categories: str | Sequence[str] | None = None,
    *,
    source: str | Path | None = None,
    strings: Strings = "exact",
) -> Cases:
    """The entries of some categories as cases; `metadata` says category, language and data set.

    categories: names such as ``simple_python``, or the beginning of some (``simple``, ``live``); all by default.
    source: a wheel, a folder, or one file; the installed package by default. strings: how texts are compared:
    ``exact``, or ``bfcl`` as the leaderboard does it (case, spaces and some punctuation do not count, and an
    optional text may be empty). An entry that contradicts its own tools says so in ``metadata["doubt"]``.

    Raises MissingExtra where the package is not installed, UnreadableInput for a source without the data set,
    BadOptions for a category that is not there or cannot be cases, and BadCase naming file and line.
    """
    if strings not in ("exact", "bfcl"):
        raise BadOptions("strings is how texts are compared", got=strings, expected="exact or bfcl")
    files, only = _files(source)
    names = [only] if only is not None else _chosen(categories, files)
    asked = categories is not None or only is not None
    cases: list[Case] = []
    skipped: list[Skipped] = []
    for name in names:
        found = _category(name, files, strings)
        if isinstance(found, Skipped):
            if asked and len(names) == 1:
                raise BadOptions(f"{name} cannot be read as cases", got=found.count, expected="single-turn categories",
                                 hint=found.reason)  # fmt: skip
            skipped.append(found)
        else:
            cases += found
    return Cases(cases, "bfcl" if source is None else str(source), skipped)


# where the files are


@dataclass(frozen=True, slots=True)
class _Files:
    """The questions and right answers of each category, and what the folder is called in errors."""

    questions: Mapping[str, Folder]
    answers: Mapping[str, Folder]


def _files(source: str | Path | None) -> tuple[_Files, str | None]:
    """The data set's files, and the category where `source` is one of them."""
    only = None
    folder: Folder | None
    if source is None:
        folder = _installed()
    else:
        path = Path(source)
        if not path.exists():
            raise UnreadableInput("there is no such file", got=str(path))
        if m := _FILE.fullmatch(path.name):
            folder, only = path.parent, m[2]
        elif path.is_dir():
            folder = _data_in(path)
        else:
            try:
                folder = _data_in(zipfile.Path(path))
            except (zipfile.BadZipFile, OSError) as e:
                raise UnreadableInput("this is no wheel", got=f"{path}: {e}") from None
    if folder is None:
        raise UnreadableInput(
            "the Berkeley Function Calling Leaderboard is not in it", got=str(source),
            expected="a bfcl-eval wheel, or a folder with files such as BFCL_v4_multiple.json",
        )  # fmt: skip
    answers = folder / "possible_answer"
    return _Files(_named(folder), _named(answers) if answers.is_dir() else {}), only


def _installed() -> Folder:
    try:
        folder = Path(str(importlib.metadata.distribution(PACKAGE).locate_file("bfcl_eval/data")))
    except importlib.metadata.PackageNotFoundError:
        raise MissingExtra(
            "the Berkeley Function Calling Leaderboard is not installed",
            hint=f"pip install --no-deps {PACKAGE} (with its dependencies it is huge), or pip download --no-deps "
            f"{PACKAGE} and give the wheel's path",
        ) from None
    if not _named(folder):
        raise UnreadableInput(f"the installed {PACKAGE} has no data", got=str(folder))
    return folder


def _data_in(folder: Folder) -> Folder | None:
    for inside in (folder, folder / "data", folder / "bfcl_eval" / "data"):
        if inside.is_dir() and _named(inside):
            return inside
    return None


def _named(folder: Folder) -> dict[str, Folder]:
    """Category -> its file of the newest version, in alphabetic order."""
    newest: dict[str, tuple[int, Folder]] = {}
    for file in folder.iterdir() if folder.is_dir() else ():
        m = _FILE.fullmatch(file.name)
        if m and int(m[1]) >= newest.get(m[2], (0, file))[0]:
            newest[m[2]] = int(m[1]), file
    return {name: newest[name][1] for name in sorted(newest)}


def _chosen(categories: str | Sequence[str] | None, files: _Files) -> list[str]:
    if categories is None:
        return list(files.questions)
    wanted = [categories] if isinstance(categories, str) else list(categories)
    chosen: list[str] = []
    for word in wanted:
        here = [word] if word in files.questions else [n for n in files.questions if n.startswith(f"{word}_")]
        if not here:
            raise BadOptions("no category of this name", got=word, expected=", ".join(files.questions))
        chosen += here
    return list(dict.fromkeys(chosen))


# entries


def _category(name: str, files: _Files, strings: Strings) -> list[Case] | Skipped:
    file = files.questions[name]
    if reason := next((r for word, r in _REASONS.items() if name.startswith(word)), None):
        return Skipped(name, _count(file), reason)
    kind: Kind = "irrelevance" if "irrelevance" in name else "relevance" if "relevance" in name else "calls"
    answers: dict[Any, Any] = {}
    if kind == "calls":
        if name not in files.answers:
            return Skipped(name, _count(file), "there is no file of its right answers")
        for line, row in _rows(files.answers[name]):
            answers[row.get("id")] = line, row.get("ground_truth")
        if not all(_is_gold(truth) for _, truth in answers.values()):
            return Skipped(name, _count(file), _NO_CALLS)
    cases = []
    for line, row in _rows(file):
        entry = _Entry(name, file.name, line, row)
        if kind == "calls" and entry.id not in answers:
            raise entry.bad("this entry has no right answer", got=entry.id, expected=f"its id in {files.answers[name]}")
        cases.append(entry.case(kind, answers.get(entry.id, (None, []))[1], strings))
    return cases


def _is_gold(truth: Any) -> bool:
    return isinstance(truth, list) and all(
        isinstance(call, dict) and len(call) == 1 and all(isinstance(a, dict) for a in call.values()) for call in truth
    )


@dataclass(frozen=True, slots=True)
class _Entry:
    category: str
    file: str
    line: int
    row: Mapping[str, Any]

    def bad(self, message: str, **more: Any) -> BadCase:
        return BadCase(message, source=self.file, line=self.line, **more)

    @property
    def id(self) -> Any:
        return self.row.get("id")

    def case(self, kind: Kind, truth: list[Any], strings: Strings) -> Case:
        functions = self.row.get("function")
        if not isinstance(functions, list) or not all(isinstance(f, Mapping) for f in functions):
            raise self.bad("an entry has a list of functions", got=functions, expected='"function": […]')
        tools = [self._tool(f) for f in functions]
        schemas = {t["name"]: t["parameters"] for t in tools}
        metadata = {"category": self.category, "language": self._language(), "dataset": "bfcl"}
        target: list[Any] = []
        if kind == "calls":
            target = [wanted_call(name, args, strings) for call in truth for name, args in call.items()]
            if found := doubts(truth, schemas):
                metadata["doubt"] = "; ".join(found)
        elif kind == "relevance":
            any_call = {"name": {"$any": list(schemas)}, "arguments": {"$match": "ignore"}}
            target = [any_call, *({**any_call, "$optional": True} for _ in range(_MOST_CALLS - 1))]
        row = {"id": self.id, "input": self._input(), "tools": tools, "target": target, "metadata": metadata}
        return read_case(row, source=self.file, line=self.line)

    def _tool(self, function: Mapping[str, Any]) -> dict[str, Any]:
        try:
            parameters = schema_of(function.get("parameters") or {"type": "dict", "properties": {}})
        except KeyError as e:
            raise self.bad(f"unknown type in the function {function.get('name')!r}", got=e.args[0]) from None
        return {
            "name": function.get("name"), "description": function.get("description") or "", "parameters": parameters,
        }  # fmt: skip

    def _input(self) -> Any:
        turns = self.row.get("question")
        if not isinstance(turns, list) or len(turns) != 1 or not isinstance(turns[0], list):
            raise self.bad("a question is a list of one turn of messages", got=turns)
        messages = turns[0]
        if len(messages) == 1 and isinstance(messages[0], Mapping) and messages[0].get("role") == "user":
            return messages[0].get("content")
        return messages

    def _language(self) -> str:
        """The programming language that the functions are written in."""
        return next((word for word in ("java", "javascript") if self.category.endswith(f"_{word}")), "python")


def _rows(file: Folder) -> Iterator[tuple[int, Mapping[str, Any]]]:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise UnreadableInput("the file cannot be read", got=f"{file}: {e}") from None
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = read_strict(line)
        except (ValueError, RecursionError) as e:
            raise BadCase("this is not JSON", source=file.name, line=number, got=f"{line[:120]} ({e})") from None
        if not isinstance(row, Mapping):
            raise BadCase("an entry is a JSON object", source=file.name, line=number, got=row)
        yield number, row


def _count(file: Folder) -> int:
    """The entries of a file of any shape: lines, or the lists of ids in one object."""
    text = file.read_text(encoding="utf-8", errors="replace")
    try:
        whole = json.loads(text)
    except ValueError:
        return sum(bool(line.strip()) for line in text.split("\n"))
    return sum(len(v) for v in whole.values() if isinstance(v, list)) if isinstance(whole, dict) else 1
