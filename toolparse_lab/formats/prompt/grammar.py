"""Grammars in GBNF, as llama.cpp reads it, under which a model can only write one well-formed call.

This module holds the parts that every format needs: JSON values and the rules they share. The
grammar of a format is written next to its codec and derives from `GrammarWriter`.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...core.errors import BadToolSpec
from ...core.toolspec import ToolSpec
from ...core.values import write_canonical
from .shape import (
    alternatives_of,
    choices_of,
    items_of,
    kind_of,
    positions_of,
    properties_of,
    resolve,
)

# Rules that do not depend on a schema. None of them uses another; see `shared_rules`.
_SHARED = {
    # At most 15 significant digits, which a double keeps.
    "integer": '"0" | "-"? [1-9] [0-9]{0,14}',
    "natural": '"0" | [1-9] [0-9]{0,14}',
    "number": '"0" | "-"? [1-9] [0-9]{0,8} | "-"? ("0" | [1-9] [0-9]{0,8}) "." [0-9]{1,6}',
    "positive": '("0" | [1-9] [0-9]{0,8}) ("." [0-9]{1,6})?',
    "date": '[12] [0-9]{3} "-" ("0" [1-9] | "1" [0-2]) "-" ("0" [1-9] | "1" [0-9] | "2" [0-8])',
    "clock": '([01] [0-9] | "2" [0-3]) ":" [0-5] [0-9] ":" [0-5] [0-9] "Z"',
    "email": '[a-z] [a-z0-9_]{0,19} "@" [a-z] [a-z0-9]{0,14} "." ("com" | "org" | "net" | "de" | '
    '"example")',
    # A blank is only allowed before something visible, so that no value is padded and none is
    # endless blanks.
    "jchar": r'" "? ([^"\\\x00-\x20\x7F] | "\\" ["\\nt])',
    "jsafe": r'" "? ([^"\\<&\x00-\x20\x7F] | "\\" ["\\nt])',
    # YAML takes a JSON string, but not every character of one.
    "ychar": r'" "? ([^"\\<\x00-\x20\x7F-\x9F\u2028\u2029\uFEFF\uFFFE\uFFFF] | "\\" ["\\nt])',
    "xchar": r'[ \n]? ([^<&\x00-\x20\x7F] | "&lt;" | "&amp;")',
    "xfirst": r'[^<&\x00-\x20\x7F] | "&lt;" | "&amp;"',
    # Where a schema limits the length, a blank counts as a character of its own.
    "jany": r'[^"\\\x00-\x1F\x7F] | "\\" ["\\nt]',
    "jsafeany": r'[^"\\<&\x00-\x1F\x7F] | "\\" ["\\nt]',
    "yany": r'[^"\\<\x00-\x1F\x7F-\x9F\u2028\u2029\uFEFF\uFFFE\uFFFF] | "\\" ["\\nt]',
    "xany": r'[^<&\x00-\x1F\x7F] | "&lt;" | "&amp;"',
    # Free keys of one object begin in different parts of the alphabet, so that no two are the same.
    "key1": "[a-f] [a-z0-9_]{0,15}",
    "key2": "[g-m] [a-z0-9_]{0,15}",
    "key3": "[n-s] [a-z0-9_]{0,15}",
    "key4": "[t-z] [a-z0-9_]{0,15}",
}
_RULE_NAME = re.compile(r"[a-z]+\d*")
# The names in a grammar, searched once its terminals are blanked out.
_RULE_USES = re.compile(r"(?<![\w-])([a-z]+\d*)(?![\w-])")
_TERMINALS = re.compile(r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]')
_ESCAPES = str.maketrans(
    {chr(code): f"\\x{code:02X}" for code in (*range(0x20), 0x7F)}
    | {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\"}
)

FORMATS = {"date": "date", "email": "email", "date-time": 'date "T" clock', "time": "clock"}
"""A schema's `format` -> the expression of its texts."""


