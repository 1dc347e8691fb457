"""Cases from tables: CSV, Parquet, frames, Hugging Face data sets; column names; bad rows, all of
them at once."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import toolparse_lab as tp
from tests.tables import asked_of, each_case, every_case
from tests.tables import table as rows_of
from tests.tools import tool_named
from toolparse_lab.core.errors import BadCase, BadOptions, UnreadableInput
from toolparse_lab.evals.cases.checks import DOUBTS as KINDS
from toolparse_lab.evals.cases.checks import validate_cases

TOOL: dict[str, Any] = tool_named("f", required=["a"], a="integer")
TWO = {
    **TOOL,
    "parameters": {**TOOL["parameters"], "properties": {"a": {}, "b": {"type": "string"}}},
}
CALL = {"name": "f", "arguments": {"a": 1}}
HEADER = "id,input,tools,target\n"


def cell(value: Any) -> str:
    return '"' + json.dumps(value).replace('"', '""') + '"'


def write(path: Path, text: str) -> Path:
    path.write_text(text, "utf-8")
    return path


# tables


def test_csv(tmp_path: Path) -> None:
    path = write(
        tmp_path / "c.csv",
        f"\ufeffid,input,tools,target,metadata_category,notes\n"
        f'1,"a, ""b""\nc",{cell([TOOL])},{cell([CALL])},one,x\n\n'
        f"2,hi,,[],two,\n3,hi,,,,\n",
    )
    cases = tp.load_cases(path, columns={"notes": None})
    assert [c.id for c in cases] == ["1", "2", "3"]
    assert cases[0].input == 'a, "b"\nc'
    assert cases[0].tools == (tp.ToolSpec.of(TOOL),)
    assert [c.target for c in cases] == [[CALL], [], None]
    assert [c.category for c in cases] == ["one", "two", ""]
    tabs = write(tmp_path / "c.tsv", "id\tinput\n1\ta,b\n")
    assert tp.load_cases(tabs)[0].input == "a,b"


def test_packed_files(tmp_path: Path) -> None:
    path = tmp_path / "c.csv.gz"
    path.write_bytes(gzip.compress(b"id,input\n1,x\n2,y\n"))
    assert [c.input for c in tp.load_cases(path)] == ["x", "y"]
    lines = "".join(f'{{"id": {n}, "input": "x{n}"}}\n' for n in range(2000)).encode()
    broken = tmp_path / "c.jsonl.gz"
    for packed in (
        b"no gzip",
        gzip.compress(lines)[:-20],
        gzip.compress(lines)[:2000] + b"\0" * 2000,
    ):
        broken.write_bytes(packed)
        with pytest.raises(UnreadableInput, match="to its end"):
            tp.load_cases(broken)
    for name in ("c.gz", "c.parquet.gz"):
        (tmp_path / name).write_bytes(b"")
        with pytest.raises(UnreadableInput, match="no reader"):
            tp.load_cases(tmp_path / name)


def table() -> pd.DataFrame:
    return pd.DataFrame({
        "nr": [1, 2, 3],
        "question": ["a", "b", "c"],
        "tools": [[TOOL]] * 3,
        "target": [[CALL], [], None],
        "price": [Decimal("1.50"), None, Decimal(2)],
        "day": [date(2026, 1, 2), None, None],
        "level": pd.array([1, None, 3], dtype="Int64"),
    })  # fmt: skip


NAMES = {
    "nr": "id",
    "question": "input",
    "price": "metadata_price",
    "day": "metadata_day",
    "level": "metadata_level",
}


@pytest.mark.parametrize("kind", ["frame", "parquet", "rows"])
def test_the_same_table_in_every_form(kind: str, tmp_path: Path) -> None:
    frame = table()
    source: Any = frame
    if kind == "parquet":
        # A target that is [] beside one with calls, and cells without a value, as Arrow keeps them.
        source = tmp_path / "c.parquet"
        pq.write_table(pa.Table.from_pandas(frame), source)
    elif kind == "rows":
        source = [
            {k: v for k, v in row.items() if not (v is None or v is pd.NA)}
            for row in frame.to_dict("records")
        ]
        source = [
            {**row, "price": float(row["price"])} if "price" in row else row for row in source
        ]
        source = [{**row, "day": row["day"].isoformat()} if "day" in row else row for row in source]
    cases = tp.load_cases(source, columns=NAMES)
    assert [c.id for c in cases] == ["1", "2", "3"]
    assert [c.target for c in cases] == [[CALL], [], None]
    assert cases[0].tools == (tp.ToolSpec.of(TOOL),)
    assert cases[0].metadata["day"] == "2026-01-02"
    assert float(cases[0].metadata["price"]) == 1.5
    assert "price" not in cases[1].metadata
    assert cases[2].metadata["level"] == 3


class FakeDataset:
    """What `datasets.Dataset` shows of itself."""

    def __init__(
        self,
        rows: list[dict[str, Any]],
        features: dict[str, Any] | None = None,
        split: str = "train",
    ) -> None:
        self._rows = rows
        self.column_names = list(rows[0]) if rows else []
        self.features = features or dict.fromkeys(self.column_names)
        self.split = split

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self._rows)


def test_hugging_face_data_sets() -> None:
    rows = [
        # A list of objects as this library gives it, an OpenAI call with its arguments as text, a
        # class label.
        {"id": "a", "messages": [{"role": "user", "content": "x"}], "tools": json.dumps([TOOL]), "metadata_category": 1,
         "target": {"name": ["f"], "arguments": ['{"a": 1}']}},
        {"id": "b", "messages": {"role": ["user"], "content": ["y"]}, "tools": [{"type": "function", "function": TOOL}],
         "metadata_category": 0, "target": [{"type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}]},
    ]  # fmt: skip
    data = FakeDataset(rows, {"metadata_category": SimpleNamespace(names=["easy", "hard"])})
    cases = tp.load_cases(data)
    assert [c.category for c in cases] == ["hard", "easy"]
    assert [c.messages[0]["content"] for c in cases] == ["x", "y"]
    assert [c.target for c in cases] == [[CALL], [CALL]]
    assert {c.tools for c in cases} == {(tp.ToolSpec.of(TOOL),)}
    assert tp.load_cases({"train": data}) == cases
    splits = {"train": data, "test": FakeDataset(rows[:1], split="test")}
    assert len(tp.load_cases(splits, split="test")) == 1
    for wrong in (None, "dev"):
        with pytest.raises(BadOptions, match="one split at a time") as e:
            tp.load_cases(splits, split=wrong)
        assert "train, test" in str(e.value)
    with pytest.raises(BadOptions, match="has splits"):
        tp.load_cases(rows, split="train")


# columns


def test_columns_and_others() -> None:
    rows = [{"id": "a", "input": "x", "author": "me", "metadata": {"k": 1}, "metadata_l": [2]}]
    with pytest.raises(BadCase, match="unknown key") as e:
        tp.load_cases(rows)
    assert "metadata_author" in str(e.value)
    assert tp.load_cases(rows, others="metadata")[0].metadata == {"k": 1, "l": [2], "author": "me"}
    assert tp.load_cases(rows, others="drop")[0].metadata == {"k": 1, "l": [2]}
    assert tp.load_cases(rows, columns={"author": "metadata_by"})[0].metadata["by"] == "me"


@every_case
def test_bad_column_arguments(how: dict[str, Any], error: str, message: str) -> None:
    frame = table()
    with pytest.raises(getattr(tp.errors, error), match=message):
        tp.load_cases(frame, **{"columns": NAMES, **how})


def test_an_unknown_column_is_one_error_and_not_one_a_row(tmp_path: Path) -> None:
    path = write(tmp_path / "c.csv", "id,input,expected\n" + "1,x,y\n" * 50)
    with pytest.raises(BadCase) as e:
        tp.load_cases(path)
    assert (e.value.column, e.value.line, e.value.rows) == ("expected", None, ())


def test_a_mapped_key_that_no_row_has() -> None:
    with pytest.raises(BadCase, match="no row has this column"):
        tp.load_cases([{"id": "a", "input": "x"}], columns={"question": "input"})


@each_case
def test_bad_cells_name_line_and_column(
    row: str, message: str, column: str | None, tmp_path: Path
) -> None:
    path = write(tmp_path / "c.csv", f'{HEADER}0,"two\nlines",,\n{row}\n')
    with pytest.raises(BadCase) as e:
        tp.load_cases(path)
    assert message in e.value.message
    assert (e.value.source, e.value.line, e.value.column) == (str(path), 4, column)
    assert len(tp.load_cases(path, errors="skip")) == 1


@each_case
def test_bad_tables(name: str, text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises((BadCase, UnreadableInput)) as e:
        tp.load_cases(write(tmp_path / name, text))
    assert message in str(e.value)


def test_utf16_is_named(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_text(HEADER, "utf-16")
    with pytest.raises(BadCase, match="UTF-16"):
        tp.load_cases(path)


NO_JSON: list[Any] = [object(), float("inf"), {"x": b"\xff"}, {1, 2}]


@asked_of("value", NO_JSON, ids=lambda x: type(x).__name__)
def test_values_that_are_no_json(value: Any) -> None:
    with pytest.raises(BadCase, match="not JSON") as e:
        tp.load_cases(pd.DataFrame({"id": ["a"], "input": ["x"], "metadata_k": [value]}))
    assert (e.value.line, e.value.column) == (1, "metadata_k")
    with pytest.raises(BadCase, match="not JSON"):
        tp.load_cases([{"id": "a", "input": "x", "metadata": {"k": value}}])


def test_null_is_kept_where_json_says_it() -> None:
    target = [{"name": "f", "arguments": {"a": None}}]
    assert tp.load_cases([{"id": "a", "input": "x", "target": target}])[0].target == target


# bad rows


def mixed(tmp_path: Path) -> Path:
    rows = [{"id": f"{i}", "input": "x"} for i in range(10)]
    lines = [json.dumps(r) for r in rows]
    lines[2], lines[4], lines[5] = (
        "{",
        '{"id": "0", "input": "twice"}',
        json.dumps({"id": "5", "input": "caf\u00e9"}),
    )
    path = tmp_path / "m.jsonl"
    path.write_bytes("\n".join(lines).encode().replace(b"caf\\u00e9", b"caf\xe9"))
    return path


def test_all_bad_rows_are_told_at_once(tmp_path: Path) -> None:
    path = mixed(tmp_path)
    with pytest.raises(BadCase) as e:
        tp.load_cases(path)
    said = str(e.value)
    assert "3 of 10 rows cannot be read" in said
    assert [r.line for r in e.value.rows] == [3, 5, 6]
    for part in (
        "line 3: this is not JSON",
        "line 5: this id was used before",
        "line 6: this is not UTF-8",
        "skip",
    ):
        assert part in said


def test_bad_rows_are_left_out_and_counted(tmp_path: Path) -> None:
    cases = tp.load_cases(mixed(tmp_path), errors="skip")
    assert [c.id for c in cases] == ["0", "1", "3", "6", "7", "8", "9"]
    assert [(s.name, s.count) for s in cases.skipped] == [("rows that cannot be read", 3)]
    assert "3 rows skipped" in repr(cases)


def test_many_bad_rows_are_shortened() -> None:
    with pytest.raises(BadCase) as e:
        tp.load_cases([{"id": "", "input": "x"}] * 1000)
    assert "1000 of 1000 rows" in str(e.value)
    assert "and 995 more" in str(e.value)
    assert len(str(e.value)) < 2000
    with pytest.raises(BadCase, match="no cases"):
        tp.load_cases([{"id": "", "input": "x"}] * 3, errors="skip")


# validation


def checked(**case: Any) -> list[str]:
    found = validate_cases([{"id": "a", "input": "x", "tools": [TOOL], **case}])
    assert found.ok
    return [d.code for d in found.doubts]


@every_case
def test_doubts(case: dict[str, Any], codes: list[str]) -> None:
    assert checked(**case) == codes


def test_every_kind_of_doubt_has_a_case() -> None:
    told = [row["codes"] for row in rows_of(__file__) if row["test"] == "doubts"]
    assert {code for codes in told for code in codes} == KINDS.keys()


def test_validation_reads_to_the_end(tmp_path: Path) -> None:
    found = validate_cases(mixed(tmp_path))
    assert not found
    assert (len(found.cases), found.n_errors) == (7, 3)
    told = json.loads(json.dumps(found.to_dict()))
    assert [e["line"] for e in told["errors"]] == [3, 5, 6]
    assert "3 rows cannot be read" in str(found)
    nothing = validate_cases([{"id": ""}])
    assert not nothing.ok
    assert "no cases" in str(nothing)


@asked_of("name", ["cases.jsonl", "conversations.jsonl"])
def test_the_shipped_cases_leave_no_doubt(name: str) -> None:
    found = validate_cases(Path(__file__).parents[2] / "datasets" / name)
    assert found.ok
    assert found.doubts == ()


@every_case
def test_a_key_of_another_tool_is_told_its_name_here(key: str, meant: str) -> None:
    row = {"id": "a", "input": "x", "target": []}
    row[key] = row.pop(meant)
    with pytest.raises(BadCase, match="unknown key") as e:
        tp.load_cases([row])
    assert f"call it {meant}" in str(e.value.hint)
    # The other half of the advice works as it stands.
    assert f'columns={{{key!r}: "{meant}"}}' in str(e.value.hint)
    assert len(tp.load_cases([row], columns={key: meant})) == 1
