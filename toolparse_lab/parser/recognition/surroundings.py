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
from collections.abc import Iterator
from dataclasses import dataclass, field

from ...core.types import ToolCall
from ...core.types.call import is_repeat
from ..state import Log, Setting
from .attempts import parameter_names
from .pages import begins_with_element
from .quotation import (
    evidence_after,
    evidence_between,
    evidence_of_lead,
    is_label,
    is_long,
    is_placeholder,
    reasons,
    score,
)

_NEAR = 600  # characters before and after a group that are looked at
_FENCE_LINE = re.compile(r"^[ \t]*`{3,}[^`\n]*$", re.MULTILINE)
_WORD = re.compile(r"\w")
_MAIL = re.compile(
    r"^[*_ ]*(?:subject|betreff|objet|asunto|oggetto|assunto|onderwerp|temat|тема|主题|主旨|件名"
    r"|제목)[*_ ]*[:：]",
    re.IGNORECASE | re.MULTILINE,
)


@dataclass
class _Group:
    before: str
    is_bare: bool  # it has no delimiters
    places: list[int] = field(default_factory=list)  # of its calls in the log
    after: str = ""

    def evidence(self, log: Log, ends: bool, is_last: bool, keys: set[str]) -> list[str]:
        """Return it. ends: words are after the last group of the text. is_last: this is that. keys:
        the parameters of all tools.
        """
        # The paragraph before the next group leads to that.
        after = self.after if is_last else self.after.rpartition("\n\n")[0]
        lead = self.before.rstrip().rpartition("\n")[2]
        said = evidence_after(after)
        if "last" in said and ends:
            said = ()
        leads = evidence_of_lead(lead, not ends)
        if not _WORD.search(self.before) or not (self.is_bare or leads):
            # Of a call in its own marks, or one that begins the answer, a model goes on to say what
            # it does.
            said = tuple(name for name in said if name != "explained")
        names = ["line" if self.is_bare else "delimiters", *leads, *said]
        if self.before.strip() and ends:
            names += evidence_between(self.before, self.after)
            if self.after.lstrip().startswith("</") and begins_with_element(self.after):
                names.append("closed-markup")
            if _MAIL.search(self.before):
                names.append("letter")
            unsaid = {"intent", "past"}.isdisjoint(leads) and (self.is_bare or leads)
            if unsaid and is_long(lead):
                names.append("unsaid")
        calls = [log.calls[i] for i in self.places]
        if any(map(_has_placeholder, calls)):
            names.append("placeholder")
        if "`" in after and any(f"`{key}`" in after for key in keys):
            names.append("parameters")
        if log.echoes is not None and log.echoes.asks_for_example:
            names.append("request")
        return names


def shown_at_end(log: Log, raw: str, setting: Setting) -> Iterator[tuple[list[int], str]]:
    """Yield the places of calls that are only shown, and why."""
    # What is said again is meant, and one of the two is a draft already.
    if any(map(is_repeat, log.calls)):
        return
    groups = list(_groups(log, raw))
    if not any(_WORD.search(group.before) or _WORD.search(group.after) for group in groups):
        return
    ends = _WORD.search(groups[-1].after) is not None
    keys = parameter_names(setting.specs)
    evidence = [group.evidence(log, ends, group is groups[-1], keys) for group in groups]
    shown = [score(names) > 0 for names in evidence]
    for group, names, is_shown in zip(groups, evidence, shown, strict=True):
        if not is_shown and (any(shown) or (ends and log.shown)):
            names.append("among")
            if is_label(group.before):
                names.append("labels")
        places = [i for i in group.places if log.calls[i].ok]
        if places and score(names) > 0:
            yield places, f"this call is only shown: {reasons(names)}"


def _groups(log: Log, raw: str) -> Iterator[_Group]:
    group: _Group | None = None
    before = ""
    calls = iter(enumerate(log.calls))
    at, call = next(calls, (0, None))
    for index, segment in enumerate(log.segments):
        if segment.kind in ("text", "markup"):
            if segment.kind == "text":
                before += segment.said(raw)
            continue
        if segment.kind == "reasoning":
            before = ""
            continue
        own: list[int] = []
        while call is not None and call.segment_index <= index:
            own.append(at)
            at, call = next(calls, (0, None))
        if group is not None and not _WORD.search(_FENCE_LINE.sub("", before)):
            group.places += own
        else:
            if group is not None:
                group.after = _FENCE_LINE.sub("", before)[:_NEAR]
                yield group
            lead = _FENCE_LINE.sub("", before)[-_NEAR:]
            group = _Group(lead, segment.kind != "call", own)
        before = ""
    if group is not None:
        group.after = _FENCE_LINE.sub("", before)[:_NEAR]
        yield group


def _has_placeholder(call: ToolCall) -> bool:
    values = call.arguments.values() if call.ok else ()
    return any(isinstance(value, str) and is_placeholder(value) for value in values)
