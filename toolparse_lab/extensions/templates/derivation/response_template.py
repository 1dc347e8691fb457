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
import importlib
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ....core.errors import BadOptions, UnreadableTemplate
from ....runner.chat_templates.renderer import is_folder, json_file
from .answers import FIT, HELD, Answer, Answers, Call, Probe, Wire
from .derive import checked_id, protocol_of_answers
from .derived import DerivedProtocol

_THOUGHTS = ("reasoning_content", "reasoning", "thinking")
_CALLS = "tool_calls"
# The parser of Python's own `re`: its tree is all that is needed, and nothing is matched here.
_PARSER = importlib.import_module("re._parser")
_LONGEST = 1000  # characters of one repetition


class UnsampledPattern(ValueError):
    """Raised for a pattern that is not one, or one whose texts cannot be told from it."""


def sample_of(pattern: str) -> str:
    """Return a text that a regular expression matches, each named group as its name in braces.

    What may be missing drops out, of alternatives the first is taken, and a group without a name
    is `{1}`, a run of digits `{index}`. Raises UnsampledPattern.

    >>> sample_of(r"<call>\\s*<function=(?P<name>[^>]+)>")
    '<call><function={name}>'
    """
    try:
        tree = _PARSER.parse(pattern, re.DOTALL)
        names = {number: name for name, number in tree.state.groupdict.items()}
        return "".join(_sample(tree, names, 0))
    except (re.error, RecursionError, OverflowError, TypeError) as error:
        raise UnsampledPattern(str(error)) from None


def _sample(tree: Iterable[Any], names: dict[int, str], depth: int) -> list[str]:
    if depth > 40:
        raise UnsampledPattern("nested too deep")
    parts: list[str] = []
    for code, argument in tree:
        kind = str(code)
        if kind == "LITERAL":
            parts.append(chr(argument))
        elif kind == "IN":
            # White space where the set has it, else its first literal.
            known = (
                "\n" if str(value).endswith("CATEGORY_SPACE") else chr(value)
                for of, value in argument
                if str(of) == "LITERAL" or str(value).endswith("CATEGORY_SPACE")
            )
            parts.append(next(known, "x"))
        elif kind in ("ANY", "NOT_LITERAL", "CATEGORY"):
            parts.append("x")
        elif kind.endswith("_REPEAT"):
            least, _, inside = argument
            if _is_digit(inside):
                parts += ["{index}"] if least else []
                continue
            once = _sample(inside, names, depth + 1)
            if len(once) * least > _LONGEST:
                raise UnsampledPattern("a repetition that is too long")
            parts += once * least
        elif kind == "SUBPATTERN":
            number, _, _, inside = argument
            if number is None:
                parts += _sample(inside, names, depth + 1)
            else:
                parts.append("{" + names.get(number, str(number)) + "}")
        elif kind == "BRANCH":
            parts += _sample(argument[1][0], names, depth + 1)
        # Anchors and looks around take no characters.
    return parts


def _is_digit(tree: Any) -> bool:
    if len(tree) != 1 or str(tree[0][0]) != "IN":
        return False
    return all(str(value).endswith("CATEGORY_DIGIT") for _, value in tree[0][1])


@dataclass(frozen=True, slots=True)
class Region:
    """One field of a template as it is written."""

    opener: str  # a text with slots in braces
    closer: str
    content: str  # the name of its parser
    arguments: Mapping[str, Any]  # of the parser
    transform: Any  # of the parse
    each: bool  # the transform is that of each item of a list

    @classmethod
    def of(cls, field: Mapping[str, Any]) -> Region:
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
        return f"{self.opener}{text}{self.closer}"

    def calls(self, calls: Sequence[Call]) -> str:
        if self.each and calls:
            return self.text(json.dumps([self._item(call) for call in calls], ensure_ascii=False))
        texts: list[str] = []
        for i, call in enumerate(calls):
            opener = self.opener.replace("{name}", call.name).replace("{id}", call.id)
            texts.append(f"{opener.replace('{index}', str(i))}{self._body(call)}{self.closer}")
        return "\n".join(texts)

    def _body(self, call: Call) -> str:
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
            tags: list[str] = []
            for key, value in call.arguments.items():
                if is_json or not isinstance(value, str):
                    value = json.dumps(value, ensure_ascii=False)
                tags.append(tag.replace("{key}", key).replace("{value}", value))
            return "\n".join(tags)
        raise UnsampledPattern(f"calls whose content is {self.content}")

    def _item(self, call: Call) -> Any:
        # What a parser of JSON gives for a call: the transform backwards.
        arguments = dict(call.arguments)
        if "{name}" in self.opener:
            return arguments
        places = dict(_places(self.transform))
        if not self.transform or places.get("function") == "content":
            return {"name": call.name, "arguments": arguments}
        item: dict[str, Any] = {}
        for slot, member in (("name", call.name), ("arguments", arguments), ("id", call.id)):
            keys = places[slot].split(".") if places.get(slot) else []
            if not self.each and keys[:1] == ["content"]:
                keys = keys[1:]
            inner = item
            for key in keys[:-1]:
                inner = inner.setdefault(key, {})
            if keys:
                inner[keys[-1]] = member
        if not item:
            raise UnsampledPattern("a transform without the name and the arguments of a call")
        return item


