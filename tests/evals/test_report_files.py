"""Reports and comparisons as files that other programs read."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pandas as pd
import pytest

from tests.evals.test_report import EVIL, FRAME, Outline, make, scored
from toolparse_lab.core.errors import BadOptions
from toolparse_lab.evals.frames.recorded import trials_frame
from toolparse_lab.evals.reports.figures.comparison import compare_arms
from toolparse_lab.evals.reports.figures.report import Report
from toolparse_lab.evals.reports.pages.files import WRITERS
from toolparse_lab.evals.scoring.score import Score


def junit(report: Report, path: Path) -> ET.Element:
    return ET.fromstring(
        report.save(path / "r.xml", gate=report.gate(success=0.6)).read_text("utf-8")
    )


def test_junit_has_a_suite_for_each_cell_and_for_the_gate(tmp_path: Path) -> None:
    root = junit(Report(FRAME), tmp_path)
    suites = {s.get("name"): s for s in root}
    assert list(suites) == [
        "gate",
        "m1 · hermes",
        "m1 · morph_xml",
        f"{EVIL} · hermes",
        f"{EVIL} · morph_xml",
    ]
    hermes = {t.get("name"): [c.tag for c in t] for t in suites["m1 · hermes"]}
    assert hermes == {
        "case-0": [],
        "case-1": [],
        "case-2": [],
        "case-3": ["failure"],
        "case-4": ["error"],
        "case-5": ["skipped"],
    }
    assert [c.tag for t in suites[f"{EVIL} · morph_xml"] for c in t] == ["skipped"]
    for element in (root, *root):
        for plural, tag in (
            ("tests", "testcase"),
            ("failures", "failure"),
            ("errors", "error"),
            ("skipped", "skipped"),
        ):
            assert element.get(plural) == str(len(list(element.iter(tag))))
    failure = suites["m1 · hermes"].find("testcase[@name='case-3']/failure")
    assert failure is not None
    assert str(failure.get("message")).startswith("0 of 2 trials succeeded; wrong_call/name: ")
    assert "trial id-m1/hermes/3/0-safe" in str(failure.text)
    gate = {t.get("name"): [c.get("message") for c in t] for t in suites["gate"]}
    assert gate["m1 · hermes: success"] == []
    assert gate["m1 · morph_xml: success"] == ["m1 · morph_xml: success is 50 %, below 60 % (n 8)"]


def test_a_tie_of_trials_is_a_failure(tmp_path: Path) -> None:
    report = Report(
        trials_frame(
            [make("m", "p", 0, 0, scored("correct")), make("m", "p", 0, 1, scored("wrong_call"))]
        )
    )
    assert [c.tag for c in junit(report, tmp_path).iter("testcase")][-1] == "testcase"
    assert len(list(junit(report, tmp_path).iter("failure"))) == 2, "the gate's, and the case's"


@pytest.mark.parametrize(
    "text", ["\x00\x08 nul", "\ud800 alone", "\ufffe", "]]> <![CDATA[ & < >", EVIL]
)
def test_junit_of_hostile_text_is_xml(text: str, tmp_path: Path) -> None:
    trial = make(
        "m", "p", 0, 0, Score("wrong_call", "name", text, False, False, False, False, False, False)
    )
    assert "trials succeeded" in ET.tostring(
        junit(Report(trials_frame([trial])), tmp_path), "unicode"
    )


def test_latex_escapes_and_has_equal_rows(tmp_path: Path) -> None:
    frame = FRAME.copy()
    frame["model"] = frame["model"].astype(str).replace("m1", r"50% of_m#1 \ {x} ~ ^ $")
    text = Report(frame, baseline="hermes").save(tmp_path / "r.tex").read_text("utf-8")
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert len(rows) == 5
    assert {len(re.findall(r"(?<!\\)&", row)) for row in rows} == {9}
    assert r"50\% of\_m\#1 \textbackslash{} \{x\} \textasciitilde{} \textasciicircum{} \$" in text
    assert text.count("{") - text.count(r"\{") == text.count("}") - text.count(r"\}")
    assert "$-$25" in text


def test_every_kind_of_file_is_tried() -> None:
    assert set(WRITERS) == {".html", ".md", ".csv", ".parquet", ".tex", ".xml"}


def test_a_gate_stands_in_the_page_and_in_markdown(tmp_path: Path) -> None:
    report = Report(FRAME)
    gate = report.gate(success=0.6)
    page = Outline(report.save(tmp_path / "r.html", gate=gate).read_text("utf-8"))
    assert "Gate failed: 3 of 4 checks" in page.text
    assert "below 60 %" in page.text
    assert "answers against" in page.text
    assert "## Gate failed" in report.save(tmp_path / "r.md", gate=gate).read_text("utf-8")
    assert "Gate" not in report.html(page=True)
    assert Outline(gate._repr_html_()).text


def test_comparisons_are_written(tmp_path: Path) -> None:
    found = compare_arms(FRAME, "hermes", "morph_xml", within="model")
    page = found.save(tmp_path / "c.html").read_text("utf-8")
    outline = Outline(page)
    assert page.startswith("<!doctype html>")
    assert EVIL in outline.text
    assert "script" not in {t for t, _ in outline.tags}
    assert "Cases that flip 3 cases" in outline.text
    assert "case-1 lost: right → call not read" in outline.text
    assert "Cases that only one side has 4 cases" in outline.text
    text = found.save(tmp_path / "c.md").read_text("utf-8")
    assert "## Flipped cases: 3" in text
    assert "<script>" not in text
    assert len(pd.read_csv(found.save(tmp_path / "c.csv"))) == 2
    pd.testing.assert_frame_equal(pd.read_parquet(found.save(tmp_path / "c.parquet")), found.frame)
    with pytest.raises(BadOptions, match="a comparison is not written"):
        found.save(tmp_path / "c.docx")
