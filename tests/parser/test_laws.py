"""The laws over every case file and over random text made of each protocol's own delimiters."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import toolparse_lab as tp
from tests.core_cases import CORE
from tests.laws import EXAMPLES, check_all, examples, in_pieces
from tests.tables import each_case
from toolparse_lab.entry.laws import ODD, TOOLS
from toolparse_lab.formats.registry import family_heads

CASES = Path(__file__).parents[1] / "cases"
# What each format is made of, whole and broken, and the characters that confuse scanners.
PIECES = [*ODD, *json.loads((CORE / "pieces.json").read_text("utf-8"))]
PROTOCOLS = [*family_heads(), "auto"]


def raw_texts() -> list[tuple[str, str, str, Any]]:
    """(id, protocol, raw, tools) of every case whose format is here."""
    known = tp.protocols()
    spelt = {
        "morph-xml": "morph_xml", "hermes": "hermes", "gemma": "gemma",
        "qwen3coder": "qwen3_coder_xml", "yaml-xml": "yaml_xml",
    }  # fmt: skip
    out: list[tuple[str, str, str, Any]] = []
    for file in ("formats.jsonl", "damaged_calls.jsonl"):
        for line in (CASES / file).read_text("utf-8").splitlines():
            case = json.loads(line)
            if case["format"] in known:
                out.append((case["id"], case["format"], case["raw"], case["tools"]))
            out.append((case["id"], "auto", case["raw"], case["tools"]))
    for line in (CASES / "middleware.jsonl").read_text("utf-8").splitlines():
        case = json.loads(line)
        protocol = spelt.get(str(case.get("protocol")))
        if protocol is None or case["op"] not in (
            "parse",
            "stream",
            "splits",
            "segments",
            "generate",
        ):
            continue
        text = case.get("text")
        if text is None:
            text = "".join(c for c in case.get("chunks", []) if isinstance(c, str))
        tools = [t for t in case.get("tools", []) if t.get("type", "function") == "function"]
        if isinstance(text, str):
            out.append((case["id"], protocol, text, tools))
    return out


@pytest.mark.parametrize(
    ("protocol", "raw", "tools"),
    [pytest.param(p, r, t, id=f"{i}-{p}") for i, p, r, t in raw_texts()],
)
def test_laws_hold_for_every_case(protocol: str, raw: str, tools: Any) -> None:
    check_all(raw, protocol, tools)


MARK = re.compile(r"<[^<>]{1,60}>|\[/?[A-Z_]{3,}\]|```\w*|[\[\](){}:]")
SPACES = ("", " ", " \r ", "\r\n", "\n \n", "\t", "\r", "  \n")
VALUES = ("hi", "it's", 'a "b" c', "x' y", '"', "'", "a\nb", "`x`", "```")
NOTES: list[dict[str, Any]] = [
    {"name": "note", "parameters": {"type": "object", "properties": {"text": {"type": "string"}}}},
    {"name": "add", "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}}},
]


def odd_texts(protocol: str, count: int) -> Iterator[str]:
    """Calls with white space before marks, without their first marks, with stray quotes."""
    draw, writer = random.Random(protocol), tp.protocols()[protocol]
    for _ in range(count):
        calls = [writer.write_call("note", json.dumps({"text": draw.choice(VALUES)}))]
        calls += [writer.write_call("add", '{"x":1}')] * (draw.random() < 0.3)
        text = writer.join_calls(calls)
        if draw.random() < 0.4:
            at = draw.randrange(len(text) + 1)
            text = text[:at] + draw.choice("'\"\\") + text[at:]
        for _ in range(draw.choice((1, 1, 2))):
            marks = list(MARK.finditer(text))
            mark, space = draw.choice(marks), draw.choice(SPACES)
            first = draw.choice(marks[:3])
            text = draw.choice((
                text[: mark.start()] + space + text[mark.start() :],
                space + text[first.end() :],
                space + draw.choice(("", "Ok.", "Sure:\n")) + draw.choice(SPACES) + text,
                text + space + draw.choice(("", "Done.", "\n```", "x")),
                text[: mark.start()] + text[mark.end() :],
            ))  # fmt: skip
            if not MARK.search(text):
                break
        yield text


@pytest.mark.parametrize("protocol", list(tp.protocols()))
@pytest.mark.exhaustive(3, 2)
def test_a_stream_is_the_whole_where_space_and_quotes_are_odd(protocol: str) -> None:
    known = {
        "harmony_channel": (
            ' to=note<|channel|>commentary\n<|constrain|>json<|message|>{"text": "a"}<|call|>',
        ),
        "gemma_fence_tool_code": ("```tool_code\nnote(text='it's')\n```\nDone.",),
        "beam": (
            ' to=note<|channel|>analysis \r <|constrain|>xml<|message|><rfl:parameter name="text">a'
            "</rfl:parameter><|call|>",
        ),
    }
    for text in (*known.get(protocol, ()), *odd_texts(protocol, examples(2))):
        for name in (protocol, "auto"):
            whole = tp.parse(text, name, NOTES)
            assert text not in known.get(protocol, ()) or [c.ok for c in whole.calls] == [True]
            for size in (1, 3, 7) if name != "auto" else (1,):
                assert in_pieces(text, size, name, NOTES) == whole, (name, size, text)


@each_case
def test_laws_hold_where_they_once_did_not(protocol: str, raw: str) -> None:
    check_all(raw, protocol, TOOLS)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_laws_hold_for_random_text(protocol: str) -> None:
    @settings(deadline=None, max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
    @given(
        st.lists(st.sampled_from(PIECES), max_size=14).map("".join),
        st.sampled_from(["safe", "middleware", "none"]),
    )
    def laws(raw: str, policy: str) -> None:
        check_all(raw, protocol, TOOLS, {"coerce": policy})

    laws()


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(min_size=1, max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.parametrize("protocol", list(family_heads()))
def test_what_is_written_reads_back(protocol: str) -> None:
    """Law 7: parse(write_call(c)) has the same name and arguments, or write_call raises
    UnwritableCall."""
    writer = tp.protocols()[protocol]

    @settings(deadline=None, max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
    @given(
        st.fixed_dictionaries(
            {},
            optional={
                "path": st.text() | st.sampled_from(PIECES),
                "tags": st.lists(st.text() | st.sampled_from(PIECES), max_size=3),
                "o": st.fixed_dictionaries(
                    {},
                    optional={
                        "k": st.integers() | st.floats(allow_nan=False, allow_infinity=False)
                    },
                ),
                "extra": JSON,
            },
        )
    )
    def law(arguments: dict[str, Any]) -> None:
        arguments_json = json.dumps(arguments)
        tool = TOOLS[1]
        try:
            text = writer.write_call("put", arguments_json, tool)
        except tp.errors.UnwritableCall:
            return
        calls = tp.parse(text, protocol, TOOLS).calls
        assert [c.name for c in calls if c.ok] == ["put"], text
        from toolparse_lab.core.values import read_strict, same

        assert same(read_strict(calls[0].arguments_json), read_strict(arguments_json)), text

    law()
