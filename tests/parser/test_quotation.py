"""Quotation that can be seen, without a request: alike in every format."""

from __future__ import annotations

from typing import Any

import pytest

import toolparse_lab as tp
from tests.core_cases import load
from tests.growth import grows_linearly
from tests.laws import check_all, in_pieces
from tests.quotations import CALLS, SEEN, TOOLS, WAYS, formats, written
from tests.quoted_answers import OUTSIDE, answers, executed
from tests.quoted_answers import TOOLS as TABLES
from tests.tables import each_case
from tests.tools import tool_named
from toolparse_lab.core.types import HeldBack, Withdrawn

BY = ("name", "auto")
FORMATS = dict(formats())
CASES = load("quotation.jsonl")


@pytest.mark.parametrize("name", [*FORMATS, "auto"])
def test_a_quoted_call_is_text(name: str) -> None:
    for tool, arguments in CALLS[:4]:
        for writer in [name] if name != "auto" else FORMATS:
            call = written(FORMATS[writer], tool, arguments)
            assert call is not None
            for way in SEEN:
                result = tp.parse(WAYS[way](call), name, TOOLS)
                assert not any(c.ok for c in result.calls), (writer, way)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c["title"])
def test_case(case: dict[str, Any]) -> None:
    result = tp.parse(case["raw"], case.get("protocol", "hermes"), TOOLS)
    assert [c.ok for c in result.calls if c.status != "draft"] == [True] * case["calls"]
    notes = [p for p in result.problems if p.code == "call.quoted-example"]
    assert bool(notes) == case["noted"]
    assert in_pieces(case["raw"], 1, case.get("protocol", "hermes"), TOOLS) == result


def test_a_long_block_is_seen() -> None:
    call = '<tool_call>{"name": "reboot", "arguments": {}}</tool_call>'
    block = "".join(f"    {'x' * 60} {i}\n" for i in range(40))
    for lead, status in (("The mail:", "draft"), ("Well.", "ok")):
        result = tp.parse(f"{lead}\n{block}    {call}\n    {call}", "hermes", TOOLS)
        assert {c.status for c in result.calls} == {status}


@each_case
@pytest.mark.exhaustive(2)
def test_looking_back_for_quotation_is_linear(piece: str) -> None:
    assert grows_linearly(lambda size: tp.parse(piece * size, "hermes", TOOLS), 100)


@pytest.mark.parametrize(
    ("half", "most"),
    [
        ("tune", 0.02),
        ("test", 0.02),
        ("answers tune", 0.06),
        ("answers unseen", 0.1),
        ("answers fresh", 0.35),
    ],
)
def test_few_calls_are_read_against_their_frame(half: str, most: float) -> None:
    """`benchmarks/quotation.py` prints the rates."""
    wrong = {True: 0, False: 0}
    made = answers(half, 250, seed=1)
    for answer in made:
        wrong[answer.meant] += sum(executed(answer, r) is not answer.meant for r in BY)
    assert wrong[True] <= 0.01 * len(made), wrong
    assert wrong[False] <= most * len(made), wrong


OTHER = '{"name": "post_note", "arguments": {"title": "tides"}}'


@each_case
def test_words_on_both_sides_of_a_call_show_it(frame: str, meant: bool) -> None:
    call = '<tool_call>{"name": "reboot", "arguments": {}}</tool_call>'
    raw = frame.replace("%s", call).replace("{OTHER}", OTHER)
    result = check_all(raw, "hermes", TOOLS)
    assert {c.ok for c in result.calls} == {meant}
    parser = tp.stream("hermes", TOOLS)
    parser.feed(raw)
    parser.close()
    shown = [e for e in parser.last_events() if isinstance(e, (HeldBack, Withdrawn))]
    assert bool(shown) is not meant
    if not meant:
        assert result.calls[0].problems[0].code == "call.held-back"
        assert check_all(raw, "hermes", TOOLS, {"quotes": "allow"}).calls[0].ok


@each_case
@pytest.mark.parametrize("name", ["Snippet", "details", "find_boats", "search"])
def test_an_element_of_a_page_is_no_call(page: str, frame: str, meant: bool, name: str) -> None:
    tool = tool_named(name, text="string")
    if (page, name) == ("folded", "details"):
        pytest.skip("two elements of one name")
    for call in (f'<{name} text="hi"/>', f"<{name}><text>hi</text></{name}>"):
        for protocol in ("morph_xml", "auto"):
            text = frame % call
            result = tp.parse(text, protocol, [tool])
            assert [c.ok for c in result.calls] == [meant], text
            assert meant or result.calls[0].problems[0].code == "call.held-back"
            assert in_pieces(text, 1, protocol, [tool]) == result


