"""Decides which reading of a damaged body of tags or keys counts, or that no one can tell."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TypeAlias

from ..arguments.rjson.positions import EditMap, apply_edits
from ..arguments.rjson.strict import Refusal
from ..arguments.schema.coerce import coerce
from ..arguments.schema.validate import find_problems
from ..arguments.schema.view import View, view_of
from ..core.types import Edit, Reading, Span
from ..core.types.spans import make_edit
from ..core.values import Value, leaves, write_canonical
from .base import DecodeContext, Decoded, moved_places
from .rxml.element import Place

# How it works. The tolerant reader has one reading of every body. It counts as it is where it took
# no repair and nothing in it looks damaged. Otherwise the body is looked at once more, as one in
# which a single character of a single tag is wrong: if that gives one reading which fits the
# schemas, it counts; if it gives several, nobody can tell. A character put right is less than a
# repair of the structure, so it goes first. Only without any does a repaired reading count, and
# only where nothing in it looks like a damaged tag.
#
# A family of formats says its alphabet: the strings (tags, or lines that begin with a key) of which
# one may be damaged, and what looks damaged in a value. JSON is not among these families: its
# damage is in single signs, so its search is one of edits with prices, in `json/judge.py`.
#
# One wrong character (left out, doubled, wrong, or swapped with its neighbour) leaves at least one
# of three parts of a tag as it was. So the parts are looked for, and the text around each is
# compared with the whole tag. A bounded number of places is tried, in texts of bounded length;
# where there are more, there is no reading.

Calls: TypeAlias = tuple[Decoded, ...]

RULE = "rxml.near-tag"
FORMAT_WORDS = frozenset(
    ("parameter", "parameters", "param", "argument", "arguments", "arg", "arg_key", "arg_value",
     "param_key", "param_value", "value", "function", "function_call", "function_calls", "invoke",
     "call", "tool", "tool_call", "tool_calls")
)  # fmt: skip
"""Words of call formats that no ordinary markup uses as the name of a tag."""

_MAX_TEXT = 16_384
_MAX_PLACES = 96
_PARTS = 3
_MOST_SHOWN = 5
_COST = 2  # of one sign put right, as in JSON
_SHORTEST_NAME = 3
_ATTRIBUTES = re.compile(r"\s{0,16}[\w:.\-]{1,64}\s{0,16}=\s{0,16}[\"'][^<>\n]{0,512}>")
_LONGEST_TAIL = 256
_MOST_VIEWS = 256
_CLOSING_TAIL = re.compile(
    r"(?P<open><|\[)(?P<close>/?)\s*(?P<word>[\w.:|\uff5c-]+(?:(?<=\uff5c) [\w-]+)?)"
    r"(?P<name>\s*=[^<>\[\]]*)?\s*(?P<end>[>\]])\s*\Z"
)
_CDATA = ("<![CDATA[", "]]>")
_NAMESPACE = re.compile(r"[:|\uff5c]")
# A value that begins with the bracket of its tag once more; a quotation or a comparison does not.
_DOUBLED_BRACKET = re.compile(r">(?:[^\W\d_]|[/\n\"'.])")


class Disambiguation(ABC):
    """One body of a family of formats. `settle` gives the calls that count."""

    rule = RULE  # of an edit that puts a tag right
    keeps_equal = True  # a repaired reading that says the same as the nearest one counts
    doubt = "a value holds what looks like a damaged tag"

    def __init__(self, body: str, context: DecodeContext) -> None:
        self.body = body
        self.context = context

    @abstractmethod
    def read_strictly(self, text: str) -> Calls | None:
        """Return the calls of a text without repair; None, or a Refusal, if it takes any."""

    @abstractmethod
    def tags(self) -> Sequence[str]:
        """Return the alphabet: the strings of which one may be damaged."""

    @abstractmethod
    def is_doubtful(self, call: Decoded) -> bool:
        """Return True if a call of the tolerant reader looks damaged, so that no one may use it."""

    def other_edits(self) -> Sequence[Edit]:
        """Return edits besides those of the alphabet, each of them one candidate."""
        return ()

    def is_doubtful_once_edited(self, call: Decoded, text: str) -> bool:
        """Return True if a call of an edited text looks damaged."""
        view = self.view(call)
        return view is not None and call_is_doubtful(call, view, text, repaired=True)

    def may_be_better(self, call: Decoded) -> bool:
        """Return True if another reading is looked for although a call does not look damaged."""
        return bool(call.edits)

    def may_search(self) -> bool:
        """Return True if a single wrong character can be the whole damage."""
        return True

    def in_another_way(self) -> Calls | None:
        """Return the calls of a damage that only this family has."""
        return None

    def schema(self, call: Decoded) -> str | None:
        """Return the schema of a call's tool, None for a tool that no one knows."""
        tool = self.context.tools.get(call.name)
        return tool.schema_json if tool is not None else None

    def view(self, call: Decoded) -> View | None:
        schema = self.schema(call)
        return view_of(schema) if schema is not None else None

    def refused(self, calls: Calls, doubts: Sequence[bool], refusal: Refusal) -> Calls:
        """Return calls of which some are refused. By default the body is refused as a whole."""
        raise refusal

    def settle(self, read: Callable[[], Calls]) -> Calls:
        """Return the calls that count. Raises Refusal if there are none.

        read: the tolerant reader of the body.
        """
        # A refusal waits: the nearest reading may do without it.
        refusal: Refusal | None = None
        calls: Calls = ()
        try:
            calls = read()
        except Refusal as reason:
            refusal = reason

        doubts = [call.readable and self.is_doubtful(call) for call in calls]
        sound = refusal is None and not any(doubts) and all(call.readable for call in calls)
        if sound and not any(map(self.may_be_better, calls)):
            return calls
        if self.context.repair:
            nearest = self._nearest(calls) if self.may_search() else None
            if nearest is not None and not (sound and self.keeps_equal and _agree(nearest, calls)):
                return nearest
            other = None if sound else self.in_another_way()
            if other is not None:
                return other
        if refusal is not None:
            raise refusal
        if not any(doubts):
            return calls
        return self.refused(calls, doubts, Refusal("decode.ambiguous", self.doubt, 0))

    def in_raw(self, calls: Calls, edits: Sequence[Edit]) -> Calls:
        """Return calls of an edited body with their places in the body as it came.

        Each edit goes to the last call that begins before it, or to the first.
        """
        back = EditMap(edits)
        owners = [0] * len(edits)
        if len(calls) > 1:
            starts = [back.raw_span(*call.places()[""])[0] for call in calls]
            owners = [max(bisect_right(starts, edit.span.start) - 1, 0) for edit in edits]
        # A tag around the body, which may be the closing one, has not moved with its edits.
        outside = self.context.opening.name_in_body

        moved: list[Decoded] = []
        for index, call in enumerate(calls):
            span = call.name_span
            if span is not None and span != outside:
                span = self._name_in(call.name, Span(*back.raw_span(span.start, span.end)))
            own = tuple(edit for edit, owner in zip(edits, owners, strict=True) if owner == index)
            places = moved_places(call.places, back.raw_span)
            moved.append(replace(call, name_span=span, edits=own, places=places))
        return tuple(moved)

    def _name_in(self, name: str, span: Span) -> Span | None:
        # Within a tag that was put right as a whole. None where the name itself was.
        if len(span) <= len(name):
            return span
        at = self.body.find(name, span.start, span.end)
        return Span(at, at + len(name)) if at >= 0 else None

    def _nearest(self, calls: Calls) -> Calls | None:
        try:
            edit = self._nearest_edit()
        except Refusal as reason:
            if not calls:
                raise
            return self.refused(calls, [True] * len(calls), reason)
        if edit is None:
            return None
        again = self.read_strictly(apply_edits(self.body, [edit]))
        return self.in_raw(again, [edit]) if again else None

    def _nearest_edit(self) -> Edit | None:
        near = near_edits(self.body, self.tags(), self.rule)
        readings: dict[str, tuple[Edit, Decoded]] = {}
        for edit in (*near, *self.other_edits()):
            calls = self.fitting(apply_edits(self.body, [edit]))
            if calls:
                key = write_canonical([[call.name, call.arguments] for call in calls])
                readings.setdefault(key, (edit, calls[0]))
        if len(readings) < 2:
            return next((edit for edit, _ in readings.values()), None)

        at = min(edit.span.start for edit, _ in readings.values())
        refusal = Refusal("decode.ambiguous", "a damaged tag can be read in several ways", at)
        # A person sees the first call of each.
        refusal.readings = tuple(
            Reading(c.name, write_canonical(c.arguments), (edit,), _COST, "fits the parameters")
            for edit, c in list(readings.values())[:_MOST_SHOWN]
        )
        raise refusal

    def fitting(self, text: str) -> Calls | None:
        """Return the calls of a text that reads strictly and fits the schemas, else None."""
        try:
            calls = self.read_strictly(text)
        except Refusal:
            return None
        for call in calls or ():
            # Every call has to fit: one that does not may have taken in what another lost.
            schema = self.schema(call)
            if schema is None or not call.readable or self.is_doubtful_once_edited(call, text):
                return None
            # Every leaf is text as yet, so its types are judged after coercion, which is dear.
            value = coerce(call.arguments, schema, "safe", one_item=True).value
            if any(p.severity == "error" for p in find_problems(value, schema)):
                return None
        return calls


