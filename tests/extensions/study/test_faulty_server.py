"""The server with planted faults is what it says: sound without its fault, and wrong with it."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args
from urllib.parse import urlsplit

import pytest

import toolparse_lab as tp
from tests.extensions.study.faulty_server import Fault, FaultyServer, Layer, failing_trial, planted

FAULTS = planted()
_IDS = [fault.id for fault in FAULTS]
_BROKEN = (OSError, http.client.HTTPException, ValueError, KeyError)


def post(url: str, path: str, body: dict[str, Any], timeout: float = 60.0) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=timeout)
    try:
        connection.request("POST", f"/v1{path}", json.dumps(body))
        reply = connection.getresponse()
        return reply.status, reply.read()
    finally:
        connection.close()


def chunks_of(raw: bytes) -> Iterator[dict[str, Any]]:
    *lines, last = [line[6:] for line in raw.decode().splitlines() if line.startswith("data: ")]
    if last != "[DONE]":
        raise ValueError("the stream has no end")
    for line in lines:
        yield json.loads(line)


def calls_of_stream(raw: bytes) -> list[dict[str, Any]]:
    """The calls of a stream, put together as clients do."""
    calls: dict[int, list[str]] = {}
    for chunk in chunks_of(raw):
        for choice in chunk["choices"]:
            for delta in choice["delta"].get("tool_calls") or []:
                call = calls.setdefault(delta["index"], ["", ""])
                call[0] += delta["function"].get("name") or ""
                call[1] += delta["function"].get("arguments") or ""
    return [{"name": name, "arguments": json.loads(text)} for name, text in calls.values()]


def calls_of_text(text: str) -> list[dict[str, Any]]:
    blocks = re.findall(r"<tool_call>(.*?)</tool_call>", text, re.S)
    return [json.loads(block) for block in blocks]


def native(url: str, fault: Fault, *, stream: bool, timeout: float = 60.0) -> list[dict[str, Any]]:
    """The calls of the fault's request. Raises where there is no good answer."""
    body: dict[str, Any] = {"model": "m", "messages": fault.messages, "tools": fault.tools}
    body.update(fault.settings, stream=stream)
    body.update(body.pop("extra_body", {}))
    if isinstance(choice := body.get("tool_choice"), dict):
        body["tool_choice"] = {"type": "function", "function": choice}
    status, raw = post(url, "/chat/completions", body, timeout)
    if status != 200:
        raise ValueError(f"{status} {raw!r}")
    if stream:
        return calls_of_stream(raw)
    message = json.loads(raw)["choices"][0]["message"]
    functions = [call["function"] for call in message.get("tool_calls") or []]
    return [{"name": f["name"], "arguments": json.loads(f["arguments"])} for f in functions]


def own_messages(fault: Fault) -> list[dict[str, Any]]:
    """The same question with the tools in the client's own prompt."""
    listed = json.dumps([tool["function"] for tool in fault.tools], ensure_ascii=False)
    about = (
        f"These are the tools:\n{listed}\nTo call one, write\n<tool_call>\n"
        '{"name": "TOOL_NAME", "arguments": {"PARAMETER": VALUE}}\n</tool_call>'
    )
    return [{"role": "system", "content": about}, *fault.messages]


def own_prompt(url: str, fault: Fault) -> list[dict[str, Any]]:
    body = {"model": "m", "messages": own_messages(fault), **fault.settings}
    status, raw = post(url, "/chat/completions", body)
    assert status == 200, raw
    return calls_of_text(json.loads(raw)["choices"][0]["message"]["content"])


@pytest.fixture(scope="module")
def server() -> Iterator[FaultyServer]:
    with FaultyServer() as running:
        yield running


def set_up(server: FaultyServer, fault: Fault) -> Fault:
    server.fault = fault
    return fault


def one_of(kind: str) -> Fault:
    """A fault of a kind, made to happen always, on a stack with logprobs."""
    found = next(fault for fault in FAULTS if fault.kind == kind)
    return replace(found, rate=1.0, logprobs=True)


