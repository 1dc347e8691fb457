"""The Berkeley Function Calling Leaderboard as cases, read from the files of a `bfcl-eval` wheel.

The package is never imported: installed normally it pulls in a great deal. Its data is read from
where it is installed (``pip install --no-deps bfcl-eval``), from a wheel that was downloaded (``pip
download --no-deps bfcl-eval``), from a folder of its files, or from one of these files.

The handling of an entry: type words (``dict``, ``float``, ``tuple``, ``HashMap`` …) become JSON
Schema types, ``any`` becomes a schema without a type. Function names stay as they are, dots
included. A list of right values becomes ``{"$any": […]}``, and an empty text in it, which means
that the parameter may be absent, ``"$optional": true``. Irrelevant questions want no call
(``[]``), relevant ones at least one call of any tool. Anything that cannot be a case, since its
right answer is no set of calls, is counted in `Cases.skipped` with the reason.
"""

# How it works. An address leads to a folder (inside a wheel, too: a zip is walked like one), the
# folder to one file of questions a category and one of right answers. An entry becomes a row such
# as `load_cases` reads, and goes through `read_case` like any other, so that whatever the
# leaderboard does otherwise is caught with its file and line.

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ...core.errors import BadCase, BadOptions, MissingExtra, UnreadableInput
from ...core.values import read_strict
from .bfcl_gold import Strings, doubts, schema_of, wanted_call, with_language
from .case import Case, read_case
from .collection import Cases, Skipped

Folder: TypeAlias = Path | zipfile.Path
Kind: TypeAlias = Literal["calls", "irrelevance", "relevance"]

PACKAGE = "bfcl-eval"
_ADDRESS = re.compile(r"bfcl(?::(.*))?", re.DOTALL)
# The languages other than Python that functions are written in, and how they are called.
_LANGUAGES = {"java": "Java", "javascript": "JavaScript"}
_FILE = re.compile(r"BFCL_v(\d+)_(\w+)\.json")
# The leaderboard counts any number of calls as right; a target has to name how many.
_MOST_CALLS = 8
"""A relevant question wants one call of any tool; up to so many are taken for right."""

_REASONS: Mapping[str, str] = {
    "multi_turn": "its calls act on a simulated system, and the system's state is judged, not the "
    "calls",
    "web_search": "its final answer is judged, after searches in a live web",
    "memory": "its final answer is judged, after conversations that fill a memory",
    "format_sensitivity": "it lists entries of other categories, to be asked in other prompt "
    "formats",
}
_NO_CALLS = "its right answers are not calls with their alternatives"


def is_address(source: str | Path) -> bool:
    """Return True for a source that `load_cases` is to read as this data set.

    source: ``bfcl``, ``bfcl:live,multiple``, a wheel, a folder of the data set, or one of its
        files. Any other text or path is False, and nothing is raised for one that does not exist.

    >>> is_address("bfcl:live"), is_address("BFCL_v4_multiple.json"), is_address("cases.jsonl")
    (True, True, False)
    """
    if isinstance(source, str) and _ADDRESS.fullmatch(source):
        return True

    path = Path(source)
    # Told by their names alone, so that `load_bfcl` is the one to miss a path that does not exist.
    if path.suffix == ".whl" or _FILE.fullmatch(path.name):
        return True

    return path.is_dir() and _data_in(path) is not None


def load_address(source: str | Path) -> Cases:
    """Return the cases of an address.

    source: one that `is_address` accepts. Categories behind a colon are separated by commas.
        Without any, all categories are read.

    Raises the errors of `load_bfcl`.
    """
    address = _ADDRESS.fullmatch(source) if isinstance(source, str) else None
    if address is None:
        return load_bfcl(source=source)

    words = address[1]
    if not words:
        return load_bfcl()

    categories = [word.strip() for word in words.split(",")]
    return load_bfcl([category for category in categories if category])


