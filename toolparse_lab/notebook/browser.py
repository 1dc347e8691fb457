"""`Browser`: the answers of a run or a frame, from what is true of all of them to one answer."""

# How it works. The way is run, cause, answer, bench. All of it is rendered here from one template,
# for a kernel, a page of `toolparse open`, a saved notebook and an exported file alike. The front
# end asks by messages, which stand in the HTML, and gets the HTML of the parts that changed. The
# state is here too: the filters, the answer that is open, and whether it is on the workbench.

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import traitlets

from ..core.errors import BadOptions, ToolparseError
from ..core.types import ParseResult
from ..core.values.printable import counted
from ..core.values.wording import share, span
from ..evals.frames.account import NOT_JUDGED, account_of
from ..evals.frames.parsing import read_row
from ..evals.reports.figures.trial_rows import GROUP, TrialRows, text_of_cell
from ..evals.scoring.exports import faults_of
from ..evals.scoring.outcomes import OUTCOMES
from ..views import render_result
from ..views.html import look_of
from ..views.rows import Fault
from ..views.sentences import sentence_of_answer
from ..views.show import shorten, visible
from ..views.templating import Markup, macro
from ..views.words import Group, word_of
from .bench import Desk, conversation_of, next_steps, setups_of
from .page import as_widget, write_view
from .widget import Screen

if TYPE_CHECKING:
    from ..evals.frames.recorded import Frame

RUN, ANSWER = "notebook/templates/run.html", "notebook/templates/answer.html"
PAGE = 50
"""Answers that a list gets at once."""
_GLANCE = 3  # answers of a cause, where all causes are listed
_MOST_CELLS = 12  # names of an axis that are drawn
_OUTCOMES = [name for name in OUTCOMES if name not in ("provider_error", "ungraded")]
_SELECTS = {
    "model": "models", "tool": "tools", "prompt_protocol": "formats", "verdict": "verdict",
    "arm": "variant", "category": "category", "outcome": "outcome", "cause": "cause",
    "code": "problem", "rule": "repair",
}  # fmt: skip
_FIRST = ("model", "tool", "prompt_protocol")
_OWN = ("code", "rule", "tool", "text")
"""Filters that are members of a query themselves; the others are columns."""
_KEYS = [
    (("↑", "↓"), "answer"),
    (("n", "p"), "next, previous that fails"),
    (("]", "["), "next, previous cause"),
    (("w",), "edit and reparse"),
    (("/",), "search"),
    (("Esc",), "back"),
]
_MORE_KEYS = [
    (("Enter",), "open the answer"),
    (("e",), "into the text on the workbench"),
    (("1", "6"), "the first stage to the last"),
    (("u",), "undo on the workbench"),
    (("c",), "copy as Python"),
    (("?",), "these keys"),
]
_ASKED = {
    "]": '{"kind": "cause", "by": 1}', "[": '{"kind": "cause", "by": -1}',
    "n": '{"kind": "step", "by": 1}', "p": '{"kind": "step", "by": -1}', "w": '{"kind": "bench"}',
}  # fmt: skip
_LAYERS = {
    "model": "the model wrote it",
    "server": "the server lost it",
    "parser": "the parser lost it",
    "cannot_tell": "who lost it cannot be told",
}


