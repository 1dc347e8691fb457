"""Calls of a finished text that the words around them only show."""

# How it works
# ------------
# Most of what says that a call is shown comes after it: the sentence goes on, the next step of a
# list follows, the reader is asked. Only the end of a text knows that, and no stream waits for it:
# its calls are handed out when they close, and withdrawn here, as those of reasoning are.
#
# Calls with nothing but white space and marks between them are one group. A group is weighed by the
# line before it and the paragraph after it, with the weights of `quotation`. What leads to the next
# group is not after this one. If a group is shown, that is evidence against the others.
#
# Cost: one look at a bounded text before and after each group.

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ...core.types import Segment, ToolCall
from ...core.types.call import is_repeat
from ...formats.reasoning import encloses
from .pages import begins_with_element
from .quotation import (
    evidence_about,
    evidence_after,
    evidence_between,
    evidence_of_lead,
    explains_parameters,
    is_contrast,
    is_label,
    is_placeholder,
    is_shown,
    is_statement,
    names_call,
    number_of,
    reasons,
    score,
)

_NEAR = 600  # characters before and after a group that are looked at
_FENCE_LINE = re.compile(r"^[ \t]*`{3,}[^`\n]*$", re.MULTILINE)
_WORD = re.compile(r"\w")
_MAIL = re.compile(
    r"[*_ ]*(?:subject|betreff|objet|asunto|oggetto|assunto|onderwerp|temat|тема|主题|主旨|件名"
    r"|제목)[*_ ]*[:：]",
    re.IGNORECASE,
)


@dataclass
class _Group:
    before: str
    is_bare: bool  # it has no delimiters
    places: list[int] = field(default_factory=list)  # of its calls among all
    calls: list[ToolCall] = field(default_factory=list)
    after: str = ""

    @property
    def lead(self) -> str:
        return self.before.rstrip().rpartition("\n")[2]

    def evidence(self, ends: bool, is_last: bool, asked: str, asks_for_example: bool) -> list[str]:
        """Return it. ends: words are after the last group of the text. is_last: this is that.
        asked: see `Echoes`.
        """
        # The paragraph before the next group leads to that.
        after = self.after if is_last else self.after.rpartition("\n\n")[0]
        lead = self.lead
        said = evidence_after(after)
        if "last" in said and (ends or not is_last):
            said = ()
        leads = evidence_of_lead(lead, not ends)
        names = ["line" if self.is_bare else "delimiters", *leads, *said]
        if self.before.strip() and self.after.strip():
            names += evidence_between(self.before, self.after)
            if "</" in self.after and encloses(self.before, self.after):
                names.append("thought")
            if said and "intent" not in leads and "intent-after" not in said:
                names += [name for name in evidence_about(lead) if name not in names]
        if self.before.strip() and ends:
            if self.after.lstrip().startswith("</") and begins_with_element(self.after):
                names.append("closed-markup")
            if _MAIL.match(self.before.lstrip()) and "intent" not in leads:
                names.append("letter")
            if {"intent", "past"}.isdisjoint(leads) and is_statement(lead):
                if "question" in said:
                    names.append("asked-about")
                elif leads and "explained" in said:
                    names.append("unsaid")
        arguments = [call.arguments for call in self.calls if call.ok]
        values = [value for each in arguments for value in each.values()]
        if any(isinstance(v, str) and len(v) > 2 and v in lead + after for v in values):
            names.append("matter")
        elif any(
            names_call(lead, call.arguments_json, [call.name], asked)
            for call in self.calls
            if call.ok
        ):
            names.append("named")
        if is_last and explains_parameters(after, values):
            names.append("parameters")
        if any(map(_has_placeholder, self.calls)):
            names.append("placeholder")
        if asks_for_example:
            names.append("request")
        return names


def is_meant(words: str, is_bare: bool, calls: Sequence[ToolCall]) -> bool:
    """Return True if words do not lead to calls as to examples: calls that are all that follows.

    It says of them what `shown_at_end` does. False says nothing.
    """
    lead = words[-_NEAR:].rstrip().rpartition("\n")[2]
    # what the values may be evidence of, but for placeholders, speaks for the calls
    names = ["line" if is_bare else "delimiters", "last", *evidence_of_lead(lead, True)]
    if score([*names, "placeholder"]) <= 0:
        return True
    return score(names) <= 0 and not any(map(_has_placeholder, calls))


def shown_at_end(
    calls: Sequence[ToolCall],
    segments: Sequence[Segment],
    raw: str,
    *,
    asked: str = "",
    asks_for_example: bool = False,
    among_shown: bool = False,
) -> Iterator[tuple[list[int], str]]:
    """Yield the places of calls that are only shown, and why.

    asked: see `Echoes`. among_shown: a call before these is only shown.
    """
    # What is said again is meant, and one of the two is a draft already.
    if any(map(is_repeat, calls)):
        return
    groups = list(_groups(calls, segments, raw))
    if not any(_WORD.search(group.before) or _WORD.search(group.after) for group in groups):
        return
    ends = _WORD.search(groups[-1].after) is not None
    evidence = [g.evidence(ends, g is groups[-1], asked, asks_for_example) for g in groups]
    numbers = [number_of(g.lead) for g in groups]
    for group, names, number in zip(groups, evidence, numbers, strict=True):
        if ends and number and numbers.count(number) > 1:
            names.append("options")
        if among_shown and is_contrast(group.before):
            names += ("among", "contrast")
    shown = [is_shown(names) for names in evidence]
    if any(shown) or (ends and among_shown):
        for group, names, so_far in zip(groups, evidence, shown, strict=True):
            if not so_far:
                names.append("among")
                if is_label(group.before):
                    names.append("labels")
    for group, names in zip(groups, evidence, strict=True):
        places = [i for i, c in zip(group.places, group.calls, strict=True) if c.ok]
        if places and is_shown(names):
            yield places, f"this call is only shown: {reasons(names)}"


def _groups(calls: Sequence[ToolCall], segments: Sequence[Segment], raw: str) -> Iterator[_Group]:
    group: _Group | None = None
    before = ""
    numbered = iter(enumerate(calls))
    at, call = next(numbered, (0, None))
    for index, segment in enumerate(segments):
        if segment.kind in ("text", "markup"):
            if segment.kind == "text":
                before += segment.said(raw)
            continue
        if segment.kind == "reasoning":
            before = ""
            continue
        text = _FENCE_LINE.sub("", before)
        if group is None or _WORD.search(text):
            if group is not None:
                group.after = text[:_NEAR]
                yield group
            group = _Group(text[-_NEAR:], segment.kind != "call")
        while call is not None and call.segment_index <= index:
            group.places.append(at)
            group.calls.append(call)
            at, call = next(numbered, (0, None))
        before = ""
    if group is not None:
        group.after = _FENCE_LINE.sub("", before)[:_NEAR]
        yield group


def _has_placeholder(call: ToolCall) -> bool:
    values = call.arguments.values() if call.ok else ()
    return any(isinstance(value, str) and is_placeholder(value.strip()) for value in values)
