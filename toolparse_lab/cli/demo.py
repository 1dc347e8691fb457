"""The demo: the report of recorded tool callers, then the same job live on the embedded model,
small enough to watch; and the plans of the recordings that ship with the package.
"""

from __future__ import annotations

import shlex
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

from ..core.values.printable import counted
from ..core.values.wording import seconds
from ..evals.cases.collection import Cases
from ..evals.cases.loading import example_cases, example_conversations, example_recording
from ..evals.reports.figures.report import Report
from ..evals.scoring.trial import Trial
from ..experiments.plan import Plan
from ..experiments.run import Run
from ..lab import Lab
from ..runner.exchange.types import Model
from ..runner.local.setup import local_model_path
from ..runner.loop import run_sync
from ..runner.pool import run_requests
from ..views import render_ansi

MODEL = "toolparse-local/smollm2-135m"
ALIAS = "smollm2-135m"
PROTOCOLS = ("hermes", "morph_xml")
CASES = 10
MAX_TOKENS = 128
BUDGET = 150.0
_SHARE = 0.8  # of the time that is left is planned, because answers differ in length
NOTEBOOK = "01_quickstart.ipynb"
# The tool callers whose answers ship; their weights do not.
RECORDED = {
    "qwen2.5-coder-1.5b": Model("toolparse-local/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"),
    "qwen2.5-coder-0.5b": Model("toolparse-local/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"),
}
RECORDED_PROTOCOLS = (
    "native",
    "hermes",
    "gemma",
    "morph_xml",
    "yaml_xml",
    "qwen3_coder_xml",
    "pythonic",
)


def demo_plan(lab: Lab, cases: int = CASES) -> Plan:
    """Return the plan of the demo's first cases."""
    return _plan_of(lab, example_cases(demo=True)[:cases])


def _plan_of(lab: Lab, cases: Cases) -> Plan:
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

    Args:
        out: where store, report and notebook go. It is made if it is not there.
        budget: time for the model. In seconds; a slow machine is asked fewer cases.
        fresh: ask again what an earlier demo recorded.
        color: None asks the terminal.
        say: takes each piece of output.

    Raises SetupError if the embedded model is missing.
    """
    started = time.monotonic()
    # Asked first, so that a missing model leaves no folder.
    local_model_path()
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    color = sys.stdout.isatty() if color is None else color
    width = shutil.get_terminal_size((100, 24)).columns
    with Lab(folder / "models.db") as lab:
        recorded = recorded_report(lab)
        say(f"Recorded answers of two tool callers:\n\n{conclusion_text(recorded, width)}\n")
        page = recorded.save(folder / "report.html")
    say("Now the same job live. With 135 million parameters the model cannot rank protocols.\n")
    # Its own store, so that a second demo finds its answers and asks nothing.
    with Lab(folder / "runs.db") as lab:
        cases = fitting_cases(lab, budget, fresh=fresh)
        if cases < CASES:
            say(
                f"In {budget:g} s this machine can be asked {counted(cases, 'case')} of {CASES}; "
                "`--budget` gives it more time.\n"
            )
        plan = demo_plan(lab, cases)
        say(f"{plan}\n")
        left = max(1.0, budget - (time.monotonic() - started))
        run = lab.run(plan, deadline=left, fresh=fresh)
        say(str(run))
        if run.summary is not None and run.summary.calls == 0 and run.summary.cached:
            say(
                "Nothing was asked: every answer was recorded before. `toolparse demo --fresh` "
                "asks again."
            )
        for sentence in left_out(run, budget):
            say(sentence)
        report = run.report(title="Embedded model, two protocols, free and constrained decoding")
        say("\n" + report.text(width))
        failure = failure_text(run, color)
        if failure:
            say(f"\n{failure}")
        notebook = _copy_notebook(folder)
        say(f"\nrecorded: {page.resolve()}")
        say(f"live:     {report.save(folder / 'live.html').resolve()}")
        if notebook is not None:
            say(f"notebook: {notebook.resolve()}   (jupyter lab {notebook})")
        say(f"store:    {(folder / 'runs.db').resolve()}")
        say(f"The demo took {seconds(time.monotonic() - started)}.")
        say(f"next: {next_command(folder)}")
    return run


def fitting_cases(lab: Lab, seconds: float, *, fresh: bool = False) -> int:
    """Return how many cases of the demo can be asked in so many seconds.

    The first case is asked, outside of any run, to see how fast this machine is.
    """
    started = time.monotonic()
    first, whole = demo_plan(lab, 1), demo_plan(lab)
    run_sync(run_requests(first.requests, lab.store, fresh=fresh, deadline=seconds, progress=False))
    answers = [lab.store.get(item.key) for item in first.items]
    times = [answer.latency for answer in answers if answer is not None and answer.latency]
    left = _SHARE * (seconds - (time.monotonic() - started))
    each = sum(times) / len(times) if times else 0.0
    cases = 0
    for case in whole.cases:
        keys = [item.key for item in whole.items if item.case_id == case.id]
        answered = 0 if fresh else sum(lab.store.get(key) is not None for key in keys)
        left -= each * (len(keys) - answered)
        if left < 0:
            break
        cases += 1
    return max(cases, 1)


def left_out(run: Run, budget: float) -> list[str]:
    """Return what a demo of so many seconds did not ask, as a sentence; none if it asked all."""
    missing = run.summary.missing if run.summary is not None else 0
    if not missing:
        return []
    total = len(run.plan.items)
    again = "`toolparse demo` again asks the rest"
    stopped = run.summary.stopped if run.summary is not None else None
    reason = "because the model gave none"
    if stopped == "interrupted":
        reason = "because the demo was interrupted"
    elif stopped == "deadline":
        reason = f"because {budget:g} s were over"
        again += "; `--budget` gives it more time"
    return [f"Left out: {missing} of {total} answers, {reason}. The tables state their n. {again}."]


def next_command(folder: Path) -> str:
    """Return the command that shows the demo's first failure, from the present folder."""
    # The demo's usual folder is looked into by itself.
    if folder.resolve() == Path.cwd() / ".demo" and not Path("toolparse.db").exists():
        return "toolparse view latest"
    return f"toolparse view latest --store {shlex.quote(str(folder / 'runs.db'))}"


