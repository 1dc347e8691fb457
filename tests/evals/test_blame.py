"""What the model wrote, taken from the tokens of a response, and the server's own calls beside
it."""

from __future__ import annotations

import json
from html import escape
from types import SimpleNamespace
from typing import Any

import pytest

import toolparse_lab as tp
from tests.tables import every_case
from tests.tools import tool_named
from toolparse_lab.core.types import ParseResult
from toolparse_lab.entry.capture import capture
from toolparse_lab.views.ansi import render_ansi
from toolparse_lab.views.html import render_result
from toolparse_lab.views.show import visible

TOOLS = [tool_named("get_weather", city="string", days="integer")]
HERMES = '<tool_call>{"name": "get_weather", "arguments": {"city": "%s", "days": 3}}</tool_call>'
KIMI = (
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0"
    '<|tool_call_argument_begin|>{"city": "Oslo", "days": 3}<|tool_call_end|>'
    "<|tool_calls_section_end|>"
)
Body = dict[str, Any]


def pieces(text: str, size: int = 3) -> list[bytes]:
    """Bytes of tokens that split characters: `size` bytes each."""
    data = text.encode()
    return [data[i : i + size] for i in range(0, len(data), size)]


def entries(text: str, size: int = 3) -> list[Body]:
    """Log probabilities as OpenAI writes them; a token that is no UTF-8 has a sign in its text."""
    return [
        {"token": p.decode("utf-8", "replace"), "logprob": -0.1, "bytes": list(p)}
        for p in pieces(text, size)
    ]


def chat(text: str, message: Body | None = None, **choice: Any) -> Body:
    message = {"role": "assistant", "content": "", **(message or {})}
    one = {"index": 0, "finish_reason": "stop", "message": message, **choice}
    return {"id": "c1", "object": "chat.completion", "model": "m", "choices": [one]}


def chat_logprobs(text: str) -> Body:
    return chat(text, logprobs={"content": entries(text)})


def null_content(text: str) -> Body:
    return chat(text, {"content": None}, logprobs={"content": entries(text, 5)})


def special_last(text: str) -> Body:
    end = {"token": "<|im_end|>", "logprob": 0.0, "bytes": list(b"<|im_end|>")}
    return chat(text, logprobs={"content": [*entries(text, 1), end]})


def without_bytes(text: str) -> Body:
    tokens = [{"token": c, "logprob": -0.1, "bytes": None} for c in text]
    return chat(text, logprobs={"content": tokens})


def completion_tokens(text: str) -> Body:
    logprobs = {"tokens": list(text), "token_logprobs": [0.0] * len(text), "content": None}
    return chat(text, logprobs=logprobs)


def top_level(text: str) -> Body:
    message = {"role": "assistant", "content": ""}
    return {"model": "m", "message": message, "done": True, "logprobs": entries(text, 2)}


def responses_raw(text: str) -> Body:
    raw = {"type": "raw_message_tokens", "message": text, "tokens": [1, 2]}
    return {
        "object": "response", "status": "completed", "output": [], "output_messages": [raw],
    }  # fmt: skip


def responses_parts(text: str) -> Body:
    part = {"type": "output_text", "text": "", "logprobs": entries(text)}
    item = {"type": "message", "role": "assistant", "content": [part]}
    return {"object": "response", "status": "completed", "output": [item]}


def stream(text: str) -> Any:
    chunks = [
        {"choices": [{"index": 0, "delta": {}, "logprobs": {"content": [entry]}}]}
        for entry in entries(text)
    ]
    return [*chunks, {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}]


def event_stream(text: str) -> Any:
    return "".join(f"data: {json.dumps(c)}\n\n" for c in stream(text)) + "data: [DONE]\n\n"


def as_object(text: str) -> Any:
    def of(x: Any) -> Any:
        if isinstance(x, dict):
            return SimpleNamespace(**{k: of(v) for k, v in x.items()})
        return [of(v) for v in x] if isinstance(x, list) else x

    return of(chat_logprobs(text))


