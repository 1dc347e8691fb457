"""Every way in which an answer loses a call, for a case that wants one and a case that wants none,
by every door: it is never taken for an abstention, and nothing is executed that was not meant."""

from __future__ import annotations

import json
from typing import Any

import pytest

import toolparse_lab as tp
from tests.tables import asked_of, each_case, table
from tests.tools import tool_named
from toolparse_lab.evals.cases.case import Case
from toolparse_lab.evals.scoring.score import score_completion
from toolparse_lab.middleware import create_tool_middleware
from toolparse_lab.middleware.flow import read_answer
from toolparse_lab.runner.answer import Answer
from toolparse_lab.runner.exchange.types import Completion

# No parameter is required: a call without arguments would run.
TOOL = tool_named("find_berth", harbor="string")
CALL = {"name": "find_berth", "arguments": {"harbor": "Turku"}}
HERMES = f"<tool_call>\n{json.dumps(CALL)}\n</tool_call>"
EMPTY = {"id": "a", "type": "function", "function": {"name": "find_berth", "arguments": "{}"}}


# A message and its finish reason, and the outcome.
UNPARSEABLE = "attempted_unparseable"
WAYS: dict[str, tuple[dict[str, Any], str, str]] = {
    row["way"]: (row["message"], row["finish"], row["outcome"])
    for row in table(__file__)
    if row["test"] == "run"
}
ARMS = ["hermes", "native", "auto"]
TARGETS: dict[str, list[Any]] = {"no call wanted": [], "a call wanted": [CALL]}


def response(way: str) -> dict[str, Any]:
    message, finish, _ = WAYS[way]
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", **message}}
    return {"id": "r", "object": "chat.completion", "choices": [choice]}


