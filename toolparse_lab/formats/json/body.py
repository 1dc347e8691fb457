"""JSON in the place of another notation: the calls of a body written as other formats do."""

from __future__ import annotations

from dataclasses import replace

from ...core.types import Step
from ..base import Decoded, Reading
from .call import JsonCall


def json_calls(opener: str, closer: str, body: str, reading: Reading) -> tuple[Decoded, ...]:
    """Return the calls of a body of JSON, with a step that says so.

    opener, closer: the delimiters around the body. Raises Refusal if it is not JSON that can be
    read.
    """
    calls: list[Decoded] = []
    for call in JsonCall(opener, closer).read(body, reading):
        step = Step("read", "read.json-body", "", None, None, call.arguments)
        calls.append(replace(call, steps=(step, *call.steps)))
    return tuple(calls)
