"""The trials of a frame as the browser goes through them: chosen by a query, counted by cells, and
one line each with the place of its answer that matters most.
"""

# How it works. A query becomes one boolean mask over the frame, so that 100,000 rows cost a few
# vector operations; only the rows of the page that is on screen are parsed, for their excerpts.

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ....core.errors import BadOptions, NoSuchItem, UnknownName, near
from ....core.rules import CODES
from ....core.types import ParseResult, Span
from ....views.marks import member_marks
from ....views.rows import Fault, doubled_keys, sentence_of
from ....views.sentences import question_of
from ....views.show import visible
from ....views.words import Group, cause_words, groups_of, word_of
from ...frames.account import causes, failing_rows
from ...frames.parsing import try_read_row
from ...scoring.exports import faults_of
from . import stats
from .cells import (
    check_by,
    check_trials,
    clusters_of,
    executable_of,
    groups,
    judged_of,
    read_under,
)  # fmt: skip

CAUSE = "cause"
"""The column that says in a word why a row failed, see `outcomes.cause_of`."""
_NOTES = frozenset({"call.in-content", "call.recovered", "call.missing-closer", "call.repeated"})
GROUP = "group"
"""The column that says in a word for people what an answer is: the word of its cause, else how it
was read, or that it is right."""
_RIGHT = "right"
_FILLS = {"after repair": "f-rep", "after lossy repair": "f-rep", "no call": "f-no"}
FACETS = (
    GROUP, "verdict", CAUSE, "model", "arm", "prompt_protocol", "category", "outcome", "sub_code",
)  # fmt: skip
"""Columns that are chosen by their values, as far as a frame has them."""
COUNTED = {"code": "codes_json", "rule": "rules_json", "tool": "called_json"}
"""Filters by a key of a column of counts."""
_EXECUTABLE = "executable"
_MATCHING = "matching the query"
_SEARCHED = ("raw", "input", "detail", "case_id", "trial_id")
_MOST_VALUES = 200  # values of a facet that are offered
_PARSED = 50_000  # characters of an answer that is parsed for its line
_BEFORE, _MARKED, _AFTER = 32, 80, 240  # characters of an excerpt
_TAIL = 36  # characters before the place where an answer was cut off, which a phone shows
_CALL, _CALLS = 300, 4  # characters of a call; calls of a line
Numbers = npt.NDArray[np.intp]


