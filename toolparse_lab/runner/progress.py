"""Progress bars, at most four refreshes a second: for runs done, failed, cost and rate."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

_INTERVAL = 0.25


def visible() -> bool:
    """Whether somebody can see a bar: a terminal, or a notebook."""
    if sys.stderr is not None and sys.stderr.isatty():
        return True
    ipython = sys.modules.get("IPython")
    shell: Any = ipython.get_ipython() if ipython is not None else None
    return shell is not None and getattr(shell, "kernel", None) is not None


class Progress:
    """A context manager around tqdm, or nothing at all where `show` is False, or None and nobody can see it."""

    def __init__(self, total: int | None, *, initial: int = 0, show: bool | None = None, unit: str = "call") -> None:
        self._bar: Any = None
        self._last = 0.0
        if show is False or (show is None and not visible()):
            return
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # tqdm.auto warns where ipywidgets is missing, and shows text
            from tqdm.auto import tqdm

            self._bar = tqdm(total=total, initial=initial, unit=unit, mininterval=_INTERVAL, dynamic_ncols=True)

    def advance(self, count: int) -> None:
        """Says that so many more are done."""
        if self._bar is not None:
            self._bar.update(count)

    def show_summary(self, *, done: int, failed: int, cost: float, final: bool = False) -> None:
        """Sets what the bar shows; draws it only where the last drawing is long enough ago, or it is the final one."""
        if self._bar is None:
            return
        now = time.monotonic()
        if not final and now - self._last < _INTERVAL:
            return
        self._last = now
        self._bar.n = done + failed
        self._bar.set_postfix_str(f"failed {failed}, ${cost:.4f}", refresh=False)
        self._bar.refresh()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.close()
