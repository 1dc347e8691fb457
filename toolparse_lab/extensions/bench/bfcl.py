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

# How it works. A source leads to a folder (inside a wheel, too: a zip is walked like one), the
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
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ...core.errors import BadCase, BadOptions, MissingExtra, UnreadableInput
from ...core.values import read_strict
from ...evals.cases.case import Case, read_case
from ...evals.cases.collection import Cases, Skipped
from ...evals.cases.target import is_wish

Folder: TypeAlias = Path | zipfile.Path
Strings: TypeAlias = Literal["exact", "bfcl"]

_TYPES: Mapping[str, str | None] = {
    **dict.fromkeys(("string", "String", "char"), "string"),
    **dict.fromkeys(("integer", "int", "long", "short", "byte", "Bigint"), "integer"),
    **dict.fromkeys(("number", "float", "double"), "number"),
    **dict.fromkeys(("boolean", "Boolean", "bool"), "boolean"),
    **dict.fromkeys(
        ("array", "Array", "ArrayList", "list", "tuple", "Queue", "Stack", "Set"), "array"
    ),
    **dict.fromkeys(("object", "dict", "HashMap", "Hashtable"), "object"),
    "null": "null",
    **dict.fromkeys(("any", "Any", ""), None),
}
"""Type word -> JSON Schema type; None says nothing about the type."""

PACKAGE = "bfcl-eval"
# The languages other than Python that functions are written in, and how they are called.
_LANGUAGES = {"java": "Java", "javascript": "JavaScript"}
_FILE = re.compile(r"BFCL_v(\d+)_(\w+)\.json")
# The leaderboard counts any number of calls as right; a target has to name how many.
_MOST_CALLS = 8

_REASONS: Mapping[str, str] = {
    "multi_turn": "its calls act on a simulated system, and the system's state is judged, not the "
    "calls",
    "web_search": "its final answer is judged, after searches in a live web",
    "memory": "its final answer is judged, after conversations that fill a memory",
    "format_sensitivity": "it lists entries of other categories, to be asked in other prompt "
    "formats",
}
_NO_CALLS = "its right answers are not calls with their alternatives"


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
    cases: list[Case] = []
    skipped: list[Skipped] = []
    with contextlib.ExitStack() as stack:  # closes the wheel, where there is one
        folder, only = (_installed(), None) if source is None else _folder_of(Path(source), stack)
        if folder is None:
            raise UnreadableInput(
                "the Berkeley Function Calling Leaderboard is not in it",
                got=str(source),
                expected="a bfcl-eval wheel, or a folder with files such as BFCL_v4_multiple.json",
            )
        # A category's two files have the same name; the right answers are one folder below.
        questions, answers = _named(folder), _named(folder / "possible_answer")
        names = _chosen(categories, questions) if only is None else [only]
        for name in names:
            entries = _category(name, questions[name], answers.get(name), strings)
            if not isinstance(entries, Skipped):
                cases += entries
            elif len(names) > 1 or (only is None and categories is None):
                skipped.append(entries)
            else:
                raise BadOptions(
                    f"{name} cannot be read as cases",
                    got=entries.count,
                    expected="single-turn categories",
                    hint=entries.reason,
                )
    return Cases(cases, "bfcl" if source is None else str(source), skipped)


# where the files are


def _folder_of(path: Path, stack: contextlib.ExitStack) -> tuple[Folder | None, str | None]:
    # Returns (folder, category). The category is named where the path is one file of the data set.
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
    # One level above the files, and the root of an unpacked wheel, will do as well.
    for inside in (folder, folder / "data", folder / "bfcl_eval" / "data"):
        if inside.is_dir() and _named(inside):
            return inside
    return None


