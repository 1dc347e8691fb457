"""Two readings of one text side by side: what each of them changed, by which rule, and whether that
loses anything.

The readings may differ in policy, in protocol, or in the version of the parser. A row is an
argument of a call that one of them changed, or that does not have the same value in both. Its
number marks the characters that it came from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ..core.errors import BadOptions, NoSuchItem
from ..core.types import ParseResult, Span, ToolCall
from ..core.values import leaves
from .cells import MAX_VALUE, text_of
from .html import pill_of
from .marks import runs_of
from .rows import Change, changes_of, json_of, place, protocol_words
from .show import shorten
from .templating import render

MAX_ROWS = 500
MAX_RAW = 64 * 1024  # characters of the text that are shown


@dataclass(frozen=True, slots=True)
class Side:
    """An argument in one reading: its value as JSON, '' for none, and the changes of it."""

    value: str
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class SideRow:
    """An argument in both readings."""

    number: int  # of the row, from 1
    call: int
    path: str  # JSON Pointer into the arguments, '' for the call itself
    span: Span | None  # its characters in the text, None if it has none of its own
    sides: tuple[Side, Side]

    @property
    def differs(self) -> bool:
        """True if the readings end with different values."""
        return self.sides[0].value != self.sides[1].value

    @property
    def name(self) -> str:
        """The argument in words."""
        return f"call {self.call}{' ' + self.path if self.path else ''}"


def side_rows(a: ParseResult, b: ParseResult) -> list[SideRow]:
    """Return the arguments that a reading changed, or that differ between the two, in text order.

    Calls are paired in their order. Raises BadOptions for readings of different texts.

    >>> import toolparse_lab as tp
    >>> text = '<tool_call>{"name": "f", "arguments": {"a": "1"}}</tool_call>'
    >>> tools = [{"name": "f", "parameters": {"properties": {"a": {"type": "integer"}}}}]
    >>> as_written = tp.parse(text, "hermes", tools, {"coerce": "none"})
    >>> (row,) = side_rows(as_written, tp.parse(text, "hermes", tools))
    >>> row.path, [side.value for side in row.sides]
    ('/a', ['"1"', '1'])
    """
    if a.raw != b.raw:
        raise BadOptions(
            "two readings are compared of one text",
            got=f"texts of {len(a.raw):,} and {len(b.raw):,} characters",
            expected="two results with the same raw text",
        )
    found: list[tuple[int, int, str, Span | None, tuple[Side, Side]]] = []
    for index in range(max(len(a.calls), len(b.calls))):
        calls = [result.calls[index] if index < len(result.calls) else None for result in (a, b)]
        values = [_values(call) for call in calls]
        changes = [_changes_by_place(call, a.raw) for call in calls]
        # Each once, in the order of the first reading.
        keys = dict.fromkeys([*changes[0], *changes[1]])
        keys |= dict.fromkeys(
            (path, None)
            for path in dict.fromkeys([*values[0], *values[1]])
            if values[0].get(path) != values[1].get(path) and (path, None) not in keys
        )
        for key in keys:
            path, at = key
            # A repair is of characters, not of a value.
            sides = tuple(
                Side("" if at is not None else own.get(path, ""), made.get(key, ()))
                for own, made in zip(values, changes, strict=True)
            )
            span = at or _span(path, sides, calls)
            start = len(a.raw) if span is None else span.start
            found.append((index, start, path, span, (sides[0], sides[1])))
    found.sort(key=lambda row: row[:2])
    return [
        SideRow(number, call, path, span, sides)
        for number, (call, _, path, span, sides) in enumerate(found, 1)
    ]


def _values(call: ToolCall | None) -> dict[str, str]:
    """Return path -> value as JSON, of the call itself and of everything in it."""
    if call is None:
        return {"": ""}
    values = {"": call.name}
    for path, value in leaves(call.arguments):
        if path:
            values[path] = json_of(value)
    return values


def _changes_by_place(
    call: ToolCall | None, raw: str
) -> dict[tuple[str, Span | None], tuple[Change, ...]]:
    """Return the changes of a call by what they changed: a path, or characters for a repair."""
    found: dict[tuple[str, Span | None], tuple[Change, ...]] = {}
    for change in changes_of(call, raw) if call is not None else ():
        key = (change.path, change.span if change.kind == "repair" else None)
        found[key] = (*found.get(key, ()), change)
    return found


def _span(path: str, sides: Iterable[Side], calls: Sequence[ToolCall | None]) -> Span | None:
    """Return the characters of an argument: those of its change, else those of its value."""
    for side in sides:
        for change in side.changes:
            if change.span is not None:
                return change.span
    for call in calls:
        if call is None:
            continue
        try:
            return call.origin(path).span if path else call.segment.span
        except NoSuchItem:
            continue
    return None


def pieces_of(raw: str, rows: Sequence[SideRow]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the text cut at the borders of the rows' characters: (piece, numbers of its rows)."""
    marked = sorted(
        ((row.span, row.number) for row in rows if row.span is not None),
        key=lambda mark: (mark[0].start, -mark[0].end),
    )
    spans = [span for span, _ in marked]
    for run in runs_of(spans, len(raw)):
        if run.start < MAX_RAW:
            piece = raw[run.start : min(run.end, MAX_RAW)]
            yield piece, tuple(marked[i][1] for i in run.marks)


