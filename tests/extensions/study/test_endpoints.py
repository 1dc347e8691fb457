"""Several endpoints held to one of them: worse, the same, or cannot tell; and what broke."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import toolparse_lab as tp
from toolparse_lab.cli.app import main
from toolparse_lab.core.errors import BadOptions
from toolparse_lab.extensions.study import endpoints

TOOLS = [{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}]
CASES = 300


def rows(**broken: int) -> Iterator[dict[str, Any]]:
    """The answers of models a and those in `broken`, which are wrong in every nth case."""
    for model, every in {"a": 0, **broken}.items():
        for i in range(CASES):
            due = i % 4 != 3
            text = f'<tool_call>{{"name": "f", "arguments": {{"a": {i}}}}}</tool_call>'
            if every and i % every == 0:
                text = text.replace("}}<", "}<") if model == "damaged" else "No."
            yield {
                "case_id": f"k{i}", "input": "q", "model": model, "output": text if due else "No.",
                "target": [{"name": "f", "arguments": {"a": i}}] if due else [],
            }  # fmt: skip


def test_worse_the_same_and_cannot_tell(lab: tp.Lab, capsys: Any) -> None:
    run = lab.ingest(rows(b=0, c=5, d=100), tools=TOOLS, protocol="hermes", progress=False)
    ends = endpoints(run, margin=0.1)
    verdicts = {model: ends.verdict(model) for model in run.plan.models}
    assert verdicts == {"a": "reference", "b": "the same", "c": "worse", "d": "the same"}
    c = ends.frame[ends.frame["model"] == "c"].set_index("measure")
    assert set(c.loc[["call when due", "success"], "verdict"]) == {"worse"}
    assert c.loc["quiet when not", "difference"] == 0
    assert (c["low"] <= c["difference"]).all()
    assert ends.broken("c") == {"model": sum(i % 5 == 0 and i % 4 != 3 for i in range(CASES))}
    assert endpoints(run, "c", margin=0.1).verdict("a") == "better"
    # A margin of one point takes more cases than these to be shown.
    assert endpoints(run, margin=0.01).verdict("b") == "cannot tell"
    assert "c: worse" in str(ends)


def test_the_layer_that_broke_it_is_named(lab: tp.Lab) -> None:
    run = lab.ingest(rows(damaged=3), tools=TOOLS, protocol="hermes", progress=False)
    ends = endpoints(run, policy="none")
    assert set(ends.broken("damaged")) <= {"model", "model (markup_in_content)"}


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda run: endpoints(run, "z"), "the reference is a model of the plan"),
        (lambda run: endpoints(run).verdict("z"), "no endpoint of this name"),
    ],
)
def test_what_cannot_be_compared(lab: tp.Lab, ask: Any, words: str) -> None:
    run = lab.ingest(rows(b=0), tools=TOOLS, protocol="hermes", progress=False)
    with pytest.raises(BadOptions, match=words):
        ask(run)


def test_one_model_has_nothing_to_be_held_to(lab: tp.Lab) -> None:
    run = lab.ingest(rows(), tools=TOOLS, protocol="hermes", progress=False)
    with pytest.raises(BadOptions, match="held to each other"):
        endpoints(run)


def test_the_command(tmp_path: Path, capsys: Any) -> None:
    store = str(tmp_path / "runs.db")
    with tp.Lab(store) as lab:
        lab.ingest(rows(b=0, c=3), tools=TOOLS, protocol="hermes", progress=False)
    assert main(["endpoints", "--store", store, "--margin", "0.1"]) == 1
    assert "c: worse" in capsys.readouterr().out
    assert main(["endpoints", "--store", store, "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert said["verdicts"]["a"] == "reference"
    assert {row["model"] for row in said["measures"]} == {"b", "c"}
