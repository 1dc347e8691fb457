"""Layer 1 of type safety: what the prompt says about JSON types, as records with a right and a wrong example."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Form = Literal["json", "xml", "tags"]


@dataclass(frozen=True, slots=True)
class TypeRule:
    """One rule. `type_names` are the words by which schemas and capability lists ask for `json_type`.

    `parameter` is the name used in the examples; `example` and `anti_pattern` are JSON texts of its value, right and
    wrong; `description` is one sentence for the model.
    """

    type_names: tuple[str, ...]
    json_type: str
    parameter: str
    example: str
    anti_pattern: str
    description: str


TYPE_RULES = (
    TypeRule(
        ("number", "float", "float64", "double"),
        "number",
        "lat",
        "35.6897",
        '"35.6897"',
        "A number is written in digits and never stands in quotes.",
    ),
    TypeRule(
        ("integer", "int", "int32", "int64"),
        "integer",
        "count",
        "10",
        '"10"',
        "An integer has no quotes and no decimal point.",
    ),
    TypeRule(
        ("boolean", "bool"),
        "boolean",
        "enabled",
        "true",
        '"true"',
        "A boolean is the bare word true or false.",
    ),
    TypeRule(
        ("string", "str"),
        "string",
        "city",
        '"Tokyo"',
        "Tokyo",
        "A string always stands in double quotes, also when it looks like a number.",
    ),
    TypeRule(
        ("array", "list"),
        "array",
        "tags",
        '["red","blue"]',
        '"red, blue"',
        "An array is a list in square brackets, not one string.",
    ),
    TypeRule(
        ("object", "map", "dict"),
        "object",
        "size",
        '{"w":3,"h":4}',
        '"{\\"w\\":3,\\"h\\":4}"',
        "An object is written as an object, not as a string that holds one.",
    ),
)

# What an element's text may be is another rule than what a JSON value may be, so XML has its own sentences.
XML_TYPE_RULES = (
    TypeRule(
        TYPE_RULES[0].type_names, "number", "lat", "35.6897", '"35.6897"',
        "A number is bare digits: no quotes, no unit.",
    ),
    TypeRule(
        TYPE_RULES[1].type_names, "integer", "count", "10", "ten",
        "An integer is digits without a decimal point, never a word.",
    ),
    TypeRule(
        TYPE_RULES[2].type_names, "boolean", "enabled", "true", "yes",
        "A boolean is the word true or the word false.",
    ),
    TypeRule(
        TYPE_RULES[3].type_names, "string", "city", "Tokyo", '"Tokyo"',
        "A string is the plain text itself, without quotes around it.",
    ),
    TypeRule(
        TYPE_RULES[4].type_names, "array", "tags", "red</tags><tags>blue", "red, blue",
        "An array repeats its element, once for every item.",
    ),
    TypeRule(
        TYPE_RULES[5].type_names, "object", "size", "<w>3</w><h>4</h>", '{"w":3,"h":4}',
        "An object holds one element for every field.",
    ),
)  # fmt: skip

# Between parameter tags scalars are bare text, as in XML, and everything else is JSON.
TAG_TYPE_RULES = (*XML_TYPE_RULES[:4], *TYPE_RULES[4:])


def render_type_rules(form: Form = "json", rules: Sequence[TypeRule] | None = None) -> str:
    """The rules as prompt text: one line a rule with its type, sentence, CORRECT and WRONG example.

    >>> print(render_type_rules(rules=TYPE_RULES[1:2]))
    - integer: An integer has no quotes and no decimal point. CORRECT: "count": 10  WRONG: "count": "10"
    """
    if rules is None:
        rules = {"json": TYPE_RULES, "xml": XML_TYPE_RULES, "tags": TAG_TYPE_RULES}[form]
    return "\n".join(
        f"- {r.json_type}: {r.description} CORRECT: {_pair(r.parameter, r.example, form)}"
        f"  WRONG: {_pair(r.parameter, r.anti_pattern, form)}"
        for r in rules
    )


def _pair(name: str, value: str, form: Form) -> str:
    if form == "tags":
        return f"<parameter={name}>{value}</parameter>"
    return f"<{name}>{value}</{name}>" if form == "xml" else f'"{name}": {value}'


def rule_for(type_name: str) -> TypeRule | None:
    """The rule whose `type_names` hold this word, in any case; None where there is none."""
    return next((r for r in TYPE_RULES if type_name.lower() in r.type_names), None)
