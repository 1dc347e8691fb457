"""The values that a run asks with and records: `Model`, `Request`, `Chunk`, `Completion`,
`PlanItem`. This file is their one address. Each is defined in the file that its name suggests.

Times are seconds, prices US dollars per million tokens. Credentials live in a `Model` only while it
is in memory: no `to_dict`, `repr`, key or record holds one.
"""

from __future__ import annotations

from .completion import (
    ERROR_KINDS,
    RESULT_KEYS,
    Chunk,
    Completion,
    EndpointKind,
    ErrorKind,
    Fidelity,
)
from .model import RAW_COMPLETION, Model
from .redaction import redact
from .request import KEY_VERSION, PlanItem, Request

__all__ = [
    "ERROR_KINDS",
    "KEY_VERSION",
    "RAW_COMPLETION",
    "RESULT_KEYS",
    "Chunk",
    "Completion",
    "EndpointKind",
    "ErrorKind",
    "Fidelity",
    "Model",
    "PlanItem",
    "Request",
    "redact",
]
