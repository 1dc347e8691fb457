"""Reports for other programs: cells that a spreadsheet shows as they are, an Excel workbook, LaTeX
for papers, JUnit XML for continuous integration.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from ....core.errors import MissingExtra
from ....views.show import visible
from ..figures.cells import UNRECORDED, groups
from .tables import success

if TYPE_CHECKING:
    from ..figures.gates import GateResult
    from ..figures.report import Report

_WIDEST = 60  # characters of a column
# Full-width signs count in some spreadsheets.
_FORMULA = ("=", "+", "-", "@", "|", "%", "＝", "＋", "－", "＠")


def plain_cells(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame whose texts a spreadsheet shows as they are: no hidden character, and an
    apostrophe before what it would take for a formula.

    Only for tables that people open. A file that is read again keeps its texts.
    """

    def plain(x: Any) -> Any:
        if not isinstance(x, str):
            return x
        # Spreadsheets pass over white space before the sign.
        return ("'" if x.lstrip().startswith(_FORMULA) else "") + visible(x)

    texts = frame.select_dtypes(exclude=["number", "bool"])
    return frame.assign(**{str(name): texts[name].map(plain) for name in texts})


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
                sheet = writer.sheets[name]
                sheet.freeze_panes = "A2"
                if len(table.columns):
                    sheet.auto_filter.ref = sheet.dimensions
                for column, head in zip(sheet.columns, table.columns, strict=True):
                    longest = max([len(str(head)), *(len(str(cell.value)) for cell in column)])
                    letter = column[0].column_letter
                    sheet.column_dimensions[letter].width = min(longest + 2, _WIDEST)
    except ModuleNotFoundError as e:
        raise MissingExtra(
            "an Excel workbook needs openpyxl", got=str(e), hint="pip install 'toolparse_lab[xlsx]'"
        ) from None


# In one step, because replacing one after the other would escape what was put in before.
_TEX = str.maketrans(
    {
        **{c: "\\" + c for c in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "–": "--",
    }
    | {
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "−": "$-$",
        "\xa0": "~",
        # A hidden character is shown between these.
        "⟨": r"\textlangle{}",
        "⟩": r"\textrangle{}",
    }
)


def render_latex(report: Report) -> str:
    r"""Return the cells as a LaTeX table. It takes ``\usepackage{booktabs}``."""

    def line(cells: Any) -> str:
        texts = (visible(" ".join(cell.split("\n"))).translate(_TEX) for cell in cells)
        return " & ".join(texts) + r" \\"

    table = success(report).drawn("tex")
    alignment = "l" * table.n_left + "r" * (len(table.head) - table.n_left)
    lines = [
        f"% {visible(' '.join(report.title.split()))}. Success in percent, policy {report.policy}, "
        "intervals clustered by case.",
        f"\\begin{{tabular}}{{{alignment}}}",
        "\\toprule",
        line(name for name, _ in table.head),
        "\\midrule",
        *map(line, table.rows),
        "\\bottomrule",
        "\\end{tabular}",
        "",
    ]
    return "\n".join(lines)


# JUnit XML. Tag -> the attribute of a suite with the number of its elements.
_COUNTED = {"testcase": "tests", "failure": "failures", "error": "errors", "skipped": "skipped"}
_COLUMNS = (
    "case_id", "trial_id", "outcome", "sub_code", "detail", "missing_reason", "score_success",
    "latency", "raw",
)  # fmt: skip
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def render_junit(report: Report, gate: GateResult | None = None) -> str:
    """Return JUnit XML: a suite for each cell, a test for each of its cases, and a suite for the
    checks of a gate.

    A case fails if no majority of its judged trials succeeded. One for which there are only the
    provider's failures is an error, one without a target or without a record is skipped.
    """
    # The standard library's writer is enough for this: nothing is read, and it escapes all text.
    root = ET.Element("testsuites", name=_xml(report.title))
    if gate is not None:
        suite = ET.SubElement(root, "testsuite", name="gate")
        for check in gate.checks:
            test = _test(suite, "gate", f"{check.cell}: {check.metric}")
            if not check.ok:
                _add(test, "failure", check.sentence)

    for values, part in groups(report.headline, report.by):
        name = report.cell_name(dict(zip(report.by, values, strict=True)))
        suite = ET.SubElement(root, "testsuite", name=_xml(name))
        # Column by column: a frame for each case would take a hundred times as long.
        columns = [part[c].astype(object).where(part[c].notna(), None).tolist() for c in _COLUMNS]
        cases: dict[str, list[dict[str, Any]]] = {}
        for cells in zip(*columns, strict=True):
            row = dict(zip(_COLUMNS, cells, strict=True))
            cases.setdefault(str(row["case_id"]), []).append(row)
        for case_id, trials in cases.items():
            _judge(_test(suite, name, case_id, sum(t["latency"] or 0.0 for t in trials)), trials)

    # A viewer shows these counts, and does not count for itself.
    for element in (*root, root):
        for tag, attribute in _COUNTED.items():
            element.set(attribute, str(len(list(element.iter(tag)))))
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _test(suite: ET.Element, group: str, name: str, seconds: float = 0.0) -> ET.Element:
    return ET.SubElement(
        suite, "testcase", classname=_xml(group), name=_xml(name), time=f"{seconds:.3f}"
    )


def _judge(test: ET.Element, trials: list[dict[str, Any]]) -> None:
    judged = [t for t in trials if t["score_success"] is not None]
    errors = [t for t in trials if t["outcome"] == "provider_error"]
    if not judged and errors:
        _add(test, "error", f"{errors[0]['missing_reason']}: {errors[0]['detail']}")
    elif not judged:
        _add(test, "skipped", trials[0]["missing_reason"] or UNRECORDED)
    wrong = [t for t in judged if not t["score_success"]]
    right = len(judged) - len(wrong)
    if wrong and right <= len(wrong):  # a tie is not a majority
        first = wrong[0]
        code = "/".join(str(first[c]) for c in ("outcome", "sub_code") if first[c])
        message = f"{right} of {len(judged)} trials succeeded; {code}: {first['detail']}"
        _add(test, "failure", message, f"trial {first['trial_id']}\n{first['raw'] or ''}")


def _add(test: ET.Element, tag: str, message: str, text: str | None = None) -> None:
    # tag: failure, error or skipped. text: the part that a viewer unfolds.
    element = ET.SubElement(test, tag, message=_xml(message))
    if text is not None:
        element.text = _xml(text)


def _xml(text: str) -> str:
    # Control characters become their pictures, others that XML cannot hold are replaced.
    def picture(match: re.Match[str]) -> str:
        code = ord(match[0])
        # Unicode's pictures of control characters begin at 0x2400.
        return chr(0x2400 + code) if code < 0x20 else "\N{REPLACEMENT CHARACTER}"

    return _NOT_XML.sub(picture, text)
