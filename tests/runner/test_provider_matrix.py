"""Each dialect of `provider_dialects` in each situation, over real litellm: an answer, or the error
as itself. The page's model strings, and agents over the bridge, against the same servers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import toolparse_lab as tp
from benchmarks.providers import NOTE, line_of
from tests import bridge
from tests.provider_dialects import DIALECTS, Server
from tests.provider_matrix import SITUATIONS, TOOLS, alone, ask
from toolparse_lab.integrations import litellm_bridge
from toolparse_lab.runner.complete import complete
from toolparse_lab.runner.exchange.types import Request
from toolparse_lab.runner.failures import error_kind
from toolparse_lab.runner.loop import run_sync

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/measurements.md").read_text("utf-8")
WITH_TOOLS = [name for name, dialect in DIALECTS.items() if dialect.takes_tools]


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.exhaustive(4)
def test_every_cell_is_what_it_is(name: str) -> None:
    cells = list(ask(name))
    ways = 4 if DIALECTS[name].takes_tools else 2
    assert len(cells) == ways * len(SITUATIONS)
    wrong = {
        (cell.situation, "native" if cell.native else "prompted", cell.stream): cell.faults
        for cell in cells
        if cell.faults
    }
    assert wrong == {}
    assert line_of(name, cells) in PAGE, "run: python benchmarks/providers.py --write"


def test_the_page_has_a_line_for_each_dialect() -> None:
    page = PAGE.partition(NOTE)[2].partition("<!-- end -->")[0]
    for name, dialect in DIALECTS.items():
        n = (4 if dialect.takes_tools else 2) * len(SITUATIONS)
        assert f"| [{name}]({dialect.source}) | {n} of {n} |" in page, "providers.py --write"


# -- agents


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("native", [False, True], ids=["in the text", "native"])
@pytest.mark.parametrize("name", WITH_TOOLS)
@pytest.mark.exhaustive(4)
def test_an_agent_over_the_bridge_takes_three_turns(name: str, native: bool, stream: bool) -> None:
    """The tools are in the prompt; some models answer in the text, others with native calls all
    the same."""
    dialect = DIALECTS[name]
    question = f"Two timers. situation=agent{'-native' if native else ''}"
    tools = [{"type": "function", "function": tool} for tool in TOOLS]
    history: list[dict[str, Any]] = [{"role": "user", "content": question}]
    minutes = []
    module = bridge.litellm()

    async def turn() -> Any:
        answer = await litellm_bridge.acompletion(
            dialect.model, history, protocol="hermes", tools=tools, stream=stream,
            api_base=server.url + dialect.path, api_key="planted", timeout=20, max_tokens=64,
            **{k: v.replace("{url}", server.url) for k, v in dialect.params.items()},
        )  # fmt: skip
        if not stream:
            return answer
        return module.stream_chunk_builder([chunk async for chunk in answer])

    with alone(), Server(name) as server:
        for _ in range(3):
            message = bridge.run(turn).choices[0].message
            history.append(message.model_dump(exclude_none=True))
            for call in message.tool_calls or ():
                minutes.append(json.loads(call.function.arguments))
                history.append({"role": "tool", "tool_call_id": call.id, "content": "set"})
    assert minutes == [{"minutes": 5}, {"minutes": 7}]
    assert message.content == "Both are set."


# -- the models that the page on running shows

PAGE_DIALECTS = {
    "claude": "Anthropic messages",
    "gpt": "OpenAI chat",
    "gemini": "Gemini",
    "bedrock": "Bedrock converse",
    "azure": "Azure OpenAI",
    "vllm": "vLLM",
    "ollama": "Ollama chat",
}


def shown_models() -> dict[str, tuple[tp.Model, list[str]]]:
    """Each model of the page's block, with the names of the environment in its comment."""
    text = (ROOT / "docs" / "running.md").read_text("utf-8")
    code = text.partition("<!-- models -->\n```python\n")[2].partition("```")[0]
    names: dict[str, Any] = {}
    exec(compile(code, "running.md", "exec"), names)
    needed = {line.split('"')[1]: re.findall(r"[A-Z_]{6,}", line.partition("#")[2])
              for line in code.splitlines() if "#" in line}  # fmt: skip
    return {alias: (model, needed.get(alias, [])) for alias, model in names["models"].items()}


@pytest.mark.parametrize("native", [False, True], ids=["prompted", "native"])
@pytest.mark.parametrize("alias", PAGE_DIALECTS)
@pytest.mark.exhaustive(3)
def test_a_model_of_the_page_answers(
    alias: str, native: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: Mapping[str, tuple[tp.Model, list[str]]] = shown_models()
    assert set(lines) == set(PAGE_DIALECTS)
    model, environment = lines[alias]
    dialect = DIALECTS[PAGE_DIALECTS[alias]]
    tools = tuple({"type": "function", "function": tool} for tool in TOOLS) if native else ()
    question = ({"role": "user", "content": "situation=one-call"},)
    with Server(PAGE_DIALECTS[alias]) as server:
        for name in environment:
            monkeypatch.setenv(name, "us-east-1" if "REGION" in name else "planted")
        if alias == "bedrock":
            monkeypatch.setenv("AWS_BEDROCK_RUNTIME_ENDPOINT", server.url)
        else:
            model = replace(model, api_base=server.url + dialect.path)
        completion = run_sync(complete(Request(model, alias, question, tools=tools)))
        assert len(server.asked) == 1  # nothing is asked about the model itself
    assert completion.ok, completion.error_message
    assert '"minutes"' in completion.raw.replace("\\", "")


# -- words that the matrix has found


@pytest.mark.parametrize("message", sorted({dialect.overflow for dialect in DIALECTS.values()}))
def test_words_of_an_overflow_are_known(message: str) -> None:
    """Also where litellm does not know them, and passes them on as a plain refusal."""

    class BadRequestError(Exception): ...

    assert error_kind(BadRequestError(message)) == "context_overflow"
