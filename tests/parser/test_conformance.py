"""Every conformance case whose op is answered, judged by the judge that came with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import toolparse_lab as tp
from tests.cases.check import check, eq
from tests.conformance import PROTOCOLS, answer
from tests.tables import asked_of

CASES = Path(__file__).parents[1] / "cases"


def _load(name: str) -> list[dict[str, Any]]:
    return [
        json.loads(line) for line in (CASES / name).read_text("utf-8").splitlines() if line.strip()
    ]


def _known(protocol: Any) -> bool:
    return protocol is None or PROTOCOLS.get(protocol, protocol) in tp.protocols()


@asked_of("case", _load("middleware.jsonl"), ids=lambda c: c["id"])
def test_middleware_case(case: dict[str, Any]) -> None:
    assert check(case["expect"], json.loads(json.dumps(answer(case)))) is None


@pytest.mark.parametrize("name", ["formats.jsonl", "damaged_calls.jsonl"])
def test_calls_of_known_formats(name: str) -> None:
    wrong = []
    for case in _load(name):
        if not _known(case["format"]):
            continue
        for protocol in (case["format"], "auto"):
            got = json.loads(json.dumps(answer({**case, "format": protocol})))["calls"]
            if not eq(case["calls"], got):
                wrong.append((case["id"], protocol, got))
    assert wrong == []


@pytest.mark.parametrize("case", _load("damaged_json.jsonl"), ids=lambda c: c["id"])
def test_damaged_json(case: dict[str, Any]) -> None:
    got = answer(case)
    if case["refuse"]:
        assert got == {"refused": True}
    else:
        assert eq(got.get("values"), [case["right"]])
