"""Answers of servers that do not keep to the API: what can be read of them is kept."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from openai._models import construct_type
from openai.types.chat import ChatCompletionChunk

from tests import replay_server
from tests.mock_openai import MockOpenAI
from tests.replay_server import ReplayServer
from tests.tables import asked_of, each_case
from toolparse_lab.core.errors import BadOptions
from toolparse_lab.runner.answer import Answer
from toolparse_lab.runner.complete import complete
from toolparse_lab.runner.exchange.types import Completion, Model, Request
from toolparse_lab.runner.streams import _as_dicts

USAGE = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
PARTS = [{"type": "text", "text": "hel"}, {"type": "image_url"}, {"type": "text", "text": "lo"}]


def response(content: Any = "hello", **changes: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": content}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    whole = {"id": "x", "object": "chat.completion", "created": 1, "model": "m"}
    return {**whole, "choices": [choice], "usage": USAGE, **changes}


class OneAnswer(ReplayServer):
    """A server that answers everything with one body."""

    def ask(self, body: Any, kind: str = "application/json", stream: bool = False) -> Completion:
        text = body if isinstance(body, str) else json.dumps(body)
        self.answer = replay_server.Answer([text.encode()], headers={"Content-Type": kind})
        return asyncio.run(complete(question(f"{self.url}/v1", stream=stream)))


def question(url: str, text: str = "hi", stream: bool = False, **model: Any) -> Request:
    endpoint = Model("openai/m", api_base=url, api_key="planted-key-1", **model)
    return Request(endpoint, "m", ({"role": "user", "content": text},), stream=stream)


@pytest.fixture(scope="module")
def server() -> Iterator[OneAnswer]:
    with OneAnswer() as odd:
        yield odd


@each_case
def test_a_malformed_member_does_not_cost_the_answer(server: OneAnswer, body: Any) -> None:
    answer = server.ask(body)
    assert (answer.status, answer.raw, answer.finish_reason) == ("ok", "hello", "stop")


@pytest.mark.parametrize(
    "body", [{"error": {"message": "loading"}}, {"detail": "loading"}, response(choices=[])]
)
def test_what_is_no_answer_is_none(server: OneAnswer, body: Any) -> None:
    assert server.ask(body).status == "error"


@pytest.mark.parametrize("content", ["hello", PARTS])
def test_a_whole_answer_to_a_streamed_question_is_taken(server: OneAnswer, content: Any) -> None:
    answer = server.ask(response(content), stream=True)
    assert (answer.status, answer.raw, answer.cut) == ("ok", "hello", False)
    assert "".join(chunk.text for chunk in answer.chunks) == "hello"


@pytest.mark.parametrize("indent", [None, 2])
def test_it_is_taken_from_the_lines_of_a_stream_too(server: OneAnswer, indent: int | None) -> None:
    server.answer = replay_server.Answer([json.dumps(response(), indent=indent).encode()])
    endpoint = Model("hosted_vllm/m", api_base=f"{server.url}/v1", api_key="planted-key-1")
    asked = Request(endpoint, "m", ({"role": "user", "content": "hi"},), stream=True)
    answer = asyncio.run(complete(asked))
    assert (answer.status, answer.raw, answer.completion_tokens) == ("ok", "hello", 2)


@each_case
def test_the_servers_words_are_kept_where_no_stream_comes(
    server: OneAnswer, body: Any, kind: str
) -> None:
    answer = server.ask(body, kind, stream=True)
    assert answer.status == "error"
    assert "planted words" in str(answer.error_message)
    assert answer.response
    assert "planted words" in answer.response["body"]


def test_a_stream_under_a_wrong_name_is_a_stream(server: OneAnswer) -> None:
    chunk = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    event = {
        **chunk,
        "choices": [{"index": 0, "delta": {"content": "hi"}, "finish_reason": "stop"}],
    }
    answer = server.ask(f"data: {json.dumps(event)}\n\ndata: [DONE]\n\n", stream=True)
    assert (answer.status, answer.raw) == ("ok", "hi")


ODD: tuple[Any, ...] = (
    None, "x", 3, [], {}, ["a"], [None], [{"text": "t"}], [1, 2], {"content": [{"token": "t"}]},
)  # fmt: skip


@asked_of("odd", ODD, ids=repr)
@each_case
def test_a_chunk_as_dicts_says_what_the_chunk_says(place: int, name: str, odd: Any) -> None:
    levels: list[dict[str, Any]] = [
        {"id": "x", "model": "m"}, {"index": 0, "finish_reason": "stop"}, {"content": "hi"},
    ]  # fmt: skip
    chunk, choice, delta = levels
    chunk["choices"], choice["delta"] = [choice], delta
    levels[place][name] = odd
    read = construct_type(type_=ChatCompletionChunk, value=chunk)
    said = []
    for form in (read, _as_dicts(read)):
        answer = Answer(native=False)
        try:
            answer.take_chunk(form)
        except (AttributeError, TypeError) as e:
            said.append(repr(e))
        else:
            tokens = answer.tokens.tokens(answer.raw)
            members = [answer.raw, answer.reasoning, answer.finish_reason, answer.usage, answer.ids]
            said.append(repr([*members, tokens, [chunk.text for chunk in answer.chunks]]))
    assert said[0] == said[1]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("text", "kept"), [("x" * 5000, "x" * 1000), ("é" * 5000, "é" * 500)])
def test_an_answer_that_is_too_large_ends_there(stream: bool, text: str, kept: str) -> None:
    with MockOpenAI() as mock:
        asked = question(mock.url, f"say={text}", stream=stream, max_answer=1000)
        answer = asyncio.run(complete(asked))
    assert (answer.status, answer.error_kind) == ("error", "too_large")
    assert answer.raw == kept
    assert "1,000 bytes" in str(answer.error_message)


def test_the_limit_is_a_number_and_no_part_of_the_question() -> None:
    assert question("http://x", max_answer=5).key == question("http://x").key
    with pytest.raises(BadOptions):
        Model("openai/m", max_answer=0)
