"""The type rules of prompts for calls written in Python: its literals, not those of JSON."""

from __future__ import annotations

from ..prompt.type_rules import make_rules

# JSON's words for booleans and null are names in Python, so these rules cannot be JSON's.
PYTHON_TYPE_RULES = make_rules(
    "{name}={value}",
    ("boolean", "enabled", "True", '"True"', "A boolean is the bare word True or False."),
    (
        *("string", "city", '"Tokyo"', "Tokyo"),
        "A string always stands in quotes, also when it looks like a number.",
    ),
    (
        *("array", "tags", '["red", "blue"]', '"red, blue"'),
        "An array is a list in square brackets, not one string.",
    ),
    (
        *("object", "size", '{"w": 3, "h": 4}', "\"{'w': 3, 'h': 4}\""),
        "An object is a dict in braces with quoted keys, not a string that holds one.",
    ),
)
