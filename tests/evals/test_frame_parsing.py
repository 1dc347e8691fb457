"""Answers read again from the rows of a trials frame say what reading them from the recording
says."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from tests.recorded import recorded_run
from tests.tables import asked_of, every_case
from toolparse_lab.core.errors import BadOptions, BadToolChoice, UnknownProtocol, UnreadableInput
from toolparse_lab.core.toolspec import tool_specs
from toolparse_lab.core.types import Policy
from toolparse_lab.evals.cases.case import Case
from toolparse_lab.evals.frames import parsing
from toolparse_lab.evals.frames import recorded as frames
from toolparse_lab.evals.frames.parsing import NEEDED, parse_frame
from toolparse_lab.evals.scoring import score as isolation
from toolparse_lab.evals.scoring.score import score_completion
from toolparse_lab.evals.scoring.trial import Trial
from toolparse_lab.experiments.run import Run
from toolparse_lab.formats.base import Protocol
from toolparse_lab.middleware.flow import read_answer
from toolparse_lab.runner.exchange.types import Completion

pytestmark = pytest.mark.slow

TOOLS = tool_specs(
    {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}
)
TARGET = [{"name": "f", "arguments": {"a": 1}}]
CALL = '<tool_call>{"name": "f", "arguments": {"a": "1"}}</tool_call>'
FORCED = '{"name": "f", "arguments": {"a": 1}}'


def trial(
    case_id: str, raw: str = CALL, *, target: Any = TARGET, choice: Any = "auto", **recorded: Any
) -> Trial:
    """A recorded answer as a run would show it."""
    case = Case(case_id, "hi", TOOLS, target, {"who": "w"})
    completion = Completion(key=case_id, raw=raw, **recorded)
    result = read_answer(raw, "hermes", TOOLS, None, choice) if completion.ok else None
    return Trial.of(
        case, completion, result, run_id="r", model="m", arm="a", prompt_protocol="hermes",
        parse_protocol="hermes", levels={"tool_choice": choice},
    )  # fmt: skip


# Everything that a score looks at beside the text.
TRIALS = [
    trial("plain"),
    trial("surrogate", f"\ud83d {CALL}"),
    trial("no-calls-allowed", choice="none"),
    trial("forced", FORCED, choice="required"),
    trial("forced-tool", FORCED, choice={"name": "f"}),
    trial("ungraded", target=None),
    trial("abstain", "No.", target=[]),
    trial("empty", ""),
    trial("thought", "", reasoning="hm"),
    trial("cut", CALL[:30], stream=True, cut=True),
    trial("limit", CALL[:30], finish_reason="length"),
    trial("filtered", "", finish_reason="content_filter"),
    trial("failed", "", status="error", error_kind="timeout", error_message="too late"),
    trial("native", '{"content":null,"tool_calls":[]}', endpoint_kind="native_tools"),
    Trial.of(
        Case("not-recorded", "x", TOOLS, TARGET),
        None,
        run_id="r",
        model="m",
        arm="a",
        parse_protocol="hermes",
    ),
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return recorded_run(tmp_path_factory.mktemp("run"), every=3)


def test_a_frame_read_again_is_the_frame() -> None:
    frame = frames.trials_frame(TRIALS)
    assert_frame_equal(parse_frame(frame), frame)


@pytest.mark.parametrize("protocol", ["hermes", "morph_xml", "auto", None])
@pytest.mark.parametrize("policy", ["none", "safe", "middleware", "lossy"])
@pytest.mark.exhaustive(5)  # each protocol and each policy once
def test_what_the_run_itself_reads(run: Run, protocol: str | None, policy: Policy) -> None:
    assert_frame_equal(
        parse_frame(run.frame(), protocol, policy), run.frame(protocol=protocol, policies=(policy,))
    )


@asked_of(("gone", "outcomes"), [(None, None), ("", ["empty", "correct"])])
def test_a_text_that_is_lost_is_no_empty_answer(
    gone: str | None, outcomes: list[str] | None
) -> None:
    frame = frames.trials_frame([trial("a", CALL), trial("b", CALL)])
    frame["raw"] = pd.array([gone, CALL], dtype="string")
    if outcomes is not None:
        assert parse_frame(frame)["outcome"].tolist() == outcomes
        return
    with pytest.raises(
        UnreadableInput, match=r"row 0, column raw: the text is missing(.|\n)*got: 1 such rows"
    ):
        parse_frame(frame)
    unrecorded = parse_frame(frame.assign(status=pd.array([None, "ok"], dtype="string")))
    assert unrecorded["outcome"].isna().tolist() == [True, False]
    assert parse_frame(frame.assign(status="error"))["outcome"].tolist() == ["provider_error"] * 2


def test_order_is_that_of_the_answers_then_protocols_then_policies() -> None:
    frame = frames.trials_frame(TRIALS[:2])
    again = parse_frame(frame, ["hermes", "xml", "morph_xml"], ["safe", "none", "safe"])
    assert again[["case_id", "parse_protocol", "policy"]].to_numpy().tolist() == [
        [case_id, protocol, policy]
        for case_id in ("plain", "surrogate")
        for protocol in ("hermes", "morph_xml")
        for policy in ("safe", "none")
    ]
    assert again["trial_id"].is_unique


def test_options_are_those_of_the_reader() -> None:
    frame = frames.trials_frame([trial("damaged", CALL.replace("}}", "},}"))])
    assert parse_frame(frame)["n_edits"].tolist() == [1]
    assert parse_frame(frame, options={"repair": False})["n_ok"].tolist() == [0]


def test_your_own_columns_and_the_recording_stay() -> None:
    frame = frames.trials_frame(TRIALS[:3])
    frame["mine"] = [3, 1, 2]
    frame["score_answer"] = pd.array([True, None, False], dtype="boolean")
    again = parse_frame(frame, ["hermes", "auto"])
    assert again["mine"].tolist() == [3, 3, 1, 1, 2, 2]
    assert again["metadata_who"].tolist() == ["w"] * 6
    assert again["score_answer"].isna().tolist() == [False, False, True, True, False, False]


def test_a_frame_of_the_needed_columns_is_enough() -> None:
    frame = frames.trials_frame(TRIALS[:1])[list(NEEDED)].astype(object)
    again = parse_frame(frame)
    assert (again["outcome"][0], again["n_ok"][0], again["trial_id"][0]) == (
        "ungraded",
        1,
        TRIALS[0].trial_id,
    )


def test_equal_answers_are_read_once_and_say_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.concat([frames.trials_frame(TRIALS)] * 3, ignore_index=True)
    expected = parse_frame(frame)
    asked: list[Any] = []

    def counting(*given: Any, **options: Any) -> Any:
        asked.append(given)
        return score_completion(*given, **options)

    monkeypatch.setattr(isolation, "score_completion", counting)
    monkeypatch.setattr(parsing, "_memory", parsing._Memory(parsing.MEMORY))
    assert_frame_equal(parse_frame(frame), expected)
    assert len(asked) == len(TRIALS)
    assert_frame_equal(parse_frame(frame), expected)
    assert len(asked) == len(TRIALS), "in the next frame too"
    monkeypatch.setattr(parsing, "_memory", parsing._Memory(2))
    assert_frame_equal(parse_frame(frame), expected)
    assert len(asked) > 2 * len(TRIALS)
    assert len(parsing._memory.readings) == 2


def test_a_protocol_of_your_own() -> None:
    own = Protocol.from_spec(id="bracketed", opener="[CALL]", closer="[/CALL]", name_key="name")
    frame = frames.trials_frame([trial("own", '[CALL]{"name": "f", "arguments": {"a": 1}}[/CALL]')])
    other = Protocol.from_spec(id="bracketed", opener="[TOOL]", closer="[/TOOL]", name_key="name")
    assert parse_frame(frame, [other])["outcome"][0] != "correct", (
        "another one of the same id is another one"
    )
    again = parse_frame(frame, [own])
    assert (again["outcome"][0], again["parse_protocol"][0]) == ("correct", "bracketed")


def test_no_rows() -> None:
    frame = frames.trials_frame([])
    assert_frame_equal(parse_frame(frame, ["hermes", "auto"]), frame)


@every_case
def test_a_cell_that_cannot_be_read_is_named(column: str, value: str, said: str) -> None:
    frame = frames.trials_frame(TRIALS[:3]).astype({column: object})
    frame.loc[2, column] = value
    with pytest.raises(UnreadableInput, match=f"row 2, {said}"):
        parse_frame(frame)


def test_wrong_use() -> None:
    frame = frames.trials_frame(TRIALS[:1])
    with pytest.raises(UnreadableInput, match="columns are missing: raw, tools_json"):
        parse_frame(frame.drop(columns=["raw", "tools_json"]))
    with pytest.raises(UnknownProtocol):
        parse_frame(frame, ["hermess"])
    for protocols, policies in ((["hermes"], ["saf"]), ([], ["safe"]), (None, [])):
        with pytest.raises(BadOptions):
            parse_frame(frame, protocols, policies)  # type: ignore[arg-type]
    with pytest.raises(BadToolChoice):
        parse_frame(frame.assign(tool_choice="sometimes"))
