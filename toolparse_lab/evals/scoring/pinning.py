"""Trials as tests: one function of a pytest file for each, which pins what is read from a recorded answer."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import pprint
import re
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import BadOptions, StoreError

if TYPE_CHECKING:
    from ...types import ParseResult
    from .trial import Trial

HEAD = '"""Pins how recorded answers are read; see toolparse_lab.testing."""\n'
IMPORT = "from toolparse_lab.testing import assert_parses"
_WIDTH = 100


def write_tests(trials: Iterable[Trial], path: str | Path) -> Path:
    """Writes trials as tests into a file, or adds them to it; what stands there already stays as it is.

    The same answer under the same reading has one test: writing it again changes nothing, and replaces what it pinned
    where it reads otherwise now. Raises BadOptions for a trial that was never parsed and for a file that is no Python,
    StoreError where the file cannot be written.
    """
    file = Path(path)
    blocks = dict(_block(trial) for trial in trials)
    try:
        text = file.read_text("utf-8") if file.exists() else HEAD
    except (OSError, UnicodeDecodeError) as e:
        raise StoreError("the file of tests cannot be read", got=f"{file}: {e}") from None
    made = _joined(text, blocks, file)
    compile(made, str(file), "exec")
    if not file.exists() or made != text:
        _write(file, made)
    return file


def _write(file: Path, text: str) -> None:
    """The whole file, or what was there."""
    temporary = ""
    try:
        handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as f:
            f.write(text)
        Path(temporary).chmod(file.stat().st_mode & 0o777 if file.exists() else 0o644)
        Path(temporary).replace(file)
    except OSError as e:
        with suppress(OSError):
            Path(temporary).unlink()
        raise StoreError("the test cannot be written", got=f"{file}: {e.strerror}") from None


def _joined(text: str, blocks: dict[str, str], file: Path) -> str:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as e:
        raise BadOptions("tests are added to a file of Python", got=f"{file}: {e}", hint="name another file") from None
    lines = re.findall(r"[^\n]*\n|[^\n]+", text)  # as Python counts them: a form feed ends none
    there = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}
    for name in sorted(blocks.keys() & there.keys(), key=lambda n: -there[n].lineno):
        node = there[name]
        if ast.dump(node) == ast.dump(ast.parse(blocks[name]).body[0]):
            continue  # as it was pinned, if laid out by another hand
        lines[node.lineno - 1 : node.end_lineno] = [blocks[name]]
    imported = any(
        isinstance(n, ast.ImportFrom)
        and n.module == "toolparse_lab.testing"
        and any(a.name == "assert_parses" for a in n.names)
        for n in tree.body
    )
    if not imported:
        at = _behind_head(tree)
        lines[at:at] = ([] if at == 0 else ["\n"]) + [f"{IMPORT}\n"]
    new = [f"\n\n{block}" for name, block in blocks.items() if name not in there]
    if new and lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    return "".join([*lines, *new])


def _behind_head(tree: ast.Module) -> int:
    """The number of lines of the docstring and the imports of the future, behind which other imports stand."""
    at = 0
    for i, node in enumerate(tree.body):
        docstring = i == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not docstring and not (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
            break
        at = node.end_lineno or at
    return at


def _block(trial: Trial) -> tuple[str, str]:
    """(name, source) of a trial's test."""
    result = trial.result
    if result is None:
        raise BadOptions("this trial was never parsed, so there is nothing to pin", got=trial.trial_id)
    protocol = str(result.protocol)
    tools = json.loads(json.dumps([t.to_dict() for t in result.tools]))
    options = _changed_options(result)
    choice = trial.levels.get("tool_choice", "auto")
    subject = json.dumps([result.raw, protocol, tools, options, choice], sort_keys=True, default=str)
    digest = hashlib.sha256(subject.encode()).hexdigest()[:8]
    slug = re.sub(r"[^a-z0-9]+", "_", trial.case_id.lower()).strip("_")[:60] or "answer"
    name = f"test_{slug}_{digest}"
    said = f"case {trial.case_id!r}, model {trial.model!r}, {trial.outcome or 'not judged'}".replace("\\", "/")
    arguments = [
        _text(result.raw),
        repr(protocol),
        _literal(tools),
        f"calls={_literal([(c.name, c.status, c.arguments_json) for c in result.calls])}",
        *([f"options={_literal(options)}"] if options else []),
        *([f"tool_choice={choice!r}"] if choice != "auto" else []),
    ]
    body = "".join(f"        {a},\n" for a in arguments)
    # The comment is ASCII on one line: a case id may hold anything.
    return name, f"def {name}():\n    # {ascii(said)[1:-1]}\n    assert_parses(\n{body}    )\n"


def _changed_options(result: ParseResult) -> dict[str, Any]:
    from ...types import DEFAULT_OPTIONS

    default = DEFAULT_OPTIONS.to_dict()
    return {k: v for k, v in result.options.to_dict().items() if default.get(k) != v}


def _text(raw: str) -> str:
    """A text as literals, one a line of it."""
    lines = raw.splitlines(keepends=True) or [""]
    parts = [line[at : at + _WIDTH] for line in lines for at in range(0, len(line), _WIDTH)] or [""]
    if len(parts) == 1:
        return ascii(parts[0])
    inner = "".join(f"            {part!a}\n" for part in parts)
    return f"(\n{inner}        )"


def _literal(value: Any) -> str:
    """A JSON-like value as Python, laid out."""
    return pprint.pformat(value, width=_WIDTH, sort_dicts=False).replace("\n", "\n        ")
