"""The workarounds for litellm: the list of them, tools without `mcp`, and clients that are closed
in their own loop."""

from __future__ import annotations

import asyncio
import gc
import importlib
import importlib.metadata
import importlib.util
import inspect
import re
import sys
import warnings
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

from tests.mock_openai import MockOpenAI
from tests.tables import each_case, table
from toolparse_lab.runner import litellm_faults
from toolparse_lab.runner.complete import complete
from toolparse_lab.runner.exchange.types import Model, Request
from toolparse_lab.runner.litellm_door import close_clients, litellm_module
from toolparse_lab.runner.loop import run_sync

TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
NO_MCP = importlib.util.find_spec("mcp") is None


def places() -> list[str]:
    """The places that the two lists of workarounds name, from the runner's folder on."""
    users = {name for row in table(__file__) for name in row["user"].split(", ")}
    listed = re.findall(r"^- `([\w.]+)`", litellm_faults.__doc__ or "", re.M)
    return [*listed, *sorted(name for name in users if not name.startswith("litellm_bridge"))]


def test_the_lists_name_places_that_are_there() -> None:
    assert len(places()) > 30
    for place in places():
        names = place.split(".")
        # The part that is a module of the runner, and what is in it.
        size = next(n for n in range(len(names), -1, -1) if _is_module(names[:n]))
        start = importlib.import_module(".".join(["toolparse_lab.runner", *names[:size]]))
        source: Any = start if size else litellm_faults
        assert reduce(getattr, names[size:], source) is not None, place


@each_case
def test_what_is_used_of_litellm_is_there(
    place: str, user: str, why: str, text: str, seen: str
) -> None:
    """What the package uses of litellm that litellm does not promise.

    place: module, and after a colon the path of names in it; `text` is looked for in that module's
    or class's source. user: who uses it, from the runner's folder on. seen: the versions that have
    it, the last as it was tried.
    """
    litellm_module()
    module, _, path = place.partition(":")
    first = seen.partition(" to ")[0]
    if version_of(importlib.metadata.version("litellm")) < version_of(first):
        pytest.skip(f"litellm has it since {first}")
    source = Path(importlib.import_module("litellm").__file__ or "").parent
    file = source.joinpath(*module.split(".")[1:]).with_suffix(".py")
    if "responses.mcp" in module:  # its import needs `mcp`
        assert f"def {path}(" in file.read_text("utf-8")
        return
    found: Any = importlib.import_module(module)
    for name in filter(None, path.split(".")):
        assert hasattr(found, name), f"{place}, used by {user}: {why}"
        found = getattr(found, name)
    if text:
        holder: Any = found if inspect.isclass(found) else inspect.getmodule(found)
        code = inspect.getsource(holder)
        assert text in code, f"{text} in {place}, used by {user}: {why}"


def test_the_length_of_a_context_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    litellm_module()
    asked: list[str] = []

    def look_up(model_name: str) -> None:
        asked.append(model_name)

    monkeypatch.setattr("litellm.utils._get_max_position_embeddings", look_up)
    litellm_faults.remember_context_lengths()
    utils: Any = importlib.import_module("litellm.utils")
    for _ in range(2):
        utils._get_model_info_helper("Qwen/Qwen3-8B", "huggingface")
    assert asked == ["Qwen/Qwen3-8B"]


def version_of(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")[:2]))


def _is_module(names: list[str]) -> bool:
    try:
        return importlib.util.find_spec(".".join(["toolparse_lab.runner", *names])) is not None
    except ModuleNotFoundError:
        return False


@pytest.mark.skipif(not NO_MCP, reason="mcp is installed")
def test_stand_ins_belong_to_this_workaround_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    litellm_module()
    names = [name for name in sys.modules if name.startswith("litellm.responses.mcp.")]
    for name in names:
        monkeypatch.delitem(sys.modules, name)
    if importlib.util.find_spec("litellm.responses.mcp.chat_completions_handler") is None:
        return  # litellm 1.80 does not ask whether a tool belongs to its gateway
    litellm_faults.allow_tools_without_mcp.cache_clear()
    litellm_faults.allow_tools_without_mcp()
    module = sys.modules["litellm.responses.mcp.litellm_proxy_mcp_handler"]
    belongs = module.LiteLLM_Proxy_MCP_Handler.should_use_litellm_mcp_gateway
    assert belongs([TOOL]) is False
    assert belongs(None) is False
    with pytest.raises(ModuleNotFoundError, match="tools of type mcp need it"):
        belongs([{"type": "mcp"}])


MCP_MODULES = (
    "litellm.responses.mcp.chat_completions_handler",
    "litellm.responses.mcp.litellm_proxy_mcp_handler",
)


@pytest.mark.parametrize(
    ("error", "replaced"),
    [
        (None, False),
        (ImportError("cannot import name 'X' from 'mcp.types'", name="mcp.types"), True),
        (ModuleNotFoundError("No module named 'mcp'", name="mcp"), True),
        (ModuleNotFoundError("No module named 'litellm.responses.mcp'", name="litellm.x"), False),
        (ImportError("something else"), False),
    ],
)
def test_modules_are_replaced_only_where_mcp_will_not_do(
    monkeypatch: pytest.MonkeyPatch, error: ImportError | None, replaced: bool
) -> None:
    def load(name: str) -> object:
        if error is not None:
            raise error
        return object()

    litellm_module()
    for name in MCP_MODULES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(importlib, "import_module", load)
    litellm_faults.allow_tools_without_mcp.cache_clear()
    litellm_faults.allow_tools_without_mcp()
    litellm_faults.allow_tools_without_mcp.cache_clear()
    assert [name in sys.modules for name in MCP_MODULES] == [replaced] * 2
    if error is not None and replaced:
        handler = sys.modules[MCP_MODULES[1]].LiteLLM_Proxy_MCP_Handler
        assert handler.should_use_litellm_mcp_gateway([TOOL]) is False
        with pytest.raises(type(error), match="tools of type mcp need it"):
            handler.should_use_litellm_mcp_gateway([{"type": "mcp"}])


def test_no_workaround_is_sent_to_a_provider() -> None:
    with MockOpenAI() as mock:
        model = Model("openai/m", api_base=mock.url, api_key="k", timeout=30)
        request = Request(model, "m", ({"role": "user", "content": "tool say={}"},), tools=(TOOL,))
        assert run_sync(complete(request)).ok
        assert mock.bodies[-1]["tools"] == [TOOL]
        assert not [name for name in mock.bodies[-1] if "mcp" in name]


def test_closing_the_clients_of_a_loop_leaves_those_of_another() -> None:
    with MockOpenAI() as mock:
        model = Model("openai/m", api_base=mock.url, api_key="k", timeout=30)
        request = Request(model, "m", ({"role": "user", "content": "say=x"},))
        cache = litellm_module().in_memory_llm_clients_cache

        async def clients() -> set[str]:
            assert (await complete(request)).raw == "x"
            ending = cache.update_cache_key_with_event_loop("")
            return {key for key in cache.cache_dict if key.endswith(ending)}

        async def go() -> None:
            own, others = await clients(), run_sync(clients())
            assert own
            assert others
            await close_clients()
            assert not own & cache.cache_dict.keys()
            assert others <= cache.cache_dict.keys()

        with warnings.catch_warnings():
            warnings.simplefilter("error", ResourceWarning)
            asyncio.run(go())
            gc.collect()
        # The other loop goes on with the client it has.
        assert run_sync(complete(request)).raw == "x"