class OneCall(Disambiguation):
    """A body that is one call. reader: of a text, with the repair that its options allow."""

    def __init__(
        self,
        body: str,
        view: View,
        context: DecodeContext,
        reader: Callable[[str, DecodeContext], Decoded],
    ) -> None:
        super().__init__(body, context)
        tool = context.tools.get(context.opening.name)
        self.parameters = view
        self.known = tool.schema_json if tool is not None else None
        self.reader = reader

    def call(self) -> Decoded:
        """Return the call that counts. Raises Refusal if there is none."""
        return self.settle(lambda: (self.read(),))[0]

    def read(self) -> Decoded:
        """Return the call of the tolerant reader. Raises Refusal."""
        return self.reader(self.body, self.context)

    def read_strictly(self, text: str) -> Calls:
        return (self.reader(text, replace(self.context, repair=False)),)

    def schema(self, call: Decoded) -> str | None:
        return self.known

    def may_search(self) -> bool:
        # Only a schema that lists its parameters can tell which tags were damaged.
        return self.known is not None and bool(self.parameters.properties)


def _agree(one: Calls, other: Calls) -> bool:
    pairs = [[(call.name, call.arguments) for call in calls] for calls in (one, other)]
    return pairs[0] == pairs[1]


# Tags that are one character off


