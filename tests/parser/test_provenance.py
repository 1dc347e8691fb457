"""Where each argument came from: after repairs, escapes, entities, CDATA, JSON in strings, every
rule that moves."""

from __future__ import annotations

import ast
import contextlib
import json
import random
import warnings
from typing import Any

import pytest

import toolparse_lab as tp
from tests.core_cases import rows
from tests.entry.test_foreign import Says
from tests.tables import asked_of, each_case
from tests.tools import object_schema, tool_named
from toolparse_lab.arguments.rjson.positions import apply_edits
from toolparse_lab.arguments.rjson.strict import Refusal
from toolparse_lab.core.types import Edit
from toolparse_lab.core.values import leaves, read_strict
from toolparse_lab.formats.base import DecodeContext, Opening
from toolparse_lab.formats.python.call import PythonCalls
from toolparse_lab.formats.rxml.element import unescape

STR = {"type": "string"}
TOOL = tool_named(
    "f",
    s=STR,
    t=STR,
    n="integer",
    e={"enum": ["red", "green"]},
    tags={"type": "array", "items": STR},
    nums={"type": "array", "items": {"type": "integer"}},
    o=object_schema(k=STR, n="number"),
    objs={"type": "array", "items": object_schema(k=STR, n="integer")},
)


@asked_of("case", rows("origins.jsonl"))
def test_origins(case: dict[str, Any]) -> None:
    (call,) = tp.parse(
        case["raw"], case["protocol"], [TOOL], {"coerce": case.get("policy", "safe")}
    ).calls
    assert call.arguments == case["arguments"]
    assert {p: o.span.of(case["raw"]) for p, o in call.origins.get().items() if p} == case[
        "origins"
    ]
    inexact = [p for p, o in call.origins.get().items() if not o.exact]
    assert inexact == case.get("inexact", [])


def meanings(written: str, edits: tuple[Edit, ...], start: int) -> set[str]:
    """Everything a slice of raw text can mean: repaired, unescaped, once or twice."""
    local = [
        Edit(e.span.shift(-start), e.text, e.rule)
        for e in edits
        if start <= e.span.start and e.span.end <= start + len(written)
    ]
    repaired = apply_edits(written, local)
    found = {written, repaired, unescape(written), unescape(repaired)}
    for _ in range(3):
        more: set[str] = set()
        for text in found:
            more.update((text.replace('"', '\\"'), text.replace('\\"', '"'), unescape(text)))
            for quote in ('"', "'", '"""'):
                with contextlib.suppress(ValueError, SyntaxError):
                    more.add(ast.literal_eval(quote + text + quote))
            with contextlib.suppress(ValueError):
                more.add(json.loads(f'"{text}"', strict=False))
        found |= {m for m in more if isinstance(m, str)}
    return found


