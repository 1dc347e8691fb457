"""Validation: codes, paths and severities; a broken schema breaks nothing."""

from __future__ import annotations

from typing import Any

import pytest

from toolparse_lab.rules import CODES
from toolparse_lab.schema.validate import validate
from toolparse_lab.values import read_strict, write_canonical

from .core_cases import rows


@pytest.mark.parametrize("case", rows("validate.jsonl"))
def test_validate(case: dict[str, Any]) -> None:
    found = validate(read_strict(write_canonical(case["value"])), write_canonical(case["schema"]))
    assert [[p.path, p.code, p.severity] for p in found] == case["found"], found
    assert all(p.code in CODES and p.stage == "validate" and p.message for p in found)


def test_messages_name_what_was_got_and_expected() -> None:
    (problem,) = validate({"a": "x"}, '{"type":"object","properties":{"a":{"type":"integer"}}}')
    assert problem.message == "expected integer, got string 'x'"
    (problem,) = validate({}, '{"type":"object","required":["a","b"]}')
    assert problem.message == "missing: a, b"
    (problem,) = validate("y", '{"enum":["x"]}')
    assert "'x'" in problem.message
    assert "'y'" in problem.message


def test_long_values_are_cut_in_messages() -> None:
    (problem,) = validate("x" * 10_000, '{"type":"integer"}')
    assert len(problem.message) < 200


def test_many_problems_are_bounded() -> None:
    assert 0 < len(validate(["x"] * 1000, '{"type":"array","items":{"type":"integer"}}')) <= 50


@pytest.mark.parametrize("number", ["1" * 5000, "1e999", "1e999999999999999999999"])
def test_a_number_out_of_range_is_the_values_fault(number: str) -> None:
    (problem,) = validate(read_strict(number), '{"type":"number","multipleOf":0.1}')
    assert (problem.code, problem.severity) == ("validate.constraint", "error")


def test_a_pattern_that_takes_exponential_time_is_stopped() -> None:
    """Fails closed: what was not validated is not valid."""
    schema = '{"type":"object","properties":{"s":{"type":"string","pattern":"^(a|aa)+$"}}}'
    assert validate({"s": "aaaa"}, schema) == ()
    (slow,) = validate({"s": "a" * 64 + "!"}, schema)
    assert (slow.code, slow.severity) == ("validate.slow-pattern", "error")
    keys = '{"type":"object","patternProperties":{"^(x|xx)+$":{"type":"integer"}}}'
    assert [p.code for p in validate({"x" * 64 + "!": 1}, keys)] == ["validate.slow-pattern"]
