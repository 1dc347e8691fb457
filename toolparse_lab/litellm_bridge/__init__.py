"""Tool calling for every model behind litellm: drop-in calls, and a provider that a model string
names.

>>> from toolparse_lab.litellm_bridge import completion
>>> schema = {"type": "object", "properties": {}}
>>> tools = [{"type": "function", "function": {"name": "now", "parameters": schema}}]
>>> text = '<tool_call>{"name": "now", "arguments": {}}</tool_call>'
>>> messages = [{"role": "user", "content": "What time is it?"}]
>>> answer = completion("openai/m", messages, tools=tools, mock_response=text)
>>> answer.choices[0].message.tool_calls[0].function.name, answer.choices[0].finish_reason
('now', 'tool_calls')
"""

from __future__ import annotations

from .calls import acompletion, acompletion_with, completion, completion_with
from .provider import register

__all__ = ["acompletion", "acompletion_with", "completion", "completion_with", "register"]
