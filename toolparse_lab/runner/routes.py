"""A model before it is asked: its provider, its price, the most that a request may cost, and which
parameters it takes.
"""

from __future__ import annotations

import base64
import functools
import importlib.util
import json
import re
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

from ..core.errors import BadOptions, MissingExtra, UnknownName
from ..core.values import write_canonical
from .exchange.types import Model, Request
from .failures import PACKAGES
from .litellm_door import litellm_module, recording_litellm
from .litellm_faults import unchanged_switches
from .local.provider import LOCAL_MODEL, check_local, is_local
from .local.setup import local_model_path

_MILLION = 1_000_000
_LONG_PROMPT = 128_000  # tokens above which some models have another price
_DEFAULT_ANSWER = 1024  # tokens reserved where a request sets no limit


# The look-ups below are remembered by model string: litellm searches lists of thousands of models.
@functools.lru_cache(maxsize=256)
def provider_of(name: str) -> str:
    """Return the provider litellm sends a model string to. Raises UnknownName."""
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
        check_local(model.name)
        local_model_path(model.name.partition("/")[2])
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


def missing_package(model: Model) -> str | None:
    """Return the package without which litellm cannot ask this model's provider, None if nothing
    is known to be missing. Nobody is asked.
    """
    provider = "" if is_local(model.name) else provider_of(model.name)
    # The one of these that is missing makes every call fail. Bedrock needs none with a key.
    for beginning, module in (("vertex_ai", "google.auth"), ("sagemaker", "botocore")):
        if not provider.startswith(beginning):
            continue
        try:
            there = importlib.util.find_spec(module) is not None
        except (ImportError, ValueError):  # its parent is missing, or a stand-in without a spec
            there = module in sys.modules
        if not there:
            return PACKAGES[module.partition(".")[0]]
    return None


def opened_address(api_base: str, provider: str) -> tuple[str, dict[str, str], dict[str, str]]:
    """Return an address, and the headers and query parameters sent for its other members: clients
    put the path after the query, and refuse a login in an address next to a key.
    """
    parts = urlsplit(api_base)
    headers = {}
    if "@" in parts.netloc:
        login, _, host = parts.netloc.rpartition("@")
        headers["Authorization"] = "Basic " + base64.b64encode(unquote(login).encode()).decode()
        parts = parts._replace(netloc=host)
    query: dict[str, str] = {}
    # litellm lists the providers that it asks through OpenAI's client, which sends `extra_query`.
    if parts.query and (
        provider == "openai" or provider in recording_litellm().openai_compatible_providers
    ):
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        parts = parts._replace(query="")
    return urlunsplit(parts), headers, query


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


# -- prices


def token_cost(
    model: Model,
    prompt_tokens: int | None,
    completion_tokens: int | None,
    *,
    cached: int | None = None,
    cache_write: int | None = None,
) -> float | None:
    """Return US dollars by `Model.price`, else by litellm's own list.

    cached, cache_write: those of the prompt's tokens that were read from the provider's cache, and
    written into it. None if the price or the tokens are unknown. Free models cost 0.0, which is a
    known price.
    """
    if prompt_tokens is None or completion_tokens is None:
        return None
    price: tuple[float, float, float, float] | None
    if model.price is not None:  # the user's own always wins: lists are old, and contracts differ
        sent, received, *read = model.price
        price = (sent, received, read[0] if read else sent, sent)
    elif is_local(model.name):
        price = (0.0, 0.0, 0.0, 0.0)
    else:
        price = _listed_price(model.name, _MILLION if prompt_tokens > _LONG_PROMPT else 1000)
    if price is None:
        return None
    cached, cache_write = cached or 0, cache_write or 0
    full = max(0, prompt_tokens - cached - cache_write)
    cost = full * price[0] + completion_tokens * price[1]
    return (cost + cached * price[2] + cache_write * price[3]) / _MILLION


@functools.lru_cache(maxsize=256)
def _listed_price(name: str, tokens: int) -> tuple[float, float, float, float] | None:
    # US dollars per million tokens: input, output, cached input, input written into the cache.
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
    return (
        sent,
        received,
        sent if read is None else float(read) * _MILLION,
        sent if written is None else float(written) * _MILLION,
    )


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


def count_tokens(text: str) -> int:
    """Return the tokens of a text by OpenAI's cl100k_base: an estimate for any other model."""
    return len(litellm_module().encode(model="", text=text))


def estimate_tokens(request: Request) -> tuple[int, int]:
    # Of prompt and answer, rather too many than too few. No tokenizer is asked: it would be the
    # wrong one for most models, and cost more than the call's bookkeeping.
    text = write_canonical([list(request.messages), list(request.tools)])
    params = request.sent_params
    # Few tokens are shorter than three bytes; 8 more are for what a chat template adds.
    prompt_tokens = len(text.encode("utf-8", "surrogatepass")) // 3 + 8
    limit = params.get("max_completion_tokens") or params.get("max_tokens") or _DEFAULT_ANSWER
    answers = params.get("n") or 1
    return prompt_tokens, int(limit) * int(answers)


