"""The type rules of prompts for values in YAML 1.2, where a string needs quotes only at times."""

from __future__ import annotations

from ..prompt.type_rules import (
    ARRAY,
    BARE_INTEGER,
    BARE_NUMBER,
    BOOLEAN,
    OBJECT,
    STRING,
    TypeRule,
    TypeRules,
)

# The wrong boolean is `yes`: YAML 1.1 read it as true, version 1.2 reads it as text.
YAML_TYPE_RULES = TypeRules(
    (
        BARE_NUMBER,
        BARE_INTEGER,
        TypeRule(
            BOOLEAN,
            "boolean",
            "enabled",
            "true",
            "yes",
            "A boolean is the bare word true or false.",
        ),
        TypeRule(
            STRING,
            "string",
            "code",
            '"0042"',
            "0042",
            "A string is plain text; one that looks like a number or a boolean stands in quotes.",
        ),
        TypeRule(
            ARRAY,
            "array",
            "tags",
            "[red, blue]",
            "red, blue",
            "An array is a list in square brackets, or one line with a dash for each item.",
        ),
        TypeRule(
            OBJECT,
            "object",
            "size",
            "{w: 3, h: 4}",
            '"w: 3, h: 4"',
            "An object is a mapping of its own, not a string that holds one.",
        ),
    ),
    pair="{name}: {value}",
)