def load_bfcl(
    categories: str | Sequence[str] | None = None,
    *,
    source: str | Path | None = None,
    strings: Strings = "exact",
) -> Cases:
    """Return the entries of some categories as cases.

    The metadata of a case name category, language and data set. An entry that contradicts its own
    tools says so in ``metadata["doubt"]``.

    categories: names such as ``simple_python``, or the beginning of some (``simple``, ``live``).
        All by default.
    source: a wheel, a folder, or one file. The installed package by default.
    strings: how texts are compared: ``exact``, or ``bfcl`` as the leaderboard does it (case, spaces
        and some punctuation do not count, and an optional text may be empty).

    Raises MissingExtra if the package is missing, UnreadableInput for a source without the data
    set, BadOptions for a category that is not there or cannot be cases, and BadCase naming file and
    line.
    """
    if strings not in ("exact", "bfcl"):
        raise BadOptions("strings is how texts are compared", got=strings, expected="exact or bfcl")
    name = "bfcl" if source is None else str(source)
    with contextlib.ExitStack() as stack:  # closes the wheel, where there is one
        files, only = _files(source, stack)
        if only is not None:
            return _cases([only], files, strings, name, is_named=True)
        chosen = _chosen(categories, files)
        return _cases(chosen, files, strings, name, is_named=categories is not None)


def _cases(
    categories: Sequence[str], files: _Files, strings: Strings, source: str, *, is_named: bool
) -> Cases:
    """Return the cases of some categories.

    Categories that cannot be cases drop out with a count.

    categories: keys of `files.questions`.
    source: the name that the cases are to carry.
    is_named: someone asked for these categories, or False if they are simply all there are.

    Raises BadOptions if the only category that someone named cannot be cases.
    """
    cases: list[Case] = []
    skipped: list[Skipped] = []
    for name in categories:
        entries = _category(name, files, strings)
        if not isinstance(entries, Skipped):
            cases += entries
        elif len(categories) > 1 or not is_named:
            skipped.append(entries)
        else:
            raise BadOptions(
                f"{name} cannot be read as cases",
                got=entries.count,
                expected="single-turn categories",
                hint=entries.reason,
            )
    return Cases(cases, source, skipped)


# where the files are


@dataclass(frozen=True, slots=True)
class _Files:
    """The questions and right answers of each category, and the name of the folder in errors."""

    questions: Mapping[str, Folder]
    answers: Mapping[str, Folder]


def _files(source: str | Path | None, stack: contextlib.ExitStack) -> tuple[_Files, str | None]:
    """Return the data set's files, and the category where `source` is one of them.

    source: a wheel, a folder or a file, or None for the installed package.
    stack: closes the files that have to stay open until the files are read.

    Raises UnreadableInput for a source without the data set, and the errors of `_installed`.
    """
    folder: Folder | None
    if source is None:
        folder, only = _installed(), None
    else:
        folder, only = _folder_of(Path(source), stack)
    if folder is None:
        raise UnreadableInput(
            "the Berkeley Function Calling Leaderboard is not in it",
            got=str(source),
            expected="a bfcl-eval wheel, or a folder with files such as BFCL_v4_multiple.json",
        )

    # A category's two files have the same name; the right answers are one folder below.
    return _Files(_named(folder), _named(folder / "possible_answer")), only


def _folder_of(path: Path, stack: contextlib.ExitStack) -> tuple[Folder | None, str | None]:
    """Return the folder of the data set that a path leads to, and a category.

    The folder is None if the path leads to none. The category is named where the path is one file
    of the data set, and None otherwise.

    stack: receives the opened wheel, and closes it later.

    Raises UnreadableInput for a path that does not exist, and for a file that is not a zip archive.
    """
    if not path.exists():
        raise UnreadableInput("there is no such file", got=str(path))

    match = _FILE.fullmatch(path.name)
    if match is not None:
        return path.parent, match[2]
    if path.is_dir():
        return _data_in(path), None

    # Any other file is taken for a wheel: its name may have been changed, its content tells.
    try:
        wheel = stack.enter_context(zipfile.ZipFile(path))
        return _data_in(zipfile.Path(wheel)), None
    except (zipfile.BadZipFile, OSError) as e:
        raise UnreadableInput("this is no wheel", got=f"{path}: {e}") from None


