"""What the front end gets for one ParseResult: text, integer spans and plain strings, JSON-ready.

Spans of text are UTF-16 offsets into the *shown* text of their stage, made here once from code points. `start` and
`end` of a node or change stay code points of `raw`: they are what the view says, not where it draws.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..render.changes import changes_of, is_lossless, problems_of, sentence_of
from ..render.marks import LAYERS, Run, clip, marks_of, runs_of
from ..render.show import Shown, shorten, visible
from ..render.tree import json_of, read_value, rows_of
from ..types import Edit, ParseResult, Span, ToolCall
from ..values import escape_token

MAX_TEXT = 256 * 1024
MAX_SPANS = 2_000
MAX_VALUE = 1_000
KINDS = (*LAYERS, "coerced", "dropped", "added", "value")
_KIND = {kind: i for i, kind in enumerate(KINDS)}


@dataclass(frozen=True, slots=True)
class _Placed:
    """A mark on the text of one stage: `span` in that text's code points, `targets` the nodes and changes it means."""

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
        start = self.length
        self.parts.append(text)
        self.length += len(text)
        return Span(start, self.length)

    def mark(self, span: Span, kind: str, title: str, targets: tuple[int, ...]) -> None:
        self.marks.append(_Placed(span, kind, title, targets))

    @property
    def text(self) -> str:
        return "".join(self.parts)


def payload_of(result: ParseResult) -> dict[str, Any]:
    """The JSON-ready payload of the parse view.

    `nodes` are the calls and their arguments in document order, `changes` the repairs, steps and problems; the ids of
    changes follow those of nodes. A stage's `runs` are flat integers `start, end, n, mark * n`, its `marks` are
    `[kind, title, id...]`: the nodes and changes each mark stands for.
    """
    notes: list[str] = []
    nodes, ids = _nodes(result, notes)
    changes, edit_ids, problem_ids = _changes(result, ids, len(nodes), notes)
    raw_marks = _raw_marks(result, ids, edit_ids, problem_ids)
    repaired = _repaired(result, raw_marks, edit_ids)
    decoded = _json_stage(result, ids, "source_json")
    coerced = _json_stage(result, ids, "arguments_json")
    stages = [
        _stage("raw", result.raw, raw_marks, notes),
        _stage("repaired", repaired.text, repaired.marks, notes),
        _stage("decoded", decoded.text, decoded.marks, notes),
        _stage("coerced", coerced.text, coerced.marks, notes),
    ]
    return {
        "version": 1,
        "protocol": _text(result.protocol, 80),
        "policy": result.options.coerce,
        "ok": result.ok,
        "characters": len(result.raw),
        "calls": len(result.calls),
        "executable": sum(c.valid for c in result.calls),
        "why": visible(shorten(result.why(), 2_000)),
        "notes": list(dict.fromkeys(notes)),
        "kinds": list(KINDS),
        "nodes": nodes,
        "changes": changes,
        "stages": stages,
    }


def payload_json(payload: dict[str, Any]) -> str:
    """The payload as JSON that may stand inside a script element: no '<' can end it, no line separator break it."""
    text = json.dumps(payload, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _text(value: str, limit: int = MAX_VALUE) -> str:
    return visible(shorten(value, limit))


_Ids = dict[tuple[int, str | None], int]


def _nodes(result: ParseResult, notes: list[str]) -> tuple[list[dict[str, Any]], _Ids]:
    nodes: list[dict[str, Any]] = []
    ids: _Ids = {}
    for call in result.calls:
        if len(nodes) >= MAX_SPANS:
            notes.append(f"The tree shows the first {MAX_SPANS:,} calls and arguments.")
            break
        ids[call.index, None] = len(nodes)
        span = call.segment.span
        nodes.append(
            _node(call.index, 0, call.name or "no name", "", "call", call.status.replace("_", " "), span)
            | {"status": call.status, "valid": call.valid}
        )
        for row in rows_of(call):
            if not row.path:
                continue
            if len(nodes) >= MAX_SPANS:
                notes.append(f"The tree shows the first {MAX_SPANS:,} calls and arguments.")
                break
            ids[call.index, row.path] = len(nodes)
            where = row.origin.span if row.origin else None
            node = _node(call.index, row.depth, row.key, row.path, row.kind, row.text, where)
            node["leaf"] = row.leaf
            node["exact"] = row.origin is None or row.origin.exact
            node["changed"] = any(r.startswith("coerce.") for r in row.rules)
            nodes.append(node)
    return nodes, ids


def _node(call: int, depth: int, key: str, path: str, kind: str, text: str, span: Span | None) -> dict[str, Any]:
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
        "start": span.start if span else -1,
        "end": span.end if span else -1,
    }


