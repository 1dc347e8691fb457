"""What a model takes of a request's parameters: asked before anything is sent, by litellm's own
tables and by what an endpoint refused earlier in this process.
"""

from __future__ import annotations

import functools
import json
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..core.errors import MissingExtra, UnknownName
from .exchange.types import Model, Request
from .litellm_door import recording_litellm
from .litellm_faults import unchanged_switches
from .local.provider import is_local
from .routes import provider_of

# How it works. litellm checks names and values of parameters when it translates a request, and
# raises for the first that the model does not take. So the translation is tried without sending,
# with all parameters first, and if that is refused with one after the other: what is refused then
# is not sent. The tables of litellm say nothing of servers with any model behind them; there the
# endpoint's own refusal counts, which `note_refusal` keeps for the rest of the process.

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
        provider_of(model.name)
    except (UnknownName, MissingExtra):
        return []
    constraints = {k: asked.pop(k) for k in _CONSTRAINTS if k in asked}
    found = [_of_constraint(model, name, value) for name, value in constraints.items()]
    left_out = [u for u in found if u is not None]
    refused = _refused_earlier(model, asked)
    kept = {k: v for k, v in asked.items() if k not in refused}
    listed = dict(_by_tables(model.name, json.dumps(kept, default=str), tools))
    for name in (*refused, *listed):
        why = refused.get(name, "by litellm's tables")
        other = _other_length(model, name, asked, tools)
        left_out.append(Untaken(name, asked[name], why, other, listed.get(name, False)))
    return left_out


def _of_constraint(model: Model, name: str, value: Any) -> Untaken | None:
    why = _refused_earlier(model, {name: value}).get(name)
    if why is None and not _is_server(model):
        why = "for servers of one's own"
    return None if why is None else Untaken(name, value, why)


def _is_server(model: Model) -> bool:
    # A server of one's own: its sampler can be bound.
    provider = provider_of(model.name)
    if model.api_base or provider in _SERVERS:
        return True
    # OpenAI's address may be another one, by the environment; its models have their names.
    return provider == "openai" and model.name.split("/")[-1] not in recording_litellm().model_cost


def _other_length(model: Model, name: str, asked: Mapping[str, Any], tools: bool) -> str:
    # None if the model does not take it.
    if name not in LENGTHS:
        return ""
    other = LENGTHS[1 - LENGTHS.index(name)]
    probe = {other: asked[name]}
    if other in asked or _refused_earlier(model, probe):
        return ""
    return "" if _by_tables(model.name, json.dumps(probe), tools) else other


@functools.lru_cache(maxsize=4096)
def _by_tables(name: str, params_json: str, tools: bool) -> tuple[tuple[str, bool], ...]:
    # Refused ones; True with those of which the model takes other values.
    params: dict[str, Any] = json.loads(params_json)
    litellm = recording_litellm()
    model, provider = litellm.get_llm_provider(model=name)[:2]
    listed = _listed(litellm, model, provider)
    offered = {"tools": [_TOOL]} if tools else {}

    def refuses(chosen: Mapping[str, Any]) -> bool:
        if litellm.drop_params:  # it then drops silently what it does not list
            return any(k in listed.known and k not in listed.taken for k in chosen)
        try:
            with unchanged_switches(litellm):
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
    order = sorted(params, key=lambda k: k not in _DECIDING)
    kept: dict[str, Any] = {}
    out = []
    for key in order:
        if refuses({**kept, key: params[key]}):
            out.append((key, key in listed.taken))
        else:
            kept[key] = params[key]
    return tuple(out)


@dataclass(frozen=True, slots=True)
class _Listed:
    # known: all parameters of litellm's tables. taken: those listed for a model.
    known: frozenset[str]
    taken: frozenset[str]


def _listed(litellm: Any, model: str, provider: str) -> _Listed:
    known = frozenset(litellm.utils.DEFAULT_CHAT_COMPLETION_PARAM_VALUES)
    try:
        taken = litellm.get_supported_openai_params(model=model, custom_llm_provider=provider)
    except Exception:
        taken = None
    return _Listed(known, known if taken is None else frozenset(taken))


# -- what an endpoint refused

_lock = threading.Lock()
_refused: dict[tuple[str, str], dict[tuple[str, str], str]] = {}
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
    if name not in params or not _NOT_TAKEN.search(message):
        return
    shape = repr(shape_of(name, params[name]))
    with _lock:
        of_model = _refused.setdefault((model.name, model.endpoint), {})
        of_model[name, shape] = "refused by the endpoint"


def forget_refusals() -> None:
    """Ask every endpoint again: for a server that was replaced in the life of this process."""
    with _lock:
        _refused.clear()


def _refused_earlier(model: Model, params: Mapping[str, Any]) -> dict[str, str]:
    refused = _refused.get((model.name, model.endpoint))
    if not refused:
        return {}
    return {pair[0]: refused[pair] for pair in _shapes(params) if pair in refused}


def _shapes(params: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(name, repr(shape_of(name, value))) for name, value in params.items()]


def shapes_sent(request: Request) -> dict[str, str]:
    """Return the parameters that a request sends, tools among them, each with as much of its value
    as decides whether it is taken.
    """
    params = {name: value for name, value in request.sent_params.items() if value is not None}
    return dict(_shapes({**params, "tools": True} if request.tools else params))


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


_NO_WORDS = ("temperature", "logprobs")