class Writer:
    """Random arguments, written the ways models write them. Numbers never repeat, so that a wrong
    place shows."""

    WORDS = (
        "ab", "é", "😀", "it's", 'q"q', "x<y", "&amp;", "a&b", "\n", "\t", "\\", "//", "}", "]",
        "“c”", ",", ":", "</f>", "\x01",
    )  # fmt: skip
    PLAIN = ("ab", "é", "😀", "z", "x<y", "a&b", "it's")

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.count = 100

    def words(self, pool: tuple[str, ...], low: int, high: int) -> str:
        return "".join(self.r.choice(pool) for _ in range(self.r.randint(low, high)))

    def number(self) -> int:
        self.count += 1
        return self.count

    def arguments(self) -> dict[str, Any]:
        r = self.r
        some: dict[str, Any] = {
            "s": self.words(self.WORDS, 0, 4),
            "n": self.number(),
            "tags": [self.words(self.PLAIN, 1, 3) for _ in range(r.randint(1, 3))],
            "nums": [self.number() for _ in range(r.randint(1, 3))],
            "o": {"k": self.words(self.WORDS, 0, 3), "n": self.number()},
            "objs": [
                {"k": self.words(self.PLAIN, 1, 2), "n": self.number()}
                for _ in range(r.randint(1, 2))
            ],
            "t": self.words(self.WORDS, 0, 4),
        }
        return {k: v for k, v in some.items() if r.random() < 0.6}

    def text(self, x: str, style: str) -> str:
        if style == "python":
            return repr(x)
        if style == "smart":
            return "“" + json.dumps(x)[1:-1].replace('\\"', '"') + "”"
        if style == "raw":
            return '"' + x.replace("\\", "\\\\").replace('"', '\\"') + '"'
        return json.dumps(x, ensure_ascii=self.r.random() < 0.5)

    def json(self, v: Any, style: str, inner: int = 0) -> str:
        if isinstance(v, str):
            return self.text(v, style)
        if isinstance(v, int):
            return json.dumps(str(v)) if self.r.random() < 0.2 else str(v)
        if inner and style != "python" and self.r.random() < 0.3:
            return json.dumps(self.json(v, self.r.choice(["json", "python"])))
        comma = "," if style != "json" and self.r.random() < 0.3 and v else ""
        space = self.r.choice(["", " "])
        if isinstance(v, dict):
            members = (
                f"{self.text(k, style)}:{space}{self.json(x, style, inner + 1)}"
                for k, x in v.items()
            )
            return "{" + f",{space}".join(members) + comma + "}"
        return "[" + f",{space}".join(self.json(x, style, inner + 1) for x in v) + comma + "]"

    def element(self, name: str, v: Any) -> str:
        if isinstance(v, int):
            inner = self.r.choice(["", "\n "]) + str(v)
        elif isinstance(v, str):
            inner = (
                f"<![CDATA[{v}]]>"
                if self.r.random() < 0.3
                else v.replace("&", "&amp;").replace("<", "&lt;")
            )
        elif self.r.random() < 0.3:
            inner = json.dumps(v).replace("&", "&amp;").replace("<", "&lt;")
        elif isinstance(v, list):
            if self.r.random() < 0.5:
                return "".join(self.element(name, x) for x in v)
            inner = "".join(self.element("item", x) for x in v)
        else:
            inner = "".join(self.element(k, x) for k, x in v.items())
        return f"<{name}>{inner}</{name}>"

    def call(self) -> tuple[str, str]:
        kind = self.r.choice(["json", "python", "smart", "raw", "double", "xml", "pythonic"])
        a = self.arguments()
        if kind == "xml":
            return "morph_xml", "é😀 " + "<f>" + "".join(
                self.element(k, v) for k, v in a.items()
            ) + "</f>"
        if kind == "pythonic":
            return "pythonic", "[f(" + ", ".join(f"{k}={v!r}" for k, v in a.items()) + ")]"
        inner = (
            self.json(a, kind)
            if kind != "double"
            else json.dumps(self.json(a, self.r.choice(["json", "python"])))
        )
        style = "json" if kind == "double" else kind
        head = (
            f"{self.text('name', style)}: {self.text('f', style)}, {self.text('arguments', style)}"
        )
        return "hermes", f"é😀 <tool_call>{{{head}: {inner}}}</tool_call>"


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("policy", ["safe", "middleware"])
def test_every_leaf_stands_where_its_origin_says(seed: int, policy: str) -> None:
    writer = Writer(seed)
    seen = exact = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        for _ in range(60):
            protocol, raw = writer.call()
            for call in tp.parse(raw, protocol, [TOOL], {"coerce": policy}).calls:
                if not call.readable:
                    continue
                table = call.origins.get()
                for path, leaf in leaves(read_strict(call.arguments_json)):
                    origin = table[path]
                    seen += 1
                    exact += origin.exact
                    written = origin.span.of(raw)
                    if isinstance(leaf, str):
                        assert not origin.exact or leaf in meanings(
                            written, call.edits, origin.start
                        ), (path, raw)
                    elif isinstance(leaf, int):
                        assert not origin.exact or written == str(leaf), (path, raw)
                for path, origin in table.items():
                    outer = path.rpartition("/")[0]
                    if path and outer in table:
                        assert table[outer].span.covers(origin.span), (path, raw)
    assert seen > 200
    assert exact > 0.95 * seen, "too many origins are inexact"


