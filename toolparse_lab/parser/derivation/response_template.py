"""Protocols from response templates: a model's own account of its output.

A response template (transformers 5.13 and later) says for each field of a message how it opens,
closes and is read. From it answers are written, and a family is fitted to them as to those of a
chat template.
"""

# How it works. A template that can be read can be written: literals as they stand, patterns as one
# text that they match, captures as slots, transforms backwards. Derivation and proof are those of
# `derive.py`, so that the two ways to a protocol end at the same place.

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core.errors import BadOptions, UnreadableTemplate
from ...formats.base import Protocol
from .answers import Answer, Answers
from .patterns import UnsampledPattern, sample_of
from .probes import FIT, HELD, Call, Probe, Wire
from .renderer import is_folder, json_file

_THOUGHTS = ("reasoning_content", "reasoning", "thinking")
_CALLS = "tool_calls"


@dataclass(frozen=True, slots=True)
class Region:
    """One field of a template as it is written.

    opener, closer: texts with slots in braces. content: the name of its parser. arguments: of the
    parser. transform: of the parse. each: the transform is that of each item of a list.
    """

    opener: str
    closer: str
    content: str
    arguments: Mapping[str, Any]
    transform: Any
    each: bool

    @classmethod
    def of(cls, field: Mapping[str, Any]) -> Region:
        """Return the region of a field. Raises UnsampledPattern."""
        arguments = field.get("content_args")
        return cls(
            _edge(field, "open"),
            _edge(field, "close"),
            str(field.get("content", "text")),
            arguments if isinstance(arguments, Mapping) else {},
            field.get("transform"),
            field.get("transform_each") is True,
        )

    def text(self, text: str) -> str:
        """Return a text in this region."""
        return f"{self.opener}{text}{self.closer}"

    def calls(self, calls: Sequence[Call]) -> str:
        """Return calls as this region has them. Raises UnsampledPattern."""
        if not calls:
            return ""
        if self.each:
            return self.text(json.dumps([self._item(call) for call in calls], ensure_ascii=False))
        return "\n".join(self._call(call, i) for i, call in enumerate(calls))

    def _call(self, call: Call, index: int) -> str:
        """Return one call, the number `index` of its answer."""
        body = self._body(call)
        opener = self.opener.replace("{name}", call.name).replace("{id}", call.id)
        return f"{opener.replace('{index}', str(index))}{body}{self.closer}"

    def _body(self, call: Call) -> str:
        """Return the text between opener and closer of a call."""
        if self.content == "json":
            if self.arguments.get("unquoted_keys") and self.arguments.get("string_delims"):
                opener, closer = self.arguments["string_delims"][0]
                return _bare(dict(call.arguments), opener, closer)
            return json.dumps(self._item(call), ensure_ascii=False)
        if "{name}" not in self.opener:
            raise UnsampledPattern(f"an opener without the group name, of {self.content}")
        if self.content == "xml-inline":
            tag = sample_of(str(self.arguments.get("tag_pattern", "")))
            if "{key}" not in tag or "{value}" not in tag:
                raise UnsampledPattern("a tag_pattern has the groups key and value")
            is_json = _is_json(self.arguments.get("value_parser"))
            return "\n".join(
                tag.replace("{key}", key).replace("{value}", _value(value, is_json))
                for key, value in call.arguments.items()
            )
        raise UnsampledPattern(f"calls whose content is {self.content}")

    def _item(self, call: Call) -> Any:
        """Return the value that a parser of JSON gives for a call: the transform backwards."""
        root = "" if self.each else "content"
        arguments = dict(call.arguments)
        if "{name}" in self.opener:
            return arguments
        places = dict(_places(self.transform))
        name, value = places.get("name", ""), places.get("arguments", "")
        if not self.transform or places.get("function") == "content":
            return {"name": call.name, "arguments": arguments}
        item: dict[str, Any] = {}
        for path, member in ((name, call.name), (value, arguments), (places.get("id"), call.id)):
            keys = (path or "").split(".") if path else []
            if root and keys[:1] == [root]:
                keys = keys[1:]
            _put(item, keys, member)
        if not item:
            raise UnsampledPattern("a transform without the name and the arguments of a call")
        return item


def _edge(field: Mapping[str, Any], side: str) -> str:
    """Return opener or closer of a field, "" for none. Raises UnsampledPattern."""
    literal, pattern = field.get(side), field.get(f"{side}_pattern")
    if isinstance(literal, list) and literal:
        literal = literal[0]
    if isinstance(literal, str) and literal:
        return literal
    if literal is not None:
        raise UnsampledPattern(f"{side} is {literal!r}, and no text")
    return sample_of(pattern) if isinstance(pattern, str) else ""


