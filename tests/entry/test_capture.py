"""Responses of any client become what the model wrote: whole, in chunks, as event streams, of four
endpoints."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from itertools import combinations, product
from pathlib import Path
from struct import pack
from typing import Any
from zlib import crc32

import pytest

import toolparse_lab as tp
from tests.mock_openai import MockOpenAI
from tests.tables import asked_of, each_case, every_case
from tests.tools import tool_named
from toolparse_lab.core.errors import UnreadableInput
from toolparse_lab.entry.capture import capture
from toolparse_lab.entry.capture.captured import is_event_stream
from toolparse_lab.middleware import parse_generated_text

TOOLS = [{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}]
BROKEN = '{"a": "1",}'
CALL = {"id": "c0", "type": "function", "function": {"name": "f", "arguments": BROKEN}}
CANONICAL = (
    '{"content":"Well","tool_calls":[{"id":"c0","type":"function","function":{"name":"f",'
    '"arguments":"{\\"a\\": \\"1\\",}"}}]}'
)
CHAT, ANTHROPIC, RESPONSE = json.loads(
    Path(__file__).with_name("responses.json").read_text("utf-8")
).values()


def deltas(*pieces: dict[str, Any], finish: str | None = "stop") -> list[dict[str, Any]]:
    out = [
        {
            "id": "r1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "m",
            "choices": [{"index": 0, "delta": d, "finish_reason": None}],
        }
        for d in pieces
    ]
    end = (
        [{**out[-1], "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}]
        if finish
        else []
    )
    return [*out, *end]


def call_delta(index: int, arguments: str, **more: Any) -> dict[str, Any]:
    function = {"arguments": arguments, **({"name": more.pop("name")} if "name" in more else {})}
    return {"tool_calls": [{"index": index, "function": function, **more}]}


CHUNKS = deltas(
    {"role": "assistant", "content": "We"},
    {"content": "ll"},
    call_delta(0, "", id="c0", type="function", name="f"),
    call_delta(0, BROKEN[:4]),
    call_delta(0, BROKEN[4:]),
    finish="tool_calls",
)


def sse(messages: list[dict[str, Any]], done: bool = True, line: str = "\n") -> str:
    text = "".join(f"data: {json.dumps(m)}{line}{line}" for m in messages)
    return text + (f"data: [DONE]{line}{line}" if done else "")


def openai_objects() -> dict[str, Any]:
    import openai.types.chat as chat
    import openai.types.responses as responses

    return {
        "openai chat": chat.ChatCompletion.model_validate(CHAT),
        "openai choice": chat.ChatCompletion.model_validate(CHAT).choices[0],
        "openai message": chat.ChatCompletion.model_validate(CHAT).choices[0].message,
        "openai chunks": [chat.ChatCompletionChunk.model_validate(c) for c in CHUNKS],
        "openai responses": responses.Response.model_validate(RESPONSE),
    }


def litellm_objects() -> dict[str, Any]:
    from toolparse_lab.runner.litellm_door import litellm_module

    litellm_module()
    import litellm.types.utils as shapes

    return {
        "litellm": shapes.ModelResponse(**CHAT),
        "litellm chunks": [shapes.ModelResponseStream(**c) for c in CHUNKS],
        "litellm message": shapes.ModelResponse(**CHAT).choices[0].message,
    }


SHAPES: dict[str, Any] = {
    "chat": CHAT,
    "choice": CHAT["choices"][0],
    "message": CHAT["choices"][0]["message"],
    "chunks": CHUNKS,
    "event stream": sse(CHUNKS),
    "event stream with CRLF and comments": ": hello\r\n\r\n" + sse(CHUNKS, line="\r\n"),
    "event stream without blank lines": sse(CHUNKS).replace("\n\n", "\n"),
    "responses": RESPONSE,
}


@pytest.mark.parametrize("shape", SHAPES)
def test_native_calls_of_every_shape(shape: str) -> None:
    check_native(SHAPES[shape])


@pytest.mark.parametrize("kind", [openai_objects, litellm_objects])
def test_native_calls_of_clients_objects(kind: Any) -> None:
    for name, obj in kind().items():
        try:
            check_native(obj)
        except AssertionError as e:
            raise AssertionError(name) from e


def check_native(obj: Any) -> None:
    found = capture(obj)
    assert found.raw == CANONICAL
    assert found.endpoint_kind == "native_tools"
    result = tp.parse(obj, tools=TOOLS)
    assert (result.raw, result.protocol, result.text) == (CANONICAL, "openai_json", "Well")
    (call,) = result.calls
    assert (call.status, call.arguments, call.wire_id) == ("ok", {"a": 1}, "c0")
    assert [e.rule for e in call.edits] == ["rjson.trailing-comma"]
    assert call.origin("/a").span.of(CANONICAL) == "1"


def test_what_a_chat_completion_says_beside_its_text() -> None:
    found = tp.Captured.of(CHAT)
    assert (found.id, found.model, found.system_fingerprint) == ("r1", "m", "fp")
    assert (found.finish_reason, found.choices, found.stream, found.cut) == (
        "tool_calls",
        1,
        False,
        False,
    )
    assert found.usage == CHAT["usage"]
    assert (found.fidelity, tp.Captured.of(found)) == ("sdk", found)
    assert capture(sse(CHUNKS).encode()) == capture(sse(CHUNKS))


def test_anthropic_messages_whole_and_streamed() -> None:
    found = capture(ANTHROPIC)
    assert (found.reasoning, found.content, found.finish_reason) == ("hm", "Well", "tool_use")
    assert tp.parse(ANTHROPIC, tools=TOOLS).calls[0].arguments == {"a": 1}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**ANTHROPIC, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Well"}},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "content_block_start", "index": 1,
            "content_block": {"type": "tool_use", "id": "c0", "name": "f", "input": {}},
        },
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": BROKEN}},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    ]  # fmt: skip
    text = "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events)
    for stream in (events, text):
        found = capture(stream)
        assert (found.raw, found.cut, found.finish_reason) == (CANONICAL, False, "tool_use")
        assert found.usage == {"input_tokens": 1, "output_tokens": 9}


def test_events_of_the_responses_api() -> None:
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**RESPONSE, "status": "in_progress", "output": []}},
        {"type": "response.output_text.delta", "output_index": 0, "delta": "We"},
        {"type": "response.output_text.delta", "output_index": 0, "delta": "ll"},
        {
            "type": "response.output_item.added", "output_index": 1,
            "item": {"type": "function_call", "call_id": "c0", "name": "f", "arguments": ""},
        },
        {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": BROKEN},
        {"type": "response.completed", "response": RESPONSE},
    ]  # fmt: skip
    assert (capture(events).raw, capture(events).cut) == (CANONICAL, False)
    assert capture(events[:-1]).cut
    # Servers that send no deltas of the arguments say them elsewhere.
    item = {"type": "function_call", "call_id": "c0", "name": "f", "arguments": BROKEN}
    for whole in (
        {"type": "response.function_call_arguments.done", "output_index": 1, "arguments": BROKEN},
        {"type": "response.output_item.done", "output_index": 1, "item": item},
    ):
        assert capture([*events[:4], whole, whole, events[-1]]).raw == CANONICAL


NOTE: dict[str, Any] = tool_named("note", text="string")
SAYS = ("added", "delta", "done", "item", "completed")


def responses_stream(says: Sequence[str], ids: bool, one_place: bool, other_ids: bool) -> Any:
    """Two calls, of which only some events speak. other_ids: the end has ids of its own."""
    events: list[dict[str, Any]] = [{"type": "response.created", "response": {"id": "r"}}]
    output: list[dict[str, Any]] = [{"type": "reasoning", "summary": []}]

    def say(kind: str, **members: Any) -> None:
        events.append({"type": f"response.{kind}", **members})

    for n, text in enumerate("ab"):
        arguments = json.dumps({"text": text})
        item = {"type": "function_call", "name": "note", "arguments": arguments}
        named = {"id": f"f{n}", "call_id": f"c{n}"} if ids else {}
        where = {"output_index": 0 if one_place else n + 1}
        part = {**where, "item_id": f"f{n}"} if ids else where
        if "added" in says:
            say("output_item.added", **where, item={**item, **named, "arguments": ""})
        if "delta" in says:
            say("function_call_arguments.delta", **part, delta=arguments[:5])
            say("function_call_arguments.delta", **part, delta=arguments[5:])
        if "done" in says:
            say("function_call_arguments.done", **part, arguments=arguments)
        if "item" in says:
            say("output_item.done", **where, item={**item, **named})
        end = {"id": f"x{n}", "call_id": f"y{n}"} if ids and other_ids else named
        output.append({**item, **end})
    say("completed", response={"status": "completed", "output": output * ("completed" in says)})
    return events


@asked_of("says", [s for n in range(1, 6) for s in combinations(SAYS, n)], ids=str)
def test_a_responses_stream_may_say_a_call_in_any_of_its_events(says: tuple[str, ...]) -> None:
    names, whole = {"added", "item", "completed"}, {"item", "completed"}
    for ids, one_place, other_ids in product([True, False], repeat=3):
        calls = tp.parse(
            capture(responses_stream(says, ids, one_place, other_ids)), tools=[NOTE]
        ).calls
        assert all(call.arguments_json != "{}" for call in calls if call.ok)
        told_apart = ids or not one_place or says == ("completed",)
        if other_ids and one_place and "added" not in says:
            told_apart = says in (("completed",), ("item",))
        if names & {*says} and {*SAYS[1:]} & {*says} and told_apart:
            assert [(c.status, c.arguments) for c in calls] == [
                ("ok", {"text": "a"}), ("ok", {"text": "b"})
            ]  # fmt: skip
        if not names & {*says} or (not whole & {*says} and says == ("added",)):
            assert not any(call.ok for call in calls)


def test_the_last_complete_statement_of_arguments_counts() -> None:
    item = {"type": "function_call", "id": "f", "call_id": "c", "name": "note"}
    said = ['{"text": "a"}', '{"text": "b"}', '{"text": "', "{}", ""]
    events: list[dict[str, Any]] = [{"type": "response.output_item.added", "item": item}]
    done = "response.output_item.done"
    events += [{"type": done, "item": {**item, "arguments": arguments}} for arguments in said]
    events.append({"type": "response.completed", "response": {"status": "completed"}})
    (call,) = tp.parse(capture(events), tools=[NOTE]).calls
    assert (call.ok, call.arguments) == (True, {"text": "b"})


def test_a_call_whose_arguments_were_lost_is_not_whole() -> None:
    function: dict[str, Any] = {"name": "note"}
    block = {"type": "tool_use", "id": "t", "name": "note", "input": {}}
    end = [{"type": "message_delta", "delta": {"stop_reason": "tool_use"}}]
    start = {"type": "content_block_start", "index": 0, "content_block": block}
    stop = {"type": "content_block_stop", "index": 0}
    empty = {"type": "input_json_delta", "partial_json": ""}
    item = {"type": "function_call", "id": "f", "call_id": "c", "name": "note", "arguments": ""}
    added = {"type": "response.output_item.added", "output_index": 0, "item": item}
    lost: list[Any] = [
        *(deltas({"tool_calls": [{"index": 0, "id": "c", "function": {**function, **a}}]})
          for a in ({}, {"arguments": ""}, {"arguments": None})),
        {"choices": [{"message": {"tool_calls": [{"id": "c", "function": function}]}}]},
        [start, *end],
        [start, stop, *end],
        [added, {"type": "response.completed", "response": {"status": "completed"}}],
        {"object": "response", "status": "completed", "output": [item]},
    ]  # fmt: skip
    bare = {**NOTE, "parameters": {"type": "object", "properties": {}}}
    for response in lost:
        for tools in ([NOTE], None):
            assert [c.ok for c in tp.parse(capture(response), tools=tools).calls] == [False]
        assert [c.ok for c in tp.parse(capture(response), tools=[bare]).calls] == [True]
    said: list[Any] = [
        start, {"type": "content_block_delta", "index": 0, "delta": empty}, stop, *end
    ]  # fmt: skip
    assert [c.arguments for c in tp.parse(capture(said), tools=[NOTE]).calls if c.ok] == [{}]
    for piece in ('ext": "b"}', '{"text": "b'):  # the other half was lost
        said[1]["delta"] = {"type": "input_json_delta", "partial_json": piece}
        for tools in ([NOTE], [bare], None):
            assert not any(c.ok for c in tp.parse(capture(said), tools=tools).calls)


def test_a_text_stays_a_text() -> None:
    for text in (
        "Hi",
        "",
        "data: what the model says about data",
        'data: {"x": 1}\nand prose',
        "id: 5",
    ):
        found = capture(text)
        assert (found.raw, found.fidelity, found.stream) == (text, "replayed", False)
        assert tp.parse(text).raw == text
    hermes = '<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>'
    chat = {"choices": [{"message": {"content": hermes}}]}
    assert tp.parse(chat, "hermes", TOOLS) == tp.parse(hermes, "hermes", TOOLS)


def test_a_cut_stream_is_never_finished() -> None:
    whole = capture(sse(CHUNKS))
    assert (whole.cut, whole.finish_reason, whole.fidelity) == (False, "tool_calls", "wire")
    for cut in range(1, 6):
        text = sse(CHUNKS, done=False)
        broken = text[: [i for i, c in enumerate(text) if c == "\n"][2 * cut - 1]]
        assert capture(broken).cut
        assert capture(CHUNKS[:cut]).cut
        result = tp.parse(broken, tools=TOOLS)
        assert [c.status for c in result.calls] == (["truncated"] if cut > 2 else [])
        assert result.text == ("Well" if cut > 1 else "We")
        assert [problem.code for problem in result.problems] == ["response.cut"]
    in_a_line = sse(CHUNKS, done=False)[:-40]
    found = capture(in_a_line)
    assert found.cut
    assert len(found.unreadable) == 1


def test_pieces_keep_their_kind_and_order() -> None:
    found = capture(
        deltas({"reasoning_content": "hm"}, {"content": "a\ud83d"}, {"content": "\ude00b"})
    )
    assert found.chunks == (("reasoning", "hm"), ("content", "a\ud83d"), ("content", "\ude00b"))
    assert (found.content, found.reasoning) == ("a😀b", "hm")


def test_choices() -> None:
    two = {"choices": [{"message": {"content": "a"}}, {"message": {"content": "b"}}]}
    assert [capture(two, n).content for n in (0, 1)] == ["a", "b"]
    with pytest.raises(tp.errors.UnreadableInput, match="no such choice"):
        capture(two, 2)
    for wrong in (-1, True, "0"):
        with pytest.raises(tp.errors.BadOptions):
            capture(two, wrong)  # type: ignore[arg-type]


def test_raw_completions() -> None:
    found = capture(
        {
            "object": "text_completion",
            "choices": [{"text": "<tool_call>", "finish_reason": "length"}],
        }
    )
    assert (found.raw, found.endpoint_kind, found.finish_reason) == (
        "<tool_call>",
        "raw_completion",
        "length",
    )


def test_an_answer_without_calls_is_read_as_native_when_asked() -> None:
    chat = {"choices": [{"message": {"content": '{"tool_calls": []}', "role": "assistant"}}]}
    result = tp.parse(chat, "native", TOOLS)
    assert (result.text, result.calls) == ('{"tool_calls": []}', ())
    assert json.loads(result.raw) == {"content": '{"tool_calls": []}', "tool_calls": []}


WRONG: dict[str, Any] = {
    "nothing": None,
    "a number": 1,
    "an empty dict": {},
    "another dict": {"a": 1},
    "an empty list": [],
    "a list of texts": ["a", "b"],
    "a list of other dicts": [{"a": 1}],
    "an object": object(),
    "a class": dict,
    "no choices": {"choices": []},
    "choices of nothing": {"choices": [None]},
    "a message of text": {"choices": [{"message": "hi"}]},
    "content of a wrong type": {"role": "assistant", "content": 5},
    "a user's message": {"role": "user", "content": "hi"},
    "a stream under way": iter([CHUNKS[0]]),
    "an error": {"error": {"message": "rate limited"}},
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_answer_is_refused(name: str) -> None:
    with pytest.raises(tp.errors.UnreadableInput) as caught:
        tp.parse(WRONG[name])
    assert caught.value.expected
    if name == "a stream under way":
        assert "list(stream)" in str(caught.value)
    if name == "an error":
        assert "rate limited" in str(caught.value)


def test_an_error_behind_the_beginning_of_an_answer_is_kept() -> None:
    found = capture(
        sse(
            [*deltas({"content": "Hi"}, finish=None), {"error": {"message": "overloaded"}}],
            done=False,
        )
    )
    assert (found.content, found.error, found.cut) == ("Hi", "overloaded", True)
    assert tp.parse(sse([*deltas({"content": "Hi"}, finish=None)], done=False)).text == "Hi"


@each_case
def test_which_texts_are_event_streams(text: str, is_stream: bool) -> None:
    assert is_event_stream(text) is is_stream


@pytest.mark.parametrize("protocol", ["auto", "hermes", "native"])
@every_case
def test_no_text_raises(text: str, protocol: str) -> None:
    assert isinstance(tp.parse(text, protocol, TOOLS).raw, str)
    assert isinstance(tp.parse(text + text, protocol, TOOLS).raw, str)


def test_a_recorded_answer_is_the_model_s_text_even_if_it_looks_like_a_stream(
    tmp_path: Path,
) -> None:
    """A model that is asked for an example of a stream writes one."""
    text = sse(CHUNKS)
    middleware = tp.create_tool_middleware("hermes")
    turn = middleware.transform_params(
        {"messages": [{"role": "user", "content": "hi"}], "tools": TOOLS}
    )
    assert middleware.wrap_generate(turn, text).message["content"] == text
    assert parse_generated_text(tp.protocols()["hermes"], text, TOOLS) == [
        {"type": "text", "text": text}
    ]
    with MockOpenAI() as mock, tp.Lab(tmp_path / "a.db") as lab:
        case = {"id": "a", "input": "say=" + text, "tools": TOOLS, "target": []}
        model = tp.Model("openai/m", api_base=mock.url, api_key="sk-not-a-real-key")
        (trial,) = lab.run(lab.plan([case], model, "hermes"), progress=False).trials()
        assert trial.result is not None
        assert trial.result.raw == text


SAVED = {
    "choices": [
        {
            "message": {"role": "assistant", "content": "Hi", "tool_calls": None},
            "finish_reason": "stop",
        }
    ]
}


@each_case
@pytest.mark.parametrize("around", ["{}", "\ufeff{}", "\n{}\n"])
def test_the_json_text_of_a_response_is_read_as_the_response(
    response: Any, raw: str | None, around: str
) -> None:
    text = around.replace("{}", json.dumps(response))
    assert capture(text) == capture(response)
    assert raw is None or tp.parse(text).raw == raw
    assert tp.parse(text) == tp.parse(response)
    assert tp.detect(text) == tp.detect(response)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(
            SAVED["choices"][0]["message"]
        ),  # models that were told OpenAI's JSON write messages themselves
        json.dumps({"choices": []}),
        json.dumps({"choices": ["tea", "coffee"], "output": "tea"}),
        json.dumps({"name": "f", "arguments": {"choices": [{"text": "x"}]}}),
        json.dumps(SAVED)[:-1],
        "Here it is: " + json.dumps(SAVED),
        '{"error": {"message": "no"}}',
        "{" * 100_000 + '"choices"',
    ],
)
def test_json_that_is_no_response_is_a_models_words(text: str) -> None:
    assert capture(text).raw == text
    assert tp.parse(text).raw == text


def frame(payload: Any, **headers: str) -> bytes:
    head = b"".join(
        pack(">B", len(name) + 1) + b":" + name.replace("_", "-").encode() + b"\7"
        + pack(">H", len(value)) + value.encode() for name, value in headers.items()
    )  # fmt: skip
    head += b"\4:odd\4\0\0\0\1"  # a number
    body = json.dumps(payload).encode()
    sizes = pack(">II", len(head) + len(body) + 16, len(head))
    message = sizes + pack(">I", crc32(sizes)) + head + body
    return message + pack(">I", crc32(message))


def test_binary_event_streams_of_aws(tmp_path: Path) -> None:
    start = {"toolUse": {"toolUseId": "t", "name": "f"}}
    events: dict[str, Any] = {
        "messageStart": {"role": "assistant", "p": "ab"},
        "contentBlockStart": {"contentBlockIndex": 0, "start": start},
        "contentBlockDelta": {"contentBlockIndex": 0, "delta": {"toolUse": {"input": '{"a": 1}'}}},
        "messageStop": {"stopReason": "tool_use"},
    }
    converse = [frame(x, event_type=name, message_type="event") for name, x in events.items()]
    block = {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}}
    invoked = [
        frame({"bytes": base64.b64encode(json.dumps(x).encode()).decode()}, event_type="chunk")
        for x in (
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        )
    ]
    for frames in (converse, invoked):
        data = b"".join(frames)
        text = base64.encodebytes(data).decode()
        bodies: tuple[Any, ...] = (data, text, {"body": data}, {"body": text})
        for body in bodies:
            (call,) = tp.parse(body, tools=TOOLS).calls
            assert (call.arguments, call.status) == ({"a": 1}, "ok")
        # A frame that is cut or damaged is said, and the others are read.
        flipped = bytearray(data)
        flipped[-20] ^= 1
        broken: tuple[Any, ...] = (data[:-1], base64.b64encode(data)[:-5].decode(), bytes(flipped))
        for damaged in broken:
            result = tp.parse(damaged, tools=TOOLS)
            assert [call.name for call in result.calls] == ["f"]
            assert "unreadable event (a frame at" in result.problems[0].message
        part: Any
        for place in range(0, len(data), 3):
            changed = bytearray(data)
            changed[place] ^= 255
            for part in (data[:place], bytes(changed)):
                try:
                    result = tp.parse(part, tools=TOOLS)
                except UnreadableInput:
                    continue
                assert result.problems or result.calls[0].arguments == {"a": 1}
    failure = frame({"message": "slow down"}, exception_type="throttlingException")
    assert capture(failure).error == "slow down"
    failure = frame({}, message_type="error", error_code="Boom", error_message="it broke")
    assert capture(converse[0] + failure).error == "it broke"
    (tmp_path / "a.sse").write_bytes(b"".join(converse))
    with tp.Lab(tmp_path / "runs.db") as lab:
        (trial,) = lab.ingest(tmp_path / "a.sse", tools=TOOLS, progress=False).trials()
    assert trial.result is not None
    assert [call.arguments for call in trial.result.calls] == [{"a": 1}]
    assert tp.parse("AAAAAAAAAAAAAAAAAAAA").text == "A" * 20


@every_case
def test_bodies_inside_of_others_and_texts_of_invoked_models(
    body: Any, text: str, calls: int
) -> None:
    found = capture(body)
    assert (found.content, len(found.tool_calls), found.unread) == (text, calls, ())


def test_an_error_inside_a_response_is_said() -> None:
    broken = {"choices": [{"error": {"message": "gone"}, "message": {"content": "We"}}]}
    assert capture(broken).error == "gone"
    # Of a dump of nothing but an error, the result says it.
    result = tp.parse(sse([{"type": "error", "error": {"message": "Overloaded"}}], False))
    assert ["Overloaded" in problem.message for problem in result.problems] == [True]
