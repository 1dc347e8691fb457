"""`Check`: what the canaries of `Lab.check` showed, cell by cell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from .canary import Cell
from .render.show import one_line, visible
from .values import write_canonical

if TYPE_CHECKING:
    from .evals.frames.recorded import Frame

_SHOWN = 160  # characters of an answer in the table
_COLORS = {"ok": "#1a7f37", "failed": "#cf222e", "uncertain": "#9a6700"}


class Check(Sequence[Cell]):
    """The cells of a check, each with its verdict, its reason and its evidence.

    Shows itself as a table. `frame()` is the same with everything behind it; `failed` are the cells that failed.
    """

    def __init__(self, cells: Sequence[Cell]) -> None:
        self._cells = tuple(cells)

    def __len__(self) -> int:
        return len(self._cells)

    def __iter__(self) -> Iterator[Cell]:
        return iter(self._cells)

    def __getitem__(self, index: Any) -> Any:
        """A cell by its place, or by (model alias, protocol); raises KeyError."""
        if isinstance(index, tuple):
            for cell in self._cells:
                if (cell.model, cell.protocol) == index:
                    return cell
            raise KeyError(index)
        return self._cells[index]

    @property
    def ok(self) -> bool:
        """No cell failed."""
        return not self.failed

    @property
    def failed(self) -> tuple[Cell, ...]:
        return tuple(c for c in self._cells if c.verdict == "failed")

    def frame(self) -> Frame:
        """One row a cell: model, protocol, verdict, why, and what was sent and received."""
        from .evals.frames.dtypes import build_frame

        rows = [_row(c) for c in self._cells]
        return build_frame("checks", {k: [r[k] for r in rows] for k in (rows[0] if rows else ())}, len(rows))

    def __str__(self) -> str:
        if not self._cells:
            return "nothing was checked"
        sizes = [max(len(str(getattr(c, name))) for c in self._cells) for name in ("model", "protocol", "verdict")]
        lines = []
        for c in self._cells:
            head = "  ".join(x.ljust(n) for x, n in zip((c.model, c.protocol, c.verdict), sizes, strict=True))
            lines.append(f"{head}  {c.why}")
            lines += [f"{' ' * len(head)}  {note}" for note in c.notes]
        return visible("\n".join(lines))

    __repr__ = __str__

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        cell = 'style="text-align:left;vertical-align:top;padding-right:1em"'
        rows = []
        for c in self._cells:
            verdict = f'<b style="color:{_COLORS[c.verdict]}">{c.verdict}</b>'
            why = "<br>".join(escape(visible(x)) for x in (c.why, *c.notes))
            said = escape(one_line(_answer(c), _SHOWN))
            rows.append(
                f"<tr><td {cell}>{escape(c.model)}</td><td {cell}>{escape(c.protocol)}</td><td {cell}>{verdict}</td>"
                f'<td {cell}>{why}</td><td {cell}><code style="overflow-wrap:anywhere">{said}</code></td></tr>'
            )
        head = "".join(f"<th {cell}>{h}</th>" for h in ("model", "protocol", "verdict", "why", "answer"))
        html = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
        return {"text/plain": str(self), "text/html": html}


def _answer(cell: Cell) -> str:
    return cell.completion.raw if cell.completion else ""


def _row(cell: Cell) -> dict[str, Any]:
    completion = cell.completion
    sent = (completion.response or {}).get("sent") if completion else None
    return {
        "model": cell.model,
        "protocol": cell.protocol,
        "verdict": cell.verdict,
        "why": cell.why,
        "notes": "; ".join(cell.notes) or None,
        "tools_sent": cell.tools_sent,
        "raw": completion.raw if completion else None,
        "reasoning": (completion.reasoning or None) if completion else None,
        "finish_reason": completion.finish_reason if completion else None,
        "error": completion.error_kind if completion else None,
        "endpoint_kind": completion.endpoint_kind if completion else None,
        "sent_json": None if sent is None else write_canonical(sent),
        "completion_key": completion.key if completion else None,
    }
