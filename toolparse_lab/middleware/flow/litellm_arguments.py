"""The type of the keywords that go to litellm: `ToolCallMiddleware.completion`, and the bridge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...core.toolspec import ToolsLike
from .factors import Sampling


class LitellmArguments(Sampling, total=False):
    """The arguments of litellm itself."""

    api_base: str | None
    api_key: str | None
    api_version: str | None
    allowed_openai_params: Sequence[str] | None
    base_url: str | None
    cache: Mapping[str, Any] | None
    caching: bool
    client: Any
    context_window_fallback_dict: Mapping[str, str] | None
    custom_llm_provider: str | None
    deployment_id: str | None
    drop_params: bool | None
    additional_drop_params: Sequence[str] | None
    fallbacks: Sequence[str | Mapping[str, Any]] | None
    function_call: str | Mapping[str, Any] | None
    functions: Sequence[Mapping[str, Any]] | None
    headers: Mapping[str, str] | None
    input_cost_per_token: float | None
    output_cost_per_token: float | None
    litellm_call_id: str | None
    max_retries: int | None
    mock_response: object
    mock_tool_calls: Sequence[Mapping[str, Any]] | None
    mock_timeout: bool | None
    model_list: Sequence[Mapping[str, Any]] | None
    num_retries: int | None
    organization: str | None
    retry_policy: Mapping[str, int] | None
    retry_strategy: str | None
    seed: int | None
    stream: bool | None
    stream_options: Mapping[str, Any] | None
    stream_timeout: float | None
    temperature: float | None
    timeout: object
    tools: ToolsLike
    tool_choice: str | Mapping[str, Any] | None
