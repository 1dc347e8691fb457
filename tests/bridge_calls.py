"""A dozen calls through the bridge, as an environment with any litellm can make them.

`python -m tests.bridge_calls` prints the version of litellm and what came of each call, as JSON.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
from collections.abc import Mapping
from typing import Any

from tests.bridge import NOW, OSLO, TOOLS, WAYS, ask, calls_of, joined
from tests.mock_openai import MockOpenAI

Said = tuple[str, list[list[str]], str]
"""text, calls as [name, arguments], finish reason"""

OSLO_CALL = ["get_weather", '{"city":"Oslo","days":2}']
NOW_CALL = ["now", "{}"]
CASES: Mapping[str, tuple[str, dict[str, Any], Said]] = {
    "a call": (f"Well. {OSLO}", {"tools": TOOLS}, ("Well.", [OSLO_CALL], "tool_calls")),
    "two calls": (OSLO + NOW, {"tools": TOOLS}, ("", [OSLO_CALL, NOW_CALL], "tool_calls")),
    "talk": ("Just talk.", {"tools": TOOLS}, ("Just talk.", [], "stop")),
    "a forced call": (
        '{"name": "now", "arguments": {}}',
        {"tools": TOOLS, "tool_choice": "required"},
        ("", [NOW_CALL], "tool_calls"),
    ),
    "a broken call": (
        OSLO[:-28],
        {"tools": TOOLS, "broken_calls": "call"},
        ("", [["get_weather", OSLO[:-28]]], "tool_calls"),
    ),
    "a form beside tools": (
        '{"a": 1}',
        {"tools": TOOLS, "response_format": {"type": "json_object"}},
        ('{"a": 1}', [], "stop"),
    ),
    "no tools": ("Just talk.", {}, ("Just talk.", [], "stop")),
    "choice none": ("Talk.", {"tools": TOOLS, "tool_choice": "none"}, ("Talk.", [], "stop")),
}
"""what is said -> the answer of the mock, the arguments of the call, and what is to come of it"""


def said_of(answer: Any) -> Said:
    """What an answer says, whole or as the list of its chunks."""
    if isinstance(answer, list):
        said = joined(answer)
        calls = [[name, arguments] for _, name, arguments in said["calls"]]
        (reason,) = said["reasons"]
        return said["content"].strip(), calls, reason
    choice = answer.choices[0]
    calls = [list(call) for call in calls_of(choice.message)]
    return (choice.message.content or "").strip(), calls, choice.finish_reason


def outcomes() -> dict[str, Any]:
    """What came of every case by every way, whole and streamed; an exception as its text."""
    found: dict[str, Any] = {}
    with MockOpenAI() as mock:
        for way in WAYS:
            for stream in (False, True):
                for name, (text, arguments, _) in CASES.items():
                    key = f"{way}, {'stream' if stream else 'whole'}: {name}"
                    try:
                        answer = ask(way, mock, "say=" + text, stream=stream, **arguments)
                        found[key] = list(said_of(answer))
                    except Exception as e:
                        found[key] = f"{type(e).__name__}: {e}"
    return found


if __name__ == "__main__":
    asyncio.set_event_loop(None)
    version = importlib.metadata.version("litellm")
    print(json.dumps({"litellm": version, "outcomes": outcomes()}))
