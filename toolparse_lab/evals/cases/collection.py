"""Many cases: an immutable sequence that is filtered, sampled and shown, and packed for storage."""

# How it works. The cases are a tuple with an index by id; methods that choose return new Cases
# over the same objects. Which cases a sample takes of a stratum depends on the seed and on that
# stratum alone, so that most of it stays the same when a file grows elsewhere.

from __future__ import annotations

import html
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

from ...core.errors import BadCase, BadOptions, near
from ...core.toolspec import ToolSpec
from ...core.values.printable import counted, printable
from .case import Case, read_case

# What `Cases.filter` and `Cases.sample` look up in the case itself, not in its metadata.
_ATTRIBUTES = frozenset({"id", "input", "tools", "target", "category"})
_TITLES = ("category", "cases", "want calls", "must abstain", "ungraded", "tools")
_CELL = "border-top:1px solid rgba(128,128,128,.35);padding:.25em .75em;text-align:left"


@dataclass(frozen=True, slots=True)
class Skipped:
    """Rows of a source that became no cases: what they are, how many, and why."""

    name: str
    count: int
    reason: str

    def __str__(self) -> str:
        """Return one line: the skipped rows, how many rows, and why."""
        return printable(f"{self.name} {self.count}: {self.reason}")


class Cases(Sequence[Case]):
    """An immutable sequence of cases with different ids.

    Slices, samples and filters are Cases again.

    `skipped` has the rows of the source that an importer could not turn into cases, with reasons.

    >>> import toolparse_lab as tp
    >>> cases = tp.Cases([tp.Case("a", "Hello?"), tp.Case("b", "Oslo?")])
    >>> cases["b"].input, len(cases[:1])
    ('Oslo?', 1)
    """

    __slots__ = ("_by_id", "_cases", "skipped", "source")

    def __init__(
        self, cases: Iterable[Case] = (), source: str = "", skipped: Iterable[Skipped] = ()
    ) -> None:
        """source: their origin, shown in errors and reprs. skipped: its rows that became no cases.

        Raises BadCase for anything that is not a Case, and for an id that two cases have.
        """
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
        """Return a case by position or id, or Cases by slice.

        Raises BadCase for an id, and IndexError for a position, that is not there.
        """
        if isinstance(at, slice):
            return Cases(self._cases[at], self.source)
        if not isinstance(at, str):
            return self._cases[at]
        if at in self._by_id:
            return self._by_id[at]
        expected, hint = ", ".join(list(self._by_id)[:20]), near(at, self._by_id)
        raise BadCase(
            "no case of this id", source=self.source, got=at, expected=expected, hint=hint
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cases) and self._cases == other._cases

    def __hash__(self) -> int:
        return hash(self._cases)

    def __add__(self, other: Cases) -> Cases:
        """Return these cases and then the others.

        Raises BadCase if an id is in both.
        """
        return Cases((*self._cases, *other._cases), self.source or other.source)

    def categories(self) -> dict[str, int]:
        return dict(sorted(Counter(c.category for c in self._cases).items()))

    def filter(self, where: Callable[[Case], bool] | None = None, **equal: Any) -> Cases:
        """Return the cases for which `where` is true and whose members equal the keywords.

        equal: a name of the case's own (`id`, `input`, `tools`, `target`, `category`) or of its
        metadata, and the value that it is to have. A list of values stands for any of them.

        >>> cases = Cases([Case("a", "x", metadata={"category": "one"}), Case("b", "y")])
        >>> [c.id for c in cases.filter(category="one")]
        ['a']

        Raises BadOptions for a name that no case has.
        """
        names = [*sorted(_ATTRIBUTES), *sorted({name for c in self._cases for name in c.metadata})]
        # Without cases every name is known.
        if unknown := [name for name in equal if self._cases and name not in names]:
            raise BadOptions(
                "cases have no such member",
                got=unknown[0],
                expected=", ".join(names),
                hint=near(unknown[0], names),
            )
        cases = [case for case in self._cases if where is None or where(case)]
        for name, value in equal.items():
            allowed = value if isinstance(value, (list, tuple, set, frozenset)) else (value,)
            cases = [case for case in cases if _attribute(case, name) in allowed]
        return Cases(cases, self.source)

    def sample(self, n: int, by: str | None = "category", seed: int = 1) -> Cases:
        """Return `n` cases, or all if there are fewer.

        The same seed gives the same cases, in the order of the file.

        Stratified by `by`, a name as in `filter`: each value gets its share of `n`, and at least
        one case if `n` allows. None or '' draws from all cases alike. Raises BadOptions for an `n`
        that is not a whole number of 0 or more.
        """
        # True is an int to Python, but no size.
        if isinstance(n, bool) or not isinstance(n, int) or n < 0:
            raise BadOptions("a sample has a size", got=n, expected="an integer of 0 or more")
        if n >= len(self._cases):
            return self

        strata: dict[str, list[int]] = {}
        for i, case in enumerate(self._cases):
            strata.setdefault(str(_attribute(case, by)) if by else "", []).append(i)
        sizes = {name: len(strata[name]) for name in sorted(strata)}
        picked: list[int] = []
        for name, size in _shares(sizes, n).items():
            # A generator of its own for each stratum, so that new cases elsewhere do not change
            # this pick.
            generator = random.Random(f"{seed}:{name}")  # noqa: S311
            picked += generator.sample(strata[name], size)
        return Cases((self._cases[i] for i in sorted(picked)), self.source)

    def __repr__(self) -> str:
        """Return the counts in one line, with the attribute that has the reasons."""
        reasons = ", see .skipped" if self.skipped else ""
        return f"Cases({self.counts}{reasons})"

    @property
    def counts(self) -> str:
        """The counts in one line: cases, graded ones, categories, skipped rows."""
        graded = [case for case in self._cases if case.target is not None]
        parts = [f"{counted(len(self), 'case')}, {len(graded):,} graded"]

        kinds = [f"{name or 'no category'} {n}" for name, n in self.categories().items()]
        if kinds:
            parts.append(", ".join(kinds))

        n_skipped = sum(rows.count for rows in self.skipped)
        if n_skipped:
            parts.append(f"{counted(n_skipped, 'row')} skipped")
        return printable("; ".join(parts))

    def _repr_html_(self) -> str:
        parts: list[tuple[str, Sequence[Case]]] = [
            (name or "no category", [case for case in self._cases if case.category == name])
            for name in self.categories()
        ]
        rows = ""
        for name, cases in [*parts, ("all", self)]:
            graded = [case for case in cases if case.target is not None]
            wants_calls = sum(bool(case.target) for case in graded)
            # By name, so that a tool that many cases share counts once.
            tools = {tool.name for case in cases for tool in case.tools}
            n_cases, n_graded = len(cases), len(graded)
            counts = (n_cases, wants_calls, n_graded - wants_calls, n_cases - n_graded, len(tools))
            cells = "".join(f'<td style="{_CELL};text-align:right">{n}</td>' for n in counts)
            rows += f'<tr><td style="{_CELL}">{html.escape(printable(name))}</td>{cells}</tr>'

        titles = "".join(f'<th style="{_CELL};border-top:0">{title}</th>' for title in _TITLES)
        where = f" from {html.escape(printable(Path(self.source).name))}" if self.source else ""
        skipped = "".join(f"<li>{html.escape(str(rows))}</li>" for rows in self.skipped)
        return (
            '<div style="overflow-x:auto"><table '
            'style="border-collapse:collapse;font-variant-numeric:tabular-nums">'
            f'<caption style="text-align:left;padding:.25em .75em">{len(self)} '
            f"cases{where}</caption><thead><tr>{titles}</tr></thead><tbody>{rows}</tbody></table>"
            + (f"<p>Skipped:</p><ul>{skipped}</ul>" if skipped else "")
            + "</div>"
        )


