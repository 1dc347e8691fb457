r"""Grammars (GBNF, as llama.cpp reads it) under which a model can only write one well-formed call of a known tool.

Every language here is finite: strings, lists and nesting are bounded, so that generation ends by itself. What comes
out satisfies the schema as far as the grammar can say it: types, choices, required and optional properties, lengths,
small integer ranges, dates, e-mail addresses. `pattern`, wide ranges and conditions between properties are not said.

>>> print(grammar_for("hermes", [ToolSpec("on", "", '{"properties":{"lit":{"type":"boolean"}},"required":["lit"]}')]))
root ::= "<tool_call>\n{" call "}\n</tool_call>"
call ::= "\"name\": \"on\", \"arguments\": " v1
v1 ::= "{" ("\"lit\": " ("true" | "false")) "}"
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import BadOptions, BadToolSpec, UnwritableCall
from ..toolspec import ToolSpec, tool_specs
from ..values import write_canonical
from . import shape

MAX_TEXT = 80
MAX_ITEMS = 5
MAX_DEPTH = 6
_FREE_KEYS = ("key1", "key2", "key3", "key4")
_MAX_RANGE = 200

_XML_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*")

_SHARED = {
    # At most 15 significant digits, which a double keeps.
    "integer": '"0" | "-"? [1-9] [0-9]{0,14}',
    "natural": '"0" | [1-9] [0-9]{0,14}',
    "number": '"0" | "-"? [1-9] [0-9]{0,8} | "-"? ("0" | [1-9] [0-9]{0,8}) "." [0-9]{1,6}',
    "positive": '("0" | [1-9] [0-9]{0,8}) ("." [0-9]{1,6})?',
    "date": '[12] [0-9]{3} "-" ("0" [1-9] | "1" [0-2]) "-" ("0" [1-9] | "1" [0-9] | "2" [0-8])',
    "clock": '([01] [0-9] | "2" [0-3]) ":" [0-5] [0-9] ":" [0-5] [0-9] "Z"',
    "email": '[a-z] [a-z0-9_]{0,19} "@" [a-z] [a-z0-9]{0,14} "." ("com" | "org" | "net" | "de" | "example")',
    # A blank is only allowed before something visible, so that no value is padded and none is endless blanks.
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
_BLANKS = {"jchar": "jany", "jsafe": "jsafeany", "ychar": "yany", "xchar": "xany"}
_NOT_YAML = re.compile("[<\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_TAG_NAME = re.compile(r"[^\s<>\"'=](?:[^<>\"'\r\n]{0,254}[^\s<>\"'])?")
_USES = re.compile(r"(?<![\w-])([a-z]+\d*)(?![\w-])")


def grammar_for(protocol_id: str, tools: Any) -> str:
    """The GBNF of exactly one call of one of `tools`, in the form of a protocol that `_FORMS` names.

    Strings have at most 80 visible characters (or the schema's shorter `maxLength`), lists 5 items, and schemas are
    followed 6 levels deep; optional properties that lead deeper are left out.

    `tools` is anything `tool_specs` takes, at least one. Raises BadOptions for another protocol or no tools,
    BadToolSpec for a schema that nothing within the depth bound satisfies, UnwritableCall for a name that the
    form cannot hold.
    """
    specs = tool_specs(tools)
    if not specs:
        raise BadOptions("a grammar needs at least one tool", got=tools, expected="a tool definition")
    if protocol_id not in _FORMS:
        raise BadOptions(
            "there is no grammar for this protocol", got=protocol_id, expected=", ".join(sorted(_FORMS)),
            hint="leave the grammar away, or use one of these protocols",
        )  # fmt: skip
    root, writer = _FORMS[protocol_id]
    return writer(specs).grammar(root)


def literal(text: str) -> str:
    r"""A GBNF terminal for exactly this text.

    >>> literal('a"b\n')
    '"a\\"b\\n"'
    """
    out = []
    for ch in text:
        if ch in '"\\':
            out.append("\\" + ch)
        elif ch in "\n\r\t":
            out.append({"\n": "\\n", "\r": "\\r", "\t": "\\t"}[ch])
        elif ord(ch) < 0x20 or ord(ch) == 0x7F:
            out.append(f"\\x{ord(ch):02X}")
        else:
            out.append(ch)
    return f'"{"".join(out)}"'


def _one_of(options: Sequence[str]) -> str:
    unique = list(dict.fromkeys(options))
    return unique[0] if len(unique) == 1 else f"({' | '.join(unique)})"


class _Writer(ABC):
    """Collects rules; an expression that nothing can satisfy within the depth bound is None."""

    def __init__(self, tools: Sequence[ToolSpec]) -> None:
        self.rules: dict[str, str] = {}  # body -> name
        self.root_schema: Any = None
        self.calls = [self._call_of(t) for t in tools]

    def grammar(self, root: str) -> str:
        lines = [f"root ::= {root}", f"call ::= {' | '.join(self.calls)}"]
        lines += [f"{name} ::= {body}" for body, name in self.rules.items()]
        text = "\n".join(lines)
        words = set(_USES.findall(re.sub(r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]', " ", text)))
        return "\n".join([text, *(f"{n} ::= {_SHARED[n]}" for n in _SHARED if n in words)])

    def _call_of(self, tool: ToolSpec) -> str:
        self.root_schema = tool.schema
        found = self.call(tool)
        if found is None:
            raise BadToolSpec(
                f"nothing within {MAX_DEPTH} levels satisfies the schema of tool {tool.name!r}",
                got=tool.schema_json,
                hint="make the properties that lead deeper optional",
            )
        return found

    @abstractmethod
    def call(self, tool: ToolSpec) -> str | None:
        """The rule of one tool's call; None where no value within the depth limit satisfies its schema."""

    def rule(self, body: str) -> str:
        """The name of a rule of that body, shared between equal bodies."""
        if re.fullmatch(r"[a-z]+\d*", body):
            return body
        return self.rules.setdefault(body, f"v{len(self.rules) + 1}")

    # JSON values, needed by every form: XML carries free objects and lists of lists as JSON text.

    def json_value(self, schema: Any, depth: int, char: str = "jchar") -> str | None:
        if depth < 0 or schema is False:
            return None
        node = shape.resolve(schema, self.root_schema)
        kind = shape.kind(node)
        if kind == "choice":
            options = shape.choices(node)
            return _one_of([literal(self._json_text(v, char)) for v in options]) if options else None
        if kind == "union":
            members = [self.json_value(m, depth, char) for m in shape.alternatives(node, self.root_schema)]
            kept = [m for m in members if m is not None]
            return _one_of(kept) if kept else None
        if kind == "array":
            return self._json_array(node, depth, char)
        if kind == "object":
            return self._json_object(node, depth, char)
        if kind == "any":
            return _one_of([self._json_string({}, char), "number", '"true"', '"false"', '"null"'])
        return self._json_string(node, char) if kind == "string" else self._bare(node, kind)

    def _json_text(self, value: Any, char: str) -> str:
        text = write_canonical(value)
        if char == "jsafe":
            return text.replace("<", "\\u003c").replace("&", "\\u0026")
        return _NOT_YAML.sub(lambda m: f"\\u{ord(m[0]):04x}", text) if char == "ychar" else text

    def _bare(self, node: Mapping[str, Any], kind: str) -> str:
        if kind == "boolean":
            return '("true" | "false")'
        if kind == "null":
            return '"null"'
        low, high = node.get("minimum"), node.get("maximum")
        if kind == "integer":
            low = node["exclusiveMinimum"] + 1 if isinstance(node.get("exclusiveMinimum"), int) else low
            high = node["exclusiveMaximum"] - 1 if isinstance(node.get("exclusiveMaximum"), int) else high
            if isinstance(low, int) and isinstance(high, int) and 0 <= high - low <= _MAX_RANGE:
                return self.rule(_one_of([f'"{n}"' for n in range(low, high + 1)]))
            return "natural" if isinstance(low, int) and low >= 0 else "integer"
        low = node.get("exclusiveMinimum", low)
        return "positive" if isinstance(low, (int, float)) and low >= 0 else "number"

    def _json_string(self, node: Mapping[str, Any], char: str) -> str:
        if fixed := _FORMATS.get(str(node.get("format"))):
            return self.rule(f'"\\"" {fixed} "\\""')
        low, high = _bounds(node, "minLength", "maxLength", MAX_TEXT)
        unit = char if "maxLength" not in node else _BLANKS[char]
        return self.rule(f'"\\"" {unit}{{{low},{high}}} "\\""')

    def _json_array(self, node: Mapping[str, Any], depth: int, char: str) -> str | None:
        positions = shape.prefix(node)
        if positions:
            fixed = [self.json_value(p, depth - 1, char) for p in positions]
            return None if None in fixed else "(" + ' "[" ' + ' ", " '.join(f for f in fixed if f) + ' "]" )'
        member = self.json_value(shape.items(node), depth - 1, char)
        low, high = _bounds(node, "minItems", "maxItems", MAX_ITEMS)
        if member is None or high == 0:
            return None if low else '"[]"'
        item = self.rule(member)
        some = f'{item} (", " {item}){{{max(low - 1, 0)},{high - 1}}}'
        return self.rule(f'"[" {some} "]"' if low else f'"[" ({some})? "]"')

    def _json_object(self, node: Mapping[str, Any], depth: int, char: str) -> str | None:
        required: list[str] = []
        optional: list[str] = []
        for name, schema, needed in shape.properties(node):
            value = self.json_value(schema, depth - 1, char)
            if value is not None:
                (required if needed else optional).append(f"{literal(self._json_text(name, char) + ': ')} {value}")
            elif needed:
                return None
        if not required and not optional:
            return self._json_map(node, depth, char)
        tail = "".join(f' (", " {pair})?' for pair in optional)
        if required:
            return self.rule('"{" (' + ' ", " '.join(required) + f'){tail} "}}"')
        return self._json_optional(optional)

    def _json_optional(self, pairs: Sequence[str]) -> str:
        """An object of any of these pairs, in their order."""
        starts = [pair + "".join(f' (", " {later})?' for later in pairs[i + 1 :]) for i, pair in enumerate(pairs)]
        return self.rule('"{" (' + " | ".join(starts) + ')? "}"')

    def _json_map(self, node: Mapping[str, Any], depth: int, char: str) -> str:
        extra = node.get("additionalProperties")
        value = self.json_value(extra, depth - 1, char) if isinstance(extra, Mapping) else None
        if value is None:
            return '"{}"'
        return self._json_optional([self.rule(f'"\\"" {key} "\\": " {value}') for key in _FREE_KEYS])


class _JsonCalls(_Writer):
    def call(self, tool: ToolSpec) -> str | None:
        arguments = self.json_value(_as_object(tool), MAX_DEPTH)
        head = literal(f'"name": {write_canonical(tool.name)}, "arguments": ')
        return None if arguments is None else f"{head} {arguments}"


class _XmlCalls(_Writer):
    nested = True  # an object is written as elements

    def call(self, tool: ToolSpec) -> str | None:
        children = self._children(_as_object(tool), MAX_DEPTH)
        return None if children is None else self._element(tool.name, f'"\\n" {children}'.rstrip())

    def _element(self, name: str, content: str) -> str:
        if not _XML_NAME.fullmatch(name):
            raise UnwritableCall("this name cannot be the name of an element", got=name, expected="an XML name")
        return f"{literal(f'<{name}>')} {content} {literal(f'</{name}>')}"

    def _children(self, schema: Any, depth: int) -> str | None:
        parts: list[str] = []
        for name, child, needed in shape.properties(shape.resolve(schema, self.root_schema)):
            element = self._field(name, child, depth - 1)
            if element is None and needed:
                return None
            if element is not None:
                parts.append(self.rule(element) if needed else f"{self.rule(element)}?")
        return " ".join(parts)

    def _field(self, name: str, schema: Any, depth: int) -> str | None:
        """One parameter with the line break behind it; for a list, its element repeated."""
        if depth < 0 or schema is False:
            return None
        node = shape.resolve(schema, self.root_schema)
        listed = shape.kind(node) == "array" and not shape.prefix(node)
        member = shape.resolve(shape.items(node), self.root_schema) if listed else node
        if listed and shape.kind(member) == "array":
            listed, member = False, node
        content = self._content(member, depth - (1 if listed else 0))
        if content is None:
            return None
        element = f"{self._element(name, content)} {literal(chr(10))}"
        if not listed:
            return element
        low, high = _bounds(node, "minItems", "maxItems", MAX_ITEMS)
        return f"({element}){{{max(low, 1)},{max(high, 1)}}}"

    def _content(self, node: Mapping[str, Any], depth: int) -> str | None:
        if depth < 0:
            return None
        kind = shape.kind(node)
        if kind == "choice":
            options = shape.choices(node)
            texts = [v if isinstance(v, str) else write_canonical(v) for v in options]
            return _one_of([literal(_escape(t)) for t in texts]) if texts else None
        if kind == "union":
            members = shape.alternatives(node, self.root_schema)
            if any(shape.kind(m) == "string" for m in members):
                # The word null, or digits, would be read as text where text is allowed.
                members = [m for m in members if shape.kind(m) not in ("null", "integer", "number", "boolean")]
            kept = [c for m in members if (c := self._content(m, depth)) is not None]
            return _one_of(kept) if kept else None
        if self.nested and kind == "object" and shape.properties(node):
            children = self._children(node, depth)
            return None if children is None else f'"\\n" {children}'
        if kind in ("array", "object"):
            return self.json_value(node, depth, "jsafe")
        if kind in ("string", "any"):
            if fixed := _FORMATS.get(str(node.get("format"))):
                return self.rule(fixed)
            low, high = _bounds(node, "minLength", "maxLength", MAX_TEXT)
            if high == 0:
                return '""'
            unit = "xchar" if "maxLength" not in node else _BLANKS["xchar"]
            return self.rule(f"xfirst {unit}{{{max(low - 1, 0)},{high - 1}}}")
        return self._bare(node, kind)


class _TagCalls(_XmlCalls):
    """Parameter tags: raw text, lists and objects as JSON."""

    nested = False

    def call(self, tool: ToolSpec) -> str | None:
        children = self._children(_as_object(tool), MAX_DEPTH)
        head = literal(f"<function={self._name(tool.name)}>\n")
        return None if children is None else f"{head} {children}".rstrip()

    def _name(self, name: str) -> str:
        if not _TAG_NAME.fullmatch(name):
            raise UnwritableCall("this name cannot stand in a tag", got=name)
        return name

    def _field(self, name: str, schema: Any, depth: int) -> str | None:
        if depth < 0 or schema is False:
            return None
        content = self._content(shape.resolve(schema, self.root_schema), depth)
        head, tail = literal(f"<parameter={self._name(name)}>\n"), literal("\n</parameter>\n")
        return None if content is None else f"{head} {content} {tail}"


class _YamlCalls(_XmlCalls):
    """YAML lines whose values are JSON."""

    def call(self, tool: ToolSpec) -> str | None:
        children = self._children(_as_object(tool), MAX_DEPTH)
        return None if children is None else self._element(tool.name, f'"\\n" {children}'.rstrip())

    def _field(self, name: str, schema: Any, depth: int) -> str | None:
        value = self.json_value(schema, depth, "ychar")
        key = name if _XML_NAME.fullmatch(name) else self._json_text(name, "ychar")
        return None if value is None else f"{literal(f'{key}: ')} {value} {literal(chr(10))}"


_FORMATS = {"date": "date", "email": "email", "date-time": 'date "T" clock', "time": "clock"}
_FORMS: dict[str, tuple[str, type[_Writer]]] = {
    "hermes": (r'"<tool_call>\n{" call "}\n</tool_call>"', _JsonCalls),
    "gemma": (r'"```tool_call\n{" call "}\n```"', _JsonCalls),
    "morph_xml": ("call", _XmlCalls),
    "qwen3_coder_xml": (r'"<tool_call>\n" call "</function>\n</tool_call>"', _TagCalls),
    "yaml_xml": ("call", _YamlCalls),
}


def _as_object(tool: ToolSpec) -> Any:
    schema = tool.schema
    return {"type": "object", **schema} if isinstance(schema, Mapping) else {"type": "object"}


def _bounds(node: Mapping[str, Any], low_key: str, high_key: str, limit: int) -> tuple[int, int]:
    low, high = node.get(low_key, 0), node.get(high_key, limit)
    low = low if isinstance(low, int) and low > 0 else 0
    high = high if isinstance(high, int) and 0 <= high <= limit else max(limit, low)
    return low, max(low, high)


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")
