"""Recorded outputs from elsewhere become runs: every shape of source, what is guessed, what is
refused, and no key."""

from __future__ import annotations

import io
import json
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

import toolparse_lab as tp
from tests.tables import asked_of, each_case, every_case, table
from tests.tools import tool_named
from toolparse_lab.core.errors import (
    BadCase,
    BadOptions,
    BadPlan,
    BadToolSpec,
    StoreError,
    UnknownProtocol,
    UnreadableInput,
)
from toolparse_lab.core.toolspec import tool_specs
from toolparse_lab.evals.frames.account import failed_rows
from toolparse_lab.experiments.ingest import build, rows
from toolparse_lab.experiments.run import Run
from toolparse_lab.runner.store.recording import import_recording, is_recording, write_recording

TOOL = tool_named("get_weather", required=["city"], city="string", days="integer")
RIGHT = '<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo", "days": "3"}}</tool_call>'
CUT = '<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"'
WANTED = [{"name": "get_weather", "arguments": {"city": "Oslo", "days": 3}}]
ROWS: list[dict[str, Any]] = [
    {"case_id": "c1", "model": "a", "prompt_protocol": "hermes", "input": "Weather in Oslo?", "raw": RIGHT,
     "tools": [TOOL], "target": WANTED, "latency": 0.5, "prompt_tokens": 10, "metadata_user": "u1"},
    {"case_id": "c1", "model": "b", "prompt_protocol": "hermes", "input": "Weather in Oslo?", "raw": CUT,
     "tools": [TOOL], "target": WANTED, "latency": 1.5, "prompt_tokens": 12, "metadata_user": "u1"},
    {"case_id": "c2", "model": "a", "prompt_protocol": "hermes", "input": "Hello!", "raw": "Good \U0001f600 day",
     "tools": [TOOL], "target": [], "latency": 0.25, "prompt_tokens": 9, "metadata_user": "u2"},
]  # fmt: skip


def message(content: str | None = None, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **more}


def response(content: str | None = RIGHT, *, finish: str = "stop", **more: Any) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1", "object": "chat.completion", "model": "gpt-x",
        "choices": [{"index": 0, "message": message(content, **more), "finish_reason": finish}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 5},
    }  # fmt: skip


def native(arguments: str) -> dict[str, Any]:
    call = {
        "id": "call_1",
        "type": "function",
        "function": {"name": "get_weather", "arguments": arguments},
    }
    return response(None, finish="tool_calls", tool_calls=[call])