def _named(folder: Folder) -> dict[str, Folder]:
    if not folder.is_dir():
        return {}

    newest: dict[str, tuple[int, Folder]] = {}
    for file in folder.iterdir():
        match = _FILE.fullmatch(file.name)
        if match is None:
            continue
        version, category = int(match[1]), match[2]
        # Packages carry files of older versions of a category next to the newest one.
        if category not in newest or version >= newest[category][0]:
            newest[category] = version, file

    return {category: newest[category][1] for category in sorted(newest)}


def _chosen(categories: str | Sequence[str] | None, questions: Mapping[str, Folder]) -> list[str]:
    # A word is a category's whole name, or its beginning up to an underscore: `live` is
    # `live_simple`, `live_multiple` and so on. Two words may name the same category.
    if categories is None:
        return list(questions)
    chosen: dict[str, None] = {}
    for word in [categories] if isinstance(categories, str) else categories:
        names = [name for name in questions if name.startswith(f"{word}_")]
        if word in questions:
            names = [word]
        if not names:
            raise BadOptions("no category of this name", got=word, expected=", ".join(questions))
        chosen |= dict.fromkeys(names)
    return list(chosen)


# entries


def _category(
    name: str, file: Folder, answers: Folder | None, strings: Strings
) -> list[Case] | Skipped:
    for word, reason in _REASONS.items():
        if name.startswith(word):
            return Skipped(name, _count(file), reason)
    # "irrelevance" has the word for the other kind in it.
    if "relevance" in name:
        is_open = "irrelevance" not in name
        return [_case(name, file, line, row, [], strings, is_open) for line, row in _rows(file)]

    if answers is None:
        return Skipped(name, _count(file), "there is no file of its right answers")
    truths: dict[Any, Any] = {row.get("id"): row.get("ground_truth") for _, row in _rows(answers)}
    # Right: [{"f": {"city": ["Oslo", "Bergen"]}}]. Not: ["the sum is 3"].
    for truth in truths.values():
        if not isinstance(truth, list) or not all(
            isinstance(call, dict)
            and len(call) == 1
            and all(isinstance(arguments, dict) for arguments in call.values())
            for call in truth
        ):
            return Skipped(name, _count(file), _NO_CALLS)

    cases = []
    for line, row in _rows(file):
        entry_id = row.get("id")
        if entry_id not in truths:
            raise BadCase(
                "this entry has no right answer",
                source=file.name,
                line=line,
                got=entry_id,
                expected=f"its id in {answers}",
            )
        cases.append(_case(name, file, line, row, truths[entry_id], strings))
    return cases


def _case(
    category: str,
    file: Folder,
    line: int,
    row: Mapping[str, Any],
    truth: list[Any],
    strings: Strings,
    is_open: bool = False,
) -> Case:
    # is_open: any call is right, with any arguments.
    def bad(message: str, **more: Any) -> BadCase:
        return BadCase(message, source=file.name, line=line, **more)

    functions, turns = row.get("function"), row.get("question")
    if not isinstance(functions, list) or not all(isinstance(f, Mapping) for f in functions):
        raise bad("an entry has a list of functions", got=functions, expected='"function": […]')
    language = next((word for word in _LANGUAGES if category.endswith(f"_{word}")), "python")
    schemas: dict[str, Any] = {}
    tools = []
    for function in functions:
        name = function.get("name")
        parameters = function.get("parameters") or {"type": "dict", "properties": {}}
        try:
            schema = schema_of(parameters)
        except KeyError as e:
            raise bad(f"unknown type in the function {name!r}", got=e.args[0]) from None
        if language in _LANGUAGES:
            schema = with_language(schema, parameters, _LANGUAGES[language], truth)
        description = function.get("description") or ""
        tools.append({"name": name, "description": description, "parameters": schema})
        schemas[name] = schema

    target = [
        wanted_call(name, arguments, strings) for call in truth for name, arguments in call.items()
    ]
    if is_open:
        # One call of any tool with any arguments, and up to `_MOST_CALLS` are right.
        any_call = {"name": {"$any": list(schemas)}, "arguments": {"$match": "ignore"}}
        target = [any_call, *[{**any_call, "$optional": True}] * (_MOST_CALLS - 1)]
    metadata = {"category": category, "language": language, "dataset": "bfcl"}
    if contradictions := doubts(truth, schemas):
        metadata["doubt"] = "; ".join(contradictions)

    if not isinstance(turns, list) or len(turns) != 1 or not isinstance(turns[0], list):
        raise bad("a question is a list of one turn of messages", got=turns)
    # A single message of the user becomes its text, the shorter form of the same input.
    question: Any = turns[0]
    first = question[0] if len(question) == 1 else None
    if isinstance(first, Mapping) and first.get("role") == "user":
        question = first.get("content")
    case = {
        "id": row.get("id"), "input": question, "tools": tools, "target": target,
        "metadata": metadata,
    }  # fmt: skip
    return read_case(case, source=file.name, line=line)


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
            raise BadCase(
                "this is not JSON", source=file.name, line=number, got=f"{line[:120]} ({e})"
            ) from None
        if not isinstance(row, Mapping):
            raise BadCase("an entry is a JSON object", source=file.name, line=number, got=row)
        yield number, row


