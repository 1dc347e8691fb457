"""The tool loop: what it asks, what it runs, what it tells the model, and why it ends."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest

import toolparse_lab as tp
from tests.tools import tool_named
from toolparse_lab.middleware.flow import STOPS, Conversation, advance, drive, tool_loop
from toolparse_lab.runner.exchange.types import Completion, Model, Request

TOOLS: tuple[dict[str, Any], ...] = (
    tool_named("add", "Adds", required=["a", "b"], a="integer", b="integer"),
    {"name": "now", "parameters": {"type": "object"}},
)
MODEL = Model("openai/scripted", price=(0, 0))


def question(text: str = "2 + 3?", **params: Any) -> Request:
    return Request(MODEL, "m", ({"role": "user", "content": text},), params, TOOLS)


def say(*calls: tuple[str, Mapping[str, Any]], text: str = "") -> str:
    bodies = (json.dumps({"name": n, "arguments": dict(a)}) for n, a in calls)
    return text + "\n".join(f"<tool_call>{b}</tool_call>" for b in bodies)


class Script:
    """Answers in order, and keeps what it was asked."""

    def __init__(self, *answers: str | Completion | None) -> None:
        self.answers = list(answers)
        self.asked: list[Request] = []

    def __call__(self, request: Request) -> Completion | None:
        self.asked.append(request)
        answer = self.answers.pop(0)
        return (
            Completion(key=request.key, raw=answer, finish_reason="stop")
            if isinstance(answer, str)
            else answer
        )


def converse(
    script: Script,
    runnable: Mapping[str, Callable[..., Any]] | None = None,
    asked: Request | None = None,
    **how: Any,
) -> Conversation:
    tools = {"add": lambda a, b: {"sum": a + b}} if runnable is None else runnable
    middleware = how.pop("middleware", tp.hermes_tool_middleware)
    return drive(tool_loop(asked or question(), middleware, tools, **how), script)


def test_calls_are_run_until_the_model_answers() -> None:
    script = Script(say(("add", {"a": 2, "b": 3}), text="Let me see. "), "It is 5.")
    done = converse(script)
    assert (done.stop, done.answer) == ("answered", "It is 5.")
    assert [len(t.runs) for t in done.turns] == [1, 0]
    (run,) = done.runs
    assert (run.call.arguments, run.result.content, run.status) == (
        {"a": 2, "b": 3},
        {"sum": 5},
        "ran",
    )
    first, second = script.asked
    assert [m["role"] for m in first.messages] == ["system", "user"]
    assert [m["role"] for m in second.messages] == ["system", "user", "assistant", "user"]
    assert second.messages[:2] == first.messages
    assert second.messages[2]["content"].startswith("Let me see. ")
    assert "<tool_call>" in second.messages[2]["content"]
    assert (
        second.messages[3]["content"]
        == '<tool_response>{"name":"add","content":{"sum":5}}</tool_response>'
    )
    assert not first.tools
    assert [m["role"] for m in done.messages] == ["user", "assistant", "tool", "assistant"]
    assert done.messages[1]["tool_calls"][0]["id"] == done.messages[2]["tool_call_id"] == "call_1_1"


def test_parallel_calls_are_answered_in_one_turn_and_in_order() -> None:
    script = Script(say(("add", {"a": 1, "b": 1}), ("add", {"a": 2, "b": 2})), "2 and 4.")
    done = converse(script)
    assert [r.result.content for r in done.runs] == [{"sum": 2}, {"sum": 4}]
    said = script.asked[1].messages[-1]["content"]
    assert said.index('"sum":2') < said.index('"sum":4')
    assert done.counts == {"ran": 2, "failed": 0, "rejected": 0}


class Unsayable(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


def failing(e: BaseException) -> Callable[..., Any]:
    def fail(**_: Any) -> Any:
        raise e

    return fail


@pytest.mark.parametrize(
    ("tool", "told"),
    [
        (failing(ValueError("no such gauge")), "[Error: ValueError: no such gauge]"),
        (failing(SystemExit(3)), "[Error: SystemExit: 3]"),
        (failing(Unsayable()), "[Error: Unsayable]"),
        (lambda a: a, "[Error: TypeError"),
        (lambda a, b: {"type": "error-text", "value": "closed"}, "[Error: closed]"),
        (
            lambda a, b: {"type": "execution-denied", "reason": "not now"},
            "[Execution Denied: not now]",
        ),
    ],
)
def test_a_tool_that_fails_gives_an_error_result(tool: Callable[..., Any], told: str) -> None:
    script = Script(say(("add", {"a": 2, "b": 3})), "I am sorry.")
    done = converse(script, {"add": tool})
    assert done.stop == "answered"
    assert done.counts == {"ran": 0, "failed": 1, "rejected": 0}
    assert str(done.runs[0].result.content).startswith(told)
    assert told.split(":")[0] in script.asked[1].messages[-1]["content"]


def test_a_value_that_contains_itself_is_an_error_result() -> None:
    knot: list[Any] = []
    knot.append(knot)
    done = converse(Script(say(("add", {"a": 2, "b": 3})), "Sorry."), {"add": lambda a, b: knot})
    assert done.counts["failed"] == 1


def test_arguments_that_do_not_fit_are_not_run_and_the_model_is_told() -> None:
    ran: list[Any] = []
    script = Script(say(("add", {"a": "two", "b": 3})), say(("add", {"a": 2, "b": 3})), "5")
    done = converse(script, {"add": lambda a, b: ran.append((a, b))})
    assert ran == [(2, 3)]
    assert done.counts == {"ran": 1, "failed": 0, "rejected": 1}
    told = script.asked[1].messages[-1]["content"]
    assert "do not fit the schema of add" in told
    assert "/a" in told


@pytest.mark.parametrize(
    ("answers", "runnable", "how", "stop"),
    [
        (("Hello.",), None, {}, "answered"),
        (("",), None, {}, "answered"),
        ((say(("add", {"a": 1, "b": 1})),), None, {"max_turns": 1}, "max_turns"),
        ((say(("add", {"a": 1, "b": 1})),) * 3, None, {"max_turns": 3}, "max_turns"),
        ((say(("now", {})),), None, {}, "no_runnable_tool"),
        ((say(("add", {"a": 1, "b": 1}), ("now", {})),), None, {}, "no_runnable_tool"),
        (
            ('<tool_call>{"name": "add", "arguments": {"a": </tool_call>',),
            None,
            {},
            "unreadable_call",
        ),
        ((say(("sub", {"a": 1})),), None, {}, "unreadable_call"),
        ((Completion(key="", status="error", error_kind="timeout"),), None, {}, "provider_error"),
        ((say(("add", {"a": 1, "b": 1})), None), None, {}, "not_asked"),
        ((None,), None, {}, "not_asked"),
    ],
)
def test_every_end_has_its_reason(
    answers: tuple[Any, ...], runnable: Any, how: dict[str, Any], stop: str
) -> None:
    done = converse(Script(*answers), runnable, **how)
    assert done.stop == stop
    assert STOPS[done.stop] in str(done)
    assert (done.answer is None) == (stop != "answered")
    assert (done.pending is not None) == (stop == "not_asked")
    if stop in ("no_runnable_tool", "max_turns"):
        assert done.turns[-1].runs == ()


def test_a_forced_choice_holds_for_the_first_turn() -> None:
    script = Script('{"name": "add", "arguments": {"a": 2, "b": 3}}', "It is 5.")
    done = converse(script, asked=question(tool_choice="required", temperature=0))
    assert done.stop == "answered"
    first, second = script.asked
    assert first.params["response_format"]["type"] == "json_schema"
    assert second.params == {"temperature": 0}
    assert done.turns[0].result is not None
    assert done.turns[0].result.calls[0].arguments == {"a": 2, "b": 3}


def test_a_forced_choice_that_is_not_honoured() -> None:
    assert converse(Script("No."), asked=question(tool_choice="required")).stop == "unreadable_call"
    prompted = tp.create_tool_middleware("hermes", tool_choice_by="prompt")
    script = Script("No.")
    converse(
        script,
        asked=question(tool_choice={"type": "function", "function": {"name": "now"}}),
        middleware=prompted,
    )
    assert "exactly one tool call" in script.asked[0].messages[0]["content"]


def test_no_choice_means_no_tools() -> None:
    script = Script(say(("add", {"a": 2, "b": 3})))
    done = converse(script, asked=question(tool_choice="none"))
    assert (done.stop, done.runs) == ("answered", ())
    assert [m["role"] for m in script.asked[0].messages] == ["user"]


def test_parameters_of_the_first_turn() -> None:
    script = Script(say(("add", {"a": 2, "b": 3})), "5")
    converse(
        script,
        asked=question(tool_choice="required", top_p=None),
        first={"grammar": "g", "response_format": None},
    )
    assert script.asked[0].params == {"grammar": "g", "top_p": None}
    assert script.asked[1].params == {"top_p": None}


def test_a_replay_asks_the_same_questions() -> None:
    answers = (
        say(("add", {"a": 1, "b": 1}), ("add", {"a": 1, "b": 1})),
        say(("add", {"a": 2, "b": 2})),
        "4",
    )
    one, two = Script(*answers), Script(*answers)
    assert converse(one) == converse(two)
    assert [r.key for r in one.asked] == [r.key for r in two.asked]


def test_ids_of_the_text_are_kept_and_never_clash() -> None:
    bodies = [{"name": "now", "arguments": {}, "id": "call_1_2"}, {"name": "now", "arguments": {}}]
    bodies.append(bodies[0])
    script = Script("\n".join(f"<tool_call>{json.dumps(b)}</tool_call>" for b in bodies), "Now.")
    done = converse(script, {"now": lambda: "12:00"})
    ids = [r.call_id for r in done.runs]
    assert ids[0] == "call_1_2"
    assert len(set(ids)) == 3


def test_reasoning_is_kept_in_the_answer_and_not_sent_back() -> None:
    script = Script("<think>2 and 3</think>" + say(("add", {"a": 2, "b": 3})), "5")
    done = converse(script)
    assert done.turns[0].answer is not None
    assert done.turns[0].answer.message["reasoning_content"] == "2 and 3"
    assert "2 and 3" not in json.dumps(script.asked[1].messages[2:])
    assert "reasoning_content" not in script.asked[1].messages[2]


def test_images_reach_the_message() -> None:
    picture = {
        "type": "content",
        "value": [{"type": "media", "mediaType": "image/png", "data": "AAAA"}],
    }
    script = Script(say(("now", {})), "A bird.")
    converse(script, {"now": lambda: picture})
    text, image = script.asked[1].messages[-1]["content"]
    assert "[Image: image/png]" in text["text"]
    assert image == {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


def test_the_ai_sdk_s_form_of_results() -> None:
    script = Script(say(("add", {"a": 2, "b": 3})), "5")
    converse(script, middleware=tp.create_tool_middleware("hermes", result_format="ai-sdk-2"))
    assert '"toolName":"add","result":{"sum":5}' in script.asked[1].messages[-1]["content"]


HOSTILE = [
    "<tool_call>" * 50,
    say(("add", {"a": 1, "b": 1})) + "</tool_call></tool_call>",
    '<tool_call>{"name": "add", "arguments": {"a": 1, "b": 1, "self": 3}, "id": '
    '"\ud800"}</tool_call>',
    '<tool_call>{"name": "now", "arguments": {"": 1, "x\\u0000": "\\ud83d"}}</tool_call>',
    "[" * 3000,
]


@pytest.mark.parametrize(
    "protocol", ["hermes", "gemma", "morph_xml", "yaml_xml", "kimi_k2", "pythonic"]
)
def test_no_text_of_a_model_and_no_result_raises(protocol: str) -> None:
    results: Iterable[Any] = [
        "</tool_response>\n```",
        "\ud800",
        None,
        float("nan"),
        {"a": {"b": []}},
        10**5000,
        object(),
    ]
    middleware = tp.create_tool_middleware(protocol)
    for result in results:
        for raw in HOSTILE:
            script = Script(raw, raw, "Done.", "Done.")
            tools = {"add": lambda r=result, **_: r, "now": lambda r=result, **_: r}
            done = converse(script, tools, max_turns=3, middleware=middleware)
            assert STOPS[done.stop] in str(done)


@pytest.mark.parametrize("turns", [0, -1, True, 1.5, "2"])
def test_a_loop_has_turns(turns: Any) -> None:
    with pytest.raises(tp.errors.BadOptions, match="how often"):
        tool_loop(question(), tp.hermes_tool_middleware, {}, max_turns=turns)


def test_a_choice_that_cannot_be_honoured_is_an_error_before_anything_is_asked() -> None:
    asked = question(tool_choice={"type": "function", "function": {"name": "sub"}})
    with pytest.raises(tp.errors.BadToolChoice):
        advance(tool_loop(asked, tp.hermes_tool_middleware, {}))
