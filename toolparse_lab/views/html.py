"""A ParseResult as static HTML: no JavaScript, inline styles only, every character of model text
escaped.

It reads the same in a trusted and an untrusted notebook, without a kernel, in `nbconvert` and in a
saved page. This file decides the contents of a page and what it leaves out, `cells` writes the
small pieces, and `templates` lays them out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from itertools import groupby, islice
from typing import Any, TypeAlias

from markupsafe import Markup

from ..core.rules import RULES
from ..core.types import ParseResult, Problem, ToolCall
from ..core.types.result import explain_readings, explain_sources
from ..core.values.printable import counted
from .cells import (
    MAX_TOKENS,
    badge,
    call_title,
    change_cells,
    escaped,
    key_cell,
    note,
    origin_cell,
    place_cell,
    steps_cell,
    text_html,
    text_of,
    tokens_html,
    tokens_line,
    value_cell,
    verdict_badge,
)
from .marks import Mark, Run, marks_of, runs_of, without_middle
from .rows import (
    Change,
    Row,
    RowsOfCalls,
    changes_of,
    protocol_words,
    rows_of,
    sentence_of,
    step_change,
)
from .show import shorten
from .style import BADGE, BLUE, DROPPED, INSERTION, LINE, MARKS, SEVERITIES, style_of
from .templating import macro, render

__all__ = ["MAX_TEXT", "badge", "render_diff", "render_result", "table_of", "text_of"]

MAX_ROWS = 500  # of all tables together
MAX_CHANGES = 300  # of a call, and problems
MAX_CALLS = 200
# A page is at most about twenty times as long as a text of some length. What its highlighted text
# leaves of that is for the tables, at so many characters a row; a call's frame counts as two.
_SIZE_A_CHARACTER = 18
_LEAST_SIZE = 120_000
_SIZE_A_ROW = 650
_FRAME = 2
ChangeCells: TypeAlias = tuple[Markup, Markup, Markup]
"""The cells of a change: what it made of what, its rule, its place."""
ProblemCells: TypeAlias = tuple[Markup, Markup, str, str, Markup]
"""The cells of a problem: severity, message, code, the code's sentence, place."""
ArgumentCells: TypeAlias = tuple[Markup, Markup, Markup, Markup, Markup]
"""The cells of an argument: its path (a tooltip), key, value, origin and coercions."""
MAX_TEXT = 256 * 1024
MAX_RUNS = 2_000
# Of the highlighted text: characters of HTML, however short the text, and a character of it.
_LEAST_MARKED = 60_000
_MARKED_A_CHARACTER = 15
_LINE = "\n"  # a quoted line break cannot be in an f-string before Python 3.12
MAX_TITLES = 12  # of the marks around one run


