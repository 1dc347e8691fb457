"""An answer of which `reads_alike` says that the policies read it the same, they read the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolparse_lab as tp
from tests.quotations import CALLS, TOOLS, formats, written
from toolparse_lab.core.types import ParseOptions, ParseResult
from toolparse_lab.parser.resolve import ALIKE, FITS, reads_alike

FORMATS = dict(formats())
KINDS = ("string", "integer", "number", "boolean", "array", "object")
VALUES: tuple[Any, ...] = (
    1,
    2.5,
    "1",
    "true",
    "null",
    "[1, 2]",
    "a, b",
    "",
    True,
    None,
    [1],
    ["a"],
    {"a": 1},
    {},
)


def check(text: str, protocol: str, tools: Any) -> bool:
    fits = FITS.count
    safe = tp.parse(text, protocol, tools)
    if not reads_alike(safe, fits != FITS.count):
        return False
    for policy in ALIKE:
        other = tp.parse(text, protocol, tools, options=ParseOptions(coerce=policy))
        assert replace(other, options=safe.options) == safe, policy
        assert [c.to_dict() for c in other.calls] == [c.to_dict() for c in safe.calls]
    return True


@pytest.mark.parametrize("name", FORMATS)
def test_calls_of_every_format(name: str) -> None:
    texts = [t for tool, arguments in CALLS if (t := written(FORMATS[name], tool, arguments))]
    doubt = 'Or {"name": "send_money", "arguments": {"amount": "7"}}?\n'
    for text in texts:
        for shown in (text, doubt + text, text + "\n" + text, text[:-3], text[: len(text) // 2]):
            check(shown, name, TOOLS)
            check(shown, name, [{"name": "other"}])


def schemas() -> st.SearchStrategy[Any]:
    kind = st.sampled_from(KINDS)
    leaf = st.one_of(
        kind.map(lambda k: {"type": k}),
        st.lists(kind, min_size=2, max_size=3).map(lambda ks: {"type": ks}),
        st.lists(kind, min_size=1, max_size=3).map(lambda ks: {"anyOf": [{"type": k} for k in ks]}),
        kind.map(lambda k: {"type": "array", "items": {"type": k}}),
        st.sampled_from([{}, True, {"enum": ["a", 1, None]}, {"minimum": 2}, {"const": "1"}]),
    )
    return st.dictionaries(st.sampled_from("abc"), leaf, max_size=3).map(
        lambda properties: {"type": "object", "properties": properties}
    )


@given(
    schemas(),
    st.dictionaries(st.sampled_from(["a", "b", "c", "d", "input"]), st.sampled_from(VALUES)),
    st.sampled_from(["hermes", "morph_xml", "qwen3_coder_xml", "yaml_xml", "pythonic"]),
)
def test_any_schema(schema: Any, arguments: dict[str, Any], name: str) -> None:
    tools = [{"name": "f", "parameters": schema}]
    with suppress(tp.errors.UnwritableCall):
        tool = tp.ToolSpec.of(tools[0])
        check(tp.protocols()[name].write_call("f", json.dumps(arguments), tool), name, tools)


def results() -> Iterator[ParseResult]:
    tools = [{"name": "f", "parameters": {"properties": {"n": {"type": "integer"}}}}]
    for arguments in ('{"n": 7}', '{"n": "7"}', '{"n": 7,}', '{"n": "x"}', '{"n": 7'):
        text = f'<tool_call>{{"name": "f", "arguments": {arguments}}}</tool_call>'
        yield tp.parse(text, "hermes", tools)


def test_most_answers_are_read_alike_and_those_in_trouble_say_nothing() -> None:
    assert [reads_alike(result) for result in results()] == [True, False, False, False, False]
    assert not reads_alike(tp.parse("No call.", "hermes"))


def test_an_answer_whose_arguments_no_schema_has_seen_is_read_alike() -> None:
    tools = [{"name": "f", "parameters": {"properties": {"n": {"type": "integer"}}}}]
    call = '<tool_call>{"name": "f", "arguments": {"n": "7"}}</tool_call>'
    assert check("No call.", "hermes", tools)
    assert check(call[:40], "hermes", tools)
    assert check(call.replace('"f"', '"xyz"'), "hermes", tools)
    assert not check(call, "hermes", tools)