def estimate_cost(request: Request) -> float | None:
    """Return US dollars at most, by that estimate, or None if no price is known: the sum that a
    limit reserves for a call in flight.
    """
    return token_cost(request.model, *estimate_tokens(request))


# -- parameters

# What a model takes. litellm checks names and values of parameters when it translates a request,
# and raises for the first that the model does not take. So the translation is tried without
# sending, with all parameters first, and if that is refused with one after the other: what is
# refused then is not sent. The tables of litellm say nothing of servers that may run any model;
# there the endpoint's own refusal counts, which `note_refusal` keeps for the rest of the process.

LENGTHS = ("max_tokens", "max_completion_tokens")
"""Two names of one parameter."""
# They decide whether others are taken, so they are tried first.
_DECIDING = ("reasoning_effort", "thinking")
# Constraints of the sampler, known to servers of one's own. Providers refuse them or ignore them.
_CONSTRAINTS = (
    "grammar", "guided_choice", "guided_grammar", "guided_json", "guided_regex",
    "structured_outputs",
)  # fmt: skip
_SERVERS = ("hosted_vllm", "vllm", "llamafile", "lm_studio", "ollama", "ollama_chat")
_TOOL = {
    "type": "function",
    "function": {"name": "f", "parameters": {"type": "object", "properties": {}}},
}


@dataclass(frozen=True, slots=True)
class Untaken:
    """A parameter that a model does not take.

    why: one clause. sent_as: the name under which it is sent instead, "" if it is not sent.
    value_alone: the parameter is known there, and takes other values.
    """

    name: str
    value: Any
    why: str
    sent_as: str = ""
    value_alone: bool = False


def untaken(model: Model, params: Mapping[str, Any], *, tools: bool = False) -> list[Untaken]:
    """Return those of these parameters that the model does not take. None values are not asked.

    params: the model's own among them. Names in its `allowed_openai_params` are taken on the
    caller's word. tools: the request offers tools. A model that litellm cannot route takes all:
    the run says what is wrong with it.
    """
    allowed = params.get("allowed_openai_params") or ()
    asked = {k: v for k, v in params.items() if v is not None and k not in allowed}
    if is_local(model.name) or not asked:
        return []
    try:
        provider = provider_of(model.name)
    except (UnknownName, MissingExtra):
        return []
    # A server of one's own, whose sampler can be bound. OpenAI's address may be another one, by the
    # environment; its models have their names.
    is_server = bool(model.api_base) or provider in _SERVERS
    if not is_server and provider == "openai":
        is_server = model.name.split("/")[-1] not in recording_litellm().model_cost

    left_out = []
    refused = _refused_earlier(model, asked)
    for name in [name for name in _CONSTRAINTS if name in asked]:
        value = asked.pop(name)
        why = refused.pop(name, None if is_server else "for servers of one's own")
        if why is not None:
            left_out.append(Untaken(name, value, why))
    refused |= {name: why for name, why in _while_thinking(model, asked) if name not in refused}
    kept = {k: v for k, v in asked.items() if k not in refused}
    listed = dict(_by_tables(model.name, json.dumps(kept, default=str), tools))
    for name in (*refused, *listed):
        other = ""
        if name in LENGTHS:  # the model may take the other name
            other = LENGTHS[1 - LENGTHS.index(name)]
            probe = {other: asked[name]}
            untried = other not in asked and not _refused_earlier(model, probe)
            if not untried or _by_tables(model.name, json.dumps(probe), tools):
                other = ""
        why = refused.get(name, "by litellm's tables")
        left_out.append(Untaken(name, asked[name], why, other, listed.get(name, False)))
    return left_out


# What litellm's tables do not say. Anthropic, "Extended thinking", section "Feature compatibility":
# thinking is not compatible with changes of temperature or top_k, and takes top_p from 0.95 to 1.
_THINKING = "while it thinks, by Anthropic's rule"


