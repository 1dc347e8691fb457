"""The reports that `toolparse report` shows: of a run, or of a file of trials."""

from __future__ import annotations

from typing import Any

from ..core.errors import BadOptions
from ..evals.frames.files import read_frame
from ..evals.reports.figures.report import Report
from ..experiments.run import COLUMN_POLICIES, HEADLINE, Run
from ..runner.settings import Settings
from .asking import recorded_baseline


def report_of_run(run: Run, options: Any, settings: Settings) -> Report:
    """Return the report of a recorded run, its answers read by another protocol where one
    is named.
    """
    policy = settings["policy"]
    if not options.protocol:
        baseline = options.baseline or recorded_baseline(run, options)
        return run.report(options.by, baseline=baseline, policy=policy, cluster=options.cluster)
    # A report reads every answer by the headline and by the policies that stand beside it.
    policies = tuple(dict.fromkeys((policy, *COLUMN_POLICIES)))
    trials = run.frame(protocol=options.protocol, policies=policies)
    return Report(
        trials, options.by, baseline=options.baseline, policy=policy, cluster=options.cluster
    )


def reports_of_file(options: Any, settings: Settings) -> list[Report]:
    """Return a report a policy of a file of trials, the headline's first.

    A policy that was set goes alone. Raises BadOptions for `--protocol`: a file is read already.
    """
    if options.protocol:
        raise BadOptions(
            "a file is read already",
            got="--protocol",
            hint="toolparse reparse --protocols reads it anew",
        )
    trials = read_frame(options.run, "trials")
    policies = [str(policy) for policy in trials["policy"].dropna().unique()]
    if settings.origins["policy"] != "default" or not policies:
        policies = [settings["policy"]]
    # The sort is stable: behind the headline the order of the file stays.
    policies.sort(key=lambda policy: policy != HEADLINE)
    return [
        Report(
            trials, options.by, baseline=options.baseline, policy=policy, cluster=options.cluster
        )
        for policy in policies
    ]
