"""Reports as files: a page, Markdown, tables for programs, LaTeX for papers, JUnit XML for continuous integration."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from ...errors import BadOptions, StoreError
from .cells import UNRECORDED, groups
from .markdown import render_comparison_markdown, render_markdown
from .text import percent, points, span

if TYPE_CHECKING:
    from .comparison import ArmComparison
    from .gates import GateResult
    from .report import Report


def save_report(report: Report, path: str | Path, gate: GateResult | None = None) -> Path:
    """Write a report as its suffix says; raises BadOptions for a suffix that `WRITERS` lacks, and StoreError."""
    return _save(path, WRITERS, lambda writer, file: writer(report, file, gate), "a report")


def save_comparison(comparison: ArmComparison, path: str | Path) -> Path:
    """Write a comparison: .html, .md, .csv or .parquet; raises BadOptions for another suffix, and StoreError."""
    from .comparison_html import render_comparison_page

    writers: Mapping[str, Callable[[Path], object]] = {
        ".html": lambda f: f.write_text(render_comparison_page(comparison), encoding="utf-8"),
        ".md": lambda f: f.write_text(render_comparison_markdown(comparison), encoding="utf-8"),
        ".csv": lambda f: comparison.frame.to_csv(f, index=False),
        ".parquet": lambda f: comparison.frame.to_parquet(f, index=False),
    }
    return _save(path, writers, lambda writer, file: writer(file), "a comparison")


def _save(path: str | Path, writers: Mapping[str, Any], write: Callable[[Any, Path], object], what: str) -> Path:
    file = Path(path)
    writer = writers.get(file.suffix.lower())
    if writer is None:
        raise BadOptions(f"{what} is not written as this kind of file", got=file.name, expected=", ".join(writers))
    try:
        write(writer, file)
    except OSError as e:
        raise StoreError(f"{what} cannot be written", got=f"{path}: {e.strerror or e}") from None
    return file


def render_latex(report: Report) -> str:
    r"""The cells as a LaTeX table; it takes ``\usepackage{booktabs}``."""
    against = report.baseline is not None
    level = f"{report.level:.0%}"
    head = [*(c.replace("_", " ") for c in report.by), "success", f"{level} interval", "n", "cases", "strict", "naive"]
    head += [f"against {report.baseline}", "p (Holm)"] if against else []
    lines = [
        f"% {' '.join(report.title.split())}. Success in percent, policy {report.policy}, intervals clustered by case.",
        f"\\begin{{tabular}}{{{'l' * len(report.by)}{'r' * (len(head) - len(report.by))}}}",
        "\\toprule",
        " & ".join(map(_tex, head)) + r" \\",
        "\\midrule",
    ]
    for cell in report.frame.to_dict("records"):
        row = [str(cell[c]) for c in report.by]
        row += [percent(cell["success"]), span(cell["ci_low"], cell["ci_high"]) or "–", str(cell["n"])]
        row += [str(cell["n_cases"]), percent(cell["strict"]), percent(cell["naive"])]
        if against:
            known = not pd.isna(cell["difference"])
            row += (
                [f"{points(cell['difference'])} [{points(cell['diff_low'])}, {points(cell['diff_high'])}]"]
                if known
                else ["–"]
            )
            row += [f"{cell['p_holm']:.3f}" if known else "–"]
        lines.append(" & ".join(map(_tex, row)) + r" \\")
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}", ""])


_TEX = str.maketrans(
    {**{c: "\\" + c for c in "&%$#_{}"}, "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "–": "--"}
    | {"^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}", "−": "$-$", "\xa0": "~"}
)


def _tex(text: str) -> str:
    return " ".join(text.split(" ")).translate(_TEX).replace("\n", " ")


def render_junit(report: Report, gate: GateResult | None = None) -> str:
    """JUnit XML: a suite for each cell, a test for each of its cases, and a suite for the checks of a gate.

    A case fails where no majority of its judged trials succeeded. One that only the provider's failures speak of is an
    error, one without a target or without a record is skipped.
    """
    root = ET.Element("testsuites", name=_xml(report.title))
    if gate is not None:
        suite = _suite(root, "gate")
        for check in gate.checks:
            test = _test(suite, "gate", f"{check.cell}: {check.metric}")
            if not check.ok:
                _say(test, "failure", check.sentence)
    for values, part in groups(report.headline, report.by):
        name = report.cell_name(dict(zip(report.by, values, strict=True)))
        suite = _suite(root, name)
        rows: dict[str, list[dict[str, Any]]] = {}
        # Column by column: a frame for each case would take a hundred times as long.
        columns = (part[c].astype(object).where(part[c].notna(), None).tolist() for c in _TOLD)
        for told in zip(*columns, strict=True):
            row = dict(zip(_TOLD, told, strict=True))
            rows.setdefault(str(row["case_id"]), []).append(row)
        for case_id, trials in rows.items():
            test = _test(suite, name, case_id, sum(t["latency"] or 0.0 for t in trials))
            _judge(test, trials)
    for element in (*root, root):
        for tag, plural in (
            ("testcase", "tests"),
            ("failure", "failures"),
            ("error", "errors"),
            ("skipped", "skipped"),
        ):
            element.set(plural, str(len(list(element.iter(tag)))))
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


_TOLD = (
    "case_id", "trial_id", "outcome", "sub_code", "detail", "missing_reason", "score_success", "latency", "raw",
)  # fmt: skip


def _suite(root: ET.Element, name: str) -> ET.Element:
    return ET.SubElement(root, "testsuite", name=_xml(name))


def _test(suite: ET.Element, group: str, name: str, seconds: float = 0.0) -> ET.Element:
    return ET.SubElement(suite, "testcase", classname=_xml(group), name=_xml(name), time=f"{seconds:.3f}")


def _judge(test: ET.Element, trials: list[dict[str, Any]]) -> None:
    judged = [t for t in trials if t["score_success"] is not None]
    right = sum(bool(t["score_success"]) for t in judged)
    if judged and 2 * right > len(judged):
        return
    failed = [t for t in judged if not t["score_success"]] or trials
    first = next((t for t in failed if judged or t["outcome"] == "provider_error"), failed[0])
    if judged:
        code = "/".join(str(first[c]) for c in ("outcome", "sub_code") if first[c])
        told = f"{right} of {len(judged)} trials succeeded; {code}: {first['detail']}"
        _say(test, "failure", told, f"trial {first['trial_id']}\n{first['raw'] or ''}")
    elif first["outcome"] == "provider_error":
        _say(test, "error", f"{first['missing_reason']}: {first['detail']}")
    else:
        _say(test, "skipped", first["missing_reason"] or UNRECORDED)


def _say(test: ET.Element, kind: str, message: str, text: str | None = None) -> None:
    said = ET.SubElement(test, kind, message=_xml(message))
    if text is not None:
        said.text = _xml(text)


def _xml(text: str) -> str:
    """Text without the characters that XML cannot hold: control characters as their pictures, others replaced."""
    out = []
    for c in text:
        if c < " " and c not in "\t\n\r":
            out.append(chr(0x2400 + ord(c)))
        else:
            out.append("\ufffd" if "\ud800" <= c <= "\udfff" or c in "\ufffe\uffff" else c)
    return "".join(out)


def _page(report: Report, file: Path, gate: GateResult | None) -> None:
    file.write_text(report.html(page=True, gate=gate), encoding="utf-8")


def _markdown(report: Report, file: Path, gate: GateResult | None) -> None:
    file.write_text(render_markdown(report, gate), encoding="utf-8")


def _csv(report: Report, file: Path, gate: GateResult | None) -> None:
    report.frame.to_csv(file, index=False)


def _parquet(report: Report, file: Path, gate: GateResult | None) -> None:
    report.frame.to_parquet(file, index=False)


def _latex(report: Report, file: Path, gate: GateResult | None) -> None:
    file.write_text(render_latex(report), encoding="utf-8")


def _junit(report: Report, file: Path, gate: GateResult | None) -> None:
    file.write_text(render_junit(report, gate), encoding="utf-8")


WRITERS: Mapping[str, Callable[[Report, Path, GateResult | None], None]] = {
    ".html": _page,
    ".md": _markdown,
    ".csv": _csv,
    ".parquet": _parquet,
    ".tex": _latex,
    ".xml": _junit,
}
"""Suffix -> what writes such a file: one self-contained page, Markdown, the frame of cells as CSV or Parquet, a LaTeX
table, JUnit XML. Only the page, Markdown and JUnit have a place for a gate."""
