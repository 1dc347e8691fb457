"""Matching calls to a target: order-free, numbers as decimals, alternatives, defaults, pluggable
comparison.

A target is a list of calls ``{"name": …, "arguments": {…}}``. Anywhere in it, an object whose keys
all begin with one of the four words below is no value but a wish:

- ``{"$any": [a, b]}``: any of these. For a call, a name or a value
- ``{"$optional": true, …}``: may be absent. Beside it ``$any`` or ``$value``, or nothing (any
  value will do). In a call, beside ``name`` and ``arguments``
- ``{"$value": x}``: exactly x, read as it stands, for arguments that look like a wish themselves
- ``{"$match": "regex", "$value": "par.*"}``: compared by a matcher of `MATCHERS`

>>> match_calls([("f", {"a": 1.0})], [{"name": "f", "arguments": {"a": {"$any": [1, 2]}}}]).ok
True
>>> match_calls([("f", {"a": 3})], [{"name": "f", "arguments": {"a": {"$any": [1, 2]}}}]).detail
'f: /a is 3, wanted one of 1, 2'
"""

# How it works. Every call is compared with every wanted call, which gives a table of differences; a
# cell without any is a fit. The verdict is a pairing in that table that leaves no call and no
# required target over, found by augmenting paths, exact for any number. Only where there is none is
# the cheapest pairing looked for, to have something to explain. Cost: calls × targets comparisons,
# each linear in the arguments; the explanation of up to `EXACT_LIMIT` calls looks at 2^targets
# subsets.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ...toolspec import ToolSpec
from ...values import Value, escape_token, pointer_tokens, write_canonical
from ...values.printable import counted
from ..cases.matchers import DEFAULT_MATCHERS, MATCHERS, Matchers, matcher_of
from ..cases.target import is_optional, is_wish, plain_wish

EXACT_LIMIT = 8
"""Up to so many calls the pairing that explains a mismatch is the best one, above it a greedy one;
the verdict is exact for any number."""


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


@dataclass(frozen=True, slots=True)
class Match:
    """The verdict on calls beside a target, with its reasons.

    `code` is '' where they agree, else the most telling sub-code. `pairs` (call index, target
    index) is the pairing that `differences` are told by. `note` says where that pairing was not
    searched to the end.
    """

    ok: bool
    code: str = ""
    detail: str = ""
    differences: tuple[Difference, ...] = ()
    pairs: tuple[tuple[int, int], ...] = ()
    note: str = ""


# The types whose `==` is equality in JSON, among values of one of them.
_SCALARS = frozenset((str, int, bool, type(None)))
# From the most telling difference to the least, and their costs in a pairing.
_ORDER = ("name", "missing_argument", "extra_argument", "wrong_argument")
_WEIGHT = {"name": 1000, "missing_argument": 2, "extra_argument": 2, "wrong_argument": 1}
_LEFT_OUT = 100_000  # the cost of a required target without a call: more than any differences
_MOST_REFERENCES = 20  # a longer chain of $ref is taken for a circle
_MOST_NAMES = 5
_MOST_SHOWN = 80

Call: TypeAlias = tuple[str, Value]
Row: TypeAlias = list[tuple[Difference, ...]]
"""The differences between one call and each wanted one."""
Choices: TypeAlias = dict[int, tuple[int, tuple[int, ...]]]
"""Columns in use, as a bit mask -> the cost of the rows so far and the column that each took."""
Pairs: TypeAlias = list[tuple[int, int]]
"""(call index, target index) of the calls, in order."""


def match_calls(
    calls: Sequence[Call],
    target: Sequence[Any],
    tools: Sequence[ToolSpec] = (),
    matchers: Matchers = DEFAULT_MATCHERS,
) -> Match:
    """Compare (name, arguments) pairs with a target, in any order.

    An argument whose value is the schema's default may be written or left out on either side.

    calls: the text read. target: the wanted calls, in the form of the head of this file.
    tools: those of the case, for the defaults in their schemas. matchers: how values are compared.
    """
    required = _required(target)
    if not target and calls:
        return Match(False, "unexpected_call", f"{_names(calls)} called where no call was wanted")
    if not len(required) <= len(calls) <= len(target):
        return Match(False, "count", _count_detail(calls, len(required), len(target)))

    table = _compare_all(calls, target, tools, matchers)
    pairs = _pair(table, len(calls), len(target), required)
    if pairs is not None:
        return Match(True, pairs=pairs)
    return _explain(calls, target, table, required)


