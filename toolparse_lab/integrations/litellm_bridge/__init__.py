"""Tool calling for every model behind litellm: drop-in calls, and a provider that a model string
names.

>>> from toolparse_lab.integrations.litellm_bridge import completion
>>> schema = {"type": "object", "properties": {}}
>>> tools = [{"type": "function", "function": {"name": "now", "parameters": schema}}]
>>> text = '<tool_call>{"name": "now", "arguments": {}}</tool_call>'
>>> messages = [{"role": "user", "content": "What time is it?"}]
>>> answer = completion("openai/m", messages, tools=tools, mock_response=text)
>>> answer.choices[0].message.tool_calls[0].function.name, answer.choices[0].finish_reason
('now', 'tool_calls')
"""

from __future__ import annotations

from typing import Any

from .calls import acompletion, acompletion_with, completion, completion_with
from .provider import provider_handler, register

__all__ = ["acompletion", "acompletion_with", "completion", "completion_with", "register"]


def __getattr__(name: str) -> Any:
    """`handler`, the provider for the LiteLLM proxy's `custom_provider_map`, is made when it is
    asked for, because importing litellm takes seconds.
    """
    if name == "handler":
        return provider_handler()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
