"""The raw text of a result as highlighted HTML, with a legend of the marks that occur in it.

How it works. `marks_of` gives the marks, `runs_of` cuts the text at their borders, and runs with
one outermost mark (mostly a call) become a span, in which each run with further marks is one with
the look of its innermost mark and the titles of those around it. A text
of more than `MAX_TEXT` characters loses its middle. Beyond `MAX_RUNS` runs the rest of the text
appears without highlights. Both leave a note. So the HTML is linear in the part shown, and so is
the time that a browser takes for it.

The spans are joined as strings, not rendered by a template: a page has up to 2,000 of them, and a
template takes twice as long for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby

from markupsafe import Markup

from ..core.rules import RULES
from ..core.types import ParseResult
from .cells import text_html
from .marks import Mark, Run, clip, marks_of, runs_of
from .style import BADGE, DROPPED, INSERTION, KINDS, LEGEND, LINE, style_of
from .tree import RowsOfCalls

MAX_TEXT = 256 * 1024
MAX_RUNS = 2_000
_LEAST_SIZE = 60_000  # characters of HTML, however short the text
_SIZE_A_CHARACTER = 15
_LINE = "\n"  # a quoted line break cannot stand in an f-string before Python 3.12
MAX_TITLES = 12  # of the marks around one run


@dataclass(frozen=True, slots=True)
class RawBox:
    """The highlighted text, (style, word) of each kind of mark in it, and notes on the parts left
    out.
    """

    body: Markup
    legend: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]


def raw_box(result: ParseResult, rows: RowsOfCalls | None = None) -> RawBox | None:
    """Return the highlighted raw text of a result, or None if the text is empty.

    `rows` are those of its calls, where the caller has them already. The legend names the kinds of
    marks that the text has, in the order of `LEGEND`.
    """
    raw = result.raw
    if not raw:
        return None

    marks = marks_of(result, rows)
    runs = runs_of([m.span for m in marks], len(raw))
    spans = _Spans(raw, marks)
    notes: list[str] = []
    if len(raw) <= MAX_TEXT:
        body = spans.html_of(runs, notes)
    else:
        body = _without_middle(spans, runs, len(raw), notes)

    # Several kinds may have one look, so that looks are compared, not kinds.
    looks = {style_of(m) for m in marks}
    legend = [(KINDS[kind], word) for kind, word in LEGEND]
    return RawBox(
        Markup(body),  # noqa: S704 - `_Spans` escapes every stretch of the text
        tuple(entry for entry in legend if entry[0] in looks),
        tuple(notes),
    )


def _without_middle(spans: _Spans, runs: Sequence[Run], length: int, notes: list[str]) -> str:
    """Return the HTML of the head and the tail of a text that is too long.

    runs: those of the whole text. length: its characters. notes: takes the one on the missing part.
    """
    # The head says more than the tail, of which a quarter is enough.
    head = MAX_TEXT * 3 // 4
    tail = length - MAX_TEXT // 4
    notes.append(f"Characters {head:,} to {tail:,} of {length:,} are not shown.")

    gap = (
        f'<span style="{BADGE};border:1px solid {LINE}">'
        f"… {tail - head:,} characters not shown …</span>"
    )
    first = spans.html_of(clip(runs, 0, head), notes)
    last = spans.html_of(clip(runs, tail, length), notes)
    return f"{first}\n{gap}\n{last}"


class _Spans:
    """Turns runs into spans, up to `MAX_RUNS` of them in all.

    The look of a mark and says is made once, however many runs it is cut into.
    """

    def __init__(self, raw: str, marks: Sequence[Mark]) -> None:
        """Prepare spans of `raw`.

        The runs to come name their marks by their index in `marks`.
        """
        self._raw = raw
        self._marks = marks
        self._room = MAX_RUNS
        self._size_left = max(_LEAST_SIZE, _SIZE_A_CHARACTER * len(raw))
        self._titles: dict[int, str] = {}
        self._looks: dict[int, tuple[str, str]] = {}

    def html_of(self, runs: Sequence[Run], notes: list[str]) -> str:
        """Return the HTML of these runs, which are next to each other in the text.

        notes: takes one where not all of them are highlighted, because there is no more room.
        """
        count = 0
        spans = []
        for outermost, inside in groupby(runs[: self._room], _outermost):
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
        """Return runs with one outermost mark as HTML: its span, with those of the others in it."""
        # What holds of all of them is written once, which halves the page of many small calls.
        inside = "".join(map(self._span, runs))
        if outermost is None:
            return inside
        classes, look = self._look(outermost)
        title = self._title(outermost)
        return f'<span class="{classes}" title="{title}" style="{look}">{inside}</span>'

    def _span(self, run: Run) -> str:
        """Return one run as HTML: its text, in a span where it has marks beside the outermost.

        The span has the look of the innermost mark and the titles of all but the outermost, from
        the inside out.
        """
        text = text_html(self._raw[run.start : run.end])
        if len(run.marks) < 2:
            return text

        innermost_first = run.marks[: -MAX_TITLES - 1 : -1]
        titles = [self._title(i) for i in innermost_first if i != run.marks[0]]
        classes, look = self._look(run.marks[-1])
        # Not <mark>: browsers write it in black, and an untrusted notebook drops the
        # `color: inherit` that undoes that.
        return f'<span class="{classes}" title="{_LINE.join(titles)}" style="{look}">{text}</span>'

    def _title(self, index: int) -> str:
        """Return the title of a mark, escaped. It shows no hidden character already."""
        title = self._titles.get(index)
        if title is None:
            title = self._titles[index] = escape(self._marks[index].title)
        return title

    def _look(self, index: int) -> tuple[str, str]:
        """Return (classes, style) of the runs whose innermost mark is that of this index."""
        look = self._looks.get(index)
        if look is None:
            mark = self._marks[index]
            rules = [RULES[rule].css for rule in mark.rules if rule in RULES]
            classes = " ".join([f"toolparse-{mark.kind}", *rules])
            look = self._looks[index] = (classes, _style_of_runs(mark))
        return look


def _outermost(run: Run) -> int | None:
    """Return the mark that holds all others of a run, None if it has none."""
    return run.marks[0] if run.marks else None


def _style_of_runs(mark: Mark) -> str:
    """Return the style of the runs whose innermost mark this is.

    Text that a repair drops is struck through. A mark without characters is made wide enough to
    see.
    """
    look = style_of(mark)
    if len(mark.span):
        is_dropped = mark.kind == "edit" and mark.label.endswith(" is dropped")
        return look + DROPPED if is_dropped else look

    # A place between two characters has to be given a width to be seen at all.
    if mark.kind == "edit":
        return INSERTION
    return look + ";padding:0 2px"