def _count(file: Folder) -> int:
    # A file of lines has an entry per line; a file of one object has lists of ids as its members.
    text = file.read_text(encoding="utf-8", errors="replace")
    try:
        whole = json.loads(text)
    except ValueError:
        return sum(bool(line.strip()) for line in text.split("\n"))
    if not isinstance(whole, dict):
        return 1
    return sum(len(ids) for ids in whole.values() if isinstance(ids, list))


# the leaderboard's own notation


def schema_of(parameters: Any) -> Any:
    """Return a function's parameters, which have the leaderboard's own type words at any depth, as
    JSON Schema. Anything that is not an object comes back as it is.

    Raises KeyError with a type word that is unknown.

    >>> schema_of({"type": "dict", "properties": {"x": {"type": "tuple", "items": {}}}})
    {'type': 'object', 'properties': {'x': {'type': 'array', 'items': {}}}}
    """
    if not isinstance(parameters, Mapping):
        return parameters

    schema: dict[str, Any] = {}
    for key, value in parameters.items():
        # A list of types is JSON Schema already, and stays as it is.
        if key == "type" and isinstance(value, str):
            word = _TYPES[value]
            if word is not None:
                schema["type"] = word
        elif key == "properties" and isinstance(value, Mapping):
            schema[key] = {name: schema_of(inner) for name, inner in value.items()}
        else:
            schema[key] = schema_of(value) if key in ("items", "additionalProperties") else value
    return schema


def with_language(schema: Any, parameters: Any, language: str, truth: list[Any]) -> Any:
    """Return a function's schema with the changes that Java or JavaScript make to it.

    Each parameter's own type word is told in its description, since `HashMap` and `long` are no
    JSON types. If a right value is the name of a variable, a text is a legal value, too.

    schema: as `schema_of` made it of `parameters`. truth: the right calls of the entry.

    >>> with_language({"properties": {"m": {"type": "object"}}},
    ...     {"properties": {"m": {"type": "HashMap"}}}, "Java", [{"f": {"m": ["docs"]}}])
    {'properties': {'m': {'type': ['object', 'string'], 'description': '(Java type HashMap)'}}}
    """
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping):
        return schema

    right: dict[str, list[Any]] = {}  # by argument, over all right calls
    for call in truth:
        for arguments in call.values():
            for key, values in arguments.items():
                right.setdefault(key, []).extend(values if isinstance(values, list) else [])
    typed = {}
    for key, inner in properties.items():
        typed[key] = inner
        if not isinstance(inner, Mapping):
            continue
        typed[key] = described = dict(inner)
        word = parameters["properties"][key].get("type")
        is_named = any(isinstance(value, str) and value for value in right.get(key, ()))
        if is_named and isinstance(described.get("type"), str) and described["type"] != "string":
            described["type"] = [described["type"], "string"]
        if isinstance(word, str):
            words = f"({language} type {word})"
            described["description"] = f"{described.get('description', '')} {words}".strip()
    return {**schema, "properties": typed}


