"""Detectors: whether a failure is about the arguments, so that the model can mend it, and which
fields it names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ...arguments.schema.validate import validate
from ...core.errors import BadOptions, near
from .failure import Issue, ToolFailure, issues_in_body, issues_in_text


@dataclass(frozen=True, slots=True)
class Refused:
    """A call and its failure, as a detector sees them.

    Attributes:
        arguments: as the tool got them.
        schema_json: of the tool, "" if it has none.

    >>> from toolparse_lab.middleware.correction import Refused, ToolFailure
    >>> Refused(ToolFailure("n is a number"), {"n": "x"}).failure.message
    'n is a number'
    """

    failure: ToolFailure
    arguments: Mapping[str, Any]
    schema_json: str = ""


# Gives the issues of a failure that a correction may mend, [] for none.
Detector: TypeAlias = Callable[[Refused], Sequence[Issue]]

# What Go's orchestrator looks for, in lower case, anywhere in the error and its body. Its design
# and its code differ in one line each.
SEED_PATTERNS_DESIGN = (
    "cannot unmarshal string into",
    "cannot unmarshal number into",
    "cannot unmarshal bool into",
    "json: cannot unmarshal",
    "type mismatch",
    "invalid type",
    "expected number",
    "expected string",
    "expected boolean",
)
SEED_PATTERNS_IMPLEMENTED = (
    "cannot unmarshal string into",
    "cannot unmarshal number into",
    "json: cannot unmarshal",
    "type mismatch",
    "invalid type",
    "expected number",
    "expected string",
    "expected boolean",
    "invalid value",
)
_TRANSIENT = frozenset((401, 403, 404, 408, 425, 429))


def by_objects(refused: Refused) -> Sequence[Issue]:
    """Return the issues of the tool's own error objects, in its exception or in its body."""
    return refused.failure.issues or issues_in_body(refused.failure.body)


def by_messages(refused: Refused) -> Sequence[Issue]:
    """Return the issues in the words of validators that are known: Go's, pydantic's,
    jsonschema's.
    """
    return issues_in_text(refused.failure.text)


def by_schema(refused: Refused) -> Sequence[Issue]:
    """Return the problems of the arguments under the tool's schema, where the failure can be about
    them.

    A tool that cannot be reached, or will not be asked, says nothing about arguments.
    """
    status = refused.failure.status
    if not refused.schema_json or (status is not None and (status >= 500 or status in _TRANSIENT)):
        return ()
    problems = validate(dict(refused.arguments), refused.schema_json)
    return [
        Issue(p.path, p.code.rpartition(".")[2], p.message)
        for p in problems
        if p.severity == "error"
    ]


def _by_patterns(patterns: Sequence[str]) -> Detector:
    def detect(refused: Refused) -> Sequence[Issue]:
        text = refused.failure.text.lower()
        if not any(pattern in text for pattern in patterns):
            return ()
        return issues_in_text(refused.failure.text) or (Issue(None, "", refused.failure.message),)

    return detect


# Name -> detector: error objects, our validation, words of validators, the seed's two lists.
DETECTORS: Mapping[str, Detector] = {
    "objects": by_objects,
    "schema": by_schema,
    "messages": by_messages,
    "seed-patterns-design": _by_patterns(SEED_PATTERNS_DESIGN),
    "seed-patterns-implemented": _by_patterns(SEED_PATTERNS_IMPLEMENTED),
}

DEFAULT_DETECTORS = ("objects", "schema", "messages", "seed-patterns-implemented")


def detectors_of(names: Sequence[str | Detector]) -> tuple[Detector, ...]:
    """Return the detectors of these names.

    Functions are taken as they are. Raises BadOptions.
    """
    chosen: list[Detector] = []
    for name in names:
        if callable(name):
            chosen.append(name)
            continue
        if name not in DETECTORS:
            raise BadOptions(
                "there is no detector of this name",
                got=name,
                expected=", ".join(DETECTORS),
                hint=near(name, DETECTORS),
            )
        chosen.append(DETECTORS[name])
    return tuple(chosen)


def detect(refused: Refused, detectors: Sequence[Detector]) -> tuple[Issue, ...]:
    """Return the issues of the first detector that finds one.

    () where the failure is about something else than the arguments.

    >>> from toolparse_lab.middleware.correction import Refused, ToolFailure, detect
    >>> from toolparse_lab.middleware.correction.detectors import DEFAULT_DETECTORS, detectors_of
    >>> schema = '{"properties": {"n": {"type": "integer"}}}'
    >>> refused = Refused(ToolFailure("bad request"), {"n": "x"}, schema)
    >>> detect(refused, detectors_of(DEFAULT_DETECTORS))[0].path
    '/n'
    """
    for detector in detectors:
        issues = tuple(detector(refused))
        if issues:
            return issues
    return ()
