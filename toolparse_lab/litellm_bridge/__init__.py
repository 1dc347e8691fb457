"""Tool calling for every model behind litellm: drop-in calls, and a provider that a model string names.

>>> from toolparse_lab.litellm_bridge import completion
>>> tools = [{"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}}]
>>> said = '<tool_call>{"name": "now", "arguments": {}}</tool_call>'
>>> answer = completion("openai/m", [{"role": "user", "content": "What time is it?"}], tools=tools, mock_response=said)
>>> answer.choices[0].message.tool_calls[0].function.name, answer.choices[0].finish_reason
('now', 'tool_calls')
"""

from __future__ import annotations

from .calls import acompletion, acompletion_with, completion, completion_with
from .provider import register

__all__ = ["acompletion", "acompletion_with", "completion", "completion_with", "register"]
