"""The word 'model' among a plan's protocols: each model in the format it writes by its training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..core.errors import UnknownProtocol
from ..formats.models import protocol_for, reason_for
from ..parser.any_protocol import listed_names
from ..runner.exchange.model import Model
from .arms import Arm, prompt_protocol, prompt_protocols

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
