"""What a shape of another tool's log is, and what is counted while such a log is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Row: TypeAlias = Mapping[str, Any]
Cells: TypeAlias = dict[str, Any]
Reader: TypeAlias = "Callable[[Row, Log], Iterator[Cells]]"

OFFERS = "offers"
"""The cell that says that tools were offered, where the row does not have them."""

OUTER = "outer"
"""The cell with the trace of an outer span, which counts where none of its steps is in the log."""

CONVERSATION = "conversation_id"
"""The metadata that holds the answers of one conversation together."""


@dataclass(frozen=True, slots=True)
class Shape:
    """One shape that `Lab.ingest` knows.

    Attributes:
        name: as `shape=` takes it.
        needs: names of which each row has one, or one that begins with it where it ends with a dot.
        title: what writes it.
        keys: the columns that are read of it -> where each stands.
        lost: what such a log no longer has.
        knows: returns True for a row of this shape.

    >>> from toolparse_lab.experiments.ingest.shapes import shapes
    >>> shapes()["langsmith"].keys["model"]
    'extra.invocation_params.model'
    """

    name: str
    needs: tuple[str, ...] = field(repr=False)
    title: str
    keys: Mapping[str, str]
    lost: str
    knows: Callable[[Row], bool] = field(repr=False)
    read: Reader = field(repr=False)


class ShapedRow(dict[str, Any]):
    """One answer of a shape's row, by our own names of columns.

    offers: tools were offered to the server, whether the row still has them or not. outer: see
    `OUTER`. row: the shape's own row, where this is its only answer.
    """

    __slots__ = ("offers", "outer", "row", "shape")

    def __init__(self, shape: Shape, cells: Cells) -> None:
        super().__init__(cells)
        self.shape = shape
        self.row: Row | None = None
        self.offers = bool(self.pop(OFFERS, False))
        self.outer = str(self.pop(OUTER, ""))


class Log:
    """What is known of a source beside the row that is read.

    requests: the lines of the batch that was asked, by `custom_id`. last: the name of the shape of
    the row before, which is tried first. offered: the caller gave tools for rows that have none.
    """

    def __init__(
        self,
        name: str,
        requests: Mapping[str, Row] | None = None,
        last: str = "",
        *,
        offered: bool = False,
    ) -> None:
        self.name = name
        self.offered = offered
        self.last = last
        self.requests = requests or {}
        self.line: int | None = None
        self.shapes: dict[str, tuple[str, str]] = {}  # name -> its title and what it has lost
        self.answers: Counter[str] = Counter()  # by the name of their shape
        self.left_out: Counter[tuple[str, str]] = Counter()  # (what, why)
        self.seen: set[str] = set()  # columns that are mapped
        self.conversations = False
        self.steps: set[str] = set()  # traces of which the steps were read
        self._without: Counter[str] = Counter()

    def to_dict(self) -> dict[str, Any]:
        """Return what a run's record says of its source's shapes."""
        if not self.answers:
            return {}
        return {"shapes": dict(self.answers), "lost": self.losses()}

    def add(self, later: Log) -> None:
        """Add what was counted while later rows of the source were read."""
        self.last = later.last
        self.shapes |= later.shapes
        self.seen |= later.seen
        self.answers += later.answers
        self.left_out += later.left_out
        self._without += later._without
        self.conversations |= later.conversations

    def leave_out(self, what: str, why: str) -> None:
        self.left_out[what, why] += 1

    def counts(self, cells: ShapedRow) -> bool:
        """Count an answer, and return True unless it is of an outer span whose steps were read."""
        if cells.outer and cells.outer in self.steps:
            self.leave_out("outer spans", "their steps, which are spans as well, say the same")
            return False
        shape = cells.shape
        self.shapes[shape.name] = shape.title, shape.lost
        self.answers[shape.name] += 1
        body = cells.get("request") or {}
        has_tools = self.offered or cells.get("tools") or body.get("tools")
        self._without["tools"] += not has_tools
        self._without["question"] += not any(
            (cells.get("messages"), cells.get("input"), body.get("messages"))
        )
        self._without["arguments"] += cells.get("arguments_text") == "lost"
        self.conversations |= f"metadata_{CONVERSATION}" in cells
        return True

    def __str__(self) -> str:
        """Return shapes, answers and losses as a few lines, '' for a source of no known shape."""
        found = [
            f"{n:,} answer{'' if n == 1 else 's'} of {name} ({self.shapes[name][0]})"
            for name, n in self.answers.items()
        ]
        if not found:
            return ""
        lost = [f"  {sentence}" for sentence in self.losses()]
        return "\n".join([f"{self.name}: {', '.join(found)}", *lost])

    def losses(self) -> list[str]:
        """Return what the answers of this source no longer have, a sentence each."""
        total = self.answers.total()
        lost = [f"lost in {name}: {what}" for name, (_, what) in self.shapes.items()]
        if n := self._without["tools"]:
            lost.append(f"no tools are in {n} of {total} answers: pass tools= or cases=")
        if n := self._without["question"]:
            lost.append(f"no question is in {n} of {total} answers")
        if n := self._without["arguments"]:
            lost.append(
                f"the text of arguments is gone in {n} of {total} answers, which were kept as "
                "objects: strictness is not judged there"
            )
        return lost


class Damaged(Exception):
    """Raised where a key of a shape holds something else than it should.

    key: the column of ours that stands there.
    """

    def __init__(self, key: str, message: str, got: Any = None) -> None:
        super().__init__(message)
        self.key, self.message, self.got = key, message, got


def shape(
    name: str,
    needs: tuple[str, ...],
    title: str,
    keys: Mapping[str, str],
    lost: str,
    knows: Callable[[Row], bool],
) -> Callable[[Reader], Shape]:
    """Make a shape of the function that reads its rows. See `Shape` for the rest."""
    return lambda read: Shape(name, needs, title, keys, lost, knows, read)
