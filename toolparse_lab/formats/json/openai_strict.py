"""`openai_strict`: the calls of a provider's strict mode, in which null says that a parameter was
left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...arguments.schema.strict_form import plain_arguments, strict_arguments
from ...core.toolspec import ToolSpec
from ...core.types import Step
from ...core.values import read_strict, write_canonical
from ..base import Decoded, Message, Protocol, Reading, Tools
from .openai_json import OPENAI_JSON, MessageCalls


@dataclass(frozen=True, slots=True)
class StrictCalls(MessageCalls):
    """Codec: the calls of a message, without the nulls that only the strict form asked for."""

    def read(self, body: str, reading: Reading) -> tuple[Decoded, ...]:
        # Not `super()`: a dataclass with slots is another class than the one its methods close over
        message = MessageCalls.read(self, body, reading)
        calls = [_without_nulls(call, reading.tools) for call in message]
        return Message(calls, message.pieces) if isinstance(message, Message) else tuple(calls)

    def write(self, name: str, arguments_json: str, tool: ToolSpec | None) -> str:
        if tool is not None:
            strict = strict_arguments(read_strict(arguments_json), tool.schema_json)
            arguments_json = write_canonical(strict)
        return MessageCalls.write(self, name, arguments_json, tool)


def _without_nulls(call: Decoded, tools: Tools) -> Decoded:
    # A provider writes underscores for the dots of a tool's name. Of two such tools nobody knows
    # which one was meant.
    names = [name for name in tools if call.name in (name, name.replace(".", "_"))]
    if not call.readable or len(names) != 1:
        return call
    arguments, changes = plain_arguments(call.arguments, tools[names[0]].schema_json)
    if not changes:
        return call
    steps = [Step("read", "read.strict-null", c.path, None, c.before, c.after) for c in changes]
    return replace(call, arguments=arguments, steps=(*call.steps, *steps))


OPENAI_STRICT = replace(
    OPENAI_JSON,
    id="openai_strict",
    aliases=(),
    title="a message in OpenAI's JSON from a strict mode: null for what is left out",
    codec=StrictCalls(),
)

PROTOCOLS: tuple[Protocol, ...] = (OPENAI_STRICT,)