def _attribute(case: Case, name: str) -> Any:
    return getattr(case, name) if name in _ATTRIBUTES else case.metadata.get(name)


def _shares(sizes: dict[str, int], n: int) -> dict[str, int]:
    # In proportion to `sizes` by largest remainder, each at least 1 while `n` allows it. Rounding
    # down comes first; what is then missing, or too much where small strata got their one, goes one
    # by one to or from the stratum that is furthest from its exact share. {"large": 8, "small": 1}
    # and 3 give 2 and 1.
    total = sum(sizes.values())
    # Where there are more strata than cases to pick, some get none.
    floor = 1 if n >= len(sizes) else 0
    shares = {name: min(size, max(floor, n * size // total)) for name, size in sizes.items()}

    def missing(name: str) -> float:
        return n * sizes[name] / total - shares[name]

    # Only one of the two loops has anything to do: the shares are too few or too many in all.
    while sum(shares.values()) < n:
        growing = [name for name in shares if shares[name] < sizes[name]]
        shares[max(growing, key=lambda name: (missing(name), name))] += 1
    while sum(shares.values()) > n:
        shrinking = [name for name in shares if shares[name] > floor]
        shares[max(shrinking, key=lambda name: (-missing(name), name))] -= 1
    return shares


def pack_cases(cases: Iterable[Case]) -> list[dict[str, Any]]:
    """Return rows of JSON with each list of tools once.

    A later case with the same tools names the first one that has them in ``tools_of``.
    `PackedCases` is the way back.
    """
    first_ids: dict[tuple[ToolSpec, ...], str] = {}
    rows = []
    for case in cases:
        row = case.to_dict()
        # Most cases of a data set share a few lists of tools, which are most of its size.
        if case.tools:
            first_id = first_ids.setdefault(case.tools, case.id)
            if first_id != case.id:
                row["tools_of"] = first_id
                del row["tools"]
        rows.append(row)
    return rows


class PackedCases(Cases):
    """The cases that `pack_cases` packed, each unpacked when it is looked at.

    rows: in the order in which they were packed, or what gives them when one is looked at. Rows
    with all their tools are read as well.

    Looking at a case raises BadCase where its row is not one.

    >>> cases = PackedCases([{"id": "a", "input": "Oslo?"}])
    >>> len(cases), cases["a"].input
    (1, 'Oslo?')
    """

    __slots__ = ("_load", "_places", "_rows", "_unpacked")

    def __init__(
        self,
        rows: Sequence[Mapping[str, Any]] | Callable[[], Sequence[Mapping[str, Any]]],
        source: str = "",
        skipped: Iterable[Skipped] = (),
    ) -> None:
        self._load = rows if callable(rows) else lambda: rows
        self._places: dict[str, int] = {}
        self._unpacked: dict[int, Case] = {}
        self.source = source
        self.skipped = tuple(skipped)

    def __getattr__(self, name: str) -> Any:
        # Of a slot that has no value yet: the rows, or all cases, which are the class above's.
        if name == "_rows":
            self._rows = self._load()
            return self._rows
        if name not in ("_cases", "_by_id"):
            raise AttributeError(name)
        cases = Cases(map(self._case, range(len(self._rows))), self.source)
        self._cases, self._by_id = cases._cases, cases._by_id
        return getattr(self, name)

    def forget(self) -> None:
        """Load and unpack the rows anew the next time that one is looked at."""
        self._places, self._unpacked = {}, {}
        for name in ("_rows", "_cases", "_by_id"):
            with suppress(AttributeError):
                delattr(self, name)

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, at: int | str) -> Case: ...
    @overload
    def __getitem__(self, at: slice) -> Cases: ...
    def __getitem__(self, at: int | str | slice) -> Case | Cases:
        if isinstance(at, str):
            self._places = self._places or {str(row["id"]): n for n, row in enumerate(self._rows)}
            if at in self._places:
                return self._case(self._places[at])
        return super().__getitem__(at)

    def __reduce__(self) -> tuple[Any, ...]:
        return Cases, (self._cases, self.source, self.skipped)

    def _case(self, place: int) -> Case:
        case = self._unpacked.get(place)
        if case is None:
            row = dict(self._rows[place])
            if "tools_of" in row:
                row["tools"] = self[row.pop("tools_of")].tools
            case = self._unpacked[place] = read_case(row, source=self.source)
        return case


def unpack_cases(rows: Sequence[Mapping[str, Any]], source: str = "") -> Cases:
    """Return the cases that `pack_cases` packed, all of them unpacked.

    Raises BadCase for a row that is not a case.
    """
    return Cases(PackedCases(rows, source), source)
