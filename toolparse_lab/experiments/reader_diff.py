"""Two sides of a diff: runs, frames, or readers of the same recorded answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ..core.errors import BadOptions
from ..core.types import Policy
from ..entry.foreign.protocol import AnyProtocol
from ..evals.frames.parsing import parse_frame
from ..evals.frames.recorded import Frame
from ..evals.parsers.outside import parser_of, version_of
from ..evals.reports.figures.comparison import ArmComparison, compare_runs
from ..evals.reports.figures.view import RunView
from ..evals.scoring.trial import Trial
from .run import HEADLINE, Run

OpenRun = Callable[[str], Run]
"""The run of an id."""
_ANSWER = ("run_id", "case_id", "trial", "model", "arm", "prompt_protocol")


def diff_sides(
    open_run: OpenRun,
    a: Any,
    b: Any,
    *,
    answers: Any = None,
    within: str | Sequence[str] | None = None,
    policy: Policy | None = None,
    cluster: str | None = None,
) -> ArmComparison:
    """Return the comparison of b with a.

    See `Lab.diff` for the possible forms.

    open_run: a run by its id. Raises BadOptions and UnknownProtocol.
    """
    source = _answers_of(open_run, a, b, answers)
    policies = (policy or HEADLINE,)
    # A name is a protocol's only where it is said what is to be read.
    views, titles, clusters = [], [], set()
    for x in (a, b):
        is_reader = _reads(x, answers is not None)
        side = source if is_reader else open_run(x) if isinstance(x, str) else x
        views.append(_read_by(x, side, policies) if is_reader else _recorded(side, policies))
        clusters.add(side.plan.cluster if isinstance(side, Run) else "")
        titles.append(side.title if isinstance(side, Run) and not is_reader else "")
    if all(titles) and titles[0] != titles[1]:  # two logs are known by their files
        views = [replace(view, name=name) for view, name in zip(views, titles, strict=True)]
    if cluster is None and len(clusters) == 1:
        cluster = clusters.pop() or None
    return compare_runs(*views, within=within, policy=policy, cluster=cluster)


def _reads(x: Any, by_name: bool) -> bool:
    return by_name if x is None or isinstance(x, str) else not isinstance(x, (Run, Frame))


def _answers_of(open_run: OpenRun, a: Any, b: Any, answers: Any) -> Any:
    # None if both sides are recorded.
    by_name = answers is not None
    recorded = [x for x in (a, b) if not _reads(x, by_name)]
    if len(recorded) == 2:
        if a is None or b is None:
            raise BadOptions("a diff has two sides", got="None", expected="runs or readers")
        return None
    if answers is None:
        # A reader next to a run reads that run's answers.
        answers = recorded[0] if recorded else "latest"
    source = open_run(answers) if isinstance(answers, str) else answers
    if not isinstance(source, (Run, Frame)):
        raise BadOptions(
            "answers are those of a run", got=answers, expected="a Run, a run id or a trials frame"
        )
    return source


def _read_by(x: Any, source: Any, policies: tuple[Policy, ...]) -> RunView:
    # x: the inputs of `reader`, or None for the one that each prompt asked for.
    chosen: AnyProtocol | None = None if x is None else parser_of(x)
    name = "as asked"
    if chosen is not None:
        # With its version where it says one of its own.
        version = getattr(chosen, "version", "") and version_of(chosen)
        name = f"{chosen.id} {version}" if version else str(chosen.id)
    if isinstance(source, Frame):
        # Of an answer that was read in several ways, one reading is enough to read it again.
        once = source.drop_duplicates([c for c in _ANSWER if c in source])
        return RunView(parse_frame(once, chosen and [chosen], policies), name)

    def open_trial(trial_id: str) -> Trial:
        trial: Trial = source.trials(protocol=chosen, policies=policies)[trial_id]
        return trial

    frame = source.frame(protocol=chosen, policies=policies)
    return RunView(frame, name, open_trial=open_trial)


def _recorded(x: Any, policies: tuple[Policy, ...]) -> RunView:
    if isinstance(x, Run):
        return RunView(x.frame(policies=policies), open_trial=x.trial)
    return RunView(x)
