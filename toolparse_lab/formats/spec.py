"""A protocol from data: `Protocol.from_spec`, and a recorded one made again.

Each family of formats has its own fields, and an error names the field that is wrong. The data
stays in `Protocol.spec`, so that a run can record it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..core.errors import BadSpec, near
from .base import Protocol
from .json.mix import json_mix_protocol, json_protocol
from .parameters.form import FUNCTION_WORDS, PARAMETER_WORDS, TagForm
from .parameters.tags import tag_protocol
from .prompt.wording import Wordings
from .reasoning import mark_in
from .results import JsonResult
from .xml.morph_xml import MORPH_XML
from .yaml.yaml_xml import YAML_XML

# Safe in file names, on command lines and in the columns of frames.
_ID = re.compile(r"[\w.:-]{1,64}")
_WORD = re.compile(r"[A-Za-z_]{1,16}")
# Characters and words that JSON has outside its strings.
_JSON_ITSELF = re.compile(r"(?:[\s\[\]{}:,\"'/*0-9.eE+-]|true|false|null)+")
# Names of arms and readers that are no single protocol.
_RESERVED = ("auto", "native")


@dataclass(frozen=True, slots=True)
class SpecFields:
    # Each field is checked when it is read: all methods raise BadSpec. values: field -> value, with
    # defaults filled in, or None for a required field that is missing.
    values: Mapping[str, Any]

    def wrong(self, field: str, message: str, expected: str) -> BadSpec:
        return BadSpec(field, message, got=self.values[field], expected=expected)

    def text(self, field: str, *, empty: bool = False) -> str:
        value = self.values[field]
        # Required fields have None for a default; for the others, None is as wrong.
        if value is None:
            raise self.wrong(field, "the field is missing", "a text")
        if not isinstance(value, str):
            raise self.wrong(field, "the field is no text", "a text")
        if not empty and not value.strip():
            raise self.wrong(field, "the field is empty", "a text that is more than white space")
        return value

    def switch(self, field: str) -> bool:
        value = self.values[field]
        # No truth of other values: the text "false" would be true.
        if not isinstance(value, bool):
            raise self.wrong(field, "the field is a switch", "True or False")
        return value

    def id(self) -> str:
        value = self.text("id")
        if not _ID.fullmatch(value) or value in _RESERVED:
            raise self.wrong(
                "id",
                "this cannot be a protocol's id",
                "letters, digits and . : _ -, not auto or native",
            )
        return value

    def aliases(self) -> tuple[str, ...]:
        value = self.values["aliases"]
        # One text is a sequence, too: of letters.
        is_list = isinstance(value, (list, tuple))
        if not is_list or not all(isinstance(alias, str) and alias for alias in value):
            raise self.wrong("aliases", "aliases are other ids", "a list of texts")
        return tuple(value)

    def delimiter(self, field: str, *, beside_json: bool) -> str:
        value = self.text(field)
        if "{name}" in value:
            message = "a delimiter is the same in every call, without the tool's name"
            raise self.wrong(field, message, "text alone, or a protocol made from a chat template")
        tag = mark_in(value)
        if tag:
            raise self.wrong(
                field, f"{tag} is reasoning in every format", "a delimiter of the format's own"
            )
        if beside_json and _JSON_ITSELF.fullmatch(value.strip()):
            raise self.wrong(
                field,
                "JSON itself is written with these characters, so the delimiter would be found "
                "inside a body",
                "a delimiter with a character that JSON has in strings only",
            )
        return value

    def word(self, field: str, others: tuple[str, ...]) -> str:
        value = self.text(field)
        if not _WORD.fullmatch(value):
            raise self.wrong(field, "this cannot be a tag's name", "1 to 16 letters or underscores")
        if value.lower() in others:
            raise self.wrong(
                field, "readers know this word in the other meaning", f"none of {', '.join(others)}"
            )
        return value

    def response(self) -> tuple[str, str]:
        return self.text("response_opener"), self.text("response_closer")

    def wordings(self) -> Wordings:
        texts = self.values["wordings"]
        if not isinstance(texts, Mapping) or not all(
            isinstance(item, str) for pair in texts.items() for item in pair
        ):
            raise self.wrong("wordings", "wordings are prompt templates by name", "{name: text}")
        return Wordings(texts=tuple(texts.items()))


_COMMON: Mapping[str, Any] = {
    "id": None, "body": "json", "title": "", "aliases": (), "wordings": {},
}  # fmt: skip
_RESPONSE: Mapping[str, Any] = {
    "response_opener": "<tool_response>",
    "response_closer": "</tool_response>",
}
# Body -> its fields with their defaults; None where there is no default.
_FIELDS: Mapping[str, Mapping[str, Any]] = {
    "json": {
        "opener": None, "closer": None, "name_key": "name", "arguments_key": "arguments",
        "own_line": False, "response_name_key": "name", "response_content_key": "content",
        **_RESPONSE,
    },
    "tags": {
        "opener": "", "closer": "", "function": "function", "parameter": "parameter",
        "attribute": False, "trim": True, "lines": True, **_RESPONSE,
    },
    "xml": {},
    "yaml": {},
}  # fmt: skip


def from_spec(spec: Mapping[str, Any] | None, fields: Mapping[str, Any]) -> Protocol:
    """Return the protocol that `spec` and `fields` describe. See `Protocol.from_spec`."""
    if spec is not None and not isinstance(spec, Mapping):
        raise BadSpec(
            "spec",
            "a spec is a mapping of fields",
            got=type(spec).__name__,
            expected=", ".join(_COMMON),
        )
    values = {**(spec or {}), **fields}  # those by name win
    body = values.get("body", "json")
    if not isinstance(body, str) or body not in _FIELDS:
        raise BadSpec("body", "no family of this name", got=body, expected=", ".join(_FIELDS))

    defaults = {**_COMMON, **_FIELDS[body]}
    for name in values:
        if name not in defaults:
            raise BadSpec(
                str(name),
                f"a spec with body {body!r} has no such field",
                got=name,
                expected=", ".join(defaults),
                hint=near(name, defaults, 1),
            )
    checked = SpecFields({**defaults, **values})
    # Names first: of two wrong fields, the id is reported, as that is what one writes first.
    protocol_id, title, aliases = checked.id(), checked.text("title", empty=True), checked.aliases()
    return replace(
        _MAKE[body](checked),
        id=protocol_id,
        title=title,
        aliases=aliases,
        wordings=checked.wordings(),
        spec=json.dumps(values, ensure_ascii=False, default=list),
    )


def from_record(spec_json: str) -> Protocol:
    """Return a protocol made again from its `spec`. Raises BadSpec if this version cannot."""
    values = json.loads(spec_json)
    # A family that only `json_mix_protocol` makes: `from_spec` has no body of this name.
    if values.get("body") == "json_mix":
        del values["body"]
        return json_mix_protocol(**values)
    return from_spec(values, {})


def _json(fields: SpecFields) -> Protocol:
    opener = fields.delimiter("opener", beside_json=True)
    closer = fields.delimiter("closer", beside_json=True)
    if opener.strip() == closer.strip():
        raise _same_delimiters(fields)
    keys = _two_keys(fields, "name_key", "arguments_key")
    response_keys = _two_keys(fields, "response_name_key", "response_content_key")

    line = fields.switch("own_line")
    opener = opener.strip() if line else opener
    results = JsonResult(*fields.response(), *response_keys)
    return json_protocol("", opener, closer, keys=keys, line=line, results=results)


def _two_keys(fields: SpecFields, first: str, second: str) -> tuple[str, str]:
    # of one object
    keys = fields.text(first), fields.text(second)
    if keys[0] == keys[1]:
        raise fields.wrong(second, f"{first} and {second} are the same key", "two keys")
    return keys


def _same_delimiters(fields: SpecFields) -> BadSpec:
    return fields.wrong(
        "closer", "opener and closer are the same", "a closer that differs from the opener"
    )


def _tags(fields: SpecFields) -> Protocol:
    opener, closer = _block(fields)
    function = fields.word("function", PARAMETER_WORDS)
    parameter = fields.word("parameter", FUNCTION_WORDS)
    if function.lower() == parameter.lower():
        raise fields.wrong("parameter", "function and parameter are the same word", "two words")
    form = TagForm(
        opener,
        closer,
        function,
        parameter,
        attribute=fields.switch("attribute"),
        trim=fields.switch("trim"),
        lines=fields.switch("lines"),
    )
    return tag_protocol(form, "", fields.response())


def _block(fields: SpecFields) -> tuple[str, str]:
    # "", "" if there is none
    opener = fields.text("opener", empty=True).strip()
    closer = fields.text("closer", empty=True).strip()
    if not opener and not closer:
        return "", ""
    if not opener or not closer:
        raise fields.wrong(
            "closer" if opener else "opener",
            "a block of functions has both opener and closer, or neither",
            "a text, or two empty ones",
        )

    opener = fields.delimiter("opener", beside_json=False)
    closer = fields.delimiter("closer", beside_json=False)
    if opener == closer:
        raise _same_delimiters(fields)
    return opener, closer


# The two families of elements have no fields: only the names of the protocol differ.
_MAKE: Mapping[str, Callable[[SpecFields], Protocol]] = {
    "json": _json,
    "tags": _tags,
    "xml": lambda _: MORPH_XML,
    "yaml": lambda _: YAML_XML,
}