SHAPES = [
    chat_logprobs, null_content, special_last, without_bytes, completion_tokens, top_level,
    responses_raw, responses_parts, stream, event_stream, as_object,
]  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
@every_case
def test_the_tokens_give_back_the_text(shape: Any, protocol: str, text: str) -> None:
    body = shape(text)
    captured = capture(body)
    assert captured.raw == text
    assert captured.fidelity == ("raw_messages" if shape is responses_raw else "logprobs")
    assert captured.endpoint_kind == "chat_text"

    result = tp.parse(body, "auto", TOOLS)
    plain = tp.parse(text, "auto", TOOLS)
    assert result == plain
    assert plain.blame == ""
    if plain.verdict != "truncated":
        assert result.calls[0].protocol == protocol
        assert result.calls[0].arguments["days"] == 3
        assert result.blame.startswith("Server lost it: the model wrote get_weather")


class Tokenizer:
    """One token a code point."""

    def decode(self, ids: list[int], skip_special_tokens: bool = True) -> str:
        text = "".join(map(chr, ids))
        return text.replace("<|tool_call_begin|>", "") if skip_special_tokens else text


def ids_of(text: str) -> list[int]:
    return list(map(ord, text))


@pytest.mark.parametrize(
    "body_of",
    [
        lambda text: chat(text, token_ids=ids_of(text)),
        lambda text: chat(text, provider_specific_fields={"token_ids": ids_of(text)}),
        lambda text: {
            **chat(text), "nvext": {"engine_data": {"completion_token_ids": ids_of(text)}},
        },
        lambda text: chat(
            text, logprobs={"content": [{"token": f"token_id:{i}"} for i in ids_of(text)]}
        ),
        lambda text: [
            {"choices": [{"index": 0, "delta": {}, "token_ids": ids_of(c)}]} for c in text
        ],
    ],
    ids=["choice", "litellm", "nvext", "token_id", "chunks"],
)  # fmt: skip
@pytest.mark.parametrize("tokenizer", [Tokenizer(), lambda ids: "".join(map(chr, ids))])
def test_token_ids_are_read_with_a_tokenizer(body_of: Any, tokenizer: Any) -> None:
    text = KIMI
    captured = capture(body_of(text), tokenizer=tokenizer)
    assert (captured.raw, captured.fidelity) == (text, "token_ids")
    assert capture(body_of(text)).raw == ""
    result = tp.parse(body_of(text), "kimi_k2", TOOLS, tokenizer=tokenizer)
    assert result.blame.startswith("Server lost it")


def test_the_prompt_is_read_too() -> None:
    body = {**chat("x", token_ids=ids_of("<a>x")), "prompt_token_ids": ids_of("<tool_call>")}
    assert capture(body, tokenizer=Tokenizer()).prompt == "<tool_call>"


def test_harmony_messages_are_written_as_the_model_wrote_them() -> None:
    messages = [
        {"role": "assistant", "channel": "analysis", "content": [{"type": "text", "text": "Hm."}]},
        {
            "role": "assistant", "channel": "commentary", "recipient": "functions.get_weather",
            "content_type": "<|constrain|>json",
            "content": [{"type": "text", "text": '{"city":"Oslo","days":3}'}],
        },
    ]  # fmt: skip
    body = {"object": "response", "status": "completed", "output": [], "output_messages": messages}
    result = tp.parse(body, "auto", TOOLS)
    assert [call.arguments for call in result.calls] == [{"city": "Oslo", "days": 3}]
    assert result.verdict == "clean"


def server_call(**arguments: Any) -> Body:
    function = {"name": "get_weather", "arguments": json.dumps(arguments)}
    return {"id": "c0", "type": "function", "function": function}


def with_calls(text: str, *calls: Body) -> Body:
    return chat(text, {"tool_calls": list(calls)}, logprobs={"content": entries(text)})


