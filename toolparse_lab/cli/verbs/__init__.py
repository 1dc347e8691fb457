"""The verbs of the command line, one file each.

The verb `serve-local` is the module `serve_local.py`, with three names: `EXAMPLES`,
`add_arguments(command)` and `run(options)`. `cli.parser.Verb` is the contract. To add a verb, write
its file and add its line to `GROUPS`.

At the top of such a file stands every verb that needs no extra and loads soon. Anything that brings
pandas, SQLAlchemy or litellm along (one to three seconds) is imported in `run`, so that `toolparse
VERB --help` is quick, and works and names the missing extra where none is installed.
"""

from __future__ import annotations

from collections.abc import Mapping

GROUPS: Mapping[str, Mapping[str, str]] = {
    "read one answer": {
        "parse": "read the tool calls of one answer",
        "protocol": "derive the protocol of a model from its chat template",
    },
    "debug recorded answers": {
        "ingest": "make a run of outputs that something else recorded",
        "list": "list the runs of a store, the protocols, or the configured models",
        "view": "show one trial: what was asked, what the model wrote, and what was read in it",
        "open": "work on recorded answers or on one text in the browser",
        "score": "judge every trial of a run",
    },
    "ask models and compare": {
        "run": "ask models and report what could be read",
        "retry": "ask what a run has no answer to, failures included",
        "check": "ask one canary a model and protocol: is raw text raw, are tools really offered",
        "report": "sum a run up: success with intervals, and its reasons",
        "compare": "compare two arms, protocols or models of a run, paired on cases",
        "diff": "compare two runs, paired on cases",
        "power": "say what drops the cases of a run can show, and how many cases a drop needs",
        "noise": "say how far two runs of the same arm lie apart by chance",
        "ladder": "say what each layer of help gains: prompt, decoding, repair, coercion",
        "reparse": "read recorded answers again by other protocols or policies; no model is called",
        "ablation": "measure the three layers of type safety on one recorded set of answers",
    },
    "prepare and check inputs": {
        "init": "begin a project: settings, a plan and cases to start from",
        "validate": "say what is wrong or doubtful about a file of cases",
        "config": "show the settings that hold, and where they came from",
    },
    "serve models": {
        "serve": "stand before an OpenAI-compatible endpoint and give its models tool calls",
        "serve-local": "offer the embedded model as an OpenAI-compatible endpoint",
    },
    "try it on the embedded model": {
        "demo": "run the main job on the embedded model",
        "record": "record the embedded model over the shipped cases",
        "setup-local": "install the embedded model's packages (about 130 MB)",
    },
}
"""Job -> its verbs with their help, in the order of `toolparse --help`."""

VERBS: Mapping[str, str] = {
    verb: sentence for group in GROUPS.values() for verb, sentence in group.items()
}
"""Verb -> its help."""
