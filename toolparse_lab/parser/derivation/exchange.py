"""A format in the words of other programs: response templates and structural tags.

Both are measured on calls that the protocol itself writes, so that every protocol that writes JSON
or parameter tags has them, whatever it was made from.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...core.errors import BadOptions, UnwritableCall
from ...core.toolspec import ToolSpec, tool_specs
from ...formats.bare.gemma import BareCodec
from ...formats.base import Codec, Protocol
from ...formats.parameters.form import Form, SlotForm, TagForm
from ...formats.parameters.tags import ParameterCall
from ...formats.surrounded import SurroundedCalls, SurroundedCodec
from .fitting import Around

_MARK = '{"toolparse":0}'
_NAME = "zq_tool_name"
_OTHER = "yk_other_name"
_INDEX = re.compile(r"\d+")
_WORD = r"(?P<name>[\w./:@+-]+)"


@dataclass(frozen=True, slots=True)
class Frame:
    """The texts a protocol writes before and behind the arguments of a call."""

    before: str
    behind: str

    @classmethod
    def of(cls, protocol: Protocol, name: str) -> Frame | None:
        """Return the frame of a tool's call.

        None if the arguments are not written as JSON.
        """
        try:
            text = protocol.codec.write(name, _MARK, None)
        except UnwritableCall:
            return None
        before, mark, behind = text.partition(_MARK)
        return cls(before, behind) if mark else None


def _inner(codec: Codec) -> Codec:
    """Return the codec of the family."""
    while isinstance(codec, SurroundedCodec):
        codec = codec.inner
    return codec


def _unsayable(protocol: Protocol, what: str) -> BadOptions:
    """Return the error about a format that has no such form."""
    return BadOptions(
        f"this format cannot be said as a {what}",
        got=protocol.id,
        expected="a format whose arguments are JSON, or parameter tags",
    )


def structural_tag_of(protocol: Protocol, tools: Any) -> dict[str, Any]:
    """Return the structural tag of a protocol. See `Protocol.structural_tag`."""
    specs = tool_specs(tools)
    if not specs:
        raise BadOptions(
            "a structural tag needs at least one tool", got=tools, expected="a tool definition"
        )
    tags = _section_of(protocol, specs) or [_tag_of(protocol, tool) for tool in specs]
    begins = [tag["begin"] for tag in tags]
    return {
        "type": "structural_tag",
        "format": {
            "type": "triggered_tags",
            "triggers": _triggers(protocol, begins),
            "tags": tags,
        },
    }


def _section_of(protocol: Protocol, tools: Sequence[ToolSpec]) -> list[dict[str, Any]]:
    """Return the tag of a list or a section with all the calls of an answer, [] for no such form.

    Tags of single calls would allow one call to a list.
    """
    around = _around(protocol)
    if around is None or not around.before.strip() or around.between is None:
        return []
    calls = [
        {
            "type": "tag",
            "begin": around.opener.replace(_NAME, tool.name),
            "content": {"type": "json_schema", "json_schema": tool.schema},
            "end": around.closer,
        }
        for tool in tools
    ]
    content = {
        "type": "tags_with_separator",
        "tags": calls,
        "separator": around.between,
        "at_least_one": True,
    }
    return [
        {"type": "tag", "begin": around.before, "content": content, "end": around.behind},
    ]


def _triggers(protocol: Protocol, begins: list[str]) -> list[str]:
    """Return the literals at which a call begins: heads of the format, or whole beginnings."""
    heads = sorted(protocol.envelope.heads({}), key=len, reverse=True)
    triggers = (next((h for h in heads if begin.startswith(h)), begin) for begin in begins)
    return list(dict.fromkeys(triggers))


def _tag_of(protocol: Protocol, tool: ToolSpec) -> dict[str, Any]:
    """Return the tag of one tool's calls. Raises BadOptions."""
    codec = _inner(protocol.codec)
    form = codec.form if isinstance(codec, ParameterCall) else None
    if form is None:
        frame = Frame.of(protocol, tool.name)
        if frame is None:
            raise _unsayable(protocol, "structural tag")
        content = {"type": "json_schema", "json_schema": tool.schema}
        return {"type": "tag", "begin": frame.before, "content": content, "end": frame.behind}
    # xgrammar knows parameters as Qwen3-Coder writes them, and no other tags.
    alike = isinstance(form, TagForm) and form.parameter_tag("p") == "<parameter=p>"
    if not alike:
        raise _unsayable(protocol, "structural tag")
    content = {"type": "qwen_xml_parameter", "json_schema": tool.schema}
    # A call without arguments shows what stands around them. White space before the closer is part
    # of the content, where xgrammar allows it.
    begin, closer, rest = codec.write(tool.name, "{}", tool).rpartition(form.function_closer)
    return {"type": "tag", "begin": begin, "content": content, "end": closer + rest}


