"""A ParseResult as HTML without JavaScript: the parse view, and the coercions of a call alone.

It reads the same live, saved, exported, without a kernel and in an untrusted notebook, which drops
style sheets: there the marks carry their looks themselves, see `standalone`. `stages` decides the
contents, `templates` lay them out, and the rows of which there are thousands are joined here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from itertools import islice
from typing import Any

from markupsafe import Markup

from ..core.types import ParseResult, ToolCall
from ..core.types.result import explain_sources
from .cells import MAX_TOKENS, text_html, tokens_html, tokens_line
from .rows import Fault, changes_of, json_of, protocol_words
from .show import shorten, visible
from .stages import STAGES, Parts, change_entry, parts_of
from .style import MARKS
from .templating import macro, render, style_sheet
from .words import word_of

MAX_CHANGES = 300  # of a call
_MOST_READINGS, _MOST_CARDS = 6, 24  # of a call, and of all of them
_PARSE = "views/templates/parse.html"
_LOOKS = {
    "none": ("flat", "·"),
    "clean": ("good", "✓"),
    "repaired (lossless)": ("good", "✓"),
    "repaired (lossy)": ("warn", "!"),
    "unchecked": ("warn", "?"),
    "invalid": ("bad", "✗"),
    "refused": ("bad", "✗"),
    "truncated": ("bad", "…"),
    "echoed": ("bad", "✗"),
}
_SIGNS = {
    "repair": ("rep", "R"),
    "read": ("note", "→"),
    "coerce": ("co", "C"),
    "error": ("", "✗"),
    "warning": ("co", "!"),
    "info": ("note", "i"),
    "fault": ("", "≠"),
}
_LEGEND = {
    "opener": "opener, closer",
    "name": "tool name",
    "argument": "argument",
    "value": "value",
    "coerced": "coerced",
    "edit": "repaired",
    "dropped": "dropped",
    "added": "added",
    "problem": "problem",
    "wrong": "not what was expected",
    "recovered": "recovered",
    "unclosed": "not closed",
    "reasoning": "reasoning",
    "markup": "markup",
}


def look_of(verdict: str) -> tuple[str, str]:
    """Return the class and the words of a verdict's pill."""
    look, sign = _LOOKS[verdict]
    return look, f"{sign} {word_of(verdict)}"


def pill_of(verdict: str) -> Markup:
    """Return a verdict as a pill: its sign and its word."""
    return macro("views/templates/screen.html", "pill", *look_of(verdict))


def render_result(result: ParseResult, faults: Sequence[Fault] = (), *, stage: str = "raw") -> str:
    """Return the parse view: the text with its marks at each stage, the calls, and what was
    repaired, coerced, wrong, or not what was expected.

    faults: where it is not what was expected. stage: the one shown first. A part that would make
    the page too heavy drops out with a note that says so.
    """
    return macro(_PARSE, "view", view_of(result, parts_of(result, faults), faults, stage))


def view_of(
    result: ParseResult, parts: Parts, faults: Sequence[Fault], stage: str, *, editor: bool = False
) -> dict[str, Any]:
    """Return what the macros of the parse view show. editor: the text can be changed."""
    kinds = frozenset[str]().union(*(one.kinds for one in parts.stages))
    names = [one.id for one in parts.stages]
    return {
        "stage": stage if stage in names else "raw",
        "stages": [(s.id, STAGES[s.id], Markup(s.html), s.faults) for s in parts.stages],  # noqa: S704
        "editor": editor,
        "legend": [(kind, word) for kind, word in _LEGEND.items() if kind in kinds],
        "protocol": protocol_words(result),
        "blame": shorten(result.blame, 1_000),
        "tree": Markup(_tree_html(parts)),  # noqa: S704
        "why": "" if result.calls else shorten(result.why(), 2_000),
        "changes": Markup(_changes_html(parts, faults)),  # noqa: S704
        "cards": [card for call in result.calls for card in _cards(call)][:_MOST_CARDS],
        "notes": [*_sources_of(result), *parts.notes],
        "tokens": tokens_html(result) if result.tokens else "",
        "tokens_line": tokens_line(result),
        "more_tokens": max(len(result.tokens or ()) - MAX_TOKENS, 0),
    }


def _sources_of(result: ParseResult) -> Iterator[str]:
    # Which values stand in the request.
    for call in islice(result.calls, MAX_CHANGES):
        if copied := explain_sources(call):
            yield shorten(copied, 2_000)


def _cards(call: ToolCall) -> Iterator[dict[str, Any]]:
    # What a refused call may be, and what of the text each reading keeps.
    readings = call.readings[:_MOST_READINGS]
    places = sorted(reading.edits[0].span.start for reading in readings if reading.edits)
    for i, reading in enumerate(readings):
        values = (f"{key}={json_of(value)}" for key, value in reading.arguments.items())
        keeps = ", ".join(f"{edit.rule} at {edit.span.start}" for edit in reading.edits)
        doubled = all(edit.rule == "rjson.double-key" for edit in reading.edits)
        if reading.edits and doubled and len(places) == len(readings) > 1:
            # Of a key with several values, each reading leaves out another one.
            number = len(places) - places.index(reading.edits[0].span.start)
            keeps = {
                1: "keeps the first value",
                len(places): "keeps the last value, as most JSON readers do",
            }.get(number, f"keeps value {number} of {len(places)}")
        yield {
            "call": visible(shorten(f"{reading.name}({', '.join(values)})", 400)),
            "why": visible(shorten("; ".join(filter(None, (keeps, reading.why))), 300)),
            "at": {"call": call.index, "reading": i},
            "ask": "",
        }


