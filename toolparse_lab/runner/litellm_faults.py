"""The workarounds for litellm.

Each workaround was needed with litellm 1.106 and is harmless with the others that were tried, 1.80
to 1.110. Those that change litellm or the process are here; `tests/runner/test_litellm.jsonl` lists
what they and others take hold of, so that a change shows as its name and not as a strange answer.
`make newest` meets a newer version: walk through both lists, take one out, and run the tests that
its place names.

The workarounds that take hold of nothing:

- `hold_logging_worker`: the logging task of one event loop is dropped when another loop asks
- `ignore_warnings`: its types and modules cause warnings that are not the caller's
- `chunk_form`: before 1.89 it knows no chunks of its own type in a custom provider's stream
- `litellm_door._import`: importing it fetches a price list from the network, and pydantic warns
- `complete._result_of`: a call cancelled early leaves a coroutine that no one awaits
- `routes.opened_address`: a query in the address ends up before the path, and a login is refused
- `routes._listed_price`: self-hosted models are listed as free of charge
- `complete.guard_logs`: requests are logged whole, keys included, at level DEBUG
- `streams.chunks_of`: its stream wrapper costs up to 1 ms a chunk and changes finish reasons
- `provider_shapes.chunks_of_lines`: its readers end early and make up finish reasons
- `provider_shapes.as_chat`: it loses reasoning, refusals and texts of some whole answers
- `answer.close_stream`: a stream that is dropped keeps its connection
- `failures.error_kind`: a refused connection is an internal server error
- `local.provider._provider_class`: what a custom provider sends with or after its finish reason
  disappears, and its request is not logged as others are
"""

from __future__ import annotations

import asyncio
import functools
import importlib
import importlib.metadata
import re
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any

_lock = threading.Lock()

# -- tools without mcp (1.106)

_ASKING = "litellm.responses.mcp.chat_completions_handler"
_ANSWERING = "litellm.responses.mcp.litellm_proxy_mcp_handler"


@functools.lru_cache(maxsize=1)
def allow_tools_without_mcp() -> None:
    """Let litellm take requests with tools where the `mcp` package is missing, or older than it
    needs (CrewAI installs such a one).

    litellm 1.106 asks two of its modules whether a tool belongs to its own gateway, and they need
    `mcp`: without it every request with tools fails, whatever the provider. If they cannot be
    imported, modules of their names say that function tools do not belong there. Nothing is done
    where `mcp` will do, or with another litellm. Looked into once a process.
    """
    # litellm's modules may warn while they are imported.
    ignore_warnings()
    with _lock:
        if _ASKING in sys.modules:
            return
        try:
            importlib.import_module("litellm.responses.mcp.chat_completions_handler")
        except ImportError as e:
            # Another litellm may lack the module itself, and then does not ask it.
            if e.name is not None and e.name.partition(".")[0] == "mcp":
                sys.modules[_ANSWERING], sys.modules[_ASKING] = _stand_ins(e)


def _stand_ins(missing: ImportError) -> tuple[ModuleType, ModuleType]:
    # A tool of type `mcp` does belong to the gateway: for it litellm's own error is raised.
    def refuse(*_: Any, **__: Any) -> None:
        raise type(missing)(f"{missing}: tools of type mcp need it", name=missing.name)

    def belongs(tools: Iterable[Any] | None) -> bool:
        if any(isinstance(tool, Mapping) and tool.get("type") == "mcp" for tool in tools or ()):
            refuse()
        return False

    answering, asking = ModuleType(_ANSWERING), ModuleType(_ASKING)
    # The question has two names, of which litellm uses now the one, now the other.
    names = ("should_use_litellm_mcp_gateway", "_should_use_litellm_mcp_gateway")
    members = dict.fromkeys(names, staticmethod(belongs))
    answering.__dict__["LiteLLM_Proxy_MCP_Handler"] = type("LiteLLM_Proxy_MCP_Handler", (), members)
    # Imported with the question and used after a yes; later versions ask elsewhere.
    asking.__dict__["acompletion_with_mcp"] = refuse
    return answering, asking


# -- switches of the whole process (1.106)