def response_template_of(protocol: Protocol) -> dict[str, Any]:
    """Return the response template of a protocol. See `Protocol.to_response_template`."""
    codec = _inner(protocol.codec)
    calls: dict[str, Any] | None
    if isinstance(codec, ParameterCall):
        calls = _tag_field(codec.form)
    elif isinstance(codec, BareCodec):
        calls = _bare_field(codec)
    else:
        calls = _json_field(protocol)
    if calls is None:
        raise _unsayable(protocol, "response template")
    opener, closer = _thought_of(protocol)
    return {
        "version": 1,
        "defaults": {"role": "assistant"},
        # Of a whole chat the last answer is read; without its header in sight all of the text is.
        "start_anchor_pattern": r"(?:assistant|model|ai)[^\w\n]*\n?",
        "fields": {
            "content": {"content": "text"},
            "reasoning_content": {"open": opener, "close": closer, "content": "text"},
            "tool_calls": {**calls, "repeats": not calls.get("transform_each", False)},
        },
    }


def _thought_of(protocol: Protocol) -> tuple[str, str]:
    """Return opener and closer of reasoning."""
    envelope = protocol.envelope
    if isinstance(envelope, SurroundedCalls) and all(envelope.thought):
        return envelope.thought
    return "<think>", "</think>"


def _json_field(protocol: Protocol) -> dict[str, Any] | None:
    """Return the field of calls whose arguments are JSON, or None for others."""
    first = Frame.of(protocol, _NAME)
    if first is None or first.before.count(_NAME) != 1:
        return None
    start = next((i for i, c in enumerate(first.before) if _is_json(first, i)), None)
    if start is None:
        return _named_field(protocol)

    behind = _end_of_json(first, start)
    value = json.loads(first.before[start:] + _MARK + first.behind[:behind])
    opener, closer = first.before[:start].strip(), first.behind[behind:].strip()
    items = value[0] if isinstance(value, list) else value
    places = _places(items, "" if isinstance(value, list) else "content")
    around = _around(protocol)
    if not isinstance(value, list) and (around is None or around.opener.lstrip()[:1] in ("", "{")):
        return None  # several objects between one opener and one closer
    if opener == "" or "name" not in places or "arguments" not in places:
        return None
    return _object_field(opener, closer, places, is_list=isinstance(value, list))


def _object_field(
    opener: str, closer: str, places: dict[str, str], *, is_list: bool
) -> dict[str, Any]:
    """Return the field of calls that are objects between opener and closer.

    places: "name" and "arguments" -> their path in an object.
    """
    close = _loose(closer) + r"\s*" if closer else f"(?={re.escape(opener)})"
    field: dict[str, Any] = {
        "open": opener,
        "close_pattern": close,
        "content": "json",
        "transform": {
            "type": "function",
            "function": {key: "{" + places[key] + "}" for key in ("name", "arguments")},
        },
    }
    return {**field, "transform_each": True} if is_list else field


def _named_field(protocol: Protocol) -> dict[str, Any] | None:
    """Return the field of calls whose name stands before the arguments.

    None for others.
    """
    around = _around(protocol)
    if around is None or around.opener.count(_NAME) != 1:
        return None
    head, _, tail = around.opener.partition(_NAME)
    if not head.strip():
        return None  # any word would open a call
    tail = _INDEX.sub(lambda _: r"\d+", _loose(tail))
    field: dict[str, Any] = {
        "open_pattern": f"{_optional(around.before, '')}{_loose(head)}{_WORD}{tail}",
        "content": "json",
        "transform": {
            "type": "function",
            "function": {"name": "{name}", "arguments": "{content}"},
        },
    }
    if around.closer.strip():
        closer = _loose(around.closer.strip())
        field["close_pattern"] = rf"{closer}{_optional('', around.behind)}\s*"
    else:
        field["close_pattern"] = f"(?={re.escape(head.strip())})"
    return field


