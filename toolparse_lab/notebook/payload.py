"""The data that the front end gets for one ParseResult: text, integer spans and plain strings,
JSON-ready.

How it works. Nodes are the calls and their arguments, numbered in document order. Changes are the
repairs, steps and problems, numbered after them. Each of the four stages is a text with marks on
it, and a mark names the numbers of its source, so that hovering over either lights up the other.
`_Draft` puts a text together and remembers where each mark is in it. `_stage` cuts it into runs
and turns their places into UTF-16.

Spans of text are UTF-16 offsets into the *shown* text of their stage, made here once from code
points. `start` and `end` of a node or change stay code points of `raw`: they are the words of the
view, not where it draws.
"""

from __future__ import annotations

import itertools
import json
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from ..core.types import Edit, ParseResult, Problem, Span, ToolCall
from ..views.marks import LAYERS, Run, marks_of, runs_of, without_middle
from ..views.rows import (
    Change,
    changes_of,
    children,
    json_of,
    kind_of,
    problems_of,
    protocol_words,
    read_value,
    rows_of,
    sentence_of,
)
from ..views.show import Shown, shorten, visible

# What the front end draws without making a reader wait.
MAX_TEXT = 256 * 1024  # characters of a stage
MAX_SPANS = 1_200  # nodes, changes, and marks of a stage
MAX_VALUE = 1_000  # characters of a value
KINDS = (*LAYERS, "coerced", "dropped", "added", "value")
_KIND = {kind: i for i, kind in enumerate(KINDS)}


@dataclass(frozen=True, slots=True)
class _Placed:
    """A mark on the text of one stage: `span` in that text's code points, `targets` the nodes and
    changes it means.
    """

    span: Span
    kind: str
    title: str
    targets: tuple[int, ...]


@dataclass
class _Draft:
    """The text of a stage while it is put together."""

    parts: list[str] = field(default_factory=list)
    length: int = 0
    marks: list[_Placed] = field(default_factory=list)

    def add(self, text: str) -> Span:
        """Append a text and return its place."""
        start = self.length
        self.parts.append(text)
        self.length += len(text)
        return Span(start, self.length)

    def mark(self, span: Span, kind: str, title: str, targets: tuple[int, ...]) -> None:
        """Put a mark on a place of the text."""
        self.marks.append(_Placed(span, kind, title, targets))

    @property
    def text(self) -> str:
        return "".join(self.parts)


