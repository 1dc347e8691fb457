"""Tools that the provider calls itself, where a tool loop has a middleware otherwise: nothing becomes text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..api import parse_text
from ..middleware import Answer, Turn
from ..middleware.answer import CallIds, answer_of
from ..middleware.choice import read_choice, read_tools
from ..protocols.results import ToolResult
from ..types import ParseOptions
from ..values import write_canonical

_TAKEN = ("messages", "tools", "tool_choice")
_RESULT = "tool-result"


@dataclass(frozen=True, slots=True)
class NativeTools:
    """Sends tools, calls and results in OpenAI's shape, and reads the provider's own calls."""

    def transform_params(self, params: Mapping[str, Any]) -> Turn:
        """What is sent: the tools as such, the tool choice where it is not 'auto' and there are tools.

        Raises BadToolSpec and BadToolChoice.
        """
        offered = read_tools(params.get("tools"))
        choice = read_choice(params.get("tool_choice"), offered)
        sent = {k: v for k, v in params.items() if k not in _TAKEN}
        if offered.tools:
            sent["tools"] = [t.to_openai() for t in offered.tools]
            if choice.kind == "tool":
                sent["tool_choice"] = {"type": "function", "function": {"name": choice.name}}
            elif choice.kind != "auto":
                sent["tool_choice"] = choice.kind
        sent["messages"] = [message for given in params["messages"] for message in _messages_of(given)]
        active = bool(offered.tools)
        return Turn(sent, offered.tools, choice.kind, choice.name, active, active and choice.forced)

    def wrap_generate(
        self, turn: Turn, content: Any, *, reasoning: str | None = None, finish_reason: str | None = "stop"
    ) -> Answer:
        """What a recorded answer says. content: its text, or with tools the canonical JSON of text and calls."""
        result = parse_text(content, "openai_json", turn.tools, ParseOptions(coerce="middleware"))
        return answer_of(result, finish_reason, CallIds(), reasoning=reasoning)


def _messages_of(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A message with its tool results in OpenAI's shape: one message each, the output as text."""
    content = message.get("content")
    results = [p for p in content if _is_result(p)] if isinstance(content, (list, tuple)) else []
    if message.get("role") != "tool" or not results:
        return [dict(message)]
    return [_result_message(ToolResult.of(part)) for part in results]


def _is_result(part: Any) -> bool:
    return isinstance(part, Mapping) and part.get("type") == _RESULT


def _result_message(result: ToolResult) -> dict[str, Any]:
    said = result.content
    text = said if isinstance(said, str) else write_canonical(said)
    return {"role": "tool", "tool_call_id": result.call_id, "name": result.name, "content": text}
