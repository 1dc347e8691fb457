"""Properties of coercion over random schemas and values: it never raises, has nothing to do twice,
and `safe` changes what the schema refuses, alone and without loss."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any, get_args

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.laws import examples
from toolparse_lab.arguments.schema.coerce import coerce
from toolparse_lab.arguments.schema.validate import validate
from toolparse_lab.core.types import Policy, Step
from toolparse_lab.core.values import read_strict, same, write_canonical

POLICIES = get_args(Policy)
WORDS = [
    "", "x", " yes", "No", "on", "OFF", "y", "n", "t", "F", "1", "0", "-0", "-0.0", "true", "False", "null",
    "NULL", "007", "02134", "+5", "1e3", "1.5e1", "1e309", "1e-400", "0e999999", ".5", "5.", "3.0", "-",
    "1e", "1_000", "[1, 2] and 3", "[1, 2]", "['a', 2,]", '{"a": "1"}', "{a: 1}", "a, b", "a\nb", "[",
    "“x”", "9" * 330, "0" * 330 + "1", "NaN", "Infinity", "٣",
]  # fmt: skip
NAMES = [
    "string", "integer", "number", "boolean", "null", "array", "object", "float", "Dict", "str",
]  # fmt: skip
REFERENCES = ["#", "#/$defs/a", "#/properties/a", "#/nowhere"]

texts = st.sampled_from(WORDS) | st.text("0123456789+-.eE_ ", max_size=8)
numbers = st.sampled_from([0, 1, -1, 2, 10**30]) | st.sampled_from(["-0", "1.0", "2.50", "1e5", "1e999"]).map(read_strict)  # fmt: skip
scalars = st.none() | st.booleans() | numbers | texts
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "item", "0", "1"]), inner, max_size=3)
    ),
    max_leaves=6,
)


def nodes(inner: Any) -> Any:
    """Schemas of one more level."""
    return st.one_of(
        st.fixed_dictionaries(
            # Properties without a type are read as those of an object, whatever JSON Schema says.
            {"type": st.sampled_from(["object", ["object", "null"]])},
            optional={
                "properties": st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2),
                "additionalProperties": inner | st.booleans(),
                "required": st.just(["a"]),
            },
        ),
        st.fixed_dictionaries(
            {"type": st.sampled_from(["array", "list"])}, optional={"items": inner}
        ),
        st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"allOf": st.lists(inner, min_size=1, max_size=2)}),
    )


leaf = st.one_of(
    st.sampled_from(NAMES).map(lambda name: {"type": name}),
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True).map(
        lambda names: {"type": names}
    ),
    st.lists(
        st.sampled_from([1, 5, True, None, "km", "5", "null", 2.5]), min_size=1, max_size=3
    ).map(lambda members: {"enum": members}),
    st.sampled_from(REFERENCES).map(lambda ref: {"$ref": ref}),
    st.booleans(),
    st.just({}),
)
schemas = st.recursive(leaf, nodes, max_leaves=6).flatmap(
    lambda schema: st.recursive(leaf, nodes, max_leaves=3).map(
        lambda definition: (
            {**schema, "$defs": {"a": definition}} if isinstance(schema, dict) else schema
        )
    )
)


@settings(max_examples=examples(120), deadline=None)
@given(values, schemas, st.booleans(), st.booleans())
def test_no_policy_raises_and_nothing_is_left_to_do(
    value: Any, schema: Any, one_item: bool, raw_text: bool
) -> None:
    schema_json = json.dumps(schema)
    written = {"one_item": one_item, "raw_text": raw_text}
    before = write_canonical(value)
    for policy in POLICIES:
        once = coerce(value, schema_json, policy, **written)
        assert write_canonical(value) == before
        # The policy of the reference wraps a text where a list of types names arrays first.
        if policy == "safe":
            assert coerce(once.value, schema_json, policy, **written).steps == ()
        validate(value, schema_json)


@settings(max_examples=examples(120), deadline=None)
@given(values, schemas)
def test_safe_changes_only_what_the_schema_refuses_and_loses_nothing(
    value: Any, schema: Any
) -> None:
    schema_json = json.dumps(schema)
    problems = [p for p in validate(value, schema_json) if p.code != "validate.type-name"]
    coerced = coerce(value, schema_json, "safe")
    if not problems:
        assert coerced.steps == ()
        assert same(coerced.value, value)
    for step in coerced.steps:
        assert step.lossless
        assert says_the_same(step), step


def says_the_same(step: Step) -> bool:
    """Tell if what a step left can be read back as what there was, but for its dress."""
    before, after, rule = step.before, step.after, step.rule
    if rule in ("coerce.integer-from-string", "coerce.number-from-string"):
        old, new = Decimal(before.strip()), Decimal(write_canonical(after))
        return old == new and old.is_signed() == new.is_signed()
    if rule.startswith("coerce.boolean-from-") and rule != "coerce.boolean-from-string":
        words = rule.removeprefix("coerce.boolean-from-").split("-")
        return str(before).strip().lower() == words[not after]
    if rule.startswith("coerce.string-from-"):
        return bool(same(read_strict(after), before))
    if rule == "coerce.json-from-string":
        return signs_of(before) == signs_of(write_canonical(after))
    if rule in ("coerce.trim", "coerce.unquote"):
        return bool(after in before)
    if rule == "coerce.enum-from-string" and not isinstance(after, bool) and after is not None:
        return Decimal(before.strip()) == Decimal(write_canonical(after))
    return write_canonical(after).lower() == str(before).strip().lower() or rule in (
        "coerce.wrap-array", "coerce.item-list", "coerce.numeric-keys"
    )  # fmt: skip


def signs_of(text: str) -> list[str]:
    """The words and numbers of a text, without the marks between them."""
    return re.findall(r"[\w.]+", text)