def _installed() -> Folder:
    """Return the data folder of the installed package.

    Raises MissingExtra if the package is missing, UnreadableInput where it has no data.
    """
    try:
        folder = Path(str(importlib.metadata.distribution(PACKAGE).locate_file("bfcl_eval/data")))
    except importlib.metadata.PackageNotFoundError:
        raise MissingExtra(
            "the Berkeley Function Calling Leaderboard is not installed",
            hint=f"pip install --no-deps {PACKAGE} (with its dependencies it is huge), or pip "
            "download --no-deps "
            f"{PACKAGE} and give the wheel's path",
        ) from None
    if not _named(folder):
        raise UnreadableInput(f"the installed {PACKAGE} has no data", got=str(folder))
    return folder


def _data_in(folder: Folder) -> Folder | None:
    """Return the folder with the data set's files in or below a folder, or None.

    folder: the data folder itself, or the top of a package or an unpacked wheel.
    """
    # One level above the files, and the root of an unpacked wheel, will do as well.
    for inside in (folder, folder / "data", folder / "bfcl_eval" / "data"):
        if inside.is_dir() and _named(inside):
            return inside
    return None


def _named(folder: Folder) -> dict[str, Folder]:
    """Return category -> its file of the newest version, in alphabetic order.

    Files of other names do not count. A folder that does not exist has none.
    """
    if not folder.is_dir():
        return {}

    newest: dict[str, tuple[int, Folder]] = {}
    for file in folder.iterdir():
        match = _FILE.fullmatch(file.name)
        if match is None:
            continue
        version, category = int(match[1]), match[2]
        # Packages carry files of older versions of a category beside the newest one.
        if category not in newest or version >= newest[category][0]:
            newest[category] = version, file

    return {category: newest[category][1] for category in sorted(newest)}


def _chosen(categories: str | Sequence[str] | None, files: _Files) -> list[str]:
    """Return the categories that some words name, each once and in the order of the words.

    categories: one word or several, or None for all. A word is a category's whole name, or its
        beginning up to an underscore: ``live`` is ``live_simple``, ``live_multiple`` and so on.

    Raises BadOptions for a word that names none.
    """
    if categories is None:
        return list(files.questions)

    words = [categories] if isinstance(categories, str) else list(categories)
    chosen: list[str] = []
    for word in words:
        names = _categories_of(word, files)
        if not names:
            raise BadOptions(
                "no category of this name", got=word, expected=", ".join(files.questions)
            )
        chosen += names

    # Two words may name the same category; a dict keeps the first place of each.
    return list(dict.fromkeys(chosen))


def _categories_of(word: str, files: _Files) -> list[str]:
    """Return the categories that one word names: that category, or all that begin with the word."""
    if word in files.questions:
        return [word]
    return [name for name in files.questions if name.startswith(f"{word}_")]


# entries


def _category(name: str, files: _Files, strings: Strings) -> list[Case] | Skipped:
    """Return the cases of a category, or why it has none.

    name: a key of `files.questions`.

    Raises BadCase for an unreadable entry.
    """
    file = files.questions[name]
    reason = _reason_to_skip(name)
    if reason is not None:
        return Skipped(name, _count(file), reason)

    kind = _kind_of(name)
    entries = (_Entry(name, file.name, line, row) for line, row in _rows(file))
    if kind != "calls":
        return [entry.case(kind, [], strings) for entry in entries]

    if name not in files.answers:
        return Skipped(name, _count(file), "there is no file of its right answers")
    answers = files.answers[name]
    truths = _truths(answers)
    if not all(_is_gold(truth) for truth in truths.values()):
        return Skipped(name, _count(file), _NO_CALLS)

    return [entry.case(kind, entry.truth(truths, answers), strings) for entry in entries]


def _reason_to_skip(category: str) -> str | None:
    """Return why the questions of a category cannot be cases, None if they can."""
    for word, reason in _REASONS.items():
        if category.startswith(word):
            return reason
    return None