def wanted_call(
    name: str, arguments: Mapping[str, Any], strings: Strings = "exact"
) -> dict[str, Any]:
    """Return a call of the right answer as a call of a target. strings: as for `load_bfcl`.

    arguments: argument -> list of right values, of which an empty text means that the argument may
        be absent.

    >>> wanted_call("f", {"city": ["Oslo", "Oslo, Norway"], "days": ["", 1]})["arguments"]
    {'city': {'$any': ['Oslo', 'Oslo, Norway']}, 'days': {'$optional': True, '$any': [1]}}
    """
    return {
        "name": name,
        "arguments": {key: _wish(values, strings) for key, values in arguments.items()},
    }


def _wish(alternatives: Any, strings: Strings) -> Any:
    # One entry of the data set has its only value without a list around it.
    if not isinstance(alternatives, list):
        return _scalar(alternatives, strings)
    if not alternatives:
        # Written for a list that stays empty; the leaderboard's own check accepts no value at all.
        return {"$any": [[]]}
    values = [alternative for alternative in alternatives if alternative != ""]
    optional = {"$optional": True} if len(values) < len(alternatives) else {}
    if optional:
        # An empty text says that the argument may be left out. It is a value as well where it is
        # the only one, and where the leaderboard would take it: among texts alone.
        if not values or (strings == "bfcl" and all(isinstance(value, str) for value in values)):
            values.insert(0, "")
        elif strings == "bfcl" and all(isinstance(value, list) for value in values):
            # Its check goes through an empty text as through a list, which is an empty one.
            values.insert(0, [])
    return {**optional, "$any": [_value(value, strings) for value in values]}


def _value(x: Any, strings: Strings) -> Any:
    # Inside an object, and in objects of a list, every member has its own list of alternatives. A
    # list inside a list holds plain values, even where these are objects.
    if isinstance(x, Mapping):
        return _plain({key: _wish(values, strings) for key, values in x.items()})
    if isinstance(x, list):
        return [(_value if isinstance(v, Mapping) else _scalar)(v, strings) for v in x]
    return _scalar(x, strings)


def _scalar(x: Any, strings: Strings) -> Any:
    # A right value that has no alternatives inside.
    if isinstance(x, str) and strings == "bfcl":
        return {"$match": "bfcl", "$value": x}
    if isinstance(x, list):
        return [_scalar(v, strings) for v in x]
    if isinstance(x, Mapping):
        return _plain({k: _scalar(v, strings) for k, v in x.items()})
    return x


def _plain(x: dict[str, Any]) -> dict[str, Any]:
    # An object that is read as itself, even where its keys look like a wish.
    return {"$value": x} if is_wish(x) else x


def doubts(truth: list[Any], schemas: Mapping[str, Any]) -> list[str]:
    """Return sentences on what in a right answer, ``[{name: {argument: […]}}]``, contradicts the
    functions it is for. schemas: of their parameters, by name.

    >>> doubts([{"f": {"x": []}}], {"f": {"properties": {"x": {}}}})
    ['no value is right for x of f']
    """
    sentences: list[str] = []
    for call in truth:
        for name, arguments in call.items():
            if name not in schemas:
                sentences.append(f"there is no function {name}")
                continue
            schema = schemas[name] if isinstance(schemas[name], Mapping) else {}
            parameters = schema.get("properties") or {}
            required = schema.get("required") or ()
            sentences += [f"{name} has no parameter {k}" for k in arguments if k not in parameters]
            sentences += [f"{name} requires {k}" for k in required if k not in arguments]
            empty = [key for key, values in arguments.items() if values == []]
            sentences += [f"no value is right for {key} of {name}" for key in empty]
    return sentences
