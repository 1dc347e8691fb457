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

    look = _Look(raw, call, coerced)
    for path, leaf in leaves(value):
        if not look.says(path, leaf):
            shown = write_canonical(leaf)
            if len(shown) > _MOST_SHOWN:
                shown = shown[: _MOST_SHOWN - 3] + "…"
            return f"the text does not say {path or 'the arguments'} = {shown}"
    return ""


class _Look:
    # `steps` led to the arguments looked at, `later` came after them.
    def __init__(self, raw: str, call: ToolCall, coerced: bool) -> None:
        self.raw = raw
        self.call = call
        self.steps: Sequence[Step] = call.steps
        self.later: Sequence[Step] = ()
        if not coerced:
            self.steps = [step for step in call.steps if step.stage != "coerce"]
            self.later = [step for step in call.steps if step.stage == "coerce"]

        # What a repair wrote is not in the body as it stands, so only an unedited body is plain.
        self.plain = None if call.edits else _read_plainly(raw, call)

    def says(self, path: str, leaf: Value) -> bool:
        # leaf: a scalar, or an empty object or array.
        # Most calls have no steps, and this is asked for every leaf.
        over = [step for step in self.steps if _covers(step.path, path)] if self.steps else []
        # The cheapest way first, which is enough for most leaves. A step that changed the leaf
        # makes a likeness with the body a chance.
        if self.plain is not None and not over and _is_plainly_said(self.plain, path, leaf):
            return True

        if isinstance(leaf, (dict, list)):
            # An empty object or array claims nothing of the text, unless a coercion dropped
            # something to make it.
            return all(step.lossless for step in over if step.stage == "coerce")
        if over and _comes_losslessly(self.call, over):
            return True
        if self._is_said_at_origin(path, leaf):
            return True
        if any(self._is_said_before(step, path, leaf) for step in self.later):
            return True
        return not over and _is_said_in_call(self.raw, self.call, path, leaf)

    def _is_said_before(self, later: Step, path: str, leaf: Value) -> bool:
        # Asks the text of a value that a later step changed and the leaf lies in: the step may have
        # moved the leaf, so that its own path has no origin any more.
        if later.span is None:
            return False
        # Strictly inside: the value at the step's own path has an origin to ask for.
        if not path.startswith(later.path + "/"):
            return False

        word = leaf if isinstance(leaf, str) else write_canonical(leaf)
        return self._place(later.span).holds(word)

    @cached_property
    def _strings(self) -> Strings:
        return Strings(self.raw, self.call.segment.body or self.call.segment.span)

    def _place(self, span: Span, *, edited: bool = False) -> Place:
        text = _edited(self.raw, span, self.call.edits) if edited else span.of(self.raw)
        before = self.raw[max(0, span.start - LOOK_BACK) : span.start]
        return Place(text, before, nested=self._strings.holds_nested(span.start))

    def _is_said_at_origin(self, path: str, leaf: Value) -> bool:
        # An inexact place is that of something larger, which says more than the leaf.
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
        if len(span) == 0:
            return False
        rules = [RULES.get(edit.rule) for edit in self.call.edits if span.covers(edit.span)]
        # An unknown rule may guess and drop.
        return bool(rules) and all(rule is not None and rule.lossless for rule in rules)


# plainly


def _read_plainly(raw: str, call: ToolCall) -> dict[str, Value] | None:
    # The arguments as a reader who knows no protocol finds them, in `{"name": …, "arguments": {…}}`
    # of strict JSON or in flat elements `<key>text</key>` with only white space between them.
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
    # As providers give it, the call is in a member `function`, and its arguments are JSON in a
    # string.
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
    # The path counts: two objects may both have an `id`, and the one's value is not the other's.
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
    return bool(node == leaf)


def _member(node: Value, token: str) -> Value:
    if isinstance(node, dict):
        return node.get(token, _ABSENT)
    if isinstance(node, list) and _INDEX.fullmatch(token) and int(token) < len(node):
        return node[int(token)]
    return _ABSENT


# by steps and origins


def _covers(step_path: str, leaf_path: str) -> bool:
    return leaf_path == step_path or leaf_path.startswith(step_path + "/")


def _comes_losslessly(call: ToolCall, steps: Sequence[Step]) -> bool:
    if not all(step.lossless for step in steps):
        return False

    # The step's own place in the text is at hand; an origin has to be looked up.
    if any(step.span is not None for step in steps):
        return True
    return any(_origin(call, step.path) is not None for step in steps)


def _origin(call: ToolCall, path: str) -> Origin | None:
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
    # By the characters at the name's own place, or by a reading rule that made it of others.
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
    # Only for calls whose parser says no places: otherwise the leaf has to be at its own.
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
    if leaf == text:
        return True
    # Of the very type, since a bool is an int, too.
    return type(leaf) is int and str(leaf) == text


def _edited(raw: str, span: Span, edits: tuple[Edit, ...]) -> str:
    # An edit that crosses the span's ends, or overlaps the one before it, drops out.
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
