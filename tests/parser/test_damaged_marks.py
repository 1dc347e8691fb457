"""Delimiters of every format with one character wrong: read where there is one reading, refused with
a word elsewhere, and never silent."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

import toolparse_lab as tp
from tests.laws import check_all, examples, part
from tests.tables import each_case
from tests.tools import tool_named
from toolparse_lab.core.types import Recovered

TOOLS = [
    tool_named("count_rows", required=["table", "most"], table="string", most="integer"),
    tool_named("write_file", required=["path", "content"], path="string", content="string"),
    tool_named("note", required=["text"], text="string"),
    tool_named("list_ports", region="string"),
]
_SPECS = {tool["name"]: tp.ToolSpec.of(tool) for tool in TOOLS}
_CALLS: list[tuple[str, dict[str, Any]]] = [
    ("count_rows", {"table": "tides", "most": 12}),
    ("write_file", {"path": "src/a.txt", "content": "hello world"}),
    ("note", {"text": "Rome at noon"}),
]
_TAG = re.compile(r"<[^<>\n]{1,60}>|\[/?[A-Z_]{4,}\]")
# The only marks of these formats around a name are words that prose has too.
_SILENT_IN = ("beam", "glm53_flash")


def damages(text: str) -> Iterator[tuple[str, str]]:
    """(kind, text with one mark damaged)."""
    tags = list(_TAG.finditer(text))
    for i, match in enumerate(tags):
        tag, start, end = match[0], match.start(), match.end()
        before, after = text[:start], text[end:]
        is_end = tag.startswith(("</", "[/"))
        if tag[-2].isalnum() or tag[-2] in "|\uff5c":
            yield "bracket lost", before + tag[:-1] + after
            yield "line break for bracket", before + tag[:-1] + "\n" + after.lstrip("\n")
            yield "space before bracket", before + tag[:-1] + " " + tag[-1] + after
            yield "line break before bracket", before + tag[:-1] + "\n" + tag[-1] + after
            yield "bracket doubled", before + tag + tag[-1] + after
        if tag[1].isalpha() or tag[1] in "|\uff5c":
            yield "first two swapped", before + tag[1] + tag[0] + tag[2:] + after
            yield "first lost", before + tag[1:] + after
        if is_end and i == len(tags) - 1:
            for junk in (".;\n", "}\n", "```\n"):
                yield "junk before the closer", before + junk + tag + after
            yield "closer cut", before + tag[: len(tag) // 2]
        if is_end and tag[-2].isalpha():
            yield "a word more", before + tag[:-1] + "_invocation" + tag[-1] + after
            yield "capitals", before + tag.upper() + after
    if tags and tags[0].start() == 0:
        yield "headless", text[tags[0].end() :].lstrip("\n")


def texts() -> Iterator[tuple[str, str, str, tuple[str, dict[str, Any]]]]:
    """(format, kind, damaged text, the call that was meant)."""
    for format, protocol in tp.protocols().items():
        for name, arguments in _CALLS:
            try:
                text = str(protocol.write_call(name, json.dumps(arguments), _SPECS[name]))
            except tp.errors.UnwritableCall:
                continue
            if outcome(tp.parse(text, format, TOOLS), (name, arguments)) == "right":
                for kind, damaged in damages(text):
                    yield format, kind, damaged, (name, arguments)


def outcome(result: tp.ParseResult, meant: tuple[str, dict[str, Any]]) -> str:
    valid = [call for call in result.calls if call.ok and call.valid]
    if valid:
        is_right = [(call.name, call.arguments) for call in valid] == [meant]
        return "right" if is_right else "wrong"
    if result.calls or any(p.severity != "info" for p in result.problems):
        return "refused"
    return "silent"


def is_known(format: str, kind: str, result: str) -> bool:
    """What stays as it is: a doubled bracket may begin a quoted value, between quotes too."""
    if result == "silent":
        return format in _SILENT_IN or kind == "capitals"
    return kind == "bracket doubled" or format in ("minimax_m3", "glm47_compact")


def test_a_damaged_mark_is_read_or_refused_and_never_silent() -> None:
    every = list(texts())
    wrong = []
    found: Counter[str] = Counter()
    draw = random.Random(7)
    for format, kind, text, meant in draw.sample(every, min(len(every), examples(200))):
        for reader in (format, "auto"):
            said = outcome(tp.parse(text, reader, TOOLS), meant)
            found[said] += 1
            if said in ("wrong", "silent") and not is_known(format, kind, said):
                wrong.append((said, kind, reader, text))
    assert wrong == []
    assert found["right"] > 0.7 * found.total(), found


def test_the_laws_hold_for_damaged_marks() -> None:
    every = list(texts())
    for format, _kind, text, _meant in random.Random(3).sample(every, examples(30)):
        check_all(text, format, TOOLS)
        check_all(text, "auto", TOOLS, every_split=False)


_TWO = '{"name": "note", "arguments": {"text": "hi"}}'


@each_case
def test_damage_with_one_reading_is_read(protocol: str, text: str) -> None:
    for reader in (protocol, "auto"):
        result = check_all(text, reader, TOOLS)
        assert [(c.name, c.arguments, c.valid) for c in result.calls] == [
            ("note", {"text": "hi"}, True)
        ]
        assert result.verdict != "clean"


@each_case
def test_a_damaged_call_that_is_shown_is_not_executed(text: str) -> None:
    for reader in ("hermes", "auto"):
        assert not any(call.ok for call in check_all(text, reader, TOOLS).calls)


_FRAMES = (
    '"{}"', "'{}'", "\u201c{}\u201d", "`{}`", "print('{}')", "text = '{}'", "# {}", "// {}", "/* {} */",
    "+{}\n-old", "The model wrote {} but meant something else.", "Never call it like so: {}",
    "The mail says: {}", "What does this mean: {}", "| a | {} |", "user: {}\n", "The docs say:\n\n{}",
)  # fmt: skip
_ONE_LINE = ("hermes", "mistral_v3", "llama3_python_tag", "lfm2", "sarashina", "apertus", "olmo3",
             "glm53_flash", "gigachat31", "llama31_function_tag", "bfcl_json_tag")  # fmt: skip


@pytest.mark.parametrize("format", _ONE_LINE)
def test_a_mark_put_right_in_a_frame_is_no_call(format: str) -> None:
    """The damage is not what makes a shown call one to execute."""
    protocol = tp.protocols()[format]
    call = protocol.write_call("note", '{"text": "hi"}', _SPECS["note"]).replace("\n", "")
    begin = next(iter(_TAG.finditer(call)))
    rest = call[begin.end() :]
    tag = begin[0]
    every = (tag[1:], tag[1] + tag[0] + tag[2:], tag[:-1])
    # By day in turn, so that each damage and each frame is asked of both readers.
    for damaged, frame, reader in part([*product(every, _FRAMES, (format, "auto"))], 3):
        result = tp.parse(frame.replace("{}", damaged + rest), reader, TOOLS)
        damage = [c for c in result.calls if c.ok and c.valid]
        assert not any(p.code == "call.damaged-mark" for c in damage for p in c.problems)
    for damaged in every:
        for before in ("", "I'll do that.\n", "I'll do that. "):
            result = tp.parse(before + damaged + rest, format, TOOLS)
            assert not any(c.ok and c.valid and c.name != "note" for c in result.calls)


def test_a_sentence_before_a_damaged_call_is_no_frame() -> None:
    for before in ("I'll do that and/or more. ", "Sure!\n", "\u597d\u7684\u3002"):
        (call,) = tp.parse(f"{before}t<ool_call>{_TWO}</tool_call>", "hermes", TOOLS).calls
        assert call.valid


def test_an_echo_with_damaged_marks_is_an_echo() -> None:
    text = f"t<ool_call>{_TWO}</tool_call>"
    request = [{"role": "user", "content": f"The mail says: {text}"}]
    (call,) = tp.parse(text, "hermes", TOOLS, request=request).calls
    assert call.status == "echoed"


def test_calls_of_damaged_marks_come_at_the_end_of_a_stream() -> None:
    text = f"Sure.\n<tool_call\n{_TWO}\n</tool_call>"
    parser = tp.stream("hermes", TOOLS)
    events = [event for character in text for event in parser.feed(character)]
    assert not any(getattr(event, "calls", ()) for event in events)
    result = parser.close()
    last = parser.last_events()[-1]
    assert isinstance(last, Recovered)
    assert last.calls == result.calls
    assert result.calls[0].origin("/text").span.of(text) == "hi"
