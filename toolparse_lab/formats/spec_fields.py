"""The fields of a protocol's spec, each checked when it is read.

Every error is a BadSpec that names the field, its value and the expected one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..core.errors import BadSpec
from .prompt.wording import Wordings
from .tags import THINK_TAGS

# Safe in file names, on command lines and in the columns of frames.
_ID = re.compile(r"[\w.:-]{1,64}")
_WORD = re.compile(r"[A-Za-z_]{1,16}")
# Characters and words that JSON has outside its strings.
_JSON_ITSELF = re.compile(r"(?:[\s\[\]{}:,\"'/*0-9.eE+-]|true|false|null)+")
# Names of arms and readers that are no single protocol.
_RESERVED = ("auto", "native")


@dataclass(frozen=True, slots=True)
class SpecFields:
    """The fields of a spec, each checked when it is read.

    values: field -> value, with defaults filled in, or None for a required field that is missing.
    All methods raise BadSpec.
    """

    values: Mapping[str, Any]

    def wrong(self, field: str, message: str, expected: str, hint: str | None = None) -> BadSpec:
        """Return the error about a field's value."""
        return BadSpec(field, message, got=self.values[field], expected=expected, hint=hint)

    def text(self, field: str, *, empty: bool = False) -> str:
        """Return a text. With `empty` it may be one without characters."""
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
        """Return True or False."""
        value = self.values[field]
        # No truth of other values: the text "false" would be true.
        if not isinstance(value, bool):
            raise self.wrong(field, "the field is a switch", "True or False")
        return value

    def id(self) -> str:
        """Return the id, which appears in frames and file names."""
        value = self.text("id")
        if not _ID.fullmatch(value) or value in _RESERVED:
            raise self.wrong(
                "id",
                "this cannot be a protocol's id",
                "letters, digits and . : _ -, not auto or native",
            )
        return value

    def aliases(self) -> tuple[str, ...]:
        """Return other ids of the same protocol."""
        value = self.values["aliases"]
        error = self.wrong("aliases", "aliases are other ids", "a list of texts")
        # One text is a sequence, too: of letters.
        if not isinstance(value, (list, tuple)):
            raise error
        if not all(isinstance(alias, str) and alias for alias in value):
            raise error
        return tuple(value)

    def delimiter(self, field: str, *, beside_json: bool) -> str:
        """Return a text that marks a call.

        beside_json: it encloses JSON, so that it must not be mistaken for a part of it. Tags of
        reasoning are refused in any case: readers take them for reasoning in every format.
        """
        value = self.text(field)
        for tag in (*THINK_TAGS, *THINK_TAGS.values()):
            if value.strip().startswith(tag):
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
        """Return the name of a tag, which must be none of `others`, in any case."""
        value = self.text(field)
        if not _WORD.fullmatch(value):
            raise self.wrong(field, "this cannot be a tag's name", "1 to 16 letters or underscores")
        if value.lower() in others:
            raise self.wrong(
                field, "readers know this word in the other meaning", f"none of {', '.join(others)}"
            )
        return value

    def response(self) -> tuple[str, str]:
        """Return opener and closer of a result."""
        return self.text("response_opener"), self.text("response_closer")

    def wordings(self) -> Wordings:
        """Return prompt templates of the user's own beside those that show a written call."""
        texts = self.values["wordings"]
        if not isinstance(texts, Mapping) or not _holds_texts(texts):
            raise self.wrong("wordings", "wordings are prompt templates by name", "{name: text}")
        return Wordings(texts=tuple(texts.items()))


def _holds_texts(mapping: Mapping[Any, Any]) -> bool:
    return all(isinstance(item, str) for pair in mapping.items() for item in pair)