def _with_one_opener(field: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a field as it is. Raises UnsampledPattern if its calls open in several ways."""
    openers = field.get("open")
    if isinstance(openers, list) and len(set(map(str, openers))) > 1:
        # Calls written with one of them would say nothing about the others.
        raise UnsampledPattern(f"one of several openers: {', '.join(map(str, openers))}")
    return field


def _places(transform: Any, key: str = "") -> list[tuple[str, str]]:
    """Return (key, path of its placeholder) for every placeholder of a transform."""
    if isinstance(transform, Mapping):
        return [place for k, member in transform.items() for place in _places(member, str(k))]
    if isinstance(transform, str) and transform.startswith("{") and transform.endswith("}"):
        return [(key, transform[1:-1])]
    return []


def _put(item: dict[str, Any], keys: Sequence[str], value: Any) -> None:
    """Put a value at a path of keys into an object."""
    for key in keys[:-1]:
        item = item.setdefault(key, {})
    if keys:
        item[keys[-1]] = value


def _is_json(parser: Any) -> bool:
    """Return True if a parser of values takes texts in quotes alone, as JSON has them.

    Raises UnsampledPattern for a parser that not all values can be written for.
    """
    if parser is None:
        return False
    name = parser.get("name", "text") if isinstance(parser, Mapping) else parser
    if name not in ("text", "json"):
        raise UnsampledPattern(f"values whose content is {name}")
    options = parser.get("args") if isinstance(parser, Mapping) else None
    is_lax = isinstance(options, Mapping) and options.get("allow_non_json") is True
    return name == "json" and not is_lax


def _value(value: Any, is_json: bool) -> str:
    """Return a value as text between tags. is_json: a text stands in quotes there."""
    if isinstance(value, str) and not is_json:
        return value
    return json.dumps(value, ensure_ascii=False)


def _bare(value: Any, opener: str, closer: str) -> str:
    """Return a value with bare keys, its texts between delimiters of their own."""
    if isinstance(value, str):
        return f"{opener}{value}{closer}"
    if isinstance(value, Mapping):
        members = (f"{key}:{_bare(member, opener, closer)}" for key, member in value.items())
        return "{" + ",".join(members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_bare(item, opener, closer) for item in value) + "]"
    return json.dumps(value)


@dataclass(frozen=True, slots=True)
class ResponseTemplate:
    """The regions of calls and of reasoning, or None for no reasoning."""

    calls: Region
    thought: Region | None

    @classmethod
    def of(cls, x: Any) -> ResponseTemplate:
        """Return the template in a dict, in the dict of a tokenizer_config.json, or in such a file.

        Raises BadOptions for input that holds none, UnreadableTemplate for one that says too
        little.
        """
        fields = _fields(x)
        thought = next((fields[name] for name in _THOUGHTS if name in fields), None)
        try:
            region = Region.of(_with_one_opener(fields[_CALLS]))
            reasoning = Region.of(thought) if isinstance(thought, Mapping) else None
            region.calls(FIT[1].calls)
        except UnsampledPattern as error:
            raise UnreadableTemplate(
                "the calls of this response template are of no known family",
                got=str(error),
                expected="one opener, and as content json, or xml-inline with a tag_pattern of key "
                "and value",
                hint="describe the format: Protocol.from_spec, or a codec as in CONTRIBUTING.md",
            ) from None
        return cls(region, reasoning)

    def answer(self, probe: Probe) -> Answer:
        """Return the answer to a probe."""
        thought = ""
        if probe.reasoning and self.thought is not None:
            thought = self.thought.text(probe.reasoning)
        calls = self.calls.calls(probe.calls)
        gap = "\n" if calls and probe.content else ""
        return Answer(probe, f"{thought}{probe.content}{gap}{calls}")

    def answers(self) -> Answers:
        """Return the answers to all probes."""
        fit = {probe.id: self.answer(probe) for probe in FIT}
        others = {probe.id: self.answer(probe) for probe in HELD}
        key = "reasoning_content" if self.thought else ""
        return Answers(fit, others, Wire(thought_key=key), "", {}, "")


def _fields(x: Any) -> Mapping[str, Any]:
    """Return the fields of a response template. Raises BadOptions."""
    config = _loaded(x)
    spec = config
    if isinstance(config, Mapping):
        spec = config.get("response_template") or config.get("response_schema") or config
    fields = spec.get("fields") if isinstance(spec, Mapping) else None
    if isinstance(spec, Mapping) and isinstance(spec.get("properties"), Mapping):
        fields = _of_schema(spec["properties"])
    if not isinstance(fields, Mapping) or not isinstance(fields.get(_CALLS), Mapping):
        raise _no_template(config)
    return fields


def _loaded(x: Any) -> Any:
    """Return what a path or JSON text holds, anything else as it is. Raises BadOptions."""
    if isinstance(x, str) and x.lstrip()[:1] == "{":
        return _json_text(x)
    if isinstance(x, (str, os.PathLike)) and str(x).strip():
        path = Path(x)
        return json_file(path / "tokenizer_config.json" if is_folder(path) else path)
    return x


def _no_template(x: Any) -> BadOptions:
    """Return the error about input without a response template."""
    got = type(x).__name__
    if isinstance(x, Mapping):
        got = ", ".join(map(str, list(x)[:20])) or "no keys"
    return BadOptions(
        "there is no response template with calls here",
        got=got,
        expected="{fields: {tool_calls: …}}, or a tokenizer_config.json with response_template",
        hint="many models have a chat template alone: Protocol.from_chat_template",
    )


def _json_text(text: str) -> Any:
    """Return the value of JSON text, or the text itself if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _of_schema(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of the older `response_schema`, whose regions are regular expressions."""
    fields: dict[str, Any] = {}
    for name, schema in properties.items():
        if not isinstance(schema, Mapping):
            continue
        pattern = schema.get("x-regex-iterator") or schema.get("x-regex")
        if not isinstance(pattern, str):
            continue
        try:
            opener, slot, closer = sample_of(pattern).partition("{1}")
        except UnsampledPattern:
            continue
        if slot:
            # The tokens around a call may themselves be part of what is captured.
            content = "json" if name == _CALLS else "text"
            fields[name] = {"open": opener, "close": closer, "content": content}
    return fields


def from_response_template(template: Any, id: str | None = None) -> Protocol:
    """Return the protocol of a response template.

    See `Protocol.from_response_template`.
    """
    # `derive` is the larger half; both lead to it.
    from .derive import checked_id, protocol_of_answers

    own_id = checked_id(id)
    source = ResponseTemplate.of(template)
    text = json.dumps(repr(source))
    protocol_id = own_id or "response-" + hashlib.sha256(text.encode()).hexdigest()[:8]
    return protocol_of_answers(source.answers(), protocol_id, "response template")
