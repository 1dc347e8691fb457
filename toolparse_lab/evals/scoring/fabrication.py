"""Does the text say every name and value of a call?

The parser's own claims are checked against `raw`.
"""

# How it works. Each leaf of the arguments has to be accounted for, in one of three ways, the
# cheapest first:
#
# 1. *Plainly*: the body as it stands is strict JSON, or flat markup, and has this very leaf at this
#    very path. True of most leaves, and read without asking the parser anything.
# 2. *By its origin*: the parser says where the value stands in `raw`, and the characters there,
#    with their escapes or entities read or their repairs applied, give the value.
# 3. *By its steps*: each step that changed the value is lossless, and the value that the first of
#    them began with stands somewhere in the text.
#
# A parser of somebody else's says no places. Of its calls nothing can be asked but that each leaf
# stands somewhere in the call's own text.
#
# Origins are of the arguments *after* coercion. A look at those before it, where a step has moved a
# value since, has no path to ask for: there the text that the step began with has to say the leaf.
#
# The first way is only a short cut: it never accepts a leaf that the others reject, which a
# property test holds it to (`tests/test_evals_fabrication.py`). Its cost is one strict reading of
# the body; that of the second is a table of all origins of the call.

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from ...core.errors import NoSuchItem
from ...core.rules import RULES
from ...core.types import Edit, Origin, Span, Step, ToolCall
from ...core.values import Num, Value, leaves, read_strict, write_canonical
from .notations import LOOK_BACK, Place, Strings, is_constant, is_number, numbers_in

# Steps by which a name comes from more than the characters of its own span.
_NAME_RULES = frozenset({"read.alias-name", "read.function-wrapper"})
# One element with text alone in it. Its name holds nothing that a JSON Pointer would escape.
_FLAT_ELEMENT = re.compile(r"\s*<([A-Za-z_][\w.-]*)>([^<]*)</\1>")
_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")
_ABSENT: Any = object()
_MOST_SHOWN = 80
# What the OpenAI API takes as the name of a function, and others with it.
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 64


def find_fabrication(raw: str, call: ToolCall, *, coerced: bool = True, value: Value = None) -> str:
    """Return one sentence on the first name or leaf that the text does not say, or ''.

    A leaf is said where it has an exact origin in `raw`, or comes from such an origin by lossless
    steps.

    raw: the whole text, in which the call's spans count.
    coerced: False looks at the arguments before coercion.
    value: the arguments looked at, where they were read before. None reads them from the call.
    """
    if call.name and not _is_name_said(raw, call):
        return f"the text does not say the name {call.name}"

    text = call.arguments_json if coerced else call.source_json
    if not text:
        return ""
    if value is None:
        value = read_strict(text)

    return _first_unsaid(_Look(raw, call, coerced), value)


def _first_unsaid(look: _Look, value: Value) -> str:
    """Return the sentence on the first leaf of the arguments `value` that the text does not say, or
    ''.
    """
    for path, leaf in leaves(value):
        if not look.says(path, leaf):
            place = path or "the arguments"
            return f"the text does not say {place} = {_shortened(leaf)}"
    return ""


class _Look:
    """One look at the arguments of a call, before or after coercion.

    steps: those behind the arguments looked at. later: those that came only after them. plain: see
    `_read_plainly`, or None if there is no plain body.
    """

    def __init__(self, raw: str, call: ToolCall, coerced: bool) -> None:
        """Sort the steps of the call by `coerced`: True looks behind all of them, False only behind
        those that came before coercion.
        """
        self.raw = raw
        self.call = call
        self.steps: Sequence[Step] = call.steps
        self.later: Sequence[Step] = ()
        if not coerced:
            self._leave_coercion_out()

        # What a repair wrote is not in the body as it stands, so only an unedited body is plain.
        self.plain = None if call.edits else _read_plainly(raw, call)

    def _leave_coercion_out(self) -> None:
        """Move the coercion steps from `steps` to `later`."""
        before: list[Step] = []
        after: list[Step] = []
        for step in self.call.steps:
            if step.stage == "coerce":
                after.append(step)
            else:
                before.append(step)
        self.steps, self.later = before, after

    def says(self, path: str, leaf: Value) -> bool:
        """Return True if the text says the leaf, in one of the three ways of the head.

        path: the JSON Pointer of the leaf. leaf: a scalar, or an empty object or array.
        """
        over = self._steps_over(path)
        # The cheapest way first, which is enough for most leaves. A step that changed the leaf
        # makes a likeness with the body a chance.
        if self.plain is not None and not over and _is_plainly_said(self.plain, path, leaf):
            return True

        if isinstance(leaf, (dict, list)):
            return _dropped_nothing(over)
        if over and _comes_losslessly(self.call, over):
            return True
        if self._is_said_at_origin(path, leaf):
            return True
        if any(self._is_said_before(step, path, leaf) for step in self.later):
            return True
        return not over and _is_said_in_call(self.raw, self.call, path, leaf)

    def _steps_over(self, path: str) -> list[Step]:
        """Return the steps that changed the leaf at the path, or a value it lies in."""
        # Most calls have no steps, and this is asked for every leaf.
        if not self.steps:
            return []
        return [step for step in self.steps if _covers(step.path, path)]

    def _is_said_before(self, later: Step, path: str, leaf: Value) -> bool:
        """Return True if a later step changed a value that the leaf lies in, and the text of that
        value says the leaf.

        The step may have moved the leaf, so that its own path has no origin any more.

        later: a step that came after the arguments looked at. path: the leaf's JSON Pointer.
        """
        if later.span is None:
            return False
        # Strictly inside: the value at the step's own path has an origin to ask for.
        if not path.startswith(later.path + "/"):
            return False

        word = leaf if isinstance(leaf, str) else write_canonical(leaf)
        return self._place(later.span).holds(word)

    @cached_property
    def _strings(self) -> Strings:
        """The JSON strings of the call's body."""
        return Strings(self.raw, self.call.segment.body or self.call.segment.span)

    def _place(self, span: Span, *, edited: bool = False) -> Place:
        """Return a place of the text, as it stands or with the repairs inside it applied."""
        text = _edited(self.raw, span, self.call.edits) if edited else span.of(self.raw)
        before = self.raw[max(0, span.start - LOOK_BACK) : span.start]
        return Place(text, before, nested=self._strings.holds_nested(span.start))

    def _is_said_at_origin(self, path: str, leaf: Value) -> bool:
        """Return True if the parser has an exact place for the leaf, and the characters there mean
        it.

        An inexact place is that of something larger, which says more than the leaf.

        path: the JSON Pointer of the leaf. leaf: a scalar.
        """
        origin = _origin(self.call, path)
        if origin is None or not origin.exact:
            return False

        span = origin.span
        # Most leaves stand there as they are.
        if _is_as_written(span.of(self.raw), leaf) or self._place(span).means(leaf):
            return True
        if self.call.edits and self._place(span, edited=True).means(leaf):
            return True

        # An empty place holds no characters that a repair could have kept.
        return len(span) > 0 and _is_repaired_losslessly(self.call, span)


