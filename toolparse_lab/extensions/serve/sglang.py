"""SGLang with our parser. It has no flag for plugins, so that its server is started from here.

    python -m toolparse_lab.extensions.serve.sglang --model-path MODEL \
        --tool-call-parser toolparse_hermes

Importing this module registers a detector for every format, which has to happen before SGLang
reads its arguments.
"""

from __future__ import annotations

import runpy
from typing import Any

from sglang.srt.function_call.base_format_detector import BaseFormatDetector
from sglang.srt.function_call.core_types import StreamingParseResult, ToolCallItem
from sglang.srt.function_call.function_call_parser import FunctionCallParser

from .answers import Said, ServerAnswer, names_of_formats


class ToolparseDetector(BaseFormatDetector):  # type: ignore[misc]  # Any where SGLang is absent
    """A detector of SGLang around one format of ours."""

    protocol = "hermes"

    def __init__(self) -> None:
        super().__init__()
        self._answer: ServerAnswer | None = None

    def has_tool_call(self, text: str) -> bool:
        """Return False for a text in which no format has a call.

        What opens a call may be the name of a tool, and the tools are not known here.
        """
        return any(mark in text for mark in "([{<")

    def detect_and_parse(self, text: str, tools: Any) -> Any:
        """Return the content and the calls of a whole answer."""
        said = ServerAnswer(self.protocol, tools).whole(text)
        places = {tool.function.name: i for i, tool in enumerate(tools)}
        # Here the index is that of the tool in the request.
        return _result(said, [places.get(call.name, -1) for call in said.calls])

    def parse_streaming_increment(self, new_text: str, tools: Any) -> Any:
        """Return what a piece of the answer settles."""
        if self._answer is None:
            self._answer = ServerAnswer(self.protocol, tools)
        return self._sent(self._answer.feed(new_text))

    def finish(self, tools: Any) -> Any:
        """Return what the end of the answer settles."""
        return self._sent(Said("", ()) if self._answer is None else self._answer.close())

    def _sent(self, said: Said) -> Any:
        for call in said.calls:
            # Both say the same, so that the server appends nothing.
            self.prev_tool_call_arr.append({"name": call.name, "arguments": call.arguments})
            self.streamed_args_for_tool.append(call.arguments)
            self.current_tool_id = call.index
        return _result(said, [call.index for call in said.calls])

    def supports_structural_tag(self) -> bool:
        """Return False: nothing constrains the model."""
        return False

    def structure_info(self) -> Any:
        """Raise NotImplementedError: see `supports_structural_tag`."""
        raise NotImplementedError


def _result(said: Said, indexes: list[int]) -> Any:
    calls = [
        ToolCallItem(tool_index=index, name=call.name, parameters=call.arguments)
        for index, call in zip(indexes, said.calls, strict=True)
    ]
    return StreamingParseResult(normal_text=said.content, calls=calls)


for _name, _protocol in names_of_formats().items():
    FunctionCallParser.ToolCallParserEnum[_name] = type(
        f"Toolparse_{_protocol}", (ToolparseDetector,), {"protocol": _protocol}
    )

if __name__ == "__main__":
    runpy.run_module("sglang.launch_server", run_name="__main__", alter_sys=True)
