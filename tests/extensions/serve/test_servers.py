"""Our parser inside vLLM and SGLang, as such; the readers' tests run it in the servers' code."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import toolparse_lab as tp
from toolparse_lab.extensions.serve.answers import ServerAnswer, names_of_formats

RAW = 'Hi. <tool_call>{"name": "now", "arguments": {}}</tool_call> Bye.'
TOOLS = [{"name": "now", "parameters": {"type": "object", "properties": {}}}]


def test_every_format_has_a_name_and_servers_names_are_taken() -> None:
    names = names_of_formats()
    assert names["toolparse_hermes"] == "hermes"
    assert names["toolparse_qwen3_coder"] == "qwen3_coder_xml"
    assert set(names.values()) == set(tp.protocols())


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_pieces_add_up_to_the_whole(size: int) -> None:
    whole = ServerAnswer("hermes", TOOLS).whole(RAW)
    answer = ServerAnswer("hermes", TOOLS)
    said = [answer.feed(RAW[i : i + size]) for i in range(0, len(RAW), size)]
    said += [answer.close(), answer.close()]
    assert "".join(one.content for one in said) == whole.content
    calls = [call for one in said for call in one.calls]
    assert [(c.index, c.name, c.arguments) for c in calls] == [(0, "now", "{}")]
    assert [(c.index, c.name, c.arguments) for c in whole.calls] == [(0, "now", "{}")]


def test_the_tools_of_a_server_s_request() -> None:
    def model(**members: Any) -> Any:
        return SimpleNamespace(model_dump=lambda exclude_none: members)

    chat = model(type="function", function={"name": "now", "parameters": {"type": "object"}})
    flat = model(type="function", name="now", parameters={"type": "object"})
    for tool in (chat, flat, {"name": "now"}):
        assert ServerAnswer("hermes", [tool]).whole(RAW).calls[0].name == "now"
    # Without tools, and with some that cannot be read, the answer is text.
    for tools in ([], [model(name=7)]):
        assert ServerAnswer("hermes", tools).whole(RAW).content == RAW
        assert ServerAnswer("hermes", tools).feed(RAW).content == RAW


def test_an_exception_gives_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("no")

    for name in ("feed", "close"):
        answer = ServerAnswer("hermes", TOOLS)
        with monkeypatch.context() as patch:
            patch.setattr(f"toolparse_lab.middleware.stream.AnswerStream.{name}", broken)
            assert answer.whole(RAW).content == RAW
            said = answer.feed(RAW).content
            answer.close()
        if name == "feed":
            assert said + answer.feed("more").content == RAW + "more"


def test_thoughts_stay_in_the_content() -> None:
    answer = ServerAnswer("hermes", TOOLS).whole(f"<think>Which?</think>{RAW}")
    assert "Which?" in answer.content
    assert len(answer.calls) == 1


def test_a_call_that_was_only_thought_is_none_although_its_opener_was_in_the_prompt() -> None:
    said = ServerAnswer("hermes", TOOLS).whole(f"I could\n{RAW}\nNo.\n</think>\n\nHello.")
    assert not said.calls
    assert "Hello." in said.content
