"""The demo: the main job on the embedded model, small enough to watch.

Prompts, answers, parses and a report, of two protocols by free and by constrained decoding.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from ..evals.cases.collection import Cases
from ..evals.cases.shipped import example_cases, example_recording
from ..evals.scoring.trial import Trial
from ..exchange.types import Model
from ..experiment.plan import Plan
from ..experiment.run import Run
from ..lab import Lab
from ..render import render_ansi
from ..runner.local.setup import local_model_path

MODEL = "toolparse-local/smollm2-135m"
ALIAS = "smollm2-135m"
PROTOCOLS = ("hermes", "morph_xml")
CASES = 10
MAX_TOKENS = 128
BUDGET = 150.0
NOTEBOOK = "01_quickstart.ipynb"


def demo_plan(lab: Lab, cases: int = CASES) -> Plan:
    """Embedded model × two protocols × free and grammar-constrained decoding."""
    return _plan_of(lab, example_cases(demo=True)[:cases])


def _plan_of(lab: Lab, cases: Cases) -> Plan:
    """The plan of the demo for any cases."""
    return lab.plan(
        cases,
        {ALIAS: Model(MODEL)},
        PROTOCOLS,
        decoding=["free", "grammar"],
        wording="brief",
        max_tokens=MAX_TOKENS,
    )


def run_demo(
    out: str | Path = ".demo",
    *,
    budget: float = BUDGET,
    fresh: bool = False,
    color: bool | None = None,
    say: Callable[[str], None] = print,
) -> Run:
    """Run the demo into a folder and say what came of it.

    out: the folder, made where it is not there. budget: seconds for the model; over it the run
    stops and the tables state their n. fresh: ask again what an earlier demo recorded. color: None
    asks the terminal. say: takes each piece of output. Raises MissingModelPackage where the
    embedded model is not installed.
    """
    started = time.monotonic()
    # Asked first, so that a missing model leaves no folder behind.
    local_model_path()
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    color = sys.stdout.isatty() if color is None else color
    # Its own store, so that a second demo finds its answers and asks nothing.
    with Lab(folder / "runs.db") as lab:
        plan = demo_plan(lab)
        say(f"{plan}\n")
        run = lab.run(plan, deadline=budget, fresh=fresh)
        say(f"\n{run}")
        if run.summary is not None and run.summary.calls == 0 and run.summary.cached:
            say(
                "Nothing was asked: every answer was recorded before. `toolparse demo --fresh` "
                "asks again."
            )
        report = run.report(title="Embedded model, two protocols, free and constrained decoding")
        say("\n" + report.text(shutil.get_terminal_size((100, 24)).columns))
        failure = failure_text(run, color)
        if failure:
            say(f"\n{failure}")
        page = report.save(folder / "report.html")
        notebook = _copy_notebook(folder)
        say(f"\nreport:   {page.resolve()}")
        if notebook is not None:
            say(f"notebook: {notebook.resolve()}   (jupyter lab {notebook})")
        say(f"store:    {(folder / 'runs.db').resolve()}")
        say(f"The demo took {time.monotonic() - started:.0f} s.")
        say(all_cases_text())
        say("A 135M model shows how parsing works; it cannot show which protocol is best.")
    return run


def all_cases_text() -> str:
    """Return what the recorded answers of the same model to all shipped cases come to, a sentence:
    the cases of the demo are the easiest ones."""
    cases = example_cases()
    with tempfile.TemporaryDirectory() as folder, Lab(Path(folder) / "runs.db") as lab:
        run = lab.replaying(example_recording()).run(_plan_of(lab, cases), progress=False)
        frame = run.report().frame
    rates = ", ".join(
        f"{cell['arm']} {100 * cell['success']:.0f} %" for cell in frame.to_dict("records")
    )
    return (
        f"The demo asks {CASES} of the easiest cases. Of all {len(cases)} shipped cases the same "
        f"model, as recorded, gets: {rates}. Neither figure ranks protocols: the model is far too "
        "small for that."
    )


def failure_text(run: Run, color: bool) -> str:
    """Return the failed trial that shows most, its text marked; "" where there is none."""
    trial = telling_failure(run)
    if trial is None or trial.result is None:
        return ""
    return (
        f"The most telling answer: {trial.case_id}, {trial.arm}: {trial.score}\n"
        f"asked: {trial.case.input_text}\n\n{render_ansi(trial.result, color=color)}"
    )


def telling_failure(run: Run) -> Trial | None:
    """The failed trial that shows most: an attempt that could not be read, else the one that took
    most changes; None where no failed trial holds a call."""
    tried = [trial for trial in run.failures() if trial.result and trial.result.calls]
    return max(tried, key=_weight, default=None)


def _weight(trial: Trial) -> int:
    """The worth of showing a failed trial; edits say more of parsing than steps and problems."""
    calls = trial.result.calls if trial.result else ()
    weight = sum(len(c.edits) * 3 + len(c.steps) * 2 + len(c.problems) for c in calls)
    if trial.outcome == "attempted_unparseable":
        return weight + 20
    if trial.outcome == "truncated":
        return weight + 5
    return weight


def _copy_notebook(folder: Path) -> Path | None:
    """The quickstart beside the demo's own store, where the package was installed with its
    notebooks."""
    package = Path(__file__).resolve().parents[1]
    # Installed from a wheel, and from a checkout.
    for base in (package / "notebooks", package.parent / "notebooks"):
        source = base / NOTEBOOK
        if source.is_file():
            return Path(shutil.copyfile(source, folder / NOTEBOOK))
    return None