class _UnchangedSwitches:
    under_way = 0
    before = False

    def __enter__(self) -> None:
        litellm: Any = sys.modules["litellm"]
        with _lock:
            if not self.under_way:
                self.before = bool(litellm.add_function_to_prompt)
            self.under_way += 1

    def __exit__(self, *_: object) -> None:
        litellm: Any = sys.modules["litellm"]
        with _lock:
            self.under_way -= 1
            litellm.add_function_to_prompt = self.before


unchanged_switches = _UnchangedSwitches()
"""For one call: `litellm.add_function_to_prompt` is the same before and after.

litellm sets it for the whole process as soon as its provider `ollama` is given tools, and then
writes the tools of other providers into their prompts too. Calls overlap, so that what counts is
what it was before the first of them.
"""


# -- the logging task (1.106)

_workers: set[asyncio.Task[Any]] = set()


def hold_logging_worker() -> None:
    """Keep litellm's logging task of this loop alive: litellm drops it when another loop asks, and
    asyncio then complains about a task that was destroyed. The task stays until it is done.
    """
    module = sys.modules.get("litellm.litellm_core_utils.logging_worker")
    task = getattr(getattr(module, "GLOBAL_LOGGING_WORKER", None), "_worker_task", None)
    if isinstance(task, asyncio.Task) and task not in _workers and not task.done():
        _workers.add(task)
        task.add_done_callback(_workers.discard)


# -- the length of a context at huggingface.co (1.80 to 1.110)


def remember_context_lengths() -> None:
    """Let litellm ask huggingface.co once for the length of a model's context, and not with each
    call, which holds up all others meanwhile. To be called once.
    """
    utils = importlib.import_module("litellm.utils")
    look_up = getattr(utils, "_get_max_position_embeddings", None)
    if look_up is not None:  # None: another litellm
        utils.__dict__["_get_max_position_embeddings"] = functools.lru_cache(256)(look_up)


# -- questions to an Ollama server about the model (1.110)


def ask_no_ollama_server() -> None:
    """Let litellm take a model of Ollama for what it takes one whose server does not answer. To be
    called once.

    With each request litellm asks the server five times about a model that its list of prices does
    not have, partly by a synchronous call in the event loop, and partly at another address than the
    model's. Nothing of the answers goes into the request.
    """
    module = importlib.import_module("litellm.llms.ollama.common_utils")
    config = getattr(module, "OllamaModelInfo", None)
    if not hasattr(config, "get_runtime_model_info"):  # another litellm
        return

    def known(_: Any, model: str, *__: Any, **___: Any) -> dict[str, Any]:
        no_prices = {"input_cost_per_token": 0.0, "output_cost_per_token": 0.0}
        limits = dict.fromkeys(("max_tokens", "max_input_tokens", "max_output_tokens"))
        name = model.removeprefix("ollama/").removeprefix("ollama_chat/")
        return {"key": name, "litellm_provider": "ollama", "mode": "chat", **no_prices, **limits}

    setattr(config, "get_runtime_model_info", known)  # noqa: B010


# -- chunks of a custom provider (before 1.89)


@functools.lru_cache(maxsize=1)
def chunk_form() -> Callable[[Any], Any]:
    """Return the function that makes of a ModelResponseStream what litellm takes from a custom
    provider's stream: the chunk itself, and before 1.89 a dict around it.
    """
    version = re.match(r"(\d+)\.(\d+)", importlib.metadata.version("litellm"))
    if version is None or (int(version[1]), int(version[2])) >= (1, 89):
        return lambda chunk: chunk
    return _chunk_as_dict


class _GenericChunk(dict[str, Any]):
    # Older versions read the answer's id as an attribute.
    id: str


def _chunk_as_dict(chunk: Any) -> _GenericChunk:
    # With `original_chunk` older versions go on as with a chunk of an OpenAI client, and take
    # calls, reasoning and the choice's index from there.
    delta = chunk.choices[0].delta if chunk.choices else None
    reason = chunk.choices[0].finish_reason if chunk.choices else None
    usage = getattr(chunk, "usage", None)
    generic = _GenericChunk(
        text=(delta.content if delta is not None else None) or "",
        is_finished=reason is not None,
        finish_reason=reason or "",
        usage=usage.model_dump() if usage is not None else None,
        original_chunk=chunk,
    )
    generic.id = chunk.id
    return generic


