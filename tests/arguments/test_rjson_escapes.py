"""An escaped quote that is damaged: read by the pairs of quotes in its string, or refused."""

from __future__ import annotations

import json

import pytest

import toolparse_lab as tp
from tests.tables import each_case
from tests.tools import tool_named

TOOLS = [tool_named("keep", required=["text"], text="string")]
MEANT = 'the "Gull" lay\nat pier (7)'


def calls_of(inner: str) -> tp.ToolCall:
    """Return the call whose text stands in JSON as `inner`."""
    body = '{"name": "keep", "arguments": {"text": "' + inner + '"}}'
    (call,) = tp.parse(f"<tool_call>{body}</tool_call>", "hermes", TOOLS).calls
    return call


@each_case
def test_a_quote_that_lacks_its_partner_is_put_right(inner: str) -> None:
    call = calls_of(inner)
    assert call.valid
    assert call.arguments == {"text": MEANT}
    assert len(call.edits) == 1


@each_case
def test_a_backslash_that_may_be_meant_stays(inner: str, text: str) -> None:
    assert calls_of(inner).arguments == {"text": text}


@pytest.mark.parametrize(
    "inner", [r"a \"x\"\n b {7\}n c", r"see <a href=\/" + '"' + r"pier\">", r"it\'s 5\" wide"]
)
def test_what_may_be_either_is_refused(inner: str) -> None:
    call = calls_of(inner)
    assert not call.readable
    assert "decode.ambiguous" in {problem.code for problem in call.problems}


def test_an_escaped_quote_lost_at_any_place_is_never_read_wrong() -> None:
    sound = json.dumps(MEANT)[1:-1]
    for at, character in enumerate(sound):
        if character == '"':
            call = calls_of(sound[:at] + sound[at + 1 :])
            assert not call.readable or call.arguments == {"text": MEANT}