def payload_of(result: ParseResult) -> dict[str, Any]:
    """Return the JSON-ready payload of the parse view.

    `nodes` are the calls and their arguments in document order, `changes` the repairs, steps and
    problems. The ids of changes follow those of nodes. A stage's `runs` are flat integers `start,
    end, n, mark * n`, its `marks` are `[kind, title, id...]`, the ids of nodes and changes.
    """
    notes: list[str] = []
    # Of a text with thousands of calls the first are shown, and no others need to be looked at.
    part = result
    if len(result.calls) > MAX_SPANS // 2:
        part = replace(result, calls=result.calls[: MAX_SPANS // 2])
    nodes, ids = _nodes(part, notes)
    changes, edit_ids, problem_ids = _changes(part, ids, len(nodes), notes)
    raw_marks = _raw_marks(part, ids, edit_ids, problem_ids)
    repaired = _repaired(part, raw_marks, edit_ids)
    decoded = _json_stage(part, ids, "source_json")
    coerced = _json_stage(part, ids, "arguments_json")
    drafts = {"repaired": repaired, "decoded": decoded, "coerced": coerced}
    stages = [
        _stage("raw", result.raw, raw_marks, notes),
        *(_stage(name, draft.text, draft.marks, notes) for name, draft in drafts.items()),
    ]
    return {
        "version": 1,
        "protocol": _text(protocol_words(result), 80),
        "policy": result.options.coerce,
        "ok": result.ok,
        "verdict": result.verdict,
        "characters": len(result.raw),
        "calls": len(result.calls),
        "executable": sum(c.valid for c in result.calls),
        "why": visible(shorten(part.why(), 2_000)),
        "blame": visible(shorten(result.blame, 1_000)),
        # Several stages may leave out the same.
        "notes": list(dict.fromkeys(notes)),
        "kinds": list(KINDS),
        "nodes": nodes,
        "changes": changes,
        "stages": stages,
    }


def payload_json(payload: dict[str, Any]) -> str:
    """Return the payload as JSON for a script element: no '<' can end it, no line separator break
    it.
    """
    # `ensure_ascii` writes lone surrogates and line separators as escapes.
    text = json.dumps(payload, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _text(value: str, limit: int = MAX_VALUE) -> str:
    return visible(shorten(value, limit))


_Ids = dict[tuple[int, str | None], int]


def _nodes(result: ParseResult, notes: list[str]) -> tuple[list[dict[str, Any]], _Ids]:
    # The nodes of the tree, and the number of each by call and path, which is None for the call.
    nodes: list[dict[str, Any]] = []
    ids: _Ids = {}
    for call in result.calls:
        for path, node in _nodes_of(call):
            if len(nodes) >= MAX_SPANS:
                notes.append(f"The tree shows the first {MAX_SPANS:,} calls and arguments.")
                return nodes, ids
            ids[call.index, path] = len(nodes)
            nodes.append(node)
    return nodes, ids


def _nodes_of(call: ToolCall) -> Iterator[tuple[str | None, dict[str, Any]]]:
    status = call.status.replace("_", " ")
    node = _node(call.index, 0, call.name or "no name", "", "call", status, call.segment.span)
    yield None, node | {"status": call.status, "valid": call.valid, "verdict": call.verdict}
    for row in rows_of(call):
        if not row.path:
            continue
        span = row.origin.span if row.origin else None
        node = _node(call.index, row.depth, row.key, row.path, row.kind, row.text, span)
        node["leaf"] = row.leaf
        node["exact"] = row.origin is None or row.origin.exact
        node["changed"] = any(rule.startswith("coerce.") for rule in row.rules)
        yield row.path, node
    for i, reading in enumerate(call.readings):
        # What a refused call may mean: no path of its arguments, and nowhere in the text.
        place, grey = f"\0{i}", {"grey": True}
        text = reading.why if reading.name == call.name else f"{reading.name}, {reading.why}"
        yield place, _node(call.index, 1, "it may be", "", "reading", text, None) | grey
        for key, value in reading.arguments.items():
            node = _node(call.index, 2, key, "", kind_of(value), json_of(value), None)
            yield f"{place}/{key}", node | grey | {"leaf": True}


def _node(
    call: int, depth: int, key: str, path: str, kind: str, text: str, span: Span | None
) -> dict[str, Any]:
    return {
        "call": call,
        "depth": depth,
        "key": _text(key, 200),
        "path": _text(path, 300),
        "kind": kind,
        "text": _text(text),
        "leaf": False,
        "exact": True,
        "changed": False,
        **_place(span),
    }


def _place(span: Span | None) -> dict[str, int]:
    # An empty span has no characters to name.
    if not span:
        return {"start": -1, "end": -1}
    return {"start": span.start, "end": span.end}


def _nearest(ids: _Ids, call: int, path: str) -> tuple[int, ...]:
    """Return the node at a path, or at the nearest path around it that is in the tree."""
    # Up towards the call: the value may be gone by now, or beyond what the tree shows.
    while path:
        if (call, path) in ids:
            return (ids[call, path],)
        path = path.rpartition("/")[0]
    return (ids[call, None],) if (call, None) in ids else ()


_EditIds = dict[tuple[int, Span, str], tuple[int, ...]]
_ProblemIds = dict[tuple[int | None, Span], list[int]]


def _changes(
    result: ParseResult, ids: _Ids, first_id: int, notes: list[str]
) -> tuple[list[dict[str, Any]], _EditIds, _ProblemIds]:
    # The changes and problems, and the numbers of edits and of problems that have a place.
    out: list[dict[str, Any]] = []
    edit_ids: _EditIds = {}
    problem_ids: _ProblemIds = {}
    entries: Iterator[tuple[Change | Problem, dict[str, Any]]] = itertools.chain(
        (
            (change, _change_entry(change, ids))
            for call in result.calls
            for change in changes_of(call, result.raw)
        ),
        ((problem, _problem_entry(index, problem, ids)) for index, problem in problems_of(result)),
    )
    for source, entry in entries:
        number = first_id + len(out)
        out.append(entry)
        if isinstance(source, Problem):
            if source.span is not None:
                problem_ids.setdefault((entry["call"], source.span), []).append(number)
        elif source.kind == "repair" and source.span is not None:
            edit_ids[source.call, source.span, source.rule] = (number,)
        if len(out) >= MAX_SPANS:
            notes.append(f"The list shows the first {MAX_SPANS:,} changes and problems.")
            break
    return out, edit_ids, problem_ids


def _entry(kind: str, call: int | None, rule: str, about: Change | Problem) -> dict[str, Any]:
    return {
        "kind": kind,
        "call": call,
        "rule": visible(rule),
        "sentence": sentence_of(rule),
        "path": _text(about.path, 300),
        **_place(about.span),
    }


def _change_entry(change: Change, ids: _Ids) -> dict[str, Any]:
    # A repair is of characters, which may belong to any argument or to none.
    nodes = () if change.kind == "repair" else _nearest(ids, change.call, change.path)
    return _entry(change.kind, change.call, change.rule, change) | {
        "lossless": change.lossless,
        "before": _text(change.before),
        "after": _text(change.after),
        "nodes": list(nodes),
    }


def _problem_entry(call: int | None, problem: Problem, ids: _Ids) -> dict[str, Any]:
    nodes = _nearest(ids, call, problem.path) if call is not None and problem.path else ()
    return _entry(problem.severity, call, problem.code, problem) | {
        "message": _text(problem.message),
        "nodes": list(nodes),
    }


def _raw_marks(
    result: ParseResult, ids: _Ids, edit_ids: _EditIds, problem_ids: _ProblemIds
) -> list[_Placed]:
    placed: list[_Placed] = []
    for mark in marks_of(result):
        call = mark.call
        targets: tuple[int, ...] = ()
        if mark.kind == "problem":
            targets = tuple(problem_ids.get((call, mark.span), ()))
            if not targets:  # a wider place than that of the complaint
                inside = (
                    n for (of, at), n in problem_ids.items() if of == call and mark.span.covers(at)
                )
                targets = tuple(itertools.chain.from_iterable(inside))
        elif call is not None and mark.kind == "argument":
            nodes = [_nearest(ids, call, path) for path in mark.paths]
            targets = tuple(dict.fromkeys(itertools.chain.from_iterable(nodes)))
        elif call is not None and mark.kind in ("name", "opener", "closer"):
            targets = _nearest(ids, call, "")
        elif call is not None and mark.kind == "edit":
            # The list of changes may leave an edit out.
            targets = edit_ids.get((call, mark.span, mark.rules[0]), ())
        kind = "coerced" if mark.coerced else mark.kind
        placed.append(_Placed(mark.span, kind, mark.title, targets))
    return placed


def _repaired(result: ParseResult, raw_marks: list[_Placed], edit_ids: _EditIds) -> _Draft:
    """Return the raw text with every edit carried out in place: the dropped text and what was added
    are both shown.
    """
    # So text only grows, by the added text, and a mark of the raw text moves by the added text
    # before its place.
    draft = _Draft()
    at = added = 0
    keys: list[int] = []
    sums: list[int] = [0]
    for edit, call in _distinct_edits(result):
        targets = edit_ids.get((call, edit.span, edit.rule), ())
        draft.add(result.raw[at : edit.span.start])
        if len(edit.span):
            dropped = draft.add(edit.span.of(result.raw))
            draft.mark(dropped, "dropped", f"dropped by {visible(edit.rule)}", targets)
        if edit.text:
            draft.mark(draft.add(edit.text), "added", f"added by {visible(edit.rule)}", targets)
            # An insertion sorts after a replacement that ends at the same place: a value ends
            # before the one and after the other.
            keys.append(edit.span.end * 2 + (not len(edit.span)))
            added += len(edit.text)
            sums.append(added)
        at = edit.span.end
    draft.add(result.raw[at:])

    def start(offset: int) -> int:
        return offset + sums[bisect_right(keys, offset * 2 + 1)]

    def end(offset: int) -> int:
        return offset + sums[bisect_right(keys, offset * 2)]

    for mark in raw_marks:
        # Edits are drawn as dropped and added here.
        if mark.kind in ("edit", "call"):
            continue
        first = start(mark.span.start)
        span = Span(first, max(first, end(mark.span.end)))
        draft.mark(span, mark.kind, mark.title, mark.targets)
    return draft


def _distinct_edits(result: ParseResult) -> Iterator[tuple[Edit, int]]:
    # Each once, with the index of its call, in text order: the calls of one body share their edits.
    edits = [(edit, call.index) for call in result.calls for edit in call.edits]
    edits.sort(key=lambda pair: (pair[0].span, pair[1]))
    at = 0
    done: set[Edit] = set()
    for edit, call in edits:
        if edit not in done and edit.span.start >= at:
            done.add(edit)
            at = edit.span.end
            yield edit, call


def _json_stage(result: ParseResult, ids: _Ids, attribute: str) -> _Draft:
    """Return the calls as indented JSON: their `source_json` or their `arguments_json`."""
    verb = "is" if attribute == "arguments_json" else "was found as"
    draft = _Draft()
    for call in result.calls:
        if draft.length > MAX_TEXT:
            break
        if draft.parts:
            draft.add("\n\n")
        name = f"tool name {_text(call.name, 60)}"
        draft.mark(draft.add(call.name or "no name"), "name", name, _nearest(ids, call.index, ""))
        draft.add(" ")
        if text := getattr(call, attribute):
            _Pretty(draft, call, ids, verb).write(read_value(text))
        else:
            draft.add(f"the body could not be read: {call.status.replace('_', ' ')}")
    return draft


# Path, depth, True where the value or one around it was coerced, value.
_Node: TypeAlias = tuple[str, int, bool, Any]


class _Pretty:
    """Writes arguments as indented JSON into a draft, every leaf marked with its node."""

    def __init__(self, draft: _Draft, call: ToolCall, ids: _Ids, verb: str) -> None:
        self._draft = draft
        self._call = call
        self._ids = ids
        self._verb = verb
        self._changed = {s.path for s in call.steps if s.stage == "coerce"}

    def write(self, value: Any) -> None:
        # A stack of our own, because arguments may nest deeper than Python recurses: a string is
        # text to write, anything else a node to open.
        stack: list[str | _Node] = [("", 0, "" in self._changed, value)]
        while stack:
            item = stack.pop()
            if isinstance(item, str):
                self._draft.add(item)
            elif isinstance(item[3], (dict, list)) and item[3]:
                stack.extend(reversed(self._opened(item)))
            else:
                self._leaf(item)

    def _opened(self, node: _Node) -> list[str | _Node]:
        # A container with its brackets, as strings and the nodes inside.
        path, depth, coerced, value = node
        pad = "\n" + "  " * min(depth + 1, 40)
        is_object = isinstance(value, dict)
        first, last = "{}" if is_object else "[]"
        items: list[str | _Node] = [first]
        for inside, key, child in children(path, value):
            head = f"{json_of(key)}: " if is_object else ""
            items.append(f"{',' if len(items) > 1 else ''}{pad}{head}")
            items.append((inside, depth + 1, coerced or inside in self._changed, child))
        return [*items, f"{pad[: 1 + 2 * min(depth, 40)]}{last}"]

    def _leaf(self, node: _Node) -> None:
        path, _, coerced, value = node
        text = json_of(value)
        span = self._draft.add(text)
        # A call without arguments has nothing to point at.
        if path or value != {}:
            title = f"argument {_text(path, 60)} {self._verb} {_text(text, 60)}"
            kind = "coerced" if coerced else "value"
            self._draft.mark(span, kind, title, _nearest(self._ids, self._call.index, path))


def _stage(name: str, text: str, placed: list[_Placed], notes: list[str]) -> dict[str, Any]:
    # A text with its marks as the front end takes it; a note says the parts left out.
    placed = sorted(placed, key=lambda m: (m.span.start, -m.span.end, _KIND[m.kind]))
    if len(placed) > MAX_SPANS:
        notes.append(f"The {name} text is highlighted up to its first {MAX_SPANS:,} marks.")
        placed = placed[:MAX_SPANS]
    runs = runs_of([m.span for m in placed], len(text))
    if len(text) > MAX_TEXT:
        first, head, tail, last = without_middle(runs, len(text), MAX_TEXT)
        notes.append(
            f"The {name} text shows {MAX_TEXT:,} of {len(text):,} characters: its head and its "
            "tail."
        )
        gap = f"\n… {tail - head:,} characters not shown …\n"
        # The tail moves by what was taken out of the middle, so that offsets fit the text that is
        # sent.
        by = head + len(gap) - tail
        moved = [Run(r.start + by, r.end + by, r.marks) for r in last]
        runs = [*first, Run(head, head + len(gap), ()), *moved]
        text = text[:head] + gap + text[tail:]
    display = Shown.of(text)
    flat: list[int] = []
    for run in runs:
        flat += (display.at(run.start), display.at(run.end), len(run.marks), *run.marks)
    return {
        "id": name,
        "text": display.text,
        "hidden": list(display.hidden),
        "runs": flat,
        "marks": [[_KIND[m.kind], m.title, *m.targets] for m in placed],
    }
