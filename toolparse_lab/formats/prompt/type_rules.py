"""Layer 1 of type safety: a prompt's rules about types, each with a right and a wrong example.

A rule uses the notation of one format: `"enabled": true` is advice for JSON and wrong for Python
calls. So each protocol has its own `TypeRules`. Those of JSON are in this module, because most
formats carry JSON. The others are in the folders of their formats.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

RulesLevel: TypeAlias = bool | Literal["pairs"]
"""How much a prompt says of types: nothing, the rules, or the rules and a block of pairs."""
_SCALARS = ("number", "integer", "boolean", "string")


@dataclass(frozen=True, slots=True)
class TypeRule:
    """One rule.

    parameter: the name used in the examples. example, anti_pattern: its value as the format writes
    it, right and wrong. description: one sentence for the model.
    """

    json_type: str
    parameter: str
    example: str
    anti_pattern: str
    description: str


@dataclass(frozen=True, slots=True)
class TypeRules:
    """The rules of one format, and its notation for a parameter with its value.

    pair: the notation, a text with the places `{name}` and `{value}`.

    >>> print(TypeRules(JSON_TYPE_RULES.rules[1:2], "{name}={value}").render())
    - integer: An integer has no quotes and no decimal point. CORRECT: count=10  WRONG: count="10"
    """

    rules: tuple[TypeRule, ...]
    pair: str = '"{name}": {value}'

    def render(self) -> str:
        """Return the rules as prompt text.

        Each is a line with the type, the sentence and a CORRECT and a WRONG example.
        """
        lines = []
        for rule in self.rules:
            right = self.write_pair(rule.parameter, rule.example)
            wrong = self.write_pair(rule.parameter, rule.anti_pattern)
            lines.append(f"- {rule.json_type}: {rule.description} CORRECT: {right}  WRONG: {wrong}")
        return "\n".join(lines)

    def render_pairs(self) -> str:
        """Return two blocks for a prompt: right parameters, and the same ones wrong.

        >>> print(TypeRules(JSON_TYPE_RULES.rules[:2], "{name}={value}").render_pairs())
        CORRECT:
          lat=35.6897
          count=10
        WRONG:
          lat="35.6897"
          count="10"
        """
        rules = [rule for rule in self.rules if rule.json_type in _SCALARS]
        right = [f"  {self.write_pair(rule.parameter, rule.example)}" for rule in rules]
        wrong = [f"  {self.write_pair(rule.parameter, rule.anti_pattern)}" for rule in rules]
        return "\n".join(["CORRECT:", *right, "WRONG:", *wrong])

    def at(self, level: RulesLevel) -> str:
        """Return the words of a prompt at a level, "" for nothing."""
        if level == "pairs":
            return f"{self.render()}\n\n{self.render_pairs()}"
        return self.render() if level else ""

    def write_pair(self, name: str, value: str) -> str:
        """Return a parameter with its value, as the format writes them."""
        # Not str.format: JSON values are full of braces.
        return self.pair.replace("{name}", name).replace("{value}", value)


# JSON, YAML and Python write numbers alike, as digits without quotes.
def make_rules(pair: str, *rows: tuple[str, str, str, str, str]) -> TypeRules:
    """Return rules with those of bare numbers before them.

    rows: (type, parameter, example, anti-pattern, description) of each further type.
    """
    return TypeRules((BARE_NUMBER, BARE_INTEGER, *(TypeRule(*row) for row in rows)), pair)


BARE_NUMBER = TypeRule(
    *("number", "lat", "35.6897", '"35.6897"'),
    "A number is written in digits and never stands in quotes.",
)
BARE_INTEGER = TypeRule(
    "integer", "count", "10", '"10"', "An integer has no quotes and no decimal point."
)

JSON_TYPE_RULES = make_rules(
    '"{name}": {value}',
    ("boolean", "enabled", "true", '"true"', "A boolean is the bare word true or false."),
    (
        *("string", "city", '"Tokyo"', "Tokyo"),
        "A string always stands in double quotes, also when it looks like a number.",
    ),
    (
        *("array", "tags", '["red","blue"]', '"red, blue"'),
        "An array is a list in square brackets, not one string.",
    ),
    (
        *("object", "size", '{"w":3,"h":4}', '"{\\"w\\":3,\\"h\\":4}"'),
        "An object is written as an object, not as a string that holds one.",
    ),
)
