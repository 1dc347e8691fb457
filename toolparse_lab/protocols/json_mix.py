"""JSON between delimiters of any kind: `hermes` (tags), `gemma` (code fences), or your own."""

from __future__ import annotations

from ..errors import BadOptions
from .base import Protocol
from .json_call import JsonCall
from .results import JsonResult
from .tags import JsonTags

HERMES = Protocol(
    id="hermes",
    aliases=("json_mix", "json-mix"),
    title="JSON in <tool_call>",
    envelope=JsonTags(("<tool_call>",), ("</tool_call>",)),
    codec=JsonCall("<tool_call>", "</tool_call>"),
    tags=frozenset(("delimited",)),
)

GEMMA = Protocol(
    id="gemma",
    aliases=("gemma_fence_tool_call",),
    title="JSON in a tool_call fence",
    envelope=JsonTags(("```tool_call",), ("\r\n```", "\n```", "```"), line=True),
    codec=JsonCall("```tool_call\n", "\n```"),
    tags=frozenset(("delimited", "fence")),
    results=JsonResult("```tool_response\n", "\n```"),
)


def json_mix_protocol(
    tool_call_start: str = "<tool_call>",
    tool_call_end: str = "</tool_call>",
    tool_response_start: str = "<tool_response>",
    tool_response_end: str = "</tool_response>",
    *,
    id: str | None = None,
) -> Protocol:
    """A protocol that reads JSON calls between delimiters of your own; raises BadOptions for empty ones.

    >>> json_mix_protocol("[[CALL]]", "[[/CALL]]").write_call("f", '{"a":1}')
    '[[CALL]]{"name":"f","arguments":{"a":1}}[[/CALL]]'
    """
    for what, text in (
        ("tool_call_start", tool_call_start), ("tool_call_end", tool_call_end),
        ("tool_response_start", tool_response_start), ("tool_response_end", tool_response_end),
    ):  # fmt: skip
        if not isinstance(text, str) or not text.strip():
            raise BadOptions(f"{what} is empty", got=text, expected="some text that marks a call or a result")
    results = JsonResult(tool_response_start, tool_response_end)
    if (tool_call_start, tool_call_end) == ("<tool_call>", "</tool_call>") and results == HERMES.results and id is None:
        return HERMES
    closers = tuple(dict.fromkeys((tool_call_end, tool_call_end.strip())))
    return Protocol(
        id=id or f"json_mix({tool_call_start.strip()}…{tool_call_end.strip()})",
        title="JSON between delimiters of your own",
        envelope=JsonTags((tool_call_start,), closers),
        codec=JsonCall(tool_call_start, tool_call_end),
        tags=frozenset(("delimited",)),
        results=results,
    )