def _nearest(ids: _Ids, call: int, path: str) -> tuple[int, ...]:
    """The node at a path, or at the nearest path around it that is in the tree."""
    while path:
        if (call, path) in ids:
            return (ids[call, path],)
        path = path.rpartition("/")[0]
    return (ids[call, None],) if (call, None) in ids else ()


_EditIds = dict[tuple[int, Span, str], int]
_ProblemIds = dict[tuple[int | None, Span], list[int]]


def _changes(
    result: ParseResult, ids: _Ids, first_id: int, notes: list[str]
) -> tuple[list[dict[str, Any]], _EditIds, _ProblemIds]:
    out: list[dict[str, Any]] = []
    edit_ids: _EditIds = {}
    problem_ids: _ProblemIds = {}
    for call in result.calls:
        for change in changes_of(call, result.raw):
            if change.kind == "repair" and change.span is not None:
                edit_ids[call.index, change.span, change.rule] = first_id + len(out)
            out.append(
                {
                    "kind": change.kind,
                    "call": call.index,
                    "rule": visible(change.rule),
                    "sentence": change.sentence,
                    "lossless": is_lossless(change.rule),
                    "before": _text(change.before),
                    "after": _text(change.after),
                    "path": _text(change.path, 300),
                    "start": change.span.start if change.span else -1,
                    "end": change.span.end if change.span else -1,
                    "nodes": [] if change.kind == "repair" else [*_nearest(ids, call.index, change.path)],
                }
            )
            if len(out) >= MAX_SPANS:
                notes.append(f"The list shows the first {MAX_SPANS:,} changes and problems.")
                return out, edit_ids, problem_ids
    for index, problem in problems_of(result):
        if len(out) >= MAX_SPANS:
            notes.append(f"The list shows the first {MAX_SPANS:,} changes and problems.")
            break
        if problem.span is not None:
            problem_ids.setdefault((index, problem.span), []).append(first_id + len(out))
        out.append(
            {
                "kind": problem.severity,
                "call": index,
                "rule": visible(problem.code),
                "sentence": sentence_of(problem.code),
                "message": _text(problem.message),
                "path": _text(problem.path, 300),
                "start": problem.span.start if problem.span else -1,
                "end": problem.span.end if problem.span else -1,
                "nodes": [*_nearest(ids, index, problem.path)] if index is not None and problem.path else [],
            }
        )
    return out, edit_ids, problem_ids


def _raw_marks(result: ParseResult, ids: _Ids, edit_ids: _EditIds, problem_ids: _ProblemIds) -> list[_Placed]:
    placed: list[_Placed] = []
    for mark in marks_of(result):
        kind: str = mark.kind
        targets: tuple[int, ...] = ()
        call = mark.call
        if call is not None and mark.kind == "argument":
            targets = tuple(dict.fromkeys(t for p in mark.paths for t in _nearest(ids, call, p)))
            if any(r.startswith("coerce.") for r in mark.rules):
                kind = "coerced"
        elif call is not None and mark.kind in ("name", "opener", "closer"):
            targets = _nearest(ids, call, "")
        elif call is not None and mark.kind == "edit":
            found = edit_ids.get((call, mark.span, mark.rules[0]))
            targets = () if found is None else (found,)
        elif mark.kind == "problem":
            targets = tuple(problem_ids.get((call, mark.span), ()))
        placed.append(_Placed(mark.span, kind, mark.title, targets))
    return placed


def _repaired(result: ParseResult, raw_marks: list[_Placed], edit_ids: _EditIds) -> _Draft:
    """The raw text with every edit carried out in place: what was dropped and what was added are both shown."""
    draft = _Draft()
    at = added = 0
    keys: list[int] = []
    sums: list[int] = [0]
    for edit, call in _distinct_edits(result):
        found = edit_ids.get((call, edit.span, edit.rule))
        targets = () if found is None else (found,)
        draft.add(result.raw[at : edit.span.start])
        if len(edit.span):
            draft.mark(draft.add(edit.span.of(result.raw)), "dropped", f"dropped by {visible(edit.rule)}", targets)
        if edit.text:
            draft.mark(draft.add(edit.text), "added", f"added by {visible(edit.rule)}", targets)
            # An insertion sorts behind a replacement that ends at the same place: a value ends before the one and
            # after the other.
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
        if mark.kind in ("edit", "call"):
            continue
        first = start(mark.span.start)
        span = Span(first, max(first, end(mark.span.end)))
        draft.mark(span, mark.kind, mark.title, mark.targets)
    return draft


