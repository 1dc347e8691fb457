"""Coercion: bringing arguments to their schema by a policy.

Pure. Every change is a Step with a permanent rule id.

``none`` changes nothing. ``safe`` makes only lossless changes, and none to a value that is already
legal, to a union that admits text, or to a key the schema does not declare; but a single key that
holds all arguments gives them up (`{"arguments": {"city": "Rome"}}`), and raw text has no quotes.
``middleware`` also splits text into lists, unwraps single keys and reads values the schema says
nothing of. ``go-strconv`` is a Go orchestrator's coercion exactly: top-level text only, by
strconv. ``lossy`` is a negative control: whatever makes a value validate.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ...core.errors import UnknownName
from ...core.types import JsonSchema, Policy, Problem, Step
from ...core.types.spans import maker_of
from ...core.values import Value, escape_token, number, read_plain, same, write_canonical
from .conforms import Answers, Budget, OverBudget, TooDeep, conforms
from .go import coerce_like_go
from .kinds import LEAVES, is_type
from .plain import may_be_wrapped
from .scalars import (
    SPACE,
    TEXT_READERS,
    Record,
    boolean_from_switch,
    container_from_text,
    from_raw_text,
    from_untyped_text,
    holds_bare_null,
    holds_typed_text,
    is_padded,
    to_enum,
    to_text,
)
from .validate import is_valid
from .view import View, view_of

# How it works. A policy is a name and the walk that goes with it. `safe` first asks if the value is
# legal already, which costs a tenth of a walk and is true of most values; the other policies have
# no such way out, for they change legal values, too.

POLICIES = ("none", "safe", "middleware", "go-strconv", "lossy")


@dataclass(frozen=True, slots=True)
class Coerced:
    """A value after coercion, its steps, and the problems that stopped it.

    >>> import toolparse_lab as tp
    >>> coerced = tp.coerce("5", {"type": "integer"})
    >>> coerced.value, coerced.steps[0].rule
    (5, 'coerce.integer-from-string')
    """

    value: Value
    steps: tuple[Step, ...]
    problems: tuple[Problem, ...] = ()


_make_coerced = maker_of(Coerced)


def coerce(
    value: object,
    schema: JsonSchema,
    policy: Policy = "safe",
    *,
    one_item: bool = False,
    raw_text: bool = False,
) -> Coerced:
    """Return `value` brought to `schema` by `policy`.

    Your object is never changed. A value that nests too deep to be compared with the schema stays
    as it is. So does one whose schema branches too often to be followed, with the problem
    `coerce.budget`. Raises UnknownName for a policy that does not exist.

    Args:
        schema: a mapping, JSON text, a bool or None.
        one_item: the format writes a list of one item as a single text, as XML does.
        raw_text: the format has no quotes. Under `safe`, a parameter's bare word null is then null,
            and JSON of another type that type, if the schema names it, even where a string is
            legal.

    >>> coerce({"a": "1"}, {"type": "object", "properties": {"a": {"type": "integer"}}}).value
    {'a': 1}
    """
    if policy not in POLICIES:
        raise UnknownName.unknown(
            "no coercion policy of this name", policy, POLICIES, code="unknown-rule"
        )
    if policy == "none":
        return Coerced(value, ())
    if policy == "go-strconv":
        plain_schema = read_plain(schema) if isinstance(schema, str) else schema
        new, steps = coerce_like_go(value, plain_schema)
        return Coerced(new, tuple(steps))

    try:
        return _by_view(value, view_of(schema), policy, one_item, raw_text)
    except TooDeep:
        return Coerced(value, ())
    except OverBudget:
        return _left_alone(value, "the tool's schema branches too often to be followed")
    except RecursionError:  # the caller's own stack was nearly full
        return _left_alone(value, "value and schema nest too deep to be followed")


def _left_alone(value: Value, message: str) -> Coerced:
    message = f"the arguments stay as they are: {message}"
    return Coerced(value, (), (Problem("coerce", "coerce.budget", "warning", message),))


def _by_view(value: Value, view: View, policy: Policy, one_item: bool, raw_text: bool) -> Coerced:
    if policy == "lossy":
        # `middleware`, then anything that makes the rest validate. One walk has the steps of both.
        walk = Walk("middleware", False, Budget(value))
        new = _force(walk.value(value, view, "", 0), view, "", walk, 0)
        return Coerced(new, tuple(walk.steps))

    # Without branches nothing is spent before the walk.
    budget = None if view.only_leaves else Budget(value)
    # Legal as it is, as is most of what comes; raw text may be legal as text and mean more.
    may_hold_more = raw_text and (holds_bare_null(value) or holds_typed_text(value, view))
    wrapped = may_be_wrapped(value)
    may_hold_more = may_hold_more or view.has_conditions
    if policy == "safe" and not may_hold_more and not wrapped and conforms(view, value, budget):
        return _make_coerced(value, ())

    walk = Walk(policy, one_item, budget or Budget(value))
    walk.raw_text = raw_text
    inner = _unwrapped(value, view, walk) if wrapped else value
    if wrapped and inner is value and policy == "safe" and conforms(view, value, budget):
        return _make_coerced(value, ())
    new = walk.value(inner, view, "", 0)
    return _make_coerced(new, tuple(walk.steps))


def coerce_by_schema(value: object, schema: JsonSchema = None) -> Value:
    """`value` under the policy ``middleware``, without the record of the changes.

    >>> coerce_by_schema({"tags": "a,b"}, {"properties": {"tags": {"type": "array"}}})
    {'tags': ['a', 'b']}
    """
    return coerce(value, schema, "middleware").value


_OBJECT = '{"type": "object"}'


def _unwrapped(value: Value, view: View, walk: Walk) -> Value:
    # The arguments inside an only member that is none of the tool's, if the tool has all of them.
    # A text is read where it says one object.
    ((name, inner),) = value.items()
    if not view.properties or name in view.properties:
        return value
    mark = len(walk.steps)
    inner = walk.value(inner, view_of(_OBJECT), f"/{name}", 1)
    if isinstance(inner, dict) and inner and inner.keys() <= view.properties.keys():
        walk.note("coerce.wrapper", "", value, inner)
        return inner
    del walk.steps[mark:]
    return value


# One coercion under way

# How it works. A value and the view of its node go down together. Each method takes a value and
# returns the new one, or the very same object where nothing changes: `is not` is how a caller
# learns of a change, and containers are copied only once something in them did change. A trial
# (a branch of a union, a wrapping that may not fit) marks the length of `steps` first and cuts the
# record back to that mark if it fails.
#
# Unions are where the cost is. Each branch is tried on the value, and unions inside unions would
# try the same again and again, so the outcome of every (union, value) pair is kept by identity and
# replayed with its paths moved. While a union is being tried, its own entry stands for "unchanged",
# which ends the circle of a union that contains itself. Under `safe` a value that more than one
# branch could mean is left alone.
#
# A schema that a person would never finish reading is given up: depth ends at `_MAX_DEPTH`, texts
# are wrapped at most `_MAX_TRIALS` times one inside the other, and every look at a value is a step
# of the budget, which trials share.

_MAX_DEPTH = 150  # deeper values are left as they are: no schema that people write goes there
_MAX_TRIALS = 4  # lists of one item inside each other that a single text is brought into
_NO_ITEM = object()  # is no value
_MAX_WRAPS = 20  # lists around one value that is no list
_ONLY_TEXT = (("string",), ("string", "null"))


class Walk(Record):
    """One coercion under way."""

    __slots__ = (
        *("_answers", "_in_union", "_is_endless", "_item", "_links", "_no_switch_at"),
        *("_outcomes", "_trials", "budget", "raw_text"),
    )

    def __init__(
        self, policy: str, one_item: bool = False, budget: Budget | None = None, trials: int = 0
    ) -> None:
        super().__init__(policy, one_item)
        self.budget = Budget(None) if budget is None else budget
        self._trials = trials
        # The value that is being wrapped, the lists around it, and that there is no end to them.
        self._item: Any = _NO_ITEM
        self._links = 0
        self._is_endless = False
        # A parameter is what its text says: the bare word null, or JSON of a type that is legal.
        self.raw_text = False
        # What each union made of a value: the value, its outcome, the steps, and their path. The
        # value is kept so that no other object gets its id while the walk lasts.
        self._outcomes: dict[tuple[int, int, bool], tuple[Value, Value, list[Step], str]] = {}
        self._answers: Answers | None = None  # most walks meet no union
        self._in_union = False  # a union is being tried
        # The path of a value of which an outer union admits more than booleans.
        self._no_switch_at: str | None = None

    def value(self, value: Value, view: View, path: str, depth: int) -> Value:
        """Return a value brought to a view."""
        # path: its JSON Pointer in the arguments. depth: how many containers and branches are
        # above.
        kind = type(value)
        if depth > _MAX_DEPTH or (view.leaf is not None and kind in LEAVES[view.leaf]):
            return value

        budget = self.budget
        budget.left -= 1  # as `spend`, which would be a call more for every value
        if budget.left < 0:
            budget.refill()
        # Members of a parameter's own value are left alone, since they may have been quoted.
        if self.raw_text and kind is str and self.safe and path.count("/") == 1:
            new = from_raw_text(self, value, path, view, budget)
            if new is not value:
                return new
        if view.union:
            return self.union(value, view, path, depth)
        if view.enum is not None:
            return to_enum(self, value, view, path)
        if view.types is None:
            return self.untyped(value, view, path, depth)
        if kind is str:
            return self.text(value, view, path, depth)
        if kind is dict:
            look_inside = self.members if view.box is dict else self.mapping
            return look_inside(value, view, path, depth)
        if kind is list:
            return self.sequence(value, view, path, depth)

        return self.scalar(value, view, path, depth)

    # unions

    def union(self, value: Value, view: View, path: str, depth: int) -> Value:
        """Return the value as the branch that it fits, which is tried once for each value."""
        # Any text is legal here, so no reading of it as something else is called for.
        if isinstance(value, str) and view.admits_string():
            return value
        # What is legal stays as it is, without a look at any branch.
        if self.safe and not self._in_union and conforms(view, value, self.budget):
            return value

        key = id(view), id(value), path == self._no_switch_at
        outcome = self._outcomes.get(key)
        if outcome is not None:
            # One value can be in several places, as an object that Python shares among them: the
            # steps are recorded again below this path.
            _, new, steps, old_path = outcome
            for step in steps:
                self.note(step.rule, path + step.path[len(old_path) :], step.before, step.after)
            return new

        # Until the outcome is known, a union inside itself finds this, and ends here.
        self._outcomes[key] = (value, value, [], path)
        mark = len(self.steps)
        new = self.branch(value, view, path, depth)
        self._outcomes[key] = (value, new, self.steps[mark:], path)
        return new

    def branch(self, value: Value, view: View, path: str, depth: int) -> Value:
        """Return the value as the first branch it can be brought to."""
        was_in_union, self._in_union = self._in_union, True
        was_no_switch_at = self._no_switch_at
        if not view.only_boolean:
            self._no_switch_at = path
        mark = len(self.steps)
        results: list[tuple[Value, list[Step]]] = []
        for branch in view.any_of:
            new = self.value(value, branch, path, depth + 1)
            steps = self.steps[mark:]
            del self.steps[mark:]
            if self._answers is None:
                self._answers = Answers(self.budget)
            # It alone asks what is legal inside a union, since it remembers its answers.
            if not self._answers.holds(branch, new, 1):
                continue
            if not steps:
                results = []
                break
            if not any(same(new, other) for other, _ in results):
                results.append((new, steps))
        self._in_union, self._no_switch_at = was_in_union, was_no_switch_at

        # Two branches that give different values are two readings of one text.
        if not results or (self.safe and len(results) > 1):
            return value
        new, steps = results[0]
        self.steps.extend(steps)
        return new

    # what the value is

    def untyped(self, value: Value, view: View, path: str, depth: int) -> Value:
        """Return a value whose schema names no type."""
        # Declared members of objects are still coerced. Text is read only by `middleware`.
        if isinstance(value, dict) and not view.open:
            return self.members(value, view, path, depth)
        if self.safe or not isinstance(value, str):
            return value

        return from_untyped_text(self, value, path)

    def text(self, value: str, view: View, path: str, depth: int) -> Value:
        """Return text where the schema may want something else."""
        # The first type that can read the text wins.
        types = view.types or ()
        # Text is legal; `middleware` still prefers another type that stands before it.
        if "string" in types and (self.safe or types in _ONLY_TEXT):
            return value

        for name in types:
            reader = TEXT_READERS.get(name)
            if reader is not None:
                new = reader(self, value, path)
                if new is value and name == "boolean":
                    new = self._switch(value, view, path)
                elif (
                    new is not value
                    and "string" in types
                    and (not is_type(new, name) or is_padded(value))
                ):
                    # `middleware` reads 5.5 for an integer, and 007; where text is legal both stay.
                    self.steps.pop()
                    new = value
            else:
                new = self._container_from_text(name, value, view, path, depth)
            if new is not value:
                return new

        return value

    def _switch(self, value: Value, view: View, path: str) -> Value:
        if not self.safe or not view.only_boolean or path == self._no_switch_at:
            return value
        return boolean_from_switch(self, value, path)

    def _container_from_text(
        self, name: str, value: str, view: View, path: str, depth: int
    ) -> Value:
        if name not in ("object", "array"):
            return value
        is_array = name == "array"
        new = container_from_text(self, value, path, array=is_array)
        if new is value and is_array and self.safe:
            new = self._single_item(value, view, path, depth)
        elif new is value and is_array:
            new = list_from_separated_text(self, value, view, path)
        if new is value:
            return value
        look_inside = self.sequence if is_array else self.mapping
        return look_inside(new, view, path, depth)

    def _single_item(self, value: str, view: View, path: str, depth: int) -> Value:
        # `safe` never splits a text, because a comma may belong to it.
        item = view.items
        if item is None and len(view.prefix) == 1:
            item = view.prefix[0]
        text = value.strip(SPACE)
        if item is None or not text:  # an empty text may mean an empty list
            return value
        # Where an element is written for each item, commas in it are the item's own.
        if not self.one_item and ("\n" in text or "," in value):
            return value

        # Any text is legal as an item that is a string, so that nothing needs a trial.
        if item.leaf != "string" and not self._can_become(value, item, depth + 1):
            return value
        # The item is wrapped as text; it is coerced, and noted, as a member of the new list.
        return self.note("coerce.wrap-array", path, value, [value])

    def _can_become(self, value: Value, view: View, depth: int) -> bool:
        # The trial has a record of its own, which is thrown away. A list of lists is a trial inside
        # a trial.
        if self._trials >= _MAX_TRIALS:
            return False
        # A walk of its own: this one's answers are of values that stay alive.
        trial = Walk(self.policy, self.one_item, self.budget, self._trials + 1)
        return conforms(view, trial.value(value, view, "", depth), self.budget)

    def mapping(self, value: dict[str, Value], view: View, path: str, depth: int) -> Value:
        """Return an object as one, as a list out of its shape, or as its one member's value."""
        if view.allows("object"):
            return self.members(value, view, path, depth)
        if view.allows("array"):
            new = list_from_mapping(self, value, path)
            if new is not value:
                return self.sequence(new, view, path, depth)
            return self.wrapped(value, view, path, depth)
        if self.safe or len(value) != 1:
            return value

        # Models write {"value": 5} for 5. The record is cut back where that does not help.
        inner = next(iter(value.values()))
        mark = len(self.steps)
        self.note("coerce.unwrap-single", path, value, inner)
        new = self.value(inner, view, path, depth + 1)
        if any(is_type(new, name) for name in view.types or ()):
            return new

        del self.steps[mark:]
        return value

    def members(self, value: dict[str, Value], view: View, path: str, depth: int) -> Value:
        """Return an object with its members coerced."""
        out: dict[str, Value] | None = None
        leaves, properties = view.leaves, view.properties
        is_plain = depth < _MAX_DEPTH
        for key, member in value.items():
            types = leaves.get(key)
            if types is not None and type(member) in types:
                continue  # plainly right, which nearly all are

            child = properties.get(key) or view.child(key)
            if child is None:
                # For `safe` a member that the schema says nothing of has no type to be brought to.
                if view.tells_of_undeclared or self.safe or not isinstance(member, str):
                    continue
                new = from_untyped_text(self, member, f"{path}/{escape_token(key)}")
            elif child.fixed:
                continue
            # Raw text is more than text under no such schema but that of null.
            elif is_plain and child.leaf not in (None, "null") and type(member) is str:
                budget = self.budget  # as in `value`, which looks for more kinds of values
                budget.left -= 1
                if budget.left < 0:
                    budget.refill()
                new = self.text(member, child, f"{path}/{escape_token(key)}", depth + 1)
            else:
                new = self.value(member, child, f"{path}/{escape_token(key)}", depth + 1)

            if new is not member:
                if out is None:
                    out = dict(value)
                out[key] = new

        new_value = value if out is None else out
        return self._by_conditions(new_value, view, path, depth) if view.conditions else new_value

    def _by_conditions(self, value: dict[str, Value], view: View, path: str, depth: int) -> Value:
        # A condition is asked of the coerced members, as validation will ask it.
        new: Value = value
        for test, then, otherwise in view.conditions:
            holds = test in value if isinstance(test, str) else is_valid(new, test, view.root)
            branch = then if holds else otherwise
            if branch is not None and isinstance(new, dict):
                new = self.value(new, branch, path, depth + 1)
        return new

    def sequence(self, value: list[Value], view: View, path: str, depth: int) -> Value:
        """Return a list with its items coerced."""
        if not view.allows("array"):
            return value

        # Looked up once: this loop is over the items of a list.
        prefix, items = view.prefix, view.items
        out: list[Value] | None = None
        for i, item in enumerate(value):
            child = prefix[i] if i < len(prefix) else items
            if child is None:
                continue

            new = self.value(item, child, f"{path}/{i}", depth + 1)
            if new is not item:
                if out is None:
                    out = list(value)
                out[i] = new

        return value if out is None else out

    def wrapped(self, value: Value, view: View, path: str, depth: int) -> Value:
        """Return a single value where an array is wanted."""
        # Null may mean no list at all, under `safe` whatever the schema says of null.
        if value is None and (self.safe or view.admits_null()):
            return value

        # A list of lists of itself would take one value as an item without end.
        links = self._links + 1 if self._item is value else 1
        if links > _MAX_WRAPS:
            self._is_endless = True
            return value

        mark = len(self.steps)
        outer, self._item, self._links = (self._item, self._links), value, links
        # The item is coerced inside the new list, where its own view is.
        items = self.note("coerce.wrap-array", path, value, [value])
        new = self.sequence(items, view, path, depth + 1)
        self._item, self._links = outer
        if self._is_endless:
            self._is_endless = links > 1  # until the first list of the chain is undone
            del self.steps[mark:]
            return value

        # Only `safe` asks: the others would rather have a list than none.
        if self.safe and not conforms(view, new, self.budget):
            del self.steps[mark:]
            return value

        return new

    def scalar(self, value: Value, view: View, path: str, depth: int) -> Value:
        """Return a number, boolean or null that is none of the types wanted."""
        types = view.types or ()
        if any(is_type(value, name) for name in types):
            return value
        # `middleware` makes a list of text, too: by way of the text it would take two turns.
        if "string" in types and (self.safe or "array" not in types):
            return to_text(self, value, path)
        if "array" in types:
            return self.wrapped(value, view, path, depth)

        return self._switch(value, view, path)


