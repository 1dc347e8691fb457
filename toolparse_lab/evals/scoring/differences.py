"""How one call differs from a wanted one, value by value."""

# How it works. A walk goes down both sides at once, with the schema of the place: an
# argument whose value is the schema's default may be written or left out on either side. A place
# with a matcher or a wish is settled by that, scalars by the matcher of their type. Cost: linear in
# the arguments; a wish with alternatives is walked once for each.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, TypeAlias

from ...core.toolspec import ToolSpec
from ...core.values import Value, escape_token, pointer_tokens, write_canonical
from ..cases.matchers import DEFAULT_MATCHERS, MATCHERS, Matchers, matcher_of
from ..cases.target import is_optional, is_wish, plain_wish

# The types whose `==` is equality in JSON, among values of one of them.
_SCALARS = frozenset((str, int, bool, type(None)))
_WEIGHT = {"name": 1000, "missing_argument": 2, "extra_argument": 2, "wrong_argument": 1}
_MOST_REFERENCES = 20  # a longer chain of $ref is taken for a circle
_MOST_SHOWN = 80
_ABSENT: Any = object()

Call: TypeAlias = tuple[str, Value]
"""A call as it is compared: name and arguments."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One way in which a call of `tool` is not the wanted one.

    `code` is a sub-code of `wrong_call`. `actual` and `expected` are the two values, or the two
    names.
    """

    code: str
    path: str
    tool: str
    actual: Any = None
    expected: Any = None

    @property
    def detail(self) -> str:
        """The difference as one sentence, made when it is asked for: most are never shown.

        >>> Difference("wrong_argument", "/a", "f", 1, 2).detail
        'f: /a is 1, wanted 2'
        >>> Difference("name", "", "f", "f", ["g", "h"]).detail
        'f called instead of g or h'
        """
        if self.code == "name":
            names = " or ".join(map(str, self.expected))
            return f"{self.tool} called instead of {names}"
        if self.code == "missing_argument":
            return f"{self.tool}: {self.path} is missing, wanted {_say(self.expected)}"

        expected = "none" if self.code == "extra_argument" else _say(self.expected)
        place = f"{self.tool}: {self.path or 'the arguments'}"
        return f"{place} is {_say(self.actual)}, wanted {expected}"


def differences_between(
    call: Call, want: Any, tools: Sequence[ToolSpec], matchers: Matchers = DEFAULT_MATCHERS
) -> tuple[Difference, ...]:
    """Return how one call differs from one wanted call.

    Of alternatives, from the nearest one.

    >>> [one.path for one in differences_between(("f", {"a": 1}), {"name": "f"}, ())]
    ['/a']
    """
    return compare_call(call, want, {tool.name: tool.schema for tool in tools}, matchers)


def cost_of(differences: Sequence[Difference]) -> int:
    """Return how far a call is from a wanted one, for the choice of the pair that explains most.

    >>> cost_of([Difference("name", "", "f"), Difference("wrong_argument", "/a", "f")])
    1001
    """
    return sum(_WEIGHT[difference.code] for difference in differences)


def compare_call(
    call: Call, want: Any, schemas: Mapping[str, Any], matchers: Matchers
) -> tuple[Difference, ...]:
    """Return the differences.

    Of alternatives, that of the nearest one.

    want: one entry of a target. schemas: those of the tools by name.
    """
    name, arguments = call
    if "$any" in want:
        every = [compare_call(call, one, schemas, matchers) for one in want["$any"]]
        return min(every, key=cost_of)

    names = want["name"]
    allowed = names["$any"] if isinstance(names, Mapping) else [names]
    if name not in allowed:
        return (Difference("name", "", name, name, allowed),)

    schema = schemas.get(name, {})
    comparison = _Comparison(name, schema, matchers)
    comparison.compare(arguments, want.get("arguments", {}), "", schema)
    return tuple(comparison.differences)