def _count_detail(calls: Sequence[Call], least: int, most: int) -> str:
    """Return the sentence for too few or too many calls, where `least` to `most` are wanted.

    >>> _count_detail([("f", {})], 2, 3)
    '1 call instead of 2 to 3: f'
    """
    number = f"{least} to {most}" if least < most else str(most)
    names = _names(calls) or "none"
    return f"{counted(len(calls), 'call')} instead of {number}: {names}"


def agree(
    calls: Sequence[Call],
    target: Sequence[Any],
    tools: Sequence[ToolSpec] = (),
    matchers: Matchers = DEFAULT_MATCHERS,
) -> bool:
    """Return True if `match_calls` finds that calls and target agree, without the reasons where
    they do not.

    The arguments are those of `match_calls`.

    >>> agree([("f", {"a": 1})], [{"name": "f", "arguments": {"a": 1.0}}])
    True
    """
    required = _required(target)
    if not len(required) <= len(calls) <= len(target):
        return False

    table = _compare_all(calls, target, tools, matchers)
    return _pair(table, len(calls), len(target), required) is not None


def differences_between(
    call: Call, want: Any, tools: Sequence[ToolSpec], matchers: Matchers = DEFAULT_MATCHERS
) -> tuple[Difference, ...]:
    """Return how one call differs from one wanted call.

    Of alternatives, from the nearest one.

    >>> [one.path for one in differences_between(("f", {"a": 1}), {"name": "f"}, ())]
    ['/a']
    """
    return _compare_call(call, want, {tool.name: tool.schema for tool in tools}, matchers)


def _required(target: Sequence[Any]) -> list[int]:
    """Return the indexes of the wanted calls that may not be absent.

    >>> _required([{"name": "f"}, {"name": "g", "$optional": True}])
    [0]
    """
    return [i for i, want in enumerate(target) if not is_optional(want)]


def _compare_all(
    calls: Sequence[Call],
    target: Sequence[Any],
    tools: Sequence[ToolSpec],
    matchers: Matchers,
) -> list[Row]:
    """Return the differences between each call and each wanted one: a row per call, and in it a
    cell a wanted call, empty if the two fit.
    """
    schemas = {tool.name: tool.schema for tool in tools}
    return [[_compare_call(call, want, schemas, matchers) for want in target] for call in calls]


# pairing


def _pair(
    table: list[Row], calls: int, targets: int, required: list[int]
) -> tuple[tuple[int, int], ...] | None:
    """Return a target of its own for every call, and a call for every required target.

    None if there is no such pairing.

    table: a row per call, see `_compare_all`. calls, targets: its two sizes. required: the indexes
    of the targets that may not be absent.
    """
    fits = _fits_of(table, targets)
    if fits is None:
        return None
    pairs = _pair_all(fits, targets)
    if pairs is None:
        return None

    # A matching that covers every call and one that covers every required target give one that
    # covers both (Mendelsohn and Dulmage), so the two can be asked for apart.
    by_target = [[i for i in range(calls) if j in fits[i]] for j in required]
    if _pair_all(by_target, calls) is None:
        return None
    return tuple(pairs)


def _fits_of(table: list[Row], targets: int) -> list[list[int]] | None:
    """Return for each call the targets it fits.

    None if one fits none, since then there is no pairing and the search can be spared.

    >>> _fits_of([[(), ()]], 2)
    [[0, 1]]
    """
    fits = []
    for row in table:
        fitting = [j for j in range(targets) if not row[j]]
        if not fitting:
            return None
        fits.append(fitting)
    return fits


