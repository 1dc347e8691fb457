"""A model before it is asked: its provider, its price, and the most that a request may cost."""

from __future__ import annotations

import base64
import functools
import importlib.util
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

from ..core.errors import BadOptions, UnknownName
from ..core.values import write_canonical
from .exchange.types import Model, Request
from .failures import PACKAGES
from .litellm_door import recording_litellm
from .local.provider import LOCAL_MODEL, is_local
from .local.setup import local_model_path

_MILLION = 1_000_000
_LONG_PROMPT = 128_000  # tokens above which some models have another price
_DEFAULT_ANSWER = 1024  # tokens reserved where a request sets no limit


# The look-ups below are remembered by model string: litellm searches lists of thousands of models.
@functools.lru_cache(maxsize=256)
def provider_of(name: str) -> str:
    """The provider litellm sends a model string to. Raises UnknownName."""
    litellm = recording_litellm()
    cause: Exception | None = None
    try:
        provider = litellm.get_llm_provider(model=name)[1]
    except Exception as error:
        provider, cause = None, error
    if not provider:
        raise UnknownName(
            "litellm cannot tell which provider this model belongs to",
            got=name,
            expected="a litellm model string such as 'openai/gpt-4.1-mini', "
            "'hosted_vllm/Qwen3-8B' or " + LOCAL_MODEL,
            hint="for an OpenAI-compatible server write 'openai/NAME' and pass api_base=...",
            code="unknown-model",
        ) from cause
    return str(provider)


def check_model(model: Model) -> None:
    """Raise UnknownName if it is plain before any call that the model cannot be asked, and
    SetupError where it is the embedded model and that is missing.
    """
    if is_local(model.name):
        if model.name != LOCAL_MODEL:
            raise UnknownName(
                "there is one embedded model",
                got=model.name,
                expected=LOCAL_MODEL,
                code="unknown-model",
            )
        local_model_path()
    provider_of(model.name)


def unset_keys(model: Model) -> tuple[str, ...]:
    """Return the variables of the provider's key that are not set, as far as litellm knows them.

    Empty for a model that brings a key or an address of its own. Nobody is asked.
    """
    if model.api_key or model.api_base or is_local(model.name):
        return ()
    missing = recording_litellm().validate_environment(model.name).get("missing_keys") or ()
    # Other variables, such as those of AWS, are one of several ways to be let in.
    return tuple(str(name) for name in missing if str(name).endswith("_API_KEY"))


# The first of these modules that is missing makes every call fail. Bedrock needs none with a key.
_NEEDED = (("vertex_ai", "google.auth"), ("sagemaker", "botocore"))


def missing_package(model: Model) -> str | None:
    """Return the package without which litellm cannot ask this model's provider, None if nothing
    is known to be missing. Nobody is asked.
    """
    provider = "" if is_local(model.name) else provider_of(model.name)
    for beginning, module in _NEEDED:
        if provider.startswith(beginning) and not _is_there(module):
            return PACKAGES[module.partition(".")[0]]
    return None


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):  # its parent is missing, or a stand-in without a spec
        return module in sys.modules


def opened_address(api_base: str, provider: str) -> tuple[str, dict[str, str], dict[str, str]]:
    """Return an address, and the headers and query parameters sent for its other members: clients
    put the path behind the query, and refuse a login in an address beside a key.
    """
    parts = urlsplit(api_base)
    headers = {}
    if "@" in parts.netloc:
        login, _, host = parts.netloc.rpartition("@")
        headers["Authorization"] = "Basic " + base64.b64encode(unquote(login).encode()).decode()
        parts = parts._replace(netloc=host)
    query: dict[str, str] = {}
    if parts.query and _takes_query(provider):
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        parts = parts._replace(query="")
    return urlunsplit(parts), headers, query


def _takes_query(provider: str) -> bool:
    # litellm lists the providers that it asks through OpenAI's client, which sends `extra_query`.
    return provider == "openai" or provider in recording_litellm().openai_compatible_providers


