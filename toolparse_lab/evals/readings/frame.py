"""Readings of one text as a frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from ...core.values import write_canonical
from ..frames.dtypes import build_frame
from .reading import Reading


def readings_frame(readings: Sequence[Reading]) -> pd.DataFrame:
    """Return one row per reading, in order, with the columns of the frame `readings`.

    Without readings it has the same columns and no rows.
    """
    rows = [_row(reading) for reading in readings]
    columns: dict[str, list[Any]] = {}
    if rows:
        columns = {name: [row[name] for row in rows] for name in rows[0]}
    return build_frame("readings", columns, len(rows))


def _row(reading: Reading) -> dict[str, Any]:
    # A parser of others has no result: it says nothing of repairs, of coercions or of the text.
    return {
        "reading": reading.name,
        "kind": reading.kind,
        "agrees": reading.agrees or None,
        **_call_cells(reading),
        "n_repairs": reading.n_repairs,
        "n_coercions": reading.n_coercions,
        "text": None if reading.result is None else reading.result.text,
        "error_codes": _error_codes(reading) or None,
        "failure": reading.failure,
    }


def _call_cells(reading: Reading) -> dict[str, Any]:
    # A parser that failed has none of these: missing is not 0.
    if reading.failure is not None:
        return dict.fromkeys(("n_calls", "n_ok", "n_executable", "calls_json"))
    return {
        "n_calls": len(reading.calls),
        "n_ok": sum(call.status == "ok" for call in reading.calls),
        "n_executable": len(reading.executable),
        "calls_json": _calls_json(reading),
    }


def _error_codes(reading: Reading) -> str:
    codes = [problem.code for problem in reading.problems if problem.severity == "error"]

    # With commas between, so that the column can be searched as text.
    return ",".join(dict.fromkeys(codes))


def _calls_json(reading: Reading) -> str:
    # Put together from the JSON of each call, which is canonical already. Null arguments are those
    # that could not be read.
    calls = []
    for call in reading.calls:
        arguments = call.arguments_json or "null"
        name = write_canonical(call.name)
        calls.append(f'{{"arguments":{arguments},"name":{name}}}')
    return f"[{','.join(calls)}]"
