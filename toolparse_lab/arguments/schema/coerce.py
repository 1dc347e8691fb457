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

from ...core.errors import UnknownName
from ...core.types import JsonSchema, Policy, Problem, Step
from ...core.types.spans import maker_of
from ...core.values import Value, escape_token, number, read_plain, write_canonical
from .conforms import Budget, OverBudget, TooDeep, conforms
from .go import coerce_like_go
from .kinds import is_type
from .plain import may_be_wrapped
from .scalars import holds_bare_null, holds_typed_text
from .view import View, view_of
from .walk import Walk

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


# The policy `lossy`, the negative control that does whatever makes a value validate.

# How it works. It starts from the most generous policy there is, and then replaces whatever is
# still wrong, from the leaves up; its arguments always look right and mean little. A parser that
# scores no better than this one reads nothing into its arguments.

_SOME_NUMBER = re.compile(r"(-?)0*+([0-9]*)(?:[.,]([0-9]+))?")
_YES = frozenset(("true", "yes", "y", "on", "1", "ja", "oui", "si"))
_MAX_DEPTH = 100  # of a value that is looked into


def _force(value: Value, view: View, path: str, walk: Walk, depth: int) -> Value:
    if depth > _MAX_DEPTH or view.open or conforms(view, value, walk.budget):
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
