"""Two readings of one text side by side: its rows, its HTML, and the widget's payload."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import toolparse_lab as tp
from tests.render_samples import HOSTILE, hostile
from tests.tables import asked_of
from tests.views.test_html import Reader
from toolparse_lab.core.errors import BadOptions
from toolparse_lab.core.types import ParseResult
from toolparse_lab.views import render_side_by_side
from toolparse_lab.views.show import HIDDEN, visible
from toolparse_lab.views.side_by_side import pieces_of, side_rows

TOOLS = [
    {
        "name": "f",
        "parameters": {
            "properties": {
                "a": {"type": "integer"},
                "b": {"type": "array", "items": {"type": "number"}},
                "c": {"type": "boolean"},
            }
        },
    }
]
TEXT = (
    'Sure.\n<tool_call>{"name": "f", "arguments": {"a": "12", "b": ["1.5", 2], "c": "yes",}}'
    '</tool_call> <tool_call>{"name": "f", "arguments": {"a": 3}}</tool_call>'
)


def read(policy: str = "safe", protocol: str = "hermes") -> ParseResult:
    return tp.parse(TEXT, protocol, TOOLS, {"coerce": policy})


def test_two_policies_have_a_row_for_each_change_with_its_characters() -> None:
    rows = side_rows(read("none"), read("lossy"))
    found = [
        (
            row.path,
            row.span.of(TEXT) if row.span else None,
            row.sides[0].value,
            [(c.before, c.after, c.rule, c.lossless) for c in row.sides[1].changes],
        )
        for row in rows
    ]
    repair = ("", ",", "", [(",", "", "rjson.trailing-comma", True)])
    assert found == [
        ("/a", "12", '"12"', [('"12"', "12", "coerce.integer-from-string", True)]),
        ("/b/0", "1.5", '"1.5"', [('"1.5"', "1.5", "coerce.number-from-string", True)]),
        ("/c", "yes", '"yes"', [('"yes"', "true", "coerce.lossy", False)]),
        repair,
    ]
    assert [row.number for row in rows] == [1, 2, 3, 4]
    assert [row.differs for row in rows] == [True, True, True, False]
    assert [c.rule for c in rows[3].sides[0].changes] == ["rjson.trailing-comma"]


def test_two_protocols_differ_in_the_calls_that_one_does_not_see() -> None:
    rows = side_rows(read(), read(protocol="gemma"))
    assert [(row.call, row.path) for row in rows if row.sides[0].value and not row.path] == [
        (0, ""),
        (1, ""),
    ]
    assert {row.sides[1].value for row in rows} == {""}


def test_a_stored_reading_is_compared_as_it_is_and_equal_ones_say_so() -> None:
    stored = ParseResult.from_dict(json.loads(read("none").to_json()))
    now = read()
    assert side_rows(stored, now) == side_rows(read("none"), now)
    plain = tp.parse("Hi", "hermes")
    assert "neither changed anything" in render_side_by_side(plain, plain)
    with pytest.raises(BadOptions, match="of one text"):
        side_rows(now, plain)


def test_the_pieces_are_the_text() -> None:
    rows = side_rows(read("none"), read("lossy"))
    pieces = list(pieces_of(TEXT, rows))
    assert "".join(text for text, _ in pieces) == TEXT
    assert [(text, numbers) for text, numbers in pieces if numbers] == [
        ("12", (1,)), ("1.5", (2,)), ("yes", (3,)), (",", (4,)),
    ]  # fmt: skip


@asked_of("text", HOSTILE.values(), ids=HOSTILE)
def test_model_text_is_text_in_the_page(text: str) -> None:
    result = hostile(text)
    other = tp.parse(result.raw, "gemma", [])
    page = Reader(render_side_by_side(result, other, (text, "b")))
    assert visible(text)[:20].strip() in "".join(page.text)


def test_the_widget_holds_text_alone_and_writes_a_page(tmp_path: Path) -> None:
    pytest.importorskip("anywidget", reason="the views need the jupyter extra")
    from toolparse_lab.notebook import CoercionDiff

    view = CoercionDiff(read("none"), read("lossy"), ("none", "\x1b[31m<lossy>"))
    assert view.rows == side_rows(read("none"), read("lossy"))
    payload = view._html
    assert not HIDDEN.search(payload.replace("\n", ""))
    assert "call 0 /c" in str(view)
    assert not HIDDEN.search(str(view).replace("\n", ""))
    page = view.export_html(tmp_path / "side.html").read_text("utf-8")
    assert "<lossy>" not in page
