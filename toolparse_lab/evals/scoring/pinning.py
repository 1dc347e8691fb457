"""Trials as tests: one function of a pytest file for each, which pins everything read from a
recorded answer.
"""

# How it works. A test's name ends in a digest of everything that its reading depends on (text,
# protocol, tools, options, tool choice), so the same answer under the same reading has the same
# name wherever it is written. A file is changed by lines, never written anew from its syntax tree:
# what somebody else put there, comments and layout included, stays.

from __future__ import annotations

import ast
import hashlib
import json
import os
import pprint
import re
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from ...core.errors import BadOptions, StoreError
from ...core.types import DEFAULT_OPTIONS, ParseResult

HEAD = '"""Pins how recorded answers are read; see toolparse_lab.integrations.testing."""\n'
IMPORT = "from toolparse_lab.integrations.testing import assert_parses"
_WIDTH = 100
_LONGEST_SLUG = 60


class Pinnable(Protocol):
    """A trial as far as its test needs it: the reading, and words to say which one it is."""

    @property
    def trial_id(self) -> str:
        """The id by which an error names the trial."""
        ...

    @property
    def case_id(self) -> str:
        """The id of the case, which becomes part of the test's name."""
        ...

    @property
    def model(self) -> str:
        """The alias of the model, for the test's comment."""
        ...

    @property
    def outcome(self) -> str:
        """The outcome's id, '' where the trial was not judged. For the test's comment."""
        ...

    @property
    def result(self) -> ParseResult | None:
        """The reading that is pinned, or None if the answer was never parsed."""
        ...

    @property
    def levels(self) -> Mapping[str, Any]:
        """The arm's factors, of which `tool_choice` changes the reading."""
        ...


def write_tests(trials: Iterable[Pinnable], path: str | Path) -> Path:
    """Write trials as tests into a file, or add them to it.

    The text there already stays as it is. Returns the file's path.

    The same answer under the same reading has one test: writing it again changes nothing, and
    replaces the pinned values where it reads otherwise now. Raises BadOptions for a trial that was
    never parsed and for a file that is not a Python, StoreError where the file cannot be written.
    """
    file = Path(path)
    blocks = dict(_block(trial) for trial in trials)
    text = _text_of(file)
    new_text = _joined(text, blocks, file)
    compile(new_text, str(file), "exec")  # whatever was there and was added, it is Python

    # A file that would not change keeps its time of change, too.
    if not file.exists() or new_text != text:
        _write(file, new_text)
    return file


def _text_of(file: Path) -> str:
    try:
        return file.read_text("utf-8") if file.exists() else HEAD
    except (OSError, UnicodeDecodeError) as e:
        raise StoreError("the file of tests cannot be read", got=f"{file}: {e}") from None


def _write(file: Path, text: str) -> None:
    # Written next to the old file, which it then replaces in one step of the file system.
    temporary = ""
    try:
        handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as f:
            f.write(text)
        # A temporary file is its owner's alone; the new one is as open as the old.
        mode = file.stat().st_mode & 0o777 if file.exists() else 0o644
        Path(temporary).chmod(mode)
        Path(temporary).replace(file)
    except OSError as e:
        with suppress(OSError):
            Path(temporary).unlink()
        raise StoreError("the test cannot be written", got=f"{file}: {e.strerror}") from None


def _joined(text: str, blocks: dict[str, str], file: Path) -> str:
    tree = _tree_of(text, file)
    lines = re.findall(r"[^\n]*\n|[^\n]+", text)  # as Python counts them: a form feed ends none
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    _replace_blocks(lines, functions, blocks)
    if not _is_imported(tree):
        _add_import(lines, _behind_head(tree))

    names = {node.name for node in functions}
    added = [f"\n\n{block}" for name, block in blocks.items() if name not in names]
    if added:
        _end_last_line(lines)
    return "".join([*lines, *added])


def _tree_of(text: str, file: Path) -> ast.Module:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError) as e:
        raise BadOptions(
            "tests are added to a file of Python", got=f"{file}: {e}", hint="name another file"
        ) from None


def _add_import(lines: list[str], start: int) -> None:
    space = [] if start == 0 else ["\n"]
    lines[start:start] = [*space, f"{IMPORT}\n"]


