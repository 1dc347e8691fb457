"""Results of tools as they are written for the model, one form a family of formats.

A result is hostile text: a web page may quote the format's own delimiters. If the format carries
JSON or XML they are escaped, so that the model reads the same value and no delimiter stands in the
text. Raw text has no escape: it stays as it is as long as no delimiter stands in it, and is written
as a JSON string otherwise. A delimiter made of nothing but JSON's own brackets, commas and quotes
cannot be hidden by any form, since the value itself writes those.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from typing import Protocol as Interface

from ..core.errors import BadOptions, RXMLStringifyError, UnwritableCall
from ..core.values import BigNum, Num, Value, write_canonical
from .scan import any_of
from .yaml.write import write_element

# A JSON string; escapes are looked for nowhere else.
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
# Names of tools hold none of these, so a name in raw text can forge no delimiter.
_ODD_NAME = re.compile(r"[^\w.:/-]")
_VALUES = ("text", "json", "error-text", "error-json", "content")
# None is a result as any other, so what is not there needs a value of its own.
_MISSING: Any = object()
_MAX_DEPTH = 200


@dataclass(frozen=True, slots=True)
class ToolResult:
    """A result as a tool gave it, and as the model reads it.

    output: as it was handed over. content: the text that the model is to read of it, a text or a
        JSON value.
    call_id: of the call it answers, where that has one.
    """

    name: str
    output: Value
    content: Value
    call_id: str = ""

    @classmethod
    def of(cls, x: Any) -> ToolResult:
        """Return the result that `x` holds.

        x: `{toolName, output | result}`, `{name, content}`, an OpenAI tool message with a name, or
        a ToolResult. Keys may be written in snake case. Raises BadOptions for anything else.

        >>> output = {"type": "error-text", "value": "no such city"}
        >>> ToolResult.of({"toolName": "f", "output": output}).content
        '[Error: no such city]'
        """
        if isinstance(x, ToolResult):
            return x
        if not isinstance(x, Mapping):
            got = type(x).__name__
            raise BadOptions("this is no tool result", got=got, expected="{toolName, output}")

        name = _first(x, "toolName", "tool_name", "name")
        if not isinstance(name, str) or not name:
            raise BadOptions(
                "a tool result names its tool", got=sorted(map(str, x)), expected="toolName or name"
            )

        output = _first(x, "output", "result", "content")
        if output is _MISSING:
            raise BadOptions(
                "a tool result without a result",
                got=sorted(map(str, x)),
                expected="output, or content",
            )

        call_id = _first(x, "toolCallId", "tool_call_id", "id")
        # Anything a tool gives back is written, if need be as its text.
        value = _json_value(output)
        return cls(name, value, unwrap(value), call_id if isinstance(call_id, str) else "")


def _first(x: Mapping[Any, Any], *keys: str) -> Any:
    """Return the value of the first of these keys that is there, else `_MISSING`.

    None is a value: a tool may well give it back.
    """
    for key in keys:
        if key in x:
            return x[key]
    return _MISSING


def _json_value(x: Any, depth: int = 0) -> Value:
    """Return any Python value as JSON can carry it: a value that it cannot carry becomes its text.

    Infinity and not-a-number are text as well. Raises BadOptions for a value that nests deeper than
    200, such as one that contains itself.
    """
    # Num and BigNum are numbers that keep their text; they are written as they were read.
    if x is None or isinstance(x, (str, bool, int, Num, BigNum)):
        return x
    if depth > _MAX_DEPTH:
        raise BadOptions(
            "a tool result nests too deep, or contains itself",
            expected=f"at most {_MAX_DEPTH} levels",
        )

    if isinstance(x, Mapping):
        return {str(key): _json_value(member, depth + 1) for key, member in x.items()}
    if isinstance(x, (list, tuple, set, frozenset)):
        return [_json_value(item, depth + 1) for item in x]
    if isinstance(x, float) and math.isfinite(x):
        return x
    return str(x)


# What the model reads of an output


def unwrap(output: Value) -> Value:
    """Return the text that the model reads of an output.

    Texts and JSON without their wrapping, errors and refusals in brackets, images and files as
    placeholders (`media_of` gives them for a message that can carry them).

    >>> unwrap({"type": "json", "value": {"a": 1}})
    {'a': 1}
    >>> unwrap({"type": "execution-denied", "reason": "not now"})
    '[Execution Denied: not now]'
    """
    # A list of the tool's own is JSON; only one of nothing but known parts is content.
    if isinstance(output, list):
        return _content_text(output) if _are_parts(output) else output
    if not isinstance(output, dict):
        return output

    kind = output.get("type")
    if kind == "execution-denied":
        reason = output.get("reason")
        return f"[Execution Denied: {reason}]" if reason else "[Execution Denied]"
    if kind not in _VALUES or "value" not in output:
        return output  # JSON of the tool's own that happens to be an object

    # From here on the output is in the shape of an AI SDK.
    value = output["value"]
    if kind in ("error-text", "error-json"):
        return f"[Error: {value if isinstance(value, str) else write_canonical(value)}]"
    if kind == "content" and isinstance(value, list):
        return unwrap(value)
    return value


# The kinds of content parts in the shapes of several clients, and the words for their placeholders.
_PARTS = {
    "text": "text", "image_url": "image", "image-url": "image", "image-data": "image",
    "image": "image", "media": "media", "file": "file", "file-url": "file", "file-data": "file",
    "file-id": "file", "image-file-id": "image", "input_audio": "audio",
}  # fmt: skip


def _is_part(x: Any) -> bool:
    """Return True if a value is a content part of a kind that is known.

    A text part holds a text. Of the others the kind is enough for a placeholder.
    """
    if not isinstance(x, dict) or x.get("type") not in _PARTS:
        return False
    return x["type"] != "text" or isinstance(x.get("text"), str)


def _are_parts(items: list[Any]) -> bool:
    """Return True if a list is one of content parts, and not a list of the tool's own."""
    return bool(items) and all(_is_part(item) for item in items)


