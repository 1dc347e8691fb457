"""The models of an experiment by alias, from everything that callers pass for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from ..core.errors import BadPlan, UnknownName
from ..runner.exchange.types import Model
from ..runner.local.provider import LOCAL_MODEL, is_local

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
    """Return (alias, model) of every model, unchecked.

    Models of a list are named by themselves.
    """
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
    """Return a model, made from a litellm model string where it is one.

    Raises UnknownName.
    """
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