def _dropped_nothing(steps: Sequence[Step]) -> bool:
    """Return True if no coercion among the steps lost anything.

    An empty object or array claims nothing of the text, unless something was dropped to make it.
    """
    return all(step.lossless for step in steps if step.stage == "coerce")


# plainly


def _read_plainly(raw: str, call: ToolCall) -> dict[str, Value] | None:
    """Return the arguments that the body of a call gives to a reader who knows no protocol, or
    None.

    There are two such bodies: ``{"name": …, "arguments": {…}}`` in strict JSON, and flat elements
    ``<key>text</key>`` with nothing else between them than white space.
    """
    span = call.segment.body
    if span is None:
        return None

    body = span.of(raw).strip()
    if body.startswith("{"):
        return _read_json_call(body)
    if body.startswith("<"):
        return _read_flat_elements(body)
    return None


def _read_json_call(body: str) -> dict[str, Value] | None:
    r"""Return the member `arguments` of a body that is one JSON object, or None.

    As providers give it, the call is in a member `function`, and its arguments are JSON in a text.

    >>> _read_json_call('{"name": "f", "arguments": {"a": "x"}}')
    {'a': 'x'}
    >>> _read_json_call('{"function": {"name": "f", "arguments": "{\\"a\\": 1}"}}')
    {'a': 1}
    >>> _read_json_call("{'arguments': {}}")
    """
    try:
        message = read_strict(body)
        if isinstance(message, dict) and isinstance(message.get("function"), dict):
            message = message["function"]
        arguments = message.get("arguments") if isinstance(message, dict) else None
        if isinstance(arguments, str):
            arguments = read_strict(arguments)
    except ValueError:
        return None
    return arguments if isinstance(arguments, dict) else None


def _read_flat_elements(body: str) -> dict[str, Value] | None:
    """Return the texts of elements by their names, None if there is anything else.

    >>> _read_flat_elements("<city>Oslo</city> <days>3</days>")
    {'city': 'Oslo', 'days': '3'}
    >>> _read_flat_elements("<a>1</a> and more")
    """
    arguments: dict[str, Value] = {}
    end = 0
    while end < len(body):
        element = _FLAT_ELEMENT.match(body, end)
        # A name that comes twice makes a list of its texts, and they have other paths.
        if element is None or element[1] in arguments:
            return None
        arguments[element[1]] = element[2]
        end = element.end()
    return arguments


def _is_plainly_said(plain: dict[str, Value], path: str, leaf: Value) -> bool:
    """Return True if the plain arguments have the leaf at its own path, type and digits included.

    The path counts: two objects may both have an ``id``, and the one's value is not the other's.

    >>> _is_plainly_said({"a": ["x"]}, "/a/0", "x"), _is_plainly_said({"a": "x"}, "/b", "x")
    (True, False)
    """
    if "~" in path:
        return False  # an escaped key, rare enough to be left to the origins

    node: Value = plain
    for token in path.split("/")[1:]:
        node = _member(node, token)

    # By type first: in Python, True equals 1.
    if type(node) is not type(leaf):
        return False
    if isinstance(leaf, Num):
        # By its digits, since 1.0 and 1.00 are not the same writing.
        return isinstance(node, Num) and node.text == leaf.text
    if isinstance(leaf, (dict, list)):
        return False
    is_equal: bool = node == leaf
    return is_equal


