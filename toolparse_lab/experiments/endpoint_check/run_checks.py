"""Asks canaries, and shows what each endpoint does to a call."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from ...core.errors import BadPlan
from ...core.values import write_canonical
from ...parser.foreign.protocol import AnyProtocol
from ...runner.exchange.types import Model, Request
from ...runner.loop import run_sync
from ...runner.pool import run_requests
from ...runner.store.store import Store
from ...views.show import one_line, visible
from ..arms import prompt_protocols
from ..plan import Plan
from .canary import Cell, canary_for, judge

if TYPE_CHECKING:
    from ...evals.frames.recorded import Frame

_MOST_SHOWN = 160  # characters of an answer in the table
_STYLE = 'style="text-align:left;vertical-align:top;padding-right:1em"'
_COLORS = {"ok": "#1a7f37", "failed": "#cf222e", "uncertain": "#9a6700"}


class Check(Sequence[Cell]):
    """The cells of a check, each with its verdict, its reason and its evidence.

    Shows itself as a table. `frame()` is the same with everything behind it. `failed` are the cells
    that failed.
    """

    def __init__(self, cells: Sequence[Cell]) -> None:
        self._cells = tuple(cells)

    def __len__(self) -> int:
        """Return the number of cells."""
        return len(self._cells)

    def __iter__(self) -> Iterator[Cell]:
        """Return the cells, model by model."""
        return iter(self._cells)

    def __getitem__(self, index: Any) -> Any:
        """Return a cell by its place, or by (model alias, protocol).

        Raises KeyError.

        A slice gives a tuple of cells.
        """
        if isinstance(index, tuple):
            for cell in self._cells:
                if (cell.model, cell.protocol) == index:
                    return cell

            raise KeyError(index)
        return self._cells[index]

    @property
    def ok(self) -> bool:
        """No cell failed.

        An uncertain cell does not count against it: it proves nothing.
        """
        return not self.failed

    @property
    def failed(self) -> tuple[Cell, ...]:
        """The cells that failed.

        They stand in the order of the table, or empty if every canary came back or proved nothing.
        """
        return tuple(c for c in self._cells if c.verdict == "failed")

    def frame(self) -> Frame:
        """Return one row per cell: model, protocol, verdict, why, and the request sent and
        received.

        The request sent is in the column `sent_json`, the response in `raw` and `reasoning`.
        """
        from ...evals.frames.dtypes import build_frame  # pandas: 0.5 s

        rows = [_row(cell) for cell in self._cells]
        names = rows[0] if rows else ()
        columns = {name: [row[name] for row in rows] for name in names}
        return build_frame("checks", columns, len(rows))

    def __str__(self) -> str:
        """Return the table as text: a line per cell, its notes below."""
        if not self._cells:
            return "nothing was checked"

        heads = [(cell.model, cell.protocol, cell.verdict) for cell in self._cells]
        sizes = [max(map(len, column)) for column in zip(*heads, strict=True)]
        lines = []

        for cell, words in zip(self._cells, heads, strict=True):
            head = "  ".join(word.ljust(size) for word, size in zip(words, sizes, strict=True))
            lines.append(f"{head}  {cell.why}")
            # Notes stand below the reason.
            lines += [f"{' ' * len(head)}  {note}" for note in cell.notes]

        return visible("\n".join(lines))

    __repr__ = __str__

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        titles = ("model", "protocol", "verdict", "why", "answer")
        head = "".join(f"<th {_STYLE}>{title}</th>" for title in titles)
        body = "".join(map(_html_row, self._cells))
        html = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        return {"text/plain": str(self), "text/html": html}


def _html_row(cell: Cell) -> str:
    # Texts of models and providers are escaped.
    verdict = f'<b style="color:{_COLORS[cell.verdict]}">{cell.verdict}</b>'
    why = "<br>".join(escape(visible(sentence)) for sentence in (cell.why, *cell.notes))
    raw = cell.completion.raw if cell.completion else ""
    answer = escape(one_line(raw, _MOST_SHOWN))
    columns = (
        escape(cell.model),
        escape(cell.protocol),
        verdict,
        why,
        f'<code style="overflow-wrap:anywhere">{answer}</code>',
    )
    return f"<tr>{''.join(f'<td {_STYLE}>{column}</td>' for column in columns)}</tr>"


def _row(cell: Cell) -> dict[str, Any]:
    # Every row has the same columns in the same order: the first one names those of the frame. The
    # request sent is canonical JSON, because a body has no fixed members.
    completion = cell.completion
    body = (completion.response or {}).get("sent") if completion else None
    row: dict[str, Any] = {
        "model": cell.model,
        "protocol": cell.protocol,
        "verdict": cell.verdict,
        "why": cell.why,
        "notes": "; ".join(cell.notes) or None,
        "tools_sent": cell.tools_sent,
        "raw": None,
        "reasoning": None,
        "finish_reason": None,
        "error": None,
        "endpoint_kind": None,
        "sent_json": None if body is None else write_canonical(body),
        "completion_key": None,
    }
    if completion is not None:
        row.update(
            raw=completion.raw,
            reasoning=completion.reasoning or None,
            finish_reason=completion.finish_reason,
            error=completion.error_kind,
            endpoint_kind=completion.endpoint_kind,
            completion_key=completion.key,
        )

    return row


_HINT = (
    "see lab.check(models, ['native']); to run it all the same: lab.run(plan, despite_check=True)"
)


def check_cells(
    models: Mapping[str, Model],
    protocols: Any,
    store: Store,
    *,
    complete: Callable[..., Any] | None = None,
    stream: bool = False,
) -> Check:
    """Ask every canary again, record the answers and judge them.

    models: by alias.
    protocols: as for `Lab.plan`.
    store: where the answers are recorded, and read back for the verdicts.
    complete: the function that asks, None for litellm.
    stream: ask for a stream.

    Raises BadPlan for no protocols, UnknownProtocol, and what the runner raises before anything is
    sent.
    """
    canaries: list[tuple[str, AnyProtocol | None, Request]] = [
        (alias, protocol, canary_for(alias, model, protocol, stream=stream))
        for alias, model in models.items()
        for protocol in prompt_protocols(protocols)
    ]

    # An answer of yesterday says nothing of the endpoint of today.
    requests = [request for *_, request in canaries]
    run_sync(run_requests(requests, store, complete=complete, fresh=True, progress=False))
    return Check([_latest(store, *canary) for canary in canaries])


def refuse_failed(plan: Plan, store: Store) -> None:
    """Raise BadPlan if a native arm of the plan would measure something else.

    That is so where its latest canary failed, or where litellm is set to write tools into the
    prompt. A plan without native arms passes, and so does a model that was never checked.

    plan: the arms and models that are about to be run.
    store: where the answers of earlier canaries are recorded.
    """
    if not any(arm.native for arm in plan.arms):
        return

    litellm = sys.modules.get("litellm")  # a switch of a module that is not imported cannot be set
    if getattr(litellm, "add_function_to_prompt", False):
        raise BadPlan(
            "litellm.add_function_to_prompt is set: it writes tools into the prompt, so nothing "
            "is native",
            got="add_function_to_prompt = True",
            hint="set it to False",
        )

    for alias, model in plan.models.items():
        cell = _latest(store, alias, None, canary_for(alias, model, None, stream=plan.stream))
        if cell.verdict == "failed":
            raise BadPlan(
                f"the native arm of {alias!r} failed its canary", got=cell.why, hint=_HINT
            )


def _latest(store: Store, alias: str, protocol: AnyProtocol | None, request: Request) -> Cell:
    # Answers come oldest first. Without one the verdict is 'uncertain'.
    history = store.history(request.key)
    return judge(alias, protocol, history[-1] if history else None)
