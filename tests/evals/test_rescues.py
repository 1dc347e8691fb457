"""A rescue is false where the value that the rule changed is wrong, not where anything else is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import toolparse_lab as tp
from tests.tables import every_case
from tests.tools import tool_named
from toolparse_lab.core.toolspec import tool_specs
from toolparse_lab.evals.cases.case import Case
from toolparse_lab.evals.reports.figures.report import Report
from toolparse_lab.evals.scoring.score import Score, score_text

TOOLS = tool_specs(
    [
        tool_named(
            "f",
            n="integer",
            m="integer",
            tags={"type": "array", "items": {"type": "integer"}},
            to={"type": "object", "properties": {"id": {"type": "integer"}}},
            s="string",
        ),
        {"name": "g", "parameters": {"type": "object", "properties": {}}},
    ]
)
INT = "coerce.integer-from-string"
WANTED = {"n": 1, "m": 2, "tags": [3, 4], "to": {"id": 5}, "s": "x"}


def scored(
    body: str, wanted: Any = None, *, name: str = "f", protocol: str = "hermes", raw: str = ""
) -> Score:
    raw = raw or f'<tool_call>{{"name": "{name}", "arguments": {body}}}</tool_call>'
    target = [{"name": "f", "arguments": WANTED if wanted is None else wanted}]
    return score_text(Case("c", "?", TOOLS, target), tp.parse(raw, protocol, TOOLS))


@every_case
def test_a_rule_is_judged_at_its_own_place(body: str, wanted: Any, rescues: list[Any]) -> None:
    assert [list(counted) for counted in scored(body, wanted).rescues] == rescues


def test_reading_rules_are_judged_at_their_place() -> None:
    raw = '<tool_call>{"name": "f", "arguments": "{\\"n\\": 9}"}</tool_call>'
    score = scored("", {"n": 1}, raw=raw)
    assert [(rule.split(".")[0], *counts) for rule, *counts in score.rescues] == [("read", 1, 0)]
    # Without the wanted names it read something else.
    score = scored("", {"m": 1}, raw=raw)
    assert [counts for _, *counts in score.rescues] == [[0, 1]]


def test_recovery_is_judged_by_the_call() -> None:
    raw = '```json\n{"name": "f", "arguments": {"n": 9}}\n```'
    assert scored("", {"n": 1}, raw=raw).rescues == (("call.recovered", 1, 0),)
    raw = '```json\n{"name": "g", "arguments": {}}\n```'
    assert scored("", {"n": 1}, raw=raw).rescues == (("call.recovered", 0, 1),)


def test_another_tool_says_nothing_of_its_values() -> None:
    assert scored('{"x": "1"}', {"n": 1}, name="g").rescues == ()


def test_a_missing_closer_is_no_strict_success() -> None:
    raw = '<tool_call>{"name": "f", "arguments": {"n": 1}}'
    score = scored("", {"n": 1}, raw=raw)
    assert (score.outcome, score.strict, score.repaired) == ("correct", False, True)
    assert score.rescues == (("call.missing-closer", 1, 0),)
    score = scored("", {"n": 1}, raw=raw + "</tool_call>")
    assert score.strict


# Counted by hand: the body of a call for {"n": 1}; what the repair of the comma, and the coercion of
# the text, did for the trial.
BY_HAND = {
    "clean": '{"n": 1}',
    "the comma alone": '{"n": 1,}',  # rescued by the comma
    "both": '{"n": "1",}',  # wrong without either: rescued by each
    "a comma, and wrong": '{"n": 7,}',  # no rescue, and not the comma's fault
    "a text, and wrong": '{"n": "7"}',  # made valid with a wrong value: a false rescue
    "a text": '{"n": "1"}',  # rescued by the coercion
}


def test_rescues_by_hand(tmp_path: Path) -> None:
    rows = [
        {
            "case_id": name,
            "input": "?",
            "tools": [tool_named("f", n="integer")],
            "target": [{"name": "f", "arguments": {"n": 1}}],
            "raw": f'<tool_call>{{"name": "f", "arguments": {body}}}</tool_call>',
        }
        for name, body in BY_HAND.items()
    ]
    with tp.Lab(tmp_path / "runs.db") as lab:
        frame = lab.ingest(rows, protocol="hermes", progress=False).frame()
    columns = ["trials", "rescued", "false_rescues", "harmed"]
    counts = Report(frame).rescues.set_index("rule")[columns].T.to_dict("list")
    assert counts == {"rjson.trailing-comma": [3, 2, 0, 0], INT: [3, 2, 1, 0]}
    # A trial that two rules rescued counts at both, so that the rules' sum is above the trials.
    gained = frame["score_success"].astype(bool) & ~frame["score_strict"].astype(bool)
    assert gained.sum() == 3
