"""Validation: codes, paths and severities; a broken schema breaks nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core_cases import rows
from tests.tables import asked_of, every_case, table
from toolparse_lab.arguments.schema.coerce import coerce
from toolparse_lab.arguments.schema.validate import fits, validate
from toolparse_lab.core.rules import CODES
from toolparse_lab.core.values import read_strict, write_canonical


@asked_of("case", rows("validate.jsonl"))
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


@every_case
def test_multiples_are_exact(number: str, factor: str, multiple: bool) -> None:
    problems = validate(read_strict(number), f'{{"type":"number","multipleOf":{factor}}}')
    assert [p.code for p in problems] == ([] if multiple else ["validate.constraint"])


def test_a_number_of_very_many_digits_is_the_values_fault() -> None:
    (problem,) = validate(read_strict("1" * 50_000), '{"type":"number","multipleOf":3}')
    assert (problem.code, problem.severity) == ("validate.constraint", "error")


@pytest.mark.parametrize(
    "number", ["1" * 5000, "-" + "1" * 5000, "1e999", "3.0", "-0", "1e999999999999999999"]
)
@pytest.mark.parametrize("more", ["", ',"minLength":1', ',"multipleOf":1'])
def test_every_whole_number_is_an_integer(number: str, more: str) -> None:
    """By our own look at a plain schema and by the library's alike."""
    assert validate([read_strict(number)], f'{{"items":{{"type":"integer"{more}}}}}') == ()


@pytest.mark.parametrize("number", ["1.5", "1e-999", "1" * 500 + ".5"])
@pytest.mark.parametrize("more", ["", ',"minLength":1'])
def test_a_fraction_is_no_integer(number: str, more: str) -> None:
    (problem,) = validate(read_strict(number), f'{{"type":"integer"{more}}}')
    assert (problem.code, problem.severity) == ("validate.type", "error")
    assert problem.message.endswith(number[:50] + ("" if len(number) < 50 else number[50:59] + "…"))


@every_case
def test_bounds_of_numbers_beyond_a_float(number: str, bounds: str, codes: list[str]) -> None:
    assert [p.code for p in validate(read_strict(number), f'{{"type":"number",{bounds}}}')] == codes


def test_a_pattern_that_takes_exponential_time_is_stopped() -> None:
    """Fails closed: what was not validated is not valid."""
    schema = '{"type":"object","properties":{"s":{"type":"string","pattern":"^(a|aa)+$"}}}'
    assert validate({"s": "aaaa"}, schema) == ()
    (slow,) = validate({"s": "a" * 64 + "!"}, schema)
    assert (slow.code, slow.severity) == ("validate.slow-pattern", "error")
    keys = '{"type":"object","patternProperties":{"^(x|xx)+$":{"type":"integer"}}}'
    assert [p.code for p in validate({"x" * 64 + "!": 1}, keys)] == ["validate.slow-pattern"]


PLAIN = [
    row["schema"]
    for row in table(__file__)
    if row["test"] == "what_fits_is_valid_to_the_library_and_not_coerced"
]
VALUES = st.recursive(
    st.sampled_from(
        [
            None,
            True,
            False,
            1,
            -1,
            "x",
            "1",
            read_strict("3.0"),
            read_strict("2.5"),
            read_strict("1e999"),
        ]
    ),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=2)
    ),
    max_leaves=6,
)


@given(st.sampled_from(PLAIN), VALUES)
def test_what_fits_is_valid_to_the_library_and_not_coerced(
    schema: dict[str, Any], value: Any
) -> None:
    """With a keyword that says nothing, the library is asked about the same values."""
    text = json.dumps(schema)
    asked = validate(value, json.dumps({**schema, "minContains": 1}))
    assert fits(value, text) == (not asked)
    assert validate(value, text) == asked
    if fits(value, text):
        assert coerce(value, text).steps == ()


def test_references_to_nothing_are_left_to_the_library() -> None:
    for ref in ("#/$defs/Nope", "#name", "https://example.invalid/x", "#/$defs/R"):
        schema = json.dumps(
            {"type": "array", "items": {"$ref": ref}, "$defs": {"R": {"$ref": "#/$defs/R"}}}
        )
        assert not fits([1], schema)
        assert [p.path for p in validate([1], schema) if p.code == "validate.unchecked"] == ["/0"]
