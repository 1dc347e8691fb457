"""The news of a run while it goes on: a progress bar, and a caller's own function."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

from .exchange.summary import EventKind, RunEvent, Summary
from .exchange.types import Completion, Request
from .progress import Progress


@dataclass(slots=True)
class Reporter:
    """Tells of a run whose counts are in `summary`.

    `started` is its beginning on the monotonic clock (seconds).
    """

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
            self.progress.show_summary(
                done=self.summary.cached + self.summary.done,
                failed=self.summary.failed,
                cost=self.summary.cost,
                final=final,
            )

    def tell(
        self, kind: EventKind, request: Request | None = None, completion: Completion | None = None
    ) -> None:
        """Update the bar and call `on_event`, once more or, after it has failed, never again."""
        summary = self.summary
        # The summary is one object for the whole run: a caller that keeps it sees it grow.
        summary.seconds = self.seconds
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
