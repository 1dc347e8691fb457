"""What prompts and grammars say of calls that are elements."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ...core.errors import UnwritableCall
from ...core.toolspec import ToolSpec
from ...core.values import write_canonical
from ..prompt.grammar import (
    FORMATS,
    IN_XML,
    MAX_DEPTH,
    MAX_ITEMS,
    MAX_TEXT,
    GrammarWriter,
    bounds,
    literal,
    object_schema,
    one_of,
)
from ..prompt.shape import (
    alternatives_of,
    choices_of,
    items_of,
    kind_of,
    positions_of,
    properties_of,
    resolve,
)
from ..prompt.type_rules import TypeRule, TypeRules

XML_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*")
_BARE_KINDS = ("null", "integer", "number", "boolean")


def element_grammar(tools: Sequence[ToolSpec]) -> str:
    return ElementGrammar(tools).grammar("call")


class ElementGrammar(GrammarWriter):
    """Writes parameters as elements, and objects as elements inside elements.

    As in `GrammarWriter`, None stands for anything that is not possible within `depth` more levels.
    """

    # Whether an object is written as elements; else it is JSON, as free objects always are.
    nested = True

    def call(self, tool: ToolSpec) -> str | None:
        children = self.children(object_schema(tool), MAX_DEPTH)
        if children is None:
            return None
        # Without parameters nothing but the line break is left.
        return self.element(tool.name, f'"\\n" {children}'.rstrip())

    def element(self, name: str, content: str) -> str:
        if not XML_NAME.fullmatch(name):
            raise UnwritableCall(
                "this name cannot be the name of an element", got=name, expected="an XML name"
            )
        return f"{literal(f'<{name}>')} {content} {literal(f'</{name}>')}"

    def children(self, schema: Any, depth: int) -> str | None:
        # One after the other; optional ones may be absent. None if a required one is not possible.
        parts: list[str] = []
        for name, child, needed in properties_of(resolve(schema, self.root_schema)):
            field = self.field(name, child, depth - 1)
            if field is not None:
                parts.append(self.rule(field) if needed else f"{self.rule(field)}?")
            elif needed:
                return None
        return " ".join(parts)

    def field(self, name: str, schema: Any, depth: int) -> str | None:
        if depth < 0 or schema is False:
            return None
        node = resolve(schema, self.root_schema)
        # None for lists that have to be JSON: tuples, and lists of lists, whose repeated elements
        # cannot say where one inner list ends and the next begins.
        item = None
        if kind_of(node) == "array" and not positions_of(node):
            inner = resolve(items_of(node), self.root_schema)
            item = None if kind_of(inner) == "array" else inner
        if item is None:
            content = self.content(node, depth)
            return None if content is None else self._line(name, content)

        content = self.content(item, depth - 1)
        if content is None:
            return None
        # No element at all would be a missing parameter, not an empty list.
        low, high = bounds(node, "minItems", "maxItems", MAX_ITEMS)
        return f"({self._line(name, content)}){{{max(low, 1)},{max(high, 1)}}}"

    def _line(self, name: str, content: str) -> str:
        return f"{self.element(name, content)} {literal(chr(10))}"

    def content(self, node: Mapping[str, Any], depth: int) -> str | None:
        if depth < 0:
            return None
        match kind_of(node):
            case "choice":
                values = choices_of(node)
                texts = [
                    value if isinstance(value, str) else write_canonical(value) for value in values
                ]
                # What a tag or a reference begins with is escaped.
                escaped = [text.replace("&", "&amp;").replace("<", "&lt;") for text in texts]
                return one_of([literal(text) for text in escaped]) if texts else None
            case "union":
                members = _readable(alternatives_of(node, self.root_schema))
                contents = [self.content(member, depth) for member in members]
                possible = [content for content in contents if content is not None]
                return one_of(possible) if possible else None
            case "object" if self.nested and properties_of(node):
                children = self.children(node, depth)
                return None if children is None else f'"\\n" {children}'
            case "object" | "array":
                return self.json_value(node, depth, IN_XML)
            case "string" | "any":
                return self._text(node)
            case kind:
                return self.bare(node, kind)

    def _text(self, node: Mapping[str, Any]) -> str:
        if text := FORMATS.get(str(node.get("format"))):
            return self.rule(text)
        low, high = bounds(node, "minLength", "maxLength", MAX_TEXT)
        if high == 0:
            return '""'

        # The first character is visible: readers trim the text of an element.
        unit = "xany" if "maxLength" in node else "xchar"
        return self.rule(f"xfirst {unit}{{{max(low - 1, 0)},{high - 1}}}")


def _readable(members: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    # The word null, or digits, would be read as text where text is allowed.
    kinds = [kind_of(member) for member in members]
    if "string" not in kinds:
        return members
    pairs = zip(members, kinds, strict=True)
    return [member for member, kind in pairs if kind not in _BARE_KINDS]


# Between tags a scalar is bare text: quotes around it would become part of the value.
BARE_SCALARS = (
    TypeRule("number", "lat", "35.6897", '"35.6897"',
             "A number is bare digits: no quotes, no unit."),
    TypeRule("integer", "count", "10", "ten",
             "An integer is digits without a decimal point, never a word."),
    TypeRule("boolean", "enabled", "true", "yes",
             "A boolean is the word true or the word false."),
    TypeRule("string", "city", "Tokyo", '"Tokyo"',
             "A string is the plain text itself, without quotes around it."),
)  # fmt: skip

XML_TYPE_RULES = TypeRules(
    (
        *BARE_SCALARS,
        TypeRule("array", "tags", "red</tags><tags>blue", "red, blue",
                 "An array repeats its element, once for every item."),
        TypeRule("object", "size", "<w>3</w><h>4</h>", '{"w":3,"h":4}',
                 "An object holds one element for every field."),
    ),
    pair="<{name}>{value}</{name}>",
)  # fmt: skip
