"""Arguments that stand as attributes in the opener of a call's element."""

from __future__ import annotations

import re
from dataclasses import replace

from ...rjson.damage import Refusal
from ...rxml.marks import ATTRIBUTE
from ...rxml.reader import attribute_text
from ...schema.view import View
from ...types import Problem, Span, Step
from ...values import Value, escape_token
from ..base import Decoded, Opening, Places


def with_attributes(call: Decoded, view: View, opening: Opening) -> Decoded:
    """Return a call with the attributes of its opener that name parameters as arguments.

    Other attributes become problems. Raises Refusal for a parameter that stands in both places with
    different values.

    view: the schema of the parameters. opening: its `attributes` run up to the end of the opener,
    so their offsets in the body are negative.
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


def _value(match: re.Match[str]) -> str:
    """Return the text of an attribute, "" for one without a value. match: of ATTRIBUTE."""
    text = next((group for group in match.groups()[1:] if group is not None), "")
    return attribute_text(text)


def _place(match: re.Match[str], opening: Opening) -> tuple[int, int]:
    """Return where an attribute's value stands, or the attribute itself where it has none."""
    start, end = next(
        (match.span(group) for group in (2, 3, 4) if match[group] is not None), match.span("name")
    )
    # The opener ends where the body begins.
    size = len(opening.attributes)
    return start - size, end - size


def _differs(arguments: dict[str, Value], name: str, match: re.Match[str]) -> bool:
    """Return if an element of the same name says something else than the attribute."""
    return name in arguments and arguments[name] != _value(match)
