"""The families of JSON: an object or a list that names tools, and a header before the arguments."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...formats.json.shaped import ARGUMENTS, ID, NAME, TEXT
from .fitting import BUOY, FERRY, UNIT, Around, Constants, Samples, common_end, tokens_of
from .probes import Call

_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"\s+")
_COUNT = re.compile(r"(?<=\{name\})([:.#-])\d+")
_INDEX = re.compile(r"\d+")
_NUMBER = re.compile(r'"\d+"')


@dataclass(frozen=True, slots=True)
class Place:
    """A JSON value in a text, from `start` to `end`."""

    value: Any
    start: int
    end: int


def value_at(text: str, start: int) -> Place | None:
    """Return the JSON object or list that begins at an offset, None for none."""
    try:
        value, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return Place(value, start, end)


def place_of(text: str, call: Call, start: int = 0) -> Place | None:
    """Return the outermost JSON value behind an offset that holds the arguments of a call."""
    for at in range(start, len(text)):
        if text[at] in "{[":
            place = value_at(text, at)
            if place is not None and holds(place.value, call):
                return place
    return None


def holds(value: Any, call: Call) -> bool:
    """Return True if the arguments of a call are a value, or stand somewhere in it."""
    if value == call.arguments or as_text(value, call):
        return True
    if isinstance(value, Mapping):
        return any(holds(member, call) for member in value.values())
    if isinstance(value, list):
        return any(holds(item, call) for item in value)
    return False


def as_text(value: Any, call: Call) -> bool:
    """Return True if a value is the text of a call's arguments."""
    if not isinstance(value, str) or not value.startswith("{"):
        return False
    place = value_at(value, 0)
    return place is not None and place.value == call.arguments


def fit_json(samples: Samples) -> Constants | None:
    """Return the constants of JSON objects that name their tools."""
    text = samples.first
    place = place_of(text, FERRY)
    if place is None or place.value == FERRY.arguments or FERRY.name not in _text(text, place):
        return None
    if isinstance(place.value, list):
        return _fit_list(text, place)
    unit = _unit(text, place)
    second = place_of(samples.two, BUOY, place.end) if samples.two else None
    if second is None:
        around = Around.of(text[: place.start], None, text[place.end :])
    else:
        middle = text[place.end : second.start]
        around = Around.of(text[: place.start], middle, text[second.end :])
    if unit is None or not around.opener.strip():
        return None
    form = {"opener": around.opener, "closer": around.closer, **unit}
    return {
        "family": "json",
        "form": form,
        "lost": lost_objects("", unit["shape"], around.opener),
        "section": around.section(),
        "between": around.between or "",
        "markup": around.markup(),
    }


def _fit_list(text: str, place: Place) -> Constants | None:
    """Return the constants of a list of objects, all calls of an answer in one."""
    first = next((i for i in range(place.start + 1, place.end) if text[i] == "{"), None)
    item = value_at(text, first) if first is not None else None
    unit = _unit(text, item) if item is not None else None
    around = Around.of(text[: place.start], None, text[place.end :])
    if item is None or unit is None or not around.opener.strip():
        return None
    last = text.rfind("}", place.start, place.end) + 1
    second = value_at(text, text.find("{", item.end))
    between = text[item.end : second.start] if second is not None else ", "
    closers = tokens_of(around.closer)
    closer = around.closer.strip()
    if closers and closer.startswith(closers[0]):
        closer = around.closer[: around.closer.find(closers[0]) + len(closers[0])]
    openers = tokens_of(around.opener)
    opener = around.opener
    if openers and opener.rstrip().endswith(openers[-1]):
        opener = opener[opener.rfind(openers[-1]) :]
    form = {
        "opener": opener,
        "closer": closer,
        "list": [text[place.start : first], text[last : place.end]],
        "between": between,
        **unit,
    }
    return {
        "family": "json",
        "form": form,
        "lost": lost_objects(form["list"][0], unit["shape"], opener),
        "markup": [*openers[:-1], *closers[1:]],
    }


def _text(text: str, place: Place) -> str:
    """Return the text of a value."""
    return text[place.start : place.end]


def _unit(text: str, place: Place) -> Constants | None:
    """Return keys and shape of one call's object, or None if it has no name."""
    source = _text(text, place)
    keys = _keys(place.value)
    arguments = _arguments_in(source)
    if arguments is None or keys is None:
        return None
    part = TEXT if source[arguments.start] == '"' else ARGUMENTS
    head, tail = source[: arguments.start], source[arguments.end :]
    shape = [*_slots(head), part, *_slots(tail)]
    if NAME not in shape:
        return None
    form: Constants = {"shape": shape, "name_key": keys[0], "arguments_key": keys[1]}
    if FERRY.name in place.value:
        form["name_is_key"] = True
    return form


def _arguments_in(source: str) -> Place | None:
    """Return the place of the arguments in a call's object."""
    for at in range(1, len(source)):
        if source[at] in '{"':
            place = value_at(source, at)
            if place is not None and (
                place.value == FERRY.arguments or as_text(place.value, FERRY)
            ):
                return place
    return None