def render_result(result: ParseResult) -> str:
    """Return the whole result as HTML: header, highlighted raw text, and for each call its
    arguments, repairs and problems.

    A part that would make the page too heavy drops out with a note that says so: text beyond 256
    K characters, tables that make the page more than twenty times as long as the text (120,000
    characters for a short one) or have more than 500 rows, changes beyond 300 a call.
    """
    # Made once for both the marks of the text and the tables of arguments.
    rows = {call.index: list(rows_of(call)) for call in result.calls}
    raw, legend, raw_notes = _raw_box(result, rows)

    reasons = [line for line in result.why().splitlines() if line.strip()]
    size = max(_LEAST_SIZE, _SIZE_A_CHARACTER * len(result.raw)) - len(raw)
    most = min(max(size // _SIZE_A_ROW, 1), MAX_ROWS)
    blocks = _call_blocks(result, rows, most)

    return render(
        "views/templates/result.html",
        verdict=verdict_badge(result.verdict),
        protocol=badge(protocol_words(result), BLUE, title="protocol"),
        facts=" · ".join(_facts(result)),
        blame=text_of(shorten(result.blame, 1_000)),
        raw=raw,
        legend=legend,
        raw_notes=[note(sentence) for sentence in raw_notes],
        tokens=tokens_html(result) if result.tokens else "",
        tokens_line=text_of(tokens_line(result)),
        token_notes=_left_out(len(result.tokens or ()) - MAX_TOKENS, "tokens"),
        reasons=[text_of(shorten(line, 1_000)) for line in reasons[:most]],
        problems=[_problem_cells(p) for p in result.problems[:MAX_CHANGES]],
        problem_notes=_left_out(len(result.problems) - MAX_CHANGES, "problems"),
        calls=blocks,
        call_notes=_left_out(len(result.calls) - len(blocks), "calls"),
    )


def render_diff(subject: ParseResult | ToolCall) -> str:
    """Return the coercions alone as HTML: each changed argument before and after, with its rule and
    whether that rule loses anything.

    subject: a result, for all its calls, or one call.
    """
    calls = subject.calls if isinstance(subject, ParseResult) else (subject,)
    notes = _left_out(len(calls) - MAX_CALLS, "calls")
    if not calls:
        notes = [note("No calls, so nothing was coerced.")]

    return render(
        "views/templates/diff.html",
        calls=[_call_diff(call) for call in calls[:MAX_CALLS]],
        call_notes=notes,
    )


def table_of(heads: Iterable[tuple[str, int]], rows: Iterable[str]) -> Markup:
    """Return a table whose heads are (word, width in percent) and whose rows are HTML of whole
    rows, escaped already.
    """
    body = Markup("".join(rows))  # noqa: S704 - HTML by contract
    return macro("views/templates/parts.html", "table", heads, body)


def _facts(result: ParseResult) -> list[str]:
    # The figures of the header; repairs and coercions only where there are any.
    calls = result.calls
    facts = ["no calls"]
    if calls:
        executable = sum(call.valid for call in calls)
        facts = [counted(len(calls), "call"), f"{executable} executable"]

    repairs = sum(len(call.edits) for call in calls)
    if repairs:
        facts.append(counted(repairs, "repair"))

    # The other steps say how a value was read.
    steps = [step for call in calls for step in call.steps]
    coercions = sum(step.stage == "coerce" for step in steps)
    if coercions:
        facts.append(counted(coercions, "coercion"))

    facts.append(counted(len(result.raw), "character"))
    facts.append(f"policy {result.options.coerce}")
    return facts


def _left_out(n: int, noun: str) -> list[Markup]:
    return [note(f"{n:,} more {noun} are not shown.")] if n > 0 else []


def _problem_cells(problem: Problem) -> ProblemCells:
    sign, rgb, _ = SEVERITIES[problem.severity]
    return (
        badge(f"{sign} {problem.severity}", rgb),
        text_of(shorten(problem.message, 2_000)),
        problem.code,
        sentence_of(problem.code),
        place_cell(problem.path, problem.span),
    )


def _argument_cells(rows: Sequence[Row], raw: str) -> list[ArgumentCells]:
    table = []
    for row in rows:
        changes = [
            # The row is in the block of its call, so the call's number is not shown.
            Change("coerce", 0, s.path, s.rule, s.before_json, s.after_json, s.span)
            for s in row.steps
            if s.stage == "coerce"
        ]
        # The arguments as a whole have a row only where they were coerced.
        if row.path or changes:
            path = escaped(shorten(row.path, 300))
            cells = (key_cell(row), value_cell(row), origin_cell(row, raw), steps_cell(changes))
            table.append((path, *cells))
    return table


def _call_block(call: ToolCall, raw: str, rows: Sequence[Row], *, cut: bool) -> dict[str, Any]:
    # One call, ready for the template. rows: those of its arguments that the page has room for.
    # cut: it has more of them.
    # The one row of empty arguments is that of the arguments as a whole.
    has_none = len(rows) == 1 and rows[0].leaf and not cut
    notes = []
    if not call.readable:
        notes.append(note("The body could not be read, so there are no arguments."))
    elif has_none:
        notes.append(note("No arguments."))
    notes += [note(f"It may be {line}") for line in explain_readings(call)]
    copied = explain_sources(call)
    if copied:
        notes.append(note(shorten(copied, 2_000)))
    if cut:
        notes.append(note(f"Arguments beyond the first {len(rows):,} are not shown."))

    changes = list(islice(changes_of(call, raw), MAX_CHANGES))
    more_changes = len(call.edits) + len(call.steps) - len(changes)
    has_table = call.readable and not has_none
    return {
        "title": call_title(call),
        "arguments": _argument_cells(rows, raw) if has_table else None,
        "argument_notes": notes,
        "problems": [_problem_cells(p) for p in call.problems[:MAX_CHANGES]],
        "problem_notes": _left_out(len(call.problems) - MAX_CHANGES, "problems"),
        "changes": _change_tables(changes, {row.path for row in rows}),
        "change_notes": _left_out(more_changes, "changes"),
    }


def _change_tables(
    changes: Sequence[Change], in_arguments: set[str]
) -> list[tuple[str, list[ChangeCells]]]:
    # (title, rows) of each table of changes that has rows. in_arguments: the paths in the table of
    # arguments, where their coercions are, and not a second time here.
    # Repairs that did one thing are one row.
    alike: dict[tuple[str, str, str], list[Change]] = {}
    for change in changes:
        if change.kind == "repair":
            alike.setdefault((change.rule, change.before, change.after), []).append(change)
    tables: dict[str, list[ChangeCells]] = {
        "Repairs": [change_cells(same[0], len(same) - 1) for same in alike.values()],
        "Read as": [change_cells(change) for change in changes if change.kind == "read"],
        "Coerced": [
            change_cells(change)
            for change in changes
            if change.kind == "coerce" and change.path not in in_arguments
        ],
    }
    return [(title, rows) for title, rows in tables.items() if rows]


def _call_blocks(result: ParseResult, rows: RowsOfCalls, most: int) -> list[dict[str, Any]]:
    # The calls share the rows that the page has room for in their order: a later one has the room
    # left, and one without any drops out.
    blocks: list[dict[str, Any]] = []
    room = most
    for call in result.calls[:MAX_CALLS]:
        if blocks and room < _FRAME:
            break
        mine = rows[call.index]
        fitting = mine[: max(room, 1)]
        block = _call_block(call, result.raw, fitting, cut=len(mine) > len(fitting))
        blocks.append(block)
        others = len(block["problems"]) + sum(len(rows) for _, rows in block["changes"])
        room -= _FRAME + len(fitting) + others
    return blocks


def _call_diff(call: ToolCall) -> tuple[Markup, list[ChangeCells], list[Markup]]:
    # (title, changes, notes) of one call of a diff.
    steps = call.steps[:MAX_CHANGES]
    notes = _left_out(len(call.steps) - len(steps), "changes")
    if not steps:
        notes = [note("Nothing was coerced: the arguments are as found.")]

    changes = [change_cells(step_change(call, step)) for step in steps]
    return call_title(call), changes, notes


# How the raw text is highlighted. `marks_of` gives the marks, `runs_of` cuts the text at their
# borders, and runs with one outermost mark (mostly a call) become a span, in which each run with
# further marks is one with the look of its innermost mark and the titles of those around it. A text
# of more than `MAX_TEXT` characters loses its middle. Beyond `MAX_RUNS` runs the rest of the text
# appears without highlights. Both leave a note. So the HTML is linear in the part shown, and so is
# the time that a browser takes for it.
#
# The spans are joined as strings, not rendered by a template: a page has up to 2,000 of them, and a
# template takes twice as long for each.


def _raw_box(
    result: ParseResult, rows: RowsOfCalls
) -> tuple[Markup, list[tuple[str, str]], list[str]]:
    # The highlighted text, (style, word) of each kind of mark in it, and notes.
    raw = result.raw
    if not raw:
        return Markup(), [], ["The text is empty."]
    marks = marks_of(result, rows)
    runs = runs_of([m.span for m in marks], len(raw))
    spans = _Spans(raw, marks)
    notes: list[str] = []
    if len(raw) <= MAX_TEXT:
        body = spans.html_of(runs, notes)
    else:
        first, head, tail, last = without_middle(runs, len(raw), MAX_TEXT)
        notes.append(f"Characters {head:,} to {tail:,} of {len(raw):,} are not shown.")
        gap = (
            f'<span style="{BADGE};border:1px solid {LINE}">'
            f"… {tail - head:,} characters not shown …</span>"
        )
        body = f"{spans.html_of(first, notes)}\n{gap}\n{spans.html_of(last, notes)}"

    # Several kinds may have one look, so looks are compared, not kinds.
    looks = {style_of(m) for m in marks}
    legend = [(look.css, look.word) for look in MARKS.values() if look.word]
    # `_Spans` escapes every stretch of the text.
    return Markup(body), [entry for entry in legend if entry[0] in looks], notes  # noqa: S704


class _Spans:
    """Turns runs into spans, up to `MAX_RUNS` of them in all. The look of a mark is made once,
    however many runs it is cut into.
    """

    # The runs to come name their marks by their index in `marks`.
    def __init__(self, raw: str, marks: Sequence[Mark]) -> None:
        self._raw = raw
        self._room = MAX_RUNS
        self._size_left = max(_LEAST_MARKED, _MARKED_A_CHARACTER * len(raw))
        self._title = cache(lambda index: escape(marks[index].title))
        self._look = cache(lambda index: _look_of(marks[index]))

    def html_of(self, runs: Sequence[Run], notes: list[str]) -> str:
        """Return the HTML of these neighbouring runs. `notes` takes one where not all of them are
        highlighted, because there is no more room.
        """
        count = 0
        spans = []
        fitting = runs[: self._room]
        for outermost, inside in groupby(fitting, lambda run: run.marks[0] if run.marks else None):
            if self._size_left <= 0:
                break
            together = list(inside)
            count += len(together)
            spans.append(self._within(outermost, together))
            self._size_left -= len(spans[-1])

        self._room -= count
        rest = runs[count:]
        if rest:
            start, end = rest[0].start, rest[-1].end
            spans.append(text_html(self._raw[start:end]))
            notes.append(
                f"From character {start:,} on nothing is highlighted: there are too many marks."
            )
        return "".join(spans)

    def _within(self, outermost: int | None, runs: Sequence[Run]) -> str:
        # The outermost mark of all these runs is written once, which halves the page of many small
        # calls.
        inside = "".join(map(self._span, runs))
        if outermost is None:
            return inside
        classes, look = self._look(outermost)
        title = self._title(outermost)
        return f'<span class="{classes}" title="{title}" style="{look}">{inside}</span>'

    def _span(self, run: Run) -> str:
        # A run with marks inside the outermost is a span: it has the look of the innermost mark and
        # the titles of all but the outermost, from the inside out.
        text = text_html(self._raw[run.start : run.end])
        if len(run.marks) < 2:
            return text

        innermost_first = run.marks[: -MAX_TITLES - 1 : -1]
        titles = [self._title(i) for i in innermost_first if i != run.marks[0]]
        classes, look = self._look(run.marks[-1])
        # Not <mark>: browsers write it in black, and an untrusted notebook drops the
        # `color: inherit` that undoes that.
        return f'<span class="{classes}" title="{_LINE.join(titles)}" style="{look}">{text}</span>'


def _look_of(mark: Mark) -> tuple[str, str]:
    # The classes and the style of a mark.
    rules = [RULES[rule].css for rule in mark.rules if rule in RULES]
    style = style_of(mark)
    # A place between two characters has to be given a width to be seen at all.
    if not len(mark.span):
        style = INSERTION if mark.kind == "edit" else f"{style};padding:0 2px"
    elif mark.kind == "edit" and mark.label.endswith(" is dropped"):
        style += DROPPED
    return " ".join([f"toolparse-{mark.kind}", *rules]), style
