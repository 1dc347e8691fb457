"""The tokens of recorded answers, and the answers as rows to train on."""

from __future__ import annotations

from typing import Any

from ...core.errors import BadOptions
from ...views.tokens import tokens_line, tokens_text
from ..console import put, put_json, put_told, say
from ..options import (
    CONFIG,
    JSON,
    READER,
    RUN,
    STORE,
    Option,
    need_lab,
    open_lab,
    settings_of,
    verb,
)


@verb(
    "tokens",
    CONFIG,
    RUN,
    Option("trial TRIAL", "the id of a trial, whose tokens are listed"),
    STORE,
    *READER,
    JSON,
    examples=("toolparse tokens latest 3f9a1c",),
)
def _tokens(options: Any) -> int:
    settings = settings_of(options)
    with open_lab(settings) as lab:
        run = lab.open(options.run)
        trials = run.trials(
            protocol=options.protocol,
            policies=(settings["policy"],),
            where=lambda trial: trial.trial_id.startswith(options.trial),
        )
        if not len(trials):
            raise BadOptions(
                "no trial of this run has this id",
                got=options.trial,
                hint="`toolparse report --score` lists the trials",
            )
        return _list_tokens(trials[0], options)


def _list_tokens(trial: Any, options: Any) -> int:
    labels = trial.result.token_labels() if trial.result is not None else ()
    if options.json:
        names = ("index", "text", "id", "logprob", "entropy")
        put_json(
            [
                {name: getattr(label.token, name) for name in names}
                | {"start": label.token.span.start, "end": label.token.span.end}
                | {"kind": label.kind, "call": label.call, "path": label.path}
                | {"repaired": label.repaired}
                for label in labels
            ]
        )
    elif labels:
        put("\n".join(tokens_text(trial.result)))
        put(f"\n{tokens_line(trial.result)}. A star marks where a repair was made.")
    else:
        say("toolparse: no tokens were recorded of this answer; ask with logprobs=True")
    return 0 if labels else 1


@verb(
    "export",
    CONFIG,
    RUN,
    Option("--out FILE", "the file of JSON lines", required=True),
    Option(
        "--form",
        "answers with tool_calls, or as the model's text (default: as asked)",
        choices=("calls", "text"),
    ),
    STORE,
    *READER,
    JSON,
    examples=(
        "toolparse export latest --out train.jsonl",
        "toolparse export latest --form calls --out train.jsonl",
    ),
)
def _export(options: Any) -> int:
    """Write the answers of a run that are right as written as rows to train on. Return 1 if there
    are none.
    """
    settings = settings_of(options)
    need_lab()
    with open_lab(settings) as lab:
        run = lab.open(options.run)
        reading: Any = {"protocol": options.protocol, "policies": (settings["policy"],)}
        written = run.to_sft(options.out, form=options.form, **reading)
    account = {"path": str(written.path), "rows": written.rows, "left_out": dict(written.left_out)}
    put_told(options.json, account, written)
    return 0 if written.rows else 1
