"""The verbs of the command line.

A file here has the verbs of one subject. A verb is a function with its table of options,
declared by `@verb`, and a line in `GROUPS`; to add one, write both.

The top of such a file imports nothing that needs an extra or loads slowly: what brings pandas,
SQLAlchemy or litellm along (one to three seconds) is imported in the function that needs it, so
`toolparse VERB --help` is quick, and names the missing extra where none is installed.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache

# Job -> verb -> its file and its help, in the order of `toolparse --help`.
GROUPS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "read one answer": {
        "parse": ("texts", "read the tool calls of one answer"),
        "test": ("texts", "run recorded answers as tests"),
    },
    "debug recorded answers": {
        "ingest": ("recorded", "turn answers that another program recorded into a run"),
        "list": ("recorded", "list the runs of a store, the protocols, or the configured models"),
        "view": ("recorded", "show one trial: the question, the answer and its parse"),
        "open": ("recorded", "work on recorded answers or on one text in the browser"),
    },
    "ask models and compare": {
        "run": ("asking", "ask models, and report how well they call tools"),
        "check": (
            "asking",
            "ask one canary per model and protocol: does the server keep the text and offer tools",
        ),
        "report": (
            "reports",
            "summarise a run: success with intervals, and the causes of failures",
        ),
        "compare": (
            "reports",
            "compare two runs, or two arms, protocols or models of one, paired on cases",
        ),
        "reparse": (
            "recorded",
            "parse recorded answers with other protocols or policies, without a model",
        ),
        "export": ("reports", "write the trials, calls or events of a run to a file"),
    },
    "prepare and check inputs": {
        "init": ("project", "begin a project: settings, a plan and cases to start from"),
        "validate": ("project", "check a file of cases for errors and doubtful rows"),
        "config": ("project", "show the settings in force, and their sources"),
    },
    "try it on the embedded model": {
        "demo": ("project", "run the main job on the embedded model, which it installs")
    },
}


@cache
def groups() -> Mapping[str, Mapping[str, tuple[str, str]]]:
    """Job -> verb -> the module that declares it and its help; `extensions` is the last job."""
    package = __package__ or ""
    found = {
        job: {verb: (f"{package}.{file}", help) for verb, (file, help) in verbs.items()}
        for job, verbs in GROUPS.items()
    }
    root = f"{package.partition('.')[0]}.extensions"
    try:
        folders = importlib.import_module(root).__path__
    except ModuleNotFoundError:  # all of them were taken out
        return found
    plugged = {}
    for extension in sorted(info.name for info in pkgutil.iter_modules(folders) if info.ispkg):
        name = f"{root}.{extension}"
        for verb, (module, help) in getattr(importlib.import_module(name), "VERBS", {}).items():
            plugged[verb] = (f"{name}.{module}", help)
    return {**found, "extensions": plugged} if plugged else found


def verbs() -> Mapping[str, tuple[str, str]]:
    """Verb -> the module that declares it and its help."""
    return {verb: row for group in groups().values() for verb, row in group.items()}