def _end_last_line(lines: list[str]) -> None:
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"


def _replace_blocks(
    lines: list[str], functions: list[ast.FunctionDef], blocks: dict[str, str]
) -> None:
    # Changes `lines`, whose elements are lines of the file, or a whole block in its place.
    # From the end of the file to its beginning, so that line numbers above stay what they are. Of
    # two functions of one name, Python runs the last.
    last = {node.name: node for node in functions if node.name in blocks}
    for node in sorted(last.values(), key=lambda n: n.lineno, reverse=True):
        block = blocks[node.name]
        # By their trees, since somebody may have laid the test out anew.
        if ast.dump(node) != ast.dump(ast.parse(block).body[0]):
            lines[node.lineno - 1 : node.end_lineno] = [block]


def _is_imported(tree: ast.Module) -> bool:
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module == "toolparse_lab.integrations.testing":
            names.update(alias.name for alias in node.names)
    return "assert_parses" in names


def _behind_head(tree: ast.Module) -> int:
    # The number of lines before other imports: the docstring and the imports of the future.
    end = 0
    for i, node in enumerate(tree.body):
        is_head = _is_docstring(i, node) or _is_future_import(node)
        if not is_head:
            break
        end = node.end_lineno or end
    return end


def _is_docstring(i: int, node: ast.stmt) -> bool:
    if i != 0 or not isinstance(node, ast.Expr):
        return False
    return isinstance(node.value, ast.Constant)


def _is_future_import(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _block(trial: Pinnable) -> tuple[str, str]:
    result = trial.result
    if result is None:
        raise BadOptions(
            "this trial was never parsed, so there is nothing to pin", got=trial.trial_id
        )
    protocol = str(result.protocol)
    tools = json.loads(json.dumps([t.to_dict() for t in result.tools]))
    options = changed_options(result)
    choice = trial.levels.get("tool_choice", "auto")
    name = _test_name(trial.case_id, [result.raw, protocol, tools, options, choice])

    calls = [(call.name, call.status, call.arguments_json) for call in result.calls]
    arguments = [
        text_of(result.raw),
        repr(protocol),
        literal_of(tools),
        f"calls={literal_of(calls)}",
    ]
    # What is as it is by default is not said, so that a test shows what is special of it.
    if options:
        arguments.append(f"options={literal_of(options)}")
    if choice != "auto":
        arguments.append(f"tool_choice={choice!r}")

    body = "".join(f"        {argument},\n" for argument in arguments)
    source = f"def {name}():\n    # {_comment(trial)}\n    assert_parses(\n{body}    )\n"
    return name, source


def _test_name(case_id: str, subject: list[Any]) -> str:
    # Equal subjects give equal names, wherever the test is written.
    text = json.dumps(subject, sort_keys=True, default=str)
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    slug = re.sub(r"[^a-z0-9]+", "_", case_id.lower()).strip("_")[:_LONGEST_SLUG]
    return f"test_{slug or 'answer'}_{digest}"


def _comment(trial: Pinnable) -> str:
    # In ASCII on one line: a case id may contain anything.
    outcome = trial.outcome or "not judged"
    text = f"case {trial.case_id!r}, model {trial.model!r}, {outcome}"
    return ascii(text.replace("\\", "/"))[1:-1]


def changed_options(result: ParseResult) -> dict[str, Any]:
    """Return the options that differ from their defaults, by name."""
    default = DEFAULT_OPTIONS.to_dict()
    options = result.options.to_dict()
    return {name: value for name, value in options.items() if default.get(name) != value}


def text_of(raw: str) -> str:
    """Return a text as Python literals, one a line of it, in pieces that fit the page.

    >>> print(text_of("one\\ntwo"))
    (
                'one\\n'
                'two'
            )
    """
    parts: list[str] = []
    for line in raw.splitlines(keepends=True):
        parts += (line[start : start + _WIDTH] for start in range(0, len(line), _WIDTH))

    if len(parts) <= 1:
        return ascii(raw)
    inner = "".join(f"            {part!a}\n" for part in parts)
    return f"(\n{inner}        )"


def literal_of(value: Any) -> str:
    """Return a JSON-like value as Python, laid out for an argument."""
    return pprint.pformat(value, width=_WIDTH, sort_dicts=False).replace("\n", "\n        ")
