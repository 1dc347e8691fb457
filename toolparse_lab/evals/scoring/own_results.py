"""Tool results that the model wrote itself."""

from __future__ import annotations

import re

from ...parser.recognition.shown import masked, shown_ranges

# Marked as results, or as plain lines.
_RESULTS = re.compile(
    r"<(?:\|)?(?:tool_?(?:response|result|output)s?|function_?(?:response|result|output)s?)"
    r"\b[^<>\n]{0,80}>\s*(?=\S)(?!</)"
    r"|\[TOOL_RESULTS?\]\s*(?=\S)"
    r"|<\|im_start\|>\s*tool\b|<\|start_header_id\|>\s*(?:ipython|tool)\b|<\|start\|>functions\.",
    re.IGNORECASE,
)
_RESULT_LINES = re.compile(
    r"^[ \t>*#]*(?:observation|"
    r"(?:tool|function)[ _-]?(?:response|result|output|returned|returns))[ \t*]*:[ \t]*\S",
    re.IGNORECASE | re.MULTILINE,
)


def find_own_result(text: str, *, after_call: bool) -> str:
    """Return the text with which a model began a tool's result itself, or "".

    Plain lines such as "Observation: …" count only where a call was made before (`after_call`),
    since they may be prose elsewhere.

    >>> find_own_result("Observation: 7 degrees", after_call=True)
    'Observation: 7'
    """
    searched = masked(text, shown_ranges(text))
    match = _RESULTS.search(searched)
    if match is None and after_call:
        match = _RESULT_LINES.search(searched)
    return match[0].strip() if match else ""
