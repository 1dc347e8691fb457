"""Chat templates of our own, one for each family of formats, and the shared ones where they are.

`TOOLPARSE_TEST_TEMPLATES` names a folder of real chat templates, else `../shared` is looked at.
"""

from __future__ import annotations

import os
from pathlib import Path

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


_JSON = '{"name": "{{ f.name }}", "arguments": {{ f.arguments | tojson }}}'
_SECTION = "{% if m.tool_calls %}<|calls|>{% endif %}", "{% if m.tool_calls %}<|/calls|>{% endif %}"
_ITEMS = "{% for k, v in f.arguments.items() %}"
_TEXT = "{{ v if v is string else v | tojson }}"

FAMILIES = {
    "json": template(_LOOP + "<call>\n" + _JSON + "\n</call>\n{% endfor %}"),
    "json list": template(
        "{% if m.tool_calls %}<CALLS>[" + _LOOP + '{"id": "{{ c.id }}", "tool": "{{ f.name }}", '
        '"input": {{ f.arguments | tojson }}}{{ "" if loop.last else ", " }}{% endfor %}]</CALLS>'
        "{% endif %}"
    ),
    "json text": template(
        _LOOP + '<call>{"type": "function", "function": {"name": "{{ f.name }}", "arguments": '
        "{{ f.arguments | tojson | tojson }}}}</call>{% endfor %}"
    ),
    "name as key": template(
        "{% if m.tool_calls %}<|prefix|>[" + _LOOP + '{"{{ f.name }}": {{ f.arguments | tojson }}}'
        "{{ '' if loop.last else ', ' }}{% endfor %}]<|suffix|>{% endif %}"
    ),
    "named": template(
        _SECTION[0] + _LOOP + "<|call|>{{ c.id }}<|name|>{{ f.name }}<|args|>"
        "{{ f.arguments | tojson }}<|/call|>{% endfor %}" + _SECTION[1]
    ),
    "counted": template(
        _SECTION[0] + _LOOP + "<|call|>functions.{{ f.name }}:{{ loop.index0 }}<|args|>"
        "{{ f.arguments | tojson }}<|/call|>{% endfor %}" + _SECTION[1]
    ),
    "named without closer": template(
        _LOOP + "[CALLS]{{ f.name }}[ARGS]{{ f.arguments | tojson }}{% endfor %}"
    ),
    "tags": template(
        _LOOP
        + "<use>\n<function={{ f.name }}>\n"
        + _ITEMS
        + "<parameter={{ k }}>\n"
        + _TEXT
        + "\n</parameter>\n{% endfor %}</function>\n</use>\n{% endfor %}"
    ),
    "attributes": template(
        "{% if m.tool_calls %}<calls>\n"
        + _LOOP
        + '<invoke name="{{ f.name }}">\n'
        + _ITEMS
        + '<parameter name="{{ k }}">'
        + _TEXT
        + "</parameter>\n{% endfor %}</invoke>\n{% endfor %}"
        "</calls>{% endif %}"
    ),
    "slots": template(
        _LOOP
        + "<tool_use>{{ f.name }}\n"
        + _ITEMS
        + "<the_key>{{ k }}</the_key>\n<the_value>"
        + _TEXT
        + "</the_value>\n{% endfor %}</tool_use>\n{% endfor %}"
    ),
    "flags": template(
        "{% if m.tool_calls %}<|X|calls>\n"
        + _LOOP
        + '<|X|invoke name="{{ f.name }}">\n'
        + _ITEMS
        + '<|X|parameter name="{{ k }}" string="{{ "true" if v is string else "false" }}">'
        + _TEXT
        + "</|X|parameter>\n{% endfor %}</|X|invoke>\n{% endfor %}</|X|calls>{% endif %}"
    ),
    "python": template(
        "{% macro lit(v) %}{{ v | tojson if v is string else v }}{% endmacro %}"
        "{% if m.tool_calls %}<|start|>["
        + _LOOP
        + "{{ f.name }}("
        + _ITEMS
        + "{{ k }}={{ lit(v) }}{{ '' if loop.last else ', ' }}{% endfor %})"
        "{{ '' if loop.last else ', ' }}{% endfor %}]<|stop|>{% endif %}"
    ),
    "bare": template(
        "{% macro lit(v) %}{% if v is string %}<|q|>{{ v }}<|q|>{% elif v is mapping %}"
        "{ {%- for k, w in v.items() %}{{ k }}:{{ lit(w) }}{{ '' if loop.last else ',' }}{% endfor %}}"
        "{% elif v is iterable %}[{% for w in v %}{{ lit(w) }}{{ '' if loop.last else ',' }}"
        "{% endfor %}]{% else %}{{ v | tojson }}{% endif %}{% endmacro %}"
        + _LOOP
        + "<|call>call:{{ f.name }}{{ lit(f.arguments) }}<call|>{% endfor %}"
    ),
}
"""Name -> a template of that kind."""

OWN_THOUGHTS = template(
    _LOOP + "<call>" + _JSON + "</call>{% endfor %}",
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
