"""Build the documentation site into build/site: python scripts/site.py

The pages of docs/, the README, the notebooks and a reference page per public module are laid out in
build/pages; MkDocs then builds them offline, with a search, and fails on a broken link.

    python scripts/site.py            builds the site
    python scripts/site.py --pages    lays out the pages only

Needs the extra `docs`.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from scripts.commands import options_page  # noqa: E402 - it is found through the line above
from toolparse_lab.arguments.schema.validate import load_jsonschema  # noqa: E402 - as above
from toolparse_lab.runner.litellm_door import paused_collector  # noqa: E402 - as above

PAGES = ROOT / "build" / "pages"
SITE = ROOT / "build" / "site"

# Page of the site -> file of the checkout, for files outside docs/.
GUESTS = {
    "index.md": "README.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
    "security_policy.md": "SECURITY.md",
    "shipped_data.md": "datasets/README.md",
}
# Title of an API page -> the module whose public names it documents, in order of use.
API = {
    "toolparse_lab": "Everything under `import toolparse_lab as tp`",
    "toolparse_lab.core.errors": "Errors",
    "toolparse_lab.arguments.rjson": "Damaged JSON",
    "toolparse_lab.formats.rxml": "Damaged XML",
    "toolparse_lab.middleware": "The middleware",
    "toolparse_lab.integrations.litellm_bridge": "Tool calling for litellm",
    "toolparse_lab.middleware.correction": "Asking the model again",
    "toolparse_lab.middleware.plans": "Plans of several steps",
    "toolparse_lab.integrations.testing": "Tests of your own",
    "toolparse_lab.notebook": "Notebook views",
}
# Words after a fence's language are for our tests; the site would not know such a fence.
_INFO = re.compile(r"^([ \t]*```\w+)[ \t]+\S.*$", re.MULTILINE)
_LINK = re.compile(
    r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!https?:|#|mailto:)([^)\s#]+)(#[^)\s]*)?\)"
)


def lay_out() -> None:
    """Write every page of the site into build/pages, emptied first."""
    shutil.rmtree(PAGES, ignore_errors=True)
    PAGES.mkdir(parents=True)
    shutil.copytree(ROOT / "docs" / "images", PAGES / "images")
    shutil.copy(ROOT / "docs" / "site.css", PAGES / "site.css")
    for source in sorted((ROOT / "docs").rglob("*.md")):
        _write_page(source.relative_to(ROOT / "docs").as_posix(), source)
    for name, guest in GUESTS.items():
        _write_page(name, ROOT / guest)
    for notebook in sorted((ROOT / "notebooks").glob("*.ipynb")):
        _write_notebook(notebook)
    for module, title in API.items():
        _write_reference(module, title)
    # Here rather than in docs/: it repeats `toolparse VERB --help`.
    (PAGES / "api" / "commands.md").write_text(options_page(), "utf-8")
    (PAGES / "llms.txt").write_text(llms_text(), "utf-8")


def _write_page(name: str, source: Path) -> None:
    """Write a page whose links lead to pages of the site."""
    text = source.read_text("utf-8")
    folder = os.path.dirname(name)
    text = _LINK.sub(lambda match: _linked(match, source, folder), text)
    text = _INFO.sub(r"\1", text)
    (PAGES / folder).mkdir(exist_ok=True)
    (PAGES / name).write_text(text, "utf-8")


def _linked(match: re.Match[str], source: Path, folder: str = "") -> str:
    """Return a link as the site has it; the text alone where the site has no such page."""
    mark, label, path, anchor = match.groups()
    target = (source.parent / path).resolve()
    page = _page_of(target)
    return (
        f"{mark}[{label}]({os.path.relpath(page, folder or '.')}{anchor or ''})" if page else label
    )


def _page_of(target: Path) -> str | None:
    """Return the site's path of a file of the checkout, from the site's root; None for no page."""
    relative = target.relative_to(ROOT).as_posix()
    for name, source in GUESTS.items():
        if relative == source:
            return name
    if target.suffix == ".ipynb":
        return f"tutorials/{target.stem}.md"
    return relative.removeprefix("docs/") if relative.startswith("docs/") else None


def _write_notebook(notebook: Path) -> None:
    """Write a notebook with its output as a page; pictures are kept next to it."""
    load_jsonschema()  # in a fifth of the time that nbconvert's own import of it takes
    # nbconvert is slow to import, and `--check` of a link needs none of it.
    from nbconvert import MarkdownExporter

    exporter: Any = MarkdownExporter  # it has no types
    body, resources = exporter().from_filename(str(notebook))
    folder = PAGES / "tutorials"
    folder.mkdir(exist_ok=True)
    (folder / f"{notebook.stem}.md").write_text(body, "utf-8")
    for name, data in resources.get("outputs", {}).items():
        (folder / name).write_bytes(data)


def _write_reference(module: str, title: str) -> None:
    """Write the page of a module: each exported name with its signature and docstring."""
    names = exported(module)
    lines = [f"# {title}", "", f"`{module}`", ""]
    lines += [f"::: {module}.{name}\n" for name in names]
    folder = PAGES / "api"
    folder.mkdir(exist_ok=True)
    (folder / f"{module}.md").write_text("\n".join(lines), "utf-8")


def exported(module: str) -> list[str]:
    """Return the public classes and functions of a module: those it exports, else its own."""
    loaded = importlib.import_module(module)
    own = [name for name, x in vars(loaded).items() if getattr(x, "__module__", "") == module]
    names = getattr(loaded, "__all__", own)
    return [n for n in names if not n.startswith("_") and callable(getattr(loaded, n))]


def llms_text() -> str:
    """Return the page that tells a language model where to read: one line per page, with its
    title."""
    lines = ["# toolparse_lab", "", "> Turns the text of language models into exact tool calls,"]
    lines += ["> shows the origin of every argument, and measures how often it works.", ""]
    for page in sorted(PAGES.rglob("*.md")):
        first = page.read_text("utf-8").splitlines()
        title = next((line.lstrip("# ") for line in first if line.startswith("# ")), page.stem)
        lines.append(f"- [{title}]({page.relative_to(PAGES).as_posix()})")
    return "\n".join(lines) + "\n"


def build() -> int:
    """Build the site from the pages; returns MkDocs' exit code, 1 where a link is broken."""
    # A third of MkDocs' time would be the collector's, which finds next to nothing.
    program = "import gc; gc.set_threshold(100_000); from mkdocs.__main__ import cli; cli()"
    command = [sys.executable, "-c", program, "build", "--strict", "--quiet"]
    command += ["--config-file", str(ROOT / "mkdocs.yml")]
    # Its advertisement for a successor, which builds from the same file.
    quiet = {"NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, env={**os.environ, **quiet}).returncode  # noqa: S603 - our own command


def main(arguments: list[str]) -> int:
    """Lay out the pages and build the site."""
    if arguments not in ([], ["--pages"]):
        print(__doc__, file=sys.stderr)
        return 2
    # What is imported stays, and the collector would look at it again and again.
    with paused_collector():
        lay_out()
    if arguments:
        return 0
    code = build()
    if code == 0:
        print(f"built {SITE.relative_to(ROOT)}/index.html")
    return code


if __name__ == "__main__":
    atexit.register(gc.freeze)  # nor does it need a last look
    raise SystemExit(main(sys.argv[1:]))
