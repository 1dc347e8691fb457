"""The recipes of docs/extensions/serve.md, each run in an environment of its own against a mock.

`python -m benchmarks.frameworks` builds the environments (with uv where it is installed, else with
venv and pip), runs every recipe for every cell, and prints the table framework x cell.
`--only NAME` chooses, `--write` puts the table into the page, `--folder` says where the
environments are kept. Exit code 1 where a cell is neither ok nor a limit that is named.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tests.mock_openai import MockOpenAI  # noqa: E402
from tests.replay_server import Answer, Asked  # noqa: E402
from toolparse_lab.extensions.serve import serve  # noqa: E402

RECIPES = Path(__file__).parent / "recipes"
FOLDER = ROOT / ".venv-frameworks"
_PATIENCE = 300  # seconds for one recipe


def _module(name: str) -> Any:
    """A module of the recipes' folder, which is no package."""
    spec = importlib.util.spec_from_file_location(name, RECIPES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SHARED = _module("cells")
SCRIPTS: Mapping[str, list[str]] = SHARED.SCRIPTS
CELLS = tuple(SHARED.EXPECTED)


@dataclass(frozen=True)
class Recipe:
    """A framework: its packages, the file that runs its block, and its ways."""

    name: str
    file: str
    packages: tuple[str, ...]
    ways: tuple[str, ...] = ("gateway",)
    on_node: bool = False  # its packages are npm's

    @property
    def folder(self) -> str:
        """The name of its environment."""
        return self.file.removesuffix(".py")


BOTH = ("gateway", "litellm")
FRAMEWORKS = (
    Recipe("openai client", "openai_client.py", ("openai",)),
    Recipe("openai-agents", "openai_agents.py", ("openai-agents[litellm]",), BOTH),
    Recipe("pydantic-ai", "pydantic_ai_agent.py", ("pydantic-ai-slim[openai]",)),
    Recipe(
        "LangChain", "langchain_agent.py",
        ("langchain", "langchain-openai", "langchain-litellm"), BOTH,
    ),
    Recipe("instructor", "instructor_client.py", ("instructor[litellm]",), BOTH),
    Recipe("smolagents", "smolagents_agent.py", ("smolagents[openai,litellm]",), BOTH),
    Recipe("inspect-ai", "inspect_model.py", ("inspect-ai", "openai")),
    Recipe("CrewAI", "crewai_agent.py", ("crewai[litellm]",), BOTH),
    Recipe("promptfoo", "promptfoo_eval.py", ("promptfoo",), on_node=True),
    Recipe("dspy", "dspy_predict.py", ("dspy",), ("litellm",)),
)  # fmt: skip


class ScriptedMock(MockOpenAI):
    """Says what the script of a model says, by the number of answers that the request holds."""

    def chat(self, request: Asked, body: dict[str, Any]) -> Answer:
        script = SCRIPTS[str(body["model"]).replace("+", " ")]
        turn = sum(message["role"] == "assistant" for message in body["messages"])
        # Some frameworks keep no answer whose tool failed.
        told = any("no such city" in str(message["content"]) for message in body["messages"])
        turn = max(turn, int(told))
        text = json.dumps(script[min(turn, len(script) - 1)])
        spoken = {"role": "user", "content": f"escaped say={text}"}
        return super().chat(request, {**body, "messages": [spoken]})


def environment(recipe: Recipe, folder: Path) -> Path:
    """The interpreter of a recipe's environment, which is made where it is missing."""
    place = folder / recipe.folder
    python = place / "bin" / "python"
    stamp, wanted = place / ".packages", "\n".join(recipe.packages)
    if stamp.exists() and stamp.read_text("utf-8") == wanted:
        return Path(sys.executable) if recipe.on_node else python
    if recipe.on_node:
        _quietly(
            ["npm", "install", "--silent", "--no-fund", "--prefix", str(place), *wanted.split()]
        )
        stamp.write_text(wanted, "utf-8")
        return Path(sys.executable)
    uv = shutil.which("uv")
    packages = ["--editable", str(ROOT), *recipe.packages]
    if uv:
        _quietly([uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(place)])
        _quietly([uv, "pip", "install", "--quiet", "--python", str(python), *packages])
    else:
        _quietly([sys.executable, "-m", "venv", "--clear", str(place)])
        _quietly([str(python), "-m", "pip", "install", "--quiet", "--no-compile", *packages])
    stamp.write_text(wanted, "utf-8")
    return python


def _quietly(command: list[str]) -> None:
    """Run a command; raise RuntimeError with its output where it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}:\n{done.stdout}{done.stderr}")


def cells_of(recipe: Recipe, way: str, python: Path, folder: Path) -> dict[str, str]:
    """Cell -> what came of it. folder: where the environments are."""
    on_node = folder / recipe.folder / "node_modules" / ".bin" / recipe.packages[0]
    with ScriptedMock(chunk_size=6) as mock, serve(mock.url) as gateway:
        done = subprocess.run(
            [python, RECIPES / recipe.file, f"--{way}"],
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "RECIPE_GATEWAY": gateway.url,
                "RECIPE_UPSTREAM": mock.url,
                "RECIPE_PROMPTFOO": str(on_node),
                "LITELLM_LOCAL_MODEL_COST_MAP": "True",
                "OPENAI_AGENTS_DISABLE_TRACING": "1",
                "CREWAI_DISABLE_TELEMETRY": "true",
                "CREWAI_TRACING_ENABLED": "false",
                "OTEL_SDK_DISABLED": "true",
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=_PATIENCE,
        )
    if os.environ.get("RECIPE_TRACE"):
        print(done.stdout, done.stderr)
    # Some frameworks have last words of their own.
    for line in reversed(done.stdout.splitlines()):
        if line.startswith(SHARED.MARK):
            found: dict[str, str] = json.loads(line.removeprefix(SHARED.MARK))
            return found
    return dict.fromkeys(CELLS, f"it ended with {done.returncode}: {done.stderr[-300:]}")


def versions(recipe: Recipe, python: Path, folder: Path) -> str:
    """The versions of the packages that matter in an environment."""
    if recipe.on_node:
        name = recipe.packages[0]
        file = folder / recipe.folder / "node_modules" / name / "package.json"
        return f"{name} {json.loads(file.read_text('utf-8'))['version']}"
    name = recipe.packages[0].partition("[")[0]
    code = (
        "import importlib.metadata as m\n"
        f"for n in dict.fromkeys(({name!r}, 'litellm', 'openai')):\n"
        "    try: print(n, m.version(n))\n"
        "    except m.PackageNotFoundError: pass\n"
    )
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return ", ".join(done.stdout.split("\n")[:-1])


def chosen(only: list[str] | None) -> Iterator[Recipe]:
    """The recipes of these names, all where there is none."""
    for recipe in FRAMEWORKS:
        if not only or recipe.name in only or recipe.folder in only:
            yield recipe


def rows(only: list[str] | None, folder: Path) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Framework with its way, versions, and its cells."""
    for recipe in chosen(only):
        start = time.monotonic()
        python = environment(recipe, folder)
        print(f"# {recipe.name}: set up in {time.monotonic() - start:.0f} s", file=sys.stderr)
        for way in recipe.ways:
            start = time.monotonic()
            found = cells_of(recipe, way, python, folder)
            print(f"#   {way}: {time.monotonic() - start:.0f} s", file=sys.stderr)
            yield f"{recipe.name}, {way}", versions(recipe, python, folder), found


def table_of(results: list[tuple[str, str, dict[str, str]]]) -> list[str]:
    """The results as a Markdown table, and under it what is a limit."""
    lines = [f"| framework | versions | {' | '.join(CELLS)} |", "|---" * (len(CELLS) + 2) + "|"]
    limits: dict[str, dict[str, list[str]]] = {}
    for name, of_packages, found in results:
        words = []
        for cell in CELLS:
            said = found.get(cell, "nothing")
            kind, _, text = said.partition(": ")
            words.append(kind if kind in ("ok", "limit") else "**fails**")
            if kind == "limit":
                limits.setdefault(name, {}).setdefault(text, []).append(cell)
        lines.append(f"| {name} | {of_packages} | {' | '.join(words)} |")
    lines.append("")
    for name, texts in limits.items():
        said = "; ".join(f"{' / '.join(cells)}: {text}" for text, cells in texts.items())
        lines.append(f"- {name}: {said}.")
    return lines


def main() -> int:
    """Run the recipes and print their table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", help="a framework; may be said several times")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where environments are kept")
    parser.add_argument("--set-up", action="store_true", help="only make the environments")
    parser.add_argument("--write", action="store_true", help="put the table into the page")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.set_up:
        for recipe in chosen(options.only):
            environment(recipe, options.folder)
        return 0
    results = list(rows(options.only, options.folder))
    failures = [
        f"{name}, {cell}: {said}"
        for name, _, found in results
        for cell, said in found.items()
        if said != "ok" and not said.startswith("limit: ")
    ]
    print("\n".join(table_of(results)))
    print("\n".join(failures), file=sys.stderr)
    if options.write:
        page = SHARED.PAGE.read_text("utf-8")
        head, mark, rest = page.partition("<!-- measured: frameworks -->\n")
        tail = rest.partition("<!-- end -->")[2]
        lines = "\n".join(table_of(results))
        SHARED.PAGE.write_text(f"{head}{mark}{lines}\n<!-- end -->{tail}", "utf-8")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