def _edge(field: Mapping[str, Any], side: str) -> str:
    literal, pattern = field.get(side), field.get(f"{side}_pattern")
    if isinstance(literal, list) and literal:
        literal = literal[0]
    if isinstance(literal, str) and literal:
        return literal
    if literal is not None:
        raise UnsampledPattern(f"{side} is {literal!r}, and no text")
    return sample_of(pattern) if isinstance(pattern, str) else ""


def _places(transform: Any, key: str = "") -> list[tuple[str, str]]:
    # (key, path of its placeholder) for every placeholder of a transform.
    if isinstance(transform, Mapping):
        return [place for k, member in transform.items() for place in _places(member, str(k))]
    if isinstance(transform, str) and transform.startswith("{") and transform.endswith("}"):
        return [(key, transform[1:-1])]
    return []


def _is_json(parser: Any) -> bool:
    # True for a parser of values for which strings are in quotes, as JSON has them.
    if parser is None:
        return False
    name = parser.get("name", "text") if isinstance(parser, Mapping) else parser
    if name not in ("text", "json"):
        raise UnsampledPattern(f"values whose content is {name}")
    options = parser.get("args") if isinstance(parser, Mapping) else None
    is_lax = isinstance(options, Mapping) and options.get("allow_non_json") is True
    return name == "json" and not is_lax


def _bare(value: Any, opener: str, closer: str) -> str:
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
            openers = fields[_CALLS].get("open")
            if isinstance(openers, list) and len(set(map(str, openers))) > 1:
                # Calls written with one of them would say nothing about the others.
                raise UnsampledPattern(f"one of several openers: {', '.join(map(str, openers))}")
            region = Region.of(fields[_CALLS])
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

    def answers(self) -> Answers:
        fit, others = ({p.id: self._answer(p) for p in probes} for probes in (FIT, HELD))
        return Answers(fit, others, Wire(thought_key="reasoning_content" if self.thought else ""))

    def _answer(self, probe: Probe) -> Answer:
        thought = ""
        if probe.reasoning and self.thought is not None:
            thought = self.thought.text(probe.reasoning)
        calls = self.calls.calls(probe.calls)
        gap = "\n" if calls and probe.content else ""
        return Answer(probe, f"{thought}{probe.content}{gap}{calls}")


def _fields(x: Any) -> Mapping[str, Any]:
    config = x
    if isinstance(x, str) and x.lstrip()[:1] == "{":
        with suppress(ValueError, RecursionError):
            config = json.loads(x)
    elif isinstance(x, (str, os.PathLike)) and str(x).strip():
        path = Path(x)
        config = json_file(path / "tokenizer_config.json" if is_folder(path) else path)

    got, fields = type(config).__name__, None
    if isinstance(config, Mapping):
        got = ", ".join(map(str, list(config)[:20])) or "no keys"
        spec = config.get("response_template") or config.get("response_schema") or config
        if isinstance(spec, Mapping):
            fields = spec.get("fields")
            if isinstance(spec.get("properties"), Mapping):
                fields = _of_schema(spec["properties"])
    if not isinstance(fields, Mapping) or not isinstance(fields.get(_CALLS), Mapping):
        raise BadOptions(
            "there is no response template with calls here",
            got=got,
            expected="{fields: {tool_calls: …}}, or a tokenizer_config.json with response_template",
            hint="many models have a chat template alone: protocol_from_chat_template",
        )
    return fields


def _of_schema(properties: Mapping[str, Any]) -> dict[str, Any]:
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


def protocol_from_response_template(template: Any, *, id: str | None = None) -> DerivedProtocol:
    """Return the protocol of a model's response template, derived and verified.

    Args:
        template: a `response_template` of transformers, the dict of a tokenizer_config.json that
            has one (or the older `response_schema`), JSON text of one, or the path of such a file
            or of a model's folder.
        id: of the protocol, else one that follows from the template.

    Raises BadOptions for anything else, BadSpec for an id that cannot be one, and
    UnreadableTemplate for a template whose calls are of no known family.
    """
    own_id = checked_id(id)
    source = ResponseTemplate.of(template)
    text = json.dumps(repr(source))
    protocol_id = own_id or "response-" + hashlib.sha256(text.encode()).hexdigest()[:8]
    return protocol_of_answers(source.answers(), protocol_id, "response template")
