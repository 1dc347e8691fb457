"""Tools that the provider calls itself, where a tool loop has a middleware otherwise: nothing
becomes text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...arguments.schema.strict_form import strict_form
from ...core.errors import NoStrictForm
from ...core.toolspec import ToolSpec
from ...core.types import ParseOptions
from ...core.values import write_canonical
from ...entry.parse import parse_text
from ...formats.json.openai_json import OPENAI_JSON, OPENAI_STRICT
from ...formats.results import ToolResult
from .. import Answer, Turn
from ..answer import answer_of
from ..attempts import CallIds
from ..choice import read_choice, read_tools

_REPLACED = ("messages", "tools", "tool_choice")


@dataclass(frozen=True, slots=True)
class NativeTools:
    """Sends tools, calls and results in OpenAI's shape, and reads the provider's own calls.

    strict: ask the provider to keep its calls to the schemas, which are sent in their strict form:
    closed, every property required, and null for what is left out. The nulls are dropped again from
    its calls.
    """

    strict: bool = False

    def transform_params(self, params: Mapping[str, Any]) -> Turn:
        """Return the request to send: the tools as such, and the tool choice.

        params: the keyword arguments of an OpenAI-compatible completion. `messages` must be there.

        The tool choice drops out where it is 'auto', and if there are no tools. The turn is
        active where there are tools, so that the answer's calls are read with their schemas.

        Raises BadToolSpec, NoStrictForm and BadToolChoice.
        """
        offered = read_tools(params.get("tools"))
        choice = read_choice(params.get("tool_choice"), offered)
        request = {k: v for k, v in params.items() if k not in _REPLACED}
        # A provider takes no tool choice without tools.
        if offered.tools:
            request["tools"] = [self._tool(t) for t in offered.tools]
            if choice.kind == "tool":
                request["tool_choice"] = {"type": "function", "function": {"name": choice.name}}
            elif choice.kind != "auto":
                request["tool_choice"] = choice.kind
        request["messages"] = [m for message in params["messages"] for m in _messages_of(message)]
        active = bool(offered.tools)
        return Turn(
            request, offered.tools, choice.kind, choice.name, active, active and choice.forced,
            messages=tuple(params["messages"]),
        )  # fmt: skip

    def _tool(self, tool: ToolSpec) -> dict[str, Any]:
        definition = tool.to_openai()
        if self.strict:
            try:
                form = strict_form(tool.schema_json)
            except NoStrictForm as error:
                error.message = f"tool {tool.name!r}: {error.message}"
                raise
            definition["function"] |= {"parameters": form.schema, "strict": True}
        return definition

    def wrap_generate(
        self,
        turn: Turn,
        content: Any,
        *,
        reasoning: str | None = None,
        finish_reason: str | None = "stop",
    ) -> Answer:
        """Read a recorded answer.

        turn: the result of `transform_params` for the question.
        reasoning: the words that the provider gave as reasoning, apart from the text.
        finish_reason: the words that the provider said of the answer's end, None if it said
            nothing.
        content: its text, or with tools the canonical JSON of text and calls.
        """
        # The runner records such an answer as the JSON of text and calls, which this format reads.
        options = ParseOptions(coerce="middleware")
        reader = OPENAI_STRICT if self.strict else OPENAI_JSON
        result = parse_text(content, reader, turn.tools, options, request=turn.messages)
        return answer_of(result, finish_reason, CallIds(), reasoning=reasoning)


def _messages_of(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    # One result is one message. Other parts next to results drop out: OpenAI's tool messages have
    # no place for them.
    content = message.get("content")
    if message.get("role") != "tool" or not isinstance(content, (list, tuple)):
        return [dict(message)]
    messages = []
    for part in content:
        if isinstance(part, Mapping) and part.get("type") == "tool-result":
            result = ToolResult.of(part)
            text = result.content
            text = text if isinstance(text, str) else write_canonical(text)
            ids = {"tool_call_id": result.call_id, "name": result.name}
            messages.append({"role": "tool", **ids, "content": text})
    return messages or [dict(message)]
