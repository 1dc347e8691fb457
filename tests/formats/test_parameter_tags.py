"""Parameters as tags around raw text: a table of texts, what is written, and other formats as
constants."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from typing import Any

import pytest

import toolparse_lab as tp
from tests.core_cases import CORE, SHIPPED, load, rows
from tests.growth import grows_linearly
from tests.laws import check_all
from tests.tables import asked_of, every_case
from toolparse_lab.arguments.rjson.strict import Refusal
from toolparse_lab.core.errors import UnwritableCall
from toolparse_lab.core.toolspec import ToolSpec, tool_specs
from toolparse_lab.formats.base import DecodeContext, Opening, Protocol
from toolparse_lab.formats.parameters import scan as parameter_scan
from toolparse_lab.formats.parameters import tags as parameter_tags
from toolparse_lab.formats.parameters.form import TagForm
from toolparse_lab.formats.parameters.scan import ParameterScan
from toolparse_lab.formats.parameters.strict import StrictForm, read_functions
from toolparse_lab.formats.parameters.tags import QWEN3_CODER_XML, ParameterCall, ParameterTags
from toolparse_lab.formats.scan import Close

TOOLS = json.loads((CORE / "tag_tools.json").read_text("utf-8"))
SPECS = {t.name: t for t in tool_specs(TOOLS)}


def told(result: tp.ParseResult) -> dict[str, Any]:
    """A result in the shape of the tables."""
    calls = []
    for c in result.calls:
        call: dict[str, Any] = {"status": c.status, "name": c.name}
        if c.readable:
            call["arguments_json"] = c.arguments_json
        found = {
            "edits": sorted({e.rule for e in c.edits}),
            "reads": [s.rule for s in c.steps if s.stage == "read"],
            "codes": [p.code for p in c.problems],
        }
        calls.append(call | {k: v for k, v in found.items() if v})
    return {"calls": calls} | ({"text": result.text} if result.text.strip() else {})


@asked_of("row", rows("parameter_tags.jsonl"))
def test_each_text_is_read_as_the_table_says(row: dict[str, Any]) -> None:
    expected = {k: row[k] for k in ("calls", "text") if k in row}
    assert told(check_all(row["raw"], "qwen3_coder_xml", TOOLS)) == expected


@asked_of("row", rows("parameter_tags.jsonl"))
def test_auto_reads_the_same_calls(row: dict[str, Any]) -> None:
    result = check_all(row["raw"], "auto", TOOLS)
    readable = [(c["name"], c["arguments_json"]) for c in row["calls"] if "arguments_json" in c]
    # Another format may have a reading of a body that is none of this one.
    readable = [(name, text) for name, text in row.get("auto", readable)]
    assert [(c.name, c.arguments_json) for c in result.calls if c.readable] == readable


@asked_of("row", rows("parameter_tags.jsonl"))
def test_without_repair_nothing_is_edited(row: dict[str, Any]) -> None:
    result = check_all(row["raw"], "qwen3_coder_xml", TOOLS, {"repair": False}, every_split=False)
    assert not any(c.edits for c in result.calls)
    whole = [
        c["arguments_json"] for c in row["calls"] if "arguments_json" in c and "edits" not in c
    ]
    assert [c.arguments_json for c in result.calls if c.readable] == whole


def test_every_value_has_its_place() -> None:
    raw = "<tool_call>\n<function=tag>\n<parameter=tags>\na &lt; b\n</parameter>\n<parameter=tags>\nc\n</parameter>\n"
    raw += "<parameter=limit>\n 3\n</parameter>\n</function>\n</tool_call>"
    (call,) = tp.parse(raw, "qwen3_coder_xml", TOOLS).calls
    assert call.name_span is not None
    assert call.name_span.of(raw) == "tag"
    places = {p: call.origin(p).span.of(raw) for p in ("/tags/0", "/tags/1", "/limit")}
    assert places == {"/tags/0": "a &lt; b", "/tags/1": "c", "/limit": " 3"}


@asked_of("row", [r for r in load("parameter_tags.jsonl") if "edits" in str(r["calls"])])
def test_the_edited_text_reads_without_edits(row: dict[str, Any]) -> None:
    for call in tp.parse(row["raw"], "qwen3_coder_xml", TOOLS).calls:
        if not call.readable or call.segment.body is None:
            continue
        text = row["raw"]
        for e in reversed(call.edits):
            text = text[: e.span.start] + e.text + text[e.span.end :]
        again = [c for c in tp.parse(text, "qwen3_coder_xml", TOOLS).calls if c.readable]
        assert call.arguments_json in [c.arguments_json for c in again if not c.edits]


@every_case
def test_what_is_written_reads_back(arguments: dict[str, Any]) -> None:
    text = QWEN3_CODER_XML.write_call("w", json.dumps(arguments), SPECS["w"])
    (call,) = check_all(text, "qwen3_coder_xml", TOOLS, every_split=False).calls
    assert (call.ok, call.edits, call.arguments) == (True, (), arguments)


def test_the_written_form() -> None:
    text = QWEN3_CODER_XML.write_call("tag", '{"tags":["a"],"limit":3}')
    assert text == (
        '<tool_call>\n<function=tag>\n<parameter=tags>\n["a"]\n</parameter>\n'
        "<parameter=limit>\n3\n</parameter>\n</function>\n</tool_call>"
    )
    assert (
        QWEN3_CODER_XML.write_call("ping", "{}")
        == "<tool_call>\n<function=ping>\n</function>\n</tool_call>"
    )
    # Only what would not read back is escaped.
    assert "<p> & </p>" in QWEN3_CODER_XML.write_call("w", '{"body":"<p> & </p>"}', SPECS["w"])


@pytest.mark.parametrize(
    ("name", "arguments_json"),
    [("w", "[1]"), ("w", '{"a>b":"x"}'), ("w", '{"body":7}'), ('"', "{}"), ("w", '{"":"x"}')],
)
def test_what_would_not_read_back_is_refused(name: str, arguments_json: str) -> None:
    with pytest.raises(UnwritableCall):
        QWEN3_CODER_XML.write_call(name, arguments_json, SPECS["w"])


# Formats of the same family that are constants: id -> form.
KIN = {
    "mimo_compact": TagForm(trim=False, lines=False),
    "seed_oss": TagForm("<seed:tool_call>", "</seed:tool_call>"),
    "anthropic_legacy": TagForm(
        "<function_calls>", "</function_calls>", "invoke", "parameter", True, False
    ),
    "minimax_m2": TagForm(
        "<minimax:tool_call>", "</minimax:tool_call>", "invoke", "parameter", True, False
    ),
    "minicpm5": TagForm("", "", "function", "param", True, False, False),
    "llama31_function_tag": TagForm("", ""),
}


def kin(format_id: str) -> Protocol:
    form = KIN[format_id]
    tags = frozenset(("schema-typed",))
    return Protocol(
        id=format_id, envelope=ParameterTags(form), codec=ParameterCall(form), tags=tags
    )


@pytest.mark.parametrize("format_id", KIN)
def test_other_formats_of_the_family_are_constants(format_id: str) -> None:
    case = next(c for c in load("formats.jsonl", SHIPPED) if c["format"] == format_id)
    result = check_all(case["raw"], kin(format_id), case["tools"])
    assert [{"name": c.name, "arguments": c.arguments} for c in result.calls if c.ok] == case[
        "calls"
    ]
    assert not any(c.edits or c.problems for c in result.calls)


@pytest.mark.parametrize("format_id", KIN)
@pytest.mark.parametrize(
    "arguments", [{"city": "A", "days": 3}, {"body": "x\n</param>\n</parameter> </invoke>"}, {}]
)
def test_other_formats_write_what_they_read(format_id: str, arguments: dict[str, Any]) -> None:
    text = kin(format_id).write_call("w", json.dumps(arguments), SPECS["w"])
    result = check_all(text, kin(format_id), TOOLS)
    assert [(c.name, c.arguments, c.edits) for c in result.calls] == [("w", arguments, ())]


def test_verbatim_values_keep_their_line_breaks() -> None:
    raw = "<tool_call>\n<function=w><parameter=body>\nx\n</parameter></function>\n</tool_call>"
    assert tp.parse(raw, kin("mimo_compact"), TOOLS).calls[0].arguments == {"body": "\nx\n"}


OPEN = "<tool_call>\n<function=w>\n<parameter=body>\n"
HOSTILE: dict[str, Callable[[int], str]] = {
    "openers": lambda n: "<tool_call>" * n,
    "values that stay open": lambda n: OPEN * n,
    "closers in a value": lambda n: OPEN + "</parameter>\n x " * n,
    "ends in a value": lambda n: OPEN + "</function>\n</tool_call>\nx " * n,
    "white space behind closers": lambda n: OPEN + ("</parameter>" + " " * 50 + "x") * n,
    "parameters that stay open": lambda n: OPEN + "<parameter=city>\n" * n,
    "calls in a value": lambda n: OPEN + "<tool_call><function=w><parameter=city>" * n,
    "calls without a block": lambda n: "<function=w>\n<parameter=city>\nA\n" * n,
    "brackets": lambda n: OPEN + "<" * 9 * n,
    "a long name": lambda n: "<function=" + "a" * 9 * n,
}


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("protocol", ["qwen3_coder_xml", "auto"])
@pytest.mark.exhaustive(3)
def test_hostile_text_takes_linear_time(kind: str, protocol: str) -> None:
    assert grows_linearly(lambda n: tp.parse(HOSTILE[kind](n), protocol, TOOLS), 500)


def test_a_repeated_text_keeps_the_first_place() -> None:
    tool = ToolSpec.of(TOOLS[0])
    raw = "<function=w><parameter=city>A</parameter><parameter=city>A</parameter></function>"
    (call,) = check_all(raw, "qwen3_coder_xml", [tool]).calls
    assert call.origin("/city").span.start == raw.index("A")


_NONE = re.compile("(?!)")
NEVER = StrictForm(_NONE, _NONE, _NONE)
SPACES = ["", "\n", "\r\n", "\n\n", " ", "\t\n", "\x0c", "\xa0"]
NAMES = ["w", "city", "tags", "a.b", "ärger", "a b", "a=b", "x" * 300, "n'", ""]


def pieces_of(form: TagForm, r: random.Random) -> str:
    """A body and what follows it: well formed for the most part."""

    def odd(usual: str, *others: str) -> str:
        return r.choice(others) if r.random() < 0.04 else usual

    def name() -> str:
        return odd(r.choice(NAMES[:3]), *NAMES)

    tags = [
        form.tag(form.parameter, "city"),
        f"</{form.parameter}>",
        f"</{form.function}>",
        f"</ {form.parameter.upper()} >",
    ]
    tags += [form.opener, form.closer + form.opener, "</call>"]

    def value() -> str:
        inner = r.choices(
            ["x", "a\nb", "&lt;", "<b>", "</p>", "<", "\r", "", "\n"], k=r.randrange(4)
        )
        return "".join([r.choice(SPACES[:3]), *inner, odd("", *tags), r.choice(SPACES[:3])])

    def one() -> str:
        out = [
            r.choice(SPACES[:5]),
            odd(form.tag(form.function, name()), f"<CALL={name()}>", f"<tool>{name()}"),
            odd("", "x"),
        ]
        for _ in range(r.randrange(4)):
            out += [
                odd(r.choice(SPACES[:5]), *SPACES),
                odd(form.tag(form.parameter, name()), f"<arg={name()}>"),
            ]
            out += [
                value(),
                odd(f"</{form.parameter}>", "", "</arg>", f"</{form.parameter.upper()}>"),
            ]
        return "".join(
            [*out, odd(r.choice(SPACES[:5]), *SPACES), odd(f"</{form.function}>", "", "</invoke>")]
        )

    body = "".join(one() for _ in range(r.choice((1, 1, 1, 2))))
    return (
        body
        + r.choice(SPACES[:3])
        + odd(form.closer, "")
        + r.choice(["", "\n", "end", form.opener, "</tool_call>"])
    )


@pytest.mark.parametrize("format_id", ["qwen3_coder_xml", *KIN])
@pytest.mark.exhaustive(2)
def test_the_short_way_finds_and_reads_what_the_long_way_does(
    format_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    form = KIN.get(format_id, TagForm())
    r = random.Random(format_id)
    texts = [pieces_of(form, r) for _ in range(1500)]
    codec = ParameterCall(form)

    def scanned(text: str, cut: int, wrapped: bool) -> tuple[Any, ...]:
        scan = ParameterScan(form, SPECS, wrapped=wrapped)
        first = scan.scan(text[:cut], cut == len(text))
        if isinstance(first, Close) or cut == len(text):
            return first, first if isinstance(first, Close) else scan.finish()
        second = scan.scan(text[first:], True)
        return first, second, None if isinstance(second, Close) else scan.finish()

    def read(text: str, closed: bool) -> Any:
        try:
            found = codec.read(text, DecodeContext(Opening(1), closed, False, 1000, SPECS))
        except Refusal as no:
            return str(no)
        return found, [d.places() for d in found]

    def all_of() -> list[Any]:
        cuts = random.Random(1)
        return [
            [scanned(t, cuts.choice((len(t), cuts.randrange(len(t) + 1))), bool(form.opener) and cuts.random() < 0.8)
             for t in texts],
            [read(t.removesuffix("end").removesuffix(form.closer), cuts.random() < 0.8) for t in texts],
        ]  # fmt: skip

    short = all_of()
    monkeypatch.setattr(parameter_scan, "strict_form", lambda form: NEVER)
    monkeypatch.setattr(parameter_tags, "read_functions", lambda form, body: None)
    for a, b in zip(short, all_of(), strict=True):
        for text, x, y in zip(texts, a, b, strict=True):
            assert x == y, text
    taken = [read_functions(form, t.removesuffix("end").removesuffix(form.closer)) for t in texts]
    assert sum(t is not None for t in taken) > 150
