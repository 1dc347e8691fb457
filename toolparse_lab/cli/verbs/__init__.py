"""The verbs of the command line.

A file here has the verbs of one subject. A verb is a function with its table of options,
declared by `@verb`, and a line in `GROUPS`; to add one, write both.

The top of such a file imports nothing that needs an extra or loads slowly: what brings pandas,
SQLAlchemy or litellm along (one to three seconds) is imported in the function that needs it, so
`toolparse VERB --help` is quick, and names the missing extra where none is installed.
"""

from __future__ import annotations

from collections.abc import Mapping

# Job -> verb -> its file and its help, in the order of `toolparse --help`.
GROUPS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "read one answer": {
        "parse": ("answers", "read the tool calls of one answer"),
        "test": ("texts", "read recorded texts as tests: is in each what should be"),
        "protocol": ("answers", "derive the protocol of a model from its chat template"),
    },
    "debug recorded answers": {
        "ingest": ("recorded", "make a run of outputs that something else recorded"),
        "list": ("recorded", "list the runs of a store, the protocols, or the configured models"),
        "view": (
            "recorded",
            "show one trial: what was asked, what the model wrote, and what was read in it",
        ),
        "open": ("recorded", "work on recorded answers or on one text in the browser"),
        "tokens": (
            "training",
            "show the tokens of an answer, or whether their probabilities tell right from wrong",
        ),
        "score": ("recorded", "judge every trial of a run"),
        "blame": ("asking", "say which layer broke an answer, by its record or by asking again"),
        "reader": ("readers", "fetch the parsers of a release of vLLM, SGLang or transformers"),
    },
    "ask models and compare": {
        "run": ("asking", "ask models and report what could be read"),
        "retry": ("asking", "ask what a run has no answer to, failures included"),
        "check": (
            "asking",
            "ask one canary a model and protocol: is raw text raw, are tools really offered",
        ),
        "report": ("reports", "sum a run up: success with intervals, and its reasons"),
        "compare": ("reports", "compare two arms, protocols or models of a run, paired on cases"),
        "diff": ("reports", "compare two runs, paired on cases"),
        "endpoints": (
            "reports",
            "hold several endpoints of one model to one of them: worse, the same or cannot tell",
        ),
        "power": (
            "reports",
            "say what drops the cases of a run can show, and how many cases a drop needs",
        ),
        "noise": ("reports", "say how far two runs of the same arm lie apart by chance"),
        "ladder": (
            "reports",
            "say what each layer of help gains: prompt, decoding, repair, coercion",
        ),
        "reparse": (
            "recorded",
            "read recorded answers again by other protocols or policies; no model is called",
        ),
        "export": ("training", "write recorded answers as rows to train on"),
        "ablation": (
            "reports",
            "measure the three layers of type safety on one recorded set of answers",
        ),
    },
    "prepare and check inputs": {
        "init": ("project", "begin a project: settings, a plan and cases to start from"),
        "validate": ("project", "say what is wrong or doubtful about a file of cases"),
        "template": (
            "answers",
            "say which values a chat template loses, and whether it shows turns as they were drawn",
        ),
        "config": ("project", "show the settings that hold, and where they came from"),
    },
    "serve models": {
        "proxy": (
            "models",
            "pass requests on to a server as they are, and record what its models answer",
        ),
        "serve": (
            "models",
            "stand before an OpenAI-compatible endpoint and give its models tool calls",
        ),
        "serve-local": ("models", "offer the embedded model as an OpenAI-compatible endpoint"),
    },
    "try it on the embedded model": {
        "demo": ("models", "run the main job on the embedded model"),
        "record": ("models", "record the embedded model over the shipped cases"),
        "setup-local": ("models", "install the embedded model's packages (about 130 MB)"),
    },
}

VERBS: Mapping[str, str] = {
    verb: sentence for group in GROUPS.values() for verb, (_, sentence) in group.items()
}
"""Verb -> its help."""

FILES: Mapping[str, str] = {
    verb: file for group in GROUPS.values() for verb, (file, _) in group.items()
}