def sse(*pieces: str, finish: str | None = "stop", done: bool = True) -> str:
    chunks = [
        {"id": "s1", "model": "gpt-x", "choices": [{"index": 0, "delta": {"content": p}}]}
        for p in pieces
    ]
    if finish:
        chunks.append({"id": "s1", "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    text = "".join(f"data: {json.dumps(c)}\n\n" for c in chunks)
    return text + ("data: [DONE]\n\n" if done else "")


def as_objects(x: Any) -> Any:
    """A dict as the objects that clients make of it."""
    if isinstance(x, dict):
        return SimpleNamespace(**{k: as_objects(v) for k, v in x.items()})
    return [as_objects(v) for v in x] if isinstance(x, list) else x


def outcomes(run: Run) -> list[tuple[str, str, str]]:
    return [(t.case_id, t.model, t.outcome) for t in run.trials()]


# tables


def source_of(kind: str, folder: Path) -> Any:
    if kind == "rows":
        return ROWS
    if kind == "jsonl":
        path = folder / "log.jsonl"
        path.write_text("\n".join(json.dumps(r) for r in ROWS), "utf-8")
    elif kind == "json":
        path = folder / "log.json"
        path.write_text(json.dumps(ROWS), "utf-8")
    else:
        frame = pd.DataFrame(ROWS)
        if kind == "frame":
            return frame
        frame["tools"] = frame["tools"].map(json.dumps)
        frame["target"] = frame["target"].map(json.dumps)
        path = folder / f"log.{kind}"
        frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
    return path


@pytest.mark.parametrize("kind", ["rows", "frame", "jsonl", "json", "csv", "parquet"])
def test_the_same_run_from_every_table(kind: str, lab: tp.Lab, tmp_path: Path) -> None:
    run = lab.ingest(source_of(kind, tmp_path))
    assert outcomes(run) == [
        ("c1", "a", "correct"), ("c2", "a", "abstained_correctly"), ("c1", "b", "truncated"),
    ]  # fmt: skip
    frame = run.frame()
    assert list(frame["latency"]) == [0.5, 0.25, 1.5]
    assert list(frame["prompt_tokens"]) == [10, 9, 12]
    assert list(frame["metadata_user"]) == ["u1", "u2", "u1"]
    assert set(frame["fidelity"]) == {"replayed"}
    assert run.trials()[1].result is not None
    completion = run.trials()[1].completion
    assert completion is not None
    assert completion.raw == "Good \U0001f600 day"
    assert lab.ingest(ROWS).run_id == run.run_id


def test_it_is_a_run_like_any_other(lab: tp.Lab, tmp_path: Path) -> None:
    run = lab.ingest(ROWS)
    assert run.report().frame["n"].sum() == 3
    failed = run.failures(code="truncated")
    assert [t.model for t in failed] == ["b"]
    assert failed[0].result is not None
    assert "cut off" in failed[0].result.why()
    assert failed[0].reparse("auto").outcome == "truncated"
    assert failed[0].as_pytest(tmp_path / "test_it.py").exists()
    assert list(run.calls_df()["name"]) == ["get_weather", "get_weather"]
    opened = lab.open(run.run_id)
    pd.testing.assert_frame_equal(opened.frame(), run.frame())
    assert [r.run_id for r in lab.runs()] == [run.run_id]


UNGRADED = [
    row for row in table(__file__) if row["test"] == "a_log_without_targets_has_its_failures"
]
"""A row of a log without targets, and the outcome by which it is a failure; '' where it is none."""


def test_a_log_without_targets_has_its_failures(lab: tp.Lab, tmp_path: Path) -> None:
    rows = [
        {"case_id": f"c{i}", "tools": [TOOL], "prompt_protocol": "hermes", **r["row"]}
        for i, r in enumerate(UNGRADED)
    ]
    run = lab.ingest(rows)
    failed = run.failures()
    assert [(t.case_id, t.outcome) for t in failed] == [
        (f"c{i}", r["outcome"]) for i, r in enumerate(UNGRADED) if r["outcome"]
    ]
    frame = run.frame()
    assert list(frame.loc[failed_rows(frame), "trial_id"]) == [t.trial_id for t in failed]
    for trial in failed:
        assert trial.why().startswith(trial.outcome)
        assert trial.detail
        assert trial.trial_id in {
            t.trial_id for t in run.failures(code=trial.sub_code or trial.outcome)
        }
    assert run.failures(code="provider_error")[0].sub_code == "timeout"
    (broken,) = run.failures(code="ungraded")
    assert broken.result is not None
    assert broken.result.why() in broken.why()
    assert (
        failed.as_pytest(tmp_path / "test_failed.py").read_text("utf-8").count("def test_")
        == len(failed) - 1
    )


@every_case
def test_failures_are_asked_for_by_what_there_is(
    how: dict[str, Any], says: str, lab: tp.Lab
) -> None:
    with pytest.raises(BadOptions, match=says):
        lab.ingest(ROWS).failures(**how)


def test_no_trials_say_so(lab: tp.Lab) -> None:
    none = lab.ingest(ROWS).failures(code="refused")
    assert len(none) == 0
    with pytest.raises(IndexError, match="no trial fits"):
        none[0]
    with pytest.raises(tp.errors.NoSuchItem, match="3 trials"):
        lab.ingest(ROWS).trials()[3]


def test_nothing_can_be_asked_again_that_was_not_asked_here(lab: tp.Lab) -> None:
    run = lab.ingest(
        [{"case_id": "c", "error": "timeout"}, {"case_id": "d", "output": "x"}, 3], errors="skip"
    )
    for again in (run, lab.open(run.run_id)):
        assert "0 calls" in str(again.plan)
        assert repr(again) == repr(run)
        for ask in (lab.retry, lambda r: lab.run(r.plan)):
            with pytest.raises(BadPlan, match="nothing to ask"):
                ask(again)
        with pytest.raises(BadOptions, match="nobody knows"):
            again.trials()[0].retry()


def test_a_trials_frame_comes_back_whole(lab: tp.Lab, tmp_path: Path) -> None:
    rows = [
        *ROWS,
        {
            "case_id": "c3",
            "model": "a",
            "prompt_protocol": "hermes",
            "input": "?",
            "raw": "a\ud800b \\ud800",
        },
    ]
    run = lab.ingest(rows, tools=[TOOL])
    frame = run.frame(policies=("safe", "middleware"))
    frame.to_parquet(tmp_path / "trials.parquet")
    with tp.Lab(tmp_path / "other.db") as other:
        again = other.ingest(tmp_path / "trials.parquet")
        assert outcomes(again) == outcomes(run)
        completion = again.trials()[-2].completion
        assert completion is not None
        assert completion.raw == "a\ud800b \\ud800"
        assert {s.name: s.count for s in again.plan.cases.skipped} == {"copies": 4}
        assert [c.metadata for c in again.plan.cases] == [c.metadata for c in run.plan.cases]


# names


def test_common_names_are_understood(lab: tp.Lab) -> None:
    row = {
        "custom_id": "q1", "Prompt": "Weather?", "Model-Name": "m", "completion": RIGHT,
        "category": "easy", "tools_json": json.dumps([TOOL]), "input_tokens": 3, "output_tokens": 4,
        "when": "today", "protocol": "json_mix",
    }  # fmt: skip
    trial = lab.ingest([row]).trials()[0]
    assert (trial.case_id, trial.model, trial.prompt_protocol, trial.case.input) == (
        "q1",
        "m",
        "hermes",
        "Weather?",
    )
    assert trial.completion is not None
    assert (trial.completion.prompt_tokens, trial.completion.completion_tokens) == (3, 4)
    assert trial.case.metadata == {"category": "easy", "when": "today"}
    assert trial.result is not None
    assert trial.result.calls[0].valid


def test_columns_are_named_and_left_out(lab: tp.Lab) -> None:
    rows = [{"said": RIGHT, "text": "a note", "id": 7, "who": "x"}]
    run = lab.ingest(
        rows,
        columns={"said": "raw", "text": "metadata_note", "who": None},
        model="m",
        protocol="hermes",
    )
    trial = run.trials()[0]
    assert (trial.case_id, trial.model, trial.case.metadata) == ("7", "m", {"note": "a note"})
    assert trial.completion is not None
    assert trial.completion.raw == RIGHT
    assert lab.ingest(rows, columns={"said": "raw"}, others="drop").plan.cases[0].metadata == {}


def test_a_name_of_ours_goes_before_one_that_is_like_it(lab: tp.Lab) -> None:
    run = lab.ingest([{"Model": "no", "model": "yes", "output": "x"}], columns={"Model": None})
    assert run.trials()[0].model == "yes"
    with pytest.raises(BadCase, match="two columns"):
        lab.ingest([{"raw": "x", "RAW": "y"}])


def test_the_text_of_a_column_goes_before_that_of_the_response(lab: tp.Lab) -> None:
    trial = lab.ingest([{"raw": RIGHT, "response": response("what a client made of it")}]).trials()[
        0
    ]
    assert trial.completion is not None
    assert (trial.completion.raw, trial.completion.prompt_tokens) == (RIGHT, 7)


def test_two_questions_with_one_digest_are_two_cases(
    lab: tp.Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = rows.question_id
    for module in (rows, build):
        monkeypatch.setattr(
            module, "question_id", lambda case, digits=10: short(case, 1 if digits == 10 else 32)
        )
    log = [{"input": f"Question {n}?", "raw": "", "model": m} for m in "ab" for n in range(40)]
    run = lab.ingest(log, protocol="hermes")
    assert len({case.input_text for case in run.plan.cases}) == len(run.plan.cases) == 40
    assert run.frame().groupby("case_id")["input"].nunique().eq(1).all()


def test_rows_without_an_id_share_a_case_by_their_input(lab: tp.Lab) -> None:
    rows = [
        {"prompt": p, "output": o, "model": m} for p in "xy" for m, o in (("a", "1"), ("b", "2"))
    ]
    run = lab.ingest(rows)
    assert len(run.plan.cases) == 2
    assert len(run.plan.items) == 4
    bare = lab.ingest([{"output": "1"}, {"output": "2"}])
    assert [c.id for c in bare.plan.cases] == ["row-1", "row-2"]


BAD_ARGUMENTS: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
    (pd.DataFrame({"a": [1]}), {}, BadCase, "no column holds the answers"),
    (pd.DataFrame({"raw": ["x"]}), {"columns": {"nope": "raw"}}, BadCase, "no such column"),
    (ROWS, {"columns": {"nope": "metadata_x"}}, BadCase, "no row has this column"),
    (ROWS, {"columns": {"raw": "text"}}, BadOptions, "not known"),
    (ROWS, {"errors": "ignore"}, BadOptions, "what becomes of bad rows"),
    ([{"raw": "x", "extra": 1}], {"others": "error"}, BadCase, "unknown column"),
    (ROWS, {"protocol": "hermse"}, UnknownProtocol, "no protocol of this name"),
    (ROWS, {"tools": [3]}, BadToolSpec, "no tool definition"),
    (ROWS, {"split": "train"}, BadOptions, "has splits"),
    ([], {}, BadCase, "there are no answers"),
    (3, {}, BadCase, "neither a path nor a list of rows"),
    ("nowhere.jsonl", {}, UnreadableInput, "no such file"),
    ("nowhere.sse", {}, UnreadableInput, "no such file"),
    (
        [{"format": "toolparse-recording", "version": 1}],
        {},
        UnreadableInput,
        "recording of this package",
    ),
]


@asked_of(("source", "how", "error", "message"), BAD_ARGUMENTS)
def test_bad_arguments(
    source: Any, how: dict[str, Any], error: type[Exception], message: str, lab: tp.Lab
) -> None:
    with pytest.raises(error, match=message):
        lab.ingest(source, **how)
    assert lab.runs() == []


# response objects

OBJECTS: list[tuple[str, Any]] = [
    ("objects", as_objects(response())),
    ("objects in a frame", pd.DataFrame({"response": [response()]})),
    (
        "an exported trace as text",
        pd.DataFrame({"input": ["Weather?"], "output": [json.dumps(message(RIGHT))]}),
    ),
]


@asked_of("source", [s for _, s in OBJECTS], ids=[n for n, _ in OBJECTS])
def test_objects_and_frames_of_answers(source: Any, lab: tp.Lab) -> None:
    is_the_right_answer(source, lab)


@every_case
def test_every_shape_of_an_answer(source: Any, lab: tp.Lab) -> None:
    is_the_right_answer(source, lab)


def is_the_right_answer(source: Any, lab: tp.Lab) -> None:
    run = lab.ingest(source, tools=[TOOL], protocol="hermes")
    trial = run.trials()[0]
    assert len(run.trials()) == 1
    assert trial.completion is not None
    assert trial.completion.raw == RIGHT
    assert trial.result is not None
    assert trial.result.calls[0].arguments == {"city": "Oslo", "days": 3}
    assert lab.ingest(source, tools=[TOOL], protocol="hermes").run_id == run.run_id


def test_a_response_says_who_and_how_much(lab: tp.Lab) -> None:
    trial = lab.ingest(response(reasoning_content="hm")).trials()[0]
    c = trial.completion
    assert c is not None
    assert (trial.model, c.prompt_tokens, c.completion_tokens, c.reasoning) == ("gpt-x", 7, 5, "hm")
    assert (c.finish_reason, c.fidelity, c.endpoint_kind) == ("stop", "sdk", "chat_text")


def test_an_answer_of_ollama_says_who_wrote_it_and_its_calls_are_no_repair(lab: tp.Lab) -> None:
    function = {"name": "get_weather", "arguments": {"city": "Oslo"}}
    body = {"model": "llama3.1", "message": message("", tool_calls=[{"function": function}]), "done": True,
            "prompt_eval_count": 7}  # fmt: skip
    (row,) = lab.ingest([body], tools=[TOOL]).frame().to_dict("records")
    assert (row["model"], row["prompt_tokens"], row["verdict"]) == ("llama3.1", 7, "clean")


def test_arguments_that_a_log_kept_as_objects_are_no_repair(lab: tp.Lab) -> None:
    function: dict[str, Any] = {"name": "get_weather", "arguments": {"city": "Oslo"}}
    called: dict[str, Any] = {"tool_calls": [{"type": "function", "function": function}]}
    langchain = {
        "type": "ai",
        "content": "",
        "tool_calls": [{"name": "get_weather", "args": function["arguments"]}],
    }
    log: dict[str, dict[str, Any]] = {
        "column": {"tool_calls": [function]}, "message": {"response": message(**called)},
        "langchain": {"response": langchain}, "served": {"response": response(None, **called)},
    }  # fmt: skip
    target = [function]
    frame = lab.ingest(
        [{"case_id": name, "target": target, **row} for name, row in log.items()], tools=[TOOL]
    ).frame()
    assert set(frame["outcome"]) == {"correct"}
    lost = frame["arguments_text"].eq("lost").fillna(False)
    assert list(frame.loc[~lost, "case_id"]) == ["served"]
    assert set(frame.loc[lost, "verdict"]) == {"clean"}
    assert frame.loc[lost, "score_strict"].isna().all()
    # The server itself sent an object where its clients expect a text.
    assert list(frame.loc[~lost, "verdict"]) == ["repaired (lossless)"]


def test_a_provider_s_own_calls(lab: tp.Lab) -> None:
    rows = [
        {"case_id": f"{n}", "response": native(a)}
        for n, a in enumerate(['{"city": "Oslo"}', '{"city": "Oslo'])
    ]
    run = lab.ingest(rows, tools=[TOOL], protocol="hermes")
    assert {t.parse_protocol for t in run.trials()} == {"openai_json"}
    assert list(run.calls_df()["valid"]) == [True, False]
    frame = run.frame()
    assert set(frame["endpoint_kind"]) == {"native_tools"}
    assert set(frame["prompt_protocol"]) == {"native"}
    with tp.Lab(":memory:") as other:
        again = other.ingest(frame)
        same = [
            "case_id", "raw", "endpoint_kind", "prompt_protocol", "parse_protocol", "outcome",
            "prompt_tokens",
        ]  # fmt: skip
        pd.testing.assert_frame_equal(again.frame()[same], frame[same])


def test_prose_and_failures_beside_native_calls_are_of_their_arm(lab: tp.Lab) -> None:
    answers: dict[str, Any] = {
        "called": {"response": native('{"city": "Oslo"}')},
        "prose": {"response": response("Which city?")},
        "text": {"raw": "Which city?"},
        "failed": {"error": "timeout"},
        "written": {"response": response(RIGHT)},  # of a format that was asked for, or not lifted
        "other model": {"response": response("Which city?"), "model": "b"},
    }
    log = [{"case_id": name, "model": "a", **answer} for name, answer in answers.items()]
    frame = lab.ingest(log, tools=[TOOL]).frame().set_index("case_id")
    arms = dict.fromkeys(answers, "native") | dict.fromkeys(("written", "other model"), "auto")
    assert dict(frame["arm"]) == dict(frame["prompt_protocol"]) == arms
    assert list(frame.loc["prose"][["endpoint_kind", "outcome"]]) == ["native_tools", "ungraded"]
    told = lab.ingest([{**row, "prompt_protocol": "hermes"} for row in log[1:4]], tools=[TOOL])
    assert set(told.frame()["arm"]) == {"hermes"}


def test_a_text_that_looks_like_an_object_is_a_text(lab: tp.Lab) -> None:
    texts = [
        "Completion(id=3)",
        "ModelResponse(of='the town')",
        '{"choices": ["a"]}',
        '{"error": "none"}',
        "data: x",
    ]
    run = lab.ingest([{"case_id": t, "raw": t} for t in texts])
    assert {t.completion.raw for t in run.trials() if t.completion} == set(texts)


def test_a_table_of_messages(lab: tp.Lab) -> None:
    calls = native('{"city": "Oslo"}')["choices"][0]["message"]["tool_calls"]
    frame = pd.DataFrame(
        {"content": [None, RIGHT], "tool_calls": [json.dumps(calls), None], "case_id": ["a", "b"]}
    )
    run = lab.ingest(frame, tools=[TOOL], protocol="hermes")
    assert [t.parse_protocol for t in run.trials()] == ["openai_json", "hermes"]
    assert list(run.calls_df()["arguments_json"]) == ['{"city":"Oslo"}', '{"city":"Oslo","days":3}']


def test_every_choice_is_a_trial(lab: tp.Lab) -> None:
    several = response()
    several["choices"] = [
        {"index": n, "message": message(t), "finish_reason": "stop"} for n, t in enumerate("abc")
    ]
    run = lab.ingest([{"case_id": "c", "trial": 0, "response": several}])
    assert [(t.trial, t.completion.raw) for t in run.trials() if t.completion] == [
        (0, "a"),
        (1, "b"),
        (2, "c"),
    ]


def test_models_that_the_lab_knows_are_those_of_the_rows(lab: tp.Lab) -> None:
    known = tp.Model("hosted_vllm/x", api_base="http://127.0.0.1:9/v1")
    lab.plan([{"id": "a", "input": "x"}], {"a": known}, ["hermes"])
    assert lab.ingest(ROWS).plan.models == {"a": known, "b": tp.Model("b")}


def test_a_log_of_requests_and_responses(lab: tp.Lab) -> None:
    request = {
        "model": "gpt-x", "messages": [{"role": "user", "content": "Weather?"}], "temperature": 0.5,
        "tools": [{"type": "function", "function": TOOL}],
        "headers": {"Authorization": "Bearer sk-planted-1234567"},
    }  # fmt: skip
    rows = [
        {"request": request, "response": native('{"city": "Oslo"}')},
        {"request": request, "response": response("No")},
    ]
    run = lab.ingest(rows)
    assert len(run.plan.cases) == 1
    assert run.plan.cases[0].input == request["messages"]
    assert [t.trial for t in run.trials()] == [0, 1]
    assert {t.parse_protocol for t in run.trials()} == {"openai_json"}, (
        "tools were offered, so that text is no call"
    )
    sent = run.trials()[0].request
    assert sent["params"]["temperature"] == 0.5
    assert "planted" not in json.dumps(sent)


@pytest.mark.parametrize("depth", [300, 900, 3000])
@each_case
def test_a_row_that_is_nested_without_an_end_costs_one_row(
    row: str, depth: int, lab: tp.Lab, tmp_path: Path
) -> None:
    nested = '{"parts": [' * depth + '"a"' + "]}" * depth
    (tmp_path / "log.jsonl").write_text(f'{{"raw": "fine"}}\n{row % nested}\n')
    run = lab.ingest(tmp_path / "log.jsonl")
    left_out = sum(skipped.count for skipped in run.plan.cases.skipped)
    assert len(run.trials()) + left_out == 2


@every_case
def test_a_question_stands_beside_the_members_of_an_answer(answer: Any, lab: tp.Lab) -> None:
    row = {"prompt": "Weather?", "tools": [TOOL], "case_id": "q", "model": "m", **answer}
    (trial,) = lab.ingest([row]).trials()
    assert trial.completion is not None
    assert (trial.case_id, trial.case.input, trial.completion.raw) == ("q", "Weather?", RIGHT)
    assert [tool.name for tool in trial.case.tools] == [TOOL["name"]]


@pytest.mark.parametrize("pieces", [
    [{"choices": [{"delta": {"content": RIGHT[:9]}}]},
     {"choices": [{"delta": {"content": RIGHT[9:]}, "finish_reason": "stop"}]}],
    [{"candidates": [{"content": {"parts": [{"text": RIGHT[:9]}]}}]},
     {"candidates": [{"content": {"parts": [{"text": RIGHT[9:]}]}, "finishReason": "STOP"}]}],
], ids=["chat", "gemini"])  # fmt: skip
def test_a_file_with_the_pieces_of_one_stream(pieces: Any, lab: tp.Lab, tmp_path: Path) -> None:
    (tmp_path / "log.json").write_text(json.dumps(pieces))
    (trial,) = lab.ingest(tmp_path / "log.json", tools=[TOOL], protocol="hermes").trials()
    assert trial.completion is not None
    assert (trial.completion.raw, trial.completion.stream) == (RIGHT, True)


def test_dumps_of_streams(lab: tp.Lab, tmp_path: Path) -> None:
    (tmp_path / "b.sse").write_text(sse("one") + sse("two"))
    (tmp_path / "a.sse").write_text(sse(RIGHT[:30], finish=None, done=False))
    (tmp_path / "notes.txt").write_text("no stream")
    run = lab.ingest(tmp_path, tools=[TOOL], protocol="hermes")
    assert [t.case_id for t in run.trials()] == ["a", "b", "b-2"]
    cut, whole, _ = (t.completion for t in run.trials())
    assert cut is not None
    assert whole is not None
    assert (cut.ok, cut.cut, cut.error_kind, cut.raw) == (False, True, "cut_stream", RIGHT[:30])
    assert (whole.ok, whole.cut, whole.fidelity, whole.stream) == (True, False, "wire", True)
    assert [c.text for c in whole.chunks] == ["one"]
    assert outcomes(lab.ingest(tmp_path / "a.sse"))[0][2] == "provider_error"


# failed calls


@every_case
def test_failed_calls_are_failures_of_the_provider(
    row: dict[str, Any], error: list[Any], lab: tp.Lab
) -> None:
    run = lab.ingest([{"case_id": "c", **row}])
    trial = run.trials()[0]
    assert trial.completion is not None
    assert [trial.completion.error_kind, trial.completion.error_message] == error
    assert trial.outcome == "provider_error"
    assert run.summary is not None
    assert run.summary.failed == 1
    again = lab.ingest([{"case_id": "c", **row}])
    assert again.run_id == run.run_id
    assert len(lab.store.history(run.plan.items[0].key)) == 1


TIMES: list[tuple[Any, str]] = [
    ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
    (1767323045, "2026-01-02T03:04:05.000+00:00"),
    (1767323045123, "2026-01-02T03:04:05.123+00:00"),
    (pd.Timestamp("2026-01-02"), "2026-01-02T00:00:00"),
]


@asked_of(("given", "kept"), TIMES)
def test_times(given: Any, kept: str, lab: tp.Lab) -> None:
    assert list(lab.ingest([{"output": "x", "timestamp": given}]).frame()["created"]) == [kept]


# bad rows


@every_case
def test_bad_rows_name_their_place_and_are_skipped_when_asked(
    row: Any, message: str, lab: tp.Lab
) -> None:
    is_refused(row, message, lab)


def test_a_row_that_is_no_json_is_refused(lab: tp.Lab) -> None:
    is_refused({"raw": "x", "note": {1, 2}}, "not JSON", lab)


def is_refused(row: Any, message: str, lab: tp.Lab) -> None:
    with pytest.raises(BadCase) as e:
        lab.ingest([*ROWS, row], errors="raise")
    assert message in e.value.message
    assert e.value.line == 4
    run = lab.ingest([*ROWS, row])
    assert len(run.trials()) == 3
    assert [(s.name, s.count) for s in run.plan.cases.skipped] == [("rows that cannot be read", 1)]
    assert "rows that cannot be read 1" in repr(run)


def test_a_question_with_several_targets_is_judged_by_each(lab: tp.Lab) -> None:
    asked = {"input": "Weather?", "tools": [TOOL], "raw": RIGHT, "prompt_protocol": "hermes"}
    log = [{**asked, "target": target, "model": m} for target in (WANTED, []) for m in "ab"]
    run = lab.ingest(log)
    assert list(run.frame()["outcome"]) == ["correct", "wrong_call"] * 2
    assert len(run.plan.cases) == 2
    assert run.plan.cluster == "metadata_conversation_id"
    # So is the second step of a task, which has another target too.
    steps = [("q1", WANTED), ("q2", WANTED), ("q2", []), ("q1", WANTED), ("q2", [])]
    run = lab.ingest([{**asked, "task_id": "t", "input": q, "target": t} for q, t in steps])
    assert sorted(run.frame()["outcome"]) == ["correct"] * 3 + ["wrong_call"] * 2
    assert set(run.frame()["metadata_conversation_id"]) == {"t"}


def test_targets_in_a_column_of_another_name_are_named(lab: tp.Lab) -> None:
    run = lab.ingest([{"input": "Weather?", "raw": RIGHT, "expected": WANTED}], tools=[TOOL])
    (skipped,) = run.plan.cases.skipped
    assert "the column expected has calls" in skipped.reason
    assert "--columns expected=target" in skipped.reason


def test_a_link_that_leads_out_of_a_folder_is_none_of_its_streams(
    lab: tp.Lab, tmp_path: Path
) -> None:
    folder = tmp_path / "streams"
    folder.mkdir()
    (tmp_path / "secret").write_text(sse("secret"), "utf-8")
    (folder / "a.sse").write_text(sse("own"), "utf-8")
    (folder / "b.sse").symlink_to(tmp_path / "secret")
    (folder / "c.sse").symlink_to(folder / "a.sse")
    texts = [t.result.raw for t in lab.ingest(folder).trials() if t.result]
    assert texts == ["own", "own"]


def test_one_id_for_several_questions_loses_no_row(lab: tp.Lab) -> None:
    # The steps of a task. Rows of one task are no independent evidence.
    steps = [("t1", "a"), ("t1", "b"), ("t1", "b"), ("t2", "a"), ("t1", "a")]
    run = lab.ingest(
        [{"task_id": id, "input": q, "raw": f"{n}"} for n, (id, q) in enumerate(steps)]
    )
    cases = [trial.case.id for trial in run.trials()]
    assert cases[0] == cases[4] == "t1"
    assert cases[1] == cases[2] != "t1"
    assert cases[3] == "t2"
    assert cases[1].startswith("t1 ")
    assert list(run.frame()["metadata_conversation_id"]) == ["t1", "t1", "t1", "t2", "t1"]
    assert run.plan.cluster == "metadata_conversation_id"
    assert [(s.name, s.count) for s in run.plan.cases.skipped] == [("case ids", 1)]


def test_a_bad_row_of_a_log_that_is_still_written_costs_one_row(
    lab: tp.Lab, tmp_path: Path, capsys: Any
) -> None:
    answer = {"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]}
    body = {"candidates": [{"content": {"parts": [{"text": "Hi"}]}, "finishReason": "STOP"}]}
    error = {"error": {"message": "slow down", "code": 429}}
    rows = [answer, error, {"choices": []}, {"zz": 1}, body, {"zz": 2}]
    text = "\n".join(map(json.dumps, rows))
    path = tmp_path / "log.jsonl"
    path.write_text(f'{text}\n{{"choices": [{{"mess', "utf-8")
    run = lab.ingest(path)
    failed = ["provider_error"] * 2
    assert [trial.outcome for trial in run.trials()] == ["ungraded", *failed, "ungraded"]
    skipped = {s.reason: s.count for s in run.plan.cases.skipped}
    assert skipped == {
        "lines 4, 6: there is no answer in this row": 2, "line 7: this is not JSON": 1,
    }  # fmt: skip
    said = capsys.readouterr().err
    assert "warning: left out: rows that cannot be read 2: lines 4, 6" in said
    with pytest.raises(BadCase, match="3 of 7 rows"):
        lab.ingest(path, errors="raise")


def test_a_row_of_no_known_shape_names_its_keys_and_the_nearest(lab: tp.Lab) -> None:
    with pytest.raises(BadCase) as e:
        lab.ingest([{"zz": 1}])
    assert e.value.got == "zz"
    for row, near in (
        ({"run_type": "llm", "trace": 1}, "langsmith"),
        ({"candidate": [1], "modelVersion": "x"}, "Gemini"),
        ({"stopReason_": 1, "metrics": {}}, "Bedrock"),
    ):
        with pytest.raises(BadCase) as e:
            lab.ingest([row])
        assert all(key in str(e.value.got) for key in row)
        assert near in str(e.value.hint)


def test_tools_and_logs_by_path_and_address(lab: tp.Lab, tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    tools, log = json.dumps([TOOL]), json.dumps({"raw": "x"}) + "\n"
    (tmp_path / "tools.json").write_text(tools, "utf-8")
    memory = fsspec.filesystem("memory")
    memory.pipe("/logs/tools.json", tools.encode())
    memory.pipe("/logs/log.jsonl", log.encode())
    for place in (tmp_path / "tools.json", "memory://logs/tools.json"):
        (trial,) = lab.ingest("memory://logs/log.jsonl", tools=place).trials()
        assert [tool.name for tool in trial.case.tools] == [TOOL["name"]]
    memory.pipe("/logs/cases.jsonl", b'{"id": "a", "input": "Hi"}\n')
    assert [case.id for case in tp.load_cases("memory://logs/cases.jsonl")] == ["a"]
    assert [spec.name for spec in tool_specs("memory://logs/tools.json")] == [TOOL["name"]]
    with pytest.raises(UnreadableInput, match="cannot be fetched"):
        lab.ingest("memory://logs/none.jsonl")
    run, out = lab.ingest(ROWS), "memory://written/"
    write_recording(f"{out}r.jsonl", [t.completion for t in run.trials() if t.completion])
    assert is_recording(f"{out}r.jsonl")
    with tp.Lab(tmp_path / "other.db") as other:
        assert import_recording(f"{out}r.jsonl", other.store) == 3
        other.replaying(f"{out}r.jsonl")
    run.report().save(f"{out}r.html")
    run.report().save(f"{out}r.parquet")
    run.trials()[0].as_html(f"{out}t.html")
    lab.reparse(run, to=f"{out}f.parquet")
    assert len(lab.reparse(f"{out}f.parquet")) == 3
    with pytest.raises(BadOptions, match="something already"):
        lab.reparse(run, to=f"{out}f.parquet")
    assert {name.rsplit("/", 1)[1] for name in memory.find("/written")} == {
        "r.jsonl", "r.html", "r.parquet", "t.html", "f.parquet",
    }  # fmt: skip
    with pytest.raises(BadToolSpec, match="path of a JSON file"):
        lab.ingest([{"raw": "x"}], tools=tmp_path / "none.json")


def test_a_conversation_is_one_arm(lab: tp.Lab) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    said = [
        {"role": "user", "content": "Go"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "done"},
        {"role": "assistant", "content": "It is done."},
    ]
    run = lab.ingest([{"messages": said}])
    assert [trial.arm for trial in run.trials()] == ["native", "native"]
    assert len(run.plan.arms) == 1
    last = {"messages": said[:3], "output": "It is done."}
    assert [trial.arm for trial in lab.ingest([last]).trials()] == ["native"]


def test_a_refused_source_leaves_the_store_as_it_was(
    lab: tp.Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the bad row comes after several batches, or the mapped column never does."""
    monkeypatch.setattr(build, "_BATCH", 2)
    monkeypatch.setattr(build, "_IN_MEMORY", 100)  # so that a file takes what waits
    before = lab.ingest(ROWS[:1])
    many = [{"case_id": f"n{i}", "raw": f"{i}"} for i in range(9)]
    for source, refused in (
        ([*many, {"raw": 3}], {"errors": "raise"}),
        (many, {"columns": {"never": "model"}}),
        (many, {"max_rows": 8}),
    ):
        with pytest.raises((BadCase, UnreadableInput)):
            lab.ingest(source, **refused)
        with closing(sqlite3.connect(tmp_path / "runs.db")) as database:
            assert database.execute("SELECT count(*) FROM completions").fetchone() == (1,)
    assert [r.run_id for r in lab.runs()] == [before.run_id]
    run = lab.ingest([*many, {"raw": 3}], errors="skip")
    assert len(run.trials()) == 9
    assert run.summary is not None
    assert (run.summary.planned, run.summary.done) == (9, 9)


def test_no_room_for_what_waits_is_said(lab: tp.Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.BytesIO):
        def write(self, _: Any) -> int:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "SpooledTemporaryFile", lambda _: Full())
    with pytest.raises(StoreError, match="no room for the answers") as e:
        lab.ingest(ROWS)
    assert "TMPDIR" in str(e.value)


# again and again


def test_the_same_rows_again_add_nothing(lab: tp.Lab) -> None:
    first = lab.ingest(ROWS[:2])
    second = lab.ingest(ROWS[:2])
    grown = lab.ingest(ROWS)
    assert second.run_id == first.run_id
    assert grown.run_id != first.run_id
    assert first.summary is not None
    assert second.summary is not None
    assert grown.summary is not None
    assert [(r.summary.done, r.summary.cached) for r in (first, second, grown) if r.summary] == [
        (2, 0),
        (0, 2),
        (1, 2),
    ]
    assert {len(lab.store.history(i.key)) for i in grown.plan.items} == {1}
    assert len(lab.runs()) == 2


@every_case
def test_equal_texts_of_other_rows_are_a_second_recording(
    change: dict[str, Any], lab: tp.Lab
) -> None:
    # Two servers at temperature 0 under one name: each keeps its own figures.
    row: dict[str, Any] = {
        "case_id": "c", "model": "m", "latency": 0.5, "prompt_tokens": 10, "cost": 0.001,
        "created": "2026-10-01T08:00:00", "response": response("Hi"), "request": {"temperature": 0},
    }  # fmt: skip
    first, again, other = (lab.ingest([r]) for r in (row, dict(row), {**row, **change}))
    assert again.run_id == first.run_id != other.run_id
    for name, value in change.items():
        if name in other.frame() and name != "response":
            assert other.frame()[name].tolist() == [value]
    # Beside one another in one log they are two trials.
    both = lab.ingest([row, {**row, **change}])
    assert [t.trial for t in both.trials()] == [0, 1]


def test_another_target_is_another_run_of_the_same_answers(lab: tp.Lab) -> None:
    first = lab.ingest(ROWS)
    other = lab.ingest([{**r, "target": []} if r["case_id"] == "c1" else r for r in ROWS])
    assert other.run_id != first.run_id
    assert {i.key for i in other.plan.items} == {i.key for i in first.plan.items}
    assert outcomes(other) != outcomes(first)


def test_repetitions_are_numbered_and_copies_are_left_out(lab: tp.Lab) -> None:
    row = {"case_id": "c", "output": "same"}
    assert [t.trial for t in lab.ingest([row, row, row]).trials()] == [0, 1, 2]
    numbered = lab.ingest([{**row, "trial": n} for n in (0, 1, 1)])
    assert [t.trial for t in numbered.trials()] == [0, 1]
    assert [(s.name, s.count) for s in numbered.plan.cases.skipped] == [("copies", 1)]


def logged(text: str | None, *, id: str = "", served: str = "gpt-4.1-mini") -> dict[str, Any]:
    """A row of request and response, whose request offers a tool to gpt-4.1-mini."""
    question = [{"role": "user", "content": "Weather in Oslo?"}]
    request = {"model": "gpt-4.1-mini", "messages": question, "tools": [TOOL]}
    error = {"error": {"message": "Rate limit reached", "type": "rate_limit_error"}}
    message = {"role": "assistant", "content": text}
    choices = [{"index": 0, "finish_reason": "stop", "message": message}]
    body = {"model": served, "choices": choices} | ({"id": id} if id else {})
    return {"case_id": "c", "request": request, "response": error if text is None else body}


def test_a_row_that_was_written_twice_is_one_answer(lab: tp.Lab) -> None:
    """Where the answer has an id; two equal ones without are two trials."""
    run = lab.ingest([logged("a", id="1"), logged("a", id="1"), logged("a", id="2")])
    assert [t.trial for t in run.trials()] == [0, 1]
    assert [(s.name, s.count) for s in run.plan.cases.skipped] == [("copies", 1)]
    assert len(lab.ingest([logged("a"), logged("a")]).trials()) == 2


def test_a_named_protocol_is_the_arm_of_failures_and_prose_too(lab: tp.Lab) -> None:
    texts = ['<tool_call>{"name": "f", "arguments": {}}</tool_call>', "I cannot.", "", None]
    frame = lab.ingest([logged(text) for text in texts], protocol="hermes").frame()
    assert set(frame["arm"]) == {"hermes"}
    assert list(frame["outcome"]).count("provider_error") == 1


def test_a_fallback_s_answer_is_of_the_model_that_was_asked(lab: tp.Lab) -> None:
    served = ["gpt-4.1-mini", "gpt-4.1-nano", "gpt-4.1-mini-2025-04-14"]
    run = lab.ingest([logged("a", id=name, served=name) for name in served])
    frame = run.frame()
    assert list(frame["served_model"]) == served
    assert list(frame["model"]) == ["gpt-4.1-mini"] * 3
    assert any("1 of 3 answers of gpt-4.1-mini name another" in n for n in run.report().notes)


def test_a_row_without_a_number_comes_behind_those_that_have_one(lab: tp.Lab) -> None:
    rows = [
        {"case_id": "c", "output": "x", "trial": 3},
        {"case_id": "c", "output": "y", "trial": 0},
    ]
    run = lab.ingest([*rows, {"case_id": "c", "output": "z"}])
    assert {t.trial: t.completion.raw for t in run.trials() if t.completion} == {
        3: "x",
        0: "y",
        4: "z",
    }


# cases


def test_cases_that_are_given_say_tools_and_targets(lab: tp.Lab) -> None:
    cases = tp.load_cases(
        [{"id": r["case_id"], **{k: r[k] for k in ("input", "tools", "target")}} for r in ROWS[1:]]
    )
    rows = [{"case_id": "c1", "output": RIGHT}, {"prompt": "Hello!", "output": "Hi"}]
    assert outcomes(lab.ingest(rows, cases=cases, protocol="hermes", model="m")) == [
        ("c1", "m", "correct"), ("c2", "m", "abstained_correctly"),
    ]  # fmt: skip
    with pytest.raises(BadCase, match="there is no such case"):
        lab.ingest([{"case_id": "c9", "output": "x"}], cases=cases)


def test_what_later_rows_say_of_a_case_is_added(lab: tp.Lab) -> None:
    rows = [
        {"case_id": "c", "output": RIGHT, "at": 1, "lang": "en"},
        {"case_id": "c", "output": RIGHT, "at": 2, "target": WANTED, "tools": [TOOL]},
    ]
    run = lab.ingest(rows, protocol="hermes")
    assert [t.outcome for t in run.trials()] == ["correct", "correct"]
    assert run.plan.cases[0].metadata == {"lang": "en"}
    assert "metadata at 1: it differs" in repr(run)


def test_arms_of_one_protocol_stay_apart(lab: tp.Lab) -> None:
    rows = [
        {"case_id": "c", "arm": arm, "prompt_protocol": "hermes", "output": RIGHT}
        for arm in ("short", "long")
    ]
    run = lab.ingest(rows, tools=[TOOL])
    assert [t.arm for t in run.trials()] == ["short", "long"]
    assert set(run.report().frame["arm"]) == {"short", "long"}


# keys


def test_no_key_reaches_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED_API_KEY", "planted-in-the-environment")
    rows = [{
        "case_id": "c", "output": "x", "api_key": "planted-column", "metadata": {"authorization": "planted-metadata"},
        "error_message": "Bearer planted-message-123", "note": "planted-in-the-environment",
        "request": {"model": "m", "messages": [], "extra_headers": {"x-api-key": "planted-header"},
                    "user": "planted-in-the-environment"},
    }]  # fmt: skip
    path = tmp_path / "runs.db"
    with tp.Lab(path) as lab:
        run = lab.ingest(rows, errors="skip")
        frame = run.frame()
        stored = json.dumps([dict(run.trials()[0].request), lab.store.run(run.run_id).plan])
        assert "column api_key 1" in repr(run)
    assert "planted" not in stored
    assert "planted" not in frame.to_json()
    assert not [p for p in tmp_path.iterdir() if b"planted" in p.read_bytes()]


def test_a_target_in_words_is_kept_and_its_row_is_not_graded(lab: tp.Lab) -> None:
    rows = [{"prompt": "Weather?", "raw": "x", "expected_calls": "it should call get_weather"}]
    run = lab.ingest(rows, tools=[TOOL])
    (trial,) = run.trials()
    assert trial.case.target is None
    assert trial.case.metadata["target"] == "it should call get_weather"
    (skipped,) = run.plan.cases.skipped
    assert (skipped.name, skipped.count) == ("targets", 1)
    assert "not graded" in str(skipped.reason)


@every_case
def test_a_refused_row_names_the_columns_of_the_file(row: Any, named: str, lab: tp.Lab) -> None:
    with pytest.raises(BadCase) as e:
        lab.ingest([row])
    assert named in (e.value.column, e.value.got), str(e.value)