def _truths(answers: Folder) -> dict[Any, Any]:
    """Return id -> right calls, from a category's file of right answers.

    Raises the errors of `_rows`.
    """
    return {row.get("id"): row.get("ground_truth") for _, row in _rows(answers)}


def _kind_of(category: str) -> Kind:
    """Return the right answer to the questions of a category, by its name.

    >>> _kind_of("live_irrelevance"), _kind_of("live_relevance"), _kind_of("multiple")
    ('irrelevance', 'relevance', 'calls')
    """
    # Asked first, since the word for the other kind is a part of this one.
    if "irrelevance" in category:
        return "irrelevance"
    if "relevance" in category:
        return "relevance"
    return "calls"


def _is_gold(truth: Any) -> bool:
    """Return True for a list of calls with their alternatives.

    >>> _is_gold([{"f": {"city": ["Oslo", "Bergen"]}}]), _is_gold(["the sum is 3"])
    (True, False)
    """
    return isinstance(truth, list) and all(_is_gold_call(call) for call in truth)


def _is_gold_call(call: Any) -> bool:
    """Return True for one call with its alternatives, ``{name: {argument: […]}}``."""
    if not isinstance(call, dict) or len(call) != 1:
        return False
    return all(isinstance(arguments, dict) for arguments in call.values())


@dataclass(frozen=True, slots=True)
class _Entry:
    """One question of the leaderboard, and where it stands."""

    category: str
    file: str
    line: int
    row: Mapping[str, Any]

    def bad(self, message: str, **more: Any) -> BadCase:
        """Return the error that names the file and the line of the entry.

        more: fields of BadCase such as ``got`` and ``expected``.
        """
        return BadCase(message, source=self.file, line=self.line, **more)

    @property
    def id(self) -> Any:
        """Return the entry's id as it stands there, None if it has none."""
        return self.row.get("id")

    def truth(self, truths: Mapping[Any, Any], file: Folder) -> list[Any]:
        """Return the right calls of the entry.

        truths: id -> calls, of all entries of the category.
        file: the file of `truths`, for the error.

        Raises BadCase if the file has none for this entry.
        """
        if self.id not in truths:
            raise self.bad(
                "this entry has no right answer", got=self.id, expected=f"its id in {file}"
            )
        calls: list[Any] = truths[self.id]
        return calls

    def case(self, kind: Kind, truth: list[Any], strings: Strings) -> Case:
        """Return the entry as a case.

        kind: the right answer to the questions of its category.
        truth: its right calls. An empty list for the kinds that have none.

        Raises BadCase for an entry of another shape.
        """
        tools = [self._tool(function, truth) for function in self._functions()]
        schemas = {tool["name"]: tool["parameters"] for tool in tools}
        target = _target(kind, truth, list(schemas), strings)

        metadata = {"category": self.category, "language": self._language(), "dataset": "bfcl"}
        contradictions = doubts(truth, schemas)
        if contradictions:
            metadata["doubt"] = "; ".join(contradictions)

        row = {
            "id": self.id,
            "input": self._input(),
            "tools": tools,
            "target": target,
            "metadata": metadata,
        }
        return read_case(row, source=self.file, line=self.line)

    def _functions(self) -> list[Mapping[str, Any]]:
        """Return the functions of the entry as they stand there.

        Raises BadCase if they are no list of objects.
        """
        functions = self.row.get("function")
        if not isinstance(functions, list) or not all(isinstance(f, Mapping) for f in functions):
            raise self.bad(
                "an entry has a list of functions", got=functions, expected='"function": […]'
            )
        return functions

    def _tool(self, function: Mapping[str, Any], truth: list[Any]) -> dict[str, Any]:
        """Return a function as a tool definition.

        function: an entry's own, with type words such as ``dict`` and ``HashMap``. Without
            parameters it takes none. truth: the right calls of the entry.

        Raises BadCase for a type word no one knows.
        """
        parameters = function.get("parameters") or {"type": "dict", "properties": {}}
        try:
            schema = schema_of(parameters)
        except KeyError as e:
            raise self.bad(
                f"unknown type in the function {function.get('name')!r}", got=e.args[0]
            ) from None
        language = _LANGUAGES.get(self._language())
        if language is not None:
            schema = with_language(schema, parameters, language, truth)

        return {
            "name": function.get("name"),
            "description": function.get("description") or "",
            "parameters": schema,
        }

    def _input(self) -> Any:
        """Return the user's text, or the messages where there are several.

        A single message of the user is given as its text, since that is the shorter form of the
        same input.

        Raises BadCase for more than one turn.
        """
        messages = self._only_turn()
        if len(messages) != 1:
            return messages

        first = messages[0]
        if isinstance(first, Mapping) and first.get("role") == "user":
            return first.get("content")
        return messages

    def _only_turn(self) -> list[Any]:
        """Return the messages of the entry's only turn.

        Raises BadCase for more than one turn, and for a turn that is not a list of messages.
        """
        turns = self.row.get("question")
        if not isinstance(turns, list) or len(turns) != 1 or not isinstance(turns[0], list):
            raise self.bad("a question is a list of one turn of messages", got=turns)
        messages: list[Any] = turns[0]
        return messages

    def _language(self) -> str:
        """Return the programming language that the functions are written in.

        The category's name ends with it. Python is the language of all others.
        """
        for word in _LANGUAGES:
            if self.category.endswith(f"_{word}"):
                return word
        return "python"


