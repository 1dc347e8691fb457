"""Static HTML: snapshots, an allow-list of tags and attributes, and model text that survives as
text and only that."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import pytest

import toolparse_lab as tp
from tests.render_samples import EXAMPLE, HOSTILE, example, hostile, plain, several
from tests.tables import each_case
from toolparse_lab.core.types import Edit, ParseResult, Segment, Span
from toolparse_lab.views import render_diff, render_page, render_result, style
from toolparse_lab.views.cells import MAX_STEPS, steps_cell
from toolparse_lab.views.html import MAX_TEXT
from toolparse_lab.views.rows import Change
from toolparse_lab.views.show import visible

SNAPSHOTS = Path(__file__).parents[1] / "snapshots_render"
ALLOWED = {
    "div": {"class", "style"},
    "span": {"class", "style", "title"},
    "table": {"style"},
    "thead": set(),
    "tbody": set(),
    "tr": {"style"},
    "th": {"style"},
    "td": {"style", "title"},
    "del": {"style"},
    "ins": {"style"},
}  # fmt: skip


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
        assert tag in ALLOWED, f"tag {tag}"
        names = [name for name, _ in attrs]
        assert set(names) <= ALLOWED[tag], f"attributes of {tag}: {names}"
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
        re.sub(r"(?<=>)(?=<(?:div|tr|table|td|span)\b)", "\n", render_result(RESULTS[name])) + "\n"
    )
    path = SNAPSHOTS / f"{name}.html"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        SNAPSHOTS.mkdir(exist_ok=True)
        path.write_text(html, encoding="utf-8")
    assert html == path.read_text(encoding="utf-8"), (
        "if this is meant: UPDATE_SNAPSHOTS=1 pytest tests/views/test_html.py"
    )


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_text_stays_text(text: str) -> None:
    result = hostile(text)
    html = render_result(result)
    html.encode("utf-8")
    page = Reader(html)
    assert "".join(page.raw) == visible(result.raw)
    everything = "".join(page.text)
    assert visible(text) in everything
    Reader(render_diff(result))


@pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS.keys())
def test_raw_text_is_shown_whole(result: ParseResult) -> None:
    assert "".join(Reader(render_result(result)).raw) == visible(result.raw)


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
    assert "1 call" in text
    assert "1 repair · 1 coercion" in text
    assert any(t.startswith("argument /a = 1 · characters 45 to 46") for t in page.titles)


def test_lossy_steps_are_told_apart() -> None:
    text = "".join(Reader(render_diff(several())).text)
    assert text.count("lossy") == 1
    assert text.count("lossless") == 3
    assert "coerce.array-from-csv lossy" in text


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
    assert f"{len(raw):,} are not shown." in "".join(page.text)


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
    assert "nothing is highlighted" in "".join(page.text)


def test_deep_arguments_render() -> None:
    deep = '{"k":' * 3_000 + "1" + "}" * 3_000
    result = example()
    call = dataclasses.replace(result.calls[0], source_json=deep, arguments_json=deep, steps=())
    text = "".join(Reader(render_result(dataclasses.replace(result, calls=(call,)))).text)
    assert "are not shown" in text


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
    assert "9,700 more changes are not shown." in text
    assert re.search(r"Arguments beyond the first \d+ are not shown", text)
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
    assert "characters 12 to 13</span>" in html
    assert " and 5 more" in html


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
    with pytest.raises(ValueError, match="css"):
        render_page("x", "", css="a::after{content:'</style>'}")


def test_many_coercions_of_one_argument_are_counted_and_stay_markup() -> None:
    change = Change("coerce", 0, "/a", "coerce.number-from-string", "1", "2", None)
    cell = str(steps_cell([change] * (MAX_STEPS + 3)))
    assert "3 more changes" in cell
    assert "&lt;div" not in cell


def test_the_style_sheet_of_the_parse_view_has_the_palette() -> None:
    css = files("toolparse_lab.notebook").joinpath("parse_view.css").read_text("utf-8")
    names = {"red": "VERMILLION"}
    for name, r, g, b in re.findall(r"--tp-(\w+): (\d+), (\d+), (\d+);", css):
        assert (
            style.constant(names.get(name, name.upper()))
            == f"#{int(r):02x}{int(g):02x}{int(b):02x}"
        )
    kinds = set(re.findall(r'data-inner="(\w+)"', css))
    assert kinds >= style.MARKS.keys()
    colors = {
        name: f"{r}, {g}, {b}"
        for name, r, g, b in re.findall(r"--tp-(\w+): (\d+), (\d+), (\d+);", css)
    }
    for kind, look in style.MARKS.items():
        written = re.search(rf'data-inner="{kind}"[^{{]*{{ ([^}}]*)}}', css)
        assert written, f"{kind} has no rule in notebook/parse_view.css"
        rule = re.sub(r"var\(--tp-(\w+)\)", lambda m: colors[m[1]], written[1])
        back, line = (
            re.sub(
                "#[0-9a-f]{6}", lambda m: str([int(m[0][i : i + 2], 16) for i in (1, 3, 5)]), css
            )
            for css in (look.color, look.line)
        )
        both = f"{kind} has one colour in views/style.py and another in notebook/parse_view.css"
        assert f"background: rgba({back.strip('[]')}, " in rule, both
        below = line.replace("[", "rgb(").replace("]", ")")
        assert f"border-bottom: {below};" in rule if below else "border-bottom" not in rule, both
