"""Static HTML: snapshots, an allow-list of tags and attributes, and model text that survives as
text and only that."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import toolparse_lab as tp
from tests.render_samples import EXAMPLE, HOSTILE, example, hostile, plain, several
from tests.tables import asked_of, each_case
from toolparse_lab.core.types import VERDICTS, Edit, ParseResult, Segment, Span
from toolparse_lab.views import render_diff, render_page, render_result, style
from toolparse_lab.views.html import look_of, standalone
from toolparse_lab.views.rows import Fault
from toolparse_lab.views.show import visible
from toolparse_lab.views.stages import KINDS, MAX_TEXT
from toolparse_lab.views.templating import style_sheet

SNAPSHOTS = Path(__file__).parents[1] / "snapshots_render"
TAGS = {"b", "button", "code", "del", "details", "div", "h3", "i", "ins", "li", "p", "section", "small", "span", "summary",
        "table", "tbody", "td", "th", "thead", "tr", "ul"}  # fmt: skip
NAMES = {
    "class",
    "style",
    "title",
    "role",
    "tabindex",
    "hidden",
    "open",
    "type",
    "scope",
    "colspan",
}


class Reader(HTMLParser):
    """Collects every tag, attribute and style, checks nesting, and keeps the text of the raw box
    apart."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[tuple[str, str]] = []
        self.text: list[str] = []
        self.raw: list[str] = []
        self.titles: list[str] = []
        self.feed(html)
        self.close()
        assert not self.open, f"left open: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS, f"tag {tag}"
        names = {name for name, _ in attrs if not name.startswith(("data-", "aria-"))}
        assert names <= NAMES, f"attributes of {tag}: {names}"
        values = {name: value or "" for name, value in attrs}
        assert not re.search(r"url|expression|import|javascript|[<>\\]", values.get("style", "")), (
            values["style"]
        )
        self.titles.append(values.get("title", ""))
        self.open.append((tag, values.get("class", "")))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        opened, _ = self.open.pop()
        assert opened == tag, f"</{tag}> closes <{opened}>"

    def handle_data(self, data: str) -> None:
        self.text.append(data)
        if any("toolparse-raw" in classes.split() for _, classes in self.open):
            self.raw.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"comment {data}")

    def handle_decl(self, decl: str) -> None:
        raise AssertionError(f"declaration {decl}")

    def unknown_decl(self, data: str) -> None:
        raise AssertionError(f"declaration {data}")

    def handle_pi(self, data: str) -> None:
        raise AssertionError(f"instruction {data}")


RESULTS = {"example": example(), "several": several(), "plain": plain()}