def _around(protocol: Protocol) -> Around | None:
    """Return the text that a protocol writes around each of two calls and around both."""
    codec = protocol.codec
    try:
        text = codec.join([codec.write(name, _MARK, None) for name in (_NAME, _OTHER)])
    except UnwritableCall:
        return None
    parts = text.split(_MARK)
    if len(parts) != 3:
        return None
    return Around.of(parts[0], parts[1].replace(_OTHER, _NAME), parts[2])


def _optional(before: str, behind: str) -> str:
    """Return the pattern of a section's opener or closer, which only one of its calls has."""
    text = before.strip() or behind.strip()
    if not text:
        return ""
    return rf"(?:{_loose(text)}\s*)?" if before.strip() else rf"(?:\s*{_loose(text)})?"


def _loose(text: str) -> str:
    """Return the pattern of a literal whose white space may be any."""
    return r"\s*".join(re.escape(part) for part in re.split(r"\s+", text))


def _is_json(frame: Frame, start: int) -> bool:
    """Return True if a JSON value begins at an offset before the arguments and holds them."""
    return frame.before[start] in "{[" and _end_of_json(frame, start) > 0


def _end_of_json(frame: Frame, start: int) -> int:
    """Return how much of the text behind the arguments belongs to that value.

    0 for none.
    """
    text = frame.before[start:] + _MARK + frame.behind
    try:
        end = json.JSONDecoder().raw_decode(text)[1]
    except ValueError:
        return 0
    return max(0, end - len(frame.before) + start - len(_MARK))


def _places(value: Any, path: str) -> dict[str, str]:
    """Return "name" and "arguments" -> their path in a call's object."""
    places: dict[str, str] = {}
    for key, member in value.items() if isinstance(value, dict) else ():
        here = f"{path}.{key}" if path else key
        if member == _NAME:
            places["name"] = here
        elif member == json.loads(_MARK):
            places["arguments"] = here
        else:
            places |= _places(member, here)
    return places


def _tag_field(form: Form) -> dict[str, Any]:
    """Return the field of calls in tags."""
    head, _, tail = form.function_tag(_NAME).partition(_NAME)
    opener = f"{re.escape(head)}\\s*(?P<name>[^\\s<>\"']+){_loose(tail)}"
    closer = re.escape(form.function_closer)
    if form.opener:
        opener = f"(?:{re.escape(form.opener)}\\s*)?{opener}"
        closer = f"{closer}(?:\\s*{re.escape(form.closer)})?"
    return {
        "open_pattern": opener,
        # White space between two calls would be a text, and the last text is the message's.
        "close_pattern": rf"{closer}\s*",
        "content": "xml-inline",
        "content_args": {"tag_pattern": _tag_pattern(form)},
        "transform": {
            "type": "function",
            "function": {"name": "{name}", "arguments": "{content}"},
        },
    }


def _tag_pattern(form: Form) -> str:
    """Return the pattern of one parameter."""
    key = r"(?P<key>[^<>\"']+?)"
    if isinstance(form, SlotForm):
        head, tail, *value = form.parameter
        flag = rf"(?:\"\s+{form.flag}=\"\w+)?" if form.flag else ""
        behind = flag + _loose(tail) + "".join(rf"\s*{_loose(part)}" for part in value)
    else:
        head, _, tail = form.parameter_tag(_NAME).partition(_NAME)
        behind = _loose(tail)
    trim = r"\n?" if form.trim else ""
    end = re.escape(form.parameter_closer)
    return f"{re.escape(head)}{key}{behind}{trim}(?P<value>.*?){trim}{end}"


def _bare_field(codec: BareCodec) -> dict[str, Any]:
    """Return the field of calls as a word, a name, and an object with bare keys."""
    form = codec.form
    return {
        "open_pattern": f"{re.escape(form.opener)}call:{_WORD}",
        "close_pattern": rf"{re.escape(form.closer)}\s*",
        "content": "json",
        "content_args": {"unquoted_keys": True, "string_delims": [[form.quote, form.quote]]},
        "transform": {
            "type": "function",
            "function": {"name": "{name}", "arguments": "{content}"},
        },
    }