def near_edits(text: str, tags: Sequence[str], rule: str = RULE) -> list[Edit]:
    """Return the edits that each put one tag right; none for a text too long or with too many.

    >>> [(edit.span.start, edit.text) for edit in near_edits("<ab>x/ab>", ("</ab>",))]
    [(0, '</ab>'), (5, '</ab>')]
    """
    if len(text) > _MAX_TEXT:
        return []

    edits: dict[tuple[int, int, str], Edit] = {}
    longest_first = sorted(tags, key=len, reverse=True)
    whole = re.compile("|".join(map(re.escape, longest_first)) or "(?!)")
    sound = [match.span() for match in whole.finditer(text)]
    for tag in tags:
        for start, end in _near_places(text, tag):
            # What is left of a sound tag around such a part would be text that nobody wrote.
            around = bisect_right(sound, start, key=lambda place: place[0]) - 1
            if around >= 0 and end <= sound[around][1] and sound[around] != (start, end):
                continue
            if text[end - 1] != ">" and _ATTRIBUTES.match(text, end):
                continue  # what would end at the mark that is put in goes on with attributes
            for repaired in _repaired(text[start:end], tag):
                edit = make_edit(Span(start, end), repaired, rule)
                edits.setdefault((start, end, repaired), edit)
            if len(edits) > _MAX_PLACES:
                return []

    return sorted(edits.values(), key=lambda edit: edit.span.start)


def _repaired(text: str, tag: str) -> Iterator[str]:
    # A character between a tag's outermost ones may have been in front of it, or after it.
    yield tag
    if len(text) != len(tag) + 1 or text[-2] == "\n":
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
                if end - start <= size and (
                    text.startswith(tag, start) or (start and text.startswith(tag, start - 1))
                ):
                    continue
                yield start, end


def _places_of_parts(text: str, tag: str) -> Iterator[int]:
    # Where a tag would begin of which a third is in the text, but not the whole tag.
    size = len(tag)
    for number in range(_PARTS):
        first, last = size * number // _PARTS, size * (number + 1) // _PARTS
        part = tag[first:last]
        place = text.find(part) if part else -1
        while place >= 0:
            at, end = place - first, place - first + size
            # Nearly every tag is as it should be, unless one of its ends is there twice.
            if not text.startswith(tag, at) or (
                text[at - 1 : at] == tag[0] or text[end : end + 1] == tag[-1]
            ):
                yield at
            place = text.find(part, place + 1)


