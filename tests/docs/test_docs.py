"""What is written about the code is true of it: generated pages, ids, docstrings, and every example
runs.

A Python block of a Markdown page is run, all blocks of a page one after the other. A text block
behind it is what it prints. A block marked `server` (Python, or bash) runs against a mock of the
endpoint that the page names. One marked `no-run: reason` does not run. A comment that begins with `setup` is code
that the reader of the page has and the test has not, such as cases.
"""

from __future__ import annotations

import ast
import doctest
import importlib
import importlib.util
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest
from pathlib import Path
from types import ModuleType

import pytest

import toolparse_lab
from scripts import format_tables, generate
from tests.mock_openai import OneAnswer
from tests.mutants import MUTANTS, Mutant
from tests.tables import asked_of
from toolparse_lab.core.rules import CODES, RULES

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "toolparse_lab"
MODULES = sorted(PACKAGE.rglob("*.py"))
WRITTEN = (
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    ROOT / "datasets" / "README.md",
)
# The page of an extension that was taken out is left out too.
PAGES = [
    page
    for page in (*WRITTEN, *sorted((ROOT / "docs").rglob("*.md")))
    if page.parent.name != "extensions" or (PACKAGE / "extensions" / page.stem).is_dir()
]


def id_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


# generated pages

RULES_PAGE = "reference/rules.md"


@pytest.mark.parametrize("page", generate.PAGES)
def test_generated_pages_are_up_to_date(page: str) -> None:
    assert (generate.DOCS / page).read_text("utf-8") == generate.PAGES[page](), "run `make docs`"


def test_a_page_out_of_date_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generate, "DOCS", tmp_path)
    monkeypatch.setattr(generate, "PAGES", {page: generate.PAGES[page] for page in [RULES_PAGE]})
    assert generate.outdated() == list(generate.PAGES)
    assert generate.main(["--check"]) == 1
    assert generate.main([]) == 0
    assert generate.main(["--check"]) == 0
    page = tmp_path / RULES_PAGE
    page.write_text(page.read_text("utf-8").replace("rjson", "json"), "utf-8")
    assert generate.main(["--check"]) == 1
    assert generate.main(["--no-such-option"]) == 2


# ids

PREFIXES = {i.partition(".")[0] for i in (*RULES, *CODES)}
ID = re.compile(rf"(?:{'|'.join(sorted(PREFIXES))})\.[a-z][a-z0-9-]*")


def ids_in(source: str) -> set[str]:
    """Every text constant that looks like an id of a rule or a code."""
    constants = (n.value for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Constant))
    return {c for c in constants if isinstance(c, str) and ID.fullmatch(c)}


@cache
def used_ids() -> set[str]:
    sources = (p.read_text("utf-8") for p in MODULES if p != PACKAGE / "core/rules.py")
    return set().union(*map(ids_in, sources))


@pytest.mark.slow
def test_every_registered_id_is_used() -> None:
    unused = (RULES.keys() | CODES.keys()) - used_ids()
    assert not unused, "no code applies it: add the edit or step, or delete the rule"


def test_an_unregistered_id_would_be_found() -> None:
    assert ids_in("Problem('scan', 'call.of-nature', 'error', 'see call.truncated')") == {
        "call.of-nature"
    }


def test_ids_have_one_meaning_and_a_sentence() -> None:
    assert RULES.keys() & CODES.keys() == set()
    sentences = {i: r.sentence for i, r in RULES.items()} | {
        i: c.sentence for i, c in CODES.items()
    }
    for i, sentence in sentences.items():
        assert ID.fullmatch(i)
        assert re.fullmatch(r"\S.*\S\.", sentence), i
    assert len(set(sentences.values())) == len(sentences)


# docstrings and doctests


def test_every_public_name_says_what_it_is() -> None:
    silent = []
    for name in toolparse_lab.__all__:
        value = getattr(toolparse_lab, name)
        doc = getattr(value, "__doc__", None)
        # A dataclass without a docstring gets its signature as one.
        if callable(value) and (not doc or doc.startswith(f"{name}(")):
            silent.append(name)
    assert silent == []


def with_examples() -> list[str]:
    """The modules that hold doctests, found without importing them."""
    names = [
        ".".join(p.relative_to(ROOT).with_suffix("").parts)
        for p in MODULES
        if re.search(r"^\s*>>> ", p.read_text("utf-8"), re.MULTILINE)
    ]
    return [n.removesuffix(".__init__") for n in names]


