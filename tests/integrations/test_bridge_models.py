"""What litellm knows of model strings of the bridge: that they call tools, and what they cost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from toolparse_lab.core.errors import BadOptions, UnknownProtocol
from toolparse_lab.integrations import litellm_bridge
from toolparse_lab.runner.litellm_door import litellm_module

ROOT = Path(__file__).parents[2]
# A process of its own, because litellm never forgets a model that it was told of.
SCRIPT = """
import asyncio, json, logging, os, sys
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
asyncio.set_event_loop(None)
import litellm
from tests.mock_openai import MockOpenAI
from toolparse_lab.integrations import litellm_bridge

switches = ("suppress_debug_info", "set_verbose", "drop_params", "modify_params", "callbacks",
            "success_callback", "num_retries", "REPEATED_STREAMING_CHUNK_LIMIT")
def settings():
    return [getattr(litellm, name) for name in switches]

logged = []
class Kept(logging.Handler):
    def emit(self, record):
        logged.append(record.getMessage())
logging.getLogger("LiteLLM").addHandler(Kept())

def cost(answer, **named):
    try:
        return litellm.completion_cost(answer, **named)
    except Exception as e:
        return type(e).__name__

before, listed = settings(), {k: dict(v) for k, v in litellm.model_cost.items()}
below = ["openai/gpt-4o", "gpt-4", "openai/unlisted", "vertex_ai/gemini-2.0-flash",
         "anthropic/gpt-4.1"]
names = ["toolparse/hermes/" + name for name in below]
litellm_bridge.register(models=names + ["toolparse/morph_xml;choice=prompt/openai/gpt-4o"])
litellm_bridge.register(models=names[:1])
said = {"supports": {n: litellm.supports_function_calling(n) for n in names},
        "split": litellm.supports_function_calling("hermes/openai/gpt-4o", "toolparse"),
        "untold": litellm.supports_function_calling("toolparse/hermes/openai/other"),
        "same settings": settings() == before,
        "same list": all(litellm.model_cost[k] == v for k, v in listed.items()),
        "new": sorted(set(litellm.model_cost) - set(listed)),
        "prices": {n: litellm.model_cost[n].get("input_cost_per_token") for n in names},
        "costs": {}}
with MockOpenAI() as mock:
    for model in ("openai/gpt-4o", "openai/gpt-4", "toolparse/hermes/openai/gpt-4o",
                  "toolparse/hermes/gpt-4"):
        asked = dict(model=model, messages=[{"role": "user", "content": "Hello"}],
                     api_base=mock.url, api_key="k", max_retries=0)
        whole = litellm.completion(**asked)
        chunks = list(litellm.completion(
            stream=True, stream_options={"include_usage": True}, **asked))
        stream = litellm.stream_chunk_builder(chunks)
        said["costs"][model] = [cost(whole), cost(whole, model=model), cost(stream),
                                cost(stream, model=model)]
# Another model of that name, with another price: the name alone says nothing any more.
litellm.model_cost["azure/gpt-4o"] = {**litellm.model_cost["gpt-4o"],
                                      "litellm_provider": "azure", "input_cost_per_token": 9.0}
litellm_bridge.register(models=["toolparse/hermes/azure/gpt-4o"])
said["ambiguous"] = "toolparse/gpt-4o" in litellm.model_cost
said["logged"] = [line for line in logged if "register_model" in line]
print(json.dumps(said))
"""


def said_by(python: Path | str) -> dict[str, Any]:
    """What the script says with that interpreter's litellm."""
    done = subprocess.run(
        [python, "-c", SCRIPT],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return said


def check(said: dict[str, Any]) -> None:
    """Hold what the script said to what must be true with any litellm."""
    names = list(said["supports"])
    assert all(said["supports"].values())
    assert said["split"]
    assert not said["untold"]
    assert said["same settings"]
    assert said["same list"]
    short = {"toolparse/gpt-4", "toolparse/gpt-4o", "toolparse/gemini-2.0-flash"}
    long = "toolparse/morph_xml;choice=prompt/openai/gpt-4o"
    assert set(said["new"]) - {long} - short == set(names)
    assert short <= set(said["new"])
    priced = [said["prices"][name] is not None for name in names]
    # A model of the same name at another provider has other prices.
    assert priced == [True, True, False, True, False]
    assert said["logged"] == []
    assert not said["ambiguous"]
    costs = said["costs"]
    for model in ("openai/gpt-4o", "gpt-4"):
        native = costs[model if model in costs else f"openai/{model}"]
        own = costs[f"toolparse/hermes/{model}"]
        # Asked by the answer alone, and for a stream also by the name. The oldest litellm does not
        # find a whole answer's cost by a name that the answer does not have.
        assert [own[0], own[2], own[3]] == native[:3]
        assert own[1] in (native[0], "Exception")
        assert len(set(native)) == 1
        assert native[0] > 0


@pytest.mark.slow
def test_litellm_knows_tools_and_costs() -> None:
    check(said_by(sys.executable))


@pytest.mark.parametrize(
    ("models", "error"),
    [
        ("toolparse/hermes/openai/m", BadOptions),
        (["openai/m"], BadOptions),
        (["toolparse/hermes"], BadOptions),
        (["toolparse/hermes/"], BadOptions),
        ([None], BadOptions),
        (["toolparse/hermes/openai/n", "toolparse/nonsense/openai/m"], UnknownProtocol),
    ],
)
def test_what_is_no_model_string_of_the_bridge_is_refused(models: Any, error: Any) -> None:
    with pytest.raises(error):
        litellm_bridge.register(models=models)
    assert "toolparse/hermes/openai/n" not in litellm_module().model_cost
