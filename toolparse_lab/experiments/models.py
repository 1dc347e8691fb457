"""The models of an experiment by alias, and the format that each writes by its training."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ..core.errors import BadPlan, UnknownName, UnknownProtocol
from ..formats.models import protocol_for, reason_for
from ..parser.foreign.protocol import listed_names
from ..runner.exchange.types import Model
from ..runner.local.provider import LOCAL_MODEL, is_local
from .arms import Arm, prompt_protocol, prompt_protocols

ModelLike: TypeAlias = Model | str
"""A Model, a litellm model string, or an alias that the lab knows."""
ModelsLike: TypeAlias = ModelLike | Mapping[str, ModelLike] | Iterable[ModelLike]
"""One model, several, or a mapping of alias to model."""


def model_map(models: ModelsLike) -> dict[str, Model]:
    """Return {alias: Model} from a mapping, a list, one Model or a litellm model string.

    Raises UnknownName for anything that is not a model, and BadPlan for none at all.
    """
    by_alias = {alias: _checked_model(alias, model) for alias, model in _model_pairs(models)}
    if not by_alias:
        raise BadPlan("there are no models to plan", expected="{alias: tp.Model(...)}")
    return by_alias


def _model_pairs(models: Any) -> list[tuple[Any, Any]]:
    # Unchecked. Models of a list are named by themselves.
    if isinstance(models, (Model, str)):
        models = [models]
    if isinstance(models, Mapping):
        return list(models.items())
    if isinstance(models, Iterable):
        return [(model.name if isinstance(model, Model) else model, model) for model in models]
    raise UnknownName(
        "these are no models", got=models, expected="{alias: tp.Model(...)}", code="unknown-model"
    )


def _checked_model(alias: Any, model: Any) -> Model:
    if isinstance(model, str):
        model = Model(model)
    # An alias is the name of a column's value, and of an argument on the command line.
    if not isinstance(alias, str) or not alias or not isinstance(model, Model):
        raise UnknownName(
            "this is no model",
            got=model,
            expected="a tp.Model or a litellm model string",
            code="unknown-model",
        )
    # A misspelt one would be looked for on the network, and fail only when it is asked.
    if is_local(model.name) and model.name != LOCAL_MODEL:
        raise UnknownName(
            "there is no embedded model of this name",
            got=model.name,
            expected=LOCAL_MODEL,
            hint=f"did you mean {LOCAL_MODEL}?",
            code="unknown-model",
        )
    return model


OWN = "model"
"""The name, among protocols, of the format that each model has of its own."""


@dataclass(frozen=True, slots=True)
class OwnFormats:
    """The formats of a plan's models, where the plan asks each model in its own.

    by_alias: alias -> id of the model's protocol, empty if no format is chosen by model. reasons:
    alias -> the reason. shared: ids of the protocols that all models are asked in.
    """

    by_alias: Mapping[str, str] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    shared: frozenset[str] = frozenset()

    def has(self, alias: str, arm: Arm) -> bool:
        """Return True if a model is asked in an arm."""
        own = self.by_alias.get(alias)
        return own is None or arm.prompt_protocol == own or arm.prompt_protocol in self.shared

    def lines(self) -> list[str]:
        """Return a line for each model: its format, and why."""
        return [
            f"format: {alias}: {protocol_id}, {self.reasons[alias]}"
            for alias, protocol_id in self.by_alias.items()
        ]


def own_formats(models: Mapping[str, Model], protocols: Any) -> tuple[Any, OwnFormats]:
    """Return the protocols of a plan, each 'model' replaced, and the formats it stood for.

    Raises UnknownProtocol for a model whose format is not known.
    """
    names = listed_names(protocols)
    if not any(isinstance(name, str) and name == OWN for name in names):
        return protocols, OwnFormats()

    others = [name for name in names if not (isinstance(name, str) and name == OWN)]
    shared = frozenset(map(prompt_protocol, prompt_protocols(others))) if others else frozenset()
    by_alias = {alias: _format_of(alias, model) for alias, model in models.items()}
    reasons = {alias: reason_for(model.name) for alias, model in models.items()}
    ids = [id for id in dict.fromkeys(by_alias.values()) if id not in shared]
    return [*ids, *others], OwnFormats(by_alias, reasons, shared)


def _format_of(alias: str, model: Model) -> str:
    # The error names the alias.
    try:
        return protocol_for(model.name).id
    except UnknownProtocol as error:
        raise UnknownProtocol(
            error.message,
            got=f"{alias}: {model.name}",
            expected="a model of the table in docs/formats.md",
            hint=f"list its protocol in the place of {OWN!r}: an id, one of "
            "tp.Protocol.from_chat_template, or 'native'",
        ) from None