@pytest.mark.parametrize("name", with_examples())
def test_examples_in_docstrings(name: str) -> None:
    module = importlib.import_module(name)
    finder = doctest.DocTestFinder(exclude_empty=True)
    tests = [t for t in finder.find(module, name) if t.examples]
    assert tests
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    said: list[str] = []
    for test in tests:
        runner.run(test, out=said.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(said)


# pages


@dataclass(frozen=True)
class Block:
    """A Python block of a page: its source, the line it begins on (1-based), whether it is run,
    what it prints, and whether it asks a server."""

    source: str
    line: int
    run: bool
    prints: str = ""
    server: bool = False


_FENCE = re.compile(r"^```(\S*)[ \t]*([^\n]*)\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
_SHELL_RUN = "import subprocess; subprocess.run(['bash', '-ec', {!r}], check=True)"
_SETUP = re.compile(r"^<!-- setup\n(.*?)^-->$", re.MULTILINE | re.DOTALL)


def blocks_of(text: str) -> list[Block]:
    """The Python blocks of a page, in order."""
    out = []
    fences = list(_FENCE.finditer(text))
    for m, after in zip_longest(fences, fences[1:]):
        shown = (
            after is not None and after[1] == "text" and not text[m.end() : after.start()].strip()
        )
        prints = after[3] if after and shown else ""
        line = text.count("\n", 0, m.start(3)) + 1
        if m[1] in ("bash", "sh") and m[2] == "server":
            out.append(Block(_SHELL_RUN.format(m[3]), line, True, prints, server=True))
        if m[1] == "python":
            run = not m[2].startswith("no-run")
            out.append(Block(m[3], line, run, prints, m[2] == "server"))
    out += [Block(m[1], text.count("\n", 0, m.start(1)) + 1, True) for m in _SETUP.finditer(text)]
    return sorted(out, key=lambda block: block.line)


def program_of(text: str) -> str:
    """The blocks of a page as one program, each on the line where it stands on the page."""
    lines: list[str] = []
    for block in blocks_of(text):
        if block.run:
            lines += [""] * (block.line - 1 - len(lines))
            lines += block.source.splitlines()
    return "\n".join(lines) + "\n"


# What is imported stays: looking at it again, and once more at the end, is a third of a page's time.
_HEAD = "import atexit, gc; gc.set_threshold(20_000); atexit.register(gc.freeze)\n"
_ENDPOINT = re.compile(r"http://(?:localhost|127\.0\.0\.1):(?:8000|11434)/v1")


@contextmanager
def with_servers(program: str) -> Iterator[str]:
    """The program with the addresses of a mock endpoint and of a free port for those of a page."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    with OneAnswer() as mock:
        yield _ENDPOINT.sub(mock.url, program).replace("8080", port)


def run_page(text: str, folder: Path, *, shares: bool = True) -> subprocess.CompletedProcess[str]:
    """Runs a page's program in `folder`, where its own files go. shares: the project's datasets are
    there."""
    for shared in ("datasets", "tests") if shares else ():
        (folder / shared).symlink_to(ROOT / shared)
    program = folder / "page.py"
    asks = any(block.server for block in blocks_of(text))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error"}
    # What a block's command prints stands between the prints of the blocks around it.
    environment["PYTHONUNBUFFERED"] = "1"
    if asks:
        # litellm and what it brings warn of themselves, and it would fetch prices.
        environment |= {"PYTHONWARNINGS": "", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    with with_servers(program_of(text)) if asks else nullcontext(program_of(text)) as source:
        # No page begins with a block, so that its first line is free.
        program.write_text(_HEAD + source.removeprefix("\n"), "utf-8")
        return subprocess.run(
            [sys.executable, program.name], cwd=folder, env=environment, capture_output=True,
            text=True, check=False, timeout=300,
        )  # fmt: skip


@asked_of("page", PAGES, ids=id_of)
def test_a_block_that_does_not_run_says_why(page: Path) -> None:
    marks = [m[2] for m in _FENCE.finditer(page.read_text("utf-8")) if m[1] == "python"]
    assert [m for m in marks if not re.fullmatch(r"|server|no-run: \S+( \S+){2,}", m)] == []


def test_the_readme_is_there() -> None:
    readme = ROOT / "README.md"
    assert readme.exists()
    assert any(b.run for b in blocks_of(readme.read_text("utf-8"))), "no example that is run"


# Pages whose examples ask a model, start servers or simulate: tests ask the same of the library by day.
_AT_NIGHT = (
    "app.md", "frames.md", "running.md", "serve.md", "study.md", "templates.md", "type_safety.md",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(p, marks=[pytest.mark.exhaustive] if p.name in _AT_NIGHT else [])
        for p in PAGES
        if any(b.run for b in blocks_of(p.read_text("utf-8")))
    ],
    ids=id_of,
)
def test_the_examples_of_a_page_run(page: Path, tmp_path: Path) -> None:
    text = page.read_text("utf-8")
    is_readme = page.name == "README.md" and page.parent == ROOT
    assert not (is_readme and _SETUP.search(text)), "a reader does not see it"
    # The README runs as printed, in an empty folder.
    done = run_page(text, tmp_path, shares=not is_readme)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    at = 0
    for block in blocks_of(text):
        if block.run and block.prints:
            found = done.stdout.find(block.prints, at)
            assert found >= 0, (
                f"line {block.line} does not print what the page says, but: {done.stdout[at:]}"
            )
            at = found + len(block.prints)


def test_a_broken_example_is_noticed_and_a_marked_one_is_not(tmp_path: Path) -> None:
    page = (
        "# A\n\n```python\nx = 1\nprint(x)\n```\n\n```text\n1\n```\n\n```bash\nfalse\n```\n"
        "```python no-run: it fails\n1 / 0\n```\n\n"
    )
    assert [(b.line, b.run, b.prints) for b in blocks_of(page)] == [
        (4, True, "1\n"),
        (16, False, ""),
    ]
    (tmp_path / "a").mkdir()
    assert run_page(page, tmp_path / "a").returncode == 0
    (tmp_path / "b").mkdir()
    done = run_page(page + "```python\nassert x == 2\n```\n", tmp_path / "b")
    assert done.returncode == 1
    assert "line 20" in done.stderr


_SHELL = re.compile(
    r"^```(?:bash|sh|console)\n(.*?)^```|`(make [^`\n]+)`", re.MULTILINE | re.DOTALL
)


@asked_of("page", PAGES, ids=id_of)
def test_make_targets_that_a_page_names_exist(page: Path) -> None:
    targets = set(
        re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    )
    shown = "\n".join(a or b for a, b in _SHELL.findall(page.read_text("utf-8")))
    assert set(re.findall(r"\bmake ([a-z][a-z-]*)", shown)) <= targets


_LINK = re.compile(r"\]\((?!https?://|#|mailto:)([^)#\s]+)(?:#[^)]*)?\)")


@asked_of("page", PAGES, ids=id_of)
def test_links_to_files_lead_somewhere(page: Path) -> None:
    for target in _LINK.findall(page.read_text("utf-8")):
        assert (page.parent / target).exists(), target


def test_the_two_calls_shown_for_a_format_are_one_answer_in_it() -> None:
    for name, protocol in toolparse_lab.protocols().items():
        text = format_tables.two_calls(protocol)
        calls = toolparse_lab.parse(text, name, [format_tables.TOOL]).calls
        wanted = list(format_tables.CALLS)[:2]
        assert [call.arguments for call in calls if call.ok] == wanted, name


# The README's figures are those of the shipped recording. `test_docs.py` runs its code, that
# with a server included.


TEXT = (ROOT / "README.md").read_text("utf-8")


def _readme_module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("readme", ROOT / "scripts" / "readme.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_demo_block_is_what_the_recording_gives() -> None:
    readme = _readme_module()
    assert readme.with_block(TEXT, readme.demo_block()) == TEXT, "run: python scripts/readme.py"


# Every place and test that `type_safety_statements.md` names is there.


def test_every_named_place_and_test_exists() -> None:
    text = (ROOT / "tests" / "type_safety_statements.md").read_text("utf-8")
    table = [line for line in text.splitlines() if line.startswith("| ")][1:]
    assert len(table) >= 61
    for line in table:
        _, place, test, _ = (cell.strip() for cell in line.strip("|").split(" |", 3))
        assert (ROOT / place.strip("`")).is_file(), line
        file, name = test.strip("`").split("::")
        body = (ROOT / file).read_text("utf-8")
        assert re.search(rf"^(async )?def {name}\(", body, re.MULTILINE), line


# The planted bugs: each line that one changes is still there, once, so that none rots unseen
# until the night.


@asked_of("mutant", MUTANTS, ids=lambda m: m.about)
def test_the_line_is_there_once(mutant: Mutant) -> None:
    assert (ROOT / "toolparse_lab" / mutant.file).read_text("utf-8").count(mutant.old) == 1