class TrialRows:
    """The rows of one policy of a trials frame, and the two columns of its heatmap.

    calls: their calls frame, by which they can be filtered by tool. cluster: the column that
    intervals go by, as in a report.

    Raises BadOptions for a frame without the columns of a trials frame, for a column that it lacks,
    and for one column named twice.
    """

    def __init__(
        self,
        frame: pd.DataFrame,
        rows: str | None = None,
        columns: str | None = None,
        policy: str = "safe",
        calls: pd.DataFrame | None = None,
        cluster: str | None = None,
    ) -> None:
        check_trials(frame)
        self.policy = policy
        # A frame of the trials of one other policy is that one's.
        headline = read_under(frame, (), policy)
        self.frame = (headline if len(headline) else frame).reset_index(drop=True)
        self.frame[CAUSE] = causes(self.frame)
        self.failed = np.asarray(self.frame.index.isin(failing_rows(self.frame).index), dtype=bool)
        self.answered = self.failed | np.array(self.frame[CAUSE] == "", dtype=bool)
        self.failing = 0  # of the groups, how many are of failures
        self.frame[GROUP], self.groups = self._grouped()
        if calls is not None:
            self.frame[COUNTED["tool"]] = self._called(calls)
        self.has_targets = bool(self.frame["score_success"].notna().any())
        if not self.has_targets and "verdict" in self.frame:
            self.frame[_EXECUTABLE] = executable_of(self.frame)
        self.set_axes(rows or "prompt_protocol", columns or "model")
        self._places: dict[str, int] | None = None
        self._clusters = clusters_of(self.frame, cluster)
        self._masks: dict[str, npt.NDArray[np.bool_]] = {}

    def _grouped(self) -> tuple[list[str], list[Group]]:
        # The word of each row; the groups of failures, then those of the others, the rarest first.
        # A request without an answer is no failure.
        causes = self.frame[CAUSE].tolist()
        verdicts = self.frame["verdict"] if "verdict" in self.frame else self.frame[CAUSE]
        targets = self.frame["target"].notna() if "target" in self.frame else verdicts == "?"
        told: dict[tuple[str, str, bool], str] = {}
        words = []
        texts = verdicts.astype("string").fillna("").tolist()
        for key in zip(causes, texts, targets.tolist(), strict=True):
            if key not in told:
                cause, verdict, graded = key
                fine = _RIGHT if graded else word_of(verdict or "none")
                told[key] = cause_words(cause).word if cause else fine
            words.append(told[key])
        bad = groups_of(self.frame[CAUSE][self.failed])
        self.failing = len(bad)
        others = groups_of(self.frame[CAUSE][~self.failed])
        read = (word for word, cause in zip(words, causes, strict=True) if not cause)
        for word, n in Counter(read).items():
            others.append(Group(word, "", _FILLS.get(word, "f-ok"), {word: n}))
        return words, [*bad, *sorted(others, key=lambda group: group.n)]

    def set_axes(self, rows: str, columns: str) -> None:
        """Set the two columns of the heatmap. Raises BadOptions."""
        if rows == columns:
            raise BadOptions("a heatmap has two different columns", got=rows)
        check_by(self.frame, [rows, columns])
        self.axes = (rows, columns)

    def _called(self, calls: pd.DataFrame) -> list[str]:
        names: dict[str, dict[str, int]] = {}
        for trial_id, name in zip(calls["trial_id"], calls["name"], strict=True):
            if isinstance(name, str) and name:
                of_trial = names.setdefault(trial_id, {})
                of_trial[name] = of_trial.get(name, 0) + 1
        # Most trials call one of few tools, once.
        texts: dict[tuple[Any, ...], str] = {}
        column = []
        for trial_id in self.frame["trial_id"]:
            counts = names.get(trial_id, {})
            key = tuple(counts.items())
            if key not in texts:
                texts[key] = json.dumps(counts)
            column.append(texts[key])
        return column

    def place(self, trial_id: str) -> int:
        """Return the row number of a trial. Raises UnknownName for an id that no row has."""
        if self._places is None:
            ids = self.frame["trial_id"].astype("string").fillna("")
            self._places = {trial_id: i for i, trial_id in enumerate(ids)}
        if trial_id not in self._places:
            raise UnknownName("there is no such trial", got=trial_id, code="unknown-trial")
        return self._places[trial_id]

    def facets(self) -> dict[str, list[str]]:
        """Return the values of each filter that these rows have, and under "axes" the columns that
        a heatmap can go by.
        """
        facets = {}
        for name in (c for c in FACETS if c in self.frame):
            values = self.frame[name].dropna().unique()
            facets[name] = [str(value) for value in values if value != ""][:_MOST_VALUES]
        for name, column in COUNTED.items():
            if column in self.frame:
                texts = self.frame[column].dropna().unique()
                keys = {key for text in texts for key in json.loads(str(text) or "{}")}
                facets[name] = sorted(keys)[:_MOST_VALUES]
        metadata = [str(name) for name in self.frame if str(name).startswith("metadata_")]
        names = ("policy", "parse_protocol", *FACETS, *metadata)
        facets["axes"] = [name for name in dict.fromkeys(names) if name in self.frame]
        return facets

    def set_cell(self, trial_id: str, column: str, text: str) -> None:
        """Set the text of one cell of a trial, where the frame has the column."""
        if column in self.frame:
            at = list(self.frame.columns).index(column)
            self.frame.iloc[self.place(trial_id), at] = text or None

    def cells(self, query: Mapping[str, Any]) -> dict[str, Any]:
        """Return the heatmap: axes, names and cells with a count, what it was counted of, the
        share, in which each case counts once, and its interval, None if there was nothing to count.

        "measure" says what is counted: success, and where no row has a target, the answers whose
        calls may all be executed. With a filter it is the share of a cell's own answers that match
        it.
        """
        judged = "score_success" if self.has_targets else _EXECUTABLE
        # Taking all columns of 100,000 rows apart would cost more than all else.
        needed = list(dict.fromkeys((*self.axes, judged, "case_id")))
        part = self.frame[needed]
        filtering = any(query.get(name) for name in ("where", *COUNTED, "text"))
        if filtering:
            judged = _MATCHING
            mask = self._mask({**query, "cell": None})
            part = part.assign(**{judged: mask})
        cells: list[list[Any]] = []
        for names, trials in groups(part, self.axes):
            successes, cases = judged_of(trials, judged)
            interval = stats.clustered_interval(successes, cases, clusters=self._clusters)
            numbers = (interval.rate, interval.low, interval.high)
            figures = [None if math.isnan(number) else number for number in numbers]
            cells.append([*names, sum(successes), len(successes), *figures])
        rows, columns = (sorted({cell[axis] for cell in cells}) for axis in (0, 1))
        measure = "success" if self.has_targets else "answers whose calls may all be executed"
        measure = "answers that match, of the cell's own" if filtering else measure
        axes = {"axes": self.axes, "rows": rows, "columns": columns}
        return {"measure": measure, **axes, "cells": cells}

    def _mask(self, query: Mapping[str, Any]) -> npt.NDArray[np.bool_]:
        # Lines, counts and heatmap of one query ask for the same rows.
        admitting = ("where", "cell", *COUNTED, "text")
        key = str((self.axes, [(name, query.get(name) or None) for name in admitting]))
        if key not in self._masks:
            self._masks = {key: self._admitted(query)}
        return self._masks[key]

    def _admitted(self, query: Mapping[str, Any]) -> npt.NDArray[np.bool_]:
        mask = np.ones(len(self.frame), dtype=bool)
        for name, value in zip(self.axes, query.get("cell") or (), strict=False):
            mask &= self._equals(name, [value])
        for name, values in (query.get("where") or {}).items():
            if values:
                mask &= self._equals(name, values)
        for name, column in COUNTED.items():
            if key := query.get(name):
                if column not in self.frame:
                    raise BadOptions("these rows are not known by it", got=f"{name} {key}")
                mask &= _holds(self.frame[column], f"{json.dumps(key)}:")
        if text := query.get("text"):
            columns = [self.frame[name] for name in _SEARCHED if name in self.frame]
            mask &= np.logical_or.reduce([_holds(column, text, fold=True) for column in columns])
        return mask

    def _equals(self, name: str, values: Sequence[str]) -> npt.NDArray[np.bool_]:
        if name not in self.frame:
            raise BadOptions("no such column", got=name, hint=near(name, self.frame))
        texts = self.frame[name].astype("string").fillna("")
        return np.asarray(texts.isin(list(values)), dtype=bool)

    def members(self, query: Mapping[str, Any]) -> dict[str, Numbers]:
        """Return the numbers of the rows that a query admits, by the number of their group.

        query: "where" (column -> values), "cell" (the values of both axes), "code", "rule" and
        "tool", and "text" that is in the answer, the question or the reason. Raises BadOptions for
        a column that the frame lacks.
        """
        admitted = np.flatnonzero(self._mask(query))
        words = self.frame[GROUP].to_numpy()[admitted]
        # A failure and an answer that is none may share a word.
        failed = self.failed[admitted]
        found = {}
        for i, group in enumerate(self.groups):
            numbers = admitted[(words == group.word) & (failed == (i < self.failing))]
            if len(numbers):
                found[str(i)] = numbers
        return found

    def counts(self, members: Mapping[str, Numbers], column: str) -> dict[str, dict[str, int]]:
        """Return for each group of `members` how many have each value of a column."""
        texts = self.frame[column].astype("string").fillna("").to_numpy()
        return {
            key: {
                str(k): int(n)
                for k, n in zip(
                    *np.unique(texts[rows].astype(str), return_counts=True), strict=True
                )
            }
            for key, rows in members.items()
        }

    def sizes(self, column: str) -> dict[str, int]:
        """Return how many answers have each value of a column."""
        texts = self.frame.loc[self.answered, column].astype("string").fillna("")
        return {str(k): int(n) for k, n in texts.value_counts().items()}

    def same_case(self, number: int) -> list[int]:
        """Return the numbers of the other rows with the case of a row."""
        same = np.asarray(self.frame["case_id"] == self.frame["case_id"].iloc[number], dtype=bool)
        return [int(other) for other in np.flatnonzero(same) if other != number]

    def notes(self) -> list[tuple[str, str]]:
        """Return (how many answers, words) of the notes and repairs of all rows, the most frequent
        first.
        """
        found: dict[str, int] = {}
        for column in ("codes_json", "rules_json"):
            if column in self.frame:
                for text, n in self.frame[column].dropna().astype(str).value_counts().items():
                    for code in json.loads(str(text) or "{}"):
                        if code not in CODES or code in _NOTES:
                            found[code] = found.get(code, 0) + int(n)
        words = sorted(found.items(), key=lambda pair: -pair[1])[:8]
        return [(f"{n:,}", visible(sentence_of(code) or code)) for code, n in words]

    def lines(self, numbers: Numbers) -> list[dict[str, Any]]:
        """Return one line for each row number, its texts visible: ids, outcome, cause, detail, the
        question, the calls in words, and the excerpt [before, marked, after] of the answer, with
        what was expected there.
        """
        names = ("trial_id", "case_id", *FACETS, "detail", "missing_reason", "note", "override")
        lines: list[dict[str, Any]] = []
        for number in map(int, numbers):
            row = self.frame.iloc[number]
            raw = row.get("raw")
            result, faults = self.read(number)
            lines.append({name: text_of_cell(row.get(name)) for name in names})
            lines[-1] |= {
                "failed": bool(self.failed[number]),
                "question": question_of(text_of_cell(row.get("input"))),
                "calls": [] if result is None else _calls_in_words(result),
                "excerpt": _excerpt(raw, result, faults),
                "expected": _expected(result, faults),
                "ends": _end_of(result) is not None,
            }
        return lines

    def read(self, number: int) -> tuple[ParseResult | None, list[Fault]]:
        """Return the parse of a row, None for a long or unreadable text, and where it is not what
        was expected.
        """
        row = self.frame.iloc[number]
        raw = row.get("raw")
        is_long = isinstance(raw, str) and len(raw) > _PARSED
        result = None if is_long else try_read_row(row)
        return result, faults_in(row, result) if self.failed[number] else []

    def exact(self, group: Group, most: int = 100) -> str:
        """Return what exactly is wrong in the answers of a group, as far as the first ones say."""
        numbers = np.flatnonzero((self.frame[GROUP] == group.word).to_numpy() & self.failed)
        if group.fill == "f-1" and "sub_code" in self.frame:
            codes = self.frame["sub_code"].astype("string").fillna("").iloc[numbers]
            known = [cause_words(code).detail for code in codes]
            said = list(known)
        else:
            said = []
            for number in map(int, numbers[:most]):
                said += [words for words in [exactly(*self.read(number))] if words]
        counts = pd.Series([text for text in said if text], dtype="object").value_counts()
        if not len(counts):
            return ""
        if len(counts) == 1 and len(said) == len(numbers):
            return f"all: {counts.index[0]}"
        told = ", ".join(f"{n} {text}" for text, n in counts.head(3).items())
        more = f", and {len(counts) - 3:,} more" if len(counts) > 3 else ""
        first = f"of the first {most}: " if len(numbers) > most and group.fill != "f-1" else ""
        return f"{first}{told}{more}"


