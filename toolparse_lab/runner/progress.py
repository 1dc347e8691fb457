"""The news of a run while it goes on: a progress bar, and a caller's own function."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal, TypeAlias

from ..core.values.wording import money
from .exchange.summary import EventKind, RunEvent, Summary
from .exchange.types import Completion, Request

_INTERVAL = 0.25
_LINE_INTERVAL = 10.0  # seconds between two lines of progress where nobody sees a bar

Show: TypeAlias = bool | Literal["lines"] | None
"""Show progress: None where someone can see it. "lines": a line now and then where nobody does."""

TOLD: ContextVar[Callable[[int, int | None], None] | None] = ContextVar("told", default=None)
"""Hears how many are finished, and of how many, where a page shows it."""


def visible() -> bool:
    """Return True if someone can see a bar: in a terminal, or in a notebook."""
    if sys.stderr is not None and sys.stderr.isatty():
        return True
    # Not imported: where no one has loaded it, there is no notebook.
    ipython = sys.modules.get("IPython")
    if ipython is None:
        return False
    # In a terminal IPython has no kernel, and outside its shell there is no shell at all.
    return getattr(ipython.get_ipython(), "kernel", None) is not None


class Progress:
    """A context manager around tqdm, or nothing at all where `show` is False, or None and no one
    can see it.
    """

    def __init__(
        self, total: int | None, *, initial: int = 0, show: Show = None, unit: str = "call"
    ) -> None:
        self._bar: Any = None
        self._last = 0.0
        self._lines = show == "lines" and not visible()
        self._total, self._unit, self._count = total, unit, initial
        self.advance(0)
        if show is False or self._lines or (show is None and not visible()):
            self._last = time.monotonic()
            return
        with warnings.catch_warnings():
            # tqdm.auto warns where ipywidgets is missing, and shows text.
            warnings.simplefilter("ignore")
            from tqdm.auto import tqdm

            self._bar = tqdm(
                total=total, initial=initial, unit=unit, mininterval=_INTERVAL, dynamic_ncols=True
            )

    def advance(self, count: int) -> None:
        """Add so many to the finished ones."""
        self._count += count
        if told := TOLD.get():
            told(self._count, self._total)
        if self._bar is not None:
            self._bar.update(count)
        elif self._lines:
            now = time.monotonic()
            if now - self._last >= _LINE_INTERVAL:
                self._last = now
                of = "" if self._total is None else f" of {self._total:,}"
                print(f"{self._count:,}{of} {self._unit}s", file=sys.stderr, flush=True)

    @property
    def has_bar(self) -> bool:
        """Whether there is anything to draw."""
        return self._bar is not None

    def show_summary(self, summary: Summary, *, final: bool = False) -> None:
        """Set the numbers of the bar, and draw it where the last drawing is long enough ago, or it
        is the final one.
        """
        now = time.monotonic()
        # Drawing costs more than a call's bookkeeping, and a notebook keeps every drawing.
        if not final and now - self._last < _INTERVAL:
            return
        self._last = now
        self._bar.n = summary.cached + summary.done + summary.failed
        text = f"failed {summary.failed}, {money(summary.cost)}"
        self._bar.set_postfix_str(text, refresh=False)
        self._bar.refresh()

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()


@dataclass(slots=True)
class Reporter:
    """Tells of a run whose counts are in `summary`. started: seconds, monotonic."""

    summary: Summary
    on_event: Callable[[RunEvent], None] | None = None
    progress: Progress | None = None
    started: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        """Seconds since the run began."""
        return time.monotonic() - self.started

    def show(self, *, final: bool = False) -> None:
        """Update the bar."""
        if self.progress is not None:
            self.progress.show_summary(self.summary, final=final)

    def tell(
        self, kind: EventKind, request: Request | None = None, completion: Completion | None = None
    ) -> None:
        """Update the bar and call `on_event`, once more or, after it has failed, never again."""
        summary = self.summary
        # The summary is one object for the whole run: a caller that keeps it sees it grow.
        summary.seconds = time.monotonic() - self.started
        if self.progress is not None:
            self.show(final=kind in ("stopped", "finished"))
        if self.on_event is None:
            return
        # A run of hours must not end because a callback that only prints has a bug.
        try:
            self.on_event(RunEvent(kind, summary, request, completion))
        except Exception as e:
            self.on_event = None
            warnings.warn(
                f"on_event failed and is not called again: {type(e).__name__}: {e}", stacklevel=2
            )
