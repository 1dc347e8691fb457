"""One answer, whole or in pieces: the same message for every chunking, and deltas that add up to
it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import toolparse_lab as tp
from tests.laws import EXAMPLES, part
from tests.parser.test_laws import PIECES
from tests.tables import asked_of
from toolparse_lab.entry.laws import TOOLS
from toolparse_lab.formats.reasoning import is_end, mark_in
from toolparse_lab.formats.registry import family_heads
from toolparse_lab.middleware import Answer, AnswerStream, ToolCallMiddleware, Turn

CASES = Path(__file__).parents[1] / "cases_core"
PROTOCOLS = list(family_heads())
MIDDLEWARES = {p: tp.create_tool_middleware(p) for p in PROTOCOLS}


def turn_of(middleware: ToolCallMiddleware, tools: Any, choice: Any = None) -> Turn:
    return middleware.transform_params({"messages": [], "tools": tools, "tool_choice": choice})


def plain(answer: Answer) -> dict[str, Any]:
    """An answer without its ids, which are new each time."""
    calls = [{**c, "id": bool(c["id"])} for c in answer.tool_calls]
    message = {**answer.message, **({"tool_calls": calls} if calls else {})}
    return {
        "message": message,
        "finish": answer.finish_reason,
        "result": answer.result,
        "problems": answer.problems,
    }


def streamed(stream: AnswerStream, chunks: Iterable[str], finish: str | None = "stop") -> Answer:
    """The answer of a stream, after what its deltas say was compared with it."""
    deltas = [d for chunk in chunks for d in stream.feed(chunk)]
    last, answer = stream.close(finish)
    said: dict[str, str] = {"content": "", "reasoning_content": ""}
    calls: list[dict[str, Any]] = []
    inputs: dict[str, tuple[bool, str]] = {}  # id -> whether it ended, and what was shown
    for delta in [*deltas, *last]:
        assert len(delta) == 1
        if part := delta.get("tool_input", {}):
            follow_input(inputs, part)
        for key in said:
            said[key] += delta.get(key, "")
        for call in delta.get("tool_calls", ()):
            assert call["index"] == len(calls)
            if inputs:
                assert inputs.pop(call["id"]) == (True, call["function"]["arguments"])
            calls.append({k: v for k, v in call.items() if k != "index"})
    raw = "".join(said.values())
    assert not inputs
    assert calls == list(answer.tool_calls)
    assert answer is stream.close(None)[1]
    if began_in_prompt(answer):
        # Its words were content before the tag came that says what they are; nothing is lost.
        told = answer.message.get("reasoning_content", "") + (answer.message["content"] or "")
        assert letters(raw) == letters(told), raw
        return answer
    assert pairs(said["content"]) == pairs(answer.message["content"] or ""), raw
    assert pairs(said["reasoning_content"]) == pairs(answer.message.get("reasoning_content", "")), (
        raw
    )
    return answer


def follow_input(inputs: dict[str, tuple[bool, str]], part: dict[str, str]) -> None:
    """Take in a part of an input. What is shown before the end is never JSON that can be read."""
    kind, id = part["type"].removeprefix("tool-input-"), part["id"]
    if kind == "start":
        assert id not in inputs
        inputs[id] = (False, "")
        return
    ended, so_far = inputs.pop(id)
    assert not ended
    if kind == "delta":
        with pytest.raises(json.JSONDecodeError):
            json.loads(so_far)
        inputs[id] = (False, so_far + part["delta"])
    elif kind == "end":
        inputs[id] = (True, so_far)
    else:
        assert kind == "error"
        assert part["errorText"]


def began_in_prompt(answer: Answer) -> bool:
    """A closing think tag stands in the text that no tag opened."""
    assert answer.result is not None
    segments, raw = answer.result.segments, answer.result.raw
    return any(
        segment.kind == "markup"
        and is_end(segment.span.of(raw))
        and not any(s.kind == "markup" and mark_in(s.span.of(raw)) for s in segments[:i])
        for i, segment in enumerate(segments)
    )


def letters(text: str) -> list[str]:
    """The characters of a text in the order of their values, without white space.

    Halves of a character are two: what stands between them in one text may stand elsewhere in
    another.
    """
    units = "".join(text.split()).encode("utf-16-le", "surrogatepass")
    return sorted(units[i : i + 2].hex() for i in range(0, len(units), 2))


def pairs(text: str) -> str:
    """Halves of a character joined, as a client does that decodes what it received."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def check(
    raw: str, middleware: ToolCallMiddleware, turn: Turn, plans: Iterable[Iterable[str]]
) -> Answer:
    whole = middleware.wrap_generate(turn, raw)
    for plan in plans:
        got = streamed(middleware.wrap_stream(turn), plan)
        assert plain(got) == plain(whole), raw
    return whole


