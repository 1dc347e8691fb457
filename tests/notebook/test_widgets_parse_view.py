"""The parse view without a browser: payload, offsets, bundle, export."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("anywidget", reason="the parse view needs the jupyter extra")

from tests.render_samples import EXAMPLE, HOSTILE, example, hostile, plain, several
from toolparse_lab.core import hooks
from toolparse_lab.core.errors import BadOptions
from toolparse_lab.core.types import ParseResult
from toolparse_lab.notebook import ParseView, export_html
from toolparse_lab.notebook.page import front
from toolparse_lab.notebook.payload import MAX_SPANS, MAX_TEXT, payload_json, payload_of
from toolparse_lab.views.show import visible


def stage_of(payload: dict[str, Any], name: str) -> dict[str, Any]:
    return next(s for s in payload["stages"] if s["id"] == name)


def marked(payload: dict[str, Any], name: str) -> list[tuple[str, str, list[str]]]:
    """(kind, shown text, paths of its nodes) of every run's innermost mark, as the front end would
    read it."""
    stage = stage_of(payload, name)
    units = stage["text"].encode("utf-16-le")
    out = []
    runs = stage["runs"]
    i = 0
    while i < len(runs):
        start, end, n = runs[i : i + 3]
        stack = runs[i + 3 : i + 3 + n]
        i += 3 + n
        if stack:
            kind, _, *targets = stage["marks"][stack[-1]]
            nodes = payload["nodes"]
            paths = [nodes[t]["path"] for t in targets if t < len(nodes)]
            out.append(
                (payload["kinds"][kind], units[2 * start : 2 * end].decode("utf-16-le"), paths)
            )
    return out


def test_raw_stage_marks_exactly_the_value() -> None:
    payload = payload_of(example())
    assert ("coerced", "1", ["/a"]) in marked(payload, "raw")
    assert [n["path"] for n in payload["nodes"]] == ["", "/a"]
    assert payload["nodes"][1]["start"] == EXAMPLE.index('1"')


def test_offsets_survive_emoji_and_hidden_characters() -> None:
    found = marked(payload_of(several()), "raw")
    assert ("argument", "Zürich 😀", ["/city"]) in found
    assert ("coerced", "3", ["/days"]) in found
    assert ("coerced", "rain⟨202E⟩⟨ESC⟩[31m", ["/options/fields/1"]) in found


def test_stages_show_what_each_did() -> None:
    payload = payload_of(several())
    repaired = marked(payload, "repaired")
    assert ("dropped", "'", []) in repaired
    assert ("added", '"', []) in repaired
    assert ("added", "}}", []) in repaired
    assert ("argument", "5", ["/topic"]) in repaired, "a value ends before what was added behind it"
    assert ("coerced", '"3"', ["/days"]) in marked(payload, "decoded")
    assert ("coerced", "3", ["/days"]) in marked(payload, "coerced")
    assert "the body could not be read: truncated" in stage_of(payload, "coerced")["text"]


def test_json_stages_are_json() -> None:
    result = example()
    payload = payload_of(result)
    for name, text in (
        ("decoded", result.calls[0].source_json),
        ("coerced", result.calls[0].arguments_json),
    ):
        assert json.loads(stage_of(payload, name)["text"].removeprefix("f ")) == json.loads(text)


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_runs_partition_every_stage(text: str) -> None:
    payload = payload_of(hostile(text))
    json.dumps(payload, ensure_ascii=False).encode("utf-8")
    for stage in payload["stages"]:
        at, i, runs = 0, 0, stage["runs"]
        while i < len(runs):
            assert runs[i] == at
            at = runs[i + 1]
            i += 3 + runs[i + 2]
        assert at == len(stage["text"].encode("utf-16-le")) // 2
    assert stage_of(payload, "raw")["text"] == visible(hostile(text).raw)


def test_changes_are_linked_to_arguments() -> None:
    payload = payload_of(several())
    nodes = payload["nodes"]
    links = {c["rule"]: [nodes[n]["path"] for n in c["nodes"]] for c in payload["changes"]}
    assert links["coerce.array-from-csv"] == ["/options/fields"]
    assert links["validate.enum"] == ["/units"]
    assert links["rjson.trailing-comma"] == []
    assert [c["lossless"] for c in payload["changes"] if c["rule"] == "coerce.array-from-csv"] == [
        False
    ]


def test_long_text_and_many_arguments_are_capped_with_notes() -> None:
    payload = payload_of(plain("😀" * 300_000))
    assert len(stage_of(payload, "raw")["text"]) < MAX_TEXT + 100
    assert any("head and its tail" in n for n in payload["notes"])
    wide = json.dumps({f"k{i}": i for i in range(5_000)})
    result = example()
    call = dataclasses.replace(result.calls[0], source_json=wide, arguments_json=wide)
    payload = payload_of(dataclasses.replace(result, calls=(call,)))
    assert len(payload["nodes"]) == MAX_SPANS
    assert all(len(s["marks"]) <= MAX_SPANS for s in payload["stages"])
    assert any(f"first {MAX_SPANS:,}" in n for n in payload["notes"])


def test_deep_arguments() -> None:
    deep = '{"k":' * 1_000 + "1" + "}" * 1_000
    result = example()
    call = dataclasses.replace(result.calls[0], source_json=deep, arguments_json=deep, steps=())
    payload = payload_of(dataclasses.replace(result, calls=(call,)))
    assert stage_of(payload, "coerced")["text"].count("}") == 1_000


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
    assert view._payload["calls"] == 3


def test_bad_input() -> None:
    with pytest.raises(BadOptions, match="unknown stage"):
        ParseView(example(), stage="cooked")
    with pytest.raises(BadOptions, match="shows a ParseResult"):
        ParseView("text")  # type: ignore[arg-type]


def test_debug_gives_the_view() -> None:
    assert isinstance(example().debug(stage="repaired"), ParseView)


@pytest.mark.parametrize("text", [*HOSTILE.values(), "</script>", "]]>"])
def test_payload_cannot_leave_its_element(text: str) -> None:
    payload = payload_of(hostile(text))
    safe = payload_json(payload)
    assert not re.search(r"[<>&]", safe)
    assert safe.isascii()
    assert json.loads(safe) == payload


@pytest.mark.parametrize(
    "result", [example(), several(), plain("")], ids=["example", "several", "empty"]
)
def test_export_is_one_file_that_asks_for_nothing(result: ParseResult, tmp_path: Path) -> None:
    path = export_html(result, tmp_path / "view.html", title="A & B")
    page = path.read_text(encoding="utf-8")
    assert page.count("<script") == 2
    assert page.count("</script>") == 2
    assert "script-src &#x27;sha256-" in page
    assert not re.search(r"""(src|href)=|@import|url\(""", page.split("<noscript>")[0])
    assert "<title>A &amp; B</title>" in page


def test_front_end_puts_text_in_as_text_only() -> None:
    source = front("parse_view.js")
    assert "textContent" in source
    for word in (
        "innerHTML",
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
    ):
        assert word not in source


def test_nbconvert_shows_the_static_view() -> None:
    """Neither exporter has a kernel or a network: rich display and the widget's fallback both have
    to read there."""
    nbformat = pytest.importorskip("nbformat", reason="nbconvert needs the dev extra")
    nbconvert = pytest.importorskip("nbconvert", reason="nbconvert needs the dev extra")
    fallback, _ = ParseView(example())._repr_mimebundle_()
    book = nbformat.v4.new_notebook()
    for bundle in (hooks.mimebundle(example()), fallback):
        output = nbformat.v4.new_output("display_data", data=bundle)
        book.cells.append(nbformat.v4.new_code_cell("result", outputs=[output], execution_count=1))
    exporter = nbconvert.HTMLExporter()
    page, _ = exporter.from_notebook_node(book)
    assert page.count('class="toolparse-raw"') == 2
