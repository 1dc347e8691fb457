"""Recorded texts as tests: each says what is to be read in it, and whether it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...core.errors import BadCase, UnknownProtocol
from ...core.types import ParseOptions, ParseResult
from ...entry.foreign.protocol import any_protocol
from ...entry.parse import parse_text
from ..cases.case import Case
from ..cases.loading import case_of_members
from ..cases.row_files import READERS, RowSource, is_packed, read_rows
from ..cases.rows import is_missing
from .outcomes import SUCCESSES, cause_of, first_error
from .score import Score, score_text

# Member of a case or a test -> its names in a row, the first that is there.
_NAMES: Mapping[str, tuple[str, ...]] = {
    "id": ("id", "case_id"),
    "raw": ("raw", "output"),
    "tools": ("tools",),
    "target": ("target", "calls"),
    "input": ("input", "prompt"),
    "messages": ("messages",),
    "protocol": ("protocol", "format"),
    "finish_reason": ("finish_reason",),
}
_OF_CASE = ("id", "tools", "target", "input", "messages")


@dataclass(frozen=True, slots=True)
class TextTest:
    """One text, and what is to be read in it.

    file, line: where it stands, a line of None where the file is the text. case: its tools and
    target. Without a target the text passes if nothing in it failed: every call may be executed,
    and none was lost.
    """

    file: str
    line: int | None
    case: Case
    raw: str
    protocol: str
    finish_reason: str | None = None

    @property
    def place(self) -> str:
        """Return the file, with the line if there is one."""
        return self.file if self.line is None else f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class TextVerdict:
    """Whether a test passed. `score` says why not."""

    test: TextTest
    result: ParseResult
    score: Score
    passed: bool

    def __str__(self) -> str:
        """Return the place, the id and the score in one line, then a line for each mismatch."""
        # A line of its own could speak to what reads logs.
        id = self.test.case.id.replace("\n", "⏎")
        return "\n".join([f"{self.test.place} {id}: {self.score}", *self.score.why[1:]])


def text_tests(
    file: str | Path, *, tools: Any = None, protocol: str = "auto"
) -> Iterator[TextTest]:
    """Yield the tests of a file of rows (raw, tools, protocol, target), or one of another file,
    whose whole content is the text. tools, protocol: those of rows that name none. Raises BadCase
    for the first row that cannot be one, and UnreadableInput.
    """
    path = Path(file)
    suffixes = {s.lower() for s in path.suffixes[-2:]}
    if not (suffixes & READERS.keys() or is_packed(path)):
        raw = path.read_bytes().decode("utf-8", "surrogateescape")
        case = case_of_members(
            {"id": path.name, "input": "", **({} if tools is None else {"tools": tools})},
            {},
            RowSource(str(path), iter(())),
            None,
        )
        yield TextTest(str(path), None, case, raw, protocol)
        return
    rows = read_rows(path)
    for line, row in rows.rows:
        if isinstance(row, BadCase):
            raise row
        yield _test_of(rows, line, row, tools, protocol)


def _test_of(rows: RowSource, line: int | None, row: Any, tools: Any, protocol: str) -> TextTest:
    if not isinstance(row, Mapping):
        raise rows.bad(
            "a test is an object", line, got=row, expected="raw, tools, protocol, target"
        )
    cells: dict[str, Any] = {}
    for name, words in _NAMES.items():
        word = next((word for word in words if word in row and not is_missing(row[word])), None)
        if word is not None:
            cells[name] = row[word]
    raw = cells.get("raw")
    if not isinstance(raw, str):
        raise rows.bad(
            "a test has a text in raw", line, "raw", got=raw, expected="the model's text"
        )
    members = {name: cells[name] for name in _OF_CASE if name in cells}
    members.setdefault("id", f"row-{line}")
    members["id"] = str(members["id"])
    if "messages" not in members:
        members.setdefault("input", "")
    if tools is not None:
        members.setdefault("tools", tools)
    case = case_of_members(members, {name: name for name in members}, rows, line)
    name = str(cells.get("protocol") or protocol)
    try:
        any_protocol(name)
    except UnknownProtocol as e:
        raise rows.bad(e.message, line, "protocol", got=e.got, hint=e.hint) from None
    return TextTest(rows.name, line, case, raw, name, cells.get("finish_reason"))


def run_test(test: TextTest, options: ParseOptions | None = None) -> TextVerdict:
    """Parse a test's text and judge it."""
    case = test.case
    request = case.messages if case.input else None
    result = parse_text(test.raw, test.protocol, case.tools, options, request=request)
    score = score_text(case, result, finish_reason=test.finish_reason)
    if case.target is None:
        code = first_error(result)
        passed = not cause_of(score.outcome, score.sub_code, code, graded=False)
        if not passed and score.outcome == "ungraded":
            score = replace(score, detail=result.why().splitlines()[0])
    else:
        passed = score.outcome in SUCCESSES
    return TextVerdict(test, result, score, passed)
