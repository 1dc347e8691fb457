"""One flow, driven in steps, sync, async, and from a recording."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import toolparse_lab as tp
from toolparse_lab.middleware.drive import relay
from toolparse_lab.middleware.flow import Flow, adrive, advance, drive, read_answer
from toolparse_lab.runner.exchange.types import Completion, Model, Request
from toolparse_lab.runner.store.recording import replay, write_recording

MODEL = Model("openai/scripted", price=(0, 0))
CLOSED: list[str] = []


def ask_twice() -> Flow[str]:
    """Asks what was answered before, and says both answers."""
    request = Request(MODEL, "m", ({"role": "user", "content": "one"},))
    try:
        first = yield request
        second = yield replace(
            request, messages=({"role": "user", "content": first.raw if first else "nothing"},)
        )
    finally:
        CLOSED.append("yes")
    return f"{first.raw if first else None}, {second.raw if second else None}"


def answer(request: Request) -> Completion:
    return Completion(key=request.key, raw=f"({request.messages[0]['content']})")


async def answer_later(request: Request) -> Completion:
    await asyncio.sleep(0)
    return answer(request)


def test_every_driver_comes_to_the_same_end(tmp_path: Path) -> None:
    asked: list[Request] = []

    def note(request: Request) -> Completion:
        asked.append(request)
        return answer(request)

    assert drive(ask_twice(), note) == "(one), ((one))"
    assert asyncio.run(adrive(ask_twice(), answer_later)) == "(one), ((one))"
    write_recording(tmp_path / "r.jsonl", [answer(r) for r in asked])
    recorded = replay(tmp_path / "r.jsonl")
    assert drive(ask_twice(), recorded.answer) == "(one), ((one))"
    assert asyncio.run(adrive(ask_twice(), recorded)) == "(one), ((one))"


def test_a_missing_answer_is_named(tmp_path: Path) -> None:
    request, _ = advance(ask_twice())
    assert request is not None
    write_recording(tmp_path / "r.jsonl", [answer(request)])
    recorded = replay(tmp_path / "r.jsonl")
    CLOSED.clear()
    with pytest.raises(tp.errors.MissingRecording, match="never recorded"):
        drive(ask_twice(), recorded.answer)
    with pytest.raises(tp.errors.MissingRecording):
        asyncio.run(adrive(ask_twice(), recorded))
    assert CLOSED == ["yes", "yes"]


def test_step_by_step() -> None:
    flow = ask_twice()
    request, made = advance(flow)
    assert request is not None
    assert made is None
    request, made = advance(flow, answer(request))
    assert request is not None
    assert advance(flow, None) == (None, "(one), None")


def test_a_stop_iteration_of_the_answer_is_not_the_end_of_the_flow() -> None:
    def stops(request: Request) -> Completion:
        return next(iter(()))

    async def stops_later(request: Request) -> Completion:
        return stops(request)

    def relayed() -> Flow[str]:
        return relay(ask_twice(), lambda request: stops(request))  # type: ignore[arg-type,return-value]

    CLOSED.clear()
    with pytest.raises(StopIteration):
        drive(ask_twice(), stops)
    # Python itself turns one that leaves a coroutine or a generator into a RuntimeError.
    with pytest.raises(RuntimeError):
        asyncio.run(adrive(ask_twice(), stops_later))
    with pytest.raises(RuntimeError):
        advance(relayed())
    assert CLOSED == ["yes"] * 3


# Recorded answers are read as the middleware reads them.


TOOLS = [
    {"name": n, "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}
    for n in ("f", "g")
]
BARE = '{"name": "f", "arguments": {"a": 1}}'
NAMED: Any = {"name": "g"}


@pytest.mark.parametrize("protocol", ["hermes", "morph_xml", "auto"])
@pytest.mark.parametrize(
    ("choice", "names"), [("required", ["f"]), ({"name": "f"}, ["f"]), (NAMED, [])]
)
def test_a_forced_answer_is_one_call(protocol: str, choice: Any, names: list[str]) -> None:
    assert [c.name for c in read_answer(BARE, protocol, TOOLS, None, choice).calls] == names


def test_a_forced_answer_is_read_as_the_middleware_reads_it() -> None:
    middleware = tp.create_tool_middleware("morph_xml", options={"coerce": "safe"})
    turn = middleware.transform_params({"messages": [], "tools": TOOLS, "tool_choice": "required"})
    for raw in (BARE, "Sure: " + BARE, "<f><a>1</a></f>", "", "no"):
        said = middleware.wrap_generate(turn, raw).result
        assert said == read_answer(raw, "morph_xml", TOOLS, {"coerce": "safe"}, "required")


def test_without_a_forced_choice_it_is_parse() -> None:
    for choice in ("auto", "none", None):
        assert read_answer(BARE, "hermes", TOOLS, {"coerce": "none"}, choice) == tp.parse(
            BARE, "hermes", TOOLS, {"coerce": "none"}
        )
    with pytest.raises(tp.errors.BadToolChoice):
        read_answer(BARE, "hermes", TOOLS, None, "perhaps")
