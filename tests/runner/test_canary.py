"""Canaries: what endpoints do to raw text and to tools is found out, and a model that cannot copy
is no failure."""

from __future__ import annotations

import json
import re
from html import escape
from pathlib import Path
from typing import Any

import pytest

import toolparse_lab as tp
from tests.mock_openai import MockOpenAI, failure
from tests.replay_server import Answer, Asked, event_answer, json_answer
from tests.tables import asked_of
from toolparse_lab.entry.foreign.protocol import AnyProtocol, any_protocol
from toolparse_lab.experiments.endpoint_check import canary_for, judge
from toolparse_lab.formats.registry import family_heads
from toolparse_lab.runner.exchange.types import Completion
from toolparse_lab.runner.litellm_door import litellm_module

MODEL = tp.Model("openai/mock", api_key="sk-not-a-real-key")
TEXT = [p for p in family_heads() if p != "openai_json"]
CALL = {
    "id": "c",
    "type": "function",
    "function": {"name": "record_word", "arguments": '{"word": "heron"}'},
}


def told(protocol: str) -> AnyProtocol | None:
    return None if protocol == "native" else any_protocol(protocol)


def copied(protocol: str) -> str:
    """What a model that copies answers."""
    said = canary_for("m", MODEL, told(protocol)).messages[0]["content"]
    return str(said.split("\n-----\n")[1].removesuffix("\n-----"))


def answer(raw: str = "", protocol: str = "hermes", **more: Any) -> Any:
    return judge("m", told(protocol), Completion("k", raw, **more))


def stripped(text: str) -> str:
    return re.sub(r"</?tool_call>|<\|[^|]+\|>|`{3}\w*", "", text)


@pytest.mark.parametrize("protocol", [*TEXT, "openai_json"])
def test_a_faithful_copy_is_ok(protocol: str) -> None:
    text = copied(protocol)
    assert answer(text, protocol).verdict == "ok"
    assert answer(f"Sure!\n{text}\n", protocol).verdict == "ok"
    assert answer(text.replace("<copy>\n", ""), protocol).verdict == "ok"


@pytest.mark.parametrize(
    "protocol", ["hermes", "gemma", "kimi_k2", "harmony_channel", "qwen3_coder_xml"]
)
def test_a_copy_without_its_delimiters_is_a_failure_of_the_endpoint(protocol: str) -> None:
    cell = answer(stripped(copied(protocol)), protocol)
    assert cell.verdict == "failed"
    assert "stripped" in cell.why


@asked_of("protocol", [*TEXT, "openai_json", "native"])
@pytest.mark.parametrize(
    "said", ["heron", "I cannot copy that.", "{", '{"word": "heron"}', "<copy>\n</copy>", "```\n"]
)
def test_a_model_that_cannot_copy_is_uncertain(protocol: str, said: str) -> None:
    raw = json.dumps({"content": said, "tool_calls": []}) if protocol == "native" else said
    assert answer(raw, protocol).verdict == "uncertain"


def test_half_a_copy_without_delimiters_is_uncertain() -> None:
    assert answer(stripped(copied("hermes")).replace("<copy>", "")).verdict == "uncertain"


FAILED: dict[str, tuple[Any, str]] = {
    "escaped": (answer(escape(copied("hermes"), quote=False)), "HTML"),
    "read by the endpoint": (
        answer('{"content":null,"tool_calls":[]}', endpoint_kind="native_tools"),
        "tool-call parser off",
    ),
    "in the reasoning": (answer("", reasoning=copied("hermes")), "reasoning"),
    "swallowed": (answer("", completion_tokens=30), "30 tokens"),
    "refused": (
        answer("", status="error", error_kind="bad_request", error_message="no"),
        "bad_request: no",
    ),
}


@pytest.mark.parametrize("name", FAILED)
def test_failures_of_endpoints(name: str) -> None:
    cell, why = FAILED[name]
    assert cell.verdict == "failed"
    assert why in cell.why


@pytest.mark.parametrize("kind", ["timeout", "rate_limited", "connection", "server_error"])
def test_what_may_pass_is_uncertain(kind: str) -> None:
    assert answer("", status="error", error_kind=kind, error_message="x").verdict == "uncertain"
    assert judge("m", None, None).verdict == "uncertain"


