"""Messages whose header says that they are text or thought: no call in them is executed."""

from __future__ import annotations

import json

import pytest

import toolparse_lab as tp
from tests.formats.test_tables import TOOLS, calls_of
from tests.laws import EXHAUSTIVE, check_all, in_pieces

_NAMED = 'a&b"c&quot;'


def test_a_call_in_a_message_is_noted() -> None:
    raw = '<|channel|>final<|message|><tool_call>{"name": "ping", "arguments": {}}</tool_call>'
    (note,) = (p for p in tp.parse(raw, "auto", TOOLS).problems if p.severity == "info")
    assert (note.code, note.message) == (
        "call.quoted-example",
        "a call in a message that is text is an example",
    )


def test_names_in_attributes_are_escaped_and_read_back() -> None:
    protocol = tp.protocols()["kimi_k3_xtml"]
    tools = [{"name": _NAMED, "parameters": {"type": "object"}}]
    arguments = {'po&rt"': "a &amp; b", "list": [1, {"x": "&quot;"}]}
    text = protocol.write_call(_NAMED, json.dumps(arguments))
    assert 'tool="a&amp;b&quot;c&amp;quot;"' in text
    (call,) = check_all(text, protocol, tools).calls
    assert calls_of(tp.parse(text, protocol, tools)) == [(_NAMED, arguments)]
    assert call.origin('/po&rt"').span.of(text) == "a &amp; b"
    assert call.origin("/list/1/x").span.of(text) == "&quot;"


_READERS = ("user", "commentary", "developer", "system", "all", "final", "assistant")
_CHANNELS = ("final", "commentary", "critic", "")
_TOOL = [{"name": "note", "parameters": {"properties": {"text": {"type": "string"}}}}]
_HARMONY = [
    f"{start}{f' to={reader}' * bool(reader)}{f'<|channel|>{channel}' * bool(channel)}<|message|>"
    for start in ("<|start|>assistant", "")
    for channel in _CHANNELS
    for reader in ("", *_READERS[:2])
] + ["final<|message|>", "<|start|>assistant<|channel|>final", "<|channel|>commentary\n"]
_MUSE = [
    f"{start}to={reader}{end}"
    for start in ("<|start|>assistant ", "")
    for reader in _READERS
    for end in ("<|message|>", " <|message|>")
] + ["<|start|>assistant<|message|>", "<|message|>", "<|start|>assistant to=commentary\n"]


@pytest.mark.parametrize(
    ("format", "headers"), [("harmony_channel", _HARMONY), ("beam", _HARMONY), ("muse_atem", _MUSE)]
)
def test_no_call_in_a_message_to_somebody_else_is_executed(format: str, headers: list[str]) -> None:
    protocol = tp.protocols()[format]
    own = protocol.write_call("note", '{"text": "x"}')
    if format != "muse_atem":
        own = own.partition("<|message|>")[2]
    bodies = (own, '{"name": "note", "arguments": {"text": "x"}}', "[note(text='x')]")
    texts = [
        f"{before}{header}{body}{end}"
        for header in headers if format != "beam" or header.endswith("<|message|>")
        for body in bodies
        for before in ("", "Sure.\n", "Sure. ")
        for end in ("", "<|eom|>" if format == "muse_atem" else "<|end|>")
    ]  # fmt: skip
    for n, text in enumerate(texts[:: 1 if EXHAUSTIVE else 5]):
        for name in (format, "auto"):
            found = [tp.parse(text, name, _TOOL), in_pieces(text, (1, 3, 7)[n % 3], name, _TOOL)]
            assert not any(call.valid for result in found for call in result.calls), (name, text)