def _distinct_edits(result: ParseResult) -> Iterator[tuple[Edit, int]]:
    """Every edit once with the index of its call, in text order: the calls of one body share their edits."""
    at = 0
    seen: set[Edit] = set()
    for edit, call in sorted(
        ((e, c.index) for c in result.calls for e in c.edits), key=lambda pair: (pair[0].span, pair[1])
    ):
        if edit not in seen and edit.span.start >= at:
            seen.add(edit)
            at = edit.span.end
            yield edit, call


def _json_stage(result: ParseResult, ids: _Ids, attribute: str) -> _Draft:
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
            _pretty(draft, call, read_value(text), ids, "is" if attribute == "arguments_json" else "was found as")
        else:
            draft.add(f"the body could not be read: {call.status.replace('_', ' ')}")
    return draft


def _pretty(draft: _Draft, call: ToolCall, value: Any, ids: _Ids, verb: str) -> None:
    """Indented JSON into `draft`, every leaf marked with its node; without recursion."""
    changed = {s.path for s in call.steps if s.stage == "coerce"}
    # A string is text to write; anything else is a node to open: path, depth, whether something around it changed.
    stack: list[str | tuple[str, int, bool, Any]] = [("", 0, False, value)]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            draft.add(item)
            continue
        path, depth, within, node = item
        within = within or path in changed
        if isinstance(node, (dict, list)) and node:
            opening, closing = "{}" if isinstance(node, dict) else "[]"
            pad = "\n" + "  " * min(depth + 1, 40)
            below: list[str | tuple[str, int, bool, Any]] = [opening]
            if isinstance(node, dict):
                for i, (key, child) in enumerate(node.items()):
                    below.append(f"{',' if i else ''}{pad}{json_of(key)}: ")
                    below.append((f"{path}/{escape_token(key)}", depth + 1, within, child))
            else:
                for i, child in enumerate(node):
                    below.append(f",{pad}" if i else pad)
                    below.append((f"{path}/{i}", depth + 1, within, child))
            below.append(f"{pad[: 1 + 2 * min(depth, 40)]}{closing}")
            stack.extend(reversed(below))
        else:
            text = json_of(node)
            span = draft.add(text)
            if path or node != {}:
                title = f"argument {_text(path, 60)} {verb} {_text(text, 60)}"
                draft.mark(span, "coerced" if within else "value", title, _nearest(ids, call.index, path))


def _stage(name: str, text: str, placed: list[_Placed], notes: list[str]) -> dict[str, Any]:
    placed = sorted(placed, key=lambda m: (m.span.start, -m.span.end, _KIND[m.kind]))
    if len(placed) > MAX_SPANS:
        notes.append(f"The {name} text is highlighted up to its first {MAX_SPANS:,} marks.")
        placed = placed[:MAX_SPANS]
    runs = runs_of([m.span for m in placed], len(text))
    if len(text) > MAX_TEXT:
        head, tail = MAX_TEXT * 3 // 4, len(text) - MAX_TEXT // 4
        notes.append(f"The {name} text shows {MAX_TEXT:,} of {len(text):,} characters: its head and its tail.")
        gap = f"\n… {tail - head:,} characters not shown …\n"
        # The tail moves by what was taken out of the middle, so that offsets fit the text that is sent.
        by = head + len(gap) - tail
        last = [Run(r.start + by, r.end + by, r.marks) for r in clip(runs, tail, len(text))]
        runs = [*clip(runs, 0, head), Run(head, head + len(gap), ()), *last]
        text = text[:head] + gap + text[tail:]
    shown = Shown.of(text)
    flat: list[int] = []
    for run in runs:
        flat += (shown.at(run.start), shown.at(run.end), len(run.marks), *run.marks)
    return {
        "id": name,
        "text": shown.text,
        "hidden": list(shown.hidden),
        "runs": flat,
        "marks": [[_KIND[m.kind], m.title, *m.targets] for m in placed],
    }
