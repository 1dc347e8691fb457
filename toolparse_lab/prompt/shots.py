"""Few-shot examples made from the tools at hand, without giving away the case they stand beside.

Everything is deterministic: the same tools and the same input give the same examples.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ..toolspec import ToolSpec
from ..values import leaves, read_plain, write_canonical
from . import shape

_VARIANTS = 4
_MAX_DEPTH = 6


@dataclass(frozen=True, slots=True)
class Shot:
    """A request in words and the call that answers it; `arguments_json` is canonical. `own` = a tool of the case."""

    request: str
    name: str
    arguments_json: str
    own: bool = True


# Used where an example made from the case's own tools would show what the case asks for.
FIXED_SHOTS = (
    Shot("Wake me at 06:40.", "set_alarm", '{"time":"06:40"}', own=False),
    Shot("How far is it from Bergen to Lima?", "measure_distance", '{"start":"Bergen","end":"Lima"}', own=False),
    Shot("Lend the book Dune to member 512.", "lend_book", '{"title":"Dune","member":512}', own=False),
    Shot("Dim the lamp in the attic to 15 percent.", "dim_lamp", '{"room":"attic","percent":15}', own=False),
    Shot("Water the fern with 0.3 litres.", "water_plant", '{"plant":"fern","litres":0.3}', own=False),
    Shot("Print 4 copies of menu.pdf.", "print_file", '{"path":"menu.pdf","copies":4}', own=False),
)

# (a word of the parameter's name, values): the first that fits is used.
_BY_NAME = (
    (("email", "recipient"), ("kim@example.org", "lee@example.org", "noor@example.org", "ana@example.org")),
    (("url", "link"), ("https://example.org/a", "https://example.org/b", "https://example.org/c", "https://example.org/d")),
    (("street", "address"), ("Elm Row 4", "Quay 18", "Mill Path 2", "Hill Lane 9")),
    (("postcode", "zip"), ("7010", "4417", "8330", "0031")),
    (("room",), ("attic", "cellar", "porch", "studio")),
    (("city", "location", "place", "town"), ("Lisbon", "Nairobi", "Quito", "Hobart")),
    (("origin", "destination", "from"), ("Oslo", "Perth", "Lagos", "Cusco")),
    (("country",), ("Portugal", "Kenya", "Ecuador", "Norway")),
    (("lang", "language"), ("Finnish", "Swahili", "Welsh", "Maori")),
    (("currency",), ("NOK", "KES", "CLP", "SEK")),
    (("date", "day"), ("2031-03-14", "2032-07-02", "2033-11-23", "2034-01-09")),
    (("time",), ("06:40", "17:25", "21:05", "11:55")),
    (("timezone", "zone"), ("Africa/Nairobi", "America/Lima", "Asia/Tashkent", "Pacific/Fiji")),
    (("path", "file", "filename"), ("menu.pdf", "draft.txt", "plan.csv", "sketch.png")),
    (("phone",), ("555-0117", "555-0142", "555-0163", "555-0188")),
    (("name", "person", "contact"), ("Ingrid", "Kofi", "Amaru", "Leilani")),
    (("title", "song", "book"), ("Blue Heron", "Late Train", "Salt Road", "Tin Roof")),
    (("message", "text", "body", "content", "note"), ("See you soon", "All is well", "Back later", "Bring the keys")),
    (("query", "question", "topic", "keyword", "search"), ("tidal pools", "cork trees", "old maps", "wool dyes")),
    (("expression", "formula"), ("31 + 58", "640 / 16", "19 * 23", "777 - 88")),
    (("code", "sku", "id"), ("K-731", "T-284", "R-906", "W-553")),
)  # fmt: skip
_BY_FORMAT = {
    "date": ("2031-03-14", "2032-07-02", "2033-11-23", "2034-01-09"),
    "time": ("06:40:00Z", "17:25:00Z", "21:05:00Z", "11:55:00Z"),
    "date-time": ("2031-03-14T06:40:00Z", "2032-07-02T17:25:00Z", "2033-11-23T21:05:00Z", "2034-01-09T11:55:00Z"),
    "email": _BY_NAME[0][1],
    "uri": _BY_NAME[1][1],
    "uuid": tuple(f"{n}d3c9a52-71b4-4e0f-9a86-5c2f7be1408{n}" for n in (1, 2, 3, 4)),
}
_CODES = ("fi", "sw", "FI", "FIN", "fi-FI", "31", "4417", "0031", "A1", "#3a7f2c", "1.4.2", "+4915550117")
_WORDS = ("cedar", "lantern", "harbour", "pepper")
_INTEGERS = (7, 26, 58, 113)
_NUMBERS = (2.75, 18.5, 63.25, 141.5)


class _NoValue(Exception):
    """No value at hand matches a pattern of the schema."""


def example_arguments(tool: ToolSpec, variant: int = 0) -> dict[str, Any] | None:
    """Plausible arguments by the tool's schema: all required ones, or the first where none is required.

    `variant` chooses among the values at hand, and any integer will do. None where a pattern admits none of them.

    >>> example_arguments(ToolSpec("t", "", '{"properties":{"city":{"type":"string"}},"required":["city"]}'))
    {'city': 'Lisbon'}
    """
    root = tool.schema
    node = shape.resolve(root, root)
    try:
        value = _example_object(node, root, variant, _MAX_DEPTH)
        if not value:
            for name, schema, _ in shape.properties(node)[:1]:
                value[name] = _example(name, shape.resolve(schema, root), root, variant, _MAX_DEPTH)
    except _NoValue:
        return None
    return value


def _example_object(node: Mapping[str, Any], root: Any, variant: int, depth: int) -> dict[str, Any]:
    return {
        name: _example(name, shape.resolve(schema, root), root, variant + i, depth - 1)
        for i, (name, schema, required) in enumerate(shape.properties(node))
        if required
    }


def _example(name: str, node: Mapping[str, Any], root: Any, variant: int, depth: int) -> Any:
    kind = shape.kind(node)
    given = node.get("examples") or ([node["example"]] if "example" in node else None)
    if isinstance(given, list) and given:
        return given[variant % len(given)]
    if kind == "choice":
        options = shape.choices(node)
        return options[variant % len(options)] if options else None
    if kind == "union":
        members = shape.alternatives(node, root)
        return _example(name, next((m for m in members if shape.kind(m) != "null"), {}), root, variant, depth)
    if kind == "array":
        positions = shape.prefix(node)
        if depth <= 0:
            return []
        if positions:
            return [_example(name, shape.resolve(p, root), root, variant, depth - 1) for p in positions]
        member = shape.resolve(shape.items(node), root)
        count = max(1, min(int(node.get("minItems", 1)), _VARIANTS))
        return [_example(name, member, root, variant + i, depth - 1) for i in range(count)]
    if kind == "object":
        return _example_object(node, root, variant, depth) if depth > 0 else {}
    if kind in ("integer", "number"):
        return _example_number(node, kind, variant)
    if kind == "boolean":
        return variant % 2 == 0
    return None if kind == "null" else _example_string(name, node, variant)


def _example_number(node: Mapping[str, Any], kind: str, variant: int) -> int | float:
    value: int | float = (_INTEGERS if kind == "integer" else _NUMBERS)[variant % _VARIANTS]
    low, high = node.get("minimum", node.get("exclusiveMinimum")), node.get("maximum", node.get("exclusiveMaximum"))
    if low is not None and value <= low:
        value = low + variant + 1
    if high is not None and value >= high:
        value = high - variant - 1 if low is None or high - variant - 1 >= low else low
    step = node.get("multipleOf")
    if isinstance(step, int) and step > 1 and kind == "integer":
        value = int(value) // step * step or step
    return int(value) if kind == "integer" else value


def _example_string(name: str, node: Mapping[str, Any], variant: int) -> str:
    words = set(re.split(r"[^a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower()))
    pool = _BY_FORMAT.get(str(node.get("format")))
    if pool is None:
        pool = next((values for keys, values in _BY_NAME if words.intersection(keys)), _WORDS)
    turned = [pool[(variant + i) % len(pool)] for i in range(len(pool))]
    pattern = node.get("pattern")
    if isinstance(pattern, str):
        if named := [v for v in turned if _fits(pattern, v)]:
            return named[0]
        fitting = [v for v in (*(v for _, values in _BY_NAME for v in values), *_CODES) if _fits(pattern, v)]
        if not fitting:
            raise _NoValue(pattern)
        return fitting[variant % len(fitting)]
    value = turned[0]
    low, high = node.get("minLength"), node.get("maxLength")
    if isinstance(low, int) and len(value) < low:
        value = (f"{value} " * low)[: low - 1] + "."
    return value[:high] if isinstance(high, int) else value


def _fits(pattern: str, value: str) -> bool:
    try:
        return re.search(pattern, value) is not None
    except re.error:
        return False  # a pattern in a dialect that Python does not read


def make_shots(
    tools: Sequence[ToolSpec], count: int, *, text: str = "", target: Iterable[Mapping[str, Any]] | None = None
) -> tuple[Shot, ...]:
    """`count` examples, one tool after the other, that give away neither `text` nor `target`.

    `text` is everything the case says to the model, `target` its calls ({"name", "arguments"}) where known. A call
    gives the case away when a value that is not on the schema's own list stands in the text or in the target, or when
    all its values are on such lists, so that it may be the answer itself. Then other values are tried and, where none
    will do, an example with a tool that the case does not have is used.
    """
    wanted = {write_canonical(v) for _, v in leaves(list(target or ()))}
    folded = text.casefold()
    shots: list[Shot] = []
    for i in range(count if tools else 0):
        tool = tools[i % len(tools)]
        shot = next(
            (
                s
                for v in range(_VARIANTS)
                if (s := _own_shot(tool, i + v)) and s not in shots and not _leaks(s, tool, folded, wanted)
            ),
            None,
        )
        shots.append(shot or _fixed_shot(tools, shots, folded))
    return tuple(shots)


@lru_cache(maxsize=4096)  # the cases of a dataset share their tools
def _own_shot(tool: ToolSpec, variant: int) -> Shot | None:
    arguments = example_arguments(tool, variant)
    if arguments is None:
        return None
    said = ", ".join(f"{k} {v if isinstance(v, str) else write_canonical(v)}" for k, v in arguments.items())
    lead = re.split(r"(?<=[.!?])\s", " ".join(tool.description.split()), maxsplit=1)[0].rstrip(".")
    lead = lead or tool.name.replace("_", " ")
    return Shot(f"{lead}: {said}" if said else lead, tool.name, write_canonical(arguments))


def _fixed_shot(tools: Sequence[ToolSpec], taken: Sequence[Shot], folded: str) -> Shot:
    names = {t.name for t in tools} | {s.name for s in taken}
    usable = [s for s in FIXED_SHOTS if s.name not in names]
    quiet = [s for s in usable if not any(_stands_in(v, folded) for _, v in leaves(read_plain(s.arguments_json)))]
    return (quiet or usable or list(FIXED_SHOTS))[0]


def _leaks(shot: Shot, tool: ToolSpec, folded: str, wanted: set[str]) -> bool:
    listed = _listed_values(tool)
    told = [v for _, v in leaves(read_plain(shot.arguments_json)) if not isinstance(v, (bool, dict, list))]
    free = [v for v in told if write_canonical(v) not in listed]
    return not free or any(write_canonical(v) in wanted or _stands_in(v, folded) for v in free)


@lru_cache(maxsize=4096)
def _listed_values(tool: ToolSpec) -> frozenset[str]:
    found: set[str] = set()
    stack = [tool.schema]
    while stack:
        node = stack.pop()
        if isinstance(node, Mapping):
            if shape.kind(node) == "choice":
                found.update(write_canonical(v) for v in shape.choices(node))
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)
    return frozenset(found)


def _stands_in(value: Any, folded: str) -> bool:
    """Whether a leaf is said in the (case-folded) text, as a whole word or number."""
    word = value if isinstance(value, str) else write_canonical(value)
    return bool(word) and re.search(rf"(?<!\w){re.escape(word.casefold())}(?!\w)", folded) is not None