def _target(kind: Kind, truth: list[Any], names: list[str], strings: Strings) -> list[Any]:
    """Return the right answer to an entry, as a target.

    truth: its right calls, which only the kind "calls" has.
    names: those of its tools.
    """
    if kind == "calls":
        return _wanted_calls(truth, strings)
    if kind == "relevance":
        return _any_calls(names)
    return []


def _wanted_calls(truth: list[Any], strings: Strings) -> list[Any]:
    """Return the right calls of an entry as a target.

    truth: calls with their alternatives, ``[{name: {argument: […]}}]``.
    strings: see `load_bfcl`.
    """
    target = []
    for call in truth:
        for name, arguments in call.items():
            target.append(wanted_call(name, arguments, strings))
    return target


def _any_calls(names: list[str]) -> list[Any]:
    """Return a target that wants one call of any tool, and allows some more.

    names: those of the tools. Arguments are not looked at.
    """
    any_call = {"name": {"$any": names}, "arguments": {"$match": "ignore"}}
    further = {**any_call, "$optional": True}
    return [any_call, *[further] * (_MOST_CALLS - 1)]


def _rows(file: Folder) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield (line, entry) of a file with one JSON object a line.

    Blank lines drop out.

    Raises UnreadableInput for a file that is not UTF-8 text, and BadCase naming the line for one
    that is not a JSON object.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise UnreadableInput("the file cannot be read", got=f"{file}: {e}") from None

    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield number, _row_of(line, file, number)


def _row_of(line: str, file: Folder, number: int) -> Mapping[str, Any]:
    """Return one line of a file as an entry.

    number: the line's, counted from 1, for the error.

    Raises BadCase for a line that is not a JSON object.
    """
    try:
        row = read_strict(line)
    except (ValueError, RecursionError) as e:
        raise BadCase(
            "this is not JSON", source=file.name, line=number, got=f"{line[:120]} ({e})"
        ) from None

    if not isinstance(row, Mapping):
        raise BadCase("an entry is a JSON object", source=file.name, line=number, got=row)
    return row


def _count(file: Folder) -> int:
    """Return the number of entries in a file of any shape.

    A file of lines has one entry per line. A file of one object has lists of ids as its members.
    """
    text = file.read_text(encoding="utf-8", errors="replace")
    try:
        whole = json.loads(text)
    except ValueError:
        return sum(bool(line.strip()) for line in text.split("\n"))
    if not isinstance(whole, dict):
        return 1
    return sum(len(ids) for ids in whole.values() if isinstance(ids, list))
