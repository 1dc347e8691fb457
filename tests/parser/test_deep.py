"""JSON nested deeper than the interpreter recurses is read, compared, coerced, validated and
written like any other."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolparse_lab as tp
from tests.laws import EXHAUSTIVE
from tests.tools import object_schema
from toolparse_lab.arguments.rjson.positions import MAX_LEVELS, find_places
from toolparse_lab.arguments.rjson.strict import read_if_strict
from toolparse_lab.arguments.schema.validate import validate
from toolparse_lab.core.values import read_plain, read_strict, same, write_canonical
from toolparse_lab.core.values.canonical import read_deep, write_deep

DEEP = 20_000 if EXHAUSTIVE else 5_000
LINK = {
    "type": "object",
    "properties": {"v": {"type": "integer"}, "next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}},
    "additionalProperties": False,
}
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=12,
)


def arrays(levels: int, inner: str = "2") -> str:
    return "[1," * levels + inner + "]" * levels


def links(levels: int, value: str = "1") -> str:
    return ('{"v":' + value + ',"next":') * levels + "null" + "}" * levels


@given(JSON, st.sampled_from([None, 0, 1]))
def test_it_reads_and_writes_what_the_c_backed_reader_and_writer_do(
    value: Any, indent: int | None
) -> None:
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    found, end = read_deep(text)
    assert end == len(text)
    assert write_deep(found) == write_deep(read_strict(text)) == write_canonical(found)
    assert same(found, value)


@given(
    st.lists(st.sampled_from([*list('{}[],:"\\ 10.e-'), "true", '"a":', "\n"]), max_size=8).map(
        "".join
    )
)
def test_it_refuses_what_the_c_backed_reader_refuses(text: str) -> None:
    text = text.strip()
    try:
        wanted = json.JSONDecoder().raw_decode(text)
    except ValueError:
        with pytest.raises(ValueError, match=r"."):
            read_deep(text)
    else:
        found, end = read_deep(text)
        assert same(found, wanted[0])
        assert end == wanted[1]


@pytest.mark.parametrize("levels", [sys.getrecursionlimit() - 1, DEEP])
@pytest.mark.parametrize("body", [arrays, links])
def test_depth_within_the_limit_is_read(levels: int, body: Any) -> None:
    text = body(levels)
    value = read_strict(text)
    assert write_canonical(value) == text
    assert same(value, read_strict(text))
    assert write_canonical(read_plain(text)) == text
    assert read_if_strict(text, levels) is not None
    assert read_if_strict(text, levels - 1) is None
    assert tp.rjson.repair(text, max_depth=levels).ok
    damaged = tp.rjson.repair(
        text[: -levels - 1] + text[-levels - 1 :].replace("2", "2,"), max_depth=levels
    )
    assert same(damaged.value, value)
    assert [p.code for p in tp.rjson.repair(text + ",", max_depth=levels - 1).problems] == [
        "decode.too-deep"
    ]


@pytest.mark.parametrize(
    "text", ["[" * DEEP, "[1," * DEEP + "]" * (DEEP - 1), "[" * DEEP + "}" * DEEP, '{"a":' * DEEP]
)
def test_broken_and_deep_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_strict(text)
    assert not tp.rjson.repair(text).ok


def test_a_deep_call_has_arguments_origins_and_validation() -> None:
    text = '<tool_call>{"name":"f","arguments":{"x":' + arrays(DEEP) + "}}</tool_call>"
    tool = {"name": "f", "parameters": {"type": "object", "properties": {"x": {"type": "array"}}}}
    result = tp.parse(text, "hermes", [tool], tp.ParseOptions(max_depth=DEEP + 2))
    (call,) = result.calls
    assert (call.status, call.valid, call.problems) == ("ok", True, ())
    assert call.arguments_json == '{"x":' + arrays(DEEP) + "}"
    assert call.origin("/x/1").span.of(text) == arrays(DEEP - 1)
    assert tp.ParseResult.from_dict(result.to_dict()) == result
    refused = tp.parse(text, "hermes", [tool], tp.ParseOptions(max_depth=DEEP + 1))
    assert [p.code for p in refused.calls[0].problems] == ["decode.too-deep"]


def test_places_are_kept_down_to_a_depth() -> None:
    places = find_places(arrays(DEEP)).values
    assert max(path.count("/") for path in places) == MAX_LEVELS
    assert places[""] == (0, len(arrays(DEEP)))
    assert find_places("[1, " + arrays(DEEP) + ", 3]").values["/2"] == (
        len(arrays(DEEP)) + 6,
        len(arrays(DEEP)) + 7,
    )


def test_a_schema_that_refers_to_itself_is_followed_as_deep_as_the_value_goes() -> None:
    schema = json.dumps(LINK)
    good = read_strict(links(DEEP))
    assert validate(good, schema) == ()
    assert tp.coerce(good, LINK).steps == ()
    wrong = read_strict(links(DEEP).replace("null", '{"v":"x"}'))
    assert [(p.code, p.severity) for p in validate(wrong, schema)] == [
        ("validate.too-deep", "error")
    ]
    assert tp.coerce(wrong, LINK).value is wrong


@pytest.mark.parametrize(
    "schema", ['{"enum":[1]}', '{"type":"string"}', '{"minProperties":9}', '{"uniqueItems":true}']
)
def test_validation_of_depth_never_raises(schema: str) -> None:
    value = [read_strict(links(DEEP)), read_strict(links(DEEP))]
    tp.coerce(value, schema, "safe")
    tp.coerce(value, schema, "middleware")
    tp.coerce(value, schema, "lossy")
    assert all(p.code.startswith("validate.") for p in validate(value, schema))


def test_a_circle_in_a_schema_is_the_schemas_fault() -> None:
    for value, codes in (({"a": 1}, ["schema", "unchecked"]), ({}, ["schema", "constraint"])):
        problems = validate(value, '{"minProperties":1,"$ref":"#"}')
        assert [p.code.removeprefix("validate.") for p in problems][:2] == codes


@pytest.mark.parametrize("kind", ["anyOf", "oneOf"])
def test_unions_inside_unions_stay_cheap(kind: str) -> None:
    """Each level fits several branches; asked one by one that is two to the power of the depth."""
    node = {
        "$defs": {
            "J": {
                kind: [
                    {"type": "array", "items": {"$ref": "#/$defs/J"}},
                    {"type": "object", "properties": {"k": {"$ref": "#/$defs/J"}}},
                    object_schema(required=["z"], k={"$ref": "#/$defs/J"}),
                    {"type": "integer"},
                ]
            }
        },
        "$ref": "#/$defs/J",
    }
    value = read_strict('{"k":' * 60 + '"x"' + "}" * 60)
    assert tp.coerce(value, node).steps == ()
