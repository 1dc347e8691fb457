"""The type rules of prompts for formats whose values stand between parameter tags."""

from __future__ import annotations

from ..prompt.type_rules import JSON_TYPE_RULES, TypeRules
from ..xml.type_rules import BARE_SCALARS
from .shape import Form


def tag_type_rules(form: Form) -> TypeRules:
    structures = JSON_TYPE_RULES.rules[len(BARE_SCALARS) :]
    pair = f"{form.parameter_tag('{name}')}{{value}}{form.parameter_closer}"
    return TypeRules((*BARE_SCALARS, *structures), pair)