def native(content: Any = None, calls: Any = (CALL,), **response: Any) -> Any:
    raw = json.dumps({"content": content, "tool_calls": list(calls)})
    return answer(raw, "native", endpoint_kind="native_tools", response=response or None)


TOOL = canary_for("m", MODEL, None).tools[0]
HERMES = '<tool_call>{"name": "record_word", "arguments": {"word": "heron"}}</tool_call>'
NATIVE: dict[str, tuple[Any, str, str, bool | None]] = {
    "sent as asked": (native(sent={"model": "m"}), "ok", "offered and called", True),
    "sent in another shape": (
        native(sent={"tools": None, "toolConfig": {"tools": [{"toolSpec": TOOL["function"]}]}}),
        "ok", "offered and called", True,
    ),
    "not sent": (native(sent={"tools": None}), "failed", "offers no tool", False),
    "told in the prompt": (
        native(sent={"tools": None, "messages": [{"content": json.dumps(TOOL)}]}), "failed",
        "into the prompt", False,
    ),
    "a switch of litellm": (
        native(sent={}, litellm={"add_function_to_prompt": True}), "failed",
        "add_function_to_prompt", True,
    ),
    "not known": (native(), "uncertain", "not known", None),
    "not called": (native("no", (), sent={}), "uncertain", "did not call", True),
    "called in the text": (native(HERMES, (), sent={}), "failed", "as hermes", True),
}  # fmt: skip


@pytest.mark.parametrize("name", NATIVE)
def test_what_a_native_canary_proves(name: str) -> None:
    cell, verdict, why, sent = NATIVE[name]
    assert (cell.verdict, cell.tools_sent) == (verdict, sent)
    assert why in cell.why


OLLAMA: dict[str, Any] = {
    "model": "m", "created_at": "2024-01-01T00:00:00Z", "response": "hello", "done": True,
    "done_reason": "stop", "message": {"role": "assistant", "content": "hello"},
    "prompt_eval_count": 1, "eval_count": 2,
}  # fmt: skip


class Server(MockOpenAI):
    """An endpoint that copies, calls its tools, and strips special tokens where it is told to."""

    strip = False
    call = True

    def chat(self, request: Asked, body: dict[str, Any]) -> Answer:
        if "/api/" in request.path:
            return json_answer(OLLAMA)
        asked = str(body["messages"][-1]["content"])
        copy: Any = asked.split("\n-----\n")[-1].removesuffix("\n-----")
        message: dict[str, Any] = {"role": "assistant", "content": copy}
        if self.strip:
            message["content"] = stripped(message["content"])
        if self.call and "tools" in body:
            message.update(content=None, tool_calls=[CALL])
        if body.get("stream"):
            message["tool_calls"] = [{"index": 0, **c} for c in message.get("tool_calls", ())]
            chunks: list[dict[str, Any]] = [
                {"delta": message},
                {"delta": {}, "finish_reason": "stop"},
            ]
            about = {"id": "x", "object": "chat.completion.chunk", "model": "m"}
            events = [{**about, "choices": [{"index": 0, **c}]} for c in chunks]
            return event_answer([*events, "[DONE]"])
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        about = {"id": "x", "object": "chat.completion", "model": "m"}
        return json_answer({**about, "choices": [choice]})


def models(server: MockOpenAI, **more: Any) -> dict[str, tp.Model]:
    return {"m": tp.Model("openai/mock", api_base=server.url, api_key="sk-not-a-real-key", **more)}


CASES = [{"id": "a", "input": "hi", "tools": [{"name": "record_word"}], "target": []}]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.exhaustive(2, 1)
def test_a_check_over_http(tmp_path: Path, stream: bool) -> None:
    with Server() as server, tp.Lab(tmp_path / "a.db") as lab:
        check = lab.check(models(server), ["native", "hermes", "kimi_k2"], stream=stream)
        assert [(c.protocol, c.verdict) for c in check] == [
            ("native", "ok"),
            ("hermes", "ok"),
            ("kimi_k2", "ok"),
        ]
        assert check.ok
        assert check["m", "native"].tools_sent
        server.strip = True
        again = lab.check(models(server), ["hermes", "native"], stream=stream)
        assert [c.verdict for c in again] == ["failed", "ok"]
        assert [c.protocol for c in again.failed] == ["hermes"]
        assert lab.runs() == []  # a check is no run
        frame = again.frame()
        assert list(frame["verdict"]) == ["failed", "ok"]
        assert list(frame["tools_sent"].isna()) == [True, False]
        assert "sk-not" not in frame.to_json()


