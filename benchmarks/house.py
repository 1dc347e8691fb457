"""What the code weighs, and how far one small job goes through it:

python benchmarks/house.py [NAME=FOLDER ...] [--rooms]

One column a package (this one by default). `--rooms` adds the weight of each room. The hops of
this package's own jobs are counted on their second run: functions called and files entered. Of this
package the scope comes first: core, extensions and tests apart, scripts and style sheets counted.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from radon.complexity import cc_visit

ROOT = Path(__file__).resolve().parent.parent / "toolparse_lab"
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass
class Weight:
    """What was counted in some files."""

    files: int = 0
    lines: int = 0
    code: int = 0
    docstrings: int = 0
    private_docstrings: int = 0
    comments: int = 0
    functions: int = 0
    private: int = 0
    used_once: int = 0
    exceptions: int = 0
    longest: int = 0
    complexity: int = 0
    function_lines: int = 0
    most_complex: tuple[int, str] = (0, "")

    def add(self, path: Path) -> None:
        source = path.read_text("utf-8", errors="ignore")
        lines = source.splitlines()
        tree = ast.parse(source)
        told = docstring_lines(tree)
        self.files += 1
        self.lines += len(lines)
        self.longest = max(self.longest, len(lines))
        self.docstrings += sum(told.values())
        self.private_docstrings += sum(
            size for node, size in told.items() if is_private(getattr(node, "name", ""))
        )
        self.comments += comment_lines(source)
        blank = sum(1 for line in lines if not line.strip())
        self.code += max(len(lines) - blank - sum(told.values()) - comment_lines(source), 0)
        uses = Counter(re.findall(r"\b_\w+", source))
        for node in ast.walk(tree):
            if isinstance(node, FUNCTIONS):
                self.functions += 1
                if is_private(node.name):
                    self.private += 1
                    self.used_once += uses[node.name] == 2  # its definition and its one use
            if isinstance(node, ast.ClassDef):
                self.exceptions += is_exception(node)
        for block in functions_of(source):
            self.complexity += block.complexity
            self.function_lines += block.endline - block.lineno + 1
            place = f"{path.name}:{block.name}"
            self.most_complex = max(self.most_complex, (block.complexity, place))

    def rows(self) -> dict[str, str]:
        """Figure -> its text."""
        lines, code = max(self.lines, 1), max(self.code, 1)
        return {
            "lines": f"{self.lines:,}",
            "code lines": f"{self.code:,}",
            "files": f"{self.files:,}",
            "longest file": f"{self.longest:,}",
            "docstrings, share of lines": f"{100 * self.docstrings / lines:.0f} %",
            "comments, share of lines": f"{100 * self.comments / lines:.0f} %",
            "lines of private docstrings": f"{self.private_docstrings:,}",
            "private functions, share of all": f"{100 * self.private / self.functions:.0f} %",
            "private functions used once": f"{self.used_once:,}",
            "the same, per 1,000 code lines": f"{1000 * self.used_once / code:.1f}",
            "exception classes": f"{self.exceptions}",
            "complexity per function line": f"{self.complexity / max(self.function_lines, 1):.2f}",
            "most complex function": f"{self.most_complex[0]} ({self.most_complex[1]})",
        }


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def is_exception(node: ast.ClassDef) -> bool:
    bases = " ".join(map(ast.unparse, node.bases))
    return bool(re.search(r"Error|Exception|Bad[A-Z]|Missing|Unknown|Refused", bases))


def docstring_lines(tree: ast.AST) -> dict[ast.AST, int]:
    """Node -> lines of its docstring, strings under an assignment included."""
    told: dict[ast.AST, int] = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, *DEFINITIONS)):
            texts = [c for c in node.body if isinstance(c, ast.Expr) and is_text(c.value)]
            told[node] = sum((c.end_lineno or c.lineno) - c.lineno + 1 for c in texts)
    return told


def is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def comment_lines(source: str) -> int:
    """Lines that hold nothing but a comment."""
    lines = source.splitlines()
    return sum(
        token.type == tokenize.COMMENT and lines[token.start[0] - 1].lstrip().startswith("#")
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
    )


def functions_of(source: str) -> Iterator[Any]:
    """Every function and method as radon counts them."""
    for block in cc_visit(source):
        if type(block).__name__ == "Function":
            if not block.is_method:
                yield block
        else:
            yield from block.methods


def files_of(root: Path) -> list[Path]:
    """The Python files of a package, tests left out."""
    return [
        path
        for path in sorted(root.rglob("*.py"))
        if not {"test", "tests"} & set(path.relative_to(root).parts)
    ]


def weigh(files: list[Path]) -> Weight:
    weight = Weight()
    for path in files:
        weight.add(path)
    return weight


def hops(job: Callable[[], object]) -> tuple[int, int]:
    """(functions, files) of ours that a job enters on its third run: a format is learnt in two."""
    job()
    job()
    functions: set[tuple[str, int]] = set()

    def watch(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(ROOT)):
            functions.add((code.co_filename, code.co_firstlineno))

    sys.setprofile(watch)
    try:
        job()
    finally:
        sys.setprofile(None)
    return len(functions), len({file for file, _ in functions})


def jobs() -> dict[str, Callable[[], object]]:
    """Four small jobs of everyday use."""
    import toolparse_lab as tp
    from toolparse_lab.evals.reports.figures.report import report
    from toolparse_lab.integrations import litellm_bridge

    kinds = {"city": {"type": "string"}, "days": {"type": "integer"}}
    tools = [{"name": "weather", "parameters": {"type": "object", "properties": kinds}}]
    clean = '<tool_call>{"name": "weather", "arguments": {"city": "Oslo", "days": 3}}</tool_call>'
    damaged = clean.replace('"Oslo"', "'Oslo'").replace("3}", '"3",}')
    frame = (
        tp.Lab().ingest([{"raw": clean, "case_id": "1"}], protocol="hermes", tools=tools).frame()
    )
    stream = litellm_bridge.completion(
        model="openai/none", messages=[{"role": "user", "content": "Weather?"}], tools=tools,
        protocol="hermes", stream=True, mock_response="Let me think about it. " * 40,
    )  # fmt: skip
    return {
        "a clean hermes parse": lambda: tp.parse(clean, "hermes", tools),
        "a damaged hermes parse": lambda: tp.parse(damaged, "hermes", tools),
        "a chunk of prose through the bridge": lambda: next(stream),
        "a report from a frame": lambda: report(frame, by=["model"], policy="safe").html(),
    }


def scope() -> dict[str, str]:
    """Return the lines and files of core, extensions and tests; the verbs and public names."""
    import toolparse_lab as tp
    from toolparse_lab.cli.verbs import GROUPS, verbs

    every = [p for s in ("*.py", "*.js", "*.css") for p in sorted(ROOT.rglob(s))]
    plugged = [p for p in every if p.is_relative_to(ROOT / "extensions")]
    core = [p for p in every if p not in plugged]
    tests = sorted((ROOT.parent / "tests").rglob("*.py"))
    in_core = sum(map(len, GROUPS.values()))
    return {
        "core, lines of Python, JS and CSS": f"{sum(map(lines_of, core)):,}",
        "code lines of it": f"{sum(map(code_lines, core)):,}",
        "files of it": f"{len(core)}",
        "extensions, lines": f"{sum(map(lines_of, plugged)):,}",
        "tests, lines": f"{sum(map(lines_of, tests)):,}",
        "verbs of the core, of all": f"{in_core}, {len(verbs())}",
        "public names": f"{len(tp.__all__)}",
    }


def lines_of(path: Path) -> int:
    return len(path.read_text("utf-8").splitlines())


def code_lines(path: Path) -> int:
    """Lines that are neither blank, nor comment, nor docstring."""
    source = path.read_text("utf-8")
    if path.suffix != ".py":
        bare = re.sub(r"/\*.*?\*/", "", source, flags=re.DOTALL)
        return sum(1 for x in bare.splitlines() if x.strip() and not x.lstrip().startswith("//"))
    blank = sum(1 for line in source.splitlines() if not line.strip())
    told = sum(docstring_lines(ast.parse(source)).values())
    return lines_of(path) - blank - told - comment_lines(source)


def write_table(columns: dict[str, dict[str, str]]) -> str:
    """The columns as Markdown."""
    figures = {name: None for column in columns.values() for name in column}
    rows = [(name, *(column.get(name, "–") for column in columns.values())) for name in figures]
    head = [("", *columns), ("---",) * (len(columns) + 1)]
    return "\n".join("| " + " | ".join(row) + " |" for row in (*head, *rows))


def main(arguments: list[str]) -> int:
    named = [a.partition("=") for a in arguments if a != "--rooms"]
    roots = {name: Path(folder) for name, _, folder in named} or {ROOT.name: ROOT}
    columns = {name: weigh(files_of(root)).rows() for name, root in roots.items()}
    if not named:
        sys.path.insert(0, str(ROOT.parent))
        print(write_table({"scope": scope()}), end="\n\n")
        for name, job in jobs().items():
            functions, files = hops(job)
            columns[ROOT.name][f"{name}: functions / files"] = f"{functions} / {files}"
    print(write_table(columns))
    if "--rooms" in arguments:
        for root in roots.values():
            rooms = sorted(path for path in root.iterdir() if path.is_dir() and files_of(path))
            print("\n" + write_table({room.name: weigh(files_of(room)).rows() for room in rooms}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