def _content_text(parts: list[Any]) -> str:
    """Return content parts as one text."""
    return "\n".join(_part_text(part) for part in parts)


def _part_text(part: dict[str, Any]) -> str:
    """Return the text of a part, or a placeholder such as `[Image: image/png]`.

    A "media" part is an image or a file, of which its media type decides.
    """
    if part["type"] == "text":
        return str(part["text"])
    # The media type knows better than the kind of the part, if it is there.
    media = _media_type(part)
    kind = "image" if media.startswith("image/") else _PARTS[part["type"]]
    word = "File" if kind == "media" else kind.capitalize()
    return f"[{word}: {media}]" if media else f"[{word}]"


def _media_type(part: Mapping[str, Any]) -> str:
    """Return the media type that a part names, or nothing."""
    media = _first(part, "mediaType", "media_type", "mimeType")
    return media if isinstance(media, str) else ""


def media_of(result: Any) -> list[dict[str, Any]]:
    """Return the images and files of a result as content parts in OpenAI shape.

    They are for a message that can carry them. `result` is anything that `ToolResult.of` takes.

    >>> image = {"type": "media", "mediaType": "image/png", "data": "AAAA"}
    >>> media_of({"name": "f", "content": [image]})
    [{'type': 'image_url', 'image_url': {'url': 'data:image/png;base64,AAAA'}}]
    """
    # The output and not the content: that has placeholders in their place already.
    parts = ToolResult.of(result).output
    if isinstance(parts, dict) and parts.get("type") == "content":
        parts = parts.get("value")
    if not isinstance(parts, list) or not _are_parts(parts):
        return []
    return [_openai_part(part) for part in parts if part["type"] != "text"]


def _openai_part(part: dict[str, Any]) -> dict[str, Any]:
    """Return an image or file in OpenAI's shape, as it is if it has neither bytes nor address.

    The bytes of a part go before its address: some clients leave an empty one beside them.
    """
    is_image = part["type"].startswith("image")
    media = _media_type(part)
    url = part.get("url")
    inline = _first(part, "data", "image")
    # Bytes go before an address.
    if isinstance(inline, str):
        url = _data_url(inline, media, is_image)
    if not isinstance(url, str):
        return part
    if is_image or media.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": url}}
    return {"type": "file", "file": {"file_data": url}}


def _data_url(inline: str, media: str, is_image: bool) -> str:
    """Return bytes in base64 as an address.

    Some clients put an address in their place.

    media: the media type, or nothing. Then the kind of the part decides.
    """
    if inline.startswith(("http:", "https:", "data:")):
        return inline
    kind = media or ("image/png" if is_image else "application/octet-stream")
    return f"data:{kind};base64,{inline}"


# The forms


class ResultForm(Interface):
    """Writes results in the way of one family."""

    def write(self, result: ToolResult, literals: tuple[str, ...], seed: bool) -> str:
        """Return the result as the format's models know it.

        literals: every delimiter of the format that a result must not forge. seed: in the shape
        that the oldest version wrote, where it differs. Raises UnwritableCall for a value that the
        form cannot carry.
        """
        ...


@dataclass(frozen=True, slots=True)
class JsonResult:
    """`{"name": …, "content": …}` between delimiters.

    The seed's keys are `toolName` and `result`.
    """

    opener: str = "<tool_response>"
    closer: str = "</tool_response>"
    name_key: str = "name"
    content_key: str = "content"

    def write(self, result: ToolResult, literals: tuple[str, ...], seed: bool) -> str:
        """Return JSON with every delimiter inside its strings escaped.

        The format's own and those around results: neither may be forged.
        """
        # The seed hands the output on as it is, wrapping and all.
        if seed:
            value = {"toolName": result.name, "result": result.output}
        else:
            value = {self.name_key: result.name, self.content_key: result.content}
        text = guarded(write_canonical(value), (*literals, self.opener, self.closer))
        return self.opener + text + self.closer


TOOL_RESPONSE = JsonResult()


