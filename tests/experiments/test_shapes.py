"""Logs of other tools, known by their keys: what each shape's rows hold, whatever file they come
in."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import toolparse_lab as tp
from tests.core_cases import EVALS, load
from tests.tables import asked_of, every_case
from toolparse_lab.core.errors import BadCase, ToolparseError, UnknownName
from toolparse_lab.evals.cases.row_files import RowSource
from toolparse_lab.experiments.ingest.columns import Settings
from toolparse_lab.experiments.ingest.rows import RowReader
from toolparse_lab.experiments.ingest.shapes import Log, ShapeReader, shapes
from toolparse_lab.experiments.run import Run

ROWS = load("shapes.jsonl", EVALS)
SPANS = load("spans.jsonl", EVALS)
PER_SHAPE = {row["shape"]: row for row in reversed(ROWS)}
COLUMNS = ("latency", "ttft", "cost", "arguments_text", "error", "served_model")


def check(run: Run, row: dict[str, Any]) -> None:
    trials = {trial.case_id: trial for trial in run.trials()}
    by_id = [trials[a["case_id"]] for a in row["answers"] if "case_id" in a]
    frame = run.frame().set_index("trial_id")
    found = [
        t for item in run.plan.items for t in run.trials(case_id=item.case_id, trial=item.trial)
    ]
    assert len(found) == len(row["answers"]) == len(run.plan.items)
    assert len(by_id) == len({t.case_id for t in by_id})
    for trial, wanted in zip(found, row["answers"], strict=True):
        if wanted["calls"] is not None:
            assert trial.result is not None
            calls = [(c.name, json.loads(c.arguments_json)) for c in trial.result.calls if c.ok]
            assert calls == [tuple(call) for call in wanted["calls"]]
        cells = frame.loc[trial.trial_id]
        assert trial.outcome == wanted.get("outcome", "ungraded")
        if trial.outcome == "ungraded":
            assert trial.sub_code == wanted.get("sub_code", "")
        assert len(trial.case.tools) >= wanted.get("tools", 0)
        assert bool(trial.case.input) or not wanted.get("asked")
        for name in ("case_id", "trial", "model"):
            assert getattr(trial, name) == wanted.get(name, getattr(trial, name))
        if "tokens" in wanted:
            assert [cells["prompt_tokens"], cells["completion_tokens"]] == wanted["tokens"]
        for name in COLUMNS:
            if name in wanted or name == "arguments_text":
                expected = wanted.get(name)
                assert pd.isna(cells[name]) if expected is None else cells[name] == expected, name
        if "conversation" in wanted:
            assert trial.case.metadata["conversation_id"] == wanted["conversation"]


@asked_of("row", ROWS, ids=lambda r: r["id"])
def test_a_row_alone(row: dict[str, Any], lab: tp.Lab, capsys: Any) -> None:
    run = lab.ingest(row["row"])
    check(run, row)
    said = capsys.readouterr().err
    assert f"of {row['shape']} (" in said
    assert shapes()[row["shape"]].lost in said
    assert sum(s.count for s in run.plan.cases.skipped) == row.get("left_out", 0)


@asked_of("span", SPANS, ids=lambda s: s["id"])
def test_spans_that_instrumentations_wrote(span: dict[str, Any], lab: tp.Lab) -> None:
    # Of a model that wrote a comma too many in its arguments, and of one whose server lifted none.
    run = lab.ingest(span["row"], tools=[PER_SHAPE["k2vv"]["row"]["request"]["tools"][0]])
    for trial in run.trials():
        assert trial.result is not None
        (call,) = trial.result.calls
        assert (call.name, call.arguments) == ("find_berth", {"port": "Ystad", "nights": 2})
        assert call.edits or call.steps
        assert trial.case.messages[-1]["content"] == "A berth in Ystad?"
    frame = run.frame()
    assert set(frame["served_model"].fillna(frame["model"])) == {"m1"}


@pytest.mark.parametrize("shape", sorted(PER_SHAPE))
@pytest.mark.parametrize("kind", ["whole", "gzip", "jsonl", "array", "damaged", "mark"])
@pytest.mark.exhaustive(6)  # each shape once, and each kind
def test_a_file(kind: str, shape: str, lab: tp.Lab, tmp_path: Path) -> None:
    row = PER_SHAPE[shape]
    line = json.dumps(row["row"])
    path = tmp_path / {"whole": "log.json", "gzip": "log.jsonl.gz", "array": "log.json"}.get(
        kind, "log.jsonl"
    )
    if kind == "gzip":
        path.write_bytes(gzip.compress(line.encode()))
    elif kind == "array":
        path.write_text(f"[{line}]", "utf-8")
    elif kind == "mark":  # of the byte order, and line ends of Windows
        path.write_text(f"\ufeff{line}\r\n\r\n", "utf-8", newline="")
    elif kind == "damaged":  # rows of no shape, and one that is still written
        path.write_text(f'[1]\n{line}\n{{"zz": 1}}\n{line[: len(line) // 2]}', "utf-8")
        with pytest.raises(BadCase, match="3 of 4 rows"):
            lab.ingest(path, errors="raise", progress=False)
        run = lab.ingest(path, progress=False)
        names = [s.name for s in run.plan.cases.skipped]
        assert names[0] == "rows that cannot be read"
        return check(run, row)
    else:
        path.write_text(line + "\n", "utf-8")
    check(lab.ingest(path, progress=False), row)
    return None


@every_case
def test_a_bad_row_names_line_shape_and_key(
    shape: str, row: dict[str, Any], key: str, lab: tp.Lab
) -> None:
    with pytest.raises(BadCase) as caught:
        lab.ingest([PER_SHAPE[shape]["row"], row], errors="raise")
    assert caught.value.line == 2
    assert caught.value.message.startswith((f"{shape}: ", "rows, row 2")) or shape in str(
        caught.value
    )
    assert shapes()[shape].keys[key].split(",")[0].split("[")[0] in str(caught.value)
    assert not list(lab.runs())


def test_tools_that_were_given_are_not_asked_for(lab: tp.Lab, capsys: Any) -> None:
    row = {k: v for k, v in PER_SHAPE["messages"]["row"].items() if k != "tools"}
    lab.ingest(row)
    assert "pass tools=" in capsys.readouterr().err
    lab.ingest(row, tools=[{"name": "find_berth"}])
    assert "pass tools=" not in capsys.readouterr().err


ODD = [None, 5, "x", "", [], {}, [None], {"a": 1}, True, "[{", "[1]", -1, 1e30, "{}", {"0": 1}]


def places(x: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    members = x.items() if isinstance(x, dict) else enumerate(x) if isinstance(x, list) else ()
    for key, value in members:
        yield (*path, key)
        yield from places(value, (*path, key))


@asked_of("seed", range(4))
def test_whatever_stands_in_a_row_it_is_read_or_refused(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(250):
        row = json.loads(json.dumps(rng.choice(ROWS)["row"]))
        *path, last = rng.choice(list(places(row)))
        node = row
        for step in path:
            node = node[step]
        node[last] = rng.choice(ODD)
        source = RowSource("x", iter(()), unit="row", from_json=True)
        reader, log = RowReader(source, Settings()), Log("x")
        for one in ShapeReader(source).read(1, row, log):
            with suppress(ToolparseError):
                list(reader.read(1, one, log))


UNKNOWN: list[Any] = [{"type": "zz_kind", "zz": "f"}, {"zz": "f", "zz_args": {"a": 1}}]
UNKNOWN += [[UNKNOWN[0]], json.dumps([UNKNOWN[0]])]
# The text of an attachment that is not there is its name.
KEPT_APART = ("samples", 0, "attachments")


@asked_of("first", range(2))
def test_what_nobody_knows_in_the_place_of_an_answer_is_said(first: int) -> None:
    def says(row: Any) -> list[bool]:
        source = RowSource("x", iter(()), unit="row", from_json=True)
        reader, log = RowReader(source, Settings()), Log("x")
        with suppress(ToolparseError):
            observed = [o for one in ShapeReader(source).read(1, row, log)
                        for o in reader.read(1, one, log)]  # fmt: skip
            found = [(o.captured, o.error) for o in observed]
            return [bool(c.content or c.tool_calls or c.unread or error) for c, error in found]
        return []

    for number, known in enumerate((*ROWS, *SPANS)):
        before = says(known["row"])
        paths = [path for path in places(known["row"]) if path != KEPT_APART]
        for place in range((first + number) % 8, len(paths), 8):
            row = json.loads(json.dumps(known["row"]))
            *path, last = paths[place]
            node = row
            for step in path:
                node = node[step]
            node[last] = UNKNOWN[place // 8 % len(UNKNOWN)]
            after = says(row)
            assert len(after) != len(before) or after >= before, (known["id"], paths[place])


def test_a_shape_is_forced_or_left_out(lab: tp.Lab) -> None:
    row = PER_SHAPE["k2vv"]["row"]
    with pytest.raises(BadCase, match="no row of langsmith"):
        lab.ingest([row], shape="langsmith")
    with pytest.raises(UnknownName, match="did you mean langsmith"):
        lab.ingest([row], shape="langsmit")
    run = lab.ingest([row], shape="rows", progress=False)
    assert run.trials()[0].case.metadata["data_index"] == 4


def test_whoever_maps_columns_has_said_what_they_are(lab: tp.Lab) -> None:
    row = {**PER_SHAPE["bfcl"]["row"]}
    run = lab.ingest([row], columns={"result": "raw", "id": "case_id"}, others="drop")
    assert run.trials()[0].case_id == row["id"]


def test_a_frame_and_a_parquet_file(lab: tp.Lab, tmp_path: Path) -> None:
    rows = [row for row in ROWS if row["id"] in ("phoenix-columns", "langsmith-json-columns")]
    for number, row in enumerate(rows):
        frame = pd.DataFrame([row["row"]])
        check(lab.ingest(frame, progress=False), row)
        frame.to_parquet(tmp_path / f"{number}.parquet")
        check(lab.ingest(tmp_path / f"{number}.parquet", progress=False), row)


def test_the_requests_of_a_batch(lab: tp.Lab, tmp_path: Path) -> None:
    row = PER_SHAPE["batch"]["row"]
    body = PER_SHAPE["k2vv"]["row"]["request"]
    asked = tmp_path / "asked.jsonl"
    asked.write_text(json.dumps({"custom_id": "q1", "method": "POST", "body": body}), "utf-8")
    (trial,) = lab.ingest([row], requests=asked, progress=False).trials()
    assert [tool.name for tool in trial.case.tools] == ["find_berth"]
    assert trial.case.messages[-1]["content"] == "A berth in Ystad?"


def test_a_log_of_inspect_is_a_zip(lab: tp.Lab, tmp_path: Path) -> None:
    zipfile = pytest.importorskip("backports.zstd.zipfile")
    row = next(row for row in ROWS if row["id"] == "inspect-log")
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_ZSTANDARD) as log:
        log.writestr("header.json", json.dumps({"eval": row["row"]["eval"]}))
        for sample in row["row"]["samples"]:
            log.writestr(f"samples/{sample['id']}_epoch_{sample['epoch']}.json", json.dumps(sample))
        log.writestr("summaries.json", "[]")
    check(lab.ingest(path, progress=False), row)


def test_the_model_of_a_benchmark_is_its_folder(lab: tp.Lab, tmp_path: Path) -> None:
    folder = tmp_path / "result" / "some-model-FC" / "non_live"
    folder.mkdir(parents=True)
    path = folder / "BFCL_v4_simple_python_result.json"
    rows = [{**PER_SHAPE["bfcl"]["row"], "id": f"simple_python_{i}"} for i in range(3)]
    path.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    run = lab.ingest(path, progress=False)
    assert {t.model for t in run.trials()} == {"some-model-FC"}
    assert len(run.trials()) == 3


def test_a_client_s_own_objects(lab: tp.Lab) -> None:
    class Observation:
        def __init__(self, row: dict[str, Any]) -> None:
            self.row = row

        def model_dump(self, **_: Any) -> dict[str, Any]:
            return self.row

    row = PER_SHAPE["langfuse"]
    check(lab.ingest([Observation(row["row"])], progress=False), row)


def test_a_call_left_in_the_text_is_read_and_blamed_on_the_server(lab: tp.Lab) -> None:
    call = {"name": "find_berth", "arguments": {"port": "Ystad", "nights": 2}}
    rows = [{**PER_SHAPE["litellm"]["row"], "id": f"x{i}"} for i in range(3)]
    rows[2] |= {"response": {"choices": [{"message": {"role": "assistant", "content": "No."}}]}}
    tools = rows[0]["model_parameters"]["tools"]
    asked = rows[0]["messages"]
    cases = [{"id": f"x{i}", "input": asked, "tools": tools, "target": t}
             for i, t in enumerate([[call], [{**call, "arguments": {"port": "Kiel"}}], []])]  # fmt: skip
    run = lab.ingest(rows, cases=cases, progress=False)
    right, wrong, none = sorted(run.trials(), key=lambda t: t.case_id)
    assert (right.outcome, right.sub_code) == ("correct", "not_lifted")
    assert wrong.outcome == "wrong_call"
    assert "left the call in its text" in right.detail
    assert "left the call in its text" in wrong.detail
    assert (none.outcome, none.sub_code) == ("abstained_correctly", "")
    # They are one arm, whatever the server made of its answers.
    frame = run.frame()
    assert set(frame["prompt_protocol"]) == {"native"}
    assert list(frame.sort_values("case_id")["parse_protocol"]) == ["auto", "auto", "openai_json"]
    assert frame["blame"].str.startswith("Server lost it").sum() == 2
    assert [t.case_id for t in run.failures()] == ["x1"]
    # Read again from its frame, or from the store, it is the same.
    again = lab.reparse(frame)
    assert list(again["outcome"]) == list(frame["outcome"])
    assert again["sub_code"].astype(str).tolist() == frame["sub_code"].astype(str).tolist()
    ungraded = lab.ingest([rows[0]], progress=False)
    assert [t.case_id for t in ungraded.failures()] == []


def test_strictness_is_not_judged_without_the_text_of_arguments(lab: tp.Lab) -> None:
    row = next(r for r in ROWS if r["id"] == "langfuse-calls-as-objects")["row"]
    target = [{"name": "find_berth", "arguments": {"port": "Ystad", "nights": 2}}]
    tools = row["input"]["tools"]
    case = {"id": "g1", "input": row["input"]["messages"], "tools": tools, "target": target}
    run = lab.ingest([row], cases=[case], progress=False)
    (trial,) = run.trials()
    assert trial.score is not None
    assert (trial.outcome, trial.score.strict, trial.score.repaired) == ("correct", None, True)
    again = lab.reparse(run.frame())
    assert pd.isna(again["score_strict"]).all()


def test_one_conversation_is_one_cluster(lab: tp.Lab) -> None:
    row = next(r for r in ROWS if r["id"] == "tau2-file")["row"]
    run = lab.ingest(row, progress=False)
    assert run.plan.cluster == "metadata_conversation_id"
    assert run.report().cluster == run.plan.cluster
    assert lab.open(run.run_id).report().cluster == run.plan.cluster


def test_what_is_no_answer_is_counted(lab: tp.Lab) -> None:
    chain = {"id": "c", "run_type": "chain", "inputs": {}, "outputs": {}}
    run = lab.ingest([chain, PER_SHAPE["langsmith"]["row"]], progress=False)
    (skipped,) = run.plan.cases.skipped
    assert (skipped.name, skipped.count) == ("chain runs", 1)
    tool = {"attributes": {"ai.operationId": "ai.toolCall", "ai.toolCall.name": "f"}}
    run = lab.ingest([tool, PER_SHAPE["ai_sdk"]["row"]], progress=False)
    assert [skipped.name for skipped in run.plan.cases.skipped] == ["other spans"]
    with pytest.raises(BadCase, match="there are no answers"):
        lab.ingest([chain], progress=False)


def test_every_shape_says_its_keys_and_what_it_lost() -> None:
    assert set(shapes()) == set(PER_SHAPE)
    for shape in shapes().values():
        assert shape.keys
        assert shape.lost
        assert shape.title


@every_case
def test_a_body_that_is_no_answer_is_the_provider_s_error(
    cells: dict[str, Any], kind: str | None, lab: tp.Lab
) -> None:
    (trial,) = lab.ingest([{"input": "?", "target": [], **cells}], progress=False).trials()
    assert getattr(trial.completion, "error_kind", None) == kind
    if kind is None:
        assert trial.outcome == "abstained_correctly"
    else:
        assert trial.outcome in ("provider_error", "context_overflow")