@every_case
def test_blame(body: Body, begin: str) -> None:
    result = tp.parse(body, "auto", TOOLS)
    assert result.blame.startswith(f"{begin}: "), result.blame
    assert ParseResult.from_dict(json.loads(result.to_json())).blame == result.blame


def test_a_content_that_is_whole_stays() -> None:
    for body in (
        chat("", {"content": "Hi."}, logprobs={"content": entries("Hi.")}),
        chat("", {"content": "Hi."}, logprobs={"content": entries("Hi.<|im_end|>\n")}),
        chat("", {"content": "Hi."}, logprobs={"content": entries("Hi")}),
        chat("", {"content": "Hi."}, logprobs={"content": None}),
        chat("", {"content": "Hi."}, logprobs={"content": [{"token": 3}, None, {"bytes": [999]}]}),
        chat("", {"content": "Hi."}, token_ids="no", logprobs="no"),
    ):
        assert (capture(body).raw, capture(body).fidelity) == ("Hi.", "sdk")


def test_the_providers_own_calls_can_still_be_asked_for() -> None:
    body = with_calls(HERMES % "Oslo", server_call(city="Rome"))
    assert tp.parse(body, "native", TOOLS).calls[0].arguments == {"city": "Rome"}


def test_bytes_that_are_no_text_never_raise() -> None:
    body = chat("", logprobs={"content": [{"token": "?", "bytes": [255, 60, 0xE2]}]})
    result = tp.parse(body, "auto", TOOLS)
    assert "<" in result.raw
    json.loads(result.to_json())


def test_ingest_keeps_text_fidelity_and_blame(tmp_path: Any) -> None:
    good = with_calls(HERMES % "Oslo", server_call(city="Oslo", days=3))
    lost = with_calls(HERMES % "Rome")
    answers = [
        {"response": good, "case_id": "good", "tools": TOOLS, "input": "a"},
        {"response": lost, "case_id": "lost", "tools": TOOLS, "input": "b"},
        {"output": "Hi.", "case_id": "text", "tools": TOOLS, "input": "c"},
    ]
    with tp.Lab(tmp_path / "runs.db") as lab:
        run = lab.ingest(answers, protocol="hermes")
        frame = run.frame().set_index("case_id")
        again = run.frame()
    assert frame.loc["good", "fidelity"] == "logprobs"
    assert frame.loc["good", "raw"] == HERMES % "Oslo"
    assert str(frame.loc["good", "blame"]).startswith("Agree")
    assert str(frame.loc["lost", "blame"]).startswith("Server lost it")
    assert frame["blame"].isna()["text"]
    # Reading again compares again: another format finds no call.
    from toolparse_lab.evals.frames.parsing import parse_frame

    other = parse_frame(again, "pythonic").set_index("case_id")
    assert str(other.loc["good", "blame"]).startswith("Model wrote none")


def test_every_view_says_whose_fault_it_is_and_shows_names_as_text() -> None:
    hostile = "<script>alert(1)</script>\x1b[31m\u202e"
    body = chat_logprobs(HERMES % "Oslo")
    body["choices"][0]["message"]["tool_calls"] = [
        {"type": "function", "function": {"name": hostile, "arguments": "{}"}}
    ]
    result = tp.parse(body, "hermes", TOOLS)
    assert result.blame.startswith("Server changed it: ")
    shown = visible(result.blame)
    terminal = render_ansi(result, color=False)
    assert terminal.splitlines()[1] == shown
    page = render_result(result)
    assert escape(shown) in page
    assert "<script" not in page
    for text in (terminal, page):
        assert "\x1b" not in text
        assert "\u202e" not in text


def test_without_a_response_nobody_is_blamed() -> None:
    result = tp.parse(HERMES % "Oslo", "hermes", TOOLS)
    assert result.blame == ""
    assert render_ansi(result, color=False).splitlines()[1] == ""
    assert "toolparse-blame" not in render_result(result)
