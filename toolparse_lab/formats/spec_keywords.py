"""The types of the fields that `Protocol.from_spec` takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict


class SpecKeywords(TypedDict, total=False):
    """Fields of a format. Each family has its own, see `spec._FIELDS`."""

    id: str
    body: Literal["json", "tags", "xml", "yaml"]
    title: str
    aliases: Sequence[str]
    wordings: Mapping[str, str]
    opener: str
    closer: str
    name_key: str
    arguments_key: str
    own_line: bool
    function: str
    parameter: str
    attribute: bool
    trim: bool
    lines: bool
    response_name_key: str
    response_content_key: str
    response_opener: str
    response_closer: str
