"""A ParseResult as static HTML: no JavaScript, inline styles only, every character of model text
escaped.

It reads the same in a trusted and an untrusted notebook, without a kernel, in `nbconvert` and in a
saved page. This file decides the contents of a page and what it leaves out, `cells` writes the
small pieces, and `templates` lays them out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

from markupsafe import Markup

from ..core.types import ParseResult, Problem, Step, ToolCall
from ..core.types.result import explain_readings, explain_sources
from ..core.values.printable import counted
from .cells import (
    badge,
    call_title,
    change_cells,
    escaped,
    key_cell,
    note,
    origin_cell,
    place_cell,
    steps_cell,
    text_of,
    value_cell,
    verdict_badge,
)
from .changes import Change, changes_of, protocol_words, sentence_of, step_change
from .highlight import MAX_TEXT, raw_box
from .show import shorten
from .style import BLUE, SEVERITY
from .templating import macro, render
from .tree import Row, RowsOfCalls, rows_of

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
ArgumentCells: TypeAlias = tuple[Markup, Markup, Markup, Markup, Markup]
"""The cells of an argument: its path (a tooltip), key, value, origin and coercions."""


def render_result(result: ParseResult) -> str:
    """Return the whole result as HTML: header, highlighted raw text, and for each call its
    arguments, repairs and problems.

    A part that would make the page too heavy drops out with a note that says so: text beyond 256
    K characters, tables that make the page more than twenty times as long as the text (120,000
    characters for a short one) or have more than 500 rows, changes beyond 300 a call.
    """
    # Made once for both the marks of the text and the tables of arguments.
    rows = {call.index: list(rows_of(call)) for call in result.calls}
    raw = raw_box(result, rows)
    raw_notes = raw.notes if raw else ["The text is empty."]

    reasons = [line for line in result.why().splitlines() if line.strip()]
    size = max(_LEAST_SIZE, _SIZE_A_CHARACTER * len(result.raw)) - len(raw.body if raw else "")
    most = min(max(size // _SIZE_A_ROW, 1), MAX_ROWS)
    blocks = _call_blocks(result, rows, most)

    return render(
        "views/templates/result.html",
        verdict=verdict_badge(result.verdict),
        protocol=badge(protocol_words(result), BLUE, title="protocol"),
        facts=" · ".join(_facts(result)),
        blame=text_of(shorten(result.blame, 1_000)),
        raw=raw,
        raw_notes=[note(sentence) for sentence in raw_notes],
        reasons=[text_of(shorten(line, 1_000)) for line in reasons[:most]],
        problems=[_ProblemCells.of(p) for p in result.problems[:MAX_CHANGES]],
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
    """Return the figures of the header, in words.

    Repairs and coercions only where there are any.
    """
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
    """Return the note that `n` more of something are not shown, as a list of one.

    noun: of more than one. The list is empty if nothing drops out, that is for a number of zero
    or less.
    """
    if n <= 0:
        return []
    return [note(f"{n:,} more {noun} are not shown.")]


@dataclass(frozen=True, slots=True)
class _ProblemCells:
    """The cells of a problem, and the text in them."""

    severity: Markup
    message: Markup
    code: str
    sentence: str
    place: Markup

    @classmethod
    def of(cls, problem: Problem) -> _ProblemCells:
        """Return the cells of a problem, its message cut to 2,000 characters."""
        sign, rgb = SEVERITY[problem.severity]
        return cls(
            severity=badge(f"{sign} {problem.severity}", rgb),
            message=text_of(shorten(problem.message, 2_000)),
            code=problem.code,
            sentence=sentence_of(problem.code),
            place=place_cell(problem.path, problem.span),
        )


def _argument_cells(rows: Sequence[Row], raw: str) -> list[ArgumentCells]:
    """Return the cells of a call's rows.

    The arguments as a whole have some only where they were coerced.

    raw: the whole text, for the characters that a value came from.
    """
    table = []
    for row in rows:
        changes = [_row_change(step) for step in row.steps if step.stage == "coerce"]
        if not row.path and not changes:
            continue

        cells = (
            escaped(shorten(row.path, 300)),
            key_cell(row),
            value_cell(row),
            origin_cell(row, raw),
            steps_cell(changes),
        )
        table.append(cells)
    return table


def _row_change(step: Step) -> Change:
    """Return the change that a coercion made, for the row of the value that it changed."""
    # A row stands in the block of its call, so that the call's number is not shown.
    return Change("coerce", 0, step.path, step.rule, step.before_json, step.after_json, step.span)


@dataclass(frozen=True, slots=True)
class _CallBlock:
    """One call of a page, ready for the template.

    `arguments` is None if there is no table of them. `changes` are (title, rows) of each table of
    changes. The notes list the missing parts and those left out.
    """

    title: Markup
    arguments: Sequence[ArgumentCells] | None
    argument_notes: Sequence[Markup]
    problems: Sequence[_ProblemCells]
    problem_notes: Sequence[Markup]
    changes: Sequence[tuple[str, Sequence[ChangeCells]]]
    change_notes: Sequence[Markup]

    @property
    def other_rows(self) -> int:
        """The number of rows in its tables of problems and changes."""
        return len(self.problems) + sum(len(rows) for _, rows in self.changes)

    @classmethod
    def of(cls, call: ToolCall, raw: str, rows: Sequence[Row], *, cut: bool) -> _CallBlock:
        """Return the block of a call.

        raw: the whole text. rows: those of its arguments that the page has room for. cut: it has
        more of them.
        """
        # The one row of empty arguments is that of the arguments as a whole.
        has_none = len(rows) == 1 and rows[0].leaf and not cut
        arguments = None
        if call.readable and not has_none:
            arguments = _argument_cells(rows, raw)

        changes = list(islice(changes_of(call, raw), MAX_CHANGES))
        more_changes = len(call.edits) + len(call.steps) - len(changes)

        return cls(
            title=call_title(call),
            arguments=arguments,
            argument_notes=_argument_notes(
                call, has_none=has_none, limit=len(rows) if cut else None
            ),
            problems=[_ProblemCells.of(p) for p in call.problems[:MAX_CHANGES]],
            problem_notes=_left_out(len(call.problems) - MAX_CHANGES, "problems"),
            changes=_change_tables(changes, {row.path for row in rows}),
            change_notes=_left_out(more_changes, "changes"),
        )


def _argument_notes(call: ToolCall, *, has_none: bool, limit: int | None) -> list[Markup]:
    """Return the notes on arguments that are not there, or that the page has no room for.

    has_none: the call was read and has no arguments. limit: how many stand here, None for all.
    """
    notes = []
    if not call.readable:
        notes.append(note("The body could not be read, so there are no arguments."))
    elif has_none:
        notes.append(note("No arguments."))

    notes += [note(f"It may be {line}") for line in explain_readings(call)]
    copied = explain_sources(call)
    if copied:
        notes.append(note(shorten(copied, 2_000)))
    if limit is not None:
        text = f"Arguments beyond the first {limit:,} are not shown."
        notes.append(note(text))
    return notes


def _change_tables(
    changes: Sequence[Change], in_arguments: set[str]
) -> list[tuple[str, list[ChangeCells]]]:
    """Return (title, rows) of each table of changes that has rows.

    in_arguments: the paths in the table of arguments. A coercion of one of these appears there, and
    not a second time here.
    """
    tables: dict[str, list[ChangeCells]] = {
        "Repairs": [change_cells(first, more) for first, more in _alike(changes)],
        "Read as": [change_cells(change) for change in changes if change.kind == "read"],
        "Coerced": [
            change_cells(change)
            for change in changes
            if change.kind == "coerce" and change.path not in in_arguments
        ],
    }
    return [(title, rows) for title, rows in tables.items() if rows]


def _alike(changes: Iterable[Change]) -> list[tuple[Change, int]]:
    """Return the first of the repairs that did one thing, and how many more did it."""
    groups: dict[tuple[str, str, str], list[Change]] = {}
    for change in changes:
        if change.kind == "repair":
            groups.setdefault((change.rule, change.before, change.after), []).append(change)
    return [(alike[0], len(alike) - 1) for alike in groups.values()]


def _call_blocks(result: ParseResult, rows: RowsOfCalls, most: int) -> list[_CallBlock]:
    """Return the blocks of the calls that a page shows.

    most: the rows that the page has room for. The calls share them in their order: a later one has
    the room left, and one without any drops out.
    """
    blocks: list[_CallBlock] = []
    room = most
    for call in result.calls[:MAX_CALLS]:
        if blocks and room < _FRAME:
            break
        mine = rows[call.index]
        fitting = mine[: max(room, 1)]
        block = _CallBlock.of(call, result.raw, fitting, cut=len(mine) > len(fitting))
        blocks.append(block)
        room -= _FRAME + len(fitting) + block.other_rows
    return blocks


def _call_diff(call: ToolCall) -> tuple[Markup, list[ChangeCells], list[Markup]]:
    """Return (title, changes, notes) of one call of a diff."""
    steps = call.steps[:MAX_CHANGES]
    notes = _left_out(len(call.steps) - len(steps), "changes")
    if not steps:
        notes = [note("Nothing was coerced: the arguments are as found.")]

    changes = [change_cells(step_change(call, step)) for step in steps]
    return call_title(call), changes, notes
