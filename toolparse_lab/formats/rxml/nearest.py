"""The readings of a damaged text that are one character of one tag away."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from ...arguments.rjson.positions import apply_edits
from ...arguments.rjson.refusal import Refusal
from ...core.types import Edit, Reading, Span
from ...core.types.spans import make_edit
from ...core.values import Value, write_canonical

# How it works. The tags that a text may hold are known from the tools. One wrong character (left
# out, doubled, wrong, or swapped with its neighbour) leaves at least one of three parts of a tag as
# it was. So the parts are looked for, and the text around each is compared with the whole tag. Each
# place found is one candidate: the text with that tag put right, which must then read strictly.
#
# Cost: a bounded number of places is tried, in texts of bounded length; where there are more, there
# is no reading.

RULE = "rxml.near-tag"

_MAX_TEXT = 16_384
_MAX_PLACES = 96
_PARTS = 3
_MOST_SHOWN = 5
_COST = 2  # of one sign put right, as in JSON
_SHORTEST_NAME = 3
_ATTRIBUTES = re.compile(r"\s{0,16}[\w:.\-]{1,64}\s{0,16}=\s{0,16}[\"'][^<>\n]{0,512}>")


def near_edits(text: str, tags: Sequence[str]) -> list[Edit]:
    """Return the edits that each put one tag right; none for a text too long or with too many
    places.
    """
    if len(text) > _MAX_TEXT:
        return []

    edits: dict[tuple[int, int, str], Edit] = {}
    sound = _sound_tags(text, tags)
    for tag in tags:
        for start, end in _near_places(text, tag):
            # What is left of a sound tag around such a part would be text that nobody wrote.
            if _is_inside(sound, start, end):
                continue
            if text[end - 1] != ">" and _ATTRIBUTES.match(text, end):
                continue  # what would end at the mark that is put in goes on with attributes
            for repaired in _repaired(text[start:end], tag):
                edit = make_edit(Span(start, end), repaired, RULE)
                edits.setdefault((start, end, repaired), edit)
            if len(edits) > _MAX_PLACES:
                return []

    return sorted(edits.values(), key=lambda edit: edit.span.start)


def _sound_tags(text: str, tags: Sequence[str]) -> list[tuple[int, int]]:
    longest_first = sorted(tags, key=len, reverse=True)
    pattern = re.compile("|".join(map(re.escape, longest_first)) or "(?!)")
    return [match.span() for match in pattern.finditer(text)]


def _is_inside(places: list[tuple[int, int]], start: int, end: int) -> bool:
    # A part of one of the places, which are in order, and not all of it.
    at = bisect_right(places, start, key=lambda place: place[0]) - 1
    return at >= 0 and end <= places[at][1] and places[at] != (start, end)


def nearest_reading(
    text: str,
    tags: Sequence[str],
    reader: Callable[[str], Value | None],
    rule: str = RULE,
    others: Sequence[Edit] = (),
) -> Edit | None:
    readings: dict[str, Edit] = {}
    values: dict[str, Value] = {}
    near = near_edits(text, tags)
    if rule != RULE:
        near = [replace(edit, rule=rule) for edit in near]
    for edit in (*near, *others):
        value = reader(apply_edits(text, [edit]))
        if value is not None:
            readings.setdefault(write_canonical(value), edit)
            values.setdefault(write_canonical(value), value)

    if len(readings) > 1:
        at = min(edit.span.start for edit in readings.values())
        refusal = Refusal("decode.ambiguous", "a damaged tag can be read in several ways", at)
        few = list(readings.items())[:_MOST_SHOWN]
        refusal.readings = tuple(_candidate(values[key], edit) for key, edit in few)
        raise refusal
    return next(iter(readings.values()), None)


def _candidate(value: Value, edit: Edit) -> Reading:
    name, arguments = ("", value) if isinstance(value, dict) else value[0]
    return Reading(name, write_canonical(arguments), (edit,), _COST, "fits the parameters")


def _repaired(text: str, tag: str) -> Iterator[str]:
    # A character between a tag's outermost ones may have been in front of it, or after.
    yield tag
    if len(text) != len(tag) + 1:
        return
    if text[:-2] == tag[:-1] and text[-1] == tag[-1]:
        yield tag + text[-2]
    elif text[0] == tag[0] and text[2:] == tag[1:]:
        yield text[1] + tag


def _near_places(text: str, tag: str) -> Iterator[tuple[int, int]]:
    size = len(tag)
    # One change cannot reach into both ends of a tag, so one of them is as it was.
    half = max(0, size - 2) // 2
    head, tail = tag[:half], tag[size - half :]
    for at in _places_of_parts(text, tag):
        # Most places have neither end of the tag near them, and one look says so.
        near = text[max(0, at - 1) : at + size + 2]
        if head not in near and tail not in near:
            continue
        # A character more or less before the part moves the beginning by one.
        for start in range(max(0, at - 1), at + 2):
            begins = text.startswith(head, start)
            for end in range(start + size - 1, start + size + 2):
                if end > len(text) or not (begins or text.startswith(tail, end - half)):
                    continue
                if not is_one_off(text[start:end], tag):
                    continue
                # A part of a whole tag is as it should be.
                if end - start > size or not _is_part(text, tag, start):
                    yield start, end


def _places_of_parts(text: str, tag: str) -> Iterator[int]:
    size = len(tag)
    for number in range(_PARTS):
        first, last = size * number // _PARTS, size * (number + 1) // _PARTS
        part = tag[first:last]
        place = text.find(part) if part else -1
        while place >= 0:
            at = place - first
            # Nearly every tag is as it should be, unless one of its ends stands twice.
            if not text.startswith(tag, at) or _is_doubled(text, tag, at):
                yield at
            place = text.find(part, place + 1)


def _is_doubled(text: str, tag: str, start: int) -> bool:
    end = start + len(tag)
    return text[start - 1 : start] == tag[0] or text[end : end + 1] == tag[-1]


def _is_part(text: str, tag: str, start: int) -> bool:
    return text.startswith(tag, start) or (start > 0 and text.startswith(tag, start - 1))


def is_one_off(text: str, tag: str) -> bool:
    # One character left out, doubled, wrong or swapped. At its ends a tag may only have its own
    # first or last character twice, so that no letter of the text around it is taken for a part
    # of it.
    if text == tag:
        return False
    same = 0
    limit = min(len(text), len(tag))
    while same < limit and text[same] == tag[same]:
        same += 1

    if len(text) == len(tag):
        if text[same + 1 :] == tag[same + 1 :]:
            return _may_replace(text[same], tag, same)
        swapped = text[same : same + 2] == tag[same : same + 2][::-1]
        return swapped and text[same + 2 :] == tag[same + 2 :]
    if len(text) + 1 == len(tag):
        # A line break that is missing would make two lines of one, which says something else.
        if same == 0 and tag[0].isspace():
            return False
        return text[same:] == tag[same + 1 :]

    # One more: inside the tag anything, at its ends its own character twice.
    if text[same + 1 :] != tag[same:]:
        return False
    inside = 0 < same < len(tag)
    return inside or text[same] == (tag[-1] if same else tag[0])


def _may_replace(character: str, tag: str, at: int) -> bool:
    return 0 < at < len(tag) - 1 or not (character.isspace() or character.isalnum())


def is_near_name(name: str, other: str) -> bool:
    # In other case, or with one wrong character. Names of one or two are near to too many.
    if len(other) < _SHORTEST_NAME:
        return False
    return name.lower() == other.lower() or is_one_off(f"<{name}>", f"<{other}>")
