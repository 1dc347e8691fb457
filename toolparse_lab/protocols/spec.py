"""A protocol from data: `Protocol.from_spec`. Each family has its fields; what is wrong is said by its field's name."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import BadSpec
from .base import Protocol
from .json_call import JsonCall
from .morph_xml import ElementCall, ToolElements
from .parameter_form import FUNCTION_WORDS, PARAMETER_WORDS, TagForm
from .parameter_tags import ParameterCall, ParameterTags
from .results import Between, ElementResult, JsonResult, TextResult, YamlResult
from .tags import THINK_TAGS, JsonTags
from .yaml_xml import YamlCall, YamlElements

_COMMON: Mapping[str, Any] = {"id": None, "body": "json", "title": "", "aliases": ()}
_RESPONSE: Mapping[str, Any] = {"response_opener": "<tool_response>", "response_closer": "</tool_response>"}
# body -> its fields with their defaults; None = must be given
_FIELDS: Mapping[str, Mapping[str, Any]] = {
    "json": {
        "opener": None, "closer": None, "name_key": "name", "arguments_key": "arguments", "own_line": False,
        "response_name_key": "name", "response_content_key": "content", **_RESPONSE,
    },
    "tags": {
        "opener": "", "closer": "", "function": "function", "parameter": "parameter", "attribute": False, "trim": True,
        "lines": True, **_RESPONSE,
    },
    "xml": {},
    "yaml": {},
}  # fmt: skip
_ID = re.compile(r"[\w.:-]{1,64}")
_WORD = re.compile(r"[A-Za-z_]{1,16}")
_JSON_ITSELF = re.compile(r"(?:[\s\[\]{}:,\"'/*0-9.eE+-]|true|false|null)+")
_RESERVED = ("auto", "native")


def from_spec(spec: Mapping[str, Any] | None, fields: Mapping[str, Any]) -> Protocol:
    """See `Protocol.from_spec`."""
    if spec is not None and not isinstance(spec, Mapping):
        raise BadSpec("spec", "a spec is a mapping of fields", got=type(spec).__name__, expected=", ".join(_COMMON))
    given = {**(spec or {}), **fields}
    body = given.get("body", "json")
    if not isinstance(body, str) or body not in _FIELDS:
        raise BadSpec("body", "no family of this name", got=body, expected=", ".join(_FIELDS))
    known = {**_COMMON, **_FIELDS[body]}
    for key in given:
        if key not in known:
            near = difflib.get_close_matches(str(key), known, 1)
            raise BadSpec(
                str(key), f"a spec with body {body!r} has no such field", got=key, expected=", ".join(known),
                hint=f"did you mean {near[0]!r}?" if near else None,
            )  # fmt: skip
    checked = _Fields({**known, **given})
    return Protocol(
        id=checked.id(),
        title=checked.text("title", empty=True),
        aliases=checked.aliases(),
        **_MAKE[body](checked),
    )


@dataclass(frozen=True, slots=True)
class _Fields:
    """The fields of a spec, each checked when it is asked for."""

    values: Mapping[str, Any]

    def wrong(self, field: str, message: str, expected: str, hint: str | None = None) -> BadSpec:
        return BadSpec(field, message, got=self.values[field], expected=expected, hint=hint)

    def text(self, field: str, *, empty: bool = False) -> str:
        value = self.values[field]
        if value is None:
            raise self.wrong(field, "the field is missing", "a text")
        if not isinstance(value, str):
            raise self.wrong(field, "the field is no text", "a text")
        if not empty and not value.strip():
            raise self.wrong(field, "the field is empty", "a text that is more than white space")
        return value

    def switch(self, field: str) -> bool:
        value = self.values[field]
        if not isinstance(value, bool):
            raise self.wrong(field, "the field is a switch", "True or False")
        return value

    def id(self) -> str:
        value = self.text("id")
        if not _ID.fullmatch(value) or value in _RESERVED:
            raise self.wrong("id", "this cannot be a protocol's id", "letters, digits and . : _ -, not auto or native")
        return value

    def aliases(self) -> tuple[str, ...]:
        value = self.values["aliases"]
        if not isinstance(value, (list, tuple)) or not all(isinstance(v, str) and v for v in value):
            raise self.wrong("aliases", "aliases are other ids", "a list of texts")
        return tuple(value)

    def delimiter(self, field: str, *, beside_json: bool) -> str:
        value = self.text(field)
        for tag in (t for pair in THINK_TAGS.items() for t in pair):
            if value.strip().startswith(tag):
                raise self.wrong(field, f"{tag} is reasoning in every format", "a delimiter of the format's own")
        if beside_json and _JSON_ITSELF.fullmatch(value.strip()):
            raise self.wrong(
                field, "JSON itself is written with these characters, so the delimiter would be found inside a body",
                "a delimiter with a character that JSON has in strings only",
            )  # fmt: skip
        return value

    def word(self, field: str, others: tuple[str, ...]) -> str:
        value = self.text(field)
        if not _WORD.fullmatch(value):
            raise self.wrong(field, "this cannot be a tag's name", "1 to 16 letters or underscores")
        if value.lower() in others:
            raise self.wrong(field, "readers know this word in the other meaning", f"none of {', '.join(others)}")
        return value

    def response(self) -> tuple[str, str]:
        return self.text("response_opener"), self.text("response_closer")


def _json(of: _Fields) -> dict[str, Any]:
    opener, closer = of.delimiter("opener", beside_json=True), of.delimiter("closer", beside_json=True)
    if opener.strip() == closer.strip():
        raise of.wrong("closer", "opener and closer are the same", "a closer that is told from the opener")
    keys = {key: of.text(key) for key in ("name_key", "arguments_key", "response_name_key", "response_content_key")}
    for a, b in (("name_key", "arguments_key"), ("response_name_key", "response_content_key")):
        if keys[a] == keys[b]:
            raise of.wrong(b, f"{a} and {b} are the same key", "two keys")
    line = of.switch("own_line")
    closers = tuple(dict.fromkeys((closer, closer.strip())))
    return {
        "envelope": JsonTags((opener.strip(),) if line else (opener,), closers, line=line),
        "codec": JsonCall(f"{opener.strip()}\n" if line else opener, closer, keys["name_key"], keys["arguments_key"]),
        "tags": frozenset(("delimited",)),
        "results": JsonResult(*of.response(), keys["response_name_key"], keys["response_content_key"]),
    }


def _tags(of: _Fields) -> dict[str, Any]:
    blocks = [of.text(f, empty=True).strip() for f in ("opener", "closer")]
    if bool(blocks[0]) != bool(blocks[1]):
        missing = "closer" if blocks[0] else "opener"
        raise of.wrong(
            missing, "a block of functions has both opener and closer, or neither", "a text, or two empty ones"
        )
    opener, closer = (of.delimiter(f, beside_json=False) for f in ("opener", "closer")) if blocks[0] else ("", "")
    if opener and opener == closer:
        raise of.wrong("closer", "opener and closer are the same", "a closer that is told from the opener")
    function, parameter = of.word("function", PARAMETER_WORDS), of.word("parameter", FUNCTION_WORDS)
    if function.lower() == parameter.lower():
        raise of.wrong("parameter", "function and parameter are the same word", "two words")
    form = TagForm(
        opener, closer, function, parameter, of.switch("attribute"), of.switch("trim"), of.switch("lines")
    )  # fmt: skip
    response = of.response()
    return {
        "envelope": ParameterTags(form),
        "codec": ParameterCall(form),
        "tags": frozenset(("delimited", "schema-typed")),
        "results": TextResult(Between(*response), response),
    }


_ELEMENTS = frozenset(("delimited", "schema-typed"))
_MAKE: Mapping[str, Callable[[_Fields], dict[str, Any]]] = {
    "json": _json,
    "tags": _tags,
    "xml": lambda of: {
        "envelope": ToolElements(), "codec": ElementCall(), "tags": _ELEMENTS, "results": ElementResult(),
    },
    "yaml": lambda of: {"envelope": YamlElements(), "codec": YamlCall(), "tags": _ELEMENTS, "results": YamlResult()},
}  # fmt: skip
