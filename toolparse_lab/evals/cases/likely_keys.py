"""The keys of cases by the names that other tools give them: the fix that an error suggests for a
key that no one knows.
"""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches

_OTHER_NAMES = {
    "input": "prompt question query instruction user user_input text task request",
    "target": "expected expected_calls expected_output expected_tool_calls gold ground_truth label "
    "labels reference calls tool_calls output solution",
    "tools": "functions tool function_definitions tool_definitions available_tools",
    "id": "case_id task_id example_id sample_id uid key name",
    "results": "tool_results responses tool_outputs",
    "answer": "final_answer final_text",
    "messages": "conversation turns chat history",
    "metadata": "meta tags extra",
}
_KEY_OF = {other: key for key, others in _OTHER_NAMES.items() for other in others.split()}


def likely_key(name: object, keys: Collection[str]) -> str | None:
    """Return the key which `name` seems to stand for.

    None if it seems to be its owner's own.

    keys: those that are known here.

    >>> likely_key("prompt", ["id", "input"])
    'input'
    >>> likely_key("Expected", ["target"]), likely_key("colour", ["target"])
    ('target', None)
    """
    spelled = str(name).strip().lower().replace("-", "_").replace(" ", "_")
    likely = _KEY_OF.get(spelled)
    if likely is not None and likely in keys:
        return likely
    # A slip of the pen; a name that is only a little alike is its owner's own.
    return next(iter(get_close_matches(spelled, keys, 1, 0.8)), None)