def token_cost(
    model: Model,
    prompt_tokens: int | None,
    completion_tokens: int | None,
    *,
    cached: int | None = None,
    cache_write: int | None = None,
) -> float | None:
    """US dollars by `Model.price`, else by litellm's own list.

    cached, cache_write: those of the prompt's tokens that were read from the provider's cache, and
    written into it. None if the price or the tokens are unknown. Free models cost 0.0, which is a
    known price.
    """
    if prompt_tokens is None or completion_tokens is None:
        return None
    price = _price(model, prompt_tokens)
    if price is None:
        return None
    cached, cache_write = cached or 0, cache_write or 0
    full = max(0, prompt_tokens - cached - cache_write)
    cost = full * price.input + completion_tokens * price.output
    return (cost + cached * price.cached + cache_write * price.cache_write) / _MILLION


class _Price(NamedTuple):
    # US dollars per million tokens.
    input: float
    output: float
    cached: float
    cache_write: float


def _price(model: Model, prompt_tokens: int) -> _Price | None:
    # A price of the user's own always wins: lists are old, and contracts differ.
    if model.price is not None:
        sent, received, *cached = model.price
        return _Price(sent, received, cached[0] if cached else sent, sent)
    if is_local(model.name):
        return _Price(0.0, 0.0, 0.0, 0.0)
    return _listed_price(model.name, _MILLION if prompt_tokens > _LONG_PROMPT else 1000)


def check_prices(models: Mapping[str, Model]) -> None:
    """Raise BadOptions if a limit on cost cannot be kept, because a model (by alias) has no known
    price.
    """
    unpriced = sorted(alias for alias, model in models.items() if token_cost(model, 0, 0) is None)
    if unpriced:
        raise BadOptions(
            "max_cost cannot be kept: there is no known price for some models.",
            got=unpriced,
            hint="give them a price, tp.Model(..., price=(input, output) per million tokens; (0, "
            "0) = free), "
            "or limit the run by max_calls",
        )


@functools.lru_cache(maxsize=256)
def _listed_price(name: str, tokens: int) -> _Price | None:
    # litellm lists self-hosted models at nothing, which is unknown. Some models cost more for long
    # prompts, so it is asked by size; it takes long, so once for each.
    litellm = recording_litellm()
    name = name.replace("/responses/", "/", 1)  # the same model, asked by another API
    try:
        prices = litellm.cost_per_token(model=name, prompt_tokens=tokens, completion_tokens=tokens)
    except Exception:  # an unmapped model raises one of several kinds
        return None
    if not any(prices):
        return None
    sent, received = (float(price) * _MILLION / tokens for price in prices)
    try:
        listed: Mapping[str, Any] = litellm.get_model_info(name)
    except Exception:
        listed = {}
    read = listed.get("cache_read_input_token_cost")
    written = listed.get("cache_creation_input_token_cost")
    return _Price(
        sent,
        received,
        sent if read is None else float(read) * _MILLION,
        sent if written is None else float(written) * _MILLION,
    )


@functools.lru_cache(maxsize=256)
def counts_streams(name: str) -> bool:
    # A provider that does not know the option may refuse the request.
    litellm = recording_litellm()
    try:
        supported = litellm.get_supported_openai_params(
            model=name.split("/", 1)[-1], custom_llm_provider=provider_of(name)
        )
    except Exception:
        return False
    return "stream_options" in (supported or ())


def estimate_tokens(request: Request) -> tuple[int, int]:
    # Rather too many than too few. No tokenizer is asked: it would be the wrong one for most
    # models, and cost more than the call's bookkeeping.
    text = write_canonical([list(request.messages), list(request.tools)])
    params = request.sent_params
    # Few tokens are shorter than three bytes; 8 more are for what a chat template adds.
    prompt_tokens = len(text.encode("utf-8", "surrogatepass")) // 3 + 8
    limit = params.get("max_completion_tokens") or params.get("max_tokens") or _DEFAULT_ANSWER
    answers = params.get("n") or 1
    return prompt_tokens, int(limit) * int(answers)


def estimate_cost(request: Request) -> float | None:
    """US dollars at most, by that estimate, or None if no price is known.

    It is meant as an upper bound: the sum that a limit reserves for calls in flight.
    """
    return token_cost(request.model, *estimate_tokens(request))
