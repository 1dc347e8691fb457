"""The recorder as a callback of litellm, in an application of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.extensions.serve.recorded import recorded_trials
from tests.mock_openai import MockOpenAI
from toolparse_lab.extensions import serve

# In a process of its own: litellm's clients leave sockets to the garbage collector.
APPLICATION = """
import asyncio, json, sys, time
import litellm
from toolparse_lab.extensions.serve import Recorder

recorder = Recorder(*sys.argv[2:])
litellm.callbacks = [recorder]

def asked(text, **options):
    return {"model": "openai/m", "messages": [{"role": "user", "content": text}],
            "api_base": sys.argv[1], "api_key": "sk-planted-key-0123456789", "max_retries": 0,
            **options}

async def from_async_code():
    await litellm.acompletion(**asked("say=async"))
    async for _ in await litellm.acompletion(**asked("say=async stream", stream=True)):
        pass
    await asyncio.sleep(0.5)  # litellm reports from a task of its own

said = [litellm.completion(**asked("say=plain")).choices[0].message.content]
for _ in litellm.completion(**asked("say=in pieces", stream=True)):
    pass
try:
    litellm.completion(**asked("status=500"))
except litellm.exceptions.InternalServerError:
    said.append("failed")
asyncio.run(from_async_code())
deadline = time.monotonic() + 20
while recorder.recorded + recorder.dropped < 5 and time.monotonic() < deadline:
    time.sleep(0.05)
    recorder.flush()
recorder.close()
print(json.dumps([said, recorder.recorded, recorder.dropped]))
"""


def ran(mock: MockOpenAI, *words: str, **environment: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", APPLICATION, mock.url, *words],
        capture_output=True, text=True, check=False, timeout=120,
        env={**os.environ, **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_the_recorder_of_litellm(tmp_path: Path) -> None:
    store = tmp_path / "live.db"
    with MockOpenAI() as mock:
        said, recorded, _ = ran(mock, TOOLPARSE_STORE=str(store), TOOLPARSE_APP="bot")
    assert said == ["plain", "failed"]
    answers = [trial.completion for trial in recorded_trials(store, "bot") if trial.completion]
    texts = sorted(answer.raw for answer in answers if answer.ok and answer.raw)
    assert texts == ["async", "async stream", "in pieces", "plain"]
    (failed,) = [answer for answer in answers if not answer.ok]
    assert failed.error_kind == "server_error"
    assert {answer.fidelity for answer in answers} == {"sdk"}
    assert recorded == len(answers)
    assert "planted-key" not in store.read_bytes().decode("latin-1")


@pytest.mark.exhaustive
def test_what_the_recorder_cannot_do_does_not_reach_the_application(tmp_path: Path) -> None:
    with MockOpenAI() as mock:
        said, recorded, dropped = ran(mock, str(tmp_path / "no" / "such" / "folder" / "live.db"))
    assert (said, recorded) == (["plain", "failed"], 0)
    assert dropped >= 1


def test_the_recorder_of_litellm_s_proxy_has_a_dotted_path() -> None:
    assert isinstance(serve.recorder, serve.Recorder)