def _pair_all(choices: list[list[int]], size: int) -> Pairs | None:
    """Return a choice of its own for every row (augmenting paths).

    None if there is none.

    choices: the columns that each row may have, out of `size`.

    >>> _pair_all([[0, 1], [0]], 2)
    [(0, 1), (1, 0)]
    >>> _pair_all([[0], [0]], 2)
    """
    rows: list[int | None] = [None] * size  # by column: the row that has it so far

    def place(row: int, tried: set[int]) -> bool:
        """Give the row a column, where others may have to move.

        Return False if there is none.

        tried: the columns that this search has looked at, so that it ends.
        """
        for j in choices[row]:
            if j in tried:
                continue
            tried.add(j)
            other = rows[j]
            # The row that has the column may find another one, and so make room.
            if other is None or place(other, tried):
                rows[j] = row
                return True
        return False

    for row in range(len(choices)):
        if not place(row, set()):
            return None
    return sorted((row, j) for j, row in enumerate(rows) if row is not None)


def _explain(
    calls: Sequence[Call], target: Sequence[Any], table: list[Row], required: list[int]
) -> Match:
    """Return a mismatch with the differences of the cheapest pairing.

    table: a row per call, see `_compare_all`. required: the indexes of the targets that may not be
    absent.
    """
    costs = [[_cost(differences) for differences in row] for row in table]
    note = ""
    if max(len(calls), len(target)) <= EXACT_LIMIT:
        pairs = _cheapest_pairs(costs, len(target), set(required))
    else:
        pairs = _greedy_pairs(costs, len(target))
        note = f"more than {EXACT_LIMIT} calls: the pairing behind this explanation is greedy"

    differences: list[Difference] = []
    for i, j in pairs:
        differences += table[i][j]
    if not differences:  # every call fits something, but some wanted call is left over
        detail = f"a wanted call is missing beside {_names(calls)}"
        return Match(False, "count", detail, (), tuple(pairs), note)

    first = min(differences, key=lambda d: _ORDER.index(d.code))
    return Match(False, first.code, first.detail, tuple(differences), tuple(pairs), note)


def _cost(differences: Sequence[Difference]) -> int:
    """Return how far a call is from a wanted one, for the choice of the pair that explains most.

    >>> _cost([Difference("name", "", "f"), Difference("wrong_argument", "/a", "f")])
    1001
    """
    return sum(_WEIGHT[difference.code] for difference in differences)


def _cheapest_pairs(costs: list[list[int]], size: int, required: set[int]) -> Pairs:
    """Return the pairing of every row with the least cost.

    Leaving a required column out costs more than anything.

    Row by row, the best choice of columns is kept for every set of columns in use (a bit mask), so
    that the cost is rows × size × 2^size.

    costs: of each row with each of `size` columns.

    >>> _cheapest_pairs([[0, 5], [0, 9]], 2, set())
    [(0, 1), (1, 0)]
    """
    best: Choices = {0: (0, ())}
    for row in costs:
        best = _with_one_more(best, row, size)

    def total(item: tuple[int, tuple[int, tuple[int, ...]]]) -> tuple[int, tuple[int, ...]]:
        """Return the whole cost of a choice.

        The picks make equal costs come in a fixed order.
        """
        used, (cost, picks) = item
        left_out = sum(not used >> j & 1 for j in required)
        return cost + _LEFT_OUT * left_out, picks

    _, (_, picks) = min(best.items(), key=total)
    return list(enumerate(picks))


def _with_one_more(best: Choices, row: list[int], size: int) -> Choices:
    """Return the cheapest choice for every set of columns, with one row more than in `best`.

    row: the cost of the new row in each of `size` columns.

    >>> _with_one_more({0: (0, ())}, [3, 5], 2)
    {1: (3, (0,)), 2: (5, (1,))}
    """
    longer: Choices = {}
    for used, (cost, picks) in best.items():
        for j in range(size):
            if used >> j & 1:
                continue
            mask = used | 1 << j
            entry = (cost + row[j], (*picks, j))
            if mask not in longer or entry < longer[mask]:
                longer[mask] = entry
    return longer


def _greedy_pairs(costs: list[list[int]], size: int) -> Pairs:
    """Return a pairing in which each row takes the cheapest column that is free.

    costs: of each row with each of `size` columns, of which there are enough.

    >>> _greedy_pairs([[0, 5], [0, 9]], 2)
    [(0, 0), (1, 1)]
    """
    free = set(range(size))
    pairs = []
    for i, row in enumerate(costs):
        j = min(free, key=lambda j: (row[j], j))
        free.discard(j)
        pairs.append((i, j))
    return pairs


