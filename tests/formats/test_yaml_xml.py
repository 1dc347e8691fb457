"""YAML between a tool's tags: a table of texts, what is written, what plain scalars mean, and
hostile bodies."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import toolparse_lab as tp
from tests.core_cases import CORE, rows
from tests.formats.test_parameter_tags import told
from tests.growth import grows_linearly
from tests.laws import check_all, examples, part
from tests.tables import asked_of, each_case, every_case
from toolparse_lab.arguments.schema.view import view_of
from toolparse_lab.core.errors import UnwritableCall
from toolparse_lab.core.toolspec import tool_specs
from toolparse_lab.core.values import read_strict, same, write_canonical
from toolparse_lab.formats.base import DecodeContext, Opening
from toolparse_lab.formats.yaml import yaml_xml
from toolparse_lab.formats.yaml.reader import read_flat, resolve_plain
from toolparse_lab.formats.yaml.write import write_element
from toolparse_lab.formats.yaml.yaml_xml import YAML_XML

TOOLS = json.loads((CORE / "tag_tools.json").read_text("utf-8"))
SPECS = {t.name: t for t in tool_specs(TOOLS)}


@asked_of("row", rows("yaml_xml.jsonl"))
def test_each_text_is_read_as_the_table_says(row: dict[str, Any]) -> None:
    expected = {k: row[k] for k in ("calls", "text") if k in row}
    assert told(check_all(row["raw"], "yaml_xml", TOOLS)) == expected


@asked_of("row", part(rows("yaml_xml.jsonl"), 3))
def test_auto_keeps_the_laws_on_them(row: dict[str, Any]) -> None:
    check_all(row["raw"], "auto", TOOLS)


@each_case
def test_auto_looks_past_a_shared_opener(raw: str, owner: str) -> None:
    assert [c.protocol for c in check_all(raw, "auto", TOOLS).calls] == [owner]


@every_case
def test_plain_scalars_mean_what_yaml_1_2_says(text: str, value: Any) -> None:
    found = resolve_plain(text)
    assert found == value
    assert isinstance(found, bool) is isinstance(value, bool)
    write_canonical(found)


def test_lexemes_are_kept() -> None:
    assert [write_canonical(resolve_plain(t)) for t in ("1.50", "1E5", "1e999", "-0", "9" * 5000)] == [
        "1.50", "1E5", "1e999", "-0", "9" * 5000,
    ]  # fmt: skip
    assert write_canonical(resolve_plain(".5")) == "0.5"


@each_case
def test_the_schema_decides_where_text_would_lose_characters(
    schema: Any, text: str, value: Any
) -> None:
    assert resolve_plain(text, view_of(schema)) == value


def test_every_leaf_has_its_place() -> None:
    raw = "<any>\na: [1, \"x\", {b: 'y'}]\nc: |\n  l1\n  l2\nd: plain text # remark\n~e/f: null\n</any>"
    (call,) = check_all(raw, "yaml_xml", TOOLS).calls
    found = {p: o.span.of(raw) for p, o in call.origins.get().items()}
    assert found["/a/0"] == "1"
    assert found["/a/1"] == "x"
    assert found["/a/2/b"] == "y"
    assert found["/a"] == "[1, \"x\", {b: 'y'}]"
    assert found["/c"] == "  l1\n  l2\n"
    assert found["/d"] == "plain text"
    assert found["/~0e~1f"] == "null"


def test_places_are_those_of_the_raw_text_behind_edits() -> None:
    raw = "<w>\n```yaml\n\tcity: Bergen\n\tdays: 3\n```\n</w>"
    (call,) = check_all(raw, "yaml_xml", TOOLS).calls
    assert {p: call.origin(p).span.of(raw) for p in ("/city", "/days")} == {
        "/city": "Bergen",
        "/days": "3",
    }


def test_the_written_form() -> None:
    assert (
        YAML_XML.write_call("t", '{"a":1,"b":"l1\\nl2\\n"}') == "<t>\na: 1\nb: |\n  l1\n  l2\n</t>"
    )
    nested = {"o": {"k": [1, [2, 3], {"x": "z"}, []]}, "s": "no", "t": "007", "e": {}}
    assert write_element("t", nested) == (
        '<t>\no:\n  k:\n    - 1\n    - - 2\n      - 3\n    - x: z\n    - []\ns: "no"\nt: '
        '"007"\ne: {}\n</t>'
    )
    assert write_element("t", {}) == "<t>\n{}\n</t>"


@each_case
def test_what_yaml_cannot_hold_is_refused(name: str, value: Any) -> None:
    with pytest.raises(UnwritableCall):
        write_element(name, value)


TEXT = st.text() | st.text(
    alphabet=" \t\n\r-:#&*!|>'\"%@`{}[],?~.0123456789eEx_yno<>/\\\x85\u2028\ufeff\ue000😀",
    max_size=12,
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=10,
)


@settings(deadline=None, max_examples=examples(120))
@given(st.dictionaries(TEXT, JSON, max_size=4))
def test_whatever_is_written_reads_back(arguments: dict[str, Any]) -> None:
    assume(arguments != {"": {}})  # how some models write none
    source = json.dumps(arguments)
    text = YAML_XML.write_call("any", source, SPECS["any"])
    (call,) = tp.parse(text, "yaml_xml", TOOLS).calls
    assert call.ok
    assert same(read_strict(call.arguments_json), read_strict(source)), text


HOSTILE: dict[str, Callable[[int], str]] = {
    "calls": lambda n: "<w>\ncity: A\n</w>\n" * (n // 2),
    "openers": lambda n: "<w>\n" * (n // 2),
    "brackets a line": lambda n: ("<any>\na: " + "[a," * 90 + "\n</any>\n") * (n // 100),
    "brackets": lambda n: "<any>\na: " + "[\n" * n + "</any>",
    "closers in a literal": lambda n: "<w>\nbody: |\n" + "  </w>\n" * n + "</w>",
    "closers in texts": lambda n: "<w>\nbody: a\n" + "c: </w> x\n" * n,
    "dashes": lambda n: "<any>\na:\n" + "- " * n + "\n</any>",
    "equal keys": lambda n: "<w>\n" + "city: A\n" * n + "</w>",
    "white space": lambda n: "<w>\n" + " " * 9 * n + "city: A\n</w>",
    "aliases": lambda n: (
        "<any>\na0: &a0 x\n"
        + "".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(1, n))
        + "</any>"
    ),
}


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("protocol", ["yaml_xml", "auto"])
@pytest.mark.exhaustive(3, 1)
def test_hostile_text_takes_linear_time(kind: str, protocol: str) -> None:
    assert grows_linearly(lambda n: tp.parse(HOSTILE[kind](n), protocol, TOOLS), 500)


def test_the_depth_limit_is_the_callers() -> None:
    raw = "<any>\na: {b: {c: 1}}\n</any>"
    assert tp.parse(raw, "yaml_xml", TOOLS, {"max_depth": 3}).calls[0].ok
    problems = tp.parse(raw, "yaml_xml", TOOLS, {"max_depth": 2}).calls[0].problems
    assert [p.code for p in problems] == ["decode.too-deep"]


def test_strict_says_what_read_does() -> None:
    opening = YAML_XML.envelope.open("<w>", 0, True, SPECS)
    context = DecodeContext(opening, True, True, 1000, SPECS)  # type: ignore[arg-type]
    for body, strict in (
        ("\ncity: A\n", True),
        ("\n\tcity: A\n", False),
        ("\n- a\n", False),
        ("", True),
    ):
        assert YAML_XML.codec.strict(body, context) is strict


def test_yaml_is_loaded_only_when_it_is_read() -> None:
    code = "import sys, toolparse_lab as tp\ntp.parse('x', 'yaml_xml', [{'name': 'f'}])\nprint('yaml' in sys.modules)"
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        == "False\n"
    )


def yaml_text(r: random.Random) -> str:
    """Lines as bodies have them, with what is odd in YAML strewn in."""
    words = [
        "a", "a b", "3", "1.50", "true", "null", "~", "007", "it's", 'x "y" z', "a#b", "a:b", "-5",
        "--", "---", "<b>",
    ]  # fmt: skip
    odd = [
        "a: b", "a #b", "- a", "[1]", "{a: 1}", "'it''s'", '"a\\tb"', '"\\x41"', "&a", "!!str",
        "|+", ">", "\tx", "é", "\xa0",
    ]  # fmt: skip
    odd += [
        "a ",
        "?",
        "\x1b",
        ",",
        "%",
        "@",
        "`",
        "a:",
        '"a" b',
        "'",
        "\ufeff",
        "\u2028",
        "=",
        "<<",
        "'a\tb'",
        '"\\/\\b\\f\\u0041"',
        "*a",
    ]
    lead = r.choice(["", "", "", "  ", " "])
    out: list[str] = [r.choice(["\n", "\n", "", " \n\n"])]
    for _ in range(r.randrange(1, 5)):
        key = r.choice(["a", "b", "c", "d_e", "k.l", "$x" if r.random() < 0.1 else "z"])
        kind = r.random()
        if kind < 0.6:
            value = r.choice(odd if r.random() < 0.12 else words)
            out.append(
                f"{lead}{key}: "
                f"{r.choice(['', ' '] if kind < 0.1 else [''])}{value}{' ' * (kind < 0.05)}\n"
            )
        elif kind < 0.7:
            out.append(f'{lead}{key}: "{r.choice(words[:4])}"\n')
        elif kind < 0.75:
            out.append(f"{lead}{key}:{r.choice(['', ' ', '  # x'])}\n")
        else:
            deeper = lead + r.choice(["  ", " ", "    "])
            lines = [
                r.choice(
                    [
                        "x",
                        "",
                        "  y",
                        "# z",
                        "a: b",
                        "- c",
                        "\tt",
                        "e  ",
                        "f\x85g" if r.random() < 0.05 else "",
                    ]
                )
                for _ in range(r.randrange(1, 5))
            ]
            out.append(
                f"{lead}{key}: "
                f"{r.choice(['|', '|-', '|', '|+', '>'] if r.random() < 0.2 else ['|', '|-'])}\n"
            )
            out.extend((deeper if line or r.random() < 0.2 else "") + line + "\n" for line in lines)
        out.append(
            r.choice(["", "", "", "\n", "  \n", f"{lead}# c\n"] if r.random() < 0.2 else [""])
        )
    text = "".join(out)
    return r.choice(
        [text, text[:-1], text + lead, text + "  ", text.replace("\n", "\r\n")]
        if r.random() < 0.3
        else [text]
    )


def test_the_short_way_reads_what_the_long_way_does(monkeypatch: pytest.MonkeyPatch) -> None:
    r = random.Random(5)
    view = view_of({"properties": {"a": {"type": "string"}, "b": {"type": "integer"}}})
    opening = Opening(3, name="any")
    context = DecodeContext(opening, True, False, 1000, SPECS)
    taken = 0
    texts = [yaml_text(r) for _ in range(6000)]
    short = [read_flat(text, view) for text in texts]
    monkeypatch.setattr(yaml_xml, "read_flat", lambda text, view: None)
    monkeypatch.setattr(yaml_xml, "view_of", lambda schema: view)
    for text, found in zip(texts, short, strict=True):
        if found is None:
            continue
        taken += 1
        (long,) = YAML_XML.codec.read(text, context)
        assert (found[0], found[1], long.steps) == (long.arguments, long.places(), ()), repr(text)
    assert taken > 2000