def test_every_layer_has_its_faults_and_none_is_there_twice() -> None:
    assert len({fault.kind for fault in FAULTS}) == len(FAULTS)
    assert {fault.layer for fault in FAULTS} == set(get_args(Layer))
    assert {fault.rate for fault in FAULTS} == {1.0, 1 / 2}
    assert {fault.logprobs for fault in FAULTS} == {True, False, "refused"}
    assert all(fault.temperature > 0 for fault in FAULTS if fault.layer == "sampler")
    assert planted() == FAULTS
    assert planted(1) != FAULTS


@pytest.mark.parametrize("fault", FAULTS, ids=_IDS)
def test_without_the_fault_all_ways_of_asking_give_the_target(
    fault: Fault, server: FaultyServer
) -> None:
    sound = set_up(server, fault.mended())
    assert native(server.url, sound, stream=False) == fault.target
    assert native(server.url, sound, stream=True) == fault.target
    assert own_prompt(server.url, sound) == fault.target


@pytest.mark.parametrize("fault", FAULTS, ids=_IDS)
def test_with_the_fault_the_target_is_missed(fault: Fault, server: FaultyServer) -> None:
    wrong = set_up(server, replace(fault, rate=1.0))
    hangs = fault.kind.startswith("hangs")
    try:
        calls = native(server.url, wrong, stream=fault.stream, timeout=0.2 if hangs else 60.0)
    except _BROKEN:
        return
    assert calls != fault.target


def test_what_takes_a_fault_away_and_what_does_not(server: FaultyServer) -> None:
    for fault in FAULTS:
        always = set_up(server, replace(fault, rate=1.0))
        if fault.layer == "server":
            assert own_prompt(server.url, always) == fault.target, fault.id
        if fault.kind.startswith("stream_"):
            assert native(server.url, always, stream=False) == fault.target, fault.id
        if fault.layer == "client":
            roomy = replace(always, max_tokens=4096, params={})
            assert native(server.url, roomy, stream=fault.stream) == fault.target, fault.id
        cold = replace(always, temperature=0.0)
        if fault.layer == "sampler":
            assert native(server.url, cold, stream=fault.stream) == fault.target, fault.id
            assert own_prompt(server.url, cold) == fault.target, fault.id
        if fault.layer == "model":
            with contextlib.suppress(*_BROKEN):
                assert own_prompt(server.url, cold) != fault.target, fault.id


@pytest.mark.parametrize("stream", [False, True])
def test_logprobs_spell_what_the_model_wrote(stream: bool, server: FaultyServer) -> None:
    fault = set_up(server, one_of("drops_call"))
    body: dict[str, Any] = {"model": "m", "messages": fault.messages, "tools": fault.tools}
    body.update(logprobs=True, top_logprobs=2, stream=stream)
    raw = post(server.url, "/chat/completions", body)[1]
    if stream:
        choices = [choice for chunk in chunks_of(raw) for choice in chunk["choices"]]
    else:
        choices = json.loads(raw)["choices"]
    entries = [e for choice in choices for e in (choice.get("logprobs") or {}).get("content", [])]
    assert calls_of_text("".join(entry["token"] for entry in entries)) == fault.target
    assert calls_of_text(b"".join(bytes(entry["bytes"]) for entry in entries).decode())


def test_a_rate_is_the_share_of_requests() -> None:
    fault = replace(one_of("drops_call"), rate=1 / 3)
    with FaultyServer(fault) as server:
        right = sum(native(server.url, fault, stream=False) == fault.target for _ in range(120))
        assert (len(server.asked), server.corrupted) == (120, 120 - right)
        assert 20 <= server.corrupted <= 60


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [("drops_call", ""), ("cut_midway", "provider_error"), ("max_tokens", ""), ("loops", "")],
)
def test_a_failing_trial_is_one_that_failed(kind: str, outcome: str, tmp_path: Path) -> None:
    fault = replace(one_of(kind), rate=1 / 2)
    with FaultyServer(fault) as server, tp.Lab(str(tmp_path / "runs.db")) as lab:
        trial = failing_trial(lab, fault, server)
        assert trial.failed
        assert trial.outcome == outcome or not outcome