# arrays out of text, and out of the shapes XML leaves behind

# How it works. Three rules in a row, from the surest to the boldest: JSON says itself that it is a
# list; an object may be what XML made of a list; and text may be several items in one line or in
# several. The last is a guess that only `middleware` makes, since a comma may belong to the text.


def list_from_separated_text(record: Record, value: str, view: View, path: str) -> Value:
    """Return a list out of lines, or of comma-separated cells where there is only one line."""
    # Cells are trimmed and empty ones left out. If the schema says nothing of items, each cell is
    # read as untyped text.
    text = value.strip(SPACE)  # first of all: a line feed at the end separates nothing
    if text == "":
        return record.note("coerce.array-from-empty", path, value, [])

    # Lines win over commas: a line of prose has commas of its own.
    if "\n" in text:
        rule, items = "coerce.array-from-lines", _cells(text, "\n")
    else:
        rule, items = "coerce.array-from-csv", _cells(text, ",")
    if items == [value]:
        rule = "coerce.wrap-array"  # nothing was split

    new = record.note(rule, path, value, items)
    if view.items is None and not view.prefix:
        typed = [from_untyped_text(record, cell, f"{path}/{i}") for i, cell in enumerate(items)]
        return typed if any(a is not b for a, b in zip(typed, items, strict=True)) else new

    return new


