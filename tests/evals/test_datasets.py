"""The shipped cases: readable, right by their own schemas, as varied as they claim, short where
they must be."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

import toolparse_lab as tp
from tests.tables import asked_of, every_case
from toolparse_lab.core.toolspec import tool_specs
from toolparse_lab.core.values import leaves
from toolparse_lab.formats.prompt.messages import build_messages

CASES = Path(__file__).parents[2] / "datasets" / "cases.jsonl"
ROWS: list[dict[str, Any]] = [
    json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()
]
DEMO = [row for row in ROWS if row["metadata"].get("demo")]
CATEGORIES = {"single": 15, "parallel": 6, "nested": 6, "abstention": 6, "hostile": 12, "types": 10}
BUDGET = 400


PROTOCOLS = ("hermes", "morph_xml")


def readings(want: Any) -> list[Any]:
    """Some plain values a target admits: every alternative once, optional ones also left out (as
    None in a list)."""
    if isinstance(want, dict) and any(k.startswith("$") for k in want):
        if "$match" in want:
            return ["about 10 minutes"]
        return list(want["$any"]) if "$any" in want else [want["$value"]]
    if isinstance(want, list):
        return [[readings(x)[0] for x in want], [readings(x)[-1] for x in want]]
    if isinstance(want, dict):
        needed = {k: v for k, v in want.items() if not (isinstance(v, dict) and v.get("$optional"))}
        return [
            {k: readings(v)[0] for k, v in want.items()},
            {k: readings(v)[-1] for k, v in want.items()},
            {k: readings(v)[0] for k, v in needed.items()},
        ]
    return [want]


@asked_of("row", ROWS, ids=lambda row: row["id"])
def test_target_satisfies_its_schema(row: dict[str, Any]) -> None:
    assert set(row) == {"id", "input", "tools", "target", "metadata"}
    specs = {t.name: t for t in tool_specs(row["tools"])}
    assert len(specs) >= 1
    for call in row["target"]:
        schema = specs[call["name"]].schema
        Draft202012Validator.check_schema(schema)
        validator = Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)
        for arguments in readings(call["arguments"]):
            problems = [f"{e.json_path}: {e.message}" for e in validator.iter_errors(arguments)]
            assert not problems, arguments


def test_ids_are_unique_and_name_their_category() -> None:
    ids = [row["id"] for row in ROWS]
    assert len(ids) == len(set(ids))
    assert all(row["id"].split("/")[0] == row["metadata"]["category"] for row in ROWS)


def test_categories_and_languages() -> None:
    categories = Counter(row["metadata"]["category"] for row in ROWS)
    assert set(categories) == set(CATEGORIES)
    assert {c: n for c, n in CATEGORIES.items() if categories[c] < n} == {}
    languages = Counter(row["metadata"]["language"] for row in ROWS)
    assert set(languages) >= {"en", "de", "es", "fr", "ko", "ja", "ar"}


def test_abstention_means_no_target() -> None:
    assert {row["id"] for row in ROWS if not row["target"]} == {
        row["id"] for row in ROWS if row["metadata"]["category"] == "abstention"
    }


@asked_of("row", [r for r in ROWS if isinstance(r["input"], list)], ids=lambda row: row["id"])
def test_message_inputs_end_with_the_user(row: dict[str, Any]) -> None:
    assert row["input"][-1]["role"] == "user"
    assert row["metadata"].get("turns", len(row["input"])) == len(row["input"])


@every_case
def test_hostile_strings_are_asked_for_and_wanted(needle: str) -> None:
    rows = [r for r in ROWS if r["metadata"]["category"] == "hostile"]
    wanted = [
        r["id"] for r in rows for _, v in leaves(r["target"]) if isinstance(v, str) and needle in v
    ]
    asked = [
        r["id"]
        for r in rows
        if needle in json.dumps(r["input"], ensure_ascii=False) or needle in str(r["input"])
    ]
    assert set(wanted) & set(asked)


def demo_messages(row: dict[str, Any], protocol_id: str) -> tuple[dict[str, Any], ...]:
    return build_messages(
        row["input"], row["tools"], protocol=tp.protocols()[protocol_id], wording="brief"
    )


@asked_of("protocol_id", PROTOCOLS)
def test_demo_prompts_are_short(protocol_id: str) -> None:
    assert 10 <= len(DEMO) <= 16
    for row in DEMO:
        assert len(row["tools"]) <= 2
        characters = sum(len(m["content"]) for m in demo_messages(row, protocol_id))
        assert characters / 3 + 40 <= BUDGET, row[
            "id"
        ]  # three characters a token is the least seen for these texts
