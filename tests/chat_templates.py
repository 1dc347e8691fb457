"""Chat templates of our own, one for each family of formats, and the shared ones where they are.

`TOOLPARSE_TEST_TEMPLATES` names a folder of real chat templates, else `../shared` is looked at.
"""

from __future__ import annotations

import os
from pathlib import Path

from tests.tables import table

ROOT = Path(__file__).parent.parent
_FOLDER = os.environ.get("TOOLPARSE_TEST_TEMPLATES")
SHARED = Path(_FOLDER) if _FOLDER else ROOT.parent / "shared/data/chat_templates"

_HEAD = (
    "{% for t in tools or [] %}<tool>{{ t | tojson }}</tool>\n{% endfor %}"
    "{% for m in messages %}{% if m.role == 'user' %}<|user|>{{ m.content }}\n"
    "{% elif m.role == 'tool' %}<|result|>{{ m.content }}<|end_result|>\n"
    "{% else %}<|assistant|>"
)
_THOUGHT = "{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}"
_TAIL = "<|end|>\n{% endif %}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
_LOOP = "{% for c in m.tool_calls or [] %}{% set f = c.function %}"


def template(calls: str, thought: str = _THOUGHT) -> str:
    """Return a whole template. calls: what it writes behind an answer's text."""
    return _HEAD + thought + "{{ m.content or '' }}" + calls + _TAIL


FAMILIES = {row["family"]: row["template"] for row in table(__file__)}
"""Name -> a template of that kind, as `template` makes one; beside it a text with a call."""

OWN_THOUGHTS = template(
    _LOOP
    + '<call>{"name": "{{ f.name }}", "arguments": {{ f.arguments | tojson }}}</call>{% endfor %}',
    "{% if m.reasoning_content %}[THINK]{{ m.reasoning_content }}[/THINK]{% endif %}",
)
PLAIN = template("")
WITH_TURNS_CALL = (
    '<tool_call>\n{"name": "{{ c.function.name }}", "arguments": '
    "{{ c.function.arguments | tojson }}}\n</tool_call>"
)
WITH_TURNS = (
    "{% for m in messages %}<|{{ m.role }}|>\n"
    "{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}"
    "{{ m.content or '' }}"
    "{% for c in m.tool_calls or [] %}" + WITH_TURNS_CALL + "{% endfor %}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)