def _cells(text: str, separator: str) -> list[Value]:
    cells = (cell.strip(SPACE) for cell in text.split(separator))
    return [cell for cell in cells if cell]


def list_from_mapping(record: Record, value: dict[str, Value], path: str) -> Value:
    """Return a list out of {item: …}, numeric keys, or (policy `middleware`) one key's list."""
    # Numeric keys are in the order of their numbers, not of the text.
    if len(value) == 1:
        key, inner = next(iter(value.items()))
        if key == "item":
            # What XML leaves of <item> elements: one alone is no list yet.
            items = inner if isinstance(inner, list) else [inner]
            return record.note("coerce.item-list", path, value, items)
        if isinstance(inner, list) and not record.safe:
            return record.note("coerce.single-key-array", path, value, inner)

    # An empty object has no keys that say anything.
    if value and all(key.isascii() and key.isdigit() for key in value):
        ordered = [value[key] for key in sorted(value, key=int)]
        return record.note("coerce.numeric-keys", path, value, ordered)

    return value


# The policy `lossy`, the negative control that does whatever makes a value validate.

# How it works. It starts from the most generous policy there is, and then replaces whatever is
# still wrong, from the leaves up; its arguments always look right and mean little. A parser that
# scores no better than this one reads nothing into its arguments.