def render_side_by_side(a: ParseResult, b: ParseResult, names: tuple[str, str] = ("a", "b")) -> str:
    """Return two readings of one text as HTML: the text with the numbers of the rows, and a row for
    each argument that differs or was changed. Repairs that did one thing are one row.

    Raises BadOptions for readings of different texts.
    """
    rows = side_rows(a, b)
    notes = []
    if len(rows) > MAX_ROWS:
        notes.append(f"{len(rows) - MAX_ROWS:,} more rows")
    if len(a.raw) > MAX_RAW:
        notes.append(f"The first {MAX_RAW:,} characters of {len(a.raw):,}.")
    if not rows:
        notes.append("The two readings are the same, and neither changed anything.")
    shown = rows[:MAX_ROWS]
    differing = sum(row.differs for row in rows)
    said = f"{differing:,} of {len(rows):,} values differ." if rows else ""
    if rows and not differing:
        said = "Both readings end with the same values."
    alike: dict[object, list[SideRow]] = {}
    for row in shown:
        what = [[(c.rule, c.before, c.after) for c in side.changes] for side in row.sides]
        key = row.number if row.differs or row.path else str((row.call, what))
        alike.setdefault(key, []).append(row)
    return render(
        "views/templates/side_by_side.html",
        names=[shorten(name, 80) for name in names],
        pills=[pill_of(result.verdict) for result in (a, b)],
        protocols=[protocol_words(result) for result in (a, b)],
        raw=Markup("").join(_piece(*piece) for piece in pieces_of(a.raw, shown)),
        rows=[
            {
                "number": same[0].number,
                "numbers": " ".join(str(row.number) for row in same),
                "times": len(same),
                "differs": same[0].differs,
                "argument": shorten(same[0].name, 120),
                "characters": place(same[0].span),
                "sides": [_side_cell(side) for side in same[0].sides],
            }
            for same in alike.values()
        ],
        said=said,
        notes=notes,
    )


def _piece(text: str, numbers: tuple[int, ...]) -> Markup:
    shown = text_of(text)
    if not numbers:
        return shown
    of = " ".join(map(str, numbers))
    title = "row " + ", ".join(map(str, numbers))
    mark = Markup('<span class="k-coerced" data-n="{}" title="{}">{}</span>')
    return mark.format(of, title, shown)


def _side_cell(side: Side) -> Markup:
    """Return what a reading made of an argument, a line for each change, else its value."""
    if not side.changes:
        return Markup("<code>{}</code>").format(text_of(shorten(side.value, MAX_VALUE)))
    lines = []
    for change in side.changes:
        old, new = (text_of(shorten(text, MAX_VALUE)) for text in (change.before, change.after))
        loss = "lossless" if change.lossless else Markup("<b>lossy</b>")
        small = Markup('<small title="{}">{} · {}</small>')
        lines.append(
            Markup("<div>{}{}{} {}</div>").format(
                Markup("<del>{}</del>").format(old) if change.before else "",
                " → " if change.before and change.after else "",
                Markup("<ins>{}</ins>").format(new) if change.after else "",
                small.format(change.sentence, text_of(change.rule), loss),
            )
        )
    return Markup("").join(lines)
