"""Recorded answers are read as the middleware reads them."""

from __future__ import annotations

from typing import Any

import pytest

import toolparse_lab as tp
from toolparse_lab.middleware.flow import read_answer

TOOLS = [
    {"name": n, "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}
    for n in ("f", "g")
]
BARE = '{"name": "f", "arguments": {"a": 1}}'
NAMED: Any = {"name": "g"}


@pytest.mark.parametrize("protocol", ["hermes", "morph_xml", "auto"])
@pytest.mark.parametrize(
    ("choice", "names"), [("required", ["f"]), ({"name": "f"}, ["f"]), (NAMED, [])]
)
def test_a_forced_answer_is_one_call(protocol: str, choice: Any, names: list[str]) -> None:
    assert [c.name for c in read_answer(BARE, protocol, TOOLS, None, choice).calls] == names


def test_a_forced_answer_is_read_as_the_middleware_reads_it() -> None:
    middleware = tp.create_tool_middleware("morph_xml", options={"coerce": "safe"})
    turn = middleware.transform_params({"messages": [], "tools": TOOLS, "tool_choice": "required"})
    for raw in (BARE, "Sure: " + BARE, "<f><a>1</a></f>", "", "no"):
        said = middleware.wrap_generate(turn, raw).result
        assert said == read_answer(raw, "morph_xml", TOOLS, {"coerce": "safe"}, "required")


def test_without_a_forced_choice_it_is_parse() -> None:
    for choice in ("auto", "none", None):
        assert read_answer(BARE, "hermes", TOOLS, {"coerce": "none"}, choice) == tp.parse(
            BARE, "hermes", TOOLS, {"coerce": "none"}
        )
    with pytest.raises(tp.errors.BadToolChoice):
        read_answer(BARE, "hermes", TOOLS, None, "perhaps")
