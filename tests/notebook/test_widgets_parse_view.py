"""The parse view without a browser: payload, offsets, bundle, export."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path

import pytest

pytest.importorskip("anywidget", reason="the parse view needs the jupyter extra")

from tests.render_samples import EXAMPLE, HOSTILE, example, hostile, plain, several
from tests.tables import asked_of
from toolparse_lab.core.errors import BadOptions
from toolparse_lab.core.types import ParseResult
from toolparse_lab.notebook import ParseView, export_html
from toolparse_lab.notebook.page import front
from toolparse_lab.views.show import visible
from toolparse_lab.views.stages import Parts, parts_of


def marked(parts: Parts, name: str) -> list[tuple[str, str, list[str]]]:
    """(kind, shown text, paths of its nodes) of every mark of a stage."""
    (stage,) = (stage for stage in parts.stages if stage.id == name)
    found = re.findall(
        r'<span class="k-(\w+)[^"]*"(?: data-n="([^"]*)")?[^>]*>(.*?)</span>', stage.html
    )
    out = []
    for kind, of, text in found:
        numbers = [int(n) for n in of.split() if int(n) < len(parts.nodes)]
        shown = unescape(re.sub(r"<[^>]*>", "", text))
        out.append((kind, shown, [parts.nodes[n]["path"] for n in numbers]))
    return out


def shown(parts: Parts, name: str) -> str:
    (stage,) = (stage for stage in parts.stages if stage.id == name)
    return unescape(re.sub(r"<[^>]*>", "", stage.html))


def test_raw_stage_marks_exactly_the_value() -> None:
    parts = parts_of(example())
    assert ("coerced", "1", ["/a"]) in marked(parts, "raw")
    assert [n["path"] for n in parts.nodes] == ["", "/a"]
    assert parts.nodes[1]["start"] == EXAMPLE.index('1"')


def test_places_survive_emoji_and_hidden_characters() -> None:
    found = marked(parts_of(several()), "raw")
    assert ("argument", "Zürich 😀", ["/city"]) in found
    assert ("coerced", "3", ["/days"]) in found


def test_stages_show_what_each_did() -> None:
    parts = parts_of(several())
    repaired = marked(parts, "repaired")
    assert ("dropped", "'", []) in repaired
    assert ("added", '"', []) in repaired
    assert ("added", "}}", []) in repaired
    assert ("argument", "5", ["/topic"]) in repaired, "a value ends before what was added behind it"
    assert ("coerced", '"3"', ["/days"]) in marked(parts, "decoded")
    assert ("coerced", "3", ["/days"]) in marked(parts, "coerced")
    assert "the body could not be read: truncated" in shown(parts, "coerced")
    assert [stage.id for stage in parts_of(plain()).stages] == ["raw"], "none without a call"


def test_json_stages_are_json() -> None:
    result = example()
    parts = parts_of(result)
    for name, text in (
        ("decoded", result.calls[0].source_json),
        ("coerced", result.calls[0].arguments_json),
        ("checked", result.calls[0].arguments_json),
    ):
        assert json.loads(shown(parts, name).removeprefix("f ")) == json.loads(text)


@asked_of("text", HOSTILE.values(), ids=HOSTILE)
def test_every_stage_shows_its_whole_text(text: str) -> None:
    result = hostile(text)
    assert shown(parts_of(result), "raw") == visible(result.raw)


def test_changes_are_linked_to_arguments() -> None:
    parts = parts_of(several())
    coerced = [c for c in parts.changes if c["kind"] == "coerce"]
    assert coerced
    assert all(parts.nodes[n]["path"] == c["path"] for c in coerced for n in c["nodes"])


def test_bundle_has_the_widget_and_a_static_view() -> None:
    view = ParseView(example())
    data, _ = view._repr_mimebundle_()
    assert set(data) == {"text/plain", "text/html", "application/vnd.jupyter.widget-view+json"}
    assert "rjson.trailing-comma" in data["text/html"]
    assert "<script" not in data["text/html"]


def test_view_follows_its_result() -> None:
    view = ParseView(example(), stage="coerced")
    view.pinned = "/a"
    view.result = several()
    assert view.pinned == ""
    assert view.stage == "coerced"
    assert view._html.count('aria-level="1"') == 3


def test_bad_input() -> None:
    with pytest.raises(BadOptions, match="unknown stage"):
        ParseView(example(), stage="cooked")
    with pytest.raises(BadOptions, match="shows a ParseResult"):
        ParseView("text")  # type: ignore[arg-type]


def test_debug_gives_the_view() -> None:
    assert isinstance(example().debug(stage="repaired"), ParseView)


@pytest.mark.parametrize(
    "result", [example(), several(), plain("")], ids=["example", "several", "empty"]
)
def test_export_is_one_file_that_asks_for_nothing(result: ParseResult, tmp_path: Path) -> None:
    path = export_html(result, tmp_path / "view.html", title="A & B")
    page = path.read_text(encoding="utf-8")
    assert page.count("<script") == page.count("</script>") == 1
    assert "script-src &#x27;sha256-" in page
    assert not re.search(r"""(src|href)=|@import|url\(""", page)
    assert "<title>A &amp; B</title>" in page


def test_the_front_end_words_nothing_and_asks_no_network() -> None:
    source = front()
    # The HTML of a part comes from Python alone: in one place for a part, in one for the whole.
    assert source.count("innerHTML") == 2
    for word in (
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "DOMParser",
        "eval(",
        "Function(",
        "fetch(",
        "XMLHttpRequest",
        "WebSocket",
        "import(",
        "http:",
        "https:",
        "createContextualFragment",
        "toLocaleString",
        '"table"',
    ):
        assert word not in source
