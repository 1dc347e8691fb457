"""The demo: the main job on the embedded model, small enough to watch.

Prompts, answers, parses and a report, of two protocols by free and by constrained decoding.
"""

from __future__ import annotations

import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from ..evals.cases.collection import Cases
from ..evals.cases.loading import example_cases, example_recording
from ..evals.scoring.trial import Trial
from ..experiments.plan import Plan
from ..experiments.run import Run
from ..lab import Lab
from ..runner.exchange.types import Model
from ..runner.local.setup import local_model_path
from ..views import render_ansi

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
    """Return the plan of the demo for any cases."""
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
    """Run the demo into a folder and report the outcome.

    out: the folder, made where it is not there. budget: seconds for the model. Over it the run
    stops and the tables state their n. fresh: ask again the questions that an earlier demo
    recorded. color: None asks the terminal. say: takes each piece of output. Raises
    SetupError if the embedded model is missing.
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
        say(str(run))
        if run.summary is not None and run.summary.calls == 0 and run.summary.cached:
            say(
                "Nothing was asked: every answer was recorded before. `toolparse demo --fresh` "
                "asks again."
            )
        for sentence in left_out(run, budget):
            say(sentence)
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
        # The second summary judges 336 recorded answers: it never takes a demo over its budget.
        if time.monotonic() - started < budget:
            say(all_cases_text())
        say(f"next: {next_command(folder)}")
    return run


def left_out(run: Run, budget: float) -> list[str]:
    """Return what a demo that ran out of time did not ask, as sentences.

    None if it asked all.

    budget: the seconds it had.
    """
    missing = run.summary.missing if run.summary is not None else 0
    if not missing:
        return []
    total = len(run.plan.items)
    again = "`toolparse demo` again asks the rest"
    stopped = run.summary.stopped if run.summary is not None else None
    if stopped == "interrupted":
        reason = "because the demo was interrupted"
    elif stopped == "deadline":
        reason = f"because {budget:g} s were over"
        again += "; `--budget` gives it more time"
    else:
        reason = "because the model gave none"
    return [f"Left out: {missing} of {total} answers, {reason}. The tables state their n. {again}."]


def next_command(folder: Path) -> str:
    """Return the command that looks at the demo's first failure, as it works from the present
    folder.
    """
    # The demo's usual folder is looked into by itself.
    if folder.resolve() == Path.cwd() / ".demo" and not Path("toolparse.db").exists():
        return "toolparse view latest"
    return f"toolparse view latest --store {shlex.quote(str(folder / 'runs.db'))}"


def all_cases_text() -> str:
    """Return what the recorded answers of the same model to all shipped cases come to, a sentence:
    the cases of the demo are the easiest ones.
    """
    cases = example_cases()
    with tempfile.TemporaryDirectory() as folder, Lab(Path(folder) / "runs.db") as lab:
        run = lab.replaying(example_recording()).run(_plan_of(lab, cases), progress=False)
        frame = run.report().frame
    rates = ", ".join(
        f"{cell['arm']} {100 * cell['success']:.0f} %" for cell in frame.to_dict("records")
    )
    return (
        f"The demo asks {CASES} of the easiest cases. Of all {len(cases)} shipped cases the same "
        f"model, as recorded, gets: {rates}."
    )


def failure_text(run: Run, color: bool) -> str:
    """Return the failed trial that shows most, its text marked.

    "" if there is none.
    """
    trial = telling_failure(run)
    if trial is None or trial.result is None:
        return ""
    return (
        f"The most telling answer: {trial.case_id}, {trial.arm}: {trial.score}\n"
        f"asked: {trial.case.input_text}\n\n{render_ansi(trial.result, color=color)}"
    )


def telling_failure(run: Run) -> Trial | None:
    """Return the failed trial that shows most: an attempt that could not be read, else the one that
    took most changes, or None if no failed trial holds a call.
    """
    tried = [trial for trial in run.failures() if trial.result and trial.result.calls]
    return max(tried, key=_weight, default=None)


def _weight(trial: Trial) -> int:
    """Return the worth of showing a failed trial.

    Edits say more of parsing than steps and problems.
    """
    calls = trial.result.calls if trial.result else ()
    weight = sum(len(c.edits) * 3 + len(c.steps) * 2 + len(c.problems) for c in calls)
    if trial.outcome == "attempted_unparseable":
        return weight + 20
    if trial.outcome == "truncated":
        return weight + 5
    return weight


def _copy_notebook(folder: Path) -> Path | None:
    """Return the quickstart beside the demo's own store, where the package was installed with its
    notebooks.
    """
    package = Path(__file__).resolve().parents[1]
    # Installed from a wheel, and from a checkout.
    for base in (package / "notebooks", package.parent / "notebooks"):
        source = base / NOTEBOOK
        if source.is_file():
            return Path(shutil.copyfile(source, folder / NOTEBOOK))
    return None