def chunks(way: str) -> list[dict[str, Any]]:
    """The same answer as a stream: each text in two pieces."""
    message, finish, _ = WAYS[way]
    deltas: list[dict[str, Any]] = []
    for key, value in message.items():
        if isinstance(value, str):
            deltas += [{key: value[:9]}, {key: value[9:]}]
        elif value:
            deltas += [{key: [{"index": 0, **call}]} for call in value]
    ends = [None] * len(deltas) + [finish]
    return [
        {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": d, "finish_reason": e}]}
        for d, e in zip([*deltas, {}], ends, strict=True)
    ]  # fmt: skip


def executable(result: tp.ParseResult) -> list[dict[str, Any]]:
    calls = [call for call in result.calls if call.ok and call.valid]
    return [{"name": call.name, "arguments": call.arguments} for call in calls]


@pytest.fixture(scope="module", params=TARGETS)
def ingested(request: pytest.FixtureRequest, tmp_path_factory: Any) -> Any:
    rows = [
        {"id": f"{way}|{kind}", "input": f"{way}|{kind}", "response": json.dumps(answer),
         "tools": [TOOL], "target": TARGETS[request.param], "prompt_protocol": arm, "arm": arm}
        for way in WAYS
        for kind, answer in (("whole", response(way)), ("chunks", chunks(way)))
        for arm in ARMS
    ]  # fmt: skip
    return tp.Lab(store=tmp_path_factory.mktemp("lost") / "store").ingest(rows)


def test_ingested(ingested: Any) -> None:
    trials = list(ingested.trials())
    assert len(trials) == 2 * len(WAYS) * len(ARMS)
    outcomes = {way: outcome for way, (*_, outcome) in WAYS.items()}
    wrong = [t.case_id for t in trials if t.outcome != outcomes[t.case_id.partition("|")[0]]]
    assert wrong == []
    unread = sum(2 * len(ARMS) for outcome in outcomes.values() if outcome == UNPARSEABLE)
    assert ingested.report().frame["unread"].sum() == unread


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_run(way: str, native: bool, target: str) -> None:
    answer = Answer(native=native)
    for chunk in chunks(way):
        answer.take_chunk(chunk)
    reads_calls = native or bool(answer.calls)
    completion = Completion(
        key="k",
        raw=answer.raw,
        reasoning="".join(answer.reasoning),
        finish_reason=answer.finish_reason,
        endpoint_kind="native_tools" if reads_calls else "chat_text",
    )
    reader = "openai_json" if reads_calls else "hermes"
    result = read_answer(
        answer.raw,
        reader,
        [TOOL],
        finish_reason=completion.finish_reason,
        reasoning=completion.reasoning or "",
    )
    score = score_completion(
        Case("c", "?", (tp.ToolSpec.of(TOOL),), TARGETS[target]), completion, result
    )
    assert score is not None
    assert score.outcome == WAYS[way][2], score
    assert executable(result) == []


@pytest.mark.parametrize("protocol", ["auto", "hermes", "openai_json"])
@pytest.mark.parametrize("streamed", [False, True])
@asked_of("way", [way for way in WAYS if WAYS[way][2] == UNPARSEABLE])
def test_parsed(way: str, streamed: bool, protocol: str) -> None:
    result = tp.parse(chunks(way) if streamed else response(way), protocol, [TOOL])
    # The content holds what the server's call lost, so it may be read instead.
    assert executable(result) in ([], [CALL])
    assert executable(result) == [] or way == "an empty call beside"
    assert executable(result) or not result.ok
    assert result.blame.startswith(("Server", "Cannot be told", "Agree"))


@pytest.mark.parametrize("way", [way for way in WAYS if WAYS[way][2] == UNPARSEABLE])
def test_answered_by_the_middleware(way: str) -> None:
    middleware = create_tool_middleware("hermes")
    question = [{"role": "user", "content": "x"}]
    turn = middleware.transform_params({"messages": question, "tools": [TOOL]})
    message, finish, _ = WAYS[way]
    thought = message.get("reasoning_content") or message.get("reasoning") or ""
    thought = thought or message.get("thinking", "")
    own = message.get("tool_calls") or []
    answer = middleware.wrap_generate(
        turn, message["content"], reasoning=thought, finish_reason=finish, tool_calls=own
    )
    if not own:
        assert any(problem.severity == "error" for problem in answer.problems)
        stream = middleware.wrap_stream(turn)
        stream.feed(message["content"] or "")
        _, streamed = stream.close(finish, reasoning=thought)
        assert streamed.problems == answer.problems
    if way == "an empty call beside":
        (call,) = answer.tool_calls
        assert json.loads(call["function"]["arguments"]) == {"harbor": "Turku"}


def test_a_call_that_the_server_read_and_left_in_the_content_is_made_once() -> None:
    middleware = create_tool_middleware("hermes")
    question = [{"role": "user", "content": "x"}]
    turn = middleware.transform_params({"messages": question, "tools": [TOOL]})
    other = {"name": "find_berth", "arguments": '{"harbor": "Oslo"}'}
    own = [{"id": "a", "function": {"name": "find_berth", "arguments": '{"harbor":"Turku"}'}}]
    answer = middleware.wrap_generate(
        turn, HERMES, tool_calls=[*own, {"id": "b", "function": other}]
    )
    arguments = [json.loads(call["function"]["arguments"]) for call in answer.tool_calls]
    assert arguments == [{"harbor": "Turku"}, {"harbor": "Oslo"}]


@pytest.mark.parametrize("target", TARGETS)
def test_a_stream_without_its_end_says_nothing_of_the_model(target: str, tmp_path: Any) -> None:
    rows = [
        {"id": f"{arm} {way}", "input": way, "response": json.dumps(chunks(way)[:-1]),
         "tools": [TOOL], "target": TARGETS[target], "prompt_protocol": arm}
        for arm in ARMS for way in ("an empty list", "a call without its end", "think")
    ]  # fmt: skip
    run = tp.Lab(store=tmp_path / "store").ingest(rows)
    assert {trial.outcome for trial in run.trials()} == {"provider_error"}


def test_words_about_a_call_are_no_lost_call() -> None:
    for content in (
        "Nothing to do.",
        "Use &lt;b&gt; for bold.",
        "<think>Hm.</think>Nothing to do.",
    ):
        message = {"role": "assistant", "content": content, "reasoning": "I could call find_berth."}
        answer = {"choices": [{"index": 0, "finish_reason": "stop", "message": message}]}
        for protocol in ("auto", "hermes", "openai_json"):
            result = tp.parse(answer, protocol, [TOOL])
            assert (result.calls, result.problems) == ((), ())


def test_an_empty_call_beside_prose_is_a_call() -> None:
    message = {"content": "Let me find_berth.", "tool_calls": [EMPTY]}
    answer = {"choices": [{"finish_reason": "tool_calls", "message": message}]}
    assert executable(tp.parse(answer, tools=[TOOL])) == [{"name": "find_berth", "arguments": {}}]


def test_hostile_escapes_are_read_once() -> None:
    text = "".join("&" + "amp;" * depth + "lt;tool_call" for depth in range(400))
    assert tp.parse(text, "auto", [TOOL]).calls == ()


@each_case
def test_the_problem_says_how_the_call_was_lost(way: str, code: str) -> None:
    result = tp.parse(response(way), "hermes", [TOOL])
    assert [problem.code for problem in result.all_problems()] == [code]


def test_a_message_without_calls_whose_content_holds_one() -> None:
    message = {"choices": [{"message": {"content": HERMES, "tool_calls": []}}]}
    result = tp.parse(message, "openai_json", [TOOL])
    assert "call.in-content" in {problem.code for problem in result.all_problems()}
