"""Cases: what is asked, with which tools, and which calls would be right."""

from __future__ import annotations

import html
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, overload

from ...errors import BadCase, BadOptions, BadToolSpec
from ...toolspec import ToolSpec, tool_specs
from ...values import write_canonical
from .final_text import check_answer
from .rows import Errors, Others
from .target import check_target
from .tool_results import check_results

KEYS = ("id", "input", "tools", "target", "results", "answer", "metadata")
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_TOOLS = "a list of tool definitions with different names"


@dataclass(frozen=True, slots=True)
class Case:
    """One question with its right answer.

    `input` is the user's text or a list of OpenAI messages. `target` is a list of ``{"name", "arguments"}``; ``[]``
    says that no call is right, None that the case is not graded. Values of a target may be alternatives, see
    `toolparse_lab.evals.scoring.match`. For conversations of several turns, `results` says what the tools give back
    (see `toolparse_lab.evals.cases.tool_results`), and `answer` what the last text is to say (see
    `toolparse_lab.evals.cases.final_text`).

    >>> Case("c1", "Weather in Paris?", metadata={"category": "simple"}).category
    'simple'
    """

    id: str
    input: str | list[dict[str, Any]]
    tools: tuple[ToolSpec, ...] = ()
    target: list[Any] | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    results: tuple[dict[str, Any], ...] = ()
    answer: Any = None

    @property
    def category(self) -> str:
        """The category named in the metadata, or ''."""
        return str(self.metadata.get("category", ""))

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The input as fresh OpenAI messages."""
        if isinstance(self.input, str):
            return [{"role": "user", "content": self.input}]
        return [dict(m) for m in self.input]

    @property
    def input_text(self) -> str:
        """The input on one page: the text itself, or the messages as canonical JSON."""
        return self.input if isinstance(self.input, str) else write_canonical(self.input)

    def __hash__(self) -> int:
        return hash(self.id)

    def to_dict(self) -> dict[str, Any]:
        """The row `load_cases` reads back; `target` is left out where the case is ungraded. Cases share their tools'
        schemas: they are not to be changed."""
        tools = [{"name": t.name, "description": t.description, "parameters": t.schema} for t in self.tools]
        row: dict[str, Any] = {"id": self.id, "input": self.input, "tools": tools}
        if self.target is not None:
            row["target"] = self.target
        if self.results:
            row["results"] = [dict(r) for r in self.results]
        if self.answer is not None:
            row["answer"] = self.answer
        if self.metadata:
            row["metadata"] = self.metadata
        return row


@dataclass(frozen=True, slots=True)
class Skipped:
    """Rows of a source that became no cases: what they are, how many, and why."""

    name: str
    count: int
    reason: str

    def __str__(self) -> str:
        return f"{self.name} {self.count}: {self.reason}"


class Cases(Sequence[Case]):
    """An immutable sequence of cases with different ids; slices, samples and filters are Cases again.

    `skipped` says which rows of the source an importer had no way to express as cases.
    """

    __slots__ = ("_by_id", "_cases", "skipped", "source")

    def __init__(self, cases: Iterable[Case] = (), source: str = "", skipped: Iterable[Skipped] = ()) -> None:
        self._cases = tuple(cases)
        self.source = source
        self.skipped = tuple(skipped)
        self._by_id: dict[str, Case] = {}
        for case in self._cases:
            if not isinstance(case, Case):
                raise BadCase("not a Case", source=source, got=case, hint="use load_cases for rows")
            if case.id in self._by_id:
                raise BadCase("two cases have the same id", source=source, got=case.id)
            self._by_id[case.id] = case

    def __len__(self) -> int:
        return len(self._cases)

    def __iter__(self) -> Iterator[Case]:
        return iter(self._cases)

    def __contains__(self, x: object) -> bool:
        return x in self._by_id if isinstance(x, str) else x in self._cases

    @overload
    def __getitem__(self, at: int | str) -> Case: ...
    @overload
    def __getitem__(self, at: slice) -> Cases: ...
    def __getitem__(self, at: int | str | slice) -> Case | Cases:
        """A case by position or id, or Cases by slice."""
        if isinstance(at, slice):
            return Cases(self._cases[at], self.source)
        if isinstance(at, str):
            try:
                return self._by_id[at]
            except KeyError:
                raise BadCase("no case of this id", source=self.source, got=at) from None
        return self._cases[at]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cases) and self._cases == other._cases

    def __hash__(self) -> int:
        return hash(self._cases)

    def __add__(self, other: Cases) -> Cases:
        return Cases((*self._cases, *other._cases), self.source or other.source)

    def categories(self) -> dict[str, int]:
        """How many cases each category has, by name."""
        return dict(sorted(Counter(c.category for c in self._cases).items()))

    def filter(self, where: Callable[[Case], bool] | None = None, **equal: Any) -> Cases:
        """The cases for which `where` is true and whose attributes or metadata equal the keywords.

        >>> cases = Cases([Case("a", "x", metadata={"category": "one"}), Case("b", "y")])
        >>> [c.id for c in cases.filter(category="one")]
        ['a']
        """
        kept = []
        for case in self._cases:
            if where is not None and not where(case):
                continue
            if all(_attribute(case, k) in _as_options(v) for k, v in equal.items()):
                kept.append(case)
        return Cases(kept, self.source)

    def sample(self, n: int, by: str | None = "category", seed: int = 1) -> Cases:
        """`n` cases, the same for the same seed, shared out over the values of `by` in proportion to their number.

        Every stratum gets at least one case while there are enough; the order of the file is kept. `n` above the
        number of cases gives all of them.
        """
        if isinstance(n, bool) or not isinstance(n, int) or n < 0:
            raise BadOptions("a sample has a size", got=n, expected="an integer of 0 or more")
        if n >= len(self._cases):
            return self
        strata: dict[str, list[int]] = {}
        for i, case in enumerate(self._cases):
            strata.setdefault(str(_attribute(case, by)) if by else "", []).append(i)
        picked: list[int] = []
        for name, size in _shares({k: len(v) for k, v in sorted(strata.items())}, n).items():
            # A generator of its own for each stratum, so that new cases elsewhere do not change this pick.
            picked += random.Random(f"{seed}:{name}").sample(strata[name], size)  # noqa: S311
        return Cases((self._cases[i] for i in sorted(picked)), self.source)

    def __repr__(self) -> str:
        graded = sum(c.target is not None for c in self._cases)
        kinds = ", ".join(f"{name or 'no category'} {n}" for name, n in self.categories().items())
        left = sum(s.count for s in self.skipped)
        more = f"; {left} rows skipped, see .skipped" if left else ""
        return f"Cases({len(self)} cases, {graded} graded{f'; {kinds}' if kinds else ''}{more})"

    def _repr_html_(self) -> str:
        line = "border-top:1px solid rgba(128,128,128,.35);padding:.25em .75em;text-align:left"
        rows = [
            (name or "no category", self.filter(lambda c, name=name: c.category == name))  # type: ignore[misc]
            for name in self.categories()
        ]
        body = "".join(
            f'<tr><td style="{line}">{html.escape(name)}</td>'
            + "".join(f'<td style="{line};text-align:right">{n}</td>' for n in _tallies(part))
            + "</tr>"
            for name, part in [*rows, ("all", self)]
        )
        head = "".join(
            f'<th style="{line};border-top:0">{h}</th>'
            for h in ("category", "cases", "want calls", "must abstain", "ungraded", "tools")
        )
        where = f" from {html.escape(Path(self.source).name)}" if self.source else ""
        return (
            f'<div style="overflow-x:auto"><table style="border-collapse:collapse;font-variant-numeric:tabular-nums">'
            f'<caption style="text-align:left;padding:.25em .75em">{len(self)} cases{where}</caption>'
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{self._skipped_html()}</div>"
        )

    def _skipped_html(self) -> str:
        lines = "".join(f"<li>{html.escape(str(s))}</li>" for s in self.skipped)
        return f"<p>Skipped:</p><ul>{lines}</ul>" if lines else ""


def _tallies(cases: Cases) -> tuple[int, ...]:
    return (
        len(cases),
        sum(bool(c.target) for c in cases),
        sum(c.target == [] for c in cases),
        sum(c.target is None for c in cases),
        len({t.name for c in cases for t in c.tools}),
    )


def _attribute(case: Case, name: str) -> Any:
    return getattr(case, name) if name in ("id", "input", "tools", "target", "category") else case.metadata.get(name)


def _as_options(x: Any) -> Any:
    return x if isinstance(x, (list, tuple, set, frozenset)) else (x,)


def _shares(sizes: dict[str, int], n: int) -> dict[str, int]:
    """`n` shared out in proportion to `sizes` by largest remainder, each at least 1 while `n` allows it."""
    total = sum(sizes.values())
    floor = 1 if n >= len(sizes) else 0
    shares = {k: min(size, max(floor, n * size // total)) for k, size in sizes.items()}
    while (short := n - sum(shares.values())) != 0:
        step = 1 if short > 0 else -1
        open_ = [k for k in shares if (shares[k] < sizes[k] if step > 0 else shares[k] > floor)]
        shares[max(open_, key=lambda k: (step * (n * sizes[k] / total - shares[k]), k))] += step
    return shares


def pack_cases(cases: Iterable[Case]) -> list[dict[str, Any]]:
    """Rows of JSON in which tools stand once: a later case with the same ones names the first in ``tools_of``."""
    first: dict[tuple[ToolSpec, ...], str] = {}
    rows = []
    for case in cases:
        row = case.to_dict()
        if case.tools and first.setdefault(case.tools, case.id) != case.id:
            row["tools_of"] = first[case.tools]
            del row["tools"]
        rows.append(row)
    return rows


def unpack_cases(rows: Iterable[Mapping[str, Any]], source: str = "") -> Cases:
    """The inverse of `pack_cases`; rows in which all tools stand are read as well. Raises BadCase."""
    cases: dict[str, Case] = {}
    for row in rows:
        row = dict(row)
        same = cases[row.pop("tools_of")].tools if "tools_of" in row else None
        case = read_case(row if same is None else {**row, "tools": same}, source=source)
        cases[case.id] = case
    return Cases(cases.values(), source)


def load_cases(
    source: Any,
    *,
    columns: Mapping[str, str | None] | None = None,
    others: Others = "error",
    split: str | None = None,
    errors: Errors = "raise",
) -> Cases:
    """Cases from a file (JSONL, a JSON array, CSV, Parquet; by its suffix), a pandas frame, a Hugging Face data set,
    rows (mappings) or Case objects; from the Berkeley Function Calling Leaderboard as ``"bfcl"``, ``"bfcl:live"`` or
    the path of its wheel (see `toolparse_lab.evals.cases.bfcl`).

    columns: what the source calls things, ``{"question": "input", "notes": None}``; None leaves a column out. others:
    what becomes of columns that are not known: an error, members of the metadata, or nothing. split: which part of a
    DatasetDict. errors: all rows that cannot be read in one error, or skipped and counted in `Cases.skipped`.

    Raises BadCase naming file, line and column for rows that cannot be read (`BadCase.rows` where there are several),
    UnreadableInput for a file that cannot, BadOptions for the arguments.

    >>> rows = [{"nr": 1, "question": "Weather in Oslo?", "target": []}]
    >>> load_cases(rows, columns={"nr": "id", "question": "input"})[0].input
    'Weather in Oslo?'
    """
    from .loading import load  # it needs this module

    return load(source, columns=columns, others=others, split=split, errors=errors)


def read_case(row: Any, *, source: str = "", line: int | None = None, unit: str = "line") -> Case:
    """One row to a Case; raises BadCase."""

    def bad(message: str, got: object, expected: object, hint: str | None = None) -> BadCase:
        return BadCase(message, source=source, line=line, unit=unit, got=got, expected=expected, hint=hint)

    if not isinstance(row, Mapping):
        raise bad("a case is a JSON object", row, "an object with " + ", ".join(KEYS))
    if unknown := [str(k) for k in row if k not in KEYS]:
        raise bad("unknown key", ", ".join(unknown), ", ".join(KEYS), "put what is your own under metadata")
    case_id = row.get("id")
    if isinstance(case_id, int) and not isinstance(case_id, bool):
        case_id = str(case_id)
    if not isinstance(case_id, str) or not case_id.strip():
        raise bad("a case has an id", repr(case_id) if "id" in row else "no id", "a text that is not empty")
    if not is_storable(case_id):
        raise bad("an id holds a character that no database holds", ascii(case_id), "no NUL and no lone surrogate")
    question = _read_input(row.get("input"), bad)
    try:
        tools = tool_specs(row.get("tools"))
    except BadToolSpec as e:
        raise bad(
            f"the tools of case {case_id!r} cannot be read: {e.message}", e.got, e.expected or _TOOLS, e.hint
        ) from None
    target = row.get("target")
    if target is not None:
        if not isinstance(target, list):
            raise bad(
                f"the target of case {case_id!r} is not a list", target,
                'a list of {"name", "arguments"}; [] where no call is right; no target where it is not graded',
            )  # fmt: skip
        if complaint := check_target(target):
            raise bad(f"the target of case {case_id!r} cannot be read: {complaint[0]}", complaint[1], complaint[2])
    results, answer = row.get("results"), row.get("answer")
    if results is not None and (complaint := check_results(results, tools)):
        raise bad(f"the results of case {case_id!r} cannot be read: {complaint[0]}", complaint[1], complaint[2])
    if answer is not None and (complaint := check_answer(answer)):
        raise bad(f"the answer of case {case_id!r} cannot be read: {complaint[0]}", complaint[1], complaint[2])
    metadata = row.get("metadata")
    if metadata is not None and not isinstance(metadata, Mapping):
        raise bad(f"the metadata of case {case_id!r} are no object", metadata, "an object")
    found = tuple(dict(r) for r in results or ())
    return Case(case_id, question, tools, target, dict(metadata or {}), found, answer)


def is_storable(name: str) -> bool:
    """Whether a name can be a key of a database: no NUL, no lone surrogate."""
    return not _UNSTORABLE.search(name)


def _read_input(x: Any, bad: Callable[..., BadCase]) -> str | list[dict[str, Any]]:
    expected = "a text, or a list of messages with role and content"
    if isinstance(x, str):
        return x
    if isinstance(x, (list, tuple)) and x:
        for m in x:
            if not isinstance(m, Mapping) or not isinstance(m.get("role"), str):
                raise bad("a message of the input has no role", m, expected)
        return [dict(m) for m in x]
    raise bad("the input is neither a text nor messages", "no input" if x is None else x, expected)
