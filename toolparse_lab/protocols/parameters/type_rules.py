"""The type rules of prompts for formats whose values stand between parameter tags."""

from __future__ import annotations

from ...prompt.type_rules import JSON_TYPE_RULES, TypeRules
from ..xml.type_rules import BARE_SCALARS
from .form import TagForm


def tag_type_rules(form: TagForm) -> TypeRules:
    """Return the rules in the words of one format: scalars are bare text, all else is JSON.

    form: the constants of the format, by which the example of a parameter is written.
    """
    structures = JSON_TYPE_RULES.rules[len(BARE_SCALARS) :]
    pair = f"{form.tag(form.parameter, '{name}')}{{value}}</{form.parameter}>"
    return TypeRules((*BARE_SCALARS, *structures), pair)
