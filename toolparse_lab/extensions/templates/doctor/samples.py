"""The values, names and tools that a chat template is asked to write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ....core.toolspec import ToolSpec
from ....core.values import Value

# Words that no template has, to be found again in what it writes.
WORD = "Vela Norte"
OTHER = "Lom Strait"


@dataclass(frozen=True, slots=True)
class Sample:
    """One value to write. key: the argument that has it, and so its schema."""

    title: str
    key: str
    value: Value


def _any(*kinds: str) -> dict[str, Any]:
    return {"anyOf": [{"type": kind} for kind in kinds]}


PROPERTIES: Mapping[str, dict[str, Any]] = {
    "note": {"type": "string"},
    "count": {"type": "integer"},
    "ratio": {"type": "number"},
    "flag": {"type": "boolean"},
    "items": {"type": "array"},
    "box": {"type": "object"},
    "maybe": {"type": ["string", "null"]},
    "maybe_count": {"type": ["integer", "null"]},
    "text_or_list": _any("string", "array"),
    "text_or_box": _any("string", "object"),
    "text_or_count": _any("string", "integer"),
    "text_or_flag": _any("string", "boolean"),
    # Names that are hard to write in some notation.
    "from": {"type": "string"},
    "depth-max": {"type": "string"},
    "depth.max": {"type": "string"},
    "tiefe_größe": {"type": "string"},
    "two words": {"type": "string"},
    "$ref_id": {"type": "string"},
    "port": {"type": "string"},
    # Behind each value, so that its end is seen.
    "street": {"type": "string"},
}
NAMES = tuple(PROPERTIES)[12:18]
TOOL_NAMES = ("get-tide", "get.tide", "mcp__quay__find", "pegel_größe", "GetTide2")

STRINGS = {
    "double quotes": 'say "no" twice',
    "single quotes": "it's 'so'",
    "backslashes": "C:\\new\\t",
    "a backslash at the end": "C:\\dir\\",
    "a line break": "first\nsecond",
    "a Windows line break": "first\r\nsecond",
    "indented lines": "first\n\n  third\n\tfourth",
    "a tab": "a\tb",
    "an empty string": "",
    "spaces around": "  padded  ",
    "a line break at the end": "last\n",
    "a line break at the start": "\nfirst",
    "null as text": "null",
    "None as text": "None",
    "true as text": "true",
    "zeros in front": "00420",
    "a fraction as text": "3.0",
    "a huge number as text": "1e400",
    "an object as text": '{"a": [1, null]}',
    "a list as text": '["a", "b"]',
    "a JSON string as text": '"quoted"',
    "entities": "a &lt; b &amp; c",
    "markup": '<b class="x">1 < 2 & 3</b>',
    "a comma and brackets": "a], b} (c), d=1",
    "Jinja": "{{ x }} {% if y %}",
    "Python": 'f(a="b", c=[1])',
    "a code fence": "```json\n{}\n```",
    "format signs": "%s {0} $x `y` \\d",
    "thought tags": "<think>no</think> yes",
    "a lone thought closer": "so </think> then",
    "an end token": "a <|im_end|> b </s> c",
    "other scripts": "žluťoučký 漢字 🚢",
    "combining characters": "e\u0301\u200b\u2028x",
    "a control character": "bell \x07",
    "a lone surrogate": "half \ud83d",
}  # fmt: skip
_OTHERS: tuple[tuple[str, str, Value], ...] = (
    ("zero", "count", 0),
    ("a negative number", "count", -7),
    ("2**63", "count", 2**63),
    ("2**100", "count", 2**100),
    ("seventeen digits", "ratio", 0.30000000000000004),
    ("a large fraction", "ratio", 1e21),
    ("a tiny fraction", "ratio", 5e-324),
    ("true", "flag", True),
    ("false", "flag", False),
    ("null", "maybe", None),
    ("null for a number", "maybe_count", None),
    ("an empty list", "items", []),
    ("a list of strings", "items", ["a", 'b "c"', "d\\e"]),
    ("a mixed list", "items", [None, True, 1.5, "x", [2]]),
    ("an empty object", "box", {}),
    ("nested objects", "box", {"a": {"b": {"c": {"d": [{"e": None}]}}}}),
    ("an object of all kinds", "box", {"n": None, "t": True, "i": 7, "s": "it's", "l": []}),
    ("a list under a union", "text_or_list", ["a", "b"]),
    ("an object under a union", "text_or_box", {"a": 1}),
    ("a number under a union", "text_or_count", 7),
    ("a number as text under a union", "text_or_count", "7"),
    ("a list as text under a union", "text_or_list", '["a", "b"]'),
    ("true under a union", "text_or_flag", True),
    ("true as text under a union", "text_or_flag", "true"),
    ("None as text beside null", "maybe", "None"),
    ("null as text beside null", "maybe", "null"),
)


def samples() -> Iterator[Sample]:
    """Yield every value, each string once more inside an object."""
    for title, text in STRINGS.items():
        yield Sample(title, "note", text)
    for title, key, value in _OTHERS:
        yield Sample(title, key, value)
    for title, text in STRINGS.items():
        yield Sample(f"{title}, inside an object", "box", {"in": [text], "by": "x"})


def tools() -> tuple[ToolSpec, ...]:
    """Return the tools of all calls that are asked for."""
    properties = {key: {**schema, "description": "A word."} for key, schema in PROPERTIES.items()}
    definitions = [
        {"name": "keep_note", "parameters": {"type": "object", "properties": properties}}
    ]
    note = {"type": "object", "properties": {"note": properties["note"]}}
    definitions += [{"name": name, "parameters": note} for name in TOOL_NAMES]
    return tuple(ToolSpec.of({**d, "description": "A thing to do."}) for d in definitions)