def account(answer: Answer, unknown_tools: Any = "text") -> None:
    """Every character is content, reasoning, markup, white space alone, or belongs to a call that
    was made."""
    result = answer.result
    assert result is not None
    made = ("ok",) if unknown_tools == "text" else ("ok", "unknown_tool")
    called = {c.segment_index for c in result.calls if c.status in made}
    kept = "".join(
        s.span.of(result.raw)
        for i, s in enumerate(result.segments)
        if s.kind == "text" or (s.kind in ("call", "recovered") and i not in called)
    )
    assert "".join((answer.message["content"] or "").split()) == "".join(kept.split())


def plans_of(raw: str, cuts: Iterable[int] = ()) -> list[list[str]]:
    found = [[raw], list(raw), [raw[i : i + 3] for i in range(0, len(raw), 3)]]
    return [*found, *([raw[:i], raw[i:]] for i in cuts)]


def load() -> list[Any]:
    tools = json.loads((CASES / "parse_tools.json").read_text("utf-8"))
    out = []
    for line in (CASES / "parse.jsonl").read_text("utf-8").splitlines():
        case = json.loads(line)
        if case["protocol"] in PROTOCOLS:
            out.append(
                pytest.param(
                    case["protocol"], case["raw"], case.get("tools", tools), id=case["title"]
                )
            )
    return out


@asked_of(("protocol", "raw", "tools"), load())
def test_every_chunking_of_a_case(protocol: str, raw: str, tools: Any) -> None:
    middleware = MIDDLEWARES[protocol]
    turn = turn_of(middleware, tools)
    if turn.active:
        cuts = part(range(1, len(raw)), 4, len(raw))
        account(check(raw, middleware, turn, plans_of(raw, cuts)))


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("reasoning", ["auto", "prefilled", "none"])
def test_every_chunking_of_random_text(protocol: str, reasoning: str) -> None:
    unknown: Any = "text" if reasoning == "auto" else "call"
    middleware = tp.create_tool_middleware(
        protocol, options={"reasoning": reasoning}, unknown_tools=unknown
    )
    turn = turn_of(middleware, TOOLS)

    @settings(deadline=None, max_examples=EXAMPLES // 3, suppress_health_check=list(HealthCheck))
    @given(st.lists(st.sampled_from(PIECES), max_size=14), st.randoms(use_true_random=False))
    def law(pieces: list[str], random: Any) -> None:
        raw = "".join(pieces)
        cuts = sorted(random.randint(0, len(raw)) for _ in range(4))
        uneven = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
        account(check(raw, middleware, turn, [pieces, list(raw), uneven]), unknown)

    law()


FORCED = [
    '{"name": "f", "arguments": '
    '', '{"a": 1}', '{"s": "<tool_call>"}', "}", '{"name":"put","arguments":{"path":"x"}}',
    "<think>", "</think>", "```json\n", "\n```", " ", "\n", "Sure: ", "{'name': 'f',", "\ud83d",
    "\udc00", ",", '<tool_call>{"name":"f","arguments":{}}</tool_call>',
    '{"name":"nope","arguments":{}}', "[", "]", "\x00", "<|channel|>analysis<|message|>", "<|end|>",
    "<|return|>", "<|channel|>final<|message|>",
]  # fmt: skip


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("compat", [None, "ai-sdk-2"])
def test_every_chunking_of_a_forced_answer(protocol: str, compat: Any) -> None:
    middleware = tp.create_tool_middleware(protocol, compat=compat)
    turn = turn_of(middleware, TOOLS, "required")

    @settings(deadline=None, max_examples=EXAMPLES // 3, suppress_health_check=list(HealthCheck))
    @given(st.lists(st.sampled_from(FORCED), max_size=8))
    def law(pieces: list[str]) -> None:
        raw = "".join(pieces)
        answer = check(raw, middleware, turn, [pieces, list(raw)])
        assert len(answer.tool_calls) <= 1
        assert answer.result is not None
        assert (
            "".join(s.span.of(answer.result.raw) for s in answer.result.segments)
            == answer.result.raw
        )
        if compat is None:
            account(answer)

    law()


def test_text_is_said_as_soon_as_it_is_no_call() -> None:
    middleware = MIDDLEWARES["hermes"]
    stream = middleware.wrap_stream(turn_of(middleware, TOOLS))
    assert stream.feed("Hello <b") == ({"content": "Hello <b"},)
    assert stream.feed(" <tool_") == ({"content": " "},)
    assert stream.feed("x") == ({"content": "<tool_x"},)


def test_reasoning_is_said_at_once_unless_a_call_may_have_begun_in_it() -> None:
    middleware = MIDDLEWARES["hermes"]
    turn = turn_of(middleware, TOOLS)
    stream = middleware.wrap_stream(turn)
    assert stream.feed("<think>I am ") == ({"reasoning_content": "I am "},)
    assert stream.feed('sure.<tool_call>{"name":"f",') == ({"reasoning_content": "sure."},)
    last, answer = stream.close("stop")
    assert last == ({"reasoning_content": '<tool_call>{"name":"f",'},)
    assert answer.finish_reason == "stop"
    raw = '<think>x<tool_call>{"name":"f","arguments":{"a":1}}</tool_call>'
    answer = check(raw, middleware, turn, plans_of(raw, range(len(raw))))
    assert not answer.tool_calls
    assert answer.message["reasoning_content"] == "x"
