"""Detectors held to the validator: do they see that a refusal is about the arguments?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from ...core.toolspec import ToolSpec
from ...core.values import write_canonical
from ...evals.reports.figures import stats
from ...middleware.correction import Refused, ToolFailure, detect
from ...middleware.correction.detectors import DETECTORS, Detector, detectors_of
from .mock_tool import DIALECTS, OTHER_FAILURES, problems_of, refusal
from .recording import Recorded

MOST_CALLS = 2000
"""Different calls that the detectors are tried on."""
ALL_IN_TURN = "all in turn"
"""The detectors of the ablation's own feedback, as layer 3 asks them."""


def detectors_frame(recorded: Recorded, level: float) -> pd.DataFrame:
    """Return one row per detector × dialect: recall and precision, with Wilson intervals.

    Every different call that a model wrote is refused again. An invalid one is refused for its
    arguments, in the words of the dialect: a detector should see it. A valid one is refused for
    each of `OTHER_FAILURES` (a service that is down, a timeout, …): a detector should not.
    """
    calls = list(_different_calls(recorded).values())[:MOST_CALLS]
    judged = [(tool, arguments, problems_of(arguments, tool)) for tool, arguments in calls]
    chosen: dict[str, Sequence[Detector]] = {name: [one] for name, one in DETECTORS.items()}
    chosen[ALL_IN_TURN] = detectors_of(recorded.settings.feedback.detectors)
    negatives = [
        Refused(failure, arguments, tool.schema_json)
        for tool, arguments, problems in judged
        if not problems
        for failure in OTHER_FAILURES
    ]
    rows = []
    for dialect in DIALECTS:
        positives = [
            Refused(_refusal(dialect, tool, arguments), arguments, tool.schema_json)
            for tool, arguments, problems in judged
            if problems
        ]
        for name, detectors in chosen.items():
            hits = sum(bool(detect(one, detectors)) for one in positives)
            false = sum(bool(detect(one, detectors)) for one in negatives)
            recall = stats.wilson(hits, len(positives), level)
            precision = stats.wilson(hits, hits + false, level)
            rows.append(
                {
                    "detector": name,
                    "dialect": dialect,
                    "invalid": len(positives),
                    "detected": hits,
                    "recall": recall.rate,
                    "recall_low": recall.low,
                    "recall_high": recall.high,
                    "other_failures": len(negatives),
                    "false_alarms": false,
                    "precision": precision.rate,
                    "precision_low": precision.low,
                    "precision_high": precision.high,
                }
            )
    return pd.DataFrame(rows)


def _different_calls(recorded: Recorded) -> dict[str, tuple[ToolSpec, Mapping[str, Any]]]:
    # As the models wrote them, each once, by tool and arguments.
    calls: dict[str, tuple[ToolSpec, Mapping[str, Any]]] = {}
    for answer in recorded.answers:
        for call in answer.calls:
            if call.tool is not None:
                arguments = call.arguments("none")
                key = f"{call.tool.name} {call.tool.schema_json} {write_canonical(arguments)}"
                calls.setdefault(key, (call.tool, arguments))
    return calls


def _refusal(dialect: str, tool: ToolSpec, arguments: Mapping[str, Any]) -> ToolFailure:
    return refusal(dialect, problems_of(arguments, tool), arguments, tool)