class Browser(Screen):
    """The interactive view of many answers: one sentence of all of them, the causes, the answers
    by cause, and one answer in the parse view or on the workbench.

    frame: a trials frame. rows, columns: the columns of the table of shares. policy: the rows that
    appear. calls: the calls frame of the same trials, to filter by tool. cluster: the column that
    intervals go by. opener: the trial of an id, if there is one, which notes and outcomes can be
    kept for. title, facts: the heading of a page. Raises BadOptions for a frame or a column that
    does not fit.

    `trial_id` is the trial that is open, '' for none.
    """

    trial_id = traitlets.Unicode("").tag(sync=True)

    def __init__(
        self,
        frame: Frame,
        *,
        rows: str | None = None,
        columns: str | None = None,
        policy: str = "safe",
        calls: Frame | None = None,
        cluster: str | None = None,
        opener: Callable[[str], Any] | None = None,
        title: str = "",
        facts: str = "",
        **traits: Any,
    ) -> None:
        self._rows = TrialRows(frame, rows, columns, policy, calls, cluster)
        self._first_axes = self._rows.axes
        self._facets = self._rows.facets()
        self._opener = opener
        self.title, self._more_facts = title, facts
        self._query: dict[str, Any] = {}
        self._windows: dict[str, tuple[int, int]] = {}
        self._lines: dict[int, dict[str, Any]] = {}
        self._exact: dict[str, str] = {}
        self._desk: Desk | None = None
        self._members = self._rows.members({})
        super().__init__(**traits)
        self._html = as_widget(self._screen())

    @property
    def trial(self) -> Any:
        """The trial that is open, as its run has it: `browser.trial.debug()` shows it on the
        workbench. Raises BadOptions if none is open, and for a frame, which has no trials.
        """
        if not self.trial_id or self._opener is None:
            raise BadOptions(
                "no trial of a run is open",
                got=self.trial_id,
                hint="press Enter on a line of run.browse()",
            )
        return self._opener(self.trial_id)

    @property
    def result(self) -> ParseResult:
        """The parse of the trial that is open. Raises BadOptions if none is open."""
        if not self.trial_id:
            raise BadOptions("no trial is open", got="", hint="press Enter on a line")
        return self._result(self._rows.place(self.trial_id), self._trial(self.trial_id))

    def _trial(self, trial_id: str) -> Any:
        # Opening a trial reads its answer; a frame has none.
        return self._opener(trial_id) if self._opener else None

    def _result(self, number: int, trial: Any) -> ParseResult:
        # Raises BadOptions for a trial without an answer.
        if trial is not None and trial.result is not None:
            own: ParseResult = trial.result
            return own
        return read_row(self._rows.frame.iloc[number])

    # what is true of all

    def _overview(self) -> dict[str, Any]:
        rows = self._rows
        groups, bad = rows.groups, rows.groups[: rows.failing]
        failed, n = int(rows.failed.sum()), int(rows.answered.sum())
        first, rest = _first_words(n, failed, rows)
        parts: list[tuple[str, float]] = [(group.fill, group.n) for group in bad]
        if bad and len(groups) > len(bad):
            parts.append(("f-gap", n / 100))
        parts += [(group.fill, group.n) for group in reversed(groups[rows.failing :])][::-1]
        return {
            "first": first,
            "rest": rest,
            "bar": parts,
            "said": f"{first}. {rest} " + ", ".join(f"{g.n:,} {g.word}" for g in groups),
            "groups": [_shown_group(group) for group in groups],
            "failing": rows.failing,
            "chosen": self._query.get(GROUP, -1),
        }

    def _tools(self) -> dict[str, Any]:
        fields = []
        for name, label in _SELECTS.items():
            chosen = self._query.get(name, "")
            if len(self._facets.get(name, ())) > 1 or chosen:
                fields.append((name, label, self._facets.get(name, []), chosen))
        chips = [
            (f"{word_of(name)}: {self._query[name]}", _ask("filter", values={name: ""}))
            for name in (*_SELECTS, "text")
            if self._query.get(name)
        ]
        if cell := self._query.get("cell"):
            words = " × ".join(name or "–" for name in cell)
            chips.append((words, _ask("cell", cell=None)))
        shown = sum(map(len, self._members.values()))
        total = len(self._rows.frame)
        words = counted(shown, "answer") if shown == total else f"{of(shown, total)} answers"
        return {
            "text": self._query.get("text", ""),
            "first": [field for field in fields if field[0] in _FIRST],
            "more": [field for field in fields if field[0] not in _FIRST],
            "set": chips,
            "shown": words,
        }

    def _rows_query(self) -> dict[str, Any]:
        # The filters as the rows take them; the group is chosen among the members.
        where = {n: [v] for n, v in self._query.items() if n in _SELECTS and n not in _OWN and v}
        own = {name: self._query.get(name) or "" for name in _OWN}
        return {"where": where, "cell": self._query.get("cell"), **own}

    def _refresh(self) -> None:
        members = self._rows.members(self._rows_query())
        group = self._query.get(GROUP)
        self._members = {k: v for k, v in members.items() if group is None or k == str(group)}
        self._windows = {}

    def _list(self, live: bool = True) -> Markup:
        groups = []
        for key, numbers in self._members.items():
            group = self._rows.groups[int(key)]
            fails = int(key) < self._rows.failing
            start, count = self._window(key)
            lines = [self._line(int(number), live) for number in numbers[start : start + count]]
            after = len(numbers) - start - len(lines)
            if not live and fails:
                for line, number in zip(lines, numbers, strict=False):
                    line["answer"] = self._static_answer(int(number))
            more = (
                f"{after:,} more like these" if lines else f"show {counted(len(numbers), 'answer')}"
            )
            groups.append(
                {
                    **_shown_group(group),
                    "words": f"{len(numbers):,}"
                    if len(numbers) == group.n
                    else of(len(numbers), group.n),
                    "lines": lines,
                    "before": f"{start:,} before these" if start else "",
                    "up": _ask("more", group=key, by=-1),
                    "after": more if after > 0 else "",
                    "down": _ask("more", group=key, by=1),
                }
            )
        return macro(RUN, "list", groups, live, self.trial_id, None if groups else self._nothing())

    def _window(self, key: str) -> tuple[int, int]:
        # The first answer of a group that is listed, and how many.
        fails = int(key) < self._rows.failing
        glance = _GLANCE if fails or len(self._members) < 3 else 0
        return self._windows.get(key, (0, PAGE if len(self._members) == 1 else glance))

    def _nothing(self) -> dict[str, Any]:
        # No match, and the ways out.
        group, text = self._query.get(GROUP), self._query.get("text")
        of_group = ""
        ways = [("Clear filters", _ask("clear"))]
        if group is not None:
            own = self._rows.groups[group]
            of_group = f" among the {own.n:,} {own.word}"
            ways.insert(0, (f"Search all {len(self._rows.frame):,}", _ask("group", value=group)))
        words = f"No answer holds “{text}”{of_group}." if text else f"No answer fits{of_group}."
        return {"words": words, "ways": ways}

    def _line(self, number: int, live: bool = True) -> dict[str, Any]:
        if number not in self._lines:
            self._lines[number] = self._rows.lines([number])[0]  # type: ignore[arg-type]
        line = dict(self._lines[number])
        names = (line["model"], line["prompt_protocol"] if self._has_formats else "")
        case = line["case_id"] if line["question"] else ""
        line["who"] = shorten(" · ".join(filter(None, (*names, case))), 80)
        line["id"], line["answer"] = f"a-{number}", ""
        line["ask"] = _ask("open", trial_id=line["trial_id"])
        return line

    @property
    def _has_formats(self) -> bool:
        return len(self._facets.get("prompt_protocol", ())) > 1

    @property
    def _repeats(self) -> bool:
        # Whether a case was asked more than once in a cell.
        return "trial" in self._rows.frame and self._rows.frame["trial"].nunique() > 1

    def _static_answer(self, number: int) -> Markup:
        result, faults = self._rows.read(number)
        if result is None:
            return Markup()
        row = self._rows.frame.iloc[number]
        words = sentence_of_answer(result, faults, *_codes(row))
        shown = Markup('<p class="why">{}</p>').format(words)
        return shown + Markup(render_result(result, faults))

    def _where(self, live: bool = True) -> Markup:
        rows = self._rows
        figures = rows.cells(self._rows_query())
        names, columns = figures["rows"][:_MOST_CELLS], figures["columns"][:_MOST_CELLS]
        by_names = {(cell[0], cell[1]): cell for cell in figures["cells"]}
        filtered = figures["measure"].startswith("answers that match")
        noun = "right" if rows.has_targets else "executable"
        heat = []
        for row in names:
            title = noun if len(names) == 1 and row in ("", "native", "auto") else row
            cells = [self._cell(by_names.get((row, c)), filtered, live) for c in columns]
            heat.append((title, cells))
        # Rates are of all; counts by cause follow the filters, in the same columns.
        counts = rows.counts(self._members, rows.axes[1])
        causes = []
        for key in self._members:
            if int(key) >= rows.failing:
                continue
            group = rows.groups[int(key)]
            numbers = counts[key]
            own = [
                (f"{numbers.get(c, 0):,}", _ask("count", group=int(key), column=c)) for c in columns
            ]
            known = self._exact.get(key)
            if known is None and not live:
                known = rows.exact(group)
            load = "" if known is not None else _ask("exact", group=int(key))
            causes.append(
                {**_shown_group(group), "counts": own, "all": f"{sum(numbers.values()):,}",
                 "exact": known or "", "load": load}
            )  # fmt: skip
        sizes = rows.sizes(rows.axes[1])
        failing = [counts[key] for key in self._members if int(key) < rows.failing]
        sums = [sum(numbers.get(column, 0) for numbers in failing) for column in columns]
        totals = [of(n, sizes.get(c, 0)) for n, c in zip(sums, columns, strict=True)]
        totals.append(of(sum(map(sum, (n.values() for n in failing))), int(rows.answered.sum())))
        told = "right answers" if rows.has_targets else "answers whose calls can all be executed"
        measure = f"Share of {told}, with 95 % intervals."
        counted = [cell[2:5] for cell in figures["cells"]]
        if any(n and share(rate, n) != share(hits / n, n) for hits, n, rate in counted):
            measure += " Each case counts once, however many answers it has."
        if filtered:
            measure = "Answers that match the filters, of those of the cell."
        shown = {
            "title": "Where it fails" if rows.failing else "By model and format",
            "label": measure,
            "corner": "",
            "measure": measure,
            "axes": self._facets["axes"],
            "rows_axis": rows.axes[0],
            "columns_axis": rows.axes[1],
            "columns": columns,
            "rows": heat,
            "causes": causes,
            "by": word_of(rows.axes[1]),
            "total_title": "Wrong" if rows.has_targets else "Cannot be executed",
            "totals": totals,
            "seen": [] if filtered else rows.notes(),
        }
        return macro(RUN, "where", shown, live)

    def _cell(self, cell: list[Any] | None, filtered: bool, live: bool) -> dict[str, Any]:
        if cell is None:
            return {"share": "–", "rate": 0, "lines": [], "ask": "", "anchor": ""}
        row, column, n, judged, rate, low, high = cell
        chosen = self._query.get("cell") == [row, column]
        ask = _ask("cell", cell=None if chosen else [row, column]) if live else ""
        shown = {"rate": round(rate or 0, 3), "ask": ask, "anchor": "", "chosen": chosen}
        if filtered:
            # A filter recomputes no rate.
            words = f"of {judged:,} ({share(n / judged if judged else None, judged)})"
            return {**shown, "share": f"{n:,}", "lines": [words]}
        if rate is None:
            return {**shown, "share": "–", "lines": ["none judged"]}
        words = " · ".join(filter(None, (span(low, high, judged), of(n, judged))))
        return {**shown, "share": share(rate, judged), "lines": [words]}

    # one answer

    def _walk(self) -> list[int]:
        # What n and p go through: the failures that the filters admit, or what they admit.
        failing = [n for key, n in self._members.items() if int(key) < self._rows.failing]
        some = failing or list(self._members.values())
        return [int(number) for numbers in some for number in numbers]

    def _answer_html(self) -> Markup:
        rows, trial_id = self._rows, self.trial_id
        number = rows.place(trial_id)
        row = rows.frame.iloc[number]
        trial = self._trial(trial_id)
        shown: dict[str, Any] = {
            "title": shorten(text_of_cell(row.get("case_id")), 80),
            "asked": [["user", text_of_cell(row.get("input"))]],
            "view": "", "tools": "", "exchange": [],
        }  # fmt: skip
        result, faults = None, []
        try:
            result = self._result(number, trial)
            faults = self._faults(number, trial, result)
            setup = setups_of(trial or result)[0]
            shown["asked"] = conversation_of(setup) or shown["asked"]
            shown["view"] = Markup(render_result(result, faults, stage="raw"))
            shown["tool_names"] = shorten(", ".join(tool.name for tool in setup.tools), 200)
            shown["tools"] = "\n".join(_signature(tool) for tool in setup.tools)[:20_000]
            shown["exchange"] = [
                (f"The {name} as recorded", "JSON", shorten(text, 100_000))
                for name, text in setup.exchange.items()
            ]
        except ToolparseError as e:
            shown["error"] = str(e)
        shown |= self._verdict(number, row, trial, result, faults)
        shown["others"] = self._same_case(number)
        shown["facts"] = _facts(row, result, shown.get("error", ""))
        shown["recorded"] = word_of(text_of_cell(row.get("endpoint_kind")))
        shown["copies"] = _copies(trial)
        shown["remarks"] = self._remarks(trial)
        walk = self._walk()
        at = walk.index(number) + 1 if number in walk else 0
        shown["at"] = of(at, len(walk)) if at else f"{len(walk):,} that fail"
        return macro(ANSWER, "answer", shown, True)

    def _faults(self, number: int, trial: Any, result: ParseResult) -> list[Fault]:
        if trial is None or trial.case.target is None or not self._rows.failed[number]:
            return self._rows.read(number)[1] if trial is None else []
        return faults_of(result, trial.case.target, trial.case.tools or result.tools)

    def _verdict(
        self, number: int, row: Any, trial: Any, result: ParseResult | None, faults: list[Fault]
    ) -> dict[str, Any]:
        group = text_of_cell(row.get(GROUP))
        executable = bool(result and result.calls and all(call.valid for call in result.calls))
        look, pill, beside = "good", f"✓ {group[:1].upper()}{group[1:]}", ""
        about = []
        if self._rows.failed[number]:
            look, pill = "bad", "✗ Cannot be executed"
            about.append(group[:1].upper() + group[1:])
            if executable or result is None or not result.calls:
                pill = f"✗ {about.pop()}"
                beside = "could be executed" if executable else ""
        elif result is None:
            look, pill = "flat", f"· {group[:1].upper()}{group[1:]}"
        elif not result.calls:
            look, pill = look_of("none")
        if trial is not None and self._rows.failed[number] and trial.blame.code != "token_limit":
            about += filter(None, [_LAYERS.get(trial.blame.layer)])
        names = [text_of_cell(row.get(name)) for name in ("model", "prompt_protocol", "case_id")]
        about += names if self._has_formats else [names[0], names[2]]
        sentence = sentence_of_answer(result, faults, *_codes(row))
        about_words = shorten(" · ".join(filter(None, about)), 300)
        return {"look": look, "pill": pill, "beside": beside, "about": about_words,
                "sentence": shorten(sentence, 1_000)}  # fmt: skip

    def _same_case(self, number: int) -> list[dict[str, Any]]:
        rows = self._rows
        others = []
        for other in rows.same_case(number)[:PAGE]:
            row = rows.frame.iloc[other]
            look, sign = ("good", "✓") if rows.answered[other] else ("flat", "·")
            if rows.failed[other]:
                look, sign = "bad", "✗"
            names = ("model", "prompt_protocol", "arm", *(("trial",) if self._repeats else ()))
            who = dict.fromkeys(filter(None, (text_of_cell(row.get(name)) for name in names)))
            word = f"{sign} {text_of_cell(row[GROUP])}"
            ask = _ask("open", trial_id=text_of_cell(row["trial_id"]))
            others.append({"look": look, "word": word, "who": " · ".join(who), "ask": ask})
        return others

    def _remarks(self, trial: Any) -> dict[str, Any] | None:
        # The notes of a person on a trial.
        remarks = getattr(trial, "remarks", None)
        if remarks is None:
            return None
        kept = {name: visible(getattr(remarks, name)) for name in ("note", "outcome", "why")}
        return {**kept, "outcomes": [(name, word_of(name)) for name in _OUTCOMES]}

    # messages of the front end

    def answer(self, message: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return what the front end gets for a message: the HTML of the parts that changed, the
        place for the address, and what is said of it.

        message: "kind" and the fields of that kind, see the functions `_answer_…`; any other kind
        is one of the workbench.
        """
        answer = getattr(self, f"_answer_{message.get('kind')}", None)
        if answer is None:
            return None if self._desk is None else self._desk.answer(message)
        reply: dict[str, Any] = answer(message)
        return reply

    def _filtered(self) -> dict[str, Any]:
        self._refresh()
        return self._run_reply()

    def _run_reply(self, said: str = "") -> dict[str, Any]:
        # The list and what is beside it, after a filter.
        shown = self._tools()
        detail = self._detail()
        html = [self._over_html(), macro(RUN, "tools", shown), self._list(), detail]
        return {"html": "".join(map(str, html)), **self._state(), "said": said or shown["shown"]}

    def _over_html(self) -> Markup:
        return macro(RUN, "over", self._overview(), True)

    def _detail(self) -> Markup:
        if not self.trial_id:
            return self._where()
        if self._desk is not None:
            return Markup(self._desk.html())
        return self._answer_html()

    def _state(self) -> dict[str, Any]:
        place = {name: self._query[name] for name in (*_SELECTS, "text") if self._query.get(name)}
        if (group := self._query.get(GROUP)) is not None:
            place[GROUP] = self._rows.groups[group].word
        if cell := self._query.get("cell"):
            place["cell"] = json.dumps(cell)
        if self._rows.axes != self._first_axes:
            place["axes"] = json.dumps(self._rows.axes)
        title = self.title
        if self.trial_id:
            place["trial"] = self.trial_id
            row = self._rows.frame.iloc[self._rows.place(self.trial_id)]
            title = " · ".join(text_of_cell(row.get(name)) for name in ("case_id", "model"))
            if self._desk is not None:
                place["bench"] = "1"
        return {"place": place, "title": title, "opened": self.trial_id}

    def _open(self, trial_id: str, *, bench: bool | None = None) -> dict[str, Any]:
        number = self._rows.place(trial_id)
        on_bench = self._desk is not None if bench is None else bench
        trial = self._trial(trial_id)
        desk = None
        if on_bench:
            try:
                desk = Desk(setups_of(trial or self._result(number, trial)), back=True)
            except ToolparseError:  # no answer to work on
                desk = None
        self.trial_id, self._desk = trial_id, desk
        html = [str(self._detail())]
        if not self._is_listed(number):
            self._show_in_list(number)
            html.append(str(self._list()))
        said = f"answer {text_of_cell(self._rows.frame.iloc[number].get('case_id'))} is open"
        return {"html": "".join(html), **self._state(), "said": said}

    def _is_listed(self, number: int) -> bool:
        for key, numbers in self._members.items():
            places = (numbers == number).nonzero()[0]
            if len(places):
                start, count = self._window(key)
                return bool(start <= places[0] < start + count)
        return True  # not among those that the filters admit

    def _show_in_list(self, number: int) -> None:
        for key, numbers in self._members.items():
            places = (numbers == number).nonzero()[0]
            if len(places):
                start = max(0, int(places[0]) - 4)
                self._windows[key] = (start, PAGE)

    def _answer_open(self, message: Mapping[str, Any]) -> dict[str, Any]:
        return self._open(str(message.get("trial_id")))

    def _answer_step(self, message: Mapping[str, Any]) -> dict[str, Any]:
        by = int(message.get("by") or 1)
        walk = self._walk()
        here = self._rows.place(self.trial_id) if self.trial_id else -1
        at = walk.index(here) + by if here in walk else 0 if by > 0 else len(walk) - 1
        if not 0 <= at < len(walk):
            return {"said": "no further answer" if by > 0 else "no earlier answer"}
        return self._open(text_of_cell(self._rows.frame["trial_id"].iloc[walk[at]]))

    def _answer_cause(self, message: Mapping[str, Any]) -> dict[str, Any]:
        # To the first answer of the next or the previous cause.
        by = int(message.get("by") or 1)
        keys = list(self._members)
        here = self._rows.place(self.trial_id) if self.trial_id else -1
        own = [i for i, key in enumerate(keys) if here in self._members[key]]
        at = own[0] + by if own else 0
        if not 0 <= at < len(keys):
            return {"said": "no further cause" if by > 0 else "no earlier cause"}
        number = int(self._members[keys[at]][0])
        return self._open(text_of_cell(self._rows.frame["trial_id"].iloc[number]))

    def _answer_close(self, message: Mapping[str, Any]) -> dict[str, Any]:
        self.trial_id, self._desk = "", None
        reply = {"html": str(self._where()), **self._state(), "said": self._tools()["shown"]}
        return {**reply, "focus": str(message["focus"])} if message.get("focus") else reply

    def _answer_bench(self, message: Mapping[str, Any]) -> dict[str, Any]:
        trial_id = self.trial_id or str(self._rows.frame["trial_id"].iloc[self._walk()[0]])
        reply = self._open(trial_id, bench=True)
        if self._desk is not None and (values := message.get("values")):
            self._desk.answer({"kind": "values", "values": values})
            reply["html"] = self._desk.html()
        return {**reply, "focus": ".editor"}

    def _answer_unbench(self, message: Mapping[str, Any]) -> dict[str, Any]:
        return self._open(self.trial_id, bench=False)

    def _answer_filter(self, message: Mapping[str, Any]) -> dict[str, Any]:
        values = dict(message.get("values") or {})
        for name, value in values.items():
            if name in _SELECTS or name == "text":
                self._query[name] = str(value)
        return self._filtered()

    def _answer_group(self, message: Mapping[str, Any]) -> dict[str, Any]:
        value = int(message["value"])
        self._query[GROUP] = None if self._query.get(GROUP) == value else value
        return self._filtered()

    def _answer_count(self, message: Mapping[str, Any]) -> dict[str, Any]:
        column, name = self._rows.axes[1], str(message.get("column"))
        self._query[GROUP] = int(message["group"])
        if column in _SELECTS:
            self._query[column] = name
        return self._filtered()

    def _answer_cell(self, message: Mapping[str, Any]) -> dict[str, Any]:
        cell = message.get("cell")
        self._query["cell"] = [str(name) for name in cell] if cell else None
        return self._filtered()

    def _answer_clear(self, message: Mapping[str, Any]) -> dict[str, Any]:
        self._query = {}
        return self._filtered()

    def _answer_axes(self, message: Mapping[str, Any]) -> dict[str, Any]:
        values = message.get("values") or {}
        rows, columns = self._rows.axes
        wanted = [str(values.get("rows") or rows), str(values.get("columns") or columns)]
        if wanted[0] == wanted[1]:  # what is chosen twice changes places
            wanted = [columns, rows]
        self._rows.set_axes(*wanted)
        self._query["cell"] = None
        self._refresh()
        return {"html": str(self._where()), **self._state()}

    def _answer_more(self, message: Mapping[str, Any]) -> dict[str, Any]:
        key, by = str(message.get("group")), int(message.get("by") or 1)
        numbers = self._members.get(key, ())
        start, count = self._window(key)
        first = max(0, start - PAGE) if by < 0 else start
        wanted = count + start - first + (PAGE if by > 0 else 0)
        self._windows[key] = (first, min(wanted, len(numbers)))
        return {"html": str(self._list())}

    def _answer_exact(self, message: Mapping[str, Any]) -> dict[str, Any]:
        key = str(int(message["group"]))
        if key not in self._exact:
            self._exact[key] = self._rows.exact(self._rows.groups[int(key)])
        places = [k for k in self._members if int(k) < self._rows.failing]
        if key not in places:
            return {}
        part = f"exact-{places.index(key)}"
        shown = '<small style="display:block;padding-left:18px" data-part="{}">{}</small>'
        return {"html": str(Markup(shown).format(part, self._exact[key]))}

    def _answer_warm(self, message: Mapping[str, Any]) -> dict[str, Any]:
        # What the first answer takes, such as the cases of the run, is fetched while nobody waits.
        for number in self._walk()[:1]:
            self._trial(text_of_cell(self._rows.frame["trial_id"].iloc[number]))
        return {}

    def _answer_next(self, message: Mapping[str, Any]) -> dict[str, Any]:
        # Apart from the answer, which is on the screen before all protocols have read it.
        if self._desk is not None:
            return self._desk.answer(message) or {}
        trial = self._trial(self.trial_id)
        result = self._result(self._rows.place(self.trial_id), trial)
        steps = [
            (step["words"], _ask("bench", values=step["values"]))
            for step in next_steps(setups_of(trial or result)[0], result)
        ]
        return {"html": str(macro(ANSWER, "next", steps))}

    def _answer_remark(self, message: Mapping[str, Any]) -> dict[str, Any]:
        if self._opener is None:
            raise BadOptions(
                "nothing can be kept with a frame alone", got=self.trial_id, hint="use run.browse()"
            )
        values = message.get("values") or {}
        trial = self._opener(self.trial_id)
        trial = trial.note(str(values.get("note") or ""))
        outcome = str(values.get("outcome") or "") or None
        trial = trial.override(outcome, why=str(values.get("why") or ""))
        remarks = self._remarks(trial) or {}
        self._rows.set_cell(self.trial_id, "note", remarks["note"])
        self._rows.set_cell(self.trial_id, "override", remarks["outcome"])
        self._lines.pop(self._rows.place(self.trial_id), None)
        html = [macro(ANSWER, "remarks", remarks), self._list()]
        return {"html": "".join(map(str, html)), "said": "kept"}

    def _answer_place(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """A place from an address: filters and the answer that is open."""
        place = dict(message.get("place") or {})
        self._query = {n: str(place[n]) for n in (*_SELECTS, "text") if place.get(n)}
        words = [group.word for group in self._rows.groups]
        if (word := place.get(GROUP)) in words:
            self._query[GROUP] = words.index(word)
        said = ""
        try:
            self._query["cell"] = json.loads(place["cell"])[:2] if place.get("cell") else None
            axes = json.loads(place["axes"]) if place.get("axes") else self._first_axes
            self._rows.set_axes(str(axes[0]), str(axes[1]))
            self._refresh()
        except (ValueError, TypeError, IndexError, ToolparseError):
            self._query, said = {}, "a part of the address cannot be read"
            self._refresh()
        self.trial_id, self._desk = "", None
        if trial_id := str(place.get("trial") or ""):
            try:
                self._open(trial_id, bench=place.get("bench") == "1")
            except ToolparseError as e:
                said = visible(str(e))
        return self._run_reply(said)

    # the whole, with a kernel and without

    def _screen(self, *, live: bool = True, page: bool = False) -> str:
        shown = {
            "look": ("app" if page else "screen") + (" opened" if self.trial_id and live else ""),
            "uid": self._static,
            "head": self.title if page else "",
            "facts": self._page_facts(),
            "report": self.report_at if page else "",
            "live": live,
            "over": self._overview(),
            "tools": self._tools(),
            "groups": [],
            "hints": [([(key, _ASKED.get(key, "")) for key in k], w) for k, w in _KEYS],
            "all_keys": [*_KEYS, *_MORE_KEYS],
        }
        detail = self._detail() if live else self._where(live=False)
        return str(macro(RUN, "screen", shown, self._list(live), detail))

    def _page_facts(self) -> str:
        models = len(self._facets.get("model", ()))
        formats = len(self._facets.get("prompt_protocol", ()))
        facts = [counted(len(self._rows.frame), "answer"), counted(models, "model")]
        if formats > 1:
            facts[-1] += f" × {counted(formats, 'format')}"
        return " · ".join(filter(None, (*facts, self._more_facts)))

    report_at = ""
    """The address of the report of the same run, where one is served."""

    def page(self) -> str:
        """Return what a page of its own begins with, as the filters are."""
        return self._screen(page=True)

    def static_html(self) -> str:
        """Return the same screen as HTML without JavaScript, escaped, with some answers of each
        cause.
        """
        return f'<div class="tpx widget">{self._screen(live=False)}</div>'

    def export_html(self, path: str | Path, *, title: str = "") -> Path:
        """Write the static view as one self-contained file, and return its path."""
        heading = title or self.title or "Answers"
        return write_view(path, heading, self.static_html(), self._page_facts())

    def __repr__(self) -> str:
        over = self._overview()
        return f"Browser({over['first']}. {over['rest']})"


def of(part: int, whole: int) -> str:
    """Return a count of a whole."""
    return f"{part:,} of {whole:,}"


def _ask(kind: str, **fields: Any) -> str:
    return json.dumps({"kind": kind, **fields})


def _shown_group(group: Group) -> dict[str, Any]:
    return {"title": group.title, "hint": group.hint, "fill": group.fill, "words": f"{group.n:,}"}


def _first_words(n: int, failed: int, rows: TrialRows) -> tuple[str, str]:
    """Return the first sentence, true of all answers, and what else there is to say."""
    good = rows.groups[rows.failing :]
    graded = int(rows.frame["target"].notna().sum()) if "target" in rows.frame else 0
    missing = len(rows.frame) - n
    words = ", ".join(f"{group.n:,} {group.word}" for group in reversed(good))
    if graded == len(rows.frame) and n:
        first = f"{of(failed, n)} {'answer is' if n == 1 else 'answers are'} wrong"
        if not failed:
            first = "The answer is right" if n == 1 else f"All {n:,} answers are right"
        told = [f"{n - failed:,} {'is' if n - failed == 1 else 'are'} right."] if failed else []
        if missing:
            told.append(f"{counted(missing, 'request')} got no answer.")
        return first, " ".join(told)
    if graded:
        return f"{of(failed, n)} answers fail", f"The others: {words}." if words else ""
    if n == 0:
        return "There are no answers", ""
    account = account_of(rows.frame)
    first, rest = account.first, account.rest
    if n == 1:
        first = f"The answer {'cannot' if failed else 'can'} be executed"
    return first, f"{rest} {NOT_JUDGED}".lstrip() if failed else rest


def _codes(row: Any) -> tuple[str, str]:
    return text_of_cell(row.get("sub_code")), text_of_cell(row.get("detail"))


def _signature(tool: Any) -> str:
    # As one writes a function: name, and each parameter with its type.
    schema = tool.schema if isinstance(tool.schema, Mapping) else {}
    properties = schema.get("properties")
    required = schema.get("required") or ()
    words = []
    for name, about in properties.items() if isinstance(properties, Mapping) else ():
        about = about if isinstance(about, Mapping) else {}
        kind = about.get("type", "any")
        if isinstance(about.get("enum"), list):
            kind = " | ".join(json.dumps(value, ensure_ascii=False) for value in about["enum"][:9])
        words.append(f"{name}{'' if name in required else '?'}: {kind}")
    return visible(shorten(f"{tool.name}({', '.join(words)})", 600))


def _facts(row: Any, result: ParseResult | None, error: str) -> list[tuple[str, str]]:
    facts = [
        ("asked in", text_of_cell(row.get("prompt_protocol"))),
        (
            "read as",
            ", ".join(result.formats) if result else text_of_cell(row.get("parse_protocol")),
        ),
        ("policy", text_of_cell(row.get("policy"))),
        ("ended with", text_of_cell(row.get("finish_reason")) or "not recorded"),
        ("expected", shorten(text_of_cell(row.get("target")), 2_000)),
        ("score", text_of_cell(row.get("detail"))),
        ("missing", text_of_cell(row.get("missing_reason"))),
        ("error", text_of_cell(row.get("error_message"))),
        ("no answer", error),
        ("trial", text_of_cell(row.get("trial_id"))),
    ]
    return [(name, shorten(text, 4_000)) for name, text in facts if text]


def _copies(trial: Any) -> list[tuple[str, str]]:
    copies = []
    for name, words in (("as_python", "Copy as Python"), ("as_curl", "Copy as curl")):
        try:
            copies.append((words, visible(getattr(trial, name)())))
        except (ToolparseError, AttributeError):  # nothing is recorded for it
            continue
    return copies
