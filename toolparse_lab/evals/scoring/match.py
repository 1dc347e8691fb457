"""Matching calls to a target: order-free, numbers as decimals, alternatives, defaults, pluggable comparison.

A target is a list of calls ``{"name": …, "arguments": {…}}``. Anywhere in it, an object whose keys all begin with one
of the four words below is no value but a wish:

- ``{"$any": [a, b]}``: any of these; for a call, a name or a value
- ``{"$optional": true, …}``: may be left out; beside it ``$any`` or ``$value``, or nothing (any value will do);
  in a call, beside ``name`` and ``arguments``
- ``{"$value": x}``: exactly x, read as it stands, for arguments that look like a wish themselves
- ``{"$match": "regex", "$value": "par.*"}``: compared by a matcher of `MATCHERS`

>>> match_calls([("f", {"a": 1.0})], [{"name": "f", "arguments": {"a": {"$any": [1, 2]}}}]).ok
True
>>> match_calls([("f", {"a": 3})], [{"name": "f", "arguments": {"a": {"$any": [1, 2]}}}]).detail
'f: /a is 3, wanted one of 1, 2'
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...toolspec import ToolSpec
from ...values import Value, escape_token, pointer_tokens, write_canonical
from ..cases.matchers import DEFAULT_MATCHERS, MATCHERS, Matchers, matcher_of
from ..cases.target import is_optional, is_wish, plain_wish

EXACT_LIMIT = 8
"""Up to so many calls the pairing that explains a mismatch is the best one, above it a greedy one; the verdict is
exact for any number."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One way in which a call of `tool` is not the wanted one. `code` is a sub-code of `wrong_call`; `actual` and
    `wanted` are the two values, or the two names."""

    code: str
    path: str
    tool: str
    actual: Any = None
    wanted: Any = None

    @property
    def detail(self) -> str:
        """The difference as one sentence, made when it is asked for: most are never told."""
        if self.code == "name":
            return f"{self.tool} called instead of {' or '.join(map(str, self.wanted))}"
        if self.code == "missing_argument":
            return f"{self.tool}: {self.path} is missing, wanted {_say(self.wanted)}"
        wanted = "none" if self.code == "extra_argument" else _say(self.wanted)
        return f"{self.tool}: {self.path or 'the arguments'} is {_say(self.actual)}, wanted {wanted}"


@dataclass(frozen=True, slots=True)
class Match:
    """What came of comparing calls with a target.

    `code` is '' where they agree, else the most telling sub-code; `pairs` (call index, target index) is the pairing
    that `differences` are told by; `note` says where that pairing was not searched to the end.
    """

    ok: bool
    code: str = ""
    detail: str = ""
    differences: tuple[Difference, ...] = ()
    pairs: tuple[tuple[int, int], ...] = ()
    note: str = ""


_SCALARS = frozenset((str, int, bool, type(None)))  # the types whose `==` is equality in JSON, among themselves
_ORDER = ("name", "missing_argument", "extra_argument", "wrong_argument")
_WEIGHT = {"name": 1000, "missing_argument": 2, "extra_argument": 2, "wrong_argument": 1}


def match_calls(
    calls: Sequence[tuple[str, Value]],
    target: Sequence[Any],
    tools: Sequence[ToolSpec] = (),
    matchers: Matchers = DEFAULT_MATCHERS,
) -> Match:
    """Compare (name, arguments) pairs with a target, in any order.

    An argument whose value is the schema's default may be written or left out on either side.
    """
    required = [i for i, t in enumerate(target) if not is_optional(t)]
    if not target and calls:
        return Match(False, "unexpected_call", f"{_names(calls)} called where no call was wanted")
    if len(calls) > len(target) or len(calls) < len(required):
        wanted = str(len(target)) if len(required) == len(target) else f"{len(required)} to {len(target)}"
        return Match(False, "count", f"{_count(len(calls))} instead of {wanted}: {_names(calls) or 'none'}")
    table = _compare_all(calls, target, tools, matchers)
    pairs = _pair(table, len(calls), len(target), required)
    return _explain(calls, target, table, required) if pairs is None else Match(True, pairs=pairs)


def agree(
    calls: Sequence[tuple[str, Value]],
    target: Sequence[Any],
    tools: Sequence[ToolSpec] = (),
    matchers: Matchers = DEFAULT_MATCHERS,
) -> bool:
    """Whether `match_calls` finds that calls and target agree, without the reasons where they do not."""
    required = [i for i, t in enumerate(target) if not is_optional(t)]
    if len(calls) > len(target) or len(calls) < len(required):
        return False
    table = _compare_all(calls, target, tools, matchers)
    return _pair(table, len(calls), len(target), required) is not None


def _compare_all(
    calls: Sequence[tuple[str, Value]], target: Sequence[Any], tools: Sequence[ToolSpec], matchers: Matchers
) -> list[list[tuple[Difference, ...]]]:
    """What is different between each call and each wanted one."""
    schemas = {t.name: t.schema for t in tools}
    return [[_compare_call(call, want, schemas, matchers) for want in target] for call in calls]


def _pair(
    table: list[list[tuple[Difference, ...]]], calls: int, targets: int, required: list[int]
) -> tuple[tuple[int, int], ...] | None:
    """A target of its own for every call, and a call for every target that is required; None where there is none."""
    fits = [[j for j in range(targets) if not row[j]] for row in table]
    if not all(fits):
        return None
    paired = _pair_all(fits, targets)
    # A matching that covers every call and one that covers every required target give one that covers both
    # (Mendelsohn and Dulmage), so the two can be asked for apart.
    by_target = [[i for i in range(calls) if j in fits[i]] for j in required]
    if paired is None or _pair_all(by_target, calls) is None:
        return None
    return tuple(paired)


def _explain(
    calls: Sequence[tuple[str, Value]],
    target: Sequence[Any],
    table: list[list[tuple[Difference, ...]]],
    required: list[int],
) -> Match:
    costs = [[sum(_WEIGHT[d.code] for d in cell) for cell in row] for row in table]
    note = ""
    if max(len(calls), len(target)) <= EXACT_LIMIT:
        pairs = _cheapest_pairs(costs, len(target), set(required))
    else:
        pairs = _greedy_pairs(costs, len(target))
        note = f"more than {EXACT_LIMIT} calls: the pairing behind this explanation is greedy"
    found = [d for i, j in pairs for d in table[i][j]]
    if not found:  # every call fits something, but some wanted call is left over
        return Match(False, "count", f"a wanted call is missing beside {_names(calls)}", (), tuple(pairs), note)
    first = min(found, key=lambda d: _ORDER.index(d.code))
    return Match(False, first.code, first.detail, tuple(found), tuple(pairs), note)


def _pair_all(choices: list[list[int]], size: int) -> list[tuple[int, int]] | None:
    """A choice of its own for every row (augmenting paths), or None where there is none."""
    taken: list[int | None] = [None] * size

    def place(row: int, seen: set[int]) -> bool:
        for j in choices[row]:
            if j in seen:
                continue
            seen.add(j)
            other = taken[j]
            if other is None or place(other, seen):
                taken[j] = row
                return True
        return False

    if not all(place(row, set()) for row in range(len(choices))):
        return None
    return sorted((row, j) for j, row in enumerate(taken) if row is not None)


def _cheapest_pairs(costs: list[list[int]], size: int, required: set[int]) -> list[tuple[int, int]]:
    """The pairing of every row with the least cost; leaving a required column out costs more than anything."""
    best: dict[int, tuple[int, tuple[int, ...]]] = {0: (0, ())}
    for row in costs:
        step: dict[int, tuple[int, tuple[int, ...]]] = {}
        for used, (cost, picks) in best.items():
            for j in range(size):
                if not used >> j & 1:
                    entry = (cost + row[j], (*picks, j))
                    if (mask := used | 1 << j) not in step or entry < step[mask]:
                        step[mask] = entry
        best = step

    def total(item: tuple[int, tuple[int, tuple[int, ...]]]) -> tuple[int, tuple[int, ...]]:
        used, (cost, picks) = item
        return cost + 100_000 * sum(not used >> j & 1 for j in required), picks

    return list(enumerate(min(best.items(), key=total)[1][1]))


def _greedy_pairs(costs: list[list[int]], size: int) -> list[tuple[int, int]]:
    free = set(range(size))
    pairs = []
    for i, row in enumerate(costs):
        j = min(free, key=lambda j: (row[j], j))
        free.discard(j)
        pairs.append((i, j))
    return pairs


def _compare_call(
    call: tuple[str, Value], want: Any, schemas: Mapping[str, Any], matchers: Matchers
) -> tuple[Difference, ...]:
    name, arguments = call
    if "$any" in want:
        every = [_compare_call(call, one, schemas, matchers) for one in want["$any"]]
        return min(every, key=lambda ds: sum(_WEIGHT[d.code] for d in ds))
    names = want["name"]
    allowed = names["$any"] if isinstance(names, Mapping) else [names]
    if name not in allowed:
        return (Difference("name", "", name, name, allowed),)
    out: list[Difference] = []
    schema = schemas.get(name, {})
    _compare(arguments, want.get("arguments", {}), "", schema, schema, name, matchers, out)
    return tuple(out)


def _compare(
    actual: Value, want: Any, path: str, schema: Any, root: Any, tool: str, matchers: Matchers, out: list[Difference]
) -> None:
    if matchers.plain and (kind := type(want)) in _SCALARS and (own := type(actual)) in _SCALARS:
        if own is not kind or actual != want:
            out.append(_wrong(tool, path, actual, want))
        return
    if (matcher := matchers.at(tool, path)) is not None:
        if not matcher(actual, plain_wish(want)):
            out.append(_wrong(tool, path, actual, want))
        return
    if is_wish(want):
        if not _grants(actual, want, path, schema, root, tool, matchers):
            out.append(_wrong(tool, path, actual, want))
        return
    if isinstance(want, Mapping) and isinstance(actual, Mapping):
        _compare_objects(actual, want, path, schema, root, tool, matchers, out)
    elif isinstance(want, list) and isinstance(actual, list):
        if len(want) != len(actual):
            out.append(_wrong(tool, path, actual, want))
            return
        items = _resolve(schema, root).get("items")
        for i, (a, w) in enumerate(zip(actual, want, strict=True)):
            _compare(a, w, f"{path}/{i}", items, root, tool, matchers, out)
    elif (
        isinstance(want, (Mapping, list)) or isinstance(actual, (Mapping, list)) or not matchers.of(want)(actual, want)
    ):
        out.append(_wrong(tool, path, actual, want))


def _compare_objects(
    actual: Mapping[str, Value],
    want: Mapping[str, Any],
    path: str,
    schema: Any,
    root: Any,
    tool: str,
    matchers: Matchers,
    out: list[Difference],
) -> None:
    properties = _resolve(schema, root).get("properties")
    properties = properties if isinstance(properties, Mapping) else {}
    plain = matchers.plain
    for key, wanted in want.items():
        if plain and (kind := type(wanted)) in _SCALARS and key in actual:
            value = actual[key]
            if type(value) is kind and value == wanted:
                continue  # what most arguments are
        at = f"{path}/{escape_token(key)}"
        default = _resolve(properties.get(key), root)
        if key in actual:
            # Written out, the default is what leaving out would have said.
            said = "default" in default and is_optional(wanted)
            if not (said and _agree(actual[key], {"$value": default["default"]}, at, tool, matchers)):
                _compare(actual[key], wanted, at, properties.get(key), root, tool, matchers, out)
            continue
        if is_optional(wanted) or ("default" in default and _agree(default["default"], wanted, at, tool, matchers)):
            continue
        out.append(Difference("missing_argument", at, tool, None, wanted))
    for key, value in actual.items():
        if key in want:
            continue
        at = f"{path}/{escape_token(key)}"
        default = _resolve(properties.get(key), root)
        if "default" in default and _agree(value, default["default"], at, tool, matchers):
            continue
        if matchers.at(tool, at) is MATCHERS["ignore"]:
            continue
        out.append(Difference("extra_argument", at, tool, value))


def _agree(actual: Value, want: Any, path: str, tool: str, matchers: Matchers) -> bool:
    out: list[Difference] = []
    _compare(actual, want, path, {}, {}, tool, matchers, out)
    return not out


def _grants(actual: Value, wish: Mapping[str, Any], path: str, schema: Any, root: Any, tool: str, m: Matchers) -> bool:
    if "$match" in wish:
        return matcher_of(wish["$match"])(actual, wish.get("$value"))
    if "$any" in wish:
        return any(_fits(actual, one, path, schema, root, tool, m) for one in wish["$any"])
    if "$value" in wish:
        return _same_deep(actual, wish["$value"], m)
    return True


def _fits(actual: Value, want: Any, path: str, schema: Any, root: Any, tool: str, matchers: Matchers) -> bool:
    out: list[Difference] = []
    _compare(actual, want, path, schema, root, tool, matchers, out)
    return not out


def _same_deep(a: Value, b: Any, matchers: Matchers) -> bool:
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(_same_deep(a[k], b[k], matchers) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(_same_deep(x, y, matchers) for x, y in zip(a, b, strict=True))
    if isinstance(a, (Mapping, list)) or isinstance(b, (Mapping, list)):
        return False
    return matchers.of(b)(a, b)


def _resolve(schema: Any, root: Any) -> Mapping[str, Any]:
    """The schema behind local references; {} where there is none to be had."""
    if type(schema) is dict and "$ref" not in schema:
        return schema
    for _ in range(20):
        if not isinstance(schema, Mapping):
            return {}
        ref = schema.get("$ref")
        if not isinstance(ref, str):
            return schema
        if not ref.startswith("#"):
            return {}
        node: Any = root
        for token in pointer_tokens(ref[1:]):
            node = node.get(token) if isinstance(node, Mapping) else None
        # What stands beside $ref (a default, say) wins over what it refers to.
        schema = {**node, **{k: v for k, v in schema.items() if k != "$ref"}} if isinstance(node, Mapping) else None
    return {}


def _wrong(tool: str, path: str, actual: Value, want: Any) -> Difference:
    return Difference("wrong_argument", path, tool, actual, want)


def _say(x: Any) -> str:
    if is_wish(x):
        if "$match" in x:
            return f"{x['$match']} {_say(x['$value'])}" if "$value" in x else str(x["$match"])
        if "$any" in x:
            return "one of " + ", ".join(_say(v) for v in x["$any"])
        return _say(x["$value"]) if "$value" in x else "anything"
    text = write_canonical(x)
    return text if len(text) <= 80 else text[:77] + "…"


def _names(calls: Sequence[tuple[str, Value]]) -> str:
    names = [name or "?" for name, _ in calls]
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _count(n: int) -> str:
    return "1 call" if n == 1 else f"{n} calls"