def recorded_report(lab: Lab) -> Report:
    """Return the report of the recorded tool callers: two models in seven protocols."""
    lab.replaying(example_recording(models=True))
    plan = lab.plan(
        example_cases().filter(recorded=True),
        RECORDED,
        RECORDED_PROTOCOLS,
        max_tokens=256,
    )
    return lab.run(plan, progress=False).report(title="Two tool callers, seven protocols")


def conclusion_text(report: Report, width: int) -> str:
    """Return what a report concludes, and its table of success."""
    return "\n\n".join(report.text(width).split("\n\n")[1:3])


def failure_text(run: Run, color: bool) -> str:
    """Return the failed trial that shows most, its text marked, or ""."""
    trial = telling_failure(run)
    if trial is None or trial.result is None:
        return ""
    return (
        f"The most telling answer: {trial.case_id}, {trial.arm}: {trial.score}\n"
        f"asked: {trial.case.input_text}\n\n{render_ansi(trial.result, color=color)}"
    )


def telling_failure(run: Run) -> Trial | None:
    """Return the failed trial that shows most: an attempt that could not be read, else the one that
    took most changes, or None if no failed trial has a call.
    """

    def weight(trial: Trial) -> int:
        # Edits say more of parsing than steps and problems.
        calls = trial.result.calls if trial.result else ()
        changes = sum(len(c.edits) * 3 + len(c.steps) * 2 + len(c.problems) for c in calls)
        return changes + {"attempted_unparseable": 20, "truncated": 5}.get(str(trial.outcome), 0)

    tried = [trial for trial in run.failures() if trial.result and trial.result.calls]
    return max(tried, key=weight, default=None)


def _copy_notebook(folder: Path) -> Path | None:
    # Next to the demo's own store, where the package was installed with its notebooks.
    package = Path(__file__).resolve().parents[1]
    # Installed from a wheel, and from a checkout.
    for base in (package / "notebooks", package.parent / "notebooks"):
        source = base / NOTEBOOK
        if source.is_file():
            return Path(shutil.copyfile(source, folder / NOTEBOOK))
    return None


# the shipped recordings


def recording_plan(lab: Lab) -> Plan:
    """Return the plan of the shipped recording: every shipped case × two protocols × free and
    constrained decoding.
    """
    return _plan_of(lab, example_cases())


def conversation_plan(lab: Lab) -> Plan:
    """Return the plan of the shipped conversations, decoded by a grammar alone."""
    # So small a model calls nothing unless a grammar makes it.
    return lab.plan(
        example_conversations(demo=True),
        {ALIAS: Model(MODEL)},
        PROTOCOLS,
        decoding="grammar",
        wording="brief",
        max_turns=3,
        max_tokens=MAX_TOKENS,
    )
