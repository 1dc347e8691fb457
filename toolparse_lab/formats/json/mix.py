"""JSON between delimiters of any kind: `hermes` (tags), `gemma` (code fences), or your own."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...core.errors import BadOptions
from ...core.toolspec import ToolSpec
from ...core.values import write_canonical
from ..base import Protocol, Signs
from ..prompt.grammar import MAX_DEPTH, GrammarWriter, literal, object_schema
from ..prompt.wording import Wordings
from ..results import JsonResult
from ..scan import with_or_without_space
from .call import JsonCall
from .header import Frame, Header
from .scan import JsonTags


@dataclass(frozen=True, slots=True)
class JsonGrammar:
    """Writes the grammar of one call: opener, an object with name and arguments, closer.

    opener, closer: the delimiters with the line breaks that a model writes next to them.
    """

    opener: str
    closer: str
    name_key: str = "name"
    arguments_key: str = "arguments"

    def __call__(self, tools: Sequence[ToolSpec]) -> str:
        before, after = f"{write_canonical(self.name_key)}: ", write_canonical(self.arguments_key)
        calls = _Calls(tools, lambda name: f"{before}{write_canonical(name)}, {after}: ", "")
        # The braces of the call belong to the root, which all tools share.
        return calls.grammar(f"{literal(self.opener + '{')} call {literal('}' + self.closer)}")


@dataclass(frozen=True, slots=True)
class FramedGrammar:
    """Writes the grammar of one call in a frame: the name in its header, then the arguments."""

    frame: Frame

    def __call__(self, tools: Sequence[ToolSpec]) -> str:
        header = Header.of(self.frame.template)
        return _Calls(tools, header.write, self.frame.closer).grammar("call")


class _Calls(GrammarWriter):
    def __init__(self, tools: Sequence[ToolSpec], head: Callable[[str], str], closer: str) -> None:
        self.head = head  # of a name; before the base class, which writes the calls at once
        self.closer = f" {literal(closer)}" if closer else ""
        super().__init__(tools)

    def call(self, tool: ToolSpec) -> str | None:
        arguments = self.json_value(object_schema(tool), MAX_DEPTH)
        if arguments is None:
            return None
        return f"{literal(self.head(tool.name))} {arguments}{self.closer}"


FAILURE = "Could not process JSON tool call, keeping original text."
_FENCE_SIGN = r"^[ \t]*```[ \t]*(?:tool_calls?|tool_code|function_call)[ \t]*$"

HERMES = Protocol(
    id="hermes",
    aliases=("json_mix", "json-mix", "ernie45"),
    title="JSON in <tool_call>",
    envelope=JsonTags(("<tool_call>",), ("</tool_call>",)),
    codec=JsonCall("<tool_call>", "</tool_call>"),
    tags=frozenset(("delimited",)),
    grammar=JsonGrammar("<tool_call>\n", "\n</tool_call>"),
    wordings=Wordings("hermes"),
    failure=FAILURE,
)

GEMMA = Protocol(
    id="gemma",
    aliases=("gemma_fence_tool_call",),
    title="JSON in a tool_call fence",
    envelope=JsonTags(("```tool_call",), ("\r\n```", "\n```", "```"), line=True),
    codec=JsonCall("```tool_call\n", "\n```"),
    tags=frozenset(("delimited", "fence")),
    results=JsonResult("```tool_response\n", "\n```"),
    grammar=JsonGrammar("```tool_call\n", "\n```"),
    wordings=Wordings("gemma"),
    failure=FAILURE,
    signs=Signs(marks=(_FENCE_SIGN,)),
)


def json_protocol(
    id: str,
    opener: str,
    closer: str,
    *,
    keys: tuple[str, str] = ("name", "arguments"),
    line: bool = False,
    **fields: Any,
) -> Protocol:
    """Return the protocol of objects between delimiters of which no format is known.

    keys: of name and arguments. line: the opener is on a line of its own. fields: of `Protocol`.
    """
    # The text before the object: an opener on a line of its own ends with a line break.
    prefix = f"{opener}\n" if line else opener
    return Protocol(
        id=id,
        envelope=JsonTags((opener,), with_or_without_space(closer), line=line),
        codec=JsonCall(prefix, closer, *keys),
        tags=frozenset(("delimited",)),
        grammar=JsonGrammar(prefix, closer, *keys),
        failure=FAILURE,
        **fields,
    )


def json_mix_protocol(
    tool_call_start: str = "<tool_call>",
    tool_call_end: str = "</tool_call>",
    tool_response_start: str = "<tool_response>",
    tool_response_end: str = "</tool_response>",
    *,
    id: str | None = None,
) -> Protocol:
    """Return a protocol that reads JSON calls between delimiters of your own.

    Raises BadOptions for empty ones.

    >>> json_mix_protocol("[[CALL]]", "[[/CALL]]").write_call("f", '{"a":1}')
    '[[CALL]]{"name":"f","arguments":{"a":1}}[[/CALL]]'
    """
    texts = {
        "tool_call_start": tool_call_start,
        "tool_call_end": tool_call_end,
        "tool_response_start": tool_response_start,
        "tool_response_end": tool_response_end,
    }
    for name, text in texts.items():
        if not isinstance(text, str) or not text.strip():
            raise BadOptions(
                f"{name} is empty", got=text, expected="some text that marks a call or a result"
            )
    # With all four at their defaults it is the shipped protocol itself, not a second one like it.
    results = JsonResult(tool_response_start, tool_response_end)
    own_tags = (tool_call_start, tool_call_end) == ("<tool_call>", "</tool_call>")
    if own_tags and results == HERMES.results and id is None:
        return HERMES

    spec = {"body": "json_mix", "id": id, **texts}
    return json_protocol(
        id or f"json_mix({tool_call_start.strip()}…{tool_call_end.strip()})",
        tool_call_start,
        tool_call_end,
        title="JSON between delimiters of your own",
        results=results,
        spec=json.dumps(spec, ensure_ascii=False),
    )
