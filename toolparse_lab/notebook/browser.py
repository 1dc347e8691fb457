"""`Browser`: the trials of a run or a frame, from a heatmap to one answer."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anywidget
import traitlets

from ..core.errors import BadOptions, ToolparseError
from ..core.types import ParseResult
from ..core.values.printable import counted
from ..evals.frames.parsing import read_row
from ..evals.reports.figures.trial_rows import PAGE, TrialRows, text_of_cell
from ..evals.scoring.outcomes import OUTCOMES, SUB_CODES
from ..views import render_page
from ..views.show import visible
from ..views.templating import render
from .bench import (
    Desk,
    bench_module,
    bench_style,
    conversation_of,
    next_steps,
    setups_of,
    verdict_sentence,
)
from .messages import Answering, UnknownMessage, answered
from .page import front, show_html, source, static_id
from .payload import payload_of

if TYPE_CHECKING:
    from ..evals.frames.recorded import Frame

STATIC_LINES = 100  # failures that the view without a kernel shows
_OUTCOMES = [name for name in OUTCOMES if name not in ("provider_error", "ungraded")]


class Browser(Answering, anywidget.AnyWidget):
    """The interactive view of many trials: a heatmap, the trials of a cell with failures first, and
    one answer in the parse view.

    frame: a trials frame. rows, columns: the columns of the heatmap. policy: the rows that appear.
    calls: the calls frame of the same trials, to filter by tool. opener: the trial of an id, if
    there is one, which notes and outcomes can be kept for. title: the heading of a page. Raises
    BadOptions for a frame or a column that does not fit.

    Lines are sent in pages, so that the number of trials does not matter. `trial_id` is the trial
    that is open, '' for none. The workbench can take the parse view's place.
    """

    _esm = front("browser.js")
    _css = source("browser.css") + bench_style()
    _first = traitlets.Dict().tag(sync=True)
    _view_source = traitlets.Unicode("").tag(sync=True)
    trial_id = traitlets.Unicode("").tag(sync=True)

    def __init__(
        self,
        frame: Frame,
        *,
        rows: str | None = None,
        columns: str | None = None,
        policy: str = "safe",
        calls: Frame | None = None,
        opener: Callable[[str], Any] | None = None,
        title: str = "",
        **traits: Any,
    ) -> None:
        self._rows = TrialRows(frame, rows, columns, policy, calls)
        self._opener = opener
        self._numbers: tuple[str, Any, dict[str, int]] = ("", None, {})
        first = {
            "uid": uuid.uuid4().hex,
            "policy": self._rows.policy,
            "title": title,
            "facets": self._rows.facets(),
            "outcomes": _OUTCOMES if opener is not None else [],
            "cells": self._rows.cells({}),
            "page": self._page({"fold": True}, 0),
        }
        self._desk: Desk | None = None
        super().__init__(_first=first, _view_source=bench_module(), **traits)
        self.on_msg(self._on_message)

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
        return self._result(self.trial_id, self._trial(self.trial_id))

    def _trial(self, trial_id: str) -> Any:
        # Opening a trial reads its answer; a frame has none.
        return self._opener(trial_id) if self._opener else None

    def _result(self, trial_id: str, trial: Any) -> ParseResult:
        # Raises BadOptions for a trial without an answer.
        if trial is not None and trial.result is not None:
            own: ParseResult = trial.result
            return own
        return read_row(self._rows.frame.iloc[self._rows.place(trial_id)])

    def _page(self, query: Mapping[str, Any], start: int) -> dict[str, Any]:
        # Pages of one query follow each other, so the last one's numbers are kept.
        key = f"{self._rows.axes}{query}"
        if self._numbers[0] != key:
            numbers = self._rows.numbers(query)
            self._numbers = (key, numbers, self._rows.alike(query))
        _, numbers, alike = self._numbers
        # Failures stand first, of which some may be folded away.
        shown, failures = int(self._rows.failed[numbers].sum()), sum(alike.values())
        lines = self._rows.lines(numbers[start : start + PAGE])
        return {
            "start": start,
            "total": len(numbers),
            "failures": shown,
            "alike": alike,
            "summary": _summary(len(numbers) - shown + failures, failures),
            "lines": lines,
        }

    # messages of the front end

    def _on_message(self, _widget: Any, message: Any, _buffers: Any) -> None:
        self.send(self.reply(message))

    def reply(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a message with its number; an error that a person made is one."""
        answer, status = answered(self.answer, message)
        if status != 200:
            answer = {"kind": "error", "text": answer["error"], "status": status}
        seq = message.get("seq", 0) if isinstance(message, Mapping) else 0
        return {**answer, "seq": seq}

    def answer(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Return the data that the front end gets for a message: a page, the heatmap, or an open
        trial.

        message: "kind" and the fields of that kind, see the methods. Raises UnknownMessage for
        a kind that does not exist.
        """
        kinds: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
            "page": self._answer_page,
            "axes": self._answer_axes,
            "open": self._answer_open,
            "next": self._answer_next,
            "bench": self._answer_bench,
            "note": self._answer_remark,
            "override": self._answer_remark,
        }
        kind = str(message.get("kind"))
        if kind not in kinds:
            raise UnknownMessage("no such message", got=kind, expected=", ".join(kinds))
        return kinds[kind](message)

    def _answer_page(self, message: Mapping[str, Any]) -> dict[str, Any]:
        query, start = dict(message.get("query") or {}), int(message.get("start") or 0)
        answer = {"kind": "page", **self._page(query, start)}
        if not start:
            answer["cells"] = self._rows.cells(query)
        return answer

    def _answer_axes(self, message: Mapping[str, Any]) -> dict[str, Any]:
        self._rows.set_axes(str(message.get("rows")), str(message.get("columns")))
        return self._answer_page({**message, "start": 0})

    def _answer_open(self, message: Mapping[str, Any]) -> dict[str, Any]:
        trial_id = str(message.get("trial_id"))
        row = self._rows.frame.iloc[self._rows.place(trial_id)]
        self.trial_id = trial_id
        names = ("target", "detail", "missing_reason", "error_message")
        facts = [[name, text_of_cell(row.get(name))] for name in names]
        answer: dict[str, Any] = {"kind": "trial", "trial_id": trial_id, "view": None}
        answer["title"] = " · ".join(text_of_cell(row.get(name)) for name in ("case_id", "model"))
        answer["outcome"] = _outcome_words(row)
        answer["asked"] = [["user", text_of_cell(row.get("input"))]]
        trial = self._trial(trial_id)
        try:
            result = self._result(trial_id, trial)
            setups = setups_of(trial or result)
            answer["sentence"] = verdict_sentence(result)
            answer["asked"] = conversation_of(setups[0]) or answer["asked"]
            if trial is not None and trial.blame.layer != "none":
                facts.append(["where it was lost", visible(trial.blame.explained())])
            if message.get("bench"):
                self._desk = Desk(setups)
                if values := message.get("values"):
                    self._desk.answer({"kind": "parse", "values": dict(values)})
                answer["bench"] = self._desk.state()
            else:
                answer["view"] = payload_of(result)
        except ToolparseError as e:
            facts.append(["no answer", visible(str(e))])
        answer["facts"] = [fact for fact in facts if fact[1]]
        answer["remarks"] = _remarks(trial)
        answer["copies"] = _copies(trial)
        return answer

    def _answer_next(self, message: Mapping[str, Any]) -> dict[str, Any]:
        # Apart from the trial, which is on the screen before all protocols have read it.
        trial_id = str(message.get("trial_id"))
        trial = self._trial(trial_id)
        result = self._result(trial_id, trial)
        steps = next_steps(setups_of(trial or result)[0], result)
        return {"kind": "next", "trial_id": trial_id, "steps": steps}

    def _answer_bench(self, message: Mapping[str, Any]) -> dict[str, Any]:
        if self._desk is None:
            raise BadOptions("no trial is on the workbench", got=self.trial_id)
        return {"kind": "bench", "reply": self._desk.answer(message.get("message"))}

    def _answer_remark(self, message: Mapping[str, Any]) -> dict[str, Any]:
        trial_id = str(message.get("trial_id"))
        if self._opener is None:
            raise BadOptions(
                "nothing can be kept with a frame alone", got=trial_id, hint="use run.browse()"
            )
        trial = self._opener(trial_id)
        if message["kind"] == "note":
            trial = trial.note(str(message.get("text") or ""))
        else:
            outcome = message.get("outcome") or None
            trial = trial.override(outcome, why=str(message.get("why") or ""))
        remarks = _remarks(trial)
        self._rows.set_cell(trial_id, "note", remarks["note"])
        self._rows.set_cell(trial_id, "override", remarks["outcome"])
        return {"kind": "remarks", "trial_id": trial_id, "remarks": remarks}

    # the view without a kernel

    def static_html(self) -> str:
        """Return the heatmap and the first failures as HTML without JavaScript, escaped."""
        cells = self._rows.cells({})
        numbers = self._rows.numbers({"failures": True})
        by_names = {(cell[0], cell[1]): cell for cell in cells["cells"]}
        return render(
            "notebook/templates/browser.html",
            uid=self._first["uid"],
            axes=cells["axes"],
            names=cells["columns"],
            rows=[
                (row, [_figure(by_names.get((row, name))) for name in cells["columns"]])
                for row in cells["rows"]
            ],
            summary=_summary(len(self._rows.frame), len(numbers)),
            failures=len(numbers),
            lines=self._rows.lines(numbers[:STATIC_LINES]),
        )

    def export_html(self, path: str | Path) -> Path:
        """Write the static view as one self-contained file, and return its path."""
        target = Path(path)
        target.write_text(render_page("Trials", self.static_html()), encoding="utf-8")
        return target

    def _ipython_display_(self) -> None:
        show_html(static_id(), repr(self), self.static_html(), super()._repr_mimebundle_())

    def __repr__(self) -> str:
        return f"Browser({_summary(len(self._rows.frame), int(self._rows.failed.sum()))})"


def _summary(trials: int, failures: int) -> str:
    return f"{counted(trials, 'trial')}, {counted(failures, 'failure')}"


def _figure(cell: list[Any] | None) -> dict[str, Any]:
    # The words of one cell of the heatmap, and its success as whole tenths.
    if cell is None:
        return {"words": "–", "interval": "", "tenths": 0}
    _, _, _, n, success, low, high = cell
    if success is None:
        return {"words": "–", "interval": f"n {n}", "tenths": 0}
    interval = f"{low:.0%} to {high:.0%}, n {n}" if low is not None else f"n {n}"
    return {"words": f"{success:.0%}", "interval": interval, "tenths": round(success * 10)}


def _outcome_words(row: Any) -> str:
    # The outcome, and what its code means beyond the reading of the calls, which has a sentence.
    outcome, code = (text_of_cell(row.get(name)) for name in ("outcome", "sub_code"))
    if outcome in ("", "ungraded"):
        return SUB_CODES.get(code, "")
    label = OUTCOMES[outcome].label if outcome in OUTCOMES else outcome
    return f"{label}: {SUB_CODES[code]}" if code in SUB_CODES else f"{label}."


def _remarks(trial: Any) -> dict[str, str]:
    # The notes of a person on a trial.
    remarks = getattr(trial, "remarks", None)
    if remarks is None:
        return {"note": "", "outcome": "", "why": ""}
    return {name: visible(getattr(remarks, name)) for name in ("note", "outcome", "why")}


def _copies(trial: Any) -> dict[str, str]:
    copies = {}
    for name in ("as_python", "as_curl"):
        try:
            copies[name] = visible(getattr(trial, name)()) if trial is not None else ""
        except (ToolparseError, AttributeError):  # nothing is recorded for it
            copies[name] = ""
    return {name: text for name, text in copies.items() if text}