def exactly(result: ParseResult | None, faults: Sequence[Fault]) -> str:
    """Return in a few words what is wrong: the value, the key, or the tool."""
    made = [fault for fault in faults if fault.call is not None]
    if made:
        fault = made[0]
        return visible(fault.path.removeprefix("/") or fault.found)[:60]
    for call in result.calls if result else ():
        for problem in call.problems:
            if problem.severity != "error":
                continue
            if problem.code == "call.unknown-tool":
                return visible(call.name)[:60]
            name = problem.path.removeprefix("/")
            if name and problem.span is not None and result is not None:
                text = problem.span.of(result.raw)
                return visible(f"{name} is {json.dumps(text, ensure_ascii=False)}")[:60]
            key = next(iter(doubled_keys(call)), "")
            return visible(key or problem.message.removeprefix("missing: "))[:60]
    return ""


def faults_in(row: Any, result: ParseResult | None) -> list[Fault]:
    """Return where the answer of a failed row is not what was expected."""
    target = row.get("target")
    if result is None or not isinstance(target, str):
        return []
    try:
        return faults_of(result, json.loads(target), result.tools)
    except (ValueError, KeyError, TypeError):  # a target that is none, from a frame of others
        return []


def _holds(column: pd.Series[Any], text: str, fold: bool = False) -> npt.NDArray[np.bool_]:
    # fold: capitals count as small letters.
    contains = column.astype("string").str.contains(text, regex=False, case=not fold, na=False)
    return np.asarray(contains, dtype=bool)


