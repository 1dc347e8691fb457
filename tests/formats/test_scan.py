"""The scanners: where a body ends, for any chunking."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.core_cases import rows
from tests.growth import grows_linearly
from tests.laws import examples
from tests.tables import asked_of, each_case
from toolparse_lab.core.toolspec import ToolSpec
from toolparse_lab.formats.base import NeedMore
from toolparse_lab.formats.json.scan import JsonBody
from toolparse_lab.formats.scan import Balanced, Close, LiteralBody, Scanner, partial_start
from toolparse_lab.formats.xml.morph_xml import MORPH_XML
from toolparse_lab.formats.xml.scan import ElementBody

MAKERS: dict[str, Any] = {
    "json": lambda: JsonBody(("</c>",), ("<c>",)),
    "element": lambda: ElementBody("f", frozenset(("s",)), ("<f", "<g")),
    "literal": lambda: LiteralBody(("</t>",), ("<stop>",)),
    "balanced": lambda: Balanced("\"'"),
}


def run(scanner: Scanner, chunks: list[str]) -> Close | None:
    """The engine's use of a scanner: it sees the unsettled tail, and is asked to finish at the
    end."""
    tail = ""
    for chunk in [*chunks, None]:
        final = chunk is None
        tail += chunk or ""
        found = scanner.scan(tail, final)
        if isinstance(found, Close):
            return found
        assert 0 <= found <= len(tail)
        tail = tail[found:]
    return scanner.finish()


@asked_of("case", rows("scan.jsonl"))
def test_where_a_body_ends(case: dict[str, Any]) -> None:
    text, make = case["text"], MAKERS[case["scanner"]]
    want = case["close"]
    for chunks in ([text], list(text), *([text[:i], text[i:]] for i in range(len(text) + 1))):
        found = run(make(), chunks)
        got = (
            None
            if found is None
            else [text[: found.start], text[found.start : found.end], found.kind]
        )
        assert got == want, chunks


def test_a_hidden_closer_is_remembered() -> None:
    text = '{"a": "</c>"}</c>'
    found = run(MAKERS["json"](), [text])
    assert found == Close(13, 17, "closer", None)
    text = '{"a": "</c><c>"}</c>'
    found = run(MAKERS["json"](), [text])
    assert found is not None
    assert found.hidden == (7, 11)


@each_case
def test_partial_start(text: str, literals: list[str], at: int) -> None:
    assert partial_start(text, tuple(literals)) == at


# The scanner of elements: what it does with a whole body at once is what it does piece by piece.


PIECES = [
    "<s>", "</s>", "</s >", "</ s>", "<s/>", "<s a='1'>", "<n>", "</n>", "<n>1</n>", "<s>x</s>",
    "<f>", "</f>", "</f >", "</ f>", "</f", "<g>", "<![CDATA[", "]]>", "<!--", "-->", "<", "</",
    "x", " ", "\n", "\u00a0", ">", "&lt;", "<ff>1</ff>", "<f>1</f>",
]  # fmt: skip


def scanner(*, whole: bool) -> ElementBody:
    made = ElementBody("f", frozenset(("s", "f")), ("<f", "<g"))
    if not whole:
        assert made.scan("", False) == 0
    return made


@settings(deadline=None, max_examples=examples(500), suppress_health_check=list(HealthCheck))
@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join), st.booleans())
def test_a_whole_body_ends_where_its_pieces_end(text: str, final: bool) -> None:
    assert scanner(whole=True).scan(text, final) == scanner(whole=False).scan(text, final)


def test_a_flat_body_ends_at_once() -> None:
    assert scanner(whole=True).scan("<s>x</s>\n<n>1</n></f> so", False) == Close(17, 21, "closer")


@pytest.mark.parametrize(
    "piece", ["<s>", "<s>x</s>", "<", " ", "<s", "<n>1</n>", "</s>", "<" + "s" * 300, "<s>x</s> "]
)
def test_hostile_text_stays_linear(piece: str) -> None:
    assert grows_linearly(
        lambda size: scanner(whole=True).scan(piece * (size // len(piece)), True), 50_000
    )


def opened(text: str, final: bool, *names: str) -> str | None:
    """The tool that is opened at the beginning of the text; '…' where more text must be waited
    for."""
    found = MORPH_XML.envelope.open(text, 0, final, {name: ToolSpec(name) for name in names})
    if found is None or isinstance(found, NeedMore):
        return found and "…"
    span = found.name_span
    assert span is not None
    assert text[span.start : span.end] == found.name
    assert text[found.end - 1] == ">"
    return found.name + "/" * found.whole


@each_case
def test_which_tool_is_opened(text: str, final: bool, name: str | None) -> None:
    names = ("get", "get_more", "a", "a/b", "a b")
    assert opened(text, final, *names) == name
    if "/b" not in text:  # without odd names the tool is looked up instead of tried
        assert opened(text, final, "get", "get_more", "a") == name