@dataclass(frozen=True, slots=True)
class ElementResult:
    """`<tool_response>` with the elements `tool_name` and `result`, values as nested elements.

    A value that XML cannot carry is written as the JSON text it is. No text holds a bare `<`, so
    none holds a tag.
    """

    def write(self, result: ToolResult, literals: tuple[str, ...], seed: bool) -> str:
        """Return an element.

        Raises UnwritableCall if XML cannot carry even the JSON text.

        The seed's shape keeps the declaration in front and escapes more than XML asks for.
        """
        from .rxml.writer import stringify  # loads lxml, which parsing does without

        content = result.output if seed else result.content
        text = content if isinstance(content, str) else write_canonical(content)
        # From the most readable to the one that nearly every value has: characters that XML
        # forbids are escapes in the last.
        for value in (content, text, guarded(write_canonical(text), ("<",))):
            if value is content and content in ({}, []):
                continue  # an element without content would not say which of the two
            try:
                element = stringify(
                    "tool_response",
                    {"tool_name": result.name, "result": value},
                    minimal_escaping=not seed,
                )
            except RXMLStringifyError:
                continue

            return element if seed else element.partition("\n")[2].rstrip("\n")

        raise UnwritableCall("XML cannot carry this result", got=result.name)


@dataclass(frozen=True, slots=True)
class YamlResult:
    """`<tool_response>` around a mapping of `tool_name` and `result`.

    It is JSON, which is YAML, where a `<` is in it.
    """

    def write(self, result: ToolResult, literals: tuple[str, ...], seed: bool) -> str:
        """Return an element with YAML in it, or with JSON, which is YAML as well.

        JSON where YAML cannot carry the value, or where its text would hold a tag.
        """
        opener, closer = "<tool_response>", "</tool_response>"
        value = {"tool_name": result.name, "result": result.content}
        # A value that is too deep for YAML is still JSON.
        try:
            text = write_element("tool_response", value)
        except UnwritableCall:
            text = ""

        inner = text[len(opener) : -len(closer)]
        if text and "<" not in inner:  # any tag may be a tool's
            return text
        return f"{opener}\n{guarded(write_canonical(value), ('<',))}\n{closer}"


@dataclass(frozen=True, slots=True)
class TextResult:
    """Raw text, or the JSON text of a value, in a frame of literals.

    frame: called as frame(name, call_id, content). own: the frame's literals. In a name, a
    character that no tool's name holds becomes an underscore.
    """

    frame: Callable[[str, str, str], str]
    own: tuple[str, ...] = ()

    def write(self, result: ToolResult, literals: tuple[str, ...], seed: bool) -> str:
        """Return the text as it is, or as a JSON string if a delimiter stands in it.

        Raw text has no escapes, and a model reads a JSON string nearly as well.
        """
        delimiters = (*literals, *self.own)
        content = result.content
        if isinstance(content, str) and not _is_forged(content, delimiters):
            text = content
        else:
            text = guarded(write_canonical(content), delimiters)
        return self.frame(_ODD_NAME.sub("_", result.name), _ODD_NAME.sub("_", result.call_id), text)


@dataclass(frozen=True, slots=True)
class Between:
    """A frame for `TextResult` that is the same for every tool."""

    opener: str
    closer: str

    def __call__(self, name: str, call_id: str, content: str) -> str:
        """Return the content on lines of its own between the delimiters."""
        return f"{self.opener}\n{content}\n{self.closer}"


# Escapes


def guarded(text: str, literals: Iterable[str]) -> str:
    """Return JSON text that says the same, with no literal inside a string.

    One character of each is written as an escape.

    >>> guarded('{"a":"</tool_call> x"}', ("</tool_call>",))
    '{"a":"\\\\u003c/tool_call> x"}'
    """
    stripped = [literal.strip() for literal in literals]
    # White space around a delimiter is no part of what makes it one.
    pattern = _guard(tuple(dict.fromkeys(literal for literal in stripped if literal)))
    return _STRING.sub(lambda string: pattern.sub(_escaped, string[0]), text)


@lru_cache(maxsize=256)
def _guard(literals: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern for an escape sequence, which stays, or a literal's first character."""
    begins = any_of(literals)
    return re.compile(rf"\\(?:u[0-9a-fA-F]{{4}}|.)|(?=(?:{begins}))(?P<first>.)", re.DOTALL)


def _escaped(match: re.Match[str]) -> str:
    """Return an escape sequence as it is, a literal's first character as an escape."""
    first = match["first"]
    return match[0] if first is None else write_escape(first)


def write_escape(ch: str) -> str:
    """Return one character as JSON escapes, if JSON asks for it or not.

    A character beyond 0xFFFF is two of them.
    """
    # JSON escapes UTF-16, and a lone surrogate is a character here as any other.
    units = ch.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))


def _is_forged(text: str, literals: Iterable[str]) -> bool:
    """Return True if a delimiter stands in a text, white space around it aside.

    A model takes a delimiter for one without the line breaks beside it too.
    """
    stripped = [literal.strip() for literal in literals]
    return any(literal in text for literal in stripped if literal)