def text_of_cell(value: Any) -> str:
    """Return a cell as text that can be seen. A missing one is ''."""
    return "" if value is None or value is pd.NA or value != value else visible(str(value))


def _calls_in_words(result: ParseResult) -> list[str]:
    # Each as name(arguments) in one line, as far as it was read.
    words = [f"{call.name or '?'}({call.arguments_json or '…'})" for call in result.calls]
    return [visible(text[:_CALL]).replace("\n", "⏎") for text in words[:_CALLS]]


def _excerpt(raw: Any, result: ParseResult | None, faults: Sequence[Fault]) -> list[str]:
    """Return [before, marked, after] of an answer around its first problem, else its first change,
    else its first call. The marked part is '' if there is none of them.
    """
    if not isinstance(raw, str):
        return ["", "", ""]
    span = None
    if result is not None:
        raw, span = result.raw, place_of(result, faults)
    start, end = (span.start, span.end) if span is not None else (0, 0)
    if (cut := _end_of(result)) is not None:
        return ["…" + _line(raw[cut - _TAIL : cut]) if cut > _TAIL else _line(raw[:cut]), "", ""]
    first = max(0, start - _BEFORE)
    parts = raw[first:start], raw[start : min(end, start + _MARKED)], raw[end : end + _AFTER]
    before, marked, after = map(_line, parts)
    return [f"…{before}" if first else before, marked, after]


