"""Arguments that stand as attributes, of a call's element or of a parameter's own."""

from __future__ import annotations

import re
from dataclasses import replace

from ...arguments.rjson.damage import Refusal
from ...arguments.schema.view import View
from ...core.types import Problem, Span, Step
from ...core.values import Value, escape_token
from ..base import Decoded, Opening, Places
from ..rxml.element import Element, walk
from ..rxml.marks import ATTRIBUTE
from ..rxml.reader import attribute_text


def with_attributes(call: Decoded, view: View, opening: Opening) -> Decoded:
    """Return a call with its opener's attributes that name parameters as arguments; others become
    problems. Their offsets in the body are negative.
    """
    if not isinstance(call.arguments, dict):
        return call

    named: dict[str, Value] = {}
    spans: dict[str, tuple[int, int]] = {}
    problems: list[Problem] = []
    for match in ATTRIBUTE.finditer(opening.attributes.rstrip("/>")):
        name, place = match["name"], _place(match, opening)
        if name not in view.properties:
            message = f"the attribute {name!r} names no parameter, and was left out"
            span = Span(*place)
            problems.append(Problem("decode", "decode.attribute", "warning", message, "", span))
        elif name in named or _differs(call.arguments, name, match):
            raise Refusal("decode.duplicate-key", f"{name!r} stands twice", 0)
        else:
            named[name] = _value(match)
            spans["/" + escape_token(name)] = place

    if not named:
        return replace(call, problems=(*call.problems, *problems))
    step = Step("read", "read.attributes", "", None, None, named)
    # Behind the fact: places are asked for rarely.
    inner = call.places

    def places() -> Places:
        return {**inner(), **spans}

    return replace(
        call,
        arguments={**named, **call.arguments},
        steps=(*call.steps, step),
        problems=(*call.problems, *problems),
        places=places,
    )


def with_own_attributes(call: Decoded, view: View, root: Element | None, body: str) -> Decoded:
    """Return a call with the attributes of its parameters' elements as members of those parameters.
    Raises Refusal for one that may be an argument.
    """
    arguments = call.arguments
    if root is None or not isinstance(arguments, dict):
        return call
    members: dict[str, dict[str, Value]] = {}
    problems: list[Problem] = []
    for element in walk(root):
        start, end = element.attributes
        for match in ATTRIBUTE.finditer(body[start:end].rstrip("/>")):
            name, place = match["name"], Span(*match.span()).shift(start)
            if _takes(element, root, arguments, name):
                members.setdefault(element.name, {})[name] = _value(match)
            elif _may_be_argument(element, view, arguments, match):
                message = f"the attribute {name!r} of <{element.name}> may be an argument"
                raise Refusal("decode.attribute", message, place.start)
            else:
                message = f"the attribute {name!r} of <{element.name}> was left out"
                problem = Problem("decode", "decode.attribute", "warning", message, "", place)
                problems.append(problem)
    if not members and not problems:
        return call
    if members:
        arguments = dict(arguments)
        for name, named in members.items():
            inside = arguments[name]
            arguments[name] = {**named, **(inside if isinstance(inside, dict) else {})}
    steps = tuple(
        Step("read", "read.attributes", "/" + escape_token(name), None, None, named)
        for name, named in members.items()
    )
    return replace(
        call,
        arguments=arguments,
        steps=(*call.steps, *steps),
        problems=(*call.problems, *problems),
    )


def _takes(element: Element, root: Element, arguments: dict[str, Value], name: str) -> bool:
    schema = element.view
    if element.parent is not root or root.counts.get(element.name) != 1 or schema is None:
        return False
    inside = arguments.get(element.name)
    if name not in schema.properties or not (inside == "" or isinstance(inside, dict)):
        return False
    return not isinstance(inside, dict) or name not in inside


def _may_be_argument(
    element: Element, view: View, arguments: dict[str, Value], match: re.Match[str]
) -> bool:
    name = match["name"]
    if element.view is not None and name in element.view.properties:
        inside = arguments.get(element.name)
        return not (isinstance(inside, dict) and inside.get(name) == _value(match))
    return name in view.properties and name not in arguments


def _value(match: re.Match[str]) -> str:
    text = next((group for group in match.groups()[1:] if group is not None), "")
    return attribute_text(text)


def _place(match: re.Match[str], opening: Opening) -> tuple[int, int]:
    # An attribute without a value stands for itself. The opener ends where the body begins.
    start, end = next(
        (match.span(group) for group in (2, 3, 4) if match[group] is not None), match.span("name")
    )
    # The opener ends where the body begins.
    size = len(opening.attributes)
    return start - size, end - size


def _differs(arguments: dict[str, Value], name: str, match: re.Match[str]) -> bool:
    return name in arguments and arguments[name] != _value(match)
