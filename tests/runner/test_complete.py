import asyncio
import gc
import json
import socket
import subprocess
import sys
from typing import Any, TypeVar

import pytest

from tests.mock_openai import MockOpenAI
from tests.tables import each_case
from tests.tools import function_named
from toolparse_lab.core.errors import UnknownName
from toolparse_lab.runner.complete import check_model, complete, token_cost
from toolparse_lab.runner.exchange.types import ERROR_KINDS, Completion, Model, Request
from toolparse_lab.runner.failures import error_kind, error_message, retry_after
from toolparse_lab.runner.litellm_door import close_clients, litellm_module
from toolparse_lab.runner.loop import run_sync

T = TypeVar("T")
KEY = "planted-key-0123456789"
TOOL = function_named("get_weather", city="string")
PROVIDERS = (
    "openai",
    "hosted_vllm",
    "openrouter",
)  # three ways through litellm: SDK, own client, its wrapper


def ask(mock: MockOpenAI, text: str, *, provider: str = "openai", **changes: Any) -> Completion:
    model = Model(
        f"{provider}/m",
        api_base=mock.url,
        api_key=KEY,
        timeout=changes.pop("timeout", 10),
        price=(1, 2),
    )
    messages = ({"role": "user", "content": text},)
    return run_sync(complete(Request(model, "m", messages, changes.pop("params", {}), **changes)))


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("provider", PROVIDERS)
@each_case
@pytest.mark.exhaustive(5)
def test_raw_is_what_the_model_wrote(
    mock: MockOpenAI, text: str, provider: str, stream: bool
) -> None:
    # The mock is asked by ASCII words, as a client that encodes strictly could not send some of
    # these.
    c = ask(mock, "escaped say=" + json.dumps(text), provider=provider, stream=stream)
    assert c.raw == text
    assert (c.status, c.finish_reason, c.cut, c.endpoint_kind) == ("ok", "stop", False, "chat_text")
    assert (c.prompt_tokens, c.completion_tokens, c.cost) == (10, 5, (10 * 1 + 5 * 2) / 1e6)
    assert c.latency is not None
    assert c.latency > 0
    assert "".join(x.text for x in c.chunks).encode("utf-16", "surrogatepass").decode(
        "utf-16", "surrogatepass"
    ) == (text if stream else "")


@pytest.mark.parametrize("provider", PROVIDERS)
def test_chunks_are_kept_as_they_came(mock: MockOpenAI, provider: str) -> None:
    # litellm imports more of itself at a process's first stream, while the chunks pile up.
    ask(mock, "say=x", provider=provider, stream=True)
    c = ask(mock, "gap=0.15 size=3 say=abcdefgh", provider=provider, stream=True)
    assert [x.text for x in c.chunks] == ["abc", "def", "gh"]
    times = [x.at for x in c.chunks]
    assert times == sorted(times)
    assert times[2] - times[0] > 0.1
    assert c.ttft == times[0]
    assert c.latency is not None
    assert c.latency >= times[2]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    "arguments", ['{"city":"Paris"}', '{"city": "Par', "", "{}{}", '{"a": 3.0}']
)
@pytest.mark.exhaustive(7)
def test_native_calls_are_canonical_json_broken_arguments_included(
    mock: MockOpenAI, arguments: str, provider: str, stream: bool
) -> None:
    # Nothing to stream gives no call at all, so an empty argument string is only asked for whole.
    stream = stream and bool(arguments)
    text = f"tool say={arguments}" if arguments else "tool escaped say=" + json.dumps("")
    c = ask(mock, text, provider=provider, stream=stream, tools=(TOOL,))
    call = {
        "id": "call_0",
        "type": "function",
        "function": {"name": "get_weather", "arguments": arguments},
    }
    assert c.raw == json.dumps({"content": None, "tool_calls": [call]}, separators=(",", ":"))
    assert (c.status, c.endpoint_kind, c.finish_reason) == ("ok", "native_tools", "tool_calls")
    assert mock.bodies[-1]["tools"] == [TOOL]


def test_a_native_answer_without_a_call_says_so(mock: MockOpenAI) -> None:
    assert ask(mock, "say=no", tools=(TOOL,)).raw == '{"content":"no","tool_calls":[]}'


def test_parallel_native_calls_are_all_kept_in_order(mock: MockOpenAI) -> None:
    c = ask(mock, 'tool say={"city":"A"}|{"city":"B"}', tools=(TOOL,))
    assert [x["function"]["arguments"] for x in json.loads(c.raw)["tool_calls"]] == [
        '{"city":"A"}',
        '{"city":"B"}',
    ]