def is_one_off(text: str, tag: str) -> bool:
    """Return True if one character left out, doubled, wrong or swapped makes `text` of `tag`.

    At its ends a tag may only have its own first or last character twice, so that no letter of the
    text around it is taken for a part of it.

    >>> is_one_off("<a", "<a>"), is_one_off("<<a>", "<a>"), is_one_off("x<a>", "<a>")
    (True, True, False)
    """
    if text == tag:
        return False
    same = 0
    limit = min(len(text), len(tag))
    while same < limit and text[same] == tag[same]:
        same += 1

    if len(text) == len(tag):
        if text[same + 1 :] == tag[same + 1 :]:
            # At the ends of a tag only a sign may be wrong, or a line break at its last one.
            is_break = text[same:] == "\n" and tag[-1] == ">"
            is_word = text[same].isalnum() or (text[same].isspace() and not is_break)
            return 0 < same < len(tag) - 1 or not is_word
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
    return 0 < same < len(tag) or text[same] == (tag[-1] if same else tag[0])


# What looks like a damaged tag or name. Markup of other kinds (HTML, code with `<`) is content, and
# never looked at.


def call_is_doubtful(call: Decoded, view: View, body: str, *, repaired: bool) -> bool:
    """Return True if the strings of a call contain text like a damaged tag or name."""
    # JSON strings have quotes around them, and contain whatever they like.
    return call.untyped and is_doubtful(call.arguments, view, body, call.places, repaired=repaired)


def is_doubtful(
    value: Value,
    view: View,
    body: str,
    places: Callable[[], Mapping[str, Place]],
    *,
    repaired: bool,
) -> bool:
    """Return True if arguments contain text like a damaged tag or name of their own format.

    view: the schema of the parameters. body: the text they were read from; everything escaped there
    is content. places: where their values are in it. repaired: edits were made, so that more is
    doubtful: any word of the format that touches a structural character, and unknown names.
    """
    if not isinstance(value, Mapping):
        return False
    properties = view.properties
    for name in value:
        if name not in properties and is_doubtful_name(name, value, view, repaired=repaired):
            return True
    # Nearly every body ends here, at the cost of a look at each text.
    if all(map(_is_plain, value.values())):
        return False

    names = names_below(view)
    fragment = _fragment(names) if repaired and names else None
    for path, text in leaves(value):
        if not isinstance(text, str) or _is_plain(text):
            continue
        if repaired and text[:1] == ">":
            return True
        if _DOUBLED_BRACKET.match(text):
            begin = places().get(path, (0, 0))[0]
            if body[begin - 1 : begin] == ">":
                return True
        # Places cost a pass over the body, so they come last.
        if _looks_damaged(text, path, names, fragment) and _stands_bare(
            text, body, places().get(path)
        ):
            return True
        # `<t>a<</t>`: its closing tag's bracket is there twice. One at the beginning of a value is
        # well-formed, and a value like any other.
        if text[-1:] == "<" and any(map(str.isalnum, text)):
            end = places().get(path, (0, 0))[1]
            if body[end - 1 : end + 2] == "<</":
                return True
    return False


def _is_plain(value: Value) -> bool:
    # A string without anything that may be part of a tag.
    if type(value) is not str or "<" in value or value[:1] == ">":
        return False
    last = value[-1:]
    # Copied only where white space follows it, which is rare.
    return (value.rstrip()[-1:] if last.isspace() else last) not in (">", "]")


def is_plain_object(value: Value, view: View) -> bool:
    """Return True if arguments are known parameters, whose strings cannot hold a part of a tag.

    >>> from toolparse_lab.arguments.schema.view import view_of
    >>> view = view_of({"properties": {"a": {"type": "string"}}})
    >>> [is_plain_object({"a": text}, view) for text in ("x > y", "x<y", "x] ", "")]
    [True, False, False, True]
    """
    if type(value) is not dict or not value.keys() <= view.properties.keys():
        return False
    try:
        texts = "\n".join(value.values())
    except TypeError:  # some are no strings
        return False
    if "<" in texts:
        return False
    # Without such a bracket anywhere none of them can end with one.
    return (">" not in texts and "]" not in texts) or all(map(_is_plain, value.values()))


