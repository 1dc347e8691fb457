"""A partition read is a function: the same rows as a run's, however the answers are cut."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import fsspec
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pandas.testing import assert_frame_equal

import toolparse_lab as tp
from tests.recorded import recorded_run
from toolparse_lab.core.remote import remote_files
from toolparse_lab.evals.frames.dtypes import conform
from toolparse_lab.evals.frames.files import convert_frame, read_frame, table_of, write_frame
from toolparse_lab.evals.frames.parsing import parse_frame
from toolparse_lab.experiments.plan_file import read_plan_file
from toolparse_lab.runner.settings import load_settings

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "frames.md"
TOOLS = [{"name": "get_tide", "parameters": {"properties": {"port": {"type": "string"}}}}]
TARGET = [{"name": "get_tide", "arguments": {"port": "Bergen"}}]
CALL = '<tool_call>{"name": "get_tide", "arguments": {"port": "Bergen"}}</tool_call>'


@pytest.fixture(scope="module")
def frame(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    return recorded_run(tmp_path_factory.mktemp("run"), every=3).frame()


@pytest.mark.parametrize("protocol", [None, "hermes", "auto"])
def test_it_reads_what_a_frame_has(frame: pd.DataFrame, protocol: str | None) -> None:
    table = convert_frame(frame, "trials", "arrow")
    read = tp.read_table(table, protocol, policy="none")
    expected = parse_frame(frame, protocol, "none")
    assert_frame_equal(conform(read.to_pandas(), "trials"), expected)
    # However it is cut, and in another process.
    elsewhere = pickle.loads(pickle.dumps(partial(tp.read_table, protocol=protocol, policy="none")))
    parts = [elsewhere(table.slice(start, 30)) for start in range(0, len(table), 30)]
    assert pa.concat_tables(parts).to_pylist() == read.to_pylist()
    (batch,) = table.slice(0, 50).to_batches()
    assert elsewhere(batch).to_pylist() == read.slice(0, 50).to_pylist()


def test_texts_alone_and_values_that_are_no_texts() -> None:
    alone = tp.read_table(pa.table({"raw": [CALL, "Hi", CALL]}), "hermes", tools=TOOLS)
    assert alone["outcome"].to_pylist() == ["ungraded"] * 3
    assert alone["n_valid"].to_pylist() == [1, 0, 1]
    assert len(set(alone["case_id"].to_pylist())) == 2, "the same text, without a question"
    asked = [{"role": "user", "content": "Tide?"}]
    nested = pa.table({"raw": [CALL] * 2, "input": [asked, None], "target": [TARGET, None],
                       "tools_json": [TOOLS, None], "page": [3, 4]})  # fmt: skip
    read = tp.read_table(nested, "hermes", tools=[{"name": "other"}])
    assert read["outcome"].to_pylist() == ["correct", "wrong_call"]
    assert read["page"].to_pylist() == [3, 4], "columns of your own stay"
    assert read["input"][0].as_py() == '[{"role":"user","content":"Tide?"}]'
    assert tp.read_table(nested.slice(0, 0), "hermes").schema == read.schema
    with pytest.raises(tp.errors.UnreadableInput, match="column raw"):
        tp.read_table(pa.table({"text": ["Hi"]}))
    with pytest.raises(tp.errors.UnreadableInput, match="row 1, column target"):
        tp.read_table(pa.table({"raw": ["a", "b"], "target": [None, "{"]}))


def test_files_that_stand_elsewhere(frame: pd.DataFrame) -> None:
    for n, start in enumerate(range(0, len(frame), 40)):
        with fsspec.open(f"memory://parts/answers-{n}.parquet", "wb") as file:
            pq.write_table(table_of(frame.iloc[start : start + 40], "trials"), file)
    expected = tp.report(frame).frame
    for source in (
        "memory://parts/*.parquet",
        "memory://parts",
        remote_files("memory://parts", ""),
    ):
        assert_frame_equal(tp.report(source).frame, expected)
    lab = tp.Lab(":memory:")
    again = lab.reparse("memory://parts/*.parquet", ["auto"], engine="serial", progress=False)
    assert_frame_equal(again, parse_frame(frame, "auto"))
    for name in ("frame.csv", "frame.parquet"):
        assert write_frame(frame, f"memory://out/{name}") == f"memory://out/{name}"
        assert_frame_equal(read_frame(f"memory://out/{name}", "trials"), frame)
    with pytest.raises(tp.errors.UnreadableInput, match=r"no Parquet file"):
        tp.report("memory://none/*.parquet")
    with fsspec.open("memory://plans/plan.toml", "w") as file:
        file.write('cases = "cases.jsonl"\n')
    plan = read_plan_file("memory://plans/plan.toml", load_settings())
    assert plan.cases == "memory://plans/cases.jsonl"


def recipe(heading: str, folder: Path) -> str:
    """The block under a heading of the page, over a folder."""
    section = PAGE.read_text("utf-8").partition(f"\n### {heading}\n")[2]
    code: str = re.findall(r"```python no-run: [^\n]*\n(.*?)```", section, re.S)[0]
    return code.replace("s3://logs/", f"{folder}/")


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    (tmp_path / "answers").mkdir()
    for n in range(3):
        table = pa.table(
            {"raw": [CALL, "Hi", CALL[:-20]], "case_id": [f"{n}-{i}" for i in range(3)]}
        )
        pq.write_table(table, tmp_path / "answers" / f"{n}.parquet")
    return tmp_path


def outcomes(folder: Path) -> dict[str, Any]:
    read = read_frame(folder / "read", "trials")
    return dict(zip(read["case_id"], read["verdict"], strict=True))


def test_the_recipe_for_an_array_of_jobs(answers: Path) -> None:
    (answers / "read").mkdir()
    code = recipe("Slurm", Path(f"file://{answers}"))
    for number in range(2):
        job = {"SLURM_ARRAY_TASK_ID": str(number), "SLURM_ARRAY_TASK_COUNT": "2"}
        subprocess.run([sys.executable, "-c", code], env={**os.environ, **job}, check=True)
    assert len(outcomes(answers)) == 9
    assert outcomes(answers)["2-0"] == "unchecked"


@pytest.mark.exhaustive
@pytest.mark.parametrize(("heading", "package"), [("Ray Data", "ray"), ("Spark", "pyspark")])
def test_the_recipes_where_their_packages_are(heading: str, package: str, answers: Path) -> None:
    pytest.importorskip(package)
    code = recipe(heading, answers)
    workers = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    subprocess.run([sys.executable, "-c", code], env=workers, check=True, timeout=300)
    assert len(outcomes(answers)) == 9
    assert outcomes(answers)["2-0"] == "unchecked"