def test_steps_say_where_they_were_made() -> None:
    raw = '<tool_call>{"name": "f", "arguments": {"nums": "[\\"1\\", 2]", "n": " 5 "}}</tool_call>'
    (call,) = tp.parse(raw, "hermes", [TOOL]).calls
    assert [(s.rule, s.path, s.span.of(raw)) for s in call.steps if s.span] == [
        ("coerce.json-from-string", "/nums", '[\\"1\\", 2]'),
        ("coerce.integer-from-string", "/nums/0", "1"),
        ("coerce.integer-from-string", "/n", " 5 "),
    ]


def test_each_repair_of_a_list_belongs_to_one_call() -> None:
    raw = "<tool_call>[{'name': 'f', 'arguments': {'n': 1}}, {'name': 'f', 'arguments': {'n': 2}},]</tool_call>"
    first, second = tp.parse(raw, "hermes", [TOOL]).calls
    assert len(first.edits) == len(second.edits) - 1 == 8
    assert not set(first.edits) & set(second.edits)
    assert first.origin("/n").span.of(raw) == "1"
    assert second.origin("/n").span.of(raw) == "2"


def test_problems_say_where() -> None:
    raw = '<tool_call>{"name": "f", "arguments": {"o": "{\\"n\\": \\"x\\"}"}}</tool_call>'
    (call,) = tp.parse(raw, "hermes", [TOOL]).calls
    (problem,) = call.problems
    assert (problem.code, problem.path) == ("validate.type", "/o/n")
    assert problem.span is not None
    assert problem.span.of(raw) == "x"


def test_a_trimmed_value_has_the_place_of_what_is_left() -> None:
    tools = [tool_named("f", u={"enum": ["celsius", "kelvin"]})]
    raw = '<tool_call>{"name": "f", "arguments": {"u": "  celsius "}}</tool_call>'
    (call,) = tp.parse(raw, "hermes", tools).calls
    assert [s.rule for s in call.steps] == ["coerce.trim"]
    assert call.origin("/u").span.of(raw) == "celsius"


# The smallest text for each rule and code that no case file speaks of.


@each_case
def test_the_rule_is_applied_and_recorded(
    rule: str, raw: str, protocol: str, policy: str, tools: Any, arguments: dict[str, Any]
) -> None:
    (call,) = tp.parse(raw, protocol, tools, {"coerce": policy}).calls
    assert call.arguments == arguments
    assert rule in {s.rule for s in call.steps} | {e.rule for e in call.edits}


def test_a_list_that_is_no_python_is_refused_with_its_place() -> None:
    context = DecodeContext(Opening(0), True, True, 1000, {})
    with pytest.raises(Refusal) as caught:
        PythonCalls().read("[f(a=1 b=2)]", context)
    assert (caught.value.code, caught.value.position) == ("decode.pythonic", 7)


def test_a_text_with_two_places_is_noted() -> None:
    """The call's own text holds the text behind it, too."""
    call = {"type": "tool-call", "toolName": "f", "input": "{}"}
    result = tp.parse("f(b) b c", Says([call, "b", "c"]))
    assert "foreign.ambiguous-place" in [p.code for p in result.all_problems()]


# `result.why()`: one sentence a call.


TOOLS = [{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}]


@pytest.mark.parametrize("case", rows("why.jsonl"))
def test_why(case: dict[str, Any]) -> None:
    result = tp.parse(case["raw"], "hermes", TOOLS)
    assert result.why() == case["why"]
    assert str(result) == case["why"]
