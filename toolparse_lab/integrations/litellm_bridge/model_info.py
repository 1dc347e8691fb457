"""What litellm is told of a model string of the bridge: that it calls tools, and its cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...core.errors import BadOptions
from .options import middleware_for

PROVIDER = "toolparse"
# Abilities that a model has by the bridge, whatever the model below it has.
_ABILITIES = ("supports_function_calling", "supports_tool_choice")
_PRICES = ("input_cost_per_token", "output_cost_per_token")
# Short names that models of different prices share.
_ambiguous: set[str] = set()
_CACHE_PRICES = (
    "cache_creation_input_token_cost",
    "cache_read_input_token_cost",
    "tiered_pricing",
)


def register_models(litellm: Any, models: Iterable[str]) -> None:
    """Tell litellm that these model strings call tools, and their cost: as much as the models below
    them, where its list has those.

    litellm: the module, with the provider in it. models: `toolparse/<protocol>/<model>`, several.
    Raises BadOptions, and UnknownProtocol for a string that names no protocol. Nothing is
    registered then.
    """
    if isinstance(models, str):
        raise BadOptions("models is a list of model strings", got=models, expected=[models])
    entries = {name: _entry_of(litellm, name) for name in models}
    if entries:
        entries.update(_short_entries(litellm, entries))
        litellm.register_model(entries)


def _short_entries(litellm: Any, entries: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the entries of priced models once more, under the name that an answer has: a stream's
    cost is looked up by `toolparse/` and that.

    Where two models of one name cost differently none of them has such an entry: an unknown cost is
    better than a wrong one.
    """
    short: dict[str, Any] = {}
    for name, entry in entries.items():
        alias = f"{PROVIDER}/{name.split('/', 3)[-1]}"
        before = short.get(alias) or litellm.model_cost.get(alias)
        if before is not None and any(before.get(key) != entry.get(key) for key in _PRICES):
            _ambiguous.add(alias)
        if "input_cost_per_token" in entry:
            short[alias] = entry
    for alias in _ambiguous:
        short.pop(alias, None)
        litellm.model_cost.pop(alias, None)
    return short


def _entry_of(litellm: Any, name: str) -> dict[str, Any]:
    """Return the entry of one model string in litellm's list."""
    entry = {**_below(litellm, _model_below(name)), "litellm_provider": PROVIDER, "mode": "chat"}
    entry.update(dict.fromkeys(_ABILITIES, True))
    entry.pop("supported_openai_params", None)  # those of the provider, not of this one
    # litellm bills nothing for cached tokens without a price, and logs that it does so for every
    # model that is registered; where the price says so, there is nothing to log.
    if "input_cost_per_token" in entry and not any(entry.get(key) for key in _CACHE_PRICES):
        entry["cache_read_input_token_cost"] = 0.0
    return entry


def _model_below(name: str) -> str:
    """Return the model string inside one of the bridge.

    Raises BadOptions and UnknownProtocol.
    """
    words = name.split("/", 2) if isinstance(name, str) else []
    if len(words) < 3 or words[0] != PROVIDER or not words[2]:
        raise BadOptions(
            "not a model string of the bridge",
            got=name,
            expected="toolparse/<protocol>/<provider>/<model>",
        )
    middleware_for(words[1], {})
    return words[2]


def _below(litellm: Any, model: str) -> Mapping[str, Any]:
    """litellm's entry of a model, {} where it has none.

    Only the list is looked into: litellm's own function asks some providers over the network.
    """
    prices = litellm.model_cost
    entry = prices.get(model)
    if entry is None:
        # Most models stand in the list without their provider, which is then a member.
        provider, _, bare = model.partition("/")
        entry = prices.get(bare)
        if entry is not None and not str(entry.get("litellm_provider")).startswith(provider):
            entry = None
    return dict(entry or {})