@pytest.mark.parametrize("name", RESULTS)
def test_snapshot(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """UPDATE_SNAPSHOTS=1 writes them anew; then look at what changed."""
    monkeypatch.setattr(ParseResult, "why", lambda self: "What happened & why.")
    html = (
        re.sub(r"(?<=>)(?=<(?:div|li|details|section|span)\b)", "\n", render_result(RESULTS[name]))
        + "\n"
    )
    path = SNAPSHOTS / f"{name}.html"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        SNAPSHOTS.mkdir(exist_ok=True)
        path.write_text(html, encoding="utf-8")
    assert html == path.read_text(encoding="utf-8"), (
        "if this is meant: UPDATE_SNAPSHOTS=1 pytest tests/views/test_html.py"
    )


@asked_of("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_stays_text(text: str) -> None:
    result = hostile(text)
    html = render_result(result)
    html.encode("utf-8")
    page = Reader(html)
    assert "".join(page.raw) == visible(result.raw)
    everything = "".join(page.text)
    assert visible(text) in everything
    Reader(render_diff(result))


def test_the_example_says_what_was_done() -> None:
    page = Reader(render_result(example()))
    text = " ".join(page.text)
    for word in (
        "hermes",
        "rjson.trailing-comma",
        "A comma before a closing bracket is dropped.",
        "45–46",
        "lossless",
    ):
        assert word in text
    assert "✓ after repair" in text
    assert any(t.startswith("argument /a = 1 · characters 45 to 46") for t in page.titles)


def test_lossy_steps_are_told_apart() -> None:
    text = "".join(Reader(render_diff(several())).text)
    assert text.count("lossy") == 1
    assert text.count("lossless") == 3
    assert "coerce.array-from-csv · lossy" in text


def test_diff_of_one_call_and_of_nothing() -> None:
    assert "coerce.integer-from-string" in render_diff(example().calls[0])
    assert "Nothing was coerced" in render_diff(several().calls[1])
    assert "No calls" in render_diff(plain())


def test_long_text_shows_head_and_tail() -> None:
    raw = "H" * 200_000 + "<b>" + "x" * 400_000 + "T" * 1_000
    page = Reader(render_result(plain(raw)))
    shown = "".join(page.raw)
    assert len(shown) < MAX_TEXT + 100
    assert shown.startswith("HHH")
    assert shown.endswith("TTT")
    assert f"of {len(raw):,} characters" in "".join(page.text)


def test_200_kb_of_markup_is_shown_whole() -> None:
    raw = HOSTILE["script"] * (200_000 // len(HOSTILE["script"]))
    assert "".join(Reader(render_result(plain(raw))).raw) == raw


def test_too_many_marks_end_with_a_note_and_all_the_text() -> None:
    raw = "ab" * 9_000
    segments = tuple(
        Segment("markup" if i % 2 else "text", Span(i, i + 1)) for i in range(len(raw))
    )
    result = dataclasses.replace(plain(raw), segments=segments)
    page = Reader(render_result(result))
    assert "".join(page.raw) == raw
    assert "is highlighted up to its first" in "".join(page.text)


def test_deep_arguments_render() -> None:
    deep = '{"k":' * 3_000 + "1" + "}" * 3_000
    result = example()
    call = dataclasses.replace(result.calls[0], source_json=deep, arguments_json=deep, steps=())
    text = "".join(Reader(render_result(dataclasses.replace(result, calls=(call,)))).text)
    assert "The tree shows the first" in text


def test_many_changes_stay_a_page_a_notebook_can_show() -> None:
    raw = EXAMPLE
    result = example()
    edits = tuple(Edit(Span(0, 0), f"{i}", "rjson.missing-comma") for i in range(5_000))
    steps = result.calls[0].steps * 5_000
    wide = json.dumps({f"k{i}": "v" for i in range(5_000)})
    call = dataclasses.replace(result.calls[0], edits=edits, steps=steps, arguments_json=wide)
    html = render_result(dataclasses.replace(result, calls=(call,)))
    page = Reader(html)
    assert len(html) < 500_000
    assert "".join(page.raw) == raw
    text = "".join(page.text)
    assert re.search(r"The list shows the first \d+ changes", text)
    assert re.search(r"The tree shows the first \d+ calls and arguments", text)
    assert "4,700 more changes are not shown." in "".join(Reader(render_diff(call)).text)


@each_case
@pytest.mark.parametrize("size", [10_000, 50_000])
def test_a_page_is_at_most_twenty_times_as_long_as_its_text(call: str, size: int) -> None:
    properties = {"x": {"type": "integer"}, "s": {"type": "string"}}
    tools = [{"name": "f", "parameters": {"type": "object", "properties": properties}}]
    raw = call * (size // len(call))
    html = render_result(tp.parse(raw, "hermes", tools))
    assert len(html) <= 20 * len(raw)
    # What is left out is told, and no text is.
    page = Reader(html)
    assert "".join(page.raw) == raw
    assert "more calls are not shown" in "".join(page.text)


def test_repairs_that_did_one_thing_are_one_row() -> None:
    html = render_result(
        tp.parse("<tool_call>{'name': 'f', 'arguments': {}}</tool_call>", "hermes")
    )
    assert html.count("<del") == 1
    assert "first at characters 12 to 13</span>" in html
    assert "<b>6 ×</b>" in html


def test_page_forbids_scripts_and_the_network() -> None:
    page = render_page("<Title> & \u202e", "<div>body</div>")
    assert page.startswith("<!doctype html>")
    assert "<title>&lt;Title&gt; &amp; ⟨202E⟩</title>" in page
    assert "default-src &#x27;none&#x27;" in page
    assert "script" not in page
    assert not re.search(r"https?:|//", page.replace("<!doctype", ""))


def test_page_refuses_sources_that_end_their_element() -> None:
    with pytest.raises(ValueError, match="module"):
        render_page("x", "", module="'</script>'")


def test_what_was_expected_stands_beside_what_was_found() -> None:
    text = '<tool_call>{"name": "f", "arguments": {"days": 2, "city": "Oslo"}}</tool_call>'
    faults = [
        Fault(0, "/days", "wrong_argument", "2", "1"),
        Fault(0, "/unit", "missing_argument", "", '"C"'),
    ]
    html = render_result(tp.parse(text, "hermes"), faults)
    # The mark covers the value alone.
    assert re.search(r'<span class="k-wrong"[^>]*>2</span>', html)
    assert html.count("k-wrong") == 3, "in the text, at the stage of expected, and in the legend"
    words = " ".join("".join(Reader(html).text).split())
    assert "days: 2 expected 1" in words
    assert 'unit: not there expected "C"' in words
    assert "“days” is 2; 1 was expected." in words


def test_alone_it_carries_the_style_and_the_marks_their_looks() -> None:
    page = standalone(render_result(example()))
    assert page.startswith("<style>.tpx")
    marks = re.findall(r'<span style="([^"]+)" class="k-(\w+)', page)
    assert {kind for _, kind in marks} >= {"name", "coerced", "edit"}
    assert all(css == style.MARKS[kind].css for css, kind in marks)


def test_every_kind_of_mark_has_a_look() -> None:
    css = style_sheet()
    assert all(f".k-{kind}" in css for kind in KINDS if kind != "call")
    assert "/*" not in css
    assert not re.search(r"@import|url\(|https?:", css)
    assert all(look_of(verdict)[1] for verdict in VERDICTS)
