"""The bridge in somebody else's program: its loggers and litellm's settings stay as they were."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork"),
]

ROOT = Path(__file__).parents[2]
HOST = """
import asyncio, logging, os, sys
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
import litellm
from tests.mock_openai import MockOpenAI

# One import for both: the host alone, and with the bridge as its guest.
guest = not os.fork()
if not guest and os.wait()[1]:
    sys.exit("the guest has failed")
out = os.open(sys.argv[1 + guest], os.O_WRONLY | os.O_CREAT)
os.dup2(out, 1)
os.dup2(out, 2)
logging.basicConfig(level=logging.WARNING, stream=sys.stdout, format="%(name)s %(levelname)s")
asyncio.set_event_loop(None)

def settings():
    loggers = ["LiteLLM", "LiteLLM Router", "LiteLLM Proxy"]
    levels = [(logging.getLogger(n).level, len(logging.getLogger(n).handlers)) for n in loggers]
    switches = ("suppress_debug_info", "set_verbose", "REPEATED_STREAMING_CHUNK_LIMIT",
                "drop_params", "modify_params", "callbacks", "success_callback")
    return levels, [getattr(litellm, name) for name in switches]

before = settings()
model, tools = "openai/m", None
if guest:
    from toolparse_lab.integrations import litellm_bridge
    litellm_bridge.register()
    model = "toolparse/hermes/openai/m"
    tools = [{"type": "function", "function": {"name": "now", "parameters": {}}}]
with MockOpenAI() as mock:
    for say in ("status=500 say=x", "say=Hello"):
        for stream in (False, True):
            try:
                answer = litellm.completion(
                    model=model, messages=[{"role": "user", "content": say}], api_key="k",
                    api_base=mock.url, max_retries=0, tools=tools, stream=stream,
                )
                print("answered", len(list(answer)) > 1 if stream else answer.choices[0].message.content)
            except Exception as e:
                print("failed", type(e).__name__)
assert settings() == before, (before, settings())
"""


@pytest.mark.exhaustive
def test_a_host_logs_and_prints_what_it_does_without_the_bridge(tmp_path: Path) -> None:
    files = [tmp_path / "alone", tmp_path / "guest"]
    done = subprocess.run(
        [sys.executable, "-c", HOST, *map(str, files)],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    alone, guest = (file.read_text("utf-8").splitlines() for file in files)
    assert done.returncode == 0, (alone, guest, done.stderr)
    assert [line for line in alone if "answered" in line or "failed" in line] == [
        "failed InternalServerError",
        "failed InternalServerError",
        "answered Hello",
        "answered True",
    ]
    assert guest == alone