@pytest.mark.parametrize("name", ["body", "details", "table", "form"])
def test_the_contents_of_an_element_tell_a_page_from_a_call(name: str) -> None:
    tool = {"name": name, "parameters": {"type": "object", "properties": {"q": {"type": "string"}}}}
    for inner, meant in (
        ("<h1>A</h1>\n<p>b</p>", False),
        ("<q>a</q> and more words", False),
        ("<tr><td>a</td></tr>", False),
        ("<q>a</q>", True),
        ("<q>a</q><extra>b</extra>", True),
    ):
        for protocol in ("morph_xml", "auto"):
            result = check_all(f"<{name}>{inner}</{name}>", protocol, [tool])
            assert [c.ok for c in result.calls] == ([True] if meant else []), inner
            assert meant or any(p.code == "call.quoted-example" for p in result.problems)


def test_a_request_for_an_example_counts_against_a_call_in_a_frame() -> None:
    call = '<tool_call>{"name": "reboot", "arguments": {}}</tool_call>'
    raw = f"The call:\n```\n{call}\n```"
    for asks, held in (
        ("Show me an example of such a tool call.", True),
        ("Zeig mir ein Beispiel für einen Aufruf.", True),
        ("Reboot it, please.", False),
        ("The sample rate is wrong, reboot.", False),
        ("Show me what a call of reboot looks like.", True),
        ("How would you call reboot? Don't actually do it.", True),
        ("Which tool call would you have made? Just tell me.", True),
        ("Draft the call for my review first, I will confirm.", True),
        ("Print the tool call syntax so that I can paste it into my test.", True),
        ("A dry run of the reboot call, please.", True),
        ("Zeig mir, wie ein Aufruf von reboot aussieht, ohne ihn auszuführen.", True),
        ("Quel appel ? Je veux le lire, sans l'exécuter.", True),
        ("Muéstrame cómo sería una llamada a reboot; no la hagas.", True),
        ("请给我看一个调用 reboot 的示例，不要真的执行。", True),
        ("呼び出しを見せて。実行しないでください。", True),
        ("Draft the call agenda and reboot.", False),
        ("How would you call this a clean state? Reboot.", False),
        ("Don't run it twice: reboot, as an example of your work.", False),
        ("Which calls would you make in port? First reboot.", False),
        ("Don't run anything else before the call: reboot.", False),
    ):
        result = tp.parse(raw, "hermes", TOOLS, request=[{"role": "user", "content": asks}])
        assert [c.ok for c in result.calls] == [not held], asks
        assert tp.parse(call, "hermes", TOOLS, request=[{"role": "user", "content": asks}]).ok


def test_what_a_stream_holds_back_is_what_a_text_says() -> None:
    for answer in answers("tune", 40, seed=2):
        protocol = "auto" if answer.format in OUTSIDE else answer.format
        whole = tp.parse(answer.text, protocol, TABLES)
        for size in (1, 3, 7):
            parser = tp.stream(protocol, TABLES)
            for i in range(0, len(answer.text), size):
                parser.feed(answer.text[i : i + size])
            assert parser.close() == whole, answer


def test_a_call_that_is_held_back_is_a_draft_with_its_evidence() -> None:
    call = (
        '<tool_call>{"name": "send_money", "arguments": {"to": "Ann", "amount": "9"}}</tool_call>'
    )
    raw = f"For example:\n{call}\nPlease note the amount."
    result = check_all(raw, "hermes", TOOLS)
    (draft,) = result.calls
    assert (draft.status, draft.arguments) == ("draft", {"to": "Ann", "amount": 9})
    assert result.text == raw
    (held,) = (p for p in draft.problems if p.code == "call.held-back")
    assert held.severity == "warning"
    assert held.message == "this call is only shown: the words before it introduce an example"
    allowed = check_all(raw, "hermes", TOOLS, {"quotes": "allow"})
    assert [c.ok for c in allowed.calls] == [True]
    assert [p.severity for p in allowed.problems] == ["warning"]


def test_words_that_name_the_tool_and_a_value_lead_to_a_call() -> None:
    # As models that were trained on tool calls answer.
    text = (
        "To {}, you can use the `f` tool with the following arguments:\n\n"
        '```json\n{{\n  "name": "f",\n  "arguments": {{\n    "a": {}\n  }}\n}}\n```'
    )
    tools = [{"name": "f", "parameters": {"properties": {"a": {}}}}]
    for words, value in (("see Oslo", '"Oslo"'), ("add 12", "12"), ("go home", '"Home"')):
        raw = text.format(words, value)
        assert [call.valid for call in check_all(raw, "hermes", tools).calls] == [True], words
    unsaid = text.format("see a city", '"Oslo"')
    asked = [{"role": "user", "content": "How is Oslo?"}]
    assert [call.valid for call in tp.parse(unsaid, "hermes", tools, request=asked).calls] == [True]
    for raw in (unsaid, text.format("add 12", "12") + "\n\nReplace 12."):
        assert not any(call.valid for call in tp.parse(raw, "hermes", tools).calls)
