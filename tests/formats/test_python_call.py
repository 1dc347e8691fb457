"""Calls written as Python: strings that Python's own parser refuses, and what stands behind the
list."""

from __future__ import annotations

import ast
import random
import warnings

import pytest

import toolparse_lab as tp
from tests.laws import check_all
from tests.tables import each_case
from toolparse_lab.formats.python.reader import unescape_python

TOOLS = [
    {"name": "f", "parameters": {"type": "object", "properties": {"a": {}, "b": {}}}},
    {"name": "g", "parameters": {"type": "object", "properties": {"s": {"type": "string"}}}},
]


@pytest.mark.parametrize(
    ("raw", "value", "edits"),
    [
        ('[f(a="x\x00y")]', "x\x00y", 0),
        ('[f(a="x\ud800y")]', "x\ud800y", 0),
        ("[f(a='''x\x00\r\ny''')]", "x\x00\ny", 0),
        ('[f(a="x\ny")]', "x\ny", 1),
        ("[f(a='x\r\n\\\ny\r')]", "x\r\ny\r", 3),
        ('[f(a="\\ud83d\\ude00 \\N{BULLET} C:\\dir")]', "😀 • C:\\dir", 0),
        ("[f(a=" + "9" * 5000 + ")]", 10**5000 - 1, 0),
    ],
    ids=["nul", "surrogate", "triple", "raw line break", "raw CRLF", "escapes", "5,000 digits"],
)
def test_strings_and_numbers_that_python_refuses(raw: str, value: object, edits: int) -> None:
    (call,) = check_all(raw, "pythonic", TOOLS, every_split=len(raw) < 1000).calls
    assert (call.ok, call.arguments, len(call.edits)) == (True, {"a": value}, edits)
    assert {e.rule for e in call.edits} <= {"pythonic.raw-break"}
    if not edits and isinstance(value, str) and "\\" not in raw and "\r" not in raw:
        assert call.origin("/a").span.of(raw) == value


@pytest.mark.parametrize(
    "raw", [r'[f(a="\x4")]', r'[f(a="\N{NO SUCH}")]', r'[f(a="\U00110000")]', '[f(a="x']
)
def test_broken_strings_are_text(raw: str) -> None:
    result = check_all(raw, "pythonic", TOOLS)
    assert (result.calls, result.text) == ((), raw)


def test_without_repair_a_raw_line_break_is_no_python() -> None:
    assert check_all('[f(a="x\ny")]', "pythonic", TOOLS, {"repair": False}).calls == ()


@each_case
def test_a_list_of_calls_stands_alone_on_its_line(raw: str, names: list[str], text: str) -> None:
    for protocol in ("pythonic", "auto"):
        result = check_all(raw, protocol, TOOLS)
        assert ([c.name for c in result.calls], result.text) == (names, text)


def test_strings_mean_what_python_says() -> None:
    r = random.Random(3)
    pieces = [
        "a", "\\n", "\\x41", "\\u00e9", "\\101", "\\8", "\\q", "\\\\", "\\'", "\\N{DASH}", "\\x4",
        "\\\n", "é", "\\777",
    ]  # fmt: skip
    for _ in range(3000):
        inner = "".join(r.choices(pieces, k=r.randrange(6)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                expected = ast.literal_eval(f"'{inner}'")
            except (SyntaxError, ValueError):
                with pytest.raises(ValueError, match=r"escape|named"):
                    unescape_python(inner)
                continue
        assert unescape_python(inner) == expected, inner


def test_many_calls_take_linear_time() -> None:
    assert len(tp.parse("[" + 'f(a="x\ny"), ' * 3000 + "f(a=1)]", "pythonic", TOOLS).calls) == 3001


@each_case
def test_a_call_without_literals_is_refused_alone(raw: str) -> None:
    result = check_all(raw, "pythonic", TOOLS)
    (refused,) = (call for call in result.calls if not call.ok)
    (call,) = (call for call in result.calls if call.ok)
    assert (call.name, call.arguments, refused.name) == ("g", {"s": "x"}, "f")
    assert [p.code for p in refused.problems] == ["decode.pythonic"]


@each_case
def test_nothing_is_left_out_where_a_quote_is_out_of_step(raw: str) -> None:
    assert check_all(raw, "pythonic", TOOLS).calls == ()
