"""The effects of layers 2 and 3, as log records: the seed's messages and levels, details as
`extra`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from ...arguments.schema.go import GO_KINDS, go_log_line
from ...core.types import Step

LOGGER = logging.getLogger("toolparse_lab.type_safety")
_MESSAGES: Mapping[str, tuple[int, str, str]] = {
    "type_coercion_applied": (
        logging.DEBUG,
        "type_coercion",
        "Parameter types coerced to match schema",
    ),
    "validation_feedback_started": (
        logging.INFO,
        "validation_feedback",
        "Type error detected, requesting LLM correction",
    ),
    "parameters_corrected": (
        logging.DEBUG,
        "validation_feedback_success",
        "Parameters corrected by LLM",
    ),
}
"""Event -> level, the record's `operation`, its message."""


def log_event(name: str, attributes: Mapping[str, Any]) -> None:
    """Write the log record of an event, where someone listens.

    Its `toolparse` attribute holds the details: `operation`, `step_id`, `capability`, and the
    fields of the event: `coercions` (a line and a record each), `validation_retry` and `error`,
    `new_params`.
    """
    level, operation, message = _MESSAGES.get(name, (logging.NOTSET, "", ""))
    if not operation or not LOGGER.isEnabledFor(level):
        return
    details = {k: v for k, v in attributes.items() if k not in ("steps", "retry_number")}
    if "retry_number" in attributes:
        details["validation_retry"] = attributes["retry_number"]
    if "steps" in attributes:
        details["coercions"] = [coercion_line(step) for step in attributes["steps"]]
        details["changes"] = [coercion_record(step, attributes) for step in attributes["steps"]]
    LOGGER.log(level, message, extra={"toolparse": {"operation": operation, **details}})


def coercion_line(step: Step) -> str:
    """Return a step as one line: the seed's where the seed's policy made it."""
    if step.rule in GO_KINDS:
        return go_log_line(step)
    return f"{step.path}: {step.before_json} -> {step.after_json}"


def coercion_record(step: Step, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a step as one structured record."""
    where = {k: attributes[k] for k in ("step_id", "capability") if k in attributes}
    return {
        "operation": "type_coercion",
        **where,
        "path": step.path,
        "from": step.before,
        "to": step.after,
        "rule": step.rule,
    }