def test_it_shows_itself_and_escapes_what_a_model_wrote(tmp_path: Path) -> None:
    with Server() as server, tp.Lab(tmp_path / "a.db") as lab:
        check = lab.check(models(server), "hermes")
    assert "hermes  ok" in str(check)
    shown = check._repr_mimebundle_()
    assert "<tool_call>" not in shown["text/html"]
    assert "&lt;tool_call&gt;" in shown["text/html"]
    assert shown["text/plain"] == str(check)


def test_a_failed_native_arm_is_refused(tmp_path: Path) -> None:
    with Server() as server, tp.Lab(tmp_path / "a.db") as lab:
        server.call = False
        bad = models(server)
        plan = lab.plan(CASES, bad, ["native"], max_tokens=5)
        lab.run(plan, progress=False)  # nobody has checked
        refusal = failure(400, "no tools here")
        server.chat = lambda request, body: refusal  # type: ignore[method-assign]
        assert lab.check(bad, "native").failed
    with tp.Lab(tmp_path / "a.db") as lab:  # another day
        with pytest.raises(tp.errors.BadPlan, match="'m' failed its canary") as caught:
            lab.run(plan, progress=False)
        assert "no tools here" in str(caught.value)
        assert "despite_check" in str(caught.value)
        assert lab.run(plan, progress=False, despite_check=True).trials()[0].completion is not None
        assert lab.plan(CASES, bad, "hermes").calls == 1
    with Server() as server, tp.Lab(tmp_path / "b.db") as lab:
        good = models(server)
        assert lab.check(good, "native").ok
        lab.run(lab.plan(CASES, good, ["native"]), progress=False)


def test_a_switch_of_litellm_is_refused_before_anything_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Server() as server, tp.Lab(tmp_path / "a.db") as lab:
        monkeypatch.setattr(litellm_module(), "add_function_to_prompt", True)
        plan = lab.plan(CASES, models(server), ["native", "hermes"])
        with pytest.raises(tp.errors.BadPlan, match="add_function_to_prompt"):
            lab.run(plan, progress=False)
        assert server.calls == 0
        assert lab.check(models(server), "native").failed
        lab.run(lab.plan(CASES, models(server), "hermes"), progress=False)


def test_a_provider_that_litellm_gives_a_prompt_instead_spoils_no_other(tmp_path: Path) -> None:
    """litellm's `ollama` provider writes tools into the prompt, and sets that for all providers of
    the process."""
    with Server() as server, tp.Lab(tmp_path / "a.db") as lab:
        named = {
            "o": tp.Model("ollama/m", api_base=server.url.removesuffix("/v1")),
            **models(server),
        }
        check = lab.check(named, "native")
        assert [(c.model, c.verdict) for c in check] == [("o", "failed"), ("m", "ok")]
        assert "into the prompt" in check["o", "native"].why
        assert check["o", "native"].tools_sent is False
        assert not litellm_module().add_function_to_prompt
        lab.run(lab.plan(CASES, models(server), "native"), progress=False)
        with pytest.raises(tp.errors.BadPlan, match="'o' failed"):
            lab.run(lab.plan(CASES, named, "native"), progress=False)


def test_a_raw_completion_endpoint_takes_no_tools() -> None:
    cell = answer(
        "", "native", endpoint_kind="raw_completion", status="error", error_kind="server_error"
    )
    assert cell.verdict == "failed"


def test_the_model_s_own_parameters_go_first() -> None:
    assert canary_for("m", MODEL, None).params == {"temperature": 0, "max_tokens": 1024}
    model = tp.Model("openai/mock", params={"temperature": 1, "max_completion_tokens": 9})
    # Its own limit of tokens counts, under whichever name.
    assert canary_for("m", model, None).params == {}


def test_what_cannot_be_checked() -> None:
    with pytest.raises(tp.errors.UnknownProtocol):
        tp.Lab(":memory:").check(MODEL, ["nope"])
    with pytest.raises(tp.errors.BadPlan):
        tp.Lab(":memory:").check(MODEL, [])