# comparing one call with one wanted call


def _compare_call(
    call: Call, want: Any, schemas: Mapping[str, Any], matchers: Matchers
) -> tuple[Difference, ...]:
    """Return the differences.

    Of alternatives, that of the nearest one.

    want: one entry of a target. schemas: those of the tools by name.
    """
    name, arguments = call
    if "$any" in want:
        every = [_compare_call(call, one, schemas, matchers) for one in want["$any"]]
        return min(every, key=_cost)

    names = want["name"]
    allowed = names["$any"] if isinstance(names, Mapping) else [names]
    if name not in allowed:
        return (Difference("name", "", name, name, allowed),)

    schema = schemas.get(name, {})
    comparison = _Comparison(name, schema, matchers)
    comparison.compare(arguments, want.get("arguments", {}), "", schema)
    return tuple(comparison.differences)


class _Comparison:
    """The differences between the arguments of one call and the wanted ones, as they are found.

    root: the schema of the tool, which references begin at. plain: no matcher but the default ones
    is in use, so that scalars can be compared at once. A walk goes down both sides at once, with
    the schema of the place beside them, because a default counts as written.
    """

    __slots__ = ("differences", "matchers", "plain", "root", "tool")

    def __init__(self, tool: str, root: Any, matchers: Matchers) -> None:
        """Begin with no difference. tool: its name, which differences carry."""
        self.tool = tool
        self.root = root
        self.matchers = matchers
        self.plain = matchers.plain
        self.differences: list[Difference] = []

    def compare(self, actual: Value, want: Any, path: str, schema: Any) -> None:
        """add the differences between a value and the target at a path.

        want: a value or a wish. path: a JSON Pointer into the arguments.
        schema: that of the value, perhaps a reference. Anything if there is none.
        """
        # Most values are scalars without a wish or a matcher of their own.
        if self.plain:
            kind = type(want)
            own = type(actual)
            if kind in _SCALARS and own in _SCALARS:
                # By type first: in Python, True equals 1.
                if own is not kind or actual != want:
                    self._add_wrong(path, actual, want)
                return
        self._compare_slowly(actual, want, path, schema)

    def _compare_slowly(self, actual: Value, want: Any, path: str, schema: Any) -> None:
        """add the differences where matchers and wishes may have a say. See `compare`."""
        matcher = self.matchers.at(self.tool, path)
        if matcher is not None:
            is_right = matcher(actual, plain_wish(want))
        elif is_wish(want):
            is_right = self._grants(actual, want, path, schema)
        else:
            self._compare_parts(actual, want, path, schema)
            return

        if not is_right:
            self._add_wrong(path, actual, want)

    def _compare_parts(self, actual: Value, want: Any, path: str, schema: Any) -> None:
        """add the differences between a value and another one that is not a wish: in their members,
        where they have some.
        """
        if isinstance(want, Mapping) and isinstance(actual, Mapping):
            self._compare_objects(actual, want, path, schema)
        elif isinstance(want, list) and isinstance(actual, list):
            self._compare_lists(actual, want, path, schema)
        elif not _are_equal_scalars(actual, want, self.matchers):
            self._add_wrong(path, actual, want)

    def _compare_lists(self, actual: list[Value], want: list[Any], path: str, schema: Any) -> None:
        """add the differences between two lists, item by item where they are of one length."""
        # Of two lengths nobody knows which item is the one too many.
        if len(want) != len(actual):
            self._add_wrong(path, actual, want)
            return

        items = _resolve(schema, self.root).get("items")
        for i, (a, w) in enumerate(zip(actual, want, strict=True)):
            self.compare(a, w, f"{path}/{i}", items)

    def _compare_objects(
        self, actual: Mapping[str, Value], want: Mapping[str, Any], path: str, schema: Any
    ) -> None:
        """add the differences between two objects: in the members that are wanted, then in those
        that are not.
        """
        properties = _resolve(schema, self.root).get("properties")
        if not isinstance(properties, Mapping):
            properties = {}

        # A loop without a call for each member, because every argument of every call comes by.
        plain = self.plain
        for key, inner in want.items():
            if key not in actual:
                place = f"{path}/{escape_token(key)}"
                self._compare_absent(inner, place, properties.get(key))
                continue
            value = actual[key]
            kind = type(inner)
            if plain and kind in _SCALARS and type(value) is kind and value == inner:
                continue  # what most arguments are
            place = f"{path}/{escape_token(key)}"
            self._compare_member(value, inner, place, properties.get(key))

        # Equal keys are the rule, and comparing the two sets of them is done in C.
        if actual.keys() != want.keys():
            self._compare_unwanted(actual, want, path, properties)

    def _compare_unwanted(
        self,
        actual: Mapping[str, Value],
        want: Mapping[str, Any],
        path: str,
        properties: Mapping[str, Any],
    ) -> None:
        """Add the members of an object that are not wanted. properties: their schemas by name."""
        for key, value in actual.items():
            if key in want:
                continue
            place = f"{path}/{escape_token(key)}"
            self._compare_extra(value, place, properties.get(key))

    def _compare_member(self, value: Value, inner: Any, path: str, schema: Any) -> None:
        """add the differences in a member that both sides have. inner: its wanted value."""
        if is_optional(inner):
            default = _resolve(schema, self.root)
            # Written out, the default is what leaving out would have said.
            if "default" in default and self._agrees(value, {"$value": default["default"]}, path):
                return
        self.compare(value, inner, path, schema)

    def _compare_absent(self, inner: Any, path: str, schema: Any) -> None:
        """Add a member that the call has not, unless it may be left out or its default is the
        target. inner: its wanted value.
        """
        if is_optional(inner):
            return
        default = _resolve(schema, self.root)
        if "default" in default and self._agrees(default["default"], inner, path):
            return
        self.differences.append(Difference("missing_argument", path, self.tool, None, inner))

    def _compare_extra(self, value: Value, path: str, schema: Any) -> None:
        """Add a member that is not wanted, unless its value is the default or it is ignored."""
        default = _resolve(schema, self.root)
        if "default" in default and self._agrees(value, default["default"], path):
            return
        if self.matchers.at(self.tool, path) is MATCHERS["ignore"]:
            return
        self.differences.append(Difference("extra_argument", path, self.tool, value))

    def _agrees(self, actual: Value, want: Any, path: str) -> bool:
        """Return True if a value and another one do not differ, without a schema.

        A comparison of its own, so that no difference of this question is added to the answer.
        """
        other = _Comparison(self.tool, {}, self.matchers)
        other.compare(actual, want, path, {})
        return not other.differences

    def _grants(self, actual: Value, wish: Mapping[str, Any], path: str, schema: Any) -> bool:
        """Return True if a value is everything wished for. wish: an object of `$` keys."""
        # `$match` first, since it may stand beside a `$value`.
        if "$match" in wish:
            return matcher_of(wish["$match"])(actual, wish.get("$value"))
        if "$any" in wish:
            return any(self._fits(actual, one, path, schema) for one in wish["$any"])
        if "$value" in wish:
            return _is_same(actual, wish["$value"], self.matchers)
        return True  # `$optional` alone: any value will do

    def _fits(self, actual: Value, want: Any, path: str, schema: Any) -> bool:
        """Return True if a value does not differ from one alternative of a wish."""
        other = _Comparison(self.tool, self.root, self.matchers)
        other.compare(actual, want, path, schema)
        return not other.differences

    def _add_wrong(self, path: str, actual: Value, want: Any) -> None:
        """Add a value that is not the wanted one."""
        self.differences.append(Difference("wrong_argument", path, self.tool, actual, want))


