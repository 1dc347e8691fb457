"""No text that the project prints holds a character on which a terminal or an editor acts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolparse_lab as tp
from tests.tables import asked_of
from toolparse_lab.core.errors import ToolparseError
from toolparse_lab.core.values.printable import printable, printable_lines
from toolparse_lab.evals.cases.checks import validate_cases

# All of C0 but the line break and the tab, C1, marks of direction, and line separators.
ACTS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029]")
EVIL = "a\x1b[31mred\x1b]0;title\x07\x08\x7f\x9b31m\u202ertl\u2066\u2028z"
TOOLS: list[dict[str, Any]] = [
    {
        "name": "f",
        "description": EVIL,
        "parameters": {
            "type": "object",
            "properties": {"x": {"type": "integer"}, EVIL: {"type": "string"}},
        },
    }
]
RAW = f'<tool_call>{{"name": "f", "arguments": {{"x": "{EVIL}", "{EVIL}": 5}}}}</tool_call>{EVIL}'


@given(st.text())
def test_printable_text_is_printable_and_other_text_stays(text: str) -> None:
    assert printable(text).isprintable()
    assert printable_lines(text).replace("\n", "").isprintable()
    if text.isprintable():
        assert printable(text) == text


def texts_of(thing: Any) -> Iterator[tuple[str, str]]:
    yield "str", str(thing)
    yield "repr", repr(thing)
    if hasattr(thing, "_repr_html_"):
        yield "HTML", thing._repr_html_() or ""
    if hasattr(thing, "_repr_mimebundle_"):
        bundle = thing._repr_mimebundle_()
        for kind, text in (bundle[0] if isinstance(bundle, tuple) else bundle).items():
            if isinstance(text, str):
                yield kind, text


def check(name: str, thing: Any) -> None:
    for kind, text in texts_of(thing):
        assert not ACTS.search(text), f"{kind} of {name}"


@asked_of("protocol", ["hermes", "auto", "morph_xml"])
def test_a_parse(protocol: str) -> None:
    result = tp.parse(RAW, protocol, TOOLS)
    check("result", result)
    check("detection", tp.detect(RAW, TOOLS))
    for call in result.calls:
        check("call", call)
        for part in (*call.problems, *call.steps, *call.edits):
            check(type(part).__name__, part)
    assert not ACTS.search(result.why())


def test_a_comparison() -> None:
    check("comparison", tp.compare(RAW, TOOLS))


@asked_of(
    "fault",
    [
        lambda: tp.parse("x", EVIL),
        lambda: tp.parse("x", "hermes", [{"name": EVIL, "parameters": EVIL}]),
        lambda: tp.Model(EVIL, api_base=EVIL),
    ],
)
def test_errors(fault: Callable[[], Any]) -> None:
    with pytest.raises(ToolparseError) as caught:
        fault()
    check("error", caught.value)


def test_a_run_and_its_report(tmp_path: Path) -> None:
    pytest.importorskip("litellm", reason="runs need the lab extra")
    rows = [
        {
            "id": f"c{i} {EVIL}",
            "input": EVIL,
            "tools": TOOLS,
            "target": [{"name": "f", "arguments": {"x": 1}}],
            "raw": RAW if i % 3 else EVIL,
            "model": ("m", EVIL)[i % 2],
            "protocol": ("hermes", "morph-xml")[i // 2 % 2],
            "metadata": {"category": EVIL},
        }
        for i in range(12)
    ]
    with tp.Lab(tmp_path / "runs.db") as lab:
        run = lab.ingest(rows)
        trial = run.failures()[0]
        things = {
            "run": run,
            "plan": run.plan,
            "cases": run.plan.cases,
            "case": run.plan.cases[0],
            "trial": trial,
            "score": trial.score,
            "failures": run.failures(),
            "report": run.report(),
            "validation": validate_cases(run.plan.cases),
        }
        for name, thing in things.items():
            check(name, thing)
        for suffix in ("md", "tex", "csv", "html"):
            path = run.report().save(tmp_path / f"report.{suffix}")
            assert not ACTS.search(path.read_text("utf-8")), suffix
        assert not ACTS.search(trial.as_python())
        with pytest.raises(ToolparseError) as caught:
            run.trial(EVIL)
        check("error", caught.value)