@dataclass(frozen=True, slots=True)
class Alphabet:
    """The characters that JSON text may hold at one place.

    visible: the rule for a character, which takes a blank before it. counted: the rule for a
    character where the schema limits the length. escape: JSON text as it is written there.
    """

    visible: str
    counted: str
    escape: Callable[[str], str] = str


def _escapes(characters: str) -> Callable[[str], str]:
    # JSON's own escapes say the same, so that no second layer of escapes is needed.
    pattern = re.compile(characters)
    return lambda text: pattern.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


PLAIN = Alphabet("jchar", "jany")
IN_XML = Alphabet("jsafe", "jsafeany", _escapes("[<&]"))
# Characters that YAML refuses in a double-quoted string, and the one that would open a tag.
_NOT_YAML = "[<\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]"
IN_YAML = Alphabet("ychar", "yany", _escapes(_NOT_YAML))


def literal(text: str) -> str:
    r"""Return the GBNF terminal for exactly this text.

    >>> literal('a"b\n')
    '"a\\"b\\n"'
    """
    return f'"{text.translate(_ESCAPES)}"'


def one_of(options: Sequence[str]) -> str:
    """Return an expression for any of these, each once.

    options: expressions, at least one.

    >>> one_of(['"a"', '"b"', '"a"']), one_of(['"a"'])
    ('("a" | "b")', '"a"')
    """
    unique = list(dict.fromkeys(options))
    if len(unique) == 1:
        return unique[0]
    return f"({' | '.join(unique)})"


def is_rule_name(expression: str) -> bool:
    """Return True if an expression is the name of a rule and nothing else."""
    return _RULE_NAME.fullmatch(expression) is not None


def shared_rules(grammar: str) -> list[str]:
    """Return the lines of the shared rules that a grammar uses.

    One look at the grammar suffices, since no shared rule uses another.
    """
    names = set(_RULE_USES.findall(_TERMINALS.sub(" ", grammar)))
    return [f"{name} ::= {body}" for name, body in _SHARED.items() if name in names]


# How it works. A schema is walked once, from the tool's arguments down. Every method returns the
# GBNF expression of one value. Long expressions become rules, and equal ones share a rule, so a
# grammar stays linear in its schema.
#
# Every language is finite: strings, lists and nesting are bounded, so that generation ends by
# itself. A text of the language satisfies the schema as far as a grammar can express it: types,
# choices, required and optional properties, lengths, small integer ranges, dates, e-mail
# addresses. `pattern`, wide ranges and conditions between properties are left to validation.
#
# Invariant: the expression of a value that cannot be completed within the depth bound is None. It
# travels up until an optional property, or another member of a union, absorbs it; at the root it
# becomes BadToolSpec.


MAX_TEXT = 80
"""Characters of a string whose schema sets no smaller limit."""
MAX_ITEMS = 5
"""Items of a list."""
MAX_DEPTH = 6
"""Levels of a schema that are followed; optional properties that lead deeper are left out."""
# Rules for the keys of an object whose schema names none; each may be used once.
_FREE_KEYS = ("key1", "key2", "key3", "key4")
# GBNF has no ranges over numbers: up to this many integers, each one is an alternative.
_MAX_RANGE = 200


def object_schema(tool: ToolSpec) -> Any:
    """Return the schema of a tool's arguments, which are always an object.

    A schema that names another type keeps it. One that is not a mapping at all admits any object.
    """
    schema = tool.schema
    if not isinstance(schema, Mapping):
        return {"type": "object"}
    return {"type": "object", **schema}


def bounds(node: Mapping[str, Any], low_key: str, high_key: str, limit: int) -> tuple[int, int]:
    """Return the least and the greatest size that a schema asks for.

    node: a resolved schema. low_key, high_key: its keywords for the two sizes. The greatest is at
    most `limit`, unless the least is above it. Values that make no sense, such as a negative size,
    are ignored.

    >>> bounds({"minItems": 2}, "minItems", "maxItems", 5)
    (2, 5)
    >>> bounds({"minItems": 9, "maxItems": -1}, "minItems", "maxItems", 5)
    (9, 9)
    """
    low = node.get(low_key, 0)
    if not isinstance(low, int) or low <= 0:
        low = 0

    high = node.get(high_key, limit)
    if not isinstance(high, int) or not 0 <= high <= limit:
        high = max(limit, low)
    return low, max(low, high)


