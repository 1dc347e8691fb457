"""The type rules of prompts for formats whose values are the text of elements."""

from __future__ import annotations

from ..prompt.type_rules import ARRAY, BOOLEAN, INTEGER, NUMBER, OBJECT, STRING, TypeRule, TypeRules

# Between tags a scalar is bare text: quotes around it would become part of the value.
BARE_SCALARS = (
    TypeRule(
        NUMBER,
        "number",
        "lat",
        "35.6897",
        '"35.6897"',
        "A number is bare digits: no quotes, no unit.",
    ),
    TypeRule(
        INTEGER,
        "integer",
        "count",
        "10",
        "ten",
        "An integer is digits without a decimal point, never a word.",
    ),
    TypeRule(
        BOOLEAN,
        "boolean",
        "enabled",
        "true",
        "yes",
        "A boolean is the word true or the word false.",
    ),
    TypeRule(
        STRING,
        "string",
        "city",
        "Tokyo",
        '"Tokyo"',
        "A string is the plain text itself, without quotes around it.",
    ),
)

XML_TYPE_RULES = TypeRules(
    (
        *BARE_SCALARS,
        TypeRule(
            ARRAY,
            "array",
            "tags",
            "red</tags><tags>blue",
            "red, blue",
            "An array repeats its element, once for every item.",
        ),
        TypeRule(
            OBJECT,
            "object",
            "size",
            "<w>3</w><h>4</h>",
            '{"w":3,"h":4}',
            "An object holds one element for every field.",
        ),
    ),
    pair="<{name}>{value}</{name}>",
)
