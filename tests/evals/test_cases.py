from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.tables import asked_of, each_case, every_case
from toolparse_lab.core.errors import BadCase, BadOptions, UnreadableInput
from toolparse_lab.core.values import Num
from toolparse_lab.evals.cases import row_files as module
from toolparse_lab.evals.cases.case import Case
from toolparse_lab.evals.cases.collection import Cases, pack_cases, unpack_cases
from toolparse_lab.evals.cases.loading import load_cases

TOOL = {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}
GOOD: dict[str, Any] = {
    "id": "c1", "input": "hi", "tools": [TOOL], "target": [{"name": "f", "arguments": {"a": 1}}],
    "metadata": {"category": "simple", "level": 2},
}  # fmt: skip


def make(n: int) -> Cases:
    kinds = ("a",) * 6 + ("b",) * 3 + ("c",)
    return Cases(Case(f"{i}", "x", metadata={"category": kinds[i % 10]}) for i in range(n))


def test_jsonl(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    rows = [
        GOOD,
        {**GOOD, "id": 2, "input": [{"role": "user", "content": "x"}], "target": []},
        {"id": "3", "input": "y"},
    ]
    path.write_text("\ufeff" + "\n\n".join(json.dumps(r) for r in rows) + "\n", encoding="utf-8")
    cases = load_cases(path)
    assert [c.id for c in cases] == ["c1", "2", "3"]
    assert [c.target for c in cases] == [GOOD["target"], [], None]
    assert (cases[0].category, cases[2].category) == ("simple", "")
    assert cases[0].tools[0].name == "f"
    assert cases[0].messages == [{"role": "user", "content": "hi"}]
    assert cases[1].messages == [{"role": "user", "content": "x"}]
    assert load_cases([c.to_dict() for c in cases]) == cases
    assert load_cases(cases) is cases


def test_results_and_answer_come_back_as_they_were() -> None:
    row = {
        **GOOD,
        "results": [{"name": "f", "arguments": {"a": 1}, "output": {"type": "text", "value": "x"}}],
        "answer": {"contains": "x"},
    }
    case = load_cases([row])[0]
    assert case.results == tuple(row["results"])
    assert load_cases([case.to_dict()])[0] == case
    assert "results" not in load_cases([GOOD])[0].to_dict()


def test_json_array_and_number_lexemes(tmp_path: Path) -> None:
    path = tmp_path / "cases.json"
    path.write_text(
        '[{"id": "a", "input": "x", "target": [{"name": "f", "arguments": {"a": 0.10}}]}]'
    )
    value = load_cases(str(path))[0].target[0]["arguments"]["a"]  # type: ignore[index]
    assert isinstance(value, Num)
    assert value.text == "0.10"


def test_cases_that_share_tools_are_kept_with_one_copy_of_them() -> None:
    cases = load_cases([{**GOOD, "id": f"{n}", "tools": [TOOL] if n % 2 else []} for n in range(6)])
    rows = pack_cases(cases)
    assert [r.get("tools_of") for r in rows] == [None, None, None, "1", None, "1"]
    assert unpack_cases(json.loads(json.dumps(rows))) == cases
    assert unpack_cases([c.to_dict() for c in cases]) == cases


@each_case
def test_bad_rows_name_file_line_and_what_was_got(
    row: Any, message: str, got: str, tmp_path: Path
) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text(json.dumps(GOOD) + "\n" + json.dumps(row) + "\n")
    with pytest.raises(BadCase) as e:
        load_cases(path)
    assert (e.value.source, e.value.line) == (str(path), 2)
    assert message in e.value.message
    assert got in str(e.value)
    assert e.value.expected


@each_case
def test_bad_files(text: str, message: str, line: int | None, tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text(text)
    with pytest.raises(BadCase, match=message) as e:
        load_cases(path)
    assert e.value.line == line


def test_unreadable_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for source, message in [
        (tmp_path / "none.jsonl", "no such file"),
        (tmp_path, "directory"),
        (tmp_path / "x.xlsx", "no reader"),
    ]:
        with pytest.raises(UnreadableInput, match=message):
            load_cases(source)
    latin = tmp_path / "latin.jsonl"
    latin.write_bytes(b'{"id": "a", "input": "caf\xe9"}\n')
    with pytest.raises(BadCase, match="not UTF-8"):
        load_cases(latin)
    with pytest.raises(BadCase, match="neither a path nor a list of rows"):
        load_cases(7)  # type: ignore[arg-type]
    monkeypatch.setattr(module, "MAX_LINE", 50)
    latin.write_text(json.dumps({**GOOD, "input": "x" * 60}))
    with pytest.raises(BadCase, match="too long"):
        load_cases(latin)


def test_sample_is_stratified_and_deterministic() -> None:
    cases = make(100)
    sample = cases.sample(20, by="category", seed=3)
    assert sample.categories() == {"a": 12, "b": 6, "c": 2}
    assert sample == cases.sample(20, by="category", seed=3)
    assert sample != cases.sample(20, by="category", seed=4)
    assert [int(c.id) for c in sample] == sorted(int(c.id) for c in sample)
    assert cases.sample(3).categories() == {"a": 1, "b": 1, "c": 1}
    assert len(cases.sample(2)) == 2
    assert cases.sample(1000) is cases
    assert len(cases.sample(10, by=None)) == 10
    assert len(cases.sample(0)) == 0
    with pytest.raises(BadOptions):
        cases.sample(-1)


@asked_of("n", range(31))
def test_every_sample_size_is_kept(n: int) -> None:
    assert len(make(30).sample(n)) == n


def test_sequence() -> None:
    cases = make(10)
    assert isinstance(cases[2:5], Cases)
    assert [c.id for c in cases[2:4]] == ["2", "3"]
    assert cases["7"].id == "7"
    ids: Any = cases
    assert "7" in ids
    assert cases[0] in cases
    assert Case("none", "x") not in cases
    assert len(cases.filter(category="a")) == 6
    assert len(cases.filter(category=["a", "c"])) == 7
    assert [c.id for c in cases.filter(lambda c: c.id == "4")] == ["4"]
    assert hash(cases) == hash(make(10))
    with pytest.raises(BadCase, match="no case of this id"):
        cases["nope"]
    with pytest.raises(BadCase, match="same id"):
        cases + cases
    assert repr(cases) == "Cases(10 cases, 0 graded; a 6, b 3, c 1)"


def test_html_is_escaped() -> None:
    html = Cases([Case("a", "x", metadata={"category": "<b>"})])._repr_html_()
    assert "&lt;b&gt;" in html
    assert "<b>" not in html


@every_case
def test_a_case_with_a_target_that_cannot_be_read_is_refused_when_it_is_made(
    target: Any, says: str
) -> None:
    with pytest.raises(BadCase, match=re.escape(says)):
        Case("c", "?", target=target)


def test_rules_of_one_object_are_rules_beside_each_other() -> None:
    rules = {"$at_least": [{"name": "f"}], "$never": [{"name": "g"}]}
    assert Case("c", "?", target=rules).target == [  # type: ignore[arg-type]
        {"$at_least": [{"name": "f"}]}, {"$never": [{"name": "g"}]},
    ]  # fmt: skip
