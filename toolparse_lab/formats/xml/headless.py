"""Elements whose opening tag stood in the prompt: the answer begins inside them, and only their
closing tag says whose they are.
"""

# How it works
#
# Such an answer begins with a parameter that a tool has. Its body reaches to the first closing tag
# of a tool, whose name the scanner hands on; the codec reads it as the body of that tool. The
# opening is speculative: whatever is no good call is text after all.
#
# Cost: one search for the closing tags, and one reading of the body.

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from ...arguments.rjson.damage import Refusal
from ...arguments.schema.view import view_of
from ...core.types import Problem, Span
from ..base import Decoded, Opening, Reading, Tools
from ..scan import Close, LiteralBody

_OPENING = Opening(0, speculative=True)
_MESSAGE = "the answer begins with this body; its opening tag may have stood in the prompt"


class NamedEnd(LiteralBody):
    """Ends at the first closing tag of one of some elements, and says which it is."""

    __slots__ = ()

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__(tuple(f"</{name}>" for name in names))

    def scan(self, tail: str, final: bool) -> Close | int:
        settled = self._at
        answer = LiteralBody.scan(self, tail, final)
        if isinstance(answer, Close):
            start, end = answer.start + len("</"), answer.end - len(">")
            answer.name = tail[start - settled : end - settled], start
        return answer


def has_property(name: str, tools: Tools, *, partial: bool = False) -> bool:
    for tool in tools.values():
        properties = view_of(tool.schema_json).properties
        if name in properties or (partial and any(key.startswith(name) for key in properties)):
            return True
    return False


def headless(name: str, tools: Tools) -> Opening | None:
    return _OPENING if name not in tools and has_property(name, tools) else None


def checked(call: Decoded, body: str, reading: Reading) -> Decoded:
    """Return the call of a body without an opener, with a warning. Raises Refusal if it only speaks
    of calls.
    """
    tool = reading.tools.get(call.name)
    properties = view_of(tool.schema_json).properties if tool else {}
    openers = "|".join(re.escape(name) for name in reading.tools if name not in properties)
    if openers and re.search(rf"<(?:{openers})[\s/>]", body):
        raise Refusal("decode.ambiguous", "another call begins in this body", 0)
    arguments = call.arguments
    if not isinstance(arguments, dict) or any(key not in properties for key in arguments):
        raise Refusal("decode.ambiguous", "this body is none of the tool that is closed", 0)
    note = Problem("scan", "call.missing-opener", "warning", _MESSAGE, "", Span(0, len(body)))
    return replace(call, problems=(*call.problems, note))
