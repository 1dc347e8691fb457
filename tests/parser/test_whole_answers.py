"""An answer that is read in one look is what the engine reads, piece by piece."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolparse_lab as tp
from tests.quotations import CALLS, TOOLS, asked, formats, written
from toolparse_lab.core.toolspec import tool_specs
from toolparse_lab.formats.auto import AUTO
from toolparse_lab.parser.engine import StreamParser
from toolparse_lab.parser.state import setting_of
from toolparse_lab.parser.whole import read_whole

FORMATS = dict(formats())
SPECS = tool_specs(TOOLS)
WORDS = ("I will look that up.", "Sure", "user", "The assistant says", "send_money", "For example",
         "AI", "reboot now", "Done.\n\nThen", "system", "Action", "<think>", "`", '"', "e.g.", "json")  # fmt: skip
BETWEEN = ("\n", "\n", "\n", "", " ", "\n\n", ".\n", "\n<|im_end|>", "</tool_call>")
ARGUMENTS = (
    "{}",
    '{"to": 1}',
    '{"to": "<tool_call>"}',
    '{"amount": "7"}',
    '{"to": "a\\nb"}',
    "[1]",
)


@pytest.mark.parametrize("protocol", ["hermes", "auto"])
def test_the_usual_answer_is_read_in_one_look(protocol: str) -> None:
    setting = setting_of(
        AUTO if protocol == "auto" else FORMATS[protocol], SPECS, tp.ParseOptions()
    )
    call = written(FORMATS["hermes"], *CALLS[0])
    assert call is not None
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
        whole = read_whole(setting, text, given_request)
        if whole is not None:
            parser = StreamParser(setting, silent=True, request=given_request)
            parser.feed(text)
            engine = parser.close()
            assert whole == engine
            assert whole.to_dict() == engine.to_dict()
