"""vLLM with our parser, by its own flag for plugins.

    vllm serve MODEL --enable-auto-tool-choice \
        --tool-parser-plugin toolparse_lab.extensions.serve.vllm --tool-call-parser toolparse_hermes

Importing this module registers a tool parser for every format.
"""

from __future__ import annotations

import importlib
from typing import Any

from vllm.tool_parsers import abstract_tool_parser as base

from .answers import Said, ServerAnswer, names_of_formats

# The types of the answer are elsewhere in every few releases, and always beside this one.
_wire: Any = importlib.import_module(base.DeltaMessage.__module__)


class ToolparseParser(base.ToolParser):  # type: ignore[misc]  # vLLM is Any where it is absent
    """A tool parser of vLLM around one format of ours."""

    protocol = "auto"
    # The server calls `finish_streaming`, and asks us for required and named calls, too: models
    # write these in their format, not as the JSON that other parsers make of them.
    engine_based_streaming = True
    supports_required_and_named = False

    def __init__(self, tokenizer: Any, tools: Any = None, **_: Any) -> None:
        super().__init__(tokenizer, tools)
        self._answer: ServerAnswer | None = None

    def _answer_to(self, request: Any) -> ServerAnswer:
        return ServerAnswer(self.protocol, getattr(request, "tools", None) or self.tools or ())

    def adjust_request(self, request: Any) -> Any:
        """Keep special tokens in the text, because many formats open calls with them."""
        request = super().adjust_request(request)
        if request.tools and request.tool_choice != "none":
            request.skip_special_tokens = False
        return request

    def extract_tool_calls(self, model_output: str, request: Any) -> Any:
        """Return the content and the calls of a whole answer."""
        said = self._answer_to(request).whole(model_output)
        calls = [
            _wire.ToolCall(
                id=call.id,
                type="function",
                function=_wire.FunctionCall(name=call.name, arguments=call.arguments),
            )
            for call in said.calls
        ]
        return _wire.ExtractedToolCallInformation(
            tools_called=bool(calls), tool_calls=calls, content=said.content or None
        )

    def extract_tool_calls_streaming(
        self,
        previous_text: str,
        current_text: str,
        delta_text: str,
        previous_token_ids: Any,
        current_token_ids: Any,
        delta_token_ids: Any,
        request: Any,
    ) -> Any:
        """Return what a piece of the answer settles, None for nothing."""
        if self._answer is None:
            self._answer = self._answer_to(request)
        return self._delta(self._answer.feed(delta_text))

    def finish_streaming(self) -> Any:
        """Return what the end of the answer settles, None for nothing."""
        return None if self._answer is None else self._delta(self._answer.close())

    def _delta(self, said: Said) -> Any:
        if not said.content and not said.calls:
            return None
        calls = []
        for call in said.calls:
            # Both say the same, so that the server appends nothing.
            self.prev_tool_call_arr.append({"name": call.name, "arguments": call.arguments})
            self.streamed_args_for_tool.append(call.arguments)
            self.current_tool_id = call.index
            function = _wire.DeltaFunctionCall(name=call.name, arguments=call.arguments)
            calls.append(
                _wire.DeltaToolCall(
                    index=call.index,
                    id=call.id,
                    type="function",
                    function=function.model_dump(exclude_none=True),
                )
            )
        return _wire.DeltaMessage(content=said.content or None, tool_calls=calls)


for _name, _protocol in names_of_formats().items():
    base.ToolParserManager.register_module(
        name=_name,
        force=True,
        module=type(f"Toolparse_{_protocol}", (ToolparseParser,), {"protocol": _protocol}),
    )