class _Comparison:
    # `root` is the schema of the tool, which references begin at. `plain`: no matcher but the
    # default ones is in use, so that scalars can be compared at once.
    __slots__ = ("differences", "matchers", "plain", "root", "tool")

    def __init__(self, tool: str, root: Any, matchers: Matchers) -> None:
        self.tool = tool
        self.root = root
        self.matchers = matchers
        self.plain = matchers.plain
        self.differences: list[Difference] = []

    def compare(self, actual: Value, want: Any, path: str, schema: Any) -> None:
        # want: a value or a wish. path: a JSON Pointer into the arguments. schema: that of the
        # value, perhaps a reference; anything if there is none.
        # Most values are scalars without a wish or a matcher of their own.
        if self.plain:
            kind = type(want)
            own = type(actual)
            if kind in _SCALARS and own in _SCALARS:
                # By type first: in Python, True equals 1.
                if own is not kind or actual != want:
                    self._add_wrong(path, actual, want)
                return

        matcher = self.matchers.at(self.tool, path)
        if matcher is not None:
            is_right = matcher(actual, plain_wish(want))
        elif is_wish(want):
            # `$match` first, since it may come with a `$value`; `$optional` alone takes any value.
            if "$match" in want:
                is_right = matcher_of(want["$match"])(actual, want.get("$value"))
            elif "$any" in want:
                is_right = any(self._fits(actual, one, path, schema) for one in want["$any"])
            else:
                is_right = "$value" not in want or _is_same(actual, want["$value"], self.matchers)
        elif isinstance(want, Mapping) and isinstance(actual, Mapping):
            self._compare_objects(actual, want, path, schema)
            return
        elif isinstance(want, list) and isinstance(actual, list) and len(want) == len(actual):
            items = _resolve(schema, self.root).get("items")
            for i, (a, w) in enumerate(zip(actual, want, strict=True)):
                self.compare(a, w, f"{path}/{i}", items)
            return
        else:  # of two lengths nobody knows which item is the one too many
            is_right = _are_equal_scalars(actual, want, self.matchers)

        if not is_right:
            self._add_wrong(path, actual, want)

    def _compare_objects(
        self, actual: Mapping[str, Value], want: Mapping[str, Any], path: str, schema: Any
    ) -> None:
        properties = _resolve(schema, self.root).get("properties")
        if not isinstance(properties, Mapping):
            properties = {}

        # A loop without a call for each member, because every argument of every call comes by.
        plain = self.plain
        for key, inner in want.items():
            value = actual.get(key, _ABSENT)
            kind = type(inner)
            if plain and kind in _SCALARS and type(value) is kind and value == inner:
                continue  # what most arguments are
            place = f"{path}/{escape_token(key)}"
            own = properties.get(key)
            if value is _ABSENT:
                if is_optional(inner):
                    continue
                default = self._default(own)
                if default is _ABSENT or not self._fits(default, inner, place, {}, {}):
                    missing = Difference("missing_argument", place, self.tool, None, inner)
                    self.differences.append(missing)
                continue
            # Written out, the default is what leaving out would have said.
            default = self._default(own) if is_optional(inner) else _ABSENT
            if default is _ABSENT or not self._fits(value, {"$value": default}, place, {}, {}):
                self.compare(value, inner, place, own)

        # Equal keys are the rule, and comparing the two sets of them is done in C.
        if actual.keys() != want.keys():
            for key, value in actual.items():
                if key in want:
                    continue
                place = f"{path}/{escape_token(key)}"
                default = self._default(properties.get(key))
                if default is not _ABSENT and self._fits(value, default, place, {}, {}):
                    continue
                if self.matchers.at(self.tool, place) is not MATCHERS["ignore"]:
                    self.differences.append(Difference("extra_argument", place, self.tool, value))

    def _default(self, schema: Any) -> Any:
        return _resolve(schema, self.root).get("default", _ABSENT)

    def _fits(self, actual: Value, want: Any, path: str, schema: Any, root: Any = None) -> bool:
        # A comparison of its own, so that no difference of this question is added to the answer.
        other = _Comparison(self.tool, self.root if root is None else root, self.matchers)
        other.compare(actual, want, path, schema)
        return not other.differences

    def _add_wrong(self, path: str, actual: Value, want: Any) -> None:
        self.differences.append(Difference("wrong_argument", path, self.tool, actual, want))


def _is_same(a: Value, b: Any, matchers: Matchers) -> bool:
    # Wishes in `b` are read as they are: {"$any": [1]} is only the same as {"$any": [1]}.
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(_is_same(a[key], b[key], matchers) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_is_same, a, b, repeat(matchers)))
    return _are_equal_scalars(a, b, matchers)


def _are_equal_scalars(actual: Value, want: Any, matchers: Matchers) -> bool:
    if isinstance(want, (Mapping, list)) or isinstance(actual, (Mapping, list)):
        return False
    return matchers.of(want)(actual, want)


def _resolve(schema: Any, root: Any) -> Mapping[str, Any]:
    if type(schema) is dict and "$ref" not in schema:
        return schema  # what most are

    for _ in range(_MOST_REFERENCES):
        if not isinstance(schema, Mapping):
            return {}
        ref = schema.get("$ref")
        if not isinstance(ref, str):
            return schema
        if not ref.startswith("#"):
            return {}
        node = root
        for token in pointer_tokens(ref[1:]):
            node = node.get(token) if isinstance(node, Mapping) else None
        if not isinstance(node, Mapping):
            return {}
        # What is next to $ref (a default, say) wins over what it refers to.
        schema = {**node, **{key: value for key, value in schema.items() if key != "$ref"}}
    return {}


# words


def _say(x: Any) -> str:
    if not is_wish(x):
        text = write_canonical(x)
        return text if len(text) <= _MOST_SHOWN else text[: _MOST_SHOWN - 3] + "…"

    # A wish by the first of its parts that says something.
    if "$match" in x:
        name = str(x["$match"])
        return f"{name} {_say(x['$value'])}" if "$value" in x else name
    if "$any" in x:
        return "one of " + ", ".join(_say(value) for value in x["$any"])
    return _say(x["$value"]) if "$value" in x else "anything"