# -- parameters of a custom provider (1.106)


def let_params_pass(provider: str, names: Iterable[str]) -> None:
    """Let litellm hand these parameters to one custom provider, which it refuses for all of them.
    Done once.

    litellm has a list of parameters for each provider of its own, and one for all others. The
    values that a request may hold for itself, as `allowed_openai_params`, is said here for each
    request to that provider. For any other provider litellm's function is called as it was.
    """
    main = importlib.import_module("litellm.main")
    original = main.__dict__["get_optional_params"]
    if getattr(original, "lets_pass", None) == provider:
        return

    @functools.wraps(original)
    def get_optional_params(*args: Any, **kw: Any) -> Any:
        if kw.get("custom_llm_provider") == provider:
            present = [name for name in names if kw.get(name) is not None]
            if present:
                kw["allowed_openai_params"] = [*(kw.get("allowed_openai_params") or ()), *present]
        return original(*args, **kw)

    get_optional_params.__dict__["lets_pass"] = provider
    main.__dict__["get_optional_params"] = get_optional_params


# -- the model of a custom provider's stream (1.106)


def name_outer_stream(model: Any) -> None:
    """Let litellm's stream around a custom provider's give its chunks the model that the provider
    says, as litellm does in a whole answer and for providers of its own.

    To be called by a function that the body of the provider's stream calls. litellm overwrites the
    model of chunks with its own model string, and hands a provider no way to say another. Its
    stream is found by who asks for the chunk. If that is something else, nothing is done.
    """
    frame = sys._getframe(3)  # our caller, the stream it belongs to, and litellm's method
    outer = frame.f_locals.get("self")
    if not hasattr(outer, "completion_stream"):
        return
    for name in ("model", "_cached_model_name"):
        if hasattr(outer, name):
            setattr(outer, name, model)


# -- texts of Mistral (1.80 to 1.110)


def join_text_parts(model: str) -> None:
    """Let litellm keep every text of a whole answer of Mistral whose content is a list: it keeps
    the last one. Done once, and only where the model may be Mistral's.
    """
    if "mistral" not in model and "magistral" not in model:
        return
    module = importlib.import_module("litellm.llms.mistral.chat.transformation")
    config = getattr(module, "MistralConfig", None)
    original = getattr(config, "_handle_content_list_to_str_conversion", None)
    if original is None or hasattr(original, "joins_texts"):
        return

    @functools.wraps(original)
    def convert(response_data: dict[str, Any]) -> Any:
        for choice in response_data.get("choices") or ():
            message = choice.get("message") or {}
            content = message.get("content")
            if isinstance(content, list):
                texts = [part for part in content if part.get("type") == "text"]
                joined = "".join(str(part.get("text") or "") for part in texts)
                others = [part for part in content if part.get("type") != "text"]
                message["content"] = [*others, {"type": "text", "text": joined}]
        return original(response_data)

    convert.__dict__["joins_texts"] = True
    setattr(config, "_handle_content_list_to_str_conversion", staticmethod(convert))  # noqa: B010


# -- warnings (1.106)

# (beginning of the message, None for any; module that causes it).
_IGNORED = (
    (None, re.compile(r"litellm(\.|$)")),
    (re.compile("Pydantic serializer warnings|Items? '", re.I), re.compile(r"pydantic\.")),
)


def ignore_warnings() -> None:
    """Ignore litellm's own warnings, which are not the caller's and must not become errors under
    `-W error`.

    For this process, and for warnings that litellm's modules cause only. Again before each call,
    because test runners take filters back. `catch_warnings` would not do: calls overlap.
    """
    for message, module in _IGNORED:
        # As `filterwarnings` writes it: compared at once, since this is asked with each call.
        if ("ignore", message, Warning, module, 0) not in warnings.filters:
            pattern = "" if message is None else message.pattern
            warnings.filterwarnings("ignore", pattern, Warning, module.pattern)