def _member(node: Value, token: str) -> Value:
    """Return a member by one token of a JSON Pointer, `_ABSENT` if there is none.

    >>> _member({"a": 1}, "a"), _member(["x", "y"], "1")
    (1, 'y')
    """
    if isinstance(node, dict):
        return node.get(token, _ABSENT)
    if isinstance(node, list) and _INDEX.fullmatch(token) and int(token) < len(node):
        return node[int(token)]
    return _ABSENT


# by steps and origins


def _covers(step_path: str, leaf_path: str) -> bool:
    """Return True for a leaf that lies in the value at the step's path, or is that value.

    >>> _covers("/a", "/a/0"), _covers("/a", "/a"), _covers("/a", "/ab")
    (True, True, False)
    """
    return leaf_path == step_path or leaf_path.startswith(step_path + "/")


def _comes_losslessly(call: ToolCall, steps: Sequence[Step]) -> bool:
    """Return True if the value that the steps began with stands somewhere in the text, and no step
    lost or guessed anything.

    steps: those of the call that changed one leaf.
    """
    if not all(step.lossless for step in steps):
        return False

    # The step's own place in the text is at hand; an origin has to be looked up.
    if any(step.span is not None for step in steps):
        return True
    return any(_origin(call, step.path) is not None for step in steps)


def _origin(call: ToolCall, path: str) -> Origin | None:
    """Return where the parser says that the value stands, None if it does not say."""
    try:
        return call.origin(path)
    except NoSuchItem:
        return None


def provider_name(name: str) -> str:
    """Return a tool's name as providers with the strictest rules take it.

    >>> provider_name("maps.find_place"), provider_name("get-time")
    ('maps_find_place', 'get-time')
    """
    return _NOT_IN_NAMES.sub("_", name)[:_LONGEST_NAME]


def _is_name_said(raw: str, call: ToolCall) -> bool:
    """Return True if the characters at the name's own place mean the name, or a reading rule made
    it of others.
    """
    if any(step.rule in _NAME_RULES for step in call.steps):
        return True
    span = call.name_span
    if span is None:
        return False

    text = span.of(raw)
    if call.name == text:
        return True  # which most names are
    if provider_name(call.name) == text:
        return True
    if Place(text).means(call.name):
        return True
    return Place(_edited(raw, span, call.edits)).means(call.name)


def _is_said_in_call(raw: str, call: ToolCall, path: str, leaf: Value) -> bool:
    """Return True if a call without places of its own has the leaf somewhere in its text.

    False for a call whose parser says places: there the leaf has to be at its own.
    """
    origin = _origin(call, path)
    span = call.segment.span
    if origin is None or origin.exact or origin.span != span:
        return False
    text = span.of(raw)
    if isinstance(leaf, str):
        return Place(text).holds(leaf)
    if leaf is None or isinstance(leaf, bool):
        words = re.findall(r"[a-z]+", text.lower())
        return any(is_constant(word, leaf) for word in words)
    return any(is_number(word, leaf) for word in numbers_in(text))


def _is_as_written(text: str, leaf: Value) -> bool:
    """Return True if a text is the leaf as it stands, which it is for most leaves.

    >>> _is_as_written("7", 7), _is_as_written("7", "7"), _is_as_written("true", True)
    (True, True, False)
    """
    if leaf == text:
        return True
    # Of the very type, since a bool is an int, too.
    return type(leaf) is int and str(leaf) == text


def _is_repaired_losslessly(call: ToolCall, span: Span) -> bool:
    """Return True if there are repairs inside a value, and all of them keep it the text's own.

    span: the place of the value in the raw text.
    """
    inside = [edit for edit in call.edits if span.covers(edit.span)]
    if not inside:
        return False
    return all(_is_lossless_rule(edit.rule) for edit in inside)


def _is_lossless_rule(rule_id: str) -> bool:
    """Return True for a repair rule that guesses and drops nothing.

    An unknown one may do both.
    """
    rule = RULES.get(rule_id)
    return rule is not None and rule.lossless


def _edited(raw: str, span: Span, edits: tuple[Edit, ...]) -> str:
    """Return the text of a span with the edits inside it applied.

    edits: in the order of the text. One that crosses the span's ends, or overlaps the edit before
    it, drops out.
    """
    parts: list[str] = []
    end = span.start
    for edit in edits:
        is_inside = end <= edit.span.start and edit.span.end <= span.end
        if not is_inside:
            continue
        parts += (raw[end : edit.span.start], edit.text)
        end = edit.span.end

    parts.append(raw[end : span.end])
    return "".join(parts)


def _shortened(leaf: Value) -> str:
    """Return a leaf as JSON that fits into a sentence.

    >>> _shortened("Oslo")
    '"Oslo"'
    """
    text = write_canonical(leaf)
    if len(text) <= _MOST_SHOWN:
        return text
    return text[: _MOST_SHOWN - 3] + "…"