def _line(text: str) -> str:
    return visible(text).replace("\n", "⏎").replace("\t", " ")


def _expected(result: ParseResult | None, faults: Sequence[Fault]) -> str:
    # Beside what was found; of an answer with no call, the call.
    if result is None or not faults or (faults[0].call is None and result.calls):
        return ""
    return visible(faults[0].expected or "none")


def _end_of(result: ParseResult | None) -> int | None:
    # Where an answer was cut off, None for one that was not.
    for call in result.calls if result else ():
        for problem in call.problems:
            if problem.code == "call.truncated" and problem.span is not None:
                return problem.span.end
    return None


def place_of(result: ParseResult, faults: Sequence[Fault] = ()) -> Span | None:
    """Return the span of a parse that a reader should see first, None if there is none."""
    for fault in faults:
        if fault.call is not None and fault.call < len(result.calls):
            call = result.calls[fault.call]
            with suppress(NoSuchItem):
                span = call.origin(fault.path).span if fault.path else call.name_span
                if span is not None:
                    return span
    problems = sorted(result.all_problems(), key=lambda problem: problem.severity != "error")
    spans = [problem.span for problem in problems if problem.span]
    spans += [edit.span for call in result.calls for edit in call.edits if edit.span]
    steps = [step for call in result.calls for step in call.steps if step.stage == "coerce"]
    spans += [step.span for step in steps if step.span]
    # Of a call as it was written nothing is marked.
    starts = [(call.name_span or call.segment.span).start for call in result.calls]
    spans += [Span(start, start) for start in starts]
    if not spans:
        return None
    # Of a key with two values both members, and not one character of one.
    members = [mark.span for call in result.calls for mark in member_marks(call, result.raw)]
    if any(span.covers(spans[0]) for span in members):
        return Span(min(span.start for span in members), max(span.end for span in members))
    return spans[0]
