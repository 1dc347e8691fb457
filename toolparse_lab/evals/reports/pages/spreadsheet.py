"""Tables for spreadsheets: texts that are no formulas, and an Excel workbook."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from ....core.errors import MissingExtra
from ....views.show import visible
from ..figures.report import Report

_WIDEST = 60  # characters of a column


def plain_cells(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame whose texts a spreadsheet shows as they are: no hidden character, and an
    apostrophe before what it would take for a formula.

    Only for tables that people open. A file that is read again keeps its texts.
    """
    texts = frame.select_dtypes(exclude=["number", "bool"])
    return frame.assign(**{str(name): texts[name].map(_plain_cell) for name in texts})


def _plain_cell(x: Any) -> Any:
    # Begins no formula: "=1+1" becomes "'=1+1".
    if not isinstance(x, str):
        return x
    # Spreadsheets pass over white space before the sign; full-width signs count in some of them.
    is_formula = x.lstrip().startswith(_FORMULA)
    return ("'" if is_formula else "") + visible(x)


_FORMULA = ("=", "+", "-", "@", "|", "%", "＝", "＋", "－", "＠")


def write_workbook(report: Report, file: Path) -> None:
    """Write the sheets `cells`, `outcomes`, `failures`, `codes` and `rescues`.

    Raises MissingExtra if openpyxl is not installed.
    """
    tables = {
        "cells": report.frame,
        "outcomes": report.waterfall,
        "failures": report.failures,
        "codes": report.codes,
        "rescues": report.rescues,
    }
    try:
        with pd.ExcelWriter(file, engine="openpyxl") as writer:
            for name, table in tables.items():
                plain_cells(table).to_excel(writer, sheet_name=name, index=False)
                _lay_out(writer.sheets[name], table)
    except ModuleNotFoundError as e:
        raise MissingExtra(
            "an Excel workbook needs openpyxl", got=str(e), hint="pip install 'toolparse_lab[xlsx]'"
        ) from None


def _lay_out(sheet: Any, table: pd.DataFrame) -> None:
    sheet.freeze_panes = "A2"
    if len(table.columns):
        sheet.auto_filter.ref = sheet.dimensions
    for column, name in zip(sheet.columns, table.columns, strict=True):
        longest = max([len(str(name)), *(len(str(cell.value)) for cell in column)])
        sheet.column_dimensions[column[0].column_letter].width = min(longest + 2, _WIDEST)