def _is_same(a: Value, b: Any, matchers: Matchers) -> bool:
    """Return True if a value is exactly another one, wishes in it read as they stand.

    Scalars are compared by the matcher of their type.

    >>> _is_same({"$any": [1]}, {"$any": [1.0]}, DEFAULT_MATCHERS)
    True
    >>> _is_same([1], [1, 2], DEFAULT_MATCHERS)
    False
    """
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return _are_same_objects(a, b, matchers)
    if isinstance(a, list) and isinstance(b, list):
        return _are_same_lists(a, b, matchers)
    return _are_equal_scalars(a, b, matchers)


def _are_same_objects(a: Mapping[str, Value], b: Mapping[str, Any], matchers: Matchers) -> bool:
    """Return True for two objects with the same keys, in any order, and the same values."""
    if a.keys() != b.keys():
        return False
    return all(_is_same(a[key], b[key], matchers) for key in a)


def _are_same_lists(a: list[Value], b: list[Any], matchers: Matchers) -> bool:
    """Return True for two lists of one length with the same values in the same order."""
    if len(a) != len(b):
        return False
    return all(_is_same(x, y, matchers) for x, y in zip(a, b, strict=True))


def _are_equal_scalars(actual: Value, want: Any, matchers: Matchers) -> bool:
    """Return True for two scalars that are equal by the matcher of their type.

    False if one is an object or an array.
    """
    if isinstance(want, (Mapping, list)) or isinstance(actual, (Mapping, list)):
        return False
    is_equal = matchers.of(want)
    return is_equal(actual, want)