def _while_thinking(model: Model, asked: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if "claude" not in model.name.lower():
        return
    effort, thinking = asked.get("reasoning_effort"), asked.get("thinking")
    off = isinstance(thinking, Mapping) and thinking.get("type") == "disabled"
    if off or (effort in (None, "none", "disable") and not thinking):
        return
    top_p = asked.get("top_p")
    if asked.get("temperature") not in (None, 1):
        yield "temperature", _THINKING
    if asked.get("top_k") is not None:
        yield "top_k", _THINKING
    if isinstance(top_p, (int, float)) and not 0.95 <= top_p <= 1:
        yield "top_p", _THINKING


@functools.lru_cache(maxsize=4096)
def _by_tables(name: str, params_json: str, tools: bool) -> tuple[tuple[str, bool], ...]:
    # Refused ones; True with those of which the model takes other values.
    params: dict[str, Any] = json.loads(params_json)
    litellm = recording_litellm()
    model, provider = litellm.get_llm_provider(model=name)[:2]
    known = frozenset(litellm.utils.DEFAULT_CHAT_COMPLETION_PARAM_VALUES)
    try:
        listed = litellm.get_supported_openai_params(model=model, custom_llm_provider=provider)
    except Exception:
        listed = None
    taken = known if listed is None else frozenset(listed)
    offered = {"tools": [_TOOL]} if tools else {}

    def refuses(chosen: Mapping[str, Any]) -> bool:
        if litellm.drop_params:  # it then drops silently what it does not list
            return any(k in known and k not in taken for k in chosen)
        try:
            with unchanged_switches:
                litellm.utils.get_optional_params(
                    model=model, custom_llm_provider=provider, **offered, **chosen
                )
        except litellm.UnsupportedParamsError:
            return True
        except Exception:  # any other failure is about the value, and the endpoint's to explain
            return False
        return False

    if not refuses(params) and not litellm.drop_params:
        return ()
    kept: dict[str, Any] = {}
    out = []
    for key in sorted(params, key=lambda k: k not in _DECIDING):
        if refuses({**kept, key: params[key]}):
            out.append((key, key in taken))
        else:
            kept[key] = params[key]
    return tuple(out)


# -- what an endpoint refused

_lock = threading.Lock()
# (model, endpoint) -> pairs of a parameter's name and shape.
_refused: dict[tuple[str, str], set[tuple[str, str]]] = {}
# Words for a parameter that is not known at all; others are about its value.
_NOT_TAKEN = re.compile(
    r"(?i)unsupported|(?:not|n't) (?:\w+ )?(?:support|permit|allow|accept)|unrecogni[sz]ed"
    r"|unknown|unexpected|extra inputs|extra fields|deprecated|no longer|not available"
)
_IN_BODY = re.compile(r"""["']param["']:\s*["']([\w.\[\]]+)["']""")
# Names of providers for parameters of OpenAI's.
_ALSO = {
    "max_tokens": ("maxTokens", "max_output_tokens", "maxOutputTokens", "num_predict"),
    "max_completion_tokens": ("max_tokens", "max_output_tokens"),
    "top_p": ("topP",),
    "top_k": ("topK",),
    "stop": ("stop_sequences", "stopSequences"),
    "seed": ("random_seed",),
}
_NO_WORDS = ("temperature", "logprobs")


def shape_of(name: str, value: Any) -> Any:
    # What of a value decides whether it is taken: not seeds and strings, nor the contents of a
    # schema.
    if name in ("seed", *_CONSTRAINTS, *LENGTHS):
        return ""
    if isinstance(value, Mapping):
        return str(value.get("type", "{}"))
    return "[]" if isinstance(value, (list, tuple)) else value


def note_refusal(model: Model, params: Mapping[str, Any], name: str, message: str) -> None:
    """Keep that an endpoint does not take a parameter, where that is what its message says."""
    if name in params and _NOT_TAKEN.search(message):
        with _lock:
            of_model = _refused.setdefault((model.name, model.endpoint), set())
            of_model.add((name, repr(shape_of(name, params[name]))))


def forget_refusals() -> None:
    """Ask every endpoint again: for a server that was replaced in the life of this process."""
    with _lock:
        _refused.clear()


def _refused_earlier(model: Model, params: Mapping[str, Any]) -> dict[str, str]:
    refused = _refused.get((model.name, model.endpoint))
    if not refused:
        return {}
    shapes = ((name, repr(shape_of(name, value))) for name, value in params.items())
    return {pair[0]: "refused by the endpoint" for pair in shapes if pair in refused}


def shapes_sent(request: Request) -> dict[str, str]:
    """Return the parameters that a request sends, tools among them, each with as much of its value
    as decides whether it is taken.
    """
    params = {name: value for name, value in request.sent_params.items() if value is not None}
    if request.tools:
        params["tools"] = True
    return {name: repr(shape_of(name, value)) for name, value in params.items()}


def refused_param(message: str, params: Iterable[str]) -> str | None:
    """Return the one of these parameters that the message of a refused request is about, or None.

    message: the endpoint's words, or its body.
    """
    names = list(params)
    if stated := _IN_BODY.search(message):
        # A path such as tools[0].name is about the question, and no parameter's.
        by_spelling = {s: n for n in names for s in (*_ALSO.get(n, ()), n)}
        return by_spelling.get(stated[1])
    found = [(at, name) for name in names for at in _mentions(name, message)]
    return min(found)[1] if found else None


def _mentions(name: str, message: str) -> Iterator[int]:
    # A name that is an ordinary word, such as stop, counts only where it is marked as a name.
    for spelling in (name, *_ALSO.get(name, ())):
        word = re.escape(spelling)
        ordinary = spelling.isalpha() and spelling.islower() and spelling not in _NO_WORDS
        pattern = rf"""[`'"]{word}[`'"]|\bparameters?:? {word}\b|(?:^|: ){word}: """
        if not ordinary:
            pattern += rf"|(?<![\w.]){word}(?!\w)"
        if match := re.search(pattern, message):
            yield match.start()
