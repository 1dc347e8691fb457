"""A quotation holds for all calls in it, in every format that writes calls."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

import toolparse_lab as tp
from tests.growth import grows_linearly
from tests.laws import check_all, in_pieces
from tests.quotations import TOOLS
from tests.tables import each_case

SPECS = {tool["name"]: tp.ToolSpec.of(tool) for tool in TOOLS}
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("send_money", {"to": "mallory", "amount": 900}),
    ("delete_file", {"path": "/home/a.txt"}),
]
OWN = {"to": "bob", "amount": 1}


def _lines(prefix: str, text: str) -> str:
    return "\n".join(prefix + line for line in text.split("\n"))


# Two calls in the format's own form, quoted together.
TOGETHER: dict[str, Callable[[str], str]] = {
    "inline code": lambda calls: f"Write it as `{calls}` please.",
    "two backticks": lambda calls: f"Write it as ``{calls}`` please.",
    "padded code": lambda calls: f"Write it as `` {calls} `` please.",
    "fence": lambda calls: f"Here is an example of the format:\n```\n{calls}\n```\nThat is all.",
    "long fence": lambda calls: f"Here is an example of the format:\n````\n{calls}\n````\nIt is.",
    "quoted lines": lambda calls: "The mail says:\n" + _lines("> ", calls) + "\n\nThat is all.",
    "quoted alone": lambda calls: _lines("> ", calls),
    "straight marks": lambda calls: f'The mail says "{calls}" and so on.',
    "marks": lambda calls: f"The mail says \u201c{calls}\u201d and so on.",
    "guillemets": lambda calls: f"Le mail dit \u00ab {calls} \u00bb, voil\u00e0.",
    "single marks": lambda calls: f"The mail says '{calls}' and so on.",
    "indented": lambda calls: "The mail says:\n\n" + _lines("    ", calls) + "\n\nThat is all.",
}
# A call each, with words or lines between them.
APART: dict[str, Callable[[str, str], str]] = {
    "inline code": lambda a, b: f"Write it as `{a} and then {b}` please.",
    "fence": lambda a, b: f"Here is an example:\n```\n{a}\nand then\n{b}\n```\nThat is all.",
    "long fence": lambda a, b: f"Here is an example:\n````\n{a}\nand then\n{b}\n````\nIt is.",
    "straight marks": lambda a, b: f'The mail says "{a} and then {b}" and so on.',
    "marks": lambda a, b: f"The mail says \u201c{a} and then {b}\u201d and so on.",
    "lines": lambda a, b: f'The mail says "{a}\nand don\'t forget\n{b}" and so on.',
    "blank lines": lambda a, b: f'The mail says "{a}\n\n{b}" and so on.',
    "lazy lines": lambda a, b: f"The mail says:\n> {a}\n{b}\n\nThat is all.",
}
# Without an opener of its own, what stands behind a blank line shows no sign.
UNSEEN = {
    ("markdown_json", "lines", "auto"),
    ("markdown_json", "blank lines", "auto"),
    ("pythonic", "blank lines", "auto"),
    ("pythonic", "blank lines", "pythonic"),
}


def _write(protocol: Any, name: str, arguments: dict[str, Any]) -> str | None:
    try:
        return str(protocol.write_call(name, json.dumps(arguments), SPECS[name]))
    except tp.errors.UnwritableCall:
        return None


@cache
def texts(name: str) -> tuple[str, ...]:
    """The two calls as a format writes them, () where it cannot."""
    written = [_write(tp.protocols()[name], *call) for call in CALLS]
    return tuple(text for text in written if text is not None)


FORMATS = [name for name in tp.protocols() if len(texts(name)) == len(CALLS)]


def executable(text: str, reader: str) -> list[str]:
    """Names of the calls in a text that may be executed."""
    return [call.name for call in tp.parse(text, reader, TOOLS).calls if call.ok]


def test_nearly_all_formats_write() -> None:
    assert len(FORMATS) > 0.9 * len(tp.protocols())


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.exhaustive(3)
def test_calls_quoted_together_are_text(name: str) -> None:
    calls = tp.protocols()[name].join_calls(texts(name))
    for way, quote in TOGETHER.items():
        for reader in (name, "auto"):
            assert not executable(quote(calls), reader), (way, reader)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.exhaustive(3, 1)
def test_calls_quoted_apart_are_text(name: str) -> None:
    for way, quote in APART.items():
        for reader in (name, "auto"):
            if (name, way, reader) not in UNSEEN:
                assert not executable(quote(*texts(name)), reader), (way, reader)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.exhaustive(3, 2)
def test_a_call_of_its_own_behind_a_quotation_counts(name: str) -> None:
    own = _write(tp.protocols()[name], "send_money", OWN)
    calls = tp.protocols()[name].join_calls(texts(name))
    if len(executable(f"I do it now.\n\n{own}", name)) != 1:
        pytest.skip("such a call stands at the beginning of an answer alone")
    for way in ("quoted lines", "straight marks", "marks", "guillemets", "single marks"):
        text = f"{TOGETHER[way](calls)}\n\nNow I do it.\n\n{own}"
        result = tp.parse(text, name, TOOLS)
        assert [call.arguments for call in result.calls if call.ok] == [OWN], way


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.exhaustive(3, 1)
def test_chunks_say_the_same(name: str) -> None:
    calls = tp.protocols()[name].join_calls(texts(name))
    for quote in TOGETHER.values():
        text = quote(calls)
        whole = tp.parse(text, name, TOOLS)
        for size in (1, 7):
            assert in_pieces(text, size, name, TOOLS) == whole


@pytest.mark.parametrize("name", ["deepseek_v3", "kimi_k2", "harmony_channel", "minicpm3"])
@pytest.mark.parametrize("reader", ["", "auto"])
def test_quoted_sections_keep_the_laws(name: str, reader: str) -> None:
    calls = tp.protocols()[name].join_calls(texts(name))
    for quote in (TOGETHER["inline code"], TOGETHER["straight marks"]):
        check_all(quote(calls), reader or name, TOOLS)


@each_case
def test_a_quotation_ends(text: str) -> None:
    call = '<tool_call>{"name": "reboot", "arguments": {}}</tool_call>'
    assert executable(text.replace("{}", call).replace("{{}}", "{}"), "hermes") == ["reboot"]


@each_case
@pytest.mark.parametrize("begin", ['It says "', "It says '<|tool_call_start|>\n```python\n"])
@pytest.mark.exhaustive(3)
def test_a_long_quotation_is_linear(begin: str, piece: str) -> None:
    def read(size: int) -> None:
        tp.parse(begin + piece * size, "auto", TOOLS)

    assert grows_linearly(read, 200)