def integer_bounds(node: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the least and the greatest integer that a schema admits, as it declares them.

    An exclusive bound goes before an inclusive one. None stands for a missing bound. Bounds that
    are not integers come back as they are.

    >>> integer_bounds({"exclusiveMinimum": 0, "maximum": 9})
    (1, 9)
    """
    low, high = node.get("minimum"), node.get("maximum")

    if isinstance(node.get("exclusiveMinimum"), int):
        low = node["exclusiveMinimum"] + 1
    if isinstance(node.get("exclusiveMaximum"), int):
        high = node["exclusiveMaximum"] - 1
    return low, high


class GrammarWriter(ABC):
    """Collects the rules of one grammar for calls of `tools`.

    A format derives from it and defines `call`. Raises BadToolSpec for a schema that nothing within
    the depth bound satisfies.

    rules: body -> name of the rules so far, so that equal bodies share one. root_schema: the schema
    of the tool that is being written, which `#` means in its references. calls: the expression of
    one call of each tool.
    """

    def __init__(self, tools: Sequence[ToolSpec]) -> None:
        self.rules: dict[str, str] = {}
        self.root_schema: Any = None
        self.calls = [self._call_of(tool) for tool in tools]

    def grammar(self, root: str) -> str:
        """Return the whole GBNF. `root` is the expression around the rule `call`."""
        lines = [f"root ::= {root}", f"call ::= {' | '.join(self.calls)}"]
        lines += [f"{name} ::= {body}" for body, name in self.rules.items()]
        text = "\n".join(lines)
        return "\n".join([text, *shared_rules(text)])

    def _call_of(self, tool: ToolSpec) -> str:
        self.root_schema = tool.schema
        call = self.call(tool)
        if call is None:
            raise BadToolSpec(
                f"nothing within {MAX_DEPTH} levels satisfies the schema of tool {tool.name!r}",
                got=tool.schema_json,
                hint="make the properties that lead deeper optional",
            )
        return call

    @abstractmethod
    def call(self, tool: ToolSpec) -> str | None:
        """Return the rule of one tool's call, None if no value within the depth bound fits."""

    def rule(self, body: str) -> str:
        # The name of a rule stands for itself.
        if is_rule_name(body):
            return body
        return self.rules.setdefault(body, f"v{len(self.rules) + 1}")

    # JSON values. Every format needs them: XML carries free objects and lists of lists as JSON.

    def json_value(self, schema: Any, depth: int, chars: Alphabet = PLAIN) -> str | None:
        """Return the expression of a JSON value that fits a schema.

        depth: the levels below this one that may still be followed. chars: the alphabet of the
        place where the value is written. None if nothing fits.
        """
        if depth < 0 or schema is False:
            return None

        node = resolve(schema, self.root_schema)
        match kind_of(node):
            case "choice":
                texts = [literal(self.json_text(value, chars)) for value in choices_of(node)]
                return one_of(texts) if texts else None
            case "union":
                members = alternatives_of(node, self.root_schema)
                values = [self.json_value(member, depth, chars) for member in members]
                possible = [value for value in values if value is not None]
                return one_of(possible) if possible else None
            case "array":
                return self._json_array(node, depth, chars)
            case "object":
                return self._json_object(node, depth, chars)
            case "any":
                text = self._json_string({}, chars)
                return one_of([text, "number", '"true"', '"false"', '"null"'])
            case "string":
                return self._json_string(node, chars)
            case kind:
                return self.bare(node, kind)

    def json_text(self, value: Any, chars: Alphabet) -> str:
        return chars.escape(write_canonical(value))

    def bare(self, node: Mapping[str, Any], kind: str) -> str:
        """Return the expression of a boolean, null, integer or number.

        node: its resolved schema. kind: one of these four words. They are written alike in JSON, as
        text of an element and in YAML.
        """
        if kind == "boolean":
            return '("true" | "false")'
        if kind == "null":
            return '"null"'
        if kind == "integer":
            return self._integer(node)

        # A number has too many values to count: only its sign can be enforced.
        low = node.get("exclusiveMinimum", node.get("minimum"))
        if isinstance(low, (int, float)) and low >= 0:
            return "positive"
        return "number"

    def _integer(self, node: Mapping[str, Any]) -> str:
        # all of a small range, else a rule for many
        low, high = integer_bounds(node)
        if not isinstance(low, int):
            return "integer"
        # A range that is empty by mistake is not enforced: no call would be possible.
        if isinstance(high, int) and 0 <= high - low <= _MAX_RANGE:
            return self.rule(one_of([f'"{n}"' for n in range(low, high + 1)]))
        return "natural" if low >= 0 else "integer"

    def _json_string(self, node: Mapping[str, Any], chars: Alphabet) -> str:
        # If the schema limits the length, each character counts, else a blank counts with the
        # character after it.
        text = FORMATS.get(str(node.get("format")))
        if text:
            return self.rule(f'"\\"" {text} "\\""')

        low, high = bounds(node, "minLength", "maxLength", MAX_TEXT)
        unit = chars.counted if "maxLength" in node else chars.visible
        return self.rule(f'"\\"" {unit}{{{low},{high}}} "\\""')

    def _json_array(self, node: Mapping[str, Any], depth: int, chars: Alphabet) -> str | None:
        # If no item is possible within the depth bound: the empty list, or None for a schema that
        # does not admit it.
        positions = [self.json_value(p, depth - 1, chars) for p in positions_of(node)]
        if positions:  # of a tuple: every one is filled
            possible = [value for value in positions if value is not None]
            if len(possible) < len(positions):
                return None
            return "(" + ' "[" ' + ' ", " '.join(possible) + ' "]" )'

        member = self.json_value(items_of(node), depth - 1, chars)
        low, high = bounds(node, "minItems", "maxItems", MAX_ITEMS)
        if member is None or high == 0:
            return None if low else '"[]"'

        # The first item has no comma before it, so that it is not among those that repeat.
        item = self.rule(member)
        several = f'{item} (", " {item}){{{max(low - 1, 0)},{high - 1}}}'
        if low:
            return self.rule(f'"[" {several} "]"')
        return self.rule(f'"[" ({several})? "]"')

    def _json_object(self, node: Mapping[str, Any], depth: int, chars: Alphabet) -> str | None:
        # Optional properties that are not possible drop out. None if a required one is not.
        required: list[str] = []
        optional: list[str] = []
        for name, schema, needed in properties_of(node):
            value = self.json_value(schema, depth - 1, chars)
            if value is None:
                if needed:
                    return None
                continue

            pair = f"{literal(self.json_text(name, chars) + ': ')} {value}"
            pairs = required if needed else optional
            pairs.append(pair)

        # Behind a required property every optional one has its comma before it.
        if required:
            tail = "".join(f' (", " {pair})?' for pair in optional)
            return self.rule('"{" (' + ' ", " '.join(required) + f'){tail} "}}"')

        if optional:
            return self._any_of(optional)
        # Of an object whose schema names no keys. Without a schema for its values this is the empty
        # object: free values would only be noise.
        extra = node.get("additionalProperties")
        value = self.json_value(extra, depth - 1, chars) if isinstance(extra, Mapping) else None
        if value is None:
            return '"{}"'
        return self._any_of([self.rule(f'"\\"" {key} "\\": " {value}') for key in _FREE_KEYS])

    def _any_of(self, pairs: Sequence[str]) -> str:
        # Whichever pair comes first has no comma before it: one alternative for each first pair.
        starts = (
            pair + "".join(f' (", " {later})?' for later in pairs[i + 1 :])
            for i, pair in enumerate(pairs)
        )
        return self.rule('"{" (' + " | ".join(starts) + ')? "}"')
