"""A comparison of readings as a frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from ...values import write_canonical
from ..frames.dtypes import build_frame

if TYPE_CHECKING:
    from .compare import Comparison, Reading


def readings_frame(comparison: Comparison) -> pd.DataFrame:
    """One row a reading, in the order of the comparison."""
    readings = comparison.readings
    columns = {
        "reading": [r.name for r in readings],
        "kind": [r.kind for r in readings],
        "agrees": [r.agrees or None for r in readings],
        "n_calls": [len(r.calls) if r.failure is None else None for r in readings],
        "n_ok": [sum(c.status == "ok" for c in r.calls) if r.failure is None else None for r in readings],
        "n_executable": [len(r.executable) if r.failure is None else None for r in readings],
        "n_repairs": [r.n_repairs for r in readings],
        "n_coercions": [r.n_coercions for r in readings],
        "calls_json": [_calls_json(r) for r in readings],
        "text": [r.result.text if r.result is not None else None for r in readings],
        "error_codes": [
            ",".join(dict.fromkeys(p.code for p in r.problems if p.severity == "error")) or None for r in readings
        ],
        "failure": [r.failure for r in readings],
    }
    return build_frame("readings", columns, len(readings))


def _calls_json(reading: Reading) -> str | None:
    if reading.failure is not None:
        return None
    calls = (f'{{"arguments":{c.arguments_json or "null"},"name":{write_canonical(c.name)}}}' for c in reading.calls)
    return f"[{','.join(calls)}]"
