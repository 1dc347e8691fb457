"""The config for the LiteLLM proxy that docs/extensions/serve.md shows, in the real proxy."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest

from tests.bridge import NOW, OSLO, TOOLS, joined
from tests.mock_openai import MockOpenAI, unseen
from tests.waiting import wait_until

ROOT = Path(__file__).parents[3]
PROXY = ROOT / ".venv-proxy" / "bin" / "litellm"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PROXY.exists(), reason="make proxy sets the environment up"),
]


@pytest.fixture(scope="module")
def client(mock: MockOpenAI, tmp_path_factory: pytest.TempPathFactory) -> Iterator[openai.OpenAI]:
    folder = tmp_path_factory.mktemp("proxy")
    page = (
        (ROOT / "docs" / "extensions" / "serve.md")
        .read_text("utf-8")
        .partition("### The LiteLLM proxy")[2]
    )
    config = re.findall(r"```yaml\n(.*?)```", page, re.S)[0]
    (folder / "config.yaml").write_text(config, "utf-8")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    key = f"sk-{secrets.token_urlsafe(24)}"
    env = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "UPSTREAM_URL": mock.url,
        "UPSTREAM_KEY": "planted-upstream-0123456789",
        "LITELLM_MASTER_KEY": key,
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }
    with (folder / "log").open("wb") as log:
        running = subprocess.Popen(
            [PROXY, "--config", folder / "config.yaml", "--host", "127.0.0.1", "--port", str(port)],
            cwd=folder,
            env=env,
            stdout=log,
            stderr=subprocess.STDOUT,
            text=True,
        )

        def is_up() -> bool:
            with contextlib.suppress(OSError):
                url = f"http://127.0.0.1:{port}/health/liveliness"
                return bool(urllib.request.urlopen(url, timeout=5).status == 200)
            return False

        try:
            wait_until(is_up, running)
            with openai.OpenAI(
                base_url=f"http://127.0.0.1:{port}/v1", api_key=key, max_retries=0
            ) as asking:
                yield asking
        finally:
            running.kill()
            running.wait()
    assert "planted-upstream" not in (folder / "log").read_text("utf-8", "replace")


FUNCTIONS: list[Any] = [tool["function"] for tool in TOOLS]


def ask(client: openai.OpenAI, text: str, **more: Any) -> Any:
    asked = {"model": "my-model", "messages": [{"role": "user", "content": unseen(text)}], **more}
    answer = client.chat.completions.create(**asked)
    return list(answer) if more.get("stream") else answer


def test_calls_come_back_whole(client: openai.OpenAI, mock: MockOpenAI) -> None:
    answer = ask(client, f"say=Well. {OSLO}{NOW}", tools=TOOLS)
    (choice,) = answer.choices
    calls = [(c.function.name, c.function.arguments) for c in choice.message.tool_calls]
    assert calls == [("get_weather", '{"city":"Oslo","days":2}'), ("now", "{}")]
    assert choice.finish_reason == "tool_calls"
    assert "tools" not in mock.bodies[-1]
    assert mock.headers[-1]["authorization"] == "Bearer planted-upstream-0123456789"


def test_calls_come_back_in_a_stream(client: openai.OpenAI) -> None:
    said = joined(ask(client, f"say=Well. {OSLO}", tools=TOOLS, stream=True))
    assert said["calls"][0][1:] == ("get_weather", '{"city":"Oslo","days":2}')
    assert (said["content"].strip(), said["reasons"]) == ("Well.", ["tool_calls"])


def test_text_passes(client: openai.OpenAI) -> None:
    assert ask(client, "say=Just talk.").choices[0].message.content == "Just talk."
    assert joined(ask(client, "say=Just talk.", stream=True))["content"] == "Just talk."


def test_the_responses_api(client: openai.OpenAI) -> None:
    tools: Any = [{"type": "function", **dict(function)} for function in FUNCTIONS]
    answer = client.responses.create(
        model="my-model", input=unseen(f"say=Well. {OSLO}"), tools=tools
    )
    calls = [item for item in answer.output if item.type == "function_call"]
    assert [(c.name, c.arguments) for c in calls] == [("get_weather", '{"city":"Oslo","days":2}')]


def test_failures_keep_their_status(client: openai.OpenAI) -> None:
    for status in (400, 429):
        with pytest.raises(openai.APIStatusError) as failure:
            ask(client, f"status={status} say=x", tools=TOOLS)
        assert failure.value.status_code == status
