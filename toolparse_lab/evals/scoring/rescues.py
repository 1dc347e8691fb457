"""Values judged at their own place: is the value right that a rule changed, or that the model
drew, whatever else the call says?
"""

# How it works. Each call is held to the wanted call it was paired with, or to the nearest one of
# its name. A rule is then judged at its own place:
#
# - a reading or coercion step at the JSON Pointer it names,
# - a repair at the smallest value whose characters, quotes included, hold the edit,
# - a rule that took a body for a call at all (`call.recovered`, `call.missing-closer`, …) by the
#   call: it is right where a call of that tool was wanted.
#
# A change of the arguments as a whole is right where they have the wanted names: what is in
# them is the model's own. A call without a counterpart says nothing of its values.

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from ...core.rules import CODES
from ...core.toolspec import ToolSpec
from ...core.types import Edit, ToolCall
from ...core.values import Value, pointer_tokens
from ..cases.matchers import Matchers
from ..cases.target import is_wish
from .match import Call, Difference, Match, agree, differences_between

if TYPE_CHECKING:
    pass

Rescues: TypeAlias = tuple[tuple[str, int, int], ...]
"""(rule, values it changed that are right, values that are wrong), by rule."""


def judge_rescues(
    raw: str,
    calls: Sequence[ToolCall],
    values: Sequence[Value],
    target: Sequence[Any],
    match: Match | None,
    tools: Sequence[ToolSpec],
    matchers: Matchers,
) -> Rescues:
    """Return for each rule that changed something how many of the changed values are right.

    raw: the text they are in. calls: the readable ones. values: their arguments, in the same
    order. match: of these calls with the target, None if they were not compared.
    """
    pairs = dict(match.pairs) if match is not None else {}
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for i, (call, value) in enumerate(zip(calls, values, strict=True)):
        if not (call.edits or call.steps or call.problems):
            continue  # what most calls are
        wants = [target[pairs[i]]] if i in pairs else target
        differences = from_nearest((call.name, value), wants, tools, matchers)
        for problem in call.problems:
            if is_recovery(problem.code):
                counts[problem.code][differences is None] += 1
        if differences is None:
            continue

        for rule, path in changes_in(call, raw):
            counts[rule][not is_right(path, differences, matchers)] += 1
    return tuple((rule, right, wrong) for rule, (right, wrong) in sorted(counts.items()))


def changes_in(call: ToolCall, raw: str) -> dict[tuple[str, str], None]:
    """Return each rule that changed a value of a call, with the value's JSON Pointer, in order."""
    # Once for each value that the rule changed, which may be named twice.
    changes = dict.fromkeys((step.rule, step.path) for step in call.steps)
    if call.edits:
        places = [(o.start, o.end, path) for path, o in call.origins.get().items() if o.exact]
        changes |= dict.fromkeys((e.rule, _place_of(e, raw, places)) for e in call.edits)
    return changes


def from_nearest(
    call: Call, wants: Sequence[Any], tools: Sequence[ToolSpec], matchers: Matchers
) -> tuple[Difference, ...] | None:
    # None if no wanted call has its name.
    every = [differences_between(call, want, tools, matchers) for want in wants]
    named = [each for each in every if all(one.code != "name" for one in each)]
    return min(named, key=len, default=None)


def is_recovery(code: str) -> bool:
    """Return True for a problem code that says how a call was taken for one.

    >>> is_recovery("call.missing-closer"), is_recovery("validate.required")
    (True, False)
    """
    entry = CODES.get(code)
    return entry is not None and entry.lossless is not None


def is_right(path: str, differences: Sequence[Difference], matchers: Matchers) -> bool:
    if not path:
        return not any(
            one.code in ("missing_argument", "extra_argument") and one.path.count("/") == 1
            for one in differences
        )
    for one in differences:
        if one.path == path or one.path.startswith(path + "/"):
            return False
        if not path.startswith(one.path + "/"):
            continue
        # A larger value is different; this part of it may be right all the same.
        tokens = list(pointer_tokens(path[len(one.path) :]))
        actual = next(_parts(one.actual, tokens), _ABSENT)
        if actual is _ABSENT or not any(
            agree([("f", {"x": actual})], [{"name": "f", "arguments": {"x": want}}], (), matchers)
            for want in _parts(one.expected, tokens)
        ):
            return False
    return True


_ABSENT: Any = object()
_QUOTE = re.compile("[\"'`\u2018\u2019\u201c\u201d\u201e\u00ab\u00bb]")


def _parts(value: Any, tokens: list[str]) -> Iterator[Any]:
    # Once for each alternative of a wish.
    if is_wish(value) and tokens:
        if "$any" in value:
            for alternative in value["$any"]:
                yield from _parts(alternative, tokens)
        elif "$value" in value:
            yield from _parts(value["$value"], tokens)
        return
    if not tokens:
        yield value
    elif isinstance(value, Mapping) and tokens[0] in value:
        yield from _parts(value[tokens[0]], tokens[1:])
    elif isinstance(value, list) and tokens[0].isdecimal() and int(tokens[0]) < len(value):
        yield from _parts(value[int(tokens[0])], tokens[1:])


def _place_of(edit: Edit, raw: str, places: list[tuple[int, int, str]]) -> str:
    # The smallest value that contains the edit. places: (start, end, path), with the quotes around
    # the value.
    # A quote belongs to the value next to it; any other sign next to a value to what contains it.
    edge = 1 if _QUOTE.search(edit.text + edit.span.of(raw)) else 0
    # What is put right after a number is after it, not in it.
    inset = 1 if not edge and not len(edit.span) else 0
    around = [
        (end - start, path)
        for start, end, path in places
        if start - edge + inset <= edit.span.start and edit.span.end <= end + edge - inset
    ]
    return min(around)[1] if around else ""
