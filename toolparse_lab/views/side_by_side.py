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
from .cells import LOSSLESS, LOSSY, MAX_VALUE, badge, note, place_cell, text_html, text_of
from .marks import runs_of
from .rows import Change, changes_of, json_of, place, protocol_words
from .show import shorten
from .style import AFTER, BEFORE, BLUE, MARKS, MONO, VALUE
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
    each argument that differs or was changed.

    Raises BadOptions for readings of different texts.
    """
    rows = side_rows(a, b)
    notes = []
    if len(rows) > MAX_ROWS:
        notes.append(note(f"{len(rows) - MAX_ROWS:,} more rows"))
    if len(a.raw) > MAX_RAW:
        notes.append(note(f"The first {MAX_RAW:,} characters of {len(a.raw):,}."))
    if not rows:
        notes.append(note("The two readings are the same, and neither changed anything."))
    shown = rows[:MAX_ROWS]
    titles = [text_of(shorten(name, 80)) for name in names]
    heads: list[tuple[str, int]] = [("row", 5), ("argument", 11)]
    for title in titles:
        heads += [(title + ": before", 9), ("after", 9), ("rule", 16), ("loss", 8)]
    return render(
        "views/templates/side_by_side.html",
        names=titles,
        heads=heads,
        protocols=[badge(protocol_words(result), BLUE, title="protocol") for result in (a, b)],
        raw=Markup("").join(_piece(*piece) for piece in pieces_of(a.raw, shown)),
        rows=[
            {
                "number": row.number,
                "differs": row.differs,
                "argument": place_cell(row.name, None),
                "characters": place(row.span),
                "sides": [_side_cells(side) for side in row.sides],
            }
            for row in shown
        ],
        differing=sum(row.differs for row in rows),
        count=len(rows),
        notes=notes,
    )


def _piece(text: str, numbers: tuple[int, ...]) -> Markup:
    shown = text_html(text)
    if not numbers:
        return Markup(shown)  # noqa: S704 - escaped above
    title = "row " + ", ".join(map(str, numbers))
    look = MARKS["coerced"].css
    # The number of the innermost row, which is the last one that began.
    mark = f'<span style="{MONO};font-size:10px;opacity:0.8">[{numbers[-1]}]</span>'
    return Markup(f'<span style="{look}" title="{title}">{shown}{mark}</span>')  # noqa: S704


def _side_cells(side: Side) -> tuple[Markup, Markup, Markup, Markup]:
    """Return before, after, rule and loss of a reading. Without a change, the value as it is."""
    if not side.changes:
        return Markup(), _value(side.value, VALUE), Markup(), Markup()
    line = Markup('<div style="margin:0 0 2px 0">{}</div>')
    columns = [
        (
            _value(change.before, BEFORE),
            _value(change.after, AFTER),
            Markup('<span style="{};font-size:11px" title="{}">{}</span>').format(
                MONO, change.sentence, text_of(change.rule)
            ),
            Markup(LOSSLESS if change.lossless else LOSSY),  # noqa: S704 - our own badges
        )
        for change in side.changes
    ]
    before, after, rule, loss = (
        Markup("").join(line.format(cell) for cell in column)
        for column in zip(*columns, strict=True)
    )
    return before, after, rule, loss


def _value(text: str, look: str) -> Markup:
    if not text:
        return Markup()
    shown = text_of(shorten(text, MAX_VALUE))
    return Markup('<span style="{}">{}</span>').format(look, shown)
