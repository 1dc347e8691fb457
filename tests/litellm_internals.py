"""What the package uses of litellm that litellm does not promise."""

from __future__ import annotations

from typing import NamedTuple


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
    Internal("litellm.llms.ollama.common_utils:OllamaModelInfo.get_runtime_model_info",
             "litellm_faults.ask_no_ollama_server",
             "replaced: the server is asked about the model, in the event loop", seen="1.110"),
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
