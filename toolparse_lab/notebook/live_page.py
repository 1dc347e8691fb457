"""The page of `toolparse open`: a notebook of one cell, which Voilà runs and shows on loopback."""

from __future__ import annotations

import json
import logging
import os
import secrets
import socket
import sys
import webbrowser
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tornado.ioloop import IOLoop
from voila.app import Voila

from ..core.errors import BadOptions
from ..lab import Lab
from .bench import workbench

# The environment variable that says what to show, as JSON. Not a file, because the address of a
# store may contain a password.
SUBJECT = "OPENED_BY_TOOLPARSE"
_TEXT = "text.json"
_QUIET = "--IPKernelApp.log_level=40"
_CELL = "from toolparse_lab.notebook.live_page import live_view\nlive_view()"
# The page may ask nobody but its own server, whatever is in an answer or in Voilà's template.
_POLICY = (
    "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; "
    "form-action 'none'; frame-ancestors 'self'; base-uri 'self'"
)


def serve_page(
    subject: Mapping[str, Any], *, port: int, theme: str, browser: bool, tell: Callable[[str], None]
) -> None:
    """Serve the live view of a subject until Ctrl-C.

    subject: "store", "run" and "trial" (or None) with "protocol" and "policy"; or "text", "tools",
    "protocol" and "policy". port: 0 for any free one. tell: gets the address once it answers.

    Raises BadOptions for a port that is taken.
    """
    token = secrets.token_urlsafe(24)
    with TemporaryDirectory(prefix="toolparse-open-") as name:
        folder = Path(name)
        _write_notebook(folder)
        os.environ[SUBJECT] = _kept(subject, folder)
        # First of all paths, so that the kernel is this Python and no other that a person has.
        os.environ["JUPYTER_PATH"] = os.pathsep.join(
            part for part in (name, os.environ.get("JUPYTER_PATH")) if part
        )
        app = Voila(log_level="CRITICAL")
        app.initialize([str(folder / "toolparse.ipynb")])
        # After the settings that a person has for Voilà: these are not for them to change.
        app.ip, app.port, app.port_retries, app.token = "127.0.0.1", _free(port), 0, token
        app.open_browser = False
        app.voila_configuration.theme = theme
        app.tornado_settings = {"headers": {"Content-Security-Policy": _POLICY}}
        address = f"http://127.0.0.1:{app.port}/?token={token}"

        def ready() -> None:
            tell(address)
            if browser:
                webbrowser.open(address)

        # Runs once the loop does, and that is after the server listens.
        IOLoop.current().add_callback(ready)
        # Warnings about its own defaults, which no person here can change.
        logging.getLogger("tornado").setLevel(logging.ERROR)
        app.start()


def live_view() -> Any:
    """Return the widget of the subject in the environment: what the notebook's cell shows."""
    subject = json.loads(os.environ[SUBJECT])
    # Relative names, of a store or of a test that is kept, mean the folder of the command.
    os.chdir(subject["folder"])
    if "text_file" in subject:
        subject |= json.loads(Path(subject["text_file"]).read_text("utf-8"))
        return workbench(
            subject["text"], subject["protocol"], subject["tools"], coerce=subject["policy"]
        )
    # Left open: the notes of the view go into this store for as long as the page lives.
    run = Lab(subject["store"]).open(subject["run"])
    if subject["trial"] is None:
        return run.browse(policy=subject["policy"])
    trials = run.trials(protocol=subject["protocol"], policies=(subject["policy"],))
    return workbench(trials[subject["trial"]])


def _write_notebook(folder: Path) -> None:
    # With the description of the kernel that runs it.
    cell: dict[str, Any] = {
        "id": "view",
        "cell_type": "code",
        "source": _CELL,
        "metadata": {},
        "outputs": [],
        "execution_count": None,
    }
    notebook = {
        "cells": [cell],
        "metadata": {"kernelspec": {"name": "toolparse", "display_name": "toolparse"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    (folder / "toolparse.ipynb").write_text(json.dumps(notebook), "utf-8")
    kernel = {
        "argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}", _QUIET],
        "display_name": "toolparse",
        "language": "python",
    }
    spec = folder / "kernels" / "toolparse" / "kernel.json"
    spec.parent.mkdir(parents=True)
    spec.write_text(json.dumps(kernel), "utf-8")


def _kept(subject: Mapping[str, Any], folder: Path) -> str:
    # A text, which may be long, goes into a file of the folder.
    here = {"folder": str(Path.cwd())}
    if "text" not in subject:
        return json.dumps({**subject, **here})
    file = folder / _TEXT
    file.write_text(json.dumps(dict(subject)), "utf-8")
    return json.dumps({"text_file": str(file), **here})


def _free(port: int) -> int:
    """Return a port of loopback that nobody listens at. Raises BadOptions for one that is taken."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as e:
            raise BadOptions(
                "this port cannot be used",
                got=port,
                expected="a free one",
                hint=f"{e.strerror}; --port 0 takes any free one",
            ) from None
        free: int = probe.getsockname()[1]
        return free
