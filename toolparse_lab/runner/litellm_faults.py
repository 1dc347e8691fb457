"""The workarounds for litellm, and what this package uses of it that it does not promise.

Each workaround was needed with litellm 1.106 and is harmless with the others that were tried, 1.80
to 1.110. Those that change litellm or the process are here; `INTERNALS` lists what they and others
take hold of, so that a change shows as its name and not as a strange answer. `make newest` meets a
newer version: walk through both lists, take one out, and run the tests that its place names.

The workarounds that take hold of nothing:

- `hold_logging_worker`: the logging task of one event loop is dropped when another loop asks
- `ignore_warnings`: its types and modules cause warnings that are not the caller's
- `chunk_form`: before 1.89 it knows no chunks of its own type in a custom provider's stream
- `litellm_door._import`: importing it fetches a price list from the network, and pydantic warns
- `complete._result_of`: a call cancelled early leaves a coroutine that no one awaits
- `routes.opened_address`: a query in the address ends up before the path, and a login is refused
- `routes._listed_price`: self-hosted models are listed as free of charge
- `log_guard.guard_logs`: requests are logged whole, keys included, at level DEBUG
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
import contextlib
import functools
import importlib
import importlib.metadata
import re
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import ModuleType
from typing import Any, NamedTuple

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

_under_way = 0
_switch_before = False


@contextlib.contextmanager
def unchanged_switches(litellm: Any) -> Iterator[None]:
    """For one call: `litellm.add_function_to_prompt` is the same before and after.

    litellm sets it for the whole process as soon as its provider `ollama` is given tools, and then
    writes the tools of other providers into their prompts too. Calls overlap, so that what counts
    is what it was before the first of them.
    """
    global _under_way, _switch_before
    with _lock:
        if not _under_way:
            _switch_before = bool(litellm.add_function_to_prompt)
        _under_way += 1
    try:
        yield
    finally:
        with _lock:
            _under_way -= 1
            litellm.add_function_to_prompt = _switch_before


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


# -- what is used without a promise


class Internal(NamedTuple):
    """One thing of litellm that may change without notice.

    place: module, and after a colon the path of names in it; a text is looked for in that module's
    or class's source. user: who uses it, from the runner's folder on. seen: the versions that have
    it, the last as it was tried.
    """

    place: str
    user: str
    why: str
    text: str = ""
    seen: str = "1.80 to 1.110"


_STREAM = "litellm.litellm_core_utils.streaming_handler:CustomStreamWrapper"
_LOGGING = "litellm.litellm_core_utils.litellm_logging"

INTERNALS: tuple[Internal, ...] = (
    # Changed while they run.
    Internal("litellm.main:get_optional_params", "litellm_faults.let_params_pass",
             "replaced: a custom provider cannot say which parameters it takes"),
    Internal("litellm.responses.mcp.chat_completions_handler:acompletion_with_mcp",
             "litellm_faults.allow_tools_without_mcp",
             "replaced where `mcp` is missing: every request with tools fails in 1.106",
             seen="1.106 to 1.110"),
    Internal("litellm:add_function_to_prompt", "litellm_faults.unchanged_switches",
             "set back: the provider `ollama` switches it for the whole process"),
    Internal("litellm:custom_provider_map", "local.provider.register, litellm_bridge.register",
             "extended: our own providers"),
    Internal("litellm.utils:custom_llm_setup", "local.provider.register, litellm_bridge.register",
             "called: makes litellm read the list of providers again"),
    Internal("litellm:REPEATED_STREAMING_CHUNK_LIMIT", "litellm_door._set_up",
             "raised: an endless repetition is an answer"),
    Internal("litellm:suppress_debug_info", "litellm_door._set_up", "set: it prints on failures"),
    Internal("httpx:AsyncClient.send", "streams._wrap_send",
             "wrapped: the one way out of every provider's client, so that a stream's end is seen"),
    Internal("litellm.llms.vertex_ai.gemini.vertex_and_google_ai_studio_gemini:"
             "ModelResponseIterator.chunk_parser",
             "streams.keep_finish_parts",
             "wrapped: a chunk without a finish reason is read as one that has it"),
    Internal("litellm.utils:_get_max_position_embeddings",
             "litellm_faults.remember_context_lengths",
             "wrapped: huggingface.co is asked for the length of a context with each call"),
    Internal("litellm.llms.vertex_ai.gemini.vertex_and_google_ai_studio_gemini:"
             "ModelResponseIterator._common_chunk_parsing_logic",
             "streams.keep_finish_parts",
             "wrapped: a comment between events is read as broken JSON"),
    Internal("litellm.llms.anthropic.chat.handler:ModelResponseIterator.chunk_parser",
             "streams.keep_finish_parts",
             "wrapped: an error in a stream loses its type"),
    Internal("litellm.completion_extras.litellm_responses_transformation.transformation:"
             "OpenAiResponsesToChatCompletionStreamIterator.chunk_parser",
             "streams.keep_finish_parts",
             "wrapped: refusals and reasoning content are not read", seen="1.110"),
    Internal("litellm.llms.mistral.chat.transformation:"
             "MistralConfig._handle_content_list_to_str_conversion",
             "litellm_faults.join_text_parts",
             "wrapped: of several texts in an answer the last is kept", seen="1.110"),
    # The clients.
    Internal("litellm:in_memory_llm_clients_cache.cache_dict", "litellm_door.close_clients",
             "clients are closed in their own loop"),
    Internal("litellm:in_memory_llm_clients_cache.ttl_dict", "litellm_door.close_clients",
             "clients are closed in their own loop"),
    Internal("litellm:in_memory_llm_clients_cache.update_cache_key_with_event_loop",
             "litellm_door.close_clients", "the mark of a loop in a client's key"),
    Internal("litellm.litellm_core_utils.logging_worker:GLOBAL_LOGGING_WORKER._worker_task",
             "litellm_faults.hold_logging_worker", "the logging task is dropped with its loop"),
    Internal("litellm:openai_compatible_providers", "routes.opened_address",
             "the providers that are asked through OpenAI's client, which sends extra_query"),
    Internal("litellm:AsyncOpenAI", "litellm_door.text_client",
             "the client of a completion endpoint, of which litellm makes one for each call"),
    # What a model takes.
    Internal("litellm.utils:get_optional_params", "routes._by_tables",
             "called without sending: it raises UnsupportedParamsError for what a model refuses"),
    Internal("litellm.utils:DEFAULT_CHAT_COMPLETION_PARAM_VALUES", "routes._by_tables",
             "the parameters that litellm's tables are about"),
    # The streams.
    Internal(_STREAM, "streams.chunks_of, litellm_bridge", "the provider's own stream is inside",
             "self.completion_stream"),
    Internal(_STREAM, "answer.Answer.read_stream", "found by its name in a generator around it"),
    Internal(_STREAM, "answer.Answer.end_stream", "the wrapper makes up a finish reason",
             "self.received_finish_reason"),
    Internal(_STREAM, "answer.Answer.end_stream", "the wrapper makes up a finish reason",
             "self.intermittent_finish_reason"),
    Internal(_STREAM, "answer.Answer.end_stream", "the wrapper guesses token counts",
             "self.chunks"),
    Internal(_STREAM, "streams.is_direct", "the embedded model's stream is known by it",
             "self.custom_llm_provider"),
    Internal(_STREAM, "litellm_faults.name_outer_stream", "chunks are named after the model string",
             "self.model"),
    Internal("openai:AsyncStream", "streams.is_direct", "its chunks have OpenAI's shape already"),
    *(Internal(f"litellm.llms.{place}", "provider_shapes._READERS",
               "known by its name; lines are in `streaming_response`") for place in (
        "openai.chat.gpt_transformation:OpenAIChatCompletionStreamingHandler",
        "openrouter.chat.transformation:OpenRouterChatCompletionStreamingHandler",
        "cohere.common_utils:CohereV2ModelResponseIterator",
        "ollama.chat.transformation:OllamaChatCompletionResponseIterator",
        "ollama.completion.transformation:OllamaTextCompletionResponseIterator",
    )),
    Internal("litellm.exceptions:MidStreamFallbackError", "failures._unwrapped",
             "it is around every failure of a stream", "self.original_exception"),
    # What is logged.
    Internal(_LOGGING, "answer.Answer.log", "the response as the provider sent it",
             '"post_api_call"'),
    Internal(_LOGGING, "answer.Answer.log", "the response as the provider sent it",
             '"original_response"'),
    Internal(_LOGGING, "answer.Answer.log", "the body as it was sent", "complete_input_dict"),
    Internal("litellm:_async_success_callback", "litellm_bridge.callbacks",
             "whether someone looks at what is logged"),
    Internal("litellm.integrations.custom_logger:CustomLogger.logging_hook",
             "litellm_bridge.callbacks", "changes what callbacks are told"),
    Internal("litellm.integrations.custom_logger:CustomLogger.async_logging_hook",
             "litellm_bridge.callbacks", "changes what callbacks are told"),
    # The exact words.
    Internal("litellm.exceptions:APIConnectionError", "failures.error_kind",
             "it has a status that no server sent", "status_code"),
    Internal("litellm.utils:get_optional_params", "litellm_bridge.refusal",
             "a parameter is named in the message of a refusal",
             "does not support parameters"),
)  # fmt: skip