def _resolve(schema: Any, root: Any) -> Mapping[str, Any]:
    """Return the schema behind local references. {} if there is none to be had.

    root: the whole schema, which references begin at.

    >>> _resolve({"$ref": "#/$defs/n", "default": 1}, {"$defs": {"n": {"type": "integer"}}})
    {'type': 'integer', 'default': 1}
    """
    if type(schema) is dict and "$ref" not in schema:
        return schema  # what most are

    for _ in range(_MOST_REFERENCES):
        if not isinstance(schema, Mapping):
            return {}
        ref = schema.get("$ref")
        if not isinstance(ref, str):
            return schema
        schema = _referred(schema, ref, root)
    return {}


def _referred(schema: Mapping[str, Any], ref: str, root: Any) -> Mapping[str, Any] | None:
    """Return the schema with its reference replaced by its target, None if that is not in this
    document.

    ref: the text behind `$ref`. root: the whole schema.
    """
    node = _schema_at(root, ref[1:]) if ref.startswith("#") else None
    if not isinstance(node, Mapping):
        return None

    # What stands beside $ref (a default, say) wins over what it refers to.
    beside = {key: value for key, value in schema.items() if key != "$ref"}
    return {**node, **beside}


def _schema_at(root: Any, pointer: str) -> Any:
    """Return the node of a schema at a JSON Pointer, None if there is none.

    >>> _schema_at({"a": {"b": 1}}, "/a/b")
    1
    """
    node = root
    for token in pointer_tokens(pointer):
        node = node.get(token) if isinstance(node, Mapping) else None
    return node


# words


def _say(x: Any) -> str:
    """Return a wanted value in words: a wish as the list of allowed values, anything else as JSON.

    >>> _say("x"), _say({"$any": [1, 2]}), _say({"$optional": True})
    ('"x"', 'one of 1, 2', 'anything')
    """
    if is_wish(x):
        return _say_wish(x)
    text = write_canonical(x)
    if len(text) <= _MOST_SHOWN:
        return text
    return text[: _MOST_SHOWN - 3] + "…"


def _say_wish(wish: Mapping[str, Any]) -> str:
    """Return a wish in words, by the first of its parts that says something.

    >>> _say_wish({"$match": "regex", "$value": "par.*"})
    'regex "par.*"'
    """
    if "$match" in wish:
        name = str(wish["$match"])
        if "$value" not in wish:
            return name
        return f"{name} {_say(wish['$value'])}"

    if "$any" in wish:
        return "one of " + ", ".join(_say(value) for value in wish["$any"])
    if "$value" in wish:
        return _say(wish["$value"])
    return "anything"


def _names(calls: Sequence[Call]) -> str:
    """Return the names of the calls, the first few of many.

    >>> _names([("f", {}), ("", {})])
    'f, ?'
    """
    names = [name or "?" for name, _ in calls]
    text = ", ".join(names[:_MOST_NAMES])
    more = len(names) - _MOST_NAMES
    if more <= 0:
        return text
    return f"{text} and {more} more"
