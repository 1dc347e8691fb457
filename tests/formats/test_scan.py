"""The scanners: where a body ends, for any chunking."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core_cases import rows
from tests.tables import each_case
from toolparse_lab.formats.json.scan import JsonBody
from toolparse_lab.formats.scan import Balanced, Close, LiteralBody, Scanner, partial_start
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


@pytest.mark.parametrize("case", rows("scan.jsonl"))
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
