"""A ParseResult as the parse view shows it: its text at each stage with marks, the tree of calls
and arguments, and everything that was changed, is wrong, or is not what was expected.

How it works. Nodes are the calls and their arguments, numbered in document order. Changes are the
repairs, steps, problems and faults, numbered after them. Each stage is a text with marks on it, and
a mark names the numbers of its source, so that hovering over either lights up the other. `_Draft`
puts a text together and remembers where each mark is in it; `_stage` cuts it into runs.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any, TypeAlias

from ..core.errors import NoSuchItem
from ..core.types import Edit, ParseResult, Problem, Span, ToolCall
from .cells import text_html
from .marks import LAYERS, Run, marks_of, runs_of, without_middle
from .rows import (
    Change,
    Fault,
    changes_of,
    children,
    json_of,
    problems_of,
    read_value,
    rows_of,
    sentence_of,
)
from .show import shorten, visible

# What a browser draws without making a reader wait.
MAX_TEXT = 256 * 1024  # characters of a stage
MAX_SPANS = 1_200  # nodes, changes, and marks of a stage
_LEAST_SPANS, _CHARACTERS_A_SPAN = 150, 54
MAX_VALUE = 1_000  # characters of a value
_MOST_TITLES = 4  # marks around one place that its tooltip names
KINDS = (*LAYERS, "coerced", "dropped", "added", "value", "wrong")
_KIND = {kind: i for i, kind in enumerate(KINDS)}
STAGES = {
    "raw": "Raw",
    "repaired": "Repaired",
    "decoded": "Read",
    "coerced": "Coerced",
    "checked": "Checked",
    "expected": "Expected",
}


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


@dataclass(frozen=True, slots=True)
class Stage:
    """The text at one stage: HTML with its marks, and how many things went wrong there."""

    id: str
    html: str
    kinds: frozenset[str]
    faults: int = 0


@dataclass(frozen=True, slots=True)
class Parts:
    """What the parse view shows. The ids of changes follow those of nodes."""

    stages: list[Stage]
    nodes: list[dict[str, Any]]
    changes: list[dict[str, Any]]
    notes: list[str]
    marks: list[tuple[str, int, int]]  # of the raw text: kind, start and end in UTF-16


def parts_of(result: ParseResult, faults: Sequence[Fault] = ()) -> Parts:
    """Return the stages, nodes and changes of a result. faults: where it is not what was expected.

    Without changes, a stage that would be the same as the one before it is left out.
    """
    notes: list[str] = []
    # Of a text with thousands of calls the first are shown, and no others need to be looked at.
    part, most = result, most_spans(result.raw)
    if len(result.calls) > most // 2:
        notes.append(f"{len(result.calls) - most // 2:,} more calls are not shown.")
        part = replace(result, calls=result.calls[: most // 2])
    nodes, ids = _nodes(part, notes, most)
    _add_faults(nodes, ids, faults)
    changes, edit_ids, problem_ids = _changes(part, ids, len(nodes), notes, most)
    marks = _raw_marks(part, ids, edit_ids, problem_ids)
    marks += _fault_marks(part, ids, faults)
    drafts = {}
    if any(call.edits for call in part.calls):
        drafts["repaired"] = _repaired(part, marks, edit_ids)
    if part.calls:
        drafts["decoded"] = _json_stage(part, ids, "source_json")
        if any(step.stage == "coerce" for call in part.calls for step in call.steps):
            drafts["coerced"] = _json_stage(part, ids, "arguments_json")
        wrong: _Wrong = {
            (call.index, problem.path): problem.message
            for call in part.calls
            for problem in call.problems
            if problem.severity == "error"
        }
        drafts["checked"] = _json_stage(part, ids, "arguments_json", wrong)
    if faults:
        wanted = {(f.call, f.path): f"{_EXPECTED}{f.expected or 'none'}" for f in faults}
        drafts["expected"] = _json_stage(part, ids, "arguments_json", wanted)
    errors = sum(p.severity == "error" for _, p in problems_of(part))
    counts = {"checked": errors, "expected": len(faults)}
    stages = [_stage("raw", result.raw, marks, notes, most)]
    for name, draft in drafts.items():
        stages.append(_stage(name, draft.text, draft.marks, notes, most, counts.get(name, 0)))
    # Several stages may leave out the same.
    notes = list(dict.fromkeys(notes))
    return Parts(stages, nodes, changes, notes, _in_utf16(result.raw, marks))


def _in_utf16(raw: str, marks: list[_Placed]) -> list[tuple[str, int, int]]:
    # A browser counts in UTF-16. A piece of text has the look of its innermost mark alone.
    marks = [mark for mark in marks if mark.kind != "call" and len(mark.span)][:MAX_SPANS]
    marks.sort(key=lambda m: (m.span.start, -m.span.end, _KIND[m.kind]))
    wide = [] if raw.isascii() else [i for i, char in enumerate(raw) if char > "\uffff"]
    found: list[tuple[str, int, int]] = []
    for run in runs_of([mark.span for mark in marks], len(raw)):
        if run.marks and run.end > run.start:
            start, end = (at + bisect_left(wide, at) for at in (run.start, run.end))
            found.append((marks[run.marks[-1]].kind, start, end))
    return found


def most_spans(raw: str) -> int:
    """Return how many nodes, changes, and marks of a stage a text may have: a page is at most about
    twenty times as long as its text, or as a short one.
    """
    return min(max(_LEAST_SPANS, len(raw) // _CHARACTERS_A_SPAN), MAX_SPANS)


def _add_faults(nodes: list[dict[str, Any]], ids: _Ids, faults: Sequence[Fault]) -> None:
    # What was expected stands beside what was found, or in a row of its own.
    for fault in faults:
        number = ids.get((fault.call, fault.path or None)) if fault.call is not None else None
        words = _text(fault.expected, 300) or "none"
        if number is not None and fault.code != "missing_argument":
            nodes[number]["expected"] = words
            continue
        # One that is missing comes last among those of its call.
        call = len(nodes) if fault.call is None else fault.call
        key = fault.path.removeprefix("/") or "no call"
        row = _node(call, 1 if fault.path else 0, key, "", "missing", "", None)
        nodes.append(row | {"expected": words, "leaf": True})


def _fault_marks(result: ParseResult, ids: _Ids, faults: Sequence[Fault]) -> list[_Placed]:
    marks = []
    for fault in faults:
        if fault.call is None or fault.call >= len(result.calls):
            continue
        call = result.calls[fault.call]
        try:
            span = call.origin(fault.path).span if fault.path else call.name_span
        except NoSuchItem:
            continue
        if span is not None:
            title = f"not what was expected: {_text(fault.expected or 'none', 200)}"
            marks.append(_Placed(span, "wrong", title, _nearest(ids, fault.call, fault.path)))
    return marks


def _text(value: str, limit: int = MAX_VALUE) -> str:
    return visible(shorten(value, limit))


_Ids = dict[tuple[int, str | None], int]


def _nodes(result: ParseResult, notes: list[str], most: int) -> tuple[list[dict[str, Any]], _Ids]:
    # The nodes of the tree, and the number of each by call and path, which is None for the call.
    nodes: list[dict[str, Any]] = []
    ids: _Ids = {}
    for call in result.calls:
        for path, node in _nodes_of(call):
            if len(nodes) >= most:
                notes.append(f"The tree shows the first {most:,} calls and arguments.")
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
    # What a refused call may mean: what all its readings agree on, and what they do not.
    readings = [reading for reading in call.readings if reading.name == call.name]
    for key in dict.fromkeys(key for reading in readings for key in reading.arguments):
        texts = dict.fromkeys(
            json_of(reading.arguments[key]) for reading in readings if key in reading.arguments
        )
        node = _node(call.index, 1, key, "", "reading", " or ".join(texts), None)
        yield f"\0{key}", node | {"leaf": True, "doubt": len(texts) > 1}


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
    result: ParseResult, ids: _Ids, first_id: int, notes: list[str], most: int
) -> tuple[list[dict[str, Any]], _EditIds, _ProblemIds]:
    # The changes and problems, and the numbers of edits and of problems that have a place.
    out: list[dict[str, Any]] = []
    edit_ids: _EditIds = {}
    problem_ids: _ProblemIds = {}
    entries: Iterator[tuple[Change | Problem, dict[str, Any]]] = itertools.chain(
        (
            (change, change_entry(change, ids))
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
        if len(out) >= most:
            notes.append(f"The list shows the first {most:,} changes and problems.")
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


def change_entry(change: Change, ids: _Ids) -> dict[str, Any]:
    """Return a change as a list shows it. ids: the nodes by call and path."""
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


_EXPECTED = "expected "
_Wrong: TypeAlias = dict[tuple[int | None, str], str]
"""Call and path -> what is wrong there."""


def _json_stage(
    result: ParseResult, ids: _Ids, attribute: str, wrong: _Wrong | None = None
) -> _Draft:
    """Return the calls as indented JSON: their `source_json` or their `arguments_json`.

    wrong: what is said behind a value.
    """
    verb = "is" if attribute == "arguments_json" else "was found as"
    wrong = wrong or {}
    look = "wrong" if any(said.startswith(_EXPECTED) for said in wrong.values()) else "problem"
    draft = _Draft()
    for call in result.calls:
        if draft.length > MAX_TEXT:
            break
        if draft.parts:
            draft.add("\n\n")
        name = f"tool name {_text(call.name, 60)}"
        draft.mark(draft.add(call.name or "no name"), "name", name, _nearest(ids, call.index, ""))
        if (call.index, "") in wrong:
            draft.add(" ")
            draft.mark(draft.add(_text(wrong[call.index, ""], 200)), look, "", ())
        draft.add(" ")
        if text := getattr(call, attribute):
            _Pretty(draft, call, ids, verb, wrong, look).write(read_value(text))
        else:
            draft.add(f"the body could not be read: {call.status.replace('_', ' ')}")
    return draft


# Path, depth, True where the value or one around it was coerced, value.
_Node: TypeAlias = tuple[str, int, bool, Any]


class _Pretty:
    """Writes arguments as indented JSON into a draft, every leaf marked with its node."""

    def __init__(
        self, draft: _Draft, call: ToolCall, ids: _Ids, verb: str, wrong: _Wrong, look: str
    ) -> None:
        self._wrong, self._look = wrong, look
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
            said = self._wrong.get((self._call.index, path))
            kind = self._look if said else "coerced" if coerced else "value"
            self._draft.mark(span, kind, title, _nearest(self._ids, self._call.index, path))
            if said:
                self._draft.add("  ")
                self._draft.mark(self._draft.add(_text(said, 200)), "added", "", ())


def _stage(
    name: str, text: str, placed: list[_Placed], notes: list[str], most: int, faults: int = 0
) -> Stage:
    # A text with its marks as HTML; a note says the parts left out. A call as a whole has no look.
    placed = [mark for mark in placed if mark.kind != "call"]
    placed.sort(key=lambda m: (m.span.start, -m.span.end, _KIND[m.kind]))
    if len(placed) > most:
        notes.append(f"The {name} text is highlighted up to its first {most:,} marks.")
        placed = placed[:most]
    runs = runs_of([m.span for m in placed], len(text))
    if len(text) <= MAX_TEXT:
        html = "".join(_run_html(text, run, placed) for run in runs)
    else:
        first, head, tail, last = without_middle(runs, len(text), MAX_TEXT)
        notes.append(
            f"The {name} text shows {MAX_TEXT:,} of {len(text):,} characters: its head and its "
            "tail."
        )
        parts = ["".join(_run_html(text, run, placed) for run in some) for some in (first, last)]
        gap = f'\n<span class="badge flat">… {tail - head:,} characters not shown …</span>\n'
        html = gap.join(parts)
    return Stage(name, html, frozenset(mark.kind for mark in placed), faults)


def _run_html(text: str, run: Run, placed: Sequence[_Placed]) -> str:
    # The look of the innermost mark, the sources of all of them.
    shown = text_html(text[run.start : run.end])
    if not run.marks:
        return shown
    marks = [placed[i] for i in reversed(run.marks)]
    numbers = dict.fromkeys(itertools.chain.from_iterable(mark.targets for mark in marks))
    titles = "\n".join(filter(None, (mark.title for mark in marks[:_MOST_TITLES])))
    of = f' data-n="{" ".join(map(str, numbers))}"' if numbers else ""
    point = " k-point" if run.start == run.end else ""
    return f'<span class="k-{marks[0].kind}{point}"{of} title="{escape(titles)}">{shown}</span>'
