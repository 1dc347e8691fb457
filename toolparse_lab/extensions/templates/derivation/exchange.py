"""A format in the words of other programs: response templates and structural tags.

Both are measured on calls that the protocol itself writes, so that every protocol that writes JSON
or parameter tags has them, whatever it was made from.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any

from ....core.errors import BadOptions, UnwritableCall, UsageError
from ....core.toolspec import ToolSpec, tool_specs
from ....entry.detect import detect
from ....formats.bare import BareCodec
from ....formats.base import Protocol
from ....formats.parameters.form import Form, TagForm
from ....formats.parameters.slots import SlotForm
from ....formats.parameters.tags import ParameterCall
from ....formats.registry import protocol_of
from .derived import SurroundedCalls, SurroundedCodec
from .families import Around

_MARK = '{"toolparse":0}'
_NAME = "zq_tool_name"
_OTHER = "yk_other_name"
_INDEX = re.compile(r"\d+")
_WORD = r"(?P<name>[\w./:@+-]+)"


def _written(protocol: Protocol, *names: str) -> list[str] | None:
    # What is written before, between and after the arguments of calls, None if those are not
    # written as JSON.
    codec = protocol.codec
    try:
        calls = [codec.write(name, _MARK, None) for name in names]
    except UnwritableCall:
        return None
    parts = (codec.join(calls) if len(calls) > 1 else calls[0]).split(_MARK)
    return parts if len(parts) == len(names) + 1 else None


def _around(protocol: Protocol) -> Around | None:
    # What is written around each of two calls and around both.
    parts = _written(protocol, _NAME, _OTHER)
    if parts is None:
        return None
    return Around.of(parts[0], parts[1].replace(_OTHER, _NAME), parts[2])


def _inner(protocol: Protocol) -> Any:
    codec = protocol.codec
    while isinstance(codec, SurroundedCodec):
        codec = codec.inner
    return codec


def _unsayable(protocol: Protocol, what: str) -> BadOptions:
    return BadOptions(
        f"this format cannot be said as a {what}",
        got=protocol.id,
        expected="a format whose arguments are JSON, or parameter tags",
    )


def structural_tag_of(protocol: Protocol, tools: Any) -> dict[str, Any]:
    """Return the structural tag that keeps calls of `tools` to a format.

    It is for xgrammar, vLLM and SGLang: text is free until a call begins, and its arguments then
    follow the tool's schema.

    Args:
        tools: anything `ToolSpec.of` takes, at least one.

    Raises BadOptions for no tools, and for formats whose values are neither JSON nor parameters of
    Qwen's tags.
    """
    specs = tool_specs(tools)
    if not specs:
        raise BadOptions(
            "a structural tag needs at least one tool", got=tools, expected="a tool definition"
        )
    around = _around(protocol)
    if around is None or not around.before.strip() or around.between is None:
        tags = [_tag_of(protocol, tool) for tool in specs]
    else:
        # A list or a section with all the calls of an answer: tags of single calls would allow one
        # call to a list.
        calls = [
            _tag_of_json(around.opener.replace(_NAME, tool.name), tool, around.closer)
            for tool in specs
        ]
        several = {"type": "tags_with_separator", "tags": calls, "separator": around.between}
        tags = [_tag(around.before, {**several, "at_least_one": True}, around.behind)]
    # A call begins at a head of the format, or at a whole beginning.
    heads = sorted(protocol.envelope.heads({}), key=len, reverse=True)
    begins = [tag["begin"] for tag in tags]
    triggers = (next((h for h in heads if begin.startswith(h)), begin) for begin in begins)
    triggered = {"type": "triggered_tags", "triggers": list(dict.fromkeys(triggers)), "tags": tags}
    return {"type": "structural_tag", "format": triggered}


def _tag(begin: str, content: dict[str, Any], end: str) -> dict[str, Any]:
    return {"type": "tag", "begin": begin, "content": content, "end": end}


def _tag_of_json(begin: str, tool: ToolSpec, end: str) -> dict[str, Any]:
    return _tag(begin, {"type": "json_schema", "json_schema": tool.schema}, end)


def _tag_of(protocol: Protocol, tool: ToolSpec) -> dict[str, Any]:
    codec = _inner(protocol)
    if not isinstance(codec, ParameterCall):
        frame = _written(protocol, tool.name)
        if frame is None:
            raise _unsayable(protocol, "structural tag")
        return _tag_of_json(frame[0], tool, frame[1])
    form = codec.form
    # xgrammar knows parameters as Qwen3-Coder writes them, and no other tags.
    if not isinstance(form, TagForm) or form.parameter_tag("p") != "<parameter=p>":
        raise _unsayable(protocol, "structural tag")
    # A call without arguments shows what is around them. White space before the closer is part
    # of the content, where xgrammar allows it.
    begin, closer, rest = codec.write(tool.name, "{}", tool).rpartition(form.function_closer)
    return _tag(begin, {"type": "qwen_xml_parameter", "json_schema": tool.schema}, closer + rest)


def response_template_for(raw: str, tools: Any) -> dict[str, Any] | None:
    """Return the response template of the format that a text seems to be in, or None."""
    for likeliest in detect(raw, tools)[:1]:
        with suppress(UsageError):
            return response_template_of(protocol_of(likeliest.protocol))
    return None


def response_template_of(protocol: Protocol) -> dict[str, Any]:
    """Return a format as a `response_template` of transformers.

    Raises BadOptions for formats that such a template cannot describe, such as Python calls.
    """
    codec = _inner(protocol)
    calls: dict[str, Any] | None
    if isinstance(codec, ParameterCall):
        calls = _tag_field(codec.form)
    elif isinstance(codec, BareCodec):
        form = codec.form
        calls = {
            "open_pattern": f"{re.escape(form.opener)}call:{_WORD}",
            "close_pattern": rf"{re.escape(form.closer)}\s*",
            "content": "json",
            "content_args": {"unquoted_keys": True, "string_delims": [[form.quote, form.quote]]},
            "transform": _transform("name", "content"),
        }
    else:
        calls = _json_field(protocol)
    if calls is None:
        raise _unsayable(protocol, "response template")
    envelope = protocol.envelope
    opener, closer = "<think>", "</think>"
    if isinstance(envelope, SurroundedCalls) and all(envelope.thought):
        opener, closer = envelope.thought
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


def _json_field(protocol: Protocol) -> dict[str, Any] | None:
    frame = _written(protocol, _NAME)
    if frame is None or frame[0].count(_NAME) != 1:
        return None
    before, after = frame
    decoder = json.JSONDecoder()
    for start, character in enumerate(before):
        if character in "{[":
            try:
                value, end = decoder.raw_decode(before[start:] + _MARK + after)
            except ValueError:
                continue
            behind = end - len(before) + start - len(_MARK)
            if behind > 0:
                break
    else:
        return _named_field(protocol)

    # Objects between opener and closer.
    is_list = isinstance(value, list)
    opener, closer = before[:start].strip(), after[behind:].strip()
    places = _places(value[0] if is_list else value, "" if is_list else "content")
    around = _around(protocol)
    if not is_list and (around is None or around.opener.lstrip()[:1] in ("", "{")):
        return None  # several objects between one opener and one closer
    if opener == "" or "name" not in places or "arguments" not in places:
        return None
    field: dict[str, Any] = {
        "open": opener,
        "close_pattern": _loose(closer) + r"\s*" if closer else f"(?={re.escape(opener)})",
        "content": "json",
        "transform": _transform(places["name"], places["arguments"]),
    }
    return {**field, "transform_each": True} if is_list else field


def _places(value: Any, path: str) -> dict[str, str]:
    # "name" and "arguments" -> their path in a call's object.
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


def _named_field(protocol: Protocol) -> dict[str, Any] | None:
    around = _around(protocol)
    if around is None or around.opener.count(_NAME) != 1:
        return None
    head, _, tail = around.opener.partition(_NAME)
    if not head.strip():
        return None  # any word would open a call
    # Only one of several calls has the section's opener before it, or its closer after it.
    before, after = around.before.strip(), around.behind.strip()
    section = rf"(?:{_loose(before)}\s*)?" if before else ""
    tail = _INDEX.sub(lambda _: r"\d+", _loose(tail))
    field: dict[str, Any] = {
        "open_pattern": f"{section}{_loose(head)}{_WORD}{tail}",
        "content": "json",
        "transform": _transform("name", "content"),
    }
    if closer := around.closer.strip():
        section_end = rf"(?:\s*{_loose(after)})?" if after else ""
        field["close_pattern"] = rf"{_loose(closer)}{section_end}\s*"
    else:
        field["close_pattern"] = f"(?={re.escape(head.strip())})"
    return field


def _transform(name: str, arguments: str) -> dict[str, Any]:
    function = {"name": "{" + name + "}", "arguments": "{" + arguments + "}"}
    return {"type": "function", "function": function}


def _loose(text: str) -> str:
    # The pattern of a literal whose white space may be any.
    return r"\s*".join(re.escape(part) for part in re.split(r"\s+", text))


def _tag_field(form: Form) -> dict[str, Any]:
    head, _, tail = form.function_tag(_NAME).partition(_NAME)
    opener = f"{re.escape(head)}\\s*(?P<name>[^\\s<>\"']+){_loose(tail)}"
    closer = re.escape(form.function_closer)
    if form.opener:
        opener = f"(?:{re.escape(form.opener)}\\s*)?{opener}"
        closer = f"{closer}(?:\\s*{re.escape(form.closer)})?"

    if isinstance(form, SlotForm):
        head, tail, *value = form.parameter
        flag = rf"(?:\"\s+{form.flag}=\"\w+)?" if form.flag else ""
        behind = flag + _loose(tail) + "".join(rf"\s*{_loose(part)}" for part in value)
    else:
        head, _, tail = form.parameter_tag(_NAME).partition(_NAME)
        behind = _loose(tail)
    key, trim = r"(?P<key>[^<>\"']+?)", r"\n?" if form.trim else ""
    end = re.escape(form.parameter_closer)
    return {
        "open_pattern": opener,
        # White space between two calls would be a text, and the last text is the message's.
        "close_pattern": rf"{closer}\s*",
        "content": "xml-inline",
        "content_args": {
            "tag_pattern": f"{re.escape(head)}{key}{behind}{trim}(?P<value>.*?){trim}{end}"
        },
        "transform": _transform("name", "content"),
    }