def _slots(text: str) -> list[str]:
    """Return a text in parts, name and id of the call as slots."""
    parts: list[str] = [text]
    for word, slot in ((FERRY.name, NAME), (FERRY.id, ID)):
        split: list[str] = []
        for part in parts:
            pieces = part.split(word) if part not in (NAME, ID) else [part]
            for i, piece in enumerate(pieces):
                split += [slot, piece] if i else [piece]
        parts = split
    return [part for part in parts if part]


def _keys(value: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the keys of name and arguments, wherever in an object both stand."""
    name = next((key for key, member in value.items() if member == FERRY.name), None)
    arguments = next((key for key, member in value.items() if holds_arguments(member)), None)
    if name is not None and arguments is not None:
        return name, arguments
    if FERRY.name in value:  # the name is the key, which every reader of JSON knows
        return "name", "arguments"
    for member in value.values():
        if isinstance(member, Mapping):
            keys = _keys(member)
            if keys is not None:
                return keys
    return None


def holds_arguments(value: Any) -> bool:
    """Return True if a value is the arguments, as an object or as its text."""
    return bool(value == FERRY.arguments) or as_text(value, FERRY)


def fit_named(samples: Samples) -> Constants | None:
    """Return the constants of a header that names the tool, before its arguments as JSON."""
    text = samples.first
    place = place_of(text, FERRY)
    if place is None or place.value != FERRY.arguments:
        return None
    before = _header(text[: place.start], FERRY)
    second = place_of(samples.two, BUOY, place.end) if samples.two else None
    if second is None:
        around = Around.of(before, None, text[place.end :])
    else:
        middle = _header(text[place.end : second.start], BUOY)
        around = Around.of(before, middle, text[second.end :])
        # A template that leaves the first opener out writes it between two calls.
        if NAME not in around.opener:
            around = Around.of(common_end(before, middle), middle, text[second.end :])
    header = around.opener
    if header.count(NAME) != 1 or header.startswith(NAME) or header.find("{") == 0:
        return None
    return {
        "family": "named",
        "form": {"header": header, "closer": around.closer, "markup": around.markup()},
        "section": around.section(),
        "between": around.between or "",
        "lost": lost_headers(header),
    }


def lost_objects(prefix: str, shape: list[str], opener: str) -> list[str]:
    """Return the headers of a call's object without the tokens before it, up to the name.

    >>> shape = ['{"name": "', "{name}", '", "arguments": ', "{arguments}", "}"]
    >>> lost_objects("", shape, "<|sep|>function call<|sep|>")
    ['{"name":{ }"{name}"', 'function{ }call{ }{"name":{ }"{name}"']
    """
    before = prefix + "".join(shape[: shape.index(NAME)])
    if not before or before[0] not in "{[":
        return []
    before = _NUMBER.sub('"{id}"', _SPACE.sub("{ }", before)) + f'{NAME}"'
    words = _SPACE.sub("{ }", UNIT.sub("", opener).strip())
    return (
        [before, f"{words}{{ }}{before}"] if words.isascii() and words[:1].isalpha() else [before]
    )


def lost_headers(header: str) -> list[str]:
    """Return the rest of a header without its tokens, or without the text beside the name.

    >>> lost_headers("[TOOL_CALLS]{name}[ARGS]")
    ['{name}{ }', '{name}[ARGS]{ }', '[TOOL_CALLS]{name}{ }']
    """
    at = header.index(NAME)
    bare = UNIT.sub("", header)
    tokens = list(UNIT.finditer(header, 0, at))
    near = header[tokens[-1].start() :] if tokens else header
    variants = (bare, header[at:], header[: at + len(NAME)], near)
    relaxed = (_SPACE.sub("{ }", text.strip()) + "{ }" for text in variants)
    sound = (text for text in relaxed if NAME in text)
    own = _SPACE.sub("{ }", header.strip()) + "{ }"
    heads = dict.fromkeys(text for text in sound if text != own)
    return [text for text in heads if not text.startswith("{ }")]


def lost_in(samples: Samples) -> list[str]:
    """Return the header of a call whose tokens were stripped, whatever family it is of."""
    place = place_of(samples.one, FERRY)
    if place is None or place.value != FERRY.arguments:
        return []
    header = UNIT.sub("", _header(samples.one[: place.start], FERRY)).strip()
    if header.count(NAME) != 1 or header == NAME:
        return []
    relaxed = _SPACE.sub("{ }", _INDEX.sub("{any}", header)) + "{ }"
    return [relaxed]


def _header(text: str, call: Call) -> str:
    """Return the text before the arguments, name and id of the call as slots."""
    at = text.rfind(call.name)
    if at < 0:
        return text
    text = text[:at] + NAME + text[at + len(call.name) :]
    # A number behind the name counts the calls.
    return _COUNT.sub(r"\1{any}", text.replace(call.id, ID))
