"""The verb `serve`: a server that runs until Ctrl-C."""

from __future__ import annotations

import os
import sys
import time
from contextlib import ExitStack
from typing import Any

from ...cli.console import put, say
from ...cli.options import HOST, KEY_ENV, SERVED_PORT, Option, need_lab, verb
from ...core.errors import BadOptions
from ...core.values.printable import counted

_NAP = 0.25  # seconds
# Options that only one kind of server has.
_OF_PASSING = ("app", "ask_raw")
_OF_TOOLS = ("protocol", "tool_choice_by")


@verb(
    "serve",
    (
        Option("--upstream URL", "the endpoint that is asked, up to /v1"),
        Option("--local", "serve the embedded model"),
    ),
    Option("--pass-through", "change nothing: pass on to the upstream endpoint, and record"),
    Option(
        "--protocol ID",
        "how models are told to write a call, with options after it as in hermes;unknown=call "
        "(default: hermes)",
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
    Option("--app NAME", "with --pass-through: the name of its records (default: app)"),
    Option(
        "--ask-raw SERVER",
        "with --pass-through: add to each request what makes this server show the model's own "
        "text: vllm, sglang, llama.cpp, or a JSON object of members",
    ),
    Option("--threads THREADS", "with --local: threads of the engine"),
    HOST,
    SERVED_PORT,
    KEY_ENV,
    examples=(
        "toolparse serve --upstream http://127.0.0.1:8000/v1 --protocol hermes",
        "toolparse serve --upstream https://example.org/v1 --upstream-key-env EXAMPLE_KEY "
        "--record passing.db",
        "toolparse serve --pass-through --upstream http://gpu:8000 --record live.db --app bot",
        "toolparse serve --local",
    ),
)
def _serve(options: Any) -> int:
    """Serve until Ctrl-C, which leaves with 130 after what has ended is written."""
    if not options.upstream and not options.local:
        raise BadOptions("serve needs something to serve", expected="--upstream URL or --local")
    if options.local:
        _refuse(options, "--local", ("pass_through", "record", "upstream_key_env", *_OF_PASSING))
        serve = _serve_embedded
    elif options.pass_through:
        _refuse(options, "--pass-through", ("threads", *_OF_TOOLS))
        serve = _pass_through
    else:
        _refuse(options, "a server without --pass-through", ("threads", *_OF_PASSING))
        serve = _serve_with_tools
    need_lab()
    return serve(options)


def _refuse(options: Any, what: str, names: tuple[str, ...]) -> None:
    given = [name for name in names if getattr(options, name)]
    if given:
        raise BadOptions(f"{what} has no such option", got=f"--{given[0].replace('_', '-')}")


def _serve_with_tools(options: Any) -> int:
    # litellm with the store: two to five seconds, and an extra.
    from ...integrations.litellm_bridge.options import middleware_for
    from ...runner.store.store import Store
    from .gateway import serve
    from .run_recorder import RunRecorder

    upstream_key, api_key = _variable(options.upstream_key_env), _variable(options.key_env)
    by = options.tool_choice_by
    protocol = options.protocol or "hermes"
    middleware = middleware_for(protocol, {"tool_choice_by": by} if by else {})
    with ExitStack() as stack:
        recorder = None
        if options.record:
            recorder = RunRecorder(Store(options.record), middleware.protocol, say)
            stack.callback(recorder.close)
        gateway = serve(
            options.upstream,
            host=options.host,
            port=options.port,
            upstream_key=upstream_key,
            api_key=api_key,
            recorder=recorder,
            middleware=middleware,
        )
        stack.enter_context(gateway)
        _wait(f"serving at {gateway.url}")
    return 0


def _pass_through(options: Any) -> int:
    from .pass_through import proxy  # the store and the HTTP server: a second, and an extra

    running = proxy(
        options.upstream,
        store=options.record,
        app=options.app,
        host=options.host,
        port=options.port,
        api_key=_variable(options.key_env),
        upstream_key=_variable(options.upstream_key_env),
        ask_raw=options.ask_raw,
        tell=lambda message: say(f"toolparse: {message}"),
    )
    recording = f", recording in {options.record}" if options.record else ""
    try:
        _wait(f"passing on at {running.url}{recording}")
    finally:
        running.close()
        if options.record:
            dropped = f"; {running.dropped:,} could not be" if running.dropped else ""
            say(f"toolparse: {counted(running.recorded, 'answer')} recorded{dropped}")
    return 0


def _serve_embedded(options: Any) -> int:
    from .local import serve_local  # litellm: seconds

    with serve_local(
        options.host,
        options.port,
        api_key=_variable(options.key_env),
        threads=options.threads,
        protocol=options.protocol or "hermes",
        tool_choice_by=options.tool_choice_by or "response_format",
    ) as server:
        _wait(f"serving {server.model.name} at {server.url}")
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
