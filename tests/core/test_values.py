"""JSON values that keep their number lexemes, canonical text, pointers and equality."""

from __future__ import annotations

import copy
import json
import math
import pickle
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import asked_of, every_case
from toolparse_lab.core.values import (
    BigNum,
    Num,
    leaves,
    number,
    pointer_get,
    pointer_set,
    pointer_tokens,
    read_plain,
    read_strict,
    same,
    write_canonical,
)

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(JSON)
def test_canonical_text_reads_back(value: Any) -> None:
    text = write_canonical(value)
    assert same(read_strict(text), value)
    assert write_canonical(read_strict(text)) == text
    text.encode("utf-8")  # lone surrogates are escaped


@every_case
def test_lexemes_and_key_order_survive(text: str) -> None:
    assert write_canonical(read_strict(text)) == text


def test_white_space_goes() -> None:
    assert write_canonical(read_strict(' { "a" : [ 1 , 2 ] } ')) == '{"a":[1,2]}'


@asked_of(
    "text", ["NaN", "Infinity", "-Infinity", "", "{", "01", "1.", "'a'", "[1,]", '"\n"', "{} {}"]
)
def test_what_is_not_json(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_strict(text)


@asked_of("value", [math.nan, math.inf, object(), {1, 2}, [b"x"]])
def test_what_json_cannot_carry(value: Any) -> None:
    with pytest.raises(TypeError):
        write_canonical(value)


def test_any_depth_is_written_and_read_plain() -> None:
    value: Any = {"a": Num("1.50")}
    for _ in range(20_000):
        value = [value]
    text = write_canonical(value)
    assert text == "[" * 20_000 + '{"a":1.50}' + "]" * 20_000
    assert write_canonical(read_plain(text)) == text.replace("1.50", "1.5")
    strings: Any = {'k"\\': ["x\n", {"": None}, True, -3]}
    for _ in range(20_000):
        strings = [strings]
    assert same(read_plain(write_canonical(strings)), strings)


@asked_of(
    ("text", "plain"),
    [
        ("3.0", 3.0),
        ("0.1", 0.1),
        ("0.10", 0.1),
        ("12345678901234567890.5", Decimal("12345678901234567890.5")),
        ("1e400", Decimal("1e400")),
        ("-0", -0.0),
        ("1" * 5000, Decimal("1" * 5000)),
    ],
)
def test_plain_numbers(text: str, plain: Any) -> None:
    found = read_plain(text)
    assert type(found) is type(plain)
    assert found == plain


@asked_of(
    "text", ["1e999999999999999999999", "1e-999999999999999999999", "[-1.5E+99999999999999999999]"]
)
def test_an_exponent_beyond_every_number_is_no_json(text: str) -> None:
    with pytest.raises(ValueError, match="exponent"):
        read_strict(text)


@asked_of(
    "text", ["1e999", "-1.50E+400", "1e-999", "7" * 5000, "-" + "7" * 5000, "1e999999999999999999"]
)
def test_what_a_float_cannot_hold_stays_exact(text: str) -> None:
    found = number(text)
    assert isinstance(found, BigNum)
    assert found.is_finite()
    assert found == Decimal(text) != 0
    assert write_canonical([found]) == f"[{text}]"
    assert type(read_plain(text)) is Decimal
    assert read_plain(text) == Decimal(text)
    for again in (pickle.loads(pickle.dumps(found)), copy.deepcopy(found), copy.copy(found)):
        assert again == found
        assert again.text == text


@asked_of("text", ["0e999", "-0.0e-999", "0.000", "0E99999999999999999999"])
def test_zero_is_zero_whatever_its_exponent(text: str) -> None:
    assert isinstance(number(text), Num)
    assert read_plain(text) == 0.0
    assert write_canonical(number(text)) == text


def test_an_int_beyond_the_limit_of_python_is_written() -> None:
    assert write_canonical({"n": 10**5000}) == '{"n":1' + "0" * 5000 + "}"
    assert write_canonical([10**5000] * 20) == "[" + ",".join(["1" + "0" * 5000] * 20) + "]"


def test_what_contains_itself_is_no_value() -> None:
    loop: list[Any] = []
    loop.append({"a": loop})
    with pytest.raises(TypeError, match="itself"):
        write_canonical(loop)


def test_a_num_is_a_float_that_remembers() -> None:
    num = number("2.50")
    assert isinstance(num, Num)
    assert num == 2.5
    assert num.text == "2.50"
    for again in (pickle.loads(pickle.dumps(num)), copy.deepcopy(num), copy.copy(num)):
        assert again.text == "2.50"
    assert type(number("12")) is int
    assert isinstance(number("-0"), Num)
    with pytest.raises(ValueError, match="not a JSON number"):
        Num("x")


@asked_of(
    ("a", "b", "equal"),
    [
        (1, 1.0, True),
        (1, True, False),
        (0, False, False),
        (Num("1.10"), Num("1.1"), True),
        (Num("1e400"), Num("1e401"), False),
        (Num("0.1"), 0.1, True),
        (float("inf"), Num("1e400"), False),
        (None, False, False),
        ("1", 1, False),
        ([1, [2]], [1, [2.0]], True),
        ([1], [1, 2], False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": 1}, {"b": 1}, False),
        ([], {}, False),
        (12345678901234567890, Num("12345678901234567890.0"), True),
    ],
)
def test_same(a: Any, b: Any, equal: bool) -> None:
    assert same(a, b) is equal
    assert same(b, a) is equal


DOCUMENT = {"a": {"b/c": [10, {"~": 1}]}, "": {"0": "zero"}, "e": [], "o": {}}


@every_case
def test_pointers(path: str, value: Any) -> None:
    assert pointer_get(DOCUMENT, path) == value


@asked_of("path", ["/x", "/a/b~1c/2", "/a/b~1c/-1", "/a/b~1c/x", "/a/b~1c/0/y", "/a/b~1c/²"])
def test_pointers_to_nothing(path: str) -> None:
    with pytest.raises(KeyError, match=r"."):
        pointer_get(DOCUMENT, path)


def test_a_pointer_begins_with_a_slash() -> None:
    with pytest.raises(ValueError, match="begins with"):
        pointer_tokens("a")


def test_pointer_set() -> None:
    value = {"a": [1, {"b": 2}]}
    assert pointer_set(value, "/a/1/b", 3) is value
    assert value == {"a": [1, {"b": 3}]}
    assert pointer_set(value, "", 5) == 5


def test_leaves_come_in_document_order() -> None:
    assert list(leaves(DOCUMENT)) == [
        ("/a/b~1c/0", 10), ("/a/b~1c/1/~0", 1), ("//0", "zero"), ("/e", []), ("/o", {}),
    ]  # fmt: skip


@given(JSON)
def test_every_leaf_is_found_by_its_pointer(value: Any) -> None:
    for path, leaf in leaves(value):
        assert same(pointer_get(value, path), leaf)


@given(st.text())
def test_strings_are_written_as_json_reads_them(text: str) -> None:
    assert json.loads(write_canonical(text)) == text
