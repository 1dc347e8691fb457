"""The types of keywords: sampling parameters, the factors of `Lab.plan` and `Lab.ask`, and the
arguments of litellm.
"""

# The runtime accepts more: the names that `Model.params` of your models declare. A type checker
# cannot know these; a typed program sends them in `extra_body`.

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypedDict

from ...core.toolspec import ToolsLike
from ...formats.prompt.wording import OwnPrompt

# A wording's name, a template, a builder, or `{"name": template or builder}`.
Wording: TypeAlias = OwnPrompt | str | Callable[..., str] | Mapping[str, str | Callable[..., str]]
# What the first turn may do; `{"name": …}` forces one tool.
Choice: TypeAlias = Literal["auto", "required", "none"] | Mapping[str, str]
TypeRules: TypeAlias = bool | Literal["pairs"]
Decoding: TypeAlias = Literal["free", "grammar", "strict"]
Placement: TypeAlias = Literal["first", "last"]
ResultForm: TypeAlias = Literal["own", "ai-sdk-2"]
ChoiceBy: TypeAlias = Literal["response_format", "prompt"]


class Sampling(TypedDict, total=False):
    """Parameters sent as they are. `arms.PARAMETERS` has the same names."""

    audio: Mapping[str, Any] | None
    chat_template_kwargs: Mapping[str, Any] | None
    extra_body: Mapping[str, Any] | None
    extra_headers: Mapping[str, str] | None
    frequency_penalty: float | None
    grammar: str | None
    guided_choice: Sequence[str] | None
    guided_grammar: str | None
    guided_json: Mapping[str, Any] | str | None
    guided_regex: str | None
    keep_alive: str | float | None
    logit_bias: Mapping[str, float] | None
    logprobs: bool | int | None
    max_completion_tokens: int | None
    max_tokens: int | None
    metadata: Mapping[str, Any] | None
    min_p: float | None
    min_tokens: int | None
    modalities: Sequence[str] | None
    n: int | None
    num_ctx: int | None
    parallel_tool_calls: bool | None
    prediction: Mapping[str, Any] | None
    presence_penalty: float | None
    prompt_cache_key: str | None
    repeat_penalty: float | None
    repetition_penalty: float | None
    response_format: Mapping[str, Any] | type | None
    safety_identifier: str | None
    safety_settings: Sequence[Mapping[str, Any]] | None
    service_tier: str | None
    skip_special_tokens: bool | None
    stop: str | Sequence[str] | None
    store: bool | None
    structured_outputs: Mapping[str, Any] | None
    thinking: Mapping[str, Any] | None
    top_k: int | None
    top_logprobs: int | None
    top_p: float | None
    typical_p: float | None
    user: str | None
    verbosity: str | None
    web_search_options: Mapping[str, Any] | None


class TaskSettings(Sampling, total=False):
    """The settings of a question without a prompt of a format."""

    temperature: float | None
    reasoning_effort: str | None
    seed: int | None
    fresh: bool


class QuestionSettings(TaskSettings, total=False):
    """The settings of one question: one level of each factor."""

    corrections: int
    decoding: Decoding
    few_shot: int
    max_turns: int
    placement: Placement
    result_format: ResultForm
    tool_choice: Choice
    tool_choice_by: ChoiceBy
    type_rules: TypeRules
    wording: Wording


class PlanSettings(Sampling, total=False):
    """The settings of a plan: of each factor one level, or a list of levels to compare."""

    corrections: int | Sequence[int]
    decoding: Decoding | Sequence[Decoding]
    few_shot: int | Sequence[int]
    max_turns: int | Sequence[int]
    placement: Placement | Sequence[Placement]
    reasoning_effort: str | Sequence[str | None] | None
    result_format: ResultForm | Sequence[ResultForm]
    temperature: float | Sequence[float | None] | None
    tool_choice: Choice | Sequence[Choice]
    tool_choice_by: ChoiceBy | Sequence[ChoiceBy]
    type_rules: TypeRules | Sequence[TypeRules]
    wording: Wording | Sequence[Wording]


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
    reasoning_effort: str | None
    retry_strategy: str | None
    seed: int | None
    stream: bool | None
    stream_options: Mapping[str, Any] | None
    stream_timeout: float | None
    temperature: float | None
    timeout: object
    tools: ToolsLike
    tool_choice: str | Mapping[str, Any] | None
