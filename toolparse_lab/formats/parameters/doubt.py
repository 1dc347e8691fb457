"""Decides which reading of a body of parameter tags counts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from ...arguments.rjson.positions import apply_edits
from ...arguments.rjson.strict import Refusal
from ...arguments.schema.view import View, view_of
from ...core.toolspec import ToolSpec
from ...core.types import Edit, Span, Step
from ...core.types.spans import make_edit
from ...core.values import Value, escape_token
from ..base import DecodeContext, Decoded, Tools, unread
from ..disambiguation import Calls, Disambiguation, call_is_doubtful, is_plain_object, near_edits
from .form import Form
from .slots import SlotForm
from .strict import read_functions

# How it works. A body is a row of tags with texts between them, walked over once. A value is the
# text between its two tags, and holds no tag of the format: where it ends is never in doubt. What
# is before it has to be the name of a declared parameter, with the tags of a key around it in
# any number. One edit a parameter brings that to the format's own spelling.
#
# Cost: linear in the body; names are looked up, not searched for.


RULE = "tags.key"
_CLOSERS = ("key_end", "value_end")
_MOST_TAGS = 4  # around one name


@lru_cache(maxsize=32)
def _tags(form: SlotForm) -> re.Pattern[str]:
    key, key_end, value = form.parameter
    literals = {
        "key": key,
        "key_end": key_end,
        "value": value,
        "value_end": form.parameter_end,
        "function": form.function[0],
        "function_end": form.function_end,
        "separator": form.function[1] or "\0",
    }
    return re.compile("|".join(f"(?P<{k}>{re.escape(v)})" for k, v in literals.items()))


def key_edits(form: SlotForm, body: str, tools: Mapping[str, ToolSpec]) -> list[Edit] | None:
    """Return the edits that put the tags of keys right, None if anything is not understood."""
    tags = list(_tags(form).finditer(body))
    kinds = [str(tag.lastgroup) for tag in tags]
    starts = [*(tag.start() for tag in tags), len(body)]
    texts = [body[tag.end() : start] for tag, start in zip(tags, starts[1:], strict=True)]
    # The block's own tags, if there are any, are not part of the body.
    if not tags or body[: starts[0]].strip() or texts[-1].strip():
        return None
    edits: list[Edit] = []
    i = 0
    while i < len(tags):
        word = texts[i].strip()
        split = _split(word, tools)
        if kinds[i] != "function" or (i and texts[i - 1].strip()) or split is None:
            return None
        name, key = split
        key_at = tags[i].end() + texts[i].find(word) + len(word) - len(key)
        i += 1
        if kinds[i : i + 1] == ["separator"]:
            if key or texts[i].strip():
                return None
            i += 1
        # Closers after a name, which close nothing.
        while not key and i < len(tags) and kinds[i] in _CLOSERS and not texts[i].strip():
            edits.append(make_edit(Span(*tags[i].span()), "", RULE))
            i += 1
        while i < len(tags) and kinds[i] != "function_end":
            first, start = i, key_at if key else starts[i]
            passed = _past_key(kinds, texts, i, key)
            if passed is None or not _knows(tools[name], passed[1]):
                return None
            i, key = passed
            if kinds[first:i] != ["key", "key_end"] or start != starts[first]:
                before, after, value = form.parameter
                own = f"{before}{key}{after}{value}"
                edits.append(make_edit(Span(start, tags[i].end()), own, RULE))
            i += 2
            # Behind a value, and before the next tag, the next name may have lost its tags.
            key = texts[i - 1].strip()
            key_at = tags[i - 1].end() + texts[i - 1].find(key)
        if key or i >= len(tags):
            return None
        i += 1
    return edits


def _past_key(kinds: list[str], texts: list[str], i: int, key: str) -> tuple[int, str] | None:
    # The number of the tag before a value, and the name before that. key: if it is before tag i.
    first = i
    while i < len(kinds) and (
        kinds[i] in ("key", "key_end") or (kinds[i] == "function" and i == first and not key)
    ):
        if key and texts[i].strip():
            return None
        key = key or texts[i].strip()
        i += 1
    # A value that holds a tag of the format has no certain end.
    whole = i - first <= _MOST_TAGS and kinds[i : i + 2] == ["value", "value_end"]
    return (i, key) if whole else None


def _split(word: str, tools: Mapping[str, ToolSpec]) -> tuple[str, str] | None:
    # The tool's name and the parameter's, of which one may be "".
    if word in tools:
        return word, ""
    # Where one tool's name begins with another's, a word may be split in two ways.
    splits = [
        (name, word[len(name) :].strip())
        for name, tool in tools.items()
        if word.startswith(name) and _knows(tool, word[len(name) :].strip())
    ]
    return splits[0] if len(splits) == 1 else None


def _knows(tool: ToolSpec, key: str) -> bool:
    return key in view_of(tool.schema_json).properties


# How it works. As for elements: what was read without a repair, and holds nothing that looks
# damaged, counts. Else the body is looked at as one in which a single character of a single tag is
# wrong; the only such reading in which every function is of a known tool and fits its schema
# counts. A repaired reading counts where there is none, and nothing in it is doubtful.


_SPECIAL = re.compile(r"<\|[^<>|]+\|>")
_BEFORE_VALUE = 64  # characters before a value's own tag that may be a slip


class TagDisambiguation(Disambiguation):
    """One body of parameter tags."""

    def __init__(self, form: Form, body: str, context: DecodeContext) -> None:
        super().__init__(body, context)
        self._form = form

    def read_strictly(self, text: str) -> Calls | None:
        return read_functions(self._form, text)

    def tags(self) -> list[str]:
        # A parameter of any tool, since the function's own tag may be the damaged one.
        form = self._form
        tags = [form.parameter_closer, form.function_closer]
        names: dict[str, None] = {}
        for name, tool in self.context.tools.items():
            tags.append(form.function_tag(name))
            names.update(dict.fromkeys(view_of(tool.schema_json).properties))
        return [*tags, *(form.parameter_tag(name) for name in names)]

    def may_search(self) -> bool:
        # The missing part of a body that ended early is more than a character.
        return self.context.closed

    def is_doubtful(self, call: Decoded) -> bool:
        if not call.readable:
            return False
        form, by_json = self._form, any(step.rule == "read.json-body" for step in call.steps)
        view = self.view(call)
        if view is None:
            if by_json:
                return False
            # A repair that leaves part of a closer in a value has put the wrong thing right.
            tokens = _SPECIAL.findall(form.parameter_closer) if call.edits else ()
            texts = [value for value in call.arguments.values() if isinstance(value, str)]
            left = any(token in text for text in texts for token in tokens)
            return left or _went_on(form, call.arguments, None)
        # A tag says a value's type, but no quotes keep its text from swallowing other tags.
        if form.flags and not by_json:
            call = replace(call, untyped=True)
        if call_is_doubtful(call, view, self.body, repaired=bool(call.edits)):
            return True
        return call.untyped and _swallows(form, call.arguments, view)

    def in_another_way(self) -> Calls | None:
        # Only tags around parameters' names are damaged.
        form = self._form
        if not isinstance(form, SlotForm) or not form.value_has_tag or not self.context.closed:
            return None
        edits = key_edits(form, self.body, self.context.tools)
        calls = self.fitting(apply_edits(self.body, edits)) if edits else None
        return self.in_raw(calls, edits) if calls and edits else None

    def refused(self, calls: Calls, doubts: Sequence[bool], refusal: Refusal) -> Calls:
        why = Refusal("decode.ambiguous", "a value or a name looks like a damaged tag", 0)
        out = [
            unread(call.name, why, call.name_span, name_span=call.name_span)
            if refuse and call.readable
            else call
            for call, refuse in zip(calls, doubts, strict=True)
        ]
        if refusal.readings:  # they are of the first call, as each of them is shown
            out[0] = replace(out[0], readings=refusal.readings)
        return tuple(out)


def _swallows(form: Form, arguments: Mapping[str, Value], view: View) -> bool:
    # A value contains the closer of parameters and something that is not in the value: anything in
    # a value that is no string, and in a string a possible tag of a parameter that is missing.
    if _went_on(form, arguments, view):
        return True
    for name, text in arguments.items():
        if ends_in_tag(form, text):
            return True
        # Searched from the end, which is several times as fast where nothing is found.
        if not isinstance(text, str) or text.rfind(form.parameter_closer) < 0:
            continue
        member = view.child(name)
        if member is not None and not member.admits_string():
            return True
        # One of the two tags around a key, in a format that has them.
        key, value = form.pairs[-2:]
        if value[0][-1:] == ">" and text.count(key[0]) != text.count(key[1]):
            return True
        # In any order: models do not keep to that of the schema.
        missing = [other for other in view.properties if other not in arguments]
        if near_edits(text, [form.parameter_tag(m) for m in missing]):
            return True
    return False


def ends_in_tag(form: Form, text: Value) -> bool:
    # Such a tag was written twice, or in place of another. In a quoted call each has its closer. Of
    # a format with references nothing is said, since such a tag may have been escaped.
    if form.entities or not isinstance(text, str):
        return False
    stripped = text.strip()
    if stripped[:1] != "<" and stripped[-1:] != ">":
        return False
    pairs = form.pairs
    for opener, closer in pairs:
        whole = opener[:1] == "<" and opener[-1:] == ">"
        if whole and stripped.endswith(opener):
            return True
        if closer and stripped.endswith(closer) and text.count(opener) != text.count(closer):
            return True
    # A value that begins as it was begun already.
    opener, closer = pairs[-1]
    begins = opener[-1:] == ">" and stripped.startswith(opener)
    return begins and text.count(opener) != text.count(closer)


def _went_on(form: Form, arguments: Mapping[str, Value], view: View | None) -> bool:
    # A value begins before its own tag, or goes on over the next parameter's. Prose about tags
    # names parameters that the tool does not have.
    head = form.pairs[-1][0]
    for text in arguments.values():
        if not isinstance(text, str) or "<" not in text:
            continue
        begin = text.find(head, 0, _BEFORE_VALUE)
        if form.value_has_tag and begin >= 0 and "<" not in text[:begin]:
            return True
        if view is not None and _runs_into(form, text, view):
            return True
        match = form.next_parameter.search(text)
        if match is not None:
            name = match.groupdict().get("next")
            if name is None or view is None or view.child(name) is not None:
                return True
    return False


def _runs_into(form: Form, text: str, view: View) -> bool:
    # As in `</parameter<>parameter=days>`. Whole tags are the value's own.
    pairs = form.pairs
    closer = pairs[-1][1].rstrip(">]")
    at = text.find(closer) if closer else -1
    if at < 0:
        return False
    is_damaged = text[at : at + len(pairs[-1][1])] != pairs[-1][1]
    openers = {pair[0].lstrip("<[").rstrip(" \"'=>]") for pair in pairs[-2:]} - {""}
    for opener in openers:
        for name in view.properties:
            tag = re.search(rf"{re.escape(opener)}[\s\"'=>]{{0,4}}{re.escape(name)}(?![\w-])", text)
            if tag is not None and (is_damaged or text[tag.start() - 1 : tag.start()] not in "<["):
                return True
    return False


def say_tags_in_values(form: Form, body: str, call: Decoded) -> Decoded:
    # Nothing escapes the tags there, so a person has to be able to see it.
    if not call.readable:
        return call
    # What is read as JSON has quotes around its texts.
    if any(step.rule == "read.json-body" for step in call.steps):
        return call
    steps: list[Step] = []
    for name, value in call.arguments.items():
        if not isinstance(value, str) or "<" not in value or not form.own_tags.search(value):
            continue
        path = f"/{escape_token(name)}"
        start, end = call.places().get(path, (0, 0))
        if form.own_tags.search(body, start, end):
            steps.append(Step("read", "read.tags-in-value", path, None, value, value))
    return replace(call, steps=(*call.steps, *steps)) if steps else call


def hold_no_tag(calls: tuple[Decoded, ...], tools: Tools) -> bool:
    # Of a tool that no one knows nothing can be told.
    for call in calls:
        tool = tools.get(call.name)
        if tool is not None and not is_plain_object(call.arguments, view_of(tool.schema_json)):
            return False
    return True
