"""Reports as files: a page, Markdown, tables for programs, LaTeX for papers, JUnit XML for
continuous integration.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from ....core.errors import BadOptions, StoreError
from ....views import render_page
from ....views.cells import escaped
from ....views.show import visible
from ..figures.cells import UNRECORDED, groups
from .comparison_html import render_comparison_page
from .html import render_report
from .markdown import md, render_comparison_markdown, render_markdown
from .numbers import percent, points, span
from .spreadsheet import plain_cells, write_workbook

if TYPE_CHECKING:
    from ..figures.comparison import ArmComparison
    from ..figures.gates import GateResult
    from ..figures.report import Report


def save_report(report: Report, path: str | Path, gate: GateResult | None = None) -> Path:
    """Write a report as its suffix says and return its path.

    Raises BadOptions for a suffix that `WRITERS` lacks, and StoreError where the file cannot be
    written.
    """
    return save_file(path, WRITERS, lambda writer, file: writer(report, file, gate), "a report")


def save_comparison(comparison: ArmComparison, path: str | Path) -> Path:
    """Write a comparison and return its path: .html, .md, .csv or .parquet.

    Raises BadOptions for another suffix, and StoreError where the file cannot be written.
    """
    writers: Mapping[str, Callable[[Path], object]] = {
        ".html": lambda f: f.write_text(render_comparison_page(comparison), encoding="utf-8"),
        ".md": lambda f: f.write_text(render_comparison_markdown(comparison), encoding="utf-8"),
        ".csv": lambda f: plain_cells(comparison.frame).to_csv(f, index=False),
        ".parquet": lambda f: comparison.frame.to_parquet(f, index=False),
    }
    return save_file(path, writers, lambda writer, file: writer(file), "a comparison")


def save_sentences(title: str, text: str, frame: pd.DataFrame, path: str | Path) -> Path:
    """Write figures that are told in sentences and return the path: .html and .md have the
    sentences, .csv and .parquet the numbers.

    text: one line per row of `frame`, and its notes. Raises BadOptions for another suffix, and
    StoreError where the file cannot be written.
    """
    lines = visible(text).splitlines()
    items = "".join(f"<li>{escaped(line)}</li>" for line in lines)
    page = f"<h1>{escaped(title)}</h1><ul>{items}</ul>"
    marked = [f"# {md(title)}", "", *(f"- {md(line)}" for line in lines)]
    writers: Mapping[str, Callable[[Path], object]] = {
        ".html": lambda f: f.write_text(render_page(title, page), encoding="utf-8"),
        ".md": lambda f: f.write_text("\n".join([*marked, ""]), encoding="utf-8"),
        ".csv": lambda f: plain_cells(frame).to_csv(f, index=False),
        ".parquet": lambda f: frame.to_parquet(f, index=False),
    }
    return save_file(path, writers, lambda writer, file: writer(file), "such figures")


def save_file(
    path: str | Path, writers: Mapping[str, Any], write: Callable[[Any, Path], object], what: str
) -> Path:
    """Write a file with the writer for its suffix, and return its path.

    writers: by suffix. write: called with the writer and the path. what: the contents as an error
    names them. Raises BadOptions for a suffix without a writer, StoreError where writing fails.
    """
    file = Path(path)
    writer = writers.get(file.suffix.lower())
    if writer is None:
        raise BadOptions(
            f"{what} is not written as this kind of file",
            got=file.name,
            expected=", ".join(writers),
        )

    try:
        write(writer, file)
    except OSError as e:  # no such folder, a full disk: nothing that a traceback explains
        raise StoreError(f"{what} cannot be written", got=f"{path}: {e.strerror or e}") from None
    return file


def render_latex(report: Report) -> str:
    r"""Return the cells as a LaTeX table. It takes ``\usepackage{booktabs}``."""
    head = [
        *(c.replace("_", " ") for c in report.by),
        "success",
        f"{report.level:.0%} interval",
        "n",
        "cases",
        "strict",
        "naive",
    ]
    if report.baseline is not None:
        head += [f"against {report.baseline}", "p (Holm)"]
    alignment = "l" * len(report.by) + "r" * (len(head) - len(report.by))
    rows = [_latex_cells(report, cell) for cell in report.frame.to_dict("records")]
    lines = [
        f"% {visible(' '.join(report.title.split()))}. Success in percent, policy {report.policy}, "
        "intervals clustered by case.",
        f"\\begin{{tabular}}{{{alignment}}}",
        "\\toprule",
        _latex_row(head),
        "\\midrule",
        *map(_latex_row, rows),
        "\\bottomrule",
        "\\end{tabular}",
        "",
    ]
    return "\n".join(lines)


def _latex_cells(report: Report, cell: Mapping[Any, Any]) -> list[str]:
    # The last two are of the baseline.
    row = [
        *(str(cell[c]) for c in report.by),
        percent(cell["success"]),
        span(cell["ci_low"], cell["ci_high"]) or "–",
        str(cell["n"]),
        str(cell["n_cases"]),
        percent(cell["strict"]),
        percent(cell["naive"]),
    ]
    if report.baseline is None:
        return row
    if pd.isna(cell["difference"]):
        return [*row, "–", "–"]

    gap, low, high = (points(cell[c]) for c in ("difference", "diff_low", "diff_high"))
    return [*row, f"{gap} [{low}, {high}]", f"{cell['p_holm']:.3f}"]


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(map(_tex, cells)) + r" \\"


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
        # What stands for a hidden character is between these.
        "⟨": r"\textlangle{}",
        "⟩": r"\textrangle{}",
    }
)


def _tex(text: str) -> str:
    return visible(" ".join(text.split("\n"))).translate(_TEX)


def render_junit(report: Report, gate: GateResult | None = None) -> str:
    """Return JUnit XML: a suite for each cell, a test for each of its cases, and a suite for the
    checks of a gate.

    A case fails where no majority of its judged trials succeeded. One that only the provider's
    failures speak of is an error, one without a target or without a record is skipped.
    """
    # The standard library's writer is enough for this: nothing is read, and it escapes all text.
    root = ET.Element("testsuites", name=_xml(report.title))
    if gate is not None:
        _gate_suite(root, gate)

    for values, part in groups(report.headline, report.by):
        name = report.cell_name(dict(zip(report.by, values, strict=True)))
        _cell_suite(root, name, part)

    # A viewer shows these counts, and does not count for itself.
    for element in (*root, root):
        for tag, attribute in _COUNTED.items():
            element.set(attribute, str(len(list(element.iter(tag)))))
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


_COUNTED = {"testcase": "tests", "failure": "failures", "error": "errors", "skipped": "skipped"}
"""Tag -> the attribute of a suite with the number of its elements."""
_COLUMNS = (
    "case_id", "trial_id", "outcome", "sub_code", "detail", "missing_reason", "score_success",
    "latency", "raw",
)  # fmt: skip


def _gate_suite(root: ET.Element, gate: GateResult) -> None:
    suite = _suite(root, "gate")
    for check in gate.checks:
        test = _test(suite, "gate", f"{check.cell}: {check.metric}")
        if not check.ok:
            _add(test, "failure", check.sentence)


def _cell_suite(root: ET.Element, name: str, part: pd.DataFrame) -> None:
    suite = _suite(root, name)
    # Column by column: a frame for each case would take a hundred times as long.
    columns = [part[c].astype(object).where(part[c].notna(), None).tolist() for c in _COLUMNS]
    cases: dict[str, list[dict[str, Any]]] = {}
    for values in zip(*columns, strict=True):
        row = dict(zip(_COLUMNS, values, strict=True))
        cases.setdefault(str(row["case_id"]), []).append(row)

    for case_id, trials in cases.items():
        test = _test(suite, name, case_id, sum(t["latency"] or 0.0 for t in trials))
        _judge(test, trials)


def _suite(root: ET.Element, name: str) -> ET.Element:
    return ET.SubElement(root, "testsuite", name=_xml(name))


def _test(suite: ET.Element, group: str, name: str, seconds: float = 0.0) -> ET.Element:
    return ET.SubElement(
        suite, "testcase", classname=_xml(group), name=_xml(name), time=f"{seconds:.3f}"
    )


def _judge(test: ET.Element, trials: list[dict[str, Any]]) -> None:
    judged = [t for t in trials if t["score_success"] is not None]
    errors = [t for t in trials if t["outcome"] == "provider_error"]

    if judged:
        _judge_by_majority(test, judged)
    elif errors:
        first = errors[0]
        _add(test, "error", f"{first['missing_reason']}: {first['detail']}")
    else:
        _add(test, "skipped", trials[0]["missing_reason"] or UNRECORDED)


def _judge_by_majority(test: ET.Element, judged: list[dict[str, Any]]) -> None:
    # A tie is not a majority.
    wrong = [t for t in judged if not t["score_success"]]
    right = len(judged) - len(wrong)
    if right > len(wrong):  # a tie is no majority
        return

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
    return _NOT_XML.sub(_stand_in, text)


_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def _stand_in(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)  # Unicode's pictures of control characters begin here
    return "\N{REPLACEMENT CHARACTER}"


# The writers of reports. They take a gate, or None, whether or not they have a place for it.


def _page(report: Report, file: Path, gate: GateResult | None) -> None:
    file.write_text(render_report(report, page=True, gate=gate), encoding="utf-8")


def _markdown(report: Report, file: Path, gate: GateResult | None) -> None:
    file.write_text(render_markdown(report, gate), encoding="utf-8")


def _csv(report: Report, file: Path, gate: GateResult | None) -> None:
    plain_cells(report.frame).to_csv(file, index=False)


def _parquet(report: Report, file: Path, gate: GateResult | None) -> None:
    report.frame.to_parquet(file, index=False)


def _workbook(report: Report, file: Path, gate: GateResult | None) -> None:
    write_workbook(report, file)


def _latex(report: Report, file: Path, gate: GateResult | None) -> None:
    file.write_text(render_latex(report), encoding="utf-8")


def _junit(report: Report, file: Path, gate: GateResult | None) -> None:
    file.write_text(render_junit(report, gate), encoding="utf-8")


WRITERS: Mapping[str, Callable[[Report, Path, GateResult | None], None]] = {
    ".html": _page,
    ".md": _markdown,
    ".csv": _csv,
    ".xlsx": _workbook,
    ".parquet": _parquet,
    ".tex": _latex,
    ".xml": _junit,
}
"""Suffix -> what writes such a file: one self-contained page, Markdown, the frame of cells as CSV
or Parquet, all tables as an Excel workbook, a LaTeX table, JUnit XML. Only the page, Markdown and
JUnit have a place for a gate."""