def test_every_parameter_reaches_the_server_and_the_record(mock: MockOpenAI) -> None:
    model = Model(
        "openai/m",
        api_base=mock.url,
        api_key=KEY,
        params={"temperature": 0.5, "top_p": 0.9},
        extra_body={"top_k": 3},
        headers={"x-team": "red"},
    )
    params = {
        "temperature": 0,
        "seed": 7,
        "max_tokens": 9,
        "stop": ["z"],
        "grammar": 'root ::= "a"',
    }
    c = run_sync(complete(Request(model, "m", ({"role": "user", "content": "say=x"},), params)))
    body = mock.bodies[-1]
    for name, value in {**params, "top_p": 0.9, "top_k": 3}.items():
        assert body[name] == value
    assert mock.headers[-1]["x-team"] == "red"
    assert c.response is not None
    sent = c.response["sent"]
    assert (sent["seed"], sent["grammar"], sent["top_k"]) == (7, params["grammar"], 3)
    assert "messages" not in sent  # as asked, so not written twice
    assert c.system_fingerprint == "mock_fp"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("provider", PROVIDERS)
@each_case
@pytest.mark.exhaustive(5)
def test_failures_have_a_class_and_no_key_in_them(
    mock: MockOpenAI, kind: str, text: str, provider: str, stream: bool
) -> None:
    asked = len(mock.bodies)
    c = ask(mock, f"{text} say=x", provider=provider, stream=stream)
    assert (c.status, c.error_kind, c.raw) == ("error", kind, "")
    assert c.error_kind in ERROR_KINDS
    assert c.error_message
    assert KEY not in c.to_json()
    assert c.retry_after == (0.25 if kind == "rate_limited" else None)
    assert len(mock.bodies) == asked + 1  # retries belong to the pool


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_cut_stream_is_never_finished(mock: MockOpenAI, provider: str) -> None:
    c = ask(mock, "cut=2 say=abcdefghijkl", provider=provider, stream=True)
    assert (c.status, c.error_kind, c.cut, c.finish_reason, c.raw) == (
        "error", "cut_stream", True, None, "abcdefgh",
    )  # fmt: skip


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_stream_that_ends_at_the_token_limit_is_finished_but_not_stopped(
    mock: MockOpenAI, provider: str
) -> None:
    c = ask(mock, "length say=abc", provider=provider, stream=True)
    assert (c.status, c.cut, c.finish_reason) == ("ok", False, "length")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_server_that_never_answers_is_a_timeout(mock: MockOpenAI, stream: bool) -> None:
    c = ask(mock, "hang", stream=stream, timeout=0.4)
    assert (c.status, c.error_kind, c.cut) == ("error", "timeout", False)
    assert c.latency is not None
    assert 0.3 < c.latency < 3


def test_the_timeout_is_of_the_whole_answer_not_of_each_chunk(mock: MockOpenAI) -> None:
    c = ask(mock, "gap=0.2 size=1 say=abcdefghijkl", stream=True, timeout=0.7)
    assert (c.status, c.error_kind, c.cut) == ("error", "timeout", True)
    assert c.raw
    assert "abcdefghijkl".startswith(c.raw)


def test_a_server_that_is_not_there_is_a_connection_failure() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    for provider in PROVIDERS:
        model = Model(
            f"{provider}/m", api_base=f"http://127.0.0.1:{port}/v1", api_key=KEY, timeout=5
        )
        c = run_sync(complete(Request(model, "m", ({"role": "user", "content": "x"},))))
        assert (c.status, c.error_kind) == ("error", "connection")


def test_a_message_that_cannot_be_sent_is_a_bad_request(mock: MockOpenAI) -> None:
    assert ask(mock, "say=\ud800").error_kind == "bad_request"


def test_a_model_nobody_can_route_is_refused_before_any_call() -> None:
    with pytest.raises(UnknownName, match="litellm model string"):
        check_model(Model("no-such-model-anywhere"))
    with pytest.raises(UnknownName, match="smollm2-135m"):
        check_model(Model("toolparse-local/other"))


def test_an_unlisted_model_has_no_price_rather_than_none_to_pay() -> None:
    assert token_cost(Model("hosted_vllm/Qwen3-8B"), 10, 10) is None
    assert token_cost(Model("hosted_vllm/Qwen3-8B", price=(0, 0)), 10, 10) == 0
    assert token_cost(Model("hosted_vllm/Qwen3-8B", price=(1, 2)), 1_000_000, 500_000) == 2
    assert token_cost(Model("toolparse-local/smollm2-135m"), 10, 10) == 0
    assert token_cost(Model("openai/gpt-4o-mini"), None, 10) is None
    listed = token_cost(Model("openai/gpt-4o-mini"), 1000, 1000)
    assert listed is not None
    assert listed > 0