def _looks_damaged(
    text: str, path: str, names: frozenset[str], fragment: re.Pattern[str] | None
) -> bool:
    if stray_end(text, names) >= 0:
        return True
    # One mark of a CDATA section without the other. A whole section inside a longer text is
    # content, and so is `]]>` in the middle of code.
    opener = text.rfind(_CDATA[0])
    if text.find(_CDATA[1], opener) < 0 if opener >= 0 else text.rstrip().endswith(_CDATA[1]):
        return True
    # Text next to the members of an object is what a bracket too many becomes.
    if path.endswith("/#text"):
        return True
    # Tags of its own name that do not balance. Indexes of items are no names. Searched from the
    # end, which is several times as fast where nothing is found.
    own = next((part for part in reversed(path.split("/")) if not part.isdigit()), "")
    is_own = own and text.rfind(f"{own}>") >= 0
    if is_own and text.count(f"<{own}>") != text.count(f"</{own}>"):
        return True
    if _has_broken_closer(text, names):
        return True
    return fragment is not None and fragment.search(text) is not None


def stray_end(text: str, names: Collection[str]) -> int:
    """Return the offset of a tag at the end of a text that closes nothing in it, -1 without one.

    >>> stray_end("x</path>", ("path",)), stray_end("<path>x</path>", ("path",))
    (1, -1)
    """
    if text.rstrip()[-1:] not in (">", "]"):
        return -1

    match = _CLOSING_TAIL.search(text, max(0, len(text) - _LONGEST_TAIL))
    if match is None or (match["open"] == "<") != (match["end"] == ">"):
        return -1

    word = match["word"]
    if word not in names and not _is_format_word(word):
        return -1
    if match["close"]:
        opened = re.search(rf"[<\[]{re.escape(word)}[\s=>\]]", text[: match.start()])
        return -1 if opened else match.start()
    # An opening tag at the end is one only in the words of the format, and only without brackets
    # of lists: `a[value]` is code.
    is_own = match["open"] == "<" and word.lower() in FORMAT_WORDS
    return match.start() if is_own else -1


def _is_format_word(word: str) -> bool:
    # In a namespace too, and as the beginning of a longer word.
    for part in map(str.strip, _NAMESPACE.split(word.lower())):
        if part in FORMAT_WORDS:
            return True
        if any(part.startswith((f"{own}_", f"{own}-")) for own in FORMAT_WORDS):
            return True
    return False


def _stands_bare(text: str, body: str, place: Place | None) -> bool:
    # Neither escaped nor in a section. A value of an unknown place counts as bare.
    if place is None:
        return True
    start, end = place
    in_section = body.startswith(_CDATA[0], max(0, start - len(_CDATA[0])))
    if in_section:
        return False
    # A reference elsewhere in the value says nothing of its tags.
    return text.strip() in body[start:end] or 0 < text.count("<") == body.count("<", start, end)


def _has_broken_closer(text: str, names: frozenset[str]) -> bool:
    return text.rfind("</") >= 0 and _broken_closer(names).search(text) is not None


@lru_cache(maxsize=512)
def _broken_closer(names: frozenset[str]) -> re.Pattern[str]:
    # A parameter's closing tag without its end.
    words = "|".join(map(re.escape, sorted(names, key=len, reverse=True))) or "(?!)"
    return re.compile(rf"</(?:{words})(?![\w.:\s>-])")


@lru_cache(maxsize=512)
def _fragment(names: frozenset[str]) -> re.Pattern[str]:
    # A name or a word of the format that touches a structural character.
    words = "|".join(sorted(map(re.escape, names | FORMAT_WORDS), key=len, reverse=True))
    return re.compile(rf"(?:</?\s?|\[/|\b/)(?:{words})\b|(?<![\w.])(?:{words})(?:=[^<>\s]*)?\s?>")


def is_doubtful_name(name: str, value: Mapping[str, Value], view: View, *, repaired: bool) -> bool:
    """Return True if an unknown name is near to that of a parameter that is missing.

    After a repair, every unknown name of a schema that lists its own is doubtful.
    """
    if not view.properties:
        return False
    if repaired or name in names_below(view):
        return True
    # Names of one or two characters are near to too many.
    return any(
        name.lower() == other.lower() or is_one_off(f"<{name}>", f"<{other}>")
        for other in view.properties
        if other not in value and len(other) >= _SHORTEST_NAME
    )


@lru_cache(maxsize=512)
def names_below(view: View) -> frozenset[str]:
    """Return the names of all parameters, and of the members inside them."""
    names: set[str] = set()
    visited: set[int] = set()
    stack = [view]
    # A schema may contain itself, each time as a new view.
    while stack and len(visited) < _MOST_VIEWS:
        view = stack.pop()
        if id(view) in visited:
            continue
        visited.add(id(view))
        names.update(view.properties)
        stack += [*view.properties.values(), *view.any_of]
        if view.items is not None:
            stack.append(view.items)

    return frozenset(names)