_SOME_NUMBER = re.compile(r"(-?)0*+([0-9]*)(?:[.,]([0-9]+))?")
_YES = frozenset(("true", "yes", "y", "on", "1", "ja", "oui", "si"))
_MOST_LEVELS = 100  # of a value that is looked into


def _force(value: Value, view: View, path: str, walk: Walk, depth: int) -> Value:
    if depth > _MOST_LEVELS or view.open or conforms(view, value, walk.budget):
        return value

    # A container of the right type is wrong somewhere inside, or lacks a member: it stays. Even
    # this policy does not make up a member that the model never mentioned.
    if isinstance(value, dict) and view.allows("object"):
        return {
            key: _force(member, child, f"{path}/{escape_token(key)}", walk, depth + 1)
            if (child := view.child(key))
            else member
            for key, member in value.items()
        }
    if isinstance(value, list) and view.allows("array"):
        return [
            _force(item, child, f"{path}/{i}", walk, depth + 1) if (child := view.item(i)) else item
            for i, item in enumerate(value)
        ]

    forced = _made_up(value, view)
    if forced is value or not conforms(view, forced, walk.budget):
        return value
    return walk.note("coerce.lossy", path, value, forced)


def _made_up(value: Value, view: View) -> Value:
    # Some value of the wanted type that has something to do with this one, if only the place. The
    # value itself if no type is wanted, or only types that nothing is made up for.
    if view.any_of:
        # In the schema's order, which is the order of its author's preference.
        made_up = ((branch, _made_up(value, branch)) for branch in view.any_of)
        return next((new for branch, new in made_up if conforms(branch, new)), value)

    if isinstance(value, (dict, list)):
        text = write_canonical(value)  # Python cannot print deep nesting
    else:
        text = value if isinstance(value, str) else str(value)
    if view.enum is not None:
        # Case and white space are what a model gets wrong most often.
        plain = text.strip().casefold()
        alike = (member for member in view.enum if str(member).casefold() == plain)
        return next(alike, view.enum[0] if view.enum else value)

    for name in view.types or ():
        if is_type(value, name):
            return value
        if name in ("integer", "number"):
            return _some_number(text, name)
        if name == "boolean":
            return text.strip().lower() in _YES
        if name == "string":
            return text
        if name == "array":
            return [value]
        if name == "object":
            return {}
    return value


def _some_number(text: str, kind: str) -> Value:
    # The first number in the text, with a comma or a point, 0 where there is none. Its parts stay
    # strings, so that no number is too long. An integer is cut at its point.
    digit = re.search("-?[0-9]", text)
    match = _SOME_NUMBER.match(text, digit.start()) if digit else None
    if match is None:
        return 0
    sign, whole, part = match[1], match[2] or "0", (match[3] or "").rstrip("0")
    if kind == "number" and part:
        return number(f"{sign}{whole}.{part}")
    return number(f"{sign}{whole}" if whole != "0" else "0")
