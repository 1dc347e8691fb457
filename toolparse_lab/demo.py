"""`toolparse demo`: the main job on the embedded model, small enough to watch: prompts, answers, parses, a report."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

from .evals.cases.shipped import example_cases
from .evals.scoring.trial import Trial
from .lab import Lab
from .plan import Plan
from .render import render_ansi
from .run import Run
from .runner.setup import local_model_path
from .runner.types import Model

MODEL = "toolparse-local/smollm2-135m"
ALIAS = "smollm2-135m"
PROTOCOLS = ("hermes", "morph_xml")
CASES = 10
MAX_TOKENS = 128
BUDGET = 150.0
NOTEBOOK = "01_quickstart.ipynb"


def demo_plan(lab: Lab, cases: int = CASES) -> Plan:
    """Embedded model × two protocols × free and grammar-constrained decoding."""
    chosen = example_cases(demo=True)[:cases]
    return lab.plan(
        chosen, {ALIAS: Model(MODEL)}, PROTOCOLS, decoding=["free", "grammar"], wording="brief", max_tokens=MAX_TOKENS
    )


def run_demo(
    out: str | Path = ".demo",
    *,
    budget: float = BUDGET,
    fresh: bool = False,
    color: bool | None = None,
    say: Callable[[str], None] = print,
) -> Run:
    """Runs the demo into a folder and says what it found.

    budget: seconds for the model; over it the run stops and the tables state their n. fresh: ask again what an
    earlier demo recorded. Raises MissingModelPackage where the embedded model is not installed.
    """
    started = time.monotonic()
    local_model_path()
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    color = sys.stdout.isatty() if color is None else color
    with Lab(folder / "runs.db") as lab:
        plan = demo_plan(lab)
        say(f"{plan}\n")
        run = lab.run(plan, deadline=budget, fresh=fresh)
        say(f"\n{run}")
        if run.summary is not None and run.summary.calls == 0 and run.summary.cached:
            say("Nothing was asked: every answer was recorded before. `toolparse demo --fresh` asks again.")
        report = run.report(title="Embedded model, two protocols, free and constrained decoding")
        say("\n" + report.text(shutil.get_terminal_size((100, 24)).columns))
        trial = telling_failure(run)
        if trial is not None and trial.result is not None:
            say(f"\nThe most telling answer: {trial.case_id}, {trial.arm}: {trial.score}")
            say(f"asked: {trial.case.input_text}\n")
            say(render_ansi(trial.result, color=color))
        page = report.save(folder / "report.html")
        notebook = _copy_notebook(folder)
        say(f"\nreport:   {page.resolve()}")
        if notebook is not None:
            say(f"notebook: {notebook.resolve()}   (jupyter lab {notebook})")
        say(f"store:    {(folder / 'runs.db').resolve()}")
        say(f"The demo took {time.monotonic() - started:.0f} s.")
        say("A 135M model shows how parsing works; it cannot show which protocol is best.")
    return run


def telling_failure(run: Run) -> Trial | None:
    """The failed trial that shows most: an attempt that could not be read, else the one that took most changes."""
    best: tuple[int, Trial] | None = None
    for trial in run.failures():
        result = trial.result
        if result is None or not result.calls:
            continue
        weight = sum(len(c.edits) * 3 + len(c.steps) * 2 + len(c.problems) for c in result.calls)
        if trial.outcome == "attempted_unparseable":
            weight += 20
        elif trial.outcome == "truncated":
            weight += 5
        if best is None or weight > best[0]:
            best = (weight, trial)
    return best[1] if best else None


def _copy_notebook(folder: Path) -> Path | None:
    """The quickstart beside the demo's own store, where the package was installed with its notebooks."""
    package = Path(__file__).resolve().parent
    for base in (package / "notebooks", package.parent / "notebooks"):
        source = base / NOTEBOOK
        if source.is_file():
            return Path(shutil.copyfile(source, folder / NOTEBOOK))
    return None
