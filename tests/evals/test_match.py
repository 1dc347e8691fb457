from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from tests.tables import asked_of, every_case
from tests.tools import object_schema
from toolparse_lab.core.errors import BadOptions, UnknownName
from toolparse_lab.core.toolspec import tool_specs
from toolparse_lab.core.values import read_strict
from toolparse_lab.evals.cases.matchers import Matchers, approximate, matcher_of, normalised_text
from toolparse_lab.evals.cases.target import check_target, wanted_calls
from toolparse_lab.evals.scoring.match import agree, match_calls

TOOLS = tool_specs(
    {
        "name": "f",
        "parameters": {
            "type": "object",
            "properties": {
                "a": {"type": "integer"},
                "unit": {"type": "string", "default": "C"},
                "box": object_schema(deep={"type": "boolean", "default": False}),
                "items": {"type": "array", "items": {"$ref": "#/$defs/Item"}},
            },
            "$defs": {
                "Item": {"type": "object", "properties": {"n": {"type": "integer", "default": 1}}}
            },
        },
    }
)


def call(**arguments: Any) -> dict[str, Any]:
    return {"name": "f", "arguments": arguments}


@every_case
def test_arguments(text: str, wanted: Any, code: str) -> None:
    match = match_calls([("f", read_strict(text))], [{"name": "f", "arguments": wanted}], TOOLS)
    assert (match.code, match.ok) == (code, not code), match


Called = tuple[str, dict[str, Any]]
F1: Called
F2: Called
G: Called
F1, F2, G = ("f", {"a": 1}), ("f", {"a": 2}), ("g", {})
_F1, _F2, _G = ({"name": n, "arguments": a} for n, a in (F1, F2, G))
# Calls, target, the sub-code ('' = right), and the rows of the table of what is wrong.


@every_case
def test_rules_of_a_target(calls: list[Any], target: Any, code: str, rows: list[str]) -> None:
    match = match_calls(calls, target, TOOLS)
    assert (match.code, match.ok) == (code, not code), match
    assert [str(row) for row in match.rows] == rows
    assert agree(calls, target, TOOLS) == match.ok
    # A broken target always has its reason, a right one none.
    assert bool(match.detail) == (not match.ok) == bool(match.rows)
    assert check_target(target) is None
    wanted = wanted_calls(target)
    assert all(i < len(calls) and j < len(wanted) for i, j in match.pairs)


@asked_of("seed", range(3))
def test_rules_are_what_trying_all_pairings_says(seed: int) -> None:
    rng = random.Random(seed)

    def some(most: int) -> list[Any]:
        return [rng.choice([F1, F2, G]) for _ in range(rng.randint(0, most))]

    def want(call: Any) -> Any:
        options = [{"name": call[0], "arguments": call[1]}, {"name": call[0], "arguments": "$any"},
                   {"$any": [_F1, _G]}]  # fmt: skip
        return rng.choice(options)

    def fits(call: Any, one: Any) -> bool:
        return match_calls([call], [one]).ok

    for _ in range(400):
        calls, wants = some(4), [want(call) for call in some(3)] or [_F1]
        tries = list(itertools.permutations(calls, len(wants)))
        in_order = list(itertools.combinations(calls, len(wants)))
        expected = {
            "$ordered": len(calls) == len(wants) and all(map(fits, calls, wants)),
            "$at_least": any(all(map(fits, some, wants)) for some in tries),
            "$only": all(any(fits(c, w) for w in wants) for c in calls),
            "$never": not any(fits(c, w) for c in calls for w in wants),
        }
        for rule, right in expected.items():
            match = match_calls(calls, [{rule: wants}])
            assert match.ok == right, (rule, calls, wants)
            assert bool(match.rows) == (not right)
        subsequence = match_calls(calls, [{"$at_least": [{"$ordered": wants}]}])
        assert subsequence.ok == any(all(map(fits, some, wants)) for some in in_order)


@every_case
def test_a_rule_that_cannot_be_read_is_named(target: Any, says: str) -> None:
    complaint = check_target(target)
    assert complaint is not None
    assert says in complaint[0]


@every_case
def test_several_calls(calls: list[Any], target: list[Any], code: str) -> None:
    match = match_calls(calls, target, TOOLS)
    assert (match.code, match.ok) == (code, not code), match


def test_verdict_equals_trying_every_pairing() -> None:
    rng = random.Random(5)
    verdicts = set()
    for _ in range(300):
        n, m = rng.randrange(1, 5), rng.randrange(1, 5)
        calls = [("f", {"a": rng.randrange(3)}) for _ in range(n)]
        target = []
        for _ in range(m):
            wanted = call(a={"$any": rng.sample(range(3), rng.randrange(1, 3))})
            target.append({**wanted, "$optional": True} if rng.random() < 0.4 else wanted)
        needed = {j for j, t in enumerate(target) if "$optional" not in t}
        truth = n <= m and any(
            needed <= set(p)
            and all(
                c[1]["a"] in target[j]["arguments"]["a"]["$any"]
                for c, j in zip(calls, p, strict=True)
            )
            for p in itertools.permutations(range(m), n)
        )
        assert match_calls(calls, target).ok is truth, (calls, target)
        verdicts.add(truth)
    assert verdicts == {True, False}


def test_explanation_takes_the_cheapest_pairing_and_says_when_it_is_greedy() -> None:
    target = [call(a=i) for i in range(8)]
    calls = [("f", {"a": i}) for i in (7, 6, 5, 4, 3, 2, 1, 99)]
    match = match_calls(calls, target)
    assert match.detail == "f: /a is 99, wanted 0"
    assert match.note == ""
    many = match_calls([("f", {"a": i + 1}) for i in range(9)], [call(a=i) for i in range(9)])
    assert "greedy" in many.note
    assert match_calls([("f", {"a": 8 - i}) for i in range(9)], [call(a=i) for i in range(9)]).ok


def test_registry_by_path_and_type() -> None:
    target = [{"name": "f", "arguments": {"city": "Paris", "list": [{"t": "x"}], "n": 1}}]
    made: list[tuple[str, Any]] = [("f", {"city": "PARIS!", "list": [{"t": "y"}], "n": 1.2})]
    assert not match_calls(made, target).ok
    by_path = Matchers(
        {"/city": "normalised", "f/list/*/t": "ignore", "/n": approximate(relative=0.5)}
    )
    assert match_calls(made, target, matchers=by_path).ok
    other_tool = Matchers({"g/city": "ignore", "/list/*/t": "ignore", "/n": "ignore"})
    assert match_calls(made, target, matchers=other_tool).differences[0].path == "/city"
    loose = Matchers(
        {"/extra": "ignore"}, {"string": lambda a, w: True, "number": approximate(0.5)}
    )
    assert match_calls([("f", {**made[0][1], "extra": 1})], target, matchers=loose).ok


def test_wrong_registry_entries() -> None:
    with pytest.raises(UnknownName, match="no matcher"):
        Matchers({"/a": "fuzzy"})
    with pytest.raises(BadOptions, match="unknown JSON type"):
        Matchers(types={"int": "exact"})
    assert matcher_of("exact")(1, 1.0)


def test_normalised_text_keeps_letters_and_digits() -> None:
    assert normalised_text("Ａ-b c, É1") == "abcé1"
    punctuation = Matchers(types={"string": "normalised"})
    assert not match_calls([("f", {"a": "?"})], [call(a="!")], matchers=punctuation).ok
