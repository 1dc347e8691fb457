"""`toolparse open`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...core.errors import BadOptions
from ...runner.settings import Settings
from ..inputs import looks_pasted, read_text, read_tools
from ..options import RUN_HELP, add_config, add_policy, add_store, need, open_lab, settings_of
from ..output import put, say
from .serve_local import port_number

EXAMPLES = (
    "toolparse open",
    "toolparse open latest --port 8866 --no-browser",
    "toolparse open answer.txt --protocol hermes --tools tools.json",
)
_OUTPUTS = (".jsonl", ".eval", ".parquet")
_STORE = b"SQLite format 3\x00"


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare what is opened, how it is read, and where the page is served."""
    add_config(command)
    command.add_argument(
        "subject",
        nargs="?",
        default="latest",
        metavar="RUN|FILE",
        help=f"{RUN_HELP}; a store, whose latest run is shown; or a file with a model's text, "
        "- for standard input (default: latest)",
    )
    command.add_argument(
        "trial", nargs="?", metavar="TRIAL", help="a trial's id (default: all trials of the run)"
    )
    command.add_argument("--protocol", metavar="ID", help="what reads the text or the trial")
    command.add_argument("--tools", metavar="FILE", help="JSON file with the tools of a text")
    add_store(command)
    add_policy(command)
    command.add_argument(
        "--port", type=port_number, default=0, help="port, 0 for any free one (default: 0)"
    )
    command.add_argument(
        "--theme", choices=("light", "dark"), default="light", help="(default: light)"
    )
    command.add_argument(
        "--no-browser", action="store_true", help="print the address and open no browser"
    )


def run(options: Any) -> int:
    """Serve the page until Ctrl-C, which leaves with 130."""
    need("open", "voila", "anywidget", "pandas", "sqlalchemy")
    from ...notebook.live_page import serve_page  # an extra

    settings = settings_of(options)
    # A run, a file and its tools are looked for here, where an error is one line and no page.
    subject = _subject(options, settings)

    def tell(address: str) -> None:
        put(f"open {address}\nCtrl-C ends it; the address works on this machine only")
        # A script that started this waits for the line before it asks.
        sys.stdout.flush()

    serve_page(
        subject,
        port=options.port,
        theme=options.theme,
        browser=not options.no_browser,
        tell=tell,
    )
    # The server catches Ctrl-C itself and returns; it has no other end.
    raise KeyboardInterrupt


def _subject(options: Any, settings: Settings) -> Mapping[str, Any]:
    """Return what the page shows: a text and how it is read, or a store, a run and a trial.

    Raises BadOptions, UnreadableInput and what opening a run raises.
    """
    name, policy = options.subject, settings["policy"]
    if name != "-" and _is_store(name):
        options.store, options.subject = name, "latest"
        return _subject(options, settings_of(options))
    if name == "-" or os.path.lexists(name) or looks_pasted(name):
        if options.trial is not None:
            raise BadOptions("a text has no trials", got=options.trial)
        if name.endswith(_OUTPUTS):
            say(
                f"toolparse: {name} is shown as one text; for a file of many recorded outputs "
                f"first `toolparse ingest {name}`, then `toolparse open`"
            )
        return {
            "text": read_text(name),
            "tools": read_tools(options.tools),
            "protocol": options.protocol or "auto",
            "policy": policy,
        }
    if options.tools is not None:
        raise BadOptions("the tools of a run are recorded with it", got=options.tools)
    with open_lab(settings) as lab:
        run = lab.open(name)
        trial = None if options.trial is None else _trial_id(run, options.trial)
        return {
            "store": lab.store.url.render_as_string(hide_password=False),
            "run": run.run_id,
            "trial": trial,
            "protocol": options.protocol,
            "policy": policy,
        }


def _trial_id(run: Any, beginning: str) -> str:
    """Return the id of the one trial that begins so. Raises BadOptions."""
    ids = [trial.trial_id for trial in run.trials() if trial.trial_id.startswith(beginning)]
    if len(ids) != 1:
        raise BadOptions(
            "no trial of this run has this id" if not ids else "several trials begin like this",
            got=beginning,
            expected="the id of one trial, as `toolparse report --json` or the browser shows it",
        )
    trial_id: str = ids[0]
    return trial_id


def _is_store(name: str) -> bool:
    """The name is that of an SQLite file."""
    try:
        with Path(name).open("rb") as file:
            return file.read(len(_STORE)) == _STORE
    except (OSError, ValueError):
        return False
