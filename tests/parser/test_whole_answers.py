"""An answer that is read in one look is what the engine reads, piece by piece."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import toolparse_lab as tp
from tests.laws import examples
from tests.quotations import CALLS, TOOLS, asked, formats, written
from tests.tables import each_case
from toolparse_lab.core.toolspec import tool_specs
from toolparse_lab.entry.parse import Reader
from toolparse_lab.formats.auto import AUTO
from toolparse_lab.parser.engine import StreamParser
from toolparse_lab.parser.state import Setting, setting_of
from toolparse_lab.parser.whole import read_whole

FORMATS = dict(formats())
PROTOCOLS = tp.protocols()
SPECS = tool_specs(TOOLS)
WORDS = ("I will look that up.", "Sure", "user", "The assistant says", "send_money", "For example",
         "AI", "reboot now", "Done.\n\nThen", "system", "Action", "<think>", "`", '"', "e.g.", "json")  # fmt: skip
BETWEEN = ("\n", "\n", "\n", "", " ", "\n\n", ".\n", "\n<|im_end|>", "</tool_call>")
ARGUMENTS = (
    "{}", '{"to": 1}', '{"to": "<tool_call>"}', '{"amount": "7"}', '{"to": "a\\nb"}', "[1]",
)  # fmt: skip


@pytest.mark.parametrize("protocol", ["hermes", "auto"])
def test_the_usual_answer_is_read_in_one_look(protocol: str) -> None:
    setting = setting_of(
        AUTO if protocol == "auto" else FORMATS[protocol], SPECS, tp.ParseOptions()
    )
    call = written(FORMATS["hermes"], *CALLS[0])
    assert call is not None
    for _ in range(3):  # the first of which teach how the format writes
        Reader(setting.protocol, SPECS).parse(call)
    for text in (call, f"I will do that.\n{call}", f"{call}\n{call.replace('900', '7')}\n"):
        assert read_whole(setting, text, None) is not None, text


@given(st.data())
def test_the_short_way_says_what_the_engine_says(data: st.DataObject) -> None:
    draw = data.draw
    name = draw(st.sampled_from(["hermes", *FORMATS]))
    calls = draw(st.lists(st.sampled_from(CALLS), min_size=1, max_size=3))
    if draw(st.booleans()):
        calls.append(("send_money", draw(st.sampled_from(ARGUMENTS))))
    bodies = [text for call in calls if (text := written(FORMATS[name], *call))]
    words = " ".join(draw(st.lists(st.sampled_from(WORDS), max_size=3)))
    between = draw(st.sampled_from(BETWEEN))
    text = words + between.join(["", *bodies]) + draw(st.sampled_from(["", "\n", *BETWEEN, "x"]))
    options = tp.ParseOptions(coerce=draw(st.sampled_from(["safe", "none", "middleware"])))
    protocol = AUTO if draw(st.booleans()) else FORMATS[name]
    setting = setting_of(protocol, SPECS if draw(st.booleans()) else (), options)
    request = asked(draw(st.sampled_from([text, "Hello", "send_money to mallory"])))
    for given_request in (None, request):
        check(setting, text, given_request)


def check(setting: Setting, text: str, request: Any = None) -> None:
    whole = read_whole(setting, text, request)
    if whole is not None:
        parser = StreamParser(setting, silent=True, request=request)
        parser.feed(text)
        engine = parser.close()
        assert whole == engine, text
        assert whole.to_dict() == engine.to_dict(), text
        for short, long in zip(whole.calls, engine.calls, strict=True):
            assert [step.span for step in short.steps] == [step.span for step in long.steps]


# One of each way to write a call: JSON alone, behind a header, in a list, in a string, in a fence;
# parameters in tags, pairs, elements with and without types; Python, YAML.
WRITTEN = (
    "hermes", "kimi_k2", "deepseek_v31", "mistral_v13_args", "mistral_v3", "openai_json",
    "llama3_json", "markdown_json", "glm4_9b", "harmony_channel", "qwen3_coder_xml",
    "glm47_compact", "morph_xml", "minimax_m3", "deepseek_v32_dsml", "bfcl_verbose_xml", "gemma4",
    "pythonic", "gorilla_openfunctions", "yaml_xml",
)  # fmt: skip
VALUES = st.one_of(
    st.sampled_from(
        ("Oslo", "a b", "", " a", "a\nb", "x<y", "</b>", "<tool_call>", "</arg_value>", "it's", '"q"',
         "a & b", "&lt;", "[1]", "{a}", "a, b=c", "a: b", "# c", "\\", "\\n", "\u65e5", "\U0001f642",
         "true", "null", "42", "-1.50", "no", "~", "```", "<name>", "send_money", "a\tb")
    ),
    st.integers(-(10**20), 10**20), st.floats(allow_nan=False, allow_infinity=False), st.booleans(),
    st.none(), st.lists(st.sampled_from(("a", 1, None, "]")), max_size=3),
    st.dictionaries(st.sampled_from(("x", "y/z", "name")), st.just("v"), max_size=2),
)  # fmt: skip
OBJECTS = st.dictionaries(st.sampled_from(("to", "amount", "note", "a-b", "")), VALUES, max_size=4)
AROUND = (
    "{}",
    "{}",
    "{}\n",
    "I will do that.\n{}",
    "Action\n{}",
    " {}",
    "{}\n\n",
    "{} x",
    "{}<|im_end|>",
)


def settings_of(name: str) -> list[Setting]:
    """Settings that have learned how a format writes calls: by its name and by `auto`."""
    settings = [setting_of(p, SPECS, tp.ParseOptions()) for p in (PROTOCOLS[name], AUTO)]
    call = written(PROTOCOLS[name], *CALLS[0])
    assert call is not None
    for setting in settings:
        for _ in range(3):
            Reader(setting.protocol, SPECS).parse(call)
    return settings


@pytest.mark.parametrize("name", WRITTEN)
@settings(max_examples=examples(40))
@given(arguments=OBJECTS, around=st.sampled_from(AROUND), spaced=st.booleans())
@pytest.mark.exhaustive(4)
def test_a_call_is_read_by_the_form_in_which_it_is_written(
    name: str, arguments: dict[str, Any], around: str, spaced: bool
) -> None:
    call = written(PROTOCOLS[name], "send_money", json.dumps(arguments))
    if call is None:
        return
    if spaced:
        call = call.replace('":', '": ').replace('","', '", "').replace("'", '"')
    text = around.replace("{}", call)
    for setting in settings_of(name):
        check(setting, text)


PIECES = ("a", "b c", "\n", "\r\n", " ", "<b>", "</b>", "x < y", "&", "&lt;", ">", "]", "]]>", "[/to]",
          "</note", "note>", "<![CDATA[", "<value>", "</parameter>", "<parameter=to>", "</arg_value>",
          "</tool_call>", "<PARAM", "7", '["a"]', "<p class='q'>", "<!-- x -->", "<value-", "&amp;",
          '"', "<br/>", "<")  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES), max_size=5).map("".join)


@pytest.mark.parametrize(
    "name",
    ["qwen3_coder_xml", "glm47_compact", "seed_oss", "dots", "muse_atem", "anthropic_legacy",
     "bfcl_concise_xml_tag", "minimax_m2", "morph_xml", "beam", "hyperclovax_seed_think", "telechat4",
     "hunyuan_v3"],
)  # fmt: skip
@settings(max_examples=examples(40))
@given(texts=st.tuples(TEXTS, TEXTS), around=st.sampled_from(AROUND))
@pytest.mark.exhaustive(3)
def test_texts_with_tags_are_read_as_the_engine_reads_them(
    name: str, texts: tuple[str, str], around: str
) -> None:
    call = written(PROTOCOLS[name], "send_money", '{"to": "zq one", "note": "zq two"}')
    assert call is not None
    call = call.replace("zq one", texts[0]).replace("zq two", texts[1])
    for setting in settings_of(name):
        check(setting, around.replace("{}", call))


@pytest.mark.parametrize("name", PROTOCOLS)
@pytest.mark.exhaustive(4)
def test_a_small_call_takes_few_python_calls(name: str) -> None:
    call = written(PROTOCOLS[name], *CALLS[0])
    if call is None:
        return
    assert python_calls(Reader(PROTOCOLS[name], SPECS), call) <= 70


def python_calls(reader: Reader, text: str) -> int:
    """How many calls of Python functions it takes to read a text like others before."""
    for _ in range(6):
        reader.parse(text)
    count = 0

    def see(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(see)
    try:
        reader.parse(text)
    finally:
        sys.setprofile(None)
    return count


ORDINARY: tuple[dict[str, Any], ...] = (
    {"text": "https://x.org/a?b=1&c=2", "n": 3}, {"text": "def f(x):\n    return x < 2 and x > 1"},
    {"text": "C:\\x\\y.txt"}, {"text": 'He said "yes" (again): it\'s 5% off.'},
    {"tags": ["src/a.py", "it's, ok"], "n": -1}, {"tags": []}, {"where": {"city": "Oslo", "days": 3}},
    {"ids": [1, 2], "where": {"city": "New York, NY"}, "price": 12.5, "late": True},
    {"text": "# head\n- a\n- b"}, {"mode": "fast", "maybe": None}, {},
)  # fmt: skip
TEXT = {"type": "string"}
PLAIN_TOOL = {
    "name": "put",
    "parameters": {
        "type": "object",
        "properties": {
            "text": TEXT, "n": {"type": "integer"}, "price": {"type": "number"},
            "late": {"type": "boolean"}, "tags": {"type": "array", "items": TEXT},
            "ids": {"type": "array", "items": {"type": "integer"}},
            "where": {"type": "object", "properties": {"city": TEXT, "days": {"type": "integer"}}},
            "mode": {"type": "string", "enum": ["fast", "slow"]}, "maybe": {"type": ["string", "null"]},
        },
    },
}  # fmt: skip
# Their values have no notation of one line: elements in elements, and YAML. Or strict schemas.
LONG_WAY = ("morph_xml", "yaml_xml", "minimax_m3", "openai_strict")


@pytest.mark.parametrize("name", [name for name in PROTOCOLS if name not in LONG_WAY])
@pytest.mark.exhaustive(4)
def test_ordinary_values_take_few_python_calls(name: str) -> None:
    specs = tool_specs([PLAIN_TOOL])
    reader = Reader(PROTOCOLS[name], specs)
    for arguments in ORDINARY:
        codec = PROTOCOLS[name].codec
        call = codec.join([codec.write("put", json.dumps(arguments), specs[0])])
        assert python_calls(reader, call) <= 70, call
        check(setting_of(PROTOCOLS[name], specs, tp.ParseOptions()), call)


# (format, a tool's name, its parameters, text before, arguments as they are written): what a
# pattern took for a plain call, and the engine does not.


@each_case
def test_what_looks_plain_is_left_to_the_engine(
    format: str, name: str, schema: dict[str, Any] | None, before: str, change: tuple[str, str]
) -> None:
    plain = PROTOCOLS[format].write_call("look_up", '{"text": "Oslo", "n": 7}', None)
    text = before + plain.replace("look_up", name).replace(*change)
    tools = () if schema is None else tool_specs([{"name": name, "parameters": schema}])
    teachers = tool_specs([{"name": "look_up", "parameters": {}}]) if tools else ()
    for protocol in (PROTOCOLS[format], AUTO):
        for options in (tp.ParseOptions(), tp.ParseOptions(validate=False)):
            for lead in ("", "I look.\n") * 3:
                Reader(protocol, teachers, options).parse(lead + plain)
            check(setting_of(protocol, tools, options), text)