def test_cancelling_closes_the_call(mock: MockOpenAI) -> None:
    async def cancelled() -> None:
        model = Model("openai/m", api_base=mock.url, api_key=KEY)
        request = Request(model, "m", ({"role": "user", "content": "slow=5 say=x"},), stream=True)
        task = asyncio.create_task(complete(request))
        await asyncio.sleep(0.3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run_sync(cancelled())


def raised(cause: Exception, message: str, status: int | None = None) -> Exception:
    e = Odd(message, status_code=status)
    e.__cause__ = cause
    return e


class Odd(Exception):
    def __init__(self, message: str, **members: object) -> None:
        super().__init__(message)
        for name, value in members.items():
            setattr(self, name, value)


@pytest.mark.parametrize(
    ("e", "kind"),
    [
        (TimeoutError(), "timeout"),
        (ConnectionResetError("reset"), "connection"),
        (Odd("boom"), "other"),
        (Odd("boom", status_code=503), "server_error"),
        (Odd("in a stream", body={"code": 429}), "rate_limited"),
        (Odd("in a stream", code="400"), "bad_request"),
        (Odd("peer closed connection without sending complete message body"), "connection"),
        (Odd("too long", status_code=413), "context_overflow"),
        (raised(ModuleNotFoundError("No module named 'x'", name="x"), "No module named 'x'"),
         "setup"),
        (raised(ModuleNotFoundError("No module named 'x'", name="x"), "out of order", 503),
         "server_error"),
    ],
)  # fmt: skip
def test_any_exception_has_a_class(e: Exception, kind: str) -> None:
    assert error_kind(e) == kind


@each_case
def test_how_long_a_provider_asks_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(Odd("x", headers=headers), now=10) == seconds


@pytest.mark.parametrize("words", ["No module named 'google'", "please pip install z"])
def test_what_a_missing_package_needs_is_said_once(words: str) -> None:
    missing = ModuleNotFoundError("No module named 'google'", name="google")
    text = error_message(raised(missing, words, 500))
    assert text.removeprefix(words) in ("", ": pip install google-cloud-aiplatform")
    assert text.count("pip install") == 1


def test_an_error_message_is_one_short_line() -> None:
    text = error_message(Odd("litellm.BadRequestError: litellm.X: a\n  b\n" + "c" * 1000))
    assert text.startswith("a b c")
    assert len(text) <= 500
    assert error_message(Odd("")) == "Odd"


def test_the_error_of_a_broken_stream_says_its_message_once() -> None:
    litellm_module()
    from litellm.exceptions import APIConnectionError, MidStreamFallbackError

    cut = APIConnectionError("OpenAIException - payload is not completed", "openai", "m")
    broken = MidStreamFallbackError(str(cut), "m", "openai", original_exception=cut)
    assert str(broken).count("payload") == 2
    assert error_message(broken) == "OpenAIException - payload is not completed"


def test_the_types_and_the_pool_load_without_litellm() -> None:
    code = """
import sys
import toolparse_lab.runner.exchange.types, toolparse_lab.runner.pool, toolparse_lab.runner.store.recording
heavy = {"litellm", "sqlalchemy", "tqdm", "xllamacpp", "pandas"} & set(sys.modules)
assert not heavy, heavy
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("provider", PROVIDERS)
def test_one_event_loop_after_another_can_ask(mock: MockOpenAI, provider: str) -> None:
    async def go() -> list[str]:
        model = Model(f"{provider}/m", api_base=mock.url, api_key=KEY, timeout=5)
        asked = [
            Request(model, "m", ({"role": "user", "content": "say=x"},), {}, (), s)
            for s in (False, True)
        ]
        raws = [(await complete(r)).raw for r in asked]
        await close_clients()
        return raws

    for _ in range(3):
        assert asyncio.run(go()) == ["x", "x"]
    assert ask(mock, "say=x", provider=provider).raw == "x"


def test_asking_from_two_loops_in_turn_leaves_no_complaint(
    mock: MockOpenAI, caplog: pytest.LogCaptureFixture
) -> None:
    async def go(inner: bool) -> None:
        model = Model("openai/m", api_base=mock.url, api_key=KEY, timeout=5)
        request = Request(model, "m", ({"role": "user", "content": "say=x"},))
        for _ in range(2):
            assert (await complete(request)).raw == "x"
            if inner:
                assert run_sync(complete(request)).raw == "x"
        await close_clients()

    asyncio.run(go(inner=True))
    gc.collect()
    assert [r.getMessage() for r in caplog.records if "destroyed" in r.getMessage()] == []
