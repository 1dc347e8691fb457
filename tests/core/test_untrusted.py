"""What a notebook shows that nobody trusts: no styles, so only white space keeps words apart."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

import pytest

import toolparse_lab as tp
from tests.evals.test_report_order import TOOL, trials
from tests.tables import asked_of
from toolparse_lab.evals.frames.recorded import trials_frame
from toolparse_lab.evals.reports.figures.report import Report
from toolparse_lab.views import render_result

pytest.importorskip("anywidget")

INLINE = "(?:a|b|span|i|em|code|small|strong|del|ins)"
# An inline element right behind another: their words run together. A break between them is one.
JOINED = re.compile(rf"[^<>\s]</{INLINE}>(?:</?{INLINE}\b[^>]*>)*<{INLINE}\b[^>]*>[^<>\s][^<]*")
# The text that was parsed is cut into marks at any place.
RAW = re.compile(r'<div class="raw\b.*?</div>', re.DOTALL)


@cache
def report() -> Report:
    frame = trials_frame(trials(["m0", "m1"], ["json", "xml"]))
    return Report(frame, ["model", "arm"], baseline="json")


def browser() -> str:
    from toolparse_lab.notebook.browser import Browser

    return Browser(report().trials).static_html()


DAMAGED = '<tool_call>{"name": "f", "arguments": {"a": "5",}}</tool_call>'
TWICE = '<tool_call>{"name": "f", "arguments": {"a": 5, "a": 6}}</tool_call>'
VIEWS: dict[str, Callable[[], str]] = {
    "report": lambda: report().html(),
    "comparison": lambda: str(report().compare("json", "xml")._repr_html_()),
    "matrix": lambda: str(report().matrix()._repr_html_()),
    "gate": lambda: str(report().gate(success=0.9)._repr_html_()),
    "repaired": lambda: render_result(tp.parse(DAMAGED, "hermes", (TOOL,))),
    "refused": lambda: render_result(tp.parse(TWICE, "hermes", (TOOL,))),
    "browser": browser,
}


@asked_of("name", VIEWS)
def test_words_stay_apart_without_styles(name: str) -> None:
    html = RAW.sub("", VIEWS[name]())
    assert JOINED.findall(html) == []


def test_joined_words_are_noticed() -> None:
    assert JOINED.findall('<b>40 %</b><span class="a">success</span>')
    assert not JOINED.findall("<b>40 %</b> <span>success</span>")
