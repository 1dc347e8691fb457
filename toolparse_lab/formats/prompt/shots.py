"""Few-shot examples made from the tools at hand, without giving away the case they go with.

Everything is deterministic: the same tools and the same input give the same examples.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ...core.toolspec import ToolSpec
from ...core.values import leaves, read_plain, write_canonical
from .shape import (
    alternatives_of,
    choices_of,
    items_of,
    kind_of,
    positions_of,
    properties_of,
    resolve,
)

# How it works. The schema is walked once. What it says outright (examples, choices, a format, a
# pattern) goes before what a parameter's name suggests, and that before plain words. `variant`
# turns every list of values, and the parameters of one object start at different places, so that
# two arguments of one call rarely have the same value.


VARIANTS = 4
"""Values in each list, so the number of variants that differ."""
_MAX_DEPTH = 6

# Words of a parameter's name and the values they suggest; the first row that has one is used.
_BY_NAME = (
    (("email", "recipient"),
     ("kim@example.org", "lee@example.org", "noor@example.org", "ana@example.org")),
    (("url", "link"),
     ("https://example.org/a", "https://example.org/b", "https://example.org/c",
      "https://example.org/d")),
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
    (("message", "text", "body", "content", "note"),
     ("See you soon", "All is well", "Back later", "Bring the keys")),
    (("query", "question", "topic", "keyword", "search"),
     ("tidal pools", "cork trees", "old maps", "wool dyes")),
    (("expression", "formula"), ("31 + 58", "640 / 16", "19 * 23", "777 - 88")),
    (("code", "sku", "id"), ("K-731", "T-284", "R-906", "W-553")),
)  # fmt: skip
# A schema's `format` -> values.
_BY_FORMAT = {
    "date": ("2031-03-14", "2032-07-02", "2033-11-23", "2034-01-09"),
    "time": ("06:40:00Z", "17:25:00Z", "21:05:00Z", "11:55:00Z"),
    "date-time": (
        "2031-03-14T06:40:00Z",
        "2032-07-02T17:25:00Z",
        "2033-11-23T21:05:00Z",
        "2034-01-09T11:55:00Z",
    ),
    "email": _BY_NAME[0][1],
    "uri": _BY_NAME[1][1],
    "uuid": tuple(f"{n}d3c9a52-71b4-4e0f-9a86-5c2f7be1408{n}" for n in (1, 2, 3, 4)),
}
# Tried on a pattern that no value for the parameter's name fits.
_CODES = (
    *("fi", "sw", "FI", "FIN", "fi-FI", "31", "4417", "0031", "A1", "#3a7f2c", "1.4.2"),
    "+4915550117",
)
_WORDS = ("cedar", "lantern", "harbour", "pepper")
_INTEGERS = (7, 26, 58, 113)
_NUMBERS = (2.75, 18.5, 63.25, 141.5)


class _NoValue(Exception):
    # no value at hand matches a pattern of the schema
    pass


def example_arguments(tool: ToolSpec, variant: int = 0) -> dict[str, Any] | None:
    """Return plausible arguments by the tool's schema.

    These are all required ones, or the first where none is required. `variant` chooses among the
    values at hand, and any integer will do. None if a pattern admits none of them.

    >>> schema = '{"properties":{"city":{"type":"string"}},"required":["city"]}'
    >>> example_arguments(ToolSpec("t", "", schema))
    {'city': 'Lisbon'}
    """
    root = tool.schema
    node = resolve(root, root)
    try:
        arguments = _object(node, root, variant, _MAX_DEPTH)
        if not arguments:
            for name, schema, _ in properties_of(node)[:1]:
                arguments[name] = _value(name, resolve(schema, root), root, variant, _MAX_DEPTH)
    except _NoValue:
        return None
    return arguments


def _value(name: str, node: Mapping[str, Any], root: Any, variant: int, depth: int) -> Any:
    # name: of the parameter that has it. node: its resolved schema. depth: levels below that may be
    # followed.
    # `examples` is JSON Schema's keyword, `example` that of OpenAPI.
    examples = node.get("examples")
    if not examples and "example" in node:
        examples = [node["example"]]
    if isinstance(examples, list) and examples:
        return examples[variant % len(examples)]

    match kind_of(node):
        case "choice":
            options = choices_of(node)
            return options[variant % len(options)] if options else None
        case "union":
            # An optional value is often a union with null, which would be a poor example.
            members = (m for m in alternatives_of(node, root) if kind_of(m) != "null")
            return _value(name, next(members, {}), root, variant, depth)
        case "array" if depth <= 0:
            return []
        case "array":
            positions = [resolve(position, root) for position in positions_of(node)]
            if positions:
                return [_value(name, member, root, variant, depth - 1) for member in positions]
            member = resolve(items_of(node), root)
            count = max(1, min(int(node.get("minItems", 1)), VARIANTS))
            return [_value(name, member, root, variant + i, depth - 1) for i in range(count)]
        case "object":
            return _object(node, root, variant, depth) if depth > 0 else {}
        case "integer":
            value = int(_bounded(node, _INTEGERS[variant % VARIANTS], variant))
            step = node.get("multipleOf")
            # Zero is a multiple of a step too, but a dull example.
            if isinstance(step, int) and step > 1:
                return value // step * step or step
            return value
        case "number":
            return _bounded(node, _NUMBERS[variant % VARIANTS], variant)
        case "boolean":
            return variant % 2 == 0
        case "null":
            return None
        case _:
            return _text(name, node, variant)


def _object(node: Mapping[str, Any], root: Any, variant: int, depth: int) -> dict[str, Any]:
    # the required properties, each with a variant of its own
    return {
        name: _value(name, resolve(schema, root), root, variant + i, depth - 1)
        for i, (name, schema, required) in enumerate(properties_of(node))
        if required
    }


def _bounded(node: Mapping[str, Any], value: float, variant: int) -> float:
    # A bound itself is avoided where there is room, since it may be exclusive. `variant` is added
    # to the distance, so that variants differ.
    low: float | None = node.get("minimum", node.get("exclusiveMinimum"))
    high: float | None = node.get("maximum", node.get("exclusiveMaximum"))
    if low is not None and value <= low:
        value = low + variant + 1
    if high is None or value < high:
        return value

    return max(high - variant - 1, low) if low is not None else high - variant - 1


def _text(name: str, node: Mapping[str, Any], variant: int) -> str:
    # Too short a text is repeated, too long a one cut.
    pool = _pool(name, node)
    pattern = node.get("pattern")
    if isinstance(pattern, str):
        return _matching(pattern, pool, variant)

    value = pool[variant % len(pool)]
    low, high = node.get("minLength"), node.get("maxLength")
    if isinstance(low, int) and len(value) < low:
        value = (f"{value} " * low)[: low - 1] + "."
    if isinstance(high, int):
        value = value[:high]
    return value


def _pool(name: str, node: Mapping[str, Any]) -> Sequence[str]:
    by_format = _BY_FORMAT.get(str(node.get("format")))
    if by_format is not None:
        return by_format

    spaced = re.sub(r"([a-z])([A-Z])", r"\1 \2", name)  # camelCase is several words
    words = set(re.split(r"[^a-z]+", spaced.lower()))
    for keys, values in _BY_NAME:
        if words.intersection(keys):
            return values
    return _WORDS


def _matching(pattern: str, pool: Sequence[str], variant: int) -> str:
    # pool: tried first, then all other values are
    for i in range(len(pool)):
        value = pool[(variant + i) % len(pool)]
        if _fits(pattern, value):
            return value

    anything = [value for _, values in _BY_NAME for value in values]
    fitting = [value for value in (*anything, *_CODES) if _fits(pattern, value)]
    if not fitting:
        raise _NoValue(pattern)
    return fitting[variant % len(fitting)]


def _fits(pattern: str, value: str) -> bool:
    # As in JSON Schema, it may match anywhere in the value unless it is anchored.
    try:
        return re.search(pattern, value) is not None
    except re.error:
        return False  # a pattern in a dialect that Python does not read


@dataclass(frozen=True, slots=True)
class Shot:
    """A request in words and the call that answers it.

    arguments_json: canonical JSON text. own: whether the tool is one of the case's own.
    """

    request: str
    name: str
    arguments_json: str
    own: bool = True


# Used where an example made from the case's own tools would show what the case asks for.
FIXED_SHOTS = tuple(
    Shot(*row, own=False)
    for row in (
        ("Wake me at 06:40.", "set_alarm", '{"time":"06:40"}'),
        (
            "How far is it from Bergen to Lima?",
            "measure_distance",
            '{"start":"Bergen","end":"Lima"}',
        ),
        ("Lend the book Dune to member 512.", "lend_book", '{"title":"Dune","member":512}'),
        ("Dim the lamp in the attic to 15 percent.", "dim_lamp", '{"room":"attic","percent":15}'),
        ("Water the fern with 0.3 litres.", "water_plant", '{"plant":"fern","litres":0.3}'),
        ("Print 4 copies of menu.pdf.", "print_file", '{"path":"menu.pdf","copies":4}'),
    )
)


def make_shots(
    tools: Sequence[ToolSpec],
    count: int,
    *,
    text: str = "",
    target: Iterable[Mapping[str, Any]] | None = None,
) -> tuple[Shot, ...]:
    """Return `count` examples, one tool after the other, that give away neither text nor target.

    `text` is everything the case says to the model, `target` its calls ({"name", "arguments"})
    where known. A call gives the case away when a value that is not on the schema's own list is
    in the text or in the target, or when all its values are on such lists, so that it may be the
    answer itself. Then other values are tried and, where none will do, an example with a tool that
    the case does not have is used.
    """
    if not tools:
        return ()

    answers = {write_canonical(value) for _, value in leaves(list(target or ()))}
    folded = text.casefold()

    shots: list[Shot] = []
    for i in range(count):
        tool = tools[i % len(tools)]
        for variant in range(i, i + VARIANTS):
            shot, words = _own_shot(tool, variant)
            if shot is not None and shot not in shots and not _gives_away(words, folded, answers):
                shots.append(shot)
                break
        else:  # every variant is used, or shows too much
            shots.append(_fixed_shot(tools, shots, folded))
    return tuple(shots)


@lru_cache(maxsize=4096)  # the cases of a dataset share their tools
def _own_shot(tool: ToolSpec, variant: int) -> tuple[Shot | None, dict[str, str]]:
    # With the values of its own choosing: canonical JSON -> as a request says it.
    arguments = example_arguments(tool, variant)
    if arguments is None:
        return None, {}

    # The request is the first sentence about the tool, with the values after it.
    description = " ".join(tool.description.split())
    sentence = re.split(r"(?<=[.!?])\s", description, maxsplit=1)[0].rstrip(".")
    request = sentence or tool.name.replace("_", " ")
    if arguments:
        pairs = [f"{name} {_words_of(value)}" for name, value in arguments.items()]
        request = f"{request}: {', '.join(pairs)}"
    shot, listed = Shot(request, tool.name, write_canonical(arguments)), _listed_values(tool)
    # A boolean, or an empty list, is too common to say anything about the case.
    free = {
        write_canonical(value): _words_of(value).casefold()
        for value in _leaf_values(shot)
        if not isinstance(value, (bool, dict, list))
    }
    return shot, {text: words for text, words in free.items() if text not in listed}


def _fixed_shot(tools: Sequence[ToolSpec], shots: Sequence[Shot], folded: str) -> Shot:
    # There are only a few, so that the last resort is one shown before.
    names = {tool.name for tool in tools} | {shot.name for shot in shots}
    usable = [shot for shot in FIXED_SHOTS if shot.name not in names]
    for shot in usable:
        if not any(_occurs_in(_words_of(v).casefold(), folded) for v in _leaf_values(shot)):
            return shot

    return usable[0] if usable else FIXED_SHOTS[0]


def _gives_away(free: Mapping[str, str], folded: str, answers: Set[str]) -> bool:
    # An example without any value of its own choosing, because the schema lists them all, may be
    # the answer itself.
    said = [words for words in free.values() if words in folded]
    return not free or not answers.isdisjoint(free) or any(_occurs_in(w, folded) for w in said)


def _leaf_values(shot: Shot) -> Iterator[Any]:
    return (value for _, value in leaves(read_plain(shot.arguments_json)))


@lru_cache(maxsize=4096)
def _listed_values(tool: ToolSpec) -> frozenset[str]:
    # The model sees these anyway, so an example that shows one gives nothing away.
    values: set[str] = set()
    stack = [tool.schema]
    while stack:
        # Every keyword is followed, since a list of values may be in a definition or a union.
        node = stack.pop()
        if isinstance(node, Mapping):
            if kind_of(node) == "choice":
                values.update(write_canonical(value) for value in choices_of(node))
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)
    return frozenset(values)


def _occurs_in(word: str, folded: str) -> bool:
    # as a whole word or number
    return word != "" and re.search(rf"(?<!\w){re.escape(word)}(?!\w)", folded) is not None


def _words_of(value: Any) -> str:
    return value if isinstance(value, str) else write_canonical(value)