def render_diff(subject: ParseResult | ToolCall) -> str:
    """Return the coercions alone as HTML: each changed argument before and after, with its rule and
    whether that rule loses anything.

    subject: a result, for all its calls, or one call.
    """
    calls = subject.calls if isinstance(subject, ParseResult) else (subject,)
    blocks = []
    for call in calls:
        changes = [change for change in changes_of(call, "") if change.kind != "repair"]
        rows = "".join(_entry_html(change_entry(c, {}), 1, "") for c in changes[:MAX_CHANGES])
        more = len(changes) - MAX_CHANGES
        said = f"{more:,} more changes are not shown." if more > 0 else ""
        if not changes:
            said = "Nothing was coerced: the arguments are as found."
        body = Markup(rows)  # noqa: S704
        blocks.append((call.name or "no name", pill_of(call.verdict), body, said))
    return render("views/templates/diff.html", calls=blocks)


def standalone(html: str) -> str:
    """Return a part with all that it needs to be looked at alone, as in a cell of a notebook."""
    looks = {kind: look.css for kind, look in MARKS.items()}
    marked = re.sub(
        r'<span class="k-(\w+)',
        lambda m: f'<span style="{looks[m[1]]}" class="k-{m[1]}' if m[1] in looks else m[0],
        html,
    )
    return f"<style>{style_sheet()}</style>{marked}"


def _tree_html(parts: Parts) -> str:
    # What is missing has a number behind all others, and stands with its call.
    order = sorted(range(len(parts.nodes)), key=lambda i: (parts.nodes[i]["call"], i))
    return "".join(_node_html(i, parts.nodes[i]) for i in order)


def _node_html(number: int, node: dict[str, Any]) -> str:
    kind, key, text = node["kind"], escape(node["key"]), escape(node["text"])
    off = "expected" in node or node.get("doubt")
    if kind == "call":
        said = f"<b>{key}</b> {pill_of(node['verdict'])}"
        if node["status"] not in ("ok", "undecodable", node["verdict"]):
            said += f' <span class="badge flat">{text}</span>'
    elif kind == "missing":
        said = f'<span class="off">{key}: not there</span>'
    elif not node["leaf"]:
        said = f'{key}: <span class="soft">{kind}, {text}</span>'
    elif off:
        said = f'<span class="off">{key}: <b>{text}{"?" if node.get("doubt") else ""}</b></span>'
    else:
        said = f"<span>{key}: {text}</span>"
    if node["changed"] and node["leaf"]:
        said += ' <span class="sign co" title="coerced">C</span>'
    if "expected" in node:
        said += f' <span class="badge flat">expected {escape(node["expected"])}</span>'
    if node["start"] >= 0:
        about = "" if node["exact"] else "~"
        said += f' <span class="at">{about}{node["start"]}–{node["end"]}</span>'
    depth = min(node["depth"], 12)
    path = f' data-p="{escape(node["path"])}"' if node["path"] else ""
    return (
        f'<div role="treeitem" aria-level="{depth + 1}" tabindex="-1" data-n="{number}"{path} '
        f'style="--d:{depth}">{said}</div>'
    )


def _changes_html(parts: Parts, faults: Sequence[Fault]) -> str:
    # What is wrong first. Repairs that did one thing are one line.
    first = len(parts.nodes)
    lines = [_line_html("fault", escape(visible(f.sentence)), f.code) for f in faults]
    alike: dict[tuple[Any, ...], list[int]] = {}
    ranks = {"error": 0, "warning": 1}
    order = sorted(enumerate(parts.changes), key=lambda pair: ranks.get(pair[1]["kind"], 2))
    for i, change in order:
        key: tuple[Any, ...] = (i,)
        if change["kind"] == "repair":
            key = (change["rule"], change["before"], change["after"])
        alike.setdefault(key, []).append(i)
    for numbers in alike.values():
        change = parts.changes[numbers[0]]
        of = " ".join(map(str, [first + i for i in numbers] + change["nodes"]))
        lines.append(_entry_html(change, len(numbers), of))
    return "".join(lines)


def _entry_html(change: dict[str, Any], count: int, of: str) -> str:
    place_words = ""
    if change["start"] >= 0:
        place_words = f"characters {change['start']} to {change['end']}"
    if "message" in change:
        message = change["message"]
        said = escape(message[:1].upper() + message[1:] + ("" if message.endswith(".") else "."))
        where = " · ".join(filter(None, (change["rule"], change["path"], place_words)))
        return _line_html(change["kind"], said, escape(where), of)
    said = _change_words(change["kind"], change["before"], change["after"])
    if count > 1:
        said = f"<b>{count:,} ×</b> {said}"
        place_words = f"first at {place_words}" if place_words else ""
    loss = "lossless" if change["lossless"] else "<b>lossy</b>"
    where = " · ".join(filter(None, (change["path"], place_words)))
    rest = f"{escape(change['rule'])} · {loss}{' · ' if where else ''}{escape(where)}"
    return _line_html(change["kind"], f"{said} {escape(change['sentence'])}", rest, of)


def _change_words(kind: str, before: str, after: str) -> str:
    old = f"<del>{text_html(before)}</del>" if before else ""
    new = f"<ins>{text_html(after)}</ins>" if after else ""
    if kind == "repair" and not (before and after):
        return f"{new} added:" if after else f"{old} dropped:"
    return f"{old} → {new}:"


def _line_html(kind: str, said: str, rest: str, of: str = "") -> str:
    look, sign = _SIGNS[kind]
    numbers = f' data-n="{of}" tabindex="-1"' if of else ""
    return (
        f'<li{numbers}><span class="sign {look}" title="{kind}">{sign}</span> <span>{said}</span> '
        f'<span class="soft xs">{rest}</span></li>'
    )
